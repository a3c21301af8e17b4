//! Estimates two quantities from response times: the delay elsewhere (outside all queues) and the variability of
//! service.
//!
//! A host that is slow for a moment causes queues, and so does variable service. To distinguish the two, the arrivals
//! of each measurement are replayed through the model, on a host whose speed changes as measured. One replay has
//! constant service times, and one has exponential service times. The measured response time lies between the two; its
//! position determines the squared coefficient of variation. The delay elsewhere is the part of the response times that
//! neither service nor queueing explains, at all loads.
//!
//! The number of calls that a busy server completes for its CPU time provides a prior for the variability
//! ([`super::work_scv`]), or else the response times of a single client, which never waits. If the Server Module
//! measured the CPU time of single calls, its variability is the prior instead. The fit stays within the interval of
//! this prior, unless response times contradict it, or workers take turns on the CPUs.
//!
//! The model predicts only means well. The shape of the distribution is measured, because calls that take turns on a
//! CPU have another distribution than calls that are served one after another, with the same mean. So predicted
//! percentiles are the model's percentiles multiplied by the ratio of measured to modelled percentiles during
//! calibration. The variability of the delay elsewhere is chosen first, so that this ratio hardly depends on the
//! load.

use super::blocks::{
    Measurement, ModelledResponse, OfferedLoad, PooledLoads, PooledMeasurement, ReplayedMeasurement, ServerFacts,
    mean_shape,
};
use super::model_fit::ModelFit;
use super::module::measured_service;
use super::work_scv::WorkScv;
use crate::EstimateError;
use crate::least_squares::fit_non_negative;
use crate::response::{self, ResponseFit, ResponsePoint, ScvBasis, fit_delay, fit_response};
use brimful_model::{exponential_wait, station_demands, wait_with_idle_cost};
use std::collections::BTreeMap;

/// Lowest level, in percent of the capacity, at which calls wait enough to determine the shape of the distribution.
const MIN_LEVEL_WITH_SHAPE: u32 = 40;
/// Candidates for the squared coefficient of variation of the delay elsewhere.
const DELAY_SCVS: [f64; 5] = [0.0, 0.1, 0.3, 1.0, 3.0];
/// Standard deviation of the prior for the variability of waits. It is the sum of this constant and of the next
/// constant times the variability. The prior is wide, because processes that take turns on a CPU cause waits like
/// exponential service does, whatever their service times are.
const PRIOR_SPREAD: f64 = 0.3;
const RELATIVE_PRIOR_SPREAD: f64 = 0.3;
/// Response times contradict the variability of CPU times if without it, the weighted sum of squared residuals is
/// smaller by more than this: the 99th percentile of χ² with one degree of freedom (Wilks 1938).
const CONTRADICTION: f64 = 6.6;
/// Smallest standard deviation of a prior that the Server Module measured.
const MIN_PRIOR_SPREAD: f64 = 0.02;

/// The prior knowledge about the variability of waits, before response times are considered.
#[derive(Clone, Copy, Debug)]
struct Prior {
    scv: f64,
    standard_deviation: f64,
    /// Whether the Server Module measured the prior precisely. Response times then determine only the delay.
    is_measured: bool,
}

/// Fits the delay elsewhere and the variability of service to the response times under all loads. Stores both in the
/// model.
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
    // Calls that wait in the order of their arrival have the variability of their CPU times, as far as response times
    // do not contradict it.
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

/// Squared coefficient of variation of the CPU times of calls of one class, from closed loads of a single class. `None`
/// if calls queue elsewhere, because the number of completed calls then depends on that queue.
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

/// Chooses the variability of the delay elsewhere. With the right one, the model predicts the same percentiles as were
/// measured at all loads, and not only at one of them: the delay matters most at light loads, and waits at high loads.
pub(super) fn choose_delay_scv(fit: &ModelFit, facts: &ServerFacts, blocks: &[Vec<ReplayedMeasurement>]) -> f64 {
    let misfit = |scv: f64| {
        let fit = fit.clone().with_delay_scv(scv);
        let mut shapes: BTreeMap<OfferedLoad, Vec<[f64; 3]>> = BTreeMap::new();
        for replayed in blocks.iter().flatten() {
            if let Some(shape) = measurement_shape(&fit, facts, &replayed.measurement) {
                shapes.entry(replayed.measurement.load).or_default().push(shape);
            }
        }
        let ratios = shapes.into_values().filter_map(|shapes| mean_shape(shapes.into_iter())).flatten();
        ratios.map(|ratio| ratio.ln().powi(2)).sum::<f64>()
    };
    let misfits = DELAY_SCVS.map(|scv| (misfit(scv), scv));
    misfits.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0.0, |(_, scv)| scv)
}

/// Ratios of the measured percentiles of a measurement to the percentiles that the model predicts for the same calls.
pub(super) fn measurement_shape(fit: &ModelFit, facts: &ServerFacts, measurement: &Measurement) -> Option<[f64; 3]> {
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

/// A fit, and the weighted sum of its squared residuals at the loads.
#[derive(Clone, Copy, Debug)]
struct ReplayFit {
    response: ResponseFit,
    misfit: f64,
}

/// Fits the replayed calls of all levels. `None` if the host's slowness over time is unknown for a level.
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
    // The first row is the prior.
    let rows = columns[0].iter().zip(&columns[1]).zip(observed.iter().zip(&weights)).skip(1);
    let misfit = rows.map(|((x, y), (seen, weight))| weight * (seen - delay * x - scv * y).powi(2)).sum();
    Some(ReplayFit { response: ResponseFit { delay, scv, basis: ScvBasis::Fitted, scv_standard_error: None }, misfit })
}

/// Fits the steady-state waits of the levels. The waits include the effect of a varying host, so the fitted variability
/// is limited to the range between the prior and 1.
fn fit_by_formula(
    fit: &ModelFit,
    facts: &ServerFacts,
    loads: &PooledLoads,
    prior: Option<Prior>,
) -> Result<ResponseFit, EstimateError> {
    let points: Vec<ResponsePoint> = loads.values().filter_map(|pooled| response_point(fit, facts, pooled)).collect();
    if points.is_empty() {
        // Every response time is below the service time at the bottleneck. This happens if responses to many clients
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

/// Converts the response time under a load to an observation. The load has random arrivals or a single client, which
/// never waits. `None` for any other load.
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
        // The client has no think time, so its response time is the inverse of its rate.
        OfferedLoad::Clients(1) => {
            let variance = pooled.rate_variance.map(|variance| variance / measurement.rate().powi(4));
            let cost = measurement.cost(facts.idle_busy).filter(|_| fit.waits_for_cpu());
            let work = cost.unwrap_or_else(|| mean(demands));
            (1.0 / measurement.rate(), 0.0, work, variance)
        }
        _ => return None,
    };
    // As in the solver, background work increases the service time.
    let demand = work / (1.0 - station.background);
    let response = response - elsewhere;
    let is_valid = exponential_wait.is_finite() && demand.is_finite() && response >= 0.0;
    is_valid.then(|| ResponsePoint { exponential_wait, demand, response, weight: weight(variance, response) })
}

/// The mean response time that the model predicts for the calls of a measurement, without the delay elsewhere.
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

/// Mean ratios of measured to modelled percentiles, over the levels of at least [`MIN_LEVEL_WITH_SHAPE`].
pub(super) fn percentile_ratios(loads: &PooledLoads) -> [f64; 3] {
    let has_shape =
        |load: &OfferedLoad| matches!(load, OfferedLoad::Level(percent) if *percent >= MIN_LEVEL_WITH_SHAPE);
    let shapes = loads.iter().filter(|(load, _)| has_shape(load)).filter_map(|(_, pooled)| pooled.percentile_ratios);
    mean_shape(shapes).unwrap_or([1.0; 3])
}

/// Weight of a mean response time: the inverse of its variance. The variance has a lower bound.
fn weight(variance: Option<f64>, response: f64) -> f64 {
    1.0 / variance.unwrap_or(response.powi(2)).max((response::MIN_HALF_WIDTH * response).powi(2))
}
