//! mmap of `/dev/kfd`: kernel-rules section 3.

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::MapDevice;

use super::{ObjectId, check_owner};
use crate::machine::State;
use crate::process::Pid;

/// Bits 63 and 62 of the offset; 3 is doorbells.
const MMIO: u64 = 0;
const RESERVED: u64 = 1;
const EVENTS: u64 = 2;

/// Whether the mapping may be made; notes what it allocates.
pub(crate) fn mmap(
    state: &mut State,
    pid: Pid,
    object: ObjectId,
    mapping: MapDevice,
    page_size: usize,
) -> Result<(), Errno> {
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
        // No event can exist yet.
        return Err(Errno::EINVAL);
    }
    let slice = state.topology.gpu(gpu_id).ok_or(Errno::ENODEV)?.doorbell_slice();
    match kind {
        MMIO if length == 4096 && page_size <= 4096 => Ok(()),
        MMIO | RESERVED => Err(Errno::EINVAL),
        // Doorbells need no VM and no queue; the slice is allocated here.
        _ if length == slice => {
            let object = state.objects.get_mut(&object).ok_or(Errno::EBADF)?;
            object.record_mut(gpu_id).ok_or(Errno::EINVAL)?.doorbells = true;
            Ok(())
        }
        _ => Err(Errno::EINVAL),
    }
}
