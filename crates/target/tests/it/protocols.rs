//! Tests HTTP/2, and TLS with the self-signed certificate.

use crate::{config, start, truth_of};
use brimful_http::{Http2, RecentBlock, Request, StreamEnd, StreamObserver, Version};
use brimful_target::{CERTIFIED_NAME, Target, TargetConfig};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a read: longer than any test takes, but short enough to notice a hung test.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

fn connect(target: &Target) -> TcpStream {
    let stream = TcpStream::connect(target.addr()).unwrap();
    stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    stream
}

/// Connects by TLS. The client trusts only the target's certificate.
fn secured(target: &Target, protocol: &[u8]) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(target.certificate().unwrap().to_vec())).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::try_from(CERTIFIED_NAME).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), connect(target))
}

/// A receiver that ignores all responses.
struct Ignore;

impl StreamObserver<usize> for Ignore {
    fn received(&mut self, _: &mut usize, _: u64) {}
}

/// Sends all of these requests (method, path and length of the body) before it reads. Returns the status and length of
/// each response.
fn by_http2(mut stream: impl Read + Write, requests: &[(&str, &str, usize)]) -> Vec<(u16, u64)> {
    let (mut http2, mut recent) = (Http2::new(), RecentBlock::default());
    for (nth, (method, path, body)) in requests.iter().enumerate() {
        let request = Request::new(method, "a", path, &[], &vec![b'x'; *body], Version::Http2, false).unwrap();
        http2.open(&request, nth);
    }
    let (mut answers, mut left, mut buffer) = (vec![(0, 0); requests.len()], requests.len(), vec![0; 50_000]);
    while left > 0 {
        stream.write_all(http2.output()).unwrap();
        http2.clear_output();
        let n = stream.read(&mut buffer).unwrap();
        assert_ne!(n, 0, "the connection ended with {left} requests under way");
        let mut rest = &buffer[..n];
        loop {
            let heard = http2.feed(&mut recent, rest, &mut Ignore).unwrap();
            rest = &rest[heard.consumed..];
            let Some((carried, ended)) = heard.closed else { break };
            let StreamEnd::Complete(response) = ended else { panic!("{ended:?}") };
            answers[carried.value] = (response.status, response.body_bytes);
            left -= 1;
        }
    }
    answers
}

const REQUESTS: [(&str, &str, usize); 6] = [
    ("GET", "/b", 0),
    ("POST", "/a?x", 200_000),
    ("HEAD", "/b", 0),
    ("GET", "/nowhere", 0),
    ("OPTIONS", "/", 0),
    ("GET", "/", 0),
];

fn answered(answers: &[(u16, u64)]) {
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 200, 200, 404, 405, 200]);
    assert_eq!([0, 1, 2, 5].map(|nth| answers[nth].1), [3 << 20, 1024, 0, 1024]);
}

#[test]
fn http2_is_used_with_prior_knowledge() {
    let target = start("a=0,b=0/3MiB", 2);
    answered(&by_http2(connect(&target), &REQUESTS));
    let truth = truth_of(&target, 4);
    assert_eq!((truth.classes["a"].requests, truth.classes["b"].requests), (2, 2));
}

#[test]
fn both_protocols_work_with_tls() {
    let target = Target::start(TargetConfig { tls: true, ..config("a=0,b=0/3MiB", 2) }).unwrap();
    answered(&by_http2(secured(&target, b"h2"), &REQUESTS));
    let mut stream = secured(&target, b"http/1.1");
    for _ in 0..3 {
        stream.write_all(b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));
        stream.read_exact(&mut vec![0; 3 << 20]).unwrap();
    }
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut last = Vec::new();
    // Reading would fail if the connection ended without close_notify.
    stream.read_to_end(&mut last).unwrap();
    assert!(last.ends_with(b"brimful\n"));
}

#[test]
fn a_client_without_tls_is_disconnected() {
    let target = Target::start(TargetConfig { tls: true, ..config("a=0", 1) }).unwrap();
    let mut stream = connect(&target);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // Reading may fail: the server resets the connection if it has not read all of the client's bytes.
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert_eq!(by_http2(secured(&target, b"h2"), &[("GET", "/", 0)]), [(200, 1024)], "other clients are served");
    assert!(start("a=0", 1).certificate().is_none());
}
