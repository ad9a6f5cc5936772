//! `/proc/cpuinfo` of any architecture.
#![no_main]

use hsakmt_fuzz::read_plainly;
use hsakmt_topology_tests::Tree;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut tree = Tree::of_gpus(0, true);
    tree.put("/cpuinfo", input);
    let snapshot = read_plainly(tree).expect("a text of CPUs refuses nothing");
    assert_eq!(snapshot.nodes().len(), 2);
});
