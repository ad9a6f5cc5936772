//! How a context is to behave; given once, at open.

use alloc::vec::Vec;

/// Which GPUs a context uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GpuSelection {
    /// Every GPU that the kernel shows and whose render node opens.
    #[default]
    All,
    /// Only the GPUs with these kernel ids; of the others no render node is
    /// opened and no VM acquired.
    Only(Vec<u32>),
}

impl GpuSelection {
    /// Whether the GPU with this kernel id is wanted.
    #[must_use]
    pub fn wants(&self, gpu_id: u32) -> bool {
        match self {
            GpuSelection::All => true,
            GpuSelection::Only(wanted) => wanted.contains(&gpu_id),
        }
    }
}

/// How a context is to behave.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which GPUs the context uses.
    pub gpus: GpuSelection,
}
