//! A heap for programs and libraries without a C library.
//!
//! [`Heap`] is talc on anonymous mappings, behind a futex lock. Blocks of
//! [`DIRECT`] bytes and more are mappings of their own: they go back to the
//! system when freed, and come zeroed. Everything else stays in regions that
//! grow and are never given back. A refused mapping is a null pointer; nothing
//! here panics.
//!
//! # Fork
//!
//! The lock is one of the [wiped words](crate::fork): a forked child finds it
//! free even if a thread of the parent was inside. The state behind it may then
//! be half-written, so the child abandons it unvisited and starts a heap of its
//! own. Blocks of the parent stay readable and writable in the child; freeing
//! one does nothing, and reallocating one copies it. A vfork or CLONE_VM child
//! uses the parent's heap as one more thread.
//!
//! # Safety
//!
//! The state is touched only while the lock is held, and first made fresh if it
//! is another process's. Regions are ours alone from the mapping on, each with a
//! header that talc never sees. A signal handler that allocates, or that forks
//! while it has interrupted an allocation and then returns in the child, breaks
//! this, as it does with any heap.
#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{null_mut, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicU32, Ordering};

use hsakmt_core::errno::Errno;
use linux_raw_sys::general::{MAP_ANONYMOUS, MAP_PRIVATE, MREMAP_MAYMOVE, PROT_READ, PROT_WRITE};
use talc::DefaultBinning;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;

use crate::fork::{self, Words};
use crate::page_size;
use crate::syscall::futex;
use crate::syscall::memory::{mmap, mremap, munmap};

/// Blocks of this many bytes and more are mappings of their own.
pub const DIRECT: usize = 1 << 20;

/// The process's heap, for a leaf crate to declare:
///
/// ```
/// use hsakmt_linux_shim::heap::Heap;
///
/// #[global_allocator]
/// static HEAP: Heap = Heap;
///
/// fn main() {
///     assert_eq!(vec![7; 1000].iter().sum::<i32>(), 7000);
/// }
/// ```
///
/// All values of this type are the same heap.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heap;

/// What the lock guards.
struct State {
    talc: Talc<Regions, DefaultBinning>,
    /// A process used this state, this one or the one it was forked from.
    used: bool,
    /// This process was forked from one that used the heap, so pointers into
    /// abandoned regions may turn up.
    inherited: bool,
}

struct Shared(UnsafeCell<State>);

// SAFETY: every access is under the lock.
unsafe impl Sync for Shared {}

static STATE: Shared = Shared(UnsafeCell::new(State {
    talc: Talc::new(Regions { newest: null_mut(), bytes: 0 }),
    used: false,
    inherited: false,
}));

/// The held lock.
struct Guard {
    words: &'static Words,
}

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody may be waiting.
const WAITED_FOR: u32 = 2;

impl Guard {
    fn lock() -> Guard {
        let words = fork::words();
        let lock = &words.heap_lock;
        if lock.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            Self::wait(lock);
        }
        let mut guard = Guard { words };
        if words.heap_epoch.load(Ordering::Relaxed) == 0 {
            guard.make_fresh();
        }
        guard
    }

    #[cold]
    fn wait(lock: &AtomicU32) {
        while lock.swap(WAITED_FOR, Ordering::Acquire) != FREE {
            // Whatever it answers, the word is looked at again.
            let _ = futex::wait(lock, WAITED_FOR, None);
        }
    }

    /// Starts anew in the first process and in each forked one.
    #[cold]
    fn make_fresh(&mut self) {
        let state = self.state();
        state.inherited = state.used;
        state.used = true;
        // The old value is neither read nor dropped: it may be half-written.
        // SAFETY: `talc` is ours to overwrite.
        unsafe {
            (&raw mut state.talc).write(Talc::new(Regions { newest: null_mut(), bytes: 0 }));
        }
        self.words.heap_epoch.store(1, Ordering::Relaxed);
    }

    fn state(&mut self) -> &mut State {
        // SAFETY: the lock is held, and the guard is borrowed as long.
        unsafe { &mut *STATE.0.get() }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.words.heap_lock.swap(FREE, Ordering::Release) == WAITED_FOR {
            futex::wake(&self.words.heap_lock, 1);
        }
    }
}

/// At the start of each region, out of talc's sight. Its size is talc's
/// alignment, so nothing is lost after it.
#[repr(C, align(32))]
struct Region {
    older: *mut Region,
    /// Of the whole mapping.
    bytes: usize,
}

/// The regions of this process, as talc's source of memory.
#[derive(Debug)]
struct Regions {
    newest: *mut Region,
    /// Of all regions.
    bytes: usize,
}

// SAFETY: the pointers lead to memory that the lock guards.
unsafe impl Send for Regions {}

impl Regions {
    /// The least that is asked of the system at a time.
    const LEAST: usize = 64 << 10;
    /// The most that is asked for ahead of need.
    const MOST: usize = 8 << 20;
    /// More than talc's own needs in a region: its table of bins in the first
    /// one, the header, and what alignment to its units costs.
    const OVERHEAD: usize = 4096;

    fn hold(&self, pointer: *mut u8) -> bool {
        let mut region = self.newest;
        while !region.is_null() {
            // SAFETY: a region of this process; they are never unmapped.
            let Region { older, bytes } = unsafe { region.read() };
            if pointer.addr().wrapping_sub(region.addr()) < bytes {
                return true;
            }
            region = older;
        }
        false
    }
}

// SAFETY: `acquire` maps memory by system calls and allocates nothing.
unsafe impl Source for Regions {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        let needed = layout.size().checked_add(layout.align()).ok_or(())?;
        let needed = round_to_pages(needed.checked_add(Self::OVERHEAD).ok_or(())?).ok_or(())?;
        // Regions grow with the heap, so there are never many.
        let ahead = (talc.source.bytes / 2).clamp(Self::LEAST, Self::MOST);
        let bytes = needed.max(round_to_pages(ahead).ok_or(())?);
        let (start, bytes) = match map(bytes) {
            Ok(start) => (start, bytes),
            Err(_) => (map(needed).map_err(drop)?, needed),
        };
        let region = start.cast::<Region>();
        // SAFETY: a fresh mapping, aligned like every page and larger than this.
        unsafe { region.write(Region { older: talc.source.newest, bytes }) };
        let inside = start.wrapping_add(size_of::<Region>());
        // SAFETY: the rest of the fresh mapping, which nobody else knows.
        if unsafe { talc.claim(inside, bytes.saturating_sub(size_of::<Region>())) }.is_none() {
            // SAFETY: talc has left it alone.
            let _ = unsafe { munmap(start.addr(), bytes) };
            return Err(());
        }
        talc.source.newest = region;
        talc.source.bytes = talc.source.bytes.saturating_add(bytes);
        Ok(())
    }
}

fn round_to_pages(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(page_size::get())
}

/// A fresh mapping of zeroes; `bytes` is a multiple of the page size.
fn map(bytes: usize) -> Result<*mut u8, Errno> {
    let (protection, flags) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever the kernel likes.
    unsafe { mmap(0, bytes, protection, flags, None, 0) }.map(with_exposed_provenance_mut)
}

/// A mapping for one block, zeroed.
fn map_direct(layout: Layout) -> Option<*mut u8> {
    let page = page_size::get();
    let bytes = round_to_pages(layout.size())?;
    if layout.align() <= page {
        return map(bytes).ok();
    }
    // Map enough to find an aligned range within, and give the ends back.
    let whole = bytes.checked_add(layout.align())?;
    let start = map(whole).ok()?;
    let before = start.addr().wrapping_neg() & (layout.align().wrapping_sub(1));
    let after = layout.align().saturating_sub(before);
    let block = start.wrapping_add(before);
    // Where the map limit refuses, the end stays mapped and is lost.
    if before != 0 {
        // SAFETY: within our mapping, before the block.
        let _ = unsafe { munmap(start.addr(), before) };
    }
    if after != 0 {
        // SAFETY: within our mapping, after the block.
        let _ = unsafe { munmap(block.addr().wrapping_add(bytes), after) };
    }
    Some(block)
}

/// Ends a block's own mapping.
///
/// # Safety
/// The block came from [`map_direct`] with a layout of this size.
unsafe fn unmap_direct(block: *mut u8, size: usize) {
    if let Some(bytes) = round_to_pages(size) {
        // SAFETY: the whole mapping of a block that nobody uses any more. If
        // the map limit refuses, the block is lost.
        let _ = unsafe { munmap(block.addr(), bytes) };
    }
}

fn is_direct(layout: Layout) -> bool {
    layout.size() >= DIRECT
}

// SAFETY: blocks are disjoint and as large and aligned as asked, by talc's and
// mmap's promises; nothing unwinds.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_direct(layout) {
            return map_direct(layout).unwrap_or(null_mut());
        }
        // SAFETY: the size is not zero, by the trait's contract.
        match unsafe { Guard::lock().state().talc.allocate(layout) } {
            Some(block) => block.as_ptr(),
            None => null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() && !is_direct(layout) {
            // SAFETY: just allocated with this size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_direct(layout) {
            // A forked child unmaps its own copy.
            // SAFETY: the caller's block, of this layout.
            return unsafe { unmap_direct(block, layout.size()) };
        }
        let mut guard = Guard::lock();
        let state = guard.state();
        if !state.inherited || state.talc.source.hold(block) {
            // SAFETY: the caller's block, of this layout, from this heap.
            unsafe { state.talc.deallocate(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the alignment is valid, and so is the size by the trait's contract.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (is_direct(layout), is_direct(new_layout)) {
            (true, true) if layout.align() <= page_size::get() => {
                let (Some(old), Some(new)) =
                    (round_to_pages(layout.size()), round_to_pages(new_size))
                else {
                    return null_mut();
                };
                if old == new {
                    return block;
                }
                // SAFETY: the whole mapping of the caller's block.
                let moved = unsafe { mremap(block.addr(), old, new, MREMAP_MAYMOVE) };
                return moved.map_or(null_mut(), with_exposed_provenance_mut);
            }
            (false, false) => {
                let mut guard = Guard::lock();
                let state = guard.state();
                if !state.inherited || state.talc.source.hold(block) {
                    // SAFETY: the caller's block, of this layout, from this heap.
                    if unsafe { state.talc.try_realloc_in_place(block, layout, new_size) } {
                        return block;
                    }
                }
            }
            _ => {}
        }
        // SAFETY: the caller's.
        let new = unsafe { self.alloc(new_layout) };
        if !new.is_null() {
            // SAFETY: two blocks, each at least that large; the old one is the
            // caller's to give up.
            unsafe {
                new.copy_from_nonoverlapping(block, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
        }
        new
    }
}
