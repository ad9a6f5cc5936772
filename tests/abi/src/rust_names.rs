//! Where Rust names something otherwise than C. This file is also part of the build script.

/// The module of [`hsakmt::generation`](https://docs.rs/hsakmt) for a generation.
pub fn module(generation: u32) -> &'static str {
    match generation {
        523 => "debian",
        2025 => "y2025",
        2026 => "current",
        other => panic!("unknown generation {other}"),
    }
}

/// The place of a C field in the Rust structure; `None` where Rust has no field for it.
pub fn field(record: &str, path: &str) -> Option<String> {
    let place = match (record, path) {
        // The bit-fields are in a structure of their own; Rust has them on the register itself.
        ("HsaMemoryProperties", "ui32" | "ui32.SizeInBytesLow" | "ui32.SizeInBytesHigh") => {
            return None;
        }
        ("HsaHandleExportFlags", "ui32") => "Reserved",
        (_, "ui32") => return None,
        ("HSA_LINKPROPERTY", "LinkProperty") | ("HSA_MEMORYPROPERTY", "MemoryProperty") => "Value",
        // Unions of a pointer and the same pointer as an integer.
        ("HsaQueueResource", "Queue_DoorBell" | "Queue_DoorBell_aql") => "QueueDoorBell",
        ("HsaQueueResource", "Queue_write_ptr" | "Queue_write_ptr_aql") => "QueueWptrValue",
        ("HsaQueueResource", "Queue_read_ptr" | "Queue_read_ptr_aql") => "QueueRptrValue",
        (_, "SyncVar.UserData" | "SyncVar.UserDataPtrValue") => "SyncVar",
        // An anonymous union has a name in Rust.
        ("HsaHandleImportDesc", "dmabuf_fd" | "buf_handle" | "fabric") => {
            return Some(format!("source.{path}"));
        }
        (_, "type") => "r#type",
        _ => path,
    };
    Some(place.to_owned())
}

/// Whether the bit-fields of a record are a register in Rust.
pub fn is_register(record: &str) -> bool {
    // Its single bit-field has 32 bits and is a plain field.
    record != "HsaHandleExportFlags"
}

/// Whether a bit-field is reserved; Rust has no name for those.
#[allow(dead_code, reason = "the build script does not need it")]
pub fn is_reserved(path: &str) -> bool {
    path.rsplit('.').next().is_some_and(|name| name.starts_with("Reserved"))
}

/// Whether a type name of C is a plain integer of Rust.
pub fn is_scalar(name: &str) -> bool {
    name.starts_with("HSAint") || name.starts_with("HSAuint")
}
