//! What the program around us may have, bound weakly.
//!
//! A library that has no C library of its own may still sit in a process that
//! has one. A weak reference is null where nobody defines the symbol, so the
//! same object file serves both. Stable Rust has no weak references, but an
//! assembler does: a slot in a data section holds the symbol's address, and Rust
//! reads the slot.
//!
//! # Safety
//!
//! The linker (or the dynamic linker, before any of our code runs) fills each
//! slot once with the address of a symbol, or with null.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicPtr, Ordering};

/// Defines a function that returns the address of a symbol, or `None` where the
/// program has no such symbol. Each symbol may be bound once in a program.
///
/// A library opened after us is not seen: the slot is filled when we are loaded.
///
/// ```
/// hsakmt_linux_shim::weak_symbol!("getpid", fn getpid);
/// hsakmt_linux_shim::weak_symbol!("no_library_has_this", fn absent);
///
/// fn main() {
///     assert!(getpid().is_some() && absent().is_none());
/// }
/// ```
#[macro_export]
macro_rules! weak_symbol {
    ($symbol:literal, $(#[$meta:meta])* $visibility:vis fn $function:ident) => {
        ::core::arch::global_asm!(
            concat!(".weak ", $symbol),
            concat!(".pushsection .data.rel.ro.hsakmt_weak.", $symbol, ",\"aw\",@progbits"),
            ".balign 8",
            concat!(".globl hsakmt_weak_", $symbol),
            concat!(".hidden hsakmt_weak_", $symbol),
            concat!(".type hsakmt_weak_", $symbol, ", @object"),
            concat!(".size hsakmt_weak_", $symbol, ", 8"),
            concat!("hsakmt_weak_", $symbol, ":"),
            concat!(".quad ", $symbol),
            ".popsection",
        );

        $(#[$meta])*
        $visibility fn $function() -> ::core::option::Option<::core::ptr::NonNull<()>> {
            // SAFETY: the slot is defined right above with this name and size.
            unsafe extern "C" {
                #[link_name = concat!("hsakmt_weak_", $symbol)]
                static SLOT: *mut ();
            }
            // SAFETY: filled before this code runs and never written again. The
            // read is volatile because the linker's value is not the compiler's.
            ::core::ptr::NonNull::new(unsafe { ::core::ptr::read_volatile(&raw const SLOT) })
        }
    };
}

weak_symbol! {
    "environ",
    /// The C library's variable that points to the environment.
    fn weak_environ
}

/// An environment block given by the program, or null.
static ENVIRONMENT: AtomicPtr<*const u8> = AtomicPtr::new(core::ptr::null_mut());

/// Names the process's environment, for programs whose C library is not linked
/// to us and those that have none. Overrides the weak `environ`.
///
/// # Safety
/// `block` stays, for the rest of the process, a valid array of pointers to
/// zero-terminated strings, ended by a null pointer.
pub unsafe fn set_environment(block: *const *const u8) {
    ENVIRONMENT.store(block.cast_mut(), Ordering::Release);
}

/// Where the process's environment starts: what [`set_environment`] was given,
/// else what the C library says now, else null.
#[must_use]
pub fn environment() -> *const *const u8 {
    let given = ENVIRONMENT.load(Ordering::Acquire);
    if !given.is_null() {
        return given;
    }
    match weak_environ() {
        // SAFETY: a C library defines `environ` as a pointer to such an array.
        // It may change with every setenv(3), hence volatile.
        Some(variable) => unsafe { variable.cast::<*const *const u8>().as_ptr().read_volatile() },
        None => core::ptr::null(),
    }
}
