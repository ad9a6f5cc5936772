//! Buffers given out as dma-bufs and taken in again: on the GPU that has them, and by
//! every other.

use alloc::format;
use alloc::string::String;

use hsakmt_core::error::Status;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::Guard;
use hsakmt_core::seam::Platform;

use super::memory::map_everywhere;
use crate::validation::findings::{Count, Findings};
use crate::validation::subject::{Gpu, Subject};

/// Bytes of a buffer.
const SIZE: u64 = 256 << 10;

/// Shares a buffer of each GPU.
pub fn run<P: Platform>(subject: &mut Subject<'_, P>, findings: &mut Findings) {
    if subject.gpus.is_empty() {
        findings.skip("nothing to check: no GPU");
        return;
    }
    let mut shared = 0;
    let gpus = subject.gpus.clone();
    for gpu in &gpus {
        if !subject.has_time(findings, gpu) {
            return;
        }
        subject.show_progress("sharing", gpu);
        let Some(guard) = findings.expect(gpu, subject.enter()) else { return };
        let part = format!("{gpu}, dma-buf");
        let request = AllocationRequest {
            node: gpu.node,
            size: SIZE,
            alignment: 0,
            flags: MemoryFlags::NON_PAGED | MemoryFlags::COARSE_GRAIN,
            address: 0,
        };
        let Some(address) = findings.expect(&part, guard.allocate_memory(&request)) else {
            continue;
        };
        match guard.export_buffer(address, SIZE) {
            Ok(exported) => {
                import(subject, &guard, gpu, exported.descriptor, &part, findings);
                subject.close(exported.descriptor);
                shared += 1;
            }
            Err(error) if error.status == Status::NOT_SUPPORTED => {
                findings.expect(&part, guard.free_memory(address, SIZE));
                findings.skip(format!("nothing to check: {error}"));
                return;
            }
            Err(error) => findings.refused(&part, &error),
        }
        findings.expect(&part, guard.free_memory(address, SIZE));
    }
    findings.summary = format!("{} given out and taken in", Count(shared, "buffer"));
}

fn import<P: Platform>(
    subject: &Subject<'_, P>,
    guard: &Guard<'_, P>,
    gpu: &Gpu,
    descriptor: u32,
    part: &String,
    findings: &mut Findings,
) {
    if let Some(info) = findings.expect(part, guard.buffer_info(descriptor)) {
        if info.gpu_id != gpu.gpu_id || info.size < SIZE {
            findings.fail(format!(
                "{part}: the driver says {} bytes of gpu_id {:#x}",
                info.size, info.gpu_id
            ));
        }
    }
    let imported = guard.import_buffer(descriptor, Some(&[gpu.node]), true);
    let Some(imported) = findings.expect(part, imported) else { return };
    if imported.node != gpu.node {
        findings.fail(format!("{part}: was taken in as memory of node {}", imported.node));
    }
    map_everywhere(subject, guard, imported.address, imported.size, &[gpu.node], part, findings);
    findings.expect(part, guard.deregister_memory(imported.address));
}
