//! Addresses in C structures.
//!
//! Core works on numbers; a C structure holds pointers. The memory behind them is the caller's, a
//! device's or mapped by a system call, so its provenance is exposed and never narrower.

/// The pointer with this address; NULL for one that does not fit into a pointer.
pub(crate) fn pointer_mut<T>(address: u64) -> *mut T {
    core::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

/// The pointer with this address; NULL for one that does not fit into a pointer.
pub(crate) fn pointer_const<T>(address: u64) -> *const T {
    pointer_mut(address)
}

/// The address of a pointer.
pub(crate) fn address_of<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}
