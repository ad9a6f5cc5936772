//! Further programs of the image.

use alloc::ffi::CString;
use alloc::vec::Vec;
use core::fmt;

use super::{NOT_SET_UP, Settings, System};

/// A program and its arguments.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// Its file.
    pub path: CString,
    /// What it is given, without its own name.
    pub arguments: Vec<CString>,
}

/// Reads programs as the environment has them: separated by commas, the words
/// of each by blanks.
pub(super) fn parse(list: &[u8]) -> Vec<Program> {
    let program = |words: &[u8]| {
        let mut words = words
            .split(|&byte| byte == b' ')
            .filter(|word| !word.is_empty())
            .filter_map(|word| CString::new(word).ok());
        Some(Program { path: words.next()?, arguments: words.collect() })
    };
    list.split(|&byte| byte == b',').filter_map(program).collect()
}

/// Runs the programs of the settings one after the other, says how each ended,
/// and returns the first exit status that is not 0, beginning with `own`.
pub fn run_all(system: &impl System, settings: &Settings, own: u8) -> u8 {
    let mut verdict = own;
    for program in &settings.programs {
        let name = program.path.to_string_lossy();
        system.say(format_args!("{name}:"));
        let status = match system.run(program, &settings.environment) {
            Ok(status) => {
                let ending = ending(status);
                system.say(format_args!("{name}: {ending}"));
                ending.exit_status()
            }
            Err(errno) => {
                system.warn(format_args!("{name}: not started: {errno}"));
                NOT_SET_UP
            }
        };
        if verdict == 0 {
            verdict = status;
        }
    }
    verdict
}

/// How a process ended.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Exit(u8),
    Signal(u8),
}

impl Ending {
    /// As shells have it: a signal counts from 128.
    fn exit_status(self) -> u8 {
        match self {
            Ending::Exit(code) => code,
            Ending::Signal(signal) => 128 | signal,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exit(code) => write!(f, "exit status {code}"),
            Ending::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// Decodes a wait status: the signal in the low seven bits, else the exit code
/// in the second byte.
fn ending(status: u32) -> Ending {
    let [low, code, ..] = status.to_le_bytes();
    match low & 0x7f {
        0 => Ending::Exit(code),
        signal => Ending::Signal(signal),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use hsakmt_core::errno::Errno;

    use super::super::script::Script;
    use super::*;

    #[test]
    fn wait_statuses_are_decoded() {
        assert_eq!(ending(0), Ending::Exit(0));
        assert_eq!(ending(0x0300), Ending::Exit(3));
        assert_eq!(ending(9), Ending::Signal(9));
        // with a core dump
        assert_eq!(ending(0x8b), Ending::Signal(11));
        assert_eq!(ending(0x8b).exit_status(), 139);
    }

    #[test]
    fn programs_are_separated_by_commas_and_words_by_blanks() {
        assert_eq!(
            parse(b"/a,,/b  1 x=y, ,"),
            [
                Program { path: c"/a".into(), arguments: vec![] },
                Program { path: c"/b".into(), arguments: vec![c"1".into(), c"x=y".into()] },
            ]
        );
    }

    #[test]
    fn a_program_that_does_not_start_is_a_failure() {
        let machine = Script::default();
        machine.fail("run /a", Errno::EAGAIN);
        let settings = Settings { programs: parse(b"/a"), ..Settings::default() };
        assert_eq!(run_all(&machine, &settings, 0), 125);
        assert_eq!(machine.calls()[2], "warn /a: not started: EAGAIN");
        let machine = Script::default();
        machine.fail("run /a", Errno::EAGAIN);
        assert_eq!(run_all(&machine, &settings, 4), 4);
    }
}
