//! GET_VERSION: kernel-rules section 2.

use hsakmt_core::errno::Errno;

use super::dispatch::Request;

/// The interface's major has always been 1.
const MAJOR: u32 = 1;

/// major u32 at 0, minor u32 at 4.
pub(super) fn get(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let minor = request.state.kernel.kfd_minor;
    request.arguments.put_u32(0, MAJOR);
    request.arguments.put_u32(4, minor);
    Ok(0)
}
