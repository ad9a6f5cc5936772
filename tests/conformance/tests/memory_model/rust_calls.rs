//! The Rust calls, in a primary or a secondary context.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;

use hsakmt_conformance::{Mode, Simulated, machine, process};
use hsakmt_core::error::{Error, Status};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::{ContextHandle, Guard, Process};
use kfd_sim::Machine;

use crate::caller::{Caller, Info};

pub struct RustCalls {
    machine: Machine,
    process: Box<UnsafeCell<Process<Simulated>>>,
    mode: Mode,
    context: ContextHandle,
}

impl RustCalls {
    /// A process on a new machine, closed, with everything that outlives a close.
    pub fn new(profile: &str, mode: Mode) -> RustCalls {
        let machine = machine(profile);
        let process = Box::new(UnsafeCell::new(process(&machine)));
        let mut caller = RustCalls { machine, process, mode, context: ContextHandle::PRIMARY };
        caller.open().unwrap();
        caller.acquire().unwrap();
        caller.close().unwrap();
        caller
    }

    fn process(&self) -> &Process<Simulated> {
        // SAFETY: it is written only between calls (`caller`).
        unsafe { &*self.process.get() }
    }

    fn call<R>(
        &self,
        call: impl FnOnce(&Guard<'_, Simulated>) -> Result<R, Error>,
    ) -> Result<R, Status> {
        let guard = self.process().enter(self.context).map_err(|error| error.status)?;
        call(&guard).map_err(|error| error.status)
    }
}

impl Caller for RustCalls {
    fn open(&mut self) -> Result<(), Status> {
        self.context = self.mode.open(self.process()).map_err(|error| error.status)?;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Status> {
        self.mode.close(self.process(), self.context).map_err(|error| error.status)
    }

    fn acquire(&self) -> Result<Vec<u32>, Status> {
        self.call(|guard| {
            guard.acquire_and_look(|machine| {
                let nodes = (0..).zip(machine.snapshot().nodes());
                Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
            })
        })
    }

    fn registers(&self) -> bool {
        self.mode == Mode::Primary
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<u64, Status> {
        self.call(|guard| guard.allocate_memory(request))
    }

    fn free(&self, address: u64, size: u64) -> Result<(), Status> {
        self.call(|guard| guard.free_memory(address, size))
    }

    fn map(&self, address: u64, size: u64) -> Result<u64, Status> {
        self.call(|guard| guard.map_memory(address, size))
    }

    fn map_to_nodes(&self, address: u64, size: u64, nodes: &[u32]) -> Result<u64, Status> {
        self.call(|guard| guard.map_memory_to_nodes(address, size, nodes))
    }

    fn unmap(&self, address: u64) -> Result<(), Status> {
        self.call(|guard| guard.unmap_memory(address))
    }

    fn info(&self, address: u64) -> Result<Info, Status> {
        self.call(|guard| {
            guard.pointer_info(address).map(|info| Info {
                kind: info.kind,
                node: info.node,
                flags: info.flags,
                cpu_address: info.cpu_address,
                gpu_address: info.gpu_address,
                size: info.size,
                mapped: info.mapped.to_vec(),
                user_data: info.user_data,
            })
        })
    }

    fn attach(&self, address: u64, data: u64) -> Result<(), Status> {
        self.call(|guard| guard.set_user_data(address, data))
    }

    fn register(&self, address: u64, size: u64) -> Result<(), Status> {
        let flags = MemoryFlags::HOST_ACCESS | MemoryFlags::COARSE_GRAIN;
        self.call(|guard| guard.register_memory(address, size, flags, None))
    }

    fn deregister(&self, address: u64) -> Result<(), Status> {
        self.call(|guard| guard.deregister_memory(address))
    }

    fn available(&self, node: u32) -> Result<u64, Status> {
        self.call(|guard| guard.available_memory(node))
    }

    fn context(&self) -> usize {
        self.context.into_raw()
    }

    fn set_context(&mut self, context: usize) {
        self.context = ContextHandle::from_raw(context).unwrap();
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn platform(&self) -> &Simulated {
        self.process().platform()
    }

    fn object(&self) -> *mut [MaybeUninit<u8>] {
        let size = size_of::<Process<Simulated>>();
        ptr::slice_from_raw_parts_mut(self.process.get().cast(), size)
    }
}
