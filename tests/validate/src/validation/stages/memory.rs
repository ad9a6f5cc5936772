//! Every heap: allocated, written and read with patterns, mapped on every GPU that
//! can reach it, freed.
//!
//! Sizes are bounded: a heap of terabytes gets the same blocks as one of megabytes,
//! at most an eighth of it at a time. Blocks above `WHOLE` are looked at once a
//! page, since reads of video memory by the CPU are slow.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::Guard;
use hsakmt_core::seam::{Os, Platform};
use hsakmt_core::topology::{HeapType, Node};

use crate::output::text::Size;
use crate::validation::findings::{Count, Findings};
use crate::validation::pattern::{Pattern, Window};
use crate::validation::subject::{BusErrors, Gpu, Subject, name_of};

/// Bytes of the blocks of a heap.
const BLOCKS: [u64; 4] = [4 << 10, 64 << 10, 2 << 20, 32 << 20];
/// How many of them are enough in a hurry.
const QUICK_BLOCKS: usize = 2;
/// Up to this size, in bytes, every word of a block is looked at.
const WHOLE: u64 = 2 << 20;
/// Between two words of larger blocks, in bytes.
const SPARSE: u64 = 4096;
const WORD: u64 = 8;
/// Bytes of a large page.
const LARGE_PAGE: u64 = 2 << 20;

/// A heap of a node.
struct Heap {
    node: u32,
    owner: String,
    what: &'static str,
    flags: MemoryFlags,
    bytes: u64,
    /// The GPUs that are to reach it.
    gpus: Vec<u32>,
}

impl fmt::Display for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.owner, self.what)
    }
}

fn bank_bytes(node: &Node, heap_type: HeapType) -> u64 {
    node.banks.iter().filter(|it| it.heap_type == heap_type).map(|it| it.size_in_bytes).sum()
}

fn heaps(nodes: &[Node], gpus: &[Gpu]) -> Vec<Heap> {
    let all: Vec<u32> = gpus.iter().map(|gpu| gpu.node).collect();
    let mut heaps = Vec::new();
    for (node, it) in (0..).zip(nodes) {
        let owner = name_of(it);
        let system = bank_bytes(it, HeapType::SYSTEM);
        if system > 0 {
            let paged = MemoryFlags::HOST_ACCESS;
            let mut add = |what, flags| {
                let (owner, gpus) = (owner.clone(), all.clone());
                heaps.push(Heap { node, owner, what, flags, bytes: system, gpus });
            };
            add("system memory of the process", paged);
            if !all.is_empty() {
                add("system memory of the driver", paged | MemoryFlags::NON_PAGED);
            }
        }
        if !all.contains(&node) {
            continue;
        }
        let public = bank_bytes(it, HeapType::FRAME_BUFFER_PUBLIC);
        let private = bank_bytes(it, HeapType::FRAME_BUFFER_PRIVATE);
        let mut add = |what, flags, bytes| {
            let flags = flags | MemoryFlags::NON_PAGED | MemoryFlags::COARSE_GRAIN;
            let (owner, gpus) = (owner.clone(), [node].to_vec());
            heaps.push(Heap { node, owner, what, flags, bytes, gpus });
        };
        // The driver gives no memory for the CPU where it reaches a part only
        // (kfd_chardev.c, "small BAR").
        if public > 0 && private == 0 {
            add("video memory that the CPU reaches", MemoryFlags::HOST_ACCESS, public);
        }
        if public.max(private) > 0 {
            add("video memory", MemoryFlags::default(), public.max(private));
        }
    }
    heaps
}

/// Checks every heap.
pub fn run<P: Platform>(subject: &mut Subject<'_, P>, findings: &mut Findings) {
    let heaps = heaps(&subject.nodes, &subject.gpus);
    let (mut checked, mut bytes) = (0, 0);
    let count = if subject.limits.quick { QUICK_BLOCKS } else { BLOCKS.len() };
    for (number, heap) in heaps.iter().enumerate() {
        for &size in BLOCKS.iter().take(count) {
            if size > heap.bytes / 8 {
                continue;
            }
            if !subject.has_time(findings, heap) {
                return;
            }
            subject.show_progress("memory", &format_args!("{heap}, {}", Size(size)));
            let seed = (number as u64) << 32 | size;
            if !block(subject, heap, size, Pattern { seed }, findings) {
                // What fails with a small block is not tried with larger ones.
                break;
            }
            bytes += size;
        }
        if !heap.flags.contains(MemoryFlags::HOST_ACCESS) {
            half(subject, heap, findings);
        }
        checked += 1;
    }
    let heaps = Count(checked, "heap");
    findings.summary = match subject.gpus.len() as u64 {
        0 => format!("{heaps}, {} in all; no GPU to map them on", Size(bytes)),
        gpus => format!("{heaps} mapped on {}, {} in all", Count(gpus, "GPU"), Size(bytes)),
    };
}

/// Allocates half of a heap of video memory, which nobody touches: a heap that has
/// less than it says fails here.
fn half<P: Platform>(subject: &Subject<'_, P>, heap: &Heap, findings: &mut Findings) {
    let size = (heap.bytes / 2) & !(LARGE_PAGE - 1);
    let part = format!("{heap}, half of its {}", Size(heap.bytes));
    let Some(guard) = findings.expect(&part, subject.enter()) else { return };
    let (node, flags) = (heap.node, heap.flags);
    if size == 0 {
        return;
    }
    let request = AllocationRequest { node, size, alignment: 0, flags, address: 0 };
    match guard.allocate_memory(&request) {
        Ok(address) => {
            findings.expect(&part, guard.free_memory(address, size));
        }
        Err(error) => {
            if let Ok(left) = guard.available_memory(node) {
                findings.refused(&format_args!("{part} ({} are left)", Size(left)), &error);
            } else {
                findings.refused(&part, &error);
            }
        }
    }
}

/// Checks one block of a heap; whether it was whole.
fn block<P: Platform>(
    subject: &Subject<'_, P>,
    heap: &Heap,
    size: u64,
    pattern: Pattern,
    findings: &mut Findings,
) -> bool {
    let part = format!("{heap}, {}", Size(size));
    let Some(guard) = findings.expect(&part, subject.enter()) else { return false };
    let (node, flags) = (heap.node, heap.flags);
    // Smaller than a page of the system it is rounded up by the library.
    let request = AllocationRequest { node, size, alignment: 0, flags, address: 0 };
    let Some(address) = findings.expect(&part, guard.allocate_memory(&request)) else {
        return false;
    };
    let mut whole = true;
    if flags.contains(MemoryFlags::HOST_ACCESS) {
        whole &= patterns(subject, &guard, address, size, pattern, &part, findings);
    }
    let is_seen = !flags.contains(MemoryFlags::NON_PAGED) && subject.shares_memory();
    if !is_seen {
        whole &= map_everywhere(subject, &guard, address, size, &heap.gpus, &part, findings);
    }
    whole & findings.expect(&part, guard.free_memory(address, size)).is_some()
}

/// Writes a pattern and its inverse, and reads them back.
fn patterns<P: Platform>(
    subject: &Subject<'_, P>,
    guard: &Guard<'_, P>,
    address: u64,
    size: u64,
    pattern: Pattern,
    part: &String,
    findings: &mut Findings,
) -> bool {
    let Some(window) = Window::of(guard, address, size) else {
        findings.fail(format!("{part}: the CPU does not see it at {address:#x}"));
        return false;
    };
    let stride = if size > WHOLE { SPARSE } else { WORD };
    let errors = BusErrors::watch();
    for pattern in [pattern, pattern.inverted()] {
        window.write(pattern, stride);
        subject.os().flush_wc();
        if let Err(mismatch) = window.compare(pattern, stride) {
            if errors.check(part, findings) {
                findings.fail(format!("{part}: {mismatch}"));
            }
            return false;
        }
    }
    errors.check(part, findings)
}

/// Maps memory on GPUs, all at once, and unmaps it. Where that fails, on each, so
/// that the broken one is named.
pub(super) fn map_everywhere<P: Platform>(
    subject: &Subject<'_, P>,
    guard: &Guard<'_, P>,
    address: u64,
    size: u64,
    nodes: &[u32],
    part: &String,
    findings: &mut Findings,
) -> bool {
    if nodes.is_empty() {
        return true;
    }
    match guard.map_memory_to_nodes(address, size, nodes) {
        Ok(_) => {
            let mut whole = true;
            if let Ok(info) = guard.pointer_info(address) {
                let missing = nodes.iter().filter(|node| !info.mapped.contains(node));
                for gpu in missing.filter_map(|node| subject.gpu(*node)) {
                    findings
                        .fail(format!("{part}: is not mapped on {gpu}, though it was asked for"));
                    whole = false;
                }
            }
            whole & findings.expect(part, guard.unmap_memory(address)).is_some()
        }
        Err(together) => {
            let mut named = false;
            for gpu in nodes.iter().filter_map(|node| subject.gpu(*node)) {
                match guard.map_memory_to_nodes(address, size, &[gpu.node]) {
                    Ok(_) => {
                        let unmapped = guard.unmap_memory(address);
                        findings.expect(&format_args!("{part}, on {gpu}"), unmapped);
                    }
                    Err(error) => {
                        named = true;
                        findings.refused(&format_args!("{part}, mapped on {gpu}"), &error);
                    }
                }
            }
            if !named {
                let number = Count(nodes.len() as u64, "GPU");
                findings.refused(&format_args!("{part}, mapped on {number} at once"), &together);
            }
            false
        }
    }
}
