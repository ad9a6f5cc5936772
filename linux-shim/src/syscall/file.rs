//! Files and folders.
//!
//! # Safety
//!
//! Every pointer handed to the kernel comes from a Rust reference in the
//! arguments, with its length, and the kernel keeps none of them.
#![allow(unsafe_code)]

use core::ffi::CStr;
use core::mem::MaybeUninit;

use hsakmt_core::errno::Errno;
use linux_raw_sys::general::{
    __NR_close, __NR_fcntl, __NR_ftruncate, __NR_getdents64, __NR_memfd_create, __NR_openat,
    __NR_read, __NR_statx, AT_EMPTY_PATH, AT_FDCWD, F_ADD_SEALS, F_DUPFD_CLOEXEC, MFD_CLOEXEC,
    O_CLOEXEC, S_IFCHR, S_IFMT, STATX_TYPE, statx,
};

use super::check;
use crate::arch::{syscall1, syscall2, syscall3, syscall4, syscall5};
use crate::fd::{BorrowedFd, OwnedFd};

/// openat(2) from the working folder, close-on-exec, creating nothing.
#[inline]
pub(crate) fn open(path: &CStr, flags: u32) -> Result<OwnedFd, Errno> {
    let folder = AT_FDCWD as isize as usize;
    let path = path.as_ptr().expose_provenance();
    // SAFETY: the kernel reads the path.
    let fd =
        check(unsafe { syscall4(__NR_openat, folder, path, (flags | O_CLOEXEC) as usize, 0) })?;
    // SAFETY: the kernel made this descriptor just now, and for us alone.
    Ok(unsafe { OwnedFd::from_number(fd as i32) })
}

/// Another number of the same open file, close-on-exec.
#[inline]
pub(crate) fn duplicate(fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let command = F_DUPFD_CLOEXEC as usize;
    // SAFETY: the call takes no pointer.
    let fd = check(unsafe { syscall3(__NR_fcntl, fd.number() as usize, command, 0) })?;
    // SAFETY: the kernel made this descriptor just now, and for us alone.
    Ok(unsafe { OwnedFd::from_number(fd as i32) })
}

/// memfd_create(2), close-on-exec whatever `flags` say.
pub(crate) fn memfd(name: &CStr, flags: u32) -> Result<OwnedFd, Errno> {
    let name = name.as_ptr().expose_provenance();
    // SAFETY: the kernel reads the name.
    let fd = check(unsafe { syscall2(__NR_memfd_create, name, (flags | MFD_CLOEXEC) as usize) })?;
    // SAFETY: the kernel made this descriptor just now, and for us alone.
    Ok(unsafe { OwnedFd::from_number(fd as i32) })
}

/// ftruncate(2).
pub(crate) fn set_length(fd: BorrowedFd<'_>, length: u64) -> Result<(), Errno> {
    let length = usize::try_from(length).map_err(|_| Errno::EFBIG)?;
    // SAFETY: the call takes no pointer.
    check(unsafe { syscall2(__NR_ftruncate, fd.number() as usize, length) }).map(drop)
}

/// F_ADD_SEALS of fcntl(2).
pub(crate) fn seal(fd: BorrowedFd<'_>, seals: u32) -> Result<(), Errno> {
    let (fd, command) = (fd.number() as usize, F_ADD_SEALS as usize);
    // SAFETY: the call takes no pointer.
    check(unsafe { syscall3(__NR_fcntl, fd, command, seals as usize) }).map(drop)
}

/// close(2). Whatever the answer, the descriptor is gone, so there is none.
///
/// # Safety
/// The caller owns the descriptor and forgets it.
#[inline]
pub(crate) unsafe fn close(number: i32) {
    // SAFETY: the caller's.
    let _ = unsafe { syscall1(__NR_close, number as isize as usize) };
}

/// read(2); the answer is how many bytes of `into`, from the start, are
/// initialised now.
#[inline]
pub(crate) fn read(fd: BorrowedFd<'_>, into: &mut [MaybeUninit<u8>]) -> Result<usize, Errno> {
    let (length, into) = (into.len(), into.as_mut_ptr().expose_provenance());
    // SAFETY: the kernel writes to `into` alone.
    check(unsafe { syscall3(__NR_read, fd.number() as usize, into, length) })
}

/// write(2); the answer is how many bytes of `from`, from the start, were taken.
#[cfg(feature = "freestanding")]
pub(crate) fn write(fd: BorrowedFd<'_>, from: &[u8]) -> Result<usize, Errno> {
    let (length, from) = (from.len(), from.as_ptr().expose_provenance());
    // SAFETY: the kernel reads `from` alone.
    check(unsafe {
        syscall3(linux_raw_sys::general::__NR_write, fd.number() as usize, from, length)
    })
}

/// getdents64(2).
#[inline]
pub(crate) fn getdents64(fd: BorrowedFd<'_>, into: &mut [u8]) -> Result<usize, Errno> {
    let (length, into) = (into.len(), into.as_mut_ptr().expose_provenance());
    // SAFETY: the kernel writes to `into` alone.
    check(unsafe { syscall3(__NR_getdents64, fd.number() as usize, into, length) })
}

/// The major and minor number of the character device at a path, or behind a
/// descriptor when the path is empty (statx(2)).
///
/// # Errors
/// ENODEV when it is something else.
pub(crate) fn device_number(fd: Option<BorrowedFd<'_>>, path: &CStr) -> Result<(u32, u32), Errno> {
    let mut answer = MaybeUninit::<statx>::zeroed();
    let (folder, flags) = match fd {
        Some(fd) => (fd.number() as isize as usize, AT_EMPTY_PATH),
        None => (AT_FDCWD as isize as usize, 0),
    };
    let path = path.as_ptr().expose_provenance();
    let into = answer.as_mut_ptr().expose_provenance();
    // SAFETY: the kernel reads the path and writes one `statx`.
    check(unsafe {
        syscall5(__NR_statx, folder, path, flags as usize, STATX_TYPE as usize, into)
    })?;
    // SAFETY: zeroed before the call, and plain numbers throughout.
    let answer = unsafe { answer.assume_init() };
    if u32::from(answer.stx_mode) & S_IFMT != S_IFCHR {
        return Err(Errno::ENODEV);
    }
    Ok((answer.stx_rdev_major, answer.stx_rdev_minor))
}
