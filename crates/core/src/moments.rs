//! Mean and variance of a sample, in two passes. The second pass sums squared deviations from the mean, which avoids
//! cancellation if the values differ little compared with their mean.

/// The arithmetic mean; `None` if there are no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The weighted mean of pairs of weight and value; `None` if no weight is positive.
pub fn weighted_mean(weighted: &[(f64, f64)]) -> Option<f64> {
    let weight: f64 = weighted.iter().map(|(weight, _)| weight).sum();
    (weight > 0.0).then(|| weighted.iter().map(|(weight, value)| weight * value).sum::<f64>() / weight)
}

/// Number, mean and spread of a sample of at least one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    count: usize,
    mean: f64,
    squared_deviations: f64,
}

impl Moments {
    /// Computes the moments of these values; `None` if there are no values.
    pub fn from_values(values: &[f64]) -> Option<Moments> {
        let mean = mean(values)?;
        let squared_deviations = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Moments { count: values.len(), mean, squared_deviations })
    }

    /// Number of values, at least 1.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Variance of the values themselves: the sum of squared deviations divided by n.
    pub fn population_variance(&self) -> f64 {
        self.squared_deviations / self.count as f64
    }

    /// Unbiased estimate of the variance of the population that the values were sampled from: the sum of squared
    /// deviations divided by n − 1. `None` for a single value.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squared_deviations / (self.count as f64 - 1.0))
    }

    /// Square root of [`Moments::variance`].
    pub fn standard_deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// Standard error of the mean of independent values: √(variance / n).
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
