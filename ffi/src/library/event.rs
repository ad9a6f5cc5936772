//! Events: created, set, waited for; callbacks.
//!
//! # Safety
//! An `HsaEvent` is this library's own box: callers get its address from
//! `hsaKmtCreateEvent` and give it back to `hsaKmtDestroyEvent`. Everything else is the
//! caller's memory, touched only through `caller_memory`. A callback is a C function
//! that the caller promises to be callable with its two pointers for as long as it is
//! set; it runs without any lock of the library and outside of the context.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::ptr;

use hsakmt_core::error::{Error, Object, Operation, Status};
use hsakmt_core::event::{EventRequest, Waited};
use hsakmt_core::fallible::{try_box, try_extend};
use hsakmt_core::process::Guard;
use hsakmt_core::seam::Platform;
use hsakmt_core::uapi::kfd::{EventData, EventType, MemoryErrorType};

use super::receiver::Receiver;
use super::{Host, Library};
use crate::generation::address::address_of;
use crate::generation::caller_memory;
use crate::types::{
    HSA_EVENTID_HW_EXCEPTION_CAUSE, HSA_EVENTID_MEMORYFLAGS, HSA_EVENTTYPE, HSAKMT_STATUS,
    HsaAccessAttributeFailure, HsaEvent, HsaEventData, HsaEventDescriptor, HsaEventReport,
    HsaExtEventCallback, HsaHwException, HsaKFDContext, HsaMemoryAccessFault, HsaSyncVar,
};

/// A pointer that names no event.
fn no_event(position: u32) -> Error {
    Error::argument(position).with_status(Status::INVALID_HANDLE)
}

/// The id and kind of an event.
///
/// # Safety
/// `event` is NULL or an event.
#[inline]
unsafe fn read_event(event: *const HsaEvent) -> Option<(u32, HSA_EVENTTYPE)> {
    if event.is_null() {
        return None;
    }
    // SAFETY: an event, by the caller's promise; the fields are within it.
    let id = unsafe { caller_memory::read(&raw const (*event).EventId) }.ok()?;
    // SAFETY: the same.
    let kind = unsafe { caller_memory::read(&raw const (*event).EventData.EventType) }.ok()?;
    Some((id, kind))
}

/// What a wait is about.
#[derive(Clone, Copy)]
struct Waits {
    events: *mut *mut HsaEvent,
    count: u32,
    all: bool,
    milliseconds: u32,
    ages: *mut u64,
}

impl<H: Host> Library<H> {
    /// `hsaKmtCreateEvent`, `hsaKmtCreateEventCtx`
    ///
    /// # Safety
    /// `descriptor` is NULL or readable, `event` NULL or writable.
    pub unsafe fn create_event(
        &self,
        receiver: Receiver,
        descriptor: *mut HsaEventDescriptor,
        manual_reset: bool,
        is_signaled: bool,
        event: *mut *mut HsaEvent,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            // SAFETY: the caller's promise.
            unsafe { caller_memory::write(event, ptr::null_mut()) }
                .map_err(|_| Error::argument(4))?;
            // SAFETY: the caller's promise.
            let wanted =
                unsafe { caller_memory::read(descriptor) }.map_err(|_| Error::argument(1))?;
            if wanted.EventType.0 >= HSA_EVENTTYPE::MAX_ID.0 {
                return Err(Error::argument(1));
            }
            let made: *mut HsaEvent = Box::into_raw(try_box(blank(&wanted))?).cast();
            let request = EventRequest {
                kind: EventType(wanted.EventType.0),
                node: wanted.NodeId,
                manual_reset,
                is_set: is_signaled,
                owner: address_of(made),
            };
            match guard.create_event(&request) {
                Ok(found) => {
                    // SAFETY: the box that was just made, which nobody else knows.
                    let box_of_event = unsafe { &mut *made };
                    box_of_event.EventId = found.id;
                    box_of_event.EventData.HWData1 = u64::from(found.id);
                    box_of_event.EventData.HWData2 = found.slot;
                    box_of_event.EventData.HWData3 = found.trigger;
                    // SAFETY: the caller's promise; not NULL, as the write above found.
                    Ok(unsafe { caller_memory::write(event, made) }?)
                }
                Err(error) => {
                    // SAFETY: made above, known to nobody.
                    unsafe { free(made) };
                    Err(error)
                }
            }
        })
    }

    /// `hsaKmtDestroyEvent`, `hsaKmtDestroyEventCtx`. What an earlier close has destroyed is freed alone.
    ///
    /// # Safety
    /// `event` is NULL or an event that is not used any more.
    pub unsafe fn destroy_event(&self, receiver: Receiver, event: *mut HsaEvent) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            // SAFETY: the caller's promise.
            let (id, _) = unsafe { read_event(event) }.ok_or_else(|| no_event(1))?;
            guard.destroy_event(id, address_of(event))?;
            // SAFETY: an event by the caller's promise, so a box of ours; not used any more.
            unsafe { free(event) };
            Ok(())
        })
    }

    /// `hsaKmtSetEvent`, `hsaKmtSetEventCtx`
    ///
    /// # Safety
    /// `event` is NULL or an event.
    #[inline]
    pub unsafe fn set_event(&self, receiver: Receiver, event: *mut HsaEvent) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        self.on(receiver, |guard| guard.set_event(unsafe { for_program(event) }?))
    }

    /// `hsaKmtResetEvent`, `hsaKmtResetEventCtx`
    ///
    /// # Safety
    /// `event` is NULL or an event.
    pub unsafe fn reset_event(&self, receiver: Receiver, event: *mut HsaEvent) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        self.on(receiver, |guard| guard.reset_event(unsafe { for_program(event) }?))
    }

    /// `hsaKmtQueryEventState`, `hsaKmtQueryEventStateCtx`: there is nothing that the driver could be asked.
    pub fn query_event(&self, receiver: Receiver, event: *mut HsaEvent) -> HSAKMT_STATUS {
        self.on(receiver, |_| if event.is_null() { Err(no_event(1)) } else { Ok(()) })
    }

    /// `hsaKmtWaitOnEvent`
    ///
    /// # Safety
    /// `event` is NULL or an event.
    pub unsafe fn wait_on_event(&self, event: *mut HsaEvent, milliseconds: u32) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.wait_on_one(Receiver::PRIMARY, event, milliseconds, ptr::null_mut()) }
    }

    /// `hsaKmtWaitOnEventCtx`
    ///
    /// # Safety
    /// `event` is NULL or an event.
    pub unsafe fn wait_on_event_of(
        &self,
        context: *mut HsaKFDContext,
        event: *mut HsaEvent,
        milliseconds: u32,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.wait_on_one(Receiver::of(context), event, milliseconds, ptr::null_mut()) }
    }

    /// `hsaKmtWaitOnEvent_Ext`
    ///
    /// # Safety
    /// `event` is NULL or an event, `age` NULL or readable and writable.
    pub unsafe fn wait_on_event_age(
        &self,
        event: *mut HsaEvent,
        milliseconds: u32,
        age: *mut u64,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.wait_on_one(Receiver::PRIMARY, event, milliseconds, age) }
    }

    /// `hsaKmtWaitOnEvent_ExtCtx`
    ///
    /// # Safety
    /// As [`Library::wait_on_event_age`].
    pub unsafe fn wait_on_event_age_of(
        &self,
        context: *mut HsaKFDContext,
        event: *mut HsaEvent,
        milliseconds: u32,
        age: *mut u64,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise.
        unsafe { self.wait_on_one(Receiver::of(context), event, milliseconds, age) }
    }

    /// # Safety
    /// As [`Library::wait_on_event_age`].
    #[inline(always)]
    unsafe fn wait_on_one(
        &self,
        receiver: Receiver,
        event: *mut HsaEvent,
        milliseconds: u32,
        ages: *mut u64,
    ) -> HSAKMT_STATUS {
        let handle = receiver.handle;
        let Some(guard) = self.enter(handle) else { return self.closed(handle) };
        // SAFETY: the caller's promise.
        let ended = unsafe { wait_for_one(&guard, event, milliseconds, ages) };
        drop(guard);
        match ended {
            Ok(ended) => told(HSAKMT_STATUS::SUCCESS, ended),
            Err(error) => self.fail(handle, &receiver.placed(error)),
        }
    }

    /// `hsaKmtWaitOnMultipleEvents`
    ///
    /// # Safety
    /// `events` is NULL or an array of `count` events or NULLs.
    pub unsafe fn wait_on_events(
        &self,
        events: *mut *mut HsaEvent,
        count: u32,
        all: bool,
        milliseconds: u32,
    ) -> HSAKMT_STATUS {
        let waits = Waits { events, count, all, milliseconds, ages: ptr::null_mut() };
        // SAFETY: the caller's promise.
        unsafe { self.wait_in(Receiver::PRIMARY, waits) }
    }

    /// `hsaKmtWaitOnMultipleEventsCtx`
    ///
    /// # Safety
    /// As [`Library::wait_on_events`].
    pub unsafe fn wait_on_events_of(
        &self,
        context: *mut HsaKFDContext,
        events: *mut *mut HsaEvent,
        count: u32,
        all: bool,
        milliseconds: u32,
    ) -> HSAKMT_STATUS {
        let waits = Waits { events, count, all, milliseconds, ages: ptr::null_mut() };
        // SAFETY: the caller's promise.
        unsafe { self.wait_in(Receiver::of(context), waits) }
    }

    /// `hsaKmtWaitOnMultipleEvents_Ext`
    ///
    /// # Safety
    /// As [`Library::wait_on_events`]; `ages` is NULL or an array of `count` numbers.
    pub unsafe fn wait_on_events_age(
        &self,
        events: *mut *mut HsaEvent,
        count: u32,
        all: bool,
        milliseconds: u32,
        ages: *mut u64,
    ) -> HSAKMT_STATUS {
        let waits = Waits { events, count, all, milliseconds, ages };
        // SAFETY: the caller's promise.
        unsafe { self.wait_in(Receiver::PRIMARY, waits) }
    }

    /// `hsaKmtWaitOnMultipleEvents_ExtCtx`
    ///
    /// # Safety
    /// As [`Library::wait_on_events_age`].
    pub unsafe fn wait_on_events_age_of(
        &self,
        context: *mut HsaKFDContext,
        events: *mut *mut HsaEvent,
        count: u32,
        all: bool,
        milliseconds: u32,
        ages: *mut u64,
    ) -> HSAKMT_STATUS {
        let waits = Waits { events, count, all, milliseconds, ages };
        // SAFETY: the caller's promise.
        unsafe { self.wait_in(Receiver::of(context), waits) }
    }

    /// # Safety
    /// As [`Library::wait_on_events_age`].
    #[inline]
    unsafe fn wait_in(&self, receiver: Receiver, waits: Waits) -> HSAKMT_STATUS {
        let mut ended = Waited::Complete;
        let status = self.on(receiver, |guard| {
            // SAFETY: the caller's promise.
            ended = unsafe { wait(guard, waits) }?;
            Ok(())
        });
        told(status, ended)
    }

    /// `hsaKmtOpenSMI`, `hsaKmtOpenSMICtx`
    ///
    /// # Safety
    /// `descriptor` is NULL or writable.
    pub unsafe fn open_smi(
        &self,
        receiver: Receiver,
        node: u32,
        descriptor: *mut i32,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if descriptor.is_null() {
                return Err(Error::argument(2));
            }
            let number = i32::try_from(guard.open_smi(node)?.0).map_err(|_| {
                Error::library(Status::ERROR, Operation::OpenDevice, Object::Node(node))
            })?;
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(descriptor, number) }?)
        })
    }

    /// `hsaKmtExtGetEventUse`, `hsaKmtExtGetEventUseCtx`
    ///
    /// # Safety
    /// Both are NULL or writable.
    pub unsafe fn event_use(
        &self,
        receiver: Receiver,
        in_use: *mut u32,
        limit: *mut u32,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            let found = guard.event_use();
            // SAFETY: the caller's promise. NULL is no error.
            let _ = unsafe { caller_memory::write(in_use, found.in_use) };
            // SAFETY: the same.
            let _ = unsafe { caller_memory::write(limit, found.limit) };
            Ok(())
        })
    }

    /// `hsaKmtExtSetEventCallback`, `hsaKmtExtSetEventCallbackCtx`
    ///
    /// # Safety
    /// `event` is NULL or an event; `callback` can be called with `user` and the event by
    /// whoever pumps, until it is taken away.
    pub unsafe fn set_event_callback(
        &self,
        receiver: Receiver,
        event: *mut HsaEvent,
        callback: HsaExtEventCallback,
        user: *mut c_void,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            // SAFETY: the caller's promise.
            let (id, _) = unsafe { read_event(event) }.ok_or_else(|| no_event(1))?;
            let words = callback.map(|callback| {
                [(callback as *const ()).expose_provenance(), user.expose_provenance(), {
                    event.expose_provenance()
                }]
            });
            guard.set_event_callback(id, address_of(event), words)
        })
    }

    /// `hsaKmtExtPumpEvents`, `hsaKmtExtPumpEventsCtx`
    ///
    /// # Safety
    /// `ran` is NULL or writable.
    pub unsafe fn pump_events(
        &self,
        receiver: Receiver,
        milliseconds: u32,
        ran: *mut u32,
    ) -> HSAKMT_STATUS {
        // SAFETY: the caller's promise. NULL is no error.
        let _ = unsafe { caller_memory::write(ran, 0) };
        let mut due = Vec::new();
        let status = self.on(receiver, |guard| {
            due = guard.pump_events(milliseconds)?;
            Ok(())
        });
        let count = u32::try_from(due.len()).unwrap_or(u32::MAX);
        for [function, user, event] in due {
            let function = ptr::with_exposed_provenance::<()>(function);
            // SAFETY: the words of `set_event_callback`, where the function was one; NULL
            // has no words.
            let callback: HsaExtEventCallback = unsafe { core::mem::transmute(function) };
            if let Some(callback) = callback {
                // SAFETY: the promise of whoever set it.
                unsafe {
                    callback(
                        ptr::with_exposed_provenance_mut(user),
                        ptr::with_exposed_provenance_mut(event),
                    );
                }
            }
        }
        // SAFETY: the caller's promise. NULL is no error.
        let _ = unsafe { caller_memory::write(ran, count) };
        match (status, count) {
            (HSAKMT_STATUS::SUCCESS, 0) => HSAKMT_STATUS::WAIT_TIMEOUT,
            (status, _) => status,
        }
    }
}

/// What a wait answers. That the time is up is no failure to be remembered.
#[inline]
fn told(status: HSAKMT_STATUS, ended: Waited) -> HSAKMT_STATUS {
    match (status, ended) {
        (HSAKMT_STATUS::SUCCESS, Waited::TimedOut) => HSAKMT_STATUS::WAIT_TIMEOUT,
        (status, _) => status,
    }
}

/// An event as its descriptor has it, before it is created.
fn blank(wanted: &HsaEventDescriptor) -> HsaEvent {
    HsaEvent {
        EventId: 0,
        EventData: HsaEventData {
            EventType: wanted.EventType,
            EventData: HsaEventReport {
                SyncVar: HsaSyncVar {
                    SyncVar: wanted.SyncVar.SyncVar,
                    SyncVarSize: wanted.SyncVar.SyncVarSize,
                },
            },
            HWData1: 0,
            HWData2: 0,
            HWData3: 0,
        },
    }
}

/// Frees the box of an event.
///
/// # Safety
/// `event` came from `create_event` and is not used any more.
unsafe fn free(event: *mut HsaEvent) {
    let one = ptr::slice_from_raw_parts_mut(event, 1);
    // SAFETY: made by `Box::into_raw` of a slice of one.
    drop(unsafe { Box::from_raw(one) });
}

/// The id of an event that programs may set.
///
/// # Safety
/// `event` is NULL or an event.
#[inline]
unsafe fn for_program(event: *const HsaEvent) -> Result<u32, Error> {
    // SAFETY: the caller's promise.
    match unsafe { read_event(event) } {
        None => Err(no_event(1)),
        Some((id, HSA_EVENTTYPE::SIGNAL | HSA_EVENTTYPE::DEBUG_EVENT)) => Ok(id),
        Some(_) => Err(Error::argument(1).with_status(Status::ERROR)),
    }
}

/// Waits for one event.
///
/// # Safety
/// As [`Library::wait_on_event_age`].
#[inline(always)]
unsafe fn wait_for_one<P: Platform>(
    guard: &Guard<'_, P>,
    event: *mut HsaEvent,
    milliseconds: u32,
    age: *mut u64,
) -> Result<Waited, Error> {
    // SAFETY: the caller's promise.
    let (id, kind) = unsafe { read_event(event) }.ok_or_else(|| no_event(1))?;
    let mut entry = EventData { event_id: id, ..EventData::default() };
    let tells_age = kind == HSA_EVENTTYPE::SIGNAL && !age.is_null();
    if tells_age {
        // SAFETY: the caller's promise.
        entry.payload = [unsafe { caller_memory::read(age) }?, 0, 0, 0];
    }
    let ended = guard.wait_for_events(core::slice::from_mut(&mut entry), true, milliseconds);
    if tells_age {
        // SAFETY: the caller's promise.
        unsafe { caller_memory::write(age, entry.signal().last_event_age) }?;
    } else if kind != HSA_EVENTTYPE::SIGNAL && matches!(ended, Ok(Waited::Complete)) {
        // SAFETY: an event by the caller's promise.
        unsafe { report(guard, event, kind, &entry) }?;
    }
    ended
}

/// Waits, without an allocation for up to 64 events.
///
/// # Safety
/// As [`Library::wait_on_events_age`].
#[inline]
unsafe fn wait<P: Platform>(guard: &Guard<'_, P>, waits: Waits) -> Result<Waited, Error> {
    if waits.events.is_null() {
        return Err(no_event(1));
    }
    match waits.count {
        // SAFETY: the caller's promise, here and below.
        0..=8 => unsafe { wait_for_some(guard, waits) },
        // SAFETY: see above.
        _ => unsafe { wait_for_many(guard, waits) },
    }
}

/// # Safety
/// As [`Library::wait_on_events_age`].
#[inline(never)]
unsafe fn wait_for_some<P: Platform>(guard: &Guard<'_, P>, waits: Waits) -> Result<Waited, Error> {
    // SAFETY: the caller's promise.
    unsafe { wait_with(guard, waits, &mut [EventData::default(); 8]) }
}

/// # Safety
/// As [`Library::wait_on_events_age`].
#[inline(never)]
unsafe fn wait_for_many<P: Platform>(guard: &Guard<'_, P>, waits: Waits) -> Result<Waited, Error> {
    const MOST: usize = 64;
    let count = usize::try_from(waits.count).unwrap_or(usize::MAX);
    if count <= MOST {
        // SAFETY: the caller's promise.
        return unsafe { wait_with(guard, waits, &mut [EventData::default(); MOST]) };
    }
    let mut room = Vec::new();
    try_extend(&mut room, core::iter::repeat_n(EventData::default(), count))?;
    // SAFETY: the caller's promise.
    unsafe { wait_with(guard, waits, &mut room) }
}

/// Waits with room for the entries of the request.
///
/// # Safety
/// As [`Library::wait_on_events_age`].
#[inline]
unsafe fn wait_with<P: Platform>(
    guard: &Guard<'_, P>,
    waits: Waits,
    room: &mut [EventData],
) -> Result<Waited, Error> {
    let Waits { events, count, all, milliseconds, ages } = waits;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let entries = room.get_mut(..count).unwrap_or_default();
    for (index, entry) in entries.iter_mut().enumerate() {
        // SAFETY: the caller's array has `count` entries.
        let event = unsafe { caller_memory::read(events.wrapping_add(index)) }?;
        // SAFETY: the caller's promise.
        let (id, kind) = unsafe { read_event(event) }.ok_or_else(|| no_event(1))?;
        entry.event_id = id;
        if kind == HSA_EVENTTYPE::SIGNAL && !ages.is_null() {
            // SAFETY: the caller's array has `count` numbers.
            entry.payload = [unsafe { caller_memory::read(ages.wrapping_add(index)) }?, 0, 0, 0];
        }
    }
    let ended = guard.wait_for_events(entries, all, milliseconds);
    let complete = matches!(ended, Ok(Waited::Complete));
    let mut told = Ok(());
    for (index, entry) in entries.iter().enumerate() {
        // SAFETY: as above; the array may not be what it was, and is asked again.
        let event = unsafe { caller_memory::read(events.wrapping_add(index)) }?;
        // SAFETY: the caller's promise.
        let Some((_, kind)) = (unsafe { read_event(event) }) else { continue };
        if kind == HSA_EVENTTYPE::SIGNAL {
            if !ages.is_null() {
                let age = entry.signal().last_event_age;
                // SAFETY: the caller's array has `count` numbers.
                unsafe { caller_memory::write(ages.wrapping_add(index), age) }?;
            }
        } else if complete {
            // SAFETY: an event by the caller's promise.
            let result = unsafe { report(guard, event, kind, entry) };
            told = told.and(result);
        }
    }
    let ended = ended?;
    told?;
    Ok(ended)
}

/// Puts what happened into an event.
///
/// # Safety
/// `event` is an event.
#[cold]
unsafe fn report<P: Platform>(
    guard: &Guard<'_, P>,
    event: *mut HsaEvent,
    kind: HSA_EVENTTYPE,
    entry: &EventData,
) -> Result<(), Error> {
    let report = match kind {
        HSA_EVENTTYPE::MEMORY => match guard.memory_fault(&entry.memory_exception())? {
            Some(fault) => {
                let ecc = matches!(
                    fault.error_type,
                    MemoryErrorType::SRAM_ECC | MemoryErrorType::POISON_CONSUMED
                );
                let bits = u32::from(fault.not_present)
                    | u32::from(fault.read_only) << 1
                    | u32::from(fault.no_execute) << 2
                    | u32::from(ecc) << 4
                    | u32::from(fault.imprecise) << 5
                    | (fault.error_type.0 & 7) << 6;
                HsaEventReport {
                    MemoryAccessFault: HsaMemoryAccessFault {
                        NodeId: fault.node,
                        VirtualAddress: fault.address,
                        Failure: HsaAccessAttributeFailure { Value: bits },
                        Flags: HSA_EVENTID_MEMORYFLAGS::FATAL_PROCESS,
                    },
                }
            }
            None => return Ok(()),
        },
        HSA_EVENTTYPE::HW_EXCEPTION => match guard.hw_exception(&entry.hw_exception())? {
            Some(reset) => HsaEventReport {
                HwException: HsaHwException {
                    NodeId: reset.node,
                    ResetType: reset.reset_type.0,
                    MemoryLost: u32::from(reset.memory_lost),
                    ResetCause: HSA_EVENTID_HW_EXCEPTION_CAUSE(reset.reset_cause.0),
                },
            },
            None => return Ok(()),
        },
        _ => return Ok(()),
    };
    // SAFETY: an event by the caller's promise; the field is within it.
    Ok(unsafe { caller_memory::write(&raw mut (*event).EventData.EventData, report) }?)
}
