//! DRM_IOCTL_VERSION and DRM_IOCTL_GET_CAP (drm_ioctl.c).

use hsakmt_core::errno::Errno;

use super::dispatch::Request;

/// amdgpu's interface (amdgpu_drv.c).
const MAJOR: u32 = 3;
const NAME: &[u8] = b"amdgpu";
const DESCRIPTION: &[u8] = b"AMD GPU";

/// version_major, _minor, _patchlevel i32 at 0, 4, 8; name length u64 at 16 and
/// address at 24; date at 32 and 40; description at 48 and 56. Each text is cut
/// to the caller's length, and the length of the whole text is returned.
pub(super) fn get(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let kernel = request.state.kernel;
    request.arguments.put_u32(0, MAJOR);
    request.arguments.put_u32(4, kernel.drm_minor);
    request.arguments.put_u32(8, 0);
    let date: &[u8] = if kernel.has_drm_date() { b"20150101" } else { b"0" };
    for (length_at, text) in [(16, NAME), (32, date), (48, DESCRIPTION)] {
        let room = usize::try_from(request.arguments.u64(length_at)).unwrap_or(usize::MAX);
        request.arguments.put_u64(length_at, text.len() as u64);
        let pointer_at = length_at + 8;
        let length = room.min(text.len());
        if length > 0 && request.arrays.is_present(pointer_at) {
            request.arrays.write(pointer_at, 0, &text[..length])?;
        }
    }
    Ok(0)
}

/// capability u64 at 0, value u64 at 8.
pub(super) fn get_cap(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let capability = request.arguments.u64(0);
    request.arguments.put_u64(8, 0);
    let value = match capability {
        // PRIME: import and export; TIMESTAMP_MONOTONIC, SYNCOBJ, SYNCOBJ_TIMELINE.
        0x05 => 3,
        0x06 | 0x13 | 0x14 => 1,
        // The rest belongs to displays: amdgpu without any is not a modeset driver.
        _ if !request.gpu.has_display() => return Err(Errno::EOPNOTSUPP),
        0x01..=0x04 | 0x07 | 0x10..=0x12 => 1,
        0x08 | 0x09 => 256,
        _ => return Err(Errno::EINVAL),
    };
    request.arguments.put_u64(8, value);
    Ok(0)
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::Array;
    use hsakmt_core::uapi::drm::{Capability, GetCap, Version};

    use crate::fixture::{ask, ask_with, boot, render};

    #[test]
    fn lengths_are_told_and_texts_cut() {
        let sim = boot("rx7900");
        let file = render(&sim, 0);
        let mut block = Version::default();
        let mut absent = [Array::Absent, Array::Absent, Array::Absent];
        assert_eq!(ask_with(&sim, &file, &mut block, &mut absent), Ok(0));
        assert_eq!((block.version_major, block.version_minor), (3, 60));
        assert_eq!((block.name_len, block.date_len, block.desc_len), (6, 8, 7));
        let (mut name, mut date) = ([0; 8], [0; 3]);
        block.name_len = 8;
        block.date_len = 3;
        block.desc_len = 0;
        let mut arrays = [Array::Out(&mut name), Array::Out(&mut date), Array::Absent];
        assert_eq!(ask_with(&sim, &file, &mut block, &mut arrays), Ok(0));
        assert_eq!((block.name_len, block.date_len), (6, 8));
        assert_eq!((&name, &date), (b"amdgpu\0\0", b"201"));
    }

    #[test]
    fn capabilities() {
        let cap = |profile: &str, capability| {
            let sim = boot(profile);
            let mut block = GetCap { capability: Capability(capability), value: 9 };
            ask(&sim, &render(&sim, 0), &mut block).map(|_| block.value)
        };
        assert_eq!(cap("rx7900", 0x05), Ok(3));
        assert_eq!(cap("rx7900", 0x14), Ok(1));
        assert_eq!(cap("rx7900", 0x77), Err(Errno::EINVAL));
        assert_eq!(cap("mi210", 0x77), Err(Errno::EOPNOTSUPP));
        assert_eq!(cap("mi210", 0x13), Ok(1));
    }
}
