//! Files in memory, and the module that makes dma-bufs of them (mm/memfd.c,
//! drivers/dma-buf/udmabuf.c, linux/udmabuf.h).

use alloc::format;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{Call, MapDevice};

use crate::address_space::Shown;
use crate::descriptor::{File, FileId};
use crate::dma_buf;
use crate::gpu_memory::MemoryId;
use crate::machine::State;
use crate::process::Pid;
use crate::user_memory::Arguments;
use crate::violation::Rule;

/// _IOW('u', 0x42, 24 bytes).
const CREATE: u32 = 0x4018_7542;
/// UDMABUF_FLAGS_CLOEXEC; other flags are not looked at.
const CLOSE_ON_EXEC: u32 = 1;
/// Lengths are loff_t.
const LONGEST: u64 = i64::MAX as u64;

/// memfd_create(2), ftruncate(2) and the seals against shrinking and growing: EMFILE,
/// EINVAL. The pages come when they are used.
pub(crate) fn memory_file(
    state: &mut State,
    pid: Pid,
    size: u64,
    page_size: usize,
) -> Result<u32, Errno> {
    let process = state.processes.get(&pid).ok_or(Errno::ESRCH)?;
    process.descriptors.lowest_free()?;
    if size > LONGEST {
        return Err(Errno::EINVAL);
    }
    if size % page_size as u64 != 0 {
        state.violation(pid, Rule::NotSimulated, format!("a file of {size:#x} bytes"));
    }
    let (file, memory) = (FileId(state.number()), MemoryId(state.number()));
    state.memory.make_file(memory, size);
    state.files.insert(file, File::Memory { memory });
    let process = state.processes.get_mut(&pid).ok_or(Errno::ESRCH)?;
    process.descriptors.insert(file, true)
}

/// mmap of a file in memory. What lies beyond its end would be SIGBUS.
pub(crate) fn mmap(
    state: &mut State,
    pid: Pid,
    file: FileId,
    memory: MemoryId,
    mapping: MapDevice,
) -> Result<Shown, Errno> {
    let size = state.memory.get(memory).ok_or(Errno::EINVAL)?.size;
    let end = mapping.offset.checked_add(mapping.length as u64).ok_or(Errno::EOVERFLOW)?;
    if end > size {
        let detail = format!("{end:#x} bytes mapped of a file of {size:#x}");
        state.violation(pid, Rule::NotSimulated, detail);
        return Err(Errno::EINVAL);
    }
    Ok(Shown::File { file, memory })
}

/// memfd u32 at 0, flags u32 at 4, offset u64 at 8, size u64 at 16.
///
/// In this order: another request ENOTTY; misaligned, above the limit, or empty EINVAL; no
/// file in memory EBADFD; beyond its end EINVAL; descriptors EMFILE.
pub(crate) fn ioctl(state: &mut State, pid: Pid, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
    if call.request.0 != CREATE {
        return Err(Errno::ENOTTY);
    }
    let arguments = Arguments(call.block.to_vec());
    let (number, flags) = (arguments.u32(0), arguments.u32(4));
    let (offset, size) = (arguments.u64(8), arguments.u64(16));
    let limit = state.kernel.udmabuf.ok_or(Errno::ENODEV)?;
    if offset % 4096 != 0 || size % 4096 != 0 || size > limit || size == 0 {
        return Err(Errno::EINVAL);
    }
    let memory = match state.file(pid, number) {
        Some((_, File::Memory { memory })) => memory,
        _ => return Err(Errno::EBADFD),
    };
    let whole = state.memory.get(memory).ok_or(Errno::EBADFD)?;
    let (length, has_dma_buf) = (whole.size, whole.dma_buf.is_some());
    if offset.checked_add(size).is_none_or(|end| end > length) {
        return Err(Errno::EINVAL);
    }
    if size != length || has_dma_buf {
        let detail = "a dma-buf of a part of a file, or another one of it".into();
        state.violation(pid, Rule::NotSimulated, detail);
        return Err(Errno::EINVAL);
    }
    let file = dma_buf::of_memory(state, memory, true)?;
    let process = state.processes.get_mut(&pid).ok_or(Errno::ESRCH)?;
    let made = process.descriptors.insert(file, flags & CLOSE_ON_EXEC != 0);
    if made.is_err() {
        dma_buf::end_if_unused(state, file);
    }
    made
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{DeviceNode, DeviceToken, Driver, MapDevice, Placement, Protection};
    use hsakmt_core::uapi::udmabuf::{UdmabufCreate, UdmabufFlags};

    use crate::SimDevice;
    use crate::fixture::{Sim, ask, bind, boot, broken, free, gpu_id, import, map, unmap};
    use crate::violation::Rule;

    const VA: u64 = 0x10_0000;

    fn create(
        sim: &Sim,
        device: &SimDevice,
        memfd: u32,
        offset: u64,
        size: u64,
    ) -> Result<u32, Errno> {
        let flags = UdmabufFlags::CLOEXEC;
        ask(sim, device, &mut UdmabufCreate { memfd, flags, offset, size })
    }

    #[test]
    fn the_device_is_there_where_the_module_is_loaded() {
        let sim = boot("apu");
        assert_eq!(sim.open(DeviceNode::Udmabuf).err(), Some(Errno::ENOENT));
        let sim = boot("apu:udmabuf=64M");
        assert!(sim.open(DeviceNode::Udmabuf).is_ok());
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn create_errors_come_in_order() {
        let sim = boot("apu:udmabuf=1M");
        let device = sim.open(DeviceNode::Udmabuf).unwrap();
        let file = sim.memory_file(0x4000).unwrap();
        let foreign = sim.process().open_foreign().unwrap();
        let memfd = sim.token(&file).0;
        for (number, offset, size, expected) in [
            (99, 1, 0x1000, Errno::EINVAL),
            (99, 0, 0x1001, Errno::EINVAL),
            (99, 0, 0, Errno::EINVAL),
            (99, 0, 0x10_1000, Errno::EINVAL),
            (99, 0, 0x1000, Errno::EBADFD),
            (foreign, 0, 0x1000, Errno::EBADFD),
            (memfd, 0, 0x5000, Errno::EINVAL),
            (memfd, 0x4000, 0x1000, Errno::EINVAL),
        ] {
            assert_eq!(create(&sim, &device, number, offset, size), Err(expected), "{size:#x}");
        }
        sim.process().set_descriptor_limit(6);
        assert_eq!(create(&sim, &device, memfd, 0, 0x4000), Err(Errno::EMFILE));
        assert_eq!(sim.memory_file(0x1000).err(), Some(Errno::EMFILE));
        sim.process().set_descriptor_limit(7);
        assert_eq!(create(&sim, &device, memfd, 0, 0x4000), Ok(6));
        assert!(sim.process().descriptor(6).unwrap().close_on_exec);
        assert_eq!(broken(&sim), []);
        assert_eq!(create(&sim, &device, memfd, 0, 0x4000), Err(Errno::EINVAL));
        assert_eq!(broken(&sim), [Rule::NotSimulated]);
    }

    /// Buffer, dma-buf, file and mapping: the pages last as long as one of them does.
    #[test]
    fn a_gpu_takes_the_pages_of_a_file_in_since_6_12() {
        for (kernel, expected) in [("6.1", Err(Errno::EINVAL)), ("6.12", Ok(())), ("7.2", Ok(()))] {
            let sim = boot(&alloc::format!("apu:kernel={kernel},udmabuf=64M"));
            let bound = bind(&sim);
            let files = sim.machine().leftovers().files;
            let device = sim.open(DeviceNode::Udmabuf).unwrap();
            let file = sim.memory_file(0x4000).unwrap();
            let made = create(&sim, &device, sim.token(&file).0, 0, 0x4000).unwrap();
            let dma_buf = sim.adopt(DeviceToken(made));
            let imported = import(&sim, &bound.kfd, 0, VA, made);
            assert_eq!(imported.map(drop), expected, "{kernel}");
            let mapping = MapDevice {
                placement: Placement::Anywhere,
                length: 0x4000,
                protection: Protection::READ | Protection::WRITE,
                offset: 0,
            };
            let address = Driver::map(&sim, &file, mapping).unwrap();
            drop((file, dma_buf, device));
            if let Ok(handle) = imported {
                let id = gpu_id(&sim, 0);
                map(&sim, &bound.kfd, handle, &[id]).unwrap();
                assert_eq!(sim.process().gpu_access(id, VA + 0x3000, true), Ok(()));
                unmap(&sim, &bound.kfd, handle, &[id]).unwrap();
                free(&sim, &bound.kfd, handle).unwrap();
            }
            hsakmt_core::seam::Os::unmap(&sim, address, 0x4000).unwrap();
            assert_eq!(sim.machine().leftovers().files, files, "{kernel}");
            assert_eq!(broken(&sim), []);
        }
    }
}
