//! A cell that is empty until it is set, and then never changes.
//!
//! # Safety
//! This is one of the few modules of `core` with `unsafe` code. The argument:
//! `value` is written only by the one caller that moved `state` from EMPTY to
//! SETTING, and read only after `state` was seen as SET, which that caller
//! stored with Release after its write. From then on nobody writes until the
//! cell is dropped or taken from by an exclusive reference.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const SETTING: u32 = 1;
const SET: u32 = 2;

/// A cell that can be set once.
#[derive(Debug)]
pub struct SetOnce<T> {
    state: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: sharing the cell shares `&T`, and setting it sends a `T` (module's argument).
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        SetOnce::new()
    }
}

impl<T> SetOnce<T> {
    /// An empty cell.
    #[must_use]
    pub const fn new() -> SetOnce<T> {
        SetOnce { state: AtomicU32::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// The value, once it is there.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != SET {
            return None;
        }
        // SAFETY: SET was stored after the value was written, and nobody writes again.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Sets the value, unless somebody was first.
    ///
    /// # Errors
    /// The value, when the cell is not empty.
    pub fn set(&self, value: T) -> Result<&T, T> {
        if self
            .state
            .compare_exchange(EMPTY, SETTING, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return Err(value);
        }
        // SAFETY: only this caller moved the state to SETTING, and readers wait for SET.
        let value = unsafe { (*self.value.get()).write(value) };
        self.state.store(SET, Ordering::Release);
        Ok(value)
    }

    /// Takes the value out.
    pub fn take(&mut self) -> Option<T> {
        if *self.state.get_mut() != SET {
            return None;
        }
        *self.state.get_mut() = EMPTY;
        // SAFETY: it was SET, the reference is exclusive, and the state no longer says SET.
        Some(unsafe { self.value.get_mut().assume_init_read() })
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::SetOnce;
    use std::rc::Rc;

    #[test]
    fn the_first_value_stays() {
        let cell = SetOnce::new();
        assert_eq!(cell.get(), None);
        assert_eq!(cell.set(1), Ok(&1));
        assert_eq!(cell.set(2), Err(2));
        assert_eq!(cell.get(), Some(&1));
    }

    #[test]
    fn a_value_is_dropped_once() {
        let value = Rc::new(());
        let mut cell = SetOnce::new();
        let _ = cell.set(Rc::clone(&value));
        assert_eq!(Rc::strong_count(&value), 2);
        assert!(cell.take().is_some());
        assert_eq!(Rc::strong_count(&value), 1);
        let _ = cell.set(Rc::clone(&value));
        drop(cell);
        assert_eq!(Rc::strong_count(&value), 1);
    }
}
