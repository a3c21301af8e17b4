//! Tests requests that are rendered for a single call, together with requests that calls share, and requests of
//! sessions.

use crate::call_recorder::{CallRecorder, ObservedCall, completed, count, count_connects};
use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan};
use brimful_core::{CallSpec, ClassId, Nanos, NextCall, Outcome, RequestId, SessionId, SessionOutcome, Workload};
use brimful_engine::{Redirect, Requests, Run};
use brimful_http::{Request, Version};
use brimful_testkit::{RawServer, Request as Received, Step, script, with_length};
use brimful_workload::{Chooser, ClosedWorkload, Shard, WorkloadLimits};
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

on_each_engine!(
    each_call_sends_its_own_request,
    own_and_shared_requests_keep_their_order,
    an_own_request_outlives_its_connection,
    requests_get_the_heads_of_responses,
    sessions_do_not_share_connections,
    an_ended_session_leaves_no_connection,
);

/// A workload whose calls have the request numbers 0, 1, 2 and so on. The field is the next number.
struct Numbered(u64);

impl Iterator for Numbered {
    type Item = CallSpec;

    fn next(&mut self) -> Option<CallSpec> {
        let request = RequestId(self.0);
        self.0 += 1;
        Some(CallSpec { class: ClassId(0), request, session: None })
    }
}

impl Chooser for Numbered {}

/// Provides a request for each call: request `n` is a POST to `/n` with a body whose bytes depend on `n`.
#[derive(Clone)]
struct Own<'a> {
    body: usize,
    /// A request for all calls with an even number; `None` if each call has its own request.
    shared: Option<&'a Request>,
    rendered: Arc<AtomicU64>,
    answered: Arc<Mutex<HashMap<RequestId, Vec<u8>>>>,
}

impl<'a> Own<'a> {
    fn of(body: usize) -> Own<'a> {
        Own { body, shared: None, rendered: Arc::default(), answered: Arc::default() }
    }
}

impl<'a> Requests<'a> for Own<'a> {
    fn request(&mut self, call: &CallSpec, _last: bool) -> Cow<'a, Request> {
        let request = match self.shared {
            Some(shared) if call.request.0.is_multiple_of(2) => Cow::Borrowed(shared),
            _ => Cow::Owned(post(call.request.0, self.body)),
        };
        self.rendered.fetch_add(request.bytes().len() as u64, Ordering::Relaxed);
        request
    }

    fn max_request_bytes(&self) -> usize {
        usize::MAX
    }

    fn read_head(&mut self, call: &CallSpec, head: &[u8]) -> Option<Redirect> {
        self.answered.lock().unwrap().insert(call.request, head.to_vec());
        None
    }
}

fn post(n: u64, body: usize) -> Request {
    Request::new("POST", "test", &format!("/{n}"), &[], &body_of(n, body), Version::Http11, false).unwrap()
}

fn body_of(n: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| (i ^ i >> 8 ^ n) as u8).collect()
}

/// Starts a server that responds with status 200 and the number in the request's target if the body matches this
/// number.
fn checking() -> RawServer {
    RawServer::with_handler(|request: &Received| {
        let n = request.target[1..].parse().unwrap();
        let status = if request.body == body_of(n, request.body.len()) { 200 } else { 400 };
        format!("HTTP/1.1 {status} X\r\nAsked: {n}\r\nContent-Length: 0\r\n\r\n").into_bytes()
    })
}

/// Three plans: one without pipelining, one with pipelining, and one with a new connection for each call.
fn ways(case: Case, address: SocketAddr, calls: u64) -> [Plan; 3] {
    let plan = Plan::new(case, address).calls(calls);
    [
        plan.clone(),
        plan.clone().configure(|c| c.connections.pipeline = 4),
        plan.configure(|c| c.connections.calls_per_connection = Some(1)),
    ]
}

/// Runs four clients that send these requests, and returns the calls.
fn four(plan: &Plan, requests: &Own<'_>) -> Vec<ObservedCall> {
    let extent = WorkloadLimits { window: plan.config.window, calls: plan.calls };
    let workload = |shard| ClosedWorkload::new(4, Nanos::ZERO, Numbered(0), extent, shard);
    let run = plan.drive_with(workload, || requests.clone(), CallRecorder::default, &Control::default());
    run.observer.calls.iter().for_each(ObservedCall::check);
    run.observer.calls
}

fn ok(calls: &[ObservedCall]) -> usize {
    count(calls, |end| end == brimful_core::End::Completed { status: 200 })
}

fn each_call_sends_its_own_request(case: Case) {
    let server = checking();
    for (calls, body) in [(200, 0), (200, 50), (40, 5_000), (8, 300_000)] {
        for plan in ways(case, server.addr(), calls) {
            let requests = Own::of(body);
            let seen = four(&plan, &requests);
            assert_eq!(ok(&seen), calls as usize, "{body} bytes");
            let sent: u64 = seen.iter().map(|call| call.outcome().bytes_sent).sum();
            assert_eq!(sent, requests.rendered.load(Ordering::Relaxed), "{body} bytes");
        }
    }
}

fn own_and_shared_requests_keep_their_order(case: Case) {
    let server = checking();
    for body in [0, 100, 20_000] {
        let shared = post(0, body);
        for plan in ways(case, server.addr(), 60) {
            let seen = four(&plan, &Own { shared: Some(&shared), ..Own::of(body) });
            assert_eq!(ok(&seen), 60, "{body} bytes");
        }
    }
}

/// One server responds at once and resets the connection while the request is being sent. Another resets it after the
/// call has timed out. Expects that every call is counted once.
fn an_own_request_outlives_its_connection(case: Case) {
    let server = RawServer::start(script([Step::Send(with_length(b"")), Step::Reset]));
    for plan in ways(case, server.addr(), 20) {
        assert_eq!(four(&plan, &Own::of(1 << 20)).len(), 20);
    }
    let server = RawServer::start(script([Step::Pause(Duration::from_millis(500)), Step::Reset]));
    for plan in ways(case, server.addr(), 8) {
        let plan = plan.configure(|c| c.connections.response_timeout = Nanos::from_millis(20));
        let seen = four(&plan, &Own::of(8 << 20));
        assert_eq!((seen.len(), count(&seen, completed)), (8, 0));
    }
}

fn requests_get_the_heads_of_responses(case: Case) {
    let server = checking();
    for plan in ways(case, server.addr(), 40) {
        let requests = Own::of(10);
        four(&plan, &requests);
        let answered = requests.answered.lock().unwrap();
        assert_eq!(answered.len(), 40);
        for (RequestId(n), head) in answered.iter() {
            let head = std::str::from_utf8(head).unwrap();
            assert!(head.contains(&format!("\r\nAsked: {n}\r\n")), "{n}: {head}");
        }
    }
}

/// A workload of sessions, of which `side_by_side` are under way at once. Each session makes [`Visits::CALLS`] calls,
/// of which `at_once` are under way at once.
struct Visits {
    at_once: u32,
    /// For each session under way, the number of calls that have not begun and the number of calls under way.
    sessions: HashMap<SessionId, (u32, u32)>,
    begun: u32,
    all: u32,
    side_by_side: usize,
}

impl Visits {
    const CALLS: u32 = 6;

    fn new(all: u32, side_by_side: usize, at_once: u32) -> Visits {
        Visits { at_once, sessions: HashMap::new(), begun: 0, all, side_by_side }
    }
}

impl Workload for Visits {
    fn next(&mut self, now: Nanos, in_flight: usize) -> NextCall {
        if self.sessions.len() < self.side_by_side && self.begun < self.all {
            self.sessions.insert(SessionId(self.begun), (Visits::CALLS, 0));
            self.begun += 1;
        }
        let due = self.sessions.iter_mut().find(|(_, (left, under_way))| *left > 0 && *under_way < self.at_once);
        match due {
            Some((session, (left, under_way))) => {
                (*left, *under_way) = (*left - 1, *under_way + 1);
                let call =
                    CallSpec { class: ClassId(0), request: RequestId(u64::from(session.0)), session: Some(*session) };
                NextCall::Due { due: now, call }
            }
            None if in_flight == 0 => NextCall::Done,
            None => NextCall::WaitForOutcome,
        }
    }

    fn on_outcome(&mut self, outcome: &Outcome) {
        let session = outcome.call.session.unwrap();
        let (left, under_way) = self.sessions.get_mut(&session).unwrap();
        *under_way -= 1;
        if (*left, *under_way) == (0, 0) {
            self.sessions.remove(&session);
        }
    }

    fn session_ended(&mut self, session: SessionId) -> Option<SessionOutcome> {
        let over = SessionOutcome {
            began: Nanos::ZERO,
            ended: Nanos::ZERO,
            calls: Visits::CALLS,
            bursts: 1,
            failed: false,
            began_before_run: false,
        };
        (!self.sessions.contains_key(&session)).then_some(over)
    }
}

fn visit(plan: &Plan, visits: impl Fn() -> Visits) -> Run<CallRecorder> {
    let run = plan.drive_with(|_: Shard| visits(), || Own::of(0), CallRecorder::default, &Control::default());
    run.observer.calls.iter().for_each(ObservedCall::check);
    run
}

fn sessions_do_not_share_connections(case: Case) {
    let targets: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let of_connections = Arc::clone(&targets);
    let server = RawServer::start(move |conn, _| {
        let mut reader = std::io::BufReader::new(&conn);
        let mut asked = Vec::new();
        while let Some(request) = Received::read(&mut reader)
            && std::io::Write::write_all(&mut &conn, &with_length(b"")).is_ok()
        {
            asked.push(request.target);
        }
        of_connections.lock().unwrap().push(asked);
    });
    // One connection can carry all simultaneous calls of a session, so each session has exactly one connection.
    for (pipeline, at_once) in [(1, 1), (3, 3)] {
        let plan = Plan::new(case, server.addr()).configure(|c| c.connections.pipeline = pipeline);
        let run = visit(&plan, || Visits::new(12, 5, at_once));
        let calls = run.observer.calls;
        assert_eq!((count(&calls, completed), count_connects(&calls)), (12 * Visits::CALLS as usize, 12));
        crate::support::wait_until(|| targets.lock().unwrap().len() == 12);
        for asked in targets.lock().unwrap().drain(..) {
            assert_eq!(asked.len(), Visits::CALLS as usize);
            assert!(asked.iter().all(|target| *target == asked[0]), "{asked:?}");
        }
    }
}

fn an_ended_session_leaves_no_connection(case: Case) {
    let server = RawServer::content_length("x");
    for at_once in [1, 2] {
        let run = visit(&Plan::new(case, server.addr()), || Visits::new(20, 1, at_once));
        assert_eq!(count(&run.observer.calls, completed), 20 * Visits::CALLS as usize);
        assert_eq!(run.max_open_connections, u64::from(at_once));
    }
    // The calls of a session may fail. Expects that each session still has only one connection at a time.
    let server = RawServer::closes_after(4);
    let run = visit(&Plan::new(case, server.addr()), || Visits::new(20, 1, 1));
    assert_eq!((run.observer.calls.len(), run.max_open_connections), (20 * Visits::CALLS as usize, 1));
}
