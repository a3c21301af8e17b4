//! Finds the highest rate that meets a performance objective, such as «99 % of all calls take less than 50 ms». The
//! rate is predicted first, and then measured by a search that starts at the prediction. The search offers slices,
//! which are short loads. The rate of each slice depends on the results of the earlier slices
//! ([`brimful_estimate::rate_search`]).
//!
//! An objective must be met in the long run, with all speeds of the host. So slices on a slow host are used too. Only
//! slices in which the load generator was the limit are not used.

use crate::calibration::Calibration;
use crate::predicted::PredictedObjective;
use crate::runner::{Halt, Runner};
use crate::setup::{Setup, times};
use crate::trial::Trial;
use brimful_core::quantity;
use brimful_core::record::Record;
use brimful_core::slo::Measure;
use brimful_core::survey::{Comparison, ObjectiveOutcome, ObjectiveSlice, RateUnderObjective};
use brimful_core::workload::Load;
use brimful_core::{Nanos, Rate, Slo, SloSpec};
use brimful_estimate::{
    LimitedMeasure, MeasurementTime, PredictedValue, RateEstimate, RateSearch, ResponseLimit, Slice,
};
use brimful_stats::{CallsByLimit, count_by_limit, pooled_value};

/// The default objective: the 99th percentile of response times is below ten times its value at light load.
pub(crate) fn default_objective() -> SloSpec {
    SloSpec::Relative { measure: Measure::Percentile { class: None, percent: 99.0 }, factor: 10.0 }
}

/// Duration of a slice (a short load of the search for a rate), in units of `--level`.
const SLICE_DURATION: f64 = 0.4;
/// Maximum total duration of all slices (short loads of a search), in units of `--level`.
const MAX_TOTAL_DURATION: f64 = 10.0;
/// Minimum number of calls in a slice (a short load of a search). A slice is extended for these calls to at most
/// [`LONGEST_SLICE`].
const MIN_SLICE_CALLS: f64 = 200.0;
/// Maximum duration to which a slice (a short load of a search) is extended.
const LONGEST_SLICE: Nanos = Nanos::from_secs(5);
/// The search ends when the half width of the rate's 90 % interval is at most this share of the rate.
const PRECISION: f64 = 0.03;
/// Minimum number of slices (short loads) in a search.
const MIN_SLICES: usize = 10;
/// Maximum half width of the rate's 90 % interval, as a share of the rate. With a wider interval, the outcome is
/// undecided.
const MAX_DECIDED_HALF_WIDTH: f64 = 0.3;
/// Maximum number of slices that are not used because the load generator was the limit. After more of them, the search
/// ends.
const MAX_UNUSED: usize = 3;
/// Lowest rate of the search, as a share of the capacity. The highest rate is the capacity itself: above it, response
/// times grow without limit in the long run, although a short load may not show this.
const LOWEST_RATE: f64 = 0.01;
/// If the highest rate that meets the objective is at least this share of the capacity, the objective is considered met
/// at all rates up to the capacity.
const UP_TO_CAPACITY: f64 = 0.97;
/// Minimum duration of a slice, as a multiple of the response time limit, because a queue needs time to grow to this
/// waiting time. A slice is extended to at most [`LONGEST_SLICE`].
const MIN_SLICE_IN_LIMITS: f64 = 10.0;
/// Rate of the first slice (short load) if there is no prediction, as a share of the capacity.
const DEFAULT_FIRST_RATE: f64 = 0.8;
/// Mean response time that is assumed for a slice without a completed call, as a multiple of the limit.
const UNANSWERED_RESPONSE_TIME: f64 = 1000.0;

/// Predicts the highest rate that meets each objective. `ahead` is the time from the end of calibration to the start of
/// the search.
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
    // The metric is unknown only if too many calls failed. Then the server misses the objective even at light load.
    let is_missed = |slo: &Slo| light_load.map_or(!light.is_empty(), |figure| figure >= slo.limit);
    let is_missed_at_light_load = slo.as_ref().is_some_and(is_missed);
    let searched = slo.as_ref().filter(|_| !is_missed_at_light_load);
    let rate = searched.map(|slo| predict_rate(runner, calibration, slo, ahead)).transpose()?.flatten();
    Ok(PredictedObjective { spec: spec.clone(), slo, light_load, is_missed_at_light_load, rate })
}

/// Predicts the highest rate that meets an objective. `None` for an objective that limits the share of failed calls.
fn predict_rate(
    runner: &Runner<'_>,
    calibration: &Calibration,
    slo: &Slo,
    ahead: Nanos,
) -> Result<Option<PredictedValue>, Halt> {
    let setup = runner.setup;
    let limited = match slo.measure {
        Measure::ErrorShare { .. } | Measure::Utilization { .. } => return Ok(None),
        Measure::Percentile { .. } | Measure::Mean { .. } => limited_measure(slo),
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
    let seconds = times(MAX_TOTAL_DURATION, setup.level_duration).as_secs_f64();
    let time = MeasurementTime { ahead_s: ahead.as_secs_f64(), seconds };
    let rate = calibration.fit.predict_rate(&setup.workload.mix(), limit, time, &mut arrivals);
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(rate?),
    }
}

/// The measure that an objective limits: the share of calls that exceed a limit or fail, or the mean response time.
fn limited_measure(slo: &Slo) -> LimitedMeasure {
    match slo.measure {
        Measure::Percentile { percent, .. } => LimitedMeasure::Share(1.0 - percent / 100.0),
        Measure::ErrorShare { .. } => LimitedMeasure::Share(slo.limit.clamp(1e-6, 0.999)),
        Measure::Mean { .. } | Measure::Utilization { .. } => LimitedMeasure::Mean,
    }
}

/// The results of objectives if their rates are predicted but not measured.
pub(crate) fn predicted_only(predicted: &[PredictedObjective]) -> Vec<RateUnderObjective> {
    predicted.iter().map(|objective| result(objective, None, &[])).collect()
}

/// The result of an objective. `found` contains the measured rate so far, and the server's capacity.
fn result(
    objective: &PredictedObjective,
    found: Option<(RateEstimate, f64)>,
    slices: &[ObjectiveSlice],
) -> RateUnderObjective {
    let decided = found.filter(|(estimate, _)| estimate.relative_half_width() <= MAX_DECIDED_HALF_WIDTH);
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
        light_load_factor: match objective.spec {
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

/// Measures the highest rate that meets each objective. `capacity` is the server's capacity in calls per second.
/// `results` is updated after each slice (short load), so that an interrupted search keeps its results.
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
    let mut remaining = times(MAX_TOTAL_DURATION, setup.level_duration);
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

/// The rate of the next slice (short load), which the search with the widest interval chooses. `None` if all searches
/// are finished.
fn next_rate(searches: &[Search<'_>]) -> Option<f64> {
    let open = searches.iter().filter(|search| search.is_open());
    let widest = open.max_by(|a, b| a.width().total_cmp(&b.width()))?;
    Some(widest.next_rate())
}

/// Estimated number of slices (short loads) of a search. Most searches end before the maximum total duration.
pub(crate) fn expected_slices(setup: &Setup) -> usize {
    if setup.objectives.is_empty() { 0 } else { MIN_SLICES + (MAX_TOTAL_DURATION / SLICE_DURATION) as usize / 3 }
}

/// The duration of a slice (short load) at this rate. `limit_s` is the longest response time limit of the objectives,
/// in seconds.
pub(crate) fn slice_duration(setup: &Setup, rate: f64, limit_s: f64) -> Nanos {
    let wanted = (MIN_SLICE_CALLS / rate.max(1e-9)).max(MIN_SLICE_IN_LIMITS * limit_s);
    times(SLICE_DURATION, setup.level_duration).max(Nanos::from_secs_f64(wanted).min(LONGEST_SLICE))
}

/// The search for the highest rate that meets one objective.
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
    /// Begins a search. `None` if the objective has no absolute limit, or if the server misses the objective at light
    /// load.
    fn new(index: usize, objective: &'a PredictedObjective, capacity: f64) -> Option<Search<'a>> {
        let slo = objective.slo.as_ref().filter(|_| !objective.is_missed_at_light_load)?;
        let first_rate = objective.rate.map_or(DEFAULT_FIRST_RATE * capacity, |rate| rate.median);
        let posterior = RateSearch::new(limited_measure(slo), LOWEST_RATE * capacity, capacity);
        Some(Search { index, objective, slo, posterior, first_rate, slices: Vec::new() })
    }

    /// The response time limit in seconds; `None` if the objective limits the share of failed calls.
    fn time_limit_s(&self) -> Option<f64> {
        (!matches!(self.slo.measure, Measure::ErrorShare { .. })).then_some(self.slo.limit)
    }

    /// Whether the search needs more slices (short loads).
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
            match limited_measure(self.slo) {
                LimitedMeasure::Mean => {
                    Slice::Mean(value.map_or(UNANSWERED_RESPONSE_TIME, |mean| mean / self.slo.limit))
                }
                LimitedMeasure::Share(_) => Slice::Calls { beyond, calls },
            },
        );
        self.slices.push(ObjectiveSlice { rate, calls, violations: beyond, figure: value });
        Ok(())
    }
}

/// The sentence about an objective in the survey's main result.
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

/// Formats a share in percent without trailing zeros, such as 1 % or 0.1 %.
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
