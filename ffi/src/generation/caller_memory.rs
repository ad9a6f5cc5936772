//! Reading and writing structures in the caller's memory.
//!
//! # Safety
//!
//! A C caller promises that its pointer names as many structures of its generation as it says. This
//! module keeps its half of the bargain: it touches exactly those bytes, never forms a reference to
//! them (they may be misaligned, and another thread may look at them), and treats NULL as an error.
#![allow(unsafe_code)]

use core::mem::size_of;
use core::ptr;

use zerocopy::FromZeros;

use crate::types::HSAKMT_STATUS;

/// Writes one structure.
///
/// # Errors
///
/// INVALID_PARAMETER where `destination` is NULL; nothing is written then.
///
/// # Safety
///
/// `destination` is NULL or valid for writes of `size_of::<T>()` bytes.
pub unsafe fn write<T: Copy>(destination: *mut T, value: T) -> Result<(), HSAKMT_STATUS> {
    if destination.is_null() {
        return Err(HSAKMT_STATUS::INVALID_PARAMETER);
    }
    // SAFETY: not NULL, so valid for writes by the caller's promise; no alignment is needed.
    unsafe { destination.write_unaligned(value) };
    Ok(())
}

/// Writes `values` one after another, `size_of::<T>()` bytes apart, and at most `capacity` of them.
///
/// Returns how many were written. The rest of the array is left as it is.
///
/// # Errors
///
/// INVALID_PARAMETER where `destination` is NULL, even if `capacity` is 0; nothing is written then.
///
/// # Safety
///
/// `destination` is NULL or valid for writes of `capacity` structures.
pub unsafe fn write_array<T: Copy>(
    destination: *mut T,
    capacity: usize,
    values: impl IntoIterator<Item = T>,
) -> Result<usize, HSAKMT_STATUS> {
    if destination.is_null() {
        return Err(HSAKMT_STATUS::INVALID_PARAMETER);
    }
    let mut written = 0;
    for (index, value) in (0..capacity).zip(values) {
        // SAFETY: `index` is below `capacity`, so the place is within the caller's array.
        unsafe { destination.wrapping_add(index).write_unaligned(value) };
        written = index.saturating_add(1);
    }
    Ok(written)
}

/// Sets `capacity` structures to zero.
///
/// # Errors
///
/// INVALID_PARAMETER where `destination` is NULL; nothing is written then.
///
/// # Safety
///
/// `destination` is NULL or valid for writes of `capacity` structures.
pub unsafe fn write_zeros<T: FromZeros + Copy>(
    destination: *mut T,
    capacity: usize,
) -> Result<(), HSAKMT_STATUS> {
    // SAFETY: the caller's promise is the same.
    unsafe { write_array(destination, capacity, core::iter::repeat(T::new_zeroed())) }.map(drop)
}

/// Reads one structure.
///
/// # Errors
///
/// INVALID_PARAMETER where `source` is NULL.
///
/// # Safety
///
/// `source` is NULL or valid for reads of `size_of::<T>()` bytes that form a `T`.
pub unsafe fn read<T: Copy>(source: *const T) -> Result<T, HSAKMT_STATUS> {
    if source.is_null() {
        return Err(HSAKMT_STATUS::INVALID_PARAMETER);
    }
    // SAFETY: not NULL, so valid for reads by the caller's promise; no alignment is needed.
    Ok(unsafe { source.read_unaligned() })
}

/// Reads as many structures as `into` holds, one after another.
///
/// # Errors
///
/// INVALID_PARAMETER where `source` is NULL, even if `into` is empty; nothing is read then.
///
/// # Safety
///
/// `source` is NULL or valid for reads of as many structures, each of which forms a `T`.
pub unsafe fn read_array<T: Copy>(source: *const T, into: &mut [T]) -> Result<(), HSAKMT_STATUS> {
    if source.is_null() {
        return Err(HSAKMT_STATUS::INVALID_PARAMETER);
    }
    for (index, value) in into.iter_mut().enumerate() {
        // SAFETY: `index` is below the length of `into`, so the place is within the caller's array.
        *value = unsafe { source.wrapping_add(index).read_unaligned() };
    }
    Ok(())
}

/// A structure that begins with its size in bytes as the caller knows it.
///
/// # Safety
///
/// The first four bytes of the type are that size, a `u32`, and the type has no padding.
pub unsafe trait SizedByCaller: Copy {}

/// Writes as much of `value` as the caller's structure holds, except for the size in front.
///
/// # Errors
///
/// INVALID_PARAMETER where `destination` is NULL or its size does not even cover the size itself.
///
/// # Safety
///
/// `destination` is NULL or valid for reads and writes of the number of bytes that its first four
/// bytes say, and of those four.
pub unsafe fn write_sized<T: SizedByCaller>(
    destination: *mut T,
    value: &T,
) -> Result<(), HSAKMT_STATUS> {
    const FRONT: usize = size_of::<u32>();
    // SAFETY: NULL, or the size in front is readable by the caller's promise.
    let size = unsafe { read(destination.cast::<u32>().cast_const()) }?;
    let size = usize::try_from(size).unwrap_or(usize::MAX).min(size_of::<T>());
    let Some(length) = size.checked_sub(FRONT) else {
        return Err(HSAKMT_STATUS::INVALID_PARAMETER);
    };
    let source = ptr::from_ref(value).cast::<u8>().wrapping_add(FRONT);
    let target = destination.cast::<u8>().wrapping_add(FRONT);
    // SAFETY: `FRONT + length` bytes are within `value`, and within the caller's structure by its
    // own size; `value` is ours, so the two do not overlap; no byte of it is padding.
    unsafe { ptr::copy_nonoverlapping(source, target, length) };
    Ok(())
}
