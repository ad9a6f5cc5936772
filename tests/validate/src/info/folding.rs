//! What makes 64 GPUs readable: saying once what is said of many.

use alloc::vec::Vec;
use core::ops::Range;

/// Splits `0..count` into runs of neighbours that are the same, longest first
/// run from the left. `same(a, b)` must be an equivalence.
pub fn runs(count: usize, mut same: impl FnMut(usize, usize) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for index in 0..count {
        match runs.last_mut() {
            Some(run) if same(run.start, index) => run.end = index + 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

/// A square matrix: what node `from` has towards node `to`.
#[derive(Debug, Clone)]
pub struct Matrix<T> {
    count: usize,
    cells: Vec<T>,
}

impl<T: Copy + PartialEq> Matrix<T> {
    /// A matrix for `count` nodes with `empty` in every cell.
    #[must_use]
    pub fn new(count: usize, empty: T) -> Matrix<T> {
        Matrix { count, cells: alloc::vec![empty; count.saturating_mul(count)] }
    }

    fn index(&self, from: usize, to: usize) -> Option<usize> {
        (from < self.count && to < self.count).then(|| from * self.count + to)
    }

    /// What `from` has towards `to`; `None` outside the matrix.
    #[must_use]
    pub fn get(&self, from: usize, to: usize) -> Option<T> {
        self.index(from, to).and_then(|index| self.cells.get(index)).copied()
    }

    /// Sets a cell; outside the matrix nothing happens.
    pub fn set(&mut self, from: usize, to: usize, value: T) {
        if let Some(cell) = self.index(from, to).and_then(|index| self.cells.get_mut(index)) {
            *cell = value;
        }
    }

    /// Whether exchanging `a` and `b` leaves the matrix as it is.
    fn are_twins(&self, a: usize, b: usize) -> bool {
        self.get(a, b) == self.get(b, a)
            && self.get(a, a) == self.get(b, b)
            && (0..self.count).filter(|&other| other != a && other != b).all(|other| {
                self.get(a, other) == self.get(b, other) && self.get(other, a) == self.get(other, b)
            })
    }

    /// Groups of nodes that the matrix cannot tell apart, each in rising order,
    /// ordered by their first node.
    ///
    /// Being twins is an equivalence, and between two groups, as among the
    /// members of one, all cells are equal. So one cell for each pair of groups
    /// says all that the matrix says.
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for node in 0..self.count {
            let group = groups
                .iter_mut()
                .find(|group| group.first().is_some_and(|&first| self.are_twins(first, node)));
            match group {
                Some(group) => group.push(node),
                None => groups.push(alloc::vec![node]),
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn runs_join_neighbours_only() {
        let items = *b"aabbbac";
        assert_eq!(
            runs(items.len(), |a, b| items[a] == items[b]),
            [0..2, 2..5, 5..6, 6..7].to_vec()
        );
        assert_eq!(runs(0, |_, _| true), []);
    }

    /// Two CPUs; GPUs `2..2 + gpus` in devices of `partitions`, the first half
    /// of the devices at CPU 0.
    fn partitioned(gpus: usize, partitions: usize) -> Matrix<u32> {
        let mut matrix = Matrix::new(2 + gpus, 0);
        matrix.set(0, 1, 32);
        matrix.set(1, 0, 32);
        for gpu in 0..gpus {
            let cpu = usize::from(gpu >= gpus / 2);
            matrix.set(2 + gpu, cpu, 20);
            matrix.set(cpu, 2 + gpu, 20);
            for other in (0..gpus).filter(|&other| other != gpu) {
                let weight = if gpu / partitions == other / partitions { 13 } else { 15 };
                matrix.set(2 + gpu, 2 + other, weight);
            }
        }
        matrix
    }

    #[test]
    fn partitions_of_a_device_are_twins() {
        let groups = partitioned(64, 8).groups();
        assert_eq!(groups.len(), 10);
        assert_eq!(groups[0], [0]);
        assert_eq!(groups[2], (2..10).collect::<Vec<_>>());
        assert_eq!(groups[9], (58..66).collect::<Vec<_>>());
    }

    #[test]
    fn whole_devices_at_one_cpu_are_twins() {
        let groups = partitioned(8, 1).groups();
        assert_eq!(groups, [vec![0], vec![1], vec![2, 3, 4, 5], vec![6, 7, 8, 9]]);
    }

    #[test]
    fn groups_say_all_that_the_matrix_says() {
        for matrix in [partitioned(64, 8), partitioned(8, 1), partitioned(7, 3)] {
            let groups = matrix.groups();
            let group_of =
                |node: usize| groups.iter().position(|group| group.contains(&node)).unwrap();
            for from in 0..matrix.count {
                for to in (0..matrix.count).filter(|&to| to != from) {
                    let (a, b) = (&groups[group_of(from)], &groups[group_of(to)]);
                    let representative =
                        if a == b { matrix.get(a[0], a[1]) } else { matrix.get(a[0], b[0]) };
                    assert_eq!(matrix.get(from, to), representative, "{from} {to}");
                }
            }
        }
    }

    #[test]
    fn one_odd_link_sets_its_ends_apart() {
        let mut matrix = partitioned(8, 1);
        matrix.set(3, 8, 99);
        let groups = matrix.groups();
        assert_eq!(groups, [vec![0], vec![1], vec![2, 4, 5], vec![3], vec![6, 7, 9], vec![8]]);
    }

    #[test]
    fn outside_the_matrix_there_is_nothing() {
        let mut matrix = Matrix::new(2, 0u8);
        matrix.set(2, 0, 1);
        matrix.set(0, 2, 1);
        assert_eq!(matrix.cells, [0; 4]);
        assert_eq!(matrix.get(0, 2), None);
        assert_eq!(Matrix::new(0, 0u8).groups(), Vec::<Vec<usize>>::new());
    }
}
