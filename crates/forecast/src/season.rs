//! Detects seasons, and computes the pattern that each season adds to the trend.
//!
//! The decomposition is MSTL (Bandara, Hyndman & Bergmeir, 2021; STL: Cleveland et al., 1990), with patterns that
//! repeat without change. The periods of a day and of a week are tried if the step divides them and the history has at
//! least two of these periods. An F test compares the mean square of a pattern with the mean square of the remainder.

use crate::line::ols;
use crate::time::DAY_S;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// Significance level of the F test: the probability that noise is detected as a season.
const SIGNIFICANCE_LEVEL: f64 = 0.01;

/// Mean squares below this share of the mean square of the series count as rounding errors.
const ROUNDING: f64 = 1e-20;

/// Length of the loess window for the trend, as a multiple of the longest period. In the F test, the trend counts as
/// two parameters per window length.
const TREND_WINDOW: f64 = 1.5;

/// A season: a pattern of values that repeats with a fixed period.
#[derive(Clone, Debug)]
pub(crate) struct Season {
    /// The pattern, whose values sum to 0. The season adds `pattern[i % pattern.len()]` at index i of the series.
    pub pattern: Vec<f64>,
}

impl Season {
    /// The value that the season adds to the series at this index.
    pub(crate) fn value_at(&self, index: usize) -> f64 {
        self.pattern[index % self.pattern.len()]
    }

    /// Number of parameters: one less than the length of the pattern, because the values sum to 0.
    pub(crate) fn parameters(&self) -> f64 {
        self.pattern.len() as f64 - 1.0
    }
}

/// The usual lengths of seasons, in steps of `step_s` seconds, the shortest first: a day and a week or, for weekly
/// steps, a year.
pub(crate) fn usual_periods(step_s: u32) -> Vec<usize> {
    let step = i64::from(step_s);
    let whole = |period: i64| (period % step == 0 && period / step > 1).then_some((period / step) as usize);
    let mut periods: Vec<usize> = [DAY_S, 7 * DAY_S].into_iter().filter_map(whole).collect();
    if step == 7 * DAY_S {
        periods.push(52);
    }
    periods
}

/// The seasons with lengths from `candidates` that differ significantly from noise.
pub(crate) fn detect(values: &[f64], candidates: &[usize]) -> Vec<Season> {
    let mut periods = candidates.to_vec();
    loop {
        let (seasons, rest) = decompose(values, &periods);
        let doubtful = doubtful(values, &seasons, &rest);
        if doubtful.is_empty() {
            return seasons;
        }
        periods.retain(|p| !doubtful.contains(p));
    }
}

/// Computes the seasons with these periods. Also returns the remainder after subtracting trend and seasons. Ignores
/// periods that occur less than twice in the series.
pub(crate) fn decompose(values: &[f64], periods: &[usize]) -> (Vec<Season>, Vec<f64>) {
    let periods: Vec<usize> = periods.iter().copied().filter(|p| *p > 1 && values.len() / p >= 2).collect();
    let mut parameters = stlrs::MstlParams::new();
    parameters.seasonal_lengths(&vec![10 * values.len() + 1; periods.len()]);
    // A line is subtracted first, because MSTL separates a pattern from a steep trend only slowly.
    match parameters.fit(&without_line(values), &periods) {
        Ok(fitted) => {
            let components = fitted.seasonal().iter().zip(&periods);
            let seasons = components.map(|(component, period)| Season { pattern: pattern(component, *period) });
            (seasons.collect(), fitted.remainder().to_vec())
        }
        // MSTL fails if `periods` is empty.
        Err(_) => (Vec::new(), Vec::new()),
    }
}

/// Returns the values after subtracting their least-squares line.
fn without_line(values: &[f64]) -> Vec<f64> {
    let times: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
    let line = ols(&times, values).map_or((0.0, 0.0), |line| (line.intercept, line.slope));
    times.iter().zip(values).map(|(t, v)| v - line.0 - line.1 * t).collect()
}

/// The mean cycle of a seasonal component, with mean 0.
fn pattern(component: &[f64], period: usize) -> Vec<f64> {
    let mean_at = |phase: usize| {
        let seen = component.iter().skip(phase).step_by(period);
        seen.clone().sum::<f64>() / seen.count() as f64
    };
    let cycle: Vec<f64> = (0..period).map(mean_at).collect();
    let mean = cycle.iter().sum::<f64>() / period as f64;
    cycle.into_iter().map(|c| c - mean).collect()
}

/// Lengths of the seasons that do not differ significantly from noise.
fn doubtful(values: &[f64], seasons: &[Season], rest: &[f64]) -> Vec<usize> {
    let squares = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>();
    let n = rest.len() as f64;
    let longest = seasons.iter().map(|s| s.pattern.len()).max().unwrap_or(1) as f64;
    let taken = seasons.iter().map(Season::parameters).sum::<f64>() + 2.0 * n / (TREND_WINDOW * longest);
    let freedom = (n - taken).max(1.0);
    let noise = squares(rest) / freedom;
    let rounding = ROUNDING * squares(values) / n.max(1.0);
    let is_doubtful = |season: &&Season| {
        let added = squares(&season.pattern) / season.pattern.len() as f64;
        let test = FisherSnedecor::new(season.parameters(), freedom);
        let by_chance = || test.map_or(1.0, |test| test.sf(n * added / season.parameters() / noise));
        added <= rounding || (noise > rounding && by_chance() > SIGNIFICANCE_LEVEL)
    };
    seasons.iter().filter(is_doubtful).map(|s| s.pattern.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_periods_follow_from_the_step() {
        assert_eq!(usual_periods(3600), [24, 168]);
        assert_eq!(usual_periods(86_400), [7]);
        assert_eq!(usual_periods(900), [96, 672]);
        assert_eq!(usual_periods(604_800), [52]);
        assert_eq!(usual_periods(7000), [0_usize; 0]);
        assert_eq!(usual_periods(1_000_000), [0_usize; 0]);
    }

    #[test]
    fn a_pattern_is_told_from_a_trend_and_from_none() {
        let week = [3.0, 5.0, 4.0, 1.0, 0.0, -6.0, -7.0];
        let values: Vec<f64> = (0..70).map(|i| 100.0 + 2.0 * i as f64 + week[i % 7]).collect();
        let seasons = detect(&values, &[7]);
        for (found, truth) in seasons[0].pattern.iter().zip(week) {
            assert!((found - truth).abs() < 0.05, "{found}, {truth}");
        }
        let line: Vec<f64> = (0..70).map(|i| 100.0 + 2.0 * i as f64).collect();
        assert!(detect(&line, &[7]).is_empty());
        assert!(detect(&[5.0; 70], &[7]).is_empty());
        assert!(detect(&values[..13], &[7]).is_empty(), "a period must occur at least twice");
    }
}
