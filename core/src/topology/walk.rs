//! Reading the tree.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::access::{Access, DeviceInfo, GpuAccess, GpuIdentity};
use super::cpu_cache::{CpuFolder, numa_nodes_with_cpus, read_cpu_caches};
use super::cpuinfo::CpuInfo;
use super::files::{Files, Read, refused};
use super::indirect::add_indirect_links;
use super::link::{self, Probe, position};
use super::node::Contents;
use super::properties::{self, Properties, property_keys};
use super::settings::Settings;
use super::snapshot::{HiddenBecause, HiddenNode, Snapshot, SystemProperties};
use super::{Cache, IoLink, MemoryBank, Name, Node};
use crate::errno::Errno;
use crate::error::{Error, Object, Operation, Status, SysfsFile};
use crate::fallible::{try_extend, try_push};
use crate::seam::{FileKind, Os};
use crate::sort::sort;

/// The most nodes that are looked at. The kernel's own numbers have 16 bits to
/// spare; a folder with more entries is no topology.
const NODES: usize = 1 << 16;

/// The most banks, or caches, of a node.
const ENTRIES: u32 = 1 << 16;

property_keys! {
    PLATFORM_OEM = "platform_oem",
    PLATFORM_ID = "platform_id",
    PLATFORM_REV = "platform_rev",
}

/// How consistent a walk was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All that is listed was there.
    Whole,
    /// A node's files were gone, or a GPU was not ready: the kernel is changing
    /// the tree, whatever the generation number says.
    Changing,
}

/// A node that has passed, until its folders are read.
struct Passed {
    node: Node,
    contents: Contents,
    info: Option<DeviceInfo>,
    /// It has a GPU that is not ready and was taken for CPUs alone.
    unready: bool,
}

/// Reads the generation number: three system calls.
pub(super) fn read_generation<O: Os>(
    files: &mut Files<'_, O>,
    settings: &Settings<'_>,
) -> Result<u64, Error> {
    let object = Object::Topology(SysfsFile::Generation, 0, 0);
    files.path.start(settings.root)?;
    files.path.push(b"/generation_id")?;
    let text = required(files, object)?;
    properties::number(text).ok_or(senseless(object))
}

/// Reads the file at the path, without which there is no topology.
fn required<'f, O: Os>(files: &'f mut Files<'_, O>, object: Object) -> Result<&'f [u8], Error> {
    match files.read(object)? {
        Read::Text(text) => Ok(text),
        Read::Missing(errno) => Err(refused(errno, object)),
        Read::Forbidden => Err(refused(Errno::EPERM, object)),
    }
}

/// The error of a file that holds something else than it must.
fn senseless(object: Object) -> Error {
    Error::library(Status::ERROR, Operation::ParseFile, object)
}

/// Walks the tree once. Each file is read at most once.
pub(super) fn walk<O: Os>(
    files: &mut Files<'_, O>,
    settings: &Settings<'_>,
    access: &mut dyn GpuAccess,
) -> Result<(Snapshot, Outcome), Error> {
    let mut snapshot = Snapshot { settled: true, ..Snapshot::default() };
    let mut outcome = Outcome::Whole;

    files.path.start(settings.root)?;
    files.path.push(b"/system_properties")?;
    let text = required(files, Object::Topology(SysfsFile::System, 0, 0))?;
    let system = Properties::read(text, &KEYS, in_order, |_, _| {});
    snapshot.system = SystemProperties {
        platform_oem: system.long(key::PLATFORM_OEM),
        platform_id: system.long(key::PLATFORM_ID),
        platform_rev: system.long(key::PLATFORM_REV),
    };

    files.path.start(settings.root)?;
    files.path.push(b"/nodes")?;
    let folders = list_nodes(files)?;
    if folders.is_empty() {
        outcome = Outcome::Changing;
    }
    files.path.push(b"/")?;

    let mut passed: Vec<Passed> = Vec::new();
    passed.try_reserve_exact(folders.len())?;
    for &sysfs_node in &folders {
        match admit(files, sysfs_node, access)? {
            Ok(node) => {
                if node.unready {
                    outcome = Outcome::Changing;
                }
                try_push(&mut passed, node)?;
            }
            Err(because) => {
                if matches!(because, HiddenBecause::NotReady | HiddenBecause::Vanished) {
                    outcome = Outcome::Changing;
                }
                try_push(&mut snapshot.hidden, HiddenNode { sysfs_node, because })?;
            }
        }
    }

    snapshot.sysfs_nodes.try_reserve_exact(passed.len())?;
    try_extend(&mut snapshot.sysfs_nodes, passed.iter().map(|passed| passed.node.sysfs_node))?;
    let knows_p2p = passed.iter().any(|passed| passed.contents.p2p_links.is_some());
    snapshot.nodes.try_reserve_exact(passed.len())?;
    for (node_id, passed) in (0u32..).zip(passed) {
        let Passed { mut node, contents, info, .. } = passed;
        read_folders(files, &mut node, contents, &snapshot.sysfs_nodes)?;
        if node.is_gpu() {
            node.complete_gpu(node_id, info, settings)?;
        }
        try_push(&mut snapshot.nodes, node)?;
    }
    describe_cpus(files, settings, &mut snapshot.nodes)?;
    if !knows_p2p {
        add_indirect_links(&mut snapshot.nodes)?;
    }
    index(&mut snapshot)?;
    Ok((snapshot, outcome))
}

/// The numbers of the entries of `nodes/`, ascending.
fn list_nodes<O: Os>(files: &mut Files<'_, O>) -> Result<Vec<u32>, Error> {
    let object = Object::Topology(SysfsFile::Nodes, 0, 0);
    let mut nodes: Vec<u32> = Vec::new();
    let mut refusal = Ok(());
    let visit = &mut |name: &[u8], _: FileKind| {
        let Some(Ok(node)) = properties::number(name).map(u32::try_from) else {
            return ControlFlow::Continue(());
        };
        if nodes.len() >= NODES {
            refusal = Err(senseless(object));
            return ControlFlow::Break(());
        }
        match try_push(&mut nodes, node) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                refusal = Err(error);
                ControlFlow::Break(())
            }
        }
    };
    files
        .os
        .list_folder(files.path.as_c_str(), visit)
        .map_err(|errno| Error { operation: Operation::ListFolder, ..refused(errno, object) })?;
    refusal?;
    sort(&mut nodes);
    nodes.dedup();
    Ok(nodes)
}

/// Reads what decides about a node. The path is `nodes/`, and is again
/// afterwards.
fn admit<O: Os>(
    files: &mut Files<'_, O>,
    sysfs_node: u32,
    access: &mut dyn GpuAccess,
) -> Result<Result<Passed, HiddenBecause>, Error> {
    let nodes = files.path.mark();
    files.path.push_number(sysfs_node)?;
    let admission = admit_here(files, sysfs_node, access);
    files.path.back_to(nodes);
    admission
}

fn admit_here<O: Os>(
    files: &mut Files<'_, O>,
    sysfs_node: u32,
    access: &mut dyn GpuAccess,
) -> Result<Result<Passed, HiddenBecause>, Error> {
    let folder = files.path.mark();
    files.path.push(b"/gpu_id")?;
    let gpu_id = match files.read(Object::Topology(SysfsFile::GpuId, sysfs_node, 0))? {
        Read::Text(text) => match properties::number(text).map(u32::try_from) {
            Some(Ok(gpu_id)) => gpu_id,
            _ => return Ok(Err(HiddenBecause::Unreadable)),
        },
        Read::Missing(_) => return Ok(Err(HiddenBecause::Vanished)),
        Read::Forbidden => return Ok(Err(HiddenBecause::Forbidden)),
    };
    if gpu_id != 0 && !access.wants(gpu_id) {
        return Ok(Err(HiddenBecause::Unwanted));
    }
    files.path.back_to(folder);
    files.path.push(b"/properties")?;
    let (mut node, contents) = match files.read(Object::Topology(SysfsFile::Node, sysfs_node, 0))? {
        Read::Text([]) => return Ok(Err(HiddenBecause::Unreadable)),
        Read::Text(text) => Node::from_properties(sysfs_node, text),
        Read::Missing(_) => return Ok(Err(HiddenBecause::Vanished)),
        Read::Forbidden => return Ok(Err(HiddenBecause::Forbidden)),
    };
    node.gpu_id = gpu_id;
    if gpu_id == 0 {
        // The kernel shows a new GPU's folder before it fills in the id, and
        // raises no generation number for that (kernel-rules section 5).
        let unready = node.simd_count > 0;
        if unready && node.cpu_cores_count == 0 {
            return Ok(Err(HiddenBecause::NotReady));
        }
        node.simd_count = 0;
        return Ok(Ok(Passed { node, contents, info: None, unready }));
    }
    if node.drm_render_minor == 0 {
        return Ok(Err(HiddenBecause::NoRenderNode));
    }
    let identity = GpuIdentity { sysfs_node, gpu_id, render_minor: node.drm_render_minor };
    match access.access(&identity)? {
        Access::Usable(info) => Ok(Ok(Passed { node, contents, info, unready: false })),
        Access::Hidden => Ok(Err(HiddenBecause::RenderNodeRefused)),
    }
}

/// Reads what lies in a node's folder beside `properties`. The path is `nodes/`,
/// and is again afterwards.
fn read_folders<O: Os>(
    files: &mut Files<'_, O>,
    node: &mut Node,
    contents: Contents,
    sysfs_nodes: &[u32],
) -> Result<(), Error> {
    let nodes = files.path.mark();
    files.path.push_number(node.sysfs_node)?;
    let folder = files.path.mark();
    if node.is_gpu() {
        // A CPU node's name is always empty.
        files.path.push(b"/name")?;
        node.asic_name = files.read_decoration()?.map_or(Name::EMPTY, Name::from_text);
        files.path.back_to(folder);
    }

    files.path.push(b"/mem_banks/")?;
    let place = (SysfsFile::Bank, node.sysfs_node);
    node.banks = read_entries(files, place, contents.banks, MemoryBank::from_properties)?;
    files.path.back_to(folder);

    files.path.push(b"/caches/")?;
    let place = (SysfsFile::Cache, node.sysfs_node);
    node.caches = read_entries(files, place, contents.caches, Cache::from_properties)?;
    files.path.back_to(folder);

    let mut targets: Vec<u32> = Vec::new();
    targets.try_reserve_exact(sysfs_nodes.len())?;
    let others = sysfs_nodes.iter().copied().filter(|&target| target != node.sysfs_node);
    try_extend(&mut targets, others)?;
    let room = targets.len();
    files.path.push(b"/io_links/")?;
    let place = (SysfsFile::IoLink, node.sysfs_node);
    node.links = read_links(files, place, contents.io_links, &targets, room)?;
    files.path.back_to(folder);

    if let Some(count) = contents.p2p_links {
        // No pair of nodes is linked in both ways. Both lists ascend, as a rule.
        let mut next = 0;
        targets.retain(|target| {
            if node.links.get(next).is_some_and(|link| link.node_to == *target) {
                next = next.saturating_add(1);
                return false;
            }
            !node.links.iter().any(|link| link.node_to == *target)
        });
        let room = room.saturating_sub(node.links.len());
        files.path.push(b"/p2p_links/")?;
        let place = (SysfsFile::P2pLink, node.sysfs_node);
        let more = read_links(files, place, count, &targets, room)?;
        node.links.try_reserve_exact(more.len())?;
        try_extend(&mut node.links, more)?;
    }
    files.path.back_to(nodes);

    // From here on the ends are public ids.
    node.links.retain_mut(|link| {
        let public_id = |sysfs_node| u32::try_from(position(sysfs_nodes, sysfs_node)?).ok();
        match (public_id(link.node_from), public_id(link.node_to)) {
            (Some(from), Some(to)) => {
                link.node_from = from;
                link.node_to = to;
                true
            }
            _ => false,
        }
    });
    Ok(())
}

/// Reads `<index>/properties` of the folder at the path, from 0 to the first that
/// is missing, `count` of them at most: the kernel's count wins over the folders.
fn read_entries<T, O: Os>(
    files: &mut Files<'_, O>,
    (file, sysfs_node): (SysfsFile, u32),
    count: u32,
    parse: fn(&[u8]) -> T,
) -> Result<Vec<T>, Error> {
    let mut entries = Vec::new();
    let base = files.path.mark();
    for index in 0..count.min(ENTRIES) {
        let read = read_entry(files, base, index, file, sysfs_node)?;
        match read {
            Read::Text([]) | Read::Forbidden => {}
            Read::Text(text) => try_push(&mut entries, parse(text))?,
            Read::Missing(_) => break,
        }
    }
    Ok(entries)
}

fn read_entry<'f, O: Os>(
    files: &'f mut Files<'_, O>,
    base: super::path::Mark,
    index: u32,
    file: SysfsFile,
    sysfs_node: u32,
) -> Result<Read<'f>, Error> {
    files.path.back_to(base);
    files.path.push_number(index)?;
    files.path.push(b"/properties")?;
    let index = u16::try_from(index).unwrap_or(u16::MAX);
    files.read(Object::Topology(file, sysfs_node, index))
}

/// Reads the links in the folder at the path; their ends are the kernel's numbers.
fn read_links<O: Os>(
    files: &mut Files<'_, O>,
    (file, sysfs_node): (SysfsFile, u32),
    count: u32,
    targets: &[u32],
    room: usize,
) -> Result<Vec<IoLink>, Error> {
    let base = files.path.mark();
    link::collect(count, targets, room, |index| {
        Ok(match read_entry(files, base, index, file, sysfs_node)? {
            Read::Missing(_) => Probe::End,
            Read::Text([]) | Read::Forbidden => Probe::Unreadable,
            Read::Text(text) => match IoLink::from_properties(text) {
                link if link.node_from == sysfs_node => Probe::Link(link),
                _ => Probe::Unreadable,
            },
        })
    })
}

/// Adds to CPU nodes what the tree does not say: names and caches.
fn describe_cpus<O: Os>(
    files: &mut Files<'_, O>,
    settings: &Settings<'_>,
    nodes: &mut [Node],
) -> Result<(), Error> {
    if nodes.iter().all(|node| node.cpu_cores_count == 0) {
        return Ok(());
    }
    let cpuinfo = match settings.cpuinfo {
        Some(path) => CpuInfo::read(&files.read_proc(path)?)?,
        None => CpuInfo::default(),
    };
    let without_caches = |node: &Node| node.cpu_cores_count > 0 && node.caches.is_empty();
    let numa_nodes = match nodes.iter().any(without_caches) {
        true => numa_nodes_with_cpus(files, settings)?,
        false => Vec::new(),
    };
    let cpu_nodes = nodes.iter_mut().filter(|node| node.cpu_cores_count > 0);
    for (ordinal, node) in cpu_nodes.enumerate() {
        if let Some(name) = cpuinfo.model_of(node.cpu_core_id_base) {
            node.marketing_name = name;
            if node.device_id == 0 {
                node.amd_name = name;
            }
        }
        if !node.caches.is_empty() {
            continue;
        }
        let mut caches = None;
        if numa_nodes.is_empty() {
            if let Ok(number) = u32::try_from(ordinal) {
                caches = read_cpu_caches(files, settings, CpuFolder::Numa(number), &cpuinfo)?;
            }
            if caches.is_none() && ordinal == 0 {
                caches = read_cpu_caches(files, settings, CpuFolder::All, &cpuinfo)?;
            }
        } else if let Some(&number) = numa_nodes.get(ordinal) {
            caches = read_cpu_caches(files, settings, CpuFolder::Numa(number), &cpuinfo)?;
        }
        node.caches = caches.unwrap_or_default();
    }
    Ok(())
}

/// Prepares the look-ups.
fn index(snapshot: &mut Snapshot) -> Result<(), Error> {
    let gpus = snapshot.nodes.iter().filter(|node| node.is_gpu()).count();
    snapshot.by_gpu_id.try_reserve_exact(gpus)?;
    snapshot.by_render_minor.try_reserve_exact(gpus)?;
    for (node_id, node) in (0u32..).zip(&snapshot.nodes) {
        if node.is_gpu() {
            try_push(&mut snapshot.by_gpu_id, (node.gpu_id, node_id))?;
            try_push(&mut snapshot.by_render_minor, (node.drm_render_minor, node_id))?;
        }
    }
    sort(&mut snapshot.by_gpu_id);
    sort(&mut snapshot.by_render_minor);
    Ok(())
}
