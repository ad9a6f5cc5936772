//! Dma-bufs: buffers of others taken in, buffers of ours given out.
//!
//! No descriptor is kept: the one of an import is the caller's, who may close it at
//! once, and the one of an export is given to the caller.
//!
//! An import is an object like others, with addresses or without, that is taken back
//! by a deregistration or a free. What the exporter attached (metadata) lies beside its
//! handle and stays where it is until then.

use alloc::vec::Vec;

use super::MemoryFlags;
use super::access::{Access, Owner};
use super::books::Books;
use super::gpu_set::GpuSet;
use super::object::{Draft, Handles, Kind, Noted, Object};
use super::objects::Placed;
use super::spans::{Source, round_up};
use super::tree::Place;
use crate::errno::Errno;
use crate::error::{self, Error, Operation, Status};
use crate::fallible::try_box;
use crate::seam::{Array, Platform};
use crate::uapi::gate::Feature;
use crate::uapi::kfd::{
    AllocMemoryFlags, ExportDmabuf, ExportDmabufFlags, GetDmabufInfo, GetVersion, ImportDmabuf,
};

/// The alignment of imported buffers: GPUs tile graphics in blocks of up to 256 KiB.
const ALIGNMENT: u64 = 256 << 10;

/// Room for metadata that nearly every exporter's fits in.
const METADATA_ROOM: usize = 64;

/// How often metadata may grow between two questions.
const METADATA_QUESTIONS: u32 = 8;

/// A buffer that was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportedBuffer {
    /// Its first GPU address, or what names it if it has none.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The node whose memory it is, by its public id.
    pub node: u32,
    /// Where what the exporter attached lies until the buffer is deregistered; 0 for
    /// nothing.
    pub metadata: u64,
    /// Bytes of it.
    pub metadata_size: u32,
}

/// A buffer that was given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportedBuffer {
    /// The dma-buf's descriptor, close-on-exec, which is the caller's.
    pub descriptor: u32,
    /// Bytes from the start of the dma-buf to the address that was asked for.
    pub offset: u64,
}

/// What the driver says of a dma-buf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferInfo {
    /// Bytes.
    pub size: u64,
    /// The kernel's id of the GPU: whose memory it is, or for system memory the first
    /// that the process sees.
    pub gpu_id: u32,
    /// Whether it is memory of a GPU.
    pub is_device_memory: bool,
}

/// What the driver says, metadata included.
struct Described {
    block: GetDmabufInfo,
    metadata: Vec<u8>,
}

/// What an imported buffer is, in the words of an allocation. All rights, and coherent
/// where kernels end.
fn memory_flags(flags: AllocMemoryFlags) -> MemoryFlags {
    let mut to = MemoryFlags::NON_PAGED | MemoryFlags::COARSE_GRAIN;
    if flags.contains(AllocMemoryFlags::GTT) {
        to |= MemoryFlags::GTT_ACCESS;
    }
    if flags.contains(AllocMemoryFlags::PUBLIC) {
        to |= MemoryFlags::HOST_ACCESS;
    }
    to
}

impl<P: Platform> Access<'_, P> {
    /// Takes a buffer in by its dma-buf. Without nodes, and if no address is required,
    /// it gets none.
    pub(crate) fn import(
        &self,
        descriptor: u32,
        nodes: Option<&[u32]>,
        needs_address: bool,
    ) -> Result<ImportedBuffer, Error> {
        let gpus = nodes.map(|nodes| self.gpus_of(nodes)).transpose()?;
        let Described { block: info, metadata } = self.describe(descriptor)?;
        let (owner, node) = self.importer(&info)?;
        let no_memory = || Error::no_memory(info.size);
        let length =
            round_up(info.size, self.page()).filter(|&length| length != 0).ok_or_else(no_memory)?;
        let in_vram = info.flags.contains(AllocMemoryFlags::VRAM);
        let reachable =
            if in_vram { owner.peers } else { self.machine(|it| Ok(it.gpus_in_use()))? };
        let draft = Draft {
            kind: Kind::Graphics,
            size: info.size,
            length,
            node,
            flags: memory_flags(info.flags),
            reachable,
        };
        let with_address = nodes.is_some() || needs_address;
        let (placed, va_addr) = self.import_span(&owner, with_address, &draft)?;
        let metadata_size = metadata.len() as u32;
        let address_of_metadata = match metadata_size {
            0 => 0,
            _ => metadata.as_ptr().expose_provenance() as u64,
        };
        let noted = try_box(Noted { handle: 0, metadata });
        let made = noted.and_then(|mut noted| {
            let (gpu_id, dmabuf_fd) = (owner.gpu_id, descriptor);
            let mut block = ImportDmabuf { va_addr, gpu_id, dmabuf_fd, ..ImportDmabuf::default() };
            let object = error::Object::Handle(u64::from(descriptor));
            self.channel
                .execute(&mut block, &mut [], Status::ERROR, object)
                .map_err(|error| self.of_descriptor(error))?;
            if let Some(noted) = noted.first_mut() {
                noted.handle = block.handle;
            }
            Ok(noted)
        });
        match made {
            Ok(noted) => {
                self.publish_import(placed, Handles::Noted(noted), 0, gpus);
                Ok(ImportedBuffer {
                    address: placed.start,
                    size: info.size,
                    node,
                    metadata: address_of_metadata,
                    metadata_size,
                })
            }
            Err(error) => {
                self.forget(placed);
                Err(error)
            }
        }
    }

    /// Addresses for an imported buffer, and the one by which the driver knows them: 0
    /// where it has none.
    pub(super) fn import_span(
        &self,
        owner: &Owner,
        with_address: bool,
        draft: &Draft,
    ) -> Result<(Placed, u64), Error> {
        let alignment = u64::max(ALIGNMENT, u64::max(self.page(), owner.alignment()));
        if !with_address {
            return Ok((self.window_span(draft.length, alignment, draft)?, 0));
        }
        if owner.apart {
            return self.gpuvm_span(owner.place, alignment, None, draft);
        }
        let placed = self.process_span(Source::Device, alignment, None, draft)?;
        Ok((placed, placed.start))
    }

    /// Lets others see an imported buffer.
    pub(super) fn publish_import(
        &self,
        placed: Placed,
        handles: Handles,
        visible: u64,
        gpus: Option<GpuSet>,
    ) {
        let mut books = self.memory.lock(self.os());
        if let Some(object) = books.put_handles(placed.place, handles) {
            (object.visible, object.registered, object.registrations) = (visible, gpus, 1);
        }
    }

    /// Asks the driver what a dma-buf is.
    fn describe(&self, descriptor: u32) -> Result<Described, Error> {
        let object = error::Object::Handle(u64::from(descriptor));
        let mut room = METADATA_ROOM;
        for _ in 0..METADATA_QUESTIONS {
            let mut metadata = Vec::new();
            metadata.try_reserve_exact(room)?;
            metadata.resize(room, 0);
            let mut block = GetDmabufInfo {
                metadata_size: u32::try_from(room).unwrap_or(u32::MAX),
                dmabuf_fd: descriptor,
                ..GetDmabufInfo::default()
            };
            let arrays = &mut [Array::Out(&mut metadata)];
            let answer = self.channel.execute(&mut block, arrays, Status::ERROR, object);
            let there = usize::try_from(block.metadata_size).unwrap_or(usize::MAX);
            match answer {
                Ok(_) => {
                    metadata.truncate(there);
                    return Ok(Described { block, metadata });
                }
                Err(error) if error.errno == Some(Errno::EINVAL) && there > room => room = there,
                Err(error) => return Err(self.of_descriptor(error)),
            }
        }
        let operation = Operation::Execute(<GetDmabufInfo as crate::uapi::Block>::REQUEST);
        Err(Error::system(Status::ERROR, operation, Errno::EAGAIN, object))
    }

    /// What the driver says of a dma-buf.
    pub(crate) fn buffer_info(&self, descriptor: u32) -> Result<BufferInfo, Error> {
        let object = error::Object::Handle(u64::from(descriptor));
        let mut block = GetDmabufInfo { dmabuf_fd: descriptor, ..GetDmabufInfo::default() };
        self.channel
            .execute(&mut block, &mut [Array::Absent], Status::NOT_SUPPORTED, object)
            .map_err(|error| self.of_descriptor(error).with_status(Status::NOT_SUPPORTED))?;
        Ok(BufferInfo {
            size: block.size,
            gpu_id: block.gpu_id,
            is_device_memory: block.flags.contains(AllocMemoryFlags::VRAM),
        })
    }

    /// The driver answers EBADF to a process that it does not know, and to a dma-buf's
    /// descriptor that is not open: a request without one tells them apart.
    fn of_descriptor(&self, error: Error) -> Error {
        if error.errno != Some(Errno::EBADF) {
            return error;
        }
        let mut version = GetVersion::default();
        let known = self.channel.execute(&mut version, &mut [], error.status, error.object);
        if known.is_ok() { error.with_status(Status::ERROR) } else { error }
    }

    /// The GPU through which a buffer is taken in, and the node that it is of.
    ///
    /// System memory is nobody's: the driver then names the first GPU that the process
    /// sees, which may be one that the caller left out.
    fn importer(&self, info: &GetDmabufInfo) -> Result<(Owner, u32), Error> {
        let in_vram = info.flags.contains(AllocMemoryFlags::VRAM);
        self.gpu_by_id(info.gpu_id, !in_vram)
    }

    /// The GPU with the kernel's id, or if `or_any` the first in use, with its node.
    pub(super) fn gpu_by_id(&self, gpu_id: u32, or_any: bool) -> Result<(Owner, u32), Error> {
        let unknown = Error::library(Status::ERROR, Operation::LookUp, error::Object::Gpu(gpu_id));
        let node = self.machine(|machine| {
            let at = |place: u8| machine.gpus().get(usize::from(place));
            let mut places = machine.gpus_in_use().places();
            let named = machine
                .gpus_in_use()
                .places()
                .find(|&place| at(place).is_some_and(|gpu| gpu.gpu_id == gpu_id));
            let place = named.or_else(|| places.next().filter(|_| or_any)).ok_or(unknown)?;
            at(place).and_then(|gpu| gpu.node).ok_or(unknown)
        })?;
        let owner = self.scene(node)?.gpu().copied().ok_or(unknown)?;
        Ok((owner, node))
    }

    /// Gives a buffer out as a dma-buf.
    pub(crate) fn export(&self, address: u64, size: u64) -> Result<ExportedBuffer, Error> {
        self.needs(Feature::ExportDmabuf)?;
        let end = address.checked_add(size).filter(|_| size != 0).ok_or(Error::argument(2))?;
        let page = self.page();
        let offset = |key: u64, object: &Object| {
            let start = match object.kind {
                Kind::Registered { address, .. } => address & !page.wrapping_sub(1),
                _ => key,
            };
            let limit = start.checked_add(round_up(object.size, page)?)?;
            (end <= limit).then(|| address.saturating_sub(start))
        };
        let find = |books: &Books| books.around(address);
        self.with_handle(address, find, offset, |handle, offset| {
            let flags = ExportDmabufFlags::CLOEXEC;
            let mut block = ExportDmabuf { handle, flags, ..ExportDmabuf::default() };
            let object = error::Object::Address(address);
            self.channel.execute(&mut block, &mut [], Status::ERROR, object)?;
            Ok(ExportedBuffer { descriptor: block.dmabuf_fd, offset })
        })
    }

    /// Does something with the first buffer of an object, which nobody changes
    /// meanwhile. `accept` says what the caller wants to know of the object, or that
    /// it is not meant.
    ///
    /// # Errors
    /// INVALID_PARAMETER when there is no such object; ERROR for one without memory of
    /// the driver's.
    pub(super) fn with_handle<A, R>(
        &self,
        address: u64,
        find: impl Fn(&Books) -> Option<Place>,
        accept: impl FnOnce(u64, &Object) -> Option<A>,
        act: impl FnOnce(u64, A) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let os = self.os();
        let (mut books, place) = self.memory.settled(os, self.memory.lock(os), find);
        let wrong = Error::library(
            Status::INVALID_PARAMETER,
            Operation::LookUp,
            error::Object::Address(address),
        );
        let place = place.ok_or(wrong)?;
        let (key, object) = books.objects.at(place).ok_or(wrong)?;
        let accepted = accept(key, object).ok_or(wrong)?;
        let first = *object.handles.as_slice().first().ok_or(wrong.with_status(Status::ERROR))?;
        let handles = books.take_handles(place);
        drop(books);
        let answer = act(first, accepted);
        let mut books = self.memory.lock(os);
        books.put_handles(place, handles);
        self.memory.unlock(os, books);
        answer
    }
}

impl Books {
    /// The import with this first address.
    pub(super) fn import_at(&self, address: u64) -> Option<Place> {
        let place = self.objects.find(address)?;
        self.objects.at(place)?.1.is_import().then_some(place)
    }
}

impl Object {
    /// Whether it was made elsewhere and taken in here.
    fn is_import(&self) -> bool {
        matches!(self.kind, Kind::Graphics | Kind::Shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_described_like_allocations() {
        let of = |flags| memory_flags(flags);
        let plain = MemoryFlags::NON_PAGED | MemoryFlags::COARSE_GRAIN;
        assert_eq!(of(AllocMemoryFlags::VRAM), plain);
        let public = AllocMemoryFlags::VRAM | AllocMemoryFlags::PUBLIC;
        assert_eq!(of(public), plain | MemoryFlags::HOST_ACCESS);
        assert_eq!(of(AllocMemoryFlags::GTT), plain | MemoryFlags::GTT_ACCESS);
    }
}
