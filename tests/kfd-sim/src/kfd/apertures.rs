//! GET_PROCESS_APERTURES and GET_PROCESS_APERTURES_NEW: kernel-rules section 2,
//! with "Apertures" (kfd_flat_memory.c).

use alloc::vec::Vec;

use hsakmt_core::errno::Errno;

use super::dispatch::Request;

/// Bytes of one entry: six u64 (LDS, scratch, GPU VM: base and limit), gpu_id
/// u32, padding u32.
const ENTRY: usize = 56;
/// Entries of the old request.
const OLD_ENTRIES: usize = 7;
/// The LDS and scratch windows are this large.
const WINDOW: u64 = 4 << 30;

/// Seven entries from 0 on, num_of_nodes u32 at 392.
pub(super) fn get(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let entries = entries(request)?;
    let count = entries.len().min(OLD_ENTRIES);
    for (place, entry) in request.arguments.0.chunks_exact_mut(ENTRY).zip(&entries[..count]) {
        place.copy_from_slice(entry);
    }
    request.arguments.put_u32(ENTRY * OLD_ENTRIES, count as u32);
    Ok(0)
}

/// The array's address at 0, num_of_nodes u32 at 8.
pub(super) fn get_new(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let entries = entries(request)?;
    let asked = request.arguments.u32(8) as usize;
    if asked == 0 {
        request.arguments.put_u32(8, entries.len() as u32);
        return Ok(0);
    }
    let nodes = request.state.topology.nodes.len();
    if request.state.kernel.limits_apertures_to_nodes() && asked > nodes {
        return Err(Errno::EINVAL);
    }
    // kernel-truth: 2^32-1 entries are ENOMEM where the count is not limited.
    if asked.saturating_mul(ENTRY) > i32::MAX as usize {
        return Err(Errno::ENOMEM);
    }
    let count = asked.min(entries.len());
    request.arguments.put_u32(8, count as u32);
    for (n, entry) in entries.iter().take(count).enumerate() {
        request.arrays.write(0, n * ENTRY, entry)?;
    }
    Ok(0)
}

fn entries(request: &Request<'_, '_, '_>) -> Result<Vec<[u8; ENTRY]>, Errno> {
    let topology = &request.state.topology;
    let base_of_gfx9 = request.state.kernel.gpuvm_base();
    let entry = |gpu_id: u32| {
        let gfx9 = topology.gpu(gpu_id).is_none_or(|gpu| gpu.is_gfx9_or_later());
        let (lds, scratch, base, limit) = if gfx9 {
            (1 << 48, 2 << 48, base_of_gfx9, (1 << 47) - 1)
        } else {
            (1 << 61, (1 << 61) + WINDOW, 0x1_0000, (1 << 40) - 1)
        };
        let words = [lds, lds + WINDOW - 1, scratch, scratch + WINDOW - 1, base, limit];
        let mut entry = [0; ENTRY];
        for (place, word) in entry.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&u64::to_ne_bytes(word));
        }
        entry[48..52].copy_from_slice(&gpu_id.to_ne_bytes());
        entry
    };
    Ok(request.object()?.records.iter().map(|record| entry(record.gpu_id)).collect())
}
