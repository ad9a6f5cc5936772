//! The `properties` of a memory bank, a cache and links of both kinds.
#![no_main]

use hsakmt_fuzz::{files, read_plainly, value_of};
use hsakmt_topology_tests::Tree;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [bank, cache, link, p2p_link] = files(input);
    let mut tree = Tree::of_gpus(2, false);
    let folder = "/topology/nodes/2";
    tree.put(&format!("{folder}/mem_banks/0/properties"), bank);
    tree.put(&format!("{folder}/caches/0/properties"), cache);
    tree.put(&format!("{folder}/io_links/0/properties"), link);
    let node = format!("{folder}/properties");
    let text = String::from_utf8(tree.files[&node].clone()).expect("a text");
    tree.put(&node, text.replace("p2p_links_count 0", "p2p_links_count 1"));
    tree.put(&format!("{folder}/p2p_links/0/properties"), p2p_link);
    let snapshot = read_plainly(tree).expect("entries refuse nothing");
    let gpu = &snapshot.nodes()[2];
    if !bank.is_empty() {
        let read = gpu.banks[0];
        assert_eq!(read.heap_type.0, value_of(bank, "heap_type") as u32);
        assert_eq!(read.size_in_bytes, value_of(bank, "size_in_bytes"));
        assert_eq!(read.mem_clk_max, value_of(bank, "mem_clk_max") as u32);
    }
    if !cache.is_empty() {
        let read = gpu.caches[0];
        assert_eq!(read.processor_id_low, value_of(cache, "processor_id_low") as u32);
        assert_eq!(read.level, value_of(cache, "level") as u32);
        assert_eq!(read.association, value_of(cache, "association") as u32);
    }
    for (text, read) in [link, p2p_link].iter().zip(&gpu.links) {
        // Where the first is no link, the other stands in its place.
        let of = if gpu.links.len() == 2 || value_of(text, "node_to") as u32 == read.node_to {
            text
        } else {
            continue;
        };
        if value_of(of, "node_from") == 2 && gpu.links.len() == 2 {
            assert_eq!(read.weight, value_of(of, "weight") as u32);
            assert_eq!(read.max_bandwidth, value_of(of, "max_bandwidth") as u32);
        }
    }
});
