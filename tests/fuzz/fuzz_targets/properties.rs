//! The `properties` of a node, and of the system.
#![no_main]

use hsakmt_fuzz::{files, read_plainly, value_of};
use hsakmt_topology_tests::Tree;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [system, node] = files(input);
    let mut tree = Tree::of_gpus(1, true);
    tree.put("/topology/system_properties", system);
    tree.put("/topology/nodes/2/properties", node);
    let snapshot = read_plainly(tree).expect("properties refuse nothing");
    let told = snapshot.system();
    for (key, read) in [
        ("platform_oem", told.platform_oem),
        ("platform_id", told.platform_id),
        ("platform_rev", told.platform_rev),
    ] {
        assert_eq!(read, value_of(system, key), "{key}");
    }
    let Some(gpu) = snapshot.by_sysfs_node(2).and_then(|id| snapshot.node(id)) else { return };
    for (key, read) in [
        ("hive_id", gpu.hive_id),
        ("local_mem_size", gpu.local_mem_size),
        ("unique_id", gpu.unique_id),
        ("debug_prop", gpu.debug_prop),
    ] {
        assert_eq!(read, value_of(node, key), "{key}");
    }
    for (key, read) in [
        ("cpu_cores_count", gpu.cpu_cores_count),
        ("simd_count", gpu.simd_count),
        ("lds_size_in_kb", gpu.lds_size_in_kb),
        ("fw_version", gpu.fw_version),
        ("max_engine_clk_ccompute", gpu.max_engine_clk_ccompute),
    ] {
        assert_eq!(read, value_of(node, key) as u32, "{key}");
    }
});
