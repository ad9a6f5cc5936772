//! The simulated machine behind the C functions, and the real process that
//! plays one of its processes.
//!
//! The machine is made by the first call that needs it. It lies in the memory
//! of the real process, so real forks have to be followed:
//!
//! - fork(2), or a raw clone without CLONE_VM: the child has a copy of the
//!   machine. The word that the kernel wipes in the child tells. The child goes
//!   on as a forked child of the simulated process, with its descriptors and
//!   its address space. If another thread of the parent was inside the
//!   simulator at that moment, the copy may be half-written and its lock held:
//!   then the child starts over with a machine of its own, just booted, in which
//!   none of the inherited descriptors are open.
//! - vfork(2), or clone with CLONE_VM: the machine is shared, only the process id
//!   differs. The child acts as a vforked child of the simulated process, the
//!   parent as itself again when it calls next, which ends the simulated child.
//!   One of them acts at a time: the other waits until no call is under way.
//!
//! Two real processes have two machines: what one does the other does not see, but
//! for the contents of memory that was mapped before the fork.
//!
//! Once there is a queue a thread of this process lets engines run (`worker`). A fork
//! while it is inside is a fork with a thread inside.
//!
//! # Safety
//! A session is leaked, so that a reference to it is good for ever; the machine
//! in it is behind the simulator's own lock.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt::Write;
use core::mem::ManuallyDrop;
use core::ops::ControlFlow;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::worker::Worker;
use hsakmt_core::errno::Errno;
use hsakmt_core::lock::Lock;
use hsakmt_core::seam::{
    Advice, Call, Clock, DeviceNode, DeviceToken, Driver, EndOfFile, FileKind, MapDevice, Mapping,
    MemoryPolicy, Os, Platform, Protection, Wake,
};
use hsakmt_linux_shim::Linux;
use hsakmt_linux_shim::environment::Environment;
use hsakmt_linux_shim::fork::Detector;
use hsakmt_linux_shim::freestanding::Output;
use kfd_sim::{Condition, Machine, Profile, SimDevice, SimPlatform};

/// Zero in a process that has not seen the machine yet, a forked child included.
static DETECTOR: Detector = Detector::new();
/// The values of the word.
const FRESH: u32 = 0;
const STARTING: u32 = 1;
const STARTED: u32 = 2;

/// The session of this process, or before STARTED that of its parent.
static SESSION: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());

/// Nanoseconds between two looks whether the other process left.
const LOOK_AGAIN: u64 = 20_000;

/// One machine as one real process, and those that share its memory, see it.
struct Session {
    process: SimPlatform<Linux>,
    /// Who acts, a process id in the high half, and how many of its threads are
    /// inside; the low half is `CHANGING` while the actor changes.
    actor: AtomicU64,
    /// The owner, a vforked child of it, a vforked child of that…
    family: Lock<Vec<u32>>,
    worker: Worker,
}

const CHANGING: u64 = u32::MAX as u64;

/// The number of the request after which there are engines to run.
const CREATE_QUEUE: u8 = 0x02;

impl Session {
    fn leak(process: SimPlatform<Linux>) -> &'static Session {
        let owner = Linux.process_id();
        Box::leak(Box::new(Session {
            process,
            actor: AtomicU64::new(u64::from(owner) << 32),
            family: Lock::new(Vec::from([owner])),
            worker: Worker::new(),
        }))
    }

    /// Whether a thread is inside.
    fn is_busy(&self) -> bool {
        self.actor.load(Ordering::Acquire) as u32 != 0
    }

    /// Counts the calling thread in, as a thread of its process.
    fn enter(&'static self) -> Inside {
        let caller = u64::from(Linux.process_id()) << 32;
        let mut seen = self.actor.load(Ordering::Acquire);
        loop {
            let (actor, threads) = (seen & !CHANGING, seen & CHANGING);
            let next = match threads {
                0 if actor != caller => actor | CHANGING,
                CHANGING => 0,
                _ if actor == caller => seen + 1,
                _ => 0,
            };
            if next == 0 {
                Linux.sleep(LOOK_AGAIN);
                seen = self.actor.load(Ordering::Acquire);
                continue;
            }
            match self.actor.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Err(now) => seen = now,
                Ok(_) if next & CHANGING == CHANGING => {
                    self.change_actor((caller >> 32) as u32);
                    self.actor.store(caller | 1, Ordering::Release);
                    return Inside { session: self };
                }
                Ok(_) => return Inside { session: self },
            }
        }
    }

    /// Counts the calling thread in if its process acts already.
    fn try_enter(&'static self) -> Option<Inside> {
        let caller = u64::from(Linux.process_id()) << 32;
        let seen = self.actor.load(Ordering::Acquire);
        if seen & !CHANGING != caller || seen & CHANGING == CHANGING {
            return None;
        }
        let next = seen + 1;
        let entered = self.actor.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire);
        entered.ok().map(|_| Inside { session: self })
    }

    fn change_actor(&self, caller: u32) {
        let mut family = self.family.acquire(&Linux);
        if family.contains(&caller) {
            while family.last() != Some(&caller) {
                self.process.leave_child();
                family.pop();
            }
        } else {
            self.process.enter_vfork_child();
            family.push(caller);
        }
    }
}

/// A thread inside the simulator.
struct Inside {
    session: &'static Session,
}

impl Inside {
    fn process(&self) -> &SimPlatform<Linux> {
        &self.session.process
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        for violation in self.process().machine().take_violations() {
            tell(format_args!("{violation}"));
        }
        self.session.actor.fetch_sub(1, Ordering::Release);
    }
}

fn tell(what: core::fmt::Arguments<'_>) {
    let _ = writeln!(Output::error(), "hsakmt-sim: {what}");
}

/// Counts the calling thread in. Makes the machine if there is none.
fn enter() -> Inside {
    let word = &DETECTOR.words().core;
    loop {
        match word.compare_exchange(FRESH, STARTING, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {
                start();
                word.store(STARTED, Ordering::Release);
                Linux.futex_wake(word, u32::MAX);
            }
            Err(STARTED) => break,
            Err(_) => {
                let _ = Linux.futex_wait(word, STARTING, None);
            }
        }
    }
    // SAFETY: not null since STARTED, and leaked.
    unsafe { &*SESSION.load(Ordering::Acquire) }.enter()
}

/// Lets the engines go on, if that does not mean to take over from another process; how
/// many packets they executed.
pub(crate) fn run_engines() -> u64 {
    // SAFETY: null or leaked.
    let session = unsafe { SESSION.load(Ordering::Acquire).as_ref() };
    let inside = session.filter(|session| session.process.machine().has_queues());
    inside
        .and_then(|session| session.try_enter())
        .map_or(0, |inside| inside.process().run_engines())
}

/// Makes the session of a process that has none.
fn start() {
    // SAFETY: null or leaked.
    let inherited = unsafe { SESSION.load(Ordering::Acquire).as_ref() };
    let process = match inherited {
        Some(session) if !session.is_busy() => session.process.fork(),
        _ => machine().spawn(Linux),
    };
    SESSION.store(ptr::from_ref(Session::leak(process)).cast_mut(), Ordering::Release);
}

/// The machine that the environment names; one without a driver if it names none.
fn machine() -> Machine {
    // SAFETY: see the head of the crate.
    let environment = unsafe { Environment::of_process() };
    let name = environment.get(c"HSAKMT_SIM_PROFILE").unwrap_or(b"mi300x");
    let name = core::str::from_utf8(name).unwrap_or("?");
    let (profile, known) = match Profile::parse(name) {
        Ok(profile) => (profile, true),
        Err(error) => {
            tell(format_args!("HSAKMT_SIM_PROFILE: {error}"));
            (Profile::parse("cpu-only").expect("every simulator has one"), false)
        }
    };
    let machine = Machine::new(&profile);
    // It would grow for as long as the program runs.
    machine.keep_log(false);
    machine.set_host_memory(Arc::new(Linux));
    // Programs that write rings have barriers of their own.
    machine.expect_barriers(false);
    machine.set_condition(Condition::ModuleNotLoaded, !known);
    machine
}

/// The platform of the C library.
#[derive(Debug)]
pub struct Simulation;

impl Simulation {
    /// A platform whose machine is not made yet.
    pub const fn new() -> Simulation {
        Simulation
    }
}

impl Platform for Simulation {
    type Os = Simulation;
    type Driver = Simulation;

    fn os(&self) -> &Simulation {
        self
    }

    fn driver(&self) -> &Simulation {
        self
    }
}

impl Os for Simulation {
    fn page_size(&self) -> usize {
        Linux.page_size()
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        Os::map(enter().process(), mapping)
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        enter().process().unmap(address, length)
    }

    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        enter().process().protect(address, length, allow)
    }

    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        enter().process().advise(address, length, advice)
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        enter().process().bind(address, length, policy, nodes)
    }

    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        enter().process().read_file(path, into, limit, end)
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        enter().process().list_folder(path, visit)
    }

    // What follows is the host's, and may take long: nobody is inside meanwhile.

    fn now(&self, clock: Clock) -> u64 {
        enter().process().run_engines();
        Linux.now(clock)
    }

    fn sleep(&self, ns: u64) {
        enter().process().run_engines();
        Linux.sleep(ns);
        enter().process().run_engines();
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        Linux.futex_wait(word, expected, timeout)
    }

    fn futex_wake(&self, word: &AtomicU32, count: u32) {
        Linux.futex_wake(word, count);
    }

    fn thread_id(&self) -> u32 {
        Linux.thread_id()
    }

    fn process_id(&self) -> u32 {
        enter().process().process_id()
    }

    fn fork_word(&self) -> &AtomicU32 {
        Linux.fork_word()
    }

    fn wmb_device(&self) {
        enter().process().wmb_device();
    }

    fn rmb_device(&self) {
        enter().process().rmb_device();
    }

    fn flush_wc(&self) {
        Linux.flush_wc();
    }
}

/// An open device of the machine.
#[derive(Debug)]
pub struct Device(ManuallyDrop<SimDevice>);

impl Drop for Device {
    fn drop(&mut self) {
        let _inside = enter();
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

impl Driver for Simulation {
    type Device = Device;

    fn open(&self, node: DeviceNode) -> Result<Device, Errno> {
        enter().process().open(node).map(|device| Device(ManuallyDrop::new(device)))
    }

    fn memory_file(&self, size: u64) -> Result<Device, Errno> {
        enter().process().memory_file(size).map(|file| Device(ManuallyDrop::new(file)))
    }

    fn execute(&self, device: &Device, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        let mut wait = None;
        loop {
            let result = enter().process().advance(&device.0, call, &mut wait);
            match &wait {
                None => {
                    if call.request.number() == CREATE_QUEUE && result.is_ok() {
                        enter().session.worker.begin();
                    }
                    return result;
                }
                Some(_) if enter().process().run_engines() > 0 => {}
                // Nobody is inside meanwhile.
                Some(wait) => wait.sleep(&Linux),
            }
        }
    }

    fn map(&self, device: &Device, mapping: MapDevice) -> Result<usize, Errno> {
        Driver::map(enter().process(), &device.0, mapping)
    }

    fn token(&self, device: &Device) -> DeviceToken {
        enter().process().token(&device.0)
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        enter().process().close_inherited(node, token);
    }

    fn adopt(&self, token: DeviceToken) -> Device {
        Device(ManuallyDrop::new(enter().process().adopt(token)))
    }

    fn release(&self, device: Device) -> DeviceToken {
        let mut device = ManuallyDrop::new(device);
        // SAFETY: taken once; `device` is forgotten.
        enter().process().release(unsafe { ManuallyDrop::take(&mut device.0) })
    }
}
