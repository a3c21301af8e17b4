//! Decides when slices begin, how long they are, and in which part of each slice new requests are counted.
//!
//! Each period has one slice, at a random instant. With a fixed instant, an activity of the server or the load that
//! happens every second could fall into every slice or into none. Requests that begin in the first three quarters of a
//! slice are counted. In the last quarter, the end of these requests can be observed. If too many of these requests
//! remain open, slices become longer. Periods become longer in proportion, so that the share of the time that slices
//! take stays the same.

use brimful_core::Nanos;

/// The initial length of a slice.
const INITIAL_LENGTH: Nanos = Nanos::from_millis(200);
/// The maximum length of a slice.
const MAX_LENGTH: Nanos = Nanos::from_millis(6_400);
/// The share of a slice in which new requests are counted.
const COUNTING_SHARE: f64 = 0.75;
/// Slices become longer if more than one in this many requests is open at the end of a slice.
const MAX_OPEN_ONE_IN: u64 = 100;
/// Slices become longer only if at least this many requests were open at the ends of all slices of the current length.
const MIN_OPEN: u64 = 2;
/// Time that is kept free at the end of each period, if the slice leaves room for it. So if a monitor samples once per
/// period, the slice has ended at the time of the sample.
const MARGIN: Nanos = Nanos::from_millis(20);

/// The share of the time that slices take, above 0 and at most 1, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DutyCycle(u16);

/// The plan of slices, and the numbers of requests in the slices of the current length.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlicePlan {
    duty: DutyCycle,
    length: Nanos,
    begun: u64,
    open: u64,
}

impl DutyCycle {
    /// The tracepoints are always attached: every request is traced, at five times the cost of the default.
    pub const ALWAYS: DutyCycle = DutyCycle(1000);

    /// Rounds to the nearest thousandth; `None` if the result is not from 0.001 to 1.
    pub fn from_share(share: f64) -> Option<DutyCycle> {
        let thousandths = (1000.0 * share).round();
        (1.0..=1000.0).contains(&thousandths).then_some(DutyCycle(thousandths as u16))
    }

    /// The share, from 0 to 1.
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
    pub fn new(duty: DutyCycle) -> SlicePlan {
        SlicePlan { duty, length: INITIAL_LENGTH, begun: 0, open: 0 }
    }

    /// The length of a slice; `None` for a slice that never ends.
    pub fn length(&self) -> Option<Nanos> {
        (self.duty != DutyCycle::ALWAYS).then_some(self.length)
    }

    /// The time of a slice in which new requests are counted.
    pub fn counting_time(&self) -> Nanos {
        Nanos::from_secs_f64(COUNTING_SHARE * self.length.as_secs_f64())
    }

    /// The length of a period, which contains one slice.
    pub fn period(&self) -> Nanos {
        Nanos::from_secs_f64(self.length.as_secs_f64() / self.duty.share())
    }

    /// The offset of a slice from the start of its period. `random` is uniform over all values.
    pub fn offset(&self, random: u64) -> Nanos {
        let latest = (self.period() - self.length) - MARGIN;
        let share = (random >> 11) as f64 / (1_u64 << 53) as f64;
        Nanos::from_secs_f64(share * latest.as_secs_f64())
    }

    /// Ends a slice in which `begun` requests began. Of these requests, `open` were still open.
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
