//! Child processes that run a closure.
//!
//! # Safety
//!
//! The closures of children that share memory run on a stack of their own while
//! the parent waits.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With this status; a panic is 101.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// The closure returned.
pub const FINE: End = End::Exit(0);

fn run_and_exit(work: impl FnOnce()) -> ! {
    let status = if catch_unwind(AssertUnwindSafe(work)).is_ok() { 0 } else { 101 };
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// Waits until a child ends.
#[must_use]
pub fn wait(pid: libc::pid_t) -> End {
    let mut status = 0;
    loop {
        // SAFETY: writes the status. `__WALL` also waits for clones that do not
        // send SIGCHLD.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
        if waited == pid {
            break;
        }
        assert_eq!(
            std::io::Error::last_os_error().raw_os_error(),
            Some(libc::EINTR),
            "waitpid({pid})"
        );
    }
    if libc::WIFEXITED(status) {
        End::Exit(libc::WEXITSTATUS(status))
    } else {
        End::Signal(libc::WTERMSIG(status))
    }
}

/// Forks a child, and returns its id without waiting for it.
pub fn start_forked(work: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child runs the closure and exits.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => run_and_exit(work),
        pid => pid,
    }
}

/// Runs the closure in a child made by fork(3).
#[must_use]
pub fn forked(work: impl FnOnce()) -> End {
    wait(start_forked(work))
}

/// Runs the closure in a child made by the bare system call, of which the C
/// library knows nothing.
#[must_use]
pub fn cloned(work: impl FnOnce()) -> End {
    // SAFETY: the child has a copy of the memory, runs the closure and exits.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    match pid {
        -1 => panic!("clone: {}", std::io::Error::last_os_error()),
        0 => run_and_exit(work),
        pid => wait(pid as libc::pid_t),
    }
}

/// Runs the closure in a child that shares this process's memory: clone with
/// CLONE_VM and these `flags`, CLONE_VFORK or 0. `None` where there is no such
/// thing: user-mode emulators make a forked child of it, or refuse.
#[must_use]
pub fn sharing_memory<F: FnOnce()>(flags: i32, work: F) -> Option<End> {
    extern "C" fn enter<F: FnOnce()>(work: *mut libc::c_void) -> i32 {
        // SAFETY: the closure that `sharing_memory` passes, taken once.
        let work = unsafe { work.cast::<Option<F>>().as_mut() }.and_then(Option::take);
        match work {
            Some(work) => run_and_exit(work),
            None => 102,
        }
    }

    if emulated() {
        return None;
    }
    let mut work = Some(work);
    let mut stack = vec![0u128; (1 << 20) / 16];
    let top = stack.as_mut_ptr_range().end;
    // SAFETY: the child runs on `stack`, which lives until it has ended, and so
    // does the closure.
    let pid = unsafe {
        libc::clone(
            enter::<F>,
            top.cast(),
            flags | libc::CLONE_VM | libc::SIGCHLD,
            (&raw mut work).cast(),
        )
    };
    assert_ne!(pid, -1, "clone: {}", std::io::Error::last_os_error());
    Some(wait(pid))
}

/// Whether this process runs under a user-mode emulator, told by the lack of
/// ptrace(2), which none of them has.
#[must_use]
pub fn emulated() -> bool {
    // SAFETY: an invalid request, which a kernel answers with EIO or ESRCH.
    unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, 0, 0, 0) };
    std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS)
}
