//! Prediction intervals: the range around a prediction that is expected to contain 90 % of later measurements.
//!
//! Calibration measures the loads repeatedly, once per block. The bootstrap draws blocks at random and fits a model to
//! each draw (Efron 1979). It draws whole blocks, because measurements close in time depend on each other (Künsch
//! 1989). For each model, a series of the host's speed is also drawn. Random arrivals are then simulated with this
//! model and these speeds (a queue in a random environment).

use super::blocks::{ReplayedMeasurement, ServerFacts, pool};
use super::drift::{Drift, blocks_to_draw};
use super::fitting;
use super::later_drift::MeasurementTime;
use super::model_fit::{ModelFit, ResponseSummary, quantile};
use super::pauses::{PauseDetector, Pauses};
use super::slowness::mean_slowness;
use crate::EstimateError;
use crate::rate_search::LimitedMeasure;
use brimful_core::moments::Moments;
use brimful_model::{CompletedRequest, HostSlowness, trajectory};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{ContinuousCDF, Normal};

/// Number of draws of the bootstrap. Each draw is a random selection of calibration blocks to which a model is fitted.
const DRAWS: usize = 100;
/// Maximum number of arrivals that are simulated for each draw of the bootstrap.
const MAX_ARRIVALS: f64 = 50_000.0;
/// Number of bisections in the search for the highest rate that meets a response time limit. They reduce the range of
/// rates to 0.4 % of the saturation rate.
const BISECTIONS: usize = 8;
/// Maximum number of arrivals that are simulated in each step of the search for the highest rate.
const MAX_SEARCH_ARRIVALS: f64 = 8_000.0;

/// Minimum of the random ratio between the total CPU time of some calls and its expected value.
const MIN_WORK: f64 = 0.1;

/// A predicted value, and an interval that is expected to contain 90 % of later measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedValue {
    /// The median of the predictions of all bootstrap draws.
    pub median: f64,
    /// The 5 % and 95 % quantiles of the predictions of all bootstrap draws.
    pub interval90: [f64; 2],
}

/// Predictions for a later measurement at one request rate, on a host whose speed varies as during calibration. Times
/// are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedMeasurement {
    /// Mean response time, in seconds.
    pub response: PredictedValue,
    /// 50th, 95th and 99th percentiles of the response time, in seconds.
    pub percentiles: [PredictedValue; 3],
    /// Utilization of the CPUs by the server's processes, 0 to 1.
    pub utilization: PredictedValue,
}

/// Fits models to calibration blocks that are drawn with replacement. If the capacity is extrapolated, the law of how
/// the CPU cost of a call depends on the load is also drawn at random. All models have the same variability of the
/// delay outside of the stations, and the same type of bottleneck as `fit`, the model of all blocks.
pub(super) fn bootstrap(
    facts: &ServerFacts,
    blocks: &[Vec<ReplayedMeasurement>],
    fit: &ModelFit,
    detector: Option<&PauseDetector>,
    delay_scv: f64,
    seed: u64,
) -> Vec<ModelFit> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let count = blocks_to_draw(blocks.len());
    let draw = |_| {
        let drawn: Vec<&Vec<ReplayedMeasurement>> =
            (0..count).map(|_| &blocks[rng.random_range(0..blocks.len())]).collect();
        let chance = (!facts.is_saturated).then(|| rng.random());
        let pauses = detector.map_or_else(Pauses::default, |detector| Pauses::new(detector, drawn.iter().copied()));
        let drawn_fit = fitting::fit(facts, &pool(drawn), chance, fit.pool_kind).ok()?.with_delay_scv(delay_scv);
        Some(ModelFit { pauses, ..drawn_fit })
    };
    (0..DRAWS).filter_map(draw).collect()
}

/// Half width of the 95 % confidence interval: 1.96 standard deviations of `values`, which has one value per bootstrap
/// draw. `None` if all values are equal.
pub(super) fn half_width95(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    let deviation = Moments::from_values(&values)?.standard_deviation()?;
    (deviation > 0.0).then_some(1.96 * deviation)
}

/// A later measurement that is predicted.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaterMeasurement<'a> {
    /// Requests per second.
    pub rate: f64,
    /// Share of each request class in the requests.
    pub mix: &'a [f64],
    /// Start and duration of the measurement.
    pub time: MeasurementTime,
}

/// Predicts a measurement with each model of the bootstrap. `arrivals` generates random arrivals (times in seconds, and
/// classes) from a seed and a duration in seconds.
///
/// # Errors
/// If the model cannot be solved, or if no draw has arrivals.
pub(super) fn predict_measurement(
    fits: &[ModelFit],
    facts: &ServerFacts,
    drift: &Drift,
    level: LaterMeasurement<'_>,
    arrivals: &mut dyn FnMut(u64, f64) -> Vec<(f64, usize)>,
) -> Result<PredictedMeasurement, EstimateError> {
    let LaterMeasurement { rate, mix, time } = level;
    let seconds = time.seconds;
    let mut rng = Pcg64Mcg::seed_from_u64(rate.to_bits());
    let mut calls_rng = Pcg64Mcg::seed_from_u64(!rate.to_bits());
    let mut means = Vec::new();
    let mut percentiles = [Vec::new(), Vec::new(), Vec::new()];
    let mut utilizations = Vec::new();
    // At most `MAX_ARRIVALS` arrivals are simulated. Their mean varies slightly more between draws than that of all
    // arrivals would, so the interval is slightly too wide.
    let replayed_seconds = seconds.min(MAX_ARRIVALS / rate);
    let parts = drift.draws(fits.len(), time, &mut rng);
    for ((index, fit), stretches) in fits.iter().enumerate().zip(parts) {
        let model = fit.model_at(rate, mix);
        let calls = arrivals(index as u64, replayed_seconds);
        // The number of arrivals is random, so their rate deviates from `rate`.
        let drawn_rate = calls.len() as f64 / replayed_seconds;
        let slowness =
            mean_slowness(&stretches).unwrap_or(1.0) * work_of_calls(fit, mix, calls.len() as f64, &mut calls_rng);
        utilizations.push(fit.utilization(facts, drawn_rate, mix, slowness));
        let pauses = fit.pauses.draw(rate, seconds, &mut rng).into_iter().map(|(pause, _)| pause);
        let course = HostSlowness::from_intervals(stretches).with_pauses(pauses);
        let times = trajectory(&model, course, index as u64, calls)?.map(|sojourn| sojourn.response).collect();
        let Some(summary) = ResponseSummary::new(times, fit.percentile_ratios) else { continue };
        means.push(summary.mean);
        percentiles.iter_mut().zip(summary.percentiles).for_each(|(values, value)| values.push(value));
    }
    if means.is_empty() {
        return Err(EstimateError::TooFewObservations { needed: 1, given: 0 });
    }
    Ok(PredictedMeasurement {
        response: PredictedValue::from_draws(means),
        percentiles: percentiles.map(PredictedValue::from_draws),
        utilization: PredictedValue::from_draws(utilizations),
    })
}

/// A limit on response times, from which the highest rate of calls that meets it is predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResponseLimit {
    /// The response time limit, in seconds.
    pub seconds: f64,
    /// The quantity that is limited: the mean response time, or the share of calls that exceed the limit.
    pub limited: LimitedMeasure,
    /// Index of the request class to which the limit applies; `None` for all calls.
    pub class: Option<usize>,
}

/// Predicts the highest rate of requests with the class shares `mix` that meets a limit, with each model of the
/// bootstrap. `time` states when this rate will be measured. The rate is at most the saturation rate. `arrivals`
/// generates Poisson arrivals (times in seconds, and classes) from a rate, a seed and a duration in seconds. Returns
/// `None` if no model of the bootstrap has a saturation rate.
///
/// # Errors
/// If the model cannot be solved.
pub(super) fn predict_rate(
    fits: &[ModelFit],
    drift: &Drift,
    mix: &[f64],
    limit: ResponseLimit,
    time: MeasurementTime,
    arrivals: &mut dyn FnMut(f64, u64, f64) -> Vec<(f64, usize)>,
) -> Result<Option<PredictedValue>, EstimateError> {
    let seconds = time.seconds;
    let mut rng = Pcg64Mcg::seed_from_u64(limit.seconds.to_bits());
    let mut rates = Vec::new();
    let parts = drift.draws(fits.len(), time, &mut rng);
    for ((index, fit), stretches) in fits.iter().enumerate().zip(parts) {
        let saturation = fit.saturation(mix) / mean_slowness(&stretches).unwrap_or(1.0);
        if !saturation.is_finite() {
            continue;
        }
        let course = HostSlowness::from_intervals(stretches);
        let replayed_seconds = seconds.min(MAX_SEARCH_ARRIVALS / saturation);
        let pauses = fit.pauses.draw(saturation, replayed_seconds, &mut rng);
        let fastest = arrivals(saturation, index as u64, replayed_seconds);
        let (mut low, mut high) = (0.0, saturation);
        for _ in 0..BISECTIONS {
            let rate = f64::midpoint(low, high);
            // Longer gaps between Poisson arrivals, all by the same factor, yield Poisson arrivals at a lower rate.
            let stretch = saturation / rate;
            let calls = fastest.iter().map(|(at, class)| (at * stretch, *class));
            let calls = calls.take_while(|(at, _)| *at < replayed_seconds);
            let course = course.clone().with_pauses(fit.pauses.occurring_at(&pauses, rate, saturation));
            let sojourns = trajectory(&fit.model_at(rate, mix), course, index as u64, calls)?;
            let of_class = |sojourn: &CompletedRequest| limit.class.is_none_or(|class| class == sojourn.class);
            let times: Vec<f64> = sojourns.filter(of_class).map(|sojourn| sojourn.response).collect();
            if limit.is_met(&times, fit.percentile_ratios) { low = rate } else { high = rate }
        }
        rates.push(f64::midpoint(low, high));
    }
    Ok((!rates.is_empty()).then(|| PredictedValue::from_draws(rates)))
}

impl ResponseLimit {
    /// Whether predicted response times meet the limit. `percentile_ratios` corrects the predicted percentiles, as in
    /// [`ModelFit`]. If there are no response times, the limit is met.
    fn is_met(&self, times: &[f64], percentile_ratios: [f64; 3]) -> bool {
        let calls = times.len() as f64;
        match self.limited {
            LimitedMeasure::Mean => times.iter().sum::<f64>() <= self.seconds * calls,
            LimitedMeasure::Share(permitted) => {
                let [p50, p95, p99] = percentile_ratios;
                // Use the correction of the percentile that is nearest to the permitted share of calls.
                let ratio = if permitted <= 0.03 {
                    p99
                } else if permitted <= 0.25 {
                    p95
                } else {
                    p50
                };
                let beyond = times.iter().filter(|time| ratio * **time > self.seconds).count();
                beyond as f64 <= permitted * calls
            }
        }
    }
}

/// Predicts the saturation rate for requests with the class shares `mix`, as a measurement at `time` would determine
/// it.
pub(super) fn predict_saturation(
    fits: &[ModelFit],
    drift: &Drift,
    mix: &[f64],
    time: MeasurementTime,
) -> Option<PredictedValue> {
    let seconds = time.seconds;
    let mut rng = Pcg64Mcg::seed_from_u64(seconds.to_bits());
    let mut calls_rng = Pcg64Mcg::seed_from_u64(!seconds.to_bits());
    let parts = drift.draws(fits.len(), time, &mut rng);
    let rate = |(fit, stretches): (&ModelFit, Vec<(f64, f64)>)| {
        let usual = fit.saturation(mix) / mean_slowness(&stretches).unwrap_or(1.0);
        let rate = usual / work_of_calls(fit, mix, usual * seconds, &mut calls_rng);
        let drawn = fit.pauses.draw(rate, seconds, &mut rng);
        if drawn.is_empty() || !fit.waits_for_cpu() {
            return rate;
        }
        let paused = drawn.iter().map(|((_, length), _)| length).sum::<f64>() / seconds;
        rate * (1.0 - paused) / (1.0 - fit.pauses.share_at(rate))
    };
    let rates: Vec<f64> = fits.iter().zip(parts).map(rate).filter(|rate| rate.is_finite()).collect();
    (!rates.is_empty()).then(|| PredictedValue::from_draws(rates))
}

/// Random ratio between the total CPU time of this number of calls and its expected value. It is random because calls
/// differ in their demands.
fn work_of_calls(fit: &ModelFit, mix: &[f64], calls: f64, rng: &mut Pcg64Mcg) -> f64 {
    let deviation = (fit.variability(mix).max(0.0) / calls.max(1.0)).sqrt();
    Normal::new(1.0, deviation).map_or(1.0, |ratio| ratio.inverse_cdf(rng.random()).max(MIN_WORK))
}

impl PredictedValue {
    /// Computes median and interval of the predictions of all bootstrap draws. There must be at least one.
    fn from_draws(mut values: Vec<f64>) -> PredictedValue {
        values.sort_unstable_by(f64::total_cmp);
        PredictedValue {
            median: quantile(&values, 0.5),
            interval90: [quantile(&values, 0.05), quantile(&values, 0.95)],
        }
    }
}
