//! What the library costs: system calls, file reads, instructions. Counts, not
//! times, so a busy or slow machine changes nothing.
//!
//! - [`folder`]: a machine whose topology is a folder of the real file system,
//!   read by real system calls, and whose driver is simulated;
//! - [`cost`]: what opening and acquiring it costs, counted at the seams;
//! - [`c_abi`]: the C functions over such a machine, called as C calls them;
//! - [`rust_api`]: the Rust functions over it;
//! - [`submission`]: packets submitted to a ring;
//! - [`threads`]: how many memory calls several threads make in a second;
//! - [`instructions`]: how many instructions a run of this program takes.

#![deny(unsafe_code)]

pub mod c_abi;
pub mod cost;
pub mod folder;
pub mod instructions;
pub mod rust_api;
pub mod submission;
pub mod threads;

use std::collections::BTreeMap;
use std::path::Path;

use hsakmt_topology_tests::{Tree, complete};
use kfd_sim::{CapturedTreeError, Kernel, KernelProfile, Profile};

/// The machine of a captured topology folder; what the capture lacks is made up.
///
/// # Errors
/// See [`CapturedTreeError`].
pub fn captured(tree: &Tree) -> Result<Profile, CapturedTreeError> {
    let below = |path: &str| path.strip_prefix("/topology/").unwrap_or(path).to_owned();
    let files: BTreeMap<String, &[u8]> =
        tree.files.iter().map(|(path, text)| (below(path), text.as_slice())).collect();
    Profile::from_captured(KernelProfile::debian(Kernel::V6_12), files)
}

/// Reads a captured topology folder and completes it.
#[must_use]
pub fn tree_of(folder: &Path) -> Tree {
    let mut tree = Tree::read_from(folder, "/topology");
    complete(&mut tree);
    tree
}
