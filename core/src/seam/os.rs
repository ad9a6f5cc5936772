//! The operating system, as far as the library needs it.

use alloc::vec::Vec;
use core::ffi::CStr;
use core::ops::ControlFlow;
use core::sync::atomic::AtomicU32;

use bitflags::bitflags;

use crate::errno::Errno;

/// Where a new mapping goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the system likes.
    Anywhere,
    /// At this address if it is free, elsewhere otherwise.
    Hint(usize),
    /// Exactly here, refused with EEXIST if anything is mapped there.
    Free(usize),
    /// Exactly here, replacing what is there. Only for ranges that we own.
    Replace(usize),
}

bitflags! {
    /// What a mapping allows the CPU.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Protection: u32 {
        /// Reads.
        const READ = 1;
        /// Writes.
        const WRITE = 2;
        /// Instruction fetches.
        const EXECUTE = 4;
    }
}

/// An anonymous mapping to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Where.
    pub placement: Placement,
    /// Bytes; a multiple of the page size.
    pub length: usize,
    /// What the CPU may do there.
    pub protection: Protection,
    /// Whether swap space is reserved for it; address reservations say no.
    pub reserve: bool,
    /// Shared with forked children rather than copied.
    pub shared: bool,
}

/// Advice about a range of the address space (madvise).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Absent in forked children.
    DontFork,
    /// Inherited by forked children again.
    DoFork,
    /// Use huge pages.
    HugePage,
    /// Do not use huge pages.
    NoHugePage,
    /// Drop the contents now.
    DontNeed,
    /// Drop the contents and the backing store of a shared mapping now.
    Remove,
    /// Leave out of core dumps.
    DontDump,
    /// Read every page once, so that a wrong range fails here (Linux 5.14; older
    /// kernels do not know it).
    PopulateRead,
}

/// How pages of a range choose their NUMA node (mbind).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// The process's own policy.
    Default,
    /// Prefer the nodes of the mask, take others when they are full.
    Preferred,
    /// Only the nodes of the mask.
    Bind,
}

/// A clock, in nanoseconds since its own origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Monotonic, adjusted by NTP: for time-outs.
    Monotonic,
    /// Monotonic, raw hardware rate: what KFD reports as the CPU counter.
    MonotonicRaw,
    /// Monotonic and counting while suspended: what KFD reports as the system counter.
    Boot,
}

/// How the end of a file is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfFile {
    /// A read shorter than asked is the end: sysfs attributes and regular files.
    /// A file that fits the buffer costs open, read, close.
    ShortRead,
    /// Only a read of nothing is the end: `/proc`, whose reads stop where a record does.
    EmptyRead,
}

/// What kind of thing a name in a folder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A folder.
    Folder,
    /// A regular file or a sysfs attribute.
    File,
    /// A link, a device, or a kind that the file system does not tell.
    Other,
}

/// Why a futex wait ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Woken, or the word had changed, or for no reason: look at the word again.
    Again,
    /// The time-out passed.
    TimedOut,
}

/// The operating system.
///
/// Every method is one system call, or a short fixed sequence where it says so;
/// none of them keeps state that a fork could tear. Implementations restart
/// calls that a signal interrupted, except where the answer is EINTR by
/// contract.
pub trait Os {
    /// The page size in bytes: 4096, 16384 or 65536. Constant, no system call.
    fn page_size(&self) -> usize;

    /// Makes an anonymous mapping and returns its address.
    ///
    /// # Errors
    /// ENOMEM (also: the map limit), EEXIST for [`Placement::Free`], EINVAL.
    fn map(&self, mapping: Mapping) -> Result<usize, Errno>;

    /// Removes whatever is mapped in the range.
    ///
    /// # Errors
    /// ENOMEM when a mapping would have to be split at the map limit, EINVAL.
    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno>;

    /// Changes what the CPU may do in the range.
    ///
    /// # Errors
    /// As mprotect(2).
    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno>;

    /// Advises about the range.
    ///
    /// # Errors
    /// As madvise(2); EINVAL for advice that the kernel does not know.
    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno>;

    /// Sets the NUMA policy of the range; bit n of `nodes` is NUMA node n.
    ///
    /// # Errors
    /// As mbind(2); EPERM and ENOSYS inside containers.
    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno>;

    /// Appends a whole file to `into`, at most `limit` bytes.
    ///
    /// Three system calls for a file that is shorter than the spare room of
    /// `into` (see [`EndOfFile::ShortRead`]). On an error `into` is as it was.
    ///
    /// # Errors
    /// Those of open(2) and read(2); ENOMEM when `into` cannot grow; EFBIG when
    /// the file has more than `limit` bytes.
    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno>;

    /// Calls `visit` for each name in a folder, in the order of the file
    /// system, without `.` and `..`, until it breaks.
    ///
    /// # Errors
    /// Those of open(2) and getdents64(2).
    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno>;

    /// Reads a clock, in nanoseconds.
    fn now(&self, clock: Clock) -> u64;

    /// Sleeps for about `ns` nanoseconds; a signal may end it early.
    fn sleep(&self, ns: u64);

    /// Sleeps while `word` holds `expected`, at most `timeout` nanoseconds.
    ///
    /// # Errors
    /// EINTR when a signal arrived.
    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno>;

    /// Wakes at most `count` threads that wait on `word`.
    fn futex_wake(&self, word: &AtomicU32, count: u32);

    /// Tells that the calling thread has just taken a lock of the library.
    ///
    /// For a platform that counts them: a lock that nobody else wants is taken
    /// without a system call, so there is nothing else to see of it. Platforms that
    /// do not count keep this one, which does nothing and leaves no instruction.
    #[inline(always)]
    fn locked(&self) {}

    /// The kernel's id of the calling thread.
    fn thread_id(&self) -> u32;

    /// The kernel's id of the calling process.
    fn process_id(&self) -> u32;

    /// A word that the system sets to zero in a forked child and nowhere else.
    ///
    /// fork(2) and raw clone without CLONE_VM wipe it; a vfork or CLONE_VM
    /// child shares memory with its parent and so sees the parent's value.
    /// No system call (where the kernel can wipe pages: Linux 4.14, MADV_WIPEONFORK).
    fn fork_word(&self) -> &AtomicU32;

    /// Orders earlier writes to any memory before later writes to device memory.
    fn wmb_device(&self);

    /// Orders earlier reads of device memory before later reads of any memory.
    fn rmb_device(&self);

    /// Pushes write-combined stores to device memory out of the CPU's buffers.
    fn flush_wc(&self);
}
