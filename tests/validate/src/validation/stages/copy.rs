//! Copies by engines: from system memory to each GPU and back, and between every pair
//! of GPUs, with checked data. The rate is that of the first.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hsakmt_core::error::Error;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::Guard;
use hsakmt_core::seam::{Os, Platform};
use hsakmt_core::uapi::kfd::QueueType;

use crate::validation::engines;
use crate::validation::findings::{Count, Findings};
use crate::validation::pattern::{Pattern, Window};
use crate::validation::stages::queues::NO_QUEUES;
use crate::validation::subject::{BusErrors, Gpu, Subject};

/// Bytes of a copy.
const SIZE: u64 = 4 << 20;
/// The same in a hurry.
const QUICK_SIZE: u64 = 1 << 20;
/// Bytes between a pair of GPUs.
const PAIR_SIZE: u64 = 256 << 10;
const WORD: u64 = 8;
/// Bytes that a copy leaves out at the end.
const SHORTER: u64 = 64;
/// Bytes a second below which a link is broken: a tenth of one lane of PCIe 1.
const SLOWEST: u64 = 25_000_000;
/// How often a copy is done again that seems slow: of several the fastest tells of the
/// link, the others of what else the machine does.
const AGAIN: u32 = 4;

/// Memory of each end.
struct Ends<'a> {
    gpus: &'a [Gpu],
    video: Vec<Option<u64>>,
}

/// Copies everywhere.
pub fn run<P: Platform>(subject: &mut Subject<'_, P>, findings: &mut Findings) {
    let gpus = subject.gpus.clone();
    let nodes = subject.gpu_nodes();
    let Some(&first) = nodes.first() else {
        findings.skip("nothing to check: no GPU");
        return;
    };
    let size = if subject.limits.quick { QUICK_SIZE } else { SIZE };
    let Some(guard) = findings.expect(&"library", subject.enter()) else { return };
    let shared = subject.shares_memory();
    if shared {
        match engines::open(&guard, first, QueueType::SDMA) {
            Ok(queue) => drop(findings.expect(&"queue of copies", queue.close(&guard))),
            Err(error) if subject.takes_no_queues(&error) => {
                findings.skip(NO_QUEUES);
                return;
            }
            Err(error) => findings.refused(&"queue of copies", &error),
        }
    }
    let paged = MemoryFlags::HOST_ACCESS;
    let system = paged | MemoryFlags::NON_PAGED | MemoryFlags::GTT_ACCESS;
    let host = match shared {
        true => make(&guard, first, size, paged, &[]),
        false => make(&guard, first, size, system, &nodes),
    };
    let Some(host) = findings.expect(&"system memory of copies", host) else { return };
    let mut ends = Ends { gpus: &gpus, video: Vec::new() };
    let (mut slowest, mut pairs) = (u64::MAX, 0);
    let mut failed: Vec<bool> = Vec::new();
    for gpu in &gpus {
        let made = if subject.has_time(findings, gpu) {
            subject.show_progress("copy", gpu);
            let errors = BusErrors::watch();
            let flags = MemoryFlags::NON_PAGED | MemoryFlags::COARSE_GRAIN;
            let made = make(&guard, gpu.node, size, flags, &[gpu.node]);
            let made = findings.expect(&format_args!("{gpu}, memory of copies"), made);
            if let Some(video) = made {
                let rate = both_ways(subject, &guard, gpu, host, video, size, findings);
                slowest = slowest.min(rate.unwrap_or(u64::MAX));
                if rate.is_none() && gpus.len() > 1 {
                    findings.note(format!("{gpu}: copies from and to other GPUs not tried"));
                }
                failed.push(rate.is_none());
            } else {
                failed.push(true);
            }
            errors.check(gpu, findings);
            made
        } else {
            failed.push(true);
            None
        };
        ends.video.push(made);
    }
    'pairs: for from in 0..gpus.len() {
        for to in (0..gpus.len()).filter(|to| *to != from) {
            let pair = pair(&ends, from, to);
            let Some((part, source, destination)) = pair else { continue };
            if [from, to].iter().any(|end| failed.get(*end) == Some(&true)) {
                continue;
            }
            if !subject.has_time(findings, &part) {
                break 'pairs;
            }
            subject.show_progress("copy", &part);
            let seed = (from as u64) << 32 | to as u64;
            let buffers = [host, source, destination];
            between(&guard, subject.os(), buffers, Pattern { seed }, &part, findings);
            pairs += 1;
        }
    }
    for address in ends.video.iter().flatten().chain([&host]) {
        let freed = guard.unmap_memory(*address).and_then(|()| guard.free_memory(*address, size));
        findings.expect(&"memory of copies", freed);
    }
    let rate = match slowest {
        u64::MAX => String::new(),
        rate => format!(", to and from a GPU at least {} MB/s", rate / 1_000_000),
    };
    let (gpus, pairs) = (Count(gpus.len() as u64, "GPU"), Count(pairs, "pair"));
    findings.summary = format!("{gpus}, {pairs}{rate}");
}

fn make<P: Platform>(
    guard: &Guard<'_, P>,
    node: u32,
    size: u64,
    flags: MemoryFlags,
    nodes: &[u32],
) -> Result<u64, Error> {
    let request = AllocationRequest { node, size, alignment: 0, flags, address: 0 };
    let address = guard.allocate_memory(&request)?;
    if nodes.is_empty() {
        return Ok(address);
    }
    match guard.map_memory_to_nodes(address, size, nodes) {
        Ok(_) => Ok(address),
        Err(error) => {
            let _ = guard.free_memory(address, size);
            Err(error)
        }
    }
}

fn pair(ends: &Ends<'_>, from: usize, to: usize) -> Option<(String, u64, u64)> {
    let part = format!("copy from {} to {}", ends.gpus.get(from)?, ends.gpus.get(to)?);
    let end = |at: usize| ends.video.get(at).copied().flatten();
    Some((part, end(from)?, end(to)?))
}

/// To a GPU and back; the rate in bytes a second.
fn both_ways<P: Platform>(
    subject: &Subject<'_, P>,
    guard: &Guard<'_, P>,
    gpu: &Gpu,
    host: u64,
    video: u64,
    size: u64,
    findings: &mut Findings,
) -> Option<u64> {
    let window = Window::of(guard, host, size)?;
    let pattern = Pattern { seed: u64::from(gpu.gpu_id) };
    window.write(pattern, WORD);
    let (there, back) = (format!("copy to {gpu}"), format!("copy from {gpu}"));
    let timed = |to, from, findings: &mut Findings, part: &String| {
        let began = subject.now();
        findings.expect(part, engines::copy(guard, to, from, size))?;
        Some(subject.now().saturating_sub(began))
    };
    let to_gpu = timed(video, host, findings, &there)?;
    window.write(pattern.inverted(), WORD);
    let to_host = timed(host, video, findings, &back)?;
    if let Err(mismatch) = window.compare(pattern, WORD) {
        findings.fail(format!("copy to {gpu} and back: {mismatch}"));
    }
    // Once more without the end, so that what is wrong at the end of each copy does not
    // undo itself.
    let shorter = size.saturating_sub(SHORTER);
    window.write(pattern.inverted(), WORD);
    findings.expect(&back, engines::copy(guard, host, video, shorter))?;
    let compared = Window::of(guard, host, shorter).map(|it| it.compare(pattern, WORD));
    if let Some(Err(mismatch)) = compared {
        findings.fail(format!("copy from {gpu}: {mismatch}"));
    }
    let rate_of = |took: u64| size.saturating_mul(1_000_000_000) / took.max(1);
    let mut slower = u64::MAX;
    for (part, first, [to, from]) in
        [(&there, to_gpu, [video, host]), (&back, to_host, [host, video])]
    {
        let mut rate = rate_of(first);
        for _ in 0..AGAIN {
            if rate >= SLOWEST || !subject.has_time(findings, part) {
                break;
            }
            rate = rate.max(rate_of(timed(to, from, findings, part)?));
        }
        if rate < SLOWEST {
            findings.fail(format!("{part}: slow: {} MB/s", rate / 1_000_000));
        }
        slower = slower.min(rate);
    }
    Some(slower)
}

/// From system memory to one GPU, to another, and back.
fn between<P: Platform>(
    guard: &Guard<'_, P>,
    os: &P::Os,
    [host, source, destination]: [u64; 3],
    pattern: Pattern,
    part: &String,
    findings: &mut Findings,
) {
    let Some(window) = Window::of(guard, host, PAIR_SIZE) else { return };
    window.write(pattern, WORD);
    os.flush_wc();
    let copied = engines::copy(guard, source, host, PAIR_SIZE)
        .and_then(|()| engines::copy(guard, destination, source, PAIR_SIZE));
    if findings.expect(part, copied).is_none() {
        return;
    }
    window.write(pattern.inverted(), WORD);
    let back = engines::copy(guard, host, destination, PAIR_SIZE);
    if findings.expect(part, back).is_some() {
        if let Err(mismatch) = window.compare(pattern, WORD) {
            findings.fail(format!("{part}: {mismatch}"));
        }
    }
}
