//! The flag words, open enumerations and constants of Rust, with their C names.

use hsakmt_core::uapi::{amdgpu, drm, kfd, udmabuf};

/// A type of Rust and the C names of its values.
#[derive(Debug, Clone)]
pub struct NamedValues {
    /// The type; empty for constants of their own.
    pub rust_type: &'static str,
    /// C name and value.
    pub values: Vec<(String, u64)>,
}

/// The types that C has no names for, with the reason.
pub const NOT_IN_HEADERS: &[(&str, &str)] = &[
    ("MmapType", "kfd_priv.h, not for user space; its unit tests hold it against kernel-rules"),
    ("SmiEventMask", "bits by the numbers of SmiEvent; a unit test compares them"),
    ("ExportDmabufFlags", "O_CLOEXEC of fcntl.h"),
];

/// The flags of a type under a prefix, with a suffix for those C calls masks.
macro_rules! flags {
    ($module:ident::$type:ident, $prefix:literal) => {
        flags!($module::$type, $prefix, "")
    };
    ($module:ident::$type:ident, $prefix:literal, $suffix:literal) => {
        NamedValues {
            rust_type: stringify!($type),
            values: <$module::$type as bitflags::Flags>::FLAGS
                .iter()
                .filter(|flag| flag.is_named())
                .map(|flag| {
                    let name = [$prefix, flag.name(), $suffix].concat();
                    (name, u64::from(flag.value().bits()))
                })
                .collect(),
        }
    };
}

/// The values of an open enumeration under a prefix.
macro_rules! open_enum {
    ($module:ident::$type:ident, $prefix:literal) => {
        NamedValues {
            rust_type: stringify!($type),
            values: $module::$type::NAMES
                .iter()
                .map(|(name, value)| ([$prefix, name].concat(), u64::from(value.0)))
                .collect(),
        }
    };
}

/// All of them.
pub fn named_values() -> Vec<NamedValues> {
    let constants: &[(&str, u64)] = &[
        ("NUM_OF_SUPPORTED_GPUS", kfd::NUM_OF_SUPPORTED_GPUS as u64),
        ("KFD_MAX_QUEUE_PERCENTAGE", kfd::MAX_QUEUE_PERCENTAGE.into()),
        ("KFD_MAX_QUEUE_PRIORITY", kfd::MAX_QUEUE_PRIORITY.into()),
        ("KFD_SIGNAL_EVENT_LIMIT", kfd::SIGNAL_EVENT_LIMIT as u64),
        ("KFD_SMI_EVENT_MSG_SIZE", kfd::SMI_EVENT_MSG_SIZE as u64),
        ("KFD_INVALID_GPUID", kfd::INVALID_ID.into()),
        ("KFD_INVALID_QUEUEID", kfd::INVALID_ID.into()),
        ("KFD_DBG_QUEUE_ERROR_MASK", kfd::DBG_QUEUE_ERROR_MASK.into()),
        ("KFD_DBG_QUEUE_INVALID_MASK", kfd::DBG_QUEUE_INVALID_MASK.into()),
        ("KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL", kfd::MMIO_REMAP_HDP_MEM_FLUSH_CNTL as u64),
        ("KFD_MMIO_REMAP_HDP_REG_FLUSH_CNTL", kfd::MMIO_REMAP_HDP_REG_FLUSH_CNTL as u64),
        ("KFD_IOC_PROFILER_VERSION_NUM", kfd::PROFILER_VERSION_NUM.into()),
        ("KFD_CROSS_MEMORY_RW_BIT", kfd::CrossMemoryCopyFlags::WRITE.bits().into()),
        ("AMDGPU_PROC_OPTIONS_KFD_SIGBUS_DELAY_DISABLED", amdgpu::KFD_SIGBUS_DELAY_DISABLED.into()),
        ("AMDGPU_VM_MTYPE_MASK", amdgpu::VmMtype::MASK.into()),
    ];
    let constants = constants.iter().map(|(name, value)| (name.to_string(), *value)).collect();
    vec![
        NamedValues { rust_type: "", values: constants },
        NamedValues { rust_type: "CrossMemoryCopyFlags", values: Vec::new() },
        flags!(kfd::AllocMemoryFlags, "KFD_IOC_ALLOC_MEM_FLAGS_"),
        flags!(kfd::ProcessFlags, "KFD_PROC_FLAG_"),
        flags!(kfd::RuntimeEnableMode, "KFD_RUNTIME_ENABLE_MODE_", "_MASK"),
        flags!(kfd::RuntimeEnableCaps, "KFD_RUNTIME_ENABLE_CAPS_", "_MASK"),
        flags!(kfd::SvmFlags, "KFD_IOCTL_SVM_FLAG_"),
        flags!(kfd::ExceptionMask, "KFD_EC_MASK_"),
        flags!(kfd::DbgTrapMask, "KFD_DBG_TRAP_MASK_"),
        flags!(kfd::DbgTrapFlags, "KFD_DBG_TRAP_FLAG_"),
        flags!(kfd::PcSampleFlags, "KFD_IOCTL_PCS_"),
        flags!(kfd::PcSampleInfoFlags, "KFD_IOCTL_PCS_FLAG_"),
        open_enum!(kfd::CachePolicy, "KFD_IOC_CACHE_POLICY_"),
        open_enum!(kfd::QueueType, "KFD_IOC_QUEUE_TYPE_"),
        open_enum!(kfd::EventType, "KFD_IOC_EVENT_"),
        open_enum!(kfd::WaitResult, "KFD_IOC_WAIT_RESULT_"),
        open_enum!(kfd::MemoryErrorType, "KFD_MEM_ERR_"),
        open_enum!(kfd::ResetType, "KFD_HW_EXCEPTION_"),
        open_enum!(kfd::ResetCause, "KFD_HW_EXCEPTION_"),
        open_enum!(kfd::SmiEvent, "KFD_SMI_EVENT_"),
        open_enum!(kfd::SvmOp, "KFD_IOCTL_SVM_OP_"),
        open_enum!(kfd::SvmAttributeType, "KFD_IOCTL_SVM_ATTR_"),
        open_enum!(kfd::SvmLocation, "KFD_IOCTL_SVM_LOCATION_"),
        open_enum!(kfd::DbgTrapOp, "KFD_IOC_DBG_TRAP_"),
        open_enum!(kfd::ExceptionCode, "EC_"),
        open_enum!(kfd::DbgRuntimeState, "DEBUG_RUNTIME_STATE_"),
        open_enum!(kfd::DbgTrapOverrideMode, "KFD_DBG_TRAP_OVERRIDE_"),
        open_enum!(kfd::DbgTrapWaveLaunchMode, "KFD_DBG_TRAP_WAVE_LAUNCH_MODE_"),
        open_enum!(kfd::DbgTrapAddressWatchMode, "KFD_DBG_TRAP_ADDRESS_WATCH_MODE_"),
        open_enum!(kfd::CriuOperation, "KFD_CRIU_OP_"),
        open_enum!(kfd::ProfilerOp, "KFD_IOC_PROFILER_"),
        open_enum!(kfd::SpmOp, "KFD_IOCTL_SPM_OP_"),
        open_enum!(kfd::PcSampleOp, "KFD_IOCTL_PCS_OP_"),
        open_enum!(kfd::PcSampleMethod, "KFD_IOCTL_PCS_METHOD_"),
        open_enum!(kfd::PcSampleType, "KFD_IOCTL_PCS_TYPE_"),
        open_enum!(kfd::AisOperation, "KFD_IOC_AIS_"),
        open_enum!(drm::Capability, "DRM_CAP_"),
        flags!(drm::PrimeFlags, "DRM_"),
        flags!(drm::SyncobjCreateFlags, "DRM_SYNCOBJ_CREATE_"),
        flags!(drm::SyncobjWaitFlags, "DRM_SYNCOBJ_WAIT_FLAGS_"),
        open_enum!(amdgpu::InfoQuery, "AMDGPU_INFO_"),
        flags!(amdgpu::InfoDeviceFlags, "AMDGPU_IDS_FLAGS_"),
        flags!(amdgpu::GemDomain, "AMDGPU_GEM_DOMAIN_"),
        flags!(amdgpu::GemCreateFlags, "AMDGPU_GEM_CREATE_"),
        open_enum!(amdgpu::GemMetadataOp, "AMDGPU_GEM_METADATA_OP_"),
        open_enum!(amdgpu::GemOperation, "AMDGPU_GEM_OP_"),
        open_enum!(amdgpu::VaOp, "AMDGPU_VA_OP_"),
        flags!(amdgpu::VmFlags, "AMDGPU_VM_"),
        open_enum!(amdgpu::VmMtype, "AMDGPU_VM_MTYPE_"),
        open_enum!(amdgpu::VmOp, "AMDGPU_VM_OP_"),
        open_enum!(amdgpu::ProcOption, "AMDGPU_PROC_OPTIONS_OP_"),
        flags!(udmabuf::UdmabufFlags, "UDMABUF_FLAGS_"),
    ]
}
