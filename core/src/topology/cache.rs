//! Caches.

/// Which of up to 256 processors share a cache.
///
/// The kernel prints 0 and 1 only (`kfd_topology.c`), so a bit each is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SiblingMap {
    words: [u64; 4],
}

impl SiblingMap {
    /// How many processors the map covers (`HSA_CPU_SIBLINGS`).
    pub const LENGTH: usize = 256;

    /// Marks a processor as sharing; beyond the map it is left out.
    pub fn insert(&mut self, processor: usize) {
        if let Some(word) = self.words.get_mut(processor / 64) {
            *word |= 1 << (processor % 64);
        }
    }

    /// Whether the processor shares the cache.
    #[must_use]
    pub fn contains(&self, processor: usize) -> bool {
        self.words.get(processor / 64).is_some_and(|word| word >> (processor % 64) & 1 == 1)
    }

    /// The entries in order, 0 or 1, all 256 of them.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().flat_map(|word| (0..64).map(move |bit| (word >> bit & 1) as u32))
    }

    /// The entries as bits, the first in the lowest bit of the first word.
    #[must_use]
    pub const fn words(&self) -> &[u64; 4] {
        &self.words
    }
}

/// A cache of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cache {
    /// The first processor that uses it: SIMD id of a GPU, APIC id of a CPU.
    pub processor_id_low: u32,
    /// 1 to 4.
    pub level: u32,
    /// KiB for a GPU's cache, bytes for a CPU's that the tree does not list.
    pub size: u32,
    /// Bytes.
    pub cache_line_size: u32,
    /// Cache lines per tag.
    pub cache_lines_per_tag: u32,
    /// Ways.
    pub association: u32,
    /// Latency in ns.
    pub latency: u32,
    /// `HsaCacheType` bits: 0 data, 1 instruction, 2 CPU, 3 GPU.
    pub cache_type: u32,
    /// Bytes that may be set aside for persisting accesses.
    pub persisting_cache_size_max: u32,
    /// Who shares it.
    pub sibling_map: SiblingMap,
}
