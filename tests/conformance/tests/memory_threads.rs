//! Two threads on one piece of memory, one of them inside the driver: nobody sends
//! a handle that is no more, nobody waits who need not, and what comes out is what
//! one call after the other could have brought about.

mod watched;

use std::thread;

use hsakmt_conformance::{Mode, held, machine};
use hsakmt_core::context::Options;
use hsakmt_core::error::{Error, Status};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags, PointerKind};
use hsakmt_core::process::{ContextHandle, Guard, Process};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Leftovers, Machine, SvmView};
use watched::{Desk, Part, Point, Role, Watched};

type Platform = Watched<Desk>;

const PAGE: u64 = 4096;

/// Small machines, so that many scenes take little time.
const PINNED: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,svm=0";
const ATTRIBUTED: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,svm=1";
const APU: &str = "apu:cus=2,cores=1,svm=0";
const SECONDARY: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,kernel=7.2";

/// A process with the context that a test is about.
struct Stage {
    machine: Machine,
    process: Process<Platform>,
    context: ContextHandle,
    mode: Mode,
    nodes: Vec<u32>,
    /// Memory of the caller; two pages and more.
    pool: Vec<u8>,
}

impl Stage {
    fn new(profile: &str, mode: Mode) -> Stage {
        Stage::with(profile, mode, &Options::default())
    }

    fn with(profile: &str, mode: Mode, options: &Options) -> Stage {
        let machine = machine(profile);
        let process = Process::new(Watched::new(machine.spawn(Linux), Desk::default()));
        process.open_primary(|| Ok(options.clone())).unwrap();
        process.primary().unwrap().acquire_machine().unwrap();
        let context = match mode {
            Mode::Primary => ContextHandle::PRIMARY,
            Mode::Secondary => process.open_secondary(options.clone()).unwrap(),
        };
        let guard = process.enter(context).unwrap();
        guard.acquire_machine().unwrap();
        let nodes = guard
            .machine(|machine| {
                let nodes = (0..).zip(machine.snapshot().nodes());
                Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
            })
            .unwrap();
        drop(guard);
        Stage { machine, process, context, mode, nodes, pool: vec![0; 64 << 10] }
    }

    fn enter(&self) -> Guard<'_, Platform> {
        self.process.enter(self.context).unwrap()
    }

    fn desk(&self) -> &Desk {
        self.process.platform().watch()
    }

    /// The first byte of a page of the caller's memory.
    fn page_of_pool(&self) -> u64 {
        (self.pool.as_ptr() as u64).next_multiple_of(PAGE)
    }

    fn close(self) {
        if self.mode == Mode::Secondary {
            self.process.close_secondary(self.context).unwrap();
        }
        self.process.close_primary().unwrap();
        self.desk().assert_no_faults("the close");
        self.machine.assert_no_violations();
    }

    /// Two calls, the first of which stops at a point of its k-th request until the
    /// second is through or sleeps. `None` when the first has fewer requests.
    fn race<A: Send, B: Send>(
        &self,
        stop: (usize, Point),
        first: impl FnOnce(&Guard<'_, Platform>) -> A + Send,
        second: impl FnOnce(&Guard<'_, Platform>) -> B + Send,
    ) -> Option<Race<A, B>> {
        let desk = self.desk();
        desk.begin();
        thread::scope(|scope| {
            let one = scope.spawn(|| {
                let guard = self.enter();
                desk.act(Role::First, Some(stop), || first(&guard))
            });
            if !desk.stopped(Role::First) {
                one.join().unwrap();
                return None;
            }
            let other = scope.spawn(|| {
                let guard = self.enter();
                desk.act(Role::Second, None, || second(&guard))
            });
            let waited = desk.blocked(Role::Second);
            desk.release(Role::First);
            let (first, _) = one.join().unwrap();
            let (second, part) = other.join().unwrap();
            Some(Race { first, second, waited, part })
        })
    }
}

/// What became of two calls.
struct Race<A, B> {
    first: A,
    second: B,
    /// Whether the second waited for the first.
    waited: bool,
    /// What the second did.
    part: Part,
}

/// What a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Allocated(MemoryFlags),
    /// Memory of the caller, registered so many times.
    Registered(u32),
}

/// What memory is before two calls meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Unmapped,
    OnOne,
    OnAll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Map,
    MapToOne,
    MapToOther,
    Unmap,
    Free,
    Register,
    Deregister,
    Query,
    Attach,
    Export,
}

const VERBS: [Verb; 10] = [
    Verb::Map,
    Verb::MapToOne,
    Verb::MapToOther,
    Verb::Unmap,
    Verb::Free,
    Verb::Register,
    Verb::Deregister,
    Verb::Query,
    Verb::Attach,
    Verb::Export,
];

/// What a call answered, without addresses.
type Answer = Result<Seen, Status>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Done,
    /// A map call that told another address.
    Elsewhere,
    Info {
        kind: PointerKind,
        node: u32,
        size: u64,
        registered: Vec<u32>,
        mapped: Vec<u32>,
        user_data: u64,
    },
}

#[derive(Debug, Clone, Copy)]
struct Subject {
    address: u64,
    size: u64,
    kind: Kind,
}

const TO_REGISTER: MemoryFlags = MemoryFlags::HOST_ACCESS.union(MemoryFlags::COARSE_GRAIN);

impl Stage {
    fn make(&self, kind: Kind, start: Start) -> Subject {
        let guard = self.enter();
        let subject = match kind {
            Kind::Allocated(flags) => {
                let size = 64 << 10;
                let node = self.nodes[0];
                let request = AllocationRequest { node, size, alignment: 0, flags, address: 0 };
                Subject { address: guard.allocate_memory(&request).unwrap(), size, kind }
            }
            Kind::Registered(count) => {
                let (address, size) = (self.page_of_pool() + 100, 20_000);
                for _ in 0..count {
                    guard.register_memory(address, size, TO_REGISTER, None).unwrap();
                }
                Subject { address, size, kind }
            }
        };
        match start {
            Start::Unmapped => {}
            Start::OnOne => {
                let one = &self.nodes[..1];
                guard.map_memory_to_nodes(subject.address, subject.size, one).unwrap();
            }
            Start::OnAll => {
                let all = &self.nodes;
                guard.map_memory_to_nodes(subject.address, subject.size, all).unwrap();
            }
        }
        subject
    }

    fn call(&self, guard: &Guard<'_, Platform>, verb: Verb, subject: Subject) -> Answer {
        let Subject { address, size, kind } = subject;
        let done = |result: Result<(), Error>| result.map(|()| Seen::Done);
        let mapped = |result: Result<u64, Error>| {
            result.map(|alternate| if alternate == 0 { Seen::Done } else { Seen::Elsewhere })
        };
        let result = match verb {
            Verb::Map => mapped(guard.map_memory(address, size)),
            Verb::MapToOne => mapped(guard.map_memory_to_nodes(address, size, &self.nodes[..1])),
            Verb::MapToOther => mapped(guard.map_memory_to_nodes(address, size, &self.nodes[1..])),
            Verb::Unmap => done(guard.unmap_memory(address)),
            Verb::Free => done(guard.free_memory(address, size)),
            Verb::Register => {
                let nodes = match kind {
                    Kind::Allocated(_) => Some(&self.nodes[..1]),
                    Kind::Registered(_) => None,
                };
                done(guard.register_memory(address, size, TO_REGISTER, nodes))
            }
            Verb::Deregister => done(guard.deregister_memory(address)),
            Verb::Query => guard.pointer_info(address + size - 1).map(|info| Seen::Info {
                kind: info.kind,
                node: info.node,
                size: info.size,
                registered: info.registered.to_vec(),
                mapped: info.mapped.to_vec(),
                user_data: info.user_data,
            }),
            Verb::Attach => done(guard.set_user_data(address, 7)),
            Verb::Export => done(guard.export_buffer(address + 1, 1).map(|exported| {
                self.process.platform().inner().process().close(exported.descriptor).unwrap();
            })),
        };
        result.map_err(|error| error.status)
    }

    /// Takes down whatever is left of memory.
    fn unmake(&self, subject: Subject) {
        let guard = self.enter();
        match subject.kind {
            Kind::Allocated(_) => {
                let _ = guard.unmap_memory(subject.address);
                let _ = guard.free_memory(subject.address, subject.size);
            }
            // As often as it may be registered, and once for what is left over.
            Kind::Registered(count) => {
                for _ in 0..count + 3 {
                    let _ = guard.deregister_memory(subject.address);
                }
            }
        }
    }

    /// What is there in the end: what the library says and what the driver has.
    fn end(&self, subject: Subject) -> (Answer, Vec<String>) {
        let guard = self.enter();
        (self.call(&guard, Verb::Query, subject), held(&self.machine).buffers)
    }

    /// Every scene of this memory: its calls in every order, stopped everywhere.
    fn every_pair(&self, kind: Kind) -> usize {
        self.every_pair_from(kind, &[Start::Unmapped, Start::OnOne, Start::OnAll])
    }

    /// The same of memory that begins so.
    fn every_pair_from(&self, kind: Kind, starts: &[Start]) -> usize {
        let mut races = 0;
        let guard = self.enter();
        let empty = held(&self.machine);
        for &start in starts {
            for first in VERBS {
                for second in VERBS {
                    let in_order = |one, other| {
                        let subject = self.make(kind, start);
                        let answers = [one, other].map(|verb| self.call(&guard, verb, subject));
                        let end = self.end(subject);
                        self.unmake(subject);
                        (answers, end)
                    };
                    let forth = in_order(first, second);
                    let ([second_answer, first_answer], end) = in_order(second, first);
                    let back = ([first_answer, second_answer], end);
                    for point in [Point::Before, Point::After] {
                        for request in 1.. {
                            let what = format!(
                                "{kind:?} {start:?}: {first:?} at {point:?} {request}, {second:?}"
                            );
                            let subject = self.make(kind, start);
                            let before = guard.pointer_info(subject.address).unwrap();
                            let (registered, mapped) =
                                (before.registered.to_vec(), before.mapped.to_vec());
                            let race = self.race(
                                (request, point),
                                |guard| self.call(guard, first, subject),
                                |guard| self.call(guard, second, subject),
                            );
                            let end = self.end(subject);
                            assert_eq!(before.registered, registered, "{what}: an array dangles");
                            assert_eq!(before.mapped, mapped, "{what}: an array dangles");
                            self.unmake(subject);
                            assert_same(&held(&self.machine), &empty, &what);
                            self.desk().assert_no_faults(&what);
                            let Some(race) = race else { break };
                            races += 1;
                            let seen = ([race.first, race.second], end);
                            assert!(
                                seen == forth || seen == back,
                                "{what}: {seen:?}\nis neither {forth:?}\nnor {back:?}"
                            );
                            if second == Verb::Query {
                                assert_eq!((race.waited, race.part.sleeps), (false, 0), "{what}");
                                assert_eq!(race.part.requests(), 0, "{what}");
                            }
                        }
                    }
                }
            }
        }
        races
    }
}

fn assert_same(now: &Leftovers, before: &Leftovers, what: &str) {
    assert!(now == before, "{what}\nis left: {now}\nwas: {before}");
}

const ALLOCATED: [MemoryFlags; 6] = [
    MemoryFlags::NON_PAGED,
    MemoryFlags::NON_PAGED.union(MemoryFlags::HOST_ACCESS),
    MemoryFlags::NON_PAGED.union(MemoryFlags::AQL_QUEUE),
    MemoryFlags::NON_PAGED.union(MemoryFlags::GTT_ACCESS).union(MemoryFlags::HOST_ACCESS),
    MemoryFlags::HOST_ACCESS,
    MemoryFlags::HOST_ACCESS.union(MemoryFlags::EXECUTE),
];

#[test]
fn every_pair_of_calls_on_allocated_memory() {
    let stage = Stage::new(PINNED, Mode::Primary);
    for flags in ALLOCATED {
        // The regions that addresses come from are made first.
        stage.unmake(stage.make(Kind::Allocated(flags), Start::OnAll));
    }
    for flags in ALLOCATED {
        let races = stage.every_pair(Kind::Allocated(flags));
        println!("{flags:?}: {races} meetings inside the driver");
        assert!(races > 200, "{races}");
    }
    stage.close();
}

/// Memory that is known by a number alone: no GPU can have it mapped, and its requests
/// are those of its beginning and its end.
#[test]
fn every_pair_of_calls_on_memory_without_an_address() {
    for (profile, mode) in [(PINNED, Mode::Primary), (SECONDARY, Mode::Secondary)] {
        let stage = Stage::new(profile, mode);
        for more in [MemoryFlags::empty(), MemoryFlags::GTT_ACCESS, MemoryFlags::COARSE_GRAIN] {
            let kind = Kind::Allocated(MemoryFlags::NON_PAGED | MemoryFlags::NO_ADDRESS | more);
            let first = stage.make(kind, Start::Unmapped);
            let _ = stage.call(&stage.enter(), Verb::Register, first);
            stage.unmake(first);
            let races = stage.every_pair_from(kind, &[Start::Unmapped]);
            println!("{kind:?}: {races} meetings inside the driver");
            // A free at least stops before and after its request, with each of the calls.
            assert!(races >= 2 * VERBS.len(), "{races}");
        }
        stage.close();
    }
}

/// Host memory that is the driver's, where the process's own is not wanted, and that
/// of machines whose GPUs read the process's memory by themselves.
#[test]
fn every_pair_of_calls_on_host_memory_without_user_pages() {
    let options = Options { userptr_for_paged_memory: false, ..Options::default() };
    let host = MemoryFlags::HOST_ACCESS;
    for (profile, some) in [(PINNED, true), (APU, false)] {
        let stage = Stage::with(profile, Mode::Primary, &options);
        for flags in [host, host | MemoryFlags::EXECUTE, host | MemoryFlags::READ_ONLY] {
            let kind = Kind::Allocated(flags);
            stage.unmake(stage.make(kind, Start::OnAll));
            let races = stage.every_pair(kind);
            println!("{profile} {flags:?}: {races} meetings inside the driver");
            assert!(races > 200 || !some, "{races}");
        }
        stage.close();
    }
}

#[test]
fn every_pair_of_calls_in_a_secondary_context() {
    let stage = Stage::new(SECONDARY, Mode::Secondary);
    for flags in ALLOCATED {
        stage.unmake(stage.make(Kind::Allocated(flags), Start::OnAll));
    }
    for flags in ALLOCATED {
        assert!(stage.every_pair(Kind::Allocated(flags)) > 200);
    }
    stage.close();
}

#[test]
fn every_pair_of_calls_on_registered_memory() {
    let stage = Stage::new(PINNED, Mode::Primary);
    stage.unmake(stage.make(Kind::Registered(1), Start::OnAll));
    for count in [1, 2] {
        let races = stage.every_pair(Kind::Registered(count));
        println!("registered {count} times: {races} meetings inside the driver");
        assert!(races > 80, "{races}");
    }
    stage.close();
}

/// Nobody waits for somebody else's memory, whatever is done to it.
#[test]
fn different_objects_do_not_wait_for_each_other() {
    let stage = Stage::new(PINNED, Mode::Primary);
    let kinds = ALLOCATED.map(Kind::Allocated);
    for first_kind in kinds.into_iter().chain([Kind::Registered(1)]) {
        for second_kind in kinds {
            for first in VERBS {
                for second in VERBS {
                    for start in [Start::Unmapped, Start::OnOne] {
                        let one = stage.make(first_kind, start);
                        let other = stage.make(second_kind, start);
                        let what = format!("{first:?} of {first_kind:?}, {second:?}");
                        let race = stage.race(
                            (1, Point::Before),
                            |guard| stage.call(guard, first, one),
                            |guard| stage.call(guard, second, other),
                        );
                        if let Some(race) = race {
                            assert_eq!((race.waited, race.part.sleeps), (false, 0), "{what}");
                        }
                        stage.unmake(one);
                        stage.unmake(other);
                    }
                }
            }
        }
    }
    stage.close();
}

/// The locks that a call takes when nobody else is there, by start and verb.
#[test]
fn locks_per_call_are_few() {
    for (profile, mode) in [(PINNED, Mode::Primary), (SECONDARY, Mode::Secondary)] {
        let stage = Stage::new(profile, mode);
        let kinds = ALLOCATED.map(Kind::Allocated).into_iter();
        let registered = (mode == Mode::Primary).then_some(Kind::Registered(1));
        for kind in kinds.chain(registered) {
            stage.unmake(stage.make(kind, Start::OnAll));
            for start in [Start::Unmapped, Start::OnOne, Start::OnAll] {
                for verb in VERBS {
                    let subject = stage.make(kind, start);
                    let guard = stage.enter();
                    let _ = stage.call(&guard, Verb::Query, subject);
                    let (answer, part) =
                        stage.desk().act(Role::First, None, || stage.call(&guard, verb, subject));
                    drop(guard);
                    stage.unmake(subject);
                    println!(
                        "{mode:?} {kind:?} {start:?} {verb:?}: {} locks {answer:?}",
                        part.locks
                    );
                    let most = match verb {
                        Verb::Query | Verb::Attach => 1,
                        Verb::Map | Verb::Unmap => 2,
                        Verb::MapToOne | Verb::MapToOther => 3,
                        Verb::Free => 4,
                        // The machine, the books; a list of nodes, too.
                        Verb::Register => 3,
                        Verb::Deregister | Verb::Export => 2,
                    };
                    assert!(part.locks <= most, "{kind:?} {start:?} {verb:?}: {}", part.locks);
                    assert_eq!(part.sleeps, 0);
                }
            }
            let guard = stage.enter();
            if let Kind::Registered(_) = kind {
                let (address, size) = (stage.page_of_pool() + 100, 20_000);
                let (answer, part) = stage.desk().act(Role::First, None, || {
                    guard.register_memory(address, size, TO_REGISTER, None)
                });
                answer.unwrap();
                assert!(part.locks <= 7, "register anew: {}", part.locks);
                guard.deregister_memory(address).unwrap();
            }
            if let Kind::Allocated(flags) = kind {
                let (size, node) = (64 << 10, stage.nodes[0]);
                let request = AllocationRequest { node, size, alignment: 0, flags, address: 0 };
                let (address, part) =
                    stage.desk().act(Role::First, None, || guard.allocate_memory(&request));
                assert!(part.locks <= 3, "{kind:?} allocate: {}", part.locks);
                guard.free_memory(address.unwrap(), size).unwrap();
            }
        }
        stage.close();
    }
}

/// B48: one pointer, registered by two threads at the same time.
#[test]
fn one_pointer_registered_by_two_threads_is_one_object() {
    for point in [Point::Before, Point::After] {
        let stage = Stage::new(PINNED, Mode::Primary);
        let before = held(&stage.machine).buffers;
        let (address, size) = (stage.page_of_pool() + 100, 20_000);
        let register =
            |guard: &Guard<'_, Platform>| guard.register_memory(address, size, TO_REGISTER, None);
        let race = stage.race((1, point), register, register).unwrap();
        race.first.unwrap();
        race.second.unwrap();
        assert!(!race.waited);
        assert_eq!(held(&stage.machine).buffers.len(), before.len() + 1, "one buffer");
        let guard = stage.enter();
        guard.map_memory(address, size).unwrap();
        guard.deregister_memory(address).unwrap();
        assert_eq!(guard.pointer_info(address).unwrap().mapped, stage.nodes);
        guard.deregister_memory(address).unwrap();
        let gone = guard.deregister_memory(address).unwrap_err();
        assert_eq!(gone.status, Status::MEMORY_NOT_REGISTERED);
        assert_eq!(held(&stage.machine).buffers, before);
        drop(guard);
        stage.close();
    }
}

/// A registration that meets another one of the same memory on its way out.
#[test]
fn a_registration_survives_the_end_of_another() {
    for point in [Point::Before, Point::After] {
        for stop in 1..=2 {
            let stage = Stage::new(PINNED, Mode::Primary);
            let before = held(&stage.machine).buffers;
            let desk = stage.desk();
            let (address, size) = (stage.page_of_pool() + 100, 20_000);
            thread::scope(|scope| {
                let one = scope.spawn(|| {
                    let guard = stage.enter();
                    desk.act(Role::First, Some((1, point)), || {
                        guard.register_memory(address, size, TO_REGISTER, None)
                    })
                });
                assert!(desk.stopped(Role::First));
                let guard = stage.enter();
                guard.register_memory(address, size, TO_REGISTER, None).unwrap();
                guard.map_memory(address, size).unwrap();
                let other = scope.spawn(|| {
                    let guard = stage.enter();
                    let stop = Some((stop, point));
                    desk.act(Role::Second, stop, || guard.deregister_memory(address))
                });
                assert!(desk.stopped(Role::Second));
                desk.release(Role::First);
                // It is through, or waits for the one that goes.
                desk.blocked(Role::First);
                desk.release(Role::Second);
                one.join().unwrap().0.unwrap();
                other.join().unwrap().0.unwrap();
            });
            let guard = stage.enter();
            let what = format!("{point:?} {stop}");
            assert_eq!(held(&stage.machine).buffers.len(), before.len() + 1, "{what}");
            let info = guard.pointer_info(address).unwrap();
            assert_eq!((info.kind, info.size), (PointerKind::RegisteredUser, size), "{what}");
            guard.map_memory(address, size).unwrap();
            guard.deregister_memory(address).unwrap();
            let gone = guard.deregister_memory(address).unwrap_err();
            assert_eq!(gone.status, Status::MEMORY_NOT_REGISTERED, "{what}");
            assert_eq!(held(&stage.machine).buffers, before, "{what}");
            drop(guard);
            stage.close();
        }
    }
}

/// The ranges of the driver, relative to the caller's memory.
fn ranges(stage: &Stage) -> Vec<SvmView> {
    let base = stage.page_of_pool();
    let mut all = stage.process.platform().inner().process().svm_ranges();
    for range in &mut all {
        range.start = range.start.wrapping_sub(base);
    }
    all
}

/// Registrations by attributes, some of which share a page: what the driver has in
/// the end is what one call after the other would have left.
#[test]
fn attributes_of_shared_pages_come_one_after_the_other() {
    type Step = fn(&Stage, &Guard<'_, Platform>);
    const EXTENDED: MemoryFlags = MemoryFlags::HOST_ACCESS.union(MemoryFlags::EXTENDED_COHERENT);
    let steps: [(&str, Step); 6] = [
        ("deregister", |stage, guard| guard.deregister_memory(stage.page_of_pool()).unwrap()),
        ("register", |stage, guard| {
            guard.register_memory(stage.page_of_pool(), 100, TO_REGISTER, None).unwrap();
        }),
        ("map", |stage, guard| {
            guard.map_memory(stage.page_of_pool(), 100).unwrap();
        }),
        ("register the neighbour", |stage, guard| {
            guard.register_memory(stage.page_of_pool() + 200, 100, EXTENDED, None).unwrap();
        }),
        ("register and map the neighbour", |stage, guard| {
            guard.register_memory(stage.page_of_pool() + 200, 100, EXTENDED, None).unwrap();
            guard.map_memory(stage.page_of_pool() + 200, 100).unwrap();
        }),
        ("deregister the neighbour", |stage, guard| {
            guard.deregister_memory(stage.page_of_pool() + 200).unwrap();
        }),
    ];
    // What was registered and mapped before: the neighbour too, or not.
    for neighbour in [false, true] {
        for (first_name, first) in steps {
            for (second_name, second) in steps {
                let make = || {
                    let stage = Stage::new(ATTRIBUTED, Mode::Primary);
                    let guard = stage.enter();
                    steps[1].1(&stage, &guard);
                    steps[2].1(&stage, &guard);
                    if neighbour {
                        steps[3].1(&stage, &guard);
                    }
                    drop(guard);
                    stage
                };
                let in_order = |one: Step, other: Step| {
                    let stage = make();
                    let guard = stage.enter();
                    one(&stage, &guard);
                    other(&stage, &guard);
                    let end = ranges(&stage);
                    drop(guard);
                    stage.close();
                    end
                };
                let (forth, back) = (in_order(first, second), in_order(second, first));
                for point in [Point::Before, Point::After] {
                    for request in 1.. {
                        let stage = make();
                        let race = stage.race(
                            (request, point),
                            |guard| first(&stage, guard),
                            |guard| second(&stage, guard),
                        );
                        let end = ranges(&stage);
                        stage.close();
                        if race.is_none() {
                            break;
                        }
                        assert!(
                            end == forth || end == back,
                            "neighbour {neighbour}: {first_name} at {point:?} {request}, \
                             {second_name}: {end:#?}\nis neither {forth:#?}\nnor {back:#?}"
                        );
                    }
                }
            }
        }
    }
}

/// A call on scratch addresses.
type Scratching = fn(&Stage, &Guard<'_, Platform>, u64) -> Result<(), Status>;

const SCRATCH: u64 = 1 << 20;
const SCRATCH_FLAGS: MemoryFlags = MemoryFlags::SCRATCH.union(MemoryFlags::NON_PAGED);

#[test]
fn every_pair_of_calls_on_scratch() {
    let verbs: [(&str, Scratching); 5] = [
        ("map", |_, guard, at| guard.map_memory(at, PAGE).map(drop).map_err(|e| e.status)),
        ("map elsewhere", |_, guard, at| {
            guard.map_memory(at + (64 << 10), PAGE).map(drop).map_err(|e| e.status)
        }),
        ("unmap", |_, guard, at| guard.unmap_memory(at).map_err(|e| e.status)),
        ("free", |_, guard, at| guard.free_memory(at, SCRATCH).map_err(|e| e.status)),
        ("allocate", |stage, guard, _| {
            let (size, node) = (SCRATCH, stage.nodes[0]);
            let flags = SCRATCH_FLAGS;
            let request = AllocationRequest { node, size, alignment: 0, flags, address: 0 };
            guard.allocate_memory(&request).map(drop).map_err(|e| e.status)
        }),
    ];
    for mapped in [false, true] {
        for (first_name, first) in verbs {
            for (second_name, second) in verbs {
                let make = || {
                    let stage = Stage::new(PINNED, Mode::Primary);
                    let guard = stage.enter();
                    let (size, node) = (SCRATCH, stage.nodes[0]);
                    let flags = SCRATCH_FLAGS;
                    let request = AllocationRequest { node, size, alignment: 0, flags, address: 0 };
                    let at = guard.allocate_memory(&request).unwrap();
                    if mapped {
                        guard.map_memory(at, PAGE).unwrap();
                    }
                    drop(guard);
                    (stage, at)
                };
                let in_order = |one: Scratching, other: Scratching| {
                    let (stage, at) = make();
                    let guard = stage.enter();
                    let answers = [one, other].map(|call| call(&stage, &guard, at));
                    let end = held(&stage.machine).buffers;
                    drop(guard);
                    stage.close();
                    (answers, end)
                };
                let forth = in_order(first, second);
                let ([second_answer, first_answer], end) = in_order(second, first);
                let back = ([first_answer, second_answer], end);
                for point in [Point::Before, Point::After] {
                    for request in 1.. {
                        let (stage, at) = make();
                        let race = stage.race(
                            (request, point),
                            |guard| first(&stage, guard, at),
                            |guard| second(&stage, guard, at),
                        );
                        let end = held(&stage.machine).buffers;
                        let what = format!(
                            "mapped {mapped}: {first_name} at {point:?} {request}, {second_name}"
                        );
                        stage.desk().assert_no_faults(&what);
                        stage.close();
                        let Some(race) = race else { break };
                        let seen = ([race.first, race.second], end);
                        assert!(
                            seen == forth || seen == back,
                            "{what}: {seen:?}\nis neither {forth:?}\nnor {back:?}"
                        );
                    }
                }
            }
        }
    }
}
