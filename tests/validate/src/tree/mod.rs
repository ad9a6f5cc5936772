//! Captured topology trees.

pub mod file_type;
mod supplement;

use alloc::ffi::CString;

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
/// The first list of nodes that is there and cannot be read, with the answer;
/// ENOENT when none is there.
fn find<O: Os>(os: &O, folder: &[u8]) -> Result<CString, (CString, Errno)> {
    let mut answer = None;
    for place in PLACES {
        let root = joined(folder, place);
        let nodes = joined(root.to_bytes(), "/nodes");
        match os.list_folder(&nodes, &mut |_, _| ControlFlow::Break(())) {
            Ok(()) => return Ok(root),
            Err(Errno::ENOENT) => {}
            Err(errno) => {
                answer.get_or_insert((nodes, errno));
            }
        }
    }
    Err(answer.unwrap_or_else(|| (joined(folder, "/nodes"), Errno::ENOENT)))
}

/// Reads the topology in a folder. Nothing outside the folder is read: names
/// and caches of CPUs come from its own `proc` and `sys`, if it has them.
///
/// # Errors
/// [`Failure::NoTopology`], [`Failure::NoNode`], [`Failure::NoFile`] or
/// [`Failure::Tree`].
pub fn read<O: Os>(os: &O, folder: &[u8]) -> Result<(Machine, Snapshot), Failure> {
    let root = find(os, folder).map_err(|(nodes, errno)| Failure::NoTopology(nodes, errno))?;
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
    let answer = read_snapshot(&os, &settings, &mut Unopened);
    // It may stand where the library can do without a file, but no capture has it.
    if let Some((path, found)) = os.no_file() {
        return Err(Failure::NoFile(path, found));
    }
    let snapshot = answer.map_err(|error| Failure::Tree(folder.to_vec(), error))?;
    if snapshot.nodes().is_empty() && snapshot.hidden().is_empty() {
        return Err(Failure::NoNode(joined(root.to_bytes(), "/nodes")));
    }
    Ok((Machine::Tree { folder: folder.to_vec(), made_up: os.into_made_up() }, snapshot))
}
