//! The interface between the three parts of a load generator: a [`Workload`] decides which call is due and when, the
//! engine makes the call, and an [`Observer`] measures the call. The three parts share only the types of this module
//! (Mosberger & Jin 1998, §3).
//!
//! Every instant is in [`Nanos`] since the start of the run, on `CLOCK_MONOTONIC`.

use crate::http2::Http2Frame;
use crate::tls::TlsFault;
use crate::units::Nanos;

/// Index of a request class in the run's class table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u16);

/// Identifies the request to send, for the code that renders requests. The identifier of a fixed request is its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// Identifies a session, which is one visit of a user. The calls of a session share connections that no other call
/// uses, and may share cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// The workload's report of a session that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOutcome {
    /// Time at which the session's first call was due.
    pub began: Nanos,
    /// Time at which the session's last call ended.
    pub ended: Nanos,
    /// Number of the session's calls that became due.
    pub calls: u32,
    /// Number of the session's bursts that began.
    pub bursts: u32,
    /// Whether a failed call ended the session.
    pub failed: bool,
    /// Whether the session was already in progress when the run began. The counts exclude the session's calls before
    /// the run.
    pub began_before_run: bool,
}

/// A session that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnded {
    /// Identifier of the session.
    pub session: SessionId,
    /// The workload's report of the session.
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
    /// Bytes of the content, excluding its framing.
    pub body: u64,
}

/// One call that the workload makes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSpec {
    /// The class that the call is reported under.
    pub class: ClassId,
    /// The request to send.
    pub request: RequestId,
    /// The session that the call belongs to, if any.
    pub session: Option<SessionId>,
}

impl CallSpec {
    /// A call outside any session. The call's [`RequestId`] is the number of the class.
    pub fn for_class(class: ClassId) -> CallSpec {
        CallSpec { class, request: RequestId(u64::from(class.0)), session: None }
    }
}

/// The return value of [`Workload::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCall {
    /// This call is due or overdue. The schedule determines `due`, never the clock.
    Due {
        /// Time at which the schedule wants the call to begin.
        due: Nanos,
        /// The call to make.
        call: CallSpec,
    },
    /// This call was due earlier, but had to wait because its session had no free connection.
    Delayed {
        /// Time at which the schedule wanted the call to begin. The call's response time starts then.
        due: Nanos,
        /// Time at which a connection became free for the call. The generator's lateness starts then.
        ready: Nanos,
        /// The call to make.
        call: CallSpec,
    },
    /// No call is due before this instant, unless the outcome of a call in flight makes another call due sooner.
    NotBefore(Nanos),
    /// No call is due until a call in flight ends.
    WaitForOutcome,
    /// No call will be due any more.
    Done,
}

/// Decides which call is due and when. A workload never reads a clock: its caller passes the time.
pub trait Workload {
    /// Returns a call that is due at `now`, or when the next call may be due. `in_flight` is the number of calls of
    /// this shard that have not ended yet. The engine calls `next` repeatedly until no call is due.
    fn next(&mut self, now: Nanos, in_flight: usize) -> NextCall;

    /// Called when a connection of this shard has been established. S-Clients begin their next attempt then.
    fn on_established(&mut self, _at: Nanos) {}

    /// Called when a call has ended. A closed workload schedules the client's next call here.
    fn on_outcome(&mut self, _outcome: &Outcome) {}

    /// Returns the outcome of this session if no call of the session is in flight and no further call will be due. The
    /// engine then closes the session's connections. Called after each call of the session has ended; returns `Some`
    /// once per session.
    fn session_ended(&mut self, _session: SessionId) -> Option<SessionOutcome> {
        None
    }

    /// Whether an unfinished session wants its connections closed until its next call is due. The engine asks after
    /// each call of the session has ended.
    fn closes_between_bursts(&self, _session: SessionId) -> bool {
        false
    }

    /// Number of sessions that have begun and not ended. Called when the run is over.
    fn sessions_in_progress(&self) -> u64 {
        0
    }
}

/// The events of one call, in order. A failed call skips the events that it did not reach; the last event is always
/// `Ended`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// The schedule made the call due.
    Scheduled {
        /// The call's class.
        class: ClassId,
        /// Time at which the schedule wanted the call to begin.
        due: Nanos,
    },
    /// A connection became free for a call that had to wait for one. Other calls do not have this event.
    Ready {
        /// Time at which the call could begin.
        at: Nanos,
    },
    /// The generator began the call. The call's lateness is counted from its due time, or from its `Ready` event if it
    /// has one.
    Begun {
        /// Time at which the generator began the call.
        at: Nanos,
    },
    /// The call goes to this address of the server. If a call has several of these events, the last one counts. If the
    /// server has only one address, this event does not occur.
    Routed {
        /// Number of the address, in the order of [`Observer::on_address`].
        address: u16,
    },
    /// A connection attempt began for the call.
    ConnectStarted {
        /// Time at which the attempt began.
        at: Nanos,
    },
    /// The call's connection was established.
    Established {
        /// Time at which the connection was established.
        at: Nanos,
    },
    /// The TLS handshake of the call's connection has ended. It began when the connection was established.
    Secured {
        /// Time at which the handshake ended.
        at: Nanos,
        /// Whether the handshake resumed an earlier TLS session.
        resumed: bool,
    },
    /// The first byte of the request was handed to the kernel.
    Sent {
        /// Time at which the byte was handed over.
        at: Nanos,
    },
    /// The first byte of the response was read.
    FirstByte {
        /// Time at which the byte was read.
        at: Nanos,
    },
    /// Empty lines before the response, where HTTP allows none, were skipped.
    EmptyLines {
        /// Number of empty lines, at least one.
        lines: u32,
    },
    /// The call is sent again, on another connection or stream. Later events belong to this retry.
    Retried {
        /// Reason for sending the call again.
        why: Retry,
    },
    /// The call has ended.
    Ended(Outcome),
}

/// Reason for sending a call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The earlier attempt ended by [`End::ClosedOnReuse`].
    ClosedOnReuse,
    /// HTTP/2: the server refused the stream (`REFUSED_STREAM`, or a GOAWAY that excludes the stream), so the server
    /// did not process the request (RFC 9113 §8.7).
    RefusedStream,
}

/// Outcome of a call. A failed request is data, not an `Err`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The call that ended.
    pub call: CallSpec,
    /// Time at which the schedule wanted the call to begin.
    pub due: Nanos,
    /// Time at which the call ended.
    pub at: Nanos,
    /// The way in which the call ended.
    pub end: End,
    /// Bytes of the request that were sent.
    pub bytes_sent: u64,
    /// Bytes of the response that were received, including the head.
    pub bytes_received: u64,
}

/// The ways in which a call can end. Every scheduled call ends in exactly one of these ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A complete response arrived, with any status, and met the workload's expectations, if any.
    Completed {
        /// The HTTP status code.
        status: u16,
    },
    /// A complete response arrived, but its status, length or content was not as expected.
    Unexpected {
        /// The HTTP status code.
        status: u16,
    },
    /// No connection was established within the connect timeout: the attempt was abandoned and its port freed (Banga &
    /// Druschel 1997, §4.2).
    Abandoned,
    /// The connection attempt was refused (RST, or an ICMP unreachable).
    Refused,
    /// The connection was closed or reset before the response was complete.
    Reset {
        /// Whether any byte of the request had been sent.
        sent: bool,
    },
    /// A connection that had been used or idle before was closed or reset before any byte of the response arrived. The
    /// server probably closed the connection while the request was on its way (RFC 9112 §9.5).
    ClosedOnReuse {
        /// Whether any byte of the request had been sent.
        sent: bool,
    },
    /// The request was sent, but no complete response arrived within the response timeout.
    TimedOut,
    /// The bytes that arrived are not HTTP.
    Malformed,
    /// HTTP/2: the server reset the call's stream before the response was complete (RST_STREAM).
    StreamReset,
    /// HTTP/2: the server closed the connection without processing the call (GOAWAY).
    GoneAway,
    /// The TLS handshake failed, or the TLS stream violated the protocol.
    TlsFailed {
        /// Whether any byte of the request had been sent.
        sent: bool,
        /// Reason for the failure of TLS.
        why: TlsFault,
    },
    /// The generator's host had no descriptor, port or memory for the call, or could not read the request body. The
    /// generator failed, not the server. The call counts as not sent, even if the head of its request was sent.
    ClientLimited(ExhaustedResource),
    /// The run ended before the call did.
    Unfinished {
        /// Whether any byte of the request had been sent.
        sent: bool,
    },
}

/// Reason why a redirect was not followed, in a run that follows redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnfollowedReason {
    /// The redirect leads to another server, or to another scheme or port of this server.
    OtherServer,
    /// The limit of redirects in a row was reached.
    TooManyRedirects,
    /// Following the redirect would require sending the request's content again.
    NeedsBody,
    /// The redirect names no target, or its target is not a URL.
    InvalidLocation,
}

/// The resource that the generator's host lacked for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExhaustedResource {
    /// File descriptors (`EMFILE`, `ENFILE`).
    Descriptors,
    /// Local ports (`EADDRNOTAVAIL`).
    Ports,
    /// Socket memory (`ENOBUFS`, `ENOMEM`).
    Memory,
    /// The rest of a request's body, because its file can no longer be read.
    Body,
}

/// Measures the calls of one shard. Each shard has its own observer, so that shards share nothing. The observers are
/// merged after the run.
pub trait Observer {
    /// The observer's state of one call between its events; the engine stores it with the call.
    type PerCall: Default;

    /// Called for each event of each call.
    fn on(&mut self, call: &mut Self::PerCall, event: &Event);

    /// Whether this observer reads requests and responses. If true, the engine renders HTTP/2 messages for it as text
    /// in the form of HTTP/1. If false, `on_request` and `on_bytes` are not called for HTTP/2.
    fn reads_messages(&self) -> bool {
        false
    }

    /// Called with the bytes of a call's request when the request is sent, excluding a body that is read from a file.
    /// Called again if the call is retried.
    fn on_request(&mut self, _call: &mut Self::PerCall, _bytes: &[u8]) {}

    /// Called with each piece of a request body that is read from a file.
    fn on_body_piece(&mut self, _call: &mut Self::PerCall, _bytes: &[u8]) {}

    /// Called with each piece of a response, in order. For HTTP/2, the pieces are heads and content without frames.
    fn on_bytes(&mut self, _call: &mut Self::PerCall, _bytes: &[u8]) {}

    /// Called when a redirect is not followed, in a run that follows redirects.
    fn on_unfollowed(&mut self, _why: UnfollowedReason) {}

    /// Called when a call's response is complete.
    fn on_response(&mut self, _call: &mut Self::PerCall, _size: &ResponseSize) {}

    /// HTTP/2: called when the server has sent an error code, with the explanatory text of the error, which may be
    /// empty.
    fn on_http2_error(&mut self, _frame: Http2Frame, _code: u32, _text: &[u8]) {}

    /// Called for each address of the server before the first call to that address, in the order of the addresses'
    /// numbers. Called only if there may be several addresses.
    fn on_address(&mut self, _address: &str) {}

    /// Called when an established connection has been closed; at the end of the run, all connections are closed.
    fn on_connection(&mut self, _connection: &ConnectionEnded) {}

    /// Called when a session has ended.
    fn on_session(&mut self, _session: &SessionEnded) {}

    /// Called once, at the end of the run, with the number of sessions that had begun and not ended.
    fn on_sessions_in_progress(&mut self, _sessions: u64) {}

    /// Publishes a snapshot for other threads. Called between calls about ten times a second, and at the end of the
    /// run. An implementation must return within a few microseconds and must not block.
    fn publish(&mut self, _now: Nanos) {}

    /// Adds the observations of another shard's observer. Merging is associative and commutative.
    fn merge(&mut self, other: Self);
}

/// A pair of observers, both of which receive every event.
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

/// The observer that records nothing.
impl Observer for () {
    type PerCall = ();

    fn on(&mut self, _call: &mut (), _event: &Event) {}

    fn merge(&mut self, _other: ()) {}
}
