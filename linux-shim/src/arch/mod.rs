//! How the CPU enters the kernel, and how it orders accesses to devices.
//!
//! Each ISA's file exports the same names: `syscall0` … `syscall6`, which
//! return the kernel's raw answer, and `wmb`, `rmb`, `flush_wc`. Public for
//! programs that need a system call which the library has no use for.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
compile_error!("this crate is for 64-bit little-endian Linux");

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "riscv64", path = "riscv64.rs")]
mod isa;

pub use isa::*;
