//! Requests of every render node: `drm/drm.h`, letter `d`.
//!
//! EINTR and EAGAIN are both sent again: `drmIoctl` of libdrm does, and drivers
//! rely on it. Waits have an absolute end, so that nothing is added by it.

use super::block;
use super::scalar::{flags, open_enum};

block! {
    /// The driver's name and version. A buffer too short is filled as far as it
    /// goes; the lengths are those needed.
    pub struct Version: ReadWrite b'd' 0x00 "VERSION", 64 bytes, EintrEagain {
        /// Answer.
        pub version_major: i32,
        /// Answer.
        pub version_minor: i32,
        /// Answer.
        pub version_patchlevel: i32,
        /// Zero.
        pub reserved: u32,
        /// Bytes for the name; answer: bytes it has.
        pub name_len: u64,
        /// The name, `amdgpu`, without a final zero.
        pub name: u64 => Out,
        /// Bytes for the date; answer: bytes it has.
        pub date_len: u64,
        /// A date, `0` on newer kernels.
        pub date: u64 => Out,
        /// Bytes for the description; answer: bytes it has.
        pub desc_len: u64,
        /// A description.
        pub desc: u64 => Out,
    }
}

open_enum! {
    /// What [`GetCap`] asks for.
    pub struct Capability: u64 {
        /// 1: import, 2: export of dma-bufs.
        const PRIME = 0x5;
        /// 1: sync objects.
        const SYNCOBJ = 0x13;
        /// 1: sync objects with timelines.
        const SYNCOBJ_TIMELINE = 0x14;
    }
}

block! {
    /// A capability of the driver.
    ///
    /// EINVAL: unknown, or not for render nodes.
    pub struct GetCap: ReadWrite b'd' 0x0c "GET_CAP", 16 bytes, EintrEagain {
        /// Which.
        pub capability: Capability,
        /// Answer.
        pub value: u64,
    }
}

block! {
    /// Gives a handle up; the buffer lives as long as others use it.
    ///
    /// EINVAL: unknown handle.
    pub struct GemClose: Write b'd' 0x09 "GEM_CLOSE", 8 bytes, EintrEagain {
        /// The buffer; handles start at 1.
        pub handle: u32,
        /// Zero.
        pub pad: u32,
    }
}

flags! {
    /// How a dma-buf's descriptor is opened.
    pub struct PrimeFlags: u32 {
        /// For reading and writing.
        const RDWR = 0o2;
        /// Close-on-exec.
        const CLOEXEC = 0o2000000;
    }
}

block! {
    /// Makes a dma-buf of a buffer.
    ///
    /// EINVAL: flags. ENOENT: unknown handle. EPERM: a buffer of user memory or
    /// of this VM alone. EMFILE.
    pub struct PrimeHandleToFd: ReadWrite b'd' 0x2d "PRIME_HANDLE_TO_FD", 12 bytes, EintrEagain {
        /// The buffer.
        pub handle: u32,
        /// How.
        pub flags: PrimeFlags,
        /// Answer: the dma-buf's descriptor.
        pub fd: i32,
    }
}

block! {
    /// Makes a handle of a dma-buf; the same buffer has the same handle in one
    /// open file.
    ///
    /// EBADF. EINVAL: not a dma-buf.
    pub struct PrimeFdToHandle: ReadWrite b'd' 0x2e "PRIME_FD_TO_HANDLE", 12 bytes, EintrEagain {
        /// Answer: the buffer.
        pub handle: u32,
        /// Zero.
        pub flags: u32,
        /// The dma-buf's descriptor.
        pub fd: i32,
    }
}

flags! {
    /// How a sync object starts.
    pub struct SyncobjCreateFlags: u32 {
        /// Signaled.
        const SIGNALED = 1 << 0;
    }
}

block! {
    /// Makes a sync object.
    ///
    /// EINVAL: flags.
    pub struct SyncobjCreate: ReadWrite b'd' 0xbf "SYNCOBJ_CREATE", 8 bytes, EintrEagain {
        /// Answer: the object.
        pub handle: u32,
        /// How.
        pub flags: SyncobjCreateFlags,
    }
}

block! {
    /// Gives a sync object up.
    ///
    /// EINVAL: unknown object.
    pub struct SyncobjDestroy: ReadWrite b'd' 0xc0 "SYNCOBJ_DESTROY", 8 bytes, EintrEagain {
        /// The object.
        pub handle: u32,
        /// Zero.
        pub pad: u32,
    }
}

flags! {
    /// What a wait waits for.
    pub struct SyncobjWaitFlags: u32 {
        /// All, else any.
        const WAIT_ALL = 1 << 0;
        /// Also for work to be submitted; without it a point without work is EINVAL.
        const WAIT_FOR_SUBMIT = 1 << 1;
        /// Only until the points have work.
        const WAIT_AVAILABLE = 1 << 2;
    }
}

block! {
    /// Waits for points of timelines. Since 6.6 the kernel's form is longer by a
    /// hint, zero if it is left out.
    ///
    /// ETIME: the time is up. ENOENT: unknown object. EINVAL. EFAULT.
    pub struct SyncobjTimelineWait: ReadWrite b'd' 0xca "SYNCOBJ_TIMELINE_WAIT",
        40 bytes, EintrEagain {
        /// An array of `u32` objects.
        pub handles: u64 => In,
        /// An array of `u64` points, as many.
        pub points: u64 => In,
        /// When to stop: CLOCK_MONOTONIC in ns.
        pub timeout_nsec: i64,
        /// Elements in each array.
        pub count_handles: u32,
        /// What for.
        pub flags: SyncobjWaitFlags,
        /// Answer: which element, if any was asked for.
        pub first_signaled: u32,
        /// Zero.
        pub pad: u32,
    }
}
