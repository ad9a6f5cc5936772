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

#[cfg(test)]
mod tests {
    use hsakmt_core::seam::DeviceNode;
    use hsakmt_core::uapi::kfd::GetClockCounters;

    use crate::fixture::{Sim, ask, boot, gpu_id, kfd};

    fn clocks(sim: &Sim, gpu_id: u32) -> GetClockCounters {
        let mut block = GetClockCounters { gpu_id, ..Default::default() };
        assert_eq!(ask(sim, &kfd(sim), &mut block), Ok(0));
        block
    }

    #[test]
    fn all_clocks_go_forward() {
        let sim = boot("rx7900");
        let (first, second) = (clocks(&sim, gpu_id(&sim, 0)), clocks(&sim, gpu_id(&sim, 0)));
        assert_eq!(first.system_clock_freq, 1_000_000_000);
        assert!(second.gpu_clock_counter > first.gpu_clock_counter);
        assert!(second.cpu_clock_counter > first.cpu_clock_counter);
        assert!(second.system_clock_counter > first.system_clock_counter);
    }

    #[test]
    fn a_hidden_gpu_has_the_counter_0() {
        let sim = boot("rx7900");
        sim.process().hide(DeviceNode::Render(128), true);
        assert_eq!(clocks(&sim, gpu_id(&sim, 0)).gpu_clock_counter, 0);
    }

    #[test]
    fn an_unknown_gpu_has_the_counter_0() {
        let unknown = clocks(&boot("cpu-only"), 17);
        assert_eq!(unknown.gpu_clock_counter, 0);
        assert_ne!(unknown.cpu_clock_counter, 0);
    }
}
