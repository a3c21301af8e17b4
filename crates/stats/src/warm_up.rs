//! Detects the end of a warm-up: MSER-5 (White 1997, "An effective truncation heuristic for bias reduction in
//! simulation output"; Franklin & White 2008, "Stationarity tests and MSER-5").
//!
//! Observations are averaged in batches of five. The truncation point is the number of initial batches that, when left
//! out, minimizes the standard error of the mean of the other batches. If it is in the second half of the series, the
//! series is not steady yet.

use brimful_core::moments::{Moments, mean};
use brimful_core::record::Interval;

/// Number of observations in a batch.
const BATCH: usize = 5;
/// Minimum number of batches; a shorter series counts as not steady.
const MIN_BATCHES: usize = 8;
/// Number of batches at the end that are always kept. With fewer batches, the standard error may be small by chance.
const LAST_BATCHES: usize = 4;

/// Number of observations to leave out at the start of a series; `None` if the series is too short or not steady yet.
pub fn truncation_point(observations: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = observations.chunks_exact(BATCH).filter_map(mean).collect();
    if batches.len() < MIN_BATCHES {
        return None;
    }
    // The squared standard error of the mean of the remaining batches.
    let squared_error = |left_out: usize| {
        let rest = &batches[left_out..];
        Moments::from_values(rest).map_or(f64::INFINITY, |moments| moments.population_variance() / rest.len() as f64)
    };
    let candidates = 0..=batches.len() - LAST_BATCHES;
    let left_out = candidates.min_by(|a, b| squared_error(*a).total_cmp(&squared_error(*b)))?;
    (2 * left_out <= batches.len()).then_some(left_out * BATCH)
}

/// Whether a run has become steady, judged by the median response times of its intervals. Intervals without completed
/// calls are ignored. The last interval is also ignored, because it is not complete.
pub fn is_steady(intervals: &[Interval]) -> bool {
    let complete = intervals.split_last().map_or(intervals, |(_, complete)| complete);
    let medians: Vec<f64> = complete.iter().filter_map(|interval| interval.p50_us).collect();
    truncation_point(&medians).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A series that falls exponentially from 100 + `initial` to 100, with noise from a deterministic generator.
    fn falling(length: usize, initial: f64, time_constant: f64) -> Vec<f64> {
        let mut state = 1_u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 24) - 0.5
        };
        (0..length).map(|i| 100.0 + initial * (-(i as f64) / time_constant).exp() + 10.0 * noise()).collect()
    }

    #[test]
    fn a_steady_series_keeps_nearly_all_observations() {
        let left_out = truncation_point(&falling(200, 0.0, 1.0)).unwrap();
        assert!(left_out <= 50, "{left_out} of 200 were left out");
    }

    #[test]
    fn the_start_of_a_falling_series_is_left_out() {
        let left_out = truncation_point(&falling(400, 1_000.0, 20.0)).unwrap();
        assert!((40..=200).contains(&left_out), "{left_out} of 400 were left out");
    }

    #[test]
    fn a_series_that_still_falls_is_not_steady() {
        assert_eq!(truncation_point(&falling(60, 1_000.0, 40.0)), None);
        let line: Vec<f64> = (0..200).map(|i| f64::from(400 - i)).collect();
        assert_eq!(truncation_point(&line), None);
    }

    #[test]
    fn a_short_series_cannot_be_judged() {
        assert_eq!(truncation_point(&[1.0; MIN_BATCHES * BATCH - 1]), None);
        assert_eq!(truncation_point(&[1.0; MIN_BATCHES * BATCH]), Some(0));
    }
}
