//! Tracing what passes the seams, with decoded blocks.
//!
//! Each operation becomes one [`TraceEvent`] after it is done. Its number was
//! drawn before it began, from one sequence for both seams, so the numbers tell
//! the order in which operations started even when threads report out of turn.
//! `page_size`, `fork_word` and `token` have no effect, happen on every call,
//! and are not traced.
//!
//! Nothing here allocates; what the sink does is its own affair.

use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt;
use core::ops::{ControlFlow, Deref};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::Platform;
use super::device::{CloseObserver, ObservedDevice};
use super::driver::{Array, ArrayDirection, Call, DeviceNode, DeviceToken, Driver, MapDevice};
use super::forward::platform_of_itself;
use super::operation::OperationKind;
use super::os::{
    Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Placement, Protection, Wake,
};
use crate::errno::Errno;
use crate::uapi::{ArraySlot, Field, Request};

/// How much of a block is remembered from before the call, in bytes. No block
/// has fields beyond; only an inline tail (SVM attributes) reaches further.
const REMEMBERED: usize = 256;

/// A block in a trace, as it went and as it came back.
#[derive(Debug, Clone, Copy)]
pub struct TracedBlock<'e> {
    /// The block's name in the kernel's header, without its prefix.
    pub name: &'static str,
    /// The request number.
    pub request: Request,
    /// The block's fields.
    pub fields: &'static [Field],
    /// The pointer fields of the arrays.
    pub slots: &'static [ArraySlot],
    /// The bytes before the call, at most the first 256.
    pub before: &'e [u8],
    /// The bytes after the call, all of them.
    pub after: &'e [u8],
    /// The arrays after the call, in the order of `slots`.
    pub arrays: &'e [Array<'e>],
}

impl TracedBlock<'_> {
    /// How many bytes follow the last field: an inline tail.
    #[must_use]
    pub fn tail(&self) -> usize {
        let ends = self.fields.iter().map(|field| field.offset.saturating_add(field.size));
        self.after.len().saturating_sub(ends.max().unwrap_or(0))
    }
}

/// `MAP_MEMORY_TO_GPU { handle: 0x7, device_ids_array_ptr: in 4 bytes,
/// n_devices: 0x1, n_success: 0x0 -> 0x1 }`; a field that the driver did not
/// change shows one value, a pointer field shows its array.
impl fmt::Display for TracedBlock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {{", self.name)?;
        let mut separator = " ";
        for field in self.fields {
            write!(f, "{separator}{}: ", field.name)?;
            separator = ", ";
            let slot = self.slots.iter().position(|slot| slot.pointer_at == field.offset);
            if let Some(array) = slot.and_then(|slot| self.arrays.get(slot)) {
                write_array(f, array)?;
                continue;
            }
            let end = field.offset.saturating_add(field.size);
            let before = self.before.get(field.offset..end);
            if before.is_some() && before != self.after.get(field.offset..end) {
                write!(f, "{} -> ", field.display(self.before))?;
            }
            write!(f, "{}", field.display(self.after))?;
        }
        match self.tail() {
            0 => f.write_str(" }"),
            bytes => write!(f, "{separator}tail: {bytes} bytes }}"),
        }
    }
}

fn write_array(f: &mut fmt::Formatter<'_>, array: &Array<'_>) -> fmt::Result {
    if matches!(array, Array::Absent) {
        return f.write_str("absent");
    }
    let direction = match array.direction() {
        ArrayDirection::In => "in",
        ArrayDirection::Out => "out",
        ArrayDirection::InOut => "in/out",
    };
    write!(f, "{direction} {} bytes", array.bytes().len())
}

/// What was asked of a seam.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Operation<'e> {
    /// [`Os::map`].
    Map(Mapping),
    /// [`Os::unmap`].
    Unmap {
        /// The first byte.
        address: usize,
        /// Bytes.
        length: usize,
    },
    /// [`Os::protect`].
    Protect {
        /// The first byte.
        address: usize,
        /// Bytes.
        length: usize,
        /// What the CPU may do from now on.
        allow: Protection,
    },
    /// [`Os::advise`].
    Advise {
        /// The first byte.
        address: usize,
        /// Bytes.
        length: usize,
        /// The advice.
        advice: Advice,
    },
    /// [`Os::bind`].
    Bind {
        /// The first byte.
        address: usize,
        /// Bytes.
        length: usize,
        /// The policy.
        policy: MemoryPolicy,
        /// Bit n is NUMA node n.
        nodes: &'e [u64],
    },
    /// [`Os::read_file`].
    ReadFile {
        /// Which file.
        path: &'e CStr,
        /// At most so many bytes.
        limit: usize,
        /// How the end is recognised.
        end: EndOfFile,
    },
    /// [`Os::list_folder`].
    ListFolder {
        /// Which folder.
        path: &'e CStr,
    },
    /// [`Os::now`].
    Now(Clock),
    /// [`Os::sleep`].
    Sleep {
        /// Nanoseconds.
        ns: u64,
    },
    /// [`Os::futex_wait`].
    FutexWait {
        /// The word's address.
        word: usize,
        /// Sleeps while the word holds this.
        expected: u32,
        /// Nanoseconds.
        timeout: Option<u64>,
    },
    /// [`Os::futex_wake`].
    FutexWake {
        /// The word's address.
        word: usize,
        /// At most so many threads.
        count: u32,
    },
    /// [`Os::thread_id`].
    ThreadId,
    /// [`Os::process_id`].
    ProcessId,
    /// [`Os::wmb_device`].
    WmbDevice,
    /// [`Os::rmb_device`].
    RmbDevice,
    /// [`Os::flush_wc`].
    FlushWc,
    /// [`Driver::open`].
    Open(DeviceNode),
    /// [`Driver::memory_file`].
    MemoryFile {
        /// Bytes.
        size: u64,
    },
    /// [`Driver::execute`].
    Execute {
        /// The open device.
        device: DeviceToken,
        /// The block.
        block: TracedBlock<'e>,
    },
    /// [`Driver::map`].
    MapDevice {
        /// The open device.
        device: DeviceToken,
        /// What and where.
        mapping: MapDevice,
    },
    /// A [`Driver::Device`] dropped.
    Close(DeviceToken),
    /// [`Driver::close_inherited`].
    CloseInherited {
        /// What the number named when it was opened.
        node: DeviceNode,
        /// The number.
        device: DeviceToken,
    },
    /// [`Driver::adopt`].
    Adopt(DeviceToken),
    /// [`Driver::release`].
    Release(DeviceToken),
}

impl Operation<'_> {
    /// The kind of operation.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        match self {
            Operation::Map(_) => OperationKind::Map,
            Operation::Unmap { .. } => OperationKind::Unmap,
            Operation::Protect { .. } => OperationKind::Protect,
            Operation::Advise { .. } => OperationKind::Advise,
            Operation::Bind { .. } => OperationKind::Bind,
            Operation::ReadFile { .. } => OperationKind::ReadFile,
            Operation::ListFolder { .. } => OperationKind::ListFolder,
            Operation::Now(_) => OperationKind::Now,
            Operation::Sleep { .. } => OperationKind::Sleep,
            Operation::FutexWait { .. } => OperationKind::FutexWait,
            Operation::FutexWake { .. } => OperationKind::FutexWake,
            Operation::ThreadId => OperationKind::ThreadId,
            Operation::ProcessId => OperationKind::ProcessId,
            Operation::WmbDevice => OperationKind::WmbDevice,
            Operation::RmbDevice => OperationKind::RmbDevice,
            Operation::FlushWc => OperationKind::FlushWc,
            Operation::Open(node) => OperationKind::open(*node),
            Operation::MemoryFile { .. } => OperationKind::MemoryFile,
            Operation::Execute { .. } => OperationKind::Execute,
            Operation::MapDevice { .. } => OperationKind::MapDevice,
            Operation::Close(_) => OperationKind::Close,
            Operation::CloseInherited { .. } => OperationKind::CloseInherited,
            Operation::Adopt(_) => OperationKind::Adopt,
            Operation::Release(_) => OperationKind::Release,
        }
    }
}

struct Placed(Placement, usize);

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Placement::Anywhere => write!(f, "{:#x} bytes", self.1),
            Placement::Hint(at) => write!(f, "{:#x} bytes near {at:#x}", self.1),
            Placement::Free(at) => write!(f, "{:#x} bytes at free {at:#x}", self.1),
            Placement::Replace(at) => write!(f, "{:#x} bytes replacing {at:#x}", self.1),
        }
    }
}

struct Allowed(Protection);

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, letter) in
            [(Protection::READ, "r"), (Protection::WRITE, "w"), (Protection::EXECUTE, "x")]
        {
            f.write_str(if self.0.contains(flag) { letter } else { "-" })?;
        }
        Ok(())
    }
}

struct Path<'e>(&'e CStr);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.to_bytes().escape_ascii())
    }
}

impl fmt::Display for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().name())?;
        match *self {
            Operation::Map(mapping) => {
                let placed = Placed(mapping.placement, mapping.length);
                write!(f, " {placed} {}", Allowed(mapping.protection))?;
                f.write_str(if mapping.shared { " shared" } else { " private" })?;
                f.write_str(if mapping.reserve { "" } else { " unreserved" })
            }
            Operation::Unmap { address, length } => write!(f, " {length:#x} bytes at {address:#x}"),
            Operation::Protect { address, length, allow } => {
                write!(f, " {length:#x} bytes at {address:#x} {}", Allowed(allow))
            }
            Operation::Advise { address, length, advice } => {
                write!(f, " {length:#x} bytes at {address:#x} {advice:?}")
            }
            Operation::Bind { address, length, policy, nodes } => {
                write!(f, " {length:#x} bytes at {address:#x} {policy:?} {nodes:x?}")
            }
            Operation::ReadFile { path, limit, end } => {
                write!(f, " {} limit {limit} {end:?}", Path(path))
            }
            Operation::ListFolder { path } => write!(f, " {}", Path(path)),
            Operation::Now(clock) => write!(f, " {clock:?}"),
            Operation::Sleep { ns } => write!(f, " {ns} ns"),
            Operation::FutexWait { word, expected, timeout } => {
                write!(f, " {word:#x} while {expected:#x}")?;
                timeout.map_or(Ok(()), |ns| write!(f, " at most {ns} ns"))
            }
            Operation::FutexWake { word, count } => write!(f, " {word:#x} at most {count}"),
            Operation::ThreadId
            | Operation::ProcessId
            | Operation::WmbDevice
            | Operation::RmbDevice
            | Operation::FlushWc => Ok(()),
            Operation::Open(node) => write!(f, " {node}"),
            Operation::MemoryFile { size } => write!(f, " {size:#x} bytes"),
            Operation::Execute { device, ref block } => write!(f, " {} {block}", device.0),
            Operation::MapDevice { device, mapping } => {
                let placed = Placed(mapping.placement, mapping.length);
                let (allowed, offset) = (Allowed(mapping.protection), mapping.offset);
                write!(f, " {} {placed} {allowed} offset {offset:#x}", device.0)
            }
            Operation::CloseInherited { node, device } => write!(f, " {} {node}", device.0),
            Operation::Close(device) | Operation::Adopt(device) | Operation::Release(device) => {
                write!(f, " {}", device.0)
            }
        }
    }
}

/// What an operation that did not fail answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// Nothing but success.
    Done,
    /// The driver's answer to a block.
    Number(u32),
    /// The address of a mapping.
    Address(usize),
    /// So many bytes appended.
    Bytes(usize),
    /// So many names visited.
    Names(usize),
    /// The time, in nanoseconds.
    Time(u64),
    /// How a wait ended.
    Wake(Wake),
    /// The id of a thread or process.
    Id(u32),
    /// The device opened.
    Device(DeviceToken),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Done => f.write_str("done"),
            Answer::Number(number) | Answer::Id(number) => write!(f, "{number}"),
            Answer::Address(address) => write!(f, "{address:#x}"),
            Answer::Bytes(bytes) => write!(f, "{bytes} bytes"),
            Answer::Names(names) => write!(f, "{names} names"),
            Answer::Time(ns) => write!(f, "{ns} ns"),
            Answer::Wake(wake) => write!(f, "{wake:?}"),
            Answer::Device(device) => write!(f, "device {}", device.0),
        }
    }
}

/// One operation that passed a seam.
#[derive(Debug, Clone, Copy)]
pub struct TraceEvent<'e> {
    /// Its place in the sequence of both seams, from 1, by when it began.
    pub number: u64,
    /// The thread that asked, as the journal tells it.
    pub thread: u32,
    /// What was asked.
    pub operation: Operation<'e>,
    /// What was answered.
    pub outcome: Result<Answer, Errno>,
}

/// One line: `#12 [4711] ioctl 3 GET_VERSION { major_version: 0x0 -> 0x1, … } = 0`.
impl fmt::Display for TraceEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} [{}] {} = ", self.number, self.thread, self.operation)?;
        match self.outcome {
            Ok(answer) => write!(f, "{answer}"),
            Err(errno) => write!(f, "{errno}"),
        }
    }
}

/// Where the events of one or more [`Traced`] go, and their numbering.
///
/// `S` takes the events; it must not use the traced platform. `I` tells the
/// calling thread's id. It is a function of its own, not [`Os::thread_id`] of
/// the wrapped system, because a driver alone can be traced too, and because
/// tracing must not add to what a counter below it counts.
#[derive(Debug)]
pub struct Journal<S, I> {
    sink: S,
    thread: I,
    operations: AtomicU64,
}

impl<S: Fn(&TraceEvent<'_>), I: Fn() -> u32> Journal<S, I> {
    /// A journal that hands events to `sink`.
    pub const fn new(sink: S, thread: I) -> Self {
        Journal { sink, thread, operations: AtomicU64::new(0) }
    }

    /// How many operations have begun so far.
    pub fn operations(&self) -> u64 {
        self.operations.load(Relaxed)
    }

    fn begin(&self) -> u64 {
        self.operations.fetch_add(1, Relaxed).wrapping_add(1)
    }

    fn end(&self, number: u64, operation: Operation<'_>, outcome: Result<Answer, Errno>) {
        let thread = (self.thread)();
        (self.sink)(&TraceEvent { number, thread, operation, outcome });
    }

    fn fallible<R>(
        &self,
        operation: Operation<'_>,
        run: impl FnOnce() -> Result<R, Errno>,
        answer: impl FnOnce(&R) -> Answer,
    ) -> Result<R, Errno> {
        let number = self.begin();
        let result = run();
        self.end(number, operation, result.as_ref().map(answer).map_err(|errno| *errno));
        result
    }

    fn infallible<R>(
        &self,
        operation: Operation<'_>,
        run: impl FnOnce() -> R,
        answer: impl FnOnce(&R) -> Answer,
    ) -> R {
        let number = self.begin();
        let result = run();
        self.end(number, operation, Ok(answer(&result)));
        result
    }
}

fn done(_: &()) -> Answer {
    Answer::Done
}

/// Traces what passes it into a [`Journal`].
///
/// It wraps an `Os`, a `Driver`, or both at once (then it is a `Platform`). `J`
/// is a reference to the journal or an `Arc` of it, so halves that are wrapped
/// apart can still share one numbering.
#[derive(Debug, Clone, Copy)]
pub struct Traced<T, J> {
    inner: T,
    journal: J,
}

impl<T, J: Deref> Traced<T, J> {
    /// Traces what passes to `inner`.
    pub const fn new(inner: T, journal: J) -> Self {
        Traced { inner, journal }
    }

    /// What is wrapped.
    pub const fn inner(&self) -> &T {
        &self.inner
    }
}

platform_of_itself!([T, J] Traced<T, J>);

impl<T, J, S, I> Os for Traced<T, J>
where
    T: Os,
    J: Deref<Target = Journal<S, I>>,
    S: Fn(&TraceEvent<'_>),
    I: Fn() -> u32,
{
    fn page_size(&self) -> usize {
        self.inner.page_size()
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        self.journal.fallible(
            Operation::Map(mapping),
            || self.inner.map(mapping),
            |address| Answer::Address(*address),
        )
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        self.journal.fallible(
            Operation::Unmap { address, length },
            || self.inner.unmap(address, length),
            done,
        )
    }

    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        self.journal.fallible(
            Operation::Protect { address, length, allow },
            || self.inner.protect(address, length, allow),
            done,
        )
    }

    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        self.journal.fallible(
            Operation::Advise { address, length, advice },
            || self.inner.advise(address, length, advice),
            done,
        )
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        self.journal.fallible(
            Operation::Bind { address, length, policy, nodes },
            || self.inner.bind(address, length, policy, nodes),
            done,
        )
    }

    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        let length = into.len();
        self.journal
            .fallible(
                Operation::ReadFile { path, limit, end },
                || {
                    self.inner.read_file(path, into, limit, end)?;
                    Ok(into.len().saturating_sub(length))
                },
                |bytes| Answer::Bytes(*bytes),
            )
            .map(|_| ())
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        let mut names = 0_usize;
        self.journal
            .fallible(
                Operation::ListFolder { path },
                || {
                    self.inner.list_folder(path, &mut |name, kind| {
                        names = names.saturating_add(1);
                        visit(name, kind)
                    })?;
                    Ok(names)
                },
                |names| Answer::Names(*names),
            )
            .map(|_| ())
    }

    fn now(&self, clock: Clock) -> u64 {
        self.journal.infallible(
            Operation::Now(clock),
            || self.inner.now(clock),
            |ns| Answer::Time(*ns),
        )
    }

    fn sleep(&self, ns: u64) {
        self.journal.infallible(Operation::Sleep { ns }, || self.inner.sleep(ns), done);
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        self.journal.fallible(
            Operation::FutexWait { word: word.as_ptr().addr(), expected, timeout },
            || self.inner.futex_wait(word, expected, timeout),
            |wake| Answer::Wake(*wake),
        )
    }

    fn futex_wake(&self, word: &AtomicU32, count: u32) {
        self.journal.infallible(
            Operation::FutexWake { word: word.as_ptr().addr(), count },
            || self.inner.futex_wake(word, count),
            done,
        );
    }

    fn thread_id(&self) -> u32 {
        self.journal.infallible(
            Operation::ThreadId,
            || self.inner.thread_id(),
            |id| Answer::Id(*id),
        )
    }

    fn process_id(&self) -> u32 {
        self.journal.infallible(
            Operation::ProcessId,
            || self.inner.process_id(),
            |id| Answer::Id(*id),
        )
    }

    fn fork_word(&self) -> &AtomicU32 {
        self.inner.fork_word()
    }

    fn wmb_device(&self) {
        self.journal.infallible(Operation::WmbDevice, || self.inner.wmb_device(), done);
    }

    fn rmb_device(&self) {
        self.journal.infallible(Operation::RmbDevice, || self.inner.rmb_device(), done);
    }

    fn flush_wc(&self) {
        self.journal.infallible(Operation::FlushWc, || self.inner.flush_wc(), done);
    }
}

/// Traces the closing of a device.
#[derive(Debug, Clone, Copy)]
pub struct TraceClose<J>(J);

impl<J, S, I> CloseObserver for TraceClose<J>
where
    J: Deref<Target = Journal<S, I>>,
    S: Fn(&TraceEvent<'_>),
    I: Fn() -> u32,
{
    fn observe_close(&self, token: DeviceToken, close: impl FnOnce()) {
        self.0.infallible(Operation::Close(token), close, done);
    }
}

impl<T, J, S, I> Driver for Traced<T, J>
where
    T: Driver,
    J: Deref<Target = Journal<S, I>> + Clone,
    S: Fn(&TraceEvent<'_>),
    I: Fn() -> u32,
{
    type Device = ObservedDevice<T::Device, TraceClose<J>>;

    fn open(&self, node: DeviceNode) -> Result<Self::Device, Errno> {
        let (device, token) = self.journal.fallible(
            Operation::Open(node),
            || {
                let device = self.inner.open(node)?;
                let token = self.inner.token(&device);
                Ok((device, token))
            },
            |(_, token)| Answer::Device(*token),
        )?;
        Ok(ObservedDevice::new(device, token, TraceClose(self.journal.clone())))
    }

    fn memory_file(&self, size: u64) -> Result<Self::Device, Errno> {
        let (file, token) = self.journal.fallible(
            Operation::MemoryFile { size },
            || {
                let file = self.inner.memory_file(size)?;
                let token = self.inner.token(&file);
                Ok((file, token))
            },
            |(_, token)| Answer::Device(*token),
        )?;
        Ok(ObservedDevice::new(file, token, TraceClose(self.journal.clone())))
    }

    fn execute(&self, device: &Self::Device, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        let token = device.token();
        let device = device.get().ok_or(Errno::EBADF)?;
        let mut remembered = [0; REMEMBERED];
        let length = call.block.len().min(REMEMBERED);
        for (copy, byte) in remembered.iter_mut().zip(call.block.iter()) {
            *copy = *byte;
        }

        let number = self.journal.begin();
        let result = self.inner.execute(device, call);
        let block = TracedBlock {
            name: call.name,
            request: call.request,
            fields: call.fields,
            slots: call.slots,
            before: remembered.get(..length).unwrap_or(&[]),
            after: call.block,
            arrays: call.arrays,
        };
        let operation = Operation::Execute { device: token, block };
        self.journal.end(number, operation, result.map(Answer::Number));
        result
    }

    fn map(&self, device: &Self::Device, mapping: MapDevice) -> Result<usize, Errno> {
        let token = device.token();
        let device = device.get().ok_or(Errno::EBADF)?;
        self.journal.fallible(
            Operation::MapDevice { device: token, mapping },
            || self.inner.map(device, mapping),
            |address| Answer::Address(*address),
        )
    }

    fn token(&self, device: &Self::Device) -> DeviceToken {
        device.token()
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        self.journal.infallible(
            Operation::CloseInherited { node, device: token },
            || self.inner.close_inherited(node, token),
            done,
        );
    }

    fn adopt(&self, token: DeviceToken) -> Self::Device {
        let device = self.journal.infallible(
            Operation::Adopt(token),
            || self.inner.adopt(token),
            |_| Answer::Done,
        );
        ObservedDevice::new(device, token, TraceClose(self.journal.clone()))
    }

    fn release(&self, device: Self::Device) -> DeviceToken {
        let token = device.token();
        self.journal.infallible(
            Operation::Release(token),
            || match device.into_inner() {
                Some(device) => self.inner.release(device),
                None => token,
            },
            |_| Answer::Done,
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::super::fake::{
        ArraysLike, Fake, assert_transparent, call, execute, execute_version, exercise, open_kfd,
    };
    use super::super::{Array, DeviceNode, Driver, Os, Pair, Platform};
    use super::{Answer, Journal, Operation, TraceEvent, Traced, TracedBlock};
    use crate::errno::Errno;
    use crate::uapi::{Field, Request};

    use alloc::string::{String, ToString};
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use std::sync::Mutex;

    /// The lines of a journal.
    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Lines {
        fn journal(&self) -> Journal<impl Fn(&TraceEvent<'_>) + '_, fn() -> u32> {
            let write = |event: &TraceEvent<'_>| self.0.lock().unwrap().push(event.to_string());
            Journal::new(write, || 42)
        }

        fn take(&self) -> Vec<String> {
            core::mem::take(&mut *self.0.lock().unwrap())
        }
    }

    #[test]
    fn hands_everything_on() {
        assert_transparent(|fake| {
            let ignore = |_: &TraceEvent<'_>| ();
            Traced::new(fake, Arc::new(Journal::new(ignore, || 0)))
        });
    }

    #[test]
    fn each_operation_becomes_one_line_in_one_numbering() {
        let lines = Lines::default();
        let journal = lines.journal();
        let fake = Fake::new();
        let traced = Traced::new(&fake, &journal);
        exercise(&traced, &traced);
        let lines = lines.take();
        let expected = [
            "map 0x4000 bytes near 0x100000 rw- shared unreserved = 0x70000000",
            "unmap 0x2000 bytes at 0x1000 = done",
            "protect 0x2000 bytes at 0x1000 --x = done",
            "advise 0x2000 bytes at 0x1000 DontFork = done",
            "bind 0x2000 bytes at 0x1000 Bind [5, 6] = done",
            "read_file /some/file limit 99 EmptyRead = 7 bytes",
            "list_folder /some/folder = 2 names",
            "now Boot = 123456 ns",
            "sleep 77 ns = done",
            "futex_wait WORD while 0x1f at most 5 ns = TimedOut",
            "futex_wake WORD at most 2 = done",
            "thread_id = 4711",
            "process_id = 4700",
            "wmb_device = done",
            "rmb_device = done",
            "flush_wc = done",
            "open-kfd /dev/kfd = device 0",
            "open-render /dev/dri/renderD129 = device 1",
            "open-udmabuf /dev/udmabuf = device 2",
            "memory_file 0x5000 bytes = device 3",
            "ioctl 0 GET_VERSION { major_version: 0x0, minor_version: 0x0 -> 0x12000000 } = 0",
            "ioctl 1 ARRAYS_LIKE { input_ptr: in 3 bytes, output_ptr: out 5 bytes, \
             both_ptr: in/out 7 bytes, count: 0x3, done: 0x0 -> 0x12000000 } = 0",
            "map-device 1 0x8000 bytes replacing 0x200000 -w- offset 0x100000000 = 0x71000000",
            "close 3 = done",
            "close 0 = done",
            "release 2 = done",
            "adopt 2 = done",
            "close_inherited 77 /dev/kfd = done",
            "close 1 = done",
            "close 2 = done",
        ];
        for (index, (line, expected)) in lines.iter().zip(expected).enumerate() {
            let (found, expected) = match expected.split_once("WORD") {
                // Where the word lies differs from run to run.
                Some((head, tail)) => {
                    let number = alloc::format!("#{} [42] {head}", index + 1);
                    assert!(line.starts_with(&number), "{line}");
                    assert!(line.ends_with(tail), "{line}");
                    continue;
                }
                None => (line.as_str(), alloc::format!("#{} [42] {expected}", index + 1)),
            };
            assert_eq!(found, expected);
        }
        assert_eq!(lines.len(), expected.len());
        assert_eq!(journal.operations(), expected.len() as u64);
    }

    #[test]
    fn failures_show_the_errno_and_what_came_back() {
        let lines = Lines::default();
        let journal = lines.journal();
        let fake = Fake::new();
        let traced = Traced::new(&fake, &journal);
        let device = open_kfd(&traced);
        fake.answer(Err(Errno::ENOTTY));
        let _ = execute_version(&traced, &device);
        fake.answer(Err(Errno(524)));
        let _ = traced.unmap(0, 1);
        fake.answer(Err(Errno::EACCES));
        assert!(traced.open(DeviceNode::Render(128)).is_err());
        assert_eq!(
            lines.take(),
            [
                "#1 [42] open-kfd /dev/kfd = device 0",
                "#2 [42] ioctl 0 GET_VERSION { major_version: 0x0, \
                 minor_version: 0x0 -> 0x12000000 } = ENOTTY",
                "#3 [42] unmap 0x1 bytes at 0x0 = errno 524",
                "#4 [42] open-render /dev/dri/renderD128 = EACCES",
            ]
        );
    }

    #[test]
    fn absent_arrays_and_tails_are_shown() {
        let lines = Lines::default();
        let journal = lines.journal();
        let fake = Fake::new();
        let traced = Traced::new(&fake, &journal);
        let device = open_kfd(&traced);
        let mut arrays = [Array::Absent, Array::Out(&mut [])];
        let _ = execute(&traced, &device, &mut ArraysLike::default(), &mut arrays);

        let mut block = ArraysLike::default();
        let mut call = call(&mut block, &mut []);
        let mut bytes = [0; 32 + 1000];
        call.block = &mut bytes;
        let _ = traced.execute(&device, &mut call);

        let lines = lines.take();
        assert!(lines[1].contains("input_ptr: absent, output_ptr: out 0 bytes, both_ptr: 0x0"));
        assert!(lines[2].ends_with("done: 0x0, tail: 1000 bytes } = 0"), "{}", lines[2]);
    }

    #[test]
    fn a_field_beyond_what_is_remembered_shows_what_came_back() {
        let block = TracedBlock {
            name: "LONG",
            request: Request(0),
            fields: &[Field { name: "late", offset: 256, size: 4 }],
            slots: &[],
            before: &[0; 256],
            after: &[1; 260],
            arrays: &[],
        };
        assert_eq!(block.to_string(), "LONG { late: 0x1010101 }");
    }

    #[test]
    fn an_event_is_decoded_for_the_sink() {
        let seen = Mutex::new(Vec::new());
        let sink = |event: &TraceEvent<'_>| {
            let Operation::Execute { block, .. } = event.operation else { return };
            let minor = block.fields[1];
            seen.lock().unwrap().push((
                block.name,
                minor.number(block.before),
                minor.number(block.after),
                event.outcome,
            ));
        };
        let sink: &dyn Fn(&TraceEvent<'_>) = &sink;
        let journal = Journal::new(sink, || 1);
        let traced = Traced::new(Fake::new(), &journal);
        let _ = execute_version(&traced, &open_kfd(&traced));
        let expected = ("GET_VERSION", Some(0), Some(0x1200_0000), Ok(Answer::Number(0)));
        assert_eq!(*seen.lock().unwrap(), [expected]);
    }

    #[test]
    fn halves_wrapped_apart_share_one_numbering() {
        let lines = Lines::default();
        let journal = lines.journal();
        let fake = Fake::new();
        let pair = Pair { os: Traced::new(&fake, &journal), driver: Traced::new(&fake, &journal) };
        pair.os().wmb_device();
        let device = open_kfd(pair.driver());
        pair.os().rmb_device();
        drop(device);
        assert_eq!(
            lines.take(),
            [
                "#1 [42] wmb_device = done",
                "#2 [42] open-kfd /dev/kfd = device 0",
                "#3 [42] rmb_device = done",
                "#4 [42] close 0 = done",
            ]
        );
    }

    #[test]
    fn numbers_tell_what_began_first() {
        let lines = Lines::default();
        let journal = lines.journal();
        let fake = Fake::new();
        let traced = Traced::new(&fake, &journal);
        let _ = traced.list_folder(c"/f", &mut |_, _| {
            traced.rmb_device();
            core::ops::ControlFlow::Break(())
        });
        let expected = ["#2 [42] rmb_device = done", "#1 [42] list_folder /f = 1 names"];
        assert_eq!(lines.take(), expected);
    }

    #[test]
    fn paths_cannot_break_the_line() {
        let lines = Lines::default();
        let journal = lines.journal();
        let traced = Traced::new(Fake::new(), &journal);
        let _ = traced.list_folder(c"/a\nb\xff", &mut |_, _| core::ops::ControlFlow::Break(()));
        assert_eq!(lines.take(), [r"#1 [42] list_folder /a\nb\xff = 1 names"]);
    }
}
