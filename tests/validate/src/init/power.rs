//! The end: the verdict is told and the machine powers off.

use super::{Settings, System};

/// Tells the verdict to the device of the settings, once all output is out: a
/// verdict that arrived says that nothing before it is missing.
pub fn tell(system: &impl System, settings: &Settings, verdict: u8) {
    system.settle();
    if let Some(device) = &settings.verdict {
        let line = alloc::format!("{verdict}\n");
        if let Err(errno) = system.tell(device, line.as_bytes()) {
            system.warn(format_args!("{}: {errno}", device.to_string_lossy()));
        }
    }
}

/// Powers the machine off; returns if it refuses. A first process that ended
/// then makes the kernel panic, which cannot be taken for success.
pub fn off(system: &impl System) {
    let errno = system.power_off();
    system.warn(format_args!("the machine does not power off: {errno}"));
}
