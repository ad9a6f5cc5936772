//! The kernel's argument blocks: bytes, numbers and names, no behaviour.
//!
//! One block is a `#[repr(C)]` struct made by the `block!` macro. It carries its
//! request number (computed in `const fn`, with the size inside), its restart
//! policy, the names of its fields for tracing, and the places of the arrays
//! that lie outside it. Sizes and offsets are asserted at compile time, and a
//! test holds them against the kernel's header.
//!
//! Fields keep the names of the kernel's header; the types are its names without
//! prefix. A request that means several things has one block for each.

pub(crate) mod block;
mod catalog;
mod request;
pub(crate) mod scalar;

pub mod amdgpu;
pub mod drm;
pub mod gate;
pub mod kfd;
pub mod udmabuf;

pub use block::{ArraySlot, Block, BlockInfo, Field, FieldValue, Record, RecordInfo, Restart};
pub use catalog::{ALL, RECORDS, blocks, request_name};
pub use request::{Direction, Request};

pub(crate) use block::{block, record};
