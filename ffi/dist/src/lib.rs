#![no_std]
#![allow(non_snake_case, reason = "the names of the C ABI")]
//! `libhsakmt`: the C functions over the running Linux kernel.
//!
//! Nothing but what only a final artefact can have: the one [`Library`] in a
//! static, the allocator, the panic handler, the environment.
//!
//! # Safety
//! The environment is read in place, once, while the library opens; a program
//! that changes it on another thread at that moment races with itself, as it
//! does with getenv(3).

mod libdrm;

use hsakmt::{Host, Libdrm, Library};
use hsakmt_linux_shim::Linux;
use hsakmt_linux_shim::environment::Environment;
use hsakmt_linux_shim::freestanding::Output;
#[cfg(not(feature = "prove-no-panic"))]
use hsakmt_linux_shim::freestanding::panicked;
use hsakmt_linux_shim::heap::Heap;

#[cfg(all(feature = "generation-debian", feature = "generation-2025"))]
compile_error!("a build serves one generation");
#[cfg(feature = "generation-2025")]
type Generation = hsakmt::generation::Y2025;
#[cfg(feature = "generation-debian")]
type Generation = hsakmt::generation::Debian;
#[cfg(not(any(feature = "generation-debian", feature = "generation-2025")))]
type Generation = hsakmt::generation::Current;

struct Process;

impl Host for Process {
    type Platform = Linux;
    type Generation = Generation;

    fn variables(&self, visit: &mut dyn FnMut(&[u8])) {
        // SAFETY: see the head of the file.
        unsafe { Environment::of_process() }.for_each(visit);
    }

    fn libdrm(&self) -> Option<&'static dyn Libdrm> {
        LIBDRM.is_there().then_some(&LIBDRM)
    }

    fn write_log(&self, line: &[u8]) {
        // Where standard error is closed, nobody wanted to know.
        let _ = Output::error().write(line);
    }
}

#[global_allocator]
static HEAP: Heap = Heap;

static LIBDRM: libdrm::Weak = libdrm::Weak::new();

static LIBRARY: Library<Process> = Library::new(Process, Linux);

hsakmt::export!(LIBRARY, Generation);

#[cfg(not(feature = "prove-no-panic"))]
#[panic_handler]
fn panic(panic: &core::panic::PanicInfo<'_>) -> ! {
    panicked(panic)
}

#[cfg(feature = "prove-no-panic")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        safe fn hsakmt_panic_reached() -> !;
    }
    hsakmt_panic_reached()
}

// A personality function is referenced by what the precompiled core library
// brings, in every profile but release, and never called. Weak and hidden, so
// that another Rust library in the program has its own way.
core::arch::global_asm!(
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    ".pushsection .text.rust_eh_personality,\"ax\",@progbits",
    "rust_eh_personality:",
    ".byte 0",
    ".popsection",
);
