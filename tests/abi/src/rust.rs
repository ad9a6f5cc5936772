//! What the Rust types are, row by row of the tables.

use std::mem::{align_of, size_of};

use hsakmt::types::*;

/// The Rust types of one generation.
#[derive(Debug, Default)]
pub struct Layouts {
    /// Structures and unions.
    pub records: Vec<Record>,
    /// Their fields.
    pub fields: Vec<Field>,
    /// Their bit-fields, without the reserved ones.
    pub bits: Vec<Bits>,
    /// Enumerations: name and size in bytes.
    pub enums: Vec<(&'static str, u64)>,
    /// Enumerators: enumeration, name, value.
    pub enumerators: Vec<(&'static str, &'static str, i64)>,
    /// Constants: name and value, as a signed 64-bit number.
    pub constants: Vec<(&'static str, i64)>,
    /// Universally unique identifiers.
    pub uuids: Vec<(&'static str, HSA_UUID)>,
    /// Names of other types: name and size in bytes.
    pub typedefs: Vec<(&'static str, u64)>,
    /// Structures of `hsakmt_ext.h`, which the tables do not have.
    pub extension_records: Vec<Record>,
    /// Their fields.
    pub extension_fields: Vec<Field>,
}

/// A structure or union.
#[derive(Debug)]
pub struct Record {
    /// Its name.
    pub name: &'static str,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
}

/// A field.
#[derive(Debug)]
pub struct Field {
    /// Structure or union that it is in.
    pub record: &'static str,
    /// Path from there, as C writes it.
    pub path: &'static str,
    /// Offset in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

/// A bit-field.
#[derive(Debug)]
pub struct Bits {
    /// Register that it is in.
    pub record: &'static str,
    /// Its C name, without a path.
    pub name: &'static str,
    /// Lowest bit.
    pub first: u32,
    /// Number of bits.
    pub width: u32,
}

/// An enumeration: name, size in bytes, enumerators with their values.
type Enumeration = (&'static str, u64, Vec<(&'static str, i64)>);

macro_rules! field {
    ($record:ident, $($place:ident).+, $path:literal) => {
        Field {
            record: stringify!($record),
            path: $path,
            offset: std::mem::offset_of!($record, $($place).+) as u64,
            size: size_of_place(|record: *const $record| {
                // SAFETY: the place is only computed, never read.
                unsafe { &raw const (*record).$($place).+ }
            }),
        }
    };
}

macro_rules! bits {
    ($record:ident) => {
        $record::FIELDS.iter().map(|(name, field)| Bits {
            record: stringify!($record),
            name,
            first: field.first(),
            width: field.width(),
        })
    };
}

macro_rules! enumeration {
    ($name:ident) => {
        (
            stringify!($name),
            size_of::<$name>() as u64,
            $name::ENUMERATORS.iter().map(|(name, value)| (*name, i64::from(value.0))).collect(),
        )
    };
}

impl Record {
    fn of<T>(name: &'static str) -> Self {
        Self { name, size: size_of::<T>() as u64, align: align_of::<T>() as u64 }
    }
}

impl Layouts {
    /// The Rust types of a generation, by its value of `HSAKMT_ABI_GENERATION`.
    ///
    /// # Panics
    ///
    /// If there is no such generation.
    pub fn of(generation: u32) -> Self {
        let mut layouts = match generation {
            523 => generation_523(),
            2025 => generation_2025(),
            2026 => generation_2026(),
            other => panic!("unknown generation {other}"),
        };
        layouts.add_extensions();
        layouts
    }

    fn add_extensions(&mut self) {
        self.extension_records = vec![
            Record::of::<HsaExtErrorDetail>("HsaExtErrorDetail"),
            Record::of::<HsaExtTraceRecord>("HsaExtTraceRecord"),
            Record::of::<HsaExtCopyOptions>("HsaExtCopyOptions"),
            Record::of::<HsaExtDmaBufInfo>("HsaExtDmaBufInfo"),
            Record::of::<HsaExtCopyPath>("HsaExtCopyPath"),
            Record::of::<HsaExtLogLevel>("HsaExtLogLevel"),
            Record::of::<HsaExtEventCallback>("HsaExtEventCallback"),
            Record::of::<HsaExtLogSink>("HsaExtLogSink"),
            Record::of::<HsaExtTraceSink>("HsaExtTraceSink"),
        ];
        self.extension_fields = vec![
            field!(HsaExtErrorDetail, Size, "Size"),
            field!(HsaExtErrorDetail, Status, "Status"),
            field!(HsaExtErrorDetail, Errno, "Errno"),
            field!(HsaExtErrorDetail, Operation, "Operation"),
            field!(HsaExtErrorDetail, Object, "Object"),
            field!(HsaExtErrorDetail, OperationName, "OperationName"),
            field!(HsaExtErrorDetail, Advice, "Advice"),
            field!(HsaExtErrorDetail, ObjectName, "ObjectName"),
            field!(HsaExtErrorDetail, Sequence, "Sequence"),
            field!(HsaExtCopyOptions, Size, "Size"),
            field!(HsaExtCopyOptions, Path, "Path"),
            field!(HsaExtCopyOptions, PathTaken, "PathTaken"),
            field!(HsaExtCopyOptions, Reserved, "Reserved"),
            field!(HsaExtDmaBufInfo, Size, "Size"),
            field!(HsaExtDmaBufInfo, NodeId, "NodeId"),
            field!(HsaExtDmaBufInfo, SizeInBytes, "SizeInBytes"),
            field!(HsaExtDmaBufInfo, GpuId, "GpuId"),
            field!(HsaExtDmaBufInfo, IsDeviceMemory, "IsDeviceMemory"),
            field!(HsaExtTraceRecord, Size, "Size"),
            field!(HsaExtTraceRecord, ArgumentCount, "ArgumentCount"),
            field!(HsaExtTraceRecord, Function, "Function"),
            field!(HsaExtTraceRecord, Arguments, "Arguments"),
            field!(HsaExtTraceRecord, Status, "Status"),
            field!(HsaExtTraceRecord, Reserved, "Reserved"),
            field!(HsaExtTraceRecord, DurationNs, "DurationNs"),
        ];
    }

    /// The record with this name.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn record(&self, name: &str) -> &Record {
        self.records.iter().find(|each| each.name == name).unwrap_or_else(|| panic!("no {name}"))
    }

    fn add_enum(&mut self, (name, size, enumerators): Enumeration) {
        self.enums.push((name, size));
        self.enumerators.extend(enumerators.into_iter().map(|(each, value)| (name, each, value)));
    }
}

/// The size in bytes of what the function points to.
fn size_of_place<R, F>(_: fn(*const R) -> *const F) -> u64 {
    size_of::<F>() as u64
}

include!(concat!(env!("OUT_DIR"), "/rust_layouts.rs"));
