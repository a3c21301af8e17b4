//! When to stop sleeping and spin.
//!
//! A thread that sleeps until an instant wakes late: by a few microseconds where its CPU stays awake, by tens where a hypervisor
//! has to be asked for it. One that spins burns a core. So: sleep until a margin before the instant, then spin, and learn the
//! margin from how late the sleeps end. At high rates there is little between two instants, and a margin larger than needed
//! would mean to spin all the time.

use brimful_core::Nanos;

/// Share of the sleeps that end within the margin.
const QUANTILE: f64 = 0.9;
/// How far the margin moves with each sleep that overran it, in nanoseconds.
const STEP: f64 = 1_000.0;
const LEAST: f64 = 2_000.0;
const MOST: f64 = 100_000.0;
/// Before anything is known.
const FIRST: f64 = 50_000.0;

/// Learns by how much to wake early.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    margin_ns: f64,
}

impl Pacer {
    pub fn new() -> Pacer {
        Pacer { margin_ns: FIRST }
    }

    /// How long to sleep when there is `left` to wait; `None` when it is time to spin.
    pub fn sleep(self, left: Nanos) -> Option<Nanos> {
        left.0.checked_sub(self.margin_ns as u64).filter(|sleep| *sleep > 0).map(Nanos)
    }

    /// A sleep that nothing interrupted ended `late` after its end. The margin follows the quantile by stochastic
    /// approximation (Robbins & Monro 1951): up by the quantile's share of a step when a sleep overran it, else down by the rest.
    pub fn woke(&mut self, late: Nanos) {
        let overran = late.0 as f64 > self.margin_ns;
        let step = if overran { STEP * QUANTILE } else { -STEP * (1.0 - QUANTILE) };
        self.margin_ns = (self.margin_ns + step).clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_settles_where_nine_of_ten_sleeps_end_within_it() {
        let mut pacer = Pacer::new();
        // Late by 0 to 20 µs, evenly, in a scrambled order.
        for i in 0u64..20_000 {
            pacer.woke(Nanos(i * 7_919 % 20_000));
        }
        assert!((pacer.margin_ns - 18_000.0).abs() < 4_000.0, "margin {} ns", pacer.margin_ns);
        assert_eq!(pacer.sleep(Nanos::from_micros(1)), None);
        let sleep = pacer.sleep(Nanos::from_millis(1)).unwrap();
        assert!(sleep > Nanos::from_micros(970) && sleep < Nanos::from_micros(990), "{sleep:?}");
    }

    #[test]
    fn the_margin_stays_bounded() {
        let mut pacer = Pacer::new();
        (0..1_000).for_each(|_| pacer.woke(Nanos::from_secs(1)));
        assert_eq!(pacer.margin_ns, MOST);
        (0..10_000).for_each(|_| pacer.woke(Nanos::ZERO));
        assert_eq!(pacer.margin_ns, LEAST);
    }
}
