//! Derives metrics from raw samples. The metrics of a period are computed by pure functions of its samples.

use crate::group::{Group, PeriodMetrics};
use crate::groups::{GroupName, GroupValue, ListedGroup, PerGroup};
use crate::sampler::Sample;
use brimful_core::Nanos;
use brimful_core::server::LogLine;
use serde::Serialize;

/// The metrics of each group over a period that ends at a sample. A group is `None` if this sample does not contain the
/// group, or is the first sample to contain it. A group that belongs to a network namespace is also `None` at the first
/// sample of another namespace.
pub type Rates = PerGroup<GroupMetrics>;

/// Marker type. With it as the parameter of [`PerGroup`], the value of each group is the group's metrics over a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupMetrics;

/// Derives metrics from samples as they arrive. The period of each group begins at the last sample that contained it,
/// so groups may be sampled at different times.
#[derive(Clone, Debug, Default)]
pub struct MetricsTracker {
    netns: Option<u64>,
    last: PerGroup<LastSamples>,
}

/// Defines the type of each group's value in [`MetricsTracker`]: the group's last sample.
#[derive(Clone, Debug, Default)]
struct LastSamples;

/// The time at which a sample was taken, by the clock that stops while the machine is suspended, and the suspended
/// time.
#[derive(Clone, Copy, Debug)]
struct SampleTime {
    at: Nanos,
    suspended: Nanos,
}

impl GroupValue for GroupMetrics {
    type Value<G: Group> = Option<PeriodMetrics<G::Metrics>>;
}

impl GroupValue for LastSamples {
    type Value<G: Group> = Option<(SampleTime, G::Sample)>;
}

impl Rates {
    /// The metrics of the period from an earlier sample to a later sample.
    pub fn between(from: &Sample, to: &Sample) -> Rates {
        let mut tracker = MetricsTracker::default();
        tracker.advance(from);
        tracker.advance(to)
    }

    /// The metrics over many samples. The period of a group is from the first to the last sample that contains the
    /// group.
    pub(crate) fn over(samples: &[Sample]) -> Rates {
        per_group!(G => over::<G>(samples))
    }

    /// Replaces the metrics of the groups that `newer` contains.
    pub fn update(&mut self, mut newer: Rates) {
        for_each_group!(G => if let Some(newer) = G::get_mut(&mut newer).take() {
            *G::get_mut(self) = Some(newer);
        });
    }

    /// Whether no group has metrics.
    pub fn is_empty(&self) -> bool {
        let mut empty = true;
        for_each_group!(G => empty &= G::get(self).is_none());
        empty
    }

    /// Time for which the machine was suspended during the period.
    pub fn suspended(&self) -> Nanos {
        let mut longest = Nanos::ZERO;
        for_each_group!(G => longest = longest.max(G::get(self).as_ref().map_or(Nanos::ZERO, |period| period.suspended)));
        longest
    }

    /// For each group that has metrics, one line of JSON for the group's log. `at` is the end of the period by the wall
    /// clock, as in [`LogLine::at`].
    pub fn log_lines(&self, at: &str) -> Vec<(GroupName, String)> {
        let mut lines = Vec::new();
        for_each_group!(G => lines.extend(G::get(self).as_ref().map(|period| (G::NAME, log_line(at, period)))));
        lines
    }
}

impl MetricsTracker {
    /// Derives the metrics of each group for the period from the group's previous sample to this sample.
    pub fn advance(&mut self, sample: &Sample) -> Rates {
        // Counters of two network namespaces cannot be compared.
        if self.netns != sample.netns {
            self.netns = sample.netns;
            for_each_group!(G => if G::IS_PER_NETNS {
                *G::get_mut(&mut self.last) = None;
            });
        }
        let at = SampleTime::from_sample(sample);
        per_group!(G => step::<G>(G::get_mut(&mut self.last), at, G::get(&sample.groups).as_ref()))
    }
}

impl SampleTime {
    fn from_sample(sample: &Sample) -> SampleTime {
        SampleTime { at: sample.at, suspended: sample.suspended }
    }

    fn until<T>(self, end: SampleTime, since: impl FnOnce(Nanos) -> T) -> PeriodMetrics<T> {
        /// Minimum difference that counts as a suspension. The two clocks are read one after the other, so a smaller
        /// difference may be the time between their readings.
        const MIN_SUSPENDED: Nanos = Nanos::from_millis(100);
        let suspended = Some(end.suspended - self.suspended).filter(|&suspended| suspended >= MIN_SUSPENDED);
        let metrics = since(end.at - self.at);
        PeriodMetrics { from: self.at, to: end.at, suspended: suspended.unwrap_or_default(), metrics }
    }
}

fn over<G: ListedGroup>(samples: &[Sample]) -> Option<PeriodMetrics<G::Metrics>> {
    // Counters of two network namespaces cannot be compared, so only samples of the last namespace are used.
    let netns = samples.last()?.netns;
    let elsewhere = |sample: &Sample| G::IS_PER_NETNS && sample.netns != netns;
    let arrival = samples.iter().rposition(elsewhere).map_or(0, |last| last + 1);
    let having = samples[arrival..].iter().filter_map(|sample| Some((sample, G::get(&sample.groups).as_ref()?)));
    let (having, of_group): (Vec<&Sample>, Vec<&G::Sample>) = having.unzip();
    let (from, to) = (SampleTime::from_sample(having.first()?), SampleTime::from_sample(having.last()?));
    Some(from.until(to, |over| G::over(&of_group, over)))
}

/// Derives one group's metrics since the last sample, and remembers the new sample.
fn step<G: Group>(
    last: &mut Option<(SampleTime, G::Sample)>,
    at: SampleTime,
    sample: Option<&G::Sample>,
) -> Option<PeriodMetrics<G::Metrics>> {
    let sample = sample?;
    let (before, earlier) = last.replace((at, sample.clone()))?;
    Some(before.until(at, |over| G::since(&earlier, sample, over)))
}

fn log_line<T: Serialize>(at: &str, period: &PeriodMetrics<T>) -> String {
    let line = LogLine {
        at: at.to_owned(),
        t_s: period.to.as_secs_f64(),
        length_s: period.length().as_secs_f64(),
        suspended_s: period.suspended.as_secs_f64(),
        figures: &period.metrics,
    };
    // Serializing cannot fail: all maps have text keys.
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::samples_of_run;

    #[test]
    fn rates_are_differences_over_time() {
        let samples = samples_of_run(2);
        let rates = Rates::between(&samples[1], &samples[2]);
        let kernel = rates.kernel.unwrap();
        assert_eq!(kernel.length(), Nanos::from_secs(1));
        let cpu = kernel.metrics.cpu.unwrap();
        assert_eq!((cpu.user, cpu.system, cpu.idle, cpu.steal), (0.1, 0.15, 0.7, 0.05));
        assert_eq!(kernel.metrics.context_switches_per_s, Some(500.0));
        let process = &rates.process.unwrap().metrics.process[0];
        assert!((process.cores - 0.2).abs() < 1e-9 && (process.cpu_s_user - 0.1).abs() < 1e-9);
        let listener = rates.connections.unwrap().metrics.listener.unwrap();
        assert_eq!((listener.accepted_per_s, listener.dropped_per_s), (Some(40.0), 3.0));
    }

    #[test]
    fn a_group_that_is_sampled_less_often_has_longer_periods() {
        let mut samples = samples_of_run(4);
        for skipped in [1, 3] {
            samples[skipped].groups.process = None;
        }
        let mut tracker = MetricsTracker::default();
        let lengths = samples.iter().map(|sample| {
            let rates = tracker.advance(sample);
            let seconds = |length: Nanos| length.0 / 1_000_000_000;
            (rates.kernel.map(|s| seconds(s.length())), rates.process.map(|s| seconds(s.length())))
        });
        let expected = [(None, None), (Some(1), None), (Some(1), Some(2)), (Some(1), None), (Some(1), Some(2))];
        assert_eq!(lengths.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn newer_figures_take_the_place_of_older_ones_group_by_group() {
        let mut samples = samples_of_run(2);
        samples[2].groups.process = None;
        samples[2].suspended = Nanos::from_secs(60);
        let mut tracker = MetricsTracker::default();
        tracker.advance(&samples[0]);
        let mut current = tracker.advance(&samples[1]);
        current.update(tracker.advance(&samples[2]));
        let (kernel, process) = (current.kernel.unwrap(), current.process.unwrap());
        assert_eq!(
            (kernel.to, kernel.suspended, kernel.length()),
            (Nanos::from_secs(12), Nanos::from_secs(60), Nanos::from_secs(1))
        );
        assert_eq!((process.to, process.suspended), (Nanos::from_secs(11), Nanos::ZERO));
    }

    #[test]
    fn two_network_namespaces_are_not_compared() {
        let mut samples = samples_of_run(4);
        for sample in &mut samples[2..] {
            sample.netns = Some(7);
        }
        let mut tracker = MetricsTracker::default();
        let rates: Vec<Rates> = samples.iter().map(|sample| tracker.advance(sample)).collect();
        assert!(rates[1].connections.is_some() && rates[2].connections.is_none() && rates[3].connections.is_some());
        assert!(rates[2].kernel.is_some() && rates[2].process.is_some());
        let over = Rates::over(&samples);
        assert_eq!(over.kernel.unwrap().length(), Nanos::from_secs(4));
        let connections = over.connections.unwrap();
        assert_eq!((connections.from, connections.to), (Nanos::from_secs(12), Nanos::from_secs(14)));
    }
}
