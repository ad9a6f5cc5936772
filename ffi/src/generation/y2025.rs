//! The structures of August 2025 that differ from those of 2026.

use core::ffi::c_void;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::address::{address_of, pointer_const, pointer_mut};
#[cfg(doc)]
use super::current;
use super::{Decode, Encode, internal};
use crate::types::{
    HSA_CAPABILITY, HSA_CAPABILITY2, HSA_CPU_SIBLINGS, HSA_DEBUG_PROPERTIES, HSA_ENGINE_ID,
    HSA_ENGINE_VERSION, HSA_PUBLIC_NAME_SIZE, HSA_QUEUEID, HsaCacheType,
    HsaUserContextSaveAreaHeader,
};

pub use super::current::HsaIoLinkProperties;

/// A node. The fields are those of [`current::HsaNodeProperties`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
#[expect(missing_docs, reason = "documented at the newest generation")]
pub struct HsaNodeProperties {
    pub NumCPUCores: u32,
    pub NumFComputeCores: u32,
    pub NumNeuralCores: u32,
    pub NumMemoryBanks: u32,
    pub NumCaches: u32,
    pub NumIOLinks: u32,
    pub CComputeIdLo: u32,
    pub FComputeIdLo: u32,
    pub Capability: HSA_CAPABILITY,
    pub Capability2: HSA_CAPABILITY2,
    pub MaxWavesPerSIMD: u32,
    pub LDSSizeInKB: u32,
    pub GDSSizeInKB: u32,
    pub WaveFrontSize: u32,
    pub NumShaderBanks: u32,
    pub NumArrays: u32,
    pub NumCUPerArray: u32,
    pub NumSIMDPerCU: u32,
    pub MaxSlotsScratchCU: u32,
    pub EngineId: HSA_ENGINE_ID,
    pub OverrideEngineId: HSA_ENGINE_ID,
    pub VendorId: u16,
    pub DeviceId: u16,
    pub LocationId: u32,
    pub LocalMemSize: u64,
    pub MaxEngineClockMhzFCompute: u32,
    pub MaxEngineClockMhzCCompute: u32,
    pub DrmRenderMinor: i32,
    pub MarketingName: [u16; HSA_PUBLIC_NAME_SIZE],
    pub AMDName: [u8; HSA_PUBLIC_NAME_SIZE],
    pub uCodeEngineVersions: HSA_ENGINE_VERSION,
    pub DebugProperties: HSA_DEBUG_PROPERTIES,
    pub HiveID: u64,
    pub NumSdmaEngines: u32,
    pub NumSdmaXgmiEngines: u32,
    pub NumSdmaQueuesPerEngine: u8,
    pub NumCpQueues: u8,
    pub NumGws: u8,
    pub Integrated: u8,
    pub Domain: u32,
    pub UniqueID: u64,
    pub VGPRSizePerCU: u32,
    pub SGPRSizePerCU: u32,
    pub NumXcc: u32,
    pub KFDGpuID: u32,
    pub FamilyID: u32,
}

impl Encode<internal::NodeProperties> for HsaNodeProperties {
    fn encode(internal: &internal::NodeProperties) -> Self {
        Self {
            NumCPUCores: internal.num_cpu_cores,
            NumFComputeCores: internal.num_f_compute_cores,
            NumNeuralCores: internal.num_neural_cores,
            NumMemoryBanks: internal.num_memory_banks,
            NumCaches: internal.num_caches,
            NumIOLinks: internal.num_io_links,
            CComputeIdLo: internal.c_compute_id_lo,
            FComputeIdLo: internal.f_compute_id_lo,
            Capability: internal.capability,
            Capability2: internal.capability2,
            MaxWavesPerSIMD: internal.max_waves_per_simd,
            LDSSizeInKB: internal.lds_size_in_kb,
            GDSSizeInKB: internal.gds_size_in_kb,
            WaveFrontSize: internal.wave_front_size,
            NumShaderBanks: internal.num_shader_banks,
            NumArrays: internal.num_arrays,
            NumCUPerArray: internal.num_cu_per_array,
            NumSIMDPerCU: internal.num_simd_per_cu,
            MaxSlotsScratchCU: internal.max_slots_scratch_cu,
            EngineId: internal.engine_id,
            OverrideEngineId: internal.override_engine_id,
            VendorId: internal.vendor_id,
            DeviceId: internal.device_id,
            LocationId: internal.location_id,
            LocalMemSize: internal.local_mem_size,
            MaxEngineClockMhzFCompute: internal.max_engine_clock_mhz_f_compute,
            MaxEngineClockMhzCCompute: internal.max_engine_clock_mhz_c_compute,
            DrmRenderMinor: internal.drm_render_minor,
            MarketingName: internal.marketing_name,
            AMDName: internal.amd_name,
            uCodeEngineVersions: internal.ucode_engine_versions,
            DebugProperties: internal.debug_properties,
            HiveID: internal.hive_id,
            NumSdmaEngines: internal.num_sdma_engines,
            NumSdmaXgmiEngines: internal.num_sdma_xgmi_engines,
            NumSdmaQueuesPerEngine: internal.num_sdma_queues_per_engine,
            NumCpQueues: internal.num_cp_queues,
            NumGws: internal.num_gws,
            Integrated: internal.integrated,
            Domain: internal.domain,
            UniqueID: internal.unique_id,
            VGPRSizePerCU: internal.vgpr_size_per_cu,
            SGPRSizePerCU: internal.sgpr_size_per_cu,
            NumXcc: internal.num_xcc,
            KFDGpuID: internal.kfd_gpu_id,
            FamilyID: internal.family_id,
        }
    }
}

/// A cache of a node. The fields are those of [`current::HsaCacheProperties`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[expect(missing_docs, reason = "documented at the newest generation")]
pub struct HsaCacheProperties {
    pub ProcessorIdLow: u32,
    pub CacheLevel: u32,
    pub CacheSize: u32,
    pub CacheLineSize: u32,
    pub CacheLinesPerTag: u32,
    pub CacheAssociativity: u32,
    pub CacheLatency: u32,
    pub CacheType: HsaCacheType,
    pub SiblingMap: [u32; HSA_CPU_SIBLINGS],
}

impl Encode<internal::CacheProperties> for HsaCacheProperties {
    fn encode(internal: &internal::CacheProperties) -> Self {
        Self {
            ProcessorIdLow: internal.processor_id_low,
            CacheLevel: internal.cache_level,
            CacheSize: internal.cache_size,
            CacheLineSize: internal.cache_line_size,
            CacheLinesPerTag: internal.cache_lines_per_tag,
            CacheAssociativity: internal.cache_associativity,
            CacheLatency: internal.cache_latency,
            CacheType: internal.cache_type,
            SiblingMap: internal.sibling_map,
        }
    }
}

/// The saved state of a queue that does not run. The library owns what the pointers name. The fields are those of [`current::HsaQueueInfo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
#[expect(missing_docs, reason = "documented at the newest generation")]
pub struct HsaQueueInfo {
    pub QueueDetailError: u32,
    pub QueueTypeExtended: u32,
    pub NumCUAssigned: u32,
    pub CUMaskInfo: *mut u32,
    pub UserContextSaveArea: *mut u32,
    pub SaveAreaSizeInBytes: u64,
    pub ControlStackTop: *mut u32,
    pub ControlStackUsedInBytes: u64,
    pub SaveAreaHeader: *mut HsaUserContextSaveAreaHeader,
    pub Reserved2: u64,
}

impl Encode<internal::QueueInfo> for HsaQueueInfo {
    fn encode(internal: &internal::QueueInfo) -> Self {
        Self {
            QueueDetailError: internal.queue_detail_error,
            QueueTypeExtended: internal.queue_type_extended,
            NumCUAssigned: internal.num_cu_assigned,
            CUMaskInfo: pointer_mut(internal.cu_mask_info),
            UserContextSaveArea: pointer_mut(internal.user_context_save_area),
            SaveAreaSizeInBytes: internal.save_area_size_in_bytes,
            ControlStackTop: pointer_mut(internal.control_stack_top),
            ControlStackUsedInBytes: internal.control_stack_used_in_bytes,
            SaveAreaHeader: pointer_mut(internal.save_area_header),
            Reserved2: 0,
        }
    }
}

/// What producer and queue share. The fields are those of [`current::HsaQueueResource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
#[expect(missing_docs, reason = "documented at the newest generation")]
pub struct HsaQueueResource {
    pub QueueId: HSA_QUEUEID,
    pub QueueDoorBell: u64,
    pub QueueWptrValue: u64,
    pub QueueRptrValue: u64,
    pub ErrorReason: *mut i64,
}

impl Encode<internal::QueueResource> for HsaQueueResource {
    fn encode(internal: &internal::QueueResource) -> Self {
        Self {
            QueueId: internal.queue_id,
            QueueDoorBell: internal.doorbell,
            QueueWptrValue: internal.write_pointer,
            QueueRptrValue: internal.read_pointer,
            ErrorReason: pointer_mut(internal.error_reason),
        }
    }
}

impl Decode<internal::QueueResource> for HsaQueueResource {
    fn decode(&self) -> internal::QueueResource {
        internal::QueueResource {
            queue_id: self.QueueId,
            doorbell: self.QueueDoorBell,
            write_pointer: self.QueueWptrValue,
            read_pointer: self.QueueRptrValue,
            error_reason: address_of(self.ErrorReason),
            sdma_progress_fence_va: 0,
            sdma_hw_queue_epilogue_bytes: 0,
        }
    }
}

/// An imported buffer of a graphics library. The fields are those of [`current::HsaGraphicsResourceInfo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
#[expect(missing_docs, reason = "documented at the newest generation")]
pub struct HsaGraphicsResourceInfo {
    pub MemoryAddress: *mut c_void,
    pub SizeInBytes: u64,
    pub Metadata: *const c_void,
    pub MetadataSizeInBytes: u32,
    pub NodeId: u32,
}

impl Encode<internal::GraphicsResourceInfo> for HsaGraphicsResourceInfo {
    fn encode(internal: &internal::GraphicsResourceInfo) -> Self {
        Self {
            MemoryAddress: pointer_mut(internal.memory_address),
            SizeInBytes: internal.size_in_bytes,
            Metadata: pointer_const(internal.metadata),
            MetadataSizeInBytes: internal.metadata_size_in_bytes,
            NodeId: internal.node_id,
        }
    }
}

impl Decode<internal::GraphicsResourceInfo> for HsaGraphicsResourceInfo {
    fn decode(&self) -> internal::GraphicsResourceInfo {
        internal::GraphicsResourceInfo {
            memory_address: address_of(self.MemoryAddress),
            size_in_bytes: self.SizeInBytes,
            metadata: address_of(self.Metadata),
            metadata_size_in_bytes: self.MetadataSizeInBytes,
            node_id: self.NodeId,
            size_hint_in_bytes: 0,
        }
    }
}
