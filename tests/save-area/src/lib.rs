//! Sizes of save areas, as the kernel's own function computes them.
//!
//! `table.txt` is made by this package's program from kernel sources and committed;
//! the tests hold the library's formula against it. It has a section for each set
//! of graphics versions that share all sizes: a line `= KERNEL VERSION...` for each
//! kernel, then rows of seven numbers. A `-` stands for every value.

#![deny(unsafe_code)]

use std::fmt;

/// The committed table.
pub const TABLE: &str = include_str!("../table.txt");

/// Sizes of local data that are tried, in KiB.
pub const LOCAL_DATA: [u32; 3] = [64, 160, 320];

/// Numbers of shader engines of a die that are tried.
pub const ENGINES: [u32; 4] = [1, 2, 4, 8];

/// Numbers of compute units of a die that are tried: 1 to this one.
pub const MOST_UNITS: u32 = 128;

/// Numbers of dies that are tried: 1 to this one.
pub const MOST_DIES: u32 = 8;

/// SIMD units of a compute unit, by the version.
#[must_use]
pub const fn simd_per_unit(target: u32) -> u32 {
    if target < 100_100 || target >= 120_500 { 4 } else { 2 }
}

/// What the sizes are of, and the sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Local data in KiB; `None`: whatever it is.
    pub local_data: Option<u32>,
    /// Shader engines of a die; `None`: whatever their number.
    pub engines: Option<u32>,
    /// Compute units of a die.
    pub units: u32,
    /// The sizes.
    pub sizes: Sizes,
}

/// Sizes for one die, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sizes {
    /// `ctl_stack_size` of a node.
    pub control_stack: u32,
    /// `cwsr_size` of a node.
    pub per_die: u32,
    /// `debug_memory_size`, which no file shows.
    pub debug: u32,
    /// `eop_buffer_size`, which no file shows either.
    pub end_of_pipe: u32,
}

impl Row {
    /// Reads a row.
    #[must_use]
    pub fn parse(line: &str) -> Option<Row> {
        let mut words = line.split_whitespace();
        let mut any = || {
            let word = words.next()?;
            Some(if word == "-" { None } else { Some(word.parse().ok()?) })
        };
        let (local_data, engines) = (any()?, any()?);
        let mut number = || words.next()?.parse().ok();
        let row = Row {
            local_data,
            engines,
            units: number()?,
            sizes: Sizes {
                control_stack: number()?,
                per_die: number()?,
                debug: number()?,
                end_of_pipe: number()?,
            },
        };
        words.next().is_none().then_some(row)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for any in [self.local_data, self.engines] {
            match any {
                Some(number) => write!(f, "{number} ")?,
                None => write!(f, "- ")?,
            }
        }
        let Sizes { control_stack, per_die, debug, end_of_pipe } = self.sizes;
        write!(f, "{} {control_stack} {per_die} {debug} {end_of_pipe}", self.units)
    }
}

/// Versions that share all their sizes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Section {
    /// Kernel and version (`gfx_target_version`).
    pub targets: Vec<(String, u32)>,
    /// The sizes.
    pub rows: Vec<Row>,
}

/// Reads a table; lines that begin with `#` are remarks.
///
/// # Panics
/// On a line that is none of the table's.
#[must_use]
pub fn sections(table: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let Some(targets) = line.strip_prefix("= ") else {
            let row = Row::parse(line).unwrap_or_else(|| panic!("no row: {line}"));
            sections.last_mut().expect("a section before its rows").rows.push(row);
            continue;
        };
        let mut words = targets.split_whitespace();
        let kernel = words.next().expect("a kernel").to_owned();
        let targets = words.map(|word| (kernel.clone(), word.parse().expect("a version")));
        match sections.last_mut() {
            Some(section) if section.rows.is_empty() => section.targets.extend(targets),
            _ => sections.push(Section { targets: targets.collect(), rows: Vec::new() }),
        }
    }
    sections
}
