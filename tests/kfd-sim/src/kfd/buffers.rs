//! ALLOC_MEMORY_OF_GPU and FREE_MEMORY_OF_GPU: kernel-rules section 2
//! (kfd_chardev.c, amdgpu_amdkfd_gpuvm.c).

use alloc::collections::BTreeSet;
use alloc::format;
use core::fmt;

use hsakmt_core::errno::Errno;

use super::dispatch::Request;
use super::invalidation::Pages;
use super::ipc::{self, ShareHandle};
use super::{GpuRecord, KfdObject, Kind, queues};
use crate::address_space::UserPages;
use crate::descriptor::FileId;
use crate::dma_buf;
use crate::gpu_memory::{MemoryId, Place};
use crate::machine::State;
use crate::topology::Gpu;
use crate::violation::Rule;

const PAGE: u64 = 4096;

/// KFD_IOC_ALLOC_MEM_FLAGS_*.
pub(super) const VRAM: u32 = 1 << 0;
pub(super) const GTT: u32 = 1 << 1;
pub(super) const USERPTR: u32 = 1 << 2;
const DOORBELL: u32 = 1 << 3;
const MMIO_REMAP: u32 = 1 << 4;
const AQL_QUEUE_MEM: u32 = 1 << 27;
pub(super) const PUBLIC: u32 = 1 << 29;
pub(super) const EXECUTABLE: u32 = 1 << 30;
pub(super) const WRITABLE: u32 = 1 << 31;
const KINDS: u32 = VRAM | GTT | USERPTR | DOORBELL | MMIO_REMAP;

/// A buffer of a process object (`struct kgd_mem`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub memory: MemoryId,
    pub place: Place,
    /// Where MAP puts it; nobody looked at it before.
    pub address: u64,
    /// Bytes of the memory, whole pages.
    pub size: u64,
    pub flags: u32,
    /// The memory of the process that it shows.
    pub source: Option<Source>,
    /// The GPUs that have it mapped.
    pub mapped: BTreeSet<u32>,
    /// The file that may map it for the CPU as long as it is there.
    pub allowed: Option<FileId>,
    /// Whether it was exported or imported: then it holds the dma-buf.
    pub holds_dma_buf: bool,
    /// The handle by which other processes know it.
    pub shared: Option<ShareHandle>,
}

/// Where user pages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    /// The CPU's address.
    pub address: u64,
    pub pages: Pages,
}

impl Buffer {
    /// The addresses at which it is mapped: AQL queue memory twice, one after
    /// the other. `None` if the second address does not exist.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Option<u64>> + use<> {
        let (address, size) = (self.address, self.size);
        let count = if self.flags & AQL_QUEUE_MEM == 0 { 1 } else { 2 };
        (0..count).map(move |n| address.checked_add(n * size))
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.flags & KINDS {
            DOORBELL => "doorbell",
            MMIO_REMAP => "register",
            _ => match self.place {
                Place::Vram | Place::CarveOut => "VRAM",
                Place::Gtt => "GTT",
                Place::User => "user",
                Place::File => "file",
                Place::Registers => "device",
            },
        };
        write!(f, "{:#x} bytes of {kind} memory, mapped on {} GPUs", self.size, self.mapped.len())
    }
}

/// The halves of a handle.
pub(super) fn split(handle: u64) -> (u32, u32) {
    ((handle >> 32) as u32, handle as u32)
}

pub(super) fn join(gpu_id: u32, index: u32) -> u64 {
    u64::from(gpu_id) << 32 | u64::from(index)
}

impl GpuRecord {
    /// Keeps a buffer under the lowest index that is free, from 0.
    pub(super) fn insert(&mut self, buffer: Buffer) -> u32 {
        let index = self.free_indices.pop_first().unwrap_or(self.buffers.len() as u32);
        self.buffers.insert(index, buffer);
        index
    }

    fn remove(&mut self, index: u32) -> Option<Buffer> {
        let buffer = self.buffers.remove(&index)?;
        self.free_indices.insert(index);
        Some(buffer)
    }
}

/// va_addr at 0, size at 8, handle at 16, mmap_offset at 24, gpu_id u32 at 32,
/// flags u32 at 36.
///
/// In this order: size; user pages in a secondary context; SVM ranges; GPU; public
/// VRAM; VM;
/// the sizes of doorbells and registers; kind; size in pages; the limits; user
/// pages.
pub(super) fn alloc(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let arguments = &request.arguments;
    let (address, size) = (arguments.u64(0), arguments.u64(8));
    let (user_address, gpu_id, flags) = (arguments.u64(24), arguments.u32(32), arguments.u32(36));
    if size == 0 {
        return Err(Errno::EINVAL);
    }
    let object = request.object()?;
    if flags & USERPTR != 0 && matches!(object.kind, Kind::Secondary(_)) {
        return Err(Errno::EOPNOTSUPP);
    }
    if request.state.kernel.svm {
        check_svm(request, object, (flags, address, user_address), size)?;
    }
    let file = object.gpu(gpu_id)?.file;
    let gpu = request.state.topology.gpu(gpu_id).cloned().ok_or(Errno::EINVAL)?;
    if flags & VRAM != 0 && flags & PUBLIC != 0 && !gpu.has_large_bar() {
        return Err(Errno::EINVAL);
    }
    let file = file.ok_or(Errno::ENODEV)?;
    let mut slice = None;
    if flags & DOORBELL != 0 {
        if size != gpu.doorbell_slice() {
            return Err(Errno::EINVAL);
        }
        slice = Some(queues::doorbell_slice(request.state, request.id, &gpu)?);
    } else if flags & MMIO_REMAP != 0 {
        if size != PAGE {
            return Err(Errno::EINVAL);
        }
        // Chips before gfx9 have no such page.
        if !gpu.is_gfx9_or_later() {
            return Err(Errno::ENOMEM);
        }
    }
    if (flags & KINDS).count_ones() > 1 {
        let detail = format!("flags {flags:#x}");
        request.state.violation(request.pid, Rule::SeveralKindsOfMemory, detail);
    }
    let place = place(request.state, &gpu, flags)?;
    if place == Place::User && user_address == 0 {
        return Err(Errno::EINVAL);
    }
    let half = if flags & AQL_QUEUE_MEM == 0 { size } else { size / 2 };
    let size = half.checked_next_multiple_of(PAGE).ok_or(Errno::ENOMEM)?;
    request.state.memory.check(&request.state.topology, &gpu, place, size)?;
    if size == 0 {
        return Err(Errno::EINVAL);
    }
    if place == Place::User {
        check_user_pages(request, user_address, size)?;
    }
    let state = &mut *request.state;
    let memory = match slice.filter(|_| place == Place::Registers) {
        // All buffers of doorbells are the one slice.
        Some(slice) => {
            state.memory.hold(slice);
            slice
        }
        None => {
            let memory = MemoryId(state.number());
            state.memory.take(memory, &state.topology, &gpu, place, size)?;
            memory
        }
    };
    let mut offset = u64::from(gpu_id) << 46;
    if let Some(memory) = state.memory.get_mut(memory) {
        memory.allow(file);
        memory.public = flags & (PUBLIC | VRAM) == PUBLIC | VRAM;
        if flags & (DOORBELL | MMIO_REMAP) != MMIO_REMAP {
            offset = memory.offset;
        }
    }
    let source =
        (place == Place::User).then_some(Source { address: user_address, pages: Pages::Current });
    let buffer = Buffer {
        memory,
        place,
        address,
        size,
        flags,
        source,
        mapped: BTreeSet::new(),
        allowed: Some(file),
        holds_dma_buf: false,
        shared: None,
    };
    let object = request.object_mut()?;
    let handle = join(gpu_id, object.record_mut(gpu_id).ok_or(Errno::EINVAL)?.insert(buffer));
    if source.is_some() {
        object.user_buffers.insert(user_address, user_address + size, handle);
    }
    request.arguments.put_u64(16, handle);
    request.arguments.put_u64(24, offset);
    Ok(0)
}

/// kernel-rules section 2, ALLOC "Order": neither the buffer's addresses nor the
/// user pages may have an SVM range; VRAM without an address has none.
fn check_svm(
    request: &Request<'_, '_, '_>,
    object: &KfdObject,
    (flags, address, user_address): (u32, u64, u64),
    size: u64,
) -> Result<(), Errno> {
    let overlaps =
        |start: u64| object.svm.overlaps(start / PAGE * PAGE, start.saturating_add(size));
    let has_address = flags & VRAM == 0 || address != 0;
    let user = flags & USERPTR != 0 && request.state.kernel.keeps_user_pages_from_svm();
    if has_address && overlaps(address) || user && overlaps(user_address) {
        return Err(Errno::EADDRINUSE);
    }
    Ok(())
}

/// The first kind that is present wins; none is EINVAL.
fn place(state: &State, gpu: &Gpu, flags: u32) -> Result<Place, Errno> {
    match flags {
        _ if flags & VRAM != 0 => Ok(state.kernel.place_of_vram(gpu)),
        _ if flags & GTT != 0 => Ok(Place::Gtt),
        _ if flags & USERPTR != 0 => Ok(Place::User),
        _ if flags & (DOORBELL | MMIO_REMAP) != 0 => Ok(Place::Registers),
        _ => Err(Errno::EINVAL),
    }
}

/// kernel-rules section 2, "USERPTR": the pages are faulted in for writing, in
/// order, whatever the flags. Memory the platform knows nothing about is the
/// host's own and taken for writable.
fn check_user_pages(
    request: &mut Request<'_, '_, '_>,
    address: u64,
    size: u64,
) -> Result<(), Errno> {
    if address % PAGE != 0 {
        let detail = format!("user pages at {address:#x}");
        request.state.violation(request.pid, Rule::UserPagesMisaligned, detail);
        return Err(Errno::EINVAL);
    }
    let Some(end) = address.checked_add(size).filter(|&end| end < 1 << 47) else {
        return Err(Errno::EFAULT);
    };
    let Some(space) = request.state.space_of(request.pid) else { return Err(Errno::EFAULT) };
    match space.user_pages(address as usize, end as usize) {
        UserPages::Writable => Ok(()),
        UserPages::ReadOnly => Err(Errno::EPERM),
        UserPages::Unreachable => Err(Errno::EFAULT),
    }
}

/// handle at 0.
///
/// In this order: event page EPERM; GPU EINVAL; index EINVAL; still mapped EBUSY. Dma-bufs and CPU
/// mappings keep the memory, not the handle.
pub(super) fn free(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (gpu_id, index) = split(request.arguments.u64(0));
    if request.object()?.events.is_page(join(gpu_id, index)) {
        return Err(Errno::EPERM);
    }
    request.object()?.gpu(gpu_id)?;
    let record = request.object_mut()?.record_mut(gpu_id).ok_or(Errno::EINVAL)?;
    let buffer = record.buffers.get(&index).ok_or(Errno::EINVAL)?;
    if !buffer.mapped.is_empty() {
        return Err(Errno::EBUSY);
    }
    let buffer = record.remove(index).ok_or(Errno::EINVAL)?;
    if let Some(source) = buffer.source {
        let handle = join(gpu_id, index);
        let end = source.address + buffer.size;
        request.object_mut()?.user_buffers.remove(source.address, end, handle);
    }
    give_up(request.state, &buffer);
    Ok(0)
}

/// Lets go of what a buffer has.
fn give_up(state: &mut State, buffer: &Buffer) {
    if let (Some(file), Some(memory)) = (buffer.allowed, state.memory.get_mut(buffer.memory)) {
        memory.revoke(file);
    }
    if buffer.holds_dma_buf {
        dma_buf::let_go(state, buffer.memory);
    }
    if let Some(handle) = buffer.shared {
        ipc::let_go(state, handle);
    }
    state.memory.let_go(buffer.memory);
}

/// What the end of an object does: every buffer is unmapped and goes, and so do
/// SVM ranges.
pub(crate) fn free_all(state: &mut State, object: &KfdObject) {
    if !object.xnack {
        state.memory.drop_system(object.svm.bytes());
    }
    for record in &object.records {
        for buffer in record.buffers.values() {
            for gpu_id in &buffer.mapped {
                let file = object.gpu(*gpu_id).ok().and_then(|record| record.file);
                if let Some(vm) = file.and_then(|file| state.vms.get_mut(&file)) {
                    buffer.addresses().flatten().for_each(|address| vm.unmap(address));
                }
            }
            give_up(state, buffer);
        }
        let torn = record.torn.keys().copied();
        for memory in [record.trap_memory, record.doorbells].into_iter().flatten().chain(torn) {
            state.memory.let_go(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Driver, EndOfFile, MapDevice, Mapping, Os, Placement, Protection};
    use hsakmt_core::uapi::kfd::{
        AllocMemoryFlags as Flags, AllocMemoryOfGpu, AvailableMemory, CreateProcess,
    };

    use crate::SimDevice;
    use crate::fixture::{
        Sim, acquire, alloc, ask, bind, boot, broken, free, gpu_id, kfd, map, render, unmap, wanted,
    };
    use crate::violation::Rule;

    const VA: u64 = 0x10_0000;

    fn errno(sim: &Sim, device: &SimDevice, flags: Flags, size: u64) -> Result<(), Errno> {
        alloc(sim, device, 0, flags, VA, size).map(|_| ())
    }

    #[test]
    fn errors_come_in_order() {
        let sim = boot("rx7900:bar=256M");
        let device = kfd(&sim);
        let unknown = AllocMemoryOfGpu { size: 4096, flags: Flags::VRAM, ..Default::default() };
        assert_eq!(ask(&sim, &device, &mut { unknown }), Err(Errno::EINVAL));
        let public = Flags::VRAM | Flags::PUBLIC;
        // Size, then public memory, then the VM, then everything else.
        assert_eq!(errno(&sim, &device, public, 0), Err(Errno::EINVAL));
        assert_eq!(errno(&sim, &device, public, 4096), Err(Errno::EINVAL));
        for (flags, size) in
            [(Flags::empty(), 4096), (Flags::DOORBELL, 1), (Flags::MMIO_REMAP, 1), (Flags::GTT, 1)]
        {
            assert_eq!(errno(&sim, &device, flags, size), Err(Errno::ENODEV), "{flags:?}");
        }
        assert_eq!(acquire(&sim, &device, &render(&sim, 0), 0), Ok(0));
        assert_eq!(errno(&sim, &device, Flags::empty(), 4096), Err(Errno::EINVAL));
        assert_eq!(errno(&sim, &device, Flags::VRAM, u64::MAX), Err(Errno::ENOMEM));
        assert_eq!(errno(&sim, &device, Flags::VRAM, 1 << 60), Err(Errno::ENOMEM));
        assert_eq!(errno(&sim, &device, Flags::VRAM, 4096), Ok(()));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn public_memory_needs_a_large_bar() {
        for (profile, expected) in [("rx7900", Ok(())), ("rx7900:bar=256M", Err(Errno::EINVAL))] {
            let sim = boot(profile);
            let bound = bind(&sim);
            let result = errno(&sim, &bound.kfd, Flags::VRAM | Flags::PUBLIC, 4096);
            assert_eq!(result, expected, "{profile}");
            // Without VRAM the flag means nothing.
            assert_eq!(errno(&sim, &bound.kfd, Flags::GTT | Flags::PUBLIC, 4096), Ok(()));
        }
    }

    #[test]
    fn doorbells_and_registers_have_one_size() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        for (flags, size) in [(Flags::DOORBELL, 8192), (Flags::MMIO_REMAP, 4096)] {
            for wrong in [1, size - 1, size + 1, size / 2, size * 2] {
                let result = errno(&sim, &bound.kfd, flags, wrong);
                assert_eq!(result, Err(Errno::EINVAL), "{flags:?}, {wrong}");
            }
            for _ in 0..3 {
                assert_eq!(errno(&sim, &bound.kfd, flags, size), Ok(()), "any number of times");
            }
        }
    }

    #[test]
    fn doorbells_come_before_registers() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let both = Flags::DOORBELL | Flags::MMIO_REMAP;
        assert_eq!(errno(&sim, &bound.kfd, both, 4096), Err(Errno::EINVAL));
        assert_eq!(errno(&sim, &bound.kfd, both, 8192), Ok(()));
        assert_eq!(broken(&sim), [Rule::SeveralKindsOfMemory]);
    }

    #[test]
    fn the_offset_of_registers_is_one_of_the_compute_device() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let (_, offset) = alloc(&sim, &bound.kfd, 0, Flags::MMIO_REMAP, VA, 4096).unwrap();
        assert_eq!(offset, u64::from(gpu_id(&sim, 0)) << 46);
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length: 4096,
            protection: Protection::WRITE,
            offset,
        };
        assert!(Driver::map(&sim, &bound.kfd, mapping).is_ok());
        assert!(Driver::map(&sim, &bound.files[0], mapping).is_err());
    }

    #[test]
    fn handles_are_the_lowest_free_numbers_of_each_gpu() {
        let sim = boot("mi210x8:gpus=2");
        let bound = bind(&sim);
        let handle = |gpu| alloc(&sim, &bound.kfd, gpu, Flags::GTT, 0, 4096).unwrap().0;
        let high = |gpu| u64::from(gpu_id(&sim, gpu)) << 32;
        assert_eq!([handle(0), handle(0), handle(0)], [0, 1, 2].map(|n| high(0) | n));
        assert_eq!(handle(1), high(1));
        assert_eq!(free(&sim, &bound.kfd, high(0)), Ok(0));
        assert_eq!(free(&sim, &bound.kfd, high(0) | 1), Ok(0));
        assert_eq!([handle(0), handle(0), handle(0)], [0, 1, 3].map(|n| high(0) | n));
    }

    #[test]
    fn the_address_is_not_looked_at() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        for address in [0, 1, 0x1000, 1 << 47, u64::MAX] {
            for _ in 0..2 {
                assert!(alloc(&sim, &bound.kfd, 0, Flags::VRAM, address, 4096).is_ok());
            }
        }
    }

    #[test]
    fn a_buffer_that_is_mapped_cannot_be_freed() {
        let sim = boot("mi210x8:gpus=2");
        let bound = bind(&sim);
        let ids = [gpu_id(&sim, 0), gpu_id(&sim, 1)];
        let (handle, _) = alloc(&sim, &bound.kfd, 0, Flags::GTT, VA, 4096).unwrap();
        assert_eq!(map(&sim, &bound.kfd, handle, &ids), Ok(0));
        for id in ids {
            assert_eq!(free(&sim, &bound.kfd, handle), Err(Errno::EBUSY));
            assert_eq!(unmap(&sim, &bound.kfd, handle, &[id]), Ok(0));
        }
        assert_eq!(free(&sim, &bound.kfd, handle), Ok(0));
        assert_eq!(free(&sim, &bound.kfd, handle), Err(Errno::EINVAL));
        assert_eq!(free(&sim, &bound.kfd, 0), Err(Errno::EINVAL));
    }

    #[test]
    fn several_kinds_are_noted_and_the_first_wins() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        assert_eq!(errno(&sim, &bound.kfd, Flags::VRAM | Flags::GTT, 4096), Ok(()));
        assert_eq!(broken(&sim), [Rule::SeveralKindsOfMemory]);
        assert!(sim.machine().leftovers().buffers[0].contains("VRAM"));
    }

    #[test]
    fn a_page_of_queue_memory_is_half_of_what_was_asked() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let flags = Flags::GTT | Flags::AQL_QUEUE_MEM;
        assert_eq!(errno(&sim, &bound.kfd, flags, 1), Err(Errno::EINVAL));
        for (asked, made) in [(2, "0x1000 "), (8192, "0x1000 "), (8194, "0x2000 ")] {
            let (handle, _) = alloc(&sim, &bound.kfd, 0, flags, VA, asked).unwrap();
            assert!(sim.machine().leftovers().buffers[0].contains(made), "{asked}");
            assert_eq!(free(&sim, &bound.kfd, handle), Ok(0));
        }
    }

    fn user(sim: &Sim, device: &SimDevice, address: usize, size: u64) -> Result<(), Errno> {
        let flags = Flags::USERPTR | Flags::WRITABLE;
        let mmap_offset = address as u64;
        ask(sim, device, &mut AllocMemoryOfGpu { mmap_offset, ..wanted(sim, 0, flags, VA, size) })
            .map(|_| ())
    }

    #[test]
    fn user_pages_must_be_writable_memory() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let mapping = Mapping {
            placement: Placement::Anywhere,
            length: 0x4000,
            protection: Protection::READ | Protection::WRITE,
            reserve: true,
            shared: false,
        };
        let address = Os::map(&sim, mapping).unwrap();
        assert_eq!(user(&sim, &bound.kfd, 0, 4096), Err(Errno::EINVAL));
        assert_eq!(user(&sim, &bound.kfd, address, 0x4000), Ok(()));
        sim.protect(address + 0x1000, 0x1000, Protection::READ).unwrap();
        sim.protect(address + 0x2000, 0x1000, Protection::empty()).unwrap();
        assert_eq!(user(&sim, &bound.kfd, address, 0x1000), Ok(()));
        // The first bad page decides.
        assert_eq!(user(&sim, &bound.kfd, address, 0x3000), Err(Errno::EPERM));
        assert_eq!(user(&sim, &bound.kfd, address + 0x2000, 0x2000), Err(Errno::EFAULT));
        assert_eq!(user(&sim, &bound.kfd, address + 0x3000, 0x1000), Ok(()));
        assert_eq!(user(&sim, &bound.kfd, usize::MAX & !0xfff, 0x1000), Err(Errno::EFAULT));
        assert_eq!(broken(&sim), []);
        assert_eq!(user(&sim, &bound.kfd, address + 0x3010, 0x800), Err(Errno::EINVAL));
        assert_eq!(broken(&sim), [Rule::UserPagesMisaligned]);
    }

    #[test]
    fn memory_of_a_device_is_no_user_memory() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let (_, offset) = alloc(&sim, &bound.kfd, 0, Flags::GTT, VA, 4096).unwrap();
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length: 4096,
            protection: Protection::READ | Protection::WRITE,
            offset,
        };
        let address = Driver::map(&sim, &bound.files[0], mapping).unwrap();
        assert_eq!(user(&sim, &bound.kfd, address, 4096), Err(Errno::EFAULT));
    }

    #[test]
    fn a_secondary_context_has_no_user_memory() {
        let sim = boot("rx7900:kernel=7.2");
        let device = kfd(&sim);
        assert_eq!(ask(&sim, &device, &mut CreateProcess::default()), Ok(0));
        assert_eq!(user(&sim, &device, 0x1000, 0), Err(Errno::EINVAL));
        // Before the VM.
        assert_eq!(user(&sim, &device, 0x1000, 4096), Err(Errno::EOPNOTSUPP));
        assert_eq!(errno(&sim, &device, Flags::GTT, 4096), Err(Errno::ENODEV));
    }

    fn available(sim: &Sim, device: &SimDevice) -> u64 {
        let mut block = AvailableMemory { gpu_id: gpu_id(sim, 0), ..Default::default() };
        assert_eq!(ask(sim, device, &mut block), Ok(0));
        block.available
    }

    #[test]
    fn video_memory_is_counted_in_steps_of_2_mib() {
        let sim = boot("rx7900:vram=1G");
        let bound = bind(&sim);
        let all = (1 << 30) - (8 << 20);
        assert_eq!(available(&sim, &bound.kfd), all);
        let (handle, _) = alloc(&sim, &bound.kfd, 0, Flags::VRAM, VA, 4096).unwrap();
        assert_eq!(available(&sim, &bound.kfd), all - (2 << 20));
        assert_eq!(free(&sim, &bound.kfd, handle), Ok(0));
        assert_eq!(available(&sim, &bound.kfd), all);
        // What is full in steps may still have pages.
        for _ in 0..all / (2 << 20) {
            assert_eq!(errno(&sim, &bound.kfd, Flags::VRAM, 4096), Ok(()));
        }
        assert_eq!(available(&sim, &bound.kfd), 0);
        assert_eq!(errno(&sim, &bound.kfd, Flags::VRAM, 4096), Ok(()));
    }

    #[test]
    fn limits_are_of_the_machine() {
        let sim = boot("rx7900:vram=1G,ram=4G");
        let bound = bind(&sim);
        let other = sim.machine().spawn(crate::AddressesOnly::new());
        let others = bind(&other);
        // VRAM without the page tables; of 4 GiB RAM half for GTT.
        for (flags, most) in [(Flags::VRAM, 1016 << 20), (Flags::GTT, (2 << 30) - 2 * 8192)] {
            assert_eq!(errno(&sim, &bound.kfd, flags, most + 4096), Err(Errno::ENOMEM));
            let half = most / 8192 * 4096;
            assert_eq!(errno(&sim, &bound.kfd, flags, half), Ok(()), "{flags:?}");
            assert_eq!(errno(&other, &others.kfd, flags, most - half + 4096), Err(Errno::ENOMEM));
            assert_eq!(errno(&other, &others.kfd, flags, most - half), Ok(()), "{flags:?}");
            assert_eq!(errno(&other, &others.kfd, flags, 4096), Err(Errno::ENOMEM));
        }
        sim.process().exit();
        assert_eq!(errno(&other, &others.kfd, Flags::VRAM, 508 << 20), Ok(()));
        // No room for a trap page either.
        assert_eq!(errno(&other, &others.kfd, Flags::GTT, (1 << 30) - 4096), Ok(()));
        let late = sim.machine().spawn(crate::AddressesOnly::new());
        assert_eq!(acquire(&late, &kfd(&late), &render(&late, 0), 0), Err(Errno::ENOMEM));
    }

    #[test]
    fn the_process_folder_shows_the_video_memory_of_the_process() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let path = format!("/sys/class/kfd/kfd/proc/{}/vram_{}", sim.process_id(), gpu_id(&sim, 0));
        let path = std::ffi::CString::new(path).unwrap();
        let shown = || {
            let mut bytes = alloc::vec::Vec::new();
            sim.read_file(&path, &mut bytes, 100, EndOfFile::ShortRead).unwrap();
            alloc::string::String::from_utf8(bytes).unwrap()
        };
        assert_eq!(shown(), "0\n");
        let take = |flags| errno(&sim, &bound.kfd, flags, 0x3000).unwrap();
        take(Flags::VRAM);
        take(Flags::GTT);
        assert_eq!(shown(), "12288\n");
    }

    #[test]
    fn memory_of_an_apu_is_system_memory_unless_the_carve_out_is_large() {
        for (profile, kind) in [
            ("apu:kernel=6.1", "VRAM"),
            ("apu", "GTT"),
            ("apu:kernel=7.2", "GTT"),
            ("apu:ram=16G,vram=12G,kernel=7.2", "VRAM"),
        ] {
            let sim = boot(profile);
            let bound = bind(&sim);
            assert_eq!(errno(&sim, &bound.kfd, Flags::VRAM, 4096), Ok(()));
            assert!(sim.machine().leftovers().buffers[0].contains(kind), "{profile}");
        }
    }

    #[test]
    fn a_carve_out_is_system_memory_too() {
        let sim = boot("apu:ram=16G,vram=12G,kernel=7.2");
        let bound = bind(&sim);
        // All but a 64th of RAM, the reserve, and the trap page.
        let system = (16 << 30) - (256 << 20) - (3 << 29) - 8192;
        let (handle, _) = alloc(&sim, &bound.kfd, 0, Flags::VRAM, VA, 8 << 30).unwrap();
        assert_eq!(available(&sim, &bound.kfd), (4 << 30) - (8 << 20));
        let rest = system - (8 << 30);
        assert_eq!(errno(&sim, &bound.kfd, Flags::GTT, rest + 4096), Err(Errno::ENOMEM));
        assert_eq!(errno(&sim, &bound.kfd, Flags::GTT, rest), Ok(()));
        assert_eq!(errno(&sim, &bound.kfd, Flags::VRAM, 4096), Err(Errno::ENOMEM));
        assert_eq!(available(&sim, &bound.kfd), 0);
        assert_eq!(free(&sim, &bound.kfd, handle), Ok(0));
        assert_eq!(errno(&sim, &bound.kfd, Flags::VRAM, 8 << 30), Ok(()));
    }

    #[test]
    fn buffers_outlive_every_descriptor_and_die_with_the_process() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let (handle, _) = alloc(&sim, &bound.kfd, 0, Flags::VRAM, VA, 4096).unwrap();
        assert_eq!(map(&sim, &bound.kfd, handle, &[gpu_id(&sim, 0)]), Ok(0));
        drop(bound);
        let text = &sim.machine().leftovers().buffers[0];
        assert!(text.ends_with("0x1000 bytes of VRAM memory, mapped on 1 GPUs"), "{text}");
        // The same handle, through another descriptor.
        assert_eq!(free(&sim, &kfd(&sim), handle), Err(Errno::EBUSY));
        sim.process().exit();
        assert_eq!(sim.machine().leftovers(), crate::Leftovers::default());
    }
}
