//! The copy by the calling thread, in the order that devices need (see `copy`).
//!
//! # Safety
//! This is one of the few modules of `core` with `unsafe` code: it hands the promises of
//! [`Guard::copy_memory`](crate::process::Guard::copy_memory)'s caller and of the books
//! on to `bytes`. A page of registers is used under the lock of the list that it is in,
//! and leaves the list before it is unmapped.
#![allow(unsafe_code)]

use super::bytes;
use crate::error::{Error, Object, Status};
use crate::memory::{Access, Extent};
use crate::process::mmio::MmioPage;
use crate::seam::{Os, Platform};

/// Copies from one extent to another of the same size, each with its address for the CPU.
///
/// # Safety
/// The CPU reaches both at these addresses until the call returns.
pub(super) unsafe fn copy<P: Platform>(
    access: &Access<'_, P>,
    (to, to_cpu): (&Extent, u64),
    (from, from_cpu): (&Extent, u64),
) -> Result<(), Error> {
    let too_long = || {
        let object = Object::Bytes(to.size);
        Error::library(Status::INVALID_PARAMETER, crate::error::Operation::Copy, object)
    };
    let in_process = |value: u64| usize::try_from(value).map_err(|_| too_long());
    let destination = in_process(to_cpu)?;
    let source = in_process(from_cpu)?;
    let size = in_process(to.size)?;
    let last = destination.saturating_add(size).saturating_sub(1);
    if let Some(gpu_id) = from.video_memory_of {
        // SAFETY: `source` is mapped by the caller's promise.
        unsafe { flush(access, gpu_id, source) };
        access.os().rmb_device();
    }
    // SAFETY: the caller's promise.
    unsafe { bytes::copy(destination, source, size) };
    if let Some(gpu_id) = to.video_memory_of {
        access.os().flush_wc();
        // SAFETY: `last` is the last byte of the destination.
        unsafe { flush(access, gpu_id, last) };
    }
    Ok(())
}

/// Flushes the host data path of a GPU, where it has the register, or reads a byte of
/// its memory back.
///
/// # Safety
/// `address` is mapped for reads.
pub(super) unsafe fn flush<P: Platform>(access: &Access<'_, P>, gpu_id: u32, address: usize) {
    let pages = access.register_pages();
    let page = pages.iter().filter_map(MmioPage::usable).find(|(of, _)| *of == gpu_id);
    match page.and_then(|(_, page)| usize::try_from(page).ok()) {
        // SAFETY: the page is mapped while it is in the list, whose lock is held.
        Some(page) => unsafe { bytes::flush_host_data_path(page) },
        // SAFETY: the caller's promise.
        None => unsafe { bytes::read_back(address) },
    }
}
