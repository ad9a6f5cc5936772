//! The calls of a context that concern memory.

use super::query::Found;
use super::{AllocationRequest, MemoryFlags, PointerInfo};
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
