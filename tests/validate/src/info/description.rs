//! What there is to say about a machine.

use alloc::vec::Vec;

use hsakmt_core::context::Machine;
use hsakmt_core::topology::{HeapType, HiddenNode, Node, Snapshot, SystemProperties};

/// What the kernel says about a machine.
#[derive(Debug, Clone, Default)]
pub struct Description {
    /// The kernel's generation number of the topology.
    pub generation: u64,
    /// Whether an equal generation number proves that nothing has changed.
    pub settled: bool,
    /// The platform.
    pub system: SystemProperties,
    /// The nodes, by public id.
    pub nodes: Vec<Node>,
    /// The nodes that this process may not use.
    pub hidden: Vec<HiddenNode>,
}

impl From<&Snapshot> for Description {
    fn from(snapshot: &Snapshot) -> Description {
        Description {
            generation: snapshot.generation(),
            settled: snapshot.settled(),
            system: snapshot.system(),
            nodes: snapshot.nodes().to_vec(),
            hidden: snapshot.hidden().to_vec(),
        }
    }
}

impl From<&Machine> for Description {
    /// With the apertures among the memory banks.
    fn from(machine: &Machine) -> Description {
        let mut description = Description::from(machine.snapshot());
        for node in &mut description.nodes {
            let apertures = machine.apertures_of(node);
            node.banks = node.memory_banks(&apertures).collect();
            for bank in &mut node.banks {
                // Where this process happened to map the page says nothing about the machine.
                if bank.heap_type == HeapType::MMIO_REMAP {
                    bank.virtual_base_address = 0;
                }
            }
        }
        description
    }
}

/// Compute units of a node's GPU, 0 without one.
#[must_use]
pub fn compute_units(node: &Node) -> u32 {
    node.simd_count.checked_div(node.simd_per_cu).unwrap_or(0)
}
