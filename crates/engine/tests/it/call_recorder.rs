//! An observer that records every call for the tests, and checks that the events of a call are consistent.

use brimful_core::{
    ConnectionEnded, End, Event, ExhaustedResource, Nanos, Observer, Outcome, ResponseSize, RetryReason, SessionEnded,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The events of one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObservedCall {
    /// The time at which the call was due.
    pub due: Nanos,
    /// The time before which the call could not begin, if later than its due time.
    pub ready: Option<Nanos>,
    /// The time at which the engine began the call.
    pub begun: Option<Nanos>,
    /// Start of the connection attempt for this call; `None` if the call used an existing connection.
    pub connect_started: Option<Nanos>,
    /// The time at which the connection attempt for this call succeeded.
    pub established: Option<Nanos>,
    /// The time at which the TLS handshake was complete, and whether it resumed an earlier session.
    pub secured: Option<(Nanos, bool)>,
    /// The time at which the request was sent.
    pub sent: Option<Nanos>,
    /// The time at which the first byte of the response was read.
    pub first_byte: Option<Nanos>,
    /// Number of empty lines that arrived with the response.
    pub empty_lines: u32,
    /// The reason why the call was sent again for the first time.
    pub retried: Option<RetryReason>,
    /// Number of times that the call was sent again.
    pub retries: u32,
    /// Index of the server's address to which the call was sent.
    pub address: u16,
    /// Number of request bytes that the observer got; 0 with HTTP/2.
    pub request_bytes: usize,
    /// Number of response bytes that the observer got; 0 with HTTP/2.
    pub response_bytes: u64,
    /// Lengths of the response's head and body.
    pub size: Option<ResponseSize>,
    /// The outcome, once the call has ended.
    pub outcome: Option<Outcome>,
}

impl ObservedCall {
    /// Time from the due time of the call to its end.
    pub fn response_time(&self) -> Nanos {
        self.outcome().at - self.due
    }

    /// Time from the sending of the request to the end of the call.
    pub fn service_time(&self) -> Nanos {
        self.outcome().at - self.sent.expect("was sent")
    }

    /// Delay of the call's begin, counted from the time at which it could have begun.
    pub fn lateness(&self) -> Nanos {
        self.begun.expect("was begun") - self.ready.unwrap_or(self.due)
    }

    /// Duration of the connection attempt for this call.
    pub fn time_to_connect(&self) -> Nanos {
        self.attempt_ended() - self.connect_started.expect("an attempt")
    }

    /// The time at which the connection attempt for this call succeeded or failed.
    pub fn attempt_ended(&self) -> Nanos {
        self.established.unwrap_or(self.outcome().at)
    }

    /// How the call ended; panics if it has not ended.
    pub fn end(&self) -> End {
        self.outcome().end
    }

    /// The outcome of the call; panics if it has not ended.
    pub fn outcome(&self) -> Outcome {
        self.outcome.expect("every call ends")
    }

    /// Checks that the events of the call are in order and agree with its outcome. For all calls together, these checks
    /// imply that: scheduled = sent + client-limited + abandoned + refused + unsent, and sent = completed + unexpected
    /// + timed out + reset + malformed + unfinished.
    pub fn check(&self) {
        let outcome = self.outcome();
        let was_sent = match outcome.end {
            End::Completed { .. } | End::Unexpected { .. } | End::TimedOut | End::Malformed => true,
            End::StreamReset | End::GoneAway => true,
            End::Reset { sent } | End::ClosedOnReuse { sent } | End::Unfinished { sent } => sent,
            End::TlsFailed { sent, .. } => sent,
            // A call whose body cannot be read counts as not sent, although its head may have been sent.
            End::ClientLimited(ExhaustedResource::Body) => false,
            End::Abandoned | End::Refused | End::ClientLimited(_) => {
                assert!(self.established.is_none(), "the attempt was established: {self:?}");
                false
            }
        };
        assert_eq!(self.sent.is_some(), was_sent, "{self:?}");
        assert_eq!(outcome.bytes_sent > 0, was_sent, "{self:?}");
        assert_eq!(self.first_byte.is_some(), outcome.bytes_received > 0, "{self:?}");
        // With HTTP/2, the observer does not get the bytes of requests and responses.
        if self.request_bytes > 0 {
            assert_eq!(self.response_bytes, outcome.bytes_received, "{self:?}");
            assert!(self.request_bytes as u64 >= outcome.bytes_sent, "{self:?}");
        }
        let size = self.size.map(|size| size.head + size.body);
        assert!(size.is_none_or(|size| size <= outcome.bytes_received), "{self:?}");
        assert!(size.is_some() || !matches!(outcome.end, End::Completed { .. }), "{self:?}");
        assert!(self.connect_started.is_some() || self.established.is_none(), "{self:?}");
        let secured = self.secured.map(|(at, _)| at);
        let begun =
            [self.ready, self.begun, self.connect_started, self.established, secured, self.sent, self.first_byte];
        let times: Vec<Nanos> = [Some(self.due)].into_iter().chain(begun).chain([Some(outcome.at)]).flatten().collect();
        assert!(times.is_sorted(), "{self:?}");
    }
}

/// An observer that keeps the events of every call in memory, which is enough for the short runs of tests.
#[derive(Debug, Default)]
pub struct CallRecorder {
    /// All calls, in the order in which they began.
    pub calls: Vec<ObservedCall>,
    /// All sessions that have ended.
    pub sessions: Vec<SessionEnded>,
    /// All connections that have ended.
    pub connections: Vec<ConnectionEnded>,
    /// The server's addresses, in the order of their indices.
    pub addresses: Vec<String>,
    /// Number of sessions that had not ended when the run ended.
    pub in_progress: u64,
    /// Number of calls that have ended so far. A test can read it during the run.
    pub ended: Arc<AtomicU64>,
    /// If set, the observer blocks the shard's thread for this duration when the call with this index ends.
    pub stall: Option<(usize, Duration)>,
}

/// Index of a call in [`CallRecorder::calls`]; `None` before the call's first event.
#[derive(Debug, Default)]
pub struct PerCall(Option<usize>);

impl Observer for CallRecorder {
    type PerCall = PerCall;

    fn on(&mut self, call: &mut PerCall, event: &Event) {
        let index = *call.0.get_or_insert_with(|| {
            self.calls.push(ObservedCall::default());
            self.calls.len() - 1
        });
        let seen = &mut self.calls[index];
        assert!(seen.outcome.is_none(), "call {index} had ended: {event:?}");
        let set = |field: &mut Option<Nanos>, at: Nanos| {
            assert!(field.replace(at).is_none(), "call {index}: {event:?} came twice");
        };
        match *event {
            Event::Scheduled { due, .. } => seen.due = due,
            Event::Ready { at } => set(&mut seen.ready, at),
            Event::Begun { at } => set(&mut seen.begun, at),
            Event::ConnectStarted { at } => set(&mut seen.connect_started, at),
            Event::Established { at } => set(&mut seen.established, at),
            Event::Secured { at, resumed } => {
                assert!(seen.secured.replace((at, resumed)).is_none(), "call {index}: {event:?} came twice");
            }
            Event::Sent { at } => set(&mut seen.sent, at),
            Event::FirstByte { at } => set(&mut seen.first_byte, at),
            Event::Routed { address } => seen.address = address,
            Event::EmptyLines { lines } => seen.empty_lines += lines,
            Event::Retried { why } => {
                seen.retried.get_or_insert(why);
                seen.retries += 1;
                (seen.connect_started, seen.established, seen.secured) = (None, None, None);
            }
            Event::Ended(outcome) => {
                seen.outcome = Some(outcome);
                self.ended.fetch_add(1, Ordering::Relaxed);
            }
        }
        if let (Event::Ended(_), Some((at, pause))) = (event, self.stall)
            && at == index
        {
            std::thread::sleep(pause);
        }
    }

    fn on_request(&mut self, call: &mut PerCall, bytes: &[u8]) {
        self.calls[call.0.expect("it was scheduled")].request_bytes += bytes.len();
    }

    fn on_body_piece(&mut self, call: &mut PerCall, bytes: &[u8]) {
        self.on_request(call, bytes);
    }

    fn on_address(&mut self, address: &str) {
        self.addresses.push(address.to_owned());
    }

    fn on_bytes(&mut self, call: &mut PerCall, bytes: &[u8]) {
        self.calls[call.0.expect("it was scheduled")].response_bytes += bytes.len() as u64;
    }

    fn on_response(&mut self, call: &mut PerCall, size: &ResponseSize) {
        let seen = &mut self.calls[call.0.expect("it was scheduled")];
        assert!(seen.size.replace(*size).is_none(), "a call gets one response");
    }

    fn on_connection(&mut self, connection: &ConnectionEnded) {
        assert!(connection.attempted <= connection.ended, "{connection:?}");
        self.connections.push(*connection);
    }

    fn on_session(&mut self, session: &SessionEnded) {
        self.sessions.push(*session);
    }

    fn on_sessions_in_progress(&mut self, sessions: u64) {
        self.in_progress += sessions;
    }

    fn merge(&mut self, other: Self) {
        self.calls.extend(other.calls);
        self.sessions.extend(other.sessions);
        self.connections.extend(other.connections);
        self.in_progress += other.in_progress;
    }
}

/// Number of calls whose outcome satisfies the condition `end`.
pub fn count(calls: &[ObservedCall], end: impl Fn(End) -> bool) -> usize {
    calls.iter().filter(|call| end(call.end())).count()
}

/// Number of connection attempts that the calls caused.
pub fn count_connects(calls: &[ObservedCall]) -> usize {
    calls.iter().filter(|call| call.connect_started.is_some()).count()
}

/// The median of these times; panics if there are none.
pub fn median(times: impl Iterator<Item = Nanos>) -> Nanos {
    let mut times: Vec<Nanos> = times.collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Whether a call with this end completed.
pub fn completed(end: End) -> bool {
    matches!(end, End::Completed { .. })
}

/// Whether the connection attempt of a call with this end was refused.
pub fn refused(end: End) -> bool {
    end == End::Refused
}

/// Whether a call with this end was lost because its connection was reset or closed.
pub fn reset(end: End) -> bool {
    matches!(end, End::Reset { .. } | End::ClosedOnReuse { .. })
}

/// Whether a call with this end was lost because the server had closed its idle connection.
pub fn closed_on_reuse(end: End) -> bool {
    matches!(end, End::ClosedOnReuse { .. })
}
