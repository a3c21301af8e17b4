//! The Hurst parameter of the two self-similar processes.

use crate::ArrivalsError;

/// The Hurst parameter H of a self-similar process: the variance of the mean rate over a time t falls like t^(2H−2),
/// not like 1/t, so there are bursts on every time scale. Web traffic has an H of 0.7 to 0.9 (Crovella & Bestavros
/// 1997).
///
/// Two processes are self-similar: `selfsimilar:H` ([`ArrivalProcess::Fgn`](crate::ArrivalProcess::Fgn)) and
/// `selfsimilar:H,pareto` ([`ArrivalProcess::Pareto`](crate::ArrivalProcess::Pareto)). The expected rate of both equals
/// the mean rate from the first instant. Because of the long bursts, the rate of *one* run may deviate from the mean
/// rate. The standard deviation of the rate of a run of length T is about 30 %·(T/100 ms)^(H−1): for H = 0.85, 12 % in
/// a minute and still 6 % in an hour. Compare runs with the same seed, or the means of many runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hurst(f64);

impl Hurst {
    /// Checks and sets the parameter. `h` must be above 0.5 and at most 0.99.
    ///
    /// # Errors
    /// [`ArrivalsError::Hurst`] if `h` is out of range.
    pub fn new(h: f64) -> Result<Hurst, ArrivalsError> {
        if h > 0.5 && h <= 0.99 { Ok(Hurst(h)) } else { Err(ArrivalsError::Hurst(h)) }
    }

    /// The Hurst parameter, H.
    pub fn get(self) -> f64 {
        self.0
    }
}
