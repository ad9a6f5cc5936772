//! The SVM ranges of a process object: kernel-rules section 2, "SVM and XNACK"
//! (kfd_svm.c).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A location that was not said, KFD_IOCTL_SVM_LOCATION_UNDEFINED.
pub(crate) const UNDEFINED: u32 = u32::MAX;
/// KFD_IOCTL_SVM_FLAG_HOST_ACCESS and _COHERENT: what a new range has.
const NEW_FLAGS: u32 = 1 << 0 | 1 << 1;
/// KFD_IOCTL_SVM_FLAG_GPU_RO.
pub(crate) const GPU_READS_ONLY: u32 = 1 << 3;
/// KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED.
pub(crate) const ALWAYS_MAPPED: u32 = 1 << 6;
/// The base-2 logarithm of the pages that a new range moves together.
pub(crate) const NEW_GRANULARITY: u8 = 9;
/// Of the smallest VRAM, the share that a new range has at most (kfd_svm.c,
/// svm_range_set_max_pages), and the limits of that in bytes.
const SHARE_OF_VRAM: u64 = 32;
const SHORTEST_LIMIT: u64 = 2 << 20;
const LONGEST_LIMIT: u64 = 1 << 30;

/// What new ranges are aligned to and have at most, in bytes: a power of two.
pub(crate) fn longest_range(vram_of_gpus: impl Iterator<Item = u64>) -> u64 {
    let limit = |vram: u64| (vram / SHARE_OF_VRAM).clamp(SHORTEST_LIMIT, LONGEST_LIMIT);
    1 << vram_of_gpus.map(limit).min().unwrap_or(LONGEST_LIMIT).ilog2()
}

/// What SET_ATTR sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// 0, a gpu_id or [`UNDEFINED`].
    pub preferred: u32,
    pub prefetched: u32,
    pub flags: u32,
    pub granularity: u8,
    /// Bit n is the object's nth GPU.
    pub access: u64,
    pub in_place: u64,
}

impl Attributes {
    /// Those of a new range, to which these GPUs have access.
    pub(crate) fn new(access: u64) -> Attributes {
        Attributes {
            preferred: UNDEFINED,
            prefetched: UNDEFINED,
            flags: NEW_FLAGS,
            granularity: NEW_GRANULARITY,
            access,
            in_place: 0,
        }
    }

    /// The GPUs that may access, bit by bit.
    pub(crate) fn accessible(&self) -> u64 {
        self.access | self.in_place
    }
}

/// One range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SvmRange {
    pub length: u64,
    pub attributes: Attributes,
    /// SET_ATTR made it or changed it; otherwise a GPU's access did.
    pub registered: bool,
    /// It is in the page tables of the GPUs that may access it.
    pub mapped: bool,
}

/// The ranges by start address; no two overlap.
#[derive(Debug, Clone, Default)]
pub(crate) struct SvmRanges {
    ranges: BTreeMap<u64, SvmRange>,
    bytes: u64,
}

impl SvmRanges {
    /// Bytes of all ranges.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &SvmRange)> {
        self.ranges.iter().map(|(at, range)| (*at, range))
    }

    /// The range that has this address.
    pub(crate) fn at(&self, address: u64) -> Option<(u64, &SvmRange)> {
        let (at, range) = self.ranges.range(..=address).next_back()?;
        (at + range.length > address).then_some((*at, range))
    }

    /// The ranges that have a part of this one.
    pub(crate) fn overlapping(
        &self,
        start: u64,
        end: u64,
    ) -> impl Iterator<Item = (u64, &SvmRange)> {
        let first = self.at(start).map_or(start, |(at, _)| at);
        self.ranges.range(first..end.max(first)).map(|(at, range)| (*at, range))
    }

    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        self.overlapping(start, end).next().is_some()
    }

    pub(crate) fn overlapping_mut(
        &mut self,
        start: u64,
        end: u64,
    ) -> impl Iterator<Item = (u64, &mut SvmRange)> {
        let first = self.at(start).map_or(start, |(at, _)| at);
        self.ranges.range_mut(first..end.max(first)).map(|(at, range)| (*at, range))
    }

    /// What of an interval has no range.
    pub(crate) fn gaps(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut from = start;
        for (at, range) in self.overlapping(start, end) {
            if at > from {
                gaps.push((from, at));
            }
            from = at + range.length;
        }
        if from < end {
            gaps.push((from, end));
        }
        gaps
    }

    /// Fills the gaps of an interval with new ranges, see [`longest_range`].
    pub(crate) fn fill(
        &mut self,
        (start, end): (u64, u64),
        longest: u64,
        attributes: Attributes,
        registered: bool,
    ) {
        for (mut from, to) in self.gaps(start, end) {
            self.bytes += to - from;
            while from < to {
                let next = to.min((from / longest + 1) * longest);
                let length = next - from;
                self.ranges
                    .insert(from, SvmRange { length, attributes, registered, mapped: false });
                from = next;
            }
        }
    }

    /// Splits ranges at the borders of an interval.
    pub(crate) fn split(&mut self, start: u64, end: u64) {
        for border in [start, end] {
            let Some((at, range)) = self.at(border) else { continue };
            if at < border {
                let before = border - at;
                let rest = SvmRange { length: range.length - before, ..*range };
                self.ranges.insert(border, rest);
                if let Some(range) = self.ranges.get_mut(&at) {
                    range.length = before;
                }
            }
        }
    }

    /// Takes an interval out; returns how many bytes of ranges it had.
    pub(crate) fn remove(&mut self, start: u64, end: u64) -> u64 {
        if !self.overlaps(start, end) {
            return 0;
        }
        self.split(start, end);
        let inside: Vec<u64> = self.overlapping(start, end).map(|(at, _)| at).collect();
        let removed: u64 =
            inside.iter().filter_map(|at| self.ranges.remove(at)).map(|range| range.length).sum();
        self.bytes -= removed;
        removed
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{Attributes, SvmRanges, longest_range};

    const LONGEST: u64 = 1 << 20;

    fn made(intervals: &[(u64, u64)]) -> SvmRanges {
        let mut ranges = SvmRanges::default();
        for &(start, end) in intervals {
            ranges.fill((start, end), LONGEST, Attributes::new(0), true);
        }
        ranges
    }

    fn listed(ranges: &SvmRanges) -> Vec<(u64, u64)> {
        ranges.iter().map(|(at, range)| (at, at + range.length)).collect()
    }

    #[test]
    fn gaps_are_filled_and_what_is_there_stays() {
        let ranges = made(&[(2, 4), (6, 7), (0, 10)]);
        assert_eq!(listed(&ranges), [(0, 2), (2, 4), (4, 6), (6, 7), (7, 10)]);
        assert_eq!(ranges.bytes(), 10);
        assert_eq!(ranges.gaps(0, 12), [(10, 12)]);
    }

    #[test]
    fn long_ranges_come_in_aligned_pieces() {
        let ranges = made(&[(LONGEST - 4096, 2 * LONGEST + 4096)]);
        let pieces =
            [(LONGEST - 4096, LONGEST), (LONGEST, 2 * LONGEST), (2 * LONGEST, 2 * LONGEST + 4096)];
        assert_eq!(listed(&ranges), pieces);
    }

    #[test]
    fn the_smallest_vram_limits_a_range() {
        for (vram, expected) in [
            (&[][..], 1 << 30),
            (&[64 << 30], 1 << 30),
            (&[24 << 30], 512 << 20),
            (&[64 << 30, 8 << 30], 256 << 20),
            (&[16 << 20], 2 << 20),
        ] {
            assert_eq!(longest_range(vram.iter().copied()), expected, "{vram:?}");
        }
    }

    #[test]
    fn a_part_is_split_off_and_taken_out() {
        let mut ranges = made(&[(0, 10), (20, 30)]);
        ranges.split(3, 25);
        assert_eq!(listed(&ranges), [(0, 3), (3, 10), (20, 25), (25, 30)]);
        assert_eq!(ranges.remove(2, 22), 10);
        assert_eq!(listed(&ranges), [(0, 2), (22, 25), (25, 30)]);
        assert_eq!((ranges.bytes(), ranges.remove(5, 20)), (10, 0));
    }

    #[test]
    fn overlap_is_of_at_least_a_byte() {
        let ranges = made(&[(10, 20)]);
        for (start, end, expected) in
            [(0, 10, false), (0, 11, true), (12, 13, true), (19, 30, true), (20, 30, false)]
        {
            assert_eq!(ranges.overlaps(start, end), expected, "{start}, {end}");
        }
        assert!(ranges.at(9).is_none() && ranges.at(20).is_none());
        assert_eq!(ranges.at(19).unwrap().0, 10);
    }
}
