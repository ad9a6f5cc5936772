//! Captured topology trees.

use alloc::ffi::CString;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::ops::ControlFlow;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::Os;
use hsakmt_core::topology::{Settings, Snapshot, Unopened, read_snapshot};

use crate::failure::Failure;

/// Where in a folder a topology may be.
const PLACES: [&str; 4] =
    ["", "/topology", "/sys/devices/virtual/kfd/kfd/topology", "/sys/class/kfd/kfd/topology"];

/// A path of the command line, without slashes at its end, and what follows it.
/// A path has no NUL.
fn joined(folder: &[u8], rest: &str) -> CString {
    let end = folder.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let mut path = folder.get(..end).unwrap_or(folder).to_vec();
    path.extend_from_slice(rest.as_bytes());
    CString::new(path).unwrap_or_default()
}

/// The topology in a folder.
///
/// # Errors
/// What the folder itself was answered when none of the places has one.
fn find<O: Os>(os: &O, folder: &[u8]) -> Result<CString, Errno> {
    let has_nodes = |root: &CStr| {
        let nodes = joined(root.to_bytes(), "/nodes");
        os.list_folder(&nodes, &mut |_, _| ControlFlow::Break(()))
    };
    let mut answer = Errno::ENOENT;
    for (place, refusal) in PLACES.iter().map(|place| {
        let root = joined(folder, place);
        let refusal = has_nodes(&root).err();
        (root, refusal)
    }) {
        match refusal {
            None => return Ok(place),
            // Anything but absence is worth more than the absence elsewhere.
            Some(Errno::ENOENT) => {}
            Some(errno) => answer = errno,
        }
    }
    Err(answer)
}

/// Reads the topology in a folder. Nothing outside the folder is read: names
/// and caches of CPUs come from its own `proc` and `sys`, if it has them.
///
/// # Errors
/// [`Failure::NoTopology`] or [`Failure::Tree`].
pub fn read<O: Os>(os: &O, folder: &[u8]) -> Result<Snapshot, Failure> {
    let root = find(os, folder).map_err(|errno| Failure::NoTopology(folder.to_vec(), errno))?;
    let cpuinfo = joined(folder, "/proc/cpuinfo");
    let numa_nodes = joined(folder, "/sys/devices/system/node");
    let cpus = joined(folder, "/sys/devices/system/cpu");
    let settings = Settings {
        root: &root,
        cpuinfo: Some(&cpuinfo),
        numa_nodes: Some(&numa_nodes),
        cpus: Some(&cpus),
        ..Settings::KERNEL
    };
    read_snapshot(os, &settings, &mut Unopened)
        .map_err(|error| Failure::Tree(Vec::from(folder), error))
}
