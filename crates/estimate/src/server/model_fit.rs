//! A fitted queueing model of a server, and its predictions for a load.

use super::blocks::ServerFacts;
use super::full::PoolKind;
use super::pauses::Pauses;
use super::slowness::{CAUTION, ExpectedCost, drift_share};
use crate::EstimateError;
use crate::window::RunStretch;
use brimful_core::model::{Model, Station, StationKind};
use brimful_core::survey::CostFormula;
use brimful_model::{HostSlowness, station_demands, trajectory};

/// Number of simulations of the same arrivals, each with other random service times.
const REPLAYS: u64 = 5;

/// A queueing model of a server that was fitted to calibration measurements.
#[derive(Clone, Debug)]
pub(super) struct ModelFit {
    /// The queueing network with one request of the mix per second, without the server's pauses.
    pub network: Model,
    /// The CPUs as a station. They are a station of `network` only if calls wait for the CPUs.
    pub cpu: CpuFit,
    /// Squared coefficient of variation of the CPU times of calls within a class. It determines how much the CPU time
    /// in short intervals varies at random. The `scv` of the network's station determines waiting times and may differ.
    pub service_scv: f64,
    /// Measured 50th, 95th and 99th percentiles of the response time, divided by the predicted percentiles.
    pub percentile_ratios: [f64; 3],
    /// The server's pauses, which interrupt the first station of the network.
    pub pauses: Pauses,
    /// The tested laws of how the CPU cost of a call depends on the load, the best one first.
    pub laws: Vec<CostFormula>,
    /// The discrete properties of the resource that is the bottleneck; `None` if the CPUs are the bottleneck.
    pub pool_kind: Option<PoolKind>,
    /// Name of the station that is the bottleneck.
    pub bottleneck: String,
    /// Text for the report: the measurements that show why this station is the bottleneck.
    pub evidence: String,
}

/// The CPUs as a queueing station, and the service demands at this station.
#[derive(Clone, Debug)]
pub(super) struct CpuFit {
    /// The queueing station of the CPUs.
    pub station: Station,
    /// Demand of each request class at saturation, in seconds.
    pub demands: Vec<f64>,
    /// Whether the demands are measurements of the Server Module.
    pub is_from_module: bool,
}

/// Mean and percentiles of the response times during a measurement, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResponseSummary {
    /// Mean response time of all calls.
    pub mean: f64,
    /// 50th, 95th and 99th percentiles of the response times of all calls.
    pub percentiles: [f64; 3],
}

impl ResponseSummary {
    /// Summarizes predicted response times. Each percentile is multiplied by its ratio in `percentile_ratios`. Returns
    /// `None` if there are no response times.
    pub(super) fn new(mut times: Vec<f64>, percentile_ratios: [f64; 3]) -> Option<ResponseSummary> {
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        times.sort_unstable_by(f64::total_cmp);
        let percentile = |(q, factor): (f64, f64)| factor * quantile(&times, q);
        let [p50, p95, p99] = percentile_ratios;
        (!times.is_empty())
            .then(|| ResponseSummary { mean, percentiles: [(0.5, p50), (0.95, p95), (0.99, p99)].map(percentile) })
    }
}

/// The quantile `q` (0 to 1) of values in ascending order. There must be at least one value.
pub(super) fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((sorted.len() as f64 * q) as usize).min(sorted.len() - 1)]
}

impl ModelFit {
    /// Whether calls wait for the CPUs, so that the CPUs are a station of the network. False if calls wait for workers
    /// or for another resource that they hold while they use the CPUs.
    pub fn waits_for_cpu(&self) -> bool {
        self.network.stations[0].name == self.cpu.station.name
    }

    /// The same model with another squared coefficient of variation of the delay outside of the stations.
    pub fn with_delay_scv(mut self, scv: f64) -> ModelFit {
        if let Some(elsewhere) = self.network.stations.last_mut() {
            elsewhere.scv = scv;
        }
        self
    }

    /// Saturation rate for requests with the class shares `mix`, in requests per second.
    pub fn saturation(&self, mix: &[f64]) -> f64 {
        let mean = |demands: &[f64]| mix.iter().zip(demands).map(|(share, demand)| share * demand).sum::<f64>();
        let capacity = |(station, demands): (&Station, &Vec<f64>)| {
            f64::from(station.servers) * (1.0 - station.background) / mean(demands)
        };
        let queues = self.network.stations.iter().zip(&self.network.demands);
        let mut capacities =
            queues.filter(|(station, _)| station.kind == StationKind::Queue).map(capacity).collect::<Vec<f64>>();
        if let Some(first) = capacities.first_mut() {
            *first = self.pauses.capacity(*first);
        }
        capacities.into_iter().fold(f64::INFINITY, f64::min)
    }

    /// Utilization of the CPUs by the server's processes, if requests with the class shares `mix` arrive at `rate` per
    /// second. All CPU times are multiplied by `slowness`.
    pub fn utilization(&self, facts: &ServerFacts, rate: f64, mix: &[f64], slowness: f64) -> f64 {
        let rates: Vec<f64> = mix.iter().map(|share| rate * share).collect();
        let demands = station_demands(&self.cpu.station, &self.cpu.demands, &rates);
        let work: f64 = demands.iter().zip(&rates).map(|(demand, rate)| demand * rate).sum();
        let servers = f64::from(facts.servers);
        let calls = (work * slowness).min(servers * (1.0 - self.cpu.station.background));
        let pauses = self.pauses.busy * self.pauses.share_at(rate);
        ((facts.idle_busy + calls + pauses) / servers).min(1.0)
    }

    /// Squared coefficient of variation of the CPU time of a request, over all classes with the shares `mix`.
    pub fn variability(&self, mix: &[f64]) -> f64 {
        let demands = &self.network.demands[0];
        let moment = |k: i32| mix.iter().zip(demands).map(|(share, demand)| share * demand.powi(k)).sum::<f64>();
        (1.0 + self.service_scv) * moment(2) / moment(1).powi(2) - 1.0
    }

    /// The network with `rate` requests per second and the class shares `mix`. Pauses interrupt its first station.
    pub fn model_with_pauses(&self, rate: f64, mix: &[f64]) -> Model {
        let mut model = self.model_at(rate, mix);
        model.stations[0].interruptions = self.pauses.interruptions();
        model
    }

    /// The network with `rate` requests per second and the class shares `mix`, without the server's pauses.
    pub fn model_at(&self, rate: f64, mix: &[f64]) -> Model {
        let mut model = self.network.clone();
        model.classes.iter_mut().zip(mix).for_each(|(class, share)| class.rate = Some(rate * share));
        model
    }

    /// The expected CPU cost of a call as a function of the load. At `rate` calls per second, the mean cost is `mean`
    /// CPU seconds; at saturation, it is `saturated` CPU seconds.
    pub fn expected_cost(&self, facts: &ServerFacts, saturated: f64, mean: f64, rate: f64) -> ExpectedCost {
        let servers = f64::from(facts.servers);
        let free = 1.0 - self.cpu.station.background;
        let idle = (free - rate * mean / servers).max(0.0);
        ExpectedCost { saturated, mean, idle, free, servers, idle_busy: facts.idle_busy }
    }

    /// The slowness of the host over time: the ratio of the CPU time of a request to the model's prediction, for each
    /// short interval in `stretches`. `None` if there are no intervals.
    pub fn host_slowness(
        &self,
        facts: &ServerFacts,
        stretches: &[RunStretch],
        rate: f64,
        mix: &[f64],
    ) -> Option<HostSlowness> {
        let rates: Vec<f64> = mix.iter().map(|share| rate * share).collect();
        let mean = |demands: &[f64]| demands.iter().zip(mix).map(|(demand, share)| demand * share).sum::<f64>();
        let demands = &self.cpu.demands;
        let demands_here = station_demands(&self.cpu.station, demands, &rates);
        let expected = self.expected_cost(facts, mean(demands), mean(&demands_here), rate);
        let seen: Vec<(f64, f64, f64)> = stretches.iter().map(|s| (s.seconds, expected.slowness(s), s.calls)).collect();
        let level = seen.iter().map(|(seconds, slowness, _)| seconds * slowness).sum::<f64>()
            / seen.iter().map(|(seconds, ..)| seconds).sum::<f64>();
        // In an interval with few calls, the mean CPU time also deviates because calls differ in their demands. This
        // deviation is removed, because the simulation of the calls adds it.
        let share = drift_share(seen.iter().map(|(_, s, calls)| (s / level, *calls)), self.variability(mix), CAUTION);
        let shrink = |(seconds, slowness, _): (f64, f64, f64)| (seconds, level + share * (slowness - level));
        let course: Vec<(f64, f64)> = seen.into_iter().map(shrink).collect();
        let start = stretches.first().map(|stretch| stretch.start_s).filter(|begins| *begins > 0.0);
        let before_start = start.zip(course.first().map(|(_, slowness)| *slowness));
        (!course.is_empty()).then(|| HostSlowness::from_intervals(before_start.into_iter().chain(course)))
    }

    /// Simulates calls with these arrivals (times in seconds, and classes). `course` has the factor by which the host
    /// slows the server down over time. Returns `None` if there are no arrivals.
    pub fn replay(
        &self,
        rate: f64,
        mix: &[f64],
        course: &HostSlowness,
        arrivals: &[(f64, usize)],
    ) -> Result<Option<ResponseSummary>, EstimateError> {
        let model = self.model_at(rate, mix);
        let mut times = Vec::with_capacity(arrivals.len() * REPLAYS as usize);
        for seed in 0..REPLAYS {
            let sojourns = trajectory(&model, course.clone(), seed, arrivals.iter().copied())?;
            times.extend(sojourns.map(|sojourn| sojourn.response));
        }
        Ok(ResponseSummary::new(times, self.percentile_ratios))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::model::{IdleCost, ModelClass, Scheduling};
    use brimful_model::{Method, solve};

    /// A model with one class and two stations, the CPUs and a constant delay. A call needs 1 ms of CPU time.
    fn fit(servers: u32, background: f64, idle_cost: Option<IdleCost>, pauses: Pauses) -> ModelFit {
        let station = Station {
            name: "cpu".into(),
            scheduling: Scheduling::Fcfs,
            servers,
            background,
            idle_cost,
            scv: 0.4,
            ..Station::default()
        };
        let delay = Station { kind: StationKind::Delay, scv: 0.0, ..Station::default() };
        let network = Model {
            stations: vec![station.clone(), delay],
            classes: vec![ModelClass { rate: Some(1.0), ..ModelClass::default() }],
            demands: vec![vec![0.001], vec![0.002]],
            ..Model::default()
        };
        ModelFit {
            network,
            cpu: CpuFit { station, demands: vec![0.001], is_from_module: false },
            service_scv: 0.4,
            percentile_ratios: [1.0; 3],
            pauses,
            laws: Vec::new(),
            pool_kind: None,
            bottleneck: "cpu".into(),
            evidence: String::new(),
        }
    }

    /// The model in the form of the document has the capacity of the fit. Its mean response time is that of a CPU
    /// without pauses that is slower by the share σ of time in pauses, plus ν·E[L²]·(1 − σ)/(2(1 − σ − ρ)), where ν is
    /// the rate of pauses, L their length, and ρ the utilization. The tolerance is a rounding error without an idle
    /// cost. With an idle cost, ρ depends on whether pauses count as idle time, so the tolerance is 1 %.
    #[test]
    fn the_written_model_has_the_capacity_and_the_response_times_of_the_fit() {
        let waking = IdleCost { seconds: 0.000_3, power: 2 };
        for (servers, background) in [(1, 0.0), (1, 0.2), (4, 0.1)] {
            for (idle_cost, tolerance) in [(None, 1e-9), (Some(waking), 0.01)] {
                let pauses = Pauses { per_second: 2.0, per_call: 0.0, lengths: vec![0.01, 0.02, 0.04], busy: 1.0 };
                let fit = fit(servers, background, idle_cost, pauses);
                let saturation = fit.saturation(&[1.0]);
                for load in [0.05, 0.5, 0.9] {
                    let rate = load * saturation;
                    let solved = solve(&fit.model_with_pauses(rate, &[1.0]), Method::Auto).unwrap();
                    assert!((solved.saturation_rate / saturation - 1.0).abs() < 1e-9, "{solved:?} {saturation}");
                    let mut slower = fit.model_at(rate, &[1.0]);
                    let running = 1.0 - fit.pauses.share_at(rate);
                    slower.stations[0].background = 1.0 - (1.0 - background) * running;
                    let without_waits = solve(&slower, Method::Auto).unwrap().mean_response_time;
                    let demand = station_demands(&slower.stations[0], &slower.demands[0], &[rate])[0];
                    let busy = rate * demand / f64::from(servers) / (1.0 - background);
                    // Mean and sample variance of the pause lengths 10, 20 and 40 ms.
                    let (mean, variance) = (0.07 / 3.0, 7.0 / 30_000.0);
                    let wait = 2.0 * (mean * mean + variance) * running / (2.0 * (running - busy));
                    let expected = without_waits + wait;
                    let error = solved.mean_response_time / expected - 1.0;
                    assert!(error.abs() < tolerance, "{servers} {background} {load}: {error}");
                }
            }
        }
    }

    /// The capacity that pauses per call take grows in proportion to the rate, in the fit and in the solver of the
    /// model.
    #[test]
    fn pauses_per_call_take_capacity_in_proportion_to_the_rate() {
        let pauses = Pauses { per_second: 1.0, per_call: 0.01, lengths: vec![0.02, 0.03], busy: 0.0 };
        for (servers, background) in [(1, 0.0), (4, 0.1)] {
            let fit = fit(servers, background, None, pauses.clone());
            let saturation = fit.saturation(&[1.0]);
            let capacity = f64::from(servers) * (1.0 - background) / 0.001;
            assert!((saturation / pauses.capacity(capacity) - 1.0).abs() < 1e-9);
            let solved = solve(&fit.model_with_pauses(0.5 * saturation, &[1.0]), Method::Auto).unwrap();
            assert!((solved.saturation_rate / saturation - 1.0).abs() < 1e-9, "{solved:?}");
            assert!(solve(&fit.model_with_pauses(1.001 * saturation, &[1.0]), Method::Auto).is_err());
        }
    }

    #[test]
    fn a_server_without_pauses_has_no_interruptions() {
        let fit = fit(1, 0.1, None, Pauses::default());
        assert_eq!(fit.model_with_pauses(300.0, &[1.0]), fit.model_at(300.0, &[1.0]));
    }
}
