#![no_std]
#![deny(unsafe_code)]
//! core of the library (essay follows with the context)

extern crate alloc;

pub mod context;
pub mod errno;
pub mod error;
pub mod execute;
pub mod fallible;
pub mod lock;
pub mod process;
pub mod seam;
pub mod set_once;
pub mod topology;
pub mod uapi;
