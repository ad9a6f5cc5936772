//! Checkpoint and restore of a process, for the tool CRIU (1.7, 1.8).
//!
//! Never sent by this library: PROCESS_INFO stops the queues of its target until
//! UNPAUSE, and RESUME of an object that never had a VM makes the kernel oops. The
//! block is here for traces. Its pointers are plain numbers, not arrays, for
//! whoever decodes one has no business following them.

use crate::uapi::scalar::open_enum;
use crate::uapi::{block, record};

open_enum! {
    /// What a [`CriuOp`] does.
    pub struct CriuOperation: u32 {
        /// Counts what there is and pauses the process.
        const PROCESS_INFO = 0;
        /// Saves it.
        const CHECKPOINT = 1;
        /// Lets it go on.
        const UNPAUSE = 2;
        /// Makes it anew.
        const RESTORE = 3;
        /// Lets it run.
        const RESUME = 4;
    }
}

block! {
    /// Never sent, see the module.
    pub struct CriuOp: ReadWrite b'K' 0x22 "CRIU_OP", 56 bytes, Never {
        /// Address of [`CriuDeviceBucket`]s.
        pub devices: u64,
        /// Address of [`CriuBoBucket`]s.
        pub bos: u64,
        /// Address of the driver's own data.
        pub priv_data: u64,
        /// Bytes of it.
        pub priv_data_size: u64,
        /// GPUs.
        pub num_devices: u32,
        /// Buffers.
        pub num_bos: u32,
        /// Everything else.
        pub num_objects: u32,
        /// The process.
        pub pid: u32,
        /// What to do.
        pub op: CriuOperation,
        /// Zero.
        pub reserved: u32,
    }
}

record! {
    /// One GPU of a checkpoint.
    pub struct CriuDeviceBucket: "kfd_criu_device_bucket", 16 bytes {
        /// The number the process knows.
        pub user_gpu_id: u32,
        /// The number on this machine.
        pub actual_gpu_id: u32,
        /// Its render node's descriptor.
        pub drm_fd: u32,
        /// Zero.
        pub pad: u32,
    }
}

record! {
    /// One buffer of a checkpoint.
    pub struct CriuBoBucket: "kfd_criu_bo_bucket", 48 bytes {
        /// GPU address.
        pub addr: u64,
        /// Bytes.
        pub size: u64,
        /// Offset for mmap when it was saved.
        pub offset: u64,
        /// Offset for mmap now.
        pub restored_offset: u64,
        /// Its GPU.
        pub gpu_id: u32,
        /// How it was allocated.
        pub alloc_flags: super::AllocMemoryFlags,
        /// A dma-buf of it.
        pub dmabuf_fd: u32,
        /// Zero.
        pub pad: u32,
    }
}
