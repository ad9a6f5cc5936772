//! The state of the C library, and what its functions have in common.

mod array;
mod buffer_object;
mod context;
mod copy;
mod detail;
mod environment;
mod event;
mod libdrm;
mod log;
mod memory;
mod pointer_info;
mod queue;
mod receiver;
mod registration;
mod sharing;
mod svm;
mod topology;
mod trace;

use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr::NonNull;

use hsakmt_core::context::RenderFiles;
use hsakmt_core::error::{Error, Status};
use hsakmt_core::process::{ContextHandle, Guard, Process};
use hsakmt_core::seam::Platform;

use crate::generation::Generation;
use crate::types::{HSAKMT_STATUS, HsaKFDContext};
pub use receiver::Receiver;
pub use trace::Word;

impl From<Status> for HSAKMT_STATUS {
    fn from(status: Status) -> HSAKMT_STATUS {
        HSAKMT_STATUS(status.0)
    }
}

impl From<HSAKMT_STATUS> for Error {
    /// A pointer that [`caller_memory`](crate::generation::caller_memory) refused.
    fn from(status: HSAKMT_STATUS) -> Error {
        Error::argument(0).with_status(Status(status.0))
    }
}

/// What a final artefact has and this crate has not.
pub trait Host: Sync + 'static {
    /// The operating system and driver.
    type Platform: Platform;
    /// The generation of C structures that callers were compiled with.
    type Generation: Generation;

    /// Shows each `NAME=value` of the environment; called once, at open.
    fn variables(&self, visit: &mut dyn FnMut(&[u8]));
    /// A libdrm_amdgpu in the process, whose devices and ours are to have one file each.
    fn libdrm(&self) -> Option<&'static dyn Libdrm> {
        None
    }
    /// Writes a line of log for a person, where HSAKMT_DEBUG_LEVEL asks for it.
    fn write_log(&self, line: &[u8]);
}

/// A libdrm_amdgpu in the process.
pub trait Libdrm: Sync {
    /// The files of its devices.
    fn render_files(&self) -> &dyn RenderFiles;

    /// Its device (`amdgpu_device_handle`) on the file that the GPU of a render node is
    /// bound to; `None` where there is none in this process.
    fn device(&self, render_minor: u32) -> Option<NonNull<c_void>>;

    /// The file of a device that [`Libdrm::device`] gave; `None` for every other pointer.
    fn file_of(&self, device: *mut c_void) -> Option<i32>;

    /// The render node of a device that [`Libdrm::device`] gave; `None` for every other
    /// pointer.
    fn render_minor(&self, device: *mut c_void) -> Option<u32>;
}

/// The C library. A leaf crate has one in a static.
pub struct Library<H: Host> {
    host: H,
    process: Process<H::Platform>,
    trace: trace::Trace,
    log: log::Log,
    generation: PhantomData<fn() -> H::Generation>,
}

/// Which context a C function was called on; none for NULL.
type Handle = Option<ContextHandle>;

/// The handle in a `HsaKFDContext *`.
fn handle_of(context: *mut HsaKFDContext) -> Handle {
    ContextHandle::from_raw(context.expose_provenance())
}

/// The failure of a call on NULL instead of a context.
#[cold]
fn no_context() -> Error {
    Error::argument(1)
}

impl<H: Host> Library<H> {
    /// The library in a process that has not called it yet.
    pub const fn new(host: H, platform: H::Platform) -> Library<H> {
        Library {
            host,
            process: Process::new(platform),
            trace: trace::Trace::new(),
            log: log::Log::new(),
            generation: PhantomData,
        }
    }

    /// The status of a finished call; a failure is remembered for the thread.
    #[inline]
    fn finish(&self, handle: Option<ContextHandle>, result: Result<(), Error>) -> HSAKMT_STATUS {
        match result {
            Ok(()) => HSAKMT_STATUS::SUCCESS,
            Err(error) => self.fail(handle, &error),
        }
    }

    /// Remembers a failure for the thread.
    #[cold]
    fn fail(&self, handle: Option<ContextHandle>, error: &Error) -> HSAKMT_STATUS {
        if !self.process.record(handle, error) {
            self.log_failure(error);
        }
        error.status.into()
    }

    /// Runs a call that belongs to no open context.
    fn without_context(&self, call: impl FnOnce() -> Result<(), Error>) -> HSAKMT_STATUS {
        self.finish(None, call())
    }

    /// Runs a call inside a context.
    fn inside(
        &self,
        handle: Handle,
        call: impl FnOnce(&Guard<'_, H::Platform>) -> Result<(), Error>,
    ) -> HSAKMT_STATUS {
        let Some(guard) = self.enter(handle) else { return self.closed(handle) };
        let result = call(&guard);
        drop(guard);
        self.finish(handle, result)
    }

    /// Enters a context for one call, if it is open; if not, [`Library::closed`]
    /// answers.
    #[inline(always)]
    fn enter(&self, handle: Handle) -> Option<Guard<'_, H::Platform>> {
        self.process.enter_if_open(handle?)
    }

    /// The status of a call on a context that is not open.
    #[cold]
    fn closed(&self, handle: Handle) -> HSAKMT_STATUS {
        let error = match handle {
            Some(handle) => self.process.closed(handle),
            None => no_context(),
        };
        self.fail(None, &error)
    }
}
