//! Memory of the process that is too large for one buffer of the driver: it is made of
//! several, which come, are mapped and go together. Addresses alone: nothing here has
//! contents.

use std::cell::Cell;

use hsakmt_conformance::{Alteration, Altered, held, machine};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::Status;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags, PointerKind};
use hsakmt_core::process::{ContextHandle, Guard, Process};
use hsakmt_core::seam::{Call, Driver, Mapping, Os, Placement, Platform};
use kfd_sim::{AddressesOnly, Machine};

const GIB: u64 = 1 << 30;
const PAGE: u64 = 4096;
/// The driver keeps the pages of a buffer in one array: 512 GiB and above do not fit.
const BUFFER_END: u64 = 512 * GIB;
/// Two buffers.
const ALLOCATED: u64 = 700 * GIB + 3 * PAGE;
/// Three.
const REGISTERED: u64 = 1200 * GIB + 3 * PAGE;
/// Two GPUs that reach 47 bits, beside as much memory as that takes.
const PROFILE: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,svm=0,ram=8T";
const PAGED: MemoryFlags = MemoryFlags::HOST_ACCESS;

/// Requests of one name are counted; one of them may fail.
#[derive(Default)]
struct Failing {
    name: Cell<&'static str>,
    /// From 1; 0 for none.
    at: Cell<usize>,
    seen: Cell<usize>,
}

impl Failing {
    fn expect(&self, name: &'static str, at: usize) {
        self.name.set(name);
        self.at.set(at);
        self.seen.set(0);
    }
}

impl Alteration for Failing {
    /// The simulated process has 1 TiB for mappings; large ones go below.
    fn map(&self, os: &impl Os, mapping: Mapping) -> Result<usize, Errno> {
        let placement = match mapping.placement {
            Placement::Anywhere if mapping.length as u64 > GIB => Placement::Hint(1 << 44),
            placement => placement,
        };
        os.map(Mapping { placement, ..mapping })
    }

    fn execute<D: Driver>(
        &self,
        driver: &D,
        device: &D::Device,
        call: &mut Call<'_, '_>,
    ) -> Result<u32, Errno> {
        if call.name == self.name.get() {
            self.seen.set(self.seen.get() + 1);
            if self.seen.get() == self.at.get() {
                return Err(Errno::ENOMEM);
            }
        }
        driver.execute(device, call)
    }
}

/// Runs `test` in a primary context on the machine.
fn in_context(
    failing: &Failing,
    test: impl FnOnce(&Machine, &Guard<'_, Altered<'_, kfd_sim::SimPlatform<AddressesOnly>, Failing>>),
) {
    let machine = machine(PROFILE);
    let process = Process::new(Altered::new(machine.spawn(AddressesOnly::new()), failing));
    process.open_primary(|| Ok(Options::default())).unwrap();
    let guard = process.enter(ContextHandle::PRIMARY).unwrap();
    guard.acquire_machine().unwrap();
    test(&machine, &guard);
    drop(guard);
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

fn gpus<P: Platform>(guard: &Guard<'_, P>) -> Vec<u32> {
    guard
        .machine(|machine| {
            let nodes = (0..).zip(machine.snapshot().nodes());
            Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
        })
        .unwrap()
}

/// The bytes of the buffers over memory of the process, and how many GPUs map each.
fn user_buffers(machine: &Machine) -> Vec<(u64, u64)> {
    let number = |line: &str, before: &str, after: &str| {
        let start = line.find(before).unwrap() + before.len();
        let end = start + line[start..].find(after).unwrap();
        let text = &line[start..end];
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None => text.parse().unwrap(),
        }
    };
    let lines = held(machine).buffers;
    let user = lines.iter().filter(|line| line.contains("user memory"));
    user.map(|line| (number(line, ": ", " bytes"), number(line, "mapped on ", " GPU"))).collect()
}

/// What is true of each buffer of a large whole.
fn assert_parts(machine: &Machine, size: u64, mapped: u64) {
    let parts = user_buffers(machine);
    assert_eq!(parts.len() as u64, size.div_ceil(BUFFER_END), "{parts:x?}");
    assert_eq!(parts.iter().map(|(bytes, _)| bytes).sum::<u64>(), size);
    assert!(parts.iter().all(|&(bytes, on)| bytes < BUFFER_END && on == mapped), "{parts:x?}");
}

/// Host memory of the library's, or memory of the caller: made, mapped, unmapped, given
/// back.
type Make<P> = fn(&Guard<'_, P>) -> Result<u64, Status>;
type Unmake<P> = fn(&Guard<'_, P>, u64) -> Result<(), Status>;

/// Where the caller's memory is.
const CALLERS: u64 = 1 << 45;

/// By name and size.
fn kinds<P: Platform>() -> [(&'static str, u64, Make<P>, Unmake<P>); 2] {
    [
        (
            "allocated",
            ALLOCATED,
            |guard| {
                let node = gpus(guard)[0];
                let request = AllocationRequest {
                    node,
                    size: ALLOCATED,
                    alignment: 0,
                    flags: PAGED,
                    address: 0,
                };
                guard.allocate_memory(&request).map_err(|error| error.status)
            },
            |guard, address| guard.free_memory(address, ALLOCATED).map_err(|error| error.status),
        ),
        (
            "registered",
            REGISTERED,
            |guard| {
                // Not from a page to a page: one more is touched.
                let address = CALLERS + 100;
                guard
                    .register_memory(address, REGISTERED, PAGED, None)
                    .map(|()| address)
                    .map_err(|error| error.status)
            },
            |guard, address| guard.deregister_memory(address).map_err(|error| error.status),
        ),
    ]
}

/// Bytes of the pages: registered memory begins within one, and touches one more.
fn pages(name: &str, size: u64) -> u64 {
    if name == "registered" { size + PAGE } else { size }
}

#[test]
fn what_is_too_large_for_a_buffer_is_made_of_several() {
    let failing = Failing::default();
    in_context(&failing, |machine, guard| {
        let nodes = gpus(guard);
        for (name, size, make, unmake) in kinds() {
            let bytes = pages(name, size);
            let before = held(machine).buffers;
            let address = make(guard).unwrap();
            assert_parts(machine, bytes, 0);
            let info = guard.pointer_info(address + size - 1).unwrap();
            assert_eq!((info.size, info.mapped), (size, &[][..]), "{name}");
            let gpu_address = info.gpu_address;
            for (nodes, on) in [(&nodes[..], 2), (&nodes[1..], 1), (&nodes[..1], 1)] {
                // Registered memory goes where it was registered for.
                if info.kind == PointerKind::RegisteredUser && on == 1 {
                    continue;
                }
                guard.map_memory_to_nodes(address, size, nodes).unwrap();
                assert_parts(machine, bytes, on);
                // Each buffer lies where the whole has it, on the GPU, too.
                let info = guard.pointer_info(address).unwrap();
                assert_eq!((info.gpu_address, info.mapped), (gpu_address, nodes), "{name}");
            }
            guard.unmap_memory(address).unwrap();
            assert_parts(machine, bytes, 0);
            unmake(guard, address).unwrap();
            assert_eq!(held(machine).buffers, before, "{name}");
            assert!(guard.pointer_info(address).is_err());
        }
    });
}

/// The last size that is one buffer, and the first that is two.
#[test]
fn the_boundary_is_where_the_driver_has_it() {
    let failing = Failing::default();
    in_context(&failing, |machine, guard| {
        for (size, parts) in
            [(BUFFER_END - 2 * (1 << 20), 1), (BUFFER_END - PAGE, 2), (BUFFER_END, 2)]
        {
            guard.register_memory(CALLERS, size, PAGED, None).unwrap();
            let made = user_buffers(machine);
            assert_eq!(made.len(), parts, "{size:#x}: {made:x?}");
            assert_eq!(made.iter().map(|(bytes, _)| bytes).sum::<u64>(), size);
            guard.deregister_memory(CALLERS).unwrap();
        }
    });
}

/// Each request of each step fails once: everything is as before, and goes on.
#[test]
fn a_part_that_fails_takes_the_others_back() {
    let failing = Failing::default();
    in_context(&failing, |machine, guard| {
        for (name, size, make, unmake) in kinds() {
            let bytes = pages(name, size);
            let parts = bytes.div_ceil(BUFFER_END) as usize;
            let empty = held(machine).buffers;
            // Regions and the like are made by the first.
            let first = make(guard).unwrap();
            unmake(guard, first).unwrap();
            for at in 1..=parts {
                failing.expect("ALLOC_MEMORY_OF_GPU", at);
                make(guard).unwrap_err();
                assert_eq!(held(machine).buffers, empty, "{name}: part {at} is not made");
            }
            let address = make(guard).unwrap();
            for at in 1.. {
                failing.expect("MAP_MEMORY_TO_GPU", at);
                let answer = guard.map_memory(address, size);
                if failing.seen.get() < at {
                    answer.unwrap();
                    assert!(at > parts, "{name}: a request for each part at least");
                    break;
                }
                assert!(answer.is_err());
                assert_parts(machine, bytes, 0);
                assert_eq!(guard.pointer_info(address).unwrap().mapped, &[][..]);
            }
            assert_parts(machine, bytes, 2);
            for at in 1..=parts {
                failing.expect("UNMAP_MEMORY_FROM_GPU", at);
                assert!(guard.unmap_memory(address).is_err());
                // What was unmapped by then is mapped again: one cannot be without the others.
                assert_parts(machine, bytes, 2);
                assert_eq!(guard.pointer_info(address).unwrap().mapped, gpus(guard));
            }
            failing.expect("", 0);
            guard.unmap_memory(address).unwrap();
            unmake(guard, address).unwrap();
            assert_eq!(held(machine).buffers, empty, "{name}");
        }
    });
}
