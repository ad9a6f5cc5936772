//! Machines for tests.

use alloc::vec::Vec;

use hsakmt_core::topology::{
    Cache, GfxVersion, HeapType, IoLink, LinkType, MemoryBank, Node, SiblingMap,
};

fn bank(heap_type: HeapType, size_in_bytes: u64) -> MemoryBank {
    MemoryBank { heap_type, size_in_bytes, ..MemoryBank::default() }
}

fn cpu(socket: u32) -> Node {
    Node {
        sysfs_node: socket,
        cpu_cores_count: 96,
        cpu_core_id_base: socket * 128,
        max_engine_clk_ccompute: 3700,
        marketing_name: "AMD EPYC 9684X 96-Core Processor".into(),
        amd_name: "AMD EPYC 9684X 96-Core Processor".into(),
        banks: [bank(HeapType::SYSTEM, 768 << 30)].to_vec(),
        ..Node::default()
    }
}

fn gpu(index: u32, partitions: u32) -> Node {
    let device = index / partitions;
    let cache = |level, size, cache_type| Cache {
        level,
        size,
        cache_type,
        cache_line_size: 128,
        association: 16,
        ..Cache::default()
    };
    let mut caches = Vec::new();
    caches.extend((0..304 / partitions).map(|_| cache(1, 32, 9)));
    caches.extend((0..152 / partitions).map(|_| cache(1, 64, 10)));
    caches.push(cache(2, 4096, 9));
    Node {
        sysfs_node: 2 + index,
        gpu_id: 1000 + index * 7,
        asic_name: "ip discovery".into(),
        simd_count: 1216 / partitions,
        simd_per_cu: 4,
        wave_front_size: 64,
        lds_size_in_kb: 64,
        gfx_version: GfxVersion { major: 9, minor: 4, stepping: 2 },
        vendor_id: 0x1002,
        device_id: 0x74a1,
        location_id: ((5 + device) << 8) | (index % partitions),
        max_engine_clk_fcompute: 2100,
        drm_render_minor: 128 + index,
        marketing_name: "AMD Instinct MI300X".into(),
        amd_name: "GFX090402".into(),
        hive_id: 0xd2ca_0000_0000_0001,
        unique_id: 0xe3a9_0000_0000_0000 + u64::from(device),
        num_xcc: 8 / partitions,
        banks: [MemoryBank {
            width: 8192,
            mem_clk_max: 1300,
            ..bank(HeapType::FRAME_BUFFER_PUBLIC, (192 << 30) / u64::from(partitions))
        }]
        .to_vec(),
        caches,
        ..Node::default()
    }
}

fn link(link_type: LinkType, from: u32, to: u32, weight: u32, max_bandwidth: u32) -> IoLink {
    IoLink {
        link_type,
        node_from: from,
        node_to: to,
        weight,
        max_bandwidth,
        flags: if from < to { 3 } else { 1 },
        ..IoLink::default()
    }
}

/// Two CPUs and `devices` GPUs in `partitions` each: GPUs of the first half at
/// the first CPU, all of them in one hive.
pub fn mi300x(devices: u32, partitions: u32) -> Vec<Node> {
    let gpus = devices * partitions;
    let mut nodes: Vec<Node> = (0..2).map(cpu).collect();
    nodes.extend((0..gpus).map(|index| gpu(index, partitions)));
    for (from, to) in [(0u32, 1u32), (1, 0)] {
        let hypertransport = link(LinkType::HYPERTRANSPORT, from, to, 32, 0);
        nodes[from as usize].links.push(hypertransport);
    }
    for index in 0..gpus {
        let (node, cpu) = (2 + index, u32::from(index >= gpus / 2));
        nodes[cpu as usize].links.push(link(LinkType::PCI_EXPRESS, cpu, node, 20, 64000));
        nodes[node as usize].links.push(link(LinkType::PCI_EXPRESS, node, cpu, 20, 64000));
        for other in (0..gpus).filter(|&other| other != index) {
            let same = other / partitions == index / partitions;
            let (weight, bandwidth) = if same { (13, 819_200) } else { (15, 64000) };
            let mut xgmi = link(LinkType::XGMI, node, 2 + other, weight, bandwidth);
            xgmi.recommended_sdma_engine_id_mask = 1 << (other % 8);
            nodes[node as usize].links.push(xgmi);
        }
    }
    nodes
}

/// One node that is both: an old APU, its caches as the operating system
/// counts them.
pub fn apu() -> Vec<Node> {
    let mut siblings = SiblingMap::default();
    siblings.insert(0);
    siblings.insert(5);
    let cache = |level, size, cache_type| Cache {
        level,
        size,
        cache_type,
        sibling_map: siblings,
        ..Cache::default()
    };
    let node = Node {
        gpu_id: 4711,
        cpu_cores_count: 8,
        simd_count: 44,
        simd_per_cu: 4,
        marketing_name: "AMD Ryzen 7\u{9b}31m with Radeon".into(),
        amd_name: "Raven".into(),
        asic_name: "raven".into(),
        gfx_version: GfxVersion { major: 9, minor: 0, stepping: 2 },
        gfx_override: Some(GfxVersion { major: 9, minor: 0, stepping: 0 }),
        integrated: true,
        drm_render_minor: 128,
        location_id: 0xc400,
        banks: [MemoryBank { flags: 7, ..bank(HeapType::SYSTEM, 14 << 30) }].to_vec(),
        caches: [cache(1, 32 << 10, 5), cache(3, 4 << 20, 7)].to_vec(),
        ..Node::default()
    };
    [node].to_vec()
}
