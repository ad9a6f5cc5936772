//! GET_DMABUF_INFO, IMPORT_DMABUF, EXPORT_DMABUF: kernel-rules section 2, "dma-buf"
//! (kfd_chardev.c, amdgpu_amdkfd.c, amdgpu_amdkfd_gpuvm.c).

use alloc::collections::BTreeSet;

use hsakmt_core::errno::Errno;

use super::buffers::{Buffer, EXECUTABLE, GTT, PUBLIC, VRAM, WRITABLE, join, split};
use super::dispatch::Request;
use crate::descriptor::FileId;
use crate::dma_buf;
use crate::gpu_memory::{MemoryId, Place};
use crate::machine::State;

/// O_CLOEXEC, the only flag that counts.
const CLOSE_ON_EXEC: u32 = 0o2_000_000;

/// handle u64 at 0, flags u32 at 8, dmabuf_fd u32 at 12.
///
/// In this order: GPU and handle EINVAL; user pages EPERM; descriptors EMFILE. The
/// buffer keeps its dma-buf also when there was no descriptor for it.
pub(super) fn export(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (gpu_id, index) = split(request.arguments.u64(0));
    let close_on_exec = request.arguments.u32(8) & CLOSE_ON_EXEC != 0;
    let buffer = request.object()?.gpu(gpu_id)?.buffers.get(&index).ok_or(Errno::EINVAL)?;
    let (memory, writable) = (buffer.memory, buffer.flags & WRITABLE != 0);
    match buffer.place {
        Place::User => return Err(Errno::EPERM),
        // Nobody wrote down what becomes of doorbells.
        Place::Registers => return Err(Errno::EINVAL),
        Place::Vram | Place::CarveOut | Place::Gtt | Place::File => {}
    }
    let file = dma_buf::of_memory(request.state, memory, writable)?;
    let record = request.object_mut()?.record_mut(gpu_id).ok_or(Errno::EINVAL)?;
    let buffer = record.buffers.get_mut(&index).ok_or(Errno::EINVAL)?;
    if !core::mem::replace(&mut buffer.holds_dma_buf, true) {
        dma_buf::hold(request.state, memory);
    }
    let number = descriptor(request, file, close_on_exec)?;
    request.arguments.put_u32(12, number);
    Ok(0)
}

fn descriptor(
    request: &mut Request<'_, '_, '_>,
    file: FileId,
    close_on_exec: bool,
) -> Result<u32, Errno> {
    let process = request.state.processes.get_mut(&request.pid).ok_or(Errno::ESRCH)?;
    process.descriptors.insert(file, close_on_exec)
}

/// va_addr u64 at 0, handle u64 at 8, gpu_id u32 at 16, dmabuf_fd u32 at 20.
///
/// In this order: GPU EINVAL; VM ENODEV; dma-buf EBADF, EINVAL. 6.1 looks at the
/// dma-buf first, and takes one of the same GPU alone. The address is not looked at.
pub(super) fn import(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let arguments = &request.arguments;
    let (address, gpu_id, number) = (arguments.u64(0), arguments.u32(16), arguments.u32(20));
    let look = |state: &State| dma_buf::of_descriptor(state, request.pid, number);
    if request.state.kernel.imports_own_buffers_alone() {
        look(request.state)?;
    }
    request.object()?.gpu(gpu_id)?.file.ok_or(Errno::ENODEV)?;
    let memory = look(request.state)?;
    let place = place_on(request.state, memory, gpu_id)?;
    let handle = insert(request, memory, place, address, gpu_id, None)?;
    request.arguments.put_u64(8, handle);
    Ok(0)
}

/// What memory is for a GPU that imports it: its own is what it is, another's is
/// reached as system memory (amdgpu_dma_buf_create_obj).
pub(super) fn place_on(state: &State, id: MemoryId, gpu_id: u32) -> Result<Place, Errno> {
    let memory = state.memory.get(id).ok_or(Errno::EINVAL)?;
    if memory.place == Place::File {
        let alone = state.kernel.imports_own_buffers_alone();
        return if alone { Err(Errno::EINVAL) } else { Ok(Place::Gtt) };
    }
    let gpu = |id| state.topology.gpu(id).ok_or(Errno::EINVAL);
    if gpu(memory.gpu_id)?.is_same_device(gpu(gpu_id)?) {
        Ok(memory.place)
    } else if state.kernel.imports_own_buffers_alone() {
        Err(Errno::EINVAL)
    } else {
        Ok(Place::Gtt)
    }
}

/// Makes a buffer of memory that is there; all rights, and it holds the dma-buf.
pub(super) fn insert(
    request: &mut Request<'_, '_, '_>,
    memory: MemoryId,
    place: Place,
    address: u64,
    gpu_id: u32,
    allowed: Option<FileId>,
) -> Result<u64, Errno> {
    let size = request.state.memory.get(memory).ok_or(Errno::EINVAL)?.size;
    let kind = if place == Place::Gtt { GTT } else { VRAM };
    let buffer = Buffer {
        memory,
        place,
        address,
        size,
        flags: kind | WRITABLE | EXECUTABLE,
        source: None,
        mapped: BTreeSet::new(),
        allowed,
        holds_dma_buf: true,
        shared: None,
    };
    let record = request.object_mut()?.record_mut(gpu_id).ok_or(Errno::EINVAL)?;
    let handle = join(gpu_id, record.insert(buffer));
    request.state.memory.hold(memory);
    dma_buf::hold(request.state, memory);
    if let (Some(file), Some(memory)) = (allowed, request.state.memory.get_mut(memory)) {
        memory.allow(file);
    }
    Ok(handle)
}

/// size u64 at 0, metadata_ptr u64 at 8, metadata_size u32 at 16, gpu_id u32 at 20,
/// flags u32 at 24, dmabuf_fd u32 at 28.
///
/// In this order: no GPU EINVAL; dma-buf EBADF, EINVAL, also for another driver's; an array shorter than the
/// metadata EINVAL, with the size that it needs; EFAULT.
pub(super) fn info(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let first = request.object()?.records.first().ok_or(Errno::EINVAL)?.gpu_id;
    let id = dma_buf::of_descriptor(request.state, request.pid, request.arguments.u32(28))?;
    let memory = request.state.memory.get(id).ok_or(Errno::EINVAL)?.clone();
    if memory.place == Place::File {
        // Another driver's dma-buf (amdgpu_amdkfd_get_dmabuf_info).
        return Err(Errno::EINVAL);
    }
    request.arguments.put_u64(0, memory.size);
    if request.arrays.is_present(8) {
        let room = request.arguments.u32(16) as usize;
        let bytes = &memory.metadata.bytes;
        request.arguments.put_u32(16, bytes.len() as u32);
        if room < bytes.len() {
            return Err(Errno::EINVAL);
        }
        request.arrays.write(8, 0, bytes)?;
    }
    let in_vram = memory.place != Place::Gtt;
    let mut flags = if in_vram { VRAM } else { GTT };
    if memory.public {
        flags |= PUBLIC;
    }
    request.arguments.put_u32(20, if in_vram { memory.gpu_id } else { first });
    request.arguments.put_u32(24, flags);
    Ok(0)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Array, DeviceToken, Driver, MapDevice, Placement, Protection};
    use hsakmt_core::uapi::amdgpu::{GemMetadata, GemMetadataOp};
    use hsakmt_core::uapi::drm::PrimeFdToHandle;
    use hsakmt_core::uapi::kfd::{
        AllocMemoryFlags as Flags, ExportDmabuf, ExportDmabufFlags, GetDmabufInfo, ImportDmabuf,
    };

    use crate::SimDevice;
    use crate::fixture::{
        Sim, acquire, alloc, alloc_user, ask, ask_with, bind, boot, broken, export, free, gpu_id,
        import, kfd, map, map_memory, render, unmap,
    };

    const VA: u64 = 0x10_0000;

    fn info(
        sim: &Sim,
        kfd: &SimDevice,
        dmabuf_fd: u32,
        room: Option<&mut [u8]>,
    ) -> (Result<u32, Errno>, GetDmabufInfo) {
        let metadata_size = room.as_ref().map_or(0, |room| room.len() as u32);
        let mut block = GetDmabufInfo { dmabuf_fd, metadata_size, ..Default::default() };
        let array = room.map_or(Array::Absent, Array::Out);
        (ask_with(sim, kfd, &mut block, &mut [array]), block)
    }

    #[test]
    fn export_errors_come_in_order() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let (handle, _) = alloc(&sim, &bound.kfd, 0, Flags::VRAM, VA, 8192).unwrap();
        assert_eq!(export(&sim, &bound.kfd, handle + 1), Err(Errno::EINVAL));
        assert_eq!(export(&sim, &bound.kfd, 7), Err(Errno::EINVAL));
        map_memory(&sim, 0x1_0000, 4096);
        let user = alloc_user(&sim, &bound.kfd, VA, 0x1_0000, 4096).unwrap();
        assert_eq!(export(&sim, &bound.kfd, user), Err(Errno::EPERM));
        sim.process().set_descriptor_limit(5);
        assert_eq!(export(&sim, &bound.kfd, handle), Err(Errno::EMFILE));
        sim.process().set_descriptor_limit(6);
        assert_eq!(export(&sim, &bound.kfd, handle), Ok(5));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn two_exports_are_one_dma_buf() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let (handle, _) = alloc(&sim, &bound.kfd, 0, Flags::GTT, VA, 8192).unwrap();
        let [one, two] = [0; 2].map(|_| export(&sim, &bound.kfd, handle).unwrap());
        let entry = |number| sim.process().descriptor(number).unwrap();
        assert_eq!(entry(one).file, entry(two).file);
        assert!(!entry(one).close_on_exec);
        let mut block =
            ExportDmabuf { handle, flags: ExportDmabufFlags::CLOEXEC, ..Default::default() };
        ask(&sim, &bound.kfd, &mut block).unwrap();
        assert!(entry(block.dmabuf_fd).close_on_exec);
        // As long as the buffer is there the dma-buf is, with or without descriptors.
        let file = entry(one).file;
        for number in [one, two, block.dmabuf_fd] {
            sim.process().close(number).unwrap();
        }
        let again = export(&sim, &bound.kfd, handle).unwrap();
        assert_eq!(entry(again).file, file);
    }

    #[test]
    fn import_errors_come_in_order() {
        for kernel in ["6.1", "6.12", "7.2"] {
            let sim = boot(&alloc::format!("rx7900:kernel={kernel}"));
            let device = kfd(&sim);
            let mut block = ImportDmabuf { gpu_id: 1, dmabuf_fd: 99, ..Default::default() };
            let first = if kernel == "6.1" { Errno::EBADF } else { Errno::EINVAL };
            assert_eq!(ask(&sim, &device, &mut block), Err(first), "{kernel}");
            let foreign = sim.process().open_foreign().unwrap();
            let first = if kernel == "6.1" { Errno::EINVAL } else { Errno::ENODEV };
            assert_eq!(import(&sim, &device, 0, VA, foreign), Err(first), "{kernel}");
            let file = render(&sim, 0);
            acquire(&sim, &device, &file, 0).unwrap();
            assert_eq!(import(&sim, &device, 0, VA, 99), Err(Errno::EBADF));
            let render = sim.token(&file).0;
            assert_eq!(import(&sim, &device, 0, VA, render), Err(Errno::EINVAL));
            assert_eq!(broken(&sim), []);
        }
    }

    #[test]
    fn an_import_is_another_handle_of_the_same_memory_with_all_rights() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let id = gpu_id(&sim, 0);
        let (handle, _) = alloc(&sim, &bound.kfd, 0, Flags::VRAM, VA, 8192).unwrap();
        let number = export(&sim, &bound.kfd, handle).unwrap();
        let one = import(&sim, &bound.kfd, 0, 2 * VA, number).unwrap();
        let two = import(&sim, &bound.kfd, 0, 3 * VA, number).unwrap();
        assert_eq!((one, two), (handle + 1, handle + 2));
        for handle in [handle, one, two] {
            map(&sim, &bound.kfd, handle, &[id]).unwrap();
        }
        let write = |address| sim.process().gpu_access(id, address, true);
        assert_eq!(write(VA), Err(crate::Fault::ReadOnly));
        assert_eq!((write(2 * VA), write(3 * VA + 4096)), (Ok(()), Ok(())));
        assert_eq!(write(2 * VA + 8192), Err(crate::Fault::NotMapped));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn an_import_outlives_the_export_and_counts_in_no_limit_again() {
        let sim = boot("rx7900:vram=1G");
        let bound = bind(&sim);
        let id = gpu_id(&sim, 0);
        let most = 1016 << 20;
        let take = || alloc(&sim, &bound.kfd, 0, Flags::VRAM, VA, most);
        let (handle, offset) = take().unwrap();
        let number = export(&sim, &bound.kfd, handle).unwrap();
        let other = import(&sim, &bound.kfd, 0, VA, number).unwrap();
        free(&sim, &bound.kfd, handle).unwrap();
        sim.process().close(number).unwrap();
        map(&sim, &bound.kfd, other, &[id]).unwrap();
        assert_eq!(take(), Err(Errno::ENOMEM));
        // The CPU has no offset for it any more.
        let mapping = mapping(offset, 4096, Protection::READ);
        assert_eq!(Driver::map(&sim, &bound.files[0], mapping), Err(Errno::EACCES));
        unmap(&sim, &bound.kfd, other, &[id]).unwrap();
        free(&sim, &bound.kfd, other).unwrap();
        assert!(take().is_ok());
        assert_eq!(sim.machine().leftovers().files, 2);
    }

    #[test]
    fn before_6_12_a_gpu_imports_its_own_memory_alone() {
        for (kernel, expected) in [("6.1", Err(Errno::EINVAL)), ("6.12", Ok(()))] {
            let sim = boot(&alloc::format!("rx7900:gpus=2,kernel={kernel}"));
            let bound = bind(&sim);
            let handle = alloc(&sim, &bound.kfd, 0, Flags::VRAM, VA, 4096).unwrap().0;
            // EXPORT_DMABUF is newer than 6.1: through DRM there.
            let number = if kernel == "6.1" {
                let file = render(&sim, 0);
                let mut create = hsakmt_core::uapi::amdgpu::GemCreate {
                    bo_size: 4096,
                    domains: hsakmt_core::uapi::amdgpu::GemDomain::VRAM,
                    ..Default::default()
                };
                ask(&sim, &file, &mut create).unwrap();
                let mut prime = hsakmt_core::uapi::drm::PrimeHandleToFd {
                    handle: create.handle(),
                    ..Default::default()
                };
                ask(&sim, &file, &mut prime).unwrap();
                prime.fd as u32
            } else {
                export(&sim, &bound.kfd, handle).unwrap()
            };
            let imported = import(&sim, &bound.kfd, 1, VA, number);
            assert_eq!(imported.map(|_| ()), expected, "{kernel}");
            if let Ok(handle) = imported {
                // Peer access is off, and it is no peer's memory now.
                assert_eq!(map(&sim, &bound.kfd, handle, &[gpu_id(&sim, 1)]), Ok(0));
            }
        }
    }

    fn mapping(offset: u64, length: usize, protection: Protection) -> MapDevice {
        MapDevice { placement: Placement::Anywhere, length, protection, offset }
    }

    #[test]
    fn the_cpu_maps_a_dma_buf_within_its_length_and_access_mode() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let read = Protection::READ;
        for (flags, write) in
            [(Flags::VRAM | Flags::WRITABLE, Ok(())), (Flags::GTT, Err(Errno::EACCES))]
        {
            let handle = alloc(&sim, &bound.kfd, 0, flags, VA, 0x4000).unwrap().0;
            let number = export(&sim, &bound.kfd, handle).unwrap();
            let device = sim.adopt(DeviceToken(number));
            let map = |offset, length, protection| {
                Driver::map(&sim, &device, mapping(offset, length, protection)).map(|_| ())
            };
            assert_eq!(map(0, 0x4000, read), Ok(()));
            assert_eq!(map(0x3000, 0x1000, read), Ok(()));
            assert_eq!(map(0x3000, 0x2000, read), Err(Errno::EINVAL));
            assert_eq!(map(0, 0x1000, read | Protection::WRITE), write);
        }
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn dma_bufs_go_from_process_to_process_and_last_as_long_as_anybody_has_them() {
        let sim = boot("rx7900:vram=1G");
        let bound = bind(&sim);
        let most = 1016 << 20;
        let (handle, _) = alloc(&sim, &bound.kfd, 0, Flags::VRAM, VA, most).unwrap();
        let number = export(&sim, &bound.kfd, handle).unwrap();
        let other = sim.machine().spawn(crate::AddressesOnly::new());
        let received = other.process().receive(&sim.process(), number).unwrap();
        drop(bound);
        sim.process().exit();
        // The first process is gone with all it had, and the memory is there.
        let theirs = bind(&other);
        let memory = || alloc(&other, &theirs.kfd, 0, Flags::VRAM, VA, most);
        assert_eq!(memory(), Err(Errno::ENOMEM));
        let imported = import(&other, &theirs.kfd, 0, VA, received).unwrap();
        map(&other, &theirs.kfd, imported, &[gpu_id(&other, 0)]).unwrap();
        let device = other.adopt(DeviceToken(received));
        let address =
            Driver::map(&other, &device, mapping(0x1000, 0x1000, Protection::READ)).unwrap();
        drop(device);
        unmap(&other, &theirs.kfd, imported, &[gpu_id(&other, 0)]).unwrap();
        free(&other, &theirs.kfd, imported).unwrap();
        // What keeps it now is the mapping, which keeps the dma-buf.
        assert_eq!(memory(), Err(Errno::ENOMEM));
        hsakmt_core::seam::Os::unmap(&other, address, 0x1000).unwrap();
        assert!(memory().is_ok());
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn a_dma_buf_tells_its_size_its_gpu_and_where_it_is() {
        let sim = boot("mi210x8:gpus=2");
        let bound = bind(&sim);
        let (first, second) = (gpu_id(&sim, 0), gpu_id(&sim, 1));
        for (flags, kind, gpu) in [
            (Flags::VRAM, Flags::VRAM, second),
            (Flags::VRAM | Flags::PUBLIC, Flags::VRAM | Flags::PUBLIC, second),
            // Whoever made it: the first GPU that the process has.
            (Flags::GTT, Flags::GTT, first),
        ] {
            let handle = alloc(&sim, &bound.kfd, 1, flags, VA, 5000).unwrap().0;
            let number = export(&sim, &bound.kfd, handle).unwrap();
            let (answer, block) = info(&sim, &bound.kfd, number, None);
            assert_eq!(answer, Ok(0));
            assert_eq!((block.size, block.gpu_id, block.flags), (8192, gpu, kind));
        }
        let (answer, _) = info(&sim, &bound.kfd, 99, None);
        assert_eq!(answer, Err(Errno::EBADF));
        let (answer, _) = info(&sim, &bound.kfd, sim.token(&bound.files[0]).0, None);
        assert_eq!(answer, Err(Errno::EINVAL));
        let sim = boot("cpu-only");
        assert_eq!(info(&sim, &kfd(&sim), 99, None).0, Err(Errno::EINVAL));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn metadata_needs_room_and_says_how_much() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let handle = alloc(&sim, &bound.kfd, 0, Flags::VRAM, VA, 4096).unwrap().0;
        let number = export(&sim, &bound.kfd, handle).unwrap();
        // A graphics driver takes it and writes its notes.
        let graphics = render(&sim, 0);
        let mut prime = PrimeFdToHandle { fd: number as i32, ..Default::default() };
        ask(&sim, &graphics, &mut prime).unwrap();
        let mut notes = GemMetadata {
            handle: prime.handle,
            op: GemMetadataOp::SET_METADATA,
            data_size_bytes: 100,
            ..Default::default()
        };
        notes.data.fill(0x0707_0707);
        ask(&sim, &graphics, &mut notes).unwrap();
        let mut room = [0; 100];
        let (answer, block) = info(&sim, &bound.kfd, number, Some(&mut room[..64]));
        assert_eq!((answer, block.metadata_size), (Err(Errno::EINVAL), 100));
        let (answer, block) = info(&sim, &bound.kfd, number, Some(&mut room));
        assert_eq!((answer, block.metadata_size, room), (Ok(0), 100, [7; 100]));
        assert_eq!(broken(&sim), []);
    }
}
