//! Packets of the copy engines.
//!
//! Field places: `cikd.h`, `iceland_sdma_pkt_open.h`, `tonga_…`, `vega10_…`,
//! `navi10_…`, `sdma_v6_0_0_pkt_open.h` and `sdma_v7_1_0_pkt_open.h` of amdgpu;
//! limits: `copy_max_bytes` and `fill_max_bytes` in the driver's `sdma_v*.c`.

use super::{ShortPacket, high, is_aligned, low};
use crate::topology::GfxVersion;

const COPY: u32 = 1;
const WRITE: u32 = 2;
const FENCE: u32 = 5;
const TRAP: u32 = 6;
const POLL_REGMEM: u32 = 8;
const CONSTANT_FILL: u32 = 11;
const GCR: u32 = 17;

/// A user-mode request to write back and invalidate caches, as sub-operation.
const USER_GCR: u32 = 1 << 8;

/// Fill in units of dwords (`fillsize` 2, bits 30 and 31).
const FILL_DWORDS: u32 = 2 << 30;

/// Memory type "uncached" of a fence (`mtype` 3, bits 16 to 18).
const FENCE_UNCACHED: u32 = 3 << 16;

/// Poll memory (bit 31) until it is equal (`func` 3, bits 28 to 30).
const POLL_MEMORY_EQUAL: u32 = 1 << 31 | 3 << 28;

/// How often to look: each 4 cycles (`interval`), forever (`retry_count` 0xfff).
const POLL_FOREVER: u32 = 0xfff << 16 | 4;

/// A packet of one dword that does nothing.
pub const NOP: [u32; 1] = [0];

/// Generations of copy engines that differ in their packets or limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SdmaVersion {
    /// gfx7.
    V1,
    /// gfx8.0.0.
    V2_4,
    /// The other chips of gfx8.
    V3,
    /// gfx9.0, also called 4.1 and 4.2.
    V4_0,
    /// gfx9.0.10, 9.4 and 9.5.
    V4_4,
    /// gfx10.1.
    V5_0,
    /// gfx10.3.
    V5_2,
    /// gfx11.
    V6,
    /// gfx12.0.
    V7,
    /// gfx12.5.
    V7_1,
}

impl SdmaVersion {
    /// All of them, oldest first.
    pub const ALL: [SdmaVersion; 10] = [
        SdmaVersion::V1,
        SdmaVersion::V2_4,
        SdmaVersion::V3,
        SdmaVersion::V4_0,
        SdmaVersion::V4_4,
        SdmaVersion::V5_0,
        SdmaVersion::V5_2,
        SdmaVersion::V6,
        SdmaVersion::V7,
        SdmaVersion::V7_1,
    ];

    /// The engines of chips of this version; `None` for chips that are not known.
    #[must_use]
    pub const fn of(version: GfxVersion) -> Option<SdmaVersion> {
        Some(match (version.major, version.minor, version.stepping) {
            (7, ..) => SdmaVersion::V1,
            (8, 0, 0) => SdmaVersion::V2_4,
            (8, ..) => SdmaVersion::V3,
            (9, 0, 10) | (9, 4 | 5, _) => SdmaVersion::V4_4,
            (9, ..) => SdmaVersion::V4_0,
            (10, 0..=2, _) => SdmaVersion::V5_0,
            (10, ..) => SdmaVersion::V5_2,
            (11, ..) => SdmaVersion::V6,
            (12, 0..=4, _) => SdmaVersion::V7,
            (12, ..) => SdmaVersion::V7_1,
            _ => return None,
        })
    }

    /// The most bytes that one packet copies or fills.
    #[must_use]
    pub const fn largest_copy_bytes(self) -> u32 {
        match self {
            SdmaVersion::V1 | SdmaVersion::V2_4 => 0x1f_ffff,
            SdmaVersion::V3 => 0x3f_ffe0,
            SdmaVersion::V4_0 | SdmaVersion::V5_0 => 1 << 22,
            _ => 1 << 30,
        }
    }

    /// The most dwords that one packet writes.
    #[must_use]
    pub const fn largest_write_dwords(self) -> u32 {
        if self.counts_from_zero() { 1 << 20 } else { 0x3f_ffff }
    }

    /// From 4.0 on a count of one is written as 0.
    const fn counts_from_zero(self) -> bool {
        self as u8 >= SdmaVersion::V4_0 as u8
    }

    const fn has_gcr(self) -> bool {
        self as u8 >= SdmaVersion::V5_0 as u8
    }

    const fn count(self, count: u32) -> u32 {
        if self.counts_from_zero() { count.wrapping_sub(1) } else { count }
    }
}

/// The head of a packet that writes `dwords` dwords to `address`; they follow it.
///
/// `None` for no dwords or more than
/// [`largest_write_dwords`](SdmaVersion::largest_write_dwords), and for an address
/// that is no multiple of 4.
#[must_use]
pub const fn write_head(version: SdmaVersion, address: u64, dwords: u32) -> Option<[u32; 4]> {
    let fits = dwords != 0 && dwords <= version.largest_write_dwords();
    if !fits || !is_aligned(address, 4) {
        return None;
    }
    Some([WRITE, low(address), high(address), version.count(dwords)])
}

/// Copies `bytes` bytes, 1 to [`largest_copy_bytes`](SdmaVersion::largest_copy_bytes).
#[must_use]
pub const fn copy(version: SdmaVersion, from: u64, to: u64, bytes: u32) -> Option<[u32; 7]> {
    if bytes == 0 || bytes > version.largest_copy_bytes() {
        return None;
    }
    Some([COPY, version.count(bytes), 0, low(from), high(from), low(to), high(to)])
}

/// Fills `bytes` bytes, a multiple of 4 up to
/// [`largest_copy_bytes`](SdmaVersion::largest_copy_bytes), with `value`; the address
/// is a multiple of 4.
#[must_use]
pub const fn fill(version: SdmaVersion, to: u64, value: u32, bytes: u32) -> Option<[u32; 5]> {
    let fits = bytes != 0 && bytes <= version.largest_copy_bytes();
    if !fits || !is_aligned(to, 4) || bytes & 3 != 0 {
        return None;
    }
    Some([CONSTANT_FILL | FILL_DWORDS, low(to), high(to), value, version.count(bytes)])
}

/// Writes `value` to `address`, a multiple of 4, after everything before it is
/// done. With the slot of an event as address and [`trap`] behind it: signals
/// the event.
#[must_use]
pub const fn fence(version: SdmaVersion, address: u64, value: u32) -> Option<[u32; 4]> {
    if !is_aligned(address, 4) {
        return None;
    }
    let memory = if version.has_gcr() { FENCE_UNCACHED } else { 0 };
    Some([FENCE | memory, low(address), high(address), value])
}

/// Interrupts with the number of an event, of which 28 bits are sent.
#[must_use]
pub const fn trap(event: u32) -> [u32; 2] {
    [TRAP, event & 0xfff_ffff]
}

/// Waits until the dword at `address`, a multiple of 4, is `value`.
#[must_use]
pub const fn wait_until_equal(address: u64, value: u32) -> Option<[u32; 6]> {
    if !is_aligned(address, 4) {
        return None;
    }
    let header = POLL_REGMEM | POLL_MEMORY_EQUAL;
    Some([header, low(address), high(address), value, u32::MAX, POLL_FOREVER])
}

/// What a request for the caches does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheRequest {
    /// Before a copy: writes back and invalidates.
    Acquire,
    /// After a copy: writes back.
    Release,
}

/// Writes back, and for [`CacheRequest::Acquire`] invalidates, the GPU's caches for
/// all addresses. `None` before 5.0, whose engines have no such packet.
#[must_use]
pub const fn cache(version: SdmaVersion, request: CacheRequest) -> Option<ShortPacket> {
    /// GL2 and GLK are written back.
    const WRITE_BACK: u32 = 1 << 15 | 1 << 6;
    /// GL2, GL1, GLV and GLK are invalidated.
    const INVALIDATE: u32 = 1 << 14 | 1 << 9 | 1 << 8 | 1 << 7;
    let header = GCR | USER_GCR;
    let control = match request {
        CacheRequest::Acquire => WRITE_BACK | INVALIDATE,
        CacheRequest::Release => WRITE_BACK,
    };
    match version {
        // Wider addresses: the control word is a place further on.
        SdmaVersion::V7_1 => Some(ShortPacket::new([header, 0, 0, control, 0, 0, 0, 0], 6)),
        _ if version.has_gcr() => {
            Some(ShortPacket::new([header, 0, control << 16, 0, 0, 0, 0, 0], 5))
        }
        _ => None,
    }
}

/// The packets of a copy of any length, one for each part.
///
/// The parts but the last have a length that is a multiple of 64 bytes, so that
/// their alignment to each other is that of the whole.
pub fn copies(
    version: SdmaVersion,
    from: u64,
    to: u64,
    bytes: u64,
) -> impl Iterator<Item = [u32; 7]> {
    let part = version.largest_copy_bytes() & !63;
    let mut done: u64 = 0;
    core::iter::from_fn(move || {
        let left = bytes.checked_sub(done)?;
        let length = u32::try_from(left).unwrap_or(u32::MAX).min(part);
        let packet = copy(version, from.wrapping_add(done), to.wrapping_add(done), length)?;
        done = done.wrapping_add(u64::from(length));
        Some(packet)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn engines_of_chips() {
        for (target, expected) in [
            (70_001, Some(SdmaVersion::V1)),
            (80_000, Some(SdmaVersion::V2_4)),
            (80_002, Some(SdmaVersion::V3)),
            (80_100, Some(SdmaVersion::V3)),
            (90_000, Some(SdmaVersion::V4_0)),
            (90_008, Some(SdmaVersion::V4_0)),
            (90_010, Some(SdmaVersion::V4_4)),
            (90_012, Some(SdmaVersion::V4_0)),
            (90_402, Some(SdmaVersion::V4_4)),
            (90_500, Some(SdmaVersion::V4_4)),
            (100_100, Some(SdmaVersion::V5_0)),
            (100_306, Some(SdmaVersion::V5_2)),
            (110_501, Some(SdmaVersion::V6)),
            (120_001, Some(SdmaVersion::V7)),
            (120_500, Some(SdmaVersion::V7_1)),
            (60_000, None),
            (130_000, None),
        ] {
            assert_eq!(SdmaVersion::of(GfxVersion::from_target_version(target)), expected);
        }
    }

    #[test]
    fn what_no_packet_can_say() {
        for version in SdmaVersion::ALL {
            let most = version.largest_copy_bytes();
            assert!(copy(version, 1, 3, most).is_some());
            assert!(copy(version, 1, 3, most + 1).is_none());
            assert!(copy(version, 1, 3, 0).is_none());
            assert!(fill(version, 4, 0, most & !3).is_some());
            for (to, bytes) in [(4, 0), (4, 6), (2, 4), (4, (most & !3) + 4)] {
                assert!(fill(version, to, 0, bytes).is_none(), "{version:?} {to} {bytes}");
            }
            let most = version.largest_write_dwords();
            assert!(write_head(version, 8, most).is_some());
            assert!(write_head(version, 8, most + 1).is_none());
            assert!(write_head(version, 8, 0).is_none());
            assert!(write_head(version, 6, 1).is_none());
            assert!(fence(version, 2, 0).is_none());
        }
        assert!(wait_until_equal(1, 0).is_none());
        assert!(cache(SdmaVersion::V4_4, CacheRequest::Acquire).is_none());
    }

    #[test]
    fn long_copies_in_parts() {
        for version in SdmaVersion::ALL {
            let part = u64::from(version.largest_copy_bytes() & !63);
            for bytes in [0, 1, part - 1, part, part + 1, 2 * part + 7] {
                let (from, to) = (0xf_ffff_fff0, 0x7_0000_0004);
                let packets: Vec<_> = copies(version, from, to, bytes).collect();
                assert_eq!(packets.len() as u64, bytes.div_ceil(part));
                let mut done = 0;
                for packet in packets {
                    let length = (bytes - done).min(part);
                    let whole = copy(version, from + done, to + done, length as u32);
                    assert_eq!(Some(packet), whole);
                    done += length;
                }
                assert_eq!(done, bytes);
            }
        }
    }
}
