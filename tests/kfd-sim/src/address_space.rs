//! The mappings of one address space, as far as the simulated kernel made them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{DeviceNode, Protection};

use crate::descriptor::FileId;
use crate::gpu_memory::MemoryId;
use crate::kfd::ObjectId;

/// An address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SpaceId(pub u64);

/// What a mapping shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Anonymous memory.
    Anonymous,
    /// Memory of a device; it keeps the file open.
    Device { file: FileId, node: DeviceNode, memory: Option<MemoryId> },
}

impl Shown {
    pub(crate) fn file(self) -> Option<FileId> {
        match self {
            Shown::Anonymous => None,
            Shown::Device { file, .. } => Some(file),
        }
    }

    /// The buffer's memory behind it.
    pub(crate) fn memory(self) -> Option<MemoryId> {
        match self {
            Shown::Anonymous => None,
            Shown::Device { memory, .. } => memory,
        }
    }
}

/// What the driver finds when it faults pages of a process in for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserPages {
    Writable,
    /// A page can be read only.
    ReadOnly,
    /// A page is a device's or cannot be touched.
    Unreachable,
}

/// One mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub length: usize,
    pub shown: Shown,
    pub protection: Protection,
    /// Absent in forked children.
    pub dont_fork: bool,
    /// The host's memory belongs to the parent: a fork in the same host
    /// address space only pretends to have a copy.
    pub borrowed: bool,
}

/// The mappings, by start address; no two overlap.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddressSpace {
    mappings: BTreeMap<usize, Mapped>,
    /// The primary object, which lives with the address space.
    pub primary: Option<ObjectId>,
    /// RLIMIT_AS in bytes, as far as mappings made through the platform count.
    pub limit: Option<usize>,
}

impl AddressSpace {
    pub(crate) fn insert(&mut self, address: usize, mapped: Mapped) {
        self.remove(address, mapped.length);
        self.mappings.insert(address, mapped);
    }

    /// mm/mmap.c, may_expand_vm: ENOMEM beyond the limit. What a mapping replaces
    /// is not taken off.
    pub(crate) fn check_limit(&self, length: usize) -> Result<(), Errno> {
        let mapped: usize = self.mappings.values().map(|mapped| mapped.length).sum();
        match self.limit {
            Some(limit) if mapped.saturating_add(length) > limit => Err(Errno::ENOMEM),
            _ => Ok(()),
        }
    }

    /// Takes a range out and returns the parts that were mapped.
    pub(crate) fn remove(&mut self, address: usize, length: usize) -> Vec<(usize, Mapped)> {
        self.split_at(address);
        self.split_at(address.saturating_add(length));
        let inside: Vec<usize> = self
            .mappings
            .range(address..address.saturating_add(length))
            .map(|(at, _)| *at)
            .collect();
        inside.into_iter().filter_map(|at| Some((at, self.mappings.remove(&at)?))).collect()
    }

    /// Sets whether forked children get the range.
    pub(crate) fn set_dont_fork(&mut self, address: usize, length: usize, dont_fork: bool) {
        self.split_at(address);
        self.split_at(address.saturating_add(length));
        let range = address..address.saturating_add(length);
        for mapped in self.mappings.range_mut(range).map(|(_, mapped)| mapped) {
            mapped.dont_fork = dont_fork;
        }
    }

    /// Sets what the CPU may do with the range.
    pub(crate) fn protect(&mut self, address: usize, length: usize, protection: Protection) {
        self.split_at(address);
        self.split_at(address.saturating_add(length));
        let range = address..address.saturating_add(length);
        for mapped in self.mappings.range_mut(range).map(|(_, mapped)| mapped) {
            mapped.protection = protection;
        }
    }

    /// The first page of the range that is not writable memory decides.
    pub(crate) fn user_pages(&self, start: usize, end: usize) -> UserPages {
        let before = self.mappings.range(..start).next_back();
        let inside = self.mappings.range(start..end);
        for (&at, mapped) in before.into_iter().chain(inside) {
            if at + mapped.length <= start {
                continue;
            }
            if mapped.shown != Shown::Anonymous || !mapped.protection.contains(Protection::READ) {
                return UserPages::Unreachable;
            }
            if !mapped.protection.contains(Protection::WRITE) {
                return UserPages::ReadOnly;
            }
        }
        UserPages::Writable
    }

    /// What a forked child has: no KFD mapping (they are DONTCOPY, kernel-rules
    /// section 3) and nothing that was advised against.
    pub(crate) fn forked(&self, borrowed: bool) -> AddressSpace {
        let copied = |mapped: &Mapped| {
            let kfd = matches!(mapped.shown, Shown::Device { node: DeviceNode::Kfd, .. });
            !kfd && !mapped.dont_fork
        };
        AddressSpace {
            mappings: self
                .mappings
                .iter()
                .filter(|(_, mapped)| copied(mapped))
                .map(|(at, mapped)| (*at, Mapped { borrowed, ..*mapped }))
                .collect(),
            primary: None,
            limit: self.limit,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, Mapped)> + '_ {
        self.mappings.iter().map(|(at, mapped)| (*at, *mapped))
    }

    fn split_at(&mut self, address: usize) {
        let Some((&start, mapped)) = self.mappings.range_mut(..address).next_back() else { return };
        let before = address - start;
        if before >= mapped.length {
            return;
        }
        let rest = Mapped { length: mapped.length - before, ..*mapped };
        mapped.length = before;
        self.mappings.insert(address, rest);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{AddressSpace, Mapped, Shown};
    use crate::descriptor::FileId;
    use hsakmt_core::seam::{DeviceNode, Protection};

    fn anonymous(length: usize) -> Mapped {
        Mapped {
            length,
            shown: Shown::Anonymous,
            protection: Protection::READ | Protection::WRITE,
            dont_fork: false,
            borrowed: false,
        }
    }

    fn ranges(space: &AddressSpace) -> Vec<(usize, usize)> {
        space.iter().map(|(at, mapped)| (at, mapped.length)).collect()
    }

    #[test]
    fn a_hole_splits_a_mapping() {
        let mut space = AddressSpace::default();
        space.insert(0x1000, anonymous(0x4000));
        let removed = space.remove(0x2000, 0x1000);
        assert_eq!(removed.len(), 1);
        assert_eq!(ranges(&space), [(0x1000, 0x1000), (0x3000, 0x2000)]);
    }

    #[test]
    fn a_mapping_over_others_replaces_them() {
        let mut space = AddressSpace::default();
        space.insert(0x1000, anonymous(0x1000));
        space.insert(0x3000, anonymous(0x2000));
        space.insert(0x1000, anonymous(0x3000));
        assert_eq!(ranges(&space), [(0x1000, 0x3000), (0x4000, 0x1000)]);
    }

    #[test]
    fn kfd_mappings_and_dont_fork_ranges_are_absent_after_fork() {
        let mut space = AddressSpace::default();
        let device = |node| Mapped {
            shown: Shown::Device { file: FileId(1), node, memory: None },
            ..anonymous(0x1000)
        };
        space.insert(0x1000, device(DeviceNode::Kfd));
        space.insert(0x2000, device(DeviceNode::Render(128)));
        space.insert(0x3000, anonymous(0x2000));
        space.set_dont_fork(0x4000, 0x1000, true);
        assert_eq!(ranges(&space.forked(false)), [(0x2000, 0x1000), (0x3000, 0x1000)]);
    }
}
