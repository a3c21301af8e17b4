//! Joins neighbouring clusters to classes so that the logarithms of sizes vary least within each class. The result is
//! the optimal partition of points on a line (Fisher 1958). It is computed by dynamic programming over all positions of
//! the cuts.

use std::ops::Range;

/// Consecutive sizes that always belong to the same class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Atom {
    /// Index of the spanning tree's cluster to which the sizes belong.
    pub cluster: usize,
    /// Whether the sizes come from a divided cluster, and are not its first part.
    pub is_remainder: bool,
    /// Index of the first size.
    pub first: usize,
    pub last: usize,
    /// Number of requests.
    pub count: u64,
    /// Sum of the logarithms of the requests' sizes.
    sum: f64,
    /// Sum of the squared logarithms.
    squares: f64,
}

impl Atom {
    pub fn new(cluster: usize, is_remainder: bool, first: usize) -> Atom {
        Atom { cluster, is_remainder, first, last: first, count: 0, sum: 0.0, squares: 0.0 }
    }

    pub fn add(&mut self, index: usize, bytes: u64, count: u64) {
        let logarithm = (bytes as f64).ln();
        self.last = index;
        self.count += count;
        self.sum += count as f64 * logarithm;
        self.squares += count as f64 * logarithm.powi(2);
    }
}

/// Divides the atoms into `k` ranges so that sizes vary least. `k` must be from 1 to the number of atoms.
pub(super) fn partition(atoms: &[Atom], k: usize) -> Vec<Range<usize>> {
    let n = atoms.len();
    let spread = Spread::new(atoms);
    // For each number of parts and each `i`: the smallest spread of the first `i` atoms, and the index at which the
    // last part begins.
    let mut best: Vec<Vec<(f64, usize)>> = vec![(0..=n).map(|i| (spread.within(0, i), 0)).collect()];
    for parts in 1..k {
        let before = &best[parts - 1];
        let row = |i: usize| {
            let from = |j: usize| (before[j].0 + spread.within(j, i), j);
            (parts..i).map(from).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0))
        };
        let row = (0..=n).map(row).collect();
        best.push(row);
    }
    let mut ranges = Vec::new();
    let mut end = n;
    for parts in (0..k).rev() {
        let begin = best[parts][end].1;
        ranges.push(begin..end);
        end = begin;
    }
    ranges.reverse();
    ranges
}

/// The share of the variance that the division into parts explains; 1 if there is no variance.
pub(super) fn explained(atoms: &[Atom], parts: &[Range<usize>]) -> f64 {
    let spread = Spread::new(atoms);
    let all = spread.within(0, atoms.len());
    let within: f64 = parts.iter().map(|part| spread.within(part.start, part.end)).sum();
    if all > 1e-9 { 1.0 - within / all } else { 1.0 }
}

/// Prefix sums over the atoms: of counts, of logarithms and of their squares.
struct Spread(Vec<(f64, f64, f64)>);

impl Spread {
    fn new(atoms: &[Atom]) -> Spread {
        let mut sums = vec![(0.0, 0.0, 0.0)];
        let mut sum = (0.0, 0.0, 0.0);
        for atom in atoms {
            sum = (sum.0 + atom.count as f64, sum.1 + atom.sum, sum.2 + atom.squares);
            sums.push(sum);
        }
        Spread(sums)
    }

    /// The sum of the squared distances of logarithms from their mean, for the atoms `from..to`.
    fn within(&self, from: usize, to: usize) -> f64 {
        let a = self.0[from];
        let b = self.0[to];
        let n = b.0 - a.0;
        let sum = b.1 - a.1;
        let squares = b.2 - a.2;
        if n > 0.0 { (squares - sum.powi(2) / n).max(0.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atoms(sizes: &[(u64, u64)]) -> Vec<Atom> {
        let atom = |(index, (bytes, count)): (usize, &(u64, u64))| {
            let mut atom = Atom::new(index, false, index);
            atom.add(index, *bytes, *count);
            atom
        };
        sizes.iter().enumerate().map(atom).collect()
    }

    #[test]
    fn neighbours_of_like_size_are_one_class() {
        let found = atoms(&[(100, 5), (110, 5), (4000, 9), (4500, 1), (90_000, 2), (100_000, 3), (110_000, 3)]);
        assert_eq!(partition(&found, 3), [0..2, 2..4, 4..7]);
        assert_eq!(partition(&found, 1).len(), 1);
        assert_eq!(partition(&found, 7).len(), 7);
        assert!(
            explained(&found, &partition(&found, 3)) > 0.99 && explained(&found, &partition(&found, 1)).abs() < 1e-9
        );
    }

    #[test]
    fn no_other_partition_is_better() {
        let found = atoms(&[(10, 3), (15, 1), (40, 8), (90, 2), (91, 7), (300, 1), (320, 1), (5000, 4)]);
        let spread = Spread::new(&found);
        let within = |ranges: &[Range<usize>]| ranges.iter().map(|r| spread.within(r.start, r.end)).sum::<f64>();
        let best = within(&partition(&found, 3));
        for first in 1..7 {
            for second in first + 1..8 {
                assert!(best <= within(&[0..first, first..second, second..8]) + 1e-9);
            }
        }
    }
}
