//! What every argument block has, and the macro that makes one.

use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Request;
use crate::seam::ArrayDirection;

/// What to do when the driver answers EINTR or EAGAIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Both are answers to the caller.
    Never,
    /// Send the block again after EINTR, as the driver returned it.
    Eintr,
    /// The same, and after EAGAIN with a growing pause (50 µs to 10 ms, at most 5 s).
    EintrEagain,
}

/// One field of a block, for decoding in traces.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name in the kernel's header.
    pub name: &'static str,
    /// Bytes from the start of the block.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

/// A field's value within a block's bytes.
#[derive(Debug, Clone, Copy)]
pub struct FieldValue<'a>(&'a [u8]);

impl Field {
    /// The field's value in `block`, to be displayed: a hexadecimal number for
    /// 1, 2, 4 and 8 bytes, the bytes otherwise.
    #[must_use]
    pub fn display<'a>(&self, block: &'a [u8]) -> FieldValue<'a> {
        let end = self.offset.saturating_add(self.size);
        FieldValue(block.get(self.offset..end).unwrap_or(&[]))
    }

    /// The field's value as a number; `None` for other sizes than 1, 2, 4, 8.
    #[must_use]
    pub fn number(&self, block: &[u8]) -> Option<u64> {
        self.display(block).number()
    }
}

impl FieldValue<'_> {
    fn number(&self) -> Option<u64> {
        match *self.0 {
            [a] => Some(u64::from(a)),
            [a, b] => Some(u64::from(u16::from_ne_bytes([a, b]))),
            [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
            [a, b, c, d, e, f, g, h] => Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
            _ => None,
        }
    }
}

impl fmt::Display for FieldValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.number() {
            return write!(f, "{number:#x}");
        }
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Where in a block the address of an array goes.
#[derive(Debug, Clone, Copy)]
pub struct ArraySlot {
    /// The pointer field's name in the kernel's header.
    pub name: &'static str,
    /// Bytes from the start of the block to the 8-byte pointer field.
    pub pointer_at: usize,
    /// Which way the array's bytes travel.
    pub direction: ArrayDirection,
}

/// An argument block of one request.
///
/// All bit patterns are valid and there is no implicit padding (the derives
/// prove it), so every byte that reaches the driver is initialised.
pub trait Block: FromBytes + IntoBytes + Immutable + KnownLayout {
    /// The request number.
    const REQUEST: Request;
    /// The request's name in the kernel's header, without its prefix.
    const NAME: &'static str;
    /// What to do about EINTR and EAGAIN.
    const RESTART: Restart;
    /// The fields, in order.
    const FIELDS: &'static [Field];
    /// The arrays outside the block, in order.
    const ARRAYS: &'static [ArraySlot];
}

/// Makes an argument block.
///
/// ```ignore
/// block! {
///     /// What it is for.
///     pub struct MapMemoryToGpu: ReadWrite b'K' 0x18 "MAP_MEMORY_TO_GPU", 24 bytes, Eintr {
///         /// Which buffer.
///         pub handle: u64,
///         /// Filled by the driver seam.
///         pub device_ids_array_ptr: u64 => In,
///         pub n_devices: u32,
///         pub n_success: u32,
///     }
/// }
/// ```
///
/// `=> In`, `=> Out`, `=> InOut` mark a pointer field as the slot of an array.
macro_rules! block {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $direction:ident $letter:literal $number:literal $label:literal,
            $size:literal bytes, $restart:ident {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(=> $array:ident)?,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        const _: () = assert!(core::mem::size_of::<$name>() == $size);

        impl Default for $name {
            fn default() -> Self {
                zerocopy::FromZeros::new_zeroed()
            }
        }

        impl $crate::uapi::Block for $name {
            const REQUEST: $crate::uapi::Request = $crate::uapi::Request::new(
                $crate::uapi::Direction::$direction, $letter, $number, $size,
            );
            const NAME: &'static str = $label;
            const RESTART: $crate::uapi::Restart = $crate::uapi::Restart::$restart;
            const FIELDS: &'static [$crate::uapi::Field] = &[
                $($crate::uapi::Field {
                    name: stringify!($field),
                    offset: core::mem::offset_of!($name, $field),
                    size: core::mem::size_of::<$type>(),
                },)*
            ];
            const ARRAYS: &'static [$crate::uapi::ArraySlot] = &[
                $($($crate::uapi::ArraySlot {
                    name: stringify!($field),
                    pointer_at: core::mem::offset_of!($name, $field),
                    direction: $crate::seam::ArrayDirection::$array,
                },)?)*
            ];
        }
    };
}
pub(crate) use block;
