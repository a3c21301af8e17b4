//! What looks on beside the collector, if it is asked for: the figures of [`Detail`], and a [`Tap`] through which every
//! call goes with what was sent and received. The simplest loads have none of its cost where nobody looks.

use brimful_core::{CallSpec, ConnectionEnded, Event, Nanos, Observer, Outcome, ResponseSize, SessionEnded};
use brimful_stats::Detail;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What is to be looked at.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    /// Connections and sessions, as httperf reports them.
    pub detail: bool,
    /// Every call.
    pub tap: Option<Tap>,
}

type Show = dyn FnMut(&Exchange) + Send;

/// Shows every call to one function when it has ended, whichever shard has made it. Bounded by the calls under way.
#[derive(Clone)]
pub struct Tap {
    show: Arc<Mutex<Show>>,
    most_bytes: usize,
}

impl Tap {
    /// Of each request and each response at most so many bytes are kept.
    pub fn new(most_bytes: usize, show: impl FnMut(&Exchange) + Send + 'static) -> Tap {
        Tap { show: Arc::new(Mutex::new(show)), most_bytes }
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").field("most_bytes", &self.most_bytes).finish_non_exhaustive()
    }
}

/// One call that has ended: what was sent and received, and when. What it did not reach is absent.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// When the schedule wanted it to begin.
    pub due: Nanos,
    /// When the generator began to act on it.
    pub begun: Option<Nanos>,
    /// When a connection attempt began for it.
    pub connect_started: Option<Nanos>,
    /// When its connection was established.
    pub established: Option<Nanos>,
    /// When the TLS handshake was over that followed.
    pub secured: Option<Nanos>,
    /// When the first byte of its request was handed to the kernel.
    pub sent: Option<Nanos>,
    /// When the first byte of its response was read.
    pub first_byte: Option<Nanos>,
    /// What was sent.
    pub request: Kept,
    /// What was received.
    pub response: Kept,
    /// How large its response was, if that is whole.
    pub size: Option<ResponseSize>,
    /// How it ended.
    pub outcome: Outcome,
}

/// The first of some bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Those that were kept.
    pub bytes: Vec<u8>,
    /// How many there were.
    pub of: u64,
}

impl Kept {
    fn add(&mut self, bytes: &[u8], most: usize) {
        let room = most.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
        self.of += bytes.len() as u64;
    }
}

/// The observer.
#[derive(Debug)]
pub(crate) struct Beside {
    detail: Option<Detail>,
    tap: Option<Tap>,
}

/// What it remembers of a call; nothing where no call is shown.
#[derive(Debug, Default)]
pub(crate) struct PerCall(Option<Box<Begun>>);

/// A call that has not ended.
#[derive(Debug, Default)]
struct Begun {
    due: Nanos,
    begun: Option<Nanos>,
    connect_started: Option<Nanos>,
    established: Option<Nanos>,
    secured: Option<Nanos>,
    sent: Option<Nanos>,
    first_byte: Option<Nanos>,
    request: Kept,
    response: Kept,
    size: Option<ResponseSize>,
}

impl Begun {
    fn ended(self, outcome: Outcome) -> Exchange {
        let Begun { due, begun, connect_started, established, secured, .. } = self;
        let Begun { sent, first_byte, request, response, size, .. } = self;
        Exchange {
            due,
            begun,
            connect_started,
            established,
            secured,
            sent,
            first_byte,
            request,
            response,
            size,
            outcome,
        }
    }
}

impl Exchange {
    /// Which call it is.
    pub fn call(&self) -> CallSpec {
        self.outcome.call
    }
}

impl Beside {
    /// For a run that offers load for `window` at most.
    pub fn new(looks: &Looks, window: Nanos) -> Beside {
        Beside { detail: looks.detail.then(|| Detail::new(window)), tap: looks.tap.clone() }
    }

    pub fn into_detail(self) -> Option<Detail> {
        self.detail
    }
}

impl Observer for Beside {
    type PerCall = PerCall;

    fn on(&mut self, PerCall(call): &mut PerCall, event: &Event) {
        if let Some(detail) = &mut self.detail {
            detail.on(&mut (), event);
        }
        let Some(tap) = &self.tap else { return };
        let call = call.get_or_insert_default();
        match *event {
            Event::Scheduled { due, .. } => call.due = due,
            Event::Begun { at } => call.begun = Some(at),
            Event::ConnectStarted { at } => call.connect_started = Some(at),
            Event::Established { at } => call.established = Some(at),
            Event::Secured { at, .. } => call.secured = Some(at),
            Event::Sent { at } => call.sent = Some(at),
            Event::FirstByte { at } => call.first_byte = Some(at),
            Event::Ended(outcome) => {
                let exchange = std::mem::take(&mut **call).ended(outcome);
                let mut show = tap.show.lock().unwrap_or_else(PoisonError::into_inner);
                (*show)(&exchange);
            }
            _ => {}
        }
    }

    fn reads_messages(&self) -> bool {
        self.tap.is_some()
    }

    fn on_request(&mut self, PerCall(call): &mut PerCall, bytes: &[u8]) {
        if let (Some(tap), Some(call)) = (&self.tap, call) {
            call.request = Kept::default();
            call.request.add(bytes, tap.most_bytes);
        }
    }

    fn on_body_piece(&mut self, PerCall(call): &mut PerCall, bytes: &[u8]) {
        if let (Some(tap), Some(call)) = (&self.tap, call) {
            call.request.add(bytes, tap.most_bytes);
        }
    }

    fn on_bytes(&mut self, PerCall(call): &mut PerCall, bytes: &[u8]) {
        if let (Some(tap), Some(call)) = (&self.tap, call) {
            call.response.add(bytes, tap.most_bytes);
        }
    }

    fn on_response(&mut self, PerCall(call): &mut PerCall, size: &ResponseSize) {
        if let Some(detail) = &mut self.detail {
            detail.on_response(&mut (), size);
        }
        if let Some(call) = call {
            call.size = Some(*size);
        }
    }

    fn on_connection(&mut self, connection: &ConnectionEnded) {
        if let Some(detail) = &mut self.detail {
            detail.on_connection(connection);
        }
    }

    fn on_session(&mut self, session: &SessionEnded) {
        if let Some(detail) = &mut self.detail {
            detail.on_session(session);
        }
    }

    fn merge(&mut self, other: Beside) {
        if let (Some(ours), Some(theirs)) = (&mut self.detail, other.detail) {
            ours.merge(theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{ClassId, End};

    #[test]
    fn a_call_is_shown_once_with_what_was_sent_and_the_beginning_of_what_came() {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let into = shown.clone();
        let tap = Tap::new(8, move |exchange| into.lock().unwrap().push(exchange.clone()));
        let mut beside = Beside::new(&Looks { detail: true, tap: Some(tap) }, Nanos::from_secs(1));
        let mut call = PerCall::default();
        let at = Nanos::from_micros;
        beside.on(&mut call, &Event::Scheduled { class: ClassId(0), due: at(5) });
        beside.on_request(&mut call, b"an earlier attempt");
        beside.on_request(&mut call, b"PUT");
        beside.on_body_piece(&mut call, b" /");
        beside.on_bytes(&mut call, b"HTTP/1.1 ");
        beside.on_bytes(&mut call, b"200");
        beside.on_response(&mut call, &ResponseSize { head: 10, body: 2 });
        beside.on(&mut call, &Event::Sent { at: at(7) });
        let (call_spec, end) = (CallSpec::of_class(ClassId(0)), End::Completed { status: 200 });
        let outcome = Outcome { call: call_spec, due: at(5), at: at(9), end, bytes_sent: 5, bytes_received: 12 };
        beside.on(&mut call, &Event::Ended(outcome));
        let shown = shown.lock().unwrap();
        let [exchange] = &shown[..] else { panic!("{shown:?}") };
        assert_eq!((exchange.due, exchange.sent, exchange.first_byte), (at(5), Some(at(7)), None));
        assert_eq!(exchange.request.bytes, b"PUT /");
        assert_eq!(exchange.response, Kept { bytes: b"HTTP/1.1".to_vec(), of: 12 });
        assert_eq!((exchange.outcome, exchange.call()), (outcome, call_spec));
        assert_eq!(beside.into_detail().unwrap().response_size(), (10.0, 2.0));
    }

    #[test]
    fn without_a_tap_nothing_is_kept_of_a_call() {
        let mut beside = Beside::new(&Looks::default(), Nanos::ZERO);
        let mut call = PerCall::default();
        beside.on(&mut call, &Event::Scheduled { class: ClassId(0), due: Nanos::ZERO });
        beside.on_request(&mut call, b"GET /");
        beside.on_bytes(&mut call, b"HTTP/1.1 ");
        assert!(call.0.is_none() && beside.into_detail().is_none());
    }
}
