//! What the kernel keeps for the life of the process.

use super::files::Files;
use crate::seam::Platform;

/// What outlives every close, because the kernel never gives it back while the
/// process lives (kernel-rules section 1; kfd_process.c): the process object
/// behind `/dev/kfd`, per GPU the render file that its VM is bound to, and the event
/// page.
///
/// The primary context borrows it; a reopened one finds everything as it was. A
/// forked child has none of it and starts with an empty one.
pub(crate) struct ProcessResidue<P: Platform> {
    pub(crate) files: Files<P>,
}

impl<P: Platform> ProcessResidue<P> {
    pub(crate) const fn new() -> ProcessResidue<P> {
        ProcessResidue { files: Files::new() }
    }
}
