//! Closed classes of any population, approximately: Bard & Schweitzer's fixed point, and the Linearizer.
//!
//! An arriving customer finds what the network would hold with one customer of his class less. Schweitzer (1979; Bard,
//! 1979) takes every class's distribution over the stations to be the same with one customer less, and iterates on the
//! whole population alone: mostly within 5 to 10 %. The Linearizer (Chandy & Neuse, 1982; its sums as in de Souza e Silva &
//! Muntz, 1990) also solves the populations with one customer less, learns from them how the distributions shift, and
//! takes that shift for constant: mostly within 1 %. What one finds at a station decides how long one stays
//! ([`crate::residence`]), so several servers, order of arrival, priorities and open classes are all understood, if outside
//! product form with errors that no one bounds. With several servers the shifts of the throughputs are carried as well.
//! Cost: iterations × stations × classes, for the Linearizer × classes × rounds; × classes where the order matters.

use crate::ModelError;
use crate::network::Network;
use crate::residence::{Found, MustWait, residence, sharing};
use brimful_core::model::{Scheduling, StationKind};

/// A round of the Linearizer changes no share of a class's time by more than this once it has settled.
const SHIFT_SETTLED: f64 = 1e-5;

/// Rounds of the Linearizer at most; three are the authors' choice, and mostly enough.
const ROUNDS: usize = 12;

/// A fixed point has settled when no share of a class's time changes by more.
const SETTLED: f64 = 1e-13;

/// Iterations before steps are halved, for a fixed point that does not attract; and before it is given up.
const PATIENCE: (usize, usize) = (2000, 50_000);

/// X by class and R, stations × classes.
pub(crate) type Performance = (Vec<f64>, Vec<Vec<f64>>);

/// By the fixed point of Bard & Schweitzer.
pub(crate) fn schweitzer(network: &Network<'_>) -> Result<Performance, ModelError> {
    let iteration = Iteration::new(network);
    let whole = iteration.settle(&iteration.population, &iteration.no_shifts(), iteration.start())?;
    Ok(iteration.performance(&whole))
}

/// By the Linearizer.
pub(crate) fn linearizer(network: &Network<'_>) -> Result<Performance, ModelError> {
    let iteration = Iteration::new(network);
    let classes = iteration.classes.len();
    let mut shifts = iteration.no_shifts();
    let mut whole = iteration.settle(&iteration.population, &shifts, iteration.start())?;
    let mut less = vec![whole.clone(); classes];
    for _ in 1..ROUNDS {
        let before = shifts.clone();
        for (c, less) in less.iter_mut().enumerate() {
            let mut population = iteration.population.clone();
            population[c] -= 1.0;
            *less = iteration.settle(&population, &before, less.clone())?;
            shifts[c] = Shares::shift(&whole, less, &population);
        }
        whole = iteration.settle(&iteration.population, &shifts, whole)?;
        let moved = |(old, new): (&Shares, &Shares)| old.distance(new);
        if before.iter().zip(&shifts).map(moved).fold(0.0, f64::max) <= SHIFT_SETTLED {
            break;
        }
    }
    Ok(iteration.performance(&whole))
}

/// What one customer of each class does on average; or, with either sign, how that differs with one customer less.
#[derive(Clone)]
struct Shares {
    /// Of his time, the part spent at a queue; queues × classes, row by row.
    at: Vec<f64>,
    /// His requests per second.
    rate: Vec<f64>,
}

impl Shares {
    fn shift(whole: &Shares, less: &Shares, population: &[f64]) -> Shares {
        let classes = population.len();
        let difference = |c: usize, less: f64, whole: f64| if population[c] > 0.0 { less - whole } else { 0.0 };
        let pairs = |less: &[f64], whole: &[f64]| {
            less.iter().zip(whole).enumerate().map(|(i, (l, w))| difference(i % classes, *l, *w)).collect()
        };
        Shares { at: pairs(&less.at, &whole.at), rate: pairs(&less.rate, &whole.rate) }
    }

    fn distance(&self, other: &Shares) -> f64 {
        self.at.iter().zip(&other.at).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }
}

/// What does not change from one iteration to the next. Classes are the closed ones, queues the stations that are none of delay.
struct Iteration<'a> {
    network: &'a Network<'a>,
    classes: Vec<usize>,
    queues: Vec<usize>,
    /// By queue: a = Σ λ·D of the open classes.
    open: Vec<f64>,
    /// By queue: whether who comes first matters, or the speed depends on how many there are.
    ordered: Vec<bool>,
    /// D, queues × classes, row by row.
    demands: Vec<f64>,
    /// N by class.
    population: Vec<f64>,
    /// Z by class, delay stations included.
    delay: Vec<f64>,
}

impl<'a> Iteration<'a> {
    fn new(network: &'a Network<'a>) -> Self {
        let classes: Vec<usize> = network.closed().collect();
        let stations = &network.model.stations;
        let queues: Vec<usize> = (0..stations.len()).filter(|k| stations[*k].kind == StationKind::Queue).collect();
        Self {
            open: queues.iter().map(|k| network.open_load(*k)).collect(),
            ordered: queues
                .iter()
                .map(|k| stations[*k].scheduling != Scheduling::Ps || network.dependent[*k].is_some())
                .collect(),
            demands: queues.iter().flat_map(|k| classes.iter().map(|c| network.demands[*k][*c])).collect(),
            population: classes.iter().map(|c| f64::from(network.population[*c])).collect(),
            delay: classes.iter().map(|c| network.delay(*c)).collect(),
            network,
            classes,
            queues,
        }
    }

    /// As if no one ever met another.
    fn start(&self) -> Shares {
        let alone = |c: usize| self.delay[c] + self.demands.iter().skip(c).step_by(self.classes.len()).sum::<f64>();
        let rate: Vec<f64> = (0..self.classes.len()).map(|c| 1.0 / alone(c)).collect();
        let at = self.demands.iter().enumerate().map(|(i, d)| d * rate[i % rate.len()]).collect();
        Shares { at, rate }
    }

    fn no_shifts(&self) -> Vec<Shares> {
        vec![Shares { at: vec![0.0; self.demands.len()], rate: vec![0.0; self.classes.len()] }; self.classes.len()]
    }

    /// The fixed point for a population, given how the shares shift when a customer of each class arrives.
    fn settle(&self, population: &[f64], shifts: &[Shares], start: Shares) -> Result<Shares, ModelError> {
        let shifted = self.shifted(population, shifts);
        let mut shares = start;
        let mut next = shares.clone();
        for round in 0..PATIENCE.1 {
            self.step(population, shifts, &shifted, &shares, &mut next);
            let rates = shares.rate.iter().zip(&next.rate).map(|(a, b)| (a / b - 1.0).abs());
            let change = rates.fold(shares.distance(&next), f64::max);
            if round >= PATIENCE.0 {
                let halve =
                    |new: &mut [f64], old: &[f64]| new.iter_mut().zip(old).for_each(|(n, o)| *n = (*n + o) / 2.0);
                halve(&mut next.at, &shares.at);
                halve(&mut next.rate, &shares.rate);
            }
            std::mem::swap(&mut shares, &mut next);
            if change <= SETTLED {
                return Ok(shares);
            }
        }
        Err(ModelError::Unsettled { rounds: PATIENCE.1 })
    }

    /// By arriving class and queue: how many more customers are found because the shares shift; classes × queues.
    fn shifted(&self, population: &[f64], shifts: &[Shares]) -> Vec<f64> {
        let classes = self.classes.len();
        let of = |(c, shift): (usize, &'_ Shares)| -> Vec<f64> {
            let row = |row: &[f64]| row.iter().enumerate().map(|(j, s)| others(population, c, j) * s).sum();
            shift.at.chunks_exact(classes).map(row).collect()
        };
        shifts.iter().enumerate().flat_map(of).collect()
    }

    fn step(&self, population: &[f64], shifts: &[Shares], shifted: &[f64], old: &Shares, new: &mut Shares) {
        let (classes, queues) = (self.classes.len(), self.queues.len());
        let rows = |shares: &Shares, i: usize| shares.at[i * classes..][..classes].to_vec();
        let present = |i: usize| -> f64 { rows(old, i).iter().zip(population).map(|(s, n)| s * n).sum() };
        let present: Vec<f64> = (0..queues).map(present).collect();
        for c in (0..classes).filter(|c| population[*c] > 0.0) {
            let rate = |j: usize| others(population, c, j) * (old.rate[j] + shifts[c].rate[j]).max(0.0);
            let rates: Vec<f64> = (0..classes).map(rate).collect();
            let mut cycle = self.delay[c];
            for i in 0..queues {
                let stay = if self.demands[i * classes + c] == 0.0 {
                    0.0
                } else if self.ordered[i] {
                    let present = |j: usize| {
                        let at = i * classes + j;
                        others(population, c, j) * (old.at[at] + shifts[c].at[at]).max(0.0)
                    };
                    let present: Vec<f64> = (0..classes).map(present).collect();
                    self.among(i, self.classes[c], &present, &rates)
                } else {
                    let found = (present[i] - old.at[i * classes + c] + shifted[c * queues + i]).max(0.0);
                    self.sharing(i, c, found, &rates)
                };
                new.at[i * classes + c] = stay;
                cycle += stay;
            }
            new.rate[c] = 1.0 / cycle;
            (0..queues).for_each(|i| new.at[i * classes + c] /= cycle);
        }
    }

    /// R where all share alike: only how many are there matters, and of several servers how many are busy.
    fn sharing(&self, i: usize, c: usize, present: f64, rates: &[f64]) -> f64 {
        let servers = self.network.model.stations[self.queues[i]].servers;
        let row = &self.demands[i * rates.len()..][..rates.len()];
        let busy = if servers == 1 {
            0.0
        } else {
            let busy: f64 = row.iter().zip(rates).map(|(d, x)| d * x).sum();
            busy.min(present).min(f64::from(servers) - self.open[i])
        };
        row[c] * sharing(servers, self.open[i], MustWait::Erlang, present - busy, busy + self.open[i])
    }

    /// R of any class of the network, where it matters of which classes those are that one finds.
    fn among(&self, i: usize, class: usize, present: &[f64], rates: &[f64]) -> f64 {
        let k = self.queues[i];
        let (network, row) = (self.network, &self.demands[i * rates.len()..][..rates.len()]);
        let busy = rates.iter().zip(row).zip(present).map(|((x, d), present)| (x * d).min(*present));
        let mut busy: Vec<f64> = busy.collect();
        let left = f64::from(network.model.stations[k].servers) - self.open[i];
        let total: f64 = busy.iter().sum();
        if total > left && network.dependent[k].is_none() {
            busy.iter_mut().for_each(|b| *b *= left / total);
        }
        let mut all_busy: Vec<f64> = network.rates.iter().zip(&network.demands[k]).map(|(x, d)| x * d).collect();
        let mut waiting = vec![0.0; all_busy.len()];
        for (j, c) in self.classes.iter().enumerate() {
            (all_busy[*c], waiting[*c]) = (busy[j], present[j] - busy[j]);
        }
        residence(network, k, class, MustWait::Erlang, &Found { busy: &all_busy, waiting: &waiting })
    }

    /// X and R of all classes of the network; open requests find what there is on average.
    fn performance(&self, shares: &Shares) -> Performance {
        let (network, classes) = (self.network, self.classes.len());
        let rates: Vec<f64> = shares.rate.iter().zip(&self.population).map(|(x, n)| x * n).collect();
        let mut throughput = network.rates.clone();
        self.classes.iter().zip(&rates).for_each(|(c, x)| throughput[*c] = *x);
        let mut residence = network.demands.clone();
        for (i, k) in self.queues.iter().enumerate() {
            let row = &shares.at[i * classes..][..classes];
            let present: Vec<f64> = row.iter().zip(&self.population).map(|(s, n)| s * n).collect();
            for (class, r) in residence[*k].iter_mut().enumerate() {
                *r = match self.classes.iter().position(|c| *c == class) {
                    Some(c) => row[c] / shares.rate[c],
                    None => self.among(i, class, &present, &rates),
                };
            }
        }
        (throughput, residence)
    }
}

/// Customers of class `j` besides one of class `c`.
fn others(population: &[f64], c: usize, j: usize) -> f64 {
    population[j] - if c == j { 1.0 } else { 0.0 }
}
