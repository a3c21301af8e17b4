//! Which classes the observations can tell apart.

use crate::EstimateError;
use crate::least_squares::Design;

/// Belsley, Kuh & Welsch: from about 30 on, a dependency among the columns ruins the estimates.
pub(crate) const COLLINEAR: f64 = 30.0;

/// Groups of classes whose summed columns can be told apart.
///
/// While the columns are too nearly dependent, merges the pair most involved: the most negative entry of the projection
/// on the near-null space, which is the same in whatever order the classes come. Pairs that are equally involved are
/// merged at once, so that order does not decide between them either.
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
            (0..groups.len()).filter(|k| design.sigma[*k] * COLLINEAR < design.sigma[0]).collect();
        let shared = |i: usize, j: usize| near_null.iter().map(|k| design.v[(i, *k)] * design.v[(j, *k)]).sum::<f64>();
        let pairs: Vec<(usize, usize)> = (0..groups.len()).flat_map(|j| (0..j).map(move |i| (i, j))).collect();
        let strongest = pairs.iter().map(|(i, j)| shared(*i, *j)).fold(0.0, f64::min);
        if strongest == 0.0 {
            return Ok(groups);
        }
        let mut home: Vec<usize> = (0..groups.len()).collect();
        for (i, j) in pairs.into_iter().filter(|(i, j)| shared(*i, *j) <= strongest * (1.0 - 1e-9)) {
            let (to, from) = (home[i].min(home[j]), home[i].max(home[j]));
            home.iter_mut().filter(|h| **h == from).for_each(|h| *h = to);
        }
        for (k, to) in home.into_iter().enumerate().filter(|(k, to)| k != to) {
            let absorbed = std::mem::take(&mut groups[k]);
            groups[to].extend(absorbed);
        }
        groups.retain(|g| !g.is_empty());
        groups.iter_mut().for_each(|g| g.sort_unstable());
        groups.sort_unstable();
    }
}
