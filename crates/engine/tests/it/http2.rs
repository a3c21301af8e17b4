//! Tests calls on HTTP/2 streams, with real servers and with scripted ones.

use crate::call_recorder::{ObservedCall, completed, count, count_connects, reset};
use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan, wait_until};
use brimful_core::workload::{RequestClass, Workload as WorkloadDoc};
use brimful_core::{End, Nanos, RetryReason};
use brimful_testkit::http2::{
    ACK, END_HEADERS, END_STREAM, Http2Peer, answer, frame, goaway, http2_server, kind, settings,
};
use brimful_testkit::{
    Apache, ApacheOptions, Caddy, Nghttpd, Nginx, NginxOptions, RawServer, Step, script, with_length,
};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

on_each_engine!(
    nginx_answers_every_call,
    apache_answers_every_call,
    nghttpd_answers_every_call,
    caddy_answers_every_call,
    bodies_arrive_whole_at_real_servers,
    streams_share_connections,
    no_more_streams_are_opened_than_the_server_allows,
    a_connection_ends_after_its_last_call_with_a_goodbye,
    answers_belong_to_their_streams,
    an_overdue_call_gives_up_its_stream_alone,
    a_silent_connection_gets_no_further_call,
    a_call_that_a_server_going_away_leaves_out_is_sent_again,
    a_server_of_one_stream_answers_every_call,
    a_lowered_limit_of_streams_fails_no_call,
    a_refused_stream_is_sent_again_a_bounded_number_of_times,
    streams_that_are_reset_end_alone,
    a_body_waits_for_its_window_until_the_timeout,
    an_endless_response_times_out,
    a_storm_of_resets_ends_its_connection,
    bytes_that_are_not_http2_are_malformed,
    waiting_for_a_stream_counts_as_response_time,
    a_stopped_run_ends_the_calls_under_way,
);

const STREAMS: usize = 8;

fn get() -> Vec<RequestClass> {
    WorkloadDoc::single_class("GET", "/").classes
}

fn post(body: &str) -> Vec<RequestClass> {
    vec![RequestClass { body: body.to_owned(), ..WorkloadDoc::single_class("POST", "/").classes.remove(0) }]
}

fn plan(case: Case, addr: SocketAddr) -> Plan {
    Plan::new(case, addr).with_http2(&get(), STREAMS).configure(|c| c.window = Nanos::from_secs(600))
}

/// Waits until the server's access log has this number of lines. Returns the fields of each line.
fn log(directory: &Path, lines: usize) -> Vec<Vec<String>> {
    let read = || std::fs::read_to_string(directory.join("access.log")).unwrap_or_default();
    wait_until(|| read().lines().count() >= lines);
    read().lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

const CALLS: u64 = 10_000;

/// Makes 10,000 calls on four connections, and checks that each gets a response with status 200.
fn all_are_answered(case: Case, addr: SocketAddr) -> Vec<ObservedCall> {
    let timeout = |plan: Plan| plan.configure(|c| c.connections.response_timeout = Nanos::from_secs(60));
    let calls = timeout(plan(case, addr)).calls(CALLS).run_closed(4 * STREAMS as u64);
    let answered = |end| end == End::Completed { status: 200 };
    let others: Vec<End> = calls.iter().map(ObservedCall::end).filter(|end| !answered(*end)).take(5).collect();
    assert_eq!((calls.len(), count(&calls, answered)), (CALLS as usize, CALLS as usize), "{others:?}");
    calls
}

fn received(calls: &[ObservedCall]) -> u64 {
    calls.iter().map(|call| call.outcome().bytes_received).sum()
}

fn sent(calls: &[ObservedCall]) -> u64 {
    calls.iter().map(|call| call.outcome().bytes_sent).sum()
}

fn nginx_answers_every_call(case: Case) {
    let nginx = Nginx::start(NginxOptions {
        listen: "http2".to_owned(),
        http: "log_format plain '$status $connection $bytes_sent $request_length $body_bytes_sent $server_protocol';"
            .to_owned(),
        extra: "access_log access.log plain;".to_owned(),
        ..NginxOptions::default()
    });
    let calls = all_are_answered(case, nginx.addr());
    let log = log(nginx.directory(), CALLS as usize);
    let sum = |nth: usize| log.iter().map(|fields| fields[nth].parse::<u64>().unwrap()).sum::<u64>();
    assert!(log.len() == CALLS as usize && log.iter().all(|fields| fields[0] == "200" && fields[5] == "HTTP/2.0"));
    let connections: std::collections::BTreeSet<&String> = log.iter().map(|fields| &fields[1]).collect();
    assert_eq!((connections.len(), count_connects(&calls)), (4, 4));
    assert_eq!((sum(4), received(&calls)), (6 * CALLS, sum(2)), "nginx logs as many bytes as the client counted");
}

fn apache_answers_every_call(case: Case) {
    let modules = "/usr/lib/apache2/modules";
    let extra = format!(
        "LoadModule http2_module {modules}/mod_http2.so\nProtocols h2c\nH2Direct on\nLoadModule log_config_module \
         {modules}/mod_log_config.so\nLogFormat \"%>s %B %H\" plain\nCustomLog access.log plain"
    );
    // Without a file of its own, mod_log_config is compiled into the server.
    let extra = if Path::new(&format!("{modules}/mod_log_config.so")).exists() {
        extra
    } else {
        extra.replace(&format!("LoadModule log_config_module {modules}/mod_log_config.so\n"), "")
    };
    let apache = Apache::start(ApacheOptions { extra, ..ApacheOptions::default() });
    all_are_answered(case, apache.addr());
    let log = log(apache.directory(), CALLS as usize);
    assert!(
        log.len() == CALLS as usize && log.iter().all(|fields| *fields == ["200", "6", "HTTP/2.0"]),
        "{:?}",
        log[0]
    );
}

fn nghttpd_answers_every_call(case: Case) {
    let nghttpd = Nghttpd::start("");
    all_are_answered(case, nghttpd.addr());
}

fn caddy_answers_every_call(case: Case) {
    let caddy = Caddy::start();
    all_are_answered(case, caddy.addr());
    let lines = std::fs::read_to_string(caddy.directory().join("access.log")).unwrap();
    assert_eq!(lines.matches("\"proto\":\"HTTP/2.0\"").count() as u64, CALLS);
    assert_eq!(lines.matches("\"size\":6,\"status\":200").count() as u64, CALLS);
}

/// Each body is 256 KiB long, so it waits for the server's flow-control windows several times. Expects that the server
/// receives every body whole.
fn bodies_arrive_whole_at_real_servers(case: Case) {
    let body = "0123456789abcdef".repeat(16 * 1024);
    let nginx = Nginx::start(NginxOptions {
        listen: "http2".to_owned(),
        http: "log_format plain '$status $request_length $content_length';".to_owned(),
        extra: "access_log access.log plain; client_max_body_size 1m; client_body_buffer_size 1m; location / { \
                proxy_pass http://127.0.0.1:1/; error_page 502 =200 /index.html; } location = /index.html { }"
            .to_owned(),
        ..NginxOptions::default()
    });
    let plan = Plan::new(case, nginx.addr()).with_http2(&post(&body), STREAMS).calls(200);
    let calls =
        plan.configure(|c| c.connections.response_timeout = Nanos::from_secs(60)).run_closed(2 * STREAMS as u64);
    assert_eq!((count(&calls, completed), count_connects(&calls)), (200, 2), "{:?}", calls[0].end());
    let log = log(nginx.directory(), 200);
    assert!(log.iter().all(|fields| fields[2] == body.len().to_string()), "{:?}", log[0]);
    assert!(sent(&calls) > 200 * body.len() as u64, "bytes_sent includes frames and heads");
}

/// Starts a server that responds to every request.
fn answering() -> RawServer {
    http2_server(settings(&[]), |peer, _| answer_all(peer))
}

fn answer_all(peer: &mut Http2Peer<'_>) {
    while let Some(stream) = peer.request()
        && peer.send(&answer(stream, b"hello"))
    {}
}

fn streams_share_connections(case: Case) {
    let server = answering();
    let calls = plan(case, server.addr()).calls(1_000).run_closed(3 * STREAMS as u64);
    assert_eq!((count(&calls, completed), count_connects(&calls), server.connections()), (1_000, 3, 3));
    for call in &calls {
        let outcome = call.outcome();
        assert_eq!(outcome.bytes_received, 9 + 1 + 9 + 5);
        assert!(outcome.bytes_sent > 9 + 20 && call.first_byte.is_some());
    }
}

fn no_more_streams_are_opened_than_the_server_allows(case: Case) {
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let server = http2_server(settings(&[(3, 2)]), move |peer, _| {
        // Responds first to the calls that were sent before the client knew the limit.
        let mut open = Vec::new();
        while let Some((kind, flags, stream, _)) = peer.frame() {
            match kind {
                kind::HEADERS => open.push(stream),
                kind::SETTINGS if flags == ACK => {
                    let begun: Vec<u8> = open.drain(..).flat_map(|stream| answer(stream, b"")).collect();
                    if !peer.send(&begun) {
                        return;
                    }
                    break;
                }
                _ => {}
            }
        }
        while let Some(stream) = peer.request() {
            open.push(stream);
            seen.fetch_max(open.len(), Ordering::SeqCst);
            let enough = open.len() == 2;
            if enough && !open.drain(..).all(|stream| peer.send(&answer(stream, b""))) {
                return;
            }
        }
    });
    let plan = plan(case, server.addr()).calls(401);
    let calls = plan.configure(|c| c.connections.warm_connections = 2).run_closed(4);
    // The server responds to calls in pairs, so the last call of a connection may get no response.
    let done = count(&calls, completed);
    assert!(done >= 396, "{done}");
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

fn a_connection_ends_after_its_last_call_with_a_goodbye(case: Case) {
    let goodbyes = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&goodbyes);
    let server = http2_server(settings(&[]), move |peer, _| {
        while let Some((kind, _, stream, payload)) = peer.frame() {
            match kind {
                kind::HEADERS if !peer.send(&answer(stream, b"x")) => return,
                kind::GOAWAY => {
                    assert_eq!(payload, [0; 8]);
                    seen.fetch_add(1, Ordering::SeqCst);
                }
                _ => {}
            }
        }
    });
    let plan = plan(case, server.addr()).calls(100).configure(|c| c.connections.calls_per_connection = Some(10));
    let calls = plan.run_closed(STREAMS as u64);
    assert_eq!((count(&calls, completed), server.connections()), (100, count_connects(&calls)));
    assert!(count_connects(&calls) >= 10);
    wait_until(|| goodbyes.load(Ordering::SeqCst) == count_connects(&calls));
}

/// Sends four responses in reverse order; the length of each is its stream's number. Expects that each call gets the
/// response of its own stream.
fn answers_belong_to_their_streams(case: Case) {
    let server = http2_server(settings(&[]), |peer, _| {
        loop {
            let mut streams = peer.requests(4);
            streams.reverse();
            let heads = streams.iter().flat_map(|stream| frame(kind::HEADERS, END_HEADERS, *stream, &[0x88]));
            let mut bytes: Vec<u8> = heads.collect();
            for stream in &streams {
                bytes.extend(frame(kind::DATA, END_STREAM, *stream, &vec![0; *stream as usize]));
            }
            if streams.is_empty() || !peer.send(&bytes) {
                return;
            }
        }
    });
    let calls = plan(case, server.addr()).calls(40).configure(|c| c.connections.pipeline = 4).run_closed(4);
    assert_eq!((count(&calls, completed), count_connects(&calls)), (40, 1));
    let mut bodies: Vec<u64> = calls.iter().map(|call| call.outcome().bytes_received - 9 - 1 - 9).collect();
    bodies.sort_unstable();
    assert!(
        bodies.windows(2).all(|pair| pair[0] < pair[1]) && bodies.iter().all(|length| length % 2 == 1),
        "{bodies:?}"
    );
}

const SHORT: Nanos = Nanos::from_millis(60);

/// Expects that only the call that times out fails, and that all others complete. On a busy host, other responses may
/// be late too. In that case, the test is repeated with a longer timeout.
fn an_overdue_call_gives_up_its_stream_alone(case: Case) {
    let mut timeout = SHORT;
    while !one_overdue_call_gives_up_its_stream_alone(case, timeout) {
        timeout = Nanos(4 * timeout.0);
        assert!(timeout < Nanos::from_secs(60), "the machine was too busy at every timeout");
    }
}

/// Returns `false` if the host was too busy for a verdict: another response was late, or the requests, one every 5 ms,
/// reached the server with a long gap.
fn one_overdue_call_gives_up_its_stream_alone(case: Case, timeout: Nanos) -> bool {
    let given_up = Arc::new(Mutex::new(Vec::new()));
    let longest_gap = Arc::new(Mutex::new(Duration::ZERO));
    let (seen, gap) = (Arc::clone(&given_up), Arc::clone(&longest_gap));
    let server = http2_server(settings(&[]), move |peer, _| {
        let mut previous = Instant::now();
        while let Some((kind, _, stream, payload)) = peer.frame() {
            let elapsed = previous.elapsed();
            previous += elapsed;
            let mut longest = gap.lock().unwrap();
            *longest = elapsed.max(*longest);
            drop(longest);
            match kind {
                // The server responds to the first call only after the client has reset its stream.
                kind::HEADERS if stream > 1 && !peer.send(&answer(stream, b"x")) => return,
                kind::RST_STREAM => {
                    seen.lock().unwrap().push((stream, payload));
                    if !peer.send(&answer(1, b"too late")) {
                        return;
                    }
                }
                _ => {}
            }
        }
    });
    let plan = plan(case, server.addr()).configure(|c| c.connections.response_timeout = timeout);
    let plan = plan.calls(u64::MAX);
    let calls = plan.run_open_until(200.0, |control| {
        control.ended.load(Ordering::Relaxed) > 20 && !given_up.lock().unwrap().is_empty()
    });
    let calls = calls.observer.calls;
    let answers = calls.iter().filter(|call| completed(call.end()));
    let slow = answers.map(ObservedCall::service_time).any(|time| time > Nanos(timeout.0 / 4));
    if slow || *longest_gap.lock().unwrap() > Duration::from_nanos(timeout.0 / 2) {
        return false;
    }
    let timed_out = count(&calls, |end| end == End::TimedOut);
    assert_eq!((timed_out, count_connects(&calls)), (1, 1), "{calls:?}");
    let unfinished = count(&calls, |end| matches!(end, End::Unfinished { .. }));
    assert_eq!(count(&calls, completed), calls.len() - 1 - unfinished);
    assert_eq!(*given_up.lock().unwrap(), [(1, vec![0, 0, 0, 8])], "CANCEL");
    true
}

fn a_silent_connection_gets_no_further_call(case: Case) {
    let server = http2_server(settings(&[]), |peer, number| match number {
        0 => peer.drain(),
        _ => answer_all(peer),
    });
    let plan = plan(case, server.addr()).calls(100).configure(|c| c.connections.response_timeout = SHORT);
    let calls = plan.run_closed(2);
    let timed_out = count(&calls, |end| end == End::TimedOut);
    assert!(timed_out <= 2 * STREAMS && timed_out > 0, "{timed_out}");
    assert_eq!(count(&calls, completed), 100 - timed_out);
    assert_eq!(server.connections(), 2);
}

/// nghttpd allows one stream, and refuses further streams. Expects that every call completes without a retry.
fn a_server_of_one_stream_answers_every_call(case: Case) {
    let nghttpd = Nghttpd::start("--max-concurrent-streams=1");
    let calls = plan(case, nghttpd.addr()).calls(400).run_closed(STREAMS as u64);
    let retries: u32 = calls.iter().map(|call| call.retries).sum();
    assert_eq!((count(&calls, completed), retries), (400, 0));
    assert!(count_connects(&calls) <= STREAMS + 1, "{} connections", count_connects(&calls));
}

/// The server lowers its limit on streams and refuses the streams beyond it. Expects that the refused calls are sent
/// again and complete.
fn a_lowered_limit_of_streams_fails_no_call(case: Case) {
    let server = http2_server(settings(&[(3, 4)]), |peer, number| {
        if number == 0 {
            let streams = peer.requests(4);
            let refused = streams.iter().skip(1).flat_map(|id| frame(kind::RST_STREAM, 0, *id, &[0, 0, 0, 7]));
            let answered = streams.first().map(|id| answer(*id, b"hello")).unwrap_or_default();
            peer.send(&[settings(&[(3, 1)]), refused.collect(), answered].concat());
        }
        answer_all(peer);
    });
    let calls = plan(case, server.addr()).calls(40).run_closed(4);
    let refused: Vec<u32> = calls.iter().map(|call| call.retries).filter(|retries| *retries > 0).collect();
    assert_eq!((count(&calls, completed), refused), (40, vec![1; 3]));
    assert!(calls.iter().all(|call| call.retried.is_none_or(|why| why == RetryReason::RefusedStream)));
}

fn a_refused_stream_is_sent_again_a_bounded_number_of_times(case: Case) {
    let server = http2_server(settings(&[]), |peer, _| {
        while let Some(stream) = peer.request()
            && peer.send(&frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 7]))
        {}
    });
    let calls = plan(case, server.addr()).calls(20).run_closed(2);
    assert!(calls.iter().all(|call| call.end() == End::StreamReset && call.retries == 3), "{calls:?}");
    let plain = plan(case, server.addr()).calls(20).configure(|c| c.connections.retry_refused = false);
    assert!(plain.run_closed(2).iter().all(|call| call.end() == End::StreamReset && call.retries == 0));
}

/// The server sends GOAWAY with the second of four streams as the last stream, so it has not processed the later ones
/// (RFC 9113 §8.7). Expects that the calls of the later streams are sent again and complete.
fn a_call_that_a_server_going_away_leaves_out_is_sent_again(case: Case) {
    let server = http2_server(settings(&[]), |peer, number| {
        if number > 0 {
            return answer_all(peer);
        }
        let streams = peer.requests(4);
        if streams.len() == 4 {
            let bytes = [goaway(streams[1]), answer(streams[1], b"x"), answer(streams[0], b"y")].concat();
            peer.send(&bytes);
        }
        peer.drain();
    });
    let plan = plan(case, server.addr()).calls(40).configure(|c| c.connections.pipeline = 4);
    let calls = plan.configure(|c| c.connections.response_timeout = Nanos::from_secs(60)).run_closed(4);
    let retried = calls.iter().filter(|call| call.retried == Some(RetryReason::RefusedStream)).count();
    assert_eq!((count(&calls, completed), retried, server.connections()), (40, 2, 2));
}

fn streams_that_are_reset_end_alone(case: Case) {
    let server = http2_server(settings(&[]), |peer, _| {
        while let Some(stream) = peer.request() {
            let reset = frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 2]);
            // The server resets half of the calls at once, and the other half after part of the response.
            let begun =
                [frame(kind::HEADERS, END_HEADERS, stream, &[0x88]), frame(kind::DATA, 0, stream, b"x"), reset.clone()];
            if !peer.send(&if stream % 4 == 1 { begun.concat() } else { reset }) {
                return;
            }
        }
    });
    let calls = plan(case, server.addr()).calls(2_000).run_closed(2 * STREAMS as u64);
    assert_eq!((count(&calls, |end| end == End::StreamReset), count_connects(&calls)), (2_000, 2));
}

fn a_body_waits_for_its_window_until_the_timeout(case: Case) {
    let server = http2_server(settings(&[(4, 0)]), |peer, _| peer.drain());
    let plan = Plan::new(case, server.addr()).with_http2(&post(&"x".repeat(100_000)), STREAMS).calls(10);
    let calls = plan.configure(|c| c.connections.response_timeout = SHORT).run_closed(2);
    assert_eq!(count(&calls, |end| end == End::TimedOut), 10);
}

/// Expects that a call times out if its response never ends, however fast the data arrives. The server ignores the
/// flow-control windows. If too much data arrives after the client has reset the stream, the connection and the next
/// call may end as malformed.
fn an_endless_response_times_out(case: Case) {
    let server = http2_server(settings(&[]), |peer, _| {
        let Some(stream) = peer.request() else { return };
        peer.send(&frame(kind::HEADERS, END_HEADERS, stream, &[0x88]));
        let piece = frame(kind::DATA, 0, stream, &[b'x'; 16_384]);
        while peer.send(&piece) {}
    });
    let plan = plan(case, server.addr()).calls(2).configure(|c| c.connections.pipeline = 1);
    let calls = plan.configure(|c| c.connections.response_timeout = SHORT).run_closed(1);
    assert_eq!(calls[0].outcome().end, End::TimedOut, "{calls:?}");
    assert_eq!(count(&calls, |end| matches!(end, End::TimedOut | End::Malformed)), 2, "{calls:?}");
}

/// The server resets one stream again and again. Expects that the first reset ends the stream's call, and that later
/// ones end the connection, possibly together with the next call.
fn a_storm_of_resets_ends_its_connection(case: Case) {
    let server = http2_server(settings(&[]), |peer, _| {
        let Some(stream) = peer.request() else { return };
        let storm = frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 2]).repeat(1_000);
        while peer.send(&storm) {}
    });
    let plan = plan(case, server.addr()).calls(6).configure(|c| c.connections.pipeline = 1);
    let calls = plan.configure(|c| c.connections.response_timeout = Nanos::from_secs(60)).run_closed(1);
    assert_eq!(count(&calls, |end| matches!(end, End::StreamReset | End::Malformed)), 6, "{calls:?}");
    assert!(count(&calls, |end| end == End::StreamReset) >= 3 && server.connections() >= 3, "{calls:?}");
}

/// Expects that a call never ends with a response if the server sends bytes that are not valid HTTP/2.
fn bytes_that_are_not_http2_are_malformed(case: Case) {
    /// Starts a server that responds to a request by sending `bytes` repeatedly, until the client closes the
    /// connection.
    fn without_end(bytes: Vec<u8>) -> impl Fn(&mut Http2Peer<'_>, usize) + Send + Sync + 'static {
        behind(Vec::new(), bytes)
    }
    fn behind(first: Vec<u8>, bytes: Vec<u8>) -> impl Fn(&mut Http2Peer<'_>, usize) + Send + Sync + 'static {
        move |peer, _| {
            peer.request();
            peer.send(&first);
            while peer.send(&bytes.repeat(100)) {}
        }
    }
    fn once(bytes: Vec<u8>) -> impl Fn(&mut Http2Peer<'_>, usize) + Send + Sync + 'static {
        move |peer, _| {
            peer.request();
            peer.send(&bytes);
            peer.drain();
        }
    }
    let long = [&[0x40, 1, b'n', 0x7f, 0x80 | 33, 30][..], &[b'v'; 4000]].concat();
    let bomb = [long, vec![0xbe; 12_000]].concat();
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    let begun = frame(kind::HEADERS, 0, 1, &[0x88]);
    let servers = [
        ("HTTP/1", RawServer::start(script([Step::Read(24), Step::Send(with_length(b"hello")), Step::Drain]))),
        (
            "TLS alert",
            RawServer::start(script([Step::Read(24), Step::Send(b"\x15\x03\x01\0\x02\x02\x46\0\0".to_vec())])),
        ),
        ("HPACK bomb", http2_server(settings(&[]), once(frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &bomb)))),
        ("broken block", http2_server(settings(&[]), once(frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &[0x3f])))),
        ("push", http2_server(settings(&[]), once(frame(kind::PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82])))),
        ("frame too long", http2_server(settings(&[]), once(frame(kind::DATA, 0, 1, &[0; 20_000])))),
        ("even stream", http2_server(settings(&[]), once(answer(2, b"x")))),
        ("stream that was not opened", http2_server(settings(&[]), once(answer(99, b"x")))),
        (
            "window too far",
            http2_server(settings(&[]), once(frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]))),
        ),
        ("PING flood", http2_server(settings(&[]), without_end(ping))),
        ("SETTINGS flood", http2_server(settings(&[]), without_end(settings(&[(3, 100)])))),
        ("empty DATA", {
            let head = frame(kind::HEADERS, END_HEADERS, 1, &[0x88]);
            http2_server(settings(&[]), behind(head, frame(kind::DATA, 0, 1, b"")))
        }),
        ("PRIORITY flood", http2_server(settings(&[]), without_end(frame(2, 0, 1, &[0; 5])))),
        ("100s without end", {
            http2_server(settings(&[]), without_end(frame(kind::HEADERS, END_HEADERS, 1, &[0x08, 3, b'1', b'0', b'0'])))
        }),
        ("CONTINUATION flood", { http2_server(settings(&[]), behind(begun, frame(kind::CONTINUATION, 0, 1, b""))) }),
    ];
    for (name, server) in &servers {
        let plan = plan(case, server.addr()).calls(3).configure(|c| c.connections.pipeline = 1);
        let calls = plan.configure(|c| c.connections.response_timeout = Nanos::from_secs(60)).run_closed(1);
        let ends: Vec<End> = calls.iter().map(ObservedCall::end).collect();
        assert_eq!((ends, server.connections()), (vec![End::Malformed; 3], 3), "{name}");
    }
    // The response to every second stream is malformed. Expects that only the calls of these streams fail.
    let server = http2_server(settings(&[]), |peer, _| {
        while let Some(stream) = peer.request() {
            let wrong = frame(kind::HEADERS, END_HEADERS | END_STREAM, stream, &[0, 1, b'a', 1, b'b']);
            if !peer.send(&if stream % 4 == 1 { wrong } else { answer(stream, b"x") }) {
                return;
            }
        }
    });
    let calls = plan(case, server.addr()).calls(200).run_closed(STREAMS as u64);
    let malformed = count(&calls, |end| end == End::Malformed);
    assert_eq!((count(&calls, completed), count_connects(&calls)), (200 - malformed, 1));
    assert!(malformed >= 50, "{malformed}");
    // The server closes the connection after the head of a response. Expects that the call ends as reset.
    let server = http2_server(settings(&[]), |peer, _| {
        if let Some(stream) = peer.request() {
            peer.send(&frame(kind::HEADERS, END_HEADERS, stream, &[0x88]));
        }
    });
    let calls = plan(case, server.addr()).calls(5).run_closed(1);
    assert_eq!(count(&calls, reset), 5);
}

/// Sends all calls on one connection, and the server responds only after all have arrived. Expects that the response
/// time of each call includes this wait, even if the call waits for a stream. Calls that are due later wait less.
fn waiting_for_a_stream_counts_as_response_time(case: Case) {
    let server = http2_server(settings(&[]), |peer, _| {
        let streams = peer.requests(STREAMS);
        let answers: Vec<u8> = streams.iter().flat_map(|stream| answer(*stream, b"x")).collect();
        peer.send(&answers);
        peer.drain();
    });
    let calls = plan(case, server.addr()).calls(STREAMS as u64).run_open(1_000.0);
    assert_eq!((count(&calls, completed), count_connects(&calls)), (STREAMS, 1));
    let all_sent = calls.iter().filter_map(|call| call.sent).max().unwrap();
    for (nth, call) in calls.iter().enumerate() {
        assert_eq!(call.due, Nanos::from_millis(nth as u64));
        assert!(call.response_time() >= all_sent - call.due && call.response_time() >= call.service_time());
    }
}

fn a_stopped_run_ends_the_calls_under_way(case: Case) {
    let heard = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&heard);
    let server = http2_server(settings(&[]), move |peer, _| {
        while peer.request().is_some() {
            seen.fetch_add(1, Ordering::SeqCst);
        }
    });
    let control = Control::default();
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until(|| heard.load(Ordering::SeqCst) >= 3);
            control.stop.store(true, Ordering::Relaxed);
        });
        plan(case, server.addr()).run_open_load(100.0, &control)
    });
    assert!(run.interrupted && run.observer.calls.len() >= 3);
    assert!(run.observer.calls.iter().all(|call| matches!(call.end(), End::Unfinished { .. })));
}
