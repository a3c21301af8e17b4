//! HTTP/2: sends requests on streams and receives the responses. A call that has a stream is stored with the stream. A
//! call that waits for a stream is stored in its connection's queue.
//!
//! - When a call times out, only its stream is reset. If nothing has arrived on the connection since the call was sent,
//!   the connection is not used for further calls, because the server may no longer be reachable.
//! - The output of the connections is collected, and passed to the sockets before the shard waits
//!   ([`Shard::hand_over_output`]). So the requests of one iteration of the event loop are sent in one write.
//! - Until the server has announced how many streams it allows, the shard opens one stream, or the number that the
//!   server allowed on an earlier connection. Calls beyond the limit are moved to other connections, and so are calls
//!   whose stream the server refuses.
//! - A connection that has carried its last call sends GOAWAY before it is closed.

use crate::Requests;
use crate::body_file::PIECE_BYTES;
use crate::call::Call;
use crate::connection::Phase;
use crate::deadlines::TimerKey;
use crate::expected::{Digest, end_of_response};
use crate::io::Io;
use crate::shard::Shard;
use brimful_core::{End, Http2Frame, Nanos, Observer, ResponseSize, RetryReason, Workload};
use brimful_http::{ClosedStream, REFUSED_STREAM, StreamEnd, StreamObserver};

/// Maximum number of bytes of replies (for example to PING) that may wait because the server does not read. Beyond this
/// limit, the connection is closed.
const MAX_UNREAD_REPLY_BYTES: usize = 256 * 1024;

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    /// Sends the first requests on a connection that has just become usable.
    pub(super) fn begin_streams(&mut self, slot: u32, now: Nanos) {
        self.send_on_streams(slot, now);
        let Some(connection) = self.connections.get(slot) else { return };
        for call in &connection.calls {
            self.timers.start_response(now, TimerKey { slot, stamp: call.stamp, stream: 0 });
        }
        self.sockets.note_output(slot, self.time.now());
    }

    /// Sends the request of the newest call in the queue if a stream is free. Otherwise, the call stays in the queue.
    pub(in crate::shard) fn send_newest_on_stream(&mut self, slot: u32, now: Nanos) {
        self.send_on_streams(slot, now);
        if let Some(call) = self.connections.get(slot).and_then(|connection| connection.calls.back()) {
            self.timers.start_response(now, TimerKey { slot, stamp: call.stamp, stream: 0 });
        }
    }

    /// Sends the requests of waiting calls until the server's limit on streams is reached.
    fn send_on_streams(&mut self, slot: u32, now: Nanos) {
        loop {
            let Some(connection) = self.connections.get_mut(slot) else { return };
            let Some(http2) = connection.protocol.http2_mut().filter(|http2| http2.can_open_stream()) else { return };
            let Some(mut call) = connection.calls.pop_front() else { return };
            let request = self.requests.request(&call.spec, call.is_last);
            let stamp = call.stamp;
            call.sent_at = now.into();
            call.is_head = request.is_head();
            if let Some(expected) = self.requests.expected(call.spec.class) {
                call.digest = expected.sha256.map(|_| Digest::new());
            }
            if self.observer.reads_messages() {
                self.observer.on_request(&mut call.observer_data, &request.text());
            }
            let stream = http2.open(&request, call);
            let key = TimerKey { slot, stamp, stream };
            self.timers.start_response(now, key);
            if request.expects_continue() {
                self.bodies.start_continue_timeout(self.time.now(), key);
            }
            self.sockets.note_output(slot, self.time.now());
        }
    }

    /// Passes the output of all connections to the sockets.
    pub(in crate::shard) fn hand_over_output(&mut self) {
        while let Some(slot) = self.sockets.pop_with_output() {
            self.hand_over_output_of(slot);
        }
    }

    fn hand_over_output_of(&mut self, slot: u32) {
        let token = self.connections.token(slot);
        if self.connections.get(slot).is_none_or(|connection| connection.phase != Phase::Open) {
            return;
        }
        self.frame_bodies(slot);
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let Some(http2) = connection.protocol.http2_mut() else { return };
        let has_output = http2.has_output();
        if has_output {
            self.sockets.send_copied(token, http2.output());
            http2.clear_output();
        }
        if http2.next_sendable_body().is_some() && (has_output || self.sockets.unsent(slot) > 0) {
            self.sockets.notify_when_sent(token);
        }
        if !has_output {
            return;
        }
        if self.sockets.unsent(slot) == 0 {
            http2.clear_pending_replies();
        } else if http2.pending_reply_bytes() > MAX_UNREAD_REPLY_BYTES {
            self.drop_connection(slot, |_, _| End::Malformed);
        }
    }

    /// Encodes more bytes of request bodies from files as DATA frames. Stops when flow control allows no more data, or
    /// when [`PIECE_BYTES`] of this connection's output are unsent.
    fn frame_bodies(&mut self, slot: u32) {
        while let Some(http2) = self.connections.get_mut(slot).and_then(|connection| connection.protocol.http2_mut())
            && let Some(wanted) = http2.next_sendable_body()
            && http2.output().len() < PIECE_BYTES
            && self.sockets.unsent(slot) < PIECE_BYTES
            && let Some(call) = http2.get_mut(wanted.stream)
        {
            let Some(file) = self.requests.body(&call.spec) else { return };
            match file.read_piece(wanted.offset, wanted.bytes) {
                Ok(piece) => {
                    if self.observer.reads_messages() {
                        self.observer.on_body_piece(&mut call.observer_data, &piece);
                    }
                    http2.add_body_bytes(wanted.stream, &piece);
                }
                Err(error) => {
                    let stamp = call.stamp;
                    self.bodies.note_unreadable(TimerKey { slot, stamp, stream: wanted.stream }, error);
                    return;
                }
            }
        }
    }

    /// Handles received bytes. `end_follows` says whether the server has closed its side after these bytes.
    pub(super) fn received_on_streams(&mut self, slot: u32, end_follows: bool) {
        let now = self.time.now();
        let mut from = 0;
        loop {
            let bytes = self.sockets.received().get(from..).unwrap_or_default();
            let Some(connection) = self.connections.get_mut(slot) else { return };
            connection.last_received_at = now;
            connection.is_spent |= end_follows;
            let Some(http2) = connection.protocol.http2_mut() else { return };
            let reads_messages = self.observer.reads_messages();
            let observer = &mut self.observer;
            let mut reader = Reader { now, requests: &mut self.requests, observer, reads_messages };
            match http2.feed(&mut self.recent.http2, bytes, &mut reader) {
                Ok(heard) => match heard.closed {
                    Some((carried, ended)) => {
                        from += heard.consumed;
                        self.end_stream(slot, carried, ended);
                    }
                    None => break,
                },
                Err(_) => {
                    // Sends the GOAWAY frame that reports the error to the server.
                    self.hand_over_and_flush(slot);
                    return self.drop_connection(slot, |_, _| End::Malformed);
                }
            }
        }
        self.connections.note_streams_allowed(slot);
        self.send_waiting_or_close(slot);
    }

    /// Ends a call whose stream has ended, or queues the call to be sent again.
    fn end_stream(&mut self, slot: u32, mut carried: ClosedStream<Call<O::PerCall>>, ended: StreamEnd) {
        let bytes_sent = self.bytes_sent_on(slot, &carried);
        let call = &mut carried.value;
        match ended {
            StreamEnd::Complete(response) => {
                if let Some(connection) = self.connections.get_mut(slot) {
                    connection.responses = connection.responses.saturating_add(1);
                }
                let size = ResponseSize { head: response.head_bytes, body: response.body_bytes };
                self.observer.on_response(&mut call.observer_data, &size);
                let expected = self.requests.expected(call.spec.class);
                let end = end_of_response(expected, &response, call.digest.take(), call.is_head);
                self.end(call, end, bytes_sent);
            }
            StreamEnd::Reset { code, begun } => {
                self.observer.on_http2_error(Http2Frame::RstStream, code, b"");
                if code == REFUSED_STREAM && !begun {
                    self.retry_refused(carried.value, End::StreamReset, bytes_sent);
                } else {
                    self.end(call, End::StreamReset, bytes_sent);
                }
            }
            StreamEnd::GoneAway => self.retry_refused(carried.value, End::GoneAway, bytes_sent),
            StreamEnd::Malformed(_) => self.end(call, End::Malformed, bytes_sent),
        }
    }

    /// Queues a call that the server has not processed to be sent again, if the policy allows this. Otherwise, ends the
    /// call.
    fn retry_refused(&mut self, mut call: Call<O::PerCall>, end: End, bytes_sent: u64) {
        if self.may_send_elsewhere(&call) {
            self.send_again(call, RetryReason::RefusedStream, bytes_sent);
        } else {
            self.end(&mut call, end, bytes_sent);
        }
    }

    /// Queues a call that was not sent for another connection, because the server is closing this one. Ends the call if
    /// the policy does not allow this.
    fn move_or_end(&mut self, mut call: Call<O::PerCall>) {
        if self.may_send_elsewhere(&call) {
            call.earlier.attempts += 1;
            self.due_calls.push_retry(call);
        } else {
            self.end(&mut call, End::GoneAway, 0);
        }
    }

    /// Whether the policy allows a call that the server did not process to be sent on another connection.
    fn may_send_elsewhere(&self, call: &Call<O::PerCall>) -> bool {
        call.may_retry_unprocessed(&self.config.connections) && self.may_have_new_connection(call.spec)
    }

    /// Moves waiting calls beyond the server's limit on streams to other connections, if more may be opened.
    fn move_surplus(&mut self, slot: u32) {
        if !self.due_calls.may_open(self.connections.open_count()) {
            return;
        }
        let mut surplus = Vec::new();
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let Some(limit) = connection.protocol.http2().and_then(|http2| http2.max_streams()) else { return };
        // One call stays in any case, because a server that allows no streams would otherwise cause new connections
        // forever.
        while connection.calls_in_flight() > (limit as usize).max(1)
            && connection.calls.back().is_some_and(|call| !call.earlier.was_moved)
            && let Some(call) = connection.calls.pop_back()
        {
            connection.calls_begun -= 1;
            surplus.push(call);
        }
        for mut call in surplus.into_iter().rev() {
            call.earlier.was_moved = true;
            self.due_calls.push_retry(call);
        }
    }

    /// Number of bytes of a call's request that the kernel has accepted.
    fn bytes_sent_on(&self, slot: u32, carried: &ClosedStream<Call<O::PerCall>>) -> u64 {
        let unsent = self.sockets.unsent(slot) as u64;
        let http2 = self.connections.get(slot).and_then(|connection| connection.protocol.http2());
        bytes_within(carried, http2.map_or(0, |http2| http2.submitted_bytes().saturating_sub(unsent)))
    }

    /// Sends the requests that wait on a connection. Closes the connection if its last call has ended.
    fn send_waiting_or_close(&mut self, slot: u32) {
        self.send_on_streams(slot, self.time.now());
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let Some(http2) = connection.protocol.http2() else { return };
        let has_output = http2.has_output() || http2.next_sendable_body().is_some();
        if http2.refuses_new_streams() {
            let stranded: Vec<_> = connection.calls.drain(..).collect();
            stranded.into_iter().for_each(|call| self.move_or_end(call));
        }
        self.move_surplus(slot);
        if has_output {
            self.sockets.note_output(slot, self.time.now());
        }
        if self.connections.is_finished(slot) {
            self.send_goaway_and_close(slot);
        } else {
            self.connections.update_availability(slot);
        }
    }

    /// Cancels a call: resets its stream, or removes the call from the queue if it has no stream.
    pub(in crate::shard) fn give_up_stream(&mut self, call: TimerKey, end: End) {
        let TimerKey { slot, stamp, stream } = call;
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let last_received_at = connection.last_received_at;
        let Some(http2) = connection.protocol.http2_mut() else { return };
        if let Some(mut carried) = http2.cancel(stream) {
            connection.is_spent |= carried.value.sent_at.get().is_some_and(|at| last_received_at < at);
            let bytes_sent = self.bytes_sent_on(slot, &carried);
            self.end(&mut carried.value, end, bytes_sent);
        } else if let Some(nth) = connection.calls.iter().position(|call| call.stamp == stamp)
            && let Some(mut call) = connection.calls.remove(nth)
        {
            self.end(&mut call, end, 0);
        }
        self.send_waiting_or_close(slot);
    }

    /// Closes a connection without calls. An HTTP/2 connection sends GOAWAY first.
    pub(in crate::shard) fn send_goaway_and_close(&mut self, slot: u32) {
        if self.send_goaway(slot) {
            self.hand_over_and_flush(slot);
        }
        self.close(slot);
    }

    /// Sends GOAWAY on all connections without a call under way.
    pub(in crate::shard) fn send_goaways(&mut self) {
        let mut must_flush = false;
        for slot in self.connections.slots() {
            let is_idle = self.connections.get(slot).is_some_and(|connection| connection.calls_in_flight() == 0);
            if is_idle && self.send_goaway(slot) {
                self.hand_over_output_of(slot);
                must_flush = true;
            }
        }
        if must_flush {
            self.sockets.flush_before_close();
        }
    }

    /// Adds a GOAWAY frame to the output of the connection if it is open and uses HTTP/2. Returns whether it did.
    fn send_goaway(&mut self, slot: u32) -> bool {
        let connection = self.connections.get_mut(slot).filter(|connection| connection.phase == Phase::Open);
        let Some(http2) = connection.and_then(|connection| connection.protocol.http2_mut()) else { return false };
        http2.send_goaway();
        true
    }

    /// Passes the output of a connection to the kernel at once, because the connection is about to be closed.
    fn hand_over_and_flush(&mut self, slot: u32) {
        self.hand_over_output_of(slot);
        self.sockets.flush_before_close();
    }

    /// Closes a connection and ends its calls: first the calls with a stream, the oldest first, then the waiting calls.
    /// `end_of` returns the outcome of a call, given its position; this is `usize::MAX` for waiting calls.
    pub(super) fn drop_streams(&mut self, slot: u32, end_of: impl Fn(usize, &Call<O::PerCall>) -> End) {
        let unsent = self.sockets.unsent(slot) as u64;
        let Some(mut connection) = self.remove(slot) else { return };
        let Some(http2) = connection.protocol.http2_mut() else { return };
        let taken = http2.submitted_bytes().saturating_sub(unsent);
        for (nth, carried) in http2.take_streams().enumerate() {
            let bytes_sent = bytes_within(&carried, taken);
            let end = end_of(nth, &carried.value);
            self.end_or_retry(carried.value, end, bytes_sent);
        }
        for call in connection.calls.drain(..) {
            let end = end_of(usize::MAX, &call);
            self.end_or_retry(call, end, 0);
        }
    }
}

/// Number of bytes of a request among the first `taken` bytes sent on its connection.
fn bytes_within<T>(carried: &ClosedStream<T>, taken: u64) -> u64 {
    taken.saturating_sub(carried.position).min(carried.written_bytes)
}

/// Passes received data to the call that it belongs to: cookies, redirects and content.
struct Reader<'r, R, O> {
    now: Nanos,
    requests: &'r mut R,
    observer: &'r mut O,
    /// Whether the observer reads the bytes of responses.
    reads_messages: bool,
}

impl<'a, R: Requests<'a>, O: Observer> StreamObserver<Call<O::PerCall>> for Reader<'_, R, O> {
    fn received(&mut self, call: &mut Call<O::PerCall>, bytes: u64) {
        call.response_bytes += bytes;
        call.first_byte_at.get_or_set(self.now);
    }

    fn wants_heads(&self) -> bool {
        self.reads_messages || self.requests.reads_heads()
    }

    fn head(&mut self, call: &mut Call<O::PerCall>, head: &[u8]) {
        if let Some(redirect) = self.requests.read_head(&call.spec, head) {
            call.redirect = Some(Box::new(redirect));
        }
        if self.reads_messages {
            self.observer.on_bytes(&mut call.observer_data, head);
        }
    }

    fn goaway(&mut self, code: u32, text: &[u8]) {
        self.observer.on_http2_error(Http2Frame::Goaway, code, text);
    }

    fn body(&mut self, call: &mut Call<O::PerCall>, piece: &[u8]) {
        call.digest.iter_mut().for_each(|digest| digest.add(piece));
        if self.reads_messages {
            self.observer.on_bytes(&mut call.observer_data, piece);
        }
    }
}
