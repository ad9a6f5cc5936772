//! A simulated process that tells a test of every operation while it happens, and
//! threads of it that stop inside their requests to the driver.

#![allow(dead_code, reason = "each test uses its part")]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU32;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use hsakmt_conformance::Simulated;
use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{
    Advice, Call, Clock, DeviceNode, DeviceToken, Driver, EndOfFile, FileKind, MapDevice, Mapping,
    MemoryPolicy, Os, Placement, Platform, Protection, Wake,
};
use kfd_sim::SimDevice;

/// Who is told.
pub trait Watch: Send + Sync {
    /// The library calls the system or the driver.
    fn leaves(&self) {}
    /// And goes on.
    fn returns(&self) {}
    /// A request is about to reach the driver.
    fn executes(&self, _device: DeviceToken, _call: &Call<'_, '_>) {}
    /// The driver has answered, and the library does not know yet.
    fn executed(&self, _device: DeviceToken, _call: &Call<'_, '_>, _answer: Result<u32, Errno>) {}
    /// The thread goes to sleep on a word.
    fn sleeps(&self) {}
    /// It is awake.
    fn wakes(&self) {}
    /// A lock of the library was taken.
    fn locked(&self) {}
    /// Addresses were mapped where the system liked or where nothing was.
    fn mapped(&self, _address: usize, _length: usize) {}
    /// Addresses are about to be unmapped.
    fn unmaps(&self, _address: usize, _length: usize) {}
    /// Addresses are the system's again, and the library does not know yet.
    fn unmapped(&self) {}
}

/// A simulated process that is watched.
pub struct Watched<W> {
    inner: Simulated,
    watch: W,
}

impl<W: Watch> Watched<W> {
    pub fn new(inner: Simulated, watch: W) -> Watched<W> {
        Watched { inner, watch }
    }

    pub fn inner(&self) -> &Simulated {
        &self.inner
    }

    pub fn watch(&self) -> &W {
        &self.watch
    }

    fn through<R>(&self, call: impl FnOnce(&Simulated) -> R) -> R {
        self.watch.leaves();
        let answer = call(&self.inner);
        self.watch.returns();
        answer
    }
}

impl<W: Watch> Platform for Watched<W> {
    type Os = Watched<W>;
    type Driver = Watched<W>;

    fn os(&self) -> &Watched<W> {
        self
    }

    fn driver(&self) -> &Watched<W> {
        self
    }
}

impl<W: Watch> Os for Watched<W> {
    fn page_size(&self) -> usize {
        self.inner.page_size()
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        self.through(|inner| {
            let answer = Os::map(inner, mapping);
            match (answer, mapping.placement) {
                (Ok(_), Placement::Replace(_)) | (Err(_), _) => {}
                (Ok(address), _) => self.watch.mapped(address, mapping.length),
            }
            answer
        })
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        self.through(|inner| {
            self.watch.unmaps(address, length);
            let answer = inner.unmap(address, length);
            self.watch.unmapped();
            answer
        })
    }

    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        self.through(|inner| inner.protect(address, length, allow))
    }

    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        self.through(|inner| inner.advise(address, length, advice))
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        self.through(|inner| inner.bind(address, length, policy, nodes))
    }

    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        self.through(|inner| inner.read_file(path, into, limit, end))
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        self.through(|inner| inner.list_folder(path, visit))
    }

    fn now(&self, clock: Clock) -> u64 {
        self.inner.now(clock)
    }

    fn sleep(&self, ns: u64) {
        self.inner.sleep(ns);
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        self.watch.sleeps();
        let answer = self.inner.futex_wait(word, expected, timeout);
        self.watch.wakes();
        answer
    }

    fn futex_wake(&self, word: &AtomicU32, count: u32) {
        self.inner.futex_wake(word, count);
    }

    fn locked(&self) {
        self.watch.locked();
    }

    fn thread_id(&self) -> u32 {
        self.inner.thread_id()
    }

    fn process_id(&self) -> u32 {
        self.inner.process_id()
    }

    fn fork_word(&self) -> &AtomicU32 {
        self.inner.fork_word()
    }

    fn wmb_device(&self) {
        self.inner.wmb_device();
    }

    fn rmb_device(&self) {
        self.inner.rmb_device();
    }

    fn flush_wc(&self) {
        self.inner.flush_wc();
    }
}

impl<W: Watch> Driver for Watched<W> {
    type Device = SimDevice;

    fn open(&self, node: DeviceNode) -> Result<SimDevice, Errno> {
        self.through(|inner| inner.open(node))
    }

    fn memory_file(&self, size: u64) -> Result<SimDevice, Errno> {
        self.through(|inner| inner.memory_file(size))
    }

    fn execute(&self, device: &SimDevice, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        self.through(|inner| {
            let token = inner.token(device);
            self.watch.executes(token, call);
            let answer = inner.execute(device, call);
            self.watch.executed(token, call, answer);
            answer
        })
    }

    fn map(&self, device: &SimDevice, mapping: MapDevice) -> Result<usize, Errno> {
        self.through(|inner| {
            let answer = Driver::map(inner, device, mapping);
            match (answer, mapping.placement) {
                (Ok(_), Placement::Replace(_)) | (Err(_), _) => {}
                (Ok(address), _) => self.watch.mapped(address, mapping.length),
            }
            answer
        })
    }

    fn token(&self, device: &SimDevice) -> DeviceToken {
        self.inner.token(device)
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        self.through(|inner| inner.close_inherited(node, token));
    }

    fn adopt(&self, token: DeviceToken) -> SimDevice {
        self.inner.adopt(token)
    }

    fn release(&self, device: SimDevice) -> DeviceToken {
        self.inner.release(device)
    }
}

/// Where in a request a thread is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The driver has not begun.
    Before,
    /// The driver is done.
    After,
}

/// Threads that have a part in a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    First,
    Second,
    Third,
}

thread_local! {
    static ROLE: Cell<Option<Role>> = const { Cell::new(None) };
}

/// What a thread with a part does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part {
    /// The request to stop in, counted from 1, and where.
    stop: Option<(usize, Point)>,
    requests: usize,
    stopped: bool,
    released: bool,
    asleep: bool,
    done: bool,
    /// How often it went to sleep.
    pub sleeps: usize,
    /// How many locks of the library it took.
    pub locks: usize,
}

impl Part {
    /// Requests to the driver.
    pub fn requests(&self) -> usize {
        self.requests
    }
}

#[derive(Debug, Default)]
struct Books {
    parts: BTreeMap<Role, Part>,
    /// Handles by the device that gave them.
    live: BTreeSet<(u32, u64)>,
    in_use: BTreeSet<(u32, u64)>,
    /// Mapped addresses with their lengths.
    mapped: BTreeMap<usize, usize>,
    faults: Vec<String>,
    requests: usize,
}

/// Stops threads and starts them again, and looks at the handles they send and the
/// addresses they unmap.
#[derive(Debug, Default)]
pub struct Desk {
    books: Mutex<Books>,
    changed: Condvar,
}

/// How long a thread may take before the test counts as hanging; no test depends
/// on it otherwise.
const HANGING: Duration = Duration::from_secs(120);

impl Desk {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    fn wait<R>(&self, what: &str, mut ready: impl FnMut(&mut Books) -> Option<R>) -> R {
        let mut books = self.books();
        loop {
            if let Some(answer) = ready(&mut books) {
                return answer;
            }
            let (back, timeout) = self.changed.wait_timeout(books, HANGING).unwrap();
            books = back;
            if timeout.timed_out() {
                // A panic would wait for the very threads that hang.
                eprintln!("hanging, {what}: {:?}", books.parts);
                std::process::exit(101);
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Books)) {
        change(&mut self.books());
        self.changed.notify_all();
    }

    /// Runs `call` as the thread of this role, which stops in a request.
    pub fn act<R>(
        &self,
        role: Role,
        stop: Option<(usize, Point)>,
        call: impl FnOnce() -> R,
    ) -> (R, Part) {
        self.change(|books| {
            books.parts.insert(role, Part { stop, ..Part::default() });
        });
        ROLE.set(Some(role));
        let answer = call();
        ROLE.set(None);
        let mut part = Part::default();
        self.change(|books| {
            let mine = books.parts.get_mut(&role).unwrap();
            mine.done = true;
            part = *mine;
        });
        (answer, part)
    }

    /// Forgets the threads of an earlier scene.
    pub fn begin(&self) {
        self.books().parts.clear();
    }

    /// Waits until the thread has stopped; `false` when it went through instead.
    pub fn stopped(&self, role: Role) -> bool {
        self.wait("until it stops", |books| {
            let part = books.parts.get(&role)?;
            (part.stopped || part.done).then_some(part.stopped)
        })
    }

    /// Waits until the thread is through or sleeps; `true` when it sleeps.
    pub fn blocked(&self, role: Role) -> bool {
        self.wait("until it is through or sleeps", |books| {
            let part = books.parts.get(&role)?;
            (part.done || part.asleep).then_some(!part.done)
        })
    }

    /// Lets a stopped thread go on.
    pub fn release(&self, role: Role) {
        self.change(|books| {
            if let Some(part) = books.parts.get_mut(&role) {
                part.released = true;
            }
        });
    }

    /// Requests to the driver so far, of all threads.
    pub fn requests(&self) -> usize {
        self.books().requests
    }

    /// What was wrong so far.
    pub fn assert_no_faults(&self, what: &str) {
        let books = self.books();
        assert_eq!(books.faults, [""; 0], "{what}");
        assert_eq!(books.in_use.len(), 0, "{what}");
    }

    fn pause(&self, point: Point) {
        let Some(role) = ROLE.get() else { return };
        let stops = {
            let mut books = self.books();
            let part = books.parts.get_mut(&role).unwrap();
            if point == Point::Before {
                part.requests += 1;
            }
            part.stopped |= part.stop == Some((part.requests, point));
            part.stop == Some((part.requests, point))
        };
        if stops {
            self.changed.notify_all();
            self.wait("until it is released", |books| books.parts[&role].released.then_some(()));
        }
    }
}

/// A field of a request.
fn field(call: &Call<'_, '_>, name: &str) -> Option<u64> {
    let field = call.fields.iter().find(|field| field.name == name)?;
    field.number(call.block)
}

fn sends_a_handle(call: &Call<'_, '_>) -> bool {
    ["FREE_MEMORY_OF_GPU", "MAP_MEMORY_TO_GPU", "UNMAP_MEMORY_FROM_GPU"].contains(&call.name)
}

impl Watch for Desk {
    fn executes(&self, device: DeviceToken, call: &Call<'_, '_>) {
        {
            let mut books = self.books();
            books.requests += 1;
            if let Some(handle) = field(call, "handle").filter(|_| sends_a_handle(call)) {
                let key = (device.0, handle);
                if !books.live.contains(&key) {
                    books.faults.push(format!("a handle of nothing: {call:?}"));
                }
                if !books.in_use.insert(key) {
                    books.faults.push(format!("a handle that another thread uses: {call:?}"));
                }
                // From now on the driver may give it to somebody else.
                if call.name == "FREE_MEMORY_OF_GPU" {
                    books.live.remove(&key);
                }
            }
        }
        self.pause(Point::Before);
    }

    fn executed(&self, device: DeviceToken, call: &Call<'_, '_>, answer: Result<u32, Errno>) {
        {
            let mut books = self.books();
            if let Some(handle) = field(call, "handle") {
                let key = (device.0, handle);
                if sends_a_handle(call) {
                    books.in_use.remove(&key);
                }
                let made = call.name == "ALLOC_MEMORY_OF_GPU" && answer.is_ok();
                let kept = call.name == "FREE_MEMORY_OF_GPU" && answer.is_err();
                if made || kept {
                    books.live.insert(key);
                }
            }
        }
        self.pause(Point::After);
    }

    fn sleeps(&self) {
        let Some(role) = ROLE.get() else { return };
        self.change(|books| {
            let part = books.parts.get_mut(&role).unwrap();
            part.asleep = true;
            part.sleeps += 1;
        });
    }

    fn wakes(&self) {
        let Some(role) = ROLE.get() else { return };
        self.change(|books| books.parts.get_mut(&role).unwrap().asleep = false);
    }

    fn locked(&self) {
        let Some(role) = ROLE.get() else { return };
        self.books().parts.get_mut(&role).unwrap().locks += 1;
    }

    fn mapped(&self, address: usize, length: usize) {
        self.books().mapped.insert(address, length);
    }

    fn unmaps(&self, address: usize, length: usize) {
        let mut books = self.books();
        if books.mapped.remove(&address) != Some(length) {
            books.faults.push(format!("{length:#x} bytes at {address:#x} are not ours to unmap"));
        }
    }
}
