//! Files of one number or one name: `generation_id`, `gpu_id`, `name`.
#![no_main]

use hsakmt_fuzz::{files, read_plainly};
use hsakmt_topology_tests::Tree;
use libfuzzer_sys::fuzz_target;

/// A number that stands alone, read the slow way.
fn number(content: &[u8]) -> Option<u64> {
    let digits = content.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fuzz_target!(|input: &[u8]| {
    let [generation, gpu_id, name] = files(input);
    let mut tree = Tree::of_gpus(1, true);
    tree.put("/topology/generation_id", generation);
    tree.put("/topology/nodes/2/gpu_id", gpu_id);
    tree.put("/topology/nodes/2/name", name);
    let snapshot = match (number(generation), read_plainly(tree)) {
        (None, read) => return assert!(read.is_err()),
        (Some(number), read) => {
            let snapshot = read.expect("a generation");
            assert_eq!(snapshot.generation(), number);
            snapshot
        }
    };
    let gpu = snapshot.by_sysfs_node(2).and_then(|id| snapshot.node(id));
    match number(gpu_id).map(u32::try_from) {
        Some(Ok(id @ 1..)) => assert_eq!(gpu.expect("a GPU").gpu_id, id),
        _ => assert!(gpu.is_none()),
    }
});
