//! Memory between processes without dma-bufs. Only the out-of-tree driver (DKMS)
//! has these; others answer ENOTTY.

use super::AllocMemoryFlags;
use crate::uapi::scalar::flags;
use crate::uapi::{block, record};

block! {
    /// Makes a buffer of one that another process exported.
    ///
    /// EAGAIN is sent again, as in [`super::AllocMemoryOfGpu`].
    pub struct IpcImportHandle: ReadWrite b'K' 0x80 "IPC_IMPORT_HANDLE", 48 bytes, EintrEagain {
        /// Answer: the buffer.
        pub handle: u64,
        /// GPU address of every later mapping.
        pub va_addr: u64,
        /// Answer: offset for mmap of the render node.
        pub mmap_offset: u64,
        /// What the exporter got.
        pub share_handle: [u32; 4],
        /// The GPU.
        pub gpu_id: u32,
        /// Answer: what the exporter allocated it with.
        pub flags: AllocMemoryFlags,
    }
}

block! {
    /// Makes a buffer known to other processes.
    pub struct IpcExportHandle: ReadWrite b'K' 0x81 "IPC_EXPORT_HANDLE", 32 bytes, Eintr {
        /// The buffer.
        pub handle: u64,
        /// Answer: for the other process.
        pub share_handle: [u32; 4],
        /// The GPU.
        pub gpu_id: u32,
        /// What the other process may know of how it was allocated.
        pub flags: AllocMemoryFlags,
    }
}

record! {
    /// One piece of memory in a process.
    pub struct MemoryRange: "kfd_memory_range", 16 bytes {
        /// Address.
        pub va_addr: u64,
        /// Bytes.
        pub size: u64,
    }
}

flags! {
    /// Which way a [`CrossMemoryCopy`] goes.
    pub struct CrossMemoryCopyFlags: u32 {
        /// Writes to the other process; without it, reads from it.
        const WRITE = 1 << 0;
    }
}

block! {
    /// Copies between this process and another.
    pub struct CrossMemoryCopy: ReadWrite b'K' 0x83 "CROSS_MEMORY_COPY", 48 bytes, Eintr {
        /// The other process.
        pub pid: u32,
        /// Which way.
        pub flags: CrossMemoryCopyFlags,
        /// An array of [`MemoryRange`].
        pub src_mem_range_array: u64 => In,
        /// Elements in it.
        pub src_mem_array_size: u64,
        /// An array of [`MemoryRange`].
        pub dst_mem_range_array: u64 => In,
        /// Elements in it.
        pub dst_mem_array_size: u64,
        /// Answer: bytes copied, on failure too.
        pub bytes_copied: u64,
    }
}
