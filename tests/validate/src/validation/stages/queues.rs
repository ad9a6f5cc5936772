//! Queues: on each GPU the compute engine and every copy engine fill memory, which is
//! checked, and interrupt with an event, which is waited for. An AQL queue executes
//! barriers that wait for one another and for the program, and PM4 packets in a buffer.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hsakmt_core::error::{Error, Object, Operation, Status};
use hsakmt_core::event::{Event, EventRequest, Waited};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::Guard;
use hsakmt_core::queue::command_queue::CommandQueue;
use hsakmt_core::queue::packets::aql::{self, Header, Wait};
use hsakmt_core::queue::packets::pm4::{self, Pm4Generation, Release};
use hsakmt_core::queue::packets::sdma::{self, SdmaVersion};
use hsakmt_core::seam::{Os, Platform};
use hsakmt_core::topology::GfxVersion;
use hsakmt_core::uapi::kfd::{EventData, EventType, QueueType};

use crate::validation::ENGINE_PATIENCE;
use crate::validation::aql::{AqlQueue, BUFFER_DWORDS};
use crate::validation::engines;
use crate::validation::findings::{Count, Findings};
use crate::validation::pattern::Window;
use crate::validation::subject::{BusErrors, Subject};

/// Bytes that an engine fills.
const SIZE: u64 = 4096;
/// Milliseconds for an interrupt after the work is done.
const INTERRUPT: u32 = 500;
/// The same where the GPU lost some already.
const SHORT_INTERRUPT: u32 = 20;
/// Nanoseconds between two looks at a signal.
const NAP: u64 = 50_000;
/// What the library knows our events by.
const OWNER: u64 = 2;

/// Why there is nothing to check on some old machines.
pub(super) const NO_QUEUES: &str =
    "nothing to check: the driver takes no queues of a GPU within the CPU's node";

/// How many engines of a GPU may stand still, be reset, or lose interrupts, before the others are
/// given no time: each costs a long wait, and two are enough to see that it is the GPU.
const STANDSTILLS: u32 = 2;

/// What went wrong on one GPU so far.
#[derive(Default)]
struct Tally {
    stood_still: u32,
    lost_interrupts: u32,
    untried: u64,
}

impl Tally {
    fn count(&mut self, error: &Error) {
        let stood_still = matches!(error.status, Status::ERROR | Status::UNAVAILABLE)
            && error.operation == Operation::Submit
            && matches!(error.object, Object::Gpu(_));
        self.stood_still += u32::from(stood_still);
    }

    fn is_dead(&self) -> bool {
        self.stood_still >= STANDSTILLS
    }
}

/// Checks every engine.
pub fn run<P: Platform>(subject: &mut Subject<'_, P>, findings: &mut Findings) {
    if subject.gpus.is_empty() {
        findings.skip("nothing to check: no GPU");
        return;
    }
    let mut checked = 0;
    for gpu in subject.gpus.clone() {
        let Some(node) = subject.nodes.get(gpu.node as usize) else { continue };
        let (version, copies) = (node.gfx_version, node.num_sdma_engines);
        let xgmi = node.num_sdma_xgmi_engines;
        let kinds = [
            (QueueType::COMPUTE, "PM4 queue", 1),
            (QueueType::SDMA, "copy engine", copies),
            (QueueType::SDMA_XGMI, "XGMI copy engine", xgmi),
        ];
        let Some(guard) = findings.expect(&gpu, subject.enter()) else { return };
        let mut tally = Tally::default();
        for (queue_type, what, count) in kinds {
            // All of a kind are open at once, so that each has an engine of its own: the
            // driver deals them out in turn.
            let mut open: Vec<(String, CommandQueue)> = Vec::new();
            for number in 0..count {
                let part = format!("{gpu}, {what} {number}");
                if !subject.has_time(findings, &part) {
                    break;
                }
                let opened = engines::open(&guard, gpu.node, queue_type);
                if opened.as_ref().is_err_and(|error| subject.takes_no_queues(error)) {
                    findings.skip(NO_QUEUES);
                    return;
                }
                if let Some(queue) = findings.expect(&part, opened) {
                    open.push((part, queue));
                }
            }
            for (part, queue) in &mut open {
                if tally.is_dead() {
                    tally.untried += 1;
                    continue;
                }
                if !subject.has_time(findings, part) {
                    break;
                }
                subject.show_progress("queues", part);
                let errors = BusErrors::watch();
                if let Err(error) =
                    fill(&guard, gpu.node, version, queue, part, &mut tally, findings)
                {
                    tally.count(&error);
                    findings.refused(part, &error);
                }
                errors.check(part, findings);
                checked += 1;
            }
            for (part, queue) in open {
                findings.expect(&part, queue.close(&guard));
            }
        }
        let part = format!("{gpu}, AQL queue 0");
        if tally.is_dead() {
            tally.untried += 1;
        } else if subject.has_time(findings, &part) {
            subject.show_progress("queues", &part);
            let errors = BusErrors::watch();
            if let Err(error) = barriers(subject, &guard, gpu.node, version, &part, findings) {
                findings.refused(&part, &error);
            }
            errors.check(&part, findings);
            checked += 1;
        }
        if tally.untried != 0 {
            let untried = Count(tally.untried, "queue");
            findings.note(format!(
                "{gpu}: {untried} not tried: two of its engines stood still or were reset"
            ));
        }
    }
    let gpus = Count(subject.gpus.len() as u64, "GPU");
    findings.summary = format!("{} on {gpus}", Count(checked, "queue"));
}

/// Signals of the AQL queue: at once, what the program sets, after that, last, and that of
/// packets in a buffer.
const FIRST: usize = 0;
const GATE: usize = 1;
const AFTER: usize = 2;
const LAST: usize = 3;
const BUFFER: usize = 4;
/// The word that packets in a buffer write.
const WRITTEN: usize = BUFFER_DWORDS;

/// Barriers that wait for one another and for the program, and packets in a buffer.
fn barriers<P: Platform>(
    subject: &Subject<'_, P>,
    guard: &Guard<'_, P>,
    node: u32,
    version: GfxVersion,
    part: &String,
    findings: &mut Findings,
) -> Result<(), Error> {
    let request = EventRequest {
        kind: EventType::SIGNAL,
        node: 0,
        manual_reset: true,
        is_set: false,
        owner: OWNER,
    };
    let event = guard.create_event(&request)?;
    let checked = AqlQueue::open(guard, node, version, subject.shares_memory());
    let checked = checked.and_then(|queue| {
        let check = AqlCheck { subject, guard, queue: &queue, event, part };
        let done = match check.in_order(findings) {
            Ok(true) => check.by_buffer(version, findings),
            ordered => ordered.map(drop),
        };
        done.and(queue.close(guard))
    });
    let destroyed = guard.destroy_event(event.id, OWNER).map(drop);
    checked.and(destroyed)
}

/// An AQL queue that is checked.
struct AqlCheck<'a, 's, 'g, P: Platform> {
    subject: &'a Subject<'s, P>,
    guard: &'a Guard<'g, P>,
    queue: &'a AqlQueue,
    /// Set with the last signal.
    event: Event,
    part: &'a String,
}

impl<P: Platform> AqlCheck<'_, '_, '_, P> {
    /// Whether the queue came to its end.
    fn in_order(&self, findings: &mut Findings) -> Result<bool, Error> {
        let AqlCheck { queue, part, event, .. } = self;
        for signal in [FIRST, GATE, AFTER] {
            queue.prepare_signal(signal, 1, None);
        }
        queue.prepare_signal(LAST, 1, Some(*event));
        let after = |waits_for: usize| [queue.signal(waits_for), 0, 0, 0, 0];
        let packet = |signals, completes| {
            aql::barrier(Header::ORDERED, Wait::All, signals, queue.signal(completes))
        };
        let packets =
            [packet([0; 5], FIRST), packet(after(GATE), AFTER), packet(after(AFTER), LAST)];
        queue.submit(self.guard, self.subject.os(), &packets)?;
        if !self.becomes_zero(FIRST, "a barrier that waits for nothing", findings)? {
            return Ok(false);
        }
        for (signal, which) in [(AFTER, "second"), (LAST, "third")] {
            if queue.value(signal) != 1 {
                findings.fail(format!("{part}: the {which} packet ran before what it waits for"));
            }
        }
        queue.set_value(GATE, 0);
        if !self.becomes_zero(LAST, "barriers that wait for a signal", findings)? {
            return Ok(false);
        }
        if queue.value(AFTER) != 0 {
            findings.fail(format!("{part}: the third packet ran before the second"));
        }
        let mut entry = [EventData { event_id: event.id, ..EventData::default() }];
        if self.guard.wait_for_events(&mut entry, false, INTERRUPT)? == Waited::TimedOut {
            findings.fail(format!(
                "{part}: interrupt lost: the last signal is 0 and event {} is not set after \
                 {INTERRUPT} ms",
                event.id
            ));
        }
        Ok(true)
    }

    /// From gfx9 on an AQL packet may name PM4 packets.
    fn by_buffer(&self, version: GfxVersion, findings: &mut Findings) -> Result<(), Error> {
        let AqlCheck { queue, part, .. } = self;
        let Some(generation) = Pm4Generation::of(version) else { return Ok(()) };
        let value = 0x5a5a_1234;
        let Some(head) = pm4::write_head(generation, queue.word_address(WRITTEN), 1) else {
            return Ok(());
        };
        let mut words = head.to_vec();
        words.push(value);
        let (address, dwords) = (queue.word_address(0), words.len() as u32);
        let completion = queue.signal(BUFFER);
        let packet = aql::pm4_buffer(Header::ORDERED, generation, address, dwords, completion);
        let Some(packet) = packet else { return Ok(()) };
        queue.store_words(0, &words);
        queue.prepare_signal(BUFFER, 1, None);
        queue.submit(self.guard, self.subject.os(), &[packet])?;
        if !self.becomes_zero(BUFFER, "PM4 packets in a buffer", findings)? {
            return Ok(());
        }
        let found = queue.word(WRITTEN);
        if found != value {
            findings.fail(format!(
                "{part}: wrong data: {found:#x} instead of {value:#x} by PM4 packets in a buffer"
            ));
        }
        Ok(())
    }

    /// Waits until a signal is 0; that it does not become so is a failure.
    fn becomes_zero(
        &self,
        signal: usize,
        what: &str,
        findings: &mut Findings,
    ) -> Result<bool, Error> {
        let AqlCheck { subject, guard, queue, event, part } = self;
        let patience = u64::from(ENGINE_PATIENCE) * 1_000_000;
        let deadline = subject.now().saturating_add(patience);
        while queue.value(signal) != 0 {
            let late = subject.now() >= deadline;
            queue.check(guard)?;
            let mut entry = [EventData { event_id: event.id, ..EventData::default() }];
            if guard.wait_for_events(&mut entry, false, 1)? == Waited::Complete {
                subject.os().sleep(NAP);
            }
            if late && queue.value(signal) != 0 {
                findings.fail(format!("{part}: {what}: not executed within {ENGINE_PATIENCE} ms"));
                return Ok(false);
            }
        }
        subject.os().rmb_device();
        Ok(true)
    }
}

/// Lets an engine fill memory and tell an event.
fn fill<P: Platform>(
    guard: &Guard<'_, P>,
    node: u32,
    version: GfxVersion,
    queue: &mut CommandQueue,
    part: &String,
    tally: &mut Tally,
    findings: &mut Findings,
) -> Result<(), Error> {
    let flags = MemoryFlags::HOST_ACCESS
        | MemoryFlags::NON_PAGED
        | MemoryFlags::GTT_ACCESS
        | MemoryFlags::UNCACHED;
    let request = AllocationRequest { node, size: SIZE, alignment: 0, flags, address: 0 };
    let address = guard.allocate_memory(&request)?;
    let filled = guard.map_memory_to_nodes(address, SIZE, &[node]).and_then(|_| {
        let filled = with_event(guard, address, version, queue, part, tally, findings);
        guard.unmap_memory(address)?;
        filled
    });
    let freed = guard.free_memory(address, SIZE);
    filled.and(freed)
}

fn with_event<P: Platform>(
    guard: &Guard<'_, P>,
    address: u64,
    version: GfxVersion,
    queue: &mut CommandQueue,
    part: &String,
    tally: &mut Tally,
    findings: &mut Findings,
) -> Result<(), Error> {
    let request = EventRequest {
        kind: EventType::SIGNAL,
        node: 0,
        manual_reset: false,
        is_set: false,
        owner: OWNER,
    };
    let event = guard.create_event(&request)?;
    let value = 0x5a5a_0000 | queue.queue().kernel_id;
    let is_compute = Pm4Generation::of(version).filter(|_| part.contains("PM4"));
    let packets: Vec<Vec<u32>> = match (is_compute, SdmaVersion::of(version)) {
        (Some(generation), _) => {
            let dwords = (SIZE / 4) as u32;
            let write = pm4::write_head(generation, address, dwords).map(|head| {
                let mut packet = head.to_vec();
                packet.extend(core::iter::repeat_n(value, dwords as usize));
                packet
            });
            let told = Release::Dword(event.slot, event.trigger);
            let told = pm4::release(generation, told, Some(event.trigger));
            write.into_iter().chain(told.map(|packet| packet.as_ref().to_vec())).collect()
        }
        (None, Some(version)) => {
            let fill = sdma::fill(version, address, value, SIZE as u32);
            let fence = sdma::fence(version, event.slot, event.trigger);
            let mut packets: Vec<Vec<u32>> = fill.iter().map(|it| it.to_vec()).collect();
            packets.extend(fence.iter().map(|it| it.to_vec()));
            packets.push(sdma::trap(event.trigger).to_vec());
            packets
        }
        (None, None) => Vec::new(),
    };
    let mut done = packets.iter().try_for_each(|packet| queue.place(guard, packet));
    done = done.and_then(|()| queue.finish(guard));
    if done.is_ok() {
        let whole = Window::of(guard, address, SIZE)
            .is_some_and(|window| window.is_filled(u64::from(value) << 32 | u64::from(value)));
        if !whole {
            findings.fail(format!("{part}: wrong data: the memory is not filled with {value:#x}"));
        }
        let mut entry = [EventData { event_id: event.id, ..EventData::default() }];
        let patience = match tally.lost_interrupts < STANDSTILLS {
            true => INTERRUPT,
            false => SHORT_INTERRUPT,
        };
        match guard.wait_for_events(&mut entry, false, patience) {
            Ok(Waited::Complete) => {}
            Ok(Waited::TimedOut) => {
                tally.lost_interrupts += 1;
                findings.fail(format!(
                    "{part}: interrupt lost: the work is done and event {} is not set after \
                     {patience} ms",
                    event.id
                ));
            }
            Err(error) => findings.refused(part, &error),
        }
    }
    let destroyed = guard.destroy_event(event.id, OWNER).map(drop);
    done.and(destroyed)
}
