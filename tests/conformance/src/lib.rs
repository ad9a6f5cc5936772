//! A process of the simulated machine with the library in it, for the
//! conformance tests.
//!
//! The address space, the clocks and the threads are those of the running
//! Linux; files, devices, forks and the driver are simulated.

mod altered;
pub mod disturbed;

use std::sync::Arc;

pub use altered::{Alteration, Altered};
use hsakmt_core::context::Options;
use hsakmt_core::error::Error;
use hsakmt_core::process::{ContextHandle, Guard, Opening, Process};
use hsakmt_core::seam::Platform;
use hsakmt_linux_shim::Linux;
use kfd_sim::{Kernel, KernelProfile, Leftovers, Machine, Profile, SimPlatform};

/// A simulated process on Linux's memory, clocks and threads.
pub type Simulated = SimPlatform<Linux>;

/// A machine of this profile.
///
/// # Panics
/// When there is no such profile.
#[must_use]
pub fn machine(profile: &str) -> Machine {
    let profile = Profile::parse(profile).unwrap_or_else(|error| panic!("{profile}: {error}"));
    silent(&profile)
}

/// The same under another kernel.
///
/// # Panics
/// When there is no such profile.
#[must_use]
pub fn machine_under(profile: &str, kernel: Kernel) -> Machine {
    let profile = Profile::parse_on(KernelProfile::debian(kernel), profile)
        .unwrap_or_else(|error| panic!("{profile}: {error}"));
    silent(&profile)
}

/// A machine that keeps no log, which would grow with every file that is read. All
/// that maps a buffer sees the same contents.
fn silent(profile: &Profile) -> Machine {
    let machine = Machine::new(profile);
    machine.keep_log(false);
    machine.set_host_memory(Arc::new(Linux));
    machine
}

/// A new process on the machine, with the library unopened.
#[must_use]
pub fn process(machine: &Machine) -> Process<Simulated> {
    Process::new(machine.spawn(Linux))
}

/// Opens the primary context with default options.
///
/// # Errors
/// As [`Process::open_primary`].
pub fn open<P: Platform>(process: &Process<P>) -> Result<Opening, Error> {
    process.open_primary(|| Ok(Options::default()))
}

/// Which context the suite runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The primary context.
    Primary,
    /// A secondary context beside it.
    Secondary,
}

impl Mode {
    /// Both.
    pub const ALL: [Mode; 2] = [Mode::Primary, Mode::Secondary];

    /// Opens what the mode needs and returns the context's handle.
    ///
    /// # Errors
    /// As the opens.
    pub fn open<P: Platform>(self, process: &Process<P>) -> Result<ContextHandle, Error> {
        open(process)?;
        match self {
            Mode::Primary => Ok(ContextHandle::PRIMARY),
            Mode::Secondary => process.open_secondary(Options::default()).inspect_err(|_| {
                let _ = process.close_primary();
            }),
        }
    }

    /// Closes what [`Mode::open`] opened.
    ///
    /// # Errors
    /// As the closes.
    pub fn close<P: Platform>(
        self,
        process: &Process<P>,
        handle: ContextHandle,
    ) -> Result<(), Error> {
        if self == Mode::Secondary {
            process.close_secondary(handle)?;
        }
        process.close_primary()
    }
}

/// Open, acquire, query every node, release, close: one whole life.
///
/// # Errors
/// The first failure; everything that was opened is closed again.
pub fn life<P: Platform>(process: &Process<P>, mode: Mode) -> Result<(), Error> {
    let handle = mode.open(process)?;
    let result = process.enter(handle).and_then(|guard| use_machine(&guard));
    mode.close(process, handle)?;
    result
}

fn use_machine<P: Platform>(guard: &Guard<'_, P>) -> Result<(), Error> {
    guard.acquire_machine()?;
    let nodes = guard.machine(|machine| Ok(machine.snapshot().nodes().len()))?;
    for node in 0..nodes as u32 {
        guard.clock_counters(node)?;
    }
    guard.release_machine()
}

/// What the machine's processes hold, for comparing one moment with another.
#[must_use]
pub fn held(machine: &Machine) -> Leftovers {
    machine.leftovers()
}
