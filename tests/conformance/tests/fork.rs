//! Fork, vfork and raw clone: what the child may do, and what it leaves alone.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use hsakmt_conformance::{Mode, Simulated, held, life, machine, machine_under, open, process};
use hsakmt_core::context::Options;
use hsakmt_core::error::Status;
use hsakmt_core::process::{ContextHandle, Process};
use hsakmt_core::seam::{DeviceNode, Journal, OperationKind, Os, TraceEvent, Traced};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Kernel, Machine, Rule};

const NOT_OPENED: Status = Status::KERNEL_IO_CHANNEL_NOT_OPENED;

/// Every call that there is, on a library that is not open here.
fn all_are_refused(process: &Process<Simulated>, secondary: Option<ContextHandle>) {
    assert_eq!(process.primary().err().unwrap().status, NOT_OPENED);
    assert_eq!(process.close_primary().unwrap_err().status, NOT_OPENED);
    assert_eq!(process.open_secondary(Options::default()).unwrap_err().status, NOT_OPENED);
    if let Some(handle) = secondary {
        assert_eq!(process.enter(handle).err().unwrap().status, NOT_OPENED);
        assert_eq!(process.close_secondary(handle).unwrap_err().status, NOT_OPENED);
    }
}

#[test]
fn a_child_opens_anew_and_the_parent_goes_on() {
    let machine = machine_under("rx7900:gpus=2", Kernel::V7_2);
    let process = process(&machine);
    open(&process).unwrap();
    process.primary().unwrap().acquire_machine().unwrap();
    let secondary = process.open_secondary(Options::default()).unwrap();
    let before = held(&machine);

    let child = process.platform().enter_fork_child();
    all_are_refused(&process, Some(secondary));
    life(&process, Mode::Primary).unwrap();
    life(&process, Mode::Secondary).unwrap();
    let mut kinds: Vec<_> = child.descriptors().into_iter().map(|(_, node)| node).collect();
    kinds.sort_by_key(|node| format!("{node:?}"));
    assert_eq!(kinds.iter().filter(|node| **node == Some(DeviceNode::Kfd)).count(), 1);
    assert_eq!(kinds.len(), 3, "the kfd file and two render files, its own: {kinds:?}");
    process.platform().leave_child();

    assert_eq!(held(&machine), before);
    machine.assert_no_violations();
}

/// B04: the descriptors of a chain of children.
#[test]
fn fifty_forks_in_a_chain() {
    let machine = machine("rx7900:gpus=2");
    let process = process(&machine);
    open(&process).unwrap();
    process.primary().unwrap().acquire_machine().unwrap();
    let first = process.platform().process().descriptors();
    for generation in 0..50 {
        let child = process.platform().enter_fork_child();
        all_are_refused(&process, None);
        open(&process).unwrap();
        process.primary().unwrap().acquire_machine().unwrap();
        assert_eq!(child.descriptors().len(), first.len(), "child {generation}");
    }
    machine.assert_no_violations();
}

/// A child that has closed what it inherited, and opened other files since.
#[test]
fn a_child_closes_only_what_is_still_the_device() {
    let machine = machine("rx7900:gpus=1");
    let process = process(&machine);
    open(&process).unwrap();
    process.primary().unwrap().acquire_machine().unwrap();
    let child = process.platform().enter_fork_child();
    let inherited = child.descriptors();
    for (number, _) in &inherited {
        child.close(*number).unwrap();
    }
    let foreign: Vec<u32> = inherited.iter().map(|_| child.open_foreign().unwrap()).collect();
    open(&process).unwrap();
    let kept: Vec<u32> = child
        .descriptors()
        .into_iter()
        .filter_map(|(number, node)| node.is_none().then_some(number))
        .collect();
    assert_eq!(kept, foreign);
    machine.assert_no_violations();
}

#[test]
fn a_vfork_child_is_refused_and_changes_nothing() {
    for acquired in [false, true] {
        let machine = machine_under("rx7900:gpus=2", Kernel::V7_2);
        let process = process(&machine);
        open(&process).unwrap();
        let secondary = process.open_secondary(Options::default()).unwrap();
        if acquired {
            process.primary().unwrap().acquire_machine().unwrap();
        }
        let before = held(&machine);

        process.platform().enter_vfork_child();
        assert_eq!(open(&process).unwrap_err().status, NOT_OPENED);
        assert_eq!(process.close_primary().unwrap_err().status, NOT_OPENED);
        assert_eq!(process.open_secondary(Options::default()).unwrap_err().status, NOT_OPENED);
        assert_eq!(process.close_secondary(secondary).unwrap_err().status, NOT_OPENED);
        for handle in [ContextHandle::PRIMARY, secondary] {
            let guard = process.enter(handle).unwrap();
            assert_eq!(guard.acquire_machine().unwrap_err().status, NOT_OPENED);
            assert_eq!(guard.release_machine().unwrap_err().status, NOT_OPENED);
        }
        if acquired {
            let guard = process.primary().unwrap();
            assert_eq!(guard.clock_counters(1).unwrap_err().status, NOT_OPENED);
            // That one went as far as the kernel, which answered EBADF.
            let refused = machine.take_violations();
            assert!(refused.iter().all(|v| v.rule == Rule::ForeignKfdDescriptor), "{refused:?}");
            assert_eq!(refused.len(), 1);
        }
        process.platform().leave_child();

        assert_eq!(held(&machine), before);
        let guard = process.primary().unwrap();
        guard.acquire_machine().unwrap();
        guard.clock_counters(0).unwrap();
        drop(guard);
        process.close_secondary(secondary).unwrap();
        process.close_primary().unwrap();
        machine.assert_no_violations();
    }
}

/// A guard that was alive in the forking thread counts for the parent alone.
#[test]
fn a_guard_across_a_fork() {
    let machine = machine("cpu-only");
    let process = process(&machine);
    open(&process).unwrap();
    let guard = process.primary().unwrap();
    process.platform().enter_fork_child();
    open(&process).unwrap();
    drop(guard);
    process.close_primary().unwrap();
    life(&process, Mode::Primary).unwrap();
}

type Sink = Box<dyn Fn(&TraceEvent<'_>) + Send + Sync>;
type Journaled = Journal<Sink, fn() -> u32>;

/// The operation that is to block, and whom to tell.
type Trap = Arc<Mutex<Option<(OperationKind, Sender<()>)>>>;

/// A library whose next operation of one kind blocks for ever, in the thread
/// that asked for it.
struct Held {
    process: Process<Traced<Simulated, Arc<Journaled>>>,
    trap: Trap,
}

fn held_process(machine: &Machine) -> &'static Held {
    let trap = Trap::default();
    let seen = Arc::clone(&trap);
    let sink: Sink = Box::new(move |event| {
        let caught = {
            let mut trap = seen.lock().unwrap();
            match &*trap {
                Some((kind, _)) if *kind == event.operation.kind() => trap.take(),
                _ => None,
            }
        };
        if let Some((_, tell)) = caught {
            tell.send(()).unwrap();
            loop {
                std::thread::park();
            }
        }
    });
    fn thread() -> u32 {
        Linux.thread_id()
    }
    let journal = Arc::new(Journal::new(sink, thread as fn() -> u32));
    let process = Process::new(Traced::new(machine.spawn(Linux), journal));
    // The caught thread never ends, so what it uses must not either.
    Box::leak(Box::new(Held { process, trap }))
}

impl Held {
    /// Runs `call` on another thread until it is inside an operation of this kind.
    fn catch(
        &'static self,
        kind: OperationKind,
        call: impl FnOnce(&Process<Traced<Simulated, Arc<Journaled>>>) + Send + 'static,
    ) {
        let (tell, caught): (Sender<()>, Receiver<()>) = channel();
        *self.trap.lock().unwrap() = Some((kind, tell));
        std::thread::spawn(move || call(&self.process));
        caught.recv().unwrap();
    }

    /// Forks, and lives a whole life as the child, with no lock in the way.
    fn live_in_a_child(&self) {
        self.process.platform().inner().enter_fork_child();
        assert_eq!(self.process.primary().err().unwrap().status, NOT_OPENED);
        life(&self.process, Mode::Primary).unwrap();
        life(&self.process, Mode::Primary).unwrap();
    }
}

/// The lock of opens and closes.
#[test]
fn a_fork_while_another_thread_opens() {
    let machine = machine("rx7900:gpus=1");
    for kind in [OperationKind::OpenKfd, OperationKind::Execute] {
        let held = held_process(&machine);
        held.catch(kind, |process| {
            let _ = open(process);
        });
        held.live_in_a_child();
    }
    machine.assert_no_violations();
}

/// The lock of the topology's reader.
#[test]
fn a_fork_while_another_thread_acquires() {
    let machine = machine("rx7900:gpus=1");
    for kind in [OperationKind::ReadFile, OperationKind::OpenRender, OperationKind::Execute] {
        let held = held_process(&machine);
        open(&held.process).unwrap();
        held.catch(kind, |process| {
            let _ = process.primary().unwrap().acquire_machine();
        });
        held.live_in_a_child();
    }
    machine.assert_no_violations();
}

/// The lock of the machine itself, and the count of a context's users.
#[test]
fn a_fork_while_another_thread_looks_at_the_machine() {
    let machine = machine("rx7900:gpus=1");
    let held = held_process(&machine);
    open(&held.process).unwrap();
    held.process.primary().unwrap().acquire_machine().unwrap();
    let (tell, inside) = channel();
    std::thread::spawn(move || {
        let guard = held.process.primary().unwrap();
        guard.machine(|_| -> Result<(), _> {
            tell.send(()).unwrap();
            loop {
                std::thread::park();
            }
        })
    });
    inside.recv().unwrap();
    held.live_in_a_child();
    machine.assert_no_violations();
}

/// A close that waits for a user who never leaves.
#[test]
fn a_fork_while_another_thread_closes() {
    let machine = machine("rx7900:gpus=1");
    let held = held_process(&machine);
    open(&held.process).unwrap();
    let guard = held.process.primary().unwrap();
    std::thread::spawn(move || {
        let _ = held.process.close_primary();
    });
    // From the moment that nobody new gets in, the closer holds the lock and waits for the guard.
    while held.process.primary().is_ok() {
        std::thread::yield_now();
    }
    held.live_in_a_child();
    drop(guard);
    machine.assert_no_violations();
}
