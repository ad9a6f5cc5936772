//! riscv64: the `ecall` instruction, and fences with the I/O bits.
//!
//! # Safety
//!
//! The number is in a7, the arguments are in a0 … a5, and the answer comes back
//! in a0. The kernel preserves every other general and floating-point register,
//! but it discards the vector state (the kernel's riscv/vector.rst), so
//! all vector registers are declared overwritten. The options say:
//!
//! - `nostack`: the kernel runs on its own stack; this ABI has no red zone.
//! - not `preserves_flags`: that would promise vl, vtype and the like.
//! - neither `nomem` nor `readonly`: a system call may read and write whatever
//!   its arguments, or addresses inside the memory they point to, lead to.
//!   Pointers therefore arrive here with their provenance exposed.
//!
//! What the call does to the process is the caller's affair.
#![allow(unsafe_code)]

use core::arch::asm;

macro_rules! ecall {
    ($number:ident, $answer:ident, $($operands:tt)*) => {
        asm!(
            "ecall",
            in("a7") $number as usize,
            $($operands)*
            out("v0") _, out("v1") _, out("v2") _, out("v3") _,
            out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            out("v8") _, out("v9") _, out("v10") _, out("v11") _,
            out("v12") _, out("v13") _, out("v14") _, out("v15") _,
            out("v16") _, out("v17") _, out("v18") _, out("v19") _,
            out("v20") _, out("v21") _, out("v22") _, out("v23") _,
            out("v24") _, out("v25") _, out("v26") _, out("v27") _,
            out("v28") _, out("v29") _, out("v30") _, out("v31") _,
            options(nostack),
        )
    };
}

/// Enters the kernel and returns its raw answer.
///
/// # Safety
/// The call must keep what Rust assumes of memory and descriptors.
#[inline]
pub unsafe fn syscall0(number: u32) -> usize {
    let answer: usize;
    // SAFETY: see the head of the file.
    unsafe { ecall!(number, answer, lateout("a0") answer,) }
    answer
}

macro_rules! syscall {
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
                ecall!(
                    number, answer,
                    inlateout("a0") $first => answer,
                    $(in($register) $argument,)*
                )
            }
            answer
        }
    };
}

syscall!(syscall1(a));
syscall!(syscall2(a, b in "a1"));
syscall!(syscall3(a, b in "a1", c in "a2"));
syscall!(syscall4(a, b in "a1", c in "a2", d in "a3"));
syscall!(syscall5(a, b in "a1", c in "a2", d in "a3", e in "a4"));
syscall!(syscall6(a, b in "a1", c in "a2", d in "a3", e in "a4", f in "a5"));

/// Orders earlier writes to any memory before later writes to device memory.
#[inline]
pub fn wmb() {
    // SAFETY: a fence changes no state; without `nomem` it also holds the
    // compiler's accesses in place.
    unsafe { asm!("fence ow, ow", options(nostack, preserves_flags)) }
}

/// Orders earlier reads of device memory before later reads of any memory.
#[inline]
pub fn rmb() {
    // SAFETY: as in `wmb`.
    unsafe { asm!("fence ir, ir", options(nostack, preserves_flags)) }
}

/// Orders earlier accesses of every kind before later ones of every kind; the
/// ISA has no stronger instruction for it.
#[inline]
pub fn flush_wc() {
    // SAFETY: as in `wmb`.
    unsafe { asm!("fence iorw, iorw", options(nostack, preserves_flags)) }
}
