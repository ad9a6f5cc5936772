//! The text of the topology files: keys and order of kernel-rules section 5
//! (kfd_topology.c).

use alloc::string::String;
use core::fmt::Write;

use crate::kernel::KernelProfile;
use crate::topology::{Bank, Cache, GpuProperties, Link, Node, Topology};

/// Lines of `key value`.
struct Lines(String);

impl Lines {
    fn new() -> Lines {
        Lines(String::new())
    }

    fn line(&mut self, key: &str, value: impl Into<u64>) -> &mut Lines {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{key} {}", value.into());
        self
    }
}

pub(super) fn system_properties(topology: &Topology) -> String {
    let mut lines = Lines::new();
    lines
        .line("platform_oem", topology.platform_oem)
        .line("platform_id", topology.platform_id)
        .line("platform_rev", topology.platform_rev);
    lines.0
}

/// `ready`: false for a GPU whose node exists and is not filled yet (section 5,
/// "generation_id").
pub(super) fn properties(
    node: &Node,
    topology: &Topology,
    kernel: KernelProfile,
    ready: bool,
) -> String {
    let none = GpuProperties::default();
    let gpu = node.gpu.as_ref();
    let p = gpu.map_or(&none, |gpu| &gpu.properties);
    let cpu_clock = topology.nodes.iter().find_map(|n| n.cpu.as_ref()).map_or(0, |cpu| cpu.clock);
    let count = |n: usize| n as u64;
    let published = gpu.and_then(|gpu| gpu.published_save_area);
    let save_area = published.unwrap_or_else(|| p.save_area(kernel.has_keys_of_7_2()));
    let mut lines = Lines::new();
    lines
        .line("cpu_cores_count", node.cpu.as_ref().map_or(0, |cpu| cpu.cores))
        .line("simd_count", p.simd_count)
        .line("mem_banks_count", count(node.banks.len()))
        .line("caches_count", count(node.caches.len()))
        .line("io_links_count", count(node.io_links.len()))
        .line("p2p_links_count", count(node.p2p_links.len()))
        .line("cpu_core_id_base", node.cpu.as_ref().map_or(0, |cpu| cpu.first_apic_id))
        .line("simd_id_base", p.simd_id_base)
        .line("max_waves_per_simd", p.max_waves_per_simd)
        .line("lds_size_in_kb", p.lds_size_in_kb)
        .line("gds_size_in_kb", p.gds_size_in_kb)
        .line("num_gws", p.num_gws)
        .line("wave_front_size", p.wave_front_size)
        .line("array_count", p.array_count)
        .line("simd_arrays_per_engine", p.simd_arrays_per_engine)
        .line("cu_per_simd_array", p.cu_per_simd_array)
        .line("simd_per_cu", p.simd_per_cu)
        .line("max_slots_scratch_cu", p.max_slots_scratch_cu)
        .line("gfx_target_version", if ready { p.gfx_target_version } else { 0 })
        .line("vendor_id", p.vendor_id)
        .line("device_id", p.device_id)
        .line("location_id", p.location_id)
        .line("domain", p.domain)
        .line("drm_render_minor", p.drm_render_minor)
        .line("hive_id", p.hive_id)
        .line("num_sdma_engines", p.num_sdma_engines)
        .line("num_sdma_xgmi_engines", p.num_sdma_xgmi_engines)
        .line("num_sdma_queues_per_engine", p.num_sdma_queues_per_engine)
        .line("num_cp_queues", p.num_cp_queues);
    if kernel.has_keys_of_6_12() {
        lines
            .line("cwsr_size", save_area.cwsr_size)
            .line("ctl_stack_size", save_area.ctl_stack_size);
    }
    if gpu.is_some() && ready {
        lines
            .line("max_engine_clk_fcompute", p.max_engine_clk_fcompute)
            .line("local_mem_size", p.local_mem_size)
            .line("fw_version", p.fw_version)
            .line("capability", p.capability);
        if kernel.has_keys_of_7_2() {
            lines.line("capability2", p.capability2);
        }
        if kernel.has_keys_of_6_12() {
            lines.line("debug_prop", p.debug_prop);
        }
        lines.line("sdma_fw_version", p.sdma_fw_version).line("unique_id", p.unique_id);
        if kernel.has_keys_of_6_12() {
            lines.line("num_xcc", p.num_xcc);
        }
    }
    lines.line("max_engine_clk_ccompute", cpu_clock);
    lines.0
}

pub(super) fn bank(bank: &Bank) -> String {
    let mut lines = Lines::new();
    lines
        .line("heap_type", bank.heap_type)
        .line("size_in_bytes", bank.size_in_bytes)
        .line("flags", bank.flags)
        .line("width", bank.width)
        .line("mem_clk_max", bank.mem_clk_max);
    lines.0
}

pub(super) fn cache(cache: &Cache) -> String {
    let mut lines = Lines::new();
    lines
        .line("processor_id_low", cache.processor_id_low)
        .line("level", cache.level)
        .line("size", cache.size)
        .line("cache_line_size", cache.cache_line_size)
        .line("cache_lines_per_tag", cache.cache_lines_per_tag)
        .line("association", cache.association)
        .line("latency", cache.latency)
        .line("type", cache.kind);
    let mut text = lines.0;
    text.push_str("sibling_map ");
    for (n, sibling) in cache.sibling_map.iter().enumerate() {
        let separator = if n == 0 { "" } else { "," };
        let _ = write!(text, "{separator}{sibling}");
    }
    text.push('\n');
    text
}

pub(super) fn link(link: &Link, kernel: KernelProfile) -> String {
    let mut lines = Lines::new();
    lines
        .line("type", link.kind)
        .line("version_major", 0_u32)
        .line("version_minor", 0_u32)
        .line("node_from", link.node_from)
        .line("node_to", link.node_to)
        .line("weight", link.weight)
        .line("min_latency", 0_u32)
        .line("max_latency", 0_u32)
        .line("min_bandwidth", link.min_bandwidth)
        .line("max_bandwidth", link.max_bandwidth)
        .line("recommended_transfer_size", link.recommended_transfer_size);
    if kernel.has_keys_of_6_12() {
        lines.line("recommended_sdma_engine_id_mask", link.recommended_sdma_engine_id_mask);
    }
    lines.line("flags", link.flags);
    lines.0
}
