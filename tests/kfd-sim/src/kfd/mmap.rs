//! mmap of `/dev/kfd`: kernel-rules section 3.

use alloc::format;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::MapDevice;

use super::{ObjectId, check_owner, events, queues};
use crate::gpu_memory::MemoryId;
use crate::machine::State;
use crate::process::Pid;
use crate::violation::Rule;

/// Bits 63 and 62 of the offset; 3 is doorbells.
const MMIO: u64 = 0;
const RESERVED: u64 = 1;
const EVENTS: u64 = 2;
/// The trap page's two pages.
const RESERVED_LENGTH: u64 = 8192;

/// Whether the mapping may be made, and the memory that it shows, as far as that has
/// contents; notes what it allocates.
pub(crate) fn mmap(
    state: &mut State,
    pid: Pid,
    object: ObjectId,
    mapping: MapDevice,
    page_size: usize,
) -> Result<Option<MemoryId>, Errno> {
    let object = if state.kernel.maps_by_file() {
        check_owner(state, pid, object, "mmap")?;
        object
    } else {
        // 6.x asks for the caller's own object, whatever the file carries.
        let space = state.processes.get(&pid).ok_or(Errno::ESRCH)?.space;
        let primary = state.spaces.get(&space).and_then(|space| space.primary);
        primary.ok_or(Errno::EINVAL)?
    };
    let gpu_id = (mapping.offset >> 46) as u32 & 0xffff;
    let length = mapping.length as u64;
    let kind = mapping.offset >> 62;
    if kind == EVENTS {
        return events::map(state, pid, object, length, page_size).map(|()| None);
    }
    let gpu = state.topology.gpu(gpu_id).cloned().ok_or(Errno::ENODEV)?;
    if kind == RESERVED {
        let detail = format!("{length} bytes for GPU {gpu_id:#x}");
        state.violation(pid, Rule::ReservedMemoryMapped, detail);
        let mapped = state.kernel.maps_reserved_memory() && length == RESERVED_LENGTH;
        return if mapped { Ok(None) } else { Err(Errno::EINVAL) };
    }
    match kind {
        MMIO if length == 4096 && page_size <= 4096 => Ok(None),
        MMIO => Err(Errno::EINVAL),
        // Doorbells need no VM and no queue; the slice is allocated here.
        _ if length == gpu.doorbell_slice() => {
            queues::doorbell_slice(state, object, &gpu).map(Some)
        }
        _ => Err(Errno::EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{DeviceNode, Driver, MapDevice, Os, Placement, Protection};

    use super::{EVENTS, MMIO, RESERVED};
    use crate::SimDevice;
    use crate::fixture::{Sim, boot, broken, gpu_id, kfd};
    use crate::violation::Rule;

    const DOORBELL: u64 = 3;

    fn map(
        sim: &Sim,
        device: &SimDevice,
        kind: u64,
        gpu_id: u32,
        length: usize,
    ) -> Result<(), Errno> {
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length,
            protection: Protection::READ | Protection::WRITE,
            offset: kind << 62 | u64::from(gpu_id) << 46,
        };
        Driver::map(sim, device, mapping).map(|_| ())
    }

    #[test]
    fn each_kind_has_its_length() {
        for kernel in ["6.12", "7.2"] {
            let sim = boot(&format!("rx7900:kernel={kernel}"));
            let (device, id) = (kfd(&sim), gpu_id(&sim, 0));
            assert_eq!(map(&sim, &device, DOORBELL, id, 8192), Ok(()));
            assert_eq!(map(&sim, &device, DOORBELL, id, 8192), Ok(()), "any number of times");
            assert_eq!(map(&sim, &device, DOORBELL, id, 4096), Err(Errno::EINVAL));
            assert_eq!(map(&sim, &device, DOORBELL, id, 12288), Err(Errno::EINVAL));
            assert_eq!(map(&sim, &device, MMIO, id, 4096), Ok(()));
            assert_eq!(map(&sim, &device, MMIO, id, 8192), Err(Errno::EINVAL));
            // No event was created.
            assert_eq!(map(&sim, &device, EVENTS, 0, 4096), Err(Errno::EINVAL));
            assert_eq!(broken(&sim), []);
        }
    }

    #[test]
    fn reserved_memory_is_refused_since_7_2_and_never_to_be_asked() {
        for (kernel, length, expected) in [
            ("6.12", 8192, Ok(())),
            ("6.12", 4096, Err(Errno::EINVAL)),
            ("7.2", 8192, Err(Errno::EINVAL)),
        ] {
            let sim = boot(&format!("rx7900:kernel={kernel}"));
            let result = map(&sim, &kfd(&sim), RESERVED, gpu_id(&sim, 0), length);
            assert_eq!(result, expected, "{kernel}, {length}");
            assert_eq!(broken(&sim), [Rule::ReservedMemoryMapped]);
        }
    }

    #[test]
    fn an_unknown_gpu_is_enodev() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        for kind in [DOORBELL, MMIO, RESERVED] {
            assert_eq!(map(&sim, &device, kind, 0, 8192), Err(Errno::ENODEV));
        }
    }

    #[test]
    fn a_gpu_without_a_record_has_no_doorbells() {
        let sim = boot("mi210x8:gpus=2");
        sim.process().hide(DeviceNode::Render(128), true);
        let result = map(&sim, &kfd(&sim), DOORBELL, gpu_id(&sim, 0), 8192);
        assert_eq!(result, Err(Errno::EINVAL));
    }

    #[test]
    fn the_offset_is_in_pages() {
        let sim = boot("rx7900");
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length: 8192,
            protection: Protection::WRITE,
            offset: DOORBELL << 62 | u64::from(gpu_id(&sim, 0)) << 46 | 8,
        };
        assert_eq!(Driver::map(&sim, &kfd(&sim), mapping), Err(Errno::EINVAL));
    }

    #[test]
    fn a_forked_child_is_einval_and_since_7_2_ebadf() {
        for (kernel, errno) in
            [("6.1", Errno::EINVAL), ("6.12", Errno::EINVAL), ("7.2", Errno::EBADF)]
        {
            let sim = boot(&format!("rx7900:kernel={kernel}"));
            let (device, id) = (kfd(&sim), gpu_id(&sim, 0));
            sim.enter_fork_child();
            assert_eq!(map(&sim, &device, DOORBELL, id, 8192), Err(errno));
            sim.leave_child();
            broken(&sim);
        }
    }

    #[test]
    fn mappings_are_absent_after_fork_and_gone_after_unmap() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length: 8192,
            protection: Protection::WRITE,
            offset: DOORBELL << 62 | u64::from(gpu_id(&sim, 0)) << 46,
        };
        let address = Driver::map(&sim, &device, mapping).unwrap();
        let count = |sim: &Sim| {
            sim.machine().leftovers().processes[&sim.process().pid()].device_mappings.len()
        };
        assert_eq!(count(&sim), 1);
        assert_eq!(count(&sim.fork()), 0);
        Os::unmap(&sim, address, 8192).unwrap();
        assert_eq!(count(&sim), 0);
    }
}
