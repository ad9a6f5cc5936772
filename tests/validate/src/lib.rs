#![no_std]
#![deny(unsafe_code)]
//! The parts of the program `kfd-validate`, apart from its entry.

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod arguments;
pub mod info;
pub mod init;
pub mod machine;
pub mod output;
