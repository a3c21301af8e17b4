//! The one reading of a Record: what the server completed, and what CPU time that took it, over one and the same
//! window.
//!
//! CPU time is that of the server's processes if they were watched, because others' time is then not in it but for what
//! interrupts do on their behalf; else that of the CPUs.

use crate::demand::Observation;
use brimful_core::record::{ClassRecord, Interval, Record};
use brimful_core::server::{CpuShares, Server, ServerInterval};

/// What a server did in the window of a Record.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Length of the window.
    pub seconds: f64,
    /// Completed requests per second, by class.
    pub throughput: Vec<f64>,
    /// Busy CPUs.
    pub busy: f64,
}

impl Observed {
    /// By these classes of the Record, `None` where it has none of that name. The Record says of each class only what
    /// it completed in all: in the window all classes have as much of that. `by_process`: as in [`measured`].
    pub fn of(record: &Record, classes: &[Option<&ClassRecord>], by_process: bool) -> Option<Self> {
        Self::after(0.0, record, classes, by_process)
    }

    /// The same without the first so many seconds, in which a server that was idle gets warm.
    pub fn after(warm_up: f64, record: &Record, classes: &[Option<&ClassRecord>], by_process: bool) -> Option<Self> {
        let Measured { seconds, rate, busy } = measured_after(warm_up, record, by_process)?;
        let completed = |class: &ClassRecord| class.counts.completed as f64;
        let all: f64 = classes.iter().flatten().map(|class| completed(class)).sum();
        let share = |class: &Option<&ClassRecord>| match class {
            Some(class) if all > 0.0 => completed(class) / all,
            _ => 0.0,
        };
        Some(Self { seconds, throughput: classes.iter().map(|class| rate * share(class)).collect(), busy })
    }

    /// Of a server of which nothing is seen but its answers: length in seconds, and completed requests per second by
    /// class, in the whole intervals of the course of the run from `warm_up` seconds on.
    pub fn answers(warm_up: f64, record: &Record, classes: &[Option<&ClassRecord>]) -> Option<(f64, Vec<f64>)> {
        let window = (0.0, record.window_s.min(record.duration_s));
        let span = |i: &Interval| (i.t_s, i.t_s + i.length_s);
        let whole = record.intervals.iter().map(span).filter(|(from, to)| *from >= warm_up && *to <= window.1 + 1e-9);
        let whole: Vec<Span> = whole.collect();
        // Where the run is too short for a whole one, it is the whole run.
        let span = whole.first().zip(whole.last()).map_or(window, |(first, last)| (first.0, last.1));
        let seconds = span.1 - span.0;
        let all: f64 = classes.iter().flatten().map(|class| class.counts.completed as f64).sum();
        let rate = completed_in(record, window, span) / seconds;
        let share = |class: &Option<&ClassRecord>| class.map_or(0.0, |class| class.counts.completed as f64 / all);
        (seconds > 0.0 && all > 0.0).then(|| (seconds, classes.iter().map(|class| rate * share(class)).collect()))
    }

    /// For the utilization law.
    pub fn observation(&self) -> Observation {
        Observation::over(self.seconds, self.throughput.clone(), self.busy)
    }
}

/// Completions and CPU time of one and the same stretch of a run.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Its length.
    pub seconds: f64,
    /// Completed per second in it, all classes.
    pub rate: f64,
    /// Busy CPUs in it.
    pub busy: f64,
}

/// What is measured while load is offered, from the first to the last of the monitor's samples there: what comes before
/// (set-up) and after (answers still awaited) is left out of both figures. `by_process`: the CPU time of the server's
/// processes, else that of all CPUs watched. `None` if the Record has no CPU time, or no length.
pub fn measured(record: &Record, by_process: bool) -> Option<Measured> {
    measured_after(0.0, record, by_process)
}

fn measured_after(warm_up: f64, record: &Record, by_process: bool) -> Option<Measured> {
    let server = record.server.as_ref()?;
    let whole = busy(server, by_process)?;
    let window = (0.0, record.window_s.min(record.duration_s));
    let completed = completed_in_window(record);
    let course = course(server, by_process).unwrap_or_default();
    let inside: Vec<(Span, f64)> =
        course.into_iter().filter(|((a, b), _)| *a >= warm_up && *b <= window.1 && b > a).collect();
    let seconds: f64 = inside.iter().map(|((a, b), _)| b - a).sum();
    let (seconds, completed, busy) = if seconds > 0.0 {
        let all = completed_in(record, window, window);
        let within: f64 = inside.iter().map(|(span, _)| completed_in(record, window, *span)).sum();
        let share = if all > 0.0 { within / all } else { seconds / window.1 };
        let busy = inside.iter().map(|((a, b), busy)| busy * (b - a)).sum::<f64>() / seconds;
        (seconds, completed * share, busy)
    } else {
        (window.1, completed, whole)
    };
    (seconds > 0.0).then(|| Measured { seconds, rate: completed / seconds, busy })
}

/// What a server did in a short part of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Seconds after the start.
    pub begins: f64,
    /// Its length.
    pub seconds: f64,
    /// CPU seconds of the server's processes.
    pub work: f64,
    /// Calls completed.
    pub calls: f64,
}

/// A stretch has at least so many calls.
const CALLS: f64 = 20.0;

/// The course of a run from `from` seconds on, in stretches as short as the generator and the monitor both looked, and
/// long enough for some calls. `None` if the Record has no course of the processes' CPU time.
pub fn stretches(record: &Record, from: f64) -> Option<Vec<Stretch>> {
    let course = course(record.server.as_ref()?, true)?;
    let (mut stretches, mut open): (Vec<Stretch>, Option<Stretch>) = (Vec::new(), None);
    for (span, calls) in finest(record, from, &course) {
        let work = course.iter().map(|(own, busy)| busy * overlap(*own, span)).sum::<f64>();
        let mut stretch = open.take().unwrap_or(Stretch { begins: span.0, seconds: 0.0, work: 0.0, calls: 0.0 });
        stretch.seconds += span.1 - span.0;
        stretch.work += work;
        stretch.calls += calls;
        if stretch.calls < CALLS { open = Some(stretch) } else { stretches.push(stretch) }
    }
    Some(stretches)
}

/// Spans of the window of which both the generator and the monitor can tell what happened in them, and the calls that
/// were completed in each: the intervals of the one that looked less often.
fn finest(record: &Record, from: f64, course: &[(Span, f64)]) -> Vec<(Span, f64)> {
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

/// Calls that were completed while load was offered.
pub(crate) fn completed_in_window(record: &Record) -> f64 {
    record.rates.completed * record.window_s
}

/// From when to when, in seconds since the start.
pub(crate) type Span = (f64, f64);

pub(crate) fn overlap((a, b): Span, (c, d): Span) -> f64 {
    (b.min(d) - a.max(c)).max(0.0)
}

/// Calls completed in a span within the window, by the intervals. Of the interval in which the window ends, the window
/// has what the others leave of its own: answers that were awaited when it was over came in that interval, too.
fn completed_in(record: &Record, window: Span, span: Span) -> f64 {
    let own = |interval: &Interval| (interval.t_s, interval.t_s + interval.length_s);
    let is_whole = |interval: &&Interval| own(interval).1 <= window.1 + 1e-9;
    let whole: f64 = record.intervals.iter().filter(is_whole).map(|interval| interval.completed as f64).sum();
    let rest = (completed_in_window(record) - whole).max(0.0);
    let of = |interval: &Interval| {
        let completed = interval.completed as f64;
        let completed = if is_whole(&interval) { completed } else { completed.min(rest) };
        let length = overlap(own(interval), window);
        if length > 0.0 { completed * overlap(own(interval), span) / length } else { 0.0 }
    };
    record.intervals.iter().map(of).sum()
}

/// Busy CPUs by the monitor's intervals; `None` if some of them have no figure of their own.
pub(crate) fn course(server: &Server, by_process: bool) -> Option<Vec<(Span, f64)>> {
    let cpus = server.kernel.cpus.len() as f64;
    let busy = |i: &ServerInterval| if by_process { i.process_cores } else { i.cpu.map(|c| in_use(c) * cpus) };
    server.intervals.iter().map(|i| Some(((i.t_s, i.t_s + i.length_s), busy(i)?))).collect()
}

/// Busy CPUs over the window, as the monitor summed it up.
fn busy(server: &Server, by_process: bool) -> Option<f64> {
    if by_process {
        return (!server.process.is_empty()).then(|| server.process.iter().map(|p| p.cores).sum());
    }
    Some(in_use(server.kernel.cpu?) * server.kernel.cpus.len() as f64)
}

pub(crate) fn in_use(cpu: CpuShares) -> f64 {
    (1.0 - cpu.idle).clamp(0.0, 1.0)
}
