//! How a GPU lays out tiled surfaces.

use zerocopy::IntoBytes;

use super::Channel;
use crate::error::{Error, Object, Status};
use crate::seam::{Array, Platform};
use crate::uapi::kfd::GetTileConfig;

/// The most modes of either kind that a driver has (`amdgpu_gfx.h`: 32 and 16).
pub const TILE_MODES_MAX: usize = 32;

/// A GPU's tiling modes and address configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TileConfig {
    /// The tiling modes; `tile_modes_used` of them count.
    pub tile_modes: [u32; TILE_MODES_MAX],
    /// The macro tiling modes; `macro_tile_modes_used` of them count.
    pub macro_tile_modes: [u32; TILE_MODES_MAX],
    /// How many tiling modes were asked for and exist.
    pub tile_modes_used: u32,
    /// How many macro tiling modes were asked for and exist.
    pub macro_tile_modes_used: u32,
    /// The register GB_ADDR_CONFIG.
    pub gb_addr_config: u32,
    /// Memory banks.
    pub num_banks: u32,
    /// Memory ranks.
    pub num_ranks: u32,
}

/// Asks for at most so many modes of each kind.
pub(crate) fn tile_config<P: Platform>(
    channel: &Channel<'_, P>,
    gpu_id: u32,
    tile_modes: u32,
    macro_tile_modes: u32,
) -> Result<TileConfig, Error> {
    let mut config = TileConfig::default();
    let most = TILE_MODES_MAX as u32;
    let mut block = GetTileConfig {
        num_tile_configs: tile_modes.min(most),
        num_macro_tile_configs: macro_tile_modes.min(most),
        gpu_id,
        ..GetTileConfig::default()
    };
    let arrays = &mut [
        Array::Out(config.tile_modes.as_mut_bytes()),
        Array::Out(config.macro_tile_modes.as_mut_bytes()),
    ];
    channel.execute(&mut block, arrays, Status::ERROR, Object::Gpu(gpu_id))?;
    Ok(TileConfig {
        tile_modes_used: block.num_tile_configs.min(most),
        macro_tile_modes_used: block.num_macro_tile_configs.min(most),
        gb_addr_config: block.gb_addr_config,
        num_banks: block.num_banks,
        num_ranks: block.num_ranks,
        ..config
    })
}
