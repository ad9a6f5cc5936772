//! The event page of a kernel process object.

use alloc::vec::Vec;

use super::has_slot;
use crate::context::{Channel, Machine, reserve_within};
use crate::errno::Errno;
use crate::error::{Error, Object, Status};
use crate::fallible::try_push;
use crate::lock::Lock;
use crate::seam::{Advice, Array, MapDevice, Os, Placement, Platform, Protection};
use crate::set_once::SetOnce;
use crate::topology::Aperture;
use crate::uapi::kfd::{
    AllocMemoryFlags, AllocMemoryOfGpu, CreateEvent, DestroyEvent, FreeMemoryOfGpu, MapMemoryToGpu,
    MmapOffset, SIGNAL_EVENT_LIMIT, UnmapMemoryFromGpu,
};
use zerocopy::IntoBytes;

/// Bytes of a slot.
const SLOT: usize = 8;
/// Bytes of the whole page, and of the one that old drivers show.
const FULL: usize = SIGNAL_EVENT_LIMIT * SLOT;
const SMALL: usize = 4096;
/// The most events of the first drivers, which show one small page: their
/// KFD_SIGNAL_EVENT_LIMIT is 256.
const SMALL_LIMIT: u32 = 255;

/// The event page of a kernel process object, once it is there.
///
/// Lock order: `making` after nothing, before a context's books and its machine.
#[derive(Debug, Default)]
pub(crate) struct EventPage {
    made: SetOnce<Made>,
    /// The GPUs that have our page mapped, by gpu_id. Who makes the page holds the
    /// lock across the requests, once: the first event with a slot must bring it.
    making: Lock<Vec<u32>>,
}

/// A page that the driver knows.
#[derive(Debug, Clone, Copy)]
struct Made {
    address: usize,
    length: usize,
    /// The buffer that it is; none for the driver's own page.
    handle: Option<u64>,
}

/// The GPUs that a page of ours is for.
#[derive(Debug)]
struct Gpus {
    ids: Vec<u32>,
    /// The render node of the first.
    minor: u32,
    /// The addresses that all of them have in common with the process.
    bounds: Aperture,
}

impl EventPage {
    pub(crate) const fn new() -> EventPage {
        EventPage { made: SetOnce::new(), making: Lock::new(Vec::new()) }
    }

    /// How many events with a slot there can be; 0 while nobody knows.
    pub(super) fn limit(&self) -> u32 {
        let Some(made) = self.made.get() else { return 0 };
        match u32::try_from(made.length.wrapping_div(SLOT)) {
            Ok(slots) if made.length >= FULL => slots.saturating_sub(1),
            _ => SMALL_LIMIT,
        }
    }

    /// The address of a slot.
    fn slot(&self, index: u32) -> u64 {
        let offset = u64::from(index).wrapping_mul(SLOT as u64);
        self.made.get().map_or(0, |made| (made.address as u64).wrapping_add(offset))
    }

    /// Removes the CPU's mapping, for a process object that is about to end.
    pub(crate) fn abandon<P: Platform>(&mut self, platform: &P) {
        if let Some(made) = self.made.take() {
            let _ = platform.os().unmap(made.address, made.length);
        }
        self.making.get_mut().clear();
    }
}

/// Creates an event; makes the page before the first that has a slot, and maps it on
/// GPUs that it is not mapped on yet. The second result is the address of the slot.
///
/// # Errors
/// NO_MEMORY when no slot is left; ERROR with the driver's errno. Nothing is left of a
/// page that the driver has not taken.
pub(super) fn create<P: Platform>(
    channel: &Channel<'_, P>,
    mut block: CreateEvent,
    look: impl Fn(&mut dyn FnMut(&Machine) -> Result<(), Error>) -> Result<(), Error>,
) -> Result<(CreateEvent, u64), Error> {
    if !has_slot(block.event_type) {
        send(channel, &mut block)?;
        return Ok((block, 0));
    }
    let page = &channel.files.events;
    let known = page.made.get();
    if known.is_none_or(|made| made.handle.is_some()) {
        let mut mapped = page.making.acquire(channel.os());
        let mut gpus = None;
        let looked = look(&mut |machine| {
            gpus = gpus_of(machine)?;
            Ok(())
        });
        match (page.made.get(), &gpus) {
            // Known GPUs are enough for a page that is there.
            (Some(Made { handle: Some(handle), .. }), Some(gpus)) => {
                map_on_others(channel, *handle, &gpus.ids, &mut mapped)?;
            }
            (Some(_), _) => {}
            (None, Some(gpus)) => {
                looked?;
                let made = make(channel, gpus, &mut block, &mut mapped)?;
                let _ = page.made.set(made.page);
                made.event?;
                return Ok((block, page.slot(block.event_slot_index)));
            }
            (None, None) => {
                looked?;
                send(channel, &mut block)?;
                match map_drivers(channel) {
                    Ok(made) => {
                        let _ = page.made.set(made);
                    }
                    Err(error) => {
                        destroy(channel, block.event_id);
                        return Err(error);
                    }
                }
                return Ok((block, page.slot(block.event_slot_index)));
            }
        }
    }
    send(channel, &mut block)?;
    Ok((block, page.slot(block.event_slot_index)))
}

/// The GPUs in use, where some of them has memory of its own.
fn gpus_of(machine: &Machine) -> Result<Option<Gpus>, Error> {
    if !machine.is_discrete() {
        return Ok(None);
    }
    let mut gpus =
        Gpus { ids: Vec::new(), minor: 0, bounds: Aperture { base: 0, limit: u64::MAX } };
    for gpu in machine.gpus() {
        let node = gpu.node.and_then(|node| machine.snapshot().node(node));
        if let Some(node) = node {
            if gpus.ids.is_empty() {
                gpus.minor = node.drm_render_minor;
            }
            try_push(&mut gpus.ids, gpu.gpu_id)?;
        }
    }
    if let Some(bounds) = machine.svm() {
        gpus.bounds = bounds;
    }
    Ok((!gpus.ids.is_empty()).then_some(gpus))
}

fn send<P: Platform>(channel: &Channel<'_, P>, block: &mut CreateEvent) -> Result<(), Error> {
    channel.execute(block, &mut [], Status::ERROR, Object::Nothing).map(drop).map_err(|error| {
        match error.errno {
            Some(Errno::ENOSPC | Errno::ENOMEM) => error.with_status(Status::NO_MEMORY),
            _ => error,
        }
    })
}

/// Destroys an event that nobody has seen.
pub(super) fn destroy<P: Platform>(channel: &Channel<'_, P>, event_id: u32) {
    let object = Object::Handle(u64::from(event_id));
    let _ = channel.execute(&mut DestroyEvent { event_id, pad: 0 }, &mut [], Status::ERROR, object);
}

/// Maps the driver's page: all of it, or what an old driver shows.
fn map_drivers<P: Platform>(channel: &Channel<'_, P>) -> Result<Made, Error> {
    let page = channel.os().page_size();
    let map = |least: usize| {
        let length = least.max(page);
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length,
            protection: Protection::READ | Protection::WRITE,
            offset: MmapOffset::events().0,
        };
        let address = channel.map(mapping, Status::ERROR, Object::Nothing)?;
        Ok(Made { address, length, handle: None })
    };
    match map(FULL) {
        Err(Error { errno: Some(Errno::EINVAL), .. }) => map(SMALL),
        answer => answer,
    }
}

/// A page of ours that the driver has taken, and what became of the event that
/// brought it.
struct Brought {
    page: Made,
    event: Result<(), Error>,
}

/// Makes a page of ours and creates the event that brings it to the driver.
fn make<P: Platform>(
    channel: &Channel<'_, P>,
    gpus: &Gpus,
    block: &mut CreateEvent,
    mapped: &mut Vec<u32>,
) -> Result<Brought, Error> {
    let length = FULL.max(channel.os().page_size());
    mapped.try_reserve(gpus.ids.len())?;
    let address = reserve_within(channel, gpus.bounds, length)?;
    let undo = |error: Error| {
        let _ = channel.os().unmap(address, length);
        error
    };
    let owner = gpus.ids.first().copied().unwrap_or(0);
    let gpu = Object::Gpu(owner);
    let mut buffer = AllocMemoryOfGpu {
        va_addr: address as u64,
        size: length as u64,
        gpu_id: owner,
        flags: AllocMemoryFlags::GTT
            | AllocMemoryFlags::WRITABLE
            | AllocMemoryFlags::EXECUTABLE
            | AllocMemoryFlags::COHERENT
            | AllocMemoryFlags::UNCACHED
            | AllocMemoryFlags::NO_SUBSTITUTE,
        ..AllocMemoryOfGpu::default()
    };
    channel.execute(&mut buffer, &mut [], Status::ERROR, gpu).map_err(undo)?;
    let handle = buffer.handle;
    let free = || channel.execute(&mut FreeMemoryOfGpu { handle }, &mut [], Status::ERROR, gpu);
    let mapping = MapDevice {
        placement: Placement::Replace(address),
        length,
        protection: Protection::READ | Protection::WRITE,
        offset: buffer.mmap_offset,
    };
    if let Err(error) = channel.map_render(gpus.minor, mapping, Status::ERROR, gpu) {
        let _ = free();
        return Err(undo(error));
    }
    let _ = channel.os().advise(address, length, Advice::DontFork);
    if let Err(error) = map_on(channel, handle, &gpus.ids) {
        let _ = free();
        return Err(undo(error));
    }
    block.event_page_offset = handle;
    let event = send(channel, block);
    let page = Made { address, length, handle: Some(handle) };
    if let Err(error) = event {
        // The driver may have taken the page and then failed. Of a page that it has
        // taken it says EPERM, before it looks whether it is mapped.
        let taken = matches!(free(), Err(Error { errno: Some(Errno::EPERM), .. }));
        if !taken {
            let _ = unmap_on(channel, handle, &gpus.ids);
            let _ = free();
            return Err(undo(error));
        }
    }
    for &id in &gpus.ids {
        try_push(mapped, id)?;
    }
    Ok(Brought { page, event })
}

/// Maps the page on GPUs; on all or on none.
fn map_on<P: Platform>(channel: &Channel<'_, P>, handle: u64, ids: &[u32]) -> Result<(), Error> {
    let mut block = MapMemoryToGpu {
        handle,
        n_devices: u32::try_from(ids.len()).unwrap_or(u32::MAX),
        ..MapMemoryToGpu::default()
    };
    let arrays = &mut [Array::In(ids.as_bytes())];
    let mapped = channel.execute(&mut block, arrays, Status::ERROR, Object::Handle(handle));
    if mapped.is_err() {
        let done = ids.get(..block.n_success as usize).unwrap_or_default();
        let _ = unmap_on(channel, handle, done);
    }
    mapped.map(drop)
}

fn unmap_on<P: Platform>(channel: &Channel<'_, P>, handle: u64, ids: &[u32]) -> Result<(), Error> {
    if ids.is_empty() {
        return Ok(());
    }
    let mut block = UnmapMemoryFromGpu {
        handle,
        n_devices: u32::try_from(ids.len()).unwrap_or(u32::MAX),
        ..UnmapMemoryFromGpu::default()
    };
    let arrays = &mut [Array::In(ids.as_bytes())];
    channel.execute(&mut block, arrays, Status::ERROR, Object::Handle(handle)).map(drop)
}

/// Maps the page on those of the GPUs that a later context uses and no earlier did.
fn map_on_others<P: Platform>(
    channel: &Channel<'_, P>,
    handle: u64,
    ids: &[u32],
    mapped: &mut Vec<u32>,
) -> Result<(), Error> {
    if ids.iter().all(|id| mapped.contains(id)) {
        return Ok(());
    }
    let mut others = Vec::new();
    for id in ids.iter().filter(|id| !mapped.contains(id)) {
        try_push(&mut others, *id)?;
    }
    mapped.try_reserve(others.len())?;
    map_on(channel, handle, &others)?;
    for id in others {
        try_push(mapped, id)?;
    }
    Ok(())
}
