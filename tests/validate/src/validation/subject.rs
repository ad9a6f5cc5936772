//! The machine under validation, for its stages.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use hsakmt_core::errno::Errno;
use hsakmt_core::error::Error;
use hsakmt_core::process::{Guard, Process};
use hsakmt_core::seam::{Clock, DeviceToken, Driver, Os, Platform};
use hsakmt_core::topology::{HiddenNode, Node};

use super::findings::Findings;
use crate::output::console::Console;
use crate::signals;

/// Nanoseconds between two lines of progress.
const PROGRESS_INTERVAL: u64 = 100_000_000;

/// A GPU that is validated.
#[derive(Debug, Clone)]
pub struct Gpu {
    /// Its node, by public id.
    pub node: u32,
    /// The kernel's id.
    pub gpu_id: u32,
    /// What it is called in every message.
    pub name: String,
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// When the time is up, and how much is checked until then.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Check less.
    pub quick: bool,
    /// Nanoseconds of [`Clock::Monotonic`].
    pub deadline: u64,
}

/// The machine under validation.
pub struct Subject<'a, P: Platform> {
    /// The library, open.
    pub process: &'a Process<P>,
    /// How much is checked.
    pub limits: Limits,
    /// The nodes, by public id; empty before the stage of the topology.
    pub nodes: Vec<Node>,
    /// Nodes that cannot be used.
    pub hidden: Vec<HiddenNode>,
    /// The GPUs that are validated.
    pub gpus: Vec<Gpu>,
    /// Where progress goes, if anybody looks.
    pub progress: Option<&'a mut dyn Console>,
    /// When progress was last shown.
    pub last_progress: u64,
}

impl<'a, P: Platform> Subject<'a, P> {
    /// The system below.
    pub fn os(&self) -> &'a P::Os {
        self.process.platform().os()
    }

    /// Nanoseconds since some moment.
    pub fn now(&self) -> u64 {
        self.os().now(Clock::Monotonic)
    }

    /// Enters the library.
    ///
    /// # Errors
    /// NOT_OPENED.
    pub fn enter(&self) -> Result<Guard<'a, P>, Error> {
        self.process.primary()
    }

    /// Whether there is time for one more step; that there is none is a failure.
    pub fn has_time(&self, findings: &mut Findings, done: &dyn fmt::Display) -> bool {
        let left = self.now() < self.limits.deadline;
        if !left && !findings.failures.iter().any(|reason| reason.starts_with("out of time")) {
            findings.fail(format!("out of time before {done}"));
        }
        left
    }

    /// Tells whoever looks what is done now.
    pub fn show_progress(&mut self, stage: &str, step: &dyn fmt::Display) {
        let now = self.now();
        let Some(console) = &mut self.progress else { return };
        if now.saturating_sub(self.last_progress) < PROGRESS_INTERVAL {
            return;
        }
        self.last_progress = now;
        console.write_error(format!("\r\x1b[K{stage}: {step}").as_bytes());
    }

    /// Takes away what progress was shown.
    pub fn clear_progress(&mut self) {
        if let Some(console) = &mut self.progress {
            if self.last_progress != 0 {
                console.write_error(b"\r\x1b[K");
            }
        }
    }

    /// Whether every GPU stands in a node of CPUs: such GPUs see the memory of the process
    /// as it is, and nothing is registered for them or mapped on them.
    #[must_use]
    pub fn shares_memory(&self) -> bool {
        let mut gpus = self.nodes.iter().filter(|node| node.is_gpu()).peekable();
        gpus.peek().is_some() && gpus.all(|node| node.cpu_cores_count != 0)
    }

    /// Whether a queue was refused because the driver looks for buffers where a GPU
    /// within the CPU's node needs none (from Linux 6.12 on, `kfd_queue.c`).
    #[must_use]
    pub fn takes_no_queues(&self, error: &Error) -> bool {
        self.shares_memory() && error.errno == Some(Errno::EINVAL)
    }

    /// The GPU of a node.
    #[must_use]
    pub fn gpu(&self, node: u32) -> Option<&Gpu> {
        self.gpus.iter().find(|gpu| gpu.node == node)
    }

    /// The nodes of all GPUs that are validated.
    #[must_use]
    pub fn gpu_nodes(&self) -> Vec<u32> {
        self.gpus.iter().map(|gpu| gpu.node).collect()
    }

    /// Closes a descriptor that the library gave away.
    pub fn close(&self, descriptor: u32) {
        drop(self.process.platform().driver().adopt(DeviceToken(descriptor)));
    }
}

/// Notices accesses to device memory that was not there.
#[derive(Debug, Clone, Copy)]
pub struct BusErrors(u32);

impl BusErrors {
    /// From here on.
    #[must_use]
    pub fn watch() -> BusErrors {
        BusErrors(signals::bus_errors())
    }

    /// Notes a failure of the part if there was one; whether there was none.
    pub fn check(self, part: &dyn fmt::Display, findings: &mut Findings) -> bool {
        let whole = signals::bus_errors() == self.0;
        if !whole {
            let address = signals::last_bus_error();
            findings.fail(format!(
                "{part}: its memory is gone (SIGBUS at {address:#x}): the GPU was reset or removed"
            ));
        }
        whole
    }
}

/// What a node is called in messages: by its folder of the topology, whose number
/// stays when other GPUs are left out.
#[must_use]
pub fn name_of(node: &Node) -> String {
    let Node { sysfs_node, gpu_id, gfx_version, .. } = node;
    if node.is_gpu() {
        format!("GPU node {sysfs_node} ({gfx_version}, gpu_id {gpu_id:#x})")
    } else {
        format!("CPU node {sysfs_node}")
    }
}
