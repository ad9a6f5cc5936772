//! The heap against a model, with threads, and across every kind of fork.
//!
//! It also serves the test program itself: a child of a bare clone(2) could find
//! the C library's heap locked for ever.
//!
//! # Safety
//!
//! Blocks are used within their size and freed once, with their layout.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hsakmt_linux_shim::heap::{DIRECT, Heap};
use hsakmt_shim_tests::child::{
    self, FINE, cloned, emulated, forked, sharing_memory, start_forked,
};
use hsakmt_shim_tests::not_checked;
use hsakmt_shim_tests::random::Random;
use hsakmt_shim_tests::system_calls;

#[global_allocator]
static HEAP: Heap = Heap;

/// A block that knows what it holds.
#[derive(Debug)]
struct Block {
    at: *mut u8,
    layout: Layout,
    seed: u8,
}

// SAFETY: a block belongs to who has the value.
unsafe impl Send for Block {}

/// The byte at a place of a block.
fn pattern(seed: u8, index: usize) -> u8 {
    seed.wrapping_add((index as u8).wrapping_mul(31)).wrapping_add((index >> 8) as u8)
}

/// The places of a block that are looked at: the first page, some of the rest.
fn places(size: usize) -> impl Iterator<Item = usize> {
    (0..size.min(4096)).chain((4096..size).step_by(1021))
}

/// And the last ones, which move when the block is resized.
fn last_places(size: usize) -> std::ops::Range<usize> {
    size.saturating_sub(8)..size
}

impl Block {
    /// `None` when the heap is full.
    fn new(layout: Layout, seed: u8, zeroed: bool) -> Option<Block> {
        // SAFETY: the size is not zero.
        let at = unsafe { if zeroed { Heap.alloc_zeroed(layout) } else { Heap.alloc(layout) } };
        if at.is_null() {
            return None;
        }
        assert_eq!(at.addr() % layout.align(), 0, "{layout:?}");
        let block = Block { at, layout, seed };
        if zeroed {
            for index in places(layout.size()).chain(last_places(layout.size())) {
                // SAFETY: within the block.
                assert_eq!(unsafe { at.add(index).read() }, 0, "{layout:?} is zeroed");
            }
        }
        block.fill();
        Some(block)
    }

    fn fill(&self) {
        let size = self.layout.size();
        for index in places(size).chain(last_places(size)) {
            // SAFETY: within the block.
            unsafe { self.at.add(index).write(pattern(self.seed, index)) };
        }
    }

    #[track_caller]
    fn check_at(&self, places: impl Iterator<Item = usize>) {
        for index in places {
            // SAFETY: within the block.
            let byte = unsafe { self.at.add(index).read() };
            assert_eq!(byte, pattern(self.seed, index), "byte {index} of {self:?}");
        }
    }

    #[track_caller]
    fn check(&self) {
        let size = self.layout.size();
        self.check_at(places(size).chain(last_places(size)));
    }

    /// `false` when the heap is full; the block is as it was.
    fn resize(&mut self, size: usize) -> bool {
        // SAFETY: this block and its layout; the size is not zero.
        let at = unsafe { Heap.realloc(self.at, self.layout, size) };
        if at.is_null() {
            return false;
        }
        assert_eq!(at.addr() % self.layout.align(), 0);
        let kept = self.layout.size().min(size);
        self.at = at;
        self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
        self.check_at(places(kept));
        self.fill();
        true
    }

    fn free(self) {
        self.check();
        // SAFETY: this block and its layout, once.
        unsafe { Heap.dealloc(self.at, self.layout) };
    }
}

/// Sizes of every order of magnitude, and often those around the border to
/// mappings of their own.
fn size(random: &mut Random) -> usize {
    match random.below(100) {
        0 => DIRECT - 40 + random.below(80),
        1 => DIRECT + random.below(1 << 20),
        _ => {
            let bits = random.below(17);
            1 + random.below(1 << bits)
        }
    }
}

fn align(random: &mut Random) -> usize {
    match random.below(10) {
        0 => 1 << random.below(17),
        _ => 1 << random.below(5),
    }
}

/// Blocks that are live, by address.
#[derive(Default)]
struct Model(BTreeMap<usize, Block>);

impl Model {
    fn insert(&mut self, block: Block) {
        let (start, end) = (block.at.addr(), block.at.addr() + block.layout.size());
        if let Some((_, below)) = self.0.range(..=start).next_back() {
            assert!(below.at.addr() + below.layout.size() <= start, "{block:?} over {below:?}");
        }
        if let Some((_, above)) = self.0.range(start..).next() {
            assert!(end <= above.at.addr(), "{block:?} over {above:?}");
        }
        self.0.insert(start, block);
    }

    fn any(&mut self, random: &mut Random) -> Option<Block> {
        let nth = random.below(self.0.len().max(1));
        let key = *self.0.keys().nth(nth)?;
        self.0.remove(&key)
    }

    fn step(&mut self, random: &mut Random, most: usize) {
        match random.below(10) {
            0..5 if self.0.len() < most => {
                let layout = Layout::from_size_align(size(random), align(random)).unwrap();
                let (seed, zeroed) = (random.number() as u8, random.below(4) == 0);
                self.insert(Block::new(layout, seed, zeroed).unwrap());
            }
            5..7 => {
                if let Some(mut block) = self.any(random) {
                    assert!(block.resize(size(random)));
                    self.insert(block);
                }
            }
            _ => {
                if let Some(block) = self.any(random) {
                    block.free();
                }
            }
        }
    }

    fn free_all(self) {
        self.0.into_values().for_each(Block::free);
    }
}

#[test]
fn random_use_agrees_with_a_model() {
    // More of it where asked for: every run of this many steps is another seed.
    let runs = std::env::var("HSAKMT_HEAP_RUNS").ok().and_then(|runs| runs.parse().ok());
    for seed in 0..runs.unwrap_or(if emulated() { 1 } else { 4 }) {
        let (mut random, mut model) = (Random(seed), Model::default());
        for _ in 0..4000 {
            model.step(&mut random, 300);
        }
        model.free_all();
    }
}

#[test]
fn threads_share_the_heap() {
    let all = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for seed in 100..104 {
            let all = &all;
            scope.spawn(move || {
                let (mut random, mut model) = (Random(seed), Model::default());
                for _ in 0..if emulated() { 250 } else { 2500 } {
                    model.step(&mut random, 100);
                    // Blocks also end in another thread than they began in.
                    if random.below(20) == 0 {
                        let mut all = all.lock().unwrap();
                        all.extend(model.any(&mut random));
                        if all.len() > 50 {
                            let other: Block = all.swap_remove(random.below(50));
                            model.insert(other);
                        }
                    }
                }
                model.free_all();
            });
        }
    });
    all.into_inner().unwrap().into_iter().for_each(Block::free);
}

#[test]
fn what_cannot_be_had_is_a_null_pointer() {
    for bytes in [1 << 47, isize::MAX as usize - 4096] {
        let layout = Layout::from_size_align(bytes, 1).unwrap();
        assert!(Block::new(layout, 0, false).is_none());
    }
    let layout = Layout::from_size_align(1 << 30, 1 << 62).unwrap();
    assert!(Block::new(layout, 0, false).is_none());
    let small = Layout::from_size_align(8, 1 << 62).unwrap();
    assert!(Block::new(small, 0, false).is_none());
    let mut block = Block::new(Layout::new::<u64>(), 5, false).unwrap();
    assert!(!block.resize(1 << 47));
    block.check();
    block.free();
    let mut block = Block::new(Layout::from_size_align(DIRECT, 8).unwrap(), 5, false).unwrap();
    assert!(!block.resize(1 << 47));
    block.free();
}

#[test]
fn a_full_system_is_a_null_pointer() {
    if emulated() {
        not_checked("an emulator does not limit the address space");
        return;
    }
    let end = forked(|| {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
        let most = pages * 4096 + (16 << 20);
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: reads the limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
        let layout = Layout::from_size_align(3000, 8).unwrap();
        // Without touching them, for the same check on a system with little memory.
        let mut blocks = 0;
        // SAFETY: the size is not zero.
        while !unsafe { Heap.alloc(layout) }.is_null() {
            blocks += 1;
            assert!(blocks < 100_000);
        }
        // Nearly all that the limit allows came to use.
        assert!(blocks * 3000 > 12 << 20, "{blocks} blocks");
    });
    assert_eq!(end, FINE);
}

#[test]
fn large_blocks_go_back_to_the_system() {
    let layout = Layout::from_size_align(4 << 20, 4096).unwrap();
    let calls = system_calls::numbers_of(|| {
        // SAFETY: allocated and freed with one layout.
        unsafe {
            let block = Heap.alloc_zeroed(layout);
            let block = Heap.realloc(block, layout, 8 << 20);
            Heap.dealloc(block, Layout::from_size_align(8 << 20, 4096).unwrap());
        }
    });
    match calls {
        Some(calls) => assert_eq!(calls, [libc::SYS_mmap, libc::SYS_mremap, libc::SYS_munmap]),
        None => not_checked("no ptrace here"),
    }
    // One whose alignment is larger than a page loses both ends of its mapping.
    let layout = Layout::from_size_align(DIRECT, 1 << 21).unwrap();
    for _ in 0..10 {
        Block::new(layout, 1, true).unwrap().free();
    }
}

#[test]
fn small_blocks_are_found_without_system_calls() {
    let layout = Layout::from_size_align(100, 8).unwrap();
    let calls = system_calls::numbers_of(|| {
        // The traced child is a forked one: its first block maps a region.
        Block::new(layout, 1, false).unwrap().free();
        mark();
        for seed in 0..100 {
            Block::new(layout, seed, true).unwrap().free();
        }
        mark();
    });
    fn mark() {
        // SAFETY: changes nothing.
        unsafe { libc::syscall(libc::SYS_gettid) };
    }
    match calls {
        Some(calls) => {
            let marks: Vec<usize> =
                (0..calls.len()).filter(|&i| calls[i] == libc::SYS_gettid).collect();
            assert_eq!(marks[1], marks[0] + 1, "{calls:?}");
        }
        None => not_checked("no ptrace here"),
    }
}

/// What a forked child does with the blocks of its parent and with its own.
fn in_a_forked_child(inherited: &mut Model, seed: u64) {
    let (mut random, mut own) = (Random(seed), Model::default());
    for block in inherited.0.values() {
        block.check();
    }
    // New blocks do not overlap the parent's, whose regions are abandoned.
    for _ in 0..200 {
        let layout = Layout::from_size_align(1 + random.below(5000), 8).unwrap();
        own.insert(Block::new(layout, random.number() as u8, true).unwrap());
    }
    let mut both = std::mem::take(inherited);
    for block in own.0.into_values() {
        both.insert(block);
    }
    // Resizing and freeing works on either kind.
    for _ in 0..400 {
        both.step(&mut random, 600);
    }
    both.free_all();
}

#[test]
fn a_forked_child_starts_afresh_and_keeps_what_it_inherited() {
    for make in [forked, cloned] as [fn(Box<dyn FnOnce()>) -> child::End; 2] {
        let (mut random, mut model) = (Random(7), Model::default());
        for _ in 0..1000 {
            model.step(&mut random, 200);
        }
        let model = std::sync::Arc::new(std::sync::Mutex::new(model));
        let theirs = std::sync::Arc::clone(&model);
        let end = make(Box::new(move || {
            let mut inherited = theirs.lock().unwrap();
            // A child of the child inherits from both.
            let (mut random, mut own) = (Random(8), Model::default());
            for _ in 0..100 {
                own.step(&mut random, 50);
            }
            // (Made by the bare call: fork(3) may wait for locks of the C library
            // that a bare child finds held.)
            let end = cloned(|| {
                for block in own.0.into_values() {
                    inherited.insert(block);
                }
                in_a_forked_child(&mut inherited, 9);
            });
            assert_eq!(end, FINE);
        }));
        assert_eq!(end, FINE);
        let mut model = std::mem::take(&mut *model.lock().unwrap());
        for _ in 0..1000 {
            model.step(&mut random, 200);
        }
        model.free_all();
    }
}

#[test]
fn forks_while_other_threads_allocate() {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let stop = &stop;
            scope.spawn(move || {
                let (mut random, mut model) = (Random(seed), Model::default());
                while !stop.load(Ordering::Relaxed) {
                    model.step(&mut random, 50);
                }
                model.free_all();
            });
        }
        let mut children = Vec::new();
        for seed in 0..if emulated() { 20 } else { 200u64 } {
            let (mut random, mut mine) = (Random(seed + 50), Model::default());
            for _ in 0..20 {
                mine.step(&mut random, 10);
            }
            children.push(start_forked(|| {
                let layout = Layout::from_size_align(300, 8).unwrap();
                for block in mine.0.values() {
                    block.check();
                }
                for (index, block) in mine.0.values().enumerate() {
                    // SAFETY: this block and its layout, once in this process.
                    unsafe { Heap.dealloc(block.at, block.layout) };
                    let new = Block::new(layout, index as u8, true).unwrap();
                    assert!(mine.0.values().all(|old| {
                        let (start, end) = (old.at.addr(), old.at.addr() + old.layout.size());
                        new.at.addr() + 300 <= start || end <= new.at.addr() || is_direct(old)
                    }));
                    new.check();
                }
                // SAFETY: ends the child, without what the closure's owner would do.
                unsafe { libc::_exit(0) }
            }));
            mine.free_all();
            if children.len() >= 8 {
                children.drain(..).for_each(|child| assert_eq!(child::wait(child), FINE));
            }
        }
        children.into_iter().for_each(|child| assert_eq!(child::wait(child), FINE));
        stop.store(true, Ordering::Relaxed);
    });
}

/// A freed mapping of the parent's is really free in the child.
fn is_direct(block: &Block) -> bool {
    block.layout.size() >= DIRECT
}

#[test]
fn a_child_that_shares_memory_uses_the_same_heap() {
    for flags in [libc::CLONE_VFORK, 0] {
        let place = std::sync::Mutex::new(None);
        let before = Block::new(Layout::new::<[u64; 10]>(), 3, false).unwrap();
        let end = sharing_memory(flags, || {
            let block = Block::new(Layout::new::<[u64; 20]>(), 4, false).unwrap();
            *place.lock().unwrap() = Some(block);
        });
        let Some(end) = end else {
            not_checked("an emulator cannot share memory");
            return;
        };
        assert_eq!(end, FINE);
        // The child's block lives on, and is freed here.
        let block = place.lock().unwrap().take().unwrap();
        let after = Block::new(Layout::new::<[u64; 20]>(), 5, false).unwrap();
        block.free();
        before.free();
        after.free();
    }
}

#[test]
fn waiting_threads_are_woken() {
    // More threads than processors, each in and out of the lock.
    let turns = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let turns = &turns;
            scope.spawn(move || {
                let layout = Layout::from_size_align(64 + seed, 8).unwrap();
                for turn in 0..if emulated() { 500 } else { 5000u32 } {
                    Block::new(layout, turn as u8, false).unwrap().free();
                }
                turns.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(turns.into_inner(), 8);
}
