//! How a ring's producer and its engine tell each other how far they are: units
//! and widths of read pointer, write pointer and doorbell.
//!
//! | ring | unit | before gfx9 | from gfx9 on |
//! |---|---|---|---|
//! | PM4 | dwords | 32 bits, wraps with the ring | write pointer and doorbell 64 bits, never wrap; read pointer 32 bits, wraps with the ring |
//! | SDMA | bytes | 32 bits, wraps with the ring | 64 bits, never wrap |
//! | AQL | packets | read pointer 64 bits; write pointer and doorbell see [`DoorbellType`] | 64 bits, never wrap; the doorbell gets the index of the newest packet |
//!
//! Sources: `gfx_v7_0.c` to `gfx_v12_0.c` and `sdma_v*.c` of amdgpu (`set_wptr`,
//! `support_64bit_ptrs`), the queue classes of kfdtest, `amd_aql_queue.cpp` of ROCr.

use core::sync::atomic::{AtomicU64, Ordering};

/// What a doorbell takes (`HSA_CAP_DOORBELL_TYPE_*` in a node's capability word).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoorbellType {
    /// Kaveri, Hawaii, Tonga: 32 bits; of AQL rings the offset in dwords of the
    /// first place not written, in a ring that is mapped twice in a row.
    Pre1_0,
    /// The other chips of gfx8: 32 bits; of AQL rings the number of packets written.
    V1_0,
    /// From gfx9 on: 64 bits; of AQL rings the index of the newest packet.
    V2_0,
}

impl DoorbellType {
    /// Reads a node's capability word (bits 12 and 13). `None` for the value that
    /// no driver gives.
    #[must_use]
    pub const fn from_capability(capability: u32) -> Option<DoorbellType> {
        match capability >> 12 & 3 {
            0 => Some(DoorbellType::Pre1_0),
            1 => Some(DoorbellType::V1_0),
            2 => Some(DoorbellType::V2_0),
            _ => None,
        }
    }

    /// Bytes of a doorbell.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            DoorbellType::Pre1_0 | DoorbellType::V1_0 => 4,
            DoorbellType::V2_0 => 8,
        }
    }
}

/// The engine that reads a ring of commands of various lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEngine {
    /// The compute engine, PM4 packets.
    Compute,
    /// The copy engine, SDMA packets.
    Copy,
}

/// How the pointers of a ring of commands count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointerForm {
    /// The engine, which says whether the unit is the dword or the byte.
    pub engine: CommandEngine,
    /// What the doorbell takes, which says whether write pointer and doorbell wrap.
    pub doorbell: DoorbellType,
}

impl PointerForm {
    /// The value of write pointer and doorbell for the place behind the newest
    /// dword, `written` dwords after the queue's start; the ring has `mask` + 1
    /// dwords. Of 32-bit pointers the low half counts and the other is 0.
    #[inline]
    #[must_use]
    pub const fn write_pointer(self, written: u64, mask: u32) -> u64 {
        let dwords = match self.doorbell {
            DoorbellType::Pre1_0 | DoorbellType::V1_0 => written & mask as u64,
            DoorbellType::V2_0 => written,
        };
        match self.engine {
            CommandEngine::Compute => dwords,
            CommandEngine::Copy => dwords << 2,
        }
    }

    /// The place in the ring, in dwords, that a read pointer names. The low 32 bits
    /// of the pointer do for every form: no ring is larger than 4 GiB.
    #[inline]
    #[must_use]
    pub const fn read_place(self, pointer: u32, mask: u32) -> u32 {
        let dwords = match self.engine {
            CommandEngine::Compute => pointer,
            CommandEngine::Copy => pointer >> 2,
        };
        dwords & mask
    }
}

/// Read pointer, write pointer and doorbell of a ring of commands.
pub trait CommandPointers {
    /// The low 32 bits of the read pointer, with Acquire: what the engine has read
    /// is free once this was seen.
    fn read_pointer(&self) -> u32;

    /// Stores the write pointer; the low 32 bits where pointers have 32.
    fn set_write_pointer(&self, value: u64);

    /// Stores the doorbell; the low 32 bits where doorbells have 32.
    fn ring_doorbell(&self, value: u64);
}

impl<P: CommandPointers> CommandPointers for &P {
    fn read_pointer(&self) -> u32 {
        (**self).read_pointer()
    }

    fn set_write_pointer(&self, value: u64) {
        (**self).set_write_pointer(value);
    }

    fn ring_doorbell(&self, value: u64) {
        (**self).ring_doorbell(value);
    }
}

/// A 64-bit number that several threads or a device change.
///
/// [`AtomicU64`] for real; models of memory bring their own.
pub trait SharedNumber {
    /// Loads with Acquire.
    fn load(&self) -> u64;

    /// Puts `new` where `current` is, with Acquire and Release; what was there
    /// where it was not `current`. May fail for no reason.
    ///
    /// # Errors
    /// The number that was there.
    fn replace(&self, current: u64, new: u64) -> Result<u64, u64>;

    /// Puts `new` there whatever there was, with Acquire and Release, and returns
    /// what was there.
    fn swap(&self, new: u64) -> u64;

    /// Raises the number to at least `floor`, with Acquire and Release.
    fn raise(&self, floor: u64);
}

impl SharedNumber for AtomicU64 {
    #[inline]
    fn load(&self) -> u64 {
        AtomicU64::load(self, Ordering::Acquire)
    }

    #[inline]
    fn replace(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    #[inline]
    fn swap(&self, new: u64) -> u64 {
        AtomicU64::swap(self, new, Ordering::AcqRel)
    }

    #[inline]
    fn raise(&self, floor: u64) {
        self.fetch_max(floor, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doorbell_types() {
        for (capability, expected) in [
            (0, Some(DoorbellType::Pre1_0)),
            (0x1000, Some(DoorbellType::V1_0)),
            (0x2000, Some(DoorbellType::V2_0)),
            (0x3000, None),
            (u32::MAX ^ 0x1000, Some(DoorbellType::V2_0)),
        ] {
            assert_eq!(DoorbellType::from_capability(capability), expected, "{capability:#x}");
        }
        assert_eq!(DoorbellType::Pre1_0.bytes(), 4);
        assert_eq!(DoorbellType::V1_0.bytes(), 4);
        assert_eq!(DoorbellType::V2_0.bytes(), 8);
    }

    #[test]
    fn units_and_widths() {
        // A ring of 1,024 dwords after one turn and 5 dwords.
        let (mask, written) = (1023, 1029);
        for (engine, doorbell, expected) in [
            (CommandEngine::Compute, DoorbellType::Pre1_0, 5),
            (CommandEngine::Compute, DoorbellType::V1_0, 5),
            (CommandEngine::Compute, DoorbellType::V2_0, 1029),
            (CommandEngine::Copy, DoorbellType::Pre1_0, 20),
            (CommandEngine::Copy, DoorbellType::V1_0, 20),
            (CommandEngine::Copy, DoorbellType::V2_0, 4116),
        ] {
            let form = PointerForm { engine, doorbell };
            assert_eq!(form.write_pointer(written, mask), expected, "{form:?}");
        }
        let form = PointerForm { engine: CommandEngine::Copy, doorbell: DoorbellType::V2_0 };
        let written = (1 << 32) + 7;
        assert_eq!(form.write_pointer(written, mask), (1 << 34) + 28);
    }

    #[test]
    fn every_form_of_read_pointer_names_a_place() {
        let doorbell = DoorbellType::V2_0;
        let compute = PointerForm { engine: CommandEngine::Compute, doorbell };
        let copy = PointerForm { engine: CommandEngine::Copy, doorbell };
        assert_eq!(compute.read_place(1020, 1023), 1020);
        assert_eq!(compute.read_place(1024, 1023), 0);
        assert_eq!(copy.read_place(4080, 1023), 1020);
        assert_eq!(copy.read_place(4096 + 8, 1023), 2);
        // The low half of 0x1_0000_0008 bytes.
        assert_eq!(copy.read_place(8, 1023), 2);
        // The largest ring, 4 GiB, in bytes.
        assert_eq!(copy.read_place(u32::MAX - 3, (1 << 30) - 1), (1 << 30) - 1);
    }
}
