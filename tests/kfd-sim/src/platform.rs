//! The seams, implemented by the machine: [`SimPlatform`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU32, Ordering};

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{
    Advice, Call, Clock, DeviceNode, DeviceToken, Driver, EndOfFile, FileKind, MapDevice, Mapping,
    MemoryPolicy, Os, Placement, Platform, Protection, Wake,
};
use spin::Mutex;

use crate::address_space::{Mapped, Shown};
use crate::device;
use crate::kfd::Waiting;
use crate::log::{Execution, Operation};
use crate::machine::Machine;
use crate::process::{Pid, Process};
use crate::sysfs;
use crate::udmabuf;
use crate::violation::Rule;

/// The platform of one process: what the library under test is given.
///
/// Memory, clocks, threads and files outside `/sys`, `/proc` and `/dev` are the
/// host's; devices, their files and the process id are the machine's.
pub struct SimPlatform<H> {
    host: H,
    seat: Arc<Seat>,
}

/// Who acts through the platform, its devices included. It is another process
/// between `enter_…` and `leave_child`.
struct Seat {
    machine: Machine,
    pid: AtomicU32,
    /// Zero in a forked child.
    fork_word: AtomicU32,
    /// The parents, with their fork words.
    parents: Mutex<Vec<(Pid, u32)>>,
}

impl Seat {
    fn pid(&self) -> Pid {
        Pid(self.pid.load(Ordering::Relaxed))
    }

    fn close(&self, descriptor: u32) {
        let pid = self.pid();
        let mut state = self.machine.lock();
        let removed = state
            .processes
            .get_mut(&pid)
            .and_then(|process| process.descriptors.remove(descriptor));
        let result = if let Some(removed) = removed {
            state.lost_descriptor(removed.file);
            Ok(0_u32)
        } else {
            let detail = format!("close of descriptor {descriptor}");
            state.violation(pid, Rule::DescriptorNotOpen, detail);
            Err(Errno::EBADF)
        };
        state.record(pid, result, || Operation::Close(descriptor));
        drop(state);
        self.machine.discard_host_memory();
    }
}

/// An open device. Dropping it closes its descriptor in the process that the
/// platform then stands for.
pub struct SimDevice {
    seat: Arc<Seat>,
    descriptor: u32,
    owned: bool,
}

impl fmt::Debug for SimDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimDevice").field(&self.descriptor).finish()
    }
}

impl Drop for SimDevice {
    fn drop(&mut self) {
        if self.owned {
            self.seat.close(self.descriptor);
        }
    }
}

impl<H: fmt::Debug> fmt::Debug for SimPlatform<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimPlatform")
            .field("pid", &self.seat.pid())
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// The same process.
impl<H: Clone> Clone for SimPlatform<H> {
    fn clone(&self) -> SimPlatform<H> {
        SimPlatform { host: self.host.clone(), seat: self.seat.clone() }
    }
}

impl<H: Os> SimPlatform<H> {
    pub(crate) fn new(machine: Machine, pid: Pid, host: H) -> SimPlatform<H> {
        let seat = Seat {
            machine,
            pid: AtomicU32::new(pid.0),
            fork_word: AtomicU32::new(0),
            parents: Mutex::new(Vec::new()),
        };
        SimPlatform { host, seat: Arc::new(seat) }
    }

    /// The host below.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.seat.machine
    }

    /// The process that the platform stands for now.
    #[must_use]
    pub fn process(&self) -> Process {
        Process::new(self.seat.machine.clone(), self.seat.pid())
    }

    /// fork(2), or clone(2) without CLONE_VM: the platform of the child, whose
    /// fork word is zero.
    #[must_use]
    pub fn fork(&self) -> SimPlatform<H>
    where
        H: Clone,
    {
        let child = self.seat.machine.lock().fork(self.seat.pid(), false);
        let pid = child.unwrap_or(self.seat.pid());
        SimPlatform::new(self.seat.machine.clone(), pid, self.host.clone())
    }

    /// Goes on as a forked child with the same library object: the fork word is
    /// zero, the process id another, the descriptors are copies. What the child
    /// unmaps of its copy of the memory stays in the host, where the parent
    /// needs it.
    pub fn enter_fork_child(&self) -> Process {
        let child = self.seat.machine.lock().fork(self.seat.pid(), true);
        self.enter(child, Some(0))
    }

    /// Goes on as a vforked child, which shares the memory and so the fork word.
    /// clone(2) with CLONE_VM and without CLONE_THREAD is the same.
    pub fn enter_vfork_child(&self) -> Process {
        let child = self.seat.machine.lock().vfork(self.seat.pid());
        self.enter(child, None)
    }

    fn enter(&self, child: Option<Pid>, fork_word: Option<u32>) -> Process {
        if let Some(child) = child {
            let word = self.seat.fork_word.load(Ordering::Relaxed);
            self.seat.parents.lock().push((self.seat.pid(), word));
            self.seat.pid.store(child.0, Ordering::Relaxed);
            if let Some(word) = fork_word {
                self.seat.fork_word.store(word, Ordering::Relaxed);
            }
        }
        self.process()
    }

    /// Ends the child and goes on as the parent, with its fork word as it was.
    ///
    /// After a vfork the word is shared: what the child wrote to it stays.
    ///
    /// # Panics
    /// When no child was entered.
    #[track_caller]
    pub fn leave_child(&self) {
        let child = self.seat.pid();
        let Some((parent, word)) = self.seat.parents.lock().pop() else {
            panic!("leave_child without a child");
        };
        let (gone, shared) = {
            let mut state = self.seat.machine.lock();
            let space = |pid| state.processes.get(&pid).map(|process| process.space);
            let shared = space(child) == space(parent);
            (state.exit(child), shared)
        };
        self.unmap_from_host(gone);
        self.seat.pid.store(parent.0, Ordering::Relaxed);
        if !shared {
            self.seat.fork_word.store(word, Ordering::Relaxed);
        }
    }

    /// execve(2): another program in the same process. The library's object is
    /// gone in reality; what remains are descriptors without close-on-exec.
    pub fn exec(&self) {
        let gone = self.seat.machine.lock().exec(self.seat.pid());
        self.unmap_from_host(gone);
        self.seat.fork_word.store(0, Ordering::Relaxed);
    }

    fn unmap_from_host(&self, ranges: Vec<(usize, Mapped)>) {
        for (address, mapped) in ranges.into_iter().filter(|(_, mapped)| !mapped.borrowed) {
            // The range was mapped by the host and is now nobody's.
            let _ = self.host.unmap(address, mapped.length);
        }
    }

    /// Lets the host show what of a device's memory nobody could look at so far.
    fn fill_in(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        if allow.is_empty() {
            return Ok(());
        }
        let pid = self.seat.pid();
        let blanks = match self.seat.machine.lock().space_of(pid) {
            Some(space) => space.take_blanks(address, length),
            None => return Ok(()),
        };
        for (at, mapped) in blanks {
            let Some(memory) = mapped.shown.memory() else { continue };
            if let Some((host, start)) = self.machine().contents(memory)? {
                host.show(
                    start + mapped.offset as usize,
                    Mapping {
                        placement: Placement::Replace(at),
                        length: mapped.length,
                        protection: mapped.protection,
                        reserve: true,
                        shared: true,
                    },
                )?;
            }
        }
        Ok(())
    }

    fn check_limit(&self, length: usize) -> Result<(), Errno> {
        match self.seat.machine.lock().space_of(self.seat.pid()) {
            Some(space) => space.check_limit(length),
            None => Err(Errno::ESRCH),
        }
    }

    /// Reads a file of the machine; `None` for one of the host.
    fn read_owned(
        &self,
        path: &str,
        into: &mut Vec<u8>,
        limit: usize,
    ) -> Option<Result<(), Errno>> {
        let pid = self.seat.pid();
        let mut state = self.seat.machine.lock();
        state.count_open(path);
        let result = sysfs::read(&mut state, pid, path)?.and_then(|bytes| {
            if bytes.len() > limit {
                return Err(Errno::EFBIG);
            }
            into.try_reserve(bytes.len()).map_err(|_| Errno::ENOMEM)?;
            into.extend_from_slice(&bytes);
            Ok(bytes.len() as u64)
        });
        state.record(pid, result, || Operation::ReadFile(path.to_string()));
        Some(result.map(|_| ()))
    }

    /// Lists a folder of the machine; `None` for one of the host.
    fn list_owned(&self, path: &str) -> Option<Result<Vec<(String, FileKind)>, Errno>> {
        let pid = self.seat.pid();
        let mut state = self.seat.machine.lock();
        state.count_open(path);
        let result = sysfs::list(&state, pid, path)?;
        let count = result.as_ref().map(|names| names.len() as u64).map_err(|errno| *errno);
        state.record(pid, count, || Operation::ListFolder(path.to_string()));
        Some(result)
    }

    /// Executes a request as [`Driver::execute`] does, but for sleeping: where `wait` is
    /// set afterwards the caller sleeps in it and comes back with it.
    ///
    /// # Errors
    /// The driver's; nothing in particular while `wait` is set.
    pub fn advance(
        &self,
        device: &SimDevice,
        call: &mut Call<'_, '_>,
        wait: &mut Option<Wait>,
    ) -> Result<u32, Errno> {
        let pid = self.seat.pid();
        let descriptor = device.descriptor;
        // No engine is at a queue while it changes or ends.
        let queues = matches!(call.request.number(), DESTROY_QUEUE | UPDATE_QUEUE);
        let _engines = queues.then(|| self.machine().engines.lock());
        let mut state = self.seat.machine.lock();
        let sent = if state.log.keep { call.block.to_vec() } else { Vec::new() };
        let clock = |clock| self.host.now(clock);
        let node = state.file(pid, descriptor).and_then(|(_, file)| file.node());
        state.waiting = wait.take().map(|wait| wait.waiting);
        let before = state.woken.load(Ordering::Acquire);
        let result = device::execute(&mut state, pid, descriptor, call, &clock);
        let woken = state.woken.load(Ordering::Acquire);
        // No request ends a file or an object.
        state.collect_memory();
        if let Some(waiting) = state.waiting.take() {
            *wait = Some(Wait { waiting, word: state.woken.clone(), seen: woken });
            return result;
        }
        let word = state.woken.clone();
        state.record(pid, result, || {
            Operation::Execute(Execution {
                descriptor,
                node,
                request: call.request,
                name: call.name,
                fields: call.fields,
                sent,
                returned: call.block.to_vec(),
            })
        });
        let writes = !state.writes.is_empty();
        drop(state);
        if writes {
            self.machine().write_pending();
        }
        self.machine().discard_host_memory();
        if woken != before {
            self.host.futex_wake(&word, u32::MAX);
        }
        result
    }

    /// Lets the engines go on with the queues of this process; how many packets they
    /// executed.
    pub fn run_engines(&self) -> u64 {
        if !self.machine().has_queues() {
            return 0;
        }
        let woken = self.machine().lock().woken.clone();
        let before = woken.load(Ordering::Acquire);
        let now = self.host.now(Clock::MonotonicRaw);
        let executed = self.machine().run_engines_of(Some(self.seat.pid()), now);
        if woken.load(Ordering::Acquire) != before {
            self.host.futex_wake(&woken, u32::MAX);
        }
        executed
    }

    fn record(&self, result: Result<u64, Errno>, operation: impl FnOnce() -> Operation) {
        self.seat.machine.lock().record(self.seat.pid(), result, operation);
    }
}

impl<H: Os> Platform for SimPlatform<H> {
    type Os = SimPlatform<H>;
    type Driver = SimPlatform<H>;

    fn os(&self) -> &SimPlatform<H> {
        self
    }

    fn driver(&self) -> &SimPlatform<H> {
        self
    }
}

/// The numbers of the requests that end or change a queue.
const DESTROY_QUEUE: u8 = 0x03;
const UPDATE_QUEUE: u8 = 0x07;

/// A request that waits for an event, while it sleeps.
#[derive(Debug)]
pub struct Wait {
    waiting: Waiting,
    word: Arc<AtomicU32>,
    seen: u32,
}

/// How long a wait sleeps at most before it looks again, in ns: a GPU that sets an
/// event, and a test that does, have no thread of the host to wake others with.
const NAP: u64 = 5_000_000;

impl Wait {
    /// Sleeps until something may have happened, on the host's clock.
    pub fn sleep(&self, host: &impl Os) {
        let left = self.waiting.left(host.now(Clock::Monotonic)).unwrap_or(NAP);
        let _ = host.futex_wait(&self.word, self.seen, Some(left.min(NAP)));
    }
}

fn done(result: Result<(), Errno>) -> Result<u64, Errno> {
    result.map(|()| 0)
}

impl<H: Os> Os for SimPlatform<H> {
    fn page_size(&self) -> usize {
        self.host.page_size()
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        let result = self.check_limit(mapping.length).and_then(|()| self.host.map(mapping));
        let pid = self.seat.pid();
        let mut state = self.seat.machine.lock();
        if let Ok(address) = result {
            let mapped = Mapped {
                length: mapping.length,
                shown: Shown::Anonymous,
                offset: 0,
                blank: false,
                protection: mapping.protection,
                shared: mapping.shared,
                huge: None,
                dont_fork: false,
                borrowed: false,
            };
            let over = matches!(mapping.placement, Placement::Replace(_));
            state.put_mapping(pid, address, mapped, over);
        }
        state.record(pid, result.map(|address| address as u64), || Operation::Map(mapping));
        result
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        let pid = self.seat.pid();
        let in_place_child = !self.seat.parents.lock().is_empty();
        let borrowed: Vec<_> = {
            let mut state = self.seat.machine.lock();
            state.remove_mapping(pid, address, length)
        };
        let result = if in_place_child && borrowed.iter().any(|(_, mapped)| mapped.borrowed) {
            self.unmap_from_host(borrowed);
            Ok(())
        } else {
            self.host.unmap(address, length)
        };
        self.record(done(result), || Operation::Unmap { address, length });
        self.machine().registers_unmapped(address, length);
        self.machine().discard_host_memory();
        result
    }

    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        let result = self
            .fill_in(address, length, allow)
            .and_then(|()| self.host.protect(address, length, allow));
        let pid = self.seat.pid();
        let mut state = self.seat.machine.lock();
        if result.is_ok() {
            state.protect_mapping(pid, address, length, allow);
        }
        state.record(pid, done(result), || Operation::Protect { address, length, allow });
        result
    }

    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        let result = self.host.advise(address, length, advice);
        let pid = self.seat.pid();
        let mut state = self.seat.machine.lock();
        if result.is_ok() {
            state.advise_mapping(pid, address, length, advice);
        }
        state.record(pid, done(result), || Operation::Advise { address, length, advice });
        result
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        let result = self.host.bind(address, length, policy, nodes);
        self.record(done(result), || Operation::Bind {
            address,
            length,
            policy,
            nodes: nodes.to_vec(),
        });
        result
    }

    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        let text = path.to_string_lossy();
        if let Some(result) = self.read_owned(&text, into, limit) {
            return result;
        }
        let result = self.host.read_file(path, into, limit, end);
        self.record(done(result), || Operation::ReadFile(text.into_owned()));
        result
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        let text = path.to_string_lossy();
        if let Some(listed) = self.list_owned(&text) {
            for (name, kind) in listed? {
                if visit(name.as_bytes(), kind).is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let result = self.host.list_folder(path, visit);
        self.record(done(result), || Operation::ListFolder(text.into_owned()));
        result
    }

    fn now(&self, clock: Clock) -> u64 {
        self.run_engines();
        self.host.now(clock)
    }

    fn sleep(&self, ns: u64) {
        self.run_engines();
        self.host.sleep(ns);
        self.run_engines();
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        self.host.futex_wait(word, expected, timeout)
    }

    fn futex_wake(&self, word: &AtomicU32, count: u32) {
        self.host.futex_wake(word, count);
    }

    fn thread_id(&self) -> u32 {
        self.host.thread_id()
    }

    fn process_id(&self) -> u32 {
        self.seat.pid().0
    }

    fn fork_word(&self) -> &AtomicU32 {
        &self.seat.fork_word
    }

    fn wmb_device(&self) {
        self.host.wmb_device();
        // What rang so far had the barriers so far.
        self.run_engines();
        if self.machine().has_queues() {
            self.machine().note_barrier(self.seat.pid(), self.host.now(Clock::MonotonicRaw));
        }
    }

    fn rmb_device(&self) {
        self.run_engines();
        self.host.rmb_device();
    }

    fn flush_wc(&self) {
        self.host.flush_wc();
        self.machine().write_combining_emptied();
    }
}

impl<H: Os> Driver for SimPlatform<H> {
    type Device = SimDevice;

    fn open(&self, node: DeviceNode) -> Result<SimDevice, Errno> {
        let pid = self.seat.pid();
        let mut state = self.seat.machine.lock();
        state.count_open(&node.to_string());
        let result = device::open(&mut state, pid, node);
        state.collect();
        state.record(pid, result, || Operation::Open(node));
        let descriptor = result?;
        Ok(SimDevice { seat: self.seat.clone(), descriptor, owned: true })
    }

    fn memory_file(&self, size: u64) -> Result<SimDevice, Errno> {
        let pid = self.seat.pid();
        let mut state = self.seat.machine.lock();
        let result = udmabuf::memory_file(&mut state, pid, size, self.host.page_size());
        state.record(pid, result, || Operation::MemoryFile(size));
        let descriptor = result?;
        Ok(SimDevice { seat: self.seat.clone(), descriptor, owned: true })
    }

    fn execute(&self, device: &SimDevice, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        let mut wait = None;
        loop {
            let result = self.advance(device, call, &mut wait);
            match &wait {
                None => return result,
                Some(_) if self.run_engines() > 0 => {}
                Some(wait) => wait.sleep(&self.host),
            }
        }
    }

    fn map(&self, device: &SimDevice, mapping: MapDevice) -> Result<usize, Errno> {
        let pid = self.seat.pid();
        let descriptor = device.descriptor;
        let checked = device::check_map(
            &mut self.seat.machine.lock(),
            pid,
            descriptor,
            mapping,
            self.host.page_size(),
        );
        let result = checked.and_then(|shown| {
            self.check_limit(mapping.length)?;
            // The host's memory stands for the device's. The lock is not held:
            // the host may take as long as it likes.
            let blank = shown.memory().is_some() && mapping.protection.is_empty();
            let offset = shown.offset(mapping);
            let wanted = Mapping {
                placement: mapping.placement,
                length: mapping.length,
                protection: mapping.protection,
                reserve: true,
                shared: true,
            };
            let memory = shown.memory().filter(|_| !blank);
            let contents = memory.map(|memory| self.machine().contents(memory)).transpose()?;
            let address = match contents.flatten() {
                Some((host, start)) => host.show(start + offset as usize, wanted)?,
                None => self.host.map(wanted)?,
            };
            let mapped = Mapped {
                length: mapping.length,
                shown,
                offset,
                blank,
                protection: mapping.protection,
                shared: true,
                huge: None,
                dont_fork: false,
                borrowed: false,
            };
            let over = matches!(mapping.placement, Placement::Replace(_));
            self.seat.machine.lock().put_mapping(pid, address, mapped, over);
            if let Shown::Device { node, .. } = shown {
                self.machine().registers_mapped(node, mapping, address);
            }
            Ok(address)
        });
        let address = result.map(|address| address as u64);
        self.record(address, || Operation::MapDevice { descriptor, mapping });
        result
    }

    fn token(&self, device: &SimDevice) -> DeviceToken {
        DeviceToken(device.descriptor)
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        let found = self.seat.machine.lock().file(self.seat.pid(), token.0);
        if found.and_then(|(_, file)| file.node()) == Some(node) {
            self.seat.close(token.0);
        }
    }

    fn adopt(&self, token: DeviceToken) -> SimDevice {
        SimDevice { seat: self.seat.clone(), descriptor: token.0, owned: true }
    }

    fn release(&self, mut device: SimDevice) -> DeviceToken {
        device.owned = false;
        DeviceToken(device.descriptor)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;
    use core::sync::atomic::Ordering;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{
        Advice, DeviceNode, DeviceToken, Driver, EndOfFile, Mapping, Os, Placement, Protection,
    };
    use hsakmt_core::uapi::kfd::GetVersion;

    use crate::fixture::{Sim, ask, boot, broken, kfd, render};
    use crate::log::Operation;
    use crate::violation::Rule;

    fn anonymous(placement: Placement, length: usize) -> Mapping {
        Mapping {
            placement,
            length,
            protection: Protection::READ | Protection::WRITE,
            reserve: true,
            shared: false,
        }
    }

    fn map(sim: &Sim, length: usize) -> Result<usize, Errno> {
        Os::map(sim, anonymous(Placement::Anywhere, length))
    }

    fn anonymous_bytes(sim: &Sim) -> usize {
        sim.machine().leftovers().processes[&sim.process().pid()].anonymous_bytes
    }

    #[test]
    fn descriptor_0_is_one() {
        let sim = boot("rx7900");
        sim.process().set_first_descriptor(0);
        let device = kfd(&sim);
        assert_eq!(sim.token(&device), DeviceToken(0));
        assert_eq!(ask(&sim, &device, &mut GetVersion::default()), Ok(0));
    }

    #[test]
    fn a_device_closes_when_dropped_and_not_when_released() {
        let sim = boot("rx7900");
        drop(kfd(&sim));
        assert_eq!(sim.process().descriptors(), []);
        let token = sim.release(kfd(&sim));
        assert_eq!(sim.process().descriptors(), [(3, Some(DeviceNode::Kfd))]);
        drop(sim.adopt(token));
        assert_eq!(sim.process().descriptors(), []);
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn closing_twice_and_using_a_closed_descriptor_are_violations() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        drop(sim.adopt(sim.token(&device)));
        assert_eq!(ask(&sim, &device, &mut GetVersion::default()), Err(Errno::EBADF));
        drop(device);
        assert_eq!(broken(&sim), [Rule::DescriptorNotOpen; 2]);
    }

    #[test]
    fn an_inherited_device_closes_only_if_the_number_still_names_it() {
        let sim = boot("rx7900");
        let (token, other) = (sim.release(kfd(&sim)), sim.release(render(&sim, 0)));
        sim.enter_fork_child();
        sim.close_inherited(DeviceNode::Kfd, other);
        sim.close_inherited(DeviceNode::Render(129), other);
        sim.close_inherited(DeviceNode::Kfd, DeviceToken(77));
        assert_eq!(sim.process().descriptors().len(), 2);
        sim.close_inherited(DeviceNode::Kfd, token);
        sim.close_inherited(DeviceNode::Kfd, token);
        assert_eq!(sim.process().descriptors(), [(other.0, Some(DeviceNode::Render(128)))]);
        sim.leave_child();
        assert_eq!(sim.process().descriptors().len(), 2);
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn the_fork_word_is_zero_in_a_forked_child_and_shared_with_a_vforked_one() {
        let sim = boot("cpu-only");
        let parent = sim.process_id();
        let word = || sim.fork_word().load(Ordering::Relaxed);
        sim.fork_word().store(2, Ordering::Relaxed);
        sim.enter_fork_child();
        assert_eq!(word(), 0);
        assert_ne!(sim.process_id(), parent);
        sim.fork_word().store(5, Ordering::Relaxed);
        sim.enter_fork_child();
        assert_eq!(word(), 0);
        sim.leave_child();
        assert_eq!(word(), 5);
        sim.leave_child();
        assert_eq!((word(), sim.process_id()), (2, parent));
        sim.enter_vfork_child();
        assert_eq!(word(), 2);
        assert_ne!(sim.process_id(), parent);
        sim.fork_word().store(3, Ordering::Relaxed);
        sim.leave_child();
        assert_eq!(word(), 3);
        assert_eq!(sim.fork().fork_word().load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_forked_process_goes_its_own_way() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        let child = sim.fork();
        drop(device);
        assert_eq!(child.process().descriptors(), [(3, Some(DeviceNode::Kfd))]);
        drop(kfd(&child));
        child.process().exit();
        assert_eq!(sim.machine().leftovers().processes.len(), 1);
    }

    #[test]
    fn a_child_in_the_same_memory_unmaps_only_its_copy() {
        let sim = boot("cpu-only");
        let address = map(&sim, 0x3000).unwrap();
        sim.enter_fork_child();
        assert_eq!(anonymous_bytes(&sim), 0x3000);
        let own = map(&sim, 0x1000).unwrap();
        sim.unmap(address, 0x3000).unwrap();
        assert_eq!(anonymous_bytes(&sim), 0x1000);
        sim.leave_child();
        // The host still has the parent's range, and the child's own is free again.
        let taken = Os::map(&sim, anonymous(Placement::Free(address), 0x1000));
        assert_eq!(taken, Err(Errno::EEXIST));
        assert_eq!(Os::map(&sim, anonymous(Placement::Free(own), 0x1000)), Ok(own));
        assert_eq!(anonymous_bytes(&sim), 0x4000);
    }

    #[test]
    fn advice_decides_what_a_child_has() {
        let sim = boot("cpu-only");
        let address = map(&sim, 0x3000).unwrap();
        sim.advise(address, 0x2000, Advice::DontFork).unwrap();
        sim.advise(address, 0x1000, Advice::DoFork).unwrap();
        assert_eq!(anonymous_bytes(&sim.fork()), 0x2000);
    }

    #[test]
    fn the_address_space_has_a_limit() {
        let sim = boot("cpu-only");
        sim.process().set_address_space_limit(Some(0x3000));
        let address = map(&sim, 0x2000).unwrap();
        assert_eq!(map(&sim, 0x2000), Err(Errno::ENOMEM));
        sim.unmap(address, 0x1000).unwrap();
        assert!(map(&sim, 0x2000).is_ok());
    }

    #[test]
    fn every_operation_is_logged_with_its_answer() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        ask(&sim, &device, &mut GetVersion::default()).unwrap();
        drop(device);
        assert!(sim.open(DeviceNode::Render(1)).is_err());
        let mut bytes = Vec::new();
        let path = c"/sys/class/kfd/kfd/topology/generation_id";
        sim.read_file(path, &mut bytes, 10, EndOfFile::ShortRead).unwrap();
        let log = sim.machine().take_log();
        let lines: Vec<String> = log.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "0 1001 open /dev/kfd = 0x3",
                "1 1001 ioctl 3 GET_VERSION { major_version: 0x0 -> 0x1 minor_version: 0x0 -> 0x11 \
                 } = 0x0",
                "2 1001 close 3 = 0x0",
                "3 1001 open /dev/dri/renderD1 = ENOENT",
                "4 1001 read /sys/class/kfd/kfd/topology/generation_id = 0x2",
            ]
        );
        let Operation::Execute(version) = &log[1].operation else { panic!() };
        assert_eq!(version.node, Some(DeviceNode::Kfd));
        assert_eq!(version.sent("minor_version"), Some(0));
        assert_eq!(version.returned("minor_version"), Some(17));
        assert_eq!(version.returned("nothing"), None);
        assert!(sim.machine().log().is_empty());
    }

    #[test]
    fn opens_are_counted_also_without_a_log() {
        let sim = boot("rx7900");
        sim.machine().keep_log(false);
        for _ in 0..3 {
            drop(kfd(&sim));
        }
        let _ = sim.open(DeviceNode::Render(1));
        assert_eq!(sim.machine().opens("/dev/kfd"), 3);
        assert_eq!(sim.machine().opens("/dev/"), 4);
        assert_eq!(sim.machine().opens("/sys"), 0);
        assert!(sim.machine().log().is_empty());
    }

    #[test]
    fn leftovers_compare() {
        let sim = boot("rx7900");
        let before = sim.machine().leftovers();
        let address = map(&sim, 0x1000).unwrap();
        let device = kfd(&sim);
        let during = sim.machine().leftovers();
        assert_ne!(before, during);
        assert_eq!(
            during.to_string(),
            "process 1001: 4096 bytes anonymous\n  3: /dev/kfd\nprimary object of process 1001: 0 \
             of 1 GPUs bound, 0 doorbell slices, runtime Disabled, 1 open files\n"
        );
        drop(device);
        sim.unmap(address, 0x1000).unwrap();
        let after = sim.machine().leftovers();
        assert_eq!(before.processes, after.processes);
        assert_eq!((before.objects.len(), after.objects.len()), (0, 1), "until the exit");
    }

    #[test]
    fn threads_share_a_process() {
        let sim = boot("mi300x");
        std::thread::scope(|scope| {
            for gpu in 0..8 {
                let sim = &sim;
                scope.spawn(move || {
                    for _ in 0..20 {
                        let device = kfd(sim);
                        assert_eq!(ask(sim, &device, &mut GetVersion::default()), Ok(0));
                        drop(render(sim, gpu));
                    }
                });
            }
        });
        assert_eq!(sim.process().descriptors(), []);
        assert_eq!(broken(&sim), []);
    }
}
