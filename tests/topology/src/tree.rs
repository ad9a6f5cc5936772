//! A tree of small files in memory.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Files by path, as the reader asks for them (`/topology/nodes/0/gpu_id`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// The files.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Folders that hold nothing.
    pub empty_folders: Vec<String>,
}

/// What is in a node's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// `gpu_id`.
    pub gpu_id: u32,
    /// `name`, without its line end.
    pub name: String,
    /// `properties`, in order; the counts are added.
    pub properties: Vec<(String, u64)>,
    /// `mem_banks`: heap type and bytes.
    pub banks: Vec<(u32, u64)>,
    /// `caches`: level and KiB.
    pub caches: Vec<(u32, u32)>,
    /// `io_links`: node, weight, type.
    pub io_links: Vec<(u32, u32, u32)>,
    /// `p2p_links`; `None`: a kernel without.
    pub p2p_links: Option<Vec<(u32, u32, u32)>>,
}

impl NodeSpec {
    /// CPUs of one NUMA node.
    #[must_use]
    pub fn cpu(cores: u64, first_apic_id: u64) -> NodeSpec {
        NodeSpec { banks: vec![(0, 64 << 30)], p2p_links: Some(Vec::new()), ..NodeSpec::default() }
            .with("cpu_cores_count", cores)
            .with("simd_count", 0)
            .with("cpu_core_id_base", first_apic_id)
    }

    /// A GPU of the RX 7900 kind.
    #[must_use]
    pub fn gpu(gpu_id: u32, render_minor: u32) -> NodeSpec {
        NodeSpec {
            gpu_id,
            name: "ip discovery".into(),
            banks: vec![(1, 24 << 30)],
            caches: vec![(1, 32), (2, 6144)],
            p2p_links: Some(Vec::new()),
            ..NodeSpec::default()
        }
        .with("cpu_cores_count", 0)
        .with("simd_count", 192)
        .with("simd_id_base", 0x8000_0000 + u64::from(gpu_id))
        .with("lds_size_in_kb", 64)
        .with("array_count", 12)
        .with("simd_arrays_per_engine", 2)
        .with("cu_per_simd_array", 8)
        .with("simd_per_cu", 2)
        .with("gfx_target_version", 110_000)
        .with("vendor_id", 0x1002)
        .with("device_id", 0x744c)
        .with("location_id", u64::from(render_minor) << 8)
        .with("drm_render_minor", u64::from(render_minor))
    }

    /// The same with another value for a key.
    #[must_use]
    pub fn with(mut self, key: &str, value: u64) -> NodeSpec {
        match self.properties.iter_mut().find(|(other, _)| other == key) {
            Some((_, old)) => *old = value,
            None => self.properties.push((key.into(), value)),
        }
        self
    }

    /// The same without a key.
    #[must_use]
    pub fn without(mut self, key: &str) -> NodeSpec {
        self.properties.retain(|(other, _)| other != key);
        self
    }

    /// The same with one more `io_links` entry.
    #[must_use]
    pub fn linked(mut self, to: u32, weight: u32, link_type: u32) -> NodeSpec {
        self.io_links.push((to, weight, link_type));
        self
    }
}

impl Tree {
    /// A tree with these nodes, two CPUs that share a cache, and a CPU name.
    #[must_use]
    pub fn new(nodes: &[NodeSpec]) -> Tree {
        let mut tree = Tree::default();
        tree.put("/topology/generation_id", "7\n");
        tree.put("/topology/system_properties", "platform_oem 1\nplatform_id 2\nplatform_rev 3\n");
        for (number, node) in nodes.iter().enumerate() {
            tree.put_node(number as u32, node);
        }
        if nodes.is_empty() {
            tree.empty_folders.push("/topology/nodes".into());
        }
        tree.put(
            "/cpuinfo",
            "processor\t: 0\nmodel name\t: Test CPU\napicid\t\t: 0\n\n\
             processor\t: 1\nmodel name\t: Test CPU\napicid\t\t: 1\n\n",
        );
        tree.put_cpu_caches("/node/node0", 2);
        tree
    }

    /// `count` GPUs on two sockets, linked to their own CPU and, `fully`, to each
    /// other.
    #[must_use]
    pub fn of_gpus(count: u32, fully: bool) -> Tree {
        let mut nodes = vec![NodeSpec::cpu(8, 0), NodeSpec::cpu(8, 8)];
        nodes[0] = nodes[0].clone().linked(1, 32, 1);
        nodes[1] = nodes[1].clone().linked(0, 32, 1);
        for gpu in 0..count {
            let home = gpu % 2;
            let mut node = NodeSpec::gpu(1000 + gpu, 128 + gpu).linked(home, 20, 2);
            if fully {
                for peer in (0..count).filter(|&peer| peer != gpu) {
                    node = node.linked(2 + peer, 15, 11);
                }
            }
            let cpu = &mut nodes[home as usize];
            *cpu = cpu.clone().linked(2 + gpu, 20, 2);
            nodes.push(node);
        }
        Tree::new(&nodes)
    }

    /// Writes or replaces a file.
    pub fn put(&mut self, path: &str, content: impl AsRef<[u8]>) {
        self.files.insert(path.into(), content.as_ref().to_vec());
    }

    /// Removes a file, or a folder with all in it.
    pub fn remove(&mut self, path: &str) {
        let below = format!("{path}/");
        self.files.retain(|file, _| file != path && !file.starts_with(&below));
    }

    /// Writes a node's folder.
    pub fn put_node(&mut self, number: u32, node: &NodeSpec) {
        let folder = format!("/topology/nodes/{number}");
        self.put(&format!("{folder}/gpu_id"), format!("{}\n", node.gpu_id));
        self.put(&format!("{folder}/name"), format!("{}\n", node.name));
        let mut text = String::new();
        let p2p_count = node.p2p_links.as_ref().map(Vec::len);
        for (key, count) in [
            ("mem_banks_count", Some(node.banks.len())),
            ("caches_count", Some(node.caches.len())),
            ("io_links_count", Some(node.io_links.len())),
            ("p2p_links_count", p2p_count),
        ] {
            let given = node.properties.iter().any(|(other, _)| other == key);
            if let (Some(count), false) = (count, given) {
                let _ = writeln!(text, "{key} {count}");
            }
        }
        for (key, value) in &node.properties {
            let _ = writeln!(text, "{key} {value}");
        }
        self.put(&format!("{folder}/properties"), text);
        for (index, (heap, bytes)) in node.banks.iter().enumerate() {
            self.put(
                &format!("{folder}/mem_banks/{index}/properties"),
                format!(
                    "heap_type {heap}\nsize_in_bytes {bytes}\nflags 0\nwidth 64\nmem_clk_max 3200\n"
                ),
            );
        }
        for (index, (level, size)) in node.caches.iter().enumerate() {
            self.put(
                &format!("{folder}/caches/{index}/properties"),
                format!("processor_id_low {index}\nlevel {level}\nsize {size}\ntype 9\nsibling_map 1,1,0\n"),
            );
        }
        for (name, links) in [
            ("io_links", &node.io_links),
            ("p2p_links", node.p2p_links.as_ref().unwrap_or(&Vec::new())),
        ] {
            for (index, (to, weight, link_type)) in links.iter().enumerate() {
                self.put(
                    &format!("{folder}/{name}/{index}/properties"),
                    format!(
                        "type {link_type}\nversion_major 0\nversion_minor 0\nnode_from {number}\n\
                         node_to {to}\nweight {weight}\nmin_latency 0\nmax_latency 0\n\
                         min_bandwidth 312\nmax_bandwidth 32000\nrecommended_transfer_size 0\n\
                         recommended_sdma_engine_id_mask 3\nflags 1\n"
                    ),
                );
            }
        }
    }

    /// Writes CPU folders with level-1, level-2 caches each and one level-3 cache
    /// for all.
    pub fn put_cpu_caches(&mut self, folder: &str, cpus: u32) {
        let all = format!("0-{}\n", cpus - 1);
        for cpu in 0..cpus {
            let own = format!("{cpu}\n");
            for (index, (level, kind, size, shared)) in [
                (1, "Data", "32K", &own),
                (1, "Instruction", "64K", &own),
                (2, "Unified", "1024K", &own),
                (3, "Unified", "32M", &all),
            ]
            .into_iter()
            .enumerate()
            {
                let cache = format!("{folder}/cpu{cpu}/cache/index{index}");
                self.put(&format!("{cache}/level"), format!("{level}\n"));
                self.put(&format!("{cache}/type"), format!("{kind}\n"));
                self.put(&format!("{cache}/size"), format!("{size}\n"));
                self.put(&format!("{cache}/shared_cpu_list"), shared);
                self.put(&format!("{cache}/coherency_line_size"), "64\n");
                self.put(&format!("{cache}/ways_of_associativity"), "8\n");
                self.put(&format!("{cache}/physical_line_partition"), "1\n");
            }
        }
    }

    /// Writes the tree below a folder.
    pub fn write_to(&self, folder: &Path) {
        for (path, content) in &self.files {
            let file = folder.join(path.trim_start_matches('/'));
            fs::create_dir_all(file.parent().expect("a file has a folder")).expect("a folder");
            fs::write(file, content).expect("a file");
        }
        for path in &self.empty_folders {
            fs::create_dir_all(folder.join(path.trim_start_matches('/'))).expect("a folder");
        }
    }

    /// Reads a tree from a folder; its files appear below `prefix`.
    #[must_use]
    pub fn read_from(folder: &Path, prefix: &str) -> Tree {
        let mut tree = Tree::default();
        tree.add_folder(folder, prefix);
        tree
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = format!("{prefix}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                self.add_folder(&entry.path(), &path);
            } else {
                self.put(&path, fs::read(entry.path()).expect("a file"));
            }
        }
    }
}
