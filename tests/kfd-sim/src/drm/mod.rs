//! The render nodes: kernel-rules section 4.

mod dispatch;
mod gem;
mod info;
mod version;

pub(crate) use dispatch::{ioctl, mmap};
pub(crate) use gem::{GemHandles, close_handles};
