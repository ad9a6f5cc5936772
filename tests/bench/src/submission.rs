//! Packets submitted to an AQL ring in memory, as a queue's owner does it.
//!
//! # Safety
//! No other function of a program has the name that is exported here, and the
//! memory that a ring is made of outlives the ring.
#![allow(unsafe_code, reason = "a function with a name of its own, a ring in memory")]

use std::hint::black_box;
use std::sync::atomic::AtomicU64;

use hsakmt_core::queue::aql_ring::{AqlPacket, AqlRing, AqlSlot};
use hsakmt_core::queue::mapped::{Mapped, MappedAqlPointers};
use hsakmt_core::queue::pointers::DoorbellType;
use hsakmt_linux_shim::Linux;

/// How many packets are submitted; the ring has room for all.
pub const PACKETS: usize = 16384;

type Ring = AqlRing<Mapped<AqlSlot>, MappedAqlPointers>;

/// Submits [`PACKETS`] packets to a ring that nobody reads. Returns how many were
/// taken.
///
/// # Panics
/// When the ring cannot be made.
#[must_use]
pub fn submit_packets() -> usize {
    let slots: Vec<AqlSlot> = (0..PACKETS).map(|_| AqlSlot::default()).collect();
    let words: [AtomicU64; 3] = Default::default();
    let [write, read, doorbell] =
        words.each_ref().map(|word| (&raw const *word).expose_provenance());
    let first = slots.as_ptr().expose_provenance();
    // SAFETY: slots and words outlive the ring, and nobody else touches them.
    let (places, pointers) = unsafe {
        let pointers = MappedAqlPointers::new(write, read, 0, doorbell, DoorbellType::V2_0);
        (Mapped::new(first, PACKETS).expect("places"), pointers.expect("pointers"))
    };
    let ring = AqlRing::new(places, pointers, DoorbellType::V2_0).expect("a ring");
    ring.invalidate();
    counted(&ring, &AqlPacket { first: 0x1502, second: 1, rest: [2; 7] })
}

/// What is counted, under a name that an instruction counter can be given.
// SAFETY: see the head of the file.
#[unsafe(export_name = "hsakmt_bench_counted_submission")]
#[inline(never)]
fn counted(ring: &Ring, packet: &AqlPacket) -> usize {
    (0..PACKETS).filter(|_| ring.submit(&Linux, black_box(packet)).is_ok()).count()
}
