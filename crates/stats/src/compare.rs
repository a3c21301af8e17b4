//! Compares the Records or surveys of two sides, A and B, metric by metric. (Types and documents call a metric a
//! *figure*.)
//!
//! If a side has several runs, they are replications: the variability of a metric is that of its values between the
//! runs. On most hosts, two runs differ by more than the parts of one run. If the other side has a single run, it is
//! assumed to have the same variability. If each side has one run, only the variability within the runs is known, and
//! the result reports this.

pub(crate) mod headline;
mod limit;
pub(crate) mod record_figures;
mod survey_figures;
pub(crate) mod unlike;

pub use limit::RegressionLimit;

use crate::difference::{Difference, FALSE_ALARM_PROBABILITY, Scale, difference, holm};
use crate::error::StatsError;
use crate::estimate::Estimate;
use brimful_core::comparison::{
    ComparedDocument, ComparedSide, MetricComparison, MetricUnit, SCHEMA, ServerComparison, Variability,
};
use brimful_core::moments;
use brimful_core::record::Record;
use brimful_core::survey::Survey;
use std::collections::BTreeMap;

/// One side (A or B) of a comparison, with its documents.
#[derive(Clone, Debug)]
pub struct Side {
    /// Name that the user gave to this side of the comparison.
    pub name: String,
    /// The documents of this side, each with the name that the user gave to the document. There is at least one.
    pub runs: Vec<(String, Run)>,
}

/// A Record or a survey, which can be compared with another document of its kind.
#[derive(Clone, Debug)]
pub enum Run {
    /// The Record of a load.
    Record(Box<Record>),
    /// The document of a survey.
    Survey(Box<Survey>),
}

/// Name and unit of a metric, and whether lower values are better.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetricKind {
    /// The metric's name in reports and in `--max-regression`, such as `p99`.
    pub(crate) name: String,
    /// Unit of the metric's values.
    pub(crate) unit: MetricUnit,
    /// Whether a decrease of the metric is an improvement.
    pub(crate) lower_is_better: bool,
}

/// The value of a metric in one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    /// Name and unit of the metric.
    pub(crate) kind: MetricKind,
    /// The metric's value over the whole run.
    pub(crate) value: f64,
    /// The value with a standard error that follows from the variation between equal periods of the run; `None` if the
    /// run was not divided into periods.
    pub(crate) within: Option<Estimate>,
    /// Minimum standard error of the value, which was counted in whole numbers or rounded.
    pub(crate) resolution: f64,
}

/// Compares side B with side A.
///
/// # Errors
/// [`StatsError::NotComparable`] if the runs had different loads, if a side has no valid run, or if a limit names a
/// metric that the runs do not have.
pub fn compare(a: Side, b: Side, limits: &[RegressionLimit]) -> Result<ServerComparison, StatsError> {
    let (a, b, warnings) = unlike::check(a, b)?;
    let variability = match (a.runs.len(), b.runs.len()) {
        (1, 1) => Variability::WithinRuns,
        _ => Variability::BetweenRuns,
    };
    let [ours, theirs] = [&a, &b].map(|side| side.runs.iter().map(|(_, run)| run.figures(variability)).collect());
    let pairs = Pair::all(ours, theirs);
    let figures = compared_figures(&pairs);
    let mut compared = ServerComparison {
        schema: SCHEMA.to_owned(),
        brimful_version: env!("CARGO_PKG_VERSION").to_owned(),
        headline: String::new(),
        a: a.describe(),
        b: b.describe(),
        variability,
        no_other_difference_above: bound_of_others(&figures),
        limits: limits.iter().map(|limit| limit.judge(&figures)).collect::<Result<_, _>>()?,
        figures,
        warnings,
    };
    compared.headline = headline::headline(&compared.figures, compared.no_other_difference_above);
    Ok(compared)
}

impl Run {
    /// The metrics of this run that are compared.
    pub(crate) fn figures(&self, variability: Variability) -> Vec<Measured> {
        match self {
            Run::Record(record) => record_figures::figures(record, variability),
            Run::Survey(survey) => survey_figures::figures(survey),
        }
    }

    /// The labels that the user gave the run.
    pub(crate) fn labels(&self) -> &BTreeMap<String, String> {
        match self {
            Run::Record(record) => &record.labels,
            Run::Survey(survey) => &survey.labels,
        }
    }

    fn describe(&self, file: &str) -> ComparedDocument {
        let file = file.to_owned();
        match self {
            Run::Record(record) => ComparedDocument {
                file,
                started_at: record.started_at.clone(),
                server_software: record.server_software.clone(),
                machine: record.machine.clone(),
            },
            Run::Survey(survey) => ComparedDocument {
                file,
                started_at: survey.started_at.clone(),
                server_software: None,
                machine: survey.machine.clone(),
            },
        }
    }
}

impl Side {
    fn describe(&self) -> ComparedSide {
        let all_have =
            |name: &String, value: &String| self.runs.iter().all(|(_, run)| run.labels().get(name) == Some(value));
        let labels = self.runs.first().map(|(_, run)| run.labels().clone()).unwrap_or_default();
        ComparedSide {
            name: self.name.clone(),
            documents: self.runs.iter().map(|(file, run)| run.describe(file)).collect(),
            labels: labels.into_iter().filter(|(name, value)| all_have(name, value)).collect(),
        }
    }
}

/// The values of one metric in all runs of both sides.
pub(crate) struct Pair {
    /// Name and unit of the metric.
    pub(crate) kind: MetricKind,
    /// The metric in the runs of side A.
    pub(crate) a: MetricOfSide,
    /// The metric in the runs of side B.
    pub(crate) b: MetricOfSide,
}

/// The values of a metric in all runs of one side.
#[derive(Clone, Debug)]
pub(crate) struct MetricOfSide {
    /// The metric's value in each run; empty if a run does not have the metric.
    pub(crate) runs: Vec<Measured>,
}

impl MetricKind {
    /// Whether differences of the metric are relative or absolute.
    pub(crate) fn scale(&self) -> Scale {
        if self.unit == MetricUnit::Share { Scale::Absolute } else { Scale::Relative }
    }
}

/// Names and units of all metrics of these runs, in the order of the run with the most metrics.
pub(crate) fn metric_kinds<'a>(runs: &[&'a Vec<Measured>]) -> Vec<&'a MetricKind> {
    let mut kinds: Vec<&MetricKind> = Vec::new();
    let mut longest_first = runs.to_vec();
    longest_first.sort_by_key(|figures| std::cmp::Reverse(figures.len()));
    for measured in longest_first.into_iter().flatten() {
        if !kinds.iter().any(|kind| kind.name == measured.kind.name) {
            kinds.push(&measured.kind);
        }
    }
    kinds
}

impl Pair {
    /// Pairs the metrics of both sides. Leaves out metrics that neither all runs of side A nor all runs of side B have.
    /// `a` and `b` contain the metrics of each run.
    fn all(a: Vec<Vec<Measured>>, b: Vec<Vec<Measured>>) -> Vec<Pair> {
        let runs: Vec<&Vec<Measured>> = a.iter().chain(&b).collect();
        let pair = |kind: &MetricKind| Pair {
            kind: kind.clone(),
            a: MetricOfSide::new(&a, &kind.name),
            b: MetricOfSide::new(&b, &kind.name),
        };
        let pairs = metric_kinds(&runs).into_iter().map(pair);
        pairs.filter(|pair| !pair.a.runs.is_empty() || !pair.b.runs.is_empty()).collect()
    }

    /// The difference of the sides with its confidence interval; `None` if the variability of a side is not known.
    pub(crate) fn difference(&self) -> Option<Difference> {
        let scale = self.kind.scale();
        let (a, b) = match (&self.a.runs[..], &self.b.runs[..]) {
            ([], _) | (_, []) => return None,
            ([a], [b]) => (a.within?, b.within?),
            ([_], _) => self.b.with_variability_for(&self.a, scale)?,
            (_, [_]) => {
                let (b, a) = self.a.with_variability_for(&self.b, scale)?;
                (a, b)
            }
            _ => (Estimate::from_runs(&self.a.values())?, Estimate::from_runs(&self.b.values())?),
        };
        difference(&a.with_resolution(self.a.resolution()), &b.with_resolution(self.b.resolution()), scale)
    }
}

impl MetricOfSide {
    fn new(runs: &[Vec<Measured>], name: &str) -> MetricOfSide {
        let figure = |figures: &Vec<Measured>| figures.iter().find(|measured| measured.kind.name == name).cloned();
        MetricOfSide { runs: runs.iter().map(figure).collect::<Option<_>>().unwrap_or_default() }
    }

    pub(crate) fn values(&self) -> Vec<f64> {
        self.runs.iter().map(|measured| measured.value).collect()
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        moments::mean(&self.values())
    }

    /// Minimum standard error of the mean over the runs, from the minimum standard error of each value.
    fn resolution(&self) -> f64 {
        let squares: f64 = self.runs.iter().map(|measured| measured.resolution.powi(2)).sum();
        squares.sqrt() / self.runs.len() as f64
    }

    /// The estimates of two sides, `single` with one run and `self` with n runs, under the assumption that both sides
    /// have the same variability. With the standard deviation s of the n runs, the variance of the difference of the
    /// means is s²(1 + 1/n). The estimate of `single` has all of this variance, and the degrees of freedom of the n
    /// runs.
    fn with_variability_for(&self, single: &MetricOfSide, scale: Scale) -> Option<(Estimate, Estimate)> {
        let several = Estimate::from_runs(&self.values())?;
        let value = single.mean()?;
        let ratio = match scale {
            Scale::Relative => value / several.value,
            Scale::Absolute => 1.0,
        };
        let runs = self.runs.len() as f64;
        let standard_error = several.standard_error * (runs + 1.0).sqrt() * ratio;
        let one = Estimate { value, standard_error, degrees_of_freedom: several.degrees_of_freedom };
        Some((one, Estimate { standard_error: 0.0, ..several }))
    }
}

fn compared_figures(pairs: &[Pair]) -> Vec<MetricComparison> {
    let figure = |pair: &Pair| {
        let (a, b) = (pair.a.mean(), pair.b.mean());
        let size = |(a, b): (f64, f64)| match pair.kind.scale() {
            Scale::Absolute => Some(b - a),
            Scale::Relative => (a > 0.0).then(|| b / a - 1.0),
        };
        let without_interval = a.zip(b).and_then(size);
        MetricDifference { kind: pair.kind.clone(), a, b, without_interval, difference: pair.difference() }
    };
    judged_together(pairs.iter().map(figure).collect())
}

/// A metric of both sides, before its p-value is adjusted for the number of metrics.
pub(crate) struct MetricDifference {
    /// Name and unit of the metric.
    pub(crate) kind: MetricKind,
    /// Mean over the runs of side A; `None` if not all runs have the metric.
    pub(crate) a: Option<f64>,
    /// Mean over the runs of side B; `None` if not all runs have the metric.
    pub(crate) b: Option<f64>,
    /// The difference of the means, which is reported if its confidence interval is not known.
    pub(crate) without_interval: Option<f64>,
    /// The difference with its confidence interval; `None` if it is not known.
    pub(crate) difference: Option<Difference>,
}

/// Determines which metrics differ significantly. The p-values are adjusted for the number of metrics.
pub(crate) fn judged_together(figures: Vec<MetricDifference>) -> Vec<MetricComparison> {
    let p_values: Vec<f64> = figures.iter().filter_map(|figure| Some(figure.difference?.p)).collect();
    let mut adjusted = holm(&p_values).into_iter();
    let judged = |MetricDifference { kind, a, b, without_interval, difference }: MetricDifference| {
        let p = difference.and_then(|_| adjusted.next());
        MetricComparison {
            name: kind.name,
            unit: kind.unit,
            a,
            b,
            difference: difference.map(|difference| difference.value).or(without_interval),
            interval95: difference.map(|difference| difference.interval95),
            p,
            differs: p.is_some_and(|p| p < FALSE_ALARM_PROBABILITY),
            detectable: difference.and_then(|difference| difference.smallest_detectable(p_values.len())),
            lower_is_better: kind.lower_is_better,
        }
    };
    figures.into_iter().map(judged).collect()
}

/// The largest difference within the 95 % intervals of the metrics whose difference is not significant.
pub(crate) fn bound_of_others(figures: &[MetricComparison]) -> Option<f64> {
    let others = figures.iter().filter(|figure| !figure.differs);
    others.filter_map(|figure| figure.interval95).flatten().map(f64::abs).reduce(f64::max)
}
