//! Buffers of other libraries, processes and contexts.
//!
//! # Safety
//! Structures and arrays are the caller's, touched only through `caller_memory`. Memory
//! itself is a number here and never followed; descriptors are handed on.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};

use hsakmt_core::error::Error;
use hsakmt_core::memory::SharedHandle;

use super::array::NodeList;
use super::memory::node_list;
use super::receiver::Receiver;
use super::{Host, Library};
use crate::generation::address::{address_of, pointer_mut};
use crate::generation::{Decode, Encode, Generation, caller_memory, internal};
use crate::types::{
    HSA_REGISTER_MEM_FLAGS, HSAKMT_STATUS, HsaExtDmaBufInfo, HsaKFDContext, HsaSharedMemoryHandle,
};

/// `HsaGraphicsResourceInfo` in the library's generation.
type GraphicsInfo<H> = <<H as Host>::Generation as Generation>::GraphicsResourceInfo;

/// A list of nodes, which may be missing; `position` is that of its length.
///
/// # Safety
/// `nodes` is NULL or an array of `count`.
unsafe fn nodes_if_any(
    count: u64,
    position: u32,
    nodes: *mut u32,
) -> Result<Option<NodeList>, Error> {
    if count == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { node_list(count, position, nodes) }.map(Some)
}

/// Where a call that takes shared memory in writes what it got.
#[derive(Clone, Copy)]
struct Place {
    address: *mut *mut c_void,
    size: *mut u64,
}

impl<H: Host> Library<H> {
    /// `hsaKmtExtQueryDmaBufInfo`, `hsaKmtExtQueryDmaBufInfoCtx`
    ///
    /// # Safety
    /// `info` is NULL or begins with its size in bytes, all of them readable and writable.
    pub unsafe fn dma_buf_info(
        &self,
        receiver: Receiver,
        descriptor: c_int,
        info: *mut HsaExtDmaBufInfo,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            let descriptor = u32::try_from(descriptor).map_err(|_| Error::argument(1))?;
            if info.is_null() {
                return Err(Error::argument(2));
            }
            let found = guard.buffer_info(descriptor)?;
            let node = guard.machine(|machine| Ok(machine.snapshot().by_gpu_id(found.gpu_id)))?;
            let answer = HsaExtDmaBufInfo {
                Size: 0,
                NodeId: node.unwrap_or(u32::MAX),
                SizeInBytes: found.size,
                GpuId: found.gpu_id,
                IsDeviceMemory: u32::from(found.is_device_memory),
            };
            // SAFETY: the caller's promise.
            unsafe { caller_memory::write_sized(info, &answer) }.map_err(|_| Error::argument(2))
        })
    }

    /// `hsaKmtRegisterGraphicsHandleToNodes`
    ///
    /// # Safety
    /// `info` is NULL or readable and writable, `nodes` NULL or an array of `count`.
    pub unsafe fn register_graphics(
        &self,
        handle: u64,
        info: *mut GraphicsInfo<H>,
        count: u64,
        nodes: *mut u32,
    ) -> HSAKMT_STATUS {
        let flags = HSA_REGISTER_MEM_FLAGS { Value: 0 };
        let receiver = Receiver::PRIMARY;
        // SAFETY: the caller's promise.
        unsafe { self.register_graphics_in(receiver, handle, info, count, nodes, flags) }
    }

    /// `hsaKmtRegisterGraphicsHandleToNodesCtx`
    ///
    /// # Safety
    /// As [`Library::register_graphics`].
    pub unsafe fn register_graphics_of(
        &self,
        context: *mut HsaKFDContext,
        handle: u64,
        info: *mut GraphicsInfo<H>,
        count: u64,
        nodes: *mut u32,
    ) -> HSAKMT_STATUS {
        let flags = HSA_REGISTER_MEM_FLAGS { Value: 0 };
        let receiver = Receiver::of(context);
        // SAFETY: the caller's promise.
        unsafe { self.register_graphics_in(receiver, handle, info, count, nodes, flags) }
    }

    /// `hsaKmtRegisterGraphicsHandleToNodesExt`
    ///
    /// # Safety
    /// As [`Library::register_graphics`].
    pub unsafe fn register_graphics_with_flags(
        &self,
        handle: u64,
        info: *mut GraphicsInfo<H>,
        count: u64,
        nodes: *mut u32,
        flags: HSA_REGISTER_MEM_FLAGS,
    ) -> HSAKMT_STATUS {
        let receiver = Receiver::PRIMARY;
        // SAFETY: the caller's promise.
        unsafe { self.register_graphics_in(receiver, handle, info, count, nodes, flags) }
    }

    /// `hsaKmtRegisterGraphicsHandleToNodesExtCtx`
    ///
    /// # Safety
    /// As [`Library::register_graphics`].
    pub unsafe fn register_graphics_with_flags_of(
        &self,
        context: *mut HsaKFDContext,
        handle: u64,
        info: *mut GraphicsInfo<H>,
        count: u64,
        nodes: *mut u32,
        flags: HSA_REGISTER_MEM_FLAGS,
    ) -> HSAKMT_STATUS {
        let receiver = Receiver::of(context);
        // SAFETY: the caller's promise.
        unsafe { self.register_graphics_in(receiver, handle, info, count, nodes, flags) }
    }

    /// The handle is a dma-buf's descriptor; the flag of Windows means nothing here.
    ///
    /// # Safety
    /// As [`Library::register_graphics`].
    unsafe fn register_graphics_in(
        &self,
        receiver: Receiver,
        handle: u64,
        info: *mut GraphicsInfo<H>,
        count: u64,
        nodes: *mut u32,
        flags: HSA_REGISTER_MEM_FLAGS,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            // SAFETY: the caller's promise.
            let before = unsafe { caller_memory::read(info) }.map_err(|_| Error::argument(2))?;
            // SAFETY: the caller's promise.
            let nodes = unsafe { nodes_if_any(count, 3, nodes) }?;
            // A descriptor is an int, whatever is said of it in 64 bits.
            let descriptor = handle as u32;
            let needs_address = flags.get(HSA_REGISTER_MEM_FLAGS::REQUIRES_VADDR) != 0;
            let nodes = nodes.as_ref().map(NodeList::entries);
            let imported = guard.import_buffer(descriptor, nodes, needs_address)?;
            let info_after = internal::GraphicsResourceInfo {
                memory_address: imported.address,
                size_in_bytes: imported.size,
                metadata: imported.metadata,
                metadata_size_in_bytes: imported.metadata_size,
                node_id: imported.node,
                ..before.decode()
            };
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(info, GraphicsInfo::<H>::encode(&info_after)) }?)
        })
    }

    /// `hsaKmtExportDMABufHandle`, `hsaKmtExportDMABufHandleCtx`
    ///
    /// # Safety
    /// `descriptor` and `offset` are NULL or writable.
    pub unsafe fn export_dma_buf(
        &self,
        receiver: Receiver,
        address: *mut c_void,
        size: u64,
        descriptor: *mut i32,
        offset: *mut u64,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            // Before there is a descriptor that nobody would be told of.
            for (position, missing) in [(3, descriptor.is_null()), (4, offset.is_null())] {
                if missing {
                    return Err(Error::argument(position));
                }
            }
            let exported = guard.export_buffer(address_of(address), size)?;
            // SAFETY: the caller's promise.
            unsafe { caller_memory::write(descriptor, exported.descriptor as i32) }?;
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(offset, exported.offset) }?)
        })
    }

    /// `hsaKmtShareMemory`, `hsaKmtShareMemoryCtx`
    ///
    /// # Safety
    /// `handle` is NULL or writable.
    pub unsafe fn share_memory(
        &self,
        receiver: Receiver,
        address: *mut c_void,
        size: u64,
        handle: *mut HsaSharedMemoryHandle,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if handle.is_null() {
                return Err(Error::argument(3));
            }
            let SharedHandle(words) = guard.share_memory(address_of(address), size)?;
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(handle, words) }?)
        })
    }

    /// `hsaKmtRegisterSharedHandle`
    ///
    /// # Safety
    /// `handle` is NULL or readable, `address` and `size` NULL or writable.
    pub unsafe fn register_shared(
        &self,
        handle: *const HsaSharedMemoryHandle,
        address: *mut *mut c_void,
        size: *mut u64,
    ) -> HSAKMT_STATUS {
        let place = Place { address, size };
        // SAFETY: the caller's promise.
        unsafe { self.register_shared_in(Receiver::PRIMARY, handle, place, None) }
    }

    /// `hsaKmtRegisterSharedHandleCtx`
    ///
    /// # Safety
    /// As [`Library::register_shared`].
    pub unsafe fn register_shared_of(
        &self,
        context: *mut HsaKFDContext,
        handle: *const HsaSharedMemoryHandle,
        address: *mut *mut c_void,
        size: *mut u64,
    ) -> HSAKMT_STATUS {
        let place = Place { address, size };
        // SAFETY: the caller's promise.
        unsafe { self.register_shared_in(Receiver::of(context), handle, place, None) }
    }

    /// `hsaKmtRegisterSharedHandleToNodes`
    ///
    /// # Safety
    /// As [`Library::register_shared`]; `nodes` is NULL or an array of `count`.
    pub unsafe fn register_shared_to_nodes(
        &self,
        handle: *const HsaSharedMemoryHandle,
        address: *mut *mut c_void,
        size: *mut u64,
        count: u64,
        nodes: *mut u32,
    ) -> HSAKMT_STATUS {
        let place = Place { address, size };
        let nodes = Some((count, nodes));
        // SAFETY: the caller's promise.
        unsafe { self.register_shared_in(Receiver::PRIMARY, handle, place, nodes) }
    }

    /// `hsaKmtRegisterSharedHandleToNodesCtx`
    ///
    /// # Safety
    /// As [`Library::register_shared_to_nodes`].
    pub unsafe fn register_shared_to_nodes_of(
        &self,
        context: *mut HsaKFDContext,
        handle: *const HsaSharedMemoryHandle,
        address: *mut *mut c_void,
        size: *mut u64,
        count: u64,
        nodes: *mut u32,
    ) -> HSAKMT_STATUS {
        let place = Place { address, size };
        let nodes = Some((count, nodes));
        // SAFETY: the caller's promise.
        unsafe { self.register_shared_in(Receiver::of(context), handle, place, nodes) }
    }

    /// # Safety
    /// As [`Library::register_shared_to_nodes`].
    unsafe fn register_shared_in(
        &self,
        receiver: Receiver,
        handle: *const HsaSharedMemoryHandle,
        place: Place,
        nodes: Option<(u64, *mut u32)>,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            for (position, missing) in
                [(1, handle.is_null()), (2, place.address.is_null()), (3, place.size.is_null())]
            {
                if missing {
                    return Err(Error::argument(position));
                }
            }
            // SAFETY: the caller's promise.
            let words = unsafe { caller_memory::read(handle) }?;
            let nodes = match nodes {
                // SAFETY: the caller's promise.
                Some((count, nodes)) => unsafe { nodes_if_any(count, 4, nodes) }?,
                None => None,
            };
            let nodes = nodes.as_ref().map(NodeList::entries);
            let taken = guard.import_shared_memory(&SharedHandle(words), nodes)?;
            // SAFETY: the caller's promise.
            unsafe { caller_memory::write(place.address, pointer_mut(taken.address)) }?;
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(place.size, taken.size) }?)
        })
    }
}
