//! Counting what passes the seams, for statements such as "this call costs
//! four blocks and no other system call".
//!
//! ```text
//! let counters = Counters::new();
//! let platform = Counted::new(machine, &counters);
//! let before = counters.snapshot();
//! // ... the call ...
//! let cost = counters.snapshot().since(&before);
//! assert_eq!((cost.ioctls(), cost.system_calls()), (4, 4), "{cost}");
//! ```

use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt;
use core::ops::{ControlFlow, Deref};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::Platform;
use super::device::{CloseObserver, ObservedDevice};
use super::driver::{Call, DeviceNode, DeviceToken, Driver, MapDevice};
use super::forward::platform_of_itself;
use super::operation::OperationKind;
use super::os::{Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Protection, Wake};
use crate::errno::Errno;
use crate::uapi;

const KINDS: usize = OperationKind::ALL.len();
const BLOCKS: usize = uapi::ALL.len();

/// Counts of the operations of both seams. Shared by any number of threads and
/// wrappers; never locks and never allocates.
#[derive(Debug)]
pub struct Counters {
    kinds: [AtomicU64; KINDS],
    /// In the order of [`uapi::ALL`].
    blocks: [AtomicU64; BLOCKS],
    system_calls: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Counters::new()
    }
}

impl Counters {
    /// Counters that stand at zero.
    #[must_use]
    pub const fn new() -> Counters {
        Counters {
            kinds: [const { AtomicU64::new(0) }; KINDS],
            blocks: [const { AtomicU64::new(0) }; BLOCKS],
            system_calls: AtomicU64::new(0),
        }
    }

    /// The counts as they are now. While other threads are at work the single
    /// numbers are exact, but not of one instant.
    #[must_use]
    pub fn snapshot(&self) -> Counts {
        let mut counts = Counts {
            kinds: [0; KINDS],
            blocks: [0; BLOCKS],
            system_calls: self.system_calls.load(Relaxed),
        };
        for (count, counter) in counts.kinds.iter_mut().zip(&self.kinds) {
            *count = counter.load(Relaxed);
        }
        for (count, counter) in counts.blocks.iter_mut().zip(&self.blocks) {
            *count = counter.load(Relaxed);
        }
        counts
    }

    fn enter(&self, kind: OperationKind) {
        if let Some(counter) = self.kinds.get(kind as usize) {
            counter.fetch_add(1, Relaxed);
        }
    }

    fn leave(&self, kind: OperationKind, succeeded: bool) {
        self.system_calls.fetch_add(kind.system_calls(succeeded), Relaxed);
    }

    fn fallible<R>(
        &self,
        kind: OperationKind,
        operation: impl FnOnce() -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        self.enter(kind);
        let result = operation();
        self.leave(kind, result.is_ok());
        result
    }

    fn infallible<R>(&self, kind: OperationKind, operation: impl FnOnce() -> R) -> R {
        self.enter(kind);
        let result = operation();
        self.leave(kind, true);
        result
    }

    /// A name that no block of the kernel's headers has counts as a block, but
    /// not by its name.
    fn block(&self, name: &str) {
        let counters = uapi::ALL.iter().zip(&self.blocks);
        if let Some((_, counter)) = counters.into_iter().find(|(block, _)| block.name == name) {
            counter.fetch_add(1, Relaxed);
        }
    }
}

/// What [`Counters`] had counted at one moment, or between two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    kinds: [u64; KINDS],
    /// In the order of [`uapi::ALL`].
    blocks: [u64; BLOCKS],
    system_calls: u64,
}

impl Counts {
    /// What was counted after `earlier`, a snapshot of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut difference = *self;
        for (count, before) in difference.kinds.iter_mut().zip(&earlier.kinds) {
            *count = count.saturating_sub(*before);
        }
        for (count, before) in difference.blocks.iter_mut().zip(&earlier.blocks) {
            *count = count.saturating_sub(*before);
        }
        difference.system_calls = self.system_calls.saturating_sub(earlier.system_calls);
        difference
    }

    /// Operations of this kind, failed ones included.
    #[must_use]
    pub fn of(&self, kind: OperationKind) -> u64 {
        self.kinds.get(kind as usize).copied().unwrap_or(0)
    }

    /// Blocks of this name executed, failed ones and repetitions included.
    #[must_use]
    pub fn executed(&self, name: &str) -> u64 {
        self.blocks().find(|(block, _)| *block == name).map_or(0, |(_, count)| count)
    }

    /// Blocks executed, of whatever name.
    #[must_use]
    pub fn ioctls(&self) -> u64 {
        self.of(OperationKind::Execute)
    }

    /// Devices opened, failed attempts included.
    #[must_use]
    pub fn opens(&self) -> u64 {
        let kinds = OperationKind::ALL.iter().filter(|kind| kind.is_open());
        kinds.fold(0, |sum: u64, &kind| sum.saturating_add(self.of(kind)))
    }

    /// The system calls of all operations, see [`OperationKind::system_calls`].
    #[must_use]
    pub fn system_calls(&self) -> u64 {
        self.system_calls
    }

    /// Names and numbers of the blocks executed, in the order of [`uapi::ALL`].
    pub fn blocks(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let all = uapi::ALL.iter().map(|block| block.name).zip(self.blocks);
        all.filter(|(_, count)| *count != 0)
    }
}

/// `5 system calls: open-kfd 1, ioctl 4 (GET_VERSION 1, CREATE_EVENT 3)`.
/// Operations that cost no system call are shown by `{:#}` only.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.system_calls == 1 { "" } else { "s" };
        write!(f, "{} system call{plural}", self.system_calls)?;
        let mut separator = ": ";
        for &kind in OperationKind::ALL {
            let count = self.of(kind);
            if count == 0 || (kind.system_calls(true) == 0 && !f.alternate()) {
                continue;
            }
            write!(f, "{separator}{kind} {count}")?;
            separator = ", ";
            if kind == OperationKind::Execute {
                let mut before = " (";
                for (name, count) in self.blocks() {
                    write!(f, "{before}{name} {count}")?;
                    before = ", ";
                }
                if before != " (" {
                    f.write_str(")")?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

/// Counts what passes it into [`Counters`].
///
/// It wraps an `Os`, a `Driver`, or both at once (then it is a `Platform`). `C`
/// is a reference to the counters or an `Arc` of them, so halves that are
/// wrapped apart can still share one set.
#[derive(Debug, Clone, Copy)]
pub struct Counted<T, C> {
    inner: T,
    counters: C,
}

impl<T, C: Deref<Target = Counters>> Counted<T, C> {
    /// Counts what passes to `inner`.
    pub const fn new(inner: T, counters: C) -> Self {
        Counted { inner, counters }
    }

    /// What is wrapped.
    pub const fn inner(&self) -> &T {
        &self.inner
    }
}

platform_of_itself!([T, C] Counted<T, C>);

impl<T: Os, C: Deref<Target = Counters>> Os for Counted<T, C> {
    fn page_size(&self) -> usize {
        self.counters.infallible(OperationKind::PageSize, || self.inner.page_size())
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        self.counters.fallible(OperationKind::Map, || self.inner.map(mapping))
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        self.counters.fallible(OperationKind::Unmap, || self.inner.unmap(address, length))
    }

    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        self.counters
            .fallible(OperationKind::Protect, || self.inner.protect(address, length, allow))
    }

    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        self.counters.fallible(OperationKind::Advise, || self.inner.advise(address, length, advice))
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        self.counters
            .fallible(OperationKind::Bind, || self.inner.bind(address, length, policy, nodes))
    }

    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        self.counters
            .fallible(OperationKind::ReadFile, || self.inner.read_file(path, into, limit, end))
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        self.counters.fallible(OperationKind::ListFolder, || self.inner.list_folder(path, visit))
    }

    fn now(&self, clock: Clock) -> u64 {
        self.counters.infallible(OperationKind::Now, || self.inner.now(clock))
    }

    fn sleep(&self, ns: u64) {
        self.counters.infallible(OperationKind::Sleep, || self.inner.sleep(ns));
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        self.counters
            .fallible(OperationKind::FutexWait, || self.inner.futex_wait(word, expected, timeout))
    }

    fn futex_wake(&self, word: &AtomicU32, count: u32) {
        self.counters.infallible(OperationKind::FutexWake, || self.inner.futex_wake(word, count));
    }

    fn thread_id(&self) -> u32 {
        self.counters.infallible(OperationKind::ThreadId, || self.inner.thread_id())
    }

    fn process_id(&self) -> u32 {
        self.counters.infallible(OperationKind::ProcessId, || self.inner.process_id())
    }

    fn fork_word(&self) -> &AtomicU32 {
        self.counters.infallible(OperationKind::ForkWord, || self.inner.fork_word())
    }

    fn wmb_device(&self) {
        self.counters.infallible(OperationKind::WmbDevice, || self.inner.wmb_device());
    }

    fn rmb_device(&self) {
        self.counters.infallible(OperationKind::RmbDevice, || self.inner.rmb_device());
    }

    fn flush_wc(&self) {
        self.counters.infallible(OperationKind::FlushWc, || self.inner.flush_wc());
    }
}

/// Counts the closing of a device.
#[derive(Debug, Clone, Copy)]
pub struct CountClose<C>(C);

impl<C: Deref<Target = Counters>> CloseObserver for CountClose<C> {
    fn observe_close(&self, _: DeviceToken, close: impl FnOnce()) {
        self.0.infallible(OperationKind::Close, close);
    }
}

impl<T: Driver, C: Deref<Target = Counters> + Clone> Counted<T, C> {
    fn observed(&self, device: T::Device) -> ObservedDevice<T::Device, CountClose<C>> {
        let token = self.inner.token(&device);
        ObservedDevice::new(device, token, CountClose(self.counters.clone()))
    }
}

impl<T: Driver, C: Deref<Target = Counters> + Clone> Driver for Counted<T, C> {
    type Device = ObservedDevice<T::Device, CountClose<C>>;

    fn open(&self, node: DeviceNode) -> Result<Self::Device, Errno> {
        let device = self.counters.fallible(OperationKind::open(node), || self.inner.open(node))?;
        Ok(self.observed(device))
    }

    fn memory_file(&self, size: u64) -> Result<Self::Device, Errno> {
        let make = || self.inner.memory_file(size);
        let file = self.counters.fallible(OperationKind::MemoryFile, make)?;
        Ok(self.observed(file))
    }

    fn execute(&self, device: &Self::Device, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        let device = device.get().ok_or(Errno::EBADF)?;
        self.counters.block(call.name);
        self.counters.fallible(OperationKind::Execute, || self.inner.execute(device, call))
    }

    fn map(&self, device: &Self::Device, mapping: MapDevice) -> Result<usize, Errno> {
        let device = device.get().ok_or(Errno::EBADF)?;
        self.counters.fallible(OperationKind::MapDevice, || self.inner.map(device, mapping))
    }

    fn token(&self, device: &Self::Device) -> DeviceToken {
        self.counters.infallible(OperationKind::Token, || device.token())
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        let close = || self.inner.close_inherited(node, token);
        self.counters.infallible(OperationKind::CloseInherited, close);
    }

    fn adopt(&self, token: DeviceToken) -> Self::Device {
        let device = self.counters.infallible(OperationKind::Adopt, || self.inner.adopt(token));
        self.observed(device)
    }

    fn release(&self, device: Self::Device) -> DeviceToken {
        let token = device.token();
        self.counters.infallible(OperationKind::Release, || match device.into_inner() {
            Some(device) => self.inner.release(device),
            None => token,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, assert_transparent, execute_version, exercise, open_kfd};
    use super::super::{DeviceNode, Driver, Os, Pair, Platform};
    use super::{Counted, Counters, OperationKind};
    use crate::errno::Errno;
    use crate::uapi;

    use alloc::string::ToString;
    use alloc::sync::Arc;

    #[test]
    fn hands_everything_on() {
        assert_transparent(|fake| Counted::new(fake, Arc::new(Counters::new())));
    }

    #[test]
    fn each_operation_is_counted_once_under_its_own_kind() {
        let fake = Fake::new();
        let counters = Counters::new();
        let counted = Counted::new(&fake, &counters);
        exercise(&counted, &counted);
        let counts = counters.snapshot();
        for &kind in OperationKind::ALL {
            let expected = match kind {
                OperationKind::Execute => 2,
                OperationKind::Close => 4,
                _ => 1,
            };
            assert_eq!(counts.of(kind), expected, "{kind}");
        }
        assert_eq!(counts.opens(), 3);
        assert_eq!((counts.executed("GET_VERSION"), counts.executed("ARRAYS_LIKE")), (1, 0));
    }

    #[test]
    fn a_difference_tells_the_cost_of_what_lies_between() {
        let fake = Fake::new();
        let counters = Counters::new();
        let platform = Counted::new(Pair { os: &fake, driver: &fake }, &counters);
        let device = open_kfd(platform.driver());
        let _ = execute_version(platform.driver(), &device);

        let before = counters.snapshot();
        for _ in 0..4 {
            let _ = execute_version(platform.driver(), &device);
        }
        let cost = counters.snapshot().since(&before);
        assert_eq!((cost.ioctls(), cost.system_calls()), (4, 4), "{cost}");
        assert_eq!(cost.to_string(), "4 system calls: ioctl 4 (GET_VERSION 4)");

        let before = counters.snapshot();
        platform.os().wmb_device();
        let cost = counters.snapshot().since(&before);
        assert_eq!(cost.to_string(), "0 system calls");
        assert_eq!(alloc::format!("{cost:#}"), "0 system calls: wmb_device 1");
    }

    #[test]
    fn a_file_costs_three_calls_and_one_if_it_cannot_be_opened() {
        let fake = Fake::new();
        let counters = Counters::new();
        let counted = Counted::new(&fake, &counters);
        let mut into = alloc::vec::Vec::new();
        let end = super::EndOfFile::ShortRead;
        assert_eq!(counted.read_file(c"/f", &mut into, 64, end), Ok(()));
        assert_eq!(counters.snapshot().system_calls(), 3);
        fake.answer(Err(Errno::ENOENT));
        assert_eq!(counted.read_file(c"/f", &mut into, 64, end), Err(Errno::ENOENT));
        assert_eq!(counters.snapshot().system_calls(), 4);
    }

    #[test]
    fn a_close_counts_and_a_release_does_not_close() {
        let fake = Fake::new();
        let counters = Arc::new(Counters::new());
        let counted = Counted::new(&fake, Arc::clone(&counters));
        let closed = counted.open(DeviceNode::Kfd).unwrap();
        let released = counted.open(DeviceNode::Render(128)).unwrap();
        drop(closed);
        assert_eq!(counters.snapshot().of(OperationKind::Close), 1);
        let token = counted.release(released);
        assert_eq!(counters.snapshot().of(OperationKind::Close), 1);
        assert_eq!(counters.snapshot().system_calls(), 3);
        drop(counted.adopt(token));
        assert_eq!(counters.snapshot().of(OperationKind::Close), 2);
    }

    #[test]
    fn failed_openings_count() {
        let fake = Fake::new();
        let counters = Counters::new();
        let counted = Counted::new(&fake, &counters);
        fake.answer(Err(Errno::EACCES));
        assert!(matches!(counted.open(DeviceNode::Udmabuf), Err(Errno::EACCES)));
        assert_eq!(counters.snapshot().of(OperationKind::OpenUdmabuf), 1);
        assert_eq!(counters.snapshot().of(OperationKind::Close), 0);
    }

    #[test]
    fn halves_wrapped_apart_share_counters() {
        let fake = Fake::new();
        let counters = Counters::new();
        let pair =
            Pair { os: Counted::new(&fake, &counters), driver: Counted::new(&fake, &counters) };
        pair.os().wmb_device();
        let _device = open_kfd(pair.driver());
        let counts = counters.snapshot();
        assert_eq!(counts.of(OperationKind::WmbDevice), 1);
        assert_eq!(counts.of(OperationKind::OpenKfd), 1);
    }

    #[test]
    fn blocks_are_told_apart_by_name() {
        let counters = Counters::new();
        for block in uapi::ALL {
            counters.block(block.name);
        }
        let counts = counters.snapshot();
        for block in uapi::ALL {
            // Two forms of one request share a name.
            let forms = uapi::ALL.iter().filter(|other| other.name == block.name).count();
            assert_eq!(counts.executed(block.name), forms as u64, "{}", block.name);
        }
        assert_eq!(counts.executed("NO_SUCH_BLOCK"), 0);
    }
}
