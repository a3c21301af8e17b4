//! Confidence intervals of means, by Student's t distribution.

use brimful_core::moments::Moments;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Half width of the 95 % confidence interval of the mean of independent values; `None` for a single value.
pub fn ci95_half_width(moments: &Moments) -> Option<f64> {
    Some(t_95(moments.count() as u64 - 1)? * moments.standard_error()?)
}

/// Quantile of Student's t distribution for two-sided 95 % confidence intervals: the ratio of the half width of a
/// mean's interval to the mean's standard error. `None` for zero degrees of freedom.
pub(crate) fn t_95(degrees_of_freedom: u64) -> Option<f64> {
    t_quantile(degrees_of_freedom as f64, 0.975)
}

/// Above this number of degrees of freedom, the distribution counts as normal: its 97.5 % quantile differs by 0.001 %.
const MAX_T_DEGREES_OF_FREEDOM: f64 = 1e5;

/// A quantile of Student's t distribution. The degrees of freedom may be infinite; `None` if they are not positive.
pub(crate) fn t_quantile(degrees_of_freedom: f64, probability: f64) -> Option<f64> {
    if degrees_of_freedom > MAX_T_DEGREES_OF_FREEDOM {
        return Some(Normal::standard().inverse_cdf(probability));
    }
    StudentsT::new(0.0, 1.0, degrees_of_freedom).ok().map(|t| t.inverse_cdf(probability))
}

/// The probability that a value of Student's t distribution is at least as far from 0 as `t`. The degrees of freedom
/// may be infinite; `None` if they are not positive.
pub(crate) fn t_probability(degrees_of_freedom: f64, t: f64) -> Option<f64> {
    if degrees_of_freedom > MAX_T_DEGREES_OF_FREEDOM {
        return Some(2.0 * Normal::standard().cdf(-t.abs()));
    }
    StudentsT::new(0.0, 1.0, degrees_of_freedom).ok().map(|distribution| 2.0 * distribution.cdf(-t.abs()))
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
        // Above the bound, the quantile is that of the normal distribution. On both sides of the bound, it must equal
        // the value in printed tables.
        let [below, above] =
            [MAX_T_DEGREES_OF_FREEDOM, MAX_T_DEGREES_OF_FREEDOM + 1.0].map(|df| t_quantile(df, 0.975).unwrap());
        assert!((below - above).abs() < 1e-4 && (above - 1.959_964).abs() < 1e-6, "{below} {above}");
        let [below, above] = [MAX_T_DEGREES_OF_FREEDOM, f64::INFINITY].map(|df| t_probability(df, -1.959_964).unwrap());
        assert!((below - above).abs() < 1e-4 && (above - 0.05).abs() < 1e-6, "{below} {above}");
    }
}
