//! Buffer objects of the DRM driver: the family of handles of 2026.
//!
//! A device is one of a libdrm_amdgpu in the process, or a number of ours
//! (`hsaKmtExtGetDeviceHandle`). A handle is a number, too; neither is ever followed.
//! The functions know no context but the primary one.
//!
//! # Safety
//! Structures are the caller's, touched only through `caller_memory`. The union of an
//! import is read as what its kind says, and every pattern of bits is one.
#![allow(unsafe_code)]

use core::ffi::c_void;

use hsakmt_core::error::{Error, Object, Operation, Status};
use hsakmt_core::memory::{BufferHandle, GpuRights, ImportedObject, ObjectMapping, Tag};

use super::receiver::Receiver;
use super::{Host, Library};
use crate::generation::address::{address_of, pointer_mut};
use crate::generation::caller_memory;
use crate::types::{
    HSAKMT_STATUS, HsaAMDGPUDeviceHandle, HsaExternalHandleType, HsaHandleExportDesc,
    HsaHandleExportFlags, HsaHandleImportDesc, HsaHandleImportFlags, HsaHandleImportResult,
    HsaMemoryExportResult, HsaMemoryMapFlags, HsaMemoryObjectHandle,
};

/// Set in a device of ours, above every address; below it is the render node's minor.
const OWN_DEVICE: u64 = 1 << 61;

/// No descriptor.
const NO_DESCRIPTOR: i32 = -1;

/// A structure or a handle that is missing or names nothing.
#[cold]
fn invalid_handle(object: Object) -> Error {
    Error::library(Status::INVALID_HANDLE, Operation::CheckArgument, object)
}

fn handle_of(handle: HsaMemoryObjectHandle) -> BufferHandle {
    BufferHandle::from_raw(address_of(handle))
}

/// Whether the kind of handle is one that crosses processes here: dma-bufs alone.
fn check_kind(kind: HsaExternalHandleType) -> Result<(), Error> {
    if kind == HsaExternalHandleType::DMA_BUF {
        return Ok(());
    }
    Err(Error::argument(1).with_status(Status::NOT_SUPPORTED))
}

/// What the GPU may do.
fn rights(flags: HsaMemoryMapFlags) -> Result<GpuRights, Error> {
    Ok(match flags {
        HsaMemoryMapFlags::NONE => GpuRights { read: false, write: false },
        HsaMemoryMapFlags::READ_ONLY => GpuRights { read: true, write: false },
        HsaMemoryMapFlags::WRITE_ONLY => GpuRights { read: false, write: true },
        HsaMemoryMapFlags::READ_WRITE => GpuRights { read: true, write: true },
        _ => return Err(Error::argument(5)),
    })
}

/// What an import has to do with the tag. Only a buffer that a GPU's allocation is may
/// be given one.
fn tag(flags: HsaHandleImportFlags, tag: u32) -> Tag {
    let has = |field| flags.get(field) != 0;
    if !has(HsaHandleImportFlags::IPC_HANDLE) {
        Tag::None
    } else if has(HsaHandleImportFlags::UPDATE_METADATA) && !has(HsaHandleImportFlags::SYS_MEM) {
        Tag::Offered(tag)
    } else {
        Tag::Expected(tag)
    }
}

impl<H: Host> Library<H> {
    /// The render node of a device.
    fn render_minor_of(&self, device: HsaAMDGPUDeviceHandle) -> Result<u32, Error> {
        let raw = address_of(device);
        if device.is_null() {
            return Err(invalid_handle(Object::Argument(1)));
        }
        if let Some(minor) = self.host.libdrm().and_then(|libdrm| libdrm.render_minor(device)) {
            return Ok(minor);
        }
        let own = (raw & OWN_DEVICE != 0).then(|| u32::try_from(raw & !OWN_DEVICE));
        match own {
            Some(Ok(minor)) => Ok(minor),
            _ => Err(invalid_handle(Object::Handle(raw))),
        }
    }

    /// `hsaKmtExtGetDeviceHandle`
    ///
    /// # Safety
    /// `device` is NULL or writable.
    pub unsafe fn own_device(
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
            let own: *mut c_void = pointer_mut(OWN_DEVICE | u64::from(minor));
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(device, own) }?)
        })
    }

    /// `hsaKmtHandleImport`
    ///
    /// # Safety
    /// `wanted` is NULL or readable, `result` NULL or writable, `flags` NULL or readable.
    pub unsafe fn import_object(
        &self,
        receiver: Receiver,
        wanted: *const HsaHandleImportDesc,
        result: *mut HsaHandleImportResult,
        flags: *mut HsaHandleImportFlags,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            for (position, missing) in [(1, wanted.is_null()), (2, result.is_null())] {
                if missing {
                    return Err(invalid_handle(Object::Argument(position)));
                }
            }
            // SAFETY: the caller's promise.
            let wanted = unsafe { caller_memory::read(wanted) }?;
            let flags = if flags.is_null() {
                HsaHandleImportFlags { Value: 0 }
            } else {
                // SAFETY: the caller's promise.
                unsafe { caller_memory::read(flags) }?
            };
            let minor = self.render_minor_of(wanted.device_handle)?;
            check_kind(wanted.r#type)?;
            // SAFETY: every pattern of bits is a number.
            let descriptor = unsafe { wanted.source.dmabuf_fd };
            // A descriptor is an int, whatever is said of it in 64 bits.
            let tag = tag(flags, wanted.metadata);
            let told = |object: Option<ImportedObject>, tag| HsaHandleImportResult {
                buf_handle: pointer_mut(object.map_or(0, |it| it.handle.to_raw())),
                dmabuf_fd: NO_DESCRIPTOR,
                alloc_size: object.map_or(0, |it| it.size),
                metadata: tag,
            };
            match guard.import_object(minor, descriptor as u32, tag) {
                Ok(object) => {
                    // SAFETY: the caller's promise.
                    Ok(unsafe { caller_memory::write(result, told(Some(object), object.tag)) }?)
                }
                Err(failure) => {
                    if let Some(other) = failure.other_tag {
                        // SAFETY: the caller's promise.
                        unsafe { caller_memory::write(result, told(None, other)) }?;
                    }
                    Err(failure.error)
                }
            }
        })
    }

    /// `hsaKmtHandleExport`. All of a buffer goes out, whatever size is named.
    ///
    /// # Safety
    /// `wanted` is NULL or readable, `result` NULL or writable.
    pub unsafe fn export_object(
        &self,
        receiver: Receiver,
        wanted: *const HsaHandleExportDesc,
        result: *mut HsaMemoryExportResult,
        _flags: *mut HsaHandleExportFlags,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            for (position, missing) in [(1, wanted.is_null()), (2, result.is_null())] {
                if missing {
                    return Err(invalid_handle(Object::Argument(position)));
                }
            }
            // SAFETY: the caller's promise.
            let wanted = unsafe { caller_memory::read(wanted) }?;
            let minor = self.render_minor_of(wanted.device_handle)?;
            check_kind(wanted.r#type)?;
            let descriptor = guard.export_object(minor, handle_of(wanted.buf_handle))?;
            // The union's other kind is longer: those bytes stay the caller's.
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(result.cast::<i32>(), descriptor as i32) }?)
        })
    }

    /// `hsaKmtMemoryVaMap`
    #[allow(clippy::too_many_arguments, reason = "the C function has them")]
    pub fn map_object(
        &self,
        receiver: Receiver,
        handle: HsaMemoryObjectHandle,
        offset: u64,
        size: u64,
        address: u64,
        flags: HsaMemoryMapFlags,
        node: u32,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if handle.is_null() {
                return Err(Error::argument(1).with_status(Status::ERROR));
            }
            let mapping = ObjectMapping { offset, size, address };
            guard.map_object(handle_of(handle), &mapping, rights(flags)?, node)
        })
    }

    /// `hsaKmtMemoryVaUnmap`
    pub fn unmap_object(
        &self,
        receiver: Receiver,
        handle: HsaMemoryObjectHandle,
        offset: u64,
        size: u64,
        address: u64,
        node: u32,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if handle.is_null() {
                return Err(Error::argument(1).with_status(Status::ERROR));
            }
            let mapping = ObjectMapping { offset, size, address };
            guard.unmap_object(handle_of(handle), &mapping, node)
        })
    }

    /// `hsaKmtMemoryCpuMap`
    ///
    /// # Safety
    /// `address` is NULL or writable.
    pub unsafe fn show_object(
        &self,
        receiver: Receiver,
        handle: HsaMemoryObjectHandle,
        address: *mut *mut c_void,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if address.is_null() {
                return Err(Error::argument(2));
            }
            let shown = guard.show_object(handle_of(handle))?;
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(address, pointer_mut(shown)) }?)
        })
    }

    /// `hsaKmtMemoryGetCpuAddr`
    ///
    /// # Safety
    /// `offset` is NULL or writable.
    pub unsafe fn object_offset(
        &self,
        receiver: Receiver,
        device: HsaAMDGPUDeviceHandle,
        handle: HsaMemoryObjectHandle,
        offset: *mut u64,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if offset.is_null() {
                return Err(Error::argument(3));
            }
            let minor = self.render_minor_of(device)?;
            let found = guard.object_offset(minor, handle_of(handle))?;
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(offset, found) }?)
        })
    }

    /// `hsaKmtMemHandleFree`
    pub fn free_object(&self, receiver: Receiver, handle: HsaMemoryObjectHandle) -> HSAKMT_STATUS {
        self.on(receiver, |guard| guard.free_object(handle_of(handle), false))
    }

    /// `hsaKmtMemHandleFreePreserveMetadata`
    pub fn free_object_but_tag(
        &self,
        receiver: Receiver,
        handle: HsaMemoryObjectHandle,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| guard.free_object(handle_of(handle), true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_what_to_do_with_the_tag() {
        let asked = |bits| tag(HsaHandleImportFlags { Value: bits }, 7);
        assert_eq!([asked(0), asked(2), asked(4), asked(6)], [Tag::None; 4]);
        assert_eq!([asked(1), asked(3), asked(7)], [Tag::Expected(7); 3]);
        assert_eq!(asked(5), Tag::Offered(7));
    }

    #[test]
    fn rights_are_those_of_the_header() {
        let of = |flags| rights(HsaMemoryMapFlags(flags)).map(|it| (it.read, it.write));
        assert_eq!([of(0), of(1)], [Ok((false, false)), Ok((true, false))]);
        assert_eq!([of(2), of(3)], [Ok((false, true)), Ok((true, true))]);
        assert_eq!(of(4), Err(Error::argument(5)));
    }
}
