//! The hardware as the compute driver sees it: nodes, their memory, caches and links.
//!
//! Field names follow the sysfs keys of kernel-rules section 5; the printing is
//! in `sysfs/nodes.rs`. Sizes are bytes and clocks MHz unless a name says more.

use alloc::string::String;
use alloc::vec::Vec;

/// All nodes of a machine, in node order, and the firmware's names for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    /// `platform_oem` of `system_properties`.
    pub platform_oem: u64,
    /// `platform_id`.
    pub platform_id: u64,
    /// `platform_rev`.
    pub platform_rev: u64,
    /// The nodes; a node's number is its place here.
    pub nodes: Vec<Node>,
}

/// One node: a socket, a GPU, or (on old APUs) both.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// The CPU part.
    pub cpu: Option<Cpu>,
    /// The GPU part.
    pub gpu: Option<Gpu>,
    /// `mem_banks/`.
    pub banks: Vec<Bank>,
    /// `caches/`.
    pub caches: Vec<Cache>,
    /// `io_links/`.
    pub io_links: Vec<Link>,
    /// `p2p_links/`.
    pub p2p_links: Vec<Link>,
}

/// The CPU part of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    /// `cpu_cores_count`: logical processors of the node.
    pub cores: u32,
    /// `cpu_core_id_base`: APIC id of the first one.
    pub first_apic_id: u32,
    /// `model name` of `/proc/cpuinfo`.
    pub model_name: String,
    /// `vendor_id` of `/proc/cpuinfo`.
    pub vendor: String,
    /// `max_engine_clk_ccompute`, the same on every node; 0 without cpufreq.
    pub clock: u32,
}

/// The GPU part of a node, one for each partition of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gpu {
    /// `gpu_id`, unique in the machine and not 0.
    pub id: u32,
    /// `name`.
    pub name: String,
    /// The keys of the `properties` file.
    pub properties: GpuProperties,
    /// All memory of the partition.
    pub vram: u64,
    /// The part of it that the CPU can reach through the BAR.
    pub visible_vram: u64,
    /// What of system memory the device may use.
    pub gtt: u64,
    /// The GPU is part of the CPU and its VRAM a carve-out.
    pub apu: bool,
    /// The chip can do SVM (device-private memory registered, or APU).
    pub svm_capable: bool,
    /// Bytes of the VRAM that no buffer gets, though sysfs tells of them: 0 unless it is
    /// broken.
    pub missing_vram: u64,
    /// What sysfs tells of the save area, where that is not what the driver wants.
    pub published_save_area: Option<SaveArea>,
    /// Numbers that only the render node tells.
    pub render: RenderNumbers,
}

impl Gpu {
    /// `drm_render_minor`: the number in `/dev/dri/renderD<minor>`.
    #[must_use]
    pub fn render_minor(&self) -> u32 {
        self.properties.drm_render_minor
    }

    /// Whether the chip is gfx9 or later: its apertures and doorbells differ.
    #[must_use]
    pub fn is_gfx9_or_later(&self) -> bool {
        self.properties.gfx_target_version >= 90_000
    }

    /// Whether it drives displays: the accelerators (gfx908, gfx90a, gfx94x,
    /// gfx950) do not.
    #[must_use]
    pub fn has_display(&self) -> bool {
        !matches!(self.properties.gfx_target_version, 90_008 | 90_010 | 90_400..=90_500)
    }

    /// Whether firmware schedules its queues (MES), which it does since gfx11.
    #[must_use]
    pub fn is_scheduled_by_mes(&self) -> bool {
        self.properties.gfx_target_version >= 110_000
    }

    /// HSA_CAP_DOORBELL_TYPE: 0 and 1 are doorbells of 32 bits, 2 of 64.
    #[must_use]
    pub fn doorbell_type(&self) -> u32 {
        if self.is_gfx9_or_later() { 2 } else { self.properties.capability >> 12 & 3 }
    }

    /// Whether its doorbells are laid out as Vega 10's: also Vega 12 and the APUs of gfx9.
    #[must_use]
    pub fn is_like_vega10(&self) -> bool {
        matches!(self.properties.gfx_target_version, 90_000 | 90_002 | 90_004 | 90_009 | 90_012)
    }

    /// The hardware queues of each copy engine: of SDMA 6 and later the driver keeps
    /// two for itself, which `num_sdma_queues_per_engine` does not count.
    #[must_use]
    pub fn sdma_queues(&self) -> SdmaQueues {
        let shown = self.properties.num_sdma_queues_per_engine;
        let reserved = if self.properties.gfx_target_version >= 110_000 { 2 } else { 0 };
        SdmaQueues { all: shown + reserved, reserved }
    }

    /// One past the highest address of a VM.
    #[must_use]
    pub fn address_space_end(&self) -> u64 {
        if self.is_gfx9_or_later() { 1 << 48 } else { 1 << 40 }
    }

    /// Whether the CPU reaches all of the VRAM.
    #[must_use]
    pub fn has_large_bar(&self) -> bool {
        self.vram > 0 && self.visible_vram >= self.vram
    }

    /// Whether both are partitions of one device: their location differs in the
    /// partition number alone.
    #[must_use]
    pub fn is_same_device(&self, other: &Gpu) -> bool {
        let place = |gpu: &Gpu| (gpu.properties.domain, gpu.properties.location_id & !7);
        place(self) == place(other)
    }

    /// Bytes of the doorbell slice of one process: kernel-rules section 3.
    #[must_use]
    pub fn doorbell_slice(&self) -> u64 {
        if self.is_gfx9_or_later() { 8192 } else { 4096 }
    }
}

/// Hardware queues of one copy engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SdmaQueues {
    /// All of them.
    pub all: u32,
    /// The first ones, which the driver keeps.
    pub reserved: u32,
}

/// The keys of a GPU node's `properties`, without those that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names are the sysfs keys of kernel-rules section 5")]
pub struct GpuProperties {
    pub simd_count: u32,
    pub simd_id_base: u32,
    pub max_waves_per_simd: u32,
    pub lds_size_in_kb: u32,
    pub gds_size_in_kb: u32,
    pub num_gws: u32,
    pub wave_front_size: u32,
    pub array_count: u32,
    pub simd_arrays_per_engine: u32,
    pub cu_per_simd_array: u32,
    pub simd_per_cu: u32,
    pub max_slots_scratch_cu: u32,
    pub gfx_target_version: u32,
    pub vendor_id: u32,
    pub device_id: u32,
    pub location_id: u32,
    pub domain: u32,
    pub drm_render_minor: u32,
    pub hive_id: u64,
    pub num_sdma_engines: u32,
    pub num_sdma_xgmi_engines: u32,
    pub num_sdma_queues_per_engine: u32,
    pub num_cp_queues: u32,
    pub max_engine_clk_fcompute: u32,
    pub local_mem_size: u64,
    pub fw_version: u32,
    pub capability: u32,
    pub capability2: u32,
    pub debug_prop: u64,
    pub sdma_fw_version: u32,
    pub unique_id: u64,
    pub num_xcc: u32,
}

impl GpuProperties {
    /// Whether queues can be stopped with their waves saved (CWSR): since Carrizo.
    #[must_use]
    pub fn saves_waves(&self) -> bool {
        self.gfx_target_version >= 80_001
    }

    /// The least bytes of an end-of-pipe buffer: kernel-rules section 2, CREATE_QUEUE.
    #[must_use]
    pub fn least_eop_size(&self) -> u32 {
        match self.gfx_target_version {
            80_002 => 0x8000,
            80_000.. => 0x1000,
            _ => 0,
        }
    }

    /// Bytes of the context save area of one XCC and of the control stack in it,
    /// `cwsr_size` and `ctl_stack_size`: kernel-rules section 2, "Sizes, per node".
    #[must_use]
    pub fn save_area(&self, of_7_2: bool) -> SaveArea {
        let v = self.gfx_target_version;
        if v < 80_001 || self.simd_per_cu == 0 {
            return SaveArea::default();
        }
        let xcc = u64::from(self.num_xcc.max(1));
        let cu = u64::from(self.simd_count / self.simd_per_cu) / xcc;
        let engines =
            u64::from(self.array_count) / xcc / u64::from(self.simd_arrays_per_engine.max(1));
        let of_120500 = of_7_2 && (v == 120_500 || v == 120_501);
        let waves = if v < 100_100 {
            (cu * 40).min(engines * 512)
        } else if of_120500 {
            cu * 64
        } else {
            cu * 32
        };
        let per_wave = if v >= 100_100 { 12 } else { 8 };
        let mut control = page_up(40 + waves * per_wave + 8);
        if v / 10_000 == 10 {
            control = control.min(0x7000);
        }
        let vector = match v {
            90_008 | 90_010 => 0x8_0000,
            90_402 => 0x8_0000,
            90_400..90_500 if !of_7_2 => 0x8_0000,
            90_500 | 120_500 | 120_501 if of_7_2 => 0x8_0000,
            110_000 | 110_001 | 110_501 | 120_000 | 120_001 => 0x6_0000,
            _ => 0x4_0000,
        };
        let (scalar, hardware) = if of_120500 { (0x8000, 0x8000) } else { (0x4000, 0x1000) };
        let lds = if of_7_2 && matches!(v, 90_500 | 120_500 | 120_501) {
            u64::from(self.lds_size_in_kb) * 1024
        } else {
            0x1_0000
        };
        let groups = page_up(cu * (vector + scalar + lds + hardware));
        let total = control + groups;
        SaveArea {
            cwsr_size: if of_7_2 { page_up(total) } else { total },
            ctl_stack_size: control,
            debug_size: (waves * 32).next_multiple_of(64),
        }
    }
}

/// Sizes of the context save area of one XCC, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SaveArea {
    /// Control stack and wave state.
    pub cwsr_size: u64,
    /// The control stack alone.
    pub ctl_stack_size: u64,
    /// What the debugger needs behind `cwsr_size`; not in sysfs.
    pub debug_size: u64,
}

fn page_up(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}

/// What AMDGPU_INFO and GET_TILE_CONFIG tell and sysfs does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RenderNumbers {
    /// AMDGPU_FAMILY_*.
    pub family: u32,
    /// PCI revision.
    pub pci_revision: u32,
    /// Revision within the family.
    pub external_revision: u32,
    /// The GPU counter's frequency in kHz.
    pub counter_khz: u32,
    /// Kind of memory, AMDGPU_VRAM_TYPE_*.
    pub vram_type: u32,
    /// Memory bus width in bits.
    pub vram_bits: u32,
    /// Highest memory clock in MHz.
    pub memory_clock: u32,
    /// GB_ADDR_CONFIG.
    pub gb_addr_config: u32,
    /// PCI subsystem vendor.
    pub subsystem_vendor: u32,
    /// PCI subsystem device.
    pub subsystem_device: u32,
}

/// A memory bank. Heap types: 0 system, 1 public VRAM, 2 private VRAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names are the sysfs keys of kernel-rules section 5")]
pub struct Bank {
    pub heap_type: u32,
    pub size_in_bytes: u64,
    pub flags: u32,
    pub width: u32,
    pub mem_clk_max: u32,
}

/// A cache.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names are the sysfs keys of kernel-rules section 5")]
pub struct Cache {
    pub processor_id_low: u32,
    pub level: u32,
    /// KiB.
    pub size: u32,
    pub cache_line_size: u32,
    pub cache_lines_per_tag: u32,
    pub association: u32,
    pub latency: u32,
    pub kind: u32,
    /// One entry for each compute unit that could share it, 1 for those that do.
    pub sibling_map: Vec<u8>,
}

/// A link between two nodes. Types: 1 HyperTransport, 2 PCIe, 11 XGMI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names are the sysfs keys of kernel-rules section 5")]
pub struct Link {
    pub kind: u32,
    pub node_from: u32,
    pub node_to: u32,
    pub weight: u32,
    pub min_bandwidth: u32,
    pub max_bandwidth: u32,
    pub recommended_transfer_size: u32,
    pub recommended_sdma_engine_id_mask: u32,
    pub flags: u32,
}

impl Link {
    /// HyperTransport, which also stands for any link between sockets.
    pub const HYPERTRANSPORT: u32 = 1;
    /// PCI Express.
    pub const PCIE: u32 = 2;
    /// XGMI.
    pub const XGMI: u32 = 11;
}

impl Topology {
    /// The GPU nodes with their node numbers, in node order.
    pub fn gpus(&self) -> impl Iterator<Item = (usize, &Gpu)> {
        self.nodes.iter().enumerate().filter_map(|(node, n)| Some((node, n.gpu.as_ref()?)))
    }

    /// The GPU with this id.
    #[must_use]
    pub fn gpu(&self, id: u32) -> Option<&Gpu> {
        self.gpus().map(|(_, gpu)| gpu).find(|gpu| gpu.id == id)
    }

    /// The GPU behind this render node.
    #[must_use]
    pub fn gpu_of_render(&self, minor: u32) -> Option<&Gpu> {
        self.gpus().map(|(_, gpu)| gpu).find(|gpu| gpu.render_minor() == minor)
    }

    /// Takes a node away, as hot-unplug does: later nodes move down, links to it vanish.
    pub(crate) fn remove_node(&mut self, node: usize) {
        if node >= self.nodes.len() {
            return;
        }
        self.nodes.remove(node);
        let gone = node as u32;
        for n in &mut self.nodes {
            for links in [&mut n.io_links, &mut n.p2p_links] {
                links.retain(|link| link.node_from != gone && link.node_to != gone);
                for link in links {
                    link.node_from -= u32::from(link.node_from > gone);
                    link.node_to -= u32::from(link.node_to > gone);
                }
            }
        }
    }

    /// Gives every GPU without an id one as the driver would: a 16-bit hash of
    /// where and how big it is, bumped until unique, never 0 (kernel-rules section 5).
    pub(crate) fn assign_gpu_ids(&mut self) {
        for node in 0..self.nodes.len() {
            let Some(gpu) = self.nodes.get(node).and_then(|n| n.gpu.as_ref()) else { continue };
            if gpu.id != 0 {
                continue;
            }
            let seed = [
                u64::from(gpu.properties.location_id),
                u64::from(gpu.properties.domain),
                u64::from(gpu.properties.device_id),
                u64::from(gpu.render.subsystem_device),
                gpu.vram,
                u64::from(gpu.properties.num_xcc),
            ];
            let mut id = fold_to_16_bits(&seed);
            while id == 0 || self.gpus().any(|(_, other)| other.id == id) {
                id = (id + 1) & 0xffff;
            }
            if let Some(gpu) = self.nodes.get_mut(node).and_then(|n| n.gpu.as_mut()) {
                gpu.id = id;
            }
        }
    }
}

fn fold_to_16_bits(words: &[u64]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    (hash ^ hash >> 16) & 0xffff
}

#[cfg(test)]
mod tests {
    use super::{Gpu, GpuProperties, Link, Node, Topology};

    fn gpu(location_id: u32) -> Node {
        let properties = GpuProperties { location_id, ..GpuProperties::default() };
        Node { gpu: Some(Gpu { properties, ..Gpu::default() }), ..Node::default() }
    }

    #[test]
    fn gpu_ids_are_unique_16_bit_and_not_zero() {
        let mut topology = Topology {
            nodes: (0..64).map(|n| gpu(if n < 32 { n } else { 7 })).collect(),
            ..Topology::default()
        };
        topology.assign_gpu_ids();
        let mut ids: alloc::vec::Vec<u32> = topology.gpus().map(|(_, gpu)| gpu.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 64);
        assert!(ids.iter().all(|&id| id != 0 && id <= 0xffff));
    }

    #[test]
    fn node_numbers_shift_when_a_node_goes() {
        let link = |node_from, node_to| Link { node_from, node_to, ..Link::default() };
        let mut topology = Topology { nodes: (0..3).map(gpu).collect(), ..Topology::default() };
        topology.nodes[0].io_links = [link(0, 1), link(0, 2)].into();
        topology.nodes[2].io_links = [link(2, 0), link(2, 1)].into();
        topology.remove_node(1);
        assert_eq!(topology.nodes[0].io_links, [link(0, 1)]);
        assert_eq!(topology.nodes[1].io_links, [link(1, 0)]);
    }

    fn save_area(gfx_target_version: u32, numbers: [u32; 5], of_7_2: bool) -> [u64; 3] {
        let [simd_count, simd_per_cu, array_count, simd_arrays_per_engine, num_xcc] = numbers;
        let area = GpuProperties {
            gfx_target_version,
            simd_count,
            simd_per_cu,
            array_count,
            simd_arrays_per_engine,
            num_xcc,
            lds_size_in_kb: 64,
            ..GpuProperties::default()
        }
        .save_area(of_7_2);
        [area.cwsr_size, area.ctl_stack_size, area.debug_size]
    }

    #[test]
    fn save_area_waves_are_limited_by_engines_on_gfx90a() {
        // 104 CUs ask for 4160 waves, 8 engines allow 4096.
        let control = (40 + 4096 * 8 + 8_u64).next_multiple_of(4096);
        let groups = 104 * (0x8_0000 + 0x4000 + 0x1_0000 + 0x1000);
        let expected = [control + groups, control, 4096 * 32];
        assert_eq!(save_area(90_010, [416, 4, 8, 1, 1], false), expected);
    }

    #[test]
    fn save_area_control_stack_is_capped_on_gfx10() {
        assert_eq!(save_area(100_300, [160, 2, 8, 2, 1], false)[1], 0x7000);
        assert_eq!(
            save_area(110_000, [192, 2, 12, 2, 1], false)[1],
            (48 + 96 * 32 * 12_u64).next_multiple_of(4096)
        );
    }

    #[test]
    fn save_area_is_per_xcc() {
        assert_eq!(
            save_area(90_402, [1216, 4, 32, 1, 8], false),
            save_area(90_402, [152, 4, 4, 1, 1], false)
        );
    }

    #[test]
    fn old_chips_have_no_save_area() {
        assert_eq!(save_area(80_000, [64, 4, 4, 1, 1], false), [0; 3]);
    }
}
