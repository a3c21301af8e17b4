//! Seasons: which there are, and what they add to the trend.
//!
//! The decomposition is MSTL (Bandara, Hyndman & Bergmeir, 2021; STL: Cleveland et al., 1990) with patterns that repeat
//! unchanged. A day and a week are looked for wherever the step divides them and the history holds two; the mean squares of a
//! pattern over those of the remainder are judged by an F test.

use super::time::DAY_S;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// Probability of taking noise for a season.
const SIGNIFICANT: f64 = 0.01;

/// Values per parameter that the loess trend of a decomposition takes up: its window over its equivalent parameters.
const TREND_WINDOW: f64 = 1.5;

/// A repeating pattern.
#[derive(Clone, Debug)]
pub(super) struct Season {
    /// What it adds at index i of the series: `pattern[i % pattern.len()]`. Sums to 0.
    pub pattern: Vec<f64>,
}

impl Season {
    /// What it adds at an index.
    pub(super) fn at(&self, index: usize) -> f64 {
        self.pattern[index % self.pattern.len()]
    }
}

/// The periods, in steps, that arrivals at such a step usually have, shortest first: a day and a week; of weeks, a year.
pub(super) fn usual(step_s: u32) -> Vec<usize> {
    let step = i64::from(step_s);
    let whole = |period: i64| (period % step == 0 && period / step > 1).then_some((period / step) as usize);
    let mut periods: Vec<usize> = [DAY_S, 7 * DAY_S].into_iter().filter_map(whole).collect();
    if step == 7 * DAY_S {
        periods.push(52);
    }
    periods
}

/// The seasons of these periods that are there beyond doubt.
pub(super) fn detect(values: &[f64], candidates: &[usize]) -> Vec<Season> {
    let mut periods = candidates.to_vec();
    loop {
        let (seasons, trend) = decompose(values, &periods);
        let doubtful: Vec<usize> = doubtful(values, &seasons, &trend);
        if doubtful.is_empty() {
            return seasons;
        }
        periods.retain(|p| !doubtful.contains(p));
    }
}

/// Seasons of these periods, and the trend; none of a period that does not fit into the series twice.
pub(super) fn decompose(values: &[f64], periods: &[usize]) -> (Vec<Season>, Vec<f64>) {
    let periods: Vec<usize> = periods.iter().copied().filter(|p| *p > 1 && values.len() / p >= 2).collect();
    let periodic = vec![10 * values.len() + 1; periods.len()];
    let mut parameters = stlrs::MstlParams::new();
    parameters.seasonal_lengths(&periodic);
    match parameters.fit(values, &periods) {
        Ok(fitted) => {
            let patterns = fitted.seasonal().iter().zip(&periods);
            (
                patterns.map(|(seen, period)| Season { pattern: pattern(seen, *period) }).collect(),
                fitted.trend().to_vec(),
            )
        }
        // There is no period to decompose by.
        Err(_) => (Vec::new(), Vec::new()),
    }
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

/// Periods of the seasons that may as well be noise.
fn doubtful(values: &[f64], seasons: &[Season], trend: &[f64]) -> Vec<usize> {
    let n = values.len() as f64;
    let longest = seasons.iter().map(|s| s.pattern.len()).max().unwrap_or(1) as f64;
    let taken = seasons.iter().map(|s| s.pattern.len() as f64 - 1.0).sum::<f64>() + 2.0 * n / (TREND_WINDOW * longest);
    let rest = |i: usize| values[i] - trend[i] - seasons.iter().map(|s| s.at(i)).sum::<f64>();
    let left = (0..trend.len()).map(|i| rest(i).powi(2)).sum::<f64>() / (n - taken).max(1.0);
    let size = values.iter().map(|v| v * v).sum::<f64>() / n;
    let is_doubtful = |season: &&Season| {
        let freedom = season.pattern.len() as f64 - 1.0;
        let added = (0..values.len()).map(|i| season.at(i).powi(2)).sum::<f64>();
        if added <= 1e-18 * n * size {
            return true;
        }
        let test = FisherSnedecor::new(freedom, (n - taken).max(1.0));
        left > 0.0 && test.map_or(true, |f| f.sf(added / freedom / left) > SIGNIFICANT)
    };
    seasons.iter().filter(is_doubtful).map(|s| s.pattern.len()).collect()
}
