#![no_std]
#![deny(unsafe_code)]
//! The Linux half of the library: [`Os`](hsakmt_core::seam::Os) and
//! [`Driver`](hsakmt_core::seam::Driver) by system calls, without a C library.
//!
//! The layers, from the bottom:
//!
//! - [`arch`]: how this CPU enters the kernel, and its barriers. One file per ISA.
//! - `syscall`: one function per system call, by topic. Arguments in their own
//!   types go in, a `Result` comes out; no decisions.
//! - [`fd`], [`page_size`], [`fork`], [`host`], [`environment`]: what a C
//!   library would otherwise keep for the process.
//! - [`Linux`]: the two traits of the core, in terms of all that.
//!
//! Types and numbers are those of `linux-raw-sys`, which are generated from the
//! kernel's own headers. Nothing here allocates except `read_file`, which grows
//! the caller's vector fallibly, and nothing panics.

extern crate alloc;

mod syscall;

pub mod arch;
pub mod environment;
pub mod fd;
pub mod fork;
#[cfg(feature = "freestanding")]
pub mod freestanding;
#[cfg(feature = "heap")]
pub mod heap;
pub mod host;
pub mod page_size;
#[cfg(feature = "views")]
mod views;

mod linux;

pub use linux::Linux;
