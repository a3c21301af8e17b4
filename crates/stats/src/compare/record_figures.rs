//! The metrics of a Record that are compared: throughput, response times, failed calls, and the server's CPU time.
//!
//! The variability within a run follows from the variation between periods of the run. For throughput and the mean
//! response time, they are the 32 to 64 batches of the run's statistics. For percentiles and failed calls, they are the
//! intervals of the run. For CPU time, they are the intervals of the monitor.

use super::{Measured, MetricKind};
use crate::account::Account;
use crate::batch::BatchMeans;
use crate::estimate::Estimate;
use brimful_core::comparison::{MetricUnit, Variability};
use brimful_core::percentile::{P50, P90, P99, P999, Percentile};
use brimful_core::record::{Interval, Record};
use brimful_core::server::{Server, ServerInterval};

/// Relative standard error of a percentile that is known to 0.1 %: 0.001/√12, as for a rounding error.
const QUANTILE_RESOLUTION: f64 = 0.000_29;

/// The metrics of this Record that are compared, with their values.
pub(crate) fn figures(record: &Record, variability: Variability) -> Vec<Measured> {
    let parts = Parts::new(record, variability);
    let times =
        [P50, P90, P99, P999].into_iter().filter_map(|percentile| response_percentile(record, &parts, percentile));
    let first = [throughput(record, &parts), mean_response(record, &parts)];
    let last = [errors(record, &parts), cpu(record, &parts)];
    first.into_iter().flatten().chain(times).chain(last.into_iter().flatten()).collect()
}

/// The periods into which a run is divided. All lists are empty if they are not needed, or if the Record does not
/// contain them.
#[derive(Default)]
struct Parts<'a> {
    account: Option<Account>,
    intervals: &'a [Interval],
    server_intervals: &'a [ServerInterval],
}

impl<'a> Parts<'a> {
    fn new(record: &'a Record, variability: Variability) -> Parts<'a> {
        match variability {
            Variability::BetweenRuns => Parts::default(),
            // A Record without valid statistics of its periods, such as one of an old version, has metrics without
            // standard errors.
            Variability::WithinRuns => Parts {
                account: record.account.as_ref().and_then(|packed| Account::unpack(packed).ok()),
                intervals: &record.intervals,
                server_intervals: record.server.as_ref().map_or(&[], |server| &server.intervals),
            },
        }
    }

    fn batches(&self) -> Option<&BatchMeans> {
        self.account.as_ref().map(|account| &account.batches)
    }
}

fn kind(name: &str, unit: MetricUnit, lower_is_better: bool) -> MetricKind {
    MetricKind { name: name.to_owned(), unit, lower_is_better }
}

/// The estimate with its value replaced by `value`, the exact value over the whole run; the standard error is kept.
fn around(value: f64, estimate: Option<Estimate>) -> Option<Estimate> {
    estimate.map(|estimate| Estimate { value, ..estimate })
}

fn throughput(record: &Record, parts: &Parts<'_>) -> Option<Measured> {
    let value = record.rates.completed;
    let completed = value * record.window_s;
    let within = parts.batches().and_then(|batches| Estimate::from_parts(&batches.counts_by_time(record.window_s)));
    let kind = kind("throughput", MetricUnit::PerSecond, false);
    // The number of completed calls can differ by one, depending on when the window ends. So the standard error of the
    // rate is at least that of one call.
    (completed > 0.0).then(|| Measured { kind, value, within: around(value, within), resolution: value / completed })
}

fn mean_response(record: &Record, parts: &Parts<'_>) -> Option<Measured> {
    let value = record.response_time_us?.mean / 1e6;
    let within = parts.batches().and_then(|batches| Estimate::from_parts(&batches.sums_s()));
    let kind = kind("mean", MetricUnit::Seconds, true);
    Some(Measured { kind, value, within: around(value, within), resolution: 0.0 })
}

fn response_percentile(record: &Record, parts: &Parts<'_>, percentile: Percentile) -> Option<Measured> {
    let value = percentile.value(&record.response_time_us?)? / 1e6;
    let histograms = parts.account.as_ref().map(|account| account.series.response_times_s());
    let within = histograms.and_then(|histograms| Estimate::quantile_from_parts(&histograms, percentile.share()));
    let kind = kind(percentile.name, MetricUnit::Seconds, true);
    Some(Measured { kind, value, within: around(value, within), resolution: QUANTILE_RESOLUTION * value })
}

/// The share of calls that failed or were answered with status 5xx or 429. Its standard error is at least that of
/// independent calls. The rule of succession (Laplace) makes this error positive even for a share of 0.
fn errors(record: &Record, parts: &Parts<'_>) -> Option<Measured> {
    let calls = record.counts.scheduled as f64;
    let value = record.verdict.error_share.or_else(|| record.counts.error_share()).filter(|_| calls > 0.0)?;
    let in_interval = |interval: &Interval| (interval.errors as f64, (interval.errors + interval.completed) as f64);
    let within = Estimate::from_parts(&parts.intervals.iter().map(in_interval).collect::<Vec<_>>());
    let share = (value * calls + 1.0) / (calls + 2.0);
    let resolution = (share * (1.0 - share) / calls).sqrt();
    let none = Estimate { value, standard_error: resolution, degrees_of_freedom: calls };
    let within = (!parts.intervals.is_empty()).then(|| around(value, within).unwrap_or(none));
    Some(Measured { kind: kind("errors", MetricUnit::Share, true), value, within, resolution })
}

/// The CPU time of the watched programs per completed call.
fn cpu(record: &Record, parts: &Parts<'_>) -> Option<Measured> {
    let Server { process, .. } = record.server.as_ref().filter(|server| !server.process.is_empty())?;
    let used = |interval: &ServerInterval| {
        let calls = completed_between(parts.intervals, interval.t_s, interval.t_s + interval.length_s);
        Some((interval.process_cores? * interval.length_s, calls))
    };
    let within = parts.server_intervals.iter().map(used).collect::<Option<Vec<_>>>();
    let within = within.and_then(|parts| Estimate::from_parts(&parts));
    cpu_per_call(record, process.iter().map(|program| program.cpu_s).sum(), within)
}

/// The server's CPU time per completed call. `cpu_s` is the CPU time in seconds over the whole run.
pub(crate) fn cpu_per_call(record: &Record, cpu_s: f64, within: Option<Estimate>) -> Option<Measured> {
    let value = cpu_s / (record.rates.completed * record.window_s);
    let kind = kind("cpu", MetricUnit::Seconds, true);
    (value > 0.0 && value.is_finite()).then(|| Measured { kind, value, within: around(value, within), resolution: 0.0 })
}

/// Number of calls completed between two times. The calls of an interval are assumed to be spread evenly over it.
fn completed_between(intervals: &[Interval], from_s: f64, to_s: f64) -> f64 {
    let share = |interval: &Interval| {
        let overlap = to_s.min(interval.t_s + interval.length_s) - from_s.max(interval.t_s);
        interval.completed as f64 * (overlap / interval.length_s).max(0.0)
    };
    intervals.iter().filter(|interval| interval.length_s > 0.0).map(share).sum()
}
