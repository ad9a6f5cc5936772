//! For tests of orders: an operating system that looks at memory at each barrier.

use alloc::vec::Vec;
use core::ffi::CStr;
use core::ops::ControlFlow;
use core::sync::atomic::AtomicU32;
use std::sync::Mutex;

use crate::errno::Errno;
use crate::seam::{
    Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Protection, Wake,
};

extern crate std;

/// What memory held at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// A word of the packet behind its header.
    pub body: u32,
    /// The word with its header.
    pub header: u32,
    /// The write pointer that hardware reads.
    pub write_pointer: u64,
    /// The doorbell.
    pub doorbell: u64,
}

/// Calls `look` at each barrier and keeps what it says. Nothing else is there.
pub struct Watching<F, T> {
    look: F,
    seen: Mutex<Vec<T>>,
    fork_word: AtomicU32,
}

impl<T: Clone, F: Fn() -> T> Watching<F, T> {
    pub fn new(look: F) -> Watching<F, T> {
        Watching { look, seen: Mutex::new(Vec::new()), fork_word: AtomicU32::new(1) }
    }

    /// What was there at each barrier so far.
    pub fn seen(&self) -> Vec<T> {
        self.seen.lock().unwrap().clone()
    }
}

impl<T, F: Fn() -> T> Os for Watching<F, T> {
    fn page_size(&self) -> usize {
        4096
    }

    fn map(&self, _: Mapping) -> Result<usize, Errno> {
        Err(Errno::ENOSYS)
    }

    fn unmap(&self, _: usize, _: usize) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn protect(&self, _: usize, _: usize, _: Protection) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn advise(&self, _: usize, _: usize, _: Advice) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn bind(&self, _: usize, _: usize, _: MemoryPolicy, _: &[u64]) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn read_file(&self, _: &CStr, _: &mut Vec<u8>, _: usize, _: EndOfFile) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn list_folder(
        &self,
        _: &CStr,
        _: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn now(&self, _: Clock) -> u64 {
        0
    }

    fn sleep(&self, _: u64) {}

    fn futex_wait(&self, _: &AtomicU32, _: u32, _: Option<u64>) -> Result<Wake, Errno> {
        Err(Errno::ENOSYS)
    }

    fn futex_wake(&self, _: &AtomicU32, _: u32) {}

    fn thread_id(&self) -> u32 {
        1
    }

    fn process_id(&self) -> u32 {
        1
    }

    fn fork_word(&self) -> &AtomicU32 {
        &self.fork_word
    }

    fn wmb_device(&self) {
        let seen = (self.look)();
        self.seen.lock().unwrap().push(seen);
    }

    fn rmb_device(&self) {}

    fn flush_wc(&self) {}
}
