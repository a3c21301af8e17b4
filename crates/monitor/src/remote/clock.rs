//! The offset between two hosts' monotonic clocks, by exchanges of their readings (Cristian 1989; RFC 5905 §8 calls it
//! the clock filter).
//!
//! A reading of the other clock was made at some moment between asking and being answered, so the middle of the two is
//! wrong by half the round trip at most, whatever the network does; of several exchanges that with the shortest round
//! trip says most. One such measurement is made before the run and one after it. Crystals differ by tens of millionths,
//! milliseconds in a minute, but steadily: instants in between are mapped by the straight line between the two
//! measurements, and the one offset that a Record states is in its middle.

use brimful_core::Nanos;
use brimful_core::server::ClockOffset;

/// Exchanges of one measurement.
pub const EXCHANGES: usize = 16;

/// The largest uncertainty with which a run begins. Figures are of stretches of 250 ms and more: 2 % of one may be its
/// neighbour's.
pub const MAX_UNCERTAINTY: Nanos = Nanos::from_millis(5);

/// How far the other clock was ahead at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// When, by this host's clock.
    at: Nanos,
    /// The other clock less this one, in nanoseconds.
    offset: i128,
    /// The offset is within this of the truth: half the round trip.
    pub uncertainty: Nanos,
}

/// From the other clock to this one.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    before: Reading,
    after: Option<Reading>,
}

impl Reading {
    /// From one exchange: asked and answered by this clock, and what the other one showed.
    pub fn new(asked: Nanos, showed: Nanos, answered: Nanos) -> Reading {
        let round_trip = answered - asked;
        let at = asked + Nanos(round_trip.0 / 2);
        Reading { at, offset: i128::from(showed.0) - i128::from(at.0), uncertainty: Nanos(round_trip.0.div_ceil(2)) }
    }
}

impl Clock {
    /// From what was measured before the run and, if that could be done, after it.
    pub fn new(before: Reading, after: Option<Reading>) -> Clock {
        Clock { before, after }
    }

    /// The instant by this host's clock.
    pub fn here(&self, there: Nanos) -> Nanos {
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

    /// As a Record states it.
    pub fn offset(&self) -> ClockOffset {
        let round_trips =
            self.after.map_or(self.before.uncertainty, |after| after.uncertainty.max(self.before.uncertainty));
        let half_drift = self.drift() as f64 / 2.0;
        ClockOffset {
            offset_s: (self.before.offset as f64 + half_drift) / 1e9,
            uncertainty_s: round_trips.as_secs_f64() + half_drift.abs() / 1e9,
        }
    }

    /// How it was found, for the sources.
    pub fn source(&self) -> String {
        let uncertainty = Nanos::from_secs_f64(self.offset().uncertainty_s);
        let drifted = Nanos(u64::try_from(self.drift().unsigned_abs()).unwrap_or(u64::MAX)).rounded();
        let how = match self.after {
            Some(_) => format!("before and after the load; in between they drifted by {drifted}, evenly as is assumed"),
            None => {
                "before the load only, because the stream broke: how far they drifted since is not known".to_owned()
            }
        };
        let beyond = if uncertainty > MAX_UNCERTAINTY {
            format!(
                ". The one offset stated is sure to {} only, not to {MAX_UNCERTAINTY}: mind that where instants of the two hosts are \
                 compared",
                uncertainty.rounded()
            )
        } else {
            String::new()
        };
        format!("exchanges of both hosts' CLOCK_MONOTONIC {how}{beyond}")
    }

    /// By how much the other clock gained between the two measurements, in nanoseconds.
    fn drift(&self) -> i128 {
        self.after.map_or(0, |after| after.offset - self.before.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AHEAD: u64 = 3_600_000_000_000;

    /// The other clock is ahead and gains; the ways there and back take these times.
    fn exchange(at: u64, gain: f64, there: u64, back: u64) -> Reading {
        Reading::new(Nanos(at), shown(at + there, gain), Nanos(at + there + back))
    }

    fn shown(at: u64, gain: f64) -> Nanos {
        Nanos(at + AHEAD + (at as f64 * gain) as u64)
    }

    #[test]
    fn even_drift_is_taken_out() {
        let (end, gain) = (3_600_000_000_000, 50e-6); // an hour at 50 millionths
        let clock = Clock::new(exchange(0, gain, 1000, 1000), Some(exchange(end, gain, 1000, 1000)));
        for at in (0..=end).step_by(end as usize / 7) {
            let found = clock.here(shown(at, gain));
            assert!(found.0.abs_diff(at) < 30_000, "{found} instead of {at}");
        }
        let ClockOffset { offset_s, uncertainty_s } = clock.offset();
        assert!((offset_s - 3600.09).abs() < 1e-3 && (uncertainty_s - 0.09).abs() < 1e-3, "{offset_s} {uncertainty_s}");
        assert!(clock.source().contains("drifted by 180 ms") && clock.source().contains("sure to 90 ms only"));
        let clock = Clock::new(exchange(0, gain, 1000, 1000), None);
        assert!(clock.source().contains("not known"));
    }

    proptest! {
        /// Whatever the network does, the truth is within the uncertainty, at any moment of a run in which the other
        /// clock only gains or only loses.
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

        /// Foreign readings are any numbers at all.
        #[test]
        fn no_reading_is_too_strange(numbers in proptest::array::uniform7(any::<u64>())) {
            let [a, b, c, d, e, f, g] = numbers.map(Nanos);
            let clock = Clock::new(Reading::new(a, b, c), Some(Reading::new(d, e, f)));
            clock.here(g);
            clock.source();
            prop_assert!(clock.offset().uncertainty_s >= 0.0);
        }
    }
}
