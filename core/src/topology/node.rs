//! Nodes.

use alloc::vec::Vec;

use super::properties::{Properties, property_keys};
use super::{Cache, GfxVersion, IoLink, MemoryBank, Name};

property_keys! {
    CPU_CORES_COUNT = "cpu_cores_count",
    SIMD_COUNT = "simd_count",
    MEM_BANKS_COUNT = "mem_banks_count",
    CACHES_COUNT = "caches_count",
    IO_LINKS_COUNT = "io_links_count",
    P2P_LINKS_COUNT = "p2p_links_count",
    CPU_CORE_ID_BASE = "cpu_core_id_base",
    SIMD_ID_BASE = "simd_id_base",
    MAX_WAVES_PER_SIMD = "max_waves_per_simd",
    LDS_SIZE_IN_KB = "lds_size_in_kb",
    GDS_SIZE_IN_KB = "gds_size_in_kb",
    NUM_GWS = "num_gws",
    WAVE_FRONT_SIZE = "wave_front_size",
    ARRAY_COUNT = "array_count",
    SIMD_ARRAYS_PER_ENGINE = "simd_arrays_per_engine",
    CU_PER_SIMD_ARRAY = "cu_per_simd_array",
    SIMD_PER_CU = "simd_per_cu",
    MAX_SLOTS_SCRATCH_CU = "max_slots_scratch_cu",
    GFX_TARGET_VERSION = "gfx_target_version",
    VENDOR_ID = "vendor_id",
    DEVICE_ID = "device_id",
    LOCATION_ID = "location_id",
    DOMAIN = "domain",
    DRM_RENDER_MINOR = "drm_render_minor",
    HIVE_ID = "hive_id",
    NUM_SDMA_ENGINES = "num_sdma_engines",
    NUM_SDMA_XGMI_ENGINES = "num_sdma_xgmi_engines",
    NUM_SDMA_QUEUES_PER_ENGINE = "num_sdma_queues_per_engine",
    NUM_CP_QUEUES = "num_cp_queues",
    CWSR_SIZE = "cwsr_size",
    CTL_STACK_SIZE = "ctl_stack_size",
    MAX_ENGINE_CLK_FCOMPUTE = "max_engine_clk_fcompute",
    LOCAL_MEM_SIZE = "local_mem_size",
    FW_VERSION = "fw_version",
    CAPABILITY = "capability",
    CAPABILITY2 = "capability2",
    DEBUG_PROP = "debug_prop",
    SDMA_FW_VERSION = "sdma_fw_version",
    UNIQUE_ID = "unique_id",
    NUM_XCC = "num_xcc",
    MAX_ENGINE_CLK_CCOMPUTE = "max_engine_clk_ccompute",
    FAMILY_ID = "family_id",
}

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

/// What a node's `properties` says about the rest of the node's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Contents {
    pub(super) banks: u32,
    pub(super) caches: u32,
    pub(super) io_links: u32,
    /// `None` from kernels that know no such links.
    pub(super) p2p_links: Option<u32>,
}

impl Node {
    /// Reads a node's `properties`.
    pub(super) fn from_properties(sysfs_node: u32, content: &[u8]) -> (Node, Contents) {
        let text = Properties::read(content, &KEYS, in_order, |_, _| {});
        let count = |place| u32::try_from(text.long(place)).unwrap_or(u32::MAX);
        let contents = Contents {
            banks: count(key::MEM_BANKS_COUNT),
            caches: count(key::CACHES_COUNT),
            io_links: count(key::IO_LINKS_COUNT),
            p2p_links: text.given(key::P2P_LINKS_COUNT).map(|_| count(key::P2P_LINKS_COUNT)),
        };
        let array_count = text.word(key::ARRAY_COUNT);
        let simd_arrays_per_engine = text.word(key::SIMD_ARRAYS_PER_ENGINE);
        // A minor is a signed number in the C ABI; a negative one does not parse.
        let drm_render_minor = i32::try_from(text.long(key::DRM_RENDER_MINOR)).unwrap_or(0);
        let node = Node {
            sysfs_node,
            cpu_cores_count: text.word(key::CPU_CORES_COUNT),
            simd_count: text.word(key::SIMD_COUNT),
            cpu_core_id_base: text.word(key::CPU_CORE_ID_BASE),
            simd_id_base: text.word(key::SIMD_ID_BASE),
            capability: text.word(key::CAPABILITY),
            capability2: text.word(key::CAPABILITY2),
            debug_prop: text.long(key::DEBUG_PROP),
            max_waves_per_simd: text.word(key::MAX_WAVES_PER_SIMD),
            lds_size_in_kb: text.word(key::LDS_SIZE_IN_KB),
            gds_size_in_kb: text.word(key::GDS_SIZE_IN_KB),
            wave_front_size: text.word(key::WAVE_FRONT_SIZE),
            array_count,
            shader_engines: array_count.checked_div(simd_arrays_per_engine).unwrap_or(0),
            simd_arrays_per_engine,
            cu_per_simd_array: text.word(key::CU_PER_SIMD_ARRAY),
            simd_per_cu: text.word(key::SIMD_PER_CU),
            max_slots_scratch_cu: text.word(key::MAX_SLOTS_SCRATCH_CU),
            gfx_version: GfxVersion::from_target_version(text.word(key::GFX_TARGET_VERSION)),
            fw_version: text.word(key::FW_VERSION),
            sdma_fw_version: text.word(key::SDMA_FW_VERSION),
            vendor_id: text.word(key::VENDOR_ID),
            device_id: text.word(key::DEVICE_ID),
            location_id: text.word(key::LOCATION_ID),
            domain: text.word(key::DOMAIN),
            local_mem_size: text.long(key::LOCAL_MEM_SIZE),
            max_engine_clk_fcompute: text.word(key::MAX_ENGINE_CLK_FCOMPUTE),
            max_engine_clk_ccompute: text.word(key::MAX_ENGINE_CLK_CCOMPUTE),
            drm_render_minor: drm_render_minor.unsigned_abs(),
            hive_id: text.long(key::HIVE_ID),
            num_sdma_engines: text.word(key::NUM_SDMA_ENGINES),
            num_sdma_xgmi_engines: text.word(key::NUM_SDMA_XGMI_ENGINES),
            num_sdma_queues_per_engine: text.word(key::NUM_SDMA_QUEUES_PER_ENGINE),
            num_cp_queues: text.word(key::NUM_CP_QUEUES),
            num_gws: text.word(key::NUM_GWS),
            unique_id: text.long(key::UNIQUE_ID),
            num_xcc: text.word(key::NUM_XCC),
            family_id: text.word(key::FAMILY_ID),
            cwsr_size: text.word(key::CWSR_SIZE),
            ctl_stack_size: text.word(key::CTL_STACK_SIZE),
            ..Node::default()
        };
        (node, contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use core::fmt::Write;

    #[test]
    fn every_key_has_its_place() {
        let mut content = String::new();
        for (place, key) in KEYS.iter().enumerate() {
            let key = core::str::from_utf8(key).unwrap();
            writeln!(content, "{key} {}", 1000 + place).unwrap();
        }
        let (node, contents) = Node::from_properties(7, content.as_bytes());
        let expected = |place: usize| 1000 + place as u32;
        assert_eq!(node.sysfs_node, 7);
        assert_eq!(node.cpu_cores_count, expected(key::CPU_CORES_COUNT));
        assert_eq!(node.simd_count, expected(key::SIMD_COUNT));
        assert_eq!(contents.banks, expected(key::MEM_BANKS_COUNT));
        assert_eq!(contents.caches, expected(key::CACHES_COUNT));
        assert_eq!(contents.io_links, expected(key::IO_LINKS_COUNT));
        assert_eq!(contents.p2p_links, Some(expected(key::P2P_LINKS_COUNT)));
        assert_eq!(node.cpu_core_id_base, expected(key::CPU_CORE_ID_BASE));
        assert_eq!(node.simd_id_base, expected(key::SIMD_ID_BASE));
        assert_eq!(node.num_gws, expected(key::NUM_GWS));
        assert_eq!(node.drm_render_minor, expected(key::DRM_RENDER_MINOR));
        assert_eq!(node.hive_id, u64::from(expected(key::HIVE_ID)));
        assert_eq!(node.capability, expected(key::CAPABILITY));
        assert_eq!(node.capability2, expected(key::CAPABILITY2));
        assert_eq!(node.debug_prop, u64::from(expected(key::DEBUG_PROP)));
        assert_eq!(node.num_xcc, expected(key::NUM_XCC));
        assert_eq!(node.cwsr_size, expected(key::CWSR_SIZE));
        assert_eq!(node.ctl_stack_size, expected(key::CTL_STACK_SIZE));
        assert_eq!(node.unique_id, u64::from(expected(key::UNIQUE_ID)));
        assert_eq!(node.family_id, expected(key::FAMILY_ID));
    }

    #[test]
    fn engines_are_arrays_by_arrays_of_an_engine() {
        let engines = |text: &[u8]| Node::from_properties(0, text).0.shader_engines;
        assert_eq!(engines(b"array_count 8\nsimd_arrays_per_engine 2\ncu_per_simd_array 8\n"), 4);
        assert_eq!(engines(b"array_count 8\nsimd_arrays_per_engine 0\n"), 0);
        assert_eq!(engines(b"array_count 8\n"), 0);
    }

    #[test]
    fn no_minor_is_no_minor() {
        let minor = |text: &[u8]| Node::from_properties(0, text).0.drm_render_minor;
        assert_eq!(minor(b"drm_render_minor 291\n"), 291);
        assert_eq!(minor(b"simd_count 4\n"), 0);
        assert_eq!(minor(b"drm_render_minor 0\n"), 0);
        assert_eq!(minor(b"drm_render_minor -1\n"), 0);
        assert_eq!(minor(b"drm_render_minor 4294967295\n"), 0);
    }

    #[test]
    fn counts_beyond_a_word_do_not_wrap() {
        let (_, contents) = Node::from_properties(0, b"io_links_count 4294967297\n");
        assert_eq!(contents.io_links, u32::MAX);
        assert_eq!(contents.p2p_links, None);
    }
}
