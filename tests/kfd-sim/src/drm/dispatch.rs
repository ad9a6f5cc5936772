//! The DRM dispatcher (drm_ioctl of drm_ioctl.c).

use alloc::format;
use alloc::vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{Call, MapDevice};
use hsakmt_core::uapi::Direction;

use super::{gem, gem_va, info, syncobj, version};
use crate::descriptor::FileId;
use crate::gpu_memory::{MemoryId, Place};
use crate::machine::State;
use crate::process::Pid;
use crate::topology::Gpu;
use crate::user_memory::{Arguments, Arrays};
use crate::violation::Rule;

/// A request on its way through the driver.
pub(super) struct Request<'s, 'r, 'a> {
    pub state: &'s mut State,
    pub pid: Pid,
    /// The open file that carries the request.
    pub file: FileId,
    pub gpu: &'s Gpu,
    pub arguments: Arguments,
    pub arrays: Arrays<'r, 'a>,
}

/// Numbers of `drm.h` and `amdgpu_drm.h` (from 0x40 on) with their size.
struct Known {
    number: u8,
    name: &'static str,
    direction: Direction,
    size: usize,
}

const fn known(number: u8, name: &'static str, direction: Direction, size: usize) -> Known {
    Known { number, name, direction, size }
}

use Direction::{ReadWrite, Write};

const REQUESTS: &[Known] = &[
    known(0x00, "VERSION", ReadWrite, 64),
    known(0x09, "GEM_CLOSE", Write, 8),
    known(0x0c, "GET_CAP", ReadWrite, 16),
    known(0x2d, "PRIME_HANDLE_TO_FD", ReadWrite, 12),
    known(0x2e, "PRIME_FD_TO_HANDLE", ReadWrite, 12),
    known(0x40, "AMDGPU_GEM_CREATE", ReadWrite, 32),
    known(0x41, "AMDGPU_GEM_MMAP", ReadWrite, 8),
    known(0x42, "AMDGPU_CTX", ReadWrite, 16),
    known(0x43, "AMDGPU_BO_LIST", ReadWrite, 24),
    known(0x44, "AMDGPU_CS", ReadWrite, 24),
    known(0x45, "AMDGPU_INFO", Write, 32),
    known(0x46, "AMDGPU_GEM_METADATA", ReadWrite, 288),
    known(0x47, "AMDGPU_GEM_WAIT_IDLE", ReadWrite, 16),
    known(0x48, "AMDGPU_GEM_VA", Write, 40),
    known(0x49, "AMDGPU_WAIT_CS", ReadWrite, 32),
    known(0x50, "AMDGPU_GEM_OP", ReadWrite, 16),
    known(0x51, "AMDGPU_GEM_USERPTR", ReadWrite, 24),
    known(0x52, "AMDGPU_WAIT_FENCES", ReadWrite, 24),
    known(0x53, "AMDGPU_VM", ReadWrite, 8),
    known(0xbf, "SYNCOBJ_CREATE", ReadWrite, 8),
    known(0xc0, "SYNCOBJ_DESTROY", ReadWrite, 8),
    known(0xc1, "SYNCOBJ_HANDLE_TO_FD", ReadWrite, 16),
    known(0xc2, "SYNCOBJ_FD_TO_HANDLE", ReadWrite, 16),
    known(0xc3, "SYNCOBJ_WAIT", ReadWrite, 40),
    known(0xca, "SYNCOBJ_TIMELINE_WAIT", ReadWrite, 48),
];

/// Authentication, buffer names, client capabilities, and all of mode setting
/// (drm_ioctl.c: requests without DRM_RENDER_ALLOW).
fn is_for_primary_node(number: u8) -> bool {
    matches!(
        number,
        0x01 | 0x02 | 0x05 | 0x07 | 0x0a | 0x0b | 0x0d | 0x11 | 0x1e | 0x1f | 0xa0..=0xbe
    )
}

impl Known {
    /// Whether a header has the request with a block of this size.
    fn has_size(&self, size: usize) -> bool {
        let other = match self.name {
            // Before the deadline and the syncobjs were added.
            "SYNCOBJ_WAIT" => 32,
            "SYNCOBJ_TIMELINE_WAIT" => 40,
            "AMDGPU_GEM_VA" => 64,
            _ => self.size,
        };
        size == self.size || size == other
    }
}

/// Executes a request on a render node.
///
/// A number without a request is EINVAL, one that only the primary node serves
/// EACCES. The block is filled up with zeros to the
/// driver's size, copied as far as both the caller's and the driver's direction
/// say, and comes back also on failure.
pub(crate) fn ioctl(
    state: &mut State,
    pid: Pid,
    file: FileId,
    minor: u32,
    call: &mut Call<'_, '_>,
) -> Result<u32, Errno> {
    let number = call.request.number();
    // The device behind an open file may be gone.
    let gpu = state.topology.gpu_of_render(minor).cloned().ok_or(Errno::ENODEV)?;
    let Some(known) = REQUESTS.iter().find(|known| known.number == number) else {
        let errno = if is_for_primary_node(number) { Errno::EACCES } else { Errno::EINVAL };
        return Err(errno);
    };
    let sent = call.request.size();
    if call.request.letter() != b'd' || !known.has_size(sent) {
        let detail = format!("{} sent as {:?}", known.name, call.request);
        state.violation(pid, Rule::RequestForm, detail);
    }
    // The top two bits of a request are the caller's direction: 1 in, 2 out.
    let direction = call.request.0 >> 30;
    let copied_in = direction & 1 != 0;
    let copied_out = direction & 2 != 0 && known.direction == ReadWrite;
    let mut bytes = vec![0; sent.max(known.size)];
    if copied_in {
        let from = call.block.get(..sent).ok_or(Errno::EFAULT)?;
        bytes[..sent].copy_from_slice(from);
    }
    let (block, arrays) = Arrays::split(call);
    let arguments = Arguments(bytes);
    let mut request = Request { state, pid, file, gpu: &gpu, arguments, arrays };
    let mut result = match known.number {
        0x00 => version::get(&mut request),
        0x09 => gem::close(&mut request),
        0x0c => version::get_cap(&mut request),
        0x2d => gem::to_descriptor(&mut request),
        0x2e => gem::from_descriptor(&mut request),
        0x40 => gem::create(&mut request),
        0x41 => gem::offset(&mut request),
        0x45 => info::get(&mut request),
        0x46 => gem::metadata(&mut request),
        0x48 => gem_va::change(&mut request, sent),
        0x50 => gem::operate(&mut request),
        0xbf => syncobj::create(&mut request),
        0xc0 => syncobj::destroy(&mut request),
        0xca => syncobj::wait_for_points(&mut request),
        _ => Err(NOT_SIMULATED),
    };
    if copied_out {
        match (block.get_mut(..sent), request.arguments.0.get(..sent)) {
            (Some(to), Some(from)) => to.copy_from_slice(from),
            _ => result = Err(Errno::EFAULT),
        }
    }
    let Request { state, arguments, arrays, .. } = request;
    for detail in arrays.beyond {
        state.violation(pid, Rule::ShortArray, format!("{}: {detail}", known.name));
    }
    if result == Err(NOT_SIMULATED) {
        let mut detail = format!("{} ({:#04x})", known.name, known.number);
        if known.number == 0x45 {
            detail.push_str(&format!(", query {:#x}", info::query(&arguments)));
        }
        state.violation(pid, Rule::NotSimulated, detail);
    }
    result
}

/// What requests answer that the simulator does not model yet.
pub(super) const NOT_SIMULATED: Errno = Errno::ENOTTY;

/// kernel-rules section 4, "mmap of a KFD buffer": the offset must be a buffer's
/// start and the length fit, EINVAL; the file must be the one bound for the
/// buffer's GPU, EACCES; memory of the process is EPERM.
pub(crate) fn mmap(
    state: &mut State,
    pid: Pid,
    file: FileId,
    minor: u32,
    mapping: MapDevice,
) -> Result<MemoryId, Errno> {
    state.topology.gpu_of_render(minor).ok_or(Errno::ENODEV)?;
    let (id, memory) = state.memory.at_offset(minor, mapping.offset).ok_or(Errno::EINVAL)?;
    if mapping.length as u64 > memory.size {
        return Err(Errno::EINVAL);
    }
    if !memory.allows(file) {
        return Err(Errno::EACCES);
    }
    match memory.place {
        Place::User => Err(Errno::EPERM),
        Place::Vram | Place::CarveOut | Place::Gtt | Place::File => Ok(id),
        Place::Registers => {
            let detail = "mmap of doorbells or registers of a render node".into();
            state.violation(pid, Rule::NotSimulated, detail);
            Err(Errno::EINVAL)
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{DeviceNode, Driver, MapDevice, Os, Placement, Protection};
    use hsakmt_core::uapi::{Direction, Request};

    use hsakmt_core::uapi::kfd::AllocMemoryFlags as Flags;

    use crate::fixture::{alloc, ask, bind, boot, broken, free, map_memory, raw, render, wanted};
    use crate::machine::Change;
    use crate::violation::Rule;

    #[test]
    fn open_errors_come_in_order() {
        let sim = boot("rx7900");
        let node = DeviceNode::Render(128);
        let open = |node| sim.open(node).map(|_| ());
        assert_eq!(open(node), Ok(()));
        assert_eq!(open(DeviceNode::Render(129)), Err(Errno::ENOENT));
        sim.process().hide(node, true);
        assert_eq!(open(node), Err(Errno::EPERM));
        sim.machine().set_open_error(node, Some(Errno::EACCES));
        assert_eq!(open(node), Err(Errno::EACCES));
        sim.process().set_descriptor_limit(3);
        assert_eq!(open(node), Err(Errno::EMFILE));
    }

    #[test]
    fn an_unknown_number_is_einval_and_one_of_the_primary_node_eacces() {
        let sim = boot("rx7900");
        let file = render(&sim, 0);
        for (number, errno) in [
            (0x3f, Errno::EINVAL),
            (0x4a, Errno::EINVAL),
            (0xff, Errno::EINVAL),
            (0x02, Errno::EACCES),
            (0xa7, Errno::EACCES),
        ] {
            let request = Request::new(Direction::ReadWrite, b'd', number, 8);
            assert_eq!(raw(&sim, &file, request, &mut [0; 8]), Err(errno), "{number:#x}");
        }
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn what_is_not_simulated_is_loud() {
        let sim = boot("rx7900");
        let request = Request::new(Direction::ReadWrite, b'd', 0x42, 16);
        assert_eq!(raw(&sim, &render(&sim, 0), request, &mut [0; 16]), Err(Errno::ENOTTY));
        assert_eq!(broken(&sim), [Rule::NotSimulated]);
    }

    #[test]
    fn both_directions_must_say_that_a_block_comes_back() {
        let sim = boot("rx7900");
        let file = render(&sim, 0);
        let cap = |direction| {
            let mut block = [0; 16];
            block[0] = 0x05;
            let request = Request::new(direction, b'd', 0x0c, 16);
            assert_eq!(raw(&sim, &file, request, &mut block), Ok(0));
            block[8]
        };
        assert_eq!((cap(Direction::ReadWrite), cap(Direction::Write)), (3, 0));
    }

    #[test]
    fn a_request_in_a_form_of_no_header_is_noted() {
        let sim = boot("rx7900");
        let request = Request::new(Direction::ReadWrite, b'd', 0x0c, 24);
        let mut block = vec![0; 24];
        block[0] = 0x05;
        assert_eq!(raw(&sim, &render(&sim, 0), request, &mut block), Ok(0));
        assert_eq!(block[8], 3);
        assert_eq!(broken(&sim), [Rule::RequestForm]);
    }

    #[test]
    fn a_file_of_a_device_that_is_gone_is_enodev() {
        let sim = boot("rx7900");
        let file = render(&sim, 0);
        sim.machine().change(Change::RemoveNode(1));
        let request = Request::new(Direction::ReadWrite, b'd', 0x00, 64);
        assert_eq!(raw(&sim, &file, request, &mut [0; 64]), Err(Errno::ENODEV));
    }

    fn mapping(offset: u64, length: usize) -> MapDevice {
        let protection = Protection::READ | Protection::WRITE;
        MapDevice { placement: Placement::Anywhere, length, protection, offset }
    }

    #[test]
    fn a_buffer_is_mapped_from_its_start_and_no_further() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        for (flags, length) in [
            (Flags::VRAM, 0x4000),
            (Flags::GTT, 0x4000),
            (Flags::GTT | Flags::AQL_QUEUE_MEM, 0x2000),
        ] {
            let (_, offset) = alloc(&sim, &bound.kfd, 0, flags, 0, 0x4000).unwrap();
            let map = |offset, length| {
                Driver::map(&sim, &bound.files[0], mapping(offset, length)).map(|_| ())
            };
            assert_eq!(map(offset, length), Ok(()));
            assert_eq!(map(offset, 0x1000), Ok(()));
            assert_eq!(map(offset, length + 0x1000), Err(Errno::EINVAL));
            assert_eq!(map(offset + 0x1000, 0x1000), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn only_the_bound_file_of_the_owner_maps_a_buffer() {
        let sim = boot("mi210x8:gpus=2");
        let bound = bind(&sim);
        let (_, offset) = alloc(&sim, &bound.kfd, 0, Flags::GTT, 0, 4096).unwrap();
        let map = |file: &_| Driver::map(&sim, file, mapping(offset, 4096)).map(|_| ());
        assert_eq!(map(&render(&sim, 0)), Err(Errno::EACCES));
        assert_eq!(map(&bound.files[0]), Ok(()));
        // Another device has other offsets.
        assert_eq!(map(&bound.files[1]), Err(Errno::EINVAL));
        let copy = sim.process().duplicate(sim.token(&bound.files[0]).0).unwrap();
        assert_eq!(map(&sim.adopt(hsakmt_core::seam::DeviceToken(copy))), Ok(()));
    }

    #[test]
    fn memory_of_the_process_is_not_mapped_again() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let mut block = wanted(&sim, 0, Flags::USERPTR, 0, 4096);
        map_memory(&sim, 0x1_0000, 4096);
        block.mmap_offset = 0x1_0000;
        assert_eq!(ask(&sim, &bound.kfd, &mut block), Ok(0));
        let result = Driver::map(&sim, &bound.files[0], mapping(block.mmap_offset, 4096));
        assert_eq!(result, Err(Errno::EPERM));
        let (_, offset) = alloc(&sim, &bound.kfd, 0, Flags::DOORBELL, 0, 8192).unwrap();
        assert!(Driver::map(&sim, &bound.files[0], mapping(offset, 8192)).is_err());
        assert_eq!(broken(&sim), [Rule::NotSimulated]);
    }

    #[test]
    fn a_mapping_keeps_the_memory_and_not_the_handle() {
        let sim = boot("rx7900:vram=1G");
        let bound = bind(&sim);
        let most = 1016 << 20;
        let take = || alloc(&sim, &bound.kfd, 0, Flags::VRAM, 0, most);
        let (handle, offset) = take().unwrap();
        let address = Driver::map(&sim, &bound.files[0], mapping(offset, 0x2000)).unwrap();
        assert_eq!(free(&sim, &bound.kfd, handle), Ok(0));
        assert_eq!(sim.machine().leftovers().orphaned_bytes, most);
        assert_eq!(take(), Err(Errno::ENOMEM));
        // Nobody may map it any more.
        let again = Driver::map(&sim, &bound.files[0], mapping(offset, 0x1000));
        assert_eq!(again, Err(Errno::EACCES));
        // A forked child has it too.
        let child = sim.fork();
        Os::unmap(&sim, address, 0x2000).unwrap();
        assert_eq!(take(), Err(Errno::ENOMEM));
        child.process().exit();
        assert_eq!(sim.machine().leftovers().orphaned_bytes, 0);
        let again = Driver::map(&sim, &bound.files[0], mapping(offset, 0x1000));
        assert_eq!(again, Err(Errno::EINVAL));
        assert_eq!(take().map(|(again, _)| again), Ok(handle));
    }

    #[test]
    fn an_offset_without_a_buffer_is_einval() {
        let sim = boot("rx7900");
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length: 4096,
            protection: Protection::READ,
            offset: 1 << 32,
        };
        assert_eq!(Driver::map(&sim, &render(&sim, 0), mapping), Err(Errno::EINVAL));
    }
}
