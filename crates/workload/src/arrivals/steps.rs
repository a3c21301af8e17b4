//! A repeated sequence (cycle) of constant rates, as with httperf's `--period=v`.

use super::exact;
use super::rate_segment::RateSegment;
use crate::ArrivalsError;
use brimful_core::Nanos;
use std::fmt;
use std::ops::RangeInclusive;

/// Maximum number of constant rates in a cycle.
pub(super) const MAX_STEPS: usize = 10;
/// Permitted rates of a step, other than zero. With rates outside this range, the sum of rate times duration would lose
/// all precision or overflow.
pub(super) const RATES: RangeInclusive<f64> = 1e-9..=1e9;

/// The parameters of `steps:RATE@TIME,…`: a cycle of relative rates, each with its duration. The rates are scaled so
/// that their mean over a cycle is the requested rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    steps: [(f64, Nanos); MAX_STEPS],
    count: usize,
}

impl Steps {
    /// Checks and sets the steps: 1 to 10 pairs of rate and duration. Each rate must be zero or from 1e-9 to 1e9, and
    /// at least one must be above zero. Each duration must be above zero.
    ///
    /// # Errors
    /// [`ArrivalsError::Steps`] if a condition is violated.
    pub fn new(rates: &[(f64, Nanos)]) -> Result<Steps, ArrivalsError> {
        let is_valid = |(rate, time): &(f64, Nanos)| (*rate == 0.0 || RATES.contains(rate)) && *time > Nanos::ZERO;
        let has_calls = rates.iter().any(|(rate, _)| *rate > 0.0);
        if !has_calls || rates.len() > MAX_STEPS || !rates.iter().all(is_valid) {
            return Err(ArrivalsError::Steps);
        }
        let mut steps = [(0.0, Nanos::ZERO); MAX_STEPS];
        steps[..rates.len()].copy_from_slice(rates);
        Ok(Steps { steps, count: rates.len() })
    }

    /// Mean number of times per second that the arrival rate changes. Each change begins a new piece of constant rate.
    pub(super) fn pieces_per_s(&self) -> f64 {
        self.count as f64 / self.length_s()
    }

    fn length_s(&self) -> f64 {
        self.steps().iter().map(|(_, time)| time.as_secs_f64()).sum()
    }

    fn steps(&self) -> &[(f64, Nanos)] {
        &self.steps[..self.count]
    }

    /// Creates the rate curve of this process for a mean rate in calls per second.
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

/// The rate curve, which repeats the cycle without end.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    steps: Steps,
    scale: f64,
    next: usize,
}

impl Iterator for Curve {
    type Item = RateSegment;

    fn next(&mut self) -> Option<RateSegment> {
        let (rate, time) = *self.steps.steps().get(self.next % self.steps.count)?;
        self.next = (self.next + 1) % self.steps.count;
        Some(RateSegment::constant(time.as_secs_f64(), rate * self.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrivalProcess, Arrivals};
    use brimful_core::Rate;

    #[test]
    fn each_rate_is_kept_for_its_time_and_the_mean_over_all() {
        let second = Nanos::from_secs(1);
        let steps = Steps::new(&[(1.0, second + second), (2.0, second), (0.0, second)]).unwrap();
        // The relative rates have a mean of 1 (an area of 4 in a cycle of 4 s), so they are multiplied by the requested
        // rate, 10.
        let due: Vec<f64> = Arrivals::new(ArrivalProcess::Steps(steps), Rate(10.0), 0)
            .unwrap()
            .take(400)
            .map(Nanos::as_secs_f64)
            .collect();
        let count = |from: f64, to: f64| due.iter().filter(|due| (from..to).contains(*due)).count();
        for period in (0..10).map(|period| 4.0 * f64::from(period)) {
            let counts = [(0.0, 2.0), (2.0, 3.0), (3.0, 4.0)].map(|(from, to)| count(period + from, period + to));
            assert_eq!(counts, [20, 20, 0], "from {period} s");
        }
    }

    #[test]
    fn invalid_steps_are_refused() {
        let second = Nanos::from_secs(1);
        for steps in
            [&[][..], &[(0.0, second)], &[(1.0, Nanos::ZERO)], &[(f64::NAN, second)], &[(1.0, second); MAX_STEPS + 1]]
        {
            assert_eq!(Steps::new(steps), Err(ArrivalsError::Steps));
        }
    }
}
