//! Addresses for objects: from the regions, from the system, from the window of
//! handles, from a GPU's own aperture. An object is in the books, reserved, from the
//! moment it has addresses.

use super::access::Access;
use super::books::Gpuvm;
use super::buffers::Buffer;
use super::free_space::FreeSpace;
use super::object::{Draft, Handles, Home, Span};
use super::objects::Placed;
use super::regions::{
    HUGE_PAGE, Regions, Reserved, reservation, reserve, reserve_region, to_usize,
};
use super::tree::Place;
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
#[inline]
pub(super) fn round_up(size: u64, unit: u64) -> Option<u64> {
    let rest = unit.wrapping_sub(1);
    Some(size.checked_add(rest)? & !rest)
}

/// The alignment of an allocation: what was asked for, growing with the size up to
/// a huge page, since larger page-table fragments are faster.
#[inline]
pub(super) fn alignment_for(size: u64, wanted: u64, least: u64) -> u64 {
    let mut alignment = u64::max(wanted, least);
    while alignment < HUGE_PAGE && size >> 1 >= alignment {
        alignment = alignment.saturating_mul(2);
    }
    alignment
}

/// Where addresses of the process are to come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The regions for device memory, or a mapping of their own if they are many.
    Device,
    /// The same, where there may be no GPU that has them in common with the process.
    Addresses,
    /// The regions for host memory, or a mapping of their own if they are many.
    Host,
    /// A mapping of their own, anywhere.
    Own,
}

impl<P: Platform> Access<'_, P> {
    /// Makes an object visible to others.
    #[inline(always)]
    pub(super) fn publish(&self, place: Place, handles: Handles, visible: u64) {
        let mut books = self.memory.lock(self.os());
        if let Some(object) = books.put_handles(place, handles) {
            object.visible = visible;
        }
    }

    /// Removes an object of which no CPU has seen anything, and gives its addresses back.
    #[cold]
    pub(super) fn forget(&self, placed: Placed) {
        let mut books = self.memory.lock(self.os());
        let reserved =
            books.objects.at(placed.place).and_then(|(_, object)| object.span.reserved());
        match placed.home {
            Home::Own | Home::Borrowed => books.objects.remove(placed.start),
            _ => books.retire(placed.place),
        }
        self.memory.unlock(self.os(), books);
        if let Some(reserved) = reserved {
            let _ = reserved.release(self.os());
        }
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

    /// Where addresses from a source may be.
    fn bounds(&self, source: Source, length: u64) -> Result<Aperture, Error> {
        let everywhere = Aperture { base: 0, limit: u64::MAX };
        let svm = if source == Source::Own { None } else { self.common_range()? };
        match (svm, source) {
            (Some(svm), _) => Ok(svm),
            (None, Source::Own) => Ok(everywhere),
            (None, Source::Addresses) => Ok(Aperture { base: self.page(), ..everywhere }),
            (None, _) => Err(Error::no_memory(length)),
        }
    }

    /// Where addresses of the process for an object come from, and how many there must
    /// be; none where it needs a mapping of its own.
    #[inline(always)]
    fn region(&self, source: Source, length: u64) -> Result<(Home, u64), Option<u64>> {
        let guard = u64::from(self.context.options().guard_pages).saturating_mul(self.page());
        let whole = length.checked_add(guard).ok_or(None)?;
        match source {
            Source::Device | Source::Addresses if whole < OWN_MAPPING => Ok((Home::Device, whole)),
            Source::Host if length < HUGE_PAGE => Ok((Home::Host, whole)),
            _ => Err(Some(whole)),
        }
    }

    /// Addresses of the process for an object from one that went lately, if there
    /// are such.
    #[inline(always)]
    pub(super) fn vacancy(
        &self,
        source: Source,
        alignment: u64,
        fixed: Option<u64>,
        draft: &Draft,
    ) -> Option<Placed> {
        if fixed.is_some() {
            return None;
        }
        let (home, length) = self.region(source, draft.length).ok()?;
        self.memory.lock(self.os()).objects.revive(home, length, alignment, draft)
    }

    /// Addresses of the process for an object, which is in the books from then on.
    #[inline(never)]
    pub(super) fn process_span(
        &self,
        source: Source,
        alignment: u64,
        fixed: Option<u64>,
        draft: &Draft,
    ) -> Result<Placed, Error> {
        if let Some(address) = fixed {
            return self.fixed_span(source, address, draft);
        }
        match self.region(source, draft.length) {
            Ok((home, length)) => self.region_span(source, home, length, alignment, draft),
            Err(Some(length)) => self.own_span(source, length, alignment, draft),
            Err(None) => Err(Error::no_memory(draft.length)),
        }
    }

    /// A mapping of its own for an object.
    fn own_span(
        &self,
        source: Source,
        length: u64,
        alignment: u64,
        draft: &Draft,
    ) -> Result<Placed, Error> {
        let bounds = self.bounds(source, draft.length)?;
        let host = matches!(source, Source::Host | Source::Own);
        let huge = host && draft.length >= HUGE_PAGE;
        let alignment = if huge { u64::max(alignment, HUGE_PAGE) } else { alignment };
        self.enter_own(reserve(self.os(), length, alignment, bounds)?, draft)
    }

    /// Enters an object with a mapping of its own.
    fn enter_own(&self, reserved: Reserved, draft: &Draft) -> Result<Placed, Error> {
        let os = self.os();
        let mut books = self.memory.lock(os);
        let entered = books.objects.insert(draft.at(Span::own(reserved)));
        drop(books);
        entered.inspect_err(|_| {
            let _ = reserved.release(os);
        })
    }

    /// Addresses for an object in a home, for which there may have to be a new region.
    fn region_span(
        &self,
        source: Source,
        home: Home,
        length: u64,
        alignment: u64,
        draft: &Draft,
    ) -> Result<Placed, Error> {
        let os = self.os();
        let mut books = self.memory.lock(os);
        loop {
            if let Some(placed) = books.place(home, length, alignment, draft)? {
                return Ok(placed);
            }
            let regions: &mut Regions = match home {
                Home::Host => &mut books.host,
                _ => &mut books.device,
            };
            let (growth, advice) = (regions.growth(length, alignment), regions.advice());
            drop(books);
            let bounds = self.bounds(source, draft.length)?;
            let region = reserve_region(os, growth, bounds, advice)?;
            books = self.memory.lock(os);
            let regions: &mut Regions = match home {
                Home::Host => &mut books.host,
                _ => &mut books.device,
            };
            if let Err(error) = regions.add(region) {
                drop(books);
                let _ = region.release(os);
                return Err(error);
            }
        }
    }

    /// Exactly these addresses: free ones of ours, or of the system's.
    fn fixed_span(&self, source: Source, start: u64, draft: &Draft) -> Result<Placed, Error> {
        let os = self.os();
        let taken = |errno| {
            let object = error::Object::Address(start);
            Error::system(Status::NO_MEMORY, Operation::MapMemory, errno, object)
        };
        let length = draft.length;
        let bounds = self.bounds(source, length)?;
        let last = start.checked_add(length).and_then(|end| end.checked_sub(1));
        let inside = last.is_some_and(|last| start >= bounds.base && last <= bounds.limit);
        if !inside || start.checked_rem(self.page()) != Some(0) {
            return Err(taken(Errno::EINVAL));
        }
        let mut books = self.memory.lock(os);
        if let Some(placed) = books.place_at(Span::of(Home::Device, start, length), draft)? {
            return Ok(placed);
        }
        drop(books);
        let mapped = to_usize(start)
            .and_then(|start| os.map(reservation(Placement::Free(start), to_usize(length)?)));
        mapped.map_err(taken)?;
        self.enter_own(Reserved::exactly(start, length), draft)
    }

    /// A name for memory without an address.
    #[inline(never)]
    pub(super) fn window_span(
        &self,
        length: u64,
        alignment: u64,
        draft: &Draft,
    ) -> Result<Placed, Error> {
        let mut books = self.memory.lock(self.os());
        let placed = books.place(Home::Window, length, alignment, draft)?;
        placed.ok_or_else(|| Error::no_memory(length))
    }

    /// Addresses of a GPU that does not share the process's; and the address by
    /// which the driver knows them.
    #[inline(never)]
    pub(super) fn gpuvm_span(
        &self,
        place: u8,
        alignment: u64,
        fixed: Option<u64>,
        draft: &Draft,
    ) -> Result<(Placed, u64), Error> {
        let length = draft.length;
        let refused = || Error::no_memory(length);
        let gpuvm = self.machine(|machine| {
            let gpu = machine.gpus().get(usize::from(place)).and_then(|gpu| gpu.node);
            let node = gpu.and_then(|node| machine.snapshot().node(node)).ok_or_else(refused)?;
            machine.apertures_of(node).gpuvm.ok_or_else(refused)
        })?;
        let mut books = self.memory.lock(self.os());
        let own = books.gpuvm.get_mut(usize::from(place)).ok_or_else(refused)?;
        if own.is_none() {
            let mut space = FreeSpace::new();
            let first = gpuvm.base.saturating_add(GPUVM_FIRST);
            space.add(first, gpuvm.limit.saturating_sub(first))?;
            *own = Some(Gpuvm { base: gpuvm.base, space });
        }
        let home = Home::Gpuvm(place);
        let placed = match fixed {
            Some(start) if start & self.page().wrapping_sub(1) != 0 => None,
            Some(start) => books.place_at(Span::of(home, start, length), draft)?,
            None => books.place(home, length, alignment, draft)?,
        };
        let placed = placed.ok_or_else(refused)?;
        Ok((placed, placed.start.saturating_sub(gpuvm.base)))
    }

    /// Addresses for a registration of the caller's memory.
    pub(super) fn registration_span(&self, alignment: u64, draft: &Draft) -> Result<Placed, Error> {
        let alignment = alignment_for(draft.length, 0, u64::max(self.page(), alignment));
        self.process_span(Source::Device, alignment, None, draft)
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

    /// Maps the addresses of an object anew, without contents or rights; whether
    /// that could help.
    #[cold]
    pub(super) fn refresh(&self, place: Place, buffer: &Buffer) -> bool {
        let Some(span) = self.span_of(place) else { return false };
        // Pages of the process have rights and advice that would be lost.
        let has_pages = buffer.source.wrapping_sub(span.start) < span.length;
        !has_pages && self.replace(span)
    }

    /// The addresses of the object at a place.
    pub(super) fn span_of(&self, place: Place) -> Option<Span> {
        let books = self.memory.lock(self.os());
        books.objects.at(place).map(|(_, object)| object.span)
    }

    /// Maps addresses of ours anew as their region was; whether they are ours.
    pub(super) fn replace(&self, span: Span) -> bool {
        let os = self.os();
        let advice = match span.home {
            Home::Device | Home::Own => &[],
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
