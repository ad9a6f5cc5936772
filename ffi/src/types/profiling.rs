//! Performance counters, traces of them, and PC sampling.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{HSATraceId, bit_register, open_enum};

/// A universally unique identifier: words in the byte order of the processor, then bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HSA_UUID {
    /// Bytes 0 to 3.
    pub Data1: u32,
    /// Bytes 4 and 5.
    pub Data2: u16,
    /// Bytes 6 and 7.
    pub Data3: u16,
    /// Bytes 8 to 15.
    pub Data4: [u8; 8],
}

impl HSA_UUID {
    const fn new(data1: u32, data2: u16, data3: u16, data4: [u8; 8]) -> Self {
        Self { Data1: data1, Data2: data2, Data3: data3, Data4: data4 }
    }
}

open_enum! {
    /// Who may read a counter, and how.
    pub struct HSA_PROFILE_TYPE: u32 {
        /// The kernel, one value at a time.
        HSA_PROFILE_TYPE_PRIVILEGED_IMMEDIATE as PRIVILEGED_IMMEDIATE = 0,
        /// The kernel, as a stream.
        HSA_PROFILE_TYPE_PRIVILEGED_STREAMING as PRIVILEGED_STREAMING = 1,
        /// Everybody, one value at a time.
        HSA_PROFILE_TYPE_NONPRIV_IMMEDIATE as NONPRIV_IMMEDIATE = 2,
        /// Everybody, as a stream.
        HSA_PROFILE_TYPE_NONPRIV_STREAMING as NONPRIV_STREAMING = 3,
        /// Number of kinds.
        HSA_PROFILE_TYPE_NUM as NUM = 4,
        /// Makes the C enumeration 32 bits wide.
        HSA_PROFILE_TYPE_SIZE as SIZE = 0xffff_ffff,
    }
}

bit_register! {
    /// Properties of a counter.
    #[repr(C)]
    pub struct HsaCounterFlags: u32 {
        /// Counts for all processes.
        Global as GLOBAL = 0..1,
        /// Can be set to zero.
        Resettable as RESETTABLE = 1..2,
        /// Cannot be written.
        ReadOnly as READ_ONLY = 2..3,
        /// Can be streamed.
        Stream as STREAM = 3..4,
    }
}

/// A counter of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaCounter {
    /// Who may read it, and how.
    pub Type: HSA_PROFILE_TYPE,
    /// Number of the counter within its block.
    pub CounterId: u64,
    /// Width of its value in bits.
    pub CounterSizeInBits: u32,
    /// Bits of its value that count.
    pub CounterMask: u64,
    /// Properties.
    pub Flags: HsaCounterFlags,
    /// Number of its block.
    pub BlockIndex: u32,
}

/// A block of counters. `NumCounters` counters follow; the array of one is only the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaCounterBlockProperties {
    /// Which block, an `HSA_PROFILEBLOCK_AMD_` identifier.
    pub BlockId: HSA_UUID,
    /// Counters of the block.
    pub NumCounters: u32,
    /// Counters that can count at the same time.
    pub NumConcurrent: u32,
    /// The counters.
    pub Counters: [HsaCounter; 1],
}

/// All blocks of a node. `NumBlocks` blocks of different sizes follow; the array of one is only
/// the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaCounterProperties {
    /// Blocks of the node.
    pub NumBlocks: u32,
    /// Blocks that can count at the same time.
    pub NumConcurrent: u32,
    /// The blocks.
    pub Blocks: [HsaCounterBlockProperties; 1],
}

/// A registered trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaPmcTraceRoot {
    /// Least size of a trace buffer in bytes.
    pub TraceBufferMinSizeBytes: u64,
    /// Runs that the counters need.
    pub NumberOfPasses: u32,
    /// The trace.
    pub TraceId: HSATraceId,
}

open_enum! {
    /// What makes a sample (2025).
    pub struct HSA_PC_SAMPLING_METHOD_KIND: u32 {
        /// The host interrupts the waves.
        HSA_PC_SAMPLING_METHOD_KIND_HOSTTRAP_V1 as HOST_TRAP_V1 = 1,
        /// The device samples by itself.
        HSA_PC_SAMPLING_METHOD_KIND_STOCHASTIC_V1 as STOCHASTIC_V1 = 2,
    }
}

open_enum! {
    /// Unit of a sampling interval (2025).
    pub struct HSA_PC_SAMPLING_UNIT_INTERVAL: u32 {
        /// Microseconds.
        HSA_PC_SAMPLING_UNIT_INTERVAL_MICROSECONDS as MICROSECONDS = 0,
        /// Clock cycles.
        HSA_PC_SAMPLING_UNIT_INTERVAL_CYCLES as CYCLES = 1,
        /// Instructions.
        HSA_PC_SAMPLING_UNIT_INTERVAL_INSTRUCTIONS as INSTRUCTIONS = 2,
    }
}

/// A way of sampling: what a node offers, or what a caller wants (2025).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaPcSamplingInfo {
    /// Interval.
    pub value: u64,
    /// Least interval.
    pub value_min: u64,
    /// Greatest interval.
    pub value_max: u64,
    /// Bit 0: the interval must be a power of two.
    pub flags: u64,
    /// What makes a sample.
    pub method: HSA_PC_SAMPLING_METHOD_KIND,
    /// Unit of the three intervals.
    pub units: HSA_PC_SAMPLING_UNIT_INTERVAL,
}

/// Colour block.
pub const HSA_PROFILEBLOCK_AMD_CB: HSA_UUID =
    HSA_UUID::new(0x9ba4_29c6, 0xaf2d, 0x4b38, [0xb3, 0x49, 0x15, 0x72, 0x71, 0xbe, 0xac, 0x6a]);

/// Command processor, fetcher.
pub const HSA_PROFILEBLOCK_AMD_CPF: HSA_UUID =
    HSA_UUID::new(0x2b0a_d2b5, 0x1c43, 0x4f46, [0xa7, 0xbc, 0xe1, 0x19, 0x41, 0x1e, 0xa6, 0xc9]);

/// Command processor, graphics.
pub const HSA_PROFILEBLOCK_AMD_CPG: HSA_UUID =
    HSA_UUID::new(0x590e_c94d, 0x20f0, 0x448f, [0x8d, 0xff, 0x31, 0x6c, 0x67, 0x9d, 0xe7, 0xff]);

/// Depth block.
pub const HSA_PROFILEBLOCK_AMD_DB: HSA_UUID =
    HSA_UUID::new(0x3d1a_47fc, 0x0013, 0x4ed4, [0x83, 0x06, 0x82, 0x2c, 0xa0, 0xb7, 0xa6, 0xc2]);

/// Global data share.
pub const HSA_PROFILEBLOCK_AMD_GDS: HSA_UUID =
    HSA_UUID::new(0xf592_76ec, 0x2526, 0x4bf8, [0x8e, 0xc0, 0x11, 0x8f, 0x77, 0x70, 0x0d, 0xc9]);

/// Register bus manager, graphics.
pub const HSA_PROFILEBLOCK_AMD_GRBM: HSA_UUID =
    HSA_UUID::new(0x8f00_933c, 0xc33d, 0x4801, [0x97, 0xb7, 0x70, 0x07, 0xf7, 0x85, 0x73, 0xad]);

/// Register bus manager, per shader engine.
pub const HSA_PROFILEBLOCK_AMD_GRBMSE: HSA_UUID =
    HSA_UUID::new(0x34eb_d8d7, 0x7c8b, 0x4d15, [0x88, 0xfa, 0x0e, 0x4e, 0x4a, 0xf5, 0x9a, 0xc1]);

/// Input assembly.
pub const HSA_PROFILEBLOCK_AMD_IA: HSA_UUID =
    HSA_UUID::new(0x3427_6944, 0x4264, 0x4fcd, [0x9d, 0x6e, 0xae, 0x26, 0x45, 0x82, 0xec, 0x51]);

/// Memory controller.
pub const HSA_PROFILEBLOCK_AMD_MC: HSA_UUID =
    HSA_UUID::new(0x1390_0b57, 0x4956, 0x4d98, [0x81, 0xd0, 0x68, 0x52, 0x19, 0x37, 0xf5, 0x9c]);

/// Primitive assembly, scan converter.
pub const HSA_PROFILEBLOCK_AMD_PASC: HSA_UUID =
    HSA_UUID::new(0xb0e7_fb5d, 0x0efc, 0x4744, [0xb5, 0x16, 0x5d, 0x23, 0xdc, 0x1f, 0xd5, 0x6c]);

/// Primitive assembly, setup unit.
pub const HSA_PROFILEBLOCK_AMD_PASU: HSA_UUID =
    HSA_UUID::new(0x9a15_2b6a, 0x1fad, 0x45f2, [0xa5, 0xbf, 0xf1, 0x63, 0x82, 0x6b, 0xd0, 0xcd]);

/// Shader processor input.
pub const HSA_PROFILEBLOCK_AMD_SPI: HSA_UUID =
    HSA_UUID::new(0xeda8_1044, 0xd62c, 0x47eb, [0xaf, 0x89, 0x4f, 0x6f, 0xbf, 0x3b, 0x38, 0xe0]);

/// Register bus manager, system.
pub const HSA_PROFILEBLOCK_AMD_SRBM: HSA_UUID =
    HSA_UUID::new(0x9f80_40e0, 0x6830, 0x4019, [0xac, 0xc8, 0x46, 0x3c, 0x9e, 0x44, 0x5b, 0x89]);

/// Sequencer.
pub const HSA_PROFILEBLOCK_AMD_SQ: HSA_UUID =
    HSA_UUID::new(0xb5c3_96b6, 0xd310, 0x47e4, [0x86, 0xfc, 0x5c, 0xc3, 0x04, 0x3a, 0xf5, 0x08]);

/// Shader export.
pub const HSA_PROFILEBLOCK_AMD_SX: HSA_UUID =
    HSA_UUID::new(0xbdb8_d737, 0x43cc, 0x4162, [0xbe, 0x52, 0x51, 0xcf, 0xb8, 0x47, 0xbe, 0xaf]);

/// Texture addressing.
pub const HSA_PROFILEBLOCK_AMD_TA: HSA_UUID =
    HSA_UUID::new(0xc01e_e43d, 0xad92, 0x44b1, [0x8a, 0xb9, 0xbe, 0x5e, 0x69, 0x6c, 0xee, 0xa7]);

/// Texture cache arbiter.
pub const HSA_PROFILEBLOCK_AMD_TCA: HSA_UUID =
    HSA_UUID::new(0x333e_393f, 0xe147, 0x4f49, [0xa6, 0xd1, 0x60, 0x91, 0x4c, 0x70, 0x86, 0xb0]);

/// Texture cache, second level.
pub const HSA_PROFILEBLOCK_AMD_TCC: HSA_UUID =
    HSA_UUID::new(0x848c_e855, 0xd805, 0x4566, [0xa8, 0xab, 0x73, 0xe8, 0x84, 0xcc, 0x6b, 0xff]);

/// Texture cache, first level.
pub const HSA_PROFILEBLOCK_AMD_TCP: HSA_UUID =
    HSA_UUID::new(0xe10a_013b, 0x17d4, 0x4bf5, [0xb0, 0x89, 0x42, 0x95, 0x91, 0x05, 0x9b, 0x60]);

/// Texture cache, scalar.
pub const HSA_PROFILEBLOCK_AMD_TCS: HSA_UUID =
    HSA_UUID::new(0x4126_245c, 0x4d96, 0x4d1a, [0x8a, 0xed, 0xa9, 0x39, 0xd4, 0xcc, 0x8e, 0xc9]);

/// Texture data.
pub const HSA_PROFILEBLOCK_AMD_TD: HSA_UUID =
    HSA_UUID::new(0x7d7c_0fe4, 0xfe41, 0x4fea, [0x92, 0xc9, 0x45, 0x44, 0xd7, 0x70, 0x6d, 0xc6]);

/// Vertex grouper and tessellator.
pub const HSA_PROFILEBLOCK_AMD_VGT: HSA_UUID =
    HSA_UUID::new(0x0b6a_8cb7, 0x7a01, 0x409f, [0xa2, 0x2c, 0x30, 0x14, 0x85, 0x4f, 0x13, 0x59]);

/// Work distributor.
pub const HSA_PROFILEBLOCK_AMD_WD: HSA_UUID =
    HSA_UUID::new(0x0e17_6789, 0x46ed, 0x4b02, [0x97, 0x2a, 0x91, 0x6d, 0x2f, 0xac, 0x24, 0x4a]);
