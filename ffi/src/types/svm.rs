//! Shared virtual memory by attributes (`linux/kfd_ioctl.h`, SVM).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::open_enum;

open_enum! {
    /// Which attribute of a range ([`HSA_SVM_ATTRIBUTE::type`](HSA_SVM_ATTRIBUTE)).
    pub struct HSA_SVM_ATTR_TYPE: u32 {
        /// Node where the range should live.
        HSA_SVM_ATTR_PREFERRED_LOC as PREFERRED_LOC = 0,
        /// Node to which the range moves now.
        HSA_SVM_ATTR_PREFETCH_LOC as PREFETCH_LOC = 1,
        /// Node that may access the range, by migration if need be.
        HSA_SVM_ATTR_ACCESS as ACCESS = 2,
        /// Node that may access the range where it is.
        HSA_SVM_ATTR_ACCESS_IN_PLACE as ACCESS_IN_PLACE = 3,
        /// Node that may not access the range.
        HSA_SVM_ATTR_NO_ACCESS as NO_ACCESS = 4,
        /// Set of [`HSA_SVM_FLAGS`] to set.
        HSA_SVM_ATTR_SET_FLAGS as SET_FLAGS = 5,
        /// Set of [`HSA_SVM_FLAGS`] to clear.
        HSA_SVM_ATTR_CLR_FLAGS as CLR_FLAGS = 6,
        /// Base-2 logarithm of the pages that move at once.
        HSA_SVM_ATTR_GRANULARITY as GRANULARITY = 7,
    }
}

open_enum! {
    /// Bits of the flag attributes; their union is a legal value.
    pub struct HSA_SVM_FLAGS: u32 {
        /// The host may access the range.
        HSA_SVM_FLAG_HOST_ACCESS as HOST_ACCESS = 0x01,
        /// The range is coherent between devices.
        HSA_SVM_FLAG_COHERENT as COHERENT = 0x02,
        /// The range may be cached within a hive.
        HSA_SVM_FLAG_HIVE_LOCAL as HIVE_LOCAL = 0x04,
        /// Devices do not write.
        HSA_SVM_FLAG_GPU_RO as GPU_RO = 0x08,
        /// Devices may execute.
        HSA_SVM_FLAG_GPU_EXEC as GPU_EXEC = 0x10,
        /// Devices mostly read, so copies pay off.
        HSA_SVM_FLAG_GPU_READ_MOSTLY as GPU_READ_MOSTLY = 0x20,
        /// The range stays mapped on devices (2025).
        HSA_SVM_FLAG_GPU_ALWAYS_MAPPED as GPU_ALWAYS_MAPPED = 0x40,
        /// The range is coherent even within one kernel (2025).
        HSA_SVM_FLAG_EXT_COHERENT as EXT_COHERENT = 0x80,
    }
}

/// An attribute and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HSA_SVM_ATTRIBUTE {
    /// An [`HSA_SVM_ATTR_TYPE`].
    pub r#type: u32,
    /// A node id or a number, as the attribute demands.
    pub value: u32,
}
