//! The pure half of queues: what can be decided without a driver.
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
//!   place here with unsafe code.
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
//! context first.

pub mod aql_ring;
pub mod command_ring;
pub mod mapped;
pub mod packets;
pub mod plan;
pub mod pointers;
pub mod reservation;
pub mod sizes;
#[cfg(test)]
mod watching;
