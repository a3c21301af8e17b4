//! The interface between the three parts of a load generator: a [`Workload`] decides which call is due and when, the
//! engine makes the call, and an [`Observer`] measures the call. The three parts share only the types of this module
//! (Mosberger & Jin 1998, §3).
//!
//! The load is divided into shards, one for each thread of the generator. Each shard has its own workload, engine and
//! observer.
//!
//! Every instant is in [`Nanos`] since the start of the run, on `CLOCK_MONOTONIC`.

use crate::http2::Http2Frame;
use crate::tls::TlsFault;
use crate::units::Nanos;

/// Index of a request class in the run's class table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u16);

/// Identifier of a request that the engine sends. The code that provides the requests defines its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// Identifier of a session, which is one visit of a user. The calls of a session use connections that no other session
/// uses, and may share cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// Times and counts of a session that has ended, as reported by the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOutcome {
    /// Time at which the session's first call was due.
    pub began: Nanos,
    /// Time at which the session's last call ended.
    pub ended: Nanos,
    /// Number of the session's calls that became due.
    pub calls: u32,
    /// Number of the session's bursts that began. A burst is a group of calls, like a page with its images.
    pub bursts: u32,
    /// Whether a failed call ended the session.
    pub failed: bool,
    /// Whether the session was already in progress when the run began. `calls` and `bursts` exclude the part of the
    /// session before the run.
    pub began_before_run: bool,
}

/// A session that has ended, with its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnded {
    /// Identifier of the session.
    pub session: SessionId,
    /// The workload's counts and times of the session.
    pub outcome: SessionOutcome,
    /// Number of connections that were established for the session.
    pub connections: u32,
}

/// A connection that was established and has been closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnded {
    /// Time at which the connection attempt began.
    pub attempted: Nanos,
    /// Time at which the connection was closed.
    pub ended: Nanos,
    /// Number of complete responses that were received on the connection.
    pub responses: u32,
}

/// Size of a complete response, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseSize {
    /// Bytes of the head, including the heads of informational responses before it.
    pub head: u64,
    /// Bytes of the body after decoding of the framing, such as chunks.
    pub body: u64,
}

/// A call that the workload has scheduled: its class, request and session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSpec {
    /// The class in whose results the call is counted.
    pub class: ClassId,
    /// Identifier of the request to send.
    pub request: RequestId,
    /// The session that the call belongs to, if any.
    pub session: Option<SessionId>,
}

impl CallSpec {
    /// A call that belongs to no session. Its [`RequestId`] is the index of the class.
    pub fn for_class(class: ClassId) -> CallSpec {
        CallSpec { class, request: RequestId(u64::from(class.0)), session: None }
    }
}

/// The return value of [`Workload::next`]: the next call, or the time or the event to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCall {
    /// The call is due at `due`, which is now or earlier. `due` is computed from the schedule, never from the clock, so
    /// delays of the generator do not change it.
    Due {
        /// Time at which the call is scheduled to begin.
        due: Nanos,
        /// The class, request and session of the call.
        call: CallSpec,
    },
    /// The call was due earlier, but waited because its session had no free connection.
    Delayed {
        /// Time at which the call was scheduled to begin. The response time is measured from this time.
        due: Nanos,
        /// Time at which a connection became free for the call. The generator's lateness is measured from this time.
        ready: Nanos,
        /// The class, request and session of the call.
        call: CallSpec,
    },
    /// No call is due before this instant, unless the outcome of a call in flight makes another call due sooner.
    NotBefore(Nanos),
    /// No call is due until a call in flight ends.
    WaitForOutcome,
    /// The workload is finished: no further call will become due.
    Done,
}

/// Decides which calls are sent, and when. An implementation never reads a clock: the caller passes the time.
pub trait Workload {
    /// Returns a call that is due at `now`, or the time at which to ask again. `in_flight` is the number of unfinished
    /// calls of this shard (one thread of the generator). The engine calls `next` repeatedly until no call is due.
    fn next(&mut self, now: Nanos, in_flight: usize) -> NextCall;

    /// Called when a connection of this shard (one thread of the generator) has been established. S-Clients (Banga &
    /// Druschel 1997), which limit the number of unestablished connections, then begin their next connection attempt.
    fn on_established(&mut self, _at: Nanos) {}

    /// Called when a call has ended. A closed workload schedules the client's next call here.
    fn on_outcome(&mut self, _outcome: &Outcome) {}

    /// Returns the outcome of `session` if the session has ended: none of its calls is in flight, and no further call
    /// will become due. The engine then closes the session's connections. The engine calls this function after each
    /// call of the session; the function returns `Some` only once per session.
    fn session_ended(&mut self, _session: SessionId) -> Option<SessionOutcome> {
        None
    }

    /// Whether the connections of an unfinished session should be closed while the session waits for its next call to
    /// become due. The engine asks after each call of the session.
    fn closes_between_bursts(&self, _session: SessionId) -> bool {
        false
    }

    /// Number of sessions that have begun and not ended. Called when the run is over.
    fn sessions_in_progress(&self) -> u64 {
        0
    }
}

/// The events of one call, in the order in which they occur. If a call fails, some events do not occur. The last event
/// is always `Ended`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// The call became due according to the workload's schedule.
    Scheduled {
        /// The class in whose results the call is counted.
        class: ClassId,
        /// Time at which the call is scheduled to begin.
        due: Nanos,
    },
    /// A connection became free for a call that had waited for one. Calls that did not wait do not have this event.
    Ready {
        /// Time at which the connection became free.
        at: Nanos,
    },
    /// The generator began the call. The call's lateness is the time from the `Ready` event to this event; for a call
    /// without a `Ready` event, it is the time from the due time.
    Begun {
        /// Time at which the generator began the call.
        at: Nanos,
    },
    /// The call was assigned to this address of the server. If a call has several of these events, the last one counts.
    /// If the server has only one address, this event does not occur.
    Routed {
        /// Index of the address, in the order of the calls of [`Observer::on_address`].
        address: u16,
    },
    /// A connection attempt began for this call.
    ConnectStarted {
        /// Time at which the connection attempt began.
        at: Nanos,
    },
    /// The call's connection was established.
    Established {
        /// Time at which the connection was established.
        at: Nanos,
    },
    /// The TLS handshake of the call's connection was completed. The handshake began at the `Established` event.
    Secured {
        /// Time at which the TLS handshake ended.
        at: Nanos,
        /// Whether the handshake resumed an earlier TLS session.
        resumed: bool,
    },
    /// The first byte of the request was written to the socket.
    Sent {
        /// Time at which the byte was written.
        at: Nanos,
    },
    /// The first byte of the response was read from the socket.
    FirstByte {
        /// Time at which the byte was read.
        at: Nanos,
    },
    /// The generator skipped empty lines before the response, where HTTP allows none.
    EmptyLines {
        /// Number of skipped lines, at least one.
        lines: u32,
    },
    /// The call is sent again, on another connection or stream. The following events belong to this retry.
    Retried {
        /// The reason for sending the call again.
        why: RetryReason,
    },
    /// The call has ended.
    Ended(Outcome),
}

/// Reason for retrying a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryReason {
    /// The server closed the reused connection before it answered ([`End::ClosedOnReuse`]).
    ClosedOnReuse,
    /// HTTP/2: the server refused the stream (`REFUSED_STREAM`, or a GOAWAY that excludes the stream), so the server
    /// did not process the request (RFC 9113 §8.7).
    RefusedStream,
}

/// Outcome of a call. A failed call is an `Outcome`, not an `Err`: failures are results of a load test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The call that ended.
    pub call: CallSpec,
    /// Time at which the call was scheduled to begin.
    pub due: Nanos,
    /// Time at which the call ended.
    pub at: Nanos,
    /// Whether the call was completed, or why it failed.
    pub end: End,
    /// Bytes of the request that were sent.
    pub bytes_sent: u64,
    /// Bytes of the response that were received, including the head and the framing.
    pub bytes_received: u64,
}

/// The possible results of a call. Every scheduled call ends with exactly one of these results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A complete response arrived. If the workload has expectations, the response meets them; otherwise, any status is
    /// accepted.
    Completed {
        /// The HTTP status code of the response.
        status: u16,
    },
    /// A complete response arrived, but its status, length or content violates the workload's expectations.
    Unexpected {
        /// The HTTP status code of the response.
        status: u16,
    },
    /// No connection was established within the connect timeout: the attempt was abandoned and its port freed (Banga &
    /// Druschel 1997, §4.2).
    Abandoned,
    /// The connection attempt was refused (RST, or an ICMP unreachable).
    Refused,
    /// The connection was closed or reset before the response was complete.
    Reset {
        /// Whether at least one byte of the request had been sent.
        sent: bool,
    },
    /// A reused or idle connection was closed or reset before any byte of the response arrived. The server probably
    /// closed the idle connection while the request was in transit (RFC 9112 §9.5).
    ClosedOnReuse {
        /// Whether at least one byte of the request had been sent.
        sent: bool,
    },
    /// The request was sent, but no complete response arrived within the response timeout.
    TimedOut,
    /// The received bytes violate the syntax of HTTP.
    Malformed,
    /// HTTP/2: the server reset the call's stream before the response was complete (RST_STREAM).
    StreamReset,
    /// HTTP/2: the server closed the connection without processing the call (GOAWAY).
    GoneAway,
    /// The TLS handshake failed, or the TLS stream violated the protocol.
    TlsFailed {
        /// Whether at least one byte of the request had been sent.
        sent: bool,
        /// The kind of the TLS failure.
        why: TlsFault,
    },
    /// The generator's host had no file descriptor, port or memory for the call, or could not read the request body.
    /// This is a failure of the generator, not of the server. The call counts as not sent, even if the head of its
    /// request was sent.
    ClientLimited(ExhaustedResource),
    /// The call was in flight or not yet sent when the run ended.
    Unfinished {
        /// Whether at least one byte of the request had been sent.
        sent: bool,
    },
}

/// Reason why a redirect was not followed, although the run follows redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnfollowedReason {
    /// The redirect leads to another server, or to another scheme or port of this server.
    OtherServer,
    /// The limit of successive redirects was reached.
    TooManyRedirects,
    /// Following the redirect would require sending the request body again.
    NeedsBody,
    /// The redirect has no `Location` field, or the field is not a URL.
    InvalidLocation,
}

/// The resource of the generator's host that was exhausted when a call needed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExhaustedResource {
    /// The host had no free file descriptors (`EMFILE`, `ENFILE`).
    Descriptors,
    /// The host had no free local ports (`EADDRNOTAVAIL`, `EADDRINUSE`).
    Ports,
    /// The host had no free socket memory (`ENOBUFS`, `ENOMEM`).
    Memory,
    /// The rest of a request body: its file could not be read any more.
    Body,
}

/// Receives the events of all calls of one shard (one thread of the generator), and measures them. Each shard has its
/// own observer, so that threads share no memory during the run. The observers are merged after the run.
pub trait Observer {
    /// State of one call between its events. The engine stores this state together with the call.
    type PerCall: Default;

    /// Called for each event of each call.
    fn on(&mut self, call: &mut Self::PerCall, event: &Event);

    /// Whether this observer needs the bytes of requests and responses. If true, the engine converts HTTP/2 messages to
    /// the text form of HTTP/1 for this observer. If false, the engine does not call `on_request` and `on_bytes` for
    /// HTTP/2.
    fn reads_messages(&self) -> bool {
        false
    }

    /// Called with the bytes of a request when the request is sent, and again for each retry. A body that is read from
    /// a file is excluded; see [`Observer::on_body_piece`].
    fn on_request(&mut self, _call: &mut Self::PerCall, _bytes: &[u8]) {}

    /// Called with each piece of a request body that is read from a file.
    fn on_body_piece(&mut self, _call: &mut Self::PerCall, _bytes: &[u8]) {}

    /// Called with each received piece of a response, in order. For HTTP/2, the pieces are the heads and bodies without
    /// their frames.
    fn on_bytes(&mut self, _call: &mut Self::PerCall, _bytes: &[u8]) {}

    /// Called when a redirect is not followed, in a run that follows redirects.
    fn on_unfollowed(&mut self, _why: UnfollowedReason) {}

    /// Called when a call's response is complete.
    fn on_response(&mut self, _call: &mut Self::PerCall, _size: &ResponseSize) {}

    /// Called when the server has sent an HTTP/2 error code. `text` is the debug data of the error, which may be empty.
    fn on_http2_error(&mut self, _frame: Http2Frame, _code: u32, _text: &[u8]) {}

    /// Called once for each address of the server, before the first call to that address. The n-th call of this
    /// function defines the address with index n. Not called if the server can have only one address.
    fn on_address(&mut self, _address: &str) {}

    /// Called when an established connection has been closed. At the end of the run, all connections are closed.
    fn on_connection(&mut self, _connection: &ConnectionEnded) {}

    /// Called when a session has ended.
    fn on_session(&mut self, _session: &SessionEnded) {}

    /// Called once, at the end of the run, with the number of sessions that had begun but not ended.
    fn on_sessions_in_progress(&mut self, _sessions: u64) {}

    /// Publishes a snapshot of the measurements for other threads. The engine invokes this function about ten times a
    /// second during the run, and once at its end. The function must return within a few microseconds and must not
    /// block.
    fn publish(&mut self, _now: Nanos) {}

    /// Adds the measurements of another shard, which is another thread of the generator. Merging is associative and
    /// commutative.
    fn merge(&mut self, other: Self);
}

/// A pair of observers: both receive every event.
impl<A: Observer, B: Observer> Observer for (A, B) {
    type PerCall = (A::PerCall, B::PerCall);

    #[inline]
    fn on(&mut self, call: &mut Self::PerCall, event: &Event) {
        self.0.on(&mut call.0, event);
        self.1.on(&mut call.1, event);
    }

    fn reads_messages(&self) -> bool {
        self.0.reads_messages() || self.1.reads_messages()
    }

    #[inline]
    fn on_request(&mut self, call: &mut Self::PerCall, bytes: &[u8]) {
        self.0.on_request(&mut call.0, bytes);
        self.1.on_request(&mut call.1, bytes);
    }

    fn on_body_piece(&mut self, call: &mut Self::PerCall, bytes: &[u8]) {
        self.0.on_body_piece(&mut call.0, bytes);
        self.1.on_body_piece(&mut call.1, bytes);
    }

    #[inline]
    fn on_bytes(&mut self, call: &mut Self::PerCall, bytes: &[u8]) {
        self.0.on_bytes(&mut call.0, bytes);
        self.1.on_bytes(&mut call.1, bytes);
    }

    #[inline]
    fn on_response(&mut self, call: &mut Self::PerCall, size: &ResponseSize) {
        self.0.on_response(&mut call.0, size);
        self.1.on_response(&mut call.1, size);
    }

    fn on_unfollowed(&mut self, why: UnfollowedReason) {
        self.0.on_unfollowed(why);
        self.1.on_unfollowed(why);
    }

    fn on_http2_error(&mut self, frame: Http2Frame, code: u32, text: &[u8]) {
        self.0.on_http2_error(frame, code, text);
        self.1.on_http2_error(frame, code, text);
    }

    fn on_address(&mut self, address: &str) {
        self.0.on_address(address);
        self.1.on_address(address);
    }

    fn on_connection(&mut self, connection: &ConnectionEnded) {
        self.0.on_connection(connection);
        self.1.on_connection(connection);
    }

    fn on_session(&mut self, session: &SessionEnded) {
        self.0.on_session(session);
        self.1.on_session(session);
    }

    fn on_sessions_in_progress(&mut self, sessions: u64) {
        self.0.on_sessions_in_progress(sessions);
        self.1.on_sessions_in_progress(sessions);
    }

    fn publish(&mut self, now: Nanos) {
        self.0.publish(now);
        self.1.publish(now);
    }

    fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
        self.1.merge(other.1);
    }
}

/// An observer that records nothing.
impl Observer for () {
    type PerCall = ();

    fn on(&mut self, _call: &mut (), _event: &Event) {}

    fn merge(&mut self, _other: ()) {}
}
