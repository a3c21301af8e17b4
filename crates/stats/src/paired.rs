//! The differences of two servers that were measured in turn, in rounds of short slices. A slice is a measurement of
//! one server.
//!
//! A round has slices of both servers, close together in time, so a slow change of the host affects both servers
//! equally. The difference of a round is the difference of the servers' mean logarithms over their slices (for shares,
//! of the mean values). If the order of the servers within a round is random, the differences of successive rounds are
//! independent and symmetric around the true difference, whatever the host does. So the result is a trimmed mean over
//! the rounds with its confidence interval, and a few disturbed rounds do not widen the interval.

use crate::compare::headline::clause;
use crate::compare::record_figures::{cpu_per_call, figures};
use crate::compare::{Measured, MetricDifference, MetricKind, judged_together, metric_kinds};
use crate::difference::{Scale, difference};
use crate::estimate::Estimate;
use brimful_core::comparison::{MetricComparison, MetricUnit, Variability};
use brimful_core::moments;
use brimful_core::record::Record;

/// Minimum number of rounds (measurements of both servers) for a confidence interval. The variance between fewer rounds
/// is too uncertain.
const MIN_ROUNDS: usize = 5;

/// Factor by which standard errors are increased. There are two reasons: rounds are added until the interval is narrow
/// enough, and the mean of a few rounds is not exactly normally distributed. Without this factor, one or two percent
/// fewer intervals would contain the true value. With it, 93 % to 97 % do in simulations
/// (`crates/ab/src/simulated.rs`).
const STANDARD_ERROR_FACTOR: f64 = 1.06;

/// The metrics of one slice: a short measurement of one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceMetrics(Vec<Measured>);

/// One round of a comparison: short measurements (slices) of both servers, close together in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairedRound {
    /// Slices of server A, with which B is compared.
    pub a: Vec<SliceMetrics>,
    /// Slices of server B.
    pub b: Vec<SliceMetrics>,
}

impl SliceMetrics {
    /// The metrics of a slice's Record. `cpu_s` is the CPU time that the server used during the slice, in seconds;
    /// `None` if it is not known.
    pub fn from_record(record: &Record, cpu_s: Option<f64>) -> SliceMetrics {
        let mut measured = figures(record, Variability::BetweenRuns);
        measured.retain(|figure| figure.kind.name != "cpu");
        measured.extend(cpu_s.and_then(|cpu_s| cpu_per_call(record, cpu_s, None)));
        SliceMetrics(measured)
    }

    /// A slice with a single metric: a time in seconds, for which lower is better.
    pub fn from_value(name: &str, value: f64) -> SliceMetrics {
        let kind = MetricKind { name: name.to_owned(), unit: MetricUnit::Seconds, lower_is_better: true };
        SliceMetrics(vec![Measured { kind, value, within: None, resolution: 0.0 }])
    }

    /// The slice without the metrics for whose names `is_kept` returns false.
    pub fn filtered(&self, is_kept: impl Fn(&str) -> bool) -> SliceMetrics {
        SliceMetrics(self.0.iter().filter(|measured| is_kept(&measured.kind.name)).cloned().collect())
    }

    /// The names of all metrics of the slice.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|measured| measured.kind.name.as_str()).collect()
    }

    /// The value of a metric; `None` if the slice does not have it.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|measured| measured.kind.name == name).map(|measured| measured.value)
    }
}

/// The differences of all metrics over these rounds. The metric `main` was chosen before the measurement, so its
/// p-value is not adjusted. The p-values of the other metrics are adjusted for the number of these metrics.
pub fn paired_differences(rounds: &[PairedRound], main: &str) -> Vec<MetricComparison> {
    let all: Vec<&Vec<Measured>> =
        rounds.iter().flat_map(|round| round.a.iter().chain(&round.b)).map(|slice| &slice.0).collect();
    let kinds = metric_kinds(&all);
    let (main, others): (Vec<_>, Vec<_>) =
        kinds.iter().map(|kind| differing(rounds, kind)).partition(|figure| figure.kind.name == main);
    let mut judged = [judged_together(main), judged_together(others)].concat();
    let place = |figure: &MetricComparison| kinds.iter().position(|kind| kind.name == figure.name);
    judged.sort_by_key(place);
    judged
}

/// Half the width of the 95 % confidence interval of a metric's difference; `None` if it has no interval.
pub fn half_width(figure: &MetricComparison) -> Option<f64> {
    figure.interval95.map(|[low, high]| (high - low) / 2.0)
}

/// The difference of each round that has the metric `name` on both sides: ln(B/A) or, for shares, B − A.
pub fn round_differences(rounds: &[PairedRound], name: &str) -> Vec<f64> {
    let all: Vec<&Vec<Measured>> =
        rounds.iter().flat_map(|round| round.a.iter().chain(&round.b)).map(|slice| &slice.0).collect();
    let kind = metric_kinds(&all).into_iter().find(|kind| kind.name == name).cloned();
    let Some(kind) = kind else { return Vec::new() };
    rounds.iter().filter_map(|round| MetricOfRound::new(round, &kind)).map(|round| round.b - round.a).collect()
}

/// Writes a clause about the difference of a metric, like "B uses 18 % less CPU time per request (17 … 19 %)".
pub fn difference_clause(figure: &MetricComparison) -> String {
    clause(figure, "B", "B's")
}

/// A metric in one round, for both servers: mean logarithms or, for shares, mean values.
struct MetricOfRound {
    a: f64,
    b: f64,
    /// Minimum standard error of the difference b − a, because the metric was counted in whole numbers or rounded.
    resolution: f64,
}

impl MetricOfRound {
    /// Returns `None` if a server has no slice with the metric.
    fn new(round: &PairedRound, kind: &MetricKind) -> Option<MetricOfRound> {
        let side = |slices: &[SliceMetrics]| {
            let measured = slices.iter().filter_map(|slice| slice.0.iter().find(|other| other.kind.name == kind.name));
            let scaled: Vec<(f64, f64)> = match kind.scale() {
                Scale::Absolute => measured.map(|figure| (figure.value, figure.resolution)).collect(),
                Scale::Relative => measured
                    .filter(|figure| figure.value > 0.0)
                    .map(|figure| (figure.value.ln(), figure.resolution / figure.value))
                    .collect(),
            };
            let (values, resolutions): (Vec<f64>, Vec<f64>) = scaled.into_iter().unzip();
            let variance: f64 =
                resolutions.iter().map(|error| error * error).sum::<f64>() / (values.len() as f64).powi(2);
            Some((moments::mean(&values)?, variance))
        };
        let (a, a_variance) = side(&round.a)?;
        let (b, b_variance) = side(&round.b)?;
        Some(MetricOfRound { a, b, resolution: (a_variance + b_variance).sqrt() })
    }
}

fn differing(rounds: &[PairedRound], kind: &MetricKind) -> MetricDifference {
    let rounds: Vec<MetricOfRound> = rounds.iter().filter_map(|round| MetricOfRound::new(round, kind)).collect();
    let count = rounds.len() as f64;
    let resolution = rounds.iter().map(|round| round.resolution.powi(2)).sum::<f64>().sqrt() / count;
    let differences: Vec<f64> = rounds.iter().map(|round| round.b - round.a).collect();
    let values: Vec<f64> = rounds.iter().map(|round| round.a).collect();
    let level = Estimate::from_trimmed(&values).map(|level| level.value).or_else(|| moments::mean(&values));
    let change = Estimate::from_trimmed(&differences).map(|change| change.with_resolution(resolution));
    let middle = change.map(|change| change.value).or_else(|| moments::mean(&differences));
    let scale = kind.scale();
    let a = level.map(|level| if scale == Scale::Relative { level.exp() } else { level });
    let b = level.zip(middle).map(
        |(level, middle)| {
            if scale == Scale::Relative { (level + middle).exp() } else { level + middle }
        },
    );
    let sides = a.zip(b).zip(change).filter(|_| rounds.len() >= MIN_ROUNDS);
    let difference = sides.and_then(|((a, b), change)| {
        // The difference has its own standard error, so the mean of A is treated as an exact value.
        let first = Estimate { value: a, standard_error: 0.0, degrees_of_freedom: change.degrees_of_freedom };
        let unit = if scale == Scale::Relative { b } else { 1.0 };
        difference(
            &first,
            &Estimate { value: b, standard_error: STANDARD_ERROR_FACTOR * change.standard_error * unit, ..change },
            scale,
        )
    });
    let without_interval = middle.map(|middle| if scale == Scale::Relative { middle.exp_m1() } else { middle });
    MetricDifference { kind: kind.clone(), a, b, without_interval, difference }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(a: &[f64], b: &[f64]) -> PairedRound {
        let slices = |values: &[f64]| values.iter().map(|value| SliceMetrics::from_value("cpu", *value)).collect();
        PairedRound { a: slices(a), b: slices(b) }
    }

    #[test]
    fn the_difference_of_a_round_is_that_of_logarithms_and_the_host_cancels() {
        // The host becomes four times as slow over the five rounds, but B always takes twice as long as A.
        let rounds: Vec<PairedRound> = [1.0, 1.3, 2.0, 2.9, 4.0]
            .iter()
            .enumerate()
            .map(|(place, slow)| round(&[slow * 1.0, slow * 4.0], &[slow * 4.0 * (1.0 + 0.01 * (place % 2) as f64)]))
            .collect();
        let [cpu] = &paired_differences(&rounds, "cpu")[..] else { panic!() };
        let [low, high] = cpu.interval95.unwrap();
        assert!((cpu.difference.unwrap() - 1.0).abs() < 0.01 && low > 0.9 && high < 1.1, "{cpu:?}");
        assert!((cpu.b.unwrap() / cpu.a.unwrap() - 1.0 - cpu.difference.unwrap()).abs() < 1e-12, "{cpu:?}");
        assert!(difference_clause(cpu).starts_with("B uses 101 % more CPU time per request"), "{cpu:?}");
        assert_eq!(half_width(cpu), Some((high - low) / 2.0));
        assert_eq!(round_differences(&rounds, "cpu").len(), 5);
    }

    #[test]
    fn too_few_rounds_have_a_difference_without_an_interval() {
        let rounds = vec![round(&[1.0], &[2.0]), round(&[1.0], &[2.0]), round(&[], &[2.0])];
        let [cpu] = &paired_differences(&rounds, "cpu")[..] else { panic!() };
        assert_eq!((cpu.interval95, cpu.p), (None, None));
        assert!((cpu.difference.unwrap() - 1.0).abs() < 1e-12, "{cpu:?}");
        assert!(paired_differences(&[], "cpu").is_empty());
    }

    #[test]
    fn one_disturbed_round_does_not_widen_the_interval() {
        let mut rounds: Vec<PairedRound> =
            (0..10).map(|place| round(&[1.0], &[1.0 + 0.01 * f64::from(place % 3)])).collect();
        let width = |rounds: &[PairedRound]| half_width(&paired_differences(rounds, "cpu")[0]).unwrap();
        let quiet = width(&rounds);
        rounds[4] = round(&[1.0], &[30.0]);
        assert!(width(&rounds) < 1.5 * quiet, "{} and {quiet}", width(&rounds));
    }
}
