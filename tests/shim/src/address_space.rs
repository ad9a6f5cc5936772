//! What the kernel says about a mapping (`/proc/self/smaps`, proc(5)).

use crate::child::emulated;

/// One mapping of the calling process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Such as `rw-p`.
    pub access: String,
    /// The two-letter flags of the `VmFlags` line; empty where there is none, as
    /// under an emulator.
    pub flags: Vec<String>,
}

impl Area {
    /// Whether a flag is set; `None` if the system does not tell flags.
    #[must_use]
    pub fn flag(&self, flag: &str) -> Option<bool> {
        (!self.flags.is_empty()).then(|| self.flags.iter().any(|one| one == flag))
    }
}

/// The mapping that contains an address.
#[must_use]
pub fn area(address: usize) -> Option<Area> {
    // An emulator makes up the one file and shows its own memory in the other.
    let file = if emulated() { "/proc/self/maps" } else { "/proc/self/smaps" };
    let text = std::fs::read_to_string(file).ok()?;
    let mut found: Option<Area> = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        let range = first.split_once('-').and_then(|(start, end)| {
            Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
        });
        if let Some((start, end)) = range {
            if found.is_some() {
                break;
            }
            if (start..end).contains(&address) {
                let access = words.next().unwrap_or("").to_string();
                found = Some(Area { start, end, access, flags: Vec::new() });
            }
        } else if let (Some(area), "VmFlags:") = (&mut found, first) {
            area.flags = words.map(String::from).collect();
        }
    }
    found
}
