//! Every conversion from core's structures to the internal forms of the ABI.

use hsakmt_core::memory::{PointerInfo, PointerKind};
use hsakmt_core::topology::{Cache, IoLink, MemoryBank, Name, Node};

use crate::generation::address::pointer_mut;
use crate::generation::internal;
use crate::types::{
    HSA_CAPABILITY, HSA_CAPABILITY2, HSA_CPU_SIBLINGS, HSA_DEBUG_PROPERTIES, HSA_ENGINE_ID,
    HSA_ENGINE_VERSION, HSA_HEAPTYPE, HSA_IOLINKTYPE, HSA_LINKPROPERTY, HSA_MEMORYPROPERTY,
    HSA_POINTER_TYPE, HSA_PUBLIC_NAME_SIZE, HsaCacheType, HsaMemFlags, HsaMemoryProperties,
    HsaPointerInfo,
};

/// The low bits of a microcode version that `HSA_ENGINE_VERSION` has room for.
const MICROCODE_BITS: u32 = 0x3ff;

/// A name as bytes, zero-terminated.
fn narrow(name: &Name) -> [u8; HSA_PUBLIC_NAME_SIZE] {
    let mut narrow = [0; HSA_PUBLIC_NAME_SIZE];
    for (to, from) in narrow.iter_mut().zip(name.as_bytes()) {
        *to = *from;
    }
    narrow
}

/// A name as UTF-16 units, each a byte of it, zero-terminated.
fn wide(name: &Name) -> [u16; HSA_PUBLIC_NAME_SIZE] {
    let mut wide = [0; HSA_PUBLIC_NAME_SIZE];
    for (to, from) in wide.iter_mut().zip(name.as_bytes()) {
        *to = u16::from(*from);
    }
    wide
}

/// A count in a field of one byte; more than fits is as many as fit.
fn byte(count: u32) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}

/// A node; `banks` is how many memory banks its getter answers.
pub(crate) fn node(node: &Node, banks: u32) -> internal::NodeProperties {
    internal::NodeProperties {
        num_cpu_cores: node.cpu_cores_count,
        num_f_compute_cores: node.simd_count,
        num_neural_cores: 0,
        num_memory_banks: banks,
        num_caches: count(node.caches.len()),
        num_io_links: count(node.links.len()),
        c_compute_id_lo: node.cpu_core_id_base,
        f_compute_id_lo: node.simd_id_base,
        capability: HSA_CAPABILITY { Value: node.capability },
        capability2: HSA_CAPABILITY2 { Value: node.capability2 },
        max_waves_per_simd: node.max_waves_per_simd,
        lds_size_in_kb: node.lds_size_in_kb,
        gds_size_in_kb: node.gds_size_in_kb,
        wave_front_size: node.wave_front_size,
        num_shader_banks: node.shader_engines,
        num_arrays: node.simd_arrays_per_engine,
        num_cu_per_array: node.cu_per_simd_array,
        num_simd_per_cu: node.simd_per_cu,
        max_slots_scratch_cu: node.max_slots_scratch_cu,
        engine_id: HSA_ENGINE_ID { Value: node.gfx_version.engine_id(node.fw_version) },
        override_engine_id: HSA_ENGINE_ID {
            Value: node.gfx_override.map_or(0, |version| version.engine_id(0)),
        },
        vendor_id: node.vendor_id as u16,
        device_id: node.device_id as u16,
        location_id: node.location_id,
        local_mem_size: node.local_mem_size,
        max_engine_clock_mhz_f_compute: node.max_engine_clk_fcompute,
        max_engine_clock_mhz_c_compute: node.max_engine_clk_ccompute,
        drm_render_minor: i32::try_from(node.drm_render_minor).unwrap_or(0),
        marketing_name: wide(&node.marketing_name),
        amd_name: narrow(&node.amd_name),
        ucode_engine_versions: HSA_ENGINE_VERSION { Value: node.sdma_fw_version & MICROCODE_BITS },
        debug_properties: HSA_DEBUG_PROPERTIES { Value: node.debug_prop },
        hive_id: node.hive_id,
        num_sdma_engines: node.num_sdma_engines,
        num_sdma_xgmi_engines: node.num_sdma_xgmi_engines,
        num_sdma_queues_per_engine: byte(node.num_sdma_queues_per_engine),
        num_cp_queues: byte(node.num_cp_queues),
        num_gws: byte(node.num_gws),
        integrated: u8::from(node.integrated),
        domain: node.domain,
        unique_id: node.unique_id,
        vgpr_size_per_cu: node.vgpr_size_per_cu,
        sgpr_size_per_cu: node.sgpr_size_per_cu,
        num_xcc: node.num_xcc,
        kfd_gpu_id: node.gpu_id,
        family_id: node.family_id,
        cwsr_size: node.cwsr_size,
        ctl_stack_size: node.ctl_stack_size,
        luid_low_part: 0,
        luid_high_part: 0,
        wall_clock_khz: node.wall_clock_khz,
        fabric_handle_supported: u32::from(node.fabric),
    }
}

/// A length in a field of 32 bits.
pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A memory bank; the same in all generations.
pub(crate) fn bank(bank: &MemoryBank) -> HsaMemoryProperties {
    HsaMemoryProperties {
        HeapType: HSA_HEAPTYPE(bank.heap_type.0),
        SizeInBytes: bank.size_in_bytes,
        Flags: HSA_MEMORYPROPERTY { Value: bank.flags },
        Width: bank.width,
        MemoryClockMax: bank.mem_clk_max,
        VirtualBaseAddress: bank.virtual_base_address,
    }
}

/// A cache.
pub(crate) fn cache(cache: &Cache) -> internal::CacheProperties {
    let mut sibling_map = [0; HSA_CPU_SIBLINGS];
    for processor in cache.sibling_map.sharing() {
        if let Some(entry) = sibling_map.get_mut(processor) {
            *entry = 1;
        }
    }
    internal::CacheProperties {
        processor_id_low: cache.processor_id_low,
        cache_level: cache.level,
        cache_size: cache.size,
        cache_line_size: cache.cache_line_size,
        cache_lines_per_tag: cache.cache_lines_per_tag,
        cache_associativity: cache.association,
        cache_latency: cache.latency,
        cache_type: HsaCacheType { Value: cache.cache_type },
        sibling_map,
        persisting_cache_size_max: cache.persisting_cache_size_max,
    }
}

/// A link.
pub(crate) fn link(link: &IoLink) -> internal::IoLinkProperties {
    internal::IoLinkProperties {
        io_link_type: HSA_IOLINKTYPE(link.link_type.0),
        version_major: link.version_major,
        version_minor: link.version_minor,
        node_from: link.node_from,
        node_to: link.node_to,
        weight: link.weight,
        minimum_latency: link.min_latency,
        maximum_latency: link.max_latency,
        minimum_bandwidth: link.min_bandwidth,
        maximum_bandwidth: link.max_bandwidth,
        rec_transfer_size: link.recommended_transfer_size,
        rec_sdma_eng_id_mask: link.recommended_sdma_engine_id_mask,
        flags: HSA_LINKPROPERTY { Value: link.flags },
    }
}

/// The array of a C structure; NULL for one without entries.
fn array(entries: &[u32]) -> *const u32 {
    if entries.is_empty() { core::ptr::null() } else { entries.as_ptr() }
}

/// What an address belongs to; the same in all generations. The arrays are core's.
#[inline]
pub(crate) fn pointer_info(info: &PointerInfo<'_>) -> HsaPointerInfo {
    HsaPointerInfo {
        Type: match info.kind {
            PointerKind::Allocated => HSA_POINTER_TYPE::ALLOCATED,
            PointerKind::RegisteredUser => HSA_POINTER_TYPE::REGISTERED_USER,
            PointerKind::RegisteredGraphics => HSA_POINTER_TYPE::REGISTERED_GRAPHICS,
            PointerKind::RegisteredShared => HSA_POINTER_TYPE::REGISTERED_SHARED,
            PointerKind::ReservedAddress => HSA_POINTER_TYPE::RESERVED_ADDR,
        },
        Node: info.node,
        MemFlags: HsaMemFlags { Value: info.flags.bits() },
        CPUAddress: pointer_mut(info.cpu_address),
        GPUAddress: info.gpu_address,
        SizeInBytes: info.size,
        // At most as many as a process object has GPUs.
        NRegisteredNodes: info.registered.len() as u32,
        NMappedNodes: info.mapped.len() as u32,
        RegisteredNodes: array(info.registered),
        MappedNodes: array(info.mapped),
        UserData: pointer_mut(info.user_data),
    }
}
