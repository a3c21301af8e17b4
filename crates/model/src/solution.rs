//! The types of a solved network, of the methods that solve it, and of estimates.

use crate::ModelError;
use crate::network::{Network, mix, servers};
use crate::station::products;
use brimful_core::JsonSchema;
use brimful_core::number::NumberError;
use serde::Serialize;
use std::{fmt, str::FromStr};

/// A fitted or simulated value with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// The estimated value.
    pub value: f64,
    /// Half width of the 95 % confidence interval; `None` if the data have no degrees of freedom to estimate it.
    pub ci95_half_width: Option<f64>,
}

/// The method that solves a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The most exact method that takes little time. The solution reports the chosen method and the reason.
    #[default]
    Auto,
    /// The exact solution. If none is known for the network, the result is an error.
    Exact,
    /// Erlang's C formula for several servers; for open classes only.
    Erlang,
    /// Replaces several servers by one fast server and a delay, as in older papers. This overestimates response times.
    Seidmann,
    /// The fixed point of Bard & Schweitzer (1979): the quickest method for closed classes. Its errors are mostly
    /// within 5 to 10 %.
    Schweitzer,
    /// The Linearizer of Chandy & Neuse (1982): for closed classes of any population.
    Linearizer,
    /// A discrete-event simulation, which is also valid where no formula is valid.
    Simulation,
}

/// A solved network.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Solution {
    /// The method that was used; never `auto`.
    pub method: Method,
    /// The reason why this method was used.
    pub why: String,
    /// Sentences about the errors of the solution. They are not serialized here, because each document has one list of
    /// all its caveats.
    #[serde(skip)]
    pub caveats: Vec<String>,
    /// X: throughput of each class, in requests per second.
    pub throughput: Vec<f64>,
    /// R: response time of each class in seconds, without think time.
    pub response_time: Vec<f64>,
    /// Residence time at each station in seconds, waiting and in service; stations × classes.
    pub residence: Vec<Vec<f64>>,
    /// N: mean number of requests present; stations × classes.
    pub queue_length: Vec<Vec<f64>>,
    /// U = X·D/m: utilization of the nominal capacity by the model's classes, without background work; stations ×
    /// classes. For a delay station it is the number of requests present; for a station with rate multipliers it is
    /// X·D.
    pub utilization: Vec<Vec<f64>>,
    /// The station that saturates first as the load grows; empty if no station ever saturates.
    pub bottleneck: String,
    /// The rate of all classes together, at their present mix, at which the bottleneck saturates, in requests per
    /// second. Infinite (JSON: null) if no station ever saturates.
    #[schemars(with = "Option<f64>")]
    pub saturation_rate: f64,
    /// Mean response time R over the requests of all classes at their present mix, in seconds.
    pub mean_response_time: f64,
}

impl Solution {
    /// Computes all metrics from the throughputs X and the residence times at each station.
    ///
    /// # Errors
    /// When a metric is not finite.
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
            return Err(ModelError::Number(NumberError {
                what,
                value: *value,
                requirement: "finite: give demands, rates and times in seconds",
            }));
        }
        let mix = mix(&throughput);
        let (saturation_rate, bottleneck) = network.capacity(&mix);
        let utilization = model.stations.iter().zip(&network.nominal);
        let utilization = utilization.map(|(s, d)| products(d, &throughput).map(|b| b / servers(s)).collect());
        Ok(Self {
            method,
            why,
            caveats: Vec::new(),
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

const METHODS: [(Method, &str); 7] = [
    (Method::Auto, "auto"),
    (Method::Exact, "exact"),
    (Method::Erlang, "erlang"),
    (Method::Seidmann, "seidmann"),
    (Method::Schweitzer, "schweitzer"),
    (Method::Linearizer, "linearizer"),
    (Method::Simulation, "simulation"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_parsed_by_their_names() {
        for (method, name) in METHODS {
            assert_eq!((method.to_string().as_str(), name.parse()), (name, Ok(method)));
            assert_eq!(serde_json::to_value(method).unwrap(), name);
        }
        assert!("mva".parse::<Method>().unwrap_err().to_string().contains("linearizer"));
    }
}
