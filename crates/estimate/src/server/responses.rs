//! Estimates the delay elsewhere and the variability of service from response times.
//!
//! A host that is slow for a moment causes queues, and so does variable service. To distinguish them, the arrivals of
//! each measurement are replayed through the model, on a host whose speed changes as measured: once with constant
//! service times, once with exponential ones. The delay elsewhere is the remainder of the measured response times at
//! all loads. The squared coefficient of variation follows from where the measured response time lies between the
//! response times of the two replays.
//!
//! The response times of a single client, which never waits, provide a prior for the variability. Where the Server
//! Module measured the CPU time of single calls, its figure is the prior, and the fit stays within its interval unless
//! workers take turns on the CPUs.
//!
//! The model provides only means. The shape of the distribution is measured, because calls that take turns on a CPU
//! have a different distribution than calls that are served one after another, with the same mean. Percentiles are the
//! model's percentiles multiplied by the ratio of measured to modelled percentiles during calibration.

use super::blocks::{
    Measurement, ModelledResponse, OfferedLoad, PooledLoads, PooledMeasurement, ServerFacts, mean_shape,
};
use super::model_fit::ModelFit;
use super::module::measured_service;
use crate::EstimateError;
use crate::least_squares::fit_non_negative;
use crate::response::{self, ResponseFit, ResponsePoint, ScvBasis, fit_delay, fit_response};
use brimful_model::{exceptional_wait, exponential_wait, station_demands};

/// Lowest level, in percent of the capacity, at which calls wait enough to determine the shape of the distribution.
const MIN_LEVEL_WITH_SHAPE: u32 = 40;
/// Standard deviation of the prior for the variability of waits: an absolute value, and the same value relative to the
/// variability. It is wide, because processes that take turns on a CPU cause waits like those of exponential service,
/// whatever their service times are.
const PRIOR_SPREAD: f64 = 0.3;
const RELATIVE_PRIOR_SPREAD: f64 = 0.3;
/// Smallest standard deviation of a prior that was measured inside the server.
const MIN_PRIOR_SPREAD: f64 = 0.02;

/// The prior knowledge about the variability of waits, before response times are considered.
#[derive(Clone, Copy, Debug)]
struct Prior {
    scv: f64,
    standard_deviation: f64,
    /// Whether the prior is the measured variability of service itself. Response times then determine only the delay.
    is_measured: bool,
}

/// Fits the delay elsewhere and the variability of service to the response times of all loads, and stores them in the
/// model.
pub(super) fn fit_responses(fit: &mut ModelFit, facts: &ServerFacts, loads: &PooledLoads) -> Result<(), EstimateError> {
    let service = measured_service(fit, facts, loads);
    let single_client_scv = loads.get(&OfferedLoad::Clients(1)).and_then(|pooled| pooled.measurement.responses.scv);
    let prior = match service {
        Some(service) if !service.takes_turns => Some(Prior {
            scv: service.scv,
            standard_deviation: service.standard_error.max(MIN_PRIOR_SPREAD),
            is_measured: true,
        }),
        service => service.map(|service| service.scv).or(single_client_scv).map(|scv| Prior {
            scv,
            standard_deviation: PRIOR_SPREAD + RELATIVE_PRIOR_SPREAD * scv,
            is_measured: false,
        }),
    };
    let response = match prior.and_then(|prior| fit_by_replay(fit, facts, loads, prior)) {
        Some(response) => response,
        None => fit_by_formula(fit, facts, loads, prior)?,
    };
    fit.service_scv = service.map(|service| service.scv).or(single_client_scv).unwrap_or(response.scv);
    fit.network.stations[0].scv = response.scv;
    if let Some(elsewhere) = fit.network.demands.last_mut() {
        elsewhere.fill(response.delay);
    }
    fit.percentile_ratios = percentile_ratios(loads);
    Ok(())
}

/// Ratios of the measured percentiles of a measurement to those that the model predicts for the same calls.
pub(super) fn measurement_shape(fit: &ModelFit, facts: &ServerFacts, measurement: &Measurement) -> Option<[f64; 3]> {
    let rate = measurement.rate();
    let mix: Vec<f64> = measurement.throughput.iter().map(|class| class / rate).collect();
    let arrivals = &measurement.timeline.arrivals;
    let course =
        fit.host_slowness(facts, &measurement.timeline.stretches, rate, &mix).filter(|_| !arrivals.is_empty())?;
    let modelled = fit.replay(rate, &mix, &course, arrivals).ok()??;
    let measured = measurement.responses.percentiles?;
    let percentile_ratios: [f64; 3] =
        std::array::from_fn(|index| measured[index] / modelled.percentiles[index] * fit.percentile_ratios[index]);
    percentile_ratios.iter().all(|ratio| ratio.is_finite() && *ratio > 0.0).then_some(percentile_ratios)
}

/// Fits the replayed calls of all levels; `None` if the host's slowness over time is unknown for one of them.
fn fit_by_replay(fit: &ModelFit, facts: &ServerFacts, loads: &PooledLoads, prior: Prior) -> Option<ResponseFit> {
    let mut delay_column = vec![0.0];
    let mut scv_column = vec![1.0];
    let mut observed = vec![prior.scv];
    let mut weights = vec![prior.standard_deviation.powi(-2)];
    let mut observe = |per_delay: f64, per_scv: f64, seconds: f64, weight: f64| {
        delay_column.push(per_delay);
        scv_column.push(per_scv);
        observed.push(seconds);
        weights.push(weight);
    };
    for pooled in loads.values() {
        match pooled.measurement.load {
            OfferedLoad::Level(_) => {
                let modelled = pooled.modelled?;
                let response = pooled.measurement.responses.mean?;
                let weight = weight(pooled.excess_variance, response);
                observe(1.0, modelled.per_scv, response - modelled.constant, weight);
            }
            OfferedLoad::Clients(1) => {
                let point = response_point(fit, facts, pooled)?;
                observe(1.0, 0.0, point.response - point.demand, point.weight);
            }
            _ => {}
        }
    }
    let solution = fit_non_negative(&[delay_column, scv_column], &observed, &weights).ok()?;
    Some(ResponseFit {
        delay: solution.values[0],
        scv: solution.values[1],
        basis: ScvBasis::Fitted,
        scv_standard_error: None,
    })
}

/// Fits the steady-state waits of the levels. They include the effect of a varying host, so the fitted variability is
/// limited to the range between the prior and 1.
fn fit_by_formula(
    fit: &ModelFit,
    facts: &ServerFacts,
    loads: &PooledLoads,
    prior: Option<Prior>,
) -> Result<ResponseFit, EstimateError> {
    let points: Vec<ResponsePoint> = loads.values().filter_map(|pooled| response_point(fit, facts, pooled)).collect();
    if points.is_empty() {
        // Every response time is below the service time at the bottleneck, as happens if responses to many clients
        // arrive in bursts. So there is no time that a call could spend elsewhere.
        let scv = prior.map_or(1.0, |prior| prior.scv);
        return Ok(ResponseFit { delay: 0.0, scv, basis: ScvBasis::TooFewPoints, scv_standard_error: None });
    }
    if let Some(Prior { scv, standard_deviation, is_measured: true }) = prior {
        return fit_delay(&points, scv, standard_deviation);
    }
    let response = fit_response(&points)?;
    let Some(prior) = prior else { return Ok(response) };
    let scv = match response.basis {
        ScvBasis::Fitted => response.scv.clamp(prior.scv.min(1.0), prior.scv.max(1.0)),
        _ => prior.scv,
    };
    Ok(ResponseFit { delay: response::delay(&points, scv), scv, ..response })
}

/// The response time of a load as an observation. The load has random arrivals, or a single client, which never waits.
fn response_point(fit: &ModelFit, facts: &ServerFacts, pooled: &PooledMeasurement) -> Option<ResponsePoint> {
    let station = &fit.network.stations[0];
    let demands = &fit.network.demands[0];
    let measurement = &pooled.measurement;
    let rates = &measurement.throughput;
    let mean =
        |times: &[f64]| rates.iter().zip(times).map(|(rate, time)| rate * time).sum::<f64>() / measurement.rate();
    let elsewhere: f64 = match fit.network.stations.get(1).filter(|_| fit.network.stations.len() > 2) {
        Some(_) if measurement.load == OfferedLoad::Clients(1) => mean(&fit.network.demands[1]),
        Some(pool) => {
            let held = &fit.network.demands[1];
            mean(held) + exponential_wait(rates, held, pool.servers, 0.0)
        }
        None => 0.0,
    };
    let (response, exponential_wait, work, variance) = match measurement.load {
        OfferedLoad::Level(_) => {
            let work = mean(&station_demands(station, demands, rates));
            let exponential_wait = exceptional_wait(station, demands, rates);
            (measurement.responses.mean?, exponential_wait, work, pooled.response_variance)
        }
        // The client has no think time, so its response time is 1 divided by its rate.
        OfferedLoad::Clients(1) => {
            let variance = pooled.rate_variance.map(|variance| variance / measurement.rate().powi(4));
            let cost = measurement.cost(facts.idle_busy).filter(|_| fit.waits_for_cpu());
            let work = cost.unwrap_or_else(|| mean(demands));
            (1.0 / measurement.rate(), 0.0, work, variance)
        }
        _ => return None,
    };
    // As in the solver, background work slows service down.
    let demand = work / (1.0 - station.background);
    let response = response - elsewhere;
    let is_valid = exponential_wait.is_finite() && demand.is_finite() && response >= 0.0;
    is_valid.then(|| ResponsePoint { exponential_wait, demand, response, weight: weight(variance, response) })
}

/// The model's prediction for the calls of a measurement, without the delay elsewhere.
pub(super) fn modelled_response(
    fit: &ModelFit,
    facts: &ServerFacts,
    measurement: &Measurement,
) -> Option<ModelledResponse> {
    let arrivals = &measurement.timeline.arrivals;
    if arrivals.is_empty() {
        return None;
    }
    let rate = measurement.rate();
    let mix: Vec<f64> = measurement.throughput.iter().map(|class| class / rate).collect();
    let course = fit.host_slowness(facts, &measurement.timeline.stretches, rate, &mix)?;
    let mut without_delay = fit.clone();
    if let Some(elsewhere) = without_delay.network.demands.last_mut() {
        elsewhere.fill(0.0);
    }
    let mut mean_response = |scv: f64| {
        without_delay.network.stations[0].scv = scv;
        Some(without_delay.replay(rate, &mix, &course, arrivals).ok()??.mean)
    };
    let constant = mean_response(0.0)?;
    Some(ModelledResponse { constant, per_scv: (mean_response(1.0)? - constant).max(0.0) })
}

/// Ratios of measured to modelled percentiles: the mean over the levels that are high enough.
pub(super) fn percentile_ratios(loads: &PooledLoads) -> [f64; 3] {
    let has_shape =
        |load: &OfferedLoad| matches!(load, OfferedLoad::Level(percent) if *percent >= MIN_LEVEL_WITH_SHAPE);
    let shapes = loads.iter().filter(|(load, _)| has_shape(load)).filter_map(|(_, pooled)| pooled.percentile_ratios);
    mean_shape(shapes).unwrap_or([1.0; 3])
}

/// Weight of a mean response time: 1 divided by its variance.
fn weight(variance: Option<f64>, response: f64) -> f64 {
    1.0 / variance.unwrap_or(response.powi(2)).max((response::MIN_HALF_WIDTH * response).powi(2))
}
