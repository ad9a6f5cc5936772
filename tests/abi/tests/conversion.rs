//! Each field of an internal form arrives at the place that the tables give for its C name.

use std::mem::size_of;

use hsakmt::generation::{Current, Debian, Encode, Generation, Y2025, internal};
use hsakmt::types::*;
use hsakmt_abi_tests::facts;

/// The bytes of a structure; it must be free of padding, as those of the ABI are.
fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    let start = std::ptr::from_ref(value).cast::<u8>();
    // SAFETY: the bytes of `value`, which has no padding (`tests/layout.rs` proves it).
    unsafe { std::slice::from_raw_parts(start, size_of::<T>()) }.to_vec()
}

/// Expects the value `numbers[name]` at the place of each field, in its first bytes; 0 where the
/// field is reserved.
fn assert_places<I, T: Encode<I>>(
    generation: u32,
    record: &str,
    internal: &I,
    numbers: &[(&str, u64)],
) {
    let bytes = bytes_of(&T::encode(internal));
    let facts = facts();
    let mut fields = 0;
    for row in &facts.fields {
        if row.record != record || !row.generations.has(generation) || row.path.contains('.') {
            continue;
        }
        let number = numbers.iter().find(|(name, _)| *name == row.path);
        let reserved = row.path.starts_with("Reserved").then_some(0);
        let expected = number.map(|(_, number)| *number).or(reserved);
        let expected = expected.unwrap_or_else(|| panic!("no number for {}", row.path));
        let (start, size) = (row.offset as usize, (row.size as usize).min(8));
        // An array is filled with its number, so its first element is enough.
        let size = match row.path.as_str() {
            "MarketingName" => 2,
            "AMDName" => 1,
            "SiblingMap" => 4,
            _ => size,
        };
        let mut word = [0; 8];
        word[..size].copy_from_slice(&bytes[start..start + size]);
        assert_eq!(u64::from_le_bytes(word), expected, "{generation} {record}.{}", row.path);
        fields += 1;
    }
    assert!(fields > 4, "{generation} {record}: only {fields} fields");
}

macro_rules! numbered {
    ($type:ident { $($field:ident: $c_name:literal = $wrap:expr,)* }) => {{
        let mut number = 0;
        let mut numbers: Vec<(&'static str, u64)> = Vec::new();
        let mut next = |name: &'static str| {
            number += 1;
            numbers.push((name, number));
            number
        };
        let value = internal::$type { $($field: ($wrap)(next($c_name)),)* };
        (value, numbers)
    }};
}

fn word(number: u64) -> u32 {
    number.try_into().unwrap()
}

fn half(number: u64) -> u16 {
    number.try_into().unwrap()
}

fn byte(number: u64) -> u8 {
    number.try_into().unwrap()
}

fn long(number: u64) -> u64 {
    number
}

fn node() -> (internal::NodeProperties, Vec<(&'static str, u64)>) {
    numbered!(NodeProperties {
        num_cpu_cores: "NumCPUCores" = word,
        num_f_compute_cores: "NumFComputeCores" = word,
        num_neural_cores: "NumNeuralCores" = word,
        num_memory_banks: "NumMemoryBanks" = word,
        num_caches: "NumCaches" = word,
        num_io_links: "NumIOLinks" = word,
        c_compute_id_lo: "CComputeIdLo" = word,
        f_compute_id_lo: "FComputeIdLo" = word,
        capability: "Capability" = |n| HSA_CAPABILITY { Value: word(n) },
        capability2: "Capability2" = |n| HSA_CAPABILITY2 { Value: word(n) },
        max_waves_per_simd: "MaxWavesPerSIMD" = word,
        lds_size_in_kb: "LDSSizeInKB" = word,
        gds_size_in_kb: "GDSSizeInKB" = word,
        wave_front_size: "WaveFrontSize" = word,
        num_shader_banks: "NumShaderBanks" = word,
        num_arrays: "NumArrays" = word,
        num_cu_per_array: "NumCUPerArray" = word,
        num_simd_per_cu: "NumSIMDPerCU" = word,
        max_slots_scratch_cu: "MaxSlotsScratchCU" = word,
        engine_id: "EngineId" = |n| HSA_ENGINE_ID { Value: word(n) },
        override_engine_id: "OverrideEngineId" = |n| HSA_ENGINE_ID { Value: word(n) },
        vendor_id: "VendorId" = half,
        device_id: "DeviceId" = half,
        location_id: "LocationId" = word,
        local_mem_size: "LocalMemSize" = long,
        max_engine_clock_mhz_f_compute: "MaxEngineClockMhzFCompute" = word,
        max_engine_clock_mhz_c_compute: "MaxEngineClockMhzCCompute" = word,
        drm_render_minor: "DrmRenderMinor" = |n| word(n) as i32,
        marketing_name: "MarketingName" = |n| [half(n); HSA_PUBLIC_NAME_SIZE],
        amd_name: "AMDName" = |n| [byte(n); HSA_PUBLIC_NAME_SIZE],
        ucode_engine_versions: "uCodeEngineVersions" = |n| HSA_ENGINE_VERSION { Value: word(n) },
        debug_properties: "DebugProperties" = |n| HSA_DEBUG_PROPERTIES { Value: n },
        hive_id: "HiveID" = long,
        num_sdma_engines: "NumSdmaEngines" = word,
        num_sdma_xgmi_engines: "NumSdmaXgmiEngines" = word,
        num_sdma_queues_per_engine: "NumSdmaQueuesPerEngine" = byte,
        num_cp_queues: "NumCpQueues" = byte,
        num_gws: "NumGws" = byte,
        integrated: "Integrated" = byte,
        domain: "Domain" = word,
        unique_id: "UniqueID" = long,
        vgpr_size_per_cu: "VGPRSizePerCU" = word,
        sgpr_size_per_cu: "SGPRSizePerCU" = word,
        num_xcc: "NumXcc" = word,
        kfd_gpu_id: "KFDGpuID" = word,
        family_id: "FamilyID" = word,
        cwsr_size: "CwsrSize" = word,
        ctl_stack_size: "CtlStackSize" = word,
        luid_low_part: "LuidLowPart" = word,
        luid_high_part: "LuidHighPart" = word,
        wall_clock_khz: "WallClockKHz" = long,
        fabric_handle_supported: "FabricHandleSupported" = word,
    })
}

fn every_place_of<G: Generation>() {
    let generation = G::ABI_GENERATION;

    let (mut value, numbers) = node();
    if generation == 523 {
        // That generation has one field for both, see its unit test.
        value.override_engine_id.Value = 0;
    }
    let record = "HsaNodeProperties";
    assert_places::<_, G::NodeProperties>(generation, record, &value, &numbers);

    let (value, numbers) = numbered!(CacheProperties {
        processor_id_low: "ProcessorIdLow" = word,
        cache_level: "CacheLevel" = word,
        cache_size: "CacheSize" = word,
        cache_line_size: "CacheLineSize" = word,
        cache_lines_per_tag: "CacheLinesPerTag" = word,
        cache_associativity: "CacheAssociativity" = word,
        cache_latency: "CacheLatency" = word,
        cache_type: "CacheType" = |n| HsaCacheType { Value: word(n) },
        sibling_map: "SiblingMap" = |n| [word(n); HSA_CPU_SIBLINGS],
        persisting_cache_size_max: "PersistingCacheSizeMax" = word,
    });
    let record = "HsaCacheProperties";
    assert_places::<_, G::CacheProperties>(generation, record, &value, &numbers);

    let (value, numbers) = numbered!(IoLinkProperties {
        io_link_type: "IoLinkType" = |n| HSA_IOLINKTYPE(word(n)),
        version_major: "VersionMajor" = word,
        version_minor: "VersionMinor" = word,
        node_from: "NodeFrom" = word,
        node_to: "NodeTo" = word,
        weight: "Weight" = word,
        minimum_latency: "MinimumLatency" = word,
        maximum_latency: "MaximumLatency" = word,
        minimum_bandwidth: "MinimumBandwidth" = word,
        maximum_bandwidth: "MaximumBandwidth" = word,
        rec_transfer_size: "RecTransferSize" = word,
        rec_sdma_eng_id_mask: "RecSdmaEngIdMask" = word,
        flags: "Flags" = |n| HSA_LINKPROPERTY { Value: word(n) },
    });
    let record = "HsaIoLinkProperties";
    assert_places::<_, G::IoLinkProperties>(generation, record, &value, &numbers);

    let (value, numbers) = numbered!(QueueInfo {
        queue_detail_error: "QueueDetailError" = word,
        queue_type_extended: "QueueTypeExtended" = word,
        num_cu_assigned: "NumCUAssigned" = word,
        cu_mask_info: "CUMaskInfo" = long,
        user_context_save_area: "UserContextSaveArea" = long,
        save_area_size_in_bytes: "SaveAreaSizeInBytes" = long,
        control_stack_top: "ControlStackTop" = long,
        control_stack_used_in_bytes: "ControlStackUsedInBytes" = long,
        save_area_header: "SaveAreaHeader" = long,
        save_area_alloc_size: "SaveAreaAllocSize" = long,
    });
    assert_places::<_, G::QueueInfo>(generation, "HsaQueueInfo", &value, &numbers);

    let (value, mut numbers) = numbered!(QueueResource {
        queue_id: "QueueId" = long,
        doorbell: "QueueDoorBell" = long,
        write_pointer: "QueueWptrValue" = long,
        read_pointer: "QueueRptrValue" = long,
        error_reason: "ErrorReason" = long,
        sdma_progress_fence_va: "SdmaProgressFenceVA" = long,
        sdma_hw_queue_epilogue_bytes: "SdmaHwQueueEpilogueBytes" = word,
    });
    // The pointers share their place with the integers.
    numbers.extend([("Queue_DoorBell", 2), ("Queue_DoorBell_aql", 2)]);
    numbers.extend([("Queue_write_ptr", 3), ("Queue_write_ptr_aql", 3)]);
    numbers.extend([("Queue_read_ptr", 4), ("Queue_read_ptr_aql", 4)]);
    let record = "HsaQueueResource";
    assert_places::<_, G::QueueResource>(generation, record, &value, &numbers);

    let (value, numbers) = numbered!(GraphicsResourceInfo {
        memory_address: "MemoryAddress" = long,
        size_in_bytes: "SizeInBytes" = long,
        metadata: "Metadata" = long,
        metadata_size_in_bytes: "MetadataSizeInBytes" = word,
        node_id: "NodeId" = word,
        size_hint_in_bytes: "SizeHintInBytes" = long,
    });
    let record = "HsaGraphicsResourceInfo";
    assert_places::<_, G::GraphicsResourceInfo>(generation, record, &value, &numbers);
}

#[test]
fn fields_arrive_at_their_place_in_5_2_3() {
    every_place_of::<Debian>();
}

#[test]
fn fields_arrive_at_their_place_in_2025() {
    every_place_of::<Y2025>();
}

#[test]
fn fields_arrive_at_their_place_in_2026() {
    every_place_of::<Current>();
}
