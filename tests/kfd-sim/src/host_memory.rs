//! The host's memory behind the memory of devices.

use core::fmt::Debug;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::Mapping;

/// A host that can show one piece of memory at several addresses, and look at it.
/// With one, all CPU mappings of a buffer and all accesses of GPUs have the same
/// contents: [`Machine::set_host_memory`](crate::Machine::set_host_memory). It is
/// the memory of one address space, in which all processes of the machine then are.
pub trait HostMemory: Debug + Send + Sync {
    /// Makes memory that can be shown; of zeros, and none used yet. Returns an address at
    /// which it can be read and written.
    ///
    /// # Errors
    /// Those of mmap(2).
    fn make(&self, length: usize) -> Result<usize, Errno>;

    /// Shows memory that [`HostMemory::make`] made, from `source` on, elsewhere too.
    /// Returns where.
    ///
    /// # Errors
    /// Those of mmap(2).
    fn show(&self, source: usize, mapping: Mapping) -> Result<usize, Errno>;

    /// Ends what [`HostMemory::make`] made; where it is shown it stays.
    fn discard(&self, address: usize, length: usize);

    /// Reads memory, any that a process has.
    ///
    /// # Errors
    /// EFAULT.
    fn read(&self, address: usize, into: &mut [u8]) -> Result<(), Errno>;

    /// Writes memory, any that a process has.
    ///
    /// # Errors
    /// EFAULT.
    fn write(&self, address: usize, from: &[u8]) -> Result<(), Errno>;
}

#[cfg(feature = "linux")]
mod linux {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Mapping, Os, Placement, Protection};
    use hsakmt_linux_shim::Linux;

    use super::HostMemory;

    impl HostMemory for Linux {
        fn make(&self, length: usize) -> Result<usize, Errno> {
            Os::map(
                self,
                Mapping {
                    placement: Placement::Anywhere,
                    length,
                    protection: Protection::READ | Protection::WRITE,
                    reserve: false,
                    shared: true,
                },
            )
        }

        fn show(&self, source: usize, mapping: Mapping) -> Result<usize, Errno> {
            self.map_again(source, mapping)
        }

        fn discard(&self, address: usize, length: usize) {
            // It is ours, and of whole pages.
            let _ = self.unmap(address, length);
        }

        fn read(&self, address: usize, into: &mut [u8]) -> Result<(), Errno> {
            self.read_memory(address, into)
        }

        fn write(&self, address: usize, from: &[u8]) -> Result<(), Errno> {
            self.write_memory(address, from)
        }
    }
}
