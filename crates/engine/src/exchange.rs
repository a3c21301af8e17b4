//! What becomes of a shard's connections and calls: attempts, requests going out, responses coming in, and their ends.

use crate::connection::{Call, Connection, Phase};
use crate::deadlines::Armed;
use crate::expected::{Digest, judged};
use crate::io::{Happened, Io, Route, Token, end_of_attempt};
use crate::shard::{RESET, Shard};
use crate::{Close, Requests};
use brimful_core::{ConnectionEnded, End, Event, Limit, Nanos, Observer, ResponseSize, TlsFault, Workload};
use brimful_http::{Progress as Parsed, Protocol, Response};
use rustix::io::Errno;
use std::borrow::Cow;

/// What is known to come behind a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    Nothing,
    /// The end of the stream.
    End,
    /// Bytes that nobody has asked for.
    Excess,
}

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    /// Starts an attempt to establish a connection for the calls it bears; from another source address, if there is one and the
    /// first has no port left. Those of a session come from one address, so that the server can tell sessions apart.
    pub(crate) fn attempt(&mut self, mut connection: Connection<O::PerCall>, now: Nanos) {
        connection.attempted_at = now;
        connection.source = match connection.session {
            None => self.sources.take(now),
            Some(session) => self.sources.of_session(session),
        };
        connection.address = self.addresses.take(connection.session);
        if self.addresses.are_told_apart() {
            let routed = Event::Routed { address: connection.address };
            connection.calls.iter_mut().for_each(|call| self.observer.on(&mut call.observed, &routed));
        }
        connection.stamp = self.connections.fresh_stamp();
        let route = Route { address: usize::from(connection.address), source: connection.source };
        let stamp = connection.stamp;
        let token = self.connections.insert(connection);
        match self.io.connect(token, route) {
            Ok(()) => {
                if self.config.connections.connect_timeout.is_some() {
                    self.connecting.arm(now, Armed { slot: token.slot, stamp, stream: 0 });
                }
                self.hold();
            }
            Err(errno) => {
                self.tick();
                self.not_established(token.slot, errno);
            }
        }
    }

    pub(crate) fn happened(&mut self, token: Token, happened: Happened) {
        let now = self.tick();
        let Some(connection) = self.connections.find(token) else { return };
        let slot = token.slot;
        match (connection.phase, happened) {
            (Phase::Connecting, Happened::Established) => self.established(slot, now),
            // An attempt can only be refused: a reset is of a connection that was established and closed before anyone looked.
            (Phase::Connecting, Happened::NotEstablished(Errno::CONNRESET | Errno::PIPE)) => {
                self.open(slot, now);
                self.close(slot);
            }
            (Phase::Connecting, Happened::NotEstablished(errno)) => {
                if matches!(end_of_attempt(errno), End::ClientLimited(_)) {
                    self.connections.had_no_socket();
                }
                self.not_established(slot, errno);
            }
            (Phase::Connecting, _) => {}
            (Phase::Securing, Happened::Secured { resumed, .. }) => self.secured(slot, resumed, now),
            (Phase::Securing | Phase::Open, Happened::Broken(why)) => {
                self.drop_connection(slot, |_, _| End::TlsFailed { sent: true, why });
            }
            (Phase::Securing, _) => self.close(slot),
            (Phase::Open, Happened::Received { last }) => self.received(slot, last),
            (Phase::Open, Happened::EndOfStream) => self.end_of_stream(slot),
            (Phase::Open, Happened::Reset) => self.close(slot),
            (Phase::Open, Happened::Finished) => self.finished(slot),
            (Phase::Open, Happened::Truncated) => self.truncated(slot),
            (_, Happened::Sent) => self.send_on(slot),
            // A server that keeps talking after its last response is not waited for.
            (Phase::Closing, Happened::Received { last: false }) => {
                let bytes = self.io.received();
                if connection.protocol.skip_empty_lines(bytes) < bytes.len() {
                    self.close(slot);
                }
            }
            (Phase::Closing, _) => self.close(slot),
            (Phase::Open, Happened::Established | Happened::NotEstablished(_) | Happened::Secured { .. }) => {}
        }
    }

    fn established(&mut self, slot: u32, now: Nanos) {
        let calls = self.open(slot, now);
        if self.config.tls.is_some() {
            return self.await_secured(slot);
        }
        self.begin_to_speak(slot, calls, now);
    }

    /// Begins to speak, for so many calls.
    fn begin_to_speak(&mut self, slot: u32, calls: usize, now: Nanos) {
        if self.config.connections.http2 {
            return self.begin_streams(slot, now);
        }
        (0..calls).for_each(|nth| self.send(slot, Some(nth), now));
        self.expect_response(slot);
    }

    /// The TLS handshake has begun. It has as long as a response.
    fn await_secured(&mut self, slot: u32) {
        let stamp = self.connections.fresh_stamp();
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.phase = Phase::Securing;
            connection.stamp = stamp;
            self.securing.arm(self.now, Armed { slot, stamp, stream: 0 });
        }
    }

    /// The TLS handshake is over: the calls that have waited for it are made.
    fn secured(&mut self, slot: u32, resumed: bool, now: Nanos) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        connection.phase = Phase::Open;
        let calls = connection.calls.len();
        if let Some(call) = connection.calls.front_mut() {
            self.observer.on(&mut call.observed, &Event::Secured { at: now, resumed });
        }
        self.begin_to_speak(slot, calls, now);
        self.connections.list(slot);
    }

    /// Tells that the connection is established. Returns how many calls it bears.
    fn open(&mut self, slot: u32, now: Nanos) -> usize {
        let Some(connection) = self.connections.get_mut(slot) else { return 0 };
        connection.phase = Phase::Open;
        let attempted_at = connection.attempted_at;
        let calls = connection.calls.len();
        if let Some(call) = connection.calls.front_mut() {
            self.observer.on(&mut call.observed, &Event::ConnectStarted { at: attempted_at });
            self.observer.on(&mut call.observed, &Event::Established { at: now });
        }
        self.connections.established(slot);
        self.workload.on_established(now);
        self.next_due = Nanos::ZERO;
        calls
    }

    /// The attempt failed. Without a port it is made again from the next source address, until all have been tried; that
    /// of a session is not.
    fn not_established(&mut self, slot: u32, errno: Errno) {
        let end = end_of_attempt(errno);
        let Some(connection) = self.connections.get(slot) else { return };
        if end == End::ClientLimited(Limit::Ports) {
            self.sources.ran_dry(connection.source, self.now);
            if connection.tries < self.sources.count() && connection.session.is_none() {
                self.io.close(self.connections.token(slot));
                if let Some(mut connection) = self.connections.remove(slot) {
                    connection.tries += 1;
                    self.attempt(connection, self.now);
                }
                return;
            }
        }
        self.drop_attempt(slot, end);
    }

    /// Gives up an attempt, and with it the calls it bears.
    pub(crate) fn drop_attempt(&mut self, slot: u32, end: End) {
        if let Some(connection) = self.connections.get_mut(slot)
            && let (at, Some(call)) = (connection.attempted_at, connection.calls.front_mut())
            && !matches!(end, End::ClientLimited(_))
        {
            self.observer.on(&mut call.observed, &Event::ConnectStarted { at });
        }
        if matches!(end, End::Refused | End::Abandoned) {
            let session = self.connections.get(slot).and_then(|connection| connection.session);
            self.addresses.attempt_failed(session, self.now);
        }
        self.io.close(self.connections.token(slot));
        self.hold();
        for mut call in self.connections.remove(slot).into_iter().flat_map(|connection| connection.calls) {
            self.end(&mut call, end, 0);
        }
    }

    /// Makes the parser ready for the response to the oldest call, whose request was handed over.
    pub(crate) fn expect_response(&mut self, slot: u32) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if let Some(call) = connection.calls.front() {
            connection.protocol.start(call.is_head);
        }
    }

    /// Sends the request of the nth call in the queue, or of the last.
    pub(crate) fn send(&mut self, slot: u32, nth: Option<usize>, now: Nanos) {
        let token = self.connections.token(slot);
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let call = match nth {
            Some(nth) => connection.calls.get_mut(nth),
            None => connection.calls.back_mut(),
        };
        let Some(call) = call else { return };
        let request = self.requests.request(&call.spec, call.last);
        call.sent_at = now.into();
        call.length = request.bytes().len();
        call.is_head = request.is_head();
        if let Some(expected) = self.requests.expected(call.spec.class) {
            call.digest = expected.sha256.map(|_| Digest::new());
        }
        self.observer.on_request(&mut call.observed, request.bytes());
        self.responding.arm(now, Armed { slot, stamp: call.stamp, stream: 0 });
        if self.config.connections.pipeline == 1 && (request.streamed_bytes() > 0 || request.expects_continue()) {
            let file = if request.streamed_bytes() > 0 { self.requests.body(&call.spec) } else { None };
            return self.send_in_parts(slot, request, file);
        }
        let bytes = match request {
            Cow::Borrowed(shared) => Cow::Borrowed(shared.bytes()),
            Cow::Owned(own) => Cow::Owned(own.into_bytes()),
        };
        self.io.send(token, bytes);
        self.hold();
    }

    fn received(&mut self, slot: u32, end_follows: bool) {
        let mut from = 0;
        loop {
            let bytes = self.io.received().get(from..).unwrap_or_default();
            let Some(connection) = self.connections.get_mut(slot) else { return };
            let Protocol::Http1(parser) = &mut connection.protocol else {
                return self.received_on_streams(slot, end_follows);
            };
            let Some(call) = connection.calls.front_mut() else {
                // Nothing is owed on an idle connection: whatever comes but empty lines, it is of no more use.
                if parser.skip_empty_lines(bytes) < bytes.len() {
                    self.close(slot);
                }
                return;
            };
            if bytes.is_empty() {
                return;
            }
            let (requests, redirect) = (&mut self.requests, &mut call.redirect);
            let on_head = |head: &[u8]| {
                if let Some(leads) = requests.answered(&call.spec, head) {
                    *redirect = Some(Box::new(leads));
                }
            };
            let digest = &mut call.digest;
            let on_content = |content: &[u8]| digest.iter_mut().for_each(|digest| digest.add(content));
            match parser.feed_showing(&mut self.recent_head, bytes, on_head, on_content) {
                Err(_) => {
                    call.received += bytes.len() as u64;
                    call.first_byte_at.get_or_set(self.now);
                    self.observer.on_bytes(&mut call.observed, bytes);
                    return self.drop_malformed(slot);
                }
                Ok(fed) => {
                    // Empty lines come first and are no part of the response.
                    let of_response = (parser.received() - call.received) as usize;
                    let (_, new) = bytes[..fed.consumed].split_at(fed.consumed.saturating_sub(of_response));
                    self.observer.on_bytes(&mut call.observed, new);
                    from += fed.consumed;
                    call.received = parser.received();
                    if call.received > 0 {
                        call.first_byte_at.get_or_set(self.now);
                    }
                    let Parsed::Complete(response) = fed.state else {
                        if parser.continued() {
                            self.send_body(slot);
                        }
                        return;
                    };
                    let rest = bytes.get(fed.consumed..).unwrap_or_default();
                    let mut excess = false;
                    if connection.calls.len() == 1 {
                        let empty = parser.skip_empty_lines(rest);
                        from += empty;
                        // Bytes beyond the last response: what follows on this connection cannot be trusted.
                        excess = empty < rest.len();
                    }
                    let behind = match (excess, end_follows) {
                        (true, _) => Behind::Excess,
                        (false, true) => Behind::End,
                        (false, false) => Behind::Nothing,
                    };
                    self.complete(slot, response, behind);
                }
            }
        }
    }

    fn end_of_stream(&mut self, slot: u32) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if connection.under_way() == 0 {
            return self.close(slot);
        }
        match connection.protocol.finish() {
            Ok(response) => self.complete(slot, response, Behind::End),
            Err(_) => self.close(slot),
        }
    }

    /// TLS: the server has sent close_notify. It has decided to close, and may wait for our close_notify with it, so
    /// this side answers and closes at once, also where the server is to close first (`--close server`).
    fn finished(&mut self, slot: u32) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if connection.under_way() == 0 {
            return self.close(slot);
        }
        self.end_of_stream(slot);
    }

    /// TLS: the connection has ended, and whoever ended it may not have been the server. A response that would be whole by
    /// that may be cut short.
    fn truncated(&mut self, slot: u32) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if !connection.calls.is_empty() && connection.protocol.finish().is_ok() {
            let why = TlsFault::Truncated;
            return self
                .drop_connection(slot, |nth, _| if nth == 0 { End::TlsFailed { sent: true, why } } else { RESET });
        }
        self.close(slot);
    }

    /// The oldest call's response is whole. Only where nothing is `behind` it, the connection may bear a further call.
    fn complete(&mut self, slot: u32, response: Response, behind: Behind) {
        let unsent = self.io.unsent(slot);
        let Some(connection) = self.connections.get_mut(slot) else { return };
        // A call is large: it is taken out of the queue, and moved no further.
        let mut answered = connection.calls.pop_front();
        let Some(call) = &mut answered else { return };
        connection.responses = connection.responses.saturating_add(1);
        let size = ResponseSize { head: response.head_bytes, body: response.body_bytes };
        self.observer.on_response(&mut call.observed, &size);
        let unsent_behind: usize = if unsent == 0 { 0 } else { connection.calls.iter().map(|call| call.length).sum() };
        let unsent = unsent.saturating_sub(unsent_behind);
        let bytes = call.length.saturating_sub(unsent) as u64;
        let goes_on = response.keep_alive && !call.last;
        let waiting = connection.calls.len();
        let whole = !self.bodies.forget(slot) && unsent == 0;
        if connection.protocol.empty_lines() > 0 {
            self.observer.on(&mut call.observed, &Event::EmptyLines { lines: connection.protocol.empty_lines() });
        }
        if let Some(session) = connection.session {
            // One that bears many calls and then ends is not closed after each.
            if self.config.connections.pipeline > 1 && connection.responses == 1 {
                self.connections.note_keep_alive(session, response.keep_alive);
            }
            if waiting == 0 {
                self.connections.lay_aside(slot);
            }
        }
        let end = judged(self.requests.expected(call.spec.class), &response, call.digest.take(), call.is_head);
        self.end(call, end, bytes);
        match (waiting > 0, whole && goes_on, behind) {
            // Another protocol is spoken there now, in which nobody would close it.
            _ if response.status == 101 => self.close(slot),
            (true, true, _) => {
                self.expect_response(slot);
                self.connections.list(slot);
            }
            // The server answers no more of them.
            (true, false, _) => self.close(slot),
            (false, true, Behind::Nothing) => self.connections.list(slot),
            (false, false, Behind::Nothing) if whole && self.config.connections.close == Close::Server => {
                self.await_close(slot);
            }
            _ => self.close(slot),
        }
    }

    /// Leaves it to the server to close first, for a while ([`SERVER_CLOSES_WITHIN`]).
    ///
    /// [`SERVER_CLOSES_WITHIN`]: crate::shard::SERVER_CLOSES_WITHIN
    fn await_close(&mut self, slot: u32) {
        let stamp = self.connections.fresh_stamp();
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.phase = Phase::Closing;
            connection.stamp = stamp;
            self.closing.arm(self.now, Armed { slot, stamp, stream: 0 });
            // It was listed while it had room behind other calls.
            self.connections.list(slot);
        }
    }

    /// The oldest call's answer is malformed. What was asked behind it has lost its connection.
    fn drop_malformed(&mut self, slot: u32) {
        self.drop_connection(slot, |nth, _| if nth == 0 { End::Malformed } else { RESET });
    }

    /// Closes a connection and ends its calls, the oldest first, as `how` says of the nth.
    pub(crate) fn drop_connection(&mut self, slot: u32, how: impl Fn(usize, &Call<O::PerCall>) -> End) {
        let Some(connection) = self.connections.get(slot) else { return };
        if connection.protocol.http2().is_some() {
            return self.drop_streams(slot, how);
        }
        let mut unsent = self.io.unsent(slot);
        self.io.close(self.connections.token(slot));
        self.hold();
        let Some(mut connection) = self.connections.remove(slot) else { return };
        self.bodies.forget(slot);
        self.tell_of_end(&connection);
        let sent = |call: &Call<O::PerCall>| {
            let missing = unsent.min(call.length);
            unsent -= missing;
            (call.length - missing) as u64
        };
        let mut bytes: Vec<u64> = connection.calls.iter().rev().map(sent).collect();
        for (nth, call) in connection.calls.drain(..).enumerate() {
            let end = how(nth, &call);
            self.end_or_retry(call, end, bytes.pop().unwrap_or(0));
        }
    }

    /// Tells of a connection that has ended, if it was established.
    pub(crate) fn tell_of_end(&mut self, connection: &Connection<O::PerCall>) {
        if connection.phase != Phase::Connecting {
            let (attempted, responses) = (connection.attempted_at, connection.responses);
            self.observer.on_connection(&ConnectionEnded { attempted, ended: self.now, responses });
        }
    }

    /// Closes a connection that the server has closed, or one without calls.
    pub(crate) fn close(&mut self, slot: u32) {
        let Some(connection) = self.connections.get(slot) else { return };
        let is_reused = connection.is_reused();
        // A server that has sent something since the call was, on whichever stream, had not closed the connection by
        // then.
        let heard_at = connection.protocol.http2().map_or(Nanos::ZERO, |_| connection.heard_at);
        self.drop_connection(slot, |_, call| {
            let is_silent = call.received == 0 && call.sent_at.get().is_none_or(|at| heard_at <= at);
            if is_reused && is_silent { End::ClosedOnReuse { sent: true } } else { RESET }
        });
    }
}
