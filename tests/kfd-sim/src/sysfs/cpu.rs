//! `/proc/cpuinfo`, `/sys/devices/system/cpu` and `/sys/devices/system/node`.
//!
//! Sources: arch/x86/kernel/cpu/proc.c, drivers/base/{cacheinfo,node,cpu}.c.

use alloc::format;
use alloc::string::String;
use core::fmt::Write;

use super::{Attribute, Folder};
use crate::topology::{Cpu, Topology};

/// One logical processor.
struct Processor<'a> {
    number: u32,
    apic_id: u32,
    /// Its NUMA node.
    node: usize,
    /// The numbers of its node's processors.
    first: u32,
    cpu: &'a Cpu,
}

fn processors(topology: &Topology) -> impl Iterator<Item = Processor<'_>> {
    let mut first = 0;
    topology
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(node, n)| Some((node, n.cpu.as_ref()?)))
        .flat_map(move |(node, cpu)| {
            let base = first;
            first += cpu.cores;
            (0..cpu.cores).map(move |n| Processor {
                number: base + n,
                apic_id: cpu.first_apic_id + n,
                node,
                first: base,
                cpu,
            })
        })
}

pub(super) fn cpuinfo(topology: &Topology) -> String {
    let mut text = String::new();
    for processor in processors(topology) {
        // Writing to a string cannot fail. A few of the real keys, in their order.
        let _ = write!(
            text,
            "processor\t: {}\nvendor_id\t: {}\ncpu family\t: 25\nmodel\t\t: 17\n\
             model name\t: {}\nstepping\t: 1\ncpu MHz\t\t: {}.000\n\
             cache size\t: 1024 KB\nphysical id\t: {}\nsiblings\t: {}\n\
             core id\t\t: {}\ncpu cores\t: {}\napicid\t\t: {}\n\
             initial apicid\t: {}\nfpu\t\t: yes\n\n",
            processor.number,
            processor.cpu.vendor,
            processor.cpu.model_name,
            processor.cpu.clock,
            processor.node,
            processor.cpu.cores,
            processor.number - processor.first,
            processor.cpu.cores,
            processor.apic_id,
            processor.apic_id,
        );
    }
    text
}

/// Processors that share a level-3 cache.
const SHARE_L3: u32 = 8;

pub(super) fn put_cpus(root: &mut Folder, topology: &Topology) {
    root.put_generated("/proc/cpuinfo", Attribute::CpuInfo);
    let count = processors(topology).count() as u32;
    let all = if count > 0 { format!("0-{}\n", count - 1) } else { "\n".into() };
    for name in ["online", "possible", "present"] {
        root.put_bytes(&format!("/sys/devices/system/cpu/{name}"), all.as_bytes());
    }
    for processor in processors(topology) {
        put_caches(root, &processor, count);
    }
    let nodes = topology.nodes.iter().filter(|n| n.cpu.is_some()).count();
    let all_nodes = if nodes > 1 { format!("0-{}\n", nodes - 1) } else { "0\n".into() };
    for name in ["online", "possible", "has_memory", "has_normal_memory", "has_cpu"] {
        root.put_bytes(&format!("/sys/devices/system/node/{name}"), all_nodes.as_bytes());
    }
    let mut first = 0;
    for (node, n) in topology.nodes.iter().enumerate() {
        let Some(cpu) = &n.cpu else { continue };
        let folder = format!("/sys/devices/system/node/node{node}");
        let list = match cpu.cores {
            0 => "\n".into(),
            1 => format!("{first}\n"),
            cores => format!("{first}-{}\n", first + cores - 1),
        };
        root.put_bytes(&format!("{folder}/cpulist"), list.as_bytes());
        let kib: u64 = n.banks.iter().map(|bank| bank.size_in_bytes).sum::<u64>() / 1024;
        let meminfo = format!(
            "Node {node} MemTotal:       {kib} kB\nNode {node} MemFree:        {kib} kB\n\
             Node {node} MemUsed:        0 kB\n"
        );
        root.put_bytes(&format!("{folder}/meminfo"), meminfo.into_bytes());
        let mut distances = String::new();
        for other in 0..nodes {
            let link = n.io_links.iter().find(|link| link.node_to as usize == other);
            let distance = if other == node { 10 } else { link.map_or(20, |link| link.weight) };
            let separator = if other == 0 { "" } else { " " };
            let _ = write!(distances, "{separator}{distance}");
        }
        distances.push('\n');
        root.put_bytes(&format!("{folder}/distance"), distances.into_bytes());
        let folder = root.folder(&folder);
        for number in first..first + cpu.cores {
            let target = format!("/sys/devices/system/cpu/cpu{number}");
            folder.put_link(&format!("cpu{number}"), &target);
        }
        first += cpu.cores;
    }
}

fn put_caches(root: &mut Folder, processor: &Processor<'_>, count: u32) {
    let Processor { number, first, cpu, .. } = *processor;
    let shared_first = first + (number - first) / SHARE_L3 * SHARE_L3;
    let shared_last = (shared_first + SHARE_L3 - 1).min(first + cpu.cores - 1);
    let caches = [
        (1, "Data", "32K", 8, 64, number, number),
        (1, "Instruction", "32K", 8, 64, number, number),
        (2, "Unified", "1024K", 8, 2048, number, number),
        (3, "Unified", "32768K", 16, 32768, shared_first, shared_last),
    ];
    let folder = root.folder(&format!("/sys/devices/system/cpu/cpu{number}/cache"));
    for (index, (level, kind, size, ways, sets, from, to)) in caches.into_iter().enumerate() {
        let folder = folder.folder(&format!("index{index}"));
        let list = if from == to { format!("{from}\n") } else { format!("{from}-{to}\n") };
        folder.put_bytes("level", format!("{level}\n"));
        folder.put_bytes("type", format!("{kind}\n"));
        folder.put_bytes("size", format!("{size}\n"));
        folder.put_bytes("coherency_line_size", "64\n");
        folder.put_bytes("ways_of_associativity", format!("{ways}\n"));
        folder.put_bytes("number_of_sets", format!("{sets}\n"));
        folder.put_bytes("physical_line_partition", "1\n");
        folder.put_bytes("shared_cpu_list", list);
        folder.put_bytes("shared_cpu_map", cpu_mask(from, to, count) + "\n");
    }
}

/// A bit for each processor: 32-bit words in hexadecimal, the highest first (lib/bitmap.c).
fn cpu_mask(from: u32, to: u32, count: u32) -> String {
    let words = count.div_ceil(32).max(1);
    let mut text = String::new();
    for word in (0..words).rev() {
        let mut bits = 0_u32;
        for processor in (from..=to).filter(|processor| processor / 32 == word) {
            bits |= 1 << (processor % 32);
        }
        let separator = if word == words - 1 { "" } else { "," };
        let _ = write!(text, "{separator}{bits:08x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::cpu_mask;

    #[test]
    fn cpu_masks_have_the_highest_word_first() {
        assert_eq!(cpu_mask(0, 0, 1), "00000001");
        assert_eq!(cpu_mask(40, 47, 64), "0000ff00,00000000");
    }
}
