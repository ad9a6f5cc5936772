//! Memory shown at several addresses, and looked at without a signal: for what
//! stands in for a device.
//!
//! # Safety
//!
//! As in the implementation of the core's traits, what is mapped where and who may
//! change it is the caller's contract. A range that is not there is an error here
//! and not a signal.
#![allow(unsafe_code)]

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{Mapping, Os, Placement, Protection};

use crate::Linux;
use crate::syscall::{memory, process};

impl Linux {
    /// Shows the memory of a shared anonymous mapping, from the address `source` on,
    /// at another place too (mremap(2) with an old length of 0). Returns the place.
    ///
    /// # Errors
    /// Those of mmap(2) and mremap(2); EFAULT where nothing shared is mapped.
    pub fn map_again(&self, source: usize, mapping: Mapping) -> Result<usize, Errno> {
        let Mapping { placement, length, protection, .. } = mapping;
        let (place, made) = match placement {
            Placement::Replace(place) => (place, false),
            _ => {
                let empty = Protection::empty();
                let room = Mapping { protection: empty, reserve: false, shared: false, ..mapping };
                (self.map(room)?, true)
            }
        };
        // SAFETY: reserved just now, or replaced as the caller wants.
        let shown = unsafe { memory::mremap_again(source, length, place) };
        let shown = shown.and_then(|_| self.protect(place, length, protection));
        if shown.is_err() && made {
            let _ = self.unmap(place, length);
        }
        shown.map(|()| place)
    }

    /// Reads memory of the process.
    ///
    /// # Errors
    /// EFAULT where there is none to read.
    pub fn read_memory(&self, address: usize, into: &mut [u8]) -> Result<(), Errno> {
        let own = (into.as_mut_ptr(), into.len());
        // SAFETY: `into` is ours alone.
        unsafe { process::copy_memory(false, own, address) }
    }

    /// Writes memory of the process.
    ///
    /// # Errors
    /// EFAULT where there is none to write.
    pub fn write_memory(&self, address: usize, from: &[u8]) -> Result<(), Errno> {
        let own = (from.as_ptr().cast_mut(), from.len());
        // SAFETY: the kernel reads `from`; what is at the address is the caller's.
        unsafe { process::copy_memory(true, own, address) }
    }
}
