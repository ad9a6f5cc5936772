//! Queues: rings that engines of a GPU read, their pointers and doorbells, and the
//! buffers that the driver wants beside them.
//!
//! # Pure
//! What can be decided without a driver:
//!
//! - [`sizes`]: how large the buffers are that a queue brings along, to the byte
//!   what the driver wants.
//! - [`aql_ring`]: packets of 64 bytes, any number of producers, no lock.
//!   [`reservation`] is how they share the places.
//! - [`command_ring`]: PM4 and SDMA packets of various lengths, one producer.
//! - [`pointers`]: units and widths of read pointer, write pointer and doorbell for
//!   each kind of ring and generation of chips.
//! - [`packets`]: what goes into the rings, for each generation.
//! - [`plan`]: the blocks that make and change a queue, and where its doorbell is.
//! - [`mapped`]: the same rings and pointers as they lie in mapped memory; the only
//!   pure one with unsafe code.
//!
//! # With a driver
//! [`command_queue`] is a queue with all that belongs to it. `calls` is the face; `buffers` makes control block, end-of-pipe buffer and save
//! area, `doorbells` maps a GPU's doorbells once, `books` remember the queues by the
//! address of their control block, which is their public id. Each queue is taken by one
//! call at a time: the driver gives its number anew as soon as it is destroyed.
//!
//! # Order
//! What an engine reads because of a store must be in memory before that store.
//! So every submission is: packets, barrier, what makes them visible (the headers
//! of AQL, else the write pointer), barrier, doorbell. The barriers are
//! [`Os::wmb_device`](crate::seam::Os::wmb_device), since Rust's own fences say
//! nothing of devices.
//!
//! # A lost device
//! After a reset newer drivers take the doorbells' mappings away, and a store to
//! one raises SIGBUS. The rings do not know of that: whoever submits asks the
//! context first ([`Guard::check_queue`](crate::process::Guard::check_queue)), which
//! knows what waits for hardware exceptions have told.

pub mod aql_ring;
mod books;
mod buffers;
mod calls;
pub mod command_queue;
pub mod command_ring;
mod doorbells;
pub mod mapped;
pub mod packets;
pub mod plan;
pub mod pointers;
pub mod reservation;
pub mod sizes;
#[cfg(test)]
mod watching;

pub(crate) use books::Queues;
pub(crate) use calls::end_all;
pub(crate) use doorbells::{Doorbells, abandon as abandon_doorbells};

use crate::uapi::kfd::QueueType;
use plan::{Ring, Share};
use pointers::DoorbellType;

/// What queue is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueOptions {
    /// The GPU, by its public node id.
    pub node: u32,
    /// What it executes.
    pub queue_type: QueueType,
    /// Its share of the engine.
    pub share: Share,
    /// Its ring: the caller's memory, mapped on the GPU, a mapping of its own.
    pub ring: Ring,
    /// The copy engine of a [`QueueType::SDMA_BY_ENG_ID`] queue.
    pub sdma_engine: u32,
    /// Bytes of the metadata ring behind the ring; 0 for none.
    pub metadata_ring_bytes: u32,
    /// Where the caller keeps the pointers of an AQL queue. Others have theirs in
    /// memory of the library.
    pub aql_pointers: Option<AqlPointerAddresses>,
    /// The event that tells of the queue's exceptions; 0 for none.
    pub error_event: u32,
    /// The address of a `u64` that says what they were; 0 for none.
    pub error_reason: u64,
}

/// Where the pointers of an AQL queue are: each 8 bytes, in a page that is a mapping of
/// its own on the GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AqlPointerAddresses {
    /// The read pointer.
    pub read: u64,
    /// The write pointer.
    pub write: u64,
}

/// A queue that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Its public id: the address of its control block.
    pub id: u64,
    /// The driver's number for it.
    pub kernel_id: u32,
    /// The address of its doorbell, for the CPU.
    pub doorbell: u64,
    /// What the doorbell takes.
    pub doorbell_type: DoorbellType,
    /// The address of its read pointer.
    pub read_pointer: u64,
    /// The address of its write pointer.
    pub write_pointer: u64,
}

/// What a stopped queue has saved, of its first die. Lengths are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueInfo {
    /// Bits of the mask of compute units.
    pub cu_mask_bits: u32,
    /// The address of the mask's first word; valid until the queue is destroyed.
    pub cu_mask: u64,
    /// The address of the newest entry of the control stack, which grows downwards.
    pub control_stack_top: u64,
    /// What of the control stack is in use.
    pub control_stack_used: u32,
    /// The address of the saved waves.
    pub wave_state: u64,
    /// What of them is in use.
    pub wave_state_used: u32,
    /// The address of the save area, where its header is.
    pub save_area: u64,
    /// The whole save area.
    pub save_area_bytes: u64,
}
