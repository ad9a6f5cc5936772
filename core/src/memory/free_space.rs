//! The free addresses of a range: ordered by address, found by size.

use super::tree::{Place, Summary, Tree};
use crate::error::Error;

/// The longest hole below, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Longest(u64);

impl Summary<u64, u64> for Longest {
    const NONE: Longest = Longest(0);

    fn of(_: &u64, length: &u64) -> Longest {
        Longest(*length)
    }

    fn join(self, other: Longest) -> Longest {
        Longest(u64::max(self.0, other.0))
    }
}

/// Free addresses. Whatever was taken can be given back without fail: room for
/// the hole that it leaves is made when it is taken.
#[derive(Debug)]
pub(super) struct FreeSpace {
    /// Holes: first address to length. No two of them touch.
    holes: Tree<u64, u64, Longest>,
    /// Spans that are taken.
    taken: usize,
}

impl FreeSpace {
    /// No addresses at all.
    pub(super) const fn new() -> FreeSpace {
        FreeSpace { holes: Tree::new(), taken: 0 }
    }

    /// Adds a range of addresses that are not in it yet.
    ///
    /// # Errors
    /// NO_MEMORY.
    pub(super) fn add(&mut self, start: u64, length: u64) -> Result<(), Error> {
        self.make_room(1)?;
        self.put(start, length);
        Ok(())
    }

    /// How many spans are taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// At most one hole before each span, one behind the last, and the new ones.
    fn make_room(&mut self, more: usize) -> Result<(), Error> {
        let holes = self.taken.saturating_add(1).saturating_add(more);
        self.holes.reserve(holes.saturating_sub(self.holes.len()).max(1))
    }

    /// Takes `length` bytes at a multiple of `alignment`, a power of two, as low as
    /// a hole of that size is found; `None` when there is none.
    ///
    /// # Errors
    /// NO_MEMORY for the books.
    pub(super) fn take(&mut self, length: u64, alignment: u64) -> Result<Option<u64>, Error> {
        if length == 0 {
            return Ok(None);
        }
        self.make_room(2)?;
        let fits = |from: u64, hole: u64| {
            let start = from.checked_next_multiple_of(alignment)?;
            let rest = hole.checked_sub(start.saturating_sub(from))?;
            (rest >= length).then_some(start)
        };
        // The first hole of the size may lie so that the alignment spoils it;
        // the first one longer by the alignment always fits.
        for wanted in [length, length.saturating_add(alignment).saturating_sub(1)] {
            let found = self.holes.first(|Longest(most)| most >= wanted, |_, &hole| hole >= wanted);
            let Some(place) = found else { return Ok(None) };
            let Some((from, &hole)) = self.holes.at(place) else { return Ok(None) };
            if let Some(start) = fits(from, hole) {
                self.carve(place, from, hole, start, length);
                return Ok(Some(start));
            }
        }
        Ok(None)
    }

    /// Takes exactly these addresses; whether they were free.
    ///
    /// # Errors
    /// NO_MEMORY for the books.
    pub(super) fn take_at(&mut self, start: u64, length: u64) -> Result<bool, Error> {
        let Some(end) = start.checked_add(length) else { return Ok(false) };
        let Some(place) = self.holes.floor(start) else { return Ok(false) };
        let Some((from, &hole)) = self.holes.at(place) else { return Ok(false) };
        if length == 0 || end > from.saturating_add(hole) {
            return Ok(false);
        }
        self.make_room(2)?;
        self.carve(place, from, hole, start, length);
        Ok(true)
    }

    /// Cuts a span out of a hole. Room for one more hole is there.
    fn carve(&mut self, place: Place, from: u64, hole: u64, start: u64, length: u64) {
        let before = start.saturating_sub(from);
        let after = hole.saturating_sub(before).saturating_sub(length);
        let behind = start.saturating_add(length);
        self.taken = self.taken.saturating_add(1);
        match (before, after) {
            (0, 0) => {
                self.holes.remove(from);
            }
            (0, _) => self.holes.change(place, behind, after),
            (_, 0) => self.holes.change(place, from, before),
            _ => {
                self.holes.change(place, from, before);
                // Room was made.
                let _ = self.holes.insert(behind, after);
            }
        }
    }

    /// Gives back a span that was taken.
    pub(super) fn give(&mut self, start: u64, length: u64) {
        self.taken = self.taken.saturating_sub(1);
        self.put(start, length);
    }

    /// Joins free addresses with their neighbours. Room for one more hole is there.
    fn put(&mut self, start: u64, length: u64) {
        if length == 0 {
            return;
        }
        let end = start.saturating_add(length);
        let next = self.holes.ceiling(start).and_then(|place| {
            let (from, &hole) = self.holes.at(place)?;
            (from == end).then_some((from, hole))
        });
        let before = self.holes.floor(start).and_then(|place| {
            let (from, &hole) = self.holes.at(place)?;
            (from.saturating_add(hole) == start).then_some((place, from, hole))
        });
        let length = match next {
            Some((from, hole)) if before.is_some() => {
                self.holes.remove(from);
                length.saturating_add(hole)
            }
            Some((_, hole)) => length.saturating_add(hole),
            None => length,
        };
        match (before, next) {
            (Some((place, from, hole)), _) => {
                self.holes.change(place, from, hole.saturating_add(length));
            }
            (None, Some((from, _))) => {
                if let Some(place) = self.holes.find(from) {
                    self.holes.change(place, start, length);
                }
            }
            // Room was made when it was taken.
            (None, None) => {
                let _ = self.holes.insert(start, length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec;
    use std::vec::Vec;

    const PAGE: u64 = 4096;

    #[test]
    fn everything_comes_back_as_one_hole() {
        let mut space = FreeSpace::new();
        space.add(16 * PAGE, 64 * PAGE).unwrap();
        let spans: Vec<u64> =
            (0..8).map(|_| space.take(3 * PAGE, PAGE).unwrap().unwrap()).collect();
        assert_eq!(spans[1] - spans[0], 3 * PAGE);
        for &start in spans.iter().step_by(2).chain(spans.iter().skip(1).step_by(2)) {
            space.give(start, 3 * PAGE);
        }
        assert_eq!(space.holes.len(), 1);
        assert_eq!(space.take(64 * PAGE, PAGE).unwrap(), Some(16 * PAGE));
        assert_eq!(space.take(PAGE, PAGE).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_is_not_found() {
        let mut space = FreeSpace::new();
        space.add(PAGE, 8 * PAGE).unwrap();
        assert_eq!(space.take(0, PAGE).unwrap(), None);
        assert_eq!(space.take(u64::MAX, PAGE).unwrap(), None);
        assert_eq!(space.take(PAGE, 1 << 63).unwrap(), None);
        assert!(!space.take_at(0, PAGE).unwrap());
        assert!(!space.take_at(PAGE, 9 * PAGE).unwrap());
        assert!(!space.take_at(u64::MAX - PAGE + 1, PAGE).unwrap());
        assert!(!space.take_at(PAGE, 0).unwrap());
        assert!(space.take_at(4 * PAGE, PAGE).unwrap());
        assert!(!space.take_at(4 * PAGE, PAGE).unwrap());
        assert_eq!(space.taken(), 1);
    }

    #[test]
    fn it_agrees_with_a_map_of_pages() {
        const PAGES: usize = 512;
        let mut state = 0x1234_5678_9abc_def1_u64;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut space = FreeSpace::new();
        space.add(0, PAGES as u64 * PAGE).unwrap();
        let mut pages = vec![false; PAGES];
        let mut spans: Vec<(usize, usize)> = Vec::new();
        for _ in 0..100_000 {
            let length = 1 + random(12) as usize;
            match random(5) {
                0..=1 => {
                    let alignment = 1_usize << random(6);
                    let fits = |at: usize| pages[at..at + length].iter().all(|&taken| !taken);
                    let possible = (0..=PAGES - length).step_by(alignment).any(fits);
                    let slack = length + alignment;
                    let roomy = (0..=PAGES.saturating_sub(slack))
                        .any(|at| pages[at..at + slack].iter().all(|&taken| !taken));
                    match space.take(length as u64 * PAGE, alignment as u64 * PAGE).unwrap() {
                        Some(start) => {
                            let at = (start / PAGE) as usize;
                            assert!(at % alignment == 0 && fits(at));
                            pages[at..at + length].fill(true);
                            spans.push((at, length));
                        }
                        None => assert!(!(possible && (alignment == 1 || roomy))),
                    }
                }
                2 => {
                    let at = random((PAGES - length) as u64) as usize;
                    let free = pages[at..at + length].iter().all(|&taken| !taken);
                    assert_eq!(
                        space.take_at(at as u64 * PAGE, length as u64 * PAGE).unwrap(),
                        free
                    );
                    if free {
                        pages[at..at + length].fill(true);
                        spans.push((at, length));
                    }
                }
                _ => {
                    if spans.is_empty() {
                        continue;
                    }
                    let (at, length) = spans.swap_remove(random(spans.len() as u64) as usize);
                    pages[at..at + length].fill(false);
                    space.give(at as u64 * PAGE, length as u64 * PAGE);
                }
            }
            assert_eq!(space.taken(), spans.len());
        }
        for (at, length) in spans {
            space.give(at as u64 * PAGE, length as u64 * PAGE);
        }
        assert_eq!(space.take(PAGES as u64 * PAGE, PAGE).unwrap(), Some(0));
    }
}
