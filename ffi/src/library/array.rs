//! Arrays that callers pass in.
//!
//! # Safety
//! The caller's array is read through `caller_memory`, once, so that what was
//! checked is what is used.
#![allow(unsafe_code)]

use alloc::vec::Vec;

use hsakmt_core::error::Error;
use hsakmt_core::fallible::try_extend;
use zerocopy::FromZeros;

use crate::generation::caller_memory;

/// A copy of an array of the caller; without an allocation up to `SHORT` entries.
pub(super) struct CallerArray<T, const SHORT: usize> {
    short: [T; SHORT],
    long: Vec<T>,
    length: usize,
}

/// A list of nodes; as many as a process can have GPUs (`MAX_GPU_INSTANCE`, kfd_priv.h).
pub(super) type NodeList = CallerArray<u32, 64>;

impl<T: Copy + FromZeros, const SHORT: usize> CallerArray<T, SHORT> {
    /// Copies `length` entries.
    ///
    /// # Errors
    /// INVALID_PARAMETER where `source` is NULL; NO_MEMORY.
    ///
    /// # Safety
    /// `source` is NULL or an array of `length` entries.
    pub(super) unsafe fn read(source: *const T, length: usize) -> Result<Self, Error> {
        let mut copy = CallerArray { short: [T::new_zeroed(); SHORT], long: Vec::new(), length };
        if !source.is_null() && length > SHORT {
            try_extend(&mut copy.long, core::iter::repeat_n(T::new_zeroed(), length))?;
        }
        // SAFETY: the caller's promise; the slice is not longer than `length`.
        unsafe { caller_memory::read_array(source, copy.entries_mut()) }?;
        Ok(copy)
    }

    pub(super) fn entries(&self) -> &[T] {
        if self.length > SHORT {
            return &self.long;
        }
        self.short.get(..self.length).unwrap_or_default()
    }

    pub(super) fn entries_mut(&mut self) -> &mut [T] {
        if self.length > SHORT {
            return &mut self.long;
        }
        self.short.get_mut(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use hsakmt_core::error::Status;

    use super::*;

    #[test]
    fn an_array_is_copied_whole() {
        for length in [0usize, 1, 3, 4, 5, 100] {
            let numbers: Vec<u32> = (0..length as u32).collect();
            // SAFETY: an array of that length.
            let copy = unsafe { CallerArray::<u32, 4>::read(numbers.as_ptr(), length) }.unwrap();
            assert_eq!(copy.entries(), numbers);
            assert_eq!(copy.long.is_empty(), length <= 4);
        }
    }

    #[test]
    fn no_array_and_no_memory_are_errors() {
        // SAFETY: NULL is allowed.
        let read = |length| unsafe { CallerArray::<u32, 4>::read(core::ptr::null(), length) };
        for length in [0, 1, 5, usize::MAX] {
            assert_eq!(
                read(length).err().map(|error| error.status),
                Some(Status::INVALID_PARAMETER)
            );
        }
        let one = 1;
        // SAFETY: nothing is read, because there is no memory for the copy.
        let huge = unsafe { CallerArray::<u32, 4>::read(&raw const one, usize::MAX) };
        assert_eq!(huge.err().map(|error| error.status), Some(Status::NO_MEMORY));
    }
}
