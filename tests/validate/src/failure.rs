//! Why a command failed, as one line and an exit status.

use alloc::ffi::CString;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Error, Object, Operation, SysfsFile};
use hsakmt_core::seam::DeviceNode;

use crate::arguments::Misuse;
use crate::output::text::Printable;
use crate::tree::file_type::FileType;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitStatus(pub u8);

impl ExitStatus {
    /// Done.
    pub const DONE: ExitStatus = ExitStatus(0);
    /// Failed.
    pub const FAILED: ExitStatus = ExitStatus(1);
    /// The arguments are wrong.
    pub const MISUSED: ExitStatus = ExitStatus(2);
    /// The machine that was asked for is not here.
    pub const NO_MACHINE: ExitStatus = ExitStatus(3);
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The arguments are wrong.
    Misuse(Misuse),
    /// The real machine cannot be opened or read.
    Real(Error),
    /// The simulated machine cannot be opened or read.
    Simulated(String, Error),
    /// The captured tree cannot be read.
    Tree(Vec<u8>, Error),
    /// The folder holds no topology, or none that can be read: the list of nodes,
    /// and what it was answered.
    NoTopology(CString, Errno),
    /// This list of nodes has none.
    NoNode(CString),
    /// What stands at this path of a captured tree is no file.
    NoFile(CString, FileType),
    /// What this program did broke rules of the simulated machine: how many, and the
    /// first.
    RulesBroken(usize, String),
    /// The output cannot be written.
    Output(Errno),
}

/// Whether the error says that there is no driver here, rather than that it
/// refuses.
#[must_use]
pub fn means_no_machine(error: &Error) -> bool {
    match (error.operation, error.object) {
        (Operation::OpenDevice, Object::Device(DeviceNode::Kfd)) => {
            matches!(error.errno, Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO))
        }
        (
            Operation::ReadFile | Operation::ListFolder,
            Object::Topology(SysfsFile::Generation | SysfsFile::System | SysfsFile::Nodes, ..),
        ) => error.errno == Some(Errno::ENOENT),
        _ => false,
    }
}

impl Failure {
    /// The status to exit with.
    #[must_use]
    pub fn exit_status(&self) -> ExitStatus {
        match self {
            Failure::Misuse(_) => ExitStatus::MISUSED,
            Failure::Real(error) if means_no_machine(error) => ExitStatus::NO_MACHINE,
            _ => ExitStatus::FAILED,
        }
    }
}

/// `error`, and what to do about it.
pub(crate) fn with_advice(f: &mut fmt::Formatter<'_>, error: &Error) -> fmt::Result {
    write!(f, "{error}")?;
    let advice = match error.advice().and_then(|advice| advice.to_str().ok()) {
        None if means_no_machine(error) => {
            "there is no KFD topology in /sys: the amdgpu driver is not loaded, or /sys is not \
             mounted"
        }
        advice => advice.unwrap_or_default(),
    };
    if advice.is_empty() { Ok(()) } else { write!(f, ": {advice}") }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Misuse(misuse) => write!(f, "{misuse} (see --help)"),
            Failure::Real(error) => {
                with_advice(f, error)?;
                let devices =
                    matches!(error.operation, Operation::OpenDevice | Operation::Execute(_));
                if devices && !means_no_machine(error) {
                    f.write_str("; --discover shows what needs no device")?;
                }
                Ok(())
            }
            Failure::Simulated(profile, error) => {
                write!(f, "simulated machine {}: ", Printable(profile.as_bytes()))?;
                with_advice(f, error)
            }
            Failure::Tree(folder, error) => {
                write!(f, "captured tree {}: {error}", Printable(folder))?;
                match (error.operation, error.object) {
                    (Operation::ParseFile, Object::Topology(SysfsFile::Nodes, ..)) => {
                        f.write_str(": more numbered entries than a topology has nodes")
                    }
                    _ => Ok(()),
                }
            }
            Failure::NoTopology(nodes, errno) => {
                write!(f, "list {}: {errno}", Printable(nodes.to_bytes()))?;
                f.write_str(match *errno {
                    Errno::ENOENT => ": no topology is in this folder",
                    Errno::EACCES => ": this user may not read it",
                    Errno::ENOTDIR => ": this is not a folder",
                    _ => "",
                })
            }
            Failure::NoNode(nodes) => {
                write!(f, "list {}: no node is in this folder", Printable(nodes.to_bytes()))
            }
            Failure::NoFile(path, found) => {
                write!(f, "read {}: this is {found}", Printable(path.to_bytes()))
            }
            Failure::RulesBroken(number, first) => {
                write!(f, "{number} rules of the simulated machine were broken: {first}")
            }
            Failure::Output(errno) => write!(f, "write standard output: {errno}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use hsakmt_core::error::Status;

    use super::*;

    fn kfd(errno: Errno) -> Error {
        let status = Status::KERNEL_IO_CHANNEL_NOT_OPENED;
        Error::system(status, Operation::OpenDevice, errno, Object::Device(DeviceNode::Kfd))
    }

    #[test]
    fn a_missing_driver_and_one_that_refuses_differ() {
        for (errno, status) in [
            (Errno::ENOENT, ExitStatus::NO_MACHINE),
            (Errno::ENODEV, ExitStatus::NO_MACHINE),
            (Errno::ENXIO, ExitStatus::NO_MACHINE),
            (Errno::EACCES, ExitStatus::FAILED),
            (Errno::EINVAL, ExitStatus::FAILED),
            (Errno::EMFILE, ExitStatus::FAILED),
        ] {
            assert_eq!(Failure::Real(kfd(errno)).exit_status(), status, "{errno}");
        }
        // A file that is missing within a tree is no missing machine.
        let within = Object::Topology(SysfsFile::Bank, 0, 0);
        let error = Error::system(Status::ERROR, Operation::ReadFile, Errno::ENOENT, within);
        assert_eq!(Failure::Real(error).exit_status(), ExitStatus::FAILED);
    }

    #[test]
    fn the_line_has_operation_path_errno_and_advice() {
        assert_eq!(
            Failure::Real(kfd(Errno::EACCES)).to_string(),
            "open /dev/kfd: EACCES (KERNEL_IO_CHANNEL_NOT_OPENED): the user may not open \
             the device: join the group that owns it (render); --discover shows what needs no device"
        );
        let nodes = Object::Topology(SysfsFile::Nodes, 0, 0);
        let error = Error::system(Status::ERROR, Operation::ListFolder, Errno::ENOENT, nodes);
        assert_eq!(
            Failure::Real(error).to_string(),
            "list topology/nodes: ENOENT (ERROR): there is no KFD topology in /sys: the \
             amdgpu driver is not loaded, or /sys is not mounted"
        );
        for (failure, line) in [
            (
                Failure::NoTopology(c"/a\n/nodes".into(), Errno::ENOENT),
                "list /a\\n/nodes: ENOENT: no topology is in this folder",
            ),
            (
                Failure::NoTopology(c"/a/nodes".into(), Errno::EACCES),
                "list /a/nodes: EACCES: this user may not read it",
            ),
            (Failure::NoTopology(c"/a/nodes".into(), Errno::EIO), "list /a/nodes: EIO"),
            (Failure::NoNode(c"/a/nodes".into()), "list /a/nodes: no node is in this folder"),
            (
                Failure::NoFile(c"/a/nodes/0/name".into(), FileType::PIPE),
                "read /a/nodes/0/name: this is a named pipe",
            ),
            (
                Failure::Tree(
                    b"/a".to_vec(),
                    Error::library(Status::ERROR, Operation::ParseFile, nodes),
                ),
                "captured tree /a: parse topology/nodes (ERROR): more numbered entries than a \
                 topology has nodes",
            ),
        ] {
            assert_eq!(failure.to_string(), line);
        }
    }
}
