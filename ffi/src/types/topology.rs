//! Machine, nodes, memory banks, caches, links and clocks.
//!
//! Most words come from sysfs as the kernel prints them
//! (`/sys/devices/virtual/kfd/kfd/topology`, `kfd_topology.c`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::{bit_register, open_enum};

/// Number of words in a sibling map (`HSA_CPU_SIBLINGS`).
pub const HSA_CPU_SIBLINGS: usize = 256;
/// Number of characters in a device name, with the terminating zero (`HSA_PUBLIC_NAME_SIZE`).
pub const HSA_PUBLIC_NAME_SIZE: usize = 64;
/// Every processor of a node, where a processor is asked for.
pub const HSA_PROCESSORID_ALL: u32 = u32::MAX;

/// The machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaSystemProperties {
    /// Nodes that callers may ask for; their ids are 0 to this minus one.
    pub NumNodes: u32,
    /// Manufacturer of the platform, as ACPI names it.
    pub PlatformOem: u32,
    /// Platform, as ACPI names it.
    pub PlatformId: u32,
    /// Revision of the platform.
    pub PlatformRev: u32,
}

bit_register! {
    /// What a node can do (sysfs `capability`).
    #[repr(C)]
    pub struct HSA_CAPABILITY: u32 {
        /// The node may be removed while the system runs.
        HotPluggable as HOT_PLUGGABLE = 0..1,
        /// The node translates addresses with the IOMMU.
        HSAMMUPresent as HSAMMU_PRESENT = 1..2,
        /// The engine also draws.
        SharedWithGraphics as SHARED_WITH_GRAPHICS = 2..3,
        /// Queue sizes are powers of two.
        QueueSizePowerOfTwo as QUEUE_SIZE_POWER_OF_TWO = 3..4,
        /// Queue sizes are 32 bits wide.
        QueueSize32bit as QUEUE_SIZE_32BIT = 4..5,
        /// The node signals idle queues.
        QueueIdleEvent as QUEUE_IDLE_EVENT = 5..6,
        /// Addresses of the node are limited to the lower range.
        VALimit as VA_LIMIT = 6..7,
        /// Address watch points exist.
        WatchPointsSupported as WATCH_POINTS_SUPPORTED = 7..8,
        /// Base-2 logarithm of the number of watch points.
        WatchPointsTotalBits as WATCH_POINTS_TOTAL_BITS = 8..12,
        /// 0: 4-byte doorbells of before 1.0, 1: 4-byte, 2: 8-byte.
        DoorbellType as DOORBELL_TYPE = 12..14,
        /// The ring of an AQL queue must be mapped twice in a row.
        AQLQueueDoubleMap as AQL_QUEUE_DOUBLE_MAP = 14..15,
        /// The debugger interface exists.
        DebugTrapSupported as DEBUG_TRAP_SUPPORTED = 15..16,
        /// The debugger may override the traps of launching waves.
        WaveLaunchTrapOverrideSupported as WAVE_LAUNCH_TRAP_OVERRIDE_SUPPORTED = 16..17,
        /// The debugger may choose how waves launch.
        WaveLaunchModeSupported as WAVE_LAUNCH_MODE_SUPPORTED = 17..18,
        /// Memory faults can be made precise.
        PreciseMemoryOperationsSupported as PRECISE_MEMORY_OPERATIONS_SUPPORTED = 18..19,
        /// Former place of the error correction bit of SRAM.
        DEPRECATED_SRAM_EDCSupport as DEPRECATED_SRAM_EDC_SUPPORT = 19..20,
        /// Device memory corrects errors.
        Mem_EDCSupport as MEM_EDC_SUPPORT = 20..21,
        /// Uncorrectable errors raise events.
        RASEventNotify as RAS_EVENT_NOTIFY = 21..22,
        /// Revision of the chip.
        ASICRevision as ASIC_REVISION = 22..26,
        /// On-chip memory corrects errors.
        SRAM_EDCSupport as SRAM_EDC_SUPPORT = 26..27,
        /// Shared virtual memory with attributes is available.
        SVMAPISupported as SVM_API_SUPPORTED = 27..28,
        /// The host reads device memory coherently.
        CoherentHostAccess as COHERENT_HOST_ACCESS = 28..29,
        /// The firmware is fit for the debugger interface.
        DebugSupportedFirmware as DEBUG_SUPPORTED_FIRMWARE = 29..30,
        /// Arithmetic exceptions can be made precise (2025).
        PreciseALUOperationsSupported as PRECISE_ALU_OPERATIONS_SUPPORTED = 30..31,
        /// One compute queue can be reset without the others (2025).
        PerQueueResetSupported as PER_QUEUE_RESET_SUPPORTED = 31..32,
    }
}

bit_register! {
    /// More of what a node can do (sysfs `capability2`; 2025).
    #[repr(C)]
    pub struct HSA_CAPABILITY2: u32 {
        /// One SDMA queue can be reset without the others.
        PerSDMAQueueResetSupported as PER_SDMA_QUEUE_RESET_SUPPORTED = 0..1,
        /// AQL queues are emulated on PM4 queues (2026).
        AqlEmulationPm4_ as AQL_EMULATION_PM4 = 1..2,
        /// A retry fault stalls the wave (2026).
        StallOnRetryFault as STALL_ON_RETRY_FAULT = 2..3,
    }
}

bit_register! {
    /// Version of the instruction set, and of the firmware that runs on the compute engine.
    #[repr(C)]
    pub struct HSA_ENGINE_ID: u32 {
        /// Version of the compute firmware.
        uCode as UCODE = 0..10,
        /// Major version of the instruction set: 9 in gfx90a.
        Major as MAJOR = 10..16,
        /// Minor version of the instruction set: 0 in gfx90a.
        Minor as MINOR = 16..24,
        /// Stepping of the instruction set: 10 in gfx90a.
        Stepping as STEPPING = 24..32,
    }
}

bit_register! {
    /// Versions of the other firmware of a node.
    #[repr(C)]
    pub struct HSA_ENGINE_VERSION: u32 {
        /// Version of the SDMA firmware.
        uCodeSDMA as UCODE_SDMA = 0..10,
        /// Unused.
        uCodeRes as UCODE_RES = 10..20,
    }
}

bit_register! {
    /// What the debugger may rely on (sysfs `debug_prop`).
    #[repr(C, packed(4))]
    pub struct HSA_DEBUG_PROPERTIES: u64 {
        /// Lowest address bit of a watch mask.
        WatchAddrMaskLoBit as WATCH_ADDR_MASK_LO_BIT = 0..4,
        /// Highest address bit of a watch mask.
        WatchAddrMaskHiBit as WATCH_ADDR_MASK_HI_BIT = 4..10,
        /// Information on the dispatch is always in the trap registers.
        DispatchInfoAlwaysValid as DISPATCH_INFO_ALWAYS_VALID = 10..11,
        /// Watch points are shared by the processes of the device.
        AddressWatchpointShareKind as ADDRESS_WATCHPOINT_SHARE_KIND = 11..12,
    }
}

open_enum! {
    /// What a memory bank is (sysfs `heap_type`; values from GPU_GDS on are made by the library).
    pub struct HSA_HEAPTYPE: u32 {
        /// System memory.
        HSA_HEAPTYPE_SYSTEM as SYSTEM = 0,
        /// Device memory that the host can reach.
        HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC as FRAME_BUFFER_PUBLIC = 1,
        /// Device memory that the host cannot reach.
        HSA_HEAPTYPE_FRAME_BUFFER_PRIVATE as FRAME_BUFFER_PRIVATE = 2,
        /// Global data share.
        HSA_HEAPTYPE_GPU_GDS as GPU_GDS = 3,
        /// Local data share.
        HSA_HEAPTYPE_GPU_LDS as GPU_LDS = 4,
        /// Scratch aperture.
        HSA_HEAPTYPE_GPU_SCRATCH as GPU_SCRATCH = 5,
        /// Aperture of memory that host and devices share.
        HSA_HEAPTYPE_DEVICE_SVM as DEVICE_SVM = 6,
        /// Page of registers for flushing.
        HSA_HEAPTYPE_MMIO_REMAP as MMIO_REMAP = 7,
        /// Number of kinds.
        HSA_HEAPTYPE_NUMHEAPTYPES as NUM_HEAP_TYPES = 8,
        /// Makes the C enumeration 32 bits wide.
        HSA_HEAPTYPE_SIZE as SIZE = 0xffff_ffff,
    }
}

bit_register! {
    /// Properties of a memory bank (sysfs `flags`). C calls the word `MemoryProperty`.
    #[repr(C)]
    pub struct HSA_MEMORYPROPERTY: u32 {
        /// The bank may be removed while the system runs.
        HotPluggable as HOT_PLUGGABLE = 0..1,
        /// The bank keeps its contents without power.
        NonVolatile as NON_VOLATILE = 1..2,
    }
}

/// A memory bank of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaMemoryProperties {
    /// What the bank is.
    pub HeapType: HSA_HEAPTYPE,
    /// Size in bytes. C can also name its two halves.
    pub SizeInBytes: u64,
    /// Properties.
    pub Flags: HSA_MEMORYPROPERTY,
    /// Width of the bus, in bits.
    pub Width: u32,
    /// Highest clock, in MHz.
    pub MemoryClockMax: u32,
    /// First address of an aperture; 0 for banks that are none.
    pub VirtualBaseAddress: u64,
}

bit_register! {
    /// What a cache serves (sysfs `type`).
    #[repr(C)]
    pub struct HsaCacheType: u32 {
        /// Data.
        Data as DATA = 0..1,
        /// Instructions.
        Instruction as INSTRUCTION = 1..2,
        /// CPU cores.
        CPU as CPU = 2..3,
        /// Compute units.
        HSACU as HSACU = 3..4,
    }
}

/// Which cores of a processor share something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaCComputeProperties {
    /// One word per core.
    pub SiblingMap: [u32; HSA_CPU_SIBLINGS],
}

open_enum! {
    /// What joins two nodes (sysfs `type`).
    pub struct HSA_IOLINKTYPE: u32 {
        /// Unknown.
        HSA_IOLINKTYPE_UNDEFINED as UNDEFINED = 0,
        /// HyperTransport.
        HSA_IOLINKTYPE_HYPERTRANSPORT as HYPERTRANSPORT = 1,
        /// PCI Express.
        HSA_IOLINKTYPE_PCIEXPRESS as PCI_EXPRESS = 2,
        /// AMBA.
        HSA_IOLINKTYPE_AMBA as AMBA = 3,
        /// MIPI.
        HSA_IOLINKTYPE_MIPI as MIPI = 4,
        /// QuickPath 1.1.
        HSA_IOLINK_TYPE_QPI_1_1 as QPI_1_1 = 5,
        /// Unused.
        HSA_IOLINK_TYPE_RESERVED1 as RESERVED1 = 6,
        /// Unused.
        HSA_IOLINK_TYPE_RESERVED2 as RESERVED2 = 7,
        /// RapidIO.
        HSA_IOLINK_TYPE_RAPID_IO as RAPID_IO = 8,
        /// InfiniBand.
        HSA_IOLINK_TYPE_INFINIBAND as INFINIBAND = 9,
        /// Unused.
        HSA_IOLINK_TYPE_RESERVED3 as RESERVED3 = 10,
        /// XGMI, between GPUs and to some hosts.
        HSA_IOLINK_TYPE_XGMI as XGMI = 11,
        /// XGOP.
        HSA_IOLINK_TYPE_XGOP as XGOP = 12,
        /// GZ.
        HSA_IOLINK_TYPE_GZ as GZ = 13,
        /// RDMA over Ethernet.
        HSA_IOLINK_TYPE_ETHERNET_RDMA as ETHERNET_RDMA = 14,
        /// RDMA over something else.
        HSA_IOLINK_TYPE_RDMA_OTHER as RDMA_OTHER = 15,
        /// Something else.
        HSA_IOLINK_TYPE_OTHER as OTHER = 16,
        /// Number of kinds.
        HSA_IOLINKTYPE_NUMIOLINKTYPES as NUM_IO_LINK_TYPES = 17,
        /// Makes the C enumeration 32 bits wide.
        HSA_IOLINKTYPE_SIZE as SIZE = 0xffff_ffff,
    }
}

bit_register! {
    /// What a link lacks (sysfs `flags`). C calls the word `LinkProperty`.
    #[repr(C)]
    pub struct HSA_LINKPROPERTY: u32 {
        /// The other bits replace what the kind of link implies.
        Override as OVERRIDE = 0..1,
        /// Accesses over the link are not coherent.
        NonCoherent as NON_COHERENT = 1..2,
        /// No 32-bit atomic operations.
        NoAtomics32bit as NO_ATOMICS_32BIT = 2..3,
        /// No 64-bit atomic operations.
        NoAtomics64bit as NO_ATOMICS_64BIT = 3..4,
        /// No direct access between devices.
        NoPeerToPeerDMA as NO_PEER_TO_PEER_DMA = 4..5,
    }
}

/// Clocks of a node and of the host, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaClockCounters {
    /// Clock of the GPU, in its own ticks; 0 for a CPU node.
    pub GPUClockCounter: u64,
    /// CLOCK_MONOTONIC_RAW, in ns.
    pub CPUClockCounter: u64,
    /// CLOCK_BOOTTIME, in ns.
    pub SystemClockCounter: u64,
    /// Ticks per second of the system clock.
    pub SystemClockFrequencyHz: u64,
}

/// How a GPU lays out tiled surfaces.
///
/// The caller supplies both arrays and their lengths; the lengths come back as the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaGpuTileConfig {
    /// Array for the tile modes.
    pub TileConfig: *mut u32,
    /// Array for the macro tile modes.
    pub MacroTileConfig: *mut u32,
    /// Entries in `TileConfig`.
    pub NumTileConfigs: u32,
    /// Entries in `MacroTileConfig`.
    pub NumMacroTileConfigs: u32,
    /// Register GB_ADDR_CONFIG.
    pub GbAddrConfig: u32,
    /// Memory banks.
    pub NumBanks: u32,
    /// Memory ranks.
    pub NumRanks: u32,
    /// Zero.
    pub Reserved: [u32; 7],
}
