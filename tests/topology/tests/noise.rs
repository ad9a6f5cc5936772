//! Files with anything in them: nothing panics, and what comes out is whole.

use hsakmt_core::topology::{Snapshot, Unopened, read_snapshot};
use hsakmt_topology_tests::{SETTINGS, Tree, TreeOs};

/// A generator of numbers, the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

/// Changes a text in one of the ways in which texts go wrong.
fn spoil(content: &mut Vec<u8>, numbers: &mut Numbers) {
    let place = numbers.below(content.len() + 1);
    match numbers.below(8) {
        0 => content.truncate(place),
        1 => content.insert(place, numbers.below(256) as u8),
        2 => content.splice(place..place, *b"18446744073709551615").for_each(drop),
        3 => content.splice(place..place, *b"99999999999999999999").for_each(drop),
        4 => content.splice(place..place, *b"\n4294967295\n").for_each(drop),
        5 => content.extend_from_within(place..),
        6 => content.extend((0..place * 40).map(|_| numbers.below(256) as u8)),
        _ => {
            if let Some(byte) = content.get_mut(place) {
                *byte = b"0123456789 \n\r\0-,"[numbers.below(16)];
            }
        }
    }
}

fn is_whole(snapshot: &Snapshot) {
    let nodes = snapshot.nodes();
    for (id, node) in (0u32..).zip(nodes) {
        assert_eq!(snapshot.by_sysfs_node(node.sysfs_node), Some(id));
        assert!(node.links.len() < nodes.len().max(1));
        for link in &node.links {
            assert_eq!(link.node_from, id);
            assert!((link.node_to as usize) < nodes.len());
        }
        if node.is_gpu() {
            let same = snapshot.by_gpu_id(node.gpu_id).and_then(|id| snapshot.node(id));
            assert_eq!(same.map(|same| same.gpu_id), Some(node.gpu_id));
            assert_ne!(node.drm_render_minor, 0);
        }
    }
    for hidden in snapshot.hidden() {
        assert_eq!(snapshot.by_sysfs_node(hidden.sysfs_node), None);
    }
}

#[test]
fn spoilt_files_do_no_harm() {
    let mut numbers = Numbers(7);
    let mut whole = 0;
    for round in 0..3000 {
        let mut tree = Tree::of_gpus(2, true);
        if round % 2 == 0 {
            for content in tree.files.values_mut() {
                let text = String::from_utf8_lossy(content).replace("p2p_links_count", "other");
                *content = text.into_bytes();
            }
        }
        let paths: Vec<String> = tree.files.keys().cloned().collect();
        for _ in 0..1 + numbers.below(4) {
            let path = &paths[numbers.below(paths.len())];
            let content = tree.files.get_mut(path).expect("a file");
            spoil(content, &mut numbers);
        }
        if let Ok(snapshot) = read_snapshot(&TreeOs::new(tree), &SETTINGS, &mut Unopened) {
            is_whole(&snapshot);
            whole += 1;
        }
    }
    assert!(whole > 2000, "only {whole} snapshots");
}
