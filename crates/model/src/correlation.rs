//! Correlation matrices, and random normal numbers with given correlations.
//!
//! A correlation matrix is symmetric and positive semidefinite, with ones on its diagonal. It may be singular, for
//! example if several classes share one unknown demand. Therefore the Cholesky factorization skips vanishing pivots
//! instead of dividing by them.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

/// Tolerated rounding error of a matrix entry that was read from a document.
const ROUNDING: f64 = 1e-6;

/// Whether a matrix is a correlation matrix of `classes` classes.
pub(crate) fn is_correlation(matrix: &[Vec<f64>], classes: usize) -> bool {
    let fits = matrix.len() == classes && matrix.iter().all(|row| row.len() == classes);
    let alike = |i: usize, j: usize| (matrix[i][j] - matrix[j][i]).abs() <= ROUNDING;
    let entry = |i: usize, j: usize| matrix[i][j].abs() <= 1.0 + ROUNDING && alike(i, j);
    fits && (0..classes).all(|i| (matrix[i][i] - 1.0).abs() <= ROUNDING && (0..i).all(|j| entry(i, j)))
        && factor(matrix).is_some()
}

/// The Cholesky factor of the matrix: the lower triangular L for which L·Lᵀ equals the matrix. `None` if the matrix is
/// not positive semidefinite.
pub(crate) fn factor(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let mut l: Vec<Vec<f64>> = Vec::with_capacity(matrix.len());
    for (i, given) in matrix.iter().enumerate() {
        let mut row = vec![0.0; matrix.len()];
        for j in 0..=i {
            let above = if j == i { &row } else { &l[j] };
            let left = given[j] - (0..j).map(|k| row[k] * above[k]).sum::<f64>();
            let pivot = if j == i { left } else { l[j][j] };
            row[j] = match (j == i, pivot > ROUNDING) {
                (true, true) => left.sqrt(),
                (false, true) => left / pivot,
                (_, false) if left.abs() <= ROUNDING.sqrt() => 0.0,
                _ => return None,
            };
        }
        l.push(row);
    }
    Some(l)
}

/// Draws standard normal numbers. `factor` is the result of [`factor`] for the correlation matrix of the numbers.
pub(crate) fn draw(factor: &[Vec<f64>], rng: &mut impl Rng) -> Vec<f64> {
    let independent: Vec<f64> = factor.iter().map(|_| rng.sample(StandardNormal)).collect();
    factor.iter().map(|row| row.iter().zip(&independent).map(|(l, z)| l * z).sum()).collect()
}

/// The identity matrix: the correlations of classes whose demands are uncorrelated.
pub fn identity(classes: usize) -> Vec<Vec<f64>> {
    (0..classes).map(|i| (0..classes).map(|j| f64::from(u8::from(i == j))).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::SeedableRng;

    #[test]
    fn drawn_numbers_have_the_given_correlations() {
        let matrix = [vec![1.0, 0.6, 1.0], vec![0.6, 1.0, 0.6], vec![1.0, 0.6, 1.0]];
        let factor = factor(&matrix).unwrap();
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let drawn: Vec<Vec<f64>> = (0..20_000).map(|_| draw(&factor, &mut rng)).collect();
        for i in 0..3 {
            for j in 0..3 {
                let found = drawn.iter().map(|z| z[i] * z[j]).sum::<f64>() / 20_000.0;
                assert!((found - matrix[i][j]).abs() < 0.03, "{i} {j} {found}");
            }
        }
        assert!(drawn.iter().all(|z| (z[0] - z[2]).abs() < 1e-9));
    }

    #[test]
    fn invalid_correlation_matrices_are_detected() {
        assert!(is_correlation(&identity(3), 3) && is_correlation(&[vec![1.0, -1.0], vec![-1.0, 1.0]], 2));
        for (matrix, classes) in [
            (vec![vec![1.0, 0.5], vec![0.4, 1.0]], 2),
            (vec![vec![2.0]], 1),
            (vec![vec![1.0]], 2),
            (vec![vec![1.0, f64::NAN], vec![f64::NAN, 1.0]], 2),
            (vec![vec![1.0, 0.9, -0.9], vec![0.9, 1.0, 0.9], vec![-0.9, 0.9, 1.0]], 3),
        ] {
            assert!(!is_correlation(&matrix, classes), "{matrix:?}");
        }
    }
}
