//! From a chip and a few counts to the nodes of a machine.

use alloc::borrow::ToOwned;
use alloc::vec;
use alloc::vec::Vec;

use super::ProfileError;
use super::chips::{Chip, Fabric};
use crate::kernel::KernelProfile;
use crate::topology::{Bank, Cache, Cpu, Gpu, GpuProperties, Link, Node, RenderNumbers, Topology};

/// What a profile's text asks for.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub parts: Vec<Part>,
    pub sockets: u32,
    /// Logical processors of a socket.
    pub cores: u32,
    /// Bytes of a socket.
    pub ram: u64,
}

/// Devices of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub chip: Chip,
    pub devices: u32,
    /// Bytes of a device.
    pub vram: u64,
    /// Bytes of it that the CPU reaches; all when not given.
    pub visible_vram: Option<u64>,
    /// Partitions of a device.
    pub partitions: u32,
    pub xgmi: bool,
}

/// A GPU's place in the machine.
#[derive(Debug, Clone, Copy)]
struct Slot {
    part: Part,
    /// The hive, counted over the machine.
    hive: Option<u32>,
    /// The device, counted over the machine.
    device: u32,
    partition: u32,
}

impl Part {
    pub(super) fn new(chip: Chip, devices: u32) -> Part {
        Part { chip, devices, vram: chip.vram, visible_vram: None, partitions: 1, xgmi: true }
    }

    pub(super) fn dies(&self) -> u32 {
        self.chip.dies
    }

    /// kfd_topology.c: all of the VRAM is visible.
    fn has_large_bar(&self) -> bool {
        self.visible_vram.is_none_or(|bar| bar >= self.vram)
    }

    /// A bit for each SDMA engine that serves PCIe.
    fn pcie_engines(&self) -> u32 {
        (1 << self.chip.pcie_sdma_engines) - 1
    }
}

/// The driver numbers compute units of discrete GPUs from here.
const FIRST_SIMD_ID: u32 = 0x8000_1000;
/// The first render node's minor.
const FIRST_RENDER_MINOR: u32 = 128;
/// kfd_crat.h: a PCIe link, and one XGMI hop.
const PCIE_WEIGHT: u32 = 20;
const XGMI_WEIGHT: u32 = 15;
/// Between partitions of one device.
const SAME_DEVICE_WEIGHT: u32 = 13;
const SAME_DEVICE_BANDWIDTH: u32 = 819_200;
/// One lane of the first generation, in MB/s.
const PCIE_LEAST_BANDWIDTH: u32 = 312;
/// The NUMA distance between two sockets.
const SOCKET_WEIGHT: u32 = 32;
/// kfd_crat.h: bit 0 enabled, bit 1 not coherent.
const ENABLED: u32 = 1;
const ENABLED_NON_COHERENT: u32 = 3;

impl Plan {
    pub(super) fn new(sockets: u32, cores: u32, has_gpus: bool) -> Plan {
        let ram = if has_gpus { 64 << 30 } else { 16 << 30 };
        Plan { parts: Vec::new(), sockets, cores, ram }
    }

    pub(super) fn build(&self, kernel: KernelProfile) -> Result<Topology, ProfileError> {
        let mut topology = Topology {
            platform_oem: 2_314_885_531_408_816_194,
            platform_id: 35_542_066_745_154,
            platform_rev: 1,
            nodes: Vec::new(),
        };
        if self.sockets * self.cores > 4096 {
            return Err(ProfileError::Impossible("at most 4096 processors"));
        }
        for socket in 0..self.sockets {
            topology.nodes.push(self.socket(socket));
        }
        let slots = self.slots();
        // kfd_topology.c: a process has at most 64 records, one for each GPU.
        if slots.len() > 128 {
            return Err(ProfileError::Impossible("at most 128 GPUs have a render node"));
        }
        for (slot, index) in slots.iter().zip(0..) {
            let chip = &slot.part.chip;
            if chip.compute_units > chip.array_count * chip.cu_per_simd_array {
                return Err(ProfileError::Impossible("the chip has fewer compute units"));
            }
            if slot.part.vram / u64::from(slot.part.partitions) < 1 << 28 {
                return Err(ProfileError::Impossible("a GPU has at least 256 MiB"));
            }
            let first_simd = topology.gpus().last().map_or(FIRST_SIMD_ID, |(_, gpu)| {
                let p = &gpu.properties;
                p.simd_id_base + p.array_count * p.cu_per_simd_array
            });
            topology.nodes.push(self.gpu(slot, kernel, index, first_simd));
        }
        topology.assign_gpu_ids();
        let links: Vec<_> = (0..topology.nodes.len() as u32)
            .map(|node| {
                let io_links = self.io_links(&slots, &topology, node);
                (io_links, self.p2p_links(&slots, kernel, node))
            })
            .collect();
        for (node, (io_links, p2p_links)) in topology.nodes.iter_mut().zip(links) {
            node.io_links = io_links;
            node.p2p_links = p2p_links;
        }
        Ok(topology)
    }

    /// The GPUs in node order.
    fn slots(&self) -> Vec<Slot> {
        let mut slots = Vec::new();
        let (mut first_device, mut first_hive) = (0, 0);
        for part in &self.parts {
            let size = match part.chip.fabric {
                Fabric::Hives(size) if part.xgmi => size as u32,
                _ => 0,
            };
            for device in 0..part.devices {
                let hive = device.checked_div(size).map(|hive| first_hive + hive);
                for partition in 0..part.partitions {
                    let device = first_device + device;
                    slots.push(Slot { part: *part, hive, device, partition });
                }
            }
            first_device += part.devices;
            first_hive += part.devices.checked_div(size).map_or(0, |hives| hives + 1);
        }
        slots
    }

    fn socket(&self, socket: u32) -> Node {
        // APIC ids leave room for a power of two of processors in each socket.
        let stride = self.cores.next_power_of_two();
        Node {
            cpu: Some(Cpu {
                cores: self.cores,
                first_apic_id: socket * stride,
                model_name: if self.parts.iter().any(|part| part.chip.apu) {
                    "AMD Ryzen 7 7840U w/ Radeon 780M Graphics".to_owned()
                } else {
                    "AMD EPYC 9654 96-Core Processor".to_owned()
                },
                vendor: "AuthenticAMD".to_owned(),
                clock: 3700,
            }),
            banks: vec![Bank { size_in_bytes: self.ram, ..Bank::default() }],
            ..Node::default()
        }
    }

    fn gpu(&self, slot: &Slot, kernel: KernelProfile, index: u32, first_simd: u32) -> Node {
        let Slot { part, hive, device, partition } = *slot;
        let chip = &part.chip;
        let xcc = chip.dies / part.partitions;
        let arrays = chip.array_count * xcc;
        let engines = chip.sdma_engines * chip.dies / part.partitions;
        let pcie_engines = chip.pcie_sdma_engines.min(engines);
        let vram = part.vram / u64::from(part.partitions);
        let visible_vram = match part.visible_vram {
            Some(bar) => (bar / u64::from(part.partitions)).min(vram),
            None => vram,
        };
        // One device per bus; the buses are those of a common eight-GPU board.
        let bus = [0x05, 0x27, 0x47, 0x65, 0x85, 0xa7, 0xc7, 0xe5]
            .get((device % 8) as usize)
            .copied()
            .unwrap_or(0);
        let properties = GpuProperties {
            simd_count: chip.compute_units * xcc * chip.simd_per_cu,
            simd_id_base: first_simd,
            max_waves_per_simd: chip.max_waves_per_simd,
            lds_size_in_kb: 64,
            gds_size_in_kb: 0,
            num_gws: chip.num_gws,
            wave_front_size: chip.wave_front_size,
            array_count: arrays,
            simd_arrays_per_engine: chip.simd_arrays_per_engine,
            cu_per_simd_array: chip.cu_per_simd_array,
            simd_per_cu: chip.simd_per_cu,
            max_slots_scratch_cu: 32,
            gfx_target_version: chip.gfx_target_version,
            vendor_id: 0x1002,
            device_id: chip.device_id,
            location_id: bus << 8 | partition,
            domain: device / 8,
            drm_render_minor: FIRST_RENDER_MINOR + index,
            hive_id: hive.map_or(0, |hive| 0xd2c5_8e1f_0a47_3b00 + u64::from(hive)),
            num_sdma_engines: pcie_engines,
            num_sdma_xgmi_engines: engines - pcie_engines,
            num_sdma_queues_per_engine: chip.sdma_queues,
            num_cp_queues: chip.cp_queues,
            max_engine_clk_fcompute: chip.clock,
            local_mem_size: 0,
            fw_version: chip.fw_version,
            capability: capability(chip, kernel),
            capability2: 0,
            debug_prop: chip.debug_prop,
            sdma_fw_version: chip.sdma_fw_version,
            unique_id: if chip.apu {
                0
            } else {
                // A partition shows its own number only from 7.2 on.
                let own = if kernel.has_keys_of_7_2() { u64::from(partition) } else { 0 };
                (0x1901_75e4_2d3c_0000 + (u64::from(device) << 32)) | own
            },
            num_xcc: xcc,
        };
        let gpu = Gpu {
            missing_vram: 0,
            published_save_area: None,
            id: 0,
            name: chip.name.to_owned(),
            properties,
            vram,
            visible_vram,
            gtt: self.ram * u64::from(self.sockets) / 2,
            apu: chip.apu,
            svm_capable: chip.svm_capable,
            render: RenderNumbers {
                family: chip.family,
                pci_revision: chip.pci_revision,
                external_revision: chip.external_revision,
                counter_khz: 100_000,
                vram_type: chip.vram_type,
                vram_bits: chip.vram_bits,
                memory_clock: chip.memory_clock,
                gb_addr_config: chip.gb_addr_config,
                subsystem_vendor: chip.subsystem >> 16,
                subsystem_device: chip.subsystem & 0xffff,
            },
        };
        let caches = caches(chip, &gpu.properties, kernel);
        Node { banks: banks(&gpu), caches, gpu: Some(gpu), ..Node::default() }
    }

    /// The socket next to this GPU.
    fn socket_of(&self, slots: &[Slot], gpu: u32) -> u32 {
        let gpus = slots.len().max(1);
        (u64::from(gpu) * u64::from(self.sockets) / gpus as u64) as u32
    }

    fn link(&self, kind: u32, node_from: u32, node_to: u32) -> Link {
        Link { kind, node_from, node_to, ..Link::default() }
    }

    fn pcie_link(&self, part: &Part, node_from: u32, node_to: u32, flags: u32) -> Link {
        Link {
            weight: PCIE_WEIGHT,
            min_bandwidth: PCIE_LEAST_BANDWIDTH,
            max_bandwidth: part.chip.pcie_bandwidth,
            recommended_sdma_engine_id_mask: part.pcie_engines(),
            flags,
            ..self.link(Link::PCIE, node_from, node_to)
        }
    }

    fn io_links(&self, slots: &[Slot], topology: &Topology, node: u32) -> Vec<Link> {
        let mut links = Vec::new();
        for other in (0..topology.nodes.len() as u32).filter(|&other| other != node) {
            match (self.slot(slots, node), self.slot(slots, other)) {
                (None, None) => links.push(Link {
                    weight: SOCKET_WEIGHT,
                    ..self.link(Link::HYPERTRANSPORT, node, other)
                }),
                // The way back is made only for a large BAR (kfd_crat.c).
                (None, Some((gpu, to)))
                    if self.socket_of(slots, gpu) == node && to.part.has_large_bar() =>
                {
                    links.push(self.pcie_link(&to.part, node, other, ENABLED_NON_COHERENT));
                }
                (Some((gpu, from)), None) if self.socket_of(slots, gpu) == other => {
                    links.push(self.pcie_link(&from.part, node, other, ENABLED));
                }
                (Some((_, from)), Some((_, to))) if from.hive.is_some() && from.hive == to.hive => {
                    links.push(self.xgmi_link(topology, [from, to], node, other));
                }
                _ => {}
            }
        }
        links
    }

    /// The GPU of a node with its number among the GPUs.
    fn slot<'s>(&self, slots: &'s [Slot], node: u32) -> Option<(u32, &'s Slot)> {
        let gpu = node.checked_sub(self.sockets)?;
        Some((gpu, slots.get(gpu as usize)?))
    }

    fn xgmi_link(&self, topology: &Topology, ends: [&Slot; 2], node: u32, other: u32) -> Link {
        let same_device = ends[0].device == ends[1].device;
        let part = &ends[0].part;
        let bandwidth = match same_device {
            true => SAME_DEVICE_BANDWIDTH,
            false if part.partitions == 1 => part.chip.xgmi_bandwidth,
            false => 0,
        };
        let properties = topology
            .nodes
            .get(node as usize)
            .and_then(|n| n.gpu.as_ref())
            .map(|gpu| gpu.properties)
            .unwrap_or_default();
        let (pcie, xgmi) = (properties.num_sdma_engines, properties.num_sdma_xgmi_engines);
        // The engines for XGMI, or all where none is set aside for it.
        let engines = if xgmi == 0 { (1_u32 << pcie) - 1 } else { ((1_u32 << xgmi) - 1) << pcie };
        Link {
            weight: if same_device {
                SAME_DEVICE_WEIGHT
            } else if part.partitions == 1 {
                XGMI_WEIGHT
            } else {
                // As captured: a hop to another device's partition.
                41
            },
            min_bandwidth: bandwidth,
            max_bandwidth: bandwidth,
            recommended_sdma_engine_id_mask: engines,
            flags: ENABLED,
            ..self.link(Link::XGMI, node, other)
        }
    }

    /// Links over more than one hop (kfd_dev_create_p2p_links): between a GPU and
    /// far CPUs always, between GPUs where the kernel has peer access over PCIe.
    /// Towards a GPU its whole memory must be visible.
    fn p2p_links(&self, slots: &[Slot], kernel: KernelProfile, node: u32) -> Vec<Link> {
        let nodes = self.sockets + slots.len() as u32;
        let far = |a: u32, b: u32| if a == b { 0 } else { SOCKET_WEIGHT };
        let mut links = Vec::new();
        for other in (0..nodes).filter(|&other| other != node) {
            let (from, to) = (self.slot(slots, node), self.slot(slots, other));
            let mut bandwidth = (0, 0);
            let mut engines = 0;
            let (weight, flags) = match (from, to) {
                (None, Some((gpu, to)))
                    if self.socket_of(slots, gpu) != node && to.part.has_large_bar() =>
                {
                    (PCIE_WEIGHT + SOCKET_WEIGHT, ENABLED_NON_COHERENT)
                }
                (Some((gpu, _)), None) if self.socket_of(slots, gpu) != other => {
                    (PCIE_WEIGHT + SOCKET_WEIGHT, ENABLED)
                }
                (Some((gpu, from)), Some((peer, to))) if kernel.p2p && to.part.has_large_bar() => {
                    if from.hive.is_some() && from.hive == to.hive {
                        continue;
                    }
                    let between = far(self.socket_of(slots, gpu), self.socket_of(slots, peer));
                    // The slowest hop counts, and sockets report no bandwidth.
                    if between == 0 {
                        let [from, to] = [from, to].map(|slot| slot.part.chip.pcie_bandwidth);
                        bandwidth = (PCIE_LEAST_BANDWIDTH, from.min(to));
                    }
                    // A copy of the other GPU's link to its CPU, made when the later
                    // GPU came: only the earlier one's engines were known then.
                    if gpu > peer {
                        engines = to.part.pcie_engines();
                    }
                    (2 * PCIE_WEIGHT + between, ENABLED_NON_COHERENT)
                }
                _ => continue,
            };
            links.push(Link {
                weight,
                flags,
                min_bandwidth: bandwidth.0,
                max_bandwidth: bandwidth.1,
                recommended_sdma_engine_id_mask: engines,
                ..self.link(Link::PCIE, node, other)
            });
        }
        links
    }
}

/// kfd_topology.h, HSA_CAP_*: the SVM bit where chip and kernel have it, and the
/// debugger's bits (15 to 18, 29) from the first kernel with the debugger on.
fn capability(chip: &Chip, kernel: KernelProfile) -> u32 {
    const SVM: u32 = 1 << 27;
    const DEBUGGER: u32 = 0xf << 15 | 1 << 29;
    const QUEUE_RESET: u32 = 1 << 31;
    let mut capability = chip.capability;
    if kernel.svm && chip.svm_capable {
        capability |= SVM;
    }
    if !kernel.has_keys_of_6_12() {
        capability &= !(DEBUGGER | QUEUE_RESET);
    }
    if kernel.has_keys_of_7_2() && (90_000..100_000).contains(&chip.gfx_target_version) {
        capability |= QUEUE_RESET;
    }
    capability
}

fn banks(gpu: &Gpu) -> Vec<Bank> {
    let bank = |heap_type, size_in_bytes| Bank {
        heap_type,
        size_in_bytes,
        flags: 0,
        width: gpu.render.vram_bits,
        mem_clk_max: gpu.render.memory_clock,
    };
    let (public, private) = (gpu.visible_vram, gpu.vram - gpu.visible_vram);
    // kfd_crat.c: one public bank when all is visible, else a bank of each kind.
    match (public, private) {
        (public, 0) => vec![bank(1, public)],
        (0, private) => vec![bank(2, private)],
        (public, private) => vec![bank(1, public), bank(2, private)],
    }
}

/// Order and numbers: kfd_fill_cache_non_crat_info of kfd_topology.c. A cache of
/// level 1 is listed for each block of units that share it and has an active
/// one; those above are listed once for the node.
fn caches(chip: &Chip, properties: &GpuProperties, kernel: KernelProfile) -> Vec<Cache> {
    const DATA: u32 = 1;
    const INSTRUCTION: u32 = 2;
    const SIMD: u32 = 8;
    let sizes = &chip.caches;
    let line = if kernel.has_keys_of_6_12() { sizes.line } else { 0 };
    let cache = |level, first: u32, size, kind, sibling_map: Vec<u8>| Cache {
        processor_id_low: properties.simd_id_base + first,
        level,
        size,
        cache_line_size: line,
        kind: kind | SIMD,
        sibling_map,
        ..Cache::default()
    };
    let per_array = chip.cu_per_simd_array;
    let active = |array: u32| -> u32 {
        // Inactive units are the last ones of the last arrays of a die.
        let array = array % chip.array_count;
        let rest = chip.compute_units % chip.array_count;
        chip.compute_units / chip.array_count + u32::from(array < rest)
    };
    let bits = |count: u32| (0..32).map(move |bit| u8::from(bit < count));
    let mut caches = Vec::new();
    for (size, kind, shared_by) in [
        (sizes.vector_l1, DATA, 1),
        (sizes.instruction_l1, INSTRUCTION, sizes.shared_by),
        (sizes.scalar_l1, DATA, sizes.shared_by),
        (sizes.graphics_l1, DATA, per_array),
    ] {
        if size == 0 {
            continue;
        }
        for array in 0..properties.array_count {
            for unit in (0..active(array)).step_by(shared_by as usize) {
                let siblings = shared_by.min(active(array) - unit);
                let map = bits(siblings).collect();
                caches.push(cache(1, array * per_array + unit, size, kind, map));
            }
        }
    }
    for (level, size) in [(2, sizes.l2), (3, sizes.l3)] {
        if size > 0 {
            // The first array's units stand in front, the last array's are left out.
            let map = (0..properties.array_count)
                .flat_map(|array| bits(active(array.saturating_sub(1))))
                .collect();
            caches.push(cache(level, 0, size, DATA, map));
        }
    }
    caches
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use crate::profile::Profile;
    use crate::topology::{Node, Topology};

    fn topology(text: &str) -> Topology {
        Profile::parse(text).unwrap().topology
    }

    fn links(node: &Node) -> Vec<[u32; 4]> {
        let links = node.io_links.iter().chain(&node.p2p_links);
        links.map(|link| [link.kind, link.node_to, link.weight, link.flags]).collect()
    }

    #[test]
    fn cache_counts_are_those_of_captured_machines() {
        assert_eq!(topology("mi210x8").nodes[2].caches.len(), 217);
        assert_eq!(topology("mi300x:cpx").nodes[2].caches.len(), 80);
    }

    #[test]
    fn a_shared_cache_of_a_large_chip_has_more_siblings_than_the_c_struct() {
        let topology = topology("mi300x:gpus=1");
        assert_eq!(topology.nodes[2].caches.last().unwrap().sibling_map.len(), 32 * 32);
    }

    #[test]
    fn links_are_those_of_the_captured_mi210_machine() {
        let topology = topology("mi210x8:p2p=1");
        let mut expected = Vec::from([[1, 1, 32, 0]]);
        expected.extend((2..6).map(|gpu| [2, gpu, 20, 3]));
        expected.extend((6..10).map(|gpu| [2, gpu, 52, 3]));
        assert_eq!(links(&topology.nodes[0]), expected);
        let mut expected = Vec::from([[2, 0, 20, 1]]);
        expected.extend((3..6).map(|gpu| [11, gpu, 15, 1]));
        expected.push([2, 1, 52, 1]);
        expected.extend((6..10).map(|gpu| [2, gpu, 72, 3]));
        assert_eq!(links(&topology.nodes[2]), expected);
    }

    #[test]
    fn links_are_those_of_the_captured_cpx_machine() {
        let topology = topology("mi300x:cpx,p2p=1");
        let node = &topology.nodes[2];
        assert_eq!((node.io_links.len(), node.p2p_links.len()), (64, 1));
        assert_eq!(links(node)[1], [11, 3, 13, 1]);
        assert_eq!(links(node)[8], [11, 10, 41, 1]);
        assert_eq!(node.gpu.as_ref().unwrap().properties.location_id, 0x500);
        assert_eq!(topology.nodes[3].gpu.as_ref().unwrap().properties.location_id, 0x501);
    }

    #[test]
    fn a_peer_link_copies_the_engines_of_the_gpu_that_came_first() {
        let topology = topology("mi210x8:p2p=1");
        let engines = |node: usize, other| {
            let links = &topology.nodes[node].p2p_links;
            links.iter().find(|link| link.node_to == other).unwrap().recommended_sdma_engine_id_mask
        };
        assert_eq!((engines(2, 6), engines(6, 2)), (0, 3));
    }

    #[test]
    fn without_peer_access_only_links_to_far_cpus_remain() {
        let topology = topology("mi210x8:xgmi=0");
        assert_eq!(links(&topology.nodes[2]), [[2, 0, 20, 1], [2, 1, 52, 1]]);
    }

    #[test]
    fn a_small_bar_has_no_link_from_the_cpu_and_two_banks() {
        let topology = topology("rx7900:bar=256M");
        assert!(topology.nodes[0].io_links.is_empty());
        let banks = topology.nodes[1].banks.iter().map(|bank| bank.heap_type);
        assert_eq!(banks.collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_mixed_machine_has_the_gpus_of_all_its_parts() {
        let topology = topology("mi210:gpus=2+rx7900:bar=256M+mi300x:cpx,gpus=1,p2p=1");
        let versions: Vec<u32> =
            topology.gpus().map(|(_, gpu)| gpu.properties.gfx_target_version).collect();
        assert_eq!(versions[..4], [90_010, 90_010, 110_000, 90_402]);
        assert_eq!(versions.len(), 2 + 1 + 8);
        let gpus: Vec<_> = topology.gpus().map(|(_, gpu)| gpu).collect();
        for (n, gpu) in gpus.iter().enumerate() {
            assert_eq!(gpu.render_minor(), 128 + n as u32);
            assert_eq!(gpu.has_large_bar(), n != 2);
        }
        // Hives are those of one part.
        let hives: Vec<u64> = gpus.iter().map(|gpu| gpu.properties.hive_id).collect();
        assert_eq!(hives[0], hives[1]);
        assert_eq!(hives[2], 0);
        assert!(hives[3] != hives[0] && hives[3..].iter().all(|hive| *hive == hives[3]));
        // Nobody reaches the small BAR as a peer, which reaches all others.
        let small = topology.nodes.iter().position(|node| {
            node.gpu.as_ref().is_some_and(|gpu| gpu.properties.gfx_target_version == 110_000)
        });
        let small = small.unwrap() as u32;
        assert!(
            topology.nodes.iter().flat_map(|n| &n.p2p_links).all(|link| { link.node_to != small })
        );
        let others = &topology.nodes[small as usize].p2p_links;
        assert_eq!(others.iter().filter(|link| link.node_to > 1).count(), 10);
    }
}
