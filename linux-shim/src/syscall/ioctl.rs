//! ioctl(2).
#![allow(unsafe_code)]

use hsakmt_core::errno::Errno;
use linux_raw_sys::general::__NR_ioctl;

use super::check;
use crate::arch::syscall3;
use crate::fd::BorrowedFd;

/// ioctl(2), once.
///
/// # Safety
/// `block` has the bytes that the request's size field tells, and every address
/// in it leads where the driver may go as the request says.
#[inline]
pub(crate) unsafe fn ioctl(
    fd: BorrowedFd<'_>,
    request: u32,
    block: &mut [u8],
) -> Result<usize, Errno> {
    let block = block.as_mut_ptr().expose_provenance();
    // SAFETY: the caller's.
    check(unsafe { syscall3(__NR_ioctl, fd.number() as usize, request as usize, block) })
}
