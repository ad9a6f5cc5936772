//! Captured topology trees.

mod supplement;

use alloc::ffi::CString;
use core::ffi::CStr;
use core::ops::ControlFlow;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::Os;
use hsakmt_core::topology::{Settings, Snapshot, Unopened, read_snapshot};

use crate::failure::Failure;
use crate::machine::Machine;
use supplement::Supplemented;

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
    for place in PLACES {
        let root = joined(folder, place);
        match has_nodes(&root) {
            Ok(()) => return Ok(root),
            // Anything else says more than the absence elsewhere.
            Err(Errno::ENOENT) => {}
            Err(errno) => answer = errno,
        }
    }
    Err(answer)
}

/// Reads the topology in a folder. Nothing outside the folder is read: names
/// and caches of CPUs come from its own `proc` and `sys`, if it has them.
///
/// # Errors
/// [`Failure::NoTopology`] or [`Failure::Tree`].
pub fn read<O: Os>(os: &O, folder: &[u8]) -> Result<(Machine, Snapshot), Failure> {
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
    let os = Supplemented::new(os);
    match read_snapshot(&os, &settings, &mut Unopened) {
        Ok(snapshot) => {
            let machine = Machine::Tree { folder: folder.to_vec(), made_up: os.into_made_up() };
            Ok((machine, snapshot))
        }
        Err(error) => Err(Failure::Tree(folder.to_vec(), error)),
    }
}
