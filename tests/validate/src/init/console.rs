//! Where the output of the first process goes.
//!
//! The kernel gives it the console, on which its own log appears as well. Two
//! more serial lines keep the program's output whole.

use super::{Error, Settings, System};

/// Redirects standard output and error to the devices of the settings, and
/// standard input to `/dev/null` (nobody types at the console of a test).
///
/// # Errors
/// The device that could not be opened.
pub fn redirect(system: &impl System, settings: &Settings) -> Result<(), Error> {
    let output = settings.output.as_deref();
    let errors = settings.errors.as_deref().or(output);
    for (descriptor, device) in [(0, Some(c"/dev/null")), (1, output), (2, errors)] {
        if let Some(device) = device {
            system.redirect(descriptor, device).map_err(Error::of("open", device))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;

    use super::super::script::Script;
    use super::*;

    #[test]
    fn errors_have_a_device_of_their_own_or_that_of_the_output() {
        let machine = Script::default();
        assert_eq!(redirect(&machine, &Settings::default()), Ok(()));
        assert_eq!(machine.calls(), ["redirect 0 /dev/null"]);

        let machine = Script::default();
        let settings = Settings {
            output: Some(c"/dev/ttyS1".into()),
            errors: Some(c"/dev/ttyS2".into()),
            ..Settings::default()
        };
        assert_eq!(redirect(&machine, &settings), Ok(()));
        assert_eq!(machine.calls()[1..], ["redirect 1 /dev/ttyS1", "redirect 2 /dev/ttyS2"]);
    }

    #[test]
    fn a_missing_device_is_named() {
        let machine = Script::default();
        machine.fail("redirect 1 /dev/ttyS9", Errno::ENOENT);
        let settings = Settings { output: Some(c"/dev/ttyS9".into()), ..Settings::default() };
        assert_eq!(
            redirect(&machine, &settings),
            Err(Error::Call { call: "open", object: c"/dev/ttyS9".into(), errno: Errno::ENOENT })
        );
    }
}
