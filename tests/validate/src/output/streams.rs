//! Standard output and error, by system calls.
//!
//! # Safety
//!
//! Pointers handed to the kernel come from references that outlive the call; it
//! reads what they point to and keeps nothing.
#![allow(unsafe_code)]

use hsakmt_core::errno::Errno;
use hsakmt_linux_shim::arch::{syscall3, syscall4};
use linux_raw_sys::general::{__NR_rt_sigprocmask, __NR_write, SIG_BLOCK, SIGPIPE};

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

fn write(stream: usize, bytes: &[u8]) -> Result<usize, Errno> {
    let start = bytes.as_ptr().expose_provenance();
    // SAFETY: the kernel reads `bytes`.
    let answer = unsafe { syscall3(__NR_write, stream, start, bytes.len()) };
    match answer.wrapping_neg() {
        number @ 1..=4095 => Err(Errno(number as u16)),
        _ => Ok(answer),
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
}
