//! Plans slices: the times for which tracepoints on sockets are attached, to measure requests. The plan determines when
//! slices begin, how long they are, and in which part of each slice new requests are counted.
//!
//! Each period has one slice, at a random instant. With a fixed instant, an activity of the server or the load that
//! happens every second could fall into every slice or into none. Requests that begin in the first three quarters of a
//! slice are counted. In the last quarter, no new requests are counted, but responses to earlier requests are still
//! observed. If too many of these requests remain open, slices become longer. Periods become longer in proportion, so
//! that the share of the time that slices take stays the same.

use brimful_core::Nanos;

/// The initial length of a slice, a time for which the tracepoints are attached.
const INITIAL_LENGTH: Nanos = Nanos::from_millis(200);
/// The maximum length of a slice, a time for which the tracepoints are attached.
const MAX_LENGTH: Nanos = Nanos::from_millis(6_400);
/// The share of each slice, from its start, in which new requests are counted.
const COUNTING_SHARE: f64 = 0.75;
/// Slices become longer if more than one in `MAX_OPEN_ONE_IN` requests is still open at the end of its slice.
const MAX_OPEN_ONE_IN: u64 = 100;
/// Minimum number of requests that were open at the ends of slices of the current length, before slices become longer.
const MIN_OPEN: u64 = 2;
/// Time at the end of each period in which no slice runs, if the slice leaves room for it. A monitor that takes one
/// sample at the end of each period then reads complete slices.
const MARGIN: Nanos = Nanos::from_millis(20);

/// Share of the time for which tracepoints are attached, above 0 and at most 1, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DutyCycle(u16);

/// The length of slices (times for which the tracepoints are attached), and the numbers of requests in all slices of
/// this length.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlicePlan {
    duty: DutyCycle,
    length: Nanos,
    begun: u64,
    open: u64,
}

impl DutyCycle {
    /// The tracepoints are always attached, so every request is measured. This costs five times as much as the default.
    pub const ALWAYS: DutyCycle = DutyCycle(1000);

    /// Rounds a share to the nearest thousandth; `None` if the result is not from 0.001 to 1.
    pub fn from_share(share: f64) -> Option<DutyCycle> {
        let thousandths = (1000.0 * share).round();
        (1.0..=1000.0).contains(&thousandths).then_some(DutyCycle(thousandths as u16))
    }

    /// The share of the time for which tracepoints are attached, from 0 to 1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl Default for DutyCycle {
    fn default() -> DutyCycle {
        DutyCycle(200)
    }
}

impl SlicePlan {
    /// Creates a plan with slices of the initial length.
    pub fn new(duty: DutyCycle) -> SlicePlan {
        SlicePlan { duty, length: INITIAL_LENGTH, begun: 0, open: 0 }
    }

    /// The length of a slice; `None` if the tracepoints are always attached.
    pub fn length(&self) -> Option<Nanos> {
        (self.duty != DutyCycle::ALWAYS).then_some(self.length)
    }

    /// The length of a slice's first part, in which new requests are counted.
    pub fn counting_time(&self) -> Nanos {
        Nanos::from_secs_f64(COUNTING_SHARE * self.length.as_secs_f64())
    }

    /// The length of a period, which contains one slice and the pause before the next.
    pub fn period(&self) -> Nanos {
        Nanos::from_secs_f64(self.length.as_secs_f64() / self.duty.share())
    }

    /// The offset of a slice from the start of its period. `random` is a random number that is uniform over all values.
    pub fn offset(&self, random: u64) -> Nanos {
        let latest = (self.period() - self.length) - MARGIN;
        let share = (random >> 11) as f64 / (1_u64 << 53) as f64;
        Nanos::from_secs_f64(share * latest.as_secs_f64())
    }

    /// Counts the requests of a slice that has ended: `begun` requests began, of which `open` were still open at the
    /// end. If too many are open, the next slices are twice as long, up to [`MAX_LENGTH`].
    pub fn end_slice(&mut self, begun: u64, open: u64) {
        self.begun = self.begun.saturating_add(begun);
        self.open = self.open.saturating_add(open);
        let too_many = self.open >= MIN_OPEN && self.open.saturating_mul(MAX_OPEN_ONE_IN) > self.begun;
        if too_many && self.length < MAX_LENGTH {
            *self = SlicePlan { length: Nanos(2 * self.length.0), ..SlicePlan::new(self.duty) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_slice_of_a_second_is_a_fifth_of_it_and_counts_for_three_quarters() {
        let slices = SlicePlan::new(DutyCycle::default());
        let ms = Nanos::from_millis;
        assert_eq!((slices.length(), slices.period(), slices.counting_time()), (Some(ms(200)), ms(1000), ms(150)));
        assert_eq!((slices.offset(0), slices.offset(u64::MAX).0 / 1_000_000), (Nanos::ZERO, 780));
        assert_eq!(SlicePlan::new(DutyCycle::ALWAYS).length(), None);
    }

    #[test]
    fn slices_become_longer_until_they_see_the_end_of_what_they_begin() {
        let mut slices = SlicePlan::new(DutyCycle::default());
        let mut lengths = Vec::new();
        for (begun, open) in [(1000, 5), (1000, 10), (1000, 15), (1000, 500), (2, 1), (0, 0), (3, 1), (0, 0)] {
            slices.end_slice(begun, open);
            lengths.push(slices.length.0 / 1_000_000);
        }
        assert_eq!(lengths, [200, 200, 200, 400, 400, 400, 800, 800]);
        (0..20).for_each(|_| slices.end_slice(10, 10));
        assert_eq!((slices.length, slices.period()), (MAX_LENGTH, Nanos::from_secs(32)));
        slices.end_slice(u64::MAX, u64::MAX);
    }

    #[test]
    fn shares_are_thousandths() {
        assert_eq!(DutyCycle::from_share(1.0), Some(DutyCycle::ALWAYS));
        assert_eq!(DutyCycle::from_share(0.2), Some(DutyCycle::default()));
        assert_eq!(DutyCycle::from_share(0.1504).map(DutyCycle::share), Some(0.15));
        for none in [0.0, 0.0004, 1.001, -0.2, f64::NAN, f64::INFINITY] {
            assert_eq!(DutyCycle::from_share(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn every_slice_lies_in_its_period(thousandths in 1_u16..1000, random in any::<u64>(), longer in 0..6) {
            let mut slices = SlicePlan::new(DutyCycle::from_share(f64::from(thousandths) / 1000.0).unwrap());
            (0..longer).for_each(|_| slices.end_slice(2, 2));
            prop_assert!(slices.offset(random) + slices.length <= slices.period());
            prop_assert!(slices.counting_time() < slices.length);
            let share = slices.length.as_secs_f64() / slices.period().as_secs_f64();
            prop_assert!((share - f64::from(thousandths) / 1000.0).abs() < 1e-6);
        }
    }
}
