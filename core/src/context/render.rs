//! The GPUs that a context may use: their render nodes opened, their address
//! spaces bound.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use zerocopy::{FromZeros, IntoBytes};

use super::{Channel, Options, refused};
use crate::errno::Errno;
use crate::error::{Error, Object, Operation, Status};
use crate::execute::execute;
use crate::fallible::try_push;
use crate::process::{Device, GPUS_MAX, Opened};
use crate::seam::{Array, DeviceNode, Driver, Os, Platform};
use crate::topology::path::Path;
use crate::topology::{Access, DeviceInfo, GpuAccess, GpuIdentity};
use crate::uapi::amdgpu::{Info, InfoDevice, InfoDeviceFlags, InfoQuery};
use crate::uapi::kfd::{AcquireVm, GetProcessAperturesNew, ProcessDeviceApertures};

/// Asks which GPUs the kernel process object has, and their apertures.
///
/// The set is fixed when the object is made (kfd_process.c): a GPU that came
/// later, or that the device cgroup hides, is not in it, and every call that
/// names it fails. The count is asked first, because a count above the number
/// of topology nodes is EINVAL since 6.12.
pub(super) fn apertures<P: Platform>(
    channel: &Channel<'_, P>,
) -> Result<Vec<ProcessDeviceApertures>, Error> {
    let object = Object::Device(DeviceNode::Kfd);
    let mut block = GetProcessAperturesNew::default();
    channel.execute(&mut block, &mut [Array::Absent], Status::ERROR, object)?;
    let count = usize::try_from(block.num_of_nodes).unwrap_or(usize::MAX);
    if count == 0 {
        return Ok(Vec::new());
    }
    if count > GPUS_MAX {
        return Err(Error::library(
            Status::NO_MEMORY,
            Operation::Execute(<GetProcessAperturesNew as crate::uapi::Block>::REQUEST),
            Object::Handle(u64::from(block.num_of_nodes)),
        ));
    }
    let mut apertures = Vec::new();
    apertures.try_reserve_exact(count)?;
    apertures.resize(count, ProcessDeviceApertures::new_zeroed());
    let arrays = &mut [Array::Out(apertures.as_mut_bytes())];
    channel.execute(&mut block, arrays, Status::ERROR, object)?;
    apertures.truncate(usize::try_from(block.num_of_nodes).unwrap_or(usize::MAX));
    Ok(apertures)
}

/// Opens render nodes while the topology is read, and binds them afterwards.
///
/// What it opened and did not bind is closed when it is dropped.
pub(super) struct RenderNodes<'a, P: Platform> {
    channel: Channel<'a, P>,
    options: &'a Options,
    apertures: &'a [ProcessDeviceApertures],
    opened: Vec<(GpuIdentity, Opened<'a, P>)>,
}

impl<'a, P: Platform> RenderNodes<'a, P> {
    pub(super) fn new(
        channel: Channel<'a, P>,
        options: &'a Options,
        apertures: &'a [ProcessDeviceApertures],
    ) -> RenderNodes<'a, P> {
        RenderNodes { channel, options, apertures, opened: Vec::new() }
    }

    /// Binds the address space of each GPU that `is_used` to the kernel process
    /// object, in the order in which the kernel lists them.
    ///
    /// # Errors
    /// ERROR with the driver's errno. What was bound before stays bound and open:
    /// the kernel would accept no other file for it.
    pub(super) fn bind(self, is_used: impl Fn(&GpuIdentity) -> bool) -> Result<(), Error> {
        let RenderNodes { channel, options, opened, .. } = self;
        let Channel { platform, files, descriptors, .. } = channel;
        let acquire = |gpu: &GpuIdentity, opened: &Opened<'_, P>| {
            let device = opened.device().ok_or(Error::not_open())?;
            let mut block =
                AcquireVm { drm_fd: platform.driver().token(device).0, gpu_id: gpu.gpu_id };
            channel.execute(&mut block, &mut [], Status::ERROR, Object::Gpu(gpu.gpu_id)).map(drop)
        };
        for (gpu, opened) in opened {
            if !is_used(&gpu) {
                continue;
            }
            let object = Object::Gpu(gpu.gpu_id);
            let device = opened.device().ok_or(Error::not_open())?;
            if !files.has_room() {
                return Err(Error::library(Status::NO_MEMORY, Operation::OpenDevice, object));
            }
            let minor = gpu.render_minor;
            if let Some(others) = options.render_files {
                if let Some(token) = others.offer(minor, platform.driver().token(device)) {
                    let node = DeviceNode::Render(minor);
                    let theirs = Opened::adopt(platform, descriptors, node, token)?;
                    if acquire(&gpu, &theirs).is_ok() {
                        files.keep_render(minor, theirs);
                        continue;
                    }
                    others.refused(minor);
                }
            }
            acquire(&gpu, &opened)?;
            files.keep_render(minor, opened);
        }
        Ok(())
    }
}

impl<P: Platform> GpuAccess for RenderNodes<'_, P> {
    fn wants(&mut self, gpu_id: u32) -> bool {
        self.options.gpus.wants(gpu_id)
    }

    fn access(&mut self, gpu: &GpuIdentity) -> Result<Access, Error> {
        if !self.apertures.iter().any(|aperture| aperture.gpu_id == gpu.gpu_id) {
            return Ok(Access::Hidden);
        }
        let Channel { platform, files, descriptors, .. } = self.channel;
        if let Some(render) = files.render(gpu.render_minor) {
            return device_info(platform, &render.device, gpu);
        }
        if !self.opened.iter().any(|(other, _)| other.render_minor == gpu.render_minor) {
            let node = DeviceNode::Render(gpu.render_minor);
            match Opened::open(platform, descriptors, node, |_| Status::ERROR) {
                Ok(opened) => try_push(&mut self.opened, (*gpu, opened))?,
                Err(Error { errno: Some(Errno::ENOENT | Errno::EPERM), .. }) => {
                    return Ok(Access::Hidden);
                }
                Err(error) => return Err(error),
            }
        }
        let opened = self.opened.iter().find(|(other, _)| other.render_minor == gpu.render_minor);
        match opened.and_then(|(_, opened)| opened.device()) {
            Some(device) => device_info(platform, device, gpu),
            None => Ok(Access::Hidden),
        }
    }
}

/// Asks a GPU's own driver about it. A GPU that is lost is hidden.
fn device_info<P: Platform>(
    platform: &P,
    device: &Device<P>,
    gpu: &GpuIdentity,
) -> Result<Access, Error> {
    let mut answer = InfoDevice::new_zeroed();
    let mut block = Info {
        return_size: size_of::<InfoDevice>() as u32,
        query: InfoQuery::DEV_INFO,
        ..Info::default()
    };
    let arrays = &mut [Array::Out(answer.as_mut_bytes())];
    match execute(platform, device, &mut block, arrays) {
        Ok(_) => Ok(Access::Usable(Some(DeviceInfo {
            family: answer.family,
            integrated: answer.ids_flags.contains(InfoDeviceFlags::FUSION),
            counter_khz: u64::from(answer.gpu_counter_freq),
            pci_revision: answer.pci_rev,
            fabric: has_ualink(platform.os(), gpu.render_minor)?,
        }))),
        Err(Errno::ENODEV) => Ok(Access::Hidden),
        Err(errno) => Err(refused::<Info>(errno, Status::ERROR, Object::Gpu(gpu.gpu_id))),
    }
}

/// Whether the GPU has a UALink, by the folder that its driver makes then.
fn has_ualink<O: Os>(os: &O, render_minor: u32) -> Result<bool, Error> {
    let mut path = Path::new(c"/sys/class/drm/renderD")?;
    path.push_number(render_minor)?;
    path.push(b"/device/ualink")?;
    Ok(os.list_folder(path.as_c_str(), &mut |_, _| ControlFlow::Break(())).is_ok())
}
