//! Reading the small files of a tree into one buffer.

use alloc::vec::Vec;
use core::ffi::CStr;

use super::path::Path;
use crate::errno::Errno;
use crate::error::{Error, Object, Operation, Status};
use crate::seam::{EndOfFile, Os};

/// Room for a file. The kernel writes at most a page, in practice a few hundred
/// bytes; with room to spare the first read is the last.
const ROOM: usize = 16 << 10;

/// The most that a file of the tree may hold, in bytes.
const LIMIT: usize = 64 << 10;

/// The most that `/proc/cpuinfo` may hold, in bytes: some thousands of CPUs.
const PROC_LIMIT: usize = 16 << 20;

/// A buffer and a path that every read shares.
pub(super) struct Files<'o, O: Os> {
    pub(super) os: &'o O,
    pub(super) path: Path,
    content: Vec<u8>,
}

/// What came of reading a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read<'a> {
    /// What it holds.
    Text(&'a [u8]),
    /// It is not there; ENODEV is what a file answers whose folder was removed
    /// while it was open.
    Missing(Errno),
    /// The device cgroup forbids it (kernel-rules section 5).
    Forbidden,
}

impl<'o, O: Os> Files<'o, O> {
    /// Prepares reading below `root`.
    pub(super) fn new(os: &'o O, root: &CStr) -> Result<Files<'o, O>, Error> {
        let mut content = Vec::new();
        content.try_reserve_exact(ROOM)?;
        Ok(Files { os, path: Path::new(root)?, content })
    }

    /// Reads the file at the path: three system calls.
    ///
    /// # Errors
    /// What the system answers but for the two cases of [`Read`].
    pub(super) fn read(&mut self, object: Object) -> Result<Read<'_>, Error> {
        self.content.clear();
        let path = self.path.as_c_str();
        match self.os.read_file(path, &mut self.content, LIMIT, EndOfFile::ShortRead) {
            Ok(()) => Ok(Read::Text(&self.content)),
            Err(errno @ (Errno::ENOENT | Errno::ENODEV)) => Ok(Read::Missing(errno)),
            Err(Errno::EPERM) => Ok(Read::Forbidden),
            Err(errno) => Err(refused(errno, object)),
        }
    }

    /// Reads a file that nothing depends on; `None` if it cannot be read.
    ///
    /// # Errors
    /// NO_MEMORY alone.
    pub(super) fn read_decoration(&mut self) -> Result<Option<&[u8]>, Error> {
        match self.read(Object::Nothing) {
            Ok(Read::Text(text)) => Ok(Some(text)),
            Ok(Read::Missing(_) | Read::Forbidden) => Ok(None),
            Err(error) if error.status == Status::NO_MEMORY => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Reads a file of `/proc` that nothing depends on into a buffer of its own.
    ///
    /// # Errors
    /// NO_MEMORY alone.
    pub(super) fn read_proc(&self, path: &CStr) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        match self.os.read_file(path, &mut text, PROC_LIMIT, EndOfFile::EmptyRead) {
            Ok(()) => Ok(text),
            Err(Errno::ENOMEM) => Err(refused(Errno::ENOMEM, Object::Nothing)),
            Err(_) => Ok(Vec::new()),
        }
    }
}

/// The error of a file or folder that the system refuses.
pub(super) fn refused(errno: Errno, object: Object) -> Error {
    let status = match errno {
        Errno::ENOMEM => Status::NO_MEMORY,
        _ => Status::ERROR,
    };
    Error::system(status, Operation::ReadFile, errno, object)
}
