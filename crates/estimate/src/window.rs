//! Reads the completed requests and the CPU time of a Record (the document of a run) over its window, which is the time
//! in which load is offered. Other modules use these functions, so that both values always cover the same time.
//!
//! If the server's processes were monitored, the CPU time is that of these processes. Otherwise, it is the CPU time of
//! all programs on the monitored CPUs.

use crate::demand::Observation;
use brimful_core::account::WINDOW_PARTS;
use brimful_core::record::{ClassRecord, Interval, Record};
use brimful_core::server::{CpuShares, Server, ServerInterval};

/// Throughput and CPU usage of a server during a run, in the window in which load is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowMeasurement {
    /// Duration of the measurement in seconds.
    pub seconds: f64,
    /// Completed requests per second, by class.
    pub throughput: Vec<f64>,
    /// Mean number of busy CPUs.
    pub busy: f64,
}

impl WindowMeasurement {
    /// Measures throughput and CPU usage in the window of the Record. An entry of `classes` is `None` if the Record
    /// does not have the class. A Record contains only the total completions of each class, so every class is assumed
    /// to complete the same share of them in the window. `by_process` is an argument of [`window_means`].
    pub fn in_window(record: &Record, classes: &[Option<&ClassRecord>], by_process: bool) -> Option<Self> {
        Self::after_warm_up(0.0, record, classes, by_process)
    }

    /// Like [`WindowMeasurement::in_window`], but without the first `warm_up` seconds.
    pub fn after_warm_up(
        warm_up: f64,
        record: &Record,
        classes: &[Option<&ClassRecord>],
        by_process: bool,
    ) -> Option<Self> {
        let WindowMeans { seconds, rate, busy } = window_means_after(warm_up, record, by_process)?;
        let completed = |class: &ClassRecord| class.counts.completed as f64;
        let all: f64 = classes.iter().flatten().map(|class| completed(class)).sum();
        let share = |class: &Option<&ClassRecord>| match class {
            Some(class) if all > 0.0 => completed(class) / all,
            _ => 0.0,
        };
        Some(Self { seconds, throughput: classes.iter().map(|class| rate * share(class)).collect(), busy })
    }

    /// Measures the throughput of a server whose CPUs cannot be observed. Returns the duration of the measurement in
    /// seconds, and the completed requests per second of each class. The measurement covers the Record's time intervals
    /// that lie in the window and begin after `warm_up` seconds.
    pub fn throughput_from_responses(
        warm_up: f64,
        record: &Record,
        classes: &[Option<&ClassRecord>],
    ) -> Option<(f64, Vec<f64>)> {
        let window = (0.0, record.window_s.min(record.duration_s));
        let span = |i: &Interval| (i.t_s, i.t_s + i.length_s);
        let whole = record.intervals.iter().map(span).filter(|(from, to)| *from >= warm_up && *to <= window.1 + 1e-9);
        let whole: Vec<Span> = whole.collect();
        // If no interval lies in the window, use the whole window.
        let span = whole.first().zip(whole.last()).map_or(window, |(first, last)| (first.0, last.1));
        let seconds = span.1 - span.0;
        let all: f64 = classes.iter().flatten().map(|class| class.counts.completed as f64).sum();
        let rate = completed_in(record, window, span) / seconds;
        let share = |class: &Option<&ClassRecord>| class.map_or(0.0, |class| class.counts.completed as f64 / all);
        (seconds > 0.0 && all > 0.0).then(|| (seconds, classes.iter().map(|class| rate * share(class)).collect()))
    }

    /// Converts the measurement to an observation of the utilization law.
    pub fn observation(&self) -> Observation {
        Observation::from_interval(self.seconds, self.throughput.clone(), self.busy)
    }
}

/// Mean throughput and CPU usage of a run, in the window in which load is offered.
#[derive(Clone, Copy, Debug)]
pub struct WindowMeans {
    /// Duration of the measurement in seconds.
    pub seconds: f64,
    /// Completed requests per second of all classes together.
    pub rate: f64,
    /// Mean number of busy CPUs.
    pub busy: f64,
}

/// Computes means over the window in which load is offered, from the monitor's first to its last sample in the window.
/// Connection set-up before the window and late responses after the window are excluded.
///
/// With `by_process`, the CPU time is that of the server's processes; otherwise it is that of all programs on the
/// monitored CPUs. Returns `None` if the Record has no CPU time, or a duration of 0.
pub fn window_means(record: &Record, by_process: bool) -> Option<WindowMeans> {
    window_means_after(0.0, record, by_process)
}

fn window_means_after(warm_up: f64, record: &Record, by_process: bool) -> Option<WindowMeans> {
    let server = record.server.as_ref()?;
    let busy_overall = busy(server, by_process)?;
    let window = (0.0, record.window_s.min(record.duration_s));
    let completed = completed_in_window(record);
    let course = busy_by_interval(server, by_process).unwrap_or_default();
    let in_window: Vec<(Span, f64)> =
        course.into_iter().filter(|((from, to), _)| *from >= warm_up && *to <= window.1 && to > from).collect();
    let watched_seconds: f64 = in_window.iter().map(|((from, to), _)| to - from).sum();
    if watched_seconds > 0.0 {
        let all = completed_in(record, window, window);
        let watched: f64 = in_window.iter().map(|(span, _)| completed_in(record, window, *span)).sum();
        let share = if all > 0.0 { watched / all } else { watched_seconds / window.1 };
        let busy = in_window.iter().map(|((from, to), busy)| busy * (to - from)).sum::<f64>() / watched_seconds;
        return Some(WindowMeans { seconds: watched_seconds, rate: completed * share / watched_seconds, busy });
    }
    let seconds = window.1;
    (seconds > 0.0).then(|| WindowMeans { seconds, rate: completed / seconds, busy: busy_overall })
}

/// Throughput and CPU usage of a server in a short interval of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunStretch {
    /// Start of the interval, in seconds since the start of the run.
    pub start_s: f64,
    /// Duration of the interval, in seconds.
    pub seconds: f64,
    /// CPU time of the server's processes, in seconds.
    pub work: f64,
    /// Number of completed calls.
    pub calls: f64,
}

/// Number of completed calls in each of many short intervals of a run. All intervals have the same duration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompletedCalls {
    /// Duration of an interval, in seconds.
    pub interval_s: f64,
    /// Number of calls that were completed in each interval.
    pub counts: Vec<u32>,
}

impl CompletedCalls {
    /// The completed calls of a Record. Empty if the run did not count them by interval. Also empty if some calls
    /// failed, because the number of calls in progress is then unknown.
    pub fn from_record(record: &Record) -> CompletedCalls {
        let counts = record.account.as_ref().map_or(&[][..], |account| &account.completed_by_part);
        if counts.is_empty() || record.counts.errors() > 0 {
            return CompletedCalls::default();
        }
        let mut counts = counts.to_vec();
        counts.resize(WINDOW_PARTS, 0);
        CompletedCalls { interval_s: record.window_s / WINDOW_PARTS as f64, counts }
    }

    /// Total number of completed calls.
    pub(crate) fn calls(&self) -> f64 {
        self.counts.iter().map(|count| f64::from(*count)).sum()
    }

    /// Total duration of all intervals, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.interval_s * self.counts.len() as f64
    }
}

/// Minimum number of calls in an interval into which a run is divided.
const MIN_CALLS: f64 = 20.0;

/// Divides a run after `from` seconds into intervals of at least [`MIN_CALLS`] calls. An interval cannot be shorter
/// than the intervals of the load generator and of the monitor. `None` if the Record has no time series of the
/// processes' CPU time.
pub fn stretches(record: &Record, from: f64) -> Option<Vec<RunStretch>> {
    let course = busy_by_interval(record.server.as_ref()?, true)?;
    let mut stretches: Vec<RunStretch> = Vec::new();
    let mut open: Option<RunStretch> = None;
    for (span, calls) in finest_spans(record, from, &course) {
        let work = course.iter().map(|(own, busy)| busy * overlap(*own, span)).sum::<f64>();
        let mut stretch = open.take().unwrap_or(RunStretch { start_s: span.0, seconds: 0.0, work: 0.0, calls: 0.0 });
        stretch.seconds += span.1 - span.0;
        stretch.work += work;
        stretch.calls += calls;
        if stretch.calls < MIN_CALLS { open = Some(stretch) } else { stretches.push(stretch) }
    }
    Some(stretches)
}

/// The shortest intervals for which both the load generator and the monitor have data, each with its number of
/// completed calls. They are the intervals of the load generator or of the monitor, whichever are longer.
fn finest_spans(record: &Record, from: f64, course: &[(Span, f64)]) -> Vec<(Span, f64)> {
    let window = (from, record.window_s);
    let calls: Vec<(Span, f64)> =
        record.intervals.iter().map(|i| ((i.t_s, i.t_s + i.length_s), i.completed as f64)).collect();
    let length = |spans: &[(Span, f64)]| spans.first().map_or(f64::INFINITY, |((from, to), _)| to - from);
    let finest = if length(&calls) >= length(course) { &calls[..] } else { course };
    let watched = (course.first().map_or(0.0, |(span, _)| span.0), course.last().map_or(0.0, |(span, _)| span.1));
    let completed =
        |span: Span| calls.iter().map(|(own, calls)| calls * overlap(*own, span) / (own.1 - own.0)).sum::<f64>();
    let whole = |span: &Span| {
        let length = span.1 - span.0;
        overlap(*span, window) > 0.99 * length && overlap(*span, watched) > 0.99 * length
    };
    finest.iter().map(|(span, _)| *span).filter(whole).map(|span| (span, completed(span))).collect()
}

/// Number of calls that were completed in the window in which load is offered.
pub(crate) fn completed_in_window(record: &Record) -> f64 {
    record.rates.completed * record.window_s
}

/// Start and end of a time span, in seconds since the start of the run.
pub(crate) type Span = (f64, f64);

/// Length of the overlap of two spans, in seconds.
pub(crate) fn overlap(a: Span, b: Span) -> f64 {
    (a.1.min(b.1) - a.0.max(b.0)).max(0.0)
}

/// Number of calls that were completed in the time span `span` of the window, computed from the load generator's
/// intervals. The interval in which the window ends also contains late responses. From this interval, at most the
/// difference between the window's total and the earlier intervals is counted.
fn completed_in(record: &Record, window: Span, span: Span) -> f64 {
    let own = |interval: &Interval| (interval.t_s, interval.t_s + interval.length_s);
    let is_whole = |interval: &&Interval| own(interval).1 <= window.1 + 1e-9;
    let whole: f64 = record.intervals.iter().filter(is_whole).map(|interval| interval.completed as f64).sum();
    let remaining = (completed_in_window(record) - whole).max(0.0);
    let completed_in_interval = |interval: &Interval| {
        let completed = interval.completed as f64;
        let completed = if is_whole(&interval) { completed } else { completed.min(remaining) };
        let length = overlap(own(interval), window);
        if length > 0.0 { completed * overlap(own(interval), span) / length } else { 0.0 }
    };
    record.intervals.iter().map(completed_in_interval).sum()
}

/// Number of busy CPUs in each interval of the monitor; `None` if the CPU time of some interval is missing.
pub(crate) fn busy_by_interval(server: &Server, by_process: bool) -> Option<Vec<(Span, f64)>> {
    let cpus = server.kernel.cpus.len() as f64;
    let busy = |i: &ServerInterval| if by_process { i.process_cores } else { i.cpu.map(|c| in_use(c) * cpus) };
    server.intervals.iter().map(|i| Some(((i.t_s, i.t_s + i.length_s), busy(i)?))).collect()
}

/// Mean number of busy CPUs over the whole time in which the server was monitored.
fn busy(server: &Server, by_process: bool) -> Option<f64> {
    if by_process {
        return (!server.process.is_empty()).then(|| server.process.iter().map(|p| p.cores).sum());
    }
    Some(in_use(server.kernel.cpu?) * server.kernel.cpus.len() as f64)
}

/// Utilization of the CPUs: the share of time in which they are not idle.
pub(crate) fn in_use(cpu: CpuShares) -> f64 {
    (1.0 - cpu.idle).clamp(0.0, 1.0)
}
