//! Memory: addresses, buffers, mappings, registrations.

mod calls;
mod flags;
mod free_space;
mod pointer;
mod tree;

pub use flags::MemoryFlags;
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
