//! The calls of a context that concern memory.

use super::{AllocationRequest, MemoryFlags, PointerInfo};
use crate::error::{Error, Object, Operation, Status};
use crate::process::Guard;
use crate::seam::Platform;
use crate::uapi::kfd::SvmAttribute;

fn missing<T>() -> Result<T, Error> {
    Err(Error::library(Status::NOT_IMPLEMENTED, Operation::LookUp, Object::Nothing))
}

impl<P: Platform> Guard<'_, P> {
    /// Allocates memory or addresses and returns the address.
    ///
    /// # Errors
    /// INVALID_PARAMETER, INVALID_NODE_UNIT, NOT_SUPPORTED, NO_MEMORY, ERROR, in the
    /// cases of `hsaKmtAllocMemoryAlign`.
    pub fn allocate_memory(&self, _request: &AllocationRequest) -> Result<u64, Error> {
        missing()
    }

    /// Frees what [`Guard::allocate_memory`] returned.
    ///
    /// # Errors
    /// MEMORY_NOT_REGISTERED for an address that is none of ours (but for contexts
    /// with the SVM calls, where it is no error); ERROR when the driver refuses.
    pub fn free_memory(&self, _address: u64, _size: u64) -> Result<(), Error> {
        missing()
    }

    /// Maps memory on its default GPUs; returns the address by which they know it
    /// if it is another one, else 0.
    ///
    /// # Errors
    /// As `hsaKmtMapMemoryToGPU`.
    pub fn map_memory(&self, _address: u64, _size: u64) -> Result<u64, Error> {
        missing()
    }

    /// Maps memory on exactly these nodes, as [`Guard::map_memory`].
    ///
    /// # Errors
    /// As `hsaKmtMapMemoryToGPUNodes`.
    pub fn map_memory_to_nodes(
        &self,
        _address: u64,
        _size: u64,
        _nodes: &[u32],
    ) -> Result<u64, Error> {
        missing()
    }

    /// Unmaps memory from all GPUs.
    ///
    /// # Errors
    /// As `hsaKmtUnmapMemoryToGPU`.
    pub fn unmap_memory(&self, _address: u64) -> Result<(), Error> {
        missing()
    }

    /// Registers memory of the caller; for all nodes, or for these.
    ///
    /// # Errors
    /// As `hsaKmtRegisterMemoryToNodes`, `hsaKmtRegisterMemoryWithFlags`.
    pub fn register_memory(
        &self,
        _address: u64,
        _size: u64,
        _flags: MemoryFlags,
        _nodes: Option<&[u32]>,
    ) -> Result<(), Error> {
        missing()
    }

    /// Takes one registration back.
    ///
    /// # Errors
    /// As `hsaKmtDeregisterMemory`.
    pub fn deregister_memory(&self, _address: u64) -> Result<(), Error> {
        missing()
    }

    /// What an address belongs to.
    ///
    /// # Errors
    /// ERROR when it is none of ours.
    pub fn pointer_info(&self, _address: u64) -> Result<PointerInfo<'_>, Error> {
        missing()
    }

    /// Attaches a number of the caller to memory.
    ///
    /// # Errors
    /// ERROR when the address is no start of anything of ours.
    pub fn set_user_data(&self, _address: u64, _data: u64) -> Result<(), Error> {
        missing()
    }

    /// How many bytes of a GPU's memory are left.
    ///
    /// # Errors
    /// NOT_SUPPORTED before KFD 1.9; INVALID_NODE_UNIT; ERROR.
    pub fn available_memory(&self, _node: u32) -> Result<u64, Error> {
        missing()
    }

    /// Sets how a GPU caches its alternate aperture; only for Kaveri.
    /// Policies are those of `HSA_CACHING_TYPE`.
    ///
    /// # Errors
    /// NOT_IMPLEMENTED on other GPUs; INVALID_PARAMETER; INVALID_NODE_UNIT; ERROR.
    pub fn set_memory_policy(
        &self,
        _node: u32,
        _default_policy: u32,
        _alternate_policy: u32,
        _alternate_base: u64,
        _alternate_size: u64,
    ) -> Result<(), Error> {
        missing()
    }

    /// Sets attributes of a range; nodes in them are public ids.
    ///
    /// # Errors
    /// As `hsaKmtSVMSetAttr`.
    pub fn set_svm_attributes(
        &self,
        _address: u64,
        _size: u64,
        _attributes: &[SvmAttribute],
    ) -> Result<(), Error> {
        missing()
    }

    /// Asks for attributes of a range; nodes in them are public ids.
    ///
    /// # Errors
    /// As `hsaKmtSVMGetAttr`.
    pub fn svm_attributes(
        &self,
        _address: u64,
        _size: u64,
        _attributes: &mut [SvmAttribute],
    ) -> Result<(), Error> {
        missing()
    }

    /// Turns retry faults on or off for the process.
    ///
    /// # Errors
    /// NOT_SUPPORTED; ERROR while queues exist.
    pub fn set_xnack_mode(&self, _enabled: bool) -> Result<(), Error> {
        missing()
    }

    /// Whether retry faults are on.
    ///
    /// # Errors
    /// NOT_SUPPORTED.
    pub fn xnack_mode(&self) -> Result<bool, Error> {
        missing()
    }
}
