//! Identifiers, opaque handles, and the values that stand for "none".

use core::ffi::c_void;
use core::marker::{PhantomData, PhantomPinned};

/// A queue; 64 bits wide, because the reference library uses the address of a control block.
pub type HSA_QUEUEID = u64;
/// An event, as the kernel numbers it.
pub type HSA_EVENTID = u32;
/// An opaque pointer-sized handle.
pub type HSA_HANDLE = *mut c_void;
/// A performance counter trace.
pub type HSATraceId = u64;
/// A PC sampling session, as the kernel numbers it.
pub type HsaPcSamplingTraceId = u32;
/// A `struct amdgpu_device *` of libdrm_amdgpu.
pub type HsaAMDGPUDeviceHandle = *mut c_void;
/// Memory shared between processes through the driver, as eight opaque words.
///
/// Runtimes store flags of their own in word 6 (the size in pages): bit 31 and bits 0 to 8.
pub type HsaSharedMemoryHandle = [u32; 8];

/// No queue.
pub const INVALID_QUEUEID: HSA_QUEUEID = u64::MAX;
/// No process.
pub const INVALID_PID: u32 = u32::MAX;
/// No node.
pub const INVALID_NODEID: u32 = u32::MAX;

/// A context of the library, primary or secondary; opaque to callers (2026).
#[repr(C)]
pub struct HsaKFDContext {
    contents: [u8; 0],
    marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// What an [`HsaMemoryObjectHandle`] points to; opaque to callers (2026).
#[repr(C)]
pub struct HsaMemoryObject {
    contents: [u8; 0],
    marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// An imported or exported buffer object (2026).
pub type HsaMemoryObjectHandle = *mut HsaMemoryObject;
