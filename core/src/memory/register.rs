//! Registration of memory of the caller.
//!
//! Where the driver has the SVM calls, a registration is a set of attributes of
//! the pages, one request without a word about GPUs; these are let in when they
//! are named, at the map call. Elsewhere it is a buffer over the pages, at GPU
//! addresses of its own.
//!
//! # Overlaps
//! The same address may be registered with several sizes, and ranges may nest and
//! overlap. A range registered twice must be deregistered twice. With attributes,
//! a page has those of the newest registration that covers it; when that goes, the
//! page gets those of the next newest, or where none is left the driver's defaults
//! for a new range, and GPUs that only the gone one let in are shut out again.
//! Buffers over the same pages are independent of each other.

use super::MemoryFlags;
use super::access::Access;
use super::books::{Attributed, End, User};
use super::buffers::buffer_flags;
use super::gpu_set::GpuSet;
use super::object::{Draft, Kind};
use super::regions::to_usize;
use super::spans::round_up;
use crate::errno::Errno;
use crate::error::{self, Error, Operation, Status};
use crate::log::debug;
use crate::seam::{Advice, Os, Platform};
use crate::uapi::kfd::{AllocMemoryFlags, SvmAttribute, SvmAttributeType, SvmFlags};

/// The pages of a range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages {
    pub(super) start: u64,
    pub(super) length: u64,
}

impl Pages {
    /// The pages that a range touches; none for an empty one or one that wraps.
    pub(super) fn around(address: u64, size: u64, page: u64) -> Option<Pages> {
        let start = address & !page.wrapping_sub(1);
        let end = round_up(address.checked_add(size)?, page)?;
        let length = end.checked_sub(start)?;
        (size != 0).then_some(Pages { start, length })
    }

    fn end(self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

impl<P: Platform> Access<'_, P> {
    /// Registers memory of the caller, for some nodes or for all.
    pub(crate) fn register(
        &self,
        address: u64,
        size: u64,
        flags: MemoryFlags,
        nodes: Option<&[u32]>,
    ) -> Result<(), Error> {
        let extended = flags.contains(MemoryFlags::EXTENDED_COHERENT);
        if extended && flags.contains(MemoryFlags::COARSE_GRAIN) {
            return Err(Error::argument(3));
        }
        if !flags.contains(MemoryFlags::HOST_ACCESS) || flags.contains(MemoryFlags::NON_PAGED) {
            return Err(Error::argument(3).with_status(Status::NOT_SUPPORTED));
        }
        let (svm_api, discrete) =
            self.machine(|machine| Ok((self.svm_api(machine), machine.is_discrete())))?;
        if !discrete {
            return Err(Error::library(
                Status::NOT_SUPPORTED,
                Operation::LookUp,
                error::Object::Nothing,
            ));
        }
        let gpus = nodes.map(|nodes| self.gpus_of(nodes)).transpose()?;
        let pages = Pages::around(address, size, self.page()).ok_or(Error::argument(2))?;
        if self.context.options().check_user_pointers {
            self.read_once(pages)?;
        }
        let attributing = svm_api.then(|| self.memory.attributing.acquire(self.os()));
        if let Some(result) = self.register_known(address, size, flags, gpus) {
            return result;
        }
        if svm_api {
            match self.attribute(address, size, pages, flags) {
                Ok(()) => return Ok(()),
                // Ours and not the driver's.
                Err(error) if error.status == Status::NO_MEMORY => return Err(error),
                // Not ordinary memory, or something else in the way: the driver
                // may take it as a buffer.
                Err(error) => debug!(self.context.options().logger, "{}", error),
            }
        }
        drop(attributing);
        self.pin(address, size, pages, flags, gpus)
    }

    /// Reads every page of the caller's memory once.
    ///
    /// # Errors
    /// ERROR with EFAULT or ENOMEM where there is nothing to read.
    fn read_once(&self, pages: Pages) -> Result<(), Error> {
        let read = to_usize(pages.start).and_then(|start| {
            self.os().advise(start, to_usize(pages.length)?, Advice::PopulateRead)
        });
        match read {
            // A kernel without this advice.
            Ok(()) | Err(Errno::EINVAL) => Ok(()),
            Err(errno) => {
                let object = error::Object::Address(pages.start);
                Err(Error::system(Status::ERROR, Operation::AdviseMemory, errno, object))
            }
        }
    }

    /// Registers what the books have already.
    fn register_known(
        &self,
        address: u64,
        size: u64,
        flags: MemoryFlags,
        gpus: Option<GpuSet>,
    ) -> Option<Result<(), Error>> {
        let already = || {
            let object = error::Object::Address(address);
            Error::library(Status::MEMORY_ALREADY_REGISTERED, Operation::LookUp, object)
        };
        let os = self.os();
        let mut books = self.memory.lock(os);
        let user =
            books.users.find((address, size)).and_then(|at| Some((at, *books.users.at(at)?.1)));
        match user {
            Some((_, User::Pinned(_))) => {
                let (mut books, place) =
                    self.memory.settled(os, books, |books| books.pinned(address, size));
                let object = books.objects.value_mut(place?)?;
                if gpus.is_some() && object.registered != gpus {
                    return Some(Err(already()));
                }
                object.registrations = object.registrations.saturating_add(1);
                return Some(Ok(()));
            }
            Some((at, User::Attributed(known))) => {
                let same = known.coherent != flags.contains(MemoryFlags::COARSE_GRAIN)
                    && known.extended_coherent == flags.contains(MemoryFlags::EXTENDED_COHERENT);
                let newest = known.order == books.orders;
                if !(same && newest) {
                    return None;
                }
                if let Some(User::Attributed(known)) = books.users.value_mut(at) {
                    known.count = known.count.saturating_add(1);
                }
                return Some(Ok(()));
            }
            None => {}
        }
        let place = books.around(address)?;
        let (start, object) = books.objects.at(place)?;
        if matches!(object.kind, Kind::Registered { .. }) || !object.is_process_memory() {
            return None;
        }
        let wrong = Error::library(
            Status::INVALID_HANDLE,
            Operation::LookUp,
            error::Object::Address(address),
        );
        let Some(gpus) = gpus.filter(|_| start == address) else { return Some(Err(wrong)) };
        let object = books.objects.value_mut(place)?;
        Some(match object.registered {
            Some(known) if known != gpus => Err(already()),
            _ => {
                object.registered = Some(gpus);
                object.registrations = object.registrations.saturating_add(1);
                Ok(())
            }
        })
    }

    /// Registers by attributes; the caller holds the lock for that.
    fn attribute(
        &self,
        address: u64,
        size: u64,
        pages: Pages,
        flags: MemoryFlags,
    ) -> Result<(), Error> {
        let os = self.os();
        let registration = Attributed {
            order: 0,
            count: 1,
            coherent: !flags.contains(MemoryFlags::COARSE_GRAIN),
            extended_coherent: flags.contains(MemoryFlags::EXTENDED_COHERENT),
            granted: GpuSet::NONE,
        };
        // The room for the books first: what the driver has done is written down.
        let mut books = self.memory.lock(os);
        books.users.reserve(1)?;
        let order = books.orders.saturating_add(1);
        books.orders = order;
        let registration = Attributed { order, ..registration };
        let before = books.users.find((address, size)).and_then(|at| {
            let user = books.users.value_mut(at)?;
            let User::Attributed(known) = *user else { return None };
            let count = known.count.saturating_add(1);
            let granted = known.granted;
            *user = User::Attributed(Attributed { count, granted, ..registration });
            Some(known)
        });
        if before.is_none() {
            books.users.insert((address, size), User::Attributed(registration))?;
        }
        drop(books);
        let result = self.svm_set(pages, &flags_of(Some(registration)), GpuSet::NONE, None);
        if result.is_err() {
            let mut books = self.memory.lock(os);
            let place = books.users.find((address, size));
            match (before, place) {
                (Some(known), Some(at)) => {
                    if let Some(user) = books.users.value_mut(at) {
                        *user = User::Attributed(known);
                    }
                }
                _ => {
                    books.users.remove((address, size));
                }
            }
        }
        result
    }

    /// Registers by a buffer over the pages.
    fn pin(
        &self,
        address: u64,
        size: u64,
        pages: Pages,
        flags: MemoryFlags,
        gpus: Option<GpuSet>,
    ) -> Result<(), Error> {
        let refused = Error::no_memory(size);
        let first = self.machine(|machine| {
            let node = machine.gpus_in_use().places().next();
            Ok(node.and_then(|place| machine.gpus().get(usize::from(place))?.node))
        })?;
        let scene = self.scene(first.ok_or(refused)?)?;
        let owner = scene.anchor.ok_or(refused)?;
        let draft = Draft {
            kind: Kind::Registered { address, size },
            size,
            length: pages.length,
            node: 0,
            flags,
            reachable: scene.all,
        };
        let placed = self.registration_span(owner.alignment(), &draft)?;
        let to = buffer_flags(flags, self.context.options())
            | AllocMemoryFlags::USERPTR
            | AllocMemoryFlags::WRITABLE
            | AllocMemoryFlags::EXECUTABLE;
        let room = {
            let mut books = self.memory.lock(self.os());
            books.users.reserve(1)
        };
        let made = room.and_then(|()| {
            self.make_userptr(
                owner.gpu_id,
                placed.start,
                pages.start,
                pages.length,
                to,
                placed.place,
            )
        });
        let handles = match made {
            Ok(handles) => handles,
            Err(error) => {
                self.forget(placed);
                // A secondary context, and GPUs that retry faults (kfd_chardev.c).
                return Err(match error.errno {
                    Some(Errno::EOPNOTSUPP) => error.with_status(Status::NOT_SUPPORTED),
                    _ => error,
                });
            }
        };
        // Another thread may have been as fast with the same memory: one of both
        // buffers is enough, unless that one is on its way out.
        let os = self.os();
        let (mut books, other) =
            self.memory.settled(os, self.memory.lock(os), |books| books.pinned(address, size));
        let first = books.users.find((address, size)).and_then(|at| Some(*books.users.at(at)?.1));
        let entered = match first {
            Some(User::Pinned(_)) => {
                if let Some(object) = other.and_then(|at| books.objects.value_mut(at)) {
                    object.registrations = object.registrations.saturating_add(1);
                }
                Err(None)
            }
            Some(User::Attributed(_)) => Err(Some(refused)),
            None => books
                .users
                .insert((address, size), User::Pinned(placed.start))
                .map(drop)
                .map_err(Some),
        };
        match entered {
            Ok(()) => {
                if let Some(object) = books.put_handles(placed.place, handles) {
                    (object.registered, object.registrations) = (gpus, 1);
                }
                Ok(())
            }
            Err(outcome) => {
                drop(books);
                for &handle in handles.as_slice() {
                    let _ = self.free_buffer(handle);
                }
                self.forget(placed);
                outcome.map_or(Ok(()), Err)
            }
        }
    }

    /// Takes one registration back.
    pub(crate) fn deregister(&self, address: u64) -> Result<(), Error> {
        let os = self.os();
        let books = self.memory.lock(os);
        let (mut books, place) =
            self.memory.settled(os, books, |books| match books.user_at(address, 0) {
                Some((_, User::Pinned(key))) => books.objects.find(key),
                Some((_, User::Attributed(_))) => None,
                None => books.import_at(address),
            });
        match books.user_at(address, 0) {
            Some((_, User::Pinned(_))) => {
                let Some((place, object)) =
                    place.and_then(|place| Some((place, books.objects.value_mut(place)?)))
                else {
                    drop(books);
                    return self.unknown(address, Status::MEMORY_NOT_REGISTERED);
                };
                if object.registrations > 1 {
                    object.registrations = object.registrations.saturating_sub(1);
                    return Ok(());
                }
                self.unmap_and_free_at(books, place)
            }
            Some((_, User::Attributed(_))) => {
                drop(books);
                self.deregister_attributed(address)
            }
            None => {
                if let Some(place) = place {
                    return self.unmap_and_free_at(books, place);
                }
                let place = books.objects.find(address);
                let object = place.and_then(|at| books.objects.value_mut(at));
                match object {
                    Some(object) if object.registered.is_some() => {
                        (object.registered, object.registrations) = (None, 0);
                        Ok(())
                    }
                    Some(_) => Err(Error::library(
                        Status::MEMORY_NOT_REGISTERED,
                        Operation::LookUp,
                        error::Object::Address(address),
                    )),
                    None => {
                        drop(books);
                        self.unknown(address, Status::MEMORY_NOT_REGISTERED)
                    }
                }
            }
        }
    }

    /// Takes back a registration by attributes.
    fn deregister_attributed(&self, address: u64) -> Result<(), Error> {
        let os = self.os();
        let _attributing = self.memory.attributing.acquire(os);
        let mut books = self.memory.lock(os);
        let Some((key, User::Attributed(known))) = books.user_at(address, 0) else {
            // Another thread was first.
            drop(books);
            return self.unknown(address, Status::MEMORY_NOT_REGISTERED);
        };
        if known.count > 1 {
            let place = books.users.find(key);
            if let Some(user) = place.and_then(|at| books.users.value_mut(at)) {
                let count = known.count.saturating_sub(1);
                *user = User::Attributed(Attributed { count, ..known });
            }
            return Ok(());
        }
        books.users.remove(key);
        drop(books);
        self.restore(key, known).inspect_err(|_| {
            let mut books = self.memory.lock(os);
            let _ = books.users.insert(key, User::Attributed(known));
        })
    }

    /// Gives pages back the attributes that they have without a registration. What
    /// the driver refuses stays as it is: the caller may have unmapped the memory.
    ///
    /// # Errors
    /// NOT_OPENED in a child that shares memory with its parent: nothing is done.
    pub(super) fn restore(
        &self,
        (address, size): (u64, u64),
        gone: Attributed,
    ) -> Result<(), Error> {
        let page = self.page();
        let Some(pages) = Pages::around(address, size, page) else { return Ok(()) };
        let mut at = pages.start;
        while at < pages.end() {
            let (end, newest, granted) = self.newest_from(at, pages.end(), page);
            let piece = Pages { start: at, length: end.saturating_sub(at) };
            let shut_out = gone.granted.without(granted);
            let result =
                self.svm_set(piece, &flags_of(newest), shut_out, Some(SvmAttributeType::NO_ACCESS));
            if let Err(error) = result {
                if error.status == Status::KERNEL_IO_CHANNEL_NOT_OPENED {
                    return Err(error);
                }
                debug!(self.context.options().logger, "{}", error);
            }
            at = end;
        }
        Ok(())
    }

    /// The newest registration that covers a page, up to which address that is so,
    /// and the GPUs that any registration there lets in.
    fn newest_from(&self, at: u64, end: u64, page: u64) -> (u64, Option<Attributed>, GpuSet) {
        let books = self.memory.lock(self.os());
        let (mut until, mut newest, mut granted) = (end, None::<Attributed>, GpuSet::NONE);
        books.users.each(
            |End(end)| end > at,
            |(start, _)| start & !page.wrapping_sub(1) < end,
            |_, (address, size), user| {
                let User::Attributed(other) = *user else { return };
                let Some(pages) = Pages::around(address, size, page) else { return };
                if pages.start > at {
                    until = until.min(pages.start);
                } else if pages.end() > at {
                    until = until.min(pages.end());
                    granted = granted.with(other.granted);
                    if newest.is_none_or(|newest| newest.order < other.order) {
                        newest = Some(other);
                    }
                }
            },
        );
        (until, newest, granted)
    }

    /// Lets GPUs in on pages where they are: in one request.
    pub(super) fn grant(
        &self,
        address: u64,
        size: u64,
        wanted: Option<GpuSet>,
    ) -> Result<u64, Error> {
        let gpus = match wanted {
            Some(gpus) => gpus,
            None => self.machine(|machine| Ok(machine.gpus_in_use()))?,
        };
        let pages = Pages::around(address, size, self.page()).ok_or(Error::argument(2))?;
        let _attributing = self.memory.attributing.acquire(self.os());
        self.svm_set(pages, &[], gpus, Some(SvmAttributeType::ACCESS_IN_PLACE))?;
        let mut books = self.memory.lock(self.os());
        if let Some((key, User::Attributed(_))) = books.user_at(address, size) {
            let place = books.users.find(key);
            if let Some(User::Attributed(known)) = place.and_then(|at| books.users.value_mut(at)) {
                known.granted = known.granted.with(gpus);
            }
        }
        Ok(pages.start.saturating_add(address.saturating_sub(pages.start)))
    }
}

/// The flags of a registration, or the driver's for a new range
/// (svm_range_set_default_attributes, kfd_svm.c): coherent, host access.
fn flags_of(registration: Option<Attributed>) -> [SvmAttribute; 2] {
    let (coherent, extended) = match registration {
        Some(registration) => (registration.coherent, registration.extended_coherent),
        None => (true, false),
    };
    let mut set = SvmFlags::empty();
    if coherent {
        set |= SvmFlags::COHERENT;
    }
    if extended {
        set |= SvmFlags::EXT_COHERENT;
    }
    let clear = (SvmFlags::COHERENT | SvmFlags::EXT_COHERENT).difference(set);
    [
        SvmAttribute { r#type: SvmAttributeType::SET_FLAGS, value: set.bits() },
        SvmAttribute { r#type: SvmAttributeType::CLR_FLAGS, value: clear.bits() },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_touched() {
        let around = |address, size| {
            Pages::around(address, size, 4096).map(|pages| (pages.start, pages.length))
        };
        assert_eq!(around(4096, 4096), Some((4096, 4096)));
        assert_eq!(around(4097, 4096), Some((4096, 8192)));
        assert_eq!(around(8191, 1), Some((4096, 4096)));
        assert_eq!(around(4096, 0), None);
        assert_eq!(around(u64::MAX, 2), None);
        assert_eq!(around(u64::MAX - 1, 1), None);
    }

    #[test]
    fn flags_say_what_is_and_what_is_not() {
        let of = |coherent, extended_coherent| {
            flags_of(Some(Attributed {
                order: 1,
                count: 1,
                coherent,
                extended_coherent,
                granted: GpuSet::NONE,
            }))
            .map(|attribute| attribute.value)
        };
        let (fine, extended) = (SvmFlags::COHERENT.bits(), SvmFlags::EXT_COHERENT.bits());
        assert_eq!(of(true, false), [fine, extended]);
        assert_eq!(of(false, false), [0, fine | extended]);
        assert_eq!(of(true, true), [fine | extended, 0]);
        assert_eq!(flags_of(None).map(|attribute| attribute.value), [fine, extended]);
    }
}
