//! Which machine an output is about.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use hsakmt_core::context::Version;

use crate::output::text::Printable;

/// The machine that is simulated where there is no driver.
pub const DEFAULT_PROFILE: &str = "mi300x";

/// A machine, by where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Machine {
    /// This one, by its driver; the version of the driver's interface if it was
    /// opened.
    Real(Option<Version>),
    /// A simulated one.
    Simulated {
        /// Its profile.
        profile: String,
        /// The version of the simulated driver's interface if it was opened.
        driver: Option<Version>,
        /// What is missing on this machine, if nobody asked for a simulation.
        instead_of: Option<&'static str>,
    },
    /// A captured topology tree.
    Tree {
        /// The folder that was named.
        folder: Vec<u8>,
        /// Files that the capture lacks and that were made up.
        made_up: Vec<&'static str>,
    },
}

impl Machine {
    /// One word for the kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Machine::Real(_) => "real",
            Machine::Simulated { .. } => "simulated",
            Machine::Tree { .. } => "tree",
        }
    }

    /// The profile or folder; nothing for the real machine.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        match self {
            Machine::Real(_) => b"",
            Machine::Simulated { profile, .. } => profile.as_bytes(),
            Machine::Tree { folder, .. } => folder,
        }
    }

    /// The names of files that were made up, in the order of their first use.
    #[must_use]
    pub fn made_up(&self) -> &[&'static str] {
        match self {
            Machine::Tree { made_up, .. } => made_up,
            Machine::Real(_) | Machine::Simulated { .. } => &[],
        }
    }

    /// The version of the driver's interface, if a driver was asked.
    #[must_use]
    pub const fn driver(&self) -> Option<Version> {
        match self {
            Machine::Real(driver) | Machine::Simulated { driver, .. } => *driver,
            Machine::Tree { .. } => None,
        }
    }
}

/// The first line of every output.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Machine::Real(Some(Version { major, minor })) => {
                write!(f, "real driver, KFD {major}.{minor}")
            }
            Machine::Real(None) => f.write_str("real driver, topology only (no device opened)"),
            Machine::Simulated { profile, instead_of, .. } => {
                write!(f, "simulated machine {}", Printable(profile.as_bytes()))?;
                match instead_of {
                    Some(missing) => write!(f, " (there is no {missing} here)"),
                    None => Ok(()),
                }
            }
            Machine::Tree { folder, .. } => write!(f, "captured tree {}", Printable(folder)),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn the_first_line_says_which_machine() {
        let simulated = |instead_of| Machine::Simulated {
            profile: "apu".into(),
            driver: Some(Version { major: 1, minor: 17 }),
            instead_of,
        };
        for (machine, line) in [
            (Machine::Real(Some(Version { major: 1, minor: 17 })), "real driver, KFD 1.17"),
            (Machine::Real(None), "real driver, topology only (no device opened)"),
            (simulated(None), "simulated machine apu"),
            (simulated(Some("/dev/kfd")), "simulated machine apu (there is no /dev/kfd here)"),
            (
                Machine::Tree { folder: b"/a\n\xff".to_vec(), made_up: Vec::new() },
                "captured tree /a\\n\\xff",
            ),
        ] {
            assert_eq!(machine.to_string(), line);
        }
    }
}
