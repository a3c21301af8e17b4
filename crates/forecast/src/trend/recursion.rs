//! The recursion that computes all trends, in innovations form: y = l + φb + v + e; then l ← l + φb + αe, b ← φb + βe,
//! v ← ρ(v + e).
//!
//! The symbols are: value y, level l, slope b, damped deviation v, and error e of the prediction one step ahead
//! (Hyndman, Koehler, Ord & Snyder, *Forecasting with Exponential Smoothing*, 2008, ch. 2–3). With α = β = 0, the trend
//! is a regression line, with autoregressive errors if ρ > 0. With φ = 0, there is no slope. For any α, β, φ and ρ, the
//! errors are linear in the initial level and slope, so least squares gives the best initial level and slope exactly.

/// Parameters of the recursion that computes a trend.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Smoothing {
    /// α: the share of an error by which the level changes.
    pub alpha: f64,
    /// β: the share of an error by which the slope changes.
    pub beta: f64,
    /// φ: the factor by which the slope decreases with each step; 0 for no slope.
    pub phi: f64,
    /// ρ: the factor by which a deviation from the trend decreases with each step.
    pub rho: f64,
}

/// The state, after a value, of the recursion that computes a trend.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct State {
    /// The level l of the trend.
    pub level: f64,
    /// The slope b: the change of the level per step.
    pub slope: f64,
    /// The deviation v of the value from the level. It decays towards zero.
    pub deviation: f64,
}

impl State {
    /// Updates the state with a value, and returns the forecast error.
    pub(super) fn update(&mut self, y: f64, Smoothing { alpha, beta, phi, rho }: Smoothing) -> f64 {
        let slope = phi * self.slope;
        let level = self.level + slope;
        let error = y - level - self.deviation;
        *self = Self {
            level: level + alpha * error,
            slope: slope + beta * error,
            deviation: rho * (self.deviation + error),
        };
        error
    }
}

/// Results of three runs of the recursion: on the series with an initial state of zero, on zeros with an initial level
/// of 1, and on zeros with an initial slope of 1. A run on the series with any other initial level and slope is a
/// linear combination of these three runs.
pub(super) struct BasisRuns {
    /// The end states of the three runs.
    states: [State; 3],
    /// For each pair of the three runs, the sum of the products of their errors. Only the upper triangle is used.
    products: [[f64; 3]; 3],
    sloped: bool,
}

impl BasisRuns {
    /// Runs the recursion on the series `y` and on zeros.
    pub(super) fn run(y: &[f64], smoothing: Smoothing) -> Self {
        let level = State { level: 1.0, ..State::default() };
        let slope = State { slope: 1.0, ..State::default() };
        let mut states = [State::default(), level, slope];
        let mut products = [[0.0; 3]; 3];
        for y in y {
            let e =
                [states[0].update(*y, smoothing), states[1].update(0.0, smoothing), states[2].update(0.0, smoothing)];
            for i in 0..3 {
                for j in i..3 {
                    products[i][j] += e[i] * e[j];
                }
            }
        }
        Self { states, products, sloped: smoothing.phi > 0.0 }
    }

    /// The initial level and slope with the smallest sum of squared errors.
    pub(super) fn best_initial_state(&self) -> State {
        let [_, by_level, by_slope] = self.products[0];
        let [level, slope] = self.covariance().map(|row| -(row[0] * by_level + row[1] * by_slope));
        State { level, slope, deviation: 0.0 }
    }

    /// The sum of squared errors with the best initial level and slope.
    pub(super) fn least_squares(&self) -> f64 {
        let [nothing, by_level, by_slope] = self.products[0];
        let first = self.best_initial_state();
        let squares = nothing + first.level * by_level + first.slope * by_slope;
        if squares.is_finite() { squares.max(0.0) } else { f64::INFINITY }
    }

    /// Covariance matrix of the initial level and slope, divided by the variance of the errors. If there is no slope,
    /// or if it cannot be distinguished from the level, the entries of the slope are 0.
    pub(super) fn covariance(&self) -> [[f64; 2]; 2] {
        let [_, [_, level, both], [_, _, slope]] = self.products;
        let determinant = level * slope - both * both;
        if self.sloped && determinant > 1e-12 * level * slope {
            return [[slope / determinant, -both / determinant], [-both / determinant, level / determinant]];
        }
        [[1.0 / level.max(f64::MIN_POSITIVE), 0.0], [0.0, 0.0]]
    }

    /// Derivatives of the end state with respect to the initial level and slope.
    pub(super) fn end_derivatives(&self) -> [State; 2] {
        [self.states[1], self.states[2]]
    }
}
