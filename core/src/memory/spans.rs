//! Addresses for objects: from the regions, from the system, from the window of
//! handles, from a GPU's own aperture. An object is in the books, reserved, from the
//! moment it has addresses.

use super::access::Access;
use super::books::Gpuvm;
use super::buffers::Buffer;
use super::free_space::FreeSpace;
use super::object::{Handles, Home, Object, Span};
use super::regions::{
    HUGE_PAGE, Regions, Reserved, reservation, reserve, reserve_region, to_usize,
};
use crate::errno::Errno;
use crate::error::{self, Error, Operation, Status};
use crate::fallible::try_push;
use crate::seam::{Os, Placement, Platform};
use crate::topology::Aperture;

/// From this length on an allocation has a mapping of its own, whose addresses go
/// back to the system with it.
const OWN_MAPPING: u64 = 1 << 30;

/// The addresses of a GPU without the process's addresses start above this, so
/// that none of them looks like a null pointer.
const GPUVM_FIRST: u64 = 1 << 16;

/// Rounds up to a multiple of a power of two.
pub(super) fn round_up(size: u64, unit: u64) -> Option<u64> {
    size.checked_next_multiple_of(unit)
}

/// The alignment of an allocation: what was asked for, growing with the size up to
/// a huge page, since larger page-table fragments are faster.
pub(super) fn alignment_for(size: u64, wanted: u64, least: u64) -> u64 {
    let mut alignment = u64::max(wanted, least);
    while alignment < HUGE_PAGE && size.checked_div(2).unwrap_or(0) >= alignment {
        alignment = alignment.saturating_mul(2);
    }
    alignment
}

/// Where addresses are to come from.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Device,
    Host,
}

impl<P: Platform> Access<'_, P> {
    /// Makes an object visible to others.
    pub(super) fn publish(&self, key: u64, handles: Handles, visible: u64) {
        let mut books = self.memory.lock(self.os());
        if let Some(place) = books.objects.find(key) {
            if let Some(object) = books.put_handles(place, handles) {
                object.visible = visible;
            }
        }
    }

    /// Removes an object of which no CPU has seen anything, and gives its addresses back.
    pub(super) fn forget(&self, span: Span) {
        if let Home::Own(reserved) = span.home {
            let mut books = self.memory.lock(self.os());
            books.objects.remove(span.start);
            drop(books);
            let _ = reserved.release(self.os());
            return;
        }
        let mut books = self.memory.lock(self.os());
        books.objects.remove(span.start);
        books.give(span);
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
    pub(super) fn process_span(
        &self,
        source: Source,
        bounds: Aperture,
        alignment: u64,
        fixed: Option<u64>,
        object: Object,
    ) -> Result<Span, Error> {
        self.process_span_as(source, bounds, alignment, fixed, object, false)
    }

    pub(super) fn process_span_as(
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
    pub(super) fn fixed_span(
        &self,
        start: u64,
        bounds: Aperture,
        object: Object,
    ) -> Result<Span, Error> {
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
    pub(super) fn window_span(
        &self,
        length: u64,
        alignment: u64,
        object: Object,
    ) -> Result<Span, Error> {
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
    pub(super) fn gpuvm_span(
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

    /// Maps addresses of ours anew, without contents or rights; whether that could
    /// help.
    pub(super) fn refresh(&self, span: Span, buffer: &Buffer) -> bool {
        // Pages of the process have rights and advice that would be lost.
        let has_pages = buffer.source.wrapping_sub(span.start) < span.length;
        !has_pages && self.replace(span)
    }

    /// Maps addresses of ours anew as their region was; whether they are ours.
    pub(super) fn replace(&self, span: Span) -> bool {
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
}
