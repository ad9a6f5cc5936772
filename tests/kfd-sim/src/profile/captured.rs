//! Machines from a captured topology folder.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::topology::{Bank, Cpu, Gpu, GpuProperties, Link, Node, RenderNumbers, Topology};

/// Captured files by their path below the topology folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Files(BTreeMap<String, Vec<u8>>);

/// Why a captured folder makes no machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapturedTreeError {
    /// The folder has no `nodes/0/properties`.
    NoNodes,
    /// Node numbers are not 0, 1, 2…; the first missing one.
    MissingNode(usize),
    /// A path that leaves the folder or is empty.
    BadPath(String),
}

impl fmt::Display for CapturedTreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapturedTreeError::NoNodes => f.write_str("the folder has no nodes/0/properties"),
            CapturedTreeError::MissingNode(node) => write!(f, "nodes/{node}/properties is missing"),
            CapturedTreeError::BadPath(path) => write!(f, "bad path \"{path}\""),
        }
    }
}

impl core::error::Error for CapturedTreeError {}

impl Files {
    pub(super) fn new<P: AsRef<str>, C: AsRef<[u8]>>(
        files: impl IntoIterator<Item = (P, C)>,
    ) -> Result<Files, CapturedTreeError> {
        let mut map = BTreeMap::new();
        for (path, contents) in files {
            let path = path.as_ref().trim_start_matches("./");
            let good = |part: &str| !part.is_empty() && part != "." && part != "..";
            if !path.split('/').all(good) {
                return Err(CapturedTreeError::BadPath(path.to_owned()));
            }
            map.insert(path.to_owned(), contents.as_ref().to_vec());
        }
        Ok(Files(map))
    }

    /// The captured `generation_id`.
    pub(crate) fn generation(&self) -> Option<u64> {
        self.text("generation_id")?.trim().parse().ok()
    }

    /// The captured files: path below the topology folder, contents.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(path, contents)| (path.as_str(), contents.as_slice()))
    }

    pub(super) fn topology(&self) -> Result<Topology, CapturedTreeError> {
        let numbers: Vec<usize> = self
            .0
            .keys()
            .filter_map(|path| path.strip_prefix("nodes/")?.strip_suffix("/properties"))
            .filter_map(|number| number.parse().ok())
            .collect();
        let count = numbers.len();
        if count == 0 {
            return Err(CapturedTreeError::NoNodes);
        }
        if let Some(missing) = (0..count).find(|node| !numbers.contains(node)) {
            return Err(CapturedTreeError::MissingNode(missing));
        }
        let system = self.keys("system_properties");
        let mut topology = Topology {
            platform_oem: system.number("platform_oem"),
            platform_id: system.number("platform_id"),
            platform_rev: system.number("platform_rev"),
            nodes: (0..count).map(|node| self.node(node)).collect(),
        };
        topology.assign_gpu_ids();
        Ok(topology)
    }

    fn text(&self, path: &str) -> Option<&str> {
        core::str::from_utf8(self.0.get(path)?).ok()
    }

    fn keys(&self, path: &str) -> Keys<'_> {
        Keys(self.text(path).unwrap_or(""))
    }

    /// The numbered sub-folders of a folder that have `properties`, in order.
    fn entries(&self, folder: &str) -> Vec<Keys<'_>> {
        (0_usize..)
            .map_while(|n| self.text(&(folder.to_owned() + "/" + &n.to_string() + "/properties")))
            .map(Keys)
            .collect()
    }

    fn node(&self, number: usize) -> Node {
        let folder = "nodes/".to_owned() + &number.to_string();
        let below = |name: &str| folder.clone() + "/" + name;
        let keys = self.keys(&below("properties"));
        let mut banks: Vec<Bank> =
            self.entries(&below("mem_banks")).iter().map(Keys::bank).collect();
        let gpu = (keys.number("simd_count") != 0).then(|| {
            let id = self.text(&below("gpu_id")).and_then(|text| text.trim().parse().ok());
            let name = self.text(&below("name")).map(|text| text.trim().to_owned());
            keys.gpu(id.unwrap_or(0), name.unwrap_or_default(), &banks)
        });
        let cpu = (keys.number("cpu_cores_count") != 0 || gpu.is_none()).then(|| Cpu {
            cores: keys.u32("cpu_cores_count"),
            first_apic_id: keys.u32("cpu_core_id_base"),
            model_name: "AMD EPYC".to_owned(),
            vendor: "AuthenticAMD".to_owned(),
            clock: keys.u32("max_engine_clk_ccompute"),
        });
        if banks.is_empty() {
            banks = match &gpu {
                Some(gpu) => {
                    vec![Bank { heap_type: 1, size_in_bytes: gpu.vram, ..Bank::default() }]
                }
                None => vec![Bank { size_in_bytes: ASSUMED_RAM, ..Bank::default() }],
            };
        }
        Node {
            cpu,
            gpu,
            banks,
            caches: Vec::new(),
            io_links: self.entries(&below("io_links")).iter().map(Keys::link).collect(),
            p2p_links: self.entries(&below("p2p_links")).iter().map(Keys::link).collect(),
        }
    }
}

/// For captures without memory banks: bytes of a socket and of a GPU.
const ASSUMED_RAM: u64 = 256 << 30;
const ASSUMED_VRAM: u64 = 64 << 30;

/// The lines of one file.
struct Keys<'a>(&'a str);

impl Keys<'_> {
    fn number(&self, key: &str) -> u64 {
        self.0
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
            .unwrap_or(0)
    }

    fn u32(&self, key: &str) -> u32 {
        u32::try_from(self.number(key)).unwrap_or(0)
    }

    fn bank(&self) -> Bank {
        Bank {
            heap_type: self.u32("heap_type"),
            size_in_bytes: self.number("size_in_bytes"),
            flags: self.u32("flags"),
            width: self.u32("width"),
            mem_clk_max: self.u32("mem_clk_max"),
        }
    }

    fn link(&self) -> Link {
        Link {
            kind: self.u32("type"),
            node_from: self.u32("node_from"),
            node_to: self.u32("node_to"),
            weight: self.u32("weight"),
            min_bandwidth: self.u32("min_bandwidth"),
            max_bandwidth: self.u32("max_bandwidth"),
            recommended_transfer_size: self.u32("recommended_transfer_size"),
            recommended_sdma_engine_id_mask: self.u32("recommended_sdma_engine_id_mask"),
            flags: self.u32("flags"),
        }
    }

    fn gpu(&self, id: u32, name: String, banks: &[Bank]) -> Gpu {
        let properties = GpuProperties {
            simd_count: self.u32("simd_count"),
            simd_id_base: self.u32("simd_id_base"),
            max_waves_per_simd: self.u32("max_waves_per_simd"),
            lds_size_in_kb: self.u32("lds_size_in_kb"),
            gds_size_in_kb: self.u32("gds_size_in_kb"),
            num_gws: self.u32("num_gws"),
            wave_front_size: self.u32("wave_front_size"),
            array_count: self.u32("array_count"),
            simd_arrays_per_engine: self.u32("simd_arrays_per_engine"),
            cu_per_simd_array: self.u32("cu_per_simd_array"),
            simd_per_cu: self.u32("simd_per_cu"),
            max_slots_scratch_cu: self.u32("max_slots_scratch_cu"),
            gfx_target_version: self.u32("gfx_target_version"),
            vendor_id: self.u32("vendor_id"),
            device_id: self.u32("device_id"),
            location_id: self.u32("location_id"),
            domain: self.u32("domain"),
            drm_render_minor: self.u32("drm_render_minor"),
            hive_id: self.number("hive_id"),
            num_sdma_engines: self.u32("num_sdma_engines"),
            num_sdma_xgmi_engines: self.u32("num_sdma_xgmi_engines"),
            num_sdma_queues_per_engine: self.u32("num_sdma_queues_per_engine"),
            num_cp_queues: self.u32("num_cp_queues"),
            max_engine_clk_fcompute: self.u32("max_engine_clk_fcompute"),
            local_mem_size: self.number("local_mem_size"),
            fw_version: self.u32("fw_version"),
            capability: self.u32("capability"),
            capability2: self.u32("capability2"),
            debug_prop: self.number("debug_prop"),
            sdma_fw_version: self.u32("sdma_fw_version"),
            unique_id: self.number("unique_id"),
            num_xcc: self.u32("num_xcc").max(1),
        };
        let heap = |kind| {
            banks.iter().filter(|bank| bank.heap_type == kind).map(|bank| bank.size_in_bytes).sum()
        };
        let (public, private): (u64, u64) = (heap(1), heap(2));
        let (public, private) =
            if public + private == 0 { (ASSUMED_VRAM, 0) } else { (public, private) };
        Gpu {
            missing_vram: 0,
            published_save_area: None,
            id,
            name,
            properties,
            vram: public + private,
            visible_vram: public,
            gtt: ASSUMED_RAM / 2,
            apu: false,
            // HSA_CAP_SVMAPI_SUPPORTED.
            svm_capable: properties.capability & 1 << 27 != 0,
            render: RenderNumbers {
                family: match properties.gfx_target_version / 100 {
                    900..=999 => 141,
                    1000..=1099 => 143,
                    1100..=1199 => 145,
                    1200..=1299 => 152,
                    _ => 130,
                },
                counter_khz: 100_000,
                subsystem_vendor: 0x1002,
                ..RenderNumbers::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use hsakmt_core::seam::{EndOfFile, Os};

    use super::CapturedTreeError;
    use crate::host::AddressesOnly;
    use crate::kernel::{Kernel, KernelProfile};
    use crate::machine::{Change, Machine};
    use crate::profile::Profile;

    const KERNEL: KernelProfile = KernelProfile::debian(Kernel::V6_12);

    fn files() -> [(&'static str, &'static str); 5] {
        [
            ("generation_id", "80\n"),
            ("nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\n"),
            (
                "nodes/1/properties",
                "cpu_cores_count 0\nsimd_count 416\ndrm_render_minor 131\nodd_key 5\n",
            ),
            ("nodes/1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 68719476736\n"),
            ("nodes/1/io_links/0/properties", "type 2\nnode_from 1\nnode_to 0\nweight 20\n"),
        ]
    }

    fn read(machine: &Machine, path: &core::ffi::CStr) -> alloc::vec::Vec<u8> {
        let mut bytes = alloc::vec::Vec::new();
        let sim = machine.spawn(AddressesOnly::new());
        sim.read_file(path, &mut bytes, 4096, EndOfFile::ShortRead).unwrap();
        bytes
    }

    #[test]
    fn the_machine_is_what_the_files_say() {
        let topology = Profile::from_captured(KERNEL, files()).unwrap().topology;
        let gpu = topology.nodes[1].gpu.as_ref().unwrap();
        assert_eq!((gpu.properties.simd_count, gpu.render_minor()), (416, 131));
        assert_eq!((gpu.vram, topology.nodes[1].io_links[0].weight), (64 << 30, 20));
        assert_ne!(gpu.id, 0);
        assert_eq!(topology.nodes[0].cpu.as_ref().unwrap().cores, 64);
    }

    #[test]
    fn captured_files_are_served_as_they_are_and_missing_ones_made() {
        let machine = Machine::new(&Profile::from_captured(KERNEL, files()).unwrap());
        let root = c"/sys/class/kfd/kfd/topology/nodes/1/properties";
        assert_eq!(read(&machine, root), files()[2].1.as_bytes());
        let id = machine.topology().nodes[1].gpu.as_ref().unwrap().id;
        let made = read(&machine, c"/sys/class/kfd/kfd/topology/nodes/1/gpu_id");
        assert_eq!(made, alloc::format!("{id}\n").into_bytes());
    }

    #[test]
    fn the_captured_generation_goes_on() {
        let machine = Machine::new(&Profile::from_captured(KERNEL, files()).unwrap());
        let path = c"/sys/class/kfd/kfd/topology/generation_id";
        assert_eq!(read(&machine, path), b"80\n");
        machine.change(Change::Generation);
        assert_eq!(read(&machine, path), b"81\n");
    }

    #[test]
    fn folders_that_make_no_machine() {
        let error = |files: &[(&str, &str)]| {
            Profile::from_captured(KERNEL, files.iter().copied()).unwrap_err()
        };
        assert_eq!(error(&[]), CapturedTreeError::NoNodes);
        let gap = [("nodes/0/properties", ""), ("nodes/2/properties", "")];
        assert_eq!(error(&gap), CapturedTreeError::MissingNode(1));
        let path = "nodes/../../etc";
        assert_eq!(error(&[(path, "")]), CapturedTreeError::BadPath(path.into()));
    }
}
