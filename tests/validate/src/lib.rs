#![no_std]
#![deny(unsafe_code)]
//! The parts of the program `kfd-validate`, apart from its entry.
//!
//! From the outside in: [`arguments`] says what is wanted, [`program`] does it
//! and exits, [`failure`] says why it did not. [`validation`] checks a [`machine`],
//! stage by stage: this one or a [`simulation`], in which something may be broken; a
//! GPU that goes meanwhile is survived by [`signals`]. [`info`] shows a machine, or a
//! captured [`tree`]. [`output`] makes text, tables and JSON.

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod arguments;
pub mod failure;
#[cfg(test)]
mod golden;
pub mod info;
pub mod init;
pub mod machine;
pub mod output;
pub mod program;
pub mod signals;
pub mod simulation;
pub mod tree;
pub mod validation;
