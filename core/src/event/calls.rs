//! The calls of a context that concern events.

use alloc::vec::Vec;

use super::books::Known;
use super::page::{self, destroy};
use super::pump::pump;
use super::{Event, EventRequest, EventUse, Events, HwException, MemoryFault, Waited};
use crate::context::Channel;
use crate::error::{Error, Object, Operation, Status};
use crate::log::error;
use crate::process::Guard;
use crate::seam::{Array, DeviceToken, Platform};
use crate::uapi::gate::Feature;
use crate::uapi::kfd::{
    CreateEvent, DestroyEvent, EventData, EventType, HwExceptionData, MemoryExceptionData,
    ResetEvent, SetEvent, SmiEvents, WaitEvents, WaitResult,
};
use zerocopy::IntoBytes;

fn object(id: u32) -> Object {
    Object::Handle(u64::from(id))
}

impl<P: Platform> Guard<'_, P> {
    /// Creates an event.
    ///
    /// The first event with a slot of a kernel process object makes the event page,
    /// for which the machine has to be known.
    ///
    /// # Errors
    /// NO_MEMORY when no slot is left, or no memory for the books; ERROR with the
    /// driver's errno, also when it cannot be set from the start, and when the page is
    /// needed and no machine was acquired. Nothing is left then, but for a page that
    /// the driver has taken.
    pub fn create_event(&self, request: &EventRequest) -> Result<Event, Error> {
        let (channel, events) = (self.channel(), self.context().events());
        let os = channel.os();
        events.books.acquire(os).reserve()?;
        let block = CreateEvent {
            event_type: request.kind,
            auto_reset: u32::from(!request.manual_reset),
            node_id: request.node,
            ..CreateEvent::default()
        };
        let look = |look: &mut dyn FnMut(&crate::context::Machine) -> Result<(), Error>| {
            self.machine(look).map_err(|error| error.with_status(Status::ERROR))
        };
        let (block, slot) = page::create(&channel, block, look)?;
        let id = block.event_id;
        let known = Known {
            id,
            owner: request.owner,
            kind: request.kind,
            manual_reset: request.manual_reset,
            dying: false,
        };
        let set = match request.kind {
            EventType::SIGNAL | EventType::DEBUG_EVENT if request.is_set => self.set_event(id),
            _ => Ok(()),
        };
        // Another thread may have taken the room.
        let entered = set.and_then(|()| events.books.acquire(os).enter(known));
        if let Err(error) = entered {
            destroy(&channel, id);
            return Err(error);
        }
        Ok(Event { id, slot, trigger: block.event_trigger_data })
    }

    /// Destroys an event of this owner; `false` where it was destroyed by an earlier
    /// close. Who waits for it gets ERROR.
    ///
    /// # Errors
    /// ERROR with the driver's errno; the event is as it was.
    pub fn destroy_event(&self, id: u32, owner: u64) -> Result<bool, Error> {
        let (channel, events) = (self.channel(), self.context().events());
        if events.books.acquire(channel.os()).set_dying(id, owner, true).is_none() {
            return Ok(false);
        }
        let mut block = DestroyEvent { event_id: id, pad: 0 };
        let result = channel.execute(&mut block, &mut [], Status::ERROR, object(id));
        let mut books = events.books.acquire(channel.os());
        match result {
            Ok(_) => {
                books.bury(id, owner);
                Ok(true)
            }
            Err(error) => {
                books.set_dying(id, owner, false);
                Err(error)
            }
        }
    }

    /// Sets an event, which wakes all that wait for it.
    ///
    /// # Errors
    /// ERROR with the driver's errno, for kinds other than SIGNAL, too.
    #[inline]
    pub fn set_event(&self, id: u32) -> Result<(), Error> {
        let mut block = SetEvent { event_id: id, pad: 0 };
        self.channel().execute(&mut block, &mut [], Status::ERROR, object(id)).map(drop)
    }

    /// Resets an event.
    ///
    /// # Errors
    /// As [`Guard::set_event`].
    #[inline]
    pub fn reset_event(&self, id: u32) -> Result<(), Error> {
        let mut block = ResetEvent { event_id: id, pad: 0 };
        self.channel().execute(&mut block, &mut [], Status::ERROR, object(id)).map(drop)
    }

    /// Waits for events: for all of them, or for one. `milliseconds` is how long,
    /// [`WAIT_FOREVER`](crate::uapi::kfd::WAIT_FOREVER) without an end.
    ///
    /// Ages go in and out with the entries, and so does what a fault or a reset was.
    /// A signal of the system does not end the wait; only the time that is left is
    /// waited then.
    ///
    /// # Errors
    /// ERROR with the driver's errno: EINVAL for an unknown event, EIO when one is
    /// destroyed meanwhile.
    #[inline(always)]
    pub fn wait_for_events(
        &self,
        events: &mut [EventData],
        all: bool,
        milliseconds: u32,
    ) -> Result<Waited, Error> {
        wait(&self.channel(), events, all, milliseconds)
    }

    /// The memory fault that an entry of a completed wait tells; none for no GPU.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT when the GPU is none of the machine that was acquired.
    pub fn memory_fault(&self, data: &MemoryExceptionData) -> Result<Option<MemoryFault>, Error> {
        let Some(node) = self.node_of(data.gpu_id)? else { return Ok(None) };
        let fault = MemoryFault {
            node,
            address: data.va,
            not_present: data.failure.NotPresent != 0,
            read_only: data.failure.ReadOnly != 0,
            no_execute: data.failure.NoExecute != 0,
            imprecise: data.failure.imprecise != 0,
            error_type: data.ErrorType,
        };
        error!(
            self.context().options().logger,
            "memory fault of node {} (gpu_id {:#x}) at {:#x}{}: {}{}{}error type {}",
            node,
            data.gpu_id,
            fault.address,
            if fault.imprecise { " or near it" } else { "" },
            if fault.not_present { "page not present, " } else { "" },
            if fault.read_only { "page read-only, " } else { "" },
            if fault.no_execute { "page not executable, " } else { "" },
            fault.error_type.0
        );
        Ok(Some(fault))
    }

    /// The reset that an entry of a completed wait tells; none for no GPU. The queues of
    /// that GPU are lost from now on.
    ///
    /// # Errors
    /// As [`Guard::memory_fault`].
    pub fn hw_exception(&self, data: &HwExceptionData) -> Result<Option<HwException>, Error> {
        if data.gpu_id != 0 {
            self.note_gpu_reset(data.gpu_id);
        }
        Ok(self.node_of(data.gpu_id)?.map(|node| HwException {
            node,
            reset_type: data.reset_type,
            reset_cause: data.reset_cause,
            memory_lost: data.memory_lost != 0,
        }))
    }

    fn node_of(&self, gpu_id: u32) -> Result<Option<u32>, Error> {
        if gpu_id == 0 {
            return Ok(None);
        }
        let unknown =
            || Error::library(Status::INVALID_NODE_UNIT, Operation::LookUp, Object::Gpu(gpu_id));
        self.machine(|machine| machine.snapshot().by_gpu_id(gpu_id).map(Some).ok_or_else(unknown))
    }

    /// How many events with a slot there are, and how many there can be.
    #[must_use]
    pub fn event_use(&self) -> EventUse {
        let channel = self.channel();
        let in_use = self.context().events().books.acquire(channel.os()).with_slots();
        EventUse { in_use, limit: channel.files.events.limit() }
    }

    /// Opens the file in which a GPU's driver tells what happens, and gives it away:
    /// whoever gets it closes it. An exec does not.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT, also for a CPU node; NOT_SUPPORTED before KFD 1.3; ERROR.
    pub fn open_smi(&self, node: u32) -> Result<DeviceToken, Error> {
        let gpu_id = self.machine(|machine| machine.gpu(node).map(|gpu| gpu.gpu_id))?;
        if !self.version().supports(Feature::SmiEvents) {
            return Err(Error::needs_kfd(Feature::SmiEvents.gate().minor));
        }
        let mut block = SmiEvents { gpuid: gpu_id, anon_fd: 0 };
        self.channel().execute(&mut block, &mut [], Status::ERROR, Object::Gpu(gpu_id))?;
        Ok(DeviceToken(block.anon_fd))
    }

    /// Gives an event a callback, which [`Guard::pump_events`] names by its words; none
    /// takes it away.
    ///
    /// # Errors
    /// NOT_SUPPORTED before KFD 1.14, whose events do not tell how often they were set;
    /// INVALID_PARAMETER for kinds that nothing sets; INVALID_HANDLE for an event that is
    /// none of this owner's; NO_MEMORY.
    pub fn set_event_callback(
        &self,
        id: u32,
        owner: u64,
        words: Option<[usize; 3]>,
    ) -> Result<(), Error> {
        if !self.version().supports(Feature::EventAge) {
            return Err(Error::needs_kfd(Feature::EventAge.gate().minor));
        }
        let os = self.channel().os();
        let mut books = self.context().events().books.acquire(os);
        let kind = books.find(id, owner).map(|event| event.kind);
        match kind {
            None | Some(EventType::SIGNAL | EventType::MEMORY | EventType::HW_EXCEPTION) => {
                books.set_callback(id, owner, words)
            }
            Some(_) => Err(Error::argument(1)),
        }
    }

    /// Waits until an event with a callback is set, and tells the words of the
    /// callbacks that are due: once for each time that an event which resets itself
    /// was seen set, in each pump for one that stays set.
    ///
    /// Without any callback it does not wait.
    ///
    /// # Errors
    /// NO_MEMORY; as [`Guard::wait_for_events`].
    pub fn pump_events(&self, milliseconds: u32) -> Result<Vec<[usize; 3]>, Error> {
        pump(&self.channel(), self.context().events(), milliseconds)
    }
}

/// The one request of a wait.
#[inline(always)]
pub(super) fn wait<P: Platform>(
    channel: &Channel<'_, P>,
    events: &mut [EventData],
    all: bool,
    milliseconds: u32,
) -> Result<Waited, Error> {
    let what = events.first().map_or(Object::Nothing, |event| object(event.event_id));
    let mut block = WaitEvents {
        num_events: u32::try_from(events.len()).map_err(|_| Error::argument(2))?,
        wait_for_all: u32::from(all),
        timeout: milliseconds,
        ..WaitEvents::default()
    };
    let array = match events.is_empty() {
        true => Array::Absent,
        false => Array::InOut(events.as_mut_bytes()),
    };
    channel.execute(&mut block, &mut [array], Status::ERROR, what)?;
    match block.wait_result {
        WaitResult::COMPLETE => Ok(Waited::Complete),
        WaitResult::TIMEOUT => Ok(Waited::TimedOut),
        _ => Err(Error::library(Status::ERROR, Operation::Wait, what)),
    }
}

/// Destroys the events of a context that closes, which ends the waits for them. Of
/// other threads' events some may come after it.
pub(crate) fn destroy_all<P: Platform>(channel: &Channel<'_, P>, events: &Events) {
    let claim = || events.books.acquire(channel.os()).claim_any();
    while let Some(event) = claim() {
        destroy(channel, event.id);
        events.books.acquire(channel.os()).bury(event.id, event.owner);
    }
}
