//! RUNTIME_ENABLE and SET_XNACK_MODE: kernel-rules section 2, as far as no queue
//! and no debugger is involved.

use hsakmt_core::errno::Errno;

use super::dispatch::Request;
use crate::kernel::Kernel;

/// What RUNTIME_ENABLE keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Runtime {
    pub state: RuntimeState,
    pub r_debug: u64,
    pub ttmp_setup: bool,
}

/// kernel-rules section 2, "States".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RuntimeState {
    #[default]
    Disabled,
    Enabled,
}

/// Bits of the mode.
const ENABLE: u32 = 1;
const TTMP_SETUP: u32 = 2;

/// r_debug at 0, mode_mask u32 at 8, capabilities_mask u32 at 12.
pub(super) fn enable(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (r_debug, mode) = (request.arguments.u64(0), request.arguments.u32(8));
    let object = request.object_mut()?;
    if mode & ENABLE == 0 {
        object.runtime = Runtime::default();
        return Ok(0);
    }
    if object.runtime.state != RuntimeState::Disabled {
        return Err(Errno::EBUSY);
    }
    object.runtime =
        Runtime { state: RuntimeState::Enabled, r_debug, ttmp_setup: mode & TTMP_SETUP != 0 };
    Ok(0)
}

/// xnack_enabled i32 at 0; negative asks.
pub(super) fn set_xnack(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    // kernel-rules, "Build options decide answers".
    if !request.state.kernel.svm {
        return Err(Errno::EPERM);
    }
    let wanted = request.arguments.u32(0) as i32;
    let now = request.object()?.xnack;
    if wanted < 0 {
        request.arguments.put_u32(0, u32::from(now));
        return Ok(0);
    }
    let on = wanted != 0;
    if on != now {
        if on && !can_retry(request)? {
            return Err(Errno::EPERM);
        }
        request.object_mut()?.xnack = on;
    }
    Ok(0)
}

/// kernel-rules section 2, "On is possible if": every gfx9 GPU of the object
/// can retry process by process, and none of 10.1 to 12.0 is there.
fn can_retry(request: &Request<'_, '_, '_>) -> Result<bool, Errno> {
    let of_7_2 = request.state.kernel.kernel >= Kernel::V7_2;
    let topology = &request.state.topology;
    let version = |gpu_id| topology.gpu(gpu_id).map_or(0, |gpu| gpu.properties.gfx_target_version);
    Ok(request.object()?.records.iter().all(|record| match version(record.gpu_id) {
        0..90_000 | 90_010 | 90_400..90_500 => true,
        90_500 => of_7_2,
        _ => false,
    }))
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::uapi::kfd::SetXnackMode;
    use hsakmt_core::uapi::kfd::{RuntimeEnable, RuntimeEnableMode};

    use crate::fixture::{Sim, ask, boot, kfd};

    fn runtime(sim: &Sim, mode_mask: RuntimeEnableMode) -> Result<u32, Errno> {
        ask(sim, &kfd(sim), &mut RuntimeEnable { mode_mask, ..Default::default() })
    }

    #[test]
    fn enabling_twice_is_ebusy_also_after_a_reopen() {
        let sim = boot("cpu-only");
        assert_eq!(runtime(&sim, RuntimeEnableMode::ENABLE), Ok(0));
        assert_eq!(runtime(&sim, RuntimeEnableMode::ENABLE), Err(Errno::EBUSY));
    }

    #[test]
    fn disabling_always_succeeds() {
        let sim = boot("cpu-only");
        for _ in 0..2 {
            assert_eq!(runtime(&sim, RuntimeEnableMode::empty()), Ok(0));
        }
        assert_eq!(runtime(&sim, RuntimeEnableMode::ENABLE), Ok(0));
        assert_eq!(runtime(&sim, RuntimeEnableMode::TTMP_SAVE), Ok(0));
        assert_eq!(runtime(&sim, RuntimeEnableMode::ENABLE), Ok(0));
    }

    fn xnack(sim: &Sim, xnack_enabled: i32) -> (Result<u32, Errno>, i32) {
        let mut block = SetXnackMode { xnack_enabled };
        let answer = ask(sim, &kfd(sim), &mut block);
        (answer, block.xnack_enabled)
    }

    #[test]
    fn xnack_without_svm_is_eperm() {
        for value in [-1, 0, 1, 2] {
            assert_eq!(xnack(&boot("mi210x8"), value), (Err(Errno::EPERM), value));
        }
    }

    #[test]
    fn xnack_can_be_turned_on_where_every_gpu_can_retry() {
        for profile in ["mi210x8:svm=1", "mi300x:svm=1", "cpu-only:svm=1"] {
            let sim = boot(profile);
            assert_eq!(xnack(&sim, -1), (Ok(0), 0), "{profile}");
            assert_eq!(xnack(&sim, 1).0, Ok(0), "{profile}");
            assert_eq!(xnack(&sim, -1), (Ok(0), 1), "{profile}");
            assert_eq!(xnack(&sim, 0).0, Ok(0), "{profile}");
        }
        for profile in ["rx7900:svm=1", "rx6800:svm=1", "mi50:svm=1"] {
            let sim = boot(profile);
            assert_eq!(xnack(&sim, 0).0, Ok(0), "{profile}");
            assert_eq!(xnack(&sim, 1).0, Err(Errno::EPERM), "{profile}");
        }
    }
}
