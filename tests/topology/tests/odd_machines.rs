//! Machines that are not like the others, each a fault seen in the field.

use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Object, Operation, Status};
use hsakmt_core::topology::{
    GfxVersion, HeapType, HiddenBecause, MajorChange, Settings, Snapshot, Unopened, read_snapshot,
};
use hsakmt_topology_tests::{Answer, EveryGpu, NodeSpec, SETTINGS, Tree, TreeOs};

fn discover(tree: &Tree) -> Snapshot {
    read_snapshot(&TreeOs::new(tree.clone()), &SETTINGS, &mut Unopened).expect("a snapshot")
}

fn hidden(snapshot: &Snapshot) -> Vec<(u32, HiddenBecause)> {
    snapshot.hidden().iter().map(|node| (node.sysfs_node, node.because)).collect()
}

/// A CPU and two GPUs.
fn small() -> Tree {
    Tree::new(&[
        NodeSpec::cpu(2, 0).linked(1, 20, 2).linked(2, 20, 2),
        NodeSpec::gpu(111, 128).linked(0, 20, 2),
        NodeSpec::gpu(222, 129).linked(0, 20, 2),
    ])
}

#[test]
fn b15_a_kernel_without_numa() {
    let mut tree = small();
    tree.remove("/node");
    tree.put_cpu_caches("/cpu", 2);
    let snapshot = discover(&tree);
    assert_eq!(snapshot.nodes().len(), 3);
    assert_eq!(snapshot.nodes()[0].caches.len(), 7);
    tree.remove("/cpu");
    let snapshot = discover(&tree);
    assert_eq!(snapshot.nodes().len(), 3);
    assert_eq!(snapshot.nodes()[0].caches.len(), 0);
    assert_eq!(snapshot.nodes()[1].gpu_id, 111);
}

#[test]
fn b16_cpus_without_caches_between_others() {
    let mut tree = small();
    tree.put_cpu_caches("/node/node0", 4);
    tree.remove("/node/node0/cpu0/cache");
    tree.put("/node/node0/cpu0/online", "0\n");
    for index in 0..4 {
        tree.remove(&format!("/node/node0/cpu1/cache/index{index}"));
    }
    tree.put("/node/node0/cpu1/cache/uevent", "");
    tree.remove("/node/node0/cpu2/cache/index0/size");
    let snapshot = discover(&tree);
    let caches = &snapshot.nodes()[0].caches;
    let levels: Vec<(u32, u32, u32)> =
        caches.iter().map(|cache| (cache.processor_id_low, cache.level, cache.size)).collect();
    assert_eq!(
        levels,
        [
            (2, 1, 0),
            (2, 1, 64 << 10),
            (2, 2, 1 << 20),
            (3, 1, 32 << 10),
            (3, 1, 64 << 10),
            (3, 2, 1 << 20),
        ],
        "the level-3 cache is its first CPU's to list"
    );
    assert_eq!(snapshot.nodes().len(), 3);
}

#[test]
fn cpu_caches_of_a_whole_machine() {
    let snapshot = discover(&small());
    let cpu = &snapshot.nodes()[0];
    assert_eq!(cpu.marketing_name.as_bytes(), b"Test CPU");
    assert_eq!(cpu.amd_name.as_bytes(), b"Test CPU");
    assert_eq!(cpu.caches.len(), 7);
    let last = cpu.caches[3];
    assert_eq!((last.level, last.size, last.cache_type), (3, 32 << 20, 7));
    assert_eq!((last.cache_line_size, last.association, last.cache_lines_per_tag), (64, 8, 1));
    assert_eq!(last.sibling_map.words(), &[3, 0, 0, 0]);
    assert_eq!(cpu.caches[1].cache_type, 6);
}

#[test]
fn cpu_caches_follow_the_numa_nodes_that_have_cpus() {
    let mut tree = Tree::new(&[NodeSpec::cpu(2, 0), NodeSpec::cpu(2, 2)]);
    tree.remove("/node");
    tree.put("/node/has_cpu", "1,8\n");
    tree.put_cpu_caches("/node/node1", 2);
    for index in 0..4 {
        let folder = format!("/node/node8/cpu2/cache/index{index}");
        tree.put(&format!("{folder}/level"), "1\n");
        tree.put(&format!("{folder}/shared_cpu_list"), "2\n");
    }
    let snapshot = discover(&tree);
    let counts: Vec<usize> = snapshot.nodes().iter().map(|node| node.caches.len()).collect();
    assert_eq!(counts, [7, 4]);
}

#[test]
fn b18_a_gpu_that_nobody_knows() {
    let mut tree = Tree::new(&[
        NodeSpec::cpu(2, 0),
        NodeSpec::gpu(111, 128).with("device_id", 0xfffe).with("gfx_target_version", 0),
        NodeSpec::gpu(222, 129),
    ]);
    let snapshot = discover(&tree);
    assert_eq!(snapshot.nodes().len(), 3);
    let unknown = &snapshot.nodes()[1];
    assert!(unknown.gfx_version.is_unknown() && unknown.amd_name.is_empty());
    assert_eq!(unknown.simd_count, 192);
    assert_eq!(snapshot.nodes()[2].amd_name.as_bytes(), b"GFX0b0000");
    // Nothing at all is known of it.
    tree.put("/topology/nodes/1/properties", "simd_count 4\ndrm_render_minor 128\n");
    assert_eq!(discover(&tree).nodes().len(), 3);
}

#[test]
fn b20_some_gpus_of_a_container() {
    // Ten nodes: two CPUs and eight GPUs of one hive; links to all.
    let tree = Tree::of_gpus(8, true);
    let os = TreeOs::new(tree).with_hook(|path, _| {
        let node = path.strip_prefix("/topology/nodes/")?.split('/').next()?;
        matches!(node, "3" | "4" | "7").then_some(Answer::Refused(Errno::EPERM))
    });
    let snapshot = read_snapshot(&os, &SETTINGS, &mut EveryGpu::default()).expect("a snapshot");
    let folders: Vec<u32> = snapshot.nodes().iter().map(|node| node.sysfs_node).collect();
    assert_eq!(folders, [0, 1, 2, 5, 6, 8, 9]);
    assert_eq!(
        hidden(&snapshot),
        [3, 4, 7].map(|node| (node, HiddenBecause::Forbidden)),
        "and nothing else is hidden"
    );
    assert_eq!(snapshot.sysfs_node_count(), 10);
    for (id, node) in (0u32..).zip(snapshot.nodes()) {
        assert_eq!(snapshot.by_sysfs_node(node.sysfs_node), Some(id));
        for link in &node.links {
            assert_eq!(link.node_from, id);
            assert!(link.node_to < 7 && link.node_to != id, "{link:?}");
        }
        if node.is_gpu() {
            assert_eq!(node.links.len(), 5, "its CPU and four peers");
            let home = (node.sysfs_node - 2) % 2;
            assert_eq!(node.links[0].node_to, home);
        }
    }
    assert_eq!(snapshot.by_sysfs_node(3), None);
}

#[test]
fn b20_hidden_by_the_render_node_or_by_choice() {
    struct Second;
    impl hsakmt_core::topology::GpuAccess for Second {
        fn access(
            &mut self,
            gpu: &hsakmt_core::topology::GpuIdentity,
        ) -> Result<hsakmt_core::topology::Access, hsakmt_core::error::Error> {
            use hsakmt_core::topology::Access;
            Ok(if gpu.gpu_id == 222 { Access::Usable(None) } else { Access::Hidden })
        }
    }
    let snapshot =
        read_snapshot(&TreeOs::new(small()), &SETTINGS, &mut Second).expect("a snapshot");
    assert_eq!(hidden(&snapshot), [(1, HiddenBecause::RenderNodeRefused)]);
    assert_eq!(snapshot.by_gpu_id(222), Some(1));
    let links: Vec<u32> = snapshot.nodes()[0].links.iter().map(|link| link.node_to).collect();
    assert_eq!(links, [1]);
}

#[test]
fn b22_no_render_minor_is_no_minor_at_all() {
    let mut tree = Tree::new(&[
        NodeSpec::cpu(2, 0),
        NodeSpec::gpu(111, 128),
        NodeSpec::gpu(222, 129).without("drm_render_minor"),
        NodeSpec::gpu(333, 130).with("drm_render_minor", 0),
        NodeSpec::gpu(444, 131).without("drm_render_minor"),
        NodeSpec::gpu(555, 291),
    ]);
    let path = "/topology/nodes/4/properties";
    let mut text = tree.files[path].clone();
    text.extend_from_slice(b"drm_render_minor -1\n");
    tree.put(path, text);
    let mut access = EveryGpu::default();
    let snapshot = read_snapshot(&TreeOs::new(tree), &SETTINGS, &mut access).expect("a snapshot");
    assert_eq!(hidden(&snapshot), [2, 3, 4].map(|node| (node, HiddenBecause::NoRenderNode)));
    let minors: Vec<u32> = access.asked.iter().map(|gpu| gpu.render_minor).collect();
    assert_eq!(minors, [128, 291]);
    assert_eq!(snapshot.by_render_minor(291), Some(2));
    assert_eq!(snapshot.by_render_minor(0), None);
}

#[test]
fn b24_partitions_of_one_card() {
    let minors = [128, 135, 142, 130];
    let mut nodes = vec![NodeSpec::cpu(2, 0)];
    for (index, minor) in minors.into_iter().enumerate() {
        nodes.push(NodeSpec::gpu(500 + index as u32, minor).with("location_id", 0x500));
    }
    let snapshot = discover(&Tree::new(&nodes));
    for (index, minor) in minors.into_iter().enumerate() {
        let id = index as u32 + 1;
        assert_eq!(snapshot.by_render_minor(minor), Some(id));
        assert_eq!(snapshot.by_gpu_id(500 + index as u32), Some(id));
        assert_eq!(snapshot.by_sysfs_node(id), Some(id));
        assert_eq!(snapshot.node(id).map(|node| node.drm_render_minor), Some(minor));
    }
    assert_eq!(snapshot.by_gpu_id(0), None);
    assert_eq!(snapshot.node(5), None);
}

#[test]
fn b26_an_override_of_another_machine() {
    let tree = Tree::new(&[
        NodeSpec::cpu(2, 0),
        NodeSpec::gpu(111, 128).with("device_id", 0x740f).with("gfx_target_version", 90010),
    ]);
    let read = |settings: &Settings<'_>| {
        read_snapshot(&TreeOs::new(tree.clone()), settings, &mut Unopened)
    };
    let settings = Settings { gfx_override: Some(b"10.3.0"), ..SETTINGS };
    let error = read(&settings).expect_err("refused");
    assert_eq!(
        (error.status, error.operation, error.object),
        (Status::ERROR, Operation::OverrideGfx, Object::Node(1))
    );
    assert!(error.to_string().contains("override"), "{error}");
    let allowing = Settings { major_change: MajorChange::Allow, ..settings };
    let snapshot = read(&allowing).expect("allowed");
    let version = |major, minor, stepping| GfxVersion { major, minor, stepping };
    assert_eq!(snapshot.nodes()[1].gfx_version, version(9, 0, 10));
    assert_eq!(snapshot.nodes()[1].effective_gfx_version(), version(10, 3, 0));
    let settings = Settings { gfx_override: Some(b"9.0.6"), ..SETTINGS };
    let snapshot = read(&settings).expect("accepted");
    assert_eq!(snapshot.nodes()[1].gfx_version, version(9, 0, 10));
    assert_eq!(snapshot.nodes()[1].gfx_override, Some(version(9, 0, 6)));
    let settings = Settings { gfx_override: Some(b"9.0"), ..SETTINGS };
    assert!(read(&settings).is_err(), "malformed");
    // On a machine without GPUs there is nothing to override.
    let cpu = Tree::new(&[NodeSpec::cpu(2, 0)]);
    assert!(read_snapshot(&TreeOs::new(cpu), &settings, &mut Unopened).is_ok());
}

#[test]
fn b27_names_of_all_kinds() {
    for (content, name) in [
        (Some(&b"aldebaran\n"[..]), &b"aldebaran"[..]),
        (Some(b""), b""),
        (Some(b"\n"), b""),
        (Some(&[b'x'; 300]), &[b'x'; 63]),
        (Some(b"veg\0a10\n"), b"veg"),
        (Some(b"caf\xe9\n"), b"caf\xe9"),
        (None, b""),
    ] {
        let mut tree = small();
        match content {
            Some(content) => tree.put("/topology/nodes/1/name", content),
            None => tree.remove("/topology/nodes/1/name"),
        }
        tree.remove("/topology/nodes/0/name");
        let snapshot = discover(&tree);
        assert_eq!(snapshot.nodes()[1].asic_name.as_bytes(), name);
        assert!(snapshot.settled());
    }
}

#[test]
fn b29_equal_cards_and_harvested_units() {
    let card = |gpu_id, minor| {
        NodeSpec::gpu(gpu_id, minor)
            .with("array_count", 8)
            .with("simd_arrays_per_engine", 2)
            .with("cu_per_simd_array", 8)
            .with("simd_per_cu", 2)
            .with("simd_count", 126)
            .with("location_id", 0x300)
    };
    let snapshot = discover(&Tree::new(&[NodeSpec::cpu(2, 0), card(111, 128), card(222, 129)]));
    let node = &snapshot.nodes()[1];
    assert_eq!(node.shader_engines, 4);
    assert_eq!(node.simd_count / node.simd_per_cu, 63, "one of 64 units is harvested");
    assert_eq!((node.simd_arrays_per_engine, node.cu_per_simd_array), (2, 8));
    assert_eq!(snapshot.by_gpu_id(111), Some(1));
    assert_eq!(snapshot.by_gpu_id(222), Some(2));
}

#[test]
fn b30_b31_banks_are_what_the_kernel_says() {
    let mut apu = NodeSpec::gpu(111, 128);
    apu.banks = vec![(1, 512 << 20)];
    let mut small_bar = NodeSpec::gpu(222, 129);
    small_bar.banks = vec![(1, 256 << 20), (2, 8 << 30)];
    let snapshot = discover(&Tree::new(&[NodeSpec::cpu(2, 0), apu, small_bar]));
    let banks = |node: usize| -> Vec<(HeapType, u64)> {
        let banks = snapshot.nodes()[node].banks.iter();
        banks.map(|bank| (bank.heap_type, bank.size_in_bytes)).collect()
    };
    assert_eq!(banks(1), [(HeapType::FRAME_BUFFER_PUBLIC, 512 << 20)]);
    assert_eq!(
        banks(2),
        [(HeapType::FRAME_BUFFER_PUBLIC, 256 << 20), (HeapType::FRAME_BUFFER_PRIVATE, 8 << 30),]
    );
}

#[test]
fn b32_looking_up_reads_nothing() {
    let os = TreeOs::new(small());
    let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
    os.forget_counts();
    for _ in 0..1000 {
        assert_eq!(snapshot.by_gpu_id(222), Some(2));
        assert_eq!(snapshot.by_render_minor(129), Some(2));
        assert_eq!(snapshot.by_sysfs_node(2), Some(2));
        assert_eq!(snapshot.node(2).map(|node| node.links.len()), Some(1));
    }
    assert_eq!(os.system_calls(), 0);
    let generation = hsakmt_core::topology::read_generation(&os, &SETTINGS).expect("a number");
    assert_eq!((generation, os.system_calls()), (7, 3));
}

#[test]
fn b33_discovery_touches_nothing_but_files() {
    let os = TreeOs::new(small());
    read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
    assert_eq!(os.other_calls(), 0);
    assert!(os.reads().keys().all(|path| !path.starts_with("/dev")));
    for (path, count) in os.reads() {
        let most = if path == "/topology/generation_id" { 2 } else { 1 };
        assert!(count <= most, "{path} was read {count} times");
    }
}

#[test]
fn b78_product_names_open_no_file() {
    let os = TreeOs::new(small());
    let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
    assert_eq!(snapshot.nodes()[1].marketing_name.as_bytes(), b"AMD Radeon Graphics");
    assert!(os.reads().keys().all(|path| {
        ["/topology/", "/cpuinfo", "/node/", "/cpu/"].iter().any(|root| path.starts_with(root))
    }));
}

#[test]
fn b80_cpus_of_other_makers() {
    for (text, name) in [
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\n", "Neoverse-V2"),
        ("processor\t: 0\nhart\t: 0\nuarch\t: sifive,u74-mc\n\n", "sifive,u74-mc"),
        ("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n\n", "POWER9, altivec supported"),
        ("processor\t: 0\nmodel name\t: Xeon\napicid\t: 0\n\n", "Xeon"),
        ("", ""),
    ] {
        let mut tree = small();
        tree.put("/cpuinfo", text);
        let snapshot = discover(&tree);
        assert_eq!(snapshot.nodes()[0].marketing_name.to_string(), name);
        assert_eq!(snapshot.nodes()[0].caches.len(), 7);
    }
}

#[test]
fn x6_files_of_any_shape() {
    let path = "/topology/nodes/1/properties";
    let plain = small();
    let expected = discover(&plain).nodes()[1].clone();
    let text = String::from_utf8(plain.files[path].clone()).expect("a text");
    let long_key = format!("{} 1\n", "k".repeat(5000));
    let filler: String = (0..700).map(|n| format!("unknown_property_{n} {n}\n")).collect();
    for odd in [
        format!("{filler}{text}"),
        format!("{long_key}{text}"),
        format!("{text}some_key {}\n", "9".repeat(40)),
        text.trim_end().to_string(),
        text.replace('\n', "\r\n"),
        format!("nul\0key 5\n\0\n{text}"),
        format!("\n\n{text}\n\n"),
    ] {
        assert!(odd.len() < 64 << 10);
        let mut tree = plain.clone();
        tree.put(path, odd);
        assert_eq!(discover(&tree).nodes()[1], expected);
    }
    // A value of 40 digits is no value.
    let mut tree = plain.clone();
    tree.put(path, text.replace("simd_count 192", &format!("simd_count {}", "9".repeat(40))));
    assert_eq!(discover(&tree).nodes()[1].simd_count, 0);
}

#[test]
fn x7_counts_that_lie() {
    let mut nodes = vec![NodeSpec::cpu(2, 0)];
    let mut gpu = NodeSpec::gpu(111, 128).linked(0, 20, 2).linked(2, 40, 2).linked(3, 40, 2);
    gpu = gpu
        .with("io_links_count", 10_000)
        .with("p2p_links_count", 4_000_000_000)
        .with("mem_banks_count", u64::MAX)
        .with("caches_count", 10_000);
    nodes.push(gpu);
    nodes.push(NodeSpec::gpu(222, 129).linked(0, 20, 2).linked(1, 40, 2).with("io_links_count", 1));
    nodes.push(NodeSpec::gpu(333, 130).with("caches_count", 0).with("mem_banks_count", 0));
    let os = TreeOs::new(Tree::new(&nodes));
    let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
    let lengths = |node: usize| {
        let node = &snapshot.nodes()[node];
        (node.banks.len(), node.caches.len(), node.links.len())
    };
    assert_eq!(lengths(1), (1, 2, 3), "the folders end first");
    assert_eq!(lengths(2), (1, 2, 1), "the kernel's count wins");
    assert_eq!(lengths(3), (0, 0, 0));
    assert!(os.system_calls() < 300, "{} system calls", os.system_calls());
}

#[test]
fn x8_a_gpu_id_that_is_none() {
    for (answer, because) in [
        (Answer::Content(Vec::new()), HiddenBecause::Unreadable),
        (Answer::Content(b"\n".to_vec()), HiddenBecause::Unreadable),
        (Answer::Content(b"gpu\n".to_vec()), HiddenBecause::Unreadable),
        (Answer::Content(b"4294967296\n".to_vec()), HiddenBecause::Unreadable),
        (Answer::Refused(Errno::EPERM), HiddenBecause::Forbidden),
    ] {
        let os = TreeOs::new(small())
            .with_hook(move |path, _| (path == "/topology/nodes/1/gpu_id").then(|| answer.clone()));
        let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
        assert_eq!(hidden(&snapshot), [(1, because)]);
        assert_eq!(snapshot.by_gpu_id(222), Some(1));
        assert!(snapshot.settled());
        assert_eq!(os.slept(), 0);
    }
}

#[test]
fn x9_machines_with_one_node_or_none() {
    let lonely = NodeSpec { p2p_links: None, ..NodeSpec::default() };
    let snapshot = discover(&Tree::new(&[lonely]));
    assert_eq!(snapshot.nodes().len(), 1);
    let node = &snapshot.nodes()[0];
    assert_eq!((node.banks.len(), node.caches.len(), node.links.len()), (0, 0, 0));
    let snapshot = discover(&Tree::new(&[NodeSpec::gpu(111, 128).linked(0, 20, 2)]));
    assert_eq!((snapshot.nodes().len(), snapshot.nodes()[0].links.len()), (1, 0));
    let snapshot = discover(&Tree::new(&[]));
    assert_eq!(snapshot.nodes().len(), 0);
    assert!(!snapshot.settled(), "a kernel has at least its CPUs");
}

#[test]
fn old_kernels_get_indirect_links() {
    let mut nodes = [
        NodeSpec::cpu(8, 0).linked(1, 32, 1).linked(2, 20, 2),
        NodeSpec::cpu(8, 8).linked(0, 32, 1).linked(3, 20, 2),
        NodeSpec::gpu(111, 128).linked(0, 20, 2),
        NodeSpec::gpu(222, 129).linked(1, 20, 2),
    ];
    for node in &mut nodes {
        node.p2p_links = None;
    }
    let ends = |snapshot: &Snapshot| -> Vec<Vec<(u32, u32)>> {
        let nodes = snapshot.nodes().iter();
        nodes.map(|node| node.links.iter().map(|l| (l.node_to, l.weight)).collect()).collect()
    };
    assert_eq!(
        ends(&discover(&Tree::new(&nodes))),
        [
            vec![(1, 32), (2, 20), (3, 52)],
            vec![(0, 32), (3, 20), (2, 52)],
            vec![(0, 20), (1, 52), (3, 72)],
            vec![(1, 20), (0, 52), (2, 72)],
        ]
    );
    // One node that knows p2p links is enough: the kernel has listed them all.
    nodes[3].p2p_links = Some(Vec::new());
    assert_eq!(ends(&discover(&Tree::new(&nodes)))[2], [(0, 20)]);
}

#[test]
fn cpus_and_gpu_in_one_node() {
    let apu = NodeSpec {
        gpu_id: 111,
        properties: {
            let mut properties = NodeSpec::cpu(8, 0).properties;
            for (key, value) in NodeSpec::gpu(111, 128).properties {
                if key != "cpu_cores_count" {
                    properties.retain(|(other, _)| *other != key);
                    properties.push((key, value));
                }
            }
            properties
        },
        banks: vec![(0, 16 << 30), (1, 1 << 30)],
        caches: vec![(1, 32)],
        ..NodeSpec::gpu(111, 128)
    };
    let snapshot = discover(&Tree::new(&[apu]));
    let node = &snapshot.nodes()[0];
    assert!(node.is_gpu() && node.cpu_cores_count == 8);
    assert_eq!(node.marketing_name.as_bytes(), b"Test CPU");
    assert_eq!(node.amd_name.as_bytes(), b"GFX0b0000", "the GPU's own");
    assert_eq!(node.caches.len(), 1);
}

#[test]
fn links_of_strangers_and_to_nowhere() {
    let mut tree = small();
    tree.put("/topology/nodes/1/io_links/0/properties", "node_from 7\nnode_to 0\nweight 20\n");
    tree.put("/topology/nodes/2/io_links/0/properties", "node_from 2\nnode_to 99\nweight 20\n");
    let snapshot = discover(&tree);
    assert_eq!(snapshot.nodes()[0].links.len(), 2);
    assert_eq!(snapshot.nodes()[1].links.len(), 0);
    assert_eq!(snapshot.nodes()[2].links.len(), 0);
}

#[test]
fn other_entries_of_the_folder() {
    let mut tree = small();
    tree.put("/topology/nodes/uevent", "x");
    tree.put("/topology/nodes/12x/gpu_id", "5");
    tree.put("/topology/nodes/99999999999/gpu_id", "5");
    assert_eq!(discover(&tree).nodes().len(), 3);
    assert!(discover(&tree).settled());
}
