//! The render nodes: kernel-rules section 4.

mod dispatch;
mod info;
mod version;

pub(crate) use dispatch::{ioctl, mmap};
