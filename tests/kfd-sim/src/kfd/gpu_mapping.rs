//! MAP_MEMORY_TO_GPU and UNMAP_MEMORY_FROM_GPU: kernel-rules section 2
//! (kfd_chardev.c, amdgpu_amdkfd_gpuvm.c).

use alloc::format;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;

use super::buffers::{Buffer, split};
use super::dispatch::Request;
use super::invalidation;
use crate::defect::Defect;
use crate::descriptor::FileId;
use crate::gpu_memory::Place;
use crate::gpu_vm::Shows;
use crate::topology::Gpu;
use crate::violation::Rule;

/// The driver copies the array in one piece, which slab allocation limits.
const LONGEST_ARRAY: usize = 4 << 20;

/// What both requests hold: handle at 0, the array's address at 8, n_devices u32
/// at 16, n_success u32 at 20.
struct Devices {
    gpu_id: u32,
    index: u32,
    ids: Vec<u32>,
    first: u32,
}

/// Steps 1 to 4, and 5 for MAP alone.
fn devices(request: &mut Request<'_, '_, '_>, needs_vm: bool) -> Result<Devices, Errno> {
    let (gpu_id, index) = split(request.arguments.u64(0));
    let (count, first) = (request.arguments.u32(16), request.arguments.u32(20));
    if count == 0 || first > count {
        return Err(Errno::EINVAL);
    }
    let length = count as usize * 4;
    if length > LONGEST_ARRAY {
        return Err(Errno::ENOMEM);
    }
    let bytes = request.arrays.read(8, length)?;
    let ids = bytes.chunks_exact(4).map(|id| id.try_into().map_or(0, u32::from_ne_bytes)).collect();
    let record = request.object()?.gpu(gpu_id)?;
    if needs_vm && record.file.is_none() {
        return Err(Errno::ENODEV);
    }
    // An unknown index is ENOMEM here, and EINVAL elsewhere.
    if !record.buffers.contains_key(&index) {
        return Err(Errno::ENOMEM);
    }
    Ok(Devices { gpu_id, index, ids, first })
}

/// Does a step for each device from n_success on, which grows with each.
fn for_each(
    request: &mut Request<'_, '_, '_>,
    devices: &Devices,
    step: fn(&mut Request<'_, '_, '_>, &Devices, u32) -> Result<(), Errno>,
) -> Result<u32, Errno> {
    for (n, &id) in (0..).zip(&devices.ids).skip(devices.first as usize) {
        step(request, devices, id)?;
        request.arguments.put_u32(20, n + 1);
    }
    Ok(0)
}

fn buffer<'s>(
    request: &'s mut Request<'_, '_, '_>,
    devices: &Devices,
) -> Result<&'s mut Buffer, Errno> {
    let record = request.object_mut()?.record_mut(devices.gpu_id).ok_or(Errno::EINVAL)?;
    record.buffers.get_mut(&devices.index).ok_or(Errno::ENOMEM)
}

fn handle(devices: &Devices) -> u64 {
    u64::from(devices.gpu_id) << 32 | u64::from(devices.index)
}

/// See [`Devices`].
pub(super) fn map(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let devices = devices(request, true)?;
    for_each(request, &devices, map_on)
}

fn map_on(request: &mut Request<'_, '_, '_>, devices: &Devices, gpu_id: u32) -> Result<(), Errno> {
    let file = request.object()?.gpu(gpu_id)?.file.ok_or(Errno::ENODEV)?;
    let wanted = buffer(request, devices)?.clone();
    if wanted.mapped.contains(&gpu_id) {
        return Ok(());
    }
    check_attach(request, &wanted, devices.gpu_id, gpu_id)?;
    if request.state.gpu_has(gpu_id, Defect::MapPartial) {
        return Err(Errno::ENOMEM);
    }
    let shows = Shows::Buffer { object: request.id, handle: handle(devices) };
    let vm = request.state.vms.get_mut(&file).ok_or(Errno::ENODEV)?;
    let mut done = Vec::new();
    for address in wanted.addresses() {
        match address
            .ok_or(Errno::EINVAL)
            .and_then(|at| vm.map(at, wanted.size, shows).map(|()| at))
        {
            Ok(address) => done.push(address),
            Err(errno) => {
                done.into_iter().for_each(|address| vm.unmap(address));
                return Err(errno);
            }
        }
    }
    buffer(request, devices)?.mapped.insert(gpu_id);
    // Memory that is not there is no error.
    invalidation::fetch(request.state, request.id, handle(devices));
    Ok(())
}

/// kernel-rules section 2, "Attach".
fn check_attach(
    request: &Request<'_, '_, '_>,
    buffer: &Buffer,
    owner: u32,
    gpu_id: u32,
) -> Result<(), Errno> {
    if buffer.address == 0 {
        return Err(Errno::EINVAL);
    }
    let topology = &request.state.topology;
    let (Some(owner), Some(gpu)) = (topology.gpu(owner), topology.gpu(gpu_id)) else {
        return Err(Errno::ENODEV);
    };
    let on_device = matches!(buffer.place, Place::Vram | Place::CarveOut | Place::Registers);
    if owner.is_same_device(gpu) || gpu.apu || !on_device {
        return Ok(());
    }
    let broken = |gpu: &Gpu| request.state.gpu_has(gpu.id, Defect::LinkMissing);
    if broken(owner) || broken(gpu) {
        return Err(Errno::EINVAL);
    }
    let hive = owner.properties.hive_id;
    let over_xgmi = buffer.place == Place::Vram && hive != 0 && hive == gpu.properties.hive_id;
    let over_pcie = request.state.kernel.p2p && owner.has_large_bar();
    if over_xgmi || over_pcie { Ok(()) } else { Err(Errno::EINVAL) }
}

/// See [`Devices`].
pub(super) fn unmap(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let devices = devices(request, false)?;
    for_each(request, &devices, unmap_on)
}

fn unmap_on(
    request: &mut Request<'_, '_, '_>,
    devices: &Devices,
    gpu_id: u32,
) -> Result<(), Errno> {
    let file = request.object()?.gpu(gpu_id)?.file;
    let Some(file) = file else {
        let detail = format!("UNMAP_MEMORY_FROM_GPU on GPU {gpu_id:#x}");
        request.state.violation(request.pid, Rule::GpuWithoutVm, detail);
        return Err(Errno::EINVAL);
    };
    let wanted = buffer(request, devices)?.clone();
    if !wanted.mapped.contains(&gpu_id) {
        return Err(Errno::EINVAL);
    }
    if request.state.kernel.keeps_memory_of_queues() && is_used(request, &wanted, file) {
        return Err(Errno::EBUSY);
    }
    if let Some(vm) = request.state.vms.get_mut(&file) {
        wanted.addresses().flatten().for_each(|address| vm.unmap(address));
    }
    buffer(request, devices)?.mapped.remove(&gpu_id);
    Ok(())
}

/// Whether a queue of this GPU uses the buffer.
fn is_used(request: &Request<'_, '_, '_>, buffer: &Buffer, file: FileId) -> bool {
    let Some(vm) = request.state.vms.get(&file) else { return false };
    buffer.addresses().flatten().filter_map(|at| vm.get(at)).any(|range| range.queues > 0)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::Array;
    use hsakmt_core::uapi::kfd::{AllocMemoryFlags as Flags, MapMemoryToGpu, UnmapMemoryFromGpu};

    use crate::fixture::{
        Bound, Sim, acquire, alloc, ask, ask_with, bind, boot, broken, free, gpu_id, kfd, map,
        map_from, render, unmap, unmap_from,
    };
    use crate::violation::Rule;

    const VA: u64 = 0x10_0000;

    fn gtt(sim: &Sim, bound: &Bound, address: u64, size: u64) -> u64 {
        alloc(sim, &bound.kfd, 0, Flags::GTT, address, size).unwrap().0
    }

    #[test]
    fn errors_come_in_order() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        let id = gpu_id(&sim, 0);
        let handle = u64::from(id) << 32;
        let both = |handle, n_devices, n_success, array: Option<&[u8]>| {
            let array = || array.map_or(Array::Absent, Array::In);
            let mut block = MapMemoryToGpu { handle, n_devices, n_success, ..Default::default() };
            let first = ask_with(&sim, &device, &mut block, &mut [array()]);
            let mut block =
                UnmapMemoryFromGpu { handle, n_devices, n_success, ..Default::default() };
            [first, ask_with(&sim, &device, &mut block, &mut [array()])]
        };
        let one = id.to_ne_bytes();
        assert_eq!(both(0, 0, 0, None), [Err(Errno::EINVAL); 2]);
        assert_eq!(both(0, 1, 2, None), [Err(Errno::EINVAL); 2]);
        assert_eq!(both(0, u32::MAX, 0, None), [Err(Errno::ENOMEM); 2]);
        assert_eq!(both(0, 1, 0, None), [Err(Errno::EFAULT); 2]);
        assert_eq!(both(0, 1, 0, Some(&one)), [Err(Errno::EINVAL); 2]);
        // The VM matters to MAP alone.
        assert_eq!(both(handle, 1, 0, Some(&one)), [Err(Errno::ENODEV), Err(Errno::ENOMEM)]);
        assert_eq!(acquire(&sim, &device, &render(&sim, 0), 0), Ok(0));
        assert_eq!(both(handle, 1, 0, Some(&one)), [Err(Errno::ENOMEM); 2]);
        assert_eq!(broken(&sim), []);
        assert_eq!(both(handle, 2, 0, Some(&one)), [Err(Errno::EFAULT); 2]);
        assert_eq!(broken(&sim), [Rule::ShortArray; 2]);
        assert_eq!(ask(&sim, &device, &mut MapMemoryToGpu::default()), Err(Errno::EINVAL));
    }

    #[test]
    fn the_count_of_success_comes_back_also_on_failure() {
        let sim = boot("mi210x8:gpus=3");
        let bound = bind(&sim);
        let [a, b, c] = [0, 1, 2].map(|gpu| gpu_id(&sim, gpu));
        let handle = gtt(&sim, &bound, VA, 4096);
        assert_eq!(map_from(&sim, &bound.kfd, handle, &[a, b, 1, c], 0), (Err(Errno::EINVAL), 2));
        // It goes on where it stopped.
        assert_eq!(map_from(&sim, &bound.kfd, handle, &[a, b, c], 2), (Ok(0), 3));
        assert_eq!(unmap_from(&sim, &bound.kfd, handle, &[a, 1], 0), (Err(Errno::EINVAL), 1));
        // From 0 on it would stop at the first that is done.
        assert_eq!(unmap_from(&sim, &bound.kfd, handle, &[a, b, c], 0), (Err(Errno::EINVAL), 0));
        assert_eq!(unmap_from(&sim, &bound.kfd, handle, &[a, b, c], 1), (Ok(0), 3));
        assert_eq!(map_from(&sim, &bound.kfd, handle, &[a], 1), (Ok(0), 1), "nothing to do");
    }

    #[test]
    fn mapping_twice_is_fine_and_unmapping_twice_is_not() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let id = gpu_id(&sim, 0);
        let handle = gtt(&sim, &bound, VA, 4096);
        assert_eq!(map(&sim, &bound.kfd, handle, &[id, id]), Ok(0));
        assert_eq!(map(&sim, &bound.kfd, handle, &[id]), Ok(0));
        assert_eq!(unmap_from(&sim, &bound.kfd, handle, &[id, id], 0), (Err(Errno::EINVAL), 1));
    }

    #[test]
    fn a_device_without_a_vm() {
        let sim = boot("mi210x8:gpus=2");
        let device = kfd(&sim);
        assert_eq!(acquire(&sim, &device, &render(&sim, 0), 0), Ok(0));
        let (handle, _) = alloc(&sim, &device, 0, Flags::GTT, VA, 4096).unwrap();
        let ids = [gpu_id(&sim, 0), gpu_id(&sim, 1)];
        assert_eq!(map_from(&sim, &device, handle, &ids, 0), (Err(Errno::ENODEV), 1));
        assert_eq!(broken(&sim), []);
        assert_eq!(unmap_from(&sim, &device, handle, &ids, 0), (Err(Errno::EINVAL), 1));
        assert_eq!(broken(&sim), [Rule::GpuWithoutVm]);
    }

    #[test]
    fn addresses_are_looked_at_when_they_are_mapped() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let id = gpu_id(&sim, 0);
        for address in [0, 0x10_0001, 1 << 48, u64::MAX - 0xfff, (1 << 48) - (4 << 20)] {
            let handle = gtt(&sim, &bound, address, 4096);
            let result = map_from(&sim, &bound.kfd, handle, &[id], 0);
            assert_eq!(result, (Err(Errno::EINVAL), 0), "{address:#x}");
            assert_eq!(free(&sim, &bound.kfd, handle), Ok(0));
        }
    }

    #[test]
    fn each_gpu_has_its_own_addresses() {
        let sim = boot("mi210x8:gpus=2");
        let bound = bind(&sim);
        let ids = [gpu_id(&sim, 0), gpu_id(&sim, 1)];
        let [first, second] = [0, 0x1000].map(|more| gtt(&sim, &bound, VA + more, 0x2000));
        assert_eq!(map(&sim, &bound.kfd, first, &ids[..1]), Ok(0));
        assert_eq!(map_from(&sim, &bound.kfd, second, &ids, 0), (Err(Errno::EINVAL), 0));
        assert_eq!(map(&sim, &bound.kfd, second, &ids[1..]), Ok(0));
        assert_eq!(unmap(&sim, &bound.kfd, first, &ids[..1]), Ok(0));
        assert_eq!(map(&sim, &bound.kfd, second, &ids), Ok(0));
    }

    #[test]
    fn contexts_have_their_own_addresses() {
        use hsakmt_core::uapi::kfd::CreateProcess;
        let sim = boot("rx7900:kernel=7.2");
        let devices = [kfd(&sim), kfd(&sim)];
        assert_eq!(ask(&sim, &devices[1], &mut CreateProcess::default()), Ok(0));
        for device in &devices {
            assert_eq!(acquire(&sim, device, &render(&sim, 0), 0), Ok(0));
            let (handle, _) = alloc(&sim, device, 0, Flags::GTT, VA, 4096).unwrap();
            assert_eq!(handle, u64::from(gpu_id(&sim, 0)) << 32);
            assert_eq!(map(&sim, device, handle, &[gpu_id(&sim, 0)]), Ok(0));
        }
    }

    #[test]
    fn queue_memory_is_mapped_twice_and_together() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let id = gpu_id(&sim, 0);
        let flags = Flags::GTT | Flags::AQL_QUEUE_MEM;
        let (ring, _) = alloc(&sim, &bound.kfd, 0, flags, VA, 0x4000).unwrap();
        let blocker = gtt(&sim, &bound, VA + 0x3000, 0x1000);
        assert_eq!(map(&sim, &bound.kfd, blocker, &[id]), Ok(0));
        assert_eq!(map(&sim, &bound.kfd, ring, &[id]), Err(Errno::EINVAL));
        // Nothing of it stayed.
        let first = gtt(&sim, &bound, VA, 0x2000);
        assert_eq!(map(&sim, &bound.kfd, first, &[id]), Ok(0));
        for handle in [first, blocker] {
            assert_eq!(unmap(&sim, &bound.kfd, handle, &[id]), Ok(0));
        }
        assert_eq!(map(&sim, &bound.kfd, ring, &[id]), Ok(0));
        assert_eq!(map(&sim, &bound.kfd, blocker, &[id]), Err(Errno::EINVAL));
        assert_eq!(unmap(&sim, &bound.kfd, ring, &[id]), Ok(0));
        assert_eq!(map(&sim, &bound.kfd, blocker, &[id]), Ok(0));
    }

    /// Whether the first GPU's memory can be mapped on the last one.
    fn reaches(profile: &str, flags: Flags, size: u64) -> bool {
        let sim = boot(profile);
        let bound = bind(&sim);
        let last = sim.machine().topology().gpus().last().unwrap().1.id;
        let (handle, _) = alloc(&sim, &bound.kfd, 0, flags, VA, size).unwrap();
        match map(&sim, &bound.kfd, handle, &[last]) {
            Ok(0) => true,
            other => {
                assert_eq!(other, Err(Errno::EINVAL), "{profile}");
                false
            }
        }
    }

    #[test]
    fn memory_on_a_gpu_is_reached_over_xgmi_or_as_peers() {
        for (profile, vram, registers) in [
            ("mi210x8:gpus=2", true, false),
            ("mi210x8:gpus=2,dkms=1", true, true),
            ("mi210x8:gpus=2,xgmi=0", false, false),
            ("mi210x8", false, false),
            ("rx7900:gpus=2", false, false),
            ("rx7900:gpus=2,p2p=1", true, true),
            ("rx7900:gpus=2,p2p=1,bar=256M", false, false),
            ("mi300x:gpus=1,cpx,xgmi=0", true, true),
        ] {
            assert_eq!(reaches(profile, Flags::VRAM, 4096), vram, "{profile}");
            assert_eq!(reaches(profile, Flags::DOORBELL, 8192), registers, "{profile}");
            assert_eq!(reaches(profile, Flags::MMIO_REMAP, 4096), registers, "{profile}");
            assert!(reaches(profile, Flags::GTT, 4096), "{profile}");
        }
    }
}
