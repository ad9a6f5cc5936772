//! futex(2), on words of this address space alone.
//!
//! # Safety
//!
//! The kernel reads the word, which a reference keeps alive, and a `timespec`
//! of ours; it writes nothing. [`wait_at`] takes an address that may be mapped
//! or not: the kernel checks it and answers EFAULT.
#![allow(unsafe_code)]

use core::sync::atomic::AtomicU32;

use hsakmt_core::errno::Errno;
use linux_raw_sys::general::{__NR_futex, FUTEX_PRIVATE_FLAG, FUTEX_WAIT, FUTEX_WAKE};

use super::check;
use super::time::timespec;
use crate::arch::{syscall3, syscall4};

/// Sleeps while the word holds `expected`, at most `timeout` nanoseconds.
#[inline]
pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Option<u64>) -> Result<(), Errno> {
    wait_at(word.as_ptr().expose_provenance(), expected, timeout)
}

/// The same for a word that may not be there.
///
/// # Errors
/// EFAULT when the address cannot be read; else EAGAIN when the word holds
/// something else; ETIMEDOUT; EINTR.
#[inline]
pub(crate) fn wait_at(address: usize, expected: u32, timeout: Option<u64>) -> Result<(), Errno> {
    let time = timeout.map(timespec);
    let time = time.as_ref().map_or(0, |time| (&raw const *time).expose_provenance());
    let operation = (FUTEX_WAIT | FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: see the head of the file.
    check(unsafe { syscall4(__NR_futex, address, operation, expected as usize, time) }).map(drop)
}

/// Wakes at most `count` waiters.
#[inline]
pub(crate) fn wake(word: &AtomicU32, count: u32) {
    let address = word.as_ptr().expose_provenance();
    let operation = (FUTEX_WAKE | FUTEX_PRIVATE_FLAG) as usize;
    // The kernel takes a signed number of waiters.
    let count = count.min(i32::MAX as u32) as usize;
    // SAFETY: see the head of the file. It can only fail for a bad address.
    let _ = unsafe { syscall3(__NR_futex, address, operation, count) };
}
