//! From raw samples to figures: pure functions of two samples, and the summary of a run.
//!
//! Shares are fractions of the watched CPUs' time; `cores` are CPU seconds per second.

use crate::sampler::Sample;
use brimful_core::Nanos;
use brimful_core::record::{CpuShares, Listener, Process, Server, ServerInterval};

/// What happened between two samples. A group that one of them lacks is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// The time between them.
    pub length: Nanos,
    /// The CPUs that were watched.
    pub cpu: Option<CpuShares>,
    /// Whole machine.
    pub context_switches_per_s: Option<f64>,
    /// Each program, in the order of the selectors.
    pub programs: Vec<ProgramRates>,
    /// The listening socket.
    pub listener: Option<ListenerRates>,
}

/// One program between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgramRates {
    /// CPU seconds per second.
    pub cores: f64,
    /// Of them, in user mode.
    pub cores_user: f64,
    /// Voluntary and not.
    pub context_switches_per_s: f64,
}

/// The listening socket between two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListenerRates {
    /// Connections established, whole network namespace.
    pub accepted_per_s: Option<f64>,
    /// Dropped by this listener.
    pub dropped_per_s: f64,
}

impl Rates {
    /// From an earlier sample to a later one.
    pub fn between(from: &Sample, to: &Sample) -> Rates {
        let length = to.at - from.at;
        let seconds = length.as_secs_f64();
        let per_s = |from: u64, to: u64| if seconds > 0.0 { to.saturating_sub(from) as f64 / seconds } else { 0.0 };
        let system = from.system.zip(to.system);
        let listener = from.listener.zip(to.listener);
        Rates {
            length,
            cpu: system.map(|(from, to)| {
                let ticks = |of: fn(&crate::CpuTicks) -> u64| of(&to.cpu).saturating_sub(of(&from.cpu)) as f64;
                shares([ticks(|t| t.user), ticks(|t| t.system), ticks(|t| t.idle), ticks(|t| t.steal)])
            }),
            context_switches_per_s: system.map(|(from, to)| per_s(from.context_switches, to.context_switches)),
            programs: (from.programs.iter().zip(&to.programs))
                .map(|(from, to)| {
                    let used = to.cpu.minus(from.cpu);
                    ProgramRates {
                        cores: per_s(0, used.total.0) / 1e9,
                        cores_user: per_s(0, used.user.0) / 1e9,
                        context_switches_per_s: per_s(from.context_switches, to.context_switches),
                    }
                })
                .collect(),
            listener: listener.map(|(from, to)| ListenerRates {
                accepted_per_s: from.passive_opens.zip(to.passive_opens).map(|(from, to)| per_s(from, to)),
                dropped_per_s: per_s(from.drops, to.drops),
            }),
        }
    }
}

/// What was seen inside a window (everything, if there is none), and every interval. `programs` are the names and
/// processes at the end, in the order of the selectors; sources, overhead and CPUs are left to the caller.
///
/// Rates are those between the first and the last sample inside the window. Totals are these rates over the window's
/// own length, so that dividing them by it is right.
pub(crate) fn summarize(
    samples: &[Sample],
    programs: Vec<(String, Vec<u32>)>,
    epoch: Nanos,
    window: Option<(Nanos, Nanos)>,
) -> Server {
    let mut server = Server {
        intervals: samples.windows(2).map(|pair| interval(&pair[0], &pair[1], epoch)).collect(),
        ..Server::default()
    };
    let inside = inside(samples, window);
    let (Some(first), Some(last)) = (inside.first(), inside.last()) else { return server };
    let rates = Rates::between(first, last);
    let seconds = window.map_or(rates.length, |(start, end)| end - start).as_secs_f64();
    server.cpu = rates.cpu.unwrap_or_default();
    server.context_switches_per_s = rates.context_switches_per_s.unwrap_or_default();
    server.process = (programs.into_iter().zip(&rates.programs).zip(&last.programs))
        .map(|(((name, pids), rates), last)| Process {
            name,
            pids,
            cpu_s: rates.cores * seconds,
            cpu_s_user: rates.cores_user * seconds,
            cpu_s_system: (rates.cores - rates.cores_user) * seconds,
            rss_bytes: last.rss_bytes,
            context_switches: (rates.context_switches_per_s * seconds).round() as u64,
        })
        .collect();
    server.listener = rates.listener.zip(last.listener).map(|(rates, last)| {
        let accepted = rates.accepted_per_s.unwrap_or_default();
        Listener {
            syn_per_s: accepted + rates.dropped_per_s,
            accepted_per_s: accepted,
            dropped_per_s: rates.dropped_per_s,
            accept_queue_max: inside
                .iter()
                .filter_map(|s| Some(s.listener?.accept_queue_max))
                .max()
                .unwrap_or_default(),
            backlog: last.backlog,
        }
    });
    server
}

fn interval(from: &Sample, to: &Sample, epoch: Nanos) -> ServerInterval {
    let rates = Rates::between(from, to);
    ServerInterval {
        // Negative before the load began.
        t_s: (from.at.0 as i128 - epoch.0 as i128) as f64 / 1e9,
        length_s: rates.length.as_secs_f64(),
        cpu: rates.cpu.unwrap_or_default(),
        process_cores: rates.programs.iter().map(|program| program.cores).sum(),
        process_cores_user: rates.programs.iter().map(|program| program.cores_user).sum(),
        context_switches_per_s: rates.context_switches_per_s.unwrap_or_default(),
        accept_queue: to.listener.map(|listener| listener.accept_queue),
        dropped_per_s: rates.listener.map(|listener| listener.dropped_per_s),
        accepted_per_s: rates.listener.and_then(|listener| listener.accepted_per_s),
    }
}

/// The samples inside a window, or the nearest two where it holds fewer.
fn inside(samples: &[Sample], window: Option<(Nanos, Nanos)>) -> &[Sample] {
    let Some((start, end)) = window else { return samples };
    let mut first = samples.partition_point(|sample| sample.at < start);
    let mut last = samples.partition_point(|sample| sample.at <= end).max(first);
    while last - first < 2.min(samples.len()) {
        first = first.saturating_sub(1);
        last = (last + 1).min(samples.len());
    }
    &samples[first..last]
}

/// All zero where no tick fell between the two samples.
fn shares(ticks: [f64; 4]) -> CpuShares {
    let sum: f64 = ticks.iter().sum();
    let [user, system, idle, steal] = ticks.map(|part| if sum > 0.0 { part / sum } else { 0.0 });
    CpuShares { user, system, idle, steal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuTicks, CpuTime, ListenerSample, ProgramSample, SystemSample};
    use proptest::prelude::*;

    /// One sample per second, seconds 10 to 10 + n: in second k the program uses k tenths of a core, half in user mode.
    fn run(n: u64) -> Vec<Sample> {
        (0..=n)
            .map(|k| Sample {
                at: Nanos::from_secs(10 + k),
                system: Some(SystemSample {
                    cpu: CpuTicks { user: 20 * k, system: 30 * k, idle: 140 * k, steal: 10 * k },
                    context_switches: 500 * k,
                }),
                programs: vec![ProgramSample {
                    cpu: CpuTime {
                        total: Nanos::from_millis(50 * k * (k + 1)),
                        user: Nanos::from_millis(25 * k * (k + 1)),
                    },
                    rss_bytes: 1000 + k,
                    context_switches: 7 * k,
                }],
                listener: Some(ListenerSample {
                    accept_queue: k,
                    accept_queue_max: k,
                    backlog: 511,
                    drops: 3 * k,
                    passive_opens: Some(100 + 40 * k),
                }),
            })
            .collect()
    }

    fn names() -> Vec<(String, Vec<u32>)> {
        vec![("nginx".to_owned(), vec![7, 8])]
    }

    #[test]
    fn rates_are_differences_over_time() {
        let samples = run(2);
        let rates = Rates::between(&samples[1], &samples[2]);
        assert_eq!(rates.length, Nanos::from_secs(1));
        assert_eq!(rates.cpu.unwrap(), CpuShares { user: 0.1, system: 0.15, idle: 0.7, steal: 0.05 });
        assert_eq!(rates.context_switches_per_s, Some(500.0));
        assert!((rates.programs[0].cores - 0.2).abs() < 1e-9 && (rates.programs[0].cores_user - 0.1).abs() < 1e-9);
        let listener = rates.listener.unwrap();
        assert_eq!((listener.accepted_per_s, listener.dropped_per_s), (Some(40.0), 3.0));
    }

    #[test]
    fn a_window_takes_its_own_samples_and_its_own_length() {
        let window = Some((Nanos::from_millis(11_500), Nanos::from_millis(14_500)));
        let server = summarize(&run(6), names(), Nanos::from_secs(11), window);
        let process = &server.process[0];
        // Samples at 12, 13 and 14 s: 0.3 and 0.4 cores, so 0.35 on average, over 3 s.
        assert!((process.cpu_s - 1.05).abs() < 1e-9, "{}", process.cpu_s);
        assert!((process.cpu_s_user + process.cpu_s_system - process.cpu_s).abs() < 1e-9);
        assert_eq!((process.name.as_str(), process.rss_bytes, process.context_switches), ("nginx", 1004, 21));
        let listener = server.listener.unwrap();
        assert_eq!((listener.syn_per_s, listener.accept_queue_max, listener.backlog), (43.0, 4, 511));
        assert_eq!(server.intervals.len(), 6);
        assert_eq!((server.intervals[0].t_s, server.intervals[1].t_s), (-1.0, 0.0));
    }

    #[test]
    fn a_window_between_samples_or_beyond_them_takes_the_nearest() {
        for (from, to, first, last) in
            [(11.2, 11.8, 11, 12), (50.0, 60.0, 15, 16), (1.0, 2.0, 10, 11), (12.0, 12.0, 11, 13)]
        {
            let samples = run(6);
            let taken = inside(&samples, Some((Nanos::from_secs_f64(from), Nanos::from_secs_f64(to))));
            let ends = (taken.first().unwrap().at, taken.last().unwrap().at);
            assert_eq!(ends, (Nanos::from_secs(first), Nanos::from_secs(last)), "{from} to {to}");
        }
        assert_eq!(summarize(&[], names(), Nanos::ZERO, Some((Nanos(1), Nanos(2)))), Server::default());
        assert_eq!(summarize(&run(0), names(), Nanos::ZERO, None).process[0].cpu_s, 0.0);
    }

    #[test]
    fn what_a_sample_lacks_is_absent_and_not_zero() {
        let mut samples = run(2);
        samples[1].system = None;
        samples[1].listener = None;
        let rates = Rates::between(&samples[0], &samples[1]);
        assert_eq!((rates.cpu, rates.context_switches_per_s, rates.listener), (None, None, None));
        let server = summarize(&samples, names(), Nanos::ZERO, None);
        assert_eq!((server.intervals[0].accept_queue, server.intervals[1].accept_queue), (None, Some(2)));
        assert_eq!(server.listener.unwrap().dropped_per_s, 3.0);
    }

    proptest! {
        #[test]
        fn shares_make_one_even_when_a_counter_runs_backwards(a in any::<[u32; 4]>(), b in any::<[u32; 4]>()) {
            let sample = |[user, system, idle, steal]: [u32; 4], at| Sample {
                at,
                system: Some(SystemSample {
                    cpu: CpuTicks { user: user.into(), system: system.into(), idle: idle.into(), steal: steal.into() },
                    context_switches: 0,
                }),
                ..Sample::default()
            };
            let cpu = Rates::between(&sample(a, Nanos(0)), &sample(b, Nanos(5))).cpu.unwrap();
            let parts = [cpu.user, cpu.system, cpu.idle, cpu.steal];
            prop_assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)));
            let sum: f64 = parts.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-9 || (sum == 0.0 && a.iter().zip(b).all(|(a, b)| *a >= b)));
        }

        #[test]
        fn intervals_of_a_run_add_up_to_the_whole(n in 1u64..20) {
            let samples = run(n);
            let server = summarize(&samples, names(), Nanos::ZERO, None);
            let sum: f64 = server.intervals.iter().map(|i| i.process_cores * i.length_s).sum();
            prop_assert!((sum - server.process[0].cpu_s).abs() < 1e-9 * sum.max(1.0));
        }
    }
}
