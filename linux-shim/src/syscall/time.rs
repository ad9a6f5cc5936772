//! Clocks.
//!
//! # Safety
//!
//! The kernel reads or writes one `timespec` of ours and keeps no pointer.
#![allow(unsafe_code)]

use hsakmt_core::errno::Errno;
use linux_raw_sys::general::{
    __NR_clock_gettime, __NR_clock_nanosleep, __kernel_timespec, CLOCK_MONOTONIC,
};

use super::check;
use crate::arch::{syscall2, syscall4};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// `ns` nanoseconds as the kernel counts them; any `u64` fits.
#[inline]
pub(crate) fn timespec(ns: u64) -> __kernel_timespec {
    __kernel_timespec { tv_sec: (ns / NS_PER_SECOND) as i64, tv_nsec: (ns % NS_PER_SECOND) as i64 }
}

/// clock_gettime(2), in nanoseconds.
#[inline]
pub(crate) fn clock_gettime(clock: u32) -> Result<u64, Errno> {
    let mut time = timespec(0);
    let into = (&raw mut time).expose_provenance();
    // SAFETY: the kernel fills `time`.
    check(unsafe { syscall2(__NR_clock_gettime, clock as usize, into) })?;
    let seconds = time.tv_sec.unsigned_abs().saturating_mul(NS_PER_SECOND);
    Ok(seconds.saturating_add(time.tv_nsec.unsigned_abs()))
}

/// clock_nanosleep(2) for a span of the monotonic clock.
#[inline]
pub(crate) fn sleep(ns: u64) -> Result<(), Errno> {
    let time = timespec(ns);
    let span = (&raw const time).expose_provenance();
    // SAFETY: the kernel reads `time`.
    check(unsafe { syscall4(__NR_clock_nanosleep, CLOCK_MONOTONIC as usize, 0, span, 0) }).map(drop)
}
