//! Render files that somebody else in the process has opened.

use core::fmt::Debug;

use crate::seam::DeviceToken;

/// Another library of the process that has render files of its own: libdrm.
///
/// The kernel binds a GPU's address space to one file, for good (`kfd_process.c`,
/// `kfd_process_device_init_vm`). What that library maps reaches queues only where its
/// file and ours are one and the same, so it is asked before each binding of the primary
/// context.
pub trait RenderFiles: Debug + Sync {
    /// The file that the GPU of a render node is to be bound to, in place of `opened`:
    /// another number of it, which is the asker's from then on. `None` for `opened`.
    fn offer(&self, render_minor: u32, opened: DeviceToken) -> Option<DeviceToken>;

    /// The driver refused to bind the GPU to what was offered; it is bound to the
    /// opened file, or not at all.
    fn refused(&self, render_minor: u32);
}
