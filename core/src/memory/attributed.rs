//! Pages of the process for the driver's own use, which GPUs reach by attributes:
//! they are in nobody's books and belong to whoever made them.

use super::access::Access;
use super::regions::{HUGE_PAGE, Reserved, reserve, to_usize};
use super::register::Pages;
use crate::errno::Errno;
use crate::error::{self, Error, Operation, Status};
use crate::seam::{Advice, Os, Platform, Protection};
use crate::topology::Aperture;
use crate::uapi::kfd::{SvmAttribute, SvmOp};

/// Private pages, aligned to a huge page, absent in forked children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttributedPages {
    reserved: Reserved,
}

impl AttributedPages {
    /// Their first address.
    pub(crate) fn address(&self) -> u64 {
        self.reserved.aligned
    }
}

impl<P: Platform> Access<'_, P> {
    /// Makes pages of `length` bytes, lets `prepare` write into them, and gives them
    /// attributes, whose values are the driver's.
    ///
    /// # Errors
    /// NO_MEMORY with the system's errno; ERROR with the driver's. Nothing is left.
    pub(crate) fn make_attributed(
        &self,
        length: u64,
        attributes: &[SvmAttribute],
        prepare: impl FnOnce(u64),
    ) -> Result<AttributedPages, Error> {
        let os = self.os();
        let anywhere = Aperture { base: 0, limit: u64::MAX };
        let bounds = self.common_range()?.unwrap_or(anywhere);
        let reserved = reserve(os, length, HUGE_PAGE, bounds)?;
        let made = AttributedPages { reserved };
        let open = || -> Result<(), Errno> {
            let (start, bytes) = (to_usize(made.address())?, to_usize(length)?);
            os.protect(start, bytes, Protection::READ | Protection::WRITE)?;
            // A child must not stop the parent's queues by copying its pages on write.
            os.advise(start, bytes, Advice::DontFork)
        };
        let opened = open().map_err(|errno| {
            let object = error::Object::Bytes(length);
            Error::system(Status::NO_MEMORY, Operation::ProtectMemory, errno, object)
        });
        let registered = opened.and_then(|()| {
            prepare(made.address());
            self.svm(Pages { start: made.address(), length }, SvmOp::SET_ATTR, attributes)
        });
        match registered {
            Ok(_) => Ok(made),
            Err(error) => {
                let _ = reserved.release(os);
                Err(error)
            }
        }
    }

    /// Takes pages away, and their attributes with them.
    ///
    /// # Errors
    /// ERROR with the system's errno.
    pub(crate) fn unmake_attributed(&self, pages: &AttributedPages) -> Result<(), Error> {
        pages.reserved.release(self.os()).map_err(|errno| {
            let object = error::Object::Address(pages.address());
            Error::system(Status::ERROR, Operation::UnmapMemory, errno, object)
        })
    }
}
