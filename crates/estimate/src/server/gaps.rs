//! Gaps between completed calls, and the minimum length of a gap that is a pause of the server.
//!
//! The minimum length is determined separately for each load. Without pauses, the longest gaps are assumed to have an
//! exponential tail, whose scale follows from two percentiles (peaks over a threshold: Pickands 1975, with shape 0). A
//! gap is a pause if less than [`FALSE_GAPS`] gaps of at least its length are expected in all measurements of the load.
//!
//! Frequent pauses are part of the tail itself and make it appear longer. They are recognized in another way: the
//! density of ordinary gaps decreases with their length, but pauses form a second mode ([`GapLengths::second_mode`]). A
//! second mode under a single load may have other causes, such as an event loop that answers many clients in one batch,
//! or slow calls to a backend. So a second mode must exist with the smallest number of clients and with at least one
//! other number.

use super::blocks::{Measurement, OfferedLoad};
use crate::window::CompletedCalls;
use statrs::distribution::{Binomial, DiscreteCDF};
use std::collections::BTreeMap;

/// Expected number of ordinary gaps per load that are mistaken for pauses by chance.
const FALSE_GAPS: f64 = 0.01;
/// Safety factor on the scale of the exponential tail of gap lengths, because the scale is an estimate.
const SCALE_MARGIN: f64 = 1.3;
/// Significance level of the test for a second mode of the gap lengths. It is low, because the test is repeated for
/// many lengths.
const NO_SECOND_MODE: f64 = 1e-6;
/// Minimum ratio of the gap lengths in a second mode to the mean of the shorter gaps.
const MIN_MODE_RATIO: f64 = 5.0;
/// Maximum number of gaps in a second mode, as a share of the calls.
const MAX_MODE_SHARE: f64 = 0.1;
/// The test for a second mode of the gap lengths compares two numbers for each length: the gaps above it, and the gaps
/// between this share of the length and the length itself.
const SHORTER: f64 = 1.0 / 3.0;
/// One gap between the two modes of the gap lengths is tolerated for this many gaps of the second mode.
const IN_DIP: usize = 100;
/// Minimum ratio of the shortest pause to the longest ordinary gap between completed calls.
const DIP_MARGIN: f64 = 1.5;
/// Maximum ratio between the lengths at which the second modes of two loads begin, if they have the same cause.
const SAME_MODE: f64 = 2.0;
/// Minimum number of calls under a load. With fewer, its gaps are not evaluated.
const MIN_CALLS: f64 = 200.0;
/// The two percentiles that determine the exponential tail of gap lengths, as shares of the calls after which the gap
/// is longer.
const TAIL: [f64; 2] = [0.05, 0.02];
/// The estimated end of the exponential tail is unreliable if service times vary much. So gaps beyond the end must
/// outnumber the gaps between this share of the end and the end by the factor [`MORE_BEYOND`].
const NEAR_END: f64 = 0.7;
/// Minimum ratio of the number of gaps beyond the end of the exponential tail to the number of gaps just below the end
/// ([`NEAR_END`]).
const MORE_BEYOND: usize = 2;

/// A pause of the server: its start and its length, in seconds.
pub(super) type Pause = (f64, f64);

/// The minimum length of a gap that is a pause of the server, in seconds, for each load with enough calls.
pub(super) fn pause_thresholds(measurements: &BTreeMap<OfferedLoad, Vec<&Measurement>>) -> BTreeMap<OfferedLoad, f64> {
    let lengths = measurements.iter().map(|(load, measurements)| (*load, GapLengths::new(measurements)));
    let by_load: BTreeMap<OfferedLoad, GapLengths> = lengths.filter(|(_, gaps)| gaps.calls >= MIN_CALLS).collect();
    let by_mode = common_second_modes(&by_load);
    let threshold = |(load, gaps): (&OfferedLoad, &GapLengths)| {
        let of_mode = by_mode.get(load).copied().unwrap_or(f64::INFINITY);
        (*load, gaps.end_of_tail().min(of_mode))
    };
    by_load.iter().map(threshold).collect()
}

/// The lengths of the gaps between completed calls in all measurements of one load.
struct GapLengths {
    /// Lengths in seconds, in descending order. Gaps shorter than 1.5 × `interval_s` cannot be detected and are not
    /// included.
    lengths: Vec<f64>,
    calls: f64,
    seconds: f64,
    /// Length of the intervals in which completed calls are counted, in seconds; the maximum over all runs.
    interval_s: f64,
}

impl GapLengths {
    fn new(measurements: &[&Measurement]) -> GapLengths {
        let mut all = GapLengths { lengths: Vec::new(), calls: 0.0, seconds: 0.0, interval_s: 0.0 };
        for measurement in measurements {
            let timeline = &measurement.timeline;
            all.calls += timeline.completed.calls();
            all.seconds += timeline.completed.seconds();
            all.interval_s = all.interval_s.max(timeline.completed.interval_s);
            let gaps = gaps(&timeline.completed, &timeline.arrivals, is_closed(measurement.load));
            all.lengths.extend(gaps.into_iter().map(|(_, length)| length));
        }
        all.lengths.sort_by(|a, b| b.total_cmp(a));
        all
    }

    /// The length at which the exponential tail of ordinary gaps ends: longer gaps are pauses. ∞ if the gaps beyond the
    /// end also seem to belong to the tail.
    fn end_of_tail(&self) -> f64 {
        // Gaps that are too short to be detected are treated as `interval_s` seconds long.
        let exceeded_by = |share: f64| {
            let length = self.lengths.get((share * self.calls) as usize).copied();
            length.unwrap_or(self.interval_s).max(self.interval_s)
        };
        let [start, later] = TAIL.map(exceeded_by);
        let scale = ((later - start) / (TAIL[0] / TAIL[1]).ln()).max(0.5 * self.interval_s);
        let end = start + SCALE_MARGIN * scale * (TAIL[0] * self.calls / FALSE_GAPS).ln();
        let beyond = self.count_from(end);
        let near = self.count_from(NEAR_END * end) - beyond;
        if beyond > 0 && beyond <= MORE_BEYOND * near { f64::INFINITY } else { end }
    }

    /// Number of gaps of at least this length.
    fn count_from(&self, length: f64) -> usize {
        self.lengths.partition_point(|other| *other >= length)
    }

    /// The shortest gap of a second mode; `None` if there is no second mode.
    ///
    /// Tests each gap length b against a density that decreases with the length. With such a density, at most the share
    /// 1/(1 + 2/3) of all gaps from b/3 to 2b is longer than b, because the range from b to 2b is 3/2 times as wide as
    /// the range from b/3 to b. The number of longer gaps then has at most a binomial distribution with this share.
    fn second_mode(&self) -> Option<f64> {
        let share = 1.0 / (2.0 - SHORTER);
        let mut best: Option<(f64, f64)> = None;
        let mut in_longer = 0.0;
        let mut previous = f64::INFINITY;
        for length in &self.lengths {
            in_longer += length;
            let number = self.count_from(*length);
            if *length == previous || SHORTER * length < 2.0 * self.interval_s {
                continue;
            }
            previous = *length;
            if number as f64 > MAX_MODE_SHARE * self.calls {
                break;
            }
            let shorter_mean = (self.seconds - in_longer).max(0.0) / (self.calls - number as f64);
            let longer = number - self.count_from(2.0 * length);
            let shorter = self.count_from(SHORTER * length) - number;
            let chance = at_least(longer as u64, (longer + shorter) as u64, share);
            let is_long = *length >= MIN_MODE_RATIO * shorter_mean;
            if is_long && chance < NO_SECOND_MODE && best.is_none_or(|(least, _)| chance <= least) {
                best = Some((chance, *length));
            }
        }
        best.map(|(_, length)| length)
    }

    /// The minimum length of a pause, if the second mode of the gap lengths begins at `mode`. It is at the lower end of
    /// the range between the two modes, which has few gaps. Under an open load, a gap may show only the rest of a
    /// pause.
    fn end_of_first_mode(&self, mode: f64) -> f64 {
        let beyond = self.count_from(mode);
        let usual = self.lengths.get(beyond + beyond / IN_DIP).copied().unwrap_or(0.0);
        (DIP_MARGIN * usual).max(SHORTER * mode).min(mode)
    }
}

/// Probability that a number with a binomial distribution is at least `count`.
fn at_least(count: u64, trials: u64, probability: f64) -> f64 {
    let Some(fewer) = count.checked_sub(1) else { return 1.0 };
    Binomial::new(probability, trials).map_or(1.0, |binomial| binomial.sf(fewer))
}

/// The minimum length of a pause for each load, from second modes of the gap lengths that have the same cause. Empty
/// unless there is a second mode with the smallest number of clients, and a similar one with another number of clients.
fn common_second_modes(gaps: &BTreeMap<OfferedLoad, GapLengths>) -> BTreeMap<OfferedLoad, f64> {
    let with_clients = gaps.iter().filter(|(load, _)| matches!(load, OfferedLoad::Clients(_)));
    let Some((fewest, first)) = with_clients.clone().next().and_then(|(_, gaps)| Some((gaps, gaps.second_mode()?)))
    else {
        return BTreeMap::new();
    };
    let is_similar = |mode: &f64| (1.0 / SAME_MODE..SAME_MODE).contains(&(mode / first));
    let closed = gaps.iter().filter(|(load, _)| is_closed(**load));
    let shortest_pause = |(load, gaps): (&OfferedLoad, &GapLengths)| {
        let mode = gaps.second_mode().filter(is_similar)?;
        Some((*load, gaps.end_of_first_mode(mode)))
    };
    let mut shortest: BTreeMap<OfferedLoad, f64> = closed.filter_map(shortest_pause).collect();
    if shortest.keys().filter(|load| matches!(load, OfferedLoad::Clients(_))).count() < 2 {
        return BTreeMap::new();
    }
    // Under an open load, a call that arrives during a pause shows only the rest of the pause, so there is no second
    // mode. Use the minimum length for the smallest number of clients, whose calls also find the server idle.
    let with_one_client = fewest.end_of_first_mode(first);
    shortest.extend(gaps.keys().filter(|load| !is_closed(**load)).map(|load| (*load, with_one_client)));
    shortest
}

/// The gaps in which calls were in progress and none was completed, if they last at least 1.5 intervals in which
/// completed calls are counted. Under an open load, a call is in progress from its arrival on.
pub(super) fn gaps(completed: &CompletedCalls, arrivals: &[(f64, usize)], is_closed: bool) -> Vec<Pause> {
    let interval_s = completed.interval_s;
    let mut gaps = Vec::new();
    let mut last: Option<usize> = None;
    let mut calls = 0_usize;
    for (part, count) in completed.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let end = (part as f64 + 0.5) * interval_s;
        // Under an open load, the gap begins when the first call arrives at the idle server.
        let first_waiting = arrivals.get(calls).map(|(at, _)| *at);
        let previous = last.map(|last| (last as f64 + 0.5) * interval_s);
        let start = if is_closed { previous } else { first_waiting.map(|at| at.max(previous.unwrap_or(0.0))) };
        if let Some(start) = start.filter(|start| end - start >= 1.5 * interval_s) {
            gaps.push((start, end - start));
        }
        calls += *count as usize;
        last = Some(part);
    }
    gaps
}

/// Whether closed-loop clients send the load, so that calls are always in progress.
pub(super) fn is_closed(load: OfferedLoad) -> bool {
    !matches!(load, OfferedLoad::Level(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_of_an_open_load_begin_when_a_call_arrives() {
        let mut counts = vec![0; 100];
        (counts[2], counts[40], counts[41], counts[90]) = (1, 1, 1, 1);
        let completed = CompletedCalls { interval_s: 0.001, counts };
        let arrivals = [0.0015, 0.010, 0.0105, 0.0898].map(|at| (at, 0));
        let found: Vec<Pause> = gaps(&completed, &arrivals, false);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((found[0].0 - 0.010).abs() < 1e-12 && (found[0].1 - 0.0305).abs() < 1e-12, "{found:?}");
        assert_eq!(gaps(&completed, &[], true).len(), 2);
    }

    fn lengths(mut lengths: Vec<f64>) -> GapLengths {
        let calls = lengths.len() as f64;
        let seconds = lengths.iter().sum();
        lengths.retain(|length| *length > 0.000_5);
        lengths.sort_by(|a, b| b.total_cmp(a));
        GapLengths { lengths, calls, seconds, interval_s: 0.000_25 }
    }

    /// `number` gap lengths that are quantiles of an exponential distribution.
    fn exponential(mean: f64, number: u32) -> impl Iterator<Item = f64> {
        (0..number).map(move |index| -mean * ((f64::from(index) + 0.5) / f64::from(number)).ln())
    }

    #[test]
    fn frequent_pauses_are_a_second_mode() {
        let pauses = (0..300).map(|index| 0.008 + 0.007 * f64::from(index) / 300.0);
        let gaps = lengths(exponential(0.000_3, 10_000).chain(pauses).collect());
        let mode = gaps.second_mode().unwrap();
        assert!((0.005..0.009).contains(&mode), "{mode}");
        assert!((0.002..0.005).contains(&gaps.end_of_first_mode(mode)), "{}", gaps.end_of_first_mode(mode));
        // The exponential tail alone does not reveal the pauses of this test.
        assert!(gaps.end_of_tail() > 0.1, "{}", gaps.end_of_tail());
    }

    #[test]
    fn rare_slow_calls_of_all_lengths_are_not_a_second_mode() {
        let slow = lengths(exponential(0.000_16, 9_700).chain(exponential(0.005, 300)).collect());
        assert_eq!(slow.second_mode(), None);
        assert!(slow.end_of_tail() > slow.lengths[0], "{} {}", slow.end_of_tail(), slow.lengths[0]);
    }

    #[test]
    fn gaps_between_batches_for_many_clients_are_no_pauses() {
        let batches = || lengths((0..10_000).map(|call| if call % 32 == 0 { 0.009_6 } else { 0.0 }).collect());
        assert!(batches().second_mode().is_some());
        let single = lengths(exponential(0.000_3, 10_000).collect());
        let by_load = [(OfferedLoad::Clients(1), single), (OfferedLoad::Clients(32), batches())];
        assert!(common_second_modes(&by_load.into_iter().collect()).is_empty());
    }
}
