//! The files of a CPU's cache, and the lists of processors and NUMA nodes.
#![no_main]

use hsakmt_fuzz::{files, read_plainly};
use hsakmt_topology_tests::Tree;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [has_cpu, shared, level, kind, size, line, ways, cpuinfo] = files(input);
    let mut tree = Tree::of_gpus(0, true);
    tree.put("/cpuinfo", cpuinfo);
    if !has_cpu.is_empty() {
        tree.put("/node/has_cpu", has_cpu);
    }
    for (name, content) in [
        ("shared_cpu_list", shared),
        ("level", level),
        ("type", kind),
        ("size", size),
        ("coherency_line_size", line),
        ("ways_of_associativity", ways),
    ] {
        tree.put(&format!("/node/node0/cpu0/cache/index0/{name}"), content);
    }
    let snapshot = read_plainly(tree).expect("caches refuse nothing");
    for node in snapshot.nodes() {
        assert!(node.caches.len() <= 2 * 16, "{} caches of 2 CPUs", node.caches.len());
    }
});
