//! Keeps the samples of a run of any length in bounded memory.
//!
//! When the number of samples reaches [`MAX_SAMPLES`], or the samples from another host occupy more than [`MAX_BYTES`],
//! each pair of neighbouring samples is merged into one sample. From then on, each kept sample covers twice the time.
//! Merging loses no counts, because counters are totals. Of the accept-queue lengths of two merged samples, the longer
//! one is kept. The first and the last sample are always kept.

use crate::group::Group;
use crate::groups::ListedGroup;
use crate::rates::Rates;
use crate::sampler::Sample;
use crate::size::size_of_all;
use crate::summary::summarize;
use brimful_core::Nanos;
use brimful_core::server::{ClockOffset, Overhead, Server};
use std::collections::BTreeMap;

/// Maximum number of samples. At four samples per second, they cover four minutes.
const MAX_SAMPLES: usize = 1024;
/// Maximum size in bytes of all samples from another host, as counted by [`size_of_all`]. [`MAX_SAMPLES`] samples of a
/// machine with up to about 32 CPUs fit into this size.
const MAX_BYTES: usize = 16 << 20;

/// The samples of a run, in order of time. Their number is limited.
#[derive(Debug)]
pub struct History {
    samples: Vec<Sample>,
    /// Memory that all samples occupy, in bytes; `None` for samples of this host, whose memory is not limited.
    bytes: Option<usize>,
    /// Number of samples that are merged into one kept sample.
    stride: u64,
    /// Number of samples that have been merged into the last kept sample so far.
    taken: u64,
}

/// The samples of a run, their sources and their cost: the results of a monitor when it ends.
#[derive(Debug, Default)]
pub(crate) struct Observations {
    /// The samples. Their times are converted to this host's clock.
    pub history: History,
    /// For each kind of metrics, its source or the reason why it is absent.
    pub sources: BTreeMap<String, String>,
    /// The cost of taking the samples.
    pub overhead: Overhead,
    /// Offset between the clocks of the two hosts; `None` if the samples are from this host.
    pub clock: Option<ClockOffset>,
    /// The reason why the stream of samples broke off; `None` if it did not break off.
    pub broken: Option<String>,
}

impl Default for History {
    fn default() -> History {
        History { samples: Vec::new(), bytes: None, stride: 1, taken: 1 }
    }
}

impl History {
    /// Creates an empty history for samples from another host. Their size is limited, because that host may send
    /// arbitrarily large samples.
    pub(crate) fn with_byte_limit() -> History {
        History { bytes: Some(0), ..History::default() }
    }

    /// Adds the next sample.
    pub fn push(&mut self, sample: Sample) {
        if let [_, .., last] = self.samples.as_mut_slice()
            && self.taken < self.stride
        {
            let before = self.bytes.map(|bytes| bytes - size_of_all(last));
            merge(last, sample);
            self.bytes = before.map(|bytes| bytes + size_of_all(last));
            self.taken += 1;
        } else if self.samples.len() == MAX_SAMPLES {
            self.thin();
            self.push(sample);
        } else {
            self.bytes = self.bytes.map(|bytes| bytes + size_of_all(&sample));
            self.samples.push(sample);
            self.taken = 1;
        }
        while self.bytes.is_some_and(|bytes| bytes > MAX_BYTES) && self.samples.len() > 2 {
            self.thin();
        }
    }

    /// Adds the last sample of the run. If it follows the previous sample by less than half of the preceding interval,
    /// the two samples are merged.
    pub fn close(&mut self, sample: Sample) {
        match self.samples.as_mut_slice() {
            [.., before, last] if 2 * (sample.at - last.at).0 < (last.at - before.at).0 => {
                merge(last, sample);
            }
            _ => self.push(sample),
        }
    }

    /// The latest sample.
    pub(crate) fn last(&self) -> Option<&Sample> {
        self.samples.last()
    }

    /// Converts the time of each sample to another clock. `at` converts one time.
    pub(crate) fn convert_times(&mut self, at: impl Fn(Nanos) -> Nanos) {
        for sample in &mut self.samples {
            sample.at = at(sample.at);
        }
    }

    /// Summarizes the samples inside a window (start, end), or all samples if `window` is `None`. The `t_s` of each
    /// interval is the time since `epoch`. All times are `CLOCK_MONOTONIC`. The caller fills in `sources` and
    /// `overhead`.
    pub fn summary(&self, epoch: Nanos, window: Option<(Nanos, Nanos)>) -> Server {
        summarize(&self.samples, epoch, window)
    }

    /// Computes the rates between the first and the last sample.
    pub fn rates(&self) -> Rates {
        Rates::over(&self.samples)
    }

    /// Halves the number of samples: keeps the first sample, and merges each further pair of samples into one.
    fn thin(&mut self) {
        let mut samples = std::mem::take(&mut self.samples).into_iter();
        self.samples.extend(samples.next());
        while let Some(mut kept) = samples.next() {
            self.taken = self.stride;
            if let Some(next) = samples.next() {
                merge(&mut kept, next);
                self.taken = 2 * self.stride;
            }
            self.samples.push(kept);
        }
        self.bytes = self.bytes.map(|_| self.samples.iter().map(size_of_all).sum());
        self.stride *= 2;
    }
}

/// Merges two samples into `kept`: the sample with more groups or, if both have the same number of groups, the later
/// sample. For each port, `kept` gets the longest and the fullest accept queue of both samples.
fn merge(kept: &mut Sample, mut next: Sample) {
    if next.count() >= kept.count() {
        std::mem::swap(kept, &mut next);
    }
    for_each_group!(G => if let (Some(kept), Some(dropped)) = (G::get_mut(&mut kept.groups), G::get(&next.groups)) {
        G::merge(kept, dropped);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ListenerSample;
    use crate::fixture::samples_of_run;

    fn listener(sample: &mut Sample) -> &mut ListenerSample {
        sample.groups.connections.as_mut().unwrap().ports[0].listener.as_mut().unwrap()
    }

    fn sample(k: u64, accept_queue_max: u64) -> Sample {
        let mut sample = Sample { at: Nanos::from_millis(10 * k), ..samples_of_run(0).remove(0) };
        listener(&mut sample).accept_queue_max = accept_queue_max;
        sample
    }

    #[test]
    fn a_long_run_keeps_few_samples_and_the_longest_queue() {
        let mut history = History::default();
        let (total, peak) = (10 * MAX_SAMPLES as u64, 8 * MAX_SAMPLES as u64 / 10);
        for k in 0..total {
            history.push(sample(k, if k == peak { 77 } else { 1 }));
        }
        let samples = &mut history.samples;
        assert!(samples.len() > MAX_SAMPLES / 4 && samples.len() <= MAX_SAMPLES, "{}", samples.len());
        let last = Nanos::from_millis(10 * (total - 1));
        assert_eq!((samples[0].at, samples[samples.len() - 1].at), (Nanos::ZERO, last));
        assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
        let inner = &samples[1..samples.len() - 1];
        assert!(
            inner.windows(2).all(|pair| pair[1].at - pair[0].at == Nanos::from_millis(160)),
            "the kept samples must be evenly spaced"
        );
        assert_eq!(samples.iter_mut().filter_map(|s| (listener(s).accept_queue_max == 77).then_some(())).count(), 1);
    }

    #[test]
    fn the_last_sample_makes_an_interval_of_its_own_or_ends_the_one_before() {
        let mut history = History::default();
        for k in [0, 100, 200] {
            history.push(sample(k, k));
        }
        history.close(sample(240, 1));
        assert_eq!(history.samples.len(), 3, "the last sample replaces the previous one, which is too close");
        let mut last = history.samples.pop().unwrap();
        assert_eq!((last.at, listener(&mut last).accept_queue_max), (Nanos::from_millis(2400), 200));
        history.close(sample(180, 1));
        assert_eq!(history.samples.len(), 3);
    }

    #[test]
    fn a_group_that_is_read_less_often_is_not_thinned_away() {
        let mut history = History::default();
        let total = 5 * MAX_SAMPLES as u64;
        for k in 0..=total {
            let mut sample = sample(k, 1);
            sample.groups.process = sample.groups.process.filter(|_| k % 5 == 0);
            history.push(sample);
        }
        let having = history.samples.iter().filter(|sample| sample.groups.process.is_some()).count();
        assert!(having > MAX_SAMPLES / 2, "{having}");
        let process = history.rates().process.unwrap();
        assert_eq!((process.from, process.to), (Nanos::ZERO, Nanos::from_millis(10 * total)));
        let seen = history.summary(Nanos::ZERO, None).intervals;
        assert!(seen.iter().filter(|interval| interval.process_cores.is_some()).count() > MAX_SAMPLES / 2);
    }
}
