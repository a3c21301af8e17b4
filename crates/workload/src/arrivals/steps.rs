//! Rates that follow one another, and again from the first (httperf's `--period=v`).

use super::pieces::Piece;
use super::syntax::exact;
use crate::ArrivalsError;
use brimful_core::Nanos;
use std::fmt;
use std::ops::RangeInclusive;

/// So many steps there may be.
pub(super) const MOST: usize = 10;
/// The range of rates other than zero. Outside of it, sums of rate times duration lose all precision, or overflow.
pub(super) const RATES: RangeInclusive<f64> = 1e-9..=1e9;

/// The parameters of `steps:RATE@TIME,…`: rates relative to one another, and how long each is kept. Over all of them
/// the mean rate holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    steps: [(f64, Nanos); MOST],
    count: usize,
}

impl Steps {
    /// From one step to 10, each with a rate of zero or from 1e-9 to 1e9 and a time above zero, and one rate above zero.
    ///
    /// # Errors
    /// [`ArrivalsError::Steps`] when they are not such.
    pub fn new(given: &[(f64, Nanos)]) -> Result<Steps, ArrivalsError> {
        let sound = |(rate, time): &(f64, Nanos)| (*rate == 0.0 || RATES.contains(rate)) && *time > Nanos::ZERO;
        let any = given.iter().any(|(rate, _)| *rate > 0.0);
        if !any || given.len() > MOST || !given.iter().all(sound) {
            return Err(ArrivalsError::Steps);
        }
        let mut steps = [(0.0, Nanos::ZERO); MOST];
        steps[..given.len()].copy_from_slice(given);
        Ok(Steps { steps, count: given.len() })
    }

    /// How often the rate changes, per second.
    pub(super) fn pieces_per_s(&self) -> f64 {
        self.count as f64 / self.length_s()
    }

    fn length_s(&self) -> f64 {
        self.steps().iter().map(|(_, time)| time.as_secs_f64()).sum()
    }

    fn steps(&self) -> &[(f64, Nanos)] {
        &self.steps[..self.count]
    }

    pub(super) fn curve(self, mean: f64) -> Curve {
        let area: f64 = self.steps().iter().map(|(rate, time)| rate * time.as_secs_f64()).sum();
        Curve { steps: self, scale: mean * self.length_s() / area, next: 0 }
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (rate, time)) in self.steps().iter().enumerate() {
            let before = if nth == 0 { "steps:" } else { "," };
            write!(f, "{before}{rate}@{}", exact(*time))?;
        }
        Ok(())
    }
}

/// The pieces, without end.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    steps: Steps,
    scale: f64,
    next: usize,
}

impl Iterator for Curve {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let (rate, time) = *self.steps.steps().get(self.next % self.steps.count)?;
        self.next = (self.next + 1) % self.steps.count;
        Some(Piece::level(time.as_secs_f64(), rate * self.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrivals, Process};
    use brimful_core::Rate;

    #[test]
    fn each_rate_is_kept_for_its_time_and_the_mean_over_all() {
        let second = Nanos::from_secs(1);
        let steps = Steps::new(&[(1.0, second + second), (2.0, second), (0.0, second)]).unwrap();
        // 4 of relative rate over 4 s: scaled by 10.
        let due: Vec<f64> =
            Arrivals::new(Process::Steps(steps), Rate(10.0), 0).unwrap().take(400).map(Nanos::as_secs_f64).collect();
        let count = |from: f64, to: f64| due.iter().filter(|due| (from..to).contains(*due)).count();
        for period in (0..10).map(|period| 4.0 * f64::from(period)) {
            let counts = [(0.0, 2.0), (2.0, 3.0), (3.0, 4.0)].map(|(from, to)| count(period + from, period + to));
            assert_eq!(counts, [20, 20, 0], "from {period} s");
        }
    }

    #[test]
    fn what_are_no_steps_is_refused() {
        let second = Nanos::from_secs(1);
        for steps in
            [&[][..], &[(0.0, second)], &[(1.0, Nanos::ZERO)], &[(f64::NAN, second)], &[(1.0, second); MOST + 1]]
        {
            assert_eq!(Steps::new(steps), Err(ArrivalsError::Steps));
        }
    }
}
