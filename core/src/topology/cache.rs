//! Caches.

use super::properties::{Properties, property_keys};

property_keys! {
    PROCESSOR_ID_LOW = "processor_id_low",
    LEVEL = "level",
    SIZE = "size",
    CACHE_LINE_SIZE = "cache_line_size",
    CACHE_LINES_PER_TAG = "cache_lines_per_tag",
    ASSOCIATION = "association",
    LATENCY = "latency",
    TYPE = "type",
    PERSISTING_CACHE_SIZE_MAX = "persisting_cache_size_max",
    SIBLING_MAP = "sibling_map",
}

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

    /// The processors that share the cache, ascending. Costs nothing for those
    /// that do not.
    pub fn sharing(&self) -> impl Iterator<Item = usize> + '_ {
        (0usize..).step_by(64).zip(self.words).flat_map(|(first, word)| {
            let mut rest = word;
            core::iter::from_fn(move || {
                let lowest = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest.wrapping_sub(1);
                Some(first.wrapping_add(lowest as usize))
            })
        })
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

impl SiblingMap {
    /// Reads the kernel's list, `1,0,0,1`: comma-separated numbers, of which
    /// the first belongs to the first processor. Ends at the first thing that is
    /// neither.
    fn from_list(text: &[u8]) -> SiblingMap {
        let mut map = SiblingMap::default();
        let mut processor: usize = 0;
        for &byte in text {
            match byte {
                b'0' => {}
                b'1'..=b'9' => map.insert(processor),
                b',' => processor = processor.saturating_add(1),
                _ => break,
            }
        }
        map
    }
}

impl Cache {
    /// Reads a cache's `properties`.
    pub(super) fn from_properties(content: &[u8]) -> Cache {
        let mut sibling_map = SiblingMap::default();
        let text = Properties::read(content, &KEYS, in_order, |place, value| {
            if place == key::SIBLING_MAP {
                sibling_map = SiblingMap::from_list(value);
            }
        });
        if let Some(1..) = text.given(key::SIBLING_MAP) {
            sibling_map.insert(0);
        }
        Cache {
            processor_id_low: text.word(key::PROCESSOR_ID_LOW),
            level: text.word(key::LEVEL),
            size: text.word(key::SIZE),
            cache_line_size: text.word(key::CACHE_LINE_SIZE),
            cache_lines_per_tag: text.word(key::CACHE_LINES_PER_TAG),
            association: text.word(key::ASSOCIATION),
            latency: text.word(key::LATENCY),
            cache_type: text.word(key::TYPE),
            persisting_cache_size_max: text.word(key::PERSISTING_CACHE_SIZE_MAX),
            sibling_map,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn siblings(map: &SiblingMap) -> Vec<usize> {
        let siblings: Vec<usize> =
            (0..SiblingMap::LENGTH).filter(|&processor| map.contains(processor)).collect();
        assert!(map.sharing().eq(siblings.iter().copied()));
        siblings
    }

    #[test]
    fn every_place_of_the_map() {
        let mut map = SiblingMap::default();
        for processor in [0, 63, 64, 127, 255] {
            map.insert(processor);
        }
        assert_eq!(siblings(&map), [0, 63, 64, 127, 255]);
        assert_eq!(siblings(&SiblingMap { words: [u64::MAX; 4] }).len(), SiblingMap::LENGTH);
        assert_eq!(siblings(&SiblingMap::default()), []);
    }

    #[test]
    fn a_file_of_the_kernel() {
        let cache = Cache::from_properties(
            b"processor_id_low 2147487744\nlevel 2\nsize 4096\ncache_line_size 128\n\
              cache_lines_per_tag 1\nassociation 16\nlatency 7\ntype 9\nsibling_map 1,1,0,1\n",
        );
        assert_eq!(siblings(&cache.sibling_map), [0, 1, 3]);
        assert_eq!(
            cache,
            Cache {
                processor_id_low: 0x8000_1000,
                level: 2,
                size: 4096,
                cache_line_size: 128,
                cache_lines_per_tag: 1,
                association: 16,
                latency: 7,
                cache_type: 9,
                persisting_cache_size_max: 0,
                sibling_map: cache.sibling_map,
            }
        );
    }

    #[test]
    fn one_processor_and_a_later_key() {
        let cache = Cache::from_properties(b"sibling_map 1\npersisting_cache_size_max 5\n");
        assert_eq!(siblings(&cache.sibling_map), [0]);
        assert_eq!(cache.persisting_cache_size_max, 5);
        let cache = Cache::from_properties(b"sibling_map 0\n");
        assert_eq!(siblings(&cache.sibling_map), []);
    }

    #[test]
    fn maps_of_every_length() {
        assert_eq!(siblings(&SiblingMap::from_list(b"0,0,1")), [2]);
        assert_eq!(siblings(&SiblingMap::from_list(b"1,0,\x001,1")), [0]);
        assert_eq!(siblings(&SiblingMap::from_list(b"1,,12,1x,1")), [0, 2, 3]);
        let mut long = Vec::new();
        for _ in 0..1000 {
            long.extend_from_slice(b"1,");
        }
        let map = SiblingMap::from_list(&long);
        assert_eq!(siblings(&map).len(), 256);
        assert_eq!(map.iter().sum::<u32>(), 256);
        assert_eq!(map.words(), &[u64::MAX; 4]);
    }
}
