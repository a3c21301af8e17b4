//! Where the three parts of a load generator meet: a [`Workload`] decides what is due and when, the engine does it, an
//! [`Observer`] measures it. They know nothing of one another but these types (Mosberger & Jin 1998, §3).
//!
//! Every instant is in [`Nanos`] since the start of the run, on `CLOCK_MONOTONIC`.

use crate::http2::Http2Frame;
use crate::tls::TlsFault;
use crate::units::Nanos;

/// Index of a request class in the run's class table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u16);

/// What is sent, as whoever renders a run's requests knows it: for fixed requests their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A user's visit: its calls share connections that no other call uses, and may share cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// How a session went, as the workload knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOutcome {
    /// When its first call was due.
    pub began: Nanos,
    /// When its last call ended.
    pub ended: Nanos,
    /// Calls that were handed out.
    pub calls: u32,
    /// Bursts that were begun.
    pub bursts: u32,
    /// A call of it failed, which ended it.
    pub failed: bool,
    /// It had begun before the run did: what it did then is not in these figures.
    pub from_before: bool,
}

/// A session that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnded {
    /// Which.
    pub session: SessionId,
    /// How it went.
    pub outcome: SessionOutcome,
    /// Connections that were established for it.
    pub connections: u32,
}

/// A connection that was established and is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnded {
    /// When its attempt began.
    pub attempted: Nanos,
    /// When it was closed.
    pub ended: Nanos,
    /// Whole responses that were received on it.
    pub responses: u32,
}

/// How large a whole response was, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseSize {
    /// Of the head, those of informational responses before it included.
    pub head: u64,
    /// Of the content; what frames it is not counted.
    pub body: u64,
}

/// One call, as the workload wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSpec {
    /// What it is reported as.
    pub class: ClassId,
    /// What is sent.
    pub request: RequestId,
    /// Whose it is, if it is part of a session.
    pub session: Option<SessionId>,
}

impl CallSpec {
    /// A call of a class whose request bears the class's own number, of no session.
    pub fn of_class(class: ClassId) -> CallSpec {
        CallSpec { class, request: RequestId(u64::from(class.0)), session: None }
    }
}

/// A workload's answer to "what now?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This call is due, or overdue; `due` comes from the schedule, never from the clock.
    Due {
        /// When the schedule wants the call to begin.
        due: Nanos,
        /// What to request.
        call: CallSpec,
    },
    /// The same of a call that was due before, and could not be made as its session had no connection left for it.
    Waited {
        /// When the schedule wanted the call to begin: it is answered so much later.
        due: Nanos,
        /// When it could begin: the generator is late from then on only.
        ready: Nanos,
        /// What to request.
        call: CallSpec,
    },
    /// Nothing is due before this instant, unless an outcome brings something sooner.
    NotBefore(Nanos),
    /// Nothing is due until a call in flight ends.
    WaitForOutcome,
    /// Nothing will ever be due again.
    Done,
}

/// Decides what is due and when. Pure: it is told the time and never asks for it.
pub trait Workload {
    /// What to do at `now`, with `in_flight` calls of this shard not yet ended. Asked again until nothing is due.
    fn next(&mut self, now: Nanos, in_flight: usize) -> Next;

    /// A connection attempt of this shard has been established; S-Clients begin their next one here.
    fn on_established(&mut self, _at: Nanos) {}

    /// A call has ended; a closed workload schedules its successor here.
    fn on_outcome(&mut self, _outcome: &Outcome) {}

    /// How this session went, if no call of it is under way or still to come: its connections are closed then. Asked
    /// after each of its calls has ended, and answered once.
    fn session_ended(&mut self, _session: SessionId) -> Option<SessionOutcome> {
        None
    }

    /// Whether a session that goes on wants its connections closed until its next call is due. Asked after each of its
    /// calls has ended.
    fn closes_between_bursts(&self, _session: SessionId) -> bool {
        false
    }

    /// Sessions that have begun and not ended. Asked when the run is over.
    fn sessions_in_progress(&self) -> u64 {
        0
    }
}

/// What happens to one call, in order. A call that fails skips what it did not reach; the last event is always `Ended`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// The schedule brought the call.
    Scheduled {
        /// Its class.
        class: ClassId,
        /// When the schedule wanted it to begin.
        due: Nanos,
    },
    /// It could begin, having been due before: it has waited for a connection, its session's or any. Left out where it
    /// did not.
    Ready {
        /// When.
        at: Nanos,
    },
    /// The generator began to act on it: its lateness is counted from when it was due, or ready if that was later.
    Begun {
        /// When.
        at: Nanos,
    },
    /// It goes to this of the server's addresses, numbered in the order of [`Observer::on_address`]. The last of these
    /// events counts. Left out where the server has one address.
    Routed {
        /// Number of the address.
        address: u16,
    },
    /// A connection attempt began for it.
    ConnectStarted {
        /// When.
        at: Nanos,
    },
    /// Its connection was established.
    Established {
        /// When.
        at: Nanos,
    },
    /// Its connection is secured: the TLS handshake, which began when it was established, is over.
    Secured {
        /// When.
        at: Nanos,
        /// Whether an earlier session was resumed.
        resumed: bool,
    },
    /// The first byte of the request was handed to the kernel.
    Sent {
        /// When.
        at: Nanos,
    },
    /// The first byte of the response was read.
    FirstByte {
        /// When.
        at: Nanos,
    },
    /// Empty lines came before its response, where none belongs, and were skipped. Left out where there was none.
    EmptyLines {
        /// How many.
        lines: u32,
    },
    /// The call is sent again, on another connection or stream. What follows is of the new try.
    Retried {
        /// Why.
        why: Retry,
    },
    /// The call is over.
    Ended(Outcome),
}

/// Why a call is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It ended by [`End::ClosedOnReuse`].
    ClosedOnReuse,
    /// HTTP/2: the server refused its stream (`REFUSED_STREAM`, or a GOAWAY that leaves it out), and so has done
    /// nothing about it (RFC 9113 §8.7).
    RefusedStream,
}

/// How a call ended. A failed request is data, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Which call.
    pub call: CallSpec,
    /// When the schedule wanted it to begin.
    pub due: Nanos,
    /// When it ended.
    pub at: Nanos,
    /// How.
    pub end: End,
    /// Bytes of the request that were sent.
    pub bytes_sent: u64,
    /// Bytes of the response that were received, head included.
    pub bytes_received: u64,
}

/// The ways a call can end; together they account for every scheduled call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A whole response arrived, whatever its status.
    Completed {
        /// The HTTP status code.
        status: u16,
    },
    /// A whole response arrived, and it is not what was expected: another status, length or content.
    Unexpected {
        /// The HTTP status code.
        status: u16,
    },
    /// No connection within the connect timeout: the attempt was given up and its port freed (Banga & Druschel 1997, §4.2).
    Abandoned,
    /// The attempt was answered with a refusal (RST, or an ICMP unreachable).
    Refused,
    /// The connection was closed or reset before the response was whole.
    Reset {
        /// Whether any byte of the request had been sent.
        sent: bool,
    },
    /// The same before any byte of the response, on a connection that had answered before or had been idle: the server
    /// had probably closed it while the request was on its way (RFC 9112 §9.5).
    ClosedOnReuse {
        /// Whether any byte of the request had been sent.
        sent: bool,
    },
    /// Sent, but no whole response within the response timeout.
    TimedOut,
    /// What arrived is not HTTP.
    Malformed,
    /// HTTP/2: the server gave the call's stream up before the response was whole (RST_STREAM).
    StreamReset,
    /// HTTP/2: the server goes away and has not looked at the call (GOAWAY).
    GoneAway,
    /// The TLS handshake failed, or the TLS stream broke its rules.
    TlsFailed {
        /// Whether any byte of the request had been sent.
        sent: bool,
        /// Why.
        why: TlsFault,
    },
    /// This host had no descriptor, port or memory left for it, or could not read its body: the generator's failure, not
    /// the server's. It counts as not sent, even if its head was.
    ClientLimited(Limit),
    /// The run ended first.
    Unfinished {
        /// Whether any byte of the request had been sent.
        sent: bool,
    },
}

/// Why a redirect was not followed, in a run that follows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unfollowed {
    /// It leads to another server, or to this one by another scheme or port.
    Elsewhere,
    /// As many as are followed have been, one after another.
    TooMany,
    /// The request's content would have to be sent once more.
    Content,
    /// Where it leads is not said, or no URL.
    Nowhere,
}

/// What the generator's host lacked for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limit {
    /// File descriptors (`EMFILE`, `ENFILE`).
    Descriptors,
    /// Local ports (`EADDRNOTAVAIL`).
    Ports,
    /// Socket memory (`ENOBUFS`, `ENOMEM`).
    Memory,
    /// The rest of a request's body: the file that it is read from cannot be read any more.
    Body,
}

/// Measures. One per shard, merged after the run, so that nothing is shared while it lasts.
pub trait Observer {
    /// What the observer remembers of one call between its events; the engine keeps it beside the call.
    type PerCall: Default;

    /// One event of one call.
    fn on(&mut self, call: &mut Self::PerCall, event: &Event);

    /// Whether it looks at what is sent and received: of HTTP/2 that has to be written for it, as text in the way of HTTP/1.
    /// One that does not is not shown it by HTTP/2.
    fn reads_messages(&self) -> bool {
        false
    }

    /// These bytes are the request of a call, which is being sent, but for a body from a file. A call that is sent once more
    /// begins anew.
    fn on_request(&mut self, _call: &mut Self::PerCall, _bytes: &[u8]) {}

    /// The next piece of its body, from a file.
    fn on_body_piece(&mut self, _call: &mut Self::PerCall, _bytes: &[u8]) {}

    /// These bytes of its response were read; all of them together are the response. Of HTTP/2, heads and content are shown,
    /// without what frames them.
    fn on_bytes(&mut self, _call: &mut Self::PerCall, _bytes: &[u8]) {}

    /// It leads elsewhere, and is not followed. Only in a run that follows redirects.
    fn on_unfollowed(&mut self, _why: Unfollowed) {}

    /// Its response is whole.
    fn on_response(&mut self, _call: &mut Self::PerCall, _size: &ResponseSize) {}

    /// HTTP/2: the server has sent this error code, and perhaps a text that says why.
    fn on_http2_error(&mut self, _frame: Http2Frame, _code: u32, _text: &[u8]) {}

    /// The server has this address, and calls go to it from now on. Told of each, in the order of their numbers, where
    /// there are several or may be.
    fn on_address(&mut self, _address: &str) {}

    /// A connection is closed. All of them are when the run is over.
    fn on_connection(&mut self, _connection: &ConnectionEnded) {}

    /// A session has ended.
    fn on_session(&mut self, _session: &SessionEnded) {}

    /// The run is over, and so many sessions that had begun had not ended. Told once.
    fn on_sessions_in_progress(&mut self, _sessions: u64) {}

    /// Lets others look on, about ten times a second and at the end of the run. Called where the shard comes by anyway, between
    /// calls; must take no longer than some microseconds and wait for nobody.
    fn publish(&mut self, _now: Nanos) {}

    /// Takes in what another shard's observer has seen. Associative and commutative.
    fn merge(&mut self, other: Self);
}

/// Two observers at once.
impl<A: Observer, B: Observer> Observer for (A, B) {
    type PerCall = (A::PerCall, B::PerCall);

    fn on(&mut self, call: &mut Self::PerCall, event: &Event) {
        self.0.on(&mut call.0, event);
        self.1.on(&mut call.1, event);
    }

    fn reads_messages(&self) -> bool {
        self.0.reads_messages() || self.1.reads_messages()
    }

    fn on_request(&mut self, call: &mut Self::PerCall, bytes: &[u8]) {
        self.0.on_request(&mut call.0, bytes);
        self.1.on_request(&mut call.1, bytes);
    }

    fn on_body_piece(&mut self, call: &mut Self::PerCall, bytes: &[u8]) {
        self.0.on_body_piece(&mut call.0, bytes);
        self.1.on_body_piece(&mut call.1, bytes);
    }

    fn on_bytes(&mut self, call: &mut Self::PerCall, bytes: &[u8]) {
        self.0.on_bytes(&mut call.0, bytes);
        self.1.on_bytes(&mut call.1, bytes);
    }

    fn on_response(&mut self, call: &mut Self::PerCall, size: &ResponseSize) {
        self.0.on_response(&mut call.0, size);
        self.1.on_response(&mut call.1, size);
    }

    fn on_unfollowed(&mut self, why: Unfollowed) {
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

/// Nobody looks on.
impl Observer for () {
    type PerCall = ();

    fn on(&mut self, _call: &mut (), _event: &Event) {}

    fn merge(&mut self, _other: ()) {}
}
