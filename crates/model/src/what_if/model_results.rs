//! The results of one model: its solution, the limits of its stations, and its headroom.

use super::headroom::{Headroom, headroom};
use super::interval::Intervals;
use crate::ModelError;
use crate::interruptions::available_share;
use crate::network::{Network, mix};
use crate::solution::{Method, Solution};
use crate::solve::solve;
use crate::station::{max_speed, products};
use brimful_core::JsonSchema;
use brimful_core::Slo;
use brimful_core::model::{Model, StationKind};
use serde::Serialize;

/// The results of one model: its solution, the limits of its stations, and its headroom.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelResults {
    /// The model that was solved.
    pub model: Model,
    /// The solution; `None` if a station cannot keep up.
    pub solution: Option<Solution>,
    /// The reason why there is no solution; `None` if there is one.
    pub unsolved: Option<String>,
    /// The stations, in the order in which they saturate.
    pub stations: Vec<StationLimit>,
    /// The greatest load at which each objective is met.
    pub headroom: Vec<Headroom>,
    /// 90 % confidence intervals of these results; `None` if the demands have no intervals.
    pub intervals: Option<Intervals>,
}

/// A station and the load at which it saturates.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StationLimit {
    /// Name of the station.
    pub station: String,
    /// The rate of all classes together, at their present mix, at which the station saturates, in requests per second.
    pub saturation_rate: f64,
    /// Utilization of the capacity that background work and interruptions leave at the station; 1 or more if the
    /// station cannot keep up.
    pub utilization: f64,
}

impl ModelResults {
    /// Solves a model, without intervals. A saturated open network is not an error.
    pub(super) fn new(model: &Model, method: Method, slos: &[Slo]) -> Result<ModelResults, ModelError> {
        let network = Network::unchecked_stability(model)?;
        let (solution, unsolved) = match solve(model, method) {
            Ok(solution) => (Some(solution), None),
            Err(error @ ModelError::Unstable { .. }) => (None, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        let throughput = solution.as_ref().map_or(&network.rates, |solution| &solution.throughput);
        let stations = ranking(&network, throughput);
        let headroom = slos.iter().map(|slo| headroom(model, method, slo)).collect::<Result<_, _>>()?;
        Ok(ModelResults { model: model.clone(), solution, unsolved, stations, headroom, intervals: None })
    }
}

/// The queues that have any work, in the order in which they saturate. The mix of classes is that of `throughput`.
pub(super) fn ranking(network: &Network<'_>, throughput: &[f64]) -> Vec<StationLimit> {
    let mix = mix(throughput);
    let total: f64 = mix.iter().sum();
    let under_load = network.demands_at(throughput);
    let queues = (0..under_load.len()).filter(|k| network.model.stations[*k].kind == StationKind::Queue);
    let limit = |k: usize| {
        let station = &network.model.stations[k];
        let saturation_rate = total / network.saturation_load(k, &mix);
        let used = products(&under_load[k], throughput).sum::<f64>() / max_speed(station);
        let utilization = used / available_share(station, &network.model.demands[k], throughput);
        saturation_rate.is_finite().then(|| StationLimit {
            station: station.name.clone(),
            saturation_rate,
            utilization,
        })
    };
    let mut limits: Vec<StationLimit> = queues.filter_map(limit).collect();
    limits.sort_by(|a, b| a.saturation_rate.total_cmp(&b.saturation_rate));
    limits
}
