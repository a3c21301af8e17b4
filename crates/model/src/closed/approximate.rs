//! Approximate solution of closed classes of any population: the fixed point of Bard & Schweitzer, and the Linearizer.
//!
//! On average, an arriving customer finds the network in the steady state that it has with one customer fewer of the
//! arriving class. Schweitzer (1979; Bard, 1979) assumes that every class's distribution over the stations does not
//! change with one customer fewer. So this method solves only the whole population. Its errors are mostly within 5 to
//! 10 %.
//!
//! The Linearizer (Chandy & Neuse, 1982; with the sums over classes of de Souza e Silva & Muntz, 1990) also solves the
//! populations with one customer fewer. The difference between these solutions and the solution of the whole population
//! is the *shift*. It is assumed to be the same for smaller populations. With several servers, it also uses the shifts
//! of the throughputs. In 300 random networks in product form, its error is at most 0.9 % on average and 20 % at worst
//! (`cargo test -p brimful-model --test it approximations`).
//!
//! Residence times follow from the state that an arrival finds ([`crate::residence`]). So several servers, order of
//! arrival, priorities and open classes are supported, but errors are unknown outside product form.
//!
//! At an interrupted station, an arrival also waits for the rest of an interruption ([`crate::interruptions`]).
//!
//! Cost: iterations × stations × classes. The Linearizer costs classes × rounds times as much. Where the order of
//! service matters, the cost is multiplied by the number of classes once more.

use super::fixed_point::fixed_point;
use crate::ModelError;
use crate::network::Network;
use crate::residence::{MustWait, StateAtArrival, check_served, residence, sharing};
use crate::station::products;
use brimful_core::model::{Scheduling, StationKind};

/// Tolerance of the final fixed point: the largest permitted change, in one iteration, of the share of time that a
/// class spends at a queue.
const FINAL_TOLERANCE: f64 = 1e-13;

/// Tolerance of the fixed points from which the Linearizer computes the effect of one customer fewer.
const SHIFT_TOLERANCE: f64 = 1e-7;

/// Tolerance of the fixed points of smaller populations, which lead to the starting point of the whole population.
const START_TOLERANCE: f64 = 1e-4;

/// The search for the starting point begins with a population whose largest class has at most this number of customers.
const START_CUSTOMERS: f64 = 4.0;

/// The Linearizer ends when no shift (the change of a solution if one customer leaves the network) changes by more than
/// this value between two rounds.
const MAX_SHIFT_CHANGE: f64 = 1e-4;

/// Maximum number of rounds of the Linearizer. A round solves the network with one customer fewer of each class, and
/// then the whole network. The authors of the Linearizer use three rounds, which are usually enough.
const MAX_ROUNDS: usize = 10;

/// Maximum share by which a station's throughput may exceed its capacity. With the Linearizer, the ratio of throughput
/// to capacity reaches 1.0009 in an example of its authors, and 1.004 in the worst network with processor sharing.
const MAX_EXCESS: f64 = 0.005;

/// The throughput X of each class, and the residence times R in seconds, stations × classes.
pub(crate) type Performance = (Vec<f64>, Vec<Vec<f64>>);

/// Solves the closed classes by the fixed point of Bard & Schweitzer.
pub(crate) fn schweitzer(network: &Network<'_>) -> Result<Performance, ModelError> {
    let iteration = Iteration::new(network);
    let whole = iteration.settle(&iteration.population, &iteration.no_shifts(), iteration.start()?, FINAL_TOLERANCE)?;
    iteration.performance(&whole)
}

/// Solves the closed classes by the Linearizer.
pub(crate) fn linearizer(network: &Network<'_>) -> Result<Performance, ModelError> {
    let iteration = Iteration::new(network);
    let mut shifts = iteration.no_shifts();
    let mut whole = iteration.settle(&iteration.population, &shifts, iteration.start()?, SHIFT_TOLERANCE)?;
    let mut less = vec![whole.clone(); iteration.classes.len()];
    for _ in 0..MAX_ROUNDS {
        let before = shifts.clone();
        for (c, less) in less.iter_mut().enumerate() {
            let mut population = iteration.population.clone();
            population[c] -= 1.0;
            *less = iteration.settle(&population, &before, std::mem::take(less), SHIFT_TOLERANCE)?;
            shifts[c] = iteration.shift(&whole, less, &population);
        }
        whole = iteration.settle(&iteration.population, &shifts, whole, SHIFT_TOLERANCE)?;
        if before.iter().zip(&shifts).all(|(old, new)| difference(old, new) <= MAX_SHIFT_CHANGE) {
            break;
        }
    }
    iteration.performance(&iteration.settle(&iteration.population, &shifts, whole, FINAL_TOLERANCE)?)
}

/// Mean behaviour of one customer of each class. The vector begins with the shares of the customer's time at each
/// queue, one row of classes per queue. Then it has one ratio for each class: the cycle time of a lone customer,
/// divided by the current cycle time. The type is also used for the difference of two such vectors.
type Shares = Vec<f64>;

/// A network in the form that the iteration needs. `classes` are the closed classes; `queues` are all stations except
/// delays.
struct Iteration<'a> {
    network: &'a Network<'a>,
    classes: Vec<usize>,
    queues: Vec<Queue>,
    /// N: number of customers of each class.
    population: Vec<f64>,
    /// Z: think time of each class in seconds, including delay stations.
    delay: Vec<f64>,
    /// Z + Σ D of each class: the cycle time of a lone customer, in seconds.
    alone: Vec<f64>,
}

struct Queue {
    station: usize,
    servers: u32,
    /// D: demand of each class, in seconds.
    demands: Vec<f64>,
    /// Mean remaining time, in seconds, of an interruption that an arrival of each class finds.
    interruption_found: Vec<f64>,
    /// a = Σ λ·D: number of servers that the open classes keep busy.
    open: f64,
    /// Maximum number of servers that closed classes can keep busy.
    most: f64,
    /// Whether the residence time depends on more than the number of customers that an arrival finds: on their classes,
    /// on the station's speed, or on interruptions.
    ordered: bool,
    /// Whether the station's service rate depends on the number of customers present.
    dependent: bool,
}

/// The effect of the shifts on an arrival. A shift is the change of the shares of time when one customer of a class is
/// removed. The first index of each field is the queue.
struct Shifted {
    /// For each arriving class: 1 plus the number of additional customers that an arrival finds because of the shifts.
    joined: Vec<Vec<f64>>,
    /// For each arriving class: the number of additional busy servers that an arrival finds because of the shifts.
    busy: Vec<Vec<f64>>,
    /// Whether customers may have to wait at the queue. False if there is a server for each customer.
    crowded: Vec<bool>,
}

impl<'a> Iteration<'a> {
    fn new(network: &'a Network<'a>) -> Self {
        let classes: Vec<usize> = network.closed().collect();
        let most = |k: usize| match &network.load_dependent[k] {
            Some(dependent) => dependent.multipliers.iter().copied().fold(0.0, f64::max),
            None => f64::from(network.model.stations[k].servers) - network.open_load(k),
        };
        let queue = |k: usize| Queue {
            station: k,
            most: most(k),
            servers: network.model.stations[k].servers,
            demands: classes.iter().map(|c| network.demands[k][*c]).collect(),
            interruption_found: classes.iter().map(|c| network.interruption_found(k, *c)).collect(),
            open: network.open_load(k),
            ordered: network.model.stations[k].scheduling != Scheduling::Ps
                || network.load_dependent[k].is_some()
                || network.interrupted[k].is_some(),
            dependent: network.load_dependent[k].is_some(),
        };
        let queues = (0..network.demands.len()).filter(|k| network.model.stations[*k].kind == StationKind::Queue);
        let queues: Vec<Queue> = queues.map(queue).collect();
        let delay: Vec<f64> = classes.iter().map(|c| network.delay(*c)).collect();
        let alone = |(c, z): (usize, &f64)| z + queues.iter().map(|q| q.demands[c]).sum::<f64>();
        Self {
            alone: delay.iter().enumerate().map(alone).collect(),
            population: classes.iter().map(|c| f64::from(network.population[*c])).collect(),
            delay,
            network,
            classes,
            queues,
        }
    }

    /// Computes a starting point near the fixed point, because from a distant starting point the iteration may not
    /// converge if several stations are nearly saturated. A small population is solved first. The population is then
    /// doubled until it is complete.
    fn start(&self) -> Result<Shares, ModelError> {
        let alone = self.queues.iter().flat_map(|q| q.demands.iter().zip(&self.alone).map(|(d, alone)| d / alone));
        let mut shares: Shares = alone.chain(self.alone.iter().map(|_| 1.0)).collect();
        let most = self.population.iter().copied().fold(1.0, f64::max);
        let mut part = 2f64.powi(-((most / START_CUSTOMERS).log2().ceil().max(0.0) as i32));
        while part < 1.0 {
            let population: Vec<f64> = self.population.iter().map(|n| (n * part).max(1.0)).collect();
            shares = self.settle(&population, &self.no_shifts(), shares, START_TOLERANCE)?;
            part *= 2.0;
        }
        Ok(shares)
    }

    fn no_shifts(&self) -> Vec<Shares> {
        vec![vec![0.0; (self.queues.len() + 1) * self.classes.len()]; self.classes.len()]
    }

    /// The change of the shares of time from `whole`, the solution for the whole population, to `less`, the solution
    /// for `population`, which has one customer fewer. The change is 0 for classes without customers in `population`.
    fn shift(&self, whole: &Shares, less: &Shares, population: &[f64]) -> Shares {
        let change = |(i, (whole, less)): (usize, (&f64, &f64))| {
            if population[i % population.len()] > 0.0 { less - whole } else { 0.0 }
        };
        whole.iter().zip(less).enumerate().map(change).collect()
    }

    /// Computes the fixed point for a population. `shifts[c]` is the change of the shares of time when one customer of
    /// class `c` leaves the network.
    fn settle(
        &self,
        population: &[f64],
        shifts: &[Shares],
        start: Shares,
        tolerance: f64,
    ) -> Result<Shares, ModelError> {
        let shifted = self.shifted(population, shifts);
        fixed_point(start, tolerance, |old, new| self.step(population, shifts, &shifted, old, new))
    }

    fn shifted(&self, population: &[f64], shifts: &[Shares]) -> Shifted {
        let classes = self.classes.len();
        let sum = |c: usize, at: usize, weight: &dyn Fn(usize) -> f64| -> f64 {
            (0..classes).map(|j| others(population, c, j) * shifts[c][at * classes + j] * weight(j)).sum()
        };
        let rates = self.queues.len();
        let busy = |q: &Queue, c: usize| sum(c, rates, &|j| q.demands[j] / self.alone[j]);
        Shifted {
            joined: (0..rates).map(|i| (0..classes).map(|c| 1.0 + sum(c, i, &|_| 1.0)).collect()).collect(),
            busy: self.queues.iter().map(|q| (0..classes).map(|c| busy(q, c)).collect()).collect(),
            crowded: self.queues.iter().map(|q| q.is_crowded(population)).collect(),
        }
    }

    /// Computes the shares of time `new` of the next iteration from the shares `old`.
    fn step(&self, population: &[f64], shifts: &[Shares], shifted: &Shifted, old: &[f64], new: &mut [f64]) {
        let classes = self.classes.len();
        let (at, alone) = old.split_at(self.queues.len() * classes);
        let rates: Vec<f64> = alone.iter().zip(&self.alone).map(|(share, alone)| share / alone).collect();
        let mut cycles = self.delay.clone();
        let rows = new.chunks_exact_mut(classes).zip(at.chunks_exact(classes));
        for ((i, queue), (new, at)) in self.queues.iter().enumerate().zip(rows) {
            if !shifted.crowded[i] {
                let alone = queue.demands.iter().zip(&queue.interruption_found);
                new.iter_mut().zip(alone).for_each(|(new, (demand, found))| *new = demand + found);
            } else if queue.ordered {
                for c in 0..classes {
                    new[c] = self.among(queue, self.classes[c], &self.found(i, c, population, &shifts[c], old));
                }
            } else {
                queue.share(at, &rates, population, (&shifted.joined[i], &shifted.busy[i]), new);
            }
            cycles.iter_mut().zip(&*new).for_each(|(cycle, residence)| *cycle += residence);
        }
        let (at, alone) = new.split_at_mut(self.queues.len() * classes);
        let rounds: Vec<f64> = cycles.iter().map(|cycle| 1.0 / cycle).collect();
        at.chunks_exact_mut(classes).for_each(|row| row.iter_mut().zip(&rounds).for_each(|(r, rounds)| *r *= rounds));
        alone.iter_mut().zip(&self.alone).zip(&rounds).for_each(|((share, alone), rounds)| *share = alone * rounds);
    }

    /// For each class: the number of customers at queue `i`, and the number of servers that serve them, as an arrival
    /// of class `c` finds them.
    fn found(&self, i: usize, c: usize, population: &[f64], shifts: &[f64], shares: &[f64]) -> Vec<(f64, f64)> {
        let classes = self.classes.len();
        let share = |at: usize, j: usize| (shares[at * classes + j] + shifts[at * classes + j]).max(0.0);
        let found = |j: usize| {
            let (others, demand) = (others(population, c, j), self.queues[i].demands[j]);
            (others * share(i, j), others * share(self.queues.len(), j) * demand / self.alone[j])
        };
        (0..classes).map(found).collect()
    }

    /// Residence time R of an open or closed class at a queue where R depends on the classes of the customers that an
    /// arrival finds.
    fn among(&self, queue: &Queue, class: usize, found: &[(f64, f64)]) -> f64 {
        let (network, k) = (self.network, queue.station);
        let busy: f64 = found.iter().map(|(present, busy)| busy.min(*present)).sum();
        // The estimated number of busy servers may exceed the number of servers, so it is limited.
        let fit = if queue.dependent { 1.0 } else { ((f64::from(queue.servers) - queue.open) / busy).min(1.0) };
        let mut all_busy: Vec<f64> = products(&network.rates, &network.demands[k]).collect();
        let mut waiting = vec![0.0; all_busy.len()];
        for (c, (present, busy)) in self.classes.iter().zip(found) {
            all_busy[*c] = busy.min(*present) * fit;
            waiting[*c] = present - all_busy[*c];
        }
        residence(network, k, class, MustWait::Erlang, &StateAtArrival { busy: &all_busy, waiting: &waiting })
    }

    /// Throughputs X and residence times R of all classes of the network. Open requests are assumed to find the mean
    /// state.
    fn performance(&self, shares: &Shares) -> Result<Performance, ModelError> {
        let (network, classes) = (self.network, self.classes.len());
        let (at, alone) = shares.split_at(self.queues.len() * classes);
        let (mut throughput, mut residence) = (network.rates.clone(), network.demands.clone());
        for (i, c) in self.classes.iter().enumerate() {
            throughput[*c] = self.population[i] * alone[i] / self.alone[i];
            for (queue, at) in self.queues.iter().zip(at.chunks_exact(classes)) {
                residence[queue.station][*c] = at[i] * self.alone[i] / alone[i];
            }
        }
        self.fit(&mut throughput, &mut residence);
        for queue in &self.queues {
            let row = &mut residence[queue.station];
            let found = |(i, c): (usize, &usize)| (throughput[*c] * row[*c], throughput[*c] * queue.demands[i]);
            let found: Vec<(f64, f64)> = self.classes.iter().enumerate().map(found).collect();
            for class in (0..row.len()).filter(|c| network.population[*c] == 0) {
                check_served(network, queue.station, class, &throughput)?;
                row[class] = self.among(queue, class, &found);
            }
        }
        Ok((throughput, residence))
    }

    /// Limits the throughput of each station to its capacity plus [`MAX_EXCESS`]. At an overloaded station, this makes
    /// the cycles of the classes longer. The additional time of a class is added to its residence time at that station.
    fn fit(&self, throughput: &mut [f64], residence: &mut [Vec<f64>]) {
        let excess = |queue: &Queue| {
            let busy: f64 = self.classes.iter().zip(&queue.demands).map(|(c, demand)| throughput[*c] * demand).sum();
            busy / (queue.most * (1.0 + MAX_EXCESS))
        };
        let excess: Vec<f64> = self.queues.iter().map(excess).collect();
        for (i, c) in self.classes.iter().enumerate() {
            let visited = self.queues.iter().zip(&excess).filter(|(queue, _)| queue.demands[i] > 0.0);
            let Some((queue, excess)) = visited.max_by(|a, b| a.1.total_cmp(b.1)).filter(|(_, e)| **e > 1.0) else {
                continue;
            };
            residence[queue.station][*c] += (excess - 1.0) * self.population[i] / throughput[*c];
            throughput[*c] /= excess;
        }
    }
}

impl Queue {
    /// Whether more customers than servers can be at this queue.
    fn is_crowded(&self, population: &[f64]) -> bool {
        let visitors = population.iter().zip(&self.demands).filter(|(_, demand)| **demand > 0.0).map(|(n, _)| n);
        self.open > 0.0 || self.dependent || visitors.sum::<f64>() > f64::from(self.servers)
    }

    /// Computes the residence time of each class under processor sharing, and writes it to `new`. It depends only on
    /// the numbers of customers and of busy servers that an arrival finds. `at` are the shares of each class's time at
    /// this queue, and `rates` the throughput per customer of each class. `shifted` has the changes of the two numbers
    /// for each arriving class, because the arrival itself is not present.
    fn share(&self, at: &[f64], rates: &[f64], population: &[f64], shifted: (&[f64], &[f64]), new: &mut [f64]) {
        let all: f64 = at.iter().zip(population).map(|(s, n)| s * n).sum();
        let (joined, more_busy) = shifted;
        if self.servers == 1 {
            let slower = 1.0 / (1.0 - self.open);
            for (((new, demand), at), joined) in new.iter_mut().zip(&self.demands).zip(at).zip(joined) {
                *new = demand * slower * (all - at + joined).max(1.0);
            }
            return;
        }
        let all_busy: f64 = products(&self.demands, rates).zip(population).map(|(b, n)| b * n).sum();
        for (c, new) in new.iter_mut().enumerate() {
            let present = (all - at[c] + joined[c] - 1.0).max(0.0);
            let busy = all_busy - self.demands[c] * rates[c] + more_busy[c];
            let busy = busy.min(present).min(f64::from(self.servers) - self.open).max(0.0);
            let stretch = sharing(self.servers, self.open, MustWait::Erlang, present - busy, busy + self.open);
            *new = self.demands[c] * stretch;
        }
    }
}

fn difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Number of customers of class `j` that a customer of class `c` can find: all of them, except itself.
fn others(population: &[f64], c: usize, j: usize) -> f64 {
    if c == j { (population[j] - 1.0).max(0.0) } else { population[j] }
}
