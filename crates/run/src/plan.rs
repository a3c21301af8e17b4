//! What decides a run, and what of it only the whole can tell.

use crate::{Endpoint, RunError};
use brimful_core::record::Pacing;
use brimful_core::workload::Workload;
use brimful_core::{Nanos, Rate};
use brimful_engine::{Cidr, ClassRequests, Close, Config, Engine, Wire};
use brimful_http::Version;
use brimful_monitor::{MonitorConfig, RemoteConfig};
use brimful_stats::Live;
use brimful_workload::{Arrivals, Extent, Process, Shard, Speed, Stage, Trace};

use std::sync::Arc;
use std::time::SystemTime;

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// Where.
    pub endpoint: Endpoint,
    /// What.
    pub workload: Workload,
    /// When.
    pub pace: Pace,
    /// For how long.
    pub window: Nanos,
    /// At most how many calls.
    pub calls: u64,
    /// HTTP version.
    pub version: Version,
    /// Header fields of every request.
    pub headers: Vec<(String, String)>,
    /// As in [`Config`]; S-Clients make one call per connection whatever this says.
    pub calls_per_connection: Option<u64>,
    /// As in [`Config`].
    pub pipeline: usize,
    /// As in [`Config`].
    pub close: Close,
    /// As in [`Config`]; none with a new connection per call.
    pub warm_connections: u64,
    /// As in [`Config`]; S-Clients cannot do without.
    pub connect_timeout: Option<Nanos>,
    /// As in [`Config`].
    pub response_timeout: Nanos,
    /// Addresses to connect from; `None` leaves it to the kernel.
    pub source: Option<Cidr>,
    /// As in [`Config`].
    pub send_buffer: Option<u32>,
    /// As in [`Config`].
    pub receive_buffer: Option<u32>,
    /// As in [`Config`].
    pub engine: Engine,
    /// Shards, one thread each.
    pub threads: u64,
    /// As in [`Config`].
    pub cpus: Vec<usize>,
    /// Which part of the load this process makes; `None` where it makes all of it.
    pub shard: Option<Shard>,
    /// When to start; `None` is at once.
    pub start_at: Option<SystemTime>,
    /// Seed of all randomness.
    pub seed: u64,
    /// The highest rate this client can offer without being the limit, per second, if that is known.
    pub client_max: Option<f64>,
    /// What to watch meanwhile.
    pub monitor: Option<Watched>,
    /// Where it shows what it has seen so far, to those who look on.
    pub live: Option<Arc<Live>>,
    /// For the Record.
    pub command: Vec<String>,
}

/// A server to watch.
#[derive(Clone, Debug)]
pub enum Watched {
    /// On this host.
    Here(MonitorConfig),
    /// On another one, through a `brimful watch --serve` there.
    There(RemoteConfig),
}

/// When calls are due.
#[derive(Clone, Debug)]
pub enum Pace {
    /// At a rate, whatever the server does.
    Open {
        /// Calls per second over all shards.
        rate: Rate,
        /// How they are spaced.
        process: Process,
    },
    /// At a rate that changes linearly from stage to stage, whatever the server does.
    Stages {
        /// The rate before the first.
        start: Rate,
        /// One after another.
        stages: Vec<Stage>,
        /// Constant or Poisson.
        process: Process,
    },
    /// At the instants of a trace.
    Trace {
        /// The instants.
        trace: Trace,
        /// What the gaps between them are divided by.
        speed: Speed,
    },
    /// By connection attempts of which a constant number is always under way (Banga & Druschel 1997).
    SClients {
        /// How many (D), over all shards.
        attempts: u64,
    },
    /// By clients that wait for their answers.
    Closed {
        /// How many, over all shards.
        clients: u64,
        /// Between an answer and the next call.
        think: Nanos,
    },
}

impl RunPlan {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`RunError::BadLoad`] or what is wrong with the workload.
    pub fn validate(&self) -> Result<(), RunError> {
        self.workload.validate()?;
        let bad = |message: &str| Err(RunError::BadLoad(message.to_owned()));
        match &self.pace {
            Pace::Open { rate, .. } if !(rate.0.is_finite() && rate.0 > 0.0) => {
                bad("a rate is above zero: give --rate a number of calls per second, like 1000")
            }
            Pace::SClients { attempts: 0 } => bad("no attempts make no load: give --s-clients at least 1"),
            Pace::SClients { .. } if self.pipeline > 1 => {
                bad("S-Clients make one call per connection: leave out --pipeline, or give a --rate instead")
            }
            Pace::Closed { clients: 0, .. } => bad("no clients make no load: give --clients at least 1"),
            _ if self.threads == 0 => bad("no threads make no load: give --threads at least 1"),
            _ if self.window == Nanos::ZERO => bad("a run of no length measures nothing: give --duration more than 0s"),
            _ if self.calls == 0 => bad("no requests make no load: give --requests at least 1"),
            _ if self.response_timeout == Nanos::ZERO || self.connect_timeout == Some(Nanos::ZERO) => {
                bad("a timeout of nothing fails every call: give --timeout and --connect-timeout more than 0s")
            }
            _ if self.calls_per_connection == Some(0) => {
                bad("a connection without calls makes no load: give --calls-per-connection at least 1")
            }
            _ if self.pipeline == 0 => bad("a connection bears one call or more: give --pipeline at least 1"),
            _ if self.send_buffer == Some(0) || self.receive_buffer == Some(0) => {
                bad("a socket needs a buffer: give --send-buffer and --receive-buffer more than 0")
            }
            Pace::Stages { .. } => self.arrivals().map(drop),
            _ => Ok(()),
        }
    }

    /// The due times of an open load.
    pub(crate) fn arrivals(&self) -> Result<Arrivals, RunError> {
        match &self.pace {
            Pace::Stages { start, stages, process } => Ok(Arrivals::stages(*process, *start, stages, self.seed)?),
            Pace::Trace { trace, speed } => Ok(Arrivals::trace(trace.clone(), *speed)),
            Pace::Open { rate, process } => Ok(Arrivals::new(*process, *rate, self.seed)),
            Pace::Closed { .. } | Pace::SClients { .. } => {
                Err(RunError::BadLoad("this load has no schedule: give --rate, --stage or a trace".to_owned()))
            }
        }
    }

    pub(crate) fn engine_config(&self) -> Result<Config, RunError> {
        let wire = Wire {
            authority: self.endpoint.authority.clone(),
            version: self.version,
            headers: self.headers.clone(),
            close: self.close,
        };
        let render = |class| ClassRequests::render(class, &wire);
        let s_clients = matches!(self.pace, Pace::SClients { .. });
        let calls_per_connection = if s_clients { Some(1) } else { self.calls_per_connection };
        let sources = self.source.map(|range| range.usable(&self.endpoint.address)).transpose()?;
        Ok(Config {
            address: self.endpoint.address,
            requests: self.workload.classes.iter().map(render).collect::<Result<_, _>>()?,
            calls_per_connection,
            pipeline: self.pipeline,
            close: self.close,
            connect_timeout: self.connect_timeout,
            response_timeout: self.response_timeout,
            sources: sources.unwrap_or_default(),
            send_buffer: self.send_buffer,
            receive_buffer: self.receive_buffer,
            warm_connections: if calls_per_connection == Some(1) { 0 } else { self.warm_connections },
            start: Nanos::ZERO,
            window: self.window,
            cpus: self.cpus.clone(),
            engine: self.engine,
        })
    }

    /// The shards of this process, one for each thread.
    pub(crate) fn shards(&self) -> impl Iterator<Item = Shard> {
        self.shard.unwrap_or(Shard::WHOLE).split(self.threads)
    }

    pub(crate) fn pacing(&self) -> Pacing {
        match self.pace {
            Pace::Open { .. } | Pace::Stages { .. } | Pace::Trace { .. } => Pacing::Open,
            Pace::Closed { .. } => Pacing::Closed,
            Pace::SClients { .. } => Pacing::SClients,
        }
    }

    /// Until when load is offered if nothing interrupts it. How long a number of calls takes clients that wait for
    /// their answers only the run will tell, and for an open load it is a matter of its schedule, however late the last
    /// answer.
    pub(crate) fn planned_window(&self) -> Result<Nanos, RunError> {
        if self.calls == u64::MAX || self.pacing() != Pacing::Open {
            return Ok(self.window);
        }
        let end = self.arrivals()?.end(Extent { window: self.window, calls: self.calls });
        // Calls of a trace that are all due at once have no rate of their own.
        Ok(if end == Nanos::ZERO { self.window } else { end })
    }
}
