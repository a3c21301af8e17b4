//! The largest load at which an objective is still met.
//!
//! The load is the rate of all open classes together at their present mix; closed classes remain unchanged. Without
//! open classes, the load is the population of all closed classes, in their present proportions. Times and utilizations
//! never decrease with the load, so the limit is found by bisection. Percentiles are computed by [`crate::percentile`].
//! Utilization includes background work, as an observer would measure it, and the time of interruptions, in which a
//! station serves no request.

use super::names::{class_named, station_named};
use crate::ModelError;
use crate::closed::effort;
use crate::error::significant;
use crate::interruptions::interrupted_share;
use crate::network::Network;
use crate::percentile::{percentile, share_within};
use crate::solution::{Method, Solution};
use crate::solve::{is_simulated, solve};
use crate::station::max_speed;
use crate::under_load;
use brimful_core::JsonSchema;
use brimful_core::Slo;
use brimful_core::model::{Model, StationKind};
use brimful_core::slo::Measure;
use serde::Serialize;
use std::fmt;

/// An objective (an upper limit of a response time or a utilization), and the greatest load at which it is met.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Headroom {
    /// The objective: an upper limit of a metric.
    pub slo: Slo,
    /// The objective's metric (a response time or a utilization) at the load of the model; `None` if a station cannot
    /// keep up.
    pub now: Option<f64>,
    /// Whether the objective is met at the load of the model.
    pub met: bool,
    /// The greatest load at which the objective is met.
    pub until: LoadLimit,
}

/// The greatest load at which an objective is met.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadLimit {
    /// Even a lone request misses the objective.
    Never,
    /// The objective is met up to this rate of all open classes together, in requests per second.
    Rate(f64),
    /// The objective is met up to this number of customers of all closed classes together.
    Population(f64),
    /// The objective is met at any load.
    Always,
}

/// Evaluates an objective, and finds the greatest load at which it is met.
///
/// # Errors
/// When a class or station is unknown, or the method cannot solve the model.
pub fn headroom(model: &Model, method: Method, slo: &Slo) -> Result<Headroom, ModelError> {
    let objective = Objective::new(slo, model)?;
    let now = match solve(model, method) {
        Ok(solution) => Some(objective.measure(&under_load::network(model)?, &solution)),
        Err(ModelError::Unstable { .. }) => None,
        Err(error) => return Err(error),
    };
    let met = now.is_some_and(|now| now < slo.limit);
    Ok(Headroom { slo: slo.clone(), now, met, until: objective.until(model, method, PRECISION)? })
}

/// Relative precision of the greatest load.
const PRECISION: f64 = 1e-9;

/// Relative precision of the greatest load if the network must be simulated at every load.
const SIMULATED_PRECISION: f64 = 1e-3;

/// Maximum number of bisection steps. Only extremely low or high loads need this number of steps.
const MAX_STEPS: usize = 200;

/// Maximum time of one exact solution, in seconds, where many networks must be solved.
const QUICK_SECONDS: f64 = 0.005;

/// If an objective is met with this number of customers, it counts as met at any load.
const MAX_CUSTOMERS: f64 = 1e9;

/// An objective whose names have been looked up in a model.
pub(super) struct Objective {
    measure: ObjectiveMeasure,
    limit: f64,
}

enum ObjectiveMeasure {
    Mean(Option<usize>),
    Percentile(Option<usize>, f64),
    /// The largest utilization of these stations, given by their indices.
    Utilization(Vec<usize>),
}

impl Objective {
    pub(super) fn new(slo: &Slo, model: &Model) -> Result<Objective, ModelError> {
        let error = |problem: String| ModelError::WhatIf { text: slo.to_string(), problem };
        let class = |name: &Option<String>| name.as_deref().map(|n| class_named(n, model)).transpose().map_err(error);
        let queue = |k: &usize| model.stations[*k].kind == StationKind::Queue;
        let measure = match &slo.measure {
            Measure::Mean { class: name } => ObjectiveMeasure::Mean(class(name)?),
            Measure::Percentile { class: name, percent } => ObjectiveMeasure::Percentile(class(name)?, *percent),
            Measure::ErrorShare { .. } => {
                return Err(error("is about errors, which a model does not predict".into()));
            }
            Measure::Utilization { station: None } => {
                ObjectiveMeasure::Utilization((0..model.stations.len()).filter(queue).collect())
            }
            Measure::Utilization { station: Some(name) } => {
                let k = station_named(name, model).map_err(error)?;
                if !queue(&k) {
                    return Err(error("is about a delay, which has no capacity to use".into()));
                }
                ObjectiveMeasure::Utilization(vec![k])
            }
        };
        Ok(Objective { measure, limit: slo.limit })
    }

    /// The objective's metric in a solved network.
    fn measure(&self, network: &Network<'_>, solution: &Solution) -> f64 {
        match &self.measure {
            ObjectiveMeasure::Mean(None) => solution.mean_response_time,
            ObjectiveMeasure::Mean(Some(c)) => solution.response_time[*c],
            ObjectiveMeasure::Percentile(class, percent) => percentile(network, solution, *class, *percent),
            ObjectiveMeasure::Utilization(stations) => {
                stations.iter().map(|k| utilization(network.model, solution, *k)).fold(0.0, f64::max)
            }
        }
    }

    /// Whether a solved network meets the objective. This costs less than computing the objective's metric.
    fn is_met(&self, model: &Model, solution: &Solution) -> Result<bool, ModelError> {
        let network = under_load::network(model)?;
        Ok(match self.measure {
            ObjectiveMeasure::Percentile(class, percent) => {
                share_within(&network, solution, class, self.limit) > percent / 100.0
            }
            _ => self.measure(&network, solution) < self.limit,
        })
    }

    /// The greatest load at which the objective is met, with the relative precision `precision`.
    pub(super) fn until(&self, model: &Model, method: Method, precision: f64) -> Result<LoadLimit, ModelError> {
        let network = Network::unchecked_stability(model)?;
        let precision = if is_simulated(&network, method) { precision.max(SIMULATED_PRECISION) } else { precision };
        if network.closed().count() < model.classes.len() {
            self.until_rate(&network, method, precision)
        } else {
            self.until_population(&network, method)
        }
    }

    fn until_rate(&self, network: &Network<'_>, method: Method, precision: f64) -> Result<LoadLimit, ModelError> {
        let mix = open_mix(network);
        let (total, saturation) = (mix.iter().sum::<f64>(), network.capacity(&mix).0);
        let mut model = network.model.clone();
        let mut meets = |rate: f64| {
            for (class, share) in model.classes.iter_mut().zip(&mix) {
                class.rate = class.rate.map(|_| share / total * rate);
            }
            self.is_met_by(&model, quick(&model, method)?)
        };
        if saturation.is_infinite() {
            return Ok(if meets(total)? { LoadLimit::Always } else { LoadLimit::Never });
        }
        if !meets(saturation * precision)? {
            return Ok(LoadLimit::Never);
        }
        let (mut low, mut high) = (0.0, saturation);
        for _ in 0..MAX_STEPS {
            if high - low <= precision * high {
                break;
            }
            let middle = f64::midpoint(low, high);
            if meets(middle)? { low = middle } else { high = middle }
        }
        Ok(LoadLimit::Rate(if high < saturation { low } else { saturation }))
    }

    fn until_population(&self, network: &Network<'_>, method: Method) -> Result<LoadLimit, ModelError> {
        let present = network.customers() as f64;
        let mut model = network.model.clone();
        let mut meets = |customers: f64| {
            for (class, present_of_it) in model.classes.iter_mut().zip(&network.population) {
                let share = (f64::from(*present_of_it) / present * customers).round();
                class.population = Some(share.max(1.0) as u32);
            }
            self.is_met_by(&model, quick(&model, method)?)
        };
        let least = network.population.len() as f64;
        if !meets(least)? {
            return Ok(LoadLimit::Never);
        }
        let (mut low, mut high) = (least, present.max(least + 1.0));
        while meets(high)? {
            (low, high) = (high, high * 2.0);
            if high > MAX_CUSTOMERS {
                return Ok(LoadLimit::Always);
            }
        }
        while high - low > 1.0 {
            let middle = f64::midpoint(low, high).floor();
            if meets(middle)? { low = middle } else { high = middle }
        }
        Ok(LoadLimit::Population(low))
    }

    /// Whether the network of a model meets the objective. A saturated network never meets an objective.
    fn is_met_by(&self, model: &Model, method: Method) -> Result<bool, ModelError> {
        match solve(model, method) {
            Ok(solution) => self.is_met(model, &solution),
            Err(ModelError::Unstable { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Proportions of the open classes; equal proportions if all rates are 0.
fn open_mix(network: &Network<'_>) -> Vec<f64> {
    let open = network.population.iter().map(|n| f64::from(u8::from(*n == 0)));
    if network.rates.iter().any(|rate| *rate > 0.0) { network.rates.clone() } else { open.collect() }
}

/// The method for solving many similar networks. It is the Linearizer if `auto` would choose exact solutions that take
/// too long.
pub(super) fn quick(model: &Model, method: Method) -> Result<Method, ModelError> {
    let network = Network::unchecked_stability(model)?;
    let slow = || effort(&network).seconds > QUICK_SECONDS;
    let closed = network.closed().next().is_some();
    Ok(if method == Method::Auto && closed && !is_simulated(&network, method) && slow() {
        Method::Linearizer
    } else {
        method
    })
}

/// Utilization of a queue, including background work and interruptions.
fn utilization(model: &Model, solution: &Solution, k: usize) -> f64 {
    let station = &model.stations[k];
    let servers = f64::from(station.servers);
    let requests = solution.utilization[k].iter().sum::<f64>() * servers / max_speed(station);
    let interrupted = interrupted_share(station, &model.demands[k], &solution.throughput);
    requests + station.background + interrupted * (1.0 - station.background)
}

impl fmt::Display for Headroom {
    /// Writes the headroom like `p95<200ms holds up to 143.2 requests/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slo = &self.slo;
        match self.until {
            LoadLimit::Never => write!(f, "{slo} does not hold even without load"),
            LoadLimit::Always => write!(f, "{slo} holds at any load"),
            LoadLimit::Rate(rate) => write!(f, "{slo} holds up to {} requests/s", significant(rate)),
            LoadLimit::Population(customers) => write!(f, "{slo} holds up to {customers} customers"),
        }
    }
}
