//! `cargo run --release -p hsakmt-bench [-- [--check] [FOLDER...]]`
//!
//! Prints what discovery, open, acquire and queries cost on simulated machines
//! and on the captured topology folders named: system calls, files, requests,
//! and for folders the user instructions through the C functions and through
//! the Rust ones. Without a folder it takes the capture of 64 GPU partitions
//! where that is there. With `--check` it fails when instructions are over
//! budget.

#![deny(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use hsakmt_bench::cost::{Cost, file_reads, measure, simulated};
use hsakmt_bench::folder::FolderMachine;
use hsakmt_bench::{c_abi, captured, instructions, rust_api, submission, threads, tree_of};
use hsakmt_core::context::GpuSelection;
use hsakmt_linux_shim::heap::Heap;
use hsakmt_topology_tests::{ScratchFolder, captures, complete};
use kfd_sim::Profile;

/// The heap of the library's artefacts, so that the same instructions are counted.
#[global_allocator]
static HEAP: Heap = Heap;

/// User instructions of open, acquire and every query on 64 GPU partitions.
const BUDGET: u64 = 25_000_000;

/// User instructions of a packet submitted to an AQL ring.
const SUBMISSION_BUDGET: u64 = 60;

const PROFILES: [&str; 8] = [
    "cpu-only",
    "apu",
    "rx7900",
    "mi50",
    "mi210x8",
    "mi300x",
    "mi300x:cpx",
    "mi300x:cpx,kernel=6.1",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // The program starts itself with these to count a run.
    match words[..] {
        ["--counted-run", "c", folder] => return counted_run(c_abi_run, folder),
        ["--counted-run", "rust", folder] => return counted_run(rust_run, folder),
        ["--counted-run", "submission"] => {
            assert_eq!(submission::submit_packets(), submission::PACKETS);
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let check = words.contains(&"--check");
    let folders: Vec<PathBuf> =
        words.iter().filter(|word| **word != "--check").map(PathBuf::from).collect();
    println!("hsakmt-bench: counts on {} and Linux's own files", cpus());
    println!();
    heading();
    for text in PROFILES {
        let profile = Profile::parse(text).expect("a profile");
        row(text, &measure(&simulated(&profile), GpuSelection::All).expect("a machine"));
        if let Some(id) = last_gpu(&profile) {
            let one = GpuSelection::Only(vec![id]);
            row("  one of its GPUs", &measure(&simulated(&profile), one).expect("a machine"));
        }
    }
    let scratch = ScratchFolder::new();
    let named =
        if folders.is_empty() { the_capture(&scratch) } else { complete_all(&folders, &scratch) };
    let mut within = tell_submission(&scratch);
    for (name, folder) in named {
        let profile = captured(&tree_of(&folder)).expect("a topology");
        row(
            &name,
            &measure(&FolderMachine::new(&folder, &profile), GpuSelection::All).expect("a machine"),
        );
        if let Some(id) = last_gpu(&profile) {
            let machine = FolderMachine::new(&folder, &profile);
            let one = GpuSelection::Only(vec![id]);
            row("  one of its GPUs", &measure(&machine, one).expect("a machine"));
        }
        println!();
        for (way, label) in [("c", "C functions"), ("rust", "Rust functions")] {
            within &= tell_instructions(way, label, &folder, &scratch);
        }
    }
    println!();
    tell_throughput();
    if check && !within { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints what several threads get done, each with memory of its own. Times, and so
/// nothing to check.
fn tell_throughput() {
    const CYCLES: u32 = 100_000;
    for count in [1, 2, 4] {
        let seconds = threads::cycles(count, CYCLES).expect("a machine").as_secs_f64();
        let rate = f64::from(CYCLES) * f64::from(count) / seconds;
        println!("allocate, map, unmap, free by {count} threads: {rate:.0} cycles a second");
    }
}

fn cpus() -> String {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{count} CPU{}", if count == 1 { "" } else { "s" })
}

fn heading() {
    println!(
        "{:<26} {:>5} | {:>15} | {:>5} | {:>24} | {:>7} | {:>7}",
        "", "", "discover", "open", "acquire", "again", "queries"
    );
    println!(
        "{:<26} {:>5} | {:>7} {:>7} | {:>5} | {:>7} {:>7} {:>8} | {:>7} | {:>7}",
        "machine",
        "nodes",
        "calls",
        "files",
        "calls",
        "calls",
        "files",
        "requests",
        "calls",
        "calls"
    );
}

fn row(name: &str, cost: &Cost) {
    println!(
        "{:<26} {:>5} | {:>7} {:>7} | {:>5} | {:>7} {:>7} {:>8} | {:>7} | {:>7}",
        name,
        cost.nodes,
        cost.discover.system_calls(),
        file_reads(&cost.discover),
        cost.open.system_calls(),
        cost.acquire.system_calls(),
        file_reads(&cost.acquire),
        cost.acquire.ioctls(),
        cost.acquire_again.system_calls(),
        cost.queries.system_calls(),
    );
}

/// The GPU that is found last.
fn last_gpu(profile: &Profile) -> Option<u32> {
    let ids: Vec<u32> = profile.topology.gpus().map(|(_, gpu)| gpu.id).collect();
    if ids.len() > 1 { ids.last().copied() } else { None }
}

/// The capture of 64 partitions, unpacked and completed.
fn the_capture(scratch: &ScratchFolder) -> Vec<(String, PathBuf)> {
    const NAME: &str = "mi300x-cpx-64gpu";
    let Some((found, _)) = captures(NAME) else { return Vec::new() };
    let unpack = |mut capture: hsakmt_topology_tests::Capture| {
        complete(&mut capture.tree);
        let folder = scratch.path().join(NAME).join(capture.name);
        capture.tree.write_to(&folder);
        (NAME.to_owned(), folder.join("topology"))
    };
    found.into_iter().map(unpack).collect()
}

/// Copies of the folders, with what they lack.
fn complete_all(folders: &[PathBuf], scratch: &ScratchFolder) -> Vec<(String, PathBuf)> {
    let copy = |(number, folder): (usize, &PathBuf)| {
        let into = scratch.path().join(number.to_string());
        tree_of(folder).write_to(&into);
        let name =
            folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        (name, into.join("topology"))
    };
    folders.iter().enumerate().map(copy).collect()
}

/// Prints what a submitted packet takes; whether it is within the budget, or unknown.
fn tell_submission(scratch: &ScratchFolder) -> bool {
    let Some(count) = counted(&["--counted-run", "submission"], scratch) else { return true };
    let Ok(count) = count else { return false };
    let each = count.div_ceil(submission::PACKETS as u64);
    println!("one AQL packet submitted: {each} user instructions");
    if each > SUBMISSION_BUDGET {
        println!("not ok - more than {SUBMISSION_BUDGET}");
    }
    each <= SUBMISSION_BUDGET
}

/// Prints a count; whether it is within the budget, or unknown.
fn tell_instructions(way: &str, label: &str, folder: &Path, scratch: &ScratchFolder) -> bool {
    let folder = folder.to_str().expect("a path in UTF-8");
    let Some(count) = counted(&["--counted-run", way, folder], scratch) else { return true };
    let Ok(count) = count else { return false };
    println!("open, acquire and every query through the {label}: {count} user instructions");
    if count > BUDGET {
        println!("not ok - more than {BUDGET}");
    }
    count <= BUDGET
}

/// Counts a run of this program. `None`, and says so, where nothing can count.
fn counted(arguments: &[&str], scratch: &ScratchFolder) -> Option<Result<u64, ()>> {
    let program = env::current_exe().expect("this program's file");
    match instructions::count(&program, arguments, scratch.path()) {
        Ok(count) => Some(Ok(count)),
        Err(instructions::NotCounted::NoValgrind(error)) => {
            println!("skipped: no instructions counted, valgrind: {error}");
            None
        }
        Err(instructions::NotCounted::Failed(text)) => {
            println!("not ok - the counted run failed:\n{text}");
            Some(Err(()))
        }
    }
}

fn counted_run(run: fn(&Path, &Profile) -> [usize; 4], folder: &str) -> ExitCode {
    let folder = fs::canonicalize(folder).expect("a folder");
    let profile = captured(&tree_of(&folder)).expect("a topology");
    let [nodes, banks, caches, links] = run(&folder, &profile);
    println!("{nodes} nodes, {banks} banks, {caches} caches, {links} links");
    ExitCode::SUCCESS
}

fn c_abi_run(folder: &Path, profile: &Profile) -> [usize; 4] {
    c_abi::open_and_query_everything(folder, profile)
}

fn rust_run(folder: &Path, profile: &Profile) -> [usize; 4] {
    rust_api::open_and_query_everything(folder, profile)
}
