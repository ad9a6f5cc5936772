//! Packets of the compute engines.
//!
//! Field places: `cikd.h` (gfx7), `vid.h` (gfx8), `soc15d.h` (gfx9), `nvd.h` (gfx10
//! to gfx12.0), `gfx_v12_1_pkt.h` (gfx12.5) of amdgpu; which caches a release or an
//! acquire names: the fences and memory syncs of its `gfx_v*.c`.

use super::{ShortPacket, high, is_aligned, low};
use crate::topology::GfxVersion;

const NOP: u32 = 0x10;
const WRITE_DATA: u32 = 0x37;
const WAIT_REG_MEM: u32 = 0x3c;
const INDIRECT_BUFFER: u32 = 0x3f;
const EVENT_WRITE: u32 = 0x46;
const RELEASE_MEM: u32 = 0x49;
const DMA_DATA: u32 = 0x50;
const ACQUIRE_MEM: u32 = 0x58;

/// The longest packet, in dwords.
pub const LONGEST: u32 = 0x4000;

/// Writes go to memory directly (bits 8 to 11) and are waited for (bit 20).
const TO_MEMORY_CONFIRMED: u32 = 5 << 8 | 1 << 20;

/// The event at the end of the pipe after which caches are flushed
/// (CACHE_FLUSH_AND_INV_TS_EVENT), by index 5.
const END_OF_PIPE: u32 = 0x14 | 5 << 8;

/// Waits for compute shaders (CS_PARTIAL_FLUSH), by index 4.
const COMPUTE_PARTIAL_FLUSH: u32 = 7 | 4 << 8;

/// Cycles between two looks of an acquire, and of a wait.
const POLL_INTERVAL: u32 = 10;

/// Generations of chips that differ in these packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pm4Generation {
    /// gfx7.
    Gfx7,
    /// gfx8.
    Gfx8,
    /// gfx9.
    Gfx9,
    /// gfx10.
    Gfx10,
    /// gfx11.
    Gfx11,
    /// gfx12.0.
    Gfx12,
    /// gfx12.5.
    Gfx12_5,
}

impl Pm4Generation {
    /// All of them, oldest first.
    pub const ALL: [Pm4Generation; 7] = [
        Pm4Generation::Gfx7,
        Pm4Generation::Gfx8,
        Pm4Generation::Gfx9,
        Pm4Generation::Gfx10,
        Pm4Generation::Gfx11,
        Pm4Generation::Gfx12,
        Pm4Generation::Gfx12_5,
    ];

    /// The generation of a chip; `None` where it is not known.
    #[must_use]
    pub const fn of(version: GfxVersion) -> Option<Pm4Generation> {
        Some(match (version.major, version.minor) {
            (7, _) => Pm4Generation::Gfx7,
            (8, _) => Pm4Generation::Gfx8,
            (9, _) => Pm4Generation::Gfx9,
            (10, _) => Pm4Generation::Gfx10,
            (11, _) => Pm4Generation::Gfx11,
            (12, 0..=4) => Pm4Generation::Gfx12,
            (12, _) => Pm4Generation::Gfx12_5,
            _ => return None,
        })
    }

    /// The most bytes that [`copy`] and [`fill`] take: 21 bits of them before gfx9,
    /// then 26.
    #[must_use]
    pub const fn largest_copy_bytes(self) -> u32 {
        if self.is_before(Pm4Generation::Gfx9) { 0x1f_ffff } else { 0x3ff_ffff }
    }

    const fn is_before(self, other: Pm4Generation) -> bool {
        (self as u8) < other as u8
    }

    /// The header of a packet of so many dwords in all, at least 2. gfx7 wants to
    /// be told that a compute engine reads it (bit 1).
    const fn header(self, operation: u32, dwords: u32) -> u32 {
        let compute = if self.is_before(Pm4Generation::Gfx8) { 2 } else { 0 };
        header(operation, dwords) | compute
    }
}

/// A header of type 3.
const fn header(operation: u32, dwords: u32) -> u32 {
    3 << 30 | dwords.wrapping_sub(2) << 16 | operation << 8
}

/// The header of a packet of `dwords` dwords that does nothing, 1 to 16,384, the
/// same on every generation; what follows the header is not looked at.
#[must_use]
pub const fn nop(dwords: u32) -> Option<u32> {
    match dwords {
        // The count that is left over stands for no body at all.
        1 => Some(header(NOP, 0x4001)),
        2..=LONGEST => Some(header(NOP, dwords)),
        _ => None,
    }
}

/// The head of a packet that writes `dwords` dwords, 1 to 16,380, to `address`, a
/// multiple of 4, and waits until they are there; they follow it.
#[must_use]
pub const fn write_head(generation: Pm4Generation, address: u64, dwords: u32) -> Option<[u32; 4]> {
    let length = dwords.saturating_add(4);
    if dwords == 0 || length > LONGEST || !is_aligned(address, 4) {
        return None;
    }
    let header = generation.header(WRITE_DATA, length);
    Some([header, TO_MEMORY_CONFIRMED, low(address), high(address)])
}

/// What a release writes once everything before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// A dword, to a multiple of 4.
    Dword(u64, u32),
    /// Two dwords, to a multiple of 8.
    Qword(u64, u64),
    /// The GPU's clock, to a multiple of 8.
    Clock(u64),
    /// Nothing.
    Nothing,
}

/// Waits for everything before it, writes caches back, then writes what
/// `release` says, and interrupts after that with the number of an event. With
/// the slot of the event as address: signals the event.
///
/// From gfx9 on the number travels in a dword of its own; before, the driver reads
/// the low bits of what was written, so an event needs [`Release::Dword`] with its
/// own number there.
#[must_use]
pub const fn release(
    generation: Pm4Generation,
    release: Release,
    event: Option<u32>,
) -> Option<ShortPacket> {
    let (select, alignment, address, data) = match release {
        Release::Dword(address, data) => (1, 4, address, data as u64),
        Release::Qword(address, data) => (2, 8, address, data),
        Release::Clock(address) => (3, 8, address, 0),
        Release::Nothing => (0, 1, 0, 0),
    };
    if !is_aligned(address, alignment) {
        return None;
    }
    let interrupt = match (event, release) {
        (None, _) => 0,
        (Some(_), Release::Nothing) => 1,
        // Once the write is confirmed.
        (Some(_), _) => 2,
    };
    let context = match event {
        Some(event) => event,
        None => 0,
    };
    let length = if generation.is_before(Pm4Generation::Gfx9) { 7 } else { 8 };
    Some(ShortPacket::new(
        [
            generation.header(RELEASE_MEM, length),
            END_OF_PIPE | released_caches(generation),
            select << 29 | interrupt << 24,
            low(address),
            high(address),
            low(data),
            high(data),
            context,
        ],
        length as u8,
    ))
}

/// The caches that a release writes back and invalidates.
const fn released_caches(generation: Pm4Generation) -> u32 {
    /// Write back L2, invalidate L1 and L2; up to gfx9.
    const L2_WRITE_BACK: u32 = 1 << 15;
    const L1_AND_L2: u32 = 1 << 16 | 1 << 17;
    /// The L2's metadata; gfx9.
    const METADATA: u32 = 1 << 21;
    /// In order, GL2 written back, not cached by the write itself; from gfx10 on.
    const GL2_IN_ORDER: u32 = 1 << 22 | 1 << 21 | 3 << 25;
    /// GLM written back and invalidated; gfx10 and gfx11.
    const GLM: u32 = 1 << 12 | 1 << 13;
    /// GLV written back, GL2 up to the device's scope; gfx12.5.
    const GLV_DEVICE: u32 = 1 << 24 | 2 << 12;
    match generation {
        Pm4Generation::Gfx7 => L1_AND_L2,
        Pm4Generation::Gfx8 => L1_AND_L2 | L2_WRITE_BACK,
        Pm4Generation::Gfx9 => L1_AND_L2 | L2_WRITE_BACK | METADATA,
        Pm4Generation::Gfx10 | Pm4Generation::Gfx11 => GL2_IN_ORDER | GLM,
        Pm4Generation::Gfx12 => GL2_IN_ORDER,
        Pm4Generation::Gfx12_5 => GL2_IN_ORDER | GLV_DEVICE,
    }
}

/// Writes back and invalidates caches for all addresses before what follows reads.
#[must_use]
pub const fn acquire(generation: Pm4Generation) -> ShortPacket {
    /// Instruction and scalar caches, L1 and L2 invalidated; up to gfx9.
    const INVALIDATE: u32 = 1 << 29 | 1 << 27 | 1 << 23 | 1 << 22;
    /// L2 written back; gfx8 and gfx9.
    const WRITE_BACK: u32 = 1 << 18;
    /// GL2 written back and invalidated, GLV, GLK, GLI invalidated.
    const GCR: u32 = 1 << 15 | 1 << 14 | 1 << 8 | 1 << 7 | 1;
    /// GL1 invalidated, GLM written back and invalidated; up to gfx12.0.
    const GCR_GL1_GLM: u32 = 1 << 9 | 1 << 5 | 1 << 4;
    /// Up to the device's scope; gfx12.5.
    const GCR_DEVICE: u32 = 2 << 4;
    let (control, range_high, gcr, length) = match generation {
        Pm4Generation::Gfx7 => (INVALIDATE, 0xff, 0, 7),
        Pm4Generation::Gfx8 => (INVALIDATE | WRITE_BACK, 0xff, 0, 7),
        Pm4Generation::Gfx9 => (INVALIDATE | WRITE_BACK, 0xff_ffff, 0, 7),
        Pm4Generation::Gfx10 | Pm4Generation::Gfx11 | Pm4Generation::Gfx12 => {
            (0, 0xff_ffff, GCR | GCR_GL1_GLM, 8)
        }
        Pm4Generation::Gfx12_5 => (0, 0xff_ffff, GCR | GCR_DEVICE, 8),
    };
    let header = generation.header(ACQUIRE_MEM, length);
    ShortPacket::new(
        [header, control, u32::MAX, range_high, 0, 0, POLL_INTERVAL, gcr],
        length as u8,
    )
}

/// Waits until all compute shaders before it have ended.
#[must_use]
pub const fn wait_for_shaders(generation: Pm4Generation) -> [u32; 2] {
    [generation.header(EVENT_WRITE, 2), COMPUTE_PARTIAL_FLUSH]
}

/// Waits until the dword at `address`, a multiple of 4, is `value`.
#[must_use]
pub const fn wait_until_equal(
    generation: Pm4Generation,
    address: u64,
    value: u32,
) -> Option<[u32; 7]> {
    /// Equal (function 3), in memory (bit 4).
    const EQUAL_IN_MEMORY: u32 = 3 | 1 << 4;
    if !is_aligned(address, 4) {
        return None;
    }
    let header = generation.header(WAIT_REG_MEM, 7);
    let (low, high) = (low(address), high(address));
    Some([header, EQUAL_IN_MEMORY, low, high, value, u32::MAX, POLL_INTERVAL])
}

/// Source and destination through the L2 cache.
const DMA_TO_L2: u32 = 3 << 20;
const DMA_FROM_L2: u32 = 3 << 29;
const DMA_FROM_PACKET: u32 = 2 << 29;

/// What follows waits (CP_SYNC, bit 31), on generations that have it.
const fn dma_wait(generation: Pm4Generation) -> u32 {
    match generation {
        Pm4Generation::Gfx12_5 => 0,
        _ => 1 << 31,
    }
}

/// Copies `bytes` bytes, 1 to
/// [`largest_copy_bytes`](Pm4Generation::largest_copy_bytes), and waits for it; on
/// gfx12.5 only a [`release`] waits.
#[must_use]
pub const fn copy(generation: Pm4Generation, from: u64, to: u64, bytes: u32) -> Option<[u32; 7]> {
    if bytes == 0 || bytes > generation.largest_copy_bytes() {
        return None;
    }
    let header = generation.header(DMA_DATA, 7);
    let control = dma_wait(generation) | DMA_FROM_L2 | DMA_TO_L2;
    Some([header, control, low(from), high(from), low(to), high(to), bytes])
}

/// Fills `bytes` bytes, a multiple of 4 up to
/// [`largest_copy_bytes`](Pm4Generation::largest_copy_bytes), with `value`, and waits
/// for it as [`copy`] does; the address is a multiple of 4.
#[must_use]
pub const fn fill(generation: Pm4Generation, to: u64, value: u32, bytes: u32) -> Option<[u32; 7]> {
    let fits = bytes != 0 && bytes <= generation.largest_copy_bytes();
    if !fits || bytes & 3 != 0 || !is_aligned(to, 4) {
        return None;
    }
    let header = generation.header(DMA_DATA, 7);
    let control = dma_wait(generation) | DMA_FROM_PACKET | DMA_TO_L2;
    Some([header, control, value, 0, low(to), high(to), bytes])
}

/// Runs `dwords` dwords of packets, 1 to 1,048,575, at `address`, a multiple of 4.
#[must_use]
pub const fn indirect_buffer(
    generation: Pm4Generation,
    address: u64,
    dwords: u32,
) -> Option<[u32; 4]> {
    const VALID: u32 = 1 << 23;
    if dwords == 0 || dwords > 0xf_ffff || !is_aligned(address, 4) {
        return None;
    }
    let header = generation.header(INDIRECT_BUFFER, 4);
    Some([header, low(address), high(address), dwords | VALID])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_of_chips() {
        for (target, expected) in [
            (70_000, Some(Pm4Generation::Gfx7)),
            (80_003, Some(Pm4Generation::Gfx8)),
            (90_402, Some(Pm4Generation::Gfx9)),
            (100_300, Some(Pm4Generation::Gfx10)),
            (110_501, Some(Pm4Generation::Gfx11)),
            (120_001, Some(Pm4Generation::Gfx12)),
            (120_500, Some(Pm4Generation::Gfx12_5)),
            (60_000, None),
            (130_000, None),
        ] {
            assert_eq!(Pm4Generation::of(GfxVersion::from_target_version(target)), expected);
        }
    }

    #[test]
    fn every_header_tells_its_length() {
        let length = |header: u32| (header >> 16 & 0x3fff) as usize + 2;
        for g in Pm4Generation::ALL {
            for packet in [
                release(g, Release::Dword(4, 1), Some(7)).unwrap(),
                release(g, Release::Nothing, None).unwrap(),
                acquire(g),
            ] {
                assert_eq!(length(packet.as_ref()[0]), packet.as_ref().len(), "{g:?}");
            }
            assert_eq!(length(write_head(g, 0, 5).unwrap()[0]), 9);
            assert_eq!(length(write_head(g, 0, 16_380).unwrap()[0]), 0x4000);
            assert_eq!(length(wait_for_shaders(g)[0]), 2);
            assert_eq!(length(wait_until_equal(g, 0, 1).unwrap()[0]), 7);
            assert_eq!(length(copy(g, 0, 1, 1).unwrap()[0]), 7);
            assert_eq!(length(fill(g, 0, 1, 4).unwrap()[0]), 7);
            assert_eq!(length(indirect_buffer(g, 0, 1).unwrap()[0]), 4);
            assert_eq!(length(nop(0x4000).unwrap()), 0x4000);
            assert_eq!(nop(1), Some(0xffff_1000));
        }
    }

    #[test]
    fn what_no_packet_can_say() {
        for g in Pm4Generation::ALL {
            assert!(nop(0).is_none());
            assert!(nop(0x4001).is_none());
            assert!(write_head(g, 0, 0).is_none());
            assert!(write_head(g, 0, 16_381).is_none());
            assert!(write_head(g, 0, u32::MAX).is_none());
            assert!(write_head(g, 2, 1).is_none());
            assert!(release(g, Release::Dword(2, 0), None).is_none());
            assert!(release(g, Release::Qword(4, 0), None).is_none());
            assert!(release(g, Release::Clock(4), None).is_none());
            assert!(wait_until_equal(g, 3, 0).is_none());
            let most = g.largest_copy_bytes();
            assert!(copy(g, 1, 1, most).is_some());
            assert!(copy(g, 1, 1, most + 1).is_none());
            assert!(copy(g, 1, 1, 0).is_none());
            assert!(fill(g, 0, 1, most & !3).is_some());
            for (to, bytes) in [(0, 0), (0, 3), (2, 4), (0, (most & !3) + 4)] {
                assert!(fill(g, to, 1, bytes).is_none(), "{g:?} {to} {bytes}");
            }
            assert!(indirect_buffer(g, 0, 0).is_none());
            assert!(indirect_buffer(g, 0, 1 << 20).is_none());
            assert!(indirect_buffer(g, 1, 1).is_none());
        }
    }
}
