//! On which context a C function was called.

use hsakmt_core::error::{Error, Object};
use hsakmt_core::process::{ContextHandle, Guard};

use super::{Handle, Host, Library, handle_of, no_context};
use crate::types::{HSAKMT_STATUS, HsaKFDContext};

/// The context of a call: the primary one, or the one in front of the arguments.
#[derive(Clone, Copy)]
pub struct Receiver {
    pub(super) handle: Handle,
    /// How many arguments are in front of those of the function without a context.
    in_front: u32,
}

impl Receiver {
    /// The primary context, which functions without a context argument mean.
    pub const PRIMARY: Receiver = Receiver { handle: Some(ContextHandle::PRIMARY), in_front: 0 };

    /// The context that the first argument names.
    #[must_use]
    pub fn of(context: *mut HsaKFDContext) -> Receiver {
        Receiver { handle: handle_of(context), in_front: 1 }
    }

    /// Fails where the handle is none.
    pub(super) fn check(self) -> Result<(), Error> {
        self.handle.map(drop).ok_or_else(no_context)
    }

    /// The failure with the position that a wrong argument has in this function.
    #[cold]
    pub(super) fn placed(self, error: Error) -> Error {
        match error.object {
            Object::Argument(position) => {
                Error { object: Object::Argument(position.saturating_add(self.in_front)), ..error }
            }
            _ => error,
        }
    }
}

impl<H: Host> Library<H> {
    /// Runs a call inside its context. Positions of wrong arguments are those in the
    /// function without a context, core's too.
    pub(super) fn on(
        &self,
        receiver: Receiver,
        call: impl FnOnce(&Guard<'_, H::Platform>) -> Result<(), Error>,
    ) -> HSAKMT_STATUS {
        self.inside(receiver.handle, |guard| call(guard).map_err(|error| receiver.placed(error)))
    }
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use super::*;

    #[test]
    fn a_context_in_front_moves_the_arguments() {
        let wrong = Error::argument(2);
        assert_eq!(Receiver::PRIMARY.placed(wrong), wrong);
        let receiver = Receiver::of(ptr::without_provenance_mut(8));
        assert_eq!(receiver.placed(wrong), Error::argument(3));
        assert_eq!(receiver.placed(Error::not_open()), Error::not_open());
        assert_eq!(Receiver::of(ptr::null_mut()).check(), Err(Error::argument(1)));
    }
}
