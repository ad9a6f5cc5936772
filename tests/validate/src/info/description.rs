//! What there is to say about a machine.

use hsakmt_core::topology::{HiddenNode, Node, Snapshot, SystemProperties};

use crate::machine::Machine;

/// A machine and what its kernel says about it.
#[derive(Debug, Clone, Copy)]
pub struct Description<'a> {
    /// Which machine.
    pub machine: &'a Machine,
    /// The kernel's generation number of the topology.
    pub generation: u64,
    /// Whether an equal generation number proves that nothing has changed.
    pub settled: bool,
    /// The platform.
    pub system: SystemProperties,
    /// The nodes, by public id.
    pub nodes: &'a [Node],
    /// The nodes that this process may not use.
    pub hidden: &'a [HiddenNode],
}

impl<'a> Description<'a> {
    /// Describes a machine by a snapshot of its topology.
    #[must_use]
    pub fn new(machine: &'a Machine, snapshot: &'a Snapshot) -> Description<'a> {
        Description {
            machine,
            generation: snapshot.generation(),
            settled: snapshot.settled(),
            system: snapshot.system(),
            nodes: snapshot.nodes(),
            hidden: snapshot.hidden(),
        }
    }
}

/// Compute units of a node's GPU, 0 without one.
#[must_use]
pub fn compute_units(node: &Node) -> u32 {
    node.simd_count.checked_div(node.simd_per_cu).unwrap_or(0)
}
