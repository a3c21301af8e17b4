//! Chooses times within a second for requests whose timestamps are whole seconds.
//!
//! Other lines of the same logs may have finer timestamps, because they are from another server or in another format.
//! If there are enough fine timestamps, requests are spread like them. So requests are bursty if the fine timestamps
//! are bursty, and a Poisson process if the fine timestamps are one. The gaps between the fine timestamps of the last
//! minute are placed into the second in their order, and stretched to fill the second. The number of the second
//! determines the first gap that is used, so a replay is reproducible. With fewer than [`MIN_FINE_STAMPS`] fine
//! timestamps, the requests of a second are spread at equal distances, in the order of the log.
//!
//! Memory: 32 KiB.

use super::SECOND_NS;
use crate::profile::mix;
use std::collections::VecDeque;

/// Minimum number of fine timestamps (with fractions of a second) for spreading requests like the fine timestamps.
pub const MIN_FINE_STAMPS: usize = 16;
/// Maximum number of fine timestamps (with fractions of a second) that are stored.
const MAX_FINE: usize = 4_096;
/// Age at which fine timestamps are removed, in nanoseconds of the log's time.
const FINE_MEMORY_NS: i64 = 60 * SECOND_NS;

/// Spreads requests within a second like the recent timestamps with fractions of a second.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    /// The recent timestamps with fractions of a second, in nanoseconds since 1970, in ascending order.
    recent: VecDeque<i64>,
}

impl Spread {
    /// Stores a timestamp with a fraction of a second. A timestamp that is earlier than the last stored one is ignored.
    pub fn record_stamp(&mut self, time_ns: i64) {
        if self.recent.back().is_some_and(|last| *last > time_ns) {
            return;
        }
        if self.recent.len() >= MAX_FINE {
            self.recent.pop_front();
        }
        self.recent.push_back(time_ns);
    }

    /// Chooses the times of `count` requests, in nanoseconds after the beginning of the second.
    pub fn request_times(&mut self, second_ns: i64, count: usize) -> Vec<i64> {
        while self.recent.front().is_some_and(|first| *first < second_ns.saturating_sub(FINE_MEMORY_NS)) {
            self.recent.pop_front();
        }
        self.times_like_fine_stamps(second_ns, count).unwrap_or_else(|| equally(count))
    }

    fn times_like_fine_stamps(&self, second_ns: i64, count: usize) -> Option<Vec<i64>> {
        if self.recent.len() < MIN_FINE_STAMPS {
            return None;
        }
        let gaps = || self.recent.iter().zip(self.recent.iter().skip(1)).map(|(from, to)| to.saturating_sub(*from));
        let first = mix(second_ns.unsigned_abs()) % (self.recent.len() as u64 - 1);
        let mut sum_ns = 0.0;
        let sums: Vec<f64> = gaps()
            .cycle()
            .skip(usize::try_from(first).ok()?)
            .take(count + 1)
            .map(|gap| {
                sum_ns += gap as f64;
                sum_ns
            })
            .collect();
        let place = |sum: &f64| ((sum / sum_ns * SECOND_NS as f64) as i64).min(SECOND_NS - 1);
        (sum_ns > 0.0).then(|| sums.iter().take(count).map(place).collect())
    }
}

/// The midpoints of `count` equal parts of a second, in nanoseconds.
fn equally(count: usize) -> Vec<i64> {
    let parts = i64::try_from(count).unwrap_or(i64::MAX).max(1);
    (0..parts)
        .take(count)
        .map(|part| ((2 * i128::from(part) + 1) * i128::from(SECOND_NS) / (2 * i128::from(parts))) as i64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    const MS: i64 = 1_000_000;

    fn learnt(times: impl IntoIterator<Item = i64>) -> Spread {
        let mut spread = Spread::default();
        times.into_iter().for_each(|time| spread.record_stamp(time));
        spread
    }

    #[test]
    fn without_fine_ones_distances_are_equal() {
        assert_eq!(Spread::default().request_times(7 * SECOND_NS, 2), [250 * MS, 750 * MS]);
        assert_eq!(Spread::default().request_times(7 * SECOND_NS, 0), [0; 0]);
        let mut few = learnt((0..MIN_FINE_STAMPS as i64 - 1).map(|i| i * MS));
        assert_eq!(few.request_times(SECOND_NS, 1), [500 * MS]);
        let mut old = learnt((0..1_000).map(|i| i * MS));
        assert_eq!(old.request_times(100 * SECOND_NS, 1), [500 * MS], "old stamps must not be used");
        let mut same = learnt([5; 100]);
        assert_eq!(same.request_times(SECOND_NS, 1), [500 * MS], "equal stamps have no gaps");
    }

    #[test]
    fn bunches_stay_bunches() {
        // The fine timestamps have a burst of ten requests within ten milliseconds, every 100 ms.
        let mut spread = learnt((0..200).map(|i| (i / 10) * 100 * MS + (i % 10) * MS));
        let request_times = spread.request_times(3 * SECOND_NS, 99);
        assert!(
            request_times.is_sorted() && request_times.iter().all(|place| (0..SECOND_NS).contains(place)),
            "{request_times:?}"
        );
        let gaps: Vec<i64> = request_times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (short, long): (Vec<i64>, Vec<i64>) = gaps.iter().partition(|gap| **gap < 20 * MS);
        assert!((8..=10).contains(&long.len()) && short.len() >= 88, "{gaps:?}");
        assert!(long.iter().all(|gap| (80 * MS..110 * MS).contains(gap)), "{long:?}");
    }

    #[test]
    fn of_poisson_arrivals_they_are_poisson_arrivals() {
        let mut random = Pcg64::seed_from_u64(1);
        let mut at = 0.0;
        let times: Vec<i64> = (0..4_000)
            .map(|_| {
                at -= (1.0 - random.random::<f64>()).ln() * 10e6;
                at as i64
            })
            .collect();
        let mut spread = learnt(times);
        let (mut first_tenth, mut all, mut squares) = (0, 0, 0.0);
        for second in 41..100 {
            let request_times = spread.request_times(second * SECOND_NS, 50);
            first_tenth += request_times.iter().filter(|place| **place < 100 * MS).count();
            all += request_times.len();
            squares +=
                request_times.windows(2).map(|pair| ((pair[1] - pair[0]) as f64 / 1e9 * 51.0).powi(2)).sum::<f64>()
                    / 49.0;
        }
        let share = first_tenth as f64 / all as f64;
        assert!((share - 0.1).abs() < 0.02, "{share}");
        // For a Poisson process, the mean of the squared gaps is twice the square of the mean gap. The sample is
        // finite, so the tolerance is wide.
        let moment = squares / 59.0;
        assert!((1.7..2.2).contains(&moment), "{moment}");
    }

    #[test]
    fn the_same_logs_are_replayed_alike() {
        let spread = || learnt((0..500).map(|i| i * i * 1_000));
        assert_eq!(spread().request_times(SECOND_NS, 20), spread().request_times(SECOND_NS, 20));
        assert_ne!(spread().request_times(SECOND_NS, 20), spread().request_times(2 * SECOND_NS, 20));
    }
}
