//! Memory: addresses, buffers, mappings, registrations.
//!
//! # Objects
//! Each allocation and each registration by a buffer is an object in the
//! context's books, keyed by its first GPU address, with the driver's handles, the
//! GPUs that have it mapped, and the addresses that it goes back to. An object is
//! *reserved* while it is made (nobody else sees it), *live*, or *busy* while one
//! thread has its handles and calls the driver; other calls that would change it
//! wait for their turn, queries do not. So a FREE never meets a MAP of the same
//! buffer, and no handle is sent after its FREE, though the driver reuses handles
//! at once. A failed call puts everything back; where even that fails the books say
//! what is mapped in truth.
//!
//! # Addresses
//! Device memory and small host memory are cut from regions of reserved address
//! space, in user space: an allocation without host access costs the driver's
//! requests and no other system call. Host memory of 2 MiB and more and
//! allocations of 1 GiB and more have mappings of their own. Host memory below
//! 2 MiB lies where huge pages are off, because splitting one for a neighbour's
//! sake would stop every queue of the process. A freed range whose contents the CPU
//! saw is mapped anew without rights; one that a stray access of a GPU has left a
//! driver's range in is mapped anew when an allocation meets it (EADDRINUSE).
//! GPUs that reach fewer addresses than the CPU get theirs from the gaps in the
//! kernel's own list of mappings. Memory without an address is named by a number in
//! a window above all addresses, another one for each context.
//!
//! # Registration
//! See the head of `register.rs` for the rule of nested and overlapping ranges.
//!
//! # Sharing
//! A buffer that was made elsewhere is taken in by its dma-buf (`share.rs`) or by a
//! number of the out-of-tree driver (`ipc.rs`) and is an object as others are, which a
//! deregistration takes back. No descriptor is kept.
//!
//! # Buffer objects
//! A dma-buf can also be taken in under a handle of the DRM driver, and be mapped at
//! addresses of the caller's choice: see the head of `gem`, which has books of its own.
//!
//! # Memory of an APU
//! An APU's own memory is the system's. The GPU's driver makes it, or, if the options say
//! so, the process does, by a file in memory and udmabuf (`udmabuf.rs`).
//!
//! # Layers
//! `calls` is the face; `allocate`, `free`, `map`, `register`, `svm`, `query`, `share`,
//! `ipc`, `gem`, `udmabuf` do the work of an `Access` (context, way to the driver, books);
//! `reach` says what a
//! range is and who reaches it; `books` has the lock and
//! the rule of turns; `spans`, `regions`, `free_space`, `free_ranges` manage
//! addresses; `buffers` are the driver's, `pages` the process's; `tree` is the ordered
//! map below all of them.

mod access;
mod allocate;
mod attributed;
mod books;
mod buffers;
mod calls;
mod flags;
mod free;
mod free_ranges;
mod free_space;
mod gem;
mod gpu_set;
mod ipc;
mod map;
mod node_sets;
mod object;
mod objects;
mod pages;
mod pointer;
mod query;
mod reach;
mod regions;
mod register;
mod share;
mod spans;
mod svm;
mod tree;
mod udmabuf;

pub(crate) use access::{Access, Scene};
pub(crate) use attributed::AttributedPages;
pub(crate) use books::Memory;
pub use flags::MemoryFlags;
pub use gem::{BufferHandle, GpuRights, ImportFailure, ImportedObject, ObjectMapping, Tag};
pub(crate) use gpu_set::GpuSet;
pub use ipc::{SharedHandle, SharedMemory};
pub use pointer::{PointerInfo, PointerKind};
pub(crate) use reach::Extent;
pub use share::{BufferInfo, ExportedBuffer, ImportedBuffer};

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
