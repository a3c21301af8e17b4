//! When to stop sleeping and spin.
//!
//! A thread that sleeps until an instant wakes late: by a few microseconds where its CPU stays awake, by tens where a hypervisor
//! has to be asked for it. One that spins burns a core. So: sleep until a margin before the instant, then spin, and learn the
//! margin from how late the sleeps end. It is learnt for short and for long sleeps apart, as a CPU that rests longer rests
//! deeper; and a margin that would leave no time to sleep shrinks until it does, or at high rates one would spin all the time.
//! Who would rather be a little late than spin says so.

use crate::clock::Clock;
use brimful_core::Nanos;

/// Longest wait: how soon a stop is noticed.
const NAP: Nanos = Nanos::from_millis(50);
/// Share of the sleeps that end within the margin.
const QUANTILE: f64 = 0.9;
/// How far the margin moves with each sleep that overran it, in nanoseconds.
const STEP: f64 = 1_000.0;
/// A sleep shorter than this costs more than spinning for as long: setting a timer and waking by it takes time too.
const WORTHWHILE: Nanos = Nanos::from_micros(10);
const LEAST: f64 = 2_000.0;
const MOST: f64 = 200_000.0;
/// Before anything is known.
const FIRST: f64 = 50_000.0;
/// Margins are learnt by powers of two of the wait, the first for all up to 2¹⁴ ns = 16 µs, the last for those of 8 ms and more.
const SHORTEST: u32 = 14;
const OCTAVES: usize = 10;

/// How a wait was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// From its beginning to its end.
    pub total: Nanos,
    /// Of that, without sleeping.
    pub spun: Nanos,
    /// Before the latest look at what has happened.
    pub looked: Nanos,
    /// By how much one look, or the sleep in it, took longer than it was to.
    pub overslept: Nanos,
}

/// Learns by how much to wake early.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    margins_ns: [f64; OCTAVES],
    /// Which of them the latest sleep took.
    octave: usize,
    /// Whether to spin at all: else a wait ends when its sleep does, late.
    exactly: bool,
}

impl Pacer {
    pub fn new() -> Pacer {
        Pacer { margins_ns: [FIRST; OCTAVES], octave: 0, exactly: true }
    }

    /// Whether waits are to end when they should, which costs the CPU time of spinning.
    pub fn set_exact(&mut self, exactly: bool) {
        self.exactly = exactly;
    }

    /// Waits until something has happened, `until` has come or a short while has passed. `look` says whether something has; it
    /// sleeps for it as long as it is told, or not at all.
    pub fn wait<E>(
        &mut self,
        clock: Clock,
        until: Nanos,
        mut look: impl FnMut(Option<Nanos>) -> Result<bool, E>,
    ) -> Result<Waited, E> {
        let began = clock.now();
        if until <= began {
            look(None)?;
            return Ok(Waited { looked: began, ..Waited::default() });
        }
        let limit = until.min(began + NAP);
        self.begin(limit - began);
        let (mut now, mut spun, mut overslept, mut first) = (began, Nanos::ZERO, Nanos::ZERO, true);
        loop {
            let sleep = self.sleep(limit - now);
            let happened = look(sleep)?;
            let (looked, woke) = (now, clock.now());
            overslept = overslept.max(woke - (now + sleep.unwrap_or_default()));
            match sleep {
                _ if happened => return Ok(Waited { total: woke - began, spun, looked, overslept }),
                Some(sleep) if self.exactly => self.woke(woke - (now + sleep)),
                Some(_) => {}
                // The first look may do work that was asked for before.
                None if first => {}
                None => spun += woke - now,
            }
            first = false;
            now = woke;
            if now >= limit {
                return Ok(Waited { total: now - began, spun, looked, overslept });
            }
        }
    }

    /// How long to sleep when there is `left` to wait; `None` when it is time to spin.
    fn sleep(&mut self, left: Nanos) -> Option<Nanos> {
        if !self.exactly {
            return Some(left);
        }
        let log2 = u64::BITS - left.0.leading_zeros();
        self.octave = (log2.saturating_sub(SHORTEST) as usize).min(OCTAVES - 1);
        left.0.checked_sub(self.margins_ns[self.octave] as u64).map(Nanos).filter(|sleep| *sleep > WORTHWHILE)
    }

    /// A wait of this length begins: a margin that leaves no time to sleep is tried shorter.
    fn begin(&mut self, left: Nanos) {
        if self.sleep(left).is_none() {
            self.step(-STEP * (1.0 - QUANTILE));
        }
    }

    /// A sleep that nothing interrupted ended `late` after its end. The margin follows the quantile by stochastic
    /// approximation (Robbins & Monro 1951): up by the quantile's share of a step when a sleep overran it, else down by the rest.
    fn woke(&mut self, late: Nanos) {
        let overran = late.0 as f64 > self.margins_ns[self.octave];
        self.step(if overran { STEP * QUANTILE } else { -STEP * (1.0 - QUANTILE) });
    }

    fn step(&mut self, step: f64) {
        let margin = &mut self.margins_ns[self.octave];
        *margin = (*margin + step).clamp(LEAST, MOST);
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
        // Late by 0 to 20 µs, evenly, in a scrambled order.
        for i in 0u64..20_000 {
            pacer.sleep(WAIT);
            pacer.woke(Nanos(i * 7_919 % 20_000));
        }
        assert!((margin(&mut pacer, WAIT) - 18_000.0).abs() < 4_000.0, "{pacer:?}");
        assert_eq!(margin(&mut pacer, Nanos::from_millis(5)), FIRST, "longer waits are learnt apart");
        assert_eq!(pacer.sleep(Nanos::from_micros(1)), None);
    }

    #[test]
    fn who_need_not_be_exact_sleeps_to_the_end() {
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
        assert_eq!(waited.unwrap().spun, Nanos::ZERO);
        pacer.set_exact(true);
        assert!(pacer.sleep(WAIT).is_some_and(|sleep| sleep < WAIT));
    }

    #[test]
    fn the_margin_stays_bounded() {
        let mut pacer = Pacer::new();
        pacer.sleep(WAIT);
        (0..1_000).for_each(|_| pacer.woke(Nanos::from_secs(1)));
        assert_eq!(margin(&mut pacer, WAIT), MOST);
        (0..10_000).for_each(|_| pacer.woke(Nanos::ZERO));
        assert_eq!(margin(&mut pacer, WAIT), LEAST);
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
