//! The API trace: a sink sees every exported call when it returns.
//!
//! # Safety
//! The sink is a C function that the host gave with a pointer of its own. Both
//! live in one atomic pointer to a pair that is leaked on purpose: a call on
//! another thread may still be using the former pair when a new one is set.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use hsakmt_core::error::Error;
use hsakmt_core::fallible::try_box;
use hsakmt_core::seam::{Clock, Os, Platform};

use super::{Host, Library};
use crate::types::{
    HSA_QUEUE_PRIORITY, HSA_QUEUE_TYPE, HSA_REGISTER_MEM_FLAGS, HSAKMT_STATUS, HsaExtEventCallback,
    HsaExtTraceRecord, HsaExtTraceSink, HsaMemFlags, HsaMemMapFlags, HsaMemoryMapFlags,
};

struct Sink {
    function: unsafe extern "C" fn(*mut c_void, *const HsaExtTraceRecord),
    user: *mut c_void,
}

/// The sink of the API trace, if there is one.
#[derive(Debug)]
pub(super) struct Trace {
    sink: AtomicPtr<Sink>,
}

impl Trace {
    pub(super) const fn new() -> Trace {
        Trace { sink: AtomicPtr::new(ptr::null_mut()) }
    }
}

/// An argument of a C function as a trace shows it.
pub trait Word: Copy {
    /// The argument, widened to 64 bits.
    fn word(self) -> u64;
}

macro_rules! words {
    ($($integer:ty),*) => {
        $(impl Word for $integer {
            fn word(self) -> u64 {
                self as u64
            }
        })*
    };
}

words!(bool, u8, u32, u64, i32, i64, usize);

impl Word for HSA_QUEUE_TYPE {
    fn word(self) -> u64 {
        self.0.word()
    }
}

impl Word for HSA_QUEUE_PRIORITY {
    fn word(self) -> u64 {
        self.0.word()
    }
}

impl Word for HsaMemFlags {
    fn word(self) -> u64 {
        self.Value.word()
    }
}

impl Word for HsaMemoryMapFlags {
    fn word(self) -> u64 {
        self.0.word()
    }
}

impl Word for HsaMemMapFlags {
    fn word(self) -> u64 {
        self.Value.word()
    }
}

impl Word for HsaExtEventCallback {
    fn word(self) -> u64 {
        self.map_or(0, |function| (function as *const ()).addr() as u64)
    }
}

impl Word for HSA_REGISTER_MEM_FLAGS {
    fn word(self) -> u64 {
        self.Value.word()
    }
}

impl<T> Word for *mut T {
    fn word(self) -> u64 {
        self.addr() as u64
    }
}

impl<T> Word for *const T {
    fn word(self) -> u64 {
        self.addr() as u64
    }
}

impl<H: Host> Library<H> {
    /// Runs an exported function; tells the sink, if there is one.
    ///
    /// Without a sink this costs one load and one branch.
    #[inline]
    pub fn traced<const N: usize>(
        &self,
        function: &'static CStr,
        arguments: impl FnOnce() -> [u64; N],
        call: impl FnOnce() -> HSAKMT_STATUS,
    ) -> HSAKMT_STATUS {
        let sink = self.trace.sink.load(Ordering::Acquire);
        if sink.is_null() {
            return call();
        }
        self.tell(sink, function, &arguments(), call)
    }

    #[cold]
    fn tell(
        &self,
        sink: *mut Sink,
        function: &'static CStr,
        arguments: &[u64],
        call: impl FnOnce() -> HSAKMT_STATUS,
    ) -> HSAKMT_STATUS {
        let os = self.process.platform().os();
        let before = os.now(Clock::Monotonic);
        let status = call();
        let record = HsaExtTraceRecord {
            Size: size_of::<HsaExtTraceRecord>() as u32,
            ArgumentCount: arguments.len() as u32,
            Function: function.as_ptr(),
            Arguments: arguments.as_ptr(),
            Status: status,
            Reserved: 0,
            DurationNs: os.now(Clock::Monotonic).saturating_sub(before),
        };
        // SAFETY: set below from a leaked box, never freed; the function is the host's.
        unsafe { ((*sink).function)((*sink).user, &raw const record) };
        status
    }

    /// `hsaKmtExtSetTraceSink`
    pub fn set_trace_sink(&self, function: HsaExtTraceSink, user: *mut c_void) -> HSAKMT_STATUS {
        self.without_context(|| {
            let sink = match function {
                Some(function) => leak(Sink { function, user })?,
                None => ptr::null_mut(),
            };
            self.trace.sink.store(sink, Ordering::Release);
            Ok(())
        })
    }
}

fn leak(sink: Sink) -> Result<*mut Sink, Error> {
    Ok(alloc::boxed::Box::into_raw(try_box(sink)?).cast())
}
