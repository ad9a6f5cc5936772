//! What an address belongs to, and what the caller attached to it.
//!
//! # Safety
//! Out-parameters are the caller's structures, written only through
//! `caller_memory`. The arrays that they point to are core's, which changes none
//! of them while the context is open.
#![allow(unsafe_code)]

use core::ffi::c_void;

use hsakmt_core::error::{Error, Status};
use zerocopy::FromZeros;

use super::receiver::Receiver;
use super::{Host, Library};
use crate::conversion;
use crate::generation::address::address_of;
use crate::generation::caller_memory;
use crate::types::{HSAKMT_STATUS, HsaPointerInfo};

impl<H: Host> Library<H> {
    /// `hsaKmtQueryPointerInfo`, `hsaKmtQueryPointerInfoCtx`
    ///
    /// That an address belongs to nothing is an answer, which runtimes ask for at
    /// every copy: it has the status of a failure but is not remembered as one,
    /// which would cost a system call.
    ///
    /// # Safety
    /// `info` is NULL or writable.
    pub unsafe fn pointer_info(
        &self,
        receiver: Receiver,
        pointer: *const c_void,
        info: *mut HsaPointerInfo,
    ) -> HSAKMT_STATUS {
        let handle = receiver.handle;
        let Some(guard) = self.enter(handle) else { return self.closed(handle) };
        let written = match guard.pointer_info(address_of(pointer)) {
            // SAFETY: the caller's promise.
            Ok(found) => unsafe { caller_memory::write(info, conversion::pointer_info(&found)) },
            Err(error) => {
                drop(guard);
                // SAFETY: the caller's promise.
                return unsafe { self.no_pointer_info(receiver, info, &error) };
            }
        };
        drop(guard);
        match written {
            Ok(()) => HSAKMT_STATUS::SUCCESS,
            Err(_) => self.fail(handle, &receiver.placed(Error::argument(2))),
        }
    }

    /// The answer about an address that belongs to nothing.
    ///
    /// # Safety
    /// `info` is NULL or writable.
    #[cold]
    unsafe fn no_pointer_info(
        &self,
        receiver: Receiver,
        info: *mut HsaPointerInfo,
        error: &Error,
    ) -> HSAKMT_STATUS {
        if error.status != Status::ERROR {
            return self.fail(receiver.handle, error);
        }
        // SAFETY: the caller's promise.
        match unsafe { caller_memory::write(info, HsaPointerInfo::new_zeroed()) } {
            Ok(()) => HSAKMT_STATUS::ERROR,
            Err(_) => self.fail(receiver.handle, &receiver.placed(Error::argument(2))),
        }
    }

    /// `hsaKmtSetMemoryUserData`, `hsaKmtSetMemoryUserDataCtx`
    pub fn set_user_data(
        &self,
        receiver: Receiver,
        pointer: *const c_void,
        data: *mut c_void,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| guard.set_user_data(address_of(pointer), address_of(data)))
    }
}
