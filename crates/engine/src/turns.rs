//! A shard's turns: asks the workload what is due, begins it, and waits. What becomes of it is told in `exchange.rs`.
//!
//! Due times come first: the schedule is looked at again after everything that has happened, so that no batch of responses can
//! hold up a call that has come due. A generator that is behind reads responses before it begins calls, on the connections that
//! the responses left idle; were calls begun first, each would need a new connection and it would fall further behind.

use crate::connection::{Call, Connection, Phase};
use crate::contention;
use crate::deadlines::Armed;
use crate::host::{self, CpuTime};
use crate::io::Io;
use crate::pacing::Waited;
use crate::shard::{Hop, RESET, Shard};
use crate::{ConnectionPolicy, EngineError, Requests};
use brimful_core::panics;
use brimful_core::{CallSpec, End, Event, Nanos, Next, Observer, TlsFault, Workload};
use brimful_os::clock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Calls begun in a row before the sockets are looked at.
const BURST: usize = 8;
/// The same at a tick, unless the generator is behind.
const TICK_BURST: usize = 32;
/// A call that has not begun this long after the window's end never will: the load stays bounded in time.
const OVERRUN: Nanos = Nanos::from_secs(1);
/// How often the live figures are refreshed.
const PUBLISH: Nanos = Nanos::from_millis(100);
/// A turn that takes so much longer than planned has held up what was to be sent in it.
const HELD_UP: Nanos = Nanos::from_millis(1);
/// Longest time that something asked for while events are handled is kept from the kernel.
const HELD: Nanos = Nanos::from_micros(10);
/// A session's connection has room for no more calls than this before it bears as many.
const FEW: usize = 16;

/// What a shard has used.
#[derive(Debug)]
pub struct ShardUse {
    pub duration: Nanos,
    pub interrupted: bool,
    pub cpu: CpuTime,
    pub busy: f64,
    pub longest_gap: Nanos,
    pub max_open: u64,
    /// For how long the thread was ready to run and something else had the CPU.
    pub cpu_wait: Option<Nanos>,
    /// The message of the panic that ended it early, if one did.
    pub panic: Option<String>,
    /// The first request body that could not be read from its file, and why.
    pub body_error: Option<String>,
}

/// How a shard's turns ended.
struct TurnsEnd {
    interrupted: bool,
    /// Share of its time with work to do; of a shard that had nothing at all to do, as with fewer clients than shards, 0.
    busy: f64,
}

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    /// Runs to the end. The observer has then seen every scheduled call end, unless a panic ended the shard early: then
    /// it has seen what came before.
    pub fn run(mut self, stop: &AtomicBool) -> Result<(O, ShardUse), EngineError> {
        let ended = panics::caught(|| self.take_turns(stop).and_then(|ended| self.finish().map(|()| ended)));
        let (TurnsEnd { interrupted, busy }, panic) = match ended {
            Ok(ended) => (ended?, None),
            Err(message) => {
                // The calls under way end as unfinished. If that panics too, the accounts show that they are not whole.
                let _ = panics::caught(|| self.break_off());
                (TurnsEnd { interrupted: false, busy: self.busy() }, Some(message))
            }
        };
        let used = ShardUse {
            duration: self.now,
            interrupted,
            cpu: host::thread_cpu(),
            longest_gap: self.longest_gap,
            busy,
            max_open: self.connections.max_open,
            cpu_wait: contention::thread_cpu_wait()
                .zip(self.cpu_wait_before)
                .map(|(after, before)| Nanos(after.0.saturating_sub(before.0))),
            panic,
            body_error: self.bodies.error.take().map(|error| error.to_string()),
        };
        Ok((self.observer, used))
    }

    /// Takes turns until every call has ended or `stop` is set.
    fn take_turns(&mut self, stop: &AtomicBool) -> Result<TurnsEnd, EngineError> {
        // Takes longer than the first call may be late.
        self.cpu_wait_before = contention::thread_cpu_wait();
        self.clock.wait_for_start();
        self.cpu_before = clock::thread_cpu();
        let mut published = Nanos::ZERO;
        let mut busy = None;
        let mut has_waited = false;
        let interrupted = loop {
            self.behind = self.begin_due(self.at_once());
            self.expire();
            if self.done && (self.in_flight == 0 || self.nothing_more_to_wait_for()) {
                break false;
            }
            if stop.load(Ordering::Relaxed) {
                break true;
            }
            if self.now >= published + PUBLISH {
                self.observer.publish(self.now);
                self.refresh_addresses();
                published = self.now;
            }
            // Not diluted by the wait for the last answers.
            let begun_all = self.done && self.now >= PUBLISH;
            if busy.is_none() && (begun_all || self.now >= self.config.window) {
                busy = Some(self.busy());
            }
            self.wait()?;
            has_waited = true;
        };
        Ok(TurnsEnd { interrupted, busy: if has_waited { busy.unwrap_or_else(|| self.busy()) } else { 0.0 } })
    }

    /// Ends what is still under way, and reports the last of it.
    fn finish(&mut self) -> Result<(), EngineError> {
        self.break_off();
        self.observer.on_sessions_in_progress(self.workload.sessions_in_progress());
        self.note_gap(Waited::default());
        self.io.flush()?;
        self.observer.publish(self.now);
        Ok(())
    }

    /// How many calls to begin before the sockets are looked at: those that leave in one write together.
    fn at_once(&self) -> usize {
        let least = if self.config.tick.is_some() && !self.behind { TICK_BURST } else { BURST };
        least.max(self.config.connections.pipeline)
    }

    /// Share of the time so far with work to do: what was not spent waiting, or what CPU time was used without spinning,
    /// whichever is more. The former sees a thread that is kept from its CPU, the latter work that the kernel does while it is
    /// asked to wait.
    fn busy(&self) -> f64 {
        let cpu = clock::thread_cpu().0.saturating_sub(self.cpu_before.0 + self.waited.spun.0);
        let elsewhere = self.now.0.saturating_sub(self.waited.total.0);
        cpu.max(elsewhere).min(self.now.0) as f64 / self.now.0.max(1) as f64
    }

    /// Attempts that only the kernel gives up, after minutes, do not hold up the end.
    fn nothing_more_to_wait_for(&self) -> bool {
        let longest = OVERRUN.max(self.config.connections.response_timeout);
        self.config.connections.connect_timeout.is_none() && self.now > self.config.window + longest
    }

    /// Begins at most `limit` of the calls that are due, and learns when to ask again. Returns whether more may be due.
    fn begin_due(&mut self, limit: usize) -> bool {
        let Some(tick) = self.config.tick else { return self.begin_all_due(limit) };
        if self.tick() < self.next_tick {
            self.next_due = self.next_tick;
            return false;
        }
        let more = self.begin_all_due(limit);
        if !more {
            self.next_tick = next_tick(self.now, tick);
            self.next_due = self.next_due.max(self.next_tick);
        }
        more
    }

    fn begin_all_due(&mut self, limit: usize) -> bool {
        self.next_due = Nanos::ZERO;
        for nth in 0..limit {
            // Pipelined calls begin within a fraction of a microsecond, and to look at the clock for each is much of that.
            let now = if nth == 0 || self.config.connections.pipeline == 1 { self.tick() } else { self.now };
            if self.must_wait_for_connection(now) {
                return false;
            }
            if self.begin_retry(now) {
                continue;
            }
            if let Some(Hop { spec, due, ready }) = self.hops.pop_front() {
                self.in_flight -= 1;
                self.begin((due, ready), spec, now);
                continue;
            }
            self.next_due = match self.workload.next(now, self.in_flight) {
                Next::Due { due, call } => {
                    self.begin((due, due.max(self.had_room)), call, now);
                    continue;
                }
                Next::Waited { due, ready, call } => {
                    self.begin((due, ready.max(self.had_room)), call, now);
                    continue;
                }
                Next::NotBefore(due) => due,
                Next::WaitForOutcome => Nanos::MAX,
                Next::Done => {
                    self.done = true;
                    Nanos::MAX
                }
            };
            return false;
        }
        true
    }

    /// How long after the schedule's end a call may begin. One that waits for a connection waits for answers.
    fn overrun(&self) -> Nanos {
        let policy = &self.config.connections;
        if policy.max_per_shard.is_some() { OVERRUN.max(policy.response_timeout) } else { OVERRUN }
    }

    /// Whether there are as many connections as there may be, and all are taken: what is due stays where it is. An end of a
    /// call has this looked at again, and some time, as a connection may also go without one.
    fn must_wait_for_connection(&mut self, now: Nanos) -> bool {
        const LOOK_AGAIN: Nanos = Nanos::from_millis(1);
        let Some(most) = self.config.connections.max_per_shard else { return false };
        let lacks = self.connections.open() >= most && !self.connections.have_room();
        if lacks {
            self.next_due = now + LOOK_AGAIN;
        } else if self.lacks_connection {
            self.had_room = now;
        }
        self.lacks_connection = lacks;
        lacks
    }

    fn begin(&mut self, (due, ready): (Nanos, Nanos), spec: CallSpec, now: Nanos) {
        let mut observed = O::PerCall::default();
        let stamp = self.connections.fresh_stamp();
        self.in_flight += 1;
        self.observer.on(&mut observed, &Event::Scheduled { class: spec.class, due });
        self.density.note(due);
        if now > self.config.window + self.overrun() {
            return self.end(&mut Call::new(spec, due, stamp, observed), End::Unfinished { sent: false }, 0);
        }
        if ready > due {
            self.observer.on(&mut observed, &Event::Ready { at: ready });
        }
        self.observer.on(&mut observed, &Event::Begun { at: now });
        // It is large, and made where it is put.
        self.place(Call::new(spec, due, stamp, observed), false, now);
    }

    /// Has a connection bear the call: one that can take it, or a new one, which may have to be a `fresh` one.
    #[inline]
    pub(crate) fn place(&mut self, mut call: Call<O::PerCall>, fresh: bool, now: Nanos) {
        let spec = call.spec;
        let available = match spec.session {
            _ if fresh => None,
            None if self.config.connections.holds => None,
            None if self.addresses.are_several() => self.available_in_turn(),
            None => self.connections.available(),
            Some(session) => self.connections.available_to(session),
        };
        match available {
            Some(slot) => self.give(slot, call, now),
            None if self.has_had_its_connections(spec) => self.end(&mut call, End::Reset { sent: false }, 0),
            None => {
                let policy = &self.config.connections;
                let mut connection =
                    Connection::new(Phase::Connecting, policy.pipeline, spec.session).speaking(policy.http2);
                if spec.session.is_some() {
                    connection.calls = self.connections.queue(few(policy));
                }
                load(&mut connection, call, policy);
                self.attempt(connection, now);
            }
        }
    }

    /// A connection for a call to a server with several addresses; none while there may be one more, to an address that this
    /// shard has none to.
    fn available_in_turn(&mut self) -> Option<u32> {
        let most = self.config.connections.max_per_shard.unwrap_or(u64::MAX);
        if self.addresses.are_unvisited() && self.connections.open() < most {
            return None;
        }
        self.connections.available_in_turn()
    }

    /// Whether this is the call of a session that may have no further connection.
    pub(crate) fn has_had_its_connections(&self, spec: CallSpec) -> bool {
        let most = self.config.connections.connections_per_session;
        spec.session.zip(most).is_some_and(|(session, most)| self.connections.established_for(session) >= most)
    }

    /// Has an existing connection bear the call.
    fn give(&mut self, slot: u32, mut call: Call<O::PerCall>, now: Nanos) {
        let policy = &self.config.connections;
        let Some(connection) = self.connections.with_queue(slot, few(policy)) else { return };
        if self.addresses.are_told_apart() {
            let routed = Event::Routed { address: connection.address };
            self.observer.on(&mut call.observed, &routed);
        }
        load(connection, call, policy);
        let open = connection.phase == Phase::Open;
        let first = connection.calls.len() == 1;
        self.connections.list(slot);
        if open && self.config.connections.http2 {
            self.send_last_on_stream(slot, now);
        } else if open {
            self.send(slot, None, now);
            if first {
                self.expect_response(slot);
            }
        }
    }

    fn wait(&mut self) -> Result<(), EngineError> {
        self.hand_over();
        let Shard { connecting, securing, responding, closing, bodies, .. } = self;
        let deadlines = [connecting.next(), securing.next(), responding.next(), closing.next(), bodies.next()];
        let due = if self.config.tick.is_some() { self.next_due } else { self.density.wake_at(self.next_due) };
        let until = deadlines.into_iter().flatten().fold(due, Nanos::min);
        let exactly = self.config.tick.is_none() && !self.density.is_dense();
        if exactly != self.exactly {
            self.io.pace(exactly);
            self.exactly = exactly;
        }
        self.held_since = None;
        let waited = self.io.wait(self.clock, until)?;
        self.waited.total += waited.total;
        self.waited.spun += waited.spun;
        self.note_gap(waited);
        let (open, known) = (self.connections.open(), self.io.attempts_have_begun());
        while let Some((token, happened)) = self.io.next() {
            self.happened(token, happened);
            if self.next_due <= self.now && (!self.behind || self.connections.have_room()) {
                // As many as one read may have made room for.
                self.begin_due(self.config.connections.pipeline);
            }
            if self.held_since.is_some_and(|since| self.now > since + HELD) {
                self.hand_over();
                self.io.flush()?;
                self.held_since = None;
            }
        }
        self.end_unreadable();
        self.failed.take().map_or(Ok(()), Err)?;
        self.connections.count_open(open, known);
        self.sweep.looked(waited.looked, self.io.left_unread(), open);
        Ok(())
    }

    /// How long this turn took beyond what it slept by its own will: a thread that was stopped, or kept from its CPU, does not
    /// see it otherwise.
    fn note_gap(&mut self, waited: Waited) {
        let ended = self.tick();
        let gap = ended - self.turn_began - waited.total + waited.overslept;
        self.longest_gap = self.longest_gap.max(gap);
        if gap > HELD_UP {
            // What was to be sent in this turn may have left that much later; not later still, as no turn sleeps before it has
            // sent what it was to send.
            self.connecting.postpone(self.turn_began, self.turn_began + gap);
            self.securing.postpone(self.turn_began, self.turn_began + gap);
            self.responding.postpone(self.turn_began, self.turn_began + gap);
            self.closing.postpone(self.turn_began, self.turn_began + gap);
        }
        self.turn_began = ended;
    }

    /// Ends what is overdue. What came in time may still lie in the sockets, after the generator was kept from reading: a
    /// deadline counts once everything has been read that was there when it passed.
    fn expire(&mut self) {
        self.lose_patience();
        let read_until = self.sweep.read_until();
        loop {
            let connections = &self.connections;
            let attempt = |armed: Armed| {
                connections.get(armed.slot).is_some_and(|c| c.phase == Phase::Connecting && c.stamp == armed.stamp)
            };
            let handshake = |armed: Armed| {
                connections.get(armed.slot).is_some_and(|c| c.phase == Phase::Securing && c.stamp == armed.stamp)
            };
            let answer =
                |armed: Armed| connections.get(armed.slot).is_some_and(|c| c.phase == Phase::Open && c.bears(armed));
            let closing = |armed: Armed| {
                connections.get(armed.slot).is_some_and(|c| c.phase == Phase::Closing && c.stamp == armed.stamp)
            };
            if let Some(armed) = self.connecting.expired(read_until, attempt) {
                self.drop_attempt(armed.slot, End::Abandoned);
            } else if let Some(armed) = self.securing.expired(read_until, handshake) {
                let why = TlsFault::TimedOut;
                self.drop_connection(armed.slot, |_, _| End::TlsFailed { sent: false, why });
            } else if let Some(armed) = self.closing.expired(read_until, closing) {
                self.close(armed.slot);
            } else if let Some(armed) = self.responding.expired(read_until, answer) {
                if self.config.connections.http2 {
                    self.give_up_stream(armed, End::TimedOut);
                    continue;
                }
                // The calls behind the one that is overdue lose their connection.
                let sent_by = read_until - self.config.connections.response_timeout;
                self.drop_connection(armed.slot, |nth, call| {
                    let overdue = nth == 0 || call.sent_at.get().is_some_and(|at| at <= sent_by);
                    if overdue { End::TimedOut } else { RESET }
                });
            } else {
                return;
            }
        }
    }

    /// Ends everything that is still under way.
    fn break_off(&mut self) {
        self.tick();
        self.drop_retries();
        // What was begun since the last look has not been counted.
        self.connections.count_open(self.connections.open(), true);
        self.say_goodbyes();
        for slot in self.connections.slots() {
            match self.connections.get(slot).map(|connection| connection.phase) {
                Some(Phase::Connecting) => self.drop_attempt(slot, End::Unfinished { sent: false }),
                _ => self.drop_connection(slot, |_, _| End::Unfinished { sent: true }),
            }
        }
    }
}

/// The first whole number of ticks after `now`.
fn next_tick(now: Nanos, tick: Nanos) -> Nanos {
    let tick = tick.0.max(1);
    Nanos((now.0 / tick + 1).saturating_mul(tick))
}

/// For how many calls a session's connection has room as soon as it bears one.
fn few(policy: &ConnectionPolicy) -> usize {
    if policy.http2 { 1 } else { policy.pipeline.min(FEW) }
}

/// Puts a call into a connection's queue.
#[inline]
fn load<P>(connection: &mut Connection<P>, mut call: Call<P>, policy: &ConnectionPolicy) {
    connection.begun += 1;
    call.last = policy.calls_per_connection.is_some_and(|lifetime| connection.begun >= lifetime);
    connection.calls.push_back(call);
}
