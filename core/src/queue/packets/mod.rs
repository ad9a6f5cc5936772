//! Packets that validation and copies need, as dwords for each generation of chips.
//!
//! - [`pm4`]: for compute rings and indirect buffers.
//! - [`sdma`]: for copy rings.
//! - [`aql`]: for AQL rings.
//!
//! Functions that get something which no packet of the generation can say (an
//! address that is not aligned, a length beyond a field) return `None`. Where a
//! packet has a body of any length its head is made here and the body follows it:
//! [`CommandRing::place_parts`](super::command_ring::CommandRing::place_parts).
//!
//! `tests/packets` computes the same dwords from the field macros of the kernel's
//! headers and compares.

pub mod aql;
pub mod pm4;
pub mod sdma;

/// A packet of at most 8 dwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortPacket {
    words: [u32; 8],
    length: u8,
}

impl ShortPacket {
    const fn new(words: [u32; 8], length: u8) -> ShortPacket {
        ShortPacket { words, length }
    }
}

impl AsRef<[u32]> for ShortPacket {
    fn as_ref(&self) -> &[u32] {
        self.words.get(..usize::from(self.length)).unwrap_or(&self.words)
    }
}

/// The low 32 bits of an address or a number.
const fn low(value: u64) -> u32 {
    value as u32
}

/// Its high 32 bits.
const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

/// Whether an address is a multiple of `alignment`, a power of two.
const fn is_aligned(address: u64, alignment: u64) -> bool {
    address & alignment.wrapping_sub(1) == 0
}
