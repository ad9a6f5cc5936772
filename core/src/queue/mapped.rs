//! Ring memory, pointers and doorbells as they lie in mapped memory.
//!
//! # Safety
//! This is one of the few modules of `core` with `unsafe` code. The argument:
//! whoever makes one of these values promises, by the contract of its `unsafe`
//! constructor, that the address stays mapped for reading and writing as long as
//! the value lives, and that all other accesses by this process are atomic too.
//! The constructors refuse addresses that are null or misaligned and lengths
//! that leave the address space. What a device writes there meanwhile is any bit
//! pattern at any time, which the types allow: all of them are made of atomics.
//! Doorbells are registers, not memory: they are only ever stored to, by a
//! volatile store of their full width, and no reference to one exists.
#![allow(unsafe_code)]

use core::mem::{align_of, size_of};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::aql_ring::{AqlPointers, AqlSlot};
use super::pointers::{CommandPointers, DoorbellType};

mod sealed {
    /// What is valid with any bits and changes under shared references.
    pub trait Shared: Sync {}
    impl Shared for super::AtomicU32 {}
    impl Shared for super::AtomicU64 {}
    impl Shared for super::AqlSlot {}
}

/// A row of atomics in mapped memory: [`AtomicU32`], [`AtomicU64`] or [`AqlSlot`].
#[derive(Debug)]
pub struct Mapped<T: sealed::Shared> {
    first: NonNull<T>,
    count: usize,
}

// SAFETY: a value hands out shared references to `T`, which is Sync, and nothing
// in it belongs to a thread.
unsafe impl<T: sealed::Shared> Send for Mapped<T> {}
// SAFETY: as for Send.
unsafe impl<T: sealed::Shared> Sync for Mapped<T> {}

impl<T: sealed::Shared> Mapped<T> {
    /// A view of `count` values from `address` on. `None` for an address that is
    /// null or not aligned for `T`, and for more than half of the address space.
    ///
    /// # Safety
    /// The memory stays mapped for reading and writing until the view is dropped,
    /// and this process accesses it only by atomics of the same widths.
    #[must_use]
    pub unsafe fn new(address: usize, count: usize) -> Option<Mapped<T>> {
        let bytes = count.checked_mul(size_of::<T>())?;
        address.checked_add(bytes).filter(|_| isize::try_from(bytes).is_ok())?;
        if address & align_of::<T>().wrapping_sub(1) != 0 {
            return None;
        }
        let first = NonNull::new(core::ptr::with_exposed_provenance_mut(address))?;
        Some(Mapped { first, count })
    }
}

impl<T: sealed::Shared> AsRef<[T]> for Mapped<T> {
    #[inline]
    fn as_ref(&self) -> &[T] {
        // SAFETY: `new` checked address and length, its caller keeps the memory
        // mapped while `self` lives, and `T` is made of atomics (see the module).
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

/// A doorbell in its mapped page.
#[derive(Debug)]
pub struct MappedDoorbell {
    address: NonNull<u8>,
    wide: bool,
}

// SAFETY: any thread may store to a doorbell at any time.
unsafe impl Send for MappedDoorbell {}
// SAFETY: as for Send.
unsafe impl Sync for MappedDoorbell {}

impl MappedDoorbell {
    /// The doorbell at `address`, as wide as its type says. `None` for an address
    /// that is null or not aligned.
    ///
    /// # Safety
    /// The address is that of a doorbell and stays mapped for writing until the
    /// value is dropped. From Linux 7 on a reset of the GPU takes the mapping away
    /// and the next store raises SIGBUS: whoever rings asks first whether the
    /// device is lost.
    #[must_use]
    pub unsafe fn new(address: usize, doorbell: DoorbellType) -> Option<MappedDoorbell> {
        let wide = match doorbell {
            DoorbellType::Pre1_0 | DoorbellType::V1_0 => false,
            DoorbellType::V2_0 => true,
        };
        if address & if wide { 7 } else { 3 } != 0 {
            return None;
        }
        let address = NonNull::new(core::ptr::with_exposed_provenance_mut(address))?;
        Some(MappedDoorbell { address, wide })
    }

    /// Stores to the doorbell, the low 32 bits where it has 32.
    #[inline]
    pub fn ring(&self, value: u64) {
        if self.wide {
            // SAFETY: the address is a doorbell of 8 bytes, aligned and mapped (see
            // the module).
            unsafe { self.address.as_ptr().cast::<u64>().write_volatile(value) }
        } else {
            // SAFETY: the same with 4 bytes.
            unsafe { self.address.as_ptr().cast::<u32>().write_volatile(value as u32) }
        }
    }
}

/// A write pointer in memory.
#[derive(Debug)]
enum WritePointer {
    Narrow(Mapped<AtomicU32>),
    Wide(Mapped<AtomicU64>),
}

/// Pointers of a PM4 or SDMA ring in mapped memory.
#[derive(Debug)]
pub struct MappedCommandPointers {
    read: Mapped<AtomicU32>,
    write: WritePointer,
    doorbell: MappedDoorbell,
}

impl MappedCommandPointers {
    /// Read pointer, write pointer and doorbell at these addresses, with the widths
    /// that the doorbell's type says. `None` for addresses that are null or not
    /// aligned.
    ///
    /// # Safety
    /// Those of [`Mapped::new`] and [`MappedDoorbell::new`].
    #[must_use]
    pub unsafe fn new(
        read: usize,
        write: usize,
        doorbell: usize,
        doorbell_type: DoorbellType,
    ) -> Option<MappedCommandPointers> {
        // SAFETY: the caller's promise is that of all four constructors.
        unsafe {
            Some(MappedCommandPointers {
                read: Mapped::new(read, 1)?,
                write: match doorbell_type {
                    DoorbellType::Pre1_0 | DoorbellType::V1_0 => {
                        WritePointer::Narrow(Mapped::new(write, 1)?)
                    }
                    DoorbellType::V2_0 => WritePointer::Wide(Mapped::new(write, 1)?),
                },
                doorbell: MappedDoorbell::new(doorbell, doorbell_type)?,
            })
        }
    }
}

impl CommandPointers for MappedCommandPointers {
    #[inline]
    fn read_pointer(&self) -> u32 {
        self.read.as_ref().first().map_or(0, |word| word.load(Ordering::Acquire))
    }

    #[inline]
    fn set_write_pointer(&self, value: u64) {
        match &self.write {
            WritePointer::Narrow(word) => {
                if let Some(word) = word.as_ref().first() {
                    word.store(value as u32, Ordering::Release);
                }
            }
            WritePointer::Wide(word) => {
                if let Some(word) = word.as_ref().first() {
                    word.store(value, Ordering::Release);
                }
            }
        }
    }

    #[inline]
    fn ring_doorbell(&self, value: u64) {
        self.doorbell.ring(value);
    }
}

/// Pointers of an AQL ring in mapped memory.
#[derive(Debug)]
pub struct MappedAqlPointers {
    write: NonNull<AtomicU64>,
    read: NonNull<AtomicU64>,
    hardware_write: Option<NonNull<AtomicU64>>,
    doorbell: MappedDoorbell,
}

// SAFETY: the pointers lead to atomics that are mapped as long as the value lives.
unsafe impl Send for MappedAqlPointers {}
// SAFETY: as for Send.
unsafe impl Sync for MappedAqlPointers {}

impl MappedAqlPointers {
    /// Write index, read index and doorbell at these addresses, and before gfx9 the
    /// write pointer that the hardware reads. `None` for addresses that are null or
    /// not aligned.
    ///
    /// # Safety
    /// Those of [`Mapped::new`] and [`MappedDoorbell::new`].
    #[must_use]
    pub unsafe fn new(
        write: usize,
        read: usize,
        hardware_write: usize,
        doorbell: usize,
        doorbell_type: DoorbellType,
    ) -> Option<MappedAqlPointers> {
        // SAFETY: the caller's promise is that of the constructors.
        unsafe {
            Some(MappedAqlPointers {
                write: Mapped::new(write, 1)?.first,
                read: Mapped::new(read, 1)?.first,
                hardware_write: match doorbell_type {
                    DoorbellType::Pre1_0 | DoorbellType::V1_0 => {
                        Some(Mapped::new(hardware_write, 1)?.first)
                    }
                    DoorbellType::V2_0 => None,
                },
                doorbell: MappedDoorbell::new(doorbell, doorbell_type)?,
            })
        }
    }
}

impl AqlPointers for MappedAqlPointers {
    type Number = AtomicU64;

    #[inline]
    fn write_index(&self) -> &AtomicU64 {
        // SAFETY: aligned and mapped while `self` lives (see the module).
        unsafe { self.write.as_ref() }
    }

    #[inline]
    fn read_index(&self) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { self.read.as_ref() }
    }

    #[inline]
    fn set_hardware_write_pointer(&self, packets: u64) {
        if let Some(word) = self.hardware_write {
            // SAFETY: as above.
            unsafe { word.as_ref() }.store(packets, Ordering::Release);
        }
    }

    #[inline]
    fn ring_doorbell(&self, value: u64) {
        self.doorbell.ring(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_view_is_the_memory() {
        let words: Vec<AtomicU32> = (0..8).map(AtomicU32::new).collect();
        // SAFETY: the words outlive the view.
        let view = unsafe { Mapped::<AtomicU32>::new(words.as_ptr().expose_provenance(), 8) };
        let view = view.unwrap();
        assert_eq!(view.as_ref().len(), 8);
        view.as_ref()[3].store(77, Ordering::Relaxed);
        assert_eq!(words[3].load(Ordering::Relaxed), 77);
    }

    #[test]
    fn addresses_that_cannot_be() {
        // SAFETY: none of these gives a value whose memory is touched.
        unsafe {
            assert!(Mapped::<AtomicU32>::new(0, 1).is_none());
            assert!(Mapped::<AtomicU32>::new(2, 1).is_none());
            assert!(Mapped::<AtomicU64>::new(4, 1).is_none());
            assert!(Mapped::<AqlSlot>::new(32, 1).is_none());
            assert!(Mapped::<AtomicU32>::new(4, usize::MAX / 4).is_none());
            assert!(Mapped::<AtomicU32>::new(4, usize::MAX).is_none());
            assert!(Mapped::<AtomicU32>::new(usize::MAX - 3, 1).is_none());
            for doorbell in [DoorbellType::Pre1_0, DoorbellType::V1_0] {
                assert!(MappedDoorbell::new(0, doorbell).is_none());
                assert!(MappedDoorbell::new(6, doorbell).is_none());
                assert!(MappedDoorbell::new(4, doorbell).is_some());
            }
            assert!(MappedDoorbell::new(4, DoorbellType::V2_0).is_none());
            assert!(MappedCommandPointers::new(8, 0, 8, DoorbellType::V2_0).is_none());
            assert!(MappedCommandPointers::new(8, 4, 8, DoorbellType::V2_0).is_none());
            assert!(MappedCommandPointers::new(8, 4, 8, DoorbellType::V1_0).is_some());
            assert!(MappedAqlPointers::new(8, 16, 0, 12, DoorbellType::V2_0).is_none());
            assert!(MappedAqlPointers::new(8, 12, 0, 16, DoorbellType::V2_0).is_none());
            assert!(MappedAqlPointers::new(8, 16, 0, 16, DoorbellType::V1_0).is_none());
        }
    }

    #[test]
    fn each_width_stores_no_more_than_it_has() {
        let words: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(u64::MAX)).collect();
        let at = |index: usize| (&raw const words[index]).expose_provenance();
        let value = 0x1122_3344_5566_7788;
        for (doorbell, expected) in [
            (DoorbellType::V1_0, 0xffff_ffff_5566_7788),
            (DoorbellType::V2_0, 0x1122_3344_5566_7788),
        ] {
            words[1].store(u64::MAX, Ordering::Relaxed);
            words[2].store(u64::MAX, Ordering::Relaxed);
            // SAFETY: the words outlive the pointers.
            let pointers =
                unsafe { MappedCommandPointers::new(at(0), at(1), at(2), doorbell) }.unwrap();
            pointers.set_write_pointer(value);
            pointers.ring_doorbell(value);
            assert_eq!(pointers.read_pointer(), u32::MAX);
            assert_eq!(words[1].load(Ordering::Relaxed), expected);
            assert_eq!(words[2].load(Ordering::Relaxed), expected);
        }
    }

    #[test]
    fn indices_of_an_aql_ring() {
        for (doorbell, hardware) in [(DoorbellType::V2_0, 3), (DoorbellType::V1_0, 10)] {
            let words: Vec<AtomicU64> = (0..4).map(AtomicU64::new).collect();
            let at = |index: usize| (&raw const words[index]).expose_provenance();
            // SAFETY: the words outlive the pointers.
            let pointers =
                unsafe { MappedAqlPointers::new(at(0), at(1), at(3), at(2), doorbell) }.unwrap();
            pointers.write_index().store(10, Ordering::Relaxed);
            pointers.set_hardware_write_pointer(10);
            pointers.ring_doorbell(9);
            assert_eq!(pointers.read_index().load(Ordering::Relaxed), 1);
            let now: Vec<u64> = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
            assert_eq!(now, [10, 1, 9, hardware]);
        }
    }
}
