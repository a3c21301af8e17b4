//! Seasons: which there are, and what they add to the trend.
//!
//! The decomposition is MSTL (Bandara, Hyndman & Bergmeir, 2021; STL: Cleveland et al., 1990) with patterns that repeat
//! unchanged. A day and a week are looked for wherever the step divides them and the history holds two; the mean
//! squares of a pattern over those of the remainder are judged by an F test.

use crate::line::ols;
use crate::time::DAY_S;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// Probability of taking noise for a season.
const SIGNIFICANT: f64 = 0.01;

/// Mean squares below this share of the series' are rounding.
const ROUNDING: f64 = 1e-20;

/// Values per parameter that the loess trend of a decomposition takes up: its window over its equivalent parameters.
const TREND_WINDOW: f64 = 1.5;

/// A repeating pattern.
#[derive(Clone, Debug)]
pub(crate) struct Season {
    /// What it adds at index i of the series: `pattern[i % pattern.len()]`. Sums to 0.
    pub pattern: Vec<f64>,
}

impl Season {
    /// What it adds at an index.
    pub(crate) fn at(&self, index: usize) -> f64 {
        self.pattern[index % self.pattern.len()]
    }

    /// Values of the pattern that are free: they sum to 0.
    pub(crate) fn parameters(&self) -> f64 {
        self.pattern.len() as f64 - 1.0
    }
}

/// The periods, in steps, that arrivals at such a step usually have, shortest first: a day and a week; of weeks, a
/// year.
pub(crate) fn usual(step_s: u32) -> Vec<usize> {
    let step = i64::from(step_s);
    let whole = |period: i64| (period % step == 0 && period / step > 1).then_some((period / step) as usize);
    let mut periods: Vec<usize> = [DAY_S, 7 * DAY_S].into_iter().filter_map(whole).collect();
    if step == 7 * DAY_S {
        periods.push(52);
    }
    periods
}

/// The seasons of these periods that are there beyond doubt.
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

/// Seasons of these periods and what neither they nor the trend explain; no season of a period that does not fit into
/// the series twice.
pub(crate) fn decompose(values: &[f64], periods: &[usize]) -> (Vec<Season>, Vec<f64>) {
    let periods: Vec<usize> = periods.iter().copied().filter(|p| *p > 1 && values.len() / p >= 2).collect();
    let mut parameters = stlrs::MstlParams::new();
    parameters.seasonal_lengths(&vec![10 * values.len() + 1; periods.len()]);
    // The decomposition would be slow to tell a pattern from a steep trend.
    match parameters.fit(&without_line(values), &periods) {
        Ok(fitted) => {
            let components = fitted.seasonal().iter().zip(&periods);
            let seasons = components.map(|(component, period)| Season { pattern: pattern(component, *period) });
            (seasons.collect(), fitted.remainder().to_vec())
        }
        // There is no period to decompose by.
        Err(_) => (Vec::new(), Vec::new()),
    }
}

/// What a least-squares line leaves of a series.
fn without_line(values: &[f64]) -> Vec<f64> {
    let times: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
    let line = ols(&times, values).map_or((0.0, 0.0), |line| (line.intercept, line.slope));
    times.iter().zip(values).map(|(t, v)| v - line.0 - line.1 * t).collect()
}

/// One cycle of a component, about 0.
fn pattern(component: &[f64], period: usize) -> Vec<f64> {
    let mean_at = |phase: usize| {
        let seen = component.iter().skip(phase).step_by(period);
        seen.clone().sum::<f64>() / seen.count() as f64
    };
    let cycle: Vec<f64> = (0..period).map(mean_at).collect();
    let mean = cycle.iter().sum::<f64>() / period as f64;
    cycle.into_iter().map(|c| c - mean).collect()
}

/// Periods of the seasons that may as well be noise, given what is left of a series.
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
        added <= rounding || (noise > rounding && by_chance() > SIGNIFICANT)
    };
    seasons.iter().filter(is_doubtful).map(|s| s.pattern.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_periods_follow_from_the_step() {
        assert_eq!(usual(3600), [24, 168]);
        assert_eq!(usual(86_400), [7]);
        assert_eq!(usual(900), [96, 672]);
        assert_eq!(usual(604_800), [52]);
        assert_eq!(usual(7000), [0_usize; 0]);
        assert_eq!(usual(1_000_000), [0_usize; 0]);
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
        assert!(detect(&values[..13], &[7]).is_empty(), "less than twice");
    }
}
