//! The buffers that the library brings along for a queue: control block, end-of-pipe
//! buffer, save area. Each is a mapping of its own, as long as [`sizes`](super::sizes)
//! says, because from 6.12 on the driver wants exactly that (`kfd_queue.c`,
//! `kfd_queue_acquire_buffers`).
//!
//! # Safety
//! One of the few modules of `core` with `unsafe` code: the headers of a save area are
//! written into memory that was allocated here, with rights for the CPU and as long as
//! they need, and that nobody else knows yet.
#![allow(unsafe_code)]

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};

use super::mapped::Mapped;
use super::pointers::DoorbellType;
use super::sizes::{SaveArea, control_block_bytes, end_of_pipe_bytes};
use crate::context::Machine;
use crate::error::{Error, Object, Operation, Status};
use crate::log::{debug, info};
use crate::memory::{Access, AllocationRequest, AttributedPages, MemoryFlags};
use crate::seam::{Os, Platform};
use crate::topology::{Aperture, GfxVersion};
use crate::uapi::kfd::{
    ContextSaveAreaHeader, QueueType, SvmAttribute, SvmAttributeType, SvmFlags, SvmLocation,
};
use zerocopy::{FromBytes, IntoBytes};

/// `StallOnRetryFault` in `HSA_CAPABILITY2`.
const CAPABILITY2_STALL_ON_RETRY_FAULT: u32 = 1 << 2;
/// `SVMAPISupported` in `HSA_CAPABILITY`.
const CAPABILITY_SVM_API: u32 = 1 << 27;
/// Where a non-AQL queue's pointers are in its control block; 8 bytes each, apart by
/// what the driver reads behind the read pointer when an SDMA queue ends.
const READ_POINTER: u64 = 0;
const WRITE_POINTER: u64 = 64;

/// What a queue needs to know of its GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueNode {
    pub(super) node: u32,
    pub(super) gpu_id: u32,
    pub(super) doorbell: DoorbellType,
    pub(super) is_tonga: bool,
    /// Whether memory is the driver's here, and not the process's own.
    pub(super) discrete: bool,
    /// Addresses that GPU and CPU have in common.
    pub(super) bounds: Aperture,
    /// Compute units.
    pub(super) units: u32,
    version: GfxVersion,
    save_area: Option<SaveArea>,
    /// What the kernel publishes of it is not what its newest formula says.
    published_otherwise: bool,
    /// The GPU has the SVM calls.
    svm: bool,
    /// Its retry faults stall: memory of the process is not for save areas.
    stalls: bool,
}

impl QueueNode {
    /// Of a node of the machine.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT, also for a CPU node; ERROR for a doorbell type that nobody
    /// knows.
    pub(super) fn of(machine: &Machine, node_id: u32) -> Result<QueueNode, Error> {
        let node = machine.gpu(node_id)?;
        let gpu = Object::Gpu(node.gpu_id);
        let doorbell = DoorbellType::from_capability(node.capability)
            .ok_or_else(|| Error::library(Status::ERROR, Operation::LookUp, gpu))?;
        Ok(QueueNode {
            node: node_id,
            gpu_id: node.gpu_id,
            doorbell,
            is_tonga: (node.gfx_version.major, node.gfx_version.minor, node.gfx_version.stepping)
                == (8, 0, 2),
            discrete: machine.is_discrete(),
            bounds: machine.svm().unwrap_or(Aperture { base: 0, limit: u64::MAX }),
            units: node.simd_count.checked_div(node.simd_per_cu).unwrap_or(0),
            version: node.gfx_version,
            save_area: SaveArea::of(node),
            published_otherwise: SaveArea::of(node) != SaveArea::by_formula(node),
            svm: node.capability & CAPABILITY_SVM_API != 0,
            stalls: node.capability2 & CAPABILITY2_STALL_ON_RETRY_FAULT != 0,
        })
    }
}

/// What a save area's headers say of the exceptions of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exceptions {
    /// The address of a `u64`; 0 for none.
    pub(super) reason: u64,
    /// An event; 0 for none.
    pub(super) event: u32,
}

/// The buffers of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buffers {
    /// Address of the control block.
    pub(super) control: u64,
    /// Address and bytes.
    pub(super) end_of_pipe: Option<(u64, u32)>,
    pub(super) save: Option<SaveBuffer>,
}

/// A save area in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SaveBuffer {
    pub(super) address: u64,
    /// Bytes, debug areas included.
    pub(super) length: u64,
    pub(super) sizes: SaveArea,
    /// The pages, where GPUs reach them by attributes and not by a buffer.
    pages: Option<AttributedPages>,
}

impl Buffers {
    /// The read pointer of a queue that has it in its control block.
    pub(super) fn read_pointer(&self) -> u64 {
        self.control.saturating_add(READ_POINTER)
    }

    /// The write pointer of such a queue.
    pub(super) fn write_pointer(&self) -> u64 {
        self.control.saturating_add(WRITE_POINTER)
    }
}

/// Makes the buffers of a queue.
///
/// # Errors
/// NO_MEMORY with the reason. Nothing is left.
pub(super) fn make<P: Platform>(
    access: &Access<'_, P>,
    os: &P::Os,
    node: &QueueNode,
    queue_type: QueueType,
    exceptions: Exceptions,
    by_attributes: bool,
) -> Result<Buffers, Error> {
    let page = u32::try_from(os.page_size()).unwrap_or(u32::MAX);
    let shared = MemoryFlags::HOST_ACCESS | MemoryFlags::EXECUTE;
    let drivers = shared | MemoryFlags::NON_PAGED | MemoryFlags::GTT_ACCESS | MemoryFlags::UNCACHED;
    let control = allocate(access, node, u64::from(control_block_bytes(page)), drivers)?;
    let mut buffers = Buffers { control, end_of_pipe: None, save: None };
    let make_rest = |buffers: &mut Buffers| -> Result<(), Error> {
        let bytes = end_of_pipe_bytes(node.version, queue_type);
        if bytes != 0 {
            let length = u64::from(bytes.max(page));
            let local = MemoryFlags::EXECUTE | MemoryFlags::NON_PAGED | MemoryFlags::COARSE_GRAIN;
            buffers.end_of_pipe = Some((allocate(access, node, length, local)?, bytes));
        }
        let is_compute = matches!(queue_type, QueueType::COMPUTE | QueueType::COMPUTE_AQL);
        if let Some(sizes) = node.save_area.filter(|_| is_compute) {
            buffers.save =
                Some(make_save_area(access, node, page, sizes, exceptions, by_attributes)?);
        }
        Ok(())
    };
    match make_rest(&mut buffers) {
        Ok(()) => Ok(buffers),
        Err(error) => {
            unmake(access, &buffers);
            Err(error.with_status(Status::NO_MEMORY))
        }
    }
}

/// Takes the buffers of a queue away that the driver does not have any more. What the
/// driver refuses to take back stays in the books of memory.
pub(super) fn unmake<P: Platform>(access: &Access<'_, P>, buffers: &Buffers) {
    if let Some(save) = &buffers.save {
        let _ = match &save.pages {
            Some(pages) => access.unmake_attributed(pages),
            None => access.unmap_and_free(save.address),
        };
    }
    if let Some((address, _)) = buffers.end_of_pipe {
        let _ = access.unmap_and_free(address);
    }
    let _ = access.unmap_and_free(buffers.control);
}

/// Memory of one kind, mapped on the queue's GPU. On machines whose GPUs share the
/// process's memory it is that.
///
/// # Errors
/// NO_MEMORY with the reason.
pub(super) fn allocate<P: Platform>(
    access: &Access<'_, P>,
    node: &QueueNode,
    size: u64,
    flags: MemoryFlags,
) -> Result<u64, Error> {
    let flags = if node.discrete {
        flags
    } else {
        MemoryFlags::HOST_ACCESS | MemoryFlags::EXECUTE | MemoryFlags::NO_NUMA_BIND
    };
    let request = AllocationRequest { node: node.node, size, alignment: 0, flags, address: 0 };
    let made = access.allocate(&request).and_then(|address| {
        if !node.discrete {
            return Ok(address);
        }
        match access.map(address, size, Some(&[node.node])) {
            Ok(_) => Ok(address),
            Err(error) => {
                let _ = access.unmap_and_free(address);
                Err(error)
            }
        }
    });
    made.map_err(|error| error.with_status(Status::NO_MEMORY))
}

/// The save area: pages of the process by attributes where that can be, else a buffer.
fn make_save_area<P: Platform>(
    access: &Access<'_, P>,
    node: &QueueNode,
    page: u32,
    sizes: SaveArea,
    exceptions: Exceptions,
    by_attributes: bool,
) -> Result<SaveBuffer, Error> {
    let length = sizes.mapping_bytes(NonZeroU32::new(page).unwrap_or(NonZeroU32::MIN));
    if node.published_otherwise {
        info!(
            access.logger(),
            "gpu_id {:#x}: the driver publishes another save area than its newest known formula \
             gives; what it publishes is used",
            node.gpu_id
        );
    }
    let prepare = |address| write_headers(address, length, &sizes, exceptions);
    if by_attributes && node.svm && !node.stalls {
        let attributes = attributes(node.gpu_id);
        match access.make_attributed(length, &attributes, prepare) {
            Ok(pages) => {
                let address = pages.address();
                return Ok(SaveBuffer { address, length, sizes, pages: Some(pages) });
            }
            Err(error) => debug!(access.logger(), "no save area by attributes: {}", error),
        }
    }
    let mut flags = MemoryFlags::HOST_ACCESS | MemoryFlags::EXECUTE;
    if node.stalls {
        flags |= MemoryFlags::NON_PAGED | MemoryFlags::GTT_ACCESS;
    }
    let address = allocate(access, node, length, flags)?;
    prepare(address);
    Ok(SaveBuffer { address, length, sizes, pages: None })
}

/// Attributes of a save area: the one GPU has it mapped whatever happens.
fn attributes(gpu_id: u32) -> [SvmAttribute; 6] {
    let set = SvmFlags::HOST_ACCESS | SvmFlags::GPU_EXEC | SvmFlags::GPU_ALWAYS_MAPPED;
    let clear = SvmFlags::COHERENT
        | SvmFlags::HIVE_LOCAL
        | SvmFlags::GPU_RO
        | SvmFlags::GPU_READ_MOSTLY
        | SvmFlags::EXT_COHERENT;
    [
        (SvmAttributeType::PREFETCH_LOC, gpu_id),
        (SvmAttributeType::PREFERRED_LOC, SvmLocation::SYSMEM.0),
        (SvmAttributeType::CLR_FLAGS, clear.bits()),
        (SvmAttributeType::SET_FLAGS, set.bits()),
        (SvmAttributeType::ACCESS, gpu_id),
        (SvmAttributeType::GRANULARITY, 0xff),
    ]
    .map(|(r#type, value)| SvmAttribute { r#type, value })
}

/// Writes the headers into a save area of `length` bytes that was just made.
fn write_headers(address: u64, length: u64, sizes: &SaveArea, exceptions: Exceptions) {
    const WORDS: usize = size_of::<ContextSaveAreaHeader>() / size_of::<u32>();
    for (offset, header) in sizes.headers(exceptions.reason, exceptions.event) {
        let inside = offset
            .checked_add(size_of::<ContextSaveAreaHeader>() as u64)
            .is_some_and(|end| end <= length);
        let start = address.checked_add(offset).and_then(|start| usize::try_from(start).ok());
        let (true, Some(start)) = (inside, start) else { continue };
        // SAFETY: within memory that this module has allocated, that the CPU may write
        // and that nobody else knows (see the module).
        let Some(words) = (unsafe { Mapped::<AtomicU32>::new(start, WORDS) }) else { continue };
        for (to, from) in words.as_ref().iter().zip(header.as_bytes().chunks_exact(4)) {
            to.store(u32::read_from_bytes(from).unwrap_or(0), Ordering::Relaxed);
        }
    }
}
