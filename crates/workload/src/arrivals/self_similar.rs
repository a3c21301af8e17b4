//! What the two self-similar processes share: the Hurst parameter, and what to expect of one run.

use crate::ArrivalsError;

/// The Hurst parameter H of a self-similar process: the variance of the mean rate over a time t falls like t^(2H−2),
/// not like 1/t, so bursts are seen on every time scale. Web traffic has 0.7 to 0.9 (Crovella & Bestavros 1997).
///
/// Two ways to make such traffic: `selfsimilar:H` ([`Process::Fgn`](crate::Process::Fgn)) and `selfsimilar:H,pareto`
/// ([`Process::Pareto`](crate::Process::Pareto)). Both keep the mean rate in expectation from the first instant on, but
/// the mean of *one* run strays from it, which is what self-similarity is about: by a standard deviation of about 30
/// %·(T/100 ms)^(H−1) over a run of length T, for H = 0.85 by 12 % in a minute and still by 6 % in an hour. Compare
/// runs of one seed, or the means of many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hurst(f64);

impl Hurst {
    /// Above 0.5, at most 0.99.
    ///
    /// # Errors
    /// [`ArrivalsError::Hurst`] outside that.
    pub fn new(h: f64) -> Result<Hurst, ArrivalsError> {
        if h > 0.5 && h <= 0.99 { Ok(Hurst(h)) } else { Err(ArrivalsError::Hurst(h)) }
    }

    /// As a number.
    pub fn get(self) -> f64 {
        self.0
    }
}
