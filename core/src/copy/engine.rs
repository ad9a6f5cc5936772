//! The copy by the copy engines of GPUs.
//!
//! # Which engine
//! Where one GPU has both ranges mapped it copies in one go: the GPU of the source's
//! video memory if it can, else that of the destination's, else any. Between two GPUs
//! with a link of XGMI it is an engine that the link recommends, another one for another
//! peer where it recommends several, or any for XGMI.
//! Where no GPU has both, as with kernels that map no peer's memory, the copy goes
//! through a staging buffer of system memory in parts: each side is moved by a GPU that
//! has it mapped, or by the CPU. Overlapping ranges go that way, too, part after part in
//! the direction that reads before it overwrites.
//!
//! # Queues
//! A queue is made for each GPU and kind of engine when it is needed first, and serves one
//! copy at a time; it stays until the context closes. One that fails is closed, and
//! the next copy makes another: after a reset, too.
//!
//! # Safety
//! This is one of the few modules of `core` with `unsafe` code: it hands the promises of
//! [`Guard::copy_memory`]'s caller on to `cpu`, and opens command queues, which it uses
//! with guards of their context alone: they lie in the context, which forgets them
//! before it closes.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use super::{cpu, not_reached, out_of_reach};
use crate::context::Machine;
use crate::error::{Error, Object, Operation, Status};
use crate::fallible::try_push;
use crate::lock::Lock;
use crate::memory::{Access, AllocationRequest, Extent, GpuSet, MemoryFlags};
use crate::process::Guard;
use crate::queue::command_queue::CommandQueue;
use crate::queue::packets::sdma::{CacheRequest, SdmaVersion, cache, copies};
use crate::seam::{Os, Platform};
use crate::topology::LinkType;
use crate::uapi::gate::Feature;
use crate::uapi::kfd::QueueType;

/// Bytes of a staging buffer.
const STAGING_BYTES: u64 = 1 << 20;

/// A GPU and a kind of its copy engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EngineKey {
    gpu_id: u32,
    node: u32,
    kind: EngineKind,
}

/// Which of a GPU's copy engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EngineKind {
    /// Any for the host's link.
    Host,
    /// Any for XGMI.
    Xgmi,
    /// The one with this number.
    Number(u32),
}

/// A queue that copies.
#[derive(Debug)]
struct Engine {
    queue: CommandQueue,
    version: SdmaVersion,
    /// System memory, once it was needed.
    staging: Option<u64>,
}

/// A context's copying queues. Lock order: alone.
#[derive(Debug, Default)]
pub(crate) struct Copiers {
    list: Lock<List>,
    /// Changes whenever a queue is free again and somebody waits.
    turn: AtomicU32,
}

#[derive(Debug, Default)]
struct List {
    places: Vec<(EngineKey, Option<Engine>)>,
    waiters: u32,
}

impl Copiers {
    /// Takes an engine for one copy, or makes it; waits while another thread has it.
    fn take<P: Platform>(&self, guard: &Guard<'_, P>, key: EngineKey) -> Result<Engine, Error> {
        let os = guard.os();
        let mut list = self.list.acquire(os);
        loop {
            match list.places.iter_mut().find(|(known, _)| *known == key) {
                None => {
                    try_push(&mut list.places, (key, None))?;
                    drop(list);
                    return Engine::open(guard, key).inspect_err(|_| self.give(os, key, None));
                }
                Some((_, engine)) => {
                    if let Some(engine) = engine.take() {
                        return Ok(engine);
                    }
                }
            }
            let turn = self.turn.load(Ordering::Relaxed);
            list.waiters = list.waiters.saturating_add(1);
            drop(list);
            let _ = os.futex_wait(&self.turn, turn, None);
            list = self.list.acquire(os);
            list.waiters = list.waiters.saturating_sub(1);
        }
    }

    /// Gives an engine back; with none the next copy makes another.
    fn give<O: Os>(&self, os: &O, key: EngineKey, engine: Option<Engine>) {
        let mut list = self.list.acquire(os);
        match engine {
            Some(engine) => {
                if let Some((_, place)) = list.places.iter_mut().find(|(known, _)| *known == key) {
                    *place = Some(engine);
                }
            }
            None => list.places.retain(|(known, _)| *known != key),
        }
        let waiters = list.waiters;
        if waiters != 0 {
            self.turn.fetch_add(1, Ordering::Relaxed);
        }
        drop(list);
        if waiters != 0 {
            os.futex_wake(&self.turn, u32::MAX);
        }
    }

    /// Forgets all engines of a context that closes, which ends their queues and frees
    /// their memory with all others.
    pub(crate) fn forget<O: Os>(&self, os: &O) {
        let places = core::mem::take(&mut self.list.acquire(os).places);
        drop(places);
    }
}

impl Engine {
    fn open<P: Platform>(guard: &Guard<'_, P>, key: EngineKey) -> Result<Engine, Error> {
        let unknown =
            || Error::library(Status::NOT_SUPPORTED, Operation::Copy, Object::Gpu(key.gpu_id));
        let version = guard.machine(|machine| Ok(machine.gpu(key.node)?.gfx_version))?;
        let version = SdmaVersion::of(version).ok_or_else(unknown)?;
        let (queue_type, number) = match key.kind {
            EngineKind::Host => (QueueType::SDMA, 0),
            EngineKind::Xgmi => (QueueType::SDMA_XGMI, 0),
            EngineKind::Number(number) => (QueueType::SDMA_BY_ENG_ID, number),
        };
        // SAFETY: the context has it, and forgets it when it closes.
        let queue = unsafe { CommandQueue::open(guard, key.node, queue_type, number)? };
        Ok(Engine { queue, version, staging: None })
    }

    /// Ends the queue of an engine that failed. The driver waits until the engine has let
    /// go of it, so nothing is written afterwards.
    fn close<P: Platform>(self, guard: &Guard<'_, P>) {
        let id = self.queue.queue().id;
        let _ = self.queue.close(guard);
        let is_gone = guard.kernel_queue_id(id).is_err();
        if let Some(address) = self.staging.filter(|_| is_gone) {
            let _ = guard.memory().unmap_and_free(address);
        }
    }

    /// Copies between addresses of the GPU.
    fn copy<P: Platform>(
        &mut self,
        guard: &Guard<'_, P>,
        to: u64,
        from: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        if let Some(packet) = cache(self.version, CacheRequest::Acquire) {
            self.queue.place(guard, packet.as_ref())?;
        }
        for packet in copies(self.version, from, to, bytes) {
            self.queue.place(guard, &packet)?;
        }
        self.queue.finish(guard)
    }

    /// The staging buffer, mapped on these nodes.
    fn staging<P: Platform>(
        &mut self,
        guard: &Guard<'_, P>,
        node: u32,
        nodes: &[u32],
    ) -> Result<u64, Error> {
        let access = guard.memory();
        let address = match self.staging {
            Some(address) => address,
            None => {
                let flags = MemoryFlags::HOST_ACCESS
                    | MemoryFlags::NON_PAGED
                    | MemoryFlags::GTT_ACCESS
                    | MemoryFlags::UNCACHED;
                let size = STAGING_BYTES;
                access.allocate(&AllocationRequest {
                    node,
                    size,
                    alignment: 0,
                    flags,
                    address: 0,
                })?
            }
        };
        self.staging = Some(address);
        if guard.machine(|machine| Ok(machine.is_discrete()))? {
            access.map(address, STAGING_BYTES, Some(nodes))?;
        }
        Ok(address)
    }
}

/// What an engine's copy needs to know of the machine.
struct Plan {
    /// Who copies in one go, or moves the source.
    from: Option<EngineKey>,
    /// Who moves the destination, where that is another way.
    to: Option<EngineKey>,
    staged: bool,
    to_address: u64,
    from_address: u64,
}

/// Copies from one extent to another of the same size.
///
/// # Errors
/// NOT_SUPPORTED for memory that no engine reaches, or a chip whose packets are not known;
/// UNAVAILABLE when a GPU is reset meanwhile; ERROR when an engine does nothing for too
/// long; what a queue or a staging buffer is refused with.
pub(super) fn copy<P: Platform>(
    guard: &Guard<'_, P>,
    to: &Extent,
    from: &Extent,
) -> Result<(), Error> {
    let by_number = guard.version().supports(Feature::SdmaEngineId);
    let plan = guard.machine(|machine| Ok(Plan::of(machine, to, from, by_number)))?;
    let plan = plan.ok_or_else(|| not_reached(out_of_reach(to, from)))?;
    let access = guard.memory();
    // What the CPU has written is in memory before the engine reads, or writes over it.
    access.os().flush_wc();
    flush(&access, from);
    flush(&access, to);
    let copied = plan.run(guard, to, from);
    // What the CPU has read before is not read again.
    flush(&access, to);
    access.os().rmb_device();
    copied
}

/// Flushes the host data path of a GPU whose memory the CPU sees.
fn flush<P: Platform>(access: &Access<'_, P>, extent: &Extent) {
    let address = extent.cpu.and_then(|address| usize::try_from(address).ok());
    if let (Some(gpu_id), Some(address)) = (extent.video_memory_of, address) {
        // SAFETY: the CPU reaches the extent, by the promise of copy_memory's caller.
        unsafe { cpu::flush(access, gpu_id, address) };
    }
}

impl Plan {
    fn of(machine: &Machine, to: &Extent, from: &Extent, by_number: bool) -> Option<Plan> {
        let shared = !machine.is_discrete();
        let view = |extent: &Extent| match extent.gpu {
            Some(address) => (extent.mapped, address),
            // GPUs that share the process's memory reach all of it.
            None if shared => (machine.gpus_in_use(), extent.address),
            None => (GpuSet::NONE, extent.address),
        };
        let ((to_gpus, to_address), (from_gpus, from_address)) = (view(to), view(from));
        let key = |place: u8, kind: EngineKind| {
            let gpu = machine.gpus().get(usize::from(place))?;
            Some(EngineKey { gpu_id: gpu.gpu_id, node: gpu.node?, kind })
        };
        let best = |set: GpuSet, owners: [Option<u32>; 2]| {
            let is_owner = |place: &u8, owner: u32| {
                machine.gpus().get(usize::from(*place)).is_some_and(|gpu| gpu.gpu_id == owner)
            };
            let of_owner = owners
                .into_iter()
                .flatten()
                .find_map(|owner| set.places().find(|place| is_owner(place, owner)));
            of_owner.or_else(|| set.places().next())
        };
        let both = to_gpus.without(to_gpus.without(from_gpus));
        let owners = [from.video_memory_of, to.video_memory_of];
        let overlap = to_address < from_address.saturating_add(from.size)
            && from_address < to_address.saturating_add(to.size);
        if let Some(place) = best(both, owners) {
            let kind = if overlap { EngineKind::Host } else { kind(machine, owners, by_number) };
            let from = key(place, kind);
            return Some(Plan { from, to: from, staged: overlap, to_address, from_address });
        }
        let from = best(from_gpus, owners).and_then(|place| key(place, EngineKind::Host));
        let to =
            best(to_gpus, [owners[1], owners[0]]).and_then(|place| key(place, EngineKind::Host));
        let one = from.is_some() || to.is_some();
        one.then_some(Plan { from, to, staged: true, to_address, from_address })
    }

    fn run<P: Platform>(
        &self,
        guard: &Guard<'_, P>,
        to: &Extent,
        from: &Extent,
    ) -> Result<(), Error> {
        let copiers = guard.context().copiers();
        if !self.staged {
            let Some(key) = self.from else { return Err(not_reached(from.address)) };
            let (key, mut engine) = match copiers.take(guard, key) {
                Err(error) if key.kind != EngineKind::Host => {
                    // The link's own engines may be taken by others.
                    let key = EngineKey { kind: EngineKind::Host, ..key };
                    (key, copiers.take(guard, key).map_err(|_| error)?)
                }
                taken => (key, taken?),
            };
            let copied = engine.copy(guard, self.to_address, self.from_address, from.size);
            return settle(guard, key, engine, copied);
        }
        self.run_staged(guard, to, from)
    }

    /// Copies by way of a staging buffer.
    fn run_staged<P: Platform>(
        &self,
        guard: &Guard<'_, P>,
        to: &Extent,
        from: &Extent,
    ) -> Result<(), Error> {
        let copiers = guard.context().copiers();
        // In one order for all threads, so that none waits for one that waits for it.
        let order = |key: Option<EngineKey>| key.map(|key| key.gpu_id);
        let (first, second) = match order(self.from) <= order(self.to) {
            true => (self.from, self.to),
            false => (self.to, self.from),
        };
        let second = second.filter(|key| Some(*key) != first);
        let mut taken: [Option<(EngineKey, Engine)>; 2] = [None, None];
        let mut result = Ok(());
        for (place, key) in taken.iter_mut().zip([first, second]) {
            let Some(key) = key else { continue };
            match copiers.take(guard, key) {
                Ok(engine) => *place = Some((key, engine)),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        if result.is_ok() {
            result = self.move_parts(guard, &mut taken, to, from);
        }
        for (key, engine) in taken.into_iter().flatten() {
            let settled = settle(guard, key, engine, result);
            result = result.and(settled);
        }
        result
    }

    fn move_parts<P: Platform>(
        &self,
        guard: &Guard<'_, P>,
        engines: &mut [Option<(EngineKey, Engine)>; 2],
        to: &Extent,
        from: &Extent,
    ) -> Result<(), Error> {
        let mut nodes = [0; 2];
        let mut count = 0_usize;
        for (key, _) in engines.iter().flatten() {
            if let Some(node) = nodes.get_mut(count) {
                *node = key.node;
                count = count.saturating_add(1);
            }
        }
        let nodes = nodes.get(..count).unwrap_or_default();
        let owner = engines.iter_mut().flatten().next();
        let (key, engine) = owner.ok_or_else(|| not_reached(to.address))?;
        let staging = engine.staging(guard, key.node, nodes)?;
        let backwards = self.to_address > self.from_address;
        let mut done = 0;
        while done < from.size {
            let bytes = from.size.saturating_sub(done).min(STAGING_BYTES);
            let offset =
                if backwards { from.size.saturating_sub(done).saturating_sub(bytes) } else { done };
            let buffer = Extent {
                address: staging,
                size: bytes,
                cpu: Some(staging),
                gpu: Some(staging),
                mapped: GpuSet::NONE,
                video_memory_of: None,
                read_only: false,
            };
            let part = |extent: &Extent| Extent { size: bytes, ..*extent };
            match self.from {
                Some(key) => {
                    let from = self.from_address.saturating_add(offset);
                    engine_of(engines, key)?.copy(guard, staging, from, bytes)?;
                }
                None => by_cpu(guard, (&buffer, 0), (&part(from), offset))?,
            }
            match self.to {
                Some(key) => {
                    guard.os().wmb_device();
                    let to = self.to_address.saturating_add(offset);
                    engine_of(engines, key)?.copy(guard, to, staging, bytes)?;
                }
                None => by_cpu(guard, (&part(to), offset), (&buffer, 0))?,
            }
            done = done.saturating_add(bytes);
        }
        Ok(())
    }
}

/// The engine that was taken for a key.
fn engine_of(
    engines: &mut [Option<(EngineKey, Engine)>; 2],
    key: EngineKey,
) -> Result<&mut Engine, Error> {
    let found = engines.iter_mut().flatten().find(|(known, _)| *known == key);
    let missing = || Error::library(Status::ERROR, Operation::Copy, Object::Gpu(key.gpu_id));
    found.map(|(_, engine)| engine).ok_or_else(missing)
}

/// Moves one part by the CPU.
fn by_cpu<P: Platform>(
    guard: &Guard<'_, P>,
    (to, to_offset): (&Extent, u64),
    (from, from_offset): (&Extent, u64),
) -> Result<(), Error> {
    let at = |extent: &Extent, offset: u64| {
        let address = extent.cpu.and_then(|address| address.checked_add(offset));
        address.ok_or_else(|| not_reached(extent.address))
    };
    let (to_cpu, from_cpu) = (at(to, to_offset)?, at(from, from_offset)?);
    // SAFETY: the CPU reaches both, by the promise of copy_memory's caller and the books.
    unsafe { cpu::copy(&guard.memory(), (to, to_cpu), (from, from_cpu)) }
}

/// Gives an engine back after a copy, or ends it after one that failed.
fn settle<P: Platform>(
    guard: &Guard<'_, P>,
    key: EngineKey,
    engine: Engine,
    copied: Result<(), Error>,
) -> Result<(), Error> {
    let copiers = guard.context().copiers();
    if copied.is_ok() {
        copiers.give(guard.os(), key, Some(engine));
    } else {
        engine.close(guard);
        copiers.give(guard.os(), key, None);
    }
    copied
}

/// The kind of engine for a copy between the memories of two GPUs.
fn kind(machine: &Machine, owners: [Option<u32>; 2], by_number: bool) -> EngineKind {
    let [Some(from), Some(to)] = owners else { return EngineKind::Host };
    let nodes = [from, to].map(|gpu_id| machine.snapshot().by_gpu_id(gpu_id));
    let [Some(from), Some(to)] = nodes else { return EngineKind::Host };
    let Some(node) = machine.snapshot().node(from).filter(|_| from != to) else {
        return EngineKind::Host;
    };
    let link = node.links.iter().find(|link| link.node_to == to);
    match link {
        Some(link) if link.link_type == LinkType::XGMI => {
            let mask = link.recommended_sdma_engine_id_mask;
            if mask != 0 && by_number {
                EngineKind::Number(one_of(mask, to))
            } else if node.num_sdma_xgmi_engines != 0 {
                EngineKind::Xgmi
            } else {
                EngineKind::Host
            }
        }
        _ => EngineKind::Host,
    }
}

/// One of the engines of a mask, which is not empty.
fn one_of(mask: u32, peer: u32) -> u32 {
    let place = peer.checked_rem(mask.count_ones()).unwrap_or(0);
    let without_lower = (0..place).fold(mask, |rest, _| rest & rest.wrapping_sub(1));
    without_lower.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::one_of;

    #[test]
    fn peers_are_spread_over_the_engines_of_a_mask() {
        assert_eq!([0, 1, 2, 3, 4].map(|peer| one_of(0b1011_0000, peer)), [4, 5, 7, 4, 5]);
        assert_eq!(one_of(1 << 31, 77), 31);
        assert_eq!(one_of(0, 1), 32);
    }
}
