//! The symbols of a program's leaf crate.

/// Makes the leaf crate a program that runs without a C library.
///
/// The argument names a `fn(&Start) -> i32`; what it returns is the exit status.
/// The crate is `no_std` and `no_main`, and its build script passes
/// `-nostartfiles -nostdlib -static -no-pie` to the linker.
///
/// ```text
/// #![no_std]
/// #![no_main]
///
/// use hsakmt_linux_shim::freestanding::Start;
///
/// hsakmt_linux_shim::freestanding_main!(main);
///
/// fn main(start: &Start) -> i32 {
///     0
/// }
/// ```
#[macro_export]
macro_rules! freestanding_main {
    ($main:path) => {
        $crate::__start_symbol!();
        $crate::__memory_functions!();
        $crate::__unwinding_stubs!();
        $crate::__compiler_builtins_stubs!();

        #[global_allocator]
        static HEAP: $crate::heap::Heap = $crate::heap::Heap;

        #[panic_handler]
        fn panicked(panic: &::core::panic::PanicInfo<'_>) -> ! {
            $crate::freestanding::panicked(panic)
        }

        /// Where `_start` goes.
        // SAFETY: the symbol is this crate's own and nobody else's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn hsakmt_freestanding_start(stack: *const usize) -> ! {
            let main: fn(&$crate::freestanding::Start) -> i32 = $main;
            // SAFETY: `_start` passes the stack pointer that the kernel set.
            unsafe { $crate::freestanding::start(stack, main) }
        }
    };
}

/// `_start`: marks the end of the frames, hands the stack pointer over as the
/// first argument, and calls with the stack aligned as the ABI wants it. The
/// kernel aligns it to 16 bytes already on every ISA here, so only x86_64, where
/// a call pushes, needs nothing but the call itself.
#[doc(hidden)]
#[macro_export]
macro_rules! __start_symbol {
    () => {
        #[cfg(target_arch = "x86_64")]
        ::core::arch::global_asm!(
            ".pushsection .text._start,\"ax\",@progbits",
            ".globl _start",
            ".type _start, @function",
            "_start:",
            "xor ebp, ebp",
            "mov rdi, rsp",
            "call hsakmt_freestanding_start",
            "ud2",
            ".size _start, . - _start",
            ".popsection",
        );

        #[cfg(target_arch = "aarch64")]
        ::core::arch::global_asm!(
            ".pushsection .text._start,\"ax\",@progbits",
            ".globl _start",
            ".type _start, @function",
            "_start:",
            "mov x29, #0",
            "mov x30, #0",
            "mov x0, sp",
            "bl hsakmt_freestanding_start",
            "brk #1",
            ".size _start, . - _start",
            ".popsection",
        );

        // The linker relaxes address loads to be relative to gp, so gp comes
        // first, by a load that is not relaxed itself.
        #[cfg(target_arch = "riscv64")]
        ::core::arch::global_asm!(
            ".pushsection .text._start,\"ax\",@progbits",
            ".globl _start",
            ".type _start, @function",
            "_start:",
            ".option push",
            ".option norelax",
            "la gp, __global_pointer$",
            ".option pop",
            "mv fp, zero",
            "mv ra, zero",
            "mv a0, sp",
            "call hsakmt_freestanding_start",
            "unimp",
            ".size _start, . - _start",
            ".popsection",
        );
    };
}

/// The prebuilt standard crates are compiled to unwind and refer to these two
/// functions. Nothing calls them when panics abort. They are weak, so that real
/// ones win. A library must not have `_Unwind_Resume`: it would take over the
/// exceptions of the program that links it.
#[doc(hidden)]
#[macro_export]
macro_rules! __unwinding_stubs {
    () => {
        ::core::arch::global_asm!(
            ".pushsection .text.hsakmt_unwinding_stubs,\"ax\",@progbits",
            ".weak rust_eh_personality",
            ".hidden rust_eh_personality",
            ".weak _Unwind_Resume",
            ".hidden _Unwind_Resume",
            "rust_eh_personality:",
            "_Unwind_Resume:",
            // All zeroes is an illegal instruction on aarch64 and riscv64, and
            // on x86_64 an access to whatever rax holds; none is ever executed.
            ".4byte 0",
            ".popsection",
        );
    };
}

/// What the prebuilt `compiler_builtins` refers to on aarch64: getauxval(3), by
/// which it chooses atomic instructions (0 says that the CPU has none but the
/// basic ones), and the stack protector of distributions that compile it so.
#[doc(hidden)]
#[macro_export]
macro_rules! __compiler_builtins_stubs {
    () => {
        #[cfg(target_arch = "aarch64")]
        ::core::arch::global_asm!(
            ".pushsection .text.hsakmt_builtins_stubs,\"ax\",@progbits",
            ".weak getauxval",
            ".hidden getauxval",
            ".type getauxval, @function",
            "getauxval:",
            "mov x0, #0",
            "ret",
            ".weak __stack_chk_fail",
            ".hidden __stack_chk_fail",
            ".type __stack_chk_fail, @function",
            "__stack_chk_fail:",
            "brk #1",
            ".popsection",
            ".pushsection .data.rel.ro.hsakmt_builtins_stubs,\"aw\",@progbits",
            ".balign 8",
            ".weak __stack_chk_guard",
            ".hidden __stack_chk_guard",
            ".type __stack_chk_guard, @object",
            ".size __stack_chk_guard, 8",
            "__stack_chk_guard:",
            ".quad 0x00f1e2d3c4b5a697",
            ".popsection",
        );
    };
}
