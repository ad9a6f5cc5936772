//! Links over more than one hop, for kernels that list none (before 5.18).
//!
//! A GPU reaches another node through the CPU that it is plugged into. Such a
//! link's weight is the sum of its hops, its type that of the hop in the middle
//! (of the second hop where there are two); the rest of it is not known and
//! stays 0.

use alloc::vec::Vec;

use super::{HeapType, IoLink, LinkType, Node};
use crate::error::Error;
use crate::fallible::{try_extend, try_push};

/// CPU and GPU are neighbours, and two CPUs sit in one socket, up to this weight.
const NEAR: u32 = 20;

/// The cost of one hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Hop {
    /// 0: no link.
    weight: u32,
    link_type: LinkType,
}

/// What the search needs of a node.
#[derive(Debug, Clone, Copy)]
struct Place {
    is_gpu: bool,
    hive_id: u64,
    /// Its video memory can be reached from outside.
    large_bar: bool,
    /// The CPU node that a GPU is plugged into, and the hop to it.
    cpu: Option<(usize, Hop)>,
}

/// Adds indirect links to all nodes. `nodes` are in the order of their public
/// ids; each gets at most as many links as there are other nodes.
pub(super) fn add_indirect_links(nodes: &mut [Node]) -> Result<(), Error> {
    let mut places = Vec::new();
    places.try_reserve_exact(nodes.len())?;
    for node in nodes.iter() {
        try_push(&mut places, place(node, nodes))?;
    }
    // The hops from a CPU to every node, so that a pair costs no search. A GPU
    // has its hop in `cpu`, unless it is far from every CPU.
    let mut hops: Vec<Vec<Hop>> = Vec::new();
    hops.try_reserve_exact(nodes.len())?;
    for (node, place) in nodes.iter().zip(&places) {
        let mut from = Vec::new();
        if place.cpu.is_none() || node.cpu_cores_count > 0 {
            from.try_reserve_exact(nodes.len())?;
            try_extend(&mut from, nodes.iter().map(|_| Hop::default()))?;
            for link in &node.links {
                if let Some(hop @ Hop { weight: 0, .. }) = from.get_mut(link.node_to as usize) {
                    *hop = Hop { weight: link.weight, link_type: link.link_type };
                }
            }
        }
        try_push(&mut hops, from)?;
    }
    let room = nodes.len().saturating_sub(1);
    for one in 0..nodes.len() {
        for other in one.saturating_add(1)..nodes.len() {
            for (from, to) in [(one, other), (other, one)] {
                let Some(hop) = indirect(from, to, &places, &hops) else {
                    continue;
                };
                let Some(node) = nodes.get_mut(from) else {
                    continue;
                };
                let (Ok(node_from), Ok(node_to)) = (u32::try_from(from), u32::try_from(to)) else {
                    continue;
                };
                let linked = node.links.iter().any(|link| link.node_to == node_to);
                if !linked && node.links.len() < room {
                    let link = IoLink {
                        link_type: hop.link_type,
                        node_from,
                        node_to,
                        weight: hop.weight,
                        ..IoLink::default()
                    };
                    try_push(&mut node.links, link)?;
                }
            }
        }
    }
    Ok(())
}

fn place(node: &Node, nodes: &[Node]) -> Place {
    let cpu = node.links.iter().filter(|_| node.is_gpu()).find_map(|link| {
        let near =
            matches!(link.link_type, LinkType::PCI_EXPRESS | LinkType::XGMI) && link.weight <= NEAR;
        let cpu = usize::try_from(link.node_to).ok()?;
        let is_cpu = nodes.get(cpu).is_some_and(|node| node.cpu_cores_count > 0);
        let hop = Hop { weight: link.weight, link_type: link.link_type };
        (near && is_cpu).then_some((cpu, hop))
    });
    let large_bar = node.banks.iter().any(|bank| bank.heap_type == HeapType::FRAME_BUFFER_PUBLIC);
    Place { is_gpu: node.is_gpu(), hive_id: node.hive_id, large_bar, cpu }
}

/// The link between two nodes over their CPUs, if there is one.
fn indirect(from: usize, to: usize, places: &[Place], hops: &[Vec<Hop>]) -> Option<Hop> {
    let (source, target) = (places.get(from)?, places.get(to)?);
    if !source.is_gpu && !target.is_gpu {
        return None;
    }
    if source.hive_id != 0 && source.hive_id == target.hive_id {
        return None;
    }
    if target.is_gpu && !target.large_bar {
        return None;
    }
    let between = |from: usize, to: usize| -> Option<Hop> {
        hops.get(from)?.get(to).copied().filter(|hop| hop.weight > 0)
    };
    let (weights, link_type) = match (source.cpu, target.cpu) {
        (Some((cpu, up)), Some((last, _))) if cpu == last => {
            let down = between(cpu, to)?;
            ([up.weight, down.weight, 0], down.link_type)
        }
        (Some((first, up)), Some((last, _))) => {
            let across = between(first, last)?;
            // GPUs do not reach each other over QPI between sockets.
            if across.link_type == LinkType::QPI_1_1 && across.weight > NEAR {
                return None;
            }
            let down = between(last, to)?;
            ([up.weight, across.weight, down.weight], across.link_type)
        }
        (Some((cpu, up)), None) => {
            let across = between(cpu, to)?;
            ([up.weight, across.weight, 0], across.link_type)
        }
        (None, Some((cpu, _))) => {
            let across = between(from, cpu)?;
            let down = between(cpu, to)?;
            ([across.weight, down.weight, 0], across.link_type)
        }
        (None, None) => return None,
    };
    let weight = weights.iter().fold(0u32, |sum, &weight| sum.saturating_add(weight));
    Some(Hop { weight, link_type })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::MemoryBank;
    use alloc::vec;

    fn cpu(links: &[(u32, u32, LinkType)]) -> Node {
        Node { cpu_cores_count: 8, links: to_links(links), ..Node::default() }
    }

    fn gpu(hive_id: u64, links: &[(u32, u32, LinkType)]) -> Node {
        let banks =
            vec![MemoryBank { heap_type: HeapType::FRAME_BUFFER_PUBLIC, ..MemoryBank::default() }];
        Node { gpu_id: 1, simd_count: 4, hive_id, links: to_links(links), banks, ..Node::default() }
    }

    fn to_links(links: &[(u32, u32, LinkType)]) -> Vec<IoLink> {
        links
            .iter()
            .map(|&(node_to, weight, link_type)| IoLink {
                node_to,
                weight,
                link_type,
                ..IoLink::default()
            })
            .collect()
    }

    fn linked(nodes: &[Node], node: usize) -> Vec<(u32, u32, LinkType)> {
        nodes[node].links.iter().map(|link| (link.node_to, link.weight, link.link_type)).collect()
    }

    const PCIE: LinkType = LinkType::PCI_EXPRESS;
    const HT: LinkType = LinkType::HYPERTRANSPORT;
    const QPI: LinkType = LinkType::QPI_1_1;

    /// Two sockets with a GPU each.
    fn two_sockets(between: LinkType, weight: u32) -> [Node; 4] {
        [
            cpu(&[(1, weight, between), (2, 20, PCIE)]),
            cpu(&[(0, weight, between), (3, 20, PCIE)]),
            gpu(0, &[(0, 20, PCIE)]),
            gpu(0, &[(1, 20, PCIE)]),
        ]
    }

    #[test]
    fn two_gpus_behind_one_cpu() {
        let mut nodes = [
            cpu(&[(1, 20, PCIE), (2, 18, PCIE)]),
            gpu(0, &[(0, 20, PCIE)]),
            gpu(0, &[(0, 18, PCIE)]),
        ];
        add_indirect_links(&mut nodes).unwrap();
        assert_eq!(linked(&nodes, 0), [(1, 20, PCIE), (2, 18, PCIE)]);
        assert_eq!(linked(&nodes, 1), [(0, 20, PCIE), (2, 38, PCIE)]);
        assert_eq!(linked(&nodes, 2), [(0, 18, PCIE), (1, 38, PCIE)]);
        assert_eq!(nodes[2].links[1].node_from, 2);
    }

    #[test]
    fn two_sockets_of_one_vendor() {
        let mut nodes = two_sockets(HT, 32);
        add_indirect_links(&mut nodes).unwrap();
        assert_eq!(linked(&nodes, 0), [(1, 32, HT), (2, 20, PCIE), (3, 52, HT)]);
        assert_eq!(linked(&nodes, 1), [(0, 32, HT), (3, 20, PCIE), (2, 52, HT)]);
        assert_eq!(linked(&nodes, 2), [(0, 20, PCIE), (1, 52, HT), (3, 72, HT)]);
        assert_eq!(linked(&nodes, 3), [(1, 20, PCIE), (0, 52, HT), (2, 72, HT)]);
    }

    #[test]
    fn qpi_between_sockets_refuses_gpu_to_gpu() {
        let mut nodes = two_sockets(QPI, 21);
        add_indirect_links(&mut nodes).unwrap();
        assert_eq!(linked(&nodes, 2), [(0, 20, PCIE), (1, 41, QPI)]);
        let mut nodes = two_sockets(QPI, 20);
        add_indirect_links(&mut nodes).unwrap();
        assert_eq!(linked(&nodes, 2), [(0, 20, PCIE), (1, 40, QPI), (3, 60, QPI)]);
    }

    #[test]
    fn one_hive_needs_no_detour() {
        let mut nodes = [
            cpu(&[(1, 20, PCIE), (2, 20, PCIE)]),
            gpu(5, &[(0, 20, PCIE)]),
            gpu(5, &[(0, 20, PCIE)]),
        ];
        add_indirect_links(&mut nodes).unwrap();
        assert_eq!(linked(&nodes, 1), [(0, 20, PCIE)]);
    }

    #[test]
    fn a_small_bar_is_no_destination() {
        let mut nodes = two_sockets(HT, 32);
        nodes[3].banks[0].heap_type = HeapType::FRAME_BUFFER_PRIVATE;
        add_indirect_links(&mut nodes).unwrap();
        assert_eq!(linked(&nodes, 2), [(0, 20, PCIE), (1, 52, HT)]);
        assert_eq!(linked(&nodes, 3), [(1, 20, PCIE), (0, 52, HT), (2, 72, HT)]);
    }

    #[test]
    fn a_far_cpu_is_no_neighbour() {
        let mut nodes = [
            cpu(&[(1, 40, PCIE), (2, 20, PCIE)]),
            gpu(0, &[(0, 40, PCIE)]),
            gpu(0, &[(0, 20, PCIE)]),
        ];
        add_indirect_links(&mut nodes).unwrap();
        // No path begins at its CPU, but the hops of its own links still count.
        assert_eq!(linked(&nodes, 1), [(0, 40, PCIE), (2, 60, PCIE)]);
        assert_eq!(linked(&nodes, 2), [(0, 20, PCIE), (1, 60, PCIE)]);
    }

    #[test]
    fn odd_machines_do_no_harm() {
        add_indirect_links(&mut []).unwrap();
        let mut lonely = [gpu(0, &[(0, 1, PCIE), (77, 1, PCIE)])];
        add_indirect_links(&mut lonely).unwrap();
        assert_eq!(lonely[0].links.len(), 2);
        let mut full =
            [cpu(&[(1, u32::MAX, PCIE)]), gpu(0, &[(0, 20, PCIE)]), gpu(0, &[(0, 20, PCIE)])];
        add_indirect_links(&mut full).unwrap();
        assert_eq!(linked(&full, 2), [(0, 20, PCIE), (1, u32::MAX, PCIE)]);
    }
}
