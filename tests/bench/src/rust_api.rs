//! The library's Rust functions over a machine whose topology is a folder.
//!
//! # Safety
//! No other function of a program has the name that is exported here.
#![allow(unsafe_code, reason = "a function with a name of its own")]

use std::path::Path;

use hsakmt_core::context::Options;
use hsakmt_core::error::Error;
use hsakmt_core::process::Process;
use kfd_sim::Profile;

use crate::folder::FolderMachine;

/// Opens the library on the machine of `profile` with its topology in `folder`,
/// acquires it, and looks at every node with its banks, caches and links.
/// Returns how many nodes, banks, caches and links there were.
///
/// # Panics
/// When a function fails.
#[must_use]
pub fn open_and_query_everything(folder: &Path, profile: &Profile) -> [usize; 4] {
    let process = Process::new(FolderMachine::new(folder, profile));
    counted(&process).expect("a machine")
}

/// What is counted, under a name that an instruction counter can be given.
// SAFETY: see the head of the file.
#[unsafe(export_name = "hsakmt_bench_counted_rust")]
#[inline(never)]
fn counted(process: &Process<FolderMachine>) -> Result<[usize; 4], Error> {
    process.open_primary(|| Ok(Options::default()))?;
    let guard = process.primary()?;
    guard.acquire_machine()?;
    guard.machine(|machine| {
        let mut counts = [0; 4];
        for node in machine.snapshot().nodes() {
            let banks = node.memory_banks(&machine.apertures_of(node));
            let of_node = [
                1,
                banks.filter(|bank| std::hint::black_box(bank.flags) != u32::MAX).count(),
                std::hint::black_box(&node.caches).len(),
                std::hint::black_box(&node.links).len(),
            ];
            for (count, more) in counts.iter_mut().zip(of_node) {
                *count += more;
            }
        }
        Ok(counts)
    })
}
