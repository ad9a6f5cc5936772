//! Links between nodes.
//!
//! A link's folder says where it leads only inside its file. When nearly all
//! nodes are hidden, as for one GPU of 64, reading every file to find the two or
//! three that matter would be most of the work; but the kernel appends a node's
//! links in ascending order of the node at the other end (`kfd_topology.c`, both
//! lists), so they can be searched. Files that turn out to be in another order
//! are read one by one.

use alloc::vec::Vec;

use super::properties::{Properties, property_keys};
use crate::error::Error;
use crate::fallible::{try_insert, try_push};

property_keys! {
    TYPE = "type",
    VERSION_MAJOR = "version_major",
    VERSION_MINOR = "version_minor",
    NODE_FROM = "node_from",
    NODE_TO = "node_to",
    WEIGHT = "weight",
    MIN_LATENCY = "min_latency",
    MAX_LATENCY = "max_latency",
    MIN_BANDWIDTH = "min_bandwidth",
    MAX_BANDWIDTH = "max_bandwidth",
    RECOMMENDED_TRANSFER_SIZE = "recommended_transfer_size",
    RECOMMENDED_SDMA_ENGINE_ID_MASK = "recommended_sdma_engine_id_mask",
    FLAGS = "flags",
}

/// How two nodes are connected (`HSA_IOLINKTYPE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct LinkType(pub u32);

impl LinkType {
    /// Not said.
    pub const UNDEFINED: LinkType = LinkType(0);
    /// HyperTransport, and what follows it between AMD CPUs.
    pub const HYPERTRANSPORT: LinkType = LinkType(1);
    /// PCI Express.
    pub const PCI_EXPRESS: LinkType = LinkType(2);
    /// Intel's link between CPUs.
    pub const QPI_1_1: LinkType = LinkType(5);
    /// AMD's link between GPUs.
    pub const XGMI: LinkType = LinkType(11);
}

/// A link from one node to another, by public node ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoLink {
    /// How they are connected.
    pub link_type: LinkType,
    /// Version of the link's type.
    pub version_major: u32,
    /// Minor version of the link's type.
    pub version_minor: u32,
    /// The node that the link belongs to.
    pub node_from: u32,
    /// The node at the other end.
    pub node_to: u32,
    /// Cost relative to other links, as SLIT counts it.
    pub weight: u32,
    /// ns.
    pub min_latency: u32,
    /// ns.
    pub max_latency: u32,
    /// MB/s.
    pub min_bandwidth: u32,
    /// MB/s.
    pub max_bandwidth: u32,
    /// Bytes.
    pub recommended_transfer_size: u32,
    /// SDMA engines that serve the link best, one bit each.
    pub recommended_sdma_engine_id_mask: u32,
    /// `HSA_LINKPROPERTY` bits: 0 override, 1 non-coherent, 2 no 32-bit atomics,
    /// 3 no 64-bit atomics, 4 no peer-to-peer DMA.
    pub flags: u32,
}

impl IoLink {
    /// Reads a link's `properties`; its ends are the kernel's node numbers.
    pub(super) fn from_properties(content: &[u8]) -> IoLink {
        let text = Properties::read(content, &KEYS, in_order, |_, _| {});
        IoLink {
            link_type: LinkType(text.word(key::TYPE)),
            version_major: text.word(key::VERSION_MAJOR),
            version_minor: text.word(key::VERSION_MINOR),
            node_from: text.word(key::NODE_FROM),
            node_to: text.word(key::NODE_TO),
            weight: text.word(key::WEIGHT),
            min_latency: text.word(key::MIN_LATENCY),
            max_latency: text.word(key::MAX_LATENCY),
            min_bandwidth: text.word(key::MIN_BANDWIDTH),
            max_bandwidth: text.word(key::MAX_BANDWIDTH),
            recommended_transfer_size: text.word(key::RECOMMENDED_TRANSFER_SIZE),
            recommended_sdma_engine_id_mask: text.word(key::RECOMMENDED_SDMA_ENGINE_ID_MASK),
            flags: text.word(key::FLAGS),
        }
    }
}

/// What a link's file turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// A link; its ends are the kernel's node numbers.
    Link(IoLink),
    /// Not for this process, or no link.
    Unreadable,
    /// There are no more links.
    End,
}

/// Collects the links of one folder that lead to `targets` (the kernel's
/// numbers, ascending), at most `room` of them, in the order of their files.
///
/// `probe` reads the file of an index below `count`; it is called at most once
/// for each.
pub(super) fn collect(
    count: u32,
    targets: &[u32],
    room: usize,
    mut probe: impl FnMut(u32) -> Result<Probe, Error>,
) -> Result<Vec<IoLink>, Error> {
    let few_of = |count: u32| targets.len().saturating_mul(8) < count as usize;
    let mut seen = Vec::new();
    if few_of(count)
        && search(count, targets, room, &mut seen, &mut probe)? == Order::Ascending
        && few_of(end(count, &seen))
    {
        let mut links = Vec::new();
        for &(_, probed) in &seen {
            if let Probe::Link(link) = probed {
                if links.len() < room && position(targets, link.node_to).is_some() {
                    try_push(&mut links, link)?;
                }
            }
        }
        return Ok(links);
    }
    let mut links = Vec::new();
    for index in 0..count {
        if links.len() >= room {
            break;
        }
        let probed = match seen.binary_search_by_key(&index, |&(index, _)| index) {
            Ok(place) => seen.get(place).map_or(Probe::Unreadable, |&(_, probed)| probed),
            Err(_) => probe(index)?,
        };
        match probed {
            Probe::Link(link) if position(targets, link.node_to).is_some() => {
                try_push(&mut links, link)?;
            }
            Probe::Link(_) | Probe::Unreadable => {}
            Probe::End => break,
        }
    }
    Ok(links)
}

/// Where a number stands in an ascending list. Where nothing is hidden that is
/// the number itself, or the place before when the list lacks one.
pub(super) fn position(ascending: &[u32], number: u32) -> Option<usize> {
    let guess = usize::try_from(number).ok()?;
    if ascending.get(guess) == Some(&number) {
        return Some(guess);
    }
    let before = guess.wrapping_sub(1);
    if ascending.get(before) == Some(&number) {
        return Some(before);
    }
    ascending.binary_search(&number).ok()
}

/// How many links there are: no more than `count`, fewer when a probe hit the end.
fn end(count: u32, seen: &[(u32, Probe)]) -> u32 {
    let ends = seen.iter().filter(|(_, probed)| *probed == Probe::End);
    ends.map(|&(index, _)| index).min().unwrap_or(count)
}

/// Whether the links that were seen ascend by the node at their other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Ascending,
    Unknown,
}

/// Looks for each target on its own; `seen` collects what was read, by index.
fn search(
    count: u32,
    targets: &[u32],
    room: usize,
    seen: &mut Vec<(u32, Probe)>,
    probe: &mut impl FnMut(u32) -> Result<Probe, Error>,
) -> Result<Order, Error> {
    let mut found = 0;
    for &target in targets {
        if found >= room {
            break;
        }
        match search_one(count, target, seen, probe)? {
            Outcome::Found => found = found.saturating_add(1),
            Outcome::Absent => {}
            Outcome::Disorder => return Ok(Order::Unknown),
        }
    }
    Ok(Order::Ascending)
}

enum Outcome {
    Found,
    Absent,
    Disorder,
}

/// Looks for one target. Since the nodes at the other ends are ascending whole
/// numbers, a link seen at one index bounds the index of every other; where the
/// node numbers have no gaps the first or second guess is right.
fn search_one(
    count: u32,
    target: u32,
    seen: &mut Vec<(u32, Probe)>,
    probe: &mut impl FnMut(u32) -> Result<Probe, Error>,
) -> Result<Outcome, Error> {
    let target = i64::from(target);
    // Exclusive bounds: (index, node), where the node is known.
    let mut low: (i64, i64) = (-1, -1);
    let mut high: (i64, Option<i64>) = (i64::from(count), None);
    for &(index, probed) in seen.iter() {
        let index = i64::from(index);
        match probed {
            Probe::Link(link) => {
                let node = i64::from(link.node_to);
                if node == target {
                    return Ok(Outcome::Found);
                }
                if node < target && index > low.0 {
                    low = (index, node);
                }
                if node > target && index < high.0 {
                    high = (index, Some(node));
                }
            }
            Probe::Unreadable => return Ok(Outcome::Disorder),
            Probe::End => high = (high.0.min(index), None),
        }
    }
    let mut guess: u32 = 0;
    loop {
        let from_low = low.0.saturating_add(target.saturating_sub(low.1));
        let from_high = match high.1 {
            Some(node) => high.0.saturating_sub(node.saturating_sub(target)),
            None => i64::MIN,
        };
        let first = low.0.saturating_add(1).max(from_high);
        let last = high.0.saturating_sub(1).min(from_low);
        if first > last {
            return Ok(Outcome::Absent);
        }
        let index = match guess % 3 {
            0 => last,
            1 => first,
            _ => first.saturating_add(last) / 2,
        };
        guess = guess.wrapping_add(1);
        let file = u32::try_from(index).unwrap_or_default();
        let probed = probe(file)?;
        let place = seen.partition_point(|&(index, _)| index < file);
        try_insert(seen, place, (file, probed))?;
        match probed {
            Probe::End => high = (index, None),
            Probe::Unreadable => return Ok(Outcome::Disorder),
            Probe::Link(link) => {
                let node = i64::from(link.node_to);
                if node <= low.1 || high.1.is_some_and(|high| node >= high) {
                    return Ok(Outcome::Disorder);
                }
                match node.cmp(&target) {
                    core::cmp::Ordering::Equal => return Ok(Outcome::Found),
                    core::cmp::Ordering::Less => low = (index, node),
                    core::cmp::Ordering::Greater => high = (index, Some(node)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Object, Operation, Status};
    use alloc::collections::BTreeMap;
    use alloc::vec;

    fn link(node_to: u32) -> Probe {
        Probe::Link(IoLink { node_from: 9, node_to, ..IoLink::default() })
    }

    /// Collects from a list of links; returns the ends found and the files read.
    fn run(list: &[Probe], count: u32, targets: &[u32], room: usize) -> (Vec<u32>, u32) {
        let mut reads = BTreeMap::new();
        let links = collect(count, targets, room, |index| {
            *reads.entry(index).or_insert(0) += 1;
            Ok(list.get(index as usize).copied().unwrap_or(Probe::End))
        })
        .unwrap();
        assert!(reads.values().all(|&times| times == 1), "a file was read twice: {reads:?}");
        (links.iter().map(|link| link.node_to).collect(), reads.len() as u32)
    }

    fn ascending(nodes: core::ops::Range<u32>) -> Vec<Probe> {
        nodes.map(link).collect()
    }

    #[test]
    fn all_visible_reads_all_in_order() {
        let list = [link(1), link(3), link(2)];
        assert_eq!(run(&list, 3, &[1, 2, 3], 3), (vec![1, 3, 2], 3));
    }

    #[test]
    fn hidden_ends_are_dropped_and_room_is_kept() {
        let list = ascending(0..8);
        assert_eq!(run(&list, 8, &[1, 5, 7], 9).0, [1, 5, 7]);
        assert_eq!(run(&list, 8, &[1, 5, 7], 2), (vec![1, 5], 6));
        assert_eq!(run(&list, 8, &[1, 5, 7], 0), (vec![], 0));
        assert_eq!(run(&list, 8, &[], 9).0, []);
    }

    #[test]
    fn positions() {
        assert_eq!(position(&[0, 1, 2], 2), Some(2));
        assert_eq!(position(&[0, 2, 3], 3), Some(2));
        assert_eq!(position(&[5, 70, 900], 70), Some(1));
        assert_eq!(position(&[5, 70, 900], 6), None);
        assert_eq!(position(&[], 0), None);
        assert_eq!(position(&[u32::MAX], u32::MAX), Some(0));
    }

    #[test]
    fn counts_that_lie() {
        let list = ascending(0..3);
        let (found, reads) = run(&list, 10_000, &[0, 1, 2], 9);
        assert_eq!(found, [0, 1, 2]);
        assert!(reads < 30, "{reads} files");
        assert_eq!(run(&list, 2, &[0, 1, 2], 9), (vec![0, 1], 2));
        let list = [link(5), link(1), link(3)];
        assert_eq!(run(&list, 10_000, &[1, 3, 5], 9).0, [5, 1, 3]);
    }

    #[test]
    fn few_of_many_are_found_without_reading_all() {
        // The links of a GPU of 64 on the second socket: its own CPU, its peers.
        let list: Vec<Probe> = core::iter::once(1).chain(2..66).map(link).collect();
        for target in 2..66 {
            let (found, reads) = run(&list, 65, &[0, 1, target], 2);
            assert_eq!(found, [1, target]);
            assert!(reads <= 8, "{reads} files for {target}");
        }
        // The links of a CPU: the other CPU, then every second GPU.
        let list: Vec<Probe> = core::iter::once(1).chain((2..130).step_by(2)).map(link).collect();
        for target in 2..130 {
            let (found, reads) = run(&list, 65, &[1, target], 2);
            assert_eq!(found.contains(&target), target % 2 == 0);
            assert!(reads <= 12, "{reads} files for {target}");
        }
    }

    #[test]
    fn disorder_is_noticed_and_read_one_by_one() {
        let mut list = ascending(0..64);
        list.reverse();
        assert_eq!(run(&list, 64, &[3, 40], 9).0, [40, 3]);
        let mut list = ascending(0..64);
        list[63] = Probe::Unreadable;
        assert_eq!(run(&list, 64, &[3, 62], 9).0, [3, 62]);
    }

    #[test]
    fn an_error_ends_it() {
        let error = Error::library(Status::ERROR, Operation::ReadFile, Object::Nothing);
        assert_eq!(collect(100, &[1], 1, |_| Err(error)), Err(error));
        assert_eq!(collect(1, &[1], 1, |_| Err(error)), Err(error));
    }

    #[test]
    fn a_file_of_the_kernel() {
        let link = IoLink::from_properties(
            b"type 11\nversion_major 1\nversion_minor 2\nnode_from 2\nnode_to 3\nweight 15\n\
              min_latency 4\nmax_latency 5\nmin_bandwidth 50000\nmax_bandwidth 100000\n\
              recommended_transfer_size 6\nrecommended_sdma_engine_id_mask 28\nflags 1\n",
        );
        assert_eq!(
            link,
            IoLink {
                link_type: LinkType::XGMI,
                version_major: 1,
                version_minor: 2,
                node_from: 2,
                node_to: 3,
                weight: 15,
                min_latency: 4,
                max_latency: 5,
                min_bandwidth: 50_000,
                max_bandwidth: 100_000,
                recommended_transfer_size: 6,
                recommended_sdma_engine_id_mask: 28,
                flags: 1,
            }
        );
    }
}
