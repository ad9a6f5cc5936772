//! Topology trees to read: made by hand, captured, broken on purpose; and an
//! operating system that reads them and counts.

mod capture;
mod os;
mod scratch;
mod tree;

pub use capture::{Capture, captures, complete};
pub use os::{Answer, Source, TreeOs};
pub use scratch::ScratchFolder;
pub use tree::{NodeSpec, Tree};

use hsakmt_core::error::Error;
use hsakmt_core::topology::{Access, DeviceInfo, GpuAccess, GpuIdentity, Settings};

/// Where a [`Tree`] lies for the reader.
pub const SETTINGS: Settings<'static> = Settings {
    root: c"/topology",
    cpuinfo: Some(c"/cpuinfo"),
    numa_nodes: Some(c"/node"),
    cpus: Some(c"/cpu"),
    ..Settings::KERNEL
};

/// Lets every GPU pass with what a driver says of all of them, and remembers who
/// was asked for.
#[derive(Debug, Default)]
pub struct EveryGpu {
    /// What the driver says.
    pub info: DeviceInfo,
    /// Who was asked for, in order.
    pub asked: Vec<GpuIdentity>,
}

impl GpuAccess for EveryGpu {
    fn access(&mut self, gpu: &GpuIdentity) -> Result<Access, Error> {
        self.asked.push(*gpu);
        Ok(Access::Usable(Some(self.info)))
    }
}

/// Lets only the GPUs with these kernel ids pass.
#[derive(Debug)]
pub struct OnlyGpus<'a>(pub &'a [u32]);

impl GpuAccess for OnlyGpus<'_> {
    fn wants(&mut self, gpu_id: u32) -> bool {
        self.0.contains(&gpu_id)
    }

    fn access(&mut self, _: &GpuIdentity) -> Result<Access, Error> {
        Ok(Access::Usable(None))
    }
}
