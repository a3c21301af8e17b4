//! Bounds on the throughput and response time of closed networks.
//!
//! Symbols: D is the total demand of a class at all queues. Dmax is the largest demand per server of the class at one
//! queue. Z is its think time plus its time at delay stations. X is the throughput. Times are in seconds.
//!
//! Asymptotic bounds (Muntz & Wong 1974; Denning & Buzen 1978): a station of m servers completes at most m/D requests
//! per second if each of them needs D seconds of service. In any order of service, no customer is served faster than a
//! lone customer. A customer waits at each station at most for all other customers. This upper bound of the wait is
//! valid for networks of one class, and for several classes in product form. For several classes out of product form
//! the lower bound of the throughput is 0, because classes of higher priority may prevent service.
//!
//! Balanced-job bounds (Zahorjan, Sevcik, Eager & Galler, 1982; Lazowska et al. 1984, ch. 5, terminal workloads): a
//! network is no faster than one with the same total demand spread evenly, and no slower than one with the same total
//! demand at stations that each have the network's largest demand. These bounds are valid in product form, for one
//! class and single servers.
//!
//! Interruptions ([`crate::interruptions`]): a station that is interrupted for the share σ of the time loses this share
//! of its capacity. The lower bound of the response time includes only the interruptions that begin at a rate
//! independent of the load. The upper bound includes a wait of ν'·E\[L²\]/2 seconds at each station, where L is the
//! length of an interruption, and ν' the rate at which interruptions begin at the upper bound of X. Balanced-job bounds
//! are not valid with interruptions, which have no product form.
//!
//! The cost is proportional to stations × classes.

use crate::ModelError;
use crate::interruptions::{InterruptionLoad, interruptions};
use crate::network::Network;
use crate::under_load;
use brimful_core::JsonSchema;
use brimful_core::model::{ClassKind, Model, Station, StationKind};
use serde::Serialize;

/// Bounds on the throughput and the response time of a closed class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bounds {
    /// X: throughput, in requests per second.
    pub throughput: Range,
    /// R: response time in seconds, excluding think time and including delay stations. If no upper bound is known, the
    /// upper value is infinite (JSON: null).
    pub response_time: Range,
}

/// Lower and upper bound of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Range {
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
}

/// Asymptotic bounds of one class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AsymptoticBounds {
    /// The bounds for the number of customers that the class has in the model.
    pub bounds: Bounds,
    /// N* = (D + Z)/Dmax: the population of this class at which its two upper bounds on X are equal. With more
    /// customers than N*, requests must queue.
    pub saturation_population: f64,
}

/// The asymptotic bounds of each class of a closed network.
pub fn asymptotic_bounds(model: &Model) -> Result<Vec<AsymptoticBounds>, ModelError> {
    let network = closed(model)?;
    let in_turn = model.classes.len() == 1 || network.check_product_form().is_ok();
    let bounds = |c: usize| {
        let class = Class::new(&network, c);
        let alone = class.quickest + class.delay;
        let least = if in_turn { class.customers / (class.slowest + class.delay) } else { 0.0 };
        AsymptoticBounds {
            bounds: class.bounds(least, class.customers / alone),
            saturation_population: alone / class.largest,
        }
    };
    Ok((0..model.classes.len()).map(bounds).collect())
}

/// The balanced-job bounds of a closed network in product form with one class and single servers.
pub fn balanced_job_bounds(model: &Model) -> Result<Bounds, ModelError> {
    let network = closed(model)?;
    network.check_product_form()?;
    if model.classes.len() != 1 {
        let text = format!("balanced-job bounds are for a single class, not {}", model.classes.len());
        return Err(ModelError::Inconsistent(text + ": use asymptotic bounds"));
    }
    let queues = || model.stations.iter().zip(&network.demands).filter(|(s, _)| s.kind == StationKind::Queue);
    if let Some((station, _)) = queues().find(|(s, _)| s.servers > 1 || !s.rate_multipliers.is_empty()) {
        let text = format!("balanced-job bounds are for single servers, and station `{}` is none", station.name);
        return Err(ModelError::Inconsistent(text + ": use asymptotic bounds"));
    }
    let class = Class::new(&network, 0);
    let (n, d, z) = (class.customers, class.quickest, class.delay);
    let visited = queues().filter(|(_, demands)| demands[0] > 0.0).count();
    if visited == 0 {
        return Ok(class.bounds(n / z, n / z));
    }
    let bound = |demand: f64, others: f64| n / (d + z + (n - 1.0) * demand / (1.0 + z / (others * d)));
    Ok(class.bounds(bound(class.largest, n), bound(d / visited as f64, 1.0)))
}

/// Builds the network. Returns an error if a class is open or has no demand.
fn closed(model: &Model) -> Result<Network<'_>, ModelError> {
    let network = under_load::network(model)?;
    network.check_visits()?;
    match model.classes.iter().find(|class| class.kind == ClassKind::Open) {
        Some(class) => {
            let text =
                format!("bounds are for closed classes, and `{}` is open: its throughput is its rate", class.name);
            Err(ModelError::Inconsistent(text))
        }
        None => Ok(network),
    }
}

/// The quantities of one class from which its bounds are computed.
struct Class {
    /// N: number of customers.
    customers: f64,
    /// Think time in seconds, without delay stations.
    think: f64,
    /// Z: think time plus the time at delay stations, in seconds.
    delay: f64,
    /// Residence time at all queues together for a customer that never waits, in seconds.
    quickest: f64,
    /// Residence time at all queues together, in seconds, for a customer that waits for all other customers and for an
    /// interruption at each queue.
    slowest: f64,
    /// Dmax: the largest demand per server of the class at one queue, in seconds. It includes interruptions.
    largest: f64,
}

impl Class {
    fn new(network: &Network<'_>, c: usize) -> Self {
        let mut class = Self {
            customers: f64::from(network.population[c]),
            think: network.model.classes[c].think,
            delay: network.delay(c),
            quickest: 0.0,
            slowest: 0.0,
            largest: 0.0,
        };
        let visited = |k: &usize| network.model.stations[*k].kind == StationKind::Queue && network.demands[*k][c] > 0.0;
        let queues = || (0..network.demands.len()).filter(visited);
        // Demand without the time of interruptions, which the demands of the network include.
        let demand = |k: usize| {
            let interrupted = network.interrupted[k].as_ref();
            network.demands[k][c] * interrupted.map_or(1.0, |interrupted| 1.0 - interrupted.share)
        };
        for k in queues() {
            let station = &network.model.stations[k];
            let speeds = Speeds::new(station, network.customers());
            let it = interruptions(station).unwrap_or_default();
            let running = 1.0 - it.per_second * it.mean_length;
            class.quickest += demand(k) / running * speeds.quickest;
            class.largest = class.largest.max((demand(k) / speeds.most + it.per_call * it.mean_length) / running);
        }
        let mut rates = vec![0.0; network.rates.len()];
        rates[c] = class.most(class.customers / (class.quickest + class.delay));
        for k in queues() {
            let station = &network.model.stations[k];
            let load = InterruptionLoad::new(station, &network.model.demands[k], &rates, &[]);
            let (running, wait) = load.map_or((1.0, 0.0), |load| (1.0 - load.share, load.longest_wait()));
            class.slowest += demand(k) / running * Speeds::new(station, network.customers()).slowest + wait;
        }
        class
    }

    /// Upper bound on the throughput X: the smaller one of `most` and the capacity of the bottleneck.
    fn most(&self, most: f64) -> f64 {
        if self.largest > 0.0 { most.min(1.0 / self.largest) } else { most }
    }

    /// Computes the bounds of the class. `least` is a lower bound on the throughput X. `most` is an upper bound on X
    /// that ignores the capacity of the bottleneck.
    fn bounds(&self, least: f64, most: f64) -> Bounds {
        let most = self.most(most);
        let response = |x: f64| self.customers / x - self.think;
        Bounds {
            throughput: Range { lower: least, upper: most },
            response_time: Range { lower: response(most), upper: response(least) },
        }
    }
}

/// The speed α(n) of a queue while n = 1 to N customers are present, relative to its speed with one customer.
struct Speeds {
    /// Minimum of n/α(n). This is the ratio of the residence time to the demand if n customers share the queue.
    quickest: f64,
    /// Maximum of n/α(n).
    slowest: f64,
    /// Maximum of α(n).
    most: f64,
}

impl Speeds {
    fn new(station: &Station, customers: u64) -> Self {
        let customers = customers as f64;
        let mut speeds = Self { quickest: f64::INFINITY, slowest: 0.0, most: 0.0 };
        let mut include = |n: f64, alpha: f64| {
            speeds.quickest = speeds.quickest.min(n / alpha);
            speeds.slowest = speeds.slowest.max(n / alpha);
            speeds.most = speeds.most.max(alpha);
        };
        let servers = f64::from(station.servers);
        if station.rate_multipliers.is_empty() {
            include(1.0, 1.0);
            include(customers, servers.min(customers));
        }
        for (n, alpha) in station.rate_multipliers.iter().enumerate().map(|(i, alpha)| (i as f64 + 1.0, *alpha)) {
            if n <= customers {
                include(n, alpha);
            }
        }
        let levels = station.rate_multipliers.len() as f64;
        if let (Some(last), true) = (station.rate_multipliers.last(), customers > levels) {
            include(customers, *last);
        }
        speeds
    }
}
