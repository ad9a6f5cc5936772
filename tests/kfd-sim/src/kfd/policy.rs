//! SET_MEMORY_POLICY: kernel-rules section 2.

use hsakmt_core::errno::Errno;

use super::dispatch::Request;

/// A GPU's cache policy for one process object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    pub default: u32,
    pub alternate: u32,
    pub base: u64,
    pub size: u64,
    /// 7.2: bit 0 asks for high precision MFMA.
    pub flags: u32,
}

/// COHERENT 0 and NONCOHERENT 1 are all there is.
const HIGHEST_POLICY: u32 = 1;
/// The old aperture's granule.
const APERTURE_GRANULE: u64 = 64 << 10;
/// One past the highest user address of x86-64.
const USER_ADDRESSES: u64 = (1 << 47) - 4096;

/// alternate_aperture_base at 0, alternate_aperture_size at 8, gpu_id u32 at 16,
/// default_cache_policy u32 at 20, alternate_cache_policy u32 at 24, flags u32 at 28.
pub(super) fn set(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let arguments = &request.arguments;
    let (base, size, gpu_id) = (arguments.u64(0), arguments.u64(8), arguments.u32(16));
    let (default, alternate, flags) = (arguments.u32(20), arguments.u32(24), arguments.u32(28));
    if default > HIGHEST_POLICY || alternate > HIGHEST_POLICY {
        return Err(Errno::EINVAL);
    }
    if request.object()?.gpu(gpu_id)?.file.is_none() {
        return Err(Errno::ESRCH);
    }
    // gfx7 and gfx8 alone use the aperture.
    let gfx9 = request.state.topology.gpu(gpu_id).is_none_or(|gpu| gpu.is_gfx9_or_later());
    if !gfx9 && size != 0 {
        let end = base.checked_add(size);
        let aligned = base % APERTURE_GRANULE == 0 && size % APERTURE_GRANULE == 0;
        if !aligned || end.is_none_or(|end| end > USER_ADDRESSES) {
            return Err(Errno::EINVAL);
        }
    }
    if let Some(record) = request.object_mut()?.record_mut(gpu_id) {
        record.policy = Some(Policy { default, alternate, base, size, flags });
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::uapi::kfd::{CachePolicy, SetMemoryPolicy};

    use crate::fixture::{acquire, ask, boot, boot_machine, gpu_id, kfd, render};
    use crate::profile::Profile;

    #[test]
    fn errors_come_in_order() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        let set = |default, alternate, gpu_id| {
            let mut block = SetMemoryPolicy {
                gpu_id,
                default_policy: CachePolicy(default),
                alternate_policy: CachePolicy(alternate),
                // gfx9 and later ignore the aperture.
                alternate_aperture_base: 1,
                alternate_aperture_size: u64::MAX,
                ..Default::default()
            };
            ask(&sim, &device, &mut block)
        };
        let id = gpu_id(&sim, 0);
        assert_eq!(set(2, 0, id), Err(Errno::EINVAL));
        assert_eq!(set(0, 2, id), Err(Errno::EINVAL));
        assert_eq!(set(0, 0, 0), Err(Errno::EINVAL));
        assert_eq!(set(0, 1, id), Err(Errno::ESRCH));
        assert_eq!(acquire(&sim, &device, &render(&sim, 0), 0), Ok(0));
        assert_eq!(set(2, 0, id), Err(Errno::EINVAL));
        assert_eq!(set(1, 0, id), Ok(0));
    }

    #[test]
    fn chips_before_gfx9_look_at_the_aperture() {
        let mut profile = Profile::parse("mi50").unwrap();
        for gpu in profile.topology.nodes.iter_mut().filter_map(|node| node.gpu.as_mut()) {
            gpu.properties.gfx_target_version = 80_003;
        }
        let sim = boot_machine(&profile);
        let device = kfd(&sim);
        assert_eq!(acquire(&sim, &device, &render(&sim, 0), 0), Ok(0));
        const GRANULE: u64 = 0x1_0000;
        for (base, size, fits) in [
            (1, 0, true),
            (0, GRANULE, true),
            (GRANULE, 3 * GRANULE, true),
            (GRANULE + 4096, GRANULE, false),
            (GRANULE, GRANULE + 4096, false),
            (1 << 47, GRANULE, false),
            ((1 << 47) - GRANULE, GRANULE, false),
            (!0xffff, GRANULE, false),
        ] {
            let mut block = SetMemoryPolicy {
                gpu_id: gpu_id(&sim, 0),
                alternate_aperture_base: base,
                alternate_aperture_size: size,
                ..Default::default()
            };
            let expected = if fits { Ok(0) } else { Err(Errno::EINVAL) };
            assert_eq!(ask(&sim, &device, &mut block), expected, "{base:#x}, {size:#x}");
        }
    }
}
