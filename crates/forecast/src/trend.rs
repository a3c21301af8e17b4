//! The trend of a series without season: exponential smoothing.
//!
//! Of the forms in [`TrendKind`], all special cases of one recursion, the one with the least AICc is
//! taken. Variances are those of linear innovations models (Hyndman, Koehler, Ord & Snyder, *Forecasting with Exponential
//! Smoothing*, 2008, eq. 6.1), plus what the first level and slope may be off by, without which a straight line would be
//! sure of itself for ever: [`TrendKind::Line`] has the textbook's prediction interval of a regression.

mod recursion;

use crate::options::ForecastMethod;
use brimful_core::moments::Moments;
use recursion::{Pass, Smoothing, State};
use schemars::JsonSchema;
use serde::Serialize;

/// Error variance below this share of the variance of the series is rounding.
const ROUNDING: f64 = 1e-12;

/// The form of a trend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrendKind {
    /// The mean of all.
    Constant,
    /// The least-squares line.
    Line,
    /// A line, and deviations from it that fade (first-order autoregression).
    Autoregressive,
    /// A level that moves: simple exponential smoothing.
    Level,
    /// A level that moves, and a steady slope.
    Drift,
    /// A level and a slope that move: Holt's method.
    Local,
    /// The same with a slope that fades.
    Damped,
    /// The mean of the last few.
    MovingAverage,
    /// No trend: the last season again, or the last value where there is no season.
    SeasonalNaive,
}

/// The forms to choose from, the simplest first: where the search for α, β/α, φ and ρ begins. What has one value stays.
const FORMS: [(TrendKind, [&[f64]; 4]); 7] = [
    (TrendKind::Constant, [&[0.0], &[0.0], &[0.0], &[0.0]]),
    (TrendKind::Line, [&[0.0], &[0.0], &[1.0], &[0.0]]),
    (TrendKind::Level, [&ALPHAS, &[0.0], &[0.0], &[0.0]]),
    (TrendKind::Autoregressive, [&[0.0], &[0.0], &[1.0], &[0.2, 0.5, 0.8, 0.95]]),
    (TrendKind::Drift, [&ALPHAS, &[0.0], &[1.0], &[0.0]]),
    (TrendKind::Local, [&ALPHAS, &RATIOS, &[1.0], &[0.0]]),
    (TrendKind::Damped, [&ALPHAS, &RATIOS, &[0.8, 0.9, 0.95, 0.98], &[0.0]]),
];
const ALPHAS: [f64; 6] = [0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const RATIOS: [f64; 4] = [0.01, 0.05, 0.2, 0.6];

/// Bounds of α, β/α, φ and ρ, and the first steps of the search.
const BOUNDS: [(f64, f64); 4] = [(1e-3, 1.0), (1e-3, 1.0), (0.8, 0.98), (0.01, 0.98)];
const STEPS: [f64; 4] = [0.1, 0.05, 0.02, 0.1];

/// The search ends when its steps are so much smaller than the first.
const FINE: f64 = 1.0 / 128.0;

/// A fitted trend.
#[derive(Clone, Debug)]
pub(crate) struct Trend {
    pub kind: TrendKind,
    /// One-step errors, the last at the end of the series; where they begin there was something to predict them by.
    pub errors: Vec<f64>,
    /// Parameters, the variance not counted.
    pub parameters: usize,
    /// AICc, up to what depends on nothing but the number of values.
    pub criterion: f64,
    smoothing: Smoothing,
    /// At the end of the series.
    end: State,
    /// Of the errors.
    variance: f64,
    /// How the end depends on the first level and slope, and their covariance over the variance.
    owed: [State; 2],
    covariance: [[f64; 2]; 2],
    /// What is repeated; empty unless that is all.
    cycle: Vec<f64>,
}

impl Trend {
    /// The trends that a method allows, the one of its choice first, fitted to two finite values or more.
    ///
    /// Information criteria choose by one step ahead. A slope that fades and a level alone do better far ahead where the
    /// slope of a few steps was taken for one that lasts, so that they may be tried beside the choice.
    pub(crate) fn candidates(values: &[f64], method: ForecastMethod) -> Vec<Self> {
        let best = Self::fit(values, method);
        let others = match method {
            ForecastMethod::Auto => &[TrendKind::Damped, TrendKind::Level][..],
            _ => &[],
        };
        let others: Vec<Self> = others.iter().map(|kind| Self::normalized(values, |y| Self::of(y, *kind))).collect();
        std::iter::once(best).chain(others).collect()
    }

    /// The last `period` values again, season values included (seasonal naive method): an error persists, and one more
    /// comes with each season (Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, 2021, §5.5).
    pub(crate) fn seasonal_naive(values: &[f64], period: usize) -> Self {
        let period = period.clamp(1, values.len() - 1);
        let errors = values.iter().zip(&values[period..]).map(|(before, now)| now - before).collect();
        let cycle = values[values.len() - period..].to_vec();
        let end = State { level: cycle.iter().sum::<f64>() / period as f64, ..State::default() };
        Self { cycle, ..Self::ended(TrendKind::SeasonalNaive, Smoothing::default(), end, errors, 0) }
    }

    /// Fits the trend that a method asks for to two finite values or more.
    pub(crate) fn fit(values: &[f64], method: ForecastMethod) -> Self {
        Self::normalized(values, |y| match method {
            ForecastMethod::Auto => Self::best(y),
            ForecastMethod::Line => Self::of(y, TrendKind::Line),
            ForecastMethod::Smoothing { alpha } => Self::smoothing(y, alpha),
            ForecastMethod::MovingAverage { window } => Self::moving_average(y, window),
        })
    }

    /// A fit in units of the standard deviation, about the mean; a constant if there is no deviation.
    fn normalized(values: &[f64], fit: impl FnOnce(&[f64]) -> Self) -> Self {
        let moments = Moments::from_values(values);
        let mean = moments.map_or(0.0, |moments| moments.mean());
        let unit = moments.map_or(0.0, |moments| moments.population_variance().sqrt());
        // A constant whose mean is rounded varies by that.
        let unit = if unit > mean.abs() * 1e-14 { unit } else { 0.0 };
        let y: Vec<f64> = values.iter().map(|v| if unit > 0.0 { (v - mean) / unit } else { 0.0 }).collect();
        let fitted = if unit == 0.0 { Self::of(&y, TrendKind::Constant) } else { fit(&y) };
        fitted.scaled(mean, unit)
    }

    /// Location and standard deviation of each of the next values.
    pub(crate) fn predict(&self, horizon: usize) -> Vec<(f64, f64)> {
        if !self.cycle.is_empty() {
            let period = self.cycle.len();
            let point = |h: usize| (self.cycle[h % period], (self.variance * (h / period + 1) as f64).sqrt());
            return (0..horizon).map(point).collect();
        }
        let Smoothing { alpha, beta, phi, rho } = self.smoothing;
        let (mut damped, mut power, mut fading, mut passed_on) = (0.0, 1.0, 1.0, 1.0);
        let mut points = Vec::with_capacity(horizon);
        for _ in 0..horizon {
            power *= phi;
            damped += power;
            let ahead = |state: &State| state.level + damped * state.slope + fading * state.deviation;
            let [by_level, by_slope] = [ahead(&self.owed[0]), ahead(&self.owed[1])];
            let [[level, both], [_, slope]] = self.covariance;
            let owed = by_level * by_level * level + 2.0 * by_level * by_slope * both + by_slope * by_slope * slope;
            points.push((ahead(&self.end), (self.variance * (passed_on + owed.max(0.0))).sqrt()));
            fading *= rho;
            passed_on += (alpha + beta * damped + fading).powi(2);
        }
        points
    }

    /// The level at the end, without what fades.
    pub(crate) fn level(&self) -> f64 {
        self.end.level
    }

    /// The form with the least criterion; of equals, the simplest.
    fn best(y: &[f64]) -> Self {
        let mut best = Self::of(y, TrendKind::Constant);
        for (kind, _) in &FORMS[1..] {
            let other = Self::of(y, *kind);
            if other.criterion < best.criterion {
                best = other;
            }
        }
        best
    }

    /// The smoothing of a form, the first level and slope, all by least squares.
    fn of(y: &[f64], kind: TrendKind) -> Self {
        let starts = FORMS.iter().find(|(k, _)| *k == kind).map_or(FORMS[0].1, |(_, starts)| *starts);
        let mut smoothing = search(y, starts);
        if smoothing.rho > 0.0 {
            smoothing.rho = without_bias(smoothing.rho, y.len());
        }
        let pass = Pass::run(y, smoothing);
        let mut state = pass.first();
        let errors = y.iter().map(|y| state.see(*y, smoothing)).collect();
        let free = starts.iter().filter(|s| s.len() > 1).count();
        let parameters = free + if smoothing.phi > 0.0 { 2 } else { 1 };
        Self {
            owed: pass.owed(),
            covariance: pass.covariance(),
            ..Self::ended(kind, smoothing, state, errors, parameters)
        }
    }

    /// Simple exponential smoothing that begins with the first value, as textbooks do it.
    fn smoothing(y: &[f64], alpha: f64) -> Self {
        let smoothing = Smoothing { alpha, ..Smoothing::default() };
        let mut state = State { level: y[0], ..State::default() };
        let errors = y[1..].iter().map(|y| state.see(*y, smoothing)).collect();
        Self::ended(TrendKind::Level, smoothing, state, errors, 1)
    }

    /// The mean of the last `window`. An error moves it by 1/window, as α = 1/window would.
    fn moving_average(y: &[f64], window: usize) -> Self {
        let window = window.clamp(1, y.len() - 1);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / window as f64;
        let errors = y.windows(window + 1).map(|w| w[window] - mean(&w[..window])).collect();
        let state = State { level: mean(&y[y.len() - window..]), ..State::default() };
        let smoothing = Smoothing { alpha: 1.0 / window as f64, ..Smoothing::default() };
        Self::ended(TrendKind::MovingAverage, smoothing, state, errors, 1)
    }

    fn ended(kind: TrendKind, smoothing: Smoothing, end: State, errors: Vec<f64>, parameters: usize) -> Self {
        let (n, k) = (errors.len() as f64, parameters as f64 + 1.0);
        let squares = errors.iter().map(|e| e * e).sum::<f64>();
        let corrected = 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0).max(0.1);
        Self {
            kind,
            criterion: n * (squares / n).max(ROUNDING).ln() + corrected,
            variance: squares / (n - parameters as f64).max(1.0),
            errors,
            parameters,
            smoothing,
            end,
            owed: Default::default(),
            covariance: Default::default(),
            cycle: Vec::new(),
        }
    }

    /// From units of `unit` about `mean` to those of the series.
    fn scaled(mut self, mean: f64, unit: f64) -> Self {
        self.end = State {
            level: mean + unit * self.end.level,
            slope: unit * self.end.slope,
            deviation: unit * self.end.deviation,
        };
        self.variance *= unit * unit;
        self.errors.iter_mut().for_each(|e| *e *= unit);
        self.criterion += 2.0 * self.errors.len() as f64 * unit.max(f64::MIN_POSITIVE).ln();
        self
    }
}

/// An autoregression about a line comes out too small by (2 + 4ρ)/n (Marriott & Pope, 1954; Kendall, 1954).
fn without_bias(rho: f64, n: usize) -> f64 {
    (rho + (2.0 + 4.0 * rho) / n as f64).min(BOUNDS[3].1)
}

/// The smoothing that leaves the least squares: the best of a grid, then ever smaller steps from there.
fn search(y: &[f64], starts: [&[f64]; 4]) -> Smoothing {
    let smoothing = |[alpha, ratio, phi, rho]: [f64; 4]| Smoothing { alpha, beta: alpha * ratio, phi, rho };
    let squares = |at: [f64; 4]| Pass::run(y, smoothing(at)).squares();
    let grid = (0..starts.iter().map(|s| s.len()).product()).map(|mut i| {
        starts.map(|s: &[f64]| {
            let value = s[i % s.len()];
            i /= s.len();
            value
        })
    });
    let mut best = (f64::INFINITY, starts.map(|s| s[0]));
    let better = |at: [f64; 4], best: &mut (f64, [f64; 4])| {
        let found = squares(at);
        found < best.0 && {
            *best = (found, at);
            true
        }
    };
    let free: Vec<usize> = (0..4).filter(|axis| starts[*axis].len() > 1).collect();
    if free.is_empty() {
        return smoothing(best.1);
    }
    grid.for_each(|at| {
        better(at, &mut best);
    });
    let mut scale = 1.0;
    while scale > FINE {
        let mut improved = false;
        for &axis in &free {
            for step in [-STEPS[axis], STEPS[axis]] {
                let (mut at, (low, high)) = (best.1, BOUNDS[axis]);
                at[axis] = (at[axis] + scale * step).clamp(low, high);
                improved |= at != best.1 && better(at, &mut best);
            }
        }
        if !improved {
            scale /= 2.0;
        }
    }
    smoothing(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [f64; 12] = [3.1, 3.4, 3.2, 3.9, 4.1, 4.0, 4.6, 4.9, 4.8, 5.3, 5.6, 5.5];

    /// The prediction interval of a regression: s²·(1 + 1/n + (x − x̄)²/Sxx).
    #[test]
    fn a_line_is_as_unsure_as_a_regression() {
        let x: Vec<f64> = (0..12).map(f64::from).collect();
        let line = crate::line::ols(&x, &VALUES).expect("a line");
        let trend = Trend::fit(&VALUES, ForecastMethod::Line);
        for (h, (location, sd)) in trend.predict(30).into_iter().enumerate() {
            let at = 12.0 + h as f64;
            let variance = line.residual_sd.powi(2) * (1.0 + 1.0 / 12.0 + (at - 5.5).powi(2) / 143.0);
            assert!((location - line.intercept - line.slope * at).abs() < 1e-9, "{h}");
            assert!((sd - variance.sqrt()).abs() < 1e-9, "{h}: {sd}, {}", variance.sqrt());
        }
    }

    /// Hyndman et al., table 6.2: σ²·(1 + (h − 1)·α²).
    #[test]
    fn smoothing_grows_less_sure_with_each_step() {
        let trend = Trend::fit(&VALUES, ForecastMethod::Smoothing { alpha: 0.3 });
        let first = trend.predict(1)[0].1;
        for (h, (location, sd)) in trend.predict(20).into_iter().enumerate() {
            assert_eq!(location, trend.level());
            assert!((sd - first * (1.0 + h as f64 * 0.09).sqrt()).abs() < 1e-12);
        }
    }

    /// An autoregression forgets: its variance tends to σ²/(1 − ρ²), its location to the line.
    #[test]
    fn deviations_fade() {
        let smoothing = Smoothing { rho: 0.5, phi: 1.0, ..Smoothing::default() };
        let end = State { level: 10.0, slope: 0.0, deviation: 4.0 };
        let trend = Trend { variance: 1.0, ..Trend::ended(TrendKind::Autoregressive, smoothing, end, vec![1.0; 9], 3) };
        let points = trend.predict(40);
        assert_eq!([points[0], points[1]], [(14.0, 1.0), (12.0, 1.25_f64.sqrt())]);
        assert!((points[39].1 - (4.0_f64 / 3.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn the_form_of_a_clear_series_is_found() {
        // A pattern without any order to it: the golden ratio's multiples.
        let noise = |i: usize| ((i as f64 * 0.618_033_988_75).fract() - 0.5) * 2.0;
        let kind = |of: &dyn Fn(usize) -> f64| {
            let values: Vec<f64> = (0..80).map(of).collect();
            Trend::fit(&values, ForecastMethod::Auto).kind
        };
        assert_eq!(kind(&|_| 5.0), TrendKind::Constant);
        assert_eq!(kind(&|i| 5.0 + i as f64), TrendKind::Line);
        assert_eq!(kind(&|i| 5.0 + 0.5 * i as f64 + noise(i)), TrendKind::Line);
    }
}
