//! Sorting without a path to a panic.
//!
//! The standard library's sorts panic when they notice that an order
//! contradicts itself; the optimiser does not see that ours never does, so the
//! artefact would keep the path (`ci/no-panic`).

use core::cell::Cell;

/// Sorts by a key, in place, in O(n log n) steps (heapsort). Equal values end up
/// in any order.
pub(crate) fn sort_by_key<T: Copy, K: Ord>(values: &mut [T], key: impl Fn(T) -> K) {
    let values = Cell::from_mut(values).as_slice_of_cells();
    let count = values.len();
    for top in (0..count / 2).rev() {
        sift_down(values, top, &key);
    }
    for end in (1..count).rev() {
        let Some(heap) = values.get(..end) else { return };
        if let (Some(first), Some(last)) = (values.first(), values.get(end)) {
            exchange(first, last);
        }
        sift_down(heap, 0, &key);
    }
}

/// Sorts in ascending order, as [`sort_by_key`].
pub(crate) fn sort<T: Copy + Ord>(values: &mut [T]) {
    sort_by_key(values, |value| value);
}

fn exchange<T: Copy>(one: &Cell<T>, other: &Cell<T>) {
    let value = one.get();
    one.set(other.get());
    other.set(value);
}

/// Lets the value at `top` sink in a heap whose other values are in order.
fn sift_down<T: Copy, K: Ord>(heap: &[Cell<T>], mut top: usize, key: &impl Fn(T) -> K) {
    loop {
        let left = top.saturating_mul(2).saturating_add(1);
        let right = left.saturating_add(1);
        let (Some(parent), Some(mut child)) = (heap.get(top), heap.get(left)) else { return };
        top = left;
        if let Some(other) = heap.get(right) {
            if key(other.get()) > key(child.get()) {
                child = other;
                top = right;
            }
        }
        if key(child.get()) <= key(parent.get()) {
            return;
        }
        exchange(parent, child);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    #[test]
    fn sorts_like_the_standard_library() {
        let mut state = 1u32;
        for length in (0..70).chain([1000]) {
            let mut values: Vec<u32> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state >> 24
                })
                .collect();
            let mut wanted = values.clone();
            wanted.sort_unstable();
            sort(&mut values);
            assert_eq!(values, wanted);
            sort(&mut values);
            assert_eq!(values, wanted);
            sort_by_key(&mut values, core::cmp::Reverse);
            wanted.reverse();
            assert_eq!(values, wanted);
        }
    }
}
