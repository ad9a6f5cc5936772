#![no_std]
#![deny(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::panic_in_result_fn,
    clippy::string_slice,
    clippy::todo,
    clippy::unimplemented,
    clippy::unreachable,
    clippy::unwrap_in_result,
    clippy::unwrap_used
)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::panic_in_result_fn,
        clippy::string_slice,
        clippy::unwrap_used
    )
)]
//! Everything that a user-space library for AMD's KFD compute driver decides,
//! without a system call of its own.
//!
//! # Layers
//! Each speaks only to the ones below it.
//!
//! - [`process`]: what one process has of the library. It owns the residue that
//!   the kernel keeps for the life of the process, the primary context with its
//!   count of opens, the secondary contexts, and the fork rule. Enter here:
//!   [`Process::open_primary`](process::Process::open_primary), then
//!   [`Process::primary`](process::Process::primary) for each call.
//! - [`context`]: everything between an open and a close: the options, the
//!   version, the machine with its topology and apertures.
//! - [`memory`]: a context's memory: addresses, buffers, mappings, registrations.
//! - [`copy`]: copies between memory of the process and of GPUs, by the CPU or by
//!   copy engines.
//! - [`queue`]: a context's queues: what can be decided of them without a driver (sizes
//!   of their buffers, rings and doorbells, packets), and their life with it.
//! - [`event`]: a context's events: the event page, waits, callbacks.
//! - [`topology`]: the machine as the kernel's tree tells it, read once, then
//!   immutable. Needs no open driver.
//! - [`execute`]: the one place where a typed block meets the driver.
//! - [`uapi`]: the kernel's argument blocks. Bytes, numbers and names.
//! - [`seam`]: the two traits through which the outside is known, [`Os`] and
//!   [`Driver`], and wrappers around them that trace, count, fail and copy.
//!
//! Beside them, for all: [`error`] (a status for C, the reason behind it, and
//! the newest failure of each thread), [`lock`], [`set_once`], [`fallible`],
//! [`errno`].
//!
//! # Promises
//! - No global, no environment variable, no system call: all of that comes
//!   through the seams or in [`Options`](context::Options).
//! - No panic on anything that the kernel, sysfs or a caller can produce.
//!   Allocation is fallible and becomes NO_MEMORY.
//! - A failed call leaves everything as it was.
//! - Unsafe code is denied, except in `lock`, `set_once`, `process`,
//!   `process::slot`, `queue::mapped`, `queue::buffers`, `queue::command_queue` and
//!   `copy`, each with its argument at the top.
//!
//! [`Os`]: seam::Os
//! [`Driver`]: seam::Driver

extern crate alloc;

pub mod context;
pub mod copy;
pub mod errno;
pub mod error;
pub mod event;
pub mod execute;
pub mod fallible;
pub mod lock;
pub mod log;
pub mod memory;
pub mod process;
pub mod queue;
pub mod seam;
pub mod set_once;
mod sort;
pub mod topology;
pub mod uapi;
