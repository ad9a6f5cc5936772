//! What a call answers, and versions.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::open_enum;

/// Major version of the interface that the headers describe (`HSAKMT_VERSION_MAJOR`).
pub const HSAKMT_VERSION_MAJOR: u32 = 0;
/// Minor version of the interface that the headers describe (`HSAKMT_VERSION_MINOR`).
pub const HSAKMT_VERSION_MINOR: u32 = 99;

open_enum! {
    /// Result of nearly every call.
    pub struct HSAKMT_STATUS: u32 {
        /// The call did what it was asked to.
        HSAKMT_STATUS_SUCCESS as SUCCESS = 0,
        /// A failure without a code of its own.
        HSAKMT_STATUS_ERROR as ERROR = 1,
        /// The kernel driver speaks another major version.
        HSAKMT_STATUS_DRIVER_MISMATCH as DRIVER_MISMATCH = 2,
        /// An argument is NULL, out of range or contradicts another one.
        HSAKMT_STATUS_INVALID_PARAMETER as INVALID_PARAMETER = 3,
        /// A handle or an event names nothing.
        HSAKMT_STATUS_INVALID_HANDLE as INVALID_HANDLE = 4,
        /// No node has this number, or it is of the wrong kind.
        HSAKMT_STATUS_INVALID_NODE_UNIT as INVALID_NODE_UNIT = 5,
        /// Host or device memory ran out.
        HSAKMT_STATUS_NO_MEMORY as NO_MEMORY = 6,
        /// The caller's buffer cannot hold the answer.
        HSAKMT_STATUS_BUFFER_TOO_SMALL as BUFFER_TOO_SMALL = 7,
        /// The function exists, its work does not.
        HSAKMT_STATUS_NOT_IMPLEMENTED as NOT_IMPLEMENTED = 10,
        /// This kernel, device or context cannot do it.
        HSAKMT_STATUS_NOT_SUPPORTED as NOT_SUPPORTED = 11,
        /// Somebody else has it at the moment.
        HSAKMT_STATUS_UNAVAILABLE as UNAVAILABLE = 12,
        /// A hardware resource is used up.
        HSAKMT_STATUS_OUT_OF_RESOURCES as OUT_OF_RESOURCES = 13,
        /// The library is not open in this process.
        HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED as KERNEL_IO_CHANNEL_NOT_OPENED = 20,
        /// Talking to the kernel driver failed.
        HSAKMT_STATUS_KERNEL_COMMUNICATION_ERROR as KERNEL_COMMUNICATION_ERROR = 21,
        /// The library was open already; its reference count went up.
        HSAKMT_STATUS_KERNEL_ALREADY_OPENED as KERNEL_ALREADY_OPENED = 22,
        /// The address translation that HSA needs is missing.
        HSAKMT_STATUS_HSAMMU_UNAVAILABLE as HSAMMU_UNAVAILABLE = 23,
        /// A wait could not be carried out.
        HSAKMT_STATUS_WAIT_FAILURE as WAIT_FAILURE = 30,
        /// The time of a wait ran out.
        HSAKMT_STATUS_WAIT_TIMEOUT as WAIT_TIMEOUT = 31,
        /// The memory is registered already, with other nodes.
        HSAKMT_STATUS_MEMORY_ALREADY_REGISTERED as MEMORY_ALREADY_REGISTERED = 35,
        /// No allocation or registration covers this address.
        HSAKMT_STATUS_MEMORY_NOT_REGISTERED as MEMORY_NOT_REGISTERED = 36,
        /// An address or size is not aligned as the device needs it.
        HSAKMT_STATUS_MEMORY_ALIGNMENT as MEMORY_ALIGNMENT = 37,
    }
}

/// Version of the kernel driver's interface (`linux/kfd_ioctl.h`, GET_VERSION).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaVersionInfo {
    /// Changes with every incompatible kernel interface; 1 so far.
    pub KernelInterfaceMajorVersion: u32,
    /// Grows with the abilities of the kernel interface.
    pub KernelInterfaceMinorVersion: u32,
}

/// Sizes of structures as one side of the interface was compiled with (2026).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaStructureSizes {
    /// Size of this structure, in bytes.
    pub StructureSizes: u16,
    /// Size of `HsaNodeProperties`, in bytes.
    pub SizeOfHsaNodeProperties: u16,
    /// Size of `HsaHandleImportDesc` (by its former name), in bytes.
    pub SizeOfHsaExternalHandleDesc: u16,
    /// Zero.
    pub Reserved: [u16; 5],
}
