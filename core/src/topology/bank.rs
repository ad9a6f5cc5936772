//! Memory banks.

use super::properties::{Properties, property_keys};

property_keys! {
    HEAP_TYPE = "heap_type",
    SIZE_IN_BYTES = "size_in_bytes",
    FLAGS = "flags",
    WIDTH = "width",
    MEM_CLK_MAX = "mem_clk_max",
}

/// What kind of memory a bank is (`HSA_HEAPTYPE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct HeapType(pub u32);

impl HeapType {
    /// System memory.
    pub const SYSTEM: HeapType = HeapType(0);
    /// Video memory that the CPU reaches through the BAR.
    pub const FRAME_BUFFER_PUBLIC: HeapType = HeapType(1);
    /// Video memory that only the GPU reaches.
    pub const FRAME_BUFFER_PRIVATE: HeapType = HeapType(2);
    /// Global data share.
    pub const GPU_GDS: HeapType = HeapType(3);
    /// Local data share of the compute units.
    pub const GPU_LDS: HeapType = HeapType(4);
    /// Scratch aperture.
    pub const GPU_SCRATCH: HeapType = HeapType(5);
    /// The address range that CPU and GPUs share.
    pub const DEVICE_SVM: HeapType = HeapType(6);
    /// The page with the GPU's flush registers.
    pub const MMIO_REMAP: HeapType = HeapType(7);
}

/// A memory bank of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryBank {
    /// What kind of memory.
    pub heap_type: HeapType,
    /// Bytes.
    pub size_in_bytes: u64,
    /// `HSA_MEMORYPROPERTY` bits: 0 hot pluggable, 1 non-volatile.
    pub flags: u32,
    /// Width of the bus in bits.
    pub width: u32,
    /// Clock in MHz.
    pub mem_clk_max: u32,
    /// Where the bank lies in the address space; 0 for the kernel's own banks.
    pub virtual_base_address: u64,
}

impl MemoryBank {
    /// Reads a bank's `properties`.
    pub(super) fn from_properties(content: &[u8]) -> MemoryBank {
        let text = Properties::read(content, &KEYS, in_order, |_, _| {});
        MemoryBank {
            heap_type: HeapType(text.word(key::HEAP_TYPE)),
            size_in_bytes: text.long(key::SIZE_IN_BYTES),
            flags: text.word(key::FLAGS),
            width: text.word(key::WIDTH),
            mem_clk_max: text.word(key::MEM_CLK_MAX),
            virtual_base_address: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_kernel() {
        let bank = MemoryBank::from_properties(
            b"heap_type 1\nsize_in_bytes 68719476736\nflags 2\nwidth 4096\nmem_clk_max 1600\n",
        );
        assert_eq!(
            bank,
            MemoryBank {
                heap_type: HeapType::FRAME_BUFFER_PUBLIC,
                size_in_bytes: 64 << 30,
                flags: 2,
                width: 4096,
                mem_clk_max: 1600,
                virtual_base_address: 0,
            }
        );
    }
}
