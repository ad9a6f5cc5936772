//! Why something failed: a status for C callers, and the exact reason behind it.
//!
//! An [`Error`] carries four things: the C [`Status`] that callers of the
//! reference library rely on, the [`Operation`] that failed, the system's errno
//! if there was one, and the [`Object`] it was about. [`Error::advice`] adds a
//! sentence on what to do. [`Failures`] remembers the newest failure of each
//! thread.

mod advice;
mod failures;

use core::fmt;

pub use failures::{Failure, Failures};

use crate::errno::Errno;
use crate::seam::DeviceNode;
use crate::uapi::Request;

/// A status code of the C ABI (`HSAKMT_STATUS`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Status(pub u32);

macro_rules! statuses {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl Status {
            $(#[doc = $text] pub const $name: Status = Status($value);)*

            /// The name in the C header without `HSAKMT_STATUS_`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($value => stringify!($name),)*
                    _ => "UNKNOWN",
                }
            }
        }
    };
}

statuses! {
    SUCCESS = 0, "Done.";
    ERROR = 1, "Failed; the detail says why.";
    DRIVER_MISMATCH = 2, "The driver speaks another major version.";
    INVALID_PARAMETER = 3, "An argument is wrong.";
    INVALID_HANDLE = 4, "A handle names nothing.";
    INVALID_NODE_UNIT = 5, "No such node, or not one of the needed kind.";
    NO_MEMORY = 6, "No memory, of whatever kind the call needed.";
    BUFFER_TOO_SMALL = 7, "The caller's buffer is too small.";
    NOT_IMPLEMENTED = 10, "Not implemented.";
    NOT_SUPPORTED = 11, "The kernel or the device does not support it.";
    UNAVAILABLE = 12, "In use by somebody else.";
    OUT_OF_RESOURCES = 13, "A resource other than memory ran out.";
    KERNEL_IO_CHANNEL_NOT_OPENED = 20, "Not open in this process.";
    KERNEL_COMMUNICATION_ERROR = 21, "Talking to the driver failed.";
    KERNEL_ALREADY_OPENED = 22, "Already open: counted, not a failure.";
    HSAMMU_UNAVAILABLE = 23, "No IOMMU.";
    WAIT_FAILURE = 30, "The wait failed.";
    WAIT_TIMEOUT = 31, "The wait timed out.";
    MEMORY_ALREADY_REGISTERED = 35, "Registered already.";
    MEMORY_NOT_REGISTERED = 36, "Not registered.";
    MEMORY_ALIGNMENT = 37, "Wrong alignment.";
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "UNKNOWN" => write!(f, "status {}", self.0),
            name => f.write_str(name),
        }
    }
}

/// What was being done when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Checking that the library is open in this process.
    CheckOpen,
    /// Checking an argument of the call.
    CheckArgument,
    /// Checking that the kernel's interface is new enough.
    CheckVersion,
    /// Opening a device.
    OpenDevice,
    /// Executing an argument block.
    Execute(Request),
    /// Mapping device memory.
    MapDevice,
    /// Mapping anonymous memory or reserving address space.
    MapMemory,
    /// Unmapping.
    UnmapMemory,
    /// Changing protection.
    ProtectMemory,
    /// Advising about memory.
    AdviseMemory,
    /// Binding memory to NUMA nodes.
    BindMemory,
    /// Reading a file.
    ReadFile,
    /// Listing a folder.
    ListFolder,
    /// Making sense of what a file says.
    ParseFile,
    /// Allocating the library's own memory.
    Allocate,
    /// Waiting for a lock or for an address.
    Wait,
    /// Following a topology that keeps changing.
    FollowTopology,
    /// Overriding a GPU's gfx version.
    OverrideGfx,
    /// Looking something up in the context's books.
    LookUp,
    /// Handing packets to an engine.
    Submit,
    /// Copying memory.
    Copy,
    /// Making a file in memory.
    MakeMemoryFile,
}

impl Operation {
    /// Numbers below this are operations, from here on request numbers.
    const FIRST_REQUEST: u32 = 0x100;

    /// The number for C callers: small for library operations, the request
    /// number for blocks.
    #[must_use]
    pub fn code(self) -> u32 {
        match self {
            Operation::Execute(request) => request.0,
            Operation::CheckOpen => 1,
            Operation::CheckArgument => 2,
            Operation::CheckVersion => 3,
            Operation::OpenDevice => 4,
            Operation::MapDevice => 5,
            Operation::MapMemory => 6,
            Operation::UnmapMemory => 7,
            Operation::ProtectMemory => 8,
            Operation::AdviseMemory => 9,
            Operation::BindMemory => 10,
            Operation::ReadFile => 11,
            Operation::ListFolder => 12,
            Operation::ParseFile => 13,
            Operation::Allocate => 14,
            Operation::Wait => 15,
            Operation::FollowTopology => 16,
            Operation::LookUp => 17,
            Operation::OverrideGfx => 18,
            Operation::Submit => 19,
            Operation::Copy => 20,
            Operation::MakeMemoryFile => 21,
        }
    }

    /// The operation with this number.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Operation> {
        Some(match code {
            1 => Operation::CheckOpen,
            2 => Operation::CheckArgument,
            3 => Operation::CheckVersion,
            4 => Operation::OpenDevice,
            5 => Operation::MapDevice,
            6 => Operation::MapMemory,
            7 => Operation::UnmapMemory,
            8 => Operation::ProtectMemory,
            9 => Operation::AdviseMemory,
            10 => Operation::BindMemory,
            11 => Operation::ReadFile,
            12 => Operation::ListFolder,
            13 => Operation::ParseFile,
            14 => Operation::Allocate,
            15 => Operation::Wait,
            16 => Operation::FollowTopology,
            17 => Operation::LookUp,
            18 => Operation::OverrideGfx,
            19 => Operation::Submit,
            20 => Operation::Copy,
            21 => Operation::MakeMemoryFile,
            _ if code >= Self::FIRST_REQUEST => Operation::Execute(Request(code)),
            _ => return None,
        })
    }
}

/// A block's name in the kernel's header, or what the library does by itself.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Execute(request) => crate::uapi::request_name(*request),
            Operation::CheckOpen => "check that the library is open",
            Operation::CheckArgument => "check arguments",
            Operation::CheckVersion => "check the driver's version",
            Operation::OpenDevice => "open",
            Operation::MapDevice => "map device memory",
            Operation::MapMemory => "map memory",
            Operation::UnmapMemory => "unmap memory",
            Operation::ProtectMemory => "protect memory",
            Operation::AdviseMemory => "advise about memory",
            Operation::BindMemory => "bind memory",
            Operation::ReadFile => "read",
            Operation::ListFolder => "list",
            Operation::ParseFile => "parse",
            Operation::Allocate => "allocate",
            Operation::Wait => "wait",
            Operation::FollowTopology => "follow the topology",
            Operation::LookUp => "look up",
            Operation::OverrideGfx => "override the gfx version",
            Operation::Submit => "submit packets",
            Operation::Copy => "copy memory",
            Operation::MakeMemoryFile => "make a file in memory",
        })
    }
}

/// The files of the topology tree, for naming one in an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SysfsFile {
    /// `generation_id`
    Generation,
    /// `system_properties`
    System,
    /// `nodes`
    Nodes,
    /// `nodes/N/gpu_id`
    GpuId,
    /// `nodes/N/name`
    Name,
    /// `nodes/N/properties`
    Node,
    /// `nodes/N/mem_banks/I/properties`
    Bank,
    /// `nodes/N/caches/I/properties`
    Cache,
    /// `nodes/N/io_links/I/properties`
    IoLink,
    /// `nodes/N/p2p_links/I/properties`
    P2pLink,
    /// `/proc/cpuinfo`
    CpuInfo,
}

const SYSFS_FILES: [SysfsFile; 11] = [
    SysfsFile::Generation,
    SysfsFile::System,
    SysfsFile::Nodes,
    SysfsFile::GpuId,
    SysfsFile::Name,
    SysfsFile::Node,
    SysfsFile::Bank,
    SysfsFile::Cache,
    SysfsFile::IoLink,
    SysfsFile::P2pLink,
    SysfsFile::CpuInfo,
];

/// What a failure was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// Nothing in particular.
    Nothing,
    /// A device node.
    Device(DeviceNode),
    /// A node, by its public id.
    Node(u32),
    /// A GPU, by the kernel's id.
    Gpu(u32),
    /// An address.
    Address(u64),
    /// A kernel handle, or another number that the call named.
    Handle(u64),
    /// Bytes that were asked for.
    Bytes(u64),
    /// The argument with this position, from 1.
    Argument(u32),
    /// The KFD interface minor version that would be needed.
    KfdMinor(u32),
    /// A file of the topology tree: sysfs node and index within it.
    Topology(SysfsFile, u32, u16),
}

impl Object {
    /// Two words that stand for the object in the failure table.
    fn encode(self) -> (u8, u64) {
        match self {
            Object::Nothing => (0, 0),
            Object::Device(DeviceNode::Kfd) => (1, 0),
            Object::Device(DeviceNode::Render(minor)) => (2, u64::from(minor)),
            Object::Device(DeviceNode::Udmabuf) => (3, 0),
            Object::Node(node) => (4, u64::from(node)),
            Object::Gpu(gpu_id) => (5, u64::from(gpu_id)),
            Object::Address(address) => (6, address),
            Object::Handle(handle) => (7, handle),
            Object::Bytes(bytes) => (8, bytes),
            Object::Argument(position) => (9, u64::from(position)),
            Object::KfdMinor(minor) => (10, u64::from(minor)),
            Object::Topology(file, node, index) => {
                (11, (file as u64) << 48 | u64::from(index) << 32 | u64::from(node))
            }
        }
    }

    fn decode(kind: u8, value: u64) -> Object {
        let low = value as u32;
        match kind {
            1 => Object::Device(DeviceNode::Kfd),
            2 => Object::Device(DeviceNode::Render(low)),
            3 => Object::Device(DeviceNode::Udmabuf),
            4 => Object::Node(low),
            5 => Object::Gpu(low),
            6 => Object::Address(value),
            7 => Object::Handle(value),
            8 => Object::Bytes(value),
            9 => Object::Argument(low),
            10 => Object::KfdMinor(low),
            11 => match SYSFS_FILES.get((value >> 48) as usize) {
                Some(&file) => Object::Topology(file, low, (value >> 32) as u16),
                None => Object::Nothing,
            },
            _ => Object::Nothing,
        }
    }

    /// The number for C callers: minor, node, gpu_id, address, handle, bytes.
    #[must_use]
    pub fn value(self) -> u64 {
        match self {
            Object::Topology(_, node, _) => u64::from(node),
            other => other.encode().1,
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Object::Nothing => Ok(()),
            Object::Device(node) => write!(f, "{node}"),
            Object::Node(node) => write!(f, "node {node}"),
            Object::Gpu(gpu_id) => write!(f, "gpu_id {gpu_id:#x}"),
            Object::Address(address) => write!(f, "address {address:#x}"),
            Object::Handle(handle) => write!(f, "handle {handle:#x}"),
            Object::Bytes(bytes) => write!(f, "{bytes} bytes"),
            Object::Argument(position) => write!(f, "argument {position}"),
            Object::KfdMinor(minor) => write!(f, "KFD interface 1.{minor}"),
            Object::Topology(file, node, index) => match file {
                SysfsFile::Generation => f.write_str("topology/generation_id"),
                SysfsFile::System => f.write_str("topology/system_properties"),
                SysfsFile::Nodes => f.write_str("topology/nodes"),
                SysfsFile::GpuId => write!(f, "topology/nodes/{node}/gpu_id"),
                SysfsFile::Name => write!(f, "topology/nodes/{node}/name"),
                SysfsFile::Node => write!(f, "topology/nodes/{node}/properties"),
                SysfsFile::Bank => {
                    write!(f, "topology/nodes/{node}/mem_banks/{index}/properties")
                }
                SysfsFile::Cache => write!(f, "topology/nodes/{node}/caches/{index}/properties"),
                SysfsFile::IoLink => {
                    write!(f, "topology/nodes/{node}/io_links/{index}/properties")
                }
                SysfsFile::P2pLink => {
                    write!(f, "topology/nodes/{node}/p2p_links/{index}/properties")
                }
                SysfsFile::CpuInfo => f.write_str("/proc/cpuinfo"),
            },
        }
    }
}

/// A failed call: its status and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Error {
    /// What the C caller gets.
    pub status: Status,
    /// What was being done.
    pub operation: Operation,
    /// The system's answer, if it was the system that refused.
    pub errno: Option<Errno>,
    /// What it was about.
    pub object: Object,
}

impl Error {
    /// A refusal by the system.
    pub const fn system(
        status: Status,
        operation: Operation,
        errno: Errno,
        object: Object,
    ) -> Error {
        Error { status, operation, errno: Some(errno), object }
    }

    /// A refusal by the library itself.
    pub const fn library(status: Status, operation: Operation, object: Object) -> Error {
        Error { status, operation, errno: None, object }
    }

    /// The library is not open in this process.
    pub const fn not_open() -> Error {
        Error::library(
            Status::KERNEL_IO_CHANNEL_NOT_OPENED,
            Operation::CheckOpen,
            Object::Device(DeviceNode::Kfd),
        )
    }

    /// An argument of the call is wrong; positions count from 1.
    pub const fn argument(position: u32) -> Error {
        Error::library(
            Status::INVALID_PARAMETER,
            Operation::CheckArgument,
            Object::Argument(position),
        )
    }

    /// The library's own allocation of `bytes` failed.
    pub const fn no_memory(bytes: u64) -> Error {
        Error::system(Status::NO_MEMORY, Operation::Allocate, Errno::ENOMEM, Object::Bytes(bytes))
    }

    /// The kernel's interface is older than the call needs.
    pub const fn needs_kfd(minor: u32) -> Error {
        Error::library(Status::NOT_SUPPORTED, Operation::CheckVersion, Object::KfdMinor(minor))
    }

    /// The same failure under another status.
    pub const fn with_status(self, status: Status) -> Error {
        Error { status, ..self }
    }
}

/// `open /dev/kfd: EACCES (KERNEL_IO_CHANNEL_NOT_OPENED)`
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operation)?;
        if self.object != Object::Nothing {
            write!(f, " {}", self.object)?;
        }
        if let Some(errno) = self.errno {
            write!(f, ": {errno}")?;
        }
        write!(f, " ({:?})", self.status)
    }
}

/// The same text, put together on the target.
#[cfg(feature = "defmt")]
impl defmt::Format for Error {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{}", defmt::Display2Format(self));
    }
}

impl core::error::Error for Error {}

impl From<alloc::collections::TryReserveError> for Error {
    fn from(_: alloc::collections::TryReserveError) -> Error {
        Error::no_memory(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_survives_the_table() {
        let objects = [
            Object::Nothing,
            Object::Device(DeviceNode::Kfd),
            Object::Device(DeviceNode::Render(291)),
            Object::Device(DeviceNode::Udmabuf),
            Object::Node(63),
            Object::Gpu(0xffff),
            Object::Address(u64::MAX),
            Object::Handle(1 << 40),
            Object::Bytes(5 << 40),
            Object::Argument(3),
            Object::KfdMinor(19),
            Object::Topology(SysfsFile::CpuInfo, 65, 9),
            Object::Topology(SysfsFile::P2pLink, u32::MAX, u16::MAX),
        ];
        for object in objects {
            let (kind, value) = object.encode();
            assert_eq!(Object::decode(kind, value), object);
        }
        for (position, file) in SYSFS_FILES.into_iter().enumerate() {
            assert_eq!(file as usize, position);
        }
    }

    #[test]
    fn every_operation_has_its_number() {
        for code in 0..Operation::FIRST_REQUEST {
            if let Some(operation) = Operation::from_code(code) {
                assert_eq!(operation.code(), code);
            }
        }
        let block = Operation::Execute(Request(0x8008_4b01));
        assert_eq!(Operation::from_code(block.code()), Some(block));
    }
}
