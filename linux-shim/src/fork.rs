//! Words that a forked child finds zeroed.
//!
//! Code without a C library has no `pthread_atfork`, and a library that is
//! called again in a forked child must notice: its descriptors are the parent's
//! and its locks may be held by threads that the child does not have. The kernel
//! can zero a page in the child (MADV_WIPEONFORK, Linux 4.14), so a word in such
//! a page costs one load to look at. What must be fresh in a child (an epoch,
//! the lock of the heap) is put right there.
//!
//! A child that shares memory with its parent (vfork, or clone with CLONE_VM)
//! shares this page too and sees the parent's values.
//!
//! # Where the kernel cannot wipe
//!
//! Old kernels answer EINVAL. Then every look compares getpid(2) with the process
//! that the words belong to. When they differ the process either was forked or
//! shares its owner's memory, and a *witness* tells which: a page marked
//! MADV_DONTFORK, which is gone from a forked child. One futex(2) call looks at
//! it without touching it: EFAULT when nothing is there, EAGAIN when something
//! else was mapped at the same place since. This mode does not notice a child
//! that has its parent's id, in a PID namespace of its own.
//!
//! User-mode emulators accept any advice and follow none. They are told by
//! accepting advice that does not exist; process ids are compared there too, and
//! without a witness every other process counts as forked. None of them lets
//! processes share memory anyway.
//!
//! # Safety
//!
//! The page is mapped once, never unmapped, and used as atomic words only. The
//! witness is written once, before anyone else knows its address.
#![allow(unsafe_code)]

use core::ptr::{null_mut, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use hsakmt_core::errno::Errno;
use linux_raw_sys::general::{
    MADV_DONTFORK, MADV_WIPEONFORK, MAP_ANONYMOUS, MAP_PRIVATE, PROT_READ, PROT_WRITE,
};

use crate::page_size;
use crate::syscall::memory::{madvise, mmap, munmap};
use crate::syscall::process::{getpid, sched_yield};
use crate::syscall::{futex, restart};

/// The words of a process, all zero at first and in a forked child.
#[derive(Debug)]
#[repr(C)]
pub struct Words {
    /// The library's epoch, see `Os::fork_word`.
    pub core: AtomicU32,
    /// The lock of the heap.
    pub heap_lock: AtomicU32,
    /// Whether the heap's state belongs to this process.
    pub heap_epoch: AtomicU32,
}

impl Words {
    const fn new() -> Words {
        Words {
            core: AtomicU32::new(0),
            heap_lock: AtomicU32::new(0),
            heap_epoch: AtomicU32::new(0),
        }
    }
}

/// Keeps one set of [`Words`] for a process and its forked children.
///
/// A program needs one, and [`words`] is it; tests make their own.
#[derive(Debug)]
pub struct Detector {
    /// The words in use: null before the first look, then for ever either a
    /// page that the kernel wipes, or `unwiped`.
    words: AtomicPtr<Words>,
    /// The words that we wipe ourselves where the kernel does not.
    unwiped: Words,
    /// Whose `unwiped` is: an [`Owner`] as a number.
    owner: AtomicU64,
    /// Whether to try the kernel's wiping at all.
    try_wipe: bool,
}

static PROCESS: Detector = Detector::new();

/// The words of this process. Only the first look makes system calls, except
/// where the kernel cannot wipe.
#[inline]
#[must_use]
pub fn words() -> &'static Words {
    PROCESS.words()
}

/// Whose the unwiped words are, packed into a number so that one exchange
/// settles who takes them over.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Owner(u64);

impl Owner {
    /// The kernel gives out no process id of more bits (PID_MAX_LIMIT).
    const PROCESS_BITS: u32 = 22;
    /// The witness, in units of the smallest page; 41 bits hold any address
    /// below 2^53, and mmap gives out none above 2^47 unless asked for it.
    const WITNESS_UNIT: u64 = 4096;
    /// The owner is still zeroing the words.
    const WIPING: u64 = 1 << 63;

    fn new(process: u32, witness: usize) -> Owner {
        Owner(u64::from(process) | (witness as u64 / Self::WITNESS_UNIT) << Self::PROCESS_BITS)
    }

    fn process(self) -> u32 {
        (self.0 & ((1 << Self::PROCESS_BITS) - 1)) as u32
    }

    /// The witness's address, or 0 without one.
    fn witness(self) -> usize {
        (((self.0 & !Self::WIPING) >> Self::PROCESS_BITS) * Self::WITNESS_UNIT) as usize
    }

    fn wiping(self) -> bool {
        self.0 & Self::WIPING != 0
    }
}

impl Detector {
    /// One that lets the kernel wipe if it can.
    #[must_use]
    pub const fn new() -> Detector {
        Self::with(true)
    }

    /// One that does as if the kernel could not wipe.
    #[must_use]
    pub const fn comparing_process_ids() -> Detector {
        Self::with(false)
    }

    const fn with(try_wipe: bool) -> Detector {
        Detector {
            words: AtomicPtr::new(null_mut()),
            unwiped: Words::new(),
            owner: AtomicU64::new(0),
            try_wipe,
        }
    }

    /// The words of the calling process.
    #[inline]
    pub fn words(&'static self) -> &'static Words {
        let mut words = self.words.load(Ordering::Acquire);
        if words.is_null() {
            words = self.choose();
        }
        if core::ptr::eq(words, &self.unwiped) {
            self.wipe_if_forked();
        }
        // SAFETY: not null, and either choice lives as long as the process.
        unsafe { &*words }
    }

    /// Whether the kernel does the wiping. Makes the choice if it is still open.
    pub fn kernel_wipes(&'static self) -> bool {
        core::ptr::from_ref(self.words()) != &raw const self.unwiped
    }

    /// Makes the choice, or finds it made by another thread.
    #[cold]
    fn choose(&self) -> *mut Words {
        let page = if self.try_wipe { wiped_page() } else { None };
        let ours = page.unwrap_or((&raw const self.unwiped).cast_mut());
        let order = (Ordering::AcqRel, Ordering::Acquire);
        match self.words.compare_exchange(null_mut(), ours, order.0, order.1) {
            Ok(_) => ours,
            Err(theirs) => {
                if let Some(page) = page {
                    // SAFETY: nobody else has seen this page.
                    let _ = unsafe { munmap(page.addr(), page_size::get()) };
                }
                theirs
            }
        }
    }

    /// Zeroes the unwiped words if they belong to a process that is neither the
    /// calling one nor one that shares its memory.
    fn wipe_if_forked(&self) {
        let process = getpid();
        loop {
            let owner = Owner(self.owner.load(Ordering::Acquire));
            if owner.process() == process || witness_is_there(owner.witness()) {
                if !owner.wiping() {
                    return;
                }
                // A thread that runs in this memory is at it.
                sched_yield();
                continue;
            }
            let new = Owner::new(process, new_witness());
            let order = (Ordering::AcqRel, Ordering::Relaxed);
            let wiping = new.0 | Owner::WIPING;
            if self.owner.compare_exchange(owner.0, wiping, order.0, order.1).is_ok() {
                self.unwiped.core.store(0, Ordering::Relaxed);
                self.unwiped.heap_lock.store(0, Ordering::Relaxed);
                self.unwiped.heap_epoch.store(0, Ordering::Relaxed);
                self.owner.store(new.0, Ordering::Release);
                return;
            }
            if new.witness() != 0 {
                // SAFETY: nobody else has seen this page.
                let _ = unsafe { munmap(new.witness(), page_size::get()) };
            }
        }
    }
}

impl Default for Detector {
    fn default() -> Self {
        Self::new()
    }
}

/// Advice that no kernel will ever know.
const NO_ADVICE: u32 = u32::MAX;

/// A new private page with this advice, or `None` if either is refused, or if
/// advice is not worth anything here.
fn advised_page(advice: u32) -> Option<*mut Words> {
    let length = page_size::get();
    let (protection, flags) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever the kernel likes.
    let page = unsafe { mmap(0, length, protection, flags, None, 0) }.ok()?;
    // SAFETY: our page, unused yet.
    let advise = |advice| unsafe { madvise(page, length, advice) };
    if advise(advice).is_err() || advise(NO_ADVICE).is_ok() {
        // SAFETY: our page, unused yet.
        let _ = unsafe { munmap(page, length) };
        return None;
    }
    Some(with_exposed_provenance_mut(page))
}

/// A page that the kernel zeroes in forked children.
fn wiped_page() -> Option<*mut Words> {
    advised_page(MADV_WIPEONFORK)
}

/// What a witness holds, to tell it from whatever else is mapped there later.
const WITNESS: u32 = 0x6b6d_7477;

/// A page that forked children do not have, holding [`WITNESS`]; 0 if the kernel
/// refuses one. Then a child that shares memory is taken for a forked one.
fn new_witness() -> usize {
    let Some(page) = advised_page(MADV_DONTFORK) else { return 0 };
    // SAFETY: our page, writable, and aligned like every page.
    unsafe { page.cast::<u32>().write(WITNESS) };
    page.addr()
}

/// Whether this address holds [`WITNESS`]. Nothing is touched: the kernel reads
/// the word, finds it as expected, and gives up waiting at once.
fn witness_is_there(address: usize) -> bool {
    address != 0 && restart(|| futex::wait_at(address, WITNESS, Some(0))) == Err(Errno::ETIMEDOUT)
}

#[cfg(test)]
mod tests {
    use super::Owner;

    #[test]
    fn an_owner_keeps_its_parts_apart() {
        let owner = Owner::new((1 << 22) - 1, 0x7fff_ffff_f000);
        assert_eq!((owner.process(), owner.witness()), ((1 << 22) - 1, 0x7fff_ffff_f000));
        assert!(!owner.wiping());
        let wiping = Owner(owner.0 | Owner::WIPING);
        assert_eq!((wiping.process(), wiping.witness()), (owner.process(), owner.witness()));
        assert!(wiping.wiping());
    }
}
