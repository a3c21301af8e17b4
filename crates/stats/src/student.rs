//! Confidence intervals of means, by Student's t distribution.

use brimful_core::moments::Moments;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Half width of the 95 % confidence interval of the mean of independent values; `None` for a single value.
pub fn ci95_half_width(moments: &Moments) -> Option<f64> {
    Some(t_95(moments.count() as u64 - 1)? * moments.standard_error()?)
}

/// The ratio of the half width of a mean's two-sided 95 % confidence interval to the mean's standard error. `None` for
/// zero degrees of freedom.
pub(crate) fn t_95(degrees_of_freedom: u64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, degrees_of_freedom as f64).ok().map(|t| t.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_printed_table() {
        for (df, t) in [(1, 12.706), (2, 4.303), (10, 2.228), (31, 2.040), (63, 1.998), (17_279, 1.960)] {
            let computed = t_95(df).unwrap();
            assert!((computed - t).abs() < 0.0006, "{df}: {computed}");
        }
        assert_eq!(t_95(0), None);
    }
}
