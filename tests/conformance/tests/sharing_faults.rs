//! Every failure of a single operation below every call that shares: the call says
//! so, the machine and the books are as before, and the same call works next.

use hsakmt_conformance::{Simulated, held, machine};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::Error;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::{Guard, Process};
use hsakmt_core::seam::{Fault, FaultPlan, Faulty, Selector};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Leftovers, Machine};

const PROFILE: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,kernel=7.2,svm=0,ipc=1";
const SIZE: u64 = 64 << 10;
const ERRNOS: [Errno; 7] = [
    Errno::EINTR,
    Errno::EAGAIN,
    Errno::ENOMEM,
    Errno::EMFILE,
    Errno::EBADF,
    Errno::EINVAL,
    Errno::ENOTTY,
];

type Disturbed<'p> = Faulty<Simulated, &'p FaultPlan<'static>>;

/// A run under one fault.
struct Run<'a, 'p> {
    guard: &'a Guard<'a, Disturbed<'p>>,
    machine: &'a Machine,
    plan: &'a FaultPlan<'static>,
    failures: u32,
    what: String,
}

impl<'p> Run<'_, 'p> {
    fn call<R>(
        &mut self,
        name: &str,
        call: impl Fn(&Guard<'_, Disturbed<'p>>) -> Result<R, Error>,
    ) -> R {
        let before = held(self.machine);
        let struck = self.plan.struck();
        match call(self.guard) {
            Ok(answer) => answer,
            Err(error) => {
                let what = format!("{}, {name}: {error}", self.what);
                assert!(self.plan.struck() > struck, "{what}: without a fault");
                assert_eq!(held(self.machine), before, "{what}");
                self.failures += 1;
                call(self.guard).unwrap_or_else(|error| panic!("{what}; and again: {error}"))
            }
        }
    }
}

fn scenario(run: &mut Run<'_, '_>, nodes: &[u32]) {
    let visible = MemoryFlags::NON_PAGED | MemoryFlags::HOST_ACCESS;
    let request =
        AllocationRequest { node: nodes[0], size: SIZE, alignment: 0, flags: visible, address: 0 };
    let address = run.guard.allocate_memory(&request).unwrap();
    // The buffer's own dma-buf comes with the first export and stays with it.
    let kept = run.guard.export_buffer(address, SIZE).unwrap().descriptor;
    run.plan.resume();
    run.call("export", |guard| guard.export_buffer(address, SIZE));
    run.call("buffer info", |guard| guard.buffer_info(kept));
    for (nodes, with_address) in [(None, false), (None, true), (Some(nodes), false)] {
        let taken = run.call("import", |guard| guard.import_buffer(kept, nodes, with_address));
        if with_address || nodes.is_some() {
            run.call("map", |guard| guard.map_memory(taken.address, SIZE));
        }
        run.call("export an import", |guard| guard.export_buffer(taken.address, 1));
        run.call("deregister", |guard| guard.deregister_memory(taken.address));
    }
    let handle = run.call("share", |guard| guard.share_memory(address, SIZE));
    let taken = run.call("take in", |guard| guard.import_shared_memory(&handle, Some(nodes)));
    run.call("map", |guard| guard.map_memory(taken.address, SIZE));
    run.call("deregister", |guard| guard.deregister_memory(taken.address));
    run.plan.suspend();
    run.guard.free_memory(address, SIZE).unwrap();
}

/// Runs the scenario with its k-th operation failing; `None` when it has fewer.
fn disturbed(k: u64, errno: Errno) -> Option<u32> {
    let machine = machine(PROFILE);
    let plan = FaultPlan::with(Fault::nth(Selector::Any, k, errno)).unwrap();
    plan.suspend();
    let process: Process<Disturbed<'_>> = Process::new(Faulty::new(machine.spawn(Linux), &plan));
    process.open_primary(|| Ok(Options::default())).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let nodes = guard
        .machine(|machine| {
            let nodes = (0..).zip(machine.snapshot().nodes());
            Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect::<Vec<u32>>())
        })
        .unwrap();
    // The regions that addresses are cut from are made before anything is compared.
    let flags = MemoryFlags::ONLY_ADDRESS;
    let request = AllocationRequest { node: nodes[0], size: SIZE, alignment: 0, flags, address: 0 };
    let address = guard.allocate_memory(&request).unwrap();
    guard.free_memory(address, SIZE).unwrap();
    let without_descriptors = |held: Leftovers| (held.buffers, held.orphaned_bytes);
    let before = without_descriptors(held(&machine));
    let what = format!("operation {k}, {errno}");
    let mut run = Run { guard: &guard, machine: &machine, plan: &plan, failures: 0, what };
    scenario(&mut run, &nodes);
    let failures = run.failures;
    assert_eq!(without_descriptors(held(&machine)), before, "{k}, {errno}");
    drop(guard);
    process.close_primary().unwrap();
    machine.assert_no_violations();
    (plan.struck() != 0).then_some(failures)
}

#[test]
fn a_failed_call_leaves_no_trace() {
    for errno in ERRNOS {
        let (mut failed, mut k) = (0, 1);
        while let Some(failures) = disturbed(k, errno) {
            failed += failures;
            k += 1;
        }
        println!("{errno}: {k} operations, {failed} failures");
        let restarted = errno == Errno::EINTR || errno == Errno::EAGAIN;
        assert!(failed > 12 || restarted && k > 20, "{errno}: {failed} of {k}");
    }
}
