//! A place for one context that calls can enter without a lock.
//!
//! A call enters by raising `users`, and leaves by lowering it; closing marks the
//! slot, so that nobody new gets in, and waits until the last user has left.
//!
//! # Safety
//! `context` points to a live boxed context from `publish` until `retire` takes
//! it back. `retire` does so only after it set CLOSING and saw `users` fall to
//! zero, and a visitor looks at `context` only after raising `users` and seeing
//! no CLOSING; both sides use sequentially consistent operations on the one word
//! `users`, so either the visitor is counted before CLOSING is set, and `retire`
//! waits for it, or it sees CLOSING and leaves. A forked child never follows the
//! pointer: it starts over with an empty slot.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::seam::Os;

/// Set while the context is on its way out; the other bits count users.
const CLOSING: u32 = 1 << 31;

#[derive(Debug)]
pub(crate) struct Slot<T> {
    users: AtomicU32,
    /// How many contexts have been here; part of a handle, so that a stale one
    /// is recognised.
    generation: AtomicU32,
    context: AtomicPtr<T>,
    /// As shareable as what it hands out.
    handed_out: PhantomData<T>,
}

impl<T> Slot<T> {
    pub(crate) const fn new() -> Slot<T> {
        Slot {
            users: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            context: AtomicPtr::new(ptr::null_mut()),
            handed_out: PhantomData,
        }
    }

    /// Whether there is a context here, on its way out or not.
    pub(crate) fn is_taken(&self) -> bool {
        !self.context.load(Ordering::Acquire).is_null()
    }

    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// Puts a context here and returns its generation. The caller holds the lock
    /// that orders opens and closes, and the slot is empty.
    pub(crate) fn publish(&self, context: Box<[T]>) -> u32 {
        let generation = self.generation.load(Ordering::Relaxed).wrapping_add(1);
        self.generation.store(generation, Ordering::Release);
        self.context.store(Box::into_raw(context).cast::<T>(), Ordering::Release);
        generation
    }

    /// Counts the caller in and returns the context, if there is one to use.
    #[inline]
    pub(crate) fn enter<O: Os>(&self, os: &O) -> Option<&T> {
        if self.users.fetch_add(1, Ordering::SeqCst) & CLOSING != 0 {
            self.leave(os);
            return None;
        }
        let context = self.context.load(Ordering::Acquire);
        if context.is_null() {
            self.leave(os);
            return None;
        }
        // SAFETY: counted in and not closing, so the box lives until `leave` (module's argument).
        Some(unsafe { &*context })
    }

    /// Counts the caller out.
    #[inline]
    pub(crate) fn leave<O: Os>(&self, os: &O) {
        if self.users.fetch_sub(1, Ordering::SeqCst) == CLOSING | 1 {
            os.futex_wake(&self.users, 1);
        }
    }

    /// Lets nobody new in, runs `shut_down`, which must make every user leave
    /// soon, waits for the last one and gives the context back.
    ///
    /// The caller holds the lock that orders opens and closes.
    pub(crate) fn retire<O: Os>(&self, os: &O, shut_down: impl FnOnce(&T)) -> Option<Box<[T]>> {
        let context = self.context.load(Ordering::Acquire);
        if context.is_null() {
            return None;
        }
        self.users.fetch_or(CLOSING, Ordering::SeqCst);
        // SAFETY: published and not yet taken back: only the holder of the callers' lock does that.
        shut_down(unsafe { &*context });
        loop {
            let users = self.users.load(Ordering::SeqCst);
            if users == CLOSING {
                break;
            }
            let _ = os.futex_wait(&self.users, users, None);
        }
        self.context.store(ptr::null_mut(), Ordering::Release);
        self.users.fetch_and(!CLOSING, Ordering::SeqCst);
        let one = ptr::slice_from_raw_parts_mut(context, 1);
        // SAFETY: made by `Box::into_raw` of a one-element slice in `publish`; no user is left, and
        // the pointer in the slot is gone.
        Some(unsafe { Box::from_raw(one) })
    }
}
