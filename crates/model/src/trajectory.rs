//! Response times of given arrivals at a server whose speed varies over time, in one pass over the requests.
//!
//! Every queue is served first come, first served (the recursion of Lindley 1952; for several servers, Kiefer &
//! Wolfowitz 1955). A request that finds idle servers may take longer, because they must be woken up (Welch 1964). The
//! first station is the server's CPUs. Its host slows it down, and pauses stop it. A request that a pause interrupts
//! resumes afterwards (preemptive resume; Avi-Itzhak & Naor 1963, breakdowns that do not depend on the queue). The
//! other stations have constant speed and are visited in order. Stations with interruptions stop at random times
//! ([`crate::interruptions`]).

use crate::interruptions::InterruptionLoad;
use crate::network::Network;
use crate::simulate::{Sampler, Service};
use crate::{ModelError, station_demands};
use brimful_core::model::{Model, Station, StationKind};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;

/// Slowdown of a server by its host over time: factors on service times that change at certain instants. The first
/// factor also applies before the first instant. During a pause, service stops.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSlowness {
    /// The instants in seconds, in ascending order, each with the factor that applies from then on.
    steps: Vec<(f64, f64)>,
    /// Start and end of each pause in seconds, in order.
    pauses: Vec<(f64, f64)>,
}

impl HostSlowness {
    /// Creates the slowdown from consecutive intervals. Each interval has a length in seconds and a factor on service
    /// times. The last factor also applies after the last interval.
    pub fn from_intervals(intervals: impl IntoIterator<Item = (f64, f64)>) -> HostSlowness {
        let mut at = 0.0;
        let begin = |(length, factor): (f64, f64)| {
            at += length;
            (at - length, factor)
        };
        HostSlowness { steps: intervals.into_iter().map(begin).collect(), pauses: Vec::new() }
    }

    /// Adds pauses. Each pause has a start and a length in seconds. A pause that would begin during another pause
    /// begins when that one ends.
    #[must_use]
    pub fn with_pauses(self, pauses: impl IntoIterator<Item = (f64, f64)>) -> HostSlowness {
        let mut pauses: Vec<(f64, f64)> = pauses.into_iter().collect();
        pauses.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = f64::NEG_INFINITY;
        for (start, end) in &mut pauses {
            let length = *end;
            *start = start.max(free);
            *end = *start + length;
            free = *end;
        }
        HostSlowness { pauses, ..self }
    }
}

/// Applies a [`HostSlowness`] to services. The services must begin in ascending order of time.
struct Host {
    slowness: HostSlowness,
    /// Index of the factor (in `HostSlowness::steps`) that applies at the start of the current service.
    step: usize,
    /// Index of the first pause that has not ended.
    pause: usize,
}

impl Host {
    /// The time at which a service ends. It starts at `start` and would take `seconds` if the host did not slow it
    /// down.
    fn serve(&mut self, start: f64, seconds: f64) -> f64 {
        let HostSlowness { steps, pauses } = &self.slowness;
        while steps.get(self.step + 1).is_some_and(|(begin, _)| *begin <= start) {
            self.step += 1;
        }
        while pauses.get(self.pause).is_some_and(|(_, end)| *end <= start) {
            self.pause += 1;
        }
        let mut end = start + seconds * steps.get(self.step).map_or(1.0, |(_, factor)| *factor);
        for (pause_start, pause_end) in &pauses[self.pause..] {
            if *pause_start >= end {
                break;
            }
            end += pause_end - pause_start.max(start);
        }
        end
    }
}

/// Random interruptions of a station. They are drawn as time passes, so memory is limited.
struct RandomInterruptions {
    /// Mean time from the end of one interruption to the beginning of the next, in seconds.
    between_s: f64,
    /// Mean length of an interruption, in seconds.
    length_s: f64,
    lengths: Sampler,
    /// Start and end of the interruptions that were drawn and have not ended, in seconds.
    drawn: VecDeque<(f64, f64)>,
    /// Time up to which interruptions were drawn, in seconds.
    until: f64,
}

impl RandomInterruptions {
    fn new(load: &InterruptionLoad) -> Result<RandomInterruptions, ModelError> {
        Ok(RandomInterruptions {
            between_s: 1.0 / load.hazard,
            length_s: load.mean,
            lengths: Sampler::new(Service::Standard, load.scv, "")?,
            drawn: VecDeque::new(),
            until: 0.0,
        })
    }

    /// The time at which a service ends that starts at `start` and would end at `end` without interruptions. Services
    /// must start in ascending order of time.
    fn delayed(&mut self, start: f64, mut end: f64, rng: &mut Pcg64Mcg) -> f64 {
        while self.drawn.front().is_some_and(|(_, ended)| *ended <= start) {
            self.drawn.pop_front();
        }
        let mut index = 0;
        loop {
            if index == self.drawn.len() {
                let begin = self.until + self.between_s * Sampler::Exponential.sample(rng);
                self.until = begin + self.length_s * self.lengths.sample(rng);
                self.drawn.push_back((begin, self.until));
            }
            let (begin, ended) = self.drawn[index];
            if begin >= end {
                return end;
            }
            end += (ended - begin.max(start)).max(0.0);
            index += 1;
        }
    }
}

/// One completed request of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletedRequest {
    /// Time of arrival, in seconds.
    pub began: f64,
    /// Index of the request's class.
    pub class: usize,
    /// Response time, in seconds.
    pub response: f64,
}

/// Simulates requests that pass through the model's stations. Each arrival has a time in seconds and the index of its
/// class. Arrivals are in order of time. The rates of the model's classes determine the mean idle share of the servers.
/// The additional time of requests that find idle servers may depend on this share.
///
/// # Errors
/// When the model is invalid, or the first station has interruptions and `slowness` has pauses.
pub fn trajectory<A: IntoIterator<Item = (f64, usize)>>(
    model: &Model,
    slowness: HostSlowness,
    seed: u64,
    arrivals: A,
) -> Result<impl Iterator<Item = CompletedRequest> + use<A>, ModelError> {
    Network::unchecked_stability(model)?;
    let rates: Vec<f64> = model.classes.iter().map(|class| class.rate.unwrap_or(0.0)).collect();
    let is_interrupted = model.stations.first().is_some_and(|station| station.interruptions.is_some());
    if is_interrupted && !slowness.pauses.is_empty() {
        let text = "the first station has interruptions, and pauses of its host are given: leave out one of them";
        return Err(ModelError::Inconsistent(text.into()));
    }
    let line = |(station, demands): (&Station, &Vec<f64>)| Line::new(station, demands, &rates);
    let mut lines = model.stations.iter().zip(&model.demands).map(line).collect::<Result<Vec<_>, _>>()?;
    let mut rng = Pcg64Mcg::new(u128::from(seed) << 64 | 0x5851_f42d_4c95_7f2d);
    let mut host = Host { slowness, step: 0, pause: 0 };
    Ok(arrivals.into_iter().map(move |(began, class)| {
        let mut at = began;
        for (index, line) in lines.iter_mut().enumerate() {
            at = line.pass(at, class, &mut rng, (index == 0).then_some(&mut host));
        }
        CompletedRequest { began, class, response: at - began }
    }))
}

/// The state of one station during the simulation.
struct Line {
    /// The time at which each server becomes free; empty for a delay.
    free: Vec<f64>,
    demands: Vec<f64>,
    /// Additional demand, in seconds, of a request that finds all servers idle. If only a share of the servers is idle,
    /// the additional demand is this value times the share. It is multiplied by the same random factor as the service
    /// time.
    waking: f64,
    /// Factor by which background work prolongs service: 1/(1 − b), if it uses the share b of the capacity.
    stretch: f64,
    service: Sampler,
    interruptions: Option<RandomInterruptions>,
}

impl Line {
    fn new(station: &Station, demands: &[f64], rates: &[f64]) -> Result<Line, ModelError> {
        let queue = station.kind == StationKind::Queue;
        let under_load = station_demands(station, demands, rates);
        let busy: f64 = under_load.iter().zip(rates).map(|(demand, rate)| demand * rate).sum();
        let load = InterruptionLoad::new(station, demands, rates, &[]);
        let running = 1.0 - load.as_ref().map_or(0.0, |load| load.share);
        let available = (1.0 - station.background) * running;
        let idle = (available - busy / f64::from(station.servers)).max(0.0);
        let cost = station.idle_cost.unwrap_or_default();
        // By the law of `idle_law`, the mean additional demand is w·Iᵖ. An arriving request finds the share I/((1 −
        // b)(1 − σ)) of the servers idle, because background work is not simulated.
        let waking = cost.seconds.max(0.0) * idle.powi(cost.power as i32 - 1) * available;
        Ok(Line {
            free: if queue { vec![f64::NEG_INFINITY; station.servers as usize] } else { Vec::new() },
            // A cost below 0 reduces the demand of every request at low load.
            demands: if cost.seconds < 0.0 { under_load } else { demands.to_vec() },
            waking,
            stretch: if queue { 1.0 / (1.0 - station.background) } else { 1.0 },
            service: Sampler::new(Service::Standard, station.scv, &station.name)?,
            interruptions: load.as_ref().map(RandomInterruptions::new).transpose()?,
        })
    }

    /// The time at which a request that arrives at `at` leaves the station. Only a station with a `host` has a variable
    /// speed.
    fn pass(&mut self, at: f64, class: usize, rng: &mut Pcg64Mcg, host: Option<&mut Host>) -> f64 {
        let demand = self.demands.get(class).copied().unwrap_or(0.0);
        if demand == 0.0 {
            return at;
        }
        let idle = self.free.iter().filter(|free| **free <= at).count() as f64;
        let waking = self.waking * idle / self.free.len().max(1) as f64;
        let Some(free) = self.free.iter_mut().min_by(|a, b| a.total_cmp(b)) else {
            return at + demand * self.service.sample(rng);
        };
        let start = free.max(at);
        let seconds = (demand + waking) * self.service.sample(rng) * self.stretch;
        let end = host.map_or(start + seconds, |host| host.serve(start, seconds));
        *free = self.interruptions.as_mut().map_or(end, |interruptions| interruptions.delayed(start, end, rng));
        *free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Method, solve_open};
    use brimful_core::model::{IdleCost, ModelClass, Scheduling};
    use rand::RngExt;

    fn server(rate: f64, scv: f64, idle_cost: Option<IdleCost>) -> Model {
        let cpu = Station { scheduling: Scheduling::Fcfs, scv, idle_cost, ..Station::default() };
        Model {
            stations: vec![cpu, Station { kind: StationKind::Delay, scv: 0.0, ..Station::default() }],
            classes: vec![ModelClass { rate: Some(rate), ..ModelClass::default() }],
            demands: vec![vec![0.001], vec![0.002]],
            ..Model::default()
        }
    }

    fn poisson(rate: f64, until: f64) -> impl Iterator<Item = (f64, usize)> {
        let (mut rng, mut at) = (Pcg64Mcg::new(7), 0.0);
        std::iter::from_fn(move || {
            at -= (-rng.random::<f64>()).ln_1p() / rate;
            (at < until).then_some((at, 0))
        })
    }

    fn mean(sojourns: impl Iterator<Item = CompletedRequest>) -> f64 {
        let (sum, n) = sojourns.fold((0.0, 0), |(sum, n), s| (sum + s.response, n + 1));
        sum / f64::from(n)
    }

    #[test]
    fn without_slowness_response_times_match_the_solver() {
        for (rate, scv) in [(300.0, 1.0), (800.0, 0.0), (700.0, 3.0)] {
            let model = server(rate, scv, None);
            let predicted = solve_open(&model, Method::Auto).unwrap().mean_response_time;
            let found = mean(trajectory(&model, HostSlowness::default(), 1, poisson(rate, 2_000.0)).unwrap());
            assert!((found / predicted - 1.0).abs() < 0.03, "{rate} {scv}: {found} {predicted}");
        }
    }

    /// A share 1 − U of the requests finds the server idle and takes S₀ seconds; all others take S seconds. The mean
    /// wait is then λ·E[s²]/(2(1 − λS)), where s is the service time of any request.
    #[test]
    fn only_requests_that_find_the_server_idle_take_longer() {
        let (rate, s, s0) = (700.0, 0.001, 0.0015);
        let model = server(rate, 0.0, Some(IdleCost { seconds: s0 - s, power: 1 }));
        let idle = 1.0 - rate * s0 / (1.0 - rate * (s - s0));
        let squares = idle * s0 * s0 + (1.0 - idle) * s * s;
        let predicted = 0.002 + s + idle * (s0 - s) + rate * squares / 2.0 / (1.0 - rate * s);
        let found = mean(trajectory(&model, HostSlowness::default(), 1, poisson(rate, 2_000.0)).unwrap());
        assert!((found / predicted - 1.0).abs() < 0.02, "{found} {predicted}");
    }

    #[test]
    fn waking_a_server_with_background_work_takes_as_long_as_the_model_says() {
        for (rate, power) in [(1.0, 1), (1.0, 2), (200.0, 1)] {
            let mut model = server(rate, 1.0, Some(IdleCost { seconds: 0.0005, power }));
            model.stations[0].background = 0.4;
            let predicted = solve_open(&model, Method::Auto).unwrap().mean_response_time;
            let duration = 200_000.0 / rate;
            let found = mean(trajectory(&model, HostSlowness::default(), 1, poisson(rate, duration)).unwrap());
            assert!((found / predicted - 1.0).abs() < 0.03, "{rate} {power}: {found} {predicted}");
        }
    }

    /// Pauses of 30 ms that begin at random, once per second, act like requests of higher priority that interrupt
    /// service. The mean response time is then R = S/(1 − σ) + (λ·E[S²] + ν·E[L²])/(2(1 − σ)(1 − σ − ρ)) (Jaiswal
    /// 1968). ν is the rate, L the length and σ the time share of the pauses.
    #[test]
    fn random_pauses_are_like_more_urgent_requests() {
        let (rate, s, length, pauses_per_s) = (600.0, 0.001, 0.03, 1.0);
        let (pauses_busy, busy) = (pauses_per_s * length, rate * s);
        let squares = rate * 2.0 * s * s + pauses_per_s * length * length;
        let predicted =
            0.002 + s / (1.0 - pauses_busy) + squares / (2.0 * (1.0 - pauses_busy) * (1.0 - pauses_busy - busy));
        let mut rng = Pcg64Mcg::new(11);
        let mut at = 0.0;
        let pauses: Vec<(f64, f64)> = std::iter::from_fn(|| {
            at -= (-rng.random::<f64>()).ln_1p() / pauses_per_s;
            (at < 2_000.0).then_some((at, length))
        })
        .collect();
        let slowness = HostSlowness::default().with_pauses(pauses);
        let found = mean(trajectory(&server(rate, 1.0, None), slowness, 1, poisson(rate, 2_000.0)).unwrap());
        assert!((found / predicted - 1.0).abs() < 0.05, "{found} {predicted}");
    }

    #[test]
    fn a_pause_delays_the_requests_that_it_meets() {
        let slowness = HostSlowness::default().with_pauses([(1.0, 0.1), (2.0, 0.1), (2.05, 0.1)]);
        // Four requests arrive: during the first pause, right after it, just before the second pause, and long after
        // all pauses. The third pause would begin during the second one, so it begins when the second one ends.
        let arrivals = [1.04, 1.1005, 1.9995, 3.0].map(|at| (at, 0));
        let found: Vec<f64> =
            trajectory(&server(100.0, 0.0, None), slowness, 1, arrivals).unwrap().map(|s| s.response).collect();
        for (found, expected) in found.iter().zip([0.063, 0.0035, 0.203, 0.003]) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
    }

    #[test]
    fn services_that_start_in_a_slow_interval_take_longer() {
        let model = server(100.0, 0.0, None);
        let slowness = HostSlowness::from_intervals([(1.0, 1.0), (0.5, 3.0), (1.0, 1.0)]);
        let arrivals = [0.5, 1.0, 1.4, 2.0].map(|at| (at, 0));
        let found: Vec<f64> = trajectory(&model, slowness, 1, arrivals).unwrap().map(|s| s.response).collect();
        for (found, expected) in found.iter().zip([0.003, 0.005, 0.005, 0.003]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }
}
