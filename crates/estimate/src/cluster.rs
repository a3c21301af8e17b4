//! Clusters values, such as response sizes, by single linkage, using the minimum spanning tree.
//!
//! In one dimension, the minimum spanning tree connects the values in sorted order. Removing its k − 1 longest edges
//! leaves k clusters (Menascé, Almeida & Dowdy, *Capacity Planning and Performance Modeling*, 1994; used for the
//! request classes of Menascé et al., CMG 1999, §3.3). The running time is that of sorting n values. Sizes span orders
//! of magnitude, so the longest edges are between the largest values. Callers should therefore request many clusters
//! and then merge the small ones, as Menascé et al. did with 150 clusters.

use crate::EstimateError;
use brimful_core::number::check_non_negative;
use serde::Serialize;

/// A cluster of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// Number of values.
    pub count: usize,
    /// Sum of the values.
    pub sum: f64,
}

/// Divides the values into `k` clusters, in ascending order, at the k − 1 largest differences between neighbouring
/// values. There are fewer clusters if there are fewer distinct values. Of two equal differences, the one between the
/// smaller values is used first.
pub fn cluster_sizes(values: &[f64], k: usize) -> Result<Vec<Cluster>, EstimateError> {
    if k == 0 {
        return Err(EstimateError::Inconsistent("no clusters were asked for: ask for one or more".into()));
    }
    for (i, value) in values.iter().enumerate() {
        check_non_negative(*value, || format!("size {i}"))?;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let edge = |i: &usize| sorted[*i] - sorted[i - 1];
    let mut edges: Vec<usize> = (1..sorted.len()).filter(|i| edge(i) > 0.0).collect();
    edges.sort_by(|i, j| edge(j).total_cmp(&edge(i)));
    edges.truncate(k - 1);
    edges.sort_unstable();
    let starts = [0].into_iter().chain(edges.iter().copied());
    let ends = edges.iter().copied().chain([sorted.len()]);
    let cluster = |(start, end): (usize, usize)| {
        let members = &sorted[start..end];
        Some(Cluster { min: *members.first()?, max: *members.last()?, count: members.len(), sum: members.iter().sum() })
    };
    Ok(starts.zip(ends).filter_map(cluster).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(values: &[f64], k: usize) -> Vec<(f64, f64, usize)> {
        cluster_sizes(values, k).unwrap().iter().map(|c| (c.min, c.max, c.count)).collect()
    }

    #[test]
    fn the_longest_edges_are_cut() {
        let values = [12.0, 0.0, 100.0, 10.0, 0.0, 101.0];
        assert_eq!(ranges(&values, 1), [(0.0, 101.0, 6)]);
        assert_eq!(ranges(&values, 2), [(0.0, 12.0, 4), (100.0, 101.0, 2)]);
        assert_eq!(ranges(&values, 3), [(0.0, 0.0, 2), (10.0, 12.0, 2), (100.0, 101.0, 2)]);
    }

    #[test]
    fn equal_values_are_never_parted() {
        assert_eq!(ranges(&[5.0; 4], 3), [(5.0, 5.0, 4)]);
        assert_eq!(ranges(&[], 3), []);
        assert_eq!(ranges(&[1.0, 2.0, 3.0], 2), [(1.0, 1.0, 1), (2.0, 3.0, 2)], "the lower of equal edges is removed");
    }

    #[test]
    fn what_is_no_size_is_refused() {
        assert!(cluster_sizes(&[1.0], 0).is_err());
        assert!(cluster_sizes(&[1.0, f64::NAN], 1).unwrap_err().to_string().contains("size 1"));
        assert!(cluster_sizes(&[-1.0], 1).is_err());
    }
}
