//! Nodes.

use alloc::vec::Vec;

use super::{Cache, GfxVersion, IoLink, MemoryBank, Name};

/// A node: CPUs of one NUMA node, a GPU (or a partition of one), or both.
///
/// The widest form of what any generation of `HsaNodeProperties` holds, as the
/// kernel counts it; the C layer narrows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// The folder in `nodes/`.
    pub sysfs_node: u32,
    /// The kernel's id of the GPU; 0 for a node without one.
    pub gpu_id: u32,
    /// The kernel's name of the chip, "aldebaran"; empty for CPUs.
    pub asic_name: Name,
    /// CPU cores (`NumCPUCores`).
    pub cpu_cores_count: u32,
    /// SIMD units (`NumFComputeCores`), 0 for a node without a GPU.
    pub simd_count: u32,
    /// APIC id of the first core (`CComputeIdLo`).
    pub cpu_core_id_base: u32,
    /// Id of the first SIMD (`FComputeIdLo`).
    pub simd_id_base: u32,
    /// `HSA_CAPABILITY` bits.
    pub capability: u32,
    /// `HSA_CAPABILITY2` bits.
    pub capability2: u32,
    /// `HSA_DEBUG_PROPERTIES` bits.
    pub debug_prop: u64,
    /// Waves that fit a SIMD.
    pub max_waves_per_simd: u32,
    /// Local data share of a work-group, in KiB.
    pub lds_size_in_kb: u32,
    /// Global data share, in KiB.
    pub gds_size_in_kb: u32,
    /// Lanes of a wave.
    pub wave_front_size: u32,
    /// Shader arrays of the whole node.
    pub array_count: u32,
    /// Shader engines (`NumShaderBanks`): shader arrays by arrays of an engine.
    pub shader_engines: u32,
    /// Shader arrays of an engine (`NumArrays`).
    pub simd_arrays_per_engine: u32,
    /// Compute units of a shader array.
    pub cu_per_simd_array: u32,
    /// SIMD units of a compute unit.
    pub simd_per_cu: u32,
    /// Scratch slots of a compute unit.
    pub max_slots_scratch_cu: u32,
    /// What the GPU is, whatever an override says. 0.0.0 where nobody knows.
    pub gfx_version: GfxVersion,
    /// What an override says it is.
    pub gfx_override: Option<GfxVersion>,
    /// Version of the compute microcode (`EngineId.uCode` is its low 10 bits).
    pub fw_version: u32,
    /// Version of the SDMA microcode (`uCodeEngineVersions`: its low 10 bits).
    pub sdma_fw_version: u32,
    /// PCI vendor.
    pub vendor_id: u32,
    /// PCI device.
    pub device_id: u32,
    /// PCI bus << 8 | device and function, with the partition number in it. Not
    /// unique.
    pub location_id: u32,
    /// PCI domain.
    pub domain: u32,
    /// Bytes; 0 from most kernels, see the banks.
    pub local_mem_size: u64,
    /// MHz.
    pub max_engine_clk_fcompute: u32,
    /// MHz.
    pub max_engine_clk_ccompute: u32,
    /// Minor of the render node, 0 without a GPU.
    pub drm_render_minor: u32,
    /// Product name of the GPU, or what the CPU calls itself.
    pub marketing_name: Name,
    /// Name of the chip ("Aldebaran") or `GFX` and six digits; the CPU's own
    /// name for a node without a GPU.
    pub amd_name: Name,
    /// GPUs with one number other than 0 are connected by xGMI.
    pub hive_id: u64,
    /// PCIe SDMA engines.
    pub num_sdma_engines: u32,
    /// xGMI SDMA engines.
    pub num_sdma_xgmi_engines: u32,
    /// Queues of an SDMA engine (C: one byte).
    pub num_sdma_queues_per_engine: u32,
    /// Compute queues (C: one byte).
    pub num_cp_queues: u32,
    /// Global wave sync resources (C: one byte).
    pub num_gws: u32,
    /// The GPU shares its memory with the CPU.
    pub integrated: bool,
    /// Serial number of the GPU, 0 without one.
    pub unique_id: u64,
    /// Vector registers of a compute unit, in bytes.
    pub vgpr_size_per_cu: u32,
    /// Scalar registers of a compute unit, in bytes.
    pub sgpr_size_per_cu: u32,
    /// Compute dies, at least 1 for a GPU.
    pub num_xcc: u32,
    /// Chip family (`AMDGPU_FAMILY_*`), 0 where nobody asked.
    pub family_id: u32,
    /// Bytes of a queue's save area on one compute die; 0 from older kernels.
    pub cwsr_size: u32,
    /// Bytes of a queue's control stack on one compute die; 0 from older kernels.
    pub ctl_stack_size: u32,
    /// Frequency of the GPU's time counter, in kHz; 0 where nobody asked.
    pub wall_clock_khz: u64,
    /// Handles can be shared over UALink.
    pub fabric: bool,
    /// The kernel's memory banks.
    pub banks: Vec<MemoryBank>,
    /// The caches.
    pub caches: Vec<Cache>,
    /// Links from this node: the kernel's, then synthetic ones.
    pub links: Vec<IoLink>,
}

impl Node {
    /// Whether the node has a GPU.
    #[must_use]
    pub const fn is_gpu(&self) -> bool {
        self.gpu_id != 0
    }

    /// What programs are to take the GPU for: the override, else the truth.
    #[must_use]
    pub fn effective_gfx_version(&self) -> GfxVersion {
        self.gfx_override.unwrap_or(self.gfx_version)
    }
}
