//! Allocation: addresses first, then the driver's buffer, then the CPU's view.

use core::sync::atomic::Ordering;

use super::access::{Access, Owner, Scene};
use super::buffers::{Buffer, buffer_flags};
use super::object::{Handles, Home, Kind, Object, Span};
use super::regions::to_usize;
use super::spans::{Source, alignment_for, round_up};
use super::{AllocationRequest, MemoryFlags};
use crate::errno::Errno;
use crate::error::{self, Error, Operation, Status};
use crate::seam::{Os, Platform, Protection};
use crate::topology::Aperture;
use crate::uapi::gate::Feature;
use crate::uapi::kfd::AllocMemoryFlags;

impl<P: Platform> Access<'_, P> {
    /// Allocates; the checks and their order are those of `hsaKmtAllocMemoryAlign`.
    pub(crate) fn allocate(&self, request: &AllocationRequest) -> Result<u64, Error> {
        let mut request = *request;
        let has = |flag| request.flags.contains(flag);
        if has(MemoryFlags::CONTIGUOUS) {
            self.needs(Feature::Contiguous)?;
        }
        let scene = self.scene(request.node)?;
        let least = request.flags.page_size();
        if request.alignment != 0
            && (!request.alignment.is_power_of_two() || request.alignment < least)
        {
            return Err(Error::argument(3));
        }
        if request.size == 0 || request.size.checked_rem(least) != Some(0) {
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
            return self.allocate_scratch(&request, &scene);
        }
        let zero_frame_buffer = self.context.options().zero_frame_buffer;
        let on_host = scene.owner.is_none()
            || !has(MemoryFlags::NON_PAGED)
            || has(MemoryFlags::GTT_ACCESS)
            || has(MemoryFlags::ONLY_ADDRESS)
            || zero_frame_buffer;
        if on_host {
            if zero_frame_buffer && scene.owner.is_some() {
                request.flags |= MemoryFlags::COARSE_GRAIN;
            }
            return self.allocate_host(&request, &scene).map_err(of_host);
        }
        if has(MemoryFlags::NO_ADDRESS) && has(MemoryFlags::ONLY_ADDRESS) {
            return Err(Error::argument(4));
        }
        let owner = scene.owner.ok_or_else(|| Error::argument(1))?;
        self.allocate_device(&request, &scene, owner)
    }

    /// System memory of the driver, made through one GPU and reported for another
    /// node.
    pub(crate) fn allocate_gtt(
        &self,
        request: &AllocationRequest,
        anchor: u32,
    ) -> Result<u64, Error> {
        let scene = self.scene(request.node)?;
        let anchor = self.scene(anchor)?.owner.ok_or(Error::library(
            Status::INVALID_NODE_UNIT,
            Operation::LookUp,
            error::Object::Node(anchor),
        ))?;
        if request.size == 0 || request.size.checked_rem(request.flags.page_size()) != Some(0) {
            return Err(Error::argument(3));
        }
        let flags = request.flags | MemoryFlags::NON_PAGED | MemoryFlags::GTT_ACCESS;
        let address = self
            .allocate_host(
                &AllocationRequest { flags, ..*request },
                &Scene { owner: Some(anchor), ..scene },
            )
            .map_err(of_host)?;
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
    fn allocate_device(
        &self,
        request: &AllocationRequest,
        scene: &Scene,
        owner: Owner,
    ) -> Result<u64, Error> {
        let no_memory = || Error::no_memory(request.size);
        let flags = request.flags;
        let has = |flag| flags.contains(flag);
        let page = self.page();
        let size = round_up(request.size, page).ok_or_else(no_memory)?;
        // The GPU sees the ring of an AQL queue twice.
        let copies = if has(MemoryFlags::AQL_QUEUE) { 2 } else { 1 };
        let length = size.checked_mul(copies).ok_or_else(no_memory)?;
        let alignment = alignment_for(length, request.alignment, u64::max(page, owner.alignment));
        let fixed = has(MemoryFlags::FIXED_ADDRESS).then_some(request.address);
        let kind = if has(MemoryFlags::NO_ADDRESS) { Kind::Unaddressed } else { Kind::Device };
        let object = Object::reserved(kind, request.size, length, request.node, flags, owner.peers);
        let span = if kind == Kind::Unaddressed {
            self.window_span(length, alignment, object)?
        } else if let Some(gpuvm) = owner.gpuvm {
            self.gpuvm_span(owner.place, gpuvm, length, alignment, fixed, object)?
        } else {
            let bounds = scene.svm.ok_or_else(no_memory)?;
            self.process_span(Source::Device, bounds, alignment, fixed, object)?
        };
        let address = match (kind, owner.gpuvm) {
            (Kind::Unaddressed, _) => 0,
            (_, Some(gpuvm)) => span.start.saturating_sub(gpuvm.base),
            (_, None) => span.start,
        };
        let mut to = buffer_flags(flags, self.context.options()) | AllocMemoryFlags::VRAM;
        if has(MemoryFlags::HOST_ACCESS) {
            to |= AllocMemoryFlags::PUBLIC;
        }
        if has(MemoryFlags::CONTIGUOUS) {
            to |= AllocMemoryFlags::CONTIGUOUS_BEST_EFFORT;
        }
        let buffer = Buffer { owner, address, size: length, flags: to, source: 0 };
        let seen = kind == Kind::Device && span_is_process(span);
        self.finish(&buffer, span, flags, seen.then_some(size)).map_err(|error| {
            match error.status {
                Status::ERROR => error.with_status(Status::NO_MEMORY),
                _ => error,
            }
        })
    }

    /// Makes the buffer of an object that has its addresses, lets the CPU or a
    /// debugger see so many bytes of it, and the object is there; or it is gone.
    fn finish(
        &self,
        buffer: &Buffer,
        span: Span,
        flags: MemoryFlags,
        seen: Option<u64>,
    ) -> Result<u64, Error> {
        let made = self.make_buffer(buffer, span).and_then(|(handle, offset)| {
            let visible = match seen {
                Some(size) => self.show(buffer.owner, flags, span.start, size, offset),
                None => Ok(0),
            };
            visible
                .map_err(|error| self.drop_buffer(handle, error))
                .map(|visible| (handle, visible))
        });
        match made {
            Ok((handle, visible)) => {
                self.publish(span.start, Handles::One(handle), visible);
                Ok(span.start)
            }
            Err(error) => {
                self.forget(span);
                Err(error)
            }
        }
    }

    /// Memory of the host: the process's own pages or the driver's.
    fn allocate_host(&self, request: &AllocationRequest, scene: &Scene) -> Result<u64, Error> {
        let no_memory = || Error::no_memory(request.size);
        let flags = request.flags;
        let has = |flag| flags.contains(flag);
        let page = self.page();
        let size = round_up(request.size, page).ok_or_else(no_memory)?;
        let fixed = has(MemoryFlags::FIXED_ADDRESS).then_some(request.address);
        let object = |kind, length| {
            Object::reserved(
                kind,
                request.size,
                length,
                if has(MemoryFlags::GTT_ACCESS) { 0 } else { request.node },
                flags,
                scene.all,
            )
        };
        if !scene.discrete && !has(MemoryFlags::ONLY_ADDRESS) {
            if request.alignment != 0 || fixed.is_some() {
                let position = if fixed.is_some() { 5 } else { 3 };
                return Err(Error::argument(position).with_status(Status::ERROR));
            }
            return self.allocate_plain(flags, size, object(Kind::Plain, size));
        }
        let bounds = scene.svm.unwrap_or(Aperture { base: page, limit: u64::MAX });
        let least = scene.owner.or(scene.first).map_or(0, |owner| owner.alignment);
        let alignment = alignment_for(size, request.alignment, u64::max(page, least));
        if has(MemoryFlags::ONLY_ADDRESS) {
            let object = Object { node: 0, ..object(Kind::Addresses, size) };
            let span = self.process_span(Source::Device, bounds, alignment, fixed, object)?;
            self.publish(span.start, Handles::None, 0);
            return Ok(span.start);
        }
        let owner = scene.owner.or(scene.first).ok_or_else(no_memory)?;
        let userptr = !has(MemoryFlags::NON_PAGED)
            && !has(MemoryFlags::GTT_ACCESS)
            && self.context.options().userptr_for_paged_memory
            && !self.context.is_secondary()
            && self.memory.userptr_refused.load(Ordering::Relaxed) == 0;
        let to = buffer_flags(flags, self.context.options());
        if userptr && !has(MemoryFlags::AQL_QUEUE) {
            let paged = object(Kind::Paged { bound: false }, size);
            match self.allocate_paged(request, scene, owner, to, (size, alignment, fixed), paged) {
                // A driver whose GPUs retry faults takes no memory of the process.
                Err(Error { errno: Some(Errno::EOPNOTSUPP), .. }) => {
                    self.memory.userptr_refused.store(1, Ordering::Relaxed);
                }
                answer => return answer,
            }
        }
        let copies = if has(MemoryFlags::AQL_QUEUE) { 2 } else { 1 };
        let length = size.checked_mul(copies).ok_or_else(no_memory)?;
        let span =
            self.process_span(Source::Device, bounds, alignment, fixed, object(Kind::Gtt, length))?;
        let buffer = Buffer {
            owner,
            address: span.start,
            size: length,
            flags: to | AllocMemoryFlags::GTT,
            source: 0,
        };
        self.finish(&buffer, span, flags, has(MemoryFlags::HOST_ACCESS).then_some(size))
    }

    /// Pages of the process without a buffer.
    fn allocate_plain(&self, flags: MemoryFlags, size: u64, object: Object) -> Result<u64, Error> {
        let mut protection = Protection::READ;
        if !flags.contains(MemoryFlags::READ_ONLY) {
            protection |= Protection::WRITE;
        }
        if flags.contains(MemoryFlags::EXECUTE) {
            protection |= Protection::EXECUTE;
        }
        let bounds = Aperture { base: 0, limit: u64::MAX };
        let span = self.process_span_as(Source::Host, bounds, self.page(), None, object, true)?;
        let opened = to_usize(span.start)
            .and_then(|start| self.os().protect(start, to_usize(size)?, protection));
        if let Err(errno) = opened {
            self.forget(span);
            let object = error::Object::Bytes(size);
            return Err(Error::system(Status::NO_MEMORY, Operation::ProtectMemory, errno, object));
        }
        self.publish(span.start, Handles::None, 0);
        Ok(span.start)
    }

    /// Pages of the process under a buffer of the driver.
    fn allocate_paged(
        &self,
        request: &AllocationRequest,
        scene: &Scene,
        owner: Owner,
        flags: AllocMemoryFlags,
        (size, alignment, fixed): (u64, u64, Option<u64>),
        object: Object,
    ) -> Result<u64, Error> {
        let bounds = scene.svm.ok_or_else(|| Error::no_memory(size))?;
        let span = self.process_span(Source::Host, bounds, alignment, fixed, object)?;
        let make = || {
            let bound = self.open_pages(request, scene, span, size)?;
            let flags = flags | AllocMemoryFlags::USERPTR;
            match self.make_userptr(owner, span.start, span.start, size, flags, span) {
                Ok(handles) => Ok((handles, bound)),
                Err(error) => {
                    self.close_pages(span, size, bound);
                    Err(error)
                }
            }
        };
        let made = match make() {
            // An access that strayed here, as for other buffers.
            Err(Error { errno: Some(Errno::EADDRINUSE), .. }) if self.replace(span) => make(),
            made => made,
        };
        match made {
            Ok((handles, bound)) => {
                let mut books = self.memory.lock(self.os());
                if let Some(place) = books.objects.find(span.start) {
                    if let Some(object) = books.put_handles(place, handles) {
                        object.kind = Kind::Paged { bound };
                    }
                }
                Ok(span.start)
            }
            Err(error) => {
                self.forget(span);
                Err(error)
            }
        }
    }
}

/// The reference's callers know host memory that is not there as ERROR.
fn of_host(error: Error) -> Error {
    match error.status {
        Status::NO_MEMORY => error.with_status(Status::ERROR),
        _ => error,
    }
}

/// Whether a span is made of addresses of the process.
fn span_is_process(span: Span) -> bool {
    matches!(span.home, Home::Device | Home::Host | Home::Own(_))
}
