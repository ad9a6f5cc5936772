//! Writing JSON (RFC 8259): keys in the order they are given, numbers as
//! numbers up to 64 bits, any byte string as a valid JSON string.

use alloc::string::String;
use core::fmt::Write;

/// How the members of an object or array are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// One a line.
    Lines,
    /// All on the line they begin on.
    Line,
}

/// A place for exactly one value.
#[must_use = "a place without a value makes the document invalid"]
pub struct Value<'a> {
    out: &'a mut String,
    depth: usize,
    layout: Layout,
}

/// The members of an object being written.
pub struct Object<'a>(Members<'a>);

/// The items of an array being written.
pub struct Array<'a>(Members<'a>);

struct Members<'a> {
    out: &'a mut String,
    depth: usize,
    layout: Layout,
    first: bool,
}

/// Appends a document of one object and a line feed to `out`. The first member
/// stands on the first line.
pub fn document(out: &mut String, write: impl FnOnce(&mut Object<'_>)) {
    Value { out: &mut *out, depth: 0, layout: Layout::Lines }.object(write);
    out.push('\n');
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(core::iter::repeat_n(' ', depth.saturating_mul(2)));
}

fn quoted(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                // DEL, the C1 controls and the line separators are legal as
                // they are; escaped, the text is safe on a terminal and in
                // JavaScript.
                '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{:04x}", u32::from(character));
                }
                _ => out.push(character),
            }
        }
        if !chunk.invalid().is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
    out.push('"');
}

impl Value<'_> {
    /// A number.
    pub fn number(self, number: impl Into<u64>) {
        let _ = write!(self.out, "{}", number.into());
    }

    /// A number below zero, or not.
    pub fn signed(self, number: impl Into<i64>) {
        let _ = write!(self.out, "{}", number.into());
    }

    /// `true` or `false`.
    pub fn boolean(self, yes: bool) {
        self.out.push_str(if yes { "true" } else { "false" });
    }

    /// `null`.
    pub fn null(self) {
        self.out.push_str("null");
    }

    /// A number, or `null` for none.
    pub fn number_or_null(self, number: Option<impl Into<u64>>) {
        match number {
            Some(number) => self.number(number),
            None => self.null(),
        }
    }

    /// A string. Bytes that are not UTF-8 become U+FFFD, one for each run that
    /// no character begins with.
    pub fn string(self, bytes: impl AsRef<[u8]>) {
        quoted(self.out, bytes.as_ref());
    }

    /// An object, one member a line.
    pub fn object(self, write: impl FnOnce(&mut Object<'_>)) {
        let Value { out, depth, layout } = self;
        out.push('{');
        let mut object = Object(Members { out, depth: depth + 1, layout, first: true });
        write(&mut object);
        let Members { out, first, .. } = object.0;
        out.push_str(if first { "}" } else { " }" });
    }

    /// An array, one item a line.
    pub fn array(self, write: impl FnOnce(&mut Array<'_>)) {
        let Value { out, depth, layout } = self;
        out.push('[');
        let mut array = Array(Members { out, depth: depth + 1, layout, first: true });
        write(&mut array);
        let Members { out, first, .. } = array.0;
        if !first && layout == Layout::Lines {
            new_line(out, depth);
        }
        out.push(']');
    }

    /// The same place, with everything in it on one line.
    pub fn on_one_line(self) -> Self {
        Value { layout: Layout::Line, ..self }
    }
}

impl Object<'_> {
    /// The place for the value of the next member.
    pub fn field(&mut self, name: &str) -> Value<'_> {
        let Members { out, depth, layout, first } = &mut self.0;
        match (*first, *layout) {
            (true, _) => out.push(' '),
            (false, Layout::Line) => out.push_str(", "),
            (false, Layout::Lines) => {
                out.push(',');
                new_line(out, *depth);
            }
        }
        *first = false;
        quoted(out, name.as_bytes());
        out.push_str(": ");
        Value { out, depth: *depth, layout: *layout }
    }
}

impl Array<'_> {
    /// The place for the next item.
    pub fn item(&mut self) -> Value<'_> {
        let Members { out, depth, layout, first } = &mut self.0;
        if !*first {
            out.push_str(if *layout == Layout::Line { ", " } else { "," });
        }
        if *layout == Layout::Lines {
            new_line(out, *depth);
        }
        *first = false;
        Value { out, depth: *depth, layout: *layout }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(write: impl FnOnce(&mut Object<'_>)) -> String {
        let mut out = String::new();
        document(&mut out, write);
        out
    }

    #[test]
    fn the_layout_is_stable() {
        let text = written(|o| {
            o.field("machine").string("x");
            o.field("none").array(|_| {});
            o.field("empty").object(|_| {});
            o.field("nodes").array(|a| {
                a.item().object(|o| {
                    o.field("node").number(0u32);
                    o.field("banks").array(|a| {
                        a.item().on_one_line().object(|o| {
                            o.field("a").number(1u32);
                            o.field("b").array(|a| {
                                a.item().number(2u32);
                                a.item().number(3u32);
                            });
                        });
                    });
                });
                a.item().null();
            });
        });
        assert_eq!(
            text,
            r#"{ "machine": "x",
  "none": [],
  "empty": {},
  "nodes": [
    { "node": 0,
      "banks": [
        { "a": 1, "b": [2, 3] }
      ] },
    null
  ] }
"#
        );
    }

    #[test]
    fn a_reader_gets_back_what_was_written() {
        let text = written(|o| {
            o.field("max").number(u64::MAX);
            o.field("least").signed(i64::MIN);
            o.field("yes").boolean(true);
            o.field("no").boolean(false);
            o.field("none").null();
            o.field("maybe").number_or_null(None::<u32>);
            o.field("some").number_or_null(Some(5u32));
            o.field("key \"with\" \\ all\n").string("a\"b\\c/\u{1}\u{7f}\u{9b}\u{2028}é😀");
        });
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read,
            json!({
                "max": u64::MAX,
                "least": i64::MIN,
                "yes": true,
                "no": false,
                "none": null,
                "maybe": null,
                "some": 5,
                "key \"with\" \\ all\n": "a\"b\\c/\u{1}\u{7f}\u{9b}\u{2028}é😀",
            })
        );
        assert!(text.trim_end().chars().all(|c| !c.is_control() || c == '\n'), "{text:?}");
    }

    #[test]
    fn any_byte_makes_a_valid_string() {
        for first in 0..=255u8 {
            for second in [0, b'"', b'\\', b'a', 0x80, 0xbf, 0xc3, 0xff] {
                let bytes = [first, second, b'z'];
                let text = written(|o| o.field("s").string(bytes));
                let read: serde_json::Value = serde_json::from_str(&text).unwrap();
                let expected = String::from_utf8_lossy(&bytes);
                assert_eq!(read["s"], json!(expected), "{bytes:?}");
            }
        }
    }
}
