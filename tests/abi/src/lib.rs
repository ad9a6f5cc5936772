//! Tests of the C ABI: the layouts of Rust, the headers of C, and the facts agree.
//!
//! * `facts/*.tsv` is what the ABI is, for each generation. [`abi_json`] makes these tables from the
//!   `abi.json` of the facts folder; what it skips is in [`left_out`], with a reason.
//! * The build script turns each row into an expression over the Rust types ([`rust`]). A record,
//!   field, enumerator or constant that Rust lacks does not compile.
//! * [`c`] turns the tables and the Rust layouts into C, and runs the compilers.

pub mod abi_json;
pub mod c;
pub mod left_out;
pub mod rust;
pub mod rust_names;
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
