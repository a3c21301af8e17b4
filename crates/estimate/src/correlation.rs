//! Correlation of the errors of demands.

/// Converts a covariance matrix to a correlation matrix. A variable with variance 0 is uncorrelated with all others.
pub(crate) fn correlation_of(covariance: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let coefficient = |i: usize, j: usize| {
        let scale = (covariance[i][i] * covariance[j][j]).sqrt();
        let varies = scale > 0.0 && scale.is_finite();
        if i == j {
            1.0
        } else if varies {
            (covariance[i][j] / scale).clamp(-1.0, 1.0)
        } else {
            0.0
        }
    };
    (0..covariance.len()).map(|i| (0..covariance.len()).map(|j| coefficient(i, j)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_have_no_scale() {
        let correlation = correlation_of(&[vec![4.0, 3.0, 0.0], vec![3.0, 9.0, 0.0], vec![0.0; 3]]);
        assert_eq!(correlation, [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    }
}
