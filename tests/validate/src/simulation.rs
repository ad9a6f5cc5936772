//! The simulated machine, whole or with something broken.

use alloc::string::ToString;
use alloc::sync::Arc;

use hsakmt_linux_shim::Linux;
use kfd_sim::{Machine, Profile, SimPlatform};

use crate::arguments::Misuse;
use crate::failure::Failure;

/// A simulated machine with contents in its memory.
#[derive(Debug)]
pub struct Simulation {
    machine: Machine,
}

impl Simulation {
    /// The machine of a profile's text.
    ///
    /// # Errors
    /// [`Misuse::UnknownProfile`].
    pub fn new(text: &str) -> Result<Simulation, Failure> {
        let profile = Profile::parse(text).map_err(|error| {
            Failure::Misuse(Misuse::UnknownProfile(text.into(), error.to_string()))
        })?;
        let machine = Machine::new(&profile);
        machine.keep_log(false);
        machine.set_host_memory(Arc::new(Linux));
        Ok(Simulation { machine })
    }

    /// A process of the machine, in the memory of this one.
    pub fn platform(&self) -> SimPlatform<Linux> {
        self.machine.spawn(Linux)
    }

    /// The machine itself.
    #[must_use]
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }
}
