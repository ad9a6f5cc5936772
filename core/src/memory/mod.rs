//! Memory: addresses, buffers, mappings, registrations.

mod access;
mod allocate;
mod books;
mod calls;
mod flags;
mod free;
mod free_ranges;
mod free_space;
mod gpu_set;
mod map;
mod node_sets;
mod object;
mod pointer;
mod query;
mod regions;
mod register;
mod svm;
mod tree;

pub(crate) use access::{Access, Scene};
pub(crate) use books::Memory;
pub use flags::MemoryFlags;
pub(crate) use gpu_set::GpuSet;
pub use pointer::{PointerInfo, PointerKind};

/// What is to be allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationRequest {
    /// The node, by its public id.
    pub node: u32,
    /// Bytes; a multiple of the page size that `flags` asks for.
    pub size: u64,
    /// Bytes, a power of two of at least a page; 0 for none in particular.
    pub alignment: u64,
    /// What it is to be.
    pub flags: MemoryFlags,
    /// The address wanted, with [`MemoryFlags::FIXED_ADDRESS`].
    pub address: u64,
}
