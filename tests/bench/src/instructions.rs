//! How many instructions a run takes.
//!
//! A run is this program again, started by valgrind's callgrind, which counts
//! while a function with a given name runs. The simulated driver is left out:
//! its functions switch the counting off and on again.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Between the functions whose entry and exit switch the counting on or off.
const SWITCHES: [&str; 3] =
    ["hsakmt_bench_counted_*", "hsakmt_bench_outside_open", "hsakmt_bench_outside_execute"];

/// Why nothing was counted.
#[derive(Debug)]
pub enum NotCounted {
    /// There is no valgrind, or it cannot be started.
    NoValgrind(io::Error),
    /// The run failed; what it said.
    Failed(String),
}

/// Starts `program` with `arguments` and counts the user instructions of its
/// counted part.
///
/// # Errors
/// See [`NotCounted`].
pub fn count(program: &Path, arguments: &[&str], scratch: &Path) -> Result<u64, NotCounted> {
    let out = scratch.join("callgrind.out");
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--collect-atstart=no"]);
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.args(SWITCHES.iter().map(|name| format!("--toggle-collect={name}")));
    let run = command.arg(program).args(arguments).output().map_err(NotCounted::NoValgrind)?;
    let failed = || NotCounted::Failed(String::from_utf8_lossy(&run.stderr).into_owned());
    if !run.status.success() {
        return Err(failed());
    }
    let text = fs::read_to_string(&out).map_err(|_| failed())?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    total.and_then(|total| total.trim().parse().ok()).ok_or_else(failed)
}
