//! The file systems without which there is no topology and no device.

use core::ffi::CStr;

use hsakmt_core::errno::Errno;

use super::{Error, System};

/// File systems and their folders.
const TABLE: [(&CStr, &CStr); 3] =
    [(c"proc", c"/proc"), (c"sysfs", c"/sys"), (c"devtmpfs", c"/dev")];

/// Mounts `/proc`, `/sys` and `/dev`; what is mounted already is left alone
/// (a kernel may mount devtmpfs itself, CONFIG_DEVTMPFS_MOUNT).
///
/// # Errors
/// The mkdir or mount that failed for any other reason.
pub fn mount_all(system: &impl System) -> Result<(), Error> {
    for (file_system, folder) in TABLE {
        match system.make_folder(folder) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(Error::of("mkdir", folder)(errno)),
        }
        match system.mount(file_system, folder) {
            Ok(()) | Err(Errno::EBUSY) => {}
            Err(errno) => return Err(Error::of("mount", folder)(errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    #[test]
    fn what_is_there_already_is_left_alone() {
        let machine = Script::default();
        machine.fail("mkdir /dev", Errno::EEXIST);
        machine.fail("mount devtmpfs /dev", Errno::EBUSY);
        assert_eq!(mount_all(&machine), Ok(()));
        assert_eq!(machine.calls().len(), 6);
    }

    #[test]
    fn a_refused_mount_is_named() {
        let machine = Script::default();
        machine.fail("mount sysfs /sys", Errno::EPERM);
        assert_eq!(
            mount_all(&machine),
            Err(Error::Call { call: "mount", object: c"/sys".into(), errno: Errno::EPERM })
        );
        let machine = Script::default();
        machine.fail("mkdir /proc", Errno::EROFS);
        assert_eq!(
            mount_all(&machine),
            Err(Error::Call { call: "mkdir", object: c"/proc".into(), errno: Errno::EROFS })
        );
    }
}
