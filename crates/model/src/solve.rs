//! One door to all solvers: a network, a method, a solution.
//!
//! | method | open classes | closed classes | cost |
//! |---|---|---|---|
//! | `exact` | as `erlang`, where that is exact | mean value analysis ([`crate::closed::mva`]); several servers and rate multipliers by convolution ([`crate::closed::convolution`]) | Π (N + 1) × stations × classes |
//! | `erlang` | Erlang's C ([`crate::open`]) | none | stations × classes |
//! | `seidmann` | m servers as one fast server and a delay | the same, then exact | as `exact` |
//! | `schweitzer`, `linearizer` | as `erlang` | approximate, any population ([`crate::closed::approximate`]) | iterations × stations × classes (× classes) |
//! | `auto` | `erlang` | `exact` where it exists and is quick, `linearizer` elsewhere | at most about a second |
//!
//! Mixed networks are closed ones at stations that the open classes slow down ([`crate::mixed`]).

use crate::ModelError;
use crate::closed::{approximate, effort};
use crate::network::{Network, mix, products, servers};
use crate::{mixed, open};
use brimful_core::model::Model;
use serde::Serialize;
use std::{fmt, str::FromStr};

/// How to solve a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The most exact one that is quick; the solution says which and why.
    #[default]
    Auto,
    /// Without any approximation, or not at all.
    Exact,
    /// Open classes only; several servers by Erlang's C formula.
    Erlang,
    /// Several servers as one fast server and a delay; pessimistic, and what papers of the time used.
    Seidmann,
    /// Bard & Schweitzer (1979): the quickest for closed classes, often within 5 to 10 %.
    Schweitzer,
    /// Chandy & Neuse (1982): for closed classes of any population, often within 1 %.
    Linearizer,
}

/// A solved network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Solution {
    /// How it was solved; never `auto`.
    pub method: Method,
    /// Why this way.
    pub why: String,
    /// X, by class.
    pub throughput: Vec<f64>,
    /// R, by class; without think time.
    pub response_time: Vec<f64>,
    /// Time spent at the station, queued or served; stations × classes.
    pub residence: Vec<Vec<f64>>,
    /// N; stations × classes.
    pub queue_length: Vec<Vec<f64>>,
    /// U = X·D/m, of the nominal capacity and by our classes alone; stations × classes. Of a delay station, the number
    /// present; of one with rate multipliers, X·D.
    pub utilization: Vec<Vec<f64>>,
    /// The station that saturates first; empty if none ever does.
    pub bottleneck: String,
    /// The rate of all classes together, at their present mix, at which it saturates; infinite (JSON: null) if never.
    pub saturation_rate: f64,
    /// R over all requests, at their present mix.
    pub mean_response_time: f64,
}

/// Solves a network of any classes.
///
/// Errors: what does not fit together, a number that cannot be, a class that visits nothing, a station that the open
/// classes overload, and what the method cannot do.
pub fn solve(model: &Model, method: Method) -> Result<Solution, ModelError> {
    let network = Network::new(model)?;
    network.check_visits()?;
    let (method, why) = match method {
        Method::Auto => choose(&network),
        chosen => (chosen, "it was asked for".into()),
    };
    if network.closed().next().is_none() {
        if method == Method::Exact {
            network.check_product_form()?;
        }
        return open::solve_open(model, method);
    }
    let (throughput, residence) = match method {
        Method::Erlang => return open::solve_open(model, method),
        Method::Seidmann => mixed::seidmann(&network)?,
        Method::Schweitzer => approximate::schweitzer(&network)?,
        Method::Linearizer => approximate::linearizer(&network)?,
        Method::Exact | Method::Auto => mixed::exact(&network)?,
    };
    Solution::new(&network, method, why, throughput, residence)
}

/// What `auto` does, and why.
fn choose(network: &Network<'_>) -> (Method, String) {
    if network.closed().next().is_none() {
        return (Method::Erlang, String::new());
    }
    let effort = effort(network);
    match network.check_product_form() {
        Err(ModelError::NoProductForm { station, reason }) => {
            (Method::Linearizer, format!("no exact solution is known: station `{station}` {reason}"))
        }
        _ if effort.is_quick() => (Method::Exact, format!("{effort} are quickly gone through")),
        _ => (Method::Linearizer, format!("the exact solution would go through {effort}")),
    }
}

impl Solution {
    /// From X and R at each station. An error if the numbers have left the range of arithmetic.
    pub(crate) fn new(
        network: &Network<'_>,
        method: Method,
        why: String,
        throughput: Vec<f64>,
        residence: Vec<Vec<f64>>,
    ) -> Result<Self, ModelError> {
        let model = network.model;
        let response_time: Vec<f64> = (0..throughput.len()).map(|c| residence.iter().map(|r| r[c]).sum()).collect();
        if let Some(value) = throughput.iter().chain(&response_time).find(|v| !v.is_finite()) {
            let what = "a throughput or response time of the solution".into();
            return Err(ModelError::Number {
                what,
                value: *value,
                need: "finite: give demands, rates and times in seconds",
            });
        }
        let mix = mix(&throughput);
        let (saturation_rate, bottleneck) = network.capacity(&mix);
        let utilization = model.stations.iter().zip(&model.demands);
        let utilization = utilization.map(|(s, d)| products(d, &throughput).map(|b| b / servers(s)).collect());
        Ok(Self {
            method,
            why,
            mean_response_time: products(&response_time, &mix).sum::<f64>() / mix.iter().sum::<f64>(),
            queue_length: residence.iter().map(|r| products(r, &throughput).collect()).collect(),
            utilization: utilization.collect(),
            bottleneck: network.name(bottleneck),
            throughput,
            response_time,
            residence,
            saturation_rate,
        })
    }
}

const METHODS: [(Method, &str); 6] = [
    (Method::Auto, "auto"),
    (Method::Exact, "exact"),
    (Method::Erlang, "erlang"),
    (Method::Seidmann, "seidmann"),
    (Method::Schweitzer, "schweitzer"),
    (Method::Linearizer, "linearizer"),
];

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(METHODS.iter().find(|(method, _)| method == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for Method {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Method, ModelError> {
        let known = METHODS.iter().find(|(_, name)| *name == text);
        known.map(|(method, _)| *method).ok_or_else(|| ModelError::UnknownMethod(text.into()))
    }
}
