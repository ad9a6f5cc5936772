//! A million packets of random sizes through a ring of 64 KiB, read now and then
//! by an engine that stops anywhere: all arrive, whole and in order.

use hsakmt_core::queue::aql_ring::{AqlPacket, AqlRing, NotPlaced};
use hsakmt_core::queue::command_ring::CommandRing;
use hsakmt_core::queue::pointers::{CommandEngine, DoorbellType};
use hsakmt_linux_shim::Linux;
use hsakmt_rings::{AqlMemory, CommandMemory, NaiveCommandEngine, Random};

const PACKETS: u32 = 1_000_000;
const RING_BYTES: usize = 64 << 10;

/// Lengths in dwords: short ones mostly, long ones now and then, and a few that
/// need nearly the whole ring.
fn length(random: &mut Random, shortest: u64) -> usize {
    let longest = (RING_BYTES / 4 - 1) as u64;
    let extra = match random.below(10_000) {
        0 => random.below(longest - shortest + 1),
        1..=20 => random.below(1_000),
        21..=1_000 => random.below(60),
        _ => random.below(12),
    };
    (shortest + extra) as usize
}

/// The packet with this number: its header, the number, a row that follows from it.
fn packet(engine: CommandEngine, number: u32, length: usize, into: &mut Vec<u32>) {
    into.clear();
    match engine {
        CommandEngine::Compute => into.push(0xc000_3700 | (length as u32 - 2) << 16),
        CommandEngine::Copy => into.extend([2, number ^ 0xffff, number, length as u32 - 5]),
    }
    while into.len() < length {
        into.push(number.wrapping_mul(31).wrapping_add(into.len() as u32));
    }
}

fn commands(engine: CommandEngine, doorbell: DoorbellType, least: u32) {
    let memory = CommandMemory::new(RING_BYTES);
    let mut ring =
        CommandRing::new(&memory.words[..], &memory, engine, doorbell, least).expect("a ring");
    let mut reader = NaiveCommandEngine::new(&memory, engine, doorbell);
    let shortest = if engine == CommandEngine::Copy { 5 } else { 2 };
    // Two generators with one seed: what is sent and what is expected.
    let (mut sizes, mut expected_sizes) = (Random::new(7), Random::new(7));
    let mut random = Random::new(11);
    let (mut words, mut expected) = (Vec::new(), Vec::new());
    let (mut sent, mut received, mut full) = (0, 0, 0_u32);

    let mut check = |words: &[u32]| {
        let length = length(&mut expected_sizes, shortest);
        packet(engine, received, length, &mut expected);
        assert_eq!(words, expected, "packet {received}");
        received += 1;
    };
    while sent < PACKETS {
        let length = length(&mut sizes, shortest);
        packet(engine, sent, length, &mut words);
        while let Err(why) = ring.place_packet(&words) {
            assert_eq!(why, NotPlaced::Full);
            full += 1;
            ring.submit(&Linux);
            assert!(reader.run(1 + random.below(50), &mut check), "nothing to read, yet full");
        }
        sent += 1;
        if random.below(4) == 0 {
            ring.submit(&Linux);
        }
        if random.below(64) == 0 {
            reader.run(random.below(120), &mut check);
        }
    }
    ring.submit(&Linux);
    while reader.run(1_000, &mut check) {}
    assert!(ring.is_drained());
    assert_eq!(received, PACKETS);
    assert!(full > 100, "the ring was hardly ever full: {full}");
}

#[test]
fn pm4_with_64_bit_pointers() {
    commands(CommandEngine::Compute, DoorbellType::V2_0, 1);
}

#[test]
fn pm4_with_32_bit_pointers() {
    commands(CommandEngine::Compute, DoorbellType::V1_0, 1);
}

#[test]
fn sdma_with_64_bit_pointers() {
    commands(CommandEngine::Copy, DoorbellType::V2_0, 1);
}

#[test]
fn sdma_with_64_bit_pointers_and_long_submissions() {
    commands(CommandEngine::Copy, DoorbellType::V2_0, 64);
}

#[test]
fn sdma_with_32_bit_pointers() {
    commands(CommandEngine::Copy, DoorbellType::Pre1_0, 1);
}

fn aql_packet(number: u32) -> AqlPacket {
    let rest = core::array::from_fn(|at| u64::from(number) * 0x1_0001 + at as u64);
    AqlPacket { first: 0x1_1502, second: !number, rest }
}

fn aql(doorbell: DoorbellType) {
    let memory = AqlMemory::new(RING_BYTES / 64);
    let ring = AqlRing::new(&memory.slots[..], &memory, doorbell).expect("a ring");
    let mut random = Random::new(3);
    let (mut sent, mut received, mut full) = (0_u32, 0_u32, 0_u32);
    let mut check = |index: u64, packet: AqlPacket| {
        assert_eq!(index, u64::from(received));
        assert_eq!(packet, aql_packet(received));
        received += 1;
    };
    while sent < PACKETS {
        let count = match random.below(1_000) {
            0 => 1 + random.below(1024) as u32,
            1..=300 => 1 + random.below(40) as u32,
            _ => 1,
        }
        .min(PACKETS - sent);
        let packets: Vec<AqlPacket> = (sent..sent + count).map(aql_packet).collect();
        loop {
            let placed = match &packets[..] {
                [one] => ring.submit(&Linux, one),
                all => ring.submit_all(&Linux, all),
            };
            match placed {
                Ok(index) => break assert_eq!(index, u64::from(sent)),
                Err(NotPlaced::TooLarge) => unreachable!(),
                Err(NotPlaced::Full) => {
                    full += 1;
                    assert!(memory.run(1 + random.below(500), &mut check) > 0);
                }
            }
        }
        sent += count;
        let told = memory.doorbell.load(std::sync::atomic::Ordering::Relaxed);
        let expected = match doorbell {
            DoorbellType::V2_0 => u64::from(sent) - 1,
            DoorbellType::V1_0 => u64::from(sent),
            DoorbellType::Pre1_0 => u64::from(sent) % 2048 * 16,
        };
        assert_eq!(told, expected);
        if random.below(30) == 0 {
            memory.run(random.below(200), &mut check);
        }
    }
    while memory.run(1_000, &mut check) > 0 {}
    assert!(ring.is_drained());
    assert_eq!(received, PACKETS);
    assert!(full > 100, "the ring was hardly ever full: {full}");
}

#[test]
fn aql_with_indices() {
    aql(DoorbellType::V2_0);
}

#[test]
fn aql_with_legacy_doorbells() {
    aql(DoorbellType::V1_0);
    aql(DoorbellType::Pre1_0);
}
