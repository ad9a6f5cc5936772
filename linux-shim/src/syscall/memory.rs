//! The address space: mmap(2) and its family.
//!
//! # Safety
//!
//! Addresses are numbers here. Whoever calls an `unsafe` function owns the range
//! it names: nothing else in the process relies on what is mapped there.
#![allow(unsafe_code)]

use hsakmt_core::errno::Errno;
use linux_raw_sys::general::{__NR_madvise, __NR_mbind, __NR_mmap, __NR_mprotect, __NR_munmap};

use super::check;
use crate::arch::{syscall2, syscall3, syscall6};
use crate::fd::BorrowedFd;

/// mmap(2).
///
/// # Safety
/// With MAP_FIXED in `flags`, the caller owns the range.
#[inline]
pub(crate) unsafe fn mmap(
    address: usize,
    length: usize,
    protection: u32,
    flags: u32,
    fd: Option<BorrowedFd<'_>>,
    offset: u64,
) -> Result<usize, Errno> {
    let fd = fd.map_or(-1, BorrowedFd::number) as isize as usize;
    let (protection, flags) = (protection as usize, flags as usize);
    // SAFETY: a new mapping elsewhere touches no memory in use; a fixed one is
    // the caller's.
    check(unsafe { syscall6(__NR_mmap, address, length, protection, flags, fd, offset as usize) })
}

/// munmap(2).
///
/// # Safety
/// The caller owns the range.
#[inline]
pub(crate) unsafe fn munmap(address: usize, length: usize) -> Result<(), Errno> {
    // SAFETY: the caller's.
    check(unsafe { syscall2(__NR_munmap, address, length) }).map(drop)
}

/// mremap(2) without a fixed new address.
///
/// # Safety
/// The caller owns the range, and looks for it at the returned address.
#[cfg(feature = "heap")]
#[inline]
pub(crate) unsafe fn mremap(
    address: usize,
    old_length: usize,
    new_length: usize,
    flags: u32,
) -> Result<usize, Errno> {
    let (number, flags) = (linux_raw_sys::general::__NR_mremap, flags as usize);
    // SAFETY: the caller's.
    check(unsafe { crate::arch::syscall4(number, address, old_length, new_length, flags) })
}

/// mremap(2) with an old length of 0 and MREMAP_FIXED: the pages of a shared mapping
/// at another place too, in place of what is there.
///
/// # Safety
/// The caller owns the new range.
#[cfg(feature = "views")]
#[inline]
pub(crate) unsafe fn mremap_again(
    address: usize,
    new_length: usize,
    new_address: usize,
) -> Result<usize, Errno> {
    use linux_raw_sys::general::{__NR_mremap, MREMAP_FIXED, MREMAP_MAYMOVE};
    let flags = (MREMAP_MAYMOVE | MREMAP_FIXED) as usize;
    // SAFETY: the caller's.
    check(unsafe { crate::arch::syscall5(__NR_mremap, address, 0, new_length, flags, new_address) })
}

/// mprotect(2).
///
/// # Safety
/// The caller owns the range.
#[inline]
pub(crate) unsafe fn mprotect(address: usize, length: usize, protection: u32) -> Result<(), Errno> {
    // SAFETY: the caller's.
    check(unsafe { syscall3(__NR_mprotect, address, length, protection as usize) }).map(drop)
}

/// madvise(2).
///
/// # Safety
/// The caller owns the range, or the advice changes no contents.
#[inline]
pub(crate) unsafe fn madvise(address: usize, length: usize, advice: u32) -> Result<(), Errno> {
    // SAFETY: the caller's.
    check(unsafe { syscall3(__NR_madvise, address, length, advice as usize) }).map(drop)
}

/// mbind(2); bit n of `nodes` is NUMA node n.
#[inline]
pub(crate) fn mbind(address: usize, length: usize, mode: u32, nodes: &[u64]) -> Result<(), Errno> {
    let (mask, bits) = match nodes {
        [] => (0, 0),
        // The kernel takes one bit less than it is told (get_nodes in mempolicy.c).
        _ => (
            nodes.as_ptr().expose_provenance(),
            nodes.len().saturating_mul(u64::BITS as usize).saturating_add(1),
        ),
    };
    // SAFETY: the kernel reads `nodes`, and changes where pages come from but
    // not what they hold.
    check(unsafe { syscall6(__NR_mbind, address, length, mode as usize, mask, bits, 0) }).map(drop)
}
