//! Queues.

use crate::uapi::scalar::open_enum;
use crate::uapi::{block, record};

/// The highest percentage of a queue.
pub const MAX_QUEUE_PERCENTAGE: u32 = 100;

/// The highest priority of a queue.
pub const MAX_QUEUE_PRIORITY: u32 = 15;

open_enum! {
    /// What a queue's packets are and who executes them.
    pub struct QueueType: u32 {
        /// PM4 packets, compute engine.
        const COMPUTE = 0;
        /// SDMA packets, any PCIe engine.
        const SDMA = 1;
        /// AQL packets, compute engine.
        const COMPUTE_AQL = 2;
        /// SDMA packets, an engine for XGMI.
        const SDMA_XGMI = 3;
        /// SDMA packets, the engine named (1.17).
        const SDMA_BY_ENG_ID = 4;
    }
}

block! {
    /// Makes a queue. Each buffer must be a mapping of its own on this GPU, of
    /// exactly the length the driver computes (kernel-rules, CREATE_QUEUE).
    ///
    /// EINVAL: percentage, priority, sizes, buffers, unknown GPU. EFAULT:
    /// kernel addresses. 524 (ENOTSUPP): unknown type. ESRCH: no VM acquired.
    /// ENOSPC: too many queues here. ENOMEM, EPERM, EBUSY: no queue id, no slot,
    /// no doorbell. EIO, ETIME: the scheduler.
    pub struct CreateQueue: ReadWrite b'K' 0x02 "CREATE_QUEUE", 96 bytes, Eintr {
        /// GPU address of the ring.
        pub ring_base_address: u64,
        /// GPU address of the write pointer.
        pub write_pointer_address: u64,
        /// GPU address of the read pointer.
        pub read_pointer_address: u64,
        /// Answer: a [`super::MmapOffset`]; its low bits say where in the slice.
        pub doorbell_offset: u64,
        /// Bytes of the ring; a power of two.
        pub ring_size: u32,
        /// The GPU.
        pub gpu_id: u32,
        /// What it executes.
        pub queue_type: QueueType,
        /// Bits 0-7: percent of the time, 0 makes it inactive. Bits 8-15: the
        /// XCC of a PM4 queue.
        pub queue_percentage: u32,
        /// 0 to [`MAX_QUEUE_PRIORITY`].
        pub queue_priority: u32,
        /// Answer: starts at 0, one number for all GPUs of the context.
        pub queue_id: u32,
        /// GPU address of the end-of-pipe buffer, or 0.
        pub eop_buffer_address: u64,
        /// Bytes of it.
        pub eop_buffer_size: u64,
        /// Address of the context save area.
        pub ctx_save_restore_address: u64,
        /// Bytes of the save area of one XCC, without its debugger part.
        pub ctx_save_restore_size: u32,
        /// Bytes of the control stack within it; equal to sysfs `ctl_stack_size`.
        pub ctl_stack_size: u32,
        /// The engine of a [`QueueType::SDMA_BY_ENG_ID`] queue.
        pub sdma_engine_id: u32,
        /// Bytes of the metadata ring behind the ring; 0 or a power of two
        /// (1.22, not looked at before).
        pub metadata_ring_size: u32,
    }
}

block! {
    /// Destroys a queue. After ETIME or EIO (hardware hung) it is gone as well.
    ///
    /// EINVAL: unknown queue. EBUSY: being destroyed, or a debugger has it.
    pub struct DestroyQueue: ReadWrite b'K' 0x03 "DESTROY_QUEUE", 8 bytes, Eintr {
        /// The queue.
        pub queue_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

block! {
    /// Changes a queue: all four values at once. Ring 0 or percentage 0 makes it
    /// inactive.
    ///
    /// EINVAL: values. EFAULT: unknown queue, or a ring that is no mapping of
    /// that size. EACCES: the queue was reset.
    pub struct UpdateQueue: Write b'K' 0x07 "UPDATE_QUEUE", 24 bytes, Eintr {
        /// GPU address of the ring.
        pub ring_base_address: u64,
        /// The queue.
        pub queue_id: u32,
        /// Bytes of the ring; a power of two.
        pub ring_size: u32,
        /// As in [`CreateQueue::queue_percentage`].
        pub queue_percentage: u32,
        /// 0 to [`MAX_QUEUE_PRIORITY`].
        pub queue_priority: u32,
    }
}

block! {
    /// Chooses the compute units a queue may use.
    ///
    /// EINVAL: no bits, or not a multiple of 32; halves of a work-group
    /// processor on gfx10 and later. EFAULT: unknown queue too. EBUSY.
    pub struct SetCuMask: Write b'K' 0x1a "SET_CU_MASK", 16 bytes, Eintr {
        /// The queue.
        pub queue_id: u32,
        /// Bits in the mask; a multiple of 32, above 1024 cut off.
        pub num_cu_mask: u32,
        /// An array of `u32`, bit n of all for compute unit n.
        pub cu_mask_ptr: u64 => In,
    }
}

block! {
    /// Copies what the driver holds of an inactive queue's state into the save
    /// area and tells how much of that is in use, for its first XCC.
    ///
    /// EFAULT: unknown queue too. EINVAL: active, not a compute queue.
    pub struct GetQueueWaveState: ReadWrite b'K' 0x1b "GET_QUEUE_WAVE_STATE", 24 bytes, Eintr {
        /// Address of the save area. Not an array: the GPU has written into the
        /// same memory, and how long it is only the driver knows.
        pub ctl_stack_address: u64,
        /// Answer: bytes of the control stack in use.
        pub ctl_stack_used_size: u32,
        /// Answer: bytes of the save area in use.
        pub save_area_used_size: u32,
        /// The queue.
        pub queue_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

record! {
    /// What stands at the start of each XCC's part of a save area.
    pub struct ContextSaveAreaHeader: "kfd_context_save_area_header", 40 bytes {
        /// Bytes from here to the control stack.
        pub control_stack_offset: u32,
        /// Bytes of the control stack in use.
        pub control_stack_size: u32,
        /// Bytes from here to the end of the wave state.
        pub wave_state_offset: u32,
        /// Bytes of the wave state in use.
        pub wave_state_size: u32,
        /// Bytes from here to the debugger's part.
        pub debug_offset: u32,
        /// Bytes of the debugger's part.
        pub debug_size: u32,
        /// Address of a `u64` into which exception reasons are ORed.
        pub err_payload_addr: u64,
        /// The event set after that; 0 for none.
        pub err_event_id: u32,
        /// Zero.
        pub reserved1: u32,
    }
}

block! {
    /// Gives all global wave sync counters of the GPU to a queue, or takes them
    /// back.
    ///
    /// EINVAL: unknown queue, none to take. ENODEV: the GPU has none. EBUSY:
    /// another queue has them.
    pub struct AllocQueueGws: ReadWrite b'K' 0x1e "ALLOC_QUEUE_GWS", 16 bytes, Eintr {
        /// The queue.
        pub queue_id: u32,
        /// Above 0 gives, 0 takes.
        pub num_gws: u32,
        /// Answer: always 0.
        pub first_gws: u32,
        /// Zero.
        pub pad: u32,
    }
}
