//! Dwords of packets, put together by the field macros of the kernel's headers.
//!
//! `make-table KERNEL-SOURCE` compiles `sdma.c` and `pm4.c` once with each header
//! and prints `dwords.txt`, which is committed: a line for each packet with the
//! generation, the name of the case, and the dwords. The test makes the same
//! packets by the library's functions.

#![deny(unsafe_code)]

/// The committed table.
pub const TABLE: &str = include_str!("../dwords.txt");

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Generation of chips or engines.
    pub generation: &'static str,
    /// The name of the case.
    pub case: &'static str,
    /// The packet.
    pub dwords: Vec<u32>,
}

/// The lines of the table.
///
/// # Panics
/// On a line that is none.
#[must_use]
pub fn lines() -> Vec<Line> {
    let line = |text: &'static str| {
        let mut words = text.split(' ');
        Line {
            generation: words.next().expect("a generation"),
            case: words.next().expect("a case"),
            dwords: words.map(|word| u32::from_str_radix(word, 16).expect("a dword")).collect(),
        }
    };
    TABLE.lines().filter(|text| !text.starts_with('#')).map(line).collect()
}
