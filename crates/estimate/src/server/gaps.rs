//! Gaps between completed calls, and how long a gap must be to be a pause of the server.
//!
//! The gaps of a load are compared with one another. Beyond a high percentile they are taken to be exponential, with a
//! scale from two percentiles (peaks over a threshold: Pickands 1975, with shape 0). A gap is a pause if fewer than
//! [`FALSE_GAPS`] of all gaps of the load are expected to be that long.
//!
//! Frequent pauses are among the longest gaps themselves, and so they hide the end of that tail. They are found by
//! their number instead: the density of service times decreases beyond its mode, but pauses are a second mode
//! ([`GapLengths::second_mode`]). A second mode of a single load may have other reasons: an event loop that answers
//! many clients in one batch, or slow calls to a backend. So the load with the fewest clients must show it, and another
//! one too.

use super::blocks::{Measurement, OfferedLoad};
use super::pauses::Pause;
use crate::window::CompletedCalls;
use statrs::distribution::{Binomial, DiscreteCDF};
use std::collections::BTreeMap;

/// Number of gaps of a load that are expected to be as long as the shortest pause, if the server has no pauses.
const FALSE_GAPS: f64 = 0.01;
/// Factor of the scale of the longest gaps, because this scale is itself uncertain.
const SCALE_MARGIN: f64 = 1.3;
/// A second mode is notable if the numbers of gaps are less probable than this without one. The gaps are compared at
/// many lengths, so the probability is small.
const NO_SECOND_MODE: f64 = 1e-6;
/// The gaps of a second mode are at least this many times as long as the mean of the shorter gaps, …
const MIN_MODE_RATIO: f64 = 5.0;
/// … and at most this share of the calls.
const MAX_MODE_SHARE: f64 = 0.1;
/// Gaps are compared with shorter ones down to this share of their length.
const SHORTER: f64 = 1.0 / 3.0;
/// Gaps between the modes are at most one for this many gaps of the second mode.
const IN_DIP: usize = 100;
/// Ratio of the shortest pause to the longest usual gap.
const DIP_MARGIN: f64 = 1.5;
/// Largest ratio of the second modes of two loads that have the same reason.
const SAME_MODE: f64 = 2.0;
/// Smallest number of calls of a load whose gaps are evaluated.
const MIN_CALLS: f64 = 200.0;
/// Shares of the gaps that are longer than the two percentiles.
const TAIL: [f64; 2] = [0.05, 0.02];
/// Gaps beyond the end of the tail are pauses only if they are more than [`MORE_BEYOND`] times as many as the gaps from
/// this share of its length up to its end. Otherwise they continue the tail of a service that varies a lot.
const NEAR_END: f64 = 0.7;
const MORE_BEYOND: usize = 2;

/// The shortest gap that is a pause, in seconds, for each load with enough calls.
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

/// The lengths of the gaps between completed calls, from all measurements of one load.
struct GapLengths {
    /// In seconds, the longest first. Gaps that are too short to be seen are missing.
    lengths: Vec<f64>,
    calls: f64,
    seconds: f64,
    /// Length of the longest part of a run in which calls are counted, in seconds.
    part_s: f64,
}

impl GapLengths {
    fn new(measurements: &[&Measurement]) -> GapLengths {
        let mut all = GapLengths { lengths: Vec::new(), calls: 0.0, seconds: 0.0, part_s: 0.0 };
        for measurement in measurements {
            let timeline = &measurement.timeline;
            all.calls += timeline.completed.calls();
            all.seconds += timeline.completed.seconds();
            all.part_s = all.part_s.max(timeline.completed.part_s);
            let gaps = gaps(&timeline.completed, &timeline.arrivals, is_closed(measurement.load));
            all.lengths.extend(gaps.into_iter().map(|(_, length)| length));
        }
        all.lengths.sort_by(|a, b| b.total_cmp(a));
        all
    }

    /// The length that no gap exceeds if the tail of the gaps is exponential; ∞ if longer gaps continue the tail.
    fn end_of_tail(&self) -> f64 {
        // Gaps that are too short to be seen are shorter than two parts.
        let exceeded_by = |share: f64| {
            let length = self.lengths.get((share * self.calls) as usize).copied();
            length.unwrap_or(self.part_s).max(self.part_s)
        };
        let [start, later] = TAIL.map(exceeded_by);
        let scale = ((later - start) / (TAIL[0] / TAIL[1]).ln()).max(0.5 * self.part_s);
        let end = start + SCALE_MARGIN * scale * (TAIL[0] * self.calls / FALSE_GAPS).ln();
        let beyond = self.count_from(end);
        let near = self.count_from(NEAR_END * end) - beyond;
        if beyond > 0 && beyond <= MORE_BEYOND * near { f64::INFINITY } else { end }
    }

    /// Number of gaps that are at least this long.
    fn count_from(&self, length: f64) -> usize {
        self.lengths.partition_point(|other| *other >= length)
    }

    /// The shortest gap of a second mode of the lengths; `None` if there is no such mode.
    ///
    /// If the density decreases with the length, the gaps from b to 2b are at most as dense as those from b/3 to b. Of
    /// all these gaps, the longer ones are then at most the share 1/(1 + 2/3), and their number has at most this
    /// binomial distribution.
    fn second_mode(&self) -> Option<f64> {
        let share = 1.0 / (2.0 - SHORTER);
        let mut best: Option<(f64, f64)> = None;
        let mut in_longer = 0.0;
        let mut previous = f64::INFINITY;
        for length in &self.lengths {
            in_longer += length;
            let number = self.count_from(*length);
            if *length == previous || SHORTER * length < 2.0 * self.part_s {
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

    /// The shortest gap that belongs to the second mode that begins at `mode`. Hardly any gaps are between the usual
    /// ones and the mode. An open load also shows the rests of pauses, which are shorter, so this is the lower end of
    /// the dip.
    fn end_of_first_mode(&self, mode: f64) -> f64 {
        let beyond = self.count_from(mode);
        let usual = self.lengths.get(beyond + beyond / IN_DIP).copied().unwrap_or(0.0);
        (DIP_MARGIN * usual).max(SHORTER * mode).min(mode)
    }
}

/// Probability that a binomial number is at least `count`.
fn at_least(count: u64, trials: u64, probability: f64) -> f64 {
    let Some(fewer) = count.checked_sub(1) else { return 1.0 };
    Binomial::new(probability, trials).map_or(1.0, |binomial| binomial.sf(fewer))
}

/// The shortest gap that is a pause, for each load whose second mode has a common reason. Empty unless the fewest
/// clients show a second mode, and another number of clients a similar one.
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
    // An open load has no second mode: a call that arrives during a pause shows only the rest of it. The time of a call
    // that finds the server idle is the same as with one client.
    let with_one_client = fewest.end_of_first_mode(first);
    shortest.extend(gaps.keys().filter(|load| !is_closed(**load)).map(|load| (*load, with_one_client)));
    shortest
}

/// Gaps of at least two parts in which calls were in progress and none was completed. The calls of an open load are in
/// progress from their arrival.
pub(super) fn gaps(completed: &CompletedCalls, arrivals: &[(f64, usize)], is_closed: bool) -> Vec<Pause> {
    let part_s = completed.part_s;
    let mut gaps = Vec::new();
    let mut last: Option<usize> = None;
    let mut calls = 0_usize;
    for (part, count) in completed.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let end = (part as f64 + 0.5) * part_s;
        // With an open load, the gap begins at the first arrival that finds the server idle.
        let first_waiting = arrivals.get(calls).map(|(at, _)| *at);
        let previous = last.map(|last| (last as f64 + 0.5) * part_s);
        let start = if is_closed { previous } else { first_waiting.map(|at| at.max(previous.unwrap_or(0.0))) };
        if let Some(start) = start.filter(|start| end - start >= 1.5 * part_s) {
            gaps.push((start, end - start));
        }
        calls += *count as usize;
        last = Some(part);
    }
    gaps
}

/// Whether a load has closed-loop clients, so that calls are in progress all the time.
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
        let completed = CompletedCalls { part_s: 0.001, counts };
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
        GapLengths { lengths, calls, seconds, part_s: 0.000_25 }
    }

    /// Quantiles of exponential gaps.
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
        // The tail alone does not show them.
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
