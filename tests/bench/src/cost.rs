//! What a machine costs, counted at the seams.

use std::sync::Arc;

use hsakmt_core::context::{GpuSelection, Options};
use hsakmt_core::error::Error;
use hsakmt_core::process::Process;
use hsakmt_core::seam::{Counted, Counters, Counts, OperationKind, Os, Pair, Platform};
use hsakmt_core::topology::{Settings, Unopened, read_snapshot};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Machine, Profile, SimPlatform};

/// A process on a simulated machine, without a log of what it reads.
#[must_use]
pub fn simulated(profile: &Profile) -> SimPlatform<Linux> {
    let machine = Machine::new(profile);
    machine.keep_log(false);
    machine.spawn(Linux)
}

/// What a machine costs.
#[derive(Debug, Clone)]
pub struct Cost {
    /// Nodes, CPUs included.
    pub nodes: usize,
    /// Discovery: the topology read without a device.
    pub discover: Counts,
    /// Open.
    pub open: Counts,
    /// The first acquire.
    pub acquire: Counts,
    /// An acquire when nothing has changed.
    pub acquire_again: Counts,
    /// 1,000 queries of a node, its banks, caches and links.
    pub queries: Counts,
}

/// Files read, those included that are not there.
#[must_use]
pub fn file_reads(counts: &Counts) -> u64 {
    counts.of(OperationKind::ReadFile)
}

/// Opens, acquires and queries a machine.
///
/// # Errors
/// The first failure.
pub fn measure<P: Platform>(platform: &P, gpus: GpuSelection) -> Result<Cost, Error> {
    let counters = Arc::new(Counters::new());
    let process = Process::new(Pair {
        os: Counted::new(platform.os(), Arc::clone(&counters)),
        driver: Counted::new(platform.driver(), Arc::clone(&counters)),
    });
    let mut before = counters.snapshot();
    let mut lap = || {
        let now = counters.snapshot();
        let cost = now.since(&before);
        before = now;
        cost
    };
    drop(discover(process.platform().os())?);
    let discover = lap();
    process.open_primary(|| Ok(Options { gpus, ..Options::default() }))?;
    let open = lap();
    let guard = process.primary()?;
    guard.acquire_machine()?;
    let acquire = lap();
    guard.acquire_machine()?;
    let acquire_again = lap();
    let nodes = guard.machine(|machine| Ok(machine.snapshot().nodes().len()))?;
    for query in 0..1000 {
        let node = u32::try_from(query % nodes.max(1)).unwrap_or_default();
        let seen = guard.machine(|machine| {
            let node = machine.node(node)?;
            let banks = node.memory_banks(&machine.apertures_of(node)).count();
            Ok(banks + node.caches.len() + node.links.len())
        })?;
        std::hint::black_box(seen);
    }
    let queries = lap();
    drop(guard);
    process.close_primary()?;
    Ok(Cost { nodes, discover, open, acquire, acquire_again, queries })
}

fn discover<O: Os>(os: &O) -> Result<hsakmt_core::topology::Snapshot, Error> {
    read_snapshot(os, &Settings::KERNEL, &mut Unopened)
}
