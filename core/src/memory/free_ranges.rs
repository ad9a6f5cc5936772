//! Where the process's address space is free, by the kernel's own list.
//!
//! GPUs that reach fewer addresses than the CPU need memory at low addresses,
//! and asking for one hint after the other takes hundreds of thousands of calls
//! when low addresses are fragmented. The list tells in one read.

use alloc::vec::Vec;

use crate::errno::Errno;
use crate::error::Error;
use crate::seam::{EndOfFile, Os};
use crate::topology::Aperture;

/// More than a list of as many mappings as the kernel allows by default.
const LIST_MAX: usize = 64 << 20;

/// The highest free range of `length` bytes at a multiple of `alignment` within
/// `bounds`, inclusive.
///
/// # Errors
/// NO_MEMORY for the list. A list that cannot be read leaves everything free.
pub(super) fn highest_free<O: Os>(
    os: &O,
    length: u64,
    alignment: u64,
    bounds: Aperture,
) -> Result<Option<u64>, Error> {
    let mut list = Vec::new();
    let read = os.read_file(c"/proc/self/maps", &mut list, LIST_MAX, EndOfFile::EmptyRead);
    if read == Err(Errno::ENOMEM) {
        return Err(Error::no_memory(LIST_MAX as u64));
    }
    Ok(highest_gap(&list, length, alignment, bounds))
}

/// The same, given the list: lines that begin with `start-end` in hexadecimal,
/// ascending. Lines that do not are left out.
pub(super) fn highest_gap(
    list: &[u8],
    length: u64,
    alignment: u64,
    bounds: Aperture,
) -> Option<u64> {
    let end = bounds.limit.saturating_add(1);
    let mut from = bounds.base;
    let mut highest = None;
    let mut consider = |from: u64, to: u64| {
        let Some(rest) = to.min(end).checked_sub(length) else { return };
        let start = rest.saturating_sub(rest.checked_rem(alignment).unwrap_or(0));
        if length != 0 && start >= from && start >= bounds.base {
            highest = highest.max(Some(start));
        }
    };
    for line in list.split(|&byte| byte == b'\n') {
        let Some((start, stop)) = range_of(line) else { continue };
        consider(from, start);
        from = from.max(stop);
    }
    consider(from, end);
    highest
}

/// The addresses that a line begins with.
fn range_of(line: &[u8]) -> Option<(u64, u64)> {
    let range = line.split(|&byte| byte == b' ').next()?;
    let mut ends = range.split(|&byte| byte == b'-');
    let (start, stop) = (hexadecimal(ends.next()?)?, hexadecimal(ends.next()?)?);
    (start <= stop).then_some((start, stop))
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0_u64, |number, &digit| {
        let digit = match digit {
            b'0'..=b'9' => digit.wrapping_sub(b'0'),
            b'a'..=b'f' => digit.wrapping_sub(b'a').wrapping_add(10),
            _ => return None,
        };
        Some(number << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"00400000-00600000 r-xp 00000000 08:01 1 /bin/true\n\
        00a00000-00b00000 rw-p 00000000 00:00 0 [heap]\n\
        7fff00000000-7fff00021000 rw-p 00000000 00:00 0 [stack]\n\
        ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";

    fn bounds(base: u64, limit: u64) -> Aperture {
        Aperture { base, limit }
    }

    #[test]
    fn the_highest_gap_that_suits_is_found() {
        let low = bounds(0x1_0000, (1 << 40) - 1);
        assert_eq!(highest_gap(LIST, 0x20_0000, 0x20_0000, low), Some((1 << 40) - 0x20_0000));
        let tight = bounds(0x1_0000, 0xaf_ffff);
        assert_eq!(highest_gap(LIST, 0x20_0000, 0x20_0000, tight), Some(0x80_0000));
        assert_eq!(highest_gap(LIST, 0x40_0000, 0x1000, tight), Some(0x60_0000));
        assert_eq!(highest_gap(LIST, 0x40_0000, 0x40_0000, tight), None);
        assert_eq!(highest_gap(LIST, 0x41_0000, 0x1000, tight), None);
    }

    #[test]
    fn an_empty_list_leaves_all_free() {
        assert_eq!(highest_gap(b"", 0x1000, 0x1000, bounds(0x1000, 0x1fff)), Some(0x1000));
        assert_eq!(highest_gap(b"", 0x2000, 0x1000, bounds(0x1000, 0x1fff)), None);
        assert_eq!(highest_gap(b"", 0, 0x1000, bounds(0x1000, 0x1fff)), None);
        assert_eq!(highest_gap(b"", 1 << 63, 1, bounds(0, u64::MAX)), Some((1 << 63) - 1));
    }

    #[test]
    fn lines_that_make_no_sense_are_left_out() {
        let odd = b"zz-1000 r\n-\n2000\n3000-2000 r\n1000-2000-3000\n\xff\n12345678901234567-1 x";
        assert_eq!(highest_gap(odd, 0x1000, 0x1000, bounds(0, 0x1fff)), Some(0));
    }

    /// One line per 2 MiB: one read, and no call for each of them.
    #[test]
    fn a_fragmented_space_is_searched_at_once() {
        extern crate std;
        use std::fmt::Write;
        let mut list = std::string::String::new();
        for block in 0..10_000_u64 {
            let start = block << 21;
            if block != 7 {
                writeln!(list, "{start:x}-{:x} ---p", start + (1 << 21)).unwrap();
            }
        }
        let all = bounds(0, (10_000 << 21) - 1);
        assert_eq!(highest_gap(list.as_bytes(), 1 << 21, 1 << 21, all), Some(7 << 21));
        assert_eq!(highest_gap(list.as_bytes(), 1 << 22, 1 << 21, all), None);
    }
}
