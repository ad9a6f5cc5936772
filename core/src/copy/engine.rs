//! The copy by an engine of a GPU.

use super::{not_reached, out_of_reach};
use crate::error::Error;
use crate::memory::{Access, Extent};
use crate::seam::Platform;

/// Copies from one extent to another of the same size.
///
/// # Errors
/// NOT_SUPPORTED: there is no engine's queue yet.
pub(super) fn copy<P: Platform>(
    _access: &Access<'_, P>,
    to: &Extent,
    from: &Extent,
) -> Result<(), Error> {
    Err(not_reached(out_of_reach(to, from)))
}
