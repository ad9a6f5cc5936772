//! aarch64: the `svc` instruction, and barriers for non-cacheable memory.
//!
//! # Safety
//!
//! The number is in x8, the arguments are in x0 … x5, and the answer comes back
//! in x0. The kernel preserves every other general register and the low 128
//! bits of the vector registers; the parts beyond them (SVE) and the predicate
//! registers do not live across a system call, but the compiler keeps nothing
//! there unless SVE is a target feature, which none of our targets has. The
//! options say:
//!
//! - `nostack`: the kernel runs on its own stack; this ABI has no red zone.
//! - `preserves_flags`: NZCV is part of the saved state.
//! - neither `nomem` nor `readonly`: a system call may read and write whatever
//!   its arguments, or addresses inside the memory they point to, lead to.
//!   Pointers therefore arrive here with their provenance exposed.
//!
//! What the call does to the process is the caller's affair.
#![allow(unsafe_code)]

use core::arch::asm;

macro_rules! syscall {
    ($name:ident()) => {
        /// Enters the kernel and returns its raw answer.
        ///
        /// # Safety
        /// The call must keep what Rust assumes of memory and descriptors.
        #[inline]
        pub unsafe fn $name(number: u32) -> usize {
            let answer: usize;
            // SAFETY: see the head of the file.
            unsafe {
                asm!(
                    "svc 0",
                    in("x8") number as usize,
                    lateout("x0") answer,
                    options(nostack, preserves_flags),
                );
            }
            answer
        }
    };
    ($name:ident($first:ident $(, $argument:ident in $register:tt)*)) => {
        /// Enters the kernel and returns its raw answer.
        ///
        /// # Safety
        /// The call must keep what Rust assumes of memory and descriptors.
        #[inline]
        pub unsafe fn $name(
            number: u32,
            $first: usize,
            $($argument: usize),*
        ) -> usize {
            let answer: usize;
            // SAFETY: see the head of the file.
            unsafe {
                asm!(
                    "svc 0",
                    in("x8") number as usize,
                    inlateout("x0") $first => answer,
                    $(in($register) $argument,)*
                    options(nostack, preserves_flags),
                );
            }
            answer
        }
    };
}

syscall!(syscall0());
syscall!(syscall1(a));
syscall!(syscall2(a, b in "x1"));
syscall!(syscall3(a, b in "x1", c in "x2"));
syscall!(syscall4(a, b in "x1", c in "x2", d in "x3"));
syscall!(syscall5(a, b in "x1", c in "x2", d in "x3", e in "x4"));
syscall!(syscall6(a, b in "x1", c in "x2", d in "x3", e in "x4", f in "x5"));

/// Orders earlier writes to any memory before later writes to device memory.
/// The outer shareable domain holds the devices.
#[inline]
pub fn wmb() {
    // SAFETY: a barrier changes no state; without `nomem` it also holds the
    // compiler's accesses in place.
    unsafe { asm!("dmb oshst", options(nostack, preserves_flags)) }
}

/// Orders earlier reads of device memory before later reads of any memory.
#[inline]
pub fn rmb() {
    // SAFETY: as in `wmb`.
    unsafe { asm!("dmb oshld", options(nostack, preserves_flags)) }
}

/// Waits until earlier writes have left the CPU's buffers: a `dsb` completes
/// them, where a `dmb` only orders them.
#[inline]
pub fn flush_wc() {
    // SAFETY: as in `wmb`.
    unsafe { asm!("dsb st", options(nostack, preserves_flags)) }
}
