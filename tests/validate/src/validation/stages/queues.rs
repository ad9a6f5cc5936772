//! Queues: on each GPU the compute engine and every copy engine fill memory, which is
//! checked, and interrupt with an event, which is waited for.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hsakmt_core::error::Error;
use hsakmt_core::event::{EventRequest, Waited};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::Guard;
use hsakmt_core::queue::command_queue::CommandQueue;
use hsakmt_core::queue::packets::pm4::{self, Pm4Generation, Release};
use hsakmt_core::queue::packets::sdma::{self, SdmaVersion};
use hsakmt_core::seam::Platform;
use hsakmt_core::topology::GfxVersion;
use hsakmt_core::uapi::kfd::{EventData, EventType, QueueType};

use crate::validation::engines;
use crate::validation::findings::{Count, Findings};
use crate::validation::pattern::Window;
use crate::validation::subject::{BusErrors, Subject};

/// Bytes that an engine fills.
const SIZE: u64 = 4096;
/// Milliseconds for an interrupt after the work is done.
const INTERRUPT: u32 = 500;
/// What the library knows our events by.
const OWNER: u64 = 2;

/// Why there is nothing to check on some old machines.
pub(super) const NO_QUEUES: &str =
    "nothing to check: the driver takes no queues of a GPU within the CPU's node";

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
        let kinds = [(QueueType::COMPUTE, "PM4 queue", 1)].into_iter().chain([
            (QueueType::SDMA, "copy engine", copies),
            (QueueType::SDMA_XGMI, "XGMI copy engine", xgmi),
        ]);
        let Some(guard) = findings.expect(&gpu, subject.enter()) else { return };
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
                if !subject.has_time(findings, part) {
                    break;
                }
                subject.show_progress("queues", part);
                let errors = BusErrors::watch();
                if let Err(error) = fill(&guard, gpu.node, version, queue, part, findings) {
                    findings.refused(part, &error);
                }
                errors.check(part, findings);
                checked += 1;
            }
            for (part, queue) in open {
                findings.expect(&part, queue.close(&guard));
            }
        }
    }
    let gpus = Count(subject.gpus.len() as u64, "GPU");
    findings.summary = format!("{} on {gpus}", Count(checked, "engine"));
}

/// Lets an engine fill memory and tell an event.
fn fill<P: Platform>(
    guard: &Guard<'_, P>,
    node: u32,
    version: GfxVersion,
    queue: &mut CommandQueue,
    part: &String,
    findings: &mut Findings,
) -> Result<(), Error> {
    let flags = MemoryFlags::HOST_ACCESS
        | MemoryFlags::NON_PAGED
        | MemoryFlags::GTT_ACCESS
        | MemoryFlags::UNCACHED;
    let request = AllocationRequest { node, size: SIZE, alignment: 0, flags, address: 0 };
    let address = guard.allocate_memory(&request)?;
    let filled = guard.map_memory_to_nodes(address, SIZE, &[node]).and_then(|_| {
        let filled = with_event(guard, address, version, queue, part, findings);
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
        match guard.wait_for_events(&mut entry, false, INTERRUPT) {
            Ok(Waited::Complete) => {}
            Ok(Waited::TimedOut) => findings.fail(format!(
                "{part}: interrupt lost: the work is done and event {} is not set after \
                 {INTERRUPT} ms",
                event.id
            )),
            Err(error) => findings.refused(part, &error),
        }
    }
    let destroyed = guard.destroy_event(event.id, OWNER).map(drop);
    done.and(destroyed)
}
