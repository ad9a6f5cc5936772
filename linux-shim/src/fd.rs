//! Owned and borrowed descriptors.
//!
//! The standard library's types of these names are not in `core`. As there, the
//! one number that no descriptor has is -1, and 0 is as good as any other: in a
//! process that closed its standard input the next open returns it.
//!
//! # Safety
//!
//! An [`OwnedFd`] is the only owner of its number and closes it when dropped, so
//! only `unsafe` code can make one from a number.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::num::NonZeroI32;

use crate::syscall;

/// A descriptor's number, stored inverted: -1 becomes the niche.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
struct Number(NonZeroI32);

impl Number {
    /// `None` for -1.
    const fn new(number: i32) -> Option<Number> {
        match NonZeroI32::new(!number) {
            Some(inverted) => Some(Number(inverted)),
            None => None,
        }
    }

    const fn get(self) -> i32 {
        !self.0.get()
    }
}

/// No descriptor has a negative number: every call answers EBADF to this one.
const NEVER_OPEN: Number = match Number::new(i32::MIN) {
    Some(number) => number,
    None => unreachable!(),
};

/// A descriptor that is closed when dropped.
#[repr(transparent)]
pub struct OwnedFd(Number);

/// A descriptor that someone else closes, not before `'a` ends.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct BorrowedFd<'a>(Number, PhantomData<&'a OwnedFd>);

impl OwnedFd {
    /// Takes a descriptor by its number. One that no descriptor can have
    /// (negative) makes an owner of nothing, to which every call answers EBADF.
    ///
    /// # Safety
    /// Nobody else closes this descriptor or relies on its staying open.
    #[must_use]
    pub const unsafe fn from_number(number: i32) -> OwnedFd {
        match Number::new(number) {
            Some(number) => OwnedFd(number),
            None => OwnedFd(NEVER_OPEN),
        }
    }

    /// Gives the descriptor up without closing it.
    #[must_use = "nobody closes the descriptor otherwise"]
    pub const fn into_number(self) -> i32 {
        let number = self.number();
        core::mem::forget(self);
        number
    }

    /// The number, for the kernel.
    #[must_use]
    pub const fn number(&self) -> i32 {
        self.0.get()
    }

    /// The descriptor, lent.
    #[must_use]
    pub const fn borrow(&self) -> BorrowedFd<'_> {
        BorrowedFd(self.0, PhantomData)
    }
}

impl BorrowedFd<'static> {
    /// Descriptor 1, which a program that was started properly never closes.
    pub const STANDARD_OUTPUT: BorrowedFd<'static> = BorrowedFd::of_process(1);
    /// Descriptor 2, likewise.
    pub const STANDARD_ERROR: BorrowedFd<'static> = BorrowedFd::of_process(2);

    /// A descriptor of somebody else in the process, by its number; a call on one that is
    /// closed meanwhile is refused, or meets another file. `None` for a negative number.
    pub(crate) const fn of_others(number: i32) -> Option<BorrowedFd<'static>> {
        if number < 0 { None } else { Some(BorrowedFd::of_process(number)) }
    }

    const fn of_process(number: i32) -> BorrowedFd<'static> {
        match Number::new(number) {
            Some(number) => BorrowedFd(number, PhantomData),
            None => BorrowedFd(NEVER_OPEN, PhantomData),
        }
    }
}

impl BorrowedFd<'_> {
    /// The number, for the kernel.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0.get()
    }
}

impl Drop for OwnedFd {
    fn drop(&mut self) {
        if self.number() >= 0 {
            // SAFETY: we own it, and this is the end of us.
            unsafe { syscall::file::close(self.number()) }
        }
    }
}

impl fmt::Debug for OwnedFd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fd {}", self.number())
    }
}

impl fmt::Debug for BorrowedFd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fd {}", self.number())
    }
}
