//! Every failure of a single operation below every memory call: the call says
//! so, the machine and the books are as before, and the same call works next.

use hsakmt_conformance::{Mode, Simulated, held, machine};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::Error;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::{Guard, Process};
use hsakmt_core::seam::{Fault, FaultPlan, Faulty, Selector};
use hsakmt_linux_shim::Linux;
use kfd_sim::Machine;

const ERRNOS: [Errno; 8] = [
    Errno::EINTR,
    Errno::EAGAIN,
    Errno::ENOMEM,
    Errno::EFAULT,
    Errno::ENOSPC,
    Errno::EPERM,
    Errno::EBUSY,
    Errno::EOPNOTSUPP,
];

type Disturbed<'p> = Faulty<Simulated, &'p FaultPlan<'static>>;

const KINDS: [MemoryFlags; 7] = [
    MemoryFlags::NON_PAGED,
    MemoryFlags::NON_PAGED.union(MemoryFlags::HOST_ACCESS),
    MemoryFlags::NON_PAGED.union(MemoryFlags::AQL_QUEUE),
    MemoryFlags::NON_PAGED.union(MemoryFlags::NO_ADDRESS),
    MemoryFlags::HOST_ACCESS,
    MemoryFlags::NON_PAGED.union(MemoryFlags::GTT_ACCESS).union(MemoryFlags::HOST_ACCESS),
    MemoryFlags::ONLY_ADDRESS,
];

/// A run under one fault.
struct Run<'a, 'p> {
    guard: &'a Guard<'a, Disturbed<'p>>,
    machine: &'a Machine,
    plan: &'a FaultPlan<'static>,
    failures: u32,
    what: String,
}

impl Run<'_, '_> {
    /// Makes a call that may be disturbed. After a failure nothing has changed, and
    /// the call works when it is made again. What an operation beside the point
    /// (advice, a debugger's mapping) refuses is no failure.
    fn call<R>(&mut self, name: &str, call: impl Fn() -> Result<R, Error>) -> R {
        let before = held(self.machine);
        let struck = self.plan.struck();
        match call() {
            Ok(answer) => answer,
            Err(error) => {
                let what = format!("{}, {name}: {error}", self.what);
                assert!(self.plan.struck() > struck, "{what}: without a fault");
                assert_eq!(held(self.machine), before, "{what}");
                self.failures += 1;
                call().unwrap_or_else(|error| panic!("{what}; and again: {error}"))
            }
        }
    }
}

fn scenario(run: &mut Run<'_, '_>, nodes: &[u32], pool: &[u8], primary: bool) {
    let guard = run.guard;
    for flags in KINDS {
        let size = 64 << 10;
        let request = AllocationRequest { node: nodes[0], size, alignment: 0, flags, address: 0 };
        let address = run.call("allocate", || guard.allocate_memory(&request));
        let mappable = !flags.intersects(MemoryFlags::NO_ADDRESS | MemoryFlags::ONLY_ADDRESS);
        if mappable {
            run.call("map", || guard.map_memory_to_nodes(address, size, &nodes[..1]));
            run.call("map elsewhere", || guard.map_memory_to_nodes(address, size, &nodes[1..]));
            run.call("map everywhere", || guard.map_memory_to_nodes(address, size, nodes));
            run.call("query", || guard.pointer_info(address).map(drop));
            run.call("unmap", || guard.unmap_memory(address));
        }
        run.call("free", || guard.free_memory(address, size));
    }
    let (address, size) = (pool.as_ptr() as u64 + 100, 20_000);
    let flags = MemoryFlags::HOST_ACCESS | MemoryFlags::COARSE_GRAIN;
    if primary {
        run.call("register", || guard.register_memory(address, size, flags, None));
        run.call("map registered", || guard.map_memory(address, size));
        run.call("unmap registered", || guard.unmap_memory(address));
        run.call("deregister", || guard.deregister_memory(address));
    }
    let scratch = MemoryFlags::SCRATCH | MemoryFlags::NON_PAGED;
    let request = AllocationRequest {
        node: nodes[0],
        size: 1 << 20,
        alignment: 0,
        flags: scratch,
        address: 0,
    };
    let address = run.call("scratch", || guard.allocate_memory(&request));
    run.call("map scratch", || guard.map_memory(address + (64 << 10), 64 << 10));
    run.call("unmap scratch", || guard.unmap_memory(address + (64 << 10)));
    run.call("free scratch", || guard.free_memory(address, 1 << 20));
}

/// Runs the scenario with its k-th operation failing; `None` when it has fewer.
fn disturbed(profile: &str, mode: Mode, k: u64, errno: Errno) -> Option<u32> {
    let machine = machine(profile);
    let plan = FaultPlan::with(Fault::nth(Selector::Any, k, errno)).unwrap();
    plan.suspend();
    let process: Process<Disturbed<'_>> = Process::new(Faulty::new(machine.spawn(Linux), &plan));
    let pool = vec![0_u8; 64 << 10];
    let mut failures = 0;
    in_context(&process, mode, |guard| {
        let nodes = guard
            .machine(|machine| {
                let nodes = (0..).zip(machine.snapshot().nodes());
                Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect::<Vec<u32>>())
            })
            .unwrap();
        let buffers = held(&machine).buffers;
        let what = format!("{profile} {mode:?}, operation {k}, {errno}");
        let mut run = Run { guard, machine: &machine, plan: &plan, failures: 0, what };
        plan.resume();
        scenario(&mut run, &nodes, &pool, mode == Mode::Primary);
        failures = run.failures;
        plan.suspend();
        assert_eq!(held(&machine).buffers, buffers, "{profile} {mode:?}, {k}, {errno}");
    });
    if mode == Mode::Primary {
        machine.assert_no_violations();
    }
    (plan.struck() != 0).then_some(failures)
}

fn in_context<'p>(
    process: &Process<Disturbed<'p>>,
    mode: Mode,
    run: impl FnOnce(&Guard<'_, Disturbed<'p>>),
) {
    let options = || Options { debugger_access: true, ..Options::default() };
    process.open_primary(|| Ok(options())).unwrap();
    process.primary().unwrap().acquire_machine().unwrap();
    let handle = match mode {
        Mode::Primary => hsakmt_core::process::ContextHandle::PRIMARY,
        Mode::Secondary => process.open_secondary(options()).unwrap(),
    };
    let guard = process.enter(handle).unwrap();
    guard.acquire_machine().unwrap();
    // The regions that addresses are cut from are made before anything is compared.
    for flags in [MemoryFlags::ONLY_ADDRESS, MemoryFlags::HOST_ACCESS] {
        let nodes = guard.machine(|machine| Ok(machine.snapshot().nodes().len())).unwrap();
        let request = AllocationRequest {
            node: nodes as u32 - 1,
            size: 4096,
            alignment: 0,
            flags,
            address: 0,
        };
        let address = guard.allocate_memory(&request).unwrap();
        guard.free_memory(address, 4096).unwrap();
    }
    run(&guard);
    drop(guard);
    if mode == Mode::Secondary {
        process.close_secondary(handle).unwrap();
    }
    process.close_primary().unwrap();
}

fn every_operation(profile: &str, mode: Mode) {
    for errno in ERRNOS {
        let mut failed = 0;
        let mut k = 1;
        while let Some(failures) = disturbed(profile, mode, k, errno) {
            failed += failures;
            k += 1;
        }
        println!("{profile} {mode:?} {errno}: {k} operations, {failed} failures");
        let restarted = errno == Errno::EINTR || errno == Errno::EAGAIN;
        assert!(failed > 20 || restarted && k > 50, "{errno}: {failed} of {k}");
    }
}

#[test]
fn in_the_primary_context() {
    every_operation("rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,svm=0", Mode::Primary);
}

#[test]
fn in_a_secondary_context() {
    every_operation("rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,kernel=7.2", Mode::Secondary);
}
