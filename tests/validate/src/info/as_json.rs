//! A machine as JSON: everything that is known, by the kernel's names.

use alloc::string::{String, ToString};

use hsakmt_core::topology::{
    Cache, GfxVersion, HiddenBecause, HiddenNode, IoLink, MemoryBank, Name, Node, SystemProperties,
};

use super::description::Description;
use crate::machine::Machine;
use crate::output::json::{self, Object};

/// Appends the description of `machine` to `out`.
pub fn write(out: &mut String, machine: &Machine, description: &Description) {
    let &Description { generation, settled, system, ref nodes, ref hidden } = description;
    json::document(out, |o| {
        o.field("machine").string(machine.to_string());
        o.field("source").on_one_line().object(|o| {
            o.field("kind").string(machine.kind());
            o.field("name").string(machine.name());
            o.field("made_up").array(|a| {
                for file in machine.made_up() {
                    a.item().string(file);
                }
            });
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
        HiddenBecause::Vanished => "vanished",
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use hsakmt_core::context::Version;

    use super::super::sample;
    use super::*;

    fn written(machine: &Machine, nodes: &[Node], hidden: &[HiddenNode]) -> String {
        let system = SystemProperties { platform_oem: u64::MAX, platform_id: 2, platform_rev: 3 };
        let mut out = String::new();
        let (nodes, hidden) = (nodes.to_vec(), hidden.to_vec());
        let description = Description { generation: 3, settled: true, system, nodes, hidden };
        write(&mut out, machine, &description);
        out
    }

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_first_line_names_the_machine() {
        let machine = Machine::Real(Some(Version { major: 1, minor: 17 }));
        let text = written(&machine, &[], &[]);
        assert_eq!(text.lines().next(), Some("{ \"machine\": \"real driver, KFD 1.17\","));
        assert_eq!(
            read(&text),
            json!({
                "machine": "real driver, KFD 1.17",
                "source": {"kind": "real", "name": "", "made_up": []},
                "driver": {"major": 1, "minor": 17},
                "generation_id": 3,
                "settled": true,
                "system_properties":
                    {"platform_oem": u64::MAX, "platform_id": 2, "platform_rev": 3},
                "hidden": [],
                "nodes": [],
            })
        );
    }

    #[test]
    fn a_tree_has_no_driver_and_any_name() {
        let folder = b"/a\"\\\n\xff".to_vec();
        let hidden = [HiddenNode { sysfs_node: 7, because: HiddenBecause::NotReady }];
        let machine = Machine::Tree { folder, made_up: ["gpu_id"].to_vec() };
        let value = read(&written(&machine, &[], &hidden));
        assert_eq!(
            value["source"],
            json!({"kind": "tree", "name": "/a\"\\\n\u{fffd}", "made_up": ["gpu_id"]})
        );
        assert_eq!(value["driver"], Value::Null);
        assert_eq!(value["hidden"], json!([{"sysfs_node": 7, "because": "not_ready"}]));
    }

    /// The names and values of a value as its `Debug` form has them: `name: value`.
    fn debugged(value: &impl core::fmt::Debug) -> std::collections::BTreeMap<String, String> {
        let text = std::format!("{value:#?}");
        let fields = text.lines().filter_map(|line| {
            let field = line.strip_prefix("    ")?.strip_suffix(',')?;
            let (name, value) = field.split_once(": ")?;
            (!name.starts_with(' ')).then(|| (name.to_string(), value.to_string()))
        });
        fields.collect()
    }

    /// Asserts that `written` has each number, truth value and text of `value`.
    fn assert_complete(written: &Value, value: &impl core::fmt::Debug, renamed: &[(&str, &str)]) {
        let fields = debugged(value);
        assert!(fields.len() > 3, "{fields:?}");
        for (name, value) in fields {
            let plain = value.starts_with('"')
                || value.starts_with(|first: char| first.is_ascii_digit())
                || value == "true"
                || value == "false";
            if plain {
                let name = renamed.iter().find(|(from, _)| *from == name).map_or(&*name, |to| to.1);
                assert_eq!(written[name].to_string(), value, "{name}");
            }
        }
    }

    #[test]
    fn every_field_is_there() {
        let machine = Machine::Real(None);
        let nodes = sample::mi300x(2, 1);
        let value = read(&written(&machine, &nodes, &[]));
        for (id, node) in nodes.iter().enumerate() {
            let written = &value["nodes"][id];
            assert_eq!(written["node"], json!(id));
            assert_complete(written, node, &[]);
            let lists = [
                ("mem_banks", node.banks.len()),
                ("caches", node.caches.len()),
                ("io_links", node.links.len()),
            ];
            for (name, count) in lists {
                assert_eq!(written[name].as_array().unwrap().len(), count, "{name}");
            }
            for (place, bank) in node.banks.iter().enumerate() {
                assert_complete(&written["mem_banks"][place], bank, &[]);
                assert_eq!(written["mem_banks"][place]["heap_type"], json!(bank.heap_type.0));
            }
            for (place, cache) in node.caches.iter().enumerate() {
                let renamed = [("cache_type", "type")];
                assert_complete(&written["caches"][place], cache, &renamed);
            }
            for (place, link) in node.links.iter().enumerate() {
                assert_complete(&written["io_links"][place], link, &[]);
                assert_eq!(written["io_links"][place]["type"], json!(link.link_type.0));
            }
        }
        assert_eq!(value["nodes"][2]["gfx_version"], json!("gfx942"));
        assert_eq!(value["nodes"][2]["gfx_target_version"], json!(90402));
        assert_eq!(value["nodes"][0]["gfx_version"], json!(""));
    }

    #[test]
    fn siblings_and_overrides_are_there() {
        let value = read(&written(&Machine::Real(None), &sample::apu(), &[]));
        assert_eq!(value["nodes"][0]["caches"][0]["siblings"], json!([0, 5]));
        assert_eq!(value["nodes"][0]["gfx_override"], json!("gfx900"));
        assert_eq!(value["nodes"][0]["marketing_name"], json!("AMD Ryzen 7\u{9b}31m with Radeon"));
        assert_eq!(value["nodes"][0]["integrated"], json!(true));
    }

    #[test]
    fn keys_have_one_order() {
        let text = written(&Machine::Real(None), &sample::mi300x(1, 1), &[]);
        let keys = |node: &str| -> std::vec::Vec<String> {
            let lines = node
                .lines()
                .filter_map(|line| line.trim_start_matches([' ', '{']).strip_prefix('"'));
            lines.filter_map(|line| line.split_once('"')).map(|(key, _)| key.to_string()).collect()
        };
        let nodes: std::vec::Vec<&str> = text.split("{ \"node\": ").skip(1).collect();
        assert_eq!(nodes.len(), 3);
        let first = keys(nodes[0]);
        assert!(first.len() > 40, "{first:?}");
        let plain = |keys: std::vec::Vec<String>| -> std::vec::Vec<String> {
            let of_lists = ["heap_type", "processor_id_low", "type"];
            keys.into_iter().filter(|key| !of_lists.contains(&&**key)).collect()
        };
        let first = plain(first);
        for node in nodes {
            assert_eq!(plain(keys(node)), first);
        }
    }
}
