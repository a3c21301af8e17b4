//! Which station gives out first, and which after it.

use crate::network::{Network, max_speed, mix, products};
use brimful_core::model::StationKind;
use schemars::JsonSchema;
use serde::Serialize;

/// A station and what it can take.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StationLimit {
    /// Its name.
    pub station: String,
    /// The rate of all classes together, at their present mix, at which it saturates.
    pub saturation_rate: f64,
    /// Share of what it can give to our classes that is in use; 1 or more if it cannot keep up.
    pub utilization: f64,
}

/// The queues with work, the first to saturate first. The mix is that of the throughputs; all figures per second.
pub(super) fn ranking(network: &Network<'_>, throughput: &[f64]) -> Vec<StationLimit> {
    let mix = mix(throughput);
    let total: f64 = mix.iter().sum();
    let under_load = network.demands_at(throughput);
    let queues = (0..under_load.len()).filter(|k| network.model.stations[*k].kind == StationKind::Queue);
    let limit = |k: usize| {
        let station = &network.model.stations[k];
        let load = |demands: &[f64], rates: &[f64]| {
            products(demands, rates).sum::<f64>() / max_speed(station) / (1.0 - station.background)
        };
        let saturation_rate = total / load(&network.model.demands[k], &mix);
        let utilization = load(&under_load[k], throughput);
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
