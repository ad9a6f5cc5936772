//! Freeing, and the end of a context's memory.

use super::MemoryFlags;
use super::access::Access;
use super::books::{Books, User};
use super::gpu_set::GpuSet;
use super::object::{Handles, Home, Kind, Object, Span};
use super::regions::to_usize;
use super::tree::Place;
use crate::error::{self, Error, Operation, Status};
use crate::lock::Guard;
use crate::seam::{Os, Platform};

/// What an object's end needs to know of it.
struct Remains {
    span: Span,
    size: u64,
    kind: Kind,
    visible: u64,
    flags: MemoryFlags,
}

impl Remains {
    fn of(object: &Object) -> Remains {
        Remains {
            span: object.span,
            size: object.length,
            kind: object.kind,
            visible: object.visible,
            flags: object.flags,
        }
    }
}

impl<P: Platform> Access<'_, P> {
    /// Frees an allocation. The driver decides whether it may go: one that is
    /// mapped stays, and so does what is left of it where the driver fails half-way.
    pub(crate) fn free(&self, address: u64) -> Result<(), Error> {
        let os = self.os();
        let books = self.memory.lock(os);
        let (mut books, place) = match books.objects.find_live(address) {
            Some(place) => (books, Some(place)),
            None => self.memory.settled(os, books, |books| books.objects.find(address)),
        };
        let found = place.and_then(|place| Some((place, books.objects.value_mut(place)?)));
        let (place, remains) = match found {
            Some((place, object)) if object.is_quiet() => (place, None),
            Some((place, object)) if object.is_allocation() => (place, Some(Remains::of(object))),
            _ => {
                drop(books);
                return self.free_unknown(address);
            }
        };
        let handles = books.take_handles(place);
        drop(books);
        if let Err((error, left)) = self.free_handles(handles) {
            let mut books = self.memory.lock(os);
            books.put_handles(place, left);
            self.memory.unlock(os, books);
            return Err(error);
        }
        match remains {
            None => {
                let mut books = self.memory.lock(os);
                books.retire(place);
                self.memory.unlock(os, books);
            }
            Some(remains) => self.bury(place, &remains),
        }
        Ok(())
    }

    /// Frees what is no allocation: scratch memory, or with the SVM calls anything,
    /// since every address is memory then.
    #[cold]
    fn free_unknown(&self, address: u64) -> Result<(), Error> {
        if let Some(place) = self.scratch_around(address) {
            return self.free_scratch(place);
        }
        match self.machine(|machine| Ok(self.svm_api(machine))) {
            Ok(true) => Ok(()),
            _ => Err(Error::library(
                Status::MEMORY_NOT_REGISTERED,
                Operation::LookUp,
                error::Object::Address(address),
            )),
        }
    }

    /// The answer to an address that is none of ours: with the SVM calls every
    /// address is memory, and on APUs alone too.
    pub(super) fn unknown(&self, address: u64, status: Status) -> Result<(), Error> {
        let refused = Error::library(status, Operation::LookUp, error::Object::Address(address));
        match self.machine(|machine| Ok(self.svm_api(machine) || !machine.is_discrete())) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(refused),
        }
    }

    /// Frees an object's buffers; after a failure the handles of those that are
    /// left come back.
    #[inline(always)]
    fn free_handles(&self, handles: Handles) -> Result<(), (Error, Handles)> {
        match handles {
            Handles::One(handle) => {
                self.free_buffer(handle).map_err(|error| (error, Handles::One(handle)))
            }
            handles => self.free_several(handles),
        }
    }

    #[cold]
    fn free_several(&self, handles: Handles) -> Result<(), (Error, Handles)> {
        for (number, &handle) in handles.as_slice().iter().enumerate() {
            let Err(error) = self.free_buffer(handle) else { continue };
            let left = match handles {
                Handles::Many(many) if number != 0 => {
                    let mut many = many;
                    let mut freed = number;
                    many.retain(|_| match freed.checked_sub(1) {
                        Some(rest) => {
                            freed = rest;
                            false
                        }
                        None => true,
                    });
                    Handles::Many(many)
                }
                other => other,
            };
            return Err((error, left));
        }
        Ok(())
    }

    /// Takes down what the CPU has of an object whose buffers are gone, and then
    /// the object.
    fn bury(&self, place: Place, remains: &Remains) {
        let Remains { span, size, kind, visible, flags } = *remains;
        let os = self.os();
        if let Kind::Paged { bound } = kind {
            self.close_pages(span.home, span.start, size, bound);
        }
        let usable = match span.home {
            // Out of the books first: the next mapping may be at the same addresses.
            Home::Own => false,
            Home::Borrowed => {
                self.cover(span, visible);
                false
            }
            _ => self.cover(span, visible),
        };
        let mut books = self.memory.lock(os);
        if let Kind::Registered { address, size } = kind {
            books.users.remove((address, size));
        }
        if usable {
            books.retire(place);
        } else {
            books.objects.remove(span.start);
        }
        if visible != 0 && !flags.contains(MemoryFlags::HOST_ACCESS) {
            books.debugger_mappings = books.debugger_mappings.saturating_sub(1);
        }
        self.memory.unlock(os, books);
        if let Some(reserved) = span.reserved() {
            if reserved.release(os).is_err() {
                // The limit of mappings: without memory at least.
                self.cover(span, visible.max(size));
            }
        }
    }

    /// Unmaps an object from every GPU and frees it.
    pub(crate) fn unmap_and_free(&self, key: u64) -> Result<(), Error> {
        let os = self.os();
        let (books, place) =
            self.memory.settled(os, self.memory.lock(os), |books| books.objects.find(key));
        match place {
            Some(place) => self.unmap_and_free_at(books, place),
            None => Ok(()),
        }
    }

    /// The same for an object that nobody changes now.
    pub(super) fn unmap_and_free_at(
        &self,
        mut books: Guard<'_, Books, P::Os>,
        place: Place,
    ) -> Result<(), Error> {
        let os = self.os();
        let found = books.objects.at(place).map(|(_, object)| (Remains::of(object), object.mapped));
        let Some((remains, mapped)) = found else { return Ok(()) };
        let handles = books.take_handles(place);
        drop(books);
        let handles = match self.unmap_buffers(&handles, mapped) {
            Ok(()) => match self.free_handles(handles) {
                Ok(()) => {
                    self.bury(place, &remains);
                    return Ok(());
                }
                Err((error, left)) => {
                    // What cannot be freed is put back where it was.
                    let back = mapped.is_empty() || self.map_buffers(&left, mapped).is_ok();
                    (left, if back { mapped } else { GpuSet::NONE }, error)
                }
            },
            Err(failure) => (handles, failure.left, failure.error),
        };
        let (handles, mapped, error) = handles;
        let mut books = self.memory.lock(os);
        if let Some(object) = books.put_handles(place, handles) {
            object.mapped = mapped;
        }
        self.memory.unlock(os, books);
        Err(error)
    }

    /// The place of the GPU whose scratch addresses an address belongs to.
    pub(super) fn scratch_around(&self, address: u64) -> Option<u8> {
        let books = self.memory.lock(self.os());
        let mut areas = (0..).zip(&books.scratch);
        areas.find_map(|(place, area)| {
            let area = area.as_ref()?;
            (address.wrapping_sub(area.span.start) < area.size).then_some(place)
        })
    }

    /// Frees a GPU's scratch addresses with all the memory behind them.
    fn free_scratch(&self, place: u8) -> Result<(), Error> {
        let os = self.os();
        let mut books = self.memory.lock(os);
        let Some(Some(area)) = books.scratch.get_mut(usize::from(place)) else { return Ok(()) };
        let (start, size, span) = (area.span.start, area.size, area.span);
        if core::mem::replace(&mut area.dying, true) {
            // Another thread frees it.
            drop(books);
            return self.unknown(start, Status::MEMORY_NOT_REGISTERED);
        }
        drop(books);
        loop {
            let books = self.memory.lock(os);
            let part = books.objects.ceiling(start).and_then(|place| {
                let (key, object) = books.objects.at(place)?;
                let inside = key.wrapping_sub(start) < size;
                (inside && object.kind == Kind::ScratchPart).then_some(key)
            });
            drop(books);
            let Some(part) = part else { break };
            if let Err(error) = self.unmap_and_free(part) {
                let mut books = self.memory.lock(os);
                if let Some(Some(area)) = books.scratch.get_mut(usize::from(place)) {
                    area.dying = false;
                }
                return Err(error);
            }
        }
        let mut books = self.memory.lock(os);
        if let Some(area) = books.scratch.get_mut(usize::from(place)) {
            *area = None;
        }
        drop(books);
        if let Some(reserved) = span.reserved() {
            let _ = reserved.release(os);
        }
        Ok(())
    }

    /// Frees everything: the context closes and nobody else is in it.
    pub(crate) fn free_all(&self) {
        let os = self.os();
        // An object that the driver keeps is passed over.
        let mut from = 0;
        loop {
            let books = self.memory.lock(os);
            let next = books.objects.ceiling(from).and_then(|place| books.objects.at(place));
            let Some((key, _)) = next else { break };
            drop(books);
            let _ = self.unmap_and_free(key);
            let Some(following) = key.checked_add(1) else { break };
            from = following;
        }
        for place in 0..crate::process::GPUS_MAX {
            let _ = self.free_scratch(place as u8);
        }
        loop {
            let mut books = self.memory.lock(os);
            let place = books.users.ceiling((0, 0));
            let first =
                place.and_then(|place| books.users.at(place)).map(|(key, user)| (key, *user));
            let Some((key, user)) = first else { break };
            books.users.remove(key);
            drop(books);
            if let User::Attributed(registration) = user {
                // Its context goes, and nothing with it that could be put back.
                let _ = self.restore(key, registration);
            }
        }
        let mut books = self.memory.lock(os);
        books.vacate_all();
        if !books.objects.is_empty() {
            return;
        }
        let (device, host) = (books.device.take_all(), books.host.take_all());
        let aside = core::mem::take(&mut books.aside);
        drop(books);
        for (start, length) in aside {
            let _ = to_usize(start).and_then(|start| os.unmap(start, to_usize(length)?));
        }
        for region in device.into_iter().chain(host) {
            let _ = region.release(os);
        }
    }
}
