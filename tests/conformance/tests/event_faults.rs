//! Every failure of a single operation below every call about events: the call says
//! so, the machine is as before, and the same call works next. And what drivers do
//! that is no single failure: a page that they take before they fail, a page of which
//! they show a part.

use std::cell::Cell;

use hsakmt_conformance::disturbed::{Disturbed, Run, Scenario};
use hsakmt_conformance::{Alteration, Altered, Mode, held, machine};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Error, Status};
use hsakmt_core::event::{Event, EventRequest, EventUse, Waited};
use hsakmt_core::process::{Guard, Process};
use hsakmt_core::seam::{
    Call, Driver, Fault, FaultPlan, Faulty, Mapping, OperationKind, Os, Placement, Platform,
    Selector,
};
use hsakmt_core::uapi::kfd::{EventData, EventType};
use hsakmt_linux_shim::Linux;

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

fn request(kind: EventType) -> EventRequest {
    EventRequest { kind, node: 0, manual_reset: true, is_set: false, owner: 1 }
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

/// The driver's page stays as it is from the first event on; its mapping is ours.
fn every_operation(profile: &'static str, mode: Mode) {
    let state = |guard: &Guard<'_, Disturbed<'_>>| format!("{:?}", guard.event_use());
    Scenario { profile, options: Options::default, prepare: |_| Vec::new(), run: scenario, state }
        .every_operation(mode, &ERRNOS, 10);
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
