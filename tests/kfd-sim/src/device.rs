//! open(2), ioctl(2) and mmap(2) of devices, up to where the drivers take over.

use alloc::format;
use alloc::string::ToString;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{Call, Clock, DeviceNode, MapDevice};

use crate::address_space::Shown;
use crate::defect::Defect;
use crate::descriptor::{File, FileId};
use crate::dma_buf;
use crate::drm;
use crate::gpu_vm::GpuVm;
use crate::kfd;
use crate::machine::{Condition, State, node_key};
use crate::process::Pid;
use crate::sysfs::Entry;
use crate::udmabuf;
use crate::violation::Rule;

/// Opens a device for a process and returns the descriptor.
///
/// Order of the checks: fs/open.c takes the descriptor first, then come the
/// path, the file mode, the device cgroup, and the driver.
pub(crate) fn open(state: &mut State, pid: Pid, node: DeviceNode) -> Result<u32, Errno> {
    let process = state.processes.get(&pid).ok_or(Errno::ESRCH)?;
    process.descriptors.lowest_free()?;
    let exists = matches!(state.tree.resolve(&node.to_string()), Ok((Entry::Device, _)));
    let of_amdgpu = node != DeviceNode::Udmabuf;
    if !exists || of_amdgpu && state.conditions.contains(&Condition::ModuleNotLoaded) {
        return Err(Errno::ENOENT);
    }
    if let Some((_, errno)) = state.open_errors.get(&node_key(node)) {
        return Err(*errno);
    }
    if of_amdgpu && state.has(Defect::NoPermission) {
        return Err(Errno::EACCES);
    }
    if state.is_hidden(pid, node) {
        return Err(Errno::EPERM);
    }
    let mut vm = None;
    let file = match node {
        DeviceNode::Kfd => File::Kfd { object: kfd::open(state, pid)? },
        DeviceNode::Render(minor) => {
            let gpu = state.topology.gpu_of_render(minor).ok_or(Errno::ENODEV)?;
            vm = Some(GpuVm::new(gpu, state.kernel));
            File::Render { minor, serves: None }
        }
        DeviceNode::Udmabuf => File::Udmabuf,
    };
    let id = FileId(state.number());
    state.files.insert(id, file);
    if let Some(vm) = vm {
        state.vms.insert(id, vm);
    }
    let process = state.processes.get_mut(&pid).ok_or(Errno::ESRCH)?;
    process.descriptors.insert(id, true)
}

/// Executes a request on a descriptor.
pub(crate) fn execute(
    state: &mut State,
    pid: Pid,
    descriptor: u32,
    call: &mut Call<'_, '_>,
    clock: &dyn Fn(Clock) -> u64,
) -> Result<u32, Errno> {
    let Some((file, what)) = state.file(pid, descriptor) else {
        let detail = format!("{} on descriptor {descriptor}", call.name);
        state.violation(pid, Rule::DescriptorNotOpen, detail);
        return Err(Errno::EBADF);
    };
    check_slots(state, pid, call);
    match what {
        File::Kfd { object } => kfd::ioctl(state, pid, file, object, call, clock),
        File::Render { minor, .. } => drm::ioctl(state, pid, file, minor, call),
        File::DmaBuf { .. } => {
            let detail = format!("{} on a dma-buf", call.name);
            state.violation(pid, Rule::NotSimulated, detail);
            Err(Errno::ENOTTY)
        }
        File::Udmabuf => udmabuf::ioctl(state, pid, call),
        File::Memory { .. } | File::Foreign => Err(Errno::ENOTTY),
    }
}

/// The seam's own rule: addresses of arrays are put in below it.
fn check_slots(state: &mut State, pid: Pid, call: &Call<'_, '_>) {
    for slot in call.slots {
        let address = call.block.get(slot.pointer_at..slot.pointer_at + 8);
        if address.is_some_and(|bytes| bytes != [0; 8]) {
            let detail = format!("{}: {} is not zero", call.name, slot.name);
            state.violation(pid, Rule::AddressInBlock, detail);
        }
    }
    if call.slots.len() != call.arrays.len() {
        let detail =
            format!("{}: {} arrays for {} slots", call.name, call.arrays.len(), call.slots.len());
        state.violation(pid, Rule::AddressInBlock, detail);
    }
}

/// Whether a device can be mapped so; what the mapping then shows.
pub(crate) fn check_map(
    state: &mut State,
    pid: Pid,
    descriptor: u32,
    mapping: MapDevice,
    page_size: usize,
) -> Result<Shown, Errno> {
    let Some((file, what)) = state.file(pid, descriptor) else {
        let detail = format!("mmap of descriptor {descriptor}");
        state.violation(pid, Rule::DescriptorNotOpen, detail);
        return Err(Errno::EBADF);
    };
    // mm/mmap.c, before the driver is asked.
    if mapping.length == 0 || mapping.offset % page_size as u64 != 0 {
        return Err(Errno::EINVAL);
    }
    match what {
        File::Kfd { object } => {
            let memory = kfd::mmap(state, pid, object, mapping, page_size)?;
            Ok(Shown::Device { file, node: DeviceNode::Kfd, memory })
        }
        File::Render { minor, .. } => {
            let memory = drm::mmap(state, pid, file, minor, mapping)?;
            let node = DeviceNode::Render(minor);
            Ok(Shown::Device { file, node, memory: Some(memory) })
        }
        File::DmaBuf { memory, writable } => dma_buf::mmap(state, file, memory, writable, mapping),
        File::Memory { memory } => udmabuf::mmap(state, pid, file, memory, mapping),
        File::Udmabuf | File::Foreign => Err(Errno::ENODEV),
    }
}
