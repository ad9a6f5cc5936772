#![no_std]
#![deny(unsafe_code)]
//! The C ABI of libhsakmt (`hsaKmt*`), over `hsakmt-core`.
//!
//! This crate forwards and decides nothing. It has
//! - the C types of all three generations and the conversions ([`types`],
//!   [`generation`]),
//! - [`Library`]: the process-wide state of the C library and one method for
//!   each C function, which checks pointers, enters the right context, and turns
//!   an error into a status and a remembered detail,
//! - [`export!`]: the table of C functions, which a leaf crate puts over one
//!   `Library` in a static.
//!
//! A leaf crate chooses the platform (Linux, or the simulated machine) and the
//! generation, and provides what only a final artefact can have: panic handler,
//! allocator, environment. So one source makes `libhsakmt` and `libhsakmt-sim`,
//! each with exactly one instance of core, and this crate's tests run on any
//! platform.

extern crate alloc;

pub mod generation;
pub mod library;
pub mod types;

mod conversion;
mod export;

pub use library::{Host, Libdrm, Library};
