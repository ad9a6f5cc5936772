//! `kfd-validate info`: shows a machine.

pub mod folding;
