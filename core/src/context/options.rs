//! How a context is to behave; given once, at open.

use alloc::vec::Vec;

use super::RenderFiles;
use crate::error::Error;
use crate::fallible::try_extend;
use crate::log::Logger;
use crate::topology::{MajorChange, Settings};

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

/// Whether memory of an APU is made of pages of the process by `/dev/udmabuf`, rather
/// than by the GPU's driver.
///
/// It concerns what is allocated as memory of a GPU that has none of its own beside the
/// system's (an APU), and shares the process's addresses. Memory without an address, the
/// ring of an AQL queue, uncached memory and memory that is coherent within one kernel
/// cannot be made so. Needs Linux 6.8 and the module udmabuf, whose `size_limit_mb` (64 by
/// default) is the most for one allocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UdmabufPolicy {
    /// The GPU's driver makes it.
    #[default]
    Off,
    /// Where udmabuf cannot make it the GPU's driver does, and a message says so.
    Prefer,
    /// Where udmabuf cannot make it the allocation fails, and nothing else is tried.
    Require,
}

/// How a context is to behave.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which GPUs the context uses.
    pub gpus: GpuSelection,
    /// The gfx version that programs are to take every GPU for, "M.m.s".
    pub gfx_override: Option<Vec<u8>>,
    /// The same for single nodes, by public id; such an entry comes first.
    pub node_gfx_overrides: Vec<(u32, Vec<u8>)>,
    /// What becomes of an override that changes the major version.
    pub major_change: MajorChange,
    /// Whether the SVM calls may be used.
    pub svm_api: bool,
    /// Whether GPUs get their product names from the built-in table.
    pub marketing_names: bool,
    /// Whether video memory without host access is mapped all the same, without
    /// rights, so that debuggers and core dumps can read it.
    pub debugger_access: bool,
    /// Unused pages after each allocation.
    pub guard_pages: u32,
    /// Whether paged host memory is the process's own, rather than the driver's.
    pub userptr_for_paged_memory: bool,
    /// Whether memory of the caller is registered by attributes where the GPUs have
    /// the SVM calls, rather than by buffers.
    pub register_by_attributes: bool,
    /// Whether GPUs may execute from all memory, and not only from that which was
    /// asked for with the right.
    pub all_memory_executable: bool,
    /// Whether GPUs cache nothing.
    pub disable_cache: bool,
    /// Whether video memory is served from system memory.
    pub zero_frame_buffer: bool,
    /// Whether memory of an APU is made by udmabuf.
    pub udmabuf: UdmabufPolicy,
    /// Whether every page of memory that is registered is read once, so that a
    /// wrong range fails there.
    pub check_user_pointers: bool,
    /// How long an engine that was given packets may make no progress before it is given
    /// up, in ms.
    pub engine_patience_ms: u32,
    /// Whose render files GPUs are bound to, if not the context's own.
    pub render_files: Option<&'static dyn RenderFiles>,
    /// Where messages for people go.
    pub logger: Logger,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            gpus: GpuSelection::All,
            gfx_override: None,
            node_gfx_overrides: Vec::new(),
            major_change: MajorChange::Refuse,
            svm_api: true,
            marketing_names: true,
            debugger_access: false,
            guard_pages: 1,
            userptr_for_paged_memory: true,
            register_by_attributes: true,
            all_memory_executable: false,
            disable_cache: false,
            zero_frame_buffer: false,
            udmabuf: UdmabufPolicy::Off,
            check_user_pointers: false,
            engine_patience_ms: 10_000,
            render_files: None,
            logger: Logger::SILENT,
        }
    }
}

impl Options {
    /// The overrides of single nodes, borrowed.
    pub(super) fn node_overrides(&self) -> Result<Vec<(u32, &[u8])>, Error> {
        let mut borrowed = Vec::new();
        borrowed.try_reserve_exact(self.node_gfx_overrides.len())?;
        let overrides = self.node_gfx_overrides.iter();
        try_extend(&mut borrowed, overrides.map(|(node, text)| (*node, text.as_slice())))?;
        Ok(borrowed)
    }

    /// How the topology is read.
    pub(super) fn settings<'a>(&'a self, node_overrides: &'a [(u32, &'a [u8])]) -> Settings<'a> {
        Settings {
            gfx_override: self.gfx_override.as_deref(),
            node_gfx_overrides: node_overrides,
            major_change: self.major_change,
            svm_api: self.svm_api,
            marketing_names: self.marketing_names,
            ..Settings::KERNEL
        }
    }
}
