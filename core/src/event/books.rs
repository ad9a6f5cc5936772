//! What a context remembers of its events.

use alloc::vec::Vec;

use super::has_slot;
use crate::error::{Error, Object, Operation, Status};
use crate::fallible::{try_insert, try_push};
use crate::lock::Lock;
use crate::uapi::kfd::EventType;

/// A context's events. Lock order: after the event page's.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(super) books: Lock<Books>,
}

/// An event of the context.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) id: u32,
    pub(super) owner: u64,
    pub(super) kind: EventType,
    pub(super) manual_reset: bool,
    /// A thread is destroying it; to others it is gone.
    pub(super) dying: bool,
}

/// A function of the caller's for an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Callback {
    pub(super) event: Known,
    /// The words that its owner knows it by.
    pub(super) words: [usize; 3],
    /// The age that was told last; a new event has the age 1.
    pub(super) age: u64,
}

/// Both lists are ordered by id.
#[derive(Debug, Default)]
pub(super) struct Books {
    events: Vec<Known>,
    callbacks: Vec<Callback>,
}

fn unknown(id: u32) -> Error {
    Error::library(Status::INVALID_HANDLE, Operation::LookUp, Object::Handle(u64::from(id)))
}

impl Books {
    /// Makes room for one event more.
    pub(super) fn reserve(&mut self) -> Result<(), Error> {
        Ok(self.events.try_reserve(1)?)
    }

    /// Enters an event, for which there is room.
    pub(super) fn enter(&mut self, event: Known) -> Result<(), Error> {
        match self.events.binary_search_by_key(&event.id, |known| known.id) {
            Ok(place) => {
                // The driver gives no id twice: what was here is gone without our doing.
                if let Some(known) = self.events.get_mut(place) {
                    *known = event;
                }
                Ok(())
            }
            Err(place) => try_insert(&mut self.events, place, event),
        }
    }

    /// The event with this id and owner.
    pub(super) fn find(&self, id: u32, owner: u64) -> Option<Known> {
        let place = self.events.binary_search_by_key(&id, |known| known.id).ok()?;
        self.events.get(place).copied().filter(|known| known.owner == owner && !known.dying)
    }

    /// Claims an event for its end, or gives it back to life.
    pub(super) fn set_dying(&mut self, id: u32, owner: u64, dying: bool) -> Option<Known> {
        let place = self.events.binary_search_by_key(&id, |known| known.id).ok()?;
        let known = self.events.get_mut(place)?;
        if known.owner != owner || known.dying == dying {
            return None;
        }
        known.dying = dying;
        Some(*known)
    }

    /// Claims any event for its end.
    pub(super) fn claim_any(&mut self) -> Option<Known> {
        let known = self.events.iter_mut().rev().find(|known| !known.dying)?;
        known.dying = true;
        Some(*known)
    }

    /// Takes an event out that is at its end, with its callback. The driver may have
    /// given its id to another one by now.
    pub(super) fn bury(&mut self, id: u32, owner: u64) {
        let is_it = |known: &Known| known.id == id && known.owner == owner;
        self.events.retain(|known| !(is_it(known) && known.dying));
        self.callbacks.retain(|callback| !is_it(&callback.event));
    }

    pub(super) fn with_slots(&self) -> u32 {
        let count = self.events.iter().filter(|known| has_slot(known.kind)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Gives an event a callback, in place of the one that it had; none takes it.
    pub(super) fn set_callback(
        &mut self,
        id: u32,
        owner: u64,
        words: Option<[usize; 3]>,
    ) -> Result<(), Error> {
        let event = self.find(id, owner).ok_or_else(|| unknown(id))?;
        let place = self.callbacks.binary_search_by_key(&id, |callback| callback.event.id);
        match (place, words) {
            (Ok(place), Some(words)) => {
                if let Some(callback) = self.callbacks.get_mut(place) {
                    callback.words = words;
                }
                Ok(())
            }
            (Ok(_), None) => {
                self.callbacks.retain(|callback| callback.event.id != id);
                Ok(())
            }
            (Err(place), Some(words)) => {
                try_insert(&mut self.callbacks, place, Callback { event, words, age: 1 })
            }
            (Err(_), None) => Ok(()),
        }
    }

    /// Copies the callbacks.
    pub(super) fn copy_callbacks(&self) -> Result<Vec<Callback>, Error> {
        let mut copy = Vec::new();
        for callback in &self.callbacks {
            try_push(&mut copy, *callback)?;
        }
        Ok(copy)
    }

    /// Notes that a callback is due at an age that was told; `false` where another
    /// thread was first, or the callback is gone.
    pub(super) fn advance(&mut self, seen: &Callback, age: u64) -> bool {
        let place = self.callbacks.binary_search_by_key(&seen.event.id, |one| one.event.id);
        let callback = place.ok().and_then(|place| self.callbacks.get_mut(place));
        match callback {
            Some(callback)
                if callback.event.owner == seen.event.owner
                    && callback.words == seen.words
                    && callback.age == seen.age =>
            {
                callback.age = age;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(id: u32, owner: u64) -> Known {
        Known { id, owner, kind: EventType::SIGNAL, manual_reset: false, dying: false }
    }

    #[test]
    fn an_event_is_known_by_id_and_owner() {
        let mut books = Books::default();
        for id in [5, 1, 0x4000_0000, 3] {
            books.enter(known(id, u64::from(id) * 10)).unwrap();
        }
        assert!(books.set_dying(3, 31, true).is_none());
        assert!(books.set_dying(3, 30, true).is_some());
        assert!(books.set_dying(3, 30, true).is_none(), "it is dying");
        assert!(books.find(3, 30).is_none());
        assert!(books.set_dying(3, 30, false).is_some());
        assert!(books.find(3, 30).is_some(), "it lives");
        assert!(books.set_dying(3, 30, true).is_some());
        books.enter(known(3, 77)).unwrap();
        books.bury(3, 30);
        assert!(books.find(3, 30).is_none() && books.find(3, 77).is_some());
        assert_eq!(books.with_slots(), 4);
        let ids: Vec<u32> = core::iter::from_fn(|| Some(books.claim_any()?.id)).collect();
        assert_eq!(ids, [0x4000_0000, 5, 3, 1]);
    }

    #[test]
    fn a_callback_is_due_once_for_each_age() {
        let mut books = Books::default();
        books.enter(known(1, 10)).unwrap();
        assert_eq!(
            books.set_callback(2, 10, Some([0; 3])).unwrap_err().status,
            Status::INVALID_HANDLE
        );
        books.set_callback(1, 10, Some([7, 8, 9])).unwrap();
        let seen = books.copy_callbacks().unwrap();
        assert_eq!((seen.len(), seen[0].words, seen[0].age), (1, [7, 8, 9], 1));
        assert!(books.advance(&seen[0], 2));
        assert!(!books.advance(&seen[0], 2), "another thread saw the same");
        let seen = books.copy_callbacks().unwrap();
        books.set_callback(1, 10, Some([1, 1, 1])).unwrap();
        assert!(!books.advance(&seen[0], 3), "it is another one now");
        books.set_dying(1, 10, true).unwrap();
        books.bury(1, 10);
        assert_eq!(books.copy_callbacks().unwrap().len(), 0);
    }
}
