//! The compute driver: process objects, opens, requests, mappings.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::DeviceNode;

use crate::address_space::SpaceId;
use crate::descriptor::FileId;
use crate::machine::{Condition, State};
use crate::process::Pid;
use crate::violation::Rule;

mod apertures;
mod clocks;
mod context;
mod dispatch;
mod memory;
mod mmap;
mod policy;
mod requests;
mod runtime;
mod tile;
mod version;
mod vm;

pub(crate) use dispatch::ioctl;
pub(crate) use mmap::mmap;

/// The identity of a process object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectId(pub u64);

/// A process object (`struct kfd_process`): kernel-rules section 1.
#[derive(Debug, Clone)]
pub(crate) struct KfdObject {
    pub kind: Kind,
    /// The address space it was made for.
    pub space: SpaceId,
    /// The thread-group leader whose threads alone may use it.
    pub lead: Pid,
    /// One record for each GPU that was visible when the object was made, in
    /// topology order.
    pub records: Vec<GpuRecord>,
    pub runtime: runtime::Runtime,
    pub xnack: bool,
}

/// Primary or secondary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The one object that lives with the address space.
    Primary,
    /// A secondary context, `context_<id>` in sysfs; it lives with its file.
    Secondary(u16),
}

/// What an object keeps for a GPU (`struct kfd_process_device`).
#[derive(Debug, Clone)]
pub(crate) struct GpuRecord {
    pub gpu_id: u32,
    /// The render file whose VM is bound; it stays open as long as the object.
    pub file: Option<FileId>,
    pub policy: Option<policy::Policy>,
    /// Whether a doorbell slice was allocated.
    pub doorbells: bool,
}

impl KfdObject {
    pub(crate) fn bound_files(&self) -> impl Iterator<Item = FileId> + '_ {
        self.records.iter().filter_map(|record| record.file)
    }

    pub(crate) fn record_mut(&mut self, gpu_id: u32) -> Option<&mut GpuRecord> {
        self.records.iter_mut().find(|record| record.gpu_id == gpu_id)
    }

    /// kernel-rules section 2, "GPU": the gpu_id has a record, else EINVAL.
    pub(crate) fn gpu(&self, gpu_id: u32) -> Result<&GpuRecord, Errno> {
        self.records.iter().find(|record| record.gpu_id == gpu_id).ok_or(Errno::EINVAL)
    }
}

impl fmt::Display for KfdObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Primary => write!(f, "primary object of process {}", self.lead)?,
            Kind::Secondary(id) => write!(f, "context {id} of process {}", self.lead)?,
        }
        let bound = self.bound_files().count();
        let doorbells = self.records.iter().filter(|record| record.doorbells).count();
        write!(
            f,
            ": {bound} of {} GPUs bound, {doorbells} doorbell slices, runtime {:?}",
            self.records.len(),
            self.runtime.state
        )
    }
}

/// kernel-rules section 1, "visible": the GPUs whose render node the device
/// cgroup leaves to the opener; file permissions play no part.
fn visible_gpus(state: &State, pid: Pid) -> Vec<u32> {
    state
        .topology
        .gpus()
        .map(|(_, gpu)| gpu)
        .filter(|gpu| !state.is_hidden(pid, DeviceNode::Render(gpu.render_minor())))
        .map(|gpu| gpu.id)
        .collect()
}

/// An object may have this many records: kernel-rules section 1, "identity".
const RECORD_LIMIT: usize = 64;

fn new_object(state: &State, pid: Pid, space: SpaceId, kind: Kind) -> Result<KfdObject, Errno> {
    let gpus = visible_gpus(state, pid);
    if gpus.len() > RECORD_LIMIT {
        return Err(Errno::ENOMEM);
    }
    let record = |gpu_id| GpuRecord { gpu_id, file: None, policy: None, doorbells: false };
    Ok(KfdObject {
        kind,
        space,
        lead: pid,
        records: gpus.into_iter().map(record).collect(),
        runtime: runtime::Runtime::default(),
        xnack: false,
    })
}

/// Opens `/dev/kfd`: kernel-rules section 1, "identity" and "open errors in
/// order" (kfd_chardev.c, kfd_process.c).
pub(crate) fn open(state: &mut State, pid: Pid) -> Result<ObjectId, Errno> {
    let space = state.processes.get(&pid).ok_or(Errno::ESRCH)?.space;
    if state.kernel.needs_a_gpu_to_open() && visible_gpus(state, pid).is_empty() {
        return Err(Errno::EINVAL);
    }
    if state.conditions.contains(&Condition::ResetInProgress) {
        return Err(Errno::EINVAL);
    }
    // A vforked child shares the address space and so gets its parent's object.
    if let Some(primary) = state.spaces.get(&space).and_then(|space| space.primary) {
        return Ok(primary);
    }
    let object = new_object(state, pid, space, Kind::Primary)?;
    let id = ObjectId(state.number());
    state.objects.insert(id, object);
    if let Some(space) = state.spaces.get_mut(&space) {
        space.primary = Some(id);
    }
    Ok(id)
}

/// kernel-rules section 1, "ioctl check": EBADF unless the caller's thread-group
/// leader is the object's.
fn check_owner(state: &mut State, pid: Pid, object: ObjectId, what: &str) -> Result<(), Errno> {
    let space = state.processes.get(&pid).map(|process| process.space);
    let found = state.objects.get(&object).ok_or(Errno::EBADF)?;
    let (lead, of) = (found.lead, found.space);
    if lead != pid {
        let detail = format!("{what} on an object of process {lead}");
        state.violation(pid, Rule::ForeignKfdDescriptor, detail);
        return Err(Errno::EBADF);
    }
    if space != Some(of) {
        // Same leader, dead address space: after an exec the kernel goes on.
        let detail = format!("{what} on the object of the program before exec");
        state.violation(pid, Rule::ForeignKfdDescriptor, detail);
    }
    Ok(())
}
