//! What can this client offer before it is itself the limit? Its *maximum raw request rate* is the largest load for which
//! the throughput is the same whether it comes from one generator or from two, half from each (Banga & Druschel 1997, §4.3).
//!
//! - **A generator** is one run of the engine with the plan's threads, on the plan's CPUs. The second one runs at the same
//!   time in this process, on CPUs that are free; where there are none it shares the server's, which it slows, so that two can
//!   only look worse than they are. There the client's own verdict decides, and the document says so.
//! - **The load** is calls per second, spaced at random (Poisson), in the plan's way of using connections, from a server
//!   that answers as much as the plan's and spends no time on it; whatever the plan's pace, since the client's work is per
//!   call. It speaks what the plan's does, HTTP/2 and TLS included, with a key and a certificate of its own. S-Clients are calibrated as S-Clients, in attempts per second (D/T) at a listener that has stopped accepting:
//!   what they are for. Calls that are answered cost more, and then the run's own verdict tells.
//! - **The runs** are short and come in pairs, one generator and two, then two and one, so that what disturbs the host
//!   disturbs both alike.

mod host;
mod search;

use crate::run::run_unprobed;
use crate::{RunError, RunObserver, RunPlan, run};
use brimful_core::record::{Reason, ReasonCode, Record};
use brimful_core::workload::Load;
use brimful_core::{Bytes, Nanos, Rate};
use brimful_engine::{ConnectionPolicy, EngineError};
use brimful_os::cpus;
use host::{Places, Responder};
pub use search::START;
use search::{Pair, search};
use std::sync::atomic::{AtomicBool, Ordering};

/// Length of one run, and what it takes to set one up.
const RUN: Nanos = Nanos::from_millis(120);
const SET_UP: Nanos = Nanos::from_millis(20);
/// Pairs in a search that nothing disturbs: ten levels.
const PAIRS: u64 = 30;
/// How long a calibration takes, about; the search's budget bounds it a little above.
pub const TYPICAL_DURATION: Nanos = Nanos::from_millis((RUN.0 + SET_UP.0) / 1_000_000 * 2 * PAIRS);
/// Connections that keep-alive runs find open, per worker of the server: it is not about the storm that begins a run.
const WARM_CONNECTIONS: u64 = 32;
/// How long S-Clients' attempts last here. To the client it is their rate that matters.
const ATTEMPT: Nanos = Nanos::from_millis(30);
/// A generator with work for less than this share of the time was not late for the load: the host kept it from working. That
/// says nothing of its maximum, and a later run is judged by its own lateness anyway.
const LOADED: f64 = 0.5;
/// Calls of the first look at a server, and how long it may take.
const LOOK: (u64, Nanos) = (20, Nanos::from_secs(1));

/// Finds what a client like this can offer with answers of `response` bytes, or with attempts if it is S-Clients that it
/// makes. `server_cpus` are where the server runs that is to be measured; none lets the built-in one have what the client
/// leaves.
///
/// Returns the Record of a run at the maximum (where there is none, of some other run), with the maximum and the calibration
/// in it. When `stop` is set the Record says it was interrupted, and has what was found until then.
///
/// # Errors
/// [`RunError`] when a run cannot be started.
pub fn find(
    like: &RunPlan,
    response: Bytes,
    server_cpus: Option<&[usize]>,
    stop: &AtomicBool,
    note: &mut dyn FnMut(String),
) -> Result<Record, RunError> {
    if like.endpoint.port().is_none() {
        return Err(RunError::BadLoad(
            "what this client can offer at a Unix socket cannot be found, as the built-in server listens by TCP: leave out \
             --calibrate; each run is judged by itself"
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
    let mut calibration = search(measure, note)?;
    // At a listener that does not answer, the second generator takes nobody's time.
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

/// How large this server's responses are on average, by a few calls one after another.
///
/// # Errors
/// [`RunError::Silent`] when it completes none.
pub fn response_size(like: &RunPlan, stop: &AtomicBool) -> Result<Bytes, RunError> {
    let (calls, window) = LOOK;
    let mut plan = like.clone().with_load(Load::Closed { clients: 1, think: Nanos::ZERO });
    (plan.calls, plan.window, plan.monitor, plan.connections.warm_connections) = (calls, window, None, 0);
    (plan.shard, plan.start_at, plan.live) = (None, None, None);
    // What a class expects of a later call need not be true of these few, and it is size alone that is asked for.
    plan.workload.classes.iter_mut().for_each(|class| class.expect = None);
    let record = run(&plan, &RunObserver::default(), stop)?.record;
    match record.bytes.received.checked_div(record.counts.completed) {
        Some(size) => Ok(Bytes(size)),
        None if record.interrupted => Ok(Bytes(0)),
        None => Err(RunError::Silent { url: like.endpoint.url.clone() }),
    }
}

/// One generator and two, to be compared at a responder that is no limit to either.
struct Generators {
    responder: Responder,
    places: Places,
    plan: RunPlan,
}

impl Generators {
    fn new(like: &RunPlan, response: Bytes, server_cpus: Option<&[usize]>) -> Result<Generators, RunError> {
        let places = Places::choose(&cpus::usable(), &like.cpus, like.threads as usize, server_cpus);
        let own_port = || RunError::BadLoad("a client is calibrated by TCP".to_owned());
        let address = like.endpoint.address.tcp().ok_or_else(own_port)?;
        let responder = match like.is_s_clients() {
            true => Responder::full(address)?,
            false => Responder::answering(address, response, like.tls.is_some(), &places)?,
        };
        let endpoint = responder.endpoint()?;
        let tls = responder.trusted_by(like.tls.as_deref())?;
        let tls_spoken = tls.as_deref().map_or(Ok(None), |tls| endpoint.check(tls, LOOK.1))?;
        let mut workload = like.workload.clone();
        for class in &mut workload.classes {
            class.set_path(&endpoint.path);
            class.expect = None;
        }
        let plan = RunPlan {
            endpoint,
            workload,
            window: RUN,
            shard: None,
            start_at: None,
            live: None,
            keeper: None,
            calls: u64::MAX,
            connections: ConnectionPolicy {
                warm_connections: like.connections.warm_connections.max(WARM_CONNECTIONS * places.workers as u64),
                // How many connections the other server serves at a time is no limit of this client.
                max_per_shard: like.connections.max_per_shard.map(|most| most.max(WARM_CONNECTIONS)),
                // What cannot be answered by then is not waited for.
                response_timeout: RUN.min(like.connections.response_timeout),
                connect_timeout: Some(RUN.min(like.connections.connect_timeout.unwrap_or(RUN))),
                ..like.connections.clone()
            },
            monitor: None,
            tls,
            tls_spoken,
            client_max: None,
            ..like.clone()
        };
        Ok(Generators { responder, places, plan })
    }

    /// One generator and two, in turns first; and the Record of the one.
    fn pair(&self, load: f64, turn: u64, stop: &AtomicBool) -> Result<(Pair, Record), RunError> {
        let mut plans = [self.plan(load), self.plan(load / 2.0), self.plan(load / 2.0)];
        plans[2].cpus.clone_from(&self.places.second);
        for (index, plan) in plans.iter_mut().enumerate() {
            plan.seed = plan.seed.wrapping_add(3 * turn + index as u64);
        }
        let [plan, half, other] = &plans;
        let run_one = || Ok::<_, RunError>(run(plan, &RunObserver::default(), stop)?.record);
        let (record, halves) = if turn.is_multiple_of(2) {
            (run_one()?, run_both(half, other, stop)?)
        } else {
            let halves = run_both(half, other, stop)?;
            (run_one()?, halves)
        };
        let for_load = |reason: &&Reason| {
            let of_its_own = matches!(reason.code, ReasonCode::GeneratorLate | ReasonCode::GeneratorStalled);
            !of_its_own || record.generator.busy >= LOADED
        };
        let doubt = record.verdict.reasons.iter().find(for_load);
        // What happened; what follows from it, and what to do, is for whoever runs into it.
        let doubt = doubt.map(|reason| {
            reason.message.split(". ").flat_map(|part| part.split("; ")).next().unwrap_or_default().to_owned()
        });
        let one = load * brought(&[(plan, &record)]);
        let two = load * brought(&[(half, &halves.0), (other, &halves.1)]);
        Ok((Pair { one, two, doubt }, record))
    }

    fn plan(&self, load: f64) -> RunPlan {
        let plan = self.plan.clone();
        if !plan.is_s_clients() {
            return plan.with_load(Load::poisson(Rate(load)));
        }
        let attempts = (load * ATTEMPT.as_secs_f64()).round().max(1.0) as u64;
        let mut plan = plan.with_load(Load::SClients { attempts });
        plan.connections.connect_timeout = Some(ATTEMPT);
        plan
    }
}

/// The share of their load that runs brought: of the calls that a random schedule really held, so that its ups and downs do
/// not count.
fn brought(runs: &[(&RunPlan, &Record)]) -> f64 {
    let of = |(plan, record): &(&RunPlan, &Record)| match plan.workload.load {
        Some(Load::SClients { attempts }) => (record.rates.connect_attempts, attempts as f64 / ATTEMPT.as_secs_f64()),
        _ => (record.rates.completed, record.rates.offered),
    };
    let (brought, load) = runs.iter().map(of).fold((0.0, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    if load > 0.0 { brought / load } else { 0.0 }
}

/// Two generators at once.
fn run_both(one: &RunPlan, other: &RunPlan, stop: &AtomicBool) -> Result<(Record, Record), RunError> {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run_unprobed(other, stop));
        let one = run_unprobed(one, stop);
        let other = other.join().map_err(|_| EngineError::Thread("it panicked".to_owned()))?;
        Ok((one?, other?))
    })
}
