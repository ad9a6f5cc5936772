//! The committed tables of `facts/`: what the C ABI is, one fact per row.
//!
//! The first column of most tables names the generations for which the row holds, by their value of
//! `HSAKMT_ABI_GENERATION`, separated by commas. This file is also part of the build script.

use std::fs;
use std::path::Path;

/// The generations, by their value of `HSAKMT_ABI_GENERATION`.
pub const GENERATIONS: [u32; 3] = [523, 2025, 2026];

/// All tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Structures and unions.
    pub records: Vec<Record>,
    /// Their fields with an offset of their own, nested ones too.
    pub fields: Vec<Field>,
    /// Their bit-fields.
    pub bits: Vec<Bits>,
    /// Enumerations.
    pub enums: Vec<Enum>,
    /// Their enumerators.
    pub enumerators: Vec<Enumerator>,
    /// Macros with an integer value.
    pub constants: Vec<Constant>,
    /// Universally unique identifiers.
    pub uuids: Vec<Uuid>,
    /// Names for other types.
    pub typedefs: Vec<Typedef>,
    /// Functions.
    pub functions: Vec<Function>,
}

/// A row that knows its columns.
pub trait Row: Sized {
    /// The row of these columns; `None` if they are not of its form.
    fn from_columns(columns: &[&str]) -> Option<Self>;
    /// The columns of the row.
    fn columns(&self) -> Vec<String>;
}

macro_rules! rows {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $name {
                $($(#[$field_meta])* pub $field: $type,)*
            }

            impl Row for $name {
                fn from_columns(columns: &[&str]) -> Option<Self> {
                    let mut columns = columns.iter();
                    let row = Self { $($field: Column::parse(columns.next()?)?,)* };
                    columns.next().is_none().then_some(row)
                }

                fn columns(&self) -> Vec<String> {
                    vec![$(self.$field.print(),)*]
                }
            }
        )*
    };
}

rows! {
    /// A structure or union.
    pub struct Record {
        /// Generations that have it so.
        generations: Generations,
        /// Its name.
        name: String,
        /// Size in bytes.
        size: u64,
        /// Alignment in bytes.
        align: u64,
    }

    /// A field with an offset of its own.
    pub struct Field {
        /// Generations that have it so.
        generations: Generations,
        /// Structure or union that it is in.
        record: String,
        /// Path from there, as C writes it.
        path: String,
        /// Its C type; `struct` or `union` where that has no name.
        c_type: String,
        /// Offset in bytes.
        offset: u64,
        /// Size in bytes.
        size: u64,
    }

    /// A bit-field.
    pub struct Bits {
        /// Generations that have it so.
        generations: Generations,
        /// Structure or union that it is in.
        record: String,
        /// Path from there, as C writes it.
        path: String,
        /// Its C type.
        c_type: String,
        /// Lowest bit, from the start of the record.
        first: u32,
        /// Number of bits.
        width: u32,
    }

    /// An enumeration.
    pub struct Enum {
        /// Generations that have it so.
        generations: Generations,
        /// Its name.
        name: String,
        /// Size in bytes.
        size: u64,
    }

    /// An enumerator.
    pub struct Enumerator {
        /// Generations that have it so.
        generations: Generations,
        /// Enumeration that it is in.
        enumeration: String,
        /// Its name.
        name: String,
        /// Its value.
        value: i64,
    }

    /// A macro with an integer value.
    pub struct Constant {
        /// Generations that have it so.
        generations: Generations,
        /// Its name.
        name: String,
        /// Its value, as a signed 64-bit number.
        value: i64,
    }

    /// A universally unique identifier.
    pub struct Uuid {
        /// Its name.
        name: String,
        /// First word, in hexadecimal.
        data1: String,
        /// Second word.
        data2: String,
        /// Third word.
        data3: String,
        /// Eight bytes.
        data4: String,
    }

    /// A name for another type.
    pub struct Typedef {
        /// Generations that have it so.
        generations: Generations,
        /// Its name.
        name: String,
        /// The other type.
        c_type: String,
        /// Size in bytes; 0 for a type without a size.
        size: u64,
    }

    /// A function.
    pub struct Function {
        /// Generations that declare it so.
        generations: Generations,
        /// Header that declares it.
        header: String,
        /// Its name.
        name: String,
        /// C type of its result.
        result: String,
        /// C types of its parameters, separated by `; `.
        parameters: String,
    }
}

/// Generations for which a row holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generations(pub Vec<u32>);

impl Generations {
    /// Whether the row holds for this generation.
    pub fn has(&self, generation: u32) -> bool {
        self.0.contains(&generation)
    }
}

trait Column: Sized {
    fn parse(text: &str) -> Option<Self>;
    fn print(&self) -> String;
}

impl Column for Generations {
    fn parse(text: &str) -> Option<Self> {
        text.split(',').map(|each| each.parse().ok()).collect::<Option<_>>().map(Self)
    }

    fn print(&self) -> String {
        self.0.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
    }
}

macro_rules! columns {
    ($($type:ty)*) => {
        $(
            impl Column for $type {
                fn parse(text: &str) -> Option<Self> {
                    text.parse().ok()
                }

                fn print(&self) -> String {
                    self.to_string()
                }
            }
        )*
    };
}

columns!(u32 u64 i64 String);

impl Tables {
    /// Reads the tables of a folder.
    ///
    /// # Panics
    ///
    /// If a table is missing or has a malformed row; the message names it.
    pub fn read(folder: &Path) -> Self {
        Self {
            records: read(folder, "records"),
            fields: read(folder, "fields"),
            bits: read(folder, "bits"),
            enums: read(folder, "enums"),
            enumerators: read(folder, "enumerators"),
            constants: read(folder, "constants"),
            uuids: read(folder, "uuids"),
            typedefs: read(folder, "typedefs"),
            functions: read(folder, "functions"),
        }
    }

    /// Writes the tables into a folder.
    ///
    /// # Panics
    ///
    /// If a table cannot be written; the message names it.
    #[allow(dead_code, reason = "the build script only reads")]
    pub fn write(&self, folder: &Path) {
        write(folder, "records", &self.records);
        write(folder, "fields", &self.fields);
        write(folder, "bits", &self.bits);
        write(folder, "enums", &self.enums);
        write(folder, "enumerators", &self.enumerators);
        write(folder, "constants", &self.constants);
        write(folder, "uuids", &self.uuids);
        write(folder, "typedefs", &self.typedefs);
        write(folder, "functions", &self.functions);
    }
}

fn read<T: Row>(folder: &Path, name: &str) -> Vec<T> {
    let path = folder.join(name).with_extension("tsv");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let row = |line: &str| {
        T::from_columns(&line.split('\t').collect::<Vec<_>>())
            .unwrap_or_else(|| panic!("{}: malformed row: {line}", path.display()))
    };
    text.lines().map(row).collect()
}

#[allow(dead_code, reason = "the build script only reads")]
fn write<T: Row>(folder: &Path, name: &str, rows: &[T]) {
    let path = folder.join(name).with_extension("tsv");
    let text: String = rows.iter().map(|row| row.columns().join("\t") + "\n").collect();
    fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
