//! Registration of the caller's own memory.
//!
//! # Safety
//! Arrays are the caller's, read only through `caller_memory`. The memory itself
//! is a number here and never followed.
#![allow(unsafe_code)]

use core::ffi::c_void;

use hsakmt_core::error::Status;
use hsakmt_core::memory::MemoryFlags;

use super::memory::{flags_of, node_list};
use super::receiver::Receiver;
use super::{Host, Library};
use crate::generation::address::address_of;
use crate::types::{HSAKMT_STATUS, HsaKFDContext, HsaMemFlags};

/// What a registration without flags asks for: host memory, paged, coherent at
/// kernel boundaries.
const DEFAULT: MemoryFlags = MemoryFlags::HOST_ACCESS.union(MemoryFlags::COARSE_GRAIN);

impl<H: Host> Library<H> {
    /// `hsaKmtRegisterMemory`, `hsaKmtRegisterMemoryCtx`
    ///
    /// Where CPU and GPU share their page tables there is nothing to register: no
    /// other function calls that a success.
    pub fn register(&self, receiver: Receiver, address: *mut c_void, size: u64) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            match guard.register_memory(address_of(address), size, DEFAULT, None) {
                // Not what the driver refuses, as in a secondary context.
                Err(error) if error.status == Status::NOT_SUPPORTED && error.errno.is_none() => {
                    Ok(())
                }
                answer => answer,
            }
        })
    }

    /// `hsaKmtRegisterMemoryWithFlags`
    pub fn register_with_flags(
        &self,
        address: *mut c_void,
        size: u64,
        flags: HsaMemFlags,
    ) -> HSAKMT_STATUS {
        self.register_in(Receiver::PRIMARY, address, size, flags_of(flags))
    }

    /// `hsaKmtRegisterMemoryWithFlagsCtx`
    pub fn register_with_flags_of(
        &self,
        context: *mut HsaKFDContext,
        address: *mut c_void,
        size: u64,
        flags: HsaMemFlags,
    ) -> HSAKMT_STATUS {
        self.register_in(Receiver::of(context), address, size, flags_of(flags))
    }

    fn register_in(
        &self,
        receiver: Receiver,
        address: *mut c_void,
        size: u64,
        flags: MemoryFlags,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| guard.register_memory(address_of(address), size, flags, None))
    }

    /// `hsaKmtRegisterMemoryToNodes`, `hsaKmtRegisterMemoryToNodesCtx`
    ///
    /// # Safety
    /// `nodes` is NULL or an array of `count`.
    pub unsafe fn register_to_nodes(
        &self,
        receiver: Receiver,
        address: *mut c_void,
        size: u64,
        count: u64,
        nodes: *mut u32,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            // SAFETY: the caller's promise.
            let nodes = unsafe { node_list(count, 3, nodes) }?;
            guard.register_memory(address_of(address), size, DEFAULT, Some(nodes.entries()))
        })
    }

    /// `hsaKmtDeregisterMemory`, `hsaKmtDeregisterMemoryCtx`
    pub fn deregister(&self, receiver: Receiver, address: *mut c_void) -> HSAKMT_STATUS {
        self.on(receiver, |guard| guard.deregister_memory(address_of(address)))
    }
}
