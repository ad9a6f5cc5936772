//! A GPU's access to an address: kernel-rules section 2, "MAP", "after munmap of a
//! userptr" and "SVM and XNACK" (the fault handler is in kfd_svm.c).

use core::fmt;

use hsakmt_core::seam::Protection;

use super::buffers::WRITABLE;
use super::invalidation::{self, Pages};
use super::{ObjectId, svm};
use crate::gpu_memory::MemoryId;
use crate::gpu_vm::Shows;
use crate::machine::State;
use crate::svm_ranges::{GPU_READS_ONLY, NEW_GRANULARITY, longest_range};

const PAGE: u64 = 4096;

/// Why a GPU's access failed. The kernel reports it as a memory exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The process has no VM on the GPU.
    NoVm,
    /// Nothing is mapped there.
    NotMapped,
    /// It was a write, and the mapping or the memory is for reading.
    ReadOnly,
    /// The SVM range gives the GPU no access.
    NoAccess,
    /// The buffer or range is there, and memory that the CPU may access is not.
    NoMemory,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::NoVm => "the GPU has no VM",
            Fault::NotMapped => "nothing is mapped",
            Fault::ReadOnly => "it can only be read",
            Fault::NoAccess => "the GPU has no access to the SVM range",
            Fault::NoMemory => "the memory is gone or closed to the CPU",
        })
    }
}

impl core::error::Error for Fault {}

/// Does what an access does. Queues that were stopped for an eviction run again
/// only after the pages were fetched, and so does the access.
pub(crate) fn access(
    state: &mut State,
    id: ObjectId,
    gpu_id: u32,
    address: u64,
    write: bool,
) -> Result<(), Fault> {
    let object = state.objects.get(&id).ok_or(Fault::NoVm)?;
    let file = object.gpu(gpu_id).ok().and_then(|record| record.file).ok_or(Fault::NoVm)?;
    let vm = state.vms.get(&file).ok_or(Fault::NoVm)?;
    match vm.at(address).map(|(_, range)| range.shows) {
        Some(Shows::Driver) if write => Err(Fault::ReadOnly),
        Some(Shows::Driver) => Ok(()),
        Some(Shows::Buffer { handle, .. }) => access_buffer(state, id, handle, write),
        Some(Shows::Handle { writable, .. }) if write && !writable => Err(Fault::ReadOnly),
        Some(Shows::Handle { .. }) => Ok(()),
        None => access_range(state, id, gpu_id, address, write),
    }
}

/// Where what an address shows is.
pub(crate) enum Target {
    /// In memory of a device or of the driver, at an offset.
    Memory(MemoryId, u64),
    /// In the process, at an address.
    Process(u64),
    /// In a page of the driver, whose contents nobody knows.
    Driver,
}

/// Does what an access does, and tells where it goes.
pub(crate) fn target(
    state: &mut State,
    id: ObjectId,
    gpu_id: u32,
    address: u64,
    write: bool,
) -> Result<Target, Fault> {
    access(state, id, gpu_id, address, write)?;
    let object = state.objects.get(&id).ok_or(Fault::NoVm)?;
    let file = object.gpu(gpu_id).ok().and_then(|record| record.file).ok_or(Fault::NoVm)?;
    let vm = state.vms.get(&file).ok_or(Fault::NoVm)?;
    let Some((start, range)) = vm.at(address) else { return Ok(Target::Process(address)) };
    let offset = address - start;
    match range.shows {
        Shows::Driver => Ok(Target::Driver),
        Shows::Handle { memory, offset: start, .. } => Ok(Target::Memory(memory, start + offset)),
        Shows::Buffer { handle, .. } => {
            let buffer = object.buffer(handle).ok_or(Fault::NotMapped)?;
            Ok(match buffer.source {
                Some(source) => Target::Process(source.address + offset),
                None => Target::Memory(buffer.memory, offset),
            })
        }
    }
}

fn access_buffer(state: &mut State, id: ObjectId, handle: u64, write: bool) -> Result<(), Fault> {
    let buffer = |state: &State| {
        let buffer = state.objects.get(&id).and_then(|object| object.buffer(handle));
        buffer.map(|buffer| (buffer.flags, buffer.source)).ok_or(Fault::NotMapped)
    };
    let (flags, source) = buffer(state)?;
    if source.is_some_and(|source| source.pages == Pages::Stale) {
        invalidation::fetch(state, id, handle);
    }
    if write && flags & WRITABLE == 0 {
        return Err(Fault::ReadOnly);
    }
    match buffer(state)?.1 {
        Some(source) if source.pages != Pages::Current => Err(Fault::NoMemory),
        _ => Ok(()),
    }
}

fn access_range(
    state: &mut State,
    id: ObjectId,
    gpu_id: u32,
    address: u64,
    write: bool,
) -> Result<(), Fault> {
    let capable = state.topology.gpu(gpu_id).is_some_and(|gpu| gpu.svm_capable);
    if !state.kernel.svm || !capable {
        return Err(Fault::NotMapped);
    }
    let object = state.objects.get(&id).ok_or(Fault::NotMapped)?;
    if object.svm.at(address).is_none() {
        create_range(state, id, address)?;
    }
    let State { objects, spaces, .. } = state;
    let object = objects.get_mut(&id).ok_or(Fault::NotMapped)?;
    let (at, range) = object.svm.at(address).ok_or(Fault::NotMapped)?;
    let range = *range;
    if range.attributes.accessible() & object.svm_bit(gpu_id).unwrap_or(0) == 0 {
        return Err(Fault::NoAccess);
    }
    let space = spaces.get(&object.space).ok_or(Fault::NoMemory)?;
    if object.stops_for(&range.attributes) && !range.mapped {
        // What was evicted is mapped again before any queue runs.
        svm::map_ranges(object, space, at, at + range.length).map_err(|_| Fault::NoMemory)?;
    }
    let page = (address / PAGE * PAGE) as usize;
    let allows = |right| space.allows(page, page + PAGE as usize, right);
    if !allows(Protection::READ) {
        return Err(Fault::NoMemory);
    }
    if write && (!allows(Protection::WRITE) || range.attributes.flags & GPU_READS_ONLY != 0) {
        return Err(Fault::ReadOnly);
    }
    Ok(())
}

/// With XNACK on, the fault handler makes a range where there is memory of the
/// process, before it looks at what may be done with that: as much as a new range
/// moves together, of the one area, between other ranges. Neither buffers nor
/// mapped user pages of buffers get one.
fn create_range(state: &mut State, id: ObjectId, address: u64) -> Result<(), Fault> {
    let object = state.objects.get(&id).ok_or(Fault::NotMapped)?;
    let space = state.spaces.get(&object.space).ok_or(Fault::NotMapped)?;
    if !object.xnack || address >= 1 << 47 {
        return Err(Fault::NotMapped);
    }
    let block = PAGE << NEW_GRANULARITY;
    let low = (address / block * block).max(PAGE);
    let high = (low / block + 1) * block;
    let around = space.memory_around(address as usize, low as usize, high as usize);
    let (low, high) = around.ok_or(Fault::NotMapped)?;
    let page = address / PAGE * PAGE;
    let gaps = object.svm.gaps(low as u64, high as u64);
    let gap = gaps.into_iter().find(|(from, to)| (*from..*to).contains(&page));
    let (mut start, mut end) = gap.ok_or(Fault::NotMapped)?;
    let has_buffers = |start, end| {
        let mut vms = object.bound_files().filter_map(|file| state.vms.get(&file));
        let users = object.user_buffers.overlapping(start, end);
        let mut users = users.into_iter().filter_map(|handle| object.buffer(handle));
        vms.any(|vm| vm.overlaps(start, end)) || users.any(|user| !user.mapped.is_empty())
    };
    if has_buffers(start, end) {
        // Beside a buffer it is the one page.
        (start, end) = (page, page + PAGE);
        if has_buffers(start, end) {
            return Err(Fault::NotMapped);
        }
    }
    let attributes = object.new_svm_attributes(state);
    let longest = longest_range(state.topology.gpus().map(|(_, gpu)| gpu.vram));
    if let Some(object) = state.objects.get_mut(&id) {
        object.svm.fill((start, end), longest, attributes, false);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Os, Placement, Protection};
    use hsakmt_core::uapi::kfd::{AllocMemoryFlags as Flags, CreateProcess, SetXnackMode};

    use super::Fault;
    use crate::fixture::{
        Bound, Sim, acquire, alloc, alloc_user, anonymous, ask, bind, boot, broken, gpu_id, kfd,
        map, map_memory, render, set_svm, unmap,
    };
    use crate::gpu_view::{Seen, Sight};

    const AT: u64 = 0x7000_0000;
    const VA: u64 = 0x10_0000;
    const BLOCK: u64 = 2 << 20;
    const ACCESS: u32 = 2;
    const NO_ACCESS: u32 = 4;
    const SET_FLAGS: u32 = 5;

    fn start(xnack_enabled: i32) -> (Sim, Bound) {
        let sim = boot("mi210x8:gpus=2,svm=1");
        let bound = bind(&sim);
        assert_eq!(ask(&sim, &bound.kfd, &mut SetXnackMode { xnack_enabled }), Ok(0));
        (sim, bound)
    }

    fn protect(sim: &Sim, at: u64, protection: Protection) {
        sim.protect(at as usize, 0x1000, protection).unwrap();
    }

    fn both(sim: &Sim, address: u64) -> [Result<(), Fault>; 2] {
        [false, true].map(|write| sim.process().gpu_access(gpu_id(sim, 0), address, write))
    }

    const FINE: [Result<(), Fault>; 2] = [Ok(()); 2];
    const READABLE: [Result<(), Fault>; 2] = [Ok(()), Err(Fault::ReadOnly)];

    fn never(fault: Fault) -> [Result<(), Fault>; 2] {
        [Err(fault); 2]
    }

    #[test]
    fn buffers_are_accessed_where_they_are_mapped() {
        let sim = boot("mi210x8:gpus=2");
        assert_eq!(both(&sim, VA), never(Fault::NoVm), "no object");
        let bound = bind(&sim);
        let [a, b] = [0, 1].map(|gpu| gpu_id(&sim, gpu));
        let closed = alloc(&sim, &bound.kfd, 0, Flags::VRAM, VA, 0x2000).unwrap().0;
        let open = Flags::GTT | Flags::WRITABLE;
        let open = alloc(&sim, &bound.kfd, 0, open, VA + 0x2000, 0x1000).unwrap().0;
        assert_eq!(both(&sim, VA), never(Fault::NotMapped));
        for handle in [closed, open] {
            assert_eq!(map(&sim, &bound.kfd, handle, &[a]), Ok(0));
        }
        assert_eq!(both(&sim, VA + 0x1fff), READABLE);
        assert_eq!(both(&sim, VA + 0x2000), FINE);
        assert_eq!(both(&sim, VA + 0x3000), never(Fault::NotMapped));
        // GPU by GPU.
        assert_eq!(sim.process().gpu_access(b, VA, false), Err(Fault::NotMapped));
        assert_eq!(sim.process().gpu_access(0, VA, false), Err(Fault::NoVm));
        assert_eq!(unmap(&sim, &bound.kfd, open, &[a]), Ok(0));
        assert_eq!(both(&sim, VA + 0x2000), never(Fault::NotMapped));
        assert_eq!(broken(&sim), []);
        assert_eq!(Fault::NotMapped.to_string(), "nothing is mapped");
    }

    #[test]
    fn a_gpus_addresses_can_be_looked_at() {
        let (sim, bound) = start(0);
        let [a, b] = [0, 1].map(|gpu| gpu_id(&sim, gpu));
        let flags = Flags::GTT | Flags::AQL_QUEUE_MEM;
        let (ring, _) = alloc(&sim, &bound.kfd, 0, flags, VA, 0x4000).unwrap();
        assert_eq!(map(&sim, &bound.kfd, ring, &[b]), Ok(0));
        map_memory(&sim, AT, 0x2000);
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x2000, &[(ACCESS, b)]), Ok(0));
        let ours = |gpu_id| -> Vec<Seen> {
            let all = sim.process().gpu(gpu_id).mappings();
            all.into_iter().filter(|seen| seen.what != Sight::Driver).collect()
        };
        let seen = |start, what| Seen { start, length: 0x2000, what };
        let expected = [
            seen(VA, Sight::Buffer(ring)),
            seen(VA + 0x2000, Sight::Buffer(ring)),
            seen(AT, Sight::Svm),
        ];
        assert_eq!((ours(a), ours(b)), (Vec::new(), expected.to_vec()));
        let view = sim.process().gpu(b);
        for (address, expected) in [
            (VA - 1, None),
            (VA + 0x3000, Some(expected[1])),
            (AT + 0x1fff, Some(expected[2])),
            (AT + 0x2000, None),
        ] {
            assert_eq!(view.sees(address), expected, "{address:#x}");
        }
        assert_eq!(sim.process().gpu(a).sees(AT), None);
        let trap = sim.process().gpu(a).mappings()[0];
        assert_eq!((trap.what, sim.process().gpu(a).sees(trap.start)), (Sight::Driver, Some(trap)));
        assert_eq!(both(&sim, trap.start), READABLE);
    }

    #[test]
    fn contexts_are_looked_at_by_their_id() {
        let sim = boot("rx7900:kernel=7.2");
        let _primary = kfd(&sim);
        let device = kfd(&sim);
        assert_eq!(ask(&sim, &device, &mut CreateProcess::default()), Ok(0));
        assert_eq!(acquire(&sim, &device, &render(&sim, 0), 0), Ok(0));
        let id = gpu_id(&sim, 0);
        let handle = alloc(&sim, &device, 0, Flags::GTT, VA, 0x1000).unwrap().0;
        assert_eq!(map(&sim, &device, handle, &[id]), Ok(0));
        let view = sim.process().gpu_in_context(0, id);
        assert_eq!(view.sees(VA).unwrap().what, Sight::Buffer(handle));
        assert_eq!(view.access(VA, false), Ok(()));
        assert_eq!(sim.process().gpu_access(id, VA, false), Err(Fault::NoVm));
        assert_eq!(sim.process().gpu_in_context(1, id).access(VA, false), Err(Fault::NoVm));
    }

    #[test]
    fn with_xnack_off_only_registered_memory_is_there() {
        let (sim, bound) = start(0);
        let id = gpu_id(&sim, 0);
        map_memory(&sim, AT, 0x3000);
        assert_eq!(both(&sim, AT), never(Fault::NotMapped));
        assert_eq!(sim.process().svm_ranges(), []);
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x2000, &[(ACCESS, id)]), Ok(0));
        assert_eq!(set_svm(&sim, &bound.kfd, AT + 0x2000, 0x1000, &[]), Ok(0));
        assert_eq!(both(&sim, AT), FINE);
        assert_eq!(both(&sim, AT + 0x2000), never(Fault::NoAccess));
        // The CPU's rights and the range's flags.
        protect(&sim, AT, Protection::READ);
        assert_eq!(both(&sim, AT), READABLE);
        protect(&sim, AT, Protection::READ | Protection::WRITE);
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x1000, &[(SET_FLAGS, 1 << 3)]), Ok(0));
        assert_eq!(both(&sim, AT), READABLE);
        assert_eq!(both(&sim, AT + 0x1000), FINE);
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x2000, &[(NO_ACCESS, id)]), Ok(0));
        assert_eq!(both(&sim, AT + 0x1000), never(Fault::NoAccess));
    }

    #[test]
    fn with_xnack_on_an_access_makes_a_range_until_the_memory_goes() {
        let (sim, bound) = start(1);
        let id = gpu_id(&sim, 0);
        map_memory(&sim, AT, 0x3000);
        assert_eq!(both(&sim, AT + 0x3000), never(Fault::NotMapped), "no memory, no range");
        assert_eq!(sim.process().svm_ranges(), []);
        assert_eq!(both(&sim, AT + 0x1000), FINE);
        let ranges = sim.process().svm_ranges();
        assert_eq!(ranges.len(), 1);
        assert_eq!((ranges[0].start, ranges[0].length), (AT, 0x3000));
        assert!(!ranges[0].registered && ranges[0].access.len() == 2);
        let text = &sim.machine().leftovers().ranges[0];
        assert!(text.ends_with("0x3000 bytes of SVM, made by an access, open to 2 GPUs"), "{text}");
        let at = |offset| alloc(&sim, &bound.kfd, 0, Flags::GTT, AT + offset, 0x1000).map(|_| ());
        assert_eq!(at(0x2000), Err(Errno::EADDRINUSE));
        // Only an unmapping takes it away.
        sim.protect(AT as usize, 0x3000, Protection::empty()).unwrap();
        assert_eq!(at(0x2000), Err(Errno::EADDRINUSE));
        map_memory(&sim, AT + 0x2000, 0x1000);
        assert_eq!((at(0x2000), at(0x1000)), (Ok(()), Err(Errno::EADDRINUSE)));
        assert_eq!(sim.process().gpu_access(id, AT, false), Err(Fault::NoMemory));
    }

    #[test]
    fn an_access_that_is_refused_makes_a_range_too() {
        let (sim, bound) = start(1);
        map_memory(&sim, AT, 0x1000);
        protect(&sim, AT, Protection::empty());
        assert_eq!(both(&sim, AT), never(Fault::NoMemory));
        assert_eq!(alloc(&sim, &bound.kfd, 0, Flags::VRAM, AT, 0x1000), Err(Errno::EADDRINUSE));
        sim.unmap(AT as usize, 0x1000).unwrap();
        assert!(alloc(&sim, &bound.kfd, 0, Flags::VRAM, AT, 0x1000).is_ok());
    }

    #[test]
    fn what_an_access_makes_keeps_to_its_block_its_area_and_its_neighbours() {
        let (sim, bound) = start(1);
        let id = gpu_id(&sim, 0);
        let base = 0x8000_0000;
        map_memory(&sim, base, 4 * BLOCK as usize);
        let made = |address| {
            let before = sim.process().svm_ranges();
            let _ = sim.process().gpu_access(id, address, false);
            let after = sim.process().svm_ranges();
            let new: Vec<_> = after.into_iter().filter(|range| !before.contains(range)).collect();
            new.iter().map(|range| (range.start - base, range.length)).collect::<Vec<_>>()
        };
        assert_eq!(made(base + 0x1234), [(0, BLOCK)]);
        assert_eq!(made(base + 0x5000), []);
        let inside = base + BLOCK;
        protect(&sim, inside + 0x4000, Protection::READ);
        assert_eq!(set_svm(&sim, &bound.kfd, inside, 0x1000, &[]), Ok(0));
        assert_eq!(made(inside + 0x2000), [(BLOCK + 0x1000, 0x3000)]);
        // A buffer of the other GPU.
        let third = base + 2 * BLOCK;
        let handle = alloc(&sim, &bound.kfd, 0, Flags::GTT, third + 0x3000, 0x1000).unwrap().0;
        assert_eq!(map(&sim, &bound.kfd, handle, &[gpu_id(&sim, 1)]), Ok(0));
        assert_eq!(made(third + 0x3000), []);
        assert_eq!(made(third + 0x1000), [(2 * BLOCK + 0x1000, 0x1000)]);
        // User pages.
        let fourth = base + 3 * BLOCK;
        let user = alloc_user(&sim, &bound.kfd, VA, fourth, 0x1000).unwrap();
        assert_eq!(map(&sim, &bound.kfd, user, &[id]), Ok(0));
        assert_eq!(made(fourth), []);
        assert_eq!(made(fourth + 0x8000), [(3 * BLOCK + 0x8000, 0x1000)]);
        assert_eq!(unmap(&sim, &bound.kfd, user, &[id]), Ok(0));
        assert_eq!(made(fourth), [(3 * BLOCK, 0x8000)]);
    }

    #[test]
    fn chips_and_kernels_without_svm_make_nothing() {
        let sim = boot("mi210x8:gpus=2");
        let _bound = bind(&sim);
        map_memory(&sim, AT, 0x1000);
        assert_eq!(both(&sim, AT), never(Fault::NotMapped));
        let sim = boot("rx7900:svm=1");
        let _bound = bind(&sim);
        map_memory(&sim, AT, 0x1000);
        assert_eq!(both(&sim, AT), never(Fault::NotMapped));
    }

    #[test]
    fn user_pages_that_are_gone_fault_and_the_handle_stays() {
        let (sim, bound) = start(0);
        let id = gpu_id(&sim, 0);
        map_memory(&sim, AT, 0x2000);
        let handle = alloc_user(&sim, &bound.kfd, VA, AT, 0x2000).unwrap();
        assert_eq!(map(&sim, &bound.kfd, handle, &[id]), Ok(0));
        assert_eq!(both(&sim, VA), FINE);
        sim.unmap(AT as usize + 0x1000, 0x1000).unwrap();
        // All of it, for the pages are fetched together.
        assert_eq!(both(&sim, VA), never(Fault::NoMemory));
        // New memory there is not noticed until it changes or is mapped again.
        let there = anonymous(Placement::Free(AT as usize + 0x1000), 0x1000);
        Os::map(&sim, there).unwrap();
        sim.process().settle();
        assert_eq!(both(&sim, VA), never(Fault::NoMemory));
        assert_eq!(map(&sim, &bound.kfd, handle, &[id, gpu_id(&sim, 1)]), Ok(0));
        assert_eq!(both(&sim, VA), FINE);
        // Pages that the CPU may only read are no pages for it.
        protect(&sim, AT, Protection::READ);
        assert_eq!(both(&sim, VA), never(Fault::NoMemory));
        protect(&sim, AT, Protection::READ | Protection::WRITE);
        assert_eq!(both(&sim, VA), FINE);
        assert_eq!(unmap(&sim, &bound.kfd, handle, &[id, gpu_id(&sim, 1)]), Ok(0));
        assert_eq!(crate::fixture::free(&sim, &bound.kfd, handle), Ok(0));
    }

    #[test]
    fn a_view_of_nothing_is_empty() {
        let sim = boot("rx7900");
        let process = sim.process();
        assert_eq!(process.gpu(gpu_id(&sim, 0)).mappings(), []);
        assert_eq!((process.svm_ranges().len(), process.evictions()), (0, 0));
        process.settle();
        assert_eq!(format!("{}", Fault::NoVm), "the GPU has no VM");
    }
}
