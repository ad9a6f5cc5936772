//! The committed tables: tab-separated, sorted, one row a line.

use std::fs;
use std::path::Path;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ioctl {
    /// With its prefix.
    pub name: String,
    /// The whole number.
    pub request: u32,
    /// The record it carries; empty where the facts do not say.
    pub record: String,
}

/// A structure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// Its tag.
    pub name: String,
    /// Bytes.
    pub size: usize,
}

/// A field of a structure, or of a structure or union within it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Field {
    /// The tag of the outermost structure.
    pub record: String,
    /// Bytes from its start.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// The names from the outside in, with dots; anonymous ones do not count.
    pub path: String,
}

/// A constant or enumerator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its value; negative ones of 32 bits as the number with the same bits.
    pub value: u64,
}

/// All tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tables {
    /// `ioctls.tsv`
    pub ioctls: Vec<Ioctl>,
    /// `records.tsv`
    pub records: Vec<Record>,
    /// `fields.tsv`
    pub fields: Vec<Field>,
    /// `constants.tsv`
    pub constants: Vec<Constant>,
}

impl Tables {
    /// Reads the tables in `folder`.
    ///
    /// # Panics
    ///
    /// If a file is not there or a row is not of the known form.
    pub fn read(folder: &Path) -> Tables {
        Tables {
            ioctls: rows(folder, "ioctls.tsv", |[name, request, record]| Ioctl {
                name: name.to_owned(),
                request: hexadecimal(request) as u32,
                record: record.to_owned(),
            }),
            records: rows(folder, "records.tsv", |[name, size]| Record {
                name: name.to_owned(),
                size: decimal(size),
            }),
            fields: rows(folder, "fields.tsv", |[record, offset, size, path]| Field {
                record: record.to_owned(),
                offset: decimal(offset),
                size: decimal(size),
                path: path.to_owned(),
            }),
            constants: rows(folder, "constants.tsv", |[name, value]| Constant {
                name: name.to_owned(),
                value: hexadecimal(value),
            }),
        }
    }

    /// Writes the tables into `folder`.
    ///
    /// # Panics
    ///
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path) {
        write(folder, "ioctls.tsv", &self.ioctls, |row| {
            format!("{}\t{:#x}\t{}", row.name, row.request, row.record)
        });
        write(folder, "records.tsv", &self.records, |row| format!("{}\t{}", row.name, row.size));
        write(folder, "fields.tsv", &self.fields, |row| {
            format!("{}\t{}\t{}\t{}", row.record, row.offset, row.size, row.path)
        });
        write(folder, "constants.tsv", &self.constants, |row| {
            format!("{}\t{:#x}", row.name, row.value)
        });
    }

    /// The fields of a record.
    pub fn fields_of<'a>(&'a self, record: &'a str) -> impl Iterator<Item = &'a Field> {
        self.fields.iter().filter(move |field| field.record == record)
    }
}

fn rows<T, const N: usize>(folder: &Path, file: &str, row: impl Fn([&str; N]) -> T) -> Vec<T> {
    let path = folder.join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let columns = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let columns: [&str; N] =
            columns.try_into().unwrap_or_else(|_| panic!("{file}: {line}: columns"));
        row(columns)
    };
    text.lines().map(columns).collect()
}

fn write<T>(folder: &Path, file: &str, rows: &[T], line: impl Fn(&T) -> String) {
    let path = folder.join(file);
    let text: String = rows.iter().map(|row| line(row) + "\n").collect();
    fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

fn decimal(text: &str) -> usize {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn hexadecimal(text: &str) -> u64 {
    let digits = text.strip_prefix("0x").unwrap_or_else(|| panic!("{text}: not hexadecimal"));
    u64::from_str_radix(digits, 16).unwrap_or_else(|e| panic!("{text}: {e}"))
}
