//! Allocation: addresses first, then the driver's buffer, then the CPU's view.

use core::sync::atomic::Ordering;

use super::access::{Access, Owner, Scene};
use super::buffers::{Buffer, buffer_flags};
use super::object::{Draft, Handles, Kind};
use super::objects::Placed;
use super::regions::to_usize;
use super::spans::{Source, alignment_for, round_up};
use super::{AllocationRequest, MemoryFlags};
use crate::context::{UdmabufPolicy, no_such_node};
use crate::errno::Errno;
use crate::error::{self, Error, Operation, Status};
use crate::log::warning;
use crate::seam::{Os, Platform, Protection};
use crate::uapi::gate::Feature;
use crate::uapi::kfd::AllocMemoryFlags;

impl<P: Platform> Access<'_, P> {
    /// Allocates; the checks and their order are those of `hsaKmtAllocMemoryAlign`.
    pub(crate) fn allocate(&self, request: &AllocationRequest) -> Result<u64, Error> {
        let has = |flag| request.flags.contains(flag);
        if has(MemoryFlags::CONTIGUOUS) {
            self.needs(Feature::Contiguous)?;
        }
        let Some(scene) = self.scene_if_any(request.node) else {
            return Err(no_such_node(request.node));
        };
        let least = request.flags.page_size();
        if request.alignment != 0
            && (!request.alignment.is_power_of_two() || request.alignment < least)
        {
            return Err(Error::argument(3));
        }
        if request.size == 0 || request.size & least.wrapping_sub(1) != 0 {
            return Err(Error::argument(2));
        }
        if has(MemoryFlags::FIXED_ADDRESS) && request.address == 0 {
            return Err(Error::argument(5));
        }
        if has(MemoryFlags::EXTENDED_COHERENT)
            && (has(MemoryFlags::COARSE_GRAIN) || has(MemoryFlags::UNCACHED))
        {
            return Err(Error::argument(4));
        }
        if has(MemoryFlags::SCRATCH) {
            if request.alignment != 0 {
                return Err(Error::argument(3).with_status(Status::NOT_IMPLEMENTED));
            }
            return self.allocate_scratch(request, &scene);
        }
        let diverted = self.memory.diverted;
        let on_device = is_device_memory(request.flags);
        match scene.gpu() {
            Some(owner) if on_device && !diverted => self.allocate_device(request, owner),
            Some(owner) if diverted => self.allocate_diverted(request, &scene, owner),
            _ => self.allocate_host(request, &scene),
        }
    }

    /// Memory of a GPU's node where that may be another's.
    #[cold]
    fn allocate_diverted(
        &self,
        request: &AllocationRequest,
        scene: &Scene,
        owner: &Owner,
    ) -> Result<u64, Error> {
        if self.context.options().zero_frame_buffer {
            let flags = request.flags | MemoryFlags::COARSE_GRAIN;
            return self.allocate_host(&AllocationRequest { flags, ..*request }, scene);
        }
        if !is_device_memory(request.flags) {
            return self.allocate_host(request, scene);
        }
        let policy = self.context.options().udmabuf;
        if policy == UdmabufPolicy::Off || !self.has_udmabuf_memory(request.node, owner) {
            return self.allocate_device(request, owner);
        }
        match self.allocate_udmabuf(request, scene, owner) {
            Err(error) if policy == UdmabufPolicy::Prefer => {
                let (size, node) = (request.size, request.node);
                warning!(
                    self.logger(),
                    "{} bytes of node {} without udmabuf: {}",
                    size,
                    node,
                    error
                );
                self.allocate_device(request, owner)
            }
            answer => answer,
        }
    }

    /// System memory of the driver, made through one GPU and reported for another
    /// node.
    pub(crate) fn allocate_gtt(
        &self,
        request: &AllocationRequest,
        anchor: u32,
    ) -> Result<u64, Error> {
        let scene = self.scene(request.node)?;
        let anchor = self.scene(anchor)?.gpu().copied().ok_or(Error::library(
            Status::INVALID_NODE_UNIT,
            Operation::LookUp,
            error::Object::Node(anchor),
        ))?;
        if request.size == 0 || request.size.checked_rem(request.flags.page_size()) != Some(0) {
            return Err(Error::argument(3));
        }
        let flags = request.flags | MemoryFlags::NON_PAGED | MemoryFlags::GTT_ACCESS;
        let address = self.allocate_host(
            &AllocationRequest { flags, ..*request },
            &Scene { is_gpu: true, anchor: Some(anchor), ..scene },
        )?;
        let mut books = self.memory.lock(self.os());
        let place = books.objects.find(address);
        if let Some(object) = place.and_then(|place| books.objects.value_mut(place)) {
            (object.node, object.flags) = (request.node, request.flags);
        }
        Ok(address)
    }

    /// Whether the driver has a feature.
    pub(super) fn needs(&self, feature: Feature) -> Result<(), Error> {
        if self.context.version().supports(feature) {
            Ok(())
        } else {
            Err(Error::needs_kfd(feature.gate().minor))
        }
    }

    /// Memory of a GPU.
    #[inline(always)]
    fn allocate_device(&self, request: &AllocationRequest, owner: &Owner) -> Result<u64, Error> {
        let no_memory = || Error::no_memory(request.size);
        let flags = request.flags;
        let has = |flag| flags.contains(flag);
        let page = self.page();
        let size = round_up(request.size, page).ok_or_else(no_memory)?;
        // The GPU sees the ring of an AQL queue twice.
        let copies = if has(MemoryFlags::AQL_QUEUE) { 2 } else { 1 };
        let length = size.checked_mul(copies).ok_or_else(no_memory)?;
        let alignment = alignment_for(length, request.alignment, u64::max(page, owner.alignment()));
        let fixed = has(MemoryFlags::FIXED_ADDRESS).then_some(request.address);
        let kind = if has(MemoryFlags::NO_ADDRESS) { Kind::Unaddressed } else { Kind::Device };
        let draft = Draft {
            kind,
            size: request.size,
            length,
            node: request.node,
            flags,
            reachable: owner.peers,
        };
        let (placed, address) = if kind == Kind::Unaddressed {
            (self.window_span(length, alignment, &draft)?, 0)
        } else if owner.apart {
            self.gpuvm_span(owner.place, alignment, fixed, &draft)?
        } else {
            let placed = match self.vacancy(Source::Device, alignment, fixed, &draft) {
                Some(placed) => placed,
                None => self.process_span(Source::Device, alignment, fixed, &draft)?,
            };
            (placed, placed.start)
        };
        let mut to = buffer_flags(flags, self.context.options()) | AllocMemoryFlags::VRAM;
        if has(MemoryFlags::HOST_ACCESS) {
            to |= AllocMemoryFlags::PUBLIC;
        }
        if has(MemoryFlags::CONTIGUOUS) {
            to |= AllocMemoryFlags::CONTIGUOUS_BEST_EFFORT;
        }
        let buffer = Buffer { gpu_id: owner.gpu_id, address, size: length, flags: to, source: 0 };
        let seen = kind == Kind::Device && !owner.apart;
        self.finish(&buffer, owner, placed, flags, seen.then_some(size)).map_err(of_device)
    }

    /// Makes the buffer of an object that has its addresses, lets the CPU or a
    /// debugger see so many bytes of it, and the object is there; or it is gone.
    #[inline(always)]
    fn finish(
        &self,
        buffer: &Buffer,
        owner: &Owner,
        placed: Placed,
        flags: MemoryFlags,
        seen: Option<u64>,
    ) -> Result<u64, Error> {
        let (handle, offset) = match self.make_buffer(buffer, placed.place) {
            Ok(made) => made,
            Err(error) => {
                self.forget(placed);
                return Err(error);
            }
        };
        let visible = match seen {
            Some(size) => match self.show(owner, flags, placed.start, size, offset) {
                Ok(visible) => visible,
                Err(error) => {
                    let error = self.drop_buffer(handle, error);
                    self.forget(placed);
                    return Err(error);
                }
            },
            None => 0,
        };
        self.publish(placed.place, Handles::One(handle), visible);
        Ok(placed.start)
    }

    /// Memory of the host: the process's own pages or the driver's.
    #[inline(never)]
    fn allocate_host(&self, request: &AllocationRequest, scene: &Scene) -> Result<u64, Error> {
        self.allocate_pages(request, scene).map_err(of_host)
    }

    fn allocate_pages(&self, request: &AllocationRequest, scene: &Scene) -> Result<u64, Error> {
        let no_memory = || Error::no_memory(request.size);
        let flags = request.flags;
        let has = |flag| flags.contains(flag);
        let page = self.page();
        let size = round_up(request.size, page).ok_or_else(no_memory)?;
        let fixed = has(MemoryFlags::FIXED_ADDRESS).then_some(request.address);
        let draft = |kind, length| Draft {
            kind,
            size: request.size,
            length,
            node: if has(MemoryFlags::GTT_ACCESS) { 0 } else { request.node },
            flags,
            reachable: scene.all,
        };
        if !scene.discrete && !has(MemoryFlags::ONLY_ADDRESS) {
            if request.alignment != 0 || fixed.is_some() {
                let position = if fixed.is_some() { 5 } else { 3 };
                return Err(Error::argument(position).with_status(Status::ERROR));
            }
            return self.allocate_plain(flags, size, &draft(Kind::Plain, size));
        }
        let least = scene.anchor.map_or(0, |owner| owner.alignment());
        let alignment = alignment_for(size, request.alignment, u64::max(page, least));
        if has(MemoryFlags::ONLY_ADDRESS) {
            let draft = Draft { node: 0, ..draft(Kind::Addresses, size) };
            let placed = self.process_span(Source::Addresses, alignment, fixed, &draft)?;
            self.publish(placed.place, Handles::None, 0);
            return Ok(placed.start);
        }
        let owner = scene.anchor.as_ref().ok_or_else(no_memory)?;
        let userptr = !has(MemoryFlags::NON_PAGED)
            && !has(MemoryFlags::GTT_ACCESS)
            && self.context.options().userptr_for_paged_memory
            && !self.context.is_secondary()
            && self.memory.userptr_refused.load(Ordering::Relaxed) == 0;
        let to = buffer_flags(flags, self.context.options());
        if userptr && !has(MemoryFlags::AQL_QUEUE) {
            let paged = draft(Kind::Paged { bound: false }, size);
            match self.allocate_paged(request, scene, owner, to, (size, alignment, fixed), &paged) {
                // A driver whose GPUs retry faults takes no memory of the process.
                Err(Error { errno: Some(Errno::EOPNOTSUPP), .. }) => {
                    self.memory.userptr_refused.store(1, Ordering::Relaxed);
                }
                answer => return answer,
            }
        }
        let copies = if has(MemoryFlags::AQL_QUEUE) { 2 } else { 1 };
        let length = size.checked_mul(copies).ok_or_else(no_memory)?;
        let draft = draft(Kind::Gtt, length);
        let placed = self.process_span(Source::Device, alignment, fixed, &draft)?;
        let buffer = Buffer {
            gpu_id: owner.gpu_id,
            address: placed.start,
            size: length,
            flags: to | AllocMemoryFlags::GTT,
            source: 0,
        };
        let seen = has(MemoryFlags::HOST_ACCESS).then_some(size);
        self.finish(&buffer, owner, placed, flags, seen)
    }

    /// Pages of the process without a buffer.
    fn allocate_plain(&self, flags: MemoryFlags, size: u64, draft: &Draft) -> Result<u64, Error> {
        let mut protection = Protection::READ;
        if !flags.contains(MemoryFlags::READ_ONLY) {
            protection |= Protection::WRITE;
        }
        if flags.contains(MemoryFlags::EXECUTE) {
            protection |= Protection::EXECUTE;
        }
        let placed = self.process_span(Source::Own, self.page(), None, draft)?;
        let opened = to_usize(placed.start)
            .and_then(|start| self.os().protect(start, to_usize(size)?, protection));
        if let Err(errno) = opened {
            self.forget(placed);
            let object = error::Object::Bytes(size);
            return Err(Error::system(Status::NO_MEMORY, Operation::ProtectMemory, errno, object));
        }
        self.publish(placed.place, Handles::None, 0);
        Ok(placed.start)
    }

    /// Pages of the process under a buffer of the driver.
    fn allocate_paged(
        &self,
        request: &AllocationRequest,
        scene: &Scene,
        owner: &Owner,
        flags: AllocMemoryFlags,
        (size, alignment, fixed): (u64, u64, Option<u64>),
        draft: &Draft,
    ) -> Result<u64, Error> {
        let placed = self.process_span(Source::Host, alignment, fixed, draft)?;
        let start = placed.start;
        let make = || {
            let bound = self.open_pages(request, scene, placed, size)?;
            let flags = flags | AllocMemoryFlags::USERPTR;
            match self.make_userptr(owner.gpu_id, start, start, size, flags, placed.place) {
                Ok(handles) => Ok((handles, bound)),
                Err(error) => {
                    self.close_pages(placed.home, start, size, bound);
                    Err(error)
                }
            }
        };
        let made = match make() {
            // An access that strayed here, as for other buffers.
            Err(Error { errno: Some(Errno::EADDRINUSE), .. })
                if self.span_of(placed.place).is_some_and(|span| self.replace(span)) =>
            {
                make()
            }
            made => made,
        };
        match made {
            Ok((handles, bound)) => {
                let mut books = self.memory.lock(self.os());
                if let Some(object) = books.put_handles(placed.place, handles) {
                    object.kind = Kind::Paged { bound };
                }
                Ok(start)
            }
            Err(error) => {
                self.forget(placed);
                Err(error)
            }
        }
    }
}

/// Whether what is asked for of a GPU's node is its own memory.
#[inline(always)]
fn is_device_memory(flags: MemoryFlags) -> bool {
    flags.contains(MemoryFlags::NON_PAGED)
        && !flags.intersects(MemoryFlags::GTT_ACCESS | MemoryFlags::ONLY_ADDRESS)
}

/// The reference's callers know device memory that is not there as NO_MEMORY.
#[cold]
fn of_device(error: Error) -> Error {
    match error.status {
        Status::ERROR => error.with_status(Status::NO_MEMORY),
        _ => error,
    }
}

/// The reference's callers know host memory that is not there as ERROR.
#[cold]
fn of_host(error: Error) -> Error {
    match error.status {
        Status::NO_MEMORY => error.with_status(Status::ERROR),
        _ => error,
    }
}
