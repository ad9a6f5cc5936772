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
        self.major as u32 * 10_000 + self.minor as u32 * 100 + self.stepping as u32
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
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = *b"GFX000000";
        let bytes = [self.major, self.minor, self.stepping];
        for (pair, byte) in text[3..].chunks_exact_mut(2).zip(bytes) {
            if let [high, low] = pair {
                *high = DIGITS[usize::from(byte >> 4)];
                *low = DIGITS[usize::from(byte & 15)];
            }
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
