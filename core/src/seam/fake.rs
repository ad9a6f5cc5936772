//! An operating system and a driver that answer by script, for the tests of
//! the wrappers.

extern crate std;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use super::{
    Advice, Array, Call, Clock, DeviceNode, DeviceToken, Driver, EndOfFile, FileKind, MapDevice,
    Mapping, MemoryPolicy, Os, Placement, Protection, Wake,
};
use crate::errno::Errno;
use crate::uapi::kfd::GetVersion;
use crate::uapi::{Block, block};

block! {
    /// A block with an array of each direction.
    pub struct ArraysLike: ReadWrite b'K' 0xf2 "ARRAYS_LIKE", 32 bytes, Eintr {
        pub input_ptr: u64 => In,
        pub output_ptr: u64 => Out,
        pub both_ptr: u64 => InOut,
        pub count: u32,
        pub done: u32,
    }
}

type Behaviour = Box<dyn FnOnce(&mut Call<'_, '_>) -> Result<u32, Errno> + Send>;

#[derive(Default)]
struct State {
    calls: Mutex<Vec<String>>,
    script: Mutex<VecDeque<Result<u64, Errno>>>,
    behaviours: Mutex<VecDeque<Behaviour>>,
    failing: Option<Errno>,
    fork_word: AtomicU32,
    next_token: AtomicU32,
}

/// Writes down what it is asked and answers by script, then by default. What
/// has no effect (page size, fork word, token) is not written down.
#[derive(Clone, Default)]
pub struct Fake(Arc<State>);

impl Fake {
    pub fn new() -> Fake {
        Fake::default()
    }

    /// Everything fails that can, except openings.
    pub fn failing(errno: Errno) -> Fake {
        Fake(Arc::new(State { failing: Some(errno), ..State::default() }))
    }

    /// What has been asked so far.
    pub fn calls(&self) -> Vec<String> {
        self.0.calls.lock().unwrap().clone()
    }

    /// Scripts the answer of the next operation that can fail.
    pub fn answer(&self, answer: Result<u64, Errno>) {
        self.0.script.lock().unwrap().push_back(answer);
    }

    /// Scripts what the next block does.
    pub fn on_execute(
        &self,
        behaviour: impl FnOnce(&mut Call<'_, '_>) -> Result<u32, Errno> + Send + 'static,
    ) {
        self.0.behaviours.lock().unwrap().push_back(Box::new(behaviour));
    }

    fn log(&self, call: fmt::Arguments<'_>) {
        self.0.calls.lock().unwrap().push(call.to_string());
    }

    fn scripted(&self, default: u64) -> Result<u64, Errno> {
        match (next(&self.0.script), self.0.failing) {
            (Some(answer), _) => answer,
            (None, Some(errno)) => Err(errno),
            (None, None) => Ok(default),
        }
    }
}

fn next<T>(queue: &Mutex<VecDeque<T>>) -> Option<T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

impl Os for Fake {
    fn page_size(&self) -> usize {
        16384
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        self.log(format_args!("{mapping:?}"));
        self.scripted(0x7000_0000).map(|address| address as usize)
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        self.log(format_args!("unmap {address:#x} {length:#x}"));
        self.scripted(0).map(drop)
    }

    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        self.log(format_args!("protect {address:#x} {length:#x} {allow:?}"));
        self.scripted(0).map(drop)
    }

    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        self.log(format_args!("advise {address:#x} {length:#x} {advice:?}"));
        self.scripted(0).map(drop)
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        self.log(format_args!("bind {address:#x} {length:#x} {policy:?} {nodes:?}"));
        self.scripted(0).map(drop)
    }

    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        self.log(format_args!("read_file {path:?} {limit} {end:?}"));
        self.scripted(0)?;
        into.extend_from_slice(b"content");
        Ok(())
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        self.log(format_args!("list_folder {path:?}"));
        self.scripted(0)?;
        for (name, kind) in
            [("nodes", FileKind::Folder), ("gpu_id", FileKind::File), ("x", FileKind::Other)]
        {
            if visit(name.as_bytes(), kind).is_break() {
                self.log(format_args!("stopped at {name}"));
                break;
            }
        }
        Ok(())
    }

    fn now(&self, clock: Clock) -> u64 {
        self.log(format_args!("now {clock:?}"));
        123_456
    }

    fn sleep(&self, ns: u64) {
        self.log(format_args!("sleep {ns}"));
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        self.log(format_args!("futex_wait {} {expected} {timeout:?}", word.load(SeqCst)));
        self.scripted(1).map(|answer| if answer == 0 { Wake::Again } else { Wake::TimedOut })
    }

    fn futex_wake(&self, word: &AtomicU32, count: u32) {
        self.log(format_args!("futex_wake {} {count}", word.load(SeqCst)));
    }

    fn thread_id(&self) -> u32 {
        self.log(format_args!("thread_id"));
        4711
    }

    fn process_id(&self) -> u32 {
        self.log(format_args!("process_id"));
        4700
    }

    fn fork_word(&self) -> &AtomicU32 {
        &self.0.fork_word
    }

    fn wmb_device(&self) {
        self.log(format_args!("wmb_device"));
    }

    fn rmb_device(&self) {
        self.log(format_args!("rmb_device"));
    }

    fn flush_wc(&self) {
        self.log(format_args!("flush_wc"));
    }
}

/// Says so when it is closed.
pub struct FakeDevice {
    fake: Fake,
    token: DeviceToken,
    released: bool,
}

impl Drop for FakeDevice {
    fn drop(&mut self) {
        if !self.released {
            self.fake.log(format_args!("close {}", self.token.0));
        }
    }
}

impl Driver for Fake {
    type Device = FakeDevice;

    fn open(&self, node: DeviceNode) -> Result<FakeDevice, Errno> {
        self.log(format_args!("open {node}"));
        if let Some(answer) = next(&self.0.script) {
            answer?;
        }
        let token = DeviceToken(self.0.next_token.fetch_add(1, SeqCst));
        Ok(FakeDevice { fake: self.clone(), token, released: false })
    }

    fn memory_file(&self, size: u64) -> Result<FakeDevice, Errno> {
        self.log(format_args!("memory_file {size:#x}"));
        if let Some(answer) = next(&self.0.script) {
            answer?;
        }
        let token = DeviceToken(self.0.next_token.fetch_add(1, SeqCst));
        Ok(FakeDevice { fake: self.clone(), token, released: false })
    }

    fn execute(&self, device: &FakeDevice, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        let (token, request) = (device.token.0, call.request);
        self.log(format_args!("execute {token} {request:?} {call:?} {:?}", call.arrays));
        let behaviour = next(&self.0.behaviours);
        if let Some(behaviour) = behaviour {
            return behaviour(call);
        }
        // Counters of partial success come back with an error, too.
        if let Some(last) = call.block.last_mut() {
            *last = 0x12;
        }
        for array in call.arrays.iter_mut() {
            match array {
                Array::Absent | Array::In(_) => {}
                Array::Out(bytes) => bytes.fill(0x11),
                Array::InOut(bytes) => bytes.iter_mut().for_each(|byte| *byte += 1),
            }
        }
        self.scripted(0).map(|answer| answer as u32)
    }

    fn map(&self, device: &FakeDevice, mapping: MapDevice) -> Result<usize, Errno> {
        self.log(format_args!("map-device {} {mapping:?}", device.token.0));
        self.scripted(0x7100_0000).map(|address| address as usize)
    }

    fn token(&self, device: &FakeDevice) -> DeviceToken {
        device.token
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        self.log(format_args!("close_inherited {node} {}", token.0));
    }

    fn adopt(&self, token: DeviceToken) -> FakeDevice {
        self.log(format_args!("adopt {}", token.0));
        FakeDevice { fake: self.clone(), token, released: false }
    }

    fn release(&self, mut device: FakeDevice) -> DeviceToken {
        self.log(format_args!("release {}", device.token.0));
        device.released = true;
        device.token
    }
}

/// A call of a block, as the `execute` module makes it.
pub fn call<'c, 'a, B: Block>(block: &'c mut B, arrays: &'c mut [Array<'a>]) -> Call<'c, 'a> {
    Call {
        request: B::REQUEST,
        name: B::NAME,
        fields: B::FIELDS,
        block: block.as_mut_bytes(),
        slots: B::ARRAYS,
        arrays,
    }
}

pub fn execute<D: Driver, B: Block>(
    driver: &D,
    device: &D::Device,
    block: &mut B,
    arrays: &mut [Array<'_>],
) -> Result<u32, Errno> {
    driver.execute(device, &mut call(block, arrays))
}

pub fn execute_version<D: Driver>(
    driver: &D,
    device: &D::Device,
) -> (Result<u32, Errno>, GetVersion) {
    let mut block = GetVersion::default();
    (execute(driver, device, &mut block, &mut []), block)
}

pub fn open_kfd<D: Driver>(driver: &D) -> D::Device {
    driver.open(DeviceNode::Kfd).unwrap()
}

pub fn mapping() -> Mapping {
    Mapping {
        placement: Placement::Hint(0x10_0000),
        length: 0x4000,
        protection: Protection::READ | Protection::WRITE,
        reserve: false,
        shared: true,
    }
}

/// Does each operation of both seams once (two blocks, four devices closed)
/// and writes down every answer and everything that came back.
pub fn exercise<O: Os, D: Driver>(os: &O, driver: &D) -> Vec<String> {
    let mut seen = Vec::new();
    let mut see = |answer: fmt::Arguments<'_>| seen.push(answer.to_string());
    let word = AtomicU32::new(31);

    see(format_args!("{}", os.page_size()));
    see(format_args!("{:?}", os.map(mapping())));
    see(format_args!("{:?}", os.unmap(0x1000, 0x2000)));
    see(format_args!("{:?}", os.protect(0x1000, 0x2000, Protection::EXECUTE)));
    see(format_args!("{:?}", os.advise(0x1000, 0x2000, Advice::DontFork)));
    see(format_args!("{:?}", os.bind(0x1000, 0x2000, MemoryPolicy::Bind, &[5, 6])));
    let mut into = b"before ".to_vec();
    let read = os.read_file(c"/some/file", &mut into, 99, EndOfFile::EmptyRead);
    see(format_args!("{read:?} {into:?}"));
    let mut names = Vec::new();
    let listed = os.list_folder(c"/some/folder", &mut |name, kind| {
        names.push(format!("{} {kind:?}", name.escape_ascii()));
        if kind == FileKind::File { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    see(format_args!("{listed:?} {names:?}"));
    see(format_args!("{}", os.now(Clock::Boot)));
    os.sleep(77);
    see(format_args!("{:?}", os.futex_wait(&word, 31, Some(5))));
    os.futex_wake(&word, 2);
    see(format_args!("{} {}", os.thread_id(), os.process_id()));
    os.fork_word().fetch_add(3, SeqCst);
    os.wmb_device();
    os.rmb_device();
    os.flush_wc();

    let kfd = driver.open(DeviceNode::Kfd).unwrap();
    let render = driver.open(DeviceNode::Render(129)).unwrap();
    let udmabuf = driver.open(DeviceNode::Udmabuf).unwrap();
    let file = driver.memory_file(0x5000).unwrap();
    see(format_args!("{:?}", execute_version(driver, &kfd)));
    let mut block = ArraysLike { count: 3, ..ArraysLike::default() };
    let (input, mut output, mut both) = ([1; 3], [2; 5], [3; 7]);
    let mut arrays = [Array::In(&input), Array::Out(&mut output), Array::InOut(&mut both)];
    let executed = execute(driver, &render, &mut block, &mut arrays);
    see(format_args!("{executed:?} {block:?} {input:?} {output:?} {both:?}"));
    let wanted = MapDevice {
        placement: Placement::Replace(0x20_0000),
        length: 0x8000,
        protection: Protection::WRITE,
        offset: 0x1_0000_0000,
    };
    see(format_args!("{:?}", driver.map(&render, wanted)));
    see(format_args!("{:?}", driver.token(&render)));
    drop(file);
    drop(kfd);
    let token = driver.release(udmabuf);
    see(format_args!("{token:?}"));
    let udmabuf = driver.adopt(token);
    driver.close_inherited(DeviceNode::Kfd, DeviceToken(77));
    drop(render);
    drop(udmabuf);
    seen
}

/// Checks that what `wrap` puts around a fake answers like the fake alone, and
/// that the fake is asked the same, in the same order.
pub fn assert_transparent<W: Os + Driver>(wrap: impl Fn(Fake) -> W) {
    for make in [Fake::new, || Fake::failing(Errno::ENOSPC)] {
        let (bare, fake) = (make(), make());
        let expected = exercise(&bare, &bare);
        let wrapped = wrap(fake.clone());
        assert_eq!(exercise(&wrapped, &wrapped), expected);
        assert_eq!(fake.calls(), bare.calls());
        assert_eq!(fake.fork_word().load(SeqCst), 3);

        bare.answer(Err(Errno::EMFILE));
        fake.answer(Err(Errno::EMFILE));
        assert_eq!(bare.open(DeviceNode::Kfd).err(), Some(Errno::EMFILE));
        assert_eq!(wrapped.open(DeviceNode::Kfd).err(), Some(Errno::EMFILE));
        assert_eq!(fake.calls(), bare.calls());
    }
}
