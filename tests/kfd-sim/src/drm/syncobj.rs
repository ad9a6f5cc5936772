//! Sync objects: kernel-rules section 4, "SYNCOBJ" (drm_syncobj.c).
//!
//! Work of the simulated driver is done when it is submitted, so a point is signaled or
//! has no work yet.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;

use super::dispatch::Request;
use crate::violation::Rule;

/// DRM_SYNCOBJ_CREATE_SIGNALED.
const SIGNALED: u32 = 1;
/// DRM_SYNCOBJ_WAIT_FLAGS_*.
const WAIT_ALL: u32 = 1 << 0;
const WAIT_FOR_SUBMIT: u32 = 1 << 1;
const WAIT_FLAGS: u32 = 0xf;

/// What of a sync object is signaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syncobj {
    /// No work was ever submitted.
    Empty,
    /// All up to this point; a binary one is at 0.
    Signaled(u64),
}

/// The sync objects of one file, from 1 on.
#[derive(Debug, Default)]
pub(crate) struct Syncobjs {
    objects: BTreeMap<u32, Syncobj>,
}

impl Syncobjs {
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }
}

fn objects<'s>(request: &'s mut Request<'_, '_, '_>) -> &'s mut BTreeMap<u32, Syncobj> {
    &mut request.state.syncobjs.entry(request.file).or_default().objects
}

pub(super) fn exists(request: &mut Request<'_, '_, '_>, handle: u32) -> Result<(), Errno> {
    if objects(request).contains_key(&handle) { Ok(()) } else { Err(Errno::ENOENT) }
}

/// The work behind a point is done.
pub(super) fn signal(
    request: &mut Request<'_, '_, '_>,
    handle: u32,
    point: u64,
) -> Result<(), Errno> {
    let object = objects(request).get_mut(&handle).ok_or(Errno::ENOENT)?;
    let before = *object;
    if let Syncobj::Signaled(reached) = before {
        if point != 0 && point <= reached {
            let detail = format!("point {point} of {handle} after {reached}");
            request.state.violation(request.pid, Rule::PointOutOfOrder, detail);
        }
    }
    let object = objects(request).get_mut(&handle).ok_or(Errno::ENOENT)?;
    *object = match before {
        Syncobj::Signaled(reached) => Syncobj::Signaled(reached.max(point)),
        Syncobj::Empty => Syncobj::Signaled(point),
    };
    Ok(())
}

/// out: handle u32 at 0; flags u32 at 4.
pub(super) fn create(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let flags = request.arguments.u32(4);
    if flags & !SIGNALED != 0 {
        return Err(Errno::EINVAL);
    }
    let object = if flags == 0 { Syncobj::Empty } else { Syncobj::Signaled(0) };
    let objects = objects(request);
    let handle = (1..).find(|handle| !objects.contains_key(handle)).ok_or(Errno::ENOSPC)?;
    objects.insert(handle, object);
    request.arguments.put_u32(0, handle);
    Ok(0)
}

/// handle u32 at 0, pad u32 at 4.
pub(super) fn destroy(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (handle, pad) = (request.arguments.u32(0), request.arguments.u32(4));
    if pad != 0 {
        return Err(Errno::EINVAL);
    }
    objects(request).remove(&handle).map(|_| 0).ok_or(Errno::EINVAL)
}

/// handles' address at 0, points' address at 8, timeout_nsec i64 at 16, count_handles
/// u32 at 24, flags u32 at 28, first_signaled u32 at 32.
///
/// In this order: flags EINVAL; no handles EINVAL; EFAULT; unknown object ENOENT; a
/// point without work EINVAL, or ETIME if that is to be waited for.
pub(super) fn wait_for_points(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (count, flags) = (request.arguments.u32(24) as usize, request.arguments.u32(28));
    if flags & !WAIT_FLAGS != 0 || count == 0 {
        return Err(Errno::EINVAL);
    }
    let words = request.arrays.read(0, count * 4)?;
    let points = request.arrays.read(8, count * 8)?;
    let handles = words.chunks_exact(4).map(|it| it.try_into().map_or(0, u32::from_ne_bytes));
    let points = points.chunks_exact(8).map(|it| it.try_into().map_or(0, u64::from_ne_bytes));
    let mut reached = Vec::new();
    for (handle, point) in handles.zip(points) {
        let object = *objects(request).get(&handle).ok_or(Errno::ENOENT)?;
        reached.push(matches!(object, Syncobj::Signaled(upto) if upto >= point));
    }
    if flags & WAIT_FOR_SUBMIT == 0 && reached.contains(&false) {
        return Err(Errno::EINVAL);
    }
    let first = reached.iter().position(|reached| *reached);
    let done = if flags & WAIT_ALL != 0 { !reached.contains(&false) } else { first.is_some() };
    if !done {
        return Err(Errno::ETIME);
    }
    request.arguments.put_u32(32, first.unwrap_or(0) as u32);
    Ok(0)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::uapi::drm::{SyncobjCreate, SyncobjCreateFlags, SyncobjDestroy};

    use crate::fixture::{ask, boot, broken, render};

    #[test]
    fn objects_are_a_files_own_from_1_on() {
        let sim = boot("rx7900");
        let (file, other) = (render(&sim, 0), render(&sim, 0));
        let create = |file: &_| {
            let mut block = SyncobjCreate::default();
            ask(&sim, file, &mut block).map(|_| block.handle)
        };
        assert_eq!([create(&file), create(&file), create(&other)], [Ok(1), Ok(2), Ok(1)]);
        let flags = SyncobjCreateFlags::from_bits_retain(2);
        let mut wrong = SyncobjCreate { flags, ..Default::default() };
        assert_eq!(ask(&sim, &file, &mut wrong), Err(Errno::EINVAL));
        let destroy = |handle| ask(&sim, &file, &mut SyncobjDestroy { handle, pad: 0 });
        assert_eq!((destroy(1), destroy(1)), (Ok(0), Err(Errno::EINVAL)));
        assert_eq!(create(&file), Ok(1));
        assert_eq!(broken(&sim), []);
    }
}
