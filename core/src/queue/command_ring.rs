//! A ring of commands of various lengths, PM4 or SDMA, with one producer.
//!
//! A packet lies in one piece: where it does not fit before the ring's end, the
//! rest is padded with no-operations and the packet begins at the start. One
//! dword stays free, because equal pointers mean an empty ring.
//!
//! Packets are placed, then submitted together: ring memory, barrier, write
//! pointer, barrier, doorbell. Nothing of what is placed is seen before.

use core::sync::atomic::{AtomicU32, Ordering};

use super::aql_ring::NotPlaced;
use super::packets::{pm4, sdma};
use super::pointers::{CommandEngine, CommandPointers, DoorbellType, PointerForm};
use crate::seam::Os;
use crate::topology::GfxVersion;

/// The smallest ring that the driver makes, in dwords: it takes smaller ones for
/// this size (`kfd_chardev.c`, 1 KiB).
const SMALLEST_RING: usize = 256;

/// The largest ring, in dwords: 4 GiB.
const LARGEST_RING: u64 = 1 << 30;

/// Dwords that some copy engines want of each submission, 1 for all others.
///
/// 64 for gfx9.0.0 to 9.0.4 and 9.0.12 (`amd_blit_sdma.cpp` of ROCr).
#[must_use]
pub const fn least_submission_dwords(version: GfxVersion, engine: CommandEngine) -> u32 {
    match (engine, version.major, version.minor, version.stepping) {
        (CommandEngine::Copy, 9, 0, 0..=4 | 12) => 64,
        _ => 1,
    }
}

/// A ring of PM4 or SDMA packets.
#[derive(Debug)]
pub struct CommandRing<M, P> {
    words: M,
    pointers: P,
    form: PointerForm,
    mask: u32,
    least: u32,
    /// Dwords placed since the start.
    placed: u64,
    /// Dwords submitted since the start.
    submitted: u64,
}

impl<M: AsRef<[AtomicU32]>, P: CommandPointers> CommandRing<M, P> {
    /// A ring over these dwords, with pointers at its start. `least` is
    /// [`least_submission_dwords`].
    ///
    /// `None` where their number is no power of two, below 256 (the driver would
    /// take it for 256), above 2^30, or not above `least`.
    #[must_use]
    pub fn new(
        words: M,
        pointers: P,
        engine: CommandEngine,
        doorbell: DoorbellType,
        least: u32,
    ) -> Option<CommandRing<M, P>> {
        let size = words.as_ref().len();
        let fits = size.is_power_of_two() && size >= SMALLEST_RING && size as u64 <= LARGEST_RING;
        if !fits {
            return None;
        }
        let mask = u32::try_from(size).ok()?.checked_sub(1)?;
        if least > mask {
            return None;
        }
        let form = PointerForm { engine, doorbell };
        Some(CommandRing { words, pointers, form, mask, least, placed: 0, submitted: 0 })
    }

    /// The pointers.
    pub const fn pointers(&self) -> &P {
        &self.pointers
    }

    /// Dwords that can be placed now, in one piece or not.
    #[must_use]
    pub fn free_dwords(&self) -> u32 {
        let used = self.place().wrapping_sub(self.read_place()) & self.mask;
        self.mask.saturating_sub(used)
    }

    /// How far the engine has read, in dwords from the ring's start.
    #[must_use]
    pub fn read_place(&self) -> u32 {
        self.form.read_place(self.pointers.read_pointer(), self.mask)
    }

    /// Whether the engine has read all that was submitted.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.read_place() == self.submitted as u32 & self.mask
    }

    /// Places a packet, which the engine sees after the next
    /// [`submit`](CommandRing::submit).
    ///
    /// # Errors
    /// [`NotPlaced::TooLarge`] for a packet that does not fit an empty ring;
    /// [`NotPlaced::Full`] where it does not fit now: submit, and try again when the
    /// engine has read more. The padding up to the ring's end may be placed by then.
    pub fn place_packet(&mut self, packet: &[u32]) -> Result<(), NotPlaced> {
        self.place_parts(packet, &[])
    }

    /// Places a packet of a head and a body, like
    /// [`place_packet`](CommandRing::place_packet).
    ///
    /// # Errors
    /// The same.
    pub fn place_parts(&mut self, head: &[u32], body: &[u32]) -> Result<(), NotPlaced> {
        let length = head.len().checked_add(body.len()).and_then(|sum| u32::try_from(sum).ok());
        let length = length.filter(|&length| length <= self.mask).ok_or(NotPlaced::TooLarge)?;
        let to_end = self.dwords_to_end();
        if length > to_end {
            // Padding that had to wait for the room of the packet too would wait
            // forever: of a packet as long as the ring the engine must have read
            // the padding first.
            self.keep_free(to_end)?;
            self.pad(to_end);
        }
        self.keep_free(length)?;
        let place = self.place() as usize;
        let room = self.words.as_ref().iter().skip(place);
        for (to, &from) in room.zip(head.iter().chain(body)) {
            to.store(from, Ordering::Relaxed);
        }
        self.placed = self.placed.wrapping_add(u64::from(length));
        Ok(())
    }

    /// Hands over what is placed: barrier, write pointer, barrier, doorbell. Does
    /// nothing where nothing is new. Padding brings a submission that would be too
    /// short to the length that the engine wants, which
    /// [`place_packet`](CommandRing::place_packet) has kept free.
    pub fn submit<O: Os>(&mut self, os: &O) {
        if self.placed == self.submitted {
            return;
        }
        let missing = self.missing_after(0);
        let to_end = self.dwords_to_end();
        self.pad(missing.min(to_end));
        self.pad(missing.saturating_sub(to_end));
        let value = self.form.write_pointer(self.placed, self.mask);
        os.wmb_device();
        self.pointers.set_write_pointer(value);
        os.wmb_device();
        self.pointers.ring_doorbell(value);
        self.submitted = self.placed;
    }

    /// Where the next dword goes.
    fn place(&self) -> u32 {
        self.placed as u32 & self.mask
    }

    fn dwords_to_end(&self) -> u32 {
        self.mask.saturating_sub(self.place()).saturating_add(1)
    }

    /// Whether so many dwords fit now, with what a submission of them would lack.
    fn keep_free(&self, dwords: u32) -> Result<(), NotPlaced> {
        let needed = dwords.saturating_add(self.missing_after(dwords));
        if needed > self.free_dwords() { Err(NotPlaced::Full) } else { Ok(()) }
    }

    /// Dwords that a submission of what is placed and `more` lacks.
    fn missing_after(&self, more: u32) -> u32 {
        let length = self.placed.wrapping_sub(self.submitted).saturating_add(u64::from(more));
        u64::from(self.least).saturating_sub(length) as u32
    }

    /// Fills so many dwords, none beyond the ring's end, with no-operations.
    fn pad(&mut self, dwords: u32) {
        let mut left = dwords;
        while left > 0 {
            let (header, length) = match self.form.engine {
                // Not the long form, which not all firmware knows.
                CommandEngine::Copy => (sdma::NOP[0], 1),
                CommandEngine::Compute => {
                    let length = left.min(pm4::LONGEST);
                    (pm4::nop(length).unwrap_or_default(), length)
                }
            };
            if let Some(word) = self.words.as_ref().get(self.place() as usize) {
                word.store(header, Ordering::Relaxed);
            }
            self.placed = self.placed.wrapping_add(u64::from(length));
            left = left.saturating_sub(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::watching::{Seen, Watching};
    use alloc::vec;
    use alloc::vec::Vec;
    use core::sync::atomic::AtomicU64;

    #[derive(Debug, Default)]
    struct Pointers {
        read: AtomicU32,
        write: AtomicU64,
        doorbell: AtomicU64,
    }

    impl CommandPointers for Pointers {
        fn read_pointer(&self) -> u32 {
            self.read.load(Ordering::SeqCst)
        }

        fn set_write_pointer(&self, value: u64) {
            self.write.store(value, Ordering::SeqCst);
        }

        fn ring_doorbell(&self, value: u64) {
            self.doorbell.store(value, Ordering::SeqCst);
        }
    }

    type Ring<'w> = CommandRing<&'w [AtomicU32], &'w Pointers>;

    const SIZE: usize = 256;

    fn words(count: usize) -> Vec<AtomicU32> {
        (0..count).map(|_| AtomicU32::new(0xdead_beef)).collect()
    }

    fn read(words: &[AtomicU32]) -> Vec<u32> {
        words.iter().map(|word| word.load(Ordering::SeqCst)).collect()
    }

    fn ring<'w>(
        words: &'w [AtomicU32],
        pointers: &'w Pointers,
        engine: CommandEngine,
        doorbell: DoorbellType,
        least: u32,
    ) -> Ring<'w> {
        CommandRing::new(words, pointers, engine, doorbell, least).unwrap()
    }

    fn quiet() -> Watching<impl Fn(), ()> {
        Watching::new(|| ())
    }

    #[test]
    fn placed_is_not_submitted() {
        let (words, pointers) = (words(SIZE), Pointers::default());
        let mut ring = ring(&words, &pointers, CommandEngine::Compute, DoorbellType::V2_0, 1);
        ring.place_packet(&[1, 2, 3]).unwrap();
        ring.place_parts(&[4], &[5, 6]).unwrap();
        assert_eq!(read(&words[..7]), [1, 2, 3, 4, 5, 6, 0xdead_beef]);
        assert_eq!(pointers.write.load(Ordering::SeqCst), 0);
        assert_eq!(ring.free_dwords(), 249);
        let os = quiet();
        ring.submit(&os);
        assert_eq!(pointers.write.load(Ordering::SeqCst), 6);
        assert_eq!(pointers.doorbell.load(Ordering::SeqCst), 6);
        assert!(!ring.is_drained());
        pointers.read.store(6, Ordering::SeqCst);
        assert!(ring.is_drained());
        assert_eq!(ring.free_dwords(), 255);
        // Nothing new rings no doorbell.
        pointers.doorbell.store(77, Ordering::SeqCst);
        ring.submit(&os);
        ring.place_packet(&[]).unwrap();
        ring.submit(&os);
        assert_eq!(pointers.doorbell.load(Ordering::SeqCst), 77);
    }

    #[test]
    fn memory_then_barrier_then_write_pointer_then_barrier_then_doorbell() {
        for (engine, value) in [(CommandEngine::Compute, 3), (CommandEngine::Copy, 12)] {
            let (words, pointers) = (words(SIZE), Pointers::default());
            let os = Watching::new(|| Seen {
                body: words[2].load(Ordering::SeqCst),
                header: words[0].load(Ordering::SeqCst),
                write_pointer: pointers.write.load(Ordering::SeqCst),
                doorbell: pointers.doorbell.load(Ordering::SeqCst),
            });
            let mut ring = ring(&words, &pointers, engine, DoorbellType::V2_0, 1);
            ring.place_packet(&[5, 6, 7]).unwrap();
            ring.submit(&os);
            let before = Seen { body: 7, header: 5, write_pointer: 0, doorbell: 0 };
            assert_eq!(os.seen(), [before, Seen { write_pointer: value, ..before }]);
            assert_eq!(pointers.doorbell.load(Ordering::SeqCst), value);
        }
    }

    #[test]
    fn a_packet_at_the_end_begins_anew() {
        for (engine, padding) in [
            (CommandEngine::Compute, vec![0xc001_1000, 0xdead_beef, 0xdead_beef]),
            (CommandEngine::Copy, vec![0, 0, 0]),
        ] {
            let (words, pointers) = (words(SIZE), Pointers::default());
            let os = quiet();
            let mut ring = ring(&words, &pointers, engine, DoorbellType::V1_0, 1);
            ring.place_packet(&[9; 253]).unwrap();
            ring.submit(&os);
            let unit = if engine == CommandEngine::Copy { 4 } else { 1 };
            pointers.read.store(253 * unit, Ordering::SeqCst);
            ring.place_packet(&[1, 2, 3, 4]).unwrap();
            ring.submit(&os);
            assert_eq!(read(&words[253..]), padding, "{engine:?}");
            assert_eq!(read(&words[..5]), [1, 2, 3, 4, 9]);
            // Wrapped, since the doorbell has 32 bits.
            assert_eq!(pointers.write.load(Ordering::SeqCst), u64::from(4 * unit));
        }
    }

    #[test]
    fn one_dword_of_padding_and_a_packet_that_just_fits() {
        let (words, pointers) = (words(SIZE), Pointers::default());
        let mut ring = ring(&words, &pointers, CommandEngine::Compute, DoorbellType::V2_0, 1);
        ring.place_packet(&[9; 255]).unwrap();
        ring.submit(&quiet());
        pointers.read.store(255, Ordering::SeqCst);
        ring.place_packet(&[1, 2]).unwrap();
        assert_eq!(read(&words[255..]), [0xffff_1000]);
        assert_eq!(read(&words[..2]), [1, 2]);
        ring.submit(&quiet());
        pointers.read.store(2, Ordering::SeqCst);
        // Up to the end to the dword, no padding.
        ring.place_packet(&[3; 254]).unwrap();
        ring.place_packet(&[4]).unwrap();
        assert_eq!(ring.place_packet(&[5]), Err(NotPlaced::Full));
        ring.submit(&quiet());
        assert_eq!(pointers.write.load(Ordering::SeqCst), 512 + 1);
        assert_eq!(read(&words[..3]), [4, 2, 3]);
    }

    #[test]
    fn long_padding_is_made_of_the_longest_nops() {
        let size = 1 << 16;
        let (words, pointers) = (words(size), Pointers::default());
        let mut ring = ring(&words, &pointers, CommandEngine::Compute, DoorbellType::V2_0, 1);
        ring.place_packet(&[9; 10]).unwrap();
        ring.submit(&quiet());
        pointers.read.store(10, Ordering::SeqCst);
        assert_eq!(ring.place_packet(&vec![1; size - 2]), Err(NotPlaced::Full));
        ring.submit(&quiet());
        assert_eq!(pointers.write.load(Ordering::SeqCst), 1 << 16);
        let mut place = 10;
        for (header, length) in [
            (0xfffe_1000, 0x4000),
            (0xfffe_1000, 0x4000),
            (0xfffe_1000, 0x4000),
            (0xfff4_1000, 0x3ff6),
        ] {
            assert_eq!(words[place].load(Ordering::SeqCst), header);
            place += length;
        }
        assert_eq!(place, size);
        pointers.read.store(0, Ordering::SeqCst);
        assert_eq!(ring.place_packet(&vec![1; size - 2]), Ok(()));
    }

    #[test]
    fn a_packet_as_long_as_the_ring_arrives_wherever_the_ring_stands() {
        let (words, pointers) = (words(SIZE), Pointers::default());
        let mut ring = ring(&words, &pointers, CommandEngine::Copy, DoorbellType::V2_0, 1);
        assert_eq!(ring.place_packet(&[1; 256]), Err(NotPlaced::TooLarge));
        ring.place_packet(&[1; 100]).unwrap();
        ring.submit(&quiet());
        // Not even the padding fits: a ring may not be filled to the last dword.
        assert_eq!(ring.place_packet(&[2; 255]), Err(NotPlaced::Full));
        ring.submit(&quiet());
        assert_eq!(pointers.write.load(Ordering::SeqCst), 400);
        // Now it does, and goes along.
        pointers.read.store(400, Ordering::SeqCst);
        assert_eq!(ring.place_packet(&[2; 255]), Err(NotPlaced::Full));
        ring.submit(&quiet());
        assert_eq!(pointers.write.load(Ordering::SeqCst), 1024);
        pointers.read.store(1024, Ordering::SeqCst);
        ring.place_packet(&[2; 255]).unwrap();
        ring.submit(&quiet());
        assert_eq!(read(&words[..255]), [2; 255]);
    }

    #[test]
    fn short_submissions_are_brought_to_length() {
        let (words, pointers) = (words(SIZE), Pointers::default());
        let os = quiet();
        let mut ring = ring(&words, &pointers, CommandEngine::Copy, DoorbellType::V2_0, 64);
        ring.place_packet(&[1; 3]).unwrap();
        ring.submit(&os);
        assert_eq!(pointers.write.load(Ordering::SeqCst), 256);
        assert_eq!(read(&words[..64])[3..], [0; 61]);
        // What is long enough already stays.
        ring.place_packet(&[1; 65]).unwrap();
        ring.submit(&os);
        assert_eq!(pointers.write.load(Ordering::SeqCst), 256 + 260);
        // 126 are free, the padding of the submission included.
        assert_eq!(ring.free_dwords(), 126);
        ring.place_packet(&[1; 60]).unwrap();
        ring.submit(&os);
        ring.place_packet(&[1; 1]).unwrap_err();
        ring.submit(&os);
        assert_eq!(ring.free_dwords(), 62);
        // Over the end.
        pointers.read.store(193 * 4, Ordering::SeqCst);
        ring.place_packet(&[1; 2]).unwrap();
        ring.submit(&os);
        assert_eq!(pointers.write.load(Ordering::SeqCst), (193 + 64) * 4);
        assert_eq!(read(&words[..1]), [0]);
    }

    #[test]
    fn sizes_that_no_ring_has() {
        let pointers = Pointers::default();
        for (size, least) in [(0, 1), (128, 1), (300, 1), (256, 256)] {
            let words = words(size);
            let ring = CommandRing::new(
                &words[..],
                &pointers,
                CommandEngine::Copy,
                DoorbellType::V2_0,
                least,
            );
            assert!(ring.is_none(), "{size} {least}");
        }
    }

    #[test]
    fn which_engines_want_long_submissions() {
        for (target, expected) in [
            (80_003, 1),
            (90_000, 64),
            (90_004, 64),
            (90_006, 1),
            (90_010, 1),
            (90_012, 64),
            (90_402, 1),
            (100_000, 1),
        ] {
            let version = GfxVersion::from_target_version(target);
            assert_eq!(least_submission_dwords(version, CommandEngine::Copy), expected);
            assert_eq!(least_submission_dwords(version, CommandEngine::Compute), 1);
        }
    }
}
