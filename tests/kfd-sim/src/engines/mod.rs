//! The engines of the GPUs: command processors and copy engines execute the packets
//! of rings.
//!
//! There is no thread. Engines progress in [`Machine::run_engines`], which the seams
//! call where a program waits: at barriers for devices, reads of clocks, sleeps, and
//! while a request waits for events; there those of the calling process alone. They
//! read doorbells, rings and pointers in the memory behind the mappings, so without
//! memory of the host ([`Machine::set_host_memory`]) nothing happens.
//!
//! Packets are decoded as the headers of amdgpu lay them out, each generation's in
//! its own way: `aql`, `pm4`, `sdma`. What an engine reads or writes goes through
//! [`GpuPort`]; an access that fails is a memory fault and ends the object's queues
//! on that GPU (kernel-rules section 2, "Who fires").
//!
//! | state of a queue | what engines do |
//! |---|---|
//! | inactive: no ring, percentage 0 | nothing |
//! | process evicted, memory below user pages changed | nothing, until the pages were fetched again at the next step |
//! | after a fault, a reset, a bad packet | nothing for good |

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use crate::address_space::SpaceId;
use crate::defect::Defect;
use crate::gpu_memory::MemoryId;
use crate::gpu_port::{BadAccess, GpuPort};
use crate::host_memory::HostMemory;
use crate::kfd::{self, ObjectId, Queue, QueueKind};
use crate::machine::{Contents, Machine, State};
use crate::process::Pid;
use crate::violation::Rule;

mod aql;
mod interrupt;
mod pm4;
mod sdma;

/// Packets of one queue that one step executes at most.
const PACKETS_OF_A_STEP: usize = 1024;
/// What is written into a doorbell when its queue is made, and no pointer is.
pub(crate) const NEVER_RUNG: u8 = 0xff;
/// Bytes that a copy moves at once.
const COPY_CHUNK: u64 = 1 << 20;
/// Packets of an AQL ring that a barrier looks at.
const PACKETS_OF_A_BARRIER: u64 = 1024;
const AQL_BYTES: u64 = 64;

/// How far the engine is with a queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// Places read since the start: dwords, of AQL rings packets.
    read: u64,
    /// The place up to which the doorbell told to go.
    limit: u64,
    /// What the doorbell had.
    doorbell: Option<u64>,
    /// Buffers of packets that were called and not finished, outermost first.
    calls: Vec<Call>,
    /// The signal of the AQL packet that called them.
    completes: Option<u64>,
    /// When a copy began that takes its time, in ns.
    began: Option<u64>,
    /// Nothing goes on any more.
    hung: bool,
}

/// A buffer of packets.
#[derive(Debug, Clone, Copy)]
struct Call {
    address: u64,
    /// Dwords in all, and of them done.
    length: u32,
    done: u32,
}

/// What became of a packet.
enum Step {
    /// Executed; so many dwords (AQL: packets) further.
    Done(u64),
    /// The packet waits for something.
    Waits,
    /// An access failed.
    Faults(BadAccess),
    /// No packet that the engine knows; the exception's code, if there is one.
    Bad(String, Option<u32>),
    /// A packet that the hardware knows and the simulator does not.
    Unknown(String),
}

impl From<BadAccess> for Step {
    fn from(bad: BadAccess) -> Step {
        Step::Faults(bad)
    }
}

/// What tells whether an engine has to look at a queue at all.
struct Glance {
    object: ObjectId,
    id: u32,
    evicted: bool,
    /// Where the doorbell is in the host.
    doorbell: Option<usize>,
    wide: bool,
    /// What the doorbell had when it was last looked at.
    known: Option<u64>,
    /// Whether something is left to do.
    pending: bool,
}

impl Glance {
    fn has_work(&self, host: Option<&dyn HostMemory>) -> bool {
        let mut bytes = [0; 8];
        let width = if self.wide { 8 } else { 4 };
        let (Some(host), Some(place)) = (host, self.doorbell) else { return false };
        let changed = host.read(place, &mut bytes[..width]).is_ok()
            && Some(u64::from_le_bytes(bytes)) != self.known
            && bytes[..width] != [NEVER_RUNG; 8][..width];
        self.pending || changed
    }
}

/// Values of GPU generations.
#[derive(Debug, Clone, Copy)]
struct Chip {
    gfx: u32,
    counter_khz: u32,
    /// 0 and 1: doorbells of 32 bits, 2: of 64.
    doorbell_type: u32,
}

/// One queue at work.
struct Engine {
    machine: Machine,
    port: GpuPort,
    object: ObjectId,
    lead: Pid,
    id: u32,
    serial: u64,
    queue: Queue,
    progress: Progress,
    /// The place up to which the last barrier saw what the program wrote.
    seen: Option<u64>,
    chip: Chip,
    slice: MemoryId,
    defects: Defects,
    now: u64,
}

/// What of a GPU is broken.
#[derive(Debug, Clone, Copy)]
struct Defects {
    wrong_data: bool,
    stuck: bool,
    no_interrupts: bool,
    faults: bool,
    no_doorbells: bool,
    slow: bool,
}

impl Machine {
    /// Lets the engines of all GPUs execute what doorbells told them, a bounded number
    /// of packets of each queue. `now` is nanoseconds of a clock that never goes back,
    /// [`Clock::MonotonicRaw`](hsakmt_core::seam::Clock::MonotonicRaw) for time stamps
    /// that agree with GET_CLOCK_COUNTERS. Returns how many packets were executed.
    pub fn run_engines(&self, now: u64) -> u64 {
        self.run_engines_of(None, now)
    }

    /// The same for the queues of one process. Where another thread lets engines run
    /// nothing happens.
    pub(crate) fn run_engines_of(&self, process: Option<Pid>, now: u64) -> u64 {
        if self.queue_count.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let Some(_running) = self.engines.try_lock() else { return 0 };
        let mut executed = 0;
        let host = self.lock().host_memory.clone();
        for glance in self.queues_of(process) {
            let Glance { object, id, .. } = glance;
            if glance.evicted && self.restores(object) {
                continue;
            }
            if !glance.has_work(host.as_deref()) {
                continue;
            }
            if let Some(mut engine) = self.engine(object, id, now) {
                executed += engine.run();
                engine.store();
            }
        }
        self.look_at_torn_doorbells(process);
        executed
    }

    /// Whether any queue exists.
    #[must_use]
    pub fn has_queues(&self) -> bool {
        self.queue_count.load(Ordering::Relaxed) > 0
    }

    /// Whether doorbells are looked at for the barrier that belongs before them:
    /// a doorbell that names a place which the program's newest
    /// [`wmb_device`](hsakmt_core::seam::Os::wmb_device) did not see yet is
    /// [`Rule::DoorbellWithoutBarrier`]. At the start they are. Programs that write
    /// rings themselves have barriers of their own, that nobody here sees.
    pub fn expect_barriers(&self, expected: bool) {
        self.lock().expects_barriers = expected;
    }

    /// The queues of the objects in a process's address space, or all.
    fn queues_of(&self, process: Option<Pid>) -> Vec<Glance> {
        let guard = self.lock();
        let state = &*guard;
        let space = process.map(|pid| state.processes.get(&pid).map(|process| process.space));
        let mine = |of: SpaceId| space.is_none_or(|space| space == Some(of));
        let objects = state.objects.iter().filter(|(_, object)| mine(object.space));
        let mut glances = Vec::new();
        for (object, process) in objects {
            for (id, queue) in &process.queues {
                let slice = process.gpu(queue.gpu_id).ok().and_then(|record| record.doorbells);
                let start = slice.and_then(|slice| state.memory.get(slice)?.host);
                let progress = &queue.progress;
                glances.push(Glance {
                    object: *object,
                    id: *id,
                    evicted: process.evictions != process.restored,
                    doorbell: start.map(|start| start + queue.doorbell as usize),
                    wide: queue.doorbell_bytes == 8,
                    known: progress.doorbell,
                    pending: progress.read < progress.limit || !progress.calls.is_empty(),
                });
            }
        }
        glances
    }

    /// Does the restore work if the process was evicted: its queues run at the next
    /// step.
    fn restores(&self, object: ObjectId) -> bool {
        let mut state = self.lock();
        let Some(process) = state.objects.get_mut(&object) else { return true };
        let evicted = process.evictions != process.restored;
        process.restored = process.evictions;
        if evicted {
            kfd::restore(&mut state, object);
        }
        evicted
    }

    /// A queue that may run.
    fn engine(&self, object: ObjectId, id: u32, now: u64) -> Option<Engine> {
        let state = self.lock();
        let process = state.objects.get(&object)?;
        let queue = process.queues.get(&id)?.clone();
        let record = process.gpu(queue.gpu_id).ok()?;
        let (slice, stopped) = (record.doorbells?, process.stopped || record.evicted);
        if !queue.is_active() || stopped || queue.progress.hung {
            return None;
        }
        let (lead, gpu_id) = (process.lead, queue.gpu_id);
        let gpu = state.topology.gpu(gpu_id)?;
        let chip = Chip {
            gfx: gpu.properties.gfx_target_version,
            counter_khz: gpu.render.counter_khz,
            doorbell_type: gpu.doorbell_type(),
        };
        let has = |defect| state.gpu_has(gpu_id, defect);
        let first = matches!(queue.kind, QueueKind::Sdma(slot) if slot.engine == 0);
        let defects = Defects {
            wrong_data: has(Defect::WrongData),
            stuck: has(Defect::StuckEngine) && first,
            no_interrupts: has(Defect::LostInterrupt),
            faults: has(Defect::MemoryFault),
            no_doorbells: has(Defect::DoorbellDead),
            slow: has(Defect::SlowCopy),
        };
        let seen = state.expects_barriers.then_some(queue.seen);
        drop(state);
        Some(Engine {
            machine: self.clone(),
            port: GpuPort::new(self.clone(), object, gpu_id),
            object,
            lead,
            id,
            serial: queue.serial,
            progress: queue.progress.clone(),
            queue,
            seen,
            chip,
            slice,
            defects,
            now,
        })
    }

    /// A barrier for devices: what was written before it will be seen after it.
    pub(crate) fn note_barrier(&self, process: Pid, now: u64) {
        if self.queue_count.load(Ordering::Relaxed) == 0 || !self.lock().expects_barriers {
            return;
        }
        for Glance { object, id, .. } in self.queues_of(Some(process)) {
            let Some(engine) = self.engine(object, id, now) else { continue };
            let Some(seen) = engine.visible() else { continue };
            let mut state = self.lock();
            if let Some(queue) = queue_mut(&mut state, object, id, engine.serial) {
                queue.seen = queue.seen.max(seen);
            }
        }
    }

    /// Doorbells of before a reset are torn out of the program since 7.2; here their
    /// memory stays, and what is written there is noted.
    fn look_at_torn_doorbells(&self, process: Option<Pid>) {
        let state = self.lock();
        let space = process.map(|pid| state.processes.get(&pid).map(|process| process.space));
        let objects = state
            .objects
            .iter()
            .filter(|(_, object)| space.is_none_or(|space| space == Some(object.space)));
        let torn: Vec<(ObjectId, u32, MemoryId)> = objects
            .flat_map(|(id, object)| {
                object.records.iter().flat_map(|record| {
                    record.torn.keys().map(|memory| (*id, record.gpu_id, *memory))
                })
            })
            .collect();
        drop(state);
        for (object, gpu_id, memory) in torn {
            let Ok(Some((host, start))) = self.contents(memory) else { continue };
            let length = self.lock().memory.get(memory).map_or(0, |memory| memory.size as usize);
            let mut now = alloc::vec![0; length];
            if host.read(start, &mut now).is_err() {
                continue;
            }
            let mut guard = self.lock();
            let state = &mut *guard;
            let Some(found) = state.objects.get_mut(&object) else { continue };
            let lead = found.lead;
            let Some(record) = found.record_mut(gpu_id) else { continue };
            let before = record.torn.insert(memory, Some(now.clone())).flatten();
            if before.is_some_and(|before| before != now) {
                let detail = format!("GPU {gpu_id:#x}");
                state.violation(lead, Rule::DoorbellAfterReset, detail);
            }
        }
    }

    /// The counters of packets that [`Defect::ResetMidway`] looks at.
    fn count_packets(&self, gpu_id: u32, packets: u64) {
        let mut state = self.lock();
        let count = state.packets.entry(gpu_id).or_insert(0);
        let before = *count;
        *count += packets;
        let (from, to) = (before, *count);
        let limit = Defect::PACKETS_BEFORE_RESET;
        if from < limit && to >= limit && state.gpu_has(gpu_id, Defect::ResetMidway) {
            kfd::reset_gpu(&mut state, gpu_id, false);
        }
    }
}

fn queue_mut(state: &mut State, object: ObjectId, id: u32, serial: u64) -> Option<&mut Queue> {
    let queue = state.objects.get_mut(&object)?.queues.get_mut(&id)?;
    (queue.serial == serial).then_some(queue)
}

impl Engine {
    /// Executes what the doorbell told; how many packets.
    fn run(&mut self) -> u64 {
        if self.defects.no_doorbells || self.defects.stuck {
            return 0;
        }
        if let Err(detail) = self.look_at_doorbell() {
            self.violation(Rule::PointerOutOfRing, detail);
            self.progress.hung = true;
            return 0;
        }
        let mut executed = 0;
        for _ in 0..PACKETS_OF_A_STEP {
            if self.progress.calls.is_empty() && self.progress.read >= self.progress.limit {
                break;
            }
            let step = match self.queue.kind {
                QueueKind::Sdma(_) => sdma::next(self),
                QueueKind::Aql if self.progress.calls.is_empty() => aql::next(self),
                QueueKind::Pm4 | QueueKind::Aql => pm4::next(self),
            };
            match step {
                Step::Done(places) => {
                    self.advance(places);
                    self.progress.began = None;
                    executed += 1;
                    if let Err(bad) = self.leave_buffers() {
                        self.fault(bad);
                        break;
                    }
                }
                Step::Waits => break,
                Step::Faults(bad) => {
                    self.fault(bad);
                    break;
                }
                Step::Bad(detail, code) => {
                    self.violation(Rule::BadPacket, detail);
                    self.progress.hung = true;
                    if let Some(code) = code {
                        self.raise(code);
                    }
                    break;
                }
                Step::Unknown(detail) => {
                    self.violation(Rule::NotSimulated, detail);
                    self.progress.hung = true;
                    break;
                }
            }
            self.machine.count_packets(self.queue.gpu_id, 1);
            if self.is_stopped() {
                break;
            }
        }
        self.tell_read_pointer();
        executed
    }

    /// Goes on in the buffer that is executed, or in the ring.
    fn advance(&mut self, places: u64) {
        match self.progress.calls.last_mut() {
            Some(call) => call.done = call.done.saturating_add(places as u32),
            None => self.progress.read += places,
        }
    }

    /// Leaves the buffers that are done.
    fn leave_buffers(&mut self) -> Result<(), BadAccess> {
        while self.progress.calls.last().is_some_and(|call| call.done >= call.length) {
            self.progress.calls.pop();
        }
        if !self.progress.calls.is_empty() {
            return Ok(());
        }
        match self.progress.completes.take() {
            Some(signal) => aql::complete(self, signal),
            None => Ok(()),
        }
    }

    /// Whether a fault or a reset stopped the queue meanwhile, or it is gone.
    fn is_stopped(&self) -> bool {
        let mut state = self.machine.lock();
        let evicted = state.objects.get(&self.object).is_none_or(|object| {
            object.stopped || object.gpu(self.queue.gpu_id).is_ok_and(|record| record.evicted)
        });
        evicted || queue_mut(&mut state, self.object, self.id, self.serial).is_none()
    }

    /// Keeps how far it came.
    fn store(self) {
        let mut state = self.machine.lock();
        if let Some(queue) = queue_mut(&mut state, self.object, self.id, self.serial) {
            queue.progress = self.progress;
        }
    }

    fn violation(&self, rule: Rule, detail: String) {
        let detail = format!("queue {} of GPU {:#x}: {detail}", self.id, self.queue.gpu_id);
        self.machine.lock().violation(self.lead, rule, detail);
    }

    /// An access failed: a fault of the queue's own memory counts as well.
    fn fault(&mut self, bad: BadAccess) {
        self.progress.hung = true;
        let there =
            queue_mut(&mut self.machine.lock(), self.object, self.id, self.serial).is_some();
        if there {
            self.port.report(bad);
        }
    }

    /// Places of the ring.
    fn places(&self) -> u64 {
        let bytes = u64::from(self.queue.ring_size);
        match self.queue.kind {
            // Where old chips map the memory twice the size is that of both.
            QueueKind::Aql if self.chip.gfx < 90_000 => bytes / 2 / AQL_BYTES,
            QueueKind::Aql => bytes / AQL_BYTES,
            _ => bytes / 4,
        }
    }

    fn is_wide(&self) -> bool {
        self.chip.doorbell_type >= 2
    }

    /// Where the doorbell is.
    fn doorbell(&self) -> Option<Contents> {
        let (host, start) = self.machine.contents(self.slice).ok()??;
        Some((host, start + self.queue.doorbell as usize))
    }

    fn look_at_doorbell(&mut self) -> Result<(), String> {
        let Some((host, place)) = self.doorbell() else { return Ok(()) };
        let mut bytes = [0; 8];
        let width = if self.is_wide() { 8 } else { 4 };
        if host.read(place, &mut bytes[..width]).is_err() {
            return Ok(());
        }
        if bytes[..width].iter().all(|byte| *byte == NEVER_RUNG) {
            return Ok(());
        }
        let value = u64::from_le_bytes(bytes);
        if self.progress.doorbell == Some(value) {
            return Ok(());
        }
        self.progress.doorbell = Some(value);
        let limit = self.place(value)?;
        let limit = match self.queue.kind {
            // Producers ring in any order.
            QueueKind::Aql => limit.max(self.progress.limit),
            _ => limit,
        };
        if limit < self.progress.read || limit - self.progress.read > self.places() {
            let (read, places) = (self.progress.read, self.places());
            return Err(format!(
                "doorbell {value:#x} is place {limit}, {read} are read of a ring of {places}"
            ));
        }
        if self.seen.is_some_and(|seen| limit > seen) {
            self.violation(Rule::DoorbellWithoutBarrier, format!("doorbell {value:#x}"));
        }
        self.progress.limit = limit;
        Ok(())
    }

    /// The place that a write pointer or a doorbell means: kernel-rules and the
    /// driver's `set_wptr` of each generation.
    fn place(&self, value: u64) -> Result<u64, String> {
        let places = self.places();
        // What counts within the ring is further than what is read.
        let wrapped = |place: u64| {
            let read = self.progress.read;
            if place >= places {
                return Err(format!("pointer {value:#x} in a ring of {places}"));
            }
            Ok(read + (place + places - read % places) % places)
        };
        match (self.queue.kind, self.chip.doorbell_type) {
            (QueueKind::Pm4, 2) => Ok(value),
            (QueueKind::Pm4, _) => wrapped(value),
            (QueueKind::Sdma(_), _) if value % 4 != 0 => {
                Err(format!("pointer {value:#x} is not at a dword"))
            }
            (QueueKind::Sdma(_), 2) => Ok(value / 4),
            (QueueKind::Sdma(_), _) => wrapped(value / 4),
            (QueueKind::Aql, 2) => Ok(value.wrapping_add(1)),
            (QueueKind::Aql, 1) => {
                let read = self.progress.read;
                Ok(read + u64::from((value as u32).wrapping_sub(read as u32)))
            }
            (QueueKind::Aql, _) => {
                let place = value * 4 / AQL_BYTES % places;
                Ok(self.progress.read + (place + places - self.progress.read % places) % places)
            }
        }
    }

    /// The place up to which packets are in memory now, as the program tells it
    /// there.
    fn visible(&self) -> Option<u64> {
        if self.queue.kind != QueueKind::Aql {
            let mut bytes = [0; 8];
            let width = if self.is_wide() { 8 } else { 4 };
            self.port.read(self.queue.write_pointer, &mut bytes[..width]).ok()?;
            return self.place(u64::from_le_bytes(bytes)).ok();
        }
        let places = self.places();
        let count = places.min(PACKETS_OF_A_BARRIER);
        let first = self.progress.read;
        let mut ring = alloc::vec![0; (count * AQL_BYTES) as usize];
        let start = first % places;
        let before_end = (places - start).min(count) * AQL_BYTES;
        let (head, tail) = ring.split_at_mut(before_end as usize);
        self.port.read(self.queue.ring + start * AQL_BYTES, head).ok()?;
        self.port.read(self.queue.ring, tail).ok()?;
        let packets = ring.chunks_exact(AQL_BYTES as usize);
        let last = packets.enumerate().rfind(|(_, packet)| packet[0] != aql::INVALID);
        Some(last.map_or(first, |(at, _)| first + at as u64 + 1))
    }

    /// Dwords of the ring or of the buffer that is executed, from where it is on; less
    /// than wanted if there are no more.
    fn fetch(&self, from: u64, count: u64) -> Result<Vec<u32>, BadAccess> {
        let mut words: Vec<u8> = Vec::new();
        if let Some(call) = self.progress.calls.last() {
            let left = u64::from(call.length.saturating_sub(call.done)).saturating_sub(from);
            words.resize((count.min(left) * 4) as usize, 0);
            self.port.read(call.address + (u64::from(call.done) + from) * 4, &mut words)?;
        } else {
            let (places, at) = (self.places(), self.progress.read + from);
            let count = count.min(self.progress.limit.saturating_sub(at));
            words.resize((count * 4) as usize, 0);
            let start = at % places;
            let before_end = (places - start).min(count) * 4;
            let (head, tail) = words.split_at_mut(before_end as usize);
            self.port.read(self.queue.ring + start * 4, head)?;
            self.port.read(self.queue.ring, tail)?;
        }
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
        Ok(words.chunks_exact(4).map(word).collect())
    }

    /// Writes the read pointer where the program looks for it.
    fn tell_read_pointer(&mut self) {
        if !self.progress.calls.is_empty() {
            return;
        }
        let (read, places) = (self.progress.read, self.places());
        let told = match self.queue.kind {
            QueueKind::Aql => read.to_le_bytes().to_vec(),
            QueueKind::Pm4 => ((read % places) as u32).to_le_bytes().to_vec(),
            QueueKind::Sdma(_) if self.is_wide() => (read * 4).to_le_bytes().to_vec(),
            QueueKind::Sdma(_) => ((read % places * 4) as u32).to_le_bytes().to_vec(),
        };
        let mut now = alloc::vec![0; told.len()];
        let known = self.port.read(self.queue.read_pointer, &mut now);
        let wrote = match known {
            Ok(()) if now == told => Ok(()),
            Ok(()) => self.port.write(self.queue.read_pointer, &told),
            Err(bad) => Err(bad),
        };
        if let Err(bad) = wrote {
            self.fault(bad);
        }
    }

    /// The GPU's counter.
    fn clock(&self) -> u64 {
        (u128::from(self.now) * u128::from(self.chip.counter_khz) / 1_000_000) as u64
    }

    fn read_u32(&self, address: u64) -> Result<u32, BadAccess> {
        let mut bytes = [0; 4];
        self.port.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn read_u64(&self, address: u64) -> Result<u64, BadAccess> {
        let mut bytes = [0; 8];
        self.port.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn write_words(&self, address: u64, words: &[u32]) -> Result<(), BadAccess> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.port.write(address, &bytes)
    }

    fn write_u64(&self, address: u64, value: u64) -> Result<(), BadAccess> {
        self.port.write(address, &value.to_le_bytes())
    }

    /// Whether something of so many bytes takes more time than it had.
    fn takes_time(&mut self, bytes: u64) -> bool {
        if !self.defects.slow {
            return false;
        }
        let began = *self.progress.began.get_or_insert(self.now);
        let needs = u128::from(bytes) * 1_000_000_000 / u128::from(Defect::SLOW_BYTES_PER_SECOND);
        u128::from(self.now.saturating_sub(began)) < needs
    }

    /// Copies as the engine does.
    fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), BadAccess> {
        if self.defects.faults {
            return Err(BadAccess { address: to, fault: kfd::Fault::NotMapped });
        }
        let mut done = 0;
        let mut buffer = alloc::vec![0; bytes.min(COPY_CHUNK) as usize];
        while done < bytes {
            let length = (bytes - done).min(COPY_CHUNK);
            let chunk = &mut buffer[..length as usize];
            self.port.read(from.wrapping_add(done), chunk)?;
            done += length;
            if let Some(last) = chunk.last_mut().filter(|_| done == bytes) {
                *last ^= u8::from(self.defects.wrong_data);
            }
            self.port.write(to.wrapping_add(done - length), chunk)?;
        }
        Ok(())
    }

    /// Fills with a value of 1, 2 or 4 bytes.
    fn fill(&self, to: u64, value: u32, unit: usize, bytes: u64) -> Result<(), BadAccess> {
        let pattern = value.to_le_bytes();
        let length = bytes.min(COPY_CHUNK) as usize;
        let chunk: Vec<u8> = pattern[..unit].iter().copied().cycle().take(length).collect();
        let mut done = 0;
        while done < bytes {
            let length = (bytes - done).min(COPY_CHUNK);
            self.port.write(to.wrapping_add(done), &chunk[..length as usize])?;
            done += length;
        }
        Ok(())
    }

    /// Raises a queue exception: kernel-rules section 2, "Queue exception".
    fn raise(&self, code: u32) {
        interrupt::queue_exception(self, code);
    }
}

/// Doorbells that are no longer anybody's, with what was in them.
pub(crate) type Torn = BTreeMap<MemoryId, Option<Vec<u8>>>;

/// Compares as POLL_REGMEM and WAIT_REG_MEM do: always, <, <=, ==, !=, >=, >.
fn compares(function: u32, value: u32, reference: u32) -> bool {
    match function {
        0 => true,
        1 => value < reference,
        2 => value <= reference,
        3 => value == reference,
        4 => value != reference,
        5 => value >= reference,
        _ => value > reference,
    }
}
