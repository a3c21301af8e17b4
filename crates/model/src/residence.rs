//! Residence time of a request at a station, from the state that it finds on arrival.
//!
//! Open networks and the approximations for closed networks use the same rules. A request arrives at a station of m
//! servers. For each class, it finds B servers busy with requests of the class, and W waiting customers if the class is
//! closed. It must wait with probability P, which is Erlang's C at the utilization that it finds. A request that must
//! wait waits until one of the m servers becomes free (r is the mean remaining service), and for the service of the
//! requests ahead. The number of *open* requests ahead follows from Little's law: λ × the same wait.
//!
//! - Processor sharing: R = D·(1 + w), w = (W + P)/(m − a), where a is the number of servers that open classes keep
//!   busy. This is exact for open classes (Baskett, Chandy, Muntz & Palacios, 1975). With one server it is the arrival
//!   theorem of closed classes (Reiser & Lavenberg, 1980). The rule of Seidmann, Schweitzer & Shalev-Oren (1987) is the
//!   case P = U.
//! - First come, first served: all classes wait equally long, (Σ W·D + P·r)/(m − a), with r = Σ B·D·(1 + scv)/2 divided
//!   by Σ B. For one server and open classes this is Pollaczek & Khinchine's formula for the mixed stream; for closed
//!   classes it is Reiser's (1979). For several servers it is Lee & Longton's (1959): the wait of M/M/m times (1 +
//!   scv)/2, with the scv of all classes together.
//! - Priorities, head of the line: Cobham (1954); closed classes as in Bryant, Krzesinski, Lakshmi & Chandy (1984).
//! - Priorities, preemptive resume: a class waits only for classes that are at least as urgent. More urgent classes
//!   with the load σ prolong its service by the factor 1/(1 − σ) (Jaiswal 1968; several servers as in Bondi & Buzen,
//!   1984).
//! - Servers that must be woken up, if all classes are open: requests that find idle servers take longer
//!   ([`crate::wakeup`]). With priorities or closed classes, the mean of the additional time is part of every D.
//! - Interruptions: an arrival also waits for the rest r of an interruption, and for the open requests that arrived
//!   during it ([`crate::interruptions`]). Every D includes the factor 1/(1 − σ).
//! - Rate multipliers α: as in processor sharing, R = D·(1 + N)/α(1 + N), interpolated between whole numbers (the
//!   queue-dependent approximation of Casale, Pérez & Wang, 2015). α and the residence time of open requests are as in
//!   [`crate::open_load`].

use crate::ModelError;
use crate::erlang::erlang_c;
use crate::network::Network;
use crate::station::products;
use brimful_core::model::{Scheduling, StationKind};

/// The formula for the probability that an arrival at several servers must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MustWait {
    /// Erlang's C formula.
    Erlang,
    /// The utilization U. In this approximation, m servers are replaced by one fast server, followed by a delay.
    Seidmann,
}

/// The state that an arrival finds at a station, by class.
pub(crate) struct StateAtArrival<'a> {
    /// Number of busy servers, for open and closed classes.
    pub(crate) busy: &'a [f64],
    /// Number of waiting customers, for closed classes; 0 for open classes.
    pub(crate) waiting: &'a [f64],
}

/// The residence time R of class `c` at station `k`, in seconds.
pub(crate) fn residence(
    network: &Network<'_>,
    k: usize,
    c: usize,
    must_wait: MustWait,
    found: &StateAtArrival<'_>,
) -> f64 {
    let (station, demand) = (&network.model.stations[k], network.demands[k][c]);
    if station.kind == StationKind::Delay || demand == 0.0 {
        return demand;
    }
    let arrival = Arrival { network, k, must_wait, found };
    if let Some(dependent) = &network.load_dependent[k] {
        let open = network.population[c] == 0;
        let closed = arrival.closed_present();
        return demand * if open { dependent.open_residence(closed) } else { dependent.closed_residence(closed) };
    }
    if let Some(waking) = network.wakeup_queue(k) {
        let probability = |busy: f64| must_wait.probability(station.servers, busy);
        let (must_wait, saturated) = (probability(waking.busy), &network.saturated[k]);
        return match station.scheduling {
            Scheduling::Ps => {
                let plain = probability(products(saturated, &network.rates).sum());
                waking.shared_residence(saturated[c], must_wait, plain) + arrival.shared_interruption(c)
            }
            _ => demand + waking.wait(must_wait) * (1.0 + network.scv[k]) / 2.0 + arrival.ordered_interruption(c),
        };
    }
    match station.scheduling {
        Scheduling::Ps => {
            let (waiting, busy) = (found.waiting.iter().sum(), arrival.busy(|_| true));
            demand * sharing(station.servers, network.open_load(k), must_wait, waiting, busy)
                + arrival.shared_interruption(c)
        }
        Scheduling::Fcfs => demand + arrival.fcfs_wait() + arrival.ordered_interruption(c),
        Scheduling::Priority => demand + arrival.priority_wait(c),
        Scheduling::Preemptive => demand + arrival.preemptive_wait(c),
    }
}

/// Returns an error if open requests of class `c` are never served at station `k` because closed classes of higher
/// priority saturate it.
pub(crate) fn check_served(network: &Network<'_>, k: usize, c: usize, throughput: &[f64]) -> Result<(), ModelError> {
    let station = &network.model.stations[k];
    let ordered = matches!(station.scheduling, Scheduling::Priority | Scheduling::Preemptive);
    if !ordered || network.demands[k][c] == 0.0 {
        return Ok(());
    }
    let level = |j: usize| network.model.classes[j].priority;
    let counts = |j: &usize| level(*j) < level(c) || network.population[*j] == 0 && level(*j) == level(c);
    let busy: f64 = (0..throughput.len()).filter(counts).map(|j| throughput[j] * network.demands[k][j]).sum();
    let utilization = busy / f64::from(station.servers);
    if utilization < 1.0 - MIN_SHARE_LEFT {
        return Ok(());
    }
    let (station, class) = (station.name.clone(), network.model.classes[c].name.clone());
    Err(ModelError::Starved { station, class })
}

/// Residence time divided by demand, under processor sharing. `waiting` closed customers wait, and `busy` servers are
/// busy, `open` of them with requests of open classes.
pub(crate) fn sharing(servers: u32, open: f64, must_wait: MustWait, waiting: f64, busy: f64) -> f64 {
    1.0 + (waiting + must_wait.probability(servers, busy)) / (f64::from(servers) - open)
}

impl MustWait {
    /// The probability that an arrival must wait if `busy` of the servers are busy on average.
    fn probability(self, servers: u32, busy: f64) -> f64 {
        match self {
            MustWait::Erlang => erlang_c(servers, busy),
            MustWait::Seidmann => busy / f64::from(servers),
        }
    }
}

/// An arriving request at one station, with the state that it finds there.
struct Arrival<'a> {
    network: &'a Network<'a>,
    k: usize,
    must_wait: MustWait,
    found: &'a StateAtArrival<'a>,
}

impl Arrival<'_> {
    fn fcfs_wait(&self) -> f64 {
        let left = self.probability(|_| true) * self.mean_left(|_| true);
        (left + self.backlog(|_| true)) / (self.servers() - self.network.open_load(self.k))
    }

    /// The wait of class `c` for interruptions in seconds, in the order of arrival: for the rest of an interruption,
    /// and for the open requests that arrived during it.
    fn ordered_interruption(&self, c: usize) -> f64 {
        self.interruption(c) / (self.servers() - self.network.open_load(self.k))
    }

    /// The wait of class `c` for interruptions in seconds, under processor sharing: the rest of an interruption, and
    /// the time for which the open requests that arrived during it slow the request down.
    fn shared_interruption(&self, c: usize) -> f64 {
        let found = self.network.interruption_found(self.k, c);
        if found == 0.0 {
            return 0.0;
        }
        let demands = &self.network.demands[self.k];
        let arriving: f64 = (0..demands.len()).filter(|j| demands[*j] > 0.0).map(|j| self.network.rates[j]).sum();
        found * (1.0 + demands[c] * arriving / (self.servers() - self.network.open_load(self.k)))
    }

    /// Service, in seconds of demand, that all servers would do during the rest of an interruption that an arrival of
    /// class `c` finds.
    fn interruption(&self, c: usize) -> f64 {
        self.servers() * self.network.interruption_found(self.k, c)
    }

    /// The wait of class `c` in seconds. It is computed for each priority, beginning with the most urgent one. Open
    /// requests with a more urgent priority that arrive during the wait are served first.
    fn priority_wait(&self, c: usize) -> f64 {
        let left = self.probability(|_| true) * self.mean_left(|_| true) + self.interruption(c);
        let mut open_above = 0.0;
        for level in self.levels() {
            let ahead = left + self.backlog(|j| self.level(j) <= level) + open_above;
            let wait = ahead / self.remaining(|j| self.level(j) < level, |j| self.level(j) == level);
            if level == self.level(c) {
                return wait;
            }
            open_above += wait * self.open(|j| self.level(j) == level);
        }
        0.0
    }

    fn preemptive_wait(&self, c: usize) -> f64 {
        let level = self.level(c);
        let (above, counts) = (|j: usize| self.level(j) < level, |j: usize| self.level(j) <= level);
        let (must_wait, demand) = (self.probability(counts), self.network.demands[self.k][c]);
        let left = (must_wait * self.mean_left(counts) + self.interruption(c)) / self.remaining(|_| false, counts);
        // Preemption prolongs service by the factor 1/(1 − σ), where σ is the share of the servers that more urgent
        // classes keep busy. With several servers, the additional time is multiplied by P/U: the probability of waiting
        // divided by the utilization.
        let (busy, urgent) = (self.busy(counts), self.busy(above));
        let stretched = if busy > 0.0 { must_wait / busy * urgent * demand / self.servers() } else { 0.0 };
        (left + stretched) / self.remaining(above, |_| false) * self.servers() + self.urgent_backlog_wait(level)
    }

    /// Time in seconds until the waiting customers of closed classes with the priority `level` or a more urgent one are
    /// served. Open requests with a more urgent priority than a customer overtake it; those of the same priority queue
    /// behind it.
    fn urgent_backlog_wait(&self, level: u32) -> f64 {
        let (mut wait, mut ahead) = (0.0, 0.0);
        for here in self.levels().into_iter().filter(|here| *here <= level) {
            let (above, same) = (|j: usize| self.level(j) < here, |j: usize| self.level(j) == here);
            wait = (ahead + self.backlog(same)) / self.remaining(above, same);
            ahead = wait * self.remaining(above, |_| false);
        }
        wait
    }

    /// All distinct priorities, the most urgent one first.
    fn levels(&self) -> Vec<u32> {
        let mut levels: Vec<u32> = (0..self.found.busy.len()).map(|j| self.level(j)).collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    }

    fn probability(&self, counts: impl Fn(usize) -> bool) -> f64 {
        self.must_wait.probability(self.network.model.stations[self.k].servers, self.busy(counts))
    }

    /// Mean remaining time of a service in progress, in seconds. An arrival is more likely during a long service than
    /// during a short one.
    fn mean_left(&self, counts: impl Fn(usize) -> bool) -> f64 {
        let scv = self.network.scv[self.k];
        let busy = self.busy(&counts);
        let left = self.sum(&counts, |j| self.found.busy[j] * self.network.demands[self.k][j]);
        if busy > 0.0 { left / busy * (1.0 + scv) / 2.0 } else { 0.0 }
    }

    /// Total service time that the waiting customers of closed classes need, in seconds.
    fn backlog(&self, counts: impl Fn(usize) -> bool) -> f64 {
        self.sum(counts, |j| self.found.waiting[j] * self.network.demands[self.k][j])
    }

    /// Number of servers that can serve the waiting request and the requests ahead. The other servers are busy with two
    /// kinds of requests: classes in `first`, which are served first, and open requests of the classes in `same`, which
    /// keep arriving during the wait.
    fn remaining(&self, first: impl Fn(usize) -> bool, same: impl Fn(usize) -> bool) -> f64 {
        (self.servers() - self.busy(first) - self.open(same)).max(MIN_SHARE_LEFT * self.servers())
    }

    fn closed_present(&self) -> f64 {
        let found = self.found;
        let closed = |j: usize| self.network.population[j] > 0;
        self.sum(closed, |j| found.busy[j] + found.waiting[j])
    }

    fn busy(&self, counts: impl Fn(usize) -> bool) -> f64 {
        self.sum(counts, |j| self.found.busy[j])
    }

    fn open(&self, counts: impl Fn(usize) -> bool) -> f64 {
        self.sum(counts, |j| self.network.rates[j] * self.network.demands[self.k][j])
    }

    fn sum(&self, counts: impl Fn(usize) -> bool, figure: impl Fn(usize) -> f64) -> f64 {
        (0..self.found.busy.len()).filter(|j| counts(*j)).map(figure).sum()
    }

    fn level(&self, class: usize) -> u32 {
        self.network.model.classes[class].priority
    }

    fn servers(&self) -> f64 {
        f64::from(self.network.model.stations[self.k].servers)
    }
}

/// Minimum share of the servers that closed classes of higher priority must leave to the other classes.
const MIN_SHARE_LEFT: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use crate::fixture::{closed, is_close, model, open, queue};
    use crate::{Method, Solution, solve};
    use brimful_core::model::Scheduling;

    #[test]
    fn nonpreemptive_priorities_match_cobhams_formula() {
        // Cobham: W = Σ λ·S²·(1 + scv)/2 ÷ ((1 − σ₁)·(1 − σ₂)). σ₁ is the load of the classes with more urgent
        // priorities. σ₂ also includes the classes of equal priority.
        let classes = [(open(1.0, 7), 0.3), (open(0.5, 2), 0.4), (open(2.0, 5), 0.1), (open(0.2, 2), 0.5)];
        let solution = solve(&model(queue(Scheduling::Priority, 1, 3.0), &classes), Method::Auto).unwrap();
        let left: f64 = classes.iter().map(|(c, s)| c.rate.unwrap() * s * s * 2.0).sum();
        let (first, second, third) = (0.5 * 0.4 + 0.2 * 0.5, 2.0 * 0.1, 1.0 * 0.3);
        let waits = [
            left / ((1.0 - first - second) * (1.0 - first - second - third)),
            left / (1.0 - first),
            left / ((1.0 - first) * (1.0 - first - second)),
            left / (1.0 - first),
        ];
        for (c, (_, service)) in classes.iter().enumerate() {
            assert!(is_close(solution.response_time[c], service + waits[c]), "{c}: {solution:?} {waits:?}");
        }
    }

    #[test]
    fn a_class_does_not_wait_for_classes_that_it_interrupts() {
        // Preemptive resume (Jaiswal 1968): R = S/(1 − σ₁) + W/((1 − σ₁)·(1 − σ₂)). σ₁ is the load of the classes with
        // more urgent priorities. σ₂ and W, the mean unfinished work, also include the classes of equal priority.
        let classes = [(open(2.0, 0), 0.2), (open(1.0, 1), 0.3)];
        let solution = solve(&model(queue(Scheduling::Preemptive, 1, 0.0), &classes), Method::Auto).unwrap();
        let first = 0.2 + 2.0 * 0.04 / 2.0 / 0.6;
        let second = 0.3 / 0.6 + (2.0 * 0.04 / 2.0 + 0.09 / 2.0) / (0.6 * 0.3);
        assert!(
            is_close(solution.response_time[0], first) && is_close(solution.response_time[1], second),
            "{solution:?}"
        );
    }

    #[test]
    fn several_servers_with_equal_services_share_out_the_wait_of_erlang() {
        // Cobham's formula for M/M/m. The mean wait over all classes does not depend on the order of service, so it
        // equals the wait with first come, first served.
        let classes = [(open(3.0, 0), 0.5), (open(2.0, 1), 0.5)];
        let [fcfs, priority, preemptive] = [Scheduling::Fcfs, Scheduling::Priority, Scheduling::Preemptive]
            .map(|order| solve(&model(queue(order, 3, 1.0), &classes), Method::Auto).unwrap());
        let left = crate::erlang_c(3, 2.5) * 0.5 / 3.0;
        assert!(is_close(priority.response_time[0], 0.5 + left / 0.5));
        assert!(is_close(priority.response_time[1], 0.5 + left / (0.5 * (0.5 / 3.0))));
        assert!(is_close(priority.mean_response_time, fcfs.mean_response_time));
        let alone = crate::mmm_wait(3.0, 0.5, 3, 0.0);
        assert!(is_close(preemptive.response_time[0], 0.5 + alone), "other classes do not delay the most urgent class");
        assert!(
            (preemptive.mean_response_time / fcfs.mean_response_time - 1.0).abs() < 0.1,
            "the overall mean is too far from FCFS"
        );
    }

    #[test]
    fn equal_priorities_are_no_priorities() {
        for (scv, servers) in [(0.0, 1), (1.0, 4), (3.0, 1)] {
            let classes = [(open(3.0, 4), 0.2), (closed(4, 1.0), 0.2), (open(1.0, 4), 0.2)];
            let mut classes = classes;
            classes[1].0.priority = 4;
            let [fcfs, priority, preemptive] = [Scheduling::Fcfs, Scheduling::Priority, Scheduling::Preemptive]
                .map(|order| solve(&model(queue(order, servers, scv), &classes), Method::Linearizer).unwrap());
            for c in 0..3 {
                let near = |s: &Solution| (s.response_time[c] / fcfs.response_time[c] - 1.0).abs() < 1e-9;
                assert!(near(&priority) && near(&preemptive), "{fcfs:?} {priority:?} {preemptive:?}");
            }
        }
    }

    #[test]
    fn an_urgent_closed_class_goes_before_an_open_one() {
        let classes = [(closed(3, 1.0), 0.2), (open(1.0, 1), 0.2)];
        let alone = solve(&model(queue(Scheduling::Ps, 1, 1.0), &classes[..1]), Method::Exact).unwrap();
        let [shared, preemptive] = [Scheduling::Ps, Scheduling::Preemptive]
            .map(|order| solve(&model(queue(order, 1, 1.0), &classes), Method::Linearizer).unwrap());
        assert!((preemptive.response_time[0] / alone.response_time[0] - 1.0).abs() < 0.02, "{preemptive:?} {alone:?}");
        assert!(shared.response_time[0] > 1.1 * alone.response_time[0]);
        assert!(preemptive.response_time[1] > shared.response_time[1]);
    }

    #[test]
    fn an_open_class_behind_an_endless_closed_one_is_never_served() {
        for order in [Scheduling::Priority, Scheduling::Preemptive] {
            let mut network = model(queue(order, 1, 1.0), &[(closed(100, 0.0), 0.1), (open(1.0, 1), 0.1)]);
            let error = solve(&network, Method::Auto).unwrap_err().to_string();
            assert!(
                error.contains("`o1 of 1` is never served at station `cpu`") && error.contains("`priority`"),
                "{error}"
            );
            network.classes[0].priority = 2;
            let solution = solve(&network, Method::Auto).unwrap();
            assert!((solution.throughput[0] / 9.0 - 1.0).abs() < 0.01, "{solution:?}");
        }
    }
}
