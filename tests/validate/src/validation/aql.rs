//! An AQL queue of a GPU with memory of its own for ring, pointers, signals and what its
//! packets write.
//!
//! All of it is system memory that belongs to that GPU, each part a mapping of its own:
//! from gfx11 on the driver takes no write pointer in other memory, and from Linux 6.12
//! on none in a larger mapping. Before gfx9 the GPU sees the ring twice, and the driver
//! is told both.
//!
//! # Safety
//! The memory is allocated here, mapped as long as the value lives, and freed in
//! [`AqlQueue::close`], which takes the value away; whoever opens a queue uses it with
//! guards of the one context there is. This process accesses it by the atomics of the
//! views alone.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hsakmt_core::error::{Error, Object, Operation, Status};
use hsakmt_core::event::Event;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::Guard;
use hsakmt_core::queue::aql_ring::{AqlPacket, AqlRing, AqlSlot};
use hsakmt_core::queue::mapped::{Mapped, MappedAqlPointers};
use hsakmt_core::queue::plan::{Ring, Share};
use hsakmt_core::queue::pointers::DoorbellType;
use hsakmt_core::queue::{AqlPointerAddresses, Queue, QueueOptions};
use hsakmt_core::seam::Platform;
use hsakmt_core::topology::GfxVersion;
use hsakmt_core::uapi::kfd::QueueType;

/// Bytes of the ring.
const RING: u64 = 64 << 10;
const PACKET: u64 = 64;
/// Bytes of the pages of pointers, signals and words.
const PAGE: u64 = 4096;
/// Bytes of an `amd_signal_t`.
const SIGNAL: u64 = 64;
/// Dwords of the page of words from which the GPU reads packets.
pub const BUFFER_DWORDS: usize = 512;

/// Where things stand in the page of pointers: cache lines of their own.
const READ: u64 = 0;
const WRITE: u64 = 64;
/// Before gfx9, whose hardware has a write pointer of its own.
const TAKEN: u64 = 128;

/// Where things stand in an `amd_signal_t`, in qwords (`amd_hsa_signal.h`).
const KIND: usize = 0;
const VALUE: usize = 1;
const MAILBOX: usize = 2;
const EVENT: usize = 3;
const QWORDS: usize = 8;
/// AMD_SIGNAL_KIND_USER.
const USER_KIND: u64 = 1;

/// An open queue.
#[derive(Debug)]
pub struct AqlQueue {
    queue: Queue,
    ring: AqlRing<Mapped<AqlSlot>, MappedAqlPointers>,
    signals: Mapped<AtomicU64>,
    words: Mapped<AtomicU32>,
    memory: [u64; 4],
}

/// Memory of the GPU's own, where the CPU sees it too.
fn make<P: Platform>(
    guard: &Guard<'_, P>,
    node: u32,
    size: u64,
    twice: bool,
    shared: bool,
) -> Result<u64, Error> {
    let mut flags = MemoryFlags::HOST_ACCESS | MemoryFlags::EXECUTE;
    if !shared {
        flags |= MemoryFlags::NON_PAGED | MemoryFlags::GTT_ACCESS | MemoryFlags::UNCACHED;
    }
    if twice {
        flags |= MemoryFlags::AQL_QUEUE;
    }
    let request = AllocationRequest { node, size, alignment: 0, flags, address: 0 };
    let address = guard.allocate_memory(&request)?;
    if !shared {
        if let Err(error) = guard.map_memory_to_nodes(address, size, &[node]) {
            let _ = guard.free_memory(address, size);
            return Err(error);
        }
    }
    Ok(address)
}

fn free<P: Platform>(guard: &Guard<'_, P>, memory: &[u64]) -> Result<(), Error> {
    let free = |address: &u64| {
        let _ = guard.unmap_memory(*address);
        guard.free_memory(*address, 0)
    };
    memory.iter().filter(|address| **address != 0).map(free).fold(Ok(()), Result::and)
}

impl AqlQueue {
    /// Opens a queue on a GPU node; `shared` where the GPU sees the memory of the process.
    ///
    /// # Errors
    /// Those of [`Guard::create_queue`] and of memory. Nothing is left.
    pub fn open<P: Platform>(
        guard: &Guard<'_, P>,
        node: u32,
        version: GfxVersion,
        shared: bool,
    ) -> Result<AqlQueue, Error> {
        let twice = version.major < 9;
        let mut memory = [0; 4];
        let opened = Self::open_in(guard, node, twice, shared, &mut memory);
        if opened.is_err() {
            let _ = free(guard, &memory);
        }
        opened
    }

    fn open_in<P: Platform>(
        guard: &Guard<'_, P>,
        node: u32,
        twice: bool,
        shared: bool,
        memory: &mut [u64; 4],
    ) -> Result<AqlQueue, Error> {
        for (address, (size, twice)) in
            memory.iter_mut().zip([(RING, twice), (PAGE, false), (PAGE, false), (PAGE, false)])
        {
            *address = make(guard, node, size, twice, shared)?;
        }
        let [ring, pointers, signals, words] = *memory;
        let at = |address: u64| usize::try_from(address).unwrap_or(0);
        // SAFETY: memory of this queue, mapped until it is closed (the module's text).
        let slots = unsafe { Mapped::<AqlSlot>::new(at(ring), at(RING / PACKET)) };
        let unseen = || Error::library(Status::ERROR, Operation::LookUp, Object::Address(ring));
        let slots = slots.ok_or_else(unseen)?;
        slots.as_ref().iter().for_each(AqlSlot::invalidate);
        let options = QueueOptions {
            node,
            queue_type: QueueType::COMPUTE_AQL,
            share: Share { percentage: 100, priority: 0 },
            ring: Ring { address: ring, bytes: if twice { 2 * RING } else { RING } },
            sdma_engine: 0,
            metadata_ring_bytes: 0,
            aql_pointers: Some(AqlPointerAddresses {
                read: pointers + READ,
                write: pointers + WRITE,
            }),
            error_event: 0,
            error_reason: 0,
        };
        let queue = guard.create_queue(&options)?;
        let hardware = queue.write_pointer;
        let taken = match queue.doorbell_type {
            DoorbellType::V2_0 => hardware,
            DoorbellType::Pre1_0 | DoorbellType::V1_0 => pointers + TAKEN,
        };
        // SAFETY: memory of this queue and its doorbell, mapped until it is closed.
        let views = unsafe {
            let pointers = MappedAqlPointers::new(
                at(taken),
                at(queue.read_pointer),
                at(hardware),
                at(queue.doorbell),
                queue.doorbell_type,
            );
            pointers
                .and_then(|pointers| AqlRing::new(slots, pointers, queue.doorbell_type))
                .zip(Mapped::<AtomicU64>::new(at(signals), at(PAGE / 8)))
                .zip(Mapped::<AtomicU32>::new(at(words), at(PAGE / 4)))
        };
        let Some(((ring, signals), words)) = views else {
            let _ = guard.destroy_queue(queue.id);
            return Err(unseen());
        };
        Ok(AqlQueue { queue, ring, signals, words, memory: *memory })
    }

    /// Prepares a signal with a value; the GPU may set the event with it.
    pub fn prepare_signal(&self, number: usize, value: u64, event: Option<Event>) {
        let mut qwords = [0; QWORDS];
        (qwords[KIND], qwords[VALUE]) = (USER_KIND, value);
        if let Some(event) = event {
            (qwords[MAILBOX], qwords[EVENT]) = (event.slot, u64::from(event.trigger));
        }
        let place = self.signals.as_ref().iter().skip(number * QWORDS);
        for (to, qword) in place.zip(qwords) {
            to.store(qword, Ordering::Release);
        }
    }

    /// The address of a signal.
    #[must_use]
    pub const fn signal(&self, number: usize) -> u64 {
        let [_, _, signals, _] = self.memory;
        signals + number as u64 * SIGNAL
    }

    /// The value of a signal.
    #[must_use]
    pub fn value(&self, number: usize) -> u64 {
        let qword = self.signals.as_ref().get(number * QWORDS + VALUE);
        qword.map_or(0, |qword| qword.load(Ordering::Acquire))
    }

    /// Stores the value of a signal, which packets may wait for.
    pub fn set_value(&self, number: usize, value: u64) {
        if let Some(qword) = self.signals.as_ref().get(number * QWORDS + VALUE) {
            qword.store(value, Ordering::Release);
        }
    }

    /// The address of a word, which is of 4 bytes; the first [`BUFFER_DWORDS`] are for
    /// packets.
    #[must_use]
    pub const fn word_address(&self, number: usize) -> u64 {
        let [_, _, _, words] = self.memory;
        words + number as u64 * 4
    }

    /// Stores words from this one on.
    pub fn store_words(&self, number: usize, words: &[u32]) {
        for (to, &word) in self.words.as_ref().iter().skip(number).zip(words) {
            to.store(word, Ordering::Release);
        }
    }

    /// A word.
    #[must_use]
    pub fn word(&self, number: usize) -> u32 {
        self.words.as_ref().get(number).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Submits packets at once.
    ///
    /// # Errors
    /// UNAVAILABLE when the GPU was reset; ERROR when there is no room.
    pub fn submit<P: Platform>(
        &self,
        guard: &Guard<'_, P>,
        os: &P::Os,
        packets: &[AqlPacket],
    ) -> Result<(), Error> {
        // After a reset the doorbell may be gone.
        guard.check_queue(self.queue.id)?;
        let full = |_| Error::library(Status::ERROR, Operation::Submit, Object::Nothing);
        self.ring.submit_all(os, packets).map(drop).map_err(full)
    }

    /// Whether the GPU has given every place of the ring back.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.ring.is_drained()
    }

    /// Fails once the GPU was reset.
    ///
    /// # Errors
    /// UNAVAILABLE.
    pub fn check<P: Platform>(&self, guard: &Guard<'_, P>) -> Result<(), Error> {
        guard.check_queue(self.queue.id)
    }

    /// Ends the queue and frees its memory.
    ///
    /// # Errors
    /// Those of [`Guard::destroy_queue`], of which the memory is kept, and of freeing.
    pub fn close<P: Platform>(self, guard: &Guard<'_, P>) -> Result<(), Error> {
        guard.destroy_queue(self.queue.id)?;
        free(guard, &self.memory)
    }
}
