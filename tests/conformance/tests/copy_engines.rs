//! Copies by engines: direct, staged, over themselves, in every mode; engines that stand
//! still, lose interrupts, fault, and GPUs that are reset; each failure of an operation.
//!
//! # Safety
//! Ranges are allocations of the context or vectors of the test, which stay until the
//! copy is done.

use std::collections::BTreeSet;

use hsakmt_conformance::disturbed::{Disturbed, Run, Scenario};
use hsakmt_conformance::{Mode, Simulated, held, machine, open, process};
use hsakmt_core::context::Options;
use hsakmt_core::copy::{CopyPath, CopyRequest};
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Error, Object, Operation, Status};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::{Guard, Process};
use hsakmt_core::seam::Platform;
use kfd_sim::{Defect, Machine};

const PAIR: &str = "mi300x:gpus=2,cus=2,cpus=1,cores=1,kernel=7.2";
const SIZE: usize = (2 << 20) + 4097;
const LENGTH: u64 = 4 << 20;

fn gpus<P: Platform>(guard: &Guard<'_, P>) -> Vec<u32> {
    guard
        .machine(|machine| {
            let nodes = (0..).zip(machine.snapshot().nodes());
            Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
        })
        .unwrap()
}

/// Video memory that the CPU does not reach, mapped on these nodes.
fn hidden<P: Platform>(guard: &Guard<'_, P>, node: u32, on: &[u32]) -> u64 {
    let flags = MemoryFlags::NON_PAGED | MemoryFlags::COARSE_GRAIN;
    let request = AllocationRequest { node, size: LENGTH, alignment: 0, flags, address: 0 };
    let address = guard.allocate_memory(&request).unwrap();
    guard.map_memory_to_nodes(address, LENGTH, on).unwrap();
    address
}

fn pattern(seed: usize) -> Vec<u8> {
    (0..SIZE).map(|at| (at * 31 + (at >> 8) * 7 + seed) as u8).collect()
}

fn copy<P: Platform>(
    guard: &Guard<'_, P>,
    destination: u64,
    source: u64,
    size: usize,
) -> Result<CopyPath, Error> {
    let request = CopyRequest { destination, source, size: size as u64, path: None };
    // SAFETY: allocations of the context and vectors of the test (see the head).
    unsafe { guard.copy_memory(&request) }
}

fn put<P: Platform>(guard: &Guard<'_, P>, to: u64, bytes: &[u8]) -> Result<CopyPath, Error> {
    copy(guard, to, bytes.as_ptr() as u64, bytes.len())
}

fn get<P: Platform>(guard: &Guard<'_, P>, from: u64, bytes: usize) -> Result<Vec<u8>, Error> {
    let back = vec![0_u8; bytes];
    copy(guard, back.as_ptr() as u64, from, bytes)?;
    Ok(back)
}

/// Runs `test` in each mode.
fn in_contexts(profile: &str, test: impl Fn(&Machine, &Guard<'_, Simulated>)) {
    for mode in Mode::ALL {
        let machine = machine(profile);
        let process = process(&machine);
        open(&process).unwrap();
        process.primary().unwrap().acquire_machine().unwrap();
        let before = held(&machine);
        let handle = mode.open(&process).unwrap();
        let guard = process.enter(handle).unwrap();
        guard.acquire_machine().unwrap();
        test(&machine, &guard);
        drop(guard);
        mode.close(&process, handle).unwrap();
        if mode == Mode::Secondary {
            assert_eq!(held(&machine), before);
        }
        process.close_primary().unwrap();
        machine.assert_no_violations();
    }
}

#[test]
fn to_and_from_memory_that_the_cpu_does_not_reach() {
    in_contexts(PAIR, |_, guard| {
        let bytes = pattern(1);
        for node in gpus(guard) {
            let memory = hidden(guard, node, &[node]);
            for (offset, size) in [(0, 1), (1, 3), (4095, 4097), (7, SIZE)] {
                let at = memory + offset;
                assert_eq!(put(guard, at, &bytes[..size]).unwrap(), CopyPath::Engine);
                assert!(get(guard, at, size).unwrap() == bytes[..size], "{offset} {size}");
            }
        }
    });
}

#[test]
fn between_gpus_with_and_without_each_others_memory() {
    in_contexts(PAIR, |_, guard| {
        let gpus = gpus(guard);
        let (one, other) = (hidden(guard, gpus[0], &gpus[..1]), hidden(guard, gpus[1], &gpus[1..]));
        for seed in 0..2 {
            let bytes = pattern(seed);
            put(guard, one + 1, &bytes).unwrap();
            assert_eq!(copy(guard, other + 5, one + 1, SIZE).unwrap(), CopyPath::Engine);
            assert!(get(guard, other + 5, SIZE).unwrap() == bytes, "{seed}");
            // Staged at first, then direct.
            guard.map_memory_to_nodes(one, LENGTH, &gpus).unwrap();
        }
    });
}

/// Between GPUs of a hive it is an engine that the link recommends (KFD 1.17), another for
/// another peer; before that any for XGMI.
#[test]
fn an_engine_that_the_link_recommends() {
    for kernel in ["6.12", "6.1"] {
        let machine = machine(&format!("mi300x:gpus=8,cus=2,cpus=1,cores=1,kernel={kernel}"));
        let process = process(&machine);
        open(&process).unwrap();
        let guard = process.primary().unwrap();
        guard.acquire_machine().unwrap();
        let gpus = gpus(&guard);
        let xgmi = guard.machine(|machine| Ok(machine.node(gpus[0])?.num_sdma_engines)).unwrap();
        let one = hidden(&guard, gpus[0], &gpus);
        for &peer in &gpus[1..] {
            let other = hidden(&guard, peer, &gpus);
            copy(&guard, other, one, 4096).unwrap();
        }
        let queues = held(&machine).queues;
        let engine = |queue: &String| -> u32 {
            let name = queue.split("SDMA engine ").nth(1).unwrap();
            name.split(' ').next().unwrap().parse().unwrap()
        };
        let engines: BTreeSet<u32> = queues.iter().map(engine).collect();
        assert!(engines.iter().all(|&engine| engine >= xgmi), "{kernel}: {queues:?}");
        let expected = if kernel == "6.1" { 1 } else { 7 };
        assert_eq!(engines.len(), expected, "{kernel}: {queues:?}");
        drop(guard);
        process.close_primary().unwrap();
        machine.assert_no_violations();
    }
}

#[test]
fn over_itself_up_and_down() {
    in_contexts(PAIR, |_, guard| {
        let node = gpus(guard)[0];
        let (memory, bytes) = (hidden(guard, node, &[node]), pattern(3));
        put(guard, memory, &bytes).unwrap();
        copy(guard, memory + 4097, memory, SIZE).unwrap();
        assert!(get(guard, memory + 4097, SIZE).unwrap() == bytes);
        copy(guard, memory + 1, memory + 4097, SIZE).unwrap();
        assert!(get(guard, memory + 1, SIZE).unwrap() == bytes);
    });
}

fn works<P: Platform>(guard: &Guard<'_, P>, node: u32, bytes: &[u8]) {
    let memory = hidden(guard, node, &[node]);
    assert_eq!(put(guard, memory, bytes).unwrap(), CopyPath::Engine);
    assert!(get(guard, memory, bytes.len()).unwrap() == bytes);
}

/// Runs a copy on a broken machine, and one on it when it is whole again.
fn broken(defect: Defect, check: impl Fn(Result<CopyPath, Error>)) {
    let machine = machine(PAIR);
    let process: Process<Simulated> = process(&machine);
    let options = Options { engine_patience_ms: 100, ..Options::default() };
    process.open_primary(|| Ok(options)).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let node = *gpus(&guard).last().unwrap();
    let (memory, bytes) = (hidden(&guard, node, &[node]), pattern(4));
    machine.set_defect(defect, true);
    check(put(&guard, memory, &bytes));
    machine.set_defect(defect, false);
    // After a fault or a reset nothing of a process object runs on that GPU any more.
    if matches!(defect, Defect::MemoryFault | Defect::ResetMidway) {
        let error = put(&guard, memory, &bytes).unwrap_err();
        let expected = match defect {
            Defect::ResetMidway => Status::UNAVAILABLE,
            _ => Status::ERROR,
        };
        assert_eq!((error.status, error.operation), (expected, Operation::Submit), "{defect:?}");
        let handle = process.open_secondary(Options::default()).unwrap();
        let other = process.enter(handle).unwrap();
        other.acquire_machine().unwrap();
        works(&other, node, &bytes);
        drop(other);
        process.close_secondary(handle).unwrap();
    } else {
        works(&guard, node, &bytes);
    }
    drop(guard);
    process.close_primary().unwrap();
}

#[test]
fn an_engine_that_stands_still_is_given_up() {
    for defect in [Defect::StuckEngine, Defect::DoorbellDead] {
        broken(defect, |copied| {
            let error = copied.unwrap_err();
            assert_eq!((error.status, error.operation), (Status::ERROR, Operation::Submit));
            assert!(matches!(error.object, Object::Gpu(_)), "{error}");
        });
    }
}

#[test]
fn a_fault_is_told_with_its_address() {
    broken(Defect::MemoryFault, |copied| {
        let error = copied.unwrap_err();
        assert_eq!((error.status, error.operation), (Status::ERROR, Operation::Submit));
        assert!(matches!(error.object, Object::Address(at) if at != 0), "{error}");
    });
}

#[test]
fn a_lost_interrupt_costs_time_alone() {
    broken(Defect::LostInterrupt, |copied| assert_eq!(copied.unwrap(), CopyPath::Engine));
}

#[test]
fn a_reset_fails_the_copy_and_not_the_next() {
    broken(Defect::ResetMidway, |copied| {
        let error = copied.unwrap_err();
        assert_eq!((error.status, error.operation), (Status::UNAVAILABLE, Operation::Submit));
    });
}

const ERRNOS: [Errno; 5] = [Errno::EINTR, Errno::ENOMEM, Errno::EINVAL, Errno::EPERM, Errno::EBUSY];

/// The engines are there already: queues and staging buffers stay until the close.
fn prepare(guard: &Guard<'_, Disturbed<'_>>) -> Vec<u64> {
    let gpus = gpus(guard);
    let memory = [hidden(guard, gpus[0], &gpus[..1]), hidden(guard, gpus[1], &gpus[1..])];
    copy(guard, memory[0], memory[1], 4096).unwrap();
    memory.to_vec()
}

/// After a failure the engine is gone, so the machine has less than before: what is left
/// is compared at the end, in the secondary context.
fn scenario(run: &mut Run<'_, '_>) {
    let (guard, memory) = (run.guard, run.prepared.clone());
    let some = &(0..5000).map(|at| (at * 31 + (at >> 8) * 7) as u8).collect::<Vec<u8>>()[..];
    run.end("put", || put(guard, memory[0], some).map(drop), |_| false);
    run.end("copy", || copy(guard, memory[1], memory[0], 5000).map(drop), |_| false);
    let back = vec![0_u8; 5000];
    run.end("get", || copy(guard, back.as_ptr() as u64, memory[1], 5000).map(drop), |_| false);
    assert!(back == some);
}

#[test]
fn each_failure_of_an_operation() {
    let state = |_: &Guard<'_, Disturbed<'_>>| String::new();
    let scenario =
        Scenario { profile: PAIR, options: Options::default, prepare, run: scenario, state };
    for mode in Mode::ALL {
        scenario.every_operation(mode, &ERRNOS, 2);
    }
}

/// The first copy, whose queue, ring, events and staging buffer are made under faults.
#[test]
fn each_failure_of_the_first_copy() {
    let prepare = |guard: &Guard<'_, Disturbed<'_>>| {
        let gpus = gpus(guard);
        vec![hidden(guard, gpus[0], &gpus[..1]), hidden(guard, gpus[1], &gpus[1..])]
    };
    let state = |_: &Guard<'_, Disturbed<'_>>| String::new();
    let scenario =
        Scenario { profile: PAIR, options: Options::default, prepare, run: scenario, state };
    scenario.every_operation(Mode::Secondary, &ERRNOS, 2);
}

/// Memory that no GPU has mapped is reached by nobody.
#[test]
fn memory_without_a_gpu() {
    in_contexts(PAIR, |_, guard| {
        let node = gpus(guard)[0];
        let memory = hidden(guard, node, &[node]);
        guard.unmap_memory(memory).unwrap();
        let error = put(guard, memory, &[1, 2, 3]).unwrap_err();
        assert_eq!(error.status, Status::NOT_SUPPORTED);
        let request = CopyRequest {
            destination: memory,
            source: memory,
            size: 8,
            path: Some(CopyPath::Engine),
        };
        // SAFETY: an allocation of the context.
        assert!(unsafe { guard.copy_memory(&request) }.is_err());
    });
}
