//! Sets of the GPUs of one kernel process object.

use crate::process::GPUS_MAX;

/// A set of GPUs, by their places in the kernel's list of the process object.
/// That list never changes, and has at most 64 places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GpuSet(u64);

const _: () = assert!(GPUS_MAX == u64::BITS as usize);

impl GpuSet {
    /// No GPU.
    pub(crate) const NONE: GpuSet = GpuSet(0);

    /// One GPU; no GPU for a place beyond the list.
    pub(crate) const fn one(place: u8) -> GpuSet {
        match 1_u64.checked_shl(place as u32) {
            Some(bit) => GpuSet(bit),
            None => GpuSet(0),
        }
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn with(self, other: GpuSet) -> GpuSet {
        GpuSet(self.0 | other.0)
    }

    pub(crate) const fn without(self, other: GpuSet) -> GpuSet {
        GpuSet(self.0 & !other.0)
    }

    pub(crate) const fn contains(self, other: GpuSet) -> bool {
        other.0 & !self.0 == 0
    }

    /// The places as a range, if they lie side by side.
    #[inline]
    pub(crate) const fn run(self) -> Option<core::ops::Range<usize>> {
        let start = self.0.trailing_zeros();
        let Some(run) = self.0.checked_shr(start) else { return None };
        if run & run.wrapping_add(1) != 0 {
            return None;
        }
        Some(start as usize..start.wrapping_add(run.trailing_ones()) as usize)
    }

    /// The places, ascending.
    pub(crate) fn places(self) -> impl Iterator<Item = u8> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let place = rest.trailing_zeros();
            rest &= rest.checked_sub(1)?;
            Some(place as u8)
        })
    }

    /// The first `count` of the places.
    pub(crate) fn first(self, count: usize) -> GpuSet {
        self.places().take(count).fold(GpuSet::NONE, |set, place| set.with(GpuSet::one(place)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn places_come_in_order() {
        let set = GpuSet::one(63).with(GpuSet::one(0)).with(GpuSet::one(7));
        assert_eq!(set.places().collect::<Vec<_>>(), [0, 7, 63]);
        assert_eq!(set.first(2).places().collect::<Vec<_>>(), [0, 7]);
        assert_eq!(GpuSet::NONE.places().count(), 0);
        assert_eq!(set.run(), None);
        assert_eq!(set.first(1).run(), Some(0..1));
        assert_eq!(GpuSet::one(62).with(GpuSet::one(63)).run(), Some(62..64));
        assert_eq!(GpuSet::NONE.run(), None);
        assert_eq!(GpuSet::one(64), GpuSet::NONE);
    }

    #[test]
    fn sets_contain_their_parts() {
        let both = GpuSet::one(1).with(GpuSet::one(2));
        assert!(both.contains(GpuSet::one(2)) && both.contains(GpuSet::NONE));
        assert!(!GpuSet::one(2).contains(both));
        assert_eq!(both.without(GpuSet::one(1)), GpuSet::one(2));
        assert!(GpuSet::NONE.is_empty() && !both.is_empty());
    }
}
