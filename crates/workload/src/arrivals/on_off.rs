//! Bursts at fixed times (Banga & Druschel 1997, §5.4). The rate is high at the start of every period and low for the
//! rest of the period, so that the mean over a period is the requested rate.

use super::exact;
use super::rate_segment::RateSegment;
use crate::ArrivalsError;
use brimful_core::Nanos;
use std::fmt;

/// The parameters of `onoff:RATIO,SHARE[,PERIOD]`. Every `period` begins with a burst of length `share · period`, in
/// which the rate is `ratio` times the mean rate. For the rest of the period, the rate is mean·(1 − ratio·share)/(1 −
/// share). The mean rate is exact over whole periods, so a run should last several periods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOff {
    ratio: f64,
    share: f64,
    period: Nanos,
}

impl OnOff {
    /// The default period, from Banga & Druschel 1997.
    pub const DEFAULT_PERIOD: Nanos = Nanos::from_secs(100);

    /// Checks and sets the parameters. `ratio` must be at least 1, `share` between 0 and 1, their product at most 1,
    /// and `period` above zero.
    ///
    /// # Errors
    /// [`ArrivalsError`] names the condition that is violated.
    pub fn new(ratio: f64, share: f64, period: Nanos) -> Result<OnOff, ArrivalsError> {
        check_burst(ratio, share)?;
        if period == Nanos::ZERO {
            return Err(ArrivalsError::Period);
        }
        Ok(OnOff { ratio, share, period })
    }

    /// Creates the rate curve of this process for a mean rate in calls per second.
    pub(super) fn curve(self, mean: f64) -> Curve {
        let period_s = self.period.as_secs_f64();
        let burst_s = self.share * period_s;
        Curve {
            period_s,
            period_area: mean * period_s,
            burst: RateSegment::constant(burst_s, mean * self.ratio),
            rest: RateSegment::constant(period_s - burst_s, mean * rest_ratio(self.ratio, self.share)),
        }
    }
}

impl fmt::Display for OnOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "onoff:{},{},{}", self.ratio, self.share, exact(self.period))
    }
}

/// Checks the ratio of the burst rate to the mean rate, and the share of the time in bursts. Returns an error if one is
/// out of range, or if the rate between bursts would have to be negative.
pub(super) fn check_burst(ratio: f64, share: f64) -> Result<(), ArrivalsError> {
    if !(ratio.is_finite() && ratio >= 1.0) {
        return Err(ArrivalsError::Ratio(ratio));
    }
    if !(share > 0.0 && share < 1.0) {
        return Err(ArrivalsError::Share(share));
    }
    // `ratio * share` may exceed 1 by a rounding error.
    if ratio * share > 1.0 + 1e-9 {
        return Err(ArrivalsError::BurstsExceedMean { ratio, share });
    }
    Ok(())
}

/// The rate between bursts, divided by the mean rate.
pub(super) fn rest_ratio(ratio: f64, share: f64) -> f64 {
    ((1.0 - ratio * share) / (1.0 - share)).max(0.0)
}

/// The rate curve. The start of each period is computed as its number times the length of a period, because a sum of
/// lengths would drift.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    period_s: f64,
    period_area: f64,
    burst: RateSegment,
    rest: RateSegment,
}

impl Curve {
    /// Time in seconds at which the area under the rate curve (the number of calls) reaches `area`.
    pub fn time_at_area(&self, area: f64) -> f64 {
        let periods = (area / self.period_area).floor();
        let within = area - periods * self.period_area;
        let since = if within < self.burst.area() || self.rest.start_rate == 0.0 {
            self.burst.time_at_area(within)
        } else {
            self.burst.length_s + self.rest.time_at_area(within - self.burst.area())
        };
        periods * self.period_s + since
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrivalProcess, Arrivals};
    use brimful_core::Rate;
    use proptest::prelude::*;

    proptest! {
        /// Expects that bursts and the rest of the periods have the calls that their rates imply. The number may be off
        /// by one call at either boundary, because calls are evenly spaced.
        #[test]
        fn each_phase_has_its_calls(ratio in 1.0..20.0, fill in 0.05..1.0, rate in 1.0..1000.0) {
            let share = f64::min(fill / ratio, 0.99);
            let bursts = OnOff::new(ratio, share, Nanos::from_secs(10)).unwrap();
            let due: Vec<f64> = Arrivals::new(ArrivalProcess::OnOff(bursts), Rate(rate), 0)
                .unwrap()
                .map(Nanos::as_secs_f64)
                .take_while(|due| *due < 50.0)
                .collect();
            for period in 0..5 {
                let start = f64::from(period) * 10.0;
                let count = |from: f64, to: f64| due.iter().filter(|due| (from..to).contains(*due)).count() as f64;
                let (burst_end, end) = (start + share * 10.0, start + 10.0);
                let in_burst = rate * 10.0 * ratio * share;
                prop_assert!((count(start, burst_end) - in_burst).abs() <= 1.0 + 1e-6);
                prop_assert!((count(burst_end, end) - (rate * 10.0 - in_burst)).abs() <= 1.0 + 1e-6);
            }
        }
    }

    #[test]
    fn nothing_drifts_over_many_periods() {
        // Each period of 3 s has 300 calls. So the period that begins at 3,000,000 s begins with call 300,000,000.
        let curve = OnOff::new(7.0, 0.1, Nanos::from_secs(3)).unwrap().curve(100.0);
        assert_eq!(curve.time_at_area(3e8), 3e6);
        // The 21 calls of a burst are 1/700 s apart, also after a million periods.
        assert!((curve.time_at_area(3e8 + 20.0) - 3e6 - 20.0 / 700.0).abs() < 1e-9);
    }

    #[test]
    fn all_calls_may_be_in_the_bursts() {
        let bursts = OnOff::new(20.0, 0.05, Nanos::from_secs(1)).unwrap();
        let due: Vec<Nanos> = Arrivals::new(ArrivalProcess::OnOff(bursts), Rate(10.0), 0).unwrap().take(21).collect();
        assert_eq!((due[9], due[10], due[20]), (Nanos::from_millis(45), Nanos::from_secs(1), Nanos::from_secs(2)));
    }

    #[test]
    fn impossible_bursts_are_refused() {
        for (ratio, share) in [(0.9, 0.1), (f64::NAN, 0.1), (2.0, 0.0), (2.0, 1.0), (2.0, f64::NAN), (20.0, 0.06)] {
            assert!(OnOff::new(ratio, share, Nanos::from_secs(1)).is_err(), "{ratio} {share}");
        }
        assert!(OnOff::new(2.0, 0.1, Nanos::ZERO).is_err());
    }
}
