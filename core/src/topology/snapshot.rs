//! A consistent picture of the machine.

use alloc::vec::Vec;

use super::Node;

/// The platform, as its firmware tables name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SystemProperties {
    /// OEM id, eight characters (C: the first four).
    pub platform_oem: u64,
    /// OEM table id, eight characters (C: the first four).
    pub platform_id: u64,
    /// Revision.
    pub platform_rev: u64,
}

/// Why a node of the tree has no public id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenBecause {
    /// The device cgroup forbids the GPU.
    Forbidden,
    /// The caller wants other GPUs.
    Unwanted,
    /// The kernel names no render node for it.
    NoRenderNode,
    /// Its render node does not open.
    RenderNodeRefused,
    /// The kernel had not finished adding the GPU.
    NotReady,
    /// A file of the node is missing: the kernel is rebuilding the tree.
    Vanished,
    /// A file of the node holds nothing, or no number.
    Unreadable,
}

/// A node of the tree that has no public id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenNode {
    /// The folder in `nodes/`.
    pub sysfs_node: u32,
    /// Why.
    pub because: HiddenBecause,
}

/// The machine as it was at one moment. Never changes; every look-up is free of
/// system calls and takes at most O(log n).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    pub(super) generation: u64,
    pub(super) system: SystemProperties,
    pub(super) nodes: Vec<Node>,
    pub(super) hidden: Vec<HiddenNode>,
    /// The folders of `nodes`, in the same (ascending) order.
    pub(super) sysfs_nodes: Vec<u32>,
    /// (gpu_id, public id), ascending.
    pub(super) by_gpu_id: Vec<(u32, u32)>,
    /// (render minor, public id), ascending.
    pub(super) by_render_minor: Vec<(u32, u32)>,
    pub(super) settled: bool,
}

impl Snapshot {
    /// The kernel's generation number of this topology.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether an equal generation number proves that nothing has changed. It
    /// does not while the kernel is still adding a GPU: finishing that raises no
    /// number.
    #[must_use]
    pub const fn settled(&self) -> bool {
        self.settled
    }

    /// The platform.
    #[must_use]
    pub const fn system(&self) -> SystemProperties {
        self.system
    }

    /// The nodes that this process may use; a node's place is its public id.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes that it may not use, by folder.
    #[must_use]
    pub fn hidden(&self) -> &[HiddenNode] {
        &self.hidden
    }

    /// How many nodes the kernel has, hidden ones included.
    #[must_use]
    pub fn sysfs_node_count(&self) -> usize {
        self.nodes.len().saturating_add(self.hidden.len())
    }

    /// The node with this public id.
    #[must_use]
    pub fn node(&self, node_id: u32) -> Option<&Node> {
        self.nodes.get(usize::try_from(node_id).ok()?)
    }

    /// The public id of a node by its folder in `nodes/`.
    #[must_use]
    pub fn by_sysfs_node(&self, sysfs_node: u32) -> Option<u32> {
        let place = self.sysfs_nodes.binary_search(&sysfs_node).ok()?;
        u32::try_from(place).ok()
    }

    /// The public id of the GPU with this kernel id.
    #[must_use]
    pub fn by_gpu_id(&self, gpu_id: u32) -> Option<u32> {
        find(&self.by_gpu_id, gpu_id)
    }

    /// The public id of the GPU with this render minor.
    #[must_use]
    pub fn by_render_minor(&self, render_minor: u32) -> Option<u32> {
        find(&self.by_render_minor, render_minor)
    }
}

/// The value of the first entry with this key.
fn find(sorted: &[(u32, u32)], key: u32) -> Option<u32> {
    let place = sorted.partition_point(|&(entry, _)| entry < key);
    sorted.get(place).filter(|&&(entry, _)| entry == key).map(|&(_, value)| value)
}
