//! GET_CLOCK_COUNTERS: kernel-rules section 2.

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::Clock;

use super::dispatch::Request;

/// Both CPU clocks count nanoseconds.
const SYSTEM_HZ: u64 = 1_000_000_000;

/// gpu_clock_counter at 0, cpu_clock_counter at 8, system_clock_counter at 16,
/// system_clock_freq at 24, gpu_id u32 at 32. Never fails: an unknown GPU has
/// the counter 0.
pub(super) fn get(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let gpu_id = request.arguments.u32(32);
    let raw = (request.clock)(Clock::MonotonicRaw);
    let boot = (request.clock)(Clock::Boot);
    let counter = match (request.object()?.gpu(gpu_id), request.state.topology.gpu(gpu_id)) {
        (Ok(_), Some(gpu)) => {
            let ticks = u128::from(raw) * u128::from(gpu.render.counter_khz) / 1_000_000;
            ticks as u64
        }
        _ => 0,
    };
    request.arguments.put_u64(0, counter);
    request.arguments.put_u64(8, raw);
    request.arguments.put_u64(16, boot);
    request.arguments.put_u64(24, SYSTEM_HZ);
    Ok(0)
}
