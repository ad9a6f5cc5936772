//! An ordered map in one block of memory: a height-balanced tree over a slab.
//!
//! It exists because `alloc`'s own map cannot be refused memory, and because
//! each subtree here knows a [`Summary`] of its values, by which free space is
//! found by size and overlaps by address without a walk over everything.
//!
//! Places ([`Place`]) stay valid until their entry is removed. After
//! [`Tree::reserve`], as many insertions as were asked for cannot fail.

use alloc::vec::Vec;

use crate::error::Error;
use crate::fallible::try_push;

/// What a subtree knows of its entries.
pub(super) trait Summary<K, V>: Copy + PartialEq {
    /// Of no entry.
    const NONE: Self;
    /// Of one entry.
    fn of(key: &K, value: &V) -> Self;
    /// Of two subtrees together.
    fn join(self, other: Self) -> Self;
}

impl<K, V> Summary<K, V> for () {
    const NONE: () = ();
    fn of(_: &K, _: &V) {}
    fn join(self, (): ()) {}
}

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(u32);

const NIL: Place = Place(u32::MAX);

impl Place {
    /// Where nothing is, ever.
    pub(super) const NOWHERE: Place = NIL;
}

/// More than the height of any tree with 2^32 entries (1.44 log2 n).
const HEIGHT_MAX: usize = 48;

/// An entry without its value: what look-ups walk over lies close together.
#[derive(Debug)]
struct Node<K, S> {
    key: K,
    left: Place,
    right: Place,
    /// 0: a vacant node; `left` is the next one.
    height: u32,
    /// Of the entry alone.
    own: S,
    /// Of the subtree.
    summary: S,
}

/// The way from the root to an entry.
struct Way {
    /// Places, each with whether the way goes left there.
    steps: [(u32, bool); HEIGHT_MAX],
    length: usize,
}

impl Way {
    const fn new() -> Way {
        Way { steps: [(0, false); HEIGHT_MAX], length: 0 }
    }

    fn push(&mut self, place: Place, left: bool) {
        if let Some(step) = self.steps.get_mut(self.length) {
            *step = (place.0, left);
            self.length = self.length.saturating_add(1);
        }
    }

    fn pop(&mut self) -> Option<Place> {
        let (place, _) = self.last()?;
        self.length = self.length.saturating_sub(1);
        Some(place)
    }

    fn last(&self) -> Option<(Place, bool)> {
        let &(place, left) = self.steps.get(self.length.checked_sub(1)?)?;
        Some((Place(place), left))
    }
}

/// An ordered map.
#[derive(Debug)]
pub(super) struct Tree<K, V, S = ()> {
    nodes: Vec<Node<K, S>>,
    /// The values, at the same places; none at a vacant one.
    values: Vec<Option<V>>,
    root: Place,
    vacant: Place,
    length: usize,
}

impl<K: Ord + Copy, V, S: Summary<K, V>> Tree<K, V, S> {
    pub(super) const fn new() -> Self {
        Tree { nodes: Vec::new(), values: Vec::new(), root: NIL, vacant: NIL, length: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    fn node(&self, place: Place) -> Option<&Node<K, S>> {
        self.nodes.get(place.0 as usize)
    }

    fn node_mut(&mut self, place: Place) -> Option<&mut Node<K, S>> {
        self.nodes.get_mut(place.0 as usize)
    }

    /// The entry at a place.
    #[inline]
    pub(super) fn at(&self, place: Place) -> Option<(K, &V)> {
        Some((self.node(place)?.key, self.values.get(place.0 as usize)?.as_ref()?))
    }

    /// The value at a place.
    #[inline]
    pub(super) fn value(&self, place: Place) -> Option<&V> {
        self.values.get(place.0 as usize)?.as_ref()
    }

    /// The value at a place. Not for changes that its summary would see.
    #[inline]
    pub(super) fn value_mut(&mut self, place: Place) -> Option<&mut V> {
        self.values.get_mut(place.0 as usize)?.as_mut()
    }

    /// The entry with this key.
    #[inline]
    pub(super) fn find(&self, key: K) -> Option<Place> {
        let mut at = self.root;
        while let Some(node) = self.node(at) {
            if node.key == key {
                return Some(at);
            }
            at = if key < node.key { node.left } else { node.right };
        }
        None
    }

    /// The entry with the greatest key that is not above this one.
    #[inline]
    pub(super) fn floor(&self, key: K) -> Option<Place> {
        Some(self.floor_place(key)).filter(|&found| found != NIL)
    }

    /// The entry with the greatest key that is not above this one.
    #[inline]
    pub(super) fn floor_entry(&self, key: K) -> Option<(Place, K, &V)> {
        let place = self.floor_place(key);
        let (key, value) = self.at(place)?;
        Some((place, key, value))
    }

    #[inline]
    fn floor_place(&self, key: K) -> Place {
        let (mut at, mut found) = (self.root, NIL);
        while let Some(node) = self.node(at) {
            if node.key <= key {
                found = at;
                at = node.right;
            } else {
                at = node.left;
            }
        }
        found
    }

    /// The entry with the least key that is not below this one.
    pub(super) fn ceiling(&self, key: K) -> Option<Place> {
        let (mut at, mut found) = (self.root, None);
        while let Some(node) = self.node(at) {
            if node.key >= key {
                found = Some(at);
                at = node.left;
            } else {
                at = node.right;
            }
        }
        found
    }

    /// The entry with the least key of those that `suits`, where `may_hold` says
    /// of a summary whether some entry below it suits. It never says yes in vain.
    pub(super) fn first(
        &self,
        may_hold: impl Fn(S) -> bool,
        suits: impl Fn(K, &V) -> bool,
    ) -> Option<Place> {
        let mut at = self.root;
        while let Some(node) = self.node(at) {
            at = if self.node(node.left).is_some_and(|left| may_hold(left.summary)) {
                node.left
            } else if self.at(at).is_some_and(|(key, value)| suits(key, value)) {
                return Some(at);
            } else {
                node.right
            };
        }
        None
    }

    /// Calls `visit` for each entry that `suits`, in the order of keys, going only
    /// where `may_hold` says that some may be, until it breaks.
    pub(super) fn each(
        &self,
        may_hold: impl Fn(S) -> bool,
        below: impl Fn(K) -> bool,
        mut visit: impl FnMut(Place, K, &V),
    ) {
        let mut way = Way::new();
        let mut at = self.root;
        loop {
            while let Some(node) = self.node(at) {
                if !may_hold(node.summary) {
                    break;
                }
                way.push(at, true);
                at = node.left;
            }
            let Some(place) = way.pop() else { return };
            let Some(node) = self.node(place) else { return };
            if !below(node.key) {
                return;
            }
            if let Some((key, value)) = self.at(place) {
                visit(place, key, value);
            }
            at = node.right;
        }
    }

    /// Makes room for `count` more entries.
    pub(super) fn reserve(&mut self, count: usize) -> Result<(), Error> {
        let vacant = self.nodes.len().saturating_sub(self.length);
        let more = count.saturating_sub(vacant);
        if more > self.nodes.capacity().saturating_sub(self.nodes.len()) {
            self.nodes.try_reserve(more)?;
        }
        if more > self.values.capacity().saturating_sub(self.values.len()) {
            self.values.try_reserve(more)?;
        }
        Ok(())
    }

    /// Adds an entry; there is none with this key yet.
    ///
    /// # Errors
    /// NO_MEMORY, never after [`Tree::reserve`].
    pub(super) fn insert(&mut self, key: K, value: V) -> Result<Place, Error> {
        let own = S::of(&key, &value);
        let node = Node { key, left: NIL, right: NIL, height: 1, own, summary: own };
        let place = self.vacant;
        let cell = (self.nodes.get_mut(place.0 as usize), self.values.get_mut(place.0 as usize));
        let place = if let (Some(at), Some(holder)) = cell {
            self.vacant = at.left;
            *at = node;
            *holder = Some(value);
            place
        } else {
            let place = u32::try_from(self.nodes.len()).ok().filter(|&place| place != NIL.0);
            let place = place.ok_or(Error::no_memory(0))?;
            self.reserve(1)?;
            try_push(&mut self.values, Some(value))?;
            try_push(&mut self.nodes, node)?;
            Place(place)
        };
        self.length = self.length.saturating_add(1);
        let mut way = Way::new();
        let mut at = self.root;
        while let Some(node) = self.node(at) {
            let left = key < node.key;
            way.push(at, left);
            at = if left { node.left } else { node.right };
        }
        self.hang(&way, place);
        self.retrace(&mut way);
        Ok(place)
    }

    /// Removes the entry with this key.
    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let mut way = Way::new();
        let mut at = self.root;
        loop {
            let node = self.node(at)?;
            match key.cmp(&node.key) {
                core::cmp::Ordering::Equal => break,
                core::cmp::Ordering::Less => {
                    way.push(at, true);
                    at = node.left;
                }
                core::cmp::Ordering::Greater => {
                    way.push(at, false);
                    at = node.right;
                }
            }
        }
        let (left, right) = self.node(at).map(|node| (node.left, node.right))?;
        if left == NIL || right == NIL {
            self.hang(&way, if left == NIL { right } else { left });
        } else {
            // The next entry takes the place of the removed one in the tree.
            let depth = way.length;
            way.push(at, false);
            let mut next = right;
            while let Some(node) = self.node(next).filter(|node| node.left != NIL) {
                way.push(next, true);
                next = node.left;
            }
            let next_right = self.node(next).map_or(NIL, |node| node.right);
            self.hang(&way, next_right);
            let right = self.node(at).map_or(NIL, |node| node.right);
            let height = self.node(at).map_or(0, |node| node.height);
            if let Some(node) = self.node_mut(next) {
                (node.left, node.right, node.height) = (left, right, height);
            }
            if let Some(step) = way.steps.get_mut(depth) {
                *step = (next.0, false);
            }
            let whole = core::mem::replace(&mut way.length, depth);
            self.hang(&way, next);
            way.length = whole;
            // What it summarises is another entry's now: up to the root.
            return self.vacate(at, &mut way, true);
        }
        self.vacate(at, &mut way, false)
    }

    fn vacate(&mut self, at: Place, way: &mut Way, to_the_root: bool) -> Option<V> {
        let vacant = self.vacant;
        let node = self.node_mut(at)?;
        (node.left, node.height) = (vacant, 0);
        self.vacant = at;
        self.length = self.length.saturating_sub(1);
        self.retrace_as_far(way, to_the_root);
        self.values.get_mut(at.0 as usize)?.take()
    }

    /// Changes an entry without changing the order of keys.
    pub(super) fn change(&mut self, place: Place, key: K, value: V) {
        let Some(old) = self.node(place).map(|node| node.key) else { return };
        let mut way = Way::new();
        let mut at = self.root;
        while let Some(node) = self.node(at).filter(|_| at != place) {
            let left = old < node.key;
            way.push(at, left);
            at = if left { node.left } else { node.right };
        }
        if let Some(node) = self.node_mut(place) {
            (node.key, node.own) = (key, S::of(&key, &value));
        }
        if let Some(holder) = self.value_mut(place) {
            *holder = value;
        }
        way.push(place, false);
        self.retrace(&mut way);
    }

    /// Puts a subtree where a way ends.
    #[inline]
    fn hang(&mut self, way: &Way, subtree: Place) {
        match way.last() {
            None => self.root = subtree,
            Some((above, left)) => {
                if let Some(node) = self.node_mut(above) {
                    if left {
                        node.left = subtree;
                    } else {
                        node.right = subtree;
                    }
                }
            }
        }
    }

    /// Balances and summarises from the end of a way up, as far as anything changes.
    fn retrace(&mut self, way: &mut Way) {
        self.retrace_as_far(way, false);
    }

    /// The same, to the root if that is wanted.
    fn retrace_as_far(&mut self, way: &mut Way, to_the_root: bool) {
        while let Some(place) = way.pop() {
            let before = self.node(place).map(|node| (node.height, node.summary));
            let top = self.balance(place);
            if top != place {
                self.hang(way, top);
            } else if !to_the_root
                && self.node(top).map(|node| (node.height, node.summary)) == before
            {
                return;
            }
        }
    }

    fn height(&self, place: Place) -> u32 {
        self.node(place).map_or(0, |node| node.height)
    }

    /// Computes height and summary of an entry from its children.
    fn update(&mut self, place: Place) {
        let Some(node) = self.node(place) else { return };
        let part = |place: Place| {
            self.node(place).map_or((0, S::NONE), |node| (node.height, node.summary))
        };
        let ((left_height, left), (right_height, right)) = (part(node.left), part(node.right));
        let height = u32::max(left_height, right_height).saturating_add(1);
        let summary = left.join(node.own).join(right);
        if let Some(node) = self.node_mut(place) {
            (node.height, node.summary) = (height, summary);
        }
    }

    /// Balances a subtree whose halves are balanced; returns its new top.
    fn balance(&mut self, place: Place) -> Place {
        let Some((left, right)) = self.node(place).map(|node| (node.left, node.right)) else {
            return place;
        };
        let (left_height, right_height) = (self.height(left), self.height(right));
        if left_height > right_height.saturating_add(1) {
            let Some((outer, inner)) = self.node(left).map(|node| (node.left, node.right)) else {
                return place;
            };
            if self.height(outer) < self.height(inner) {
                let top = self.rotate_left(left);
                if let Some(node) = self.node_mut(place) {
                    node.left = top;
                }
            }
            return self.rotate_right(place);
        }
        if right_height > left_height.saturating_add(1) {
            let Some((inner, outer)) = self.node(right).map(|node| (node.left, node.right)) else {
                return place;
            };
            if self.height(outer) < self.height(inner) {
                let top = self.rotate_right(right);
                if let Some(node) = self.node_mut(place) {
                    node.right = top;
                }
            }
            return self.rotate_left(place);
        }
        self.update(place);
        place
    }

    fn rotate_right(&mut self, place: Place) -> Place {
        let Some(top) = self.node(place).map(|node| node.left) else { return place };
        let Some(inner) = self.node(top).map(|node| node.right) else { return place };
        if let Some(node) = self.node_mut(place) {
            node.left = inner;
        }
        self.update(place);
        if let Some(node) = self.node_mut(top) {
            node.right = place;
        }
        self.update(top);
        top
    }

    fn rotate_left(&mut self, place: Place) -> Place {
        let Some(top) = self.node(place).map(|node| node.right) else { return place };
        let Some(inner) = self.node(top).map(|node| node.left) else { return place };
        if let Some(node) = self.node_mut(place) {
            node.right = inner;
        }
        self.update(place);
        if let Some(node) = self.node_mut(top) {
            node.left = place;
        }
        self.update(top);
        top
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::collections::BTreeMap;

    /// The largest value below.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Largest(u64);

    impl Summary<u64, u64> for Largest {
        const NONE: Largest = Largest(0);
        fn of(_: &u64, value: &u64) -> Largest {
            Largest(*value)
        }
        fn join(self, other: Largest) -> Largest {
            Largest(self.0.max(other.0))
        }
    }

    type Tested = Tree<u64, u64, Largest>;

    /// Checks order, balance, heights and summaries; returns height, summary and count.
    fn check(tree: &Tested, at: Place, low: u64, high: u64) -> (u32, u64, usize) {
        let Some(node) = tree.node(at) else { return (0, 0, 0) };
        assert!(node.key >= low && node.key <= high);
        let (left, largest_left, count_left) =
            check(tree, node.left, low, node.key.saturating_sub(1));
        let (right, largest_right, count_right) =
            check(tree, node.right, node.key.saturating_add(1), high);
        assert!(left.abs_diff(right) <= 1, "balance");
        assert_eq!(node.height, left.max(right) + 1);
        let largest = largest_left.max(largest_right).max(*tree.at(at).unwrap().1);
        assert_eq!(node.summary, Largest(largest));
        (node.height, largest, count_left + count_right + 1)
    }

    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn it_is_an_ordered_map() {
        let mut tree = Tested::new();
        let mut model = BTreeMap::new();
        let mut state = 0x9e37_79b9_7f4a_7c15;
        for step in 0..60_000 {
            let key = random(&mut state) % 500;
            let value = random(&mut state) % 1000;
            match random(&mut state) % 3 {
                0 if !model.contains_key(&key) => {
                    model.insert(key, value);
                    tree.insert(key, value).unwrap();
                }
                1 => assert_eq!(tree.remove(key), model.remove(&key)),
                _ => {
                    if let Some(place) = tree.find(key) {
                        model.insert(key, value);
                        tree.change(place, key, value);
                    }
                }
            }
            assert_eq!(tree.len(), model.len());
            let found = |place: Option<Place>| place.and_then(|place| tree.at(place));
            assert_eq!(
                found(tree.floor(key)),
                model.range(..=key).next_back().map(|(k, v)| (*k, v))
            );
            assert_eq!(found(tree.ceiling(key)), model.range(key..).next().map(|(k, v)| (*k, v)));
            let first = tree.first(|Largest(most)| most >= value, |_, &held| held >= value);
            let expected = model.iter().find(|(_, held)| **held >= value).map(|(k, v)| (*k, v));
            assert_eq!(found(first), expected);
            if step % 64 == 0 {
                assert_eq!(check(&tree, tree.root, 0, u64::MAX).2, model.len());
                let mut all = Vec::new();
                tree.each(|_| true, |_| true, |_, key, &value| all.push((key, value)));
                assert!(all.iter().copied().eq(model.iter().map(|(k, v)| (*k, *v))));
            }
        }
    }

    #[test]
    fn places_stay_and_cells_are_used_again() {
        let mut tree = Tested::new();
        let kept = tree.insert(500, 5).unwrap();
        for key in 0..200 {
            tree.insert(key, key).unwrap();
        }
        for key in 0..200 {
            assert_eq!(tree.remove(key), Some(key));
        }
        assert_eq!(tree.at(kept), Some((500, &5)));
        let cells = tree.nodes.len();
        for key in 0..200 {
            tree.insert(key, key).unwrap();
        }
        assert_eq!(tree.nodes.len(), cells);
        assert_eq!(tree.remove(1000), None);
    }

    #[test]
    fn reserved_room_is_there() {
        let mut tree = Tested::new();
        tree.reserve(10).unwrap();
        let capacity = (tree.nodes.capacity(), tree.values.capacity());
        for key in 0..10 {
            tree.insert(key, 0).unwrap();
        }
        assert_eq!((tree.nodes.capacity(), tree.values.capacity()), capacity);
        tree.remove(3);
        tree.reserve(1).unwrap();
        tree.insert(3, 0).unwrap();
        assert_eq!((tree.nodes.capacity(), tree.values.capacity()), capacity);
    }
}
