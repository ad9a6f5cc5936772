//! Allocation, mapping, registration, pointers, and buffer objects of other libraries.

use core::ffi::c_void;
use core::fmt;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::{HsaAMDGPUDeviceHandle, HsaMemoryObjectHandle, bit_register, open_enum};

open_enum! {
    /// How an access is cached ([`HsaMemFlags::CACHE_POLICY`], `hsaKmtSetMemoryPolicy`).
    pub struct HSA_CACHING_TYPE: u32 {
        /// Cached, coherent.
        HSA_CACHING_CACHED as CACHED = 0,
        /// Not cached.
        HSA_CACHING_NONCACHED as NONCACHED = 1,
        /// Writes are combined.
        HSA_CACHING_WRITECOMBINED as WRITECOMBINED = 2,
        /// Unused.
        HSA_CACHING_RESERVED as RESERVED = 3,
        /// Number of kinds.
        HSA_CACHING_NUM_CACHING as NUM_CACHING = 4,
        /// Makes the C enumeration 32 bits wide.
        HSA_CACHING_SIZE as SIZE = 0xffff_ffff,
    }
}

open_enum! {
    /// Smallest page that an allocation may consist of ([`HsaMemFlags::PAGE_SIZE`]).
    pub struct HSA_PAGE_SIZE: u32 {
        /// 4 KiB.
        HSA_PAGE_SIZE_4KB as KIB_4 = 0,
        /// 64 KiB.
        HSA_PAGE_SIZE_64KB as KIB_64 = 1,
        /// 2 MiB.
        HSA_PAGE_SIZE_2MB as MIB_2 = 2,
        /// 1 GiB.
        HSA_PAGE_SIZE_1GB as GIB_1 = 3,
    }
}

bit_register! {
    /// What an allocation is to be. Callers pass it by value.
    #[repr(C)]
    pub struct HsaMemFlags: u32 {
        /// Pages stay where they are; with a GPU node: its own memory.
        NonPaged as NON_PAGED = 0..1,
        /// An [`HSA_CACHING_TYPE`].
        CachePolicy as CACHE_POLICY = 1..3,
        /// Devices do not write.
        ReadOnly as READ_ONLY = 3..4,
        /// An [`HSA_PAGE_SIZE`].
        PageSize as PAGE_SIZE = 4..6,
        /// The host accesses the memory.
        HostAccess as HOST_ACCESS = 6..7,
        /// Fail rather than take memory of another kind.
        NoSubstitute as NO_SUBSTITUTE = 7..8,
        /// Global data share.
        GDSMemory as GDS_MEMORY = 8..9,
        /// Scratch memory.
        Scratch as SCRATCH = 9..10,
        /// Atomic operations of full scope.
        AtomicAccessFull as ATOMIC_ACCESS_FULL = 10..11,
        /// Atomic operations of partial scope.
        AtomicAccessPartial as ATOMIC_ACCESS_PARTIAL = 11..12,
        /// Devices may execute the memory.
        ExecuteAccess as EXECUTE_ACCESS = 12..13,
        /// Coherence at kernel boundaries only.
        CoarseGrain as COARSE_GRAIN = 13..14,
        /// The ring of an AQL queue, mapped as this device needs it.
        AQLQueueMemory as AQL_QUEUE_MEMORY = 14..15,
        /// The address that the caller passes must be taken.
        FixedAddress as FIXED_ADDRESS = 15..16,
        /// The memory is not bound to its NUMA node.
        NoNUMABind as NO_NUMA_BIND = 16..17,
        /// Devices do not cache the memory.
        Uncached as UNCACHED = 17..18,
        /// Memory without an address; the result is a handle (2025).
        NoAddress as NO_ADDRESS = 18..19,
        /// An address without memory (2025).
        OnlyAddress as ONLY_ADDRESS = 19..20,
        /// Coherent even within one kernel (2025).
        ExtendedCoherent as EXTENDED_COHERENT = 20..21,
        /// System memory that the device's own tables map (2025).
        GTTAccess as GTT_ACCESS = 21..22,
        /// Physically contiguous device memory, if possible (2025).
        Contiguous as CONTIGUOUS = 22..23,
        /// Executable by the copy kernels of a runtime (2025).
        ExecuteBlit as EXECUTE_BLIT = 23..24,
        /// The memory holds queue objects (2026).
        QueueObject as QUEUE_OBJECT = 24..25,
    }
}

bit_register! {
    /// How memory is to be mapped. Callers pass it by value (5.2.3 and 2025; later [`HsaMemFlags`]).
    #[repr(C)]
    pub struct HsaMemMapFlags: u32 {
        /// An [`HSA_CACHING_TYPE`].
        CachePolicy as CACHE_POLICY = 1..3,
        /// Devices do not write.
        ReadOnly as READ_ONLY = 3..4,
        /// An [`HSA_PAGE_SIZE`].
        PageSize as PAGE_SIZE = 4..6,
        /// The host accesses the memory.
        HostAccess as HOST_ACCESS = 6..7,
        /// Pages move to the device that maps them.
        Migrate as MIGRATE = 7..8,
        /// Only ask whether the mapping is possible.
        Probe as PROBE = 8..9,
    }
}

bit_register! {
    /// How a handle of another library is to be registered. Callers pass it by value (2025).
    #[repr(C)]
    pub struct HSA_REGISTER_MEM_FLAGS: u32 {
        /// An address is needed even without a list of nodes.
        requiresVAddr as REQUIRES_VADDR = 0..1,
        /// The handle is a kernel-mode thunk handle of Windows (2026).
        kmtHandle as KMT_HANDLE = 1..2,
    }
}

open_enum! {
    /// What an address belongs to.
    pub struct HSA_POINTER_TYPE: u32 {
        /// Nothing that the library knows.
        HSA_POINTER_UNKNOWN as UNKNOWN = 0,
        /// Memory that the library allocated.
        HSA_POINTER_ALLOCATED as ALLOCATED = 1,
        /// Host memory that was registered.
        HSA_POINTER_REGISTERED_USER as REGISTERED_USER = 2,
        /// A registered handle of a graphics library.
        HSA_POINTER_REGISTERED_GRAPHICS as REGISTERED_GRAPHICS = 3,
        /// Memory that another process shared.
        HSA_POINTER_REGISTERED_SHARED as REGISTERED_SHARED = 4,
        /// A reserved address range without memory (2025).
        HSA_POINTER_RESERVED_ADDR as RESERVED_ADDR = 5,
    }
}

/// What the library knows of an address.
///
/// The library owns both arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaPointerInfo {
    /// What the address belongs to.
    pub Type: HSA_POINTER_TYPE,
    /// Node whose memory it is.
    pub Node: u32,
    /// The flags of the allocation.
    pub MemFlags: HsaMemFlags,
    /// First byte as the host sees it; NULL without host access.
    pub CPUAddress: *mut c_void,
    /// First byte as devices see it.
    pub GPUAddress: u64,
    /// Size in bytes.
    pub SizeInBytes: u64,
    /// Entries in `RegisteredNodes`.
    pub NRegisteredNodes: u32,
    /// Entries in `MappedNodes`.
    pub NMappedNodes: u32,
    /// Nodes for which the memory is registered.
    pub RegisteredNodes: *const u32,
    /// Nodes that have the memory mapped.
    pub MappedNodes: *const u32,
    /// What `hsaKmtSetMemoryUserData` attached.
    pub UserData: *mut c_void,
}

/// A range of memory of some process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaMemoryRange {
    /// First byte.
    pub MemoryAddress: *mut c_void,
    /// Size in bytes.
    pub SizeInBytes: u64,
}

open_enum! {
    /// Direction of a direct transfer between a file and device memory (2026).
    pub struct HsaAisFlags: u32 {
        /// From the file.
        HSA_AIS_READ as READ = 1,
        /// To the file.
        HSA_AIS_WRITE as WRITE = 2,
    }
}

open_enum! {
    /// Access that a mapping of a buffer object gives (2026).
    pub struct HsaMemoryMapFlags: u32 {
        /// None.
        HSA_MEMORY_ACCESS_NONE as NONE = 0,
        /// Read.
        HSA_MEMORY_ACCESS_RO as READ_ONLY = 1,
        /// Write.
        HSA_MEMORY_ACCESS_WO as WRITE_ONLY = 2,
        /// Read and write.
        HSA_MEMORY_ACCESS_RW as READ_WRITE = 3,
    }
}

open_enum! {
    /// Kind of a handle that leaves or enters the process (2026).
    pub struct HsaExternalHandleType: u32 {
        /// Global GEM name.
        HSA_EXTERNAL_HANDLE_GEM_FLINK_NAME as GEM_FLINK_NAME = 0,
        /// Handle of one render file.
        HSA_EXTERNAL_HANDLE_KMS as KMS = 1,
        /// Descriptor of a dma-buf.
        HSA_EXTERNAL_HANDLE_DMA_BUF as DMA_BUF = 2,
        /// Handle on the fabric between machines.
        HSA_EXTERNAL_HANDLE_FABRIC as FABRIC = 3,
    }
}

/// A handle on the fabric between machines (2026).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaFabricHandle {
    /// Opaque.
    pub handle: [u64; 2],
}

/// Flags of an export; none exist (2026).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaHandleExportFlags {
    /// Zero. In C a bit-field of 32 bits.
    pub Reserved: u32,
}

bit_register! {
    /// Flags of an import (2026). C has the bit-fields alone, without a word.
    #[repr(C)]
    pub struct HsaHandleImportFlags: u32 {
        /// The handle came over inter-process communication and carries a tag.
        IPCHandle as IPC_HANDLE = 0..1,
        /// The buffer is system memory.
        SysMem as SYS_MEM = 1..2,
        /// The tag may be set where there is none.
        UpdateMetadata as UPDATE_METADATA = 2..3,
    }
}

/// What to export (2026).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaHandleExportDesc {
    /// Device of the buffer.
    pub device_handle: HsaAMDGPUDeviceHandle,
    /// Kind of handle wanted.
    pub r#type: HsaExternalHandleType,
    /// The buffer.
    pub buf_handle: HsaMemoryObjectHandle,
    /// Size in bytes.
    pub size: u64,
}

/// The handle of an [`HsaHandleImportDesc`], by its kind (2026). Anonymous in C.
#[derive(Clone, Copy, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub union HsaHandleImportSource {
    /// Descriptor of a dma-buf.
    pub dmabuf_fd: i64,
    /// A buffer object.
    pub buf_handle: HsaMemoryObjectHandle,
    /// A handle on the fabric.
    pub fabric: HsaFabricHandle,
}

/// What to import (2026).
#[derive(Clone, Copy, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaHandleImportDesc {
    /// Device that imports.
    pub device_handle: HsaAMDGPUDeviceHandle,
    /// Kind of the handle.
    pub r#type: HsaExternalHandleType,
    /// The handle. Anonymous in C.
    pub source: HsaHandleImportSource,
    /// Address hint.
    pub mem: *mut c_void,
    /// Tag of the buffer.
    pub metadata: u32,
}

/// What was imported (2026).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub struct HsaHandleImportResult {
    /// The buffer object.
    pub buf_handle: HsaMemoryObjectHandle,
    /// Descriptor of the dma-buf behind it.
    pub dmabuf_fd: i32,
    /// Size of the buffer in bytes.
    pub alloc_size: u64,
    /// Tag of the buffer.
    pub metadata: u32,
}

/// What was exported, by its kind (2026). In C a structure around an anonymous union.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
#[repr(C, packed(4))]
pub union HsaMemoryExportResult {
    /// Descriptor of a dma-buf; the caller closes it.
    pub dmabuf_fd: i32,
    /// A handle on the fabric.
    pub fabric: HsaFabricHandle,
}

impl fmt::Debug for HsaMemoryExportResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HsaMemoryExportResult")
    }
}

/// Layout of a surface that Windows shares (2026).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HsaWddmSurfaceMetadata {
    /// Version of this structure.
    pub version: u32,
    /// Swizzle mode of the surface.
    pub swizzle_mode: u32,
    /// Swizzle of the tiles.
    pub tile_swizzle: u32,
    /// How the surface is compressed.
    pub compression_mode: u32,
    /// Largest compressed block.
    pub max_comp_blk: u32,
    /// Largest uncompressed block.
    pub max_uncomp_blk: u32,
}
