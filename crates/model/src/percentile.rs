//! How response times are distributed: percentiles from a solved network.
//!
//! Each station's time is given a variance (`sojourn.rs`); the sum over the stations, taken as independent, is given the gamma
//! distribution of its mean and variance, beyond what is constant (delays of scv 0).

mod sojourn;

use crate::ModelError;
use crate::network::{Network, mix};
use crate::solve::Solution;
use brimful_core::model::Model;
use sojourn::{Moments, places};
use statrs::function::gamma::checked_gamma_lr;

/// The response times of a solved network.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseDistributions {
    classes: Vec<Distribution>,
    /// Shares of all requests, by class.
    mix: Vec<f64>,
}

/// The response time of one class.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Distribution {
    /// What every request takes, in seconds.
    constant: f64,
    /// Mean of what comes on top.
    mean: f64,
    /// Its variance.
    variance: f64,
}

/// How the response times of a network are distributed whose solution this is.
pub fn response_distributions(model: &Model, solution: &Solution) -> Result<ResponseDistributions, ModelError> {
    let fits = solution.residence.len() == model.stations.len() && solution.throughput.len() == model.classes.len();
    if !fits {
        return Err(ModelError::Shape("the solution is of another model: solve this one".into()));
    }
    Ok(distributions(&Network::new(model)?, solution))
}

/// The same of a network that is known to be one.
pub(crate) fn distributions(network: &Network<'_>, solution: &Solution) -> ResponseDistributions {
    let places = places(network, solution);
    let class = |c: usize| {
        let sum = places.iter().fold(Moments::default(), |sum, place| sum + place.sojourn(c));
        Distribution { constant: sum.constant, mean: sum.mean, variance: sum.variance }
    };
    let mix = mix(&solution.throughput);
    let total: f64 = mix.iter().sum();
    ResponseDistributions {
        classes: (0..mix.len()).map(class).collect(),
        mix: mix.iter().map(|share| share / total).collect(),
    }
}

impl ResponseDistributions {
    /// The share of a class's requests that take no longer than this; of all requests if no class is given.
    pub fn share_within(&self, class: Option<usize>, seconds: f64) -> f64 {
        match class.map(|c| self.classes.get(c)) {
            Some(class) => class.map_or(f64::NAN, |class| class.share_within(seconds)),
            None => self.classes.iter().zip(&self.mix).map(|(class, share)| share * class.share_within(seconds)).sum(),
        }
    }

    /// What so many percent of them do not exceed, in seconds.
    pub fn percentile(&self, class: Option<usize>, percent: f64) -> f64 {
        let longest = self.classes.iter().map(|class| class.constant + class.mean).fold(0.0, f64::max);
        percentile_of(percent, longest, |t| self.share_within(class, t))
    }
}

impl Distribution {
    fn share_within(&self, seconds: f64) -> f64 {
        let beyond = seconds - self.constant;
        if beyond < 0.0 {
            return 0.0;
        }
        if self.mean <= 0.0 || self.variance <= 0.0 {
            return f64::from(u8::from(beyond >= self.mean));
        }
        let shape = self.mean * self.mean / self.variance;
        checked_gamma_lr(shape, beyond * self.mean / self.variance).unwrap_or(1.0)
    }
}

/// Where a distribution reaches so many percent; `near` is of its magnitude.
fn percentile_of(percent: f64, near: f64, share_within: impl Fn(f64) -> f64) -> f64 {
    let wanted = percent / 100.0;
    let (mut low, mut high) = (0.0, near);
    while share_within(high) < wanted && high.is_finite() {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if high - low <= 1e-9 * high {
            break;
        }
        if share_within(middle) < wanted { low = middle } else { high = middle }
    }
    high
}
