//! One direction of a client's link: packets are lost, wait for their turn at a limited rate, take their time, and some
//! are overtaken.
//!
//! What becomes of the n-th packet follows from the seed and n alone, so that the same packets meet the same fate
//! again. It is told the time.

use brimful_core::Nanos;
use brimful_core::testbed::Link as Counts;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// A packet that is held back is late by this share of its delay,
const HELD_BACK: u64 = 4;
/// and by this at least.
const HELD_BACK_AT_LEAST: Nanos = Nanos::from_millis(1);

/// What a link does to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkShape {
    /// Share of the packets that is lost.
    pub loss: f64,
    /// Share of the packets that is held back for a quarter of their delay, and 1 ms at least.
    pub reorder: f64,
    /// Bytes per second, if limited; not below 1000, or the largest packets are due later than the router can keep
    /// them.
    pub bytes_per_s: Option<f64>,
    /// The longest that a packet waits for its turn, 2 s at most.
    pub queue: Nanos,
}

/// A link and what it has seen.
#[derive(Debug)]
pub struct Link {
    shape: LinkShape,
    random: Pcg64Mcg,
    /// When the last packet in the queue will have been sent.
    free_at: Nanos,
    counts: Counts,
}

impl Link {
    /// `number` tells it from the other links of the same seed.
    pub fn new(shape: LinkShape, seed: u64, number: u64) -> Link {
        // Neighbouring seeds give unlike streams only if they differ in more than their low bits.
        let random = Pcg64Mcg::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Link { shape, random, free_at: Nanos::ZERO, counts: Counts::default() }
    }

    /// When a packet of this length that comes now is at the other end, to which it takes `delay`; `None` if it never
    /// is.
    pub fn pass(&mut self, length: usize, delay: Nanos, now: Nanos) -> Option<Nanos> {
        // Both are drawn for every packet: its number alone says which.
        let (lost, held_back) = (self.random.random::<f64>(), self.random.random::<f64>());
        if lost < self.shape.loss {
            self.counts.lost_packets += 1;
            return None;
        }
        let Some(sent) = self.sent(length, now) else {
            self.counts.queue_full_packets += 1;
            return None;
        };
        self.counts.packets += 1;
        self.counts.bytes += length as u64;
        if held_back < self.shape.reorder {
            self.counts.reordered_packets += 1;
            return Some(sent + delay + Nanos(delay.0 / HELD_BACK).max(HELD_BACK_AT_LEAST));
        }
        Some(sent + delay)
    }

    /// What became of the packets so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// When its last byte has been sent, after those before it; `None` if too many are before it.
    fn sent(&mut self, length: usize, now: Nanos) -> Option<Nanos> {
        let Some(bytes_per_s) = self.shape.bytes_per_s else { return Some(now) };
        let begins = self.free_at.max(now);
        if begins - now > self.shape.queue {
            return None;
        }
        self.free_at = begins + Nanos::from_secs_f64(length as f64 / bytes_per_s);
        Some(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Nanos = Nanos::from_millis(40);

    fn link(shape: LinkShape) -> Link {
        Link::new(shape, 1, 0)
    }

    #[test]
    fn a_perfect_link_only_delays() {
        let mut link = link(LinkShape::default());
        for at in [Nanos::ZERO, Nanos::from_secs(5)] {
            assert_eq!(link.pass(1500, DELAY, at), Some(at + DELAY));
        }
        assert_eq!(link.counts(), Counts { packets: 2, bytes: 3000, ..Counts::default() });
    }

    #[test]
    fn packets_take_turns_at_the_rate_and_the_queue_is_bounded() {
        // 1000 bytes take 1 ms.
        let shape = LinkShape { bytes_per_s: Some(1e6), queue: Nanos::from_millis(3), ..LinkShape::default() };
        let mut link = link(shape);
        let sent: Vec<_> = (0..6).map(|_| link.pass(1000, DELAY, Nanos::ZERO)).collect();
        let after = |ms| Some(Nanos::from_millis(ms) + DELAY);
        // The fourth begins after 3 ms, and no other may wait as long as the fifth would.
        assert_eq!(sent, [after(1), after(2), after(3), after(4), None, None]);
        assert_eq!(link.counts().queue_full_packets, 2);
        let later = Nanos::from_millis(10);
        assert_eq!(
            link.pass(500, Nanos::ZERO, later),
            Some(later + Nanos::from_micros(500)),
            "an idle link has no queue"
        );
    }

    #[test]
    fn a_packet_longer_than_the_queue_still_passes_an_idle_link() {
        let mut link = link(LinkShape { bytes_per_s: Some(1000.0), queue: Nanos::ZERO, ..LinkShape::default() });
        assert_eq!(link.pass(1500, Nanos::ZERO, Nanos::ZERO), Some(Nanos::from_millis(1500)));
        assert_eq!(link.pass(1, Nanos::ZERO, Nanos::ZERO), None);
    }

    #[test]
    fn as_many_are_lost_and_overtaken_as_was_asked_for() {
        let mut link = link(LinkShape { loss: 0.02, reorder: 0.1, ..LinkShape::default() });
        let passed: Vec<Nanos> = (0..100_000).filter_map(|_| link.pass(100, DELAY, Nanos::ZERO)).collect();
        let counts = link.counts();
        assert_eq!(passed.len() as u64, counts.packets);
        // Five standard deviations: 2000 ± 44 and 9800 ± 94.
        assert!(counts.lost_packets.abs_diff(2_000) < 220, "{counts:?}");
        assert!(counts.reordered_packets.abs_diff(9_800) < 470, "{counts:?}");
        let late = passed.iter().filter(|at| **at == DELAY + Nanos::from_millis(10)).count();
        assert_eq!(late as u64, counts.reordered_packets);
        let all = Link::new(LinkShape { loss: 1.0, ..LinkShape::default() }, 1, 0).pass(1, DELAY, Nanos::ZERO);
        assert_eq!(all, None);
    }

    #[test]
    fn a_seed_gives_the_same_fate_again_and_links_do_not_share_theirs() {
        let shape = LinkShape { loss: 0.5, ..LinkShape::default() };
        let fate = |seed, number| {
            let mut link = Link::new(shape, seed, number);
            (0..64).map(|_| link.pass(1, DELAY, Nanos::ZERO).is_some()).collect::<Vec<bool>>()
        };
        assert_eq!(fate(7, 3), fate(7, 3));
        assert_ne!(fate(7, 3), fate(7, 4));
        assert_ne!(fate(7, 3), fate(8, 3));
    }
}
