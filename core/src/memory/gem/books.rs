//! The books of a context's buffer objects.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use super::super::tree::Tree;
use super::mapping::Timeline;
use crate::error::{Error, Object as ErrorObject, Operation, Status};
use crate::fallible::try_push;
use crate::lock::{Guard, Lock};
use crate::process::GPUS_MAX;
use crate::seam::Os;

/// Set in every handle, so that none is null or an address of a process.
const MARK: u64 = 1 << 62;
/// Where in a handle the context's slot, the file's place and the serial number begin.
/// The GEM handle is below them.
const SLOT: u32 = 58;
const PLACE: u32 = 52;
const SERIAL: u32 = 32;
const SERIAL_MASK: u32 = 0xf_ffff;

const _: () = assert!(crate::process::CONTEXTS_MAX <= 1 << (62 - SLOT));
const _: () = assert!(GPUS_MAX <= 1 << (SLOT - PLACE));

/// Names a buffer object of an open context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BufferHandle(u64);

impl BufferHandle {
    fn new(slot: u8, key: Key, serial: u32) -> BufferHandle {
        let number = u64::from(serial & SERIAL_MASK) << SERIAL | u64::from(key.gem);
        BufferHandle(MARK | u64::from(slot) << SLOT | u64::from(key.place) << PLACE | number)
    }

    /// The number that stands for it in the C ABI; never 0.
    #[must_use]
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// The handle with this number, which need not name anything.
    #[must_use]
    pub const fn from_raw(raw: u64) -> BufferHandle {
        BufferHandle(raw)
    }

    pub(super) fn key(self) -> Key {
        Key { place: (self.0 >> PLACE & 0x3f) as u8, gem: self.0 as u32 }
    }
}

/// A GEM handle, and the file that it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Of the file, among those of the process object.
    pub(super) place: u8,
    pub(super) gem: u32,
}

/// A mapping for the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) address: usize,
    pub(super) length: usize,
}

/// What is known of a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    serial: u32,
    /// Imports that an equal number of frees must meet.
    pub(super) references: u32,
    /// Calls that are using it.
    users: u32,
    /// It is being closed: nobody finds it any more.
    ending: bool,
    /// Bytes.
    pub(super) size: u64,
    shown: Option<Shown>,
    /// A tag came with it.
    pub(super) tagged: bool,
}

/// A buffer that a call is using.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object {
    pub(super) key: Key,
    pub(super) size: u64,
    pub(super) shown: Option<Shown>,
}

/// Everything that the lock guards.
#[derive(Debug)]
pub(super) struct Books {
    slot: u8,
    serial: u32,
    objects: Tree<Key, Entry>,
    /// Mappings that a free could not take down.
    aside: Vec<Shown>,
}

/// A context's buffer objects.
#[derive(Debug)]
pub(crate) struct Gem {
    pub(super) importing: Lock<()>,
    pub(super) timelines: [Lock<Timeline>; GPUS_MAX],
    books: Lock<Books>,
    /// Changes when the last user of a buffer that is being closed is done.
    turn: AtomicU32,
}

impl Gem {
    /// Those of the context in this slot of the process: none.
    pub(crate) fn new(slot: usize) -> Gem {
        Gem {
            importing: Lock::new(()),
            timelines: [const { Lock::new(Timeline::NONE) }; GPUS_MAX],
            books: Lock::new(Books {
                slot: slot as u8,
                serial: 0,
                objects: Tree::new(),
                aside: Vec::new(),
            }),
            turn: AtomicU32::new(0),
        }
    }

    pub(super) fn lock<'a, O: Os>(&'a self, os: &'a O) -> Guard<'a, Books, O> {
        self.books.acquire(os)
    }

    pub(super) fn tell_of_turn<O: Os>(&self, os: &O) {
        self.turn.fetch_add(1, Ordering::Relaxed);
        os.futex_wake(&self.turn, u32::MAX);
    }

    /// Waits until nobody uses a buffer that nobody finds any more.
    pub(super) fn wait_for_users<O: Os>(&self, os: &O, key: Key) {
        loop {
            // Before the look: a turn after it is seen by the wait.
            let turn = self.turn.load(Ordering::Acquire);
            if self.lock(os).entry(key).is_none_or(|entry| entry.users == 0) {
                return;
            }
            let _ = os.futex_wait(&self.turn, turn, None);
        }
    }
}

impl Books {
    pub(super) fn entry(&self, key: Key) -> Option<&Entry> {
        self.objects.value(self.objects.find(key)?)
    }

    fn entry_mut(&mut self, key: Key) -> Option<&mut Entry> {
        let place = self.objects.find(key)?;
        self.objects.value_mut(place)
    }

    /// Makes room for one more buffer.
    pub(super) fn reserve_one(&mut self) -> Result<(), Error> {
        self.objects.reserve(1)
    }

    /// The buffer of a handle, if that is of this context and not freed.
    pub(super) fn find(&self, handle: BufferHandle) -> Option<&Entry> {
        let key = handle.key();
        let entry = self.entry(key)?;
        let same = BufferHandle::new(self.slot, key, entry.serial) == handle;
        (same && !entry.ending).then_some(entry)
    }

    /// Counts an import, the first one of a buffer or one more.
    ///
    /// # Errors
    /// OUT_OF_RESOURCES when it was imported 2^32 times; never NO_MEMORY after
    /// [`Books::reserve_one`].
    pub(super) fn enter(
        &mut self,
        key: Key,
        size: u64,
        tagged: bool,
    ) -> Result<BufferHandle, Error> {
        let slot = self.slot;
        if let Some(entry) = self.entry_mut(key) {
            entry.references = entry.references.checked_add(1).ok_or(Error::library(
                Status::OUT_OF_RESOURCES,
                Operation::LookUp,
                ErrorObject::Handle(u64::from(key.gem)),
            ))?;
            entry.tagged |= tagged;
            return Ok(BufferHandle::new(slot, key, entry.serial));
        }
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        let entry =
            Entry { serial, references: 1, users: 0, ending: false, size, shown: None, tagged };
        self.objects.insert(key, entry)?;
        Ok(BufferHandle::new(slot, key, serial))
    }

    /// Counts a user in.
    pub(super) fn take(&mut self, handle: BufferHandle) -> Option<Object> {
        self.find(handle)?;
        let key = handle.key();
        let entry = self.entry_mut(key)?;
        entry.users = entry.users.saturating_add(1);
        Some(Object { key, size: entry.size, shown: entry.shown })
    }

    /// Counts a user out; whether somebody waits for that.
    pub(super) fn put_back(&mut self, key: Key) -> bool {
        let Some(entry) = self.entry_mut(key) else { return false };
        entry.users = entry.users.saturating_sub(1);
        entry.ending && entry.users == 0
    }

    /// Notes where the CPU sees a buffer, unless it does already; where it does.
    pub(super) fn note_shown(&mut self, key: Key, shown: Shown) -> Shown {
        match self.entry_mut(key) {
            Some(entry) => *entry.shown.get_or_insert(shown),
            None => shown,
        }
    }

    /// Lets nobody find a buffer any more.
    pub(super) fn end(&mut self, key: Key) {
        if let Some(entry) = self.entry_mut(key) {
            entry.ending = true;
        }
    }

    /// The opposite.
    pub(super) fn unend(&mut self, key: Key) {
        if let Some(entry) = self.entry_mut(key) {
            entry.ending = false;
        }
    }

    /// Takes one of several imports back.
    pub(super) fn count_down(&mut self, key: Key, keep_tag: bool) {
        if let Some(entry) = self.entry_mut(key) {
            entry.references = entry.references.saturating_sub(1);
            entry.tagged &= keep_tag;
        }
    }

    /// Forgets a buffer; where the CPU sees it.
    pub(super) fn remove(&mut self, key: Key) -> Option<Shown> {
        self.objects.remove(key)?.shown
    }

    /// The buffer with the lowest key.
    pub(super) fn first(&self) -> Option<Key> {
        let place = self.objects.ceiling(Key { place: 0, gem: 0 })?;
        self.objects.at(place).map(|(key, _)| key)
    }

    /// Makes room for one more mapping that cannot be taken down.
    pub(super) fn reserve_aside(&mut self) -> Result<(), Error> {
        Ok(self.aside.try_reserve(1)?)
    }

    /// Keeps a mapping that cannot be taken down.
    pub(super) fn set_aside(&mut self, shown: Shown) {
        let _ = try_push(&mut self.aside, shown);
    }

    pub(super) fn take_aside(&mut self) -> Vec<Shown> {
        core::mem::take(&mut self.aside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { place: 63, gem: u32::MAX };

    fn books(slot: u8) -> Books {
        Books { slot, serial: 0, objects: Tree::new(), aside: Vec::new() }
    }

    #[test]
    fn a_handle_tells_context_file_and_number() {
        let handle = BufferHandle::new(15, KEY, 0x123_4567);
        assert_eq!(handle.key(), KEY);
        assert_eq!(handle.to_raw(), 0x7ff3_4567_ffff_ffff);
        assert_eq!(BufferHandle::from_raw(handle.to_raw()), handle);
    }

    #[test]
    fn a_handle_is_found_in_its_context_until_it_is_freed() {
        let (mut books, mut other) = (books(1), books(2));
        let handle = books.enter(KEY, 4096, false).unwrap();
        assert!(books.find(handle).is_some());
        other.enter(KEY, 4096, false).unwrap();
        assert!(other.find(handle).is_none());
        assert_eq!(books.remove(KEY), None);
        assert!(books.find(handle).is_none());
        // The driver uses the number again.
        let again = books.enter(KEY, 4096, false).unwrap();
        assert_ne!(again, handle);
        assert!(books.find(handle).is_none());
        assert!(books.find(again).is_some());
    }

    #[test]
    fn imports_of_one_buffer_count() {
        let mut books = books(0);
        let handle = books.enter(KEY, 4096, true).unwrap();
        assert_eq!(books.enter(KEY, 4096, false).unwrap(), handle);
        let entry = *books.find(handle).unwrap();
        assert_eq!((entry.references, entry.tagged), (2, true));
        books.count_down(KEY, false);
        let entry = *books.find(handle).unwrap();
        assert_eq!((entry.references, entry.tagged), (1, false));
    }

    #[test]
    fn a_buffer_that_ends_is_found_by_nobody_and_has_its_users() {
        let mut books = books(0);
        let handle = books.enter(KEY, 4096, false).unwrap();
        assert!(books.take(handle).is_some());
        assert!(books.take(handle).is_some());
        books.end(KEY);
        assert!(books.take(handle).is_none());
        assert!(!books.put_back(KEY));
        assert!(books.put_back(KEY));
        books.unend(KEY);
        assert!(books.take(handle).is_some());
        assert!(!books.put_back(KEY));
    }

    #[test]
    fn the_first_place_that_the_cpu_sees_a_buffer_at_stays() {
        let mut books = books(0);
        books.enter(KEY, 4096, false).unwrap();
        let [one, other] = [1, 2].map(|page| Shown { address: page << 12, length: 4096 });
        assert_eq!(books.note_shown(KEY, one), one);
        assert_eq!(books.note_shown(KEY, other), one);
        assert_eq!(books.remove(KEY), Some(one));
    }
}
