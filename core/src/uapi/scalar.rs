//! Flag words and open enumerations: every bit pattern is a valid value,
//! because kernels newer than this file know more of them.

/// Makes a flag word with the derives a block needs.
///
/// ```text
/// flags! {
///     /// What it selects.
///     pub struct RuntimeEnableMode: u32 {
///         /// What the bit asks for.
///         const ENABLE = 1 << 0;
///     }
/// }
/// ```
macro_rules! flags {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $word:ty {
            $($bits:tt)*
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, PartialEq, Eq, Hash, Default,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        #[repr(transparent)]
        pub struct $name($word);

        bitflags::bitflags! {
            impl $name: $word {
                $($bits)*
                // Bits of newer kernels are kept, not dropped.
                const _ = !0;
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                if self.is_empty() {
                    return f.write_str("0x0");
                }
                bitflags::parser::to_writer(self, f)
            }
        }
    };
}
pub(crate) use flags;

/// Makes a number with names for the values known today.
///
/// ```text
/// open_enum! {
///     /// What it selects.
///     pub struct MemoryPolicy: u32 {
///         /// What the value means.
///         const COHERENT = 0;
///     }
/// }
/// ```
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $word:ty {
            $($(#[$value_meta:meta])* const $value_name:ident = $value:expr;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        #[repr(transparent)]
        pub struct $name(pub $word);

        impl $name {
            $($(#[$value_meta])* pub const $value_name: $name = $name($value);)*

            /// The values with a name, in the order of the kernel's header.
            pub const NAMES: &'static [(&'static str, $name)] =
                &[$((stringify!($value_name), $name::$value_name),)*];
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match Self::NAMES.iter().find(|(_, value)| value == self) {
                    Some((name, _)) => f.write_str(name),
                    None => write!(f, "{:#x}", self.0),
                }
            }
        }
    };
}
pub(crate) use open_enum;

#[cfg(test)]
mod tests {
    use alloc::format;

    flags! {
        /// Two bits.
        pub struct Bits: u32 {
            /// Low.
            const LOW = 1 << 0;
            /// High.
            const HIGH = 1 << 31;
        }
    }

    open_enum! {
        /// Two values.
        pub struct Number: u32 {
            /// Zero.
            const NONE = 0;
            /// Three.
            const THREE = 3;
        }
    }

    #[test]
    fn bits_of_newer_kernels_survive() {
        let bits = Bits::from_bits_truncate(0x8000_0011);
        assert_eq!(bits.bits(), 0x8000_0011);
        assert_eq!(format!("{bits:?}"), "LOW | HIGH | 0x10");
        assert_eq!(format!("{:?}", Bits::empty()), "0x0");
    }

    #[test]
    fn values_of_newer_kernels_show_as_numbers() {
        assert_eq!(format!("{:?} {:?}", Number::THREE, Number(17)), "THREE 0x11");
        assert_eq!(Number::NAMES.len(), 2);
        assert_eq!(Number::default(), Number::NONE);
    }
}
