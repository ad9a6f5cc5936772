//! What a library must never do.
//!
//! The simulator answers like the kernel and takes a note: the kernel would let
//! it pass, misbehave, or refuse something that a correct library never asks.

use alloc::string::String;
use core::fmt;

use crate::process::Pid;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Who.
    pub process: Pid,
    /// Which rule.
    pub rule: Rule,
    /// The particulars, for reading.
    pub detail: String,
}

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// The request exists in this kernel and the simulator does not model it yet.
    NotSimulated,
    /// A descriptor that is not open was used or closed.
    DescriptorNotOpen,
    /// A render file was offered for another GPU than its own: the kernel does
    /// not check it and misbehaves (kernel-rules section 1, "Binding a VM").
    RenderFileOfOtherGpu,
    /// A KFD descriptor of another process, or of the dead address space before
    /// an exec, was used (kernel-rules section 1, fork and exec).
    ForeignKfdDescriptor,
    /// The direction, letter or size of a request is none that a kernel header
    /// has; the driver goes by the number alone and accepts it.
    RequestForm,
    /// A block carried an address where the seam puts that of an array.
    AddressInBlock,
    /// An array is shorter than the block says: the kernel would go beyond it.
    ShortArray,
    /// Memory was allocated with several kinds in its flags: the driver takes one
    /// and counts another (kernel-rules section 2, "kind").
    SeveralKindsOfMemory,
    /// User pages that do not start at a page (kernel-rules section 2, "USERPTR").
    UserPagesMisaligned,
    /// An unmapping on a GPU whose VM was not acquired: the kernel stops with an
    /// oops (kernel-rules section 2, UNMAP).
    GpuWithoutVm,
    /// Padding of a block was set: the kernel ignores it today.
    PaddingNotZero,
    /// The driver's reserved memory was mapped, which replaces the process's trap
    /// page in 6.x (kernel-rules section 3).
    ReservedMemoryMapped,
    /// The driver's event page was mapped though a buffer is the event page
    /// (kernel-rules section 3): the kernel does not check it and misbehaves.
    EventPageMapped,
    /// A GPU read video memory that the CPU had stored to, before what it stored was
    /// flushed out of the CPU's buffers and through the host data path (see
    /// [`Machine::set_host_data_path`](crate::Machine::set_host_data_path)).
    HostWriteNotFlushed,
    /// The save area of a queue, memory of the process, was unmapped: all queues of the
    /// process stop for good (kernel-rules section 2, CREATE_QUEUE).
    QueueMemoryUnmapped,
    /// A doorbell was rung, and no barrier for devices was between it and the packets
    /// or the write pointer.
    DoorbellWithoutBarrier,
    /// A doorbell names a place that cannot be: behind what was read, or more than a
    /// ring further.
    PointerOutOfRing,
    /// An engine read something that is no packet of its generation: it hangs.
    BadPacket,
    /// A doorbell was rung through a mapping of before a reset of the GPU: since 7.2
    /// that is SIGBUS (kernel-rules section 3).
    DoorbellAfterReset,
    /// A point of a timeline was signaled after a higher one: waits for the higher one
    /// are lost (drm_syncobj.c, `drm_syncobj_add_point`).
    PointOutOfOrder,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}: {:?}: {}", self.process, self.rule, self.detail)
    }
}
