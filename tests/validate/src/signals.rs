//! Signals that must not end a validation, and one that must.
//!
//! # A GPU that is gone
//! After a reset or a removal an access to mapped device memory raises SIGBUS. The
//! handler maps a page of zeros where the access went, counts, and returns: the
//! access is repeated and works, what was read is worth nothing, and whoever asks
//! [`bus_errors`] knows. So one lost GPU fails the stage that met it, and the
//! program goes on with the others. No resume point is needed, and it does not
//! matter where in the library or here the access was made.
//!
//! The driver also sends the signal itself when a GPU has used poisoned data (Linux,
//! `kfd_events.c`, `kfd_signal_poison_consumed_event`). That one tells of no access, and
//! events say which GPU it was.
//!
//! # A call that never returns
//! A deadline between two steps is no help when a request hangs in the driver. The
//! alarm of [`end_at`] writes one line that names the stage and ends the process.
//!
//! # Safety
//!
//! The handlers touch atomics and make system calls, nothing else, so they may
//! interrupt anything. The page that is mapped lies where the interrupted access
//! found no memory: nothing that Rust may rely on was there, as a private page of
//! zeros is what device memory may as well have held. If it cannot be mapped the
//! signal's default action is restored, and the repeated access ends the process.
//! Actions are given to the kernel in its own form: handler, flags, where the
//! processor has one the way back, mask.
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use hsakmt_core::seam::Os;
use hsakmt_linux_shim::Linux;
use hsakmt_linux_shim::arch::{syscall1, syscall3, syscall4, syscall6};
use linux_raw_sys::general::{
    __NR_exit_group, __NR_mmap, __NR_rt_sigaction, __NR_setitimer, __NR_write, ITIMER_REAL,
    MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, PROT_READ, PROT_WRITE, SA_SIGINFO, SIGALRM, SIGBUS,
};

/// Bytes of a set of signals.
const SET_BYTES: usize = 8;
/// Where in a `siginfo_t` of 64 bits the address of an access stands, in words.
const ADDRESS_WORD: usize = 2;
/// Where the number of what happened stands, in words; the lower half of it.
const CODE_WORD: usize = 1;
/// The largest of those numbers that an access causes (`BUS_MCEERR_AO`); from 1 on.
const LAST_ACCESS_CODE: u32 = 5;
const STANDARD_ERROR: usize = 2;
/// The exit status when the alarm rings: a stage failed.
const OUT_OF_TIME: usize = 1;

static BUS_ERRORS: AtomicU32 = AtomicU32::new(0);
static LAST_ADDRESS: AtomicUsize = AtomicUsize::new(0);
/// Address and length of what the alarm writes.
static MESSAGE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// How often device memory was not there so far.
#[must_use]
pub fn bus_errors() -> u32 {
    BUS_ERRORS.load(Ordering::Relaxed)
}

/// The address of the newest access that found none.
#[must_use]
pub fn last_bus_error() -> usize {
    LAST_ADDRESS.load(Ordering::Relaxed)
}

type Handler = extern "C" fn(i32, *const usize, *mut c_void);

#[cfg(target_arch = "x86_64")]
mod action {
    use super::Handler;
    use linux_raw_sys::general::{__NR_rt_sigreturn, SA_RESTORER};

    // The kernel gives a handler no way back of its own here.
    core::arch::global_asm!(
        ".balign 16",
        "kfd_validate_return_from_signal:",
        "mov eax, {number}",
        "syscall",
        number = const __NR_rt_sigreturn,
    );

    unsafe extern "C" {
        fn kfd_validate_return_from_signal();
    }

    /// Handler, flags, way back, mask.
    pub fn of(handler: Handler, flags: u32) -> [usize; 4] {
        let back: unsafe extern "C" fn() = kfd_validate_return_from_signal;
        [handler as usize, (flags | SA_RESTORER) as usize, back as usize, 0]
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod action {
    use super::Handler;

    /// Handler, flags, mask (and where aarch64 has an unused word, zeros).
    pub fn of(handler: Handler, flags: u32) -> [usize; 4] {
        [handler as usize, flags as usize, 0, 0]
    }
}

fn set_action(signal: u32, action: &[usize; 4]) {
    let action = action.as_ptr().expose_provenance();
    // SAFETY: the kernel reads an action; the handlers are as the module's text says. It
    // can only refuse a signal that there is not.
    let _ = unsafe { syscall4(__NR_rt_sigaction, signal as usize, action, 0, SET_BYTES) };
}

extern "C" fn on_bus_error(_: i32, information: *const usize, _: *mut c_void) {
    // SAFETY: the kernel's `siginfo_t`, of 128 bytes.
    let (code, address) = unsafe {
        let word = |at: usize| information.wrapping_add(at).read();
        (word(CODE_WORD) as u32, word(ADDRESS_WORD))
    };
    if !(1..=LAST_ACCESS_CODE).contains(&code) {
        return;
    }
    LAST_ADDRESS.store(address, Ordering::Relaxed);
    BUS_ERRORS.fetch_add(1, Ordering::Relaxed);
    let page = Linux.page_size();
    let start = address & !page.wrapping_sub(1);
    let rights = (PROT_READ | PROT_WRITE) as usize;
    let kind = (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED) as usize;
    // SAFETY: the access found no memory at this page (the module's text).
    let mapped = unsafe { syscall6(__NR_mmap, start, page, rights, kind, usize::MAX, 0) };
    if mapped != start {
        set_action(SIGBUS, &[0; 4]);
    }
}

/// Lets accesses to device memory that is gone read zeros and be counted, from now
/// on and for the whole process.
pub fn survive_bus_errors() {
    set_action(SIGBUS, &action::of(on_bus_error, SA_SIGINFO));
}

extern "C" fn on_alarm(_: i32, _: *const usize, _: *mut c_void) {
    let [address, length] = [0, 1].map(|n| MESSAGE.get(n).map(|it| it.load(Ordering::Relaxed)));
    if let (Some(address), Some(length)) = (address, length) {
        // SAFETY: the kernel reads a text that lives as long as the program.
        let _ = unsafe { syscall3(__NR_write, STANDARD_ERROR, address, length) };
    }
    // SAFETY: ends the process.
    let _ = unsafe { syscall1(__NR_exit_group, OUT_OF_TIME) };
}

/// What the alarm will write.
pub fn set_alarm_message(message: &'static str) {
    let words = [message.as_ptr().expose_provenance(), message.len()];
    for (to, word) in MESSAGE.iter().zip(words) {
        to.store(word, Ordering::Relaxed);
    }
}

/// Ends the process in so many seconds with status 1 and the message; 0 takes it
/// back.
pub fn end_at(seconds: u32) {
    set_action(SIGALRM, &action::of(on_alarm, SA_SIGINFO));
    // Interval and value, in seconds and microseconds.
    let timer: [usize; 4] = [0, 0, seconds as usize, 0];
    let timer = timer.as_ptr().expose_provenance();
    // SAFETY: the kernel reads the timer.
    let _ = unsafe { syscall3(__NR_setitimer, ITIMER_REAL as usize, timer, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_signal_that_somebody_sent_is_survived_and_not_counted() {
        use linux_raw_sys::general::{__NR_gettid, __NR_tkill};
        survive_bus_errors();
        // SAFETY: a signal to this thread, which has a handler for it.
        let sent = unsafe {
            let thread = syscall1(__NR_gettid, 0);
            syscall3(__NR_tkill, thread, SIGBUS as usize, 0)
        };
        assert_eq!(sent, 0);
    }

    #[test]
    fn memory_that_is_gone_reads_as_zeros_and_is_counted() {
        survive_bus_errors();
        let path = std::env::temp_dir().join(std::format!("kfd-validate-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let page = Linux.page_size();
        file.set_len(page as u64 * 2).unwrap();
        let rights = (PROT_READ | PROT_WRITE) as usize;
        let descriptor = file.as_raw_fd() as usize;
        let shared = linux_raw_sys::general::MAP_SHARED as usize;
        // SAFETY: a mapping of its own, and used as words only.
        let start = unsafe { syscall6(__NR_mmap, 0, page * 2, rights, shared, descriptor, 0) };
        let second = core::ptr::with_exposed_provenance_mut::<u64>(start + page + 16);
        // SAFETY: within the mapping.
        unsafe { second.write_volatile(7) };
        file.set_len(page as u64).unwrap();
        let before = bus_errors();
        // SAFETY: within the mapping; the file is shorter by now, which is SIGBUS.
        let found = unsafe { second.read_volatile() };
        assert_eq!((found, bus_errors()), (0, before + 1));
        assert_eq!(last_bus_error(), start + page + 16);
        // SAFETY: as above.
        unsafe { second.write_volatile(9) };
        assert_eq!(bus_errors(), before + 1);
    }
}
