//! CREATE_PROCESS: kernel-rules section 1, "Secondary contexts".

use alloc::collections::BTreeSet;

use hsakmt_core::errno::Errno;

use super::dispatch::Request;
use super::{Kind, ObjectId, new_object};
use crate::descriptor::File;

/// Ids of secondary contexts are below this; the primary's is this.
const PRIMARY_ID: u16 = u16::MAX;

/// No argument. The descriptor's file, which must still carry the primary
/// object, gets a new one.
pub(super) fn create(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let object = request.object()?;
    let space = object.space;
    if object.kind != Kind::Primary {
        return Err(Errno::EINVAL);
    }
    let state = &mut *request.state;
    let taken: BTreeSet<u16> = state
        .objects
        .values()
        .filter(|object| object.space == space)
        .filter_map(|object| match object.kind {
            Kind::Primary => None,
            Kind::Secondary(id) => Some(id),
        })
        .collect();
    let id = (0..PRIMARY_ID).find(|id| !taken.contains(id)).ok_or(Errno::ENOSPC)?;
    let secondary = new_object(state, request.pid, space, Kind::Secondary(id))?;
    let new = ObjectId(state.number());
    state.objects.insert(new, secondary);
    if let Some(File::Kfd { object }) = state.files.get_mut(&request.file) {
        *object = new;
    }
    Ok(0)
}
