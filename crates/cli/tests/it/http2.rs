//! Tests `--http 2`: Records and reports, with TLS, with prior knowledge, and with servers that do not support HTTP/2.

use crate::documents;
use crate::program::{run, words};
use brimful_core::record::Record;
use brimful_testkit::http2::{END_HEADERS, END_STREAM, answer, frame, goaway, http2_server, kind, settings};
use brimful_testkit::{CertificateFlaw, Certificates, Nginx, NginxOptions};
use std::fmt::Write;
use std::fs;

fn nginx() -> Nginx {
    Nginx::start(NginxOptions { listen: "http2".to_owned(), ..NginxOptions::default() })
}

fn load(args: &[&str]) -> Record {
    let args = [&["load", "--json", "--http", "2"], args].concat();
    documents::record(&run(&args).exits(&[0, 4]).stdout)
}

#[test]
fn streams_share_connections_and_the_record_has_the_protocol() {
    let nginx = nginx();
    for engine in ["auto", "epoll"] {
        let (url, calls) = (nginx.url(), ["--clients", "40", "--streams", "8", "--requests", "2000"]);
        let record = load(&[&[&url[..], "--engine", engine], &calls[..]].concat());
        assert_eq!(record.http.as_deref(), Some("2"));
        assert_eq!((record.counts.status.s2xx, record.counts.established, record.counts.errors()), (2000, 5, 0));
        assert!(record.server_software.is_some_and(|name| name.starts_with("nginx")));
    }
    let text = run(&["load", &nginx.url(), "--http", "2", "--rate", "200", "-n", "20", "--full"]).exits(&[0, 4]).stdout;
    assert!(text.contains("\nProtocol         HTTP/2\n"), "{text}");
    let plain = Nginx::start(NginxOptions::default());
    let done = run(&["load", "--json", &plain.url(), "--http", "1.0", "--clients", "2", "-n", "20"]).exits(&[0, 4]);
    assert_eq!(documents::record(&done.stdout).http.as_deref(), Some("1.0"));
}

#[test]
fn tls_negotiates_http2_or_the_run_does_not_start() {
    let certificates = Certificates::new();
    let identity = certificates.issue("IP:127.0.0.1", CertificateFlaw::None);
    let ca = certificates.authority().to_str().unwrap().to_owned();
    let start = |listen: &str| {
        Nginx::start(NginxOptions { listen: listen.to_owned(), extra: identity.for_nginx(), ..NginxOptions::default() })
    };
    let nginx = start("ssl http2");
    let url = format!("https://{}/", nginx.addr());
    let record = load(&[&url, "--ca", &ca, "--clients", "8", "--streams", "4", "-n", "200"]);
    assert_eq!((record.counts.completed, record.counts.handshakes), (200, 2), "{:?}", record.counts);
    assert_eq!(record.tls.unwrap().protocol.as_deref(), Some("h2"));
    let only_http1 = start("ssl");
    let url = format!("https://{}/", only_http1.addr());
    let done = run(&["load", &url, "--http", "2", "--ca", &ca, "--clients", "1", "-n", "5"]).exits(&[2, 3]);
    assert!(done.stderr.contains("use another --http"), "{}", done.stderr);
}

#[test]
fn a_replay_uses_streams() {
    let nginx = nginx();
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let mut lines = String::new();
    for call in 0..60 {
        let second = call / 30;
        writeln!(lines, "10.0.0.1 - - [02/Mar/2026:10:00:{second:02} +0100] \"GET /?n={call} HTTP/1.1\" 200 6")
            .unwrap();
    }
    fs::write(&log, lines).unwrap();
    let url = nginx.url();
    let args = ["replay", log.to_str().unwrap(), &url, "--http", "2", "--streams", "4", "--json"];
    let record = documents::record(&run(&args).exits(&[0, 4]).stdout);
    assert_eq!((record.counts.status.s2xx, record.http.as_deref()), (60, Some("2")));
}

#[test]
fn a_body_from_a_file_is_sent_in_frames() {
    let dir = tempfile::tempdir().unwrap();
    let (body, workload) = (dir.path().join("body"), dir.path().join("workload.toml"));
    fs::write(&body, "x".repeat(100_000)).unwrap();
    let class =
        format!("[[class]]\nname = \"put\"\nmethod = \"PUT\"\npath = \"/\"\nbody_file = \"{}\"\n", body.display());
    fs::write(&workload, class).unwrap();
    // The flow-control windows that the server grants are larger than the request bodies of all calls together.
    let server = http2_server(settings(&[(4, 1 << 20)]), |peer, _| {
        let window = frame(kind::WINDOW_UPDATE, 0, 0, &(1u32 << 29).to_be_bytes());
        let (mut goes_on, mut bytes) = (peer.send(&window), 0);
        while goes_on && let Some((kind, flags, stream, payload)) = peer.frame() {
            if kind == kind::DATA {
                bytes += payload.len();
                if flags & END_STREAM != 0 {
                    assert_eq!(std::mem::take(&mut bytes), 100_000);
                    goes_on = peer.send(&answer(stream, b"done"));
                }
            }
        }
    });
    let (url, workload) = (server.url(), workload.to_str().unwrap());
    let record = load(&[&url, "--workload", workload, "--clients", "1", "--streams", "4", "-n", "7"]);
    assert_eq!(record.counts.completed, 7, "{:?}", record.counts);
    assert!(record.bytes.sent > 700_000, "{:?}", record.bytes);
}

#[test]
fn failures_specific_to_http2_are_counted_and_explained() {
    // On each connection, the server responds to the first stream, resets the second and ignores the third.
    let server = http2_server(settings(&[]), |peer, _| {
        let Some(first) = peer.request() else { return };
        peer.send(&answer(first, b"x"));
        let Some(second) = peer.request() else { return };
        peer.send(&frame(kind::RST_STREAM, 0, second, &[0, 0, 0, 2]));
        peer.request();
        peer.send(&goaway(second));
        peer.drain();
    });
    let load = |url: &str, calls: &str| {
        let args = ["load", url, "--http", "2", "--clients", "1", "--streams", "4", "-n", calls];
        words(&run(&args).exits(&[0, 1, 3, 4]).stdout)
    };
    let text = load(&server.url(), "8");
    assert!(text.contains("4 of 8 (50.0 %): stream reset 4 "), "{text}");
    assert!(
        text.contains("note: Calls were sent again 3 times because the server had refused their streams"),
        "{text}"
    );
    assert!(text.contains("gave streams up with RST_STREAM INTERNAL_ERROR 4 times."), "{text}");
    let gone = http2_server(settings(&[]), |peer, _| {
        peer.request();
        peer.send(&goaway(0));
        peer.drain();
    });
    let text = load(&gone.url(), "2");
    assert!(text.contains(": gone away 2 "), "{text}");
    assert!(text.contains("note: The server ended connections with 2 calls under way on them"), "{text}");
    let broken = http2_server(settings(&[]), |peer, _| {
        peer.request();
        peer.send(&frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &[0x3f]));
        peer.drain();
    });
    let text = run(&["load", &broken.url(), "--http", "2", "--clients", "1", "-n", "2"]).exits(&[0, 1, 3, 4]).stdout;
    assert!(words(&text).contains("malformed 2") && words(&text).contains("leave out --http 2"), "{text}");
}

#[test]
fn unsupported_combinations_are_refused() {
    let nginx = nginx();
    run(&["load", &nginx.url(), "--http", "3"]).fails(2, "possible values: 1.0, 1.1, 2");
}
