//! One direction of a client's link. It loses packets, queues them at a limited rate, delays them, and delays some of
//! them longer so that later packets overtake them.
//!
//! Whether the n-th packet is lost or reordered depends only on the seed and n, so a run can be repeated. The link has
//! no clock: its caller passes the time.

use brimful_core::Nanos;
use brimful_core::testbed::Link as Counts;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// The additional delay of a reordered packet is its delay divided by this number, but at least [`MIN_HOLD_BACK`].
const HOLD_BACK_DIVISOR: u64 = 4;
/// Lower bound of the additional delay of a reordered packet.
const MIN_HOLD_BACK: Nanos = Nanos::from_millis(1);

/// The properties of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkShape {
    /// Share of the packets that are lost.
    pub loss: f64,
    /// Share of the packets that are reordered: their delay is longer by a quarter, but by at least 1 ms.
    pub reorder: f64,
    /// Rate limit, in bytes per second, at least 1000. At a lower rate, the largest packets would be due beyond the
    /// horizon of the router's timer wheel.
    pub bytes_per_s: Option<f64>,
    /// Longest time that a packet waits in the queue of the rate limit, at most 2 s.
    pub queue: Nanos,
}

/// A link, with the counts of its packets.
#[derive(Debug)]
pub struct Link {
    shape: LinkShape,
    random: Pcg64Mcg,
    /// Time at which the last byte in the queue will have been sent.
    free_at: Nanos,
    counts: Counts,
}

impl Link {
    /// Creates a link. Links with the same seed but different numbers get different random streams.
    pub fn new(shape: LinkShape, seed: u64, number: u64) -> Link {
        // Seeds that differ only in their low bits give similar streams, so the number is spread over all bits.
        let random = Pcg64Mcg::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Link { shape, random, free_at: Nanos::ZERO, counts: Counts::default() }
    }

    /// Sends a packet of this length over the link. Returns when it arrives at the other end, `delay` after it was
    /// sent; `None` if it is lost or the queue is full.
    pub fn send_packet(&mut self, length: usize, delay: Nanos, now: Nanos) -> Option<Nanos> {
        // Two numbers are drawn for every packet, so that the draws depend only on the packet's number.
        let loss_draw = self.random.random::<f64>();
        let reorder_draw = self.random.random::<f64>();
        if loss_draw < self.shape.loss {
            self.counts.lost_packets += 1;
            return None;
        }
        let Some(sent) = self.enqueue(length, now) else {
            self.counts.queue_full_packets += 1;
            return None;
        };
        self.counts.packets += 1;
        self.counts.bytes += length as u64;
        if reorder_draw < self.shape.reorder {
            self.counts.reordered_packets += 1;
            return Some(sent + delay + Nanos(delay.0 / HOLD_BACK_DIVISOR).max(MIN_HOLD_BACK));
        }
        Some(sent + delay)
    }

    /// Counts of the packets sent so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns when the packet's last byte has been sent, after all packets that are ahead in the queue; `None` if the
    /// queue is full.
    fn enqueue(&mut self, length: usize, now: Nanos) -> Option<Nanos> {
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
            assert_eq!(link.send_packet(1500, DELAY, at), Some(at + DELAY));
        }
        assert_eq!(link.counts(), Counts { packets: 2, bytes: 3000, ..Counts::default() });
    }

    #[test]
    fn packets_take_turns_at_the_rate_and_the_queue_is_bounded() {
        // At this rate, 1000 bytes take 1 ms.
        let shape = LinkShape { bytes_per_s: Some(1e6), queue: Nanos::from_millis(3), ..LinkShape::default() };
        let mut link = link(shape);
        let sent: Vec<_> = (0..6).map(|_| link.send_packet(1000, DELAY, Nanos::ZERO)).collect();
        let after = |ms| Some(Nanos::from_millis(ms) + DELAY);
        // The fourth packet waits 3 ms, which is the maximum; the fifth would wait 4 ms.
        assert_eq!(sent, [after(1), after(2), after(3), after(4), None, None]);
        assert_eq!(link.counts().queue_full_packets, 2);
        let later = Nanos::from_millis(10);
        assert_eq!(
            link.send_packet(500, Nanos::ZERO, later),
            Some(later + Nanos::from_micros(500)),
            "an idle link has no queue"
        );
    }

    #[test]
    fn a_packet_longer_than_the_queue_still_passes_an_idle_link() {
        let mut link = link(LinkShape { bytes_per_s: Some(1000.0), queue: Nanos::ZERO, ..LinkShape::default() });
        assert_eq!(link.send_packet(1500, Nanos::ZERO, Nanos::ZERO), Some(Nanos::from_millis(1500)));
        assert_eq!(link.send_packet(1, Nanos::ZERO, Nanos::ZERO), None);
    }

    #[test]
    fn the_shares_of_lost_and_overtaken_packets_are_as_configured() {
        let mut link = link(LinkShape { loss: 0.02, reorder: 0.1, ..LinkShape::default() });
        let passed: Vec<Nanos> = (0..100_000).filter_map(|_| link.send_packet(100, DELAY, Nanos::ZERO)).collect();
        let counts = link.counts();
        assert_eq!(passed.len() as u64, counts.packets);
        // The tolerance is five standard deviations: the expected counts are 2000 ± 44 and 9800 ± 94.
        assert!(counts.lost_packets.abs_diff(2_000) < 220, "{counts:?}");
        assert!(counts.reordered_packets.abs_diff(9_800) < 470, "{counts:?}");
        let late = passed.iter().filter(|at| **at == DELAY + Nanos::from_millis(10)).count();
        assert_eq!(late as u64, counts.reordered_packets);
        let all = Link::new(LinkShape { loss: 1.0, ..LinkShape::default() }, 1, 0).send_packet(1, DELAY, Nanos::ZERO);
        assert_eq!(all, None);
    }

    #[test]
    fn losses_depend_on_the_seed_and_the_links_number() {
        let shape = LinkShape { loss: 0.5, ..LinkShape::default() };
        let losses = |seed, number| {
            let mut link = Link::new(shape, seed, number);
            (0..64).map(|_| link.send_packet(1, DELAY, Nanos::ZERO).is_some()).collect::<Vec<bool>>()
        };
        assert_eq!(losses(7, 3), losses(7, 3));
        assert_ne!(losses(7, 3), losses(7, 4));
        assert_ne!(losses(7, 3), losses(8, 3));
    }
}
