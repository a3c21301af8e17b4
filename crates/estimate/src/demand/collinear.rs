//! Merges request classes that the observations cannot distinguish.

use crate::EstimateError;
use crate::least_squares::Design;

/// Maximum condition number of a regression. Above it, near-collinear columns make the estimates useless (Belsley, Kuh
/// & Welsch, *Regression Diagnostics*, 1980).
pub(crate) const COLLINEAR: f64 = 30.0;

/// Merges request classes into groups until a regression can distinguish the groups. Returns the groups. `columns`
/// computes the columns of the regression: the throughput of each group in each observation.
///
/// Each step merges the two groups with the most negative entry of the projection matrix onto the near-null space (the
/// singular vectors with small singular values). The entries do not depend on the order of the classes. Pairs with
/// equal entries are merged in the same step, so the result does not depend on the order either.
pub(crate) fn merge_collinear(
    classes: usize,
    weights: &[f64],
    columns: impl Fn(&[Vec<usize>]) -> Vec<Vec<f64>>,
) -> Result<Vec<Vec<usize>>, EstimateError> {
    let mut groups: Vec<Vec<usize>> = (0..classes).map(|c| vec![c]).collect();
    loop {
        let design = Design::new(&columns(&groups), weights)?;
        if design.condition_number <= COLLINEAR {
            return Ok(groups);
        }
        let near_null: Vec<usize> =
            (0..groups.len()).filter(|k| design.singular_values[*k] * COLLINEAR < design.singular_values[0]).collect();
        let shared = |i: usize, j: usize| near_null.iter().map(|k| design.v[(i, *k)] * design.v[(j, *k)]).sum::<f64>();
        let pairs: Vec<(usize, usize)> = (0..groups.len()).flat_map(|j| (0..j).map(move |i| (i, j))).collect();
        let strongest = pairs.iter().map(|(i, j)| shared(*i, *j)).fold(0.0, f64::min);
        if strongest == 0.0 {
            return Ok(groups);
        }
        let mut group_of: Vec<usize> = (0..groups.len()).collect();
        for (i, j) in pairs.into_iter().filter(|(i, j)| shared(*i, *j) <= strongest * (1.0 - 1e-9)) {
            let (to, from) = (group_of[i].min(group_of[j]), group_of[i].max(group_of[j]));
            group_of.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
        }
        for (k, to) in group_of.into_iter().enumerate().filter(|(k, to)| k != to) {
            let absorbed = std::mem::take(&mut groups[k]);
            groups[to].extend(absorbed);
        }
        groups.retain(|g| !g.is_empty());
        groups.iter_mut().for_each(|g| g.sort_unstable());
        groups.sort_unstable();
    }
}
