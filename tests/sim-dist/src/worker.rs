//! A thread that lets the engines of the simulated GPUs run while the program calls
//! nothing: it may wait for a packet by looking at memory alone.
//!
//! It begins with the first queue of a process and has nothing of a thread of a C
//! library: it is made by clone(2) alone, takes no signal, and ends with the process.
//! A forked child has none, and gets one with its own first queue.
//!
//! # Safety
//! The thread runs Rust code of this artefact alone, on a stack of its own that stays
//! mapped for ever. It has the thread pointer of the thread that made it; no code here
//! uses thread-local memory, nor do the memory functions of C libraries.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};

use hsakmt_core::seam::{Mapping, Os, Placement, Protection};
use hsakmt_linux_shim::Linux;
use hsakmt_linux_shim::arch::syscall4;

const STACK_BYTES: usize = 256 << 10;
/// CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_SIGHAND, CLONE_THREAD, CLONE_SYSVSEM.
const THREAD: usize = 0x5_0f00;
const SIG_SETMASK: usize = 2;
/// Bytes of the kernel's set of signals.
const SIGNALS_BYTES: usize = 8;
#[cfg(target_arch = "x86_64")]
const RT_SIGPROCMASK: u32 = 14;
#[cfg(not(target_arch = "x86_64"))]
const RT_SIGPROCMASK: u32 = 135;

/// Nanoseconds between two looks, soon after an engine had something to do and later.
const SHORT_PAUSE: u64 = 50_000;
const LONG_PAUSE: u64 = 1_000_000;
/// Looks that are soon after.
const SHORT_PAUSES: u32 = 2000;

/// Whether a process has the thread.
#[derive(Debug)]
pub(crate) struct Worker(AtomicU32);

impl Worker {
    pub(crate) const fn new() -> Worker {
        Worker(AtomicU32::new(0))
    }

    /// Begins the thread if there is none. Without memory for it there is none: then
    /// engines run when the program calls.
    pub(crate) fn begin(&self) {
        if self.0.swap(1, Ordering::AcqRel) != 0 {
            return;
        }
        let stack = Mapping {
            placement: Placement::Anywhere,
            length: STACK_BYTES,
            protection: Protection::READ | Protection::WRITE,
            reserve: true,
            shared: false,
        };
        let Ok(stack) = Linux.map(stack) else { return };
        let all = u64::MAX;
        let mut before = 0_u64;
        // SAFETY: both sets are of the length said. The thread inherits the mask.
        unsafe {
            mask(&raw const all, &raw mut before);
            clone(stack + STACK_BYTES);
            mask(&raw const before, core::ptr::null_mut());
        }
    }
}

/// rt_sigprocmask(2).
///
/// # Safety
/// `set` points to a set of signals; `old` to one that may be written, or is null.
unsafe fn mask(set: *const u64, old: *mut u64) {
    // SAFETY: as said.
    unsafe {
        syscall4(
            RT_SIGPROCMASK,
            SIG_SETMASK,
            set.expose_provenance(),
            old.expose_provenance(),
            SIGNALS_BYTES,
        );
    }
}

/// What the thread does.
extern "C" fn work() -> ! {
    let mut idle = 0_u32;
    loop {
        idle = if super::session::run_engines() > 0 { 0 } else { idle.saturating_add(1) };
        Linux.sleep(if idle < SHORT_PAUSES { SHORT_PAUSE } else { LONG_PAUSE });
    }
}

/// clone(2) of a thread that calls [`work`] on the stack that ends at this address.
///
/// # Safety
/// The stack is mapped, nobody else's, and its end a multiple of 16.
#[cfg(target_arch = "x86_64")]
unsafe fn clone(stack: usize) {
    // SAFETY: the thread goes on behind the call with the new stack, calls what never
    // returns and touches nothing of this frame; in the caller it is a system call.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "call {work}",
            "ud2",
            "2:",
            work = sym work,
            inlateout("rax") 56_usize => _,
            in("rdi") THREAD,
            in("rsi") stack,
            in("rdx") 0_usize,
            in("r10") 0_usize,
            in("r8") 0_usize,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
}

/// See above.
///
/// # Safety
/// As above.
#[cfg(target_arch = "aarch64")]
unsafe fn clone(stack: usize) {
    // SAFETY: as above.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, 0",
            "bl {work}",
            "brk 1",
            "2:",
            work = sym work,
            in("x8") 220_usize,
            inlateout("x0") THREAD => _,
            in("x1") stack,
            in("x2") 0_usize,
            in("x3") 0_usize,
            in("x4") 0_usize,
            out("x30") _,
        );
    }
}

/// See above.
///
/// # Safety
/// As above.
#[cfg(target_arch = "riscv64")]
unsafe fn clone(stack: usize) {
    // SAFETY: as above.
    unsafe {
        asm!(
            "ecall",
            "bnez a0, 2f",
            "call {work}",
            "ebreak",
            "2:",
            work = sym work,
            in("a7") 220_usize,
            inlateout("a0") THREAD => _,
            in("a1") stack,
            in("a2") 0_usize,
            in("a3") 0_usize,
            in("a4") 0_usize,
            out("ra") _,
        );
    }
}
