//! Every framing of a response, and everything a server can do instead of one.

use crate::support::{Plan, Seen, completed, count};
use brimful_core::{End, Nanos};
use brimful_engine::Close;
use brimful_testkit::RawServer;
use std::io::{Read, Write};
use std::time::Duration;

fn three(server: &RawServer) -> Vec<Seen> {
    Plan::new(server.addr()).calls(3).closed(1)
}

fn connects(calls: &[Seen]) -> usize {
    calls.iter().filter(|call| call.connect_started.is_some()).count()
}

#[test]
fn every_framing_is_understood() {
    let kept = three(&RawServer::content_length(b"hello".to_vec()));
    assert_eq!((count(&kept, completed), connects(&kept)), (3, 1), "Content-Length");
    let kept = three(&RawServer::chunked(&[b"hel".to_vec(), b"lo".to_vec()]));
    assert_eq!((count(&kept, completed), connects(&kept)), (3, 1), "chunked");
    let closed = three(&RawServer::close_delimited(b"hello".to_vec()));
    assert_eq!((count(&closed, completed), connects(&closed)), (3, 3), "by close");
    for code in [204, 304] {
        let kept = three(&RawServer::status(code));
        assert!(kept.iter().all(|call| call.end() == End::Completed { status: code }), "{code}");
        assert_eq!(connects(&kept), 1, "{code}");
    }
    let head = RawServer::content_length(b"hello".to_vec());
    let head = Plan::requesting(head.addr(), "HEAD", Close::Server).calls(3).closed(1);
    assert_eq!((count(&head, completed), connects(&head)), (3, 1), "HEAD");
}

#[test]
fn a_response_in_single_bytes_is_whole_in_the_end() {
    let calls = three(&RawServer::one_byte_at_a_time(Duration::from_micros(200)));
    assert_eq!(count(&calls, completed), 3);
    assert!(calls.iter().all(|call| call.first_byte.unwrap() < call.outcome.unwrap().at));
}

#[test]
fn a_large_body_is_read_to_its_end_and_not_kept() {
    let body = vec![b'x'; 20 << 20];
    let calls = three(&RawServer::content_length(body));
    assert_eq!(count(&calls, completed), 3);
    assert!(calls.iter().all(|call| call.outcome.unwrap().bytes_received > 20 << 20));
}

#[test]
fn what_is_not_http_is_malformed() {
    let calls = three(&RawServer::garbage());
    assert!(calls.iter().all(|call| call.end() == End::Malformed), "{calls:?}");
}

#[test]
fn a_connection_that_ends_early_is_reset() {
    for (what, server) in [
        ("closes on accept", RawServer::closes_on_accept()),
        ("truncated", RawServer::truncated(b"hello".to_vec(), 3)),
        ("reset in the head", RawServer::resets_after(10)),
        ("closes after none", RawServer::closes_after(0)),
    ] {
        let calls = three(&server);
        assert_eq!(calls.len(), 3, "{what}");
        assert!(calls.iter().all(|call| matches!(call.end(), End::Reset { .. })), "{what}: {calls:?}");
    }
}

#[test]
fn more_than_the_response_spoils_the_connection_but_not_the_call() {
    let server = RawServer::start(|mut conn, _| {
        let mut request = [0; 4096];
        while matches!(conn.read(&mut request), Ok(1..)) {
            let _ = conn.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi, and more");
        }
    });
    let calls = three(&server);
    assert_eq!((count(&calls, completed), connects(&calls)), (3, 3));
}

#[test]
fn informational_responses_are_passed_over() {
    let server = RawServer::start(|mut conn, _| {
        let mut request = [0; 4096];
        while matches!(conn.read(&mut request), Ok(1..)) {
            let _ = conn.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
            let _ = conn.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
        }
    });
    let calls = three(&server);
    assert!(calls.iter().all(|call| call.end() == End::Completed { status: 200 }));
}

#[test]
fn a_server_that_never_answers_times_out() {
    let server = RawServer::never_answers();
    let plan = Plan::new(server.addr()).calls(5).configure(|c| c.response_timeout = Nanos::from_millis(80));
    let calls = plan.open(1000.0);
    assert_eq!(count(&calls, |end| end == End::TimedOut), 5);
    for call in &calls {
        let took = call.service();
        assert!(took >= Nanos::from_millis(80) && took < Nanos::from_millis(200), "{took}");
    }
}
