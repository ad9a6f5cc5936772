//! The details of failures, for C callers.
//!
//! # Safety
//! `Detail` is the caller's structure and is written only through
//! `caller_memory`, up to the size that it says.
#![allow(unsafe_code)]

use core::ffi::CStr;
use core::fmt::{self, Write};

use hsakmt_core::error::Failure;
use hsakmt_core::process::ContextHandle;
use zerocopy::FromZeros;

use super::{Host, Library, handle_of};
use crate::generation::caller_memory;
use crate::types::{HSAKMT_STATUS, HsaExtErrorDetail, HsaKFDContext};

impl<H: Host> Library<H> {
    /// `hsaKmtExtGetLastError`
    ///
    /// # Safety
    /// `detail` is NULL or begins with its size in bytes, all of them writable.
    pub unsafe fn last_error(&self, detail: *mut HsaExtErrorDetail) -> HSAKMT_STATUS {
        let outside = self.process.newest_failure(None);
        let inside = self.process.newest_failure(Some(ContextHandle::PRIMARY));
        let newest = outside.into_iter().chain(inside).max_by_key(|failure| failure.sequence);
        // SAFETY: the caller's promise.
        unsafe { write(detail, newest) }
    }

    /// `hsaKmtExtGetLastErrorCtx`
    ///
    /// # Safety
    /// As [`Library::last_error`].
    pub unsafe fn last_error_of(
        &self,
        context: *mut HsaKFDContext,
        detail: *mut HsaExtErrorDetail,
    ) -> HSAKMT_STATUS {
        let Some(handle) = handle_of(context) else { return HSAKMT_STATUS::INVALID_PARAMETER };
        // SAFETY: the caller's promise.
        unsafe { write(detail, self.process.newest_failure(Some(handle))) }
    }
}

/// # Safety
/// As [`Library::last_error`].
unsafe fn write(detail: *mut HsaExtErrorDetail, newest: Option<Failure>) -> HSAKMT_STATUS {
    let mut answer = HsaExtErrorDetail::new_zeroed();
    if let Some(Failure { error, sequence, .. }) = newest {
        answer.Status = error.status.into();
        answer.Errno = error.errno.map_or(0, |errno| i32::from(errno.0));
        answer.Operation = error.operation.code();
        answer.Object = error.object.value();
        put(&mut answer.OperationName, format_args!("{}", error.operation));
        answer.Advice = error.advice().map_or(core::ptr::null(), CStr::as_ptr);
        put(&mut answer.ObjectName, format_args!("{}", error.object));
        answer.Sequence = sequence;
    }
    // SAFETY: the caller's promise.
    match unsafe { caller_memory::write_sized(detail, &answer) } {
        Ok(()) => HSAKMT_STATUS::SUCCESS,
        Err(status) => status,
    }
}

/// Writes a text into a zeroed field, cut to fit, zero-terminated.
fn put(into: &mut [u8], text: fmt::Arguments<'_>) {
    struct Cut<'a>(&'a mut [u8]);
    impl Write for Cut<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let length = text.len().min(self.0.len().saturating_sub(1));
            let whole = core::mem::take(&mut self.0);
            let Some((place, rest)) = whole.split_at_mut_checked(length) else { return Ok(()) };
            if let Some(text) = text.as_bytes().get(..length) {
                place.copy_from_slice(text);
            }
            self.0 = rest;
            Ok(())
        }
    }
    let _ = Cut(into).write_fmt(text);
}
