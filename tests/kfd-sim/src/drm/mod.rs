//! The render nodes: kernel-rules section 4.

mod dispatch;
mod gem;
mod gem_va;
mod info;
mod syncobj;
mod version;

pub(crate) use dispatch::{ioctl, mmap};
pub(crate) use gem::{GemHandles, close_handles};
pub(crate) use syncobj::Syncobjs;
