//! A simulated server for tests of the survey's method, without a clock or a network. The simulator of `brimful-model`
//! processes the calls, and Records are made of them as in real runs. So the tests can compare the survey's results
//! with the true parameters of the server.
//!
//! The first station of the model represents the server's CPUs. A station `disk NAME` represents a disk of its host.
//! All other stations represent waiting outside of the server, for example for a backend. The first classes of the
//! model are the classes of the workload in the same order. The remaining classes are background work, with the rates
//! of the model.

mod broken;
mod connections;
mod duration;
mod full;
mod gentle;
mod holds;
mod module;
mod objectives;
mod pauses;
mod random;
mod repeat;

use self::module::SimulatedModule;
use crate::SurveyError;
use crate::bench::{Answer, Bench, IdleConnections, Pool};
use crate::design::RUN_SET_UP;
use crate::method::run_survey;
use crate::predictions::ON_OFF;
use crate::runner::SurveyEvent;
use crate::setup::{Change, ConnectionLimit, ConnectionPolicy, Header, ImpactLimits, PlannedChange, Setup};
use crate::survey::{DEFAULT_MAX_DELAY, DEFAULT_MAX_LOAD};
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_core::record::{ClientCalibration, Generator, Record};
use brimful_core::server::{CpuQuota, CpuShares, Disk, Kernel, Program, Server, ServerInterval};
use brimful_core::survey::Survey;
use brimful_core::workload::{Load, Workload};
use brimful_core::{Bytes, CallSpec, ClassId, End, Event, Nanos, Observer, Outcome};
use brimful_model::simulate::{Arrivals, SimulatedRequest, SimulationOptions, simulate_intervals};
use brimful_run::client_limit;
use brimful_stats::{Account, Collector, PerCall, RunFacts, derive};
use brimful_target::ReferenceCpuTimes;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::SystemTime;

/// Length of the intervals of the monitor and of a Record's time series, in seconds; the same as for a real server.
const INTERVAL_S: f64 = 0.031_25;

/// Response timeout of a call.
const TIMEOUT: Nanos = Nanos::from_secs(5);
/// Size of a response, in bytes.
const RESPONSE: u64 = 1_000;

/// A function that changes the server's model for an offered rate, which is ∞ for a closed load.
type UnderLoad = dyn Fn(&mut Model, f64);
/// A function that returns the slowness of the host during a run, from the run's start and duration in seconds. All CPU
/// times are multiplied by the slowness.
type Slowness = dyn FnMut(f64, f64) -> f64;
/// A function that returns how a call fails, from the offered rate and the number of the call; `None` if it succeeds.
type Failure = dyn Fn(f64, u64) -> Option<End>;

/// A simulated server, and a log of the loads and settings that the survey has used.
struct Simulated {
    /// The model of the server. The load determines the rates and populations of its first classes.
    server: Model,
    /// Number of the server's CPUs. It may differ from the number of servers of the first station, which represents
    /// workers.
    cpus: u32,
    /// Programs of the server: name, share of the server's CPU time, and number of processes.
    programs: Vec<(&'static str, f64, u64)>,
    /// Whether background work, such as garbage collection, is done by the server's own processes.
    own_work: bool,
    under_load: Box<UnderLoad>,
    slowness: Box<Slowness>,
    fails: Box<Failure>,
    /// Share of the time for which a CPU quota stops the server, as a function of the offered rate.
    throttled: Box<dyn Fn(f64) -> f64>,
    /// The change of the server that the survey makes and measures at its end.
    change: Option<Change>,
    /// Share of the CPUs that a quota leaves to the server. The simulation multiplies the speed of each CPU by this
    /// share.
    cpu_share: f64,
    /// Whether the host does not permit a CPU quota.
    refuses_quota: bool,
    client_max: Option<f64>,
    /// Whether the client's maximum rate may be higher than `client_max`.
    client_may_offer_more: bool,
    module: Option<SimulatedModule>,
    /// Number of connections that the server serves at the same time, if it dedicates a worker to each connection;
    /// otherwise `None`.
    workers_for_connections: Option<u64>,
    /// CPU time of a call in open loads without a connection pool, as a multiple of that with a pool.
    cost_without_pool: f64,
    /// Whether only the responses of the server can be observed.
    is_black_box: bool,
    /// Number of threads of all programs, minus the number of their processes.
    more_threads: u64,
    /// HTTP status of the responses.
    status: u16,
    /// The connections that the survey chose, in order of time.
    pools: Vec<Pool>,
    seed: u64,
    /// Maximum delay of other clients' calls. If it is set, the survey limits its load even after calibration.
    max_delay: Option<Nanos>,
    /// Number of runs after which the server process ends.
    lives: usize,
    /// The loads that were offered. A test can read the shared list during the survey.
    offered: Rc<RefCell<Vec<Load>>>,
    /// Duration and CPU time of each load in `offered`, in seconds.
    worked: Vec<(f64, f64)>,
    /// Durations of the pauses without load.
    rested: Vec<Nanos>,
    /// Total simulated duration of the survey.
    spent: Nanos,
    /// The seeds of the loads, in the order of `offered`.
    seeds: Vec<u64>,
    last_seed: u64,
    /// The calls of the last run: arrival times in seconds, and classes.
    last_calls: Vec<(f64, usize)>,
}

impl Simulated {
    /// A server without background work or failures. `demands` are stations × classes, in seconds.
    fn new(stations: Vec<Station>, demands: Vec<Vec<f64>>) -> Simulated {
        let class = |index| ModelClass { name: format!("class {index}"), ..ModelClass::default() };
        Simulated {
            cpus: stations[0].servers,
            server: Model {
                classes: (0..demands[0].len()).map(class).collect(),
                stations,
                demands,
                ..Model::default()
            },
            programs: vec![("server", 1.0, 1)],
            own_work: false,
            under_load: Box::new(|_, _| ()),
            slowness: Box::new(|_, _| 1.0),
            fails: Box::new(|_, _| None),
            throttled: Box::new(|_| 0.0),
            change: None,
            cpu_share: 1.0,
            refuses_quota: false,
            client_max: Some(1e6),
            client_may_offer_more: false,
            module: None,
            workers_for_connections: None,
            cost_without_pool: 1.0,
            is_black_box: false,
            more_threads: 0,
            status: 200,
            pools: Vec::new(),
            seed: 1,
            max_delay: None,
            lives: usize::MAX,
            offered: Rc::default(),
            worked: Vec::new(),
            rested: Vec::new(),
            spent: Nanos::ZERO,
            seeds: Vec::new(),
            last_seed: 0,
            last_calls: Vec::new(),
        }
    }

    /// A server with one station and one class.
    fn single_class(station: Station, demand_s: f64) -> Simulated {
        Simulated::new(vec![station], vec![vec![demand_s]])
    }

    /// Adds background work on the CPUs, which has priority over the calls: `rate` jobs per second of `demand_s`
    /// seconds each.
    fn with_other_work(mut self, rate: f64, demand_s: f64) -> Simulated {
        self.server.stations[0].scheduling = Scheduling::Preemptive;
        self.server.classes.iter_mut().for_each(|class| class.priority = 1);
        self.server.classes.push(ModelClass { name: "other".to_owned(), rate: Some(rate), ..ModelClass::default() });
        self.server.demands.iter_mut().for_each(|row| row.push(0.0));
        if let Some(demand) = self.server.demands[0].last_mut() {
            *demand = demand_s;
        }
        self
    }

    /// The server's model under this load, on a host with this slowness.
    fn under_load(&self, workload: &Workload, slowness: f64) -> Model {
        let mut model = self.server.clone();
        let mix = workload.mix();
        let (rate, closed) = match workload.load {
            Some(Load::Open { rate, .. }) => (rate.0, None),
            Some(Load::Closed { clients, think }) => (f64::INFINITY, Some((clients, think))),
            ref other => panic!("no survey offers {other:?}"),
        };
        let mut populations = closed.map(|(clients, _)| divide_clients(clients, &mix)).unwrap_or_default().into_iter();
        for (class, share) in model.classes.iter_mut().zip(&mix) {
            (class.rate, class.population) = match populations.next() {
                None => (Some(rate * share), None),
                Some(0) => (Some(0.0), None),
                Some(clients) => (None, Some(clients)),
            };
            if let (Some((_, think)), Some(_)) = (closed, class.population) {
                (class.kind, class.think) = (ClassKind::Closed, think.as_secs_f64());
            }
        }
        (self.under_load)(&mut model, rate);
        let has_pool = self.pools.last().is_none_or(|pool| pool.size.is_some());
        let cost = if has_pool || closed.is_some() { 1.0 } else { self.cost_without_pool };
        model.demands[0].iter_mut().for_each(|demand| *demand *= slowness * cost / self.cpu_share);
        model
    }

    /// Surveys the server. `level_s` is the duration of the measurement of a load level (`--level`), in seconds.
    fn survey(&mut self, mix: &[f64], level_s: f64) -> Survey {
        self.survey_with(mix, level_s, &mut |_| ())
    }

    fn survey_with(&mut self, mix: &[f64], level_s: f64, listener: &mut dyn FnMut(SurveyEvent)) -> Survey {
        run_survey(&self.setup(mix, level_s), self, listener).unwrap()
    }

    fn setup(&self, mix: &[f64], level_s: f64) -> Setup {
        let class = |(model, weight): (&ModelClass, &f64)| brimful_core::workload::RequestClass {
            name: model.name.clone(),
            weight: *weight,
            ..Workload::single_class("GET", "/").classes.remove(0)
        };
        Setup {
            header: Header {
                started_at: SystemTime::UNIX_EPOCH,
                version: String::new(),
                command: Vec::new(),
                url: "http://simulated/".to_owned(),
            },
            seed: self.seed,
            workload: Workload {
                classes: self.server.classes.iter().zip(mix).map(class).collect(),
                load: None,
                tls: None,
            },
            server_cpus: (0..if self.is_black_box { 0 } else { self.cpus as usize }).collect(),
            client_cpus: Vec::new(),
            level_duration: Nanos::from_secs_f64(level_s),
            objectives: Vec::new(),
            thorough: true,
            impact_limits: ImpactLimits {
                max_load: DEFAULT_MAX_LOAD,
                max_delay: self.max_delay.unwrap_or(DEFAULT_MAX_DELAY),
                applies_after_calibration: self.max_delay.is_some(),
            },
            change: self.change.map(|change| PlannedChange { change, optional: false }),
            connections: ConnectionPolicy { limit: ConnectionLimit::Pool, one_call_each: false, opened_ahead: false },
            shards: None,
        }
    }

    /// The monitor's report. For each interval, `intervals` has the number of CPUs that the server keeps busy, and the
    /// number that other programs keep busy.
    fn monitored(&self, intervals: Vec<(f64, f64)>, length_s: f64, disks: BTreeMap<String, Disk>) -> Server {
        let n = intervals.len().max(1) as f64;
        let mean = |figure: fn(&(f64, f64)) -> f64| intervals.iter().map(figure).sum::<f64>() / n;
        let own = mean(|interval| interval.0);
        let others = mean(|interval| interval.1);
        let program = |(name, share, processes): &(&str, f64, u64)| Program {
            name: (*name).to_owned(),
            cores: own * share,
            processes: *processes,
            threads: Some(*processes + self.more_threads),
            ..Program::default()
        };
        let interval = |(index, (own, others)): (usize, &(f64, f64))| ServerInterval {
            t_s: index as f64 * length_s,
            length_s,
            cpu: Some(self.shares(*own, *others)),
            process_cores: Some(*own),
            ..ServerInterval::default()
        };
        Server {
            kernel: Kernel {
                cpu: Some(self.shares(own, others)),
                cpus: (0..self.cpus as usize).collect(),
                disks,
                ..Kernel::default()
            },
            process: self.programs.iter().map(program).collect(),
            intervals: intervals.iter().enumerate().map(interval).collect(),
            ..Server::default()
        }
    }

    /// Shares of CPU time. `own` is the number of CPUs that the server keeps busy, and `others` the number that other
    /// programs keep busy.
    fn shares(&self, own: f64, others: f64) -> CpuShares {
        let share = |busy: f64| busy / f64::from(self.cpus);
        CpuShares { user: share(own), system: share(others), idle: 1.0 - share(own + others), ..CpuShares::default() }
    }

    /// The numbers of CPUs that the server and other programs keep busy. `work` is the CPU time of each class in
    /// seconds: first the `calls` classes of the workload, then background work.
    fn busy(&self, calls: usize, work: &[f64], length_s: f64) -> (f64, f64) {
        let sum = |work: &[f64]| work.iter().sum::<f64>() / length_s * self.cpu_share;
        let station = &self.server.stations[0];
        let background = station.background * f64::from(station.servers);
        let (calls, other) = work.split_at(calls);
        if self.own_work { (sum(calls) + sum(other), background) } else { (sum(calls), sum(other) + background) }
    }
}

impl Bench for Simulated {
    fn client_limit(
        &mut self,
        response: Bytes,
        needed: Option<f64>,
        _: &mut dyn FnMut(String),
    ) -> Result<ClientCalibration, SurveyError> {
        assert_eq!(response, Bytes(RESPONSE));
        self.spent += client_limit::typical_duration(needed);
        let (max_rate, lower_bound) = (self.client_max, self.client_may_offer_more);
        Ok(ClientCalibration { max_rate, lower_bound, ..ClientCalibration::default() })
    }

    fn answer(&mut self) -> Result<Option<Answer>, SurveyError> {
        let location = Some("https://simulated/".to_owned());
        Ok(Some(Answer { status: self.status, location, sets_cookie: false }))
    }

    fn open_idle_connections(&mut self, hold: &IdleConnections) -> Result<u64, SurveyError> {
        self.spent += hold.opening_time;
        Ok(self.workers_for_connections.map_or(hold.connections, |workers| workers.min(hold.connections)))
    }

    fn use_connections(&mut self, pool: Pool) -> Result<(), SurveyError> {
        self.pools.push(pool);
        Ok(())
    }

    fn watch_idle(&mut self, duration: Nanos) -> Result<Server, SurveyError> {
        self.spent += duration;
        let mut model = self.server.clone();
        let calls = model.classes.iter().position(|class| class.name == "other").unwrap_or(model.classes.len());
        model.classes[..calls].iter_mut().for_each(|class| class.rate = Some(0.0));
        let intervals = (duration.as_secs_f64() / INTERVAL_S).round() as usize;
        let mut busy = vec![self.busy(0, &[], INTERVAL_S); intervals];
        if model.classes.get(calls).is_some_and(|other| other.rate > Some(0.0)) {
            busy.clear();
            simulate_intervals(&model, &SimulationOptions::default(), INTERVAL_S, |episode| {
                busy.push(self.busy(calls, &episode.work[0], INTERVAL_S));
                busy.len() < intervals
            })
            .unwrap();
        }
        Ok(self.monitored(busy, INTERVAL_S, BTreeMap::new()))
    }

    fn measure(&mut self, workload: &Workload, window: Nanos, seed: u64) -> Result<Record, SurveyError> {
        let load = workload.load.clone().unwrap();
        let rate = if let Load::Open { rate, .. } = load { rate.0 } else { f64::INFINITY };
        if let (Load::Closed { clients, .. }, Some(workers)) = (&load, self.workers_for_connections) {
            assert!(*clients <= workers, "{clients} clients are too many for {workers} workers");
        }
        let arrivals = if is_on_off(&load) { vec![ON_AND_OFF; self.server.classes.len()] } else { Vec::new() };
        self.seeds.push(seed);
        self.last_seed = seed;
        self.last_calls = Vec::new();
        let slowness = (self.slowness)(self.spent.as_secs_f64(), window.as_secs_f64());
        self.spent += window + RUN_SET_UP;
        self.offered.borrow_mut().push(load);
        let names: Vec<String> = workload.classes.iter().map(|class| class.name.clone()).collect();
        let account = Account::new(&names, window).with_interval_length(Nanos::from_secs_f64(INTERVAL_S));
        let mut calls = Calls { collector: Collector::new(account), window, last: window, number: 0 };
        let mut intervals = Vec::new();
        let options = SimulationOptions { seed, arrivals, ..SimulationOptions::default() };
        let mut now = 0.0;
        let mut work = vec![0.0; self.server.stations.len()];
        let unfinished = simulate_intervals(&self.under_load(workload, slowness), &options, INTERVAL_S, |episode| {
            now += INTERVAL_S;
            if now < window.as_secs_f64() + INTERVAL_S / 2.0 {
                intervals.push(self.busy(names.len(), &episode.work[0], INTERVAL_S));
                episode.work.iter().zip(&mut work).for_each(|(by_class, all)| *all += by_class.iter().sum::<f64>());
            }
            let requests = episode.completed.into_iter().filter(|call| call.class < names.len());
            for call in requests {
                self.last_calls.push((call.began, call.class));
                let status = self.status;
                calls.ended(call, |number| (self.fails)(rate, number).or(Some(End::Completed { status })));
            }
            now < (window + TIMEOUT).as_secs_f64()
        });
        let unfinished = unfinished.unwrap().into_iter().filter(|call| call.class < names.len());
        for call in unfinished {
            self.last_calls.push((call.began, call.class));
            calls.ended(call, |_| None);
        }
        self.worked.push((window.as_secs_f64(), intervals.iter().map(|(own, _)| own * INTERVAL_S).sum()));
        self.last_calls.retain(|(began, _)| *began < window.as_secs_f64());
        self.last_calls.sort_by(|a, b| a.0.total_cmp(&b.0));
        let seconds = INTERVAL_S * intervals.len() as f64;
        let disk = |(station, work): (&Station, &f64)| {
            let name = station.name.strip_prefix("disk ")?;
            Some((name.to_owned(), Disk { utilization: work / seconds, ..Disk::default() }))
        };
        let disks = self.server.stations.iter().zip(&work).filter_map(disk).collect();
        let mut server = self.monitored(intervals, INTERVAL_S, disks);
        server.module = self.module.map(|module| module.measurements(&self.server, &self.last_calls, &work, seconds));
        let throttled = (self.throttled)(rate);
        server.process[0].quota = (throttled > 0.0).then(|| CpuQuota {
            group: "/sys/fs/cgroup/web".to_owned(),
            cpus: 0.5,
            throttled_periods: 1.0,
            throttled_s: throttled * window.as_secs_f64(),
        });
        let facts = RunFacts {
            started_at: String::new(),
            started_monotonic_ns: 0,
            duration: calls.last,
            window,
            command: Vec::new(),
            target: String::new(),
            workload: Some(workload.clone()),
            seed,
            interrupted: false,
            stopped_by: None,
            warm_up_s: None,
            generator: Generator {
                max_rate: self.client_max.filter(|_| !self.client_may_offer_more),
                threads: 1,
                ..Generator::default()
            },
            server: Some(server).filter(|_| !self.is_black_box),
            http: None,
            tls: None,
            wants_tls: false,
            shards: Vec::new(),
            ..RunFacts::default()
        };
        Ok(derive(&calls.collector.into_account(), facts))
    }

    fn schedule(&self, workload: &Workload, window: Nanos, seed: u64) -> Result<Vec<(f64, usize)>, SurveyError> {
        if seed == self.last_seed {
            return Ok(self.last_calls.clone());
        }
        let Some(load @ Load::Open { rate, .. }) = &workload.load else { panic!("no schedule of {workload:?}") };
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut calls = Vec::new();
        let mut now = 0.0;
        let mut is_on = false;
        let mut switch_at = 0.0;
        let mix = workload.mix();
        while now < window.as_secs_f64() {
            if is_on_off(load) && now >= switch_at {
                is_on = !is_on;
                switch_at = now - 0.2 * (-rng.random::<f64>()).ln_1p();
            }
            let factor = if !is_on_off(load) {
                1.0
            } else if is_on {
                1.6
            } else {
                0.4
            };
            let next = now - (-rng.random::<f64>()).ln_1p() / (rate.0 * factor);
            if is_on_off(load) && next > switch_at {
                now = switch_at;
                continue;
            }
            now = next;
            let mut remaining = rng.random::<f64>();
            let class = mix.iter().position(|share| {
                remaining -= share;
                remaining < 0.0
            });
            calls.push((now, class.unwrap_or(mix.len() - 1)));
        }
        calls.retain(|(due, _)| *due < window.as_secs_f64());
        Ok(calls)
    }

    fn set_cpu_quota(&mut self, cpus: Option<f64>) -> Result<(), SurveyError> {
        if self.refuses_quota {
            return Err(SurveyError::NotSurveyable("not here".to_owned()));
        }
        self.cpu_share = cpus.map_or(1.0, |cpus| cpus / f64::from(self.cpus));
        Ok(())
    }

    fn rest(&mut self, duration: Nanos) {
        self.rested.push(duration);
        self.spent += duration;
    }

    fn is_alive(&self) -> bool {
        self.offered.borrow().len() <= self.lives
    }

    fn is_interrupted(&self) -> bool {
        false
    }

    fn reference_cpu_times(&self) -> Option<ReferenceCpuTimes> {
        None
    }
}

/// The arrivals of the text [`ON_OFF`], as the simulator's type.
const ON_AND_OFF: Arrivals = Arrivals::Mmpp { rates: [1.6, 0.4], switching: [5.0, 5.0] };

fn is_on_off(load: &Load) -> bool {
    matches!(load, Load::Open { arrivals, .. } if arrivals == ON_OFF)
}

/// Converts simulated calls to the events of a real load generator.
struct Calls {
    collector: Collector,
    window: Nanos,
    /// Time at which the last call ended.
    last: Nanos,
    /// Number of calls so far.
    number: u64,
}

impl Calls {
    /// Records the end of a call, unless the call was due after the window. `failure` returns how the call with this
    /// number fails; `None` if it succeeds.
    fn ended(&mut self, call: SimulatedRequest, failure: impl Fn(u64) -> Option<End>) {
        let class = ClassId(call.class as u16);
        let due = Nanos::from_secs_f64(call.began);
        if due >= self.window {
            return;
        }
        self.number += 1;
        let in_time = call.ended.map(Nanos::from_secs_f64).filter(|ended| *ended < due + TIMEOUT);
        let (at, end) = match in_time {
            None => (due + TIMEOUT, End::TimedOut),
            Some(at) => (at, failure(self.number).unwrap_or(End::Completed { status: 200 })),
        };
        self.last = self.last.max(at);
        let received = if matches!(end, End::Completed { .. }) { RESPONSE } else { 0 };
        let call = CallSpec::for_class(class);
        let outcome = Outcome { call, due, at, end, bytes_sent: 100, bytes_received: received };
        let events = [
            Event::Scheduled { class, due },
            Event::Begun { at: due },
            Event::Sent { at: due },
            Event::FirstByte { at },
            Event::Ended(outcome),
        ];
        let mut call = PerCall::default();
        events.iter().for_each(|event| self.collector.on(&mut call, event));
    }
}

fn cpu(servers: u32) -> Station {
    Station { name: "cpu".to_owned(), servers, scheduling: Scheduling::Fcfs, ..Station::default() }
}

/// Asserts that the survey finds the bottleneck `full`, and predicts the capacity with an error below 3 %.
fn has_its_capacity_predicted(bench: &mut Simulated, full: &str) -> Survey {
    let survey = bench.survey(&[1.0], 20.0);
    let evidence = survey.bottleneck_evidence.as_deref();
    assert_eq!(survey.bottleneck.as_deref(), Some(full), "{evidence:?}");
    assert!(survey.saturation_rate.error.unwrap().abs() < 0.03, "{:?}", survey.saturation_rate);
    assert!(survey.model.stations.iter().any(|station| station.name == full), "{:?}", survey.model.stations);
    survey
}

fn queue(name: &str, servers: u32) -> Station {
    Station { name: name.to_owned(), servers, scv: 0.1, scheduling: Scheduling::Fcfs, ..Station::default() }
}

/// Divides a number of clients among the classes in the proportions of `mix`, in whole numbers.
fn divide_clients(clients: u64, mix: &[f64]) -> Vec<u32> {
    let wanted = |share: &f64| share * clients as f64;
    let mut counts: Vec<u32> = mix.iter().map(|share| wanted(share) as u32).collect();
    while counts.iter().copied().map(u64::from).sum::<u64>() < clients {
        let lacking = |index: &usize| wanted(&mix[*index]) - f64::from(counts[*index]);
        let most = (0..mix.len()).max_by(|a, b| lacking(a).total_cmp(&lacking(b))).unwrap();
        counts[most] += 1;
    }
    counts
}
