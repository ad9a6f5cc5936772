//! What the library keeps of one piece of memory.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::slice;

use super::MemoryFlags;
use super::gpu_set::GpuSet;
use super::regions::Reserved;

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Memory of a GPU.
    Device,
    /// Memory of a GPU that has no address: its key only names it.
    Unaddressed,
    /// System memory of the driver.
    Gtt,
    /// Pages of the process that the library made, under a buffer of the driver.
    Paged {
        /// Whether the pages have a NUMA policy of their own.
        bound: bool,
    },
    /// Pages of the process without a buffer, on machines with APUs alone.
    Plain,
    /// Addresses without memory.
    Addresses,
    /// Memory of the caller under a buffer of the driver, with its address and
    /// size as the caller gave them.
    Registered { address: u64, size: u64 },
    /// Memory behind a part of a GPU's scratch addresses.
    ScratchPart,
    /// A buffer that was taken in by its dma-buf.
    Graphics,
    /// A buffer that was taken in by a number of the driver.
    Shared,
}

/// Where its GPU addresses came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// The regions for device memory.
    Device,
    /// The regions for small host memory.
    Host,
    /// A mapping of its own.
    Own,
    /// The window of handles.
    Window,
    /// The aperture of the GPU at this place, which no CPU sees.
    Gpuvm(u8),
    /// Somebody else's: a part of scratch.
    Borrowed,
}

/// Addresses and whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    /// Bytes, guard pages included: exactly what goes back.
    pub(super) length: u64,
    /// Bytes of a mapping of its own that lie before the start.
    pub(super) before: u64,
    pub(super) home: Home,
}

impl Span {
    /// Addresses of a home that is shared.
    #[inline]
    pub(super) const fn of(home: Home, start: u64, length: u64) -> Span {
        Span { start, length, before: 0, home }
    }

    /// All usable addresses of a mapping of its own.
    pub(super) fn own(reserved: Reserved) -> Span {
        let before = reserved.aligned.saturating_sub(reserved.start);
        let length = reserved.usable();
        Span { start: reserved.aligned, length, before, home: Home::Own }
    }

    /// The mapping, if it is one of its own.
    pub(super) fn reserved(&self) -> Option<Reserved> {
        matches!(self.home, Home::Own).then_some(Reserved {
            start: self.start.saturating_sub(self.before),
            length: self.length.saturating_add(self.before),
            aligned: self.start,
        })
    }
}

/// The driver's handles of the buffers that make it up.
#[derive(Debug)]
pub(super) enum Handles {
    /// None.
    None,
    /// One.
    One(u64),
    /// Several, one after the other: memory of the process above 512 GiB.
    Many(Vec<u64>),
    /// One, with what its exporter attached.
    Noted(Box<[Noted]>),
}

/// A buffer with what its exporter attached, which stays where it is until the buffer
/// is freed.
#[derive(Debug)]
pub(super) struct Noted {
    pub(super) handle: u64,
    #[expect(dead_code, reason = "the caller reads it, by its address")]
    pub(super) metadata: Vec<u8>,
}

impl Handles {
    /// Puts others in their place. What owns memory is rare, and dropped elsewhere.
    #[inline(always)]
    pub(super) fn replace(&mut self, others: Handles) {
        let former = core::mem::replace(self, others);
        match former {
            // They own nothing.
            Handles::None | Handles::One(_) => core::mem::forget(former),
            _ => discard(former),
        }
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u64] {
        match self {
            Handles::None => &[],
            Handles::One(handle) => slice::from_ref(handle),
            Handles::Many(handles) => handles,
            Handles::Noted(noted) => match &**noted {
                [noted, ..] => slice::from_ref(&noted.handle),
                [] => &[],
            },
        }
    }
}

#[cold]
fn discard(handles: Handles) {
    drop(handles);
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Gone; its place and its addresses wait for the next one.
    Vacant,
    /// Its addresses are taken; nobody sees it yet.
    Reserved,
    /// There, and nobody changes it now.
    Live,
    /// There, and one thread has its handles and changes what they are mapped on;
    /// others that want to wait.
    Busy,
}

/// One piece of memory. Its key in the books is its first GPU address.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) state: State,
    pub(super) kind: Kind,
    pub(super) span: Span,
    /// Bytes that the caller asked for.
    pub(super) size: u64,
    /// Bytes of GPU addresses, guard pages apart.
    pub(super) length: u64,
    pub(super) handles: Handles,
    /// The node that it is reported for.
    pub(super) node: u32,
    pub(super) flags: MemoryFlags,
    /// Where it goes when nobody says: all GPUs that can reach it.
    pub(super) reachable: GpuSet,
    /// Where it may go, if it was registered for some GPUs alone.
    pub(super) registered: Option<GpuSet>,
    pub(super) mapped: GpuSet,
    /// Map calls that an equal number of unmap calls must meet (registered memory).
    pub(super) mappings: u32,
    /// Register calls that an equal number of deregister calls must meet.
    pub(super) registrations: u32,
    pub(super) user_data: u64,
    /// Bytes at the start that are mapped from the render node.
    pub(super) visible: u64,
}

/// An object that has no addresses yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draft {
    pub(super) kind: Kind,
    /// Bytes that the caller asked for.
    pub(super) size: u64,
    /// Bytes of GPU addresses, guard pages apart.
    pub(super) length: u64,
    pub(super) node: u32,
    pub(super) flags: MemoryFlags,
    pub(super) reachable: GpuSet,
}

impl Draft {
    /// The object at its addresses, seen by nobody yet.
    #[inline]
    pub(super) const fn at(&self, span: Span) -> Object {
        Object {
            state: State::Reserved,
            kind: self.kind,
            span,
            size: self.size,
            length: self.length,
            handles: Handles::None,
            node: self.node,
            flags: self.flags,
            reachable: self.reachable,
            registered: None,
            mapped: GpuSet::NONE,
            mappings: 0,
            registrations: 0,
            user_data: 0,
            visible: 0,
        }
    }
}

impl Object {
    /// Makes another object of one that is gone.
    #[inline(always)]
    pub(super) fn renew(&mut self, draft: &Draft, span: Span) {
        self.handles.replace(Handles::None);
        let Draft { kind, size, length, node, flags, reachable } = *draft;
        self.state = State::Reserved;
        (self.kind, self.span) = (kind, span);
        (self.size, self.length) = (size, length);
        (self.node, self.flags) = (node, flags);
        (self.reachable, self.registered, self.mapped) = (reachable, None, GpuSet::NONE);
        (self.mappings, self.registrations) = (0, 0);
        (self.user_data, self.visible) = (0, 0);
    }

    /// Whether it is what a caller allocated, and frees.
    #[inline]
    pub(super) fn is_allocation(&self) -> bool {
        !matches!(self.kind, Kind::Registered { .. } | Kind::ScratchPart)
    }

    /// Whether it is an allocation of which the process has nothing but addresses
    /// that others can use again.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        let quiet = matches!(self.kind, Kind::Device | Kind::Gtt | Kind::Unaddressed);
        quiet && self.visible == 0 && !matches!(self.span.home, Home::Own | Home::Borrowed)
    }

    /// Whether the CPU reaches it at its GPU address.
    pub(super) fn is_process_memory(&self) -> bool {
        !matches!(self.span.home, Home::Gpuvm(_) | Home::Window)
    }
}
