//! Tests several calls under way on one connection: responses belong to the calls in the order of the requests, however
//! the bytes are split, and calls without a response end with their connection.

use crate::call_recorder::{ObservedCall, completed, count, count_connects, reset};
use crate::case::{Case, on_each_engine};
use crate::support::Plan;
use brimful_core::workload::{RequestClass, Workload as WorkloadDoc};
use brimful_core::{End, Nanos, SessionId};
use brimful_engine::Close;
use brimful_testkit::{RawServer, Request, Step, script, with_length};
use std::net::SocketAddr;
use std::time::Duration;

on_each_engine!(
    responses_may_come_in_one_piece_or_many,
    each_call_gets_its_own_response,
    calls_without_a_response_are_reset_when_the_server_closes,
    calls_behind_a_malformed_response_are_reset,
    an_excess_response_ends_the_connection_but_no_call,
    a_connection_ends_after_its_calls,
    large_requests_are_sent_whole_and_in_order,
    a_closing_connection_gets_no_call,
    only_the_overdue_time_out,
    a_burst_is_sent_after_the_burst_before_it_ended,
    calls_lost_with_a_connection_are_not_replaced,
    each_call_gets_a_connection_if_the_server_closes_after_each_response,
);

/// Pipeline depth of the tests: the number of clients that share a connection.
const DEPTH: usize = 4;

fn four(case: Case, addr: SocketAddr, calls: u64) -> Vec<ObservedCall> {
    Plan::new(case, addr).calls(calls).configure(|c| c.connections.pipeline = DEPTH).run_closed(DEPTH as u64)
}

/// Starts a server that reads four requests, and then performs these steps.
fn after_four(steps: impl IntoIterator<Item = Step>) -> RawServer {
    RawServer::start(script(vec![Step::Request; DEPTH].into_iter().chain(steps)))
}

fn hello(times: usize) -> Vec<u8> {
    with_length(b"hello").repeat(times)
}

fn responses_may_come_in_one_piece_or_many(case: Case) {
    let once = [Step::Send(hello(DEPTH))];
    let singly = [Step::Trickle(hello(DEPTH), Duration::from_micros(20))];
    // The bytes are split in the middle of the second response.
    let middle = hello(1).len() + 20;
    let astride = [Step::Send(hello(DEPTH)[..middle].to_vec()), Step::Send(hello(DEPTH)[middle..].to_vec())];
    for server in [after_four(once), after_four(singly), after_four(astride)] {
        let calls = four(case, server.addr(), 40);
        assert_eq!((count(&calls, completed), count_connects(&calls)), (40, 1));
        assert!(calls.iter().all(|call| call.outcome().bytes_received == hello(1).len() as u64));
    }
}

/// The responses differ in length, and one class has the method HEAD. Expects that each call gets its own response,
/// identified by its length.
fn each_call_gets_its_own_response(case: Case) {
    let class = |n: usize| RequestClass {
        path: format!("/{}", n * 1000),
        name: n.to_string(),
        ..WorkloadDoc::single_class(if n == 3 { "HEAD" } else { "GET" }, "/").classes[0].clone()
    };
    let answer = |request: &Request| {
        let whole = with_length(&vec![b'x'; request.target[1..].parse().unwrap()]);
        let body = if request.method == "HEAD" { 3000 } else { 0 };
        whole[..whole.len() - body].to_vec()
    };
    let server = RawServer::with_handler(answer);
    let classes: Vec<RequestClass> = (0..6).map(class).collect();
    let plan = Plan::with_classes(case.engine, server.addr(), &classes, Close::Server).calls(1000);
    let calls = plan.configure(|c| c.connections.pipeline = DEPTH).run_closed(3 * DEPTH as u64);
    assert_eq!(count(&calls, completed), 1000);
    assert_eq!(count_connects(&calls), 3, "clients share connections, and none is lost");
    for outcome in calls.iter().map(ObservedCall::outcome) {
        let n = usize::from(outcome.call.class.0);
        let method = if n == 3 { "HEAD" } else { "GET" }.to_owned();
        let request = Request { method, target: classes[n].path.clone(), headers: Vec::new(), body: Vec::new() };
        assert_eq!(outcome.bytes_received, answer(&request).len() as u64, "{outcome:?}");
    }
}

fn calls_without_a_response_are_reset_when_the_server_closes(case: Case) {
    for end in [Step::Close, Step::Reset] {
        for answered in 0..DEPTH {
            let server = after_four([Step::Send(hello(answered)), end.clone()]);
            let calls = four(case, server.addr(), DEPTH as u64);
            for (i, call) in calls.iter().enumerate() {
                // The connection has carried a response, so the server may have closed it before the other calls were
                // sent.
                let lost = if answered > 0 { End::ClosedOnReuse { sent: true } } else { End::Reset { sent: true } };
                let expected = if i < answered { End::Completed { status: 200 } } else { lost };
                assert_eq!(call.end(), expected, "call {i} of {DEPTH}, {answered} answered, then {end:?}");
            }
        }
    }
}

fn calls_behind_a_malformed_response_are_reset(case: Case) {
    let server = after_four([Step::Send([hello(1), b"nonsense\r\n\r\n".to_vec()].concat()), Step::Drain]);
    let ends: Vec<End> = four(case, server.addr(), DEPTH as u64).iter().map(ObservedCall::end).collect();
    let reset = End::Reset { sent: true };
    assert_eq!(ends, [End::Completed { status: 200 }, End::Malformed, reset, reset]);
}

fn an_excess_response_ends_the_connection_but_no_call(case: Case) {
    let server = after_four([Step::Send(hello(DEPTH + 1))]);
    let calls = four(case, server.addr(), 12);
    assert_eq!((count(&calls, completed), count_connects(&calls)), (12, 3));
}

fn a_connection_ends_after_its_calls(case: Case) {
    for close in [Close::Server, Close::Fin, Close::Rst] {
        let server = RawServer::start(|conn, _| {
            let mut reader = std::io::BufReader::new(&conn);
            while let Some(request) = Request::read(&mut reader) {
                if std::io::Write::write_all(&mut &conn, &hello(1)).is_err() || request.header("connection").is_some() {
                    return;
                }
            }
        });
        let plan = Plan::with_method(case, server.addr(), "GET", close).calls(60);
        let calls = plan
            .configure(|c| (c.connections.pipeline, c.connections.calls_per_connection) = (DEPTH, Some(6)))
            .run_closed(DEPTH as u64);
        assert_eq!(count(&calls, completed), 60, "{close:?}");
        assert_eq!(count_connects(&calls), server.connections(), "{close:?}");
        // A connection accepts no call after its last allowed one has begun. Further calls use another connection.
        assert!((10..=20).contains(&count_connects(&calls)), "{close:?}: {} connections", count_connects(&calls));
    }
}

fn large_requests_are_sent_whole_and_in_order(case: Case) {
    const BIG: usize = 1 << 20;
    let server = RawServer::with_handler(|request| with_length(request.body.len().to_string().as_bytes()));
    let plan = Plan::with_post_body(case, server.addr(), "x".repeat(BIG)).calls(20);
    let calls = plan.configure(|c| c.connections.pipeline = DEPTH).run_closed(DEPTH as u64);
    assert_eq!((count(&calls, completed), count_connects(&calls)), (20, 1));
    let answer = with_length(BIG.to_string().as_bytes()).len() as u64;
    for outcome in calls.iter().map(ObservedCall::outcome) {
        assert!((1..1000).contains(&(outcome.bytes_sent - BIG as u64)), "a short head and the body: {outcome:?}");
        assert_eq!(outcome.bytes_received, answer, "the server got the whole body");
    }
}

/// The server announces in each response that it will close the connection, but closes it late. Expects a new
/// connection for each call.
fn a_closing_connection_gets_no_call(case: Case) {
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi".to_vec();
    let server = RawServer::start(script([Step::Request, Step::Send(closing), Step::Drain]));
    let plan = Plan::new(case, server.addr()).calls(10).configure(|c| c.connections.pipeline = DEPTH);
    let calls = plan.run_closed(1);
    assert_eq!((count(&calls, completed), count_connects(&calls)), (10, 10), "{calls:?}");
}

/// Sends calls at intervals on one connection to a server that never responds. Expects that the first call times out,
/// and that later ones end as reset when the connection is closed.
fn only_the_overdue_time_out(case: Case) {
    let server = RawServer::never_answers();
    let timeout = Nanos::from_millis(300);
    let plan = Plan::new(case, server.addr()).calls(DEPTH as u64);
    let calls =
        plan.configure(|c| (c.connections.pipeline, c.connections.response_timeout) = (DEPTH, timeout)).run_open(20.0);
    assert_eq!((calls[0].end(), count_connects(&calls)), (End::TimedOut, 1));
    for call in &calls {
        let lost = call.end() == End::Reset { sent: true };
        assert!(lost || call.end() == End::TimedOut && call.service_time() >= timeout, "{call:?}");
    }
}

fn a_burst_is_sent_after_the_burst_before_it_ended(case: Case) {
    // The server sends the response to each request separately.
    let server = RawServer::with_handler(|_| with_length(b"hello"));
    let plan = Plan::new(case, server.addr()).calls(120).configure(|c| c.connections.pipeline = DEPTH);
    let calls = plan.run_closed_bursts(3 * DEPTH as u64);
    assert_eq!((count(&calls, completed), count_connects(&calls)), (120, 3));
    for group in 0..3 {
        let of_group = |call: &&ObservedCall| call.outcome().call.session == Some(SessionId(group));
        let mut of_group: Vec<&ObservedCall> = calls.iter().filter(of_group).collect();
        of_group.sort_by_key(|call| call.due);
        let mut answered = Nanos::ZERO;
        for burst in of_group.chunks(DEPTH) {
            assert!(burst.iter().all(|call| (call.due, call.sent) == (answered, burst[0].sent)), "{burst:?}");
            answered = burst.iter().map(|call| call.outcome().at).max().unwrap();
        }
    }
}

fn calls_lost_with_a_connection_are_not_replaced(case: Case) {
    let server = after_four([Step::Send(hello(2)), Step::Close]);
    let plan = Plan::new(case, server.addr()).calls(3 * DEPTH as u64).configure(|c| c.connections.pipeline = DEPTH);
    let calls = plan.run_closed_bursts(DEPTH as u64);
    assert_eq!((count(&calls, completed), count(&calls, reset), count_connects(&calls)), (6, 6, 3));
}

fn each_call_gets_a_connection_if_the_server_closes_after_each_response(case: Case) {
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi".to_vec();
    let server = RawServer::start(script([Step::Request, Step::Send(closing), Step::Drain]));
    let plan = Plan::new(case, server.addr()).calls(3 * DEPTH as u64).configure(|c| c.connections.pipeline = DEPTH);
    let calls = plan.run_closed_bursts(DEPTH as u64);
    // The calls sent before the first response are lost, because the server announces the close only in that response.
    assert_eq!((count(&calls, completed), count_connects(&calls)), (1 + 2 * DEPTH, 1 + 2 * DEPTH));
}
