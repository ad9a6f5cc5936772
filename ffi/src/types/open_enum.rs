//! C enumerations that may hold a value without a name.

/// Declares a C enumeration as a newtype over its integer.
///
/// Each line is `C_NAME as RUST_NAME = value`. Several names may share one value.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $integer:ty {
            $($(#[$value_meta:meta])* $c_name:ident as $rust_name:ident = $value:expr,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Default, PartialEq, Eq, Hash,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        #[repr(transparent)]
        pub struct $name(pub $integer);

        impl $name {
            $(
                $(#[$value_meta])*
                pub const $rust_name: Self = Self($value);
            )*

            /// Every enumerator with its C name, in the order of the header.
            pub const ENUMERATORS: &'static [(&'static str, Self)] =
                &[$((stringify!($c_name), Self::$rust_name)),*];

            /// The C name of the first enumerator with this value.
            pub fn c_name(self) -> Option<&'static str> {
                Self::ENUMERATORS.iter().find(|(_, value)| *value == self).map(|(name, _)| *name)
            }
        }

        /// The C name, or the number where it has none.
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.c_name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($name), self.0),
                }
            }
        }
    };
}

pub(crate) use open_enum;

#[cfg(test)]
mod tests {
    extern crate std;
    use std::format;

    use crate::types::HSAKMT_STATUS;

    #[test]
    fn a_value_prints_its_c_name_or_its_number() {
        assert_eq!(format!("{:?}", HSAKMT_STATUS::WAIT_TIMEOUT), "HSAKMT_STATUS_WAIT_TIMEOUT");
        assert_eq!(format!("{:?}", HSAKMT_STATUS(8)), "HSAKMT_STATUS(8)");
    }
}
