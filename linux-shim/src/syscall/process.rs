//! The process and its threads.
//!
//! # Safety
//!
//! None of these calls takes a pointer.
#![allow(unsafe_code)]

use linux_raw_sys::general::{__NR_getpid, __NR_gettid, __NR_sched_yield};

use crate::arch::syscall0;

/// getpid(2).
#[inline]
pub(crate) fn getpid() -> u32 {
    // SAFETY: no pointers, cannot fail.
    unsafe { syscall0(__NR_getpid) as u32 }
}

/// gettid(2).
#[inline]
pub(crate) fn gettid() -> u32 {
    // SAFETY: no pointers, cannot fail.
    unsafe { syscall0(__NR_gettid) as u32 }
}

/// sched_yield(2).
#[inline]
pub(crate) fn sched_yield() {
    // SAFETY: no pointers, cannot fail.
    let _ = unsafe { syscall0(__NR_sched_yield) };
}
