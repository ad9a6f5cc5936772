//! Standard output and error, by line.

use core::fmt;

use hsakmt_core::errno::Errno;

use crate::fd::BorrowedFd;
use crate::syscall::{file, restart};

/// Bytes kept back until a line is complete.
const LINE: usize = 1024;

/// A stream that writes whole lines, or what fits, in one system call each, and
/// the rest when dropped.
#[derive(Debug)]
pub struct Output {
    stream: BorrowedFd<'static>,
    line: [u8; LINE],
    length: usize,
}

impl Output {
    /// Descriptor 1.
    #[must_use]
    pub const fn standard() -> Output {
        Output::to(BorrowedFd::STANDARD_OUTPUT)
    }

    /// Descriptor 2.
    #[must_use]
    pub const fn error() -> Output {
        Output::to(BorrowedFd::STANDARD_ERROR)
    }

    /// A stream on any descriptor.
    #[must_use]
    pub const fn to(stream: BorrowedFd<'static>) -> Output {
        Output { stream, line: [0; LINE], length: 0 }
    }

    /// Adds bytes; complete lines go out at once.
    ///
    /// # Errors
    /// Those of write(2).
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), Errno> {
        let line_end = bytes.iter().rposition(|&byte| byte == b'\n');
        while !bytes.is_empty() {
            let room = self.line.get_mut(self.length..).unwrap_or(&mut []);
            let (now, later) = bytes.split_at(room.len().min(bytes.len()));
            for (place, byte) in room.iter_mut().zip(now) {
                *place = *byte;
            }
            self.length = self.length.saturating_add(now.len());
            bytes = later;
            if self.length >= LINE {
                self.flush()?;
            }
        }
        if line_end.is_some() { self.flush() } else { Ok(()) }
    }

    /// Writes out what is kept back.
    ///
    /// # Errors
    /// Those of write(2); what could not be written is dropped.
    pub fn flush(&mut self) -> Result<(), Errno> {
        let length = core::mem::take(&mut self.length);
        let mut left = self.line.get(..length).unwrap_or(&[]);
        while !left.is_empty() {
            let written = restart(|| file::write(self.stream, left))?;
            if written == 0 {
                return Err(Errno::EIO);
            }
            left = left.get(written..).unwrap_or(&[]);
        }
        Ok(())
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // A destructor has nobody to tell.
        let _ = self.flush();
    }
}
