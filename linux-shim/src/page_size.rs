//! The page size of the running kernel.
//!
//! A build runs on kernels with pages of 4, 16 or 64 KiB. A freestanding start
//! is told the size in its auxiliary vector; a library inside another program
//! has not seen that vector, and `/proc`, where the kernel repeats it, may not
//! be mounted yet. So the kernel is asked directly: madvise(2) refuses an
//! address that is not a multiple of the page size before it looks at anything
//! else, and does nothing when the length is zero.
//!
//! # Safety
//!
//! A range of no bytes owns nothing that advice could change.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicUsize, Ordering};

use hsakmt_core::errno::Errno;
use linux_raw_sys::general::MADV_NORMAL;

use crate::syscall::memory::madvise;

/// The sizes that Linux has on the CPUs we know, smallest first.
const SIZES: [usize; 3] = [4096, 16384, 65536];

/// The size, or 0 before anyone asked.
static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);

/// The page size in bytes. The first call costs at most three system calls, the
/// later ones none.
#[inline]
#[must_use]
pub fn get() -> usize {
    match PAGE_SIZE.load(Ordering::Relaxed) {
        0 => {
            let size = probe();
            PAGE_SIZE.store(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}

/// Notes the size that the kernel told by other means (AT_PAGESZ). One that
/// Linux does not have is ignored.
pub fn set(size: usize) {
    if SIZES.contains(&size) {
        PAGE_SIZE.store(size, Ordering::Relaxed);
    }
}

/// Asks the kernel, whatever is known already.
#[cold]
#[must_use]
pub fn probe() -> usize {
    for size in SIZES {
        // SAFETY: no bytes.
        if unsafe { madvise(size, 0, MADV_NORMAL) } != Err(Errno::EINVAL) {
            return size;
        }
    }
    // Every size that Linux has divides the largest one.
    65536
}
