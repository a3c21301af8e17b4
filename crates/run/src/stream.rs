//! Calls that are found out while the load goes on: one thread hands them over, the shards make them. However many there
//! are, only so many are on their way at a time ([`BATCH`] × [`BATCHES`] for each shard, and those under way).

use crate::{RunError, RunPlan};
use brimful_core::{CallSpec, ClassId, Nanos, Observer, RequestId, panics};
use brimful_engine::{Config, RequestSettings, Requests, Run, run};
use brimful_http::Request;
use brimful_workload::{DueCall, Streamed};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Calls that are handed over at once, at most.
const BATCH: usize = 256;
/// Batches that wait for a shard.
const BATCHES: usize = 64;
/// Calls that are further apart than this do not wait for one another.
const TOGETHER: Nanos = Nanos::from_millis(500);

/// A call that came out of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamedCall {
    /// When; never before that of the call before it.
    pub due: Nanos,
    /// Index of its class.
    pub class: u16,
    /// Its method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Header fields of its own.
    pub headers: Vec<(String, String)>,
}

/// Hands over calls, one after another, to a function that says whether more are wanted.
pub type Feed<'f> = Box<dyn FnOnce(&mut dyn FnMut(StreamedCall) -> bool) + Send + 'f>;

/// Makes the calls of a stream. Those that cannot be sent as HTTP are passed over, and counted.
pub(crate) fn drive<O: Observer + Send>(
    plan: &RunPlan,
    config: &Config,
    feed: Feed<'_>,
    observer: impl Fn() -> O,
    stop: &AtomicBool,
) -> Result<Run<O>, RunError> {
    let wire = plan.wire();
    let fallback = wire.request("GET", "/", &[], &[], true).map_err(|error| RunError::BadLoad(error.to_string()))?;
    let (mut feeders, mut shards) = (Vec::new(), Vec::new());
    for _ in 0..plan.threads {
        let (calls, due) = sync_channel(BATCHES);
        let (forms, requests) = sync_channel(BATCHES + 1);
        feeders.push(Feeder { calls, forms, pending: Vec::new(), rendered: Vec::new() });
        let requests = StreamedRequests { batches: requests, waiting: HashMap::new(), fallback: fallback.clone() };
        shards.push((Streamed::new(due), requests, observer()));
    }
    let (first, begun) = sync_channel(1);
    let lot = Lot { feeders, wire, next: 0, first: Some(first) };
    thread::scope(|scope| {
        let feeding = move || {
            let mut lot = lot;
            panics::caught(|| {
                feed(&mut |call| lot.hand_over(call));
                lot.finish();
            })
        };
        let feeding = thread::Builder::new().name("calls".to_owned()).spawn_scoped(scope, feeding);
        let feeding = feeding
            .map_err(|error| RunError::BadLoad(format!("no thread can be had that reads the calls: {error}")))?;
        // Not before there is something to do: whoever reads may take a while to get to the first call.
        if begun.recv().is_err() {
            return Err(RunError::BadLoad("there is no call to make in what was read".to_owned()));
        }
        let mut done = run(config, shards, stop)?;
        // What is caught does not end the thread.
        done.panics.extend(feeding.join().ok().and_then(Result::err));
        Ok(done)
    })
}

/// All shards, in turn.
struct Lot {
    feeders: Vec<Feeder>,
    wire: RequestSettings,
    /// Number of the next call.
    next: u64,
    /// Told when the first batch is there.
    first: Option<SyncSender<()>>,
}

/// What is on its way to one shard.
struct Feeder {
    calls: SyncSender<Vec<DueCall>>,
    forms: SyncSender<Vec<(RequestId, Forms)>>,
    pending: Vec<DueCall>,
    rendered: Vec<(RequestId, Forms)>,
}

/// A request as it is sent on a connection that goes on, and on one that ends with it.
#[derive(Clone, Debug)]
struct Forms {
    on_going: Request,
    last: Request,
}

impl Lot {
    /// Says whether more calls are wanted.
    fn hand_over(&mut self, call: StreamedCall) -> bool {
        let render = |last| self.wire.request(&call.method, &call.path, &call.headers, &[], last).ok();
        let Some((on_going, last)) = render(false).zip(render(true)) else { return true };
        let request = RequestId(self.next);
        let shard = (self.next % self.feeders.len() as u64) as usize;
        self.next += 1;
        let feeder = &mut self.feeders[shard];
        let waited_for = feeder.pending.first().is_some_and(|(due, _)| call.due >= *due + TOGETHER);
        if (feeder.pending.len() >= BATCH || waited_for) && !self.send(shard) {
            return false;
        }
        let feeder = &mut self.feeders[shard];
        feeder.rendered.push((request, Forms { on_going, last }));
        feeder.pending.push((call.due, CallSpec { class: ClassId(call.class), request, session: None }));
        true
    }

    /// Requests go before the calls that need them.
    fn send(&mut self, shard: usize) -> bool {
        let feeder = &mut self.feeders[shard];
        let (rendered, pending) = (std::mem::take(&mut feeder.rendered), std::mem::take(&mut feeder.pending));
        let begun = !pending.is_empty();
        let wanted = feeder.forms.send(rendered).is_ok() && feeder.calls.send(pending).is_ok();
        if begun && let Some(first) = self.first.take() {
            // Who waits for it is there until it is told.
            let _ = first.send(());
        }
        wanted
    }

    fn finish(&mut self) {
        for shard in 0..self.feeders.len() {
            if !self.feeders[shard].pending.is_empty() {
                self.send(shard);
            }
        }
    }
}

/// The requests of one shard's calls.
struct StreamedRequests {
    batches: Receiver<Vec<(RequestId, Forms)>>,
    /// Of calls that have not ended.
    waiting: HashMap<RequestId, Forms>,
    /// What is sent where a request is not known, which cannot be.
    fallback: Request,
}

impl StreamedRequests {
    fn known(&mut self, request: RequestId) -> Option<&Forms> {
        while !self.waiting.contains_key(&request) {
            self.waiting.extend(self.batches.try_recv().ok()?);
        }
        self.waiting.get(&request)
    }
}

impl<'a> Requests<'a> for StreamedRequests {
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request> {
        let known =
            self.known(call.request).map(|forms| if last { forms.last.clone() } else { forms.on_going.clone() });
        Cow::Owned(known.unwrap_or_else(|| self.fallback.clone()))
    }

    fn longest(&self) -> usize {
        usize::MAX
    }

    fn reads_heads(&self) -> bool {
        false
    }

    fn ended(&mut self, call: &CallSpec) {
        // One that was never asked for may still be on its way.
        self.known(call.request);
        self.waiting.remove(&call.request);
    }
}
