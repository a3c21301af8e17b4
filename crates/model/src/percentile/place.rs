//! A station and those whom a request meets there: from this, how the time of each class is distributed. Its mean is
//! the solver's.
//!
//! - Delay: a service time.
//! - First come, first served: a wait and a service time. The wait is none with probability 1 − P; else that of M/G/1
//!   at m times the speed, whose transform is (1 − ρ)·E/(1 − ρ·E), with E that of the service still left in front.
//!   Exact for M/G/1 (Pollaczek 1930, Khinchine 1932) and for M/M/m; for M/G/m it is the approximation of Hokstad
//!   (1978).
//! - Processor sharing: the service time stretched, S·(1 + H), with H gamma. H has the mean that the solver found, and
//!   a variance that gives S·(1 + H) that of a stretch which varies by σ² and is forgotten at the rate 1/τ of service
//!   received, Var(T | S = x) = 2σ²τ²·(x/τ − 1 + e^(−x/τ)). σ² is that of what an arrival meets, τ =
//!   E\[S²\]/(2·E\[S\]·(1 − ρ)). For M/M/1 that is exact (Ott 1984; for all requests together Coffman, Muntz & Trotter,
//!   1970: Var(R)/R² = (2 + ρ)/(2 − ρ)), and so it is for the shortest and the longest requests of M/G/1 (van den Berg
//!   & Boxma 1991).
//! - Servers that wake up ([`crate::exceptional`]): who finds some idle, as often as in M/M/m, waits for no one and has
//!   the longer service; who does not has the other, after a wait of (E − ρ·F)/(1 − ρ·F), with E of all services under
//!   way, F of those that nothing was paid for, and ρ the load of the latter. Exact for one server (Welch 1964). Where
//!   servers are shared, who finds none idle meets 1 + K requests for each server, K geometric at ρ, as in M/M/m; of
//!   who does, mean and variance of what is met are reduced alike. There p50 and p95 are within 8 % (exponential) to
//!   14 %.
//! - Priorities: the wait is exponential where there is one, and like an interrupted service it is stretched by the
//!   busy periods of the more urgent.
//!
//! Closed customers meet fewer surprises than Poisson arrivals: the more of them are here, the fewer can come. Of a
//! station's variance V and that of all other places, V', remains V·V'/(V + V'), as of independent numbers whose sum is
//! known. Their wait is gamma where there is one.

use super::service::{Family, Gamma};
use super::sojourn::{OrderedWait, PaidWait, Sojourn, Wait, Way};
use crate::erlang::erlang_c;
use crate::exceptional::Exceptional;
use crate::network::{Network, max_speed};
use crate::solution::Solution;
use brimful_core::model::{ModelClass, Scheduling, Station, StationKind};

/// A station with what all its requests together do to it.
pub(super) struct Place<'a> {
    station: &'a Station,
    classes: &'a [ModelClass],
    demands: &'a [f64],
    throughput: &'a [f64],
    residence: &'a [f64],
    /// Of the service times of each class.
    scv: f64,
    family: Family,
    /// Busy servers.
    busy: f64,
    /// Share of its capacity in use, and by open classes.
    rho: f64,
    open_rho: f64,
    /// Probability that an arrival must wait.
    must_wait: f64,
    /// Mean time that a service under way still takes, and half the mean of its square.
    left: f64,
    left_squared: f64,
    /// What is left of the variance of the number of closed customers met, with as many as there are; `None` without
    /// any.
    surprise: Option<f64>,
    /// Where those who find servers idle pay for it: who they are, and the demands of the others.
    paying: Option<(Exceptional, &'a [f64])>,
}

/// By how much a request is stretched that meets others.
struct Met {
    /// At least.
    least: f64,
    /// On top of that, on average.
    more: f64,
    /// Squared coefficient of variation of what is on top.
    scv: f64,
}

/// All stations of a solved network.
pub(super) fn places<'a>(network: &'a Network<'a>, solution: &'a Solution) -> Vec<Place<'a>> {
    let surprises = surprises(network, solution);
    let place = |(k, surprise): (usize, Option<f64>)| {
        let (station, demands) = (&network.model.stations[k], &network.demands[k]);
        let scv = network.scv[k];
        let family = Family::new(scv);
        let moment = |power: i32| demands.iter().zip(&solution.throughput).map(|(d, x)| x * d.powi(power)).sum::<f64>();
        let busy = moment(1);
        let over_busy = |moment: f64| if busy > 0.0 { moment / busy } else { 0.0 };
        Place {
            station,
            classes: &network.model.classes,
            demands,
            throughput: &solution.throughput,
            residence: &solution.residence[k],
            scv,
            family,
            busy,
            rho: (busy / max_speed(station)).min(FULL),
            open_rho: (network.open_load(k) / max_speed(station)).min(FULL),
            must_wait: erlang_c(station.servers, busy),
            left: over_busy(moment(2) * (1.0 + scv) / 2.0),
            left_squared: over_busy(moment(3) * family.third() / 6.0),
            surprise,
            paying: network.exceptional(k).map(|paying| (paying, network.saturated[k].as_slice())),
        }
    };
    surprises.into_iter().enumerate().map(place).collect()
}

/// A closed class may come this close to using all of a station.
const FULL: f64 = 1.0 - 1e-9;

/// What of the variance of the number of closed customers is left, by station.
fn surprises(network: &Network<'_>, solution: &Solution) -> Vec<Option<f64>> {
    let closed: Vec<usize> = network.closed().collect();
    let stations = 0..network.demands.len();
    if closed.is_empty() {
        return vec![None; stations.len()];
    }
    let present = |k: usize| closed.iter().map(|c| solution.queue_length[k][*c]).sum::<f64>();
    let variance = |k: usize| {
        let (station, present) = (&network.model.stations[k], present(k));
        let busy: f64 = closed.iter().map(|c| network.demands[k][*c] * solution.throughput[*c]).sum();
        let queues = station.kind == StationKind::Queue && busy > 0.0;
        // Poisson if no one waits, geometric at one server.
        if queues { present * (1.0 + (present - busy).max(0.0) * max_speed(station) / busy) } else { present }
    };
    let variances: Vec<f64> = stations.clone().map(variance).collect();
    let thinking = (network.customers() as f64 - stations.map(present).sum::<f64>()).max(0.0);
    let all = thinking + variances.iter().sum::<f64>();
    variances.iter().map(|variance| Some(if all > 0.0 { 1.0 - variance / all } else { 1.0 })).collect()
}

impl<'a> Place<'a> {
    /// The ways in which the time of class `c` may be made up; none if it does not visit. Several only where each is
    /// constant in another way: a distribution that jumps cannot be had from its transform.
    pub(super) fn ways(&'a self, c: usize) -> Vec<Way<'a>> {
        match self.sojourn(c) {
            None => Vec::new(),
            Some(Sojourn::OneOf(ways)) if self.family == Family::Constant => ways,
            Some(sojourn) => vec![Way { probability: 1.0, mean: self.residence[c], sojourn }],
        }
    }

    /// The time of class `c`; `None` if it does not visit.
    fn sojourn(&'a self, c: usize) -> Option<Sojourn<'a>> {
        let (demand, residence) = (self.demands[c], self.residence[c]);
        if demand <= 0.0 {
            return None;
        }
        if self.station.kind == StationKind::Delay {
            return Some(Sojourn::Service(demand, self.family));
        }
        if let Some((paying, saturated)) = &self.paying {
            return Some(Sojourn::OneOf(match self.station.scheduling {
                Scheduling::Ps => self.paid_and_shared(paying, saturated, c),
                _ => self.paid(paying, saturated, c),
            }));
        }
        Some(match self.station.scheduling {
            Scheduling::Ps => self.shared(demand, residence / demand),
            Scheduling::Fcfs if self.surprise.is_none() && self.station.rate_multipliers.is_empty() => {
                let plain = self.must_wait * self.left / (f64::from(self.station.servers) * (1.0 - self.rho));
                let unit = if plain > 0.0 { (residence - demand) / plain } else { 0.0 };
                Sojourn::Ordered(demand, self.family, Wait::Ordered(self.wait(), unit))
            }
            Scheduling::Fcfs => self.ordered(demand, residence),
            Scheduling::Priority => self.prioritized(demand, residence, c, false),
            Scheduling::Preemptive => self.prioritized(demand, residence, c, true),
        })
    }

    /// Who finds idle servers pays for them, who does not waits.
    fn paid(&'a self, paying: &Exceptional, saturated: &'a [f64], c: usize) -> Vec<Way<'a>> {
        let (demand, residence) = (saturated[c], self.residence[c]);
        let found = paying.found_idle();
        let idle: f64 = found.iter().map(|(_, often)| often).sum();
        let service = |(share, often): &(f64, f64)| {
            let mean = demand + paying.most * share;
            Way { probability: *often, mean, sojourn: Sojourn::Service(mean, self.family) }
        };
        let mut ways: Vec<Way<'a>> = found.iter().map(service).collect();
        let behind = self.paid_wait(paying, saturated, found, 1.0 - idle);
        let plain = behind.left[0] / (self.servers() - behind.work);
        let wait = if idle < 1.0 { (residence - self.demands[c]).max(0.0) / (1.0 - idle) } else { 0.0 };
        let unit = if plain > 0.0 { wait / plain } else { 0.0 };
        let sojourn = Sojourn::Ordered(demand, self.family, Wait::Behind(behind, unit));
        ways.push(Way { probability: 1.0 - idle, mean: demand + wait, sojourn });
        ways
    }

    /// Who finds idle servers pays for them, who does not finds all servers with 1 + K requests for each, K geometric.
    fn paid_and_shared(&'a self, paying: &Exceptional, saturated: &'a [f64], c: usize) -> Vec<Way<'a>> {
        let (demand, residence) = (saturated[c], self.residence[c]);
        let found = paying.found_idle();
        let idle: f64 = found.iter().map(|(_, often)| often).sum();
        let plain = self.paid_wait(paying, saturated, found.clone(), 1.0 - idle);
        let rho = (plain.work / plain.servers).min(FULL);
        let memory = plain.left[1] / (1.0 - rho);
        let often = erlang_c(self.station.servers, plain.work);
        let ends = 1.0 / (plain.servers * (1.0 - rho));
        let variance = often * (rho + 1.0 - often) * ends * ends;
        let mut ways = Vec::new();
        let mut left = residence;
        for (share, probability) in found {
            let takes = demand + paying.most * share;
            let (more, part) = paying.alone_stretch(takes);
            let met = Met { least: 1.0, more, scv: if more > 0.0 { part * variance / (more * more) } else { 0.0 } };
            let mean = takes * (1.0 + more);
            left -= probability * mean;
            ways.push(Way { probability, mean, sojourn: self.stretched(takes, &met, memory) });
        }
        if idle < 1.0 {
            let mean = (left / (1.0 - idle)).max(demand);
            let more = mean / demand - 1.0;
            let scv = if more > 0.0 { rho * ends * ends / (more * more) } else { 0.0 };
            let sojourn = self.stretched(demand, &Met { least: 1.0, more, scv }, memory);
            ways.push(Way { probability: 1.0 - idle, mean, sojourn });
        }
        ways
    }

    fn paid_wait(
        &'a self,
        paying: &Exceptional,
        saturated: &'a [f64],
        mut found: Vec<(f64, f64)>,
        none: f64,
    ) -> PaidWait<'a> {
        found.push((0.0, none));
        let moment = |power: i32, extra: f64| -> f64 {
            let visits = saturated.iter().zip(self.throughput).filter(|(demand, _)| **demand > 0.0);
            visits.map(|(demand, rate)| rate * (demand + extra).powi(power)).sum()
        };
        let all =
            |power: i32| found.iter().map(|(share, often)| often * moment(power, paying.most * share)).sum::<f64>();
        let (busy, work) = (all(1), moment(1, 0.0));
        let left = |squares: f64, first: f64| if first > 0.0 { squares / first * (1.0 + self.scv) / 2.0 } else { 0.0 };
        let cubes = |cubes: f64, first: f64| if first > 0.0 { cubes / first * self.family.third() / 6.0 } else { 0.0 };
        PaidWait {
            demands: saturated,
            rates: self.throughput,
            family: self.family,
            servers: self.servers(),
            most: paying.most,
            busy,
            work,
            left: [left(all(2), busy), left(moment(2, 0.0), work)],
            left_squared: [cubes(all(3), busy), cubes(moment(3, 0.0), work)],
            found,
        }
    }

    /// A wait that is exponential but for what more urgent requests add to it, and if they interrupt also to the
    /// service: what takes V alone takes a busy period begun by V, of variance Var(V)/(1 − σ)² + V·λ·E[S²]/(1 − σ)³
    /// above them.
    fn prioritized(&self, demand: f64, residence: f64, c: usize, interrupts: bool) -> Sojourn<'a> {
        let servers = self.servers();
        let level = |j: usize| self.classes[j].priority;
        let sum = |counts: &dyn Fn(usize) -> bool, power: i32| -> f64 {
            let of = |j: usize| self.throughput[j] * self.demands[j].powi(power);
            (0..self.demands.len()).filter(|j| counts(*j)).map(of).sum()
        };
        let (above, counts) = (|j: usize| level(j) < level(c), |j: usize| level(j) <= level(c));
        let (urgent, busy) = (sum(&above, 1), sum(&counts, 1));
        let free = (1.0 - urgent / servers).max(1.0 - FULL);
        let squares = sum(&above, 2) * (1.0 + self.scv) / (servers * servers);
        let often = if interrupts { erlang_c(self.station.servers, busy) } else { self.must_wait };
        let (mut service, mut family) = (demand, self.family);
        if interrupts && urgent > 0.0 {
            let interrupted = often * servers / busy;
            service += (demand * interrupted * urgent / servers / free).min(residence - demand);
            family = Family::new(self.scv + interrupted * squares / (demand * free));
        }
        let wait = (residence - service).max(0.0);
        let scv = 1.0 + if wait > 0.0 { often * squares / (free * free * wait) } else { 0.0 };
        Sojourn::Ordered(service, family, self.sometimes(often, wait, scv))
    }

    /// A wait for the K ends of service that the number met makes necessary, each of the service's scv.
    fn ordered(&self, demand: f64, residence: f64) -> Sojourn<'a> {
        let visits: f64 = self.demands.iter().zip(self.throughput).filter(|(d, _)| **d > 0.0).map(|(_, x)| x).sum();
        let plain = self.station.rate_multipliers.is_empty() && self.busy > 0.0;
        let met = self.met(if plain { 1.0 + (residence - demand) * visits / self.busy } else { residence / demand });
        let service = demand * met.least;
        let ends = met.more * self.servers();
        let scv = if ends > 0.0 { self.must_wait * (self.scv / ends + met.scv + 1.0) - 1.0 } else { 0.0 };
        Sojourn::Ordered(service, self.family, self.sometimes(self.must_wait, residence - service, scv))
    }

    /// A wait of this mean that comes with a probability, and has this scv where it does.
    fn sometimes(&self, often: f64, wait: f64, scv: f64) -> Wait<'a> {
        Wait::Sometimes(often, Gamma::new(if often > 0.0 { wait / often } else { 0.0 }, scv))
    }

    fn shared(&self, demand: f64, stretch: f64) -> Sojourn<'a> {
        self.stretched(demand, &self.met(stretch), self.left / (1.0 - self.rho))
    }

    /// By what it meets, which is forgotten in so many seconds.
    fn stretched(&self, demand: f64, met: &Met, memory: f64) -> Sojourn<'a> {
        // E[Var(T | S)] over E[S²].
        let settled = if memory > 0.0 {
            let z = demand / memory;
            2.0 * self.family.settled(z, self.scv) / (z * z * (1.0 + self.scv))
        } else {
            1.0
        };
        let gamma = Gamma::new(met.more, met.scv * settled);
        if self.family == Family::Constant {
            return Sojourn::SharedConstant(demand * met.least, gamma.times(demand));
        }
        Sojourn::Shared(demand, self.family, gamma.nodes().map(|(node, weight)| (met.least + node, weight)))
    }

    /// What an arrival meets. It must wait for K ends of service: one if all servers are busy and one for each waiting
    /// closed customer, each of these with the open requests that wait behind it, whose number is geometric.
    fn met(&self, stretch: f64) -> Met {
        if !self.station.rate_multipliers.is_empty() {
            return self.met_changing(stretch);
        }
        let (often, rho) = (self.must_wait, self.open_rho);
        let more = (stretch - 1.0).max(0.0);
        let alone = more * self.servers() * (1.0 - rho);
        if often <= 0.0 || alone <= 0.0 {
            return Met { least: 1.0, more, scv: 0.0 };
        }
        let bernoulli = often * (1.0 - often);
        let variance = self.surprise.map_or(bernoulli, |left| {
            let waiting = (alone - often).max(0.0);
            let geometric = often + 3.0 * waiting + 2.0 * waiting * waiting / often - alone * alone;
            bernoulli + left * (geometric - bernoulli).max(0.0)
        });
        Met { least: 1.0, more, scv: (alone * rho + variance) / (alone * alone) }
    }

    /// The same where the speed depends on the number n present, which has weight busyⁿ/Πα.
    fn met_changing(&self, stretch: f64) -> Met {
        let alpha = &self.station.rate_multipliers;
        let last = alpha[alpha.len() - 1];
        let (mut weight, mut sums, mut least) = (1.0, [0.0; 3], f64::INFINITY);
        for (n, alpha) in alpha.iter().enumerate() {
            let stretch = (n as f64 + 1.0) / alpha;
            least = least.min(stretch);
            add(&mut sums, weight, stretch);
            weight *= self.busy / alpha;
        }
        // Beyond the last level the numbers are geometric.
        let (mut n, x) = (alpha.len() as f64 + 1.0, self.rho);
        while weight > 1e-12 * sums[0] && n < 1e4 {
            add(&mut sums, weight, n / last);
            weight *= x;
            n += 1.0;
        }
        let (mean, square) = (sums[1] / sums[0], sums[2] / sums[0]);
        let beyond = mean - least;
        let scv = if beyond > 0.0 { (square - mean * mean).max(0.0) / (beyond * beyond) } else { 0.0 };
        let least = least.min(stretch);
        Met { least, more: stretch - least, scv: scv * self.surprise.unwrap_or(1.0) }
    }

    /// For service in the order of arrival.
    fn wait(&self) -> OrderedWait<'a> {
        OrderedWait {
            demands: self.demands,
            throughput: self.throughput,
            family: self.family,
            servers: self.servers(),
            busy: self.busy,
            rho: self.rho,
            must_wait: self.must_wait,
            left: self.left,
            left_squared: self.left_squared,
        }
    }

    fn servers(&self) -> f64 {
        f64::from(self.station.servers)
    }
}

fn add(sums: &mut [f64; 3], weight: f64, value: f64) {
    for (power, sum) in sums.iter_mut().enumerate() {
        *sum += weight * value.powi(power as i32);
    }
}
