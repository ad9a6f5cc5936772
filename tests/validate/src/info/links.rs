//! The links of a machine as a matrix, and its kinds of links.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use hsakmt_core::topology::{IoLink, LinkType, Node};

use super::folding::Matrix;
use crate::output::table::{Align, Table};
use crate::output::text::NodeSet;

/// What two nodes without a link have in the matrix.
const NO_LINK: &str = "-";

fn type_name(link_type: LinkType) -> String {
    match link_type {
        LinkType::UNDEFINED => "undefined".into(),
        LinkType::HYPERTRANSPORT => "HT".into(),
        LinkType::PCI_EXPRESS => "PCIe".into(),
        LinkType::QPI_1_1 => "QPI".into(),
        LinkType::XGMI => "xGMI".into(),
        LinkType(other) => format!("type {other}"),
    }
}

/// The matrix: a row for each group of nodes that links cannot tell apart, a
/// column likewise, and what leads from the row to the column. A group's cell
/// with itself is what leads from each of its nodes to each other one.
pub fn matrix(nodes: &[Node]) -> Table {
    let mut texts: Vec<String> = alloc::vec![NO_LINK.into()];
    let mut matrix: Matrix<usize> = Matrix::new(nodes.len(), 0);
    for (from, node) in nodes.iter().enumerate() {
        // A node has no link to itself; what stands there keeps CPUs and GPUs apart.
        matrix.set(from, from, usize::MAX - usize::from(node.is_gpu()));
        let mut towards: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for link in &node.links {
            let text = format!("{} {}", type_name(link.link_type), link.weight);
            towards.entry(link.node_to).or_default().push(text);
        }
        for (to, several) in towards {
            let text = several.join("+");
            let place = texts.iter().position(|known| *known == text).unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            });
            if to as usize != from {
                matrix.set(from, to as usize, place);
            }
        }
    }
    let groups: Vec<Vec<usize>> = matrix.groups();
    let label = |group: &[usize]| {
        let ids: Vec<u32> = group.iter().filter_map(|&node| u32::try_from(node).ok()).collect();
        NodeSet(&ids).to_string()
    };
    let headings = groups.iter().map(|group| (label(group), Align::Left));
    let mut table = Table::new([("links".into(), Align::Left)].into_iter().chain(headings));
    for row in &groups {
        let cells = groups.iter().map(|column| {
            let ends = match (row.as_slice(), column.as_slice()) {
                ([from, other, ..], _) if row == column => Some((*from, *other)),
                ([from, ..], [to, ..]) if row != column => Some((*from, *to)),
                _ => None,
            };
            let place = ends.and_then(|(from, to)| matrix.get(from, to));
            place.and_then(|place| texts.get(place)).cloned().unwrap_or_default()
        });
        table.row([label(row)].into_iter().chain(cells));
    }
    table
}

/// A row for each kind of link: what the matrix shortens.
pub fn kinds(nodes: &[Node]) -> Table {
    let mut counts: BTreeMap<[u32; 7], usize> = BTreeMap::new();
    for link in nodes.iter().flat_map(|node| &node.links) {
        let &IoLink {
            link_type,
            weight,
            min_bandwidth,
            max_bandwidth,
            min_latency,
            max_latency,
            flags,
            ..
        } = link;
        let kind =
            [link_type.0, weight, min_bandwidth, max_bandwidth, min_latency, max_latency, flags];
        let count = counts.entry(kind).or_default();
        *count = count.saturating_add(1);
    }
    let mut table = Table::new([
        ("link type", Align::Left),
        ("weight", Align::Right),
        ("MB/s", Align::Right),
        ("ns", Align::Right),
        ("flags", Align::Left),
        ("links", Align::Right),
    ]);
    for ([link_type, weight, slowest, fastest, shortest, longest, flags], count) in counts {
        table.row([
            type_name(LinkType(link_type)),
            weight.to_string(),
            range(slowest, fastest),
            range(shortest, longest),
            flag_names(flags),
            count.to_string(),
        ]);
    }
    table
}

/// `312-32000`, `50000`, or nothing where the kernel says nothing.
fn range(least: u32, most: u32) -> String {
    match (least, most) {
        (0, 0) => String::new(),
        (0, most) => most.to_string(),
        (least, most) if least == most => most.to_string(),
        (least, most) => format!("{least}-{most}"),
    }
}

/// The bits of HSA_LINKPROPERTY. Bit 0 only says that the others count, and the
/// kernel sets it on nearly every link, so it is not named.
fn flag_names(flags: u32) -> String {
    let mut names: Vec<String> = Vec::new();
    for (bit, name) in [
        (1, "non-coherent"),
        (2, "no 32-bit atomics"),
        (3, "no 64-bit atomics"),
        (4, "no peer-to-peer DMA"),
    ] {
        if flags >> bit & 1 == 1 {
            names.push(name.into());
        }
    }
    let unknown = flags & !0x1f;
    if unknown != 0 {
        names.push(format!("{unknown:#x}"));
    }
    names.join(", ")
}
