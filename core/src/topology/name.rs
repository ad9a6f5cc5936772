//! A name of at most 63 bytes, held in place.

use core::fmt;

/// The longest name, in bytes: the C structures hold 64 with the final NUL
/// (`HSA_PUBLIC_NAME_SIZE`).
const LONGEST: usize = 63;

/// A name as the kernel or the tables give it.
///
/// Its bytes are kept as they are; [`fmt::Display`] shows what is not UTF-8 as
/// U+FFFD.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; LONGEST],
    length: u8,
}

impl Name {
    /// No name.
    pub const EMPTY: Name = Name { bytes: [0; LONGEST], length: 0 };

    /// The name that `text` begins with: up to the first NUL or line end,
    /// without blanks around it, at most 63 bytes and no half character.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Name {
        let end = text.iter().position(|&byte| byte == 0 || byte == b'\n').unwrap_or(text.len());
        let line = text.get(..end).unwrap_or_default().trim_ascii();
        let mut name = Name::EMPTY;
        for (to, from) in name.bytes.iter_mut().zip(line) {
            *to = *from;
            name.length = name.length.saturating_add(1);
        }
        if line.len() > LONGEST {
            name.drop_half_character(line.get(LONGEST).copied().unwrap_or_default());
        }
        name
    }

    /// Removes the start of a character whose rest was cut off before `next`.
    fn drop_half_character(&mut self, next: u8) {
        if !is_continuation(next) {
            return;
        }
        let start = self.as_bytes().iter().rposition(|&byte| !is_continuation(byte));
        if let Some(start) = start {
            if self.bytes.get(start).is_some_and(|&byte| byte >= 0xc0) {
                for byte in self.bytes.iter_mut().skip(start) {
                    *byte = 0;
                }
                self.length = u8::try_from(start).unwrap_or_default();
            }
        }
    }

    /// The bytes, none of them NUL.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Whether there is no name.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// Whether a byte continues a UTF-8 character.
fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

impl Default for Name {
    fn default() -> Name {
        Name::EMPTY
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::from_text(text.as_bytes())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.as_bytes().utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_str("\u{fffd}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::Name;
    use alloc::format;
    use alloc::vec;

    #[test]
    fn absent_empty_and_newline_are_no_name() {
        for text in [&b""[..], b"\n", b" \n", b"\0", b"\r\n", b"\0vega10\n"] {
            assert!(Name::from_text(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn the_line_end_and_blanks_go() {
        assert_eq!(Name::from_text(b"aldebaran\n").as_bytes(), b"aldebaran");
        assert_eq!(Name::from_text(b"  ip discovery \r\nmore").as_bytes(), b"ip discovery");
        assert_eq!(Name::from_text(b"a\0b").as_bytes(), b"a");
    }

    #[test]
    fn sixty_three_bytes_stay() {
        let long = vec![b'x'; 300];
        assert_eq!(Name::from_text(&long).as_bytes(), &[b'x'; 63]);
        assert_eq!(Name::from_text(&long[..63]).as_bytes().len(), 63);
    }

    #[test]
    fn no_half_character_stays() {
        let mut text = vec![b'x'; 62];
        text.extend_from_slice("é".as_bytes());
        assert_eq!(Name::from_text(&text).as_bytes(), &[b'x'; 62]);
        let mut text = vec![b'x'; 61];
        text.extend_from_slice("éé".as_bytes());
        assert_eq!(Name::from_text(&text).as_bytes().len(), 63);
        let stray = vec![0x80; 80];
        assert_eq!(Name::from_text(&stray).as_bytes().len(), 63);
    }

    #[test]
    fn other_encodings_are_kept_and_shown() {
        let name = Name::from_text(b"Radeon\xae\n");
        assert_eq!(name.as_bytes(), b"Radeon\xae");
        assert_eq!(format!("{name}"), "Radeon\u{fffd}");
    }
}
