//! Which Records can be used, and what each of them says, in seconds and per second.
//!
//! Totals over the whole run, drained queue included, so that CPU time and completions belong to the same requests. The
//! server's own processes are taken where they were watched: they are free of other work, but for what interrupts do on
//! their behalf; else the CPUs.

use super::LeftOut;
use crate::ModelError;
use crate::demand::Observation;
use brimful_core::record::{ClassRecord, Interval, Record, Summary};
use brimful_core::server::{CpuShares, Server, ServerInterval};
use std::collections::{BTreeMap, BTreeSet};

/// Less than this share of what was offered, completed: past saturation.
const KEPT_UP: f64 = 0.95;

/// Other work on the watched CPUs is worth a warning from this share of them on.
const OTHER_WORK: f64 = 0.1;

/// A server past saturation that uses less than this share of its CPUs is held up by something else.
const USED_UP: f64 = 0.8;

/// Name that a Record gives to the class of a load without classes.
const UNNAMED: &str = "all";

pub(super) struct Runs {
    pub classes: Vec<String>,
    pub servers: u32,
    pub used: Vec<Run>,
    pub idle: Idle,
    pub left_out: Vec<LeftOut>,
    /// The largest share of the watched CPUs that others than the server's processes used.
    others: f64,
    /// Busy CPUs past saturation, the most of any such run.
    saturated: Option<f64>,
}

/// One run.
pub(super) struct Run {
    pub record: usize,
    /// By class.
    pub throughput: Vec<f64>,
    /// Busy CPUs.
    pub busy: f64,
    pub seconds: f64,
    /// Utilization by name.
    pub disks: BTreeMap<String, f64>,
    /// Its course; empty where the Record has none.
    pub stretches: Vec<Stretch>,
    /// Mean response time and half width of its interval; only of arrivals that do not wait for answers.
    pub response: Option<(f64, Option<f64>)>,
    /// Mean response time by class.
    pub class_response: Vec<Option<f64>>,
}

#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub completed: f64,
    pub busy_s: f64,
    pub seconds: f64,
}

/// What the server's host does without load; each `None` where no Record shows it.
#[derive(Default)]
pub(super) struct Idle {
    pub records: Vec<usize>,
    /// Busy CPUs, of the server's own.
    pub busy: Option<f64>,
    /// Share of the CPUs that is busy, whoever uses it.
    pub share: Option<f64>,
    pub disks: BTreeMap<String, f64>,
}

impl Runs {
    /// Sorts the Records; an error if they are of different servers or if none is of a loaded one.
    pub fn select(records: &[Record], servers: Option<u32>) -> Result<Runs, ModelError> {
        let watched: Vec<(usize, &Record, &Server)> =
            records.iter().enumerate().filter_map(|(i, r)| Some((i, r, r.server.as_ref()?))).collect();
        same_server(&watched)?;
        let by_process = watched.iter().any(|(_, _, s)| !s.process.is_empty());
        let (mut left_out, mut idle, mut loaded) = (Vec::new(), Vec::new(), Vec::new());
        for (record, r) in records.iter().enumerate() {
            match judge(r, by_process) {
                Err(reason) => left_out.push(LeftOut { record, reason }),
                Ok(()) if r.counts.scheduled == 0 => idle.push((record, r)),
                Ok(()) => loaded.push((record, r)),
            }
        }
        if loaded.is_empty() {
            return Err(nothing_left(&left_out));
        }
        let cpus = watched.iter().map(|(_, _, s)| s.kernel.cpus.len()).max().unwrap_or(0);
        let Some(servers) = servers.or(u32::try_from(cpus).ok()).filter(|m| *m > 0) else {
            return Err(ModelError::Shape(
                "no Record says how many CPUs the server has: say how many with --servers".into(),
            ));
        };
        let one_path = loaded.iter().all(|(_, r)| r.target == loaded[0].1.target);
        let completions: Vec<BTreeMap<String, &ClassRecord>> =
            loaded.iter().map(|(_, r)| completions(r, one_path)).collect();
        let classes: Vec<String> =
            completions.iter().flat_map(BTreeMap::keys).collect::<BTreeSet<_>>().into_iter().cloned().collect();
        let used = loaded.iter().zip(&completions).map(|((record, r), by_name)| {
            let by_class: Vec<Option<&ClassRecord>> = classes.iter().map(|c| by_name.get(c).copied()).collect();
            run(*record, r, &by_class, by_process)
        });
        Ok(Runs {
            used: used.collect(),
            idle: what_idles(&idle, by_process, servers as usize == cpus),
            others: loaded.iter().map(|(_, r)| others(r)).fold(0.0, f64::max),
            saturated: left_out.iter().filter_map(|l| saturated(&records[l.record], by_process)).reduce(f64::max),
            classes,
            servers,
            left_out,
        })
    }

    /// Names of disks that were this busy in some run.
    pub fn disks(&self, at_least: f64) -> BTreeSet<String> {
        let used = self.used.iter().flat_map(|r| &r.disks).filter(|(_, utilization)| **utilization >= at_least);
        used.map(|(name, _)| name.clone()).collect()
    }

    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.others > OTHER_WORK {
            warnings.push(format!(
                "up to {:.0} % of the watched CPUs went to other work than the server's during the runs (the generator, if it ran \
                 there, or interrupts): the model takes it that the server could have had them",
                100.0 * self.others
            ));
        }
        if let Some(busy) = self.saturated.filter(|busy| *busy < USED_UP * f64::from(self.servers)) {
            warnings.push(format!(
                "past saturation the server used no more than {busy:.2} of {} CPUs: if it cannot use more at once, say so with \
                 --servers; if it can, something else is its limit, and the model's saturation is too high",
                self.servers
            ));
        }
        warnings
    }
}

impl Run {
    /// What a station did that was this busy. The variance of a mean of random service grows with the load and falls
    /// with the time.
    pub fn observe(&self, busy: f64) -> Observation {
        Observation { throughput: self.throughput.clone(), busy, weight: self.seconds / busy.max(1e-3) }
    }
}

/// The classes that completed anything. A load without classes is one class, named by its path where there are several.
fn completions(record: &Record, one_path: bool) -> BTreeMap<String, &ClassRecord> {
    let path = || record.target.split_once("://").map_or("", |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    let name = |key: &str| match key {
        UNNAMED if !one_path && record.classes.len() == 1 => path().to_owned(),
        other => other.to_owned(),
    };
    let completed = record.classes.iter().filter(|(_, class)| class.counts.completed > 0);
    completed.map(|(key, class)| (name(key), class)).collect()
}

fn nothing_left(left_out: &[LeftOut]) -> ModelError {
    let reasons: Vec<String> = left_out.iter().map(|l| format!("record {}: {}", l.record + 1, l.reason)).collect();
    let why = if reasons.is_empty() { "measure the server under some load".into() } else { reasons.join("; ") };
    ModelError::Shape(format!("no Record is of a loaded server and can be used: {why}"))
}

/// Whether the Record can be used, or why it cannot.
fn judge(record: &Record, by_process: bool) -> Result<(), String> {
    let Some(server) = &record.server else {
        return Err("nobody watched the server: name its program with --process, or its address with --server".into());
    };
    if !record.verdict.valid {
        let reasons: Vec<&str> = record.verdict.reasons.iter().map(|r| r.message.as_str()).collect();
        return Err(format!("the run is invalid: {}", reasons.join(" ")));
    }
    let seconds = seconds(record);
    let busy = busy(server, by_process).filter(|b| b.is_finite() && *b >= 0.0);
    let Some(busy) = busy.filter(|_| seconds.is_finite() && seconds > 0.0) else {
        return Err("the CPU time of the server is not in it: name the server's program with --process".into());
    };
    if record.counts.scheduled == 0 {
        return Ok(());
    }
    if past_saturation(record) {
        return Err(format!(
            "past saturation: of {:.1} calls per second {:.1} were completed and {:.1} % failed, and what failed cost time \
             too; lower the rate, or let the run be much longer than its response times",
            record.rates.offered,
            record.rates.completed,
            100.0 * failed(record)
        ));
    }
    if record.classes.values().all(|c| c.counts.completed == 0) || busy == 0.0 {
        return Err("no call was completed, or none cost the server anything: look at what was requested".into());
    }
    Ok(())
}

fn past_saturation(record: &Record) -> bool {
    record.rates.completed < KEPT_UP * record.rates.offered || failed(record) > 1.0 - KEPT_UP
}

/// Busy CPUs of a valid run past saturation.
fn saturated(record: &Record, by_process: bool) -> Option<f64> {
    let valid = record.verdict.valid && record.counts.scheduled > 0 && past_saturation(record);
    busy(record.server.as_ref().filter(|_| valid)?, by_process)
}

/// Share of the calls.
fn failed(record: &Record) -> f64 {
    record.counts.errors() as f64 / record.counts.scheduled as f64
}

/// Refuses Records of different servers.
fn same_server(watched: &[(usize, &Record, &Server)]) -> Result<(), ModelError> {
    let authority = |target: &str| {
        let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
        rest.split(['/', '?', '#']).next().unwrap_or(rest).to_owned()
    };
    let Some((first, a, server)) = watched.first() else { return Ok(()) };
    let programs = |s: &Server| s.process.iter().map(|p| p.name.clone()).collect::<BTreeSet<_>>();
    let memory = |s: &Server| s.kernel.memory.map(|m| m.total_bytes);
    for (i, b, other) in &watched[1..] {
        let differs = |what: String| {
            Err(ModelError::Shape(format!(
                "records {} and {} are of different servers ({what}): calibrate each server by itself",
                first + 1,
                i + 1
            )))
        };
        if authority(&a.target) != authority(&b.target) {
            return differs(format!("{} and {}", a.target, b.target));
        }
        if server.kernel.cpus != other.kernel.cpus {
            return differs(format!("CPUs {:?} and {:?}", server.kernel.cpus, other.kernel.cpus));
        }
        if programs(server) != programs(other) && !server.process.is_empty() && !other.process.is_empty() {
            return differs(format!("programs {:?} and {:?}", programs(server), programs(other)));
        }
        if let (Some(x), Some(y)) = (memory(server), memory(other))
            && x != y
        {
            return differs(format!("{x} and {y} bytes of memory"));
        }
    }
    Ok(())
}

fn run(record: usize, r: &Record, classes: &[Option<&ClassRecord>], by_process: bool) -> Run {
    let seconds = seconds(r);
    let server = r.server.as_ref();
    let mean = |s: Option<Summary>| s.map(|s| s.mean / 1e6).filter(|m| m.is_finite() && *m >= 0.0);
    let waits = r.command.iter().any(|a| a.starts_with("--clients") || a.starts_with("--s-clients"));
    Run {
        record,
        throughput: classes.iter().map(|c| c.map_or(0.0, |c| c.counts.completed as f64 / seconds)).collect(),
        busy: server.and_then(|s| busy(s, by_process)).unwrap_or(0.0),
        seconds,
        disks: server.map(disks).unwrap_or_default(),
        stretches: server.map(|s| stretches(r, s, by_process)).unwrap_or_default(),
        response: mean(r.response_time_us).filter(|_| !waits).map(|m| (m, r.response_mean_ci95_us.map(|us| us / 1e6))),
        class_response: classes.iter().map(|c| mean((*c)?.response_time_us)).collect(),
    }
}

/// As long as the server was watched.
fn seconds(record: &Record) -> f64 {
    let watched: f64 = record.server.iter().flat_map(|s| &s.intervals).map(|i| i.length_s).sum();
    if watched > 0.0 { watched } else { record.duration_s }
}

/// Busy CPUs over the whole run.
fn busy(server: &Server, by_process: bool) -> Option<f64> {
    if by_process {
        return (!server.process.is_empty()).then(|| server.process.iter().map(|p| p.cores).sum());
    }
    Some(in_use(server.kernel.cpu?) * server.kernel.cpus.len() as f64)
}

fn in_use(cpu: CpuShares) -> f64 {
    (1.0 - cpu.idle).clamp(0.0, 1.0)
}

/// Share of the watched CPUs that others than the watched processes used.
fn others(record: &Record) -> f64 {
    let Some(server) = record.server.as_ref().filter(|s| !s.process.is_empty()) else { return 0.0 };
    let (Some(cpu), cpus) = (server.kernel.cpu, server.kernel.cpus.len()) else { return 0.0 };
    in_use(cpu) - server.process.iter().map(|p| p.cores).sum::<f64>() / cpus.max(1) as f64
}

fn disks(server: &Server) -> BTreeMap<String, f64> {
    let sane = |utilization: f64| if utilization.is_finite() { utilization.clamp(0.0, 1.0) } else { 0.0 };
    server.kernel.disks.iter().map(|(name, disk)| (name.clone(), sane(disk.utilization))).collect()
}

/// Means over all idle Records, by their length. `whole`: the model's servers are all of the CPUs watched.
fn what_idles(idle: &[(usize, &Record)], by_process: bool, whole: bool) -> Idle {
    let total: f64 = idle.iter().map(|(_, r)| seconds(r)).sum();
    let mean = |of: &dyn Fn(&Server) -> Option<f64>| {
        let values = idle.iter().map(|(_, r)| Some(seconds(r) / total * of(r.server.as_ref()?)?));
        values.sum::<Option<f64>>().filter(|_| !idle.is_empty())
    };
    let names: BTreeSet<&String> =
        idle.iter().filter_map(|(_, r)| r.server.as_ref()).flat_map(|s| s.kernel.disks.keys()).collect();
    Idle {
        records: idle.iter().map(|(i, _)| *i).collect(),
        busy: mean(&|s| busy(s, by_process)),
        share: mean(&|s| s.kernel.cpu.map(in_use)).filter(|_| whole),
        disks: names.into_iter().filter_map(|n| Some((n.clone(), mean(&|s| disks(s).get(n).copied())?))).collect(),
    }
}

/// The run by the generator's intervals, with the server's CPU time brought to them in proportion to the overlap.
fn stretches(record: &Record, server: &Server, by_process: bool) -> Vec<Stretch> {
    let cpus = server.kernel.cpus.len() as f64;
    let busy = |i: &ServerInterval| if by_process { i.process_cores } else { i.cpu.map(|c| in_use(c) * cpus) };
    let Some(course) =
        server.intervals.iter().map(|i| Some((i.t_s, i.t_s + i.length_s, busy(i)?))).collect::<Option<Vec<_>>>()
    else {
        return Vec::new();
    };
    let overlap = |(a, b): (f64, f64), (c, d): (f64, f64)| (b.min(d) - a.max(c)).max(0.0);
    let stretch = |i: &Interval| {
        let span = (i.t_s, i.t_s + i.length_s);
        let seconds = course.iter().map(|(a, b, _)| overlap(span, (*a, *b))).sum::<f64>();
        let busy_s = course.iter().map(|(a, b, busy)| busy * overlap(span, (*a, *b))).sum();
        // An interval that the monitor did not see to its end belongs to no stretch.
        let whole = seconds > 0.99 * i.length_s;
        whole.then_some(Stretch { completed: i.completed as f64, busy_s, seconds })
    };
    record.intervals.iter().filter_map(stretch).collect()
}
