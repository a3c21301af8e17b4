//! Compares the Records or surveys of two sides, A and B, figure by figure.
//!
//! With several runs on a side, the runs are replications, and their differences are the variability of every figure:
//! on most hosts, two runs differ by more than the parts of one run. A side of one run then has the variability of the
//! other side's runs. With one run on each side, the variability within the runs must do, and the result says so.

pub(crate) mod headline;
mod limit;
pub(crate) mod record_figures;
mod survey_figures;
pub(crate) mod unlike;

pub use limit::RegressionLimit;

use crate::difference::{Difference, FALSE_ALARMS, Scale, difference, holm};
use crate::error::StatsError;
use crate::estimate::Estimate;
use brimful_core::comparison::{
    Compared, ComparedDocument, ComparedFigure, ComparedSide, FigureUnit, SCHEMA, Variability,
};
use brimful_core::moments;
use brimful_core::record::Record;
use brimful_core::survey::Survey;
use std::collections::BTreeMap;

/// The documents of one side.
#[derive(Clone, Debug)]
pub struct Side {
    /// The user's name for the side.
    pub name: String,
    /// The documents, each with the user's name for it. At least one.
    pub runs: Vec<(String, Run)>,
}

/// A document that can be compared with others of its kind.
#[derive(Clone, Debug)]
pub enum Run {
    /// A Record.
    Record(Box<Record>),
    /// A survey.
    Survey(Box<Survey>),
}

/// Identity of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FigureKind {
    pub(crate) name: String,
    pub(crate) unit: FigureUnit,
    pub(crate) lower_is_better: bool,
}

/// A figure of one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) kind: FigureKind,
    pub(crate) value: f64,
    /// The estimate of the value and its error from parts of the run of equal length; `None` without such parts.
    pub(crate) within: Option<Estimate>,
    /// The smallest standard error that the figure can have, because it was counted or rounded.
    pub(crate) resolution: f64,
}

/// Compares B with A.
///
/// # Errors
/// [`StatsError::NotComparable`] if the runs have nothing in common that could be compared, or if a limit is about
/// another figure.
pub fn compare(a: Side, b: Side, limits: &[RegressionLimit]) -> Result<Compared, StatsError> {
    let (a, b, warnings) = unlike::check(a, b)?;
    let variability = match (a.runs.len(), b.runs.len()) {
        (1, 1) => Variability::WithinRuns,
        _ => Variability::BetweenRuns,
    };
    let [ours, theirs] = [&a, &b].map(|side| side.runs.iter().map(|(_, run)| run.figures(variability)).collect());
    let pairs = Pair::all(ours, theirs);
    let figures = compared_figures(&pairs);
    let mut compared = Compared {
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
    pub(crate) fn figures(&self, variability: Variability) -> Vec<Measured> {
        match self {
            Run::Record(record) => record_figures::figures(record, variability),
            Run::Survey(survey) => survey_figures::figures(survey),
        }
    }

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

/// One figure of all runs of both sides.
pub(crate) struct Pair {
    pub(crate) kind: FigureKind,
    pub(crate) a: FigureOfSide,
    pub(crate) b: FigureOfSide,
}

/// One figure of the runs of a side.
#[derive(Clone, Debug)]
pub(crate) struct FigureOfSide {
    /// The figure in each run; empty if a run does not have it.
    pub(crate) runs: Vec<Measured>,
}

impl FigureKind {
    /// How differences of the figure are expressed.
    pub(crate) fn scale(&self) -> Scale {
        if self.unit == FigureUnit::Share { Scale::Absolute } else { Scale::Relative }
    }
}

/// The kinds of all figures of these runs, in the order of the run that has most of them.
pub(crate) fn figure_kinds<'a>(runs: &[&'a Vec<Measured>]) -> Vec<&'a FigureKind> {
    let mut kinds: Vec<&FigureKind> = Vec::new();
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
    /// The figures that all runs of a side have, in the order of the runs that have most of them.
    fn all(a: Vec<Vec<Measured>>, b: Vec<Vec<Measured>>) -> Vec<Pair> {
        let runs: Vec<&Vec<Measured>> = a.iter().chain(&b).collect();
        let pair = |kind: &FigureKind| Pair {
            kind: kind.clone(),
            a: FigureOfSide::new(&a, &kind.name),
            b: FigureOfSide::new(&b, &kind.name),
        };
        let pairs = figure_kinds(&runs).into_iter().map(pair);
        pairs.filter(|pair| !pair.a.runs.is_empty() || !pair.b.runs.is_empty()).collect()
    }

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

impl FigureOfSide {
    fn new(runs: &[Vec<Measured>], name: &str) -> FigureOfSide {
        let figure = |figures: &Vec<Measured>| figures.iter().find(|measured| measured.kind.name == name).cloned();
        FigureOfSide { runs: runs.iter().map(figure).collect::<Option<_>>().unwrap_or_default() }
    }

    pub(crate) fn values(&self) -> Vec<f64> {
        self.runs.iter().map(|measured| measured.value).collect()
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        moments::mean(&self.values())
    }

    /// The smallest standard error of the mean over the runs.
    fn resolution(&self) -> f64 {
        let squares: f64 = self.runs.iter().map(|measured| measured.resolution.powi(2)).sum();
        squares.sqrt() / self.runs.len() as f64
    }

    /// The estimates of a side of one run and of this side of several runs, if the runs of both vary alike: with the
    /// standard deviation s of this side's n runs, the variance of the difference is s²(1 + 1/n). The first estimate
    /// has all of it, so that it keeps this side's degrees of freedom.
    fn with_variability_for(&self, single: &FigureOfSide, scale: Scale) -> Option<(Estimate, Estimate)> {
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

fn compared_figures(pairs: &[Pair]) -> Vec<ComparedFigure> {
    let figure = |pair: &Pair| {
        let (a, b) = (pair.a.mean(), pair.b.mean());
        let size = |(a, b): (f64, f64)| match pair.kind.scale() {
            Scale::Absolute => Some(b - a),
            Scale::Relative => (a > 0.0).then(|| b / a - 1.0),
        };
        let without_interval = a.zip(b).and_then(size);
        Differing { kind: pair.kind.clone(), a, b, without_interval, difference: pair.difference() }
    };
    judged_together(pairs.iter().map(figure).collect())
}

/// A figure of both sides, before its p-value is adjusted for the number of figures.
pub(crate) struct Differing {
    pub(crate) kind: FigureKind,
    pub(crate) a: Option<f64>,
    pub(crate) b: Option<f64>,
    /// The size of the difference if its interval is not known.
    pub(crate) without_interval: Option<f64>,
    pub(crate) difference: Option<Difference>,
}

/// Judges all figures of a comparison, with p-values that are adjusted for their number.
pub(crate) fn judged_together(figures: Vec<Differing>) -> Vec<ComparedFigure> {
    let p_values: Vec<f64> = figures.iter().filter_map(|figure| Some(figure.difference?.p)).collect();
    let mut adjusted = holm(&p_values).into_iter();
    let judged = |Differing { kind, a, b, without_interval, difference }: Differing| {
        let p = difference.and_then(|_| adjusted.next());
        ComparedFigure {
            name: kind.name,
            unit: kind.unit,
            a,
            b,
            difference: difference.map(|difference| difference.value).or(without_interval),
            interval95: difference.map(|difference| difference.interval95),
            p,
            differs: p.is_some_and(|p| p < FALSE_ALARMS),
            detectable: difference.and_then(|difference| difference.detectable(p_values.len())),
            lower_is_better: kind.lower_is_better,
        }
    };
    figures.into_iter().map(judged).collect()
}

/// Upper bound of the differences of the figures that do not differ.
pub(crate) fn bound_of_others(figures: &[ComparedFigure]) -> Option<f64> {
    let others = figures.iter().filter(|figure| !figure.differs);
    others.filter_map(|figure| figure.interval95).flatten().map(f64::abs).reduce(f64::max)
}
