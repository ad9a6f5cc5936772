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

/// exit_group(2).
#[cfg(feature = "freestanding")]
pub(crate) fn exit_group(status: i32) -> ! {
    loop {
        // SAFETY: no pointers; the call ends everything that could be broken.
        let _ = unsafe {
            crate::arch::syscall1(linux_raw_sys::general::__NR_exit_group, status as isize as usize)
        };
    }
}
