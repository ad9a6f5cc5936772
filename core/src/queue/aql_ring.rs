//! A ring of AQL packets with any number of producers.
//!
//! A producer takes places, writes the packets without the word that makes them
//! valid, then those words, then rings the doorbell. The engine stops at a
//! place whose header says INVALID, so places may become valid in any order, and
//! whoever comes last rings for all: no producer waits for another. The engine
//! makes a header INVALID again before it gives the place back by raising the read
//! index (HSA Platform System Architecture, AQL; `amd_aql_queue.cpp` of ROCr).
//!
//! # Doorbells before gfx9
//! They name the first place that is *not* written, so an older value after a
//! newer one would take packets back; and the write pointer that the hardware
//! reads is a number of its own, which must not run ahead of the doorbell. Both
//! are raised by one thread at a time, for all that have published by then: see
//! [`Turn`].

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::pointers::{DoorbellType, SharedNumber};
use super::reservation::take_places;
use crate::seam::Os;

/// Dwords of a packet.
pub const AQL_PACKET_DWORDS: u32 = 16;

/// The first 16 bits of a place that holds no packet: packet type 1 (`hsa.h`,
/// HSA_PACKET_TYPE_INVALID).
pub const INVALID_HEADER: u16 = 1;

/// A packet: 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct AqlPacket {
    /// Header in the low half, and what shares its word: `setup` of a dispatch.
    pub first: u32,
    /// The second dword.
    pub second: u32,
    /// Dwords 2 to 15, in pairs, the lower dword first.
    pub rest: [u64; 7],
}

/// A place in the ring: a packet as atomics. The word with the header is stored
/// last, in one piece.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct AqlSlot {
    first: AtomicU32,
    second: AtomicU32,
    rest: [AtomicU64; 7],
}

impl AqlSlot {
    /// A place without a packet.
    #[must_use]
    pub const fn invalid() -> AqlSlot {
        AqlSlot {
            first: AtomicU32::new(INVALID_HEADER as u32),
            second: AtomicU32::new(0),
            rest: [const { AtomicU64::new(0) }; 7],
        }
    }

    /// Makes the place INVALID, as the engine does after a packet.
    #[inline]
    pub fn invalidate(&self) {
        self.first.store(u32::from(INVALID_HEADER), Ordering::Release);
    }

    /// The packet, if its header is not INVALID.
    #[must_use]
    pub fn packet(&self) -> Option<AqlPacket> {
        let first = self.first.load(Ordering::Acquire);
        if first & 0xff == u32::from(INVALID_HEADER) {
            return None;
        }
        let mut rest = [0; 7];
        for (to, from) in rest.iter_mut().zip(&self.rest) {
            *to = from.load(Ordering::Relaxed);
        }
        Some(AqlPacket { first, second: self.second.load(Ordering::Relaxed), rest })
    }

    /// Stores everything but the word with the header.
    #[inline]
    fn write_body(&self, packet: &AqlPacket) {
        self.second.store(packet.second, Ordering::Relaxed);
        for (to, &from) in self.rest.iter().zip(&packet.rest) {
            to.store(from, Ordering::Relaxed);
        }
    }

    /// Stores the word with the header.
    #[inline]
    fn publish(&self, packet: &AqlPacket) {
        self.first.store(packet.first, Ordering::Release);
    }
}

/// Write index, read index and doorbell of an AQL ring.
pub trait AqlPointers {
    /// [`AtomicU64`] but for models.
    type Number: SharedNumber;

    /// The index of the next place that no producer has taken
    /// (`write_dispatch_id`). From gfx9 on the hardware reads it too.
    fn write_index(&self) -> &Self::Number;

    /// The index of the oldest place that the engine has not given back
    /// (`read_dispatch_id`).
    fn read_index(&self) -> &Self::Number;

    /// Before gfx9: stores the write pointer that the hardware reads, in packets
    /// (`max_legacy_doorbell_dispatch_id_plus_1`).
    fn set_hardware_write_pointer(&self, packets: u64);

    /// Stores the doorbell; the low 32 bits where doorbells have 32.
    fn ring_doorbell(&self, value: u64);
}

/// Why packets were not taken. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotPlaced {
    /// Not enough free places: try again when the engine has read more.
    Full,
    /// More than the ring has places at all.
    TooLarge,
}

/// A ring of AQL packets.
#[derive(Debug)]
pub struct AqlRing<M, P> {
    slots: M,
    mask: u64,
    pointers: P,
    doorbell: Doorbell,
}

#[derive(Debug)]
enum Doorbell {
    /// 64 bits, the index of the newest packet.
    Index,
    /// 32 bits, raised in turns.
    Legacy(LegacyUnit, Turn<AtomicU64>),
}

/// What a doorbell of 32 bits counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LegacyUnit {
    /// Dwords, within the ring twice in a row.
    Dwords,
    /// Packets.
    Packets,
}

impl<M: AsRef<[AqlSlot]>, P: AqlPointers> AqlRing<M, P> {
    /// A ring over these places; their number is a power of two, else `None`.
    ///
    /// The places are as the driver's memory comes, zeroes, which is a valid packet
    /// type: [`invalidate`](AqlRing::invalidate) them before the queue is created.
    #[must_use]
    pub fn new(slots: M, pointers: P, doorbell: DoorbellType) -> Option<AqlRing<M, P>> {
        let capacity = slots.as_ref().len();
        if !capacity.is_power_of_two() {
            return None;
        }
        let doorbell = match doorbell {
            DoorbellType::V2_0 => Doorbell::Index,
            DoorbellType::V1_0 => Doorbell::Legacy(LegacyUnit::Packets, Turn::default()),
            DoorbellType::Pre1_0 => Doorbell::Legacy(LegacyUnit::Dwords, Turn::default()),
        };
        Some(AqlRing { mask: (capacity as u64).saturating_sub(1), slots, pointers, doorbell })
    }

    /// Makes every place INVALID. Only before the queue exists.
    pub fn invalidate(&self) {
        self.slots.as_ref().iter().for_each(AqlSlot::invalidate);
    }

    /// The pointers.
    pub const fn pointers(&self) -> &P {
        &self.pointers
    }

    /// Whether the engine has given back every place that was taken.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        // In this order: what is read was written before.
        let read = self.pointers.read_index().load();
        read == self.pointers.write_index().load()
    }

    /// Submits one packet and returns its index.
    ///
    /// # Errors
    /// [`NotPlaced::Full`].
    #[inline]
    pub fn submit<O: Os>(&self, os: &O, packet: &AqlPacket) -> Result<u64, NotPlaced> {
        let index = self.take(1)?;
        // Places are a power of two, so the index is within; `ok_or` says so.
        let slot = self.slot(index).ok_or(NotPlaced::TooLarge)?;
        slot.write_body(packet);
        os.wmb_device();
        slot.publish(packet);
        self.ring(os, index);
        Ok(index)
    }

    /// Submits packets that follow one another in the ring, all or none, and
    /// returns the index of the first. With none it returns where the next would
    /// have gone and rings nothing.
    ///
    /// # Errors
    /// [`NotPlaced`].
    pub fn submit_all<O: Os>(&self, os: &O, packets: &[AqlPacket]) -> Result<u64, NotPlaced> {
        let count = packets.len() as u64;
        if count > self.capacity() {
            return Err(NotPlaced::TooLarge);
        }
        let first = self.take(count)?;
        let Some(last) = count.checked_sub(1) else {
            return Ok(first);
        };
        self.with_slots(first, packets, AqlSlot::write_body);
        os.wmb_device();
        self.with_slots(first, packets, AqlSlot::publish);
        self.ring(os, first.wrapping_add(last));
        Ok(first)
    }

    fn capacity(&self) -> u64 {
        self.mask.saturating_add(1)
    }

    #[inline]
    fn take(&self, count: u64) -> Result<u64, NotPlaced> {
        let (written, read) = (self.pointers.write_index(), self.pointers.read_index());
        take_places(written, read, self.capacity(), count).ok_or(NotPlaced::Full)
    }

    #[inline]
    fn slot(&self, index: u64) -> Option<&AqlSlot> {
        self.slots.as_ref().get((index & self.mask) as usize)
    }

    fn with_slots(&self, first: u64, packets: &[AqlPacket], f: fn(&AqlSlot, &AqlPacket)) {
        let mut index = first;
        for packet in packets {
            if let Some(slot) = self.slot(index) {
                f(slot, packet);
            }
            index = index.wrapping_add(1);
        }
    }

    /// Tells the engine of the packet at `newest`, whose header is stored.
    #[inline]
    fn ring<O: Os>(&self, os: &O, newest: u64) {
        match &self.doorbell {
            Doorbell::Index => {
                os.wmb_device();
                self.pointers.ring_doorbell(newest);
            }
            Doorbell::Legacy(unit, turn) => self.ring_legacy(os, *unit, turn, newest),
        }
    }

    #[cold]
    fn ring_legacy<O: Os>(&self, os: &O, unit: LegacyUnit, turn: &Turn<AtomicU64>, newest: u64) {
        turn.raise(newest.wrapping_add(1), |packets| {
            os.wmb_device();
            self.pointers.set_hardware_write_pointer(packets);
            os.wmb_device();
            let value = match unit {
                LegacyUnit::Packets => packets,
                LegacyUnit::Dwords => {
                    let twice = self.mask.wrapping_shl(1) | 1;
                    (packets & twice).saturating_mul(u64::from(AQL_PACKET_DWORDS))
                }
            };
            self.pointers.ring_doorbell(value);
        });
    }
}

/// Lets one thread at a time tell a growing number to the outside, for all.
///
/// A thread that finds another at it leaves its number behind; the other sees it
/// when it gives the turn up and takes another round. So numbers leave in rising
/// order, the largest always leaves, and nobody waits.
#[derive(Debug, Default)]
pub struct Turn<N> {
    /// The largest number that anybody has brought.
    largest: N,
    /// 1 while a thread is at it.
    taken: N,
    /// What was told last. Only touched by the thread at it.
    told: N,
}

impl<N: SharedNumber> Turn<N> {
    /// With these three numbers, all 0.
    pub const fn new(largest: N, taken: N, told: N) -> Turn<N> {
        Turn { largest, taken, told }
    }

    /// Sees to it that `number` or a larger one is told, by this thread or by
    /// the one that is at it.
    pub fn raise(&self, number: u64, mut tell: impl FnMut(u64)) {
        self.largest.raise(number);
        loop {
            // An exchange, so that giving the turn up sees that somebody came.
            if self.taken.swap(1) == 1 {
                return;
            }
            let largest = self.largest.load();
            if largest > self.told.load() {
                tell(largest);
                self.told.swap(largest);
            }
            self.taken.swap(0);
            if self.largest.load() == largest {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::watching::{Seen, Watching};
    use alloc::vec::Vec;

    #[derive(Debug, Default)]
    struct Pointers {
        write: AtomicU64,
        read: AtomicU64,
        hardware: AtomicU64,
        doorbell: AtomicU64,
    }

    impl AqlPointers for Pointers {
        type Number = AtomicU64;

        fn write_index(&self) -> &AtomicU64 {
            &self.write
        }

        fn read_index(&self) -> &AtomicU64 {
            &self.read
        }

        fn set_hardware_write_pointer(&self, packets: u64) {
            self.hardware.store(packets, Ordering::SeqCst);
        }

        fn ring_doorbell(&self, value: u64) {
            self.doorbell.store(value, Ordering::SeqCst);
        }
    }

    type Ring = AqlRing<Vec<AqlSlot>, Pointers>;

    fn ring(places: usize, doorbell: DoorbellType) -> Ring {
        let slots = (0..places).map(|_| AqlSlot::default()).collect();
        let ring = AqlRing::new(slots, Pointers::default(), doorbell).unwrap();
        ring.invalidate();
        ring
    }

    fn packet(number: u32) -> AqlPacket {
        let rest = core::array::from_fn(|at| (u64::from(number) << 32) + at as u64);
        AqlPacket { first: 0x1_0502, second: number, rest }
    }

    /// Reads what is there, as the engine does.
    fn consume(ring: &Ring) -> Vec<AqlPacket> {
        let mut packets = Vec::new();
        loop {
            let read = ring.pointers.read.load(Ordering::SeqCst);
            let slot = &ring.slots[(read & ring.mask) as usize];
            let Some(packet) = slot.packet() else { return packets };
            packets.push(packet);
            slot.invalidate();
            ring.pointers.read.store(read + 1, Ordering::SeqCst);
        }
    }

    fn doorbell(ring: &Ring) -> u64 {
        ring.pointers.doorbell.load(Ordering::SeqCst)
    }

    #[test]
    fn packets_lie_in_memory_as_the_engine_reads_them() {
        assert_eq!(size_of::<AqlSlot>(), 64);
        assert_eq!(size_of::<AqlPacket>(), 64);
        assert_eq!(core::mem::offset_of!(AqlPacket, second), 4);
        assert_eq!(core::mem::offset_of!(AqlPacket, rest), 8);
        assert_eq!(core::mem::offset_of!(AqlSlot, rest), 8);
    }

    #[test]
    fn until_full_and_on() {
        let os = Watching::new(|| ());
        let ring = ring(4, DoorbellType::V2_0);
        for number in 0..4 {
            assert_eq!(ring.submit(&os, &packet(number)), Ok(u64::from(number)));
            assert_eq!(doorbell(&ring), u64::from(number));
        }
        assert_eq!(ring.submit(&os, &packet(4)), Err(NotPlaced::Full));
        assert!(!ring.is_drained());
        assert_eq!(consume(&ring), [0, 1, 2, 3].map(packet));
        assert!(ring.is_drained());
        assert_eq!(ring.submit(&os, &packet(4)), Ok(4));
        assert_eq!(consume(&ring), [packet(4)]);
    }

    #[test]
    fn several_at_once_over_the_end() {
        let os = Watching::new(|| ());
        let ring = ring(4, DoorbellType::V2_0);
        assert_eq!(ring.submit_all(&os, &[0, 1, 2].map(packet)), Ok(0));
        assert_eq!(consume(&ring).len(), 3);
        assert_eq!(ring.submit_all(&os, &[3, 4, 5].map(packet)), Ok(3));
        assert_eq!(doorbell(&ring), 5);
        assert_eq!(ring.submit_all(&os, &[6, 7].map(packet)), Err(NotPlaced::Full));
        assert_eq!(ring.submit_all(&os, &[0; 5].map(packet)), Err(NotPlaced::TooLarge));
        assert_eq!(ring.submit_all(&os, &[]), Ok(6));
        assert_eq!(doorbell(&ring), 5);
        assert_eq!(consume(&ring), [3, 4, 5].map(packet));
    }

    #[test]
    fn body_then_barrier_then_header_then_barrier_then_doorbell() {
        for doorbell_type in [DoorbellType::V2_0, DoorbellType::V1_0, DoorbellType::Pre1_0] {
            let ring = ring(4, doorbell_type);
            ring.pointers.doorbell.store(99, Ordering::SeqCst);
            let os = Watching::new(|| Seen {
                body: ring.slots[0].second.load(Ordering::SeqCst),
                header: ring.slots[0].first.load(Ordering::SeqCst),
                write_pointer: ring.pointers.hardware.load(Ordering::SeqCst),
                doorbell: doorbell(&ring),
            });
            ring.submit(&os, &packet(7)).unwrap();
            let before = Seen { body: 7, header: 1, write_pointer: 0, doorbell: 99 };
            let valid = Seen { header: packet(7).first, ..before };
            let mut expected = alloc::vec![before, valid];
            if doorbell_type != DoorbellType::V2_0 {
                expected.push(Seen { write_pointer: 1, ..valid });
            }
            assert_eq!(os.seen(), expected, "{doorbell_type:?}");
            assert_ne!(doorbell(&ring), 99);
        }
    }

    #[test]
    fn legacy_doorbells_count_dwords_of_two_rings_or_packets() {
        for (doorbell_type, unit, wrap) in
            [(DoorbellType::Pre1_0, 16, 8), (DoorbellType::V1_0, 1, u64::MAX)]
        {
            let os = Watching::new(|| ());
            let ring = ring(4, doorbell_type);
            for index in 0..20 {
                assert_eq!(ring.submit(&os, &packet(1)), Ok(index));
                assert_eq!(doorbell(&ring), (index + 1) % wrap * unit, "{doorbell_type:?}");
                assert_eq!(ring.pointers.hardware.load(Ordering::SeqCst), index + 1);
                consume(&ring);
            }
        }
    }

    #[test]
    fn sizes_that_no_ring_has() {
        for places in [0, 3, 1000] {
            let slots: Vec<AqlSlot> = (0..places).map(|_| AqlSlot::invalid()).collect();
            assert!(AqlRing::new(slots, Pointers::default(), DoorbellType::V2_0).is_none());
        }
    }

    #[test]
    fn a_turn_tells_what_came_meanwhile() {
        let turn = Turn::<AtomicU64>::default();
        let mut told = Vec::new();
        turn.raise(5, |number| {
            told.push(number);
            if number == 5 {
                turn.raise(9, |_| panic!("the turn is taken"));
                turn.raise(7, |_| panic!("the turn is taken"));
            }
        });
        assert_eq!(told, [5, 9]);
        turn.raise(8, |_| panic!("nothing new"));
    }
}
