//! Handles events on a shard's connections: connection attempts, TLS handshakes, and the ends of connections and of
//! their calls. `http1.rs` and `http2.rs` send requests and receive responses.

mod http1;
mod http2;

use self::http1::Following;
use super::Shard;
use crate::Requests;
use crate::call::Call;
use crate::connection::{Connection, Phase};
use crate::io::{Io, IoEvent, Route, Token, end_of_failed_attempt};
use brimful_core::{
    CallSpec, ConnectionEnded, End, Event, ExhaustedResource, Nanos, Observer, RetryReason, SessionId, TlsFault,
    Workload,
};
use rustix::io::Errno;

/// The outcome of a call whose connection was lost. [`Shard::end`] corrects `sent` if no byte of the request was sent.
const RESET: End = End::Reset { sent: true };

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    /// Handles an event on the connection with this token.
    pub(super) fn handle(&mut self, token: Token, event: IoEvent) {
        let now = self.time.update();
        let Some(connection) = self.connections.find(token) else { return };
        let slot = token.slot;
        match (connection.phase, event) {
            (Phase::Connecting, IoEvent::Established) => self.established(slot, now),
            // A refused attempt has another error. This error means that the connection was established and then reset
            // before this shard handled the event.
            (Phase::Connecting, IoEvent::NotEstablished(Errno::CONNRESET | Errno::PIPE)) => {
                self.open(slot, now);
                self.close(slot);
            }
            (Phase::Connecting, IoEvent::NotEstablished(errno)) => {
                if matches!(end_of_failed_attempt(errno), End::ClientLimited(_)) {
                    self.connections.note_socket_shortage();
                }
                self.not_established(slot, errno);
            }
            (Phase::Connecting, _) => {}
            (Phase::Securing, IoEvent::Secured { resumed, .. }) => self.secured(slot, resumed, now),
            (Phase::Securing | Phase::Open, IoEvent::Broken(why)) => {
                self.drop_connection(slot, |_, _| End::TlsFailed { sent: true, why });
            }
            (Phase::Securing, _) => self.close(slot),
            (Phase::Open, IoEvent::Received { last }) => self.received(slot, last),
            // After its close_notify, a server may wait for the client's before it closes the connection. So the client
            // closes at once, even if the server should close first (`--close server`).
            (Phase::Open, IoEvent::EndOfStream | IoEvent::Finished) => self.end_of_stream(slot),
            (Phase::Open, IoEvent::Reset) => self.close(slot),
            (Phase::Open, IoEvent::Truncated) => self.truncated(slot),
            (_, IoEvent::Sent) => self.send_more(slot),
            // Data after the last response is an error, so the shard closes the connection at once. Empty lines are
            // ignored.
            (Phase::Closing, IoEvent::Received { last: false }) => {
                let bytes = self.sockets.received();
                if connection.protocol.skip_empty_lines(bytes) < bytes.len() {
                    self.close(slot);
                }
            }
            (Phase::Closing, _) => self.close(slot),
            (Phase::Open, IoEvent::Established | IoEvent::NotEstablished(_) | IoEvent::Secured { .. }) => {}
        }
    }

    /// Starts an attempt to establish this connection, whose queue already contains the first calls. All connections of
    /// a session have the same source address, so that a server can distinguish sessions by address.
    pub(super) fn attempt(&mut self, mut connection: Connection<O::PerCall>, now: Nanos) {
        connection.attempted_at = now;
        connection.source = match connection.session {
            None => self.sources.next_source(now),
            Some(session) => self.sources.source_for_session(session),
        };
        connection.address = self.addresses.next_address(connection.session);
        if self.addresses.counts_by_address() {
            let routed = Event::Routed { address: connection.address };
            connection.calls.iter_mut().for_each(|call| self.observer.on(&mut call.observer_data, &routed));
        }
        let stamp = self.connections.next_stamp();
        connection.stamp = stamp;
        let route = Route { address: usize::from(connection.address), source: connection.source };
        let token = self.connections.insert(connection);
        match self.sockets.connect(token, route, now) {
            Ok(()) => self.timers.start_attempt(now, token.slot, stamp),
            Err(errno) => {
                self.time.update();
                self.not_established(token.slot, errno);
            }
        }
    }

    fn established(&mut self, slot: u32, now: Nanos) {
        let calls = self.open(slot, now);
        if self.config.tls.is_some() {
            return self.await_handshake(slot);
        }
        self.send_first(slot, calls, now);
    }

    /// Sends the first requests on a connection that has just become usable. `calls` is the number of calls in its
    /// queue.
    fn send_first(&mut self, slot: u32, calls: usize, now: Nanos) {
        if self.config.http2 {
            return self.begin_streams(slot, now);
        }
        (0..calls).for_each(|nth| self.send(slot, Some(nth), now));
        self.expect_response(slot);
    }

    /// Marks the connection as being in its TLS handshake, and starts the handshake's timer.
    fn await_handshake(&mut self, slot: u32) {
        let stamp = self.connections.next_stamp();
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.phase = Phase::Securing;
            connection.stamp = stamp;
            self.timers.start_handshake(self.time.now(), slot, stamp);
        }
    }

    /// Sends the requests that have waited for the TLS handshake, which is now complete.
    fn secured(&mut self, slot: u32, resumed: bool, now: Nanos) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        connection.phase = Phase::Open;
        let calls = connection.calls.len();
        if let Some(call) = connection.calls.front_mut() {
            self.observer.on(&mut call.observer_data, &Event::Secured { at: now, resumed });
        }
        self.send_first(slot, calls, now);
        self.connections.update_availability(slot);
    }

    /// Marks the connection as established. Returns the number of calls in its queue.
    fn open(&mut self, slot: u32, now: Nanos) -> usize {
        let Some(connection) = self.connections.get_mut(slot) else { return 0 };
        connection.phase = Phase::Open;
        let attempted_at = connection.attempted_at;
        let calls = connection.calls.len();
        if let Some(call) = connection.calls.front_mut() {
            self.observer.on(&mut call.observer_data, &Event::ConnectStarted { at: attempted_at });
            self.observer.on(&mut call.observer_data, &Event::Established { at: now });
        }
        self.connections.note_established(slot);
        self.workload.on_established(now);
        self.due_calls.ask_workload_now();
        calls
    }

    /// Handles a failed connection attempt. If its source address had no free port, repeats the attempt from the next
    /// source address, until all have been tried. An attempt of a session is not repeated, because its source address
    /// is fixed.
    fn not_established(&mut self, slot: u32, errno: Errno) {
        let end = end_of_failed_attempt(errno);
        let Some(connection) = self.connections.get(slot) else { return };
        if end == End::ClientLimited(ExhaustedResource::Ports) {
            self.sources.note_no_port(connection.source, self.time.now());
            if connection.attempts < self.sources.count() && connection.session.is_none() {
                self.sockets.close(self.connections.token(slot), self.time.now());
                if let Some(mut connection) = self.connections.remove(slot) {
                    connection.attempts += 1;
                    self.attempt(connection, self.time.now());
                }
                return;
            }
        }
        self.drop_attempt(slot, end);
    }

    /// Removes a connection that could not be established, and ends the calls in its queue.
    pub(super) fn drop_attempt(&mut self, slot: u32, end: End) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if let Some(call) = connection.calls.front_mut()
            && !matches!(end, End::ClientLimited(_))
        {
            self.observer.on(&mut call.observer_data, &Event::ConnectStarted { at: connection.attempted_at });
        }
        if matches!(end, End::Refused | End::Abandoned) {
            self.addresses.attempt_failed(connection.session, self.time.now());
        }
        self.sockets.close(self.connections.token(slot), self.time.now());
        for mut call in self.connections.remove(slot).into_iter().flat_map(|connection| connection.calls) {
            self.end(&mut call, end, 0);
        }
    }

    /// Handles the end of the server's stream, which may also be the end of a response.
    fn end_of_stream(&mut self, slot: u32) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if connection.calls_in_flight() == 0 {
            return self.close(slot);
        }
        match connection.protocol.finish() {
            Ok(response) => self.complete(slot, response, Following::End),
            Err(_) => self.close(slot),
        }
    }

    /// TLS: handles the end of a TCP connection without close_notify. An attacker may have ended the connection, so a
    /// response that lasts until the end of the connection may be incomplete.
    fn truncated(&mut self, slot: u32) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if !connection.calls.is_empty() && connection.protocol.finish().is_ok() {
            let truncated = End::TlsFailed { sent: true, why: TlsFault::Truncated };
            return self.drop_connection(slot, |nth, _| if nth == 0 { truncated } else { RESET });
        }
        self.close(slot);
    }

    /// Closes a connection whose oldest call has timed out, and ends all of its calls. Calls sent at `sent_by` or
    /// earlier end as timed out, and later calls as reset.
    pub(super) fn drop_overdue(&mut self, slot: u32, sent_by: Nanos) {
        self.drop_connection(slot, |nth, call| {
            let is_overdue = nth == 0 || call.sent_at.get().is_some_and(|at| at <= sent_by);
            if is_overdue { End::TimedOut } else { RESET }
        });
    }

    /// Closes a connection and ends its calls, the oldest first. `end_of` returns the outcome of a call, given its
    /// position.
    pub(super) fn drop_connection(&mut self, slot: u32, end_of: impl Fn(usize, &Call<O::PerCall>) -> End) {
        let Some(connection) = self.connections.get(slot) else { return };
        if connection.protocol.http2().is_some() {
            return self.drop_streams(slot, end_of);
        }
        let mut unsent = self.sockets.unsent(slot);
        let Some(mut connection) = self.remove(slot) else { return };
        self.bodies.forget(slot);
        let take_sent = |call: &Call<O::PerCall>| {
            let missing = unsent.min(call.request_bytes);
            unsent -= missing;
            (call.request_bytes - missing) as u64
        };
        // Requests are sent in order, so the bytes that the kernel has not accepted belong to the newest calls.
        let mut sent: Vec<u64> = connection.calls.iter().rev().map(take_sent).collect();
        for (nth, call) in connection.calls.drain(..).enumerate() {
            let end = end_of(nth, &call);
            self.end_or_retry(call, end, sent.pop().unwrap_or(0));
        }
    }

    /// Closes a connection's socket, removes the connection, and reports its end to the observer if it was established.
    /// The caller must still end its calls.
    fn remove(&mut self, slot: u32) -> Option<Connection<O::PerCall>> {
        self.sockets.close(self.connections.token(slot), self.time.now());
        let connection = self.connections.remove(slot)?;
        if connection.phase != Phase::Connecting {
            let Connection { attempted_at: attempted, responses, .. } = connection;
            self.observer.on_connection(&ConnectionEnded { attempted, ended: self.time.now(), responses });
        }
        Some(connection)
    }

    /// Closes a connection that the server has closed, or that has no calls.
    pub(super) fn close(&mut self, slot: u32) {
        let Some(connection) = self.connections.get(slot) else { return };
        let is_reused = connection.is_reused();
        // HTTP/2: if data arrived on any stream after the call was sent, the server had not yet closed the connection
        // when the call was sent.
        let last_received_at = connection.protocol.http2().map_or(Nanos::ZERO, |_| connection.last_received_at);
        self.drop_connection(slot, |_, call| {
            let is_silent = call.response_bytes == 0 && call.sent_at.get().is_none_or(|at| last_received_at <= at);
            if is_reused && is_silent { End::ClosedOnReuse { sent: true } } else { RESET }
        });
    }

    /// Ends a call whose connection was closed, or queues it to be sent again.
    fn end_or_retry(&mut self, mut call: Call<O::PerCall>, end: End, bytes_sent: u64) {
        let policy = &self.config.connections;
        if call.may_retry_after_close(end, policy) && self.may_have_new_connection(call.spec) {
            // The new connection is necessary because the server may have closed all other idle connections too.
            call.earlier.needs_new_connection = policy.pipeline == 1;
            self.send_again(call, RetryReason::ClosedOnReuse, bytes_sent);
        } else {
            self.end(&mut call, end, bytes_sent);
        }
    }

    fn send_again(&mut self, mut call: Call<O::PerCall>, why: RetryReason, bytes_sent: u64) {
        call.earlier.attempts += 1;
        call.earlier.bytes_sent += bytes_sent;
        self.observer.on(&mut call.observer_data, &Event::Retried { why });
        self.due_calls.push_retry(call);
    }

    /// Whether another connection may be opened for this call, given the limit on connections per session.
    pub(super) fn may_have_new_connection(&self, spec: CallSpec) -> bool {
        let has_room = |(session, max): (SessionId, u32)| self.connections.established_for(session) < max;
        spec.session.zip(self.config.connections.connections_per_session).is_none_or(has_room)
    }

    /// Ends the calls whose bodies could not be read from their files. With HTTP/1, closes their connections too,
    /// because the server waits for the rest of the body.
    pub(super) fn end_unreadable(&mut self) {
        while let Some(call) = self.bodies.pop_unreadable() {
            let is_under_way =
                self.connections.get(call.slot).is_some_and(|c| c.phase == Phase::Open && c.is_call_under_way(call));
            let end = End::ClientLimited(ExhaustedResource::Body);
            match call.stream {
                _ if !is_under_way => {}
                0 => self.drop_connection(call.slot, |nth, _| if nth == 0 { end } else { RESET }),
                _ => self.give_up_stream(call, end),
            }
        }
    }

    /// Sends the bodies for which the server has not sent `100 Continue` in time.
    pub(super) fn send_overdue_bodies(&mut self) {
        while let Some(call) = self.bodies.pop_overdue(self.time.now(), &self.connections) {
            match self.connections.get_mut(call.slot).and_then(|connection| connection.protocol.http2_mut()) {
                Some(http2) => {
                    http2.continue_body(call.stream);
                    self.sockets.note_output(call.slot, self.time.now());
                }
                None => self.send_body(call.slot),
            }
        }
    }

    /// Sends more of the request bodies on this connection, because the kernel has accepted all earlier data.
    fn send_more(&mut self, slot: u32) {
        if self.config.http2 {
            self.sockets.note_output(slot, self.time.now());
        } else {
            self.send_body_piece(slot);
        }
    }
}
