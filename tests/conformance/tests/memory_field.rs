//! What went wrong in the field with memory: each test is named after what has to
//! happen instead.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Mutex;

use hsakmt_conformance::{Alteration, Altered, Simulated, held, machine};
use hsakmt_core::context::{GpuSelection, Options};
use hsakmt_core::errno::Errno;
use hsakmt_core::error::Status;
use hsakmt_core::log::{Level, Logger};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags, PointerKind};
use hsakmt_core::process::{ContextHandle, Guard, Process};
use hsakmt_core::seam::{
    Advice, Call, Copied, CopyAudit, Counted, Counters, Driver, EndOfFile, Fault, FaultPlan,
    Faulty, Mapping, MemoryPolicy, OperationKind, Os, Placement, Platform, Protection, Selector,
};
use hsakmt_core::uapi::kfd::{AllocMemoryFlags, SvmAttribute, SvmAttributeType, SvmFlags};
use hsakmt_linux_shim::Linux;
use kfd_sim::{AddressesOnly, Bank, Cpu, Execution, Machine, Node, Operation, Profile, Record};

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
const HUGE_PAGE: u64 = 2 * MIB;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

const VRAM: MemoryFlags = MemoryFlags::NON_PAGED;
const VISIBLE_VRAM: MemoryFlags = VRAM.union(MemoryFlags::HOST_ACCESS);
const RING: MemoryFlags = VRAM.union(MemoryFlags::AQL_QUEUE);
const NAMELESS: MemoryFlags = VRAM.union(MemoryFlags::NO_ADDRESS);
const GTT: MemoryFlags = VRAM.union(MemoryFlags::GTT_ACCESS);
const PAGED: MemoryFlags = MemoryFlags::HOST_ACCESS;
const ADDRESSES: MemoryFlags = MemoryFlags::ONLY_ADDRESS;

const ALLOC: &str = "ALLOC_MEMORY_OF_GPU";
const MAP: &str = "MAP_MEMORY_TO_GPU";
const SVM: &str = "SVM";

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

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

fn gpus<P: Platform>(guard: &Guard<'_, P>) -> Vec<u32> {
    let nodes = guard.machine(|machine| {
        let nodes = (0..).zip(machine.snapshot().nodes());
        Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
    });
    nodes.unwrap()
}

fn gpu_ids<P: Platform>(guard: &Guard<'_, P>) -> Vec<u32> {
    let ids = guard.machine(|machine| {
        let nodes = machine.snapshot().nodes().iter();
        Ok(nodes.filter(|node| node.is_gpu()).map(|node| node.gpu_id).collect())
    });
    ids.unwrap()
}

fn request(node: u32, size: u64, flags: MemoryFlags) -> AllocationRequest {
    AllocationRequest { node, size, alignment: 0, flags, address: 0 }
}

/// The requests of one name in the log.
fn requests(log: &[Record], name: &str) -> Vec<Execution> {
    log.iter()
        .filter_map(|record| match &record.operation {
            Operation::Execute(execution) if execution.name == name => Some(execution.clone()),
            _ => None,
        })
        .collect()
}

/// Memory of the caller that nobody has touched; it stays until the process ends.
fn caller_memory(length: u64) -> u64 {
    let mapping = Mapping {
        placement: Placement::Anywhere,
        length: length as usize,
        protection: Protection::READ | Protection::WRITE,
        reserve: false,
        shared: false,
    };
    Os::map(&Linux, mapping).unwrap() as u64
}

/// How many pages of the range have memory behind them (pagemap, bits 62 and 63).
fn populated(address: u64, length: u64) -> usize {
    let pagemap = File::open("/proc/self/pagemap").unwrap();
    let mut entries = vec![0_u8; (length / PAGE * 8) as usize];
    pagemap.read_exact_at(&mut entries, address / PAGE * 8).unwrap();
    let entry = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
    entries.chunks_exact(8).filter(|bytes| entry(bytes) >> 62 != 0).count()
}

/// What the system was told about a range since it was last mapped.
fn advice_for(log: &[Record], address: u64, size: u64) -> Vec<(Advice, u64, u64)> {
    let covers = |start: u64, length: u64| start <= address && address + size <= start + length;
    let mut advice = Vec::new();
    for record in log {
        match record.operation {
            Operation::Map(mapping)
                if record.result.is_ok_and(|at| covers(at, mapping.length as u64)) =>
            {
                assert!(!mapping.shared);
                advice.clear();
            }
            Operation::Advise { address, length, advice: told }
                if covers(address as u64, length as u64) =>
            {
                advice.push((told, address as u64, length as u64));
            }
            _ => {}
        }
    }
    advice
}

/// B36.
#[test]
fn advice_follows_the_size() {
    let machine = machine("rx7900:svm=0");
    machine.keep_log(true);
    in_context(machine.spawn(Linux), &Options::default(), |guard| {
        let gpu = gpus(guard)[0];
        for size in [4 << 10, 64 << 10, HUGE_PAGE - PAGE, HUGE_PAGE, 64 * MIB] {
            for node in [0, gpu] {
                let address = guard.allocate_memory(&request(node, size, PAGED)).unwrap();
                guard.map_memory(address, size).unwrap();
                let told = advice_for(&machine.log(), address, size);
                let names: Vec<Advice> = told
                    .iter()
                    .map(|&(advice, ..)| advice)
                    .filter(|&advice| advice != Advice::DontNeed)
                    .collect();
                if size < HUGE_PAGE {
                    assert_eq!(names, [Advice::DontFork, Advice::NoHugePage], "{size:#x}");
                } else {
                    assert_eq!(names, [Advice::DontFork, Advice::HugePage], "{size:#x}");
                    assert_eq!(address % HUGE_PAGE, 0);
                    // Of the range itself and of nothing beside it.
                    assert_eq!((told[1].1, told[1].2), (address, size));
                }
                guard.unmap_memory(address).unwrap();
                guard.free_memory(address, size).unwrap();
            }
        }
        for size in [PAGE, HUGE_PAGE, GIB] {
            let address = guard.allocate_memory(&request(gpu, size, ADDRESSES)).unwrap();
            assert_eq!(advice_for(&machine.log(), address, size), [], "addresses have no pages");
            guard.free_memory(address, size).unwrap();
        }
    });
}

/// B36: pages of the process at an address of the caller's choice are like others.
#[test]
fn advice_is_given_at_fixed_addresses_too() {
    let machine = machine("rx7900:svm=0");
    machine.keep_log(true);
    in_context(machine.spawn(Linux), &Options::default(), |guard| {
        let gpu = gpus(guard)[0];
        // A region of addresses for devices, in which the fixed address lies.
        let around = guard.allocate_memory(&request(gpu, 16 * MIB, VRAM)).unwrap();
        guard.free_memory(around, 16 * MIB).unwrap();
        for size in [4 << 10, 4 * MIB] {
            let fixed = AllocationRequest {
                address: around,
                ..request(gpu, size, PAGED | MemoryFlags::FIXED_ADDRESS)
            };
            assert_eq!(guard.allocate_memory(&fixed), Ok(around));
            let told = advice_for(&machine.log(), around, size);
            assert!(told.iter().any(|&(advice, ..)| advice == Advice::DontFork), "{told:?}");
            let huge = told.iter().any(|&(advice, ..)| advice == Advice::HugePage);
            assert_eq!(huge, size >= HUGE_PAGE, "{told:?}");
            guard.free_memory(around, size).unwrap();
        }
    });
}

/// B36, B69.
#[test]
fn memory_of_the_caller_gets_no_advice() {
    for profile in ["rx7900:svm=0", "mi210:svm=1"] {
        let machine = machine(profile);
        machine.keep_log(true);
        let at = caller_memory(16 * MIB);
        in_context(machine.spawn(Linux), &Options::default(), |guard| {
            for (address, size) in [(at, 16 * MIB), (at + 100, PAGE), (at + PAGE, 5 * MIB)] {
                guard.register_memory(address, size, PAGED, None).unwrap();
                guard.map_memory(address, size).unwrap();
                guard.unmap_memory(address).unwrap();
            }
            for address in [at, at + 100, at + PAGE] {
                guard.deregister_memory(address).unwrap();
            }
        });
        for record in machine.log() {
            if let Operation::Advise { address, length, .. } = record.operation {
                let (start, end) = (address as u64, (address + length) as u64);
                assert!(end <= at || start >= at + 16 * MIB, "{profile}: {record}");
            }
        }
    }
}

/// Answers NUMA policies itself, and writes them down.
#[derive(Default)]
struct Policies {
    answer: Cell<Option<Errno>>,
    asked: RefCell<Vec<(MemoryPolicy, Vec<u64>)>>,
}

impl Alteration for Policies {
    fn bind(
        &self,
        _: &impl Os,
        _: (usize, usize),
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        self.asked.borrow_mut().push((policy, nodes.to_vec()));
        self.answer.get().map_or(Ok(()), Err)
    }
}

/// CPU nodes 0 without memory, 8 and 70 without processors, and the GPU as node 64.
fn odd_numa_nodes() -> Machine {
    let mut profile = Profile::parse("rx7900:cpus=64,cores=1,svm=0").unwrap();
    let nodes = &mut profile.topology.nodes;
    nodes[0].banks.clear();
    let without_cpus = |cpu: &Cpu| Cpu { cores: 0, ..cpu.clone() };
    let cpu = nodes[1].cpu.clone().unwrap();
    nodes[8].cpu = Some(without_cpus(&cpu));
    while nodes.len() <= 70 {
        nodes.push(Node {
            cpu: Some(without_cpus(&cpu)),
            banks: vec![Bank { size_in_bytes: GIB, ..Bank::default() }],
            ..Node::default()
        });
    }
    let machine = Machine::new(&profile);
    machine.keep_log(false);
    machine
}

/// B39.
#[test]
fn numa_nodes_are_wishes_of_any_number() {
    let machine = odd_numa_nodes();
    let policies = Policies::default();
    let platform = Altered::new(machine.spawn(Linux), &policies);
    in_context(platform, &Options::default(), |guard| {
        assert_eq!(*policies.asked.borrow(), [], "nothing of the library's own is bound");
        let snapshot_nodes = guard.machine(|m| Ok(m.snapshot().nodes().len())).unwrap();
        assert_eq!(snapshot_nodes, 71);
        for node in [0, 1, 8, 63, 64, 70] {
            policies.asked.borrow_mut().clear();
            let address = guard.allocate_memory(&request(node, 3 * PAGE, PAGED)).unwrap();
            let asked = policies.asked.borrow().clone();
            let [(policy, mask)] = &asked[..] else { panic!("node {node}: {asked:?}") };
            assert_eq!(*policy, MemoryPolicy::Preferred, "node {node}");
            // A GPU's pages are wanted near its socket.
            let numa = if node == 64 { 0 } else { node };
            assert_eq!(mask.len() as u32, numa / 64 + 1, "node {node}: {mask:?}");
            let bits: Vec<u32> = (0..mask.len() as u32 * 64)
                .filter(|bit| mask[*bit as usize / 64] >> (bit % 64) & 1 != 0)
                .collect();
            assert_eq!(bits, [numa]);
            guard.free_memory(address, 3 * PAGE).unwrap();
        }
        policies.asked.borrow_mut().clear();
        let flags = PAGED | MemoryFlags::NO_NUMA_BIND;
        let address = guard.allocate_memory(&request(70, PAGE, flags)).unwrap();
        assert_eq!(*policies.asked.borrow(), []);
        guard.free_memory(address, PAGE).unwrap();
    });
}

/// B39.
#[test]
fn a_refused_numa_node_fails_only_what_must_be_there() {
    let machine = odd_numa_nodes();
    let policies = Policies::default();
    let platform = Altered::new(machine.spawn(Linux), &policies);
    in_context(platform, &Options::default(), |guard| {
        for flags in [PAGED, PAGED | MemoryFlags::NO_SUBSTITUTE] {
            for size in [PAGE, 4 * MIB] {
                let strict = flags.contains(MemoryFlags::NO_SUBSTITUTE);
                for errno in [Errno::EPERM, Errno::ENOSYS, Errno::EINVAL, Errno::EIO] {
                    policies.answer.set(None);
                    let address = guard.allocate_memory(&request(70, size, flags)).unwrap();
                    guard.free_memory(address, size).unwrap();
                    let before = held(&machine);
                    policies.answer.set(Some(errno));
                    policies.asked.borrow_mut().clear();
                    let result = guard.allocate_memory(&request(70, size, flags));
                    let asked = policies.asked.borrow().clone();
                    let policy = if strict { MemoryPolicy::Bind } else { MemoryPolicy::Preferred };
                    assert_eq!(asked[0].0, policy);
                    let forbidden = errno == Errno::EPERM || errno == Errno::ENOSYS;
                    match result {
                        Ok(address) => {
                            assert!(!strict || forbidden, "{errno}");
                            guard.free_memory(address, size).unwrap();
                        }
                        Err(error) => {
                            assert!(strict && !forbidden, "{error}");
                            assert_eq!(error.errno, Some(errno));
                        }
                    }
                    assert_eq!(held(&machine), before, "{errno}");
                }
            }
        }
    });
}

/// B40.
#[test]
fn sizes_are_64_bits_wide() {
    let machine = machine("rx7900:svm=0,vram=64T,ram=128T");
    in_context(machine.spawn(Linux), &Options::default(), |guard| {
        let gpu = gpus(guard)[0];
        let page = guard.allocate_memory(&request(gpu, PAGE, ADDRESSES)).unwrap();
        guard.free_memory(page, PAGE).unwrap();
        let empty = held(&machine);
        machine.keep_log(true);
        for flags in [VRAM, RING, NAMELESS, PAGED, GTT, ADDRESSES] {
            for size in [4 * GIB - PAGE, 4 * GIB, 4 * GIB + PAGE, 16 * TIB] {
                machine.take_log();
                let address = guard.allocate_memory(&request(gpu, size, flags)).unwrap();
                let sent = requests(&machine.take_log(), ALLOC);
                let bytes: u64 = sent.iter().map(|sent| sent.sent("size").unwrap()).sum();
                let expected = match flags {
                    RING => 2 * size,
                    ADDRESSES => 0,
                    _ => size,
                };
                assert_eq!(bytes, expected, "{flags:?}, {size:#x}");
                // Several buffers follow each other without gaps.
                let mut at = address;
                for sent in sent.iter().filter(|_| flags != NAMELESS) {
                    assert_eq!(sent.sent("va_addr"), Some(at));
                    at += sent.sent("size").unwrap();
                }
                let info = guard.pointer_info(address + size - 1).unwrap();
                assert_eq!((info.gpu_address, info.size), (address, size), "{flags:?}");
                let mapped = guard.map_memory(address, size);
                assert_eq!(mapped.is_ok(), flags != ADDRESSES && flags != NAMELESS);
                guard.unmap_memory(address).unwrap();
                guard.free_memory(address, size).unwrap();
                assert!(guard.pointer_info(address + size - 1).is_err());
                assert_eq!(held(&machine), empty, "{flags:?}, {size:#x}");
            }
            for size in [1 << 63, u64::MAX - (PAGE - 1)] {
                machine.take_log();
                let error = guard.allocate_memory(&request(gpu, size, flags)).unwrap_err();
                assert!(matches!(error.status, Status::NO_MEMORY | Status::ERROR), "{error}");
                for sent in requests(&machine.take_log(), ALLOC) {
                    assert_eq!(sent.sent("size"), Some(size), "{flags:?}");
                }
                assert_eq!(held(&machine), empty, "{flags:?}, {size:#x}");
            }
            let error = guard.allocate_memory(&request(gpu, 0, flags)).unwrap_err();
            assert_eq!(error.status, Status::INVALID_PARAMETER);
        }
    });
    machine.assert_no_violations();
}

/// B40. The simulator takes addresses that nobody mapped for memory of the caller.
#[test]
fn sizes_of_registered_memory_are_64_bits_wide() {
    const AT: u64 = 0x1000_0000_0000;
    for profile in ["mi210:svm=0,ram=128T,vram=64T", "mi210:svm=1,ram=128T,vram=64T"] {
        let svm = profile.contains("svm=1");
        let machine = machine(profile);
        in_context(machine.spawn(Linux), &Options::default(), |guard| {
            let gpu = gpus(guard)[0];
            let page = guard.allocate_memory(&request(gpu, PAGE, ADDRESSES)).unwrap();
            guard.free_memory(page, PAGE).unwrap();
            let mut empty = held(&machine);
            machine.keep_log(true);
            for size in [4 * GIB - PAGE, 4 * GIB, 4 * GIB + PAGE, 16 * TIB] {
                machine.take_log();
                guard.register_memory(AT + 100, size, PAGED, None).unwrap();
                let log = machine.take_log();
                let (name, other) = if svm { (SVM, ALLOC) } else { (ALLOC, SVM) };
                let bytes: u64 =
                    requests(&log, name).iter().map(|sent| sent.sent("size").unwrap()).sum();
                assert_eq!(bytes, size + PAGE, "{profile}, {size:#x}");
                assert_eq!(requests(&log, other).len(), 0);
                guard.map_memory(AT + 100, size).unwrap();
                if svm {
                    let last = (AT + 100 + size) / PAGE * PAGE;
                    let access = SvmAttributeType::ACCESS;
                    let mut asked = [SvmAttribute { r#type: access, value: gpu }];
                    guard.svm_attributes(last, PAGE, &mut asked).unwrap();
                    assert_eq!(asked[0].r#type, SvmAttributeType::ACCESS_IN_PLACE);
                } else {
                    let info = guard.pointer_info(AT + 100 + size - 1).unwrap();
                    assert_eq!((info.kind, info.size), (PointerKind::RegisteredUser, size));
                    assert_eq!(info.cpu_address, AT + 100);
                }
                guard.unmap_memory(AT + 100).unwrap();
                guard.deregister_memory(AT + 100).unwrap();
                let left = held(&machine);
                // Ranges of the driver stay with the pages.
                empty.ranges.clone_from(&left.ranges);
                assert!(left.ranges.iter().all(|range| range.ends_with("open to 0 GPUs")));
                assert_eq!(left, empty, "{profile}, {size:#x}");
            }
            for size in [1 << 63, u64::MAX - (PAGE - 1), u64::MAX] {
                let error = guard.register_memory(AT, size, PAGED, None).unwrap_err();
                let refused = [Status::NO_MEMORY, Status::ERROR, Status::INVALID_PARAMETER];
                assert!(refused.contains(&error.status), "{error}");
                if svm {
                    assert!(guard.map_memory(AT, size).is_err());
                    assert!(guard.svm_attributes(AT, size / PAGE * PAGE, &mut []).is_err());
                    assert!(guard.set_svm_attributes(AT, size / PAGE * PAGE, &[]).is_err());
                }
            }
            let error = guard.register_memory(AT, 0, PAGED, None).unwrap_err();
            assert_eq!(error.status, Status::INVALID_PARAMETER);
            assert_eq!(held(&machine), empty);
        });
        machine.assert_no_violations();
    }
}

/// Refuses SVM attributes for a range of device memory, and, if asked to, also
/// buffers over it.
struct DeviceMemory {
    at: u64,
    no_buffer: Cell<bool>,
}

impl Alteration for DeviceMemory {
    fn execute<D: Driver>(
        &self,
        driver: &D,
        device: &D::Device,
        call: &mut Call<'_, '_>,
    ) -> Result<u32, Errno> {
        let word = |at: usize| u64::from_ne_bytes(call.block[at..at + 8].try_into().unwrap());
        match call.name {
            SVM if word(0) == self.at => Err(Errno::EFAULT),
            // The memory below is where the offset will be (va_addr, size, handle).
            ALLOC if word(24) == self.at && self.no_buffer.get() => Err(Errno::EPERM),
            _ => driver.execute(device, call),
        }
    }
}

static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn keep_message(level: Level, message: fmt::Arguments<'_>, _: usize) {
    MESSAGES.lock().unwrap().push(format!("{level}: {message}"));
}

/// B44.
#[test]
fn memory_that_svm_refuses_is_registered_by_a_buffer() {
    let machine = machine("mi210:svm=1");
    let device_memory = DeviceMemory { at: caller_memory(MIB), no_buffer: Cell::new(false) };
    let at = device_memory.at;
    let logger = Logger::new(Level::Debug, keep_message, 0);
    let options = Options { logger, ..Options::default() };
    in_context(Altered::new(machine.spawn(Linux), &device_memory), &options, |guard| {
        let gpu = gpus(guard)[0];
        let page = guard.allocate_memory(&request(gpu, PAGE, ADDRESSES)).unwrap();
        guard.free_memory(page, PAGE).unwrap();
        let empty = held(&machine);
        machine.keep_log(true);
        guard.register_memory(at, MIB, PAGED, None).unwrap();
        let log = machine.take_log();
        let sent = requests(&log, ALLOC);
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].sent("mmap_offset"), Some(at));
        let flags = sent[0].sent("flags").unwrap() as u32;
        assert_ne!(flags & AllocMemoryFlags::USERPTR.bits(), 0);
        let told = std::mem::take(&mut *MESSAGES.lock().unwrap());
        assert!(told.iter().any(|line| line.contains("EFAULT")), "{told:?}");

        let alternate = guard.map_memory(at, MIB).unwrap();
        assert_ne!(alternate, 0);
        assert_eq!(guard.pointer_info(at).unwrap().gpu_address, alternate);
        guard.unmap_memory(at).unwrap();
        guard.deregister_memory(at).unwrap();
        assert_eq!(held(&machine), empty);

        device_memory.no_buffer.set(true);
        let error = guard.register_memory(at, MIB, PAGED, None).unwrap_err();
        // The second refusal is the answer, the first was told.
        assert_eq!(error.errno, Some(Errno::EPERM));
        let told = std::mem::take(&mut *MESSAGES.lock().unwrap());
        assert!(told.iter().any(|line| line.contains("EFAULT")), "{told:?}");
        assert_eq!(held(&machine), empty);
        assert!(guard.pointer_info(at).is_err());
        device_memory.no_buffer.set(false);
        guard.register_memory(at, MIB, PAGED, None).unwrap();
        guard.deregister_memory(at).unwrap();
    });
}

/// B47.
#[test]
fn a_free_gives_back_exactly_what_was_taken() {
    for guard_pages in 0..=4 {
        let machine = machine("rx7900:svm=0");
        let counters = Counters::new();
        let platform = Counted::new(machine.spawn(AddressesOnly::new()), &counters);
        let options = Options { guard_pages, ..Options::default() };
        in_context(platform, &options, |guard| {
            let gpu = gpus(guard)[0];
            let start = held(&machine);
            let mut random = Random(0x2545_f491_4f6c_dd1d + u64::from(guard_pages));
            let mut live: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
            for _ in 0..3000 {
                if random.below(5) < 3 && live.len() < 60 {
                    let flags = random.of(&[VRAM, RING, NAMELESS, PAGED, GTT, ADDRESSES]);
                    let mut size = (1 + random.below(80)) * PAGE;
                    if random.below(20) == 0 {
                        size = random.of(&[2, 3, 5]) * MIB;
                    }
                    if flags == ADDRESSES && random.below(10) == 0 {
                        size = GIB + random.below(3) * PAGE;
                    }
                    let mut alignment = 0;
                    if random.below(3) == 0 {
                        let most = if random.below(50) == 0 { 19 } else { 10 };
                        alignment = PAGE << random.below(most);
                    }
                    let wanted = AllocationRequest { alignment, ..request(gpu, size, flags) };
                    let address = guard.allocate_memory(&wanted).unwrap();
                    assert_eq!(address % alignment.max(PAGE), 0);
                    let length = if flags == RING { 2 * size } else { size };
                    let spare = if flags == NAMELESS { 0 } else { u64::from(guard_pages) * PAGE };
                    let end = address + length + spare;
                    let before = live.range(..end).next_back();
                    assert!(before.is_none_or(|(_, &(_, end))| end <= address), "{wanted:?}");
                    live.insert(address, (size, end));
                } else {
                    let keys: Vec<u64> = live.keys().copied().collect();
                    if keys.is_empty() {
                        continue;
                    }
                    let key = random.of(&keys);
                    let (size, _) = live.remove(&key).unwrap();
                    guard.free_memory(key, size).unwrap();
                }
            }
            for (key, (size, _)) in live {
                guard.free_memory(key, size).unwrap();
            }
            assert_eq!(held(&machine).buffers, start.buffers);
            // All holes have become one again: it is as long as the last region was.
            let mappings = || counters.snapshot().of(OperationKind::Map);
            let before = mappings();
            let whole = 64 * MIB - u64::from(guard_pages) * PAGE;
            for flags in [VRAM, ADDRESSES] {
                let address = guard.allocate_memory(&request(gpu, whole, flags)).unwrap();
                guard.free_memory(address, whole).unwrap();
            }
            assert_eq!(mappings(), before, "{guard_pages} guard pages");
        });
        for (_, held) in machine.leftovers().processes {
            assert_eq!(held.anonymous_bytes, 0);
        }
        machine.assert_no_violations();
    }
}

type Disturbed<'p> = Faulty<Simulated, &'p FaultPlan<'static>>;

/// B50.
#[test]
fn user_pages_that_are_refused_once_are_not_asked_for_again() {
    for size in [64 << 10, 4 * MIB] {
        let machine = machine("mi210:svm=0");
        let alloc = Selector::Block(ALLOC);
        let plan = FaultPlan::with(Fault::nth(alloc, 1, Errno::EOPNOTSUPP)).unwrap();
        plan.suspend();
        let platform: Disturbed<'_> = Faulty::new(machine.spawn(Linux), &plan);
        in_context(platform, &Options::default(), |guard| {
            let gpu = gpus(guard)[0];
            // The regions of both kinds are there before anything is compared.
            for flags in [ADDRESSES, PAGED] {
                let address = guard.allocate_memory(&request(gpu, PAGE, flags)).unwrap();
                guard.free_memory(address, PAGE).unwrap();
            }
            let empty = held(&machine);
            plan.resume();
            machine.keep_log(true);
            let address = guard.allocate_memory(&request(gpu, size, PAGED)).unwrap();
            plan.suspend();
            assert_eq!(plan.struck(), 1);
            // The refused request did not reach the machine.
            let log = machine.take_log();
            let sent = requests(&log, ALLOC);
            assert_eq!(sent.len(), 1);
            let flags = AllocMemoryFlags::from_bits_retain(sent[0].sent("flags").unwrap() as u32);
            assert!(flags.contains(AllocMemoryFlags::GTT), "{flags:?}");
            assert!(!flags.contains(AllocMemoryFlags::USERPTR), "{flags:?}");
            assert_eq!(sent[0].sent("mmap_offset"), Some(0));
            assert_eq!(sent[0].sent("va_addr"), Some(address));
            let now = held(&machine);
            assert_eq!(now.buffers.len(), empty.buffers.len() + 1);
            let bytes = |held: &kfd_sim::Leftovers| {
                let anonymous = held.processes.values().map(|held| held.anonymous_bytes);
                let devices = held.processes.values().flat_map(|held| &held.device_mappings);
                anonymous.sum::<usize>() + devices.map(|(_, length)| length).sum::<usize>()
            };
            assert_eq!(bytes(&now), bytes(&empty), "no address was left reserved");
            guard.map_memory(address, size).unwrap();
            guard.unmap_memory(address).unwrap();
            guard.free_memory(address, size).unwrap();
            assert_eq!(held(&machine), empty);

            machine.take_log();
            let address = guard.allocate_memory(&request(gpu, size, PAGED)).unwrap();
            let sent = requests(&machine.take_log(), ALLOC);
            assert_eq!(sent.len(), 1, "remembered");
            let flags = sent[0].sent("flags").unwrap() as u32;
            assert_eq!(flags & AllocMemoryFlags::USERPTR.bits(), 0);
            guard.free_memory(address, size).unwrap();
        });
        machine.assert_no_violations();
    }
}

/// B51.
#[test]
fn one_gpu_without_svm_leaves_the_others_theirs_in_sight() {
    const SVM_API: u32 = 1 << 27;
    let mut profile = Profile::parse("mi210+rx7900:svm=1").unwrap();
    let other = profile.topology.nodes.iter_mut().filter_map(|node| node.gpu.as_mut()).nth(1);
    let other = other.unwrap();
    other.properties.capability &= !SVM_API;
    other.svm_capable = false;
    let machine = Machine::new(&profile);
    let memory = caller_memory(MIB);
    in_context(machine.spawn(Linux), &Options::default(), |guard| {
        let nodes = gpus(guard);
        let capability = |node| guard.machine(|machine| Ok(machine.node(node)?.capability));
        assert_ne!(capability(nodes[0]).unwrap() & SVM_API, 0);
        assert_eq!(capability(nodes[1]).unwrap() & SVM_API, 0);
        // All GPUs must be able to: the process's mode is one.
        assert_eq!(guard.xnack_mode(), Ok(false));
        let error = guard.set_xnack_mode(true).unwrap_err();
        assert_eq!((error.status, error.errno), (Status::NOT_SUPPORTED, Some(Errno::EPERM)));
        assert_eq!(guard.xnack_mode(), Ok(false));
        assert_eq!(guard.set_xnack_mode(false), Ok(()));
        machine.take_log();
        guard.register_memory(memory, MIB, PAGED, None).unwrap();
        let log = machine.take_log();
        assert_eq!((requests(&log, SVM).len(), requests(&log, ALLOC).len()), (0, 1));
        guard.map_memory_to_nodes(memory, MIB, &nodes).unwrap();
        guard.unmap_memory(memory).unwrap();
        guard.deregister_memory(memory).unwrap();
    });
    machine.assert_no_violations();
}

/// B51.
#[test]
fn the_retry_mode_is_the_kernels_answer() {
    let machine = machine("mi210x8:gpus=2,svm=1");
    let mode = Selector::Block("SET_XNACK_MODE");
    let plan = FaultPlan::with(Fault::nth(mode, 2, Errno::EBUSY)).unwrap();
    let platform: Disturbed<'_> = Faulty::new(machine.spawn(Linux), &plan);
    in_context(platform, &Options::default(), |guard| {
        assert_eq!(guard.xnack_mode(), Ok(false));
        // Queues are alive.
        let error = guard.set_xnack_mode(true).unwrap_err();
        assert_eq!((error.status, error.errno), (Status::ERROR, Some(Errno::EBUSY)));
        assert_eq!(guard.xnack_mode(), Ok(false));
        for on in [true, true, false, true] {
            guard.set_xnack_mode(on).unwrap();
            assert_eq!(guard.xnack_mode(), Ok(on));
        }
    });
    let without = hsakmt_conformance::machine("mi210x8:gpus=2,svm=0");
    in_context(without.spawn(Linux), &Options::default(), |guard| {
        for error in [guard.xnack_mode().unwrap_err(), guard.set_xnack_mode(true).unwrap_err()] {
            assert_eq!((error.status, error.errno), (Status::NOT_SUPPORTED, Some(Errno::EPERM)));
        }
    });
}

/// Refuses buffers over memory of the process when that is wanted, and looks at
/// the memory first.
#[derive(Default)]
struct Refusal {
    refuse: Cell<bool>,
    /// Pages with memory behind them at each such request.
    populated: RefCell<Vec<usize>>,
    ranges: RefCell<Vec<(u64, u64)>>,
}

impl Alteration for Refusal {
    fn execute<D: Driver>(
        &self,
        driver: &D,
        device: &D::Device,
        call: &mut Call<'_, '_>,
    ) -> Result<u32, Errno> {
        let word = |at: usize| u64::from_ne_bytes(call.block[at..at + 8].try_into().unwrap());
        let flags = if call.name == ALLOC { (word(32) >> 32) as u32 } else { 0 };
        if flags & AllocMemoryFlags::USERPTR.bits() != 0 {
            let (source, size) = (word(24), word(8));
            self.populated.borrow_mut().push(populated(source, size));
            self.ranges.borrow_mut().push((source, size));
            if self.refuse.get() {
                return Err(Errno::ENOMEM);
            }
        }
        driver.execute(device, call)
    }
}

/// B52.
#[test]
fn a_refused_allocation_has_touched_no_page() {
    let touched = vec![1_u8; 1 << 20];
    let first_page = (touched.as_ptr() as u64).next_multiple_of(PAGE);
    assert_eq!(populated(first_page, MIB / 2), 128, "the count sees touched pages");
    let machine = machine("rx7900:svm=0");
    let refusal = Refusal::default();
    let memory = caller_memory(64 * MIB);
    in_context(Altered::new(machine.spawn(Linux), &refusal), &Options::default(), |guard| {
        let gpu = gpus(guard)[0];
        for refuse in [true, false] {
            refusal.refuse.set(refuse);
            for (node, size) in [(0, MIB), (gpu, MIB), (gpu, 256 * MIB)] {
                let result = guard.allocate_memory(&request(node, size, PAGED));
                assert_eq!(result.is_err(), refuse);
                let &(start, length) = refusal.ranges.borrow().last().unwrap();
                assert_eq!(populated(start, length), 0, "{size:#x}");
                if let Ok(address) = result {
                    guard.map_memory(address, size).unwrap();
                    guard.unmap_memory(address).unwrap();
                    guard.free_memory(address, size).unwrap();
                }
            }
            let result = guard.register_memory(memory, 64 * MIB, PAGED, None);
            assert_eq!(result.is_err(), refuse);
            if !refuse {
                guard.deregister_memory(memory).unwrap();
            }
            assert_eq!(populated(memory, 64 * MIB), 0);
        }
        assert_eq!(*refusal.populated.borrow(), [0; 8]);
    });
}

/// B53.
#[test]
fn registration_names_no_gpu_and_mapping_those_wanted() {
    let machine = machine("mi300x:gpus=8,cus=2,svm=1");
    let memory = caller_memory(64 * MIB);
    let counters = Counters::new();
    let platform = Counted::new(machine.spawn(Linux), &counters);
    in_context(platform, &Options::default(), |guard| {
        let nodes = gpus(guard);
        let ids = gpu_ids(guard);
        assert_eq!(nodes.len(), 8);
        machine.keep_log(true);
        let attributes = |act: &dyn Fn()| {
            machine.take_log();
            let before = counters.snapshot();
            act();
            let cost = counters.snapshot().since(&before);
            assert_eq!((cost.system_calls(), cost.executed(SVM)), (1, 1), "{cost}");
            requests(&machine.take_log(), SVM)[0].svm_attributes_sent()
        };
        let sent = attributes(&|| guard.register_memory(memory, 64 * MIB, PAGED, None).unwrap());
        let flags = [SvmAttributeType::SET_FLAGS, SvmAttributeType::CLR_FLAGS];
        assert!(sent.iter().all(|(kind, _)| flags.iter().any(|flag| flag.0 == *kind)), "{sent:?}");
        let named = [nodes[2], nodes[5]];
        let sent = attributes(&|| {
            guard.map_memory_to_nodes(memory, 64 * MIB, &named).unwrap();
        });
        let in_place = SvmAttributeType::ACCESS_IN_PLACE.0;
        assert_eq!(sent, [(in_place, ids[2]), (in_place, ids[5])]);
        attributes(&|| guard.deregister_memory(memory).unwrap());
    });
}

/// B81.
#[test]
fn a_buffer_is_mapped_on_64_gpus_by_one_request() {
    let machine = machine("mi300x:cpx,cus=2,cpus=1,cores=1,svm=0");
    let counters = Counters::new();
    let platform = Counted::new(machine.spawn(Linux), &counters);
    in_context(platform, &Options::default(), |guard| {
        let nodes = gpus(guard);
        assert_eq!(nodes.len(), 64);
        for flags in [PAGED, GTT] {
            let address = guard.allocate_memory(&request(nodes[0], 64 << 10, flags)).unwrap();
            for list in [&nodes[..], &nodes[..1], &nodes[3..5]] {
                let before = counters.snapshot();
                guard.map_memory_to_nodes(address, 64 << 10, list).unwrap();
                let cost = counters.snapshot().since(&before);
                assert!(cost.executed(MAP) <= 1 && cost.executed("UNMAP_MEMORY_FROM_GPU") <= 1);
                assert_eq!(cost.system_calls(), cost.ioctls(), "{cost}");
                assert_eq!(guard.pointer_info(address).unwrap().mapped, list);
                if list.len() == 64 {
                    assert_eq!(cost.system_calls(), 1, "{cost}");
                }
            }
            let before = counters.snapshot();
            guard.unmap_memory(address).unwrap();
            assert_eq!(counters.snapshot().since(&before).system_calls(), 1);
            guard.free_memory(address, 64 << 10).unwrap();
        }
    });
}

/// B81.
#[test]
fn gpus_that_are_not_wanted_are_left_alone() {
    let machine = machine("mi300x:cpx,cus=2,cpus=1,cores=1");
    let wanted: Vec<u32> =
        machine.topology().gpus().map(|(_, gpu)| gpu.id).skip(7).step_by(40).collect();
    assert_eq!(wanted.len(), 2);
    let counters = Counters::new();
    let platform = Counted::new(machine.spawn(Linux), &counters);
    let options = Options { gpus: GpuSelection::Only(wanted), ..Options::default() };
    in_context(platform, &options, |guard| {
        let nodes = gpus(guard);
        assert_eq!(nodes.len(), 2);
        let counts = counters.snapshot();
        assert_eq!(counts.of(OperationKind::OpenRender), 2);
        assert_eq!(counts.executed("ACQUIRE_VM"), 2);
        let address = guard.allocate_memory(&request(nodes[0], PAGE, PAGED)).unwrap();
        guard.map_memory(address, PAGE).unwrap();
        assert_eq!(guard.pointer_info(address).unwrap().mapped, nodes);
        guard.unmap_memory(address).unwrap();
        guard.free_memory(address, PAGE).unwrap();
    });
}

/// Addresses of which the first page of every 2 MiB is taken, up to 40 bits, and
/// what was mapped through it.
struct Fragmented {
    list: String,
    ours: RefCell<BTreeMap<u64, u64>>,
}

/// The lines of the list have one length.
const LINE: usize = "000000000000-000000000000 ---p\n".len();

impl Fragmented {
    fn new() -> Fragmented {
        let blocks = (1_u64 << 40) / HUGE_PAGE;
        let mut list = String::with_capacity(blocks as usize * LINE);
        for block in 0..blocks {
            let start = block * HUGE_PAGE;
            writeln!(list, "{start:012x}-{:012x} ---p", start + PAGE).unwrap();
        }
        Fragmented { list, ours: RefCell::default() }
    }
}

impl Alteration for Fragmented {
    fn map(&self, os: &impl Os, mapping: Mapping) -> Result<usize, Errno> {
        let length = mapping.length as u64;
        if let Placement::Free(start) = mapping.placement {
            let start = start as u64;
            let next = start.next_multiple_of(HUGE_PAGE);
            if start % HUGE_PAGE < PAGE || next < start + length {
                return Err(Errno::EEXIST);
            }
        }
        let at = os.map(mapping)?;
        self.ours.borrow_mut().insert(at as u64, length);
        Ok(at)
    }

    fn read_file(
        &self,
        os: &impl Os,
        path: &CStr,
        into: &mut Vec<u8>,
        (limit, end): (usize, EndOfFile),
    ) -> Result<(), Errno> {
        if path != c"/proc/self/maps" {
            return os.read_file(path, into, limit, end);
        }
        let mut from = 0;
        for (&start, &length) in self.ours.borrow().iter() {
            let to = self.list.len().min((start / HUGE_PAGE + 1) as usize * LINE);
            into.extend_from_slice(&self.list.as_bytes()[from..to.max(from)]);
            from = to.max(from);
            let line = format!("{start:012x}-{:012x} ---p\n", start + length);
            into.extend_from_slice(line.as_bytes());
        }
        into.extend_from_slice(&self.list.as_bytes()[from..]);
        assert!(into.len() <= limit);
        Ok(())
    }
}

/// X10.
#[test]
fn fragmented_low_addresses_cost_no_search() {
    let mut profile = Profile::parse("mi50:svm=0").unwrap();
    let gpu = profile.topology.nodes.iter_mut().find_map(|node| node.gpu.as_mut()).unwrap();
    gpu.properties.gfx_target_version = 80_003;
    let machine = Machine::new(&profile);
    machine.keep_log(false);
    let fragmented = Fragmented::new();
    let counters = Counters::new();
    let below = Altered::new(machine.spawn(AddressesOnly::new()), &fragmented);
    in_context(Counted::new(below, &counters), &Options::default(), |guard| {
        let gpu = gpus(guard)[0];
        let mut live = Vec::new();
        for flags in [VRAM, PAGED, ADDRESSES] {
            for size in [4 << 10, 64 << 10, MIB / 2] {
                let before = counters.snapshot();
                let address = guard.allocate_memory(&request(gpu, size, flags)).unwrap();
                assert!(address + size <= 1 << 40);
                let cost = counters.snapshot().since(&before);
                assert!(cost.system_calls() <= 60, "{flags:?}, {size:#x}: {cost}");
                live.push((address, size));
            }
        }
        let before = counters.snapshot();
        for _ in 0..400 {
            let address = guard.allocate_memory(&request(gpu, PAGE, VRAM)).unwrap();
            live.push((address, PAGE));
        }
        let cost = counters.snapshot().since(&before);
        assert!(cost.system_calls() <= 2 * 400, "{cost}");
        // There is no room for more than 2 MiB at once, and that is soon known.
        for flags in [VRAM, PAGED, ADDRESSES] {
            let before = counters.snapshot();
            assert!(guard.allocate_memory(&request(gpu, 3 * MIB, flags)).is_err());
            let cost = counters.snapshot().since(&before);
            assert!(cost.system_calls() <= 60, "{cost}");
        }
        for (address, size) in live {
            guard.free_memory(address, size).unwrap();
        }
    });
}

fn freeing_evicts_no_other(profile: &str, kinds: &[MemoryFlags], steps: usize) {
    let machine = machine(profile);
    let sim = machine.spawn(AddressesOnly::new());
    let process = sim.process();
    // Without guard pages neighbours touch, and could share a huge page.
    let options = Options { guard_pages: 0, ..Options::default() };
    in_context(sim, &options, |guard| {
        let gpu = gpus(guard)[0];
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        let free = |address, size| {
            guard.unmap_memory(address).unwrap();
            guard.free_memory(address, size).unwrap();
        };
        for step in 0..steps {
            if random.below(9) < 5 && live.len() < 300 {
                let pages = match random.below(4) {
                    0 => 1,
                    1 => 1 + random.below(16),
                    2 => 1 + random.below(512),
                    _ => 1 + random.below(1536),
                };
                let flags = random.of(kinds);
                let size = pages * PAGE;
                let address = guard.allocate_memory(&request(gpu, size, flags)).unwrap();
                guard.map_memory(address, size).unwrap();
                live.insert(address, size);
            } else {
                let keys: Vec<u64> = live.keys().copied().collect();
                if keys.is_empty() {
                    continue;
                }
                let key = random.of(&keys);
                free(key, live.remove(&key).unwrap());
            }
            assert_eq!(process.evictions(), 0, "{profile}, step {step}");
        }
        for (address, size) in live {
            free(address, size);
        }
        assert_eq!(process.evictions(), 0);
    });
    machine.assert_no_violations();
}

#[test]
fn freeing_one_allocation_evicts_no_other() {
    let host = [PAGED, PAGED | MemoryFlags::EXECUTE];
    let all = [PAGED, VRAM, VISIBLE_VRAM, GTT | MemoryFlags::HOST_ACCESS];
    freeing_evicts_no_other("rx7900:svm=0", &host, 4000);
    freeing_evicts_no_other("mi210:svm=1", &host, 4000);
    freeing_evicts_no_other("mi210:svm=1", &all, 4000);
}

/// A GPU that retries faults reaches for memory that is gone.
#[test]
fn an_access_to_a_freed_range_does_not_spoil_the_next_allocation() {
    let machine = machine("mi210:svm=1");
    let sim = machine.spawn(AddressesOnly::new());
    let process = sim.process();
    process.set_memory_is_complete(true);
    in_context(sim, &Options::default(), |guard| {
        let (gpu, id) = (gpus(guard)[0], gpu_ids(guard)[0]);
        guard.set_xnack_mode(true).unwrap();
        for flags in [VRAM, VISIBLE_VRAM, RING, GTT, PAGED] {
            for size in [PAGE, 64 << 10, 4 * MIB] {
                let first = guard.allocate_memory(&request(gpu, size, flags)).unwrap();
                guard.free_memory(first, size).unwrap();
                let _ = process.gpu_access(id, first, true);
                let strayed = process.svm_ranges().len();
                let again = guard.allocate_memory(&request(gpu, size, flags));
                let again = again.unwrap_or_else(|error| panic!("{flags:?}, {size:#x}: {error}"));
                if again == first && (flags, size) != (PAGED, 4 * MIB) {
                    assert_ne!(strayed, 0, "{flags:?}, {size:#x}");
                }
                guard.map_memory(again, size).unwrap();
                assert_eq!(process.gpu_access(id, again, true), Ok(()), "{flags:?}, {size:#x}");
                guard.unmap_memory(again).unwrap();
                guard.free_memory(again, size).unwrap();
            }
        }
        assert_eq!(process.evictions(), 0);
    });
    machine.assert_no_violations();
}

/// What the rule of registrations says a page has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageState {
    flags: u32,
    open: [bool; 2],
}

#[derive(Debug, Clone, Copy)]
struct Registered {
    order: u64,
    count: u32,
    flags: u32,
    open: [bool; 2],
}

/// The naive model: registrations by address and size, in any number.
#[derive(Default)]
struct Registrations {
    all: BTreeMap<(u64, u64), Registered>,
    order: u64,
}

impl Registrations {
    fn register(&mut self, range: (u64, u64), flags: u32) {
        let newest = self.order;
        match self.all.get_mut(&range) {
            Some(known) if known.flags == flags && known.order == newest => known.count += 1,
            known => {
                self.order += 1;
                let order = self.order;
                match known {
                    Some(known) => {
                        *known = Registered { order, flags, count: known.count + 1, ..*known };
                    }
                    None => {
                        let open = [false; 2];
                        self.all.insert(range, Registered { order, count: 1, flags, open });
                    }
                }
            }
        }
    }

    /// The registration that an address means: the largest, or one of this size.
    fn meant(&self, address: u64, size: u64) -> Option<(u64, u64)> {
        if self.all.contains_key(&(address, size)) {
            return Some((address, size));
        }
        let of_address = self.all.range((address, 0)..=(address, u64::MAX));
        of_address.map(|(&key, _)| key).next_back()
    }

    fn deregister(&mut self, address: u64) {
        let Some(key) = self.meant(address, 0) else { return };
        let known = self.all.get_mut(&key).unwrap();
        known.count -= 1;
        if known.count == 0 {
            self.all.remove(&key);
        }
    }

    fn page(&self, page: u64) -> PageState {
        let covering = self.all.iter().filter(|((address, size), _)| {
            address / PAGE * PAGE <= page && page < (address + size).next_multiple_of(PAGE)
        });
        let covering: Vec<&Registered> = covering.map(|(_, known)| known).collect();
        let newest = covering.iter().max_by_key(|known| known.order);
        let coherent = SvmFlags::COHERENT.bits();
        PageState {
            flags: newest.map_or(coherent, |known| known.flags),
            open: [0, 1].map(|gpu| covering.iter().any(|known| known.open[gpu])),
        }
    }
}

fn page_state<P: Platform>(guard: &Guard<'_, P>, page: u64, nodes: &[u32]) -> PageState {
    let attribute = |r#type, value| SvmAttribute { r#type, value };
    let mut asked = [
        attribute(SvmAttributeType::SET_FLAGS, 0),
        attribute(SvmAttributeType::ACCESS, nodes[0]),
        attribute(SvmAttributeType::ACCESS, nodes[1]),
    ];
    guard.svm_attributes(page, PAGE, &mut asked).unwrap();
    let ours = (SvmFlags::COHERENT | SvmFlags::EXT_COHERENT).bits();
    let open = |n: usize| asked[n].r#type != SvmAttributeType::NO_ACCESS;
    PageState { flags: asked[0].value & ours, open: [open(1), open(2)] }
}

#[test]
fn deregistration_restores_what_was_before() {
    const PAGES: u64 = 20;
    let machine = machine("mi210x8:gpus=2,svm=1");
    let memory = caller_memory(PAGES * PAGE);
    in_context(machine.spawn(Linux), &Options::default(), |guard| {
        let nodes = gpus(guard);
        let mut random = Random(0x0123_4567_89ab_cdef);
        let mut model = Registrations::default();
        let coherent = SvmFlags::COHERENT.bits();
        let kinds = [
            (PAGED, coherent),
            (PAGED | MemoryFlags::COARSE_GRAIN, 0),
            (PAGED | MemoryFlags::EXTENDED_COHERENT, coherent | SvmFlags::EXT_COHERENT.bits()),
        ];
        for step in 0..10_000 {
            let starts: Vec<u64> = model.all.keys().map(|&(address, _)| address).collect();
            let what = match random.below(6) {
                0 | 1 if starts.len() < 12 => {
                    let first = random.below(PAGES);
                    let pages = 1 + random.below(PAGES - first);
                    let (mut address, mut size) = (memory + first * PAGE, pages * PAGE);
                    if random.below(4) == 0 {
                        (address, size) = (address + 64, size - 128);
                    }
                    if let (true, Some(again)) =
                        (random.below(4) == 0, model.all.keys().next_back())
                    {
                        (address, size) = *again;
                    }
                    let (flags, bits) = random.of(&kinds);
                    guard.register_memory(address, size, flags, None).unwrap();
                    model.register((address, size), bits);
                    format!("register {address:#x} {size:#x} {flags:?}")
                }
                2 | 3 if !starts.is_empty() => {
                    let keys: Vec<(u64, u64)> = model.all.keys().copied().collect();
                    let (address, size) = random.of(&keys);
                    let size = if random.below(3) == 0 { 1 } else { size };
                    let list = random.of(&[&nodes[..1], &nodes[1..], &nodes[..]]);
                    guard.map_memory_to_nodes(address, size, list).unwrap();
                    let key = model.meant(address, size).unwrap();
                    let known = model.all.get_mut(&key).unwrap();
                    for (open, node) in known.open.iter_mut().zip(&nodes) {
                        *open |= list.contains(node);
                    }
                    format!("map {address:#x} {size:#x} {list:?}")
                }
                _ if !starts.is_empty() => {
                    let address = random.of(&starts);
                    guard.deregister_memory(address).unwrap();
                    model.deregister(address);
                    format!("deregister {address:#x}")
                }
                _ => continue,
            };
            for page in (0..PAGES).map(|page| memory + page * PAGE) {
                let expected = model.page(page);
                assert_eq!(page_state(guard, page, &nodes), expected, "{step}: {what}: {page:#x}");
            }
        }
        while let Some((&(address, _), _)) = model.all.last_key_value() {
            guard.deregister_memory(address).unwrap();
            model.deregister(address);
        }
        let fresh = PageState { flags: coherent, open: [false; 2] };
        for page in (0..PAGES).map(|page| memory + page * PAGE) {
            assert_eq!(page_state(guard, page, &nodes), fresh);
        }
    });
    machine.assert_no_violations();
}

/// The limit of mappings: nothing can be mapped over anything.
#[derive(Default)]
struct MapLimit {
    reached: Cell<bool>,
    refused: Cell<u32>,
}

impl Alteration for MapLimit {
    fn map(&self, os: &impl Os, mapping: Mapping) -> Result<usize, Errno> {
        if self.reached.get() && matches!(mapping.placement, Placement::Replace(_)) {
            self.refused.set(self.refused.get() + 1);
            return Err(Errno::ENOMEM);
        }
        os.map(mapping)
    }
}

#[test]
fn a_free_at_the_limit_of_mappings_loses_addresses_only() {
    let machine = machine("rx7900:svm=0");
    let limit = MapLimit::default();
    in_context(Altered::new(machine.spawn(Linux), &limit), &Options::default(), |guard| {
        let gpu = gpus(guard)[0];
        let wanted = request(gpu, 64 << 10, VISIBLE_VRAM);
        let first = guard.allocate_memory(&wanted).unwrap();
        guard.free_memory(first, 64 << 10).unwrap();
        let empty = held(&machine);
        for count in [1, 5, 40_usize] {
            let all: Vec<u64> =
                (0..count).map(|_| guard.allocate_memory(&wanted).unwrap()).collect();
            limit.reached.set(true);
            for &address in &all {
                guard.free_memory(address, 64 << 10).unwrap();
                assert!(guard.pointer_info(address).is_err());
            }
            assert!(limit.refused.get() >= count as u32);
            let now = held(&machine);
            assert_eq!(now.buffers, empty.buffers, "the driver has none of them");
            assert_eq!(now.orphaned_bytes, (count as u64) << 16, "the CPU sees them still");
            limit.reached.set(false);
            // Each later free of the kind tries one of them again.
            let mut seen: BTreeSet<u64> = all.iter().copied().collect();
            for _ in 0..count {
                let address = guard.allocate_memory(&wanted).unwrap();
                seen.insert(address);
                assert!(!all.contains(&address), "its addresses are not used again");
                guard.free_memory(address, 64 << 10).unwrap();
            }
            assert_eq!(held(&machine).orphaned_bytes, 0, "{count}");
            assert_eq!(held(&machine), empty);
        }
    });
    for (_, held) in machine.leftovers().processes {
        assert_eq!((held.anonymous_bytes, held.device_mappings.len()), (0, 0));
    }
    machine.assert_no_violations();
}

/// What a range of the caller answers to every attribute, after some were set.
fn svm_answers<P: Platform>(platform: P, at: u64) -> Vec<(u32, u32)> {
    let mut answers = Vec::new();
    in_context(platform, &Options::default(), |guard| {
        let nodes: Vec<u32> = guard
            .machine(|machine| {
                let nodes = (0..).zip(machine.snapshot().nodes());
                Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
            })
            .unwrap();
        let attribute = |r#type, value| SvmAttribute { r#type, value };
        let coherent = SvmFlags::COHERENT.bits();
        let set = [
            attribute(SvmAttributeType::SET_FLAGS, coherent),
            attribute(SvmAttributeType::PREFERRED_LOC, nodes[1]),
            attribute(SvmAttributeType::GRANULARITY, 7),
            attribute(SvmAttributeType::ACCESS, nodes[0]),
        ];
        guard.set_svm_attributes(at, PAGE, &set).unwrap();
        let mut asked = [
            attribute(SvmAttributeType::SET_FLAGS, 0),
            attribute(SvmAttributeType::PREFERRED_LOC, 0),
            attribute(SvmAttributeType::PREFETCH_LOC, 0),
            attribute(SvmAttributeType::GRANULARITY, 0),
            attribute(SvmAttributeType::ACCESS, nodes[0]),
            attribute(SvmAttributeType::ACCESS, nodes[1]),
        ];
        guard.svm_attributes(at, PAGE, &mut asked).unwrap();
        answers = asked.iter().map(|asked| (asked.r#type.0, asked.value)).collect();
    });
    answers
}

/// B82: between two address spaces an array goes to the driver and its answer comes back.
#[test]
fn answers_in_arrays_come_back_through_a_driver_that_copies() {
    let memory = caller_memory(PAGE);
    let profile = "mi210x8:gpus=2,svm=1";
    let direct = svm_answers(machine(profile).spawn(Linux), memory);
    let audit = CopyAudit::new();
    let copied = svm_answers(Copied::new(machine(profile).spawn(Linux), &audit), memory);
    assert_eq!(direct, copied);
    assert_eq!(audit.violations(), 0);
    // And they are answers.
    assert_eq!(direct[3].1, 7);
    assert_eq!(direct[4].0, SvmAttributeType::ACCESS.0);
    assert_eq!(direct[5].0, SvmAttributeType::NO_ACCESS.0);
}
