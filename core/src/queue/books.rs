//! What a context remembers of its queues.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use super::buffers::Buffers;
use crate::error::{Error, Object, Operation, Status};
use crate::fallible::{try_box, try_insert};
use crate::lock::Lock;
use crate::seam::Os;

/// Compute units that the driver takes in a mask (`kfd_chardev.c`, max_num_cus), and
/// the words that they fill.
const CU_MASK_BITS: u32 = 1024;
const CU_MASK_WORDS: usize = 32;

/// A context's queues. Lock order: the doorbells of the files, then `books`.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    books: Lock<Books>,
    /// Changes whenever a queue is free again and somebody waits.
    turn: AtomicU32,
}

/// The queues, ordered by id.
#[derive(Debug, Default)]
struct Books {
    queues: Vec<Known>,
    waiters: u32,
}

/// What the calls need to know of a queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// The public id: the address of its control block.
    pub(super) id: u64,
    /// The driver's number, which is given anew after the queue's end.
    pub(super) kernel_id: u32,
    pub(super) gpu_id: u32,
    /// The resets of the GPU when it was made.
    pub(super) resets: u32,
    pub(super) buffers: Buffers,
}

/// The compute units that serve a queue, one bit each.
#[derive(Debug)]
pub(super) struct CuMask {
    /// Bits; a multiple of 32.
    bits: AtomicU32,
    words: [AtomicU32; CU_MASK_WORDS],
}

impl CuMask {
    /// The first `units` compute units.
    pub(super) fn of(units: u32) -> CuMask {
        let mask =
            CuMask { bits: AtomicU32::new(0), words: [const { AtomicU32::new(0) }; CU_MASK_WORDS] };
        let bits = units.checked_next_multiple_of(32).unwrap_or(0).min(CU_MASK_BITS);
        mask.bits.store(bits, Ordering::Relaxed);
        let mut left = units;
        for word in &mask.words {
            let full = u32::MAX.checked_shr(32_u32.saturating_sub(left)).unwrap_or(0);
            word.store(full, Ordering::Relaxed);
            left = left.saturating_sub(32);
        }
        mask
    }

    fn replace(&self, words: &[u32]) {
        let words = words.get(..CU_MASK_WORDS).unwrap_or(words);
        self.bits.store((words.len() as u32).saturating_mul(32), Ordering::Relaxed);
        for (to, from) in self.words.iter().zip(words) {
            to.store(*from, Ordering::Relaxed);
        }
    }
}

#[derive(Debug)]
struct Known {
    held: Held,
    /// One thread calls the driver for it.
    busy: bool,
    /// In a box, since callers are told its address.
    mask: Box<[CuMask]>,
}

/// What callers of the queue's information see of its mask: bits, and the address of
/// the first word, which is valid until the queue's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MaskView {
    pub(super) bits: u32,
    pub(super) address: u64,
}

pub(super) fn unknown(id: u64) -> Error {
    Error::library(Status::INVALID_PARAMETER, Operation::LookUp, Object::Handle(id))
}

impl Queues {
    /// Makes room for one queue more, served by so many compute units.
    pub(super) fn reserve<O: Os>(&self, os: &O, units: u32) -> Result<Box<[CuMask]>, Error> {
        self.books.acquire(os).queues.try_reserve(1)?;
        try_box(CuMask::of(units))
    }

    /// Enters a queue.
    ///
    /// # Errors
    /// NO_MEMORY where another thread has taken the room.
    pub(super) fn enter<O: Os>(
        &self,
        os: &O,
        held: Held,
        mask: Box<[CuMask]>,
    ) -> Result<(), Error> {
        let mut books = self.books.acquire(os);
        let known = Known { held, busy: false, mask };
        match books.place(held.id) {
            Err(place) => try_insert(&mut books.queues, place, known),
            Ok(_) => Err(unknown(held.id)),
        }
    }

    /// Takes a queue for one call to the driver; waits while another thread has it.
    /// None when there is no such queue, or no longer.
    pub(super) fn take<O: Os>(&self, os: &O, id: u64) -> Option<Held> {
        let mut books = self.books.acquire(os);
        loop {
            let place = books.place(id).ok()?;
            let known = books.queues.get_mut(place)?;
            if !known.busy {
                known.busy = true;
                return Some(known.held);
            }
            let turn = self.turn.load(Ordering::Relaxed);
            books.waiters = books.waiters.saturating_add(1);
            drop(books);
            let _ = os.futex_wait(&self.turn, turn, None);
            books = self.books.acquire(os);
            books.waiters = books.waiters.saturating_sub(1);
        }
    }

    /// Gives a taken queue back, or ends it.
    pub(super) fn give<O: Os>(&self, os: &O, id: u64, ended: bool) {
        let mut books = self.books.acquire(os);
        if ended {
            books.queues.retain(|known| known.held.id != id);
        } else if let Some(known) = books.known(id) {
            known.busy = false;
        }
        let waiters = books.waiters;
        if waiters != 0 {
            self.turn.fetch_add(1, Ordering::Relaxed);
        }
        drop(books);
        if waiters != 0 {
            os.futex_wake(&self.turn, u32::MAX);
        }
    }

    /// A queue, without taking it.
    pub(super) fn find<O: Os>(&self, os: &O, id: u64) -> Option<Held> {
        let books = self.books.acquire(os);
        let place = books.place(id).ok()?;
        books.queues.get(place).map(|known| known.held)
    }

    /// Replaces the remembered mask of a queue.
    pub(super) fn set_mask<O: Os>(&self, os: &O, id: u64, words: &[u32]) {
        let books = self.books.acquire(os);
        let known = books.place(id).ok().and_then(|place| books.queues.get(place));
        if let Some(mask) = known.and_then(|known| known.mask.first()) {
            mask.replace(words);
        }
    }

    /// Where the mask of a queue is.
    pub(super) fn mask<O: Os>(&self, os: &O, id: u64) -> Option<MaskView> {
        let books = self.books.acquire(os);
        let mask = books.queues.get(books.place(id).ok()?)?.mask.first()?;
        Some(MaskView {
            bits: mask.bits.load(Ordering::Relaxed),
            address: mask.words.as_ptr().expose_provenance() as u64,
        })
    }

    /// The id of any queue.
    pub(super) fn any<O: Os>(&self, os: &O) -> Option<u64> {
        self.books.acquire(os).queues.last().map(|known| known.held.id)
    }
}

impl Books {
    fn known(&mut self, id: u64) -> Option<&mut Known> {
        let place = self.place(id).ok()?;
        self.queues.get_mut(place)
    }

    fn place(&self, id: u64) -> Result<usize, usize> {
        self.queues.binary_search_by_key(&id, |known| known.held.id)
    }
}
