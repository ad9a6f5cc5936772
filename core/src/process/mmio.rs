//! The page of registers by which the CPU flushes a GPU's host data path.
//!
//! One page per GPU, at one address for CPU and GPU, made in four steps and
//! unmade in the opposite order. A step that fails on the way down is tried
//! again later: the page stays in the list at the stage that it has reached.
//!
//! The pages belong to the kernel process object, not to a context: what could
//! not be undone at a close is found again by the next acquire.

use alloc::vec::Vec;

use crate::context::Channel;
use crate::errno::Errno;
use crate::error::{Error, Object, Status};
use crate::fallible::try_push;
use crate::seam::{Array, MapDevice, Mapping, Os, Placement, Platform, Protection};
use crate::uapi::kfd::{
    AllocMemoryFlags, AllocMemoryOfGpu, FreeMemoryOfGpu, MapMemoryToGpu, UnmapMemoryFromGpu,
};

/// The size of the register page in the driver (`kfd_priv.h`,
/// KFD_MMIO_REMAP size); a larger page of the system cannot show it.
const PAGE: usize = 4096;

/// How far a page has come; each stage includes the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Its address is reserved.
    Reserved,
    /// The driver has a buffer for it: handle, and offset in `/dev/kfd`.
    Allocated(u64, u64),
    /// The CPU reaches it.
    Visible(u64),
    /// CPU and GPU reach it.
    Mapped(u64),
}

/// The register page of one GPU.
#[derive(Debug)]
pub(crate) struct MmioPage {
    gpu_id: u32,
    address: usize,
    stage: Stage,
}

impl MmioPage {
    /// The GPU and the page's address, if it is usable.
    pub(crate) fn usable(&self) -> Option<(u32, u64)> {
        matches!(self.stage, Stage::Mapped(_)).then_some((self.gpu_id, self.address as u64))
    }
}

/// Makes the pages of these GPUs that are not there yet.
///
/// # Errors
/// NO_MEMORY when the list cannot grow. A page that the driver refuses is no
/// failure: the GPU goes without, as with kernels that do not have it.
pub(crate) fn make<P: Platform>(
    channel: &Channel<'_, P>,
    pages: &mut Vec<MmioPage>,
    gpus: impl Iterator<Item = u32>,
) -> Result<(), Error> {
    if channel.os().page_size() != PAGE {
        return Ok(());
    }
    for gpu_id in gpus {
        let known = pages.iter().position(|page| page.gpu_id == gpu_id);
        let mut page = match known {
            Some(place) => pages.swap_remove(place),
            None => match reserve(channel) {
                Ok(address) => MmioPage { gpu_id, address, stage: Stage::Reserved },
                Err(_) => continue,
            },
        };
        // Room for it is there, or is made before anything else is done.
        if let Err(error) = pages.try_reserve(1) {
            let _ = unmake_one(channel, &mut page);
            return Err(error.into());
        }
        let usable = complete(channel, &mut page).is_ok();
        if usable || unmake_one(channel, &mut page).is_err() {
            try_push(pages, page)?;
        }
    }
    Ok(())
}

/// Unmakes every page; what the system refuses to undo stays in the list.
pub(crate) fn unmake<P: Platform>(channel: &Channel<'_, P>, pages: &mut Vec<MmioPage>) {
    pages.retain_mut(|page| unmake_one(channel, page).is_err());
}

/// Removes the CPU's mappings alone, for a process object that is about to end
/// and takes its buffers with it.
pub(crate) fn abandon<P: Platform>(platform: &P, pages: &mut Vec<MmioPage>) {
    for page in pages.drain(..) {
        let _ = platform.os().unmap(page.address, PAGE);
    }
}

fn reserve<P: Platform>(channel: &Channel<'_, P>) -> Result<usize, Errno> {
    channel.os().map(Mapping {
        placement: Placement::Anywhere,
        length: PAGE,
        protection: Protection::empty(),
        reserve: false,
        shared: false,
    })
}

/// Brings a page to its last stage.
fn complete<P: Platform>(channel: &Channel<'_, P>, page: &mut MmioPage) -> Result<(), Error> {
    let gpu = Object::Gpu(page.gpu_id);
    if page.stage == Stage::Reserved {
        let mut block = AllocMemoryOfGpu {
            va_addr: page.address as u64,
            size: PAGE as u64,
            gpu_id: page.gpu_id,
            flags: AllocMemoryFlags::MMIO_REMAP
                | AllocMemoryFlags::WRITABLE
                | AllocMemoryFlags::COHERENT,
            ..AllocMemoryOfGpu::default()
        };
        channel.execute(&mut block, &mut [], Status::ERROR, gpu)?;
        page.stage = Stage::Allocated(block.handle, block.mmap_offset);
    }
    if let Stage::Allocated(handle, offset) = page.stage {
        let mapping = MapDevice {
            placement: Placement::Replace(page.address),
            length: PAGE,
            protection: Protection::READ | Protection::WRITE,
            offset,
        };
        channel.map(mapping, Status::ERROR, gpu)?;
        page.stage = Stage::Visible(handle);
    }
    if let Stage::Visible(handle) = page.stage {
        let mut block = MapMemoryToGpu { handle, n_devices: 1, ..MapMemoryToGpu::default() };
        let devices = page.gpu_id.to_ne_bytes();
        channel.execute(&mut block, &mut [Array::In(&devices)], Status::ERROR, gpu)?;
        page.stage = Stage::Mapped(handle);
    }
    Ok(())
}

/// Takes a page down, as far as the system lets it.
fn unmake_one<P: Platform>(channel: &Channel<'_, P>, page: &mut MmioPage) -> Result<(), Error> {
    let gpu = Object::Gpu(page.gpu_id);
    if let Stage::Mapped(handle) = page.stage {
        let mut block = UnmapMemoryFromGpu { handle, n_devices: 1, ..Default::default() };
        let devices = page.gpu_id.to_ne_bytes();
        channel.execute(&mut block, &mut [Array::In(&devices)], Status::ERROR, gpu)?;
        page.stage = Stage::Visible(handle);
    }
    if let Stage::Allocated(handle, _) | Stage::Visible(handle) = page.stage {
        channel.execute(&mut FreeMemoryOfGpu { handle }, &mut [], Status::ERROR, gpu)?;
        page.stage = Stage::Reserved;
    }
    channel.unmap(page.address, PAGE)
}
