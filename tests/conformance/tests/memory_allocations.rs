//! B43: every memory of ours that is refused, one after the other, below every
//! memory call, and those of queues: the call says NO_MEMORY or does without, the machine and the books
//! are as before, and the same call works next.

mod watched;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use hsakmt_conformance::{held, machine};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Error, Status};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::{ContextHandle, Guard, Process};
use hsakmt_core::queue::QueueOptions;
use hsakmt_core::queue::plan::{Ring, Share};
use hsakmt_core::uapi::kfd::{QueueType, SvmAttribute, SvmAttributeType, SvmFlags};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Leftovers, Machine};
use watched::{Watch, Watched};

/// Refuses one allocation of a thread.
struct Refusing;

thread_local! {
    /// Allocations until the refused one; `None`: none is.
    static UNTIL: Cell<Option<u32>> = const { Cell::new(None) };
    /// Whether the thread is in the simulated system and not in the library.
    static OUTSIDE: Cell<bool> = const { Cell::new(false) };
}

fn refused() -> bool {
    if OUTSIDE.get() {
        return false;
    }
    let until = UNTIL.get();
    UNTIL.set(until.map(|until| until.wrapping_sub(1)));
    until == Some(0)
}

// SAFETY: hands everything on to the system's allocator, or returns null, which
// an allocator may do at any time.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refused() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; the pointer is the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refused() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise; the pointer is the system allocator's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Keeps the simulated system out of it.
struct Border;

impl Watch for Border {
    fn leaves(&self) {
        OUTSIDE.set(true);
    }

    fn returns(&self) {
        OUTSIDE.set(false);
    }
}

type Platform = Watched<Border>;

const PINNED: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,svm=0";
const ATTRIBUTED: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,svm=1";
const SECONDARY: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,kernel=7.2";
const TO_REGISTER: MemoryFlags = MemoryFlags::HOST_ACCESS.union(MemoryFlags::COARSE_GRAIN);

/// What is allocated: a name, flags and bytes.
const KINDS: [(&str, MemoryFlags, u64); 10] = [
    ("VRAM", MemoryFlags::NON_PAGED, 64 << 10),
    ("VRAM, 2 GiB", MemoryFlags::NON_PAGED, 2 << 30),
    ("VRAM for the host", MemoryFlags::NON_PAGED.union(MemoryFlags::HOST_ACCESS), 64 << 10),
    ("a ring", MemoryFlags::NON_PAGED.union(MemoryFlags::AQL_QUEUE), 64 << 10),
    ("VRAM without an address", MemoryFlags::NON_PAGED.union(MemoryFlags::NO_ADDRESS), 64 << 10),
    ("paged", MemoryFlags::HOST_ACCESS, 64 << 10),
    ("paged, 4 MiB", MemoryFlags::HOST_ACCESS, 4 << 20),
    (
        "GTT",
        MemoryFlags::NON_PAGED.union(MemoryFlags::GTT_ACCESS).union(MemoryFlags::HOST_ACCESS),
        64 << 10,
    ),
    ("addresses", MemoryFlags::ONLY_ADDRESS, 64 << 10),
    ("scratch", MemoryFlags::SCRATCH.union(MemoryFlags::NON_PAGED), 1 << 20),
];

/// A context, and what is known of it in a scene.
struct Stage<'a> {
    guard: Guard<'a, Platform>,
    nodes: Vec<u32>,
    /// Memory of the caller.
    pool: u64,
}

impl Stage<'_> {
    fn allocate(&self, (_, flags, size): (&str, MemoryFlags, u64)) -> Result<u64, Error> {
        let node = self.nodes[0];
        self.guard.allocate_memory(&AllocationRequest {
            node,
            size,
            alignment: 0,
            flags,
            address: 0,
        })
    }
}

/// What a scene needs, the call it is about, and how what is there then goes.
struct Scene<'s> {
    name: String,
    prepare: &'s dyn Fn(&Stage<'_>) -> u64,
    call: &'s dyn Fn(&Stage<'_>, u64) -> Result<u64, Error>,
    clear: &'s dyn Fn(&Stage<'_>, u64, u64),
}

/// Everything but addresses that were reserved for later.
fn but_addresses(mut left: Leftovers) -> Leftovers {
    for held in left.processes.values_mut() {
        held.anonymous_bytes = 0;
    }
    left
}

/// Runs a scene with its k-th allocation refused; `None` when it has fewer, else
/// whether the call failed.
fn refuse(
    machine: &Machine,
    process: &Process<Platform>,
    secondary: bool,
    scene: &Scene<'_>,
    (warm, k): (usize, u32),
) -> Option<bool> {
    let what = format!("{}, {warm} objects there, allocation {k}", scene.name);
    let pool = vec![0_u8; 64 << 10];
    let empty = if secondary { Some(held(machine)) } else { None };
    let context = if secondary {
        process.open_secondary(Options::default()).unwrap()
    } else {
        process.open_primary(|| Ok(Options::default())).unwrap();
        ContextHandle::PRIMARY
    };
    let guard = process.enter(context).unwrap();
    guard.acquire_machine().unwrap();
    let nodes: Vec<u32> = guard
        .machine(|machine| {
            let nodes = (0..).zip(machine.snapshot().nodes());
            Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
        })
        .unwrap();
    let stage = Stage { guard, nodes, pool: pool.as_ptr() as u64 + 100 };
    let others: Vec<u64> = (0..warm).map(|_| stage.allocate(KINDS[0]).unwrap()).collect();
    let subject = (scene.prepare)(&stage);
    let before = but_addresses(held(machine));

    UNTIL.set(Some(k));
    let answer = (scene.call)(&stage, subject);
    let reached = UNTIL.get().is_none_or(|until| until > u32::MAX / 2);
    UNTIL.set(None);

    let failed = answer.is_err();
    let made = match answer {
        Ok(made) => made,
        Err(error) => {
            assert!(reached, "{what}: {error} without a refusal");
            // The status of hsaKmtAllocMemory for host memory that is not there is ERROR.
            let expected = [Status::NO_MEMORY, Status::ERROR];
            assert!(expected.contains(&error.status), "{what}: {error}");
            assert!(error.errno.is_none_or(|errno| errno == Errno::ENOMEM), "{what}: {error}");
            assert_eq!(but_addresses(held(machine)), before, "{what}: {error}");
            for &other in &others {
                assert_eq!(stage.guard.pointer_info(other).unwrap().gpu_address, other, "{what}");
            }
            (scene.call)(&stage, subject)
                .unwrap_or_else(|again| panic!("{what}: {error}; and again: {again}"))
        }
    };
    (scene.clear)(&stage, subject, made);
    for other in others {
        stage.guard.free_memory(other, 64 << 10).unwrap();
    }
    drop(stage);
    if secondary {
        process.close_secondary(context).unwrap();
    } else {
        process.close_primary().unwrap();
    }
    if let Some(empty) = empty {
        assert_eq!(held(machine), empty, "{what}");
    }
    drop(pool);
    reached.then_some(failed)
}

/// Whether a call allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Once at least, with some number of objects there.
    Memory,
    /// Never: what gives something back cannot fail for want of memory.
    Nothing,
}

fn every_allocation(profile: &str, secondary: bool, scene: &Scene<'_>, needs: Needs) {
    let machine = machine(profile);
    let process = Process::new(Watched::new(machine.spawn(Linux), Border));
    if secondary {
        process.open_primary(|| Ok(Options::default())).unwrap();
        process.primary().unwrap().acquire_machine().unwrap();
    }
    let (mut refusals, mut failures) = (0, 0);
    // The books grow in steps, so that what a call needs depends on what is there.
    for warm in (0..20).chain([31, 32, 33, 63, 64, 65, 127, 128]) {
        let mut k = 0;
        while let Some(failed) = refuse(&machine, &process, secondary, scene, (warm, k)) {
            refusals += 1;
            failures += u32::from(failed);
            k += 1;
        }
    }
    if refusals != 0 {
        println!("{profile}, {}: {refusals} refusals, {failures} failures", scene.name);
    }
    assert_eq!(refusals != 0, needs == Needs::Memory, "{}: {refusals} refusals", scene.name);
    machine.assert_no_violations();
}

fn places() -> [(&'static str, bool); 3] {
    [(PINNED, false), (ATTRIBUTED, false), (SECONDARY, true)]
}

#[test]
fn allocations() {
    for (profile, secondary) in places() {
        for kind in KINDS {
            let scene = Scene {
                name: format!("allocate {}", kind.0),
                prepare: &|_| 0,
                call: &|stage, _| stage.allocate(kind),
                clear: &|stage, _, made| stage.guard.free_memory(made, kind.2).unwrap(),
            };
            // Scratch addresses have a place in the books already.
            let scratch = kind.1.contains(MemoryFlags::SCRATCH);
            let needs = if scratch { Needs::Nothing } else { Needs::Memory };
            every_allocation(profile, secondary, &scene, needs);
        }
    }
}

#[test]
fn maps_unmaps_queries_and_frees() {
    type Verb = fn(&Stage<'_>, u64, u64) -> Result<u64, Error>;
    let verbs: [(&str, bool, Verb); 6] = [
        ("map", false, |stage, at, size| stage.guard.map_memory(at, size)),
        ("map to one", true, |stage, at, size| {
            stage.guard.map_memory_to_nodes(at, size, &stage.nodes[1..])
        }),
        ("unmap", true, |stage, at, _| stage.guard.unmap_memory(at).map(|()| 0)),
        ("query", true, |stage, at, _| {
            let info = stage.guard.pointer_info(at)?;
            assert_eq!(info.mapped, stage.nodes);
            Ok(0)
        }),
        ("attach", true, |stage, at, _| stage.guard.set_user_data(at, 1).map(|()| 0)),
        ("free", false, |stage, at, size| stage.guard.free_memory(at, size).map(|()| 0)),
    ];
    for (profile, secondary) in places() {
        for kind in KINDS {
            let unnamed = MemoryFlags::NO_ADDRESS | MemoryFlags::ONLY_ADDRESS;
            let scratch = kind.1.contains(MemoryFlags::SCRATCH);
            for (name, mapped, verb) in verbs {
                // Scratch says nothing of itself, and what has no memory maps nowhere.
                if kind.1.intersects(unnamed) && name != "free"
                    || scratch && ["query", "attach", "map to one"].contains(&name)
                {
                    continue;
                }
                let scene = Scene {
                    name: format!("{name} {}", kind.0),
                    prepare: &|stage| {
                        let address = stage.allocate(kind).unwrap();
                        if mapped {
                            stage.guard.map_memory(address, kind.2).unwrap();
                        }
                        address
                    },
                    call: &|stage, address| verb(stage, address, kind.2),
                    clear: &|stage, address, _| {
                        if name != "free" {
                            stage.guard.unmap_memory(address).unwrap();
                            stage.guard.free_memory(address, kind.2).unwrap();
                        }
                    },
                };
                let of_scratch = scratch && name == "map";
                let needs =
                    if of_scratch || name == "query" { Needs::Memory } else { Needs::Nothing };
                every_allocation(profile, secondary, &scene, needs);
            }
        }
    }
}

#[test]
fn registrations_and_attributes() {
    type Verb = fn(&Stage<'_>) -> Result<(), Error>;
    const SIZE: u64 = 20_000;
    let nothing: Verb = |_| Ok(());
    let register: Verb = |stage| stage.guard.register_memory(stage.pool, SIZE, TO_REGISTER, None);
    let register_to_one: Verb = |stage| {
        let one = Some(&stage.nodes[..1]);
        stage.guard.register_memory(stage.pool, SIZE, TO_REGISTER, one)
    };
    let map: Verb = |stage| stage.guard.map_memory(stage.pool, SIZE).map(drop);
    let register_and_map: Verb = |stage| {
        stage.guard.register_memory(stage.pool, SIZE, TO_REGISTER, None)?;
        stage.guard.map_memory(stage.pool, SIZE).map(drop)
    };
    let unmap: Verb = |stage| stage.guard.unmap_memory(stage.pool);
    let deregister: Verb = |stage| stage.guard.deregister_memory(stage.pool);
    let query: Verb = |stage| stage.guard.pointer_info(stage.pool).map(drop);
    let set: Verb = |stage| {
        let flags =
            SvmAttribute { r#type: SvmAttributeType::SET_FLAGS, value: SvmFlags::COHERENT.bits() };
        let access = SvmAttribute { r#type: SvmAttributeType::ACCESS, value: stage.nodes[0] };
        let page = stage.pool.next_multiple_of(4096);
        stage.guard.set_svm_attributes(page, 4096, &[flags, access])
    };
    let get: Verb = |stage| {
        let flags = SvmAttribute { r#type: SvmAttributeType::SET_FLAGS, value: 0 };
        let access = SvmAttribute { r#type: SvmAttributeType::ACCESS, value: stage.nodes[0] };
        let page = stage.pool.next_multiple_of(4096);
        let mut attributes = [flags, access];
        stage.guard.svm_attributes(page, 4096, &mut attributes)
    };
    let available: Verb = |stage| stage.guard.available_memory(stage.nodes[0]).map(drop);
    use Needs::{Memory, Nothing};
    let scenes: [(&str, Verb, Verb, Needs); 11] = [
        ("register", nothing, register, Memory),
        ("register to one", nothing, register_to_one, Memory),
        ("register again", register, register, Nothing),
        ("map registered", register, map, Nothing),
        ("map registered again", register_and_map, map, Nothing),
        ("unmap registered", register_and_map, unmap, Nothing),
        ("deregister", register_and_map, deregister, Nothing),
        ("query registered", register_and_map, query, Memory),
        ("set attributes", nothing, set, Memory),
        ("get attributes", nothing, get, Memory),
        ("available memory", nothing, available, Nothing),
    ];
    for profile in [PINNED, ATTRIBUTED] {
        for (name, prepare, call, needs) in scenes {
            if name.contains("attributes") && profile == PINNED
                || name == "query registered" && profile == ATTRIBUTED
            {
                continue;
            }
            let scene = Scene {
                name: name.to_owned(),
                prepare: &|stage| {
                    prepare(stage).unwrap();
                    0
                },
                call: &|stage, _| call(stage).map(|()| 0),
                clear: &|stage, _, _| {
                    for _ in 0..3 {
                        let _ = stage.guard.deregister_memory(stage.pool);
                    }
                },
            };
            every_allocation(profile, false, &scene, needs);
        }
    }
}

#[test]
fn queues() {
    const RING: u64 = 64 << 10;
    let create = |stage: &Stage<'_>, ring: u64| {
        let options = QueueOptions {
            node: stage.nodes[0],
            queue_type: QueueType::COMPUTE,
            share: Share { percentage: 100, priority: 0 },
            ring: Ring { address: ring, bytes: RING },
            sdma_engine: 0,
            metadata_ring_bytes: 0,
            aql_pointers: None,
            error_event: 0,
            error_reason: 0,
        };
        Ok(stage.guard.create_queue(&options)?.id)
    };
    // A queue was there before, so that the doorbells are.
    let ring = |stage: &Stage<'_>| {
        let ring = stage.allocate(("", MemoryFlags::HOST_ACCESS, RING)).unwrap();
        stage.guard.map_memory_to_nodes(ring, RING, &stage.nodes[..1]).unwrap();
        stage.guard.destroy_queue(create(stage, ring).unwrap()).unwrap();
        ring
    };
    let free = |stage: &Stage<'_>, ring: u64| {
        stage.guard.unmap_memory(ring).unwrap();
        stage.guard.free_memory(ring, RING).unwrap();
    };
    for (profile, secondary) in places() {
        let scene = Scene {
            name: "create a queue".to_owned(),
            prepare: &ring,
            call: &create,
            clear: &|stage, ring, queue| {
                stage.guard.destroy_queue(queue).unwrap();
                free(stage, ring);
            },
        };
        every_allocation(profile, secondary, &scene, Needs::Memory);
        let queue = Cell::new(0);
        let scene = Scene {
            name: "destroy a queue".to_owned(),
            prepare: &|stage| {
                let ring = ring(stage);
                queue.set(create(stage, ring).unwrap());
                ring
            },
            call: &|stage, _| stage.guard.destroy_queue(queue.get()).map(|()| 0),
            clear: &|stage, ring, _| free(stage, ring),
        };
        every_allocation(profile, secondary, &scene, Needs::Nothing);
    }
}
