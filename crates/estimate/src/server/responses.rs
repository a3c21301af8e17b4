//! Estimates two parameters from response times: the variability of service times, and the delay outside of the
//! stations (`elsewhere`), such as on the network.
//!
//! Both variable service times and a host that is slow for a moment cause queues. To distinguish them, the calls of
//! each measurement are simulated with their measured arrival times, on a host whose speed changes as measured. They
//! are simulated once with constant and once with exponential service times. The squared coefficient of variation (scv)
//! of service times follows from the measured response time by linear interpolation. The delay is the part of the
//! response times that neither service nor queueing explains at any load.
//!
//! The scv has a prior distribution. If the Server Module (a plug-in of the web server) measured the CPU time of
//! individual calls, the prior's mean is their scv. Otherwise, it comes from the numbers of calls that a busy server
//! completes in short intervals ([`super::work_scv`]), or else from the response times of a single client, whose calls
//! never wait. The fit remains within the interval of this prior, unless response times contradict it or workers share
//! the CPUs.
//!
//! The model predicts means well, but not the shape of the distribution: with the same mean, time sharing and
//! first-come-first-served yield different distributions. So predicted percentiles are those of the model, multiplied
//! by the ratio of measured to predicted percentiles during calibration. The variability of the delay is chosen so that
//! this ratio hardly depends on the load.

use super::blocks::{
    Measurement, ModelledResponse, OfferedLoad, PooledLoads, PooledMeasurement, ReplayedMeasurement, ServerFacts,
    mean_percentile_ratios,
};
use super::model_fit::ModelFit;
use super::module::measured_service;
use super::work_scv::WorkScv;
use crate::EstimateError;
use crate::least_squares::fit_non_negative;
use crate::response::{self, ResponseFit, ResponsePoint, ScvBasis, fit_delay, fit_response};
use brimful_model::{exponential_wait, station_demands, wait_with_idle_cost};
use std::collections::BTreeMap;

/// Minimum load at which the distribution of response times is compared with the model, in percent of the capacity. At
/// lower loads, calls rarely wait.
const MIN_LEVEL_WITH_SHAPE: u32 = 40;
/// Candidates for the squared coefficient of variation of the delay outside of the stations.
const DELAY_SCVS: [f64; 5] = [0.0, 0.1, 0.3, 1.0, 3.0];
/// Standard deviation of the prior of the squared coefficient of variation (scv) of service times: this constant, plus
/// [`RELATIVE_PRIOR_SPREAD`] × scv. The prior is wide, because processes that share a CPU in time slices cause waiting
/// times like those of exponential service times, whatever their real service times are.
const PRIOR_SPREAD: f64 = 0.3;
/// Increase of the prior's standard deviation ([`PRIOR_SPREAD`]) per unit of the squared coefficient of variation
/// (scv).
const RELATIVE_PRIOR_SPREAD: f64 = 0.3;
/// Minimum reduction of the weighted sum of squared residuals for a wide prior to be used instead of a narrow one: the
/// 99 % quantile of χ² with one degree of freedom (Wilks 1938).
const CONTRADICTION: f64 = 6.6;
/// Minimum standard deviation of a prior that was measured.
const MIN_PRIOR_SPREAD: f64 = 0.02;

/// Prior distribution of the squared coefficient of variation (scv) of service times, before response times are used.
#[derive(Clone, Copy, Debug)]
struct Prior {
    scv: f64,
    standard_deviation: f64,
    /// Whether the prior was measured by the Server Module, and workers do not share the CPUs. Response times then
    /// determine only the delay.
    is_measured: bool,
}

/// Fits the delay outside of the stations and the squared coefficient of variation (scv) of service times to the
/// response times under all loads. Stores both in the model `fit`.
pub(super) fn fit_responses(fit: &mut ModelFit, facts: &ServerFacts, loads: &PooledLoads) -> Result<(), EstimateError> {
    let service = measured_service(fit, facts, loads);
    let single_client_scv = loads.get(&OfferedLoad::Clients(1)).and_then(|pooled| pooled.measurement.responses.scv);
    let work = work_scv(fit, facts, loads);
    let prior = match service {
        Some(service) if !service.takes_turns => Some(Prior {
            scv: service.scv,
            standard_deviation: service.standard_error.max(MIN_PRIOR_SPREAD),
            is_measured: true,
        }),
        service => {
            let scv = service.map(|service| service.scv).or(work.map(|work| work.scv)).or(single_client_scv);
            scv.map(|scv| Prior {
                scv,
                standard_deviation: PRIOR_SPREAD + RELATIVE_PRIOR_SPREAD * scv,
                is_measured: false,
            })
        }
    };
    // If calls are served in the order of their arrival, the variability that matters for waiting times is that of CPU
    // times. So a second fit uses a narrow prior, unless response times contradict this prior.
    let narrow = prior
        .zip(work)
        .filter(|(prior, _)| !prior.is_measured && service.is_none())
        .map(|(prior, work)| Prior { standard_deviation: work.standard_error().max(MIN_PRIOR_SPREAD), ..prior });
    let by_replay = prior.and_then(|prior| fit_by_replay(fit, facts, loads, prior));
    let by_narrow_prior = narrow.and_then(|narrow| fit_by_replay(fit, facts, loads, narrow));
    let response = match by_replay.zip(by_narrow_prior) {
        Some((wide, narrow)) if narrow.misfit <= wide.misfit + CONTRADICTION => narrow.response,
        _ => match by_replay {
            Some(wide) => wide.response,
            None => fit_by_formula(fit, facts, loads, prior)?,
        },
    };
    let known_scv = service.map(|service| service.scv).or(work.map(|work| work.scv)).or(single_client_scv);
    fit.service_scv = known_scv.unwrap_or(response.scv);
    fit.network.stations[0].scv = response.scv;
    if let Some(elsewhere) = fit.network.demands.last_mut() {
        elsewhere.fill(response.delay);
    }
    fit.percentile_ratios = percentile_ratios(loads);
    Ok(())
}

/// Squared coefficient of variation of the CPU times of calls within a class, from closed-loop clients that send a
/// single class. `None` if calls wait for another resource than the CPUs, because the number of completed calls then
/// depends on that resource.
fn work_scv(fit: &ModelFit, facts: &ServerFacts, loads: &PooledLoads) -> Option<WorkScv> {
    if fit.bottleneck != facts.station || !fit.waits_for_cpu() {
        return None;
    }
    let has_classes = facts.classes.len() > 1;
    let is_counted = |load: &OfferedLoad| match load {
        OfferedLoad::Clients(_) => !has_classes,
        OfferedLoad::SingleClass(..) => has_classes,
        OfferedLoad::Level(_) => false,
    };
    WorkScv::mean(loads.iter().filter(|(load, _)| is_counted(load)).filter_map(|(_, pooled)| pooled.work_scv))
}

/// Chooses the squared coefficient of variation of the delay outside of the stations. The chosen value minimizes the
/// differences between measured and predicted percentiles of the response time over all loads. The delay dominates
/// response times at low loads, and waiting times dominate at high loads.
pub(super) fn choose_delay_scv(fit: &ModelFit, facts: &ServerFacts, blocks: &[Vec<ReplayedMeasurement>]) -> f64 {
    let misfit = |scv: f64| {
        let fit = fit.clone().with_delay_scv(scv);
        let mut shapes: BTreeMap<OfferedLoad, Vec<[f64; 3]>> = BTreeMap::new();
        for replayed in blocks.iter().flatten() {
            if let Some(shape) = measured_percentile_ratios(&fit, facts, &replayed.measurement) {
                shapes.entry(replayed.measurement.load).or_default().push(shape);
            }
        }
        let ratios = shapes.into_values().filter_map(|shapes| mean_percentile_ratios(shapes.into_iter())).flatten();
        ratios.map(|ratio| ratio.ln().powi(2)).sum::<f64>()
    };
    let misfits = DELAY_SCVS.map(|scv| (misfit(scv), scv));
    misfits.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0.0, |(_, scv)| scv)
}

/// Measured 50th, 95th and 99th percentiles of the response time, divided by the percentiles that the model predicts
/// for the same calls.
pub(super) fn measured_percentile_ratios(
    fit: &ModelFit,
    facts: &ServerFacts,
    measurement: &Measurement,
) -> Option<[f64; 3]> {
    let rate = measurement.rate();
    let mix: Vec<f64> = measurement.throughput.iter().map(|class| class / rate).collect();
    let arrivals = &measurement.timeline.arrivals;
    let course =
        fit.host_slowness(facts, &measurement.timeline.stretches, rate, &mix).filter(|_| !arrivals.is_empty())?;
    let course = course.with_pauses(measurement.timeline.pauses.iter().copied());
    let modelled = fit.replay(rate, &mix, &course, arrivals).ok()??;
    let measured = measurement.responses.percentiles?;
    let percentile_ratios: [f64; 3] =
        std::array::from_fn(|index| measured[index] / modelled.percentiles[index] * fit.percentile_ratios[index]);
    percentile_ratios.iter().all(|ratio| ratio.is_finite() && *ratio > 0.0).then_some(percentile_ratios)
}

/// Fitted delay and variability, and the weighted sum of squared residuals of the fit.
#[derive(Clone, Copy, Debug)]
struct ReplayFit {
    response: ResponseFit,
    misfit: f64,
}

/// Fits the delay and the squared coefficient of variation (scv) to the simulated calls of all open loads. `None` if
/// the host's speed during a load is unknown.
fn fit_by_replay(fit: &ModelFit, facts: &ServerFacts, loads: &PooledLoads, prior: Prior) -> Option<ReplayFit> {
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
    let columns = [delay_column, scv_column];
    let solution = fit_non_negative(&columns, &observed, &weights).ok()?;
    let [delay, scv] = [solution.values[0], solution.values[1]];
    // Skip the first row: it is the prior and not a measurement.
    let rows = columns[0].iter().zip(&columns[1]).zip(observed.iter().zip(&weights)).skip(1);
    let misfit = rows.map(|((x, y), (seen, weight))| weight * (seen - delay * x - scv * y).powi(2)).sum();
    Some(ReplayFit { response: ResponseFit { delay, scv, basis: ScvBasis::Fitted, scv_standard_error: None }, misfit })
}

/// Fits the delay and the squared coefficient of variation (scv) with the formula for steady-state waiting times. The
/// measured waiting times also include the effect of a host with variable speed, so the scv is limited to the range
/// between the prior and 1.
fn fit_by_formula(
    fit: &ModelFit,
    facts: &ServerFacts,
    loads: &PooledLoads,
    prior: Option<Prior>,
) -> Result<ResponseFit, EstimateError> {
    let points: Vec<ResponsePoint> = loads.values().filter_map(|pooled| response_point(fit, facts, pooled)).collect();
    if points.is_empty() {
        // The measured response times are shorter than the service time at the bottleneck, if a server answers many
        // clients at the same time. Then no delay can be estimated.
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

/// Converts the response time under a load to an observation for the fit. `None` unless the load has random arrivals or
/// is a single client, whose calls never wait.
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
            let exponential_wait = wait_with_idle_cost(station, demands, rates);
            (measurement.responses.mean?, exponential_wait, work, pooled.response_variance)
        }
        // A client without think time has a mean response time of 1 divided by its rate of calls.
        OfferedLoad::Clients(1) => {
            let variance = pooled.rate_variance.map(|variance| variance / measurement.rate().powi(4));
            let cost = measurement.cost(facts.idle_busy).filter(|_| fit.waits_for_cpu());
            let work = cost.unwrap_or_else(|| mean(demands));
            (1.0 / measurement.rate(), 0.0, work, variance)
        }
        _ => return None,
    };
    // Background work increases service times by the same factor as in the solver of the model.
    let demand = work / (1.0 - station.background);
    let response = response - elsewhere;
    let is_valid = exponential_wait.is_finite() && demand.is_finite() && response >= 0.0;
    is_valid.then(|| ResponsePoint { exponential_wait, demand, response, weight: weight(variance, response) })
}

/// The mean response time that the model predicts for the calls of a measurement, without the delay outside of the
/// stations.
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
    let course = course.with_pauses(measurement.timeline.pauses.iter().copied());
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

/// Mean ratios of measured to predicted percentiles of the response time, over the open loads of at least
/// [`MIN_LEVEL_WITH_SHAPE`] percent of the capacity.
pub(super) fn percentile_ratios(loads: &PooledLoads) -> [f64; 3] {
    let has_shape =
        |load: &OfferedLoad| matches!(load, OfferedLoad::Level(percent) if *percent >= MIN_LEVEL_WITH_SHAPE);
    let shapes = loads.iter().filter(|(load, _)| has_shape(load)).filter_map(|(_, pooled)| pooled.percentile_ratios);
    mean_percentile_ratios(shapes).unwrap_or([1.0; 3])
}

/// Weight of a mean response time in the fit: 1 divided by its variance, which has a lower bound.
fn weight(variance: Option<f64>, response: f64) -> f64 {
    1.0 / variance.unwrap_or(response.powi(2)).max((response::MIN_HALF_WIDTH * response).powi(2))
}
