//! The internal form of the structures that differ between generations.
//!
//! Each is the newest form without its packing. A field means what the field of the same name in
//! [`current`](super::current) means; addresses are plain numbers.

#![expect(missing_docs, reason = "documented at the newest generation")]

use zerocopy::FromZeros;

use crate::types::{
    HSA_CAPABILITY, HSA_CAPABILITY2, HSA_CPU_SIBLINGS, HSA_DEBUG_PROPERTIES, HSA_ENGINE_ID,
    HSA_ENGINE_VERSION, HSA_IOLINKTYPE, HSA_LINKPROPERTY, HSA_PUBLIC_NAME_SIZE, HSA_QUEUEID,
    HsaCacheType,
};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, FromZeros)]
pub struct NodeProperties {
    pub num_cpu_cores: u32,
    pub num_f_compute_cores: u32,
    pub num_neural_cores: u32,
    pub num_memory_banks: u32,
    pub num_caches: u32,
    pub num_io_links: u32,
    pub c_compute_id_lo: u32,
    pub f_compute_id_lo: u32,
    pub capability: HSA_CAPABILITY,
    pub capability2: HSA_CAPABILITY2,
    pub max_waves_per_simd: u32,
    pub lds_size_in_kb: u32,
    pub gds_size_in_kb: u32,
    pub wave_front_size: u32,
    pub num_shader_banks: u32,
    pub num_arrays: u32,
    pub num_cu_per_array: u32,
    pub num_simd_per_cu: u32,
    pub max_slots_scratch_cu: u32,
    pub engine_id: HSA_ENGINE_ID,
    pub override_engine_id: HSA_ENGINE_ID,
    pub vendor_id: u16,
    pub device_id: u16,
    pub location_id: u32,
    pub local_mem_size: u64,
    pub max_engine_clock_mhz_f_compute: u32,
    pub max_engine_clock_mhz_c_compute: u32,
    pub drm_render_minor: i32,
    pub marketing_name: [u16; HSA_PUBLIC_NAME_SIZE],
    pub amd_name: [u8; HSA_PUBLIC_NAME_SIZE],
    pub ucode_engine_versions: HSA_ENGINE_VERSION,
    pub debug_properties: HSA_DEBUG_PROPERTIES,
    pub hive_id: u64,
    pub num_sdma_engines: u32,
    pub num_sdma_xgmi_engines: u32,
    pub num_sdma_queues_per_engine: u8,
    pub num_cp_queues: u8,
    pub num_gws: u8,
    pub integrated: u8,
    pub domain: u32,
    pub unique_id: u64,
    pub vgpr_size_per_cu: u32,
    pub sgpr_size_per_cu: u32,
    pub num_xcc: u32,
    pub kfd_gpu_id: u32,
    pub family_id: u32,
    pub cwsr_size: u32,
    pub ctl_stack_size: u32,
    pub luid_low_part: u32,
    pub luid_high_part: u32,
    pub wall_clock_khz: u64,
    pub fabric_handle_supported: u32,
}

/// A cache of a node.
#[derive(Clone, Debug, PartialEq, Eq, FromZeros)]
pub struct CacheProperties {
    pub processor_id_low: u32,
    pub cache_level: u32,
    pub cache_size: u32,
    pub cache_line_size: u32,
    pub cache_lines_per_tag: u32,
    pub cache_associativity: u32,
    pub cache_latency: u32,
    pub cache_type: HsaCacheType,
    pub sibling_map: [u32; HSA_CPU_SIBLINGS],
    pub persisting_cache_size_max: u32,
}

/// A way from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, FromZeros)]
pub struct IoLinkProperties {
    pub io_link_type: HSA_IOLINKTYPE,
    pub version_major: u32,
    pub version_minor: u32,
    pub node_from: u32,
    pub node_to: u32,
    pub weight: u32,
    pub minimum_latency: u32,
    pub maximum_latency: u32,
    pub minimum_bandwidth: u32,
    pub maximum_bandwidth: u32,
    pub rec_transfer_size: u32,
    pub rec_sdma_eng_id_mask: u32,
    pub flags: HSA_LINKPROPERTY,
}

/// The saved state of a queue that does not run. The library owns what the pointers name.
#[derive(Clone, Debug, PartialEq, Eq, FromZeros)]
pub struct QueueInfo {
    pub queue_detail_error: u32,
    pub queue_type_extended: u32,
    pub num_cu_assigned: u32,
    pub cu_mask_info: u64,
    pub user_context_save_area: u64,
    pub save_area_size_in_bytes: u64,
    pub control_stack_top: u64,
    pub control_stack_used_in_bytes: u64,
    pub save_area_header: u64,
    pub save_area_alloc_size: u64,
}

/// What producer and queue share.
#[derive(Clone, Debug, PartialEq, Eq, FromZeros)]
pub struct QueueResource {
    pub queue_id: HSA_QUEUEID,
    pub doorbell: u64,
    pub write_pointer: u64,
    pub read_pointer: u64,
    pub error_reason: u64,
    pub sdma_progress_fence_va: u64,
    pub sdma_hw_queue_epilogue_bytes: u32,
}

/// An imported buffer of a graphics library.
#[derive(Clone, Debug, PartialEq, Eq, FromZeros)]
pub struct GraphicsResourceInfo {
    pub memory_address: u64,
    pub size_in_bytes: u64,
    pub metadata: u64,
    pub metadata_size_in_bytes: u32,
    pub node_id: u32,
    pub size_hint_in_bytes: u64,
}
