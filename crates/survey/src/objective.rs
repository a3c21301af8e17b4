//! Objectives: how much traffic the server can take while, say, 99 % of all calls take less than 50 ms. The rate is
//! predicted like all other figures, and then measured by a search near the prediction: short slices of load, whose
//! rates come from what the slices before them showed ([`brimful_estimate::rate_search`]).
//!
//! An objective is judged over the long run. So a slice during a bad moment of the host counts like any other, and only
//! slices in which the generator itself was the limit are dropped.

use crate::baseline::ClientLimit;
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
use brimful_estimate::{LimitedFigure, PredictedFigure, RateSearch, ResponseLimit, Slice};
use brimful_stats::{count_by_limit, pooled_figure};

/// The objective of a survey for which the user gave none.
pub(crate) fn default_objective() -> SloSpec {
    SloSpec::Relative { measure: Measure::Percentile { class: None, percent: 99.0 }, factor: 10.0 }
}

/// Length of a slice, and the greatest total length of the slices of a search, in units of `--level`.
const SLICE: f64 = 0.4;
const BUDGET: f64 = 10.0;
/// A slice has at least this many calls, unless that takes longer than [`LONGEST_SLICE`].
const SLICE_CALLS: f64 = 200.0;
const LONGEST_SLICE: Nanos = Nanos::from_secs(5);
/// The search ends when half the width of the interval is at most this share of the rate.
const PRECISION: f64 = 0.03;
const MIN_SLICES: usize = 10;
/// A rate whose interval is wider than this is not an answer.
const DECIDED: f64 = 0.3;
/// The search lasts for at most this many slices in which the generator was the limit.
const MAX_UNUSED: usize = 3;
/// The lowest rate that is searched, as a share of the capacity. The capacity is the highest: at a higher rate, response
/// times grow without bound in the long run, although a short slice may not show it.
const LOWEST: f64 = 0.01;
/// From this share of the capacity on, the objective is met up to the capacity.
const UP_TO_CAPACITY: f64 = 0.97;
/// A slice lasts for at least this many times the limit of an objective, unless that takes longer than
/// [`LONGEST_SLICE`]. A queue needs time to become as long as the limit.
const SLICE_LIMITS: f64 = 10.0;
/// The rate of the first slice of a search without a prediction, as a share of the capacity.
const FIRST: f64 = 0.8;

/// An objective with its limit in seconds or as a share, and the predicted rate.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedObjective {
    /// The objective.
    pub slo: Slo,
    /// How many times the value at light load the limit is, if the user gave it so.
    pub times_light_load: Option<f64>,
    /// The limited figure at light load: seconds, or a share of errors.
    pub light_load: Option<f64>,
    /// The rate at which the objective is just met, in calls per second. `None` for a share of errors, which a model
    /// does not predict, and for an objective that light load misses.
    pub rate: Option<PredictedFigure>,
}

impl PredictedObjective {
    /// Whether light load already misses the objective.
    pub fn is_missed_at_light_load(&self) -> bool {
        self.light_load.is_some_and(|figure| figure >= self.slo.limit)
    }

    /// The limit in seconds; `None` for a share of errors.
    fn time_limit_s(&self) -> Option<f64> {
        (!matches!(self.slo.measure, Measure::ErrorShare { .. })).then_some(self.slo.limit)
    }
}

/// Predicts the rate of each objective, before any is measured.
pub(crate) fn predict_objectives(
    runner: &Runner<'_>,
    calibration: &Calibration,
) -> Result<Vec<PredictedObjective>, Halt> {
    let setup = runner.setup;
    setup.objectives.iter().map(|spec| predict_objective(runner, calibration, spec)).collect()
}

fn predict_objective(
    runner: &Runner<'_>,
    calibration: &Calibration,
    spec: &SloSpec,
) -> Result<PredictedObjective, Halt> {
    let setup = runner.setup;
    let light: Vec<&Record> = calibration.light_load.iter().collect();
    let light_load = pooled_figure(&light, spec.measure())?;
    let slo = spec.resolve(light_load.unwrap_or(f64::INFINITY));
    let times_light_load = match spec {
        SloSpec::Relative { factor, .. } => Some(*factor),
        SloSpec::Absolute(_) => None,
    };
    let mut predicted = PredictedObjective { slo, times_light_load, light_load, rate: None };
    let Some(limited) = limited_figure(&predicted.slo.measure).filter(|_| predicted.slo.limit.is_finite()) else {
        return Ok(predicted);
    };
    if predicted.is_missed_at_light_load() || matches!(predicted.slo.measure, Measure::ErrorShare { .. }) {
        return Ok(predicted);
    }
    let class_index = |name: &str| setup.workload.classes.iter().position(|class| class.name == name);
    let class = predicted.slo.measure.class().and_then(class_index);
    let limit = ResponseLimit { seconds: predicted.slo.limit, limited, class };
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
    let rate = calibration.fit.predict_rate(&setup.workload.mix(), limit, seconds, &mut arrivals);
    if let Some(error) = failure {
        return Err(error.into());
    }
    predicted.rate = rate?;
    Ok(predicted)
}

/// How an objective's measure limits calls; `None` for a utilization.
fn limited_figure(measure: &Measure) -> Option<LimitedFigure> {
    match measure {
        Measure::Percentile { percent, .. } => Some(LimitedFigure::Share(1.0 - percent / 100.0)),
        Measure::Mean { .. } => Some(LimitedFigure::Mean),
        Measure::ErrorShare { .. } | Measure::Utilization { .. } => None,
    }
}

/// The results for objectives that were only predicted.
pub(crate) fn predicted_only(predicted: &[PredictedObjective]) -> Vec<RateUnderObjective> {
    predicted.iter().map(|objective| Search::new(objective, 1.0).result(None)).collect()
}

/// Measures the rate of each objective. `capacity` is the server's capacity in calls per second, as far as it is known.
/// Keeps `results` up to date, so that an interrupted search loses nothing.
pub(crate) fn search_rates(
    runner: &mut Runner<'_>,
    client: &ClientLimit,
    predicted: &[PredictedObjective],
    capacity: f64,
    results: &mut Vec<RateUnderObjective>,
) -> Result<(), Halt> {
    if predicted.is_empty() {
        return Ok(());
    }
    let setup = runner.setup;
    let highest = client.limit.unwrap_or(f64::INFINITY);
    let longest_limit = predicted.iter().filter_map(PredictedObjective::time_limit_s).fold(0.0, f64::max);
    let mut searches: Vec<Search<'_>> = predicted.iter().map(|objective| Search::new(objective, capacity)).collect();
    let mut remaining = times(BUDGET, setup.level);
    let mut unused = 0;
    runner.begin("the highest rates that meet the objectives".to_owned(), remaining);
    while let Some(rate) = next_rate(&searches) {
        let rate = rate.min(highest);
        let duration = slice_duration(setup, rate, longest_limit);
        if duration > remaining || unused > MAX_UNUSED {
            break;
        }
        remaining = remaining - duration;
        let workload = setup.workload_with(Load::poisson(Rate(rate)));
        let trial = runner.measure(&workload, duration)?;
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
        }
        *results = searches.iter().map(|search| search.result(Some(capacity))).collect();
    }
    Ok(())
}

/// The rate of the next slice: that of the objective whose rate is least certain. `None` if all are certain enough.
fn next_rate(searches: &[Search<'_>]) -> Option<f64> {
    let open = searches.iter().filter(|search| search.is_open());
    let widest = open.max_by(|a, b| a.width().total_cmp(&b.width()))?;
    Some(widest.next_rate())
}

/// Number of slices of a typical search: most searches end before their budget is used.
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
    objective: &'a PredictedObjective,
    search: RateSearch,
    first: f64,
    slices: Vec<ObjectiveSlice>,
}

impl<'a> Search<'a> {
    fn new(objective: &'a PredictedObjective, capacity: f64) -> Search<'a> {
        let limited = match objective.slo.measure {
            Measure::ErrorShare { .. } => LimitedFigure::Share(objective.slo.limit.clamp(1e-6, 0.999)),
            ref measure => limited_figure(measure).unwrap_or(LimitedFigure::Mean),
        };
        let first = objective.rate.map_or(FIRST * capacity, |rate| rate.median);
        let search = RateSearch::new(limited, LOWEST * capacity, capacity);
        Search { objective, search, first, slices: Vec::new() }
    }

    /// Whether further slices can make the answer more certain.
    fn is_open(&self) -> bool {
        !self.objective.is_missed_at_light_load() && (self.slices.len() < MIN_SLICES || self.width() > PRECISION)
    }

    fn width(&self) -> f64 {
        self.search.estimate().relative_half_width()
    }

    fn next_rate(&self) -> f64 {
        if self.slices.is_empty() { self.first } else { self.search.next_rate() }
    }

    fn add(&mut self, rate: f64, trial: &Trial) -> Result<(), Halt> {
        let by_limit = count_by_limit(&trial.record, &self.objective.slo)?;
        let slice = match self.objective.slo.measure {
            Measure::Mean { .. } => Slice::Mean(by_limit.figure.unwrap_or(0.0) / self.objective.slo.limit),
            _ => Slice::Calls { beyond: by_limit.beyond, calls: by_limit.calls },
        };
        self.search.add(rate, slice);
        let slice = ObjectiveSlice { rate, calls: by_limit.calls, beyond: by_limit.beyond, figure: by_limit.figure };
        self.slices.push(slice);
        Ok(())
    }

    /// The result so far. `capacity` is as in [`search_rates`].
    fn result(&self, capacity: Option<f64>) -> RateUnderObjective {
        let objective = self.objective;
        let estimate = Some(self.search.estimate()).filter(|_| !self.slices.is_empty());
        let decided = estimate.filter(|estimate| estimate.relative_half_width() <= DECIDED);
        let is_up_to_capacity =
            decided.zip(capacity).is_some_and(|(found, capacity)| found.rate >= UP_TO_CAPACITY * capacity);
        let outcome = if objective.is_missed_at_light_load() {
            ObjectiveOutcome::MissedAtLightLoad
        } else if is_up_to_capacity {
            ObjectiveOutcome::MetUpToCapacity
        } else if decided.is_some() {
            ObjectiveOutcome::MetUpToRate
        } else {
            ObjectiveOutcome::Undecided
        };
        let measured = decided
            .map(|found| if is_up_to_capacity { found.rate.min(capacity.unwrap_or(found.rate)) } else { found.rate });
        RateUnderObjective {
            objective: objective.slo.to_string(),
            limit: objective.slo.limit,
            times_light_load: objective.times_light_load,
            light_load: objective.light_load,
            rate: Comparison {
                interval90: objective.rate.map(|rate| rate.interval90),
                ..Comparison::new(objective.rate.map(|rate| rate.median), measured)
            },
            measured_interval90: estimate.map(|estimate| estimate.interval90),
            outcome,
            slices: self.slices.clone(),
        }
    }
}

/// A sentence with the answer to an objective.
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

/// A share as people write it, without superfluous digits: 1 %, 0.1 %.
fn share(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}
