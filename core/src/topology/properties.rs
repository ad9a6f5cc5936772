//! The text of sysfs files: lines of `key number`, or one number.
//!
//! The kernel writes each file's keys in a fixed order (`kfd_topology.c`), some of
//! them only in newer versions. So the reader first goes through the keys in that
//! order, and only what does not follow it is searched for. A line that is not of the expected form gives no value
//! and costs nothing but itself: a number that does not fit 64 bits, a NUL, a
//! key of any length. Where a key comes twice the last one holds.

/// Names the keys of one kind of file: `KEYS` in the kernel's order, the place of
/// each as a constant in `key`, and `in_order`, which reads the lines of a file
/// as far as they are in that order.
///
/// Every comparison in `in_order` is with a text of known length, which is what
/// makes it cheap: a machine with 64 GPUs has a hundred thousand such lines.
macro_rules! property_keys {
    ($($name:ident = $text:literal,)*) => {
        mod key {
            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            enum Place {
                $($name,)*
            }
            $(pub(super) const $name: usize = Place::$name as usize;)*
        }
        const KEYS: [&[u8]; [$(key::$name),*].len()] = [$($text.as_bytes()),*];

        fn in_order<'t>(
            text: &'t [u8],
            properties: &mut $crate::topology::properties::Properties<{ KEYS.len() }>,
        ) -> &'t [u8] {
            let mut rest = text;
            $(
                if let Some(text) = rest.strip_prefix(concat!($text, " ").as_bytes()) {
                    match $crate::topology::properties::short_number_line(text) {
                        Some((value, next)) => {
                            properties.set(key::$name, value);
                            rest = next;
                        }
                        None => return rest,
                    }
                }
            )*
            rest
        }
    };
}

pub(super) use property_keys;

/// The numbers of one file, in the order of the keys that were asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Properties<const N: usize> {
    values: [u64; N],
    present: u64,
}

impl<const N: usize> Properties<N> {
    /// One bit each in a word that says which keys were there.
    const FITS: () = assert!(N <= 64);

    /// Reads `content`; `keys` and `in_order` are what [`property_keys`] made. A
    /// line that begins with one of `keys` but goes on with something other than a
    /// number is handed to `other`, without its end.
    #[inline]
    pub(super) fn read(
        content: &[u8],
        keys: &[&[u8]; N],
        in_order: impl for<'t> FnOnce(&'t [u8], &mut Properties<N>) -> &'t [u8],
        other: impl FnMut(usize, &[u8]),
    ) -> Properties<N> {
        const { Self::FITS }
        let mut properties = Properties { values: [0; N], present: 0 };
        let rest = in_order(content, &mut properties);
        if !rest.is_empty() {
            properties.read_rest(rest, keys, other);
        }
        properties
    }

    /// Reads lines in any order.
    fn read_rest(
        &mut self,
        content: &[u8],
        keys: &[&[u8]; N],
        mut other: impl FnMut(usize, &[u8]),
    ) {
        let mut rest = content;
        let mut expected = 0;
        while !rest.is_empty() {
            let found = match keys.get(expected).and_then(|key| after_key(rest, key)) {
                Some(text) => Some((expected, text)),
                None => search(rest, keys),
            };
            let Some((index, text)) = found else {
                rest = after_line(rest);
                continue;
            };
            expected = index.wrapping_add(1);
            match number_line(text) {
                Some((value, next)) => {
                    self.set(index, value);
                    rest = next;
                }
                None => {
                    let (line, next) = split_line(text);
                    other(index, line);
                    rest = next;
                }
            }
        }
    }

    #[inline]
    pub(super) fn set(&mut self, index: usize, value: u64) {
        if let Some(slot) = self.values.get_mut(index) {
            *slot = value;
            self.present |= 1 << index;
        }
    }

    /// The number of the key at this place, 0 where it is missing.
    pub(super) fn long(&self, index: usize) -> u64 {
        self.values.get(index).copied().unwrap_or(0)
    }

    /// The same for a property of 32 bits, of which the kernel may print more.
    pub(super) fn word(&self, index: usize) -> u32 {
        self.long(index) as u32
    }

    /// The number of the key at this place if it is there.
    pub(super) fn given(&self, index: usize) -> Option<u64> {
        if index < N && self.present >> index & 1 == 1 { Some(self.long(index)) } else { None }
    }
}

/// Reads a file that holds one number and nothing else but blanks.
pub(super) fn number(content: &[u8]) -> Option<u64> {
    match number_line(content.trim_ascii()) {
        Some((value, [])) => Some(value),
        _ => None,
    }
}

/// What follows `key` and one space.
fn after_key<'t>(text: &'t [u8], key: &[u8]) -> Option<&'t [u8]> {
    match text.strip_prefix(key) {
        Some([b' ', rest @ ..]) => Some(rest),
        _ => None,
    }
}

/// Which of `keys` the line begins with, and what follows it.
fn search<'t>(text: &'t [u8], keys: &[&[u8]]) -> Option<(usize, &'t [u8])> {
    keys.iter().enumerate().find_map(|(index, key)| Some((index, after_key(text, key)?)))
}

/// A number that ends its line, and the text from the next line on; quick for one
/// digit, which most numbers are.
#[inline]
pub(super) fn short_number_line(text: &[u8]) -> Option<(u64, &[u8])> {
    match text {
        [digit @ b'0'..=b'9', b'\n', next @ ..] => Some((u64::from(digit & 15), next)),
        _ => number_line(text),
    }
}

/// A number that ends its line, and the text from the next line on.
#[inline(never)]
pub(super) fn number_line(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value: u64 = 0;
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        rest = tail;
    }
    if rest.len() == text.len() {
        return None;
    }
    loop {
        match rest {
            [] => return Some((value, rest)),
            [b'\n', next @ ..] => return Some((value, next)),
            [b' ' | b'\t' | b'\r', tail @ ..] => rest = tail,
            _ => return None,
        }
    }
}

/// The line that `text` begins with, without its end, and what follows.
pub(super) fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = text.split_at_checked(line_length(text)).unwrap_or((text, &[]));
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    (line, rest.get(1..).unwrap_or_default())
}

fn after_line(text: &[u8]) -> &[u8] {
    split_line(text).1
}

/// Bytes before the first line end. Eight at a time: `/proc/cpuinfo` of a large
/// machine is a megabyte of lines that nobody wants.
fn line_length(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    const NEWLINES: u64 = u64::from_le_bytes([b'\n'; 8]);
    let mut rest = text;
    while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
        let zero_if_newline = u64::from_le_bytes(*chunk) ^ NEWLINES;
        let hit = zero_if_newline.wrapping_sub(ONES) & !zero_if_newline & HIGH;
        if hit != 0 {
            break;
        }
        rest = tail;
    }
    let skipped = text.len().wrapping_sub(rest.len());
    let within = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    skipped.wrapping_add(within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    property_keys! {
        HEAP_TYPE = "heap_type",
        SIZE_IN_BYTES = "size_in_bytes",
        FLAGS = "flags",
        SIZE = "size",
    }

    fn read(content: &[u8]) -> [Option<u64>; 4] {
        let properties = Properties::read(content, &KEYS, in_order, |_, _| {});
        [key::HEAP_TYPE, key::SIZE_IN_BYTES, key::FLAGS, key::SIZE]
            .map(|place| properties.given(place))
    }

    #[test]
    fn keys_in_order() {
        let content = b"heap_type 1\nsize_in_bytes 68719476736\nflags 0\nsize 4\n";
        assert_eq!(read(content), [Some(1), Some(68_719_476_736), Some(0), Some(4)]);
    }

    #[test]
    fn keys_in_any_order_unknown_and_missing_ones() {
        let content = b"size 4\nwidth 64\nheap_type 1\n\n \nused 3\nflags 2\n";
        assert_eq!(read(content), [Some(1), None, Some(2), Some(4)]);
        assert_eq!(read(b""), [None; 4]);
    }

    #[test]
    fn a_key_is_more_than_a_prefix() {
        assert_eq!(read(b"size_in_bytes_max 7\nsiz 3\nsize_in 1\nsize_in_bytes\n"), [None; 4]);
    }

    #[test]
    fn the_last_of_two_holds() {
        assert_eq!(read(b"size 1\nsize 2\n")[3], Some(2));
    }

    #[test]
    fn line_ends_of_all_kinds() {
        assert_eq!(read(b"heap_type 1\r\nflags 2\r\nsize 3"), [Some(1), None, Some(2), Some(3)]);
        assert_eq!(read(b"heap_type 1 \t\nflags 2\n\n\n"), [Some(1), None, Some(2), None]);
    }

    #[test]
    fn what_is_no_number_gives_no_value() {
        for bad in [
            &b"flags -1"[..],
            b"flags ",
            b"flags  1",
            b"flags\t1",
            b"flags 0x10",
            b"flags 1 2",
            b"flags 1\0",
            b"flags 18446744073709551616",
            b"flags 9999999999999999999999999999999999999999",
        ] {
            let mut content = bad.to_vec();
            content.extend_from_slice(b"\nsize 3\n");
            assert_eq!(read(&content), [None, None, None, Some(3)], "{bad:?}");
        }
        assert_eq!(read(b"flags 18446744073709551615")[2], Some(u64::MAX));
        assert_eq!(read(b"flags 000000000000000000000000000000007\n")[2], Some(7));
    }

    #[test]
    fn a_huge_key_costs_only_its_line() {
        let mut content = b"heap_type 1\n".to_vec();
        content.extend(core::iter::repeat_n(b'k', 5000));
        content.extend_from_slice(b" 7\nflags 2\n");
        assert_eq!(read(&content), [Some(1), None, Some(2), None]);
    }

    #[test]
    fn twelve_kibibytes_are_read_to_the_end() {
        let mut content = Vec::new();
        while content.len() < 12 << 10 {
            content.extend_from_slice(b"some_future_property 123456\n");
        }
        content.extend_from_slice(b"flags 5\n");
        assert_eq!(read(&content)[2], Some(5));
    }

    #[test]
    fn other_values_are_handed_out() {
        let mut seen = Vec::new();
        let content = b"size 1\nflags 1,0,1\r\nsize_in_bytes 3\n";
        let properties = Properties::read(content, &KEYS, in_order, |index, text| {
            seen.push((index, text.to_vec()));
        });
        assert_eq!(seen, [(2, b"1,0,1".to_vec())]);
        assert_eq!((properties.given(2), properties.given(1)), (None, Some(3)));
        assert_eq!((properties.long(2), properties.long(99), properties.given(99)), (0, 0, None));
    }

    #[test]
    fn single_numbers() {
        assert_eq!(number(b"0\n"), Some(0));
        assert_eq!(number(b" 61116 \r\n"), Some(61116));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for bad in [&b""[..], b"\n", b"x\n", b"1\n2\n", b"-1", b"1\0", b"18446744073709551616"] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn line_lengths_of_every_size() {
        for length in 0..40 {
            let mut text: Vec<u8> = core::iter::repeat_n(0x0b, length).collect();
            assert_eq!(line_length(&text), length);
            text.extend_from_slice(b"\n\n0123456789");
            assert_eq!(line_length(&text), length);
            assert_eq!(split_line(&text), (&text[..length], &text[length + 1..]));
        }
    }
}
