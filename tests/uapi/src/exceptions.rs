//! Every difference that is meant, with its reason.

/// Requests of the facts that Rust does not have.
pub const IOCTLS_LEFT_OUT: &[(&str, &str)] = &[(
    "(alternative) AMDKFD_IOC_SVM_RANGES",
    "an unmerged proposal whose number CREATE_PROCESS took",
)];

/// Requests whose number differs from the facts: name, size in Rust, reason.
pub const REQUESTS: &[(&str, usize, &str)] = &[
    (
        "AMDKFD_IOC_CREATE_PROCESS",
        0,
        "the kernel's form has no argument, and KFD dispatches on the number alone",
    ),
    (
        "AMDKFD_IOC_UPDATE_QUEUE",
        24,
        "one header appends a dispatch record buffer; without it the block suits every driver",
    ),
    ("DRM_IOCTL_AMDGPU_GEM_VA", 64, "the form of 7.2, beside the one of the facts"),
];

/// Blocks whose request the facts do not have: name, number, reason.
pub const BLOCKS_BEYOND_THE_FACTS: &[(&str, u32, &str)] = &[
    ("PROFILER_PMC", 0xc010_4b28, "the kernel's own profiler request, 1.23"),
    ("PROFILER_VERSION", 0xc010_4b28, "the kernel's own profiler request, 1.23"),
    ("PROFILER_PTL_CONTROL", 0xc010_4b28, "the kernel's own profiler request, 1.23"),
    ("AMDGPU_PROC_OPTIONS", 0xc008_645a, "sysfs.md names it, abi.json has no number; 7.3"),
    ("AMDGPU_GEM_CREATE", 0xc020_6440, "kernel-rules names it, abi.json does not"),
    ("UDMABUF_CREATE", 0x4018_7542, "the facts describe its use, abi.json has no number"),
];

/// Records of the facts that no block or record of Rust is: name, reason.
pub const RECORDS_LEFT_OUT: &[(&str, &str)] = &[
    ("kfd_ioctl_create_process_args", "see REQUESTS"),
    ("kfd_ais_in_args", "the block AIS_OP itself"),
    ("kfd_ioctl_pmc_settings", "fields of the block PROFILER_PMC"),
];

/// Fields of the facts that Rust does not have: record, path, reason.
pub const FIELDS_LEFT_OUT: &[(&str, &str, &str)] = &[
    ("kfd_ioctl_update_queue_args", "dispatch_record_buffer_addr", "see REQUESTS"),
    ("kfd_ioctl_update_queue_args", "dispatch_record_buffer_size", "see REQUESTS"),
    ("kfd_ioctl_update_queue_args", "pad", "see REQUESTS"),
    ("kfd_ioctl_svm_args", "attrs", "the elements that follow the block"),
];

/// Constants of the facts without a name in Rust: name, reason.
pub const CONSTANTS_LEFT_OUT: &[(&str, &str)] = &[
    ("AMDKFD_COMMAND_START", "bounds of the kernel's dispatch table"),
    ("AMDKFD_COMMAND_END", "bounds of the kernel's dispatch table"),
    ("AMDKFD_COMMAND_START_2", "bounds of the kernel's dispatch table"),
    ("AMDKFD_COMMAND_END_2", "bounds of the kernel's dispatch table"),
    ("AMDKFD_IOCTL_BASE", "the letter in each block"),
    ("EC_MAX", "grows with the codes"),
    ("ENABLE_MFMA_HIGH_PRECISION", "another name of KFD_PROC_FLAG_MFMA_HIGH_PRECISION"),
    ("KFD_DBG_EV_FLAG_CLEAR_STATUS", "of an interface before the debugger's of 1.13"),
    ("KFD_DBG_QUEUE_ERROR_BIT", "the number of the bit; Rust has the mask"),
    ("KFD_DBG_QUEUE_INVALID_BIT", "the number of the bit; Rust has the mask"),
    ("KFD_INVALID_FD", "no block says none by a descriptor"),
    ("KFD_IOCTL_MAJOR_VERSION", "the version of a header, not of a driver"),
    ("KFD_IOCTL_MINOR_VERSION", "the version of a header, not of a driver"),
    ("MAX_ALLOWED_AW_BUFF_SIZE", "of the deprecated debugger requests"),
    ("MAX_ALLOWED_NUM_POINTS", "of the deprecated debugger requests"),
    ("MAX_ALLOWED_WAC_BUFF_SIZE", "of the deprecated debugger requests"),
];

/// Constants whose value differs from the facts: name, value in Rust, reason.
pub const CONSTANTS: &[(&str, u64, &str)] = &[(
    "KFD_EC_MASK_QUEUE",
    0x607f_803f,
    "one header leaves EC_QUEUE_PACKET_RESERVED out, those of the kernel have it",
)];

/// Names in Rust that the facts do not have: C name, reason.
pub const NAMES_BEYOND_THE_FACTS: &[(&str, &str)] = &[
    ("KFD_DBG_TRAP_FLAG_SINGLE_ALU_OP", "newer kernels"),
    ("KFD_DBG_TRAP_FLAG_LDS_OUT_OF_ADDR_RANGE", "newer kernels, 1.21"),
    ("KFD_IOC_PROFILER_PTL_CONTROL", "the kernel's own profiler request, 1.23"),
    ("KFD_SMI_EVENT_MIGRATE_START", "the kernel's header, 1.10"),
    ("KFD_SMI_EVENT_MIGRATE_END", "the kernel's header, 1.10"),
    ("KFD_SMI_EVENT_PAGE_FAULT_START", "the kernel's header, 1.10"),
    ("KFD_SMI_EVENT_PAGE_FAULT_END", "the kernel's header, 1.10"),
    ("KFD_SMI_EVENT_QUEUE_EVICTION", "the kernel's header, 1.10"),
    ("KFD_SMI_EVENT_QUEUE_RESTORE", "the kernel's header, 1.10"),
    ("KFD_SMI_EVENT_UNMAP_FROM_GPU", "the kernel's header, 1.10"),
    ("KFD_SMI_EVENT_PROCESS_START", "newer kernels"),
    ("KFD_SMI_EVENT_PROCESS_END", "newer kernels"),
    ("KFD_SMI_EVENT_ALL_PROCESS", "the kernel's header, 1.10"),
];

/// C types that a system's headers may not have: name, reason.
pub const TYPES_NEWER_THAN_HEADERS: &[(&str, &str)] = &[
    ("struct kfd_ioctl_export_dmabuf_args", "1.12"),
    ("struct kfd_ioctl_runtime_enable_args", "1.13"),
    ("struct kfd_ioctl_dbg_trap_args", "1.13"),
    ("struct kfd_runtime_info", "1.13"),
    ("struct kfd_queue_snapshot_entry", "1.13"),
    ("struct kfd_dbg_device_info_entry", "1.13"),
    ("struct kfd_context_save_area_header", "1.13"),
    ("struct kfd_hsa_signal_event_data", "1.14"),
    ("struct kfd_ioctl_ipc_import_handle_args", "out of tree"),
    ("struct kfd_ioctl_ipc_export_handle_args", "out of tree"),
    ("struct kfd_ioctl_cross_memory_copy_args", "out of tree"),
    ("struct kfd_memory_range", "out of tree"),
    ("struct kfd_ioctl_spm_args", "out of tree"),
    ("struct kfd_ioctl_spm_buffer_header", "out of tree"),
    ("struct kfd_ioctl_pc_sample_args", "out of tree"),
    ("struct kfd_pc_sample_info", "out of tree"),
    ("struct kfd_ioctl_ais_args", "out of tree"),
    ("struct kfd_ais_out_args", "out of tree"),
    ("struct drm_amdgpu_proc_options", "7.3"),
    ("struct drm_amdgpu_gem_svm", "a proposal"),
];

/// Names of DRM and udmabuf that a system's headers may not have: name, since when. Those of KFD
/// are held against the facts.
pub const NAMES_NEWER_THAN_HEADERS: &[(&str, &str)] = &[
    ("AMDGPU_VM_PAGE_NOALLOC", "6.0"),
    ("AMDGPU_IDS_FLAGS_CONFORMANT_TRUNC_COORD", "6.3"),
    ("AMDGPU_IDS_FLAGS_GANG_SUBMIT", "6.15"),
    ("AMDGPU_GEM_CREATE_DISCARDABLE", "6.0"),
    ("AMDGPU_GEM_CREATE_COHERENT", "6.3"),
    ("AMDGPU_GEM_CREATE_UNCACHED", "6.3"),
    ("AMDGPU_GEM_CREATE_EXT_COHERENT", "6.7"),
    ("AMDGPU_GEM_CREATE_GFX12_DCC", "6.11"),
    ("AMDGPU_PROC_OPTIONS_OP_KFD_SIGBUS_DELAY", "7.3"),
    ("AMDGPU_PROC_OPTIONS_KFD_SIGBUS_DELAY_DISABLED", "7.3"),
];

/// Fields that a system's header may not have yet: C type, field, since when.
pub const FIELDS_NEWER_THAN_HEADERS: &[(&str, &str, &str)] = &[
    ("struct kfd_ioctl_set_memory_policy_args", "misc_process_flag", "1.18; pad before"),
    ("struct kfd_ioctl_create_queue_args", "sdma_engine_id", "1.17; pad before"),
    ("struct kfd_ioctl_create_queue_args", "metadata_ring_size", "1.22; pad before"),
    ("struct kfd_hsa_memory_exception_data", "ErrorType", "pad in the oldest headers"),
    ("struct drm_amdgpu_gem_va", "vm_timeline_point", "7.2"),
    ("struct drm_amdgpu_gem_va", "vm_timeline_syncobj_out", "7.2"),
    ("struct drm_amdgpu_gem_va", "num_syncobj_handles", "7.2"),
    ("struct drm_amdgpu_gem_va", "input_fence_syncobj_handles", "7.2"),
    ("struct drm_amdgpu_info_device", "pcie_gen", "6.3; _pad before"),
    ("struct drm_amdgpu_info_device", "pcie_num_lanes", "6.3; _pad1 before"),
    ("struct drm_amdgpu_info_device", "min_engine_clock", "6.3"),
    ("struct drm_amdgpu_info_device", "min_memory_clock", "6.3"),
    ("struct drm_amdgpu_info_device", "tcp_cache_size", "6.3"),
    ("struct drm_amdgpu_info_device", "num_sqc_per_wgp", "6.3"),
    ("struct drm_amdgpu_info_device", "sqc_data_cache_size", "6.3"),
    ("struct drm_amdgpu_info_device", "sqc_inst_cache_size", "6.3"),
    ("struct drm_amdgpu_info_device", "gl1c_cache_size", "6.3"),
    ("struct drm_amdgpu_info_device", "gl2c_cache_size", "6.3"),
    ("struct drm_amdgpu_info_device", "mall_size", "6.3"),
    ("struct drm_amdgpu_info_device", "enabled_rb_pipes_mask_hi", "6.3"),
    ("struct drm_amdgpu_info_device", "shadow_size", "6.4"),
    ("struct drm_amdgpu_info_device", "shadow_alignment", "6.4"),
    ("struct drm_amdgpu_info_device", "csa_size", "6.4"),
    ("struct drm_amdgpu_info_device", "csa_alignment", "6.4"),
    ("struct drm_amdgpu_info_device", "userq_ip_mask", "6.16"),
];

/// Fields of DRM's blocks and records that C gives no name: name in Rust, field, reason. Those of
/// KFD are held against the facts.
pub const FIELDS_WITHOUT_NAME: &[(&str, &str, &str)] = &[
    ("VERSION", "reserved", "a hole before the first length"),
    ("AMDGPU_GEM_METADATA", "reserved", "a hole at the end"),
    ("drm_amdgpu_info_device", "reserved", "a hole, or pad in the newest headers"),
];

/// Sizes that a type has or had in some header, other than Rust's: C type, bytes, why.
pub const SIZES_IN_HEADERS: &[(&str, usize, &str)] = &[
    ("struct kfd_ioctl_create_queue_args", 88, "before 1.17"),
    ("struct kfd_dbg_device_info_entry", 128, "7.2 appends capability2"),
    ("struct drm_amdgpu_gem_va", 40, "before 7.2"),
    ("struct drm_amdgpu_gem_va", 64, "7.2"),
    ("struct drm_amdgpu_gem_op", 24, "with the mappings of a buffer, newer kernels"),
    ("struct drm_amdgpu_info_device", 368, "before 6.3"),
    ("struct drm_amdgpu_info_device", 424, "6.3"),
    ("struct drm_amdgpu_info_device", 448, "libdrm's copies since 6.16 append a pad"),
    ("struct drm_syncobj_timeline_wait", 48, "6.6 appends a deadline"),
];
