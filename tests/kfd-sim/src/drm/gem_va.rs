//! GEM_VA: mappings of GEM handles in the VM of a render file; kernel-rules section 4,
//! "GEM_VA" and "reserved top" (amdgpu_gem.c, amdgpu_vm.c).

use alloc::vec::Vec;

use hsakmt_core::errno::Errno;

use super::dispatch::{NOT_SIMULATED, Request};
use super::{gem, syncobj};
use crate::descriptor::File;
use crate::gpu_vm::{GpuVm, Shows};

const PAGE: u64 = 4096;
/// What no mapping may be below.
const BOTTOM: u64 = 64 << 10;
/// Where the addresses that are no addresses begin and end.
const HOLE: u64 = 1 << 47;
const HOLE_END: u64 = 0xffff << 48 | HOLE;
/// The bits that count.
const ADDRESS_BITS: u64 = (1 << 48) - 1;

/// AMDGPU_VA_OP_*.
const MAP: u32 = 1;
const UNMAP: u32 = 2;
const CLEAR: u32 = 3;
const REPLACE: u32 = 4;

/// AMDGPU_VM_*: delayed update, rights, without a buffer, caching.
const DELAY_UPDATE: u32 = 1 << 0;
const WRITEABLE: u32 = 1 << 2;
const WITHOUT_BUFFER: u32 = 1 << 4;
const FLAGS: u32 = 0x3ff;

/// What of the block came with 7.2: without it, and with it.
const SHORT: usize = 40;

/// handle u32 at 0, operation u32 at 8, flags u32 at 12, va_address u64 at 16,
/// offset_in_bo u64 at 24, map_size u64 at 32; since 7.2 vm_timeline_point u64 at 40,
/// vm_timeline_syncobj_out u32 at 48, num_syncobj_handles u32 at 52, the array's
/// address at 56.
pub(super) fn change(request: &mut Request<'_, '_, '_>, sent: usize) -> Result<u32, Errno> {
    let arguments = &request.arguments;
    let (number, operation, flags) = (arguments.u32(0), arguments.u32(8), arguments.u32(12));
    let (address, offset, size) = (arguments.u64(16), arguments.u64(24), arguments.u64(32));
    let with_points = sent > SHORT && request.state.kernel.has_points_of_mappings();
    let out = if with_points { arguments.u32(48) } else { 0 };
    let (point, inputs) = (arguments.u64(40), arguments.u32(52));
    let in_hole = (HOLE..HOLE_END).contains(&address);
    if address < BOTTOM || in_hole {
        return Err(Errno::EINVAL);
    }
    // Above the hole addresses are extended by their sign.
    let address = address & ADDRESS_BITS;
    let end = address.checked_add(size).ok_or(Errno::EINVAL)?;
    if end > request.state.vms.get(&request.file).ok_or(Errno::ENODEV)?.reserved_top() {
        return Err(Errno::EINVAL);
    }
    if flags & !FLAGS != 0 || flags & DELAY_UPDATE != 0 && out != 0 {
        return Err(Errno::EINVAL);
    }
    if !(MAP..=REPLACE).contains(&operation) {
        return Err(Errno::EINVAL);
    }
    if flags & WITHOUT_BUFFER != 0 {
        return Err(NOT_SIMULATED);
    }
    let clear = operation == CLEAR;
    let memory = if clear { None } else { Some(gem::memory_of(request, number)?) };
    if with_points {
        let inputs = if inputs == 0 {
            Vec::new()
        } else {
            let bytes = request.arrays.read(56, inputs as usize * 4)?;
            bytes
                .chunks_exact(4)
                .map(|word| word.try_into().map_or(0, u32::from_ne_bytes))
                .collect()
        };
        // Nothing is ever pending here, so there is nothing to wait for.
        for handle in inputs.into_iter().chain((out != 0).then_some(out)) {
            syncobj::exists(request, handle)?;
        }
    }
    let is_bound = matches!(
        request.state.files.get(&request.file),
        Some(File::Render { serves: Some(_), .. })
    );
    if is_bound && !request.state.kernel.maps_handles_of_compute() {
        return Err(NOT_SIMULATED);
    }
    let vm = request.state.vms.get_mut(&request.file).ok_or(Errno::ENODEV)?;
    if let (MAP | REPLACE, Some(memory)) = (operation, memory) {
        let length = request.state.memory.get(memory).ok_or(Errno::ENOENT)?.size;
        let aligned = (address | offset | size) % PAGE == 0 && size != 0;
        if !aligned || offset.checked_add(size).is_none_or(|end| end > length) {
            return Err(Errno::EINVAL);
        }
        if operation == REPLACE {
            clear_range(vm, address, end)?;
        }
        let writable = flags & WRITEABLE != 0;
        vm.map(address, size, Shows::Handle { memory, offset, writable })?;
    } else if operation == UNMAP {
        match vm.get(address).map(|range| range.shows) {
            Some(Shows::Handle { memory: there, .. }) if Some(there) == memory => {
                vm.unmap(address);
            }
            _ => return Err(Errno::ENOENT),
        }
    } else {
        clear_range(vm, address, end)?;
    }
    if out != 0 {
        syncobj::signal(request, out, point)?;
    }
    Ok(0)
}

/// Removes the mappings of handles in a range. Those that reach out of it are split by
/// the kernel, which is not modelled.
fn clear_range(vm: &mut GpuVm, start: u64, end: u64) -> Result<(), Errno> {
    let inside: Vec<_> = vm
        .iter()
        .filter(|(at, range)| *at < end && at + range.length > start)
        .map(|(at, range)| (at, at + range.length, range.shows))
        .collect();
    let whole = |&(at, to, shows): &(u64, u64, Shows)| {
        at >= start && to <= end && matches!(shows, Shows::Handle { .. })
    };
    if !inside.iter().all(whole) {
        return Err(NOT_SIMULATED);
    }
    inside.into_iter().for_each(|(at, ..)| vm.unmap(at));
    Ok(())
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::Array;
    use hsakmt_core::uapi::amdgpu::{GemVa, GemVaTimeline, VaOp, VmFlags};
    use hsakmt_core::uapi::drm::{
        GemClose, PrimeFdToHandle, SyncobjCreate, SyncobjTimelineWait, SyncobjWaitFlags,
    };
    use hsakmt_core::uapi::kfd::AllocMemoryFlags as Flags;

    use crate::fixture::{
        Bound, Sim, alloc, ask, ask_with, bind, boot, broken, export, gpu_id, map,
    };

    const VA: u64 = 0x4000_0000;
    const SIZE: u64 = 0x4000;

    /// A buffer of the compute driver as a handle of the bound file.
    fn handle(sim: &Sim, bound: &Bound) -> u32 {
        let (handle, _) = alloc(sim, &bound.kfd, 0, Flags::VRAM, 0, SIZE).unwrap();
        let fd = export(sim, &bound.kfd, handle).unwrap();
        let mut prime = PrimeFdToHandle { fd: fd as i32, ..Default::default() };
        ask(sim, &bound.files[0], &mut prime).unwrap();
        prime.handle
    }

    fn map_block(handle: u32) -> GemVa {
        GemVa {
            handle,
            operation: VaOp::MAP,
            flags: VmFlags::PAGE_READABLE | VmFlags::PAGE_WRITEABLE,
            va_address: VA,
            offset_in_bo: 0,
            map_size: SIZE,
            ..Default::default()
        }
    }

    #[test]
    fn errors_are_the_kernels() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let good = map_block(handle(&sim, &bound));
        let va = |block: GemVa| ask(&sim, &bound.files[0], &mut { block });
        for (block, errno) in [
            (GemVa { va_address: 0xf000, ..good }, Errno::EINVAL),
            (GemVa { va_address: 1 << 47, ..good }, Errno::EINVAL),
            (GemVa { va_address: 0xffff_ffff_ffff_0000, ..good }, Errno::EINVAL),
            (GemVa { va_address: VA + 1, ..good }, Errno::EINVAL),
            (GemVa { offset_in_bo: 0x1000, ..good }, Errno::EINVAL),
            (GemVa { map_size: 0, ..good }, Errno::EINVAL),
            (GemVa { map_size: u64::MAX, ..good }, Errno::EINVAL),
            (GemVa { operation: VaOp(5), ..good }, Errno::EINVAL),
            (GemVa { flags: VmFlags::from_bits_retain(1 << 20), ..good }, Errno::EINVAL),
            (GemVa { handle: 77, ..good }, Errno::ENOENT),
            (GemVa { operation: VaOp::UNMAP, ..good }, Errno::ENOENT),
        ] {
            assert_eq!(va(block), Err(errno), "{block:?}");
        }
        assert_eq!(va(good), Ok(0));
        assert_eq!(va(good), Err(Errno::EINVAL), "it overlaps");
        let part = GemVa { va_address: VA + 0x1000, operation: VaOp::UNMAP, ..good };
        assert_eq!(va(part), Err(Errno::ENOENT));
        assert_eq!(va(GemVa { operation: VaOp::REPLACE, ..good }), Ok(0));
        assert_eq!(va(GemVa { operation: VaOp::UNMAP, ..good }), Ok(0));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn the_compute_object_sees_what_is_mapped_so() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let id = gpu_id(&sim, 0);
        let number = handle(&sim, &bound);
        let read_only = GemVa {
            flags: VmFlags::PAGE_READABLE,
            offset_in_bo: 0x1000,
            map_size: 0x1000,
            ..map_block(number)
        };
        ask(&sim, &bound.files[0], &mut { read_only }).unwrap();
        let access = |write| sim.process().gpu_access(id, VA, write);
        assert_eq!((access(false), access(true)), (Ok(()), Err(crate::Fault::ReadOnly)));
        // Its addresses are taken for everybody.
        let (other, _) = alloc(&sim, &bound.kfd, 0, Flags::VRAM, VA, 4096).unwrap();
        assert_eq!(map(&sim, &bound.kfd, other, &[id]), Err(Errno::EINVAL));
        // The handle takes its mappings with it.
        let mut close = GemClose { handle: number, ..Default::default() };
        ask(&sim, &bound.files[0], &mut close).unwrap();
        assert_eq!(access(false), Err(crate::Fault::NotMapped));
        assert_eq!(map(&sim, &bound.kfd, other, &[id]), Ok(0));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn a_point_is_signaled_when_the_tables_are_written() {
        let sim = boot("rx7900:kernel=7.2");
        let bound = bind(&sim);
        let file = &bound.files[0];
        let GemVa { handle, operation, flags, va_address, offset_in_bo, map_size, .. } =
            map_block(handle(&sim, &bound));
        let mut create = SyncobjCreate::default();
        ask(&sim, file, &mut create).unwrap();
        let wait = |point: u64, flags| {
            let mut block = SyncobjTimelineWait { count_handles: 1, flags, ..Default::default() };
            let (handles, points) = (create.handle.to_ne_bytes(), point.to_ne_bytes());
            let arrays = &mut [Array::In(&handles), Array::In(&points)];
            ask_with(&sim, file, &mut block, arrays)
        };
        let block = GemVaTimeline {
            handle,
            operation,
            flags,
            va_address,
            offset_in_bo,
            map_size,
            vm_timeline_point: 3,
            vm_timeline_syncobj_out: create.handle,
            ..Default::default()
        };
        let va = |block: GemVaTimeline| ask_with(&sim, file, &mut { block }, &mut [Array::Absent]);
        let none = SyncobjWaitFlags::empty();
        assert_eq!(wait(1, none), Err(Errno::EINVAL), "nobody submitted it");
        let delayed = GemVaTimeline { flags: flags | VmFlags::DELAY_UPDATE, ..block };
        assert_eq!(va(delayed), Err(Errno::EINVAL));
        assert_eq!(va(GemVaTimeline { vm_timeline_syncobj_out: 99, ..block }), Err(Errno::ENOENT));
        assert_eq!(va(block), Ok(0));
        assert_eq!((wait(1, none), wait(3, none)), (Ok(0), Ok(0)));
        assert_eq!(wait(4, SyncobjWaitFlags::WAIT_FOR_SUBMIT), Err(Errno::ETIME));
        assert_eq!(broken(&sim), []);
    }
}
