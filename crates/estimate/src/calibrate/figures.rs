//! Computes metrics of one Record (the document of a run) other than the means that [`crate::window`] computes.

use crate::burstiness::dispersion;
use crate::window::{busy_by_interval, in_use, overlap};
use brimful_core::record::{Interval, Record, Summary};
use brimful_core::server::Server;
use brimful_core::workload::LoadKind;
use std::collections::BTreeMap;

/// One interval of the load generator's time series, such as a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeSlice {
    /// Number of calls completed in the interval.
    pub completed: f64,
    /// CPU time of the server in the interval, in seconds.
    pub busy_s: f64,
    /// Duration of the part of the interval that the monitor observed, in seconds.
    pub seconds: f64,
}

/// The kind of load, such as open or closed.
pub(super) fn load_kind(record: &Record) -> LoadKind {
    LoadKind::from_workload(record.workload.as_ref())
}

/// Share of the monitored CPUs that programs other than the server used.
pub(super) fn utilization_by_others(record: &Record) -> f64 {
    let Some(server) = record.server.as_ref().filter(|s| !s.process.is_empty()) else { return 0.0 };
    let (Some(cpu), cpus) = (server.kernel.cpu, server.kernel.cpus.len()) else { return 0.0 };
    in_use(cpu) - server.process.iter().map(|p| p.cores).sum::<f64>() / cpus.max(1) as f64
}

/// Utilization of each disk, by device name.
pub(super) fn disk_utilizations(server: &Server) -> BTreeMap<String, f64> {
    let sane = |utilization: f64| if utilization.is_finite() { utilization.clamp(0.0, 1.0) } else { 0.0 };
    server.kernel.disks.iter().map(|(name, disk)| (name.clone(), sane(disk.utilization))).collect()
}

/// The mean of a summary of times, converted from µs to seconds. `None` if it is negative or not a number.
pub(super) fn mean_seconds(times_us: Option<Summary>) -> Option<f64> {
    times_us.map(|s| s.mean / 1e6).filter(|m| m.is_finite() && *m >= 0.0)
}

/// Length of an epoch in seconds, and the number of arrivals in each epoch. The epochs are the intervals of the load
/// generator's time series, without shorter intervals and those that end after the measurement.
pub(super) fn arrivals(record: &Record) -> Option<(f64, Vec<u64>)> {
    let length = record.intervals.first()?.length_s;
    let whole = |i: &&Interval| i.length_s == length && i.t_s + length <= record.window_s * (1.0 + 1e-9);
    Some((length, record.intervals.iter().filter(whole).map(|i| i.offered).collect()))
}

/// Whether the arrivals are significantly more dispersed than Poisson arrivals. `counts` has the number of arrivals in
/// each interval.
pub(super) fn is_bursty(counts: &[u64]) -> bool {
    dispersion(counts, 1).is_ok_and(|dispersion| dispersion.ci95.low > 1.0)
}

/// Returns the load generator's intervals with the server's CPU time in each. The monitor's intervals may have other
/// boundaries, so their CPU time is divided in proportion to the overlap.
pub(super) fn time_slices(record: &Record, server: &Server, by_process: bool) -> Vec<TimeSlice> {
    let course = busy_by_interval(server, by_process).unwrap_or_default();
    let slice = |i: &Interval| {
        let span = (i.t_s, i.t_s + i.length_s);
        let seconds = course.iter().map(|(watched, _)| overlap(span, *watched)).sum::<f64>();
        let busy_s = course.iter().map(|(watched, busy)| busy * overlap(span, *watched)).sum();
        // Use only intervals that the monitor observed completely and that lie in the Record's measurement window.
        let whole = seconds > 0.99 * i.length_s && span.1 <= record.window_s * (1.0 + 1e-9);
        whole.then_some(TimeSlice { completed: i.completed as f64, busy_s, seconds })
    };
    record.intervals.iter().filter_map(slice).collect()
}
