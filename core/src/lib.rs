#![no_std]
#![deny(unsafe_code)]
//! core of the library (essay follows with the context)

extern crate alloc;

pub mod errno;
pub mod error;
pub mod seam;
pub mod uapi;
