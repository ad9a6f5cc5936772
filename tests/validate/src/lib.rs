#![no_std]
//! The parts of the program `kfd-validate`, apart from its entry.

extern crate alloc;

pub mod init;
