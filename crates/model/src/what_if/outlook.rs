//! A model solved, and what can be read off it.

use super::headroom::{Headroom, headroom};
use super::interval::Intervals;
use super::ranking::{StationLimit, ranking};
use crate::ModelError;
use crate::network::Network;
use crate::solution::{Method, Solution};
use crate::solve::solve;
use brimful_core::Slo;
use brimful_core::model::Model;
use schemars::JsonSchema;
use serde::Serialize;

/// What a model says of the server it describes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Outlook {
    /// The model.
    pub model: Model,
    /// Its solution; `None` if some station cannot keep up.
    pub solution: Option<Solution>,
    /// Why there is none.
    pub unsolved: Option<String>,
    /// What gives out first, and what after it.
    pub stations: Vec<StationLimit>,
    /// How far the load can grow, by objective.
    pub headroom: Vec<Headroom>,
    /// 90 % intervals, where the demands have any.
    pub intervals: Option<Intervals>,
}

impl Outlook {
    /// Solves a model; an open network that cannot keep up is no error. Without intervals.
    pub(super) fn new(model: &Model, method: Method, slos: &[Slo]) -> Result<Outlook, ModelError> {
        let network = Network::unchecked_stability(model)?;
        let (solution, unsolved) = match solve(model, method) {
            Ok(solution) => (Some(solution), None),
            Err(error @ ModelError::Unstable { .. }) => (None, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        let throughput = solution.as_ref().map_or(&network.rates, |solution| &solution.throughput);
        let stations = ranking(&network, throughput);
        let headroom = slos.iter().map(|slo| headroom(model, method, slo)).collect::<Result<_, _>>()?;
        Ok(Outlook { model: model.clone(), solution, unsolved, stations, headroom, intervals: None })
    }
}
