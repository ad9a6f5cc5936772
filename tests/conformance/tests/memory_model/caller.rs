//! What the model calls: the library in one process, by one of its faces.
//!
//! # Safety
//! A fork copies the memory of the process. Here parent and child share it, so the
//! library's own object is put back as it was before the fork, byte for byte, when
//! the child ends. Whatever else of the parent's the child has changed stays
//! changed, and the parent's next calls tell.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use hsakmt_conformance::Simulated;
use hsakmt_core::error::Status;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags, PointerKind};
use kfd_sim::Machine;

/// What an address belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    pub kind: PointerKind,
    pub node: u32,
    pub flags: MemoryFlags,
    pub cpu_address: u64,
    pub gpu_address: u64,
    pub size: u64,
    pub mapped: Vec<u32>,
    pub user_data: u64,
}

/// The library in one simulated process.
pub trait Caller {
    /// Opens the context, and what it needs.
    fn open(&mut self) -> Result<(), Status>;
    /// Closes what `open` opened.
    fn close(&mut self) -> Result<(), Status>;
    /// Reads the machine; the nodes of its GPUs.
    fn acquire(&self) -> Result<Vec<u32>, Status>;
    /// Whether memory of the caller can be registered.
    fn registers(&self) -> bool;

    fn allocate(&self, request: &AllocationRequest) -> Result<u64, Status>;
    fn free(&self, address: u64, size: u64) -> Result<(), Status>;
    fn map(&self, address: u64, size: u64) -> Result<u64, Status>;
    fn map_to_nodes(&self, address: u64, size: u64, nodes: &[u32]) -> Result<u64, Status>;
    fn unmap(&self, address: u64) -> Result<(), Status>;
    fn info(&self, address: u64) -> Result<Info, Status>;
    fn attach(&self, address: u64, data: u64) -> Result<(), Status>;
    fn register(&self, address: u64, size: u64) -> Result<(), Status>;
    fn deregister(&self, address: u64) -> Result<(), Status>;
    fn available(&self, node: u32) -> Result<u64, Status>;

    /// The context that calls are about.
    fn context(&self) -> usize;
    /// Makes calls be about another one.
    fn set_context(&mut self, context: usize);

    fn machine(&self) -> &Machine;
    fn platform(&self) -> &Simulated;
    /// The bytes of the library's own object.
    fn object(&self) -> *mut [MaybeUninit<u8>];
}

/// The library's object as it was at a fork, and which context its program used.
pub struct Image {
    object: Vec<MaybeUninit<u8>>,
    context: usize,
}

impl Image {
    pub fn of(caller: &impl Caller) -> Image {
        // SAFETY: the caller's object is alive, and nobody else calls it.
        let object = unsafe { &*caller.object() }.to_vec();
        Image { object, context: caller.context() }
    }

    /// Makes the object the parent's again; the child's is forgotten.
    pub fn restore(self, caller: &mut impl Caller) {
        let object = caller.object();
        assert_eq!(object.len(), self.object.len());
        // SAFETY: as above; the bytes are those that were there, and nothing that they
        // refer to is the child's to free.
        unsafe {
            std::ptr::copy_nonoverlapping(self.object.as_ptr(), object.cast(), self.object.len());
        }
        caller.set_context(self.context);
    }
}
