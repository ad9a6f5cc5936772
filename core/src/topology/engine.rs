//! The version of a GPU's graphics and compute engine.

use core::fmt;

use super::Name;

/// A gfx version such as 9.0.10, "gfx90a".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GfxVersion {
    /// 0 to 63; 0 where nobody knows the version.
    pub major: u8,
    /// The minor version.
    pub minor: u8,
    /// The stepping; compilers write it in hexadecimal.
    pub stepping: u8,
}

impl GfxVersion {
    /// Reads an override, "a.b.c" with a at most 63, b and c at most 255 and
    /// nothing else.
    #[must_use]
    pub fn from_override(text: &[u8]) -> Option<GfxVersion> {
        let mut parts = text.split(|&byte| byte == b'.').map(decimal_byte);
        let (Some(Some(major)), Some(Some(minor)), Some(Some(stepping)), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        (major <= 63).then_some(GfxVersion { major, minor, stepping })
    }

    /// Takes the kernel's `gfx_target_version` apart: decimal MMmmss. A version
    /// that does not fit is no version.
    #[must_use]
    pub fn from_target_version(decimal: u32) -> GfxVersion {
        let Ok(major @ 0..=63) = u8::try_from(decimal / 10_000) else {
            return GfxVersion::default();
        };
        GfxVersion { major, minor: (decimal / 100 % 100) as u8, stepping: (decimal % 100) as u8 }
    }

    /// The kernel's decimal form, MMmmss.
    #[must_use]
    pub const fn target_version(self) -> u32 {
        let minor = (self.minor as u32).wrapping_mul(100);
        (self.major as u32)
            .wrapping_mul(10_000)
            .wrapping_add(minor)
            .wrapping_add(self.stepping as u32)
    }

    /// Whether nobody knows the version.
    #[must_use]
    pub const fn is_unknown(self) -> bool {
        self.major == 0 && self.minor == 0 && self.stepping == 0
    }

    /// `HSA_ENGINE_ID` of the C ABI with this microcode version.
    #[must_use]
    pub const fn engine_id(self, microcode: u32) -> u32 {
        microcode & 0x3ff
            | (self.major as u32 & 0x3f) << 10
            | (self.minor as u32) << 16
            | (self.stepping as u32) << 24
    }

    /// The generic chip name: `GFX` and the version in six lower-case
    /// hexadecimal digits.
    #[must_use]
    pub fn generic_name(self) -> Name {
        const DIGITS: &[u8] = b"0123456789abcdef";
        let mut text = *b"GFX000000";
        let version = [self.major, self.minor, self.stepping];
        let digits = version.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        for (to, digit) in text.iter_mut().skip(3).zip(digits) {
            *to = DIGITS.get(usize::from(digit)).copied().unwrap_or_default();
        }
        Name::from_text(&text)
    }
}

/// `gfx90a`: major and minor decimal, stepping hexadecimal, as compilers write it.
impl fmt::Display for GfxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gfx{}{}{:x}", self.major, self.minor, self.stepping)
    }
}

/// One to three decimal digits, at most 255.
fn decimal_byte(text: &[u8]) -> Option<u8> {
    if text.is_empty() || text.len() > 3 {
        return None;
    }
    let mut value: u8 = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::GfxVersion;
    use alloc::format;

    fn version(major: u8, minor: u8, stepping: u8) -> GfxVersion {
        GfxVersion { major, minor, stepping }
    }

    #[test]
    fn overrides() {
        assert_eq!(GfxVersion::from_override(b"9.0.10"), Some(version(9, 0, 10)));
        assert_eq!(GfxVersion::from_override(b"63.255.255"), Some(version(63, 255, 255)));
        assert_eq!(GfxVersion::from_override(b"0.0.0"), Some(version(0, 0, 0)));
        assert_eq!(GfxVersion::from_override(b"010.03.00"), Some(version(10, 3, 0)));
        for bad in [
            &b""[..],
            b"9",
            b"9.0",
            b"9.0.",
            b".0.1",
            b"9.0.10.",
            b"9.0.10.1",
            b"9.0.10 ",
            b" 9.0.10",
            b"9.0.10\n",
            b"64.0.0",
            b"9.256.0",
            b"9.0.256",
            b"9.-1.0",
            b"9.0.a",
            b"gfx90a",
            b"9.0.99999999999999999999",
        ] {
            assert_eq!(GfxVersion::from_override(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn decimal_versions() {
        for (decimal, expected) in [
            (90010, version(9, 0, 10)),
            (90402, version(9, 4, 2)),
            (110003, version(11, 0, 3)),
            (120001, version(12, 0, 1)),
            (0, version(0, 0, 0)),
        ] {
            assert_eq!(GfxVersion::from_target_version(decimal), expected);
            assert_eq!(expected.target_version(), decimal);
        }
        assert!(GfxVersion::from_target_version(640_000).is_unknown());
        assert!(GfxVersion::from_target_version(u32::MAX).is_unknown());
    }

    #[test]
    fn names() {
        assert_eq!(version(9, 4, 2).generic_name().as_bytes(), b"GFX090402");
        assert_eq!(version(11, 0, 10).generic_name().as_bytes(), b"GFX0b000a");
        assert_eq!(format!("{}", version(9, 0, 10)), "gfx90a");
        assert_eq!(format!("{}", version(11, 5, 1)), "gfx1151");
    }

    #[test]
    fn engine_id_of_the_c_abi() {
        assert_eq!(version(9, 0, 10).engine_id(92), 167_781_468);
        assert_eq!(version(63, 255, 255).engine_id(u32::MAX), u32::MAX);
    }
}
