//! Allocation that is refused, at every place where something is allocated, and
//! how much is allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::CStr;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU32;

use hsakmt_core::errno::Errno;
use hsakmt_core::error::Status;
use hsakmt_core::seam::{
    Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Protection, Wake,
};
use hsakmt_core::topology::{Settings, Unopened, read_snapshot};
use hsakmt_topology_tests::{SETTINGS, Tree};

/// Refuses one allocation of the thread, and any of zero bytes.
struct Refusing;

thread_local! {
    /// Allocations until the refused one; `None`: none is.
    static UNTIL: Cell<Option<u32>> = const { Cell::new(None) };
    /// Bytes that the thread holds, and the most it held; may wrap, as blocks of
    /// other threads are freed here, too.
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST_HELD: Cell<usize> = const { Cell::new(0) };
}

fn hold(more: usize, less: usize) {
    HELD.set(HELD.get().wrapping_add(more).wrapping_sub(less));
    MOST_HELD.set(MOST_HELD.get().max(HELD.get()));
}

fn refused(layout: Layout) -> bool {
    let now = UNTIL.get() == Some(0);
    UNTIL.set(UNTIL.get().map(|until| until.wrapping_sub(1)));
    now || layout.size() == 0
}

// SAFETY: hands everything on to the system's allocator, or returns null, which
// an allocator may do at any time.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refused(layout) {
            return std::ptr::null_mut();
        }
        hold(layout.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        hold(0, layout.size());
        // SAFETY: the caller's promise; the pointer is the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refused(layout) {
            return std::ptr::null_mut();
        }
        hold(size, layout.size());
        // SAFETY: the caller's promise; the pointer is the system allocator's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Reads a tree without allocating anything itself.
struct Quiet {
    tree: Tree,
    word: AtomicU32,
}

impl Os for Quiet {
    fn page_size(&self) -> usize {
        4096
    }
    fn map(&self, _: Mapping) -> Result<usize, Errno> {
        Err(Errno::ENOSYS)
    }
    fn unmap(&self, _: usize, _: usize) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }
    fn protect(&self, _: usize, _: usize, _: Protection) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }
    fn advise(&self, _: usize, _: usize, _: Advice) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }
    fn bind(&self, _: usize, _: usize, _: MemoryPolicy, _: &[u64]) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }
    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        _: usize,
        _: EndOfFile,
    ) -> Result<(), Errno> {
        let path = path.to_str().map_err(|_| Errno::EINVAL)?;
        let content = self.tree.files.get(path).ok_or(Errno::ENOENT)?;
        into.try_reserve(content.len()).map_err(|_| Errno::ENOMEM)?;
        into.extend_from_slice(content);
        Ok(())
    }
    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        let path = path.to_str().map_err(|_| Errno::EINVAL)?;
        let mut before = "";
        for file in self.tree.files.keys() {
            let below = file.strip_prefix(path).and_then(|rest| rest.strip_prefix('/'));
            let name = below.and_then(|rest| rest.split('/').next()).unwrap_or_default();
            if name != before && visit(name.as_bytes(), FileKind::Other).is_break() {
                break;
            }
            before = name;
        }
        Ok(())
    }
    fn now(&self, _: Clock) -> u64 {
        0
    }
    fn sleep(&self, _: u64) {}
    fn futex_wait(&self, _: &AtomicU32, _: u32, _: Option<u64>) -> Result<Wake, Errno> {
        Err(Errno::ENOSYS)
    }
    fn futex_wake(&self, _: &AtomicU32, _: u32) {}
    fn thread_id(&self) -> u32 {
        1
    }
    fn process_id(&self) -> u32 {
        1
    }
    fn fork_word(&self) -> &AtomicU32 {
        &self.word
    }
    fn wmb_device(&self) {}
    fn rmb_device(&self) {}
    fn flush_wc(&self) {}
}

fn every_refusal(tree: Tree, settings: &Settings<'_>) {
    let os = Quiet { tree, word: AtomicU32::new(1) };
    let expected = read_snapshot(&os, settings, &mut Unopened).expect("a snapshot");
    let mut refusals = 0;
    loop {
        UNTIL.set(Some(refusals));
        let read = read_snapshot(&os, settings, &mut Unopened);
        let reached = UNTIL.get().is_some_and(|until| until > u32::MAX / 2);
        UNTIL.set(None);
        match read {
            Ok(snapshot) => {
                assert!(!reached, "refusal {refusals} went unnoticed");
                assert_eq!(snapshot, expected);
                break;
            }
            Err(error) => assert_eq!(error.status, Status::NO_MEMORY, "{refusals}: {error}"),
        }
        refusals += 1;
    }
    assert!(refusals > 5, "only {refusals} allocations");
}

#[test]
fn every_refused_allocation_is_no_memory() {
    every_refusal(Tree::of_gpus(3, true), &SETTINGS);
    let mut old = Tree::of_gpus(3, false);
    for content in old.files.values_mut() {
        let text = String::from_utf8(content.clone()).expect("a text");
        *content = text.replace("p2p_links_count", "other_count").into_bytes();
    }
    every_refusal(old, &SETTINGS);
}

/// Bytes that a snapshot of a machine with so many nodes holds, and what reading
/// it takes at most. Each GPU is linked to its CPU alone.
fn bytes(nodes: u32) -> [usize; 2] {
    let os = Quiet { tree: Tree::of_gpus(nodes - 2, false), word: AtomicU32::new(1) };
    let before = HELD.get();
    MOST_HELD.set(before);
    let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
    assert_eq!(snapshot.nodes().len(), nodes as usize);
    [HELD.get() - before, MOST_HELD.get() - before]
}

#[test]
fn memory_grows_with_the_nodes_and_no_faster() {
    let [small, middle, large] = [66, 130, 513].map(|nodes| (nodes as usize, bytes(nodes)));
    for (nodes, [held, most]) in [small, middle, large] {
        println!("{nodes} nodes hold {held} bytes; {most} while they are read");
    }
    for kind in 0..2 {
        for (fewer, more) in [(small, middle), (middle, large)] {
            let of_fewer = fewer.1[kind] / fewer.0;
            let of_more = more.1[kind] / more.0;
            // Vectors that double leave up to half of themselves empty.
            assert!(
                of_more <= of_fewer * 3 / 2,
                "{of_fewer} bytes a node of {}, {of_more} of {}",
                fewer.0,
                more.0
            );
        }
        assert!(large.1[kind] / large.0 < 4096, "{} bytes", large.1[kind]);
    }
}
