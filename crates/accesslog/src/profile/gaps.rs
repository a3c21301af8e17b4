//! Times between consecutive requests of a log, called gaps.
//!
//! Lines are slightly out of order. A request that is earlier than the preceding line contributes no gap. A single
//! timestamp far away from its neighbours would make two gaps wrong, so it is ignored. Therefore, each timestamp is
//! checked only when the next timestamp is known.

use super::NS_PER_S;
use super::histogram::Histogram;

/// Maximum difference between neighbouring timestamps, in nanoseconds. A timestamp that differs by more from both
/// neighbours may be wrong.
const LEAP_NS: i64 = 60 * NS_PER_S;
/// Number of consecutive timestamps far behind the last valid timestamp, after which the clock is assumed to have been
/// set back.
const SET_BACK: u32 = 16;

/// The distribution of times between requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    gaps_ns: Histogram,
    last_ns: Option<i64>,
    /// The timestamp after `last_ns`, which is not checked yet.
    pending_ns: Option<i64>,
    /// Number of consecutive timestamps that are far behind `last_ns`.
    behind: u32,
}

impl Gaps {
    /// Adds the timestamp of the next line.
    #[inline]
    pub fn add(&mut self, time_ns: i64) {
        let Some(pending_ns) = self.pending_ns.replace(time_ns) else { return };
        let last_ns = self.last_ns.unwrap_or(pending_ns);
        let is_ahead = pending_ns > last_ns.saturating_add(LEAP_NS) || self.last_ns.is_none();
        if !(is_ahead && time_ns < pending_ns.saturating_sub(LEAP_NS)) {
            self.accept(pending_ns);
        }
    }

    /// The distribution of all gaps.
    pub fn finish(mut self) -> Histogram {
        if let Some(pending_ns) = self.pending_ns.take() {
            self.accept(pending_ns);
        }
        self.gaps_ns
    }

    fn accept(&mut self, time_ns: i64) {
        let Some(last_ns) = self.last_ns else {
            self.last_ns = Some(time_ns);
            return;
        };
        if time_ns < last_ns.saturating_sub(LEAP_NS) {
            self.behind += 1;
            if self.behind < SET_BACK {
                return;
            }
        }
        self.behind = 0;
        self.last_ns = Some(time_ns);
        if time_ns >= last_ns {
            self.gaps_ns.add(time_ns.abs_diff(last_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of gaps between requests at these seconds, and the longest gap in seconds.
    fn found(seconds: &[i64]) -> (u64, f64) {
        let mut gaps = Gaps::default();
        seconds.iter().for_each(|second| gaps.add(second * NS_PER_S));
        let times = gaps.finish().to_times(NS_PER_S as f64);
        (times.samples, times.max)
    }

    #[test]
    fn a_stamp_far_from_its_neighbours_makes_no_times() {
        assert_eq!(found(&[]), (0, 0.0));
        assert_eq!(found(&[5_000]), (0, 0.0));
        assert_eq!(found(&[5_000, 5_001, 5_003]), (2, 2.0));
        assert_eq!(found(&[5_000, 5_001, 2_000, 5_002, 5_003]), (3, 1.0), "an early stamp must be ignored");
        assert_eq!(found(&[5_000, 5_001, 2_000, 2_500, 5_002, 5_003]), (3, 1.0), "two early stamps must be ignored");
        assert_eq!(found(&[5_000, 5_001, 2_000_000, 5_002, 5_003]), (3, 1.0), "a stamp far ahead must be ignored");
        assert_eq!(found(&[2_000_000, 5_000, 5_001]), (1, 1.0), "a first stamp far ahead must be ignored");
        assert_eq!(found(&[5_000, 5_002, 5_001, 5_003]), (2, 2.0), "a line slightly out of order must make no gap");
        assert_eq!(found(&[5_000, 9_000, 9_001]), (2, 4_000.0), "a pause must count as a gap");
        let set_back: Vec<i64> = (0..100).chain(-3_600..-3_500).collect();
        assert_eq!(found(&set_back).0, 99 + 99 - 15);
    }
}
