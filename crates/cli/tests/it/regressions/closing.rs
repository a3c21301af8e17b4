//! Tests servers that close connections.

use crate::documents;
use crate::program::{run, words};
use brimful_core::record::Record;
use brimful_testkit::http2::{answer, frame, http2_server, kind, settings};
use brimful_testkit::{
    CertificateFlaw, Certificates, Nghttpd, RawServer, Step, TlsBehaviour, TlsEnding, script, with_length,
};

fn load(args: &[&str]) -> Record {
    documents::record(&run(&[&["load", "--json"], args].concat()).exits(&[0, 4]).stdout)
}

/// Some servers keep a TLS connection open until the client replies to close_notify: Python's asyncio, and with it
/// aiohttp and uvicorn. The bug: brimful did not reply, so connections stayed open until the timeout.
#[test]
fn a_tls_server_that_waits_for_close_notify_keeps_no_connection_open() {
    let certificates = Certificates::new();
    let identity = certificates.issue("DNS:localhost,IP:127.0.0.1", CertificateFlaw::None);
    let behaviour =
        TlsBehaviour { ending: TlsEnding::AwaitNotify, ..TlsBehaviour::with_response(with_length(b"hello")) };
    let server = RawServer::start_tls(&identity, behaviour);
    let url = format!("https://{}/", server.addr());
    for engine in ["epoll", "auto"] {
        let record = load(&[&url, "--insecure", "-c", "2", "-n", "40", "--new-connection", "--engine", engine]);
        assert_eq!((record.counts.completed, record.counts.errors()), (40, 0), "{:?}", record.counts);
        assert!(record.generator.max_open_connections <= 4, "{engine}: {:?}", record.generator);
    }
}

#[test]
fn an_http2_server_of_one_stream_refuses_no_call() {
    let nghttpd = Nghttpd::start("--max-concurrent-streams=1");
    let record = load(&[&nghttpd.url(), "--http", "2", "-c", "8", "--streams", "8", "-n", "40"]);
    assert_eq!((record.counts.completed, record.counts.errors()), (40, 0), "{:?}", record.counts);
}

#[test]
fn the_reason_of_a_goaway_is_shown() {
    let server = http2_server(settings(&[]), |peer, _| {
        peer.request();
        let goaway = [&0_u32.to_be_bytes()[..], &11_u32.to_be_bytes(), b"too many\x1b[2J pings"].concat();
        peer.send(&frame(kind::GOAWAY, 0, 0, &goaway));
        peer.drain();
    });
    let args = ["load", &server.url(), "--http", "2", "-c", "1", "-n", "2"];
    let text = words(&run(&args).exits(&[1, 4]).stdout);
    assert!(text.contains("gone away 2"), "{text}");
    assert!(text.contains("GOAWAY ENHANCE_YOUR_CALM 8 times, and said \"too many\\u001b[2J pings\"."), "{text}");
    let record = documents::record(&run(&[&args[..], &["--json"]].concat()).exits(&[1, 4]).stdout);
    let [error] = &record.http2_errors[..] else { panic!("{:?}", record.http2_errors) };
    assert_eq!((error.name.as_str(), error.code, error.frames), ("ENHANCE_YOUR_CALM", 11, 8));
    assert_eq!((record.counts.gone_away, record.counts.refused_streams), (2, 6));
}

#[test]
fn an_http2_call_that_the_server_refused_is_retried() {
    let server = http2_server(settings(&[]), |peer, _| {
        while let Some(stream) = peer.request() {
            let refused = stream % 4 == 1;
            let reply = if refused { frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 7]) } else { answer(stream, b"x") };
            if !peer.send(&reply) {
                return;
            }
        }
    });
    let record = load(&[&server.url(), "--http", "2", "-c", "1", "-n", "20"]);
    assert_eq!((record.counts.completed, record.counts.refused_streams), (20, 20), "{:?}", record.counts);
    assert_eq!(record.counts.imbalance(), (0, 0));
}

/// If the server closes a connection when a call is about to reuse it, the call fails as `closed_on_reuse`; with
/// `--retry-closed`, it is made again. This server closes each connection when it has received the second request.
#[test]
fn a_closed_idle_connection_is_not_counted_as_a_reset_and_its_call_can_be_retried() {
    let steps = [Step::Request, Step::Send(with_length(b"hello")), Step::Request, Step::Close];
    let server = RawServer::start(script(steps));
    let args = ["load", &server.url(), "-c", "1", "-n", "20"];
    let text = words(&run(&args).exits(&[0, 4]).stdout);
    assert!(text.contains("10 of 20 (50.0 %): closed on reuse 10"), "{text}");
    assert!(text.contains("note: 10 calls met a reused connection") && text.contains("add --retry-closed"), "{text}");
    let counts = load(&args[1..]).counts;
    assert_eq!((counts.completed, counts.reset, counts.closed_on_reuse, counts.imbalance()), (10, 10, 10, (0, 0)));
    for method in ["GET", "POST"] {
        let retried = [&args[1..], &["--retry-closed", "-m", method]].concat();
        let counts = load(&retried).counts;
        assert_eq!((counts.completed, counts.errors(), counts.retried_closed), (20, 0, 19), "{method}: {counts:?}");
        assert_eq!((counts.sent, counts.imbalance()), (20, (0, 0)));
    }
}
