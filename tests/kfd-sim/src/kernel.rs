//! Which kernel the machine runs: its release and the options it was built with.
//!
//! kernel-rules, opening: "Build options decide answers", and the list of KFD
//! minors in section 2. Everything that differs between kernels is asked here,
//! so that no other file compares versions by number.

use crate::gpu_memory::Place;
use crate::topology::Gpu;

/// The kernels whose rules are modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// Linux 6.1 (Debian 12), KFD 1.11.
    V6_1,
    /// Linux 6.12 (Debian 13), KFD 1.17.
    V6_12,
    /// Linux 7.2, KFD 1.23.
    V7_2,
}

impl Kernel {
    /// The KFD minor this kernel reports.
    #[must_use]
    pub const fn kfd_minor(self) -> u32 {
        match self {
            Kernel::V6_1 => 11,
            Kernel::V6_12 => 17,
            Kernel::V7_2 => 23,
        }
    }

    /// The amdgpu DRM minor this kernel reports (amdgpu_drv.c).
    #[must_use]
    pub const fn drm_minor(self) -> u32 {
        match self {
            Kernel::V6_1 => 49,
            Kernel::V6_12 => 60,
            Kernel::V7_2 => 64,
        }
    }
}

/// A kernel and the options it was built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelProfile {
    /// Whose rules apply.
    pub kernel: Kernel,
    /// The KFD minor that GET_VERSION reports. It also decides which request
    /// numbers exist, as if the driver of `kernel` were older or newer.
    pub kfd_minor: u32,
    /// The DRM minor that DRM_IOCTL_VERSION reports.
    pub drm_minor: u32,
    /// HSA_AMD_SVM: off makes SVM and SET_XNACK_MODE answer EPERM.
    pub svm: bool,
    /// HSA_AMD_P2P: off means no `p2p_links` and no peer access over PCIe.
    pub p2p: bool,
    /// CREATE_PROCESS exists (also needs KFD 1.19).
    pub secondary_contexts: bool,
    /// The out-of-tree driver's requests 0x80 and up exist, those of `ipc` apart.
    pub out_of_tree: bool,
    /// IPC_EXPORT_HANDLE and IPC_IMPORT_HANDLE exist.
    pub ipc: bool,
    /// The most bytes of a dma-buf that the module udmabuf makes (`size_limit_mb`); none
    /// where it is not loaded.
    pub udmabuf: Option<u64>,
}

impl KernelProfile {
    /// The kernel as Debian builds it: SVM only in 7.2, P2P in none.
    #[must_use]
    pub const fn debian(kernel: Kernel) -> KernelProfile {
        KernelProfile {
            kernel,
            kfd_minor: kernel.kfd_minor(),
            drm_minor: kernel.drm_minor(),
            svm: matches!(kernel, Kernel::V7_2),
            p2p: false,
            secondary_contexts: true,
            out_of_tree: false,
            ipc: false,
            udmabuf: None,
        }
    }

    /// The same kernel with the out-of-tree driver, which has every option on.
    #[must_use]
    pub const fn out_of_tree(kernel: Kernel) -> KernelProfile {
        KernelProfile { svm: true, p2p: true, out_of_tree: true, ipc: true, ..Self::debian(kernel) }
    }

    /// The same profile reporting another KFD minor.
    #[must_use]
    pub const fn with_kfd_minor(self, kfd_minor: u32) -> KernelProfile {
        KernelProfile { kfd_minor, ..self }
    }

    /// Whether node properties have `cwsr_size`, `debug_prop` and the other
    /// keys that came after 6.1 (kernel-rules section 5).
    pub(crate) fn has_keys_of_6_12(self) -> bool {
        self.kernel >= Kernel::V6_12
    }

    /// Whether node properties have `capability2`.
    pub(crate) fn has_keys_of_7_2(self) -> bool {
        self.kernel >= Kernel::V7_2
    }

    /// kernel-rules section 2, APERTURES_NEW: more entries than topology nodes
    /// are refused.
    pub(crate) fn limits_apertures_to_nodes(self) -> bool {
        self.kernel >= Kernel::V6_12
    }

    /// kernel-rules section 1, "open errors": without a visible GPU the open fails.
    pub(crate) fn needs_a_gpu_to_open(self) -> bool {
        self.kernel >= Kernel::V7_2
    }

    /// kernel-rules section 1, "Limits": a wait has at most 4096 entries.
    pub(crate) fn limits_waits(self) -> bool {
        self.kernel >= Kernel::V7_2
    }

    /// DRM_IOCTL_VERSION still told the day the interface was made (drm_ioctl.c).
    pub(crate) fn has_drm_date(self) -> bool {
        self.kernel < Kernel::V7_2
    }

    /// kernel-rules section 2, ALLOC "APU" and "Accounting": VRAM of an APU is taken
    /// from system memory; from 7.2 on only where the carve-out is the smaller of
    /// the two, and then it is counted as both.
    pub(crate) fn place_of_vram(self, gpu: &Gpu) -> Place {
        match self.kernel {
            Kernel::V6_12 if gpu.apu => Place::Gtt,
            Kernel::V7_2 if gpu.apu && gpu.vram < gpu.gtt => Place::Gtt,
            Kernel::V7_2 if gpu.apu => Place::CarveOut,
            _ => Place::Vram,
        }
    }

    /// kernel-rules section 1, "Binding a VM": where the trap page is on gfx9 and later.
    pub(crate) fn has_trap_page_at_bottom(self) -> bool {
        self.kernel < Kernel::V6_12
    }

    /// kernel-rules section 4, "reserved top".
    pub(crate) fn has_sequence_page(self) -> bool {
        self.kernel >= Kernel::V6_12
    }

    /// kernel-rules section 2, UNMAP: memory that a queue uses is EBUSY.
    pub(crate) fn keeps_memory_of_queues(self) -> bool {
        self.kernel >= Kernel::V6_12
    }

    /// kernel-rules section 3: a reset takes the mappings of doorbells away.
    pub(crate) fn tears_doorbells(self) -> bool {
        self.kernel >= Kernel::V7_2
    }

    /// kernel-rules section 2, "Signal from the GPU": gfx12.1 fires by number.
    pub(crate) fn signals_by_number(self) -> bool {
        self.kernel >= Kernel::V7_2
    }

    /// kernel-rules section 2, CREATE_QUEUE step 10: the buffers are looked at.
    pub(crate) fn checks_queue_buffers(self) -> bool {
        self.kernel >= Kernel::V6_12
    }

    /// The same: a ring below a page is one page.
    pub(crate) fn rounds_rings_up(self) -> bool {
        self.kernel >= Kernel::V7_2
    }

    /// The same, step 1: bits 8 to 15 of the percentage are the target die.
    pub(crate) fn has_die_in_percentage(self) -> bool {
        self.kernel >= Kernel::V6_12
    }

    /// The same, step 4: since 1.22.
    pub(crate) fn has_metadata_rings(self) -> bool {
        self.kfd_minor >= 22
    }

    /// The same, step 6: type 4, since 1.17.
    pub(crate) fn has_queues_by_engine(self) -> bool {
        self.kfd_minor >= 17
    }

    /// The same, step 11: queues of an object on one GPU.
    pub(crate) fn queues_of_gpu(self, gpu: &Gpu) -> usize {
        match gpu.properties.gfx_target_version {
            90_402 => 255,
            90_500 if self.kernel >= Kernel::V7_2 => 255,
            _ => 127,
        }
    }

    /// kernel-rules section 2, ALLOC "Order": user pages that have an SVM range are
    /// refused.
    pub(crate) fn keeps_user_pages_from_svm(self) -> bool {
        self.kernel >= Kernel::V6_12
    }

    /// kernel-rules section 4, "GEM_VA": on VMs of compute objects since 1.15.
    pub(crate) fn maps_handles_of_compute(self) -> bool {
        self.kfd_minor >= 15
    }

    /// The same: a point of a timeline that is signaled when the mapping is done.
    pub(crate) fn has_points_of_mappings(self) -> bool {
        self.kernel >= Kernel::V7_2
    }

    /// kernel-rules section 2, "IMPORT": amdgpu buffers of the same GPU only, and the
    /// dma-buf is looked at first.
    pub(crate) fn imports_own_buffers_alone(self) -> bool {
        self.kernel < Kernel::V6_12
    }

    /// kernel-rules section 2, SET_ATTR: an address range that wraps is EOVERFLOW.
    pub(crate) fn names_svm_overflow(self) -> bool {
        self.kernel == Kernel::V6_12
    }

    /// kernel-rules section 1, "Binding a VM": the object has the PASID, not the file.
    pub(crate) fn has_pasid_per_object(self) -> bool {
        self.kernel < Kernel::V7_2
    }

    /// kernel-rules section 3, type 1.
    pub(crate) fn maps_reserved_memory(self) -> bool {
        self.kernel < Kernel::V7_2
    }

    /// kernel-rules section 3: mmap tests the file's object rather than the caller's.
    pub(crate) fn maps_by_file(self) -> bool {
        self.kernel >= Kernel::V7_2
    }

    /// kernel-rules section 2, "Apertures": where the GPU's address space starts.
    pub(crate) fn gpuvm_base(self) -> u64 {
        match self.kernel {
            Kernel::V6_1 => 0x4000,
            Kernel::V6_12 | Kernel::V7_2 => 0x1_0000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kernel, KernelProfile};

    #[test]
    fn debian_builds_svm_only_in_7_2_and_p2p_never() {
        let svm = [Kernel::V6_1, Kernel::V6_12, Kernel::V7_2]
            .map(|kernel| KernelProfile::debian(kernel).svm);
        assert_eq!(svm, [false, false, true]);
        assert!(!KernelProfile::debian(Kernel::V7_2).p2p);
    }
}
