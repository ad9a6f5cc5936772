//! Mappings of buffer objects, and the timelines that tell when they are made.

use super::{BufferHandle, GpuRights, ObjectMapping};
use crate::context::no_such_node;
use crate::errno::Errno;
use crate::error::{self, Error, Status};
use crate::memory::access::Access;
use crate::process::Render;
use crate::seam::{Array, Platform};
use crate::uapi::amdgpu::{GemVa, GemVaTimeline, VaOp, VmFlags};
use crate::uapi::drm::{SyncobjCreate, SyncobjDestroy, SyncobjTimelineWait, SyncobjWaitFlags};
use crate::uapi::gate::Feature;

use zerocopy::IntoBytes;

/// The changes of one GPU's mappings.
#[derive(Debug)]
pub(super) struct Timeline {
    /// The driver's number of it, 0 before the first change.
    syncobj: u32,
    /// The newest change.
    point: u64,
}

impl Timeline {
    pub(super) const NONE: Timeline = Timeline { syncobj: 0, point: 0 };
}

/// A change that was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    syncobj: u32,
    point: u64,
}

/// Waits have an absolute end; this is never.
const NEVER: i64 = i64::MAX;

/// Rights in the driver's words. Nothing is executable: the reference's family of
/// handles has no right for it.
fn vm_flags(rights: GpuRights) -> VmFlags {
    let mut flags = VmFlags::empty();
    if rights.read {
        flags |= VmFlags::PAGE_READABLE;
    }
    if rights.write {
        flags |= VmFlags::PAGE_WRITEABLE;
    }
    flags
}

impl<P: Platform> Access<'_, P> {
    /// Maps part of a buffer on a GPU, and waits until it is mapped.
    pub(crate) fn map_object(
        &self,
        handle: BufferHandle,
        mapping: &ObjectMapping,
        rights: GpuRights,
        node: u32,
    ) -> Result<(), Error> {
        self.change_mapping(handle, VaOp::MAP, vm_flags(rights), mapping, node)
    }

    /// Unmaps what was mapped at this address, and waits until it is gone.
    pub(crate) fn unmap_object(
        &self,
        handle: BufferHandle,
        mapping: &ObjectMapping,
        node: u32,
    ) -> Result<(), Error> {
        self.change_mapping(handle, VaOp::UNMAP, VmFlags::empty(), mapping, node)
    }

    fn change_mapping(
        &self,
        handle: BufferHandle,
        operation: VaOp,
        flags: VmFlags,
        mapping: &ObjectMapping,
        node: u32,
    ) -> Result<(), Error> {
        self.needs(Feature::ComputeGemVa)?;
        let minor = self.machine(|machine| machine.gpu(node).map(|gpu| gpu.drm_render_minor))?;
        self.with_object(handle, |object| {
            let render = self.render_at(object.key.place)?;
            if render.minor != minor {
                return Err(no_such_node(node));
            }
            let mut block = GemVaTimeline {
                handle: object.key.gem,
                operation,
                flags,
                va_address: mapping.address,
                offset_in_bo: mapping.offset,
                map_size: mapping.size,
                ..GemVaTimeline::default()
            };
            let sent = self.send_change(render, object.key.place, &mut block)?;
            let waited = self.wait_for_change(render, sent);
            let Err(error) = waited else { return Ok(()) };
            if operation == VaOp::MAP {
                self.take_mapping_back(render, &block);
                return Err(error);
            }
            // It is unmapped, and with what rights it was mapped nobody knows.
            self.wait_for_change(render, sent)
        })
    }

    /// Sends a change as the next point of a timeline.
    fn send_change(
        &self,
        render: &Render<P>,
        place: u8,
        block: &mut GemVaTimeline,
    ) -> Result<Sent, Error> {
        let lock = self.memory.gem.timelines.get(usize::from(place)).ok_or(Error::not_open())?;
        let mut timeline = lock.acquire(self.os());
        let node = error::Object::Device(crate::seam::DeviceNode::Render(render.minor));
        if timeline.syncobj == 0 {
            let mut create = SyncobjCreate::default();
            self.channel.execute_render(render, &mut create, &mut [], Status::ERROR, node)?;
            *timeline = Timeline { syncobj: create.handle, point: 0 };
        }
        let sent = Sent { syncobj: timeline.syncobj, point: timeline.point.wrapping_add(1) };
        block.vm_timeline_point = sent.point;
        block.vm_timeline_syncobj_out = sent.syncobj;
        let arrays = &mut [Array::Absent];
        let address = error::Object::Address(block.va_address);
        self.channel.execute_render(render, block, arrays, Status::ERROR, address)?;
        timeline.point = sent.point;
        Ok(sent)
    }

    /// Waits until a change is made. The point has its work when the change was sent, so
    /// the driver refuses to wait (EINVAL) only if it knows nothing of points.
    fn wait_for_change(&self, render: &Render<P>, sent: Sent) -> Result<(), Error> {
        let mut block = SyncobjTimelineWait {
            timeout_nsec: NEVER,
            count_handles: 1,
            flags: SyncobjWaitFlags::WAIT_ALL,
            ..SyncobjTimelineWait::default()
        };
        let (handles, points) = ([sent.syncobj], [sent.point]);
        let arrays = &mut [Array::In(handles.as_bytes()), Array::In(points.as_bytes())];
        let object = error::Object::Handle(u64::from(sent.syncobj));
        match self.channel.execute_render(render, &mut block, arrays, Status::ERROR, object) {
            Err(error) if error.errno != Some(Errno::EINVAL) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes back what was mapped and cannot be waited for.
    #[cold]
    fn take_mapping_back(&self, render: &Render<P>, mapped: &GemVaTimeline) {
        let mut block = GemVa {
            handle: mapped.handle,
            operation: VaOp::UNMAP,
            va_address: mapped.va_address,
            offset_in_bo: mapped.offset_in_bo,
            map_size: mapped.map_size,
            ..GemVa::default()
        };
        let address = error::Object::Address(mapped.va_address);
        let _ = self.channel.execute_render(render, &mut block, &mut [], Status::ERROR, address);
    }

    /// Gives the sync objects up.
    pub(super) fn end_timelines(&self) {
        for (place, lock) in (0..).zip(&self.memory.gem.timelines) {
            let ended = core::mem::replace(&mut *lock.acquire(self.os()), Timeline::NONE);
            let (Ok(render), true) = (self.render_at(place), ended.syncobj != 0) else { continue };
            let mut block = SyncobjDestroy { handle: ended.syncobj, ..SyncobjDestroy::default() };
            let object = error::Object::Handle(u64::from(ended.syncobj));
            let _ = self.channel.execute_render(render, &mut block, &mut [], Status::ERROR, object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_the_drivers() {
        let flags = |read, write| vm_flags(GpuRights { read, write }).bits();
        let all = [flags(false, false), flags(true, false), flags(false, true), flags(true, true)];
        assert_eq!(all, [0, 2, 4, 6]);
    }
}
