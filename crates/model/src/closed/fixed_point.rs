//! x = f(x) by Anderson's acceleration (1965; Walker & Ni, 2011).
//!
//! The plain iteration of queue lengths takes thousands of rounds where two stations are nearly as busy as one another.
//! Here each round combines the last few so that their residuals f(x) − x would cancel, were f linear. It falls back to
//! the plain iteration when that makes things worse, and to ever shorter steps when nothing settles: where the order of
//! service matters, the more are found busy the shorter one may wait, and full steps leap to and fro. Cost beyond f:
//! depth × length.

use crate::ModelError;
use nalgebra::{DMatrix, DVector};

/// How many rounds are combined.
const DEPTH: usize = 6;

/// A residual so many times the best one is a step in a wrong direction.
const WORSE: f64 = 10.0;

/// Rounds before acceleration is given up for half steps; what it can settle takes some hundred at most.
const ACCELERATED: usize = 300;

/// Rounds before half steps are given up for quarters, and so on.
const PATIENCE: usize = 1000;

/// Rounds before all is given up.
const MOST_ROUNDS: usize = 20 * PATIENCE;

/// A point of non-negative numbers that f, which writes into its second argument, changes by no more than `tolerance`
/// anywhere.
pub(super) fn fixed_point(
    start: Vec<f64>,
    tolerance: f64,
    mut f: impl FnMut(&[f64], &mut [f64]),
) -> Result<Vec<f64>, ModelError> {
    let mut history = History::default();
    let (mut x, mut image, mut best) = (start, Vec::new(), f64::INFINITY);
    image.resize(x.len(), 0.0);
    for round in 0..MOST_ROUNDS {
        f(&x, &mut image);
        let residual: Vec<f64> = image.iter().zip(&x).map(|(f, x)| f - x).collect();
        let change = residual.iter().fold(0.0, |most: f64, r| most.max(r.abs()));
        if change <= tolerance || change.is_nan() {
            return Ok(image);
        }
        if let Some(late) = round.checked_sub(ACCELERATED) {
            let part = 0.5f64.powi(1 + (late / PATIENCE) as i32);
            x.iter_mut().zip(&residual).for_each(|(x, r)| *x += part * r);
            continue;
        }
        if change > WORSE * best {
            history = History::default();
        }
        best = best.min(change);
        let next = history.accelerate(&image, &residual);
        history.remember(&image, residual);
        x = next;
    }
    Err(ModelError::Unsettled { rounds: MOST_ROUNDS })
}

/// How image and residual changed from round to round; the newest change takes the place of the oldest.
#[derive(Default)]
struct History {
    last: Option<(Vec<f64>, Vec<f64>)>,
    changes: Vec<(Vec<f64>, Vec<f64>)>,
    next: usize,
    /// The residuals' changes multiplied with one another, and with the residual.
    normal: [[f64; DEPTH]; DEPTH],
    right: [f64; DEPTH],
}

impl History {
    fn remember(&mut self, image: &[f64], residual: Vec<f64>) {
        self.last = Some((image.to_vec(), residual));
    }

    /// The image, less what the changes of the last rounds say that it still lacks.
    fn accelerate(&mut self, image: &[f64], residual: &[f64]) -> Vec<f64> {
        let mut next = image.to_vec();
        let Some((last_image, last_residual)) = &self.last else { return next };
        self.store((difference(image, last_image), difference(residual, last_residual)), residual);
        let Some(weights) = self.weights() else { return next };
        for (weight, (change, _)) in weights.iter().zip(&self.changes) {
            next.iter_mut().zip(change).for_each(|(x, d)| *x -= weight * d);
        }
        next.iter_mut().for_each(|x| *x = x.max(0.0));
        next
    }

    fn store(&mut self, change: (Vec<f64>, Vec<f64>), residual: &[f64]) {
        let here = self.next;
        self.next = (here + 1) % DEPTH;
        match self.changes.get_mut(here) {
            Some(old) => *old = change,
            None => self.changes.push(change),
        }
        for i in 0..self.changes.len() {
            let product = dot(&self.changes[i].1, &self.changes[here].1);
            (self.normal[i][here], self.normal[here][i]) = (product, product);
            // The residual is the last one and its change.
            self.right[i] += product;
        }
        self.right[here] = dot(&self.changes[here].1, residual);
    }

    /// The combination of the residuals' changes that comes nearest to the residual; a trace of regularization where
    /// rounds repeat one another.
    fn weights(&self) -> Option<DVector<f64>> {
        let depth = self.changes.len();
        let mut normal = DMatrix::from_fn(depth, depth, |i, j| self.normal[i][j]);
        let trace = normal.trace() * 1e-14;
        (0..depth).for_each(|i| normal[(i, i)] += trace);
        let weights = normal.cholesky()?.solve(&DVector::from_column_slice(&self.right[..depth]));
        weights.iter().all(|w| w.is_finite()).then_some(weights)
    }
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// In four sums side by side, which the processor can keep apart.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(a, b)| a * b).sum();
    let sums = a4.zip(b4).fold([0.0; 4], |s, (a, b)| [0, 1, 2, 3].map(|i| s[i] + a[i] * b[i]));
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_linear_iteration_ends_soon() {
        let rates = [0.9, 0.999, 0.5, 0.99];
        let mut rounds = 0;
        let x = fixed_point(vec![0.0; 4], 1e-12, |x, image| {
            rounds += 1;
            (0..4).for_each(|i| image[i] = 1.0 + rates[i] * x[i]);
        });
        let x = x.unwrap();
        assert!((0..4).all(|i| (x[i] * (1.0 - rates[i]) - 1.0).abs() < 1e-6), "{x:?}");
        assert!(rounds < 60, "{rounds}");
    }

    #[test]
    fn one_that_leaps_to_and_fro_settles_by_half_steps() {
        let x = fixed_point(vec![3.0], 1e-12, |x, image| image[0] = if x[0] > 0.0 { 2.0 / x[0] } else { 1.0 }).unwrap();
        assert!((x[0] - 2f64.sqrt()).abs() < 1e-9, "{x:?}");
    }

    #[test]
    fn what_has_no_fixed_point_is_an_error() {
        let error = fixed_point(vec![1.0], 1e-12, |x, image| image[0] = x[0] + 1.0).unwrap_err();
        assert!(matches!(error, ModelError::Unsettled { .. }));
    }
}
