//! Joins neighbouring clusters to classes so that the logarithms of sizes vary least within each class. The result is
//! the optimal partition of points on a line (Fisher 1958). It is computed by dynamic programming over all positions of
//! the cuts.

use std::ops::Range;

/// A group of consecutive sizes of responses. All sizes of a group belong to the same class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SizeGroup {
    /// Index of the cluster to which the sizes belong. Clusters are parts of the spanning tree of sizes.
    pub cluster: usize,
    /// Whether the group comes from a cluster that was divided, and is not the first group of this cluster.
    pub is_remainder: bool,
    /// Index of the smallest size of the group.
    pub first: usize,
    /// Index of the largest size of the group.
    pub last: usize,
    /// Number of requests in the group.
    pub count: u64,
    /// Sum of the logarithms of the requests' sizes.
    sum: f64,
    /// Sum of the squared logarithms of the requests' sizes.
    squares: f64,
}

impl SizeGroup {
    /// Creates a group without requests.
    pub fn new(cluster: usize, is_remainder: bool, first: usize) -> SizeGroup {
        SizeGroup { cluster, is_remainder, first, last: first, count: 0, sum: 0.0, squares: 0.0 }
    }

    /// Adds the next size, in bytes. `index` is its index, and `count` its number of requests.
    pub fn add(&mut self, index: usize, bytes: u64, count: u64) {
        let logarithm = (bytes as f64).ln();
        self.last = index;
        self.count += count;
        self.sum += count as f64 * logarithm;
        self.squares += count as f64 * logarithm.powi(2);
    }
}

/// Divides the groups into `k` ranges so that the logarithms of sizes vary least within each range. `k` must be from 1
/// to the number of groups.
pub(super) fn partition(groups: &[SizeGroup], k: usize) -> Vec<Range<usize>> {
    let n = groups.len();
    let spread = Spread::new(groups);
    // For each number of ranges and each `i`: the smallest sum of squared differences for the first `i` groups, and the
    // start of the last range.
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

/// The fraction of the variance of the logarithms of sizes that the division into ranges explains; 1 if the variance is
/// 0.
pub(super) fn explained(groups: &[SizeGroup], parts: &[Range<usize>]) -> f64 {
    let spread = Spread::new(groups);
    let all = spread.within(0, groups.len());
    let within: f64 = parts.iter().map(|part| spread.within(part.start, part.end)).sum();
    if all > 1e-9 { 1.0 - within / all } else { 1.0 }
}

/// Prefix sums over the groups of sizes: number of requests, sum of logarithms, and sum of squared logarithms.
struct Spread(Vec<(f64, f64, f64)>);

impl Spread {
    fn new(groups: &[SizeGroup]) -> Spread {
        let mut sums = vec![(0.0, 0.0, 0.0)];
        let mut sum = (0.0, 0.0, 0.0);
        for group in groups {
            sum = (sum.0 + group.count as f64, sum.1 + group.sum, sum.2 + group.squares);
            sums.push(sum);
        }
        Spread(sums)
    }

    /// The sum of the squared differences between the logarithms of sizes and their mean, for the groups `from..to`.
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

    fn size_groups(sizes: &[(u64, u64)]) -> Vec<SizeGroup> {
        let group = |(index, (bytes, count)): (usize, &(u64, u64))| {
            let mut group = SizeGroup::new(index, false, index);
            group.add(index, *bytes, *count);
            group
        };
        sizes.iter().enumerate().map(group).collect()
    }

    #[test]
    fn neighbours_of_like_size_are_one_class() {
        let found = size_groups(&[(100, 5), (110, 5), (4000, 9), (4500, 1), (90_000, 2), (100_000, 3), (110_000, 3)]);
        assert_eq!(partition(&found, 3), [0..2, 2..4, 4..7]);
        assert_eq!(partition(&found, 1).len(), 1);
        assert_eq!(partition(&found, 7).len(), 7);
        assert!(
            explained(&found, &partition(&found, 3)) > 0.99 && explained(&found, &partition(&found, 1)).abs() < 1e-9
        );
    }

    #[test]
    fn no_other_partition_is_better() {
        let found = size_groups(&[(10, 3), (15, 1), (40, 8), (90, 2), (91, 7), (300, 1), (320, 1), (5000, 4)]);
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
