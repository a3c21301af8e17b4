//! Summarizes the samples of a run as the `server` object of a Record.

use crate::group::Group;
use crate::groups::ListedGroup;
use crate::rates::{MetricsTracker, Rates};
use crate::sampler::Sample;
use brimful_core::Nanos;
use brimful_core::server::{Server, ServerInterval};

/// Summarizes the samples inside a window (all samples if `window` is `None`), and lists every interval. The caller
/// fills in the fields `sources` and `overhead`.
///
/// The rates of a group are between the first and the last sample inside the window that contain the group. The totals
/// of a program are its rates times the window's length, so total divided by length yields the rate again.
pub(crate) fn summarize(samples: &[Sample], epoch: Nanos, window: Option<(Nanos, Nanos)>) -> Server {
    let mut server = Server { intervals: intervals(samples, epoch), ..Server::default() };
    let inside = inside(samples, window);
    let mut rates = Rates::over(inside);
    for_each_group!(G => if let Some(period) = G::get_mut(&mut rates).take() {
        let samples: Vec<_> = inside.iter().filter_map(|sample| G::get(&sample.groups).as_ref()).collect();
        let length = window.map_or(period.length(), |(start, end)| end - start);
        G::put(period, &samples, length, &mut server);
    });
    server
}

/// The time series: an interval for each pair of consecutive samples. A group that is read less often than others
/// appears only in the intervals that end with a sample of this group.
fn intervals(samples: &[Sample], epoch: Nanos) -> Vec<ServerInterval> {
    let mut tracker = MetricsTracker::default();
    let Some((first, rest)) = samples.split_first() else { return Vec::new() };
    tracker.advance(first);
    let mut from = first.at;
    let next = |sample| {
        let interval = interval(from, sample, &tracker.advance(sample), epoch);
        from = sample.at;
        interval
    };
    rest.iter().map(next).collect()
}

fn interval(from: Nanos, to: &Sample, rates: &Rates, epoch: Nanos) -> ServerInterval {
    let mut interval = ServerInterval {
        // Negative for samples before the load began.
        t_s: (from.0 as i128 - epoch.0 as i128) as f64 / 1e9,
        length_s: (to.at - from).as_secs_f64(),
        ..ServerInterval::default()
    };
    for_each_group!(G => if let (Some(period), Some(last)) = (G::get(rates), G::get(&to.groups)) {
        G::put_interval(period, last, &mut interval);
    });
    interval
}

/// The samples inside a window. If there are fewer than two, the nearest samples outside the window are added.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::samples_of_run;
    use brimful_core::server::{AcceptQueue, State};
    use proptest::prelude::*;

    #[test]
    fn a_window_takes_its_own_samples_and_its_own_length() {
        let window = Some((Nanos::from_millis(11_500), Nanos::from_millis(14_500)));
        let server = summarize(&samples_of_run(6), Nanos::from_secs(11), window);
        let process = &server.process[0];
        // The window of 3 s contains the samples at 12, 13 and 14 s. Between them the program used 0.3 and 0.4 cores,
        // so 0.35 on average.
        assert!((process.cpu_s - 1.05).abs() < 1e-9, "{}", process.cpu_s);
        assert!((process.cpu_s_user + process.cpu_s_system - process.cpu_s).abs() < 1e-9);
        assert_eq!((process.name.as_str(), process.rss_bytes, process.context_switches), ("nginx", 1004, Some(21)));
        assert_eq!(process.pids, [7, 8]);
        let listener = server.connections.listener.unwrap();
        assert_eq!((listener.syn_per_s, listener.accept_queue_max, listener.backlog), (Some(43.0), 4, 511));
        assert_eq!(listener.fullest, AcceptQueue { length: 4, limit: 511 });
        assert_eq!(server.intervals.len(), 6);
        assert_eq!((server.intervals[0].t_s, server.intervals[1].t_s), (-1.0, 0.0));
    }

    #[test]
    fn a_window_between_samples_or_beyond_them_takes_the_nearest() {
        for (from, to, first, last) in
            [(11.2, 11.8, 11, 12), (50.0, 60.0, 15, 16), (1.0, 2.0, 10, 11), (12.0, 12.0, 11, 13)]
        {
            let samples = samples_of_run(6);
            let taken = inside(&samples, Some((Nanos::from_secs_f64(from), Nanos::from_secs_f64(to))));
            let ends = (taken.first().unwrap().at, taken.last().unwrap().at);
            assert_eq!(ends, (Nanos::from_secs(first), Nanos::from_secs(last)), "{from} to {to}");
        }
        assert_eq!(summarize(&[], Nanos::ZERO, Some((Nanos(1), Nanos(2)))), Server::default());
        assert_eq!(summarize(&samples_of_run(0), Nanos::ZERO, None).process[0].cpu_s, 0.0);
    }

    #[test]
    fn what_a_sample_lacks_is_absent_and_not_zero() {
        let mut samples = samples_of_run(2);
        samples[1].groups.kernel = None;
        samples[1].groups.connections.as_mut().unwrap().ports[0].listener = None;
        let server = summarize(&samples, Nanos::ZERO, None);
        assert_eq!((server.intervals[0].cpu, server.intervals[0].dropped_per_s), (None, None));
        assert_eq!((server.intervals[0].accept_queue, server.intervals[1].accept_queue), (None, Some(2)));
        assert_eq!(server.connections.listener.unwrap().dropped_per_s, 3.0);
        assert!(server.kernel.cpu.is_some());
    }

    #[test]
    fn a_server_that_came_late_or_ended_early_keeps_its_listener() {
        for absent in [0..2, 3..5, 1..2] {
            let mut samples = samples_of_run(4);
            for sample in &mut samples[absent.clone()] {
                sample.groups.connections.as_mut().unwrap().ports[0].listener = None;
            }
            let server = summarize(&samples, Nanos::ZERO, None);
            let listener = server.connections.listener.unwrap();
            assert_eq!((listener.dropped_per_s, listener.backlog), (3.0, 511), "{absent:?}");
            assert!(server.connections.ports[0].listener.is_some(), "{absent:?}");
        }
    }

    #[test]
    fn connections_are_those_that_were_counted_last() {
        let mut samples = samples_of_run(4);
        for (sample, count) in samples.iter_mut().zip([Some(1), None, Some(3), None, None]) {
            let port = &mut sample.groups.connections.as_mut().unwrap().ports[0];
            port.connections = count.map(|count| [(State::Established, count)].into());
        }
        let server = summarize(&samples, Nanos::ZERO, None);
        assert_eq!(server.connections.connections, Some([(State::Established, 3)].into()));
        assert_eq!(server.connections.ports[0].connections, server.connections.connections);
        let established: Vec<_> = server.intervals.iter().map(|interval| interval.established).collect();
        assert_eq!(established, [None, Some(3), None, None]);
        let window = Some((Nanos::from_secs(13), Nanos::from_secs(14)));
        assert_eq!(summarize(&samples, Nanos::ZERO, window).connections.connections, None);
    }

    proptest! {
        #[test]
        fn intervals_of_a_run_add_up_to_the_whole(n in 1u64..20) {
            let samples = samples_of_run(n);
            let server = summarize(&samples, Nanos::ZERO, None);
            let sum: f64 = server.intervals.iter().map(|i| i.process_cores.unwrap() * i.length_s).sum();
            prop_assert!((sum - server.process[0].cpu_s).abs() < 1e-9 * sum.max(1.0));
        }
    }
}
