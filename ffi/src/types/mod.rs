//! The types of the C ABI that all generations share, under their C names.
//!
//! Every type here has the layout of the type of the same name in `ffi/include/hsakmttypes.h`;
//! `tests/abi` proves it for size, alignment, each field offset, each enumerator and each bit.
//! The public structures of the ABI are packed to 4 bytes, so a structure with an 8-byte field is
//! `repr(C, packed(4))`: its fields are read by value, never by reference.
//!
//! * A C enumeration is a newtype over its integer ([`HSAKMT_STATUS`]): a C caller may pass any
//!   value, and a kernel may report one that is newer than this library.
//! * A C union of a word and its bit-fields is a register ([`HsaMemFlags`]): one
//!   `Value` and a typed [`BitField`] per C bit-field.
//! * A C union of pointers and the same pointer as an integer is a `u64` here; the field has the
//!   name of the integer member. Core works on addresses, so no pointer is made from it here.
//! * Structures without pointers implement the zerocopy traits; the others at least
//!   [`FromZeros`](zerocopy::FromZeros).
//!
//! The structures whose layout differs between generations are in [`generation`](crate::generation).

#![allow(
    non_camel_case_types,
    non_snake_case,
    reason = "types and fields carry the names of the C ABI, so that one name finds both sides"
)]

mod bit_register;
mod debug;
mod event;
mod extension;
mod handle;
mod memory;
mod open_enum;
mod profiling;
mod queue;
mod smi;
mod status;
mod svm;
mod topology;

pub(crate) use bit_register::bit_register;
pub(crate) use open_enum::open_enum;

pub use bit_register::BitField;
pub use debug::*;
pub use event::*;
pub use extension::*;
pub use handle::*;
pub use memory::*;
pub use profiling::*;
pub use queue::*;
pub use smi::*;
pub use status::*;
pub use svm::*;
pub use topology::*;
