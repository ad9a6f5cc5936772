//! RUNTIME_ENABLE and SET_XNACK_MODE: kernel-rules section 2, as far as no queue
//! and no debugger is involved.

use hsakmt_core::errno::Errno;

use super::dispatch::Request;
use crate::kernel::Kernel;
use crate::machine::State;
use crate::topology::Gpu;

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
    if object.has_queues() {
        return Err(Errno::EEXIST);
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
    let object = request.object()?;
    let (now, bytes) = (object.xnack, object.svm.bytes());
    if wanted < 0 {
        request.arguments.put_u32(0, u32::from(now));
        return Ok(0);
    }
    // Even for the mode that is on.
    if object.has_queues() {
        return Err(Errno::EBUSY);
    }
    let on = wanted != 0;
    if on == now {
        return Ok(0);
    }
    let state = &mut *request.state;
    if on {
        let objects = state.objects.get(&request.id).ok_or(Errno::EBADF)?;
        let possible = |record: &super::GpuRecord| {
            let gpu = state.topology.gpu(record.gpu_id);
            gpu.is_none_or(|gpu| can_retry(state.kernel.kernel, gpu))
        };
        if !objects.records.iter().all(possible) {
            return Err(Errno::EPERM);
        }
        state.memory.drop_system(bytes);
    } else {
        // SVM ranges count as system memory from here on.
        state.memory.take_system(&state.topology, bytes)?;
    }
    request.object_mut()?.xnack = on;
    Ok(0)
}

/// kernel-rules section 2, "On is possible if": the chip can retry process by
/// process or does so anyway; chips before gfx9 do not matter.
fn can_retry(kernel: Kernel, gpu: &Gpu) -> bool {
    match gpu.properties.gfx_target_version {
        90_010 | 90_400..90_500 => true,
        90_500 => kernel >= Kernel::V7_2,
        _ => retries_at_start(gpu),
    }
}

/// kernel-rules section 2, "Default at open": of gfx9 the APUs before 9.4 (gfx902,
/// gfx909, gfx90c), and nothing later.
fn retries_at_start(gpu: &Gpu) -> bool {
    match gpu.properties.gfx_target_version {
        0..90_000 => true,
        90_002 | 90_009 | 90_012 => gpu.apu,
        _ => false,
    }
}

/// Whether RUNTIME_ENABLE was done.
pub(crate) fn is_enabled(object: &super::KfdObject) -> bool {
    object.runtime.state == RuntimeState::Enabled
}

/// The mode of a new object with these GPUs.
pub(super) fn xnack_at_start(state: &State, gpu_ids: &[u32]) -> bool {
    gpu_ids.iter().filter_map(|id| state.topology.gpu(*id)).all(retries_at_start)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::uapi::kfd::SetXnackMode;
    use hsakmt_core::uapi::kfd::{RuntimeEnable, RuntimeEnableMode};

    use crate::fixture::{Sim, ask, boot, boot_machine, kfd};
    use crate::profile::Profile;

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
        for profile in ["mi210x8:svm=1", "mi300x:svm=1"] {
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

    #[test]
    fn the_chips_decide_about_xnack() {
        // gfx_target_version, APU, on at the start, possible in 6.12, in 7.2.
        for (version, apu, start, in_6_12, in_7_2) in [
            (80_003, false, true, true, true),
            (90_000, false, false, false, false),
            (90_002, true, true, true, true),
            (90_002, false, false, false, false),
            (90_004, false, false, false, false),
            (90_006, false, false, false, false),
            (90_008, false, false, false, false),
            (90_009, true, true, true, true),
            (90_010, false, false, true, true),
            (90_012, true, true, true, true),
            (90_402, false, false, true, true),
            (90_500, false, false, false, true),
            (100_100, false, false, false, false),
            (100_306, true, false, false, false),
            (110_003, true, false, false, false),
            (120_001, false, false, false, false),
        ] {
            for (kernel, possible) in [("6.12", in_6_12), ("7.2", in_7_2)] {
                let text = alloc::format!("mi50:svm=1,kernel={kernel}");
                let mut profile = Profile::parse(&text).unwrap();
                for gpu in profile.topology.nodes.iter_mut().filter_map(|node| node.gpu.as_mut()) {
                    gpu.properties.gfx_target_version = version;
                    gpu.apu = apu;
                }
                let sim = boot_machine(&profile);
                assert_eq!(xnack(&sim, -1), (Ok(0), i32::from(start)), "{version}");
                assert_eq!(xnack(&sim, 0).0, Ok(0), "{version}");
                let expected = if possible { Ok(0) } else { Err(Errno::EPERM) };
                assert_eq!(xnack(&sim, 1).0, expected, "{version}, {kernel}");
            }
        }
    }

    #[test]
    fn one_gpu_that_cannot_retry_forbids_xnack_to_all() {
        for (profile, start, possible) in [
            ("mi210x8:svm=1,gpus=1+mi300x:gpus=1", 0, true),
            ("mi210x8:svm=1,gpus=1+rx7900", 0, false),
            ("mi210x8:svm=1,gpus=1+mi50", 0, false),
            ("cpu-only:svm=1", 1, true),
        ] {
            let sim = boot(profile);
            assert_eq!(xnack(&sim, -1), (Ok(0), start), "{profile}");
            assert_eq!(xnack(&sim, 0).0, Ok(0));
            assert_eq!(xnack(&sim, 1).0.is_ok(), possible, "{profile}");
        }
    }

    #[test]
    fn each_context_has_its_own_mode() {
        use hsakmt_core::uapi::kfd::CreateProcess;
        let sim = boot("mi300x:kernel=7.2,gpus=1");
        let device = kfd(&sim);
        assert_eq!(ask(&sim, &device, &mut CreateProcess::default()), Ok(0));
        assert_eq!(ask(&sim, &device, &mut SetXnackMode { xnack_enabled: 1 }), Ok(0));
        assert_eq!(xnack(&sim, -1), (Ok(0), 0));
        let mut block = SetXnackMode { xnack_enabled: -1 };
        assert_eq!((ask(&sim, &device, &mut block), block.xnack_enabled), (Ok(0), 1));
    }
}
