//! Patterns in memory: written, read back, compared.
//!
//! # Safety
//!
//! Addresses come from a mapping that [`HostPages`] owns, or from the library: a
//! [`Window`] is made only of an allocation that the library says the CPU sees, from
//! its first byte on and of at least that length. Windows are used before the memory
//! is freed, by the one thread there is. Accesses are volatile words, since GPUs
//! share the memory.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::with_exposed_provenance_mut;

use hsakmt_core::errno::Errno;
use hsakmt_core::process::Guard;
use hsakmt_core::seam::{Mapping, Os, Placement, Platform, Protection};

/// Bytes of a word.
const WORD: u64 = 8;

/// What stands in each word: the place itself, spread over all bits, so that a line
/// of addresses that is stuck shows, and two neighbours differ in many bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A pattern; another seed makes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// Distinguishes patterns.
    pub seed: u64,
}

impl Pattern {
    /// The word at this place.
    #[must_use]
    pub const fn word(self, index: u64) -> u64 {
        self.seed ^ index.wrapping_add(1).wrapping_mul(SPREAD)
    }

    /// The same with every bit turned round.
    #[must_use]
    pub const fn inverted(self) -> Pattern {
        Pattern { seed: !self.seed }
    }
}

/// A word that is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// Bytes from the start.
    pub offset: u64,
    /// What was written.
    pub expected: u64,
    /// What is there.
    pub found: u64,
    /// How many of the words that were looked at differ.
    pub words: u64,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { offset, expected, found, words } = self;
        write!(f, "wrong data: {words} words, the first at offset {offset:#x}: ")?;
        write!(f, "{found:#018x} instead of {expected:#018x}")
    }
}

/// Memory that the CPU sees, as words.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    address: u64,
    words: u64,
}

impl Window {
    /// The first bytes of an allocation, if the library says that the CPU sees them.
    #[must_use]
    pub fn of<P: Platform>(guard: &Guard<'_, P>, address: u64, bytes: u64) -> Option<Window> {
        let info = guard.pointer_info(address).ok()?;
        let whole = info.cpu_address == address && address != 0 && info.size >= bytes;
        (whole && address % WORD == 0).then_some(Window { address, words: bytes / WORD })
    }

    fn at(&self, index: u64) -> *mut u64 {
        with_exposed_provenance_mut(self.address.wrapping_add(index.wrapping_mul(WORD)) as usize)
    }

    /// Writes a pattern into one word of each `stride` bytes.
    pub fn write(&self, pattern: Pattern, stride: u64) {
        for index in (0..self.words).step_by((stride / WORD).max(1) as usize) {
            // SAFETY: within the window.
            unsafe { self.at(index).write_volatile(pattern.word(index)) };
        }
    }

    /// Whether every word is this one.
    #[must_use]
    pub fn is_filled(&self, word: u64) -> bool {
        // SAFETY: within the window.
        (0..self.words).all(|index| unsafe { self.at(index).read_volatile() } == word)
    }

    /// Compares one word of each `stride` bytes.
    ///
    /// # Errors
    /// The first that differs.
    pub fn compare(&self, pattern: Pattern, stride: u64) -> Result<(), Mismatch> {
        let mut first: Option<Mismatch> = None;
        for index in (0..self.words).step_by((stride / WORD).max(1) as usize) {
            // SAFETY: within the window.
            let found = unsafe { self.at(index).read_volatile() };
            let expected = pattern.word(index);
            if found != expected {
                let offset = index.wrapping_mul(WORD);
                let first = first.get_or_insert(Mismatch { offset, expected, found, words: 0 });
                first.words = first.words.saturating_add(1);
            }
        }
        first.map_or(Ok(()), Err)
    }
}

/// Pages of the process itself.
#[derive(Debug)]
pub struct HostPages<'a, O: Os> {
    os: &'a O,
    address: usize,
    bytes: usize,
}

impl<'a, O: Os> HostPages<'a, O> {
    /// Maps so many bytes, a multiple of the page size.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new(os: &'a O, bytes: u64) -> Result<HostPages<'a, O>, Errno> {
        let bytes = usize::try_from(bytes).map_err(|_| Errno::ENOMEM)?;
        let address = os.map(Mapping {
            placement: Placement::Anywhere,
            length: bytes,
            protection: Protection::READ | Protection::WRITE,
            reserve: true,
            shared: false,
        })?;
        Ok(HostPages { os, address, bytes })
    }

    /// The first address.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address as u64
    }

    /// All of it.
    #[must_use]
    pub const fn window(&self) -> Window {
        Window { address: self.address as u64, words: self.bytes as u64 / WORD }
    }
}

impl<O: Os> Drop for HostPages<'_, O> {
    fn drop(&mut self) {
        // Ours, and whole; it could only fail at the limit of mappings.
        let _ = self.os.unmap(self.address, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use hsakmt_linux_shim::Linux;

    #[test]
    fn what_was_written_is_found_and_a_wrong_word_is_named() {
        let pages = HostPages::new(&Linux, 1 << 16).unwrap();
        let window = pages.window();
        let pattern = Pattern { seed: 5 };
        window.write(pattern, WORD);
        assert_eq!(window.compare(pattern, WORD), Ok(()));
        let wrong = window.compare(pattern.inverted(), 4096).unwrap_err();
        assert_eq!((wrong.offset, wrong.words), (0, 16));
        // SAFETY: within the pages.
        unsafe { window.at(3).write_volatile(1) };
        let wrong = window.compare(pattern, WORD).unwrap_err();
        assert_eq!(wrong, Mismatch { offset: 24, expected: pattern.word(3), found: 1, words: 1 });
        assert_eq!(window.compare(pattern, 4096), Ok(()));
    }
}
