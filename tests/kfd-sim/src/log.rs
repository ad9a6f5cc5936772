//! What a process asked for and what it was answered.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{
    Advice, DeviceNode, MapDevice, Mapping, MemoryPolicy, Placement, Protection,
};
use hsakmt_core::uapi::{Field, Request};

use crate::kfd::SVM_ATTRIBUTE_NAMES;
use crate::process::Pid;

/// One operation with its answer.
#[derive(Debug, Clone)]
pub struct Record {
    /// Counts all operations of the machine, from 0, also those that were not kept.
    pub index: u64,
    /// Who asked.
    pub process: Pid,
    /// What for.
    pub operation: Operation,
    /// The answer; an address, a descriptor, a count or 0.
    pub result: Result<u64, Errno>,
}

/// An operation, with its arguments.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Operation {
    /// Open of a device.
    Open(DeviceNode),
    /// Making of a file in memory, with its length.
    MemoryFile(u64),
    /// Close of a descriptor.
    Close(u32),
    /// A request to a device.
    Execute(Execution),
    /// mmap of a device.
    MapDevice {
        /// Of which descriptor.
        descriptor: u32,
        /// What.
        mapping: MapDevice,
    },
    /// An anonymous mapping.
    Map(Mapping),
    /// An unmapping.
    Unmap {
        /// Where.
        address: usize,
        /// Bytes.
        length: usize,
    },
    /// A change of protection.
    Protect {
        /// Where.
        address: usize,
        /// Bytes.
        length: usize,
        /// The new one.
        allow: Protection,
    },
    /// Advice about a range.
    Advise {
        /// Where.
        address: usize,
        /// Bytes.
        length: usize,
        /// Which.
        advice: Advice,
    },
    /// A NUMA policy for a range.
    Bind {
        /// Where.
        address: usize,
        /// Bytes.
        length: usize,
        /// Which.
        policy: MemoryPolicy,
        /// Bit n of the words is NUMA node n.
        nodes: Vec<u64>,
    },
    /// Reading of a whole file.
    ReadFile(String),
    /// Listing of a folder.
    ListFolder(String),
    /// A new process with a copy of the address space.
    Fork(Pid),
    /// A new process in the same address space.
    Vfork(Pid),
    /// A new program in the same process.
    Exec,
    /// The end of the process.
    Exit,
}

/// A request, as it was sent and as it came back.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The descriptor.
    pub descriptor: u32,
    /// What it refers to, `None` when it is not open.
    pub node: Option<DeviceNode>,
    /// The request number.
    pub request: Request,
    /// The name by which the caller knows the request.
    pub name: &'static str,
    /// The caller's names for the block's parts.
    pub fields: &'static [Field],
    /// The block before.
    pub sent: Vec<u8>,
    /// The block after.
    pub returned: Vec<u8>,
}

impl Execution {
    /// A field of the block before, by the name in the kernel's header.
    #[must_use]
    pub fn sent(&self, field: &str) -> Option<u64> {
        self.field(field)?.number(&self.sent)
    }

    /// A field of the block after.
    #[must_use]
    pub fn returned(&self, field: &str) -> Option<u64> {
        self.field(field)?.number(&self.returned)
    }

    /// The attributes of an SVM request before, type and value each.
    #[must_use]
    pub fn svm_attributes_sent(&self) -> Vec<(u32, u32)> {
        self.svm_attributes(&self.sent)
    }

    /// The attributes of an SVM request after.
    #[must_use]
    pub fn svm_attributes_returned(&self) -> Vec<(u32, u32)> {
        self.svm_attributes(&self.returned)
    }

    fn svm_attributes(&self, block: &[u8]) -> Vec<(u32, u32)> {
        if self.node != Some(DeviceNode::Kfd) || self.request.number() != 0x20 {
            return Vec::new();
        }
        // They follow start, size, operation and their count.
        let tail = block.get(24..).unwrap_or(&[]);
        let count = block.get(20..24).and_then(|word| word.try_into().ok());
        let count = count.map_or(0, u32::from_ne_bytes) as usize;
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_ne_bytes);
        let pairs = tail.chunks_exact(8).take(count);
        pairs.map(|pair| (word(&pair[..4]), word(&pair[4..]))).collect()
    }

    fn write_svm_attributes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sent, returned) = (self.svm_attributes_sent(), self.svm_attributes_returned());
        if sent.is_empty() {
            return Ok(());
        }
        f.write_str(" [")?;
        for (n, (before, after)) in sent.iter().zip(&returned).enumerate() {
            f.write_str(if n == 0 { "" } else { ", " })?;
            write_attribute(f, *before)?;
            if before != after {
                f.write_str(" -> ")?;
                write_attribute(f, *after)?;
            }
        }
        f.write_str("]")
    }

    fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Open(node) => write!(f, "open {node}"),
            Operation::MemoryFile(size) => write!(f, "memory file {size:#x}"),
            Operation::Close(descriptor) => write!(f, "close {descriptor}"),
            Operation::Execute(call) => {
                write!(f, "ioctl {} {} {{", call.descriptor, call.name)?;
                for field in call.fields {
                    write!(f, " {}: {}", field.name, field.display(&call.sent))?;
                    if field.number(&call.sent) != field.number(&call.returned) {
                        write!(f, " -> {}", field.display(&call.returned))?;
                    }
                }
                f.write_str(" }")?;
                call.write_svm_attributes(f)
            }
            Operation::MapDevice { descriptor, mapping } => {
                write!(f, "mmap {descriptor} offset {:#x}", mapping.offset)?;
                write_placement(f, mapping.placement, mapping.length)
            }
            Operation::Map(mapping) => {
                f.write_str("mmap anonymous")?;
                write_placement(f, mapping.placement, mapping.length)?;
                write!(f, " {:?}", mapping.protection)
            }
            Operation::Unmap { address, length } => write!(f, "munmap {address:#x} {length:#x}"),
            Operation::Protect { address, length, allow } => {
                write!(f, "mprotect {address:#x} {length:#x} {allow:?}")
            }
            Operation::Advise { address, length, advice } => {
                write!(f, "madvise {address:#x} {length:#x} {advice:?}")
            }
            Operation::Bind { address, length, policy, nodes } => {
                write!(f, "mbind {address:#x} {length:#x} {policy:?} {nodes:x?}")
            }
            Operation::ReadFile(path) => write!(f, "read {path}"),
            Operation::ListFolder(path) => write!(f, "list {path}"),
            Operation::Fork(child) => write!(f, "fork {child}"),
            Operation::Vfork(child) => write!(f, "vfork {child}"),
            Operation::Exec => f.write_str("exec"),
            Operation::Exit => f.write_str("exit"),
        }
    }
}

fn write_attribute(f: &mut fmt::Formatter<'_>, (kind, value): (u32, u32)) -> fmt::Result {
    match SVM_ATTRIBUTE_NAMES.get(kind as usize) {
        Some(name) => write!(f, "{name} {value:#x}"),
        None => write!(f, "{kind:#x} {value:#x}"),
    }
}

fn write_placement(f: &mut fmt::Formatter<'_>, placement: Placement, length: usize) -> fmt::Result {
    match placement {
        Placement::Anywhere => write!(f, " length {length:#x}"),
        Placement::Hint(address) => write!(f, " near {address:#x} length {length:#x}"),
        Placement::Free(address) => write!(f, " at {address:#x} length {length:#x}"),
        Placement::Replace(address) => write!(f, " over {address:#x} length {length:#x}"),
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} = ", self.index, self.process, self.operation)?;
        match self.result {
            Ok(value) => write!(f, "{value:#x}"),
            Err(errno) => write!(f, "{errno}"),
        }
    }
}

/// The machine's log.
#[derive(Debug)]
pub(crate) struct Log {
    pub records: Vec<Record>,
    pub keep: bool,
    next: u64,
}

impl Log {
    pub(crate) fn new() -> Log {
        Log { records: Vec::new(), keep: true, next: 0 }
    }

    pub(crate) fn write(
        &mut self,
        process: Pid,
        result: Result<u64, Errno>,
        operation: impl FnOnce() -> Operation,
    ) {
        let index = self.next;
        self.next += 1;
        if self.keep {
            self.records.push(Record { index, process, operation: operation(), result });
        }
    }
}
