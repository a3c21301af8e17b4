//! Mean and variance of a sample, computed in two passes. The second pass sums the squared deviations from the mean,
//! because summing squares of the values is inaccurate if the variance is small compared with the mean.

/// The arithmetic mean; `None` if there are no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The weighted mean of (weight, value) pairs; `None` if no weight is positive.
pub fn weighted_mean(weighted: &[(f64, f64)]) -> Option<f64> {
    let weight: f64 = weighted.iter().map(|(weight, _)| weight).sum();
    (weight > 0.0).then(|| weighted.iter().map(|(weight, value)| weight * value).sum::<f64>() / weight)
}

/// Number, mean and variance of the values of a sample. A sample has at least one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    count: usize,
    mean: f64,
    squared_deviations: f64,
}

impl Moments {
    /// Computes the moments of a sample; `None` if `values` is empty.
    pub fn from_values(values: &[f64]) -> Option<Moments> {
        let mean = mean(values)?;
        let squared_deviations = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Moments { count: values.len(), mean, squared_deviations })
    }

    /// Number of values in the sample, at least 1.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Arithmetic mean of the sample.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Variance of the sample itself: the sum of squared deviations divided by n.
    pub fn population_variance(&self) -> f64 {
        self.squared_deviations / self.count as f64
    }

    /// Unbiased estimate of the population's variance: the sum of squared deviations divided by n − 1. `None` for a
    /// single value.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squared_deviations / (self.count as f64 - 1.0))
    }

    /// Square root of [`Moments::variance`]; `None` for a single value.
    pub fn standard_deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// Standard error of the mean, √(variance / n), if the values are independent. `None` for a single value.
    pub fn standard_error(&self) -> Option<f64> {
        Some((self.variance()? / self.count as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_textbook() {
        let moments = Moments::from_values(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((moments.mean(), moments.population_variance()), (5.0, 4.0));
        assert_eq!(moments.variance(), Some(32.0 / 7.0));
        assert_eq!(moments.standard_error(), Some((4.0_f64 / 7.0).sqrt()));
    }

    #[test]
    fn one_value_has_no_variance_and_none_has_no_mean() {
        assert_eq!((Moments::from_values(&[]), weighted_mean(&[])), (None, None));
        let one = Moments::from_values(&[3.0]).unwrap();
        assert_eq!((one.mean(), one.population_variance(), one.standard_deviation()), (3.0, 0.0, None));
    }

    #[test]
    fn a_large_mean_costs_no_digits() {
        let moments = Moments::from_values(&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0]).unwrap();
        assert_eq!(moments.variance(), Some(1.0));
    }
}
