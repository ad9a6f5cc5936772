//! Events and what they report.

use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{HSA_EVENTID, bit_register, open_enum};

open_enum! {
    /// What an event tells (`linux/kfd_ioctl.h`, KFD_IOC_EVENT).
    pub struct HSA_EVENTTYPE: u32 {
        /// A signal, from host or device.
        HSA_EVENTTYPE_SIGNAL as SIGNAL = 0,
        /// A node came or went.
        HSA_EVENTTYPE_NODECHANGE as NODE_CHANGE = 1,
        /// A device started or stopped.
        HSA_EVENTTYPE_DEVICESTATECHANGE as DEVICE_STATE_CHANGE = 2,
        /// A device failed or was reset.
        HSA_EVENTTYPE_HW_EXCEPTION as HW_EXCEPTION = 3,
        /// Something in the system changed.
        HSA_EVENTTYPE_SYSTEM_EVENT as SYSTEM_EVENT = 4,
        /// A signal to a debugger.
        HSA_EVENTTYPE_DEBUG_EVENT as DEBUG_EVENT = 5,
        /// A signal to a profiler.
        HSA_EVENTTYPE_PROFILE_EVENT as PROFILE_EVENT = 6,
        /// A queue stopped.
        HSA_EVENTTYPE_QUEUE_EVENT as QUEUE_EVENT = 7,
        /// A device accessed memory that it may not.
        HSA_EVENTTYPE_MEMORY as MEMORY = 8,
        /// One above the last kind.
        HSA_EVENTTYPE_MAXID as MAX_ID = 9,
        /// Makes the C enumeration 32 bits wide.
        HSA_EVENTTYPE_TYPE_SIZE as TYPE_SIZE = 0xffff_ffff,
    }
}

open_enum! {
    /// Time-outs in ms that have a name.
    pub struct HsaEventTimeOut: u32 {
        /// Look and return.
        HSA_EVENTTIMEOUT_IMMEDIATE as IMMEDIATE = 0,
        /// Wait for ever.
        HSA_EVENTTIMEOUT_INFINITE as INFINITE = 0xffff_ffff,
    }
}

open_enum! {
    /// What happened to a node.
    pub struct HSA_EVENTTYPE_NODECHANGE_FLAGS: u32 {
        /// It came.
        HSA_EVENTTYPE_NODECHANGE_ADD as ADD = 0,
        /// It went.
        HSA_EVENTTYPE_NODECHANGE_REMOVE as REMOVE = 1,
        /// Makes the C enumeration 32 bits wide.
        HSA_EVENTTYPE_NODECHANGE_SIZE as SIZE = 0xffff_ffff,
    }
}

open_enum! {
    /// What happened to a device.
    pub struct HSA_EVENTTYPE_DEVICESTATECHANGE_FLAGS: u32 {
        /// It started.
        HSA_EVENTTYPE_DEVICESTATUSCHANGE_START as START = 0,
        /// It stopped.
        HSA_EVENTTYPE_DEVICESTATUSCHANGE_STOP as STOP = 1,
        /// Makes the C enumeration 32 bits wide.
        HSA_EVENTTYPE_DEVICESTATUSCHANGE_SIZE as SIZE = 0xffff_ffff,
    }
}

open_enum! {
    /// Kind of device.
    pub struct HSA_DEVICE: u32 {
        /// Processor.
        HSA_DEVICE_CPU as CPU = 0,
        /// Graphics processor.
        HSA_DEVICE_GPU as GPU = 1,
        /// Number of kinds.
        MAX_HSA_DEVICE as MAX = 2,
    }
}

open_enum! {
    /// What a memory fault ends.
    pub struct HSA_EVENTID_MEMORYFLAGS: u32 {
        /// Nothing.
        HSA_EVENTID_MEMORY_RECOVERABLE as RECOVERABLE = 0,
        /// The process.
        HSA_EVENTID_MEMORY_FATAL_PROCESS as FATAL_PROCESS = 1,
        /// The address space.
        HSA_EVENTID_MEMORY_FATAL_VM as FATAL_VM = 2,
    }
}

open_enum! {
    /// Why a device failed (2025).
    pub struct HSA_EVENTID_HW_EXCEPTION_CAUSE: u32 {
        /// It hung.
        HSA_EVENTID_HW_EXCEPTION_GPU_HANG as GPU_HANG = 0,
        /// It found an error that it cannot correct.
        HSA_EVENTID_HW_EXCEPTION_ECC as ECC = 1,
    }
}

bit_register! {
    /// How a device broke the rules of memory. C has the bit-fields alone, without a word.
    #[repr(C)]
    pub struct HsaAccessAttributeFailure: u32 {
        /// No page is mapped there.
        NotPresent as NOT_PRESENT = 0..1,
        /// The page may not be written.
        ReadOnly as READ_ONLY = 1..2,
        /// The page may not be executed.
        NoExecute as NO_EXECUTE = 2..3,
        /// The page is not for the device.
        GpuAccess as GPU_ACCESS = 3..4,
        /// The memory has an error that it cannot correct.
        ECC as ECC = 4..5,
        /// The address may not be exact.
        Imprecise as IMPRECISE = 5..6,
        /// Kind of the error, as the kernel reports it (KFD_MEM_ERR).
        ErrorType as ERROR_TYPE = 6..9,
    }
}

/// A word that a signal event guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaSyncVar {
    /// Address of the word. In C a union of a pointer and an integer.
    pub SyncVar: u64,
    /// Size of the word in bytes.
    pub SyncVarSize: u64,
}

/// A node came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaNodeChange {
    /// Which of both.
    pub Flags: HSA_EVENTTYPE_NODECHANGE_FLAGS,
}

/// A device started or stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaDeviceStateChange {
    /// Node of the device.
    pub NodeId: u32,
    /// Kind of the device.
    pub Device: HSA_DEVICE,
    /// Which of both.
    pub Flags: HSA_EVENTTYPE_DEVICESTATECHANGE_FLAGS,
}

/// A device accessed memory that it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaMemoryAccessFault {
    /// Node of the device.
    pub NodeId: u32,
    /// The address, in bytes; its page, where the fault is imprecise.
    pub VirtualAddress: u64,
    /// Which rule it broke.
    pub Failure: HsaAccessAttributeFailure,
    /// What the fault ends.
    pub Flags: HSA_EVENTID_MEMORYFLAGS,
}

/// A device failed (2025).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaHwException {
    /// Node of the device.
    pub NodeId: u32,
    /// 0: the whole device was reset, 1: one engine.
    pub ResetType: u32,
    /// Whether device memory was lost.
    pub MemoryLost: u32,
    /// Why.
    pub ResetCause: HSA_EVENTID_HW_EXCEPTION_CAUSE,
}

/// What an event of [`HsaEventData::EventType`](HsaEventData) reports.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub union HsaEventReport {
    /// SIGNAL.
    pub SyncVar: HsaSyncVar,
    /// NODE_CHANGE.
    pub NodeChangeState: HsaNodeChange,
    /// DEVICE_STATE_CHANGE.
    pub DeviceState: HsaDeviceStateChange,
    /// MEMORY.
    pub MemoryAccessFault: HsaMemoryAccessFault,
    /// HW_EXCEPTION (2025).
    pub HwException: HsaHwException,
}

/// Kind and report of an event, and what a device needs to raise it.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaEventData {
    /// Kind of the event.
    pub EventType: HSA_EVENTTYPE,
    /// What it reports.
    pub EventData: HsaEventReport,
    /// Id of the event.
    pub HWData1: u64,
    /// Address of the slot that a device writes to raise it.
    pub HWData2: u64,
    /// What a device sends with its interrupt.
    pub HWData3: u32,
}

/// The kind and the words for the device; the report is a union.
impl fmt::Debug for HsaEventData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HsaEventData")
            .field("EventType", &{ self.EventType })
            .field("HWData1", &{ self.HWData1 })
            .field("HWData2", &{ self.HWData2 })
            .field("HWData3", &{ self.HWData3 })
            .finish_non_exhaustive()
    }
}

/// What kind of event to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaEventDescriptor {
    /// Kind of the event.
    pub EventType: HSA_EVENTTYPE,
    /// Node of the event, where the kind has one.
    pub NodeId: u32,
    /// The word that the event guards, for a signal.
    pub SyncVar: HsaSyncVar,
}

/// An event. The library allocates and frees it.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaEvent {
    /// Id of the event.
    pub EventId: HSA_EVENTID,
    /// Kind and report.
    pub EventData: HsaEventData,
}
