#![no_std]

pub mod generation;
pub mod types;
