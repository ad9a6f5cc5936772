//! The compute driver, `/dev/kfd`: `linux/kfd_ioctl.h`, letter `K`.
//!
//! The driver dispatches on the number alone and copies the smaller of its own
//! and the caller's size, zeroes for the rest (kfd_chardev.c). For requests that
//! travel both ways it copies the block back on failure too.

mod process;

pub use process::*;
