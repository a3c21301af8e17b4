//! Helpers to run a load in a test in a few lines.

use crate::call_recorder::{CallRecorder, ObservedCall};
use crate::case::Case;
use brimful_core::workload::{RequestClass, Workload as WorkloadDoc};
use brimful_core::{Nanos, Observer, Rate, Workload};
use brimful_engine::{
    Close, Config, ConnectionPolicy, Engine, EngineError, FixedRequests, RequestSettings, Requests, Run, run,
};
use brimful_workload::{
    ArrivalProcess, Arrivals, ClosedBursts, ClosedWorkload, Mix, OpenWorkload, SClients, Shard, WorkloadLimits,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The configuration and requests of a run, with defaults for most tests.
#[derive(Clone)]
pub struct Plan {
    /// The engine's configuration.
    pub config: Config,
    /// The requests of the workload's classes.
    pub requests: FixedRequests,
    classes: usize,
    /// Maximum number of calls of the run.
    pub calls: u64,
    /// Number of shards (threads) of the run.
    pub shards: u64,
}

/// The state that a test shares with a run to observe and stop it.
#[derive(Default)]
pub struct Control {
    /// If set, the run ends early.
    pub stop: AtomicBool,
    /// Number of calls that have ended in any way.
    pub ended: Arc<AtomicU64>,
}

impl Plan {
    /// Creates a plan of GET requests in which the server closes connections.
    pub fn new(case: Case, address: SocketAddr) -> Plan {
        Plan::with_method(case, address, "GET", Close::Server)
    }

    /// Creates a plan of requests with this method. `close` is the side that closes connections.
    pub fn with_method(case: Case, address: SocketAddr, method: &str, close: Close) -> Plan {
        Plan::with_classes(case.engine, address, &WorkloadDoc::single_class(method, "/").classes, close)
    }

    /// Like [`Plan::new`], for a test without a [`Case`].
    pub fn with_engine(engine: Engine, address: SocketAddr) -> Plan {
        Plan::with_classes(engine, address, &WorkloadDoc::single_class("GET", "/").classes, Close::Server)
    }

    /// Creates a plan of POST requests with this body.
    pub fn with_post_body(case: Case, address: SocketAddr, body: String) -> Plan {
        let mut classes = WorkloadDoc::single_class("POST", "/").classes;
        classes[0].body = body;
        Plan::with_classes(case.engine, address, &classes, Close::Server).calls(1)
    }

    /// Creates a plan of requests of these classes. `close` is the side that closes connections.
    pub fn with_classes(engine: Engine, address: SocketAddr, classes: &[RequestClass], close: Close) -> Plan {
        let version = brimful_http::Version::Http11;
        let wire =
            RequestSettings { authority: address.to_string(), version, is_secure: false, headers: Vec::new(), close };
        let config = Config {
            engine,
            tick: None,
            address: address.into(),
            tls: None,
            http2: false,
            min_connections: 0,
            connections: ConnectionPolicy {
                close,
                connect_timeout: Some(Nanos::from_millis(500)),
                response_timeout: Nanos::from_secs(2),
                ..ConnectionPolicy::default()
            },
            window: Nanos::from_secs(5),
            start: Nanos::ZERO,
            cpus: Vec::new(),
        };
        let workload = WorkloadDoc { classes: classes.to_vec(), load: None, tls: None };
        let requests = FixedRequests::render(&workload, &wire).unwrap();
        Plan { config, requests, classes: classes.len(), calls: 100, shards: 1 }
    }

    /// Changes the plan to HTTP/2, with these request classes and at most `streams` streams per connection.
    pub fn with_http2(mut self, classes: &[RequestClass], streams: usize) -> Plan {
        let (version, is_secure) = (brimful_http::Version::Http2, self.config.tls.is_some());
        let (authority, close) = (self.config.address.to_string(), self.config.connections.close);
        let wire = RequestSettings { authority, version, is_secure, headers: Vec::new(), close };
        let workload = WorkloadDoc { classes: classes.to_vec(), load: None, tls: None };
        self.requests = FixedRequests::render(&workload, &wire).unwrap();
        self.classes = classes.len();
        self.config.http2 = true;
        self.config.connections.pipeline = streams;
        self
    }

    /// Sets the maximum number of calls.
    pub fn calls(mut self, calls: u64) -> Plan {
        self.calls = calls;
        self
    }

    /// Changes the engine's configuration.
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Plan {
        change(&mut self.config);
        self
    }

    /// Makes calls at a constant rate, independent of the responses (an open load). Returns the calls.
    pub fn run_open(&self, rate: f64) -> Vec<ObservedCall> {
        self.run_open_load(rate, &Control::default()).observer.calls
    }

    /// Like [`Plan::run_open`], but `control` can observe and stop the run. Returns the complete result.
    pub fn run_open_load(&self, rate: f64, control: &Control) -> Run<CallRecorder> {
        self.go(
            |shard| self.constant(rate, shard),
            || CallRecorder { ended: Arc::clone(&control.ended), ..CallRecorder::default() },
            control,
        )
    }

    /// Like [`Plan::run_open`], but with this observer, which may block the shard. Returns the complete result.
    pub fn run_open_with_observer(&self, rate: f64, new_observer: impl Fn() -> CallRecorder) -> Run<CallRecorder> {
        self.go(|shard| self.constant(rate, shard), new_observer, &Control::default())
    }

    /// Like [`Plan::run_open_load`], but stops the run when `enough` returns true, so that the test does not depend on
    /// the speed of the host.
    pub fn run_open_until(&self, rate: f64, enough: impl Fn(&Control) -> bool + Send) -> Run<CallRecorder> {
        let control = &Control::default();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                wait_until(|| enough(control));
                control.stop.store(true, Ordering::Relaxed);
            });
            self.run_open_load(rate, control)
        })
    }

    /// Runs this number of clients, each of which makes its next call after a response (a closed load). All classes are
    /// equally likely. Returns the calls.
    pub fn run_closed(&self, clients: u64) -> Vec<ObservedCall> {
        self.go(|shard| self.clients(clients, shard), CallRecorder::default, &Control::default()).observer.calls
    }

    /// Like [`Plan::run_closed`], but each client sends calls in bursts that share one connection. The number of calls
    /// in a burst is the pipeline depth.
    pub fn run_closed_bursts(&self, clients: u64) -> Vec<ObservedCall> {
        let depth = self.config.connections.pipeline as u32;
        let bursts = |shard| ClosedBursts::new(clients, depth, Nanos::ZERO, self.mix(), self.extent(), shard);
        self.go(bursts, CallRecorder::default, &Control::default()).observer.calls
    }

    /// Runs S-Clients (Banga & Druschel 1997): clients that abandon a connection attempt after the plan's connect
    /// timeout and then make the next one. Keeps this number of attempts under way.
    pub fn run_s_clients(&self, attempts: u64) -> Run<CallRecorder> {
        let timeout = self.config.connections.connect_timeout.expect("S-Clients give attempts up");
        let workload = |shard| SClients::new(attempts, timeout, self.mix(), self.extent(), shard);
        self.go(workload, CallRecorder::default, &Control::default())
    }

    /// Like [`Plan::run_s_clients`], but attempts are due at this rate, at equal intervals.
    pub fn run_scheduled_s_clients(&self, clients: u64, rate: f64) -> Run<CallRecorder> {
        let timeout = self.config.connections.connect_timeout.expect("S-Clients give attempts up");
        let arrivals = Arrivals::new(ArrivalProcess::Constant, Rate(rate), 1).unwrap();
        let workload =
            |shard| SClients::scheduled(clients, timeout, arrivals.clone(), self.mix(), self.extent(), shard);
        self.go(workload, CallRecorder::default, &Control::default())
    }

    /// Returns the error that prevents the run from starting.
    pub fn expect_error(&self) -> EngineError {
        let workload = self.clients(1, Shard::WHOLE);
        run(&self.config, vec![(workload, &self.requests, CallRecorder::default())], &AtomicBool::new(false))
            .unwrap_err()
    }

    /// Creates a workload of this number of clients, each of which makes its next call after a response.
    pub fn clients(&self, clients: u64, shard: Shard) -> ClosedWorkload {
        ClosedWorkload::new(clients, Nanos::ZERO, self.mix(), self.extent(), shard)
    }

    /// Creates a workload of evenly spaced calls at this rate.
    pub fn constant(&self, rate: f64, shard: Shard) -> OpenWorkload {
        OpenWorkload::new(
            Arrivals::new(ArrivalProcess::Constant, Rate(rate), 1).unwrap(),
            self.mix(),
            self.extent(),
            shard,
        )
    }

    fn mix(&self) -> Mix {
        Mix::new(&vec![1.0; self.classes], 1).unwrap()
    }

    fn extent(&self) -> WorkloadLimits {
        WorkloadLimits { window: self.config.window, calls: self.calls }
    }

    fn go<W: Workload + Send>(
        &self,
        workload: impl Fn(Shard) -> W,
        new_observer: impl Fn() -> CallRecorder,
        control: &Control,
    ) -> Run<CallRecorder> {
        let run = self.drive(workload, new_observer, control);
        run.observer.calls.iter().for_each(ObservedCall::check);
        run
    }

    /// Runs the load. `workload` and `observer` create the workload and the observer of each shard.
    pub fn drive<W: Workload + Send, O: Observer + Send>(
        &self,
        workload: impl Fn(Shard) -> W,
        observer: impl Fn() -> O,
        control: &Control,
    ) -> Run<O> {
        self.drive_with(workload, || &self.requests, observer, control)
    }

    /// Like [`Plan::drive`], but with these requests.
    pub fn drive_with<'a, W: Workload + Send, R: Requests<'a> + Send, O: Observer + Send>(
        &'a self,
        workload: impl Fn(Shard) -> W,
        requests: impl Fn() -> R,
        observer: impl Fn() -> O,
        control: &Control,
    ) -> Run<O> {
        let shards = Shard::WHOLE.split(self.shards).map(|shard| (workload(shard), requests(), observer())).collect();
        let run = run(&self.config, shards, &control.stop).unwrap();
        match self.config.engine {
            Engine::Epoll => assert_eq!(run.engine, "epoll"),
            Engine::Uring => assert_eq!(run.engine, "uring"),
            Engine::Auto => {}
        }
        run
    }
}

/// Upper bound of the delay that the generator itself adds to a measured time. A timeout takes up to four iterations of
/// the event loop (to wake, to act and to check the sockets), and no iteration took longer than `longest_gap`.
pub fn max_generator_delay<O>(run: &Run<O>) -> Nanos {
    Nanos(4 * run.longest_gap.0)
}

/// Waits until another thread makes this condition true; panics after 300 s.
pub fn wait_until(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(300), "the condition did not become true within 300 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}
