//! Metrics of requests that servers record themselves. Times are histograms with one bucket per octave, a doubling of
//! the time.

use super::{Page, distinct};
use brimful_core::Nanos;
use brimful_core::server::Phases;
use brimful_monitor::ModuleSample;
use brimful_monitor::module::{ClassSample, ServerSample, TimesSample, start_ns};
use std::fmt::Display;

/// The octaves (doublings of the time) at which buckets end. Octave n ends at 256 ns · 2ⁿ, so the bounds are 1 µs to 17
/// s.
const OCTAVES: std::ops::RangeInclusive<usize> = 2..=26;

/// The labels and the metrics of a request class.
struct Class<'s> {
    server: &'s str,
    name: String,
    sample: &'s ClassSample,
}

/// Writes all metrics of the requests that the servers in `sample` recorded.
pub fn requests(page: &mut Page, sample: &ModuleSample) {
    let servers: Vec<&ServerSample> = sample.servers.iter().map(AsRef::as_ref).collect();
    let names = distinct(servers.iter().map(|server| server.name.as_str()));
    of_servers(page, &names, &servers);
    let mut classes = Vec::new();
    for (server, sample) in names.iter().zip(servers) {
        let own = distinct(sample.classes.iter().map(|class| class.name.as_str()));
        classes.extend(own.into_iter().zip(&sample.classes).map(|(name, sample)| Class { server, name, sample }));
    }
    of_classes(page, &classes);
    let mut times = page.histogram("brimful_request_phase_seconds", "Elapsed time of requests by phase.");
    for Class { server, name, sample } in &classes {
        for (phase, of_phase) in Phases::NAMES.iter().zip(&sample.times).filter(|(_, times)| times.count > 0) {
            let buckets: Vec<(f64, u64)> = cumulative_buckets(of_phase).collect();
            let labels: [(&str, &dyn Display); 3] = [("server", server), ("class", name), ("phase", phase)];
            times.add_histogram(&labels, &buckets, of_phase.count, seconds(of_phase.sum_ns));
        }
    }
}

fn of_servers(page: &mut Page, names: &[String], servers: &[&ServerSample]) {
    let mut each = |name: &'static str, help, figure: fn(&ServerSample) -> f64| {
        let mut metric = if name.ends_with("_total") { page.counter(name, help) } else { page.gauge(name, help) };
        for (server, sample) in names.iter().zip(servers) {
            metric.add(&[("server", server)], Some(figure(sample)));
        }
    };
    each("brimful_module_recording", "Whether a server records its requests.", |s| f64::from(u8::from(s.enabled)));
    each("brimful_module_lost_workers", "Workers without a slot in the server's shared memory.", |s| f64::from(s.lost));
    each("brimful_workers", "Worker processes or threads of a server.", |s| s.workers as f64);
    each("brimful_workers_busy_seconds_total", "Total time that workers were busy.", |s| s.busy.as_secs_f64());
    each("brimful_workers_cpu_seconds_total", "CPU time of workers, as of their last reading.", |s| {
        s.cpu.as_secs_f64()
    });
    each("brimful_server_connections_total", "Connections accepted by a server.", |s| s.connections as f64);
    each("brimful_requests_in_progress", "Requests in progress at a server.", |s| s.in_progress as f64);
}

fn of_classes(page: &mut Page, classes: &[Class<'_>]) {
    let mut each = |name, help, figure: fn(&ClassSample) -> u64| {
        let mut metric = page.counter(name, help);
        for Class { server, name, sample } in classes {
            metric.add(&[("server", server), ("class", name)], Some(figure(sample)));
        }
    };
    each("brimful_requests_total", "Requests served.", |c| c.requests);
    each("brimful_requests_failed_total", "Requests answered with 5xx.", |c| c.failed);
    each("brimful_requests_aborted_total", "Requests whose client disconnected.", |c| c.aborted);
    each("brimful_response_body_bytes_total", "Bytes of bodies sent.", |c| c.bytes);
    each("brimful_request_cpu_samples_total", "Requests whose CPU time was measured.", |c| c.cpu_count);
    let mut cpu = page.counter("brimful_request_cpu_seconds_total", "CPU time of the measured requests by phase.");
    for Class { server, name, sample } in classes {
        for (phase, ns) in ["parse", "process", "log"].iter().zip(sample.cpu_ns) {
            cpu.add(&[("server", server), ("class", name), ("phase", phase)], Some(seconds(ns)));
        }
    }
}

/// Cumulative buckets: each upper bound in seconds, with the number of durations that do not exceed it.
pub fn cumulative_buckets(times: &TimesSample) -> impl Iterator<Item = (f64, u64)> {
    OCTAVES.map(|octave| {
        let below = times.buckets.iter().filter(|(bucket, _)| usize::from(*bucket) < 4 * octave);
        let count = below.fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        (start_ns(4 * octave) / 1e9, count.min(times.count))
    })
}

/// Converts nanoseconds to seconds.
pub fn seconds(ns: u64) -> f64 {
    Nanos(ns).as_secs_f64()
}
