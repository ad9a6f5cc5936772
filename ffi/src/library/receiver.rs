//! On which context a C function was called.

use hsakmt_core::error::Error;
use hsakmt_core::process::ContextHandle;

use super::{Handle, handle_of};
use crate::types::HsaKFDContext;

/// The context of a call: the primary one, or the one in front of the arguments.
#[derive(Clone, Copy)]
pub(super) struct Receiver {
    pub(super) handle: Handle,
    /// How many arguments are in front of those of the function without a context.
    in_front: u32,
}

impl Receiver {
    /// The primary context, which functions without a context argument mean.
    pub(super) const PRIMARY: Receiver =
        Receiver { handle: Ok(ContextHandle::PRIMARY), in_front: 0 };

    /// The context that the first argument names.
    pub(super) fn of(context: *mut HsaKFDContext) -> Receiver {
        Receiver { handle: handle_of(context), in_front: 1 }
    }

    /// An argument is wrong; `position` is that in the function without a context.
    pub(super) fn argument(self, position: u32) -> Error {
        Error::argument(position.saturating_add(self.in_front))
    }
}
