//! Optional observations of a run, beyond its Record (result document): the connection metrics in [`ConnectionDetail`],
//! and the messages and times of each call ([`Exchange`]), which are passed to a [`CallHook`].

use crate::server_software::ServerSoftware;
use crate::stop_when::StopConditions;
use brimful_core::panics::lock;
use brimful_core::{CallSpec, ConnectionEnded, Event, Nanos, Observer, Outcome, ResponseSize, SessionEnded};
use brimful_stats::{Collector, ConnectionDetail, LiveProgress, ResultBackup};
use std::fmt;
use std::sync::{Arc, Mutex};

/// The optional observations of a run; by default none.
#[derive(Clone, Debug, Default)]
pub struct RunObserver {
    /// How to use measurements before the end of the run.
    pub results_so_far: ResultsSoFar,
    /// Whether to collect the additional metrics of connections and sessions that httperf reports.
    pub detail: bool,
    /// The function to call for each call that has ended.
    pub call_hook: Option<CallHook>,
    /// The conditions that end the run early.
    pub stop_when: Option<Arc<StopConditions>>,
}

/// How measurements are used before the end of the run.
#[derive(Clone, Debug, Default)]
pub enum ResultsSoFar {
    /// Measurements are used only at the end of the run.
    #[default]
    Unused,
    /// A progress display shows the measurements.
    Shown(Arc<LiveProgress>),
    /// A copy of the measurements is kept, and written as the result if this process is killed.
    Kept(Arc<ResultBackup>),
}

type ShowExchange = dyn FnMut(&Exchange) + Send;

/// Calls one function for each ended call of all shards. Its memory use is bounded by the number of calls in flight.
#[derive(Clone)]
pub struct CallHook {
    show: Arc<Mutex<ShowExchange>>,
    max_bytes: usize,
}

impl CallHook {
    /// Creates a hook that calls `show` and keeps at most `max_bytes` of each request and of each response.
    pub fn new(max_bytes: usize, show: impl FnMut(&Exchange) + Send + 'static) -> CallHook {
        CallHook { show: Arc::new(Mutex::new(show)), max_bytes }
    }
}

impl fmt::Debug for CallHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallHook").field("max_bytes", &self.max_bytes).finish_non_exhaustive()
    }
}

/// A call that has ended: its request, its response, and the times of its events. The time of an event that did not
/// happen is `None`.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// When the call was due.
    pub due: Nanos,
    /// When the generator began the call.
    pub begun: Option<Nanos>,
    /// When a connection attempt for the call began; `None` if the call used an existing connection.
    pub connect_started: Option<Nanos>,
    /// When the connection attempt for the call succeeded.
    pub established: Option<Nanos>,
    /// When the TLS handshake of the connection opened for the call was complete.
    pub secured: Option<Nanos>,
    /// When the first byte of the request was passed to the kernel.
    pub sent: Option<Nanos>,
    /// When the first byte of the response was read.
    pub first_byte: Option<Nanos>,
    /// The beginning of the request.
    pub request: MessagePrefix,
    /// The beginning of the response.
    pub response: MessagePrefix,
    /// The size of the response; `None` if it was not received completely.
    pub size: Option<ResponseSize>,
    /// How the call ended.
    pub outcome: Outcome,
}

/// The first bytes of a request or response, and its length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessagePrefix {
    /// The first bytes, at most as many as the limit of [`CallHook::new`].
    pub bytes: Vec<u8>,
    /// Length of the whole message, in bytes.
    pub total_bytes: u64,
}

impl MessagePrefix {
    fn add(&mut self, bytes: &[u8], max_bytes: usize) {
        let room = max_bytes.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
        self.total_bytes += bytes.len() as u64;
    }
}

/// The two observers of a shard: one collects the metrics of the Record, and the other makes the optional observations.
pub(crate) type Observers = (Collector, ShardObserver);

/// Makes the optional observations of a [`RunObserver`] in one shard.
#[derive(Debug)]
pub(crate) struct ShardObserver {
    detail: Option<ConnectionDetail>,
    call_hook: Option<CallHook>,
    stop_when: Option<Arc<StopConditions>>,
    software: ServerSoftware,
}

/// The data that [`ShardObserver`] keeps for a call; `None` without a call hook.
#[derive(Debug, Default)]
pub(crate) struct PerCall(Option<Box<CallInProgress>>);

/// The [`Exchange`] of a call under way, as far as it is known.
#[derive(Debug, Default)]
struct CallInProgress {
    due: Nanos,
    begun: Option<Nanos>,
    connect_started: Option<Nanos>,
    established: Option<Nanos>,
    secured: Option<Nanos>,
    sent: Option<Nanos>,
    first_byte: Option<Nanos>,
    request: MessagePrefix,
    response: MessagePrefix,
    size: Option<ResponseSize>,
}

impl CallInProgress {
    fn end(self, outcome: Outcome) -> Exchange {
        Exchange {
            due: self.due,
            begun: self.begun,
            connect_started: self.connect_started,
            established: self.established,
            secured: self.secured,
            sent: self.sent,
            first_byte: self.first_byte,
            request: self.request,
            response: self.response,
            size: self.size,
            outcome,
        }
    }
}

impl Exchange {
    /// The specification of the call.
    pub fn call(&self) -> CallSpec {
        self.outcome.call
    }
}

impl ShardObserver {
    /// Creates the observer of a shard whose schedule has this length.
    pub fn new(observer: &RunObserver, window: Nanos) -> ShardObserver {
        ShardObserver {
            detail: observer.detail.then(|| ConnectionDetail::new(window)),
            call_hook: observer.call_hook.clone(),
            stop_when: observer.stop_when.clone(),
            software: ServerSoftware::default(),
        }
    }

    fn is_active(&self) -> bool {
        self.detail.is_some() || self.call_hook.is_some() || self.stop_when.is_some()
    }

    /// Handles an event of a call. The caller must check [`ShardObserver::is_active`] before, so that runs without
    /// optional observations pay only for that check.
    #[cold]
    fn observe(&mut self, PerCall(call): &mut PerCall, event: &Event) {
        if let Some(detail) = &mut self.detail {
            detail.on(&mut (), event);
        }
        if let Some(conditions) = &self.stop_when {
            conditions.observe(event);
        }
        let Some(call_hook) = &self.call_hook else { return };
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
                let exchange = std::mem::take(&mut **call).end(outcome);
                let mut show = lock(&call_hook.show);
                (*show)(&exchange);
            }
            _ => {}
        }
    }

    /// Returns the name of the server's software, from the `Server` field of the shard's first response.
    pub fn server_software(&self) -> Option<String> {
        self.software.name()
    }

    /// Returns the metrics of connections and sessions; `None` if [`RunObserver::detail`] is false.
    pub fn into_detail(self) -> Option<ConnectionDetail> {
        self.detail
    }
}

impl Observer for ShardObserver {
    type PerCall = PerCall;

    #[inline]
    fn on(&mut self, call: &mut PerCall, event: &Event) {
        if self.is_active() {
            self.observe(call, event);
        }
    }

    fn reads_messages(&self) -> bool {
        self.call_hook.is_some() || self.software.is_unread()
    }

    #[inline]
    fn on_request(&mut self, PerCall(call): &mut PerCall, bytes: &[u8]) {
        if let (Some(call_hook), Some(call)) = (&self.call_hook, call) {
            call.request = MessagePrefix::default();
            call.request.add(bytes, call_hook.max_bytes);
        }
    }

    fn on_body_piece(&mut self, PerCall(call): &mut PerCall, bytes: &[u8]) {
        if let (Some(call_hook), Some(call)) = (&self.call_hook, call) {
            call.request.add(bytes, call_hook.max_bytes);
        }
    }

    #[inline]
    fn on_bytes(&mut self, PerCall(call): &mut PerCall, bytes: &[u8]) {
        self.software.read(bytes);
        if let (Some(call_hook), Some(call)) = (&self.call_hook, call) {
            call.response.add(bytes, call_hook.max_bytes);
        }
    }

    #[inline]
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

    fn merge(&mut self, other: ShardObserver) {
        if let (Some(ours), Some(theirs)) = (&mut self.detail, other.detail) {
            ours.merge(theirs);
        }
        self.software.merge(other.software);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{ClassId, End};

    #[test]
    fn the_tap_shows_a_call_once_with_its_request_and_the_beginning_of_its_response() {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let into = shown.clone();
        let call_hook = CallHook::new(8, move |exchange| into.lock().unwrap().push(exchange.clone()));
        let mut observer = ShardObserver::new(
            &RunObserver { detail: true, call_hook: Some(call_hook), ..RunObserver::default() },
            Nanos::from_secs(1),
        );
        let mut call = PerCall::default();
        let at = Nanos::from_micros;
        observer.on(&mut call, &Event::Scheduled { class: ClassId(0), due: at(5) });
        observer.on_request(&mut call, b"an earlier attempt");
        observer.on_request(&mut call, b"PUT");
        observer.on_body_piece(&mut call, b" /");
        observer.on_bytes(&mut call, b"HTTP/1.1 ");
        observer.on_bytes(&mut call, b"200");
        observer.on_response(&mut call, &ResponseSize { head: 10, body: 2 });
        observer.on(&mut call, &Event::Sent { at: at(7) });
        let (call_spec, end) = (CallSpec::for_class(ClassId(0)), End::Completed { status: 200 });
        let outcome = Outcome { call: call_spec, due: at(5), at: at(9), end, bytes_sent: 5, bytes_received: 12 };
        observer.on(&mut call, &Event::Ended(outcome));
        let shown = shown.lock().unwrap();
        let [exchange] = &shown[..] else { panic!("{shown:?}") };
        assert_eq!((exchange.due, exchange.sent, exchange.first_byte), (at(5), Some(at(7)), None));
        assert_eq!(exchange.request.bytes, b"PUT /");
        assert_eq!(exchange.response, MessagePrefix { bytes: b"HTTP/1.1".to_vec(), total_bytes: 12 });
        assert_eq!((exchange.outcome, exchange.call()), (outcome, call_spec));
        assert_eq!(observer.into_detail().unwrap().response_size(), (10.0, 2.0));
    }

    #[test]
    fn without_a_tap_no_call_is_remembered() {
        let mut observer = ShardObserver::new(&RunObserver::default(), Nanos::ZERO);
        let mut call = PerCall::default();
        observer.on(&mut call, &Event::Scheduled { class: ClassId(0), due: Nanos::ZERO });
        observer.on_request(&mut call, b"GET /");
        observer.on_bytes(&mut call, b"HTTP/1.1 ");
        assert!(call.0.is_none() && observer.into_detail().is_none());
    }
}
