//! Mean and variance of the time at one station. The mean is the solver's.

use crate::erlang::erlang_c;
use crate::network::{Network, products};
use crate::simulate::scv_of_each;
use crate::solve::Solution;
use brimful_core::model::{Scheduling, Station, StationKind};
use std::ops::Add;

/// Of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub(super) constant: f64,
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Add for Moments {
    type Output = Moments;

    fn add(self, other: Moments) -> Moments {
        Moments {
            constant: self.constant + other.constant,
            mean: self.mean + other.mean,
            variance: self.variance + other.variance,
        }
    }
}

/// A station with what all its requests together do to it.
pub(super) struct Place<'a> {
    station: &'a Station,
    demands: &'a [f64],
    residence: &'a [f64],
    /// Of the service times of each class.
    scv: f64,
    /// Share of its capacity in use.
    rho: f64,
    /// Probability that an arrival must wait.
    must_wait: f64,
    /// Mean time that a service under way still takes.
    left: f64,
    /// λ·E\[S³\].
    third: f64,
}

pub(super) fn places<'a>(network: &'a Network<'a>, solution: &'a Solution) -> Vec<Place<'a>> {
    let place = |k: usize| {
        let (station, demands) = (&network.model.stations[k], &network.demands[k]);
        let fcfs = station.kind == StationKind::Queue && station.scheduling == Scheduling::Fcfs;
        let scv = if fcfs { scv_of_each(network, k) } else { station.scv };
        let busy: f64 = products(demands, &solution.throughput).sum();
        let moment = |power: i32| demands.iter().zip(&solution.throughput).map(|(d, x)| x * d.powi(power)).sum::<f64>();
        Place {
            station,
            demands,
            residence: &solution.residence[k],
            scv,
            rho: (busy / f64::from(station.servers)).min(1.0 - 1e-9),
            must_wait: erlang_c(station.servers, busy),
            left: if busy > 0.0 { moment(2) * (1.0 + scv) / 2.0 / busy } else { 0.0 },
            third: moment(3) * third_moment(scv),
        }
    };
    (0..network.demands.len()).map(place).collect()
}

impl Place<'_> {
    /// Of the time of class `c`.
    pub(super) fn sojourn(&self, c: usize) -> Moments {
        let (demand, residence) = (self.demands[c], self.residence[c]);
        if demand == 0.0 {
            return Moments::default();
        }
        let service = demand * demand * self.scv;
        match (self.station.kind, self.station.scheduling) {
            (StationKind::Delay, _) if self.scv == 0.0 => Moments { constant: demand, ..Moments::default() },
            (StationKind::Delay, _) => Moments { constant: 0.0, mean: demand, variance: service },
            (StationKind::Queue, Scheduling::Ps) => {
                let stretch = residence / demand;
                let variance = service * stretch * stretch + self.shared(demand, stretch - 1.0);
                Moments { constant: 0.0, mean: residence, variance }
            }
            (StationKind::Queue, Scheduling::Fcfs) if self.station.servers == 1 => {
                let wait = residence - demand;
                let second = 2.0 * wait * wait + self.third / (3.0 * (1.0 - self.rho));
                Moments { constant: 0.0, mean: residence, variance: service + (second - wait * wait).max(0.0) }
            }
            (StationKind::Queue, _) => {
                let wait = residence - demand;
                let second = if self.must_wait > 0.0 { 2.0 * wait * wait / self.must_wait } else { 0.0 };
                Moments { constant: 0.0, mean: residence, variance: service + (second - wait * wait).max(0.0) }
            }
        }
    }

    /// What comes and goes meanwhile adds this variance to a request that is stretched by 1 + `more` on average.
    fn shared(&self, demand: f64, more: f64) -> f64 {
        if self.must_wait <= 0.0 || self.left <= 0.0 {
            return 0.0;
        }
        let found = more * more * (1.0 + self.rho - self.must_wait) / self.must_wait;
        let memory = self.left / (1.0 - self.rho);
        2.0 * found * memory * memory * settled(demand / memory, self.scv)
    }
}

/// E\[x − 1 + e^(−x)\] of a service time of this mean and scv.
fn settled(mean: f64, scv: f64) -> f64 {
    if mean < 1e-3 {
        return mean * mean * (1.0 + scv) / 2.0 - mean.powi(3) * third_moment(scv) / 6.0;
    }
    mean - 1.0 + transform(mean, scv)
}

/// E\[e^(−x)\] of a service time of this mean and scv: gamma below 1, else hyperexponential with balanced means.
fn transform(mean: f64, scv: f64) -> f64 {
    if scv < 1e-9 {
        return (-mean).exp();
    }
    if scv <= 1.0 {
        return (1.0 + scv * mean).powf(-1.0 / scv);
    }
    let p = balanced(scv);
    p / (1.0 + mean / (2.0 * p)) + (1.0 - p) / (1.0 + mean / (2.0 * (1.0 - p)))
}

/// E\[S³\] of such a service time of mean 1.
fn third_moment(scv: f64) -> f64 {
    if scv <= 1.0 {
        return (1.0 + scv) * (1.0 + 2.0 * scv);
    }
    let p = balanced(scv);
    0.75 * (1.0 / (p * p) + 1.0 / ((1.0 - p) * (1.0 - p)))
}

/// The probability of the first branch.
fn balanced(scv: f64) -> f64 {
    (1.0 + ((scv - 1.0) / (scv + 1.0)).sqrt()) / 2.0
}
