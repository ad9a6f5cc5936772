//! Random sequences of memory calls against a naive model of what they promise,
//! on machines of several shapes; in the end the machine is empty.

use std::collections::{BTreeMap, BTreeSet};

use hsakmt_conformance::{Mode, Simulated, held, machine, open, process};
use hsakmt_core::error::Status;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags, PointerKind};
use hsakmt_core::process::{Guard, Process};

const PAGE: u64 = 4096;

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

#[derive(Debug, Clone)]
struct Allocation {
    size: u64,
    /// Bytes of GPU addresses.
    length: u64,
    node: u32,
    flags: MemoryFlags,
    mapped: BTreeSet<u32>,
    user_data: u64,
}

impl Allocation {
    fn has(&self, flag: MemoryFlags) -> bool {
        self.flags.contains(flag)
    }

    fn can_be_mapped(&self) -> bool {
        !self.has(MemoryFlags::ONLY_ADDRESS) && !self.has(MemoryFlags::NO_ADDRESS)
    }
}

/// Memory of the caller that is registered: mapped how often, registered how often.
#[derive(Debug, Clone, Copy, Default)]
struct Registration {
    count: u32,
    mappings: u32,
}

struct Model<'g, 'p> {
    guard: &'g Guard<'p, Simulated>,
    gpus: Vec<u32>,
    random: Random,
    live: BTreeMap<u64, Allocation>,
    freed: Vec<u64>,
    pool: Vec<u8>,
    registered: BTreeMap<(u64, u64), Registration>,
    primary: bool,
}

const KINDS: [MemoryFlags; 8] = [
    MemoryFlags::NON_PAGED,
    MemoryFlags::NON_PAGED.union(MemoryFlags::COARSE_GRAIN),
    MemoryFlags::NON_PAGED.union(MemoryFlags::AQL_QUEUE),
    MemoryFlags::NON_PAGED.union(MemoryFlags::NO_ADDRESS),
    MemoryFlags::HOST_ACCESS,
    MemoryFlags::HOST_ACCESS.union(MemoryFlags::EXECUTE),
    MemoryFlags::NON_PAGED.union(MemoryFlags::GTT_ACCESS).union(MemoryFlags::HOST_ACCESS),
    MemoryFlags::ONLY_ADDRESS,
];

impl Model<'_, '_> {
    fn key(&mut self) -> Option<u64> {
        let keys: Vec<u64> = self.live.keys().copied().collect();
        (!keys.is_empty()).then(|| self.random.of(&keys))
    }

    fn allocate(&mut self) {
        let flags = self.random.of(&KINDS);
        let size = if self.random.below(40) == 0 {
            (1 + self.random.below(6)) << 20
        } else {
            (1 + self.random.below(40)) * PAGE
        };
        let alignment = if self.random.below(8) == 0 { PAGE << self.random.below(10) } else { 0 };
        let node = self.random.of(&self.gpus);
        let request = AllocationRequest { node, size, alignment, flags, address: 0 };
        let address = self.guard.allocate_memory(&request).unwrap();
        if alignment != 0 {
            assert_eq!(address % alignment, 0);
        }
        let length = if flags.contains(MemoryFlags::AQL_QUEUE) { 2 * size } else { size };
        let before = self.live.range(..address + length).next_back();
        assert!(before.is_none_or(|(start, other)| start + other.length <= address), "overlap");
        self.freed.retain(|&gone| gone < address || gone >= address + length);
        let allocation = Allocation {
            size,
            length,
            node: if flags.contains(MemoryFlags::GTT_ACCESS)
                || flags.contains(MemoryFlags::ONLY_ADDRESS)
            {
                0
            } else {
                node
            },
            flags,
            mapped: BTreeSet::new(),
            user_data: 0,
        };
        self.live.insert(address, allocation);
    }

    fn free(&mut self) {
        let Some(key) = self.key() else { return };
        let size = self.live[&key].size;
        let result = self.guard.free_memory(key, size);
        if self.live[&key].mapped.is_empty() {
            result.unwrap();
            self.live.remove(&key);
            self.freed.push(key);
            assert!(self.guard.map_memory(key, size).is_err());
        } else {
            assert_eq!(result.unwrap_err().status, Status::ERROR, "a mapped one stays");
        }
    }

    fn map(&mut self) {
        let Some(key) = self.key() else { return };
        let allocation = self.live[&key].clone();
        let default = self.random.below(4) == 0;
        let chosen: BTreeSet<u32> = if default {
            BTreeSet::new()
        } else {
            let count = 1 + self.random.below(self.gpus.len() as u64);
            (0..count).map(|_| self.random.of(&self.gpus)).collect()
        };
        let nodes: Vec<u32> = chosen.iter().copied().collect();
        let result = if default {
            self.guard.map_memory(key, allocation.size)
        } else {
            self.guard.map_memory_to_nodes(key, allocation.size, &nodes)
        };
        if !allocation.can_be_mapped() {
            assert_eq!(result.unwrap_err().status, Status::INVALID_PARAMETER);
            return;
        }
        match result {
            Ok(_) if default => {
                let info = self.guard.pointer_info(key).unwrap();
                let now: BTreeSet<u32> = info.mapped.iter().copied().collect();
                assert!(now.is_superset(&allocation.mapped));
                assert!(now.contains(&allocation.node) || allocation.node == 0);
                self.live.get_mut(&key).unwrap().mapped = now;
            }
            Ok(alternate) => {
                assert_eq!(alternate, 0);
                self.live.get_mut(&key).unwrap().mapped = chosen;
            }
            // A GPU that cannot reach the other's memory; nothing has changed.
            Err(error) => {
                assert_eq!(error.status, Status::ERROR, "{error}");
                let vram = !allocation.has(MemoryFlags::HOST_ACCESS);
                assert!(vram && self.gpus.len() > 1, "{error}");
            }
        }
    }

    fn unmap(&mut self) {
        let Some(key) = self.key() else { return };
        self.guard.unmap_memory(key).unwrap();
        self.live.get_mut(&key).unwrap().mapped.clear();
    }

    fn look(&mut self) {
        let Some(key) = self.key() else { return };
        let allocation = &self.live[&key];
        let at = key + self.random.below(allocation.length);
        let info = self.guard.pointer_info(at).unwrap();
        assert_eq!(info.gpu_address, key);
        assert_eq!(info.size, allocation.size);
        assert_eq!(info.node, allocation.node);
        assert_eq!(info.flags, allocation.flags);
        assert_eq!(info.user_data, allocation.user_data);
        assert!(info.mapped.iter().eq(allocation.mapped.iter()), "{:?}", info.mapped);
        let kind = if allocation.has(MemoryFlags::ONLY_ADDRESS) {
            PointerKind::ReservedAddress
        } else {
            PointerKind::Allocated
        };
        assert_eq!(info.kind, kind);
        if !self.freed.is_empty() {
            let gone = self.random.of(&self.freed.clone());
            let inside = self
                .live
                .range(..=gone)
                .next_back()
                .is_some_and(|(start, other)| gone < start + other.length);
            match self.guard.pointer_info(gone) {
                // GPU addresses of registered memory come from the same range.
                Ok(info) if info.kind == PointerKind::RegisteredUser => {
                    assert!(!self.registered.is_empty());
                }
                answer => assert_eq!(answer.is_ok(), inside),
            }
        }
    }

    fn attach(&mut self) {
        let Some(key) = self.key() else { return };
        let data = self.random.below(u64::MAX);
        self.guard.set_user_data(key, data).unwrap();
        self.live.get_mut(&key).unwrap().user_data = data;
        assert_eq!(self.guard.set_user_data(key + 1, 7).unwrap_err().status, Status::ERROR);
    }

    fn register(&mut self) {
        let start = self.pool.as_ptr() as u64 + self.random.below(64) * 1000;
        let size = 1 + self.random.below(30_000);
        let known: Vec<(u64, u64)> = self.registered.keys().copied().collect();
        let (address, size) = if !known.is_empty() && self.random.below(3) == 0 {
            self.random.of(&known)
        } else {
            (start, size)
        };
        let flags = MemoryFlags::HOST_ACCESS | MemoryFlags::COARSE_GRAIN;
        self.guard.register_memory(address, size, flags, None).unwrap();
        self.registered.entry((address, size)).or_default().count += 1;
    }

    fn use_registered(&mut self) {
        let known: Vec<(u64, u64)> = self.registered.keys().copied().collect();
        if known.is_empty() {
            return;
        }
        let (address, size) = self.random.of(&known);
        // Without a size, unmap and deregister mean the largest of this address.
        let largest = *self.registered.range(..=(address, u64::MAX)).next_back().unwrap().0;
        match self.random.below(3) {
            0 => {
                let alternate = self.guard.map_memory(address, size).unwrap();
                assert_eq!(alternate % PAGE, address % PAGE);
                self.registered.get_mut(&(address, size)).unwrap().mappings += 1;
            }
            1 => {
                self.guard.unmap_memory(address).unwrap();
                let registration = self.registered.get_mut(&largest).unwrap();
                registration.mappings = registration.mappings.saturating_sub(1);
            }
            _ => {
                self.guard.deregister_memory(address).unwrap();
                let registration = self.registered.get_mut(&largest).unwrap();
                registration.count -= 1;
                if registration.count == 0 {
                    self.registered.remove(&largest);
                }
            }
        }
        if let Some(registration) = self.registered.get(&largest) {
            let info = self.guard.pointer_info(largest.0).unwrap();
            assert_eq!(info.kind, PointerKind::RegisteredUser);
            // The smallest registration around the address is shown.
            if (info.cpu_address, info.size) == largest {
                assert_eq!(info.mapped.is_empty(), registration.mappings == 0);
            }
        }
    }

    fn step(&mut self) {
        let crowded = self.live.len() > 150;
        match self.random.below(12) {
            0..=2 if !crowded => self.allocate(),
            0..=3 => self.free(),
            4 | 5 => self.map(),
            6 | 7 => self.unmap(),
            8 => self.look(),
            9 => self.attach(),
            10 if self.primary && self.registered.len() < 40 => self.register(),
            _ if self.primary => self.use_registered(),
            _ => self.look(),
        }
    }

    fn end(&mut self) {
        for (&key, allocation) in &self.live {
            self.guard.unmap_memory(key).unwrap();
            self.guard.free_memory(key, allocation.size).unwrap();
        }
        while let Some((&(address, size), _)) = self.registered.last_key_value() {
            let registration = self.registered.remove(&(address, size)).unwrap();
            for _ in 0..registration.count {
                self.guard.deregister_memory(address).unwrap();
            }
        }
    }
}

fn run(profile: &str, mode: Mode, steps: usize, seed: u64) {
    let machine = machine(profile);
    let process: Process<Simulated> = process(&machine);
    open(&process).unwrap();
    process.primary().unwrap().acquire_machine().unwrap();
    let before = held(&machine);
    let handle = mode.open(&process).unwrap();
    let guard = process.enter(handle).unwrap();
    guard.acquire_machine().unwrap();
    let gpus = guard
        .machine(|machine| {
            let nodes = (0..).zip(machine.snapshot().nodes());
            Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
        })
        .unwrap();
    let empty = held(&machine).buffers;
    let mut model = Model {
        guard: &guard,
        gpus,
        random: Random(seed),
        live: BTreeMap::new(),
        freed: Vec::new(),
        pool: vec![0; 128 << 10],
        registered: BTreeMap::new(),
        primary: mode == Mode::Primary,
    };
    for _ in 0..steps {
        model.step();
    }
    model.end();
    assert_eq!(held(&machine).buffers, empty);
    drop(guard);
    mode.close(&process, handle).unwrap();
    if mode == Mode::Secondary {
        assert_eq!(held(&machine), before);
    }
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

#[test]
fn one_gpu_without_the_svm_calls() {
    run("rx7900:svm=0", Mode::Primary, 100_000, 0x1234_5678_9abc_def1);
}

#[test]
fn gpus_that_reach_each_other() {
    run("mi300x:gpus=4,svm=0", Mode::Primary, 100_000, 0x2545_f491_4f6c_dd1d);
}

#[test]
fn gpus_that_do_not_reach_each_other() {
    run("rx6800:gpus=3,svm=0,p2p=0", Mode::Primary, 30_000, 0x9e37_79b9_7f4a_7c15);
}

#[test]
fn a_secondary_context() {
    run("mi300x:gpus=2,kernel=7.2", Mode::Secondary, 100_000, 0x0123_4567_89ab_cdef);
}
