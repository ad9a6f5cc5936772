//! A machine as JSON: everything that is known, by the kernel's names.

use alloc::string::{String, ToString};

use hsakmt_core::topology::{
    Cache, GfxVersion, HiddenBecause, HiddenNode, IoLink, MemoryBank, Name, Node, SystemProperties,
};

use super::description::Description;
use crate::output::json::{self, Object};

/// Appends the description to `out`.
pub fn write(out: &mut String, description: &Description<'_>) {
    let Description { machine, generation, settled, system, nodes, hidden } = *description;
    json::document(out, |o| {
        o.field("machine").string(machine.to_string());
        o.field("source").on_one_line().object(|o| {
            o.field("kind").string(machine.kind());
            o.field("name").string(machine.name());
        });
        match machine.driver() {
            Some(version) => o.field("driver").on_one_line().object(|o| {
                o.field("major").number(version.major);
                o.field("minor").number(version.minor);
            }),
            None => o.field("driver").null(),
        }
        o.field("generation_id").number(generation);
        o.field("settled").boolean(settled);
        o.field("system_properties").on_one_line().object(|o| {
            let SystemProperties { platform_oem, platform_id, platform_rev } = system;
            o.field("platform_oem").number(platform_oem);
            o.field("platform_id").number(platform_id);
            o.field("platform_rev").number(platform_rev);
        });
        o.field("hidden").array(|a| {
            for &HiddenNode { sysfs_node, because } in hidden {
                a.item().on_one_line().object(|o| {
                    o.field("sysfs_node").number(sysfs_node);
                    o.field("because").string(reason(because));
                });
            }
        });
        o.field("nodes").array(|a| {
            for (id, node) in (0u64..).zip(nodes) {
                a.item().object(|o| {
                    o.field("node").number(id);
                    write_node(o, node);
                });
            }
        });
    });
}

/// One word, or a few joined ones, for why a node is hidden.
fn reason(because: HiddenBecause) -> &'static str {
    match because {
        HiddenBecause::Forbidden => "forbidden",
        HiddenBecause::Unwanted => "unwanted",
        HiddenBecause::NoRenderNode => "no_render_node",
        HiddenBecause::RenderNodeRefused => "render_node_refused",
        HiddenBecause::NotReady => "not_ready",
        HiddenBecause::Unreadable => "unreadable",
    }
}

/// Writes a member for each named field, under the field's own name.
macro_rules! numbers {
    ($object:ident: $($field:ident)*) => {
        $($object.field(stringify!($field)).number($field);)*
    };
}

// The patterns below name every field, so that one that is added cannot be
// forgotten here.
fn write_node(o: &mut Object<'_>, node: &Node) {
    let &Node {
        sysfs_node,
        gpu_id,
        asic_name,
        cpu_cores_count,
        simd_count,
        cpu_core_id_base,
        simd_id_base,
        capability,
        capability2,
        debug_prop,
        max_waves_per_simd,
        lds_size_in_kb,
        gds_size_in_kb,
        wave_front_size,
        array_count,
        shader_engines,
        simd_arrays_per_engine,
        cu_per_simd_array,
        simd_per_cu,
        max_slots_scratch_cu,
        gfx_version,
        gfx_override,
        fw_version,
        sdma_fw_version,
        vendor_id,
        device_id,
        location_id,
        domain,
        local_mem_size,
        max_engine_clk_fcompute,
        max_engine_clk_ccompute,
        drm_render_minor,
        marketing_name,
        amd_name,
        hive_id,
        num_sdma_engines,
        num_sdma_xgmi_engines,
        num_sdma_queues_per_engine,
        num_cp_queues,
        num_gws,
        integrated,
        unique_id,
        vgpr_size_per_cu,
        sgpr_size_per_cu,
        num_xcc,
        family_id,
        cwsr_size,
        ctl_stack_size,
        wall_clock_khz,
        fabric,
        ref banks,
        ref caches,
        ref links,
    } = node;
    let name = |o: &mut Object<'_>, key, name: Name| o.field(key).string(name.as_bytes());
    numbers!(o: sysfs_node gpu_id);
    name(o, "asic_name", asic_name);
    name(o, "marketing_name", marketing_name);
    name(o, "amd_name", amd_name);
    o.field("gfx_version").string(gfx_name(gfx_version));
    o.field("gfx_target_version").number(gfx_version.target_version());
    match gfx_override {
        Some(version) => o.field("gfx_override").string(gfx_name(version)),
        None => o.field("gfx_override").null(),
    }
    numbers!(o:
        cpu_cores_count simd_count cpu_core_id_base simd_id_base capability capability2
        debug_prop max_waves_per_simd lds_size_in_kb gds_size_in_kb wave_front_size array_count
        shader_engines simd_arrays_per_engine cu_per_simd_array simd_per_cu max_slots_scratch_cu
        fw_version sdma_fw_version vendor_id device_id location_id domain local_mem_size
        max_engine_clk_fcompute max_engine_clk_ccompute drm_render_minor hive_id
        num_sdma_engines num_sdma_xgmi_engines num_sdma_queues_per_engine num_cp_queues num_gws
    );
    o.field("integrated").boolean(integrated);
    numbers!(o:
        unique_id vgpr_size_per_cu sgpr_size_per_cu num_xcc family_id cwsr_size ctl_stack_size
        wall_clock_khz
    );
    o.field("fabric").boolean(fabric);
    o.field("mem_banks").array(|a| {
        for bank in banks {
            a.item().on_one_line().object(|o| write_bank(o, bank));
        }
    });
    o.field("caches").array(|a| {
        for cache in caches {
            a.item().on_one_line().object(|o| write_cache(o, cache));
        }
    });
    o.field("io_links").array(|a| {
        for link in links {
            a.item().on_one_line().object(|o| write_link(o, link));
        }
    });
}

/// `gfx942`; nothing for a node without a version.
fn gfx_name(version: GfxVersion) -> String {
    if version.is_unknown() { String::new() } else { version.to_string() }
}

fn write_bank(o: &mut Object<'_>, bank: &MemoryBank) {
    let &MemoryBank { heap_type, size_in_bytes, flags, width, mem_clk_max, virtual_base_address } =
        bank;
    o.field("heap_type").number(heap_type.0);
    numbers!(o: size_in_bytes flags width mem_clk_max virtual_base_address);
}

fn write_cache(o: &mut Object<'_>, cache: &Cache) {
    let Cache {
        processor_id_low,
        level,
        size,
        cache_line_size,
        cache_lines_per_tag,
        association,
        latency,
        cache_type,
        persisting_cache_size_max,
        sibling_map,
    } = *cache;
    numbers!(o:
        processor_id_low level size cache_line_size cache_lines_per_tag association latency
    );
    o.field("type").number(cache_type);
    numbers!(o: persisting_cache_size_max);
    // The places of the map that hold 1.
    o.field("siblings").array(|a| {
        for (place, _) in (0u32..).zip(sibling_map.iter()).filter(|&(_, shares)| shares != 0) {
            a.item().number(place);
        }
    });
}

fn write_link(o: &mut Object<'_>, link: &IoLink) {
    let &IoLink {
        link_type,
        version_major,
        version_minor,
        node_from,
        node_to,
        weight,
        min_latency,
        max_latency,
        min_bandwidth,
        max_bandwidth,
        recommended_transfer_size,
        recommended_sdma_engine_id_mask,
        flags,
    } = link;
    o.field("type").number(link_type.0);
    numbers!(o:
        version_major version_minor node_from node_to weight min_latency max_latency
        min_bandwidth max_bandwidth recommended_transfer_size recommended_sdma_engine_id_mask flags
    );
}
