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
use std::hash::BuildHasher;
use std::iter::repeat;

/// With more distinct sizes they are counted in steps. A table of 2 MiB holds as many, without their times.
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
    /// Sizes with their counts: a table with linear probing, at most half full, in which empty cells have no count.
    cells: Vec<(u64, u64)>,
    used: usize,
    /// The times of each cell's answers; empty until there is one.
    times: Vec<Time>,
    hasher: RandomState,
    /// Bytes, count and times by step; empty as long as sizes are few.
    steps: Vec<(f64, u64, Time)>,
}

/// How long the server took for some answers together, in nanoseconds, and of how many of them that is.
#[derive(Clone, Copy, Debug, Default)]
struct Time {
    ns: f64,
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
    #[inline]
    pub fn add(&mut self, bytes: u64, service_ns: Option<u64>) {
        let time = service_ns.map_or(Time::default(), |ns| Time { ns: ns as f64, timed: 1 });
        self.add_counted(bytes, 1, time);
    }

    /// By size, the smallest first.
    pub fn sorted(&self) -> Vec<SizeCount> {
        let show = |bytes, count, sum_bytes, time: Time| SizeCount {
            bytes,
            count,
            sum_bytes,
            service_ns: time.ns,
            timed: time.timed,
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

    /// Whether each size is counted on its own.
    pub fn is_exact(&self) -> bool {
        self.steps.is_empty()
    }

    /// Adds all that were counted elsewhere, without their times.
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

    /// Forgets all sizes, but not the memory that they had, unless that is far more than they needed.
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
        if time.timed > 0 {
            self.add_time(at, time);
        }
    }

    /// The cell of a size, or the empty one where it belongs; none of an empty table.
    #[inline]
    fn place(&self, bytes: u64) -> usize {
        let mask = self.cells.len().wrapping_sub(1);
        let mut at = (self.hasher.hash_one(bytes) >> 32) as usize & mask;
        while self.cells.get(at).is_some_and(|(known, count)| *count > 0 && *known != bytes) {
            at = (at + 1) & mask;
        }
        at
    }

    /// A size that is not known.
    fn insert(&mut self, bytes: u64, count: u64, time: Time) {
        if self.used >= MOST_DISTINCT {
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
        if time.timed > 0 {
            self.add_time(at, time);
        }
    }

    fn grow(&mut self) {
        let cells = vec![(0, 0); (2 * self.used).next_power_of_two().max(64)];
        let (old, times) = (std::mem::replace(&mut self.cells, cells), std::mem::take(&mut self.times));
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
        let (cells, times) = (std::mem::take(&mut self.cells), std::mem::take(&mut self.times));
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
mod tests;
