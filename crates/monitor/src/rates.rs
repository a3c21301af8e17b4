//! From raw samples to figures: pure functions of two samples.

use crate::connections::ConnectionsSample;
use crate::kernel::KernelSample;
use crate::network::NetworkSample;
use crate::program::{Membership, ProgramSample};
use crate::sampler::Sample;
use brimful_core::Nanos;
use brimful_core::server::{Connections, Kernel, Network, Process};

/// What happened in each group up to a sample; `None` where the sample lacks the group, or is the first to have it, or
/// the first of another network namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// The machine.
    pub kernel: Option<Stretch<Kernel>>,
    /// Each program that has figures of its own, in the order of the selectors.
    pub process: Option<Stretch<Vec<Process>>>,
    /// The network.
    pub network: Option<Stretch<Network>>,
    /// The server's ports.
    pub connections: Option<Stretch<Connections>>,
}

/// Figures of a stretch of time. Both ends are `CLOCK_MONOTONIC`, which stands still while the machine is suspended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch<T> {
    /// Its beginning.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// How long the machine was suspended in between, which is no part of it.
    pub suspended: Nanos,
    /// The figures.
    pub figures: T,
}

/// Derives figures from samples as they come. Each group's stretch begins at the last sample that had it, so that
/// groups may be sampled at different times.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    netns: Option<u64>,
    kernel: Option<(Moment, KernelSample)>,
    process: Option<(Moment, Vec<ProgramSample>)>,
    network: Option<(Moment, NetworkSample)>,
    connections: Option<(Moment, ConnectionsSample)>,
}

/// When a sample was taken.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Nanos,
    suspended: Nanos,
}

impl Rates {
    /// From an earlier sample to a later one.
    pub fn between(from: &Sample, to: &Sample) -> Rates {
        let mut tracker = Tracker::default();
        tracker.advance(from);
        tracker.advance(to)
    }

    /// Takes over the groups that newer figures have.
    pub fn update(&mut self, newer: Rates) {
        let Rates { kernel, process, network, connections } = newer;
        self.kernel = kernel.or(self.kernel.take());
        self.process = process.or(self.process.take());
        self.network = network.or(self.network.take());
        self.connections = connections.or(self.connections.take());
    }

    /// Over many samples: of each group from the first that has it to the last.
    pub(crate) fn over(samples: &[Sample]) -> Rates {
        // Another network namespace has counters of its own: those of the last one count.
        let netns = samples.last().and_then(|sample| sample.netns);
        let arrival = samples.iter().rposition(|sample| sample.netns != netns).map_or(0, |elsewhere| elsewhere + 1);
        let there = &samples[arrival..];
        Rates {
            kernel: outermost(samples, |s| s.kernel.as_ref(), |a, b, over| b.since(a, over)),
            process: outermost(samples, |s| s.process.as_ref(), |a, b, over| programs_since(a, b, over)),
            network: outermost(there, |s| s.network.as_ref(), |a, b, over| b.since(a, over)),
            connections: outermost(
                there,
                |s| s.connections.as_ref(),
                |a, b, over| b.with_last_listeners(there).since(a, over),
            ),
        }
    }
}

impl<T> Stretch<T> {
    /// How long it is.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}

impl Tracker {
    /// What happened up to this sample.
    pub fn advance(&mut self, sample: &Sample) -> Rates {
        // Another network namespace has counters of its own.
        if self.netns != sample.netns {
            self.netns = sample.netns;
            (self.network, self.connections) = (None, None);
        }
        let at = Moment::of(sample);
        Rates {
            kernel: step(&mut self.kernel, at, sample.kernel.as_ref(), |a, b, over| b.since(a, over)),
            process: step(&mut self.process, at, sample.process.as_ref(), |a, b, over| programs_since(a, b, over)),
            network: step(&mut self.network, at, sample.network.as_ref(), |a, b, over| b.since(a, over)),
            connections: step(&mut self.connections, at, sample.connections.as_ref(), |a, b, over| b.since(a, over)),
        }
    }
}

impl Moment {
    fn of(sample: &Sample) -> Moment {
        Moment { at: sample.at, suspended: sample.suspended }
    }

    fn until<T>(self, end: Moment, since: impl FnOnce(Nanos) -> T) -> Stretch<T> {
        /// The two clocks are read one after the other: less than this may lie between the readings.
        const LEAST: Nanos = Nanos::from_millis(100);
        let suspended = Some(end.suspended - self.suspended).filter(|&suspended| suspended >= LEAST);
        let figures = since(end.at - self.at);
        Stretch { from: self.at, to: end.at, suspended: suspended.unwrap_or_default(), figures }
    }
}

fn programs_since(earlier: &[ProgramSample], later: &[ProgramSample], over: Nanos) -> Vec<Process> {
    let known = earlier.iter().zip(later).filter(|(_, later)| later.membership == Membership::Own);
    known.map(|(earlier, later)| later.since(earlier, over)).collect()
}

/// Derives one group's figures and remembers the sample.
fn step<S: Clone, T>(
    last: &mut Option<(Moment, S)>,
    at: Moment,
    sample: Option<&S>,
    since: impl FnOnce(&S, &S, Nanos) -> T,
) -> Option<Stretch<T>> {
    let sample = sample?;
    let (before, earlier) = last.replace((at, sample.clone()))?;
    Some(before.until(at, |over| since(&earlier, sample, over)))
}

fn outermost<S, T>(
    samples: &[Sample],
    group: fn(&Sample) -> Option<&S>,
    since: impl FnOnce(&S, &S, Nanos) -> T,
) -> Option<Stretch<T>> {
    let mut having = samples.iter().filter_map(|sample| Some((Moment::of(sample), group(sample)?)));
    let (from, first) = having.next()?;
    let (to, last) = having.next_back().unwrap_or((from, first));
    Some(from.until(to, |over| since(first, last, over)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::run;

    #[test]
    fn rates_are_differences_over_time() {
        let samples = run(2);
        let rates = Rates::between(&samples[1], &samples[2]);
        let kernel = rates.kernel.unwrap();
        assert_eq!(kernel.length(), Nanos::from_secs(1));
        let cpu = kernel.figures.cpu.unwrap();
        assert_eq!((cpu.user, cpu.system, cpu.idle, cpu.steal), (0.1, 0.15, 0.7, 0.05));
        assert_eq!(kernel.figures.context_switches_per_s, Some(500.0));
        let process = &rates.process.unwrap().figures[0];
        assert!((process.cores - 0.2).abs() < 1e-9 && (process.cpu_s_user - 0.1).abs() < 1e-9);
        let listener = rates.connections.unwrap().figures.listener.unwrap();
        assert_eq!((listener.accepted_per_s, listener.dropped_per_s), (Some(40.0), 3.0));
    }

    #[test]
    fn a_group_that_is_sampled_less_often_has_longer_stretches() {
        let mut samples = run(4);
        for skipped in [1, 3] {
            samples[skipped].process = None;
        }
        let mut tracker = Tracker::default();
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
        let mut samples = run(2);
        samples[2].process = None;
        samples[2].suspended = Nanos::from_secs(60);
        let mut tracker = Tracker::default();
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
        let mut samples = run(4);
        for sample in &mut samples[2..] {
            sample.netns = Some(7);
        }
        let mut tracker = Tracker::default();
        let rates: Vec<Rates> = samples.iter().map(|sample| tracker.advance(sample)).collect();
        assert!(rates[1].connections.is_some() && rates[2].connections.is_none() && rates[3].connections.is_some());
        assert!(rates[2].kernel.is_some() && rates[2].process.is_some());
        let over = Rates::over(&samples);
        assert_eq!(over.kernel.unwrap().length(), Nanos::from_secs(4));
        let connections = over.connections.unwrap();
        assert_eq!((connections.from, connections.to), (Nanos::from_secs(12), Nanos::from_secs(14)));
    }
}
