//! What the blocks and records of Rust are called by the facts and the C headers.

use hsakmt_core::uapi::{ALL, BlockInfo, Field, RECORDS};

/// A block or a record, with its names outside Rust.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The name in Rust's catalogue.
    pub name: &'static str,
    /// The C type, `struct …` or `union …`.
    pub c_type: String,
    /// The macro of the request; empty for a record.
    pub request_macro: String,
    /// The request number; 0 for a record.
    pub request: u32,
    /// Bytes.
    pub size: usize,
    /// The fields.
    pub fields: Vec<Place>,
}

/// A field of Rust and where C has it.
#[derive(Debug, Clone)]
pub struct Place {
    /// The field of Rust.
    pub field: Field,
    /// The C designator, with dots; `None` for bytes that C gives no name.
    pub designator: Option<String>,
}

impl Layout {
    /// The tag of the C type.
    pub fn tag(&self) -> &str {
        self.c_type.split_once(' ').map_or(&*self.c_type, |(_, tag)| tag)
    }

    fn new(name: &'static str, c_type: String, size: usize, fields: &[Field]) -> Layout {
        let place =
            |field: &Field| Place { field: *field, designator: designator(name, field.name) };
        Layout {
            name,
            c_type,
            request_macro: String::new(),
            request: 0,
            size,
            fields: fields.iter().map(place).collect(),
        }
    }
}

/// All blocks. `record_of` gives the tag of a KFD request's structure by the request's macro.
pub fn blocks(record_of: impl Fn(&str) -> Option<String>) -> Vec<Layout> {
    let layout = |block: &BlockInfo| {
        let request_macro = request_macro(block);
        let c_type = match c_type(block) {
            Some(c_type) => c_type.to_owned(),
            None => {
                let tag = record_of(&request_macro);
                format!("struct {}", tag.unwrap_or_else(|| "kfd_ioctl_profiler_args".to_owned()))
            }
        };
        let mut layout = Layout::new(block.name, c_type, block.size, block.fields);
        layout.request_macro = request_macro;
        layout.request = block.request.0;
        layout
    };
    ALL.iter().map(layout).collect()
}

/// All records.
pub fn records() -> Vec<Layout> {
    let layout = |record: &hsakmt_core::uapi::RecordInfo| {
        Layout::new(record.name, format!("struct {}", record.name), record.size, record.fields)
    };
    RECORDS.iter().map(layout).collect()
}

/// The macro of a block's request.
pub fn request_macro(block: &BlockInfo) -> String {
    let name = match block.name {
        name if name.starts_with("DBG_TRAP_") => "DBG_TRAP",
        name if name.starts_with("PROFILER_") => "PROFILER",
        name if name.starts_with("AMDGPU_INFO_") => "AMDGPU_INFO",
        name if name.starts_with("AMDGPU_GEM_OP_") => "AMDGPU_GEM_OP",
        name => name,
    };
    match block.request.letter() {
        b'K' => format!("AMDKFD_IOC_{name}"),
        b'd' => format!("DRM_IOCTL_{name}"),
        _ => name.to_owned(),
    }
}

/// The C type of a block of DRM or udmabuf.
fn c_type(block: &BlockInfo) -> Option<&'static str> {
    Some(match (block.request.letter(), block.name) {
        (b'd', "VERSION") => "struct drm_version",
        (b'd', "GET_CAP") => "struct drm_get_cap",
        (b'd', "GEM_CLOSE") => "struct drm_gem_close",
        (b'd', "PRIME_HANDLE_TO_FD" | "PRIME_FD_TO_HANDLE") => "struct drm_prime_handle",
        (b'd', "SYNCOBJ_CREATE") => "struct drm_syncobj_create",
        (b'd', "SYNCOBJ_DESTROY") => "struct drm_syncobj_destroy",
        (b'd', "SYNCOBJ_TIMELINE_WAIT") => "struct drm_syncobj_timeline_wait",
        (b'd', "AMDGPU_INFO" | "AMDGPU_INFO_READ_MMR_REG") => "struct drm_amdgpu_info",
        (b'd', "AMDGPU_GEM_CREATE") => "union drm_amdgpu_gem_create",
        (b'd', "AMDGPU_GEM_MMAP") => "union drm_amdgpu_gem_mmap",
        (b'd', "AMDGPU_GEM_METADATA") => "struct drm_amdgpu_gem_metadata",
        (b'd', name) if name.starts_with("AMDGPU_GEM_OP_") => "struct drm_amdgpu_gem_op",
        (b'd', "AMDGPU_GEM_VA") => "struct drm_amdgpu_gem_va",
        (b'd', "AMDGPU_VM") => "union drm_amdgpu_vm",
        (b'd', "AMDGPU_PROC_OPTIONS") => "struct drm_amdgpu_proc_options",
        (b'd', "AMDGPU_GEM_SVM") => "struct drm_amdgpu_gem_svm",
        (b'u', "UDMABUF_CREATE") => "struct udmabuf_create",
        _ => return None,
    })
}

/// Where C has a field of Rust; `None` for padding that C gives no name.
fn designator(name: &str, field: &str) -> Option<String> {
    let within = |member: &str| Some(format!("{member}.{field}"));
    match (name, field) {
        ("PROFILER_PC_SAMPLE", "profiler_op") => Some("op".to_owned()),
        ("PROFILER_PC_SAMPLE", "reserved") => None,
        ("PROFILER_PC_SAMPLE", "reserved1") => Some("pc_sample.reserved".to_owned()),
        ("PC_SAMPLE" | "kfd_ioctl_spm_buffer_header" | "kfd_queue_snapshot_entry", "reserved")
        | ("kfd_context_save_area_header", "reserved1") => Some(field.to_owned()),
        (_, "reserved" | "reserved1") => None,
        (name, field) if name.starts_with("DBG_TRAP_") && field != "pid" && field != "op" => {
            within(union_member(name))
        }
        ("PROFILER_PC_SAMPLE", _) => within("pc_sample"),
        ("PROFILER_PMC", "gpu_id" | "lock" | "perfcount_enable") => within("pmc"),
        ("PROFILER_PTL_CONTROL", "gpu_id" | "enable") => within("ptl"),
        ("AIS_OP", _) => within("in"),
        ("kfd_context_save_area_header", field)
            if field.starts_with("control_stack_") || field.starts_with("wave_state_") =>
        {
            within("wave_state")
        }
        ("kfd_event_data", "payload") => Some("memory_exception_data".to_owned()),
        ("AMDGPU_INFO", "parameters") => Some("read_mmr_reg".to_owned()),
        ("AMDGPU_INFO_READ_MMR_REG", "dword_offset" | "count" | "instance" | "flags") => {
            within("read_mmr_reg")
        }
        ("AMDGPU_PROC_OPTIONS", "value") => within("kfd_sigbus_delay"),
        ("AMDGPU_GEM_CREATE" | "AMDGPU_GEM_MMAP" | "AMDGPU_VM", _) => within("in"),
        ("AMDGPU_GEM_METADATA", field) if field != "handle" && field != "op" => within("data"),
        _ => Some(field.to_owned()),
    }
}

/// The member of the union that is a DBG_TRAP operation's own.
fn union_member(name: &str) -> &'static str {
    match name.strip_prefix("DBG_TRAP_").unwrap_or(name) {
        "ENABLE" => "enable",
        "SEND_RUNTIME_EVENT" => "send_runtime_event",
        "SET_EXCEPTIONS_ENABLED" => "set_exceptions_enabled",
        "SET_WAVE_LAUNCH_OVERRIDE" => "launch_override",
        "SET_WAVE_LAUNCH_MODE" => "launch_mode",
        "SUSPEND_QUEUES" => "suspend_queues",
        "RESUME_QUEUES" => "resume_queues",
        "SET_NODE_ADDRESS_WATCH" => "set_node_address_watch",
        "CLEAR_NODE_ADDRESS_WATCH" => "clear_node_address_watch",
        "SET_FLAGS" => "set_flags",
        "QUERY_DEBUG_EVENT" => "query_debug_event",
        "QUERY_EXCEPTION_INFO" => "query_exception_info",
        "GET_QUEUE_SNAPSHOT" => "queue_snapshot",
        "GET_DEVICE_SNAPSHOT" => "device_snapshot",
        other => panic!("{other}: no member"),
    }
}
