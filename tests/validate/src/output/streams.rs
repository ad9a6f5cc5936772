//! Standard output and error, by system calls.
//!
//! # Safety
//!
//! Pointers handed to the kernel come from references that outlive the call; it
//! reads what they point to and keeps nothing.
#![allow(unsafe_code)]

use hsakmt_core::errno::Errno;
use hsakmt_linux_shim::arch::{syscall3, syscall4, syscall5};
use linux_raw_sys::general::{
    __NR_ioctl, __NR_ppoll, __NR_rt_sigprocmask, __NR_write, POLLOUT, SIG_BLOCK, SIGPIPE, pollfd,
    termios,
};
use linux_raw_sys::ioctl::TCGETS;

use super::console::Console;

const STANDARD_OUTPUT: usize = 1;
const STANDARD_ERROR: usize = 2;

/// The process's standard output and error.
#[derive(Debug)]
pub struct Streams(());

impl Streams {
    /// The streams. From now on a pipe that nobody reads is an error of the
    /// write, not the end of the calling thread: its SIGPIPE stays blocked.
    #[must_use]
    pub fn new() -> Streams {
        let blocked: u64 = 1 << (SIGPIPE - 1);
        let set = (&raw const blocked).expose_provenance();
        // SAFETY: the kernel reads `blocked`. It can only fail for a bad
        // address or a size that is not the kernel's.
        let _ = unsafe {
            syscall4(__NR_rt_sigprocmask, SIG_BLOCK as usize, set, 0, size_of_val(&blocked))
        };
        Streams(())
    }
}

impl Default for Streams {
    fn default() -> Streams {
        Streams::new()
    }
}

fn check(answer: usize) -> Result<usize, Errno> {
    match answer.wrapping_neg() {
        number @ 1..=4095 => Err(Errno(number as u16)),
        _ => Ok(answer),
    }
}

/// Waits until a stream takes bytes or never will.
fn wait_for_room(stream: usize) -> Result<(), Errno> {
    let mut stream = pollfd { fd: stream as i32, events: POLLOUT as i16, revents: 0 };
    let streams = (&raw mut stream).expose_provenance();
    // SAFETY: the kernel reads and writes one `pollfd`. There is neither a time
    // limit nor a signal mask.
    check(unsafe { syscall5(__NR_ppoll, streams, 1, 0, 0, 0) }).map(drop)
}

/// write(2), which waits though whoever shares the stream made it non-blocking.
fn write(stream: usize, bytes: &[u8]) -> Result<usize, Errno> {
    let start = bytes.as_ptr().expose_provenance();
    loop {
        // SAFETY: the kernel reads `bytes`.
        match check(unsafe { syscall3(__NR_write, stream, start, bytes.len()) }) {
            Err(Errno::EAGAIN) => wait_for_room(stream)?,
            answer => return answer,
        }
    }
}

impl Console for Streams {
    fn write_output(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        write(STANDARD_OUTPUT, bytes)
    }

    fn write_error(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match write(STANDARD_ERROR, rest) {
                Ok(0) => return,
                Ok(taken) => rest = rest.get(taken..).unwrap_or(&[]),
                Err(Errno::EINTR) => {}
                // There is nobody else to tell.
                Err(_) => return,
            }
        }
    }
    fn error_is_terminal(&self) -> bool {
        // SAFETY: integers and arrays of them, for which zeros are values.
        let mut line: termios = unsafe { core::mem::zeroed() };
        let state = (&raw mut line).expose_provenance();
        // SAFETY: the kernel fills `line`, or answers ENOTTY.
        check(unsafe { syscall3(__NR_ioctl, STANDARD_ERROR, TCGETS as usize, state) }).is_ok()
    }
}
