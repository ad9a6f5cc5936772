//! AVAILABLE_MEMORY: kernel-rules section 2, "Accounting" (amdgpu_amdkfd_gpuvm.c).

use hsakmt_core::errno::Errno;

use super::dispatch::Request;

/// VRAM is counted in pieces of this size.
const GRANULE: u64 = 2 << 20;
/// The least that is kept for page tables.
const LEAST_RESERVE: u64 = 8 << 20;
/// RAM that no GPU may take, beside 1/64 of it.
const SYSTEM_RESERVE: u64 = 3 << 29;

/// available at 0, gpu_id u32 at 8.
pub(super) fn available(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let gpu_id = request.arguments.u32(8);
    request.object()?.gpu(gpu_id)?;
    let topology = &request.state.topology;
    let all: u64 = topology.gpus().map(|(_, gpu)| gpu.vram).sum();
    let reserve = (all >> 14).max(LEAST_RESERVE);
    let gpu = topology.gpu(gpu_id).ok_or(Errno::EINVAL)?;
    let available = if gpu.apu && request.state.kernel.apu_vram_is_gtt(gpu) {
        // The least of the limits that hold, in pages.
        let ram: u64 = topology
            .nodes
            .iter()
            .filter(|node| node.cpu.is_some())
            .flat_map(|node| &node.banks)
            .map(|bank| bank.size_in_bytes)
            .sum();
        let system = if ram < 2 * SYSTEM_RESERVE {
            ram / 2
        } else {
            (ram - ram / 64).saturating_sub(SYSTEM_RESERVE)
        };
        system.min(gpu.gtt) / 4096 * 4096
    } else {
        gpu.vram.saturating_sub(reserve) / GRANULE * GRANULE
    };
    request.arguments.put_u64(0, available);
    Ok(0)
}
