//! What a range of addresses is, and who reaches it.

use super::MemoryFlags;
use super::access::Access;
use super::books::Books;
use super::gpu_set::GpuSet;
use super::object::{Kind, Object, State};
use crate::error::{self, Error, Operation, Status};
use crate::lock::Guard;
use crate::process::mmio::MmioPage;
use crate::seam::Platform;

use alloc::vec::Vec;

/// One past the highest address of any process (5-level paging).
const PROCESS_END: u64 = 1 << 56;

/// A range of memory in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// As the caller named it.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// Where the CPU reaches it, if it does.
    pub(crate) cpu: Option<u64>,
    /// Where GPUs see it, if it is an object's.
    pub(crate) gpu: Option<u64>,
    /// The GPUs that have it mapped.
    pub(crate) mapped: GpuSet,
    /// The GPU, by the kernel's id, whose video memory it is.
    pub(crate) video_memory_of: Option<u32>,
    /// Nobody may write it.
    pub(crate) read_only: bool,
}

/// What the books say of a range.
struct Known {
    extent: Extent,
    /// The node whose video memory it is.
    video_memory_of: Option<u32>,
}

impl<'a, P: Platform> Access<'a, P> {
    /// What a range is: within one object, or memory of the process that the library
    /// has no part of.
    ///
    /// # Errors
    /// INVALID_PARAMETER for everything else: no address, an end beyond the
    /// addresses, a range that leaves its object, addresses without memory.
    pub(crate) fn extent(&self, address: u64, size: u64) -> Result<Extent, Error> {
        let end = address.checked_add(size).filter(|_| address != 0);
        let end = end.ok_or(Error::argument(0))?;
        let page = self.page();
        let known = self.memory.lock(self.os()).extent(address, size, end, page)?;
        let Known { mut extent, video_memory_of } = known;
        if let Some(node) = video_memory_of {
            extent.video_memory_of = self.machine(|machine| Ok(machine.node(node)?.gpu_id)).ok();
        }
        Ok(extent)
    }

    /// The pages of registers of the context's GPUs, which stay mapped under this lock.
    pub(crate) fn register_pages(&self) -> Guard<'a, Vec<MmioPage>, P::Os> {
        self.channel.files.mmio().acquire(self.channel.os())
    }
}

/// A range that is not in one piece.
#[cold]
fn refused(address: u64) -> Error {
    let object = error::Object::Address(address);
    Error::library(Status::INVALID_PARAMETER, Operation::LookUp, object)
}

impl Books {
    fn extent(&self, address: u64, size: u64, end: u64, page: u64) -> Result<Known, Error> {
        let plain = Extent {
            address,
            size,
            cpu: Some(address),
            gpu: None,
            mapped: GpuSet::NONE,
            video_memory_of: None,
            read_only: false,
        };
        if let Some((_, key, object)) = self.objects.containing(address) {
            return object.extent(key, &plain, end, page).ok_or(refused(address));
        }
        // What begins beside our addresses must end beside them.
        if end > PROCESS_END || self.has_part_of(address, end) {
            return Err(refused(address));
        }
        let mut extent = plain;
        if self.users.len() != 0 {
            let registered = self.registered_around(address);
            let registered = registered.and_then(|place| self.objects.at(place));
            if let Some((key, object)) = registered {
                extent.add_registration(key, object, end, page);
            }
        }
        Ok(Known { extent, video_memory_of: None })
    }

    /// Whether the library keeps some of these addresses, with memory or without.
    fn has_part_of(&self, start: u64, end: u64) -> bool {
        let above = self.objects.ceiling(start).and_then(|place| self.objects.at(place));
        let below = self.objects.floor(start).and_then(|place| self.objects.at(place));
        let overlaps = |from: u64, length: u64| from < end && from.saturating_add(length) > start;
        let object = |(_, object): (u64, &Object)| overlaps(object.span.start, object.span.length);
        above.is_some_and(object)
            || below.is_some_and(object)
            || self.device.have_part_of(start, end)
            || self.host.have_part_of(start, end)
            || self
                .scratch
                .iter()
                .flatten()
                .any(|scratch| overlaps(scratch.span.start, scratch.span.length))
    }
}

impl Extent {
    /// Adds what GPUs have of memory of the process, where it lies in one registration.
    fn add_registration(&mut self, key: u64, object: &Object, end: u64, page: u64) {
        let Kind::Registered { address, size } = object.kind else { return };
        if end > address.saturating_add(size) || object.state == State::Reserved {
            return;
        }
        let first_page = address & !page.wrapping_sub(1);
        self.gpu = Some(key.saturating_add(self.address.saturating_sub(first_page)));
        self.mapped = object.mapped;
    }
}

impl Object {
    /// What a range is that begins in the object, whose key it is; none if it is not
    /// memory, or not all of it this object's.
    fn extent(&self, key: u64, plain: &Extent, end: u64, page: u64) -> Option<Known> {
        if self.state == State::Reserved {
            return None;
        }
        let offset = plain.address.checked_sub(key)?;
        let behind = end.checked_sub(key)?;
        let mut extent =
            Extent { cpu: None, gpu: Some(plain.address), mapped: self.mapped, ..*plain };
        if let Kind::Registered { address, size } = self.kind {
            // By GPU addresses; the caller's memory begins within the first page.
            let first_page = address & !page.wrapping_sub(1);
            let start = first_page.checked_add(offset).filter(|&start| start >= address)?;
            let fits = first_page.checked_add(behind)? <= address.saturating_add(size);
            extent.cpu = Some(start);
            return fits.then_some(Known { extent, video_memory_of: None });
        }
        if behind > self.size {
            return None;
        }
        let shown = self.flags.contains(MemoryFlags::HOST_ACCESS) && behind <= self.visible;
        let shown = shown.then_some(plain.address);
        let system = !self.flags.contains(MemoryFlags::NON_PAGED)
            || self.flags.contains(MemoryFlags::GTT_ACCESS);
        let node = self.node;
        let mut video_memory_of = None;
        match self.kind {
            Kind::Device => (extent.cpu, video_memory_of) = (shown, Some(node)),
            Kind::Shared | Kind::Graphics => {
                extent.cpu = shown;
                video_memory_of = (!system).then_some(node);
            }
            Kind::Gtt => extent.cpu = shown,
            Kind::Paged { .. } => extent.cpu = Some(plain.address),
            Kind::Plain => {
                extent.cpu = Some(plain.address);
                extent.read_only = self.flags.contains(MemoryFlags::READ_ONLY);
            }
            Kind::ScratchPart => {}
            Kind::Unaddressed | Kind::Addresses | Kind::Registered { .. } => return None,
        }
        Some(Known { extent, video_memory_of })
    }
}
