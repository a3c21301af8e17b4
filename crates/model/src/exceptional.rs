//! Waits where those who find a server idle pay for it ([`IdleCost`] above 0).
//!
//! A request that finds the share J of a station's m servers idle takes S + w·Iᵖ⁻¹·J instead of S, in seconds of time,
//! times the same chance, so that scv is that of all. Poisson arrivals find J = I/(1 − b) on average, whence the law
//! ([`crate::station_demands`]). At one server that is "found idle, pays w·Iᵖ⁻¹", with p = 1 all of w: M/G/1 with
//! exceptional first service (Welch 1964). Who waits pays nothing, so a busy period is drained as if no one did.
//!
//! - First come, first served: a request that takes s and waits v adds s·v + s²/2 to the integral of the work in
//!   front, where s is S wherever v > 0. So v = λ·E\[s²\]/(2·(1 − λ·S)): exact for M/G/1. For several servers v =
//!   P·r/(m − λ·S), with P Erlang's C at the busy servers a, extra included, and r = E\[s²\]/(2·E\[s\]) (as Lee &
//!   Longton 1959). There E\[J²\] = (1 − a/m)² + a·(1 − P)/m², from the balance equations of M/M/m.
//! - Processor sharing, as if service were exponential, which it feels but little. The mean work is that of first come,
//!   first served, v at scv = 1, and there are S seconds of it for each request present, but S0 = S + w·Iᵖ⁻¹ for one
//!   that came first. Such a one stays R0 = S0·(S + S0)/(S + (1 − λ·S)·S0), from the response of M/M/1 found empty
//!   (Coffman, Muntz & Trotter, 1970). So N = v/S − (S0/S − 1)·λ·(1 − U)·R0 are present, and R = N/λ (Little): exact
//!   for one exponential server. With S0 of 2·S (4·S), constant service is up to 4 % (6 %) slower, and scv = 4 up to
//!   3 % faster. For m servers the residence beyond service is the wait in order of arrival times the m-th root of what
//!   the two are to one another at one server: within 3 % (6 %) for exponential service. Of what classes stay longer
//!   than without w, they have their own extra alike, the rest in proportion to their demands.
//!
//! Under priorities, and beside closed classes, whose arrivals do not find what is there on average, no such formula is
//! known to us: there all pay the mean as part of their demands. The simulator has those pay who find servers idle
//! everywhere.
//!
//! Times are seconds, rates per second; both by class.

use crate::erlang::{erlang_c, exponential_wait};
use crate::idle_law::{station_demands, wakeup_time};
use crate::network::Network;
use brimful_core::model::{IdleCost, Scheduling, Station, StationKind};

/// Mean wait in seconds at a first-come-first-served station when the service of each class is exponential: wait(scv) =
/// `exceptional_wait`·(1 + scv)/2. `demands` are those of the Model, at saturation; both in seconds and per second, by
/// class. [`exponential_wait`] at a station without an [`IdleCost`] above 0, where demands are as [`station_demands`]
/// says. Infinite at saturation, 0 at a delay.
pub fn exceptional_wait(station: &Station, demands: &[f64], rates: &[f64]) -> f64 {
    if station.kind == StationKind::Delay {
        return 0.0;
    }
    let under_load = station_demands(station, demands, rates);
    if !pays(station) {
        return exponential_wait(rates, &under_load, station.servers, station.background);
    }
    let slowed = |demands: &[f64]| demands.iter().map(|d| d / (1.0 - station.background)).collect::<Vec<f64>>();
    let (saturated, under_load) = (slowed(demands), slowed(&under_load));
    let most = wakeup_time(station, demands, rates);
    let queue = Exceptional::new(station.servers, most, &saturated, &under_load, rates);
    queue.wait(erlang_c(station.servers, queue.busy))
}

/// Whether those who find a server idle pay for it.
fn pays(station: &Station) -> bool {
    station.idle_cost.is_some_and(|cost: IdleCost| cost.seconds > 0.0)
}

impl Network<'_> {
    /// Whether they do at a station, and something is known of it: not under priorities, nor beside closed classes.
    pub(crate) fn is_exceptional(&self, k: usize) -> bool {
        let station = &self.model.stations[k];
        let known = matches!(station.scheduling, Scheduling::Ps | Scheduling::Fcfs) && self.customers() == 0;
        known && pays(station)
    }

    /// Such a station.
    pub(crate) fn exceptional(&self, k: usize) -> Option<Exceptional> {
        let servers = self.model.stations[k].servers;
        self.is_exceptional(k)
            .then(|| Exceptional::new(servers, self.waking[k], &self.saturated[k], &self.demands[k], &self.rates))
    }
}

/// All that come to such a station.
pub(crate) struct Exceptional {
    /// m.
    count: u32,
    servers: f64,
    /// w·Iᵖ⁻¹: what one pays who finds all servers idle.
    pub(crate) most: f64,
    /// Σ λ·Sᵏ of those who visit, k = 0, 1, 2, without anything extra.
    moments: [f64; 3],
    /// Busy servers, with what is extra.
    pub(crate) busy: f64,
    /// E\[J\] and E\[J²\] of the share of servers found idle.
    idle: [f64; 2],
}

impl Exceptional {
    /// Demands at saturation and under the load, slowed down by other work.
    pub(crate) fn new(servers: u32, most: f64, saturated: &[f64], under_load: &[f64], rates: &[f64]) -> Self {
        let visits = || saturated.iter().zip(rates).filter(|(demand, _)| **demand > 0.0);
        let moment = |k: i32| visits().map(|(demand, rate)| rate * demand.powi(k)).sum::<f64>();
        let busy: f64 = under_load.iter().zip(rates).map(|(demand, rate)| demand * rate).sum();
        let m = f64::from(servers);
        let idle = (1.0 - busy / m).max(0.0);
        let spread = busy * (1.0 - erlang_c(servers, busy)) / (m * m);
        Self {
            count: servers,
            servers: m,
            most,
            moments: [moment(0), moment(1), moment(2)],
            busy,
            idle: [idle, idle * idle + spread],
        }
    }

    /// The shares of servers that arrivals find idle, with their probabilities: those of M/M/m, busiest first, none
    /// idle left out. Of many servers, the mean alone.
    pub(crate) fn found_idle(&self) -> Vec<(f64, f64)> {
        let some = 1.0 - erlang_c(self.count, self.busy);
        if self.count > FEW {
            return vec![(if some > 0.0 { self.idle[0] / some } else { 0.0 }, some)];
        }
        // P(n) ∝ aⁿ/n!, from n = m − 1 down, as multiples of that of the fullest.
        let mut weight = 1.0;
        let mut found = Vec::new();
        for busy in (0..self.count).rev() {
            found.push((1.0 - f64::from(busy) / self.servers, weight));
            weight *= f64::from(busy) / self.busy;
        }
        let all: f64 = found.iter().map(|(_, weight)| weight).sum();
        if all.is_finite() {
            found.iter().map(|(share, weight)| (*share, some * weight / all)).collect()
        } else {
            vec![(1.0, 1.0)] // No one else ever comes.
        }
    }

    /// Mean wait, first come, first served, of exponential services, where an arrival must wait so often.
    pub(crate) fn wait(&self, must_wait: f64) -> f64 {
        let [visits, work, squares] = self.moments;
        let drained = self.servers - work;
        if work <= 0.0 {
            return 0.0;
        }
        if drained <= 0.0 {
            return f64::INFINITY;
        }
        let ([idle, idle_squared], most) = (self.idle, self.most);
        let all = work + visits * most * idle;
        let left = (squares + 2.0 * most * idle * work + visits * most * most * idle_squared) / all;
        must_wait * left / drained
    }

    /// Where servers are shared, by how much one is stretched that finds an idle server and then needs so much: beyond
    /// 1, and as a share of what others are stretched that come at any time, were no one to wake up.
    pub(crate) fn alone_stretch(&self, takes: f64) -> (f64, f64) {
        let [visits, work, _] = self.moments;
        let left = 1.0 - work / self.servers;
        let share = left * takes / (work / visits + left * takes);
        if share.is_finite() { (share * erlang_c(self.count, work) / (self.servers * left), share) } else { (0.0, 0.0) }
    }

    /// Mean residence of one that needs so much, where servers are shared. An arrival must wait so often, and so often
    /// if no one had to wake up.
    pub(crate) fn shared_residence(&self, demand: f64, must_wait: f64, plain_must_wait: f64) -> f64 {
        let [visits, work, _] = self.moments;
        if visits <= 0.0 {
            return demand + self.most * self.idle[0];
        }
        let mean = work / visits;
        // As if all were alike.
        let alike = Self { moments: [visits, work, visits * mean * mean], ..*self };
        let shared = Shared::new(mean, self.most, work / self.servers, self.idle[0]);
        let all = mean + self.most * self.idle[0] + alike.wait(must_wait) * shared.wait.powf(1.0 / self.servers);
        let plain = mean * (1.0 + plain_must_wait / (self.servers - work));
        let own = (all - plain) * shared.own;
        demand / mean * (all - own) + own
    }
}

/// Servers of which it is told apart how many are found idle.
const FEW: u32 = 16;

/// One shared server.
struct Shared {
    /// Residence beyond service, over the wait in order of arrival.
    wait: f64,
    /// Of what residence is longer than without anything extra, the part that comes from the request's own.
    own: f64,
}

impl Shared {
    fn new(mean: f64, extra: f64, load: f64, found_idle: f64) -> Shared {
        let alone = |takes: f64| takes * (mean + takes) / (mean + (1.0 - load) * takes);
        let first = mean + extra;
        let square = found_idle * first * first + (1.0 - found_idle) * mean * mean;
        let all = square / ((1.0 - load) * mean) - extra / mean * found_idle * alone(first);
        let wait = load / mean * square / (1.0 - load);
        let longer = all - mean / (1.0 - load);
        Shared {
            wait: if wait > 0.0 { ((all - mean - extra * found_idle) / wait).clamp(0.0, 1.0) } else { 1.0 },
            own: if longer > 0.0 { (found_idle * (alone(first) - alone(mean)) / longer).min(1.0) } else { 1.0 },
        }
    }
}
