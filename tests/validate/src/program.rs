//! The program, from its arguments to its exit status.

use alloc::format;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::Platform;

use crate::arguments::{self, Command, HELP};
use crate::failure::{ExitStatus, Failure};
use crate::info;
use crate::output::console::{Console, complain, print};
use crate::validation::validate;

/// Runs the program. `real` is the machine it runs on, whether or not that has
/// a driver.
pub fn run<P: Platform>(arguments: &[&[u8]], real: P, console: &mut dyn Console) -> ExitStatus {
    match obey(arguments, real, console) {
        Ok(status) => status,
        // Whoever reads has seen enough, and knows. The output is not whole.
        Err(Failure::Output(Errno::EPIPE)) => ExitStatus::FAILED,
        Err(failure) => {
            complain(console, &failure);
            failure.exit_status()
        }
    }
}

/// What is shown goes out when all of it is known, so it is whole or absent; a
/// validation tells of each stage when it is over.
fn obey<P: Platform>(
    arguments: &[&[u8]],
    real: P,
    console: &mut dyn Console,
) -> Result<ExitStatus, Failure> {
    let text = match arguments::parse(arguments).map_err(Failure::Misuse)? {
        Command::Validate(wanted) => return validate(&wanted, real, console),
        Command::Help => HELP.into(),
        Command::Version => format!("kfd-validate {}\n", env!("CARGO_PKG_VERSION")),
        Command::Info(wanted) => info::show(&wanted, real)?,
    };
    print(console, text.as_bytes()).map_err(Failure::Output)?;
    Ok(ExitStatus::DONE)
}
