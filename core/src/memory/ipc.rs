//! Memory that other processes know by a handle of eight words.
//!
//! The driver's part of the handle is a number by which any process can take the
//! buffer in. Only the out-of-tree driver has such numbers; upstream answers ENOTTY,
//! and dma-bufs do the same there.
//!
//! The words are those that the reference library uses, so that the two can share
//! with each other: 0 to 3 the driver's number, 4 where the addresses come from, 5 the
//! GPU of an aperture of its own, 6 pages, 7 the kernel's id of the GPU.

use super::MemoryFlags;
use super::access::Access;
use super::books::Books;
use super::object::{Draft, Handles, Home, Kind, Object};
use super::tree::Place;
use crate::error::{self, Error, Status};
use crate::seam::Platform;
use crate::uapi::kfd::{AllocMemoryFlags, IpcExportHandle, IpcImportHandle};

/// Memory as other processes know it: `HsaSharedMemoryHandle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedHandle(pub [u32; 8]);

/// Where the addresses of shared memory come from (word 4).
const COMMON_ADDRESSES: u32 = 1;
/// Addresses that GPUs do not cache, in the reference.
const UNCACHED_ADDRESSES: u32 = 2;
const OWN_APERTURE: u32 = 3;
const NO_ADDRESS: u32 = 5;

/// Shared memory that was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedMemory {
    /// Its first address, or what names it if it has none.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

impl<P: Platform> Access<'_, P> {
    /// Lets other processes know an allocation, by its first address.
    pub(crate) fn share(&self, address: u64, size: u64) -> Result<SharedHandle, Error> {
        let page = self.page();
        if size == 0 || size >= page.saturating_mul(1 << 32) {
            return Err(Error::argument(2));
        }
        let told = |_, object: &Object| {
            let (source, place) = match object.span.home {
                Home::Window => (NO_ADDRESS, 0),
                Home::Gpuvm(place) => (OWN_APERTURE, u32::from(place)),
                _ => (COMMON_ADDRESSES, 0),
            };
            let foreign = matches!(object.kind, Kind::Registered { .. } | Kind::ScratchPart);
            // All of it, whatever the caller says: that is what another process gets.
            let pages = object.length.checked_div(page).and_then(|it| u32::try_from(it).ok())?;
            let meant = !foreign && size <= object.length;
            meant.then_some((source, place, pages, object.flags))
        };
        let find = |books: &Books| books.objects.find(address);
        self.with_handle(address, find, told, |handle, (source, place, pages, flags)| {
            // The upper half of a handle names the GPU (kfd_chardev.c).
            let gpu_id = (handle >> 32) as u32;
            // The driver hands the flags on as they are.
            let flags = AllocMemoryFlags::from_bits_retain(flags.bits());
            let mut block = IpcExportHandle { handle, gpu_id, flags, ..IpcExportHandle::default() };
            let object = error::Object::Address(address);
            self.channel.execute(&mut block, &mut [], Status::ERROR, object)?;
            let [a, b, c, d] = block.share_handle;
            Ok(SharedHandle([a, b, c, d, source, place, pages, gpu_id]))
        })
    }

    /// Takes in what another process shares; for all nodes, or for these.
    pub(crate) fn import_shared(
        &self,
        handle: &SharedHandle,
        nodes: Option<&[u32]>,
    ) -> Result<SharedMemory, Error> {
        let [a, b, c, d, source, _, pages, gpu_id] = handle.0;
        let with_address = match source {
            COMMON_ADDRESSES | UNCACHED_ADDRESSES | OWN_APERTURE => true,
            NO_ADDRESS => false,
            _ => return Err(Error::argument(1)),
        };
        let length = u64::from(pages).saturating_mul(self.page());
        if length == 0 {
            return Err(Error::argument(1));
        }
        let gpus = nodes.map(|nodes| self.gpus_of(nodes)).transpose()?;
        let (owner, node) = self.gpu_by_id(gpu_id, false)?;
        let draft = Draft {
            kind: Kind::Shared,
            size: length,
            length,
            node,
            flags: MemoryFlags::empty(),
            reachable: owner.peers,
        };
        let (placed, va_addr) = self.import_span(&owner, with_address, &draft)?;
        let mut block = IpcImportHandle {
            va_addr,
            share_handle: [a, b, c, d],
            gpu_id: owner.gpu_id,
            ..IpcImportHandle::default()
        };
        let gpu = error::Object::Gpu(owner.gpu_id);
        let made = self.channel.execute(&mut block, &mut [], Status::ERROR, gpu);
        let flags = MemoryFlags::from_bits_retain(block.flags.bits());
        let for_cpu = with_address && !owner.apart && block.mmap_offset != 0;
        let made = made.and_then(|_| {
            let shown = if for_cpu {
                self.show(&owner, flags, placed.start, length, block.mmap_offset)
            } else {
                Ok(0)
            };
            shown.map_err(|error| self.drop_buffer(block.handle, error))
        });
        match made {
            Ok(visible) => {
                self.describe_shared(placed.place, flags);
                self.publish_import(placed, Handles::One(block.handle), visible, gpus);
                Ok(SharedMemory { address: placed.start, size: length })
            }
            Err(error) => {
                self.forget(placed);
                Err(error)
            }
        }
    }

    /// Notes what the exporter said of memory that nobody sees yet. System memory is
    /// within every GPU's reach.
    fn describe_shared(&self, place: Place, flags: MemoryFlags) {
        let system =
            !flags.contains(MemoryFlags::NON_PAGED) || flags.contains(MemoryFlags::GTT_ACCESS);
        let all = self.machine(|machine| Ok(machine.gpus_in_use())).ok().filter(|_| system);
        let mut books = self.memory.lock(self.os());
        if let Some(object) = books.objects.value_mut(place) {
            object.flags = flags;
            object.reachable = all.unwrap_or(object.reachable);
        }
    }
}
