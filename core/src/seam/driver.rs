//! The GPU driver, as far as the library needs it.

use core::fmt;

use super::os::{Placement, Protection};
use crate::errno::Errno;
use crate::uapi::{ArraySlot, Field, Request};

/// A device that can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceNode {
    /// The compute driver's one node, `/dev/kfd`.
    Kfd,
    /// The DRM render node with this minor, `/dev/dri/renderD<minor>`.
    Render(u32),
    /// `/dev/udmabuf`.
    Udmabuf,
}

impl fmt::Display for DeviceNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceNode::Kfd => f.write_str("/dev/kfd"),
            DeviceNode::Render(minor) => write!(f, "/dev/dri/renderD{minor}"),
            DeviceNode::Udmabuf => f.write_str("/dev/udmabuf"),
        }
    }
}

/// The number by which a block names an open device to its driver (on Linux
/// the descriptor, and 0 is a valid one). It owns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct DeviceToken(pub u32);

/// Which way the bytes of an array travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayDirection {
    /// Read by the driver.
    In,
    /// Written by the driver; every byte is initialised before the call.
    Out,
    /// Both.
    InOut,
}

/// An array that belongs to a block but lies outside it.
///
/// The driver puts its address into the field that the block's [`ArraySlot`]
/// names (zero for [`Array::Absent`]) and zero back after the call; a block never
/// carries such an address by itself, so that a driver in another address space
/// can move the bytes.
#[derive(Debug)]
pub enum Array<'a> {
    /// No array: the pointer field is zero.
    Absent,
    /// Read by the driver.
    In(&'a [u8]),
    /// Written by the driver.
    Out(&'a mut [u8]),
    /// Read and written by the driver.
    InOut(&'a mut [u8]),
}

impl Array<'_> {
    /// The bytes as they are now.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Array::Absent => &[],
            Array::In(bytes) => bytes,
            Array::Out(bytes) | Array::InOut(bytes) => bytes,
        }
    }

    /// The bytes for the driver to write; `None` for an array it only reads.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Array::Absent | Array::In(_) => None,
            Array::Out(bytes) | Array::InOut(bytes) => Some(bytes),
        }
    }

    /// Which way the bytes travel.
    #[must_use]
    pub fn direction(&self) -> ArrayDirection {
        match self {
            Array::Absent | Array::In(_) => ArrayDirection::In,
            Array::Out(_) => ArrayDirection::Out,
            Array::InOut(_) => ArrayDirection::InOut,
        }
    }
}

/// One block on its way to the driver.
///
/// Made from a typed block by the `execute` module, never by
/// hand outside tests.
pub struct Call<'c, 'a> {
    /// The request number, with the size of `block` in it.
    pub request: Request,
    /// The block's name in the kernel's header, without its prefix.
    pub name: &'static str,
    /// The block's fields, for decoding.
    pub fields: &'static [Field],
    /// The block's bytes, an inline tail included. All initialised.
    pub block: &'c mut [u8],
    /// Where in the block the addresses of `arrays` go, one slot for each.
    pub slots: &'static [ArraySlot],
    /// The arrays, in the order of `slots`.
    pub arrays: &'c mut [Array<'a>],
}

impl fmt::Debug for Call<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {{", self.name)?;
        for field in self.fields {
            write!(f, " {}: {}", field.name, field.display(self.block))?;
        }
        f.write_str(" }")
    }
}

/// A mapping of device memory to be made, always shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapDevice {
    /// Where.
    pub placement: Placement,
    /// Bytes; a multiple of the page size.
    pub length: usize,
    /// What the CPU may do there.
    pub protection: Protection,
    /// What to map, by the driver's own numbering: the offset of mmap(2).
    pub offset: u64,
}

/// The GPU driver.
pub trait Driver {
    /// An open device. Dropping it closes it.
    type Device;

    /// Opens a device, close-on-exec, for reading and writing.
    ///
    /// # Errors
    /// Those of open(2). Reasons by errno: `kernel-rules` section 1 (KFD) and 4
    /// (render nodes), from `kfd_chardev.c` and `drm_file.c`.
    fn open(&self, node: DeviceNode) -> Result<Self::Device, Errno>;

    /// Makes a file of so many bytes of zeros in memory that can neither shrink nor grow,
    /// close-on-exec, for reading and writing; it can be mapped and named in blocks as a
    /// device can. A short sequence (memfd_create(2), ftruncate(2), F_ADD_SEALS of
    /// fcntl(2)); where a part of it fails there is no file.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOMEM; EINVAL or EFBIG for a length that no file has; EACCES where
    /// the system forbids such files (`vm.memfd_noexec`, containers).
    fn memory_file(&self, size: u64) -> Result<Self::Device, Errno>;

    /// Executes one block, once. The block and the arrays hold what the driver
    /// wrote even when it answers an error (counters of partial success).
    ///
    /// Returns the driver's non-negative answer, 0 for nearly every block.
    ///
    /// # Errors
    /// The driver's errno. Nothing is restarted here, see the `execute` module.
    fn execute(&self, device: &Self::Device, call: &mut Call<'_, '_>) -> Result<u32, Errno>;

    /// Maps memory of a device into the address space and returns the address.
    ///
    /// # Errors
    /// Those of mmap(2) and the driver's own.
    fn map(&self, device: &Self::Device, mapping: MapDevice) -> Result<usize, Errno>;

    /// The number that names the device in blocks and in the list of
    /// descriptors that a forked child closes.
    fn token(&self, device: &Self::Device) -> DeviceToken;

    /// Closes a device that a forked child inherited, if the number still names
    /// that device: the child may have closed it and opened another file since.
    fn close_inherited(&self, node: DeviceNode, token: DeviceToken);

    /// Takes a device by its number; the caller gives it up.
    fn adopt(&self, token: DeviceToken) -> Self::Device;

    /// Gives a device up without closing it; whoever holds the number owns it.
    fn release(&self, device: Self::Device) -> DeviceToken;
}
