//! Makes calls that are read from a log during the load: one thread renders them, and the shards send them. The memory
//! in use does not grow with the log: in each shard, at most [`BATCH`] × [`BATCHES`] calls wait, in addition to the
//! calls in flight.

use crate::observer::Observers;
use crate::shard::{RenderedCall, ShardLoad, ShardRequests, StreamedRequests};
use crate::{RunError, RunPlan};
use brimful_core::{CallSpec, ClassId, Nanos, RequestId, panics};
use brimful_engine::{Config, RequestSettings, Run};
use brimful_workload::{DueCall, StreamedWorkload};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Upper bound of the number of calls that are sent to a shard at once.
const BATCH: usize = 256;
/// Upper bound of the number of batches that wait for a shard.
const BATCHES: usize = 64;
/// The due times of the calls in a batch differ by less than this, so that a sparse log does not delay its first call.
const BATCH_SPAN: Nanos = Nanos::from_millis(500);

/// A call that was read from a log.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamedCall {
    /// When the call is due: never before the call that was read before it.
    pub due: Nanos,
    /// Index of the call's class.
    pub class: u16,
    /// The request method.
    pub method: String,
    /// The path and the query of the request.
    pub path: String,
    /// Header fields that only this call has.
    pub headers: Vec<(String, String)>,
}

/// Passes calls, one after another, to a function. The function returns whether it accepts more calls.
pub type Feed<'f> = Box<dyn FnOnce(&mut dyn FnMut(StreamedCall) -> bool) + Send + 'f>;

/// Makes the calls of a feed. Skips calls that cannot be sent as HTTP.
pub(crate) fn drive(
    plan: &RunPlan,
    config: &Config,
    feed: Feed<'_>,
    new_observers: impl Fn() -> Observers,
    stop: &AtomicBool,
) -> Result<Run<Observers>, RunError> {
    let settings = plan.options().server.request_settings();
    let fallback =
        settings.request("GET", "/", &[], &[], true).map_err(|error| RunError::BadLoad(error.to_string()))?;
    let mut feeders = Vec::new();
    let mut shards = Vec::new();
    for _ in plan.shards() {
        let (calls, due_calls) = sync_channel(BATCHES);
        let (rendered, requests) = sync_channel(BATCHES + 1);
        feeders.push(ShardFeeder { calls, rendered, pending_calls: Vec::new(), pending_requests: Vec::new() });
        let requests = StreamedRequests::new(requests, fallback.clone());
        let load = ShardLoad::Streamed(StreamedWorkload::new(due_calls));
        shards.push((load, ShardRequests::Streamed(Box::new(requests)), new_observers()));
    }
    let (first_batch_sent, first_batch) = sync_channel(1);
    let mut feeder = Feeder { shards: feeders, settings, next_request: 0, first_batch_sent: Some(first_batch_sent) };
    thread::scope(|scope| {
        let feed_all = move || {
            panics::catch_panic(|| {
                feed(&mut |call| feeder.push(call));
                feeder.flush();
            })
        };
        let feeding = thread::Builder::new().name("calls".to_owned()).spawn_scoped(scope, feed_all);
        let feeding = feeding
            .map_err(|error| RunError::BadLoad(format!("cannot start the thread that reads the calls: {error}")))?;
        // The clock starts with the first batch, because reading up to the first call may take some time.
        if first_batch.recv().is_err() {
            return Err(RunError::BadLoad("there is no call to make in what was read".to_owned()));
        }
        let mut run = brimful_engine::run(config, shards, stop)?;
        // A panic of the feed is caught on the feed's thread, so joining that thread does not fail.
        run.panics.extend(feeding.join().ok().and_then(Result::err));
        Ok(run)
    })
}

/// Distributes the calls to all shards in turn.
struct Feeder {
    shards: Vec<ShardFeeder>,
    settings: RequestSettings,
    next_request: u64,
    /// Signals, once, that a shard has received its first batch.
    first_batch_sent: Option<SyncSender<()>>,
}

/// The calls that are about to be sent to one shard.
struct ShardFeeder {
    calls: SyncSender<Vec<DueCall>>,
    rendered: SyncSender<Vec<(RequestId, RenderedCall)>>,
    pending_calls: Vec<DueCall>,
    pending_requests: Vec<(RequestId, RenderedCall)>,
}

impl Feeder {
    /// Passes a call to the next shard. Returns whether the shards accept more calls.
    fn push(&mut self, call: StreamedCall) -> bool {
        let render = |last| self.settings.request(&call.method, &call.path, &call.headers, &[], last).ok();
        let (Some(keep_alive), Some(last)) = (render(false), render(true)) else { return true };
        let request = RequestId(self.next_request);
        let index = (self.next_request % self.shards.len() as u64) as usize;
        self.next_request += 1;
        let pending = &self.shards[index].pending_calls;
        let spans_too_long = pending.first().is_some_and(|(due, _)| call.due >= *due + BATCH_SPAN);
        if (pending.len() >= BATCH || spans_too_long) && !self.send_batch(index) {
            return false;
        }
        let shard = &mut self.shards[index];
        shard.pending_requests.push((request, RenderedCall { keep_alive, last }));
        shard.pending_calls.push((call.due, CallSpec { class: ClassId(call.class), request, session: None }));
        true
    }

    /// Sends the pending batch of a shard. Requests are sent before the calls that need them. Returns whether the shard
    /// accepts more calls.
    fn send_batch(&mut self, index: usize) -> bool {
        let shard = &mut self.shards[index];
        let requests = std::mem::take(&mut shard.pending_requests);
        let calls = std::mem::take(&mut shard.pending_calls);
        let has_calls = !calls.is_empty();
        let is_wanted = shard.rendered.send(requests).is_ok() && shard.calls.send(calls).is_ok();
        if has_calls && let Some(first_batch_sent) = self.first_batch_sent.take() {
            // Sending cannot fail, because the receiver waits for this message.
            let _ = first_batch_sent.send(());
        }
        is_wanted
    }

    fn flush(&mut self) {
        for index in 0..self.shards.len() {
            if !self.shards[index].pending_calls.is_empty() {
                self.send_batch(index);
            }
        }
    }
}
