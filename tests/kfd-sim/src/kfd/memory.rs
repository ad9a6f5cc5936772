//! AVAILABLE_MEMORY: kernel-rules section 2, "Accounting" (amdgpu_amdkfd_gpuvm.c).

use hsakmt_core::errno::Errno;

use super::dispatch::Request;

/// available at 0, gpu_id u32 at 8. A GPU that was unplugged is ENODEV.
pub(super) fn available(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let gpu_id = request.arguments.u32(8);
    request.object()?.gpu(gpu_id)?;
    let state = &*request.state;
    let gpu = state.topology.gpu(gpu_id).ok_or(Errno::EINVAL)?;
    let vram_is = state.kernel.place_of_vram(gpu);
    let available = state.memory.available(&state.topology, gpu, vram_is);
    request.arguments.put_u64(0, available);
    Ok(0)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::uapi::kfd::AvailableMemory;

    use crate::fixture::{ask, boot, gpu_id, kfd};

    fn available(profile: &str) -> u64 {
        let sim = boot(profile);
        let mut block = AvailableMemory { gpu_id: gpu_id(&sim, 0), ..Default::default() };
        assert_eq!(ask(&sim, &kfd(&sim), &mut block), Ok(0));
        block.available
    }

    #[test]
    fn the_page_tables_reserve_is_left_out_in_steps_of_2_mib() {
        assert_eq!(available("mi50"), (16 << 30) - (8 << 20));
        // Eight times 192 GiB: 96 MiB on each.
        assert_eq!(available("mi300x"), (192 << 30) - (96 << 20));
        assert_eq!(available("rx7900:vram=1025M"), (1024 << 20) - (8 << 20));
    }

    #[test]
    fn an_apu_has_system_memory_except_where_the_carve_out_is_large() {
        assert_eq!(available("apu:ram=16G"), 8 << 30);
        // The least of system memory, GTT and carve-out.
        assert_eq!(available("apu:ram=16G,vram=12G,kernel=7.2"), 8 << 30);
        assert_eq!(available("apu:ram=32G,vram=16G,kernel=7.2"), (16 << 30) - (8 << 20));
        assert_eq!(available("apu:ram=16G,vram=12G,kernel=6.1"), (12 << 30) - (8 << 20));
        assert_eq!(available("apu:ram=2G,kernel=6.12"), 1 << 30);
    }

    #[test]
    fn an_unknown_gpu_is_einval_and_no_vm_is_needed() {
        let sim = boot("mi50");
        let mut block = AvailableMemory { gpu_id: 1, ..Default::default() };
        assert_eq!(ask(&sim, &kfd(&sim), &mut block), Err(Errno::EINVAL));
    }
}
