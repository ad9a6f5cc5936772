//! What to do about a failure, in one sentence.

use super::{Error, Object, Operation, Status};
use crate::errno::Errno;
use crate::seam::DeviceNode;
use crate::uapi::Request;

/// The number of ACQUIRE_VM within KFD (`kfd_ioctl.h`).
const ACQUIRE_VM: u8 = 0x15;

impl Error {
    /// What to do about it, in one sentence; empty where there is nothing to say.
    ///
    /// The reasons behind an errno of an open are those of `kfd_open`
    /// (kfd_chardev.c), `kfd_create_process` (kfd_process.c) and `drm_open`.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match (self.operation, self.object, self.errno) {
            (Operation::OpenDevice, Object::Device(DeviceNode::Kfd), Some(errno)) => kfd(errno),
            (Operation::OpenDevice, Object::Device(DeviceNode::Render(_)), Some(errno)) => {
                render(errno)
            }
            (Operation::Execute(request), _, Some(errno)) => block(request, errno),
            (Operation::CheckOpen, ..) => {
                "hsaKmtOpenKFD has not been called in this process; a forked child opens anew, \
                 a vfork child cannot"
            }
            (Operation::CheckVersion, ..) if self.status == Status::DRIVER_MISMATCH => {
                "the driver speaks another major version of the KFD interface: use a matching \
                 library"
            }
            (Operation::CheckVersion, ..) => "the kernel is too old for this call: update amdgpu",
            (Operation::FollowTopology, ..) => {
                "devices keep coming and going: try again when the machine is quiet"
            }
            (Operation::Allocate, ..) => "the process has no memory left for the library",
            (_, _, Some(Errno::EMFILE)) => "too many open descriptors: raise RLIMIT_NOFILE",
            _ => "",
        }
    }
}

fn kfd(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOENT => {
            "the amdgpu driver is not loaded, or this container was started without the device \
             /dev/kfd"
        }
        Errno::EACCES => "the user may not open the device: join the group that owns it (render)",
        Errno::EPERM => "the device cgroup or a 32-bit process is refused: allow the device",
        Errno::EINVAL => {
            "no GPU is visible to this process, or a GPU reset or suspend is in progress: check \
             the device cgroup, then try again"
        }
        Errno::ENODEV | Errno::ENXIO => "the driver is there but not ready, or its GPU is gone",
        Errno::ENOMEM => "the kernel has no memory, or more than 64 GPUs are visible",
        Errno::ENOSPC => "the kernel has no address-space id (PASID) left",
        Errno::EMFILE => "too many open descriptors: raise RLIMIT_NOFILE",
        Errno::ENFILE => "the system has too many open files",
        Errno::EIO => "the device failed: see the kernel log",
        _ => "see the kernel log",
    }
}

fn render(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOENT => {
            "the render node is missing: this container was started without it, or the GPU \
             partition is not valid"
        }
        Errno::EACCES => "the user may not open the device: join the group that owns it (render)",
        Errno::EPERM => "the device cgroup forbids the GPU",
        Errno::ENODEV | Errno::ENXIO => "the GPU is lost",
        Errno::EHWPOISON => "the GPU has had a fatal memory error: reset it",
        Errno::EMFILE => "too many open descriptors: raise RLIMIT_NOFILE",
        Errno::ENFILE => "the system has too many open files",
        Errno::ENOMEM => "the kernel has no memory",
        _ => "see the kernel log",
    }
}

fn block(request: Request, errno: Errno) -> &'static str {
    match (request.letter(), request.number(), errno) {
        (b'K', ACQUIRE_VM, Errno::EBUSY) => {
            "another user of KFD in this process has bound the GPU to its own render file"
        }
        (b'K', ACQUIRE_VM, Errno::EINVAL) => {
            "the render file belongs to another process or context, or the kernel is older than \
             ACQUIRE_VM"
        }
        (b'K', _, Errno::EBADF) => {
            "the descriptor belongs to another process: open anew after fork, not at all after \
             vfork"
        }
        (_, _, Errno::ENOTTY) => "the kernel does not know this request: update amdgpu",
        (_, _, Errno::ENODEV | Errno::EIO) => "the GPU is lost or was reset",
        (_, _, Errno::EMFILE) => "too many open descriptors: raise RLIMIT_NOFILE",
        (_, _, Errno::ENOMEM) => "the kernel has no memory of the kind that was asked for",
        (_, _, Errno::EAGAIN) => "the kernel kept asking to try again for five seconds",
        _ => "",
    }
}
