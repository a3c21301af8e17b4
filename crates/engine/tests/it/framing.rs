//! Tests every way to mark the end of a response, with its bytes split at every position, and unexpected bytes from a
//! server.

use crate::call_recorder::{ObservedCall, completed, count, count_connects};
use crate::case::{Case, on_each_engine};
use crate::support::Plan;
use brimful_core::End;
use brimful_engine::Close;
use brimful_testkit::{RawServer, Step, script, with_length};
use std::time::Duration;

on_each_engine!(
    every_framing_is_understood,
    a_response_in_single_bytes_is_complete,
    a_response_may_be_cut_anywhere,
    a_large_body_is_counted_to_the_byte,
    bytes_that_are_not_http_are_malformed,
    excess_bytes_end_the_connection_but_not_the_call,
    bytes_on_an_idle_connection_end_it,
    a_stray_empty_line_is_skipped_and_counted,
    a_switch_of_protocols_ends_the_connection,
    informational_responses_are_skipped,
    a_response_may_come_before_the_request_is_sent,
    a_large_request_is_sent_whole,
    small_buffers_lose_nothing,
);

const TRAILERS: &[u8] =
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;name=value\r\nhello\r\n0\r\nDigest: x\r\nA: b\r\n\r\n";

/// Makes three successive calls to this server.
fn three(case: Case, server: &RawServer) -> Vec<ObservedCall> {
    Plan::new(case, server.addr()).calls(3).run_closed(1)
}

fn every_framing_is_understood(case: Case) {
    let kept = three(case, &RawServer::content_length("hello"));
    assert_eq!((count(&kept, completed), count_connects(&kept)), (3, 1), "Content-Length");
    let kept = three(case, &RawServer::chunked(&["hel", "lo"]));
    assert_eq!((count(&kept, completed), count_connects(&kept)), (3, 1), "chunked");
    let kept = three(case, &RawServer::start(script([Step::Request, Step::Send(TRAILERS.to_vec())])));
    assert_eq!((count(&kept, completed), count_connects(&kept)), (3, 1), "trailers");
    let closed = three(case, &RawServer::close_delimited("hello"));
    assert_eq!((count(&closed, completed), count_connects(&closed)), (3, 3), "each response ends with its connection");
    for code in [204, 304] {
        let kept = three(case, &RawServer::status(code));
        assert!(kept.iter().all(|call| call.end() == End::Completed { status: code }), "{code}");
        assert_eq!(count_connects(&kept), 1, "{code}");
    }
    let head = RawServer::content_length("hello");
    let head = Plan::with_method(case, head.addr(), "HEAD", Close::Server).calls(3).run_closed(1);
    assert_eq!((count(&head, completed), count_connects(&head)), (3, 1), "HEAD");
}

fn a_response_in_single_bytes_is_complete(case: Case) {
    let calls = three(case, &RawServer::one_byte_at_a_time(Duration::from_micros(200)));
    assert_eq!(count(&calls, completed), 3);
    assert!(calls.iter().all(|call| call.first_byte.unwrap() < call.outcome().at));
}

fn a_response_may_be_cut_anywhere(case: Case) {
    let informed = [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", &with_length(b"hello")[..]].concat();
    for response in [with_length(b"hello"), TRAILERS.to_vec(), informed] {
        let cut = |at: usize| {
            let (first, rest) = response.split_at(at);
            let pause = Step::Pause(Duration::from_micros(100));
            [Step::Request, Step::Send(first.to_vec()), pause, Step::Send(rest.to_vec())]
        };
        let server = RawServer::start(script((1..response.len()).flat_map(cut)));
        let calls = Plan::new(case, server.addr()).calls(response.len() as u64 - 1).run_closed(1);
        assert_eq!((count(&calls, completed), count_connects(&calls)), (response.len() - 1, 1));
        assert!(calls.iter().all(|call| call.outcome().bytes_received == response.len() as u64));
    }
}

fn a_large_body_is_counted_to_the_byte(case: Case) {
    const LENGTH: usize = 64 << 20;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n").into_bytes();
    let expected = (head.len() + LENGTH) as u64;
    let body = vec![Step::Send(vec![b'x'; 1 << 18]); LENGTH >> 18];
    let server = RawServer::start(script([Step::Request, Step::Send(head)].into_iter().chain(body)));
    let plan = Plan::new(case, server.addr()).calls(2).configure(|c| c.connections.response_timeout = c.window);
    let calls = plan.run_closed(1);
    assert_eq!((count(&calls, completed), count_connects(&calls)), (2, 1));
    assert!(calls.iter().all(|call| call.outcome().bytes_received == expected), "{calls:?}");
}

fn bytes_that_are_not_http_are_malformed(case: Case) {
    let calls = three(case, &RawServer::garbage());
    assert!(calls.iter().all(|call| call.end() == End::Malformed), "{calls:?}");
}

fn excess_bytes_end_the_connection_but_not_the_call(case: Case) {
    let excess = [&with_length(b"hi")[..], b", and more"].concat();
    let calls = three(case, &RawServer::start(script([Step::Request, Step::Send(excess)])));
    assert_eq!((count(&calls, completed), count_connects(&calls)), (3, 3));
}

/// The server sends more bytes while a connection is idle, long before the next call. Expects a new connection for each
/// call.
fn bytes_on_an_idle_connection_end_it(case: Case) {
    let late = [Step::Pause(Duration::from_millis(5)), Step::Send(b", and more".to_vec()), Step::Drain];
    let steps = [Step::Request, Step::Send(with_length(b"hi"))].into_iter().chain(late);
    let server = RawServer::start(script(steps));
    let calls = Plan::new(case, server.addr()).calls(3).run_open(8.0);
    assert_eq!((count(&calls, completed), count_connects(&calls)), (3, 3));
}

/// The server sends an empty line directly after a response, some time after it, or before it. Expects that the line is
/// counted, and that the connection stays open.
fn a_stray_empty_line_is_skipped_and_counted(case: Case) {
    let (answer, stray) = (with_length(b"hi"), || Step::Send(b"\r\n".to_vec()));
    let behind = vec![Step::Request, Step::Send([&answer[..], b"\r\n"].concat())];
    let pause = || Step::Pause(Duration::from_millis(2));
    let later = vec![Step::Request, Step::Send(answer.clone()), pause(), stray()];
    let before = vec![Step::Request, stray(), pause(), Step::Send(answer.clone())];
    let cut = vec![Step::Request, Step::Send([&answer[..], b"\r"].concat()), pause(), Step::Send(b"\n".to_vec())];
    for steps in [behind, later, before.clone(), cut] {
        let server = RawServer::start(script(steps.clone()));
        // Without a pause between the calls, the empty line arrives with or before the next response. With a pause, it
        // arrives while no response is expected.
        let plan = Plan::new(case, server.addr()).calls(4);
        for calls in [plan.run_closed(1), plan.run_open(10.0)] {
            assert_eq!((count(&calls, completed), count_connects(&calls)), (4, 1), "{steps:?}");
            let lines: u32 = calls.iter().map(|call| call.empty_lines).sum();
            assert_eq!(lines, if steps == before { 4 } else { 3 }, "{steps:?}");
            assert!(calls.iter().all(|call| call.outcome().bytes_received == answer.len() as u64), "{calls:?}");
        }
    }
    let many = [&answer[..], b"\r\n\r\n\r\n\r\n\r\n"].concat();
    let calls = three(case, &RawServer::start(script([Step::Request, Step::Send(many)])));
    assert_eq!((count(&calls, completed), count_connects(&calls)), (3, 3), "many empty lines end the connection");
}

fn a_switch_of_protocols_ends_the_connection(case: Case) {
    let switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n".to_vec();
    let server = RawServer::start(script([Step::Request, Step::Send(switch), Step::Drain]));
    let calls = three(case, &server);
    assert!(calls.iter().all(|call| call.end() == End::Completed { status: 101 }), "{calls:?}");
    assert_eq!(count_connects(&calls), 3);
}

fn informational_responses_are_skipped(case: Case) {
    let informational =
        [b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec()];
    let [first, second] = informational.map(Step::Send);
    let server = RawServer::start(script([Step::Request, first, second, Step::Send(with_length(b"hi"))]));
    let calls = three(case, &server);
    assert!(calls.iter().all(|call| call.end() == End::Completed { status: 200 }));
    assert_eq!(count_connects(&calls), 1);
}

const BIG: usize = 8 << 20;

/// Sends a request that is larger than all socket buffers together. The server responds after it has received part of
/// the request, and then either reads the rest or closes the connection, which resets it. Expects that the call ends
/// with the response.
fn a_response_may_come_before_the_request_is_sent(case: Case) {
    let answer = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec();
    for end in [Step::Finish, Step::Close] {
        let server = RawServer::start(script([Step::Read(1000), Step::Send(answer.clone()), end.clone()]));
        let calls = Plan::with_post_body(case, server.addr(), "x".repeat(BIG)).run_closed(1);
        assert_eq!(calls[0].end(), End::Completed { status: 413 }, "{end:?}");
    }
}

fn a_large_request_is_sent_whole(case: Case) {
    let server = RawServer::with_handler(|request| with_length(request.body.len().to_string().as_bytes()));
    let calls = Plan::with_post_body(case, server.addr(), "x".repeat(BIG)).calls(3).run_closed(1);
    assert_eq!((count(&calls, completed), count_connects(&calls)), (3, 1));
    for outcome in calls.iter().map(ObservedCall::outcome) {
        assert!((1..1000).contains(&(outcome.bytes_sent - BIG as u64)), "a short head and the body: {outcome:?}");
        assert_eq!(outcome.bytes_received, with_length(BIG.to_string().as_bytes()).len() as u64, "received whole");
    }
}

/// Uses the smallest socket buffers, so that requests and responses are sent in many parts. Expects that every call
/// completes with its whole response.
fn small_buffers_lose_nothing(case: Case) {
    let server = RawServer::with_handler(|request| with_length(&request.body));
    for length in [4000, 100_000] {
        let plan = Plan::with_post_body(case, server.addr(), "x".repeat(length)).calls(5);
        let plan = plan.configure(|c| (c.connections.send_buffer, c.connections.receive_buffer) = (Some(1), Some(1)));
        let calls = plan.run_closed(1);
        assert_eq!((count(&calls, completed), count_connects(&calls)), (5, 1));
        let answer = with_length(&vec![b'x'; length]).len() as u64;
        assert!(calls.iter().all(|call| call.outcome().bytes_received == answer), "{length}");
    }
}
