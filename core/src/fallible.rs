//! Allocation that can be refused, where the standard library has none.
//!
//! `Vec::push` and its like grow the vector if they must, and panic where it
//! cannot grow. After a reservation they never do, but the optimiser does not
//! know that, and keeps the path to the panic in the artefact. Here the capacity
//! is looked at once more, in the very terms of the standard library: what
//! remains cannot panic, which `ci/no-panic` proves.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::error::Error;

fn refused<T>(count: usize) -> Error {
    Error::no_memory(size_of::<T>().saturating_mul(count) as u64)
}

/// Makes room for `count` more and makes sure of it.
fn reserve<T>(to: &mut Vec<T>, count: usize) -> Result<(), Error> {
    to.try_reserve(count).map_err(|_| refused::<T>(count))?;
    if count > to.capacity().wrapping_sub(to.len()) {
        return Err(refused::<T>(count));
    }
    Ok(())
}

/// Puts a value on the heap.
///
/// # Errors
/// NO_MEMORY; the value is dropped.
pub fn try_box<T>(value: T) -> Result<Box<[T]>, Error> {
    let mut one = Vec::new();
    one.try_reserve_exact(1).map_err(|_| refused::<T>(1))?;
    try_push(&mut one, value)?;
    Ok(one.into_boxed_slice())
}

/// Appends a value.
///
/// # Errors
/// NO_MEMORY; `to` is as it was.
#[inline]
pub fn try_push<T>(to: &mut Vec<T>, value: T) -> Result<(), Error> {
    reserve(to, 1)?;
    if to.len() == to.capacity() {
        return Err(refused::<T>(1));
    }
    to.push(value);
    Ok(())
}

/// Inserts a value before the one at `place`, or at the end if there is none.
///
/// # Errors
/// NO_MEMORY; `to` is as it was.
#[inline]
pub fn try_insert<T>(to: &mut Vec<T>, place: usize, value: T) -> Result<(), Error> {
    reserve(to, 1)?;
    let length = to.len();
    if length == to.capacity() {
        return Err(refused::<T>(1));
    }
    to.insert(if place > length { length } else { place }, value);
    Ok(())
}

/// Appends all of a slice.
///
/// # Errors
/// NO_MEMORY; `to` is as it was.
#[inline]
pub fn try_extend_from_slice<T: Copy>(to: &mut Vec<T>, from: &[T]) -> Result<(), Error> {
    reserve(to, from.len())?;
    to.extend_from_slice(from);
    Ok(())
}

/// Appends everything that an iterator gives.
///
/// # Errors
/// NO_MEMORY; what was appended by then stays.
pub fn try_extend<T>(to: &mut Vec<T>, from: impl IntoIterator<Item = T>) -> Result<(), Error> {
    let from = from.into_iter();
    reserve(to, from.size_hint().0)?;
    for value in from {
        try_push(to, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_there() {
        let mut numbers = Vec::new();
        try_push(&mut numbers, 2).unwrap();
        try_insert(&mut numbers, 0, 1).unwrap();
        try_insert(&mut numbers, 99, 3).unwrap();
        try_extend_from_slice(&mut numbers, &[4, 5]).unwrap();
        try_extend(&mut numbers, 6..8).unwrap();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(*try_box(8).unwrap(), [8]);
    }

    #[test]
    fn values_without_a_size_need_no_room() {
        let mut units = Vec::new();
        try_push(&mut units, ()).unwrap();
        try_insert(&mut units, 0, ()).unwrap();
        try_extend_from_slice(&mut units, &[(); 3]).unwrap();
        assert_eq!(units.len(), 5);
    }
}
