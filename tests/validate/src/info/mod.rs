//! `kfd-validate info`: shows a machine.

pub mod as_json;
pub mod as_text;
pub mod description;
pub mod folding;
mod links;
#[cfg(test)]
mod sample;

use alloc::string::String;

use hsakmt_core::context::{Options, Version};
use hsakmt_core::error::Error;
use hsakmt_core::process::Process;
use hsakmt_core::seam::Platform;
use hsakmt_core::topology::{Settings, Unopened, read_snapshot};

use crate::arguments::{Info, Source};
use crate::failure::{Failure, means_no_machine};
use crate::machine::{DEFAULT_PROFILE, Machine};
use crate::simulation::Simulation;
use crate::tree;
use description::Description;

/// Shows the machine that is wanted.
///
/// # Errors
/// Any [`Failure`] but those of output.
pub fn show<P: Platform>(wanted: &Info, real: P) -> Result<String, Failure> {
    let (machine, description) = match &wanted.source {
        Source::Real => self::real(&real, wanted.discover).map_err(Failure::Real)?,
        Source::Simulated(profile) => simulated(profile, wanted.discover, None)?,
        Source::Tree(folder) => {
            let (machine, snapshot) = tree::read(real.os(), folder)?;
            (machine, Description::from(&snapshot))
        }
        Source::Unsaid => match self::real(&real, wanted.discover) {
            Err(error) if means_no_machine(&error) => {
                let missing = if wanted.discover { "KFD topology" } else { "/dev/kfd" };
                simulated(DEFAULT_PROFILE, wanted.discover, Some(missing))?
            }
            answer => answer.map_err(Failure::Real)?,
        },
    };
    let mut out = String::new();
    if wanted.json {
        as_json::write(&mut out, &machine, &description);
    } else {
        as_text::write(&mut out, &machine, &description);
    }
    Ok(out)
}

fn real<P: Platform>(platform: P, discover: bool) -> Result<(Machine, Description), Error> {
    let (driver, description) = look(platform, discover)?;
    Ok((Machine::Real(driver), description))
}

fn simulated(
    profile: &str,
    discover: bool,
    instead_of: Option<&'static str>,
) -> Result<(Machine, Description), Failure> {
    let simulation = Simulation::new(profile)?;
    let (driver, description) = look(simulation.platform(), discover)
        .map_err(|error| Failure::Simulated(profile.into(), error))?;
    Ok((Machine::Simulated { profile: profile.into(), driver, instead_of }, description))
}

/// Looks at a machine: through its driver, or at its topology alone.
fn look<P: Platform>(platform: P, discover: bool) -> Result<(Option<Version>, Description), Error> {
    if discover {
        let snapshot = read_snapshot(platform.os(), &Settings::KERNEL, &mut Unopened)?;
        return Ok((None, Description::from(&snapshot)));
    }
    let process = Process::new(platform);
    process.open_primary(|| Ok(Options::default()))?;
    let looked = process.primary().and_then(|context| {
        context.acquire_machine()?;
        let description = context.machine(|machine| Ok(Description::from(machine)))?;
        Ok((Some(context.version()), description))
    });
    // What the library made in the driver goes with the context, not with the process.
    process.close_primary()?;
    looked
}
