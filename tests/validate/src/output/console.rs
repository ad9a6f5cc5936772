//! Getting output out.

use core::fmt;

use hsakmt_core::errno::Errno;

/// Where the program's output goes.
pub trait Console {
    /// Writes to standard output; returns how many of the bytes were taken.
    ///
    /// # Errors
    /// Those of write(2) but EAGAIN: it waits. A closed pipe is EPIPE, not a signal.
    fn write_output(&mut self, bytes: &[u8]) -> Result<usize, Errno>;

    /// Writes to standard error, as far as that is possible.
    fn write_error(&mut self, bytes: &[u8]);

    /// Whether standard error is a terminal, at which somebody may look.
    fn error_is_terminal(&self) -> bool {
        false
    }
}

/// Writes all of `bytes` to standard output.
///
/// # Errors
/// The first answer other than EINTR; EIO when nothing is taken any more.
pub fn print(console: &mut dyn Console, bytes: &[u8]) -> Result<(), Errno> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match console.write_output(rest) {
            Ok(0) => return Err(Errno::EIO),
            Ok(taken) => rest = rest.get(taken..).unwrap_or(&[]),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Writes one line to standard error, after the program's name.
pub fn complain(console: &mut dyn Console, complaint: impl fmt::Display) {
    // One write for the whole line, so that lines of several processes do not mix.
    console.write_error(alloc::format!("kfd-validate: {complaint}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Takes at most three bytes at a time; answers errors by plan.
    struct Slow {
        taken: Vec<u8>,
        answers: Vec<Result<usize, Errno>>,
    }

    impl Console for Slow {
        fn write_output(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
            match self.answers.pop() {
                Some(answer) => answer,
                None => {
                    let count = bytes.len().min(3);
                    self.taken.extend_from_slice(&bytes[..count]);
                    Ok(count)
                }
            }
        }

        fn write_error(&mut self, _: &[u8]) {}
    }

    #[test]
    fn short_writes_and_interruptions_lose_nothing() {
        let answers = [Err(Errno::EINTR), Err(Errno::EINTR)].to_vec();
        let mut slow = Slow { taken: Vec::new(), answers };
        assert_eq!(print(&mut slow, b"0123456789"), Ok(()));
        assert_eq!(slow.taken, b"0123456789");
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        for (answer, errno) in [
            (Err(Errno::EPIPE), Errno::EPIPE),
            (Err(Errno::ENOSPC), Errno::ENOSPC),
            (Ok(0), Errno::EIO),
        ] {
            let mut slow = Slow { taken: Vec::new(), answers: [answer].to_vec() };
            assert_eq!(print(&mut slow, b"x"), Err(errno));
        }
    }
}
