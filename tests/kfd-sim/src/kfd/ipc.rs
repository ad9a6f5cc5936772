//! IPC_EXPORT_HANDLE and IPC_IMPORT_HANDLE of the out-of-tree driver: a buffer that
//! other processes know by a number. Upstream has neither (kernel-rules section 2,
//! "80 and up").

use hsakmt_core::errno::Errno;

use super::buffers::{WRITABLE, split};
use super::dispatch::Request;
use super::dma_buf::{insert, place_on};
use crate::dma_buf;
use crate::gpu_memory::{MemoryId, Place};
use crate::machine::State;

/// By which other processes know a buffer.
pub(crate) type ShareHandle = [u32; 4];

/// A buffer that other processes may know. It is there as long as a buffer that was
/// exported to it or imported from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    memory: MemoryId,
    /// The exporter's words for what it is.
    flags: u32,
    holders: u32,
}

fn handle_at(request: &Request<'_, '_, '_>, at: usize) -> ShareHandle {
    [0, 1, 2, 3].map(|word| request.arguments.u32(at + 4 * word))
}

/// handle u64 at 0, share_handle u32[4] at 8, gpu_id u32 at 24, flags u32 at 28.
pub(super) fn export(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (_, index) = split(request.arguments.u64(0));
    let (gpu_id, flags) = (request.arguments.u32(24), request.arguments.u32(28));
    let buffer = request.object()?.gpu(gpu_id)?.buffers.get(&index).ok_or(Errno::EINVAL)?;
    let (memory, writable) = (buffer.memory, buffer.flags & WRITABLE != 0);
    match buffer.place {
        Place::User => return Err(Errno::EPERM),
        Place::Registers => return Err(Errno::EINVAL),
        Place::Vram | Place::CarveOut | Place::Gtt | Place::File => {}
    }
    let (known, holds) = (buffer.shared, buffer.holds_dma_buf);
    let handle = match known {
        Some(handle) => handle,
        None => {
            dma_buf::of_memory(request.state, memory, writable)?;
            if !holds {
                dma_buf::hold(request.state, memory);
            }
            let number = request.state.number();
            let handle = [number as u32, (number >> 32) as u32, 0x6970_6300, !(number as u32)];
            request.state.shared.insert(handle, Shared { memory, flags, holders: 1 });
            let record = request.object_mut()?.record_mut(gpu_id).ok_or(Errno::EINVAL)?;
            let buffer = record.buffers.get_mut(&index).ok_or(Errno::EINVAL)?;
            (buffer.shared, buffer.holds_dma_buf) = (Some(handle), true);
            handle
        }
    };
    for (word, value) in (0..).zip(handle) {
        request.arguments.put_u32(8 + 4 * word, value);
    }
    Ok(0)
}

/// handle u64 at 0, va_addr u64 at 8, mmap_offset u64 at 16, share_handle u32[4] at
/// 24, gpu_id u32 at 40, flags u32 at 44.
pub(super) fn import(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (address, gpu_id) = (request.arguments.u64(8), request.arguments.u32(40));
    let file = request.object()?.gpu(gpu_id)?.file.ok_or(Errno::ENODEV)?;
    let share_handle = handle_at(request, 24);
    let shared = *request.state.shared.get(&share_handle).ok_or(Errno::EINVAL)?;
    let memory = shared.memory;
    let place = place_on(request.state, memory, gpu_id)?;
    let minor = request.state.topology.gpu(gpu_id).ok_or(Errno::EINVAL)?.render_minor();
    let own = request.state.memory.get(memory).filter(|memory| memory.minor == minor);
    let offset = own.map(|memory| memory.offset);
    let handle = insert(request, memory, place, address, gpu_id, offset.map(|_| file))?;
    if let Some(shared) = request.state.shared.get_mut(&share_handle) {
        shared.holders += 1;
    }
    if let Some(buffer) = request.object_mut()?.buffer_mut(handle) {
        buffer.shared = Some(share_handle);
    }
    request.arguments.put_u64(0, handle);
    request.arguments.put_u64(16, offset.unwrap_or(0));
    request.arguments.put_u32(44, shared.flags);
    Ok(0)
}

/// A buffer that is known by this handle goes.
pub(super) fn let_go(state: &mut State, handle: ShareHandle) {
    let Some(shared) = state.shared.get_mut(&handle) else { return };
    shared.holders -= 1;
    if shared.holders == 0 {
        state.shared.remove(&handle);
    }
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Driver, MapDevice, Placement, Protection};
    use hsakmt_core::uapi::kfd::{AllocMemoryFlags as Flags, IpcExportHandle, IpcImportHandle};

    use crate::fixture::{alloc, ask, bind, boot, broken, free, gpu_id};

    #[test]
    fn only_some_drivers_share_by_number() {
        for (profile, expected) in [
            ("rx7900", Err(Errno::ENOTTY)),
            ("rx7900:ipc=1", Ok(0)),
            ("rx7900:dkms=1", Ok(0)),
            ("rx7900:dkms=1,ipc=0", Err(Errno::ENOTTY)),
        ] {
            let sim = boot(profile);
            let bound = bind(&sim);
            let handle = alloc(&sim, &bound.kfd, 0, Flags::VRAM, 0, 4096).unwrap().0;
            let gpu_id = gpu_id(&sim, 0);
            let mut block = IpcExportHandle { handle, gpu_id, ..Default::default() };
            assert_eq!(ask(&sim, &bound.kfd, &mut block), expected, "{profile}");
            assert_eq!(broken(&sim), []);
        }
    }

    #[test]
    fn another_process_imports_by_the_number_for_as_long_as_somebody_has_it() {
        let sim = boot("rx7900:ipc=1");
        let bound = bind(&sim);
        let gpu_id = gpu_id(&sim, 0);
        let (handle, offset) = alloc(&sim, &bound.kfd, 0, Flags::VRAM, 0, 8192).unwrap();
        let flags = Flags::from_bits_retain(0x1234);
        let mut export = IpcExportHandle { handle, gpu_id, flags, ..Default::default() };
        ask(&sim, &bound.kfd, &mut export).unwrap();
        let mut again = IpcExportHandle { handle, gpu_id, ..Default::default() };
        ask(&sim, &bound.kfd, &mut again).unwrap();
        assert_eq!(export.share_handle, again.share_handle);
        let other = sim.machine().spawn(crate::AddressesOnly::new());
        let theirs = bind(&other);
        let wanted =
            IpcImportHandle { gpu_id, share_handle: export.share_handle, ..Default::default() };
        let mut import = wanted;
        ask(&other, &theirs.kfd, &mut import).unwrap();
        assert_eq!((import.mmap_offset, import.flags), (offset, flags));
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length: 8192,
            protection: Protection::READ,
            offset,
        };
        assert!(Driver::map(&other, &theirs.files[0], mapping).is_ok());
        free(&sim, &bound.kfd, handle).unwrap();
        let mut second = wanted;
        ask(&other, &theirs.kfd, &mut second).unwrap();
        for handle in [import.handle, second.handle] {
            free(&other, &theirs.kfd, handle).unwrap();
        }
        assert_eq!(ask(&other, &theirs.kfd, &mut { wanted }), Err(Errno::EINVAL));
        assert_eq!(broken(&sim), []);
    }
}
