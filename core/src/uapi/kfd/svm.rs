//! Shared virtual memory: attributes of ranges of the address space.

use crate::uapi::scalar::{flags, open_enum};
use crate::uapi::{Block, Request, block, record};

open_enum! {
    /// What an [`Svm`] does.
    pub struct SvmOp: u32 {
        /// Sets all attributes given, or none.
        const SET_ATTR = 0;
        /// Answers those asked for, as they are over the whole range.
        const GET_ATTR = 1;
    }
}

open_enum! {
    /// Which attribute.
    pub struct SvmAttributeType: u32 {
        /// Where pages should be: an [`SvmLocation`].
        const PREFERRED_LOC = 0;
        /// Where pages go now: an [`SvmLocation`], but never UNDEFINED.
        const PREFETCH_LOC = 1;
        /// A GPU that may access, moving pages if need be. In an answer the type
        /// becomes what the GPU has.
        const ACCESS = 2;
        /// A GPU that accesses pages where they are. Not for a question.
        const ACCESS_IN_PLACE = 3;
        /// A GPU without access. Not for a question.
        const NO_ACCESS = 4;
        /// [`SvmFlags`] to set; in an answer those set everywhere.
        const SET_FLAGS = 5;
        /// [`SvmFlags`] to clear; in an answer those clear everywhere.
        const CLR_FLAGS = 6;
        /// Base-2 logarithm of the pages moved together, at most 63.
        const GRANULARITY = 7;
    }
}

open_enum! {
    /// Where memory is; any other value is a GPU number.
    pub struct SvmLocation: u32 {
        /// In system memory.
        const SYSMEM = 0;
        /// Not said, or different within the range.
        const UNDEFINED = 0xffff_ffff;
    }
}

flags! {
    /// Properties of a range.
    pub struct SvmFlags: u32 {
        /// The CPU accesses it.
        const HOST_ACCESS = 1 << 0;
        /// Fine-grained coherence.
        const COHERENT = 1 << 1;
        /// Memory of another GPU of the hive may be used.
        const HIVE_LOCAL = 1 << 2;
        /// GPUs only read.
        const GPU_RO = 1 << 3;
        /// GPUs execute from it.
        const GPU_EXEC = 1 << 4;
        /// GPUs mostly read.
        const GPU_READ_MOSTLY = 1 << 5;
        /// Mapped at all times (1.11).
        const GPU_ALWAYS_MAPPED = 1 << 6;
        /// Coherent over all agents at system scope.
        const EXT_COHERENT = 1 << 7;
    }
}

record! {
    /// One attribute; [`Svm`] is followed by an array of them.
    pub struct SvmAttribute: "kfd_ioctl_svm_attribute", 8 bytes {
        /// Which.
        pub r#type: SvmAttributeType,
        /// Its value, by its type.
        pub value: u32,
    }
}

block! {
    /// Sets or asks attributes of a range. The attributes follow the block,
    /// inside it: the request is [`Svm::request`].
    ///
    /// EAGAIN is sent again: pages could not be moved or mapped now, though the
    /// attributes are set. EPERM: a driver without SVM. EOPNOTSUPP: a secondary
    /// context. EINVAL: misaligned or empty range, unknown operation, attribute,
    /// GPU. EFAULT: a page that no mapping has. EADDRINUSE: a buffer is mapped
    /// there. ENOMEM.
    pub struct Svm: ReadWrite b'K' 0x20 "SVM", 24 bytes, EintrEagain {
        /// Address; a multiple of the page size.
        pub start_addr: u64,
        /// Bytes; a multiple of the page size.
        pub size: u64,
        /// Set or ask.
        pub op: SvmOp,
        /// Attributes that follow.
        pub nattr: u32,
    }
}

impl Svm {
    /// Most attributes of one request: its size field has 14 bits.
    pub const MAX_ATTRIBUTES: usize =
        (Request::SIZE_MAX - size_of::<Svm>()) / size_of::<SvmAttribute>();

    /// The request for a block that `attributes` follow; `None` above
    /// [`Svm::MAX_ATTRIBUTES`].
    #[must_use]
    pub const fn request(attributes: usize) -> Option<Request> {
        if attributes > Self::MAX_ATTRIBUTES {
            return None;
        }
        let tail = attributes.saturating_mul(size_of::<SvmAttribute>());
        Self::REQUEST.with_size(tail.saturating_add(size_of::<Svm>()))
    }
}

#[cfg(test)]
mod tests {
    use super::Svm;
    use crate::uapi::Request;

    #[test]
    fn the_size_counts_the_attributes() {
        assert_eq!(Svm::request(0), Some(Request(0xc018_4b20)));
        assert_eq!(Svm::request(1), Some(Request(0xc020_4b20)));
        assert_eq!(Svm::MAX_ATTRIBUTES, 2044);
        assert_eq!(Svm::request(2044).map(Request::size), Some(24 + 2044 * 8));
        assert_eq!(Svm::request(2045), None);
        assert_eq!(Svm::request(usize::MAX), None);
    }
}
