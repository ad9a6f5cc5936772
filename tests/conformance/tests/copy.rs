//! Copies by the CPU: between all kinds of memory, at all offsets, in the order that
//! devices need; and what is refused.

use hsakmt_conformance::{Alteration, Altered, Mode, Simulated, machine, process};
use hsakmt_core::context::Options;
use hsakmt_core::copy::{CopyPath, CopyRequest};
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Error, Object, Operation, Status};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::{Guard, Process};
use hsakmt_core::seam::{
    Call, Counted, Counters, DeviceNode, Driver, MapDevice, OperationKind, Os, Placement, Platform,
    Protection,
};
use hsakmt_linux_shim::Linux;
use kfd_sim::Rule;

const PROFILE: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,kernel=7.2,svm=0";
const PAGE: u64 = 4096;
const SIZE: u64 = 64 << 10;

const VRAM: MemoryFlags = MemoryFlags::NON_PAGED;
const VISIBLE: MemoryFlags = VRAM.union(MemoryFlags::HOST_ACCESS);
const GTT: MemoryFlags = VISIBLE.union(MemoryFlags::GTT_ACCESS);
const PAGED: MemoryFlags = MemoryFlags::HOST_ACCESS;
const ADDRESSES: MemoryFlags = MemoryFlags::ONLY_ADDRESS;
const UNADDRESSED: MemoryFlags = VRAM.union(MemoryFlags::NO_ADDRESS);

fn allocate<P: Platform>(guard: &Guard<'_, P>, node: u32, flags: MemoryFlags, size: u64) -> u64 {
    let request = AllocationRequest { node, size, alignment: 0, flags, address: 0 };
    guard.allocate_memory(&request).unwrap()
}

fn gpus<P: Platform>(guard: &Guard<'_, P>) -> Vec<(u32, u32)> {
    guard
        .machine(|machine| {
            let nodes = (0..).zip(machine.snapshot().nodes());
            Ok(nodes
                .filter(|(_, node)| node.is_gpu())
                .map(|(id, node)| (id, node.gpu_id))
                .collect())
        })
        .unwrap()
}

fn copy_by<P: Platform>(
    guard: &Guard<'_, P>,
    path: Option<CopyPath>,
    destination: u64,
    source: u64,
    size: u64,
) -> Result<CopyPath, Error> {
    // SAFETY: the tests pass memory that is there, or what is refused.
    unsafe { guard.copy_memory(&CopyRequest { destination, source, size, path }) }
}

fn copy<P: Platform>(
    guard: &Guard<'_, P>,
    destination: u64,
    source: u64,
    size: u64,
) -> Result<CopyPath, Error> {
    copy_by(guard, None, destination, source, size)
}

fn refusal(result: Result<CopyPath, Error>) -> (Status, Object) {
    let error = result.unwrap_err();
    (error.status, error.object)
}

fn bytes(address: u64, size: u64) -> Vec<u8> {
    let mut bytes = vec![0; size as usize];
    Linux.read_memory(address as usize, &mut bytes).unwrap();
    bytes
}

fn pattern(seed: u64, size: u64) -> Vec<u8> {
    (0..size).map(|at| (at.wrapping_mul(31) ^ at >> 8 ^ seed) as u8).collect()
}

fn fill(address: u64, contents: &[u8]) {
    Linux.write_memory(address as usize, contents).unwrap();
}

fn in_mode(mode: Mode, test: impl FnOnce(&Process<Simulated>, &Guard<'_, Simulated>)) {
    let machine = machine(PROFILE);
    let process = process(&machine);
    let handle = mode.open(&process).unwrap();
    {
        let guard = process.enter(handle).unwrap();
        guard.acquire_machine().unwrap();
        test(&process, &guard);
    }
    mode.close(&process, handle).unwrap();
    machine.assert_no_violations();
}

#[test]
fn all_kinds_to_all_kinds_at_odd_offsets() {
    for mode in Mode::ALL {
        in_mode(mode, |_, guard| {
            let gpus = gpus(guard);
            let ours = vec![0_u8; SIZE as usize];
            let mut ends = vec![("process", ours.as_ptr().expose_provenance() as u64)];
            for (name, node, flags) in [
                ("video memory", gpus[0].0, VISIBLE),
                ("video memory of another GPU", gpus[1].0, VISIBLE),
                ("GTT", gpus[0].0, GTT),
                ("paged", 0, PAGED),
            ] {
                ends.push((name, allocate(guard, node, flags, SIZE)));
            }
            let sizes = [1, 2, 3, 7, 8, 63, 64, 65, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 5];
            let mut seed = 0;
            for &(to_name, to) in &ends {
                for &(from_name, from) in &ends {
                    for size in sizes {
                        for (to_offset, from_offset) in [(0, 0), (1, 0), (0, 3), (PAGE - 1, 13)] {
                            let (to_offset, from_offset) = if to == from {
                                (to_offset, from_offset + SIZE / 2)
                            } else {
                                (to_offset, from_offset)
                            };
                            seed += 1;
                            let before = pattern(seed + 100, size + 2);
                            fill(to + to_offset, &before);
                            let contents = pattern(seed, size);
                            fill(from + from_offset, &contents);
                            let what = format!("{to_name} + {to_offset} <- {from_name}: {size}");
                            let path = copy(guard, to + to_offset, from + from_offset, size);
                            assert_eq!(path, Ok(CopyPath::Cpu), "{what}");
                            assert_eq!(bytes(to + to_offset, size), contents, "{what}");
                            let after = bytes(to + to_offset + size, 2);
                            assert_eq!(after, before[size as usize..], "{what}, behind it");
                        }
                    }
                }
            }
            drop(ours);
        });
    }
}

#[test]
fn a_gpu_sees_the_copy_and_a_copy_sees_the_gpu() {
    in_mode(Mode::Primary, |process, guard| {
        let (node, gpu_id) = gpus(guard)[0];
        let gpu = process.platform().process().gpu(gpu_id);
        let memory = allocate(guard, node, VISIBLE, SIZE);
        guard.map_memory(memory, SIZE).unwrap();
        let source = pattern(1, 1000);
        let from = source.as_ptr().expose_provenance() as u64;
        copy(guard, memory + 17, from, 1000).unwrap();
        let mut seen = vec![0; 1000];
        gpu.read(memory + 17, &mut seen).unwrap();
        assert_eq!(seen, source);
        gpu.write(memory + 18, &[0xaa; 5]).unwrap();
        let mut back = vec![0_u8; 7];
        let to = back.as_mut_ptr().expose_provenance() as u64;
        copy(guard, to, memory + 17, 7).unwrap();
        assert_eq!(bytes(to, 7), [source[0], 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, source[6]]);
    });
}

#[test]
fn overlapping_ranges_are_moved() {
    in_mode(Mode::Primary, |_, guard| {
        let node = gpus(guard)[0].0;
        for flags in [VISIBLE, GTT, PAGED] {
            let memory = allocate(guard, node, flags, SIZE);
            for (to, from) in [(5, 0), (0, 5), (PAGE, 1), (1, PAGE), (3, 3)] {
                let mut expected = pattern(to + from, SIZE);
                fill(memory, &expected);
                let size = SIZE - PAGE;
                copy(guard, memory + to, memory + from, size).unwrap();
                expected.copy_within(from as usize..(from + size) as usize, to as usize);
                assert_eq!(bytes(memory, SIZE), expected, "{flags:?}: {to} <- {from}");
            }
        }
    });
}

#[test]
fn registered_memory_by_either_address() {
    in_mode(Mode::Primary, |_, guard| {
        let node = gpus(guard)[0].0;
        let ours = pattern(9, 3 * PAGE + 100);
        let start = ours.as_ptr().expose_provenance() as u64;
        guard.register_memory(start, ours.len() as u64, PAGED, None).unwrap();
        let of_gpu = guard.map_memory(start, ours.len() as u64).unwrap();
        assert_ne!(of_gpu, 0, "without the SVM calls it has addresses of its own");
        let memory = allocate(guard, node, VISIBLE, SIZE);
        for address in [start, of_gpu] {
            fill(memory, &[0; 200]);
            copy(guard, memory, address + 50, 200).unwrap();
            assert_eq!(bytes(memory, 200), ours[50..250]);
        }
        let whole = ours.len() as u64;
        assert_eq!(copy(guard, memory, of_gpu, whole), Ok(CopyPath::Cpu));
        let behind = copy(guard, memory, of_gpu + 1, whole);
        assert_eq!(refusal(behind), (Status::INVALID_PARAMETER, Object::Address(of_gpu + 1)));
        guard.unmap_memory(start).unwrap();
        guard.deregister_memory(start).unwrap();
    });
}

#[test]
fn what_is_refused() {
    for mode in Mode::ALL {
        in_mode(mode, |_, guard| {
            let node = gpus(guard)[0].0;
            let ours = vec![0_u8; SIZE as usize];
            let ours = ours.as_ptr().expose_provenance() as u64;
            let memory = allocate(guard, node, VISIBLE, SIZE);
            let invalid = |address| (Status::INVALID_PARAMETER, Object::Address(address));
            let argument = |position| (Status::INVALID_PARAMETER, Object::Argument(position));
            let to = |address, size| refusal(copy(guard, address, ours, size));
            let from = |address, size| refusal(copy(guard, ours, address, size));
            // Nothing to copy is copied, whatever the addresses.
            assert_eq!(copy(guard, 0, 0, 0), Ok(CopyPath::Cpu));
            assert_eq!(to(0, 1), argument(1));
            assert_eq!(from(0, 1), argument(2));
            assert_eq!(to(u64::MAX - 3, 5), argument(1));
            assert_eq!(from(u64::MAX - 3, 5), argument(2));
            assert_eq!(from(1 << 60, 1), invalid(1 << 60));
            // Beyond an object, from within and from before.
            assert_eq!(to(memory, SIZE + 1), invalid(memory));
            assert_eq!(from(memory + SIZE - 1, 2), invalid(memory + SIZE - 1));
            assert_eq!(to(memory + SIZE, 1), invalid(memory + SIZE), "addresses kept free");
            // Memory of the process that would run into a reservation of the library.
            let below = memory & !((2 << 20) - 1);
            assert_eq!(from(below - 8, 16), invalid(below - 8));
            let addresses = allocate(guard, node, ADDRESSES, SIZE);
            assert_eq!(to(addresses, 1), invalid(addresses));
            let named = allocate(guard, node, UNADDRESSED, SIZE);
            assert_eq!(to(named, 1), invalid(named), "a name is no address");
            // What only an engine reaches.
            let hidden = allocate(guard, node, VRAM, SIZE);
            let only = |path| copy_by(guard, path, hidden, ours, 1).unwrap_err();
            for path in [None, Some(CopyPath::Cpu)] {
                let error = only(path);
                assert_eq!(error.operation, Operation::Copy);
                assert_eq!(
                    (error.status, error.object),
                    (Status::NOT_SUPPORTED, Object::Address(hidden))
                );
                assert!(error.advice().is_some());
            }
            assert_eq!(
                refusal(copy(guard, ours, hidden + 8, 1)),
                (Status::NOT_SUPPORTED, Object::Address(hidden + 8))
            );
            // Freed memory is no memory.
            guard.free_memory(memory, SIZE).unwrap();
            assert_eq!(from(memory, 1), invalid(memory));
        });
    }
}

/// The flushes are there, in number: one for each end in video memory.
#[test]
fn video_memory_is_flushed() {
    let machine = machine(PROFILE);
    let counters = Counters::new();
    let process = Process::new(Counted::new(machine.spawn(Linux), &counters));
    process.open_primary(|| Ok(Options::default())).unwrap();
    {
        let guard = process.primary().unwrap();
        guard.acquire_machine().unwrap();
        let gpus = gpus(&guard);
        let register = |of: u32| {
            let page = guard
                .machine(|machine| Ok(machine.apertures_of(machine.node(of)?).mmio.unwrap().base));
            page.unwrap()
        };
        let ours = [7_u8; 64];
        let ours = ours.as_ptr().expose_provenance() as u64;
        let one = allocate(&guard, gpus[0].0, VISIBLE, SIZE);
        let other = allocate(&guard, gpus[1].0, VISIBLE, SIZE);
        let gtt = allocate(&guard, gpus[0].0, GTT, SIZE);
        // Destination, source; barriers; which GPUs' registers are written.
        for (to, from, emptied, fenced, flushed) in [
            (one, ours, 1, 0, [true, false]),
            (ours, other, 0, 1, [false, true]),
            (other, one, 1, 1, [true, true]),
            (gtt, ours, 0, 0, [false, false]),
        ] {
            for (node, _) in &gpus {
                fill(register(*node), &[0; 4]);
            }
            let before = counters.snapshot();
            copy(&guard, to, from, 64).unwrap();
            let spent = counters.snapshot().since(&before);
            assert_eq!(spent.of(OperationKind::FlushWc), emptied);
            assert_eq!(spent.of(OperationKind::RmbDevice), fenced);
            assert_eq!(spent.system_calls(), 0, "{spent}");
            let written = [0, 1].map(|gpu: usize| bytes(register(gpus[gpu].0), 4) != [0; 4]);
            assert_eq!(written, flushed);
        }
    }
    process.close_primary().unwrap();
}

/// Which flushes a platform leaves out.
struct Without {
    write_combining: bool,
    registers: bool,
}

impl Alteration for Without {
    fn flush_wc(&self, os: &impl Os) {
        if !self.write_combining {
            os.flush_wc();
        }
    }

    fn execute<D: Driver>(
        &self,
        driver: &D,
        device: &D::Device,
        call: &mut Call<'_, '_>,
    ) -> Result<u32, Errno> {
        let registers = call.name == "ALLOC_MEMORY_OF_GPU" && call.block[36] & 1 << 4 != 0;
        if registers && self.registers {
            return Err(Errno::EINVAL);
        }
        driver.execute(device, call)
    }
}

/// Copies into video memory and back while stores reach GPUs only by their flushes;
/// which rules that broke.
fn broken_without(without: &Without) -> Vec<Rule> {
    let machine = machine(PROFILE);
    machine.set_host_data_path(true);
    // Another process has the page of registers of each GPU.
    let other = machine.spawn(Linux);
    let kfd = Driver::open(&other, DeviceNode::Kfd).unwrap();
    let topology = machine.topology();
    for (_, gpu) in topology.gpus() {
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length: PAGE as usize,
            protection: Protection::READ | Protection::WRITE,
            offset: u64::from(gpu.id) << 46,
        };
        Driver::map(&other, &kfd, mapping).unwrap();
    }
    let process = Process::new(Altered::new(machine.spawn(Linux), without));
    process.open_primary(|| Ok(Options::default())).unwrap();
    {
        let guard = process.primary().unwrap();
        guard.acquire_machine().unwrap();
        for (node, gpu_id) in gpus(&guard) {
            let gpu = process.platform().inner().process().gpu(gpu_id);
            let memory = allocate(&guard, node, VISIBLE, SIZE);
            guard.map_memory_to_nodes(memory, SIZE, &[node]).unwrap();
            for round in 0..3 {
                let source = pattern(round, 9000);
                let from = source.as_ptr().expose_provenance() as u64;
                copy(&guard, memory + 100 * round + 17, from, 9000).unwrap();
                let mut seen = vec![0; 9000];
                gpu.read(memory + 100 * round + 17, &mut seen).unwrap();
                let flushed = !without.write_combining && !without.registers;
                assert_eq!(seen == source, flushed, "{gpu_id:#x}, {round}");
                gpu.write(memory, &[round as u8 + 1; 8]).unwrap();
                assert_eq!(bytes(memory, 8), [round as u8 + 1; 8]);
            }
        }
    }
    process.close_primary().unwrap();
    let mut rules: Vec<Rule> =
        machine.take_violations().into_iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn a_missing_flush_is_seen() {
    let without =
        |write_combining, registers| broken_without(&Without { write_combining, registers });
    assert_eq!(without(false, false), []);
    assert_eq!(without(true, false), [Rule::HostWriteNotFlushed]);
    assert_eq!(without(false, true), [Rule::HostWriteNotFlushed]);
}

#[test]
fn the_order_of_flushes_counts() {
    let machine = machine(PROFILE);
    machine.set_host_data_path(true);
    let process = process(&machine);
    process.open_primary(|| Ok(Options::default())).unwrap();
    {
        let guard = process.primary().unwrap();
        guard.acquire_machine().unwrap();
        let (node, gpu_id) = gpus(&guard)[0];
        let memory = allocate(&guard, node, VISIBLE, SIZE);
        guard.map_memory(memory, SIZE).unwrap();
        let register = guard
            .machine(|machine| Ok(machine.apertures_of(machine.node(node)?).mmio.unwrap().base))
            .unwrap();
        let platform = process.platform();
        let gpu = platform.process().gpu(gpu_id);
        let store = |value| fill(memory, &[value; 16]);
        let flush_host_data_path = || fill(register, &[1, 0, 0, 0]);
        // What the GPU sees, and whether a rule was broken.
        let seen = || {
            let mut seen = [0; 16];
            gpu.read(memory, &mut seen).unwrap();
            (seen[0], !machine.take_violations().is_empty())
        };
        assert_eq!(seen(), (0, false));
        store(1);
        assert_eq!(seen(), (0, true));
        platform.os().flush_wc();
        assert_eq!(seen(), (0, true));
        flush_host_data_path();
        assert_eq!(seen(), (1, false));
        // The other way round, and stores after the flush.
        store(2);
        flush_host_data_path();
        platform.os().flush_wc();
        assert_eq!(seen(), (1, true));
        flush_host_data_path();
        assert_eq!(seen(), (2, false));
        store(3);
        platform.os().flush_wc();
        store(4);
        flush_host_data_path();
        assert_eq!(seen(), (3, true));
    }
    process.close_primary().unwrap();
    machine.take_violations();
}
