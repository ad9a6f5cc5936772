//! Handing the driver copies instead of the caller's bytes.
//!
//! A driver in another address space moves the bytes of a block and of its
//! arrays there and back. [`Copied`] does the same within one address space, so
//! a test that passes through it proves that no pointer into a block or an
//! array crosses the seam unnoticed, that nothing is expected back that the
//! directions do not allow, and that the driver keeps no pointer after the
//! call.
//!
//! # What it finds
//! - A driver that still reads a block or an array after its call sees 0xA5
//!   there (until the memory is used again).
//! - A driver that writes to an array it may only read, or past the end of
//!   anything: counted in [`CopyAudit`].
//! - A block that carries an address where the driver puts that of an array, or
//!   comes back with one: counted as well.

use alloc::vec::Vec;
use core::ffi::CStr;
use core::hint::black_box;
use core::ops::{ControlFlow, Deref};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use zerocopy::IntoBytes;

use super::Platform;
use super::driver::{Array, Call, DeviceNode, DeviceToken, Driver, MapDevice};
use super::forward::{forward_os, platform_of_itself};
use super::os::{Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Protection, Wake};
use crate::errno::Errno;
use crate::uapi::ArraySlot;

/// What unused and given-up bytes of copies hold.
const POISON: u8 = 0xa5;

/// How far behind a copy a write of the driver is noticed, in words of 8 bytes.
const GUARD_WORDS: usize = 2;

/// The size of a pointer field, in bytes.
const POINTER: usize = 8;

/// Bytes at an address of their own, aligned like a block, with a guard behind.
#[derive(Debug)]
struct Replica {
    words: Vec<u64>,
    length: usize,
}

impl Replica {
    fn of(bytes: &[u8]) -> Result<Replica, Errno> {
        let length = bytes.len();
        let words = length.div_ceil(8).checked_add(GUARD_WORDS).ok_or(Errno::ENOMEM)?;
        let mut copy = Replica { words: Vec::new(), length };
        copy.words.try_reserve_exact(words).map_err(|_| Errno::ENOMEM)?;
        copy.words.resize(words, u64::from_ne_bytes([POISON; 8]));
        copy.bytes_mut().copy_from_slice(bytes);
        Ok(copy)
    }

    fn bytes(&self) -> &[u8] {
        self.words.as_bytes().get(..self.length).unwrap_or(&[])
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.words.as_mut_bytes().get_mut(..self.length).unwrap_or(&mut [])
    }

    fn is_overrun(&self) -> bool {
        let guard = self.words.as_bytes().get(self.length..).unwrap_or(&[]);
        guard.iter().any(|byte| *byte != POISON)
    }

    fn poison(&mut self) {
        self.words.as_mut_bytes().fill(POISON);
        // A store to memory that is freed next would not survive optimisation.
        black_box(self.words.as_mut_slice());
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.poison();
    }
}

/// What [`Copied`] has found, to be read by the test.
#[derive(Debug, Default)]
pub struct CopyAudit {
    calls: AtomicU64,
    written_inputs: AtomicU64,
    overruns: AtomicU64,
    carried_addresses: AtomicU64,
}

impl CopyAudit {
    /// Nothing found yet.
    #[must_use]
    pub const fn new() -> CopyAudit {
        CopyAudit {
            calls: AtomicU64::new(0),
            written_inputs: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            carried_addresses: AtomicU64::new(0),
        }
    }

    /// Blocks copied.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

    /// Arrays that the driver may only read and has written to.
    #[must_use]
    pub fn written_inputs(&self) -> u64 {
        self.written_inputs.load(Relaxed)
    }

    /// Blocks and arrays that the driver has written behind (within 16 bytes).
    #[must_use]
    pub fn overruns(&self) -> u64 {
        self.overruns.load(Relaxed)
    }

    /// Pointer fields of arrays that held an address before the call, or another
    /// one after it.
    #[must_use]
    pub fn carried_addresses(&self) -> u64 {
        self.carried_addresses.load(Relaxed)
    }

    /// Everything found that must not be.
    #[must_use]
    pub fn violations(&self) -> u64 {
        let both = self.written_inputs().saturating_add(self.overruns());
        both.saturating_add(self.carried_addresses())
    }
}

/// Gives the driver a copy of each block and of its arrays at addresses of
/// their own, and afterwards brings back the block and those arrays that the
/// driver may write, also when the driver answers an error. Pointer fields of
/// arrays come back as they went: their addresses mean nothing to the caller.
///
/// It wraps an `Os`, a `Driver`, or both at once (then it is a `Platform`); an
/// `Os` is handed on as it is. `A` is a reference to the audit or an `Arc` of it.
/// Besides the driver's errors, ENOMEM when there is no room for a copy; then
/// the driver has not seen the block.
#[derive(Debug, Clone, Copy)]
pub struct Copied<T, A> {
    inner: T,
    audit: A,
}

impl<T, A: Deref<Target = CopyAudit>> Copied<T, A> {
    /// Copies what passes to `inner`.
    pub const fn new(inner: T, audit: A) -> Self {
        Copied { inner, audit }
    }

    /// What is wrapped.
    pub const fn inner(&self) -> &T {
        &self.inner
    }

    /// Copies back what the driver may write, and looks at the rest.
    fn bring_back(&self, call: &mut Call<'_, '_>, block: &mut Replica, copies: &[Replica]) {
        for slot in call.slots {
            let went = pointer_field(call.block, slot);
            if let (Some(went), Some(came)) = (went, pointer_field_mut(block.bytes_mut(), slot)) {
                if *came != *went {
                    self.audit.carried_addresses.fetch_add(1, Relaxed);
                }
                came.copy_from_slice(went);
            }
        }
        call.block.copy_from_slice(block.bytes());
        let mut overruns = u64::from(block.is_overrun());
        for (array, copy) in call.arrays.iter_mut().zip(copies) {
            overruns = overruns.saturating_add(u64::from(copy.is_overrun()));
            if let Some(bytes) = array.bytes_mut() {
                bytes.copy_from_slice(copy.bytes());
            } else if array.bytes() != copy.bytes() {
                self.audit.written_inputs.fetch_add(1, Relaxed);
            }
        }
        self.audit.overruns.fetch_add(overruns, Relaxed);
    }
}

platform_of_itself!([T, A] Copied<T, A>);

impl<T: Os, A> Os for Copied<T, A> {
    forward_os!(|self| &self.inner);
}

fn pointer_field<'b>(block: &'b [u8], slot: &ArraySlot) -> Option<&'b [u8]> {
    block.get(slot.pointer_at..slot.pointer_at.checked_add(POINTER)?)
}

fn pointer_field_mut<'b>(block: &'b mut [u8], slot: &ArraySlot) -> Option<&'b mut [u8]> {
    block.get_mut(slot.pointer_at..slot.pointer_at.checked_add(POINTER)?)
}

impl<T: Driver, A: Deref<Target = CopyAudit>> Driver for Copied<T, A> {
    type Device = T::Device;

    fn open(&self, node: DeviceNode) -> Result<Self::Device, Errno> {
        self.inner.open(node)
    }

    fn memory_file(&self, size: u64) -> Result<Self::Device, Errno> {
        self.inner.memory_file(size)
    }

    fn execute(&self, device: &Self::Device, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        let mut block = Replica::of(call.block)?;
        let mut copies = Vec::new();
        copies.try_reserve_exact(call.arrays.len()).map_err(|_| Errno::ENOMEM)?;
        for array in call.arrays.iter() {
            copies.push(Replica::of(array.bytes())?);
        }
        let mut arrays = Vec::new();
        arrays.try_reserve_exact(call.arrays.len()).map_err(|_| Errno::ENOMEM)?;
        for (array, copy) in call.arrays.iter().zip(&mut copies) {
            arrays.push(match array {
                Array::Absent => Array::Absent,
                Array::In(_) => Array::In(copy.bytes()),
                Array::Out(_) => Array::Out(copy.bytes_mut()),
                Array::InOut(_) => Array::InOut(copy.bytes_mut()),
            });
        }

        self.audit.calls.fetch_add(1, Relaxed);
        for slot in call.slots {
            if pointer_field(call.block, slot).is_some_and(|field| field != [0; POINTER]) {
                self.audit.carried_addresses.fetch_add(1, Relaxed);
            }
        }

        let result = self.inner.execute(
            device,
            &mut Call {
                request: call.request,
                name: call.name,
                fields: call.fields,
                block: block.bytes_mut(),
                slots: call.slots,
                arrays: &mut arrays,
            },
        );
        drop(arrays);
        // What was lent for reading only may have been written all the same, by
        // a driver that was given its address.
        black_box((block.words.as_mut_slice(), copies.as_mut_slice()));

        self.bring_back(call, &mut block, &copies);
        result
    }

    fn map(&self, device: &Self::Device, mapping: MapDevice) -> Result<usize, Errno> {
        self.inner.map(device, mapping)
    }

    fn token(&self, device: &Self::Device) -> DeviceToken {
        self.inner.token(device)
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        self.inner.close_inherited(node, token);
    }

    fn adopt(&self, token: DeviceToken) -> Self::Device {
        self.inner.adopt(token)
    }

    fn release(&self, device: Self::Device) -> DeviceToken {
        self.inner.release(device)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{
        ArraysLike, Fake, assert_transparent, call, execute, execute_version, open_kfd,
    };
    use super::super::{Array, Pair, Platform};
    use super::{Copied, CopyAudit, POISON, Replica};
    use crate::errno::Errno;

    use alloc::sync::Arc;
    use alloc::vec;

    #[test]
    fn hands_everything_on() {
        let audit = Arc::new(CopyAudit::new());
        assert_transparent(|fake| Copied::new(fake, Arc::clone(&audit)));
        assert_eq!(audit.violations(), 0);
        assert_ne!(audit.calls(), 0);
    }

    #[test]
    fn wraps_a_whole_platform() {
        let fake = Fake::new();
        let audit = CopyAudit::new();
        let platform = Copied::new(Pair { os: &fake, driver: &fake }, &audit);
        let device = open_kfd(platform.driver());
        assert_eq!(execute_version(platform.driver(), &device).0, Ok(0));
        assert_eq!(audit.calls(), 1);
    }

    #[test]
    fn the_driver_sees_the_same_bytes_at_other_addresses() {
        let fake = Fake::new();
        let audit = CopyAudit::new();
        let copied = Copied::new(&fake, &audit);
        let device = open_kfd(&copied);
        let mut block = ArraysLike { count: 5, ..ArraysLike::default() };
        let (input, mut output, mut both) = (vec![1; 9], vec![2; 3], vec![3; 8]);
        let callers = [
            (&raw const block).addr(),
            input.as_ptr().addr(),
            output.as_ptr().addr(),
            both.as_ptr().addr(),
        ];
        fake.on_execute(move |call| {
            let drivers = [
                call.block.as_ptr().addr(),
                call.arrays[0].bytes().as_ptr().addr(),
                call.arrays[1].bytes().as_ptr().addr(),
                call.arrays[2].bytes().as_ptr().addr(),
            ];
            for (driver, caller) in drivers.iter().zip(callers) {
                assert_ne!(*driver, caller);
                assert_eq!(driver % 8, 0, "aligned like a block");
            }
            assert_eq!(call.fields[3].number(call.block), Some(5));
            assert!(matches!(call.arrays[0], Array::In(_)));
            assert!(matches!(call.arrays[1], Array::Out(_)));
            assert!(matches!(call.arrays[2], Array::InOut(_)));
            assert_eq!(call.arrays[0].bytes(), [1; 9]);
            assert_eq!(call.arrays[1].bytes(), [2; 3]);
            assert_eq!(call.arrays[2].bytes(), [3; 8]);
            Ok(7)
        });
        let mut arrays = [Array::In(&input), Array::Out(&mut output), Array::InOut(&mut both)];
        assert_eq!(execute(&copied, &device, &mut block, &mut arrays), Ok(7));
        assert_eq!(audit.violations(), 0);
    }

    #[test]
    fn what_the_driver_wrote_comes_back_with_an_error_too() {
        for answer in [Ok(0), Err(Errno::EINTR)] {
            let fake = Fake::new();
            let audit = CopyAudit::new();
            let copied = Copied::new(&fake, &audit);
            let device = open_kfd(&copied);
            fake.on_execute(move |call| {
                // n_success of a call that ended half-way
                call.block[24] = 4;
                call.arrays[1].bytes_mut().unwrap().fill(8);
                call.arrays[2].bytes_mut().unwrap()[0] = 9;
                answer
            });
            let mut block = ArraysLike::default();
            let (input, mut output, mut both) = (vec![1; 2], vec![2; 2], vec![3; 2]);
            let mut arrays = [Array::In(&input), Array::Out(&mut output), Array::InOut(&mut both)];
            assert_eq!(execute(&copied, &device, &mut block, &mut arrays), answer);
            assert_eq!((block.count, input, output, both), (4, vec![1; 2], vec![8; 2], vec![9, 3]));
            assert_eq!(audit.violations(), 0);
        }
    }

    #[test]
    fn absent_and_empty_arrays_stay_what_they_are() {
        let fake = Fake::new();
        let audit = CopyAudit::new();
        let copied = Copied::new(&fake, &audit);
        let device = open_kfd(&copied);
        fake.on_execute(|call| {
            assert!(matches!(call.arrays[0], Array::Absent));
            assert!(matches!(call.arrays[1], Array::Out(_)));
            assert_eq!(call.arrays.len(), 2);
            Ok(0)
        });
        let mut arrays = [Array::Absent, Array::Out(&mut [])];
        let mut block = ArraysLike::default();
        assert_eq!(execute(&copied, &device, &mut block, &mut arrays), Ok(0));
    }

    #[test]
    fn addresses_do_not_come_back_and_must_not_go() {
        let fake = Fake::new();
        let audit = CopyAudit::new();
        let copied = Copied::new(&fake, &audit);
        let device = open_kfd(&copied);
        fake.on_execute(|call| {
            call.block[8..16].fill(0x7f);
            Ok(0)
        });
        let mut block = ArraysLike::default();
        let mut arrays = [Array::Absent, Array::Absent, Array::Absent];
        assert_eq!(execute(&copied, &device, &mut block, &mut arrays), Ok(0));
        assert_eq!(block, ArraysLike::default());
        assert_eq!((audit.carried_addresses(), audit.violations()), (1, 1));

        block.both_ptr = 0x1000;
        assert_eq!(execute(&copied, &device, &mut block, &mut arrays), Ok(0));
        assert_eq!((block.output_ptr, block.both_ptr), (0, 0x1000));
        assert_eq!((audit.carried_addresses(), audit.violations()), (2, 2));
    }

    #[test]
    fn writes_where_none_are_allowed_are_counted() {
        let audit = CopyAudit::new();
        let copied = Copied::new(Fake::new(), &audit);
        let mut block = ArraysLike::default();
        let (input, mut output) = ([1; 4], [2; 4]);
        let mut arrays = [Array::In(&input), Array::Out(&mut output), Array::Absent];
        let mut call = call(&mut block, &mut arrays);
        let mut block = Replica::of(call.block).unwrap();
        let mut copies = [&[1; 4][..], &[7; 4], &[]].map(|bytes| Replica::of(bytes).unwrap());

        copied.bring_back(&mut call, &mut block, &copies);
        assert_eq!(audit.violations(), 0);

        copies[0].bytes_mut()[3] = 0;
        copied.bring_back(&mut call, &mut block, &copies);
        assert_eq!((audit.written_inputs(), audit.overruns()), (1, 0));

        // Just behind the 4 bytes of the second array.
        zerocopy::IntoBytes::as_mut_bytes(copies[1].words.as_mut_slice())[4] = 0;
        *block.words.last_mut().unwrap() = 0;
        copied.bring_back(&mut call, &mut block, &copies);
        assert_eq!((audit.written_inputs(), audit.overruns()), (2, 2));
        assert_eq!(audit.violations(), 4);
        assert_eq!((input, output), ([1; 4], [7; 4]));
    }

    #[test]
    fn copies_are_poisoned_before_they_are_given_up() {
        let mut copy = Replica::of(&[1; 13]).unwrap();
        assert_eq!((copy.bytes(), copy.is_overrun()), (&[1; 13][..], false));
        copy.poison();
        assert_eq!(copy.bytes(), [POISON; 13]);
    }
}
