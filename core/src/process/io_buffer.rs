//! Device memory that CPU and one GPU see at the same address: register page and
//! doorbells. The driver calls them buffers of kind MMIO_REMAP and DOORBELL.
//!
//! Made in four steps and unmade in the opposite order. A step that fails on the way
//! down can be tried again: the buffer stays at the stage that it has reached.

use crate::context::Channel;
use crate::error::{Error, Object, Status};
use crate::seam::{Array, MapDevice, Os, Placement, Platform, Protection};
use crate::uapi::kfd::{
    AllocMemoryFlags, AllocMemoryOfGpu, FreeMemoryOfGpu, MapMemoryToGpu, UnmapMemoryFromGpu,
};

/// How far a buffer has come; each stage includes the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its addresses are reserved.
    Reserved,
    /// The driver has a buffer for it: handle, and offset in `/dev/kfd`.
    Allocated(u64, u64),
    /// The CPU reaches it.
    Visible(u64),
    /// CPU and GPU reach it.
    Mapped(u64),
}

/// Device memory of one GPU.
#[derive(Debug)]
pub(crate) struct IoBuffer {
    pub(crate) gpu_id: u32,
    /// Where CPU and GPU see it.
    pub(crate) address: usize,
    /// Bytes.
    pub(crate) length: usize,
    stage: Stage,
}

impl IoBuffer {
    /// A buffer at reserved addresses, which it owns from now on.
    pub(crate) fn at(gpu_id: u32, address: usize, length: usize) -> IoBuffer {
        IoBuffer { gpu_id, address, length, stage: Stage::Reserved }
    }

    /// Whether CPU and GPU reach it.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.stage, Stage::Mapped(_))
    }

    /// Brings it to its last stage. `kind` is MMIO_REMAP or DOORBELL; `offset` that of
    /// the mapping in `/dev/kfd`, where it is not the one that the driver answers.
    ///
    /// # Errors
    /// ERROR with the driver's errno.
    pub(crate) fn complete<P: Platform>(
        &mut self,
        channel: &Channel<'_, P>,
        kind: AllocMemoryFlags,
        offset: Option<u64>,
    ) -> Result<(), Error> {
        let gpu = Object::Gpu(self.gpu_id);
        if self.stage == Stage::Reserved {
            let mut block = AllocMemoryOfGpu {
                va_addr: self.address as u64,
                size: self.length as u64,
                gpu_id: self.gpu_id,
                flags: kind | AllocMemoryFlags::WRITABLE | AllocMemoryFlags::COHERENT,
                ..AllocMemoryOfGpu::default()
            };
            channel.execute(&mut block, &mut [], Status::ERROR, gpu)?;
            self.stage = Stage::Allocated(block.handle, offset.unwrap_or(block.mmap_offset));
        }
        if let Stage::Allocated(handle, offset) = self.stage {
            show(channel, self.address, self.length, offset, gpu)?;
            self.stage = Stage::Visible(handle);
        }
        if let Stage::Visible(handle) = self.stage {
            let mut block = MapMemoryToGpu { handle, n_devices: 1, ..MapMemoryToGpu::default() };
            let devices = self.gpu_id.to_ne_bytes();
            channel.execute(&mut block, &mut [Array::In(&devices)], Status::ERROR, gpu)?;
            self.stage = Stage::Mapped(handle);
        }
        Ok(())
    }

    /// Takes it down, addresses included, as far as the system lets it.
    ///
    /// # Errors
    /// ERROR with the errno; what is left can be taken down again.
    pub(crate) fn unmake<P: Platform>(&mut self, channel: &Channel<'_, P>) -> Result<(), Error> {
        self.unmake_buffer(channel)?;
        channel.unmap(self.address, self.length)
    }

    /// Takes the driver's buffer down; addresses and the CPU's view stay.
    ///
    /// # Errors
    /// As [`IoBuffer::unmake`].
    pub(crate) fn unmake_buffer<P: Platform>(
        &mut self,
        channel: &Channel<'_, P>,
    ) -> Result<(), Error> {
        let gpu = Object::Gpu(self.gpu_id);
        if let Stage::Mapped(handle) = self.stage {
            let mut block = UnmapMemoryFromGpu { handle, n_devices: 1, ..Default::default() };
            let devices = self.gpu_id.to_ne_bytes();
            channel.execute(&mut block, &mut [Array::In(&devices)], Status::ERROR, gpu)?;
            self.stage = Stage::Visible(handle);
        }
        if let Stage::Allocated(handle, _) | Stage::Visible(handle) = self.stage {
            channel.execute(&mut FreeMemoryOfGpu { handle }, &mut [], Status::ERROR, gpu)?;
            self.stage = Stage::Reserved;
        }
        Ok(())
    }

    /// Removes the CPU's view alone, for a process object that is about to end and
    /// takes its buffers with it.
    pub(crate) fn abandon<P: Platform>(&self, platform: &P) {
        let _ = platform.os().unmap(self.address, self.length);
    }
}

/// Puts device memory of `/dev/kfd` over addresses of ours.
///
/// # Errors
/// ERROR with the errno.
pub(crate) fn show<P: Platform>(
    channel: &Channel<'_, P>,
    address: usize,
    length: usize,
    offset: u64,
    gpu: Object,
) -> Result<(), Error> {
    let mapping = MapDevice {
        placement: Placement::Replace(address),
        length,
        protection: Protection::READ | Protection::WRITE,
        offset,
    };
    channel.map(mapping, Status::ERROR, gpu).map(drop)
}
