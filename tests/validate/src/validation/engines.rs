//! Queues and copies of the library, for stages.
//!
//! # Safety
//!
//! Queues are used with guards of the one context there is and closed before it. Copies
//! are between allocations of the library that stay until the copy has returned, and
//! nobody else uses them.
#![allow(unsafe_code)]

use hsakmt_core::copy::{CopyPath, CopyRequest};
use hsakmt_core::error::Error;
use hsakmt_core::process::Guard;
use hsakmt_core::queue::command_queue::CommandQueue;
use hsakmt_core::seam::Platform;
use hsakmt_core::uapi::kfd::QueueType;

/// Opens a queue on a GPU node.
///
/// # Errors
/// Those of [`CommandQueue::open`].
pub fn open<P: Platform>(
    guard: &Guard<'_, P>,
    node: u32,
    queue_type: QueueType,
) -> Result<CommandQueue, Error> {
    // SAFETY: the module's text.
    unsafe { CommandQueue::open(guard, node, queue_type, 0) }
}

/// Copies by an engine.
///
/// # Errors
/// Those of [`Guard::copy_memory`].
pub fn copy<P: Platform>(
    guard: &Guard<'_, P>,
    destination: u64,
    source: u64,
    size: u64,
) -> Result<(), Error> {
    let request = CopyRequest { destination, source, size, path: Some(CopyPath::Engine) };
    // SAFETY: the module's text.
    unsafe { guard.copy_memory(&request) }.map(drop)
}
