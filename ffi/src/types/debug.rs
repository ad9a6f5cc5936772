//! Debugging of waves and queues.

use core::ffi::c_void;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::open_enum;

/// Bit of the capabilities of `hsaKmtGetRuntimeCapabilities`: core dumps are possible (2025).
pub const HSA_RUNTIME_ENABLE_CAPS_SUPPORTS_CORE_DUMP_MASK: u32 = 0x8000_0000;

open_enum! {
    /// What to do with waves (`hsaKmtDbgWavefrontControl`).
    pub struct HSA_DBG_WAVEOP: u32 {
        /// Stop.
        HSA_DBG_WAVEOP_HALT as HALT = 1,
        /// Go on.
        HSA_DBG_WAVEOP_RESUME as RESUME = 2,
        /// End.
        HSA_DBG_WAVEOP_KILL as KILL = 3,
        /// Enter debug mode.
        HSA_DBG_WAVEOP_DEBUG as DEBUG = 4,
        /// Enter the trap handler.
        HSA_DBG_WAVEOP_TRAP as TRAP = 5,
        /// Number of operations.
        HSA_DBG_NUM_WAVEOP as NUM = 5,
        /// Makes the C enumeration 32 bits wide.
        HSA_DBG_MAX_WAVEOP as MAX = 0xffff_ffff,
    }
}

open_enum! {
    /// Which waves (`hsaKmtDbgWavefrontControl`).
    pub struct HSA_DBG_WAVEMODE: u32 {
        /// One.
        HSA_DBG_WAVEMODE_SINGLE as SINGLE = 0,
        /// All of the process.
        HSA_DBG_WAVEMODE_BROADCAST_PROCESS as BROADCAST_PROCESS = 2,
        /// All of the process on one compute unit.
        HSA_DBG_WAVEMODE_BROADCAST_PROCESS_CU as BROADCAST_PROCESS_CU = 3,
        /// Number of modes.
        HSA_DBG_NUM_WAVEMODE as NUM = 3,
        /// Makes the C enumeration 32 bits wide.
        HSA_DBG_MAX_WAVEMODE as MAX = 0xffff_ffff,
    }
}

open_enum! {
    /// Who wrote a wave message.
    pub struct HSA_DBG_WAVEMSG_TYPE: u32 {
        /// The device.
        HSA_DBG_WAVEMSG_AUTO as AUTO = 0,
        /// A program.
        HSA_DBG_WAVEMSG_USER as USER = 1,
        /// An error.
        HSA_DBG_WAVEMSG_ERROR as ERROR = 2,
        /// Number of kinds.
        HSA_DBG_NUM_WAVEMSG as NUM = 3,
        /// Makes the C enumeration 32 bits wide.
        HSA_DBG_MAX_WAVEMSG as MAX = 0xffff_ffff,
    }
}

open_enum! {
    /// Which accesses a watch point catches.
    pub struct HSA_DBG_WATCH_MODE: u32 {
        /// Reads.
        HSA_DBG_WATCH_READ as READ = 0,
        /// Writes and atomic operations.
        HSA_DBG_WATCH_NONREAD as NONREAD = 1,
        /// Atomic operations.
        HSA_DBG_WATCH_ATOMIC as ATOMIC = 2,
        /// All.
        HSA_DBG_WATCH_ALL as ALL = 3,
        /// Number of modes.
        HSA_DBG_WATCH_NUM as NUM = 4,
    }
}

open_enum! {
    /// How a set of traps is applied.
    pub struct HSA_DBG_TRAP_OVERRIDE: u32 {
        /// Added to what is enabled.
        HSA_DBG_TRAP_OVERRIDE_OR as OR = 0,
        /// In place of what is enabled.
        HSA_DBG_TRAP_OVERRIDE_REPLACE as REPLACE = 1,
        /// Number of ways.
        HSA_DBG_TRAP_OVERRIDE_NUM as NUM = 2,
    }
}

open_enum! {
    /// Bits of a set of traps; their union is a legal value.
    pub struct HSA_DBG_TRAP_MASK: u32 {
        /// Invalid floating-point operation.
        HSA_DBG_TRAP_MASK_FP_INVALID as FP_INVALID = 0x001,
        /// Denormal floating-point operand.
        HSA_DBG_TRAP_MASK_FP_INPUT_DENOMAL as FP_INPUT_DENORMAL = 0x002,
        /// Floating-point division by zero.
        HSA_DBG_TRAP_MASK_FP_DIVIDE_BY_ZERO as FP_DIVIDE_BY_ZERO = 0x004,
        /// Floating-point overflow.
        HSA_DBG_TRAP_MASK_FP_OVERFLOW as FP_OVERFLOW = 0x008,
        /// Floating-point underflow.
        HSA_DBG_TRAP_MASK_FP_UNDERFLOW as FP_UNDERFLOW = 0x010,
        /// Inexact floating-point result.
        HSA_DBG_TRAP_MASK_FP_INEXACT as FP_INEXACT = 0x020,
        /// Integer division by zero.
        HSA_DBG_TRAP_MASK_INT_DIVIDE_BY_ZERO as INT_DIVIDE_BY_ZERO = 0x040,
        /// Watch point.
        HSA_DBG_TRAP_MASK_DBG_ADDRESS_WATCH as DBG_ADDRESS_WATCH = 0x080,
        /// Memory violation.
        HSA_DBG_TRAP_MASK_DBG_MEMORY_VIOLATION as DBG_MEMORY_VIOLATION = 0x100,
    }
}

open_enum! {
    /// How waves start.
    pub struct HSA_DBG_WAVE_LAUNCH_MODE: u32 {
        /// Running.
        HSA_DBG_WAVE_LAUNCH_MODE_NORMAL as NORMAL = 0,
        /// Halted.
        HSA_DBG_WAVE_LAUNCH_MODE_HALT as HALT = 1,
        /// Ended at once.
        HSA_DBG_WAVE_LAUNCH_MODE_KILL as KILL = 2,
        /// One instruction at a time.
        HSA_DBG_WAVE_LAUNCH_MODE_SINGLE_STEP as SINGLE_STEP = 3,
        /// Not at all.
        HSA_DBG_WAVE_LAUNCH_MODE_DISABLE as DISABLE = 4,
        /// Number of modes.
        HSA_DBG_WAVE_LAUNCH_MODE_NUM as NUM = 5,
    }
}

open_enum! {
    /// Bits for the debugging of a node.
    pub struct HSA_DBG_NODE_CONTROL: u32 {
        /// Highest bit number.
        HSA_DBG_NODE_CONTROL_FLAG_MAX as FLAG_MAX = 1,
    }
}

open_enum! {
    /// What a debug event of a queue is.
    pub struct HSA_DEBUG_EVENT_TYPE: u32 {
        /// Nothing.
        HSA_DEBUG_EVENT_TYPE_NONE as NONE = 0,
        /// A trap.
        HSA_DEBUG_EVENT_TYPE_TRAP as TRAP = 1,
        /// A memory fault.
        HSA_DEBUG_EVENT_TYPE_VMFAULT as VM_FAULT = 2,
        /// Both.
        HSA_DEBUG_EVENT_TYPE_TRAP_VMFAULT as TRAP_VM_FAULT = 3,
    }
}

open_enum! {
    /// Exceptions that a debugger sees (`linux/kfd_ioctl.h`, `kfd_dbg_trap_exception_code`; 2025).
    pub struct HSA_DBG_TRAP_EXCEPTION_CODE: u32 {
        /// None.
        HSA_DBG_EC_NONE as NONE = 0,
        /// A wave aborted.
        HSA_DBG_EC_QUEUE_WAVE_ABORT as QUEUE_WAVE_ABORT = 1,
        /// A wave trapped.
        HSA_DBG_EC_QUEUE_WAVE_TRAP as QUEUE_WAVE_TRAP = 2,
        /// A wave had an arithmetic exception.
        HSA_DBG_EC_QUEUE_WAVE_MATH_ERROR as QUEUE_WAVE_MATH_ERROR = 3,
        /// A wave met an illegal instruction.
        HSA_DBG_EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION as QUEUE_WAVE_ILLEGAL_INSTRUCTION = 4,
        /// A wave accessed memory that it may not.
        HSA_DBG_EC_QUEUE_WAVE_MEMORY_VIOLATION as QUEUE_WAVE_MEMORY_VIOLATION = 5,
        /// A wave left an aperture.
        HSA_DBG_EC_QUEUE_WAVE_APERTURE_VIOLATION as QUEUE_WAVE_APERTURE_VIOLATION = 6,
        /// A dispatch packet has wrong dimensions.
        HSA_DBG_EC_QUEUE_PACKET_DISPATCH_DIM_INVALID as QUEUE_PACKET_DISPATCH_DIM_INVALID = 16,
        /// A dispatch packet asks for too much group memory.
        HSA_DBG_EC_QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID
            as QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID = 17,
        /// A dispatch packet names no code.
        HSA_DBG_EC_QUEUE_PACKET_DISPATCH_CODE_INVALID as QUEUE_PACKET_DISPATCH_CODE_INVALID = 18,
        /// A packet sets reserved bits.
        HSA_DBG_EC_QUEUE_PACKET_RESERVED as QUEUE_PACKET_RESERVED = 19,
        /// A packet is not supported.
        HSA_DBG_EC_QUEUE_PACKET_UNSUPPORTED as QUEUE_PACKET_UNSUPPORTED = 20,
        /// A dispatch packet has too large a work group.
        HSA_DBG_EC_QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID
            as QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID = 21,
        /// A dispatch packet asks for too many registers.
        HSA_DBG_EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID
            as QUEUE_PACKET_DISPATCH_REGISTER_INVALID = 22,
        /// A vendor packet is not supported.
        HSA_DBG_EC_QUEUE_PACKET_VENDOR_UNSUPPORTED as QUEUE_PACKET_VENDOR_UNSUPPORTED = 23,
        /// A queue could not be preempted.
        HSA_DBG_EC_QUEUE_PREEMPTION_ERROR as QUEUE_PREEMPTION_ERROR = 30,
        /// A queue is new.
        HSA_DBG_EC_QUEUE_NEW as QUEUE_NEW = 31,
        /// A queue went.
        HSA_DBG_EC_DEVICE_QUEUE_DELETE as DEVICE_QUEUE_DELETE = 32,
        /// A device accessed memory that it may not.
        HSA_DBG_EC_DEVICE_MEMORY_VIOLATION as DEVICE_MEMORY_VIOLATION = 33,
        /// A device has an error that it cannot correct.
        HSA_DBG_EC_DEVICE_RAS_ERROR as DEVICE_RAS_ERROR = 34,
        /// A device stopped for good.
        HSA_DBG_EC_DEVICE_FATAL_HALT as DEVICE_FATAL_HALT = 35,
        /// A device is new.
        HSA_DBG_EC_DEVICE_NEW as DEVICE_NEW = 36,
        /// The runtime of the process started or ended.
        HSA_DBG_EC_PROCESS_RUNTIME as PROCESS_RUNTIME = 48,
        /// A device was removed.
        HSA_DBG_EC_PROCESS_DEVICE_REMOVE as PROCESS_DEVICE_REMOVE = 49,
        /// One above the last code.
        HSA_DBG_EC_MAX as MAX = 50,
    }
}

/// A message to a wave, as GPUs of the second generation take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaDbgWaveMsgAMDGen2 {
    /// The message.
    pub Value: u32,
    /// Zero.
    pub Reserved2: u32,
}

/// A message to a wave, by the generation of the GPU. In C a union with this one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaDbgWaveMessageAMD {
    /// The only form.
    pub WaveMsgInfoGen2: HsaDbgWaveMsgAMDGen2,
}

/// A message to a wave, and the memory that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaDbgWaveMessage {
    /// Memory that the message refers to.
    pub MemoryVA: *mut c_void,
    /// The message.
    pub DbgWaveMsg: HsaDbgWaveMessageAMD,
}
