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

/// process_vm_readv(2) and process_vm_writev(2) on the process itself: between
/// `own`, which is in use as a Rust slice says, and as many bytes at `address`, where
/// there may be nothing.
///
/// # Errors
/// EFAULT for a range that cannot be accessed whole.
///
/// # Safety
/// `own` is readable, for a read writable, and nothing else relies on what a write
/// changes at `address`.
#[cfg(feature = "views")]
pub(crate) unsafe fn copy_memory(
    write: bool,
    own: (*mut u8, usize),
    address: usize,
) -> Result<(), hsakmt_core::errno::Errno> {
    use hsakmt_core::errno::Errno;
    use linux_raw_sys::general::{__NR_process_vm_readv, __NR_process_vm_writev, iovec};
    let part = |base: *mut u8, length: usize| iovec {
        iov_base: base.cast(),
        iov_len: length as linux_raw_sys::general::__kernel_size_t,
    };
    let (own, length) = (part(own.0, own.1), own.1);
    let other = part(core::ptr::with_exposed_provenance_mut(address), length);
    let at = |part: &iovec| core::ptr::from_ref(part).expose_provenance();
    let number = if write { __NR_process_vm_writev } else { __NR_process_vm_readv };
    // SAFETY: the caller's; the kernel reads both descriptions alone.
    let answer = super::check(unsafe {
        crate::arch::syscall6(number, getpid() as usize, at(&own), 1, at(&other), 1, 0)
    })?;
    if answer == length { Ok(()) } else { Err(Errno::EFAULT) }
}
