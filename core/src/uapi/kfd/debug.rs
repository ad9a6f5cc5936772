//! The debugger's side: one block for each operation of DBG_TRAP (1.13), so that
//! no field means two things. All are of the same request.
//!
//! The debugged process is named by `pid`, which may be the caller's own. Errors
//! of every operation: EINVAL no hardware scheduler, or debugging not enabled;
//! ESRCH no such process; EPERM not its tracer, or its runtime is not ready;
//! EOPNOTSUPP a secondary context on either side.
//!
//! After these, the requests that debuggers used before, all answered EPERM.

use crate::uapi::scalar::{flags, open_enum};
use crate::uapi::{block, record};

/// A queue id that names none, a GPU number that names none.
pub const INVALID_ID: u32 = u32::MAX;

/// In an answer of [`DbgTrapSuspendQueues`] and [`DbgTrapResumeQueues`]: the
/// hardware failed.
pub const DBG_QUEUE_ERROR_MASK: u32 = 1 << 30;

/// In the same answers: no such queue, or it is new or being destroyed.
pub const DBG_QUEUE_INVALID_MASK: u32 = 1 << 31;

open_enum! {
    /// What a DBG_TRAP request does; each has its block.
    pub struct DbgTrapOp: u32 {
        /// [`DbgTrapEnable`].
        const ENABLE = 0;
        /// [`DbgTrapDisable`].
        const DISABLE = 1;
        /// [`DbgTrapSendRuntimeEvent`].
        const SEND_RUNTIME_EVENT = 2;
        /// [`DbgTrapSetExceptionsEnabled`].
        const SET_EXCEPTIONS_ENABLED = 3;
        /// [`DbgTrapSetWaveLaunchOverride`].
        const SET_WAVE_LAUNCH_OVERRIDE = 4;
        /// [`DbgTrapSetWaveLaunchMode`].
        const SET_WAVE_LAUNCH_MODE = 5;
        /// [`DbgTrapSuspendQueues`].
        const SUSPEND_QUEUES = 6;
        /// [`DbgTrapResumeQueues`].
        const RESUME_QUEUES = 7;
        /// [`DbgTrapSetNodeAddressWatch`].
        const SET_NODE_ADDRESS_WATCH = 8;
        /// [`DbgTrapClearNodeAddressWatch`].
        const CLEAR_NODE_ADDRESS_WATCH = 9;
        /// [`DbgTrapSetFlags`].
        const SET_FLAGS = 10;
        /// [`DbgTrapQueryDebugEvent`].
        const QUERY_DEBUG_EVENT = 11;
        /// [`DbgTrapQueryExceptionInfo`].
        const QUERY_EXCEPTION_INFO = 12;
        /// [`DbgTrapGetQueueSnapshot`].
        const GET_QUEUE_SNAPSHOT = 13;
        /// [`DbgTrapGetDeviceSnapshot`].
        const GET_DEVICE_SNAPSHOT = 14;
    }
}

open_enum! {
    /// What happened to a queue, a device or a process. Code n is bit n - 1 of
    /// an [`ExceptionMask`].
    pub struct ExceptionCode: u32 {
        /// Nothing.
        const NONE = 0;
        /// Queue: a wave aborted.
        const QUEUE_WAVE_ABORT = 1;
        /// Queue: a wave trapped.
        const QUEUE_WAVE_TRAP = 2;
        /// Queue: an arithmetic exception.
        const QUEUE_WAVE_MATH_ERROR = 3;
        /// Queue: an illegal instruction.
        const QUEUE_WAVE_ILLEGAL_INSTRUCTION = 4;
        /// Queue: a memory violation of a wave.
        const QUEUE_WAVE_MEMORY_VIOLATION = 5;
        /// Queue: an access to an aperture that is not the wave's.
        const QUEUE_WAVE_APERTURE_VIOLATION = 6;
        /// Packet: grid dimensions.
        const QUEUE_PACKET_DISPATCH_DIM_INVALID = 16;
        /// Packet: group segment size.
        const QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID = 17;
        /// Packet: code address.
        const QUEUE_PACKET_DISPATCH_CODE_INVALID = 18;
        /// Packet: reserved bits.
        const QUEUE_PACKET_RESERVED = 19;
        /// Packet: kind.
        const QUEUE_PACKET_UNSUPPORTED = 20;
        /// Packet: work-group size.
        const QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID = 21;
        /// Packet: register counts.
        const QUEUE_PACKET_DISPATCH_REGISTER_INVALID = 22;
        /// Packet: vendor-specific kind.
        const QUEUE_PACKET_VENDOR_UNSUPPORTED = 23;
        /// Queue: it could not be preempted.
        const QUEUE_PREEMPTION_ERROR = 30;
        /// Queue: the debugger has not seen it yet.
        const QUEUE_NEW = 31;
        /// Device: a queue is gone.
        const DEVICE_QUEUE_DELETE = 32;
        /// Device: a memory violation.
        const DEVICE_MEMORY_VIOLATION = 33;
        /// Device: an uncorrectable memory error.
        const DEVICE_RAS_ERROR = 34;
        /// Device: it stopped for good.
        const DEVICE_FATAL_HALT = 35;
        /// Device: the debugger has not seen it yet.
        const DEVICE_NEW = 36;
        /// Process: its runtime came or went.
        const PROCESS_RUNTIME = 48;
        /// Process: a device was removed.
        const PROCESS_DEVICE_REMOVE = 49;
    }
}

impl ExceptionCode {
    /// The code's bit; none for [`ExceptionCode::NONE`] and above 64.
    #[must_use]
    pub const fn mask(self) -> ExceptionMask {
        let bit = match self.0.checked_sub(1) {
            Some(shift) => match 1_u64.checked_shl(shift) {
                Some(bit) => bit,
                None => 0,
            },
            None => 0,
        };
        ExceptionMask::from_bits_retain(bit)
    }
}

flags! {
    /// A set of [`ExceptionCode`]s.
    pub struct ExceptionMask: u64 {
        /// All codes of queues.
        const QUEUE = 0x607f_803f;
        /// All codes of devices.
        const DEVICE = 0xf_8000_0000;
        /// All codes of processes.
        const PROCESS = 0x1_8000_0000_0000;
    }
}

open_enum! {
    /// Where the runtime of a process stands.
    pub struct DbgRuntimeState: u32 {
        /// Not enabled.
        const DISABLED = 0;
        /// Enabled.
        const ENABLED = 1;
        /// Its enabling waits for the debugger.
        const ENABLED_BUSY = 2;
        /// Its enabling failed.
        const ENABLED_ERROR = 3;
    }
}

record! {
    /// The runtime of a debugged process.
    pub struct RuntimeInfo: "kfd_runtime_info", 16 bytes {
        /// Address of its rendezvous structure, in its memory.
        pub r_debug: u64,
        /// Where it stands.
        pub runtime_state: DbgRuntimeState,
        /// 1: trap temporaries are set up at wave launch.
        pub ttmp_setup: u32,
    }
}

block! {
    /// Begins to debug a process.
    ///
    /// EALREADY: it is debugged. ENODEV: it has a gfx7 or gfx8 GPU. EBUSY: global
    /// wave sync is in use where that does not go together. EBADF. EFAULT.
    pub struct DbgTrapEnable: ReadWrite b'K' 0x26 "DBG_TRAP_ENABLE", 32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::ENABLE`].
        pub op: DbgTrapOp = DbgTrapOp::ENABLE,
        /// What the debugger wants to be told.
        pub exception_mask: ExceptionMask,
        /// A [`RuntimeInfo`].
        pub rinfo_ptr: u64 => Out,
        /// Bytes of that array; answer: bytes the driver has.
        pub rinfo_size: u32,
        /// Descriptor of a file that the driver writes to when there is something
        /// to tell.
        pub dbg_fd: u32,
    }
}

block! {
    /// Ends it.
    pub struct DbgTrapDisable: ReadWrite b'K' 0x26 "DBG_TRAP_DISABLE", 32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::DISABLE`].
        pub op: DbgTrapOp = DbgTrapOp::DISABLE,
        /// Zero.
        pub reserved: [u64; 3],
    }
}

block! {
    /// Passes exceptions on to the process's runtime. PROCESS_RUNTIME lets a
    /// waiting RUNTIME_ENABLE go on.
    ///
    /// ENODEV: unknown GPU.
    pub struct DbgTrapSendRuntimeEvent: ReadWrite b'K' 0x26 "DBG_TRAP_SEND_RUNTIME_EVENT",
        32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::SEND_RUNTIME_EVENT`].
        pub op: DbgTrapOp = DbgTrapOp::SEND_RUNTIME_EVENT,
        /// What.
        pub exception_mask: ExceptionMask,
        /// For exceptions of a device.
        pub gpu_id: u32,
        /// For exceptions of a queue.
        pub queue_id: u32,
        /// Zero.
        pub reserved: u64,
    }
}

block! {
    /// Changes what the debugger wants to be told.
    pub struct DbgTrapSetExceptionsEnabled: ReadWrite b'K' 0x26 "DBG_TRAP_SET_EXCEPTIONS_ENABLED",
        32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::SET_EXCEPTIONS_ENABLED`].
        pub op: DbgTrapOp = DbgTrapOp::SET_EXCEPTIONS_ENABLED,
        /// What.
        pub exception_mask: ExceptionMask,
        /// Zero.
        pub reserved: [u64; 2],
    }
}

open_enum! {
    /// How [`DbgTrapSetWaveLaunchOverride`] combines masks.
    pub struct DbgTrapOverrideMode: u32 {
        /// Adds to what waves ask for.
        const OR = 0;
        /// Replaces it.
        const REPLACE = 1;
    }
}

flags! {
    /// What makes a wave trap.
    pub struct DbgTrapMask: u32 {
        /// An invalid floating-point operation.
        const FP_INVALID = 1 << 0;
        /// A denormal floating-point input.
        const FP_INPUT_DENORMAL = 1 << 1;
        /// A floating-point division by zero.
        const FP_DIVIDE_BY_ZERO = 1 << 2;
        /// A floating-point overflow.
        const FP_OVERFLOW = 1 << 3;
        /// A floating-point underflow.
        const FP_UNDERFLOW = 1 << 4;
        /// An inexact floating-point result.
        const FP_INEXACT = 1 << 5;
        /// An integer division by zero.
        const INT_DIVIDE_BY_ZERO = 1 << 6;
        /// An address watch point.
        const DBG_ADDRESS_WATCH = 1 << 7;
        /// A memory violation.
        const DBG_MEMORY_VIOLATION = 1 << 8;
        /// Its first instruction.
        const TRAP_ON_WAVE_START = 1 << 30;
        /// Its last one.
        const TRAP_ON_WAVE_END = 1 << 31;
    }
}

block! {
    /// Overrides what makes waves trap.
    ///
    /// EINVAL: mode. EACCES: a bit that is not supported.
    pub struct DbgTrapSetWaveLaunchOverride: ReadWrite b'K' 0x26
        "DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE", 32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::SET_WAVE_LAUNCH_OVERRIDE`].
        pub op: DbgTrapOp = DbgTrapOp::SET_WAVE_LAUNCH_OVERRIDE,
        /// How.
        pub override_mode: DbgTrapOverrideMode,
        /// What; answer: what it was.
        pub enable_mask: DbgTrapMask,
        /// What is needed; answer: what there is.
        pub support_request_mask: DbgTrapMask,
        /// Zero.
        pub pad: u32,
        /// Zero.
        pub reserved: u64,
    }
}

open_enum! {
    /// How new waves start.
    pub struct DbgTrapWaveLaunchMode: u32 {
        /// Running.
        const NORMAL = 0;
        /// Halted.
        const HALT = 1;
        /// In single steps.
        const DEBUG = 3;
    }
}

block! {
    /// Sets how new waves start.
    pub struct DbgTrapSetWaveLaunchMode: ReadWrite b'K' 0x26 "DBG_TRAP_SET_WAVE_LAUNCH_MODE",
        32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::SET_WAVE_LAUNCH_MODE`].
        pub op: DbgTrapOp = DbgTrapOp::SET_WAVE_LAUNCH_MODE,
        /// How.
        pub launch_mode: DbgTrapWaveLaunchMode,
        /// Zero.
        pub pad: u32,
        /// Zero.
        pub reserved: [u64; 2],
    }
}

block! {
    /// Suspends queues; the answer is how many. A suspended queue is not
    /// destroyed before it is resumed.
    ///
    /// EINVAL: more than 1024 queues, or a count without an array.
    pub struct DbgTrapSuspendQueues: ReadWrite b'K' 0x26 "DBG_TRAP_SUSPEND_QUEUES",
        32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::SUSPEND_QUEUES`].
        pub op: DbgTrapOp = DbgTrapOp::SUSPEND_QUEUES,
        /// Exceptions to clear.
        pub exception_mask: ExceptionMask,
        /// An array of `u32` queue ids; answer: with [`DBG_QUEUE_ERROR_MASK`] or
        /// [`DBG_QUEUE_INVALID_MASK`] in those that failed.
        pub queue_array_ptr: u64 => InOut,
        /// Elements in it.
        pub num_queues: u32,
        /// Time for waves to end by themselves, in units of 1024 GPU clock cycles.
        pub grace_period: u32,
    }
}

block! {
    /// Resumes queues; the answer is how many.
    ///
    /// EINVAL: more than 1024 queues, or a count without an array.
    pub struct DbgTrapResumeQueues: ReadWrite b'K' 0x26 "DBG_TRAP_RESUME_QUEUES", 32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::RESUME_QUEUES`].
        pub op: DbgTrapOp = DbgTrapOp::RESUME_QUEUES,
        /// As in [`DbgTrapSuspendQueues::queue_array_ptr`].
        pub queue_array_ptr: u64 => InOut,
        /// Elements in it.
        pub num_queues: u32,
        /// Zero.
        pub pad: u32,
        /// Zero.
        pub reserved: u64,
    }
}

open_enum! {
    /// Which accesses an address watch point notices.
    pub struct DbgTrapAddressWatchMode: u32 {
        /// Reads.
        const READ = 0;
        /// Writes and atomics.
        const NONREAD = 1;
        /// Atomics.
        const ATOMIC = 2;
        /// Any.
        const ALL = 3;
    }
}

block! {
    /// Sets an address watch point on a GPU; each has 4.
    ///
    /// ENODEV: unknown GPU. ENOMEM: none left.
    pub struct DbgTrapSetNodeAddressWatch: ReadWrite b'K' 0x26 "DBG_TRAP_SET_NODE_ADDRESS_WATCH",
        32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::SET_NODE_ADDRESS_WATCH`].
        pub op: DbgTrapOp = DbgTrapOp::SET_NODE_ADDRESS_WATCH,
        /// Where.
        pub address: u64,
        /// Which accesses.
        pub mode: DbgTrapAddressWatchMode,
        /// Which bits of the address count.
        pub mask: u32,
        /// The GPU.
        pub gpu_id: u32,
        /// Answer: the watch point.
        pub id: u32,
    }
}

block! {
    /// Clears an address watch point.
    ///
    /// ENODEV: unknown GPU. EINVAL: not a watch point of this process.
    pub struct DbgTrapClearNodeAddressWatch: ReadWrite b'K' 0x26
        "DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH", 32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::CLEAR_NODE_ADDRESS_WATCH`].
        pub op: DbgTrapOp = DbgTrapOp::CLEAR_NODE_ADDRESS_WATCH,
        /// The GPU.
        pub gpu_id: u32,
        /// The watch point.
        pub id: u32,
        /// Zero.
        pub reserved: [u64; 2],
    }
}

flags! {
    /// How waves behave while they are debugged.
    pub struct DbgTrapFlags: u32 {
        /// One memory operation at a time, so that its address is exact.
        const SINGLE_MEM_OP = 1 << 0;
        /// One arithmetic operation at a time.
        const SINGLE_ALU_OP = 1 << 1;
        /// LDS accesses out of range trap (1.21).
        const LDS_OUT_OF_ADDR_RANGE = 1 << 2;
    }
}

block! {
    /// Sets how waves behave.
    ///
    /// EACCES: a flag that some GPU does not support; the old ones stay.
    pub struct DbgTrapSetFlags: ReadWrite b'K' 0x26 "DBG_TRAP_SET_FLAGS", 32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::SET_FLAGS`].
        pub op: DbgTrapOp = DbgTrapOp::SET_FLAGS,
        /// How; answer: how it was, on failure too.
        pub flags: DbgTrapFlags,
        /// Zero.
        pub pad: u32,
        /// Zero.
        pub reserved: [u64; 2],
    }
}

block! {
    /// Asks for a queue, device or process with an exception, and clears some.
    ///
    /// EAGAIN: there is none. That is an answer and not sent again.
    pub struct DbgTrapQueryDebugEvent: ReadWrite b'K' 0x26 "DBG_TRAP_QUERY_DEBUG_EVENT",
        32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::QUERY_DEBUG_EVENT`].
        pub op: DbgTrapOp = DbgTrapOp::QUERY_DEBUG_EVENT,
        /// What to clear; answer: what there was.
        pub exception_mask: ExceptionMask,
        /// Answer: the GPU, if it is one.
        pub gpu_id: u32,
        /// Answer: the queue, if it is one.
        pub queue_id: u32,
        /// Zero.
        pub reserved: u64,
    }
}

block! {
    /// Asks for more about an exception.
    ///
    /// EINVAL: no array, unknown source or code. ENODATA: it was not raised.
    pub struct DbgTrapQueryExceptionInfo: ReadWrite b'K' 0x26 "DBG_TRAP_QUERY_EXCEPTION_INFO",
        32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::QUERY_EXCEPTION_INFO`].
        pub op: DbgTrapOp = DbgTrapOp::QUERY_EXCEPTION_INFO,
        /// A [`super::MemoryExceptionData`] for DEVICE_MEMORY_VIOLATION, a
        /// [`RuntimeInfo`] for PROCESS_RUNTIME.
        pub info_ptr: u64 => Out,
        /// Bytes of that array; answer: bytes there are.
        pub info_size: u32,
        /// The queue or GPU.
        pub source_id: u32,
        /// Which exception.
        pub exception_code: ExceptionCode,
        /// 1: clear it.
        pub clear_exception: u32,
    }
}

record! {
    /// One queue of a debugged process.
    pub struct QueueSnapshotEntry: "kfd_queue_snapshot_entry", 64 bytes {
        /// Exceptions raised.
        pub exception_status: ExceptionMask,
        /// GPU address of the ring.
        pub ring_base_address: u64,
        /// GPU address of the write pointer.
        pub write_pointer_address: u64,
        /// GPU address of the read pointer.
        pub read_pointer_address: u64,
        /// Address of the save area.
        pub ctx_save_restore_address: u64,
        /// The queue.
        pub queue_id: u32,
        /// Its GPU.
        pub gpu_id: u32,
        /// Bytes of the ring.
        pub ring_size: u32,
        /// What it executes.
        pub queue_type: super::QueueType,
        /// Bytes of the save area of one XCC.
        pub ctx_save_restore_area_size: u32,
        /// Zero.
        pub reserved: u32,
    }
}

block! {
    /// Lists the queues and clears exceptions.
    ///
    /// EINVAL: `entry_size` 0.
    pub struct DbgTrapGetQueueSnapshot: ReadWrite b'K' 0x26 "DBG_TRAP_GET_QUEUE_SNAPSHOT",
        32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::GET_QUEUE_SNAPSHOT`].
        pub op: DbgTrapOp = DbgTrapOp::GET_QUEUE_SNAPSHOT,
        /// Exceptions to clear.
        pub exception_mask: ExceptionMask,
        /// An array of [`QueueSnapshotEntry`].
        pub snapshot_buf_ptr: u64 => Out,
        /// Elements in it; answer: queues there are.
        pub num_queues: u32,
        /// Bytes from one element to the next; answer: bytes filled of each.
        pub entry_size: u32,
    }
}

record! {
    /// One GPU of a debugged process. Numbers as in its sysfs properties.
    pub struct DbgDeviceInfoEntry: "kfd_dbg_device_info_entry", 120 bytes {
        /// Exceptions raised.
        pub exception_status: ExceptionMask,
        /// First address of the LDS aperture.
        pub lds_base: u64,
        /// Its last address.
        pub lds_limit: u64,
        /// First address of the scratch aperture.
        pub scratch_base: u64,
        /// Its last address.
        pub scratch_limit: u64,
        /// First address that can be mapped.
        pub gpuvm_base: u64,
        /// The last one.
        pub gpuvm_limit: u64,
        /// The GPU.
        pub gpu_id: u32,
        /// PCI bus, device and function.
        pub location_id: u32,
        /// PCI vendor.
        pub vendor_id: u32,
        /// PCI device.
        pub device_id: u32,
        /// PCI revision.
        pub revision_id: u32,
        /// PCI subsystem vendor.
        pub subsystem_vendor_id: u32,
        /// PCI subsystem device.
        pub subsystem_device_id: u32,
        /// Version of the command processor's firmware.
        pub fw_version: u32,
        /// MMmmss, decimal.
        pub gfx_target_version: u32,
        /// SIMDs.
        pub simd_count: u32,
        /// Waves a SIMD can hold.
        pub max_waves_per_simd: u32,
        /// Shader arrays.
        pub array_count: u32,
        /// Shader arrays of an engine.
        pub simd_arrays_per_engine: u32,
        /// XCCs.
        pub num_xcc: u32,
        /// Bits of the sysfs property `capability`.
        pub capability: u32,
        /// Bits of the sysfs property `debug_prop`.
        pub debug_prop: u32,
    }
}

block! {
    /// Lists the GPUs and clears exceptions.
    pub struct DbgTrapGetDeviceSnapshot: ReadWrite b'K' 0x26 "DBG_TRAP_GET_DEVICE_SNAPSHOT",
        32 bytes, Eintr {
        /// The process.
        pub pid: u32,
        /// Always [`DbgTrapOp::GET_DEVICE_SNAPSHOT`].
        pub op: DbgTrapOp = DbgTrapOp::GET_DEVICE_SNAPSHOT,
        /// Exceptions to clear.
        pub exception_mask: ExceptionMask,
        /// An array of [`DbgDeviceInfoEntry`].
        pub snapshot_buf_ptr: u64 => Out,
        /// Elements in it; answer: GPUs there are.
        pub num_devices: u32,
        /// Bytes from one element to the next; answer: bytes filled of each.
        pub entry_size: u32,
    }
}

block! {
    /// Deprecated. EPERM.
    pub struct DbgRegister: Write b'K' 0x0d "DBG_REGISTER_DEPRECATED", 8 bytes, Never {
        /// The GPU.
        pub gpu_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

block! {
    /// Deprecated. EPERM.
    pub struct DbgUnregister: Write b'K' 0x0e "DBG_UNREGISTER_DEPRECATED", 8 bytes, Never {
        /// The GPU.
        pub gpu_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

block! {
    /// Deprecated. EPERM.
    pub struct DbgAddressWatch: Write b'K' 0x0f "DBG_ADDRESS_WATCH_DEPRECATED", 16 bytes, Never {
        /// Watch points.
        pub content_ptr: u64 => In,
        /// The GPU.
        pub gpu_id: u32,
        /// Bytes of the array, with these two fields counted.
        pub buf_size_in_bytes: u32,
    }
}

block! {
    /// Deprecated. EPERM.
    pub struct DbgWaveControl: Write b'K' 0x10 "DBG_WAVE_CONTROL_DEPRECATED", 16 bytes, Never {
        /// What to do to which waves.
        pub content_ptr: u64 => In,
        /// The GPU.
        pub gpu_id: u32,
        /// Bytes of the array, with these two fields counted.
        pub buf_size_in_bytes: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_says_which_operation_it_is() {
        let block = DbgTrapSuspendQueues { pid: 1, ..Default::default() };
        assert_eq!((block.op, block.num_queues), (DbgTrapOp::SUSPEND_QUEUES, 0));
    }

    #[test]
    fn masks_are_made_of_codes() {
        let mut masks = [0_u64; 3];
        for &(name, code) in ExceptionCode::NAMES {
            let kind = match name {
                "NONE" => continue,
                _ if name.starts_with("QUEUE_") => 0,
                _ if name.starts_with("DEVICE_") => 1,
                _ => 2,
            };
            masks[kind] |= code.mask().bits();
        }
        let [queue, device, process] = masks;
        assert_eq!(queue, ExceptionMask::QUEUE.bits());
        assert_eq!(device, ExceptionMask::DEVICE.bits());
        assert_eq!(process, ExceptionMask::PROCESS.bits());
    }

    #[test]
    fn codes_without_a_bit() {
        assert!(ExceptionCode::NONE.mask().is_empty());
        assert_eq!(ExceptionCode(64).mask().bits(), 1 << 63);
        assert!(ExceptionCode(65).mask().is_empty());
        assert!(ExceptionCode(u32::MAX).mask().is_empty());
    }
}
