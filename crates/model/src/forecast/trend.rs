//! The trend of a series without season: exponential smoothing in innovations form.
//!
//! y_t = l + φb + e, l ← l + φb + αe, b ← φb + βe (Hyndman, Koehler, Ord & Snyder, *Forecasting with Exponential
//! Smoothing*, 2008, ch. 2–3): level l, slope b, one-step errors e. Least squares finds the smoothing α and β, the
//! damping φ and the first level and slope; the latter are linear in the errors and solved exactly. With α = β = 0 this is
//! the regression line and its textbook prediction interval; without a slope it is simple exponential smoothing. Of the
//! forms in [`TrendKind`] the one with the least AICc is taken. Variances: ibid. table 6.2, plus the covariance of first
//! level and slope, without which a straight line would be sure of itself for ever.

use super::ForecastMethod;
use schemars::JsonSchema;
use serde::Serialize;

/// Error variance below this share of the variance of the series is rounding.
const ROUNDING: f64 = 1e-12;

/// Where the search for the smoothing begins: α, β/α and φ.
const ALPHAS: [f64; 6] = [0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const RATIOS: [f64; 4] = [0.01, 0.05, 0.2, 0.6];
const DAMPINGS: [f64; 4] = [0.8, 0.9, 0.95, 0.98];

/// The form of a trend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrendKind {
    /// The mean of all.
    Constant,
    /// A level that moves: simple exponential smoothing.
    Level,
    /// The least-squares line.
    Line,
    /// A level that moves, and a steady slope.
    Drift,
    /// A level and a slope that move: Holt's method.
    Local,
    /// The same with a slope that fades.
    Damped,
    /// The mean of the last few.
    MovingAverage,
}

/// A fitted trend.
#[derive(Clone, Debug)]
pub(super) struct Trend {
    pub kind: TrendKind,
    pub alpha: f64,
    pub beta: f64,
    pub phi: f64,
    /// At the end of the series.
    pub level: f64,
    slope: f64,
    /// Of the one-step errors, over the degrees of freedom that the trend alone leaves.
    pub variance: f64,
    /// One-step errors; the first are missing where there was nothing to foretell them by.
    pub errors: Vec<f64>,
    /// Parameters, the variance not counted.
    pub parameters: usize,
    /// AICc, up to a constant of the number of values.
    pub criterion: f64,
    start: Start,
}

/// How much the last level and slope owe to the first: derivatives, and the covariance of the first over the variance.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    level: [f64; 2],
    slope: [f64; 2],
    covariance: [[f64; 2]; 2],
}

impl Trend {
    /// Fits the trend that a method asks for. The values are finite and there are at least three.
    pub(super) fn fit(values: &[f64], method: ForecastMethod) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let unit = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        let unit = if unit > mean.abs() * 1e-14 { unit } else { 0.0 };
        let y: Vec<f64> = values.iter().map(|v| if unit > 0.0 { (v - mean) / unit } else { 0.0 }).collect();
        let fitted = match method {
            _ if unit == 0.0 => Self::new(&y, TrendKind::Constant, [0.0; 3]),
            ForecastMethod::Auto => Self::best(&y),
            ForecastMethod::Line => Self::new(&y, TrendKind::Line, [0.0, 0.0, 1.0]),
            ForecastMethod::Smoothing { alpha } => Self::smoothing(&y, alpha),
            ForecastMethod::MovingAverage { window } => Self::moving_average(&y, window),
        };
        fitted.scaled(mean, unit)
    }

    /// Location and standard deviation of each of the next values.
    pub(super) fn predict(&self, horizon: usize) -> Vec<(f64, f64)> {
        let (mut power, mut damped, mut passed) = (1.0, 0.0, 1.0);
        let mut points = Vec::with_capacity(horizon);
        for _ in 0..horizon {
            let weight = self.alpha + self.beta * damped;
            if !points.is_empty() {
                passed += weight * weight;
            }
            power *= self.phi;
            damped += power;
            let gradient: [f64; 2] = std::array::from_fn(|i| self.start.level[i] + damped * self.start.slope[i]);
            let owed: f64 = (0..2)
                .flat_map(|i| (0..2).map(move |j| (i, j)))
                .map(|(i, j)| gradient[i] * self.start.covariance[i][j] * gradient[j])
                .sum();
            points.push((self.level + damped * self.slope, (self.variance * (passed + owed.max(0.0))).sqrt()));
        }
        points
    }

    /// The form with the least criterion; of equals, the simplest.
    fn best(y: &[f64]) -> Self {
        let fixed = [(TrendKind::Constant, [0.0, 0.0, 0.0]), (TrendKind::Line, [0.0, 0.0, 1.0])];
        let mut forms: Vec<Self> = fixed.into_iter().map(|(kind, p)| Self::new(y, kind, p)).collect();
        for kind in [TrendKind::Level, TrendKind::Drift, TrendKind::Local, TrendKind::Damped] {
            forms.push(Self::new(y, kind, search(y, kind)));
        }
        let best = (0..forms.len()).min_by(|a, b| forms[*a].criterion.total_cmp(&forms[*b].criterion));
        forms.swap_remove(best.unwrap_or(0))
    }

    /// α, β and φ known, first level and slope by least squares.
    fn new(y: &[f64], kind: TrendKind, [alpha, beta, phi]: [f64; 3]) -> Self {
        let pass = Pass::run(y, [alpha, beta, phi]);
        let [first_level, first_slope] = pass.first();
        let states = if phi > 0.0 { 2 } else { 1 };
        let free = match kind {
            TrendKind::Constant | TrendKind::Line | TrendKind::MovingAverage => 0,
            TrendKind::Level | TrendKind::Drift => 1,
            TrendKind::Local => 2,
            TrendKind::Damped => 3,
        };
        let start = Start {
            level: pass.level[1..].try_into().unwrap_or_default(),
            slope: pass.slope[1..].try_into().unwrap_or_default(),
            covariance: pass.inverse(),
        };
        let end = |of: [f64; 3]| of[0] + first_level * of[1] + first_slope * of[2];
        let (mut level, mut slope) = (first_level, first_slope);
        let errors: Vec<f64> = y.iter().map(|y| step(&mut level, &mut slope, *y, [alpha, beta, phi])).collect();
        let model = Self {
            kind,
            alpha,
            beta,
            phi,
            level: end(pass.level),
            slope: end(pass.slope),
            variance: 0.0,
            errors,
            parameters: states + free,
            criterion: 0.0,
            start,
        };
        model.judged(y.len())
    }

    /// Simple exponential smoothing that begins with the first value, as textbooks do it.
    fn smoothing(y: &[f64], alpha: f64) -> Self {
        let (mut level, mut slope) = (y[0], 0.0);
        let errors = y[1..].iter().map(|y| step(&mut level, &mut slope, *y, [alpha, 0.0, 0.0])).collect();
        let model = Self {
            kind: TrendKind::Level,
            alpha,
            beta: 0.0,
            phi: 0.0,
            level,
            slope,
            variance: 0.0,
            errors,
            parameters: 1,
            criterion: 0.0,
            start: Start::default(),
        };
        model.judged(y.len())
    }

    /// The mean of the last `window`. Each error moves it by 1/window, as α = 1/window would.
    fn moving_average(y: &[f64], window: usize) -> Self {
        let window = window.clamp(1, y.len() - 1);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / window as f64;
        let errors = y.windows(window + 1).map(|w| w[window] - mean(&w[..window])).collect();
        let level = mean(&y[y.len() - window..]);
        let model = Self {
            kind: TrendKind::MovingAverage,
            alpha: 1.0 / window as f64,
            beta: 0.0,
            phi: 0.0,
            level,
            slope: 0.0,
            variance: 0.0,
            errors,
            parameters: 1,
            criterion: 0.0,
            start: Start::default(),
        };
        model.judged(y.len())
    }

    /// Fills in variance and criterion.
    fn judged(mut self, n: usize) -> Self {
        let n = n as f64;
        let squares = self.errors.iter().map(|e| e * e).sum::<f64>();
        let k = self.parameters as f64 + 1.0;
        self.variance = squares / (self.errors.len() as f64 - self.parameters as f64).max(1.0);
        self.criterion = n * (squares / n).max(ROUNDING).ln() + 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0).max(0.1);
        self
    }

    /// From units of `unit` about `mean` back to those of the series.
    fn scaled(mut self, mean: f64, unit: f64) -> Self {
        self.level = mean + unit * self.level;
        self.slope *= unit;
        self.variance *= unit * unit;
        self.errors.iter_mut().for_each(|e| *e *= unit);
        let n = self.errors.len() as f64;
        self.criterion += 2.0 * n * unit.max(f64::MIN_POSITIVE).ln();
        self
    }
}

/// The smoothing with the least squares: a grid, then ever smaller steps from its best.
fn search(y: &[f64], kind: TrendKind) -> [f64; 3] {
    let one = [0.0];
    let (ratios, dampings): (&[f64], &[f64]) = match kind {
        TrendKind::Local => (&RATIOS, &[1.0]),
        TrendKind::Damped => (&RATIOS, &DAMPINGS),
        TrendKind::Drift => (&one, &[1.0]),
        _ => (&one, &one),
    };
    let squares = |[alpha, ratio, phi]: [f64; 3]| Pass::run(y, [alpha, alpha * ratio, phi]).squares();
    let mut best = (f64::INFINITY, [1.0, 0.0, 0.0]);
    let consider = |at: [f64; 3], best: &mut (f64, [f64; 3])| {
        let found = squares(at);
        let better = found < best.0;
        if better {
            *best = (found, at);
        }
        better
    };
    for &alpha in &ALPHAS {
        for &ratio in ratios {
            for &phi in dampings {
                consider([alpha, ratio, phi], &mut best);
            }
        }
    }
    let mut steps = [0.1, 0.05, 0.02];
    while steps[0] > 1e-3 {
        let mut improved = false;
        for axis in 0..3 {
            let varies = [true, ratios.len() > 1, dampings.len() > 1][axis];
            let (low, high) = [(1e-3, 1.0), (1e-3, 1.0), (0.8, 0.98)][axis];
            for sign in [-1.0, 1.0] {
                let mut at = best.1;
                at[axis] = f64::clamp(at[axis] + sign * steps[axis], low, high);
                improved |= varies && at != best.1 && consider(at, &mut best);
            }
        }
        if !improved {
            steps.iter_mut().for_each(|s| *s /= 2.0);
        }
    }
    let [alpha, ratio, phi] = best.1;
    [alpha, alpha * ratio, phi]
}

/// One value seen: its error, level and slope moved on.
fn step(level: &mut f64, slope: &mut f64, y: f64, [alpha, beta, phi]: [f64; 3]) -> f64 {
    let foretold = *level + phi * *slope;
    let error = y - foretold;
    *level = foretold + alpha * error;
    *slope = phi * *slope + beta * error;
    error
}

/// The recursion run on the series from nothing, and on nothing from a level of 1 and from a slope of 1: every first
/// level and slope is a combination of these three. Products of their errors, and where they end.
struct Pass {
    products: [[f64; 3]; 3],
    level: [f64; 3],
    slope: [f64; 3],
    sloped: bool,
}

impl Pass {
    fn run(y: &[f64], parameters: [f64; 3]) -> Self {
        let mut pass = Self {
            products: [[0.0; 3]; 3],
            level: [0.0, 1.0, 0.0],
            slope: [0.0, 0.0, 1.0],
            sloped: parameters[2] > 0.0,
        };
        for &y in y {
            let seen = [y, 0.0, 0.0];
            let e: [f64; 3] =
                std::array::from_fn(|i| step(&mut pass.level[i], &mut pass.slope[i], seen[i], parameters));
            for i in 0..3 {
                for j in i..3 {
                    pass.products[i][j] += e[i] * e[j];
                }
            }
        }
        pass
    }

    /// Inverse of the products of the latter two; the slope's part is 0 where there is none, or none can be told.
    fn inverse(&self) -> [[f64; 2]; 2] {
        let [[_, _, _], [_, pp, pq], [_, _, qq]] = self.products;
        let determinant = pp * qq - pq * pq;
        if self.sloped && determinant > 1e-12 * pp * qq {
            return [[qq / determinant, -pq / determinant], [-pq / determinant, pp / determinant]];
        }
        [[1.0 / pp.max(f64::MIN_POSITIVE), 0.0], [0.0, 0.0]]
    }

    /// The first level and slope that leave the least squares.
    fn first(&self) -> [f64; 2] {
        let [_, ep, eq] = self.products[0];
        self.inverse().map(|row| -(row[0] * ep + row[1] * eq))
    }

    /// What they leave.
    fn squares(&self) -> f64 {
        let [ee, ep, eq] = self.products[0];
        let [level, slope] = self.first();
        let squares = ee + level * ep + slope * eq;
        if squares.is_finite() { squares.max(0.0) } else { f64::INFINITY }
    }
}
