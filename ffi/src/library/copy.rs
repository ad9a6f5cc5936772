//! Copies between memory of the process and of GPUs.
//!
//! # Safety
//! The options are the caller's and touched only through `caller_memory`, up to the size
//! that they say. The memory itself is followed by core, with the caller's promise.
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::mem::{offset_of, size_of};

use hsakmt_core::copy::{CopyPath, CopyRequest};
use hsakmt_core::error::Error;

use super::receiver::Receiver;
use super::{Host, Library};
use crate::generation::address::address_of;
use crate::generation::caller_memory;
use crate::types::{HSAKMT_STATUS, HsaExtCopyOptions, HsaExtCopyPath};

impl<H: Host> Library<H> {
    /// `hsaKmtExtCopyMemory`, `hsaKmtExtCopyMemoryCtx`
    ///
    /// # Safety
    /// `options` is NULL or begins with its size in bytes, all of them readable and
    /// writable; the ranges are the caller's as [`Guard::copy_memory`] says.
    ///
    /// [`Guard::copy_memory`]: hsakmt_core::process::Guard::copy_memory
    pub unsafe fn copy_memory(
        &self,
        receiver: Receiver,
        destination: *mut c_void,
        source: *const c_void,
        size: u64,
        options: *mut HsaExtCopyOptions,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            // SAFETY: the caller's promise.
            let path = unsafe { path_of(options) }?;
            let request = CopyRequest {
                destination: address_of(destination),
                source: address_of(source.cast_mut()),
                size,
                path,
            };
            // SAFETY: the caller's promise.
            let path = unsafe { guard.copy_memory(&request) }?;
            if !options.is_null() {
                let taken = match path {
                    CopyPath::Cpu => HsaExtCopyPath::CPU,
                    CopyPath::Engine => HsaExtCopyPath::ENGINE,
                };
                // SAFETY: the caller's promise.
                unsafe { write_taken(options, taken) }?;
            }
            Ok(())
        })
    }
}

/// The path that the caller wishes.
///
/// # Errors
/// INVALID_PARAMETER for options that do not cover the wish, or an unknown one.
///
/// # Safety
/// `options` is NULL or begins with its size in bytes, all of them readable.
unsafe fn path_of(options: *mut HsaExtCopyOptions) -> Result<Option<CopyPath>, Error> {
    const END: usize = offset_of!(HsaExtCopyOptions, Path) + size_of::<HsaExtCopyPath>();
    if options.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    if (unsafe { caller_memory::read(options.cast::<u32>()) }? as usize) < END {
        return Err(Error::argument(4));
    }
    let path =
        options.cast::<HsaExtCopyPath>().wrapping_byte_add(offset_of!(HsaExtCopyOptions, Path));
    // SAFETY: within the size that the caller named.
    match unsafe { caller_memory::read(path) }? {
        HsaExtCopyPath::ANY => Ok(None),
        HsaExtCopyPath::CPU => Ok(Some(CopyPath::Cpu)),
        HsaExtCopyPath::ENGINE => Ok(Some(CopyPath::Engine)),
        _ => Err(Error::argument(4)),
    }
}

/// Tells the path that was taken, where the caller's structure has room for it.
///
/// # Safety
/// As [`path_of`], writable, and not NULL.
unsafe fn write_taken(options: *mut HsaExtCopyOptions, taken: HsaExtCopyPath) -> Result<(), Error> {
    const START: usize = offset_of!(HsaExtCopyOptions, PathTaken);
    // SAFETY: the caller's promise.
    let size = unsafe { caller_memory::read(options.cast::<u32>()) }? as usize;
    if size < START + size_of::<HsaExtCopyPath>() {
        return Ok(());
    }
    // SAFETY: within the size that the caller named.
    Ok(unsafe {
        caller_memory::write(options.cast::<HsaExtCopyPath>().wrapping_byte_add(START), taken)
    }?)
}
