//! AQL packets: dispatch, barriers, and PM4 by way of an indirect buffer.
//!
//! Layouts: `hsa.h` of the HSA specification; the vendor's packet:
//! `amd_aql_queue.cpp` of ROCr (`amd_aql_pm4_ib`).

use super::pm4::{Pm4Generation, indirect_buffer};
use crate::queue::aql_ring::AqlPacket;

/// How far a fence reaches (HSA_FENCE_SCOPE_*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceScope {
    /// No fence.
    None = 0,
    /// The GPU.
    Agent = 1,
    /// All of the system.
    System = 2,
}

/// What every packet's header says beside its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Waits for all packets before it.
    pub barrier: bool,
    /// What is acquired before the packet runs.
    pub acquire: FenceScope,
    /// What is released after it ran.
    pub release: FenceScope,
}

/// Packet types (HSA_PACKET_TYPE_*).
const VENDOR_SPECIFIC: u32 = 0;
const KERNEL_DISPATCH: u32 = 2;
const BARRIER_AND: u32 = 3;
const BARRIER_OR: u32 = 5;

impl Header {
    /// Waits for all before it, fences to all of the system on both ends.
    pub const ORDERED: Header =
        Header { barrier: true, acquire: FenceScope::System, release: FenceScope::System };

    const fn bits(self, packet_type: u32) -> u32 {
        packet_type
            | (self.barrier as u32) << 8
            | (self.acquire as u32) << 9
            | (self.release as u32) << 11
    }
}

/// What a barrier waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// All of the signals are 0.
    All,
    /// One of the signals is 0.
    Any,
}

/// A barrier: waits for up to five signals (0 for none), then decrements
/// `completion` (0 for none). Signals are addresses of `amd_signal_t`.
#[must_use]
pub const fn barrier(header: Header, wait: Wait, signals: [u64; 5], completion: u64) -> AqlPacket {
    let packet_type = match wait {
        Wait::All => BARRIER_AND,
        Wait::Any => BARRIER_OR,
    };
    let [a, b, c, d, e] = signals;
    AqlPacket { first: header.bits(packet_type), second: 0, rest: [a, b, c, d, e, 0, completion] }
}

/// A kernel and how it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatch {
    /// Work-items of a work-group in x, y, z; 1 for a dimension that is not used.
    pub workgroup: [u16; 3],
    /// Work-items in x, y, z; 1 for a dimension that is not used.
    pub grid: [u32; 3],
    /// Bytes of private memory of a work-item.
    pub private_bytes: u32,
    /// Bytes of group memory of a work-group.
    pub group_bytes: u32,
    /// Address of the kernel's descriptor.
    pub kernel_object: u64,
    /// Address of the kernel's arguments.
    pub kernel_arguments: u64,
    /// Address of the signal that is decremented at the end; 0 for none.
    pub completion: u64,
}

/// A dispatch of a kernel. It has as many dimensions as the last one beyond 1 says.
#[must_use]
pub const fn dispatch(header: Header, dispatch: &Dispatch) -> AqlPacket {
    let [wx, wy, wz] = dispatch.workgroup;
    let [gx, gy, gz] = dispatch.grid;
    let dimensions = match (gy, gz) {
        (0 | 1, 0 | 1) => 1,
        (_, 0 | 1) => 2,
        _ => 3,
    };
    AqlPacket {
        first: header.bits(KERNEL_DISPATCH) | dimensions << 16,
        second: wx as u32 | (wy as u32) << 16,
        rest: [
            wz as u64 | (gx as u64) << 32,
            gy as u64 | (gz as u64) << 32,
            dispatch.private_bytes as u64 | (dispatch.group_bytes as u64) << 32,
            dispatch.kernel_object,
            dispatch.kernel_arguments,
            0,
            dispatch.completion,
        ],
    }
}

/// Runs `dwords` dwords of PM4 packets at `address`, then decrements `completion`
/// (0 for none).
///
/// `None` before gfx9, whose engines do not know it, and for what no indirect
/// buffer can say.
#[must_use]
pub const fn pm4_buffer(
    header: Header,
    generation: Pm4Generation,
    address: u64,
    dwords: u32,
    completion: u64,
) -> Option<AqlPacket> {
    /// The vendor's format 1, PM4 by an indirect buffer, in the high half.
    const PM4_BUFFER: u32 = 1 << 16;
    /// Dwords that are left in the packet after the jump.
    const LEFT: u64 = 10;
    if matches!(generation, Pm4Generation::Gfx7 | Pm4Generation::Gfx8) {
        return None;
    }
    let Some([jump, low, high, size]) = indirect_buffer(generation, address, dwords) else {
        return None;
    };
    Some(AqlPacket {
        first: header.bits(VENDOR_SPECIFIC) | PM4_BUFFER,
        second: jump,
        rest: [low as u64 | (high as u64) << 32, size as u64 | LEFT << 32, 0, 0, 0, 0, completion],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet as the 16 dwords that the engine reads.
    fn dwords(packet: &AqlPacket) -> [u32; 16] {
        let mut words = [packet.first, packet.second, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (at, pair) in packet.rest.iter().enumerate() {
            words[2 + 2 * at] = *pair as u32;
            words[3 + 2 * at] = (*pair >> 32) as u32;
        }
        words
    }

    #[test]
    fn headers() {
        let header = |barrier, acquire, release| Header { barrier, acquire, release };
        for (header, expected) in [
            (header(false, FenceScope::None, FenceScope::None), 0x0003),
            (header(true, FenceScope::None, FenceScope::None), 0x0103),
            (header(false, FenceScope::Agent, FenceScope::None), 0x0203),
            (header(false, FenceScope::System, FenceScope::None), 0x0403),
            (header(false, FenceScope::None, FenceScope::Agent), 0x0803),
            (header(false, FenceScope::None, FenceScope::System), 0x1003),
            (Header::ORDERED, 0x1503),
        ] {
            let packet = barrier(header, Wait::All, [0; 5], 0);
            assert_eq!((packet.first, packet.second), (expected, 0));
        }
    }

    #[test]
    fn barriers() {
        let signals = [0x1_0000_0040, 0x80, 0, 0x5_0000_0000, 0xc0];
        let packet = barrier(Header::ORDERED, Wait::Any, signals, 0x7f00_1234_5640);
        assert_eq!(
            dwords(&packet),
            [0x1505, 0, 0x40, 1, 0x80, 0, 0, 0, 0, 5, 0xc0, 0, 0, 0, 0x1234_5640, 0x7f00,]
        );
    }

    #[test]
    fn dispatches() {
        let of = Dispatch {
            workgroup: [64, 4, 2],
            grid: [1024, 16, 8],
            private_bytes: 0x10,
            group_bytes: 0x2000,
            kernel_object: 0x7f00_0000_1000,
            kernel_arguments: 0x7f00_0000_2000,
            completion: 0x7f00_0000_3000,
        };
        assert_eq!(
            dwords(&dispatch(Header::ORDERED, &of)),
            [
                0x0003_1502,
                0x0004_0040,
                2,
                1024,
                16,
                8,
                0x10,
                0x2000,
                0x1000,
                0x7f00,
                0x2000,
                0x7f00,
                0,
                0,
                0x3000,
                0x7f00,
            ]
        );
        for (grid, dimensions) in
            [([64, 1, 1], 1), ([64, 0, 0], 1), ([64, 2, 1], 2), ([64, 1, 2], 3)]
        {
            let packet = dispatch(Header::ORDERED, &Dispatch { grid, ..of });
            assert_eq!(packet.first >> 16, dimensions);
        }
    }

    #[test]
    fn pm4_by_an_indirect_buffer() {
        let header = Header { release: FenceScope::None, ..Header::ORDERED };
        let packet =
            pm4_buffer(header, Pm4Generation::Gfx9, 0x7f00_0000_1000, 0x40, 0x7f00_0000_3000);
        assert_eq!(
            dwords(&packet.unwrap()),
            [
                0x0001_0500,
                0xc002_3f00,
                0x1000,
                0x7f00,
                0x0080_0040,
                10,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0x3000,
                0x7f00,
            ]
        );
        assert!(pm4_buffer(header, Pm4Generation::Gfx8, 0x1000, 1, 0).is_none());
        assert!(pm4_buffer(header, Pm4Generation::Gfx9, 0x1000, 0, 0).is_none());
        assert!(pm4_buffer(header, Pm4Generation::Gfx9, 0x1002, 1, 0).is_none());
    }
}
