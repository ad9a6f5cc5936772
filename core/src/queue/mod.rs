//! The pure half of queues: what can be decided without a driver.
//!
//! - [`sizes`]: how large the buffers are that a queue brings along, to the byte
//!   what the driver wants.

pub mod sizes;
