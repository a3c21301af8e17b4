//! The trend of a series without seasons, by exponential smoothing.
//!
//! The forms in [`TrendKind`] are special cases of one recursion, except the moving average and the seasonal naive
//! method. The form with the smallest AICc (corrected Akaike information criterion) is chosen. Variances are computed
//! as in linear innovations models (Hyndman, Koehler, Ord & Snyder, *Forecasting with Exponential Smoothing*, 2008, eq.
//! 6.1), plus the variance of the initial level and slope. Without the variance of the initial values, the interval of
//! a straight line would never widen. With it, [`TrendKind::Line`] has the textbook's prediction interval of a
//! regression.

mod recursion;

use crate::options::ForecastMethod;
use brimful_core::JsonSchema;
use recursion::{BasisRuns, Smoothing, State};
use serde::Serialize;

/// An error variance below this share of the series' variance counts as a rounding error.
const ROUNDING: f64 = 1e-12;

/// The form of a trend, such as a line or a changing level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrendKind {
    /// The mean of all values.
    Constant,
    /// The least-squares line.
    Line,
    /// A line with deviations that fade (first-order autoregression).
    Autoregressive,
    /// A changing level: simple exponential smoothing.
    Level,
    /// A changing level with a constant slope.
    Drift,
    /// A changing level and a changing slope: Holt's method.
    Local,
    /// A changing level and a changing slope that fades: Holt's method with damping.
    Damped,
    /// The mean of the last values.
    MovingAverage,
    /// No trend: the forecast repeats the last season or, if there is no season, the last value.
    SeasonalNaive,
}

/// The forms of a trend that are fitted, the simplest first. Each has the initial values of the parameters α, β/α, φ
/// and ρ (see `recursion`) for the search. A parameter with a single initial value is not varied.
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

/// Lower and upper bounds of the smoothing parameters α, β/α, φ and ρ.
const BOUNDS: [(f64, f64); 4] = [(1e-3, 1.0), (1e-3, 1.0), (0.8, 0.98), (0.01, 0.98)];
const STEPS: [f64; 4] = [0.1, 0.05, 0.02, 0.1];

/// The search for the smoothing parameters ends when its step sizes are this fraction of the initial step sizes.
const MIN_SEARCH_SCALE: f64 = 1.0 / 128.0;

/// A trend that was fitted to a series.
#[derive(Clone, Debug)]
pub(crate) struct Trend {
    /// The form of the trend.
    pub kind: TrendKind,
    /// Errors of the predictions one step ahead, for all values or, if the method needs earlier values, for the last
    /// ones.
    pub errors: Vec<f64>,
    /// Number of fitted parameters, without the variance.
    pub parameters: usize,
    /// The corrected Akaike information criterion (AICc), without a constant that depends only on the number of values.
    pub aicc: f64,
    smoothing: Smoothing,
    /// State of the trend at the end of the series.
    end: State,
    /// Variance of the prediction errors one step ahead.
    variance: f64,
    /// Derivatives of the end state with respect to the initial level and slope.
    end_derivatives: [State; 2],
    /// Covariance matrix of the initial level and slope, divided by the variance of the errors.
    covariance: [[f64; 2]; 2],
    /// The values that the seasonal naive method repeats; empty for other methods.
    cycle: Vec<f64>,
}

impl Trend {
    /// Fits all trends that a method allows. `values` must be at least two finite values. The first trend is the one
    /// that fits best, or that the user chose.
    ///
    /// Information criteria measure errors one step ahead. If a temporary slope is mistaken for a lasting slope, a
    /// trend with a damped slope or without a slope forecasts the far future better. So these two trends are candidates
    /// as well.
    pub(crate) fn candidates(values: &[f64], method: ForecastMethod) -> Vec<Self> {
        let best = Self::fit(values, method);
        let others = match method {
            ForecastMethod::Auto => &[TrendKind::Damped, TrendKind::Level][..],
            _ => &[],
        };
        let others: Vec<Self> =
            others.iter().map(|kind| Self::normalized(values, |y| Self::fit_form(y, *kind))).collect();
        std::iter::once(best).chain(others).collect()
    }

    /// The seasonal naive method, which repeats the last `period` values. The variance of the forecast increases by the
    /// variance of one forecast error with each repetition (Hyndman & Athanasopoulos, *Forecasting: Principles and
    /// Practice*, 2021, §5.5).
    pub(crate) fn seasonal_naive(values: &[f64], period: usize) -> Self {
        let period = period.clamp(1, values.len() - 1);
        let errors = values.iter().zip(&values[period..]).map(|(before, now)| now - before).collect();
        let cycle = values[values.len() - period..].to_vec();
        let end = State { level: cycle.iter().sum::<f64>() / period as f64, ..State::default() };
        Self { cycle, ..Self::ended(TrendKind::SeasonalNaive, Smoothing::default(), end, errors, 0) }
    }

    /// Fits the trend of a method. `values` must be at least two finite values.
    pub(crate) fn fit(values: &[f64], method: ForecastMethod) -> Self {
        Self::normalized(values, |y| match method {
            ForecastMethod::Auto => Self::best(y),
            ForecastMethod::Line => Self::fit_form(y, TrendKind::Line),
            ForecastMethod::Smoothing { alpha } => Self::smoothing(y, alpha),
            ForecastMethod::MovingAverage { window } => Self::moving_average(y, window),
        })
    }

    /// Normalizes the values to mean 0 and standard deviation 1, calls `fit`, and converts the result back. If the
    /// values do not vary, the trend is constant.
    fn normalized(values: &[f64], fit: impl FnOnce(&[f64]) -> Self) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let unit = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        // The mean of a constant series has a rounding error, so its values may differ slightly from the mean.
        let unit = if unit > mean.abs() * 1e-14 { unit } else { 0.0 };
        let y: Vec<f64> = values.iter().map(|v| if unit > 0.0 { (v - mean) / unit } else { 0.0 }).collect();
        let fitted = if unit == 0.0 { Self::fit_form(&y, TrendKind::Constant) } else { fit(&y) };
        fitted.scaled(mean, unit)
    }

    /// Mean and standard deviation of the forecast of each of the next `horizon` values.
    pub(crate) fn predict(&self, horizon: usize) -> Vec<(f64, f64)> {
        if !self.cycle.is_empty() {
            let period = self.cycle.len();
            let point = |h: usize| (self.cycle[h % period], (self.variance * (h / period + 1) as f64).sqrt());
            return (0..horizon).map(point).collect();
        }
        let Smoothing { alpha, beta, phi, rho } = self.smoothing;
        let mut damped = 0.0;
        let mut power = 1.0;
        let mut fading = 1.0;
        let mut passed_on = 1.0;
        let mut points = Vec::with_capacity(horizon);
        for _ in 0..horizon {
            power *= phi;
            damped += power;
            let ahead = |state: &State| state.level + damped * state.slope + fading * state.deviation;
            let [by_level, by_slope] = [ahead(&self.end_derivatives[0]), ahead(&self.end_derivatives[1])];
            let [[level, both], [_, slope]] = self.covariance;
            let end_derivatives =
                by_level * by_level * level + 2.0 * by_level * by_slope * both + by_slope * by_slope * slope;
            points.push((ahead(&self.end), (self.variance * (passed_on + end_derivatives.max(0.0))).sqrt()));
            fading *= rho;
            passed_on += (alpha + beta * damped + fading).powi(2);
        }
        points
    }

    /// The level at the end of the series, without the deviation that fades.
    pub(crate) fn level(&self) -> f64 {
        self.end.level
    }

    /// Fits all forms, and returns the form with the smallest AICc; of several, the simplest.
    fn best(y: &[f64]) -> Self {
        let mut best = Self::fit_form(y, TrendKind::Constant);
        for (kind, _) in &FORMS[1..] {
            let other = Self::fit_form(y, *kind);
            if other.aicc < best.aicc {
                best = other;
            }
        }
        best
    }

    /// Fits one form by least squares: smoothing parameters, initial level and initial slope.
    fn fit_form(y: &[f64], kind: TrendKind) -> Self {
        let starts = FORMS.iter().find(|(k, _)| *k == kind).map_or(FORMS[0].1, |(_, starts)| *starts);
        let mut smoothing = search(y, starts);
        if smoothing.rho > 0.0 {
            smoothing.rho = without_bias(smoothing.rho, y.len());
        }
        let runs = BasisRuns::run(y, smoothing);
        let mut state = runs.best_initial_state();
        let errors = y.iter().map(|y| state.update(*y, smoothing)).collect();
        let free = starts.iter().filter(|s| s.len() > 1).count();
        let parameters = free + if smoothing.phi > 0.0 { 2 } else { 1 };
        Self {
            end_derivatives: runs.end_derivatives(),
            covariance: runs.covariance(),
            ..Self::ended(kind, smoothing, state, errors, parameters)
        }
    }

    /// Simple exponential smoothing. The initial level is the first value, as in textbooks.
    fn smoothing(y: &[f64], alpha: f64) -> Self {
        let smoothing = Smoothing { alpha, ..Smoothing::default() };
        let mut state = State { level: y[0], ..State::default() };
        let errors = y[1..].iter().map(|y| state.update(*y, smoothing)).collect();
        Self::ended(TrendKind::Level, smoothing, state, errors, 1)
    }

    /// The mean of the last `window` values. The variance of the forecast is that of exponential smoothing with α =
    /// 1/window.
    fn moving_average(y: &[f64], window: usize) -> Self {
        let window = window.clamp(1, y.len() - 1);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / window as f64;
        let errors = y.windows(window + 1).map(|w| w[window] - mean(&w[..window])).collect();
        let state = State { level: mean(&y[y.len() - window..]), ..State::default() };
        let smoothing = Smoothing { alpha: 1.0 / window as f64, ..Smoothing::default() };
        Self::ended(TrendKind::MovingAverage, smoothing, state, errors, 1)
    }

    fn ended(kind: TrendKind, smoothing: Smoothing, end: State, errors: Vec<f64>, parameters: usize) -> Self {
        let n = errors.len() as f64;
        let k = parameters as f64 + 1.0;
        let squares = errors.iter().map(|e| e * e).sum::<f64>();
        let corrected = 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0).max(0.1);
        Self {
            kind,
            aicc: n * (squares / n).max(ROUNDING).ln() + corrected,
            variance: squares / (n - parameters as f64).max(1.0),
            errors,
            parameters,
            smoothing,
            end,
            end_derivatives: Default::default(),
            covariance: Default::default(),
            cycle: Vec::new(),
        }
    }

    /// Undoes the normalization to mean 0 and standard deviation 1.
    fn scaled(mut self, mean: f64, unit: f64) -> Self {
        self.end = State {
            level: mean + unit * self.end.level,
            slope: unit * self.end.slope,
            deviation: unit * self.end.deviation,
        };
        self.variance *= unit * unit;
        self.errors.iter_mut().for_each(|e| *e *= unit);
        self.aicc += 2.0 * self.errors.len() as f64 * unit.max(f64::MIN_POSITIVE).ln();
        self
    }
}

/// Corrects the estimated autocorrelation ρ of the deviations from a line. Estimates are too small by (2 + 4ρ)/n on
/// average (Marriott & Pope, 1954; Kendall, 1954).
fn without_bias(rho: f64, n: usize) -> f64 {
    (rho + (2.0 + 4.0 * rho) / n as f64).min(BOUNDS[3].1)
}

/// Finds the smoothing parameters with the smallest sum of squared errors. The best point of a grid is improved by a
/// pattern search.
fn search(y: &[f64], starts: [&[f64]; 4]) -> Smoothing {
    let smoothing = |[alpha, ratio, phi, rho]: [f64; 4]| Smoothing { alpha, beta: alpha * ratio, phi, rho };
    let squares = |at: [f64; 4]| BasisRuns::run(y, smoothing(at)).least_squares();
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
    while scale > MIN_SEARCH_SCALE {
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

    /// The variance of a line's forecast must equal that of a regression: s²·(1 + 1/n + (x − x̄)²/Sxx). s² is the
    /// variance of the residuals, and Sxx is the sum of the squared distances of x from its mean x̄.
    #[test]
    fn a_line_is_as_unsure_as_a_regression() {
        let x: Vec<f64> = (0..12).map(f64::from).collect();
        let line = crate::line::ols(&x, &VALUES).expect("the points determine a line");
        let trend = Trend::fit(&VALUES, ForecastMethod::Line);
        for (h, (location, sd)) in trend.predict(30).into_iter().enumerate() {
            let at = 12.0 + h as f64;
            let variance = line.residual_sd.powi(2) * (1.0 + 1.0 / 12.0 + (at - 5.5).powi(2) / 143.0);
            assert!((location - line.intercept - line.slope * at).abs() < 1e-9, "{h}");
            assert!((sd - variance.sqrt()).abs() < 1e-9, "{h}: {sd}, {}", variance.sqrt());
        }
    }

    /// The variance h steps ahead must equal the variance in Hyndman et al., table 6.2: σ²·(1 + (h − 1)·α²).
    #[test]
    fn smoothing_grows_less_sure_with_each_step() {
        let trend = Trend::fit(&VALUES, ForecastMethod::Smoothing { alpha: 0.3 });
        let first = trend.predict(1)[0].1;
        for (h, (location, sd)) in trend.predict(20).into_iter().enumerate() {
            assert_eq!(location, trend.level());
            assert!((sd - first * (1.0 + h as f64 * 0.09).sqrt()).abs() < 1e-12);
        }
    }

    /// In an autoregression, deviations must fade with the horizon: the mean approaches the line, and the variance
    /// approaches σ²/(1 − ρ²).
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
        // The fractional parts of the multiples of the golden ratio serve as irregular noise from −1 to 1.
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
