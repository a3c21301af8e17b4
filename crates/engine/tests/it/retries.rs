//! Tests calls whose connection the server closes before the request arrives, and calls that are sent again.

use crate::call_recorder::{ObservedCall, closed_on_reuse, completed, count, count_connects};
use crate::case::{Case, on_each_engine};
use crate::support::Plan;
use brimful_core::{End, RetryReason};
use brimful_testkit::http2::{answer, http2_server, settings};
use brimful_testkit::{RawServer, Step, script, with_length};

on_each_engine!(
    a_close_of_a_reused_connection_is_a_close_on_reuse,
    a_close_of_a_warm_connection_is_a_close_on_reuse,
    a_call_on_a_closed_connection_is_sent_again_if_configured,
    a_call_is_sent_again_a_bounded_number_of_times,
    a_close_of_a_reused_http2_connection_is_a_close_on_reuse,
);

/// Starts a server that responds to one request on each connection, and ends the connection when the next request
/// arrives.
fn closes_on_reuse(end: Step) -> RawServer {
    RawServer::start(script([Step::Request, Step::Send(with_length(b"hello")), Step::Request, end]))
}

fn ends(calls: &[ObservedCall]) -> Vec<End> {
    calls.iter().map(ObservedCall::end).collect()
}

const OK: End = End::Completed { status: 200 };
const CLOSED: End = End::ClosedOnReuse { sent: true };

fn a_close_of_a_reused_connection_is_a_close_on_reuse(case: Case) {
    for end in [Step::Close, Step::Reset] {
        let server = closes_on_reuse(end.clone());
        let calls = Plan::new(case, server.addr()).calls(6).run_closed(1);
        assert_eq!((ends(&calls), count_connects(&calls)), (vec![OK, CLOSED, OK, CLOSED, OK, CLOSED], 3), "{end:?}");
    }
    // A part of the response arrives before the connection ends. Expects that the call is not sent again.
    let part = Step::Send(b"HTTP/1.1 2".to_vec());
    let steps = [Step::Request, Step::Send(with_length(b"hello")), Step::Request, part, Step::Close];
    let server = RawServer::start(script(steps));
    let calls = Plan::new(case, server.addr()).calls(2).configure(|c| c.connections.retry_closed = true).run_closed(1);
    assert_eq!(ends(&calls), [OK, End::Reset { sent: true }]);
}

fn a_close_of_a_warm_connection_is_a_close_on_reuse(case: Case) {
    let server = RawServer::start(script([Step::Request, Step::Close]));
    let calls = Plan::new(case, server.addr()).calls(1).configure(|c| c.connections.warm_connections = 1).run_closed(1);
    assert_eq!(ends(&calls), [CLOSED]);
}

fn a_call_on_a_closed_connection_is_sent_again_if_configured(case: Case) {
    for end in [Step::Close, Step::Reset] {
        let server = closes_on_reuse(end.clone());
        for plan in [Plan::new(case, server.addr()), Plan::with_post_body(case, server.addr(), "x".repeat(3000))] {
            let calls = plan.calls(10).configure(|c| c.connections.retry_closed = true).run_closed(1);
            assert_eq!(count(&calls, completed), 10, "{end:?}: {calls:?}");
            let retried: Vec<u32> = calls.iter().map(|call| call.retries).collect();
            assert_eq!(retried, [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
            for pair in calls.windows(2) {
                let again = &pair[1];
                assert_eq!(again.retried, Some(RetryReason::ClosedOnReuse));
                // The response time includes the first attempt, so it exceeds the service time, which only covers the
                // second attempt.
                assert!(again.response_time() > again.service_time() && again.due >= pair[0].outcome().at);
            }
            assert_eq!(calls[1].outcome().bytes_sent, 2 * calls[0].outcome().bytes_sent);
        }
    }
}

/// The server closes a kept connection on its second request, and the next connection on its first. Expects that the
/// call is sent again only once, and then ends as reset: only a connection that has carried a response counts as closed
/// on reuse.
fn a_call_is_sent_again_a_bounded_number_of_times(case: Case) {
    let answers = script([Step::Request, Step::Send(with_length(b"hello")), Step::Request, Step::Close]);
    let closes = script([Step::Request, Step::Close]);
    let server =
        RawServer::start(move |conn, number| if number == 0 { answers(conn, 0) } else { closes(conn, number) });
    let calls = Plan::new(case, server.addr()).calls(2).configure(|c| c.connections.retry_closed = true).run_closed(1);
    assert_eq!((ends(&calls), calls[1].retries), (vec![OK, End::Reset { sent: true }], 1));
}

fn a_close_of_a_reused_http2_connection_is_a_close_on_reuse(case: Case) {
    let server = http2_server(settings(&[]), |peer, _| {
        if let Some(stream) = peer.request() {
            peer.send(&answer(stream, b"hello"));
            peer.request();
        }
    });
    let get = brimful_core::workload::Workload::single_class("GET", "/").classes;
    let plan = Plan::new(case, server.addr()).with_http2(&get, 4).calls(6);
    let calls = plan.clone().run_closed(1);
    assert_eq!((ends(&calls), count(&calls, closed_on_reuse)), (vec![OK, CLOSED, OK, CLOSED, OK, CLOSED], 3));
    let calls = plan.configure(|c| c.connections.retry_closed = true).run_closed(1);
    assert_eq!((count(&calls, completed), calls[1].retries), (6, 1));
}
