//! The calls of a context that concern memory.

use super::query::Found;
use super::{
    AllocationRequest, BufferInfo, ExportedBuffer, ImportedBuffer, MemoryFlags, PointerInfo,
    SharedHandle, SharedMemory,
};
use crate::error::{Error, Object, Operation, Status};
use crate::process::Guard;
use crate::seam::Platform;
use crate::uapi::kfd::SvmAttribute;

impl<P: Platform> Guard<'_, P> {
    /// Allocates memory or addresses and returns the address.
    ///
    /// # Errors
    /// INVALID_PARAMETER, INVALID_NODE_UNIT, NOT_SUPPORTED, NO_MEMORY, ERROR, in the
    /// cases of `hsaKmtAllocMemoryAlign`.
    pub fn allocate_memory(&self, request: &AllocationRequest) -> Result<u64, Error> {
        self.memory().allocate(request)
    }

    /// Allocates system memory of the driver through the GPU node `anchor`, reported
    /// for the node of the request.
    ///
    /// # Errors
    /// As [`Guard::allocate_memory`]; INVALID_NODE_UNIT when `anchor` is no GPU.
    pub fn allocate_gtt(&self, request: &AllocationRequest, anchor: u32) -> Result<u64, Error> {
        self.memory().allocate_gtt(request, anchor)
    }

    /// Frees what [`Guard::allocate_memory`] returned.
    ///
    /// # Errors
    /// MEMORY_NOT_REGISTERED for an address that is none of ours (but for contexts
    /// with the SVM calls, where it is no error); ERROR when the driver refuses.
    pub fn free_memory(&self, address: u64, _size: u64) -> Result<(), Error> {
        self.memory().free(address)
    }

    /// Maps memory on its default GPUs; returns the address by which they know it
    /// if it is another one, else 0.
    ///
    /// # Errors
    /// As `hsaKmtMapMemoryToGPU`.
    pub fn map_memory(&self, address: u64, size: u64) -> Result<u64, Error> {
        self.memory().map(address, size, None)
    }

    /// Maps memory on exactly these nodes, as [`Guard::map_memory`].
    ///
    /// # Errors
    /// As `hsaKmtMapMemoryToGPUNodes`.
    pub fn map_memory_to_nodes(
        &self,
        address: u64,
        size: u64,
        nodes: &[u32],
    ) -> Result<u64, Error> {
        self.memory().map(address, size, Some(nodes))
    }

    /// Unmaps memory from all GPUs.
    ///
    /// # Errors
    /// As `hsaKmtUnmapMemoryToGPU`.
    pub fn unmap_memory(&self, address: u64) -> Result<(), Error> {
        self.memory().unmap(address)
    }

    /// Registers memory of the caller; for all nodes, or for these.
    ///
    /// # Errors
    /// As `hsaKmtRegisterMemoryToNodes`, `hsaKmtRegisterMemoryWithFlags`.
    pub fn register_memory(
        &self,
        address: u64,
        size: u64,
        flags: MemoryFlags,
        nodes: Option<&[u32]>,
    ) -> Result<(), Error> {
        self.memory().register(address, size, flags, nodes)
    }

    /// Takes one registration back.
    ///
    /// # Errors
    /// As `hsaKmtDeregisterMemory`.
    pub fn deregister_memory(&self, address: u64) -> Result<(), Error> {
        self.memory().deregister(address)
    }

    /// Takes a buffer in by a dma-buf's descriptor, which stays the caller's; for all
    /// nodes, or for these. Without nodes it gets addresses only where they are required,
    /// else a name, by which it can be exported and deregistered.
    ///
    /// # Errors
    /// ERROR for what is no dma-buf of a GPU driver, or of a GPU that is not in use;
    /// INVALID_NODE_UNIT; NO_MEMORY.
    pub fn import_buffer(
        &self,
        descriptor: u32,
        nodes: Option<&[u32]>,
        needs_address: bool,
    ) -> Result<ImportedBuffer, Error> {
        self.memory().import(descriptor, nodes, needs_address)
    }

    /// Gives the buffer around a range out as a dma-buf.
    ///
    /// # Errors
    /// NOT_SUPPORTED before KFD 1.12; INVALID_PARAMETER for a range that lies not within
    /// one buffer; ERROR when the driver refuses, as for memory of the caller, or when
    /// descriptors run out.
    pub fn export_buffer(&self, address: u64, size: u64) -> Result<ExportedBuffer, Error> {
        self.memory().export(address, size)
    }

    /// What the driver says of a dma-buf.
    ///
    /// # Errors
    /// NOT_SUPPORTED, for whatever reason the driver has.
    pub fn buffer_info(&self, descriptor: u32) -> Result<BufferInfo, Error> {
        self.memory().buffer_info(descriptor)
    }

    /// Lets other processes know the allocation at this first address.
    ///
    /// # Errors
    /// INVALID_PARAMETER for another address, no bytes, more than the allocation has, or
    /// 2^32 pages; ERROR when the driver refuses: the upstream driver does not know how.
    pub fn share_memory(&self, address: u64, size: u64) -> Result<SharedHandle, Error> {
        self.memory().share(address, size)
    }

    /// Takes in what another process shares; for all nodes, or for these.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a handle of another form; INVALID_NODE_UNIT; NO_MEMORY;
    /// ERROR when the driver refuses, or for memory of a GPU that is not in use.
    pub fn import_shared_memory(
        &self,
        handle: &SharedHandle,
        nodes: Option<&[u32]>,
    ) -> Result<SharedMemory, Error> {
        self.memory().import_shared(handle, nodes)
    }

    /// What an address belongs to.
    ///
    /// # Errors
    /// ERROR when it is none of ours.
    #[inline]
    pub fn pointer_info(&self, address: u64) -> Result<PointerInfo<'_>, Error> {
        let Some(found) = self.memory_books().look_up(self.os(), address) else {
            let object = Object::Address(address);
            return Err(Error::library(Status::ERROR, Operation::LookUp, object));
        };
        let Found { info, registered, mapped } = found;
        Ok(PointerInfo {
            registered: self.nodes_of(registered)?,
            mapped: self.nodes_of(mapped)?,
            ..info
        })
    }

    /// Attaches a number of the caller to memory.
    ///
    /// # Errors
    /// ERROR when the address is no start of anything of ours.
    pub fn set_user_data(&self, address: u64, data: u64) -> Result<(), Error> {
        self.memory().set_user_data(address, data)
    }

    /// How many bytes of a GPU's memory are left.
    ///
    /// # Errors
    /// NOT_SUPPORTED before KFD 1.9; INVALID_NODE_UNIT; ERROR.
    pub fn available_memory(&self, node: u32) -> Result<u64, Error> {
        self.memory().available(node)
    }

    /// Sets how a GPU caches its alternate aperture; only for Kaveri.
    /// Policies are those of `HSA_CACHING_TYPE`.
    ///
    /// # Errors
    /// NOT_IMPLEMENTED on other GPUs; INVALID_PARAMETER; INVALID_NODE_UNIT; ERROR.
    pub fn set_memory_policy(
        &self,
        node: u32,
        default_policy: u32,
        alternate_policy: u32,
        alternate_base: u64,
        alternate_size: u64,
    ) -> Result<(), Error> {
        let policies = [default_policy, alternate_policy];
        self.memory().set_policy(node, policies, alternate_base, alternate_size)
    }

    /// Sets attributes of a range; nodes in them are public ids.
    ///
    /// # Errors
    /// As `hsaKmtSVMSetAttr`.
    pub fn set_svm_attributes(
        &self,
        address: u64,
        size: u64,
        attributes: &[SvmAttribute],
    ) -> Result<(), Error> {
        self.memory().set_svm_attributes(address, size, attributes)
    }

    /// Asks for attributes of a range; nodes in them are public ids.
    ///
    /// # Errors
    /// As `hsaKmtSVMGetAttr`.
    pub fn svm_attributes(
        &self,
        address: u64,
        size: u64,
        attributes: &mut [SvmAttribute],
    ) -> Result<(), Error> {
        self.memory().svm_attributes(address, size, attributes)
    }

    /// Turns retry faults on or off for the process.
    ///
    /// # Errors
    /// NOT_SUPPORTED; ERROR while queues exist.
    pub fn set_xnack_mode(&self, enabled: bool) -> Result<(), Error> {
        self.memory().set_xnack_mode(enabled)
    }

    /// Whether retry faults are on.
    ///
    /// # Errors
    /// NOT_SUPPORTED.
    pub fn xnack_mode(&self) -> Result<bool, Error> {
        self.memory().xnack_mode()
    }
}
