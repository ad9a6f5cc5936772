//! Reads a topology folder with the system's own files and prints what it found;
//! for counting instructions and system calls:
//!
//! `perf stat -e instructions:u target/release/examples/walk FOLDER [TIMES]`

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;

use hsakmt_core::topology::{Settings, Unopened, read_snapshot};
use hsakmt_linux_shim::Linux;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().ok_or("usage: walk FOLDER [TIMES]")?;
    let times: u32 = match arguments.next() {
        Some(times) => times.to_string_lossy().parse()?,
        None => 1,
    };
    let root = CString::new(folder.into_vec())?;
    let settings = Settings { root: &root, ..Settings::KERNEL };
    let os = Linux;
    for _ in 0..times {
        let snapshot = read_snapshot(&os, &settings, &mut Unopened)?;
        let nodes = snapshot.nodes();
        println!(
            "{} nodes, {} caches, {} links",
            nodes.len(),
            nodes.iter().map(|node| node.caches.len()).sum::<usize>(),
            nodes.iter().map(|node| node.links.len()).sum::<usize>(),
        );
    }
    Ok(())
}
