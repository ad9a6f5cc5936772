//! Contexts beside each other: what one has means nothing in another, and what one
//! leaves behind goes with it, in a number of requests that grows with it alone.

use std::sync::Arc;

use hsakmt_conformance::{Mode, Simulated, held, machine, process};
use hsakmt_core::context::Options;
use hsakmt_core::error::Status;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::{CONTEXTS_MAX, ContextHandle, Guard, Process};
use hsakmt_core::seam::{Counted, Counters, Platform};
use hsakmt_linux_shim::Linux;

const PROFILE: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,kernel=7.2,svm=0";
const SIZE: u64 = 16 << 10;

const KINDS: [MemoryFlags; 7] = [
    MemoryFlags::NON_PAGED,
    MemoryFlags::NON_PAGED.union(MemoryFlags::HOST_ACCESS),
    MemoryFlags::NON_PAGED.union(MemoryFlags::AQL_QUEUE),
    MemoryFlags::NON_PAGED.union(MemoryFlags::NO_ADDRESS),
    MemoryFlags::HOST_ACCESS,
    MemoryFlags::NON_PAGED.union(MemoryFlags::GTT_ACCESS).union(MemoryFlags::HOST_ACCESS),
    MemoryFlags::ONLY_ADDRESS,
];

fn request(node: u32, flags: MemoryFlags) -> AllocationRequest {
    AllocationRequest { node, size: SIZE, alignment: 0, flags, address: 0 }
}

fn gpus<P: Platform>(guard: &Guard<'_, P>) -> Vec<u32> {
    guard
        .machine(|machine| {
            let nodes = (0..).zip(machine.snapshot().nodes());
            Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
        })
        .unwrap()
}

#[test]
fn what_one_context_has_is_nothing_in_another() {
    let machine = machine(PROFILE);
    let process: Process<Simulated> = process(&machine);
    process.open_primary(|| Ok(Options::default())).unwrap();
    let mut contexts = vec![ContextHandle::PRIMARY];
    for _ in 1..CONTEXTS_MAX {
        contexts.push(process.open_secondary(Options::default()).unwrap());
    }
    let guards: Vec<_> = contexts.iter().map(|&context| process.enter(context).unwrap()).collect();
    let made: Vec<Vec<u64>> = guards
        .iter()
        .map(|guard| {
            guard.acquire_machine().unwrap();
            let node = gpus(guard)[0];
            let make = |flags| guard.allocate_memory(&request(node, flags)).unwrap();
            KINDS.iter().chain(&KINDS).map(|&flags| make(flags)).collect()
        })
        .collect();
    // No name and no address twice.
    let mut ranges: Vec<u64> = made.iter().flatten().copied().collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0] + SIZE <= pair[1]), "{ranges:x?}");
    let before = held(&machine);
    for (owner, addresses) in made.iter().enumerate() {
        for (other, guard) in guards.iter().enumerate().filter(|&(other, _)| other != owner) {
            for &address in addresses {
                let what = format!("{address:#x} of context {owner} in context {other}");
                let known = guard.pointer_info(address).map(|info| info.size);
                assert_eq!(known.unwrap_err().status, Status::ERROR, "{what}");
                assert!(guard.map_memory(address, SIZE).is_err(), "{what}");
                assert!(guard.unmap_memory(address).is_err(), "{what}");
                assert!(guard.free_memory(address, SIZE).is_err(), "{what}");
                assert!(guard.deregister_memory(address).is_err(), "{what}");
                assert!(guard.set_user_data(address, 1).is_err(), "{what}");
            }
        }
    }
    assert_eq!(held(&machine), before);
    for (guard, addresses) in guards.iter().zip(&made) {
        for &address in addresses {
            guard.free_memory(address, SIZE).unwrap();
        }
    }
    drop(guards);
    for &context in &contexts[1..] {
        process.close_secondary(context).unwrap();
    }
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

/// System calls of closing a context with so many live objects, and what the
/// machine has before and after.
fn closing(mode: Mode, objects: usize) -> u64 {
    let machine = machine(PROFILE);
    let counters = Arc::new(Counters::new());
    let process: Process<Counted<Simulated, Arc<Counters>>> =
        Process::new(Counted::new(machine.spawn(Linux), Arc::clone(&counters)));
    // A baseline that has everything that outlives a context.
    process.open_primary(|| Ok(Options::default())).unwrap();
    process.primary().unwrap().acquire_machine().unwrap();
    if mode == Mode::Primary {
        process.close_primary().unwrap();
    }
    let before = held(&machine);
    let context = match mode {
        Mode::Primary => {
            process.open_primary(|| Ok(Options::default())).unwrap();
            ContextHandle::PRIMARY
        }
        Mode::Secondary => process.open_secondary(Options::default()).unwrap(),
    };
    let guard = process.enter(context).unwrap();
    guard.acquire_machine().unwrap();
    let nodes = gpus(&guard);
    // Pages of which each is registered.
    let pool = vec![0_u8; objects * 4096];
    let mut scratch = vec![];
    for &node in &nodes {
        let flags = MemoryFlags::SCRATCH | MemoryFlags::NON_PAGED;
        let request = AllocationRequest { size: 64 << 20, ..request(node, flags) };
        scratch.push(guard.allocate_memory(&request).unwrap());
    }
    for number in 0..objects {
        let flags = match number % 9 {
            7 if mode == Mode::Primary => {
                let address = pool.as_ptr() as u64 + number as u64 * 4096;
                let host = MemoryFlags::HOST_ACCESS;
                guard.register_memory(address, 100, host, None).unwrap();
                guard.map_memory(address, 100).unwrap();
                continue;
            }
            8 => {
                let part = scratch[number % 2] + (number as u64 / 9) * 4096;
                guard.map_memory(part, 4096).unwrap();
                continue;
            }
            kind => KINDS[kind % 7],
        };
        let address = guard.allocate_memory(&request(nodes[number % 2], flags)).unwrap();
        // Some of them mapped on both, some on one, some nowhere.
        let unnamed = MemoryFlags::NO_ADDRESS | MemoryFlags::ONLY_ADDRESS;
        match number % 3 {
            _ if flags.intersects(unnamed) => {}
            0 => drop(guard.map_memory(address, SIZE).unwrap()),
            1 => drop(guard.map_memory_to_nodes(address, SIZE, &nodes[..1]).unwrap()),
            _ => {}
        }
    }
    drop(guard);
    let start = counters.snapshot();
    match mode {
        Mode::Primary => process.close_primary().unwrap(),
        Mode::Secondary => process.close_secondary(context).unwrap(),
    }
    let calls = counters.snapshot().since(&start).system_calls();
    assert_eq!(held(&machine), before, "{mode:?}");
    machine.assert_no_violations();
    calls
}

#[test]
fn closing_with_ten_thousand_objects_takes_as_many_calls_as_objects() {
    for mode in Mode::ALL {
        let [few, many] = [1_000, 10_000].map(|objects| closing(mode, objects));
        println!("{mode:?}: {few} system calls for 1,000 objects, {many} for 10,000");
        // An unmap, a free, and two or three calls for pages and CPU mappings each.
        assert!(many <= 50_000, "{many}");
        assert!(many <= few * 10 + 100, "{few} and {many}");
    }
}
