//! The files of the machine: `/sys`, `/proc` and `/dev` as far as they are its own.

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{DeviceNode, FileKind};

use crate::kernel::KernelProfile;
use crate::machine::{Condition, State};
use crate::process::Pid;
use crate::profile::Profile;
use crate::topology::Topology;

mod cpu;
mod drm;
mod nodes;
mod tree;

pub(crate) use drm::remove_render_node;
pub(crate) use tree::{Attribute, Content, Entry, Folder};

/// `/sys/devices/virtual/kfd/kfd`, to which the class link leads.
pub(crate) const KFD: &str = "/sys/devices/virtual/kfd/kfd";
/// The topology folder.
pub(crate) const TOPOLOGY: &str = "/sys/devices/virtual/kfd/kfd/topology";

/// Builds the whole tree of a machine.
pub(crate) fn build(profile: &Profile) -> Folder {
    let mut root = Folder::default();
    root.put_folder(KFD);
    root.put_folder(&(KFD.to_owned() + "/proc"));
    root.put_link("/sys/class/kfd/kfd", KFD);
    root.put("/dev/kfd", Entry::Device);
    if profile.kernel.udmabuf.is_some() {
        root.put("/dev/udmabuf", Entry::Device);
    }
    root.put_folder("/sys/class/drm");
    root.put_folder("/dev/dri");
    for (_, gpu) in profile.topology.gpus() {
        drm::put_render_node(&mut root, gpu);
    }
    cpu::put_cpus(&mut root, &profile.topology);
    put_topology(&mut root, &profile.topology);
    for (path, contents) in profile.captured.iter() {
        // This one goes on counting.
        if path == "generation_id" {
            continue;
        }
        root.put_bytes(&format!("{TOPOLOGY}/{path}"), contents);
    }
    root
}

/// Builds the topology folder, replacing an earlier one.
pub(crate) fn put_topology(root: &mut Folder, topology: &Topology) {
    root.put_folder(TOPOLOGY);
    let folder = root.folder(TOPOLOGY);
    folder.put_generated("generation_id", Attribute::GenerationId);
    folder.put_generated("system_properties", Attribute::SystemProperties);
    let nodes = folder.folder("nodes");
    for (n, node) in topology.nodes.iter().enumerate() {
        let folder = nodes.folder(&format!("{n}"));
        folder.put_generated("gpu_id", Attribute::GpuId(n));
        folder.put_generated("name", Attribute::Name(n));
        folder.put_generated("properties", Attribute::Properties(n));
        folder.put_folder("perf");
        put_entries(folder, "mem_banks", node.banks.len(), |i| Attribute::Bank(n, i));
        put_entries(folder, "caches", node.caches.len(), |i| Attribute::Cache(n, i));
        put_entries(folder, "io_links", node.io_links.len(), |i| Attribute::IoLink(n, i));
        put_entries(folder, "p2p_links", node.p2p_links.len(), |i| Attribute::P2pLink(n, i));
    }
}

/// `<name>/<i>/properties` for each i.
fn put_entries(
    folder: &mut Folder,
    name: &str,
    count: usize,
    attribute: impl Fn(usize) -> Attribute,
) {
    let folder = folder.folder(name);
    for i in 0..count {
        folder.folder(&format!("{i}")).put_generated("properties", attribute(i));
    }
}

/// Whether the machine answers for this path although it has no such file. The
/// process's own files and the system's tunables belong to the host, whose
/// address space is in use.
fn owns(path: &str) -> bool {
    let below = |folder: &str| {
        path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if below("/proc") {
        return !below("/proc/self") && !below("/proc/thread-self") && !below("/proc/sys");
    }
    below("/sys") || below("/dev")
}

/// The contents of a file, for a reader; `None` for a file of the host.
///
/// # Errors
/// Those of open(2) and read(2).
pub(crate) fn read(state: &mut State, reader: Pid, path: &str) -> Option<Result<Vec<u8>, Errno>> {
    let resolved = state.tree.resolve(path);
    if resolved.is_err() && !owns(path) {
        return None;
    }
    Some(state.check_free_descriptor(reader).and_then(|()| read_resolved(state, reader, path)))
}

fn read_resolved(state: &mut State, reader: Pid, path: &str) -> Result<Vec<u8>, Errno> {
    let (entry, real) = resolve(state, path)?;
    let content = match entry {
        Entry::Folder(_) => return Err(Errno::EISDIR),
        Entry::Device => return Err(Errno::EINVAL),
        Entry::Link(_) => return Err(Errno::ELOOP),
        Entry::File(content) => content.clone(),
    };
    let node = node_of(&real);
    let of_topology = real.starts_with(TOPOLOGY);
    // kernel-rules section 5, "Device cgroup": evaluated at each read, in the
    // reader; opening succeeds.
    if let Some(node) = node {
        let gpu = state.topology.nodes.get(node).and_then(|n| n.gpu.as_ref());
        if let Some(gpu) = gpu {
            if state.is_hidden(reader, DeviceNode::Render(gpu.render_minor())) {
                return Err(Errno::EPERM);
            }
        }
    }
    let bytes = match content {
        Content::Bytes(bytes) => Ok(bytes),
        Content::Unreadable(errno) => Err(errno),
        Content::Generated(attribute) => print(state, attribute),
    };
    if of_topology {
        state.after_topology_read();
    }
    bytes
}

/// The names in a folder, for a reader; `None` for a folder of the host.
///
/// # Errors
/// Those of open(2) with O_DIRECTORY.
pub(crate) fn list(
    state: &State,
    reader: Pid,
    path: &str,
) -> Option<Result<Vec<(String, FileKind)>, Errno>> {
    if state.tree.resolve(path).is_err() && !owns(path) {
        return None;
    }
    let listed = state.check_free_descriptor(reader).and_then(|()| resolve(state, path));
    Some(listed.and_then(|(entry, _)| match entry {
        Entry::Folder(folder) => Ok(folder.list()),
        _ => Err(Errno::ENOTDIR),
    }))
}

/// Without the module its folders are not there.
fn resolve<'s, 'p>(state: &'s State, path: &'p str) -> Result<(&'s Entry, Cow<'p, str>), Errno> {
    let (entry, real) = state.tree.resolve(path)?;
    let of_the_module = real.starts_with(KFD) || real.contains("/drm/");
    if of_the_module && state.conditions.contains(&Condition::ModuleNotLoaded) {
        return Err(Errno::ENOENT);
    }
    Ok((entry, real))
}

/// The node that a path below the topology folder belongs to.
fn node_of(path: &str) -> Option<usize> {
    let below = path.strip_prefix(TOPOLOGY)?.strip_prefix("/nodes/")?;
    below.split('/').next()?.parse().ok()
}

fn print(state: &mut State, attribute: Attribute) -> Result<Vec<u8>, Errno> {
    let kernel: KernelProfile = state.kernel;
    let topology = &state.topology;
    let node = |n: usize| topology.nodes.get(n).ok_or(Errno::ENOENT);
    let text = match attribute {
        Attribute::GenerationId => {
            let number = state.generation;
            if state.generation_on_every_read {
                state.generation += 1;
            }
            format!("{number}\n")
        }
        Attribute::VramOf(object, gpu_id) => {
            let bytes = state.objects.get(&object).map_or(0, |object| object.vram(gpu_id));
            format!("{bytes}\n")
        }
        Attribute::SystemProperties => nodes::system_properties(topology),
        Attribute::GpuId(n) => {
            let ready = !state.not_ready.contains(&n);
            let id = node(n)?.gpu.as_ref().filter(|_| ready).map_or(0, |gpu| gpu.id);
            format!("{id}\n")
        }
        Attribute::Name(n) => {
            let ready = !state.not_ready.contains(&n);
            let name = node(n)?.gpu.as_ref().filter(|_| ready).map_or("", |gpu| &gpu.name);
            format!("{name}\n")
        }
        Attribute::Properties(n) => {
            let ready = !state.not_ready.contains(&n);
            nodes::properties(node(n)?, topology, kernel, ready)
        }
        Attribute::Bank(n, i) => nodes::bank(node(n)?.banks.get(i).ok_or(Errno::ENOENT)?),
        Attribute::Cache(n, i) => nodes::cache(node(n)?.caches.get(i).ok_or(Errno::ENOENT)?),
        Attribute::IoLink(n, i) => {
            nodes::link(node(n)?.io_links.get(i).ok_or(Errno::ENOENT)?, kernel)
        }
        Attribute::P2pLink(n, i) => {
            nodes::link(node(n)?.p2p_links.get(i).ok_or(Errno::ENOENT)?, kernel)
        }
        Attribute::CpuInfo => return Ok(cpu::cpuinfo(topology).into_bytes()),
    };
    let mut bytes = text.into_bytes();
    // sysfs_emit: a page at most, its last byte for a zero.
    bytes.truncate(4095);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use alloc::ffi::CString;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;
    use core::ops::ControlFlow;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{DeviceNode, EndOfFile, FileKind, Os};

    use super::TOPOLOGY;
    use crate::fixture::{Sim, boot, gpu_id};
    use crate::machine::Change;

    fn read_path(sim: &Sim, path: &str) -> Result<String, Errno> {
        let mut bytes = Vec::new();
        let path = CString::new(path).unwrap();
        sim.read_file(&path, &mut bytes, 1 << 20, EndOfFile::ShortRead)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    fn read(sim: &Sim, below: &str) -> Result<String, Errno> {
        read_path(sim, &format!("{TOPOLOGY}/{below}"))
    }

    fn list(sim: &Sim, path: &str) -> Result<Vec<(String, FileKind)>, Errno> {
        let mut names = Vec::new();
        let path = CString::new(path).unwrap();
        sim.list_folder(&path, &mut |name, kind| {
            names.push((String::from_utf8(name.to_vec()).unwrap(), kind));
            ControlFlow::Continue(())
        })?;
        names.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(names)
    }

    fn keys(text: &str) -> Vec<&str> {
        text.lines().map(|line| line.split_once(' ').unwrap().0).collect()
    }

    const BASE: &str = "cpu_cores_count simd_count mem_banks_count caches_count io_links_count \
        p2p_links_count cpu_core_id_base simd_id_base max_waves_per_simd lds_size_in_kb \
        gds_size_in_kb num_gws wave_front_size array_count simd_arrays_per_engine \
        cu_per_simd_array simd_per_cu max_slots_scratch_cu gfx_target_version vendor_id device_id \
        location_id domain drm_render_minor hive_id num_sdma_engines num_sdma_xgmi_engines \
        num_sdma_queues_per_engine num_cp_queues";

    #[test]
    fn keys_and_order_of_each_kernel() {
        for (kernel, common, gpu) in [
            (
                "6.1",
                "",
                "max_engine_clk_fcompute local_mem_size fw_version capability \
                sdma_fw_version unique_id",
            ),
            (
                "6.12",
                "cwsr_size ctl_stack_size",
                "max_engine_clk_fcompute local_mem_size \
                fw_version capability debug_prop sdma_fw_version unique_id num_xcc",
            ),
            (
                "7.2",
                "cwsr_size ctl_stack_size",
                "max_engine_clk_fcompute local_mem_size \
                fw_version capability capability2 debug_prop sdma_fw_version unique_id num_xcc",
            ),
        ] {
            let sim = boot(&format!("rx7900:kernel={kernel}"));
            let words = |parts: [&'static str; 4]| -> Vec<&'static str> {
                parts.into_iter().flat_map(str::split_whitespace).collect()
            };
            let last = "max_engine_clk_ccompute";
            let cpu = read(&sim, "nodes/0/properties").unwrap();
            assert_eq!(keys(&cpu), words([BASE, common, "", last]), "{kernel}");
            let text = read(&sim, "nodes/1/properties").unwrap();
            assert_eq!(keys(&text), words([BASE, common, gpu, last]), "{kernel}");
            let link = read(&sim, "nodes/1/io_links/0/properties").unwrap();
            let mask = if kernel == "6.1" { "" } else { "recommended_sdma_engine_id_mask" };
            let expected = words([
                "type version_major version_minor node_from node_to weight \
                min_latency max_latency min_bandwidth max_bandwidth recommended_transfer_size",
                mask,
                "flags",
                "",
            ]);
            assert_eq!(keys(&link), expected, "{kernel}");
        }
    }

    #[test]
    fn keys_of_banks_caches_and_the_system() {
        let sim = boot("rx7900");
        let text = read(&sim, "system_properties").unwrap();
        assert_eq!(keys(&text), ["platform_oem", "platform_id", "platform_rev"]);
        let text = read(&sim, "nodes/1/mem_banks/0/properties").unwrap();
        assert_eq!(
            text,
            "heap_type 1\nsize_in_bytes 25769803776\nflags 0\nwidth 384\nmem_clk_max 1249\n"
        );
        let text = read(&sim, "nodes/1/caches/0/properties").unwrap();
        let (head, map) = text.trim_end().rsplit_once('\n').unwrap();
        assert_eq!(
            keys(head),
            [
                "processor_id_low",
                "level",
                "size",
                "cache_line_size",
                "cache_lines_per_tag",
                "association",
                "latency",
                "type"
            ]
        );
        assert_eq!(map, format!("sibling_map 1{}", ",0".repeat(31)));
    }

    #[test]
    fn names_and_ids() {
        let sim = boot("mi210x8");
        assert_eq!(read(&sim, "nodes/0/gpu_id").unwrap(), "0\n");
        assert_eq!(read(&sim, "nodes/0/name").unwrap(), "\n");
        assert_eq!(read(&sim, "nodes/2/gpu_id").unwrap(), format!("{}\n", gpu_id(&sim, 0)));
        assert_eq!(read(&sim, "nodes/2/name").unwrap(), "aldebaran\n");
        assert_eq!(read(&sim, "generation_id").unwrap(), "9\n");
        assert_eq!(read(&boot("cpu-only"), "generation_id").unwrap(), "1\n");
    }

    #[test]
    fn every_folder_is_there_and_perf_is_empty() {
        let sim = boot("rx7900");
        for node in 0..2 {
            let folder = format!("/sys/class/kfd/kfd/topology/nodes/{node}");
            let names: Vec<String> =
                list(&sim, &folder).unwrap().into_iter().map(|(name, _)| name).collect();
            assert_eq!(
                names,
                [
                    "caches",
                    "gpu_id",
                    "io_links",
                    "mem_banks",
                    "name",
                    "p2p_links",
                    "perf",
                    "properties"
                ]
            );
            assert_eq!(list(&sim, &format!("{folder}/perf")), Ok(Vec::new()));
        }
        let nodes = list(&sim, &format!("{TOPOLOGY}/nodes")).unwrap();
        assert!(nodes.iter().all(|(_, kind)| *kind == FileKind::Folder));
    }

    #[test]
    fn counts_are_those_of_the_folders() {
        let sim = boot("mi210x8:p2p=1");
        for node in 0..10 {
            let text = read(&sim, &format!("nodes/{node}/properties")).unwrap();
            for (key, folder) in [
                ("mem_banks_count", "mem_banks"),
                ("caches_count", "caches"),
                ("io_links_count", "io_links"),
                ("p2p_links_count", "p2p_links"),
            ] {
                let count = list(&sim, &format!("{TOPOLOGY}/nodes/{node}/{folder}")).unwrap().len();
                let line = format!("{key} {count}");
                assert!(text.lines().any(|l| l == line), "{node}: {line}");
            }
        }
    }

    #[test]
    fn a_file_is_one_page_at_most() {
        let sim = boot("rx7900");
        assert!(read(&sim, "nodes/1/properties").unwrap().len() < 4096);
    }

    #[test]
    fn a_hidden_gpu_cannot_be_read_but_listed() {
        let sim = boot("mi210x8:gpus=2");
        sim.process().hide(DeviceNode::Render(128), true);
        for file in [
            "gpu_id",
            "name",
            "properties",
            "mem_banks/0/properties",
            "caches/0/properties",
            "io_links/0/properties",
        ] {
            assert_eq!(read(&sim, &format!("nodes/2/{file}")), Err(Errno::EPERM), "{file}");
            assert!(read(&sim, &format!("nodes/3/{file}")).is_ok(), "{file}");
        }
        assert!(list(&sim, &format!("{TOPOLOGY}/nodes/2")).is_ok());
        // The CPU's link to it and its count stay.
        assert!(read(&sim, "nodes/0/io_links/1/properties").unwrap().contains("node_to 2\n"));
        // Another process is not concerned.
        assert!(read(&sim.machine().spawn(crate::AddressesOnly::new()), "nodes/2/gpu_id").is_ok());
    }

    #[test]
    fn errnos_of_files_and_folders() {
        let sim = boot("rx7900");
        let folder = format!("{TOPOLOGY}/nodes");
        assert_eq!(read(&sim, "nodes"), Err(Errno::EISDIR));
        assert_eq!(read(&sim, "nodes/7/gpu_id"), Err(Errno::ENOENT));
        assert_eq!(read(&sim, "generation_id/x"), Err(Errno::ENOTDIR));
        assert_eq!(list(&sim, &format!("{TOPOLOGY}/generation_id")), Err(Errno::ENOTDIR));
        assert_eq!(list(&sim, "/sys/nothing"), Err(Errno::ENOENT));
        sim.process().set_descriptor_limit(3);
        assert_eq!(read(&sim, "generation_id"), Err(Errno::EMFILE));
        assert_eq!(list(&sim, &folder), Err(Errno::EMFILE));
    }

    #[test]
    fn a_limit_below_the_length_is_efbig_and_leaves_the_buffer() {
        let sim = boot("rx7900");
        let mut bytes = Vec::from(*b"before");
        let path = CString::new(format!("{TOPOLOGY}/system_properties")).unwrap();
        let result = sim.read_file(&path, &mut bytes, 10, EndOfFile::ShortRead);
        assert_eq!((result, &bytes[..]), (Err(Errno::EFBIG), &b"before"[..]));
    }

    #[test]
    fn generation_on_every_read() {
        let sim = boot("rx7900");
        sim.machine().change_generation_on_every_read(true);
        let read = || read(&sim, "generation_id").unwrap();
        assert_ne!(read(), read());
        sim.machine().change_generation_on_every_read(false);
        assert_eq!(read(), read());
    }

    #[test]
    fn a_change_in_the_middle_of_a_walk() {
        let sim = boot("mi210x8:gpus=2");
        sim.machine().change_after_reads(2, Change::RemoveNode(2));
        assert_eq!(read(&sim, "generation_id").unwrap(), "3\n");
        assert!(read(&sim, "nodes/2/name").is_ok());
        assert_eq!(read(&sim, "generation_id").unwrap(), "4\n");
        // The second GPU moved down, its links with it.
        assert_eq!(read(&sim, "nodes/3/name"), Err(Errno::ENOENT));
        let text = read(&sim, "nodes/2/properties").unwrap();
        assert!(text.contains("drm_render_minor 129\n"));
        assert!(read(&sim, "nodes/2/io_links/0/properties").unwrap().contains("node_from 2\n"));
    }

    #[test]
    fn a_gpu_that_is_announced_and_not_ready() {
        let sim = boot("rx7900");
        sim.machine().set_not_ready(1);
        let generation = read(&sim, "generation_id").unwrap();
        assert_eq!(read(&sim, "nodes/1/gpu_id").unwrap(), "0\n");
        assert_eq!(read(&sim, "nodes/1/name").unwrap(), "\n");
        let text = read(&sim, "nodes/1/properties").unwrap();
        assert!(text.contains("simd_count 192\n"));
        assert!(text.contains("gfx_target_version 0\n"));
        sim.machine().change(Change::Ready(1));
        assert_eq!(read(&sim, "nodes/1/gpu_id").unwrap(), format!("{}\n", gpu_id(&sim, 0)));
        assert_eq!(read(&sim, "generation_id").unwrap(), generation);
    }

    #[test]
    fn cpuinfo_has_every_processor() {
        let sim = boot("mi210x8:cores=3");
        let text = read_path(&sim, "/proc/cpuinfo").unwrap();
        let values = |key: &str| -> Vec<String> {
            text.lines()
                .filter(|line| line.starts_with(key))
                .map(|line| line.rsplit(": ").next().unwrap().into())
                .collect()
        };
        assert_eq!(values("processor"), ["0", "1", "2", "3", "4", "5"]);
        // The second socket's APIC ids start at a power of two.
        assert_eq!(values("apicid"), ["0", "1", "2", "4", "5", "6"]);
        assert!(read(&sim, "nodes/1/properties").unwrap().contains("cpu_core_id_base 4\n"));
    }

    #[test]
    fn caches_are_reached_through_the_numa_node() {
        let sim = boot("mi210x8:cores=2");
        let path = "/sys/devices/system/node/node1/cpu3/cache/index3/shared_cpu_list";
        assert_eq!(read_path(&sim, path).unwrap(), "2-3\n");
        let folder = "/sys/devices/system/node/node1";
        let names = list(&sim, folder).unwrap();
        assert!(names.contains(&("cpu3".into(), FileKind::Other)));
        assert!(!names.iter().any(|(name, _)| name == "cpu1"));
    }

    #[test]
    fn render_nodes_have_their_pci_numbers() {
        let sim = boot("rx7900");
        let file = |name: &str| {
            read_path(&sim, &format!("/sys/class/drm/renderD128/device/{name}")).unwrap()
        };
        assert_eq!(file("device"), "0x744c\n");
        assert_eq!(file("revision"), "0xc8\n");
        assert_eq!(list(&sim, "/dev/dri").unwrap(), [("renderD128".into(), FileKind::Other)]);
    }

    #[test]
    fn without_the_module_there_are_no_files() {
        let sim = boot("rx7900");
        sim.machine().set_condition(crate::Condition::ModuleNotLoaded, true);
        assert_eq!(read(&sim, "generation_id"), Err(Errno::ENOENT));
        assert_eq!(list(&sim, "/sys/class/kfd/kfd"), Err(Errno::ENOENT));
        assert!(read_path(&sim, "/proc/cpuinfo").is_ok());
        sim.machine().set_condition(crate::Condition::ModuleNotLoaded, false);
        assert!(read(&sim, "generation_id").is_ok());
    }

    #[test]
    fn files_that_a_test_puts_in() {
        let sim = boot("rx7900");
        let machine = sim.machine();
        machine.put_file("/usr/share/libdrm/amdgpu.ids", b"744C,\tC8,\tA name\n");
        assert!(read_path(&sim, "/usr/share/libdrm/amdgpu.ids").is_ok());
        machine.put_file(&format!("{TOPOLOGY}/nodes/1/name"), b"x");
        assert_eq!(read(&sim, "nodes/1/name").unwrap(), "x");
        machine.put_unreadable(&format!("{TOPOLOGY}/nodes/1/name"), Errno::EIO);
        assert_eq!(read(&sim, "nodes/1/name"), Err(Errno::EIO));
        assert!(machine.remove_path(&format!("{TOPOLOGY}/nodes/1")));
        assert_eq!(list(&sim, &format!("{TOPOLOGY}/nodes")).unwrap().len(), 1);
    }
}
