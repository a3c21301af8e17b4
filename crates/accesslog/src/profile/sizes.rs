//! Bytes of answers: how often each size came, their distribution, and the index of its tail.
//!
//! Sizes are counted exactly while there are at most [`MOST_DISTINCT`] distinct ones, and from then on in steps of 1/64
//! (`steps`). The index of the tail is Hill's (1975): with x₁ … x_k the sizes above a threshold s, α = k / Σ
//! ln(x_i/s), and α(1 ± 1.96/√k) is its 95 % interval. The threshold is the one that brings the distribution above it
//! closest to a power law, by the largest difference of the two (Clauset, Shalizi & Newman, *Power-law distributions in
//! empirical data*, 2009, §3.3); where that difference is large all the same, there is no such tail.

use super::steps::{STEPS, step};
use brimful_core::profile::{Sizes, Tail};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// With more distinct sizes they are counted in steps. A hash table of 2 MiB holds as many.
pub const MOST_DISTINCT: usize = 57_344;

/// With fewer answers above the threshold the interval is wider than ±20 %.
const FEWEST_IN_TAIL: u64 = 100;
/// One large file that is asked for a hundred times is no tail.
const FEWEST_SIZES_IN_TAIL: usize = 20;
/// Thresholds that are tried.
const THRESHOLDS: usize = 60;
/// A largest difference between the distribution and the power law from which on it is none.
const FAR_FROM_POWER: f64 = 0.1;
/// Points of the complementary distribution.
const POINTS: i32 = 60;

const PERCENTILES: [(&str, f64); 5] = [("50", 0.5), ("90", 0.9), ("95", 0.95), ("99", 0.99), ("99.9", 0.999)];

/// Answers by their bytes.
#[derive(Clone, Debug, Default)]
pub struct SizeCounts {
    /// By size.
    exact: HashMap<u64, Sum, RandomState>,
    /// By step; empty as long as sizes are few.
    steps: Vec<Sum>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    bytes: f64,
    service_ns: f64,
    timed: u64,
}

/// Answers of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SizeCount {
    /// The size; the mean of a step.
    pub bytes: u64,
    /// How many.
    pub count: u64,
    /// Their bytes together.
    pub sum_bytes: f64,
    /// Time that the server took for them together, in nanoseconds.
    pub service_ns: f64,
    /// Of how many of them that is.
    pub timed: u64,
}

impl SizeCounts {
    /// An answer of so many bytes, and how long the server took for it, where that is known.
    pub fn add(&mut self, bytes: u64, service_ns: Option<u64>) {
        let one = Sum {
            count: 1,
            bytes: bytes as f64,
            service_ns: service_ns.unwrap_or(0) as f64,
            timed: u64::from(service_ns.is_some()),
        };
        if !self.steps.is_empty() {
            self.add_to_step(bytes, one);
        } else if let Some(sum) = self.exact.get_mut(&bytes) {
            sum.add(one);
        } else if self.exact.len() < MOST_DISTINCT {
            self.exact.insert(bytes, one);
        } else {
            self.steps = vec![Sum::default(); STEPS];
            for (bytes, sum) in std::mem::take(&mut self.exact) {
                self.add_to_step(bytes, sum);
            }
            self.add_to_step(bytes, one);
        }
    }

    /// By size, the smallest first.
    pub fn sorted(&self) -> Vec<SizeCount> {
        let show = |bytes, sum: &Sum| SizeCount {
            bytes,
            count: sum.count,
            sum_bytes: sum.bytes,
            service_ns: sum.service_ns,
            timed: sum.timed,
        };
        let in_steps = self.steps.iter().filter(|sum| sum.count > 0);
        let mut all: Vec<SizeCount> = self.exact.iter().map(|(bytes, sum)| show(*bytes, sum)).collect();
        all.sort_unstable_by_key(|size| size.bytes);
        all.extend(in_steps.map(|sum| show((sum.bytes / sum.count as f64).round() as u64, sum)));
        all
    }

    /// Whether each size is counted on its own.
    pub fn is_exact(&self) -> bool {
        self.steps.is_empty()
    }

    fn add_to_step(&mut self, bytes: u64, sum: Sum) {
        if let Some(all) = self.steps.get_mut(step(bytes)) {
            all.add(sum);
        }
    }
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.service_ns += other.service_ns;
        self.timed += other.timed;
    }
}

/// What a profile says of them; `max` is the largest, which steps do not have exactly.
pub(super) fn describe(counts: &SizeCounts, max: u64) -> Sizes {
    let sorted = counts.sorted();
    let responses: u64 = sorted.iter().map(|size| size.count).sum();
    let bytes: f64 = sorted.iter().map(|size| size.sum_bytes).sum();
    if responses == 0 {
        return Sizes::default();
    }
    let percentiles = PERCENTILES.map(|(name, share)| (name.to_owned(), percentile(&sorted, responses, share)));
    Sizes {
        responses,
        mean: bytes / responses as f64,
        percentiles: percentiles.into(),
        max,
        complementary: complementary(&sorted, responses),
        tail: tail(&sorted),
    }
}

/// The smallest size that this share of the answers are not above.
fn percentile(sorted: &[SizeCount], responses: u64, share: f64) -> f64 {
    let rank = ((share * responses as f64).ceil() as u64).clamp(1, responses);
    let mut below = 0;
    let found = sorted.iter().find(|size| {
        below += size.count;
        below >= rank
    });
    found.or(sorted.last()).map_or(0.0, |size| size.bytes as f64)
}

/// The share of answers with more bytes, at sizes that lie evenly on a logarithmic axis; without those that have none.
fn complementary(sorted: &[SizeCount], responses: u64) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let (least, most) = (first.bytes.max(1) as f64, last.bytes.max(1) as f64);
    let at = |i: i32| (least * (most / least).powf(f64::from(i) / f64::from(POINTS - 1))).round();
    let mut sizes: Vec<f64> = (0..POINTS).map(at).collect();
    sizes.dedup();
    let (mut rest, mut not_above) = (sorted.iter().peekable(), 0);
    let points = sizes.into_iter().map(|bytes| {
        while let Some(size) = rest.next_if(|size| size.bytes as f64 <= bytes) {
            not_above += size.count;
        }
        (bytes, (responses - not_above) as f64 / responses as f64)
    });
    points.filter(|(_, share)| *share > 0.0).collect()
}

/// The tail above the threshold that fits best; `None` where there are too few answers or no power law.
fn tail(sorted: &[SizeCount]) -> Option<Tail> {
    let found = thresholds(sorted).into_iter().filter_map(|at| Candidate::new(sorted, at));
    let best = found.min_by(|a, b| a.difference.total_cmp(&b.difference))?;
    if best.difference > FAR_FROM_POWER {
        return None;
    }
    let half = 1.96 / (best.answers as f64).sqrt();
    Some(Tail {
        index: best.index,
        interval95: [best.index * (1.0 - half), best.index * (1.0 + half)],
        from_bytes: best.threshold,
        responses: best.answers,
    })
}

/// Indices into the sizes such that the answers above them lie evenly on a logarithmic axis, from all to the fewest.
fn thresholds(sorted: &[SizeCount]) -> Vec<usize> {
    let all: u64 = sorted.iter().map(|size| size.count).sum();
    let ratio = (all as f64 / FEWEST_IN_TAIL as f64).max(1.0).powf(1.0 / THRESHOLDS as f64);
    let mut next = all as f64;
    let (mut above, mut chosen) = (all, Vec::new());
    for (index, size) in sorted.iter().enumerate() {
        above -= size.count;
        if above as f64 <= next && size.bytes > 0 && above >= FEWEST_IN_TAIL {
            chosen.push(index);
            while next >= above as f64 {
                next /= ratio.max(1.001);
            }
        }
    }
    chosen
}

struct Candidate {
    threshold: u64,
    answers: u64,
    index: f64,
    /// The largest difference between the share of answers above a size and what the power law says.
    difference: f64,
}

impl Candidate {
    /// The sizes after the one with this index, if they are enough.
    fn new(sorted: &[SizeCount], at: usize) -> Option<Candidate> {
        let threshold = sorted.get(at)?.bytes;
        let tail = sorted.get(at + 1..)?;
        if tail.len() < FEWEST_SIZES_IN_TAIL {
            return None;
        }
        let times = |size: &SizeCount| size.bytes as f64 / threshold as f64;
        let answers: u64 = tail.iter().map(|size| size.count).sum();
        let logarithms: f64 = tail.iter().map(|size| times(size).ln() * size.count as f64).sum();
        let index = answers as f64 / logarithms;
        let (mut above, mut difference) = (answers, 0f64);
        for size in tail {
            let power = times(size).powf(-index);
            let before = above as f64 / answers as f64;
            above -= size.count;
            let after = above as f64 / answers as f64;
            difference = difference.max((before - power).abs()).max((after - power).abs());
        }
        index.is_finite().then_some(Candidate { threshold, answers, index, difference })
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::bounds;
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Distribution, Exp, LogNormal, Pareto};
    use rand_pcg::Pcg64;

    fn counts(sizes: &[u64]) -> SizeCounts {
        let mut counts = SizeCounts::default();
        sizes.iter().for_each(|bytes| counts.add(*bytes, None));
        counts
    }

    fn described(sizes: &[u64]) -> Sizes {
        describe(&counts(sizes), sizes.iter().copied().max().unwrap_or(0))
    }

    #[test]
    fn every_size_is_counted_with_its_times() {
        let mut counts = SizeCounts::default();
        counts.add(500, Some(3_000));
        counts.add(20, None);
        counts.add(500, Some(4_000));
        counts.add(500, None);
        let sizes: Vec<_> =
            counts.sorted().iter().map(|s| (s.bytes, s.count, s.sum_bytes, s.service_ns, s.timed)).collect();
        assert_eq!(sizes, [(20, 1, 20.0, 0.0, 0), (500, 3, 1500.0, 7_000.0, 2)]);
    }

    #[test]
    fn of_many_distinct_sizes_steps_are_counted_and_nothing_is_lost() {
        let mut rng = Pcg64::seed_from_u64(1);
        let sizes: Vec<u64> = (0..300_000).map(|_| rng.random_range(1..10_000_000)).collect();
        let counts = counts(&sizes);
        let sorted = counts.sorted();
        assert!(!counts.is_exact() && sorted.len() <= STEPS && counts.exact.capacity() == 0);
        assert!(sorted.is_sorted_by(|a, b| a.bytes < b.bytes));
        assert_eq!(sorted.iter().map(|s| s.count).sum::<u64>(), 300_000);
        let total = sizes.iter().sum::<u64>() as f64;
        assert!((sorted.iter().map(|s| s.sum_bytes).sum::<f64>() / total - 1.0).abs() < 1e-12);
        let described = describe(&counts, 9_999_999);
        for (name, share) in PERCENTILES {
            let off = described.percentiles[name] / (share * 1e7) - 1.0;
            assert!(off.abs() < 0.02, "{name} %: {}", described.percentiles[name]);
        }
        assert_eq!(bounds(step(1 << 40)).0, 1 << 40);
    }

    #[test]
    fn percentiles_and_the_complementary_distribution_are_those_of_the_sorted_sizes() {
        let mut rng = Pcg64::seed_from_u64(2);
        let mut sizes: Vec<u64> = (0..5_000).map(|_| rng.random_range(1..60_000)).collect();
        let described = described(&sizes);
        sizes.sort_unstable();
        for (name, share) in PERCENTILES {
            assert_eq!(described.percentiles[name], sizes[(share * 5_000.0).ceil() as usize - 1] as f64, "{name} %");
        }
        assert!((40..=60).contains(&described.complementary.len()));
        for (bytes, share) in described.complementary {
            let above = sizes.iter().filter(|size| **size as f64 > bytes).count();
            assert_eq!(share, above as f64 / 5_000.0, "{bytes} bytes");
        }
    }

    #[test]
    fn few_sizes_are_no_distribution() {
        assert_eq!(described(&[]), Sizes::default());
        let same = described(&[7; 1_000]);
        assert_eq!((same.mean, same.percentiles["99.9"], same.max, same.tail), (7.0, 7.0, 7, None));
        assert_eq!(same.complementary, []);
        assert_eq!(described(&[1, u64::MAX, u64::MAX]).max, u64::MAX);
    }

    #[test]
    fn the_index_of_a_tail_is_found() {
        for (seed, index) in [(1, 1.2), (2, 1.2), (3, 1.5), (4, 2.5)] {
            let mut rng = Pcg64::seed_from_u64(seed);
            let (body, heavy) = (LogNormal::<f64>::new(8.0, 1.0).unwrap(), Pareto::new(40_000.0, index).unwrap());
            let draw = |i: u32| {
                if i.is_multiple_of(10) { heavy.sample(&mut rng) } else { body.sample(&mut rng).min(40_000.0) }
            };
            let sizes: Vec<u64> = (0..60_000).map(draw).map(|bytes| bytes as u64 + 1).collect();
            let tail = described(&sizes).tail.unwrap();
            // Of the thresholds that are tried the best may lie a little low or high: 0.15 rather than the interval.
            assert!((tail.index - index).abs() < 0.15 * index, "{index} is estimated as {tail:?}");
            assert!(tail.responses >= 100 && tail.interval95[0] < tail.index && tail.index < tail.interval95[1]);
        }
    }

    #[test]
    fn sizes_that_fall_faster_than_a_power_have_a_steep_tail_or_none() {
        let mut rng = Pcg64::seed_from_u64(5);
        let exponential = Exp::<f64>::new(1.0 / 10_000.0).unwrap();
        let sizes: Vec<u64> = (0..20_000).map(|_| exponential.sample(&mut rng) as u64 + 1).collect();
        assert!(described(&sizes).tail.is_none_or(|tail| tail.index > 3.0), "{:?}", described(&sizes).tail);
        assert_eq!(described(&sizes[..99]).tail, None, "too few");
    }
}
