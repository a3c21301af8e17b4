//! Distribution of response times: percentiles from a solved network.
//!
//! A response time is modelled as a sum of independent times, one for each station. Each of these times has a known
//! Laplace–Stieltjes transform. `percentile/station.rs` has the formulas and their sources, and says when they are
//! exact. The transform of the sum is the product of the transforms. It is inverted numerically
//! (`percentile/inversion.rs`). Each station is visited once, as in the simulator.
//!
//! The table has the relative errors of the percentiles, compared with simulations of 3 million events. It covers about
//! 240 response times of each kind of network. The random networks have 1 to 5 stations and 1 to 3 classes, at 30 to 90
//! % of saturation. The simulated p99 itself has an error of about 2 %.
//!
//! | network | p95: median, largest | p99: median, largest |
//! |---|---|---|
//! | open, product form | 1.2 %, 7 % | 1.0 %, 10 % |
//! | closed, product form, 1 to 18 customers | 0.6 %, 8 % | 0.9 %, 11 % |
//! | closed, product form, ten times as many customers | 0.6 %, 15 % | 0.8 %, 25 % |
//! | mixed, product form | 1.3 %, 8 % | 1.4 %, 11 % |
//! | open, processor sharing alone, scv 0 to 4 | 1.8 %, 6 % | 1.2 %, 7 % |
//! | open, first come first served, scv 0 to 4 | 1.1 %, 16 % | 1.2 %, 13 % |
//! | open, priorities | 0.6 %, 15 % | 0.9 %, 20 % |
//!
//! In the last two kinds of networks, the mean response time is itself an approximation, and its largest error is as
//! large as that of the percentiles. Service times are assumed to be of a standard family: gamma for an scv below 1,
//! hyperexponential above 1. The simulator uses the same families ([`crate::Service::Standard`]).

mod inversion;
mod service;
mod sojourn;
mod station;

pub(crate) use service::Family;

use crate::ModelError;
use crate::network::{Network, mix};
use crate::solution::Solution;
use crate::under_load;
use brimful_core::model::Model;
use inversion::tail;
use nalgebra::Complex;
use sojourn::{Alternative, Sojourn};
use station::{StationView, station_views};

/// The distribution of the response times of each class in a solved network.
pub struct ResponseDistributions<'a> {
    network: Network<'a>,
    solution: &'a Solution,
}

/// Prepares the response time distributions of `model`. `solution` is the model's solution.
pub fn response_distributions<'a>(
    model: &'a Model,
    solution: &'a Solution,
) -> Result<ResponseDistributions<'a>, ModelError> {
    let fits = solution.residence.len() == model.stations.len() && solution.throughput.len() == model.classes.len();
    if !fits {
        return Err(ModelError::Inconsistent("the solution is of another model: solve this one".into()));
    }
    Ok(ResponseDistributions { network: under_load::network(model)?, solution })
}

impl ResponseDistributions<'_> {
    /// Share of the requests of class `class` with a response time of at most `seconds`. For `None`, the share of the
    /// requests of all classes. It is NaN for an unknown class.
    pub fn share_within(&self, class: Option<usize>, seconds: f64) -> f64 {
        if self.has(class) { share_within(&self.network, self.solution, class, seconds) } else { f64::NAN }
    }

    /// Percentile of the response time in seconds, for the requests of class `class`, or of all classes for `None`. It
    /// is NaN for an unknown class, and for a `percent` that is not between 0 and 100.
    pub fn percentile(&self, class: Option<usize>, percent: f64) -> f64 {
        let asked = self.has(class) && percent > 0.0 && percent < 100.0;
        if asked { percentile(&self.network, self.solution, class, percent) } else { f64::NAN }
    }

    fn has(&self, class: Option<usize>) -> bool {
        class.is_none_or(|c| c < self.solution.throughput.len())
    }
}

/// Share of the requests of one class, or of all classes for `None`, with a response time of at most `seconds`.
pub(crate) fn share_within(network: &Network<'_>, solution: &Solution, class: Option<usize>, seconds: f64) -> f64 {
    let stations = station_views(network, solution);
    combined_share(&times(&stations, solution, class), seconds)
}

/// Percentile of the response time of one class, or of all classes for `None`, in seconds.
pub(crate) fn percentile(network: &Network<'_>, solution: &Solution, class: Option<usize>, percent: f64) -> f64 {
    let stations = station_views(network, solution);
    let times = times(&stations, solution, class);
    let wanted = percent / 100.0;
    let mut low = 0.0;
    let mut high = times.iter().map(|(time, _)| time.mean).fold(0.0, f64::max);
    for _ in 0..MAX_STEPS {
        if combined_share(&times, high) >= wanted || !high.is_finite() {
            break;
        }
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..MAX_STEPS {
        if high - low <= PRECISION * high || !high.is_finite() {
            break;
        }
        let middle = f64::midpoint(low, high);
        if combined_share(&times, middle) < wanted { low = middle } else { high = middle }
    }
    high
}

/// Relative precision of a computed percentile.
const PRECISION: f64 = 1e-7;

/// Maximum number of bisection steps. Only extremely short or long times need this number of steps.
const MAX_STEPS: usize = 200;

/// Maximum number of alternatives (components of the mixture) in the distribution of a class's response time. To stay
/// within this limit, the alternatives at a station are combined into one distribution.
const MAX_ALTERNATIVES: usize = 64;

/// Share of all requests with a response time of at most `seconds`. The response time is a mixture of the alternatives
/// `times`, each with its share of the requests.
fn combined_share(times: &[(Time<'_>, f64)], seconds: f64) -> f64 {
    times.iter().map(|(time, share)| share * time.share_within(seconds)).sum()
}

/// The response time of a class, or of all classes for `None`, as a mixture of alternatives. Each alternative applies
/// to the given share of the requests.
fn times<'a>(stations: &'a [StationView<'a>], solution: &Solution, class: Option<usize>) -> Vec<(Time<'a>, f64)> {
    if let Some(c) = class {
        return Time::alternatives(stations, c, 1.0);
    }
    let mix = mix(&solution.throughput);
    let total: f64 = mix.iter().sum();
    let visible = mix.iter().enumerate().filter(|(_, share)| **share > 0.0);
    visible.flat_map(|(c, share)| Time::alternatives(stations, c, share / total)).collect()
}

/// One component of the mixture that is the distribution of a response time: the sum of independent times at several
/// stations, in seconds.
#[derive(Clone)]
struct Time<'a> {
    mean: f64,
    constant: f64,
    parts: Vec<Sojourn<'a>>,
}

impl<'a> Time<'a> {
    /// The response time of class `c` as a mixture of alternatives. The shares of the alternatives sum to `share`.
    fn alternatives(stations: &'a [StationView<'a>], c: usize, share: f64) -> Vec<(Time<'a>, f64)> {
        let mut all = vec![(Time { mean: 0.0, constant: 0.0, parts: Vec::new() }, share)];
        for alternatives in
            stations.iter().map(|station| station.alternatives(c)).filter(|alternatives| !alternatives.is_empty())
        {
            if all.len() * alternatives.len() > MAX_ALTERNATIVES {
                let mean = alternatives.iter().map(|alternative| alternative.probability * alternative.mean).sum();
                all.iter_mut().for_each(|(time, _)| time.add(mean, Sojourn::OneOf(alternatives.clone())));
                continue;
            }
            let with = |(time, share): &(Time<'a>, f64), alternative: &Alternative<'a>| {
                let mut time = time.clone();
                time.add(alternative.mean, alternative.sojourn.clone());
                (time, share * alternative.probability)
            };
            all = all
                .iter()
                .flat_map(|time| alternatives.iter().map(move |alternative| with(time, alternative)))
                .collect();
        }
        all
    }

    fn add(&mut self, mean: f64, sojourn: Sojourn<'a>) {
        self.mean += mean;
        self.constant += sojourn.constant();
        self.parts.push(sojourn);
    }

    fn share_within(&self, seconds: f64) -> f64 {
        // The time is constant, because the difference is only a rounding error.
        if self.mean - self.constant <= 1e-9 * self.mean {
            return f64::from(u8::from(seconds >= self.constant));
        }
        let beyond = seconds - self.constant;
        if beyond <= 0.0 {
            return 0.0;
        }
        1.0 - tail(beyond, |s| {
            self.parts.iter().fold(Complex::new(1.0, 0.0), |product, part| product * part.transform(s))
        })
    }
}
