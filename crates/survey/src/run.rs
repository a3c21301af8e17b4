//! One load: workload, engine, observer and monitor put together, and what they saw as one [`Record`].

use crate::{Endpoint, SurveyError};
use brimful_core::record::{Generator, Record};
use brimful_core::workload::Workload;
use brimful_core::{Nanos, Rate};
use brimful_engine::{Cidr, ClassRequests, Close, Config, Engine, Progress, Run, Wire};
use brimful_http::Version;
use brimful_monitor::{Monitor, MonitorConfig, MonitorError, RemoteConfig};
use brimful_stats::{Account, Collector, Facts, Pacing, derive};
use brimful_workload::{Arrivals, Closed, Extent, Mix, Open, Process, SClients, Shard, Speed, Stage, Trace};
use std::sync::atomic::AtomicBool;
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
    /// Seed of all randomness.
    pub seed: u64,
    /// The highest rate this client can offer without being the limit, per second, if that is known.
    pub client_max: Option<f64>,
    /// What to watch meanwhile.
    pub monitor: Option<Watched>,
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

/// Runs it, until it is done or `stop` is set.
///
/// # Errors
/// [`SurveyError`] when the run cannot be started; what happens to calls is in the Record.
pub fn run(plan: &RunPlan, stop: &AtomicBool, progress: &Progress) -> Result<Record, SurveyError> {
    plan.validate()?;
    let config = plan.engine_config()?;
    let extent = Extent { window: plan.window, calls: plan.calls };
    let names: Vec<String> = plan.workload.classes.iter().map(|class| class.name.clone()).collect();
    let mix = plan.workload.mix();
    let window = plan.planned_window()?;
    let collector = || Collector::new(Account::new(&names, window));
    let monitor = plan.monitor.as_ref().map(Watched::start).transpose()?;
    let started_at = SystemTime::now();
    // Workloads that draw classes as calls end would, with one seed, all ask for the same at the same time.
    let shard_mix = |shard: Shard| Mix::new(&mix, plan.seed.wrapping_add(shard.index));
    let shards = || Shard::split(plan.threads);
    let run = match plan.pace {
        Pace::Closed { clients, think } => {
            let closed = |shard| Ok((Closed::new(clients, think, shard_mix(shard)?, extent, shard), collector()));
            let shards = shards().map(closed).collect::<Result<_, SurveyError>>()?;
            brimful_engine::run(&config, shards, stop, progress)?
        }
        Pace::SClients { attempts } => {
            let timeout = config.connect_timeout.unwrap_or(config.response_timeout);
            let s_clients =
                |shard| Ok((SClients::new(attempts, timeout, shard_mix(shard)?, extent, shard), collector()));
            let shards = shards().map(s_clients).collect::<Result<_, SurveyError>>()?;
            brimful_engine::run(&config, shards, stop, progress)?
        }
        Pace::Open { .. } | Pace::Stages { .. } | Pace::Trace { .. } => {
            let (arrivals, mix) = (plan.arrivals()?, Mix::new(&mix, plan.seed)?);
            let open = |shard| (Open::new(arrivals.clone(), mix.clone(), extent, shard), collector());
            brimful_engine::run(&config, shards().map(open).collect(), stop, progress)?
        }
    };
    Ok(plan.record(run, window, started_at, monitor))
}

/// A moment as a part of a file name: 20261121-205900, UTC.
pub fn file_timestamp(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string().replace(['-', ':', 'Z'], "").replace('T', "-")
}

impl Watched {
    fn start(&self) -> Result<Monitor, MonitorError> {
        match self {
            Watched::Here(config) => Monitor::start(config.clone()),
            Watched::There(config) => Monitor::connect(config),
        }
    }
}

impl RunPlan {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`SurveyError::BadLoad`] or what is wrong with the workload.
    pub fn validate(&self) -> Result<(), SurveyError> {
        self.workload.validate()?;
        let bad = |message: &str| Err(SurveyError::BadLoad(message.to_owned()));
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
    fn arrivals(&self) -> Result<Arrivals, SurveyError> {
        match &self.pace {
            Pace::Stages { start, stages, process } => Ok(Arrivals::stages(*process, *start, stages, self.seed)?),
            Pace::Trace { trace, speed } => Ok(Arrivals::trace(trace.clone(), *speed)),
            Pace::Open { rate, process } => Ok(Arrivals::new(*process, *rate, self.seed)),
            Pace::Closed { .. } | Pace::SClients { .. } => {
                Err(SurveyError::BadLoad("this load has no schedule: give --rate, --stage or a trace".to_owned()))
            }
        }
    }

    fn engine_config(&self) -> Result<Config, SurveyError> {
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
            window: self.window,
            cpus: self.cpus.clone(),
            engine: self.engine,
        })
    }

    fn pacing(&self) -> Pacing {
        match self.pace {
            Pace::Open { .. } | Pace::Stages { .. } | Pace::Trace { .. } => Pacing::Open,
            Pace::Closed { .. } => Pacing::Closed,
            Pace::SClients { .. } => Pacing::SClients,
        }
    }

    /// Until when load is offered if nothing interrupts it. How long a number of calls takes clients that wait for
    /// their answers only the run will tell, and for an open load it is a matter of its schedule, however late the last
    /// answer.
    fn planned_window(&self) -> Result<Nanos, SurveyError> {
        if self.calls == u64::MAX || self.pacing() != Pacing::Open {
            return Ok(self.window);
        }
        let end = self.arrivals()?.end(Extent { window: self.window, calls: self.calls });
        // Calls of a trace that are all due at once have no rate of their own.
        Ok(if end == Nanos::ZERO { self.window } else { end })
    }

    fn record(&self, run: Run<Collector>, window: Nanos, started_at: SystemTime, monitor: Option<Monitor>) -> Record {
        // Clients who make a number of calls offer load until the last of them has its answer.
        let by_number = self.calls < u64::MAX && self.pacing() != Pacing::Open;
        let window = if run.interrupted || by_number { window.min(run.duration) } else { window };
        let epoch = Nanos(run.started_monotonic_ns);
        let server = monitor.map(|monitor| monitor.finish(epoch, Some((epoch, epoch + window))));
        let split = run.cpu.split();
        let generator = Generator {
            cpu_s: Some(run.cpu.total.as_secs_f64()),
            cpu_user_s: split.map(|(user, _)| user.as_secs_f64()),
            cpu_system_s: split.map(|(_, system)| system.as_secs_f64()),
            busy: run.busy,
            longest_gap_s: Some(run.longest_gap.as_secs_f64()),
            threads: self.threads,
            max_open_connections: run.max_open_connections,
            engine: run.engine.to_owned(),
            max_rate: self.client_max,
            host: run.host,
        };
        let facts = Facts {
            started_at: humantime::format_rfc3339_millis(started_at).to_string(),
            started_monotonic_ns: run.started_monotonic_ns,
            duration: run.duration,
            window,
            command: self.command.clone(),
            target: self.endpoint.url.clone(),
            seed: self.seed,
            interrupted: run.interrupted,
            generator,
            server,
            pacing: self.pacing(),
        };
        derive(&run.observer.into_account(), facts)
    }
}
