//! The mappings of one address space, as far as the simulated kernel made them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{DeviceNode, MapDevice, Protection};

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
    /// A dma-buf, which it keeps open.
    DmaBuf { file: FileId, memory: MemoryId },
    /// A file in memory, which it keeps open.
    File { file: FileId, memory: MemoryId },
}

impl Shown {
    pub(crate) fn file(self) -> Option<FileId> {
        match self {
            Shown::Anonymous => None,
            Shown::Device { file, .. } | Shown::DmaBuf { file, .. } | Shown::File { file, .. } => {
                Some(file)
            }
        }
    }

    /// Where in the memory a mapping begins: offsets of a device name buffers from
    /// their start on, those of a dma-buf places in it.
    pub(crate) fn offset(self, mapping: MapDevice) -> u64 {
        match self {
            Shown::DmaBuf { .. } | Shown::File { .. } => mapping.offset,
            _ => 0,
        }
    }

    /// The buffer's memory behind it.
    pub(crate) fn memory(self) -> Option<MemoryId> {
        match self {
            Shown::Anonymous => None,
            Shown::Device { memory, .. } => memory,
            Shown::DmaBuf { memory, .. } | Shown::File { memory, .. } => Some(memory),
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
    /// Where in a device's memory or a dma-buf it begins.
    pub offset: u64,
    /// Of a device's memory the host shows nothing yet: the CPU may not look at it.
    pub blank: bool,
    pub protection: Protection,
    /// MAP_SHARED.
    pub shared: bool,
    /// What the process advised about huge pages.
    pub huge: Option<bool>,
    /// Absent in forked children.
    pub dont_fork: bool,
    /// The host's memory belongs to the parent: a fork in the same host
    /// address space only pretends to have a copy.
    pub borrowed: bool,
}

impl Mapped {
    /// Memory of the process rather than of a device.
    pub(crate) fn is_memory(&self) -> bool {
        self.shown == Shown::Anonymous
    }

    fn allows(&self, protection: Protection) -> bool {
        self.is_memory() && self.protection.contains(protection)
    }

    /// Transparent huge pages under the setting `always`: private memory unless
    /// advised against, shared memory only if advised.
    fn may_be_huge(&self) -> bool {
        self.is_memory() && self.huge.unwrap_or(!self.shared)
    }

    /// Whether the kernel makes one area of two such neighbours (mm/vma.c). Each
    /// shared mapping has a file of its own.
    fn merges_with(&self, other: &Mapped) -> bool {
        let kind = |mapped: &Mapped| (mapped.protection, mapped.huge, mapped.dont_fork);
        let private = |mapped: &Mapped| mapped.is_memory() && !mapped.shared;
        private(self) && private(other) && kind(self) == kind(other)
    }
}

/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// The mappings, by start address; no two overlap.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddressSpace {
    mappings: BTreeMap<usize, Mapped>,
    /// Bytes of all mappings.
    length: usize,
    /// How many mappings show a file or a buffer's memory.
    files: BTreeMap<FileId, usize>,
    memories: BTreeMap<MemoryId, usize>,
    /// Whether the process has no memory but these mappings: what is not mapped
    /// here is a hole. Otherwise it is memory of the host that nobody told about.
    pub complete: bool,
    /// The primary object, which lives with the address space.
    pub primary: Option<ObjectId>,
    /// RLIMIT_AS in bytes, as far as mappings made through the platform count.
    pub limit: Option<usize>,
}

impl AddressSpace {
    /// An address space with nothing mapped, after an exec from this one.
    pub(crate) fn fresh(&self) -> AddressSpace {
        AddressSpace { complete: self.complete, ..AddressSpace::default() }
    }

    /// Puts a mapping where nothing is. What was known of the range before is
    /// forgotten: the host knows better.
    pub(crate) fn insert(&mut self, address: usize, mapped: Mapped) {
        self.remove(address, mapped.length);
        self.length += mapped.length;
        self.put(address, mapped);
    }

    fn put(&mut self, address: usize, mapped: Mapped) {
        if let Some(file) = mapped.shown.file() {
            *self.files.entry(file).or_default() += 1;
        }
        if let Some(memory) = mapped.shown.memory() {
            *self.memories.entry(memory).or_default() += 1;
        }
        self.mappings.insert(address, mapped);
    }

    fn take(&mut self, address: usize) -> Option<Mapped> {
        let mapped = self.mappings.remove(&address)?;
        self.length -= mapped.length;
        if let Some(file) = mapped.shown.file() {
            count_down(&mut self.files, file);
        }
        if let Some(memory) = mapped.shown.memory() {
            count_down(&mut self.memories, memory);
        }
        Some(mapped)
    }

    /// The files that mappings keep open.
    pub(crate) fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        self.files.keys().copied()
    }

    pub(crate) fn shows_file(&self, file: FileId) -> bool {
        self.files.contains_key(&file)
    }

    pub(crate) fn shows_memory(&self, memory: MemoryId) -> bool {
        self.memories.contains_key(&memory)
    }

    /// mm/mmap.c, may_expand_vm: ENOMEM beyond the limit. What a mapping replaces
    /// is not taken off.
    pub(crate) fn check_limit(&self, length: usize) -> Result<(), Errno> {
        match self.limit {
            Some(limit) if self.length.saturating_add(length) > limit => Err(Errno::ENOMEM),
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
        inside.into_iter().filter_map(|at| Some((at, self.take(at)?))).collect()
    }

    /// Changes something about the mappings of a range. Returns the parts that
    /// are other than before.
    pub(crate) fn change(
        &mut self,
        address: usize,
        length: usize,
        change: impl Fn(&mut Mapped),
    ) -> Vec<(usize, usize)> {
        self.split_at(address);
        self.split_at(address.saturating_add(length));
        let mut changed = Vec::new();
        for (&at, mapped) in self.mappings.range_mut(address..address.saturating_add(length)) {
            let before = *mapped;
            change(mapped);
            if *mapped != before {
                changed.push((at, at + mapped.length));
            }
        }
        changed
    }

    /// What of a range is blank, which it is no longer.
    pub(crate) fn take_blanks(&mut self, address: usize, length: usize) -> Vec<(usize, Mapped)> {
        let mut blanks = Vec::new();
        for (at, end) in self.change(address, length, |mapped| mapped.blank = false) {
            let pieces = self.mappings.range(at..end);
            blanks.extend(pieces.map(|(at, mapped)| (*at, *mapped)));
        }
        blanks
    }

    /// The pieces of a range in order, `None` for what is not mapped.
    fn pieces(&self, start: usize, end: usize) -> Vec<Option<Mapped>> {
        let mut pieces = Vec::new();
        let before = self.mappings.range(..start).next_back();
        let mut reached = start;
        for (&at, mapped) in before.into_iter().chain(self.mappings.range(start..end)) {
            if at + mapped.length <= start {
                continue;
            }
            if at > reached {
                pieces.push(None);
            }
            pieces.push(Some(*mapped));
            reached = at + mapped.length;
        }
        if reached < end {
            pieces.push(None);
        }
        pieces
    }

    /// Whether every page is memory, whatever the CPU may do with it.
    pub(crate) fn is_memory(&self, start: usize, end: usize) -> bool {
        let pieces = self.pieces(start, end);
        pieces.iter().all(|piece| piece.map_or(!self.complete, |mapped| mapped.is_memory()))
    }

    /// Whether the CPU may do this with every page of memory.
    pub(crate) fn allows(&self, start: usize, end: usize, protection: Protection) -> bool {
        let pieces = self.pieces(start, end);
        pieces.iter().all(|piece| piece.map_or(!self.complete, |mapped| mapped.allows(protection)))
    }

    /// Whether the kernel can copy to all of an interval (`copy_to_user`): unlike the
    /// fetching of pages that takes mappings of devices, too.
    pub(crate) fn takes_copies(&self, start: usize, end: usize) -> bool {
        let writable = |mapped: Mapped| mapped.protection.contains(Protection::WRITE);
        self.pieces(start, end).iter().all(|piece| piece.map_or(!self.complete, writable))
    }

    /// The part of an interval that is one area of memory with this address in
    /// it. Memory of the host reaches as far as nothing is mapped.
    pub(crate) fn memory_around(
        &self,
        address: usize,
        low: usize,
        high: usize,
    ) -> Option<(usize, usize)> {
        let before = self.mappings.range(..=address).next_back();
        let Some((&at, mapped)) = before.filter(|(at, mapped)| *at + mapped.length > address)
        else {
            if self.complete {
                return None;
            }
            let start = before.map_or(low, |(at, mapped)| low.max(at + mapped.length));
            let after = self.mappings.range(address..).next();
            return Some((start, after.map_or(high, |(at, _)| high.min(*at))));
        };
        if !mapped.is_memory() {
            return None;
        }
        let (mut start, mut end) = (at, at + mapped.length);
        for (&at, other) in self.mappings.range(..start).rev() {
            if start <= low || at + other.length != start || !other.merges_with(mapped) {
                break;
            }
            start = at;
        }
        for (&at, other) in self.mappings.range(end..) {
            if end >= high || at != end || !other.merges_with(mapped) {
                break;
            }
            end += other.length;
        }
        Some((start.max(low), end.min(high)))
    }

    /// The huge pages that may have to be split when areas begin to differ at the
    /// ends of a range: whole blocks of one area.
    pub(crate) fn split_blocks(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let block = |border: usize| {
            let low = border / HUGE_PAGE * HUGE_PAGE;
            let high = low.checked_add(HUGE_PAGE)?;
            let (_, mapped) = self.mappings.range(..=border).next_back()?;
            if border == low || !mapped.may_be_huge() {
                return None;
            }
            let around = self.memory_around(border, low, high)?;
            (around == (low, high)).then_some(around)
        };
        [start, end].into_iter().filter_map(block).collect()
    }

    /// The first page of the range that is not writable memory decides.
    pub(crate) fn user_pages(&self, start: usize, end: usize) -> UserPages {
        for piece in self.pieces(start, end) {
            let Some(mapped) = piece else {
                if self.complete {
                    return UserPages::Unreachable;
                }
                continue;
            };
            if !mapped.allows(Protection::READ) {
                return UserPages::Unreachable;
            }
            if !mapped.allows(Protection::WRITE) {
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
        let mut child = AddressSpace { limit: self.limit, ..self.fresh() };
        for (&at, mapped) in self.mappings.iter().filter(|(_, mapped)| copied(mapped)) {
            child.insert(at, Mapped { borrowed, ..*mapped });
        }
        child
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
        let offset = mapped.offset + before as u64;
        let rest = Mapped { length: mapped.length - before, offset, ..*mapped };
        mapped.length = before;
        self.put(address, rest);
    }
}

fn count_down<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
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
            offset: 0,
            blank: false,
            protection: Protection::READ | Protection::WRITE,
            shared: false,
            huge: None,
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
    fn kfd_mappings_and_dont_fork_ranges_are_absent_after_fork() {
        let mut space = AddressSpace::default();
        let device = |node| Mapped {
            shown: Shown::Device { file: FileId(1), node, memory: None },
            ..anonymous(0x1000)
        };
        space.insert(0x1000, device(DeviceNode::Kfd));
        space.insert(0x2000, device(DeviceNode::Render(128)));
        space.insert(0x3000, anonymous(0x2000));
        space.change(0x4000, 0x1000, |mapped| mapped.dont_fork = true);
        assert_eq!(ranges(&space.forked(false)), [(0x2000, 0x1000), (0x3000, 0x1000)]);
    }

    #[test]
    fn files_are_counted_by_piece() {
        let mut space = AddressSpace::default();
        let shown = Shown::Device { file: FileId(1), node: DeviceNode::Kfd, memory: None };
        space.insert(0x1000, Mapped { shown, ..anonymous(0x3000) });
        space.remove(0x2000, 0x1000);
        space.remove(0x1000, 0x1000);
        assert!(space.shows_file(FileId(1)));
        space.remove(0x3000, 0x1000);
        assert!(!space.shows_file(FileId(1)));
        assert_eq!(space.length, 0);
    }

    #[test]
    fn neighbours_of_one_kind_are_one_area() {
        let mut space = AddressSpace { complete: true, ..AddressSpace::default() };
        let shared = Mapped { shared: true, ..anonymous(0x1000) };
        for (at, mapped) in [
            (0x1000, anonymous(0x1000)),
            (0x2000, anonymous(0x2000)),
            (0x4000, Mapped { huge: Some(false), ..anonymous(0x1000) }),
            (0x5000, shared),
            (0x6000, shared),
        ] {
            space.insert(at, mapped);
        }
        for (address, expected) in [
            (0x1000, Some((0x1000, 0x4000))),
            (0x3fff, Some((0x1000, 0x4000))),
            (0x4000, Some((0x4000, 0x5000))),
            (0x6000, Some((0x6000, 0x7000))),
            (0x7000, None),
        ] {
            assert_eq!(space.memory_around(address, 0, 0x9000), expected, "{address:#x}");
        }
        assert_eq!(space.memory_around(0x2000, 0x1800, 0x3800), Some((0x1800, 0x3800)));
        space.complete = false;
        assert_eq!(space.memory_around(0x8000, 0, 0x9000), Some((0x7000, 0x9000)));
    }

    #[test]
    fn a_border_inside_a_whole_block_splits_it() {
        const BLOCK: usize = super::HUGE_PAGE;
        let mut space = AddressSpace::default();
        space.insert(BLOCK, anonymous(2 * BLOCK));
        space.insert(4 * BLOCK + 0x1000, anonymous(BLOCK));
        space.insert(8 * BLOCK, Mapped { shared: true, ..anonymous(BLOCK) });
        for (start, end, expected) in [
            (BLOCK, 2 * BLOCK, &[][..]),
            (BLOCK, BLOCK + 0x1000, &[(BLOCK, 2 * BLOCK)]),
            (BLOCK + 0x1000, 3 * BLOCK - 0x1000, &[(BLOCK, 2 * BLOCK), (2 * BLOCK, 3 * BLOCK)]),
            // No whole block, and no huge pages.
            (4 * BLOCK + 0x2000, 4 * BLOCK + 0x3000, &[]),
            (8 * BLOCK, 8 * BLOCK + 0x1000, &[]),
        ] {
            assert_eq!(space.split_blocks(start, end), expected, "{start:#x}, {end:#x}");
        }
        space.change(BLOCK, BLOCK, |mapped| mapped.huge = Some(false));
        assert_eq!(space.split_blocks(BLOCK, BLOCK + 0x1000), []);
        space.change(8 * BLOCK, BLOCK, |mapped| mapped.huge = Some(true));
        assert_eq!(space.split_blocks(8 * BLOCK, 8 * BLOCK + 0x1000).len(), 1);
    }
}
