//! Who decides which GPUs this process may use.

use crate::error::Error;

/// A GPU that the tree names, before anything of it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GpuIdentity {
    /// The folder in `nodes/`.
    pub sysfs_node: u32,
    /// The kernel's id; unique, never 0.
    pub gpu_id: u32,
    /// The minor of `/dev/dri/renderD<minor>`; never 0.
    pub render_minor: u32,
}

/// What the GPU's own driver says (AMDGPU_INFO); all zero where nobody asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceInfo {
    /// The chip family (`AMDGPU_FAMILY_*` in `amdgpu_drm.h`); 0 leaves what the
    /// tree says.
    pub family: u32,
    /// The GPU shares its memory with the CPU (`AMDGPU_IDS_FLAGS_FUSION`).
    pub integrated: bool,
    /// The frequency of the GPU's time counter, in kHz.
    pub counter_khz: u64,
    /// The PCI revision: tells products with one device id apart.
    pub pci_revision: u32,
    /// Handles of this GPU can be shared over UALink.
    pub fabric: bool,
}

/// The answer for one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Usable; with what its driver says if it was asked.
    Usable(Option<DeviceInfo>),
    /// Not for this process: the node is left out.
    Hidden,
}

/// Decides which GPUs are usable.
///
/// A snapshot may be read again when the topology changes meanwhile, so the
/// same GPU may be asked for more than once; whatever was opened for it the
/// first time serves again.
pub trait GpuAccess {
    /// Whether the GPU with this kernel id is of any interest. Of the others no
    /// file but `gpu_id` is read.
    fn wants(&mut self, gpu_id: u32) -> bool {
        let _ = gpu_id;
        true
    }

    /// Whether the GPU is usable: its render node opens. ENOENT and EPERM mean
    /// [`Access::Hidden`].
    ///
    /// # Errors
    /// Any other failure; the snapshot fails with it.
    fn access(&mut self, gpu: &GpuIdentity) -> Result<Access, Error>;
}

/// Discovery: every GPU with a render node is usable and nothing is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unopened;

impl GpuAccess for Unopened {
    fn access(&mut self, _: &GpuIdentity) -> Result<Access, Error> {
        Ok(Access::Usable(None))
    }
}
