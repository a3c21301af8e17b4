//! Tests connections that end at each stage of a call, by RST or by FIN.

use crate::call_recorder::{CallRecorder, completed, count, count_connects, reset};
use crate::case::{Case, on_each_engine};
use crate::support::Plan;
use brimful_core::End;
use brimful_testkit::{RawServer, Step, script, with_length};
use std::time::Duration;

on_each_engine!(
    a_connection_that_ends_early_is_reset_at_every_stage,
    a_connection_that_ends_before_it_is_noticed_was_not_refused,
    a_connection_that_ends_within_a_large_request_is_reset,
    a_connection_that_ends_between_calls_is_replaced,
    a_reset_ends_no_body_that_a_close_would_have_ended,
);

fn a_connection_that_ends_early_is_reset_at_every_stage(case: Case) {
    let whole = with_length(b"hello");
    let (head, body) = (b"HTTP/1.1 200 OK\r\nConte".len(), whole.len() - 2);
    for end in [Step::Reset, Step::Close] {
        for (stage, steps, received) in [
            ("accept", vec![], 0),
            ("part of the request", vec![Step::Read(10)], 0),
            ("the request", vec![Step::Request], 0),
            ("part of the head", vec![Step::Request, Step::Send(whole[..head].to_vec())], head),
            ("part of the body", vec![Step::Request, Step::Send(whole[..body].to_vec())], body),
        ] {
            let server = RawServer::start(script(steps.into_iter().chain([end.clone()])));
            for calls in [
                Plan::new(case, server.addr()).calls(4).run_closed(2),
                Plan::new(case, server.addr()).calls(4).run_open(200.0),
            ] {
                assert_eq!(
                    (calls.len(), count(&calls, reset), count_connects(&calls)),
                    (4, 4, 4),
                    "{end:?} after {stage}"
                );
                for call in &calls {
                    assert_eq!(call.outcome().bytes_received, received as u64, "{end:?} after {stage}");
                    let unsent_is_possible = stage == "accept";
                    assert!(unsent_is_possible || call.end() == End::Reset { sent: true }, "{end:?} after {stage}");
                }
            }
        }
    }
}

/// Blocks the generator while the server accepts and closes connections. Expects that all calls end as reset, and none
/// as refused.
fn a_connection_that_ends_before_it_is_noticed_was_not_refused(case: Case) {
    for end in [Step::Reset, Step::Close] {
        let server = RawServer::start(script([end.clone()]));
        let stall = || CallRecorder { stall: Some((0, Duration::from_millis(20))), ..CallRecorder::default() };
        let calls = Plan::new(case, server.addr()).calls(8).run_open_with_observer(1e6, stall).observer.calls;
        assert_eq!((calls.len(), count(&calls, reset)), (8, 8), "{end:?}: {calls:?}");
    }
}

/// Sends a request that is larger than all socket buffers together, so it is still being sent when the connection ends.
/// Expects that the call ends as reset.
fn a_connection_that_ends_within_a_large_request_is_reset(case: Case) {
    const BIG: usize = 8 << 20;
    for end in [Step::Reset, Step::Close] {
        let server = RawServer::start(script([Step::Read(1000), end.clone()]));
        let calls = Plan::with_post_body(case, server.addr(), "x".repeat(BIG)).calls(2).run_closed(1);
        for call in &calls {
            assert_eq!(call.end(), End::Reset { sent: true }, "{end:?}");
            assert!((1000..BIG as u64).contains(&call.outcome().bytes_sent), "{end:?}: {call:?}");
        }
    }
}

/// Ends each connection after its first response. The next call is due much later, when the generator has noticed the
/// end. Expects that it opens a new connection and completes.
fn a_connection_that_ends_between_calls_is_replaced(case: Case) {
    for end in [Step::Reset, Step::Close] {
        let server = RawServer::start(script([Step::Request, Step::Send(with_length(b"hello")), end.clone()]));
        let calls = Plan::new(case, server.addr()).calls(3).run_open(8.0);
        assert_eq!((count(&calls, completed), count_connects(&calls)), (3, 3), "{end:?}: {calls:?}");
    }
}

/// Sends a response whose body lasts until the end of the connection, and then resets the connection. Expects that no
/// call completes. With this many calls, some resets arrive before the client has read the response.
fn a_reset_ends_no_body_that_a_close_would_have_ended(case: Case) {
    const CALLS: usize = 400;
    let cut = b"HTTP/1.1 200 OK\r\n\r\nhello".to_vec();
    let server = RawServer::start(script([Step::Request, Step::Send(cut), Step::Reset]));
    // Uses an open load (a fixed schedule), because the clients of a closed load wait longer after each failure.
    let calls = Plan::new(case, server.addr()).calls(CALLS as u64).run_open(1000.0);
    let other = calls.iter().find(|call| call.end() != End::Reset { sent: true });
    assert!(calls.len() == CALLS && other.is_none(), "{} calls, {other:?}", calls.len());
}
