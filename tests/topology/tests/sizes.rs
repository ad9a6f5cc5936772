//! Large machines, and small parts of them.

use hsakmt_core::topology::{Unopened, read_snapshot};
use hsakmt_topology_tests::{EveryGpu, OnlyGpus, SETTINGS, ScratchFolder, Source, Tree, TreeOs};

#[test]
fn trees_of_66_130_and_513_nodes() {
    for nodes in [66u32, 130, 513] {
        let gpus = nodes - 2;
        let os = TreeOs::new(Tree::of_gpus(gpus, false));
        let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
        assert_eq!(snapshot.nodes().len(), nodes as usize);
        for gpu in 0..gpus {
            let id = Some(gpu + 2);
            assert_eq!(snapshot.by_render_minor(128 + gpu), id);
            assert_eq!(snapshot.by_gpu_id(1000 + gpu), id);
            assert_eq!(snapshot.node(gpu + 2).map(|node| node.links.len()), Some(1));
        }
        let of_cpu = snapshot.nodes()[0].links.len();
        assert_eq!(of_cpu, 1 + gpus.div_ceil(2) as usize);
        for (path, count) in os.reads() {
            let most = if path == "/topology/generation_id" { 2 } else { 1 };
            assert!(count <= most, "{path} was read {count} times");
        }
    }
}

#[test]
fn one_of_64_gpus_costs_little_more_than_one_of_one() {
    let calls = |tree: Tree, wanted: &[u32]| {
        let os = TreeOs::new(tree);
        let snapshot = read_snapshot(&os, &SETTINGS, &mut OnlyGpus(wanted)).expect("a snapshot");
        assert_eq!(snapshot.nodes().len(), 3);
        assert_eq!(snapshot.nodes()[2].links.len(), 1, "to its own CPU");
        let homes: Vec<usize> = (0..2)
            .filter(|&cpu| snapshot.nodes()[cpu].links.iter().any(|link| link.node_to == 2))
            .collect();
        assert_eq!(homes.len(), 1, "from its own CPU");
        (os.system_calls(), os.reads().len())
    };
    let (one_of_one, _) = calls(Tree::of_gpus(1, true), &[1000]);
    for gpu in 0..64 {
        let (one_of_64, _) = calls(Tree::of_gpus(64, true), &[1000 + gpu]);
        // Of each other GPU its id is read, and a few links are tried.
        let more = one_of_64 - one_of_one;
        assert!(more <= 63 * 3 + 30 * 3, "{more} system calls more for GPU {gpu}");
    }
}

#[test]
fn the_whole_of_64_gpus_keeps_every_link() {
    let os = TreeOs::new(Tree::of_gpus(64, true));
    let snapshot = read_snapshot(&os, &SETTINGS, &mut EveryGpu::default()).expect("a snapshot");
    for node in &snapshot.nodes()[2..] {
        assert_eq!(node.links.len(), 64);
    }
}

#[test]
fn a_real_folder_reads_like_memory() {
    let tree = Tree::of_gpus(3, true);
    let scratch = ScratchFolder::new();
    tree.write_to(scratch.path());
    let folder = TreeOs::over(Source::Folder(scratch.path().to_path_buf()));
    let from_folder = read_snapshot(&folder, &SETTINGS, &mut Unopened).expect("a snapshot");
    let memory = TreeOs::new(tree);
    let from_memory = read_snapshot(&memory, &SETTINGS, &mut Unopened).expect("a snapshot");
    assert_eq!(from_folder, from_memory);
    assert_eq!(folder.reads(), memory.reads());
}
