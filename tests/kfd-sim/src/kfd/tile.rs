//! GET_TILE_CONFIG: kernel-rules section 2.

use hsakmt_core::errno::Errno;

use super::dispatch::Request;

/// Words of the two tables in the driver (amdgpu_gfx.h).
const TILE_WORDS: usize = 32;
const MACRO_TILE_WORDS: usize = 16;

/// Addresses of the two arrays at 0 and 8, their counts in words u32 at 16 and
/// 20, gpu_id u32 at 24, then gb_addr_config, num_banks, num_ranks u32.
pub(super) fn get(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let gpu_id = request.arguments.u32(24);
    request.object()?.gpu(gpu_id)?;
    let config = request.state.topology.gpu(gpu_id).map_or(0, |gpu| gpu.render.gb_addr_config);
    request.arguments.put_u32(28, config);
    // gfx9 and later have no banks and ranks, and their tables are all zero.
    request.arguments.put_u32(32, 0);
    request.arguments.put_u32(36, 0);
    for (pointer_at, count_at, words) in [(0, 16, TILE_WORDS), (8, 20, MACRO_TILE_WORDS)] {
        let count = words.min(request.arguments.u32(count_at) as usize);
        request.arguments.put_u32(count_at, count as u32);
        let zeros = [0; 4 * TILE_WORDS];
        if let Err(errno) = request.arrays.write(pointer_at, 0, &zeros[..4 * count]) {
            request.arguments.put_u32(count_at, 0);
            return Err(errno);
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::Array;
    use hsakmt_core::uapi::kfd::GetTileConfig;

    use crate::fixture::{ask_with, boot, gpu_id, kfd};

    #[test]
    fn counts_are_cut_to_what_exists() {
        let sim = boot("mi300x");
        let mut block = GetTileConfig {
            num_tile_configs: 99,
            num_macro_tile_configs: 3,
            gpu_id: gpu_id(&sim, 0),
            ..Default::default()
        };
        let (mut tiles, mut macros) = ([1_u8; 128], [1_u8; 12]);
        let mut arrays = [Array::Out(&mut tiles), Array::Out(&mut macros)];
        assert_eq!(ask_with(&sim, &kfd(&sim), &mut block, &mut arrays), Ok(0));
        assert_eq!((block.num_tile_configs, block.num_macro_tile_configs), (32, 3));
        assert_ne!(block.gb_addr_config, 0);
        assert_eq!((tiles, macros), ([0; 128], [0; 12]));
    }

    #[test]
    fn an_unknown_gpu_is_einval_and_a_null_array_efault_with_count_0() {
        let sim = boot("mi300x");
        let ask = |gpu_id| {
            let mut block = GetTileConfig { num_tile_configs: 1, gpu_id, ..Default::default() };
            let mut arrays = [Array::Absent, Array::Absent];
            let answer = ask_with(&sim, &kfd(&sim), &mut block, &mut arrays);
            (answer, block.num_tile_configs)
        };
        assert_eq!(ask(0), (Err(Errno::EINVAL), 1));
        assert_eq!(ask(gpu_id(&sim, 0)), (Err(Errno::EFAULT), 0));
    }
}
