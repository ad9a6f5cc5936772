//! Allocation: addresses first, then the driver's buffer, then the CPU's view.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use super::access::{Access, Owner, Scene};
use super::books::Gpuvm;
use super::free_space::FreeSpace;
use super::gpu_set::GpuSet;
use super::object::{Handles, Home, Kind, Object, Span, State};
use super::regions::{
    HUGE_PAGE, Regions, Reserved, reservation, reserve, reserve_region, to_usize,
};
use super::{AllocationRequest, MemoryFlags};
use crate::context::Options;
use crate::errno::Errno;
use crate::error::{self, Error, Operation, Status};
use crate::fallible::try_push;
use crate::seam::{Advice, MapDevice, MemoryPolicy, Os, Placement, Platform, Protection};
use crate::topology::Aperture;
use crate::uapi::gate::Feature;
use crate::uapi::kfd::{AllocMemoryFlags, AllocMemoryOfGpu};

/// From this length on an allocation has a mapping of its own, whose addresses go
/// back to the system with it.
const OWN_MAPPING: u64 = 1 << 30;

/// The largest buffer over memory of the process: the driver keeps its pages in
/// one array. Larger ones are made of several.
pub(super) const USERPTR_MAX: u64 = (512 << 30) - (2 << 20);

/// The addresses of a GPU without the process's addresses start above this, so
/// that none of them looks like a null pointer.
const GPUVM_FIRST: u64 = 1 << 16;

/// Mappings that only a debugger needs, at most: well below the kernel's default
/// of 65,530 mappings in a process (vm.max_map_count).
const DEBUGGER_MAPPINGS_MAX: u32 = 30_000;

/// Rounds up to a multiple of a power of two.
pub(super) fn round_up(size: u64, unit: u64) -> Option<u64> {
    size.checked_next_multiple_of(unit)
}

/// The alignment of an allocation: what was asked for, growing with the size up to
/// a huge page, since larger page-table fragments are faster.
fn alignment_for(size: u64, wanted: u64, least: u64) -> u64 {
    let mut alignment = u64::max(wanted, least);
    while alignment < HUGE_PAGE && size.checked_div(2).unwrap_or(0) >= alignment {
        alignment = alignment.saturating_mul(2);
    }
    alignment
}

/// How the driver is to make a buffer of these flags: rights and caching.
pub(super) fn buffer_flags(flags: MemoryFlags, options: &Options) -> AllocMemoryFlags {
    let disable_cache = options.disable_cache;
    let mut to = AllocMemoryFlags::NO_SUBSTITUTE;
    let mut set = |flag, when: bool| {
        if when {
            to |= flag;
        }
    };
    set(AllocMemoryFlags::AQL_QUEUE_MEM, flags.contains(MemoryFlags::AQL_QUEUE));
    set(AllocMemoryFlags::WRITABLE, !flags.contains(MemoryFlags::READ_ONLY));
    set(
        AllocMemoryFlags::EXECUTABLE,
        flags.contains(MemoryFlags::EXECUTE) || options.all_memory_executable,
    );
    set(AllocMemoryFlags::COHERENT, !flags.contains(MemoryFlags::COARSE_GRAIN) || disable_cache);
    let uncached = MemoryFlags::UNCACHED | MemoryFlags::AQL_QUEUE;
    set(AllocMemoryFlags::UNCACHED, flags.intersects(uncached) || disable_cache);
    set(AllocMemoryFlags::EXT_COHERENT, flags.contains(MemoryFlags::EXTENDED_COHERENT));
    to
}

/// What the driver is asked for.
struct Buffer {
    owner: Owner,
    address: u64,
    size: u64,
    flags: AllocMemoryFlags,
    /// The memory of the process below it.
    source: u64,
}

/// Where addresses are to come from.
#[derive(Clone, Copy)]
enum Source {
    Device,
    Host,
}

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
        let object = Object {
            state: State::Reserved,
            kind,
            span: Span { start: 0, length: 0, home: Home::Borrowed },
            size: request.size,
            length,
            handles: Handles::None,
            node: request.node,
            flags,
            reachable: owner.peers,
            registered: None,
            mapped: GpuSet::NONE,
            mappings: 0,
            registrations: 0,
            user_data: 0,
            visible: 0,
        };
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
        let made = self.make_buffer(&buffer, span).and_then(|(handle, offset)| {
            let visible = if kind == Kind::Device && span_is_process(span) {
                self.show(owner, flags, span.start, size, offset)
            } else {
                Ok(0)
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
                self.forget(span, 0);
                Err(error.with_status(match error.status {
                    Status::ERROR => Status::NO_MEMORY,
                    status => status,
                }))
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
        let object = |kind, length| Object {
            state: State::Reserved,
            kind,
            span: Span { start: 0, length: 0, home: Home::Borrowed },
            size: request.size,
            length,
            handles: Handles::None,
            node: if has(MemoryFlags::GTT_ACCESS) { 0 } else { request.node },
            flags,
            reachable: scene.all,
            registered: None,
            mapped: GpuSet::NONE,
            mappings: 0,
            registrations: 0,
            user_data: 0,
            visible: 0,
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
        let made = self.make_buffer(&buffer, span).and_then(|(handle, offset)| {
            let visible = if has(MemoryFlags::HOST_ACCESS) {
                self.show(owner, flags, span.start, size, offset)
            } else {
                Ok(0)
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
                self.forget(span, 0);
                Err(error)
            }
        }
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
            self.forget(span, 0);
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
                self.forget(span, 0);
                Err(error)
            }
        }
    }

    /// Lets the CPU read and write pages that were addresses only, and tells the
    /// system where they are to be. Whether they were bound to a NUMA node.
    fn open_pages(
        &self,
        request: &AllocationRequest,
        scene: &Scene,
        span: Span,
        size: u64,
    ) -> Result<bool, Error> {
        let failed = |operation, errno| {
            Error::system(Status::ERROR, operation, errno, error::Object::Bytes(size))
        };
        let (start, length) = to_usize(span.start)
            .and_then(|start| Ok((start, to_usize(size)?)))
            .map_err(|errno| failed(Operation::MapMemory, errno))?;
        let os = self.os();
        let rights = Protection::READ | Protection::WRITE;
        os.protect(start, length, rights)
            .map_err(|errno| failed(Operation::ProtectMemory, errno))?;
        // Of its region small memory has the advice already.
        if !matches!(span.home, Home::Host) {
            let _ = os.advise(start, length, Advice::DontFork);
            if size >= HUGE_PAGE {
                let _ = os.advise(start, length, Advice::HugePage);
            }
        }
        let no_substitute = request.flags.contains(MemoryFlags::NO_SUBSTITUTE);
        let node = scene.numa.filter(|_| !request.flags.contains(MemoryFlags::NO_NUMA_BIND));
        let Some(node) = node else { return Ok(false) };
        let policy = if no_substitute { MemoryPolicy::Bind } else { MemoryPolicy::Preferred };
        match self.bind(start, length, policy, node) {
            Ok(()) => Ok(true),
            // Containers forbid it; and it is a wish only, but for NO_SUBSTITUTE.
            Err(Errno::EPERM | Errno::ENOSYS) => Ok(false),
            Err(_) if !no_substitute => Ok(false),
            Err(errno) => {
                self.close_pages(span, size, false);
                Err(failed(Operation::BindMemory, errno))
            }
        }
    }

    fn bind(
        &self,
        start: usize,
        length: usize,
        policy: MemoryPolicy,
        node: u32,
    ) -> Result<(), Errno> {
        // As many words as the node's number needs: nodes may be many and far apart.
        let mut mask = [0_u64; 16];
        let word = usize::try_from(node >> 6).map_err(|_| Errno::EINVAL)?;
        *mask.get_mut(word).ok_or(Errno::EINVAL)? |= 1_u64 << (node & 63);
        let words = mask.get(..=word).ok_or(Errno::EINVAL)?;
        self.os().bind(start, length, policy, words)
    }

    /// Takes pages from the CPU and drops what they hold.
    pub(super) fn close_pages(&self, span: Span, size: u64, bound: bool) {
        if matches!(span.home, Home::Own(_)) {
            return;
        }
        let (Ok(start), Ok(length)) = (to_usize(span.start), to_usize(size)) else { return };
        let os = self.os();
        let _ = os.advise(start, length, Advice::DontNeed);
        if bound {
            let _ = os.bind(start, length, MemoryPolicy::Default, &[]);
        }
        let _ = os.protect(start, length, Protection::empty());
    }

    /// Buffers over memory of the process, as many as its size needs.
    pub(super) fn make_userptr(
        &self,
        owner: Owner,
        address: u64,
        source: u64,
        size: u64,
        flags: AllocMemoryFlags,
        span: Span,
    ) -> Result<Handles, Error> {
        if size <= USERPTR_MAX {
            let buffer = Buffer { owner, address, size, flags, source };
            return self.make_buffer(&buffer, span).map(|(handle, _)| Handles::One(handle));
        }
        let mut handles = Vec::new();
        let mut done = 0;
        while done < size {
            let part = u64::min(size.saturating_sub(done), USERPTR_MAX);
            let buffer = Buffer {
                owner,
                address: address.saturating_add(done),
                size: part,
                flags,
                source: source.saturating_add(done),
            };
            let made = handles
                .try_reserve(1)
                .map_err(Error::from)
                .and_then(|()| self.make_buffer(&buffer, span))
                .and_then(|(handle, _)| try_push(&mut handles, handle));
            if let Err(error) = made {
                for handle in handles {
                    let _ = self.free_buffer(handle);
                }
                return Err(error);
            }
            done = done.saturating_add(part);
        }
        Ok(Handles::Many(handles))
    }

    /// Asks the driver for a buffer: its handle and its offset for the CPU.
    fn make_buffer(&self, buffer: &Buffer, span: Span) -> Result<(u64, u64), Error> {
        let mut block = AllocMemoryOfGpu {
            va_addr: buffer.address,
            size: buffer.size,
            gpu_id: buffer.owner.gpu_id,
            flags: buffer.flags,
            mmap_offset: buffer.source,
            ..AllocMemoryOfGpu::default()
        };
        let gpu = error::Object::Gpu(buffer.owner.gpu_id);
        match self.channel.execute(&mut block, &mut [], Status::ERROR, gpu) {
            // An access that strayed here has left a range of the driver's, which
            // goes only with the mapping of the process.
            Err(Error { errno: Some(Errno::EADDRINUSE), .. }) if self.refresh(span, buffer) => {
                block.mmap_offset = buffer.source;
                self.channel.execute(&mut block, &mut [], Status::ERROR, gpu)?;
            }
            answer => {
                answer?;
            }
        }
        Ok((block.handle, block.mmap_offset))
    }

    /// Maps addresses of ours anew, without contents or rights; whether that could
    /// help.
    fn refresh(&self, span: Span, buffer: &Buffer) -> bool {
        // Pages of the process have rights and advice that would be lost.
        let has_pages = buffer.source.wrapping_sub(span.start) < span.length;
        !has_pages && self.replace(span)
    }

    /// Maps addresses of ours anew as their region was; whether they are ours.
    fn replace(&self, span: Span) -> bool {
        let os = self.os();
        let advice = match span.home {
            Home::Device | Home::Own(_) => &[],
            Home::Host => self.memory.lock(os).host.advice(),
            _ => return false,
        };
        let (Ok(start), Ok(length)) = (to_usize(span.start), to_usize(span.length)) else {
            return false;
        };
        let replaced = os.map(reservation(Placement::Replace(start), length)).is_ok();
        for &advice in advice.iter().filter(|_| replaced) {
            let _ = os.advise(start, length, advice);
        }
        replaced
    }

    /// Lets the CPU see a buffer at its GPU address; how many bytes of it.
    fn show(
        &self,
        owner: Owner,
        flags: MemoryFlags,
        start: u64,
        size: u64,
        offset: u64,
    ) -> Result<u64, Error> {
        let for_cpu = flags.contains(MemoryFlags::HOST_ACCESS);
        if !for_cpu && !self.debugger_may_have_one_more() {
            return Ok(0);
        }
        let gpu = error::Object::Gpu(owner.gpu_id);
        let failed = |errno| Error::system(Status::ERROR, Operation::MapDevice, errno, gpu);
        let (address, length) =
            to_usize(start).and_then(|start| Ok((start, to_usize(size)?))).map_err(failed)?;
        let mapping = MapDevice {
            placement: Placement::Replace(address),
            length,
            protection: if for_cpu {
                Protection::READ | Protection::WRITE
            } else {
                Protection::empty()
            },
            offset,
        };
        match self.channel.map_render(owner.render_minor, mapping, Status::ERROR, gpu) {
            Ok(_) => {
                let _ = self.os().advise(address, length, Advice::DontFork);
                Ok(size)
            }
            Err(error) if for_cpu => Err(error),
            Err(_) => {
                let mut books = self.memory.lock(self.os());
                books.debugger_mappings = books.debugger_mappings.saturating_sub(1);
                Ok(0)
            }
        }
    }

    /// Counts one more mapping that only a debugger needs, if it may be.
    fn debugger_may_have_one_more(&self) -> bool {
        if !self.context.options().debugger_access {
            return false;
        }
        let mut books = self.memory.lock(self.os());
        let may = books.debugger_mappings < DEBUGGER_MAPPINGS_MAX;
        if may {
            books.debugger_mappings = books.debugger_mappings.saturating_add(1);
        }
        may
    }

    /// Frees a buffer of an allocation that failed.
    fn drop_buffer(&self, handle: u64, error: Error) -> Error {
        let _ = self.free_buffer(handle);
        error
    }

    /// Makes an object visible to others.
    pub(super) fn publish(&self, key: u64, handles: Handles, visible: u64) {
        let mut books = self.memory.lock(self.os());
        if let Some(place) = books.objects.find(key) {
            if let Some(object) = books.put_handles(place, handles) {
                object.visible = visible;
            }
        }
    }

    /// Removes an object that was never visible, and gives its addresses back.
    pub(super) fn forget(&self, span: Span, visible: u64) {
        if let Home::Own(reserved) = span.home {
            let mut books = self.memory.lock(self.os());
            books.objects.remove(span.start);
            drop(books);
            let _ = reserved.release(self.os());
            return;
        }
        let usable = self.cover(span, visible);
        let mut books = self.memory.lock(self.os());
        books.objects.remove(span.start);
        if usable {
            books.give(span);
        }
        self.memory.unlock(self.os(), books);
    }

    /// Puts addresses without memory over what the CPU saw of a buffer; whether
    /// the addresses can be used again. Where the system refuses even that (the
    /// limit of mappings), they are set aside.
    pub(super) fn cover(&self, span: Span, visible: u64) -> bool {
        if visible == 0 {
            return true;
        }
        let cover = |start: u64, length: u64| {
            let (Ok(start), Ok(length)) = (to_usize(start), to_usize(length)) else {
                return false;
            };
            self.os().map(reservation(Placement::Replace(start), length)).is_ok()
        };
        let covered = cover(span.start, visible);
        let mut books = self.memory.lock(self.os());
        if !covered {
            // Without room even for that it is the end of the context that unmaps it.
            let _ = try_push(&mut books.aside, (span.start, visible));
            return false;
        }
        // What was set aside before may go now. Its addresses stay unused.
        let retried = books.aside.pop();
        drop(books);
        if let Some((start, length)) = retried {
            if !cover(start, length) {
                let _ = try_push(&mut self.memory.lock(self.os()).aside, (start, length));
            }
        }
        true
    }

    /// Addresses of the process for an object, which is in the books from then on.
    fn process_span(
        &self,
        source: Source,
        bounds: Aperture,
        alignment: u64,
        fixed: Option<u64>,
        object: Object,
    ) -> Result<Span, Error> {
        self.process_span_as(source, bounds, alignment, fixed, object, false)
    }

    fn process_span_as(
        &self,
        source: Source,
        bounds: Aperture,
        alignment: u64,
        fixed: Option<u64>,
        object: Object,
        own: bool,
    ) -> Result<Span, Error> {
        let os = self.os();
        let requested = object.length;
        let guard = u64::from(self.context.options().guard_pages).saturating_mul(self.page());
        let no_memory = || Error::no_memory(requested);
        let length = object.length.checked_add(guard).ok_or_else(no_memory)?;
        if let Some(address) = fixed {
            return self.fixed_span(address, bounds, object);
        }
        let large = match source {
            Source::Device => length >= OWN_MAPPING,
            Source::Host => object.length >= HUGE_PAGE,
        };
        if large || own {
            let huge = object.length >= HUGE_PAGE && matches!(source, Source::Host);
            let alignment = if huge { u64::max(alignment, HUGE_PAGE) } else { alignment };
            let reserved = reserve(os, length, alignment, bounds)?;
            let span = Span { start: reserved.aligned, length, home: Home::Own(reserved) };
            let mut books = self.memory.lock(os);
            let entered = books.objects.insert(span.start, Object { span, ..object });
            drop(books);
            return match entered {
                Ok(_) => Ok(span),
                Err(error) => {
                    let _ = reserved.release(os);
                    Err(error)
                }
            };
        }
        let mut books = self.memory.lock(os);
        loop {
            books.objects.reserve(1)?;
            let regions: &mut Regions = match source {
                Source::Device => &mut books.device,
                Source::Host => &mut books.host,
            };
            if let Some(start) = regions.space.take(length, alignment)? {
                let home = match source {
                    Source::Device => Home::Device,
                    Source::Host => Home::Host,
                };
                let span = Span { start, length, home };
                // Room was made.
                let _ = books.objects.insert(start, Object { span, ..object });
                return Ok(span);
            }
            let (growth, advice) = (regions.growth(length, alignment), regions.advice());
            drop(books);
            let region = reserve_region(os, growth, bounds, advice)?;
            books = self.memory.lock(os);
            let regions: &mut Regions = match source {
                Source::Device => &mut books.device,
                Source::Host => &mut books.host,
            };
            if let Err(error) = regions.add(region) {
                drop(books);
                let _ = region.release(os);
                return Err(error);
            }
        }
    }

    /// Exactly these addresses: free ones of ours, or of the system's.
    fn fixed_span(&self, start: u64, bounds: Aperture, object: Object) -> Result<Span, Error> {
        let os = self.os();
        let taken = |errno| {
            let object = error::Object::Address(start);
            Error::system(Status::NO_MEMORY, Operation::MapMemory, errno, object)
        };
        let length = object.length;
        let last = start.checked_add(length).and_then(|end| end.checked_sub(1));
        let inside = last.is_some_and(|last| start >= bounds.base && last <= bounds.limit);
        if !inside || start.checked_rem(self.page()) != Some(0) {
            return Err(taken(Errno::EINVAL));
        }
        let mut books = self.memory.lock(os);
        books.objects.reserve(1)?;
        if books.device.space.take_at(start, length)? {
            let span = Span { start, length, home: Home::Device };
            // Room was made.
            let _ = books.objects.insert(start, Object { span, ..object });
            return Ok(span);
        }
        drop(books);
        let mapped = to_usize(start)
            .and_then(|start| os.map(reservation(Placement::Free(start), to_usize(length)?)));
        mapped.map_err(taken)?;
        let reserved = Reserved::exactly(start, length);
        let span = Span { start, length, home: Home::Own(reserved) };
        let mut books = self.memory.lock(os);
        let entered = books.objects.insert(start, Object { span, ..object });
        drop(books);
        match entered {
            Ok(_) => Ok(span),
            Err(error) => {
                let _ = reserved.release(os);
                Err(error)
            }
        }
    }

    /// A name for memory without an address.
    fn window_span(&self, length: u64, alignment: u64, object: Object) -> Result<Span, Error> {
        let mut books = self.memory.lock(self.os());
        books.objects.reserve(1)?;
        let start =
            books.window.take(length, alignment)?.ok_or_else(|| Error::no_memory(length))?;
        let span = Span { start, length, home: Home::Window };
        // Room was made.
        let _ = books.objects.insert(start, Object { span, ..object });
        Ok(span)
    }

    /// Addresses of a GPU that does not share the process's.
    fn gpuvm_span(
        &self,
        place: u8,
        gpuvm: Aperture,
        length: u64,
        alignment: u64,
        fixed: Option<u64>,
        object: Object,
    ) -> Result<Span, Error> {
        let mut books = self.memory.lock(self.os());
        books.objects.reserve(1)?;
        let refused = || Error::no_memory(length);
        let own = books.gpuvm.get_mut(usize::from(place)).ok_or_else(refused)?;
        if own.is_none() {
            let mut space = FreeSpace::new();
            let first = gpuvm.base.saturating_add(GPUVM_FIRST);
            space.add(first, gpuvm.limit.saturating_sub(first))?;
            *own = Some(Gpuvm { base: gpuvm.base, space });
        }
        let space = &mut own.as_mut().ok_or_else(refused)?.space;
        let start = match fixed {
            Some(start) if start & self.page().wrapping_sub(1) != 0 => None,
            Some(start) => space.take_at(start, length)?.then_some(start),
            None => space.take(length, alignment)?,
        };
        let span = Span { start: start.ok_or_else(refused)?, length, home: Home::Gpuvm(place) };
        // Room was made.
        let _ = books.objects.insert(span.start, Object { span, ..object });
        Ok(span)
    }

    /// Addresses for a registration of the caller's memory.
    pub(super) fn registration_span(
        &self,
        bounds: Aperture,
        alignment: u64,
        object: Object,
    ) -> Result<Span, Error> {
        let alignment = alignment_for(object.length, 0, u64::max(self.page(), alignment));
        self.process_span(Source::Device, bounds, alignment, None, object)
    }

    /// Addresses for scratch memory. Memory comes when parts are mapped.
    pub(super) fn scratch_span(
        &self,
        bounds: Aperture,
        length: u64,
        alignment: u64,
    ) -> Result<Reserved, Error> {
        reserve(self.os(), length, alignment, bounds)
    }

    /// A buffer for a part of scratch memory.
    pub(super) fn make_scratch(
        &self,
        owner: Owner,
        address: u64,
        size: u64,
        span: Span,
    ) -> Result<Handles, Error> {
        let flags =
            AllocMemoryFlags::NO_SUBSTITUTE | AllocMemoryFlags::VRAM | AllocMemoryFlags::WRITABLE;
        let buffer = Buffer { owner, address, size, flags, source: 0 };
        self.make_buffer(&buffer, span).map(|(handle, _)| Handles::One(handle))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_grows_with_the_size_up_to_a_huge_page() {
        assert_eq!(alignment_for(4096, 0, 4096), 4096);
        assert_eq!(alignment_for(8192, 0, 4096), 8192);
        assert_eq!(alignment_for(3 << 20, 0, 4096), 2 << 20);
        assert_eq!(alignment_for(1 << 40, 0, 4096), 2 << 20);
        assert_eq!(alignment_for(4096, 1 << 30, 4096), 1 << 30);
        assert_eq!(alignment_for(u64::MAX, 0, 4096), 2 << 20);
    }

    #[test]
    fn flags_become_the_drivers() {
        use AllocMemoryFlags as To;
        let of = |flags| buffer_flags(flags, &Options::default());
        let plain = To::NO_SUBSTITUTE | To::WRITABLE | To::COHERENT;
        assert_eq!(of(MemoryFlags::empty()), plain);
        assert_eq!(of(MemoryFlags::COARSE_GRAIN), To::NO_SUBSTITUTE | To::WRITABLE);
        assert_eq!(of(MemoryFlags::READ_ONLY), To::NO_SUBSTITUTE | To::COHERENT);
        assert_eq!(of(MemoryFlags::EXECUTE), plain | To::EXECUTABLE);
        assert_eq!(of(MemoryFlags::UNCACHED), plain | To::UNCACHED);
        assert_eq!(of(MemoryFlags::AQL_QUEUE), plain | To::UNCACHED | To::AQL_QUEUE_MEM);
        assert_eq!(of(MemoryFlags::EXTENDED_COHERENT), plain | To::EXT_COHERENT);
        let options = Options { disable_cache: true, ..Options::default() };
        assert_eq!(buffer_flags(MemoryFlags::COARSE_GRAIN, &options), plain | To::UNCACHED);
        let options = Options { all_memory_executable: true, ..Options::default() };
        assert_eq!(buffer_flags(MemoryFlags::empty(), &options), plain | To::EXECUTABLE);
    }
}
