//! The distribution of the time of each class at one station. The mean of the distribution is the residence time that
//! the solver computed.
//!
//! - Delay: the time is a service time.
//! - First come, first served: the time is a wait and a service time. The wait is 0 with probability 1 − P. Otherwise
//!   the wait is as in M/G/1 at m times the speed. Its transform is (1 − ρ)·E/(1 − ρ·E), where E is the transform of
//!   the remaining service. This is exact for M/G/1 (Pollaczek 1930, Khinchine 1932) and for M/M/m. For M/G/m it is the
//!   approximation of Hokstad (1978).
//! - Processor sharing: the time is a stretched service time S·(1 + H), where H has a gamma distribution. The mean of H
//!   follows from the solver's mean. The variance of H is chosen such that Var(T | S = x) = 2σ²τ²·(x/τ − 1 + e^(−x/τ)).
//!   Here σ² is the variance of the stretch at the moment of arrival. While a request receives service, the stretch
//!   varies, and its values are correlated over τ seconds of received service: τ = E\[S²\]/(2·E\[S\]·(1 − ρ)). This is
//!   exact for M/M/1 (Ott 1984; for all requests together Coffman, Muntz & Trotter, 1970: Var(R)/R² = (2 + ρ)/(2 − ρ)),
//!   and for the shortest and the longest requests of M/G/1 (van den Berg & Boxma 1991).
//! - Servers that must be woken up ([`crate::wakeup`]): a request that finds idle servers, with the probability of
//!   M/M/m, does not wait and has a longer service. Any other request has a shorter service, after a wait with the
//!   transform (E − ρ·F)/(1 − ρ·F). E is the transform of the remaining service of all requests. F is the transform of
//!   the remaining service of requests with the shorter service, and ρ is their load. This is exact for one server
//!   (Welch 1964). With processor sharing, a request that finds no idle server finds 1 + K requests at each server,
//!   where K is geometric with ρ, as in M/M/m. For a request that finds an idle server, mean and variance are reduced
//!   by the same factor. With processor sharing, the errors of p50 and p95 are at most 8 % for exponential service and
//!   14 % for other distributions.
//! - Interruptions ([`crate::interruptions`]) with service in the order of arrival, for open classes: a wait for the
//!   rest of an interruption, with probability σ, a wait as in M/G/1 whose service times include the interruptions
//!   during them, and such a service time. This is exact for one server (Gaver 1962; decomposition of Fuhrmann & Cooper
//!   1985).
//! - Interruptions at any other station: the time is the sum of a time as above and a wait for an interruption. Further
//!   interruptions prolong the first of these times. The wait is that of a fluid queue: an interruption of length L and
//!   the queue after it last L/(1 − ρ) seconds, in which the wait falls linearly from L to 0. So it is the remaining
//!   length of an interruption, with probability σ/(1 − ρ). Its mean is that of the solver. Under processor sharing,
//!   the errors of p50 and p99 exceed 20 % if σ/(1 − ρ) is large.
//! - Priorities: the wait is 0 or exponential. The busy periods of more urgent classes stretch the wait and, with
//!   preemption, the service too.
//!
//! The number of closed customers at a station varies less than the number of Poisson arrivals: the more customers are
//! present, the fewer can arrive. If independent numbers would have the variance V at this station and V' at all others
//! together, the variance given their known sum is V·V'/(V + V'). The wait of closed customers is 0 or gamma
//! distributed.

use super::service::{Family, Gamma};
use super::sojourn::{Alternative, Interruption, OrderedWait, Sojourn, Wait, WakingWait};
use crate::erlang::erlang_c;
use crate::interruptions::InterruptionLoad;
use crate::network::Network;
use crate::solution::Solution;
use crate::station::max_speed;
use crate::wakeup::WakeupQueue;
use brimful_core::model::{ModelClass, Scheduling, Station, StationKind};

/// A station under the load of the solved network.
pub(super) struct StationView<'a> {
    station: &'a Station,
    classes: &'a [ModelClass],
    demands: &'a [f64],
    throughput: &'a [f64],
    /// Residence time of each class in seconds, without the wait for interruptions.
    residence: Vec<f64>,
    /// Mean wait of each class for interruptions, in seconds.
    interruption_wait: Vec<f64>,
    interrupted: Option<&'a InterruptionLoad>,
    /// Squared coefficient of variation of the service times of each class.
    scv: f64,
    family: Family,
    /// Mean number of busy servers.
    busy: f64,
    /// ρ: utilization by all classes together, as a share of the capacity that background work leaves.
    rho: f64,
    /// The part of ρ that the open classes cause.
    open_rho: f64,
    /// Probability that an arrival must wait.
    must_wait: f64,
    /// Mean remaining time of a service in progress, in seconds.
    left: f64,
    /// Half the mean square of the remaining time of a service in progress.
    left_squared: f64,
    /// Ratio of two variances of the number of closed customers at the station: given that the total number of
    /// customers is known, and without this knowledge. `None` without closed classes.
    closed_variance_share: Option<f64>,
    /// The queue at servers that must be woken up, and the demands at saturation in seconds. `None` if no server must
    /// be woken up.
    waking: Option<(WakeupQueue, &'a [f64])>,
}

/// The factor by which other requests prolong the time of a request.
struct Stretch {
    /// Minimum of the factor.
    least: f64,
    /// Mean of the difference between the factor and its minimum.
    more: f64,
    /// Squared coefficient of variation of the difference between the factor and its minimum.
    scv: f64,
}

/// Prepares all stations of a solved network.
pub(super) fn station_views<'a>(network: &'a Network<'a>, solution: &'a Solution) -> Vec<StationView<'a>> {
    let shares = closed_variance_shares(network, solution);
    let view = |(k, closed_variance_share): (usize, Option<f64>)| {
        let (station, demands) = (&network.model.stations[k], &network.demands[k]);
        let scv = network.scv[k];
        let family = Family::new(scv);
        let moment = |power: i32| demands.iter().zip(&solution.throughput).map(|(d, x)| x * d.powi(power)).sum::<f64>();
        let busy = moment(1);
        let over_busy = |moment: f64| if busy > 0.0 { moment / busy } else { 0.0 };
        let open_rho = (network.open_load(k) / max_speed(station)).min(MAX_RHO);
        let residence = &solution.residence[k];
        let interruption_wait = |c: usize| {
            let longest = (residence[c] - demands[c]).max(0.0);
            (network.interruption_found(k, c) / (1.0 - open_rho)).min(longest)
        };
        let interruption_wait: Vec<f64> = (0..residence.len()).map(interruption_wait).collect();
        StationView {
            station,
            classes: &network.model.classes,
            demands,
            throughput: &solution.throughput,
            residence: residence.iter().zip(&interruption_wait).map(|(whole, wait)| whole - wait).collect(),
            interruption_wait,
            interrupted: network.interrupted[k].as_ref(),
            scv,
            family,
            busy,
            rho: (busy / max_speed(station)).min(MAX_RHO),
            open_rho,
            must_wait: erlang_c(station.servers, busy),
            left: over_busy(moment(2) * (1.0 + scv) / 2.0),
            left_squared: over_busy(moment(3) * family.third_moment() / 6.0),
            closed_variance_share,
            waking: network.wakeup_queue(k).map(|waking| (waking, network.saturated[k].as_slice())),
        }
    };
    shares.into_iter().enumerate().map(view).collect()
}

/// Upper limit of the utilization ρ. Closed classes may saturate a station, but the formulas require ρ < 1.
const MAX_RHO: f64 = 1.0 - 1e-9;

/// For each station, the ratio of two variances of the number of closed customers: given that the total number of
/// customers is known, and without this knowledge. `None` without closed classes.
fn closed_variance_shares(network: &Network<'_>, solution: &Solution) -> Vec<Option<f64>> {
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
        // Variance of the number of customers: that of a Poisson distribution if no customer waits, and that of a
        // geometric distribution at one server.
        if queues { present * (1.0 + (present - busy).max(0.0) * max_speed(station) / busy) } else { present }
    };
    let variances: Vec<f64> = stations.clone().map(variance).collect();
    let thinking = (network.customers() as f64 - stations.map(present).sum::<f64>()).max(0.0);
    let all = thinking + variances.iter().sum::<f64>();
    variances.iter().map(|variance| Some(if all > 0.0 { 1.0 - variance / all } else { 1.0 })).collect()
}

/// The interruptions of a station where an arrival waits `wait` seconds for them on average.
fn interruption(interrupted: &InterruptionLoad, wait: f64) -> Interruption {
    let often = wait / interrupted.remaining();
    Interruption {
        share: interrupted.share,
        hazard: interrupted.hazard,
        mean: interrupted.mean,
        family: Family::new(interrupted.scv),
        must_wait: often.min(1.0),
        factor: often.max(1.0),
    }
}

impl<'a> StationView<'a> {
    /// The time that a request of class `c` spends at the station, as a mixture of alternatives; empty if the class
    /// does not visit the station. There are several alternatives only if service times are constant. The constant
    /// parts of the alternatives then differ, and a constant part must be removed before a transform is inverted.
    pub(super) fn alternatives(&'a self, c: usize) -> Vec<Alternative<'a>> {
        if let Some(alternative) = self.interrupted_in_order(c) {
            return vec![alternative];
        }
        let alternatives = match self.sojourn(c) {
            None => Vec::new(),
            Some(Sojourn::OneOf(alternatives)) if self.family == Family::Constant => alternatives,
            Some(sojourn) => vec![Alternative { probability: 1.0, mean: self.residence[c], sojourn }],
        };
        let Some(interrupted) = self.interrupted else { return alternatives };
        let wait = self.interruption_wait[c];
        let interruption = interruption(interrupted, wait);
        let prolonged = |alternative: Alternative<'a>| Alternative {
            mean: alternative.mean + wait,
            sojourn: Sojourn::Interrupted(Box::new(alternative.sojourn), interruption),
            ..alternative
        };
        alternatives.into_iter().map(prolonged).collect()
    }

    /// The time that a request of class `c` spends at an interrupted station that serves open classes in the order of
    /// arrival. `None` at other stations, or if servers must be woken up.
    fn interrupted_in_order(&'a self, c: usize) -> Option<Alternative<'a>> {
        let (interrupted, demand) = (self.interrupted?, self.demands[c]);
        let is_ordered = self.station.scheduling == Scheduling::Fcfs && self.closed_variance_share.is_none();
        if !is_ordered || self.waking.is_some() || demand <= 0.0 {
            return None;
        }
        let on_arrival = interrupted.share * interrupted.remaining();
        let mean = self.residence[c] + self.interruption_wait[c];
        let plain = self.must_wait * (self.left / self.servers() + on_arrival) / (1.0 - self.rho);
        let factor = if plain > 0.0 { ((mean - demand - on_arrival) / plain).max(0.0) } else { 0.0 };
        let interruption = interruption(interrupted, on_arrival);
        let sojourn = Sojourn::InterruptedOrder(demand, self.family, self.wait(), interruption, factor);
        Some(Alternative { probability: 1.0, mean, sojourn })
    }

    /// The distribution of the time that a request of class `c` spends at the station; `None` if the class does not
    /// visit it.
    fn sojourn(&'a self, c: usize) -> Option<Sojourn<'a>> {
        let (demand, residence) = (self.demands[c], self.residence[c]);
        if demand <= 0.0 {
            return None;
        }
        if self.station.kind == StationKind::Delay {
            return Some(Sojourn::Service(demand, self.family));
        }
        if let Some((waking, saturated)) = &self.waking {
            return Some(Sojourn::OneOf(match self.station.scheduling {
                Scheduling::Ps => self.shared_waking(waking, saturated, c),
                _ => self.ordered_waking(waking, saturated, c),
            }));
        }
        Some(match self.station.scheduling {
            Scheduling::Ps => self.shared(demand, residence / demand),
            Scheduling::Fcfs if self.closed_variance_share.is_none() && self.station.rate_multipliers.is_empty() => {
                let plain = self.must_wait * self.left / (f64::from(self.station.servers) * (1.0 - self.rho));
                let factor = if plain > 0.0 { (residence - demand) / plain } else { 0.0 };
                Sojourn::Ordered(demand, self.family, Wait::Ordered(self.wait(), factor))
            }
            Scheduling::Fcfs => self.ordered(demand, residence),
            Scheduling::Priority => self.prioritized(demand, residence, c, false),
            Scheduling::Preemptive => self.prioritized(demand, residence, c, true),
        })
    }

    /// The time at a station that serves first come, first served, and whose servers must be woken up. A request that
    /// finds idle servers has a longer service, and any other request waits.
    fn ordered_waking(&'a self, waking: &WakeupQueue, saturated: &'a [f64], c: usize) -> Vec<Alternative<'a>> {
        let (demand, residence) = (saturated[c], self.residence[c]);
        let found = waking.found_idle();
        let idle: f64 = found.iter().map(|(_, often)| often).sum();
        let service = |(share, often): &(f64, f64)| {
            let mean = demand + waking.max_extra_s * share;
            Alternative { probability: *often, mean, sojourn: Sojourn::Service(mean, self.family) }
        };
        let mut alternatives: Vec<Alternative<'a>> = found.iter().map(service).collect();
        let behind = self.waking_wait(waking, saturated, found, 1.0 - idle);
        let plain = behind.left[0] / (self.servers() - behind.work);
        let wait = if idle < 1.0 { (residence - self.demands[c]).max(0.0) / (1.0 - idle) } else { 0.0 };
        let factor = if plain > 0.0 { wait / plain } else { 0.0 };
        let sojourn = Sojourn::Ordered(demand, self.family, Wait::Waking(behind, factor));
        alternatives.push(Alternative { probability: 1.0 - idle, mean: demand + wait, sojourn });
        alternatives
    }

    /// The time at a station with processor sharing, whose servers must be woken up. A request that finds idle servers
    /// has a longer service. Any other request finds 1 + K requests at each server, where K has a geometric
    /// distribution.
    fn shared_waking(&'a self, waking: &WakeupQueue, saturated: &'a [f64], c: usize) -> Vec<Alternative<'a>> {
        let (demand, residence) = (saturated[c], self.residence[c]);
        let found = waking.found_idle();
        let idle: f64 = found.iter().map(|(_, often)| often).sum();
        let plain = self.waking_wait(waking, saturated, found.clone(), 1.0 - idle);
        let rho = (plain.work / plain.servers).min(MAX_RHO);
        let memory = plain.left[1] / (1.0 - rho);
        let often = erlang_c(self.station.servers, plain.work);
        let ends = 1.0 / (plain.servers * (1.0 - rho));
        let variance = often * (rho + 1.0 - often) * ends * ends;
        let mut alternatives = Vec::new();
        let mut left = residence;
        for (share, probability) in found {
            let takes = demand + waking.max_extra_s * share;
            let (more, part) = waking.alone_stretch(takes);
            let stretch =
                Stretch { least: 1.0, more, scv: if more > 0.0 { part * variance / (more * more) } else { 0.0 } };
            let mean = takes * (1.0 + more);
            left -= probability * mean;
            alternatives.push(Alternative { probability, mean, sojourn: self.stretched(takes, &stretch, memory) });
        }
        if idle < 1.0 {
            let mean = (left / (1.0 - idle)).max(demand);
            let more = mean / demand - 1.0;
            let scv = if more > 0.0 { rho * ends * ends / (more * more) } else { 0.0 };
            let sojourn = self.stretched(demand, &Stretch { least: 1.0, more, scv }, memory);
            alternatives.push(Alternative { probability: 1.0 - idle, mean, sojourn });
        }
        alternatives
    }

    fn waking_wait(
        &'a self,
        waking: &WakeupQueue,
        saturated: &'a [f64],
        mut found: Vec<(f64, f64)>,
        none: f64,
    ) -> WakingWait<'a> {
        found.push((0.0, none));
        let moment = |power: i32, extra: f64| -> f64 {
            let visits = saturated.iter().zip(self.throughput).filter(|(demand, _)| **demand > 0.0);
            visits.map(|(demand, rate)| rate * (demand + extra).powi(power)).sum()
        };
        let all = |power: i32| {
            found.iter().map(|(share, often)| often * moment(power, waking.max_extra_s * share)).sum::<f64>()
        };
        let (busy, work) = (all(1), moment(1, 0.0));
        let left = |squares: f64, first: f64| if first > 0.0 { squares / first * (1.0 + self.scv) / 2.0 } else { 0.0 };
        let cubes =
            |cubes: f64, first: f64| if first > 0.0 { cubes / first * self.family.third_moment() / 6.0 } else { 0.0 };
        WakingWait {
            demands: saturated,
            rates: self.throughput,
            family: self.family,
            servers: self.servers(),
            max_extra_s: waking.max_extra_s,
            busy,
            work,
            left: [left(all(2), busy), left(moment(2, 0.0), work)],
            left_squared: [cubes(all(3), busy), cubes(moment(3, 0.0), work)],
            found,
        }
    }

    /// The time at a station with priorities: an exponential wait, prolonged by more urgent requests. If these requests
    /// interrupt service, the service is prolonged too. A time V that is prolonged in this way has the variance
    /// Var(V)/(1 − σ)² + E[V]·λ·E[S²]/(1 − σ)³.
    fn prioritized(&self, demand: f64, residence: f64, c: usize, interrupts: bool) -> Sojourn<'a> {
        let servers = self.servers();
        let level = |j: usize| self.classes[j].priority;
        let sum = |counts: &dyn Fn(usize) -> bool, power: i32| -> f64 {
            let moment = |j: usize| self.throughput[j] * self.demands[j].powi(power);
            (0..self.demands.len()).filter(|j| counts(*j)).map(moment).sum()
        };
        let is_above = |j: usize| level(j) < level(c);
        let is_at_least = |j: usize| level(j) <= level(c);
        let urgent = sum(&is_above, 1);
        let busy = sum(&is_at_least, 1);
        let free = (1.0 - urgent / servers).max(1.0 - MAX_RHO);
        let squares = sum(&is_above, 2) * (1.0 + self.scv) / (servers * servers);
        let often = if interrupts { erlang_c(self.station.servers, busy) } else { self.must_wait };
        let mut service = demand;
        let mut family = self.family;
        if interrupts && urgent > 0.0 {
            let interrupted = often * servers / busy;
            service += (demand * interrupted * urgent / servers / free).min(residence - demand);
            family = Family::new(self.scv + interrupted * squares / (demand * free));
        }
        let wait = (residence - service).max(0.0);
        let scv = 1.0 + if wait > 0.0 { often * squares / (free * free * wait) } else { 0.0 };
        Sojourn::Ordered(service, family, self.sometimes(often, wait, scv))
    }

    /// The time at a station with service in the order of arrival: a wait until K services end, and then a service. The
    /// distribution of K follows from the number of requests present. The time between the ends of two services has the
    /// scv of the service time.
    fn ordered(&self, demand: f64, residence: f64) -> Sojourn<'a> {
        let visits: f64 = self.demands.iter().zip(self.throughput).filter(|(d, _)| **d > 0.0).map(|(_, x)| x).sum();
        let plain = self.station.rate_multipliers.is_empty() && self.busy > 0.0;
        let found = self.stretch_at_arrival(if plain {
            1.0 + (residence - demand) * visits / self.busy
        } else {
            residence / demand
        });
        let service = demand * found.least;
        let ends = found.more * self.servers();
        let scv = if ends > 0.0 { self.must_wait * (self.scv / ends + found.scv + 1.0) - 1.0 } else { 0.0 };
        Sojourn::Ordered(service, self.family, self.sometimes(self.must_wait, residence - service, scv))
    }

    /// A wait that is positive with the probability `often`. Its mean is `wait` seconds, including the cases without a
    /// wait. The scv of a positive wait is `scv`.
    fn sometimes(&self, often: f64, wait: f64, scv: f64) -> Wait<'a> {
        Wait::Sometimes(often, Gamma::new(if often > 0.0 { wait / often } else { 0.0 }, scv))
    }

    fn shared(&self, demand: f64, stretch: f64) -> Sojourn<'a> {
        self.stretched(demand, &self.stretch_at_arrival(stretch), self.left / (1.0 - self.rho))
    }

    /// A service time multiplied by the random factor `stretch`. While a request receives service, this factor varies;
    /// its values are correlated over `memory` seconds of received service.
    fn stretched(&self, demand: f64, stretch: &Stretch, memory: f64) -> Sojourn<'a> {
        // The mean of Var(T | S), divided by E[S²] and by the variance of the stretch. T is the whole time, S the
        // service time.
        let settled = if memory > 0.0 {
            let z = demand / memory;
            2.0 * self.family.settled(z, self.scv) / (z * z * (1.0 + self.scv))
        } else {
            1.0
        };
        let gamma = Gamma::new(stretch.more, stretch.scv * settled);
        if self.family == Family::Constant {
            return Sojourn::SharedConstant(demand * stretch.least, gamma.times(demand));
        }
        Sojourn::Shared(demand, self.family, gamma.nodes().map(|(node, weight)| (stretch.least + node, weight)))
    }

    /// The stretch (factor by which other requests prolong service) that an arrival finds. The arrival must wait for
    /// one service to end if all servers are busy, and for one more per waiting closed customer. After each of these
    /// services, the arrival waits for a geometrically distributed number of open requests.
    fn stretch_at_arrival(&self, stretch: f64) -> Stretch {
        if !self.station.rate_multipliers.is_empty() {
            return self.load_dependent_stretch(stretch);
        }
        let (often, rho) = (self.must_wait, self.open_rho);
        let more = (stretch - 1.0).max(0.0);
        let alone = more * self.servers() * (1.0 - rho);
        if often <= 0.0 || alone <= 0.0 {
            return Stretch { least: 1.0, more, scv: 0.0 };
        }
        let bernoulli = often * (1.0 - often);
        let variance = self.closed_variance_share.map_or(bernoulli, |left| {
            let waiting = (alone - often).max(0.0);
            let geometric = often + 3.0 * waiting + 2.0 * waiting * waiting / often - alone * alone;
            bernoulli + left * (geometric - bernoulli).max(0.0)
        });
        Stretch { least: 1.0, more, scv: (alone * rho + variance) / (alone * alone) }
    }

    /// The stretch (factor by which other requests prolong service) at a station whose speed α depends on the number of
    /// requests present. The probability that n requests are present is proportional to busyⁿ/(α(1)·…·α(n)).
    fn load_dependent_stretch(&self, stretch: f64) -> Stretch {
        let alpha = &self.station.rate_multipliers;
        let last = alpha[alpha.len() - 1];
        let (mut weight, mut sums, mut least) = (1.0, [0.0; 3], f64::INFINITY);
        for (n, alpha) in alpha.iter().enumerate() {
            let stretch = (n as f64 + 1.0) / alpha;
            least = least.min(stretch);
            add(&mut sums, weight, stretch);
            weight *= self.busy / alpha;
        }
        // Beyond the last rate multiplier, the number of requests is geometrically distributed.
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
        Stretch { least, more: stretch - least, scv: scv * self.closed_variance_share.unwrap_or(1.0) }
    }

    /// The wait for service in the order of arrival.
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
