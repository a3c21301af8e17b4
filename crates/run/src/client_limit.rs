//! Measures how much load this client can generate before it is itself the limit. The *maximum raw request rate* of the
//! client is the largest load at which one load generator has the same throughput as two that generate half of the load
//! each (Banga & Druschel 1997, §4.3).
//!
//! - **A generator** is one run of the engine with the plan's threads, on the plan's CPUs. The second generator runs at
//!   the same time in this process, on free CPUs. Without free CPUs, it shares the server's CPUs and slows the server
//!   down, so the measured throughput of two generators is too low. In that case, only the run of the single generator
//!   may show the limit, by being judged as limited by the client, and the Record (result document) says that CPUs were
//!   shared.
//! - **The load** is a Poisson process of calls, with the plan's use of connections. The plan's arrival process does
//!   not matter, because the client's work depends only on the number of calls. A built-in server responds at once. Its
//!   responses have the size of the measured server's responses and use the same protocol, including HTTP/2 and TLS
//!   (with a key and certificate of its own). S-Clients (clients that abandon a connection attempt after a timeout)
//!   instead attempt connections to a listener that does not accept any: D/T attempts per second, for D attempts at a
//!   time and timeout T. Calls with a response cost more CPU time than such attempts; the check of the actual run
//!   covers this cost.
//! - **The runs** are short and come in pairs: a run of one generator and a run of two. The order within a pair
//!   alternates, so that disturbances of the host affect both alike.

mod host;
mod search;

use crate::run::run_unprobed;
use crate::{FleetOptions, RunError, RunObserver, RunOptions, RunPlan, ServerOptions, TlsOptions, run};
use brimful_core::record::{Reason, ReasonCode, Record};
use brimful_core::workload::Load;
use brimful_core::{Bytes, Nanos, Rate};
use brimful_engine::{ConnectionPolicy, EngineError};
use brimful_os::cpus;
use host::{CpuPlacement, Responder};
pub use search::START_RATE;
use search::{ThroughputPair, search};
use std::sync::atomic::{AtomicBool, Ordering};

/// Duration of one run of the calibration.
const RUN_LENGTH: Nanos = Nanos::from_millis(120);
/// Time needed to prepare one run of the calibration.
const SET_UP: Nanos = Nanos::from_millis(20);
/// Number of loads that a calibration measures if no other programs disturb it.
const TYPICAL_LEVELS: u32 = 10;
/// Number of connections per worker thread of the built-in server that a run opens before its load begins. Otherwise,
/// the many connection attempts at the start would lower the measured maximum.
const WARM_CONNECTIONS: u64 = 32;
/// Timeout of the S-Clients' connection attempts in a calibration. Its value does not matter, because the client's work
/// depends only on the rate of attempts.
const ATTEMPT: Nanos = Nanos::from_millis(30);
/// Minimum share of a run for which a late generator must have been busy to count as the limit. A less busy generator
/// was delayed by other programs, so the run says nothing about its maximum.
const MIN_BUSY: f64 = 0.5;
/// Number of calls for measuring the mean size of a server's responses.
const SAMPLE_CALLS: u64 = 20;
/// Time limit of the calls for measuring response sizes, and of a TLS handshake with the built-in server.
const SAMPLE_TIME: Nanos = Nanos::from_secs(1);

/// Typical duration of a calibration that ends once the client has generated `enough` calls per second. With `None`, it
/// ends only at the client's limit. If results are not clear, a calibration takes longer, up to a fixed number of runs.
pub fn typical_duration(enough: Option<f64>) -> Nanos {
    let levels = enough.map_or(TYPICAL_LEVELS, |rate| search::levels_up_to(rate).min(TYPICAL_LEVELS));
    let pairs = u64::from(levels) * search::MIN_PAIRS as u64;
    Nanos(2 * pairs * (RUN_LENGTH.0 + SET_UP.0))
}

/// Measures the highest rate of calls that a client with the options `like` can generate if responses have `response`
/// bytes. For S-Clients, this is the rate of connection attempts. `server_cpus` are the CPUs of the server that will be
/// measured later; with `None`, the built-in server uses the CPUs that the client leaves free. With `enough`, the
/// measurement ends once the client has generated this rate, and the result is a lower bound.
///
/// Returns the Record of the run at the maximum, or of another run if there is no maximum. It contains the maximum and
/// all steps of the measurement. If `stop` is set, it is marked as interrupted and contains the results so far.
///
/// # Errors
/// [`RunError`] if a run cannot be started.
pub fn measure(
    like: &RunOptions,
    response: Bytes,
    enough: Option<f64>,
    server_cpus: Option<&[usize]>,
    stop: &AtomicBool,
    note: &mut dyn FnMut(String),
) -> Result<Record, RunError> {
    if like.server.endpoint.port().is_none() {
        return Err(RunError::BadLoad(
            "--calibrate does not work with a Unix socket, because the built-in server listens by TCP: leave it out; each \
             run still detects whether the client was the limit"
                .to_owned(),
        ));
    }
    let generators = Generators::new(like, response, server_cpus)?;
    let mut records: Vec<(f64, Record)> = Vec::new();
    let measure = |load| {
        let (pair, record) = generators.pair(load, records.len() as u64, stop)?;
        records.push((load, record));
        Ok::<_, RunError>((!stop.load(Ordering::Relaxed)).then_some(pair))
    };
    let mut calibration = search(measure, enough.unwrap_or(f64::INFINITY), note)?;
    // A listener that does not accept connections uses no CPU time, so it does not matter if the second generator
    // shares its CPUs.
    calibration.second_shares_cpus =
        generators.places.shared && !matches!(generators.responder, Responder::Full { .. });
    let best =
        |(_, (load, record)): &(usize, &(f64, Record))| (Some(*load) == calibration.max_rate, record.verdict.valid);
    let chosen = records.iter().enumerate().max_by_key(best).map_or(0, |(index, _)| index);
    let (_, mut record) = records.swap_remove(chosen);
    record.interrupted |= stop.load(Ordering::Relaxed);
    record.generator.max_rate = calibration.max_rate;
    record.calibration = Some(calibration);
    Ok(record)
}

/// Measures the mean size of a server's responses with a few successive calls. Returns zero if `stop` is set.
///
/// # Errors
/// [`RunError::NoCallCompleted`] if no call completes.
pub fn response_size(like: &RunOptions, stop: &AtomicBool) -> Result<Bytes, RunError> {
    let mut options = like.clone().with_load(Load::Closed { clients: 1, think: Nanos::ZERO });
    options.load.calls = SAMPLE_CALLS;
    options.load.window = SAMPLE_TIME;
    // Ticks apply only to calls with a schedule, which these calls do not have.
    options.load.tick = None;
    // Accepts any response, because only its size matters here.
    options.load.workload.classes.iter_mut().for_each(|class| class.expect = None);
    options.server.connections.warm_connections = 0;
    options.fleet = FleetOptions::default();
    options.monitor = None;
    let record = run(&RunPlan::new(options)?, &RunObserver::default(), stop)?.record;
    match record.bytes.received.checked_div(record.counts.completed) {
        Some(size) => Ok(Bytes(size)),
        None if record.interrupted => Ok(Bytes(0)),
        None => Err(RunError::NoCallCompleted { url: like.server.endpoint.url.clone() }),
    }
}

/// One generator and a second one, and a server for them that is not the bottleneck.
struct Generators {
    responder: Responder,
    places: CpuPlacement,
    options: RunOptions,
}

impl Generators {
    fn new(like: &RunOptions, response: Bytes, server_cpus: Option<&[usize]>) -> Result<Generators, RunError> {
        let RunOptions { server, generator, .. } = like;
        let places = CpuPlacement::choose(&cpus::usable(), &generator.cpus, generator.threads as usize, server_cpus);
        let needs_tcp = || RunError::BadLoad("a client is calibrated by TCP".to_owned());
        let address = server.endpoint.address.tcp().ok_or_else(needs_tcp)?;
        let responder = match like.load.is_s_clients() {
            true => Responder::with_full_backlog(address)?,
            false => Responder::start_server(address, response, server.tls.is_some(), &places)?,
        };
        let endpoint = responder.endpoint()?;
        let security = responder.client_security(server.tls.as_ref().map(|tls| &*tls.security))?;
        let tls = security.map(|security| TlsOptions::negotiate(security, &endpoint, SAMPLE_TIME)).transpose()?;
        let mut options = like.clone();
        for class in &mut options.load.workload.classes {
            class.set_path(&endpoint.path);
            class.expect = None;
        }
        options.load.window = RUN_LENGTH;
        options.load.calls = u64::MAX;
        options.server = ServerOptions {
            endpoint,
            tls,
            connections: generator_connections(&server.connections, &places),
            ..options.server
        };
        options.generator.max_rate = None;
        options.fleet = FleetOptions::default();
        options.monitor = None;
        Ok(Generators { responder, places, options })
    }

    /// Measures a pair: one generator at `load`, and two generators at half of `load` each. The order alternates with
    /// `turn`, the number of the pair. Also returns the Record of the single generator.
    fn pair(&self, load: f64, turn: u64, stop: &AtomicBool) -> Result<(ThroughputPair, Record), RunError> {
        let first_cpus = &self.options.generator.cpus;
        let whole = self.plan(load, 3 * turn, first_cpus)?;
        let half = self.plan(load / 2.0, 3 * turn + 1, first_cpus)?;
        let other_half = self.plan(load / 2.0, 3 * turn + 2, &self.places.second_generator)?;
        let run_one = || Ok::<_, RunError>(run(&whole, &RunObserver::default(), stop)?.record);
        let (record, halves) = if turn.is_multiple_of(2) {
            (run_one()?, run_both(&half, &other_half, stop)?)
        } else {
            let halves = run_both(&half, &other_half, stop)?;
            (run_one()?, halves)
        };
        let is_caused_by_load = |reason: &&Reason| {
            let is_late = matches!(reason.code, ReasonCode::GeneratorLate | ReasonCode::GeneratorStalled);
            !is_late || record.generator.busy >= MIN_BUSY
        };
        let limit_reason = record.verdict.reasons.iter().find(is_caused_by_load);
        // Keeps only the first clause of the reason, which says what happened. The others are advice for a user's run.
        let limit_reason = limit_reason.map(|reason| {
            reason.message.split(". ").flat_map(|part| part.split("; ")).next().unwrap_or_default().to_owned()
        });
        let one = load * delivered_share(&[(&whole, &record)]);
        let two = load * delivered_share(&[(&half, &halves.0), (&other_half, &halves.1)]);
        Ok((ThroughputPair { one, two, limit_reason }, record))
    }

    /// The plan of a generator on these CPUs that makes `load` calls or connection attempts per second.
    fn plan(&self, load: f64, seed_offset: u64, cpus: &[usize]) -> Result<RunPlan, RunError> {
        let mut options = self.options.clone();
        options.load.seed = options.load.seed.wrapping_add(seed_offset);
        options.generator.cpus = cpus.to_vec();
        if !options.load.is_s_clients() {
            return RunPlan::new(options.with_load(Load::poisson(Rate(load))));
        }
        let attempts = (load * ATTEMPT.as_secs_f64()).round().max(1.0) as u64;
        options.server.connections.connect_timeout = Some(ATTEMPT);
        RunPlan::new(options.with_load(Load::s_clients(attempts)))
    }
}

/// The connection policy of the generators, derived from `like`, that of the measured run.
fn generator_connections(like: &ConnectionPolicy, places: &CpuPlacement) -> ConnectionPolicy {
    ConnectionPolicy {
        warm_connections: like.warm_connections.max(WARM_CONNECTIONS * places.workers as u64),
        // The limit on connections protects the measured server. The built-in server needs none, so the limit is
        // raised.
        max_per_shard: like.max_per_shard.map(|most| most.max(WARM_CONNECTIONS)),
        // Limits the wait for unanswered calls after a run to the length of the run.
        response_timeout: RUN_LENGTH.min(like.response_timeout),
        connect_timeout: Some(RUN_LENGTH.min(like.connect_timeout.unwrap_or(RUN_LENGTH))),
        ..like.clone()
    }
}

/// The share of the scheduled calls of these runs that completed. For S-Clients, the share of the planned connection
/// attempts that were made. The scheduled calls are counted, because their number is random.
fn delivered_share(runs: &[(&RunPlan, &Record)]) -> f64 {
    let mut delivered = 0.0;
    let mut offered = 0.0;
    for (plan, record) in runs {
        if let Some(Load::SClients { attempts, .. }) = plan.options().load.workload.load {
            delivered += record.rates.connect_attempts;
            offered += attempts as f64 / ATTEMPT.as_secs_f64();
        } else {
            delivered += record.rates.completed;
            offered += record.rates.offered;
        }
    }
    if offered > 0.0 { delivered / offered } else { 0.0 }
}

/// Runs two generators at the same time.
fn run_both(one: &RunPlan, other: &RunPlan, stop: &AtomicBool) -> Result<(Record, Record), RunError> {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run_unprobed(other, &RunObserver::default(), stop));
        let one = run_unprobed(one, &RunObserver::default(), stop);
        let other = other.join().map_err(|_| EngineError::Thread("it panicked".to_owned()))?;
        Ok((one?, other?))
    })
}
