//! What the tests share: a small observer that keeps every outcome, and runs of a few lines.

use brimful_core::workload::Workload as WorkloadDoc;
use brimful_core::{End, Event, Nanos, Observer, Outcome, Rate, Workload};
use brimful_engine::{ClassRequests, Close, Config, Progress, Run, Wire, run};
use brimful_workload::{Arrivals, Closed, Extent, Mix, Open, Process, Shard};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

/// One call as it was seen from outside.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub due: Nanos,
    pub begun: Option<Nanos>,
    pub connect_started: Option<Nanos>,
    pub established: Option<Nanos>,
    pub sent: Option<Nanos>,
    pub first_byte: Option<Nanos>,
    pub outcome: Option<Outcome>,
}

impl Seen {
    /// From due to the end.
    pub fn response(&self) -> Nanos {
        self.ended() - self.due
    }

    /// From the first byte sent to the end.
    pub fn service(&self) -> Nanos {
        self.ended() - self.sent.expect("was sent")
    }

    pub fn lateness(&self) -> Nanos {
        self.begun.expect("was begun") - self.due
    }

    pub fn end(&self) -> End {
        self.outcome.expect("every call ends").end
    }

    fn ended(&self) -> Nanos {
        self.outcome.expect("every call ends").at
    }
}

/// Keeps every call: for tests only, where runs are short.
#[derive(Debug, Default)]
pub struct Keeper {
    pub calls: Vec<Seen>,
    /// Blocks the shard's thread for this long when the call with this index has ended.
    pub stall: Option<(usize, std::time::Duration)>,
}

#[derive(Debug, Default)]
pub struct PerCall(Option<usize>);

impl Observer for Keeper {
    type PerCall = PerCall;

    fn on(&mut self, call: &mut PerCall, event: &Event) {
        let index = *call.0.get_or_insert_with(|| {
            self.calls.push(Seen::default());
            self.calls.len() - 1
        });
        let seen = &mut self.calls[index];
        let set = |field: &mut Option<Nanos>, at: Nanos| {
            assert!(field.replace(at).is_none(), "call {index}: {event:?} came twice");
        };
        match *event {
            Event::Scheduled { due, .. } => seen.due = due,
            Event::Begun { at } => set(&mut seen.begun, at),
            Event::ConnectStarted { at } => set(&mut seen.connect_started, at),
            Event::Established { at } => set(&mut seen.established, at),
            Event::Sent { at } => set(&mut seen.sent, at),
            Event::FirstByte { at } => set(&mut seen.first_byte, at),
            Event::Ended(outcome) => {
                assert!(seen.outcome.replace(outcome).is_none(), "call {index} ended twice");
            }
        }
        if let (Event::Ended(_), Some((at, pause))) = (event, self.stall)
            && at == index
        {
            std::thread::sleep(pause);
        }
    }

    fn merge(&mut self, other: Self) {
        self.calls.extend(other.calls);
    }
}

/// A run's settings, with those defaults that most tests want.
pub struct Plan {
    pub config: Config,
    pub calls: u64,
    pub shards: u64,
}

impl Plan {
    pub fn new(address: SocketAddr) -> Plan {
        Plan::requesting(address, "GET", Close::Server)
    }

    pub fn requesting(address: SocketAddr, method: &str, close: Close) -> Plan {
        let version = brimful_http::Version::Http11;
        let wire = Wire { authority: address.to_string(), version, headers: Vec::new(), close };
        let class = &WorkloadDoc::single(method, "/").classes[0];
        let config = Config {
            address,
            requests: vec![ClassRequests::render(class, &wire).unwrap()],
            calls_per_connection: None,
            close,
            connect_timeout: Nanos::from_millis(500),
            response_timeout: Nanos::from_secs(2),
            warm_connections: 0,
            window: Nanos::from_secs(5),
            cpus: Vec::new(),
        };
        Plan { config, calls: 100, shards: 1 }
    }

    pub fn calls(mut self, calls: u64) -> Plan {
        self.calls = calls;
        self
    }

    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Plan {
        change(&mut self.config);
        self
    }

    fn extent(&self) -> Extent {
        Extent { window: self.config.window, calls: self.calls }
    }

    /// Open workload at a constant rate.
    pub fn open(&self, rate: f64) -> Vec<Seen> {
        self.open_with(rate, Keeper::default)
    }

    pub fn open_with(&self, rate: f64, keeper: impl Fn() -> Keeper) -> Vec<Seen> {
        let arrivals = Arrivals::new(Process::Constant, Rate(rate), 1);
        self.go(|shard| Open::new(arrivals.clone(), mix(), self.extent(), shard), keeper, &AtomicBool::new(false))
            .observer
            .calls
    }

    /// Closed workload without think time.
    pub fn closed(&self, clients: u64) -> Vec<Seen> {
        let workload = |shard| Closed::new(clients, Nanos::ZERO, mix(), self.extent(), shard);
        self.go(workload, Keeper::default, &AtomicBool::new(false)).observer.calls
    }

    pub fn open_until(&self, rate: f64, stop: &AtomicBool) -> Run<Keeper> {
        let arrivals = Arrivals::new(Process::Constant, Rate(rate), 1);
        self.go(|shard| Open::new(arrivals.clone(), mix(), self.extent(), shard), Keeper::default, stop)
    }

    fn go<W: Workload + Send>(
        &self,
        workload: impl Fn(Shard) -> W,
        keeper: impl Fn() -> Keeper,
        stop: &AtomicBool,
    ) -> Run<Keeper> {
        let shards = Shard::split(self.shards).map(|shard| (workload(shard), keeper())).collect();
        run(&self.config, shards, stop, &Progress::default()).unwrap()
    }
}

fn mix() -> Mix {
    Mix::new(&[1.0], 1).unwrap()
}

/// How many calls ended so.
pub fn count(calls: &[Seen], end: impl Fn(End) -> bool) -> usize {
    calls.iter().filter(|call| end(call.end())).count()
}

pub fn completed(end: End) -> bool {
    matches!(end, End::Completed { .. })
}
