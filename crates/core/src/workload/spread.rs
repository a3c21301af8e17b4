//! Probability distributions, for example of think times or numbers of calls, and their notation:
//!
//! ```text
//! 3                                constant
//! exponential:20                   mean
//! geometric:4.2                    mean; the values are the integers from 1
//! lognormal:20,1.5                 mean and coefficient of variation
//! pareto:20,1.5                    mean and exponent: P(X > x) is proportional to x to the power of −1.5
//! quantiles:0=1,0.5=3,0.9=12,1=80  probability=value, with linear interpolation
//! ```
//!
//! A value is drawn as the [`Spread::quantile`] of one uniform random number, so skipping n values means skipping n
//! random numbers.

mod written;

use crate::JsonSchema;
use serde::{Deserialize, Serialize};
use written::SerializedSpread;

/// Upper bound of means, coefficients of variation and values. It prevents draws from overflowing to infinity.
const MAX_VALUE: f64 = 1e15;

/// A probability distribution of non-negative numbers, in the unit of the field that contains it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "SerializedSpread", into = "SerializedSpread")]
#[schemars(with = "SerializedSpread")]
pub enum Spread {
    /// Constant distribution: every draw has this value.
    Constant(f64),
    /// Exponential distribution.
    Exponential {
        /// The mean of the distribution.
        mean: f64,
    },
    /// Geometric distribution on the integers from 1.
    Geometric {
        /// The mean of the distribution, at least 1.
        mean: f64,
    },
    /// Log-normal distribution.
    Lognormal {
        /// The mean of the distribution, above zero.
        mean: f64,
        /// The coefficient of variation: the standard deviation divided by the mean.
        cv: f64,
    },
    /// Pareto distribution. Its smallest value is `mean · (tail − 1) / tail`.
    Pareto {
        /// The mean of the distribution, above zero.
        mean: f64,
        /// The exponent of the power law of the tail, above 1.
        tail: f64,
    },
    /// A distribution that is defined by its quantile function: at least two pairs of probability and value, from
    /// probability 0 to 1, with linear interpolation between pairs. Two pairs with the same probability are a jump of
    /// the function. Two pairs with the same value mean that this value itself has a positive probability: the
    /// difference of the pairs' probabilities.
    Quantiles(Vec<[f64; 2]>),
}

/// The error for a text or parameters that do not specify a distribution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpreadError {
    /// The text does not have the notation of a distribution.
    #[error(
        "`{0}` is not a distribution: write a number, exponential:MEAN, geometric:MEAN, lognormal:MEAN,CV, \
         pareto:MEAN,TAIL or quantiles:0=LEAST,0.5=MEDIAN,1=MOST"
    )]
    Unknown(String),
    /// There is no distribution with these parameters.
    #[error("`{spread}` is not a distribution: {why}")]
    Impossible {
        /// The text of the distribution, such as `lognormal:20,1.5`.
        spread: String,
        /// The reason why there is none, and how to correct the parameters.
        why: &'static str,
    },
}

impl Spread {
    /// The mean of the distribution.
    pub fn mean(&self) -> f64 {
        match self {
            Spread::Constant(value) => *value,
            Spread::Exponential { mean }
            | Spread::Geometric { mean }
            | Spread::Lognormal { mean, .. }
            | Spread::Pareto { mean, .. } => *mean,
            Spread::Quantiles(points) => points
                .iter()
                .zip(points.iter().skip(1))
                .map(|([p, value], [next_p, next_value])| (next_p - p) * f64::midpoint(*value, *next_value))
                .sum(),
        }
    }

    /// Quantile function: the inverse of the distribution function at the probability `p`. `p` is clamped to 0…1, and
    /// NaN is treated as 0. At 1, the quantile of an unbounded distribution is infinite.
    pub fn quantile(&self, p: f64) -> f64 {
        let p = if p > 0.0 { p.min(1.0) } else { 0.0 };
        match self {
            Spread::Constant(value) => *value,
            Spread::Exponential { mean } if *mean == 0.0 => 0.0,
            Spread::Exponential { mean } => -mean * (-p).ln_1p(),
            Spread::Geometric { mean } if *mean <= 1.0 => 1.0,
            Spread::Geometric { mean } => ((-p).ln_1p() / (-mean.recip()).ln_1p()).ceil().max(1.0),
            Spread::Lognormal { mean, cv } if *cv == 0.0 => *mean,
            Spread::Lognormal { mean, cv } => {
                let variance = (cv * cv).ln_1p();
                mean * (variance.sqrt() * normal_quantile(p) - variance / 2.0).exp()
            }
            Spread::Pareto { mean, tail } => mean * (tail - 1.0) / tail * (1.0 - p).powf(-tail.recip()),
            Spread::Quantiles(points) => between(points, p),
        }
    }

    /// Draws an integer of at least 1 from a uniform random number `p`. The quantile at `p` is rounded up or down at
    /// random. The probability of rounding up is the fractional part of the quantile, so rounding does not change the
    /// mean if no value is below 1. The random decision uses the binary digits of `p` after the 26th, so a draw needs
    /// only one random number.
    pub fn count(&self, p: f64) -> u64 {
        const SHIFT: f64 = (1_u64 << 26) as f64;
        // The conversion to `u64` saturates, and converts NaN to 0.
        ((self.quantile(p) + (p * SHIFT).fract()).floor() as u64).max(1)
    }

    /// Checks the conditions on the parameters that their types do not guarantee.
    ///
    /// # Errors
    /// Returns [`SpreadError::Impossible`] if there is no distribution with these parameters.
    pub fn validate(&self) -> Result<(), SpreadError> {
        let not_negative = |value: f64| (0.0..=MAX_VALUE).contains(&value);
        let positive = |value: f64| value > 0.0 && value <= MAX_VALUE;
        let why = match self {
            Spread::Constant(mean) | Spread::Exponential { mean } if !not_negative(*mean) => {
                "its mean is a number from 0 to 1e15"
            }
            Spread::Geometric { mean } if !(1.0..=MAX_VALUE).contains(mean) => "its mean is a number from 1 to 1e15",
            Spread::Lognormal { mean, .. } | Spread::Pareto { mean, .. } if !positive(*mean) => {
                "its mean is a number above zero, at most 1e15"
            }
            Spread::Lognormal { cv, .. } if !not_negative(*cv) => {
                "its coefficient of variation is a number from 0 to 1e15"
            }
            Spread::Pareto { tail, .. } if !(*tail > 1.0 && *tail <= MAX_VALUE) => {
                "its tail is above 1, or it would have no mean"
            }
            Spread::Quantiles(points) => return self.validate_points(points),
            _ => return Ok(()),
        };
        Err(self.impossible(why))
    }

    fn validate_points(&self, points: &[[f64; 2]]) -> Result<(), SpreadError> {
        let ends = match points {
            [[first, _], .., [last, _]] => (*first, *last) == (0.0, 1.0),
            _ => false,
        };
        // Comparisons with NaN are false, so this check also rejects points that contain NaN.
        let rise = points.iter().zip(points.iter().skip(1)).all(|(a, b)| a[0] <= b[0] && a[1] <= b[1]);
        let bounded = points.iter().all(|[_, value]| (0.0..=MAX_VALUE).contains(value));
        match (ends, rise && bounded) {
            (false, _) => Err(self.impossible("the first probability is 0 and the last 1")),
            (_, false) => Err(self.impossible("probabilities rise, and so do values, which are from 0 to 1e15")),
            (true, true) => Ok(()),
        }
    }

    fn impossible(&self, why: &'static str) -> SpreadError {
        SpreadError::Impossible { spread: self.to_string(), why }
    }
}

/// Interpolates linearly between points of probability and value, at the probability `p`.
fn between(points: &[[f64; 2]], p: f64) -> f64 {
    let next = points.partition_point(|[probability, _]| *probability <= p);
    match (next.checked_sub(1).and_then(|before| points.get(before)), points.get(next)) {
        (Some([from, low]), Some([to, high])) => low + (high - low) * (p - from) / (to - from),
        (Some([_, value]), None) | (None, Some([_, value])) => *value,
        (None, None) => 0.0,
    }
}

/// Quantile function of the standard normal distribution, accurate to seven digits (algorithm AS 241, PPND7, Wichura
/// 1988).
fn normal_quantile(p: f64) -> f64 {
    let polynomial = |coefficients: &[f64], x: f64| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
    if p <= 0.0 || p >= 1.0 {
        return if p <= 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        let below = [1.0, 17.895_169_469, 78.757_757_664, 67.187_563_600];
        return q * polynomial(&[3.387_132_717_9, 50.434_271_938, 159.291_132_02, 59.109_374_720], r)
            / polynomial(&below, r);
    }
    let r = (-p.min(1.0 - p).ln()).sqrt();
    let z = if r <= 5.0 {
        let r = r - 1.6;
        polynomial(&[1.423_437_277_7, 2.756_815_390_0, 1.306_728_481_6, 0.170_238_211_03], r)
            / polynomial(&[1.0, 0.737_001_642_50, 0.120_211_329_75], r)
    } else {
        let r = r - 5.0;
        polynomial(&[6.657_905_115_0, 3.081_226_386_0, 0.428_682_943_37, 0.017_337_203_997], r)
            / polynomial(&[1.0, 0.241_978_942_25, 0.012_258_202_635], r)
    };
    z.copysign(q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Spread {
        text.parse().unwrap()
    }

    const KINDS: [&str; 7] = [
        "2.5",
        "exponential:20",
        "geometric:4.2",
        "lognormal:20,1.5",
        "pareto:20,2.5",
        "quantiles:0=1,0.5=3,0.9=12,1=80",
        "quantiles:0=1,0.4=1,0.4=2,1=2",
    ];

    #[test]
    fn the_mean_is_that_of_the_draws() {
        for text in KINDS {
            let (spread, n) = (of(text), 1_000_000);
            let sum: f64 = (0..n).map(|i| spread.quantile((f64::from(i) + 0.5) / f64::from(n))).sum();
            let mean = sum / f64::from(n);
            assert!((mean / spread.mean() - 1.0).abs() < 2e-3, "{text}: {mean} and not {}", spread.mean());
        }
        assert_eq!(of("quantiles:0=1,0.4=1,0.4=2,1=2").mean(), 1.6);
    }

    #[test]
    fn quantiles_are_the_inverse_of_the_distribution_function() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{a} and not {b}");
        near(of("exponential:2").quantile(0.5), 2.0 * 2f64.ln());
        near(of("pareto:3,1.5").quantile(0.75), 0.25f64.powf(-1.0 / 1.5));
        // With a coefficient of variation of 1, ln X is normal with variance ln 2 and mean −(ln 2)/2. Its 97.5 %
        // quantile is 1.959964 standard deviations above its mean.
        near(of("lognormal:1,1").quantile(0.975), (2f64.ln().sqrt() * 1.959_963_985 - 2f64.ln() / 2.0).exp());
        near(of("quantiles:0=1,0.5=3,0.9=12,1=80").quantile(0.7), 7.5);
        // With a mean of 4, P(X ≤ 1) = 0.25 and P(X ≤ 2) = 1 − (3/4)² = 0.4375.
        assert_eq!([0.0, 0.24, 0.26, 0.43, 0.44].map(|p| of("geometric:4").quantile(p)), [1.0, 1.0, 2.0, 2.0, 3.0]);
        assert_eq!([0.39, 0.41].map(|p| of("quantiles:0=1,0.4=1,0.4=2,1=2").quantile(p)), [1.0, 2.0]);
        for p in [1e-12, 1e-6, 0.05, 0.3] {
            near(normal_quantile(p), -normal_quantile(1.0 - p));
        }
        near(normal_quantile(1e-12), -7.034_484);
        near(normal_quantile(0.6), 0.253_347_1);
    }

    #[test]
    fn whole_numbers_keep_the_mean_and_are_never_none() {
        let n = 1 << 20;
        for (text, mean) in [("3", 3.0), ("2.25", 2.25), ("geometric:4.2", 4.2), ("lognormal:9,0.3", 9.0), ("0.2", 1.0)]
        {
            // The fractional parts of multiples of the golden ratio cover the unit interval evenly. Their last binary
            // digits, which determine the rounding, are also distributed evenly.
            let uniform = (0..n).map(|i| (f64::from(i) * 0.618_033_988_749_894_9).fract());
            let sum: u64 = uniform.map(|p| of(text).count(p)).sum();
            assert!((sum as f64 / f64::from(n) / mean - 1.0).abs() < 5e-3, "{text}: {}", sum as f64 / f64::from(n));
        }
        assert_eq!(of("exponential:5").count(1.0), u64::MAX);
    }

    /// Generates distributions of all kinds.
    pub(super) fn any_spread() -> impl Strategy<Value = Spread> {
        let points = prop::collection::vec((0.0..1.0, 0.0..1e6), 0..6).prop_map(|inner: Vec<(f64, f64)>| {
            let (mut p, mut values): (Vec<f64>, Vec<f64>) = inner.into_iter().unzip();
            p.extend([0.0, 1.0]);
            values.extend([0.5, 2e6]);
            p.sort_by(f64::total_cmp);
            values.sort_by(f64::total_cmp);
            Spread::Quantiles(p.into_iter().zip(values).map(|(p, value)| [p, value]).collect())
        });
        prop_oneof![
            (0.0..1e9).prop_map(Spread::Constant),
            (0.0..1e9).prop_map(|mean| Spread::Exponential { mean }),
            (1.0..1e9).prop_map(|mean| Spread::Geometric { mean }),
            (1e-9..1e9, 0.0..1e3).prop_map(|(mean, cv)| Spread::Lognormal { mean, cv }),
            (1e-9..1e9, 1.001..1e3).prop_map(|(mean, tail)| Spread::Pareto { mean, tail }),
            points,
        ]
    }

    proptest! {
        #[test]
        fn quantiles_never_fall(spread in any_spread(), a in 0.0..1.0, b in 0.0..1.0) {
            let (low, high) = (spread.quantile(f64::min(a, b)), spread.quantile(f64::max(a, b)));
            prop_assert!(low >= 0.0 && low <= high * (1.0 + 1e-6), "{} {} {}", spread, low, high);
            prop_assert!(spread.count(a) >= 1);
        }
    }
}
