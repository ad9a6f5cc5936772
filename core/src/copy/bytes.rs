//! Raw accesses to memory: copies, the register of the host data path, a read-back.
//!
//! # Safety
//! This is one of the few modules of `core` with `unsafe` code. The argument: every
//! function is unsafe and its caller promises that the range is mapped for the access
//! until it returns. Addresses come as numbers, from the caller of the library or from
//! the books, so pointers are made of exposed provenance and no reference is ever
//! made: what lies there may be changed by devices at any time. Nothing is accessed
//! beyond the range. Registers are accessed by volatile accesses of their full width.
#![allow(unsafe_code)]

use core::ptr;

/// The register that flushes the host data path's writes, within the page of registers
/// that the driver remaps (KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL, `kfd_ioctl.h`).
const HDP_MEM_FLUSH_CNTL: usize = 0;

/// Copies bytes; the ranges may overlap.
///
/// # Safety
/// Both ranges are mapped, one for reads and one for writes.
pub(super) unsafe fn copy(destination: usize, source: usize, size: usize) {
    let to: *mut u8 = ptr::with_exposed_provenance_mut(destination);
    let from: *const u8 = ptr::with_exposed_provenance(source);
    // SAFETY: the caller's promise; bytes need no alignment (see the module).
    unsafe { ptr::copy(from, to, size) };
}

/// Flushes the host data path of a GPU, and waits until the flush has arrived there.
///
/// # Safety
/// `page` is the GPU's page of remapped registers, mapped for reads and writes.
pub(super) unsafe fn flush_host_data_path(page: usize) {
    let register: *mut u32 =
        ptr::with_exposed_provenance_mut(page.wrapping_add(HDP_MEM_FLUSH_CNTL));
    // SAFETY: the caller's promise; the register is the page's first word, so aligned.
    unsafe {
        register.write_volatile(1);
        // A read does not overtake the store before it on the bus.
        let _ = register.read_volatile();
    }
}

/// Reads a byte of device memory, which arrives there after all stores before it.
///
/// # Safety
/// The address is mapped for reads.
pub(super) unsafe fn read_back(address: usize) {
    let byte: *const u8 = ptr::with_exposed_provenance(address);
    // SAFETY: the caller's promise.
    let _ = unsafe { byte.read_volatile() };
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn overlapping_ranges_are_moved() {
        for (to, from) in [(0_usize, 3_usize), (3, 0), (5, 5)] {
            let mut bytes: Vec<u8> = (0..64).collect();
            let mut expected = bytes.clone();
            expected.copy_within(from..from + 40, to);
            let start = bytes.as_mut_ptr().expose_provenance();
            // SAFETY: both ranges are within the vector.
            unsafe { copy(start + to, start + from, 40) };
            assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn the_register_is_the_first_word_of_its_page() {
        let mut page = alloc::vec![0_u32; 1024];
        let start = page.as_mut_ptr().expose_provenance();
        // SAFETY: the vector is as long as the page.
        unsafe {
            flush_host_data_path(start);
            read_back(start);
        }
        assert_eq!(page[..2], [1, 0]);
    }
}
