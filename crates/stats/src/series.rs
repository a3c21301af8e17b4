//! Counts and response times of a run, in at most [`CAPACITY`] intervals of equal length.
//!
//! Intervals are one second long at first, or shorter if requested. If a run needs more intervals than [`CAPACITY`],
//! neighbouring intervals are merged in pairs and the length doubles. So a run of any length fits in the memory
//! allocated at construction (3 MB), and a long run has at least half of [`CAPACITY`] intervals. An interval counts the
//! events *in* it. A call is offered when it is due, sent when its first byte is sent, and completed or failed when it
//! ends. An event on a boundary belongs to the later interval.
//!
//! The interval length depends only on the latest event, so the same events yield the same series in any order and
//! shard.

use crate::error::StatsError;
use crate::estimate::Bucket;
use crate::histogram::{self, MAX_COUNT, empty, encode, touched};
use brimful_core::Nanos;
use brimful_core::account::PackedInterval;
use brimful_core::record::Interval;
use hdrhistogram::Histogram;
use std::iter::repeat;

/// Maximum number of intervals.
const CAPACITY: usize = 300;

/// Length of the shortest interval: a second halved five times.
const SHORTEST: Nanos = Nanos(31_250_000);
const HALVINGS: u32 = 5;

/// Upper bound of the response times in the histogram of an interval: a minute, in microseconds.
pub(crate) const LONGEST_US: u64 = 60_000_000;
/// Number of significant decimal digits of the response times in the histogram of an interval.
pub(crate) const DIGITS: u8 = 2;

/// Counts and response times of a run by intervals of equal length.
#[derive(Clone, Debug)]
pub struct Series {
    /// Log₂ of the interval length divided by [`SHORTEST`].
    doublings: u32,
    /// Number of intervals up to the last one with an event.
    used: usize,
    slots: Vec<Slot>,
}

#[derive(Clone, Debug, PartialEq)]
struct Slot {
    offered: u64,
    sent: u64,
    completed: u64,
    errors: u64,
    response_us: Histogram<u32>,
}

impl Series {
    /// Creates an empty series. All its memory is allocated and written to.
    pub fn new() -> Series {
        let slots = (0..CAPACITY).map(|_| Slot::with_histogram(touched(LONGEST_US, DIGITS))).collect();
        Series { doublings: HALVINGS, used: 0, slots }
    }

    /// Creates an empty series whose intervals initially have about the length `length`. The length is a second, halved
    /// zero to five times, and does not exceed `length` unless `length` is shorter than 1/32 s.
    pub fn with_interval_length(length: Nanos) -> Series {
        let ratio = (length.0 / SHORTEST.0).clamp(1, 1 << HALVINGS);
        Series { doublings: ratio.ilog2(), ..Series::new() }
    }

    /// Counts a call that became due at `due`.
    #[inline]
    pub fn record_offered(&mut self, due: Nanos) {
        self.slot(due).offered += 1;
    }

    /// Counts a call whose first byte was sent at `at`.
    #[inline]
    pub fn record_sent(&mut self, at: Nanos) {
        self.slot(at).sent += 1;
    }

    /// Counts a complete response that arrived at `at`, `response_time` after its call was due.
    #[inline]
    pub fn record_completed(&mut self, at: Nanos, response_time: Nanos) {
        let slot = self.slot(at);
        slot.completed += 1;
        slot.response_us.saturating_record(response_time.0 / 1_000);
    }

    /// Counts a call that failed at `at`.
    #[inline]
    pub fn record_failed(&mut self, at: Nanos) {
        self.slot(at).errors += 1;
    }

    /// Adds the events of `other`.
    pub fn merge(&mut self, other: &Series) {
        let finer = self.make_room(other.doublings, other.used);
        for (i, theirs) in other.slots[..other.used].iter().enumerate() {
            self.slots[i >> finer].merge(theirs);
        }
    }

    /// Adds the output of [`Series::pack`].
    ///
    /// # Errors
    /// [`StatsError`] if the arguments are not output of `pack`. Some of the intervals may have been added.
    pub(crate) fn add(&mut self, interval_s: f64, intervals: &[PackedInterval]) -> Result<(), StatsError> {
        if intervals.len() > CAPACITY {
            return Err(not_ours());
        }
        let finer = self.make_room(doublings(interval_s)?, intervals.len());
        intervals.iter().enumerate().try_for_each(|(i, theirs)| self.slots[i >> finer].add(theirs))
    }

    /// Prepares for `used` intervals whose length is [`SHORTEST`], doubled `doublings` times. If this series has
    /// shorter intervals, increases their length to this length. Returns log₂ of the ratio of the series' interval
    /// length to the requested length.
    fn make_room(&mut self, doublings: u32, used: usize) -> u32 {
        while self.doublings < doublings {
            self.widen();
        }
        let finer = self.doublings - doublings;
        self.used = self.used.max(used.div_ceil(1 << finer));
        while self.slots.len() < self.used {
            self.slots.push(Slot::with_histogram(empty(LONGEST_US, DIGITS)));
        }
        finer
    }

    /// Copies the intervals that have changed since an earlier copy. `self` must be an earlier state of `other`. An
    /// interval has changed if one of its counts differs.
    pub fn copy_changes(&mut self, other: &Series) {
        let all = self.doublings != other.doublings;
        let used = self.used.max(other.used);
        for (slot, theirs) in self.slots[..used].iter_mut().zip(&other.slots) {
            if all || slot.counts() != theirs.counts() {
                slot.clear();
                slot.merge(theirs);
            }
        }
        self.doublings = other.doublings;
        self.used = other.used;
    }

    /// Clears all counts and times, and keeps the interval length.
    pub(crate) fn clear(&mut self) {
        self.slots[..self.used].iter_mut().for_each(Slot::clear);
        self.used = 0;
    }

    /// The intervals from the start of the run to `end`, or to the last event if that is later than `end`.
    pub fn intervals(&self, end: Nanos) -> Vec<Interval> {
        let length_s = self.length_s();
        let until_end = (end.as_secs_f64() / length_s).ceil() as usize;
        let quantile =
            |slot: &Slot, q: f64| (!slot.response_us.is_empty()).then(|| slot.response_us.value_at_quantile(q) as f64);
        let describe = |(i, slot): (usize, &Slot)| Interval {
            t_s: i as f64 * length_s,
            length_s,
            offered: slot.offered,
            sent: slot.sent,
            completed: slot.completed,
            errors: slot.errors,
            p50_us: quantile(slot, 0.5),
            p99_us: quantile(slot, 0.99),
        };
        let none = Slot::with_histogram(empty(LONGEST_US, DIGITS));
        let all = until_end.min(CAPACITY).max(self.used);
        self.slots.iter().chain(repeat(&none)).enumerate().take(all).map(describe).collect()
    }

    /// The response times of each interval, in seconds, as the non-empty buckets of a histogram.
    pub(crate) fn response_times_s(&self) -> Vec<Vec<Bucket>> {
        let buckets = |slot: &Slot| {
            let times = &slot.response_us;
            let bucket = |value: u64, count: u32| Bucket {
                low: times.lowest_equivalent(value) as f64 / 1e6,
                high: times.next_non_equivalent(value) as f64 / 1e6,
                count: f64::from(count),
            };
            times.iter_recorded().map(|step| bucket(step.value_iterated_to(), step.count_at_value())).collect()
        };
        self.slots[..self.used].iter().map(buckets).collect()
    }

    /// The serialised form: the length of an interval in seconds, and all intervals up to the last with an event.
    pub fn pack(&self) -> (f64, Vec<PackedInterval>) {
        (self.length_s(), self.slots[..self.used].iter().map(Slot::pack).collect())
    }

    /// Restores exactly the series that [`Series::pack`] serialised. The result has no memory for further intervals: it
    /// can be merged and read, but it cannot record events.
    ///
    /// # Errors
    /// [`StatsError`] if the arguments are not output of `pack`.
    pub fn unpack(interval_s: f64, intervals: &[PackedInterval]) -> Result<Series, StatsError> {
        let mut read = Series { doublings: doublings(interval_s)?, used: 0, slots: Vec::new() };
        read.add(interval_s, intervals)?;
        Ok(read)
    }

    /// Whether the intervals still have the shortest possible length.
    pub(crate) fn has_shortest_intervals(&self) -> bool {
        self.doublings == 0
    }

    fn length_s(&self) -> f64 {
        (1_u64 << self.doublings) as f64 * SHORTEST.as_secs_f64()
    }

    #[inline]
    fn slot(&mut self, at: Nanos) -> &mut Slot {
        let shortest = at.0 / SHORTEST.0;
        while shortest >> self.doublings >= CAPACITY as u64 {
            self.widen();
        }
        let index = (shortest >> self.doublings) as usize;
        self.used = self.used.max(index + 1);
        &mut self.slots[index]
    }

    /// Merges neighbouring intervals in pairs, which doubles the interval length. The merged intervals are in the first
    /// half of the slots; the second half is empty.
    #[cold]
    fn widen(&mut self) {
        for pair in self.slots.chunks_exact_mut(2) {
            if let [even, odd] = pair {
                even.merge(odd);
                odd.clear();
            }
        }
        for i in 1..self.slots.len().div_ceil(2) {
            self.slots.swap(i, 2 * i);
        }
        self.used = self.used.div_ceil(2);
        self.doublings += 1;
    }

    /// Number of allocated bytes. A test checks that this number does not change during a run.
    #[cfg(test)]
    pub(crate) fn footprint(&self) -> usize {
        let counters: usize = self.slots.iter().map(|s| s.response_us.distinct_values() * size_of::<u32>()).sum();
        self.slots.capacity() * size_of::<Slot>() + counters
    }
}

/// The number of doublings by which [`SHORTEST`] becomes `interval_s` seconds.
fn doublings(interval_s: f64) -> Result<u32, StatsError> {
    let shortest = interval_s * f64::from(1_u32 << HALVINGS);
    // The upper bound excludes intervals longer than any run that fits in u64 nanoseconds. `as u64` drops the fraction,
    // which is checked below.
    let is_length = (1.0..=f64::from(u32::MAX)).contains(&shortest) && (shortest as u64).is_power_of_two();
    if is_length && shortest.fract() == 0.0 { Ok((shortest as u64).ilog2()) } else { Err(not_ours()) }
}

fn not_ours() -> StatsError {
    StatsError::Damaged("intervals of a length or number that brimful never has".to_owned())
}

impl PartialEq for Series {
    /// Compares the counts and times of each interval. Allocated but empty intervals make no difference.
    fn eq(&self, other: &Series) -> bool {
        self.doublings == other.doublings && self.slots[..self.used] == other.slots[..other.used]
    }
}

impl Default for Series {
    fn default() -> Series {
        Series::new()
    }
}

impl Slot {
    fn with_histogram(response_us: Histogram<u32>) -> Slot {
        Slot { offered: 0, sent: 0, completed: 0, errors: 0, response_us }
    }

    fn counts(&self) -> [u64; 4] {
        [self.offered, self.sent, self.completed, self.errors]
    }

    fn count(&mut self, offered: u64, sent: u64, completed: u64, errors: u64) {
        self.offered += offered;
        self.sent += sent;
        self.completed += completed;
        self.errors += errors;
    }

    fn merge(&mut self, other: &Slot) {
        self.count(other.offered, other.sent, other.completed, other.errors);
        self.response_us += &other.response_us;
    }

    fn pack(&self) -> PackedInterval {
        PackedInterval {
            offered: self.offered,
            sent: self.sent,
            completed: self.completed,
            errors: self.errors,
            response_us: (!self.response_us.is_empty()).then(|| encode(&self.response_us)),
        }
    }

    fn add(&mut self, packed: &PackedInterval) -> Result<(), StatsError> {
        let PackedInterval { offered, sent, completed, errors, ref response_us } = *packed;
        let times = response_us.as_ref().map_or(Ok(0), |text| histogram::add(&mut self.response_us, text))?;
        if times != completed || [offered, sent, errors].iter().any(|count| *count > MAX_COUNT) {
            return Err(StatsError::Damaged("the counts of an interval do not match its histogram".to_owned()));
        }
        self.count(offered, sent, completed, errors);
        Ok(())
    }

    fn clear(&mut self) {
        self.offered = 0;
        self.sent = 0;
        self.completed = 0;
        self.errors = 0;
        if !self.response_us.is_empty() {
            self.response_us.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: f64) -> Nanos {
        Nanos::from_secs_f64(seconds)
    }

    #[test]
    fn each_event_counts_in_its_own_second() {
        let mut series = Series::new();
        series.record_offered(s(0.9));
        series.record_sent(s(0.95));
        series.record_completed(s(2.0), s(1.1));
        series.record_failed(s(2.5));
        let intervals = series.intervals(s(3.5));
        assert_eq!(intervals.len(), 4);
        assert_eq!((intervals[0].offered, intervals[0].sent, intervals[0].completed), (1, 1, 0));
        assert_eq!((intervals[2].t_s, intervals[2].length_s), (2.0, 1.0));
        assert_eq!((intervals[2].completed, intervals[2].errors), (1, 1));
        let p50 = intervals[2].p50_us.unwrap();
        assert!((p50 / 1.1e6 - 1.0).abs() < 0.01, "{p50}");
        assert_eq!((intervals[1].p50_us, intervals[3].offered), (None, 0));
    }

    #[test]
    fn a_long_run_widens_its_intervals_and_loses_nothing() {
        let mut series = Series::new();
        let before = series.footprint();
        for second in 0..1_000 {
            series.record_completed(s(second as f64), Nanos(1_000 * (1 + second)));
        }
        let intervals = series.intervals(s(1_000.0));
        assert_eq!((intervals.len(), intervals[1].length_s, intervals[249].t_s), (250, 4.0, 996.0));
        assert!(intervals.iter().all(|i| i.completed == 4));
        assert_eq!(intervals[0].p50_us, Some(2.0));
        assert_eq!(series.footprint(), before);
    }

    #[test]
    fn a_finer_course_is_the_same_run() {
        let (mut fine, mut coarse) = (Series::with_interval_length(Nanos::from_millis(130)), Series::new());
        for tenth in 0..50 {
            fine.record_completed(s(f64::from(tenth) / 10.0), s(0.001));
            coarse.record_completed(s(f64::from(tenth) / 10.0), s(0.001));
        }
        let intervals = fine.intervals(s(5.0));
        assert_eq!((intervals.len(), intervals[3].t_s, intervals[3].length_s), (40, 0.375, 0.125));
        let (length, packed) = fine.pack();
        assert_eq!(Series::unpack(length, &packed).unwrap(), fine);
        assert!([0.0, -1.0, 0.01, 0.1, 3.0, f64::NAN].iter().all(|length| Series::unpack(*length, &packed).is_err()));
        let mut merged = coarse.clone();
        merged.merge(&fine);
        fine.merge(&coarse);
        assert_eq!((fine.intervals(s(5.0)).len(), fine.intervals(s(5.0))), (5, merged.intervals(s(5.0))));
    }

    #[test]
    fn shards_of_different_lengths_merge_into_the_series_of_all() {
        let (mut whole, mut short, mut long) = (Series::new(), Series::new(), Series::new());
        for i in 0..700 {
            whole.record_completed(s(i as f64), s(0.001 * i as f64));
            if i < 100 { &mut short } else { &mut long }.record_completed(s(i as f64), s(0.001 * i as f64));
        }
        let mut merged = short.clone();
        merged.merge(&long);
        assert_eq!(merged.intervals(s(700.0)), whole.intervals(s(700.0)));
        long.merge(&short);
        assert_eq!(long.intervals(s(700.0)), whole.intervals(s(700.0)));
    }
}
