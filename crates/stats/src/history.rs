//! The history of a server: the metrics of many runs of one load, and the runs at which a metric changed.
//!
//! Each metric is a series of values, one per run. [`change_points`] divides the series into segments. The size of a
//! change is the difference between the runs of two neighbouring segments, with its confidence interval, as `compare`
//! computes them. The position of a change is chosen where the difference is largest. So if a change is small compared
//! with the noise, its interval is slightly too narrow.

mod headline;
mod select;

use crate::change_points::{MIN_SEGMENT, change_points};
use crate::compare::unlike::{CONDITIONS, Condition};
use crate::compare::{Measured, MetricKind, MetricOfSide, Pair, Run, metric_kinds};
use crate::difference::Scale;
use crate::error::StatsError;
use brimful_core::comparison::Variability;
use brimful_core::history::{Direction, History, MetricChange, MetricHistory, PastRun, SCHEMA, Segment};
use brimful_core::moments;
use std::cmp::Reverse;
use std::panic::resume_unwind;
use std::thread;

/// Minimum number of runs in which a change can be detected.
const MIN_RUNS: usize = 2 * MIN_SEGMENT;

/// Finds the changes in the history of `runs`. Each run has the user's name for it. A change is new if its first run is
/// among the `new_runs` newest runs.
///
/// # Errors
/// [`StatsError::NotComparable`] if no run can be used, or if a run has no start time.
pub fn history(runs: Vec<(String, Run)>, new_runs: usize) -> Result<History, StatsError> {
    let (runs, notes) = select::select(runs)?;
    let measured: Vec<Vec<Measured>> = runs.iter().map(|(_, run)| run.figures(Variability::BetweenRuns)).collect();
    let kinds = metric_kinds(&measured.iter().collect::<Vec<_>>());
    let divided = divide_all(kinds.into_iter().map(|kind| Series::new(kind, &measured)).collect());
    let first_new = runs.len().saturating_sub(new_runs);
    let mut changes: Vec<MetricChange> = divided.iter().flat_map(|divided| divided.changes(&runs, first_new)).collect();
    changes.sort_by_key(|change| Reverse(change.index));
    let mut history = History {
        schema: SCHEMA.to_owned(),
        brimful_version: env!("CARGO_PKG_VERSION").to_owned(),
        headline: String::new(),
        new_runs: new_runs as u64,
        figures: divided.iter().map(|divided| divided.describe(runs.len())).collect(),
        runs: runs.iter().map(past_run).collect(),
        changes,
        notes,
    };
    history.headline = headline::headline(&history);
    Ok(history)
}

/// The values of one metric, in the runs that have it.
struct Series {
    kind: MetricKind,
    /// For each value, the index of its run; in increasing order.
    indices: Vec<usize>,
    /// The value of the metric in each of these runs.
    measured: Vec<Measured>,
}

impl Series {
    fn new(kind: &MetricKind, runs: &[Vec<Measured>]) -> Series {
        let is_figure = |measured: &&Measured| measured.kind.name == kind.name && measured.value.is_finite();
        let figure_of =
            |(index, figures): (usize, &Vec<Measured>)| Some((index, figures.iter().find(is_figure)?.clone()));
        let (indices, measured) = runs.iter().enumerate().filter_map(figure_of).unzip();
        Series { kind: kind.clone(), indices, measured }
    }

    /// Divides the series at its changes.
    fn divide(self) -> DividedSeries {
        let values: Vec<f64> = self.measured.iter().map(|measured| measured.value).collect();
        let mut bounds = vec![0];
        bounds.extend(change_points(&values));
        bounds.push(values.len());
        let part = |ends: &[usize]| MetricOfSide { runs: self.measured[ends[0]..ends[1]].to_vec() };
        let parts = bounds.windows(2).map(part).filter(|part| !part.runs.is_empty()).collect();
        DividedSeries { parts, kind: self.kind, indices: self.indices }
    }
}

/// Divides each series at its changes. Each series has its own thread.
fn divide_all(series: Vec<Series>) -> Vec<DividedSeries> {
    thread::scope(|scope| {
        let threads: Vec<_> = series.into_iter().map(|series| scope.spawn(|| series.divide())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// A series, divided at its changes.
struct DividedSeries {
    kind: MetricKind,
    /// For each value, the index of its run.
    indices: Vec<usize>,
    /// The values of each segment (the runs between two changes). No segment is empty.
    parts: Vec<MetricOfSide>,
}

impl DividedSeries {
    fn describe(&self, runs: usize) -> MetricHistory {
        let mut values = vec![None; runs];
        let all = self.parts.iter().flat_map(|part| &part.runs);
        self.indices.iter().zip(all).for_each(|(&index, measured)| values[index] = Some(measured.value));
        let count = self.indices.len();
        MetricHistory {
            name: self.kind.name.clone(),
            unit: self.kind.unit,
            lower_is_better: self.kind.lower_is_better,
            values,
            segments: self.segments(),
            noise: self.noise().filter(|_| count >= MIN_RUNS),
            runs_needed: MIN_RUNS.checked_sub(count).filter(|&missing| missing > 0).map(|missing| missing as u64),
        }
    }

    fn segments(&self) -> Vec<Segment> {
        let mut begin = 0;
        let segment = |part: &MetricOfSide| {
            let first = begin;
            begin += part.runs.len();
            Segment {
                first: self.indices[first] as u64,
                last: self.indices[begin - 1] as u64,
                runs: part.runs.len() as u64,
                mean: part.mean().unwrap_or_default(),
            }
        };
        self.parts.iter().map(segment).collect()
    }

    /// Standard deviation of the values from the means of their segments. It is relative to these means unless the
    /// metric is a share.
    fn noise(&self) -> Option<f64> {
        let deviations = |part: &MetricOfSide| -> Option<Vec<f64>> {
            let values = part.values();
            let mean = moments::mean(&values)?;
            let unit = if self.kind.scale() == Scale::Relative { mean } else { 1.0 };
            Some(values.iter().map(|value| (value - mean) / unit).collect())
        };
        let deviations: Vec<f64> = self.parts.iter().filter_map(deviations).flatten().collect();
        let squares: f64 = deviations.iter().map(|deviation| deviation * deviation).sum();
        let freedom = deviations.len().checked_sub(self.parts.len()).filter(|&freedom| freedom > 0)?;
        Some((squares / freedom as f64).sqrt()).filter(|noise| noise.is_finite())
    }

    /// The changes of this metric, in the order of the runs. A change is new if the first run after it has the index
    /// `first_new` or a higher one.
    fn changes(&self, runs: &[(String, Run)], first_new: usize) -> Vec<MetricChange> {
        let mut place = 0;
        let change = |parts: &[MetricOfSide]| {
            place += parts[0].runs.len();
            let (before, after) = (self.indices[place - 1], self.indices[place]);
            let pair = Pair { kind: self.kind.clone(), a: parts[0].clone(), b: parts[1].clone() };
            let (from, to) = (pair.a.mean().unwrap_or_default(), pair.b.mean().unwrap_or_default());
            let difference = pair.difference();
            let interval95 = difference.map(|difference| difference.interval95);
            MetricChange {
                figure: self.kind.name.clone(),
                index: after as u64,
                before: past_run(&runs[before]),
                after: past_run(&runs[after]),
                from,
                to,
                size: difference.map(|difference| difference.value),
                interval95,
                direction: direction(interval95, self.kind.lower_is_better),
                is_new: after >= first_new,
                other_changes: other_changes(&runs[before].1, &runs[after].1),
            }
        };
        self.parts.windows(2).map(change).collect()
    }
}

/// Whether a change is an improvement, a regression, or neither. `interval95` is the 95 % confidence interval of the
/// change.
fn direction(interval95: Option<[f64; 2]>, lower_is_better: bool) -> Direction {
    match interval95 {
        Some([low, _]) if low > 0.0 => {
            if lower_is_better {
                Direction::Worse
            } else {
                Direction::Better
            }
        }
        Some([_, high]) if high < 0.0 => {
            if lower_is_better {
                Direction::Better
            } else {
                Direction::Worse
            }
        }
        _ => Direction::Neither,
    }
}

fn past_run((file, run): &(String, Run)) -> PastRun {
    PastRun { file: file.clone(), started_at: run.started_at().to_owned(), labels: run.labels().clone() }
}

/// Test conditions that may explain a change, in addition to those about which `compare` warns.
const FURTHER_CONDITIONS: [(&str, Condition); 2] =
    [("software of the server", server_software), ("kernels of the load generator", kernel)];

fn server_software(run: &Run) -> Option<String> {
    match run {
        Run::Record(record) => record.server_software.clone(),
        Run::Survey(_) => None,
    }
}

fn kernel(run: &Run) -> Option<String> {
    run.machine().map(|machine| machine.kernel.clone())
}

/// Describes the test conditions that differ between two runs, like `versions of brimful: 0.1.0, then 0.2.0`.
fn other_changes(before: &Run, after: &Run) -> Vec<String> {
    let all = CONDITIONS.iter().chain(&FURTHER_CONDITIONS);
    let changed = |(what, condition): &(&str, Condition)| {
        let (before, after) = (condition(before)?, condition(after)?);
        (before != after).then(|| format!("{what}: {before}, then {after}"))
    };
    all.filter_map(changed).collect()
}
