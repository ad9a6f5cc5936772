//! x86_64 stand-in until the shim's is public.
#![allow(unsafe_code, missing_docs, clippy::missing_safety_doc)]
macro_rules! syscall {
    ($name:ident($($argument:ident in $register:tt),*)) => {
        #[inline]
        pub unsafe fn $name(number: u32, $($argument: usize),*) -> usize {
            let answer: usize;
            // SAFETY: the caller's.
            unsafe {
                core::arch::asm!("syscall", inlateout("rax") number as usize => answer,
                    $(in($register) $argument,)* lateout("rcx") _, lateout("r11") _,
                    options(nostack, preserves_flags));
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
