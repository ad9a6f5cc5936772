//! One function per system call, by topic.
//!
//! A function is `unsafe` when wrong arguments could break memory that Rust
//! code relies on; its caller then says why they are right. Those that only
//! fill memory which their own argument types own are safe.

pub(crate) mod file;
pub(crate) mod futex;
pub(crate) mod ioctl;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod time;

use hsakmt_core::errno::Errno;

/// Tells the kernel's raw answer apart: the last 4095 values are errors.
#[inline]
fn check(answer: usize) -> Result<usize, Errno> {
    if answer <= usize::MAX - 4095 { Ok(answer) } else { Err(errno(answer)) }
}

/// The error in the kernel's answer.
#[cold]
fn errno(answer: usize) -> Errno {
    Errno(answer.wrapping_neg() as u16)
}

/// Issues a call again for as long as a signal interrupts it.
#[inline]
pub(crate) fn restart<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{check, restart};
    use hsakmt_core::errno::Errno;

    #[test]
    fn only_the_last_page_of_answers_are_errors() {
        assert_eq!(check(0), Ok(0));
        assert_eq!(check(usize::MAX), Err(Errno(1)));
        assert_eq!(check(usize::MAX - 4094), Err(Errno(4095)));
        assert_eq!(check(usize::MAX - 4095), Ok(usize::MAX - 4095));
    }

    #[test]
    fn restart_stops_at_the_first_other_answer() {
        let mut left = 3;
        let answer = restart(|| {
            left -= 1;
            if left > 0 { Err(Errno::EINTR) } else { Err::<(), _>(Errno::EIO) }
        });
        assert_eq!((answer, left), (Err(Errno::EIO), 0));
    }
}
