//! What the library knows of an address.

use super::MemoryFlags;

/// What an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointerKind {
    /// Memory that the library allocated.
    Allocated,
    /// Memory of the caller that was registered.
    RegisteredUser,
    /// A buffer of a graphics library.
    RegisteredGraphics,
    /// Memory that another process shared.
    RegisteredShared,
    /// Addresses without memory.
    ReservedAddress,
}

/// What the library knows of an address.
///
/// The arrays of nodes never change and live as long as the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointerInfo<'a> {
    /// What the address belongs to.
    pub kind: PointerKind,
    /// The node whose memory it is, by its public id.
    pub node: u32,
    /// The flags of its allocation or registration.
    pub flags: MemoryFlags,
    /// First byte as the CPU sees it, 0 where it does not.
    pub cpu_address: u64,
    /// First byte as GPUs see it.
    pub gpu_address: u64,
    /// Bytes.
    pub size: u64,
    /// The nodes that it is registered for, by public id.
    pub registered: &'a [u32],
    /// The nodes that it is mapped on, by public id.
    pub mapped: &'a [u32],
    /// What [`set_user_data`](crate::process::Guard::set_user_data) attached.
    pub user_data: u64,
}
