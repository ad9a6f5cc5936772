//! Error numbers of the system below, and nothing else about it.

use core::fmt;

/// An error number as the Linux system-call ABI defines it (1 … 4095).
///
/// Values without a constant here are legal: the kernel's private ENOTSUPP
/// (524), for one, reaches user space from CREATE_QUEUE.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(transparent)]
pub struct Errno(pub u16);

macro_rules! errnos {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl Errno {
            $(#[doc = $text] pub const $name: Errno = Errno($value);)*

            /// The symbolic name, or `None` for a number without a constant here.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// Reads a symbolic name, as fault plans and command lines write it.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Errno> {
                match name {
                    $(stringify!($name) => Some(Errno($value)),)*
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    EPERM = 1, "Operation not permitted.";
    ENOENT = 2, "No such file or directory.";
    ESRCH = 3, "No such process; in queue and policy calls: no VM acquired.";
    EINTR = 4, "Interrupted by a signal.";
    EIO = 5, "Input/output error.";
    ENXIO = 6, "No such device or address.";
    E2BIG = 7, "Argument list too long.";
    EBADF = 9, "Bad descriptor; from KFD: the descriptor belongs to another process.";
    ECHILD = 10, "No child processes.";
    EAGAIN = 11, "Try again.";
    ENOMEM = 12, "Out of memory.";
    EACCES = 13, "Permission denied.";
    EFAULT = 14, "Bad address.";
    EBUSY = 16, "Device or resource busy.";
    EEXIST = 17, "Already exists.";
    ENODEV = 19, "No such device.";
    ENOTDIR = 20, "Not a directory.";
    EISDIR = 21, "Is a directory.";
    EINVAL = 22, "Invalid argument.";
    ENFILE = 23, "Too many open files in the system.";
    EMFILE = 24, "Too many open files in the process.";
    ENOTTY = 25, "The driver does not know this request.";
    EFBIG = 27, "File too large.";
    ENOSPC = 28, "No space left.";
    ESPIPE = 29, "Illegal seek.";
    EROFS = 30, "Read-only file system.";
    EPIPE = 32, "Nobody reads the pipe any more.";
    ERANGE = 34, "Result out of range.";
    ENAMETOOLONG = 36, "File name too long.";
    ENOSYS = 38, "System call not implemented.";
    ELOOP = 40, "Too many symbolic links.";
    ENODATA = 61, "No data available.";
    ETIME = 62, "Timer expired.";
    EPROTO = 71, "Protocol error.";
    EOVERFLOW = 75, "Value too large.";
    EBADFD = 77, "Descriptor of the wrong kind; from udmabuf: no file in memory.";
    EOPNOTSUPP = 95, "Operation not supported.";
    EADDRINUSE = 98, "Address in use; from KFD: an SVM range and a buffer at one address.";
    ETIMEDOUT = 110, "Timed out.";
    EALREADY = 114, "Already in progress.";
    ECANCELED = 125, "Cancelled.";
    EHWPOISON = 133, "Memory has a hardware error.";
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Errno;

    #[test]
    fn names_go_both_ways() {
        assert_eq!(Errno::ENOTTY.name(), Some("ENOTTY"));
        assert_eq!(Errno::from_name("ENOTTY"), Some(Errno(25)));
        assert_eq!(Errno(524).name(), None);
        assert_eq!(Errno::from_name("ENOSUCH"), None);
    }
}
