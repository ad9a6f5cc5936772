//! Tests of the kernel's argument blocks: Rust, the facts and the C headers agree.
//!
//! * `facts/*.tsv` is what the interface is. [`abi_json`] makes these tables from the `abi.json` of
//!   the facts folder.
//! * [`kernel`] says what each block and record of Rust is called there and in the C headers.
//! * [`named_values`] lists the flag words and open enumerations with their prefixes.
//! * [`exceptions`] lists every difference that is meant, with its reason.

pub mod abi_json;
pub mod exceptions;
pub mod kernel;
pub mod named_values;
pub mod table;

use std::path::{Path, PathBuf};

/// The folder of the committed tables.
pub fn facts_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("facts")
}

/// The committed tables.
pub fn facts() -> table::Tables {
    table::Tables::read(&facts_folder())
}
