//! The kernel's copy of a block, and the caller's arrays behind its pointers.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{Array, Call};
use hsakmt_core::uapi::ArraySlot;

/// The kernel's copy of a block. Offsets are those of `linux/kfd_ioctl.h`,
/// `drm.h` and `amdgpu_drm.h`, written down where they are used and not taken
/// from the library's blocks, so that a mistake in those shows.
pub(crate) struct Arguments(pub Vec<u8>);

impl Arguments {
    fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        if let Some(found) = self.0.get(at..at + N) {
            bytes.copy_from_slice(found);
        }
        bytes
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.get(at))
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.get(at))
    }

    pub(crate) fn put_u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_ne_bytes());
    }

    pub(crate) fn put_u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_ne_bytes());
    }

    /// So many bytes; zeros beyond the end.
    pub(crate) fn bytes(&self, at: usize, length: usize) -> Vec<u8> {
        (at..at + length).map(|at| self.0.get(at).copied().unwrap_or(0)).collect()
    }

    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.0.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}

/// The caller's memory behind the pointers of a block.
pub(crate) struct Arrays<'r, 'a> {
    slots: &'static [ArraySlot],
    arrays: &'r mut [Array<'a>],
    /// Accesses beyond an array, for the list of violations.
    pub beyond: Vec<String>,
}

impl<'r, 'a> Arrays<'r, 'a> {
    /// A call's block and its arrays.
    pub(crate) fn split(call: &'r mut Call<'_, 'a>) -> (&'r mut [u8], Arrays<'r, 'a>) {
        let arrays = Arrays { slots: call.slots, arrays: &mut *call.arrays, beyond: Vec::new() };
        (&mut *call.block, arrays)
    }

    fn at(&mut self, pointer_at: usize) -> Option<&mut Array<'a>> {
        let index = self.slots.iter().position(|slot| slot.pointer_at == pointer_at)?;
        self.arrays.get_mut(index)
    }

    /// Whether the pointer at this offset of the block is not null.
    pub(crate) fn is_present(&mut self, pointer_at: usize) -> bool {
        !matches!(self.at(pointer_at), None | Some(Array::Absent))
    }

    /// copy_from_user of this many bytes: EFAULT for a null pointer, and for an
    /// array that is too short, where the kernel would read beyond it.
    pub(crate) fn read(&mut self, pointer_at: usize, length: usize) -> Result<Vec<u8>, Errno> {
        let found = match self.at(pointer_at) {
            None | Some(Array::Absent) => return Err(Errno::EFAULT),
            Some(array) => array.bytes(),
        };
        match found.get(..length) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => {
                let there = found.len();
                self.beyond.push(format!("{length} bytes read from an array of {there}"));
                Err(Errno::EFAULT)
            }
        }
    }

    /// copy_to_user: EFAULT for a null pointer, and for an array that is too
    /// short, where the kernel would write beyond it.
    pub(crate) fn write(
        &mut self,
        pointer_at: usize,
        at: usize,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        if bytes.is_empty() {
            return Ok(());
        }
        let place = self.at(pointer_at).and_then(Array::bytes_mut).ok_or(Errno::EFAULT)?;
        let length = place.len();
        let end = at + bytes.len();
        match place.get_mut(at..end) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Ok(())
            }
            None => {
                self.beyond.push(format!("{end} bytes written to an array of {length}"));
                Err(Errno::EFAULT)
            }
        }
    }
}
