//! Forks while another thread is inside a memory call: the child knows nothing and
//! can live its own life, the parent's memory is as it was.

mod watched;

use std::thread;

use hsakmt_conformance::{held, machine};
use hsakmt_core::context::Options;
use hsakmt_core::error::{Error, Status};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::{ContextHandle, Guard, Process};
use hsakmt_core::uapi::kfd::{SvmAttribute, SvmAttributeType, SvmFlags};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Leftovers, Machine, Pid, Rule};
use watched::{Desk, Point, Role, Watched};

type Platform = Watched<Desk>;

const NOT_OPENED: Status = Status::KERNEL_IO_CHANNEL_NOT_OPENED;
const PINNED: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,svm=0";
const ATTRIBUTED: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,svm=1";
const SIZE: u64 = 64 << 10;
const USER_SIZE: u64 = 20_000;

const KINDS: [MemoryFlags; 5] = [
    MemoryFlags::NON_PAGED,
    MemoryFlags::NON_PAGED.union(MemoryFlags::HOST_ACCESS),
    MemoryFlags::NON_PAGED.union(MemoryFlags::NO_ADDRESS),
    MemoryFlags::NON_PAGED.union(MemoryFlags::GTT_ACCESS).union(MemoryFlags::HOST_ACCESS),
    MemoryFlags::HOST_ACCESS,
];
const TO_REGISTER: MemoryFlags = MemoryFlags::HOST_ACCESS.union(MemoryFlags::COARSE_GRAIN);

/// A process with memory of each kind, on each of which a call can be made that
/// reaches the driver.
struct Stage {
    machine: Machine,
    process: Process<Platform>,
    nodes: Vec<u32>,
    unmapped: Vec<u64>,
    mapped: Vec<u64>,
    pool: Vec<u8>,
}

fn request(node: u32, flags: MemoryFlags) -> AllocationRequest {
    AllocationRequest { node, size: SIZE, alignment: 0, flags, address: 0 }
}

fn gpus(guard: &Guard<'_, Platform>) -> Vec<u32> {
    guard
        .machine(|machine| {
            let nodes = (0..).zip(machine.snapshot().nodes());
            Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
        })
        .unwrap()
}

impl Stage {
    /// A stage for ever: a thread that is caught in it may never end.
    fn new(profile: &str) -> &'static Stage {
        let machine = machine(profile);
        let process = Process::new(Watched::new(machine.spawn(Linux), Desk::default()));
        process.open_primary(|| Ok(Options::default())).unwrap();
        let guard = process.primary().unwrap();
        guard.acquire_machine().unwrap();
        let nodes = gpus(&guard);
        let make = |flags| guard.allocate_memory(&request(nodes[0], flags)).unwrap();
        let unmapped: Vec<u64> = KINDS.map(make).to_vec();
        let mapped: Vec<u64> = KINDS.map(make).to_vec();
        for (&address, flags) in mapped.iter().zip(KINDS) {
            if !flags.contains(MemoryFlags::NO_ADDRESS) {
                guard.map_memory(address, SIZE).unwrap();
            }
        }
        let pool = vec![0; 256 << 10];
        drop(guard);
        let stage = Stage { machine, process, nodes, unmapped, mapped, pool };
        let guard = stage.process.primary().unwrap();
        guard.register_memory(stage.registered(), USER_SIZE, TO_REGISTER, None).unwrap();
        guard.map_memory(stage.registered(), USER_SIZE).unwrap();
        drop(guard);
        Box::leak(Box::new(stage))
    }

    fn registered(&self) -> u64 {
        self.pool.as_ptr() as u64 + 100
    }

    /// A page of the caller's memory that nobody has registered.
    fn other(&self) -> u64 {
        (self.pool.as_ptr() as u64 + (128 << 10)).next_multiple_of(4096)
    }

    fn desk(&self) -> &Desk {
        self.process.platform().watch()
    }
}

type Call = fn(&Stage, &Guard<'_, Platform>) -> Result<(), Error>;

/// Every call that reaches the driver.
const CALLS: [(&str, Call); 9] = [
    ("allocate", |stage, guard| {
        guard.allocate_memory(&request(stage.nodes[0], KINDS[0])).map(drop)
    }),
    ("allocate paged", |stage, guard| {
        guard.allocate_memory(&request(stage.nodes[0], KINDS[4])).map(drop)
    }),
    ("map", |stage, guard| guard.map_memory(stage.unmapped[0], SIZE).map(drop)),
    ("unmap", |stage, guard| guard.unmap_memory(stage.mapped[0])),
    ("free", |stage, guard| guard.free_memory(stage.unmapped[1], SIZE)),
    ("free paged", |stage, guard| guard.free_memory(stage.unmapped[4], SIZE)),
    ("register", |stage, guard| guard.register_memory(stage.other(), 5000, TO_REGISTER, None)),
    ("deregister", |stage, guard| guard.deregister_memory(stage.registered())),
    ("available memory", |stage, guard| guard.available_memory(stage.nodes[0]).map(drop)),
];

/// A life of each kind, in a context that begins empty.
fn live(process: &Process<Platform>, stage: &Stage) {
    process.open_primary(|| Ok(Options::default())).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    for &address in stage.unmapped.iter().chain(&stage.mapped).chain([&stage.registered()]) {
        assert_eq!(guard.pointer_info(address).unwrap_err().status, Status::ERROR);
    }
    let nodes = gpus(&guard);
    for flags in KINDS {
        let address = guard.allocate_memory(&request(nodes[0], flags)).unwrap();
        if !flags.contains(MemoryFlags::NO_ADDRESS) {
            guard.map_memory(address, SIZE).unwrap();
            assert_eq!(guard.pointer_info(address).unwrap().mapped, nodes);
            guard.unmap_memory(address).unwrap();
        }
        guard.free_memory(address, SIZE).unwrap();
    }
    let user = stage.registered();
    guard.register_memory(user, USER_SIZE, TO_REGISTER, None).unwrap();
    guard.map_memory(user, USER_SIZE).unwrap();
    guard.unmap_memory(user).unwrap();
    guard.deregister_memory(user).unwrap();
    drop(guard);
    process.close_primary().unwrap();
}

/// What the machine holds of one process, but for ranges that no GPU may access: the
/// driver keeps what it knows of pages as long as they are mapped.
fn of_process(left: &Leftovers, pid: Pid) -> Vec<String> {
    let name = format!("process {pid}");
    let lines = left.buffers.iter().chain(&left.ranges);
    lines
        .filter(|line| line.starts_with(&name) && !line.ends_with("open to 0 GPUs"))
        .cloned()
        .collect()
}

#[test]
fn a_child_of_a_fork_inside_each_call_lives_its_own_life() {
    for profile in [PINNED, ATTRIBUTED] {
        for (name, call) in CALLS {
            for point in [Point::Before, Point::After] {
                let stage = Stage::new(profile);
                // It stays where it is caught for ever.
                thread::spawn(move || {
                    let guard = stage.process.primary().unwrap();
                    stage.desk().act(Role::First, Some((1, point)), || call(stage, &guard))
                });
                assert!(stage.desk().stopped(Role::First), "{name}");
                let parent = stage.process.platform().inner().process().pid();
                let before = held(&stage.machine);
                let child = stage.process.platform().inner().enter_fork_child();
                assert_eq!(stage.process.primary().err().unwrap().status, NOT_OPENED);
                live(&stage.process, stage);
                live(&stage.process, stage);
                assert_eq!(of_process(&held(&stage.machine), child.pid()), [""; 0], "{name}");
                stage.process.platform().inner().leave_child();
                let after = held(&stage.machine);
                assert_eq!(of_process(&after, parent), of_process(&before, parent), "{name}");
                assert_eq!(after, before, "{profile} {name} {point:?}");
                stage.machine.assert_no_violations();
            }
        }
    }
}

/// The child does nothing with the library; the parent's call goes on, and so does
/// everything of the parent.
#[test]
fn a_parent_goes_on_after_a_fork_inside_each_call() {
    for profile in [PINNED, ATTRIBUTED] {
        for (name, call) in CALLS {
            let stage = Stage::new(profile);
            thread::scope(|scope| {
                let caught = scope.spawn(|| {
                    let guard = stage.process.primary().unwrap();
                    let stop = Some((1, Point::Before));
                    stage.desk().act(Role::First, stop, || call(stage, &guard))
                });
                assert!(stage.desk().stopped(Role::First), "{name}");
                let before = held(&stage.machine);
                stage.process.platform().inner().enter_fork_child();
                assert_eq!(stage.process.primary().err().unwrap().status, NOT_OPENED);
                let entered = stage.process.enter(ContextHandle::PRIMARY);
                assert_eq!(entered.err().unwrap().status, NOT_OPENED);
                stage.process.platform().inner().leave_child();
                assert_eq!(held(&stage.machine), before, "{name}");
                stage.desk().release(Role::First);
                caught.join().unwrap().0.unwrap();
            });
            let guard = stage.process.primary().unwrap();
            for &address in stage.unmapped.iter().chain(&stage.mapped) {
                let freed =
                    ["free", "free paged"].contains(&name) && guard.pointer_info(address).is_err();
                if !freed {
                    guard.unmap_memory(address).unwrap();
                    guard.free_memory(address, SIZE).unwrap();
                }
            }
            let _ = guard.deregister_memory(stage.registered());
            drop(guard);
            stage.process.close_primary().unwrap();
            stage.desk().assert_no_faults(name);
            stage.machine.assert_no_violations();
        }
    }
}

/// What the library says of everything.
fn said(stage: &Stage) -> Vec<String> {
    let guard = stage.process.primary().unwrap();
    let all = stage.unmapped.iter().chain(&stage.mapped).copied();
    let all = all.chain([stage.registered(), stage.other()]);
    all.map(|address| format!("{:?}", guard.pointer_info(address))).collect()
}

/// What the driver has of attributes.
fn ranges(stage: &Stage) -> Vec<kfd_sim::SvmView> {
    stage.process.platform().inner().process().svm_ranges()
}

#[test]
fn a_vfork_child_changes_nothing() {
    let more: [(&str, Call); 3] = [
        ("unmap registered", |stage, guard| guard.unmap_memory(stage.registered())),
        ("map on one", |stage, guard| {
            guard.map_memory_to_nodes(stage.unmapped[3], SIZE, &stage.nodes[1..]).map(drop)
        }),
        ("set attributes", |stage, guard| {
            let coherent = SvmAttribute {
                r#type: SvmAttributeType::SET_FLAGS,
                value: SvmFlags::COHERENT.bits(),
            };
            guard.set_svm_attributes(stage.other(), 4096, &[coherent])
        }),
    ];
    for profile in [PINNED, ATTRIBUTED] {
        for (name, call) in CALLS.into_iter().chain(more) {
            let svm = profile == ATTRIBUTED;
            // Without a word to the driver in the one mode or the other.
            if name == "unmap registered" && svm || name == "set attributes" && !svm {
                continue;
            }
            let stage = Stage::new(profile);
            let (before, words, attributes) = (held(&stage.machine), said(stage), ranges(stage));
            stage.process.platform().inner().enter_vfork_child();
            let guard = stage.process.primary().unwrap();
            let error = call(stage, &guard).expect_err(name);
            assert_eq!(error.status, NOT_OPENED, "{profile} {name}: {error}");
            drop(guard);
            let refused = stage.machine.take_violations();
            assert!(refused.iter().all(|v| v.rule == Rule::ForeignKfdDescriptor), "{refused:?}");
            stage.process.platform().inner().leave_child();
            assert_eq!(held(&stage.machine), before, "{name}");
            assert_eq!(said(stage), words, "{name}");
            assert_eq!(ranges(stage), attributes, "{name}");
            // What the child was refused works in the parent.
            call(stage, &stage.process.primary().unwrap()).unwrap();
            stage.process.close_primary().unwrap();
            stage.machine.assert_no_violations();
        }
    }
}
