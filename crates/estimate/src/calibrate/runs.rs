//! Sorts the Records (documents of runs) into loaded, idle and unusable runs, and collects the values to which demands
//! are fitted.

use super::certainty::Source;
use super::check::check;
use super::figures::{self, TimeSlice, load_kind};
use super::judge::{judge, only_late, same_server, saturated};
use crate::EstimateError;
use crate::demand::Observation;
use crate::server_module::{ModuleDemand, ModuleMismatch, competing_workers};
use crate::window::{WindowMeans, WindowMeasurement, in_use, window_means};
use brimful_core::JsonSchema;
use brimful_core::quantity::whole_percent;
use brimful_core::record::{ClassRecord, Record};
use brimful_core::server::{MAX_OTHER_WORK, Server};
use brimful_core::workload::LoadKind;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum throughput of a run of the idle server, as a share of the highest throughput of all runs.
const IDLE_LOAD: f64 = 0.01;

/// Minimum utilization of the CPUs in runs past saturation. Below it, the CPUs are not the bottleneck, and the user
/// gets a warning.
const SATURATED_UTILIZATION: f64 = 0.8;

/// Name of the only class in a Record of a load without named request classes.
const UNNAMED: &str = "all";

/// A Record that the demands were not fitted to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Index of the Record in the input, from 0.
    pub record: usize,
    /// The reason why it was not used, and what to do.
    pub reason: String,
}

/// The Records of a calibration, sorted into loaded, idle and unusable runs.
pub(super) struct Runs {
    /// Names of the request classes, in the order of the model.
    pub classes: Vec<String>,
    /// Number of CPUs that the server can use at the same time.
    pub servers: u32,
    /// The runs under load that demands are fitted to.
    pub used: Vec<Run>,
    /// Runs that were removed from `used` because of their bursty arrivals. They are used only to measure the cost of
    /// bursts.
    pub bursty_runs: Vec<Run>,
    /// Measurements of the server without load.
    pub idle: IdleServer,
    /// The Records that were not used, with the reasons.
    pub left_out: Vec<LeftOut>,
    /// The largest share of the monitored CPUs that programs other than the server used in any run.
    others: f64,
    /// The largest mean number of busy CPUs in a run past saturation. `None` if there is no such run.
    saturated: Option<f64>,
    /// Number of runs in which the load generator sent calls late.
    late: usize,
    /// Whether all runs under load requested the same URL.
    is_single_url: bool,
}

/// A usable run under load.
pub(super) struct Run {
    /// Index of the Record in the input, from 0.
    pub record: usize,
    /// Requests per second, by class.
    pub throughput: Vec<f64>,
    /// Mean number of CPUs that the server kept busy. If the server's processes were not monitored, the number that all
    /// programs kept busy.
    pub busy: f64,
    /// Duration of the measurement, in seconds.
    pub seconds: f64,
    /// Utilization of each disk, by device name.
    pub disks: BTreeMap<String, f64>,
    /// The intervals of the time series that lie in the measurement window. Empty if the Record has no time series.
    pub slices: Vec<TimeSlice>,
    /// Mean response time of the average request, and half width of its confidence interval, in seconds. `None` unless
    /// the load was open and its calls were sent on time.
    pub response: Option<(f64, Option<f64>)>,
    /// Mean response time by request class, in seconds.
    pub class_response_times: Vec<Option<f64>>,
    /// Length of an epoch (the interval in which arrivals are counted) in seconds, and number of arrivals in each
    /// epoch. `None` unless the load was open.
    pub arrivals: Option<(f64, Vec<u64>)>,
    /// Bytes received in `seconds`, by class.
    bytes: Vec<Option<f64>>,
    /// The Server Module's measurement of each class. `None` without the module; an error if its classes do not match
    /// those of the load, or if it measured too few requests.
    pub module: Option<Result<Vec<Option<ModuleDemand>>, ModuleMismatch>>,
    /// Number of the server's workers that can compete for the CPUs, if the Server Module reports it.
    pub threads: Option<u64>,
}

/// Measurements of the idle server: means over all its Records. A value is `None` unless each of these Records contains
/// it.
#[derive(Default)]
pub(super) struct IdleServer {
    /// Indices of the Records of the idle server, from 0.
    pub records: Vec<usize>,
    /// Mean number of CPUs that the server keeps busy without load.
    pub busy: Option<f64>,
    /// Utilization of the CPUs by all programs without load.
    pub utilization: Option<f64>,
    /// Utilization of each disk without load, by device name.
    pub disks: BTreeMap<String, f64>,
}

impl IdleServer {
    /// Utilization of the CPUs by programs other than the server, without load.
    pub fn utilization_by_others(&self, servers: u32) -> f64 {
        let own = self.busy.unwrap_or(0.0) / f64::from(servers);
        self.utilization.map_or(0.0, |share| (share - own).max(0.0))
    }
}

impl Runs {
    /// Sorts the Records. Returns an error if they are of different servers, or if no usable Record is of a server
    /// under load.
    pub fn select(records: &[Record], servers: Option<u32>) -> Result<Runs, EstimateError> {
        let watched: Vec<(usize, &Record, &Server)> =
            records.iter().enumerate().filter_map(|(i, r)| Some((i, r, r.server.as_ref()?))).collect();
        let by_process = watched.iter().any(|(_, _, s)| !s.process.is_empty());
        check(records, by_process)?;
        same_server(&watched)?;
        let mut left_out = Vec::new();
        let mut usable = Vec::new();
        for (record, r) in records.iter().enumerate() {
            match judge(r, by_process) {
                Err(reason) => left_out.push(LeftOut { record, reason }),
                Ok(()) => usable.push((record, r)),
            }
        }
        let highest = usable.iter().map(|(_, r)| r.rates.completed).fold(0.0, f64::max);
        let is_idle = |r: &Record| r.counts.scheduled == 0 || r.rates.completed < IDLE_LOAD * highest;
        let (idle, loaded): (Vec<_>, Vec<_>) = usable.into_iter().partition(|(_, r)| is_idle(r));
        if loaded.is_empty() {
            return Err(nothing_left(&left_out));
        }
        let cpus = watched.iter().map(|(_, _, s)| s.kernel.cpus.len()).max().unwrap_or(0);
        let Some(servers) = servers.or(u32::try_from(cpus).ok()).filter(|m| *m > 0) else {
            return Err(EstimateError::Inconsistent(
                "no Record says how many CPUs the server has: say how many with --servers".into(),
            ));
        };
        let is_single_url = loaded.iter().all(|(_, r)| r.target == loaded[0].1.target);
        let completions: Vec<BTreeMap<String, &ClassRecord>> =
            loaded.iter().map(|(_, r)| completions(r, is_single_url)).collect();
        let classes: Vec<String> =
            completions.iter().flat_map(BTreeMap::keys).collect::<BTreeSet<_>>().into_iter().cloned().collect();
        let used = loaded.iter().zip(&completions).filter_map(|((record, r), by_name)| {
            let by_class: Vec<Option<&ClassRecord>> = classes.iter().map(|c| by_name.get(c).copied()).collect();
            run(*record, r, &classes, &by_class, by_process)
        });
        Ok(Runs {
            used: used.collect(),
            bursty_runs: Vec::new(),
            idle: idle_figures(&idle, by_process, servers as usize == cpus),
            others: loaded.iter().map(|(_, r)| figures::utilization_by_others(r)).fold(0.0, f64::max),
            saturated: left_out.iter().filter_map(|l| saturated(&records[l.record], by_process)).reduce(f64::max),
            late: loaded.iter().filter(|(_, r)| only_late(r)).count(),
            classes,
            servers,
            left_out,
            is_single_url,
        })
    }

    /// Mean request rate of each class, over the runs with several classes. If every run has only one class, over all
    /// runs.
    pub fn mix(&self) -> Vec<f64> {
        let has_several_classes = |run: &&Run| run.throughput.iter().filter(|x| **x > 0.0).count() > 1;
        let mut runs: Vec<&Run> = self.used.iter().filter(has_several_classes).collect();
        if runs.is_empty() {
            runs = self.used.iter().collect();
        }
        let seconds: f64 = runs.iter().map(|run| run.seconds).sum();
        let completed = |class: usize| runs.iter().map(|run| run.throughput[class] * run.seconds).sum::<f64>();
        (0..self.classes.len()).map(|class| completed(class) / seconds).collect()
    }

    /// Number of completed requests of a class in the runs that demands are fitted to.
    pub fn completed(&self, class: usize) -> f64 {
        self.used.iter().map(|r| r.throughput[class] * r.seconds).sum()
    }

    /// Mean size of the responses of a class, in bytes; `None` if it was not measured.
    pub fn size(&self, class: usize) -> Option<f64> {
        let seen: Vec<(f64, f64)> =
            self.used.iter().filter_map(|r| Some((r.bytes[class]?, r.throughput[class] * r.seconds))).collect();
        let completed: f64 = seen.iter().map(|(_, completed)| completed).sum();
        (completed > 0.0).then(|| seen.iter().map(|(bytes, _)| bytes).sum::<f64>() / completed)
    }

    /// Source of a class's demand, if the runs can distinguish this class from others.
    pub fn source(&self, class: usize) -> Source {
        let alone = |r: &Run| r.throughput.iter().enumerate().all(|(c, x)| (*x > 0.0) == (c == class));
        if self.used.iter().any(alone) { Source::SingleClassRun } else { Source::Regression }
    }

    /// Number of completed requests in a Record, for each class of the model.
    pub fn completions_in(&self, record: &Record) -> Vec<f64> {
        let by_name = completions(record, self.is_single_url);
        let completed = |class: &String| by_name.get(class).map_or(0.0, |c| c.counts.completed as f64);
        self.classes.iter().map(completed).collect()
    }

    /// Names of the disks whose utilization reaches this value in some run.
    pub fn disks(&self, min_utilization: f64) -> BTreeSet<String> {
        let disks = self.used.iter().flat_map(|run| &run.disks);
        let used = disks.filter(|(_, utilization)| **utilization >= min_utilization);
        used.map(|(name, _)| name.clone()).collect()
    }

    /// Warnings about the runs for the user of the model.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.others > MAX_OTHER_WORK {
            warnings.push(format!(
                "up to {} of the watched CPUs went to other work than the server's during the runs (the generator, if it ran \
                 there, or interrupts): the model takes it that the server could have had them",
                whole_percent(self.others)
            ));
        }
        if self.late > 0 {
            warnings.push(format!(
                "in {} of the runs the generator began calls late: what they cost the server is used, their response times are not; \
                 keep the generator off the server's CPUs with --cpus, or give it another host",
                self.late
            ));
        }
        if let Some(busy) = self.saturated.filter(|busy| *busy < SATURATED_UTILIZATION * f64::from(self.servers)) {
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
    /// The run as an observation of a station at which this mean number of servers was busy.
    pub fn observe(&self, busy: f64) -> Observation {
        Observation::from_interval(self.seconds, self.throughput.clone(), busy)
    }

    /// Requests per second of all classes together.
    pub fn rate(&self) -> f64 {
        self.throughput.iter().sum()
    }

    /// Whether the run's arrivals were significantly more dispersed than Poisson arrivals.
    pub fn is_bursty(&self) -> bool {
        self.arrivals.as_ref().is_some_and(|(_, counts)| figures::is_bursty(counts))
    }
}

/// The request classes with completed calls, by name. A load without named classes has one class. It is named after the
/// path of its URL, unless all runs requested the same URL.
fn completions(record: &Record, is_single_url: bool) -> BTreeMap<String, &ClassRecord> {
    let path = || record.target.split_once("://").map_or("", |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    let name = |key: &str| match key {
        UNNAMED if !is_single_url && record.classes.len() == 1 => path().to_owned(),
        other => other.to_owned(),
    };
    let completed = record.classes.iter().filter(|(_, class)| class.counts.completed > 0);
    completed.map(|(key, class)| (name(key), class)).collect()
}

fn nothing_left(left_out: &[LeftOut]) -> EstimateError {
    let reasons: Vec<String> = left_out.iter().map(|l| format!("record {}: {}", l.record + 1, l.reason)).collect();
    let why = if reasons.is_empty() { "measure the server under some load".into() } else { reasons.join("; ") };
    EstimateError::Inconsistent(format!("no Record is of a loaded server and can be used: {why}"))
}

fn run(record: usize, r: &Record, names: &[String], classes: &[Option<&ClassRecord>], by_process: bool) -> Option<Run> {
    let WindowMeasurement { seconds, throughput, busy } = WindowMeasurement::in_window(r, classes, by_process)?;
    let all: f64 = classes.iter().flatten().map(|c| c.counts.completed as f64).sum();
    let rate: f64 = throughput.iter().sum();
    let server = r.server.as_ref();
    let open = load_kind(r) == LoadKind::Open;
    let in_time = open && !only_late(r);
    let named: Vec<(&str, Option<&ClassRecord>)> =
        names.iter().map(String::as_str).zip(classes.iter().copied()).collect();
    Some(Run {
        record,
        throughput,
        busy,
        seconds,
        disks: server.map(figures::disk_utilizations).unwrap_or_default(),
        slices: server.map(|s| figures::time_slices(r, s, by_process)).unwrap_or_default(),
        response: figures::mean_seconds(r.response_time_us)
            .filter(|_| in_time)
            .map(|mean| (mean, r.response_mean_ci95_us.map(|us| us / 1e6))),
        class_response_times: classes.iter().map(|c| figures::mean_seconds((*c)?.response_time_us)).collect(),
        arrivals: figures::arrivals(r).filter(|_| open),
        bytes: classes.iter().map(|c| Some((*c)?.bytes?.received as f64 * rate * seconds / all)).collect(),
        module: ModuleDemand::from_record(r, &named),
        threads: competing_workers(r),
    })
}

/// Means over all Records of the idle server, weighted by their duration. `all_cpus` states whether the server can use
/// all of the monitored CPUs.
fn idle_figures(idle: &[(usize, &Record)], by_process: bool, all_cpus: bool) -> IdleServer {
    let windows: Vec<(WindowMeans, &Server)> =
        idle.iter().filter_map(|(_, r)| Some((window_means(r, by_process)?, r.server.as_ref()?))).collect();
    let total: f64 = windows.iter().map(|(m, _)| m.seconds).sum();
    let mean = |figure: &dyn Fn(&WindowMeans, &Server) -> Option<f64>| {
        let values = windows.iter().map(|(window, server)| Some(window.seconds / total * figure(window, server)?));
        values.sum::<Option<f64>>().filter(|_| !windows.is_empty())
    };
    let names: BTreeSet<&String> =
        idle.iter().filter_map(|(_, r)| r.server.as_ref()).flat_map(|s| s.kernel.disks.keys()).collect();
    IdleServer {
        records: idle.iter().map(|(i, _)| *i).collect(),
        busy: mean(&|m, _| Some(m.busy)),
        utilization: mean(&|_, s| s.kernel.cpu.map(in_use)).filter(|_| all_cpus),
        disks: names
            .into_iter()
            .filter_map(|n| Some((n.clone(), mean(&|_, s| figures::disk_utilizations(s).get(n).copied())?)))
            .collect(),
    }
}
