//! The recursion behind all trends, in innovations form: y = l + φb + v + e; then l ← l + φb + αe, b ← φb + βe,
//! v ← ρ(v + e).
//!
//! The symbols are: level l, slope b, damped deviation v, and the error e of the forecast one step ahead (Hyndman,
//! Koehler, Ord & Snyder, *Forecasting with Exponential Smoothing*, 2008, ch. 2–3). α = β = 0 gives a regression line,
//! with autoregressive errors if ρ > 0; φ = 0 removes the slope. For any α, β, φ and ρ, the errors are linear in the
//! initial level and slope, so least squares gives the best initial level and slope exactly.

/// Parameters of the recursion.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Smoothing {
    pub alpha: f64,
    pub beta: f64,
    pub phi: f64,
    pub rho: f64,
}

/// The state of a trend.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct State {
    pub level: f64,
    pub slope: f64,
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

/// Results of three runs of the recursion: on the series from a state of zero, on zeros from level 1, and on zeros from
/// slope 1. A run from any other initial level and slope is a linear combination of these three runs.
pub(super) struct Pass {
    /// The end states of the three runs.
    states: [State; 3],
    /// Sums of the products of the three runs' errors; only the upper triangle is used.
    products: [[f64; 3]; 3],
    sloped: bool,
}

impl Pass {
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
    pub(super) fn first(&self) -> State {
        let [_, by_level, by_slope] = self.products[0];
        let [level, slope] = self.covariance().map(|row| -(row[0] * by_level + row[1] * by_slope));
        State { level, slope, deviation: 0.0 }
    }

    /// The smallest sum of squared errors that any initial level and slope achieve.
    pub(super) fn squares(&self) -> f64 {
        let [nothing, by_level, by_slope] = self.products[0];
        let first = self.first();
        let squares = nothing + first.level * by_level + first.slope * by_slope;
        if squares.is_finite() { squares.max(0.0) } else { f64::INFINITY }
    }

    /// Covariance of the initial level and slope, divided by the variance of the errors. If there is no slope, or if it
    /// cannot be separated from the level, the slope's entries are 0.
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
