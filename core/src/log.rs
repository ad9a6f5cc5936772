//! Messages for people: nothing by default, a sink on request, defmt for
//! programs that run on defmt.
//!
//! A [`Logger`] is a value that the context's options carry; there is no global
//! one. The macros `error!`, `warning!`, `info!` and `debug!` take it first:
//! `warning!(logger, "the kernel does not know {}", "SVM")`. Arguments are
//! evaluated only when the message is wanted. To compile under defmt, too, a
//! message uses positional `{}`, `{:?}` and `{:x}` only, and its arguments are
//! `defmt::Format` under that feature.
//!
//! Each place in the code says at most [`Site::LIMIT`] messages in the life of the
//! process and then once that it says no more, however many contexts there are.
//!
//! # Features
//! - neither: the logger's function gets messages up to its level.
//! - `defmt`: messages go to defmt, filtered by `DEFMT_LOG` when compiled; the
//!   logger's function and level are not used. Only end-user programs set it.
//! - `log-off`: messages are type-checked and leave no code behind.

#![allow(unused_macros, unused_imports, reason = "not every level has a message at every time")]

use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[cfg(all(feature = "defmt", feature = "log-off"))]
compile_error!("the features `defmt` and `log-off` exclude each other");

/// How important a message is; what is more important is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// Something failed that should not.
    Error = 1,
    /// Something is odd and was worked around.
    Warning = 2,
    /// Something that happens once or seldom.
    Info = 3,
    /// Everything worth knowing when looking for a fault.
    Debug = 4,
}

impl Level {
    /// `error`, `warning`, `info` or `debug`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Takes one message without a line end. The last argument is the word that the
/// [`Logger`] was made with. Called on the thread that has something to say; it
/// must not call the library.
pub type LogSink = fn(Level, fmt::Arguments<'_>, usize);

/// Where messages go and which.
#[derive(Debug, Clone, Copy)]
pub struct Logger {
    sink: Option<LogSink>,
    user: usize,
    wanted: Wanted,
}

/// Which messages a logger hands on.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    UpTo(Level),
    Asking(LogFilter),
}

/// Whether messages of a level are wanted at the moment; the last argument is
/// the word that the [`Logger`] was made with.
pub type LogFilter = fn(Level, usize) -> bool;

impl Logger {
    /// Says nothing.
    pub const SILENT: Logger = Logger { sink: None, user: 0, wanted: Wanted::UpTo(Level::Error) };

    /// Hands messages that are as important as `level` or more to `sink`,
    /// together with `user`.
    #[must_use]
    pub const fn new(level: Level, sink: LogSink, user: usize) -> Logger {
        Logger { sink: Some(sink), user, wanted: Wanted::UpTo(level) }
    }

    /// Hands messages to `sink` when `filter` says that they are wanted, so that
    /// the level can change while the logger is in use.
    #[must_use]
    pub const fn filtered(filter: LogFilter, sink: LogSink, user: usize) -> Logger {
        Logger { sink: Some(sink), user, wanted: Wanted::Asking(filter) }
    }

    /// Whether a message of this level is wanted.
    #[must_use]
    pub fn is_enabled(&self, level: Level) -> bool {
        self.sink.is_some()
            && match self.wanted {
                Wanted::UpTo(least) => level <= least,
                Wanted::Asking(filter) => filter(level, self.user),
            }
    }

    /// Hands on one message if its level is wanted, without any limit.
    pub fn write(&self, level: Level, message: fmt::Arguments<'_>) {
        if let (Some(sink), true) = (self.sink, self.is_enabled(level)) {
            sink(level, message, self.user);
        }
    }
}

impl Default for Logger {
    fn default() -> Logger {
        Logger::SILENT
    }
}

/// What a place in the code may still say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The message.
    Message,
    /// That there is no more to come.
    LastWord,
    /// Nothing.
    Nothing,
}

/// The rate limit of one place in the code; the macros make it.
#[derive(Debug)]
pub struct Site {
    asked: AtomicU32,
}

impl Site {
    /// Messages before the last word.
    pub const LIMIT: u32 = 8;

    /// A place that has said nothing yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "made in statics only")]
    pub const fn new() -> Site {
        Site { asked: AtomicU32::new(0) }
    }

    /// Counts one wish to speak.
    pub fn admit(&self) -> Admission {
        // Stays a few above the limit at most, so it cannot wrap.
        if self.asked.load(Relaxed) > Self::LIMIT {
            return Admission::Nothing;
        }
        match self.asked.fetch_add(1, Relaxed) {
            said if said < Self::LIMIT => Admission::Message,
            Self::LIMIT => Admission::LastWord,
            _ => Admission::Nothing,
        }
    }
}

/// Passes a message of a level to a logger or to defmt.
#[cfg(not(any(feature = "defmt", feature = "log-off")))]
macro_rules! log_at {
    ($level:ident, $defmt:ident, $logger:expr, $($message:tt)+) => {{
        let logger: &$crate::log::Logger = &$logger;
        if logger.is_enabled($crate::log::Level::$level) {
            static SITE: $crate::log::Site = $crate::log::Site::new();
            match SITE.admit() {
                $crate::log::Admission::Message => {
                    logger.write($crate::log::Level::$level, format_args!($($message)+));
                }
                $crate::log::Admission::LastWord => logger.write(
                    $crate::log::Level::$level,
                    format_args!("further messages from {}:{} suppressed", file!(), line!()),
                ),
                $crate::log::Admission::Nothing => {}
            }
        }
    }};
}

#[cfg(all(feature = "defmt", not(feature = "log-off")))]
macro_rules! log_at {
    ($level:ident, $defmt:ident, $logger:expr, $($message:tt)+) => {{
        let _: &$crate::log::Logger = &$logger;
        static SITE: $crate::log::Site = $crate::log::Site::new();
        match SITE.admit() {
            $crate::log::Admission::Message => defmt::$defmt!($($message)+),
            $crate::log::Admission::LastWord => {
                defmt::$defmt!("further messages from this place suppressed");
            }
            $crate::log::Admission::Nothing => {}
        }
    }};
}

#[cfg(feature = "log-off")]
macro_rules! log_at {
    ($level:ident, $defmt:ident, $logger:expr, $($message:tt)+) => {
        if false {
            let _: &$crate::log::Logger = &$logger;
            let _ = format_args!($($message)+);
        }
    };
}

/// Says that something failed that should not: `error!(logger, "...", …)`.
macro_rules! error {
    ($logger:expr, $($message:tt)+) => {
        $crate::log::log_at!(Error, error, $logger, $($message)+)
    };
}

/// Says that something is odd and was worked around.
macro_rules! warning {
    ($logger:expr, $($message:tt)+) => {
        $crate::log::log_at!(Warning, warn, $logger, $($message)+)
    };
}

/// Says something that happens once or seldom.
macro_rules! info {
    ($logger:expr, $($message:tt)+) => {
        $crate::log::log_at!(Info, info, $logger, $($message)+)
    };
}

/// Says what helps to find a fault.
macro_rules! debug {
    ($logger:expr, $($message:tt)+) => {
        $crate::log::log_at!(Debug, debug, $logger, $($message)+)
    };
}

pub(crate) use {debug, error, info, log_at, warning};

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{Level, Logger, Site};
    use crate::errno::Errno;
    use crate::log;

    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;
    use core::fmt;
    use std::cell::RefCell;

    std::thread_local! {
        static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    fn remember(level: Level, message: fmt::Arguments<'_>, user: usize) {
        LINES.with_borrow_mut(|lines| lines.push(format!("{user} {level}: {message}")));
    }

    fn lines() -> Vec<String> {
        LINES.with_borrow_mut(core::mem::take)
    }

    fn speak(logger: Logger) {
        log::error!(logger, "cannot open {}", "/dev/kfd");
        log::warning!(logger, "answer {:?} after {:x}", Errno::EIO, 31);
        log::info!(logger, "plain");
        log::debug!(&logger, "trailing comma {}", 1,);
    }

    #[test]
    #[cfg(not(any(feature = "defmt", feature = "log-off")))]
    fn the_level_decides() {
        let all = [
            "5 error: cannot open /dev/kfd",
            "5 warning: answer EIO after 1f",
            "5 info: plain",
            "5 debug: trailing comma 1",
        ];
        for (count, level) in
            [Level::Error, Level::Warning, Level::Info, Level::Debug].into_iter().enumerate()
        {
            speak(Logger::new(level, remember, 5));
            assert_eq!(lines(), all[..=count]);
        }
    }

    #[test]
    fn silent_by_default() {
        speak(Logger::default());
        assert_eq!(lines(), Vec::<String>::new());
        assert!(!Logger::SILENT.is_enabled(Level::Error));
        Logger::SILENT.write(Level::Error, format_args!("unheard"));
        assert_eq!(lines(), Vec::<String>::new());
    }

    #[test]
    #[cfg(feature = "log-off")]
    fn off_is_off() {
        let logger = Logger::new(Level::Debug, remember, 5);
        let evaluated = core::cell::Cell::new(false);
        log::error!(logger, "{:?}", evaluated.set(true));
        speak(logger);
        assert_eq!(lines(), Vec::<String>::new());
        assert!(!evaluated.get());
    }

    #[test]
    fn arguments_of_unwanted_messages_are_not_evaluated() {
        let logger = Logger::new(Level::Warning, remember, 0);
        let evaluated = core::cell::Cell::new(0);
        log::info!(logger, "{:?}", evaluated.set(1));
        assert_eq!(evaluated.get(), 0);
    }

    #[test]
    #[cfg(not(any(feature = "defmt", feature = "log-off")))]
    fn a_place_falls_silent_and_says_so() {
        let logger = Logger::new(Level::Debug, remember, 0);
        let mut line = 0;
        for number in 0..20 {
            line = line!() + 1;
            log::error!(logger, "number {}", number);
        }
        let mut expected: Vec<String> =
            (0..Site::LIMIT).map(|number| format!("0 error: number {number}")).collect();
        let file = file!();
        expected.push(format!("0 error: further messages from {file}:{line} suppressed"));
        assert_eq!(lines(), expected);

        log::error!(logger, "another place");
        assert_eq!(lines(), ["0 error: another place"]);
    }

    #[test]
    #[cfg(not(any(feature = "defmt", feature = "log-off")))]
    fn unwanted_messages_do_not_use_up_the_limit() {
        let say = |logger: Logger| log::info!(logger, "here");
        for _ in 0..20 {
            say(Logger::SILENT);
            say(Logger::new(Level::Warning, remember, 0));
        }
        say(Logger::new(Level::Info, remember, 0));
        assert_eq!(lines(), ["0 info: here"]);
    }
}
