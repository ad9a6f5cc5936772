//! What a path leads to.
//!
//! # Safety
//!
//! Pointers handed to the kernel come from references that outlive the call; it
//! keeps none of them, and writes one `statx`.
#![allow(unsafe_code)]

use core::ffi::CStr;
use core::fmt;
use core::mem::MaybeUninit;

use hsakmt_core::errno::Errno;
use hsakmt_linux_shim::arch::syscall5;
use linux_raw_sys::general::{
    __NR_statx, AT_FDCWD, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK,
    STATX_TYPE, statx,
};

/// The type of a file (inode(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileType(u32);

impl FileType {
    /// A named pipe.
    pub const PIPE: FileType = FileType(S_IFIFO);

    /// Asks for the type of what is at `path`, through symbolic links. Nothing is
    /// opened: an open of a named pipe waits for a writer, and one of a device may
    /// do anything.
    ///
    /// # Errors
    /// Those of statx(2); ENOSYS on kernels before 4.11.
    pub fn of(path: &CStr) -> Result<FileType, Errno> {
        let mut answer = MaybeUninit::<statx>::zeroed();
        let here = AT_FDCWD as isize as usize;
        let path = path.as_ptr().expose_provenance();
        let into = answer.as_mut_ptr().expose_provenance();
        // SAFETY: the kernel reads the path and fills `answer`.
        let failed = unsafe { syscall5(__NR_statx, here, path, 0, STATX_TYPE as usize, into) };
        if let number @ 1..=4095 = failed.wrapping_neg() {
            return Err(Errno(number as u16));
        }
        // SAFETY: zeroed before the call, and numbers throughout.
        let answer = unsafe { answer.assume_init() };
        Ok(FileType(u32::from(answer.stx_mode) & S_IFMT))
    }

    /// Whether an open and a read of it end: it is a regular file, or a folder,
    /// whose read is refused.
    #[must_use]
    pub const fn is_file_or_folder(self) -> bool {
        matches!(self.0, S_IFREG | S_IFDIR)
    }
}

impl fmt::Display for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            S_IFREG => "a file",
            S_IFDIR => "a folder",
            S_IFIFO => "a named pipe",
            S_IFSOCK => "a socket",
            S_IFCHR => "a character device",
            S_IFBLK => "a block device",
            _ => "neither a file nor a folder",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn the_target_of_a_link_counts() {
        for (path, name) in [
            (c"/proc/self/exe", "a file"),
            (c"/proc/self/cwd", "a folder"),
            (c"/dev/null", "a character device"),
        ] {
            let found = FileType::of(path).unwrap();
            assert_eq!(found.to_string(), name);
            assert_eq!(found.is_file_or_folder(), path != c"/dev/null");
        }
        assert_eq!(FileType::of(c"/nonexistent"), Err(Errno::ENOENT));
    }
}
