//! Waiting times at servers that must be woken up: a request that finds a server idle takes longer ([`IdleCost`] above
//! 0).
//!
//! J is the share of a station's m servers that a request finds idle. The request takes S + w·Iᵖ⁻¹·J seconds instead of
//! S. Here w and p are the seconds and the power of the station's [`IdleCost`], and I is the mean idle share of the
//! station's capacity. The total is multiplied by a random factor with the scv of the service. Poisson arrivals find J
//! = I/(1 − b) on average, where background work uses the share b of the capacity. So the mean demand follows the law
//! of [`crate::station_demands`]. For one server and p = 1 this is M/G/1 with exceptional first service (Welch 1964). A
//! request that waits takes no additional time, so only the first service of a busy period depends on w.
//!
//! - First come, first served: a request with the service time s and the wait v adds s·v + s²/2 to the integral of
//!   unfinished work, where s is S if v > 0. So v = λ·E\[s²\]/(2·(1 − λ·S)), which is exact for M/G/1. For several
//!   servers, v = P·r/(m − λ·S) with r = E\[s²\]/(2·E\[s\]), as in Lee & Longton (1959). P is Erlang's C at the offered
//!   load a, which includes the additional times. E\[J²\] = (1 − a/m)² + a·(1 − P)/m² follows from the balance
//!   equations of M/M/m.
//! - Processor sharing, for exponential service; other distributions make little difference. The mean unfinished work
//!   is the same as with first come, first served: v at scv = 1. Each request present contributes S seconds to this
//!   work, or S0 = S + w·Iᵖ⁻¹ if it found the server idle. The response time of a request that found the server idle is
//!   R0 = S0·(S + S0)/(S + (1 − λ·S)·S0), as for a request that finds an M/M/1 queue empty (Coffman, Muntz & Trotter,
//!   1970). So N = v/S − (S0/S − 1)·λ·(1 − U)·R0, and R = N/λ (Little). This is exact for one exponential server. With
//!   S0 = 2·S (4·S), R is up to 4 % (6 %) longer for constant service, and up to 3 % shorter for scv = 4. For m
//!   servers, the residence time beyond service is the mean wait with first come, first served, multiplied by the m-th
//!   root of the ratio of these two times at one server. The error is then at most 3 % (6 %) for exponential service.
//!   The additional residence time caused by w has two parts: one part is equal for all classes, and the rest is shared
//!   among the classes in proportion to their demands.
//!
//! We know no such formula for priorities, and none for closed classes, whose arrivals do not find the mean state. In
//! both cases, the mean of the additional time is part of every demand. The simulator always adds the additional time
//! to the requests that find servers idle.
//!
//! Times are in seconds, rates per second. Demands and rates are lists by class.

use crate::erlang::{erlang_c, exponential_wait};
use crate::idle_law::{station_demands, wakeup_time};
use crate::interruptions::available_share;
use crate::network::Network;
use brimful_core::model::{IdleCost, Scheduling, Station, StationKind};

/// Mean wait in seconds at a first-come-first-served station when the service of each class is exponential. For another
/// scv, multiply the wait by (1 + scv)/2.
///
/// `demands` are the model's demands at saturation, in seconds by class; `rates` are the requests per second by class.
/// Without an [`IdleCost`] above 0, the result is the [`exponential_wait`] with the [`station_demands`]. The wait is
/// infinite at saturation, and 0 at a delay. Interruptions prolong services here; the wait for interruptions themselves
/// does not depend on the scv and is not included.
pub fn wait_with_idle_cost(station: &Station, demands: &[f64], rates: &[f64]) -> f64 {
    if station.kind == StationKind::Delay {
        return 0.0;
    }
    let under_load = station_demands(station, demands, rates);
    let available = available_share(station, demands, rates);
    if !must_be_woken(station) {
        return exponential_wait(rates, &under_load, station.servers, 1.0 - available);
    }
    let slowed = |demands: &[f64]| demands.iter().map(|d| d / available).collect::<Vec<f64>>();
    let (saturated, under_load) = (slowed(demands), slowed(&under_load));
    let max_extra_s = wakeup_time(station, demands, rates);
    let queue = WakeupQueue::new(station.servers, max_extra_s, &saturated, &under_load, rates);
    queue.wait(erlang_c(station.servers, queue.busy))
}

/// Whether requests that find idle servers of this station take longer ([`IdleCost`] above 0).
fn must_be_woken(station: &Station) -> bool {
    station.idle_cost.is_some_and(|cost: IdleCost| cost.seconds > 0.0)
}

impl Network<'_> {
    /// Whether there is a formula for the effect of idle servers on this station's waiting times. The classes must be
    /// open and have no priorities.
    pub(crate) fn has_wakeup_formula(&self, k: usize) -> bool {
        let station = &self.model.stations[k];
        let known = matches!(station.scheduling, Scheduling::Ps | Scheduling::Fcfs) && self.customers() == 0;
        known && must_be_woken(station)
    }

    /// The queue at a station whose idle servers must be woken up. `None` if they need not be woken up, or if no
    /// formula is known.
    pub(crate) fn wakeup_queue(&self, k: usize) -> Option<WakeupQueue> {
        let servers = self.model.stations[k].servers;
        self.has_wakeup_formula(k)
            .then(|| WakeupQueue::new(servers, self.waking[k], &self.saturated[k], &self.demands[k], &self.rates))
    }
}

/// A queue whose idle servers must be woken up. Times are in seconds.
pub(crate) struct WakeupQueue {
    /// m: number of servers.
    count: u32,
    servers: f64,
    /// w·Iᵖ⁻¹: additional service time, in seconds, of a request that finds all servers idle.
    pub(crate) max_extra_s: f64,
    /// Σ λ·Sᵏ of the classes that visit the station, for k = 0, 1, 2. S is the service time without the additional
    /// times.
    moments: [f64; 3],
    /// Mean number of busy servers, including the additional times.
    pub(crate) busy: f64,
    /// E\[J\] and E\[J²\] of the share J of servers that an arrival finds idle.
    idle: [f64; 2],
}

impl WakeupQueue {
    /// Builds the queue. `saturated` are the demands at saturation, and `under_load` the demands at the given rates.
    /// Both are divided by 1 − b, where background work uses the share b of the capacity.
    pub(crate) fn new(servers: u32, max_extra_s: f64, saturated: &[f64], under_load: &[f64], rates: &[f64]) -> Self {
        let visits = || saturated.iter().zip(rates).filter(|(demand, _)| **demand > 0.0);
        let moment = |k: i32| visits().map(|(demand, rate)| rate * demand.powi(k)).sum::<f64>();
        let busy: f64 = under_load.iter().zip(rates).map(|(demand, rate)| demand * rate).sum();
        let m = f64::from(servers);
        let idle = (1.0 - busy / m).max(0.0);
        let spread = busy * (1.0 - erlang_c(servers, busy)) / (m * m);
        Self {
            count: servers,
            servers: m,
            max_extra_s,
            moments: [moment(0), moment(1), moment(2)],
            busy,
            idle: [idle, idle * idle + spread],
        }
    }

    /// The shares of the servers that arrivals may find idle, except 0, each with its probability in M/M/m. The
    /// smallest share is first. With more than [`MAX_DISTINGUISHED`] servers, the result has only the mean share.
    pub(crate) fn found_idle(&self) -> Vec<(f64, f64)> {
        let some = 1.0 - erlang_c(self.count, self.busy);
        if self.count > MAX_DISTINGUISHED {
            return vec![(if some > 0.0 { self.idle[0] / some } else { 0.0 }, some)];
        }
        // With the offered load a, the probability of n requests present is proportional to aⁿ/n!. The loop begins with
        // n = m − 1, whose weight is 1.
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
            vec![(1.0, 1.0)] // The load is practically 0.
        }
    }

    /// Mean wait in seconds with exponential service, first come, first served. `must_wait` is the probability that an
    /// arrival must wait.
    pub(crate) fn wait(&self, must_wait: f64) -> f64 {
        let [visits, work, squares] = self.moments;
        let drained = self.servers - work;
        if work <= 0.0 {
            return 0.0;
        }
        if drained <= 0.0 {
            return f64::INFINITY;
        }
        let ([idle, idle_squared], max_extra_s) = (self.idle, self.max_extra_s);
        let all = work + visits * max_extra_s * idle;
        let left =
            (squares + 2.0 * max_extra_s * idle * work + visits * max_extra_s * max_extra_s * idle_squared) / all;
        must_wait * left / drained
    }

    /// Computes the stretch (residence time divided by service time) of a request under processor sharing. The request
    /// finds an idle server and needs `takes` seconds of service. Returns the stretch minus 1, and the ratio of that
    /// value to the same value of an average request at servers that need not be woken up.
    pub(crate) fn alone_stretch(&self, takes: f64) -> (f64, f64) {
        let [visits, work, _] = self.moments;
        let left = 1.0 - work / self.servers;
        let share = left * takes / (work / visits + left * takes);
        if share.is_finite() { (share * erlang_c(self.count, work) / (self.servers * left), share) } else { (0.0, 0.0) }
    }

    /// Mean residence time, in seconds, of a request with the demand `demand` under processor sharing. An arrival must
    /// wait with the probability `must_wait`. At servers that need not be woken up, this probability would be
    /// `plain_must_wait`.
    pub(crate) fn shared_residence(&self, demand: f64, must_wait: f64, plain_must_wait: f64) -> f64 {
        let [visits, work, _] = self.moments;
        if visits <= 0.0 {
            return demand + self.max_extra_s * self.idle[0];
        }
        let mean = work / visits;
        // The same queue if all requests had the same demand.
        let alike = Self { moments: [visits, work, visits * mean * mean], ..*self };
        let shared = Shared::new(mean, self.max_extra_s, work / self.servers, self.idle[0]);
        let all = mean + self.max_extra_s * self.idle[0] + alike.wait(must_wait) * shared.wait.powf(1.0 / self.servers);
        let plain = mean * (1.0 + plain_must_wait / (self.servers - work));
        let own = (all - plain) * shared.own;
        demand / mean * (all - own) + own
    }
}

/// Maximum number of servers for which each possible number of idle servers has its own probability.
const MAX_DISTINGUISHED: u32 = 16;

/// Ratios of times at one server with processor sharing.
struct Shared {
    /// Ratio of the residence time beyond service to the mean wait that the queue would have if served first come,
    /// first served.
    wait: f64,
    /// Share of the additional residence time that the request's own additional service time causes.
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
