//! A machine as tables, each thing said once however many nodes it is true of.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use hsakmt_core::context::Version;
use hsakmt_core::topology::{Cache, HeapType, HiddenBecause, MemoryBank, Name, Node};

use super::description::{Description, compute_units};
use super::{folding, links};
use crate::machine::Machine;
use crate::output::table::{Align, Table};
use crate::output::text::{NodeSet, Printable, Size};

/// Appends the description of `machine` to `out`.
pub fn write(out: &mut String, machine: &Machine, description: &Description) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{machine}");
    let _ = writeln!(out, "{}", summary(machine, description));
    let made_up = machine.made_up();
    if !made_up.is_empty() {
        let _ = writeln!(out, "made up, because the capture lacks it: {}", made_up.join(", "));
    }
    for (because, nodes) in hidden(description) {
        let _ = writeln!(out, "hidden, by folder of the tree: {nodes} ({because})");
    }
    let nodes = &*description.nodes;
    let mut tables =
        alloc::vec![cpus(nodes), gpus(nodes), devices(nodes), memory(nodes), caches(nodes),];
    if nodes.iter().any(|node| !node.links.is_empty()) {
        tables.extend([links::matrix(nodes), links::kinds(nodes)]);
    }
    for table in tables.iter().filter(|table| !table.is_empty()) {
        out.push('\n');
        table.write(out);
    }
}

/// `10 nodes: 2 CPU, 8 GPU; topology generation 3; platform AMDINC PURICO 1`
fn summary(machine: &Machine, description: &Description) -> String {
    let &Description { ref nodes, generation, settled, system, .. } = description;
    let gpus = nodes.iter().filter(|node| node.is_gpu()).count();
    let both = nodes.iter().filter(|node| node.is_gpu() && node.cpu_cores_count != 0).count();
    let mut text = match nodes.len() {
        0 => String::from("no node"),
        1 => String::from("1 node"),
        count => format!("{count} nodes"),
    };
    let kinds = [(nodes.len() - gpus, "CPU"), (gpus - both, "GPU"), (both, "CPU with GPU")];
    let mut separator = ": ";
    for (count, kind) in kinds.into_iter().filter(|&(count, _)| count != 0) {
        let _ = write!(text, "{separator}{count} {kind}");
        separator = ", ";
    }
    if let Machine::Simulated { driver: Some(Version { major, minor }), .. } = machine {
        let _ = write!(text, "; KFD {major}.{minor}");
    }
    let _ = write!(text, "; topology generation {generation}");
    if !settled {
        text.push_str(", still changing");
    }
    if (system.platform_oem, system.platform_id) != (0, 0) {
        let oem = firmware_name(system.platform_oem);
        let id = firmware_name(system.platform_id);
        let _ = write!(text, "; platform {oem} {id} {}", system.platform_rev);
    }
    text
}

/// The text of an ACPI id, first character in the lowest byte, or the number
/// that is none.
fn firmware_name(id: u64) -> String {
    let bytes = id.to_le_bytes();
    let end = bytes.iter().rposition(|&byte| byte != 0 && byte != b' ').map_or(0, |last| last + 1);
    match bytes.get(..end) {
        Some(text) if !text.is_empty() && text.iter().all(|byte| matches!(byte, b' '..=b'~')) => {
            text.iter().map(|&byte| char::from(byte)).collect()
        }
        _ => format!("{id:#x}"),
    }
}

/// The hidden nodes by reason, in the order of their first node.
fn hidden(description: &Description) -> Vec<(&'static str, String)> {
    let mut reasons: Vec<(HiddenBecause, Vec<u32>)> = Vec::new();
    for node in &description.hidden {
        match reasons.iter_mut().find(|(because, _)| *because == node.because) {
            Some((_, nodes)) => nodes.push(node.sysfs_node),
            None => reasons.push((node.because, alloc::vec![node.sysfs_node])),
        }
    }
    let text = |because| match because {
        HiddenBecause::Forbidden => "forbidden by the device cgroup",
        HiddenBecause::Unwanted => "not asked for",
        HiddenBecause::NoRenderNode => "without a render node",
        HiddenBecause::RenderNodeRefused => "the render node does not open",
        HiddenBecause::NotReady => "still being added by the kernel",
        HiddenBecause::Vanished => "files missing",
        HiddenBecause::Unreadable => "files without sense",
    };
    reasons
        .into_iter()
        .map(|(because, nodes)| (text(because), NodeSet(&nodes).to_string()))
        .collect()
}

/// Nodes, by public id, of which the same rows are said.
struct Fold {
    ids: Vec<u32>,
    rows: Vec<Vec<String>>,
}

/// Puts nodes together of which the same is said, neighbours or not. A node
/// without rows is left out.
fn fold(nodes: &[Node], rows: impl Fn(&Node) -> Vec<Vec<String>>) -> Vec<Fold> {
    let mut folds: Vec<Fold> = Vec::new();
    for (id, node) in (0u32..).zip(nodes) {
        let rows = rows(node);
        if rows.is_empty() {
            continue;
        }
        match folds.iter_mut().find(|fold| fold.rows == rows) {
            Some(fold) => fold.ids.push(id),
            None => folds.push(Fold { ids: alloc::vec![id], rows }),
        }
    }
    folds
}

/// The table of these folds: the nodes in the first column, once for all their rows.
fn folded(headings: &[(&str, Align)], folds: Vec<Fold>) -> Table {
    let mut table = Table::new(headings.iter().copied());
    for Fold { ids, rows } in folds {
        let mut label = NodeSet(&ids).to_string();
        for row in rows {
            table.row([core::mem::take(&mut label)].into_iter().chain(row));
        }
    }
    table
}

/// Writes before the name, in the first cell, how many share it.
fn count_in_names(folds: &mut [Fold]) {
    for Fold { ids, rows } in folds {
        let count = ids.len();
        for name in rows.iter_mut().filter_map(|row| row.first_mut()).filter(|_| count > 1) {
            *name = format!("{count} x {name}");
        }
    }
}

/// A number, or nothing for 0: the kernel's way to say nothing.
fn number(value: impl Into<u64>) -> String {
    match value.into() {
        0 => String::new(),
        value => value.to_string(),
    }
}

fn quantity(value: u32, unit: &str) -> String {
    if value == 0 { String::new() } else { format!("{value} {unit}") }
}

fn size_of_heaps(node: &Node, heaps: &[HeapType]) -> String {
    let total = node
        .banks
        .iter()
        .filter(|bank| heaps.contains(&bank.heap_type))
        .fold(0u64, |total, bank| total.saturating_add(bank.size_in_bytes));
    if total == 0 { String::new() } else { Size(total).to_string() }
}

/// The first of the names that is one.
fn first_name(names: &[Name]) -> Option<String> {
    let name = names.iter().find(|name| !name.is_empty())?;
    Some(Printable(name.as_bytes()).to_string())
}

fn cpus(nodes: &[Node]) -> Table {
    let headings = [
        ("CPU nodes", Align::Left),
        ("", Align::Left),
        ("cores", Align::Right),
        ("clock", Align::Right),
        ("memory", Align::Right),
    ];
    let mut folds = fold(nodes, |node| {
        if node.is_gpu() && node.cpu_cores_count == 0 {
            return Vec::new();
        }
        let name = first_name(&[node.marketing_name]).unwrap_or("CPU".into());
        alloc::vec![alloc::vec![
            name,
            number(node.cpu_cores_count),
            quantity(node.max_engine_clk_ccompute, "MHz"),
            size_of_heaps(node, &[HeapType::SYSTEM]),
        ]]
    });
    count_in_names(&mut folds);
    folded(&headings, folds)
}

fn gpus(nodes: &[Node]) -> Table {
    let headings = [
        ("GPU nodes", Align::Left),
        ("", Align::Left),
        ("gfx", Align::Left),
        ("CUs", Align::Right),
        ("XCC", Align::Right),
        ("wave", Align::Right),
        ("LDS", Align::Right),
        ("clock", Align::Right),
        ("memory", Align::Right),
        ("PCI id", Align::Left),
    ];
    let mut folds = fold(nodes, |node| {
        if !node.is_gpu() {
            return Vec::new();
        }
        let name = match node.cpu_cores_count {
            0 => first_name(&[node.marketing_name, node.amd_name, node.asic_name]),
            // In a node that is both, the first name is the CPU's.
            _ => first_name(&[node.amd_name, node.asic_name]),
        };
        let name = name.unwrap_or("GPU".into());
        let gfx = match node.gfx_override {
            Some(version) => format!("{version} (override of {})", node.gfx_version),
            None if node.gfx_version.is_unknown() => String::new(),
            None => node.gfx_version.to_string(),
        };
        let vram = [HeapType::FRAME_BUFFER_PUBLIC, HeapType::FRAME_BUFFER_PRIVATE];
        alloc::vec![alloc::vec![
            name,
            gfx,
            number(compute_units(node)),
            number(node.num_xcc),
            number(node.wave_front_size),
            quantity(node.lds_size_in_kb, "KiB"),
            quantity(node.max_engine_clk_fcompute, "MHz"),
            size_of_heaps(node, &vram),
            format!("{:04x}:{:04x}", node.vendor_id, node.device_id),
        ]]
    });
    count_in_names(&mut folds);
    folded(&headings, folds)
}

/// Where each GPU is. Partitions of one device share a row.
fn devices(nodes: &[Node]) -> Table {
    let gpus: Vec<(u32, &Node)> = (0u32..).zip(nodes).filter(|(_, node)| node.is_gpu()).collect();
    let device = |node: &Node| (node.domain, node.location_id >> 3 & 0x1fff, node.unique_id);
    let runs = folding::runs(gpus.len(), |a, b| match (gpus.get(a), gpus.get(b)) {
        (Some((_, a)), Some((_, b))) => device(a) == device(b),
        _ => false,
    });
    let mut table = Table::new([
        ("devices", Align::Left),
        ("gpu_id", Align::Left),
        ("/dev/dri/", Align::Left),
        ("PCI address", Align::Left),
        ("serial", Align::Left),
        ("hive", Align::Left),
    ]);
    for run in runs {
        let Some(members @ [(_, first), ..]) = gpus.get(run) else { continue };
        let ids: Vec<u32> = members.iter().map(|&(id, _)| id).collect();
        let mut minors: Vec<u32> = members.iter().map(|(_, node)| node.drm_render_minor).collect();
        minors.sort_unstable();
        let mut functions: Vec<u32> =
            members.iter().map(|(_, node)| node.location_id & 7).collect();
        functions.sort_unstable();
        functions.dedup();
        let gpu_id = match members {
            [_] => first.gpu_id.to_string(),
            _ => format!("{}, ...", first.gpu_id),
        };
        let hexadecimal = |id| if id == 0 { String::new() } else { format!("{id:016x}") };
        table.row([
            NodeSet(&ids).to_string(),
            gpu_id,
            if minors == [0] { String::new() } else { format!("renderD{}", NodeSet(&minors)) },
            format!(
                "{:04x}:{:02x}:{:02x}.{}",
                first.domain,
                first.location_id >> 8 & 0xff,
                first.location_id >> 3 & 0x1f,
                NodeSet(&functions)
            ),
            hexadecimal(first.unique_id),
            hexadecimal(first.hive_id),
        ]);
    }
    table
}

fn heap_name(heap: HeapType) -> String {
    match heap {
        HeapType::SYSTEM => "system".into(),
        HeapType::FRAME_BUFFER_PUBLIC => "VRAM, CPU-visible".into(),
        HeapType::FRAME_BUFFER_PRIVATE => "VRAM".into(),
        HeapType::GPU_GDS => "GDS".into(),
        HeapType::GPU_LDS => "LDS".into(),
        HeapType::GPU_SCRATCH => "scratch".into(),
        HeapType::DEVICE_SVM => "SVM".into(),
        HeapType::MMIO_REMAP => "MMIO".into(),
        HeapType(other) => format!("heap {other}"),
    }
}

fn memory(nodes: &[Node]) -> Table {
    let headings = [
        ("memory of", Align::Left),
        ("heap", Align::Left),
        ("size", Align::Right),
        ("width", Align::Right),
        ("clock", Align::Right),
        ("address", Align::Right),
        ("flags", Align::Left),
    ];
    let folds = fold(nodes, |node| {
        let row = |bank: &MemoryBank| {
            let mut flags = Vec::new();
            if bank.flags & 1 != 0 {
                flags.push("hot-pluggable".to_string());
            }
            if bank.flags & 2 != 0 {
                flags.push("non-volatile".to_string());
            }
            if bank.flags & !3 != 0 {
                flags.push(format!("{:#x}", bank.flags & !3));
            }
            alloc::vec![
                heap_name(bank.heap_type),
                Size(bank.size_in_bytes).to_string(),
                quantity(bank.width, "bit"),
                quantity(bank.mem_clk_max, "MHz"),
                match bank.virtual_base_address {
                    0 => String::new(),
                    address => format!("{address:#x}"),
                },
                flags.join(", "),
            ]
        };
        node.banks.iter().map(row).collect()
    });
    folded(&headings, folds)
}

/// What tells kinds of caches apart.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CacheKind {
    level: u32,
    cache_type: u32,
    size: u64,
    line: u32,
    ways: u32,
}

/// Bytes of a node's cache.
///
/// Caches in the tree count KiB; those of CPUs that the tree does not list come
/// from elsewhere and count bytes. No CPU has a smallest cache of 4 MiB, so
/// `smallest`, the least number of a CPU's caches, tells the two apart.
fn bytes(cache: &Cache, smallest: u32) -> u64 {
    const CPU: u32 = 1 << 2;
    let in_bytes = cache.cache_type & CPU != 0 && smallest >= 4096;
    u64::from(cache.size) << if in_bytes { 0 } else { 10 }
}

fn cache_name(kind: &CacheKind) -> String {
    let what = match kind.cache_type & 3 {
        1 => " data",
        2 => " instruction",
        3 => " data+instruction",
        _ => "",
    };
    format!("L{}{what}", kind.level)
}

fn caches(nodes: &[Node]) -> Table {
    let headings = [
        ("caches of", Align::Left),
        ("cache", Align::Left),
        ("size", Align::Right),
        ("line", Align::Right),
        ("ways", Align::Right),
        ("how many", Align::Right),
    ];
    let folds = fold(nodes, |node| {
        let smallest = node.caches.iter().map(|cache| cache.size).min().unwrap_or(0);
        let mut kinds: BTreeMap<CacheKind, usize> = BTreeMap::new();
        for cache in &node.caches {
            let kind = CacheKind {
                level: cache.level,
                cache_type: cache.cache_type,
                size: bytes(cache, smallest),
                line: cache.cache_line_size,
                ways: cache.association,
            };
            let count = kinds.entry(kind).or_default();
            *count = count.saturating_add(1);
        }
        let row = |(kind, count): (CacheKind, usize)| {
            alloc::vec![
                cache_name(&kind),
                Size(kind.size).to_string(),
                quantity(kind.line, "B"),
                number(kind.ways),
                count.to_string(),
            ]
        };
        kinds.into_iter().map(row).collect()
    });
    folded(&headings, folds)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::topology::{HiddenNode, SystemProperties};

    use super::super::sample;
    use super::*;
    use crate::golden::assert_golden;
    use crate::output::table::WIDTH;

    fn written(nodes: &[Node], hidden: &[HiddenNode]) -> String {
        let machine = Machine::Real(None);
        let system = SystemProperties {
            platform_oem: u64::from_le_bytes(*b"AMDINC  "),
            platform_id: u64::from_le_bytes(*b"PURICO\0\0"),
            platform_rev: 2,
        };
        let mut out = String::new();
        let (nodes, hidden) = (nodes.to_vec(), hidden.to_vec());
        let description = Description { generation: 3, settled: true, system, nodes, hidden };
        write(&mut out, &machine, &description);
        assert!(out.lines().all(|line| line.chars().count() <= WIDTH), "{out}");
        assert!(out.lines().all(|line| line.trim_end() == line), "{out}");
        out
    }

    #[test]
    fn eight_gpus_fold() {
        assert_golden("sample/eight_gpus.txt", &written(&sample::mi300x(8, 1), &[]));
    }

    #[test]
    fn sixty_four_partitions_fold() {
        assert_golden("sample/sixty_four_partitions.txt", &written(&sample::mi300x(8, 8), &[]));
    }

    #[test]
    fn a_node_may_be_both_and_hostile() {
        assert_golden("sample/cpu_with_gpu.txt", &written(&sample::apu(), &[]));
    }

    #[test]
    fn a_platform_may_have_no_name() {
        assert_eq!(firmware_name(u64::from_le_bytes(*b"Super  \0")), "Super");
        assert_eq!(firmware_name(1), "0x1");
        assert_eq!(firmware_name(0), "0x0");
        assert_eq!(firmware_name(u64::from_le_bytes(*b"A\x1bB     ")), "0x2020202020421b41");
    }

    #[test]
    fn hidden_nodes_are_told_by_reason() {
        let hide = |sysfs_node, because| HiddenNode { sysfs_node, because };
        let hidden = [
            hide(2, HiddenBecause::Forbidden),
            hide(3, HiddenBecause::Forbidden),
            hide(4, HiddenBecause::RenderNodeRefused),
            hide(5, HiddenBecause::Forbidden),
        ];
        assert_eq!(
            written(&[], &hidden),
            "real driver, topology only (no device opened)\n\
             no node; topology generation 3; platform AMDINC PURICO 2\n\
             hidden, by folder of the tree: 2-3,5 (forbidden by the device cgroup)\n\
             hidden, by folder of the tree: 4 (the render node does not open)\n"
        );
    }
}
