//! Memory: allocating, mapping, what is left, and what this library does not have.
//!
//! # Safety
//! Out-parameters and arrays are the caller's, touched only through
//! `caller_memory`. Memory itself is a number here and never followed.
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::ptr;

use hsakmt_core::error::{Error, Object, Operation, Status};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::Guard;
use hsakmt_core::seam::Platform;

use super::array::NodeList;
use super::receiver::Receiver;
use super::{Host, Library};
use crate::generation::address::{address_of, pointer_mut};
use crate::generation::{Generation, caller_memory};
use crate::types::{HSAKMT_STATUS, HsaKFDContext, HsaMemFlags, HsaMemoryRange};

/// The flags of a mapping in the library's generation.
type MemMapFlags<H> = <<H as Host>::Generation as Generation>::MemMapFlags;

/// What the flags of the caller ask for; core knows the same bits.
pub(super) fn flags_of(flags: HsaMemFlags) -> MemoryFlags {
    MemoryFlags::from_bits_retain(flags.Value)
}

/// An allocation without an address of its own.
fn request(node: u32, size: u64, alignment: u64, flags: HsaMemFlags) -> AllocationRequest {
    AllocationRequest { node, size, alignment, flags: flags_of(flags), address: 0 }
}

/// The failure with the position that a wrong argument has without the alignment,
/// which is the third.
fn without_alignment(error: Error) -> Error {
    match error.object {
        Object::Argument(position) if position > 3 => {
            Error { object: Object::Argument(position.saturating_sub(1)), ..error }
        }
        _ => error,
    }
}

/// A function that exists and does nothing.
fn absent(status: Status) -> Error {
    Error::library(status, Operation::CheckArgument, Object::Nothing)
}

/// Writes the address for devices, where the caller wants it.
///
/// # Safety
/// `alternate` is NULL or writable.
unsafe fn write_alternate(alternate: *mut u64, address: u64) {
    // SAFETY: the caller's promise. NULL is no error.
    let _ = unsafe { caller_memory::write(alternate, address) };
}

impl<H: Host> Library<H> {
    /// `hsaKmtAllocMemory`
    ///
    /// # Safety
    /// `address` is NULL or writable, and with FixedAddress readable.
    pub unsafe fn allocate(
        &self,
        node: u32,
        size: u64,
        flags: HsaMemFlags,
        address: *mut *mut c_void,
    ) -> HSAKMT_STATUS {
        let request = request(node, size, 0, flags);
        self.on(Receiver::PRIMARY, |guard| {
            // SAFETY: the caller's promise.
            unsafe { allocate_into(guard, request, address) }.map_err(without_alignment)
        })
    }

    /// `hsaKmtAllocMemoryCtx`
    ///
    /// # Safety
    /// As [`Library::allocate`].
    pub unsafe fn allocate_of(
        &self,
        context: *mut HsaKFDContext,
        node: u32,
        size: u64,
        flags: HsaMemFlags,
        address: *mut *mut c_void,
    ) -> HSAKMT_STATUS {
        let request = request(node, size, 0, flags);
        self.on(Receiver::of(context), |guard| {
            // SAFETY: the caller's promise.
            unsafe { allocate_into(guard, request, address) }.map_err(without_alignment)
        })
    }

    /// `hsaKmtAllocMemoryAlign`
    ///
    /// # Safety
    /// As [`Library::allocate`].
    pub unsafe fn allocate_aligned(
        &self,
        node: u32,
        size: u64,
        alignment: u64,
        flags: HsaMemFlags,
        address: *mut *mut c_void,
    ) -> HSAKMT_STATUS {
        let request = request(node, size, alignment, flags);
        // SAFETY: the caller's promise.
        self.on(Receiver::PRIMARY, |guard| unsafe { allocate_into(guard, request, address) })
    }

    /// `hsaKmtAllocMemoryAlignCtx`
    ///
    /// # Safety
    /// As [`Library::allocate`].
    pub unsafe fn allocate_aligned_of(
        &self,
        context: *mut HsaKFDContext,
        node: u32,
        size: u64,
        alignment: u64,
        flags: HsaMemFlags,
        address: *mut *mut c_void,
    ) -> HSAKMT_STATUS {
        let request = request(node, size, alignment, flags);
        // SAFETY: the caller's promise.
        self.on(Receiver::of(context), |guard| unsafe { allocate_into(guard, request, address) })
    }

    /// `hsaKmtAllocMemoryHostGttCtx`
    ///
    /// # Safety
    /// As [`Library::allocate`].
    pub unsafe fn allocate_gtt_of(
        &self,
        context: *mut HsaKFDContext,
        node: u32,
        anchor: u32,
        size: u64,
        flags: HsaMemFlags,
        address: *mut *mut c_void,
    ) -> HSAKMT_STATUS {
        let request = request(node, size, 0, flags);
        self.on(Receiver::of(context), |guard| {
            // SAFETY: the caller's promise.
            unsafe { allocate_by(&request, address, |request| guard.allocate_gtt(request, anchor)) }
        })
    }

    /// `hsaKmtFreeMemory`, `hsaKmtFreeMemoryCtx`
    pub fn free(&self, receiver: Receiver, address: *mut c_void, size: u64) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if address.is_null() {
                return Err(Error::argument(1).with_status(Status::ERROR));
            }
            if size == 0 && H::Generation::FREES_SOME_BYTES {
                return Err(Error::argument(2).with_status(Status::ERROR));
            }
            guard.free_memory(address_of(address), size)
        })
    }

    /// `hsaKmtAvailableMemory`, `hsaKmtAvailableMemoryCtx`
    ///
    /// # Safety
    /// `available` is NULL or writable.
    pub unsafe fn available_memory(
        &self,
        receiver: Receiver,
        node: u32,
        available: *mut u64,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if available.is_null() {
                return Err(Error::argument(2));
            }
            let bytes = guard.available_memory(node)?;
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(available, bytes) }?)
        })
    }

    /// `hsaKmtMapMemoryToGPU`, `hsaKmtMapMemoryToGPUCtx`
    ///
    /// # Safety
    /// `alternate` is NULL or writable.
    pub unsafe fn map(
        &self,
        receiver: Receiver,
        address: *mut c_void,
        size: u64,
        alternate: *mut u64,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if address.is_null() {
                return Err(Error::argument(1).with_status(Status::ERROR));
            }
            // SAFETY: the caller's promise.
            unsafe { write_alternate(alternate, 0) };
            let for_devices = guard.map_memory(address_of(address), size)?;
            // SAFETY: the caller's promise.
            unsafe { write_alternate(alternate, for_devices) };
            Ok(())
        })
    }

    /// `hsaKmtMapMemoryToGPUNodes`. The flags mean nothing.
    ///
    /// # Safety
    /// `alternate` is NULL or writable, `nodes` NULL or an array of `count`.
    pub unsafe fn map_to_nodes(
        &self,
        address: *mut c_void,
        size: u64,
        alternate: *mut u64,
        _flags: MemMapFlags<H>,
        count: u64,
        nodes: *mut u32,
    ) -> HSAKMT_STATUS {
        let receiver = Receiver::PRIMARY;
        // SAFETY: the caller's promise.
        unsafe { self.map_to_nodes_in(receiver, address, size, alternate, count, nodes) }
    }

    /// `hsaKmtMapMemoryToGPUNodesCtx`
    ///
    /// # Safety
    /// As [`Library::map_to_nodes`].
    #[expect(clippy::too_many_arguments, reason = "the C function has as many")]
    pub unsafe fn map_to_nodes_of(
        &self,
        context: *mut HsaKFDContext,
        address: *mut c_void,
        size: u64,
        alternate: *mut u64,
        _flags: HsaMemFlags,
        count: u64,
        nodes: *mut u32,
    ) -> HSAKMT_STATUS {
        let receiver = Receiver::of(context);
        // SAFETY: the caller's promise.
        unsafe { self.map_to_nodes_in(receiver, address, size, alternate, count, nodes) }
    }

    /// # Safety
    /// As [`Library::map_to_nodes`].
    unsafe fn map_to_nodes_in(
        &self,
        receiver: Receiver,
        address: *mut c_void,
        size: u64,
        alternate: *mut u64,
        count: u64,
        nodes: *mut u32,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if address.is_null() {
                return Err(Error::argument(1).with_status(Status::ERROR));
            }
            // SAFETY: the caller's promise.
            unsafe { write_alternate(alternate, 0) };
            // SAFETY: the caller's promise.
            let nodes = unsafe { node_list(count, 5, nodes) }?;
            let for_devices =
                guard.map_memory_to_nodes(address_of(address), size, nodes.entries())?;
            // SAFETY: the caller's promise.
            unsafe { write_alternate(alternate, for_devices) };
            Ok(())
        })
    }

    /// `hsaKmtUnmapMemoryToGPU`
    pub fn unmap(&self, address: *mut c_void) -> HSAKMT_STATUS {
        self.unmap_in(Receiver::PRIMARY, address_of(address))
    }

    /// `hsaKmtUnmapMemoryToGPUCtx`
    pub fn unmap_of(&self, context: *mut HsaKFDContext, address: *mut c_void) -> HSAKMT_STATUS {
        self.unmap_in(Receiver::of(context), address_of(address))
    }

    /// `hsaKmtUnmapGraphicHandle`: the same by another name.
    pub fn unmap_graphic(&self, _node: u32, address: u64, _size: u64) -> HSAKMT_STATUS {
        self.unmap_in(Receiver::PRIMARY, address)
    }

    /// `hsaKmtUnmapGraphicHandleCtx`
    pub fn unmap_graphic_of(
        &self,
        context: *mut HsaKFDContext,
        _node: u32,
        address: u64,
        _size: u64,
    ) -> HSAKMT_STATUS {
        self.unmap_in(Receiver::of(context), address)
    }

    /// Nothing is mapped at 0, and unmapping what is not mapped is no failure.
    fn unmap_in(&self, receiver: Receiver, address: u64) -> HSAKMT_STATUS {
        self.on(receiver, |guard| match address {
            0 => Ok(()),
            _ => guard.unmap_memory(address),
        })
    }

    /// `hsaKmtMapGraphicHandle`
    pub fn map_graphic(
        &self,
        _node: u32,
        _device: u64,
        _resource: u64,
        _offset: u64,
        _size: u64,
        _address: *mut u64,
    ) -> HSAKMT_STATUS {
        self.without_context(|| Err(absent(Status::NOT_IMPLEMENTED)))
    }

    /// `hsaKmtProcessVMRead`, `hsaKmtProcessVMWrite`
    pub fn copy_process_memory(
        &self,
        _process: u32,
        _local: *mut HsaMemoryRange,
        _local_count: u64,
        _remote: *mut HsaMemoryRange,
        _remote_count: u64,
        _copied: *mut u64,
    ) -> HSAKMT_STATUS {
        self.without_context(|| Err(absent(Status::NOT_IMPLEMENTED)))
    }

    /// `hsaKmtReplaceAsanHeaderPage`, `hsaKmtReturnAsanHeaderPage`: this library is
    /// never built for the address sanitizer.
    pub fn swap_header_page(&self, _address: *mut c_void) -> HSAKMT_STATUS {
        self.without_context(|| Err(absent(Status::NOT_SUPPORTED)))
    }

    /// `hsaKmtReplaceAsanHeaderPageCtx`, `hsaKmtReturnAsanHeaderPageCtx`
    pub fn swap_header_page_of(
        &self,
        context: *mut HsaKFDContext,
        _address: *mut c_void,
    ) -> HSAKMT_STATUS {
        self.without_context(|| {
            Receiver::of(context).check()?;
            Err(absent(Status::NOT_SUPPORTED))
        })
    }

    /// `hsaKmtSetMemoryPolicy`, `hsaKmtSetMemoryPolicyCtx`
    pub fn set_memory_policy(
        &self,
        receiver: Receiver,
        node: u32,
        default: u32,
        alternate: u32,
        base: *mut c_void,
        size: u64,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            guard.set_memory_policy(node, default, alternate, address_of(base), size)
        })
    }
}

/// Allocates and writes the address. The caller's address goes in only with
/// FixedAddress; without, it is NULL after a failure, as callers of the reference
/// rely on.
///
/// # Safety
/// As [`Library::allocate`].
unsafe fn allocate_into<P: Platform>(
    guard: &Guard<'_, P>,
    request: AllocationRequest,
    address: *mut *mut c_void,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe { allocate_by(&request, address, |request| guard.allocate_memory(request)) }
}

/// The same by another way of allocating.
///
/// # Safety
/// As [`Library::allocate`].
unsafe fn allocate_by(
    request: &AllocationRequest,
    address: *mut *mut c_void,
    allocate: impl FnOnce(&AllocationRequest) -> Result<u64, Error>,
) -> Result<(), Error> {
    let null = |_| Error::argument(5);
    let mut request = *request;
    if request.flags.contains(MemoryFlags::FIXED_ADDRESS) {
        // SAFETY: the caller's promise.
        request.address = address_of(unsafe { caller_memory::read(address) }.map_err(null)?);
    } else {
        // SAFETY: the caller's promise.
        unsafe { caller_memory::write(address, ptr::null_mut()) }.map_err(null)?;
    }
    let allocated = allocate(&request)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { caller_memory::write(address, pointer_mut(allocated)) }?)
}

/// The caller's list of nodes; `position` is that of its length, the list follows.
/// An empty list is no list; what is in it is core's to judge.
///
/// # Safety
/// `nodes` is NULL or an array of `count`.
pub(super) unsafe fn node_list(
    count: u64,
    position: u32,
    nodes: *mut u32,
) -> Result<NodeList, Error> {
    if nodes.is_null() {
        return Err(Error::argument(position.saturating_add(1)));
    }
    let count = match usize::try_from(count) {
        Ok(count) if count != 0 => count,
        _ => return Err(Error::argument(position)),
    };
    // SAFETY: the caller's promise.
    unsafe { NodeList::read(nodes, count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_after_the_alignment_move_where_there_is_none() {
        for (with, without) in [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4)] {
            let error = without_alignment(Error::argument(with));
            assert_eq!(error, Error::argument(without));
        }
        assert_eq!(without_alignment(Error::not_open()), Error::not_open());
    }
}
