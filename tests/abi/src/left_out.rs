//! What the facts list and the headers and types of this library leave out, and why.

/// Why an entry of `abi.json` is left out; `None` if it must be there.
///
/// `kind` is the name of the list that the entry is in.
pub fn reason(kind: &str, name: &str, header: Option<&str>) -> Option<&'static str> {
    match (kind, name, header) {
        (_, _, Some("kfd_ioctl.h")) => {
            Some("the kernel's interface; hsakmt-core has it as typed blocks and tests them")
        }
        (_, _, Some("hsakmtmodel.h" | "hsakmtmodeliface.h")) => {
            Some("the reference library's software model, which tests/kfd-sim replaces")
        }
        ("functions", "hsaKmtGetMemoryHandle", _) => Some("exists on Windows only"),
        ("functions", "hsaKmtQueryDmaBufInfo" | "hsaKmtQueryDmaBufInfoCtx", _) => {
            Some("no header declares it, and its structure is unknown")
        }
        _ => None,
    }
}
