//! Interruptions of a station ([`Interruptions`]), such as pauses for garbage collection.
//!
//! | symbol | quantity | unit |
//! |---|---|---|
//! | ν | interruptions per second: `per_second` + `per_call` × requests per second that visit the station | 1/s |
//! | L | length of an interruption | s |
//! | σ | ν·E\[L\]: share of the time in interruptions, 0..1 | – |
//! | ν' | ν/(1 − σ): interruptions per second of the remaining time | 1/s |
//! | r | mean remaining time of an interruption that an arrival finds, 0 if it finds none | s |
//!
//! Interruptions begin at random times, whether requests are present or not. All servers of the station stop, and
//! interrupted requests then resume. This is M/G/1 with breakdowns that do not depend on the queue (White & Christie
//! 1958; Avi-Itzhak & Naor 1963, model A). No interruption begins during another one.
//!
//! - **Capacity.** All demands grow by the factor 1/(1 − σ). Let U be the utilization of the m servers by requests, and
//!   b the share taken by background work. The station is saturated at U = (1 − b)(1 − σ).
//! - **Open classes.** A Poisson arrival finds r = ν·E\[L²\]/2. The requests that arrive during an interruption are
//!   served after it, so the mean wait grows by r/(1 − ρ), where ρ is the utilization of the capacity (1 − b)(1 − σ).
//!   This is exact for one server and service in the order of arrival. With several servers it is an upper bound: a
//!   request that arrives during an interruption may find an idle server afterwards. In simulations with 2 to 16
//!   servers, exponential service, and interruptions of 2 to 100 service times, mean response times were at most 5 %
//!   below this bound.
//! - **Closed classes.** A customer leaves a station only between interruptions, and returns after the mean time A
//!   elsewhere, including its think time. If this time is exponential, the customer finds r = ν'·A·(E\[L\] − A·(1 −
//!   L*))/(1 + ν'·A·(1 − L*)), where L* = E\[e^(−L/A)\]. So r is 0 without a time elsewhere, and ν·E\[L²\]/2 if A is
//!   long. This follows from the renewal equation of the interruptions, and is valid for any number of customers. Mean
//!   value analysis adds r to the residence time of an arrival. It assumes that the arrival finds the mean queue of the
//!   network with one customer fewer, as without interruptions (Reiser & Lavenberg 1980). This assumption is an
//!   approximation: queues are longest at the end of an interruption, when all customers may already be there and no
//!   one arrives. The results are right in three limits: one customer, many customers (capacity), and a population so
//!   large that arrivals are Poisson. Between these limits, the approximation is pessimistic: with interruptions longer
//!   than the think time, simulated response times were as low as half of those predicted, and throughputs up to 16 %
//!   higher. So the method `auto` simulates closed networks with interruptions.
//! - **Order of service.** Under processor sharing, r is the same for all classes. The requests that arrived during the
//!   interruption slow all requests down, in proportion to their demands. This is exact for exponential service with
//!   equal demands at one server. With constant service and long interruptions, the true wait is up to twice the wait
//!   by this formula. With priorities, an arrival waits for r like for a service in progress (Cobham 1954).
//!
//! The simulator ([`mod@crate::simulate`]) draws the lengths of interruptions from the distributions of
//! [`crate::Service::Standard`].

use crate::percentile::Family;
use crate::station::{max_speed, products};
use brimful_core::model::{Interruptions, Station};

/// Upper limit of the share of time in interruptions, so that demands remain finite.
const MAX_SHARE: f64 = 1.0 - 1e-9;

/// The interruptions of a station; `None` if the station is never interrupted.
pub(crate) fn interruptions(station: &Station) -> Option<Interruptions> {
    station.interruptions.filter(|it| it.mean_length > 0.0 && it.per_second + it.per_call > 0.0)
}

/// Share of the station's capacity that requests with these rates need, including the time of the interruptions that
/// they cause: 1 at saturation. `saturated` are the demands at saturation, divided by 1 − b, where background work uses
/// the share b of the capacity.
pub(crate) fn load(station: &Station, saturated: &[f64], rates: &[f64]) -> f64 {
    let work = products(saturated, rates).sum::<f64>() / max_speed(station);
    let Some(it) = interruptions(station) else { return work };
    (work + it.per_call * it.mean_length * visits(saturated, rates)) / (1.0 - it.per_second * it.mean_length)
}

/// σ: share of the time in which the station is interrupted, for these demands and rates of requests. If the rates
/// exceed the station's capacity, σ is its value at saturation. `demands` are in seconds by class at saturation, and
/// `rates` in requests per second by class.
pub fn interrupted_share(station: &Station, demands: &[f64], rates: &[f64]) -> f64 {
    let Some(it) = interruptions(station) else { return 0.0 };
    let saturated: Vec<f64> = demands.iter().map(|demand| demand / (1.0 - station.background)).collect();
    let completed = visits(demands, rates) / load(station, &saturated, rates).max(1.0);
    ((it.per_second + it.per_call * completed) * it.mean_length).min(MAX_SHARE)
}

/// (1 − b)(1 − σ): share of the station's capacity that background work and interruptions leave.
pub(crate) fn available_share(station: &Station, demands: &[f64], rates: &[f64]) -> f64 {
    (1.0 - station.background) * (1.0 - interrupted_share(station, demands, rates))
}

/// Requests per second that visit the station.
fn visits(demands: &[f64], rates: &[f64]) -> f64 {
    demands.iter().zip(rates).filter(|(demand, _)| **demand > 0.0).map(|(_, rate)| rate).sum()
}

/// The interruptions of one station at given rates of requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InterruptionLoad {
    /// σ: share of the time in interruptions.
    pub(crate) share: f64,
    /// ν': interruptions per second of the time outside of interruptions.
    pub(crate) hazard: f64,
    /// E\[L\]: mean length of an interruption, in seconds.
    pub(crate) mean: f64,
    /// Squared coefficient of variation of the lengths of interruptions.
    pub(crate) scv: f64,
    /// r of each class: mean remaining time, in seconds, of the interruption that an arrival finds.
    pub(crate) found: Vec<f64>,
}

impl InterruptionLoad {
    /// The interruptions of `station`; `None` if it is never interrupted. `demands` are in seconds, `rates` are the
    /// completed requests per second by class. `away` is the mean time in seconds for which a customer of each closed
    /// class is elsewhere; `None` for open classes.
    pub(crate) fn new(station: &Station, demands: &[f64], rates: &[f64], away: &[Option<f64>]) -> Option<Self> {
        let it = interruptions(station)?;
        let share = interrupted_share(station, demands, rates);
        let mut interruptions =
            Self { share, hazard: 0.0, mean: it.mean_length, scv: it.length_scv, found: Vec::new() };
        interruptions.hazard = share / it.mean_length / (1.0 - share);
        interruptions.found = away.iter().map(|away| interruptions.remaining_at_arrival(*away)).collect();
        Some(interruptions)
    }

    /// Mean remaining time, in seconds, of an interruption that is in progress: E\[L²\]/(2·E\[L\]).
    pub(crate) fn remaining(&self) -> f64 {
        self.mean * (1.0 + self.scv) / 2.0
    }

    /// Mean remaining time r, in seconds, of the interruption that an arrival finds. A customer of a closed class is
    /// elsewhere for `away` seconds between two visits; `None` is an open class.
    fn remaining_at_arrival(&self, away: Option<f64>) -> f64 {
        let random = self.share * self.remaining();
        let Some(away) = away else { return random };
        if away <= 0.0 {
            return 0.0;
        }
        let (family, z) = (Family::new(self.scv), self.mean / away);
        // With L* = E[e^(−L/A)], the values E[L] − A·(1 − L*) and A·(1 − L*), without cancellation of digits.
        let unexpired = away * family.settled(z, self.scv);
        let expired = self.mean - unexpired;
        (self.hazard * away * unexpired / (1.0 + self.hazard * expired)).min(self.longest_wait())
    }

    /// ν'·E\[L²\]/2: upper bound of the mean remaining time r of an interruption that an arrival finds, in seconds. It
    /// is valid for any pattern of arrivals, because interruptions never begin at a rate above ν'.
    pub(crate) fn longest_wait(&self) -> f64 {
        self.hazard * self.mean * self.remaining()
    }

    /// The mean of this estimate of a station's interruptions and another one.
    pub(crate) fn halfway(&self, other: &Self) -> Self {
        let found = self.found.iter().zip(&other.found).map(|(a, b)| f64::midpoint(*a, *b)).collect();
        let share = f64::midpoint(self.share, other.share);
        Self { share, hazard: share / self.mean / (1.0 - share), found, ..*self }
    }

    /// Whether this and another estimate for the same station are equal up to a relative `tolerance`.
    pub(crate) fn is_close(&self, other: &Self, tolerance: f64) -> bool {
        let close = |a: f64, b: f64| (a - b).abs() <= tolerance * b.abs();
        close(self.share, other.share) && self.found.iter().zip(&other.found).all(|(a, b)| close(*a, *b))
    }
}
