//! Requests of `/dev/udmabuf`: `linux/udmabuf.h`, letter `u`.

use super::block;
use super::scalar::flags;

flags! {
    /// How the dma-buf's descriptor is opened.
    pub struct UdmabufFlags: u32 {
        /// Close-on-exec.
        const CLOEXEC = 1 << 0;
    }
}

block! {
    /// Makes a dma-buf of a part of a memfd, whose seals must forbid shrinking
    /// and not forbid writing. The answer, not negative, is its descriptor.
    ///
    /// EINVAL: misaligned or empty range, beyond the file, seals, above the module's
    /// `size_limit_mb` (64). EBADFD: no file in memory. EMFILE, ENOMEM.
    pub struct UdmabufCreate: Write b'u' 0x42 "UDMABUF_CREATE", 24 bytes, Eintr {
        /// The memfd, by its [`crate::seam::DeviceToken`].
        pub memfd: u32,
        /// How.
        pub flags: UdmabufFlags,
        /// Bytes from the start of the file; a multiple of the page size.
        pub offset: u64,
        /// Bytes; a multiple of the page size.
        pub size: u64,
    }
}
