//! Makes the committed tables anew: `write-uapi-facts path/to/abi.json`.

use std::path::Path;

use hsakmt_uapi_tests::{abi_json, facts_folder};

fn main() {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: write-uapi-facts path/to/abi.json");
        std::process::exit(2);
    };
    let path = Path::new(&path);
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    abi_json::tables(&text).write(&facts_folder());
}
