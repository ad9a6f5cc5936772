//! The compute driver, `/dev/kfd`: `linux/kfd_ioctl.h`, letter `K`.
//!
//! The driver dispatches on the number alone and copies the smaller of its own
//! and the caller's size, zeroes for the rest (kfd_chardev.c). For requests that
//! travel both ways it copies the block back on failure too. EINVAL for a GPU
//! means: not one of the numbers that the process's apertures show.

mod ais;
mod criu;
mod debug;
mod dmabuf;
mod event;
mod ipc;
mod memory;
mod mmap;
mod process;
mod profiling;
mod queue;
mod svm;

pub use ais::*;
pub use criu::*;
pub use debug::*;
pub use dmabuf::*;
pub use event::*;
pub use ipc::*;
pub use memory::*;
pub use mmap::*;
pub use process::*;
pub use profiling::*;
pub use queue::*;
pub use svm::*;
