//! Where memory lies: GPUs of every width of addresses, pages of every size,
//! fixed addresses, guard pages, and regions that grow and shrink.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use hsakmt_conformance::{Alteration, Altered, held, machine};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::Status;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::{ContextHandle, Guard, Process};
use hsakmt_core::seam::{
    Call, Counted, Counters, Driver, Mapping, OperationKind, Os, Placement, Platform, Protection,
};
use hsakmt_linux_shim::Linux;
use kfd_sim::{AddressesOnly, Machine, Operation};

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
const HUGE_PAGE: u64 = 2 * MIB;
const GIB: u64 = 1 << 30;

const VRAM: MemoryFlags = MemoryFlags::NON_PAGED;
const FIXED: MemoryFlags = MemoryFlags::FIXED_ADDRESS;
const PAGED: MemoryFlags = MemoryFlags::HOST_ACCESS;
const GTT: MemoryFlags = VRAM.union(MemoryFlags::GTT_ACCESS).union(MemoryFlags::HOST_ACCESS);
const ADDRESSES: MemoryFlags = MemoryFlags::ONLY_ADDRESS;

/// Every kind that has addresses of the process.
const KINDS: [(&str, MemoryFlags); 8] = [
    ("VRAM", VRAM),
    ("visible VRAM", VRAM.union(MemoryFlags::HOST_ACCESS)),
    ("VRAM for code", VRAM.union(MemoryFlags::EXECUTE)),
    ("ring in VRAM", VRAM.union(MemoryFlags::AQL_QUEUE)),
    ("paged", PAGED),
    ("ring of the host", PAGED.union(MemoryFlags::AQL_QUEUE)),
    ("GTT", GTT),
    ("addresses", ADDRESSES),
];

/// Runs `test` in a primary context on the platform.
fn in_context<P: Platform>(platform: P, options: &Options, test: impl FnOnce(&Guard<'_, P>)) {
    let process = Process::new(platform);
    process.open_primary(|| Ok(options.clone())).unwrap();
    {
        let guard = process.enter(ContextHandle::PRIMARY).unwrap();
        guard.acquire_machine().unwrap();
        test(&guard);
    }
    process.close_primary().unwrap();
}

fn first_gpu<P: Platform>(guard: &Guard<'_, P>) -> u32 {
    let node = guard.machine(|machine| {
        let mut nodes = (0..).zip(machine.snapshot().nodes());
        Ok(nodes.find(|(_, node)| node.is_gpu()).map(|(id, _)| id).unwrap())
    });
    node.unwrap()
}

fn request(node: u32, size: u64, flags: MemoryFlags) -> AllocationRequest {
    AllocationRequest { node, size, alignment: 0, flags, address: 0 }
}

/// GPUs with addresses of this many bits, pages of this many bytes.
struct Shape {
    bits: u32,
    page: usize,
}

/// The last address that a process has on a GPU with addresses of this many bits:
/// with 57 bits the upper half is the kernel's.
fn limit(bits: u32) -> u64 {
    if bits == 57 { (1 << 56) - 1 } else { (1 << bits) - 1 }
}

impl Alteration for Shape {
    fn page_size(&self, _: &impl Os) -> usize {
        self.page
    }

    /// A system with larger pages gives multiples of them.
    fn map(&self, os: &impl Os, mapping: Mapping) -> Result<usize, Errno> {
        assert_eq!(mapping.length % self.page, 0, "{mapping:?}");
        match mapping.placement {
            Placement::Free(address) | Placement::Replace(address) => {
                assert_eq!(address % self.page, 0, "{mapping:?}");
                os.map(mapping)
            }
            _ => {
                let length = mapping.length.checked_add(self.page).ok_or(Errno::ENOMEM)?;
                let start = os.map(Mapping { length, ..mapping })?;
                let aligned = start.next_multiple_of(self.page);
                let (end, stop) = (aligned + mapping.length, start + length);
                for (from, to) in [(start, aligned), (end, stop)] {
                    if from < to {
                        os.unmap(from, to - from).unwrap();
                    }
                }
                Ok(aligned)
            }
        }
    }

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
                    // gpuvm_limit; an entry without a GPU stays empty.
                    if entry[48..52] != [0; 4] {
                        entry[40..48].copy_from_slice(&limit(self.bits).to_ne_bytes());
                    }
                }
            }
        }
        Ok(answer)
    }
}

/// The last address that GPUs and the process have in common on this machine.
fn last_address(bits: u32) -> u64 {
    (1 << bits.min(47)) - 1
}

#[test]
fn every_kind_lies_within_what_gpus_reach() {
    for bits in [38, 39, 40, 47, 48, 57] {
        for page in [4 << 10, 16 << 10, 64 << 10] {
            let shape = Shape { bits, page };
            let machine = machine("rx7900:svm=0");
            let platform = Altered::new(machine.spawn(Linux), &shape);
            in_context(platform, &Options::default(), |guard| {
                every_kind(guard, &machine, bits, page as u64);
            });
            machine.assert_no_violations();
            for (_, held) in machine.leftovers().processes {
                assert_eq!((held.anonymous_bytes, held.device_mappings.len()), (0, 0));
            }
        }
    }
}

fn every_kind<P: Platform>(guard: &Guard<'_, P>, machine: &Machine, bits: u32, page: u64) {
    let gpu = first_gpu(guard);
    // The shortest requests are of 4 KiB, whatever a page is.
    let sizes = [4 << 10, page, 3 * page, HUGE_PAGE, 6 * MIB + page];
    for (name, flags) in KINDS {
        let what = format!("{name}, {bits} bits, pages of {page:#x}");
        let mut live: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let keep = |live: &mut BTreeMap<u64, (u64, u64)>, size: u64, alignment: u64| {
            let wanted = AllocationRequest { alignment, ..request(gpu, size, flags) };
            let address = guard
                .allocate_memory(&wanted)
                .unwrap_or_else(|error| panic!("{what}: {wanted:?}: {error}"));
            let copies = if flags.contains(MemoryFlags::AQL_QUEUE) { 2 } else { 1 };
            let length = copies * size.next_multiple_of(page);
            assert_eq!(address % u64::max(page, alignment), 0, "{what}");
            assert!(address >= HUGE_PAGE, "{what}: {address:#x}");
            assert!(address + length - 1 <= last_address(bits), "{what}: {address:#x}");
            let before = live.range(..address + length).next_back();
            assert!(before.is_none_or(|(_, &(_, end))| end <= address), "{what}");
            live.insert(address, (size, address + length));
        };
        for size in sizes {
            for alignment in [0, page, MIB, 8 * MIB] {
                keep(&mut live, size, alignment);
            }
        }
        if flags == ADDRESSES {
            for (size, alignment) in [(GIB, 0), (GIB, GIB), (page, GIB), (3 * GIB, 4 * GIB)] {
                keep(&mut live, size, alignment);
            }
        }
        for (address, (size, _)) in live {
            if flags != ADDRESSES {
                guard.map_memory(address, size).unwrap();
                guard.unmap_memory(address).unwrap();
            }
            guard.free_memory(address, size).unwrap();
        }
    }
    // Memory without an address has a name that is no address.
    let name = guard.allocate_memory(&request(gpu, page, VRAM | MemoryFlags::NO_ADDRESS)).unwrap();
    assert!(name >= 1 << 56, "{name:#x}");
    guard.free_memory(name, page).unwrap();

    let scratch = request(gpu, 4 * MIB, VRAM | MemoryFlags::SCRATCH);
    let scratch = guard.allocate_memory(&scratch).unwrap();
    assert!(scratch % (64 << 10) == 0 && scratch + 4 * MIB - 1 <= last_address(bits));
    guard.map_memory(scratch + (64 << 10), 64 << 10).unwrap();
    guard.unmap_memory(scratch + (64 << 10)).unwrap();
    // The addresses stay for the life of the context.

    // The GPU's address of registered memory is within reach; the CPU's need not be.
    let memory = vec![0_u8; 3 << 20];
    let at = memory.as_ptr() as u64 + 100;
    let before = held(machine);
    guard.register_memory(at, MIB, PAGED, None).unwrap();
    let alternate = guard.map_memory(at, MIB).unwrap();
    assert_eq!(alternate % page, at % page);
    assert!(alternate + MIB - 1 <= last_address(bits), "{alternate:#x}");
    guard.unmap_memory(at).unwrap();
    guard.deregister_memory(at).unwrap();
    assert_eq!(held(machine).buffers, before.buffers);
}

/// Old APUs: the aperture of device memory is none of the process's addresses.
struct OwnWindow;

const WINDOW: u64 = 1 << 60;

impl Alteration for OwnWindow {
    fn execute<D: Driver>(
        &self,
        driver: &D,
        device: &D::Device,
        call: &mut Call<'_, '_>,
    ) -> Result<u32, Errno> {
        let answer = driver.execute(device, call)?;
        if call.name == "GET_PROCESS_APERTURES_NEW" {
            for array in call.arrays.iter_mut() {
                let entry = &mut array.bytes_mut().unwrap_or_default();
                if entry.len() >= 56 {
                    entry[32..40].copy_from_slice(&WINDOW.to_ne_bytes());
                    entry[40..48].copy_from_slice(&(WINDOW + (1 << 40) - 1).to_ne_bytes());
                }
            }
        }
        Ok(answer)
    }
}

#[test]
fn a_gpu_with_a_window_of_its_own_gets_addresses_in_it() {
    let machine = machine("mi50:svm=0");
    in_context(Altered::new(machine.spawn(Linux), &OwnWindow), &Options::default(), |guard| {
        let gpu = first_gpu(guard);
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        machine.keep_log(true);
        for size in [PAGE, 3 * PAGE, 2 * MIB, 6 * MIB] {
            for alignment in [0, MIB, GIB] {
                let wanted = AllocationRequest { alignment, ..request(gpu, size, VRAM) };
                machine.take_log();
                let address = guard.allocate_memory(&wanted).unwrap();
                assert!(address >= WINDOW + (64 << 10) && address + size <= WINDOW + (1 << 40));
                assert_eq!(address % alignment.max(PAGE), 0);
                let sent =
                    machine.take_log().into_iter().find_map(|record| match record.operation {
                        Operation::Execute(sent) if sent.name == "ALLOC_MEMORY_OF_GPU" => {
                            sent.sent("va_addr")
                        }
                        _ => None,
                    });
                // The driver and the GPU count from the window's start.
                assert_eq!(sent, Some(address - WINDOW));
                assert_eq!(guard.map_memory(address, size), Ok(address - WINDOW));
                let before = live.range(..address + size).next_back();
                assert!(before.is_none_or(|(start, length)| start + length <= address));
                live.insert(address, size);
            }
        }
        let (&last, &size) = live.last_key_value().unwrap();
        let fixed = |address| {
            let wanted = AllocationRequest { address, ..request(gpu, PAGE, VRAM | FIXED) };
            guard.allocate_memory(&wanted)
        };
        for address in [last, last + size + PAGE / 2, WINDOW, WINDOW + (1 << 40), 1 << 46] {
            assert_eq!(fixed(address).unwrap_err().status, Status::NO_MEMORY, "{address:#x}");
        }
        let free = WINDOW + (1 << 39);
        assert_eq!(fixed(free), Ok(free));
        guard.free_memory(free, PAGE).unwrap();
        for (address, size) in live {
            guard.unmap_memory(address).unwrap();
            guard.free_memory(address, size).unwrap();
        }
    });
    machine.assert_no_violations();
}

#[test]
fn fixed_addresses_are_given_or_refused() {
    for (bits, page) in [(40, 4 << 10), (47, 4 << 10), (47, 64 << 10), (57, 4 << 10)] {
        let shape = Shape { bits, page };
        let machine = machine("rx7900:svm=0");
        let platform = Altered::new(machine.spawn(Linux), &shape);
        in_context(platform, &Options::default(), |guard| {
            let gpu = first_gpu(guard);
            let page = page as u64;
            // Addresses of a region of ours, and of nobody.
            let in_region = guard.allocate_memory(&request(gpu, 16 * page, VRAM)).unwrap();
            guard.free_memory(in_region, 16 * page).unwrap();
            let own = guard.allocate_memory(&request(gpu, 2 * GIB, ADDRESSES)).unwrap();
            guard.free_memory(own, 2 * GIB).unwrap();
            for (_, flags) in KINDS.iter().filter(|(name, _)| !name.contains("ring")) {
                for address in [in_region + page, own + 16 * MIB] {
                    let size = 4 * page;
                    let wanted = |address, size| AllocationRequest {
                        address,
                        ..request(gpu, size, *flags | FIXED)
                    };
                    assert_eq!(guard.allocate_memory(&wanted(address, size)), Ok(address));
                    let taken = held(&machine);
                    let refused = [
                        (address, size, "taken"),
                        (address + 2 * page, size, "half taken"),
                        (address - 2 * page, size, "half taken before"),
                        (address + size + page / 2, size, "unaligned"),
                        (limit(bits) + 1, size, "outside"),
                        (limit(bits) + 1 - page, 2 * page, "across the end"),
                        (page, size, "below"),
                        (u64::MAX - page + 1, page, "the end of all"),
                        (u64::MAX - page + 1, 2 * page, "around"),
                    ];
                    for (address, size, what) in refused {
                        let result = guard.allocate_memory(&wanted(address, size));
                        let Err(error) = result else {
                            panic!("{bits} bits, {page:#x}, {flags:?}, {what}: {result:x?}")
                        };
                        assert!(
                            matches!(error.status, Status::NO_MEMORY | Status::ERROR),
                            "{what}: {error}"
                        );
                        assert_eq!(held(&machine), taken, "{flags:?}, {what}");
                    }
                    let none = guard.allocate_memory(&wanted(0, size)).unwrap_err();
                    assert_eq!(none.status, Status::INVALID_PARAMETER);
                    guard.free_memory(address, size).unwrap();
                    assert_eq!(guard.allocate_memory(&wanted(address, size)), Ok(address));
                    guard.free_memory(address, size).unwrap();
                }
            }
        });
        machine.assert_no_violations();
    }
}

#[test]
fn what_others_have_mapped_is_taken() {
    let machine = machine("rx7900:svm=0");
    in_context(machine.spawn(Linux), &Options::default(), |guard| {
        let gpu = first_gpu(guard);
        let foreign = vec![0_u8; 1 << 20];
        let address = (foreign.as_ptr() as u64).next_multiple_of(PAGE);
        let before = held(&machine);
        for flags in [VRAM, PAGED, GTT, ADDRESSES] {
            let wanted = AllocationRequest { address, ..request(gpu, PAGE, flags | FIXED) };
            let error = guard.allocate_memory(&wanted).unwrap_err();
            assert_eq!(error.errno, Some(Errno::EEXIST), "{flags:?}");
            assert_eq!(held(&machine), before);
        }
    });
}

#[test]
fn addresses_that_were_kept_are_not_given_away() {
    let machine = machine("rx7900:svm=0");
    in_context(machine.spawn(Linux), &Options::default(), |guard| {
        let gpu = first_gpu(guard);
        for size in [MIB, 2 * GIB] {
            let kept = guard.allocate_memory(&request(gpu, size, ADDRESSES)).unwrap();
            for flags in [VRAM, PAGED, GTT, ADDRESSES] {
                for address in [kept, kept + MIB / 2, kept + size - PAGE] {
                    let wanted = AllocationRequest { address, ..request(gpu, PAGE, flags | FIXED) };
                    assert!(guard.allocate_memory(&wanted).is_err(), "{flags:?}");
                }
            }
            guard.free_memory(kept, size).unwrap();
            let again =
                AllocationRequest { address: kept + MIB / 2, ..request(gpu, PAGE, VRAM | FIXED) };
            assert_eq!(guard.allocate_memory(&again), Ok(kept + MIB / 2));
            guard.free_memory(kept + MIB / 2, PAGE).unwrap();
        }
    });
}

#[test]
fn guard_pages_lie_between_allocations_and_cannot_be_accessed() {
    for guard_pages in [0, 1, 4] {
        let shape = Shape { bits: 47, page: 16 << 10 };
        let page = 16 << 10;
        let machine = machine("rx7900:svm=0");
        machine.keep_log(true);
        let options = Options { guard_pages, ..Options::default() };
        let sim = machine.spawn(Linux);
        let process = sim.process();
        in_context(Altered::new(sim, &shape), &options, |guard| {
            let gpu = first_gpu(guard);
            for flags in [VRAM, PAGED, GTT, ADDRESSES] {
                let mut all: Vec<u64> = (0..20)
                    .map(|_| guard.allocate_memory(&request(gpu, page, flags)).unwrap())
                    .collect();
                all.sort_unstable();
                let pitch = page * u64::from(1 + guard_pages);
                assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= pitch), "{flags:?}");
                for &address in &all {
                    if flags != ADDRESSES {
                        guard.map_memory(address, page).unwrap();
                    }
                }
                let gpu_id = machine.topology().gpus().next().unwrap().1.id;
                for &address in all.iter().filter(|_| guard_pages != 0) {
                    assert_eq!(process.gpu(gpu_id).sees(address + page), None, "{flags:?}");
                }
                for address in all {
                    guard.unmap_memory(address).unwrap();
                    guard.free_memory(address, page).unwrap();
                }
            }
            let opened =
                machine.take_log().into_iter().filter_map(|record| match record.operation {
                    Operation::Protect { address, length, allow } if !allow.is_empty() => {
                        Some((address, length))
                    }
                    _ => None,
                });
            // The CPU gets in on the pages asked for and no more.
            assert!(opened.into_iter().all(|(_, length)| length as u64 == page));
        });
    }
}

/// A system that gives no mapping longer than this, and none at all beyond a sum.
struct Scarce {
    longest: Cell<usize>,
    asked: RefCell<Vec<(usize, bool)>>,
}

impl Alteration for Scarce {
    fn map(&self, os: &impl Os, mapping: Mapping) -> Result<usize, Errno> {
        if mapping.protection != Protection::empty() {
            return os.map(mapping);
        }
        let given = mapping.length <= self.longest.get();
        self.asked.borrow_mut().push((mapping.length, given));
        if given { os.map(mapping) } else { Err(Errno::ENOMEM) }
    }
}

#[test]
fn regions_grow_and_shrink_with_what_the_system_gives() {
    let machine = machine("rx7900:svm=0");
    let scarce = Scarce { longest: Cell::new(usize::MAX), asked: RefCell::default() };
    in_context(
        Altered::new(machine.spawn(AddressesOnly::new()), &scarce),
        &Options { guard_pages: 0, ..Options::default() },
        |guard| {
            let gpu = first_gpu(guard);
            let mut live = Vec::new();
            let mut fill = |bytes: u64, piece: u64| {
                scarce.asked.borrow_mut().clear();
                for _ in 0..bytes / piece {
                    let address = guard.allocate_memory(&request(gpu, piece, VRAM)).unwrap();
                    live.push((address, piece));
                }
                let asked = scarce.asked.borrow();
                asked.iter().map(|&(length, given)| (length as u64 / MIB, given)).collect()
            };
            // Twice as long each time; alignment takes a part of a region's slack.
            let grown: Vec<(u64, bool)> = fill(GIB, 16 * MIB);
            let lengths: Vec<u64> = grown.iter().map(|&(length, _)| length).collect();
            assert!(grown.iter().all(|&(_, given)| given) && lengths.len() <= 5, "{lengths:?}");
            assert!(lengths.windows(2).all(|pair| pair[1] >= 2 * pair[0] - 4), "{lengths:?}");
            // What is refused is halved, and the next ones begin from there.
            scarce.longest.set(24 << 20);
            let first: Vec<(u64, bool)> = fill(GIB, 16 * MIB);
            let refused = first.iter().filter(|(_, given)| !given).count();
            let granted = first.iter().filter(|(_, given)| *given).count();
            assert!(granted > 0 && refused <= 8 + 2 * granted, "{first:?}");
            // Down to what the one allocation needs, and then it is over.
            scarce.longest.set(PAGE as usize);
            scarce.asked.borrow_mut().clear();
            let least = loop {
                match guard.allocate_memory(&request(gpu, PAGE, VRAM)) {
                    Ok(address) => live.push((address, PAGE)),
                    Err(error) => panic!("{error}"),
                }
                if scarce.asked.borrow().last().is_some_and(|&(_, given)| given) {
                    break scarce.asked.borrow().last().unwrap().0;
                }
            };
            assert_eq!(least as u64, PAGE);
            scarce.longest.set(0);
            scarce.asked.borrow_mut().clear();
            let error = guard.allocate_memory(&request(gpu, PAGE, VRAM)).unwrap_err();
            assert_eq!((error.status, error.errno), (Status::NO_MEMORY, Some(Errno::ENOMEM)));
            let tries = scarce.asked.borrow().len();
            assert!(tries <= 12, "{tries} tries");
            for (address, size) in live {
                guard.free_memory(address, size).unwrap();
            }
        },
    );
    for (_, held) in machine.leftovers().processes {
        assert_eq!(held.anonymous_bytes, 0);
    }
}

/// A system whose own choice is beyond what GPUs reach, as with 48 bits of user
/// addresses on arm64.
struct HighFirst(Cell<u32>);

impl Alteration for HighFirst {
    fn map(&self, os: &impl Os, mapping: Mapping) -> Result<usize, Errno> {
        if mapping.placement == Placement::Anywhere {
            self.0.set(self.0.get() + 1);
            return Ok(1 << 47);
        }
        os.map(mapping)
    }
}

#[test]
fn an_address_beyond_reach_is_given_back_for_one_within() {
    let machine = machine("rx7900:svm=0");
    let high = HighFirst(Cell::new(0));
    in_context(Altered::new(machine.spawn(Linux), &high), &Options::default(), |guard| {
        let gpu = first_gpu(guard);
        high.0.set(0);
        for flags in [VRAM, PAGED, ADDRESSES] {
            for size in [PAGE, 4 * MIB, GIB] {
                if flags == PAGED && size == GIB {
                    continue;
                }
                let address = guard.allocate_memory(&request(gpu, size, flags)).unwrap();
                assert!(address + size <= 1 << 47, "{address:#x}");
                guard.free_memory(address, size).unwrap();
            }
        }
        assert!(high.0.get() >= 3);
    });
}

#[test]
fn a_limit_of_addresses_leaves_room_for_small_allocations() {
    let machine = machine("rx7900:svm=0");
    let sim = machine.spawn(AddressesOnly::new());
    let process = sim.process();
    in_context(sim, &Options::default(), |guard| {
        let gpu = first_gpu(guard);
        let now: usize = machine
            .leftovers()
            .processes
            .values()
            .map(|held| {
                let devices: usize = held.device_mappings.iter().map(|(_, length)| length).sum();
                held.anonymous_bytes + devices
            })
            .sum();
        process.set_address_space_limit(Some(now + (5 << 20)));
        let mut live = Vec::new();
        loop {
            match guard.allocate_memory(&request(gpu, 64 << 10, VRAM)) {
                Ok(address) => live.push(address),
                Err(error) => break assert_eq!(error.status, Status::NO_MEMORY),
            }
        }
        // Each takes 128 KiB: 64 KiB, a guard page, and what aligns the next. Up to
        // 2 MiB lie before a region that is aligned to a huge page.
        assert!(live.len() >= (2 << 20) / (128 << 10), "{} of them", live.len());
        for address in live {
            guard.free_memory(address, 64 << 10).unwrap();
        }
        process.set_address_space_limit(None);
    });
}

#[test]
fn a_million_live_allocations_need_a_handful_of_mappings() {
    const COUNT: usize = 1_000_000;
    let machine = machine("rx7900:svm=0");
    let counters = Counters::new();
    let platform = Counted::new(machine.spawn(AddressesOnly::new()), &counters);
    in_context(platform, &Options::default(), |guard| {
        let gpu = first_gpu(guard);
        let before = counters.snapshot();
        let live: Vec<u64> =
            (0..COUNT).map(|_| guard.allocate_memory(&request(gpu, PAGE, VRAM)).unwrap()).collect();
        let cost = counters.snapshot().since(&before);
        assert_eq!(cost.ioctls(), COUNT as u64);
        // 8 GiB with the guard pages, in regions that double from 64 MiB on.
        let others = cost.system_calls() - cost.ioctls();
        assert!(others <= 10 && cost.of(OperationKind::Map) == others, "{cost}");
        let info = guard.pointer_info(live[COUNT / 2] + PAGE - 1).unwrap();
        assert_eq!(info.gpu_address, live[COUNT / 2]);
        let before = counters.snapshot();
        for address in live {
            guard.free_memory(address, PAGE).unwrap();
        }
        let cost = counters.snapshot().since(&before);
        assert_eq!(cost.system_calls(), COUNT as u64, "{cost}");
    });
    for (_, held) in machine.leftovers().processes {
        assert_eq!(held.anonymous_bytes, 0);
    }
}
