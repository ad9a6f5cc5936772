//! Dma-bufs: file descriptions over memory, which they hold (dma-buf.c,
//! drm_prime.c, amdgpu_dma_buf.c; kernel-rules section 2, "dma-buf", and section 4,
//! "PRIME").
//!
//! A piece of memory has one dma-buf at a time. Its descriptors, its CPU mappings,
//! and the buffers and GEM handles that were exported to it or imported from it keep
//! it; it keeps the memory.

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{MapDevice, Protection};

use crate::address_space::Shown;
use crate::descriptor::{File, FileId};
use crate::gpu_memory::{DmaBuf, MemoryId};
use crate::machine::State;
use crate::process::Pid;

/// The memory behind a descriptor: EBADF for one that is not open, EINVAL for
/// something else (dma_buf_get).
pub(crate) fn of_descriptor(state: &State, pid: Pid, number: u32) -> Result<MemoryId, Errno> {
    match state.file(pid, number) {
        None => Err(Errno::EBADF),
        Some((_, File::DmaBuf { memory, .. })) => Ok(memory),
        Some(_) => Err(Errno::EINVAL),
    }
}

/// The dma-buf of memory, made if there is none. `writable` counts only then.
pub(crate) fn of_memory(state: &mut State, id: MemoryId, writable: bool) -> Result<FileId, Errno> {
    let file = FileId(state.number());
    let memory = state.memory.get_mut(id).ok_or(Errno::EINVAL)?;
    if let Some(dma_buf) = memory.dma_buf {
        return Ok(dma_buf.file);
    }
    memory.dma_buf = Some(DmaBuf { file, holds: 0 });
    state.memory.hold(id);
    state.files.insert(file, File::DmaBuf { memory: id, writable });
    Ok(file)
}

/// A buffer or GEM handle holds the dma-buf of its memory.
pub(crate) fn hold(state: &mut State, id: MemoryId) {
    if let Some(dma_buf) = state.memory.get_mut(id).and_then(|memory| memory.dma_buf.as_mut()) {
        dma_buf.holds += 1;
    }
}

/// One of them goes.
pub(crate) fn let_go(state: &mut State, id: MemoryId) {
    let dma_buf = state.memory.get_mut(id).and_then(|memory| memory.dma_buf.as_mut());
    if let Some(dma_buf) = dma_buf {
        dma_buf.holds = dma_buf.holds.saturating_sub(1);
        if dma_buf.holds == 0 {
            let file = dma_buf.file;
            end_if_unused(state, file);
        }
    }
}

/// Whether buffers or handles hold a dma-buf.
fn is_held(state: &State, file: FileId) -> bool {
    let Some(File::DmaBuf { memory, .. }) = state.files.get(&file) else { return false };
    let dma_buf = state.memory.get(*memory).and_then(|memory| memory.dma_buf);
    dma_buf.is_some_and(|dma_buf| dma_buf.file == file && dma_buf.holds > 0)
}

/// Ends a dma-buf that nobody has any more.
pub(crate) fn end_if_unused(state: &mut State, file: FileId) {
    let Some(&File::DmaBuf { memory, .. }) = state.files.get(&file) else { return };
    let mut descriptors = state.processes.values().flat_map(|process| process.descriptors.iter());
    if is_held(state, file)
        || descriptors.any(|(_, descriptor)| descriptor.file == file)
        || state.spaces.values().any(|space| space.shows_file(file))
    {
        return;
    }
    state.files.remove(&file);
    if let Some(memory) = state.memory.get_mut(memory) {
        memory.dma_buf = None;
    }
    state.memory.let_go(memory);
}

/// mmap of a dma-buf: beyond its end EINVAL (dma_buf_mmap_internal), for writing only
/// where it was opened so (mm/mmap.c, EACCES).
pub(crate) fn mmap(
    state: &State,
    file: FileId,
    memory: MemoryId,
    writable: bool,
    mapping: MapDevice,
) -> Result<Shown, Errno> {
    if mapping.protection.contains(Protection::WRITE) && !writable {
        return Err(Errno::EACCES);
    }
    let size = state.memory.get(memory).ok_or(Errno::EINVAL)?.size;
    match mapping.offset.checked_add(mapping.length as u64) {
        Some(end) if end <= size => Ok(Shown::DmaBuf { file, memory }),
        _ => Err(Errno::EINVAL),
    }
}
