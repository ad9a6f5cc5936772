//! Words that C describes with bit-fields.

use core::fmt;
use core::marker::PhantomData;

/// A run of bits in the register `R`.
///
/// The type parameter keeps the field of one register from being used on another.
/// Bit 0 is the least significant one, which is where gcc and clang put the first C bit-field on
/// the little-endian processors that this library supports.
pub struct BitField<R> {
    first: u32,
    width: u32,
    register: PhantomData<fn() -> R>,
}

impl<R> BitField<R> {
    /// The bits `first..end`; at least one, at most up to bit 64.
    pub(crate) const fn new(first: u32, end: u32) -> Self {
        assert!(first < end && end <= 64, "a bit-field is a non-empty range below bit 64");
        Self { first, width: end - first, register: PhantomData }
    }

    /// Number of the least significant bit.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// Number of bits.
    pub const fn width(self) -> u32 {
        self.width
    }

    /// The bits of the field within the register.
    pub const fn mask(self) -> u64 {
        u64::MAX.wrapping_shr(u64::BITS.wrapping_sub(self.width)).wrapping_shl(self.first)
    }
}

impl<R> Clone for BitField<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for BitField<R> {}

impl<R> fmt::Debug for BitField<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BitField({}, {})", self.first, self.width)
    }
}

/// Declares a register: a structure of one word, named as in C, with a [`BitField`] per C bit-field.
///
/// It is a structure and not `repr(transparent)`, because C passes it by value as a structure or
/// union: on riscv64 the upper half of the argument register is then undefined, while that of a
/// plain 32-bit integer is not.
///
/// Each line is `CName as RUST_NAME = first..end`. Reserved bits have no line.
macro_rules! bit_register {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $word:ty {
            $($(#[$field_meta:meta])* $c_name:ident as $rust_name:ident = $first:literal..$end:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Default, PartialEq, Eq,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        pub struct $name {
            /// All bits as one word.
            pub Value: $word,
        }

        impl $name {
            $(
                $(#[$field_meta])*
                pub const $rust_name: $crate::types::BitField<Self> =
                    $crate::types::BitField::new($first, $end);
            )*

            /// Every field with its C name, from the least significant bit on.
            pub const FIELDS: &'static [(&'static str, $crate::types::BitField<Self>)] =
                &[$((stringify!($c_name), Self::$rust_name)),*];

            /// The value of `field`, shifted down to bit 0.
            pub const fn get(self, field: $crate::types::BitField<Self>) -> $word {
                (self.Value & field.mask() as $word).wrapping_shr(field.first())
            }

            /// Whether any bit of `field` is set.
            pub const fn has(self, field: $crate::types::BitField<Self>) -> bool {
                self.get(field) != 0
            }

            /// The register with `field` replaced by the low bits of `value`.
            #[must_use]
            pub const fn with(self, field: $crate::types::BitField<Self>, value: $word) -> Self {
                let mask = field.mask() as $word;
                Self { Value: (self.Value & !mask) | (value.wrapping_shl(field.first()) & mask) }
            }
        }

        /// The word and the fields that are not zero, by their C names.
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}({:#x}", stringify!($name), { self.Value })?;
                for (name, field) in Self::FIELDS {
                    if self.has(*field) {
                        write!(f, " {name}={}", self.get(*field))?;
                    }
                }
                f.write_str(")")
            }
        }
    };
}

pub(crate) use bit_register;

#[cfg(test)]
mod tests {
    use crate::types::{HSA_DEBUG_PROPERTIES, HsaMemFlags};

    #[test]
    fn a_field_is_written_without_touching_its_neighbours() {
        let all = HsaMemFlags { Value: u32::MAX };
        let cleared = all.with(HsaMemFlags::CACHE_POLICY, 0);
        assert_eq!(cleared.Value, !0b110);
        assert_eq!(cleared.with(HsaMemFlags::CACHE_POLICY, 2).Value, !0b010);
        assert_eq!(cleared.get(HsaMemFlags::CACHE_POLICY), 0);
        assert!(cleared.has(HsaMemFlags::READ_ONLY));
    }

    #[test]
    fn bits_that_do_not_fit_are_dropped() {
        let flags = HsaMemFlags::default().with(HsaMemFlags::PAGE_SIZE, 0b111);
        assert_eq!(flags.Value, 0b11_0000);
    }

    #[test]
    fn a_64_bit_register_keeps_its_upper_half() {
        let upper = HSA_DEBUG_PROPERTIES { Value: 0xffff_ffff_0000_0000 };
        let properties = upper.with(HSA_DEBUG_PROPERTIES::WATCH_ADDR_MASK_HI_BIT, 0x3f);
        assert_eq!({ properties.Value }, 0xffff_ffff_0000_03f0);
    }
}
