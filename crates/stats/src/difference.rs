//! The difference of two estimates, with its confidence interval. `compare` and all other comparisons use this function
//! to judge whether two servers differ.
//!
//! The standard errors of both estimates are combined by Welch's t-test, with Satterthwaite's degrees of freedom
//! (Welch, Biometrika 34, 1947). Differences of positive values are relative. Their interval is computed for ln(B/A),
//! whose standard error is √((s_A/A)² + (s_B/B)²) by the delta method, so the interval of A/B is the reciprocal of the
//! interval of B/A. Differences of shares, which may be zero, are absolute. If several metrics are judged at once,
//! [`holm`] adjusts their p-values, which bounds the probability of any false alarm.

use crate::estimate::Estimate;
use crate::student::{t_probability, t_quantile};

/// Probability that a comparison reports any metric as different although none is.
pub const FALSE_ALARM_PROBABILITY: f64 = 0.05;

/// Probability of detecting a true difference of the size [`Difference::smallest_detectable`].
const POWER: f64 = 0.8;

/// The scale of a difference: relative or absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Relative to A: B/A − 1.
    Relative,
    /// In the unit of the values: B − A.
    Absolute,
}

/// The estimated difference between two values, A and B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The estimated difference.
    pub value: f64,
    /// The 95 % confidence interval of the difference.
    pub interval95: [f64; 2],
    /// The p-value: the probability of a difference at least as large if A and B were equal.
    pub p: f64,
    /// Standard error of ln(B/A) for a relative difference, of B − A for an absolute one.
    standard_error: f64,
    degrees_of_freedom: f64,
    scale: Scale,
}

/// Computes the difference of B from A. Returns `None` if `scale` is relative, but A or B is not positive.
pub fn difference(a: &Estimate, b: &Estimate, scale: Scale) -> Option<Difference> {
    let (distance, errors) = match scale {
        Scale::Absolute => (b.value - a.value, [a.standard_error, b.standard_error]),
        Scale::Relative if a.value > 0.0 && b.value > 0.0 => {
            ((b.value / a.value).ln(), [a.standard_error / a.value, b.standard_error / b.value])
        }
        Scale::Relative => return None,
    };
    let variances = errors.map(|error| error * error);
    let variance = variances[0] + variances[1];
    let by_side = variances[0].powi(2) / a.degrees_of_freedom + variances[1].powi(2) / b.degrees_of_freedom;
    let degrees_of_freedom = if by_side > 0.0 { variance.powi(2) / by_side } else { f64::INFINITY };
    let standard_error = variance.sqrt();
    let half_width = t_quantile(degrees_of_freedom, 1.0 - FALSE_ALARM_PROBABILITY / 2.0)? * standard_error;
    let p = match (standard_error > 0.0, distance == 0.0) {
        (true, _) => t_probability(degrees_of_freedom, distance / standard_error)?,
        (false, is_equal) => f64::from(u8::from(is_equal)),
    };
    let [low, high] = [distance - half_width, distance + half_width].map(|end| scale.size(end));
    Some(Difference {
        value: scale.size(distance),
        interval95: [low, high],
        p,
        standard_error,
        degrees_of_freedom,
        scale,
    })
}

impl Difference {
    /// The smallest true difference that this measurement would have detected with a probability of 80 %. `figures` is
    /// the number of metrics that are tested at once. The result is in the same unit as `value`.
    pub fn smallest_detectable(&self, figures: usize) -> Option<f64> {
        let level = FALSE_ALARM_PROBABILITY / figures.max(1) as f64;
        let quantile = |probability| t_quantile(self.degrees_of_freedom, probability);
        let distance = (quantile(1.0 - level / 2.0)? + quantile(POWER)?) * self.standard_error;
        Some(self.scale.size(distance))
    }

    /// Upper bound of the absolute value of the difference, from its 95 % interval. This is the equivalence test of
    /// Schuirmann (1987), at a significance level of 2.5 %.
    pub fn bound(&self) -> f64 {
        self.interval95[0].abs().max(self.interval95[1].abs())
    }
}

impl Scale {
    /// Converts ln(B/A), for a relative difference, or B − A to the difference that is reported.
    fn size(self, distance: f64) -> f64 {
        match self {
            Scale::Relative => distance.exp_m1(),
            Scale::Absolute => distance,
        }
    }
}

/// Adjusts the p-values of several tests by Holm's method (Scandinavian Journal of Statistics 6, 1979). If every test
/// with an adjusted p-value below α is considered significant, the probability of any false alarm is at most α.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&one, &other| p_values[one].total_cmp(&p_values[other]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max((p_values.len() - rank) as f64 * p_values[index]).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::tests::correlated;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    fn estimate(value: f64, standard_error: f64, degrees_of_freedom: f64) -> Estimate {
        Estimate { value, standard_error, degrees_of_freedom }
    }

    #[track_caller]
    fn assert_near(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 1e-3, "{value} instead of {expected}");
    }

    #[test]
    fn an_absolute_difference_is_welchs() {
        // The variances of the means are 1/3 and 4/3, with 2 degrees of freedom each. Their difference has (5/3)² ÷
        // ((1/9 + 16/9)/2) = 2.941 degrees of freedom.
        let a = Estimate::from_runs(&[1.0, 2.0, 3.0]).unwrap();
        let b = Estimate::from_runs(&[4.0, 6.0, 8.0]).unwrap();
        let difference = difference(&a, &b, Scale::Absolute).unwrap();
        assert_eq!(difference.value, 4.0);
        assert_near(difference.degrees_of_freedom, 25.0 / 9.0 * 2.0 / (17.0 / 9.0));
        assert_near(difference.standard_error, (5.0_f64 / 3.0).sqrt());
        // Expected values, from numerical integration of the density: t = 3.0984 has this p-value, and 95 % of the
        // distribution are within ±3.2188.
        assert_near(difference.p, 0.054787);
        assert_near(difference.interval95[0], -0.15540);
        assert_near(difference.interval95[1], 8.15540);
        assert_eq!(difference.bound(), difference.interval95[1]);
    }

    #[test]
    fn a_relative_difference_turns_into_its_reciprocal() {
        let (a, b) = (estimate(100.0, 1.0, 1e9), estimate(110.0, 2.2, 1e9));
        let there = difference(&a, &b, Scale::Relative).unwrap();
        let back = difference(&b, &a, Scale::Relative).unwrap();
        assert_near(there.value, 0.1);
        // The interval is ln 1.1 ± 1.96·√(0.01² + 0.02²), on the logarithmic scale.
        assert_near(there.interval95[0], 1.1 * (-1.95996 * 0.0005_f64.sqrt()).exp() - 1.0);
        assert_near((1.0 + there.interval95[0]) * (1.0 + back.interval95[1]), 1.0);
        assert_near(there.p, back.p);
        assert_eq!(difference(&estimate(0.0, 1.0, 5.0), &b, Scale::Relative), None);
    }

    #[test]
    fn figures_without_any_error_differ_or_are_equal() {
        let [one, same, other] = [5.0, 5.0, 6.0].map(|value| estimate(value, 0.0, 3.0));
        assert_eq!(difference(&one, &same, Scale::Relative).unwrap().p, 1.0);
        let differing = difference(&one, &other, Scale::Absolute).unwrap();
        assert_eq!((differing.p, differing.interval95), (0.0, [1.0, 1.0]));
    }

    #[test]
    fn the_detectable_difference_is_found_in_four_of_five_tries() {
        let a = estimate(10.0, 1.0, 1e9);
        let found = difference(&a, &a, Scale::Absolute).unwrap();
        assert_near(found.smallest_detectable(1).unwrap(), (1.95996 + 0.84162) * 2_f64.sqrt());
        assert_near(found.smallest_detectable(5).unwrap(), (2.57583 + 0.84162) * 2_f64.sqrt());
    }

    #[test]
    fn holm_adjusts_as_in_the_textbook() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(expected).all(|(p, expected)| (p - expected).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    /// Both sides have the same true value, and each is estimated from correlated parts of one run. If false alarms
    /// have the probability p, their number exceeds p·n by more than three standard deviations only once in 700 times.
    /// The random seed is fixed.
    #[test]
    fn equal_figures_of_correlated_parts_rarely_differ() {
        const PAIRS: usize = 1_000;
        let mut random = Pcg64Mcg::seed_from_u64(9);
        for correlation in [0.0, 0.6, 0.9] {
            let mut parts = || -> Vec<(f64, f64)> {
                correlated(&mut random, correlation, 120).into_iter().map(|value| (value, 1.0)).collect()
            };
            let mut estimate = || Estimate::from_parts(&parts()).unwrap();
            let mut p = || difference(&estimate(), &estimate(), Scale::Relative).unwrap().p;
            let alarms = (0..PAIRS).filter(|_| p() < FALSE_ALARM_PROBABILITY).count();
            let bound = 0.05 + 3.0 * (0.05 * 0.95 / PAIRS as f64).sqrt();
            assert!((alarms as f64) <= bound * PAIRS as f64, "{alarms} false alarms at a correlation of {correlation}");
        }
    }
}
