//! Changes of CPU mappings, of which the driver is told: kernel-rules section 2,
//! "USERPTR" (pages are not pinned) and "SVM and XNACK" (munmap removes ranges).

use alloc::vec::Vec;

use hsakmt_core::seam::{Advice, Protection};

use crate::address_space::Mapped;
use crate::kfd;
use crate::machine::State;
use crate::process::Pid;

impl State {
    /// A mapping was made; `over` what was there, which the host then allowed.
    pub(crate) fn put_mapping(&mut self, pid: Pid, address: usize, mapped: Mapped, over: bool) {
        if over {
            self.remove_mapping(pid, address, mapped.length);
        }
        if let Some(space) = self.space_of(pid) {
            space.insert(address, mapped);
        }
    }

    /// A range was unmapped; returns the parts that were mapped.
    pub(crate) fn remove_mapping(
        &mut self,
        pid: Pid,
        address: usize,
        length: usize,
    ) -> Vec<(usize, Mapped)> {
        let end = address.saturating_add(length);
        let Some(id) = self.processes.get(&pid).map(|process| process.space) else {
            return Vec::new();
        };
        let Some(space) = self.spaces.get_mut(&id) else { return Vec::new() };
        let blocks = space.split_blocks(address, end);
        let removed = space.remove(address, length);
        let complete = space.complete;
        let mut file_gone = false;
        for shown in removed.iter().map(|(_, mapped)| mapped.shown) {
            file_gone |= shown.file().is_some_and(|file| !space.shows_file(file));
            if let Some(memory) = shown.memory() {
                self.memory.unmapped(memory);
            }
        }
        if complete {
            // Where nothing was, nothing goes.
            for (at, mapped) in &removed {
                kfd::memory_unmapped(self, id, *at as u64, (at + mapped.length) as u64);
            }
        } else {
            kfd::memory_unmapped(self, id, address as u64, end as u64);
        }
        self.invalidate(pid, blocks);
        if file_gone {
            self.collect();
        } else {
            self.collect_memory();
        }
        removed
    }

    /// The CPU may do something else with a range.
    pub(crate) fn protect_mapping(
        &mut self,
        pid: Pid,
        address: usize,
        length: usize,
        allow: Protection,
    ) {
        let change = |mapped: &mut Mapped| mapped.protection = allow;
        let changed = self.change_mapping(pid, address, length, change);
        self.invalidate(pid, changed);
    }

    /// Advice was given.
    pub(crate) fn advise_mapping(
        &mut self,
        pid: Pid,
        address: usize,
        length: usize,
        advice: Advice,
    ) {
        // Where areas begin to differ, huge pages are split, and nothing else.
        let change: fn(&mut Mapped) = match advice {
            Advice::DontFork => |mapped| mapped.dont_fork = true,
            Advice::DoFork => |mapped| mapped.dont_fork = false,
            Advice::HugePage => |mapped| mapped.huge = Some(true),
            Advice::NoHugePage => |mapped| mapped.huge = Some(false),
            Advice::DontNeed | Advice::Remove => {
                let end = address.saturating_add(length);
                let blocks = self.space_of(pid).map(|space| space.split_blocks(address, end));
                self.invalidate(pid, blocks.unwrap_or_default());
                self.invalidate(pid, [(address, end)].into());
                return;
            }
            _ => return,
        };
        self.change_mapping(pid, address, length, change);
    }

    /// Changes something about a range; returns what is other than before.
    fn change_mapping(
        &mut self,
        pid: Pid,
        address: usize,
        length: usize,
        change: impl Fn(&mut Mapped),
    ) -> Vec<(usize, usize)> {
        let Some(space) = self.space_of(pid) else { return Vec::new() };
        let blocks = space.split_blocks(address, address.saturating_add(length));
        let changed = space.change(address, length, change);
        if !changed.is_empty() {
            self.invalidate(pid, blocks);
        }
        changed
    }

    fn invalidate(&mut self, pid: Pid, ranges: Vec<(usize, usize)>) {
        let Some(space) = self.processes.get(&pid).map(|process| process.space) else { return };
        for (start, end) in ranges {
            kfd::memory_changed(self, space, start as u64, end as u64);
        }
    }
}
