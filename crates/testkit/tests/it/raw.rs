//! Tests `RawServer`, one behaviour at a time.
use super::{GET, LAST_GET, answers, ask, connect, exchange, refused};
use brimful_testkit::{RawServer, Step, script};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::time::Duration;

const HEAD: &str = "HEAD / HTTP/1.1\r\nHost: test\r\n\r\n";
const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";

#[test]
fn connections_are_counted_and_a_scripted_answer_is_sent() {
    let server = RawServer::start(|mut conn, index| write!(conn, "{index}").unwrap());
    for index in 0..3 {
        assert_eq!(answers(server.addr(), ""), index.to_string());
    }
    assert_eq!(server.connections(), 3);
    assert_eq!(server.url(), format!("http://{}/", server.addr()));
}

#[test]
fn an_answer_may_depend_on_the_request() {
    let server = RawServer::with_handler(|request| format!("<{} {}>", request.method, request.target).into_bytes());
    let mut conn = connect(server.addr());
    ask(&mut conn, "PUT /a HTTP/1.1\r\nContent-Length: 1\r\n\r\nxGET /b HTTP/1.1\r\n\r\n", "<PUT /a><GET /b>");
}

#[test]
fn closing_on_accept_ends_the_connection_without_a_byte() {
    let server = RawServer::closes_on_accept();
    assert_eq!(connect(server.addr()).read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn a_server_that_never_answers_ends_with_the_handle() {
    let server = RawServer::never_answers();
    let mut conn = connect(server.addr());
    conn.write_all(GET.as_bytes()).unwrap();
    conn.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
    assert_eq!(conn.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let addr = server.addr();
    drop(server);
    assert_eq!(conn.read(&mut [0; 1]).unwrap(), 0);
    assert!(refused(addr));
}

#[test]
fn keep_alive_bodies_are_framed_and_absent_after_head() {
    let server = RawServer::content_length("body");
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
    ask(&mut connect(server.addr()), &[GET, HEAD, GET].concat(), &format!("{head}body{head}{head}body"));

    let server = RawServer::chunked(&["abc", "", "0123456789abcdef"]);
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = "3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
    ask(&mut connect(server.addr()), &[GET, HEAD, GET].concat(), &format!("{head}{body}{head}{head}{body}"));

    for (code, length) in [(204, ""), (304, ""), (500, "Content-Length: 0\r\n")] {
        let server = RawServer::status(code);
        let expected = format!("HTTP/1.1 {code} Status\r\n{length}\r\n");
        ask(&mut connect(server.addr()), &[GET, GET].concat(), &expected.repeat(2));
    }
}

#[test]
fn bodies_that_end_with_the_connection_end_it_cleanly() {
    // Three requests are sent at once: even if requests remain unanswered, the connection must end with FIN, not with a
    // reset.
    let requests = GET.repeat(3);
    let server = RawServer::close_delimited("body");
    assert_eq!(answers(server.addr(), &requests), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbody");
    let server = RawServer::truncated("body", 10);
    assert_eq!(answers(server.addr(), &requests), "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nbody");
    let (bytes, end) = exchange(RawServer::garbage().addr(), &requests);
    assert!(end.is_ok() && !bytes.is_empty() && !bytes.starts_with(b"HTTP"));
}

#[test]
fn single_bytes_arrive_singly() {
    let server = RawServer::one_byte_at_a_time(Duration::from_millis(1));
    let mut conn = connect(server.addr());
    conn.write_all(GET.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut reads = 0;
    let mut buffer = [0; 64];
    while answer.len() < HELLO.len() {
        let length = conn.read(&mut buffer).unwrap();
        answer.extend_from_slice(&buffer[..length]);
        reads += 1;
    }
    assert_eq!(String::from_utf8(answer).unwrap(), HELLO);
    // If the test's thread is delayed, it may read several bytes at once, so there may be fewer reads than bytes.
    assert!(reads > HELLO.len() / 4, "{reads} reads");
}

#[test]
fn a_reset_comes_after_exactly_the_bytes_it_should() {
    let (bytes, end) = exchange(RawServer::resets_after(60).addr(), GET);
    assert_eq!(bytes.len(), 60);
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let (bytes, end) = exchange(RawServer::resets_after(0).addr(), GET);
    assert_eq!((bytes.len(), end.unwrap_err().kind()), (0, ErrorKind::ConnectionReset));
}

#[test]
fn a_connection_closes_after_its_requests_and_the_next_one_is_served() {
    let server = RawServer::closes_after(2);
    for _ in 0..2 {
        let mut conn = connect(server.addr());
        ask(&mut conn, GET, HELLO);
        ask(&mut conn, GET, HELLO);
        assert_eq!(conn.read(&mut [0; 1]).unwrap(), 0);
    }
    assert_eq!(answers(RawServer::closes_after(0).addr(), GET), "");
}

#[test]
fn a_dead_server_closes_every_connection_and_refuses_new_ones() {
    let server = RawServer::dies_after(3);
    let (mut first, mut second) = (connect(server.addr()), connect(server.addr()));
    ask(&mut first, GET, HELLO);
    ask(&mut second, GET, HELLO);
    ask(&mut first, GET, HELLO);
    assert_eq!(first.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(second.read(&mut [0; 1]).unwrap(), 0);
    assert!(refused(server.addr()));
}

#[test]
#[should_panic(expected = "a scoped thread panicked")]
fn a_behaviour_that_panics_fails_the_test() {
    let server = RawServer::start(|_, _| panic!("expected by this test"));
    assert_eq!(answers(server.addr(), ""), "", "the connection is closed after the panic");
}

#[test]
fn many_connections_are_served_at_once() {
    let server = RawServer::content_length("x");
    let conns: Vec<_> = (0..200).map(|_| connect(server.addr())).collect();
    for mut conn in conns {
        ask(&mut conn, LAST_GET, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    }
    assert_eq!(server.connections(), 200);
}

#[test]
fn a_script_begins_again_until_a_step_ends_the_connection() {
    let steps = [Step::Read(2), Step::Send(b"a".to_vec()), Step::Request, Step::Send(b"b".to_vec())];
    let server = RawServer::start(script(steps.clone()));
    ask(&mut connect(server.addr()), &["..", GET, "..", GET].concat(), "abab");

    let closing = RawServer::start(script(steps.into_iter().chain([Step::Finish])));
    assert_eq!(answers(closing.addr(), &["..", GET, "more"].concat()), "ab");
}

#[test]
fn a_flood_goes_on_until_the_client_has_enough() {
    let server = RawServer::start(script([Step::Request, Step::Repeat(b"x".to_vec())]));
    let mut conn = connect(server.addr());
    conn.write_all(GET.as_bytes()).unwrap();
    let mut bytes = vec![0; 8 << 20];
    conn.read_exact(&mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == b'x'));
    // Dropping the server waits for its threads. If the server did not stop sending, the test would hang here.
}

#[test]
fn a_server_can_restart_on_the_port_of_one_that_has_stopped() {
    let server = RawServer::start(script([Step::Send(b"before".to_vec()), Step::Close]));
    let addr = server.addr();
    assert_eq!(answers(addr, ""), "before");
    drop(server);
    assert!(refused(addr));
    let after = script([Step::Send(b"after".to_vec()), Step::Close]);
    let server = RawServer::start_on(TcpListener::bind(addr).unwrap(), after);
    assert_eq!(answers(server.addr(), ""), "after");
}
