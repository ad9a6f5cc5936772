//! The machine: hardware, kernel, and everything the kernel keeps.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{DeviceNode, Os};
use spin::{Mutex, MutexGuard};

use crate::address_space::{AddressSpace, SpaceId};
use crate::defect::{self, Defect};
use crate::descriptor::{File, FileId};
use crate::dma_buf;
use crate::drm::{self, GemHandles, Syncobjs};
use crate::gpu_memory::{GpuMemory, MemoryId};
use crate::gpu_vm::GpuVm;
use crate::host_data_path::HostDataPath;
use crate::host_memory::HostMemory;
use crate::kernel::KernelProfile;
use crate::kfd::{self, KfdObject, ObjectId};
use crate::leftovers::Leftovers;
use crate::log::{Log, Operation, Record};
use crate::platform::SimPlatform;
use crate::process::{Pid, ProcessState};
use crate::profile::Profile;
use crate::sysfs::{self, Content, Entry, Folder};
use crate::topology::Topology;
use crate::violation::{Rule, Violation};

/// A simulated machine. Clones are the same machine.
#[derive(Debug, Clone)]
pub struct Machine {
    state: Arc<Mutex<State>>,
    /// Who lets engines run, or ends a queue that they may be at.
    pub(crate) engines: Arc<Mutex<()>>,
    pub(crate) queue_count: Arc<AtomicU32>,
}

/// A host with the address at which it has something.
pub(crate) type Contents = (Arc<dyn HostMemory>, usize);

/// A condition of the driver or of a device node that opens meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Condition {
    /// amdgpu is not loaded: no `/dev/kfd`, no render nodes, no topology.
    ModuleNotLoaded,
    /// A GPU reset or a suspend is in progress: every open of `/dev/kfd` is EINVAL.
    ResetInProgress,
}

/// Something that happens to the topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// `generation_id` grows, and nothing else changes.
    Generation,
    /// The node goes away; later nodes move down and `generation_id` grows. The
    /// topology folder is generated anew, without captured or spoilt files.
    RemoveNode(usize),
    /// The GPU of this node, announced but not ready, gets its id, name and clocks;
    /// `generation_id` stays.
    Ready(usize),
}

/// Something that the driver writes.
#[derive(Debug)]
pub(crate) enum Write {
    /// To memory of the process, at an address.
    Process(u64, Vec<u8>),
    /// To memory of a device, from an offset on, so many bytes of this value.
    Fill(MemoryId, usize, usize, u8),
}

/// Everything behind the lock.
#[derive(Debug)]
pub(crate) struct State {
    pub kernel: KernelProfile,
    pub topology: Topology,
    pub tree: Folder,
    pub generation: u64,
    pub generation_on_every_read: bool,
    /// Nodes whose GPU is announced and not filled.
    pub not_ready: BTreeSet<usize>,
    /// Changes with the number of topology reads until they happen.
    pub scheduled: Vec<(u32, Change)>,
    pub conditions: BTreeSet<Condition>,
    pub defects: BTreeSet<Defect>,
    /// What opens of a node answer, whatever else holds: file modes and lost devices.
    pub open_errors: BTreeMap<u64, (DeviceNode, Errno)>,
    pub files: BTreeMap<FileId, File>,
    /// The GPU address spaces of opened render files.
    pub vms: BTreeMap<FileId, GpuVm>,
    pub memory: GpuMemory,
    /// GEM handles of opened render files.
    pub gem: BTreeMap<FileId, GemHandles>,
    /// Sync objects of opened render files.
    pub syncobjs: BTreeMap<FileId, Syncobjs>,
    /// Buffers that other processes know by a number.
    pub shared: BTreeMap<kfd::ShareHandle, kfd::Shared>,
    pub host_memory: Option<Arc<dyn HostMemory>>,
    pub host_data_path: Option<Arc<Mutex<HostDataPath>>>,
    pub objects: BTreeMap<ObjectId, KfdObject>,
    pub spaces: BTreeMap<SpaceId, AddressSpace>,
    pub processes: BTreeMap<Pid, ProcessState>,
    pub log: Log,
    pub violations: Vec<Violation>,
    pub opens: BTreeMap<String, u64>,
    /// The wait that the request under way goes on with, or leaves to sleep.
    pub waiting: Option<kfd::Waiting>,
    /// Grows when a wait may have ended.
    pub woken: Arc<AtomicU32>,
    /// What the driver writes when the request is done and the lock free.
    pub writes: Vec<Write>,
    /// How many queues there are.
    pub queue_count: Arc<AtomicU32>,
    pub expects_barriers: bool,
    /// How many packets each GPU executed.
    pub packets: BTreeMap<u32, u64>,
    next_number: u64,
    next_pid: u32,
}

impl Machine {
    /// A machine of this profile, just booted, without processes.
    #[must_use]
    pub fn new(profile: &Profile) -> Machine {
        // kernel-rules section 5: 1 after boot, one more for each GPU added.
        let booted = 1 + profile.topology.gpus().count() as u64;
        let mut profile = profile.clone();
        defect::break_topology(&mut profile.topology, &profile.defects);
        let state = State {
            kernel: profile.kernel,
            topology: profile.topology.clone(),
            tree: sysfs::build(&profile),
            generation: profile.captured.generation().unwrap_or(booted),
            generation_on_every_read: false,
            not_ready: BTreeSet::new(),
            scheduled: Vec::new(),
            conditions: BTreeSet::new(),
            defects: profile.defects.clone(),
            open_errors: BTreeMap::new(),
            files: BTreeMap::new(),
            vms: BTreeMap::new(),
            memory: GpuMemory::default(),
            gem: BTreeMap::new(),
            syncobjs: BTreeMap::new(),
            shared: BTreeMap::new(),
            host_memory: None,
            host_data_path: None,
            objects: BTreeMap::new(),
            spaces: BTreeMap::new(),
            processes: BTreeMap::new(),
            log: Log::new(),
            violations: Vec::new(),
            opens: BTreeMap::new(),
            waiting: None,
            woken: Arc::new(AtomicU32::new(0)),
            writes: Vec::new(),
            queue_count: Arc::default(),
            expects_barriers: true,
            packets: BTreeMap::new(),
            next_number: 0,
            next_pid: 1000,
        };
        let queue_count = state.queue_count.clone();
        Machine { state: Arc::new(Mutex::new(state)), engines: Arc::default(), queue_count }
    }

    /// Starts a process. Its address space, clocks and threads are the host's.
    #[must_use]
    pub fn spawn<H: Os>(&self, host: H) -> SimPlatform<H> {
        let pid = self.lock().spawn();
        SimPlatform::new(self.clone(), pid, host)
    }

    /// Where the host has the contents of memory, if it can have them; made now if
    /// nobody looked at them before.
    pub(crate) fn contents(&self, id: MemoryId) -> Result<Option<Contents>, Errno> {
        let state = self.lock();
        let Some(host) = state.host_memory.clone() else { return Ok(None) };
        let memory = state.memory.get(id).ok_or(Errno::ENOMEM)?;
        let (known, length) = (memory.host, memory.size as usize);
        drop(state);
        if let Some(start) = known {
            return Ok(Some((host, start)));
        }
        let made = host.make(length)?;
        let mut state = self.lock();
        let start = state.memory.get_mut(id).map(|memory| *memory.host.get_or_insert(made));
        drop(state);
        if start != Some(made) {
            // Another thread was faster, or the memory is gone.
            host.discard(made, length);
        }
        Ok(Some((host, start.ok_or(Errno::ENOMEM)?)))
    }

    /// Does what the driver left to be written, if the host has contents.
    pub(crate) fn write_pending(&self) {
        let mut state = self.lock();
        let writes = core::mem::take(&mut state.writes);
        let host = state.host_memory.clone();
        drop(state);
        let Some(host) = host else { return };
        for write in writes {
            // What cannot be written was looked at before.
            let _ = match write {
                Write::Process(at, bytes) => host.write(at as usize, &bytes),
                Write::Fill(memory, at, length, byte) => {
                    self.write_contents(memory, at as u64, &alloc::vec![byte; length])
                }
            };
        }
    }

    /// Gives the host back what memory that is gone had of it.
    pub(crate) fn discard_host_memory(&self) {
        let mut state = self.lock();
        let discarded = state.memory.take_discarded();
        let host = state.host_memory.clone();
        drop(state);
        if let Some(host) = host {
            discarded.into_iter().for_each(|(at, length)| host.discard(at, length));
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The kernel and its switches.
    #[must_use]
    pub fn kernel(&self) -> KernelProfile {
        self.lock().kernel
    }

    /// The hardware as it is now.
    #[must_use]
    pub fn topology(&self) -> Topology {
        self.lock().topology.clone()
    }

    /// Puts memory of a host behind the memory of devices; before any is mapped.
    pub fn set_host_memory(&self, memory: Arc<dyn HostMemory>) {
        self.lock().host_memory = Some(memory);
    }

    /// Sets or ends a condition.
    pub fn set_condition(&self, condition: Condition, holds: bool) {
        let mut state = self.lock();
        if holds {
            state.conditions.insert(condition);
        } else {
            state.conditions.remove(&condition);
        }
    }

    /// What every open of this node answers: EACCES for its file mode, EHWPOISON
    /// after a fatal memory error, ENOENT for an invalid partition, ENODEV…
    pub fn set_open_error(&self, node: DeviceNode, errno: Option<Errno>) {
        let mut state = self.lock();
        match errno {
            Some(errno) => state.open_errors.insert(node_key(node), (node, errno)),
            None => state.open_errors.remove(&node_key(node)),
        };
    }

    /// Makes `generation_id` differ at each read.
    pub fn change_generation_on_every_read(&self, yes: bool) {
        self.lock().generation_on_every_read = yes;
    }

    /// Announces the GPU of a node without filling it: `gpu_id` reads 0 while
    /// `simd_count` does not, until [`Change::Ready`].
    pub fn set_not_ready(&self, node: usize) {
        self.lock().not_ready.insert(node);
    }

    /// Lets something happen now.
    pub fn change(&self, change: Change) {
        self.lock().apply(change);
    }

    /// Lets something happen right after `reads` more files of the topology were read.
    pub fn change_after_reads(&self, reads: u32, change: Change) {
        let mut state = self.lock();
        if reads == 0 {
            state.apply(change);
        } else {
            state.scheduled.push((reads, change));
        }
    }

    /// Serves these bytes under this absolute path, made or not made by the machine.
    /// A later change of the topology rebuilds its folder.
    pub fn put_file(&self, path: &str, contents: &[u8]) {
        self.lock().tree.put_bytes(path, contents);
    }

    /// Lets reads of this path fail, while it is still listed and can be opened.
    pub fn put_unreadable(&self, path: &str, errno: Errno) {
        self.lock().tree.put(path, Entry::File(Content::Unreadable(errno)));
    }

    /// Makes an empty folder, in place of what was there.
    pub fn put_folder(&self, path: &str) {
        self.lock().tree.put_folder(path);
    }

    /// Takes away a path with all below it; whether there was one.
    pub fn remove_path(&self, path: &str) -> bool {
        self.lock().tree.remove(path).is_some()
    }

    /// A copy of the log.
    #[must_use]
    pub fn log(&self) -> Vec<Record> {
        self.lock().log.records.clone()
    }

    /// The log, which starts anew.
    pub fn take_log(&self) -> Vec<Record> {
        core::mem::take(&mut self.lock().log.records)
    }

    /// Keeps no log from here on, or keeps one again.
    pub fn keep_log(&self, keep: bool) {
        self.lock().log.keep = keep;
    }

    /// How often anything was opened whose path begins so: devices, files, folders.
    #[must_use]
    pub fn opens(&self, prefix: &str) -> u64 {
        let state = self.lock();
        state.opens.iter().filter(|(path, _)| path.starts_with(prefix)).map(|(_, n)| n).sum()
    }

    /// The broken rules so far.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.lock().violations.clone()
    }

    /// The broken rules so far, which are forgotten.
    pub fn take_violations(&self) -> Vec<Violation> {
        core::mem::take(&mut self.lock().violations)
    }

    /// Panics with the list if a rule was broken.
    #[track_caller]
    pub fn assert_no_violations(&self) {
        let violations = self.violations();
        if !violations.is_empty() {
            let mut text = String::new();
            for violation in &violations {
                text.push_str(&alloc::format!("\n  {violation}"));
            }
            panic!("rules were broken:{text}");
        }
    }

    /// What processes hold now. Two of them can be compared.
    #[must_use]
    pub fn leftovers(&self) -> Leftovers {
        Leftovers::of(&self.lock())
    }
}

pub(crate) fn node_key(node: DeviceNode) -> u64 {
    match node {
        DeviceNode::Kfd => 0,
        DeviceNode::Udmabuf => 1,
        DeviceNode::Render(minor) => 2 + u64::from(minor),
    }
}

impl State {
    pub(crate) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Lets every wait look again.
    pub(crate) fn wake(&mut self) {
        self.woken.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn count_queues(&mut self) {
        let count: usize = self.objects.values().map(|object| object.queues.len()).sum();
        self.queue_count.store(count as u32, Ordering::Release);
    }

    pub(crate) fn next_pid(&mut self) -> Pid {
        self.next_pid += 1;
        Pid(self.next_pid)
    }

    pub(crate) fn violation(&mut self, process: Pid, rule: Rule, detail: String) {
        self.violations.push(Violation { process, rule, detail });
    }

    pub(crate) fn count_open(&mut self, path: &str) {
        if let Some(count) = self.opens.get_mut(path) {
            *count += 1;
        } else {
            self.opens.insert(path.into(), 1);
        }
    }

    pub(crate) fn record<T: Copy + Into<u64>>(
        &mut self,
        process: Pid,
        result: Result<T, Errno>,
        operation: impl FnOnce() -> Operation,
    ) {
        self.log.write(process, result.map(Into::into), operation);
    }

    /// kernel-rules section 1, "visible": the device cgroup, asked in the caller.
    pub(crate) fn is_hidden(&self, process: Pid, node: DeviceNode) -> bool {
        self.processes.get(&process).is_some_and(|p| p.hidden.contains(&node_key(node)))
    }

    pub(crate) fn after_topology_read(&mut self) {
        let mut due = Vec::new();
        self.scheduled.retain_mut(|(reads, change)| {
            *reads -= 1;
            if *reads == 0 {
                due.push(*change);
            }
            *reads > 0
        });
        for change in due {
            self.apply(change);
        }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Generation => self.generation += 1,
            Change::Ready(node) => {
                self.not_ready.remove(&node);
            }
            Change::RemoveNode(node) => {
                let gpu = self.topology.nodes.get(node).and_then(|n| n.gpu.as_ref());
                if let Some(minor) = gpu.map(|gpu| gpu.render_minor()) {
                    sysfs::remove_render_node(&mut self.tree, minor);
                }
                self.topology.remove_node(node);
                self.generation += 1;
                sysfs::put_topology(&mut self.tree, &self.topology);
            }
        }
    }

    /// Drops what nobody refers to any more: open files by descriptors, mappings
    /// and VM bindings; objects by address spaces and open files.
    pub(crate) fn collect(&mut self) {
        loop {
            let mut files: BTreeSet<FileId> = BTreeSet::new();
            for process in self.processes.values() {
                files.extend(process.descriptors.iter().map(|(_, descriptor)| descriptor.file));
            }
            for space in self.spaces.values() {
                files.extend(space.files());
            }
            for object in self.objects.values() {
                files.extend(object.bound_files());
            }
            let mut objects: BTreeSet<ObjectId> =
                self.spaces.values().filter_map(|space| space.primary).collect();
            for (_, file) in self.files.iter().filter(|(id, _)| files.contains(id)) {
                if let File::Kfd { object } = file {
                    objects.insert(*object);
                }
            }
            let before = (self.files.len(), self.objects.len());
            // Dma-bufs are kept by buffers and handles too, and looked at one by one.
            let unused: Vec<(FileId, File)> = self
                .files
                .iter()
                .filter(|(id, _)| !files.contains(id))
                .map(|(id, file)| (*id, *file))
                .collect();
            for (id, file) in unused {
                if let File::DmaBuf { .. } = file {
                    dma_buf::end_if_unused(self, id);
                    continue;
                }
                self.files.remove(&id);
                if let File::Memory { memory } = file {
                    self.memory.let_go(memory);
                }
                self.vms.remove(&id);
                self.syncobjs.remove(&id);
                drm::close_handles(self, id);
            }
            let gone: Vec<ObjectId> =
                self.objects.keys().filter(|id| !objects.contains(id)).copied().collect();
            for id in gone {
                if let Some(object) = self.objects.remove(&id) {
                    kfd::destroy_queues(self, &object);
                    kfd::free_all(self, &object);
                    self.tree.remove(&kfd::folder(&object));
                }
            }
            self.count_queues();
            if before == (self.files.len(), self.objects.len()) {
                self.memory.look_at_all_orphans();
                self.collect_memory();
                return;
            }
        }
    }

    /// A descriptor of a file was closed.
    pub(crate) fn lost_descriptor(&mut self, file: FileId) {
        if let Some(File::DmaBuf { .. }) = self.files.get(&file) {
            dma_buf::end_if_unused(self, file);
            self.collect_memory();
        } else {
            self.collect();
        }
    }

    /// Ends memory that lost its last buffer or mapping.
    pub(crate) fn collect_memory(&mut self) {
        let spaces = &self.spaces;
        self.memory.collect(|memory| spaces.values().any(|space| space.shows_memory(memory)));
    }
}
