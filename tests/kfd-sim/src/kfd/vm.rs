//! ACQUIRE_VM: kernel-rules section 1, "Binding a VM", and section 2
//! (kfd_chardev.c, amdgpu_amdkfd_gpuvm.c).

use alloc::format;

use hsakmt_core::errno::Errno;

use super::dispatch::Request;
use crate::defect::Defect;
use crate::descriptor::File;
use crate::gpu_memory::{MemoryId, Place};
use crate::gpu_vm::TRAP_PAGES;
use crate::violation::Rule;

/// drm_fd u32 at 0, gpu_id u32 at 4.
///
/// In this order: not a descriptor EINVAL; unknown GPU EINVAL; bound already: 0
/// for the same open file, EBUSY for another; not a file of amdgpu EINVAL; its
/// VM serves a process object already EINVAL; the GPU was unplugged ENODEV; no
/// memory for the driver's trap page ENOMEM.
pub(super) fn acquire(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let descriptor = request.arguments.u32(0);
    let gpu_id = request.arguments.u32(4);
    let (file, what) = request.state.file(request.pid, descriptor).ok_or(Errno::EINVAL)?;
    if let Some(bound) = request.object()?.gpu(gpu_id)?.file {
        return if bound == file { Ok(0) } else { Err(Errno::EBUSY) };
    }
    if request.state.gpu_has(gpu_id, Defect::VmBusy) {
        return Err(Errno::EBUSY);
    }
    let File::Render { minor, serves } = what else { return Err(Errno::EINVAL) };
    if serves.is_some() {
        return Err(Errno::EINVAL);
    }
    // The kernel binds whatever file it is given, and misbehaves later.
    let gpu = request.state.topology.gpu(gpu_id).ok_or(Errno::ENODEV)?;
    if gpu.render_minor() != minor {
        let detail = format!("renderD{minor} for GPU {gpu_id:#x}");
        request.state.violation(request.pid, Rule::RenderFileOfOtherGpu, detail);
        return Err(Errno::EINVAL);
    }
    let gpu = gpu.clone();
    let id = request.id;
    let trap = MemoryId(request.state.number());
    let state = &mut *request.state;
    state.memory.take(trap, &state.topology, &gpu, Place::Gtt, TRAP_PAGES)?;
    if let Some(vm) = state.vms.get_mut(&file) {
        vm.map_trap_page(&gpu, state.kernel);
    }
    if let Some(File::Render { serves, .. }) = request.state.files.get_mut(&file) {
        *serves = Some(id);
    }
    if let Some(record) = request.object_mut()?.record_mut(gpu_id) {
        record.file = Some(file);
        record.trap_memory = Some(trap);
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{DeviceNode, Driver};
    use hsakmt_core::uapi::kfd::CreateProcess;

    use crate::fixture::{acquire, acquire_number, ask, boot, broken, gpu_id, kfd, render};
    use crate::violation::Rule;

    #[test]
    fn errors_come_in_order() {
        let sim = boot("mi210x8:gpus=2");
        let device = kfd(&sim);
        let (id, unknown) = (gpu_id(&sim, 0), 0x1_0000);
        let file = render(&sim, 0);
        let foreign = sim.process().open_foreign().unwrap();
        // A descriptor that is none comes before the GPU.
        assert_eq!(acquire_number(&sim, &device, 99, unknown), Err(Errno::EINVAL));
        // The GPU comes before the kind of file.
        assert_eq!(acquire_number(&sim, &device, sim.token(&file).0, unknown), Err(Errno::EINVAL));
        assert_eq!(acquire_number(&sim, &device, foreign, id), Err(Errno::EINVAL));
        assert_eq!(acquire_number(&sim, &device, sim.token(&device).0, id), Err(Errno::EINVAL));
        assert_eq!(acquire(&sim, &device, &file, 0), Ok(0));
        // Bound: EBUSY comes before the kind of file.
        assert_eq!(acquire_number(&sim, &device, foreign, id), Err(Errno::EBUSY));
        assert_eq!(acquire(&sim, &device, &file, 0), Ok(0));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn the_same_file_is_the_same_through_any_descriptor() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        let file = render(&sim, 0);
        assert_eq!(acquire(&sim, &device, &file, 0), Ok(0));
        let copy = sim.process().duplicate(sim.token(&file).0).unwrap();
        drop(file);
        assert_eq!(acquire_number(&sim, &device, copy, gpu_id(&sim, 0)), Ok(0));
    }

    #[test]
    fn another_file_is_ebusy_for_ever() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        let file = render(&sim, 0);
        assert_eq!(acquire(&sim, &device, &file, 0), Ok(0));
        drop((file, device));
        for _ in 0..3 {
            let device = kfd(&sim);
            assert_eq!(acquire(&sim, &device, &render(&sim, 0), 0), Err(Errno::EBUSY));
        }
    }

    #[test]
    fn a_file_serves_one_object() {
        let sim = boot("rx7900:kernel=7.2");
        let (primary, secondary) = (kfd(&sim), kfd(&sim));
        let file = render(&sim, 0);
        assert_eq!(acquire(&sim, &primary, &file, 0), Ok(0));
        assert_eq!(ask(&sim, &secondary, &mut CreateProcess::default()), Ok(0));
        assert_eq!(acquire(&sim, &secondary, &file, 0), Err(Errno::EINVAL));
        assert_eq!(acquire(&sim, &secondary, &render(&sim, 0), 0), Ok(0));
    }

    #[test]
    fn the_file_of_another_gpu_is_refused_and_noted() {
        let sim = boot("mi210x8:gpus=2");
        let device = kfd(&sim);
        let file = render(&sim, 1);
        assert_eq!(acquire(&sim, &device, &file, 0), Err(Errno::EINVAL));
        assert_eq!(broken(&sim), [Rule::RenderFileOfOtherGpu]);
        assert_eq!(acquire(&sim, &device, &file, 1), Ok(0));
    }

    #[test]
    fn the_file_of_another_partition_is_refused_and_noted() {
        let sim = boot("mi300x:cpx,gpus=1");
        assert_eq!(acquire(&sim, &kfd(&sim), &render(&sim, 3), 4), Err(Errno::EINVAL));
        assert_eq!(broken(&sim), [Rule::RenderFileOfOtherGpu]);
    }

    #[test]
    fn a_hidden_gpu_is_unknown() {
        let sim = boot("mi210x8:gpus=2");
        let file = render(&sim, 0);
        sim.process().hide(DeviceNode::Render(128), true);
        assert_eq!(acquire(&sim, &kfd(&sim), &file, 0), Err(Errno::EINVAL));
    }

    #[test]
    fn a_received_file_can_be_bound() {
        let sim = boot("rx7900");
        let other = sim.machine().spawn(crate::AddressesOnly::new());
        let file = render(&other, 0);
        let number = sim.process().receive(&other.process(), other.token(&file).0).unwrap();
        assert_eq!(acquire_number(&sim, &kfd(&sim), number, gpu_id(&sim, 0)), Ok(0));
        // It serves the receiver's object now.
        assert_eq!(acquire(&other, &kfd(&other), &file, 0), Err(Errno::EINVAL));
    }
}
