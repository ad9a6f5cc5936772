//! How large a queue's own buffers are: control block, end-of-pipe buffer,
//! save area with control stack and debug area.
//!
//! From 6.12 on the driver compares them at creation: the control stack must be
//! *equal* to the node's figure, the save area of a die at least the node's, and
//! the mapping exactly [`SaveArea::mapping_bytes`] (`kfd_queue.c`,
//! `kfd_queue_acquire_buffers`). It publishes two of the three numbers
//! (`ctl_stack_size`, `cwsr_size` of a node), so those come first; the debug
//! area, and everything on kernels without the keys, follows from the driver's
//! formula (`kfd_queue_ctx_save_restore_size`). `tests/save-area` computes that
//! formula from the kernel's own source and compares.

use core::num::NonZeroU32;

use crate::topology::{GfxVersion, Node};
use crate::uapi::kfd::{ContextSaveAreaHeader, QueueType};

/// Bytes of a page of a GPU's address space, in which the driver counts
/// (`AMDGPU_GPU_PAGE_SIZE`).
const GPU_PAGE: u64 = 4096;

/// Bytes of the header at the start of each die's save area.
pub const SAVE_AREA_HEADER_BYTES: u32 = size_of::<ContextSaveAreaHeader>() as u32;

/// The largest control stack that gfx10 hardware knows, in bytes.
const LARGEST_GFX10_CONTROL_STACK: u64 = 0x7000;

/// Bytes that a debugger gets for each wave, and the alignment of their sum.
const DEBUG_BYTES_PER_WAVE: u64 = 32;
const DEBUG_ALIGNMENT: u64 = 64;

/// First version with waves of gfx10 kind (gfx10.1.0).
const GFX10_1: u32 = 100_100;
/// First version with twice the waves and wider registers (gfx12.5.0).
const GFX12_5: u32 = 120_500;
/// First version that can save a queue's waves (Carrizo).
const CARRIZO: u32 = 80_001;
/// The one version that wants a larger end-of-pipe buffer (Tonga).
const TONGA: u32 = 80_002;

/// Bytes of a queue's control block: read and write pointer, and what the
/// library notes of the queue. The driver wants the page that holds a pointer to
/// be a whole mapping, so the block is one page of the system.
#[must_use]
pub const fn control_block_bytes(page_size: u32) -> u32 {
    page_size
}

/// Bytes of the end-of-pipe buffer, 0 where a queue has none.
///
/// The driver's least is 32 KiB for gfx8.0.2 and 4 KiB from gfx8 on, and it checks
/// none where the address is 0 (`kfd_queue.c`); the dies of gfx9.4 run AQL queues
/// without one, gfx7 has none at all, nor have copy engines.
#[must_use]
pub fn end_of_pipe_bytes(version: GfxVersion, queue_type: QueueType) -> u32 {
    let of_gfx9_4 = version.major == 9 && version.minor == 4;
    match queue_type {
        QueueType::COMPUTE_AQL if of_gfx9_4 => 0,
        QueueType::COMPUTE | QueueType::COMPUTE_AQL => match version.target_version() {
            TONGA => 0x8000,
            _ if version.major >= 8 => 0x1000,
            _ => 0,
        },
        _ => 0,
    }
}

/// Sizes of the context save area of a compute queue.
///
/// One area for each compute die, then the debug areas of all of them. In memory:
/// `dies` times (control stack, wave state), then `dies` times debug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaveArea {
    /// Bytes of one die's control stack: `ctl_stack_size` of the request.
    pub control_stack: u32,
    /// Bytes of one die's save area, control stack included:
    /// `ctx_save_restore_size` of the request.
    pub per_die: u32,
    /// Bytes of one die's debug area. No request names it.
    pub debug_per_die: u32,
    /// Compute dies, at least 1.
    pub dies: NonZeroU32,
}

impl SaveArea {
    /// The sizes for a node: the published ones where the kernel has them, else
    /// the formula's. `None` for chips before gfx8.0.1, which save nothing, and
    /// for nodes whose numbers lead nowhere: no compute units, or sizes beyond
    /// 32 bits.
    #[must_use]
    pub fn of(node: &Node) -> Option<SaveArea> {
        let mut area = SaveArea::by_formula(node)?;
        if node.ctl_stack_size != 0 && node.cwsr_size >= node.ctl_stack_size {
            area.control_stack = node.ctl_stack_size;
            area.per_die = node.cwsr_size;
        }
        Some(area)
    }

    /// The driver's formula alone, for pages of 4 KiB.
    #[must_use]
    pub fn by_formula(node: &Node) -> Option<SaveArea> {
        let version = node.gfx_version.target_version();
        if version < CARRIZO {
            return None;
        }
        let dies = NonZeroU32::new(node.num_xcc.max(1))?;
        let units = node.simd_count.checked_div(node.simd_per_cu)? / dies;
        let units = u64::from(units);
        let waves = waves_of_die(node, version, dies, units);
        if waves == 0 {
            return None;
        }

        let per_wave = if version >= GFX10_1 { 12 } else { 8 };
        let stack = waves
            .checked_mul(per_wave)?
            .checked_add(u64::from(SAVE_AREA_HEADER_BYTES))?
            .checked_add(8)?
            .checked_next_multiple_of(GPU_PAGE)?;
        let stack = if node.gfx_version.major == 10 {
            stack.min(LARGEST_GFX10_CONTROL_STACK)
        } else {
            stack
        };
        let state = units
            .checked_mul(wave_state_per_unit(node, version))?
            .checked_next_multiple_of(GPU_PAGE)?;
        let debug =
            waves.checked_mul(DEBUG_BYTES_PER_WAVE)?.checked_next_multiple_of(DEBUG_ALIGNMENT)?;
        Some(SaveArea {
            control_stack: u32::try_from(stack).ok()?,
            per_die: u32::try_from(stack.checked_add(state)?).ok()?,
            debug_per_die: u32::try_from(debug).ok()?,
            dies,
        })
    }

    /// Bytes of the whole area as it is mapped: the driver looks for one mapping of
    /// exactly this length, or for SVM ranges that cover it.
    ///
    /// `page_size` is the system's, in bytes.
    #[must_use]
    pub fn mapping_bytes(&self, page_size: NonZeroU32) -> u64 {
        let die = u64::from(self.per_die).saturating_add(u64::from(self.debug_per_die));
        let all = die.saturating_mul(u64::from(self.dies.get()));
        let page = u64::from(page_size.get());
        all.checked_next_multiple_of(page).unwrap_or(u64::MAX)
    }

    /// The headers of the dies' areas, each with the bytes from the start of the whole
    /// area to it. The driver fills in what they say of control stack and waves.
    ///
    /// An exception of the queue is ORed into the `u64` at `reason`, then the event
    /// is set; 0 for none.
    pub fn headers(
        &self,
        reason: u64,
        event: u32,
    ) -> impl Iterator<Item = (u64, ContextSaveAreaHeader)> + use<> {
        let (per_die, debug, dies) = (self.per_die, self.debug_per_die, self.dies.get());
        (0..dies).map(move |die| {
            let header = ContextSaveAreaHeader {
                debug_offset: dies.saturating_sub(die).saturating_mul(per_die),
                debug_size: debug.saturating_mul(dies),
                err_payload_addr: reason,
                err_event_id: event,
                ..ContextSaveAreaHeader::default()
            };
            (u64::from(die).saturating_mul(u64::from(per_die)), header)
        })
    }
}

/// Waves that one die holds.
fn waves_of_die(node: &Node, version: u32, dies: NonZeroU32, units: u64) -> u64 {
    let engines = u64::from(node.shader_engines / dies);
    match version {
        ..GFX10_1 => units.saturating_mul(40).min(engines.saturating_mul(512)),
        GFX10_1..GFX12_5 => units.saturating_mul(32),
        _ => units.saturating_mul(64),
    }
}

/// Bytes of registers and local data that one compute unit saves.
fn wave_state_per_unit(node: &Node, version: u32) -> u64 {
    let vector: u32 = match version {
        90_008 | 90_010 | 90_400..=90_500 | GFX12_5.. => 0x8_0000,
        110_000 | 110_001 | 110_501 | 120_000 | 120_001 => 0x6_0000,
        _ => 0x4_0000,
    };
    let (scalar, hardware) = if version >= GFX12_5 { (0x8000, 0x8000) } else { (0x4000, 0x1000) };
    let local = match version {
        90_500 | GFX12_5.. => u64::from(node.lds_size_in_kb).saturating_mul(1024),
        _ => 0x1_0000,
    };
    local.saturating_add(u64::from(vector)).saturating_add(scalar).saturating_add(hardware)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(target: u32) -> GfxVersion {
        GfxVersion::from_target_version(target)
    }

    fn mi300x() -> Node {
        Node {
            gfx_version: version(90_402),
            simd_count: 1216,
            simd_per_cu: 4,
            num_xcc: 8,
            shader_engines: 32,
            lds_size_in_kb: 64,
            ..Node::default()
        }
    }

    #[test]
    fn eight_dies() {
        let area = SaveArea::by_formula(&mi300x()).unwrap();
        // 38 units: 1520 waves of 8 bytes, and 38 times 0x95000 bytes.
        assert_eq!(area.control_stack, 0x3000);
        assert_eq!(area.per_die, 0x3000 + 38 * 0x9_5000);
        assert_eq!(area.debug_per_die, 1520 * 32);
        let page = NonZeroU32::new(4096).unwrap();
        let unrounded = 8 * u64::from(area.per_die + area.debug_per_die);
        assert_eq!(area.mapping_bytes(page), unrounded.next_multiple_of(4096));
        let large = NonZeroU32::new(65536).unwrap();
        assert_eq!(area.mapping_bytes(large), unrounded.next_multiple_of(65536));
    }

    #[test]
    fn published_sizes_come_first() {
        let node = Node { ctl_stack_size: 0x5000, cwsr_size: 0x20_0000, ..mi300x() };
        let area = SaveArea::of(&node).unwrap();
        assert_eq!((area.control_stack, area.per_die), (0x5000, 0x20_0000));
        assert_eq!(area.debug_per_die, SaveArea::by_formula(&node).unwrap().debug_per_die);
        // One without the other is no pair of sizes.
        for (stack, whole) in [(0, 0x20_0000), (0x5000, 0), (0x5000, 0x4000)] {
            let node = Node { ctl_stack_size: stack, cwsr_size: whole, ..mi300x() };
            assert_eq!(SaveArea::of(&node), SaveArea::by_formula(&node));
        }
    }

    #[test]
    fn every_header_leads_to_the_debug_area() {
        let area = SaveArea::of(&mi300x()).unwrap();
        let start = u64::from(area.per_die) * 8;
        assert_eq!(SAVE_AREA_HEADER_BYTES, 40);
        let headers: alloc::vec::Vec<_> = area.headers(0x7f00, 12).collect();
        assert_eq!(headers.len(), 8);
        for (die, (offset, header)) in headers.into_iter().enumerate() {
            assert_eq!(offset, die as u64 * u64::from(area.per_die));
            assert_eq!(offset + u64::from(header.debug_offset), start);
            assert_eq!(header.debug_size, area.debug_per_die * 8);
            assert_eq!((header.err_payload_addr, header.err_event_id), (0x7f00, 12));
            assert_eq!((header.control_stack_size, header.wave_state_size), (0, 0));
        }
    }

    #[test]
    fn nothing_to_save_or_nonsense() {
        for node in [
            Node { gfx_version: version(70_000), ..mi300x() },
            Node { gfx_version: version(80_000), ..mi300x() },
            Node { gfx_version: GfxVersion::default(), ..mi300x() },
            Node { simd_per_cu: 0, ..mi300x() },
            Node { simd_count: 0, ..mi300x() },
            Node { simd_count: u32::MAX, ..mi300x() },
            Node { gfx_version: version(120_500), lds_size_in_kb: u32::MAX, ..mi300x() },
            Node::default(),
        ] {
            assert_eq!(SaveArea::of(&node), None, "{node:?}");
        }
        // No dies said is one die.
        let node = Node { num_xcc: 0, ..mi300x() };
        assert_eq!(SaveArea::of(&node).unwrap().dies.get(), 1);
    }

    #[test]
    fn end_of_pipe_buffers() {
        for (target, pm4, aql) in [
            (70_001, 0, 0),
            (80_001, 0x1000, 0x1000),
            (80_002, 0x8000, 0x8000),
            (80_003, 0x1000, 0x1000),
            (90_000, 0x1000, 0x1000),
            (90_010, 0x1000, 0x1000),
            (90_402, 0x1000, 0),
            (90_500, 0x1000, 0x1000),
            (100_300, 0x1000, 0x1000),
            (120_001, 0x1000, 0x1000),
        ] {
            assert_eq!(end_of_pipe_bytes(version(target), QueueType::COMPUTE), pm4, "{target}");
            assert_eq!(end_of_pipe_bytes(version(target), QueueType::COMPUTE_AQL), aql, "{target}");
            assert_eq!(end_of_pipe_bytes(version(target), QueueType::SDMA), 0, "{target}");
        }
        assert_eq!(control_block_bytes(65536), 65536);
    }
}
