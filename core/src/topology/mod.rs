//! The machine: nodes, their memory, caches and links, as the kernel's topology
//! tree tells it.
//!
//! [`read_snapshot`] reads the tree once into a [`Snapshot`], which never
//! changes afterwards. [`GpuAccess`] decides meanwhile which GPUs the process
//! may use; with [`Unopened`] nothing but sysfs is touched.

mod access;
mod bank;
mod cache;
mod engine;
mod link;
mod name;
mod node;
mod settings;
mod snapshot;

pub use access::{Access, DeviceInfo, GpuAccess, GpuIdentity, Unopened};
pub use bank::{HeapType, MemoryBank};
pub use cache::{Cache, SiblingMap};
pub use engine::GfxVersion;
pub use link::{IoLink, LinkType};
pub use name::Name;
pub use node::Node;
pub use settings::{MajorChange, Settings};
pub use snapshot::{HiddenBecause, HiddenNode, Snapshot, SystemProperties};

use crate::error::{Error, Object, Operation, Status, SysfsFile};
use crate::seam::Os;

/// Reads the topology.
///
/// # Errors
/// Status ERROR with [`Operation::FollowTopology`] when the topology kept
/// changing, otherwise what the files, the allocator or `access` refused.
pub fn read_snapshot<O: Os>(
    os: &O,
    settings: &Settings<'_>,
    access: &mut dyn GpuAccess,
) -> Result<Snapshot, Error> {
    let _ = (os, settings, access);
    Err(Error::library(
        Status::ERROR,
        Operation::ReadFile,
        Object::Topology(SysfsFile::Nodes, 0, 0),
    ))
}

/// Reads the kernel's generation number: three system calls.
///
/// # Errors
/// Status ERROR when the file cannot be read or holds no number.
pub fn read_generation<O: Os>(os: &O, settings: &Settings<'_>) -> Result<u64, Error> {
    let _ = (os, settings);
    Err(Error::library(
        Status::ERROR,
        Operation::ReadFile,
        Object::Topology(SysfsFile::Generation, 0, 0),
    ))
}
