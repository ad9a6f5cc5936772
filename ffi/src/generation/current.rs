//! The structures of 2026 that differ from the older generations.

use core::ffi::c_void;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::address::{address_of, pointer_const, pointer_mut};
use super::{Decode, Encode, internal};
use crate::types::{
    HSA_CAPABILITY, HSA_CAPABILITY2, HSA_CPU_SIBLINGS, HSA_DEBUG_PROPERTIES, HSA_ENGINE_ID,
    HSA_ENGINE_VERSION, HSA_IOLINKTYPE, HSA_LINKPROPERTY, HSA_PUBLIC_NAME_SIZE, HSA_QUEUEID,
    HsaCacheType, HsaUserContextSaveAreaHeader,
};

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaNodeProperties {
    /// CPU cores; 0 on a node without a CPU.
    pub NumCPUCores: u32,
    /// SIMD units; 0 on a node without a GPU.
    pub NumFComputeCores: u32,
    /// Cores of a neural processor.
    pub NumNeuralCores: u32,
    /// Memory banks, with those that the library adds for a GPU.
    pub NumMemoryBanks: u32,
    /// Caches.
    pub NumCaches: u32,
    /// Links that start here, direct and indirect.
    pub NumIOLinks: u32,
    /// Lowest id of a CPU core.
    pub CComputeIdLo: u32,
    /// Lowest id of a SIMD unit.
    pub FComputeIdLo: u32,
    /// What the node can do.
    pub Capability: HSA_CAPABILITY,
    /// More of what the node can do.
    pub Capability2: HSA_CAPABILITY2,
    /// Waves that a SIMD unit holds.
    pub MaxWavesPerSIMD: u32,
    /// Local data share of a compute unit, in KiB.
    pub LDSSizeInKB: u32,
    /// Global data share, in KiB.
    pub GDSSizeInKB: u32,
    /// Lanes of a wave.
    pub WaveFrontSize: u32,
    /// Shader engines.
    pub NumShaderBanks: u32,
    /// Shader arrays of an engine.
    pub NumArrays: u32,
    /// Compute units of a shader array.
    pub NumCUPerArray: u32,
    /// SIMD units of a compute unit.
    pub NumSIMDPerCU: u32,
    /// Waves of a compute unit that may have scratch memory.
    pub MaxSlotsScratchCU: u32,
    /// Instruction set and compute firmware.
    pub EngineId: HSA_ENGINE_ID,
    /// Instruction set that the environment puts in place of `EngineId`; 0 without.
    pub OverrideEngineId: HSA_ENGINE_ID,
    /// PCI vendor; 0 on a node without a GPU.
    pub VendorId: u16,
    /// PCI device; 0 on a node without a GPU.
    pub DeviceId: u16,
    /// PCI bus in bits 8 to 15, device in 3 to 7, function in 0 to 2.
    pub LocationId: u32,
    /// Device memory, in bytes.
    pub LocalMemSize: u64,
    /// Highest clock of the GPU, in MHz.
    pub MaxEngineClockMhzFCompute: u32,
    /// Highest clock of the CPU, in MHz.
    pub MaxEngineClockMhzCCompute: u32,
    /// The render node is `/dev/dri/renderD` with this number.
    pub DrmRenderMinor: i32,
    /// Name for people, UTF-16, ends with a zero.
    pub MarketingName: [u16; HSA_PUBLIC_NAME_SIZE],
    /// Name of the chip, ASCII, ends with a zero.
    pub AMDName: [u8; HSA_PUBLIC_NAME_SIZE],
    /// Other firmware.
    pub uCodeEngineVersions: HSA_ENGINE_VERSION,
    /// What the debugger may rely on.
    pub DebugProperties: HSA_DEBUG_PROPERTIES,
    /// Devices with the same id, if not 0, are joined by XGMI.
    pub HiveID: u64,
    /// SDMA engines for the host link.
    pub NumSdmaEngines: u32,
    /// SDMA engines for XGMI links.
    pub NumSdmaXgmiEngines: u32,
    /// Queues of an SDMA engine.
    pub NumSdmaQueuesPerEngine: u8,
    /// Compute queues.
    pub NumCpQueues: u8,
    /// Slots for global wave synchronisation.
    pub NumGws: u8,
    /// Whether CPU and GPU share memory.
    pub Integrated: u8,
    /// PCI domain.
    pub Domain: u32,
    /// Serial number; 0 where there is none.
    pub UniqueID: u64,
    /// Vector registers of a compute unit, in bytes.
    pub VGPRSizePerCU: u32,
    /// Scalar registers of a compute unit, in bytes.
    pub SGPRSizePerCU: u32,
    /// Compute dies of the node.
    pub NumXcc: u32,
    /// The kernel driver's id of the GPU; 0 on a node without a GPU.
    pub KFDGpuID: u32,
    /// Family of the chip.
    pub FamilyID: u32,
    /// Memory to save a queue, in bytes; 0 where the kernel does not tell.
    pub CwsrSize: u32,
    /// Its part for the control stack, in bytes; 0 where the kernel does not tell.
    pub CtlStackSize: u32,
    /// Lower half of the id that Windows gives.
    pub LuidLowPart: u32,
    /// Upper half of the id that Windows gives.
    pub LuidHighPart: u32,
    /// Rate of the constant clock, in kHz.
    pub WallClockKHz: u64,
    /// Whether handles on the fabric between machines exist.
    pub FabricHandleSupported: u32,
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
            CwsrSize: internal.cwsr_size,
            CtlStackSize: internal.ctl_stack_size,
            LuidLowPart: internal.luid_low_part,
            LuidHighPart: internal.luid_high_part,
            WallClockKHz: internal.wall_clock_khz,
            FabricHandleSupported: internal.fabric_handle_supported,
        }
    }
}

/// A cache of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaCacheProperties {
    /// Lowest id of a processor that the cache serves.
    pub ProcessorIdLow: u32,
    /// 1 is closest to the processor.
    pub CacheLevel: u32,
    /// Size in KiB.
    pub CacheSize: u32,
    /// Line in bytes.
    pub CacheLineSize: u32,
    /// Lines of a tag.
    pub CacheLinesPerTag: u32,
    /// Ways; 0 where unknown.
    pub CacheAssociativity: u32,
    /// Latency in ns; 0 where unknown.
    pub CacheLatency: u32,
    /// What the cache serves.
    pub CacheType: HsaCacheType,
    /// Which processors share the cache, from `ProcessorIdLow` on.
    pub SiblingMap: [u32; HSA_CPU_SIBLINGS],
    /// Most of the cache that may be set aside for data that persists, in bytes.
    pub PersistingCacheSizeMax: u32,
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
            PersistingCacheSizeMax: internal.persisting_cache_size_max,
        }
    }
}

/// A way from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaIoLinkProperties {
    /// What joins the nodes.
    pub IoLinkType: HSA_IOLINKTYPE,
    /// Major version of the link.
    pub VersionMajor: u32,
    /// Minor version of the link.
    pub VersionMinor: u32,
    /// Node where it starts.
    pub NodeFrom: u32,
    /// Node where it ends.
    pub NodeTo: u32,
    /// Cost of going this way.
    pub Weight: u32,
    /// Least latency in ns; 0 where unknown.
    pub MinimumLatency: u32,
    /// Greatest latency in ns; 0 where unknown.
    pub MaximumLatency: u32,
    /// Least rate in MB/s; 0 where unknown.
    pub MinimumBandwidth: u32,
    /// Greatest rate in MB/s; 0 where unknown.
    pub MaximumBandwidth: u32,
    /// Transfer size that serves it best, in bytes; 0 where unknown.
    pub RecTransferSize: u32,
    /// SDMA engines that serve it best, one bit each; 0 where unknown.
    pub RecSdmaEngIdMask: u32,
    /// What the link lacks.
    pub Flags: HSA_LINKPROPERTY,
}

impl Encode<internal::IoLinkProperties> for HsaIoLinkProperties {
    fn encode(internal: &internal::IoLinkProperties) -> Self {
        Self {
            IoLinkType: internal.io_link_type,
            VersionMajor: internal.version_major,
            VersionMinor: internal.version_minor,
            NodeFrom: internal.node_from,
            NodeTo: internal.node_to,
            Weight: internal.weight,
            MinimumLatency: internal.minimum_latency,
            MaximumLatency: internal.maximum_latency,
            MinimumBandwidth: internal.minimum_bandwidth,
            MaximumBandwidth: internal.maximum_bandwidth,
            RecTransferSize: internal.rec_transfer_size,
            RecSdmaEngIdMask: internal.rec_sdma_eng_id_mask,
            Flags: internal.flags,
        }
    }
}

/// The saved state of a queue that does not run. The library owns what the pointers name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaQueueInfo {
    /// Why the queue stopped.
    pub QueueDetailError: u32,
    /// Kind of the queue.
    pub QueueTypeExtended: u32,
    /// Bits of `CUMaskInfo`.
    pub NumCUAssigned: u32,
    /// Compute units that serve the queue, one bit each; NULL without a mask.
    pub CUMaskInfo: *mut u32,
    /// Saved waves.
    pub UserContextSaveArea: *mut u32,
    /// Size of the saved waves.
    pub SaveAreaSizeInBytes: u64,
    /// Top of the saved control stack.
    pub ControlStackTop: *mut u32,
    /// Size of the saved control stack.
    pub ControlStackUsedInBytes: u64,
    /// First bytes of the memory that all of this is in.
    pub SaveAreaHeader: *mut HsaUserContextSaveAreaHeader,
    /// Zero.
    pub Reserved2: u64,
    /// Size of the memory that all of this is in, in bytes.
    pub SaveAreaAllocSize: u64,
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
            SaveAreaAllocSize: internal.save_area_alloc_size,
        }
    }
}

/// What producer and queue share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaQueueResource {
    /// The queue.
    pub QueueId: HSA_QUEUEID,
    /// Out: address of the doorbell.
    pub QueueDoorBell: u64,
    /// Address of the write pointer: in for AQL, else out.
    pub QueueWptrValue: u64,
    /// Address of the read pointer: in for AQL, else out.
    pub QueueRptrValue: u64,
    /// In: where to report why the queue stopped; NULL without. Volatile.
    pub ErrorReason: *mut i64,
    /// Address of the progress fence (Windows).
    pub SdmaProgressFenceVA: u64,
    /// Bytes to leave free after each submission (Windows).
    pub SdmaHwQueueEpilogueBytes: u32,
}

impl Encode<internal::QueueResource> for HsaQueueResource {
    fn encode(internal: &internal::QueueResource) -> Self {
        Self {
            QueueId: internal.queue_id,
            QueueDoorBell: internal.doorbell,
            QueueWptrValue: internal.write_pointer,
            QueueRptrValue: internal.read_pointer,
            ErrorReason: pointer_mut(internal.error_reason),
            SdmaProgressFenceVA: internal.sdma_progress_fence_va,
            SdmaHwQueueEpilogueBytes: internal.sdma_hw_queue_epilogue_bytes,
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
            sdma_progress_fence_va: self.SdmaProgressFenceVA,
            sdma_hw_queue_epilogue_bytes: self.SdmaHwQueueEpilogueBytes,
        }
    }
}

/// An imported buffer of a graphics library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaGraphicsResourceInfo {
    /// Out: address of the memory, or a handle.
    pub MemoryAddress: *mut c_void,
    /// Out: size.
    pub SizeInBytes: u64,
    /// Out: what the exporter attached. The library owns it.
    pub Metadata: *const c_void,
    /// Out: size of what the exporter attached.
    pub MetadataSizeInBytes: u32,
    /// Out: node whose memory it is.
    pub NodeId: u32,
    /// In: size, where the handle does not tell (Windows).
    pub SizeHintInBytes: u64,
}

impl Encode<internal::GraphicsResourceInfo> for HsaGraphicsResourceInfo {
    fn encode(internal: &internal::GraphicsResourceInfo) -> Self {
        Self {
            MemoryAddress: pointer_mut(internal.memory_address),
            SizeInBytes: internal.size_in_bytes,
            Metadata: pointer_const(internal.metadata),
            MetadataSizeInBytes: internal.metadata_size_in_bytes,
            NodeId: internal.node_id,
            SizeHintInBytes: internal.size_hint_in_bytes,
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
            size_hint_in_bytes: self.SizeHintInBytes,
        }
    }
}
