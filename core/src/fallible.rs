//! Allocation that can be refused, where the standard library has none.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::error::Error;

/// Puts a value on the heap.
///
/// # Errors
/// NO_MEMORY; the value is dropped.
pub fn try_box<T>(value: T) -> Result<Box<[T]>, Error> {
    let mut one = Vec::new();
    one.try_reserve_exact(1).map_err(|_| Error::no_memory(size_of::<T>() as u64))?;
    one.push(value);
    Ok(one.into_boxed_slice())
}

/// Appends a value.
///
/// # Errors
/// NO_MEMORY; `to` is as it was.
pub fn try_push<T>(to: &mut Vec<T>, value: T) -> Result<(), Error> {
    to.try_reserve(1).map_err(|_| Error::no_memory(size_of::<T>() as u64))?;
    to.push(value);
    Ok(())
}
