//! Memory of the process, registered for the GPUs: whole, nested, and written
//! meanwhile.

use alloc::format;

use hsakmt_core::memory::MemoryFlags;
use hsakmt_core::seam::{Os, Platform};

use crate::output::text::Size;
use crate::validation::findings::{Count, Findings};
use crate::validation::pattern::{HostPages, Pattern};
use crate::validation::subject::Subject;

/// Bytes of what is registered, at least a page.
const SIZES: [u64; 3] = [4 << 10, 1 << 20, 16 << 20];
/// How many of them are enough in a hurry.
const QUICK_SIZES: usize = 2;
const WORD: u64 = 8;

/// Registers memory for all GPUs.
pub fn run<P: Platform>(subject: &mut Subject<'_, P>, findings: &mut Findings) {
    let nodes = subject.gpu_nodes();
    if nodes.is_empty() {
        findings.skip("nothing to check: no GPU");
        return;
    }
    if subject.shares_memory() {
        findings.skip("nothing to check: the GPU sees the memory of the process as it is");
        return;
    }
    let count = if subject.limits.quick { QUICK_SIZES } else { SIZES.len() };
    let mut ranges = 0;
    for size in SIZES.into_iter().take(count) {
        let size = size.max(subject.os().page_size() as u64);
        let part = format!("memory of the process, {}", Size(size));
        if !subject.has_time(findings, &part) {
            return;
        }
        subject.show_progress("registration", &part);
        let Some(guard) = findings.expect(&part, subject.enter()) else { return };
        let pages = match HostPages::new(subject.os(), size) {
            Ok(pages) => pages,
            Err(errno) => {
                findings.fail(format!("{part}: map memory: {errno}"));
                continue;
            }
        };
        let (address, window) = (pages.address(), pages.window());
        let pattern = Pattern { seed: size };
        window.write(pattern, WORD);
        let register = |flags| guard.register_memory(address, size, flags, None);
        let flags = MemoryFlags::HOST_ACCESS | MemoryFlags::COARSE_GRAIN;
        if findings.expect(&part, register(flags)).is_none() {
            continue;
        }
        // Once more: registrations are counted.
        let twice = findings.expect(&format_args!("{part}, registered again"), register(flags));
        // A registration is for all GPUs and goes to all of them, so no single one can be
        // named here; the stage of the memory does.
        let on_all = format!("{part}, mapped on all GPUs at once");
        let mapped = guard.map_memory_to_nodes(address, size, &nodes);
        if findings.expect(&on_all, mapped).is_some() {
            findings.expect(&part, guard.unmap_memory(address));
        }
        if let Err(mismatch) = window.compare(pattern, WORD) {
            findings.fail(format!("{part}: {mismatch}"));
        }
        for _ in 0..1 + u32::from(twice.is_some()) {
            findings.expect(&part, guard.deregister_memory(address));
        }
        ranges += 1;
    }
    let gpus = Count(nodes.len() as u64, "GPU");
    findings.summary = format!("{} for {gpus}", Count(ranges, "range"));
}
