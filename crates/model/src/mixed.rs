//! Exact solution of networks with closed classes. Open classes make the servers slower for the closed classes.
//!
//! If open classes keep a single server busy for ρ of the time, closed classes have demands of D/(1 − ρ) (Reiser &
//! Kobayashi 1975; Zahorjan & Wong 1981; Lazowska et al. 1984, ch. 7). At several servers and rate multipliers, open
//! classes change the multipliers ([`crate::open_load`]). The residence time of an open request then follows from the
//! number of closed customers. This is valid in product form, for stable open classes.

use crate::ModelError;
use crate::closed::{Centre, Closed, Steady, effort};
use crate::network::Network;
use crate::open_load::OpenLoad;
use brimful_core::model::{Model, Scheduling, Station, StationKind};

/// Solves the network exactly. Returns the throughput X of each class, and the residence times R, stations × classes.
/// The error says why there is no exact solution.
pub(crate) fn exact(network: &Network<'_>) -> Result<(Vec<f64>, Vec<Vec<f64>>), ModelError> {
    network.check_product_form()?;
    effort(network).check()?;
    let reduction = Reduction::new(network);
    let steady = reduction.closed(network).solve();
    Ok(reduction.expand(network, &steady))
}

/// Solves the network like [`exact`], with each station of m servers replaced by a station of speed m and a delay of
/// D·(m − 1)/m (Seidmann, Schweitzer & Shalev-Oren, 1987).
pub(crate) fn seidmann(network: &Network<'_>) -> Result<(Vec<f64>, Vec<Vec<f64>>), ModelError> {
    network.check_product_form()?;
    let mut split = Model { classes: network.model.classes.clone(), ..Model::default() };
    for (station, demands) in network.model.stations.iter().zip(&network.demands) {
        let servers = if station.kind == StationKind::Queue { f64::from(station.servers) } else { 1.0 };
        split.stations.push(Station {
            servers: 1,
            background: 0.0,
            idle_cost: None,
            interruptions: None,
            ..station.clone()
        });
        split.demands.push(demands.iter().map(|d| d / servers).collect());
        split.stations.push(Station { kind: StationKind::Delay, ..Station::default() });
        split.demands.push(demands.iter().map(|d| d * (servers - 1.0) / servers).collect());
    }
    let (throughput, parts) = exact(&Network::new(&split)?)?;
    let whole = |pair: &[Vec<f64>]| pair[0].iter().zip(&pair[1]).map(|(queue, delay)| queue + delay).collect();
    Ok((throughput, parts.chunks_exact(2).map(whole).collect()))
}

/// The network in which only the closed classes remain. The open classes are replaced by a lower speed of the stations.
struct Reduction {
    /// Indices of the closed classes.
    classes: Vec<usize>,
    /// The queueing stations by index, with the speed that the open classes leave to the closed classes.
    queues: Vec<(usize, OpenLoad)>,
}

impl Reduction {
    fn new(network: &Network<'_>) -> Self {
        let customers = usize::try_from(network.customers()).unwrap_or(usize::MAX);
        let seen = |k: usize| {
            let servers = network.model.stations[k].servers as usize;
            let plain = || OpenLoad::new(|n| n.min(servers) as f64, servers, network.open_load(k), customers);
            (k, network.load_dependent[k].clone().unwrap_or_else(plain))
        };
        let queues = (0..network.demands.len()).filter(|k| network.model.stations[*k].kind == StationKind::Queue);
        Self { classes: network.closed().collect(), queues: queues.map(seen).collect() }
    }

    fn closed(&self, network: &Network<'_>) -> Closed {
        let closed_entries = |row: &[f64]| self.classes.iter().map(|c| row[*c]).collect();
        let delay = |c: &usize| network.delay(*c);
        let centre = |(k, load): &(usize, OpenLoad)| Centre {
            demands: closed_entries(&network.demands[*k]),
            multipliers: load.multipliers.clone(),
        };
        Closed {
            population: self.classes.iter().map(|c| network.population[*c]).collect(),
            delay: self.classes.iter().map(delay).collect(),
            centres: self.queues.iter().map(centre).collect(),
        }
    }

    fn expand(&self, network: &Network<'_>, steady: &Steady) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut throughput = network.rates.clone();
        for (c, x) in self.classes.iter().zip(&steady.throughput) {
            throughput[*c] = *x;
        }
        let mut residence = network.demands.clone();
        for (i, (k, load)) in self.queues.iter().enumerate() {
            let present = steady.residence[i].iter().zip(&steady.throughput).map(|(r, x)| r * x).sum();
            let open = load.exact_open_residence(&steady.probabilities[i], present);
            residence[*k].iter_mut().for_each(|demand| *demand *= open);
            for (c, r) in self.classes.iter().zip(&steady.residence[i]) {
                residence[*k][*c] = *r;
            }
        }
        (throughput, residence)
    }
}

impl Network<'_> {
    /// Z: time that a customer of a closed class spends thinking and at delay stations, in seconds.
    pub(crate) fn delay(&self, class: usize) -> f64 {
        let delays = self.model.stations.iter().zip(&self.demands).filter(|(s, _)| s.kind == StationKind::Delay);
        self.model.classes[class].think + delays.map(|(_, row)| row[class]).sum::<f64>()
    }

    /// Returns an error that names a station out of product form, if the network has one.
    pub(crate) fn check_product_form(&self) -> Result<(), ModelError> {
        let (station, reason) = match (0..self.demands.len()).find_map(|k| Some((k, self.no_product_form(k)?))) {
            Some((k, reason)) => (self.model.stations[k].name.clone(), reason),
            None => return Ok(()),
        };
        Err(ModelError::NoProductForm { station, reason })
    }

    /// The reason why a station is out of product form; `None` if it is in product form.
    pub(crate) fn no_product_form(&self, k: usize) -> Option<&'static str> {
        let (station, demands) = (&self.model.stations[k], &self.demands[k]);
        if self.interrupted[k].is_some() {
            return Some("is interrupted");
        }
        if self.has_wakeup_formula(k) {
            return Some("wakes up for those who find it idle");
        }
        if station.kind != StationKind::Queue || station.scheduling == Scheduling::Ps {
            return None;
        }
        let visitors = || (0..demands.len()).filter(|c| demands[*c] > 0.0);
        let same = |of: &dyn Fn(usize) -> f64| visitors().map(of).is_sorted_by(|a, b| a == b);
        let urgency = |c: usize| f64::from(self.model.classes[c].priority);
        if station.scheduling != Scheduling::Fcfs && !same(&urgency) {
            Some("serves by priority")
        } else if !same(&|c| demands[c]) {
            Some("serves in order of arrival classes of unequal demands")
        } else if self.scv[k] != 1.0 {
            Some("serves in order of arrival, and its service is not exponential")
        } else {
            None
        }
    }

    /// Returns an error that names a class without any demand, if the network has one.
    pub(crate) fn check_visits(&self) -> Result<(), ModelError> {
        let idle = |c: &usize| self.demands.iter().all(|row| row[*c] == 0.0);
        let class = (0..self.model.classes.len()).find(idle);
        class.map_or(Ok(()), |c| Err(ModelError::NoDemand { class: self.model.classes[c].name.clone() }))
    }
}
