//! Solves x = f(x) by Anderson's acceleration (1965; Walker & Ni, 2011).
//!
//! Without acceleration, the iteration x ← f(x) takes thousands of rounds if two stations are almost equally busy. Here
//! each round combines the last few rounds so that their residuals f(x) − x cancel if f is linear. If the residual
//! increases, the algorithm returns to the plain iteration. If the iteration does not converge, it takes shorter and
//! shorter steps, because full steps may oscillate where the order of service matters. Cost in addition to f: depth ×
//! length of x.

use crate::ModelError;
use nalgebra::{DMatrix, DVector};

/// Number of rounds that one accelerated round combines.
const DEPTH: usize = 6;

/// A residual that exceeds the best one by this factor resets the acceleration.
const MAX_RESIDUAL_GROWTH: f64 = 10.0;

/// Number of accelerated rounds before steps become shorter. If the acceleration converges at all, it needs at most
/// about a hundred rounds.
const ACCELERATED_ROUNDS: usize = 300;

/// Number of rounds with one step length before the step length is halved again.
const ROUNDS_PER_STEP: usize = 1000;

/// Maximum number of rounds.
const MAX_ROUNDS: usize = 20 * ROUNDS_PER_STEP;

/// Returns non-negative numbers x with |f(x) − x| ≤ `tolerance`. `f` writes f(x) for its first argument x into its
/// second argument.
pub(super) fn fixed_point(
    start: Vec<f64>,
    tolerance: f64,
    mut f: impl FnMut(&[f64], &mut [f64]),
) -> Result<Vec<f64>, ModelError> {
    let mut history = History::default();
    let (mut x, mut image, mut best) = (start, Vec::new(), f64::INFINITY);
    image.resize(x.len(), 0.0);
    for round in 0..MAX_ROUNDS {
        f(&x, &mut image);
        let residual: Vec<f64> = image.iter().zip(&x).map(|(f, x)| f - x).collect();
        let change = residual.iter().fold(0.0, |most: f64, r| most.max(r.abs()));
        if change <= tolerance || change.is_nan() {
            return Ok(image);
        }
        if let Some(late) = round.checked_sub(ACCELERATED_ROUNDS) {
            let part = 0.5f64.powi(1 + (late / ROUNDS_PER_STEP) as i32);
            x.iter_mut().zip(&residual).for_each(|(x, r)| *x += part * r);
            continue;
        }
        if change > MAX_RESIDUAL_GROWTH * best {
            history = History::default();
        }
        best = best.min(change);
        let next = history.accelerate(&image, &residual);
        history.remember(&image, residual);
        x = next;
    }
    Err(ModelError::NotConverged { rounds: MAX_ROUNDS })
}

/// The changes of the image f(x) and of the residual f(x) − x in the last [`DEPTH`] rounds. A new change replaces the
/// oldest one.
#[derive(Default)]
struct History {
    last: Option<(Vec<f64>, Vec<f64>)>,
    changes: Vec<(Vec<f64>, Vec<f64>)>,
    next: usize,
    /// Inner products of the residual's changes with one another.
    normal: [[f64; DEPTH]; DEPTH],
    /// Inner products of the residual's changes with the current residual.
    right: [f64; DEPTH],
}

impl History {
    fn remember(&mut self, image: &[f64], residual: Vec<f64>) {
        self.last = Some((image.to_vec(), residual));
    }

    /// Returns f(x), corrected by the combination of the last changes that cancels the residual best.
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
            // The residual has grown by the newest change, so its inner product with each change grows by `product`.
            self.right[i] += product;
        }
        self.right[here] = dot(&self.changes[here].1, residual);
    }

    /// The weights with which the sum of the last changes of the residual is closest to the residual itself (least
    /// squares). The equations are slightly regularized, because several changes may be nearly equal.
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

/// The inner product, as four independent sums that the processor can compute in parallel.
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
    fn an_oscillating_iteration_converges_with_half_steps() {
        let x = fixed_point(vec![3.0], 1e-12, |x, image| image[0] = if x[0] > 0.0 { 2.0 / x[0] } else { 1.0 }).unwrap();
        assert!((x[0] - 2f64.sqrt()).abs() < 1e-9, "{x:?}");
    }

    #[test]
    fn a_function_without_a_fixed_point_is_an_error() {
        let error = fixed_point(vec![1.0], 1e-12, |x, image| image[0] = x[0] + 1.0).unwrap_err();
        assert!(matches!(error, ModelError::NotConverged { .. }));
    }
}
