//! Tests request bodies that are sent after their heads: bodies from files, and bodies that wait for `100 Continue`.

use crate::call_recorder::{ObservedCall, completed, count, count_connects};
use crate::case::{Case, on_each_engine};
use crate::support::{Plan, wait_until};
use brimful_core::workload::{RequestClass, Workload as WorkloadDoc};
use brimful_core::{End, ExhaustedResource, Nanos};
use brimful_engine::{Close, EngineError, FixedRequests, RequestSettings};
use brimful_http::Version;
use brimful_testkit::http2::{ACK, END_HEADERS, END_STREAM, Http2Peer, answer, frame, http2_server, kind, settings};
use brimful_testkit::{Caddy, Nginx, NginxOptions, RawServer, Request, Step, script, with_length};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

on_each_engine!(
    a_file_is_sent_whole_and_again_for_every_call,
    an_empty_file_is_an_empty_body,
    a_server_that_responds_early_gets_no_more_of_the_body,
    a_server_that_reads_slowly_gets_all_of_it,
    a_file_that_becomes_shorter_fails_its_calls,
    a_body_is_sent_when_it_is_requested,
    a_body_that_is_not_requested_is_sent_after_a_second,
    a_rejected_body_is_not_sent,
    a_file_may_wait_for_a_request_too,
    streams_share_the_flow_control_window,
    real_servers_take_files_on_streams,
    a_stream_whose_body_is_rejected_ends_alone,
    a_file_that_becomes_shorter_fails_its_streams_too,
    streams_wait_for_a_request_of_their_bodies,
    a_stream_sends_its_body_after_a_second,
);

/// A temporary file, removed when the value is dropped.
struct TempFile(PathBuf);

impl TempFile {
    fn of(bytes: &[u8]) -> TempFile {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("brimful-body-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        TempFile(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i ^ i >> 8 ^ i >> 16) as u8).collect()
}

/// A request class that sends the content of this file as its body. If `expect` is set, its requests contain `Expect:
/// 100-continue`.
fn put(file: &TempFile, expect: bool) -> RequestClass {
    let headers = if expect { [("Expect", "100-continue")].as_slice() } else { &[] };
    RequestClass {
        body_file: file.0.display().to_string(),
        headers: headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        ..WorkloadDoc::single_class("PUT", "/").classes[0].clone()
    }
}

fn upload(case: Case, address: SocketAddr, file: &TempFile, expect: bool) -> Plan {
    let plan = Plan::with_classes(case.engine, address, &[put(file, expect)], Close::Server);
    plan.configure(|config| config.connections.response_timeout = Nanos::from_secs(60))
}

/// Like `upload`, but with HTTP/2.
fn upload_on_streams(case: Case, address: SocketAddr, file: &TempFile, expect: bool) -> Plan {
    let plan = Plan::new(case, address).with_http2(&[put(file, expect)], STREAMS);
    plan.configure(|c| (c.connections.response_timeout, c.window) = (Nanos::from_secs(60), Nanos::from_secs(600)))
}

const STREAMS: usize = 4;

fn posting_expectantly(case: Case, address: SocketAddr, body: &str) -> Plan {
    let class = RequestClass {
        body: body.to_owned(),
        headers: BTreeMap::from([("Expect".to_owned(), "100-continue".to_owned())]),
        ..WorkloadDoc::single_class("POST", "/").classes[0].clone()
    };
    let plan = Plan::with_classes(case.engine, address, &[class], Close::Server);
    plan.configure(|config| config.connections.response_timeout = Nanos::from_secs(60))
}

fn ok(calls: &[ObservedCall]) -> usize {
    count(calls, |end| end == End::Completed { status: 200 })
}

fn unreadable(calls: &[ObservedCall]) -> usize {
    count(calls, |end| end == End::ClientLimited(ExhaustedResource::Body))
}

/// Starts a server that responds 200 if the body of a request is `expected`, and 400 otherwise.
fn wants(expected: Vec<u8>) -> RawServer {
    RawServer::with_handler(move |request| {
        let status = if request.body == expected { 200 } else { 400 };
        format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n").into_bytes()
    })
}

/// Expects that every call sends the whole file. The lengths are less than one read of 64 KiB, exactly one, exactly
/// two, and many reads.
fn a_file_is_sent_whole_and_again_for_every_call(case: Case) {
    for length in [1, 65_536, 131_072, 3_000_000] {
        let expected = content(length);
        let (server, file) = (wants(expected.clone()), TempFile::of(&expected));
        let calls = upload(case, server.addr(), &file, false).calls(8).run_closed(2);
        assert_eq!((ok(&calls), count_connects(&calls)), (8, 2), "{length} bytes");
        for outcome in calls.iter().map(ObservedCall::outcome) {
            assert!((1..1000).contains(&(outcome.bytes_sent - length as u64)), "head and whole body: {outcome:?}");
        }
        let renewed = upload(case, server.addr(), &file, false).calls(4);
        let renewed = renewed.configure(|c| c.connections.calls_per_connection = Some(1)).run_closed(2);
        assert_eq!((ok(&renewed), count_connects(&renewed)), (4, 4), "{length} bytes");
    }
}

fn an_empty_file_is_an_empty_body(case: Case) {
    let (server, file) = (wants(Vec::new()), TempFile::of(b""));
    assert_eq!(ok(&upload(case, server.addr(), &file, false).calls(3).run_closed(1)), 3);
}

fn a_server_that_responds_early_gets_no_more_of_the_body(case: Case) {
    const LENGTH: usize = 32 << 20;
    let answer = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n".to_vec();
    let file = TempFile::of(&vec![b'x'; LENGTH]);
    let server = RawServer::start(script([Step::Read(1000), Step::Send(answer), Step::Finish]));
    let calls = upload(case, server.addr(), &file, false).calls(2).run_closed(1);
    for call in &calls {
        assert_eq!(call.end(), End::Completed { status: 413 });
        assert!(call.outcome().bytes_sent < LENGTH as u64, "{call:?}");
    }
    assert_eq!(count_connects(&calls), 2);
    // The server resets the connection while the body is sent. Expects that the call ends as reset.
    let server = RawServer::start(script([Step::Read(100_000), Step::Reset]));
    let calls = upload(case, server.addr(), &file, false).calls(2).run_closed(1);
    assert_eq!(count(&calls, |end| end == End::Reset { sent: true }), 2, "{calls:?}");
}

fn a_server_that_reads_slowly_gets_all_of_it(case: Case) {
    let expected = content(400_000);
    let file = TempFile::of(&expected);
    let server = RawServer::start(move |conn, _| {
        // Waits until 8,000 bytes have arrived, which is more than the head. The client has then filled the sockets'
        // small buffers, and must wait before it sends the rest of the body.
        let mut waiting = vec![0; 8_000];
        while conn.peek(&mut waiting).is_ok_and(|n| (1..waiting.len()).contains(&n)) {
            std::thread::yield_now();
        }
        let body = Request::read(&mut BufReader::with_capacity(100, &conn)).map(|request| request.body);
        let status = if body.as_ref() == Some(&expected) { 200 } else { 400 };
        let _ = write!(&conn, "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    });
    let plan = upload(case, server.addr(), &file, false).calls(2);
    let plan = plan.configure(|c| (c.connections.send_buffer, c.connections.receive_buffer) = (Some(1), Some(1)));
    assert_eq!(ok(&plan.run_closed(2)), 2);
}

fn a_file_that_becomes_shorter_fails_its_calls(case: Case) {
    let file = TempFile::of(&content(300_000));
    let server = RawServer::content_length("x");
    let plan = upload(case, server.addr(), &file, false).calls(3);
    std::fs::write(&file.0, b"short").unwrap();
    assert_eq!(unreadable(&plan.run_closed(1)), 3);
    // Expects that a run does not start if the file does not exist.
    let gone =
        RequestClass { body_file: "/nowhere".to_owned(), ..WorkloadDoc::single_class("PUT", "/").classes[0].clone() };
    let (authority, version, headers, close) = ("a".to_owned(), Version::Http11, Vec::new(), Close::Server);
    let wire = RequestSettings { authority, is_secure: false, version, headers, close };
    let mut workload = WorkloadDoc::single_class("PUT", "/");
    workload.classes = vec![gone];
    assert!(matches!(FixedRequests::render(&workload, &wire), Err(EngineError::BodyFile { .. })));
}

/// Starts a server that reads a head, sends `first`, reads `body` bytes, and responds.
fn asks(first: &'static str, body: usize) -> RawServer {
    RawServer::start(move |conn, _| {
        let mut reader = BufReader::new(&conn);
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if std::io::Read::read_exact(&mut reader, &mut byte).is_err() {
                    return;
                }
                head.push(byte[0]);
            }
            if (&conn).write_all(first.as_bytes()).is_err()
                || std::io::Read::read_exact(&mut reader, &mut vec![0; body]).is_err()
                || (&conn).write_all(&with_length(b"x")).is_err()
            {
                return;
            }
        }
    })
}

fn a_body_is_sent_when_it_is_requested(case: Case) {
    for first in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 X\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"] {
        let server = asks(first, 5);
        let calls = posting_expectantly(case, server.addr(), "hello").calls(4).run_closed(1);
        assert_eq!((ok(&calls), count_connects(&calls)), (4, 1));
        for outcome in calls.iter().map(ObservedCall::outcome) {
            assert!(outcome.bytes_sent > 5, "{outcome:?}");
        }
    }
}

fn a_body_that_is_not_requested_is_sent_after_a_second(case: Case) {
    let server = asks("", 5);
    let calls = posting_expectantly(case, server.addr(), "hello").calls(1).run_closed(1);
    assert_eq!(ok(&calls), 1);
    assert!(calls[0].service_time() >= Nanos::from_secs(1), "{calls:?}");
}

fn a_rejected_body_is_not_sent(case: Case) {
    let refusal = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n";
    let server = asks(refusal, 5_000);
    let calls = posting_expectantly(case, server.addr(), &"x".repeat(5_000)).calls(3).run_closed(1);
    assert_eq!(count(&calls, |end| end == End::Completed { status: 417 }), 3);
    assert_eq!(count_connects(&calls), 3, "after a rejected body, each call opens a new connection");
    assert!(calls.iter().all(|call| call.outcome().bytes_sent < 1_000), "{calls:?}");
}

fn a_file_may_wait_for_a_request_too(case: Case) {
    const LENGTH: usize = 200_000;
    let file = TempFile::of(&content(LENGTH));
    let server = asks("HTTP/1.1 100 Continue\r\n\r\n", LENGTH);
    let calls = upload(case, server.addr(), &file, true).calls(3).run_closed(1);
    assert_eq!((ok(&calls), count_connects(&calls), count(&calls, completed)), (3, 1, 3));
}

/// Reads the bodies of all streams, and sends WINDOW_UPDATE for all received data. Responds 200 to each body that
/// equals `expected`, and closes the connection after any other body.
fn take_bodies(peer: &mut Http2Peer<'_>, expected: &[u8]) {
    let mut bodies: HashMap<u32, Vec<u8>> = HashMap::new();
    while let Some((kind, flags, stream, payload)) = peer.frame() {
        if kind != kind::DATA {
            continue;
        }
        let body = bodies.entry(stream).or_default();
        body.extend_from_slice(&payload);
        let more = (payload.len() as u32).to_be_bytes();
        let windows = [0, stream].map(|window| frame(kind::WINDOW_UPDATE, 0, window, &more)).concat();
        let is_whole = flags & END_STREAM > 0;
        if is_whole && bodies.remove(&stream).is_some_and(|body| body != expected) {
            return;
        }
        if !peer.send(&if is_whole { [&windows[..13], &answer(stream, b"x")].concat() } else { windows }) {
            return;
        }
    }
}

fn streams_share_the_flow_control_window(case: Case) {
    for (length, window) in [(1, 65_535), (65_536, 65_535), (300_000, 1_000), (300_000, 1 << 30)] {
        let expected = content(length);
        let file = TempFile::of(&expected);
        let server = http2_server(settings(&[(4, window)]), move |peer, _| take_bodies(peer, &expected));
        let calls = upload_on_streams(case, server.addr(), &file, false).calls(8).run_closed(STREAMS as u64);
        assert_eq!((ok(&calls), count_connects(&calls)), (8, 1), "{length} bytes, {window} at once");
        for outcome in calls.iter().map(ObservedCall::outcome) {
            assert!(outcome.bytes_sent > length as u64, "bytes_sent includes frame headers: {outcome:?}");
        }
    }
}

fn real_servers_take_files_on_streams(case: Case) {
    let file = TempFile::of(&content(2_000_000));
    let nginx = Nginx::start(NginxOptions {
        listen: "http2".to_owned(),
        http: "log_format plain '$status $content_length $request_length';".to_owned(),
        // The upstream server of this nginx proxy does not exist. nginx reads the whole body before it tries to connect
        // to it.
        extra: "access_log access.log plain; client_max_body_size 4m; location / { proxy_pass http://127.0.0.1:1/; \
                error_page 502 =200 /index.html; } location = /index.html { }"
            .to_owned(),
        ..NginxOptions::default()
    });
    let calls = upload_on_streams(case, nginx.addr(), &file, false).calls(20).run_closed(STREAMS as u64);
    assert_eq!((ok(&calls), count_connects(&calls)), (20, 1));
    let log = || std::fs::read_to_string(nginx.directory().join("access.log")).unwrap_or_default();
    wait_until(|| log().lines().count() == 20);
    for line in log().lines() {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        assert!(numbers[..2] == [200, 2_000_000] && numbers[2] > 2_000_000, "{line}");
    }
    // Caddy responds without reading the bodies.
    let caddy = Caddy::start();
    let calls = upload_on_streams(case, caddy.addr(), &file, false).calls(20).run_closed(STREAMS as u64);
    assert_eq!(ok(&calls), 20, "{:?}", calls[0].end());
}

fn a_stream_whose_body_is_rejected_ends_alone(case: Case) {
    const LENGTH: usize = 32 << 20;
    let file = TempFile::of(&vec![b'x'; LENGTH]);
    let server = http2_server(settings(&[(4, 1 << 30)]), |peer, _| {
        while let Some(stream) = peer.request()
            && peer.send(&answer(stream, b"no"))
        {}
    });
    let calls = upload_on_streams(case, server.addr(), &file, false).calls(8).run_closed(2);
    assert_eq!((ok(&calls), count_connects(&calls)), (8, 1));
    assert!(calls.iter().all(|call| call.outcome().bytes_sent < LENGTH as u64), "{calls:?}");
}

fn a_file_that_becomes_shorter_fails_its_streams_too(case: Case) {
    let file = TempFile::of(&content(300_000));
    let server = http2_server(settings(&[]), |peer, _| take_bodies(peer, b""));
    let plan = upload_on_streams(case, server.addr(), &file, false).calls(3);
    std::fs::write(&file.0, b"short").unwrap();
    assert_eq!(unreadable(&plan.run_closed(1)), 3);
}

/// A HEADERS frame with this status, after which the stream stays open.
fn head(status: &str) -> Vec<u8> {
    [&[0x08, 3][..], status.as_bytes()].concat()
}

fn streams_wait_for_a_request_of_their_bodies(case: Case) {
    let expected = content(100_000);
    let file = TempFile::of(&expected);
    let server = http2_server(settings(&[(4, 1 << 20)]), move |peer, _| {
        peer.send(&frame(kind::WINDOW_UPDATE, 0, 0, &(1u32 << 20).to_be_bytes()));
        while let Some((first, flags, stream, _)) = peer.frame() {
            if first != kind::HEADERS {
                continue;
            }
            // Expects the reply to the PING before any part of the body, because the server has not requested the body
            // yet.
            peer.send(&frame(kind::PING, 0, 0, &[7; 8]));
            while !matches!(peer.frame(), Some((kind::PING, ACK, ..)) | None) {}
            assert_eq!(flags, END_HEADERS);
            peer.send(&frame(kind::HEADERS, END_HEADERS, stream, &head("100")));
            let mut body = Vec::new();
            while let Some((kind, flags, of, payload)) = peer.frame() {
                assert!(kind != kind::DATA || of == stream);
                body.extend(if kind == kind::DATA { payload } else { Vec::new() });
                if kind == kind::DATA && flags & END_STREAM > 0 {
                    break;
                }
            }
            if body != expected || !peer.send(&answer(stream, b"x")) {
                return;
            }
            let more = (body.len() as u32).to_be_bytes();
            peer.send(&frame(kind::WINDOW_UPDATE, 0, 0, &more));
        }
    });
    let calls = upload_on_streams(case, server.addr(), &file, true).calls(5).run_closed(1);
    assert_eq!((ok(&calls), count_connects(&calls)), (5, 1));
    // The server rejects the request after its head. Expects that no body is sent.
    let server = http2_server(settings(&[]), |peer, _| {
        while let Some((kind, _, stream, _)) = peer.frame() {
            assert_ne!(kind, kind::DATA);
            if kind == kind::HEADERS {
                peer.send(&frame(kind::HEADERS, END_HEADERS | END_STREAM, stream, &head("417")));
            }
        }
    });
    let calls = upload_on_streams(case, server.addr(), &file, true).calls(10).run_closed(2);
    assert_eq!(count(&calls, |end| end == End::Completed { status: 417 }), 10);
    assert!(count_connects(&calls) == 1 && calls.iter().all(|call| call.outcome().bytes_sent < 1_000), "{calls:?}");
}

fn a_stream_sends_its_body_after_a_second(case: Case) {
    let expected = content(10_000);
    let file = TempFile::of(&expected);
    let server = http2_server(settings(&[]), move |peer, _| take_bodies(peer, &expected));
    let calls = upload_on_streams(case, server.addr(), &file, true).calls(3).run_closed(3);
    assert_eq!(ok(&calls), 3);
    assert!(calls.iter().all(|call| call.service_time() >= Nanos::from_secs(1)), "{calls:?}");
}
