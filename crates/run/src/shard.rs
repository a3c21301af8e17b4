//! The workload and the requests of one shard (one thread of the load generator). [`ShardLoad`] and [`ShardRequests`]
//! cover all kinds of load.
//!
//! The engine is compiled once for these two types. Separate types for each kind of load would save one branch per
//! event, which is a few nanoseconds of the microseconds that a call costs. But each type would need its own copy of
//! the engine, so the program would be megabytes larger.

use crate::plan::{PlannedLoad, PlannedPace};
use crate::{LoadOptions, RunError, RunOptions, RunPlan};
use brimful_core::workload::Expect;
use brimful_core::{CallSpec, ClassId, Nanos, NextCall, Outcome, RequestId, SessionId, SessionOutcome, Workload};
use brimful_engine::{BodyFile, FixedRequests, Redirect, RedirectPolicy, Requests, ScriptedRequests, SessionRequests};
use brimful_http::Request;
use brimful_workload::{
    Arrivals, ClosedBursts, ClosedWorkload, Mix, OpenWorkload, SClients, Scripts, Sessions, Shard, StreamedWorkload,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// The workload of one shard, which determines when its calls are due.
pub(crate) enum ShardLoad {
    Open(Box<OpenWorkload>),
    Closed(ClosedWorkload),
    ClosedBursts(ClosedBursts),
    SClients(SClients),
    Sessions(Box<Sessions>),
    Streamed(StreamedWorkload),
}

/// The requests that one shard sends.
pub(crate) enum ShardRequests<'a> {
    /// Requests of the workload's classes and sessions, most of them rendered before the run.
    Rendered(SessionRequests<'a, &'a FixedRequests>),
    /// Requests of a replayed log, rendered while the log is read.
    Streamed(Box<StreamedRequests>),
}

/// The parts of a load that all shards of a plan share. Replayed logs do not use them.
pub(crate) struct SharedLoad<'p> {
    plan: &'p RunPlan,
    mix: Mix,
    scripts: Option<Arc<Scripts>>,
    requests: FixedRequests,
    scripted: ScriptedRequests,
    follow: Option<RedirectPolicy>,
}

impl<'p> SharedLoad<'p> {
    /// Prepares the mix of request classes, the scripts of sessions and the rendered requests of a plan.
    pub fn new(plan: &'p RunPlan) -> Result<SharedLoad<'p>, RunError> {
        let LoadOptions { workload, seed, .. } = &plan.options().load;
        let settings = plan.options().server.request_settings();
        Ok(SharedLoad {
            plan,
            mix: Mix::from_workload(workload, *seed)?,
            scripts: Scripts::from_workload(workload).map(Arc::new),
            requests: FixedRequests::render(workload, &settings)?.with_seed(*seed),
            scripted: ScriptedRequests::render(workload, &settings)?,
            follow: plan.redirect_policy(),
        })
    }

    /// Creates the workload of one shard.
    pub fn load(&self, shard: Shard) -> Result<ShardLoad, RunError> {
        let limits = self.plan.workload_limits();
        let seed = self.plan.options().load.seed;
        // The classes of clients and sessions are drawn when calls end, at times that depend on the server. So each
        // shard draws them from its own random stream.
        let shard_mix = || self.mix.clone().for_shard(shard, seed);
        Ok(match self.plan.load() {
            // All shards compute the same schedule, and each makes its share of the calls.
            PlannedLoad::Open { arrivals, .. } => {
                ShardLoad::Open(Box::new(OpenWorkload::new(Arrivals::clone(arrivals), self.mix.clone(), limits, shard)))
            }
            PlannedLoad::Closed { clients, think, .. } => ShardLoad::Closed(
                ClosedWorkload::new(*clients, *think, shard_mix(), limits, shard).with_seed(seed, shard),
            ),
            PlannedLoad::ClosedBursts { clients, burst_size, think, .. } => {
                let bursts = ClosedBursts::new(*clients, *burst_size, *think, shard_mix(), limits, shard);
                ShardLoad::ClosedBursts(bursts.with_seed(seed))
            }
            PlannedLoad::SClients { attempts, timeout, pace } => ShardLoad::SClients(match pace {
                PlannedPace::Think(think) => {
                    SClients::thinking(*attempts, *timeout, *think, shard_mix(), limits, shard)
                }
                PlannedPace::Arrivals(arrivals) => {
                    let arrivals = Arrivals::clone(arrivals);
                    SClients::scheduled(*attempts, *timeout, arrivals, self.mix.clone(), limits, shard)
                }
            }),
            // Sessions draw from random streams of their own, not from the stream of their mix.
            PlannedLoad::Sessions { sessions, back_off, .. } => {
                let sessions = Sessions::new(sessions, shard_mix(), limits, seed, shard)?;
                let sessions = if *back_off { sessions } else { sessions.without_back_off() };
                ShardLoad::Sessions(Box::new(sessions.with_scripts(self.scripts.clone())))
            }
            PlannedLoad::Log { .. } => return Err(RunError::unread_log()),
        })
    }

    /// Creates the requests of one shard.
    pub fn requests(&self) -> ShardRequests<'_> {
        let RunOptions { server, load, .. } = self.plan.options();
        let requests = SessionRequests::new(&self.requests, &self.scripted).with_redirects(self.follow.as_ref());
        let keeps_cookies = load.workload.sessions().is_some_and(|sessions| sessions.cookies);
        ShardRequests::Rendered(match keeps_cookies {
            true => requests.with_cookies(server.endpoint.is_secure),
            false => requests,
        })
    }
}

impl Workload for ShardLoad {
    fn next(&mut self, now: Nanos, in_flight: usize) -> NextCall {
        match self {
            ShardLoad::Open(load) => load.next(now, in_flight),
            ShardLoad::Closed(load) => load.next(now, in_flight),
            ShardLoad::ClosedBursts(load) => load.next(now, in_flight),
            ShardLoad::SClients(load) => load.next(now, in_flight),
            ShardLoad::Sessions(load) => load.next(now, in_flight),
            ShardLoad::Streamed(load) => load.next(now, in_flight),
        }
    }

    fn on_established(&mut self, at: Nanos) {
        match self {
            ShardLoad::Open(load) => load.on_established(at),
            ShardLoad::Closed(load) => load.on_established(at),
            ShardLoad::ClosedBursts(load) => load.on_established(at),
            ShardLoad::SClients(load) => load.on_established(at),
            ShardLoad::Sessions(load) => load.on_established(at),
            ShardLoad::Streamed(load) => load.on_established(at),
        }
    }

    fn on_outcome(&mut self, outcome: &Outcome) {
        match self {
            ShardLoad::Open(load) => load.on_outcome(outcome),
            ShardLoad::Closed(load) => load.on_outcome(outcome),
            ShardLoad::ClosedBursts(load) => load.on_outcome(outcome),
            ShardLoad::SClients(load) => load.on_outcome(outcome),
            ShardLoad::Sessions(load) => load.on_outcome(outcome),
            ShardLoad::Streamed(load) => load.on_outcome(outcome),
        }
    }

    fn session_ended(&mut self, session: SessionId) -> Option<SessionOutcome> {
        match self {
            ShardLoad::Sessions(load) => load.session_ended(session),
            _ => None,
        }
    }

    fn closes_between_bursts(&self, session: SessionId) -> bool {
        matches!(self, ShardLoad::Sessions(load) if load.closes_between_bursts(session))
    }

    fn sessions_in_progress(&self) -> u64 {
        match self {
            ShardLoad::Sessions(load) => load.sessions_in_progress(),
            _ => 0,
        }
    }
}

impl<'a> Requests<'a> for ShardRequests<'a> {
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request> {
        match self {
            ShardRequests::Rendered(requests) => requests.request(call, last),
            ShardRequests::Streamed(requests) => requests.request(call, last),
        }
    }

    fn body(&mut self, call: &CallSpec) -> Option<&'a BodyFile> {
        match self {
            ShardRequests::Rendered(requests) => requests.body(call),
            ShardRequests::Streamed(_) => None,
        }
    }

    fn max_request_bytes(&self) -> usize {
        match self {
            ShardRequests::Rendered(requests) => requests.max_request_bytes(),
            ShardRequests::Streamed(requests) => requests.max_request_bytes(),
        }
    }

    fn reads_heads(&self) -> bool {
        match self {
            ShardRequests::Rendered(requests) => requests.reads_heads(),
            ShardRequests::Streamed(_) => false,
        }
    }

    fn expected(&self, class: ClassId) -> Option<&Expect> {
        match self {
            ShardRequests::Rendered(requests) => requests.expected(class),
            ShardRequests::Streamed(_) => None,
        }
    }

    fn read_head(&mut self, call: &CallSpec, head: &[u8]) -> Option<Redirect> {
        match self {
            ShardRequests::Rendered(requests) => requests.read_head(call, head),
            ShardRequests::Streamed(_) => None,
        }
    }

    fn ended(&mut self, call: &CallSpec) {
        match self {
            ShardRequests::Rendered(requests) => requests.ended(call),
            ShardRequests::Streamed(requests) => requests.ended(call),
        }
    }

    fn session_ended(&mut self, session: SessionId) {
        if let ShardRequests::Rendered(requests) = self {
            requests.session_ended(session);
        }
    }
}

/// The requests of a replayed log, as received from the thread that reads the log.
pub(crate) struct StreamedRequests {
    batches: Receiver<Vec<(RequestId, RenderedCall)>>,
    /// Requests of calls that have not ended.
    waiting: HashMap<RequestId, RenderedCall>,
    /// The request to send for an unknown identifier. This does not happen, because a request is received before its
    /// call.
    fallback: Request,
}

impl StreamedRequests {
    /// Creates a provider of the requests that arrive on `batches`. It sends `fallback` if the request of a call is
    /// unknown.
    pub fn new(batches: Receiver<Vec<(RequestId, RenderedCall)>>, fallback: Request) -> StreamedRequests {
        StreamedRequests { batches, waiting: HashMap::new(), fallback }
    }

    fn find(&mut self, request: RequestId) -> Option<&RenderedCall> {
        while !self.waiting.contains_key(&request) {
            self.waiting.extend(self.batches.try_recv().ok()?);
        }
        self.waiting.get(&request)
    }
}

/// A request in two forms: one for a connection that stays open, and one for the last call on a connection.
#[derive(Clone, Debug)]
pub(crate) struct RenderedCall {
    /// The form for a connection that stays open.
    pub keep_alive: Request,
    /// The form for the last call on a connection.
    pub last: Request,
}

impl<'a> Requests<'a> for StreamedRequests {
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request> {
        let rendered = self.find(call.request);
        let request = rendered.map(|rendered| if last { rendered.last.clone() } else { rendered.keep_alive.clone() });
        Cow::Owned(request.unwrap_or_else(|| self.fallback.clone()))
    }

    fn max_request_bytes(&self) -> usize {
        usize::MAX
    }

    fn ended(&mut self, call: &CallSpec) {
        // The request of a call that was never sent may not have been received yet. `find` receives it first.
        self.find(call.request);
        self.waiting.remove(&call.request);
    }
}
