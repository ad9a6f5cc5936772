//! Every failure of a single operation below every call about queues.

use hsakmt_conformance::Mode;
use hsakmt_conformance::disturbed::{Disturbed, Run, Scenario};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::Error;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::Guard;
use hsakmt_core::queue::plan::{Ring, Share};
use hsakmt_core::queue::{AqlPointerAddresses, QueueOptions};
use hsakmt_core::seam::Platform;
use hsakmt_core::uapi::kfd::QueueType;

const ERRNOS: [Errno; 7] = [
    Errno::EINTR,
    Errno::EAGAIN,
    Errno::ENOMEM,
    Errno::EINVAL,
    Errno::ENOSPC,
    Errno::EPERM,
    Errno::EBUSY,
];

const MACHINE: &str = "mi300x:gpus=1,cus=2,cpus=1,cores=1,kernel=7.2";

const SHARE: Share = Share { percentage: 100, priority: 0 };
const RING: u64 = 0x1_0000;

fn allocate<P: Platform>(guard: &Guard<'_, P>, size: u64) -> Result<u64, Error> {
    let flags = MemoryFlags::NON_PAGED
        | MemoryFlags::GTT_ACCESS
        | MemoryFlags::HOST_ACCESS
        | MemoryFlags::EXECUTE;
    let request = AllocationRequest { node: 1, size, alignment: 0, flags, address: 0 };
    let address = guard.allocate_memory(&request)?;
    guard.map_memory_to_nodes(address, size, &[1])?;
    Ok(address)
}

fn options(queue_type: QueueType, ring: u64, pointers: u64) -> QueueOptions {
    QueueOptions {
        node: 1,
        queue_type,
        share: SHARE,
        ring: Ring { address: ring, bytes: RING },
        sdma_engine: 0,
        metadata_ring_bytes: 0,
        aql_pointers: Some(AqlPointerAddresses { read: pointers, write: pointers + 64 }),
        error_event: 0,
        error_reason: 0,
    }
}

/// Ring and pointers. A queue was there before: its doorbells and the regions of memory
/// stay.
fn prepare(guard: &Guard<'_, Disturbed<'_>>) -> Vec<u64> {
    let (ring, pointers) = (allocate(guard, RING).unwrap(), allocate(guard, 0x1000).unwrap());
    let queue = guard.create_queue(&options(QueueType::COMPUTE_AQL, ring, pointers)).unwrap();
    guard.destroy_queue(queue.id).unwrap();
    vec![ring, pointers]
}

/// Ring and pointers alone: the doorbells are mapped under faults, too, and stay.
fn prepare_memory(guard: &Guard<'_, Disturbed<'_>>) -> Vec<u64> {
    let (ring, pointers) = (allocate(guard, RING).unwrap(), allocate(guard, 0x1000).unwrap());
    vec![ring, pointers]
}

/// After a failure that is none of the hardware's the queue is there.
fn is_gone(_: &Error) -> bool {
    false
}

fn scenario(run: &mut Run<'_, '_>) {
    let guard = run.guard;
    let (ring, pointers) = (run.prepared[0], run.prepared[1]);
    for queue_type in [QueueType::COMPUTE, QueueType::COMPUTE_AQL, QueueType::SDMA] {
        let options = options(queue_type, ring, pointers);
        let queue = run.call("create", || guard.create_queue(&options));
        assert_eq!(run.call("kernel id", || guard.kernel_queue_id(queue.id)), queue.kernel_id);
        let stopped = Share { percentage: 0, ..SHARE };
        run.call("update", || guard.update_queue(queue.id, options.ring, stopped));
        if queue_type != QueueType::SDMA {
            run.call("mask", || guard.set_queue_cu_mask(queue.id, &[u32::MAX]));
            let info = run.call("info", || guard.queue_info(queue.id));
            assert_eq!(info.cu_mask_bits, 32);
        }
        run.end("destroy", || guard.destroy_queue(queue.id), is_gone);
    }
}

fn no_state(_: &Guard<'_, Disturbed<'_>>) -> String {
    String::new()
}

const SCENARIO: Scenario = Scenario {
    profile: MACHINE,
    options: Options::default,
    prepare,
    run: scenario,
    state: no_state,
};

#[test]
fn in_the_primary_context() {
    SCENARIO.every_operation(Mode::Primary, &ERRNOS, 14);
}

/// Its save areas are buffers: the SVM calls are not for secondary contexts.
#[test]
fn in_a_secondary_context() {
    SCENARIO.every_operation(Mode::Secondary, &ERRNOS, 14);
}

/// Doorbells that cannot be a buffer of the driver's are mapped for the CPU alone, so
/// the failure of a request for them is none of the call. They stay until the close.
#[test]
fn the_first_queue_of_a_gpu() {
    let run = |run: &mut Run<'_, '_>| {
        let guard = run.guard;
        let options = options(QueueType::COMPUTE_AQL, run.prepared[0], run.prepared[1]);
        let queue = match guard.create_queue(&options) {
            Ok(queue) => queue,
            Err(_) => run.call("create", || guard.create_queue(&options)),
        };
        run.end("destroy", || guard.destroy_queue(queue.id), is_gone);
    };
    let scenario = Scenario { prepare: prepare_memory, run, ..SCENARIO };
    scenario.every_operation(Mode::Primary, &ERRNOS, 0);
    scenario.every_operation(Mode::Secondary, &ERRNOS, 0);
}
