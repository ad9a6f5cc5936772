//! How single things are written for people.

use core::fmt::{self, Write};

/// Bytes from the kernel, a file or the command line, as one line that leaves
/// the terminal alone: text as it is, everything else escaped.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(pub &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '\n' => f.write_str("\\n")?,
                    '\t' => f.write_str("\\t")?,
                    // C1 controls act on some terminals; the bidirectional
                    // ones and the line separators reorder or break a line.
                    '\u{80}'..='\u{9f}'
                    | '\u{200e}'..='\u{200f}'
                    | '\u{2028}'..='\u{202e}'
                    | '\u{2066}'..='\u{2069}' => write!(f, "\\u{{{:x}}}", u32::from(character))?,
                    _ if character.is_ascii_control() => {
                        write!(f, "\\x{:02x}", u32::from(character))?;
                    }
                    _ => f.write_char(character)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// A number of bytes with the largest binary unit that keeps it at 1 or more;
/// one decimal where it is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let bytes = self.0;
        let unit = (u64::BITS - bytes.leading_zeros()).saturating_sub(1) / 10;
        let Some(name) = unit.checked_sub(1).and_then(|index| UNITS.get(index as usize)) else {
            return write!(f, "{bytes} B");
        };
        let shift = unit * 10;
        let whole = bytes >> shift;
        let rest = bytes - (whole << shift);
        // Ten times the rest may exceed 64 bits only from 2^60 on.
        let tenths = (u128::from(rest) * 10) >> shift;
        if rest == 0 { write!(f, "{whole} {name}") } else { write!(f, "{whole}.{tenths} {name}") }
    }
}

/// Node numbers in rising order, runs shortened: `0-1,4,6-9`.
#[derive(Debug, Clone, Copy)]
pub struct NodeSet<'a>(pub &'a [u32]);

impl fmt::Display for NodeSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for run in self.0.chunk_by(|&a, &b| a.checked_add(1) == Some(b)) {
            match *run {
                [] => {}
                [only] => write!(f, "{separator}{only}")?,
                [first, .., last] => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn printable_text_is_left_alone() {
        assert_eq!(
            Printable("AMD Instinct™ MI300X".as_bytes()).to_string(),
            "AMD Instinct™ MI300X"
        );
    }

    #[test]
    fn what_moves_a_terminal_is_escaped() {
        let hostile = Printable(b"a\0b\r\n\t\x1b[2J\x7f\xc2\x9b2J\xe2\x80\xaeq\xff\xe2\x80");
        assert_eq!(
            hostile.to_string(),
            "a\\x00b\\x0d\\n\\t\\x1b[2J\\x7f\\u{9b}2J\\u{202e}q\\xff\\xe2\\x80"
        );
    }

    #[test]
    fn sizes_have_the_unit_people_use() {
        for (bytes, text) in [
            (0, "0 B"),
            (1, "1 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (192 << 30, "192 GiB"),
            (270_553_710_592, "251.9 GiB"),
            (1 << 50, "1 PiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text, "{bytes}");
        }
    }

    #[test]
    fn node_sets_shorten_runs() {
        for (nodes, text) in [
            (&[][..], ""),
            (&[7], "7"),
            (&[0, 1], "0-1"),
            (&[0, 2, 3, 4, 9], "0,2-4,9"),
            (&[u32::MAX - 1, u32::MAX], "4294967294-4294967295"),
        ] {
            assert_eq!(NodeSet(nodes).to_string(), text);
        }
    }
}
