//! Four producers on one small AQL ring, an engine on a thread of its own: nothing
//! is lost, doubled or torn, each producer's packets keep their order, and the last
//! doorbell tells of the last packet.

use std::sync::atomic::Ordering;
use std::thread;

use hsakmt_core::queue::aql_ring::{AqlPacket, AqlRing, NotPlaced};
use hsakmt_core::queue::pointers::DoorbellType;
use hsakmt_linux_shim::Linux;
use hsakmt_rings::{AqlMemory, Random};

const PRODUCERS: u32 = 4;
const EACH: u32 = 50_000;

fn packet(producer: u32, number: u32) -> AqlPacket {
    let rest =
        core::array::from_fn(|at| u64::from(producer) << 48 | u64::from(number) << 8 | at as u64);
    AqlPacket { first: producer << 16 | 0x1502, second: number, rest }
}

fn produce(ring: &AqlRing<&[hsakmt_core::queue::aql_ring::AqlSlot], &AqlMemory>, producer: u32) {
    let mut random = Random::new(u64::from(producer) * 977 + 5);
    let mut sent = 0;
    while sent < EACH {
        let count = (1 + random.below(3) as u32).min(EACH - sent);
        let packets: Vec<AqlPacket> =
            (sent..sent + count).map(|number| packet(producer, number)).collect();
        let placed = match &packets[..] {
            [one] => ring.submit(&Linux, one),
            all => ring.submit_all(&Linux, all),
        };
        match placed {
            Ok(_) => sent += count,
            Err(NotPlaced::Full) => thread::yield_now(),
            Err(NotPlaced::TooLarge) => unreachable!(),
        }
    }
}

fn stress(doorbell: DoorbellType, places: usize) {
    let memory = AqlMemory::new(places);
    let ring = AqlRing::new(&memory.slots[..], &memory, doorbell).expect("a ring");
    let mut next = [0; PRODUCERS as usize];
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let ring = &ring;
            scope.spawn(move || produce(ring, producer));
        }
        let mut expected_index = 0;
        while expected_index < u64::from(PRODUCERS * EACH) {
            let read = memory.run(u64::MAX, |index, found| {
                assert_eq!(index, expected_index);
                expected_index += 1;
                let producer = found.first >> 16;
                let number = &mut next[producer as usize];
                assert_eq!(found, packet(producer, *number));
                *number += 1;
            });
            if read == 0 {
                thread::yield_now();
            }
        }
    });
    assert_eq!(next, [EACH; PRODUCERS as usize]);
    assert!(ring.is_drained());
    let all = u64::from(PRODUCERS * EACH);
    let told = memory.doorbell.load(Ordering::Relaxed);
    match doorbell {
        // The engine takes the largest, in whatever order they come.
        DoorbellType::V2_0 => assert!(told < all),
        // These may only rise.
        DoorbellType::V1_0 => assert_eq!(told, all),
        DoorbellType::Pre1_0 => assert_eq!(told, all % (2 * places as u64) * 16),
    }
    if doorbell != DoorbellType::V2_0 {
        assert_eq!(memory.hardware_write.load(Ordering::Relaxed), all);
    }
}

#[test]
fn indices() {
    stress(DoorbellType::V2_0, 8);
    stress(DoorbellType::V2_0, 4);
}

#[test]
fn legacy_doorbells() {
    stress(DoorbellType::V1_0, 8);
    stress(DoorbellType::Pre1_0, 16);
}
