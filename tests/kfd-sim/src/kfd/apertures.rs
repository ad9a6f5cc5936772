//! GET_PROCESS_APERTURES and GET_PROCESS_APERTURES_NEW: kernel-rules section 2,
//! with "Apertures" (kfd_flat_memory.c).

use alloc::vec::Vec;

use hsakmt_core::errno::Errno;

use super::dispatch::Request;

/// Bytes of one entry: six u64 (LDS, scratch, GPU VM: base and limit), gpu_id
/// u32, padding u32.
const ENTRY: usize = 56;
/// Entries of the old request.
const OLD_ENTRIES: usize = 7;
/// The LDS and scratch windows are this large.
const WINDOW: u64 = 4 << 30;

/// Seven entries from 0 on, num_of_nodes u32 at 392.
pub(super) fn get(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let entries = entries(request)?;
    let count = entries.len().min(OLD_ENTRIES);
    for (place, entry) in request.arguments.0.chunks_exact_mut(ENTRY).zip(&entries[..count]) {
        place.copy_from_slice(entry);
    }
    request.arguments.put_u32(ENTRY * OLD_ENTRIES, count as u32);
    Ok(0)
}

/// The array's address at 0, num_of_nodes u32 at 8.
pub(super) fn get_new(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let entries = entries(request)?;
    let asked = request.arguments.u32(8) as usize;
    if asked == 0 {
        request.arguments.put_u32(8, entries.len() as u32);
        return Ok(0);
    }
    let nodes = request.state.topology.nodes.len();
    if request.state.kernel.limits_apertures_to_nodes() && asked > nodes {
        return Err(Errno::EINVAL);
    }
    // kernel-truth: 2^32-1 entries are ENOMEM where the count is not limited.
    if asked.saturating_mul(ENTRY) > i32::MAX as usize {
        return Err(Errno::ENOMEM);
    }
    let count = asked.min(entries.len());
    request.arguments.put_u32(8, count as u32);
    for (n, entry) in entries.iter().take(count).enumerate() {
        request.arrays.write(0, n * ENTRY, entry)?;
    }
    Ok(0)
}

fn entries(request: &Request<'_, '_, '_>) -> Result<Vec<[u8; ENTRY]>, Errno> {
    let topology = &request.state.topology;
    let base_of_gfx9 = request.state.kernel.gpuvm_base();
    let entry = |gpu_id: u32| {
        let gfx9 = topology.gpu(gpu_id).is_none_or(|gpu| gpu.is_gfx9_or_later());
        let (lds, scratch, base, limit) = if gfx9 {
            (1 << 48, 2 << 48, base_of_gfx9, (1 << 47) - 1)
        } else {
            (1 << 61, (1 << 61) + WINDOW, 0x1_0000, (1 << 40) - 1)
        };
        let words = [lds, lds + WINDOW - 1, scratch, scratch + WINDOW - 1, base, limit];
        let mut entry = [0; ENTRY];
        for (place, word) in entry.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&u64::to_ne_bytes(word));
        }
        entry[48..52].copy_from_slice(&gpu_id.to_ne_bytes());
        entry
    };
    Ok(request.object()?.records.iter().map(|record| entry(record.gpu_id)).collect())
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;
    use alloc::vec::Vec;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Array, DeviceNode};
    use hsakmt_core::uapi::kfd::{GetProcessApertures, GetProcessAperturesNew};

    use super::ENTRY;
    use crate::fixture::{Sim, ask, ask_with, boot, broken, gpu_id, kfd};
    use crate::violation::Rule;

    fn get_new(sim: &Sim, count: u32, room: usize) -> (Result<u32, Errno>, u32, Vec<u32>) {
        let mut block = GetProcessAperturesNew { num_of_nodes: count, ..Default::default() };
        let mut array = vec![0_u8; room * ENTRY];
        let array_or_null = if room == 0 { Array::Absent } else { Array::Out(&mut array) };
        let answer = ask_with(sim, &kfd(sim), &mut block, &mut [array_or_null]);
        let ids = array
            .chunks_exact(ENTRY)
            .map(|entry| u32::from_ne_bytes(entry[48..52].try_into().unwrap()))
            .collect();
        (answer, block.num_of_nodes, ids)
    }

    #[test]
    fn count_0_asks_for_the_number_of_gpus() {
        assert_eq!(get_new(&boot("mi300x"), 0, 0), (Ok(0), 8, vec![]));
        assert_eq!(get_new(&boot("cpu-only"), 0, 0), (Ok(0), 0, vec![]));
    }

    #[test]
    fn the_smaller_of_count_and_gpus_is_filled_in_topology_order() {
        let sim = boot("mi210x8:gpus=2");
        let ids = [gpu_id(&sim, 0), gpu_id(&sim, 1)];
        assert_eq!(get_new(&sim, 1, 1), (Ok(0), 1, ids[..1].to_vec()));
        // Four nodes with the CPUs: allowed, two are filled.
        assert_eq!(get_new(&sim, 4, 4), (Ok(0), 2, vec![ids[0], ids[1], 0, 0]));
    }

    #[test]
    fn more_than_the_topology_nodes_are_refused_since_6_12() {
        let ask =
            |kernel: &str, count| get_new(&boot(&format!("rx7900:kernel={kernel}")), count, 3).0;
        assert_eq!(ask("6.1", 3), Ok(0));
        assert_eq!(ask("6.1", u32::MAX), Err(Errno::ENOMEM));
        for kernel in ["6.12", "7.2"] {
            assert_eq!(ask(kernel, 2), Ok(0));
            assert_eq!(ask(kernel, 3), Err(Errno::EINVAL));
            assert_eq!(ask(kernel, u32::MAX), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn a_null_array_is_efault() {
        let sim = boot("mi210x8:gpus=2");
        assert_eq!(get_new(&sim, 2, 0).0, Err(Errno::EFAULT));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn an_array_shorter_than_its_count_is_a_violation() {
        let sim = boot("mi210x8:gpus=2");
        assert_eq!(get_new(&sim, 2, 1).0, Err(Errno::EFAULT));
        assert_eq!(broken(&sim), [Rule::ShortArray]);
    }

    #[test]
    fn hidden_gpus_are_left_out() {
        let sim = boot("mi210x8:gpus=2");
        sim.process().hide(DeviceNode::Render(128), true);
        assert_eq!(get_new(&sim, 2, 2), (Ok(0), 1, vec![gpu_id(&sim, 1), 0]));
        // Decided when the object was made.
        sim.process().hide(DeviceNode::Render(128), false);
        assert_eq!(get_new(&sim, 0, 0).1, 1);
    }

    #[test]
    fn the_old_request_shows_at_most_seven() {
        let sim = boot("mi300x");
        let mut block = GetProcessApertures { pad: 7, ..Default::default() };
        assert_eq!(ask(&sim, &kfd(&sim), &mut block), Ok(0));
        assert_eq!(block.num_of_nodes, 7);
        assert_eq!(block.pad, 0, "the block is zeroed first");
        assert_eq!(block.process_apertures[6].gpu_id, gpu_id(&sim, 6));
    }

    #[test]
    fn windows_of_gfx9_and_later() {
        for (kernel, base) in [("6.1", 0x4000), ("6.12", 0x1_0000), ("7.2", 0x1_0000)] {
            let sim = boot(&format!("mi50:kernel={kernel}"));
            let mut block = GetProcessApertures::default();
            assert_eq!(ask(&sim, &kfd(&sim), &mut block), Ok(0));
            let apertures = block.process_apertures[0];
            assert_eq!((apertures.lds_base, apertures.lds_limit), (1 << 48, 0x1_0000_ffff_ffff));
            assert_eq!(
                (apertures.scratch_base, apertures.scratch_limit),
                (2 << 48, 0x2_0000_ffff_ffff)
            );
            assert_eq!((apertures.gpuvm_base, apertures.gpuvm_limit), (base, 0x7fff_ffff_ffff));
        }
    }
}
