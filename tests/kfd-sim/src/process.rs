//! Processes: fork, vfork, exec and exit, as far as a descriptor or an address
//! space notices them.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::DeviceNode;

use crate::address_space::{AddressSpace, Mapped, SpaceId};
use crate::descriptor::{Descriptor, DescriptorTable, File, FileId};
use crate::log::Operation;
use crate::machine::{Machine, State, node_key};

/// A process id; it is also the id of the thread-group leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub u32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the kernel keeps for a process.
#[derive(Debug, Clone)]
pub(crate) struct ProcessState {
    pub space: SpaceId,
    pub descriptors: DescriptorTable,
    /// Nodes that the device cgroup closes to it.
    pub hidden: BTreeSet<u64>,
}

impl State {
    pub(crate) fn spawn(&mut self) -> Pid {
        let space = SpaceId(self.number());
        self.spaces.insert(space, AddressSpace::default());
        let pid = self.next_pid();
        let hidden = BTreeSet::new();
        let descriptors = DescriptorTable::new();
        self.processes.insert(pid, ProcessState { space, descriptors, hidden });
        pid
    }

    /// fork(2), or clone(2) without CLONE_VM: the descriptors and the address
    /// space are copied.
    pub(crate) fn fork(&mut self, parent: Pid, same_host_memory: bool) -> Option<Pid> {
        let mut child = self.processes.get(&parent)?.clone();
        let space = self.spaces.get(&child.space)?.forked(same_host_memory);
        child.space = SpaceId(self.number());
        self.spaces.insert(child.space, space);
        let pid = self.next_pid();
        self.processes.insert(pid, child);
        self.record(parent, Ok(pid.0), || Operation::Fork(pid));
        Some(pid)
    }

    /// vfork(2), or clone(2) with CLONE_VM and without CLONE_THREAD: the
    /// descriptors are copied, the address space is the parent's.
    pub(crate) fn vfork(&mut self, parent: Pid) -> Option<Pid> {
        let child = self.processes.get(&parent)?.clone();
        let pid = self.next_pid();
        self.processes.insert(pid, child);
        self.record(parent, Ok(pid.0), || Operation::Vfork(pid));
        Some(pid)
    }

    /// execve(2): a new address space, descriptors close on exec are closed.
    pub(crate) fn exec(&mut self, pid: Pid) -> Vec<(usize, Mapped)> {
        let space = SpaceId(self.number());
        let fresh = self.space_of(pid).map(|old| old.fresh());
        self.spaces.insert(space, fresh.unwrap_or_default());
        let mut old = None;
        if let Some(process) = self.processes.get_mut(&pid) {
            old = Some(core::mem::replace(&mut process.space, space));
            process.descriptors.retain(|descriptor| !descriptor.close_on_exec);
        }
        let gone = old.map_or_else(Vec::new, |old| self.drop_space(old));
        self.collect();
        self.record(pid, Ok(0_u32), || Operation::Exec);
        gone
    }

    /// The end of a process; returns the mappings that ended with it.
    pub(crate) fn exit(&mut self, pid: Pid) -> Vec<(usize, Mapped)> {
        let gone = match self.processes.remove(&pid) {
            Some(process) => self.drop_space(process.space),
            None => Vec::new(),
        };
        self.collect();
        self.record(pid, Ok(0_u32), || Operation::Exit);
        gone
    }

    /// Drops an address space that no process uses any more.
    fn drop_space(&mut self, space: SpaceId) -> Vec<(usize, Mapped)> {
        if self.processes.values().any(|process| process.space == space) {
            return Vec::new();
        }
        self.spaces.remove(&space).map_or_else(Vec::new, |space| space.iter().collect())
    }

    /// A file that is read takes a descriptor for a moment.
    pub(crate) fn check_free_descriptor(&self, pid: Pid) -> Result<(), Errno> {
        let process = self.processes.get(&pid).ok_or(Errno::ESRCH)?;
        process.descriptors.lowest_free().map(|_| ())
    }

    /// Opens a file that is no device of the GPU driver.
    pub(crate) fn open_other(&mut self, pid: Pid, close_on_exec: bool) -> Result<u32, Errno> {
        let file = FileId(self.number());
        self.files.insert(file, File::Foreign);
        let opened = match self.processes.get_mut(&pid) {
            Some(process) => process.descriptors.insert(file, close_on_exec),
            None => Err(Errno::ESRCH),
        };
        self.collect();
        opened
    }

    pub(crate) fn space_of(&mut self, pid: Pid) -> Option<&mut AddressSpace> {
        let space = self.processes.get(&pid)?.space;
        self.spaces.get_mut(&space)
    }

    pub(crate) fn descriptor(&self, pid: Pid, number: u32) -> Option<Descriptor> {
        self.processes.get(&pid)?.descriptors.get(number)
    }

    pub(crate) fn file(&self, pid: Pid, number: u32) -> Option<(FileId, File)> {
        let descriptor = self.descriptor(pid, number)?;
        Some((descriptor.file, *self.files.get(&descriptor.file)?))
    }
}

/// A process of the machine, to look at and to do things to. Clones are the
/// same process.
#[derive(Debug, Clone)]
pub struct Process {
    machine: Machine,
    pid: Pid,
}

impl Process {
    pub(crate) fn new(machine: Machine, pid: Pid) -> Process {
        Process { machine, pid }
    }

    /// Its id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Its machine.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The open descriptors with what they refer to; `None` is not a device of
    /// the GPU driver.
    #[must_use]
    pub fn descriptors(&self) -> Vec<(u32, Option<DeviceNode>)> {
        let state = self.machine.lock();
        let Some(process) = state.processes.get(&self.pid) else { return Vec::new() };
        process
            .descriptors
            .iter()
            .map(|(number, d)| (number, state.files.get(&d.file).and_then(|file| file.node())))
            .collect()
    }

    /// A descriptor's entry.
    #[must_use]
    pub fn descriptor(&self, number: u32) -> Option<Descriptor> {
        self.machine.lock().descriptor(self.pid, number)
    }

    /// The number from which descriptors are given; 3 at the start.
    pub fn set_first_descriptor(&self, first: u32) {
        self.with_descriptors(|table| table.first = first);
    }

    /// RLIMIT_NOFILE: opens that would get this number or a higher one are EMFILE.
    pub fn set_descriptor_limit(&self, limit: u32) {
        self.with_descriptors(|table| table.limit = limit);
    }

    /// RLIMIT_AS: a mapping that would bring those made through the platform above
    /// this many bytes is ENOMEM. Forked children inherit it.
    pub fn set_address_space_limit(&self, bytes: Option<usize>) {
        if let Some(space) = self.machine.lock().space_of(self.pid) {
            space.limit = bytes;
        }
    }

    /// Whether the process has no memory but what is mapped through the platform.
    /// Then the driver finds a hole wherever nothing is mapped; otherwise, and at
    /// the start, it takes that for memory of the host that the CPU may read and
    /// write. Forked children inherit it.
    pub fn set_memory_is_complete(&self, complete: bool) {
        if let Some(space) = self.machine.lock().space_of(self.pid) {
            space.complete = complete;
        }
    }

    /// Changes FD_CLOEXEC of a descriptor.
    pub fn set_close_on_exec(&self, number: u32, close: bool) {
        self.with_descriptors(|table| {
            if let Some(descriptor) = table.get_mut(number) {
                descriptor.close_on_exec = close;
            }
        });
    }

    /// Opens something that is not a device of the GPU driver.
    ///
    /// # Errors
    /// EMFILE.
    pub fn open_foreign(&self) -> Result<u32, Errno> {
        self.machine.lock().open_other(self.pid, true)
    }

    /// dup(2), close-on-exec.
    ///
    /// # Errors
    /// EBADF, EMFILE.
    pub fn duplicate(&self, number: u32) -> Result<u32, Errno> {
        let mut state = self.machine.lock();
        let process = state.processes.get_mut(&self.pid).ok_or(Errno::ESRCH)?;
        let descriptor = process.descriptors.get(number).ok_or(Errno::EBADF)?;
        process.descriptors.insert(descriptor.file, true)
    }

    /// Puts another process's descriptor into this one, as SCM_RIGHTS does.
    ///
    /// # Errors
    /// EBADF, EMFILE.
    pub fn receive(&self, from: &Process, number: u32) -> Result<u32, Errno> {
        let mut state = self.machine.lock();
        let descriptor = state.descriptor(from.pid, number).ok_or(Errno::EBADF)?;
        let process = state.processes.get_mut(&self.pid).ok_or(Errno::ESRCH)?;
        process.descriptors.insert(descriptor.file, true)
    }

    /// Closes a descriptor as something else than the library under test would.
    ///
    /// # Errors
    /// EBADF.
    pub fn close(&self, number: u32) -> Result<(), Errno> {
        let mut state = self.machine.lock();
        let process = state.processes.get_mut(&self.pid).ok_or(Errno::ESRCH)?;
        let removed = process.descriptors.remove(number).ok_or(Errno::EBADF)?;
        state.lost_descriptor(removed.file);
        Ok(())
    }

    /// Closes a device to the process by the device cgroup, or opens it again.
    /// For a render node this hides its GPU (kernel-rules sections 1 and 5).
    pub fn hide(&self, node: DeviceNode, hidden: bool) {
        let mut state = self.machine.lock();
        if let Some(process) = state.processes.get_mut(&self.pid) {
            if hidden {
                process.hidden.insert(node_key(node));
            } else {
                process.hidden.remove(&node_key(node));
            }
        }
    }

    /// Ends the process: descriptors and mappings go, and with the last process
    /// of the address space its primary object.
    pub fn exit(&self) {
        self.machine.lock().exit(self.pid);
    }

    /// Whether it runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.machine.lock().processes.contains_key(&self.pid)
    }

    fn with_descriptors(&self, act: impl FnOnce(&mut DescriptorTable)) {
        if let Some(process) = self.machine.lock().processes.get_mut(&self.pid) {
            act(&mut process.descriptors);
        }
    }
}
