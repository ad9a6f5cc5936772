//! A lock that sleeps, over the futex of any [`Os`].
//!
//! Three states: free, held, held with sleepers. A waiter goes to sleep at once,
//! because one of a real-time class that spins would keep the holder from
//! running. Held for short sections only: never across a system call that can
//! block, never across a callback.
//!
//! # Safety
//! This is one of the few modules of `core` with `unsafe` code. The argument:
//! `value` is reached only through a [`Guard`]; a guard exists only after its
//! maker moved `word` from free to held by an atomic exchange with Acquire, and
//! its drop moves `word` back with Release. So at most one guard exists at a
//! time and its accesses happen after those of the guard before.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::seam::Os;

const FREE: u32 = 0;
const HELD: u32 = 1;
const HELD_WITH_SLEEPERS: u32 = 2;

/// A value behind a lock.
#[derive(Debug, Default)]
pub struct Lock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out the value to one thread at a time (see the module's
// argument), so sharing the lock needs no more than sending the value.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Lock<T> {
        Lock { word: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock and takes it.
    #[inline]
    pub fn acquire<'a, O: Os>(&'a self, os: &'a O) -> Guard<'a, T, O> {
        if self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.acquire_slowly(os);
        }
        os.locked();
        Guard { lock: self, os }
    }

    #[cold]
    fn acquire_slowly<O: Os>(&self, os: &O) {
        while self.word.swap(HELD_WITH_SLEEPERS, Ordering::Acquire) != FREE {
            // A signal, a time-out or a spurious wake-up all mean: look again.
            let _ = os.futex_wait(&self.word, HELD_WITH_SLEEPERS, None);
        }
    }

    /// The value, without locking: nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// The right to the value of a [`Lock`]; dropping it frees the lock.
#[derive(Debug)]
pub struct Guard<'a, T, O: Os> {
    lock: &'a Lock<T>,
    os: &'a O,
}

impl<T, O: Os> Deref for Guard<'_, T, O> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one (module's argument).
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, O: Os> DerefMut for Guard<'_, T, O> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one (module's argument) and is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T, O: Os> Drop for Guard<'_, T, O> {
    #[inline]
    fn drop(&mut self) {
        if self.lock.word.swap(FREE, Ordering::Release) == HELD_WITH_SLEEPERS {
            self.os.futex_wake(&self.lock.word, 1);
        }
    }
}
