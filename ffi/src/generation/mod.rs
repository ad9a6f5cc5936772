//! The three generations of the C ABI, and the way from one internal form to each of them.
//!
//! The reference library kept its soname while six of its structures grew. A build of this library
//! serves one generation:
//!
//! | generation | `HSAKMT_ABI_GENERATION` | serves callers compiled with |
//! |---|---|---|
//! | [`Debian`] | 523 | 5.2.3, as in Debian 12 |
//! | [`Y2025`] | 2025 | the headers of August 2025 |
//! | [`Current`] | 2026 | the headers of 2026; the default |
//!
//! Everything else that the generations do not share is a name that the older ones lack, the type of
//! one argument, and what callers of 5.2.3 rely on that later versions do otherwise (the constants of
//! [`Generation`]). A structure is written through [`caller_memory`], in the layout of the generation and with its
//! stride, so nothing beyond the caller's structure is touched.

#![allow(
    non_snake_case,
    reason = "fields carry the names of the C ABI, so that one name finds both sides"
)]

pub(crate) mod address;
pub mod caller_memory;
pub mod current;
pub mod debian;
pub mod internal;
pub mod y2025;

use crate::types::{HsaMemFlags, HsaMemMapFlags};

/// A structure of one generation that the library fills from its internal form `I`.
pub trait Encode<I>: Copy {
    /// The structure; fields that the generation lacks are left out, its reserved ones are zero.
    fn encode(internal: &I) -> Self;
}

/// A structure of one generation that the caller also fills.
pub trait Decode<I>: Copy {
    /// The internal form; fields that the generation lacks are zero.
    fn decode(&self) -> I;
}

/// One generation of the C ABI.
pub trait Generation {
    /// Its value of the macro `HSAKMT_ABI_GENERATION`.
    const ABI_GENERATION: u32;
    /// Whether host memory is registered by attributes of the driver where the GPUs have the SVM
    /// calls. 5.2.3 registers by user pointer everywhere, and its callers ask for what they have
    /// registered with `hsaKmtQueryPointerInfo`.
    const REGISTERS_BY_ATTRIBUTES: bool;
    /// Whether a free of 0 bytes is an error, as since 2026.
    const FREES_SOME_BYTES: bool;
    /// Whether GPUs may execute from all memory. 5.2.3 makes every buffer so, later versions those
    /// that were asked for with `ExecuteAccess`.
    const ALL_MEMORY_EXECUTABLE: bool;
    /// `HsaNodeProperties`.
    type NodeProperties: Encode<internal::NodeProperties>;
    /// `HsaCacheProperties`; callers pass arrays of it.
    type CacheProperties: Encode<internal::CacheProperties>;
    /// `HsaIoLinkProperties`; callers pass arrays of it.
    type IoLinkProperties: Encode<internal::IoLinkProperties>;
    /// `HsaQueueInfo`.
    type QueueInfo: Encode<internal::QueueInfo>;
    /// `HsaQueueResource`, which goes in and comes out.
    type QueueResource: Encode<internal::QueueResource> + Decode<internal::QueueResource>;
    /// `HsaGraphicsResourceInfo`, which goes in and comes out.
    type GraphicsResourceInfo: Encode<internal::GraphicsResourceInfo>
        + Decode<internal::GraphicsResourceInfo>;
    /// The flags of `hsaKmtMapMemoryToGPUNodes`: `HsaMemMapFlags`, later `HsaMemFlags`.
    type MemMapFlags: Copy;
}

/// The generation of Debian 12's libhsakmt 5.2.3.
#[derive(Clone, Copy, Debug)]
pub struct Debian;

impl Generation for Debian {
    const ABI_GENERATION: u32 = 523;
    const REGISTERS_BY_ATTRIBUTES: bool = false;
    const FREES_SOME_BYTES: bool = false;
    const ALL_MEMORY_EXECUTABLE: bool = true;
    type NodeProperties = debian::HsaNodeProperties;
    type CacheProperties = debian::HsaCacheProperties;
    type IoLinkProperties = debian::HsaIoLinkProperties;
    type QueueInfo = debian::HsaQueueInfo;
    type QueueResource = debian::HsaQueueResource;
    type GraphicsResourceInfo = debian::HsaGraphicsResourceInfo;
    type MemMapFlags = HsaMemMapFlags;
}

/// The generation of August 2025.
#[derive(Clone, Copy, Debug)]
pub struct Y2025;

impl Generation for Y2025 {
    const ABI_GENERATION: u32 = 2025;
    const REGISTERS_BY_ATTRIBUTES: bool = true;
    const FREES_SOME_BYTES: bool = false;
    const ALL_MEMORY_EXECUTABLE: bool = false;
    type NodeProperties = y2025::HsaNodeProperties;
    type CacheProperties = y2025::HsaCacheProperties;
    type IoLinkProperties = y2025::HsaIoLinkProperties;
    type QueueInfo = y2025::HsaQueueInfo;
    type QueueResource = y2025::HsaQueueResource;
    type GraphicsResourceInfo = y2025::HsaGraphicsResourceInfo;
    type MemMapFlags = HsaMemMapFlags;
}

/// The generation of 2026.
#[derive(Clone, Copy, Debug)]
pub struct Current;

impl Generation for Current {
    const ABI_GENERATION: u32 = 2026;
    const REGISTERS_BY_ATTRIBUTES: bool = true;
    const FREES_SOME_BYTES: bool = true;
    const ALL_MEMORY_EXECUTABLE: bool = false;
    type NodeProperties = current::HsaNodeProperties;
    type CacheProperties = current::HsaCacheProperties;
    type IoLinkProperties = current::HsaIoLinkProperties;
    type QueueInfo = current::HsaQueueInfo;
    type QueueResource = current::HsaQueueResource;
    type GraphicsResourceInfo = current::HsaGraphicsResourceInfo;
    type MemMapFlags = HsaMemFlags;
}
