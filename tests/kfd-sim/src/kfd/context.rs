//! CREATE_PROCESS: kernel-rules section 1, "Secondary contexts".

use alloc::collections::BTreeSet;

use hsakmt_core::errno::Errno;

use super::dispatch::Request;
use super::{Kind, ObjectId, new_object, process_folder};
use crate::descriptor::File;

/// Ids of secondary contexts are below this; the primary's is this.
const PRIMARY_ID: u16 = u16::MAX;

/// No argument. The descriptor's file, which must still carry the primary
/// object, gets a new one.
pub(super) fn create(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let object = request.object()?;
    let space = object.space;
    if object.kind != Kind::Primary {
        return Err(Errno::EINVAL);
    }
    let state = &mut *request.state;
    let taken: BTreeSet<u16> = state
        .objects
        .values()
        .filter(|object| object.space == space)
        .filter_map(|object| match object.kind {
            Kind::Primary => None,
            Kind::Secondary(id) => Some(id),
        })
        .collect();
    let id = (0..PRIMARY_ID).find(|id| !taken.contains(id)).ok_or(Errno::ENOSPC)?;
    let secondary = new_object(state, request.pid, space, Kind::Secondary(id))?;
    let new = ObjectId(state.number());
    state.objects.insert(new, secondary);
    process_folder::put(state, new);
    if let Some(File::Kfd { object }) = state.files.get_mut(&request.file) {
        *object = new;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Driver, MapDevice, Os, Placement, Protection};
    use hsakmt_core::uapi::kfd::{CreateProcess, RuntimeEnable, RuntimeEnableMode};

    use crate::SimDevice;
    use crate::fixture::{Sim, acquire, ask, boot, broken, gpu_id, kfd, render};

    fn create(sim: &Sim, device: &SimDevice) -> Result<u32, Errno> {
        ask(sim, device, &mut CreateProcess::default())
    }

    fn enable(sim: &Sim, device: &SimDevice) -> Result<u32, Errno> {
        let mode_mask = RuntimeEnableMode::ENABLE;
        ask(sim, device, &mut RuntimeEnable { mode_mask, ..Default::default() })
    }

    #[test]
    fn only_a_primary_descriptor_can_be_converted() {
        let sim = boot("rx7900:kernel=7.2");
        let device = kfd(&sim);
        assert_eq!(create(&sim, &device), Ok(0));
        assert_eq!(create(&sim, &device), Err(Errno::EINVAL));
        // A new open is the primary again.
        assert_eq!(create(&sim, &kfd(&sim)), Ok(0));
    }

    #[test]
    fn exists_since_7_2_unless_switched_off() {
        for profile in ["rx7900:kernel=6.1", "rx7900", "rx7900:kernel=7.2,secondary=0"] {
            let sim = boot(profile);
            assert_eq!(create(&sim, &kfd(&sim)), Err(Errno::ENOTTY), "{profile}");
        }
    }

    #[test]
    fn another_process_is_ebadf() {
        let sim = boot("rx7900:kernel=7.2");
        let device = kfd(&sim);
        sim.enter_fork_child();
        assert_eq!(create(&sim, &device), Err(Errno::EBADF));
        sim.leave_child();
        broken(&sim);
    }

    #[test]
    fn contexts_have_their_own_state_and_vm() {
        let sim = boot("rx7900:kernel=7.2");
        let (primary, secondary) = (kfd(&sim), kfd(&sim));
        assert_eq!(create(&sim, &secondary), Ok(0));
        for device in [&primary, &secondary] {
            assert_eq!(enable(&sim, device), Ok(0));
            assert_eq!(acquire(&sim, device, &render(&sim, 0), 0), Ok(0));
        }
    }

    #[test]
    fn the_lowest_free_id_is_taken() {
        let sim = boot("rx7900:kernel=7.2");
        let devices: [SimDevice; 3] = core::array::from_fn(|_| kfd(&sim));
        for device in &devices {
            assert_eq!(create(&sim, device), Ok(0));
        }
        let [first, _second, _third] = devices;
        drop(first);
        let again = kfd(&sim);
        assert_eq!(create(&sim, &again), Ok(0));
        let objects = sim.machine().leftovers().objects;
        for id in 0..3 {
            let name = alloc::format!("context {id} ");
            assert_eq!(objects.iter().filter(|object| object.starts_with(&name)).count(), 1);
        }
    }

    #[test]
    fn a_context_ends_with_the_last_reference_to_its_file() {
        let sim = boot("rx7900:kernel=7.2");
        let _primary = kfd(&sim);
        let device = kfd(&sim);
        assert_eq!(create(&sim, &device), Ok(0));
        let objects = || sim.machine().leftovers().objects.len();
        let doorbells = MapDevice {
            placement: Placement::Anywhere,
            length: 8192,
            protection: Protection::READ | Protection::WRITE,
            offset: 3 << 62 | u64::from(gpu_id(&sim, 0)) << 46,
        };
        let address = Driver::map(&sim, &device, doorbells).unwrap();
        // A forked child inherits the descriptor, not the mapping.
        let child = sim.fork();
        drop(device);
        assert_eq!(objects(), 2);
        child.process().exit();
        assert_eq!(objects(), 2, "the mapping is left");
        Os::unmap(&sim, address, 4096).unwrap();
        assert_eq!(objects(), 2, "half of the mapping is left");
        Os::unmap(&sim, address + 4096, 4096).unwrap();
        assert_eq!(objects(), 1);
    }

    #[test]
    fn a_context_lives_while_a_forked_child_has_a_copy() {
        let sim = boot("rx7900:kernel=7.2");
        let _primary = kfd(&sim);
        let device = kfd(&sim);
        assert_eq!(create(&sim, &device), Ok(0));
        let child = sim.fork();
        drop(device);
        let objects = || sim.machine().leftovers().objects.len();
        assert_eq!(objects(), 2);
        child.process().exit();
        assert_eq!(objects(), 1);
    }

    #[test]
    fn the_primary_stays_even_if_every_descriptor_was_converted() {
        let sim = boot("rx7900:kernel=7.2");
        let device = kfd(&sim);
        assert_eq!(enable(&sim, &device), Ok(0));
        assert_eq!(create(&sim, &device), Ok(0));
        assert_eq!(enable(&sim, &kfd(&sim)), Err(Errno::EBUSY));
    }
}
