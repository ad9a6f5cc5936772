//! Every failure of a single operation below every call about events: the call says
//! so, the machine is as before, and the same call works next. And what drivers do
//! that is no single failure: a page that they take before they fail, a page of which
//! they show a part.

use std::cell::Cell;

use hsakmt_conformance::{Alteration, Altered, Mode, Simulated, held, machine};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Error, Status};
use hsakmt_core::event::{Event, EventRequest, EventUse, Waited};
use hsakmt_core::process::{ContextHandle, Guard, Process};
use hsakmt_core::seam::{
    Call, Driver, Fault, FaultPlan, Faulty, Mapping, OperationKind, Os, Placement, Platform,
    Selector,
};
use hsakmt_core::uapi::kfd::{EventData, EventType};
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

const DISCRETE: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,kernel=7.2";
const OF_THE_DRIVER: &str = "cpu-only:cores=1";

type Disturbed<'p> = Faulty<Simulated, &'p FaultPlan<'static>>;

fn request(kind: EventType) -> EventRequest {
    EventRequest { kind, node: 0, manual_reset: true, is_set: false, owner: 1 }
}

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
    /// the call works when it is made again.
    fn call<R>(&mut self, name: &str, call: impl Fn() -> Result<R, Error>) -> R {
        let (before, uses) = (held(self.machine), self.guard.event_use());
        let struck = self.plan.struck();
        match call() {
            Ok(answer) => answer,
            Err(error) => {
                let what = format!("{}, {name}: {error}", self.what);
                assert!(self.plan.struck() > struck, "{what}: without a fault");
                // The driver's page stays as it is from the first event on; its mapping is ours.
                assert_eq!(held(self.machine), before, "{what}");
                assert_eq!(self.guard.event_use(), uses, "{what}");
                self.failures += 1;
                call().unwrap_or_else(|error| panic!("{what}; and again: {error}"))
            }
        }
    }
}

fn scenario(run: &mut Run<'_, '_>) {
    let guard = run.guard;
    let memory = run.call("create", || guard.create_event(&request(EventType::MEMORY)));
    let signal = run.call("create", || guard.create_event(&request(EventType::SIGNAL)));
    let set = EventRequest { is_set: true, ..request(EventType::SIGNAL) };
    let other = run.call("create set", || guard.create_event(&set));
    run.call("set", || guard.set_event(signal.id));
    let ended = run.call("wait", || {
        let entries = &mut [signal, other]
            .map(|event| EventData { event_id: event.id, ..EventData::default() });
        guard.wait_for_events(entries, true, 0)
    });
    assert_eq!(ended, Waited::Complete);
    run.call("reset", || guard.reset_event(signal.id));
    if guard.version().minor >= 14 {
        run.call("callback", || guard.set_event_callback(other.id, 1, Some([1; 3])));
        let due = run.call("pump", || guard.pump_events(0));
        assert!(due.len() <= 1);
    }
    for event in [memory, signal, other] {
        assert!(run.call("destroy", || guard.destroy_event(event.id, 1)));
    }
}

/// Runs the scenario with its k-th operation failing; `None` when it has fewer.
fn disturbed(profile: &str, mode: Mode, k: u64, errno: Errno) -> Option<u32> {
    let machine = machine(profile);
    let plan = FaultPlan::with(Fault::nth(Selector::Any, k, errno)).unwrap();
    plan.suspend();
    let process: Process<Disturbed<'_>> = Process::new(Faulty::new(machine.spawn(Linux), &plan));
    process.open_primary(|| Ok(Options::default())).unwrap();
    process.primary().unwrap().acquire_machine().unwrap();
    let before = held(&machine);
    let handle = match mode {
        Mode::Primary => ContextHandle::PRIMARY,
        Mode::Secondary => process.open_secondary(Options::default()).unwrap(),
    };
    let guard = process.enter(handle).unwrap();
    guard.acquire_machine().unwrap();
    let what = format!("{profile} {mode:?}, operation {k}, {errno}");
    let mut run = Run { guard: &guard, machine: &machine, plan: &plan, failures: 0, what };
    plan.resume();
    scenario(&mut run);
    let failures = run.failures;
    plan.suspend();
    drop(guard);
    if mode == Mode::Secondary {
        process.close_secondary(handle).unwrap();
        assert_eq!(held(&machine), before, "{profile} {mode:?}, {k}, {errno}");
    }
    process.close_primary().unwrap();
    machine.assert_no_violations();
    (plan.struck() != 0).then_some(failures)
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
        let restarted = errno == Errno::EINTR;
        assert!(failed >= 10 || restarted && k > 10, "{errno}: {failed} of {k}");
    }
}

#[test]
fn in_the_primary_context() {
    every_operation(DISCRETE, Mode::Primary);
    every_operation(OF_THE_DRIVER, Mode::Primary);
}

#[test]
fn in_a_secondary_context() {
    every_operation(DISCRETE, Mode::Secondary);
}

/// Runs `test` in a primary context that knows the machine.
fn in_context<P: Platform>(platform: P, test: impl FnOnce(&Guard<'_, P>)) {
    let process = Process::new(platform);
    process.open_primary(|| Ok(Options::default())).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    test(&guard);
    drop(guard);
    process.close_primary().unwrap();
}

fn signal<P: Platform>(guard: &Guard<'_, P>) -> Result<Event, Error> {
    guard.create_event(&request(EventType::SIGNAL))
}

/// A driver that takes the page with the first event and has no memory for the event.
#[derive(Default)]
struct TakesThePage {
    done: Cell<bool>,
}

impl Alteration for TakesThePage {
    fn execute<D: Driver>(
        &self,
        driver: &D,
        device: &D::Device,
        call: &mut Call<'_, '_>,
    ) -> Result<u32, Errno> {
        if call.name == "CREATE_EVENT" && !self.done.replace(true) {
            // A kind of which it makes none of, in place of the signal.
            let mut block = call.block.to_vec();
            block[12..16].copy_from_slice(&99_u32.to_ne_bytes());
            let Call { request, name, fields, slots, .. } = *call;
            let mut other =
                Call { request, name, fields, slots, block: &mut block, arrays: &mut [] };
            driver.execute(device, &mut other)?;
            return Err(Errno::ENOMEM);
        }
        driver.execute(device, call)
    }
}

#[test]
fn a_page_that_the_driver_has_taken_stays() {
    let machine = machine(DISCRETE);
    let alteration = TakesThePage::default();
    in_context(Altered::new(machine.spawn(Linux), &alteration), |guard| {
        assert_eq!(signal(guard).unwrap_err().status, Status::NO_MEMORY);
        let page = |line: &&String| line.ends_with("0x8000 bytes of GTT memory, mapped on 2 GPUs");
        assert_eq!(held(&machine).buffers.iter().filter(page).count(), 1);
        assert_eq!(guard.event_use(), EventUse { in_use: 0, limit: 4095 });
        let buffers = held(&machine).buffers;
        let event = signal(guard).unwrap();
        assert_ne!(event.slot, 0);
        assert_eq!(held(&machine).buffers, buffers);
    });
    machine.assert_no_violations();
}

/// An old driver shows one small page: 255 slots.
#[test]
fn a_driver_with_a_small_page_has_few_slots() {
    let machine = machine(OF_THE_DRIVER);
    let plan =
        FaultPlan::with(Fault::nth(Selector::Kind(OperationKind::MapDevice), 1, Errno::EINVAL))
            .unwrap();
    in_context(Faulty::new(machine.spawn(Linux), &plan), |guard| {
        for _ in 0..255 {
            signal(guard).unwrap();
        }
        assert_eq!(guard.event_use(), EventUse { in_use: 255, limit: 255 });
    });
    assert_eq!(plan.struck(), 1);
    machine.assert_no_violations();
}

/// GPUs that reach 38 or 40 bits of a process's 47: the page lies below.
struct Narrow(u32);

impl Alteration for Narrow {
    fn execute<D: Driver>(
        &self,
        driver: &D,
        device: &D::Device,
        call: &mut Call<'_, '_>,
    ) -> Result<u32, Errno> {
        let answer = driver.execute(device, call)?;
        if call.name == "GET_PROCESS_APERTURES_NEW" {
            for array in call.arrays.iter_mut() {
                for entry in array.bytes_mut().unwrap_or_default().chunks_exact_mut(56) {
                    if entry[48..52] != [0; 4] {
                        let limit = (1_u64 << self.0) - 1;
                        entry[40..48].copy_from_slice(&limit.to_ne_bytes());
                    }
                }
            }
        }
        Ok(answer)
    }
}

#[test]
fn the_page_lies_where_every_gpu_reaches_it() {
    for bits in [38, 40, 47] {
        let machine = machine(DISCRETE);
        let narrow = Narrow(bits);
        in_context(Altered::new(machine.spawn(Linux), &narrow), |guard| {
            let event = signal(guard).unwrap();
            assert!(event.slot < 1 << bits, "{bits} bits: {:#x}", event.slot);
        });
        machine.assert_no_violations();
    }
}

/// Systems with larger pages, which give and map nothing smaller.
struct LargePages(usize);

impl Alteration for LargePages {
    fn page_size(&self, _: &impl Os) -> usize {
        self.0
    }

    fn map(&self, os: &impl Os, mapping: Mapping) -> Result<usize, Errno> {
        assert_eq!(mapping.length % self.0, 0, "{mapping:?}");
        if matches!(mapping.placement, Placement::Free(_) | Placement::Replace(_)) {
            return os.map(mapping);
        }
        let start = os.map(Mapping { length: mapping.length + self.0, ..mapping })?;
        let (aligned, end) = (start.next_multiple_of(self.0), start + mapping.length + self.0);
        let last = aligned + mapping.length;
        for (from, to) in [(start, aligned), (last, end)] {
            if from < to {
                os.unmap(from, to - from)?;
            }
        }
        Ok(aligned)
    }
}

#[test]
fn pages_of_every_size() {
    for bytes in [16 << 10, 64 << 10] {
        let machine = machine(DISCRETE);
        let pages = LargePages(bytes);
        in_context(Altered::new(machine.spawn(Linux), &pages), |guard| {
            let event = signal(guard).unwrap();
            assert_eq!((event.slot - 8 * u64::from(event.id)) % bytes as u64, 0);
            assert!(guard.event_use().limit >= 4095);
        });
        machine.assert_no_violations();
    }
}
