//! Objectives: the highest rate at which, say, 99 % of all calls take less than 50 ms. The rate is predicted like all
//! other results, and then measured by a search near the prediction. The search offers short slices of load, and the
//! rate of each slice follows from the results of the earlier slices ([`brimful_estimate::rate_search`]).
//!
//! An objective is judged over the long run. So a slice during a bad moment of the host counts like any other, and only
//! slices in which the generator itself was the limit are dropped.

use crate::calibration::Calibration;
use crate::runner::{Halt, Runner};
use crate::setup::{Setup, times};
use crate::trial::Trial;
use brimful_core::quantity;
use brimful_core::record::Record;
use brimful_core::slo::Measure;
use brimful_core::survey::{Comparison, ObjectiveOutcome, ObjectiveSlice, RateUnderObjective};
use brimful_core::workload::Load;
use brimful_core::{Nanos, Rate, Slo, SloSpec};
use brimful_estimate::{LevelTime, LimitedMeasure, PredictedValue, RateEstimate, RateSearch, ResponseLimit, Slice};
use brimful_stats::{CallsByLimit, count_by_limit, pooled_figure};
use std::fmt;

/// The objective of a survey for which the user gave none.
pub(crate) fn default_objective() -> SloSpec {
    SloSpec::Relative { measure: Measure::Percentile { class: None, percent: 99.0 }, factor: 10.0 }
}

/// Length of a slice (a short load of a search), and maximum total length of the slices of a search, in units of
/// `--level`.
const SLICE: f64 = 0.4;
const BUDGET: f64 = 10.0;
/// A slice has at least this many calls, unless that takes longer than [`LONGEST_SLICE`].
const SLICE_CALLS: f64 = 200.0;
const LONGEST_SLICE: Nanos = Nanos::from_secs(5);
/// The search ends when half the width of the interval is at most this share of the rate.
const PRECISION: f64 = 0.03;
const MIN_SLICES: usize = 10;
/// If half the width of a rate's interval exceeds this share of the rate, the outcome is undecided.
const DECIDED: f64 = 0.3;
/// The search ends after this number of slices in which the generator was the limit.
const MAX_UNUSED: usize = 3;
/// The lowest rate that is searched, as a share of the capacity. The highest rate is the capacity: above the
/// capacity, response times grow without bound in the long run, although a short slice may not show this.
const LOWEST: f64 = 0.01;
/// If the rate is at least this share of the capacity, the objective counts as met up to the capacity.
const UP_TO_CAPACITY: f64 = 0.97;
/// A slice lasts for at least this many times the limit of an objective, unless that takes longer than
/// [`LONGEST_SLICE`]. A queue needs time to become as long as the limit.
const SLICE_LIMITS: f64 = 10.0;
/// The rate of the first slice of a search without a prediction, as a share of the capacity.
const FIRST: f64 = 0.8;
/// If no call of a slice had an expected answer, its mean response time counts as this many times the limit.
const UNANSWERED: f64 = 1000.0;

/// An objective, the value of its metric at light load, and the highest rate at which it is predicted to be met.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedObjective {
    /// The objective as the user gave it.
    pub spec: SloSpec,
    /// The objective with its limit in seconds or as a share. `None` if the limit is a multiple of the value at light
    /// load, and light load has no such value.
    pub slo: Option<Slo>,
    /// The measured value of the limited metric at light load: seconds, or a share of errors.
    pub light_load: Option<f64>,
    /// Whether light load already misses the objective.
    pub is_missed_at_light_load: bool,
    /// The rate at which the objective is just met, in calls per second. `None` for a share of errors, which a model
    /// does not predict, and for an objective that light load misses.
    pub rate: Option<PredictedValue>,
}

impl fmt::Display for PredictedObjective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.slo {
            Some(slo) => slo.fmt(f),
            None => self.spec.fmt(f),
        }
    }
}

/// Predicts the rate of each objective, before the rate of any objective is measured. `ahead` is the time from the end
/// of calibration to the start of the search.
pub(crate) fn predict_objectives(
    runner: &Runner<'_>,
    calibration: &Calibration,
    ahead: Nanos,
) -> Result<Vec<PredictedObjective>, Halt> {
    let setup = runner.setup;
    setup.objectives.iter().map(|spec| predict_objective(runner, calibration, spec, ahead)).collect()
}

fn predict_objective(
    runner: &Runner<'_>,
    calibration: &Calibration,
    spec: &SloSpec,
    ahead: Nanos,
) -> Result<PredictedObjective, Halt> {
    let light: Vec<&Record> = calibration.light_load.iter().collect();
    let light_load = pooled_value(&light, spec.measure())?;
    let slo = match spec {
        SloSpec::Absolute(slo) => Some(slo.clone()),
        SloSpec::Relative { .. } => light_load.map(|figure| spec.resolve(figure)),
    };
    // Without a value, too many calls of the light load failed, so the light load misses the objective.
    let is_missed = |slo: &Slo| light_load.map_or(!light.is_empty(), |figure| figure >= slo.limit);
    let is_missed_at_light_load = slo.as_ref().is_some_and(is_missed);
    let searched = slo.as_ref().filter(|_| !is_missed_at_light_load);
    let rate = searched.map(|slo| predict_rate(runner, calibration, slo, ahead)).transpose()?.flatten();
    Ok(PredictedObjective { spec: spec.clone(), slo, light_load, is_missed_at_light_load, rate })
}

/// Predicts the rate at which an objective is just met. `None` for a share of errors.
fn predict_rate(
    runner: &Runner<'_>,
    calibration: &Calibration,
    slo: &Slo,
    ahead: Nanos,
) -> Result<Option<PredictedValue>, Halt> {
    let setup = runner.setup;
    let limited = match slo.measure {
        Measure::ErrorShare { .. } | Measure::Utilization { .. } => return Ok(None),
        Measure::Percentile { .. } | Measure::Mean { .. } => limited_figure(slo),
    };
    let class_index = |name: &str| setup.workload.classes.iter().position(|class| class.name == name);
    let limit = ResponseLimit { seconds: slo.limit, limited, class: slo.measure.class().and_then(class_index) };
    let mut failure = None;
    let mut arrivals = |rate: f64, seed: u64, seconds: f64| {
        let workload = setup.workload_with(Load::poisson(Rate(rate)));
        let schedule = runner.bench.schedule(&workload, Nanos::from_secs_f64(seconds), seed);
        schedule.unwrap_or_else(|error| {
            failure = Some(error);
            Vec::new()
        })
    };
    let seconds = times(BUDGET, setup.level).as_secs_f64();
    let time = LevelTime { ahead_s: ahead.as_secs_f64(), seconds };
    let rate = calibration.fit.predict_rate(&setup.workload.mix(), limit, time, &mut arrivals);
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(rate?),
    }
}

/// The measure that an objective limits: the share of the calls beyond the limit or without an answer, or the mean.
fn limited_figure(slo: &Slo) -> LimitedMeasure {
    match slo.measure {
        Measure::Percentile { percent, .. } => LimitedMeasure::Share(1.0 - percent / 100.0),
        Measure::ErrorShare { .. } => LimitedMeasure::Share(slo.limit.clamp(1e-6, 0.999)),
        Measure::Mean { .. } | Measure::Utilization { .. } => LimitedMeasure::Mean,
    }
}

/// The results of objectives whose rates were predicted but not measured.
pub(crate) fn predicted_only(predicted: &[PredictedObjective]) -> Vec<RateUnderObjective> {
    predicted.iter().map(|objective| result(objective, None, &[])).collect()
}

/// The result of an objective. `found` has the rate that the search found so far, and the server's capacity.
fn result(
    objective: &PredictedObjective,
    found: Option<(RateEstimate, f64)>,
    slices: &[ObjectiveSlice],
) -> RateUnderObjective {
    let decided = found.filter(|(estimate, _)| estimate.relative_half_width() <= DECIDED);
    let (outcome, measured) = match decided {
        _ if objective.is_missed_at_light_load => (ObjectiveOutcome::MissedAtLightLoad, None),
        None => (ObjectiveOutcome::Undecided, None),
        Some((estimate, capacity)) if estimate.rate >= UP_TO_CAPACITY * capacity => {
            (ObjectiveOutcome::MetUpToCapacity, Some(capacity))
        }
        Some((estimate, _)) => (ObjectiveOutcome::MetUpToRate, Some(estimate.rate)),
    };
    RateUnderObjective {
        objective: objective.to_string(),
        limit: objective.slo.as_ref().map(|slo| slo.limit),
        times_light_load: match objective.spec {
            SloSpec::Relative { factor, .. } => Some(factor),
            SloSpec::Absolute(_) => None,
        },
        light_load: objective.light_load,
        rate: Comparison {
            interval90: objective.rate.map(|rate| rate.interval90),
            ..Comparison::new(objective.rate.map(|rate| rate.median), measured)
        },
        measured_interval90: found.map(|(estimate, capacity)| match (outcome, estimate.interval90) {
            (ObjectiveOutcome::MetUpToCapacity, [low, high]) => [low, high.max(capacity)],
            (_, interval90) => interval90,
        }),
        outcome,
        slices: slices.to_vec(),
    }
}

/// Measures the rate of each objective. `capacity` is the server's capacity in calls per second. Keeps `results` up to
/// date, so that an interrupted search loses nothing.
pub(crate) fn search_rates(
    runner: &mut Runner<'_>,
    predicted: &[PredictedObjective],
    capacity: f64,
    results: &mut [RateUnderObjective],
) -> Result<(), Halt> {
    let setup = runner.setup;
    let mut searches: Vec<Search<'_>> =
        predicted.iter().enumerate().filter_map(|(index, objective)| Search::new(index, objective, capacity)).collect();
    if searches.is_empty() {
        return Ok(());
    }
    let longest_limit = searches.iter().filter_map(Search::time_limit_s).fold(0.0, f64::max);
    let mut remaining = times(BUDGET, setup.level);
    let mut unused = 0;
    runner.begin("the highest rates that meet the objectives".to_owned(), remaining);
    while let Some(rate) = next_rate(&searches).filter(|_| unused <= MAX_UNUSED) {
        let duration = slice_duration(setup, rate, longest_limit);
        if duration > remaining {
            break;
        }
        remaining = remaining - duration;
        let trial = runner.measure(&setup.workload_with(Load::poisson(Rate(rate))), duration)?;
        if trial.failed_share() > 0.0 && !trial.record.interrupted {
            runner.wait_for_recovery();
        }
        runner.check(&trial)?;
        if !trial.not_client_limited() {
            unused += 1;
            continue;
        }
        for search in &mut searches {
            search.add(rate, &trial)?;
            let found = Some((search.posterior.estimate(), capacity));
            results[search.index] = result(search.objective, found, &search.slices);
        }
    }
    Ok(())
}

/// The next rate to offer: that of the search whose result is least certain. `None` if all results are certain enough.
fn next_rate(searches: &[Search<'_>]) -> Option<f64> {
    let open = searches.iter().filter(|search| search.is_open());
    let widest = open.max_by(|a, b| a.width().total_cmp(&b.width()))?;
    Some(widest.next_rate())
}

/// Number of slices of a typical search: most searches end before the maximum number of slices.
pub(crate) fn expected_slices(setup: &Setup) -> usize {
    if setup.objectives.is_empty() { 0 } else { MIN_SLICES + (BUDGET / SLICE) as usize / 3 }
}

/// The duration of a slice at this rate, if the longest limit of an objective is `limit_s` seconds.
pub(crate) fn slice_duration(setup: &Setup, rate: f64, limit_s: f64) -> Nanos {
    let wanted = (SLICE_CALLS / rate.max(1e-9)).max(SLICE_LIMITS * limit_s);
    times(SLICE, setup.level).max(Nanos::from_secs_f64(wanted).min(LONGEST_SLICE))
}

/// The search for the rate of one objective.
struct Search<'a> {
    /// Index of the objective among all objectives of the survey.
    index: usize,
    objective: &'a PredictedObjective,
    slo: &'a Slo,
    posterior: RateSearch,
    first_rate: f64,
    slices: Vec<ObjectiveSlice>,
}

impl<'a> Search<'a> {
    /// Begins a search, unless the objective has no limit or light load misses it.
    fn new(index: usize, objective: &'a PredictedObjective, capacity: f64) -> Option<Search<'a>> {
        let slo = objective.slo.as_ref().filter(|_| !objective.is_missed_at_light_load)?;
        let first_rate = objective.rate.map_or(FIRST * capacity, |rate| rate.median);
        let posterior = RateSearch::new(limited_figure(slo), LOWEST * capacity, capacity);
        Some(Search { index, objective, slo, posterior, first_rate, slices: Vec::new() })
    }

    /// The limit in seconds; `None` for a share of errors.
    fn time_limit_s(&self) -> Option<f64> {
        (!matches!(self.slo.measure, Measure::ErrorShare { .. })).then_some(self.slo.limit)
    }

    /// Whether further slices can make the answer more certain.
    fn is_open(&self) -> bool {
        self.slices.len() < MIN_SLICES || self.width() > PRECISION
    }

    fn width(&self) -> f64 {
        self.posterior.estimate().relative_half_width()
    }

    fn next_rate(&self) -> f64 {
        if self.slices.is_empty() { self.first_rate } else { self.posterior.next_rate() }
    }

    fn add(&mut self, rate: f64, trial: &Trial) -> Result<(), Halt> {
        let CallsByLimit { calls, beyond, value } = count_by_limit(&trial.record, self.slo)?;
        self.posterior.add(
            rate,
            match limited_figure(self.slo) {
                LimitedMeasure::Mean => Slice::Mean(value.map_or(UNANSWERED, |mean| mean / self.slo.limit)),
                LimitedMeasure::Share(_) => Slice::Calls { beyond, calls },
            },
        );
        self.slices.push(ObjectiveSlice { rate, calls, beyond, figure: value });
        Ok(())
    }
}

/// A sentence with the result for an objective.
pub(crate) fn sentence(result: &RateUnderObjective) -> Option<String> {
    let slo: Slo = result.objective.parse().ok()?;
    let of_class = slo.measure.class().map_or(String::new(), |name| format!(" of class {name}"));
    let limit = Nanos::from_secs_f64(slo.limit).to_rounded_string();
    let [wanted, met, missed] = match &slo.measure {
        Measure::Percentile { percent, .. } => [
            format!("{percent} % of calls{of_class} are to take less than {limit}"),
            format!("{percent} % of calls{of_class} take less than {limit}"),
            format!("more than {} of calls{of_class} take longer than {limit}", share(1.0 - percent / 100.0)),
        ],
        Measure::Mean { .. } => [
            format!("calls{of_class} are to take less than {limit} on average"),
            format!("calls{of_class} take less than {limit} on average"),
            format!("calls{of_class} take longer than {limit} on average"),
        ],
        Measure::ErrorShare { .. } => [
            format!("less than {} of calls{of_class} are to fail", share(slo.limit)),
            format!("less than {} of calls{of_class} fail", share(slo.limit)),
            format!("more than {} of calls{of_class} fail", share(slo.limit)),
        ],
        Measure::Utilization { .. } => return None,
    };
    Some(match result.outcome {
        ObjectiveOutcome::MetUpToRate => {
            format!("Keep it below {} if {wanted}.", quantity::rate(result.rate.measured?))
        }
        ObjectiveOutcome::MetUpToCapacity => format!("Even at that rate, {met}."),
        ObjectiveOutcome::MissedAtLightLoad => format!("Even at light load, {missed}."),
        ObjectiveOutcome::Undecided if result.measured_interval90.is_some() => {
            let [low, high] = result.measured_interval90?.map(quantity::rate);
            format!(
                "The rate below which {met} is between {low} and {high}: this host was too unsteady to measure it more \
                 precisely."
            )
        }
        ObjectiveOutcome::Undecided => {
            let rate = quantity::rate(result.rate.predicted?);
            format!("By its model, keep it below {rate} if {wanted}; that was not measured.")
        }
    })
}

/// Formats a share without superfluous digits: 1 %, 0.1 %.
fn share(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(text: &str, light_load: Option<f64>, missed: bool) -> PredictedObjective {
        let spec: SloSpec = text.parse().unwrap();
        let slo = match &spec {
            SloSpec::Absolute(slo) => Some(slo.clone()),
            SloSpec::Relative { .. } => light_load.map(|figure| spec.resolve(figure)),
        };
        PredictedObjective { spec, slo, light_load, is_missed_at_light_load: missed, rate: None }
    }

    #[test]
    fn a_multiple_of_an_unknown_light_load_has_no_limit_and_no_search() {
        let objective = predicted("p99<10x", None, false);
        assert!(Search::new(0, &objective, 1000.0).is_none());
        let found = result(&objective, None, &[]);
        assert_eq!((found.objective.as_str(), found.limit), ("p99<10x", None));
        assert_eq!((found.outcome, sentence(&found)), (ObjectiveOutcome::Undecided, None));
    }

    #[test]
    fn an_objective_is_met_up_to_the_capacity_if_the_rate_is_close_to_it() {
        let objective = predicted("p99<50ms", Some(0.01), false);
        let outcome = |rate: f64, interval90| {
            let found = result(&objective, Some((RateEstimate { rate, interval90 }, 1000.0)), &[]);
            (found.outcome, found.rate.measured)
        };
        assert_eq!(outcome(980.0, [950.0, 1000.0]), (ObjectiveOutcome::MetUpToCapacity, Some(1000.0)));
        assert_eq!(outcome(900.0, [850.0, 940.0]), (ObjectiveOutcome::MetUpToRate, Some(900.0)));
        assert_eq!(outcome(500.0, [200.0, 900.0]), (ObjectiveOutcome::Undecided, None));
        let missed = predicted("p99<5ms", Some(0.01), true);
        assert!(Search::new(0, &missed, 1000.0).is_none());
        assert_eq!(result(&missed, None, &[]).outcome, ObjectiveOutcome::MissedAtLightLoad);
    }
}
