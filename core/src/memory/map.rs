//! Mapping on GPUs.

use super::access::{Access, MapFailure, Owner};
use super::books::Scratch;
use super::books::{Books, User};
use super::gpu_set::GpuSet;
use super::object::{Draft, Handles, Home, Kind, Object, Span, State};
use super::tree::Place;
use super::{AllocationRequest, MemoryFlags};
use crate::error::{self, Error, Operation, Status};
use crate::lock::Guard;
use crate::seam::{Os, Platform};
use crate::uapi::kfd::SetScratchBackingVa;

/// What scratch addresses are a multiple of, and counted in by the driver.
const SCRATCH_UNIT: u64 = 1 << 16;

/// What an address means.
enum Meaning {
    /// The object with this first address.
    Object {
        key: u64,
        place: Place,
    },
    /// Memory of the caller that is registered by attributes.
    Attributed {
        address: u64,
        size: u64,
    },
    Unknown,
}

/// What a call that maps or unmaps finds at an address.
enum Found<'a, O: Os> {
    /// An object that nobody changes now.
    Object(Guard<'a, Books, O>, Place),
    /// Memory of the caller that is registered by attributes.
    Attributed {
        address: u64,
        size: u64,
    },
    /// An object that nobody may see yet.
    Unfinished,
    Unknown,
}

impl Books {
    /// What a call that maps or unmaps means by an address: memory of the caller
    /// comes first, because it can lie anywhere.
    fn meaning(&self, address: u64, size: u64, page: u64) -> Meaning {
        let page_offset = address & page.wrapping_sub(1);
        match self.user_at(address, size) {
            Some((_, User::Pinned(key))) => {
                return match self.objects.find(key) {
                    Some(place) => Meaning::Object { key, place },
                    None => Meaning::Unknown,
                };
            }
            Some(((address, size), User::Attributed(_))) => {
                return Meaning::Attributed { address, size };
            }
            None => {}
        }
        let place = self.starting_at(address, page);
        let found = place.and_then(|place| Some((place, self.objects.at(place)?)));
        let Some((place, (key, object))) = found else { return Meaning::Unknown };
        let begins = match object.kind {
            Kind::Registered { address, .. } => address & page.wrapping_sub(1),
            _ => 0,
        };
        if begins == page_offset { Meaning::Object { key, place } } else { Meaning::Unknown }
    }

    /// The object with this first address, if nobody changes it and nothing else
    /// can be meant.
    #[inline(always)]
    fn plainly(&self, address: u64) -> Option<Place> {
        if self.users.len() == 0 { self.objects.find_live(address) } else { None }
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

    /// Finds what an address means, and waits until nobody changes it.
    #[inline(always)]
    fn reach(&self, address: u64, size: u64) -> Found<'_, P::Os> {
        let books = self.memory.lock(self.os());
        match books.plainly(address) {
            Some(place) => Found::Object(books, place),
            None => self.reach_other(books, address, size),
        }
    }

    #[inline(never)]
    fn reach_other<'a>(
        &'a self,
        mut books: Guard<'a, Books, P::Os>,
        address: u64,
        size: u64,
    ) -> Found<'a, P::Os> {
        let page = self.page();
        loop {
            let (wanted, place) = match books.meaning(address, size, page) {
                Meaning::Object { key, place } => (key, place),
                Meaning::Attributed { address, size } => {
                    return Found::Attributed { address, size };
                }
                Meaning::Unknown => return Found::Unknown,
            };
            let again = |books: &Books| match books.meaning(address, size, page) {
                // Another may have taken its place while somebody waited.
                Meaning::Object { key, place } if key == wanted => Some(place),
                _ => None,
            };
            let (after, place) = self.memory.settled_from(self.os(), books, Some(place), again);
            if let Some(place) = place {
                return Found::Object(after, place);
            }
            let unfinished = after.objects.find(wanted).and_then(|place| after.objects.at(place));
            if unfinished.is_some_and(|(_, object)| object.state == State::Reserved) {
                return Found::Unfinished;
            }
            // Freed while we waited: what does the address mean now?
            books = after;
        }
    }

    /// Maps memory on its default GPUs, or on exactly these nodes.
    pub(crate) fn map(&self, address: u64, size: u64, nodes: Option<&[u32]>) -> Result<u64, Error> {
        let wanted = match nodes {
            Some(nodes) => Some(self.gpus_of(nodes)?),
            None => None,
        };
        let (mut books, place) = match self.reach(address, size) {
            Found::Object(books, place) => (books, place),
            Found::Attributed { address, size } => return self.grant(address, size, wanted),
            Found::Unfinished => return Err(invalid(address)),
            Found::Unknown => return self.map_unknown(address, size, wanted),
        };
        let Some(object) = books.objects.value_mut(place) else { return Err(invalid(address)) };
        let registered = matches!(object.kind, Kind::Registered { .. });
        let refused = || {
            let object = error::Object::Address(address);
            Error::library(Status::ERROR, Operation::LookUp, object)
        };
        match object.kind {
            Kind::Addresses | Kind::Unaddressed => return Err(invalid(address)),
            Kind::Graphics | Kind::Shared if object.span.home == Home::Window => {
                return Err(invalid(address));
            }
            Kind::Plain if wanted.is_some() => return Err(refused()),
            Kind::Plain => return Ok(0),
            _ => {}
        }
        let wanted = wanted.filter(|_| !registered);
        let allowed = object.registered.unwrap_or(object.reachable);
        if wanted.is_some_and(|wanted| object.registered.is_some() && !allowed.contains(wanted)) {
            return Err(refused());
        }
        let mapped = object.mapped;
        let more = wanted.unwrap_or(allowed).without(mapped);
        let fewer = wanted.map_or(GpuSet::NONE, |wanted| mapped.without(wanted));
        let key = object.span.start;
        let alternate = match object.span.home {
            _ if registered => key.saturating_add(address & self.page().wrapping_sub(1)),
            Home::Gpuvm(place) => key.saturating_sub(books.gpuvm_base(place)),
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
        let (mapped, result) = self.remap(&handles, mapped, more, fewer);
        let mut books = self.memory.lock(self.os());
        if let Some(object) = books.put_handles(place, handles) {
            object.mapped = mapped;
            if result.is_ok() {
                object.mappings = object.mappings.saturating_add(1);
            }
        }
        self.memory.unlock(self.os(), books);
        match result {
            Ok(()) => Ok(alternate),
            Err(error) => Err(error),
        }
    }

    /// Unmaps from some GPUs and maps on others; what is mapped in the end, which
    /// is what was mapped before if that failed.
    #[inline]
    fn remap(
        &self,
        handles: &Handles,
        mapped: GpuSet,
        more: GpuSet,
        fewer: GpuSet,
    ) -> (GpuSet, Result<(), Error>) {
        if !fewer.is_empty() {
            return self.exchange(handles, mapped, more, fewer);
        }
        match self.map_buffers(handles, more) {
            Ok(()) => (mapped.with(more), Ok(())),
            Err(MapFailure { error, left }) => (mapped.with(left), Err(error)),
        }
    }

    /// The same where some GPUs lose it.
    #[inline(never)]
    fn exchange(
        &self,
        handles: &Handles,
        mapped: GpuSet,
        more: GpuSet,
        fewer: GpuSet,
    ) -> (GpuSet, Result<(), Error>) {
        if let Err(MapFailure { error, left }) = self.unmap_buffers(handles, fewer) {
            let gone = fewer.without(left);
            let back = gone.is_empty() || self.map_buffers(handles, gone).is_ok();
            let mapped = if back { mapped } else { mapped.without(gone) };
            return (mapped, Err(error));
        }
        if more.is_empty() {
            return (mapped.without(fewer), Ok(()));
        }
        match self.map_buffers(handles, more) {
            Ok(()) => (mapped.without(fewer).with(more), Ok(())),
            Err(MapFailure { error, left }) => {
                let back = self.map_buffers(handles, fewer).is_ok();
                let mapped = if back { mapped } else { mapped.without(fewer) };
                (mapped.with(left), Err(error))
            }
        }
    }

    /// Maps what is none of ours: a part of scratch, or memory of the process.
    #[cold]
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
        let (mut books, place) = match self.reach(address, 0) {
            Found::Object(books, place) => (books, place),
            Found::Attributed { .. } => return Ok(()),
            Found::Unfinished | Found::Unknown => return self.unmap_unknown(address),
        };
        let Some(object) = books.objects.value_mut(place) else { return Ok(()) };
        if matches!(object.kind, Kind::ScratchPart) {
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
        let result = self.unmap_buffers(&handles, mapped);
        let mut books = self.memory.lock(self.os());
        if let Some(object) = books.put_handles(place, handles) {
            match &result {
                Ok(()) => (object.mapped, object.mappings) = (GpuSet::NONE, 0),
                Err(failure) => object.mapped = failure.left,
            }
        }
        self.memory.unlock(self.os(), books);
        match result {
            Ok(()) => Ok(()),
            Err(failure) => Err(failure.error),
        }
    }

    /// Unmaps what is none of ours: a part of scratch without memory, or memory of
    /// the process.
    #[cold]
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
        let owner = scene.gpu().ok_or(no_memory)?;
        let bounds = self.common_range()?.ok_or(no_memory)?;
        if request.flags.contains(MemoryFlags::FIXED_ADDRESS) {
            return Err(no_memory);
        }
        let size = super::spans::round_up(request.size, SCRATCH_UNIT).ok_or(no_memory)?;
        let reserved = self.scratch_span(bounds, size, SCRATCH_UNIT)?;
        let span = Span::own(reserved);
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
            .and_then(|node| self.scene(node.ok_or(wrong)?)?.gpu().copied().ok_or(wrong))?;
        let end = address.checked_add(size).ok_or(wrong)?;
        let length = super::spans::round_up(size, page).filter(|&length| length != 0);
        let length = length.ok_or(wrong)?;
        let span = Span::of(Home::Borrowed, address, length);
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
        let draft = Draft {
            kind: Kind::ScratchPart,
            size,
            length,
            node: 0,
            flags: MemoryFlags::empty(),
            reachable: GpuSet::one(place),
        };
        // Others know the address, and wait for what becomes of it.
        let part = books.objects.insert(Object { state: State::Busy, ..draft.at(span) })?;
        drop(books);
        let made =
            self.make_scratch(owner.gpu_id, address, length, part.place).and_then(|handles| {
                match self.map_buffers(&handles, GpuSet::one(place)) {
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
                if let Some(object) = books.put_handles(part.place, handles) {
                    object.mapped = GpuSet::one(place);
                    object.mappings = 1;
                }
                self.memory.unlock(self.os(), books);
                Ok(())
            }
            Err(error) => {
                self.forget(part);
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
