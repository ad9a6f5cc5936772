//! Clock counters of a GPU and of the system, read close together.

use super::Channel;
use crate::error::{Error, Object, Status};
use crate::seam::{Clock, Os, Platform};
use crate::uapi::kfd::GetClockCounters;

/// How often a GPU's clock is sampled; the tightest sample is kept.
const SAMPLES: u32 = 4;

/// The clocks at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockCounters {
    /// Ticks of the GPU's counter, at the node's wall-clock frequency; 0 for a CPU node.
    pub gpu: u64,
    /// CLOCK_MONOTONIC_RAW in ns.
    pub cpu: u64,
    /// CLOCK_BOOTTIME in ns.
    pub system: u64,
    /// Ticks of `system` per second.
    pub system_frequency: u64,
}

/// Reads the clocks of the GPU with this kernel id; 0 is a CPU node.
///
/// A sample of a GPU is worth as little as the call took longer than the clocks
/// are apart, so of several the one with the shortest bracket is taken.
pub(crate) fn clock_counters<P: Platform>(
    channel: &Channel<'_, P>,
    gpu_id: u32,
) -> Result<ClockCounters, Error> {
    let samples = if gpu_id == 0 { 1 } else { SAMPLES };
    let mut best: Option<(u64, ClockCounters)> = None;
    for _ in 0..samples {
        let mut block = GetClockCounters { gpu_id, ..Default::default() };
        let before = channel.os().now(Clock::MonotonicRaw);
        channel.execute(&mut block, &mut [], Status::ERROR, Object::Gpu(gpu_id))?;
        let took = channel.os().now(Clock::MonotonicRaw).saturating_sub(before);
        if best.is_none_or(|(shortest, _)| took < shortest) {
            let counters = ClockCounters {
                gpu: block.gpu_clock_counter,
                cpu: block.cpu_clock_counter,
                system: block.system_clock_counter,
                system_frequency: block.system_clock_freq,
            };
            best = Some((took, counters));
        }
    }
    Ok(best.map(|(_, counters)| counters).unwrap_or_default())
}
