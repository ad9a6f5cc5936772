//! Naive engines that read rings, to hold the library's producers against.
//!
//! They know of a ring what hardware does: memory, pointers, doorbell, and the
//! length of each packet by its header.

#![deny(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hsakmt_core::queue::aql_ring::{AqlPacket, AqlPointers, AqlSlot};
use hsakmt_core::queue::pointers::{CommandEngine, CommandPointers, DoorbellType};

/// Random numbers: xorshift64*.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// A number below `bound`.
    ///
    /// # Panics
    /// For 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % bound
    }
}

/// Memory of a ring of commands and its pointers.
#[derive(Debug)]
pub struct CommandMemory {
    /// The ring.
    pub words: Vec<AtomicU32>,
    /// The read pointer's low half.
    pub read: AtomicU32,
    /// The write pointer.
    pub write: AtomicU64,
    /// The doorbell.
    pub doorbell: AtomicU64,
}

impl CommandMemory {
    /// A ring of so many bytes, with some rubbish in it.
    #[must_use]
    pub fn new(bytes: usize) -> CommandMemory {
        CommandMemory {
            words: (0..bytes / 4).map(|_| AtomicU32::new(0xbad0_bad0)).collect(),
            read: AtomicU32::new(0),
            write: AtomicU64::new(0),
            doorbell: AtomicU64::new(0),
        }
    }
}

impl CommandPointers for CommandMemory {
    fn read_pointer(&self) -> u32 {
        self.read.load(Ordering::Acquire)
    }

    fn set_write_pointer(&self, value: u64) {
        self.write.store(value, Ordering::Release);
    }

    fn ring_doorbell(&self, value: u64) {
        self.doorbell.store(value, Ordering::Release);
    }
}

/// An engine that reads a ring of commands.
#[derive(Debug)]
pub struct NaiveCommandEngine<'m> {
    memory: &'m CommandMemory,
    engine: CommandEngine,
    doorbell: DoorbellType,
    /// Dwords read since the start.
    position: u64,
}

impl<'m> NaiveCommandEngine<'m> {
    /// An engine at the start of the ring.
    #[must_use]
    pub const fn new(
        memory: &'m CommandMemory,
        engine: CommandEngine,
        doorbell: DoorbellType,
    ) -> NaiveCommandEngine<'m> {
        NaiveCommandEngine { memory, engine, doorbell, position: 0 }
    }

    /// Reads at most `most` packets that the doorbell told of, and hands each but
    /// no-operations to `take`. Returns whether anything was read.
    ///
    /// # Panics
    /// On a doorbell that differs from the write pointer or is beyond the ring, a
    /// packet that crosses the ring's end or the doorbell, or is of no known kind.
    pub fn run(&mut self, most: u64, mut take: impl FnMut(&[u32])) -> bool {
        let size = self.memory.words.len() as u64;
        let told = self.memory.doorbell.load(Ordering::Acquire);
        assert_eq!(told, self.memory.write.load(Ordering::Acquire));
        let unit = if self.engine == CommandEngine::Copy { 4 } else { 1 };
        assert_eq!(told % unit, 0);
        let end = if self.doorbell == DoorbellType::V2_0 {
            told / unit
        } else {
            assert!(told / unit < size, "a pointer that wraps is within the ring");
            self.position + (told / unit).wrapping_sub(self.position) % size
        };
        assert!(end >= self.position && end - self.position < size, "{end} {}", self.position);
        let start = self.position;
        for _ in 0..most {
            if self.position == end {
                break;
            }
            let place = (self.position % size) as usize;
            let header = self.memory.words[place].load(Ordering::Relaxed);
            let (length, nothing) = match self.engine {
                CommandEngine::Compute => pm4_length(header),
                CommandEngine::Copy => {
                    let count = self.memory.words.get(place + 3);
                    sdma_length(header, count.map_or(0, |word| word.load(Ordering::Relaxed)))
                }
            };
            assert!(self.position + length as u64 <= end, "a packet beyond the doorbell");
            assert!(place + length <= size as usize, "a packet over the ring's end");
            if !nothing {
                let packet: Vec<u32> = self.memory.words[place..place + length]
                    .iter()
                    .map(|word| word.load(Ordering::Relaxed))
                    .collect();
                take(&packet);
            }
            self.position += length as u64;
        }
        // PM4's pointer wraps on every chip, SDMA's where the doorbell does.
        let read = match (self.engine, self.doorbell) {
            (CommandEngine::Copy, DoorbellType::V2_0) => self.position * 4,
            (CommandEngine::Copy, _) => self.position % size * 4,
            (CommandEngine::Compute, _) => self.position % size,
        };
        self.memory.read.store(read as u32, Ordering::Release);
        self.position != start
    }
}

/// Dwords of a PM4 packet, and whether it is a no-operation.
fn pm4_length(header: u32) -> (usize, bool) {
    assert_eq!(header >> 30, 3, "a packet of type 3: {header:#x}");
    let (count, nothing) = (header >> 16 & 0x3fff, header >> 8 & 0xff == 0x10);
    if nothing && count == 0x3fff { (1, true) } else { (count as usize + 2, nothing) }
}

/// Dwords of an SDMA packet, no-operation or write, and whether it is the first.
fn sdma_length(header: u32, count: u32) -> (usize, bool) {
    match header & 0xff {
        0 => ((header >> 16 & 0x3fff) as usize + 1, true),
        2 => ((count & 0xf_ffff) as usize + 5, false),
        other => panic!("an operation {other}"),
    }
}

/// Memory of an AQL ring and its pointers.
#[derive(Debug)]
pub struct AqlMemory {
    /// The places.
    pub slots: Vec<AqlSlot>,
    /// The producers' write index.
    pub write: AtomicU64,
    /// The engine's read index.
    pub read: AtomicU64,
    /// The write pointer of hardware before gfx9.
    pub hardware_write: AtomicU64,
    /// The doorbell.
    pub doorbell: AtomicU64,
}

impl AqlMemory {
    /// A ring of so many places.
    #[must_use]
    pub fn new(places: usize) -> AqlMemory {
        AqlMemory {
            slots: (0..places).map(|_| AqlSlot::invalid()).collect(),
            write: AtomicU64::new(0),
            read: AtomicU64::new(0),
            hardware_write: AtomicU64::new(0),
            doorbell: AtomicU64::new(0),
        }
    }

    /// Reads at most `most` packets from the read index on, in order, as far as they
    /// are valid. Returns how many there were.
    pub fn run(&self, most: u64, mut take: impl FnMut(u64, AqlPacket)) -> u64 {
        let mask = self.slots.len() as u64 - 1;
        for done in 0..most {
            let index = self.read.load(Ordering::Relaxed);
            let slot = &self.slots[(index & mask) as usize];
            let Some(packet) = slot.packet() else { return done };
            take(index, packet);
            slot.invalidate();
            self.read.store(index + 1, Ordering::Release);
        }
        most
    }
}

/// The pointers alone, so that a ring can lend its places to the engine.
impl AqlPointers for &AqlMemory {
    type Number = AtomicU64;

    fn write_index(&self) -> &AtomicU64 {
        &self.write
    }

    fn read_index(&self) -> &AtomicU64 {
        &self.read
    }

    fn set_hardware_write_pointer(&self, packets: u64) {
        self.hardware_write.store(packets, Ordering::Release);
    }

    fn ring_doorbell(&self, value: u64) {
        self.doorbell.store(value, Ordering::Release);
    }
}
