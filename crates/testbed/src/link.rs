//! A link: one direction of the connection between a client and the router. It loses some packets, queues packets if
//! its rate is limited, and delays all of them. It delays some packets longer, so that later ones overtake them.
//!
//! Whether the n-th packet is lost or reordered depends only on the seed and n, so a run can be repeated. The link does
//! not read a clock: its caller passes the time.

use brimful_core::Nanos;
use brimful_core::testbed::Link as Counts;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// A reordered packet gets its delay divided by this number as an additional delay, but at least [`MIN_HOLD_BACK`].
const HOLD_BACK_DIVISOR: u64 = 4;
/// Minimum additional delay of a reordered packet.
const MIN_HOLD_BACK: Nanos = Nanos::from_millis(1);

/// Settings of a link: loss, reordering, and a rate limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSettings {
    /// Share of the packets that are lost.
    pub loss: f64,
    /// Share of the packets that are reordered. Their delay is longer by a quarter, but at least by 1 ms.
    pub reorder: f64,
    /// Rate limit in bytes per second; `None` without a limit. It must be at least 1,000: at lower rates, a large
    /// packet would be delayed longer than the router's timer wheel permits.
    pub bytes_per_s: Option<f64>,
    /// Maximum time for which a packet may wait in the queue of the rate limit, up to 2 s. A packet that would wait
    /// longer is dropped.
    pub queue: Nanos,
}

/// A link, with the counts of its packets.
#[derive(Debug)]
pub struct Link {
    settings: LinkSettings,
    random: Pcg64Mcg,
    /// Time at which the last byte of the last queued packet leaves the queue.
    free_at: Nanos,
    counts: Counts,
}

impl Link {
    /// Creates a link. Each link number has its own random stream.
    pub fn new(settings: LinkSettings, seed: u64, number: u64) -> Link {
        // Seeds that differ only in their low bits yield similar random streams. The multiplication spreads the link's
        // number over all bits.
        let random = Pcg64Mcg::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Link { settings, random, free_at: Nanos::ZERO, counts: Counts::default() }
    }

    /// Sends a packet of `length` bytes over the link, on which it needs the time `delay`. Returns the time of its
    /// arrival; `None` if the packet is lost or the queue is full.
    pub fn send_packet(&mut self, length: usize, delay: Nanos, now: Nanos) -> Option<Nanos> {
        // Draws two numbers for every packet, even if only one is needed, so that the draws depend only on the packet's
        // number.
        let loss_draw = self.random.random::<f64>();
        let reorder_draw = self.random.random::<f64>();
        if loss_draw < self.settings.loss {
            self.counts.lost_packets += 1;
            return None;
        }
        let Some(sent) = self.enqueue(length, now) else {
            self.counts.queue_full_packets += 1;
            return None;
        };
        self.counts.packets += 1;
        self.counts.bytes += length as u64;
        if reorder_draw < self.settings.reorder {
            self.counts.reordered_packets += 1;
            return Some(sent + delay + Nanos(delay.0 / HOLD_BACK_DIVISOR).max(MIN_HOLD_BACK));
        }
        Some(sent + delay)
    }

    /// Counts of the packets so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Adds a packet to the queue of the rate limit. Returns the time at which its last byte leaves the queue; `None`
    /// if the queue is full.
    fn enqueue(&mut self, length: usize, now: Nanos) -> Option<Nanos> {
        let Some(bytes_per_s) = self.settings.bytes_per_s else { return Some(now) };
        let begins = self.free_at.max(now);
        if begins - now > self.settings.queue {
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

    fn link(settings: LinkSettings) -> Link {
        Link::new(settings, 1, 0)
    }

    #[test]
    fn a_perfect_link_only_delays() {
        let mut link = link(LinkSettings::default());
        for at in [Nanos::ZERO, Nanos::from_secs(5)] {
            assert_eq!(link.send_packet(1500, DELAY, at), Some(at + DELAY));
        }
        assert_eq!(link.counts(), Counts { packets: 2, bytes: 3000, ..Counts::default() });
    }

    #[test]
    fn packets_take_turns_at_the_rate_and_the_queue_is_bounded() {
        // At the rate limit, a packet of 1,000 bytes takes 1 ms.
        let settings = LinkSettings { bytes_per_s: Some(1e6), queue: Nanos::from_millis(3), ..LinkSettings::default() };
        let mut link = link(settings);
        let sent: Vec<_> = (0..6).map(|_| link.send_packet(1000, DELAY, Nanos::ZERO)).collect();
        let after = |ms| Some(Nanos::from_millis(ms) + DELAY);
        // The fourth packet waits 3 ms, which is the maximum. The fifth and the sixth would wait longer, so they are
        // dropped.
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
        let mut link = link(LinkSettings { bytes_per_s: Some(1000.0), queue: Nanos::ZERO, ..LinkSettings::default() });
        assert_eq!(link.send_packet(1500, Nanos::ZERO, Nanos::ZERO), Some(Nanos::from_millis(1500)));
        assert_eq!(link.send_packet(1, Nanos::ZERO, Nanos::ZERO), None);
    }

    #[test]
    fn the_shares_of_lost_and_overtaken_packets_are_as_configured() {
        let mut link = link(LinkSettings { loss: 0.02, reorder: 0.1, ..LinkSettings::default() });
        let passed: Vec<Nanos> = (0..100_000).filter_map(|_| link.send_packet(100, DELAY, Nanos::ZERO)).collect();
        let counts = link.counts();
        assert_eq!(passed.len() as u64, counts.packets);
        // The tolerances are five standard deviations. Expected counts and standard deviations: 2000 ± 44 lost packets,
        // and 9800 ± 94 reordered ones.
        assert!(counts.lost_packets.abs_diff(2_000) < 220, "{counts:?}");
        assert!(counts.reordered_packets.abs_diff(9_800) < 470, "{counts:?}");
        let late = passed.iter().filter(|at| **at == DELAY + Nanos::from_millis(10)).count();
        assert_eq!(late as u64, counts.reordered_packets);
        let all =
            Link::new(LinkSettings { loss: 1.0, ..LinkSettings::default() }, 1, 0).send_packet(1, DELAY, Nanos::ZERO);
        assert_eq!(all, None);
    }

    #[test]
    fn losses_depend_on_the_seed_and_the_links_number() {
        let settings = LinkSettings { loss: 0.5, ..LinkSettings::default() };
        let losses = |seed, number| {
            let mut link = Link::new(settings, seed, number);
            (0..64).map(|_| link.send_packet(1, DELAY, Nanos::ZERO).is_some()).collect::<Vec<bool>>()
        };
        assert_eq!(losses(7, 3), losses(7, 3));
        assert_ne!(losses(7, 3), losses(7, 4));
        assert_ne!(losses(7, 3), losses(8, 3));
    }
}
