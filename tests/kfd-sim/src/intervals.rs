//! Intervals that may overlap one another, found by what they overlap.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Half-open intervals with a key each. They are kept by size class, a power of
/// two, so that a search looks back no further than that far in each class.
#[derive(Debug, Clone, Default)]
pub(crate) struct Intervals {
    classes: BTreeMap<u32, BTreeMap<(u64, u64), u64>>,
}

/// The exponent of the smallest power of two that is not below the length.
fn class(length: u64) -> u32 {
    length.checked_sub(1).map_or(0, |rest| u64::BITS - rest.leading_zeros())
}

impl Intervals {
    pub(crate) fn insert(&mut self, start: u64, end: u64, key: u64) {
        let class = class(end.saturating_sub(start));
        self.classes.entry(class).or_default().insert((start, key), end);
    }

    pub(crate) fn remove(&mut self, start: u64, end: u64, key: u64) {
        let class = class(end.saturating_sub(start));
        if let Some(intervals) = self.classes.get_mut(&class) {
            intervals.remove(&(start, key));
            if intervals.is_empty() {
                self.classes.remove(&class);
            }
        }
    }

    /// The keys of the intervals that overlap this one.
    pub(crate) fn overlapping(&self, start: u64, end: u64) -> Vec<u64> {
        let mut found = Vec::new();
        for (&class, intervals) in &self.classes {
            let longest = 1_u64.checked_shl(class).unwrap_or(u64::MAX);
            let candidates = intervals.range((start.saturating_sub(longest), 0)..(end, 0));
            found.extend(candidates.filter(|&(_, &to)| to > start).map(|(&(_, key), _)| key));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::Intervals;

    #[test]
    fn the_same_as_a_list_finds() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        let mut intervals = Intervals::default();
        let mut list: Vec<(u64, u64, u64)> = Vec::new();
        for key in 0..2000 {
            if next(3) == 0 && !list.is_empty() {
                let (start, end, key) = list.swap_remove(next(list.len() as u64) as usize);
                intervals.remove(start, end, key);
            } else {
                let start = next(1000);
                let longest = 1 << next(9);
                let end = start + 1 + next(longest);
                intervals.insert(start, end, key);
                list.push((start, end, key));
            }
            let start = next(1100);
            let end = start + 1 + next(60);
            let mut found = intervals.overlapping(start, end);
            let mut expected: Vec<u64> = list
                .iter()
                .filter(|&&(from, to, _)| from < end && start < to)
                .map(|&(_, _, key)| key)
                .collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}
