//! The structures of 5.2.3 that differ from those of the later generations.

use core::ffi::c_void;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::address::{address_of, pointer_const, pointer_mut};
#[cfg(doc)]
use super::current;
use super::{Decode, Encode, internal};
use crate::types::{
    HSA_CAPABILITY, HSA_DEBUG_PROPERTIES, HSA_ENGINE_ID, HSA_ENGINE_VERSION, HSA_IOLINKTYPE,
    HSA_LINKPROPERTY, HSA_PUBLIC_NAME_SIZE,
};

pub use super::y2025::{HsaCacheProperties, HsaQueueInfo, HsaQueueResource};

/// A node. The fields are those of [`current::HsaNodeProperties`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
#[expect(missing_docs, reason = "documented at the newest generation")]
pub struct HsaNodeProperties {
    pub NumCPUCores: u32,
    pub NumFComputeCores: u32,
    pub NumMemoryBanks: u32,
    pub NumCaches: u32,
    pub NumIOLinks: u32,
    pub CComputeIdLo: u32,
    pub FComputeIdLo: u32,
    pub Capability: HSA_CAPABILITY,
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
    pub Reserved2: u8,
    pub Domain: u32,
    pub UniqueID: u64,
    pub VGPRSizePerCU: u32,
    pub SGPRSizePerCU: u32,
    pub Reserved: [u8; 12],
}

impl Encode<internal::NodeProperties> for HsaNodeProperties {
    fn encode(internal: &internal::NodeProperties) -> Self {
        Self {
            NumCPUCores: internal.num_cpu_cores,
            NumFComputeCores: internal.num_f_compute_cores,
            NumMemoryBanks: internal.num_memory_banks,
            NumCaches: internal.num_caches,
            NumIOLinks: internal.num_io_links,
            CComputeIdLo: internal.c_compute_id_lo,
            FComputeIdLo: internal.f_compute_id_lo,
            Capability: internal.capability,
            MaxWavesPerSIMD: internal.max_waves_per_simd,
            LDSSizeInKB: internal.lds_size_in_kb,
            GDSSizeInKB: internal.gds_size_in_kb,
            WaveFrontSize: internal.wave_front_size,
            NumShaderBanks: internal.num_shader_banks,
            NumArrays: internal.num_arrays,
            NumCUPerArray: internal.num_cu_per_array,
            NumSIMDPerCU: internal.num_simd_per_cu,
            MaxSlotsScratchCU: internal.max_slots_scratch_cu,
            EngineId: overridden_engine_id(internal),
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
            Reserved2: 0,
            Domain: internal.domain,
            UniqueID: internal.unique_id,
            VGPRSizePerCU: internal.vgpr_size_per_cu,
            SGPRSizePerCU: internal.sgpr_size_per_cu,
            Reserved: [0; 12],
        }
    }
}

/// A way from one node to another. The fields are those of [`current::HsaIoLinkProperties`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[expect(missing_docs, reason = "documented at the newest generation")]
pub struct HsaIoLinkProperties {
    pub IoLinkType: HSA_IOLINKTYPE,
    pub VersionMajor: u32,
    pub VersionMinor: u32,
    pub NodeFrom: u32,
    pub NodeTo: u32,
    pub Weight: u32,
    pub MinimumLatency: u32,
    pub MaximumLatency: u32,
    pub MinimumBandwidth: u32,
    pub MaximumBandwidth: u32,
    pub RecTransferSize: u32,
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
            Flags: internal.flags,
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
    pub Reserved: u32,
}

impl Encode<internal::GraphicsResourceInfo> for HsaGraphicsResourceInfo {
    fn encode(internal: &internal::GraphicsResourceInfo) -> Self {
        Self {
            MemoryAddress: pointer_mut(internal.memory_address),
            SizeInBytes: internal.size_in_bytes,
            Metadata: pointer_const(internal.metadata),
            MetadataSizeInBytes: internal.metadata_size_in_bytes,
            Reserved: 0,
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
            node_id: 0,
            size_hint_in_bytes: 0,
        }
    }
}

/// 5.2.3 has one instruction set field, so an override from the environment goes into it.
fn overridden_engine_id(internal: &internal::NodeProperties) -> HSA_ENGINE_ID {
    let over = internal.override_engine_id;
    if over.Value == 0 {
        return internal.engine_id;
    }
    over.with(HSA_ENGINE_ID::UCODE, internal.engine_id.get(HSA_ENGINE_ID::UCODE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(engine_id: u32, override_engine_id: u32) -> HsaNodeProperties {
        let mut internal = internal::NodeProperties::new_zeroed();
        internal.engine_id = HSA_ENGINE_ID { Value: engine_id };
        internal.override_engine_id = HSA_ENGINE_ID { Value: override_engine_id };
        HsaNodeProperties::encode(&internal)
    }

    #[test]
    fn an_overridden_instruction_set_keeps_the_firmware_version() {
        let gfx90a = 0x0a00_2400;
        let gfx908 = 0x0800_2400;
        assert_eq!(node(gfx90a | 0x55, 0).EngineId.Value, gfx90a | 0x55);
        assert_eq!(node(gfx90a | 0x55, gfx908).EngineId.Value, gfx908 | 0x55);
    }
}
