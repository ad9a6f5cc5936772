//! The order of nodes means nothing: permuting a tree permutes the result.

use std::collections::BTreeSet;

use hsakmt_core::errno::Errno;
use hsakmt_core::topology::{Node, Snapshot, Unopened, read_snapshot};
use hsakmt_topology_tests::{Answer, NodeSpec, SETTINGS, Tree, TreeOs};

/// A small generator of numbers: enough to shuffle, and the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % bound
    }

    fn shuffled(&mut self, length: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..length as u32).collect();
        for place in (1..length).rev() {
            order.swap(place, self.below(place + 1));
        }
        order
    }
}

/// A machine of 1 to 3 CPU nodes and up to 8 GPUs, some odd, with random links.
fn machine(numbers: &mut Numbers) -> Vec<NodeSpec> {
    let cpus = 1 + numbers.below(3);
    let gpus = numbers.below(9);
    let mut nodes: Vec<NodeSpec> =
        (0..cpus).map(|cpu| NodeSpec::cpu(4, 100 + cpu as u64)).collect();
    for gpu in 0..gpus as u32 {
        let mut node = NodeSpec::gpu(1000 + gpu, 128 + gpu)
            .with("hive_id", numbers.below(2) as u64)
            .with("unique_id", u64::from(gpu));
        match numbers.below(6) {
            0 => node = node.without("drm_render_minor"),
            1 => node = node.with("gfx_target_version", 0),
            2 => node.banks = vec![(2, 1 << 30)],
            _ => {}
        }
        nodes.push(node);
    }
    let known = numbers.below(3) > 0;
    for from in 0..nodes.len() {
        for to in 0..nodes.len() {
            if from != to && numbers.below(3) > 0 {
                nodes[from].io_links.push((to as u32, 10 + numbers.below(30) as u32, 2));
            }
        }
        nodes[from].p2p_links = known.then(Vec::new);
    }
    nodes
}

/// The same machine with node n at place `order[n]`.
fn permuted(nodes: &[NodeSpec], order: &[u32]) -> Vec<NodeSpec> {
    let mut permuted = nodes.to_vec();
    for (node, &place) in nodes.iter().zip(order) {
        let mut node = node.clone();
        for link in &mut node.io_links {
            link.0 = order[link.0 as usize];
        }
        permuted[place as usize] = node;
    }
    permuted
}

/// Who a node is, wherever it stands: CPUs by their first core, GPUs by their id.
fn identity(node: &Node) -> (u32, u32) {
    (node.gpu_id, node.cpu_core_id_base)
}

/// What is true of each node whatever the order; the links as a set, because
/// their order follows that of the nodes.
fn facts(snapshot: &Snapshot) -> BTreeSet<String> {
    let nodes = snapshot.nodes();
    nodes
        .iter()
        .map(|node| {
            let links: BTreeSet<String> = node
                .links
                .iter()
                .map(|link| {
                    assert_eq!(identity(&nodes[link.node_from as usize]), identity(node));
                    let to = identity(&nodes[link.node_to as usize]);
                    format!("{to:?} {} {:?}", link.weight, link.link_type)
                })
                .collect();
            let plain = Node { sysfs_node: 0, links: Vec::new(), ..node.clone() };
            format!("{plain:?} {links:?}")
        })
        .collect()
}

#[test]
fn permuting_nodes_permutes_results_only() {
    let mut numbers = Numbers(1);
    let settings = hsakmt_core::topology::Settings {
        // CPU caches belong to NUMA nodes by their order.
        numa_nodes: None,
        cpus: None,
        ..SETTINGS
    };
    for _ in 0..200 {
        let nodes = machine(&mut numbers);
        let order = numbers.shuffled(nodes.len());
        let forbidden = numbers.below(nodes.len() * 2) as u32;
        let read = |nodes: &[NodeSpec], forbidden: Option<u32>| {
            let os = TreeOs::new(Tree::new(nodes)).with_hook(move |path, _| {
                let node = path.strip_prefix("/topology/nodes/")?.split('/').next()?;
                let node: u32 = node.parse().ok()?;
                (Some(node) == forbidden).then_some(Answer::Refused(Errno::EPERM))
            });
            read_snapshot(&os, &settings, &mut Unopened).expect("a snapshot")
        };
        let plain = read(&nodes, Some(forbidden));
        let there = order.get(forbidden as usize).copied();
        let other = read(&permuted(&nodes, &order), there);
        assert_eq!(facts(&plain), facts(&other));
        assert_eq!(plain.nodes().len() + plain.hidden().len(), nodes.len());
        assert!(other.nodes().is_sorted_by_key(|node| node.sysfs_node), "ids keep the order");
    }
}
