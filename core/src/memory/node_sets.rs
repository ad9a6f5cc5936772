//! Arrays of node ids that callers may keep: made once, never changed, and alive
//! as long as the context.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::gpu_set::GpuSet;
use crate::error::Error;
use crate::fallible::{try_box, try_push};
use crate::set_once::SetOnce;

/// Entries of one link of the chain.
const ENTRIES: usize = 32;

/// One array and what it stands for.
#[derive(Debug)]
struct Entry {
    gpus: GpuSet,
    /// The topology that its node ids are of.
    generation: u64,
    nodes: Vec<u32>,
}

/// The arrays that were made, in a chain that only grows: reading it needs no lock.
#[derive(Debug)]
pub(super) struct NodeSets {
    entries: [SetOnce<Entry>; ENTRIES],
    more: SetOnce<Box<[NodeSets]>>,
}

impl NodeSets {
    pub(super) const fn new() -> NodeSets {
        NodeSets { entries: [const { SetOnce::new() }; ENTRIES], more: SetOnce::new() }
    }

    /// The array of a set, if it is the first that was made: on most machines memory
    /// is mapped on the same GPUs time and again.
    #[inline(always)]
    pub(super) fn first(&self, gpus: GpuSet, generation: u64) -> Option<&[u32]> {
        let entry = self.entries.first()?.get()?;
        (entry.gpus == gpus && entry.generation == generation).then_some(&*entry.nodes)
    }

    /// The array of a set, if it was made.
    pub(super) fn find(&self, gpus: GpuSet, generation: u64) -> Option<&[u32]> {
        let mut link = self;
        loop {
            for entry in &link.entries {
                let entry = entry.get()?;
                if entry.gpus == gpus && entry.generation == generation {
                    return Some(&entry.nodes);
                }
            }
            link = link.more.get()?.first()?;
        }
    }

    /// Makes the array of a set, unless somebody was first. Callers take turns.
    ///
    /// # Errors
    /// NO_MEMORY.
    pub(super) fn add(
        &self,
        gpus: GpuSet,
        generation: u64,
        nodes: impl Iterator<Item = u32>,
    ) -> Result<(), Error> {
        let mut all = Vec::new();
        for node in nodes {
            try_push(&mut all, node)?;
        }
        let mut entry = Entry { gpus, generation, nodes: all };
        let mut link = self;
        loop {
            for cell in &link.entries {
                match cell.set(entry) {
                    Ok(_) => return Ok(()),
                    Err(back) => entry = back,
                }
            }
            if link.more.get().is_none() {
                let _ = link.more.set(try_box(NodeSets::new())?);
            }
            match link.more.get().and_then(|more| more.first()) {
                Some(next) => link = next,
                None => return Err(Error::no_memory(0)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_stay_where_they_are() {
        let sets = NodeSets::new();
        sets.add(GpuSet::one(0), 1, [5].into_iter()).unwrap();
        let first = sets.find(GpuSet::one(0), 1).unwrap();
        for place in 1..64 {
            sets.add(GpuSet::one(place), 1, [u32::from(place)].into_iter()).unwrap();
            sets.add(GpuSet::one(place), 2, [100].into_iter()).unwrap();
        }
        assert_eq!(first.as_ptr(), sets.find(GpuSet::one(0), 1).unwrap().as_ptr());
        assert_eq!(sets.find(GpuSet::one(40), 1), Some(&[40][..]));
        assert_eq!(sets.find(GpuSet::one(40), 2), Some(&[100][..]));
        assert_eq!(sets.find(GpuSet::one(40), 3), None);
    }
}
