//! The doorbells of one GPU and kernel process object, as the CPU sees them.
//!
//! All queues of a process object on one GPU have their doorbells in one slice, which
//! is mapped before the first of them and stays until the context closes; what could
//! not be undone then is found again by the next one. Where the
//! GPU can have it at the same address, too, it is a buffer of the driver's, so that
//! kernels can ring; where not, it is mapped for the CPU alone. Tonga cannot.
//!
//! After a reset of the GPU newer drivers take the mapping away (`kfd_chardev.c`,
//! `kfd_doorbell_mmap`): the next queue maps it anew, and queues of before know that
//! they are lost.

use alloc::vec::Vec;

use super::buffers::QueueNode;
use super::plan::doorbell_slice_bytes;
use crate::context::{Channel, reserve_within};
use crate::error::{Error, Object, Operation, Status};
use crate::fallible::try_push;
use crate::process::io_buffer::{IoBuffer, show};
use crate::seam::{Advice, Os, Platform};
use crate::uapi::kfd::{AllocMemoryFlags, MmapOffset};

/// The mapped slice of one GPU.
#[derive(Debug)]
pub(crate) struct Doorbells {
    buffer: IoBuffer,
    /// How often the GPU was reset, as far as anybody has said.
    resets: u32,
    /// There was a reset since it was mapped.
    torn: bool,
}

/// Where a GPU's doorbells are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) address: u64,
    /// The GPU's resets so far.
    pub(super) resets: u32,
}

/// Maps the slice of a GPU, or finds it.
///
/// # Errors
/// ERROR with the errno; NO_MEMORY for the list. Nothing is left then.
pub(super) fn make<P: Platform>(
    channel: &Channel<'_, P>,
    list: &mut Vec<Doorbells>,
    node: &QueueNode,
) -> Result<Slice, Error> {
    let gpu = Object::Gpu(node.gpu_id);
    let offset = MmapOffset::doorbell(node.gpu_id).0;
    if let Some(known) = list.iter_mut().find(|known| known.buffer.gpu_id == node.gpu_id) {
        if known.torn {
            show(channel, known.buffer.address, known.buffer.length, offset, gpu)?;
            known.torn = false;
        }
        return Ok(Slice { address: known.buffer.address as u64, resets: known.resets });
    }
    list.try_reserve(1)?;
    let page = channel.os().page_size();
    let least = doorbell_slice_bytes(node.doorbell) as usize;
    let length = least
        .checked_next_multiple_of(page)
        .ok_or_else(|| Error::library(Status::ERROR, Operation::MapDevice, gpu))?;
    let address = reserve_within(channel, node.bounds, length)?;
    let mut buffer = IoBuffer::at(node.gpu_id, address, length);
    let shared = node.discrete
        && !node.is_tonga
        && buffer.complete(channel, AllocMemoryFlags::DOORBELL, Some(offset)).is_ok();
    if !shared {
        // What the driver does not take back now it takes back at the end.
        let _ = buffer.unmake_buffer(channel);
        if let Err(error) = show(channel, address, length, offset, gpu) {
            let _ = buffer.unmake(channel);
            return Err(error);
        }
    }
    let _ = channel.os().advise(address, length, Advice::DontFork);
    try_push(list, Doorbells { buffer, resets: 0, torn: false })?;
    Ok(Slice { address: address as u64, resets: 0 })
}

/// Unmaps every slice; what the system refuses to undo stays in the list.
pub(super) fn unmake<P: Platform>(channel: &Channel<'_, P>, list: &mut Vec<Doorbells>) {
    list.retain_mut(|doorbells| doorbells.buffer.unmake(channel).is_err());
}

/// Removes the CPU's mappings alone, for a process object that is about to end and takes
/// its buffers with it.
pub(crate) fn abandon<P: Platform>(platform: &P, list: &mut Vec<Doorbells>) {
    for doorbells in list.drain(..) {
        doorbells.buffer.abandon(platform);
    }
}

/// Notes a reset of a GPU.
pub(super) fn note_reset(list: &mut [Doorbells], gpu_id: u32) {
    for doorbells in list.iter_mut().filter(|known| known.buffer.gpu_id == gpu_id) {
        doorbells.resets = doorbells.resets.saturating_add(1);
        doorbells.torn = true;
    }
}

/// How often a GPU was reset since its doorbells were mapped.
pub(super) fn resets(list: &[Doorbells], gpu_id: u32) -> u32 {
    list.iter().find(|known| known.buffer.gpu_id == gpu_id).map_or(0, |known| known.resets)
}
