//! One shard: asks the workload what is due, does it, and tells the observer what happened.
//!
//! Due times come first: the schedule is looked at again after every socket event, so that no batch of responses can hold
//! up a call that has come due. A generator that is behind reads responses before it begins calls, on the connections that
//! the responses left idle; were calls begun first, each would need a new connection and it would fall further behind.

use crate::clock::Clock;
use crate::connection::{Call, Connections, Phase};
use crate::deadlines::{Armed, Deadlines};
use crate::host;
use crate::poller::{Poller, Ready};
use crate::socket;
use crate::{Close, Config, EngineError, Progress};
use brimful_core::{CallSpec, ClassId, End, Event, Limit, Nanos, Next, Observer, Outcome, Workload};
use brimful_http::{Progress as Parsed, Request, Response};
use rustix::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Calls begun in a row before the sockets are looked at.
const BURST: usize = 8;
/// Reads from one connection in a row before the others have their turn.
const READS: usize = 16;
/// A call that has not begun this long after the window's end never will: the load stays bounded in time.
const OVERRUN: Nanos = Nanos::from_secs(1);
/// How often the live figures are refreshed.
const PUBLISH: Nanos = Nanos::from_millis(100);
const READ_BUFFER: usize = 64 * 1024;

/// One shard of a run.
pub struct Shard<'a, W, O: Observer> {
    config: &'a Config,
    clock: Clock,
    now: Nanos,
    workload: W,
    observer: O,
    poller: Poller,
    connections: Connections<O::PerCall>,
    connecting: Deadlines,
    responding: Deadlines,
    /// Connections that still had bytes to read when their turn ended.
    unread: Vec<u64>,
    buffer: Vec<u8>,
    /// When the workload wants to be asked again.
    next_due: Nanos,
    done: bool,
    /// More was due than could be begun in one go.
    behind: bool,
    in_flight: usize,
    ended: u64,
}

/// The request of a connection's `calls`-th call.
fn request(config: &Config, calls: u64, class: ClassId) -> &Request {
    config.requests[usize::from(class.0)].get(is_last(config, calls))
}

/// Whether a connection ends with its `calls`-th call.
fn is_last(config: &Config, calls: u64) -> bool {
    config.calls_per_connection.is_some_and(|limit| calls >= limit)
}

/// What a shard has used.
#[derive(Debug)]
pub struct ShardUse {
    pub duration: Nanos,
    pub interrupted: bool,
    pub cpu_user: Nanos,
    pub cpu_system: Nanos,
    pub busy: f64,
    pub max_open: u64,
}

impl<'a, W: Workload, O: Observer> Shard<'a, W, O> {
    pub fn new(
        config: &'a Config,
        clock: Clock,
        workload: W,
        observer: O,
        cpu: Option<usize>,
        warm: Vec<OwnedFd>,
    ) -> Result<Self, EngineError> {
        host::settle_thread(cpu)?;
        let mut shard = Shard {
            config,
            clock,
            now: Nanos::ZERO,
            workload,
            observer,
            poller: Poller::new().map_err(|errno| EngineError::Poll(errno.into()))?,
            connections: Connections::new(),
            connecting: Deadlines::new(config.connect_timeout),
            responding: Deadlines::new(config.response_timeout),
            unread: Vec::new(),
            buffer: vec![0; READ_BUFFER],
            next_due: Nanos::ZERO,
            done: false,
            behind: false,
            in_flight: 0,
            ended: 0,
        };
        for socket in warm {
            let slot = shard.connections.insert(socket, Phase::Idle, None);
            let (token, connection) = (shard.connections.token(slot), shard.connections.get(slot));
            if connection.is_some_and(|connection| shard.poller.add(&connection.socket, token).is_ok()) {
                shard.connections.make_idle(slot);
            }
        }
        Ok(shard)
    }

    /// Runs to the end. The observer has then seen every scheduled call end.
    pub fn run(mut self, stop: &AtomicBool, progress: &Progress) -> Result<(O, ShardUse), EngineError> {
        self.clock.wait_for_start();
        let (mut published, mut published_at) = (0, Nanos::ZERO);
        let mut busy = None;
        let interrupted = loop {
            self.behind = self.begin_due(BURST);
            self.expire();
            if self.done && self.in_flight == 0 {
                break false;
            }
            if stop.load(Ordering::Relaxed) {
                break true;
            }
            if self.now >= published_at + PUBLISH {
                progress.ended.fetch_add(self.ended - published, Ordering::Relaxed);
                (published, published_at) = (self.ended, self.now);
            }
            if busy.is_none() && self.now >= self.config.window {
                busy = Some(self.busy());
            }
            self.wait()?;
        };
        if interrupted {
            self.break_off();
        }
        progress.ended.fetch_add(self.ended - published, Ordering::Relaxed);
        let (cpu_user, cpu_system) = host::thread_cpu();
        let used = ShardUse {
            duration: self.now,
            interrupted,
            cpu_user,
            cpu_system,
            busy: busy.unwrap_or_else(|| self.busy()),
            max_open: self.connections.max_open,
        };
        Ok((self.observer, used))
    }

    fn busy(&self) -> f64 {
        1.0 - self.poller.idle.0 as f64 / self.now.0.max(1) as f64
    }

    fn tick(&mut self) -> Nanos {
        self.now = self.clock.now();
        self.now
    }

    /// Begins at most `limit` of the calls that are due, and learns when to ask again. Returns whether more may be due.
    fn begin_due(&mut self, limit: usize) -> bool {
        self.next_due = Nanos::ZERO;
        for _ in 0..limit {
            let now = self.tick();
            self.next_due = match self.workload.next(now, self.in_flight) {
                Next::Due { due, call } => {
                    self.begin(due, call, now);
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

    fn begin(&mut self, due: Nanos, spec: CallSpec, now: Nanos) {
        let class = spec.class;
        let mut call = Call { class, due, observed: O::PerCall::default(), written: 0, received: 0 };
        self.in_flight += 1;
        self.observer.on(&mut call.observed, &Event::Scheduled { class, due });
        if now > self.config.window + OVERRUN {
            return self.end(call, End::Unfinished { sent: false });
        }
        self.observer.on(&mut call.observed, &Event::Begun { at: now });
        let Some(slot) = self.connections.pop_idle() else {
            return self.connect(call, now);
        };
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.call = Some(call);
            self.start_request(slot, now);
        }
    }

    fn connect(&mut self, mut call: Call<O::PerCall>, now: Nanos) {
        let attempt = socket::open(&self.config.address);
        if !matches!(attempt, Err(End::ClientLimited(_))) {
            self.observer.on(&mut call.observed, &Event::ConnectStarted { at: now });
        }
        let attempt = match attempt {
            Ok(attempt) => attempt,
            Err(end) => {
                self.tick();
                return self.end(call, end);
            }
        };
        let established = attempt.established;
        let slot = self.connections.insert(attempt.socket, Phase::Connecting, Some(call));
        let token = self.connections.token(slot);
        let Some(connection) = self.connections.get(slot) else {
            return;
        };
        let stamp = connection.stamp;
        if self.poller.add(&connection.socket, token).is_err() {
            // The kernel has no memory left to watch one more socket.
            return self.drop_call(slot, End::ClientLimited(Limit::Memory));
        }
        self.connecting.arm(now, Armed { slot, stamp });
        if established {
            self.established(slot);
        }
    }

    fn established(&mut self, slot: u32) {
        let at = self.tick();
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        if let Some(call) = &mut connection.call {
            self.observer.on(&mut call.observed, &Event::Established { at });
        }
        self.start_request(slot, at);
    }

    fn start_request(&mut self, slot: u32, now: Nanos) {
        let stamp = self.connections.fresh_stamp();
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let Some(call) = &connection.call else { return };
        connection.phase = Phase::Busy;
        connection.stamp = stamp;
        connection.calls += 1;
        connection.parser.start(request(self.config, connection.calls, call.class).is_head());
        self.responding.arm(now, Armed { slot, stamp });
        self.write_request(slot, now);
    }

    fn write_request(&mut self, slot: u32, now: Nanos) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let Some(call) = &mut connection.call else {
            return;
        };
        let bytes = request(self.config, connection.calls, call.class).bytes();
        while call.written < bytes.len() {
            match socket::write(&connection.socket, &bytes[call.written..]) {
                Ok(0) => return,
                Ok(n) => {
                    if call.written == 0 {
                        self.observer.on(&mut call.observed, &Event::Sent { at: now });
                    }
                    call.written += n;
                }
                Err(_) => {
                    // The server may have answered and closed before it had read everything.
                    return self.read_response(slot, true);
                }
            }
        }
    }

    fn wait(&mut self) -> Result<(), EngineError> {
        let until =
            [self.connecting.next(), self.responding.next()].into_iter().flatten().fold(self.next_due, Nanos::min);
        let failed = |errno: rustix::io::Errno| EngineError::Poll(errno.into());
        if until <= self.now || !self.unread.is_empty() {
            self.poller.poll_now().map_err(failed)?;
        } else {
            self.poller.wait(self.clock, until).map_err(failed)?;
        }
        self.tick();
        for token in std::mem::take(&mut self.unread) {
            self.ready(Ready { token, writable: false, readable: true, hung_up: true });
        }
        while let Some(ready) = self.poller.take() {
            self.ready(ready);
            if self.next_due <= self.now && (!self.behind || self.connections.any_idle()) {
                self.begin_due(1);
            }
        }
        Ok(())
    }

    fn ready(&mut self, ready: Ready) {
        let Some(slot) = self.connections.find(ready.token) else {
            return;
        };
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        match connection.phase {
            Phase::Connecting if ready.writable || ready.hung_up => {
                match socket::attempt_result(&connection.socket) {
                    Ok(()) => {
                        self.established(slot);
                        // What the server sent or closed at once has no event of its own.
                        if ready.hung_up {
                            self.read_response(slot, true);
                        }
                    }
                    Err(end) => {
                        self.tick();
                        self.drop_call(slot, end);
                    }
                }
            }
            Phase::Connecting => {}
            Phase::Busy => {
                let request = |call: &Call<_>| request(self.config, connection.calls, call.class).bytes().len();
                if ready.writable && connection.call.as_ref().is_some_and(|call| call.written < request(call)) {
                    let now = self.tick();
                    self.write_request(slot, now);
                }
                if ready.readable {
                    self.read_response(slot, ready.hung_up);
                }
            }
            // Nothing is owed on an idle connection: whatever comes, it is of no more use.
            Phase::Idle if ready.readable => self.close(slot, Close::Fin),
            Phase::Idle => {}
            Phase::Closing if ready.readable => self.read_to_end(slot),
            Phase::Closing => {}
        }
    }

    fn read_response(&mut self, slot: u32, hung_up: bool) {
        for _ in 0..READS {
            let Some(connection) = self.connections.get_mut(slot) else {
                return;
            };
            let Some(call) = &mut connection.call else {
                return;
            };
            let read = socket::read(&connection.socket, &mut self.buffer);
            self.now = self.clock.now();
            let n = match read {
                Ok(None) => return,
                Ok(Some(0)) => return self.end_of_stream(slot),
                Ok(Some(n)) => n,
                Err(_) => {
                    let sent = call.written > 0;
                    return self.drop_call(slot, End::Reset { sent });
                }
            };
            if call.received == 0 {
                self.observer.on(&mut call.observed, &Event::FirstByte { at: self.now });
            }
            call.received += n as u64;
            match connection.parser.feed(&self.buffer[..n]) {
                Err(_) => return self.drop_malformed(slot),
                Ok(fed) => {
                    if let Parsed::Complete(response) = fed.state {
                        // More than the response was sent: what follows on this connection cannot be trusted.
                        return self.complete(slot, response, hung_up || fed.consumed < n);
                    }
                }
            }
            // A short read has emptied the socket, and what comes later brings an event; but an end that was signalled
            // already brings none.
            if n < self.buffer.len() && !hung_up {
                return;
            }
        }
        self.unread.push(self.connections.token(slot));
    }

    fn end_of_stream(&mut self, slot: u32) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let Some(call) = &connection.call else { return };
        let sent = call.written > 0;
        match connection.parser.finish() {
            Ok(response) => self.complete(slot, response, true),
            Err(_) => self.drop_call(slot, End::Reset { sent }),
        }
    }

    fn complete(&mut self, slot: u32, response: Response, spent: bool) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let Some(call) = connection.call.take() else {
            return;
        };
        let whole = call.written == request(self.config, connection.calls, call.class).bytes().len();
        if spent || !whole {
            self.close(slot, self.config.close);
        } else if response.keep_alive && !is_last(self.config, connection.calls) {
            self.connections.make_idle(slot);
        } else if self.config.close == Close::Server {
            let stamp = self.connections.fresh_stamp();
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.phase = Phase::Closing;
                connection.stamp = stamp;
            }
            self.responding.arm(self.now, Armed { slot, stamp });
        } else {
            self.close(slot, self.config.close);
        }
        self.end(call, End::Completed { status: response.status });
    }

    fn read_to_end(&mut self, slot: u32) {
        for _ in 0..READS {
            let Some(connection) = self.connections.get(slot) else {
                return;
            };
            match socket::read(&connection.socket, &mut self.buffer) {
                Ok(None) => return,
                Ok(Some(n)) if n > 0 => {}
                Ok(Some(_)) | Err(_) => return self.close(slot, Close::Fin),
            }
        }
        // A server that keeps talking after its response is not waited for.
        self.close(slot, Close::Fin);
    }

    fn expire(&mut self) {
        let now = self.now;
        loop {
            let connections = &self.connections;
            let live = |armed: Armed| connections.get(armed.slot).is_some_and(|c| c.stamp == armed.stamp);
            if let Some(armed) = self.connecting.expired(now, live) {
                self.drop_call(armed.slot, End::Abandoned);
            } else if let Some(armed) = self.responding.expired(now, live) {
                let call = self.connections.get(armed.slot).and_then(|c| c.call.as_ref());
                match call.map(|call| call.written > 0) {
                    Some(true) => self.drop_call(armed.slot, End::TimedOut),
                    Some(false) => self.drop_call(armed.slot, End::Reset { sent: false }),
                    None => self.close(armed.slot, Close::Fin),
                }
            } else {
                return;
            }
        }
    }

    /// Ends everything that is still under way.
    fn break_off(&mut self) {
        self.tick();
        for slot in self.connections.slots() {
            let sent = self.connections.get(slot).and_then(|c| c.call.as_ref()).is_some_and(|call| call.written > 0);
            self.drop_call(slot, End::Unfinished { sent });
        }
    }

    /// Malformed bytes, unless not a byte of the request was sent: then it is not an answer to it.
    fn drop_malformed(&mut self, slot: u32) {
        let sent = self.connections.get(slot).and_then(|c| c.call.as_ref()).is_some_and(|call| call.written > 0);
        self.drop_call(slot, if sent { End::Malformed } else { End::Reset { sent } });
    }

    /// Closes a connection and ends its call, if it bears one.
    fn drop_call(&mut self, slot: u32, end: End) {
        let Some(mut connection) = self.connections.remove(slot) else {
            return;
        };
        let call = connection.call.take();
        socket::close(connection.socket, self.config.close);
        if let Some(call) = call {
            self.end(call, end);
        }
    }

    fn close(&mut self, slot: u32, how: Close) {
        if let Some(connection) = self.connections.remove(slot) {
            socket::close(connection.socket, how);
        }
    }

    fn end(&mut self, mut call: Call<O::PerCall>, end: End) {
        let (class, due, at): (ClassId, _, _) = (call.class, call.due, self.now);
        let outcome = Outcome { class, due, at, end, bytes_sent: call.written as u64, bytes_received: call.received };
        self.observer.on(&mut call.observed, &Event::Ended(outcome));
        self.workload.on_outcome(&outcome);
        self.in_flight -= 1;
        self.ended += 1;
        // The workload may want something at once.
        self.next_due = Nanos::ZERO;
    }
}
