//! The offset between two hosts' monotonic clocks, measured by exchanging readings (Cristian 1989; RFC 5905 §8 and
//! §10).
//!
//! The other host reads its clock at some moment between the request and the answer. This moment is assumed to be the
//! midpoint; the error is at most half the round-trip time, whatever the network does. Of several exchanges, the one
//! with the shortest round trip is the most precise. One measurement is made before the run and one after it. Clocks
//! drift by tens of parts per million. The drift adds up to milliseconds in a minute, but it is steady. So the offset
//! during the run is interpolated linearly between the two measurements. A Record states a single offset: the value in
//! the middle of the run.

use brimful_core::Nanos;
use brimful_core::server::ClockOffset;

/// Number of exchanges in one measurement.
pub const CLOCK_EXCHANGES: usize = 16;

/// Maximum uncertainty of the clock offset at the start of a run. Metrics cover periods of 250 ms and more, so at most
/// 2 % of a period may belong to a neighbouring period.
pub const MAX_UNCERTAINTY: Nanos = Nanos::from_millis(5);

/// One measurement of the offset between the other host's clock and this host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Time of the reading, by this host's clock.
    at: Nanos,
    /// The other clock minus this host's clock, in nanoseconds.
    offset: i128,
    /// Maximum error of the offset: half the round-trip time.
    pub uncertainty: Nanos,
}

/// Converts instants of the other host's clock to this host's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    before: ClockReading,
    after: Option<ClockReading>,
}

impl ClockReading {
    /// The offset that follows from one exchange. `requested` and `answered` are times of this host's clock, at which
    /// the request was sent and the answer arrived. `showed` is the time of the other clock in the answer.
    pub fn new(requested: Nanos, showed: Nanos, answered: Nanos) -> ClockReading {
        let round_trip = answered - requested;
        let at = requested + Nanos(round_trip.0 / 2);
        ClockReading {
            at,
            offset: i128::from(showed.0) - i128::from(at.0),
            uncertainty: Nanos(round_trip.0.div_ceil(2)),
        }
    }
}

impl Clock {
    /// Creates a conversion from a measurement before the run and, if possible, another measurement after the run.
    pub fn new(before: ClockReading, after: Option<ClockReading>) -> Clock {
        Clock { before, after }
    }

    /// Converts an instant to this host's clock.
    pub fn local_time(&self, there: Nanos) -> Nanos {
        let here = i128::from(there.0) - self.before.offset;
        let span = self.after.map_or(0, |after| i128::from(after.at.0) - i128::from(self.before.at.0));
        let drifted = if span > 0 {
            let share = (here - i128::from(self.before.at.0)) as f64 / span as f64;
            (self.drift() as f64 * share.clamp(0.0, 1.0)) as i128
        } else {
            0
        };
        Nanos(u64::try_from((here - drifted).max(0)).unwrap_or(u64::MAX))
    }

    /// The offset, in the form in which a Record states it.
    pub fn offset(&self) -> ClockOffset {
        let round_trips =
            self.after.map_or(self.before.uncertainty, |after| after.uncertainty.max(self.before.uncertainty));
        let half_drift = self.drift() as f64 / 2.0;
        ClockOffset {
            offset_s: (self.before.offset as f64 + half_drift) / 1e9,
            uncertainty_s: round_trips.as_secs_f64() + half_drift.abs() / 1e9,
        }
    }

    /// A description of how the offset was measured.
    pub fn source(&self) -> String {
        let uncertainty = Nanos::from_secs_f64(self.offset().uncertainty_s);
        let drifted = Nanos(u64::try_from(self.drift().unsigned_abs()).unwrap_or(u64::MAX)).to_rounded_string();
        let how = match self.after {
            Some(_) => {
                format!("before and after the load; in between they drifted by {drifted}, which is assumed to be even")
            }
            None => "before the load only, because the stream broke: their drift since then is unknown".to_owned(),
        };
        let beyond = if uncertainty > MAX_UNCERTAINTY {
            format!(
                ". The stated offset has an uncertainty of {}, more than {MAX_UNCERTAINTY}: consider that when instants of the two hosts are \
                 compared",
                uncertainty.to_rounded_string()
            )
        } else {
            String::new()
        };
        format!("exchanges of both hosts' CLOCK_MONOTONIC {how}{beyond}")
    }

    /// Time that the other clock gained on this host's clock between the two measurements, in nanoseconds.
    fn drift(&self) -> i128 {
        self.after.map_or(0, |after| after.offset - self.before.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AHEAD: u64 = 3_600_000_000_000;

    /// Simulates an exchange with a clock that is ahead, and that gains `gain` nanoseconds per nanosecond. The request
    /// takes `there` nanoseconds, the answer `back` nanoseconds.
    fn exchange(at: u64, gain: f64, there: u64, back: u64) -> ClockReading {
        ClockReading::new(Nanos(at), shown(at + there, gain), Nanos(at + there + back))
    }

    fn shown(at: u64, gain: f64) -> Nanos {
        Nanos(at + AHEAD + (at as f64 * gain) as u64)
    }

    #[test]
    fn even_drift_is_taken_out() {
        let (end, gain) = (3_600_000_000_000, 50e-6); // an hour, and a gain of 50 millionths
        let clock = Clock::new(exchange(0, gain, 1000, 1000), Some(exchange(end, gain, 1000, 1000)));
        for at in (0..=end).step_by(end as usize / 7) {
            let found = clock.local_time(shown(at, gain));
            assert!(found.0.abs_diff(at) < 30_000, "{found} instead of {at}");
        }
        let ClockOffset { offset_s, uncertainty_s } = clock.offset();
        assert!((offset_s - 3600.09).abs() < 1e-3 && (uncertainty_s - 0.09).abs() < 1e-3, "{offset_s} {uncertainty_s}");
        assert!(clock.source().contains("drifted by 180 ms") && clock.source().contains("uncertainty of 90 ms"));
        let clock = Clock::new(exchange(0, gain, 1000, 1000), None);
        assert!(clock.source().contains("is unknown"));
    }

    proptest! {
        /// The true offset must be within the uncertainty at any moment of a run, whatever the network does. In each
        /// case, the other clock only gains or only loses during the run.
        #[test]
        fn the_truth_is_within_the_uncertainty(
            ways in proptest::array::uniform4(0_u64..50_000_000), gain in 0.0..1e-3_f64, end in 1_u64..1 << 42,
        ) {
            let [a, b, c, d] = ways;
            let again = a + b + end;
            let clock = Clock::new(exchange(0, gain, a, b), Some(exchange(again, gain, c, d)));
            let ClockOffset { offset_s, uncertainty_s } = clock.offset();
            for at in [a, a + b + end / 2, again + c] {
                let truth = (shown(at, gain).0 - at) as f64 / 1e9;
                let wrong = (offset_s - truth).abs();
                prop_assert!(wrong <= uncertainty_s * (1.0 + 1e-3) + 1e-6, "{truth} {offset_s} {uncertainty_s}");
            }
        }

        /// Readings from another host may be any numbers. None of them may cause a panic or a negative uncertainty.
        #[test]
        fn no_reading_is_too_strange(numbers in proptest::array::uniform7(any::<u64>())) {
            let [a, b, c, d, e, f, g] = numbers.map(Nanos);
            let clock = Clock::new(ClockReading::new(a, b, c), Some(ClockReading::new(d, e, f)));
            clock.local_time(g);
            clock.source();
            prop_assert!(clock.offset().uncertainty_s >= 0.0);
        }
    }
}
