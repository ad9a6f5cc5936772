//! Queues and external semaphores.

use core::ffi::c_void;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::open_enum;

open_enum! {
    /// What a queue accepts.
    pub struct HSA_QUEUE_TYPE: u32 {
        /// PM4 packets.
        HSA_QUEUE_COMPUTE as COMPUTE = 1,
        /// SDMA packets, on an engine for the host link.
        HSA_QUEUE_SDMA as SDMA = 2,
        /// Video decoding.
        HSA_QUEUE_MULTIMEDIA_DECODE as MULTIMEDIA_DECODE = 3,
        /// Video encoding.
        HSA_QUEUE_MULTIMEDIA_ENCODE as MULTIMEDIA_ENCODE = 4,
        /// SDMA packets, on an engine for XGMI links.
        HSA_QUEUE_SDMA_XGMI as SDMA_XGMI = 5,
        /// SDMA packets, on the engine that the caller names (2025).
        HSA_QUEUE_SDMA_BY_ENG_ID as SDMA_BY_ENG_ID = 6,
        /// PM4 packets, owned by the operating system.
        HSA_QUEUE_COMPUTE_OS as COMPUTE_OS = 11,
        /// SDMA packets, owned by the operating system.
        HSA_QUEUE_SDMA_OS as SDMA_OS = 12,
        /// Video decoding, owned by the operating system.
        HSA_QUEUE_MULTIMEDIA_DECODE_OS as MULTIMEDIA_DECODE_OS = 13,
        /// Video encoding, owned by the operating system.
        HSA_QUEUE_MULTIMEDIA_ENCODE_OS as MULTIMEDIA_ENCODE_OS = 14,
        /// AQL packets.
        HSA_QUEUE_COMPUTE_AQL as COMPUTE_AQL = 21,
        /// AQL packets for SDMA.
        HSA_QUEUE_DMA_AQL as DMA_AQL = 22,
        /// AQL packets for SDMA over XGMI.
        HSA_QUEUE_DMA_AQL_XGMI as DMA_AQL_XGMI = 23,
        /// Makes the C enumeration 32 bits wide.
        HSA_QUEUE_TYPE_SIZE as SIZE = 0xffff_ffff,
    }
}

open_enum! {
    /// Urgency of a queue.
    ///
    /// Unlike every other enumeration it is 64 bits wide: its enumerators reach from -3 to
    /// `0xffff_ffff`.
    pub struct HSA_QUEUE_PRIORITY: i64 {
        /// Lowest.
        HSA_QUEUE_PRIORITY_MINIMUM as MINIMUM = -3,
        /// Low.
        HSA_QUEUE_PRIORITY_LOW as LOW = -2,
        /// Below normal.
        HSA_QUEUE_PRIORITY_BELOW_NORMAL as BELOW_NORMAL = -1,
        /// Normal.
        HSA_QUEUE_PRIORITY_NORMAL as NORMAL = 0,
        /// Above normal.
        HSA_QUEUE_PRIORITY_ABOVE_NORMAL as ABOVE_NORMAL = 1,
        /// High.
        HSA_QUEUE_PRIORITY_HIGH as HIGH = 2,
        /// Highest.
        HSA_QUEUE_PRIORITY_MAXIMUM as MAXIMUM = 3,
        /// One above the highest.
        HSA_QUEUE_PRIORITY_NUM_PRIORITY as NUM_PRIORITY = 4,
        /// Makes the C enumeration wider than 32 bits.
        HSA_QUEUE_PRIORITY_SIZE as SIZE = 0xffff_ffff,
    }
}

/// First bytes of the memory to which the state of a queue is saved.
///
/// Debuggers and core dumps read it (`linux/kfd_ioctl.h`, `kfd_context_save_area_header`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaUserContextSaveAreaHeader {
    /// Where the saved control stack begins, in bytes from this structure.
    pub ControlStackOffset: u32,
    /// Size of the saved control stack in bytes.
    pub ControlStackSize: u32,
    /// Where the saved waves begin, in bytes from this structure.
    pub WaveStateOffset: u32,
    /// Size of the saved waves in bytes.
    pub WaveStateSize: u32,
    /// Where the debugger's own memory begins, in bytes from this structure.
    pub DebugOffset: u32,
    /// Size of the debugger's own memory in bytes.
    pub DebugSize: u32,
    /// Where the trap handler and the kernel report why the queue stopped. Volatile.
    pub ErrorReason: *mut i64,
    /// The event that goes with the report.
    pub ErrorEventId: u32,
    /// Zero.
    pub Reserved1: u32,
}

/// What `hsaKmtReportQueue` would report; no known library has that function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaQueueReport {
    /// Address space number.
    pub VMID: u32,
    /// The ring.
    pub QueueAddress: *mut c_void,
    /// Size of the ring in bytes.
    pub QueueSize: u64,
}

open_enum! {
    /// Kind of a semaphore of another library (2026).
    pub struct HSA_EXTERNAL_SEMAPHORE_HANDLE_TYPE: u32 {
        /// NT handle.
        HSA_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32 as OPAQUE_WIN32 = 0,
        /// Kernel-mode thunk handle of Windows.
        HSA_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT as OPAQUE_WIN32_KMT = 1,
        /// File descriptor.
        HSA_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD as OPAQUE_FD = 2,
    }
}

/// An imported semaphore. Callers pass it by value (2026).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HSA_EXTERNAL_SEMAPHORE_HANDLE {
    /// Opaque.
    pub handle: u64,
}
