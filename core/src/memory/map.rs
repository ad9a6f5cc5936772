//! Mapping on GPUs.

use super::access::{Access, MapFailure, Owner};
use super::books::Scratch;
use super::books::{Books, User};
use super::gpu_set::GpuSet;
use super::object::{Home, Kind, Object, Span, State};
use super::tree::Place;
use super::{AllocationRequest, MemoryFlags};
use crate::error::{self, Error, Operation, Status};
use crate::seam::Platform;
use crate::uapi::kfd::SetScratchBackingVa;

/// What scratch addresses are a multiple of, and counted in by the driver.
const SCRATCH_UNIT: u64 = 1 << 16;

/// The object that an address means.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) key: u64,
    /// Where in its first page registered memory begins.
    pub(super) page_offset: u64,
    pub(super) place: Option<Place>,
}

impl Target {
    /// Where the object is, if the address means it still: another may have taken
    /// its place while somebody waited.
    fn found_again(self, books: &Books, address: u64, size: u64, page: u64) -> Option<Place> {
        match books.meaning(address, size, page) {
            Meaning::Object(target) if target.key == self.key => target.place,
            _ => None,
        }
    }
}

/// What an address means.
enum Meaning {
    Object(Target),
    /// Memory of the caller that is registered by attributes.
    Attributed {
        address: u64,
        size: u64,
    },
    Unknown,
}

impl Books {
    /// What a call that maps or unmaps means by an address: memory of the caller
    /// comes first, because it can lie anywhere.
    fn meaning(&self, address: u64, size: u64, page: u64) -> Meaning {
        let page_offset = address & page.wrapping_sub(1);
        match self.user_at(address, size) {
            Some((_, User::Pinned(key))) => {
                let place = self.objects.find(key);
                return Meaning::Object(Target { key, page_offset, place });
            }
            Some(((address, size), User::Attributed(_))) => {
                return Meaning::Attributed { address, size };
            }
            None => {}
        }
        let place = self.starting_at(address, page);
        let Some((key, object)) = place.and_then(|place| self.objects.at(place)) else {
            return Meaning::Unknown;
        };
        let begins = match object.kind {
            Kind::Registered { address, .. } => address & page.wrapping_sub(1),
            _ => 0,
        };
        if begins == page_offset {
            Meaning::Object(Target { key, page_offset, place })
        } else {
            Meaning::Unknown
        }
    }
}

impl<P: Platform> Access<'_, P> {
    /// The GPUs of a list of nodes.
    ///
    /// # Errors
    /// INVALID_PARAMETER for an empty list; INVALID_NODE_UNIT.
    pub(super) fn gpus_of(&self, nodes: &[u32]) -> Result<GpuSet, Error> {
        if nodes.is_empty() {
            return Err(Error::argument(0));
        }
        self.machine(|machine| {
            nodes.iter().try_fold(GpuSet::NONE, |set, &node| {
                let refused = Error::library(
                    Status::INVALID_NODE_UNIT,
                    Operation::LookUp,
                    error::Object::Node(node),
                );
                let place = machine.place(node)?.ok_or(refused)?;
                Ok(set.with(GpuSet::one(place)))
            })
        })
    }

    /// Maps memory on its default GPUs, or on exactly these nodes.
    pub(crate) fn map(&self, address: u64, size: u64, nodes: Option<&[u32]>) -> Result<u64, Error> {
        let wanted = nodes.map(|nodes| self.gpus_of(nodes)).transpose()?;
        let os = self.os();
        let page = self.page();
        loop {
            let books = self.memory.lock(os);
            let target = match books.meaning(address, size, page) {
                Meaning::Object(target) => target,
                Meaning::Attributed { address, size } => {
                    drop(books);
                    return self.grant(address, size, wanted);
                }
                Meaning::Unknown => {
                    drop(books);
                    return self.map_unknown(address, size, wanted);
                }
            };
            let (mut books, place) = self.memory.settled_from(os, books, target.place, |books| {
                target.found_again(books, address, size, page)
            });
            let Some((place, object)) =
                place.and_then(|place| Some((place, books.objects.value_mut(place)?)))
            else {
                // Freed while we waited: what does the address mean now?
                drop(books);
                if self.is_being_made(target.key) {
                    return Err(invalid(address));
                }
                continue;
            };
            let registered = matches!(object.kind, Kind::Registered { .. });
            match object.kind {
                Kind::Addresses | Kind::Unaddressed => return Err(invalid(address)),
                Kind::Plain if wanted.is_some() => {
                    return Err(Error::library(
                        Status::ERROR,
                        Operation::LookUp,
                        error::Object::Address(address),
                    ));
                }
                Kind::Plain => return Ok(0),
                _ => {}
            }
            let wanted = wanted.filter(|_| !registered);
            let allowed = object.registered.unwrap_or(object.reachable);
            if let (Some(wanted), Some(registered)) = (wanted, object.registered) {
                if !registered.contains(wanted) {
                    return Err(Error::library(
                        Status::ERROR,
                        Operation::LookUp,
                        error::Object::Address(address),
                    ));
                }
            }
            let mapped = object.mapped;
            let more = wanted.unwrap_or(allowed).without(mapped);
            let fewer = wanted.map_or(GpuSet::NONE, |wanted| mapped.without(wanted));
            let alternate = match object.span.home {
                _ if registered => target.key.saturating_add(target.page_offset),
                Home::Gpuvm(place) => target.key.saturating_sub(books.gpuvm_base(place)),
                _ => 0,
            };
            if more.is_empty() && fewer.is_empty() {
                if let Some(object) = books.objects.value_mut(place).filter(|_| registered) {
                    object.mappings = object.mappings.saturating_add(1);
                }
                return Ok(alternate);
            }
            let handles = books.take_handles(place);
            drop(books);
            let (mapped, result) = self.remap(handles.as_slice(), mapped, more, fewer);
            let mut books = self.memory.lock(os);
            if let Some(object) = books.put_handles(place, handles) {
                object.mapped = mapped;
                if result.is_ok() {
                    object.mappings = object.mappings.saturating_add(1);
                }
            }
            self.memory.unlock(os, books);
            return result.map(|()| alternate);
        }
    }

    /// Whether an object is there that nobody may see yet.
    fn is_being_made(&self, key: u64) -> bool {
        let books = self.memory.lock(self.os());
        let found = books.objects.find(key).and_then(|place| books.objects.at(place));
        found.is_some_and(|(_, object)| object.state == State::Reserved)
    }

    /// Unmaps from some GPUs and maps on others; what is mapped in the end, which
    /// is what was mapped before if that failed.
    fn remap(
        &self,
        handles: &[u64],
        mapped: GpuSet,
        more: GpuSet,
        fewer: GpuSet,
    ) -> (GpuSet, Result<(), Error>) {
        if !fewer.is_empty() {
            if let Err(MapFailure { error, left }) = self.unmap_buffers(handles, fewer) {
                let gone = fewer.without(left);
                let back = gone.is_empty() || self.map_buffers(handles, gone).is_ok();
                let mapped = if back { mapped } else { mapped.without(gone) };
                return (mapped, Err(error));
            }
        }
        if more.is_empty() {
            return (mapped.without(fewer), Ok(()));
        }
        match self.map_buffers(handles, more) {
            Ok(()) => (mapped.without(fewer).with(more), Ok(())),
            Err(MapFailure { error, left }) => {
                let back = fewer.is_empty() || self.map_buffers(handles, fewer).is_ok();
                let mapped = if back { mapped } else { mapped.without(fewer) };
                (mapped.with(left), Err(error))
            }
        }
    }

    /// Maps what is none of ours: a part of scratch, or memory of the process.
    fn map_unknown(&self, address: u64, size: u64, wanted: Option<GpuSet>) -> Result<u64, Error> {
        if let Some(place) = self.scratch_around(address) {
            return self.map_scratch(place, address, size).map(|()| 0);
        }
        let (svm_api, discrete) =
            self.machine(|machine| Ok((self.svm_api(machine), machine.is_discrete())))?;
        if svm_api {
            return self.grant(address, size, wanted);
        }
        if discrete { Err(invalid(address)) } else { Ok(0) }
    }

    /// Unmaps memory from every GPU.
    pub(crate) fn unmap(&self, address: u64) -> Result<(), Error> {
        let os = self.os();
        let page = self.page();
        let books = self.memory.lock(os);
        let target = match books.meaning(address, 0, page) {
            Meaning::Object(target) => target,
            Meaning::Attributed { .. } => return Ok(()),
            Meaning::Unknown => {
                drop(books);
                return self.unmap_unknown(address);
            }
        };
        let (mut books, place) = self.memory.settled_from(os, books, target.place, |books| {
            target.found_again(books, address, 0, page)
        });
        let Some((place, object)) =
            place.and_then(|place| Some((place, books.objects.value_mut(place)?)))
        else {
            drop(books);
            return self.unmap_unknown(address);
        };
        if object.kind == Kind::ScratchPart {
            return self.unmap_and_free_at(books, place);
        }
        let registered = matches!(object.kind, Kind::Registered { .. });
        if registered && object.mappings > 1 {
            object.mappings = object.mappings.saturating_sub(1);
            return Ok(());
        }
        let mapped = object.mapped;
        if mapped.is_empty() {
            return Ok(());
        }
        let handles = books.take_handles(place);
        drop(books);
        let result = self.unmap_buffers(handles.as_slice(), mapped);
        let mut books = self.memory.lock(os);
        if let Some(object) = books.put_handles(place, handles) {
            match &result {
                Ok(()) => (object.mapped, object.mappings) = (GpuSet::NONE, 0),
                Err(failure) => object.mapped = failure.left,
            }
        }
        self.memory.unlock(os, books);
        result.map_err(|failure| failure.error)
    }

    /// Unmaps what is none of ours: a part of scratch without memory, or memory of
    /// the process.
    fn unmap_unknown(&self, address: u64) -> Result<(), Error> {
        if self.scratch_around(address).is_some() {
            return Ok(());
        }
        self.unknown(address, Status::ERROR)
    }

    /// Scratch addresses of a GPU: one range at a time, without memory.
    pub(super) fn allocate_scratch(
        &self,
        request: &AllocationRequest,
        scene: &super::access::Scene,
    ) -> Result<u64, Error> {
        let no_memory = Error::no_memory(request.size);
        let owner = scene.owner.ok_or(no_memory)?;
        let bounds = scene.svm.ok_or(no_memory)?;
        if request.flags.contains(MemoryFlags::FIXED_ADDRESS) {
            return Err(no_memory);
        }
        let size = super::spans::round_up(request.size, SCRATCH_UNIT).ok_or(no_memory)?;
        let reserved = self.scratch_span(bounds, size, SCRATCH_UNIT)?;
        let span = Span { start: reserved.aligned, length: size, home: Home::Own(reserved) };
        let mut books = self.memory.lock(self.os());
        let entered = match books.scratch.get_mut(usize::from(owner.place)) {
            Some(area) if area.is_none() => {
                *area = Some(Scratch { span, size, dying: false });
                true
            }
            _ => false,
        };
        drop(books);
        let mut block = SetScratchBackingVa {
            va_addr: span.start >> 16,
            gpu_id: owner.gpu_id,
            ..SetScratchBackingVa::default()
        };
        let gpu = error::Object::Gpu(owner.gpu_id);
        let told = if entered {
            self.channel.execute(&mut block, &mut [], Status::NO_MEMORY, gpu).map(drop)
        } else {
            Err(Error::library(Status::NO_MEMORY, Operation::LookUp, gpu))
        };
        if let Err(error) = told {
            if entered {
                let mut books = self.memory.lock(self.os());
                if let Some(area) = books.scratch.get_mut(usize::from(owner.place)) {
                    *area = None;
                }
            }
            let _ = reserved.release(self.os());
            return Err(error);
        }
        Ok(span.start)
    }

    /// Puts memory behind a part of a GPU's scratch addresses and maps it.
    fn map_scratch(&self, place: u8, address: u64, size: u64) -> Result<(), Error> {
        let page = self.page();
        let wrong = invalid(address);
        let owner: Owner = self
            .machine(|machine| {
                let gpu = machine.gpus().get(usize::from(place)).and_then(|gpu| gpu.node);
                Ok(gpu)
            })
            .and_then(|node| self.scene(node.ok_or(wrong)?)?.owner.ok_or(wrong))?;
        let end = address.checked_add(size).ok_or(wrong)?;
        let length = super::spans::round_up(size, page).filter(|&length| length != 0);
        let length = length.ok_or(wrong)?;
        let span = Span { start: address, length, home: Home::Borrowed };
        let mut books = self.memory.lock(self.os());
        let inside =
            books.scratch.get(usize::from(place)).copied().flatten().is_some_and(|area| {
                !area.dying && end <= area.span.start.saturating_add(area.size)
            });
        let before = books.objects.floor(end.saturating_sub(1)).and_then(|p| books.objects.at(p));
        let overlaps =
            before.is_some_and(|(key, object)| key.saturating_add(object.length) > address);
        if !inside || overlaps || address.checked_rem(page) != Some(0) {
            return Err(wrong);
        }
        let reachable = GpuSet::one(place);
        let flags = MemoryFlags::empty();
        let object = Object {
            // Others know the address, and wait for what becomes of it.
            state: State::Busy,
            span,
            ..Object::reserved(Kind::ScratchPart, size, length, 0, flags, reachable)
        };
        books.objects.insert(address, object)?;
        drop(books);
        let made = self.make_scratch(owner, address, length, span).and_then(|handles| {
            match self.map_buffers(handles.as_slice(), GpuSet::one(place)) {
                Ok(()) => Ok(handles),
                Err(MapFailure { error, .. }) => {
                    for &handle in handles.as_slice() {
                        let _ = self.free_buffer(handle);
                    }
                    Err(error)
                }
            }
        });
        match made {
            Ok(handles) => {
                let mut books = self.memory.lock(self.os());
                if let Some(at) = books.objects.find(address) {
                    if let Some(object) = books.put_handles(at, handles) {
                        object.mapped = GpuSet::one(place);
                        object.mappings = 1;
                    }
                }
                self.memory.unlock(self.os(), books);
                Ok(())
            }
            Err(error) => {
                self.forget(span);
                Err(error)
            }
        }
    }
}

impl Books {
    fn gpuvm_base(&self, place: u8) -> u64 {
        match self.gpuvm.get(usize::from(place)) {
            Some(Some(gpuvm)) => gpuvm.base,
            _ => 0,
        }
    }
}

fn invalid(address: u64) -> Error {
    Error::library(Status::INVALID_PARAMETER, Operation::LookUp, error::Object::Address(address))
}
