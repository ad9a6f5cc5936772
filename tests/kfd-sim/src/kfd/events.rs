//! Events: kernel-truth "Events" and kernel-rules section 2, "Events: additions"
//! (kfd_events.c).
//!
//! A wait that has to sleep leaves the driver with [`State::waiting`] set; the
//! platform sleeps without the machine's lock and comes back with it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::Clock;

use super::dispatch::Request;
use super::{KfdObject, ObjectId, buffers};
use crate::defect::{Defect, EVENT_SLOTS_LEFT};
use crate::gpu_memory::{MemoryId, Place};
use crate::machine::{State, Write};
use crate::process::Pid;
use crate::violation::Rule;

/// KFD_IOC_EVENT_*.
pub(crate) const SIGNAL: u32 = 0;
pub(crate) const HW_EXCEPTION: u32 = 3;
pub(crate) const DEBUG: u32 = 5;
pub(crate) const MEMORY: u32 = 8;

const FIRST_SIGNAL: u32 = 1;
const FIRST_OTHER: u32 = 0x4000_0000;
/// What a caller of the first day could map, and the most there is.
const FIRST_SLOTS: u64 = 256;
const PAGE_BYTES: u64 = 4096 * 8;
const SLOT_BYTES: u64 = 8;
/// KFD_MMAP_TYPE_EVENTS.
const PAGE_OFFSET: u64 = 2 << 62;
/// `struct kfd_event_data`: 32 bytes of payload, 8 unused, the id at 40.
const DATA_BYTES: usize = 48;
const DATA_ID: usize = 40;
/// What the kernel allocates for the entries of a wait at most, in entries.
const MOST_ENTRIES: u32 = 1 << 20;
/// The limit since 7.2.
const MOST_ENTRIES_7_2: u32 = 4096;
/// The KFD minor from which ages mean something.
const AGES: u32 = 14;

/// KFD_IOC_WAIT_RESULT_*.
const COMPLETE: u32 = 0;
const TIMED_OUT: u32 = 1;
const FAILED: u32 = 2;
const FOREVER: u32 = u32::MAX;

/// The events of a process object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events {
    page: Page,
    /// Ids of SIGNAL and DEBUG events are below this.
    slots: u64,
    events: BTreeMap<u32, Event>,
    waiters: BTreeMap<u64, Vec<Entry>>,
    /// Signals that have not interrupted a wait yet.
    signals: u32,
}

/// Where slots are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Page {
    #[default]
    None,
    /// A page of the kernel.
    Kernel,
    /// A buffer, by its handle.
    Buffer(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) kind: u32,
    auto_reset: bool,
    pub(crate) signaled: bool,
    pub(crate) age: u64,
    payload: [u8; 32],
}

/// One event of a wait.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// None once it was destroyed.
    event: Option<u32>,
    activated: bool,
    tells_age: bool,
    /// In the event's queue: not activated from the start.
    queued: bool,
}

/// A wait that sleeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    waiter: u64,
    /// On [`Clock::Monotonic`], in ns.
    deadline: Option<u64>,
}

impl Waiting {
    /// Nanoseconds until the wait times out.
    pub(crate) fn left(self, now: u64) -> Option<u64> {
        self.deadline.map(|deadline| deadline.saturating_sub(now))
    }
}

impl Events {
    pub(crate) fn count(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Event)> {
        self.events.iter().map(|(id, event)| (*id, event))
    }

    pub(crate) fn sleepers(&self) -> usize {
        self.waiters.len()
    }

    /// Whether a buffer is the event page: it cannot be freed.
    pub(crate) fn is_page(&self, handle: u64) -> bool {
        self.page == Page::Buffer(handle)
    }

    fn is_awaited(&self, id: u32) -> bool {
        self.waiters.values().flatten().any(|entry| entry.queued && entry.event == Some(id))
    }

    /// Sets an event: its age grows, all that wait are told.
    fn fire(&mut self, id: u32) -> bool {
        let awaited = self.is_awaited(id);
        let Some(event) = self.events.get_mut(&id) else { return false };
        event.signaled = !event.auto_reset || !awaited;
        event.age = event.age.wrapping_add(1).max(2);
        let entries = self.waiters.values_mut().flatten();
        for entry in entries.filter(|entry| entry.queued && entry.event == Some(id)) {
            entry.activated = true;
        }
        true
    }

    /// test_event_condition.
    fn condition(&self, waiter: u64, all: bool) -> u32 {
        let Some(entries) = self.waiters.get(&waiter) else { return FAILED };
        let mut activated = 0;
        for entry in entries {
            if entry.event.is_none() {
                return FAILED;
            }
            if entry.activated {
                activated += 1;
                if !all {
                    return COMPLETE;
                }
            }
        }
        if activated == entries.len() { COMPLETE } else { TIMED_OUT }
    }

    /// Ends a wait. What it has consumed comes back when a signal interrupted it.
    fn leave(&mut self, waiter: u64, undo: bool) {
        let entries = self.waiters.remove(&waiter).unwrap_or_default();
        for entry in entries.iter().filter(|entry| undo && entry.activated) {
            if let Some(event) = entry.event.and_then(|id| self.events.get_mut(&id)) {
                event.signaled |= event.auto_reset;
            }
        }
    }
}

/// event_page_offset u64 at 0, event_trigger_data u32 at 8, event_type at 12,
/// auto_reset at 16, node_id at 20, event_id at 24, event_slot_index at 28.
///
/// A page that was given stays when the event cannot be made.
pub(super) fn create(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (handle, kind) = (request.arguments.u64(0), request.arguments.u32(12));
    let auto_reset = request.arguments.u32(16) != 0;
    if handle != 0 {
        take_page(request, handle)?;
    }
    let has_slot = kind == SIGNAL || kind == DEBUG;
    let fewer = request.state.has(Defect::EventsExhausted);
    let events = &mut request.object_mut()?.events;
    if has_slot && events.page == Page::None {
        events.page = Page::Kernel;
        events.slots = FIRST_SLOTS;
    }
    let mut ids = if has_slot {
        let slots = if fewer { events.slots.min(EVENT_SLOTS_LEFT) } else { events.slots };
        FIRST_SIGNAL..u32::try_from(slots).unwrap_or(FIRST_OTHER)
    } else {
        FIRST_OTHER..i32::MAX as u32
    };
    let id = ids.find(|id| !events.events.contains_key(id)).ok_or(Errno::ENOSPC)?;
    let payload = [0; 32];
    events.events.insert(id, Event { kind, auto_reset, signaled: false, age: 1, payload });
    if has_slot {
        request.arguments.put_u64(0, PAGE_OFFSET);
        request.arguments.put_u32(28, id);
    }
    request.arguments.put_u32(8, id);
    request.arguments.put_u32(24, id);
    Ok(0)
}

/// In this order: a page is there; GPU; VM; index; user pages; size.
fn take_page(request: &mut Request<'_, '_, '_>, handle: u64) -> Result<(), Errno> {
    let object = request.object()?;
    if object.events.page != Page::None {
        return Err(Errno::EINVAL);
    }
    object.gpu(buffers::split(handle).0)?.file.ok_or(Errno::ENODEV)?;
    let buffer = object.buffer(handle).ok_or(Errno::EINVAL)?;
    if buffer.place == Place::User || buffer.size < PAGE_BYTES {
        return Err(Errno::EINVAL);
    }
    let (memory, size) = (buffer.memory, buffer.size);
    let slots = size / SLOT_BYTES;
    let events = &mut request.object_mut()?.events;
    (events.page, events.slots) = (Page::Buffer(handle), slots);
    // The driver sets all of it to ones, which stand for "not set".
    request.state.writes.push(Write::Fill(memory, 0, size as usize, 0xff));
    Ok(())
}

/// kernel-rules section 3: the length of a mapping is the limit from then on.
pub(super) fn map(
    state: &mut State,
    pid: Pid,
    object: ObjectId,
    length: u64,
    page_size: usize,
) -> Result<(), Errno> {
    let events = &mut state.objects.get_mut(&object).ok_or(Errno::EBADF)?.events;
    if length > PAGE_BYTES.next_multiple_of(page_size as u64) || events.page == Page::None {
        return Err(Errno::EINVAL);
    }
    if matches!(events.page, Page::Buffer(_)) {
        let detail = format!("{length} bytes");
        state.violation(pid, Rule::EventPageMapped, detail);
        return Err(Errno::EINVAL);
    }
    events.slots = length / SLOT_BYTES;
    Ok(())
}

/// event_id u32 at 0, padding.
pub(super) fn destroy(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let id = request.arguments.u32(0);
    let events = &mut request.object_mut()?.events;
    events.events.remove(&id).ok_or(Errno::EINVAL)?;
    for entry in events.waiters.values_mut().flatten() {
        if entry.event == Some(id) {
            entry.event = None;
        }
    }
    request.state.wake();
    Ok(0)
}

/// event_id u32 at 0, padding.
pub(super) fn set(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let id = for_program(request)?;
    request.object_mut()?.events.fire(id);
    request.state.wake();
    Ok(0)
}

/// event_id u32 at 0, padding.
pub(super) fn reset(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let id = for_program(request)?;
    if let Some(event) = request.object_mut()?.events.events.get_mut(&id) {
        event.signaled = false;
    }
    Ok(0)
}

/// The event of a request that programs may set.
fn for_program(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let id = request.arguments.u32(0);
    match request.object()?.events.events.get(&id) {
        Some(event) if event.kind == SIGNAL => Ok(id),
        _ => Err(Errno::EINVAL),
    }
}

/// The array's address at 0, num_events u32 at 8, wait_for_all at 12, timeout at 16,
/// wait_result at 20.
pub(super) fn wait(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let result = wait_or_sleep(request);
    let told = match result {
        Ok(told) => told,
        Err(_) => FAILED,
    };
    if request.state.waiting.is_none() {
        request.arguments.put_u32(20, told);
    }
    result.map(|_| 0)
}

fn wait_or_sleep(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (all, timeout) = (request.arguments.u32(12) != 0, request.arguments.u32(16));
    let now = (request.clock)(Clock::Monotonic);
    let waiting = match request.state.waiting.take() {
        Some(waiting) => waiting,
        None => {
            let waiter = begin(request)?;
            let ns = u64::from(timeout) * 1_000_000;
            Waiting { waiter, deadline: (timeout != FOREVER).then(|| now.saturating_add(ns)) }
        }
    };
    let waiter = waiting.waiter;
    let events = &mut request.object_mut()?.events;
    match events.condition(waiter, all) {
        COMPLETE => {
            let copied = copy_payloads(request, waiter);
            request.object_mut()?.events.leave(waiter, false);
            copied.map(|()| COMPLETE)
        }
        FAILED => {
            events.leave(waiter, false);
            Err(Errno::EIO)
        }
        _ if events.signals > 0 => {
            events.signals -= 1;
            events.leave(waiter, true);
            if let Some(left) = waiting.left(now).filter(|_| timeout != 0) {
                request.arguments.put_u32(16, (left / 1_000_000) as u32);
            }
            Err(Errno::EINTR)
        }
        _ if waiting.left(now) == Some(0) => {
            events.leave(waiter, false);
            Ok(TIMED_OUT)
        }
        _ => {
            request.state.waiting = Some(waiting);
            Err(Errno::EAGAIN)
        }
    }
}

/// Looks at every event and queues where it has to wait. An auto-reset event that is
/// set is consumed here.
fn begin(request: &mut Request<'_, '_, '_>) -> Result<u64, Errno> {
    let count = request.arguments.u32(8);
    let most = if request.state.kernel.limits_waits() { MOST_ENTRIES_7_2 } else { MOST_ENTRIES };
    if count > most {
        return Err(Errno::ENOMEM);
    }
    let bytes = match count {
        0 => Vec::new(),
        _ => request.arrays.read(0, count as usize * DATA_BYTES)?,
    };
    let ages = request.state.kernel.kfd_minor >= AGES;
    let waiter = request.state.number();
    let events = &mut request.object_mut()?.events;
    let mut entries = Vec::new();
    for data in bytes.chunks_exact(DATA_BYTES) {
        let id = data[DATA_ID..].first_chunk().map_or(0, |id| u32::from_ne_bytes(*id));
        let last_age = data.first_chunk().map_or(0, |age| u64::from_ne_bytes(*age));
        let event = events.events.get_mut(&id).ok_or(Errno::EINVAL)?;
        let mut activated = event.signaled;
        event.signaled &= !event.auto_reset;
        let tells_age = ages && event.kind == SIGNAL && last_age != 0;
        activated |= tells_age && event.age != last_age;
        entries.push(Entry { event: Some(id), activated, tells_age, queued: !activated });
    }
    events.waiters.insert(waiter, entries);
    Ok(waiter)
}

/// What comes with the events that completed.
fn copy_payloads(request: &mut Request<'_, '_, '_>, waiter: u64) -> Result<(), Errno> {
    let events = &request.object()?.events;
    let entries = events.waiters.get(&waiter).cloned().unwrap_or_default();
    let mut answers = Vec::new();
    for (number, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.activated) {
        let event = entry.event.and_then(|id| events.events.get(&id)).ok_or(Errno::EINVAL)?;
        let payload = match event.kind {
            MEMORY => event.payload.to_vec(),
            HW_EXCEPTION => event.payload[..16].to_vec(),
            SIGNAL if entry.tells_age => event.age.to_ne_bytes().to_vec(),
            _ => continue,
        };
        answers.push((number * DATA_BYTES, payload));
    }
    for (at, payload) in answers {
        request.arrays.write(0, at, &payload)?;
    }
    Ok(())
}

/// gpuid u32 at 0, anon_fd u32 at 4.
pub(super) fn open_smi(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let gpu_id = request.arguments.u32(0);
    request.object()?.gpu(gpu_id)?;
    let number = request.state.open_other(request.pid, false)?;
    request.arguments.put_u32(4, number);
    Ok(0)
}

/// The buffer that is the event page.
pub(crate) fn page_memory(object: &KfdObject) -> Option<MemoryId> {
    match object.events.page {
        Page::Buffer(handle) => object.buffer(handle).map(|buffer| buffer.memory),
        Page::None | Page::Kernel => None,
    }
}

/// The events that have slots.
pub(crate) fn signal_ids(object: &KfdObject) -> Vec<u32> {
    let has_slot = |event: &Event| event.kind == SIGNAL || event.kind == DEBUG;
    object.events.iter().filter(|(_, event)| has_slot(event)).map(|(id, _)| id).collect()
}

/// A GPU wrote the slot of an event and raised its interrupt.
pub(crate) fn signal(state: &mut State, object: ObjectId, id: u32) -> bool {
    let Some(object) = state.objects.get_mut(&object) else { return false };
    let has_slot =
        object.events.events.get(&id).is_some_and(|e| e.kind == SIGNAL || e.kind == DEBUG);
    let fired = has_slot && object.events.fire(id);
    state.wake();
    fired
}

/// Fires every event of a kind with a payload.
fn fire_all(object: &mut KfdObject, kind: u32, payload: [u8; 32]) {
    let ids: Vec<u32> =
        object.events.iter().filter(|(_, event)| event.kind == kind).map(|(id, _)| id).collect();
    for id in ids {
        if let Some(event) = object.events.events.get_mut(&id) {
            event.payload = payload;
        }
        object.events.fire(id);
    }
}

/// What of a memory fault is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryFault {
    /// Nothing is mapped there.
    pub not_present: bool,
    /// It was a write, and it can only be read.
    pub read_only: bool,
    /// It was code, and it cannot be executed.
    pub no_execute: bool,
    /// The address may not be exact.
    pub imprecise: bool,
    /// KFD_MEM_ERR_*: 0 for a page fault.
    pub error_type: u32,
}

/// Fires the MEMORY events of an object, with the page of the address.
pub(crate) fn memory_fault(
    state: &mut State,
    object: ObjectId,
    gpu_id: u32,
    address: u64,
    fault: MemoryFault,
) {
    let MemoryFault { not_present, read_only, no_execute, imprecise, error_type } = fault;
    let mut payload = [0; 32];
    for (at, flag) in [not_present, read_only, no_execute, imprecise].into_iter().enumerate() {
        payload[4 * at..4 * at + 4].copy_from_slice(&u32::from(flag).to_ne_bytes());
    }
    payload[16..24].copy_from_slice(&(address / 4096 * 4096).to_ne_bytes());
    payload[24..28].copy_from_slice(&gpu_id.to_ne_bytes());
    payload[28..32].copy_from_slice(&error_type.to_ne_bytes());
    if let Some(object) = state.objects.get_mut(&object) {
        fire_all(object, MEMORY, payload);
        // A page fault stops the object's queues on the GPU for good.
        if let Some(record) = object.record_mut(gpu_id).filter(|_| error_type == 0) {
            record.evicted = true;
        }
    }
    state.wake();
}

/// A GPU was reset: the HW_EXCEPTION events of every object with that GPU fire, and
/// after an uncorrectable error the MEMORY events, too.
pub(crate) fn reset_gpu(state: &mut State, gpu_id: u32, uncorrectable: bool) {
    let mut payload = [0; 32];
    for (at, word) in [0, u32::from(uncorrectable), 1, gpu_id].into_iter().enumerate() {
        payload[4 * at..4 * at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    let objects: Vec<ObjectId> = state.objects.keys().copied().collect();
    for id in objects {
        let Some(object) = state.objects.get_mut(&id).filter(|o| o.gpu(gpu_id).is_ok()) else {
            continue;
        };
        fire_all(object, HW_EXCEPTION, payload);
        let tears = state.kernel.tears_doorbells();
        if let Some(record) = object.record_mut(gpu_id) {
            record.evicted = true;
            record.has_reset_queue = true;
            if let Some(slice) = record.doorbells.take_if(|_| tears) {
                record.torn.insert(slice, None);
            }
        }
        if uncorrectable {
            let fault = MemoryFault { imprecise: true, error_type: 1, ..MemoryFault::default() };
            memory_fault(state, id, gpu_id, 0, fault);
        }
    }
    state.wake();
}

/// A signal arrives: a wait that sleeps, or the next that would, is interrupted.
pub(crate) fn interrupt(state: &mut State, object: ObjectId) {
    if let Some(object) = state.objects.get_mut(&object) {
        object.events.signals += 1;
    }
    state.wake();
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Array, Driver, MapDevice, Os, Placement, Protection};
    use hsakmt_core::uapi::kfd::{
        AllocMemoryFlags, CreateEvent, CreateProcess, DestroyEvent, EventData, EventType,
        ResetEvent, SetEvent, SmiEvents, WaitEvents, WaitResult,
    };
    use zerocopy::IntoBytes;

    use super::MemoryFault;
    use crate::SimDevice;
    use crate::fixture::{Sim, alloc, ask, ask_with, bind, boot, broken, free, gpu_id, kfd};
    use crate::violation::Rule;

    fn create_on(
        sim: &Sim,
        device: &SimDevice,
        event_type: EventType,
        auto_reset: bool,
        page: u64,
    ) -> Result<CreateEvent, Errno> {
        let mut block = CreateEvent {
            event_page_offset: page,
            event_type,
            auto_reset: u32::from(auto_reset),
            event_slot_index: 0x55,
            ..Default::default()
        };
        ask(sim, device, &mut block).map(|_| block)
    }

    fn create(sim: &Sim, device: &SimDevice, event_type: EventType, auto_reset: bool) -> u32 {
        create_on(sim, device, event_type, auto_reset, 0).unwrap().event_id
    }

    fn set(sim: &Sim, device: &SimDevice, event_id: u32) -> Result<u32, Errno> {
        ask(sim, device, &mut SetEvent { event_id, pad: 0 })
    }

    fn destroy(sim: &Sim, device: &SimDevice, event_id: u32) -> Result<u32, Errno> {
        ask(sim, device, &mut DestroyEvent { event_id, pad: 0 })
    }

    /// What a wait answers: the errno, how it ended, the time-out afterwards, the ages.
    fn wait(
        sim: &Sim,
        device: &SimDevice,
        events: &[(u32, u64)],
        all: bool,
        timeout: u32,
    ) -> (Result<u32, Errno>, WaitResult, u32, Vec<u64>) {
        let mut data: Vec<EventData> = events
            .iter()
            .map(|&(event_id, age)| EventData {
                event_id,
                payload: [age, 0, 0, 0],
                ..Default::default()
            })
            .collect();
        let mut block = WaitEvents {
            num_events: data.len() as u32,
            wait_for_all: u32::from(all),
            timeout,
            ..Default::default()
        };
        // The platform would sleep for ever; here nobody could end it.
        let answer = ask_with(sim, device, &mut block, &mut [Array::InOut(data.as_mut_bytes())]);
        let ages = data.iter().map(|data| data.payload[0]).collect();
        (answer, block.wait_result, block.timeout, ages)
    }

    const DONE: (Result<u32, Errno>, WaitResult) = (Ok(0), WaitResult::COMPLETE);
    const LATE: (Result<u32, Errno>, WaitResult) = (Ok(0), WaitResult::TIMEOUT);

    fn ends(
        sim: &Sim,
        device: &SimDevice,
        events: &[u32],
        all: bool,
    ) -> (Result<u32, Errno>, WaitResult) {
        let events: Vec<(u32, u64)> = events.iter().map(|&id| (id, 0)).collect();
        let (answer, result, ..) = wait(sim, device, &events, all, 20);
        (answer, result)
    }

    #[test]
    fn ids_and_slots_by_type() {
        let sim = boot("cpu-only");
        let device = kfd(&sim);
        let make = |kind| create_on(&sim, &device, EventType(kind), false, 0).unwrap();
        for (kind, id) in [(0, 1), (5, 2), (0, 3)] {
            let event = make(kind);
            assert_eq!(
                (event.event_id, event.event_trigger_data, event.event_slot_index),
                (id, id, id)
            );
            assert_eq!(event.event_page_offset, 0x8000_0000_0000_0000);
        }
        for (kind, id) in (0..).zip([1, 2, 3, 4, 6, 7, 8, 9, 99]).map(|(n, kind)| (kind, n)) {
            let event = make(kind);
            assert_eq!(event.event_id, 0x4000_0000 + id);
            assert_eq!((event.event_page_offset, event.event_slot_index), (0, 0x55));
        }
        // The lowest free number.
        assert_eq!(destroy(&sim, &device, 2), Ok(0));
        assert_eq!(make(0).event_id, 2);
        assert_eq!(destroy(&sim, &device, 99), Err(Errno::EINVAL));
        assert_eq!(set(&sim, &device, 0x4000_0000), Err(Errno::EINVAL));
        assert_eq!(set(&sim, &device, 99), Err(Errno::EINVAL));
        assert_eq!(broken(&sim), []);
    }

    fn map_page(sim: &Sim, device: &SimDevice, length: usize) -> Result<usize, Errno> {
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length,
            protection: Protection::READ | Protection::WRITE,
            offset: 2 << 62,
        };
        Driver::map(sim, device, mapping)
    }

    #[test]
    fn the_mapping_of_the_kernels_page_is_the_limit() {
        let sim = boot("cpu-only");
        let device = kfd(&sim);
        assert_eq!(map_page(&sim, &device, 4096), Err(Errno::EINVAL), "no event yet");
        let fill = || {
            (0..).find(|_| create_on(&sim, &device, EventType::SIGNAL, false, 0).is_err()).unwrap()
        };
        assert_eq!(fill(), 255);
        let full = create_on(&sim, &device, EventType::SIGNAL, false, 0);
        assert_eq!(full.map(|_| ()), Err(Errno::ENOSPC));
        create(&sim, &device, EventType::MEMORY, false);
        assert_eq!(map_page(&sim, &device, 65536), Err(Errno::EINVAL));
        map_page(&sim, &device, 32768).unwrap();
        assert_eq!(fill(), 4095 - 255);
        // Downwards, too.
        map_page(&sim, &device, 4096).unwrap();
        assert_eq!(destroy(&sim, &device, 4000), Ok(0));
        assert_eq!(fill(), 0);
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn a_page_is_given_once() {
        let sim = boot("rx7900");
        let bound = bind(&sim);
        let device = &bound.kfd;
        let make =
            |page| create_on(&sim, device, EventType::SIGNAL, false, page).map(|e| e.event_id);
        let small = alloc(&sim, device, 0, AllocMemoryFlags::GTT, 0x10_0000, 16384).unwrap().0;
        let page = alloc(&sim, device, 0, AllocMemoryFlags::GTT, 0x20_0000, 32768).unwrap().0;
        let other = alloc(&sim, device, 0, AllocMemoryFlags::GTT, 0x30_0000, 32768).unwrap().0;
        assert_eq!(make(1), Err(Errno::EINVAL), "no such GPU");
        assert_eq!(make(page + 100), Err(Errno::EINVAL), "no such buffer");
        assert_eq!(make(small), Err(Errno::EINVAL), "too small");
        assert_eq!(make(page), Ok(1));
        assert_eq!(make(other), Err(Errno::EINVAL), "there is one");
        assert_eq!(make(page), Err(Errno::EINVAL), "there is one");
        assert_eq!(make(0), Ok(2));
        assert_eq!(free(&sim, device, page), Err(Errno::EPERM));
        assert_eq!(free(&sim, device, other), Ok(0));
        assert_eq!(broken(&sim), []);
        assert_eq!(map_page(&sim, device, 32768), Err(Errno::EINVAL));
        assert_eq!(broken(&sim), [Rule::EventPageMapped]);
        // Made without a page first, the object keeps the kernel's.
        let sim = boot("rx7900");
        let bound = bind(&sim);
        create(&sim, &bound.kfd, EventType::SIGNAL, false);
        let page = alloc(&sim, &bound.kfd, 0, AllocMemoryFlags::GTT, 0x20_0000, 32768).unwrap();
        let late = create_on(&sim, &bound.kfd, EventType::SIGNAL, false, page.0);
        assert_eq!(late.map(|_| ()), Err(Errno::EINVAL));
    }

    #[test]
    fn what_is_set_ends_waits() {
        let sim = boot("cpu-only");
        let device = kfd(&sim);
        let manual = create(&sim, &device, EventType::SIGNAL, false);
        let auto = create(&sim, &device, EventType::SIGNAL, true);
        let other = create(&sim, &device, EventType::MEMORY, false);
        let ends = |events: &[u32], all| ends(&sim, &device, events, all);
        assert_eq!(ends(&[], false), DONE);
        assert_eq!(ends(&[], true), DONE);
        assert_eq!(ends(&[manual], true), LATE);
        assert_eq!(set(&sim, &device, manual), Ok(0));
        assert_eq!(ends(&[manual], true), DONE);
        assert_eq!(ends(&[manual, manual], true), DONE, "still set");
        assert_eq!(ends(&[other, manual], false), DONE);
        assert_eq!(ends(&[other, manual], true), LATE);
        assert_eq!(ask(&sim, &device, &mut ResetEvent { event_id: manual, pad: 0 }), Ok(0));
        assert_eq!(ends(&[manual], true), LATE);
        assert_eq!(set(&sim, &device, auto), Ok(0));
        assert_eq!(ends(&[auto], true), DONE);
        assert_eq!(ends(&[auto], true), LATE, "consumed");
        assert_eq!(set(&sim, &device, auto), Ok(0));
        assert_eq!(ends(&[auto, manual], true), LATE);
        assert_eq!(ends(&[auto], true), LATE, "consumed by the wait that timed out");
        let unknown = (Err(Errno::EINVAL), WaitResult::FAIL);
        assert_eq!(ends(&[manual, 77], false), unknown);
    }

    #[test]
    fn times_and_signals() {
        let sim = boot("cpu-only");
        let device = kfd(&sim);
        let event = create(&sim, &device, EventType::SIGNAL, true);
        let start = sim.now(hsakmt_core::seam::Clock::Monotonic);
        let answer = wait(&sim, &device, &[(event, 0)], true, 200);
        assert_eq!(answer, (Ok(0), WaitResult::TIMEOUT, 200, [0].into()));
        assert!(sim.now(hsakmt_core::seam::Clock::Monotonic) - start >= 200_000_000);
        // The library's one place that sends it again is not asked here.
        sim.process().interrupt_wait(None);
        let mut block = WaitEvents { num_events: 1, timeout: 1000, ..Default::default() };
        let mut data = EventData { event_id: event, ..Default::default() };
        let arrays = &mut [Array::InOut(data.as_mut_bytes())];
        let mut call = hsakmt_core::seam::Call {
            request: <WaitEvents as hsakmt_core::uapi::Block>::REQUEST,
            name: "WAIT_EVENTS",
            fields: &[],
            block: block.as_mut_bytes(),
            slots: <WaitEvents as hsakmt_core::uapi::Block>::ARRAYS,
            arrays,
        };
        assert_eq!(sim.execute(&device, &mut call), Err(Errno::EINTR));
        assert_eq!(block.wait_result, WaitResult::FAIL);
        assert!((900..=1000).contains(&block.timeout), "{}", block.timeout);
    }

    #[test]
    fn a_destroyed_event_ends_its_waits() {
        let sim = boot("cpu-only");
        let device = kfd(&sim);
        let event = create(&sim, &device, EventType::SIGNAL, false);
        let mut block = WaitEvents { num_events: 1, timeout: u32::MAX, ..Default::default() };
        let mut data = EventData { event_id: event, ..Default::default() };
        let arrays = &mut [Array::InOut(data.as_mut_bytes())];
        let mut call = hsakmt_core::seam::Call {
            request: <WaitEvents as hsakmt_core::uapi::Block>::REQUEST,
            name: "WAIT_EVENTS",
            fields: &[],
            block: block.as_mut_bytes(),
            slots: <WaitEvents as hsakmt_core::uapi::Block>::ARRAYS,
            arrays,
        };
        let mut sleep = None;
        let _ = sim.advance(&device, &mut call, &mut sleep);
        assert!(sleep.is_some());
        assert_eq!(sim.process().sleeping_waits(None), 1);
        assert_eq!(destroy(&sim, &device, event), Ok(0));
        assert_eq!(sim.advance(&device, &mut call, &mut sleep), Err(Errno::EIO));
        assert!(sleep.is_none());
        assert_eq!(sim.process().sleeping_waits(None), 0);
    }

    #[test]
    fn ages_since_1_14() {
        for (kernel, set_once, set_twice, odd) in
            [("6.1", (0, 1), (0, 2), (1, 99)), ("6.12", (0, 2), (0, 3), (0, 3))]
        {
            let sim = boot(&format!("cpu-only:kernel={kernel}"));
            let device = kfd(&sim);
            let event = create(&sim, &device, EventType::SIGNAL, true);
            let ask = |age| {
                let (answer, result, _, ages) = wait(&sim, &device, &[(event, age)], true, 1);
                assert_eq!(answer, Ok(0));
                (result.0, ages[0])
            };
            assert_eq!(ask(0), (1, 0), "{kernel}");
            set(&sim, &device, event).unwrap();
            assert_eq!(ask(1), set_once, "{kernel}");
            set(&sim, &device, event).unwrap();
            assert_eq!(ask(2), set_twice, "{kernel}");
            assert_eq!(ask(99), odd, "{kernel}");
        }
    }

    #[test]
    fn faults_and_resets_come_with_what_happened() {
        let sim = boot("rx7900:kernel=7.2");
        let bound = bind(&sim);
        let (device, gpu) = (&bound.kfd, gpu_id(&sim, 0));
        let memory = create(&sim, device, EventType::MEMORY, true);
        let reset = create(&sim, device, EventType::HW_EXCEPTION, true);
        let payload = |id| {
            let mut data = EventData { event_id: id, ..Default::default() };
            let mut block = WaitEvents { num_events: 1, ..Default::default() };
            let arrays = &mut [Array::InOut(data.as_mut_bytes())];
            ask_with(&sim, device, &mut block, arrays).map(|_| (block.wait_result, data))
        };
        let fault = sim.process().gpu_access(gpu, 0x1234_5678, true);
        assert!(fault.is_err());
        let (ended, data) = payload(memory).unwrap();
        assert_eq!(ended, WaitResult::COMPLETE);
        let seen = data.memory_exception();
        assert_eq!((seen.va, seen.gpu_id, seen.failure.NotPresent), (0x1234_5000, gpu, 1));
        sim.process().reset_gpu(gpu, true);
        let (_, data) = payload(reset).unwrap();
        let seen = data.hw_exception();
        assert_eq!((seen.reset_cause.0, seen.memory_lost, seen.gpu_id), (1, 1, gpu));
        let (_, data) = payload(memory).unwrap();
        assert_eq!(
            (data.memory_exception().ErrorType.0, data.memory_exception().failure.imprecise),
            (1, 1)
        );
        // Another context's events are its own.
        let secondary = kfd(&sim);
        assert_eq!(ask(&sim, &secondary, &mut CreateProcess::default()), Ok(0));
        let own = create(&sim, &secondary, EventType::MEMORY, true);
        sim.process().fault_memory(Some(0), gpu, 0x9000, MemoryFault::default());
        assert_eq!(ends(&sim, device, &[memory], true), LATE);
        assert_eq!(ends(&sim, &secondary, &[own], true), DONE);
        assert!(!sim.process().signal_event(None, memory), "it has no slot");
    }

    #[test]
    fn events_live_as_long_as_the_object() {
        let sim = boot("cpu-only");
        let device = kfd(&sim);
        let event = create(&sim, &device, EventType::SIGNAL, false);
        set(&sim, &device, event).unwrap();
        drop(device);
        let device = kfd(&sim);
        assert_eq!(ends(&sim, &device, &[event], true), DONE);
        assert_eq!(create(&sim, &device, EventType::SIGNAL, false), event + 1);
        sim.enter_fork_child();
        let own = kfd(&sim);
        assert_eq!(ends(&sim, &own, &[event], true).0, Err(Errno::EINVAL));
        drop(own);
        sim.leave_child();
    }

    #[test]
    fn the_file_of_a_gpus_news_is_the_callers() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        let mut block = SmiEvents { gpuid: 1, anon_fd: 0 };
        assert_eq!(ask(&sim, &device, &mut block), Err(Errno::EINVAL));
        block.gpuid = gpu_id(&sim, 0);
        assert_eq!(ask(&sim, &device, &mut block), Ok(0));
        let descriptor = sim.process().descriptor(block.anon_fd).unwrap();
        assert!(!descriptor.close_on_exec);
        sim.process().close(block.anon_fd).unwrap();
        sim.process().set_descriptor_limit(4);
        assert_eq!(ask(&sim, &device, &mut block), Err(Errno::EMFILE));
    }
}
