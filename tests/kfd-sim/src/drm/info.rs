//! DRM_IOCTL_AMDGPU_INFO: kernel-rules section 4 (amdgpu_kms.c).

use alloc::vec;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;

use super::dispatch::{NOT_SIMULATED, Request};
use crate::kernel::Kernel;
use crate::user_memory::Arguments;

/// Queries of `amdgpu_drm.h`.
const ACCEL_WORKING: u32 = 0x00;
const VRAM_GTT: u32 = 0x14;
const READ_MMR_REG: u32 = 0x15;
const DEV_INFO: u32 = 0x16;
const MEMORY: u32 = 0x19;
/// The highest query that these kernels know.
const LAST_QUERY: u32 = 0x22;

pub(super) fn query(arguments: &Arguments) -> u32 {
    arguments.u32(12)
}

/// return_pointer at 0, return_size u32 at 8, query u32 at 12, its arguments at
/// 16. return_size or pointer 0 is EINVAL, and so is an unknown query; otherwise
/// min(return_size, answer) bytes are written.
pub(super) fn get(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let room = request.arguments.u32(8) as usize;
    if room == 0 || !request.arrays.is_present(0) {
        return Err(Errno::EINVAL);
    }
    let answer = match query(&request.arguments) {
        ACCEL_WORKING => 1_u32.to_ne_bytes().to_vec(),
        VRAM_GTT => vram_gtt(request),
        DEV_INFO => dev_info(request),
        MEMORY => memory(request),
        READ_MMR_REG => return Err(NOT_SIMULATED),
        query if query <= LAST_QUERY => return Err(NOT_SIMULATED),
        _ => return Err(Errno::EINVAL),
    };
    request.arrays.write(0, 0, &answer[..room.min(answer.len())])?;
    Ok(0)
}

/// vram_size, vram_cpu_accessible_size, gtt_size u64.
fn vram_gtt(request: &Request<'_, '_, '_>) -> Vec<u8> {
    let gpu = request.gpu;
    let visible = gpu.visible_vram;
    [gpu.vram, visible, gpu.gtt].into_iter().flat_map(u64::to_ne_bytes).collect()
}

/// Three heaps (VRAM, visible VRAM, GTT) of total_heap_size, usable_heap_size,
/// heap_usage, max_allocation u64.
fn memory(request: &Request<'_, '_, '_>) -> Vec<u8> {
    let gpu = request.gpu;
    let (vram, gtt) = request.state.memory.used(gpu.id);
    // Where memory is within the VRAM is not modelled: the visible part fills first.
    let visible = gpu.visible_vram.min(vram);
    [(gpu.vram, vram), (gpu.visible_vram, visible), (gpu.gtt, gtt)]
        .into_iter()
        .flat_map(|(total, used)| [total, total, used, total / 4 * 3])
        .flat_map(u64::to_ne_bytes)
        .collect()
}

/// `struct drm_amdgpu_info_device`; older kernels have a shorter one.
fn dev_info(request: &Request<'_, '_, '_>) -> Vec<u8> {
    let gpu = request.gpu;
    let p = &gpu.properties;
    let xcc = p.num_xcc.max(1);
    let engines = p.array_count / xcc / p.simd_arrays_per_engine.max(1);
    let units = p.simd_count.checked_div(p.simd_per_cu).unwrap_or(0);
    let hole = 1_u64 << 47;
    // Below the top: save area and sequence page 2 MiB each, trap page 64 KiB.
    let top = (1_u64 << 48) - (4 << 20) - (64 << 10);
    let mut info = Arguments(vec![
        0;
        match request.state.kernel.kernel {
            Kernel::V6_1 => 392,
            Kernel::V6_12 => 440,
            Kernel::V7_2 => 448,
        }
    ]);
    for (at, value) in [
        (0, p.device_id),
        (8, gpu.render.external_revision),
        (12, gpu.render.pci_revision),
        (16, gpu.render.family),
        (20, engines),
        (24, p.simd_arrays_per_engine),
        (28, gpu.render.counter_khz),
        (48, units),
        (160, 4096),
        (164, 2 << 20),
        (168, 4096),
        (176, gpu.render.vram_type),
        (180, gpu.render.vram_bits),
        (240, p.wave_front_size),
        (248, p.cu_per_simd_array),
    ] {
        info.put_u32(at, value);
    }
    for (at, value) in [
        (32, u64::from(p.max_engine_clk_fcompute) * 1000),
        (40, u64::from(gpu.render.memory_clock) * 1000),
        // AMDGPU_IDS_FLAGS_FUSION.
        (136, u64::from(gpu.apu)),
        (144, 0x1_0000),
        (152, top.min(hole)),
        (336, u64::MAX << 47),
        (344, (u64::MAX << 48) | top),
    ] {
        info.put_u64(at, value);
    }
    // cu_bitmap[4][4] from 56: a row for each engine, a word for each array.
    for engine in 0..engines.min(4) {
        for array in 0..p.simd_arrays_per_engine.min(4) {
            let at = 56 + 16 * engine as usize + 4 * array as usize;
            let count = (units / p.array_count.max(1)).min(31);
            info.put_u32(at, (1 << count) - 1);
        }
    }
    info.0
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;
    use alloc::vec::Vec;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::Array;
    use hsakmt_core::uapi::amdgpu::{Info, InfoQuery};
    use hsakmt_core::uapi::kfd::AllocMemoryFlags as Flags;

    use crate::fixture::{Sim, alloc, ask_with, bind, boot, broken, render};
    use crate::violation::Rule;

    fn info(sim: &Sim, query: u32, return_size: u32, room: usize) -> Result<Vec<u8>, Errno> {
        let mut block = Info { return_size, query: InfoQuery(query), ..Info::default() };
        let mut answer = vec![0xee; room];
        let array = if room == 0 { Array::Absent } else { Array::Out(&mut answer) };
        ask_with(sim, &render(sim, 0), &mut block, &mut [array])?;
        Ok(answer)
    }

    fn words(bytes: &[u8]) -> Vec<u64> {
        bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn a_null_pointer_or_size_is_einval_before_the_query() {
        let sim = boot("rx7900");
        assert_eq!(info(&sim, super::DEV_INFO, 0, 8), Err(Errno::EINVAL));
        assert_eq!(info(&sim, super::DEV_INFO, 8, 0), Err(Errno::EINVAL));
        assert_eq!(info(&sim, 0x9999, 4, 4), Err(Errno::EINVAL));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn the_smaller_of_size_and_answer_is_written() {
        let sim = boot("rx7900");
        assert_eq!(info(&sim, super::ACCEL_WORKING, 2, 4).unwrap(), [1, 0, 0xee, 0xee]);
        assert_eq!(info(&sim, super::ACCEL_WORKING, 6, 6).unwrap(), [1, 0, 0, 0, 0xee, 0xee]);
    }

    #[test]
    fn an_older_kernel_writes_a_shorter_device_info() {
        for (kernel, length) in [("6.1", 392), ("6.12", 440), ("7.2", 448)] {
            let sim = boot(&format!("rx7900:kernel={kernel}"));
            let answer = info(&sim, super::DEV_INFO, 512, 512).unwrap();
            let written = answer.iter().rposition(|&byte| byte != 0xee).unwrap() + 1;
            assert_eq!(written, length, "{kernel}");
        }
    }

    #[test]
    fn the_device_is_the_one_of_the_node() {
        let number = |profile: &str, at: usize| {
            let answer = info(&boot(profile), super::DEV_INFO, 448, 448).unwrap();
            u32::from_ne_bytes(answer[at..at + 4].try_into().unwrap())
        };
        assert_eq!(number("rx7900", 0), 0x744c);
        assert_eq!(number("rx7900", 16), 145);
        assert_eq!([number("rx7900", 136), number("apu", 136)], [0, 1]);
        assert_eq!(number("rx7900", 48), 96);
    }

    #[test]
    fn heaps_are_those_of_the_node() {
        let sim = boot("rx7900:vram=8G,bar=256M");
        let gtt = 32 << 30;
        assert_eq!(words(&info(&sim, super::VRAM_GTT, 24, 24).unwrap()), [8 << 30, 1 << 28, gtt]);
        let heaps = words(&info(&sim, super::MEMORY, 96, 96).unwrap());
        assert_eq!([heaps[0], heaps[4], heaps[8]], [8 << 30, 1 << 28, gtt]);
    }

    #[test]
    fn usage_is_that_of_all_processes() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        for (flags, size) in [(Flags::VRAM, 0x3000), (Flags::GTT, 0x5000)] {
            alloc(&sim, &bound.kfd, 0, flags, 0, size).unwrap();
        }
        let other = sim.machine().spawn(crate::AddressesOnly::new());
        let heaps = words(&info(&other, super::MEMORY, 96, 96).unwrap());
        // The trap page is system memory too.
        assert_eq!([heaps[2], heaps[6], heaps[10]], [0x3000, 0x3000, 0x5000 + 8192]);
    }

    #[test]
    fn queries_of_the_driver_that_are_not_simulated_are_loud() {
        let sim = boot("rx7900");
        assert_eq!(info(&sim, super::READ_MMR_REG, 4, 4), Err(Errno::ENOTTY));
        assert_eq!(broken(&sim), [Rule::NotSimulated]);
    }
}
