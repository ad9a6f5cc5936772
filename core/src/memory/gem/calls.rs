//! The calls of a context that concern buffer objects.

use super::{BufferHandle, GpuRights, ImportFailure, ImportedObject, ObjectMapping, Tag};
use crate::error::Error;
use crate::process::Guard;
use crate::seam::Platform;

impl<P: Platform> Guard<'_, P> {
    /// Takes a buffer in by a dma-buf's descriptor, which stays the caller's, through the
    /// GPU of a render node. Importing it again gives the same handle and counts.
    ///
    /// # Errors
    /// INVALID_HANDLE for a render node that no GPU in use has, and when the buffer's tag
    /// cannot be read; INVALID_PARAMETER for another tag than expected, which is told;
    /// ERROR for what is no dma-buf, or when the driver refuses; NO_MEMORY; NOT_OPENED in
    /// a vfork child. Nothing is imported then.
    pub fn import_object(
        &self,
        render_minor: u32,
        descriptor: u32,
        tag: Tag,
    ) -> Result<ImportedObject, ImportFailure> {
        self.owned()?;
        self.memory().import_object(render_minor, descriptor, tag)
    }

    /// Gives a buffer out as a dma-buf; its descriptor, close-on-exec, is the caller's.
    /// `render_minor` is the node that it was imported through.
    ///
    /// # Errors
    /// INVALID_HANDLE, also when the driver refuses or descriptors run out (EMFILE);
    /// NOT_OPENED in a vfork child.
    pub fn export_object(&self, render_minor: u32, handle: BufferHandle) -> Result<u32, Error> {
        self.owned()?;
        self.memory().export_object(render_minor, handle)
    }

    /// Maps part of a buffer on the GPU node that it was imported through, and waits
    /// until it is mapped.
    ///
    /// # Errors
    /// NOT_SUPPORTED before KFD 1.15; INVALID_NODE_UNIT, also for another GPU than the
    /// buffer's; INVALID_HANDLE; ERROR when the driver refuses: addresses in use
    /// (EINVAL), beyond the buffer, misaligned; NOT_OPENED in a vfork child. Nothing is
    /// mapped then.
    pub fn map_object(
        &self,
        handle: BufferHandle,
        mapping: &ObjectMapping,
        rights: GpuRights,
        node: u32,
    ) -> Result<(), Error> {
        self.owned()?;
        self.memory().map_object(handle, mapping, rights, node)
    }

    /// Unmaps what was mapped of a buffer at exactly this address, and waits until it is
    /// gone.
    ///
    /// # Errors
    /// As [`Guard::map_object`]; ERROR (ENOENT) where nothing is mapped. When only the
    /// wait fails, twice, it is unmapped nevertheless.
    pub fn unmap_object(
        &self,
        handle: BufferHandle,
        mapping: &ObjectMapping,
        node: u32,
    ) -> Result<(), Error> {
        self.owned()?;
        self.memory().unmap_object(handle, mapping, node)
    }

    /// Lets the CPU see all of a buffer, until it is freed; where. Each call tells the
    /// same address. A forked child does not see it.
    ///
    /// # Errors
    /// INVALID_HANDLE; ERROR when the driver refuses (EPERM: memory that no CPU may see);
    /// NO_MEMORY; NOT_OPENED in a vfork child.
    pub fn show_object(&self, handle: BufferHandle) -> Result<u64, Error> {
        self.owned()?;
        self.memory().show_object(handle)
    }

    /// Where in the file of the render node that it was imported through the CPU maps a
    /// buffer: the offset of mmap(2), in bytes.
    ///
    /// # Errors
    /// INVALID_HANDLE; ERROR when the driver refuses; NOT_OPENED in a vfork child.
    pub fn object_offset(&self, render_minor: u32, handle: BufferHandle) -> Result<u64, Error> {
        self.owned()?;
        self.memory().object_offset(render_minor, handle)
    }

    /// Takes one import back. With the last one the buffer's mappings end, and it goes
    /// unless others have it. Waits for other calls that use it. The tag that an import
    /// had to do with is taken away, unless it is to be kept.
    ///
    /// # Errors
    /// INVALID_HANDLE; ERROR or NO_MEMORY, with everything as it was; NOT_OPENED in a
    /// vfork child.
    pub fn free_object(&self, handle: BufferHandle, keep_tag: bool) -> Result<(), Error> {
        self.owned()?;
        self.memory().free_object(handle, keep_tag)
    }
}
