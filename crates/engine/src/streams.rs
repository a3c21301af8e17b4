//! What becomes of connections that speak HTTP/2: requests that go out on streams, answers that come in on them, and
//! how both end. A call under way is kept with its stream; one that waits until there is room for it, in its
//! connection's queue.
//!
//! - A call that is overdue gives up its stream, and no other. Where nothing at all has come on the connection since
//!   that call was sent, the connection bears no further call: the server may not be there any more.
//! - What the connections have to say is gathered and handed over before the shard waits ([`Shard::hand_over`]): the
//!   requests of one turn leave in one write.
//! - Until the server has said how many streams it allows, one is opened, or as many as it allowed on an earlier
//!   connection. Calls beyond what it turns out to allow go to other connections (`retries.rs`), as do those that it
//!   refuses.
//! - A connection that has borne its last call says goodbye (GOAWAY) before it is closed.

use crate::Requests;
use crate::connection::{Call, Phase};
use crate::deadlines::Armed;
use crate::expected::{Digest, judged};
use crate::io::Io;
use crate::shard::Shard;
use brimful_core::{End, Http2Frame, Nanos, Observer, ResponseSize, Workload};
use brimful_http::{ClosedStream, Listener, REFUSED_STREAM, StreamEnd};

/// What a server must be answered, and does not read, before it is left: bytes.
const MOST_OWED: usize = 256 * 1024;

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    /// Begins to speak on a connection that is open now, for the calls it bears.
    pub(crate) fn begin_streams(&mut self, slot: u32, now: Nanos) {
        self.send_on_streams(slot, now);
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let waiting: Vec<u32> = connection.calls.iter().map(|call| call.stamp).collect();
        waiting.into_iter().for_each(|stamp| self.responding.arm(now, Armed { slot, stamp, stream: 0 }));
        self.speak(slot);
    }

    /// Sends the request of the call that was queued last; or has it wait.
    pub(crate) fn send_last_on_stream(&mut self, slot: u32, now: Nanos) {
        self.send_on_streams(slot, now);
        if let Some(stamp) = self.connections.get(slot).and_then(|connection| connection.calls.back()).map(|c| c.stamp)
        {
            self.responding.arm(now, Armed { slot, stamp, stream: 0 });
        }
    }

    /// Sends the requests of calls that wait, as far as there is room.
    fn send_on_streams(&mut self, slot: u32, now: Nanos) {
        loop {
            let Some(connection) = self.connections.get_mut(slot) else { return };
            let Some(http2) = connection.protocol.http2_mut().filter(|http2| http2.has_room()) else { return };
            let Some(mut call) = connection.calls.pop_front() else { return };
            let request = self.requests.request(&call.spec, call.last);
            let stamp = call.stamp;
            call.sent_at = now.into();
            call.is_head = request.is_head();
            if let Some(expected) = self.requests.expected(call.spec.class) {
                call.digest = expected.sha256.map(|_| Digest::new());
            }
            if self.observer.reads_messages() {
                self.observer.on_request(&mut call.observed, &request.text());
            }
            let stream = http2.open(&request, call);
            self.responding.arm(now, Armed { slot, stamp, stream });
            if request.expects_continue() {
                self.await_continue(Armed { slot, stamp, stream });
            }
            self.speak(slot);
        }
    }

    /// The connection has something to say.
    pub(crate) fn speak(&mut self, slot: u32) {
        if self.speaking.last() != Some(&slot) {
            self.speaking.push(slot);
        }
        self.hold();
    }

    /// Hands over what connections have to say.
    pub(crate) fn hand_over(&mut self) {
        while let Some(slot) = self.speaking.pop() {
            self.hand_over_of(slot);
        }
    }

    fn hand_over_of(&mut self, slot: u32) {
        let token = self.connections.token(slot);
        if self.connections.get(slot).is_none_or(|connection| connection.phase != Phase::Open) {
            return;
        }
        self.frame_bodies(slot);
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let Some(http2) = connection.protocol.http2_mut() else { return };
        let speaks = http2.has_output();
        if speaks {
            self.io.send_copied(token, http2.output());
            http2.clear_output();
        }
        if http2.wanted().is_some() && (speaks || self.io.unsent(slot) > 0) {
            self.io.tell_when_sent(token);
        }
        if !speaks {
            return;
        }
        if self.io.unsent(slot) == 0 {
            http2.paid();
        } else if http2.owed() > MOST_OWED {
            self.drop_connection(slot, |_, _| End::Malformed);
        }
    }

    /// Bytes have come on a connection that speaks HTTP/2.
    pub(crate) fn received_on_streams(&mut self, slot: u32, end_follows: bool) {
        let mut from = 0;
        loop {
            let bytes = self.io.received().get(from..).unwrap_or_default();
            let Some(connection) = self.connections.get_mut(slot) else { return };
            connection.heard_at = self.now;
            connection.spent |= end_follows;
            let Some(http2) = connection.protocol.http2_mut() else { return };
            let shows = self.observer.reads_messages();
            let observer = &mut self.observer;
            let mut reader = Reader { now: self.now, requests: &mut self.requests, observer, shows };
            match http2.feed(&mut self.recent_block, bytes, &mut reader) {
                Ok(heard) => match heard.closed {
                    Some((carried, ended)) => {
                        from += heard.consumed;
                        self.answered(slot, carried, ended);
                    }
                    None => break,
                },
                Err(_) => {
                    // It is told why.
                    self.say(slot);
                    return self.drop_connection(slot, |_, _| End::Malformed);
                }
            }
        }
        self.connections.note_streams_allowed(slot);
        self.settle(slot);
    }

    /// The server has ended a stream, with an answer or without.
    fn answered(&mut self, slot: u32, mut carried: ClosedStream<Call<O::PerCall>>, ended: StreamEnd) {
        if let StreamEnd::Reset { code, .. } = ended {
            self.observer.on_http2_error(Http2Frame::RstStream, code, b"");
        }
        let end = match ended {
            StreamEnd::Whole(response) => {
                if let Some(connection) = self.connections.get_mut(slot) {
                    connection.responses = connection.responses.saturating_add(1);
                }
                let call = &mut carried.value;
                let size = ResponseSize { head: response.head_bytes, body: response.body_bytes };
                self.observer.on_response(&mut call.observed, &size);
                judged(self.requests.expected(call.spec.class), &response, call.digest.take(), call.is_head)
            }
            StreamEnd::Reset { .. } => End::StreamReset,
            StreamEnd::GoneAway => End::GoneAway,
            StreamEnd::Malformed(_) => End::Malformed,
        };
        let bytes = self.bytes_sent_of(slot, &carried);
        match ended {
            StreamEnd::GoneAway | StreamEnd::Reset { code: REFUSED_STREAM, begun: false } => {
                self.retry_refused(carried.value, end, bytes);
            }
            _ => self.end(&mut carried.value, end, bytes),
        }
    }

    /// How many bytes of a request the kernel has taken.
    fn bytes_sent_of(&self, slot: u32, carried: &ClosedStream<Call<O::PerCall>>) -> u64 {
        let unsent = self.io.unsent(slot) as u64;
        let http2 = self.connections.get(slot).and_then(|connection| connection.protocol.http2());
        bytes_of(carried, http2.map_or(0, |http2| http2.handed_over().saturating_sub(unsent)))
    }

    /// Goes on with a connection on which something has happened: sends what waits, or ends it if it has nothing left
    /// to do.
    fn settle(&mut self, slot: u32) {
        self.send_on_streams(slot, self.now);
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let Some(http2) = connection.protocol.http2() else { return };
        // They will not be sent on this connection any more.
        let stranded: Vec<_> = if http2.is_spent() { connection.calls.drain(..).collect() } else { Vec::new() };
        let spoken = !http2.has_output() && http2.wanted().is_none();
        stranded.into_iter().for_each(|call| self.move_elsewhere(call, End::GoneAway));
        self.move_surplus(slot);
        if !spoken {
            self.speak(slot);
        }
        if self.connections.is_over(slot) {
            self.part(slot);
        } else {
            self.connections.list(slot);
        }
    }

    /// Resets the stream of a call, or removes the call from those that wait for a stream.
    pub(crate) fn give_up_stream(&mut self, armed: Armed, end: End) {
        let Armed { slot, stamp, stream } = armed;
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let heard_at = connection.heard_at;
        let Some(http2) = connection.protocol.http2_mut() else { return };
        if let Some(mut carried) = http2.cancel(stream) {
            connection.spent |= carried.value.sent_at.get().is_some_and(|at| heard_at < at);
            let bytes = self.bytes_sent_of(slot, &carried);
            self.end(&mut carried.value, end, bytes);
        } else if let Some(nth) = connection.calls.iter().position(|call| call.stamp == stamp)
            && let Some(mut call) = connection.calls.remove(nth)
        {
            self.end(&mut call, end, 0);
        }
        self.settle(slot);
    }

    /// Closes a connection without calls; one that speaks HTTP/2 says goodbye before.
    pub(crate) fn part(&mut self, slot: u32) {
        if self.send_goaway(slot) {
            self.say(slot);
        }
        self.close(slot);
    }

    /// Says goodbye on all connections that have nothing to do.
    pub(crate) fn say_goodbyes(&mut self) {
        let mut any = false;
        for slot in self.connections.slots() {
            if self.connections.get(slot).is_some_and(|connection| connection.under_way() == 0)
                && self.send_goaway(slot)
            {
                self.hand_over_of(slot);
                any = true;
            }
        }
        if any {
            self.flush();
        }
    }

    /// Whether there is a goodbye to be sent.
    fn send_goaway(&mut self, slot: u32) -> bool {
        let connection = self.connections.get_mut(slot).filter(|connection| connection.phase == Phase::Open);
        let Some(http2) = connection.and_then(|connection| connection.protocol.http2_mut()) else { return false };
        http2.send_goaway();
        true
    }

    /// Sends what this connection has to say at once, as it is about to be closed.
    fn say(&mut self, slot: u32) {
        self.hand_over_of(slot);
        self.flush();
    }

    fn flush(&mut self) {
        if let Err(error) = self.io.flush() {
            self.failed = Some(error);
        }
    }

    /// Ends what a connection bears that is to be closed, the oldest stream first, then what waits.
    pub(crate) fn drop_streams(&mut self, slot: u32, how: impl Fn(usize, &Call<O::PerCall>) -> End) {
        let unsent = self.io.unsent(slot) as u64;
        self.io.close(self.connections.token(slot));
        self.hold();
        let Some(mut connection) = self.connections.remove(slot) else { return };
        self.tell_of_end(&connection);
        let Some(http2) = connection.protocol.http2_mut() else { return };
        let taken = http2.handed_over().saturating_sub(unsent);
        for (nth, carried) in http2.take_all().enumerate() {
            let (bytes, end) = (bytes_of(&carried, taken), how(nth, &carried.value));
            self.end_or_retry(carried.value, end, bytes);
        }
        for call in connection.calls.drain(..) {
            let end = how(usize::MAX, &call);
            self.end_or_retry(call, end, 0);
        }
    }
}

/// How many of a request's bytes are among the first so many of its connection.
fn bytes_of<T>(carried: &ClosedStream<T>, taken: u64) -> u64 {
    taken.saturating_sub(carried.position).min(carried.written)
}

/// Notes what comes for each call.
struct Reader<'r, R, O> {
    now: Nanos,
    requests: &'r mut R,
    observer: &'r mut O,
    /// Whether the observer looks at what comes.
    shows: bool,
}

impl<'a, R: Requests<'a>, O: Observer> Listener<Call<O::PerCall>> for Reader<'_, R, O> {
    fn received(&mut self, call: &mut Call<O::PerCall>, bytes: u64) {
        call.received += bytes;
        call.first_byte_at.get_or_set(self.now);
    }

    fn wants_heads(&self) -> bool {
        self.shows || self.requests.reads_heads()
    }

    fn head(&mut self, call: &mut Call<O::PerCall>, head: &[u8]) {
        if let Some(leads) = self.requests.answered(&call.spec, head) {
            call.redirect = Some(Box::new(leads));
        }
        if self.shows {
            self.observer.on_bytes(&mut call.observed, head);
        }
    }

    fn goaway(&mut self, code: u32, text: &[u8]) {
        self.observer.on_http2_error(Http2Frame::Goaway, code, text);
    }

    fn body(&mut self, call: &mut Call<O::PerCall>, piece: &[u8]) {
        call.digest.iter_mut().for_each(|digest| digest.add(piece));
        if self.shows {
            self.observer.on_bytes(&mut call.observed, piece);
        }
    }
}
