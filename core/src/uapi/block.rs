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

/// A structure that blocks carry or point to: an element of an array, an answer.
pub trait Record: FromBytes + IntoBytes + Immutable + KnownLayout {
    /// The structure's name in the kernel's header.
    const NAME: &'static str;
    /// The fields, in order.
    const FIELDS: &'static [Field];
}

/// What there is to know about a block without its type.
#[derive(Debug, Clone, Copy)]
pub struct BlockInfo {
    /// [`Block::REQUEST`].
    pub request: Request,
    /// [`Block::NAME`].
    pub name: &'static str,
    /// Bytes of the block, without an inline tail.
    pub size: usize,
    /// [`Block::RESTART`].
    pub restart: Restart,
    /// [`Block::FIELDS`].
    pub fields: &'static [Field],
    /// [`Block::ARRAYS`].
    pub arrays: &'static [ArraySlot],
}

impl BlockInfo {
    /// The description of `B`.
    #[must_use]
    pub const fn of<B: Block>() -> BlockInfo {
        BlockInfo {
            request: B::REQUEST,
            name: B::NAME,
            size: size_of::<B>(),
            restart: B::RESTART,
            fields: B::FIELDS,
            arrays: B::ARRAYS,
        }
    }
}

/// What there is to know about a record without its type.
#[derive(Debug, Clone, Copy)]
pub struct RecordInfo {
    /// [`Record::NAME`].
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// [`Record::FIELDS`].
    pub fields: &'static [Field],
}

impl RecordInfo {
    /// The description of `R`.
    #[must_use]
    pub const fn of<R: Record>() -> RecordInfo {
        RecordInfo { name: R::NAME, size: size_of::<R>(), fields: R::FIELDS }
    }
}

/// The kernel's name of a field whose Rust name had to be written `r#name`.
pub(crate) const fn kernel_name(name: &'static str) -> &'static str {
    if let [b'r', b'#', rest @ ..] = name.as_bytes() {
        if let Ok(rest) = core::str::from_utf8(rest) {
            return rest;
        }
    }
    name
}

/// The part that blocks and records share: the struct, its size, its zeroes.
macro_rules! layout {
    (
        $(#[$meta:meta])*
        pub struct $name:ident, $size:literal bytes {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(= $initial:expr)?,)*
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
            /// All zero, but for the fields that say which operation it is.
            fn default() -> Self {
                #[allow(unused_mut, reason = "most have no such field")]
                let mut block: Self = zerocopy::FromZeros::new_zeroed();
                $($(block.$field = $initial;)?)*
                block
            }
        }
    };
}

/// The description of each field, for [`Block::FIELDS`] and [`Record::FIELDS`].
macro_rules! fields {
    ($name:ident { $($field:ident: $type:ty,)* }) => {
        &[$($crate::uapi::Field {
            name: $crate::uapi::block::kernel_name(stringify!($field)),
            offset: core::mem::offset_of!($name, $field),
            size: core::mem::size_of::<$type>(),
        },)*]
    };
}
pub(crate) use {fields, layout};

/// Makes an argument block.
///
/// ```text
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
/// `= value` gives a field another default than zero: the operation of a
/// request that has several.
macro_rules! block {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $direction:ident $letter:literal $number:literal $label:literal,
            $size:literal bytes, $restart:ident {
            $(
                $(#[$field_meta:meta])*
                pub $field:ident: $type:ty $(=> $array:ident)? $(= $initial:expr)?,
            )*
        }
    ) => {
        $crate::uapi::block::layout! {
            $(#[$meta])*
            pub struct $name, $size bytes {
                $($(#[$field_meta])* pub $field: $type $(= $initial)?,)*
            }
        }

        impl $crate::uapi::Block for $name {
            const REQUEST: $crate::uapi::Request = $crate::uapi::Request::new(
                $crate::uapi::Direction::$direction, $letter, $number, $size,
            );
            const NAME: &'static str = $label;
            const RESTART: $crate::uapi::Restart = $crate::uapi::Restart::$restart;
            const FIELDS: &'static [$crate::uapi::Field] =
                $crate::uapi::block::fields!($name { $($field: $type,)* });
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

/// Makes a record.
///
/// ```text
/// record! {
///     /// What it is for.
///     pub struct MemoryRange: "kfd_memory_range", 16 bytes {
///         /// Where it starts.
///         pub va_addr: u64,
///         /// Bytes.
///         pub size: u64,
///     }
/// }
/// ```
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $label:literal, $size:literal bytes {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)*
        }
    ) => {
        $crate::uapi::block::layout! {
            $(#[$meta])*
            pub struct $name, $size bytes {
                $($(#[$field_meta])* pub $field: $type,)*
            }
        }

        impl $crate::uapi::Record for $name {
            const NAME: &'static str = $label;
            const FIELDS: &'static [$crate::uapi::Field] =
                $crate::uapi::block::fields!($name { $($field: $type,)* });
        }
    };
}
pub(crate) use record;
