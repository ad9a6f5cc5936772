//! What a program without a C library needs to run.
//!
//! A leaf crate (`no_std`, `no_main`, linked with `-nostartfiles -nostdlib
//! -static -no-pie`) says [`freestanding_main!`](crate::freestanding_main) and
//! gets `_start`, a panic handler, the [`Heap`](crate::heap::Heap), the memory
//! functions that the compiler calls, and stubs for what the prebuilt standard
//! crates refer to. All of that comes from the macro's expansion in the leaf
//! crate: as symbols of this crate they would clash with those of a C library
//! in every test of the workspace.
//!
//! # Safety
//!
//! [`start`] is entered once, from `_start`, with the stack as the kernel left
//! it; what lies there (`Documentation/` calls it the process stack: argument
//! count, arguments, environment, auxiliary vector) stays for the life of the
//! process, and in a program without a C library nobody changes it.
#![allow(unsafe_code)]

mod memory_functions;
mod output;
mod symbols;

use core::ffi::CStr;
use core::fmt::Write;
use core::panic::PanicInfo;

use linux_raw_sys::auxvec::AT_PAGESZ;

use crate::environment::Environment;
use crate::syscall::process::exit_group;
use crate::{host, page_size};

pub use output::Output;

/// What the kernel handed to the program.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// How many arguments.
    count: usize,
    /// The arguments, a null pointer, the environment, a null pointer, the
    /// auxiliary vector.
    arguments: *const *const u8,
}

impl Start {
    /// The arguments, the program's name first.
    pub fn arguments(&self) -> impl Iterator<Item = &'static CStr> + use<> {
        let Start { count, arguments } = *self;
        (0..count).map_while(move |index| {
            // SAFETY: below the count; see the head of the file.
            let argument = unsafe { arguments.wrapping_add(index).read() };
            // SAFETY: a zero-terminated string that stays.
            (!argument.is_null()).then(|| unsafe { CStr::from_ptr(argument.cast()) })
        })
    }

    /// The environment.
    #[must_use]
    pub fn environment(&self) -> Environment<'static> {
        // SAFETY: a block as the kernel makes it, and nobody changes it.
        unsafe { Environment::from_block(self.environment_block()) }
    }

    /// The value of an entry of the auxiliary vector (AT_… of auxvec.h).
    #[must_use]
    pub fn auxiliary(&self, key: u32) -> Option<usize> {
        let mut end = self.environment_block();
        // SAFETY: up to the null pointer that ends the environment.
        while !unsafe { end.read() }.is_null() {
            end = end.wrapping_add(1);
        }
        let mut entry = end.wrapping_add(1).cast::<[usize; 2]>();
        loop {
            // SAFETY: up to the entry of key 0 that ends the vector.
            match unsafe { entry.read() } {
                [0, _] => return None,
                [found, value] if found == key as usize => return Some(value),
                _ => entry = entry.wrapping_add(1),
            }
        }
    }

    fn environment_block(&self) -> *const *const u8 {
        self.arguments.wrapping_add(self.count).wrapping_add(1)
    }
}

/// Where `_start` goes: tells the shim what only the start knows, runs `main`
/// and exits with its answer.
///
/// # Safety
/// `stack` is the stack pointer as the kernel set it, and this is the first
/// code to run.
#[doc(hidden)]
pub unsafe fn start(stack: *const usize, main: fn(&Start) -> i32) -> ! {
    // SAFETY: the caller's.
    let start = Start { count: unsafe { stack.read() }, arguments: stack.wrapping_add(1).cast() };
    // SAFETY: the kernel's block, which stays.
    unsafe { host::set_environment(start.environment_block()) };
    if let Some(size) = start.auxiliary(AT_PAGESZ) {
        page_size::set(size);
    }
    exit(main(&start))
}

/// Ends the process, all threads, at once.
pub fn exit(status: i32) -> ! {
    exit_group(status)
}

/// Ends the process after a panic: one line on standard error, status 101, as
/// the standard library does.
#[doc(hidden)]
pub fn panicked(panic: &PanicInfo<'_>) -> ! {
    // There is nobody to tell that telling failed.
    let _ = writeln!(Output::error(), "{panic}");
    exit(101)
}
