//! x86_64: the `syscall` instruction, and barriers for write-combined memory.
//!
//! # Safety
//!
//! The number is in rax, the arguments are in rdi, rsi, rdx, r10, r8, r9, and
//! the answer comes back in rax. The instruction itself overwrites rcx with the
//! return address and r11 with the flags; the kernel preserves every other
//! register, the vector state included. The options say exactly that:
//!
//! - `nostack`: the kernel runs on its own stack and a signal frame is put below
//!   the red zone.
//! - `preserves_flags`: the flags are restored from r11 on return, and DF is
//!   not changed by it.
//! - neither `nomem` nor `readonly`: a system call may read and write whatever
//!   its arguments, or addresses inside the memory they point to, lead to.
//!   Pointers therefore arrive here with their provenance exposed.
//!
//! What the call does to the process is the caller's affair.
#![allow(unsafe_code)]

use core::arch::asm;

macro_rules! syscall {
    ($name:ident($($argument:ident in $register:tt),*)) => {
        /// Enters the kernel and returns its raw answer.
        ///
        /// # Safety
        /// The call must keep what Rust assumes of memory and descriptors.
        #[inline]
        pub unsafe fn $name(number: u32, $($argument: usize),*) -> usize {
            let answer: usize;
            // SAFETY: see the head of the file.
            unsafe {
                asm!(
                    "syscall",
                    inlateout("rax") number as usize => answer,
                    $(in($register) $argument,)*
                    lateout("rcx") _,
                    lateout("r11") _,
                    options(nostack, preserves_flags),
                );
            }
            answer
        }
    };
}

syscall!(syscall0());
syscall!(syscall1(a in "rdi"));
syscall!(syscall2(a in "rdi", b in "rsi"));
syscall!(syscall3(a in "rdi", b in "rsi", c in "rdx"));
syscall!(syscall4(a in "rdi", b in "rsi", c in "rdx", d in "r10"));
syscall!(syscall5(a in "rdi", b in "rsi", c in "rdx", d in "r10", e in "r8"));
syscall!(syscall6(a in "rdi", b in "rsi", c in "rdx", d in "r10", e in "r8", f in "r9"));

/// Orders earlier writes to any memory before later writes to device memory.
/// Plain stores are ordered already; write-combined ones only by a fence.
#[inline]
pub fn wmb() {
    // SAFETY: a fence changes no state; without `nomem` it also holds the
    // compiler's accesses in place.
    unsafe { asm!("sfence", options(nostack, preserves_flags)) }
}

/// Orders earlier reads of device memory before later reads of any memory.
/// Reads of write-combined memory may be speculative; only a fence stops that.
#[inline]
pub fn rmb() {
    // SAFETY: as in `wmb`.
    unsafe { asm!("lfence", options(nostack, preserves_flags)) }
}

/// Empties the write-combining buffers.
#[inline]
pub fn flush_wc() {
    wmb();
}
