//! ACQUIRE_VM: kernel-rules section 1, "Binding a VM", and section 2
//! (kfd_chardev.c, amdgpu_amdkfd_gpuvm.c).

use alloc::format;

use hsakmt_core::errno::Errno;

use super::dispatch::Request;
use crate::descriptor::File;
use crate::violation::Rule;

/// drm_fd u32 at 0, gpu_id u32 at 4.
///
/// In this order: not a descriptor EINVAL; unknown GPU EINVAL; bound already: 0
/// for the same open file, EBUSY for another; not a file of amdgpu EINVAL; its
/// VM serves a process object already EINVAL.
pub(super) fn acquire(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let descriptor = request.arguments.u32(0);
    let gpu_id = request.arguments.u32(4);
    let (file, what) = request.state.file(request.pid, descriptor).ok_or(Errno::EINVAL)?;
    if let Some(bound) = request.object()?.gpu(gpu_id)?.file {
        return if bound == file { Ok(0) } else { Err(Errno::EBUSY) };
    }
    let File::Render { minor, serves } = what else { return Err(Errno::EINVAL) };
    if serves.is_some() {
        return Err(Errno::EINVAL);
    }
    // The kernel binds whatever file it is given, and misbehaves later.
    let expected = request.state.topology.gpu(gpu_id).map(|gpu| gpu.render_minor());
    if expected != Some(minor) {
        let detail = format!("renderD{minor} for GPU {gpu_id:#x}");
        request.state.violation(request.pid, Rule::RenderFileOfOtherGpu, detail);
        return Err(Errno::EINVAL);
    }
    let id = request.id;
    if let Some(File::Render { serves, .. }) = request.state.files.get_mut(&file) {
        *serves = Some(id);
    }
    if let Some(record) = request.object_mut()?.record_mut(gpu_id) {
        record.file = Some(file);
    }
    Ok(0)
}
