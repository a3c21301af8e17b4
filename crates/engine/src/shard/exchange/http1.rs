//! HTTP/1: sends requests, and receives responses in the order of the requests.

use crate::bodies::{BodyChunk, UnsentBody};
use crate::body_file::BodyFile;
use crate::connection::Phase;
use crate::deadlines::TimerKey;
use crate::expected::{Digest, end_of_response};
use crate::io::Io;
use crate::shard::Shard;
use crate::shard::exchange::RESET;
use crate::{Close, Requests};
use brimful_core::{End, Event, Nanos, Observer, ResponseSize, Workload};
use brimful_http::{ParseStep, Protocol, Request, Response};
use std::borrow::Cow;

/// What is known to follow a response on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Following {
    Nothing,
    /// The server has closed its side after the response.
    End,
    /// More bytes have arrived, although no further response is expected.
    Excess,
}

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    /// Prepares the parser for the next response on a connection, which belongs to its oldest call.
    pub(in crate::shard) fn expect_response(&mut self, slot: u32) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if let Some(call) = connection.calls.front() {
            connection.protocol.start(call.is_head);
        }
    }

    /// Sends the request of a call in the queue: the one at position `nth`, or the last one if `nth` is `None`.
    pub(in crate::shard) fn send(&mut self, slot: u32, nth: Option<usize>, now: Nanos) {
        let token = self.connections.token(slot);
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let call = match nth {
            Some(nth) => connection.calls.get_mut(nth),
            None => connection.calls.back_mut(),
        };
        let Some(call) = call else { return };
        let request = self.requests.request(&call.spec, call.is_last);
        call.sent_at = now.into();
        call.request_bytes = request.bytes().len();
        call.is_head = request.is_head();
        if let Some(expected) = self.requests.expected(call.spec.class) {
            call.digest = expected.sha256.map(|_| Digest::new());
        }
        self.observer.on_request(&mut call.observer_data, request.bytes());
        self.timers.start_response(now, TimerKey { slot, stamp: call.stamp, stream: 0 });
        if self.config.connections.pipeline == 1 && (request.streamed_bytes() > 0 || request.expects_continue()) {
            let file = if request.streamed_bytes() > 0 { self.requests.body(&call.spec) } else { None };
            return self.send_in_parts(slot, request, file);
        }
        let bytes = match request {
            Cow::Borrowed(shared) => Cow::Borrowed(shared.bytes()),
            Cow::Owned(own) => Cow::Owned(own.into_bytes()),
        };
        self.sockets.send(token, bytes, self.time.now());
    }

    /// Sends the head of a request, and stores the body, which is sent afterwards. The call is the only one on its
    /// connection.
    fn send_in_parts(&mut self, slot: u32, request: Cow<'a, Request>, file: Option<&'a BodyFile>) {
        let waits = request.expects_continue();
        let (head, body) = match request {
            Cow::Borrowed(shared) => {
                let (head, body) = shared.parts();
                (Cow::Borrowed(head), Cow::Borrowed(body))
            }
            Cow::Owned(own) => {
                let (head, body) = own.parts();
                (Cow::Owned(head.to_vec()), Cow::Owned(body.to_vec()))
            }
        };
        let token = self.connections.token(slot);
        let Some(call) = self.connections.get_mut(slot).and_then(|connection| connection.calls.front_mut()) else {
            return;
        };
        call.request_bytes = head.len();
        let key = TimerKey { slot, stamp: call.stamp, stream: 0 };
        self.sockets.send(token, head, self.time.now());
        let rest = file.map_or(UnsentBody::Bytes(body), |file| UnsentBody::File { file, offset: 0 });
        self.bodies.insert(key, rest, waits);
        if waits {
            self.bodies.start_continue_timeout(self.time.now(), key);
        } else {
            self.send_body_piece(slot);
        }
    }

    /// Sends the body on this connection if it was waiting for `100 Continue`.
    pub(super) fn send_body(&mut self, slot: u32) {
        if self.bodies.release(slot) {
            self.send_body_piece(slot);
        }
    }

    /// Sends the next bytes of the body on this connection, unless the body waits for `100 Continue`.
    pub(super) fn send_body_piece(&mut self, slot: u32) {
        let Some(BodyChunk { bytes, is_last, is_from_file }) = self.bodies.next_chunk(slot) else { return };
        let token = self.connections.token(slot);
        if let Some(call) = self.connections.get_mut(slot).and_then(|connection| connection.calls.front_mut()) {
            call.request_bytes += bytes.len();
            if is_from_file {
                self.observer.on_body_piece(&mut call.observer_data, &bytes);
            }
        }
        self.sockets.send(token, bytes, self.time.now());
        if !is_last {
            self.sockets.notify_when_sent(token);
        }
    }

    /// Handles received bytes, which may complete several responses. `end_follows` says whether the server has closed
    /// its side after these bytes.
    pub(super) fn received(&mut self, slot: u32, end_follows: bool) {
        let now = self.time.now();
        let mut from = 0;
        loop {
            let bytes = self.sockets.received().get(from..).unwrap_or_default();
            let Some(connection) = self.connections.get_mut(slot) else { return };
            let Protocol::Http1(parser) = &mut connection.protocol else {
                return self.received_on_streams(slot, end_follows);
            };
            let Some(call) = connection.calls.front_mut() else {
                // No response is expected without a call. Any bytes other than empty lines are therefore an error.
                if parser.skip_empty_lines(bytes) < bytes.len() {
                    self.close(slot);
                }
                return;
            };
            if bytes.is_empty() {
                return;
            }
            let requests = &mut self.requests;
            let redirect = &mut call.redirect;
            let on_head = |head: &[u8]| {
                if let Some(found) = requests.read_head(&call.spec, head) {
                    *redirect = Some(Box::new(found));
                }
            };
            let digest = &mut call.digest;
            let on_content = |content: &[u8]| digest.iter_mut().for_each(|digest| digest.add(content));
            match parser.feed_with_content(&mut self.recent.http1, bytes, on_head, on_content) {
                Err(_) => {
                    call.response_bytes += bytes.len() as u64;
                    call.first_byte_at.get_or_set(now);
                    self.observer.on_bytes(&mut call.observer_data, bytes);
                    return self.drop_malformed(slot);
                }
                Ok(fed) => {
                    // Leaves out empty lines before the response, which are not part of it.
                    let of_response = (parser.received() - call.response_bytes) as usize;
                    let (_, new) = bytes[..fed.consumed].split_at(fed.consumed.saturating_sub(of_response));
                    self.observer.on_bytes(&mut call.observer_data, new);
                    from += fed.consumed;
                    call.response_bytes = parser.received();
                    if call.response_bytes > 0 {
                        call.first_byte_at.get_or_set(now);
                    }
                    let ParseStep::Complete(response) = fed.step else {
                        if parser.received_continue() {
                            self.send_body(slot);
                        }
                        return;
                    };
                    let rest = bytes.get(fed.consumed..).unwrap_or_default();
                    let mut has_excess = false;
                    if connection.calls.len() == 1 {
                        let empty = parser.skip_empty_lines(rest);
                        from += empty;
                        // Bytes after the last expected response are an error.
                        has_excess = empty < rest.len();
                    }
                    let following = match (has_excess, end_follows) {
                        (true, _) => Following::Excess,
                        (false, true) => Following::End,
                        (false, false) => Following::Nothing,
                    };
                    self.complete(slot, response, following);
                }
            }
        }
    }

    /// Ends the oldest call, whose response is complete. The connection stays open for further calls unless it cannot
    /// be reused or unexpected data follows.
    pub(super) fn complete(&mut self, slot: u32, response: Response, following: Following) {
        let unsent = self.sockets.unsent(slot);
        let Some(connection) = self.connections.get_mut(slot) else { return };
        // The call is large, so it is moved out of the queue only once.
        let mut answered = connection.calls.pop_front();
        let Some(call) = &mut answered else { return };
        connection.responses = connection.responses.saturating_add(1);
        let size = ResponseSize { head: response.head_bytes, body: response.body_bytes };
        self.observer.on_response(&mut call.observer_data, &size);
        let unsent_behind: usize =
            if unsent == 0 { 0 } else { connection.calls.iter().map(|call| call.request_bytes).sum() };
        let unsent = unsent.saturating_sub(unsent_behind);
        let bytes_sent = call.request_bytes.saturating_sub(unsent) as u64;
        let waiting = connection.calls.len();
        let was_sent_whole = !self.bodies.forget(slot) && unsent == 0;
        let stays_open = was_sent_whole && response.keep_alive && !call.is_last;
        if connection.protocol.empty_lines() > 0 {
            self.observer.on(&mut call.observer_data, &Event::EmptyLines { lines: connection.protocol.empty_lines() });
        }
        if let Some(session) = connection.session {
            // Only the first response shows whether the server closes each connection after one call. A later one may
            // close the connection because it has carried many calls.
            if self.config.connections.pipeline > 1 && connection.responses == 1 {
                self.connections.note_keep_alive(session, response.keep_alive);
            }
            if waiting == 0 {
                self.connections.release_queue(slot);
            }
        }
        let expected = self.requests.expected(call.spec.class);
        let end = end_of_response(expected, &response, call.digest.take(), call.is_head);
        self.end(call, end, bytes_sent);
        if response.status == 101 {
            // After status 101, the connection carries another protocol, in which `Connection: close` has no meaning.
            return self.close(slot);
        }
        match following {
            _ if waiting > 0 && stays_open => {
                self.expect_response(slot);
                self.connections.update_availability(slot);
            }
            Following::Nothing if waiting == 0 && stays_open => self.connections.update_availability(slot),
            Following::Nothing if waiting == 0 && was_sent_whole && self.config.connections.close == Close::Server => {
                self.await_close(slot);
            }
            _ => self.close(slot),
        }
    }

    /// Waits for the server to close the connection, with a timeout.
    fn await_close(&mut self, slot: u32) {
        let stamp = self.connections.next_stamp();
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.phase = Phase::Closing;
            connection.stamp = stamp;
            self.timers.start_close(self.time.now(), slot, stamp);
            // Removes the connection from the list of available connections. It may be in the list because of unused
            // pipeline depth.
            self.connections.update_availability(slot);
        }
    }

    /// Ends the oldest call, whose response is malformed. All later calls on the connection end as reset.
    fn drop_malformed(&mut self, slot: u32) {
        self.drop_connection(slot, |nth, _| if nth == 0 { End::Malformed } else { RESET });
    }
}
