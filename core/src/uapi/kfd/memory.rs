//! Buffers of the compute driver, and what describes a GPU's memory.

use crate::uapi::block;
use crate::uapi::scalar::flags;

flags! {
    /// What a buffer is and who may do what with it. Exactly one of the kinds
    /// VRAM, GTT, USERPTR, DOORBELL, MMIO_REMAP belongs in it; the driver takes
    /// the first and does not reject a second.
    pub struct AllocMemoryFlags: u32 {
        /// Kind: video memory. On APUs without a large carve-out the driver makes it GTT.
        const VRAM = 1 << 0;
        /// Kind: system memory of the driver.
        const GTT = 1 << 1;
        /// Kind: memory of the process, see [`AllocMemoryOfGpu::mmap_offset`].
        const USERPTR = 1 << 2;
        /// Kind: the doorbell slice of this process.
        const DOORBELL = 1 << 3;
        /// Kind: the page of registers that flush HDP, 4096 bytes.
        const MMIO_REMAP = 1 << 4;
        /// Video memory in one piece if possible (1.16).
        const CONTIGUOUS_BEST_EFFORT = 1 << 23;
        /// Coherent over all agents at system scope.
        const EXT_COHERENT = 1 << 24;
        /// Not cached by the GPU.
        const UNCACHED = 1 << 25;
        /// Fine-grained coherence.
        const COHERENT = 1 << 26;
        /// Half the size is allocated and mapped twice, one after the other.
        const AQL_QUEUE_MEM = 1 << 27;
        /// Stored by the driver, without effect.
        const NO_SUBSTITUTE = 1 << 28;
        /// Video memory the CPU can reach; EINVAL unless all of it is visible.
        const PUBLIC = 1 << 29;
        /// The GPU may execute from it.
        const EXECUTABLE = 1 << 30;
        /// The GPU may write to it.
        const WRITABLE = 1 << 31;
    }
}

block! {
    /// Makes a buffer. It is not mapped anywhere yet, and its address is not
    /// looked at before [`MapMemoryToGpu`].
    ///
    /// EAGAIN is sent again: a USERPTR whose pages changed meanwhile.
    /// EINVAL: size 0, unknown GPU, no kind, size of DOORBELL or MMIO_REMAP,
    /// PUBLIC without a visible VRAM. ENODEV: no VM acquired. ENOMEM. EADDRINUSE:
    /// an SVM range is there. USERPTR: EFAULT no memory there, EPERM read-only
    /// memory, EOPNOTSUPP in a secondary context.
    pub struct AllocMemoryOfGpu: ReadWrite b'K' 0x16 "ALLOC_MEMORY_OF_GPU", 40 bytes, EintrEagain {
        /// GPU address of every later mapping; 0 if it never gets one.
        pub va_addr: u64,
        /// Bytes, rounded up to a page. AQL_QUEUE_MEM allocates half of it.
        pub size: u64,
        /// Answer: `gpu_id << 32` with a number that starts at 0.
        pub handle: u64,
        /// USERPTR: CPU address of the memory, page aligned. Answer, for the
        /// other kinds: offset for mmap of the render node, but of `/dev/kfd`
        /// for MMIO_REMAP (see [`super::MmapOffset`]).
        pub mmap_offset: u64,
        /// The GPU that owns it.
        pub gpu_id: u32,
        /// Kind and rights.
        pub flags: AllocMemoryFlags,
    }
}

block! {
    /// Gives a buffer up. The handle can be another buffer's at once.
    ///
    /// EINVAL: unknown handle. EBUSY: still mapped on a GPU. EPERM: the event page.
    pub struct FreeMemoryOfGpu: Write b'K' 0x17 "FREE_MEMORY_OF_GPU", 8 bytes, Eintr {
        /// The buffer.
        pub handle: u64,
    }
}

block! {
    /// Maps a buffer at its address on some GPUs, one after the other. Sent
    /// again as the driver returned it, it goes on where it stopped.
    ///
    /// EAGAIN is sent again: memory of the process that changed meanwhile.
    /// EINVAL: no devices, unknown GPU, address 0, misaligned or taken, a GPU
    /// that cannot reach the memory. ENODEV: no VM acquired. ENOMEM: unknown
    /// handle too. EFAULT.
    pub struct MapMemoryToGpu: ReadWrite b'K' 0x18 "MAP_MEMORY_TO_GPU", 24 bytes, EintrEagain {
        /// The buffer.
        pub handle: u64,
        /// An array of `u32` GPU numbers.
        pub device_ids_array_ptr: u64 => In,
        /// Elements in the array.
        pub n_devices: u32,
        /// Elements done already; answer: elements done, on failure too.
        pub n_success: u32,
    }
}

block! {
    /// Unmaps a buffer from some GPUs. Sent again as the driver returned it, it
    /// goes on where it stopped; from 0 it would fail at the first one done.
    ///
    /// EINVAL: no devices, unknown GPU, not mapped there. EBUSY: a queue uses it
    /// (6.12). ENOMEM: unknown handle too. EFAULT.
    pub struct UnmapMemoryFromGpu: ReadWrite b'K' 0x19 "UNMAP_MEMORY_FROM_GPU", 24 bytes, Eintr {
        /// The buffer.
        pub handle: u64,
        /// An array of `u32` GPU numbers.
        pub device_ids_array_ptr: u64 => In,
        /// Elements in the array.
        pub n_devices: u32,
        /// Elements done already; answer: elements done, on failure too.
        pub n_success: u32,
    }
}

block! {
    /// How much video memory could still be allocated (1.9). All processes count.
    ///
    /// EINVAL: unknown GPU.
    pub struct AvailableMemory: ReadWrite b'K' 0x23 "AVAILABLE_MEMORY", 16 bytes, Eintr {
        /// Answer: bytes, rounded down to 2 MiB.
        pub available: u64,
        /// The GPU.
        pub gpu_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

block! {
    /// Tells the driver where scratch memory is; matters on gfx7 and gfx8.
    ///
    /// EINVAL: unknown GPU. ENODEV: no VM acquired on it.
    pub struct SetScratchBackingVa: ReadWrite b'K' 0x11 "SET_SCRATCH_BACKING_VA", 16 bytes, Eintr {
        /// GPU address.
        pub va_addr: u64,
        /// The GPU.
        pub gpu_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

block! {
    /// Tiling modes and the address configuration of a GPU.
    ///
    /// EINVAL: unknown GPU. EFAULT.
    pub struct GetTileConfig: ReadWrite b'K' 0x12 "GET_TILE_CONFIG", 40 bytes, Eintr {
        /// An array of `u32` modes.
        pub tile_config_ptr: u64 => Out,
        /// An array of `u32` modes.
        pub macro_tile_config_ptr: u64 => Out,
        /// Elements in the first array; answer: elements filled.
        pub num_tile_configs: u32,
        /// Elements in the second array; answer: elements filled.
        pub num_macro_tile_configs: u32,
        /// The GPU.
        pub gpu_id: u32,
        /// Answer: the register GB_ADDR_CONFIG.
        pub gb_addr_config: u32,
        /// Answer: memory banks.
        pub num_banks: u32,
        /// Answer: memory ranks.
        pub num_ranks: u32,
    }
}
