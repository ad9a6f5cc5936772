//! What to do about a failure, in one sentence.

use core::ffi::CStr;

use super::{Error, Object, Operation, Status};
use crate::errno::Errno;
use crate::seam::DeviceNode;
use crate::uapi::Request;

/// The number of ACQUIRE_VM within KFD (`kfd_ioctl.h`).
const ACQUIRE_VM: u8 = 0x15;
/// Those of the requests about queues.
const CREATE_QUEUE: u8 = 0x02;
const UPDATE_QUEUE: u8 = 0x07;
/// Those of the requests about memory.
const ALLOC_MEMORY: u8 = 0x16;
const FREE_MEMORY: u8 = 0x17;
const MAP_MEMORY: u8 = 0x18;
const UNMAP_MEMORY: u8 = 0x19;
const SVM: u8 = 0x20;
/// Those of the requests about sharing.
const DMABUF_INFO: u8 = 0x1c;
const IMPORT_DMABUF: u8 = 0x1d;
const EXPORT_DMABUF: u8 = 0x24;
const IPC_IMPORT: u8 = 0x80;
const IPC_EXPORT: u8 = 0x81;

impl Error {
    /// What to do about it, in one sentence, where there is something to say.
    ///
    /// The reasons behind an errno of an open are those of `kfd_open`
    /// (kfd_chardev.c), `kfd_create_process` (kfd_process.c) and `drm_open`.
    #[must_use]
    pub fn advice(&self) -> Option<&'static CStr> {
        let advice = match (self.operation, self.object, self.errno) {
            (Operation::OpenDevice, Object::Device(DeviceNode::Kfd), Some(errno)) => kfd(errno),
            (Operation::OpenDevice, Object::Device(DeviceNode::Render(_)), Some(errno)) => {
                render(errno)
            }
            (Operation::OpenDevice, Object::Device(DeviceNode::Udmabuf), Some(errno)) => {
                udmabuf(errno)
            }
            (Operation::Execute(request), Object::Gpu(_), Some(Errno::EINVAL))
                if (request.letter(), request.number()) == (b'K', IMPORT_DMABUF) =>
            {
                c"this driver takes dma-bufs of GPUs alone: memory by udmabuf needs Linux 6.8; \
                  without it set HSA_USE_UDMABUF to prefer or 0"
            }
            (Operation::Execute(request), _, Some(errno)) => block(request, errno),
            (Operation::MakeMemoryFile, _, Some(Errno::EACCES | Errno::EPERM | Errno::ENOSYS)) => {
                c"the system forbids files in memory (vm.memfd_noexec, a container's filter): \
                  allow memfd_create"
            }
            (Operation::CheckArgument, Object::Argument(4), _)
                if self.status == Status::NOT_SUPPORTED =>
            {
                c"udmabuf is required and cannot make memory without an address, uncached, \
                  coherent within a kernel, or for the ring of an AQL queue: ask for other \
                  memory, or set HSA_USE_UDMABUF to prefer"
            }
            (Operation::CheckOpen, ..) => {
                c"hsaKmtOpenKFD has not been called in this process; a forked child opens anew, \
                 a vfork child cannot"
            }
            (Operation::CheckVersion, ..) if self.status == Status::DRIVER_MISMATCH => {
                c"the driver speaks another major version of the KFD interface: use a matching \
                 library"
            }
            (Operation::CheckVersion, ..) => c"the kernel is too old for this call: update amdgpu",
            (Operation::FollowTopology, ..) => {
                c"devices keep coming and going: try again when the machine is quiet"
            }
            (Operation::Submit, _, None) if self.status == Status::UNAVAILABLE => {
                c"the GPU was reset and its queues are lost: destroy them and make new ones"
            }
            (Operation::OverrideGfx, ..) => {
                c"HSA_OVERRIDE_GFX_VERSION is not of the form a.b.c, or changes the major version \
                  of a GPU, whose code would not run there: unset it"
            }
            (Operation::OpenDevice, _, None) if self.status == Status::OUT_OF_RESOURCES => {
                c"as many contexts are open as one process can have: close one"
            }
            (Operation::LookUp, Object::Nothing, None)
                if self.status == Status::INVALID_NODE_UNIT =>
            {
                c"hsaKmtAcquireSystemProperties has not been called yet, or what it found was \
                 released"
            }
            (Operation::MapMemory, Object::Address(_), Some(Errno::EEXIST)) => {
                c"something is mapped at this address already"
            }
            (Operation::LookUp, Object::Device(DeviceNode::Render(_)), None) => {
                c"the process had no libdrm_amdgpu when the GPU was acquired, or it could not take \
                  the device: link the program with libdrm_amdgpu"
            }
            (Operation::Copy, Object::Address(_), None) => {
                c"whoever is to copy does not reach this memory: allocate it with host access for \
                  the CPU, or map it on a GPU that has an engine"
            }
            (Operation::Allocate, ..) => c"the process has no memory left for the library",
            (_, _, Some(Errno::EMFILE)) => c"too many open descriptors: raise RLIMIT_NOFILE",
            _ => return None,
        };
        (!advice.is_empty()).then_some(advice)
    }
}

fn kfd(errno: Errno) -> &'static CStr {
    match errno {
        Errno::ENOENT => {
            c"the amdgpu driver is not loaded, or this container was started without the device \
             /dev/kfd"
        }
        Errno::EACCES => c"the user may not open the device: join the group that owns it (render)",
        Errno::EPERM => c"the device cgroup or a 32-bit process is refused: allow the device",
        Errno::EINVAL => {
            c"no GPU is visible to this process, or a GPU reset or suspend is in progress: check \
             the device cgroup, then try again"
        }
        Errno::ENODEV | Errno::ENXIO => c"the driver is there but not ready, or its GPU is gone",
        Errno::ENOMEM => c"the kernel has no memory, or more than 64 GPUs are visible",
        Errno::ENOSPC => c"the kernel has no address-space id (PASID) left",
        Errno::EMFILE => c"too many open descriptors: raise RLIMIT_NOFILE",
        Errno::ENFILE => c"the system has too many open files",
        Errno::EIO => c"the device failed: see the kernel log",
        _ => c"see the kernel log",
    }
}

fn render(errno: Errno) -> &'static CStr {
    match errno {
        Errno::ENOENT => {
            c"the render node is missing: this container was started without it, or the GPU \
             partition is not valid"
        }
        Errno::EACCES => c"the user may not open the device: join the group that owns it (render)",
        Errno::EPERM => c"the device cgroup forbids the GPU",
        Errno::ENODEV | Errno::ENXIO => c"the GPU is lost",
        Errno::EHWPOISON => c"the GPU has had a fatal memory error: reset it",
        Errno::EMFILE => c"too many open descriptors: raise RLIMIT_NOFILE",
        Errno::ENFILE => c"the system has too many open files",
        Errno::ENOMEM => c"the kernel has no memory",
        _ => c"see the kernel log",
    }
}

fn udmabuf(errno: Errno) -> &'static CStr {
    match errno {
        Errno::ENOENT => {
            c"there is no /dev/udmabuf: load the module udmabuf, or give the container the device; \
             without it set HSA_USE_UDMABUF to prefer or 0"
        }
        Errno::EACCES => c"the user may not open the device: join the group that owns it (kvm)",
        Errno::EPERM => c"the device cgroup forbids the device: allow it",
        Errno::EMFILE => c"too many open descriptors: raise RLIMIT_NOFILE",
        Errno::ENFILE => c"the system has too many open files",
        _ => c"see the kernel log",
    }
}

fn block(request: Request, errno: Errno) -> &'static CStr {
    match (request.letter(), request.number(), errno) {
        (b'K', ACQUIRE_VM, Errno::EBUSY) => {
            c"another user of KFD in this process has bound the GPU to its own render file"
        }
        (b'K', ACQUIRE_VM, Errno::EINVAL) => {
            c"the render file belongs to another process or context, or the kernel is older than \
             ACQUIRE_VM"
        }
        (b'K', CREATE_QUEUE, Errno::EINVAL) => {
            c"the ring, a page of its pointers, or the save area (cwsr_size, ctl_stack_size of the \
              node) is no mapping of its own on this GPU of exactly the length that the driver wants"
        }
        (b'K', CREATE_QUEUE, Errno::EPERM) => {
            c"the write pointer lies in pages of the program, which this GPU's scheduler does not \
              take: allocate it NonPaged; or there is no place for one more queue"
        }
        (b'K', CREATE_QUEUE, Errno::ENOSPC) => c"as many queues exist as the GPU has places for",
        (b'K', UPDATE_QUEUE, Errno::EFAULT) => {
            c"the ring is no mapping of exactly this length, or the queue is gone"
        }
        (b'K', UPDATE_QUEUE, Errno::EACCES) => c"the GPU was reset: destroy the queue",
        (b'K', FREE_MEMORY, Errno::EBUSY) => c"the memory is still mapped on a GPU: unmap it first",
        (b'K', ALLOC_MEMORY, Errno::EFAULT) => {
            c"nothing that can be read and written is mapped in all of the range"
        }
        (b'K', ALLOC_MEMORY, Errno::EPERM) => {
            c"the range is mapped read-only: the driver takes memory that can be written alone"
        }
        (b'K', ALLOC_MEMORY, Errno::EOPNOTSUPP) => {
            c"the driver takes no memory of the program here (a secondary context, or GPUs that \
             retry faults): allocate it with the library"
        }
        (b'K', MAP_MEMORY, Errno::EINVAL) => {
            c"one of the GPUs cannot reach the memory: it needs xGMI, or peer access over PCIe"
        }
        (b'K', UNMAP_MEMORY, Errno::EBUSY) => c"a queue uses the memory: destroy it first",
        (b'K', SVM, Errno::EFAULT) => c"part of the range is not mapped, or is memory of a device",
        (b'K', DMABUF_INFO | IMPORT_DMABUF, Errno::EBADF) => {
            c"the descriptor is not open in this process"
        }
        (b'K', DMABUF_INFO | IMPORT_DMABUF, Errno::EINVAL) => {
            c"the descriptor is no dma-buf of a GPU that this process sees"
        }
        (b'K', EXPORT_DMABUF, Errno::EPERM) => {
            c"the memory is the program's own: memory that the driver allocates can be exported \
             (NonPaged, or GTTAccess)"
        }
        (b'K', IPC_IMPORT | IPC_EXPORT, Errno::ENOTTY) => {
            c"not supported: only the out-of-tree driver shares memory by number; export a \
             dma-buf and pass its descriptor"
        }
        (b'u', _, Errno::EINVAL) => {
            c"more than the module udmabuf allows for one buffer: raise its parameter \
             size_limit_mb (64 by default)"
        }
        (b'K', IPC_IMPORT, Errno::EINVAL) => c"nobody has shared memory of this number any more",
        (b'K', _, Errno::EBADF) => {
            c"the descriptor belongs to another process: open anew after fork, not at all after \
             vfork"
        }
        (_, _, Errno::ENOTTY) => c"the kernel does not know this request: update amdgpu",
        (_, _, Errno::ENODEV | Errno::EIO) => c"the GPU is lost or was reset",
        (_, _, Errno::EMFILE) => c"too many open descriptors: raise RLIMIT_NOFILE",
        (_, _, Errno::ENOMEM) => c"the kernel has no memory of the kind that was asked for",
        (_, _, Errno::EAGAIN) => c"the kernel kept asking to try again for five seconds",
        _ => c"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uapi::Block;
    use crate::uapi::kfd::{
        AllocMemoryOfGpu, ExportDmabuf, FreeMemoryOfGpu, GetDmabufInfo, ImportDmabuf,
        IpcExportHandle, MapMemoryToGpu, Svm,
    };

    fn refused<B: Block>(errno: Errno) -> Option<&'static CStr> {
        let operation = Operation::Execute(B::REQUEST);
        Error::system(Status::ERROR, operation, errno, Object::Nothing).advice()
    }

    #[test]
    fn memory_that_the_driver_refuses_has_a_reason() {
        let says = |advice: Option<&CStr>, word: &str| {
            let text = advice.unwrap().to_str().unwrap();
            assert!(text.contains(word), "{text}");
        };
        says(refused::<FreeMemoryOfGpu>(Errno::EBUSY), "unmap it first");
        says(refused::<AllocMemoryOfGpu>(Errno::EFAULT), "mapped in all of the range");
        says(refused::<AllocMemoryOfGpu>(Errno::EPERM), "read-only");
        says(refused::<AllocMemoryOfGpu>(Errno::EOPNOTSUPP), "secondary context");
        says(refused::<MapMemoryToGpu>(Errno::EINVAL), "cannot reach");
        says(refused::<Svm>(Errno::EFAULT), "not mapped");
        says(refused::<ImportDmabuf>(Errno::EBADF), "not open");
        says(refused::<GetDmabufInfo>(Errno::EINVAL), "no dma-buf");
        says(refused::<ExportDmabuf>(Errno::EPERM), "program's own");
        says(refused::<ExportDmabuf>(Errno::EMFILE), "RLIMIT_NOFILE");
        says(refused::<IpcExportHandle>(Errno::ENOTTY), "not supported");
        assert_eq!(refused::<AllocMemoryOfGpu>(Errno::EINVAL), None);
    }

    #[test]
    fn a_call_before_the_topology_says_what_to_call() {
        let early = Error::library(Status::INVALID_NODE_UNIT, Operation::LookUp, Object::Nothing);
        let text = early.advice().unwrap().to_str().unwrap();
        assert!(text.contains("hsaKmtAcquireSystemProperties"));
        let wrong = Error::library(Status::INVALID_NODE_UNIT, Operation::LookUp, Object::Node(7));
        assert_eq!(wrong.advice(), None);
    }
}
