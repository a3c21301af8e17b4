//! Loads of which it does not matter that a call costs some instructions more: those whose requests depend on answers, by
//! cookies or redirects, those by TLS, and those that somebody looks on at. They are made by one piece of the engine,
//! whichever load it is, as a copy of it for each would be megabytes of program.

use crate::{RunError, RunPlan};
use brimful_core::workload::Load;
use brimful_core::{Nanos, Next, Observer, Outcome, SessionId, SessionOutcome, Workload};
use brimful_engine::{Config, FixedRequests, Run, SessionRequests};
use brimful_workload::{Closed, ClosedBursts, Extent, Mix, Open, SClients, Scripts, Sessions, Shard};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Makes the load.
pub(crate) fn drive<O: Observer + Send>(
    plan: &RunPlan,
    config: &Config,
    requests: &FixedRequests,
    (mix, extent): (&Mix, Extent),
    observer: impl Fn() -> O,
    stop: &AtomicBool,
) -> Result<Run<O>, RunError> {
    let (scripts, scripted) = (Scripts::of(&plan.workload).map(Arc::new), plan.scripted_requests()?);
    let (follow, cookies) = (plan.following(), plan.workload.sessions().is_some_and(|sessions| sessions.cookies));
    let load = |shard: Shard| -> Result<Stateful, RunError> {
        let of_shard = || mix.clone().of_shard(shard, plan.seed);
        Ok(match plan.load()? {
            // Each session has streams of its own; the mix's is not drawn from.
            Load::Sessions(load) => {
                let sessions = Sessions::new(load, of_shard(), extent, plan.seed, shard)?;
                let sessions = if plan.back_off { sessions } else { sessions.without_back_off() };
                Stateful::Sessions(Box::new(sessions.following(scripts.clone())))
            }
            Load::Closed { clients, think } if plan.calls_in_bursts() => {
                let bursts = ClosedBursts::new(*clients, plan.burst_size(), *think, of_shard(), extent, shard);
                Stateful::Bursts(bursts.seeded(plan.seed))
            }
            Load::Closed { clients, think } => {
                let closed = Closed::new(*clients, *think, of_shard(), extent, shard);
                Stateful::Closed(closed.seeded(plan.seed, shard))
            }
            Load::SClients { attempts } => {
                let timeout = plan.connections.connect_timeout.unwrap_or(plan.connections.response_timeout);
                Stateful::SClients(SClients::new(*attempts, timeout, of_shard(), extent, shard))
            }
            // A schedule that is split passes over the calls of the other shards.
            _ => Stateful::Open(Box::new(Open::new(plan.arrivals()?, mix.clone(), extent, shard))),
        })
    };
    let one = |shard| {
        let requests = SessionRequests::new(requests, &scripted).following(follow.as_ref());
        let requests = if cookies { requests.with_cookies(plan.endpoint.is_secure) } else { requests };
        Ok((load(shard)?, requests, observer()))
    };
    let shards = plan.shards().map(one).collect::<Result<_, RunError>>()?;
    Ok(brimful_engine::run(config, shards, stop)?)
}

/// One shard of such a load.
enum Stateful {
    Open(Box<Open>),
    Closed(Closed),
    Bursts(ClosedBursts),
    SClients(SClients),
    Sessions(Box<Sessions>),
}

impl Workload for Stateful {
    fn next(&mut self, now: Nanos, in_flight: usize) -> Next {
        match self {
            Stateful::Open(load) => load.next(now, in_flight),
            Stateful::Closed(load) => load.next(now, in_flight),
            Stateful::Bursts(load) => load.next(now, in_flight),
            Stateful::SClients(load) => load.next(now, in_flight),
            Stateful::Sessions(load) => load.next(now, in_flight),
        }
    }

    fn on_established(&mut self, at: Nanos) {
        match self {
            Stateful::Open(load) => load.on_established(at),
            Stateful::Closed(load) => load.on_established(at),
            Stateful::Bursts(load) => load.on_established(at),
            Stateful::SClients(load) => load.on_established(at),
            Stateful::Sessions(load) => load.on_established(at),
        }
    }

    fn on_outcome(&mut self, outcome: &Outcome) {
        match self {
            Stateful::Open(load) => load.on_outcome(outcome),
            Stateful::Closed(load) => load.on_outcome(outcome),
            Stateful::Bursts(load) => load.on_outcome(outcome),
            Stateful::SClients(load) => load.on_outcome(outcome),
            Stateful::Sessions(load) => load.on_outcome(outcome),
        }
    }

    fn session_ended(&mut self, session: SessionId) -> Option<SessionOutcome> {
        match self {
            Stateful::Sessions(load) => load.session_ended(session),
            _ => None,
        }
    }

    fn closes_between_bursts(&self, session: SessionId) -> bool {
        matches!(self, Stateful::Sessions(load) if load.closes_between_bursts(session))
    }

    fn sessions_in_progress(&self) -> u64 {
        match self {
            Stateful::Sessions(load) => load.sessions_in_progress(),
            _ => 0,
        }
    }
}
