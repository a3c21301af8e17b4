//! Piecewise linear rate curves, and the time at which the area under such a curve reaches a given value. Lengths are
//! in seconds, rates in calls per second, areas in calls.

/// A piece of a rate curve, in which the rate changes linearly from `start_rate` to `end_rate` within `length_s`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateSegment {
    /// Length of the piece, in seconds.
    pub length_s: f64,
    /// Rate at the start of the piece, in calls per second.
    pub start_rate: f64,
    /// Rate at the end of the piece, in calls per second.
    pub end_rate: f64,
}

impl RateSegment {
    /// Creates a piece with a constant rate, in calls per second.
    pub fn constant(length_s: f64, rate: f64) -> RateSegment {
        RateSegment { length_s, start_rate: rate, end_rate: rate }
    }

    /// Area under the piece: its number of calls.
    pub fn area(self) -> f64 {
        self.length_s * (self.start_rate + self.end_rate) / 2.0
    }

    /// Time at which the area under the piece reaches `area`. The time is in seconds from the start of the piece; the
    /// area also counts from there.
    ///
    /// The result is the positive root of `start_rate·t + slope·t²/2 = area`. The formula used here adds two numbers of
    /// the same sign in its denominator, so it loses no digits for a nearly constant rate, and is exact for a constant
    /// rate. The textbook formula divides 0 by 0 for a constant rate.
    pub fn time_at_area(self, area: f64) -> f64 {
        if area <= 0.0 {
            return 0.0;
        }
        let slope = (self.end_rate - self.start_rate) / self.length_s;
        let rate_then = (self.start_rate * self.start_rate + 2.0 * slope * area).max(0.0).sqrt();
        (2.0 * area / (self.start_rate + rate_then)).min(self.length_s)
    }
}

/// A rate curve that is a sequence of pieces.
#[derive(Clone, Debug)]
pub(super) struct Pieces<I> {
    rest: I,
    piece: RateSegment,
    start_s: f64,
    start_area: f64,
    end_area: f64,
}

impl<I: Iterator<Item = RateSegment>> Pieces<I> {
    /// Creates the curve of these pieces, from time 0.
    pub fn new(pieces: I) -> Pieces<I> {
        Pieces { rest: pieces, piece: RateSegment::constant(0.0, 0.0), start_s: 0.0, start_area: 0.0, end_area: 0.0 }
    }

    /// The time at which the area from the start exceeds `area`, in seconds; `None` if this never happens. `area` must
    /// not decrease from one call of this function to the next. If the curve reaches `area` at the start of a pause (a
    /// piece with rate zero), the result is the end of the pause.
    pub fn time_at_area(&mut self, area: f64) -> Option<f64> {
        while area >= self.end_area {
            self.start_s += self.piece.length_s;
            self.start_area = self.end_area;
            self.piece = self.rest.next()?;
            self.end_area += self.piece.area();
        }
        Some(self.start_s + self.piece.time_at_area(area - self.start_area))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pause_is_skipped_and_nothing_follows_the_end() {
        let pieces = [
            RateSegment::constant(1.0, 0.0),
            RateSegment::constant(1.0, 2.0),
            RateSegment::constant(3.0, 0.0),
            RateSegment::constant(1.0, 1.0),
        ];
        let mut pieces = Pieces::new(pieces.into_iter());
        assert_eq!([0.0, 1.0, 2.0, 3.0].map(|area| pieces.time_at_area(area)), [Some(1.0), Some(1.5), Some(5.0), None]);
    }

    proptest! {
        /// For constant, rising and falling pieces, expects that the area up to the returned time is the requested
        /// area.
        #[test]
        fn the_area_up_to_the_returned_time_is_the_requested_area(
            from in 0.0..1e6f64, log_slope in -30.0..6.0, down: bool, length_s in 1e-3..1e4, share in 0.0..1.0f64,
        ) {
            let change = 10f64.powf(log_slope) * length_s;
            let to = if down { f64::max(from - change, 0.0) } else { from + change };
            let piece = RateSegment { length_s, start_rate: from, end_rate: to };
            let t = piece.time_at_area(share * piece.area());
            let area = t * (from + (from + (to - from) * t / length_s)) / 2.0;
            prop_assert!((0.0..=length_s).contains(&t));
            // At the end of a piece whose rate falls to zero, the area hardly depends on the time. So the tolerance is
            // relative to the area of the whole piece.
            prop_assert!((area - share * piece.area()).abs() <= 1e-12 * piece.area(), "{area} of {}", piece.area());
        }
    }
}
