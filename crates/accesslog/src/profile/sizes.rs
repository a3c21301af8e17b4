//! Counts the sizes of responses in bytes. Computes the distribution of sizes and the index of its tail.
//!
//! Up to [`MAX_EXACT_SIZES`] distinct sizes are counted exactly. If there are more, sizes are counted in logarithmic
//! steps, each at most 1/64 wide (`histogram`). The tail index is Hill's (1975): with x₁ … x_k the sizes above a
//! threshold s, α = k / Σ ln(x_i/s), with the 95 % interval α(1 ± 1.96/√k). Several thresholds are tried. The best
//! threshold has the smallest maximum difference between the distribution above the threshold and the power law
//! (Clauset, Shalizi & Newman, *Power-law distributions in empirical data*, 2009, §3.3). If this difference is large
//! for every threshold, the distribution has no power-law tail.

use super::histogram::{STEPS, step};
use brimful_core::profile::{Sizes, Tail};
use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use std::iter::repeat;

/// Maximum number of distinct sizes that are counted exactly. Their table has 2 MiB, without service times.
pub const MAX_EXACT_SIZES: usize = 57_344;

/// Minimum number of responses above the threshold of a tail. With fewer responses, the 95 % interval of the tail index
/// is wider than ±20 %.
const MIN_IN_TAIL: u64 = 100;
/// Minimum number of distinct sizes above the threshold of a tail. A single large file that is requested often is not a
/// tail.
const MIN_SIZES_IN_TAIL: usize = 20;
/// Number of thresholds (sizes at which the tail may begin) that are tried.
const THRESHOLDS: usize = 60;
/// Maximum difference between the measured distribution above a threshold and the power law, for a tail to be reported.
const MAX_POWER_LAW_DIFFERENCE: f64 = 0.1;
/// Number of points of the complementary distribution function of sizes.
const POINTS: i32 = 60;

const PERCENTILES: [(&str, f64); 5] = [("50", 0.5), ("90", 0.9), ("95", 0.95), ("99", 0.99), ("99.9", 0.999)];

/// Counts of responses by their size in bytes.
#[derive(Clone, Debug, Default)]
pub struct SizeCounts {
    /// A hash table of sizes and their counts, with linear probing. It is at most half full. Empty cells have a count
    /// of 0.
    cells: Vec<(u64, u64)>,
    used: usize,
    /// Service times of the responses in each cell; empty if no response has a service time.
    times: Vec<Time>,
    hasher: RandomState,
    /// Sum of bytes, count and service times of each logarithmic step; empty while sizes are counted exactly.
    steps: Vec<(f64, u64, Time)>,
}

/// Sum of service times in nanoseconds, and the number of responses whose service time is known.
#[derive(Clone, Copy, Debug, Default)]
struct Time {
    ns: f64,
    timed_responses: u64,
}

/// Responses of the same size or, if sizes are counted in steps, of the same step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SizeCount {
    /// The size in bytes; for a step, the mean size.
    pub bytes: u64,
    /// Number of responses.
    pub count: u64,
    /// Sum of the bytes of these responses.
    pub sum_bytes: f64,
    /// Sum of the service times of these responses, in nanoseconds.
    pub service_ns: f64,
    /// Number of responses with a known service time.
    pub timed_responses: u64,
}

impl SizeCounts {
    /// Adds a response with its size, and its service time if known.
    #[inline]
    pub fn add(&mut self, bytes: u64, service_ns: Option<u64>) {
        let time = service_ns.map_or(Time::default(), |ns| Time { ns: ns as f64, timed_responses: 1 });
        self.add_counted(bytes, 1, time);
    }

    /// All sizes, in ascending order.
    pub fn sorted(&self) -> Vec<SizeCount> {
        let show = |bytes, count, sum_bytes, time: Time| SizeCount {
            bytes,
            count,
            sum_bytes,
            service_ns: time.ns,
            timed_responses: time.timed_responses,
        };
        let times = self.times.iter().copied().chain(repeat(Time::default()));
        let exact = self.cells.iter().zip(times).filter(|((_, count), _)| *count > 0);
        let mut all: Vec<SizeCount> =
            exact.map(|((bytes, count), time)| show(*bytes, *count, *bytes as f64 * *count as f64, time)).collect();
        all.sort_unstable_by_key(|size| size.bytes);
        let in_steps = self.steps.iter().filter(|(_, count, _)| *count > 0);
        all.extend(
            in_steps.map(|(bytes, count, time)| show((bytes / *count as f64).round() as u64, *count, *bytes, *time)),
        );
        all
    }

    /// Whether sizes are counted exactly, not in logarithmic steps.
    pub fn is_exact(&self) -> bool {
        self.steps.is_empty()
    }

    /// Adds the counts of `others`, without service times.
    pub(super) fn add_all(&mut self, others: &SizeCounts) {
        for (bytes, count) in others.cells.iter().filter(|(_, count)| *count > 0) {
            self.add_counted(*bytes, *count, Time::default());
        }
        if !others.steps.is_empty() {
            self.count_in_steps();
        }
        for (all, (bytes, count, _)) in self.steps.iter_mut().zip(&others.steps) {
            (all.0, all.1) = (all.0 + bytes, all.1 + count);
        }
    }

    /// Removes all sizes. Releases the memory only if far more cells are allocated than were used.
    pub(super) fn clear(&mut self) {
        if self.cells.len() > 32 * self.used {
            self.cells = Vec::new();
        }
        self.cells.fill((0, 0));
        self.used = 0;
        self.times = Vec::new();
        self.steps = Vec::new();
    }

    #[inline]
    fn add_counted(&mut self, bytes: u64, count: u64, time: Time) {
        if !self.steps.is_empty() {
            return self.add_to_step(bytes, bytes as f64 * count as f64, count, time);
        }
        let at = self.place(bytes);
        match self.cells.get_mut(at) {
            Some((_, known)) if *known > 0 => *known += count,
            _ => return self.insert(bytes, count, time),
        }
        if time.timed_responses > 0 {
            self.add_time(at, time);
        }
    }

    /// Index of the cell of a size. If the size is not in the table, this is the empty cell in which it belongs. The
    /// table must not be empty.
    #[inline]
    fn place(&self, bytes: u64) -> usize {
        let mask = self.cells.len().wrapping_sub(1);
        let mut at = (self.hasher.hash_one(bytes) >> 32) as usize & mask;
        while self.cells.get(at).is_some_and(|(known, count)| *count > 0 && *known != bytes) {
            at = (at + 1) & mask;
        }
        at
    }

    /// Adds a size that is not in the table.
    fn insert(&mut self, bytes: u64, count: u64, time: Time) {
        if self.used >= MAX_EXACT_SIZES {
            self.count_in_steps();
            return self.add_to_step(bytes, bytes as f64 * count as f64, count, time);
        }
        self.used += 1;
        if self.cells.len() < 2 * self.used {
            self.grow();
        }
        let at = self.place(bytes);
        if let Some(cell) = self.cells.get_mut(at) {
            *cell = (bytes, count);
        }
        if time.timed_responses > 0 {
            self.add_time(at, time);
        }
    }

    fn grow(&mut self) {
        let cells = vec![(0, 0); (2 * self.used).next_power_of_two().max(64)];
        let old = std::mem::replace(&mut self.cells, cells);
        let times = std::mem::take(&mut self.times);
        for (from, cell) in old.into_iter().enumerate().filter(|(_, (_, count))| *count > 0) {
            let at = self.place(cell.0);
            self.cells[at] = cell;
            if let Some(time) = times.get(from) {
                self.add_time(at, *time);
            }
        }
    }

    fn add_time(&mut self, at: usize, time: Time) {
        if self.times.is_empty() {
            self.times = vec![Time::default(); self.cells.len()];
        }
        if let Some(all) = self.times.get_mut(at) {
            all.add(time);
        }
    }

    fn count_in_steps(&mut self) {
        if !self.steps.is_empty() {
            return;
        }
        self.steps = vec![(0.0, 0, Time::default()); STEPS];
        let cells = std::mem::take(&mut self.cells);
        let times = std::mem::take(&mut self.times);
        self.used = 0;
        for (at, (bytes, count)) in cells.into_iter().enumerate().filter(|(_, (_, count))| *count > 0) {
            let time = times.get(at).copied().unwrap_or_default();
            self.add_to_step(bytes, bytes as f64 * count as f64, count, time);
        }
    }

    fn add_to_step(&mut self, bytes: u64, sum_bytes: f64, count: u64, time: Time) {
        if let Some((all_bytes, all, all_time)) = self.steps.get_mut(step(bytes)) {
            *all_bytes += sum_bytes;
            *all += count;
            all_time.add(time);
        }
    }
}

impl Time {
    fn add(&mut self, other: Time) {
        self.ns += other.ns;
        self.timed_responses += other.timed_responses;
    }
}

/// Computes the metrics of response sizes for a profile. `max` is the largest size, which `counts` does not contain if
/// sizes are counted in steps.
pub(super) fn size_metrics(counts: &SizeCounts, max: u64) -> Sizes {
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

/// The percentile of the sizes at `share` (0 to 1): the smallest size such that at least this share of the responses
/// are not larger.
fn percentile(sorted: &[SizeCount], responses: u64, share: f64) -> f64 {
    let rank = ((share * responses as f64).ceil() as u64).clamp(1, responses);
    let mut below = 0;
    let found = sorted.iter().find(|size| {
        below += size.count;
        below >= rank
    });
    found.or(sorted.last()).map_or(0.0, |size| size.bytes as f64)
}

/// Points of the complementary distribution function: a size, and the share of responses that are larger. The sizes are
/// evenly spaced on a logarithmic axis.
fn complementary(sorted: &[SizeCount], responses: u64) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let least = first.bytes.max(1) as f64;
    let most = last.bytes.max(1) as f64;
    let at = |i: i32| (least * (most / least).powf(f64::from(i) / f64::from(POINTS - 1))).round();
    let mut sizes: Vec<f64> = (0..POINTS).map(at).collect();
    sizes.dedup();
    let mut rest = sorted.iter().peekable();
    let mut not_above = 0;
    let points = sizes.into_iter().map(|bytes| {
        while let Some(size) = rest.next_if(|size| size.bytes as f64 <= bytes) {
            not_above += size.count;
        }
        (bytes, (responses - not_above) as f64 / responses as f64)
    });
    points.filter(|(_, share)| *share > 0.0).collect()
}

/// The power-law tail above the threshold with the best fit; `None` if there are too few responses or no power law.
fn tail(sorted: &[SizeCount]) -> Option<Tail> {
    let found = thresholds(sorted).into_iter().filter_map(|at| Candidate::new(sorted, at));
    let best = found.min_by(|a, b| a.difference.total_cmp(&b.difference))?;
    if best.difference > MAX_POWER_LAW_DIFFERENCE {
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

/// Indices of the sizes that are tried as thresholds. The numbers of responses above these thresholds are evenly spaced
/// on a logarithmic axis.
fn thresholds(sorted: &[SizeCount]) -> Vec<usize> {
    let all: u64 = sorted.iter().map(|size| size.count).sum();
    let ratio = (all as f64 / MIN_IN_TAIL as f64).max(1.0).powf(1.0 / THRESHOLDS as f64);
    let mut next = all as f64;
    let mut above = all;
    let mut chosen = Vec::new();
    for (index, size) in sorted.iter().enumerate() {
        above -= size.count;
        if above as f64 <= next && size.bytes > 0 && above >= MIN_IN_TAIL {
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
    /// The largest difference, over all sizes above the threshold, between the measured share of larger responses and
    /// the share that the power law predicts.
    difference: f64,
}

impl Candidate {
    /// The power-law tail above the size `sorted[at]`; `None` if it has too few sizes or responses.
    fn new(sorted: &[SizeCount], at: usize) -> Option<Candidate> {
        let threshold = sorted.get(at)?.bytes;
        let tail = sorted.get(at + 1..)?;
        if tail.len() < MIN_SIZES_IN_TAIL {
            return None;
        }
        let times = |size: &SizeCount| size.bytes as f64 / threshold as f64;
        let answers: u64 = tail.iter().map(|size| size.count).sum();
        let logarithms: f64 = tail.iter().map(|size| times(size).ln() * size.count as f64).sum();
        let index = answers as f64 / logarithms;
        let mut above = answers;
        let mut difference = 0f64;
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
mod tests;
