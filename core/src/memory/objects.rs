//! The objects of a context, by their first GPU address.
//!
//! An object that goes leaves its addresses and its place here for a while: the
//! next allocation is often of the same length, and takes over both without any
//! change of order. Nobody sees such a vacancy.

use super::object::{Draft, Handles, Home, Object, Span, State};
use super::tree::{Place, Tree};
use crate::error::Error;

/// How many vacancies there are at most.
const VACANCIES: usize = 4;

/// Addresses and a place that wait for an object.
#[derive(Debug, Clone, Copy)]
struct Vacancy {
    start: u64,
    /// 0 where there is none.
    length: u64,
    place: Place,
    home: Home,
}

impl Vacancy {
    #[inline(always)]
    fn fits(&self, home: Home, length: u64, alignment: u64) -> bool {
        self.length == length && self.home == home && self.start & alignment.wrapping_sub(1) == 0
    }
}

const NO_VACANCY: Vacancy =
    Vacancy { start: 0, length: 0, place: Place::NOWHERE, home: Home::Borrowed };

/// An object that has its addresses: where they begin, its place, where they are from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) start: u64,
    pub(super) place: Place,
    pub(super) home: Home,
}

/// The objects of a context.
#[derive(Debug)]
pub(super) struct Objects {
    tree: Tree<u64, Object>,
    vacancies: [Vacancy; VACANCIES],
    /// Where the newest vacancy is.
    newest: usize,
}

impl Objects {
    pub(super) const fn new() -> Objects {
        Objects { tree: Tree::new(), vacancies: [NO_VACANCY; VACANCIES], newest: 0 }
    }

    /// Whether there is neither an object nor a vacancy.
    pub(super) fn is_empty(&self) -> bool {
        self.tree.len() == 0
    }

    #[inline]
    fn present(&self, place: Place) -> Option<Place> {
        (self.tree.value(place)?.state != State::Vacant).then_some(place)
    }

    /// The object with this first address.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<Place> {
        self.present(self.tree.find(key)?)
    }

    /// The object with this first address, if nobody changes it.
    #[inline(always)]
    pub(super) fn find_live(&self, key: u64) -> Option<Place> {
        let place = self.tree.find(key)?;
        (self.tree.value(place)?.state == State::Live).then_some(place)
    }

    /// The last object that begins at or below an address; none where only a
    /// vacancy lies between that object and the address.
    #[inline]
    pub(super) fn floor(&self, key: u64) -> Option<Place> {
        self.present(self.tree.floor(key)?)
    }

    /// The object whose addresses an address is one of.
    #[inline(always)]
    pub(super) fn containing(&self, address: u64) -> Option<(Place, u64, &Object)> {
        let (place, key, object) = self.tree.floor_entry(address)?;
        let inside = address.wrapping_sub(key) < object.length;
        (inside && object.state != State::Vacant).then_some((place, key, object))
    }

    /// The first object that begins at or above an address.
    pub(super) fn ceiling(&self, key: u64) -> Option<Place> {
        let mut from = key;
        loop {
            let place = self.tree.ceiling(from)?;
            if let Some(place) = self.present(place) {
                return Some(place);
            }
            from = self.tree.at(place)?.0.checked_add(1)?;
        }
    }

    /// The object at a place, with its first address.
    #[inline]
    pub(super) fn at(&self, place: Place) -> Option<(u64, &Object)> {
        self.tree.at(place)
    }

    /// The object at a place.
    #[inline]
    pub(super) fn value_mut(&mut self, place: Place) -> Option<&mut Object> {
        self.tree.value_mut(place)
    }

    /// Makes room for one more object.
    ///
    /// # Errors
    /// NO_MEMORY.
    pub(super) fn reserve_one(&mut self) -> Result<(), Error> {
        self.tree.reserve(1)
    }

    /// Adds an object at addresses that no other has.
    ///
    /// # Errors
    /// NO_MEMORY, never after [`Objects::reserve_one`].
    pub(super) fn insert(&mut self, object: Object) -> Result<Placed, Error> {
        let Span { start, home, .. } = object.span;
        let place = self.tree.insert(start, object)?;
        Ok(Placed { start, place, home })
    }

    /// Removes an object whose addresses are not given back by this.
    pub(super) fn remove(&mut self, key: u64) {
        self.tree.remove(key);
    }

    /// Puts an object where one of the same length and home went lately.
    #[inline(always)]
    pub(super) fn revive(
        &mut self,
        home: Home,
        length: u64,
        alignment: u64,
        draft: &Draft,
    ) -> Option<Placed> {
        let newest = self.vacancies.get(self.newest)?;
        let number = if newest.fits(home, length, alignment) {
            self.newest
        } else {
            self.older(home, length, alignment)?
        };
        let vacancy = self.vacancies.get_mut(number)?;
        let Vacancy { start, place, .. } = *vacancy;
        let object = self.tree.value_mut(place)?;
        vacancy.length = 0;
        object.renew(draft, Span::of(home, start, length));
        Some(Placed { start, place, home })
    }

    #[inline(never)]
    fn older(&self, home: Home, length: u64, alignment: u64) -> Option<usize> {
        self.vacancies.iter().position(|vacancy| vacancy.fits(home, length, alignment))
    }

    /// Makes a vacancy of an object whose addresses are from a home that is shared. An
    /// older vacancy may go for it: the result is its addresses, which must go back.
    #[inline(always)]
    pub(super) fn retire(&mut self, place: Place) -> Option<Span> {
        let object = self.tree.value_mut(place)?;
        object.state = State::Vacant;
        object.handles.replace(Handles::None);
        let Span { start, length, home, .. } = object.span;
        if self.vacancies.get(self.newest).is_some_and(|vacancy| vacancy.length != 0) {
            self.newest = self.newest.wrapping_add(1) & (VACANCIES - 1);
        }
        let vacancy = self.vacancies.get_mut(self.newest)?;
        let before = core::mem::replace(vacancy, Vacancy { start, length, place, home });
        if before.length == 0 { None } else { self.vacate(before) }
    }

    /// Takes a vacancy away; its addresses must go back.
    fn vacate(&mut self, vacancy: Vacancy) -> Option<Span> {
        let Vacancy { start, length, home, .. } = vacancy;
        if length == 0 {
            return None;
        }
        self.tree.remove(start);
        Some(Span::of(home, start, length))
    }

    /// Takes all vacancies away; their addresses must go back.
    pub(super) fn vacate_all(&mut self) -> impl Iterator<Item = Span> + use<> {
        let vacancies = core::mem::replace(&mut self.vacancies, [NO_VACANCY; VACANCIES]);
        vacancies.map(|vacancy| self.vacate(vacancy)).into_iter().flatten()
    }
}
