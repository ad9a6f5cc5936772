//! The structures and callbacks of `ffi/include/hsakmt_ext.h`.
//!
//! They are the same in all generations and have natural alignment. Each structure begins with its
//! size as the caller was compiled with it; a longer one of a later library never writes beyond it.
#![allow(unsafe_code)]

use core::ffi::{c_char, c_void};

use zerocopy::{FromZeros, Immutable, KnownLayout};

use super::{HSAKMT_STATUS, HsaEvent, open_enum};
use crate::generation::caller_memory::SizedByCaller;

/// Bytes of [`HsaExtErrorDetail::ObjectName`], with the terminating zero.
pub const HSA_EXT_OBJECT_NAME_SIZE: usize = 96;

/// Bytes of [`HsaExtErrorDetail::OperationName`], with the terminating zero.
pub const HSA_EXT_OPERATION_NAME_SIZE: usize = 48;

/// A failed call, as precisely as the library knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaExtErrorDetail {
    /// Size of this structure in bytes; the caller sets it.
    pub Size: u32,
    /// What the call returned.
    pub Status: HSAKMT_STATUS,
    /// The kernel's `errno`; 0 where no system call failed.
    pub Errno: i32,
    /// Number of the operation that failed.
    pub Operation: u32,
    /// Address, handle or number of the object; 0 where there is none.
    pub Object: u64,
    /// What the reader can do about it; lives as long as the process, NULL where there is none.
    pub Advice: *const c_char,
    /// Name of the operation; empty where there is none.
    pub OperationName: [u8; HSA_EXT_OPERATION_NAME_SIZE],
    /// Path or name of the object, cut to fit; empty where there is none.
    pub ObjectName: [u8; HSA_EXT_OBJECT_NAME_SIZE],
    /// Number of this failure since the process started.
    pub Sequence: u64,
}

// SAFETY: the structure begins with its size, and its fields leave no gap: the assertion below
// compares their sum to the size of the whole.
unsafe impl SizedByCaller for HsaExtErrorDetail {}

const _: () = assert!(
    size_of::<HsaExtErrorDetail>()
        == 4 * size_of::<u32>()
            + 2 * size_of::<u64>()
            + size_of::<*const c_char>()
            + HSA_EXT_OPERATION_NAME_SIZE
            + HSA_EXT_OBJECT_NAME_SIZE
);

open_enum! {
    /// Importance of a log message; the numbers are those of `HSAKMT_DEBUG_LEVEL`.
    pub struct HsaExtLogLevel: u32 {
        /// Something failed.
        HSA_EXT_LOG_ERROR as ERROR = 3,
        /// Something is odd.
        HSA_EXT_LOG_WARNING as WARNING = 4,
        /// Something of interest happened.
        HSA_EXT_LOG_INFO as INFO = 6,
        /// Everything else.
        HSA_EXT_LOG_DEBUG as DEBUG = 7,
    }
}

/// Receives log messages: the caller's pointer, an [`HsaExtLogLevel`], a text that lives during the
/// call.
pub type HsaExtLogSink =
    Option<unsafe extern "C" fn(User: *mut c_void, Level: u32, Message: *const c_char)>;

open_enum! {
    /// Who copies memory.
    pub struct HsaExtCopyPath: u32 {
        /// Whoever can, the CPU first.
        HSA_EXT_COPY_BY_ANY as ANY = 0,
        /// The calling thread.
        HSA_EXT_COPY_BY_CPU as CPU = 1,
        /// An engine of a GPU.
        HSA_EXT_COPY_BY_ENGINE as ENGINE = 2,
    }
}

/// How memory is to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaExtCopyOptions {
    /// Size of this structure in bytes; the caller sets it.
    pub Size: u32,
    /// Who is to copy.
    pub Path: HsaExtCopyPath,
    /// Who did; written if the call succeeds.
    pub PathTaken: HsaExtCopyPath,
    /// Zero.
    pub Reserved: u32,
}

/// What the driver says of a dma-buf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaExtDmaBufInfo {
    /// Size of this structure in bytes; the caller sets it.
    pub Size: u32,
    /// The node of the GPU whose memory it is, or through which the driver has it;
    /// `0xffff_ffff` for a GPU that is not in use.
    pub NodeId: u32,
    /// Size of the buffer in bytes.
    pub SizeInBytes: u64,
    /// The kernel's id of that GPU.
    pub GpuId: u32,
    /// 1 for memory of the GPU, 0 for system memory.
    pub IsDeviceMemory: u32,
}

// SAFETY: The size is in front, and the fields leave no gaps.
unsafe impl SizedByCaller for HsaExtDmaBufInfo {}

/// A finished call of an exported function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaExtTraceRecord {
    /// Size of this structure in bytes; the library sets it.
    pub Size: u32,
    /// Entries in `Arguments`.
    pub ArgumentCount: u32,
    /// Name of the function; lives as long as the process.
    pub Function: *const c_char,
    /// The arguments in order, each widened to 64 bits; lives during the call of the sink.
    pub Arguments: *const u64,
    /// What the function returned.
    pub Status: HSAKMT_STATUS,
    /// Zero.
    pub Reserved: u32,
    /// How long the function took, in ns.
    pub DurationNs: u64,
}

/// Receives trace records: the caller's pointer and a record that lives during the call.
pub type HsaExtTraceSink =
    Option<unsafe extern "C" fn(User: *mut c_void, Record: *const HsaExtTraceRecord)>;

/// Runs when an event was set: the caller's pointer and the event. Called by
/// `hsaKmtExtPumpEvents`, on its thread.
pub type HsaExtEventCallback =
    Option<unsafe extern "C" fn(User: *mut c_void, Event: *mut HsaEvent)>;
