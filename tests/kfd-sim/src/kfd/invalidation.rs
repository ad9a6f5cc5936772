//! What the driver does when memory below user pages and SVM ranges changes:
//! kernel-rules section 2, "USERPTR", "after munmap of a userptr" and
//! "munmap, mremap" (amdgpu_amdkfd_gpuvm.c, kfd_svm.c).

use super::{ObjectId, buffers, queues, svm};
use crate::address_space::{SpaceId, UserPages};
use crate::machine::State;

/// The pages of a buffer of user memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// The process's, as they are now.
    Current,
    /// They changed, and the restore work did not run yet.
    Stale,
    /// When they were last fetched some were missing: accesses fault.
    Missing,
}

/// A part of an address space was unmapped: SVM ranges lose it. The driver does
/// that a moment later.
pub(crate) fn memory_unmapped(state: &mut State, space: SpaceId, start: u64, end: u64) {
    let Some(id) = state.spaces.get(&space).and_then(|space| space.primary) else { return };
    if let Some(object) = state.objects.get_mut(&id) {
        // The part is gone without a stop of the queues.
        let removed = object.svm.remove(start, end);
        if !object.xnack {
            state.memory.drop_system(removed);
        }
    }
    queues::memory_unmapped(state, id, start, end);
    memory_changed(state, space, start, end);
}

/// What a part of an address space shows is not what it was: the queues stop until
/// the pages were fetched again. With XNACK on, of SVM ranges only those that are
/// to be mapped at all times stop them.
pub(crate) fn memory_changed(state: &mut State, space: SpaceId, start: u64, end: u64) {
    let Some(id) = state.spaces.get(&space).and_then(|space| space.primary) else { return };
    let Some(object) = state.objects.get_mut(&id) else { return };
    let mut evictions = 0;
    for handle in object.user_buffers.overlapping(start, end) {
        let Some(buffer) = object.buffer_mut(handle) else { continue };
        if let Some(source) = &mut buffer.source {
            if source.pages != Pages::Stale && !buffer.mapped.is_empty() {
                evictions += 1;
            }
            source.pages = Pages::Stale;
        }
    }
    for (_, range) in object.svm.overlapping_mut(start, end) {
        // With XNACK on no other range counts as mapped.
        evictions += u64::from(range.mapped);
        range.mapped = false;
    }
    object.evictions += evictions;
}

/// Fetches the pages of a buffer of user memory again, if they changed.
pub(crate) fn fetch(state: &mut State, id: ObjectId, handle: u64) {
    let State { objects, spaces, .. } = state;
    let Some(object) = objects.get_mut(&id) else { return };
    let space = spaces.get(&object.space);
    let Some(buffer) = object.buffer_mut(handle) else { return };
    let size = buffer.size;
    let Some(source) = &mut buffer.source else { return };
    if source.pages == Pages::Current {
        return;
    }
    let (start, end) = (source.address as usize, (source.address + size) as usize);
    let found = space.map_or(UserPages::Unreachable, |space| space.user_pages(start, end));
    source.pages = if found == UserPages::Writable { Pages::Current } else { Pages::Missing };
}

/// The restore work: everything that was evicted comes back as far as there is
/// memory for it.
pub(crate) fn restore(state: &mut State, id: ObjectId) {
    let Some(object) = state.objects.get(&id) else { return };
    let stale: alloc::vec::Vec<u64> = object
        .records
        .iter()
        .flat_map(|record| {
            record.buffers.iter().map(|(index, buffer)| (record.gpu_id, *index, buffer))
        })
        .filter(|(_, _, buffer)| buffer.source.is_some_and(|user| user.pages == Pages::Stale))
        .map(|(gpu_id, index, _)| buffers::join(gpu_id, index))
        .collect();
    for handle in stale {
        fetch(state, id, handle);
    }
    let State { objects, spaces, .. } = state;
    let Some(object) = objects.get_mut(&id) else { return };
    let Some(space) = spaces.get(&object.space) else { return };
    let evicted: alloc::vec::Vec<(u64, u64)> = object
        .svm
        .iter()
        .filter(|(_, range)| !range.mapped)
        .map(|(at, range)| (at, at + range.length))
        .collect();
    for (start, end) in evicted {
        // A range without memory stays out.
        let _ = svm::map_ranges(object, space, start, end);
    }
}

#[cfg(test)]
mod tests {
    use hsakmt_core::seam::{Advice, Os, Placement, Protection};
    use hsakmt_core::uapi::kfd::SetXnackMode;

    use crate::fixture::{
        Bound, Sim, alloc_user, anonymous, ask, bind, boot, gpu_id, map, map_memory, set_svm, unmap,
    };

    const AT: u64 = 0x7000_0000;
    const VA: u64 = 0x10_0000;
    const BLOCK: u64 = 2 << 20;
    const ACCESS: u32 = 2;

    fn start() -> (Sim, Bound) {
        let sim = boot("mi210:svm=1");
        let bound = bind(&sim);
        (sim, bound)
    }

    /// User pages that the GPU has mapped.
    fn user(sim: &Sim, bound: &Bound, va: u64, source: u64, size: u64) -> u64 {
        let handle = alloc_user(sim, &bound.kfd, va, source, size).unwrap();
        assert_eq!(map(sim, &bound.kfd, handle, &[gpu_id(sim, 0)]), Ok(0));
        handle
    }

    /// What something evicts when everything is there before.
    fn evicted(sim: &Sim, act: impl FnOnce()) -> u64 {
        sim.process().settle();
        let before = sim.process().evictions();
        act();
        sim.process().evictions() - before
    }

    #[test]
    fn every_change_of_the_memory_below_is_an_eviction() {
        let (sim, bound) = start();
        let (at, length) = (AT as usize, 0x2000);
        map_memory(&sim, AT, length);
        let handle = user(&sim, &bound, VA, AT, 0x2000);
        let read = Protection::READ;
        let write = Protection::READ | Protection::WRITE;
        let protect = |allow| evicted(&sim, || sim.protect(at, 0x1000, allow).unwrap());
        assert_eq!([protect(write), protect(read), protect(read), protect(write)], [0, 1, 0, 1]);
        for (advice, expected) in [
            (Advice::DontNeed, 1),
            (Advice::Remove, 1),
            (Advice::DontFork, 0),
            (Advice::NoHugePage, 0),
            (Advice::DontDump, 0),
        ] {
            let count = evicted(&sim, || sim.advise(at, length, advice).unwrap());
            assert_eq!(count, expected, "{advice:?}");
        }
        assert_eq!(evicted(&sim, || map_memory(&sim, AT, 0x1000)), 1);
        assert_eq!(evicted(&sim, || sim.unmap(at + 0x1000, 0x1000).unwrap()), 1);
        map_memory(&sim, AT, length);
        // What the GPU has not mapped is nobody's loss.
        assert_eq!(unmap(&sim, &bound.kfd, handle, &[gpu_id(&sim, 0)]), Ok(0));
        assert_eq!(evicted(&sim, || sim.unmap(at, length).unwrap()), 0);
    }

    #[test]
    fn what_is_evicted_counts_again_after_it_came_back() {
        let (sim, bound) = start();
        map_memory(&sim, AT, 0x1000);
        let handle = user(&sim, &bound, VA, AT, 0x1000);
        let drop = || sim.advise(AT as usize, 0x1000, Advice::DontNeed).unwrap();
        assert_eq!(evicted(&sim, || (0..3).for_each(|_| drop())), 1);
        let id = gpu_id(&sim, 0);
        let again = || {
            drop();
            assert_eq!(unmap(&sim, &bound.kfd, handle, &[id]), Ok(0));
            assert_eq!(map(&sim, &bound.kfd, handle, &[id]), Ok(0));
        };
        assert_eq!(evicted(&sim, || (0..3).for_each(|_| again())), 3);
    }

    #[test]
    fn each_buffer_of_the_same_pages_counts() {
        let (sim, bound) = start();
        map_memory(&sim, AT, 0x4000);
        for n in 0..3 {
            user(&sim, &bound, VA + n * 0x1_0000, AT + n * 0x1000, 0x2000);
        }
        let drop = |offset: usize, length| {
            evicted(&sim, || sim.advise(AT as usize + offset, length, Advice::DontNeed).unwrap())
        };
        assert_eq!(
            [drop(0, 0x1000), drop(0x1000, 0x1000), drop(0x3000, 0x1000), drop(0, 0x4000)],
            [1, 2, 1, 3]
        );
    }

    #[test]
    fn splitting_a_huge_page_evicts_its_other_pages() {
        let (sim, bound) = start();
        let base = 0x8000_0000;
        let fresh = |huge: Option<Advice>| {
            map_memory(&sim, base, 2 * BLOCK as usize);
            if let Some(advice) = huge {
                sim.advise(base as usize, 2 * BLOCK as usize, advice).unwrap();
            }
        };
        fresh(None);
        let at = |offset: u64| (base + offset) as usize;
        user(&sim, &bound, VA, base + 0x1000, 0x1000);
        user(&sim, &bound, VA + 0x1_0000, base + BLOCK, 0x1000);
        sim.process().settle();
        let neighbour = |act: &dyn Fn()| evicted(&sim, act);
        let changes: [(&str, &dyn Fn()); 5] = [
            ("munmap", &|| sim.unmap(at(0x10_0000), 0x1000).unwrap()),
            ("mmap", &|| map_memory(&sim, base + 0x10_0000, 0x1000)),
            ("mprotect", &|| sim.protect(at(0x10_0000), 0x1000, Protection::READ).unwrap()),
            ("DONTNEED", &|| sim.advise(at(0x10_0000), 0x1000, Advice::DontNeed).unwrap()),
            ("DONTFORK", &|| sim.advise(at(0x10_0000), 0x1000, Advice::DontFork).unwrap()),
        ];
        for (name, change) in changes {
            fresh(None);
            // The other block is not split.
            assert_eq!(neighbour(change), 1, "{name}");
            fresh(Some(Advice::NoHugePage));
            assert_eq!(neighbour(change), 0, "{name} without huge pages");
        }
        // Whole blocks are not split.
        fresh(None);
        assert_eq!(neighbour(&|| sim.unmap(at(BLOCK), BLOCK as usize).unwrap()), 1);
        map_memory(&sim, base, BLOCK as usize);
        assert_eq!(neighbour(&|| map_memory(&sim, base + BLOCK, BLOCK as usize)), 0);
    }

    #[test]
    fn ranges_are_evicted_with_xnack_off_and_go_with_their_memory() {
        for xnack_enabled in [0, 1] {
            let (sim, bound) = start();
            let id = gpu_id(&sim, 0);
            assert_eq!(ask(&sim, &bound.kfd, &mut SetXnackMode { xnack_enabled }), Ok(0));
            map_memory(&sim, AT, 0x3000);
            assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x2000, &[(ACCESS, id)]), Ok(0));
            assert_eq!(set_svm(&sim, &bound.kfd, AT + 0x2000, 0x1000, &[(4, id)]), Ok(0));
            let drop = |offset: usize| {
                evicted(&sim, || {
                    sim.advise(AT as usize + offset, 0x1000, Advice::DontNeed).unwrap();
                })
            };
            let off = u64::from(xnack_enabled == 0);
            assert_eq!([drop(0), drop(0x1000), drop(0x2000)], [off, off, 0]);
            assert_eq!(sim.process().svm_ranges().len(), 2);
            sim.process().settle();
            assert_eq!(sim.process().gpu_access(id, AT, true), Ok(()));
            // The part that is unmapped goes without stopping anything.
            let count = evicted(&sim, || sim.unmap(AT as usize + 0x1000, 0x1000).unwrap());
            assert_eq!(count, 0);
            assert_eq!(sim.process().gpu_access(id, AT, true), Ok(()));
        }
    }

    #[test]
    fn a_range_that_is_always_mapped_is_evicted_with_xnack_on() {
        let (sim, bound) = start();
        assert_eq!(ask(&sim, &bound.kfd, &mut SetXnackMode { xnack_enabled: 1 }), Ok(0));
        map_memory(&sim, AT, 0x1000);
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x1000, &[(5, 1 << 6)]), Ok(0));
        let drop = || sim.advise(AT as usize, 0x1000, Advice::DontNeed).unwrap();
        assert_eq!(evicted(&sim, drop), 1);
        // The mode does not change what is mapped, only what is wanted.
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x1000, &[(6, 1 << 6)]), Ok(0));
        assert_eq!(evicted(&sim, drop), 0);
    }

    #[test]
    fn a_range_in_a_huge_page_is_evicted_when_that_is_split() {
        let (sim, bound) = start();
        let base = 0x8000_0000;
        map_memory(&sim, base, BLOCK as usize);
        let id = gpu_id(&sim, 0);
        assert_eq!(set_svm(&sim, &bound.kfd, base, 0x1000, &[(ACCESS, id)]), Ok(0));
        let at = base as usize + 0x10_0000;
        assert_eq!(evicted(&sim, || sim.unmap(at, 0x1000).unwrap()), 1);
        assert_eq!(evicted(&sim, || sim.unmap(at + 0x1000, 0x1000).unwrap()), 0);
    }

    #[test]
    fn forked_children_and_fresh_mappings_evict_nothing() {
        let (sim, bound) = start();
        map_memory(&sim, AT, 0x1000);
        user(&sim, &bound, VA, AT, 0x1000);
        let count = evicted(&sim, || {
            sim.enter_fork_child();
            sim.unmap(AT as usize, 0x1000).unwrap();
            sim.leave_child();
            let next = anonymous(Placement::Free(AT as usize + 0x1000), 0x1000);
            Os::map(&sim, next).unwrap();
            sim.unmap(AT as usize + 0x1000, 0x1000).unwrap();
        });
        assert_eq!(count, 0);
    }

    /// Nothing here may take time that grows with the number of buffers alive.
    #[test]
    fn many_live_buffers_are_no_burden() {
        let (sim, bound) = start();
        sim.machine().keep_log(false);
        let id = gpu_id(&sim, 0);
        let count = 100_000;
        map_memory(&sim, AT, count * 0x2000);
        sim.advise(AT as usize, count * 0x2000, Advice::NoHugePage).unwrap();
        let handles: alloc::vec::Vec<u64> = (0..count as u64)
            .map(|n| user(&sim, &bound, 0x1_0000_0000 + n * 0x1000, AT + n * 0x2000, 0x1000))
            .collect();
        for n in 0..count as u64 {
            let free = AT + n * 0x2000 + 0x1000;
            sim.unmap(free as usize, 0x1000).unwrap();
            map_memory(&sim, free, 0x1000);
            assert_eq!(set_svm(&sim, &bound.kfd, free, 0x1000, &[]), Ok(0));
        }
        assert_eq!(sim.process().evictions(), 0);
        for &handle in &handles {
            assert_eq!(unmap(&sim, &bound.kfd, handle, &[id]), Ok(0));
            assert_eq!(crate::fixture::free(&sim, &bound.kfd, handle), Ok(0));
        }
        assert_eq!(sim.machine().leftovers().buffers.len(), 0);
    }
}
