//! Shared virtual memory by attributes, and retry faults.
//!
//! # Safety
//! Out-parameters and arrays are the caller's, touched only through
//! `caller_memory`. An attribute of the C ABI is the kernel's attribute: the same
//! two words in the same order, asserted below, so that arrays of one are read
//! and written as arrays of the other.
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::mem::offset_of;

use hsakmt_core::error::Error;
use hsakmt_core::uapi::kfd::{Svm, SvmAttribute};

use super::array::CallerArray;
use super::receiver::Receiver;
use super::{Host, Library};
use crate::generation::address::address_of;
use crate::generation::caller_memory;
use crate::types::{HSA_SVM_ATTRIBUTE, HSAKMT_STATUS};

const _: () = assert!(
    size_of::<HSA_SVM_ATTRIBUTE>() == size_of::<SvmAttribute>()
        && offset_of!(HSA_SVM_ATTRIBUTE, r#type) == offset_of!(SvmAttribute, r#type)
        && offset_of!(HSA_SVM_ATTRIBUTE, value) == offset_of!(SvmAttribute, value)
);

/// Attributes of one call; runtimes pass a handful and one for each GPU.
type Attributes = CallerArray<SvmAttribute, 32>;

/// The caller's attributes.
///
/// # Safety
/// `attributes` is NULL or an array of `count`.
unsafe fn read(count: u32, attributes: *const HSA_SVM_ATTRIBUTE) -> Result<Attributes, Error> {
    if attributes.is_null() {
        return Err(Error::argument(4));
    }
    let count = count as usize;
    if count > Svm::MAX_ATTRIBUTES {
        return Err(Error::argument(3));
    }
    // SAFETY: the caller's promise, and the layout is the same.
    unsafe { Attributes::read(attributes.cast(), count) }
}

impl<H: Host> Library<H> {
    /// `hsaKmtSVMSetAttr`, `hsaKmtSVMSetAttrCtx`
    ///
    /// # Safety
    /// `attributes` is NULL or an array of `count`.
    pub unsafe fn set_svm_attributes(
        &self,
        receiver: Receiver,
        start: *mut c_void,
        size: u64,
        count: u32,
        attributes: *const HSA_SVM_ATTRIBUTE,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            // SAFETY: the caller's promise.
            let asked = unsafe { read(count, attributes) }?;
            guard.set_svm_attributes(address_of(start), size, asked.entries())
        })
    }

    /// `hsaKmtSVMGetAttr`, `hsaKmtSVMGetAttrCtx`
    ///
    /// # Safety
    /// `attributes` is NULL or a writable array of `count`.
    pub unsafe fn svm_attributes(
        &self,
        receiver: Receiver,
        start: *mut c_void,
        size: u64,
        count: u32,
        attributes: *mut HSA_SVM_ATTRIBUTE,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            // SAFETY: the caller's promise.
            let mut asked = unsafe { read(count, attributes) }?;
            guard.svm_attributes(address_of(start), size, asked.entries_mut())?;
            let answers = asked.entries().iter().copied();
            // SAFETY: the caller's promise, and the layout is the same.
            unsafe { caller_memory::write_array(attributes.cast(), count as usize, answers) }?;
            Ok(())
        })
    }

    /// `hsaKmtSetXNACKMode`, `hsaKmtSetXNACKModeCtx`
    ///
    /// To the driver a negative mode is a question (SET_XNACK_MODE, kfd_ioctl.h).
    pub fn set_xnack_mode(&self, receiver: Receiver, enable: i32) -> HSAKMT_STATUS {
        self.on(receiver, |guard| match enable {
            ..0 => guard.xnack_mode().map(drop),
            _ => guard.set_xnack_mode(enable != 0),
        })
    }

    /// `hsaKmtGetXNACKMode`, `hsaKmtGetXNACKModeCtx`
    ///
    /// # Safety
    /// `enable` is NULL or writable.
    pub unsafe fn xnack_mode(&self, receiver: Receiver, enable: *mut i32) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if enable.is_null() {
                return Err(Error::argument(1));
            }
            let mode = i32::from(guard.xnack_mode()?);
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(enable, mode) }?)
        })
    }
}
