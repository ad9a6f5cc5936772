//! Address space that the library keeps from the system, to be cut up in user
//! space.
//!
//! A region is reserved without memory behind it. The first one is modest, each
//! further one twice as long as the one before; where the system refuses one, half
//! of it is tried, down to what the one allocation needs.

use alloc::vec::Vec;

use super::free_ranges::highest_free;
use super::free_space::FreeSpace;
use crate::errno::Errno;
use crate::error::{Error, Object, Operation, Status};
use crate::fallible::try_push;
use crate::seam::{Advice, Mapping, Os, Placement, Protection};
use crate::topology::Aperture;

/// What every region is aligned to: a huge page, the largest that a GPU's page
/// tables gain from.
pub(super) const HUGE_PAGE: u64 = 2 << 20;

/// The length of the first region.
const FIRST: u64 = 64 << 20;

/// The length at which regions stop growing.
const LONGEST: u64 = 64 << 30;

/// The end of the addresses that the system gives without being asked for
/// particular ones: 47 bits, on x86-64 and on 48-bit arm64 from above too.
const USER_END: u64 = 1 << 47;

/// What small allocations of one kind are cut from.
#[derive(Debug)]
pub(super) struct Regions {
    pub(super) space: FreeSpace,
    reserved: Vec<Reserved>,
    next: u64,
    /// What the system is told about each region.
    advice: &'static [Advice],
}

/// A region to be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Growth {
    /// Bytes, if the system gives as many.
    wish: u64,
    /// What the one allocation needs: bytes, and their alignment.
    length: u64,
    alignment: u64,
}

/// A range that was taken from the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reserved {
    pub(super) start: u64,
    pub(super) length: u64,
    /// Its first multiple of the alignment asked for.
    pub(super) aligned: u64,
}

impl Reserved {
    /// A range that is mapped already.
    pub(super) const fn exactly(start: u64, length: u64) -> Reserved {
        Reserved { start, length, aligned: start }
    }

    /// Bytes from the aligned start to the end.
    pub(super) fn usable(&self) -> u64 {
        self.length.saturating_sub(self.aligned.saturating_sub(self.start))
    }

    /// Gives it back to the system.
    pub(super) fn release<O: Os>(&self, os: &O) -> Result<(), Errno> {
        os.unmap(to_usize(self.start)?, to_usize(self.length)?)
    }
}

/// An address or a length of this process.
pub(super) fn to_usize(value: u64) -> Result<usize, Errno> {
    usize::try_from(value).map_err(|_| Errno::ENOMEM)
}

/// A mapping without rights, that reserves addresses only.
pub(super) const fn reservation(placement: Placement, length: usize) -> Mapping {
    Mapping { placement, length, protection: Protection::empty(), reserve: false, shared: false }
}

/// Reserves `length` bytes at a multiple of `alignment` within `bounds`, inclusive.
///
/// # Errors
/// NO_MEMORY with the system's errno.
pub(super) fn reserve<O: Os>(
    os: &O,
    length: u64,
    alignment: u64,
    bounds: Aperture,
) -> Result<Reserved, Error> {
    let refused = |errno| {
        Error::system(Status::NO_MEMORY, Operation::MapMemory, errno, Object::Bytes(length))
    };
    let page = os.page_size() as u64;
    let slack = alignment.saturating_sub(page);
    let whole = length.checked_add(slack).ok_or(refused(Errno::ENOMEM))?;
    let within = |start: u64| {
        let aligned = start.checked_next_multiple_of(alignment)?;
        let last = aligned.checked_add(length)?.checked_sub(1)?;
        (aligned >= bounds.base && last <= bounds.limit).then_some(aligned)
    };
    if bounds.limit >= USER_END.saturating_sub(1) {
        let start = to_usize(whole)
            .and_then(|whole| os.map(reservation(Placement::Anywhere, whole)))
            .map_err(refused)? as u64;
        if let Some(aligned) = within(start) {
            return Ok(Reserved { start, length: whole, aligned });
        }
        let _ = to_usize(start).and_then(|start| os.unmap(start, to_usize(whole)?));
    }
    // x86-64 gives nobody the last page of 47 bits (TASK_SIZE_MAX).
    let limit = u64::min(bounds.limit, USER_END.saturating_sub(page).saturating_sub(1));
    let bounds = Aperture { limit, ..bounds };
    // Another thread may be as fast: a few tries.
    for _ in 0..8 {
        let Some(start) = highest_free(os, length, alignment, bounds)? else { break };
        let wanted = to_usize(start).map_err(refused)?;
        let size = to_usize(length).map_err(refused)?;
        match os.map(reservation(Placement::Free(wanted), size)) {
            Ok(_) => return Ok(Reserved { start, length, aligned: start }),
            Err(Errno::EEXIST) => {}
            Err(errno) => return Err(refused(errno)),
        }
    }
    Err(refused(Errno::ENOMEM))
}

impl Regions {
    pub(super) const fn new(advice: &'static [Advice]) -> Regions {
        Regions { space: FreeSpace::new(), reserved: Vec::new(), next: FIRST, advice }
    }

    /// The next region, for an allocation of this length and alignment.
    pub(super) fn growth(&self, length: u64, alignment: u64) -> Growth {
        let whole = length.checked_next_multiple_of(HUGE_PAGE).unwrap_or(length);
        Growth { wish: u64::max(self.next, whole), length, alignment }
    }

    pub(super) fn advice(&self) -> &'static [Advice] {
        self.advice
    }

    /// Takes a new region into the books.
    ///
    /// # Errors
    /// NO_MEMORY; the region is the caller's still.
    pub(super) fn add(&mut self, region: Reserved) -> Result<(), Error> {
        self.reserved.try_reserve(1)?;
        self.space.add(region.aligned, region.usable())?;
        self.next = u64::min(region.usable().saturating_mul(2), LONGEST);
        try_push(&mut self.reserved, region)
    }

    /// Whether some of these addresses are in a region.
    pub(super) fn have_part_of(&self, start: u64, end: u64) -> bool {
        let mut regions = self.reserved.iter();
        regions.any(|it| it.start < end && it.start.saturating_add(it.length) > start)
    }

    /// The regions, to be given back.
    pub(super) fn take_all(&mut self) -> Vec<Reserved> {
        self.space = FreeSpace::new();
        self.next = FIRST;
        core::mem::take(&mut self.reserved)
    }
}

/// Reserves a region, as long as wished or, where the system refuses, shorter.
///
/// # Errors
/// NO_MEMORY when not even the one allocation has room.
pub(super) fn reserve_region<O: Os>(
    os: &O,
    growth: Growth,
    bounds: Aperture,
    advice: &[Advice],
) -> Result<Reserved, Error> {
    let Growth { wish: mut length, length: least, alignment } = growth;
    let page = os.page_size() as u64;
    loop {
        let huge = if length < HUGE_PAGE { 0 } else { HUGE_PAGE };
        match reserve(os, length, u64::max(alignment, huge), bounds) {
            Ok(region) => {
                for &advice in advice {
                    // What the kernel does not know, it does not do.
                    let _ = to_usize(region.start)
                        .and_then(|start| os.advise(start, to_usize(region.length)?, advice));
                }
                return Ok(region);
            }
            Err(error) if length <= least => return Err(error),
            Err(_) => {
                let half = length.checked_div(2).unwrap_or(0);
                length = u64::max(least, half.saturating_sub(half.checked_rem(page).unwrap_or(0)));
            }
        }
    }
}
