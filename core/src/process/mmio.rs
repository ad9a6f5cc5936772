//! The page of registers by which the CPU flushes a GPU's host data path.
//!
//! One page per GPU, at one address for CPU and GPU ([`IoBuffer`]). Where one does
//! not go down it stays in the list, and that is tried again later.
//!
//! The pages belong to the kernel process object, not to a context: what could
//! not be undone at a close is found again by the next acquire.

use alloc::vec::Vec;

use super::io_buffer::IoBuffer;
use crate::context::Channel;
use crate::errno::Errno;
use crate::error::Error;
use crate::fallible::try_push;
use crate::seam::{Mapping, Os, Placement, Platform, Protection};
use crate::uapi::kfd::AllocMemoryFlags;

/// The size of the register page in the driver (`kfd_priv.h`,
/// KFD_MMIO_REMAP size); a larger page of the system cannot show it.
const PAGE: usize = 4096;

/// The register page of one GPU.
#[derive(Debug)]
pub(crate) struct MmioPage(IoBuffer);

impl MmioPage {
    /// The GPU and the page's address, if it is usable.
    pub(crate) fn usable(&self) -> Option<(u32, u64)> {
        self.0.is_mapped().then_some((self.0.gpu_id, self.0.address as u64))
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
        let known = pages.iter().position(|page| page.0.gpu_id == gpu_id);
        let mut page = match known {
            Some(place) => pages.swap_remove(place),
            None => match reserve(channel) {
                Ok(address) => MmioPage(IoBuffer::at(gpu_id, address, PAGE)),
                Err(_) => continue,
            },
        };
        // Room for it is there, or is made before anything else is done.
        if let Err(error) = pages.try_reserve(1) {
            let _ = page.0.unmake(channel);
            return Err(error.into());
        }
        let usable = page.0.complete(channel, AllocMemoryFlags::MMIO_REMAP, None).is_ok();
        if usable || page.0.unmake(channel).is_err() {
            try_push(pages, page)?;
        }
    }
    Ok(())
}

/// Unmakes every page; what the system refuses to undo stays in the list.
pub(crate) fn unmake<P: Platform>(channel: &Channel<'_, P>, pages: &mut Vec<MmioPage>) {
    pages.retain_mut(|page| page.0.unmake(channel).is_err());
}

/// Removes the CPU's mappings alone, for a process object that is about to end
/// and takes its buffers with it.
pub(crate) fn abandon<P: Platform>(platform: &P, pages: &mut Vec<MmioPage>) {
    for page in pages.drain(..) {
        page.0.abandon(platform);
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
