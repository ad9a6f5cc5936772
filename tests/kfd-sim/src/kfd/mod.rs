//! The compute driver: process objects, opens, requests, mappings.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::DeviceNode;

use crate::address_space::SpaceId;
use crate::descriptor::FileId;
use crate::engines::Torn;
use crate::gpu_memory::{MemoryId, Place};
use crate::intervals::Intervals;
use crate::machine::{Condition, State};
use crate::process::Pid;
use crate::svm_ranges::SvmRanges;
use crate::violation::Rule;

mod access;
mod addresses;
mod apertures;
mod buffers;
mod clocks;
mod context;
mod dispatch;
mod dma_buf;
mod events;
mod gpu_mapping;
mod invalidation;
mod ipc;
mod memory;
mod mmap;
mod policy;
mod process_folder;
mod queues;
mod requests;
mod runtime;
mod svm;
mod tile;
mod version;
mod vm;

pub use access::Fault;
pub(crate) use access::{Target, access, target};
pub(crate) use buffers::free_all;
pub(crate) use dispatch::ioctl;
pub use events::MemoryFault;
pub(crate) use events::{
    Waiting, interrupt as interrupt_wait, memory_fault as fault_memory, page_memory as event_page,
    reset_gpu, signal as signal_event, signal_ids,
};
pub(crate) use invalidation::{memory_changed, memory_unmapped, restore};
pub(crate) use ipc::{ShareHandle, Shared};
pub(crate) use mmap::mmap;
pub(crate) use process_folder::folder;
pub(crate) use queues::{Queue, QueueKind, destroy_all as destroy_queues};
pub(crate) use runtime::is_enabled as runtime_is_enabled;
pub(crate) use svm::NAMES as SVM_ATTRIBUTE_NAMES;

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
    pub svm: SvmRanges,
    /// The addresses of the process's memory that its buffers have, by handle.
    pub user_buffers: Intervals,
    /// See `Process::evictions`.
    pub evictions: u64,
    /// Those of them after which the restore work ran.
    pub restored: u64,
    pub events: events::Events,
    pub queues: BTreeMap<u32, Queue>,
    /// Whether its queues are stopped for good on all GPUs.
    pub stopped: bool,
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
    /// The doorbell slice, once it was allocated.
    pub doorbells: Option<MemoryId>,
    /// The slices that it had before resets of the GPU.
    pub torn: Torn,
    /// The buffers of the GPU by the low half of their handle.
    pub buffers: BTreeMap<u32, buffers::Buffer>,
    /// Low halves that are free again. The first that was never given is the number
    /// of these and of all buffers.
    pub free_indices: BTreeSet<u32>,
    pub addresses: addresses::Addresses,
    /// What the driver's trap handler takes.
    pub trap_memory: Option<MemoryId>,
    /// Whether a fault or a reset of the GPU stopped its queues: for good.
    pub evicted: bool,
    /// Whether one of its queues was reset.
    pub has_reset_queue: bool,
}

impl KfdObject {
    pub(crate) fn bound_files(&self) -> impl Iterator<Item = FileId> + '_ {
        self.records.iter().filter_map(|record| record.file)
    }

    /// Bytes of VRAM that the object's buffers of a GPU have.
    pub(crate) fn vram(&self, gpu_id: u32) -> u64 {
        let buffers = self.gpu(gpu_id).into_iter().flat_map(|record| record.buffers.values());
        buffers
            .filter(|buffer| matches!(buffer.place, Place::Vram | Place::CarveOut))
            .map(|buffer| buffer.size)
            .sum()
    }

    /// Whether any queue exists.
    pub(crate) fn has_queues(&self) -> bool {
        !self.queues.is_empty()
    }

    pub(crate) fn buffer(&self, handle: u64) -> Option<&buffers::Buffer> {
        let (gpu_id, index) = buffers::split(handle);
        self.gpu(gpu_id).ok()?.buffers.get(&index)
    }

    pub(crate) fn buffer_mut(&mut self, handle: u64) -> Option<&mut buffers::Buffer> {
        let (gpu_id, index) = buffers::split(handle);
        self.record_mut(gpu_id)?.buffers.get_mut(&index)
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
        let doorbells = self.records.iter().filter(|record| record.doorbells.is_some()).count();
        write!(
            f,
            ": {bound} of {} GPUs bound, {doorbells} doorbell slices, runtime {:?}",
            self.records.len(),
            self.runtime.state
        )?;
        match self.events.count() {
            0 => {}
            count => write!(f, ", {count} events")?,
        }
        match self.queues.len() {
            0 => Ok(()),
            count => write!(f, ", {count} queues"),
        }
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
    let record = |gpu_id| GpuRecord {
        gpu_id,
        file: None,
        policy: None,
        doorbells: None,
        torn: Torn::new(),
        buffers: BTreeMap::new(),
        free_indices: BTreeSet::new(),
        addresses: addresses::Addresses::default(),
        trap_memory: None,
        evicted: false,
        has_reset_queue: false,
    };
    let xnack = runtime::xnack_at_start(state, &gpus);
    Ok(KfdObject {
        kind,
        space,
        lead: pid,
        records: gpus.into_iter().map(record).collect(),
        runtime: runtime::Runtime::default(),
        xnack,
        svm: SvmRanges::default(),
        user_buffers: Intervals::default(),
        evictions: 0,
        restored: 0,
        events: events::Events::default(),
        queues: BTreeMap::new(),
        stopped: false,
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
    process_folder::put(state, id);
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

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{DeviceNode, Driver, Os};
    use hsakmt_core::uapi::kfd::{CreateProcess, GetVersion};

    use crate::fixture::{acquire, ask, boot, broken, kfd, render};
    use crate::machine::Condition;
    use crate::violation::Rule;

    fn version(sim: &crate::fixture::Sim, device: &crate::SimDevice) -> Result<u32, Errno> {
        ask(sim, device, &mut GetVersion::default())
    }

    #[test]
    fn open_errors_come_in_order() {
        let sim = boot("rx7900:kernel=7.2");
        let machine = sim.machine().clone();
        let open = || sim.open(DeviceNode::Kfd).map(|_| ());
        assert_eq!(open(), Ok(()));
        machine.set_condition(Condition::ResetInProgress, true);
        assert_eq!(open(), Err(Errno::EINVAL));
        sim.process().hide(DeviceNode::Kfd, true);
        assert_eq!(open(), Err(Errno::EPERM));
        machine.set_open_error(DeviceNode::Kfd, Some(Errno::EACCES));
        assert_eq!(open(), Err(Errno::EACCES));
        machine.set_condition(Condition::ModuleNotLoaded, true);
        assert_eq!(open(), Err(Errno::ENOENT));
        sim.process().set_descriptor_limit(3);
        assert_eq!(open(), Err(Errno::EMFILE));
    }

    #[test]
    fn opens_without_a_gpu_before_7_2_and_not_since() {
        for (kernel, expected) in [("6.1", Ok(())), ("6.12", Ok(())), ("7.2", Err(Errno::EINVAL))] {
            let sim = boot(&alloc::format!("cpu-only:kernel={kernel}"));
            assert_eq!(sim.open(DeviceNode::Kfd).map(|_| ()), expected, "{kernel}");
            let sim = boot(&alloc::format!("rx7900:kernel={kernel}"));
            sim.process().hide(DeviceNode::Render(128), true);
            assert_eq!(sim.open(DeviceNode::Kfd).map(|_| ()), expected, "{kernel}, hidden");
        }
    }

    #[test]
    fn more_than_64_gpus_in_an_object_are_enomem() {
        for profile in ["mi300x:cpx,gpus=9", "rx7900:gpus=64+mi50"] {
            let sim = boot(profile);
            assert_eq!(sim.open(DeviceNode::Kfd).map(|_| ()), Err(Errno::ENOMEM));
        }
        let sim = boot("rx7900:gpus=64+mi50");
        sim.process().hide(DeviceNode::Render(128), true);
        assert_eq!(sim.open(DeviceNode::Kfd).map(|_| ()), Ok(()));
    }

    #[test]
    fn the_object_lives_with_the_address_space_not_with_the_descriptor() {
        let sim = boot("rx7900");
        let first = kfd(&sim);
        let file = render(&sim, 0);
        assert_eq!(acquire(&sim, &first, &file, 0), Ok(0));
        drop(first);
        drop(file);
        // Everything closed: the object still binds the file that nobody has.
        let again = kfd(&sim);
        let other = render(&sim, 0);
        assert_eq!(acquire(&sim, &again, &other, 0), Err(Errno::EBUSY));
        assert_eq!(sim.machine().leftovers().files, 3);
        sim.process().exit();
        assert_eq!(sim.machine().leftovers(), crate::Leftovers::default());
    }

    #[test]
    fn two_descriptors_of_a_process_carry_one_object() {
        let sim = boot("rx7900");
        let (first, second) = (kfd(&sim), kfd(&sim));
        let file = render(&sim, 0);
        assert_eq!(acquire(&sim, &first, &file, 0), Ok(0));
        drop(first);
        assert_eq!(acquire(&sim, &second, &file, 0), Ok(0));
        assert_eq!(sim.machine().leftovers().objects.len(), 1);
    }

    #[test]
    fn a_forked_child_is_ebadf_on_the_inherited_descriptor_and_opens_its_own() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        let file = render(&sim, 0);
        assert_eq!(acquire(&sim, &device, &file, 0), Ok(0));
        let child = sim.enter_fork_child();
        assert_eq!(version(&sim, &device), Err(Errno::EBADF));
        assert_eq!(broken(&sim), [Rule::ForeignKfdDescriptor]);
        let own = kfd(&sim);
        assert_eq!(version(&sim, &own), Ok(0));
        assert_eq!(version(&sim, &device), Err(Errno::EBADF));
        broken(&sim);
        // The inherited render file serves the parent's object.
        assert_eq!(acquire(&sim, &own, &file, 0), Err(Errno::EINVAL));
        let fresh = render(&sim, 0);
        assert_eq!(acquire(&sim, &own, &fresh, 0), Ok(0));
        drop((own, fresh));
        sim.leave_child();
        assert!(!child.is_alive());
        assert_eq!(version(&sim, &device), Ok(0));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn a_vforked_child_is_ebadf_also_through_its_own_open() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        sim.enter_vfork_child();
        assert_eq!(version(&sim, &device), Err(Errno::EBADF));
        let own = kfd(&sim);
        assert_eq!(version(&sim, &own), Err(Errno::EBADF));
        drop(own);
        sim.leave_child();
        assert_eq!(version(&sim, &device), Ok(0));
        assert_eq!(broken(&sim), [Rule::ForeignKfdDescriptor; 2]);
    }

    #[test]
    fn after_exec_an_inheritable_descriptor_reaches_the_dead_object() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        let file = render(&sim, 0);
        assert_eq!(acquire(&sim, &device, &file, 0), Ok(0));
        sim.process().set_close_on_exec(sim.token(&device).0, false);
        sim.exec();
        assert_eq!(version(&sim, &device), Ok(0));
        assert_eq!(broken(&sim), [Rule::ForeignKfdDescriptor]);
        let leftovers = sim.machine().leftovers();
        assert_eq!((leftovers.objects.len(), leftovers.files), (1, 2));
        // A new open makes a new object.
        let own = kfd(&sim);
        assert_eq!(acquire(&sim, &own, &render(&sim, 0), 0), Ok(0));
        drop(device);
        assert_eq!(sim.machine().leftovers().objects.len(), 1);
        sim.release(file);
    }

    #[test]
    fn exec_closes_what_the_seam_opened() {
        let sim = boot("rx7900");
        let device = sim.release(kfd(&sim));
        sim.exec();
        assert_eq!(sim.process().descriptor(device.0), None);
        assert_eq!(sim.machine().leftovers().objects.len(), 0);
    }

    #[test]
    fn the_process_folder_appears_with_the_open() {
        let sim = boot("rx7900:kernel=7.2");
        let path = alloc::format!("/sys/class/kfd/kfd/proc/{}", sim.process_id());
        let names = |path: &str| {
            let path = std::ffi::CString::new(path).unwrap();
            let mut names = alloc::vec::Vec::new();
            sim.list_folder(&path, &mut |name, _| {
                names.push(alloc::string::String::from_utf8_lossy(name).into_owned());
                core::ops::ControlFlow::Continue(())
            })
            .map(|()| names)
        };
        assert_eq!(names(&path), Err(Errno::ENOENT));
        let device = kfd(&sim);
        assert!(names(&path).unwrap().contains(&"pasid".into()));
        let secondary = kfd(&sim);
        assert_eq!(ask(&sim, &secondary, &mut CreateProcess::default()), Ok(0));
        assert!(names(&path).unwrap().contains(&"context_0".into()));
        drop((device, secondary));
        assert!(!names(&path).unwrap().contains(&"context_0".into()));
    }
}
