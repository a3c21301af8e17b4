//! Decides when a wait stops sleeping and begins to spin.
//!
//! A thread that sleeps until an exact time wakes late: by a few microseconds if its CPU stays awake, by tens of
//! microseconds if a hypervisor must resume it. A thread that spins uses a whole core. So a wait sleeps until a margin
//! before its end, and then spins. The margin is learnt from the lateness of earlier sleeps. Short and long waits have
//! different margins, because a CPU enters deeper sleep states in longer waits. A margin that leaves no time to sleep
//! is reduced step by step, because otherwise short waits would always spin. A caller may also choose not to spin and
//! to be a little late.

use crate::clock::Clock;
use brimful_core::Nanos;

/// The longest wait for an event. A request to stop the run is noticed within this time.
const MAX_WAIT: Nanos = Nanos::from_millis(50);
/// Fraction of the sleeps whose lateness must not exceed the learnt margin.
const QUANTILE: f64 = 0.9;
/// Change of the margin after one sleep, in nanoseconds.
const STEP_NS: f64 = 1_000.0;
/// Minimum duration of a sleep. The timer and wake-up of a shorter sleep need more CPU time than spinning.
const MIN_SLEEP: Nanos = Nanos::from_micros(10);
const MIN_MARGIN_NS: f64 = 2_000.0;
const MAX_MARGIN_NS: f64 = 200_000.0;
/// The margin before any sleep was measured, in nanoseconds.
const INITIAL_MARGIN_NS: f64 = 50_000.0;
/// Binary logarithm of the upper limit of the shortest class of waits, in nanoseconds: 2¹⁴ ns = 16 µs. The limit of
/// each further class is twice that of the class before (an octave).
const FIRST_OCTAVE_LOG2: u32 = 14;
/// Number of classes of waits by duration (octaves), each with its own margin. The last class contains all waits of 2²²
/// ns = 4 ms and more.
const OCTAVES: usize = 10;

/// The duration of a wait for events, and how the thread spent it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitTimes {
    /// Total duration of the wait.
    pub total: Nanos,
    /// Part of the wait in which the thread spun.
    pub busy_waited: Nanos,
    /// Time at which the latest check for events began.
    pub polled_at: Nanos,
    /// Longest delay of a check for events, or of the sleep in it, beyond the planned end.
    pub overslept: Nanos,
}

/// Waits for events. Learns how long before the end of a wait the thread must stop sleeping to be on time, and spins
/// for the rest of the wait.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    margins_ns: [f64; OCTAVES],
    /// The class of the latest wait by duration, which selects the margin.
    octave: usize,
    /// Whether to spin before the end of a wait. If not, a wait ends with its sleep, which may be late.
    exactly: bool,
}

impl Pacer {
    /// Creates a pacer with the initial margin for every class of waits.
    pub fn new() -> Pacer {
        Pacer { margins_ns: [INITIAL_MARGIN_NS; OCTAVES], octave: 0, exactly: true }
    }

    /// Sets whether waits end exactly on time, which needs CPU time for spinning.
    pub fn set_exact(&mut self, exactly: bool) {
        self.exactly = exactly;
    }

    /// Waits for an event until `until`, but no longer than [`MAX_WAIT`]. `poll` checks for events and returns whether
    /// there is one. Given a duration, `poll` may sleep for this time at most; given `None`, it must not sleep.
    pub fn wait<E>(
        &mut self,
        clock: Clock,
        until: Nanos,
        mut poll: impl FnMut(Option<Nanos>) -> Result<bool, E>,
    ) -> Result<WaitTimes, E> {
        let began = clock.now();
        if until <= began {
            poll(None)?;
            return Ok(WaitTimes { polled_at: began, ..WaitTimes::default() });
        }
        let limit = until.min(began + MAX_WAIT);
        self.begin(limit - began);
        let mut now = began;
        let mut busy_waited = Nanos::ZERO;
        let mut overslept = Nanos::ZERO;
        let mut is_first = true;
        loop {
            let sleep = self.sleep(limit - now);
            let has_event = poll(sleep)?;
            let polled_at = now;
            let woke = clock.now();
            overslept = overslept.max(woke - (now + sleep.unwrap_or_default()));
            match sleep {
                _ if has_event => return Ok(WaitTimes { total: woke - began, busy_waited, polled_at, overslept }),
                Some(sleep) if self.exactly => self.woke(woke - (now + sleep)),
                Some(_) => {}
                // The first check does not count as spinning, because it may also submit operations that were requested
                // before.
                None if is_first => {}
                None => busy_waited += woke - now,
            }
            is_first = false;
            now = woke;
            if now >= limit {
                return Ok(WaitTimes { total: now - began, busy_waited, polled_at, overslept });
            }
        }
    }

    /// Duration to sleep now if the wait ends in `left`; `None` if it is time to spin.
    fn sleep(&mut self, left: Nanos) -> Option<Nanos> {
        if !self.exactly {
            return Some(left);
        }
        let log2 = u64::BITS - left.0.leading_zeros();
        self.octave = (log2.saturating_sub(FIRST_OCTAVE_LOG2) as usize).min(OCTAVES - 1);
        left.0.checked_sub(self.margins_ns[self.octave] as u64).map(Nanos).filter(|sleep| *sleep > MIN_SLEEP)
    }

    /// Begins a wait of this duration, and selects its margin. A margin that leaves no time to sleep is reduced by a
    /// fraction of a step.
    fn begin(&mut self, left: Nanos) {
        if self.sleep(left).is_none() {
            self.step(-STEP_NS * (1.0 - QUANTILE));
        }
    }

    /// Updates the margin after a sleep that ended `late` later than planned, without an event. The margin follows the
    /// quantile by stochastic approximation (Robbins & Monro 1951): if the lateness exceeded the margin, it grows by
    /// [`QUANTILE`] of a step; otherwise, it shrinks by 1 − [`QUANTILE`] of a step.
    fn woke(&mut self, late: Nanos) {
        let exceeded = late.0 as f64 > self.margins_ns[self.octave];
        self.step(if exceeded { STEP_NS * QUANTILE } else { -STEP_NS * (1.0 - QUANTILE) });
    }

    fn step(&mut self, step: f64) {
        let margin = &mut self.margins_ns[self.octave];
        *margin = (*margin + step).clamp(MIN_MARGIN_NS, MAX_MARGIN_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Nanos = Nanos::from_millis(1);

    fn margin(pacer: &mut Pacer, left: Nanos) -> f64 {
        pacer.sleep(left);
        pacer.margins_ns[pacer.octave]
    }

    #[test]
    fn the_margin_settles_where_nine_of_ten_sleeps_end_within_it() {
        let mut pacer = Pacer::new();
        // The lateness of the sleeps takes the values between 0 and 20 µs in a scrambled order, equally often.
        for i in 0u64..20_000 {
            pacer.sleep(WAIT);
            pacer.woke(Nanos(i * 7_919 % 20_000));
        }
        assert!((margin(&mut pacer, WAIT) - 18_000.0).abs() < 4_000.0, "{pacer:?}");
        assert_eq!(
            margin(&mut pacer, Nanos::from_millis(5)),
            INITIAL_MARGIN_NS,
            "each octave of waits has a margin of its own"
        );
        assert_eq!(pacer.sleep(Nanos::from_micros(1)), None);
    }

    #[test]
    fn inexact_waits_sleep_to_the_end() {
        let mut pacer = Pacer::new();
        pacer.set_exact(false);
        let clock = Clock::starting_in(Nanos::ZERO);
        let (mut slept, until) = (Vec::new(), clock.now() + Nanos::from_millis(2));
        let waited = pacer.wait(clock, until, |sleep| {
            slept.push(sleep);
            std::thread::sleep(std::time::Duration::from_nanos(sleep.unwrap_or_default().0));
            Ok::<bool, ()>(false)
        });
        assert!(slept.iter().all(Option::is_some), "{slept:?}");
        assert_eq!(waited.unwrap().busy_waited, Nanos::ZERO);
        pacer.set_exact(true);
        assert!(pacer.sleep(WAIT).is_some_and(|sleep| sleep < WAIT));
    }

    #[test]
    fn the_margin_stays_bounded() {
        let mut pacer = Pacer::new();
        pacer.sleep(WAIT);
        (0..1_000).for_each(|_| pacer.woke(Nanos::from_secs(1)));
        assert_eq!(margin(&mut pacer, WAIT), MAX_MARGIN_NS);
        (0..10_000).for_each(|_| pacer.woke(Nanos::ZERO));
        assert_eq!(margin(&mut pacer, WAIT), MIN_MARGIN_NS);
    }

    #[test]
    fn a_margin_longer_than_the_wait_shrinks_until_there_is_time_to_sleep() {
        let mut pacer = Pacer::new();
        let left = Nanos::from_micros(40);
        assert_eq!(pacer.sleep(left), None);
        (0..1_000).for_each(|_| pacer.begin(left));
        assert!(pacer.sleep(left).is_some());
    }
}
