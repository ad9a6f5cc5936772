//! The machine: nodes, their memory, caches and links, as the kernel's topology
//! tree tells it.
//!
//! [`read_snapshot`] reads the tree once into a [`Snapshot`], which never
//! changes afterwards. A [`GpuAccess`] decides meanwhile which GPUs the process
//! may use; with [`Unopened`] nothing but sysfs is touched.
//!
//! # Numbers of nodes
//! The kernel numbers its nodes without gaps and shifts the numbers when a GPU
//! goes. A process may not see all of them: the device cgroup forbids reading a
//! GPU's files, a container lacks its render node, the caller wants others. The
//! nodes that remain get *public ids*, 0, 1, 2 … in the kernel's order; nothing
//! outside this module sees a kernel's number except as
//! [`Node::sysfs_node`]. Links are translated, and dropped where they lead to a
//! hidden node. One node that cannot be read hides itself, never another.
//!
//! # A consistent picture
//! The kernel rebuilds all folders when a GPU comes or goes and counts that in
//! `generation_id`. A walk between two equal numbers is consistent, except that
//! a new GPU's folder is there, counted, before its id is filled in, and that
//! files vanish shortly before the number rises. Both are seen in the files and
//! the tree is walked again; what then still holds is taken as it is, and
//! [`Snapshot::settled`] says so. A topology that never comes to rest is given up
//! after [`Settings::walks`]; the caller keeps its last snapshot.
//!
//! # What a file costs
//! A machine with 64 GPU partitions has some 9,500 files. Each is read at most
//! once in a walk, with three system calls; only `nodes/` is listed as a folder,
//! what lies below is counted by its `properties`. Counts may lie: reading ends
//! at the count or at the first file that is missing, whichever comes first. No
//! line allocates anything.
//!
//! # Trust
//! The text of a file may be anything: see `properties`. Data that only
//! decorates (names, CPU caches) is left out when it is not there.

mod access;
mod bank;
mod cache;
mod cpu_cache;
mod cpuinfo;
mod engine;
mod files;
mod gpu;
mod heap;
mod indirect;
mod link;
mod name;
mod node;
pub(crate) mod path;
mod products;
mod properties;
mod settings;
mod snapshot;
mod walk;

pub use access::{Access, DeviceInfo, GpuAccess, GpuIdentity, Unopened};
pub use bank::{HeapType, MemoryBank};
pub use cache::{Cache, SiblingMap};
pub use engine::GfxVersion;
pub use heap::{Aperture, Apertures};
pub use link::{IoLink, LinkType};
pub use name::Name;
pub use node::Node;
pub use settings::{MajorChange, Settings};
pub use snapshot::{HiddenBecause, HiddenNode, Snapshot, SystemProperties};

use crate::error::{Error, Object, Operation, Status, SysfsFile};
use crate::seam::Os;
use files::Files;
use walk::{Outcome, walk};

/// How often a tree is walked whose generation number stands still while its
/// files say that it is changing.
const UNSETTLED_WALKS: u32 = 4;

/// How long to wait before the second walk, in ns; twice as long before each
/// further one.
const FIRST_PAUSE: u64 = 1_000_000;

/// The longest wait between two walks, in ns.
const LONGEST_PAUSE: u64 = 32_000_000;

/// Reads the topology.
///
/// # Errors
/// Status ERROR with [`Operation::FollowTopology`] when the topology kept
/// changing, otherwise what the files, the allocator or `access` refused. A
/// caller that has an older snapshot keeps it.
pub fn read_snapshot<O: Os>(
    os: &O,
    settings: &Settings<'_>,
    access: &mut dyn GpuAccess,
) -> Result<Snapshot, Error> {
    let mut files = Files::new(os, settings.root)?;
    let mut before = walk::read_generation(&mut files, settings)?;
    let mut unsettled: u32 = 0;
    let mut pause = FIRST_PAUSE;
    for walked in 0..settings.walks.max(1) {
        if walked > 0 {
            os.sleep(pause);
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
        let (mut snapshot, outcome) = walk(&mut files, settings, access)?;
        let after = walk::read_generation(&mut files, settings)?;
        if after != before {
            before = after;
            unsettled = 0;
            continue;
        }
        snapshot.generation = after;
        if outcome == Outcome::Whole {
            return Ok(snapshot);
        }
        unsettled = unsettled.saturating_add(1);
        let last = walked.saturating_add(1) >= settings.walks.max(1);
        if unsettled >= UNSETTLED_WALKS || last {
            snapshot.settled = false;
            return Ok(snapshot);
        }
    }
    Err(Error::library(
        Status::ERROR,
        Operation::FollowTopology,
        Object::Topology(SysfsFile::Generation, 0, 0),
    ))
}

/// Reads the kernel's generation number: three system calls.
///
/// # Errors
/// Status ERROR when the file cannot be read or holds no number.
pub fn read_generation<O: Os>(os: &O, settings: &Settings<'_>) -> Result<u64, Error> {
    walk::read_generation(&mut Files::new(os, settings.root)?, settings)
}
