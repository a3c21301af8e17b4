//! Percentiles from a histogram of times. Each octave, a doubling of the time, has four buckets. Bucket 4o + q counts
//! times from 256 ns · 2ᵒ · (1 + q/4) to the start of the next bucket. The first bucket also counts all shorter times,
//! the last bucket all longer times.

use super::layout::BUCKETS;

/// The nominal start of the first bucket, in nanoseconds.
const FIRST_START_NS: f64 = 256.0;

/// The start of a bucket, in nanoseconds. The index [`BUCKETS`] yields the nominal end of the last bucket.
pub fn start_ns(bucket: usize) -> f64 {
    let (octave, quarter) = (bucket / 4, bucket % 4);
    FIRST_START_NS * 2_f64.powi(octave as i32) * (1.0 + quarter as f64 / 4.0)
}

/// Index of the bucket that counts a time of `ns` nanoseconds.
pub(super) fn bucket_of(ns: u64) -> usize {
    match ns.checked_ilog2() {
        // The two bits after the leading bit select one of the octave's four buckets. 36 = 4 · 8 + 4: the first octave
        // starts at 2⁸ ns, and the shifted value includes the leading bit, which counts 4.
        Some(octave @ 8..) => (4 * octave as usize + (ns >> (octave - 2)) as usize - 36).min(BUCKETS - 1),
        _ => 0,
    }
}

/// Returns the time that a `share` of all counted times does not exceed, in nanoseconds. The time is interpolated
/// within its bucket as if the logarithms of times were uniform in the bucket. Returns `None` if all counts are zero.
pub fn percentile_ns(counts: &[u64; BUCKETS], share: f64) -> Option<f64> {
    // The counts are added as floating-point numbers. They come from a file, and a sum of integers could overflow.
    let total: f64 = counts.iter().map(|&count| count as f64).sum();
    let rank = share * total;
    let mut below = 0.0;
    for (bucket, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = count as f64;
        if below + count >= rank {
            return Some(interpolate(bucket, ((rank - below) / count).clamp(0.0, 1.0)));
        }
        below += count;
    }
    None
}

/// The time at a position within a bucket, in nanoseconds. The position is from 0 to 1.
fn interpolate(bucket: usize, position: f64) -> f64 {
    let (start, end) = (start_ns(bucket), start_ns(bucket + 1));
    match bucket {
        // This bucket starts at zero, which has no logarithm, so the interpolation is linear.
        0 => end * position,
        _ => start * (end / start).powf(position),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(counts: &[(usize, u64)]) -> [u64; BUCKETS] {
        let mut all = [0; BUCKETS];
        counts.iter().for_each(|&(bucket, count)| all[bucket] = count);
        all
    }

    #[test]
    fn buckets_are_quarters_of_octaves() {
        assert_eq!([0, 1, 3, 4, 6].map(start_ns), [256.0, 320.0, 448.0, 512.0, 768.0]);
        assert_eq!(start_ns(BUCKETS), 256.0 * f64::from(1 << 28));
    }

    #[test]
    fn each_time_is_in_its_bucket() {
        for bucket in 1..BUCKETS {
            let start = start_ns(bucket) as u64;
            assert_eq!((bucket_of(start - 1), bucket_of(start)), (bucket - 1, bucket));
        }
        assert_eq!([0, 1, 255, 256, u64::MAX].map(bucket_of), [0, 0, 0, 0, BUCKETS - 1]);
    }

    #[test]
    fn percentiles_lie_in_the_bucket_of_their_rank() {
        let counts = of(&[(20, 90), (40, 9), (60, 1)]);
        let at = |share| percentile_ns(&counts, share).unwrap();
        assert!(at(0.5) > start_ns(20) && at(0.5) < start_ns(21));
        assert_eq!([at(0.9), at(0.99), at(1.0)], [start_ns(21), start_ns(41), start_ns(61)]);
        assert!((at(0.945) - (start_ns(40) * start_ns(41)).sqrt()).abs() < 1.0, "{}", at(0.945));
        assert_eq!(percentile_ns(&of(&[]), 0.5), None);
    }

    #[test]
    fn what_is_shorter_or_longer_than_all_buckets_is_in_the_first_or_last() {
        assert_eq!(percentile_ns(&of(&[(0, 10)]), 0.5), Some(160.0));
        assert_eq!(percentile_ns(&of(&[(BUCKETS - 1, 2)]), 1.0), Some(start_ns(BUCKETS)));
    }

    proptest! {
        #[test]
        fn percentiles_rise_and_are_finite_whatever_the_counts_are(
            counts in proptest::collection::vec((0..BUCKETS, prop_oneof![0_u64..5, any::<u64>()]), 1..20),
        ) {
            let counts = of(&counts);
            let all = [0.0, 0.5, 0.9, 0.99, 1.0].map(|share| percentile_ns(&counts, share));
            if counts.iter().any(|&count| count > 0) {
                prop_assert!(all.iter().all(|time| time.is_some_and(|time| time.is_finite() && time >= 0.0)), "{:?}", all);
                prop_assert!(all.windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", all);
            } else {
                prop_assert_eq!(all, [None; 5]);
            }
        }

        /// Tests with times at evenly spaced quantiles of an exponential distribution. Each percentile from the buckets
        /// must be within 12 % of the percentile of the times themselves.
        #[test]
        fn percentiles_of_known_times_are_within_a_quarter_of_an_octave(mean_us in 5.0..50_000.0) {
            let mut counts = [0; BUCKETS];
            let times: Vec<f64> = (0..5000).map(|i| -1000.0 * mean_us * (1.0 - (f64::from(i) + 0.5) / 5000.0_f64).ln()).collect();
            for &time in &times {
                let bucket = (1..BUCKETS).rev().find(|&bucket| time >= start_ns(bucket)).unwrap_or(0);
                counts[bucket] += 1;
            }
            for share in [0.5, 0.9, 0.99] {
                let (found, truth) = (percentile_ns(&counts, share).unwrap(), times[(share * 5000.0) as usize]);
                prop_assert!((found / truth - 1.0).abs() < 0.12, "{share}: {found} ns, {truth} ns");
            }
        }
    }
}
