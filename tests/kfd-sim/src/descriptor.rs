//! Descriptors and open file descriptions, as open(2) and dup(2) define them.

use alloc::collections::BTreeMap;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::DeviceNode;

use crate::gpu_memory::MemoryId;
use crate::kfd::ObjectId;

/// An open file description: what dup and fork share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(crate) u64);

/// What is behind an open file description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    /// `/dev/kfd`, with the process object it carries.
    Kfd { object: ObjectId },
    /// A render node.
    Render {
        /// `drm_render_minor`.
        minor: u32,
        /// The process object whose VM the file's VM is or was.
        serves: Option<ObjectId>,
    },
    /// A dma-buf over a piece of memory.
    DmaBuf {
        /// The memory, which it holds.
        memory: MemoryId,
        /// Opened for reading and writing.
        writable: bool,
    },
    /// `/dev/udmabuf`.
    Udmabuf,
    /// A file in memory that can neither shrink nor grow, which holds that.
    Memory { memory: MemoryId },
    /// Anything that is not a device of the GPU driver.
    Foreign,
}

impl File {
    pub(crate) fn node(self) -> Option<DeviceNode> {
        match self {
            File::Kfd { .. } => Some(DeviceNode::Kfd),
            File::Render { minor, .. } => Some(DeviceNode::Render(minor)),
            File::Udmabuf => Some(DeviceNode::Udmabuf),
            File::DmaBuf { .. } | File::Memory { .. } | File::Foreign => None,
        }
    }
}

/// One entry of a descriptor table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// The open file description.
    pub file: FileId,
    /// Closed by exec.
    pub close_on_exec: bool,
}

/// A process's descriptors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DescriptorTable {
    entries: BTreeMap<u32, Descriptor>,
    /// Descriptors below this are taken by others, such as the standard streams.
    pub first: u32,
    /// RLIMIT_NOFILE: descriptors are below this.
    pub limit: u32,
}

impl DescriptorTable {
    pub(crate) fn new() -> DescriptorTable {
        DescriptorTable { entries: BTreeMap::new(), first: 3, limit: 1024 }
    }

    /// The number the next open gets: the lowest free one.
    pub(crate) fn lowest_free(&self) -> Result<u32, Errno> {
        let mut free = self.first;
        for &number in self.entries.range(self.first..).map(|(number, _)| number) {
            if number != free {
                break;
            }
            free += 1;
        }
        if free < self.limit { Ok(free) } else { Err(Errno::EMFILE) }
    }

    pub(crate) fn insert(&mut self, file: FileId, close_on_exec: bool) -> Result<u32, Errno> {
        let number = self.lowest_free()?;
        self.entries.insert(number, Descriptor { file, close_on_exec });
        Ok(number)
    }

    pub(crate) fn get(&self, number: u32) -> Option<Descriptor> {
        self.entries.get(&number).copied()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Descriptor> {
        self.entries.get_mut(&number)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Descriptor> {
        self.entries.remove(&number)
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(Descriptor) -> bool) {
        self.entries.retain(|_, descriptor| keep(*descriptor));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Descriptor)> + '_ {
        self.entries.iter().map(|(number, descriptor)| (*number, *descriptor))
    }
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;

    use super::{DescriptorTable, FileId};

    #[test]
    fn lowest_free_number_is_taken_and_0_is_one() {
        let mut table = DescriptorTable { first: 0, ..DescriptorTable::new() };
        for expected in 0..3 {
            assert_eq!(table.insert(FileId(0), true), Ok(expected));
        }
        table.remove(1);
        table.remove(0);
        assert_eq!(table.insert(FileId(0), true), Ok(0));
        assert_eq!(table.insert(FileId(0), true), Ok(1));
    }

    #[test]
    fn a_full_table_is_emfile() {
        let mut table = DescriptorTable { limit: 4, ..DescriptorTable::new() };
        assert_eq!(table.insert(FileId(0), true), Ok(3));
        assert_eq!(table.insert(FileId(0), true), Err(Errno::EMFILE));
    }
}
