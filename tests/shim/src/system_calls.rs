//! Records the system calls of a closure, by ptrace(2) in a forked child.
//!
//! # Safety
//!
//! The child stops before each call and after it; the parent reads what the
//! kernel tells about the call (PTRACE_GET_SYSCALL_INFO, Linux 5.3) and nothing
//! of the child's memory.

use std::mem::MaybeUninit;

use crate::child;

/// One system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCall {
    /// Which: `libc::SYS_…`.
    pub number: libc::c_long,
    /// Its arguments; the calls with fewer leave garbage in the rest.
    pub arguments: [u64; 6],
    /// Its answer, negative for an error.
    pub answer: i64,
}

/// Marks the start and the end of the closure among the child's calls: a call
/// that changes nothing, with an argument that it ignores.
const MARKER: u64 = 0x6d61_726b;

fn mark() {
    // SAFETY: changes nothing.
    unsafe { libc::syscall(libc::SYS_getppid, MARKER) };
}

/// The system calls that `work` makes, in a forked child. What it changes is
/// lost with the child; it must not fork itself.
///
/// `None` where processes cannot be traced (user-mode emulation, or a sandbox),
/// which the caller reports as a skipped check.
///
/// # Panics
/// When the closure panics, and when the kernel behaves unlike ptrace(2).
#[must_use]
pub fn of(work: impl FnOnce()) -> Option<Vec<SystemCall>> {
    if child::emulated() {
        return None;
    }
    let pid = child::start_forked(|| {
        // SAFETY: makes the parent the tracer, then waits for it.
        if unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } == -1 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(99) };
        }
        // SAFETY: stops this process until the tracer lets it go on.
        unsafe { libc::raise(libc::SIGSTOP) };
        mark();
        work();
        mark();
    });
    match stop_of(pid) {
        Stop::Signal(libc::SIGSTOP) => {}
        Stop::End(child::End::Exit(99)) => return None,
        stop => panic!("the child did not stop but {stop:?}"),
    }
    // SAFETY: our stopped child.
    let set = unsafe {
        libc::ptrace(
            libc::PTRACE_SETOPTIONS,
            pid,
            0,
            libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL,
        )
    };
    assert_eq!(set, 0, "PTRACE_SETOPTIONS: {}", std::io::Error::last_os_error());

    let mut calls = Vec::new();
    let mut markers = 0;
    let mut entered = None;
    let mut signal = 0;
    loop {
        // SAFETY: our stopped child.
        let resumed = unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, signal) };
        assert_eq!(resumed, 0, "PTRACE_SYSCALL: {}", std::io::Error::last_os_error());
        signal = 0;
        match stop_of(pid) {
            Stop::SystemCall => {}
            Stop::Signal(number) => {
                signal = number;
                continue;
            }
            Stop::End(end) => {
                assert_eq!((end, markers), (child::FINE, 2), "the traced closure");
                return Some(calls);
            }
        }
        let info = call_info(pid);
        match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                // SAFETY: `op` says that this is the field.
                let entry = unsafe { info.u.entry };
                if entry.nr as libc::c_long == libc::SYS_getppid && entry.args[0] == MARKER {
                    markers += 1;
                    entered = None;
                } else {
                    entered = Some((entry.nr as libc::c_long, entry.args));
                }
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => {
                // SAFETY: `op` says that this is the field.
                let answer = unsafe { info.u.exit }.sval;
                if let (1, Some((number, arguments))) = (markers, entered.take()) {
                    calls.push(SystemCall { number, arguments, answer });
                }
            }
            other => panic!("stop of kind {other}"),
        }
    }
}

/// The numbers alone, as most tests want them.
#[must_use]
pub fn numbers_of(work: impl FnOnce()) -> Option<Vec<libc::c_long>> {
    Some(of(work)?.iter().map(|call| call.number).collect())
}

#[derive(Debug)]
enum Stop {
    SystemCall,
    Signal(i32),
    End(child::End),
}

fn stop_of(pid: libc::pid_t) -> Stop {
    let mut status = 0;
    // SAFETY: writes the status.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
    assert_eq!(waited, pid, "waitpid: {}", std::io::Error::last_os_error());
    if libc::WIFEXITED(status) {
        Stop::End(child::End::Exit(libc::WEXITSTATUS(status)))
    } else if libc::WIFSIGNALED(status) {
        Stop::End(child::End::Signal(libc::WTERMSIG(status)))
    } else {
        match libc::WSTOPSIG(status) {
            signal if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
            signal => Stop::Signal(signal),
        }
    }
}

fn call_info(pid: libc::pid_t) -> libc::ptrace_syscall_info {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: our stopped child; the kernel fills at most `size` bytes.
    let filled =
        unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, size, info.as_mut_ptr()) };
    assert!(filled > 0, "PTRACE_GET_SYSCALL_INFO: {}", std::io::Error::last_os_error());
    // SAFETY: zeroed, and plain numbers throughout.
    unsafe { info.assume_init() }
}
