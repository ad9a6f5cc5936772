//! A queue of PM4 or SDMA packets with all that belongs to it: ring, completion word,
//! event.
//!
//! [`CommandQueue::place`] puts packets into the ring, [`CommandQueue::finish`] submits
//! them and waits until the engine has executed all: it looks at the completion word
//! for a while, then sleeps until the engine sets the queue's event. An interrupt that
//! is lost costs time only, since the word is looked at again. An engine that makes no
//! progress for as long as the context's options say is given up, and so is one whose
//! GPU is reset or meets an address that it does not reach: the queue has events of its
//! own for both.
//!
//! # Safety
//! One of the few modules of `core` with `unsafe` code. Ring, pointers and completion
//! word are memory that the library allocated for this queue alone and frees in
//! [`CommandQueue::close`], which takes the queue away. Whoever opens a queue promises
//! not to use it beyond the context that it was opened in, whose close frees the memory,
//! too. Nobody else stores to these places but the engine, and all accesses are atomic.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU32, Ordering};

use super::aql_ring::NotPlaced;
use super::buffers::{self, QueueNode};
use super::command_ring::{CommandRing, least_submission_dwords};
use super::mapped::{Mapped, MappedCommandPointers};
use super::packets::pm4::{Pm4Generation, Release, release};
use super::packets::sdma::{self, CacheRequest, SdmaVersion};
use super::plan::{Ring, Share};
use super::pointers::CommandEngine;
use super::{Queue, QueueOptions};
use crate::error::{Error, Object, Operation, Status};
use crate::event::{Event, EventRequest, Waited};
use crate::memory::MemoryFlags;
use crate::process::Guard;
use crate::seam::{Clock, Os, Platform};
use crate::uapi::kfd::{EventData, EventType, QueueType};

/// Bytes of the ring.
const RING_BYTES: u64 = 64 << 10;
/// How often the completion word is looked at before the thread sleeps.
const LOOKS: u32 = 2000;
/// How long the thread sleeps at most before it looks again, in ms.
const NAP_MS: u32 = 20;
/// The same without an event, in ns.
const NAP_NS: u64 = 50_000;

/// The packets that the engine understands.
#[derive(Debug, Clone, Copy)]
enum Packets {
    Compute(Pm4Generation),
    Copy(SdmaVersion),
}

/// An open queue.
#[derive(Debug)]
pub struct CommandQueue {
    queue: Queue,
    gpu_id: u32,
    packets: Packets,
    ring: CommandRing<Mapped<AtomicU32>, MappedCommandPointers>,
    ring_address: u64,
    /// The engine writes how often it has finished.
    done: Mapped<AtomicU32>,
    done_address: u64,
    /// What it was asked to finish.
    asked: u32,
    /// Set by the engine; none where events have run out.
    event: Option<Event>,
    /// Set by the driver when it resets the GPU.
    exception: Option<Event>,
    /// Set by the driver when a GPU does not reach an address.
    fault: Option<Event>,
}

/// What a wait has seen of an engine.
struct Progress {
    place: u32,
    done: u32,
    since: u64,
}

impl CommandQueue {
    /// Opens a queue on a GPU node: COMPUTE, SDMA, SDMA_XGMI, or SDMA_BY_ENG_ID with the
    /// number of the engine.
    ///
    /// # Errors
    /// Those of [`Guard::create_queue`], INVALID_PARAMETER for an AQL queue; NOT_SUPPORTED
    /// for a chip whose packets are not known; NO_MEMORY. Nothing is left.
    ///
    /// # Safety
    /// The queue is used only with guards of this context, and not after it was closed.
    pub unsafe fn open<P: Platform>(
        guard: &Guard<'_, P>,
        node: u32,
        queue_type: QueueType,
        sdma_engine: u32,
    ) -> Result<CommandQueue, Error> {
        let (place, version) = guard.machine(|machine| {
            Ok((QueueNode::of(machine, node)?, machine.gpu(node)?.gfx_version))
        })?;
        let unknown =
            Error::library(Status::NOT_SUPPORTED, Operation::LookUp, Object::Gpu(place.gpu_id));
        let (packets, engine) = match queue_type {
            QueueType::COMPUTE => {
                let generation = Pm4Generation::of(version).ok_or(unknown)?;
                (Packets::Compute(generation), CommandEngine::Compute)
            }
            QueueType::COMPUTE_AQL => return Err(Error::argument(2)),
            _ => {
                let version = SdmaVersion::of(version).ok_or(unknown)?;
                (Packets::Copy(version), CommandEngine::Copy)
            }
        };
        let access = guard.memory();
        let page = guard.os().page_size() as u64;
        let shared = MemoryFlags::HOST_ACCESS
            | MemoryFlags::EXECUTE
            | MemoryFlags::NON_PAGED
            | MemoryFlags::GTT_ACCESS
            | MemoryFlags::UNCACHED;
        let ring_address = buffers::allocate(&access, &place, RING_BYTES, shared)?;
        let free_ring = |error: Error| {
            let _ = access.unmap_and_free(ring_address);
            error
        };
        let done_address = buffers::allocate(&access, &place, page, shared).map_err(free_ring)?;
        let free_both = |error: Error| {
            let _ = access.unmap_and_free(done_address);
            free_ring(error)
        };
        let options = QueueOptions {
            node,
            queue_type,
            share: Share { percentage: 100, priority: 0 },
            ring: Ring { address: ring_address, bytes: RING_BYTES },
            sdma_engine,
            metadata_ring_bytes: 0,
            aql_pointers: None,
            error_event: 0,
            error_reason: 0,
        };
        let queue = guard.create_queue(&options).map_err(free_both)?;
        let least = least_submission_dwords(version, engine);
        let at = |address: u64| usize::try_from(address).ok();
        let views = || {
            let words = (RING_BYTES / 4) as usize;
            // SAFETY: memory of this queue, mapped until it is closed (see the module).
            unsafe {
                let pointers = MappedCommandPointers::new(
                    at(queue.read_pointer)?,
                    at(queue.write_pointer)?,
                    at(queue.doorbell)?,
                    queue.doorbell_type,
                )?;
                let ring = Mapped::new(at(ring_address)?, words)?;
                let ring = CommandRing::new(ring, pointers, engine, queue.doorbell_type, least)?;
                Some((ring, Mapped::new(at(done_address)?, 1)?))
            }
        };
        let Some((ring, done)) = views() else {
            let _ = guard.destroy_queue(queue.id);
            return Err(free_both(unknown.with_status(Status::ERROR)));
        };
        let event = |kind| {
            let request =
                EventRequest { kind, node, manual_reset: false, is_set: false, owner: queue.id };
            guard.create_event(&request).ok()
        };
        Ok(CommandQueue {
            gpu_id: place.gpu_id,
            packets,
            ring,
            ring_address,
            done,
            done_address,
            asked: 0,
            event: event(EventType::SIGNAL),
            exception: event(EventType::HW_EXCEPTION),
            fault: event(EventType::MEMORY),
            queue,
        })
    }

    /// The queue.
    #[must_use]
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Ends the queue and takes away all that belongs to it.
    ///
    /// # Errors
    /// Those of [`Guard::destroy_queue`]. What the driver keeps then goes with the context.
    pub fn close<P: Platform>(self, guard: &Guard<'_, P>) -> Result<(), Error> {
        let ended = guard.destroy_queue(self.queue.id);
        for event in [self.event, self.exception, self.fault].into_iter().flatten() {
            let _ = guard.destroy_event(event.id, self.queue.id);
        }
        // Of a queue that the driver keeps the memory stays, too.
        if guard.kernel_queue_id(self.queue.id).is_err() {
            let access = guard.memory();
            let _ = access.unmap_and_free(self.ring_address);
            let _ = access.unmap_and_free(self.done_address);
        }
        ended
    }

    /// Puts a packet into the ring; waits for room where there is none.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a packet longer than the ring; as
    /// [`CommandQueue::finish`].
    pub fn place<P: Platform>(
        &mut self,
        guard: &Guard<'_, P>,
        packet: &[u32],
    ) -> Result<(), Error> {
        let mut waited: Option<Progress> = None;
        loop {
            match self.ring.place_packet(packet) {
                Ok(()) => return Ok(()),
                Err(NotPlaced::TooLarge) => return Err(Error::argument(1)),
                Err(NotPlaced::Full) => {
                    self.submit(guard)?;
                    let progress = match &mut waited {
                        Some(progress) => progress,
                        None => waited.insert(self.progress(guard)),
                    };
                    self.nap(guard, None)?;
                    self.check(guard, progress)?;
                }
            }
        }
    }

    /// Has the engine write its caches back, submits all that was placed, and waits
    /// until it is executed.
    ///
    /// # Errors
    /// UNAVAILABLE when the GPU is reset, or was; ERROR, with the operation
    /// [`Operation::Submit`], and the address when the GPU does not reach it, or the GPU
    /// when the engine makes no progress: what was placed may still be executed later, so
    /// the queue is to be closed before memory is freed that its packets name.
    pub fn finish<P: Platform>(&mut self, guard: &Guard<'_, P>) -> Result<(), Error> {
        let wanted = self.asked.wrapping_add(1);
        self.place_completion(guard, wanted)?;
        self.asked = wanted;
        self.submit(guard)?;
        for _ in 0..LOOKS {
            if self.has_finished(wanted) {
                guard.os().rmb_device();
                return Ok(());
            }
            guard.os().rmb_device();
            core::hint::spin_loop();
        }
        let mut progress = self.progress(guard);
        while !self.has_finished(wanted) {
            self.nap(guard, self.event)?;
            if !self.has_finished(wanted) {
                self.check(guard, &mut progress)?;
            }
        }
        guard.os().rmb_device();
        Ok(())
    }

    /// Places what tells of the end of all before it.
    fn place_completion<P: Platform>(
        &mut self,
        guard: &Guard<'_, P>,
        wanted: u32,
    ) -> Result<(), Error> {
        let never = || Error::library(Status::ERROR, Operation::Submit, Object::Gpu(self.gpu_id));
        let (word, event) = (self.done_address, self.event);
        match self.packets {
            Packets::Compute(generation) => {
                let first = release(generation, Release::Dword(word, wanted), None);
                let first = first.ok_or_else(never)?;
                let second = match event {
                    Some(Event { slot, trigger, .. }) => {
                        release(generation, Release::Dword(slot, trigger), Some(trigger))
                    }
                    None => None,
                };
                self.place(guard, first.as_ref())?;
                second.map_or(Ok(()), |packet| self.place(guard, packet.as_ref()))
            }
            Packets::Copy(version) => {
                let first = sdma::fence(version, word, wanted).ok_or_else(never)?;
                if let Some(packet) = sdma::cache(version, CacheRequest::Release) {
                    self.place(guard, packet.as_ref())?;
                }
                self.place(guard, &first)?;
                if let Some(Event { slot, trigger, .. }) = event {
                    if let Some(packet) = sdma::fence(version, slot, trigger) {
                        self.place(guard, &packet)?;
                        self.place(guard, &sdma::trap(trigger))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Hands over what was placed, unless the GPU was reset: its doorbells may be gone.
    fn submit<P: Platform>(&mut self, guard: &Guard<'_, P>) -> Result<(), Error> {
        self.look_for(guard, None, 0)?;
        guard.check_queue(self.queue.id)?;
        self.ring.submit(guard.os());
        Ok(())
    }

    fn has_finished(&self, wanted: u32) -> bool {
        let done = self.done.as_ref().first().map_or(0, |word| word.load(Ordering::Acquire));
        // Numbers wrap; what is ahead is so by less than half of them.
        done.wrapping_sub(wanted) < 1 << 31
    }

    fn progress<P: Platform>(&self, guard: &Guard<'_, P>) -> Progress {
        let done = self.done.as_ref().first().map_or(0, |word| word.load(Ordering::Relaxed));
        Progress { place: self.ring.read_place(), done, since: guard.os().now(Clock::Monotonic) }
    }

    /// Gives up where the engine has done nothing for too long.
    fn check<P: Platform>(
        &self,
        guard: &Guard<'_, P>,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        let now = self.progress(guard);
        if (now.place, now.done) != (progress.place, progress.done) {
            *progress = now;
            return Ok(());
        }
        let patience = u64::from(guard.context().options().engine_patience_ms);
        if now.since.saturating_sub(progress.since) < patience.saturating_mul(1_000_000) {
            return Ok(());
        }
        // After the reset of a whole GPU the driver runs no queue of this process there.
        let was_reset = guard.gpu_resets(self.gpu_id) != 0;
        let status = if was_reset { Status::UNAVAILABLE } else { Status::ERROR };
        Err(Error::library(status, Operation::Submit, Object::Gpu(self.gpu_id)))
    }

    /// Sleeps for a little, or until the event is set.
    fn nap<P: Platform>(&self, guard: &Guard<'_, P>, event: Option<Event>) -> Result<(), Error> {
        match event {
            Some(_) => self.look_for(guard, event, NAP_MS),
            None => {
                guard.os().sleep(NAP_NS);
                self.look_for(guard, None, 0)
            }
        }
    }

    /// Waits for an event, and for those that tell of a failure.
    fn look_for<P: Platform>(
        &self,
        guard: &Guard<'_, P>,
        event: Option<Event>,
        milliseconds: u32,
    ) -> Result<(), Error> {
        let mut entries = [EventData::default(); 3];
        let mut count = 0_usize;
        let wanted = [self.exception, self.fault, event].into_iter().flatten();
        for (entry, event) in entries.iter_mut().zip(wanted) {
            entry.event_id = event.id;
            count = count.saturating_add(1);
        }
        let entries = entries.get_mut(..count).unwrap_or_default();
        if entries.is_empty()
            || guard.wait_for_events(entries, false, milliseconds)? == Waited::TimedOut
        {
            return Ok(());
        }
        let of = |kind: Option<Event>, entry: &EventData| {
            kind.is_some_and(|event| event.id == entry.event_id)
        };
        for entry in &*entries {
            if of(self.exception, entry) {
                let data = entry.hw_exception();
                if data.gpu_id != 0 {
                    guard.note_gpu_reset(data.gpu_id);
                }
            } else if of(self.fault, entry) {
                let data = entry.memory_exception();
                if data.gpu_id == self.gpu_id {
                    let at = Object::Address(data.va);
                    return Err(Error::library(Status::ERROR, Operation::Submit, at));
                }
            }
        }
        guard.check_queue(self.queue.id)
    }
}
