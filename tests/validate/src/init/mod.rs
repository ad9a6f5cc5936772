//! The program as the first process of a machine.
//!
//! An initial RAM disk may hold the program as `/init` and nothing else but
//! kernel modules: no shell, no module loader, no service manager. Then the
//! program does their work itself, in this order:
//!
//! 1. [`mount`]: `/proc`, `/sys`, `/dev`;
//! 2. [`console`]: its output goes to the devices that the environment names;
//! 3. [`modules`]: `amdgpu` and what it depends on, from `/lib/modules`;
//! 4. it waits until `/dev/kfd` is there;
//! 5. the program's own work;
//! 6. [`programs`]: further programs of the image, one after the other;
//! 7. [`power`]: the verdict is told and the machine powers off.
//!
//! [`start`] does the first four steps, [`finish`] the last two. The kernel
//! hands words of its command line that it does not know to the first process:
//! `NAME=VALUE` in the environment, all behind a lone `--` as arguments. The
//! settings are therefore environment variables, see [`Settings`].
//!
//! Everything here is generic over [`System`], the system calls of a first
//! process, so that order, tolerance and messages are tested without a machine.

pub mod console;
pub mod linux;
pub mod modules;
pub mod mount;
pub mod power;
pub mod programs;

#[cfg(test)]
mod script;

use alloc::ffi::CString;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt;

use hsakmt_core::errno::Errno;
use programs::Program;

/// The driver's device node.
const DEVICE: &CStr = c"/dev/kfd";
/// The module that creates it.
const DRIVER: &str = "amdgpu";
/// How long to wait for the device once the driver's module is loaded, in
/// milliseconds. devtmpfs makes the node before the load returns, so nothing is
/// waited for unless `/dev` is kept by someone else.
const DEVICE_PATIENCE: u32 = 10_000;

/// The exit status that says that the machine could not be set up.
pub const NOT_SET_UP: u8 = 125;

/// The system calls that a first process needs, each as the kernel has it.
pub trait System {
    /// mkdir(2) with mode 0755.
    ///
    /// # Errors
    /// Those of the call; EEXIST where the name is taken.
    fn make_folder(&self, path: &CStr) -> Result<(), Errno>;

    /// mount(2) of a file system without a device, by its name.
    ///
    /// # Errors
    /// Those of the call; EBUSY where it is mounted already, ENODEV where the
    /// kernel does not know the file system.
    fn mount(&self, file_system: &CStr, folder: &CStr) -> Result<(), Errno>;

    /// The kernel's release as uname(2) has it, without the final zero byte.
    ///
    /// # Errors
    /// Those of the call.
    fn release(&self) -> Result<Vec<u8>, Errno>;

    /// A whole file.
    ///
    /// # Errors
    /// Those of open(2) and read(2).
    fn read(&self, path: &CStr) -> Result<Vec<u8>, Errno>;

    /// finit_module(2) of the file, with MODULE_INIT_COMPRESSED_FILE if it is
    /// `compressed`.
    ///
    /// # Errors
    /// Those of open(2) and finit_module(2): EEXIST where it is loaded already,
    /// ENOEXEC, ENOKEY, EKEYREJECTED, ENOENT (an unknown symbol), EOPNOTSUPP
    /// (the kernel decompresses nothing) and whatever the module's own start
    /// answers.
    fn load_module(&self, path: &CStr, parameters: &CStr, compressed: bool) -> Result<(), Errno>;

    /// Whether the path names anything.
    fn exists(&self, path: &CStr) -> bool;

    /// Sleeps for a millisecond.
    fn sleep_millisecond(&self);

    /// Lets the device take the place of descriptor `of`, and makes a terminal
    /// pass bytes as they are.
    ///
    /// # Errors
    /// Those of open(2) and dup3(2).
    fn redirect(&self, of: u32, device: &CStr) -> Result<(), Errno>;

    /// Runs a program in the environment, waits for it, reaps what it leaves
    /// behind, and returns its wait status (see wait(2)).
    ///
    /// # Errors
    /// Those of fork(2) and wait4(2); a program that cannot be executed ends
    /// with the exit status 127.
    fn run(&self, program: &Program, environment: &[CString]) -> Result<u32, Errno>;

    /// Writes all bytes to the device and waits until they have left it.
    ///
    /// # Errors
    /// Those of open(2) and write(2).
    fn tell(&self, device: &CStr, bytes: &[u8]) -> Result<(), Errno>;

    /// Writes a line to standard output.
    fn say(&self, message: fmt::Arguments<'_>);

    /// Writes a line to standard error.
    fn warn(&self, message: fmt::Arguments<'_>);

    /// Waits until what was written to standard output and error has left, and
    /// writes all file systems back.
    fn settle(&self);

    /// reboot(2) with LINUX_REBOOT_CMD_POWER_OFF.
    ///
    /// # Errors
    /// Those of the call, which does not return otherwise.
    fn power_off(&self) -> Errno;
}

/// What the environment says to a first process.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `init_output`: the device for standard output; the console without it.
    pub output: Option<CString>,
    /// `init_errors`: the device for standard error; that of standard output
    /// without it.
    pub errors: Option<CString>,
    /// `init_verdict`: the device that is told the exit status in decimal, as
    /// a line. Standard error has it in any case.
    pub verdict: Option<CString>,
    /// `init_run`: programs to run at the end, separated by commas, each a path
    /// and its arguments separated by blanks.
    pub programs: Vec<Program>,
    /// All other variables, for these programs.
    pub environment: Vec<CString>,
}

impl Settings {
    /// Reads the settings out of the variables of an environment.
    #[must_use]
    pub fn from_environment<'a>(variables: impl Iterator<Item = &'a [u8]>) -> Settings {
        let mut settings = Settings::default();
        for variable in variables {
            let (name, value) = match variable.iter().position(|&byte| byte == b'=') {
                Some(at) => (&variable[..at], &variable[at + 1..]),
                None => (variable, &[][..]),
            };
            let path = || CString::new(value).ok().filter(|path| !path.is_empty());
            match name {
                b"init_output" => settings.output = path(),
                b"init_errors" => settings.errors = path(),
                b"init_verdict" => settings.verdict = path(),
                b"init_run" => settings.programs = programs::parse(value),
                _ => settings.environment.extend(CString::new(variable)),
            }
        }
        settings
    }
}

/// Why the machine could not be set up.
#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// A system call failed.
    Call {
        /// The call's name.
        call: &'static str,
        /// The file, folder or device that it was for.
        object: CString,
        /// Its answer.
        errno: Errno,
    },
    /// The list of modules knows no such module.
    UnknownModule {
        /// The module's name.
        module: &'static str,
        /// The list.
        list: CString,
    },
    /// The driver is loaded, its device did not appear.
    NoDevice,
}

impl Error {
    fn of<'a>(call: &'static str, object: &'a CStr) -> impl FnOnce(Errno) -> Error + use<'a> {
        move |errno| Error::Call { call, object: CString::from(object), errno }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Call { call, object, errno } => {
                write!(f, "{call} {}: {errno}", object.to_string_lossy())
            }
            Error::UnknownModule { module, list } => {
                write!(f, "{}: no module {module}", list.to_string_lossy())
            }
            Error::NoDevice => {
                write!(f, "{DRIVER} is loaded, but {} did not appear", DEVICE.to_string_lossy())
            }
        }
    }
}

/// Sets the machine up until the driver's device is there.
///
/// # Errors
/// The first step that failed. Standard output and error may be the console
/// still.
pub fn start(system: &impl System, settings: &Settings) -> Result<(), Error> {
    mount::mount_all(system)?;
    console::redirect(system, settings)?;
    modules::load(system, DRIVER)?;
    for _ in 0..DEVICE_PATIENCE {
        if system.exists(DEVICE) {
            return Ok(());
        }
        system.sleep_millisecond();
    }
    Err(Error::NoDevice)
}

/// Runs the programs of the settings, tells the verdict and powers off: the
/// first exit status that is not 0, beginning with the program's own.
///
/// Returns the verdict only if the machine refuses to power off.
pub fn finish(system: &impl System, settings: &Settings, own: u8) -> u8 {
    let verdict = programs::run_all(system, settings, own);
    power::tell(system, settings, verdict);
    power::off(system);
    verdict
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::script::Script;
    use super::*;

    #[test]
    fn settings_come_from_the_environment() {
        let variables = [
            "HOME=/",
            "init_output=/dev/ttyS1",
            "init_errors=/dev/ttyS2",
            "init_verdict=/dev/ttyS3",
            "init_run=/a,,/b",
            "odd",
        ];
        assert_eq!(
            Settings::from_environment(variables.into_iter().map(str::as_bytes)),
            Settings {
                output: Some(c"/dev/ttyS1".into()),
                errors: Some(c"/dev/ttyS2".into()),
                verdict: Some(c"/dev/ttyS3".into()),
                programs: programs::parse(b"/a,/b"),
                environment: vec![c"HOME=/".into(), c"odd".into()],
            }
        );
        let empty = Settings::from_environment([&b"init_output="[..], b"init_run="].into_iter());
        assert_eq!(empty, Settings::default());
    }

    #[test]
    fn a_machine_is_set_up_in_order() {
        let machine = Script::with_modules("drm.ko:\namdgpu.ko: drm.ko\n");
        machine.appears_after.set(2);
        let settings = Settings { output: Some(c"/dev/ttyS1".into()), ..Settings::default() };
        assert_eq!(start(&machine, &settings), Ok(()));
        assert_eq!(
            machine.calls(),
            [
                "mkdir /proc",
                "mount proc /proc",
                "mkdir /sys",
                "mount sysfs /sys",
                "mkdir /dev",
                "mount devtmpfs /dev",
                "redirect 0 /dev/null",
                "redirect 1 /dev/ttyS1",
                "redirect 2 /dev/ttyS1",
                "load /lib/modules/6.1.0/drm.ko",
                "load /lib/modules/6.1.0/amdgpu.ko",
                "sleep",
                "sleep",
            ]
        );
    }

    #[test]
    fn waiting_for_the_device_has_an_end() {
        let machine = Script::with_modules("amdgpu.ko:\n");
        machine.appears_after.set(u32::MAX);
        assert_eq!(start(&machine, &Settings::default()), Err(Error::NoDevice));
    }

    #[test]
    fn the_verdict_is_the_first_failure() {
        let settings = Settings {
            verdict: Some(c"/dev/ttyS3".into()),
            programs: programs::parse(b"/first,/second 2,/third"),
            ..Settings::default()
        };
        let machine = Script::default();
        machine.statuses.borrow_mut().extend([0, 7 << 8, 11]);
        assert_eq!(finish(&machine, &settings, 0), 7);
        assert_eq!(
            machine.calls(),
            [
                "say /first:",
                "run /first",
                "say /first: exit status 0",
                "say /second:",
                "run /second 2",
                "say /second: exit status 7",
                "say /third:",
                "run /third",
                "say /third: signal 11",
                "settle",
                "tell /dev/ttyS3 7",
                "power off",
                "warn the machine does not power off: EPERM",
            ]
        );
        let machine = Script::default();
        assert_eq!(finish(&machine, &Settings::default(), 3), 3);
        assert_eq!(machine.calls()[..2], ["settle", "power off"]);
    }
}
