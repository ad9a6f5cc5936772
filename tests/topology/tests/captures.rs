//! Captured machines: what the reference library says of one of them, value for
//! value, and what the files of all of them say.
#![recursion_limit = "256"]

use hsakmt_core::topology::{
    Aperture, Apertures, Cache, DeviceInfo, IoLink, MemoryBank, Node, Snapshot, read_snapshot,
};
use hsakmt_topology_tests::{EveryGpu, SETTINGS, Tree, TreeOs, captures, complete};
use serde_json::{Map, Value, json};

/// The machine on which the expected values were taken had these apertures.
fn apertures() -> Apertures {
    let at = |base: u64, size: u64| Some(Aperture { base, limit: base + (size - 1) });
    Apertures {
        lds: at(1 << 56, 4 << 30),
        scratch: at(2 << 56, 4 << 30),
        gpuvm: None,
        svm: at(2 << 20, (1 << 47) - (2 << 20)),
        mmio: at(0x7f00_0000_0000, 4096),
    }
}

/// It had two CPUs with one level-3 cache, and these are their names.
fn add_host(tree: &mut Tree) {
    tree.put(
        "/cpuinfo",
        "processor\t: 0\nmodel name\t: AMD EPYC\napicid\t\t: 0\n\n\
         processor\t: 1\nmodel name\t: AMD EPYC\napicid\t\t: 1\n\n",
    );
    tree.put_cpu_caches("/node/node0", 2);
}

fn node_values(id: usize, node: &Node) -> Value {
    json!({
        "node": id,
        "status": 0,
        "NumCPUCores": node.cpu_cores_count,
        "NumFComputeCores": node.simd_count,
        "NumMemoryBanks": node.memory_bank_count(&apertures()),
        "NumCaches": node.caches.len(),
        "NumIOLinks": node.links.len(),
        "CComputeIdLo": node.cpu_core_id_base,
        "FComputeIdLo": node.simd_id_base,
        "Capability.Value": node.capability,
        "MaxWavesPerSIMD": node.max_waves_per_simd,
        "LDSSizeInKB": node.lds_size_in_kb,
        "GDSSizeInKB": node.gds_size_in_kb,
        "WaveFrontSize": node.wave_front_size,
        "NumShaderBanks": node.shader_engines,
        "NumArrays": node.simd_arrays_per_engine,
        "NumCUPerArray": node.cu_per_simd_array,
        "NumSIMDPerCU": node.simd_per_cu,
        "MaxSlotsScratchCU": node.max_slots_scratch_cu,
        "EngineId.Value": node.gfx_version.engine_id(node.fw_version),
        "OverrideEngineId.Value": node.gfx_override.map_or(0, |version| version.engine_id(0)),
        "VendorId": node.vendor_id,
        "DeviceId": node.device_id,
        "LocationId": node.location_id,
        "LocalMemSize": node.local_mem_size,
        "MaxEngineClockMhzFCompute": node.max_engine_clk_fcompute,
        "MaxEngineClockMhzCCompute": node.max_engine_clk_ccompute,
        "DrmRenderMinor": node.drm_render_minor,
        "DebugProperties.Value": node.debug_prop,
        "HiveID": node.hive_id,
        "NumSdmaEngines": node.num_sdma_engines,
        "NumSdmaXgmiEngines": node.num_sdma_xgmi_engines,
        "NumSdmaQueuesPerEngine": node.num_sdma_queues_per_engine,
        "NumCpQueues": node.num_cp_queues,
        "NumGws": node.num_gws,
        "Integrated": u32::from(node.integrated),
        "Domain": node.domain,
        "UniqueID": node.unique_id,
        "VGPRSizePerCU": node.vgpr_size_per_cu,
        "SGPRSizePerCU": node.sgpr_size_per_cu,
        "NumXcc": node.num_xcc,
        "KFDGpuID": node.gpu_id,
        "FamilyID": node.family_id,
        "AMDName": node.amd_name.to_string(),
    })
}

fn bank_values(node: usize, index: usize, bank: &MemoryBank) -> Value {
    json!({
        "node": node, "bank": index, "s": 0,
        "heap": bank.heap_type.0,
        "size": bank.size_in_bytes,
        "flags": bank.flags,
        "width": bank.width,
        "clk": bank.mem_clk_max,
        "va": u32::from(bank.virtual_base_address != 0),
    })
}

fn link_values(node: usize, index: usize, link: &IoLink) -> Value {
    json!({
        "node": node, "link": index, "s": 0,
        "type": link.link_type.0,
        "from": link.node_from,
        "to": link.node_to,
        "w": link.weight,
        "minlat": link.min_latency,
        "maxlat": link.max_latency,
        "minbw": link.min_bandwidth,
        "maxbw": link.max_bandwidth,
        "rec": link.recommended_transfer_size,
        "sdma": link.recommended_sdma_engine_id_mask,
        "flags": link.flags,
    })
}

fn cache_values(node: usize, index: usize, cache: &Cache) -> Value {
    // The expected values hold a sum over the 256 words of the map.
    let sum = cache.sibling_map.iter().fold(1_469_598_103_934_665_603u64, |sum, word| {
        (sum ^ u64::from(word)).wrapping_mul(1_099_511_628_211)
    });
    json!({
        "node": node, "cache": index, "s": 0,
        "proc": cache.processor_id_low,
        "level": cache.level,
        "size": cache.size,
        "line": cache.cache_line_size,
        "lpt": cache.cache_lines_per_tag,
        "assoc": cache.association,
        "lat": cache.latency,
        "type": cache.cache_type,
        "sib": sum,
    })
}

/// All values in the order of the expected file, which leaves the caches of CPUs
/// out.
fn values(snapshot: &Snapshot) -> Vec<Value> {
    let system = snapshot.system();
    let mut values = vec![json!({
        "NumNodes": snapshot.nodes().len(),
        "PlatformOem": system.platform_oem as u32,
        "PlatformId": system.platform_id as u32,
        "PlatformRev": system.platform_rev as u32,
    })];
    for (id, node) in snapshot.nodes().iter().enumerate() {
        values.push(node_values(id, node));
        let banks = node.memory_banks(&apertures());
        values.extend(banks.enumerate().map(|(index, bank)| bank_values(id, index, &bank)));
        if node.is_gpu() {
            let caches = node.caches.iter().enumerate();
            values.extend(caches.map(|(index, cache)| cache_values(id, index, cache)));
        }
        let links = node.links.iter().enumerate();
        values.extend(links.map(|(index, link)| link_values(id, index, link)));
    }
    values
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

#[test]
fn every_value_of_the_reference_library() {
    let Some((found, folder)) = captures("mi210-8gpu") else {
        return;
    };
    let mut tree = found[0].tree.clone();
    complete(&mut tree);
    add_host(&mut tree);
    let mut access =
        EveryGpu { info: DeviceInfo { family: 141, ..DeviceInfo::default() }, asked: Vec::new() };
    let snapshot = read_snapshot(&TreeOs::new(tree), &SETTINGS, &mut access).expect("a snapshot");
    let actual = values(&snapshot);
    let text = std::fs::read_to_string(folder.join("mi210-8gpu.expected.jsonl"))
        .expect("the expected values");
    let expected: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line of values")).collect();
    let mut compared = 0;
    for (expected, actual) in expected.iter().zip(&actual) {
        for (name, value) in object(expected) {
            assert_eq!(
                object(actual).get(name),
                Some(value),
                "{name} of {expected} is different in {actual}"
            );
            compared += 1;
        }
    }
    assert_eq!(expected.len(), actual.len());
    assert!(compared > 20_000, "only {compared} values");
}

/// A file's lines as pairs, read without the library's reader.
fn pairs(tree: &Tree, path: &str) -> Map<String, Value> {
    let text = String::from_utf8(tree.files[path].clone()).expect("a text");
    text.lines()
        .filter_map(|line| {
            let (key, value) = line.split_once(' ')?;
            Some((key.to_string(), json!(value.parse::<u64>().ok()?)))
        })
        .collect()
}

/// Compares a snapshot in which no node is hidden with the files that it came
/// from.
fn compare_with_files(tree: &Tree, snapshot: &Snapshot) {
    assert!(snapshot.hidden().is_empty());
    for (id, node) in snapshot.nodes().iter().enumerate() {
        let folder = format!("/topology/nodes/{id}");
        assert_eq!(node.sysfs_node as usize, id);
        let given = pairs(tree, &format!("{folder}/properties"));
        let number = |key: &str| given.get(key).and_then(Value::as_u64).unwrap_or(0);
        for (key, value) in [
            ("cpu_cores_count", u64::from(node.cpu_cores_count)),
            ("simd_count", node.simd_count.into()),
            ("mem_banks_count", node.banks.len() as u64),
            ("cpu_core_id_base", node.cpu_core_id_base.into()),
            ("simd_id_base", node.simd_id_base.into()),
            ("max_waves_per_simd", node.max_waves_per_simd.into()),
            ("lds_size_in_kb", node.lds_size_in_kb.into()),
            ("gds_size_in_kb", node.gds_size_in_kb.into()),
            ("num_gws", node.num_gws.into()),
            ("wave_front_size", node.wave_front_size.into()),
            ("array_count", node.array_count.into()),
            ("simd_arrays_per_engine", node.simd_arrays_per_engine.into()),
            ("cu_per_simd_array", node.cu_per_simd_array.into()),
            ("simd_per_cu", node.simd_per_cu.into()),
            ("max_slots_scratch_cu", node.max_slots_scratch_cu.into()),
            ("gfx_target_version", node.gfx_version.target_version().into()),
            ("vendor_id", node.vendor_id.into()),
            ("device_id", node.device_id.into()),
            ("location_id", node.location_id.into()),
            ("domain", node.domain.into()),
            ("drm_render_minor", node.drm_render_minor.into()),
            ("hive_id", node.hive_id),
            ("num_sdma_engines", node.num_sdma_engines.into()),
            ("num_sdma_xgmi_engines", node.num_sdma_xgmi_engines.into()),
            ("num_sdma_queues_per_engine", node.num_sdma_queues_per_engine.into()),
            ("num_cp_queues", node.num_cp_queues.into()),
            ("max_engine_clk_fcompute", node.max_engine_clk_fcompute.into()),
            ("max_engine_clk_ccompute", node.max_engine_clk_ccompute.into()),
            ("local_mem_size", node.local_mem_size),
            ("fw_version", node.fw_version.into()),
            ("sdma_fw_version", node.sdma_fw_version.into()),
            ("capability", node.capability.into()),
            ("debug_prop", node.debug_prop),
            ("unique_id", node.unique_id),
            ("cwsr_size", node.cwsr_size.into()),
            ("ctl_stack_size", node.ctl_stack_size.into()),
        ] {
            assert_eq!(value, number(key), "{key} of node {id}");
        }
        if node.is_gpu() {
            assert_eq!(u64::from(node.num_xcc), number("num_xcc").max(1));
            assert_eq!(node.caches.len() as u64, number("caches_count"));
        }
        let links = number("io_links_count") + number("p2p_links_count");
        let mut files = Vec::new();
        for (name, count) in
            [("io_links", number("io_links_count")), ("p2p_links", number("p2p_links_count"))]
        {
            for index in 0..count {
                let path = format!("{folder}/{name}/{index}/properties");
                if tree.files.contains_key(&path) {
                    files.push(pairs(tree, &path));
                }
            }
        }
        assert!(files.len() as u64 <= links);
        assert_eq!(node.links.len(), files.len());
        for (link, file) in node.links.iter().zip(&files) {
            for (key, value) in [
                ("type", link.link_type.0),
                ("node_from", link.node_from),
                ("node_to", link.node_to),
                ("weight", link.weight),
                ("min_bandwidth", link.min_bandwidth),
                ("max_bandwidth", link.max_bandwidth),
                ("recommended_sdma_engine_id_mask", link.recommended_sdma_engine_id_mask),
                ("flags", link.flags),
            ] {
                let given = file.get(key).cloned().unwrap_or(json!(0));
                assert_eq!(given, json!(value), "{key} of a link of node {id}");
            }
        }
    }
}

#[test]
fn every_capture_is_what_its_files_say() {
    for archive in ["mi210-8gpu", "mi300x-cpx-64gpu", "cpu-only-real-driver"] {
        let Some((found, _)) = captures(archive) else {
            return;
        };
        for mut capture in found {
            complete(&mut capture.tree);
            let os = TreeOs::new(capture.tree.clone());
            let snapshot = read_snapshot(&os, &SETTINGS, &mut EveryGpu::default())
                .unwrap_or_else(|error| panic!("{archive} {}: {error}", capture.name));
            assert!(snapshot.settled());
            compare_with_files(&capture.tree, &snapshot);
        }
    }
}

#[test]
fn the_64_partitions_cost_one_read_a_file() {
    let Some((found, _)) = captures("mi300x-cpx-64gpu") else {
        return;
    };
    let mut tree = found[0].tree.clone();
    complete(&mut tree);
    let files = tree.files.len() as u32;
    let os = TreeOs::new(tree);
    let snapshot = read_snapshot(&os, &SETTINGS, &mut EveryGpu::default()).expect("a snapshot");
    assert_eq!(snapshot.nodes().len(), 65);
    for (path, count) in os.reads() {
        let most = if path == "/topology/generation_id" { 2 } else { 1 };
        assert!(count <= most, "{path} was read {count} times");
    }
    let folders = os.listed();
    let in_tree: Vec<&String> =
        folders.keys().filter(|folder| folder.starts_with("/topology")).collect();
    assert_eq!(in_tree, ["/topology/nodes"]);
    // A file that a count promises and that is not there costs one.
    let most = files * 3 + 200;
    assert!(os.system_calls() <= most, "{} system calls for {files} files", os.system_calls());
    assert_eq!((os.other_calls(), os.slept()), (0, 0));
}
