//! Events: both forms of the page, what sets and ends waits, limits, ages, faults and
//! resets, callbacks; in primary and secondary contexts, over closes and forks.

use std::sync::Arc;
use std::thread;

use hsakmt_conformance::{Mode, Simulated, held, machine, open, process};
use hsakmt_core::context::{GpuSelection, Options};
use hsakmt_core::error::Status;
use hsakmt_core::event::{Event, EventRequest, EventUse, Waited};
use hsakmt_core::process::{Guard, Process};
use hsakmt_core::seam::{Counted, Counters, Platform};
use hsakmt_core::uapi::kfd::{
    EventData, EventType, MemoryErrorType, ResetCause, SignalEventData, WAIT_FOREVER,
};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Machine, MemoryFault, Rule};

const DISCRETE: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,kernel=7.2";
/// An APU of today has the page as other GPUs do.
const APU: &str = "apu:cus=2,cores=1";
const OF_THE_DRIVER: [&str; 2] = ["cpu-only:cores=1", "cpu-only:cores=1,kernel=6.1"];

fn request(kind: EventType) -> EventRequest {
    EventRequest { kind, node: 0, manual_reset: false, is_set: false, owner: 1 }
}

fn signal<P: Platform>(guard: &Guard<'_, P>) -> Event {
    guard.create_event(&request(EventType::SIGNAL)).unwrap()
}

fn manual<P: Platform>(guard: &Guard<'_, P>) -> Event {
    let wanted = EventRequest { manual_reset: true, ..request(EventType::SIGNAL) };
    guard.create_event(&wanted).unwrap()
}

fn entry(event: Event, age: u64) -> EventData {
    let mut entry = EventData { event_id: event.id, ..EventData::default() };
    entry.set_payload(&SignalEventData { last_event_age: age });
    entry
}

fn wait<P: Platform>(guard: &Guard<'_, P>, events: &[Event], all: bool, ms: u32) -> Waited {
    let mut entries: Vec<EventData> = events.iter().map(|&event| entry(event, 0)).collect();
    guard.wait_for_events(&mut entries, all, ms).unwrap()
}

/// Runs `test` in each mode that the profile has, and looks whether the machine is as
/// it was with the page alone left.
fn in_contexts(profile: &str, test: impl Fn(&Machine, &Process<Simulated>, &Guard<'_, Simulated>)) {
    let modes: &[Mode] = if profile.contains("7.2") { &Mode::ALL } else { &[Mode::Primary] };
    for &mode in modes {
        let machine = machine(profile);
        let process = process(&machine);
        open(&process).unwrap();
        process.primary().unwrap().acquire_machine().unwrap();
        // The page of the primary context is the process's.
        if mode == Mode::Primary {
            let guard = process.primary().unwrap();
            let first = signal(&guard);
            assert!(guard.destroy_event(first.id, 1).unwrap());
        }
        let before = held(&machine);
        let handle = mode.open(&process).unwrap();
        let guard = process.enter(handle).unwrap();
        guard.acquire_machine().unwrap();
        test(&machine, &process, &guard);
        drop(guard);
        mode.close(&process, handle).unwrap();
        // Whatever the test has left.
        if mode == Mode::Secondary {
            assert_eq!(held(&machine), before, "{profile}");
        }
        process.close_primary().unwrap();
        assert_eq!(machine.leftovers().processes.len(), 1);
        machine.assert_no_violations();
    }
}

#[test]
fn what_is_set_ends_waits() {
    for profile in [DISCRETE, APU, OF_THE_DRIVER[0], OF_THE_DRIVER[1]] {
        in_contexts(profile, |_, _, guard| {
            let (auto, manual) = (signal(guard), manual(guard));
            assert_eq!(wait(guard, &[auto], true, 0), Waited::TimedOut);
            guard.set_event(auto.id).unwrap();
            assert_eq!(wait(guard, &[auto], true, 0), Waited::Complete);
            assert_eq!(wait(guard, &[auto], true, 0), Waited::TimedOut, "it has reset itself");
            guard.set_event(manual.id).unwrap();
            for _ in 0..2 {
                assert_eq!(wait(guard, &[manual], true, WAIT_FOREVER), Waited::Complete);
            }
            assert_eq!(wait(guard, &[auto, manual], false, WAIT_FOREVER), Waited::Complete);
            assert_eq!(wait(guard, &[auto, manual], true, 1), Waited::TimedOut);
            guard.reset_event(manual.id).unwrap();
            assert_eq!(wait(guard, &[manual], true, 0), Waited::TimedOut);
            assert_eq!(wait(guard, &[], true, WAIT_FOREVER), Waited::Complete);
            let set = EventRequest { is_set: true, ..request(EventType::SIGNAL) };
            let set = guard.create_event(&set).unwrap();
            assert_eq!(wait(guard, &[set], true, WAIT_FOREVER), Waited::Complete);
            // The driver sets none but signals.
            for kind in [EventType::MEMORY, EventType::DEBUG_EVENT] {
                let other = guard.create_event(&request(kind)).unwrap();
                assert_eq!(guard.set_event(other.id).unwrap_err().status, Status::ERROR);
                assert!(guard.destroy_event(other.id, 1).unwrap());
            }
            let cannot = EventRequest { is_set: true, ..request(EventType::DEBUG_EVENT) };
            let before = guard.event_use();
            assert_eq!(guard.create_event(&cannot).unwrap_err().status, Status::ERROR);
            assert_eq!(guard.event_use(), before);
            // An unknown one, and another owner's.
            let unknown = Event { id: 4000, ..auto };
            let mut entries = [entry(unknown, 0)];
            assert!(guard.wait_for_events(&mut entries, true, 0).is_err());
            assert!(!guard.destroy_event(auto.id, 2).unwrap());
            assert!(guard.destroy_event(auto.id, 1).unwrap());
            assert!(!guard.destroy_event(auto.id, 1).unwrap());
            assert!(guard.set_event(auto.id).is_err());
        });
    }
}

/// The page and its slots: where a GPU has memory of its own the page is ours, and
/// every GPU has it; elsewhere it is the driver's.
#[test]
fn the_page_is_made_once() {
    in_contexts(DISCRETE, |machine, _, guard| {
        let first = signal(guard);
        let buffers = held(machine).buffers;
        assert!(
            buffers
                .iter()
                .any(|line| line.ends_with("0x8000 bytes of GTT memory, mapped on 2 GPUs")),
            "{buffers:?}"
        );
        let second = signal(guard);
        assert_eq!(held(machine).buffers, buffers);
        assert_eq!(second.slot - first.slot, 8 * u64::from(second.id - first.id));
        assert_eq!((first.slot - 8 * u64::from(first.id)) % 4096, 0);
        assert_eq!(first.trigger, first.id);
        let other = guard.create_event(&request(EventType::MEMORY)).unwrap();
        assert_eq!((other.slot, other.id), (0, 0x4000_0000));
        assert_eq!(guard.event_use().limit, 4095);
    });
    for profile in OF_THE_DRIVER {
        in_contexts(profile, |machine, _, guard| {
            let event = signal(guard);
            assert_eq!((event.slot - 8 * u64::from(event.id)) % 4096, 0);
            let lines = machine.leftovers().to_string();
            assert!(lines.contains("0x8000 bytes of /dev/kfd"), "{lines}");
            assert_eq!(guard.event_use().limit, 4095);
        });
    }
}

/// Without the machine nobody knows which form the page has.
#[test]
fn a_slot_needs_the_machine() {
    let machine = machine(DISCRETE);
    let process = process(&machine);
    open(&process).unwrap();
    let guard = process.primary().unwrap();
    let before = held(&machine);
    let refused = guard.create_event(&request(EventType::SIGNAL)).unwrap_err();
    assert_eq!(refused.status, Status::ERROR);
    assert_eq!(held(&machine), before);
    let other = guard.create_event(&request(EventType::MEMORY)).unwrap();
    guard.acquire_machine().unwrap();
    signal(&guard);
    // And later no longer.
    guard.release_machine().unwrap();
    signal(&guard);
    assert!(guard.destroy_event(other.id, 1).unwrap());
}

/// B63: the driver gives 4,095 slots, and says so when there are no more.
#[test]
fn slots_run_out_and_come_back() {
    for profile in [DISCRETE, OF_THE_DRIVER[0]] {
        in_contexts(profile, |_, _, guard| {
            let events: Vec<Event> = (0..4095).map(|_| signal(guard)).collect();
            let full = guard.create_event(&request(EventType::SIGNAL)).unwrap_err();
            assert_eq!(full.status, Status::NO_MEMORY);
            assert_eq!(guard.event_use(), EventUse { in_use: 4095, limit: 4095 });
            guard.create_event(&request(EventType::HW_EXCEPTION)).unwrap();
            assert!(guard.destroy_event(events[77].id, 1).unwrap());
            assert_eq!(signal(guard).id, events[77].id);
            assert!(guard.create_event(&request(EventType::DEBUG_EVENT)).is_err());
        });
    }
}

#[test]
fn ages_grow_with_each_setting() {
    in_contexts(DISCRETE, |_, _, guard| {
        let event = signal(guard);
        let ask = |age| {
            let mut entries = [entry(event, age)];
            let ended = guard.wait_for_events(&mut entries, true, 0).unwrap();
            (ended, entries[0].signal().last_event_age)
        };
        assert_eq!(ask(1), (Waited::TimedOut, 1));
        // B67: set first, then wait: it comes at once.
        guard.set_event(event.id).unwrap();
        assert_eq!(ask(1), (Waited::Complete, 2));
        assert_eq!(ask(2), (Waited::TimedOut, 2));
        assert_eq!(ask(1), (Waited::Complete, 2), "its age is another");
        guard.set_event(event.id).unwrap();
        guard.set_event(event.id).unwrap();
        assert_eq!(ask(2), (Waited::Complete, 4));
    });
}

/// Waits until another thread sleeps in the driver.
fn until_asleep(process: &Process<Simulated>, context: Option<u16>) {
    while process.platform().process().sleeping_waits(context) == 0 {
        thread::yield_now();
    }
}

#[test]
fn a_sleeper_is_woken_by_everything_that_ends_a_wait() {
    let machine = machine(DISCRETE);
    let process = &process(&machine);
    open(process).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let (one, other) = (signal(&guard), signal(&guard));
    let asleep = |events: &[Event], all, end: &dyn Fn()| {
        thread::scope(|scope| {
            let sleeper = scope.spawn(move || {
                let guard = process.primary().unwrap();
                let mut entries: Vec<EventData> =
                    events.iter().map(|&event| entry(event, 0)).collect();
                guard.wait_for_events(&mut entries, all, WAIT_FOREVER)
            });
            until_asleep(process, None);
            end();
            sleeper.join().unwrap()
        })
    };
    let set = |event: Event| guard.set_event(event.id).unwrap();
    assert_eq!(asleep(&[one], true, &|| set(one)), Ok(Waited::Complete));
    assert_eq!(asleep(&[one, other], false, &|| set(other)), Ok(Waited::Complete));
    let both = || {
        set(one);
        set(other);
    };
    assert_eq!(asleep(&[one, other], true, &both), Ok(Waited::Complete));
    // A GPU; a signal of the system, after which the wait goes on.
    let simulated = || process.platform().process();
    let by_gpu = || assert!(simulated().signal_event(None, one.id));
    assert_eq!(asleep(&[one], true, &by_gpu), Ok(Waited::Complete));
    let interrupted = || {
        simulated().interrupt_wait(None);
        until_asleep(process, None);
        set(one);
    };
    assert_eq!(asleep(&[one], true, &interrupted), Ok(Waited::Complete));
    // Destroyed meanwhile.
    let destroyed = || assert!(guard.destroy_event(other.id, 1).unwrap());
    assert_eq!(asleep(&[other], true, &destroyed).unwrap_err().status, Status::ERROR);
    machine.assert_no_violations();
}

/// A signal of the system costs the time that has passed, and no more.
#[test]
fn an_interrupted_wait_goes_on_with_the_time_that_is_left() {
    let machine = machine(OF_THE_DRIVER[0]);
    let process = process(&machine);
    open(&process).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let event = signal(&guard);
    machine.keep_log(true);
    for _ in 0..3 {
        process.platform().process().interrupt_wait(None);
    }
    assert_eq!(wait(&guard, &[event], true, 50), Waited::TimedOut);
    let sent: Vec<u64> = machine
        .take_log()
        .into_iter()
        .filter_map(|record| match record.operation {
            kfd_sim::Operation::Execute(sent) if sent.name == "WAIT_EVENTS" => sent.sent("timeout"),
            _ => None,
        })
        .collect();
    assert_eq!(sent.len(), 4);
    assert_eq!(sent[0], 50);
    assert!(sent.windows(2).all(|pair| pair[1] <= pair[0]), "{sent:?}");
}

/// A close ends the waits of other threads.
#[test]
fn a_close_does_not_wait_for_ever() {
    for mode in Mode::ALL {
        let machine = machine(DISCRETE);
        let process = process(&machine);
        open(&process).unwrap();
        let handle = mode.open(&process).unwrap();
        let guard = process.enter(handle).unwrap();
        guard.acquire_machine().unwrap();
        let event = signal(&guard);
        drop(guard);
        let context = (mode == Mode::Secondary).then_some(0);
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let guard = process.enter(handle).unwrap();
                guard.wait_for_events(&mut [entry(event, 0)], true, WAIT_FOREVER)
            });
            until_asleep(&process, context);
            mode.close(&process, handle).unwrap();
            if mode == Mode::Primary {
                process.close_primary().unwrap();
            }
            assert_eq!(sleeper.join().unwrap().unwrap_err().status, Status::ERROR);
        });
        machine.assert_no_violations();
    }
}

#[test]
fn faults_and_resets_are_told_by_node() {
    in_contexts(DISCRETE, |machine, process, guard| {
        let gpus: Vec<(u32, u32)> = guard
            .machine(|machine| {
                let nodes = (0..).zip(machine.snapshot().nodes());
                Ok(nodes.filter(|(_, n)| n.is_gpu()).map(|(id, n)| (id, n.gpu_id)).collect())
            })
            .unwrap();
        let memory = guard.create_event(&request(EventType::MEMORY)).unwrap();
        let reset = guard.create_event(&request(EventType::HW_EXCEPTION)).unwrap();
        let look = |event| {
            let mut entries = [EventData { event_id: event, ..EventData::default() }];
            let ended = guard.wait_for_events(&mut entries, true, 0).unwrap();
            (ended, entries[0])
        };
        let (ended, data) = look(memory.id);
        assert_eq!(ended, Waited::TimedOut);
        assert_eq!(guard.memory_fault(&data.memory_exception()), Ok(None));
        let context = machine.leftovers().objects.iter().any(|line| line.starts_with("context"));
        let context = context.then_some(0);
        let simulated = process.platform().process();
        let (node, gpu_id) = gpus[1];
        let fault = MemoryFault { read_only: true, error_type: 2, ..MemoryFault::default() };
        simulated.fault_memory(context, gpu_id, 0x7f00_1234_5678, fault);
        let (ended, data) = look(memory.id);
        assert_eq!(ended, Waited::Complete);
        let told = guard.memory_fault(&data.memory_exception()).unwrap().unwrap();
        assert_eq!((told.node, told.address), (node, 0x7f00_1234_5000));
        assert_eq!(told.error_type, MemoryErrorType::POISON_CONSUMED);
        assert_eq!(
            (told.not_present, told.read_only, told.no_execute, told.imprecise),
            (false, true, false, false)
        );
        simulated.reset_gpu(gpu_id, false);
        let (_, data) = look(reset.id);
        let told = guard.hw_exception(&data.hw_exception()).unwrap().unwrap();
        assert_eq!((told.node, told.memory_lost), (node, true));
        assert_eq!(told.reset_cause, ResetCause::GPU_HANG);
        let mut stranger = data.hw_exception();
        stranger.gpu_id = 1;
        assert_eq!(guard.hw_exception(&stranger).unwrap_err().status, Status::INVALID_NODE_UNIT);
    });
}

/// B06: what a close finds is destroyed, and the page is found again; nothing grows.
#[test]
fn a_reopened_context_has_the_page_and_no_events() {
    for profile in [DISCRETE, OF_THE_DRIVER[0]] {
        let machine = machine(profile);
        let process = process(&machine);
        let mut pages = Vec::new();
        let mut after = None;
        for _ in 0..5 {
            open(&process).unwrap();
            let guard = process.primary().unwrap();
            guard.acquire_machine().unwrap();
            let event = signal(&guard);
            signal(&guard);
            guard.create_event(&request(EventType::MEMORY)).unwrap();
            assert_eq!(guard.event_use().in_use, 2);
            pages.push((event.id, event.slot));
            drop(guard);
            process.close_primary().unwrap();
            assert_eq!(process.platform().process().events(None), []);
            let now = held(&machine);
            assert_eq!(*after.get_or_insert_with(|| now.clone()), now);
        }
        assert!(pages.windows(2).all(|pair| pair[0] == pair[1]), "{pages:x?}");
        machine.assert_no_violations();
    }
}

/// A later context may use GPUs that the page is not mapped on yet.
#[test]
fn the_page_reaches_gpus_that_come_later() {
    let machine = machine(DISCRETE);
    let process = process(&machine);
    open(&process).unwrap();
    process.primary().unwrap().acquire_machine().unwrap();
    let ids: Vec<u32> = machine.topology().gpus().map(|(_, gpu)| gpu.id).collect();
    process.close_primary().unwrap();
    for (gpus, mapped) in [
        (GpuSelection::Only(vec![ids[0]]), 1),
        (GpuSelection::Only(vec![ids[0]]), 1),
        (GpuSelection::All, 2),
        (GpuSelection::Only(vec![ids[1]]), 2),
    ] {
        process.open_primary(|| Ok(Options { gpus: gpus.clone(), ..Options::default() })).unwrap();
        let guard = process.primary().unwrap();
        guard.acquire_machine().unwrap();
        signal(&guard);
        let page = format!("0x8000 bytes of GTT memory, mapped on {mapped} GPUs");
        let buffers = held(&machine).buffers;
        assert_eq!(buffers.iter().filter(|line| line.ends_with(&page)).count(), 1, "{buffers:?}");
        drop(guard);
        process.close_primary().unwrap();
    }
    machine.assert_no_violations();
}

#[test]
fn a_forked_child_has_events_of_its_own() {
    for profile in [DISCRETE, OF_THE_DRIVER[0]] {
        let machine = machine(profile);
        let process = process(&machine);
        open(&process).unwrap();
        let guard = process.primary().unwrap();
        guard.acquire_machine().unwrap();
        let mine = signal(&guard);
        drop(guard);
        let parent = process.platform().process();
        let before = held(&machine);
        process.platform().enter_fork_child();
        let closed = process.primary().err().unwrap();
        assert_eq!(closed.status, Status::KERNEL_IO_CHANNEL_NOT_OPENED);
        open(&process).unwrap();
        let guard = process.primary().unwrap();
        guard.acquire_machine().unwrap();
        assert!(guard.set_event(mine.id).is_err(), "the parent's means nothing");
        assert!(!guard.destroy_event(mine.id, 1).unwrap());
        let own = signal(&guard);
        guard.set_event(own.id).unwrap();
        assert_eq!(wait(&guard, &[own], true, WAIT_FOREVER), Waited::Complete);
        drop(guard);
        process.close_primary().unwrap();
        process.platform().leave_child();
        assert_eq!(held(&machine), before, "{profile}");
        assert_eq!(parent.events(None).len(), 1);
        machine.assert_no_violations();
    }
}

#[test]
fn a_vfork_child_changes_nothing() {
    for profile in [DISCRETE, OF_THE_DRIVER[0]] {
        for page in [false, true] {
            let machine = machine(profile);
            let process = process(&machine);
            open(&process).unwrap();
            let guard = process.primary().unwrap();
            guard.acquire_machine().unwrap();
            let event = if page {
                signal(&guard)
            } else {
                guard.create_event(&request(EventType::MEMORY)).unwrap()
            };
            let (before, events) = (held(&machine), process.platform().process().events(None));
            process.platform().enter_vfork_child();
            let refusals = [
                guard.create_event(&request(EventType::SIGNAL)).map(drop),
                guard.create_event(&request(EventType::MEMORY)).map(drop),
                guard.set_event(event.id),
                guard.reset_event(event.id),
                guard.wait_for_events(&mut [entry(event, 0)], true, 0).map(drop),
                guard.destroy_event(event.id, 1).map(drop),
            ];
            for refusal in refusals {
                let status = refusal.unwrap_err().status;
                assert_eq!(status, Status::KERNEL_IO_CHANNEL_NOT_OPENED);
            }
            let refused = machine.take_violations();
            assert!(refused.iter().all(|v| v.rule == Rule::ForeignKfdDescriptor), "{refused:?}");
            process.platform().leave_child();
            assert_eq!(held(&machine), before);
            assert_eq!(process.platform().process().events(None), events);
            signal(&guard);
            assert!(guard.destroy_event(event.id, 1).unwrap());
            machine.assert_no_violations();
        }
    }
}

#[test]
fn the_news_of_a_gpu_come_in_a_file() {
    in_contexts(DISCRETE, |machine, process, guard| {
        assert_eq!(guard.open_smi(0).unwrap_err().status, Status::INVALID_NODE_UNIT);
        assert_eq!(guard.open_smi(9).unwrap_err().status, Status::INVALID_NODE_UNIT);
        let before = held(machine);
        let file = guard.open_smi(1).unwrap();
        assert_ne!(held(machine), before);
        process.platform().process().close(file.0).unwrap();
        assert_eq!(held(machine), before);
    });
}

#[test]
fn callbacks_are_due_once_for_each_setting() {
    in_contexts(DISCRETE, |machine, process, guard| {
        assert_eq!(guard.pump_events(WAIT_FOREVER), Ok(vec![]), "nothing to wait for");
        let (one, other, level) = (signal(guard), signal(guard), manual(guard));
        let memory = guard.create_event(&request(EventType::MEMORY)).unwrap();
        let debug = guard.create_event(&request(EventType::DEBUG_EVENT)).unwrap();
        for (number, event) in (1..).zip([one, other, level, memory]) {
            guard.set_event_callback(event.id, 1, Some([number; 3])).unwrap();
        }
        let refused = guard.set_event_callback(debug.id, 1, Some([9; 3])).unwrap_err();
        assert_eq!(refused.status, Status::INVALID_PARAMETER);
        let refused = guard.set_event_callback(one.id, 2, Some([9; 3])).unwrap_err();
        assert_eq!(refused.status, Status::INVALID_HANDLE);
        let pump = |ms| -> Vec<usize> {
            guard.pump_events(ms).unwrap().into_iter().map(|words| words[0]).collect()
        };
        assert_eq!(pump(1), []);
        guard.set_event(one.id).unwrap();
        assert_eq!(pump(WAIT_FOREVER), [1]);
        assert_eq!(pump(1), []);
        // Twice before a pump is seen once.
        for id in [other.id, other.id, one.id] {
            guard.set_event(id).unwrap();
        }
        assert_eq!(pump(WAIT_FOREVER), [1, 2]);
        assert_eq!(pump(0), []);
        // One that stays set is due until it is reset.
        guard.set_event(level.id).unwrap();
        assert_eq!(pump(WAIT_FOREVER), [3]);
        assert_eq!(pump(WAIT_FOREVER), [3]);
        guard.reset_event(level.id).unwrap();
        assert_eq!(pump(0), []);
        let context = machine.leftovers().objects.iter().any(|line| line.starts_with("context"));
        let gpu = machine.topology().gpus().next().unwrap().1.id;
        let simulated = process.platform().process();
        simulated.fault_memory(context.then_some(0), gpu, 0x1000, MemoryFault::default());
        assert_eq!(pump(WAIT_FOREVER), [4]);
        assert_eq!(pump(0), []);
        // Taken away; destroyed.
        guard.set_event_callback(one.id, 1, None).unwrap();
        guard.set_event(one.id).unwrap();
        assert!(guard.destroy_event(other.id, 1).unwrap());
        assert_eq!(pump(0), []);
        // What was set before it had a callback counts.
        guard.set_event_callback(one.id, 1, Some([5; 3])).unwrap();
        assert_eq!(pump(WAIT_FOREVER), [5]);
    });
}

/// Of threads that pump at the same time, one gets a callback.
#[test]
fn each_callback_is_one_threads() {
    let machine = machine(DISCRETE);
    let process = process(&machine);
    open(&process).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let (event, end) = (signal(&guard), manual(&guard));
    guard.set_event_callback(event.id, 1, Some([1; 3])).unwrap();
    guard.set_event_callback(end.id, 1, Some([2; 3])).unwrap();
    let seen = thread::scope(|scope| {
        let pumps: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let guard = process.primary().unwrap();
                    let mut seen = 0;
                    loop {
                        let due = guard.pump_events(WAIT_FOREVER).unwrap();
                        seen += due.iter().filter(|words| words[0] == 1).count();
                        if due.iter().any(|words| words[0] == 2) {
                            return seen;
                        }
                    }
                })
            })
            .collect();
        for _ in 0..200 {
            guard.set_event(event.id).unwrap();
            thread::yield_now();
        }
        guard.set_event(end.id).unwrap();
        pumps.into_iter().map(|pump| pump.join().unwrap()).sum::<usize>()
    });
    assert!((1..=200).contains(&seen), "{seen}");
    // The last setting was not lost.
    let age = process.platform().process().events(None)[0].age;
    assert_eq!(age, 201);
}

#[test]
fn before_1_14_there_are_no_callbacks() {
    let machine = machine("cpu-only:cores=1,kernel=6.1");
    let process = process(&machine);
    open(&process).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let event = signal(&guard);
    let refused = guard.set_event_callback(event.id, 1, Some([1; 3])).unwrap_err();
    assert_eq!(refused.status, Status::NOT_SUPPORTED);
}

#[test]
fn setting_and_waiting_are_one_request_each() {
    let machine = machine(DISCRETE);
    let counters = Arc::new(Counters::new());
    let process: Process<Counted<Simulated, Arc<Counters>>> =
        Process::new(Counted::new(machine.spawn(Linux), Arc::clone(&counters)));
    process.open_primary(|| Ok(Options::default())).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let events: Vec<Event> = (0..64).map(|_| manual(&guard)).collect();
    for &event in &events {
        guard.set_event(event.id).unwrap();
    }
    let start = counters.snapshot();
    guard.set_event(events[0].id).unwrap();
    assert_eq!(wait(&guard, &events[..1], true, 0), Waited::Complete);
    assert_eq!(counters.snapshot().since(&start).system_calls(), 2);
    let start = counters.snapshot();
    assert_eq!(wait(&guard, &events, true, 0), Waited::Complete);
    assert_eq!(counters.snapshot().since(&start).system_calls(), 1);
    // With a slot at hand, one request makes an event and one takes it.
    let start = counters.snapshot();
    let event = signal(&guard);
    assert!(guard.destroy_event(event.id, 1).unwrap());
    assert_eq!(counters.snapshot().since(&start).system_calls(), 2);
}
