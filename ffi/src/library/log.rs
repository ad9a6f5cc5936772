//! Where messages go: nowhere by default, to a sink of the host, or to standard
//! error where HSAKMT_DEBUG_LEVEL asks for it.
//!
//! # Safety
//! A sink is a C function with a pointer of the host's. The pair is leaked on
//! purpose: another thread, or a context that was opened with it, may still be
//! using it when the next one is set. The library itself is in a static.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_void};
use core::fmt::{self, Write};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use hsakmt_core::error::Error;
use hsakmt_core::fallible::try_box;
use hsakmt_core::log::{Level, Logger};

use super::{Host, Library};
use crate::types::{HSAKMT_STATUS, HsaExtLogLevel, HsaExtLogSink};

/// Bytes of a message, with its zero; longer ones are cut.
const MESSAGE_SIZE: usize = 512;

struct Sink {
    function: unsafe extern "C" fn(*mut c_void, u32, *const c_char),
    user: *mut c_void,
    level: Level,
}

/// The host's sink, if it has set one.
#[derive(Debug)]
pub(super) struct Log {
    sink: AtomicPtr<Sink>,
}

impl Log {
    pub(super) const fn new() -> Log {
        Log { sink: AtomicPtr::new(ptr::null_mut()) }
    }
}

/// The level with this number in HSAKMT_DEBUG_LEVEL; other numbers mean nothing.
pub(super) fn level(number: u32) -> Option<Level> {
    match HsaExtLogLevel(number) {
        HsaExtLogLevel::ERROR => Some(Level::Error),
        HsaExtLogLevel::WARNING => Some(Level::Warning),
        HsaExtLogLevel::INFO => Some(Level::Info),
        HsaExtLogLevel::DEBUG => Some(Level::Debug),
        _ => None,
    }
}

fn number(level: Level) -> u32 {
    match level {
        Level::Error => HsaExtLogLevel::ERROR.0,
        Level::Warning => HsaExtLogLevel::WARNING.0,
        Level::Info => HsaExtLogLevel::INFO.0,
        Level::Debug => HsaExtLogLevel::DEBUG.0,
    }
}

impl<H: Host> Library<H> {
    /// The logger of a context that opens now: the host's sink, else standard
    /// error up to the level that the environment names, else nothing.
    pub(super) fn logger(&'static self, environment: Option<Level>) -> Logger {
        let sink = self.log.sink.load(Ordering::Acquire);
        if !sink.is_null() {
            // SAFETY: leaked when it was set.
            let level = unsafe { (*sink).level };
            return Logger::new(level, to_sink, sink.expose_provenance());
        }
        match environment {
            Some(level) => {
                Logger::new(level, to_host::<H>, ptr::from_ref(self).expose_provenance())
            }
            None => Logger::SILENT,
        }
    }

    /// `hsaKmtExtSetLogSink`: for contexts that open from now on.
    pub fn set_log_sink(
        &self,
        function: HsaExtLogSink,
        user: *mut c_void,
        number: u32,
    ) -> HSAKMT_STATUS {
        self.without_context(|| {
            let sink = match function {
                Some(function) => {
                    let level = level(number).ok_or(Error::argument(3))?;
                    let sink = try_box(Sink { function, user, level })?;
                    alloc::boxed::Box::into_raw(sink).cast()
                }
                None => ptr::null_mut(),
            };
            self.log.sink.store(sink, Ordering::Release);
            Ok(())
        })
    }
}

fn to_sink(level: Level, message: fmt::Arguments<'_>, user: usize) {
    let sink: *const Sink = ptr::with_exposed_provenance(user);
    let mut line = Line::new();
    let _ = line.write_fmt(message);
    // SAFETY: `user` is a leaked sink; its function and pointer are the host's.
    unsafe { ((*sink).function)((*sink).user, number(level), line.as_c_str().as_ptr()) };
}

fn to_host<H: Host>(level: Level, message: fmt::Arguments<'_>, user: usize) {
    let library: *const Library<H> = ptr::with_exposed_provenance(user);
    let mut line = Line::new();
    let _ = writeln!(line, "hsakmt: {level}: {message}");
    // SAFETY: `user` is the library, which is in a static.
    unsafe { &(*library).host }.write_log(line.as_c_str().to_bytes());
}

/// A message in place, zero-terminated, cut to fit.
struct Line {
    bytes: [u8; MESSAGE_SIZE],
    length: usize,
}

impl Line {
    fn new() -> Line {
        Line { bytes: [0; MESSAGE_SIZE], length: 0 }
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last byte stays zero.
        let room = self.bytes.get_mut(self.length..MESSAGE_SIZE - 1).unwrap_or_default();
        for (to, from) in room.iter_mut().zip(text.bytes()) {
            // A zero inside would end the message early.
            *to = if from == 0 { b'?' } else { from };
            self.length = self.length.saturating_add(1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_and_ended() {
        let mut line = Line::new();
        for _ in 0..100 {
            line.write_str("0123456789").unwrap();
        }
        assert_eq!(line.as_c_str().to_bytes().len(), MESSAGE_SIZE - 1);
    }

    #[test]
    fn a_zero_does_not_end_a_message() {
        let mut line = Line::new();
        line.write_str("a\0b").unwrap();
        assert_eq!(line.as_c_str(), c"a?b");
    }
}
