//! The program, from its arguments to its exit status.

use alloc::format;
use alloc::string::String;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::Platform;

use crate::arguments::{self, Command, HELP};
use crate::failure::{ExitStatus, Failure};
use crate::info;
use crate::output::console::{Console, complain, print};

/// Runs the program. `real` is the machine it runs on, whether or not that has
/// a driver.
pub fn run<P: Platform>(arguments: &[&[u8]], real: P, console: &mut dyn Console) -> ExitStatus {
    let text = match output(arguments, real) {
        Ok(text) => text,
        Err(failure) => return report(&failure, console),
    };
    match print(console, text.as_bytes()) {
        Ok(()) => ExitStatus::DONE,
        // Whoever reads has seen enough, and knows. The output is not whole.
        Err(Errno::EPIPE) => ExitStatus::FAILED,
        Err(errno) => report(&Failure::Output(errno), console),
    }
}

fn report(failure: &Failure, console: &mut dyn Console) -> ExitStatus {
    complain(console, failure);
    failure.exit_status()
}

/// What goes to standard output. Nothing is written before all of it is known,
/// so output is whole or absent.
fn output<P: Platform>(arguments: &[&[u8]], real: P) -> Result<String, Failure> {
    match arguments::parse(arguments).map_err(Failure::Misuse)? {
        Command::Help => Ok(HELP.into()),
        Command::Version => Ok(format!("kfd-validate {}\n", env!("CARGO_PKG_VERSION"))),
        Command::Info(wanted) => info::show(&wanted, real),
    }
}
