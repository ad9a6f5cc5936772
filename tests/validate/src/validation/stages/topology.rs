//! Nodes and links as the kernel tells them, and a GPU address space on each GPU.

use alloc::format;
use alloc::vec::Vec;

use hsakmt_core::queue::sizes::SaveArea;
use hsakmt_core::seam::Platform;
use hsakmt_core::topology::{HiddenBecause, Node};

use crate::info::description::Description;
use crate::validation::findings::{Count, Findings};
use crate::validation::subject::{Gpu, Subject, name_of};

/// Bytes of a page of GPUs.
const PAGE: u32 = 4096;

/// Reads the topology, which binds the address spaces, and checks that what it says
/// goes together.
pub fn run<P: Platform>(subject: &mut Subject<'_, P>, findings: &mut Findings) {
    let Some(guard) = findings.expect(&"library", subject.enter()) else { return };
    let acquired = guard
        .acquire_machine()
        .and_then(|()| guard.machine(|machine| Ok(Description::from(machine))));
    let Some(Description { nodes, hidden, .. }) = findings.expect(&"machine", acquired) else {
        return;
    };
    drop(guard);
    subject.gpus = (0..)
        .zip(&nodes)
        .filter(|(_, it)| it.is_gpu())
        .map(|(node, it)| Gpu { node, gpu_id: it.gpu_id, name: name_of(it) })
        .collect();
    let mut links = 0;
    for node in &nodes {
        links += node.links.len() as u64;
        check_node(node, &nodes, findings);
    }
    for hidden in hidden.iter().filter(|it| it.because != HiddenBecause::Unwanted) {
        let node = hidden.sysfs_node;
        findings.note(format!("node {node} cannot be used: {}", reason(hidden.because)));
    }
    let cpus = nodes.iter().filter(|node| node.cpu_cores_count > 0).count() as u64;
    let gpus = subject.gpus.len() as u64;
    let [nodes_of_cpus, gpus, links] =
        [Count(cpus, "CPU node"), Count(gpus, "GPU"), Count(links, "link")];
    findings.summary = format!("{nodes_of_cpus}, {gpus}, {links}");
    (subject.nodes, subject.hidden) = (nodes, hidden);
}

fn reason(because: HiddenBecause) -> &'static str {
    match because {
        HiddenBecause::Forbidden => "the device cgroup forbids it",
        HiddenBecause::Unwanted => "nobody asked for it",
        HiddenBecause::NoRenderNode => "the kernel names no render node",
        HiddenBecause::RenderNodeRefused => "its render node does not open",
        HiddenBecause::NotReady => "the kernel has not finished adding the GPU",
        HiddenBecause::Vanished => "the kernel is rebuilding the tree",
        HiddenBecause::Unreadable => "a file of it says nothing",
    }
}

fn check_node(node: &Node, nodes: &[Node], findings: &mut Findings) {
    let name = name_of(node);
    let peers = |wanted: fn(&Node) -> bool| {
        node.links
            .iter()
            .filter_map(|link| nodes.get(link.node_to as usize))
            .filter(move |peer| wanted(peer))
    };
    for link in node.links.iter().filter(|link| link.node_to as usize >= nodes.len()) {
        findings.fail(format!("{name}: a link leads to node {}, which is none", link.node_to));
    }
    if !node.is_gpu() {
        return;
    }
    if node.cpu_cores_count == 0 && peers(|peer| peer.cpu_cores_count > 0).next().is_none() {
        findings.fail(format!("{name}: no link leads to a CPU"));
    }
    let hive = |peer: &Node| peer.is_gpu() && peer.hive_id == node.hive_id;
    for peer in nodes.iter().filter(|peer| node.hive_id != 0 && hive(peer)) {
        let leads_there = |to: &Node| to.gpu_id == peer.gpu_id;
        if peer.gpu_id != node.gpu_id && !peers(|_| true).any(leads_there) {
            findings.fail(format!(
                "link from {name} to {} is missing: they are in one hive",
                name_of(peer)
            ));
        }
    }
    check_save_area(&name, node, findings);
}

/// The kernel compares a queue's save area with its own figure, which it publishes; both
/// follow from the chip (`kfd_queue.c`, `kfd_queue_ctx_save_restore_size`), newer kernels
/// round up to pages. Kernels to come may count otherwise, so it is only noted: whether
/// the kernel takes what it publishes the stage of queues finds out.
fn check_save_area(name: &str, node: &Node, findings: &mut Findings) {
    let areas: Vec<SaveArea> =
        [SaveArea::of(node), SaveArea::by_formula(node)].into_iter().flatten().collect();
    let &[published, needed] = areas.as_slice() else { return };
    let rounded = needed.per_die.next_multiple_of(PAGE);
    if published.control_stack != needed.control_stack
        || ![needed.per_die, rounded].contains(&published.per_die)
    {
        findings.note(format!(
            "{name}: save area: the kernel publishes {} bytes for a die, {} of them control \
             stack (cwsr_size, ctl_stack_size); its waves need {} and {}",
            published.per_die, published.control_stack, needed.per_die, needed.control_stack
        ));
    }
}
