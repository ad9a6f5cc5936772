//! Environment variables, read where they lie.
//!
//! # Safety
//!
//! An [`Environment`] borrows a block that is not ours. Whoever makes one
//! promises that it is well-formed and stays as it is for `'a`; in a program
//! with a C library that means that no thread calls setenv(3) or the like.
#![allow(unsafe_code)]

use core::ffi::CStr;
use core::marker::PhantomData;

use crate::host;

/// A block of `NAME=value` strings.
#[derive(Debug, Clone, Copy)]
pub struct Environment<'a> {
    /// The next entry; null for an empty block.
    next: *const *const u8,
    borrow: PhantomData<&'a CStr>,
}

impl<'a> Environment<'a> {
    /// The environment that starts at `block`; null stands for an empty one.
    ///
    /// # Safety
    /// `block` is null, or an array of pointers to zero-terminated strings,
    /// ended by a null pointer, all of them unchanged for `'a`.
    #[must_use]
    pub const unsafe fn from_block(block: *const *const u8) -> Environment<'a> {
        Environment { next: block, borrow: PhantomData }
    }

    /// The process's own, see [`host::environment`].
    ///
    /// # Safety
    /// Nobody changes the process's environment during `'a`.
    #[must_use]
    pub unsafe fn of_process() -> Environment<'a> {
        // SAFETY: the host's block is well-formed, and the caller keeps it so.
        unsafe { Environment::from_block(host::environment()) }
    }

    /// The value of a variable; the first one where the block has several, as
    /// getenv(3) does. `None` when it is not there.
    #[must_use]
    pub fn get(self, name: &CStr) -> Option<&'a [u8]> {
        let name = name.to_bytes();
        self.filter_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"=")).next()
    }
}

/// Each entry, in the block's order, as it stands there.
impl<'a> Iterator for Environment<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.next.is_null() {
            return None;
        }
        // SAFETY: not past the null pointer that ends the block: the position
        // moves only over entries that are not null.
        let entry = unsafe { self.next.read() };
        if entry.is_null() {
            return None;
        }
        self.next = self.next.wrapping_add(1);
        // SAFETY: a zero-terminated string that stays for 'a.
        Some(unsafe { CStr::from_ptr(entry.cast()) }.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::Environment;
    use core::ptr::null;

    #[test]
    fn the_whole_name_counts_and_the_first_entry_wins() {
        let block = [
            c"HOMER=x".as_ptr().cast(),
            c"HOME=/a=b".as_ptr().cast(),
            c"HOME=/second".as_ptr().cast(),
            c"EMPTY=".as_ptr().cast(),
            c"NOVALUE".as_ptr().cast(),
            null(),
        ];
        // SAFETY: ended by null and constant.
        let environment = unsafe { Environment::from_block(block.as_ptr()) };
        assert_eq!(environment.get(c"HOME"), Some(&b"/a=b"[..]));
        assert_eq!(environment.get(c"EMPTY"), Some(&b""[..]));
        assert_eq!(environment.get(c"NOVALUE"), None);
        assert_eq!(environment.get(c"HOM"), None);
        assert_eq!(environment.count(), 5);
        // SAFETY: null is an empty block.
        assert_eq!(unsafe { Environment::from_block(null()) }.get(c"HOME"), None);
    }
}
