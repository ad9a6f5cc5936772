#![no_std]
#![allow(non_snake_case, reason = "the names of the C ABI")]
//! `libhsakmt-sim`: the C functions over a simulated machine.
//!
//! For programs that were compiled against the headers of `libhsakmt` and shall
//! run where there is no GPU. Memory, clocks, threads and forks are the host's;
//! `/sys`, `/proc`, `/dev/kfd` and the render nodes are the simulator's. The
//! environment variable `HSAKMT_SIM_PROFILE` names the machine (see the crate
//! `kfd_sim` for what there is), `mi300x` unless set; it is read at the first
//! call that needs the machine. A rule of the kernel that the library breaks is
//! told on standard error.
//!
//! With the first queue a thread begins that lets the simulated engines run while the
//! program waits by looking at memory.
//!
//! # Safety
//! As `libhsakmt`: the environment is read in place.

extern crate alloc;

mod session;
mod worker;

use hsakmt::{Host, Library};
use hsakmt_linux_shim::environment::Environment;
use hsakmt_linux_shim::freestanding::{Output, panicked};
use hsakmt_linux_shim::heap::Heap;
use session::Simulation;

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
    type Platform = Simulation;
    type Generation = Generation;

    fn variables(&self, visit: &mut dyn FnMut(&[u8])) {
        // SAFETY: see the head of the file.
        unsafe { Environment::of_process() }.for_each(visit);
    }

    fn write_log(&self, line: &[u8]) {
        // Where standard error is closed, nobody wanted to know.
        let _ = Output::error().write(line);
    }
}

#[global_allocator]
static HEAP: Heap = Heap;

static LIBRARY: Library<Process> = Library::new(Process, Simulation::new());

hsakmt::export!(LIBRARY, Generation);

#[panic_handler]
fn panic(panic: &core::panic::PanicInfo<'_>) -> ! {
    panicked(panic)
}

// See ffi/dist. The precompiled collections that the simulator uses also refer to
// the unwinder, which never runs; ci/dist makes both names local to the artefact,
// so they are nobody else's.
macro_rules! stub {
    ($($symbol:literal),*) => {
        $(core::arch::global_asm!(
            concat!(".weak ", $symbol),
            concat!(".hidden ", $symbol),
            concat!(".pushsection .text.", $symbol, ",\"ax\",@progbits"),
            concat!($symbol, ":"),
            ".byte 0",
            ".popsection",
        );)*
    };
}

stub!("rust_eh_personality", "_Unwind_Resume");
