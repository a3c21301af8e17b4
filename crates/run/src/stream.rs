//! Generates the load of a log that is read during the run. One thread reads the log and renders the requests; the
//! shards send them. Memory use does not grow with the log: besides the calls in flight, at most [`BATCH`] ×
//! [`BATCHES`] calls wait for each shard.

use crate::observer::Observers;
use crate::shard::{RenderedCall, ShardLoad, ShardRequests, StreamedRequests};
use crate::{RunError, RunPlan};
use brimful_core::{CallSpec, ClassId, Nanos, RequestId, panics};
use brimful_engine::{Config, RequestSettings, Run};
use brimful_workload::{DueCall, StreamedWorkload};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Maximum number of calls in a batch, the unit in which calls are passed to a shard.
const BATCH: usize = 256;
/// Maximum number of batches that wait for a shard.
const BATCHES: usize = 64;
/// Maximum difference between the due times of the calls in a batch. Otherwise, a batch of a log with few calls would
/// reach its shard after the due time of its first call.
const BATCH_SPAN: Nanos = Nanos::from_millis(500);

/// A call that was read from a log.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamedCall {
    /// The time at which the call is due. It is not earlier than the due time of the previous call.
    pub due: Nanos,
    /// Index of the call's request class.
    pub class: u16,
    /// The request method.
    pub method: String,
    /// The path and the query of the request.
    pub path: String,
    /// Header fields of this call, in addition to those of all calls.
    pub headers: Vec<(String, String)>,
}

/// A function that reads the calls of a log. It passes each call to its argument, which returns whether it accepts
/// more.
pub type Feed<'f> = Box<dyn FnOnce(&mut dyn FnMut(StreamedCall) -> bool) + Send + 'f>;

/// Replays a log, whose calls `feed` reads. Skips calls that cannot be sent as HTTP requests.
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
        // Waits for the first batch of calls, because reading the log up to its first call may take some time.
        if first_batch.recv().is_err() {
            return Err(RunError::BadLoad("there is no call to make in what was read".to_owned()));
        }
        let mut run = brimful_engine::run(config, shards, stop)?;
        // An error is not possible, because `catch_panic` returns a panic of the feed as a value.
        run.panics.extend(feeding.join().ok().and_then(Result::err));
        Ok(run)
    })
}

/// Distributes the calls to the shards in turn (round robin).
struct Feeder {
    shards: Vec<ShardFeeder>,
    settings: RequestSettings,
    next_request: u64,
    /// Notifies that a shard has received its first batch; `None` after that.
    first_batch_sent: Option<SyncSender<()>>,
}

/// The channels to one shard, and the batch that is being filled for it.
struct ShardFeeder {
    calls: SyncSender<Vec<DueCall>>,
    rendered: SyncSender<Vec<(RequestId, RenderedCall)>>,
    pending_calls: Vec<DueCall>,
    pending_requests: Vec<(RequestId, RenderedCall)>,
}

impl Feeder {
    /// Adds a call to the batch of the next shard. Returns whether the shards accept more calls.
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

    /// Sends a shard its batch: first the rendered requests, then the calls that need them. Returns whether the shard
    /// accepts more calls.
    fn send_batch(&mut self, index: usize) -> bool {
        let shard = &mut self.shards[index];
        let requests = std::mem::take(&mut shard.pending_requests);
        let calls = std::mem::take(&mut shard.pending_calls);
        let has_calls = !calls.is_empty();
        let is_wanted = shard.rendered.send(requests).is_ok() && shard.calls.send(calls).is_ok();
        if has_calls && let Some(first_batch_sent) = self.first_batch_sent.take() {
            // An error is not possible, because the receiver exists until it has received this message.
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
