//! Tests the engine with TLS servers: real nginx, and servers that violate the protocol.

use crate::call_recorder::{CallRecorder, ObservedCall, completed, count, count_connects, reset};
use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan, wait_until};
use brimful_core::tls::TlsVersion;
use brimful_core::{End, Nanos, TlsFault};
use brimful_engine::{Close, Handshake, Security, SecurityOptions};
use brimful_testkit::{
    CertificateFlaw, Certificates, Identity, Nginx, NginxOptions, RawServer, Step, TlsBehaviour, TlsEnding, script,
    with_length,
};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

on_each_engine!(
    nginx_responds_by_both_versions_of_tls,
    sessions_are_resumed_if_configured,
    many_calls_at_once_share_a_secured_connection,
    connections_are_secured_before_the_run,
    a_client_sends_its_certificate,
    invalid_certificates_fail_each_call,
    a_server_may_use_an_authority_certificate_if_it_is_named,
    bytes_that_are_not_tls_are_no_response,
    a_version_that_is_too_old_is_rejected,
    another_protocol_is_refused,
    a_truncated_stream_is_no_complete_response,
    bytes_after_close_notify_are_not_waited_for,
    bytes_may_come_one_by_one,
    a_server_that_stops_in_the_handshake_is_not_waited_for,
    a_server_that_closes_in_the_handshake_resets_it,
    unencrypted_bytes_are_no_response,
    a_large_request_is_sent_whole_by_tls,
    renegotiation_is_declined,
    a_server_that_waits_for_close_notify_gets_it_at_once,
    a_server_that_never_closes_does_not_keep_connections_open,
);

/// Certificates that all tests share, because generating them takes longer than most tests. Their files are removed
/// after the last test.
fn certificates() -> Arc<Certificates> {
    static MADE: OnceLock<std::sync::Mutex<std::sync::Weak<Certificates>>> = OnceLock::new();
    let mut made = MADE.get_or_init(Default::default).lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    made.upgrade().unwrap_or_else(|| {
        let fresh = Arc::new(Certificates::new());
        *made = Arc::downgrade(&fresh);
        fresh
    })
}

fn trusting(certificates: &Certificates) -> SecurityOptions {
    SecurityOptions {
        name: "localhost".to_owned(),
        authorities: Some(certificates.authority()),
        ..SecurityOptions::default()
    }
}

/// A plan of 12 calls with TLS.
fn plan(case: Case, address: SocketAddr, options: &SecurityOptions, close: Close) -> Plan {
    let security = Arc::new(Security::new(options).unwrap());
    Plan::with_method(case, address, "GET", close).calls(12).configure(|config| config.tls = Some(security))
}

fn new_connections(plan: Plan) -> Plan {
    plan.configure(|config| config.connections.calls_per_connection = Some(1))
}

fn good(certificates: &Certificates) -> Identity {
    certificates.issue(&format!("DNS:localhost,DNS:{}", unique()), CertificateFlaw::None)
}

/// A host name that no other test uses, so that its certificate differs from all others.
fn unique() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    format!("n{}.example", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

fn nginx(identity: &Identity, extra: &str) -> Nginx {
    let format = "log_format tls '$ssl_protocol $ssl_session_reused $status $body_bytes_sent';";
    Nginx::start(NginxOptions {
        listen: "ssl".to_owned(),
        http: format!("{format} ssl_session_cache shared:tests:1m;"),
        extra: format!("{} access_log access.log tls; {extra}", identity.for_nginx()),
        ..NginxOptions::default()
    })
}

/// Waits until nginx has logged this number of requests, which happens shortly after the response. Returns the lines of
/// the log: TLS version, whether the session was resumed, status and body length.
fn log(nginx: &Nginx, requests: usize) -> Vec<String> {
    let path = nginx.directory().join("access.log");
    let lines =
        || -> Vec<String> { std::fs::read_to_string(&path).unwrap_or_default().lines().map(str::to_owned).collect() };
    wait_until(|| lines().len() >= requests);
    lines()
}

fn secured(calls: &[ObservedCall]) -> usize {
    calls.iter().filter(|call| call.secured.is_some()).count()
}

fn resumed(calls: &[ObservedCall]) -> usize {
    calls.iter().filter(|call| call.secured.is_some_and(|(_, resumed)| resumed)).count()
}

fn failed_by(why: TlsFault) -> impl Fn(End) -> bool {
    move |end| matches!(end, End::TlsFailed { why: found, .. } if found == why)
}

fn nginx_responds_by_both_versions_of_tls(case: Case) {
    let certificates = certificates();
    for version in ["TLSv1.2", "TLSv1.3"] {
        let nginx = nginx(&good(&certificates), &format!("ssl_protocols {version};"));
        let options = trusting(&certificates);
        for close in [Close::Server, Close::Fin, Close::Rst] {
            let kept = plan(case, nginx.addr(), &options, close);
            let calls = kept.run_closed(2);
            assert_eq!(
                (count(&calls, completed), count_connects(&calls), secured(&calls)),
                (12, 2, 2),
                "{version} {close:?}"
            );
            assert!(calls.iter().all(|call| call.outcome().bytes_received == calls[0].outcome().bytes_received));
            let calls = new_connections(kept).run_closed(2);
            assert_eq!(
                (count(&calls, completed), secured(&calls), resumed(&calls)),
                (12, 12, 0),
                "{version} {close:?}"
            );
            assert!(calls.iter().all(|call| call.secured.unwrap().0 > call.established.unwrap()));
        }
        let log = log(&nginx, 72);
        assert_eq!(log.len(), 72);
        assert!(log.iter().all(|line| *line == format!("{version} . 200 6")), "{log:?}");
    }
}

fn sessions_are_resumed_if_configured(case: Case) {
    let certificates = certificates();
    for version in ["TLSv1.2", "TLSv1.3"] {
        for tickets in ["on", "off"] {
            let extra = format!("ssl_protocols {version}; ssl_session_tickets {tickets};");
            let nginx = nginx(&good(&certificates), &extra);
            let options = SecurityOptions { resume: true, ..trusting(&certificates) };
            let calls = new_connections(plan(case, nginx.addr(), &options, Close::Server)).run_closed(1);
            assert_eq!((count(&calls, completed), secured(&calls)), (12, 12));
            assert_eq!(resumed(&calls), 11, "all sessions but the first are resumed: {version}, tickets {tickets}");
            let log = log(&nginx, 12);
            assert_eq!(log.iter().filter(|line| line.contains(" r ")).count(), 11, "{log:?}");
        }
    }
}

fn many_calls_at_once_share_a_secured_connection(case: Case) {
    let certificates = certificates();
    let nginx = nginx(&good(&certificates), "");
    let plan = plan(case, nginx.addr(), &trusting(&certificates), Close::Server).calls(200);
    let calls = plan.configure(|config| config.connections.pipeline = 16).run_closed(16);
    assert_eq!(count(&calls, completed), 200);
    assert!(secured(&calls) < 17 && log(&nginx, 200).len() == 200);
}

fn connections_are_secured_before_the_run(case: Case) {
    let certificates = certificates();
    let nginx = nginx(&good(&certificates), "");
    let plan = plan(case, nginx.addr(), &trusting(&certificates), Close::Server);
    let calls = plan.configure(|config| config.connections.warm_connections = 3).run_closed(3);
    assert_eq!((count(&calls, completed), count_connects(&calls), secured(&calls)), (12, 0, 0));
}

fn a_client_sends_its_certificate(case: Case) {
    let certificates = certificates();
    let client = certificates.issue("DNS:client.example", CertificateFlaw::None);
    let verify = format!("ssl_client_certificate \"{}\"; ssl_verify_client on;", certificates.authority().display());
    let nginx = nginx(&good(&certificates), &verify);
    for (identity, status) in [(None, 400), (Some((client.certificate, client.key)), 200)] {
        let options = SecurityOptions { identity, ..trusting(&certificates) };
        let calls = new_connections(plan(case, nginx.addr(), &options, Close::Server)).run_closed(1);
        assert!(calls.iter().all(|call| call.end() == End::Completed { status }), "{:?}", calls[0]);
    }
}

fn invalid_certificates_fail_each_call(case: Case) {
    let certificates = certificates();
    for (names, flaw, why) in [
        ("DNS:localhost", CertificateFlaw::Expired, TlsFault::CertificateExpired),
        ("DNS:localhost", CertificateFlaw::NotYetValid, TlsFault::CertificateNotYetValid),
        ("DNS:other.example", CertificateFlaw::None, TlsFault::CertificateName),
        ("DNS:localhost", CertificateFlaw::SelfSigned, TlsFault::CertificateIssuer),
        ("DNS:localhost", CertificateFlaw::MissingIntermediate, TlsFault::CertificateIssuer),
    ] {
        let identity = certificates.issue(&format!("{names},DNS:{}", unique()), flaw);
        let server = RawServer::start_tls(&identity, TlsBehaviour::with_response(with_length(b"hello")));
        let options = trusting(&certificates);
        let calls = plan(case, server.addr(), &options, Close::Server).run_closed(2);
        assert_eq!(count(&calls, failed_by(why)), 12, "{flaw:?}: {:?}", calls[0]);
        let found = Security::new(&options).unwrap().try_handshake(&server.addr().into(), Nanos::from_secs(60));
        let Handshake::Failed { why: found, detail } = found else { panic!("{flaw:?}: {found:?}") };
        assert_eq!(found, Some(why));
        let detail = detail.unwrap_or_default();
        let expected = match flaw {
            CertificateFlaw::Expired | CertificateFlaw::NotYetValid => "",
            CertificateFlaw::SelfSigned => "self-signed",
            CertificateFlaw::MissingIntermediate => "the chain is incomplete",
            _ => "it is for other.example, n",
        };
        assert!(detail.contains(expected), "{detail}");
        let options = SecurityOptions { insecure: true, authorities: None, ..options };
        let calls = plan(case, server.addr(), &options, Close::Server).run_closed(2);
        assert_eq!(count(&calls, completed), 12, "--insecure: {flaw:?}");
    }
    let identity = certificates.issue(&format!("DNS:localhost,DNS:{}", unique()), CertificateFlaw::Intermediate);
    let server = RawServer::start_tls(&identity, TlsBehaviour::with_response(with_length(b"hello")));
    let calls = plan(case, server.addr(), &trusting(&certificates), Close::Server).run_closed(2);
    assert_eq!(count(&calls, completed), 12, "the client sends its whole certificate chain");
}

fn a_server_may_use_an_authority_certificate_if_it_is_named(case: Case) {
    let certificates = certificates();
    let identity = certificates.issue(&format!("DNS:localhost,DNS:{}", unique()), CertificateFlaw::SelfSignedAuthority);
    let server = RawServer::start_tls(&identity, TlsBehaviour::with_response(with_length(b"hello")));
    let named = |name: &str| {
        let options = SecurityOptions {
            name: name.to_owned(),
            authorities: Some(identity.certificate.clone()),
            ..SecurityOptions::default()
        };
        new_connections(plan(case, server.addr(), &options, Close::Fin)).run_closed(1)
    };
    assert_eq!(count(&named("localhost"), completed), 12);
    assert_eq!(count(&named("other.example"), failed_by(TlsFault::CertificateName)), 12);
}

fn bytes_that_are_not_tls_are_no_response(case: Case) {
    let certificates = certificates();
    let answers = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec();
    let garbage = b"\x00\x01\xfe\xff this is not TLS either".to_vec();
    for bytes in [answers, garbage] {
        let server = RawServer::start(move |connection, _| {
            use std::io::{Read, Write};
            let mut hello = [0; 64];
            let _ = (&connection).read(&mut hello);
            let _ = (&connection).write_all(&bytes);
            let _ = std::io::copy(&mut &connection, &mut std::io::sink());
        });
        let options = trusting(&certificates);
        let calls = plan(case, server.addr(), &options, Close::Server).run_closed(1);
        assert_eq!(count(&calls, failed_by(TlsFault::NotTls)), 12, "{:?}", calls[0]);
        let found = Security::new(&options).unwrap().try_handshake(&server.addr().into(), Nanos::from_secs(60));
        assert_eq!(found, Handshake::Failed { why: Some(TlsFault::NotTls), detail: None });
    }
}

fn a_version_that_is_too_old_is_rejected(case: Case) {
    let certificates = certificates();
    let nginx = nginx(&good(&certificates), "ssl_protocols TLSv1.2;");
    let options = SecurityOptions { min_version: TlsVersion::V13, ..trusting(&certificates) };
    let calls = plan(case, nginx.addr(), &options, Close::Server).run_closed(1);
    assert_eq!(count(&calls, failed_by(TlsFault::Version)), 12, "{:?}", calls[0]);
}

fn another_protocol_is_refused(case: Case) {
    let certificates = certificates();
    let identity = good(&certificates);
    let behaviour =
        TlsBehaviour { protocols: vec![b"h2".to_vec()], ..TlsBehaviour::with_response(with_length(b"hello")) };
    let only_http2 = RawServer::start_tls(&identity, behaviour.clone());
    let none = RawServer::start_tls(&identity, TlsBehaviour { protocols: Vec::new(), ..behaviour });
    for (server, http2, refused) in [(&only_http2, false, true), (&none, true, true), (&none, false, false)] {
        let options = SecurityOptions { http2, ..trusting(&certificates) };
        let calls = plan(case, server.addr(), &options, Close::Server).run_closed(1);
        let found = count(&calls, failed_by(TlsFault::Protocol));
        let expected = if refused { (12, 0) } else { (0, 12) };
        assert_eq!((found, count(&calls, completed)), expected, "http2 {http2}: {:?}", calls[0]);
    }
}

fn a_truncated_stream_is_no_complete_response(case: Case) {
    let certificates = certificates();
    let identity = good(&certificates);
    let to_the_end = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello".to_vec();
    let measured = with_length(b"hello");
    let truncated = failed_by(TlsFault::Truncated);
    for (response, ending, is_whole) in [
        (&to_the_end, TlsEnding::NotifyAndClose, true),
        (&to_the_end, TlsEnding::NotifyOnly, true),
        (&to_the_end, TlsEnding::Cut, false),
        (&measured, TlsEnding::NotifyAndClose, true),
        (&measured, TlsEnding::NotifyOnly, true),
        (&measured, TlsEnding::Cut, true),
    ] {
        let behaviour = TlsBehaviour { ending: ending.clone(), ..TlsBehaviour::with_response(response.clone()) };
        let server = RawServer::start_tls(&identity, behaviour);
        for close in [Close::Server, Close::Fin] {
            let plan = plan(case, server.addr(), &trusting(&certificates), close).calls(4);
            // Limits the wait for those servers that never close the connection.
            let plan = plan.configure(|config| config.connections.response_timeout = Nanos::from_millis(1500));
            // Each call opens a connection. On a kept connection, the next call might be sent before the client notices
            // the end.
            let calls = new_connections(plan).run_open(1000.0);
            let (whole, cut) = (count(&calls, completed), count(&calls, &truncated));
            assert_eq!((whole, cut), if is_whole { (4, 0) } else { (0, 4) }, "{ending:?} {close:?} {:?}", calls[0]);
            assert!(calls.iter().all(|call| call.outcome().bytes_received == response.len() as u64));
        }
    }
}

/// The server sends bytes after a response or after close_notify, and does not close the connection. Expects that the
/// client closes it at once.
fn bytes_after_close_notify_are_not_waited_for(case: Case) {
    let certificates = certificates();
    let identity = good(&certificates);
    let excess = [&with_length(b"hello")[..], b", and more"].concat();
    let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello, and more".to_vec();
    for (response, ending) in [
        (excess, TlsEnding::KeepAlive),
        (last, TlsEnding::KeepAlive),
        (with_length(b"hello"), TlsEnding::NotifyAndMore),
    ] {
        let behaviour = TlsBehaviour { ending: ending.clone(), ..TlsBehaviour::with_response(response) };
        let server = RawServer::start_tls(&identity, behaviour);
        let plan = plan(case, server.addr(), &trusting(&certificates), Close::Server).calls(u64::MAX);
        let plan = plan.configure(|config| {
            config.window = Nanos::from_secs(3600);
            config.connections.response_timeout = config.window;
        });
        let run = plan.run_open_until(50.0, |_| server.connections() > server.open_connections() + 3);
        assert!(count(&run.observer.calls, completed) >= 3, "{ending:?}: {:?}", run.observer.calls);
    }
}

fn bytes_may_come_one_by_one(case: Case) {
    let certificates = certificates();
    let behaviour = TlsBehaviour { chunk_bytes: 1, ..TlsBehaviour::with_response(with_length(b"hello")) };
    let server = RawServer::start_tls(&good(&certificates), behaviour);
    let plan = plan(case, server.addr(), &trusting(&certificates), Close::Server).calls(3);
    let calls = plan.configure(|config| config.connections.response_timeout = config.window).run_closed(1);
    assert_eq!((count(&calls, completed), secured(&calls)), (3, 1));
}

fn a_server_that_stops_in_the_handshake_is_not_waited_for(case: Case) {
    let certificates = certificates();
    let identity = good(&certificates);
    for stops_after in [0, 1, 5, 90, 130, 200, 600] {
        let behaviour =
            TlsBehaviour { stops_after: Some(stops_after), ..TlsBehaviour::with_response(with_length(b"hello")) };
        let server = RawServer::start_tls(&identity, behaviour);
        let plan = plan(case, server.addr(), &trusting(&certificates), Close::Server).calls(2);
        let calls = plan.configure(|config| config.connections.response_timeout = Nanos::from_millis(50)).run_closed(2);
        assert_eq!(count(&calls, failed_by(TlsFault::TimedOut)), 2, "after {stops_after} bytes: {:?}", calls[0]);
        assert!(calls.iter().all(|call| call.sent.is_none() && call.established.is_some()));
    }
}

fn a_server_that_closes_in_the_handshake_resets_it(case: Case) {
    let certificates = certificates();
    let server = RawServer::start(|connection, _| {
        use std::io::Read;
        let _ = (&connection).read(&mut [0; 64]);
    });
    let options = trusting(&certificates);
    let calls = plan(case, server.addr(), &options, Close::Server).run_closed(1);
    assert_eq!(count(&calls, reset), 12, "{:?}", calls[0]);
    let found = Security::new(&options).unwrap().try_handshake(&server.addr().into(), Nanos::from_secs(60));
    assert_eq!(found, Handshake::Failed { why: None, detail: None });
}

fn unencrypted_bytes_are_no_response(case: Case) {
    let certificates = certificates();
    let identity = good(&certificates);
    let plain = with_length(b"hello");
    let forged = [&[0x17, 3, 3, 0, 40][..], &[7; 40]].concat();
    let alert = vec![0x15, 3, 3, 0, 2, 2, 40];
    for (bytes, kinds) in [
        (plain, &[TlsFault::NotTls][..]),
        (forged, &[TlsFault::Undecryptable]),
        (alert, &[TlsFault::Undecryptable, TlsFault::NothingInCommon, TlsFault::Misbehaved]),
    ] {
        let behaviour = TlsBehaviour { ending: TlsEnding::Raw(bytes), ..TlsBehaviour::with_response(b"".to_vec()) };
        let server = RawServer::start_tls(&identity, behaviour);
        let calls = plan(case, server.addr(), &trusting(&certificates), Close::Server).run_closed(1);
        let failed = |end| kinds.iter().any(|kind| end == End::TlsFailed { sent: true, why: *kind });
        assert_eq!(count(&calls, failed), 12, "{:?}", calls[0]);
    }
}

fn a_large_request_is_sent_whole_by_tls(case: Case) {
    let certificates = certificates();
    // The server reads the whole request before it responds.
    let server = RawServer::start_tls(&good(&certificates), TlsBehaviour::with_response(with_length(b"hello")));
    let security = Arc::new(Security::new(&trusting(&certificates)).unwrap());
    for pipeline in [1, 2] {
        let plan = Plan::with_post_body(case, server.addr(), "x".repeat(5 << 20)).configure(|config| {
            config.tls = Some(Arc::clone(&security));
            config.connections.pipeline = pipeline;
            config.connections.response_timeout = config.window;
        });
        let calls = plan.run_closed(1);
        assert_eq!(count(&calls, completed), 1, "{:?}", calls[0]);
        assert!(calls[0].outcome().bytes_sent > 5 << 20);
    }
}

/// The server uses TLS 1.2 and requests renegotiation. Expects that the client declines. The server may then continue
/// or end the connection.
fn renegotiation_is_declined(case: Case) {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    let certificates = certificates();
    let identity = good(&certificates);
    let port = brimful_testkit::free_port();
    let mut server = Command::new("openssl")
        .args(["s_server", "-tls1_2", "-accept", &format!("127.0.0.1:{port}"), "-cert"])
        .arg(&identity.certificate)
        .arg("-key")
        .arg(&identity.key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("install openssl (apt-get install openssl)");
    let mut input = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    while lines.next().unwrap().unwrap() != "ACCEPT" {}
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let plan = plan(case, address, &trusting(&certificates), Close::Fin).calls(1);
    let calls = std::thread::scope(|scope| {
        scope.spawn(move || {
            // After the request has arrived, the line `R` makes the openssl program request renegotiation.
            let _ = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("Host:"));
            let _ = input.write_all(b"R\n");
            std::thread::sleep(std::time::Duration::from_millis(100));
            let _ = input.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            // Reads the program's output until the client disconnects.
            lines.map_while(Result::ok).for_each(drop);
        });
        let calls = plan.run_closed(1);
        let _ = server.kill();
        let _ = server.wait();
        calls
    });
    assert_eq!(secured(&calls), 1);
    let end = calls[0].end();
    assert!(completed(end) || reset(end) || matches!(end, End::TlsFailed { sent: true, .. }), "{end:?}");
}

/// A timeout so far in the future that no test reaches it.
const NEVER: Nanos = Nanos::from_secs(3600);

/// The server waits for the client's close_notify, as Python's asyncio, aiohttp and uvicorn do. Expects that the client
/// sends it at once, because such connections would otherwise stay open until the response timeout.
fn a_server_that_waits_for_close_notify_gets_it_at_once(case: Case) {
    let certificates = certificates();
    let identity = good(&certificates);
    let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello".to_vec();
    let to_the_end = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello".to_vec();
    for response in [with_length(b"hello"), last, to_the_end] {
        let behaviour = TlsBehaviour { ending: TlsEnding::AwaitNotify, ..TlsBehaviour::with_response(response) };
        let server = RawServer::start_tls(&identity, behaviour.clone());
        let plan = plan(case, server.addr(), &trusting(&certificates), Close::Server).calls(40);
        let plan = new_connections(plan).configure(|config| config.connections.response_timeout = NEVER);
        let run = plan.drive(|shard| plan.clients(2, shard), CallRecorder::default, &Control::default());
        assert_eq!(count(&run.observer.calls, completed), 40);
        assert!(run.max_open_connections <= 4, "{} connections at once", run.max_open_connections);
        // The last connections are closed at the end of the run.
        wait_until(|| server.open_connections() == 0);
        let answered = behaviour.answered.load(Ordering::SeqCst);
        assert!(answered >= 38, "{answered} of 40 were answered");
    }
}

/// The server announces `Connection: close`, but does not close the connection. Expects that the client closes it.
fn a_server_that_never_closes_does_not_keep_connections_open(case: Case) {
    let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello".to_vec();
    let server = RawServer::start(script([Step::Request, Step::Send(last), Step::Drain]));
    let plan = Plan::new(case, server.addr()).calls(u64::MAX);
    let plan = plan.configure(|config| {
        config.window = NEVER;
        config.connections.response_timeout = NEVER;
    });
    let run = plan.run_open_until(20.0, |_| server.connections() > server.open_connections() + 3);
    assert!(count(&run.observer.calls, completed) >= 3, "{:?}", run.observer.calls);
}
