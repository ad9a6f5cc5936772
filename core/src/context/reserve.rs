//! Addresses of the process that GPUs reach, outside of all regions of memory.

use super::Channel;
use crate::errno::Errno;
use crate::error::{Error, Object, Operation, Status};
use crate::seam::{Mapping, Os, Placement, Platform, Protection};
use crate::topology::Aperture;

/// How many places are tried.
const PLACES: u64 = 64;

/// Reserves addresses within bounds.
///
/// # Errors
/// ERROR where the system has none.
pub(crate) fn reserve_within<P: Platform>(
    channel: &Channel<'_, P>,
    bounds: Aperture,
    length: usize,
) -> Result<usize, Error> {
    let failed = |errno| {
        let object = Object::Bytes(length as u64);
        Error::system(Status::ERROR, Operation::MapMemory, errno, object)
    };
    let fits = |address: usize| {
        let last = (address as u64).saturating_add(length as u64).saturating_sub(1);
        address as u64 >= bounds.base && last <= bounds.limit
    };
    // Anywhere, then near places below the GPUs' limit.
    let step = bounds.limit.saturating_sub(bounds.base).wrapping_div(PLACES);
    let page = channel.os().page_size() as u64;
    for place in 0..PLACES {
        let below = bounds.limit.saturating_sub(step.saturating_mul(place));
        let near = below & !page.wrapping_sub(1);
        let placement = match (place, usize::try_from(near)) {
            (1.., Ok(near)) => Placement::Hint(near),
            _ => Placement::Anywhere,
        };
        let mapping = Mapping {
            placement,
            length,
            protection: Protection::empty(),
            reserve: false,
            shared: false,
        };
        let address = channel.os().map(mapping).map_err(failed)?;
        if fits(address) {
            return Ok(address);
        }
        let _ = channel.os().unmap(address, length);
    }
    Err(failed(Errno::ENOMEM))
}
