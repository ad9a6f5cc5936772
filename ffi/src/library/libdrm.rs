//! Devices of a libdrm_amdgpu in the process.
//!
//! # Safety
//! Out-parameters are the caller's and written only through `caller_memory`. A device is a
//! pointer of libdrm's, handed on and never followed here.
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::ptr::NonNull;

use hsakmt_core::error::{Error, Object, Operation, Status};
use hsakmt_core::seam::DeviceNode;

use super::receiver::Receiver;
use super::{Host, Library};
use crate::generation::address::address_of;
use crate::generation::caller_memory;
use crate::types::{HSAKMT_STATUS, HsaAMDGPUDeviceHandle};

/// There is no such device.
#[cold]
fn none(object: Object) -> Error {
    Error::library(Status::INVALID_HANDLE, Operation::LookUp, object)
}

impl<H: Host> Library<H> {
    /// `hsaKmtGetAMDGPUDeviceHandle`, `hsaKmtGetAMDGPUDeviceHandleCtx`
    ///
    /// # Safety
    /// `device` is NULL or writable.
    pub unsafe fn amdgpu_device(
        &self,
        receiver: Receiver,
        node: u32,
        device: *mut HsaAMDGPUDeviceHandle,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if device.is_null() {
                return Err(Error::argument(2));
            }
            let minor = guard.render_minor(node)?;
            let primary = receiver.handle == Receiver::PRIMARY.handle;
            let libdrm = self.host.libdrm().filter(|_| primary);
            let found = libdrm.and_then(|libdrm| libdrm.device(minor));
            let found = found.ok_or(none(Object::Device(DeviceNode::Render(minor))))?;
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(device, found.as_ptr()) }?)
        })
    }

    /// `hsaKmtGetAmdGPUDeviceFd`
    ///
    /// # Safety
    /// `file` is NULL or writable.
    pub unsafe fn amdgpu_device_file(
        &self,
        device: HsaAMDGPUDeviceHandle,
        file: *mut i32,
    ) -> HSAKMT_STATUS {
        self.without_context(|| {
            if file.is_null() {
                return Err(Error::argument(2));
            }
            let libdrm = self.host.libdrm();
            let found = NonNull::<c_void>::new(device)
                .and_then(|device| libdrm?.file_of(device.as_ptr()))
                .ok_or(none(Object::Handle(address_of(device))))?;
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(file, found) }?)
        })
    }
}
