//! Computes statistics with 95 % confidence intervals from the slices (periods) of a run.
//!
//! Warm-up: slices are removed from the beginning of the run. Their number is the one that minimizes the standard error
//! of the mean of the other slices (MSER; White 1997, White, Cobb & Spratt 2000). The warm-up ends at the latest where
//! the values first cross this mean (Fishman 1973). From that slice on, the network is in its steady state, and
//! removing more slices would bias a short run. The warm-up is computed for two series: the number of requests at all
//! stations, and at the busiest station. The longer of the two warm-ups is used, but at most half the run. If the
//! standard error is smallest at this limit, the network has not settled.
//!
//! Intervals: the rest of the run is divided into 32 batches of equal time (Schmeiser 1982: more than 30 batches hardly
//! improve an interval). Every statistic is a ratio of two sums, such as seconds over requests. Its standard error is
//! computed from the batches' deviations from the ratio (Cochran 1977, §6.3), with Student's t for 31 degrees of
//! freedom. Two corrections follow Skart (Tafazzoli & Wilson 2011).
//!
//! The first correction is for correlation, because successive batches of a congested network are correlated. A
//! correlation r > 0 of the deviations of successive batches widens the interval by √((1 + r)/(1 − r)), which is exact
//! for a first-order autoregression.
//!
//! The second correction is for skewness near saturation. Queues are occasionally very long there, and a run without a
//! very long queue would yield too low an estimate and too short an interval. Willink (2005) shifts the ends of
//! Student's interval by the third moment; the longer side is used for both ends. At a utilization of 0.98, 94 % of the
//! intervals cover the true value after a million events, and 89 % without the correction for skewness.
//!
//! Quantiles: first, the interval of the share of requests below the quantile is computed. The measured distribution
//! then converts its ends to times (Woodruff 1952).

use super::histogram::{BUCKETS, Histogram};
use super::record::Slice;
use crate::Estimate;

/// Number of batches (parts of equal length) into which a run without its warm-up is divided.
pub(super) const BATCHES: usize = 32;
/// Quantile of Student's t distribution for 31 degrees of freedom and two-sided 95 % intervals.
const STUDENT: f64 = 2.039_513;
/// Correlations of successive batches above this value are treated like this value. The intervals are then too short by
/// an unknown amount.
const MAX_CORRELATION: f64 = 0.9;

/// Returns the number of slices that are warm-up, and whether the run has settled after the warm-up. A slice is a
/// period of the run. Each series has one value per slice.
pub(super) fn warm_up(series: &[Vec<f64>]) -> (usize, bool) {
    let latest = series.iter().map(|values| (warm_up_length(values), values.len() / 2)).max().unwrap_or((0, 0));
    (latest.0, latest.0 < latest.1 || latest.1 == 0)
}

/// Returns the number of values at the beginning that belong to the warm-up, at most half of the values.
fn warm_up_length(values: &[f64]) -> usize {
    let mut mean = 0.0;
    let mut squares = 0.0;
    let mut n = 0.0;
    let mut best = (f64::INFINITY, 0);
    for (i, value) in values.iter().enumerate().rev() {
        n += 1.0;
        let deviation = value - mean;
        mean += deviation / n;
        squares += deviation * (value - mean);
        let error = squares / (n * n);
        if i <= values.len() / 2 && error <= best.0 {
            best = (error, i);
        }
    }
    let rest = &values[best.1..];
    let mean = rest.iter().sum::<f64>() / rest.len() as f64;
    let crossing = values.iter().position(|value| (*value < mean) != (values[0] < mean));
    best.1.min(crossing.unwrap_or(best.1))
}

/// Divides the slices (periods) of a run without its warm-up into [`BATCHES`] equal parts. If slices remain after the
/// division, the warm-up becomes longer by these slices.
pub(super) fn batches(slices: &[Slice], warm_up: usize) -> Vec<&[Slice]> {
    let size = (slices.len() - warm_up) / BATCHES;
    if size == 0 {
        return Vec::new();
    }
    slices[slices.len() - size * BATCHES..].chunks(size).collect()
}

/// Returns the ratio of two sums over batches (parts of a run) with its confidence interval, and the correlation
/// between successive batches. Returns `None` if the denominator is 0. The ratio has no interval if the denominator is
/// 0 in half of the batches.
pub(super) fn ratio(batches: impl IntoIterator<Item = [f64; 2]>) -> Option<(Estimate, f64)> {
    let batches: Vec<[f64; 2]> = batches.into_iter().collect();
    let n = batches.len() as f64;
    let sum = |i: usize| batches.iter().map(|b| b[i]).sum::<f64>();
    let denominator = sum(1);
    if denominator.is_nan() || denominator <= 0.0 {
        return None;
    }
    let value = sum(0) / denominator;
    if 2 * batches.iter().filter(|b| b[1] > 0.0).count() <= batches.len() {
        return Some((Estimate { value, ci95_half_width: None }, 0.0));
    }
    let residuals: Vec<f64> = batches.iter().map(|b| (b[0] - value * b[1]) * n / denominator).collect();
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let products: f64 = residuals.windows(2).map(|r| r[0] * r[1]).sum();
    // Residuals that are only rounding errors have no meaningful correlation, so it is set to 0.
    let correlation = if squares.sqrt() > 1e-12 * value.abs() * n { products / squares } else { 0.0 };
    let r = correlation.clamp(0.0, MAX_CORRELATION);
    let error = (squares / (n - 1.0) / n * (1.0 + r) / (1.0 - r)).sqrt();
    let errors = skewness_corrected_t(&residuals, squares);
    Some((Estimate { value, ci95_half_width: Some(errors * error) }, correlation))
}

/// Student's t for the longer side of a confidence interval, corrected for the skewness of the batches' residuals.
/// `squares` is the sum of the squared residuals.
fn skewness_corrected_t(residuals: &[f64], squares: f64) -> f64 {
    let n = residuals.len() as f64;
    let deviation = (squares / (n - 1.0)).sqrt();
    let cubes: f64 = residuals.iter().map(|r| (r / deviation).powi(3)).sum();
    let skewness = cubes * n / ((n - 1.0) * (n - 2.0));
    let a = skewness.abs() / (6.0 * n.sqrt());
    // Without skewness the expression is 0/0. If all residuals are 0, the skewness is undefined.
    if a < 1e-6 || a.is_nan() { STUDENT } else { (1.0 - (1.0 - 6.0 * a * (STUDENT + a)).cbrt()) / (2.0 * a) }
}

/// Median and percentiles of the response time of a class. `None` if no request of the class was completed.
pub(super) fn quantiles(
    batches: &[&[Slice]],
    class: usize,
    histogram: &Histogram,
    shares: [f64; 4],
) -> Option<[Estimate; 4]> {
    let mut counts: Vec<Vec<u64>> = Vec::new();
    for batch in batches {
        let mut row = vec![0; BUCKETS];
        for (bucket, count) in batch.iter().flat_map(|slice| &slice.times[class]) {
            row[usize::from(*bucket)] += u64::from(*count);
        }
        counts.push(row);
    }
    let total: Vec<u64> = (0..BUCKETS).map(|i| counts.iter().map(|row| row[i]).sum()).collect();
    let all: u64 = total.iter().sum();
    if all == 0 {
        return None;
    }
    let at = |share: f64| position(&total, share * all as f64);
    let time = |position: f64| {
        let (bucket, within) = (position.floor(), position.fract());
        let (low, high) = (histogram.lower_edge(bucket as usize), histogram.lower_edge(bucket as usize + 1));
        low + within * (high - low)
    };
    Some(shares.map(|share| {
        let quantile = at(share);
        let value = time(quantile);
        let below = |row: &Vec<u64>| [count_below(row, quantile), row.iter().sum::<u64>() as f64];
        let half_width = ratio(counts.iter().map(below)).and_then(|(share, _)| share.ci95_half_width);
        // There is no interval if it would extend beyond the shortest or the longest observed time.
        let ci95_half_width = half_width
            .filter(|half| share + half < 1.0 && share - half > 0.0)
            .map(|half| (time(at(share + half)) - value).max(value - time(at(share - half))));
        Estimate { value, ci95_half_width }
    }))
}

/// Returns a position in the histogram. Its integer part is the bucket that contains the request of rank `rank`, and
/// its fraction is how far into the bucket that request is.
fn position(counts: &[u64], rank: f64) -> f64 {
    let mut below = 0.0;
    let mut last = 0.0;
    for (bucket, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = *count as f64;
        if below + count >= rank {
            return bucket as f64 + ((rank - below) / count).clamp(0.0, 1.0 - 1e-9);
        }
        below += count;
        last = bucket as f64 + 1.0 - 1e-9;
    }
    last
}

/// The number of requests below `position`, which is a result of [`position`].
fn count_below(counts: &[u64], position: f64) -> f64 {
    let bucket = position.floor() as usize;
    let whole: u64 = counts[..bucket].iter().sum();
    whole as f64 + position.fract() * counts.get(bucket).copied().unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_differ_from_the_rest_are_warm_up() {
        let noise = |i: usize| ((i * 7919) % 13) as f64 / 13.0;
        let settled: Vec<f64> = (0..200).map(noise).collect();
        assert!(warm_up_length(&settled) < 20, "{}", warm_up_length(&settled));
        let warming: Vec<f64> = (0..200).map(|i| noise(i) + if i < 40 { (40 - i) as f64 } else { 0.0 }).collect();
        assert!((36..50).contains(&warm_up_length(&warming)), "{}", warm_up_length(&warming));
        let burst: Vec<f64> = (0..200).map(|i| noise(i) + if (20..60).contains(&i) { 9.0 } else { 0.0 }).collect();
        assert!(warm_up_length(&burst) <= 20, "{}", warm_up_length(&burst));
        let growing: Vec<f64> = (0..200).map(|i| noise(i) + i as f64).collect();
        assert_eq!(warm_up_length(&growing), 100);
    }

    #[test]
    fn a_ratio_is_that_of_the_sums() {
        let (estimate, correlation) = ratio([[1.0, 1.0], [3.0, 1.0], [1.0, 1.0], [3.0, 1.0]]).unwrap();
        assert_eq!(estimate.value, 2.0);
        // The deviations of the four values from the mean are −1, 1, −1 and 1, so the variance is 4/3, and the variance
        // of the mean is 1/3. There is no skewness to correct.
        assert!((estimate.ci95_half_width.unwrap() - STUDENT / 3.0f64.sqrt()).abs() < 1e-12);
        assert!((correlation + 0.75).abs() < 1e-12);
        assert!(ratio([[0.0, 0.0]; 4]).is_none());
        let rare = ratio([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [2.0, 1.0]]).unwrap().0;
        assert_eq!((rare.value, rare.ci95_half_width), (1.5, None));
    }

    #[test]
    fn skewed_batches_have_wider_intervals() {
        let spread = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let values: Vec<f64> = (0..BATCHES).map(|i| of(i * 7 % BATCHES)).collect();
            let mean = values.iter().sum::<f64>() / BATCHES as f64;
            values.iter().map(|v| v - mean).collect()
        };
        let errors = |residuals: &[f64]| skewness_corrected_t(residuals, residuals.iter().map(|r| r * r).sum());
        assert!((errors(&spread(&|i| i as f64)) - STUDENT).abs() < 1e-3);
        let (rising, falling) = (spread(&|i| (0.2 * i as f64).exp()), spread(&|i| -(0.2 * i as f64).exp()));
        assert!(errors(&rising) > 1.3 * STUDENT && errors(&rising) < 3.0 * STUDENT, "{}", errors(&rising));
        assert_eq!(errors(&rising), errors(&falling));
        assert_eq!(errors(&[0.0; BATCHES]), STUDENT);
    }

    #[test]
    fn correlated_batches_have_wider_intervals() {
        let steps = |period: usize| -> Vec<[f64; 2]> {
            (0..BATCHES).map(|i| [if (i / period).is_multiple_of(2) { 1.0 } else { 3.0 }, 1.0]).collect()
        };
        let (even, _) = ratio(steps(1)).unwrap();
        let (slow, correlation) = ratio(steps(8)).unwrap();
        assert!(correlation > 0.7, "{correlation}");
        assert!(slow.ci95_half_width.unwrap() > 2.0 * even.ci95_half_width.unwrap());
    }
}
