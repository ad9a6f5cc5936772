//! How many system calls a life of an allocation takes: the four requests, and
//! nothing else where the CPU sees nothing of it.

use std::sync::Arc;

use hsakmt_conformance::machine;
use hsakmt_core::context::Options;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::Process;
use hsakmt_core::seam::{Counted, Counters, Pair, Platform};
use hsakmt_linux_shim::Linux;

const ROUNDS: u64 = 200;

/// Calls beyond the requests, and requests, of `ROUNDS` lives of 4 KiB.
fn calls(debugger_access: bool, flags: MemoryFlags) -> (u64, u64) {
    let machine = machine("mi300x:gpus=2");
    let sim = machine.spawn(Linux);
    let counters = Arc::new(Counters::new());
    let process = Process::new(Pair {
        os: Counted::new(sim.os(), Arc::clone(&counters)),
        driver: Counted::new(sim.driver(), Arc::clone(&counters)),
    });
    process.open_primary(|| Ok(Options { debugger_access, ..Options::default() })).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let node = guard
        .machine(|machine| {
            Ok(machine.snapshot().nodes().iter().position(|node| node.is_gpu()).unwrap() as u32)
        })
        .unwrap();
    let before = counters.snapshot();
    for _ in 0..ROUNDS {
        let request = AllocationRequest { node, size: 4096, alignment: 0, flags, address: 0 };
        let address = guard.allocate_memory(&request).unwrap();
        guard.map_memory_to_nodes(address, 4096, &[node]).unwrap();
        guard.unmap_memory(address).unwrap();
        guard.free_memory(address, 4096).unwrap();
    }
    let counts = counters.snapshot().since(&before);
    let requests = counts.ioctls();
    drop(guard);
    process.close_primary().unwrap();
    (counts.system_calls() - requests, requests)
}

#[test]
fn memory_that_no_cpu_sees_costs_its_four_requests() {
    let (others, requests) = calls(false, MemoryFlags::NON_PAGED);
    assert_eq!(requests, 4 * ROUNDS);
    assert!(others * 10 <= ROUNDS, "{others} in {ROUNDS} lives");
}

#[test]
fn a_mapping_for_debuggers_costs_three_more() {
    let (others, requests) = calls(true, MemoryFlags::NON_PAGED);
    assert_eq!(requests, 4 * ROUNDS);
    assert!(others > ROUNDS && others <= 3 * ROUNDS + ROUNDS / 10, "{others}");
}

#[test]
fn host_access_costs_three_more() {
    let (others, requests) = calls(false, MemoryFlags::NON_PAGED.union(MemoryFlags::HOST_ACCESS));
    assert_eq!(requests, 4 * ROUNDS);
    assert!(others > ROUNDS && others <= 3 * ROUNDS + ROUNDS / 10, "{others}");
}
