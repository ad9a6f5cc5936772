//! The naive model, and the steps that compare it with the library.

use std::collections::{BTreeMap, BTreeSet};

use hsakmt_conformance::held;
use hsakmt_core::error::Status;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags, PointerKind};

use crate::caller::{Caller, Image};

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

struct Model<'c, C> {
    caller: &'c mut C,
    gpus: Vec<u32>,
    random: Random,
    /// One fork in so many steps; 0 for never.
    fork_every: u64,
    forks: usize,
    live: BTreeMap<u64, Allocation>,
    freed: Vec<u64>,
    pool: Vec<u8>,
    registered: BTreeMap<(u64, u64), Registration>,
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

impl<C: Caller> Model<'_, C> {
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
        let address = self.caller.allocate(&request).unwrap();
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
        let result = self.caller.free(key, size);
        if self.live[&key].mapped.is_empty() {
            result.unwrap();
            self.live.remove(&key);
            self.freed.push(key);
            assert!(self.caller.map(key, size).is_err());
        } else {
            assert_eq!(result.unwrap_err(), Status::ERROR, "a mapped one stays");
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
            self.caller.map(key, allocation.size)
        } else {
            self.caller.map_to_nodes(key, allocation.size, &nodes)
        };
        if !allocation.can_be_mapped() {
            assert_eq!(result.unwrap_err(), Status::INVALID_PARAMETER);
            return;
        }
        match result {
            Ok(_) if default => {
                let info = self.caller.info(key).unwrap();
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
                assert_eq!(error, Status::ERROR);
                let vram = !allocation.has(MemoryFlags::HOST_ACCESS);
                assert!(vram && self.gpus.len() > 1);
            }
        }
    }

    fn unmap(&mut self) {
        let Some(key) = self.key() else { return };
        self.caller.unmap(key).unwrap();
        self.live.get_mut(&key).unwrap().mapped.clear();
    }

    fn look(&mut self) {
        let Some(key) = self.key() else { return };
        let allocation = &self.live[&key];
        let at = key + self.random.below(allocation.length);
        let info = self.caller.info(at).unwrap();
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
            match self.caller.info(gone) {
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
        self.caller.attach(key, data).unwrap();
        self.live.get_mut(&key).unwrap().user_data = data;
        assert_eq!(self.caller.attach(key + 1, 7).unwrap_err(), Status::ERROR);
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
        self.caller.register(address, size).unwrap();
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
                let alternate = self.caller.map(address, size).unwrap();
                assert_eq!(alternate % PAGE, address % PAGE);
                self.registered.get_mut(&(address, size)).unwrap().mappings += 1;
            }
            1 => {
                self.caller.unmap(address).unwrap();
                let registration = self.registered.get_mut(&largest).unwrap();
                registration.mappings = registration.mappings.saturating_sub(1);
            }
            _ => {
                self.caller.deregister(address).unwrap();
                let registration = self.registered.get_mut(&largest).unwrap();
                registration.count -= 1;
                if registration.count == 0 {
                    self.registered.remove(&largest);
                }
            }
        }
        if let Some(registration) = self.registered.get(&largest) {
            let info = self.caller.info(largest.0).unwrap();
            assert_eq!(info.kind, PointerKind::RegisteredUser);
            // The smallest registration around the address is shown.
            if (info.cpu_address, info.size) == largest {
                assert_eq!(info.mapped.is_empty(), registration.mappings == 0);
            }
        }
    }

    fn step(&mut self) {
        if self.fork_every != 0 && self.random.below(self.fork_every) == 0 {
            return self.fork();
        }
        let crowded = self.live.len() > 150;
        match self.random.below(12) {
            0..=2 if !crowded => self.allocate(),
            0..=3 => self.free(),
            4 | 5 => self.map(),
            6 | 7 => self.unmap(),
            8 => self.look(),
            9 => self.attach(),
            10 if self.caller.registers() && self.registered.len() < 40 => self.register(),
            _ if self.caller.registers() => self.use_registered(),
            _ => self.look(),
        }
    }

    /// The child finds nothing open and lives a life of its own; to the parent it is as
    /// if it had not been.
    fn fork(&mut self) {
        self.forks += 1;
        let before = held(self.caller.machine());
        let image = Image::of(self.caller);
        self.caller.platform().enter_fork_child();
        assert_not_open(self);
        assert_eq!(self.caller.close(), Err(Status::KERNEL_IO_CHANNEL_NOT_OPENED));
        self.live_as_a_child();
        self.caller.platform().leave_child();
        image.restore(self.caller);
        assert_eq!(held(self.caller.machine()), before, "what the child leaves behind");
    }

    fn live_as_a_child(&mut self) {
        self.caller.open().unwrap();
        let gpus = self.caller.acquire().unwrap();
        assert_eq!(gpus, self.gpus);
        let mine = self.live.keys().chain(self.registered.keys().map(|(address, _)| address));
        for &address in mine {
            assert_eq!(self.caller.info(address).unwrap_err(), Status::ERROR);
        }
        let empty = held(self.caller.machine()).buffers;
        let (seed, exits) = (self.random.below(u64::MAX) | 1, self.random.below(3) == 0);
        let mut child = Model {
            caller: self.caller,
            gpus,
            random: Random(seed),
            fork_every: 0,
            forks: 0,
            live: BTreeMap::new(),
            freed: Vec::new(),
            pool: vec![0; 128 << 10],
            registered: BTreeMap::new(),
        };
        for _ in 0..100 {
            child.step();
        }
        // An end in the middle of life, or an orderly one.
        if !exits {
            child.end();
            assert_eq!(held(self.caller.machine()).buffers, empty);
            self.caller.close().unwrap();
        }
    }

    fn end(&mut self) {
        for (&key, allocation) in &self.live {
            self.caller.unmap(key).unwrap();
            self.caller.free(key, allocation.size).unwrap();
        }
        while let Some((&(address, size), _)) = self.registered.last_key_value() {
            let registration = self.registered.remove(&(address, size)).unwrap();
            for _ in 0..registration.count {
                self.caller.deregister(address).unwrap();
            }
        }
    }
}

/// Every kind of call, on memory of the parent's: none of them is open.
fn assert_not_open<C: Caller>(model: &Model<'_, C>) {
    let caller = &*model.caller;
    let node = model.gpus[0];
    let flags = MemoryFlags::NON_PAGED;
    let request = AllocationRequest { node, size: PAGE, alignment: 0, flags, address: 0 };
    let (address, size) = match model.live.iter().next() {
        Some((&address, allocation)) => (address, allocation.size),
        None => (model.pool.as_ptr() as u64, PAGE),
    };
    let answers = [
        caller.acquire().map(drop),
        caller.allocate(&request).map(drop),
        caller.allocate(&AllocationRequest { alignment: PAGE, ..request }).map(drop),
        caller.free(address, size),
        caller.map(address, size).map(drop),
        caller.map_to_nodes(address, size, &model.gpus).map(drop),
        caller.unmap(address),
        caller.info(address).map(drop),
        caller.attach(address, 1),
        caller.register(model.pool.as_ptr() as u64, PAGE),
        caller.deregister(address),
        caller.available(node).map(drop),
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer, Err(Status::KERNEL_IO_CHANNEL_NOT_OPENED), "call {number}");
    }
}

/// How long a sequence is, and how often the process forks in it.
pub struct Sequence {
    pub steps: usize,
    /// About so many times.
    pub forks: usize,
    pub seed: u64,
}

/// Runs a sequence from nothing, and takes down what is left.
pub fn run(mut caller: impl Caller, sequence: &Sequence) {
    let before = held(caller.machine());
    caller.open().unwrap();
    let gpus = caller.acquire().unwrap();
    let empty = held(caller.machine()).buffers;
    let mut model = Model {
        caller: &mut caller,
        gpus,
        random: Random(sequence.seed),
        fork_every: (sequence.steps / sequence.forks) as u64,
        forks: 0,
        live: BTreeMap::new(),
        freed: Vec::new(),
        pool: vec![0; 128 << 10],
        registered: BTreeMap::new(),
    };
    for _ in 0..sequence.steps {
        model.step();
    }
    assert!(model.forks >= sequence.forks / 2, "{} forks", model.forks);
    model.end();
    assert_eq!(held(caller.machine()).buffers, empty);
    caller.close().unwrap();
    assert_eq!(held(caller.machine()), before);
    caller.machine().assert_no_violations();
}
