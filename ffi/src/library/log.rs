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
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

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
    /// The number of the level that the environment wants on standard error, or 0.
    environment: AtomicU32,
}

impl Log {
    pub(super) const fn new() -> Log {
        Log { sink: AtomicPtr::new(ptr::null_mut()), environment: AtomicU32::new(0) }
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
    /// The library's logger: the host's sink, else standard error up to the level
    /// that the environment named at open, else nothing; whichever holds when a
    /// message comes up.
    pub(super) fn logger(&'static self) -> Logger {
        Logger::filtered(is_wanted::<H>, write::<H>, ptr::from_ref(self).expose_provenance())
    }

    /// Tells of a failure that no context could tell of.
    pub(super) fn log_failure(&self, error: &Error) {
        let user = ptr::from_ref(self).expose_provenance();
        if is_wanted::<H>(Level::Error, user) {
            write::<H>(Level::Error, format_args!("{error}"), user);
        }
    }

    /// Remembers up to which level the environment wants messages on standard error.
    pub(super) fn set_environment_level(&self, level: Option<Level>) {
        self.log.environment.store(level.map_or(0, number), Ordering::Relaxed);
    }

    /// `hsaKmtExtSetLogSink`
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

/// The library that a logger was made with.
fn library<H: Host>(user: usize) -> &'static Library<H> {
    let library: *const Library<H> = ptr::with_exposed_provenance(user);
    // SAFETY: `user` is a library in a static, see `Library::logger`.
    unsafe { &*library }
}

fn is_wanted<H: Host>(message: Level, user: usize) -> bool {
    let log = &library::<H>(user).log;
    let sink = log.sink.load(Ordering::Acquire);
    if sink.is_null() {
        return level(log.environment.load(Ordering::Relaxed))
            .is_some_and(|least| message <= least);
    }
    // SAFETY: leaked when it was set.
    message <= unsafe { (*sink).level }
}

fn write<H: Host>(level: Level, message: fmt::Arguments<'_>, user: usize) {
    let library = library::<H>(user);
    let sink = library.log.sink.load(Ordering::Acquire);
    let mut line = Line::new();
    if sink.is_null() {
        let _ = writeln!(line, "hsakmt: {level}: {message}");
        return library.host.write_log(line.as_c_str().to_bytes());
    }
    let _ = line.write_fmt(message);
    // SAFETY: leaked when it was set; its function and pointer are the host's.
    unsafe { ((*sink).function)((*sink).user, number(level), line.as_c_str().as_ptr()) };
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
