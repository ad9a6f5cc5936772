//! What an allocation is to be, in the words of the C interface.

use crate::uapi::scalar::flags;

flags! {
    /// What memory is to be. The bits are those of `HsaMemFlags` (hsakmttypes.h).
    pub struct MemoryFlags: u32 {
        /// Pages stay where they are; with a GPU node: its own memory.
        const NON_PAGED = 1 << 0;
        /// GPUs do not write.
        const READ_ONLY = 1 << 3;
        /// The CPU accesses it.
        const HOST_ACCESS = 1 << 6;
        /// Fail rather than take memory of another NUMA node.
        const NO_SUBSTITUTE = 1 << 7;
        /// Global data share.
        const GDS = 1 << 8;
        /// Scratch memory of a GPU.
        const SCRATCH = 1 << 9;
        /// GPUs execute from it.
        const EXECUTE = 1 << 12;
        /// Coherent at kernel boundaries only.
        const COARSE_GRAIN = 1 << 13;
        /// The ring of an AQL queue: the GPU sees it twice, one after the other.
        const AQL_QUEUE = 1 << 14;
        /// At the address that the caller gives, or not at all.
        const FIXED_ADDRESS = 1 << 15;
        /// Not bound to a NUMA node.
        const NO_NUMA_BIND = 1 << 16;
        /// GPUs do not cache it.
        const UNCACHED = 1 << 17;
        /// Memory without an address: the result only names it.
        const NO_ADDRESS = 1 << 18;
        /// An address without memory.
        const ONLY_ADDRESS = 1 << 19;
        /// Coherent within one kernel.
        const EXTENDED_COHERENT = 1 << 20;
        /// System memory that the driver allocates.
        const GTT_ACCESS = 1 << 21;
        /// Video memory in one piece, if possible (KFD 1.16).
        const CONTIGUOUS = 1 << 22;
    }
}

impl MemoryFlags {
    /// The smallest page that the memory may consist of, in bytes: 4 KiB, 64 KiB,
    /// 2 MiB or 1 GiB (bits 4 and 5).
    #[must_use]
    pub const fn page_size(self) -> u64 {
        match self.bits() >> 4 & 3 {
            0 => 4 << 10,
            1 => 64 << 10,
            2 => 2 << 20,
            _ => 1 << 30,
        }
    }
}
