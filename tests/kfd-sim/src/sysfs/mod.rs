//! The files of the machine: `/sys`, `/proc` and `/dev` as far as they are its own.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{DeviceNode, FileKind};

use crate::kernel::KernelProfile;
use crate::machine::State;
use crate::process::Pid;
use crate::profile::Profile;
use crate::topology::Topology;

mod cpu;
mod drm;
mod nodes;
mod tree;

pub(crate) use tree::{Attribute, Content, Entry, Folder};

/// `/sys/devices/virtual/kfd/kfd`, to which the class link leads.
pub(crate) const KFD: &str = "/sys/devices/virtual/kfd/kfd";
/// The topology folder.
pub(crate) const TOPOLOGY: &str = "/sys/devices/virtual/kfd/kfd/topology";

/// Builds the whole tree of a machine.
pub(crate) fn build(profile: &Profile) -> Folder {
    let mut root = Folder::default();
    root.put_folder(KFD);
    root.put_folder(&(KFD.to_owned() + "/proc"));
    root.put_link("/sys/class/kfd/kfd", KFD);
    root.put("/dev/kfd", Entry::Device);
    root.put_folder("/sys/class/drm");
    root.put_folder("/dev/dri");
    for (_, gpu) in profile.topology.gpus() {
        drm::put_render_node(&mut root, gpu);
    }
    cpu::put_cpus(&mut root, &profile.topology);
    put_topology(&mut root, &profile.topology);
    for (path, contents) in profile.captured.iter() {
        root.put_bytes(&format!("{TOPOLOGY}/{path}"), contents);
    }
    root
}

/// Builds the topology folder, replacing an earlier one.
pub(crate) fn put_topology(root: &mut Folder, topology: &Topology) {
    root.put_folder(TOPOLOGY);
    let put = |root: &mut Folder, path: String, attribute| {
        root.put_generated(&format!("{TOPOLOGY}/{path}"), attribute);
    };
    put(root, "generation_id".into(), Attribute::GenerationId);
    put(root, "system_properties".into(), Attribute::SystemProperties);
    root.put_folder(&format!("{TOPOLOGY}/nodes"));
    for (n, node) in topology.nodes.iter().enumerate() {
        put(root, format!("nodes/{n}/gpu_id"), Attribute::GpuId(n));
        put(root, format!("nodes/{n}/name"), Attribute::Name(n));
        put(root, format!("nodes/{n}/properties"), Attribute::Properties(n));
        for folder in ["mem_banks", "caches", "io_links", "p2p_links", "perf"] {
            root.put_folder(&format!("{TOPOLOGY}/nodes/{n}/{folder}"));
        }
        for i in 0..node.banks.len() {
            put(root, format!("nodes/{n}/mem_banks/{i}/properties"), Attribute::Bank(n, i));
        }
        for i in 0..node.caches.len() {
            put(root, format!("nodes/{n}/caches/{i}/properties"), Attribute::Cache(n, i));
        }
        for i in 0..node.io_links.len() {
            put(root, format!("nodes/{n}/io_links/{i}/properties"), Attribute::IoLink(n, i));
        }
        for i in 0..node.p2p_links.len() {
            put(root, format!("nodes/{n}/p2p_links/{i}/properties"), Attribute::P2pLink(n, i));
        }
    }
}

/// Whether the machine answers for this path. The process's own files and the
/// system's tunables belong to the host, whose address space is in use.
pub(crate) fn owns(path: &str) -> bool {
    let below = |folder: &str| path == folder || path.starts_with(&(folder.to_owned() + "/"));
    if below("/proc") {
        return !below("/proc/self") && !below("/proc/thread-self") && !below("/proc/sys");
    }
    below("/sys") || below("/dev")
}

/// The contents of a file, for a reader.
///
/// # Errors
/// Those of open(2) and read(2).
pub(crate) fn read(state: &mut State, reader: Pid, path: &str) -> Result<Vec<u8>, Errno> {
    let (entry, real) = state.tree.resolve(path)?;
    let content = match entry {
        Entry::Folder(_) => return Err(Errno::EISDIR),
        Entry::Device => return Err(Errno::EINVAL),
        Entry::Link(_) => return Err(Errno::ELOOP),
        Entry::File(content) => content.clone(),
    };
    let node = node_of(&real);
    let of_topology = real.starts_with(TOPOLOGY);
    // kernel-rules section 5, "Device cgroup": evaluated at each read, in the
    // reader; opening succeeds.
    if let Some(node) = node {
        let gpu = state.topology.nodes.get(node).and_then(|n| n.gpu.as_ref());
        if let Some(gpu) = gpu {
            if state.is_hidden(reader, DeviceNode::Render(gpu.render_minor())) {
                return Err(Errno::EPERM);
            }
        }
    }
    let bytes = match content {
        Content::Bytes(bytes) => Ok(bytes),
        Content::Unreadable(errno) => Err(errno),
        Content::Generated(attribute) => print(state, attribute),
    };
    if of_topology {
        state.after_topology_read();
    }
    bytes
}

/// The names in a folder.
///
/// # Errors
/// Those of open(2) with O_DIRECTORY.
pub(crate) fn list(state: &State, path: &str) -> Result<Vec<(String, FileKind)>, Errno> {
    match state.tree.resolve(path)?.0 {
        Entry::Folder(folder) => Ok(folder.list()),
        _ => Err(Errno::ENOTDIR),
    }
}

/// The node that a path below the topology folder belongs to.
fn node_of(path: &str) -> Option<usize> {
    let below = path.strip_prefix(TOPOLOGY)?.strip_prefix("/nodes/")?;
    below.split('/').next()?.parse().ok()
}

fn print(state: &mut State, attribute: Attribute) -> Result<Vec<u8>, Errno> {
    let kernel: KernelProfile = state.kernel;
    let topology = &state.topology;
    let node = |n: usize| topology.nodes.get(n).ok_or(Errno::ENOENT);
    let text = match attribute {
        Attribute::GenerationId => {
            let number = state.generation;
            if state.generation_on_every_read {
                state.generation += 1;
            }
            format!("{number}\n")
        }
        Attribute::SystemProperties => nodes::system_properties(topology),
        Attribute::GpuId(n) => {
            let ready = !state.not_ready.contains(&n);
            let id = node(n)?.gpu.as_ref().filter(|_| ready).map_or(0, |gpu| gpu.id);
            format!("{id}\n")
        }
        Attribute::Name(n) => {
            let ready = !state.not_ready.contains(&n);
            let name = node(n)?.gpu.as_ref().filter(|_| ready).map_or("", |gpu| &gpu.name);
            format!("{name}\n")
        }
        Attribute::Properties(n) => {
            let ready = !state.not_ready.contains(&n);
            nodes::properties(node(n)?, topology, kernel, ready)
        }
        Attribute::Bank(n, i) => nodes::bank(node(n)?.banks.get(i).ok_or(Errno::ENOENT)?),
        Attribute::Cache(n, i) => nodes::cache(node(n)?.caches.get(i).ok_or(Errno::ENOENT)?),
        Attribute::IoLink(n, i) => {
            nodes::link(node(n)?.io_links.get(i).ok_or(Errno::ENOENT)?, kernel)
        }
        Attribute::P2pLink(n, i) => {
            nodes::link(node(n)?.p2p_links.get(i).ok_or(Errno::ENOENT)?, kernel)
        }
        Attribute::CpuInfo => return Ok(cpu::cpuinfo(topology).into_bytes()),
    };
    let mut bytes = text.into_bytes();
    // sysfs_emit: a page at most, its last byte for a zero.
    bytes.truncate(4095);
    Ok(bytes)
}
