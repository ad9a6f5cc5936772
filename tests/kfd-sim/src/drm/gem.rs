//! Buffers by GEM handle, and dma-bufs of them: kernel-rules section 4, "GEM_CREATE",
//! "GEM_MMAP", "PRIME", "GEM_CLOSE" (amdgpu_gem.c, drm_gem.c, drm_prime.c).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;

use super::dispatch::{NOT_SIMULATED, Request};
use crate::descriptor::FileId;
use crate::dma_buf;
use crate::gpu_memory::{Memory, MemoryId, Metadata, Place};
use crate::gpu_vm::Shows;
use crate::machine::State;

const PAGE: u64 = 4096;

/// AMDGPU_GEM_DOMAIN_*.
const CPU: u64 = 1;
const GTT: u64 = 2;
const VRAM: u64 = 4;
const DOMAINS: u64 = 0x7f;
/// AMDGPU_GEM_CREATE_*: access by the CPU is wanted, is not.
const CPU_ACCESS_REQUIRED: u64 = 1 << 0;
const NO_CPU_ACCESS: u64 = 1 << 1;
/// Belongs to one VM alone.
const VM_ALWAYS_VALID: u64 = 1 << 6;
/// All flags that there are.
const CREATE_FLAGS: u64 = 0x1_ffef;
/// DRM_CLOEXEC, DRM_RDWR.
const CLOSE_ON_EXEC: u32 = 0o2_000_000;
const READ_WRITE: u32 = 0o2;

/// What a handle of a file names.
#[derive(Debug, Clone, Copy)]
struct Handle {
    memory: MemoryId,
    /// The CPU has nothing to do with it.
    no_cpu_access: bool,
    /// It belongs to the file's VM and is nobody else's.
    per_vm: bool,
    /// It was exported or imported: then it holds the dma-buf.
    holds_dma_buf: bool,
}

/// The handles of one file, from 1 on, the lowest free one first.
#[derive(Debug, Default)]
pub(crate) struct GemHandles {
    handles: BTreeMap<u32, Handle>,
}

impl GemHandles {
    fn insert(&mut self, handle: Handle) -> u32 {
        let mut number = 1;
        for &taken in self.handles.keys() {
            if taken != number {
                break;
            }
            number += 1;
        }
        self.handles.insert(number, handle);
        number
    }
}

impl GemHandles {
    /// A line for each handle of a file: its bytes, those of metadata, its mappings.
    pub(crate) fn describe(&self, state: &State, file: FileId) -> Vec<String> {
        let one = |handle: &Handle| {
            let memory = state.memory.get(handle.memory);
            let (size, metadata) = memory.map_or((0, 0), |it| (it.size, it.metadata.bytes.len()));
            let shows = |shows: Shows| matches!(shows, Shows::Handle { memory, .. } if memory == handle.memory);
            let vm = state.vms.get(&file);
            let mapped =
                vm.map_or(0, |vm| vm.iter().filter(|(_, range)| shows(range.shows)).count());
            format!("a handle of {size:#x} bytes, {metadata} of metadata, mapped {mapped} times")
        };
        self.handles.values().map(one).collect()
    }
}

fn handle(request: &Request<'_, '_, '_>, number: u32) -> Result<Handle, Errno> {
    let handles = request.state.gem.get(&request.file).ok_or(Errno::ENOENT)?;
    handles.handles.get(&number).copied().ok_or(Errno::ENOENT)
}

pub(super) fn memory_of(request: &Request<'_, '_, '_>, number: u32) -> Result<MemoryId, Errno> {
    handle(request, number).map(|handle| handle.memory)
}

fn memory_mut<'s>(
    request: &'s mut Request<'_, '_, '_>,
    number: u32,
) -> Result<&'s mut Memory, Errno> {
    let id = memory_of(request, number)?;
    request.state.memory.get_mut(id).ok_or(Errno::ENOENT)
}

fn insert(request: &mut Request<'_, '_, '_>, handle: Handle) -> u32 {
    if let Some(memory) = request.state.memory.get_mut(handle.memory) {
        memory.allow(request.file);
    }
    request.state.gem.entry(request.file).or_default().insert(handle)
}

/// in: bo_size u64 at 0, alignment u64 at 8, domains u64 at 16, domain_flags u64 at
/// 24; out: handle u32 at 0.
pub(super) fn create(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let arguments = &request.arguments;
    let (size, domains, flags) = (arguments.u64(0), arguments.u64(16), arguments.u64(24));
    if flags & !CREATE_FLAGS != 0 || domains & !DOMAINS != 0 {
        return Err(Errno::EINVAL);
    }
    let place = match domains {
        CPU | 0x40 => return Err(Errno::EINVAL),
        GTT => Place::Gtt,
        _ if domains & VRAM != 0 => request.state.kernel.place_of_vram(request.gpu),
        _ => return Err(NOT_SIMULATED),
    };
    if size == 0 {
        return Err(NOT_SIMULATED);
    }
    let size = size.checked_next_multiple_of(PAGE).ok_or(Errno::ENOMEM)?;
    let memory = MemoryId(request.state.number());
    let State { memory: memories, topology, .. } = &mut *request.state;
    let mut taken = memories.take(memory, topology, request.gpu, place, size);
    if taken.is_err() && place == Place::Vram && domains & GTT != 0 {
        taken = memories.take(memory, topology, request.gpu, Place::Gtt, size);
    }
    taken?;
    if let Some(memory) = memories.get_mut(memory) {
        memory.public = flags & CPU_ACCESS_REQUIRED != 0;
    }
    let no_cpu_access = flags & NO_CPU_ACCESS != 0;
    let per_vm = flags & VM_ALWAYS_VALID != 0;
    let handle = Handle { memory, no_cpu_access, per_vm, holds_dma_buf: false };
    let number = insert(request, handle);
    request.arguments.put_u64(0, u64::from(number));
    Ok(0)
}

/// in: handle u32 at 0; out: the offset for mmap u64 at 0.
pub(super) fn offset(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let handle = handle(request, request.arguments.u32(0))?;
    let memory = request.state.memory.get(handle.memory).ok_or(Errno::ENOENT)?;
    if handle.no_cpu_access || memory.place == Place::User {
        return Err(Errno::EPERM);
    }
    let offset = memory.offset;
    request.arguments.put_u64(0, offset);
    Ok(0)
}

/// handle u32 at 0.
pub(super) fn close(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let number = request.arguments.u32(0);
    let handles = request.state.gem.get_mut(&request.file).ok_or(Errno::EINVAL)?;
    let handle = handles.handles.remove(&number).ok_or(Errno::EINVAL)?;
    give_up(request.state, request.file, handle);
    Ok(0)
}

fn give_up(state: &mut State, file: FileId, handle: Handle) {
    if let Some(vm) = state.vms.get_mut(&file) {
        vm.unmap_handle(handle.memory);
    }
    if let Some(memory) = state.memory.get_mut(handle.memory) {
        memory.revoke(file);
    }
    if handle.holds_dma_buf {
        dma_buf::let_go(state, handle.memory);
    }
    state.memory.let_go(handle.memory);
}

/// The end of a file ends its handles.
pub(crate) fn close_handles(state: &mut State, file: FileId) {
    let handles = state.gem.remove(&file).unwrap_or_default();
    for (_, handle) in handles.handles {
        give_up(state, file, handle);
    }
}

/// handle u32 at 0, flags u32 at 4, fd i32 at 8.
pub(super) fn to_descriptor(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (number, flags) = (request.arguments.u32(0), request.arguments.u32(4));
    if flags & !(CLOSE_ON_EXEC | READ_WRITE) != 0 {
        return Err(Errno::EINVAL);
    }
    let Handle { memory, per_vm, .. } = handle(request, number)?;
    if per_vm || request.state.memory.get(memory).is_some_and(|it| it.place == Place::User) {
        return Err(Errno::EPERM);
    }
    let file = dma_buf::of_memory(request.state, memory, flags & READ_WRITE != 0)?;
    hold_dma_buf(request, number, memory);
    let process = request.state.processes.get_mut(&request.pid).ok_or(Errno::ESRCH)?;
    let descriptor = process.descriptors.insert(file, flags & CLOSE_ON_EXEC != 0)?;
    request.arguments.put_u32(8, descriptor);
    Ok(0)
}

fn hold_dma_buf(request: &mut Request<'_, '_, '_>, number: u32, memory: MemoryId) {
    let handles = request.state.gem.get_mut(&request.file);
    let Some(handle) = handles.and_then(|handles| handles.handles.get_mut(&number)) else { return };
    if !core::mem::replace(&mut handle.holds_dma_buf, true) {
        dma_buf::hold(request.state, memory);
    }
}

/// handle u32 at 0, flags u32 at 4, fd i32 at 8. The same buffer twice is the same
/// handle.
pub(super) fn from_descriptor(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let memory = dma_buf::of_descriptor(request.state, request.pid, request.arguments.u32(8))?;
    let handles = request.state.gem.entry(request.file).or_default();
    let known = handles.handles.iter().find(|(_, handle)| handle.memory == memory);
    let number = match known {
        Some((number, _)) => *number,
        None => {
            request.state.memory.hold(memory);
            let handle =
                Handle { memory, no_cpu_access: false, per_vm: false, holds_dma_buf: false };
            insert(request, handle)
        }
    };
    hold_dma_buf(request, number, memory);
    request.arguments.put_u32(0, number);
    Ok(0)
}

/// AMDGPU_GEM_OP_*.
const GET_CREATE_INFO: u32 = 0;

/// handle u32 at 0, op u32 at 4, the answer's address u64 at 8: bo_size, alignment,
/// domains, domain_flags u64.
pub(super) fn operate(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (number, operation) = (request.arguments.u32(0), request.arguments.u32(4));
    let id = memory_of(request, number)?;
    let memory = request.state.memory.get(id).ok_or(Errno::ENOENT)?;
    match operation {
        GET_CREATE_INFO => {
            let domain = if memory.place == Place::Gtt { GTT } else { VRAM };
            let flags = if memory.public { CPU_ACCESS_REQUIRED } else { 0 };
            let answer = [memory.size, PAGE, domain, flags];
            let bytes: Vec<u8> = answer.into_iter().flat_map(u64::to_ne_bytes).collect();
            request.arrays.write(8, 0, &bytes)?;
            Ok(0)
        }
        1 | 2 => Err(NOT_SIMULATED),
        _ => Err(Errno::EINVAL),
    }
}

/// AMDGPU_GEM_METADATA_OP_*.
const SET_METADATA: u32 = 1;
const GET_METADATA: u32 = 2;
/// Bytes of the block's array, where it is, and what a buffer can keep.
const METADATA_MAX: u32 = 256;
const METADATA_AT: usize = 28;

/// handle u32 at 0, op u32 at 4, flags u64 at 8, tiling_info u64 at 16,
/// data_size_bytes u32 at 24, data at 28.
pub(super) fn metadata(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (number, operation) = (request.arguments.u32(0), request.arguments.u32(4));
    memory_of(request, number)?;
    match operation {
        SET_METADATA => {
            let (flags, tiling) = (request.arguments.u64(8), request.arguments.u64(16));
            let size = request.arguments.u32(24);
            if size > METADATA_MAX {
                return Err(Errno::EINVAL);
            }
            let bytes = request.arguments.bytes(METADATA_AT, size as usize);
            memory_mut(request, number)?.metadata = Metadata { flags, tiling, bytes };
        }
        GET_METADATA => {
            let metadata = memory_mut(request, number)?.metadata.clone();
            request.arguments.put_u64(8, metadata.flags);
            request.arguments.put_u64(16, metadata.tiling);
            request.arguments.put_u32(24, metadata.bytes.len() as u32);
            request.arguments.put(METADATA_AT, &metadata.bytes);
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Array, Driver, MapDevice, Placement, Protection};
    use hsakmt_core::uapi::amdgpu::{
        GemCreate, GemCreateFlags, GemDomain, GemMetadata, GemMetadataOp, GemMmap,
        GemOpGetGemCreateInfo,
    };
    use hsakmt_core::uapi::drm::{GemClose, PrimeFdToHandle, PrimeFlags, PrimeHandleToFd};

    use crate::SimDevice;
    use crate::fixture::{Sim, ask, ask_with, boot, broken, render};

    fn create(sim: &Sim, file: &SimDevice, flags: GemCreateFlags) -> u32 {
        let domains = GemDomain::VRAM;
        let mut block =
            GemCreate { bo_size: 5000, domains, domain_flags: flags, ..Default::default() };
        assert_eq!(ask(sim, file, &mut block), Ok(0));
        block.handle()
    }

    fn to_fd(sim: &Sim, file: &SimDevice, handle: u32, flags: u32) -> Result<u32, Errno> {
        let flags = PrimeFlags::from_bits_retain(flags);
        let mut block = PrimeHandleToFd { handle, flags, ..Default::default() };
        ask(sim, file, &mut block).map(|_| block.fd as u32)
    }

    fn from_fd(sim: &Sim, file: &SimDevice, fd: u32) -> Result<u32, Errno> {
        let mut block = PrimeFdToHandle { fd: fd as i32, ..Default::default() };
        ask(sim, file, &mut block).map(|_| block.handle)
    }

    fn close(sim: &Sim, file: &SimDevice, handle: u32) -> Result<u32, Errno> {
        ask(sim, file, &mut GemClose { handle, ..Default::default() })
    }

    #[test]
    fn handles_begin_at_1_and_the_lowest_is_taken() {
        let sim = boot("rx7900");
        let file = render(&sim, 0);
        let none = GemCreateFlags::empty();
        let handles = [0; 3].map(|_| create(&sim, &file, none));
        assert_eq!(handles, [1, 2, 3]);
        assert_eq!(close(&sim, &file, 2), Ok(0));
        assert_eq!(close(&sim, &file, 2), Err(Errno::EINVAL));
        assert_eq!(create(&sim, &file, none), 2);
        // Handles are a file's own.
        assert_eq!(create(&sim, &render(&sim, 0), none), 1);
        let mut wrong = GemCreate {
            bo_size: 4096,
            domains: GemDomain::from_bits_retain(1 << 20),
            ..Default::default()
        };
        assert_eq!(ask(&sim, &file, &mut wrong), Err(Errno::EINVAL));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn a_file_takes_its_handles_with_it() {
        let sim = boot("rx7900:vram=1G");
        let fill = |file: &SimDevice| {
            let (bo_size, domains) = (1016 << 20, GemDomain::VRAM);
            ask(&sim, file, &mut GemCreate { bo_size, domains, ..Default::default() })
        };
        let file = render(&sim, 0);
        assert_eq!(fill(&file), Ok(0));
        assert_eq!(fill(&file), Err(Errno::ENOMEM));
        drop(file);
        assert_eq!(fill(&render(&sim, 0)), Ok(0));
    }

    #[test]
    fn a_descriptor_names_the_same_buffer_once_in_each_file() {
        let sim = boot("rx7900");
        let (file, other) = (render(&sim, 0), render(&sim, 0));
        let none = GemCreateFlags::empty();
        let handle = create(&sim, &file, none);
        assert_eq!(to_fd(&sim, &file, handle, 0x8000_0000), Err(Errno::EINVAL));
        assert_eq!(to_fd(&sim, &file, 9, 0), Err(Errno::ENOENT));
        let own = create(&sim, &file, GemCreateFlags::VM_ALWAYS_VALID);
        assert_eq!(to_fd(&sim, &file, own, 0), Err(Errno::EPERM));
        let fd = to_fd(&sim, &file, handle, 0o2_000_002).unwrap();
        assert!(sim.process().descriptor(fd).unwrap().close_on_exec);
        assert_eq!(from_fd(&sim, &file, fd), Ok(handle));
        create(&sim, &other, none);
        assert_eq!([0; 2].map(|_| from_fd(&sim, &other, fd)), [Ok(2); 2]);
        assert_eq!(from_fd(&sim, &other, 99), Err(Errno::EBADF));
        assert_eq!(from_fd(&sim, &other, sim.token(&file).0), Err(Errno::EINVAL));
        drop(file);
        sim.process().close(fd).unwrap();
        let mut offset = GemMmap { handle: 2, ..Default::default() };
        assert_eq!(ask(&sim, &other, &mut offset), Ok(0));
        assert_eq!(close(&sim, &other, 2), Ok(0));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn the_cpu_maps_what_the_file_has_a_handle_of() {
        let sim = boot("rx7900");
        let (file, other) = (render(&sim, 0), render(&sim, 0));
        let handle = create(&sim, &file, GemCreateFlags::empty());
        let mut block = GemMmap { handle, ..Default::default() };
        ask(&sim, &file, &mut block).unwrap();
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length: 8192,
            protection: Protection::READ | Protection::WRITE,
            offset: block.offset(),
        };
        assert!(Driver::map(&sim, &file, mapping).is_ok());
        assert_eq!(Driver::map(&sim, &other, mapping), Err(Errno::EACCES));
        let hidden = create(&sim, &file, GemCreateFlags::NO_CPU_ACCESS);
        let mut block = GemMmap { handle: hidden, ..Default::default() };
        assert_eq!(ask(&sim, &file, &mut block), Err(Errno::EPERM));
        let mut block = GemMmap { handle: 9, ..Default::default() };
        assert_eq!(ask(&sim, &file, &mut block), Err(Errno::ENOENT));
    }

    #[test]
    fn a_handle_tells_what_it_is() {
        let sim = boot("rx7900");
        let file = render(&sim, 0);
        let handle = create(&sim, &file, GemCreateFlags::CPU_ACCESS_REQUIRED);
        let mut answer = [0; 32];
        let mut block = GemOpGetGemCreateInfo { handle, ..Default::default() };
        let arrays = &mut [Array::Out(&mut answer)];
        assert_eq!(ask_with(&sim, &file, &mut block, arrays), Ok(0));
        let words = answer.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        assert_eq!(words.collect::<Vec<_>>(), [8192, 4096, 4, 1]);
        let mut wrong = GemOpGetGemCreateInfo { handle: 9, ..Default::default() };
        let arrays = &mut [Array::Out(&mut answer)];
        assert_eq!(ask_with(&sim, &file, &mut wrong, arrays), Err(Errno::ENOENT));
    }

    #[test]
    fn metadata_is_kept_with_the_buffer() {
        let sim = boot("rx7900");
        let (file, other) = (render(&sim, 0), render(&sim, 0));
        let handle = create(&sim, &file, GemCreateFlags::empty());
        let set = |size| {
            let op = GemMetadataOp::SET_METADATA;
            let mut block =
                GemMetadata { handle, op, data_size_bytes: size, flags: 5, ..Default::default() };
            block.data[0] = 77;
            ask(&sim, &file, &mut block)
        };
        assert_eq!(set(257), Err(Errno::EINVAL));
        assert_eq!(set(8), Ok(0));
        let handle = from_fd(&sim, &other, to_fd(&sim, &file, handle, 0).unwrap()).unwrap();
        let mut block =
            GemMetadata { handle, op: GemMetadataOp::GET_METADATA, ..Default::default() };
        assert_eq!(ask(&sim, &other, &mut block), Ok(0));
        assert_eq!((block.data_size_bytes, block.data[0], block.flags), (8, 77, 5));
        let mut block = GemMetadata { handle: 9, ..block };
        assert_eq!(ask(&sim, &other, &mut block), Err(Errno::ENOENT));
    }
}
