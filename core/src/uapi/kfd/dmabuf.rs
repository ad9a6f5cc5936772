//! Buffers shared through dma-bufs.

use super::AllocMemoryFlags;
use crate::uapi::block;
use crate::uapi::scalar::flags;

block! {
    /// What an amdgpu dma-buf is.
    ///
    /// EINVAL: not a dma-buf of amdgpu, no visible GPU, or `metadata_size` too
    /// small (then it holds the size needed). EBADF. EFAULT.
    pub struct GetDmabufInfo: ReadWrite b'K' 0x1c "GET_DMABUF_INFO", 32 bytes, Eintr {
        /// Answer: bytes.
        pub size: u64,
        /// The exporter's metadata, of any form.
        pub metadata_ptr: u64 => Out,
        /// Bytes of that array; answer: bytes there are.
        pub metadata_size: u32,
        /// Answer: the owner of VRAM; for GTT the first visible GPU.
        pub gpu_id: u32,
        /// Answer: VRAM or GTT, and PUBLIC.
        pub flags: AllocMemoryFlags,
        /// The dma-buf, by its [`crate::seam::DeviceToken`].
        pub dmabuf_fd: u32,
    }
}

block! {
    /// Makes a buffer of a dma-buf. Each import is a handle of its own. The
    /// buffer has no offset for mmap: the CPU maps the dma-buf.
    ///
    /// EINVAL: unknown GPU, not a dma-buf, one that cannot be used. ENODEV: no
    /// VM acquired. EBADF. ENOMEM.
    pub struct ImportDmabuf: ReadWrite b'K' 0x1d "IMPORT_DMABUF", 24 bytes, Eintr {
        /// GPU address of every later mapping; 0 if it never gets one.
        pub va_addr: u64,
        /// Answer: the buffer.
        pub handle: u64,
        /// The GPU.
        pub gpu_id: u32,
        /// The dma-buf, by its [`crate::seam::DeviceToken`].
        pub dmabuf_fd: u32,
    }
}

flags! {
    /// How a dma-buf's descriptor is opened.
    pub struct ExportDmabufFlags: u32 {
        /// Close-on-exec; the only bit the driver looks at.
        const CLOEXEC = 0o2000000;
    }
}

block! {
    /// Makes a dma-buf of a buffer (1.12). It outlives the buffer. Write access
    /// only for one allocated WRITABLE.
    ///
    /// EINVAL: unknown handle. EPERM: USERPTR. EMFILE.
    pub struct ExportDmabuf: ReadWrite b'K' 0x24 "EXPORT_DMABUF", 16 bytes, Eintr {
        /// The buffer.
        pub handle: u64,
        /// How.
        pub flags: ExportDmabufFlags,
        /// Answer: the dma-buf, by its [`crate::seam::DeviceToken`].
        pub dmabuf_fd: u32,
    }
}
