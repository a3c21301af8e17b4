//! What one Record says.
//!
//! CPU time is that of the server's processes if they were watched in any run, because others' time is then not in it but
//! for what interrupts do on their behalf; else that of the CPUs.

use brimful_core::record::{Interval, Record, Summary};
use brimful_core::server::{CpuShares, Server, ServerInterval};
use std::collections::BTreeMap;

/// When calls of a run are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Whatever the server does.
    Open,
    /// When clients have their answers.
    Closed,
    /// So many attempts always under way.
    SClients,
}

/// A second or more of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub completed: f64,
    pub busy_s: f64,
    pub seconds: f64,
}

pub(super) fn pace(record: &Record) -> Pace {
    let has =
        |flag: &str| record.command.iter().any(|a| a == flag || a.split_once('=').is_some_and(|(f, _)| f == flag));
    match (has("--clients"), has("--s-clients")) {
        (_, true) => Pace::SClients,
        (true, false) => Pace::Closed,
        (false, false) => Pace::Open,
    }
}

/// Completions and CPU time of one and the same stretch of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// Its length.
    pub seconds: f64,
    /// Completed per second in it, all classes.
    pub rate: f64,
    /// Busy CPUs in it.
    pub busy: f64,
}

/// What is measured while load is offered, from the first to the last of the monitor's samples there: what comes before
/// (set-up) and after (answers still awaited) is left out of both figures. `None` if the Record has no CPU time, or no length.
pub(super) fn measured(record: &Record, by_process: bool) -> Option<Measured> {
    let server = record.server.as_ref()?;
    let whole = busy(server, by_process)?;
    let window = (0.0, record.window_s.min(record.duration_s));
    let completed = completed_in_window(record);
    let course = course(server, by_process).unwrap_or_default();
    let inside: Vec<(Span, f64)> =
        course.into_iter().filter(|((a, b), _)| *a >= window.0 && *b <= window.1 && b > a).collect();
    let seconds: f64 = inside.iter().map(|((a, b), _)| b - a).sum();
    let (seconds, completed, busy) = if seconds > 0.0 {
        let share = |spans: &mut dyn Iterator<Item = Span>| {
            let of =
                |span| record.intervals.iter().map(move |i| i.completed as f64 * covered(i, window, span)).sum::<f64>();
            spans.map(of).sum::<f64>()
        };
        let all = share(&mut [window].into_iter());
        let share = if all > 0.0 { share(&mut inside.iter().map(|(span, _)| *span)) / all } else { seconds / window.1 };
        let busy = inside.iter().map(|((a, b), busy)| busy * (b - a)).sum::<f64>() / seconds;
        (seconds, completed * share, busy)
    } else {
        (window.1, completed, whole)
    };
    (seconds > 0.0).then(|| Measured { seconds, rate: completed / seconds, busy })
}

/// Calls that were completed while load was offered.
pub(super) fn completed_in_window(record: &Record) -> f64 {
    record.rates.completed * record.window_s
}

/// From when to when, in seconds since the start.
type Span = (f64, f64);

fn overlap((a, b): Span, (c, d): Span) -> f64 {
    (b.min(d) - a.max(c)).max(0.0)
}

/// The share of what an interval has in the window that is in a span within it.
fn covered(interval: &Interval, window: Span, span: Span) -> f64 {
    let own = (interval.t_s, interval.t_s + interval.length_s);
    let in_window = overlap(own, window);
    if in_window > 0.0 { overlap(own, span) / in_window } else { 0.0 }
}

/// Busy CPUs by the monitor's intervals; `None` if some of them have no figure of their own.
fn course(server: &Server, by_process: bool) -> Option<Vec<(Span, f64)>> {
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

pub(super) fn in_use(cpu: CpuShares) -> f64 {
    (1.0 - cpu.idle).clamp(0.0, 1.0)
}

/// Share of the watched CPUs that others than the watched processes used.
pub(super) fn others(record: &Record) -> f64 {
    let Some(server) = record.server.as_ref().filter(|s| !s.process.is_empty()) else { return 0.0 };
    let (Some(cpu), cpus) = (server.kernel.cpu, server.kernel.cpus.len()) else { return 0.0 };
    in_use(cpu) - server.process.iter().map(|p| p.cores).sum::<f64>() / cpus.max(1) as f64
}

/// Utilization by name.
pub(super) fn disks(server: &Server) -> BTreeMap<String, f64> {
    let sane = |utilization: f64| if utilization.is_finite() { utilization.clamp(0.0, 1.0) } else { 0.0 };
    server.kernel.disks.iter().map(|(name, disk)| (name.clone(), sane(disk.utilization))).collect()
}

/// In seconds.
pub(super) fn mean(times_us: Option<Summary>) -> Option<f64> {
    times_us.map(|s| s.mean / 1e6).filter(|m| m.is_finite() && *m >= 0.0)
}

/// Calls due in each interval of the window, and the length of one.
pub(super) fn arrivals(record: &Record) -> Option<(f64, Vec<u64>)> {
    let length = record.intervals.first()?.length_s;
    let whole = |i: &&Interval| i.length_s == length && i.t_s + length <= record.window_s * (1.0 + 1e-9);
    Some((length, record.intervals.iter().filter(whole).map(|i| i.offered).collect()))
}

/// The window by the generator's intervals, with the server's CPU time brought to them in proportion to the overlap.
pub(super) fn stretches(record: &Record, server: &Server, by_process: bool) -> Vec<Stretch> {
    let course = course(server, by_process).unwrap_or_default();
    let stretch = |i: &Interval| {
        let span = (i.t_s, i.t_s + i.length_s);
        let seconds = course.iter().map(|(watched, _)| overlap(span, *watched)).sum::<f64>();
        let busy_s = course.iter().map(|(watched, busy)| busy * overlap(span, *watched)).sum();
        // An interval that the monitor did not see to its end belongs to no stretch.
        let whole = seconds > 0.99 * i.length_s && span.1 <= record.window_s * (1.0 + 1e-9);
        whole.then_some(Stretch { completed: i.completed as f64, busy_s, seconds })
    };
    record.intervals.iter().filter_map(stretch).collect()
}
