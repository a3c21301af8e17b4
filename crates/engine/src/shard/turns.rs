//! The event loop of a shard. In each iteration (turn), the shard asks the workload which calls are due, begins them,
//! and waits for events.
//!
//! Due calls come first: the schedule is checked again after every event, so that many responses at once cannot delay a
//! call that has come due. A shard that is behind its schedule reads responses before it begins calls, so that the
//! calls use the connections that have become idle. Otherwise, each call would need a new connection, which would delay
//! the shard even more.

use super::Shard;
use crate::call::Call;
use crate::connection::{Connection, Phase};
use crate::due_calls::RedirectedCall;
use crate::host::{self, CpuTime};
use crate::io::Io;
use crate::pacing::WaitTimes;
use crate::timers::PassedDeadline;
use crate::{Config, ConnectionPolicy, EngineError, Requests};
use brimful_core::panics;
use brimful_core::{CallSpec, End, Event, Nanos, NextCall, Observer, TlsFault, Workload};
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of calls that a shard begins before it checks its sockets.
const BURST: usize = 8;
/// Maximum number of calls that a shard begins at a tick ([`Config::tick`](crate::Config::tick)) before it checks its
/// sockets, unless it is behind its schedule.
const TICK_BURST: usize = 32;
/// Maximum time after the end of the schedule at which a call begins. Later calls are not sent, so that the duration of
/// the run is bounded.
const MAX_OVERRUN: Nanos = Nanos::from_secs(1);
/// Interval at which a shard publishes its metrics during the run, for other threads to read.
const PUBLISH_INTERVAL: Nanos = Nanos::from_millis(100);
/// Initial capacity of the call queue of a session's connection. The queue grows on demand.
const INITIAL_CALLS: usize = 16;

/// The resources that a shard has used, and the way its run ended.
#[derive(Debug)]
pub struct ShardUsage {
    /// Time from the start of the run to the end of the shard's last call.
    pub duration: Nanos,
    /// Whether the shard ended because `stop` was set.
    pub interrupted: bool,
    /// CPU time of the shard's thread.
    pub cpu: CpuTime,
    /// Fraction of the time during which the shard was busy, that is, neither waited nor spun.
    pub busy_share: f64,
    /// The longest time for which the shard did not check for events, apart from deliberate sleep.
    pub longest_gap: Nanos,
    /// Highest number of connections that the shard had open at once.
    pub max_open: u64,
    /// Time for which the thread was ready to run but waited for a CPU; `None` if unknown.
    pub cpu_wait: Option<Nanos>,
    /// The message of the panic that ended the shard early, if it panicked.
    pub panic: Option<String>,
    /// The first request body that could not be read from its file, and the reason.
    pub body_error: Option<String>,
}

/// How the event loop ended, and how busy it was.
struct TurnsEnd {
    interrupted: bool,
    /// Fraction of the time during which the shard was busy. It is 0 if the shard never had a call, for example because
    /// there are fewer clients than shards.
    busy_share: f64,
}

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    /// Runs the shard to its end. Returns its observer, which has the end of every scheduled call. After a panic, the
    /// observer has what was reported before.
    pub fn run(mut self, stop: &AtomicBool) -> Result<(O, ShardUsage), EngineError> {
        let ended = panics::catch_panic(|| self.take_turns(stop).and_then(|ended| self.finish().map(|()| ended)));
        let (TurnsEnd { interrupted, busy_share }, panic) = match ended {
            Ok(ended) => (ended?, None),
            Err(message) => {
                // Ends the calls under way as unfinished. If this panics too, calls are missing in the result, and the
                // check of its counts reports them.
                let _ = panics::catch_panic(|| self.end_all());
                (TurnsEnd { interrupted: false, busy_share: self.time.busy_share() }, Some(message))
            }
        };
        let used = ShardUsage {
            duration: self.time.now(),
            interrupted,
            cpu: host::thread_cpu(),
            longest_gap: self.time.longest_gap(),
            busy_share,
            max_open: self.connections.max_open(),
            cpu_wait: self.time.cpu_wait(),
            panic,
            body_error: self.bodies.take_error().map(|error| error.to_string()),
        };
        Ok((self.observer, used))
    }

    /// Runs the event loop until every call has ended or `stop` is set.
    fn take_turns(&mut self, stop: &AtomicBool) -> Result<TurnsEnd, EngineError> {
        self.time.wait_for_start(stop);
        if stop.load(Ordering::Relaxed) {
            return Ok(TurnsEnd { interrupted: true, busy_share: 0.0 });
        }
        let mut published = Nanos::ZERO;
        let mut busy_share = None;
        let mut has_waited = false;
        let interrupted = loop {
            let is_behind = self.begin_due(self.burst());
            self.due_calls.set_behind(is_behind);
            self.end_overdue();
            if self.due_calls.is_exhausted() && (self.due_calls.in_flight() == 0 || self.may_stop_waiting()) {
                break false;
            }
            if stop.load(Ordering::Relaxed) {
                break true;
            }
            if self.time.now() >= published + PUBLISH_INTERVAL {
                published = self.time.now();
                self.observer.publish(published);
                self.refresh_addresses();
            }
            // Measures the busy share before the shard only waits for the last responses and is mostly idle.
            let has_begun_all = self.due_calls.is_exhausted() && self.time.now() >= PUBLISH_INTERVAL;
            if busy_share.is_none() && (has_begun_all || self.time.now() >= self.config.window) {
                busy_share = Some(self.time.busy_share());
            }
            self.wait()?;
            has_waited = true;
        };
        Ok(TurnsEnd {
            interrupted,
            busy_share: if has_waited { busy_share.unwrap_or_else(|| self.time.busy_share()) } else { 0.0 },
        })
    }

    /// Ends all calls that are still under way, and publishes the final metrics.
    fn finish(&mut self) -> Result<(), EngineError> {
        self.end_all();
        self.observer.on_sessions_in_progress(self.workload.sessions_in_progress());
        self.end_turn(WaitTimes::default());
        self.sockets.flush()?;
        self.observer.publish(self.time.now());
        Ok(())
    }

    /// Maximum number of calls that the shard begins before it checks its sockets. It is at least the pipeline depth,
    /// so that all requests of a pipeline are sent in one write.
    fn burst(&self) -> usize {
        let burst = if self.config.tick.is_some() && !self.due_calls.is_behind() { TICK_BURST } else { BURST };
        burst.max(self.config.connections.pipeline)
    }

    /// Whether the run may end although calls are in flight. Connection attempts without a timeout do not delay the end
    /// of the run, because the kernel gives up an attempt only after minutes.
    fn may_stop_waiting(&self) -> bool {
        let longest = MAX_OVERRUN.max(self.config.connections.response_timeout);
        self.config.connections.connect_timeout.is_none() && self.time.now() > self.config.window + longest
    }

    /// Begins at most `limit` of the due calls, and determines when to ask the workload again. Returns whether more
    /// calls may be due.
    fn begin_due(&mut self, limit: usize) -> bool {
        if self.config.tick.is_none() {
            return self.begin_all_due(limit);
        }
        let now = self.time.update();
        if self.due_calls.is_between_ticks(now) {
            return false;
        }
        let more_due = self.begin_all_due(limit);
        if !more_due {
            self.due_calls.end_tick(self.time.now());
        }
        more_due
    }

    fn begin_all_due(&mut self, limit: usize) -> bool {
        self.due_calls.ask_workload_now();
        for nth in 0..limit {
            // With pipelining, reads the clock once for all calls, because beginning a call takes only a fraction of a
            // microsecond, and reading the clock would take much of this time.
            let reads_clock = nth == 0 || self.config.connections.pipeline == 1;
            let now = if reads_clock { self.time.update() } else { self.time.now() };
            if self.due_calls.must_wait_for_connection(now, &self.connections) {
                return false;
            }
            if self.begin_retry(now) {
                continue;
            }
            if let Some(RedirectedCall { spec, due, ready }) = self.due_calls.pop_redirected() {
                self.begin(spec, due, ready, now);
                continue;
            }
            match self.workload.next(now, self.due_calls.in_flight()) {
                NextCall::Due { due, call } => self.begin(call, due, self.due_calls.earliest_begin(due), now),
                NextCall::Delayed { due, ready, call } => {
                    self.begin(call, due, self.due_calls.earliest_begin(ready), now);
                }
                NextCall::NotBefore(due) => {
                    self.due_calls.ask_workload_at(due);
                    return false;
                }
                NextCall::WaitForOutcome => {
                    self.due_calls.ask_workload_at(Nanos::MAX);
                    return false;
                }
                NextCall::Done => {
                    self.due_calls.note_exhausted();
                    return false;
                }
            }
        }
        true
    }

    /// Maximum time after the end of the schedule at which a call begins. With a limit on connections, it is at least
    /// the response timeout, because calls wait for the responses to other calls.
    fn max_overrun(&self) -> Nanos {
        let policy = &self.config.connections;
        if policy.max_per_shard.is_some() { MAX_OVERRUN.max(policy.response_timeout) } else { MAX_OVERRUN }
    }

    fn begin(&mut self, spec: CallSpec, due: Nanos, ready: Nanos, now: Nanos) {
        let mut observed = O::PerCall::default();
        let stamp = self.connections.next_stamp();
        self.observer.on(&mut observed, &Event::Scheduled { class: spec.class, due });
        self.due_calls.note_begun(due);
        if now > self.config.window + self.max_overrun() {
            return self.end(&mut Call::new(spec, due, stamp, observed), End::Unfinished { sent: false }, 0);
        }
        if ready > due {
            self.observer.on(&mut observed, &Event::Ready { at: ready });
        }
        self.observer.on(&mut observed, &Event::Begun { at: now });
        // Constructs the call as an argument, so that this large value is not copied.
        self.place(Call::new(spec, due, stamp, observed), false, now);
    }

    /// Begins the call that has waited longest to be sent again. Returns false if there is none.
    fn begin_retry(&mut self, now: Nanos) -> bool {
        let Some(mut call) = self.due_calls.pop_retry() else { return false };
        call.stamp = self.connections.next_stamp();
        let may_open =
            self.due_calls.may_open(self.connections.open_count()) && self.may_have_new_connection(call.spec);
        let fresh = call.earlier.needs_new_connection && may_open;
        self.place(call, fresh, now);
        true
    }

    /// Assigns the call to a connection with room for it, or opens a connection. If `fresh` is set, always opens one.
    #[inline]
    fn place(&mut self, mut call: Call<O::PerCall>, fresh: bool, now: Nanos) {
        let spec = call.spec;
        let available = match spec.session {
            _ if fresh => None,
            None if self.config.connections.keeps_connections_open => None,
            None if self.addresses.has_several_addresses() => self.available_in_turn(),
            None => self.connections.available(),
            Some(session) => self.connections.available_for_session(session),
        };
        match available {
            Some(slot) => self.assign(slot, call, now),
            None if !self.may_have_new_connection(spec) => self.end(&mut call, End::Reset { sent: false }, 0),
            None => {
                let policy = &self.config.connections;
                let mut connection =
                    Connection::new(Phase::Connecting, policy.pipeline, spec.session).with_protocol(self.config.http2);
                if spec.session.is_some() {
                    connection.calls = self.connections.session_queue(session_queue_capacity(self.config));
                }
                enqueue(&mut connection, call, policy);
                self.attempt(connection, now);
            }
        }
    }

    /// Returns the slot of a connection for a call to a server with several addresses. Returns `None` if the call must
    /// open a connection, because this shard has not connected to all addresses yet or because no connection has room.
    fn available_in_turn(&mut self) -> Option<u32> {
        if self.addresses.has_unvisited_address() && self.due_calls.may_open(self.connections.open_count()) {
            return None;
        }
        self.connections.available_in_turn()
    }

    /// Assigns the call to the connection in this slot, and sends the request if the connection is open.
    fn assign(&mut self, slot: u32, mut call: Call<O::PerCall>, now: Nanos) {
        let policy = &self.config.connections;
        let Some(connection) = self.connections.get_with_queue(slot, session_queue_capacity(self.config)) else {
            return;
        };
        if self.addresses.counts_by_address() {
            self.observer.on(&mut call.observer_data, &Event::Routed { address: connection.address });
        }
        enqueue(connection, call, policy);
        let is_open = connection.phase == Phase::Open;
        let is_first = connection.calls.len() == 1;
        self.connections.update_availability(slot);
        if is_open && self.config.http2 {
            self.send_newest_on_stream(slot, now);
        } else if is_open {
            self.send(slot, None, now);
            if is_first {
                self.expect_response(slot);
            }
        }
    }

    /// Waits for events, and handles them.
    fn wait(&mut self) -> Result<(), EngineError> {
        self.hand_over_output();
        let next_deadline = self.timers.next_deadline().min(self.bodies.next_deadline().unwrap_or(Nanos::MAX));
        let until = self.due_calls.wake_at().min(next_deadline);
        let waited = self.sockets.wait(self.time.clock(), until, self.due_calls.wants_exact_waits())?;
        self.end_turn(waited);
        let open_before = self.connections.open_count();
        let attempts_have_begun = self.sockets.attempts_have_begun();
        while let Some((token, event)) = self.sockets.next_event() {
            self.handle(token, event);
            let may_begin = !self.due_calls.is_behind() || self.connections.may_have_room();
            if self.due_calls.must_ask_workload(self.time.now()) && may_begin {
                // The received data may have completed all calls of a pipeline, so this number of calls may begin.
                self.begin_due(self.config.connections.pipeline);
            }
            if self.sockets.must_flush(self.time.now()) {
                self.hand_over_output();
                self.sockets.flush()?;
            }
        }
        self.end_unreadable();
        self.sockets.take_failure()?;
        self.connections.update_max_open(open_before, attempts_have_begun);
        self.sockets.end_poll(waited.polled_at, open_before);
        Ok(())
    }

    /// Ends an iteration of the event loop. If it was stalled, postpones the deadlines of the requests that it sent.
    fn end_turn(&mut self, waited: WaitTimes) {
        if let Some(stall) = self.time.end_turn(waited) {
            self.timers.postpone(stall.since, stall.until);
        }
    }

    /// Ends connection attempts and calls that have timed out. If the load generator was stopped for some time, data
    /// that arrived in time may still be unread in the sockets. So a deadline counts as passed only after all data that
    /// had arrived by then was read.
    fn end_overdue(&mut self) {
        self.send_overdue_bodies();
        let read_until = self.sockets.read_until();
        while let Some(overdue) = self.timers.pop_overdue(read_until, &self.connections) {
            match overdue {
                PassedDeadline::Attempt(slot) => self.drop_attempt(slot, End::Abandoned),
                PassedDeadline::Handshake(slot) => {
                    let why = TlsFault::TimedOut;
                    self.drop_connection(slot, |_, _| End::TlsFailed { sent: false, why });
                }
                PassedDeadline::Close(slot) => self.close(slot),
                PassedDeadline::Response(call) if self.config.http2 => self.give_up_stream(call, End::TimedOut),
                PassedDeadline::Response(call) => {
                    let sent_by = read_until - self.config.connections.response_timeout;
                    self.drop_overdue(call.slot, sent_by);
                }
            }
        }
    }

    /// Ends all calls that have not ended, as unfinished.
    fn end_all(&mut self) {
        self.time.update();
        while let Some(mut call) = self.due_calls.pop_retry() {
            self.end(&mut call, End::Unfinished { sent: false }, 0);
        }
        // Counts the connection attempts since the last wait.
        self.connections.update_max_open(self.connections.open_count(), true);
        self.send_goaways();
        for slot in self.connections.slots() {
            match self.connections.get(slot).map(|connection| connection.phase) {
                Some(Phase::Connecting) => self.drop_attempt(slot, End::Unfinished { sent: false }),
                _ => self.drop_connection(slot, |_, _| End::Unfinished { sent: true }),
            }
        }
    }
}

/// Initial capacity of the call queue of a session's connection.
fn session_queue_capacity(config: &Config) -> usize {
    if config.http2 { 1 } else { config.connections.pipeline.min(INITIAL_CALLS) }
}

/// Adds a call to a connection's queue.
#[inline]
fn enqueue<P>(connection: &mut Connection<P>, mut call: Call<P>, policy: &ConnectionPolicy) {
    connection.calls_begun += 1;
    call.is_last = policy.calls_per_connection.is_some_and(|lifetime| connection.calls_begun >= lifetime);
    connection.calls.push_back(call);
}
