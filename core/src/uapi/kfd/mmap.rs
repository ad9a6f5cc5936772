//! Offsets for mmap of `/dev/kfd` (kfd_priv.h): type in bits 63-62, GPU in bits
//! 61-46; what is below is not looked at but must be page aligned for mmap itself.

use crate::uapi::scalar::open_enum;

open_enum! {
    /// What an offset maps.
    pub struct MmapType: u8 {
        /// The page of registers that flush HDP; 4096 bytes.
        const MMIO = 0;
        /// The driver's own; never mapped by a program.
        const RESERVED_MEM = 1;
        /// The page of event slots; 1 to 8 pages of 4096 bytes.
        const EVENTS = 2;
        /// The doorbell slice; its whole size, 8192 bytes or 4096 on gfx7 and gfx8.
        const DOORBELL = 3;
    }
}

/// An offset for mmap of `/dev/kfd`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct MmapOffset(pub u64);

impl MmapOffset {
    const TYPE_SHIFT: u32 = 62;
    const GPU_ID_SHIFT: u32 = 46;
    const GPU_ID_MASK: u64 = 0xffff;

    const fn new(kind: MmapType, gpu_id: u32) -> MmapOffset {
        MmapOffset(
            ((kind.0 as u64) << Self::TYPE_SHIFT)
                | ((gpu_id as u64 & Self::GPU_ID_MASK) << Self::GPU_ID_SHIFT),
        )
    }

    /// The doorbell slice of this process on a GPU. `gpu_id` has 16 bits.
    #[must_use]
    pub const fn doorbell(gpu_id: u32) -> MmapOffset {
        Self::new(MmapType::DOORBELL, gpu_id)
    }

    /// The event page of the context. It belongs to no GPU.
    #[must_use]
    pub const fn events() -> MmapOffset {
        Self::new(MmapType::EVENTS, 0)
    }

    /// The HDP flush registers of a GPU. `gpu_id` has 16 bits.
    #[must_use]
    pub const fn mmio(gpu_id: u32) -> MmapOffset {
        Self::new(MmapType::MMIO, gpu_id)
    }

    /// What it maps.
    #[must_use]
    pub const fn kind(self) -> MmapType {
        MmapType((self.0 >> Self::TYPE_SHIFT) as u8)
    }

    /// Of which GPU.
    #[must_use]
    pub const fn gpu_id(self) -> u32 {
        ((self.0 >> Self::GPU_ID_SHIFT) & Self::GPU_ID_MASK) as u32
    }

    /// The start of what is mapped: the offset for mmap.
    #[must_use]
    pub const fn start(self) -> MmapOffset {
        Self::new(self.kind(), self.gpu_id())
    }

    /// Bytes from the start. In [`super::CreateQueue::doorbell_offset`] this is
    /// where in the slice the queue's doorbell is, on gfx9 and later.
    #[must_use]
    pub const fn byte(self) -> u64 {
        self.0 & ((1 << Self::GPU_ID_SHIFT) - 1)
    }
}

/// Where in the MMIO_REMAP page a 32-bit write flushes HDP for memory accesses;
/// bytes.
pub const MMIO_REMAP_HDP_MEM_FLUSH_CNTL: usize = 0;

/// Where in the MMIO_REMAP page a 32-bit write flushes HDP for register
/// accesses; bytes.
pub const MMIO_REMAP_HDP_REG_FLUSH_CNTL: usize = 4;

#[cfg(test)]
mod tests {
    use super::{MmapOffset, MmapType};

    #[test]
    fn offsets() {
        assert_eq!(MmapOffset::events().0, 0x8000_0000_0000_0000);
        assert_eq!(MmapOffset::doorbell(0xffff).0, 0xffff_c000_0000_0000);
        assert_eq!(MmapOffset::doorbell(1).0, 0xc000_4000_0000_0000);
        assert_eq!(MmapOffset::mmio(0x8001).0, 0x2000_4000_0000_0000);
    }

    #[test]
    fn parts_come_back() {
        let queue = MmapOffset(MmapOffset::doorbell(0xd123).0 | 0x808);
        assert_eq!((queue.kind(), queue.gpu_id()), (MmapType::DOORBELL, 0xd123));
        assert_eq!((queue.byte(), queue.start()), (0x808, MmapOffset::doorbell(0xd123)));
    }

    #[test]
    fn a_gpu_id_cannot_change_the_type() {
        assert_eq!(MmapOffset::mmio(u32::MAX).kind(), MmapType::MMIO);
        assert_eq!(MmapOffset::mmio(u32::MAX).gpu_id(), 0xffff);
    }
}
