//! Tests servers with TLS: their Records, and the error messages for certificates that are not trusted.

use crate::documents;
use crate::program::{run, words};
use brimful_core::tls::TlsFault;
use brimful_testkit::{
    CertificateFlaw, Certificates, Identity, Nginx, NginxOptions, RawServer, TlsBehaviour, with_length,
};

fn nginx(identity: &Identity) -> Nginx {
    // Debian's nginx uses TLS 1.3 only if the configuration names it.
    let extra = format!("{} ssl_protocols TLSv1.2 TLSv1.3;", identity.for_nginx());
    Nginx::start(NginxOptions { listen: "ssl".to_owned(), extra, ..NginxOptions::default() })
}

fn path(path: &std::path::Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_record_has_the_tls_version_and_cipher() {
    let certificates = Certificates::new();
    let nginx = nginx(&certificates.issue("DNS:localhost,IP:127.0.0.1", CertificateFlaw::None));
    let (url, ca) = (format!("https://{}/", nginx.addr()), path(&certificates.authority()));
    let load = |rest: &[&str]| {
        let args = ["load", &url, "--ca", &ca, "--clients", "2", "-n", "30", "--json"];
        documents::record(&run(&[&args, rest].concat()).exits(&[0, 4]).stdout)
    };
    let record = load(&[]);
    assert_eq!((record.counts.completed, record.counts.handshakes, record.counts.handshakes_resumed), (30, 2, 0));
    assert_eq!((record.target, record.handshake_time_us.unwrap().count), (url.clone(), 2));
    let spoken = record.tls.unwrap();
    assert_eq!((spoken.version.as_str(), spoken.protocol.as_deref()), ("TLS 1.3", Some("http/1.1")));
    assert_eq!(
        (spoken.cipher_suite.as_str(), spoken.key_exchange.as_deref()),
        ("TLS_AES_256_GCM_SHA384", Some("X25519"))
    );
    assert_eq!(record.workload.unwrap().tls, None);
    let record = load(&["--new-connection", "--tls-resume", "--sni", "localhost"]);
    let counts = record.counts;
    assert_eq!((counts.completed, counts.handshakes), (30, 30));
    assert!((26..30).contains(&counts.handshakes_resumed), "{counts:?}");
    let tls = record.workload.unwrap().tls.unwrap();
    assert!(tls.resume && tls.sni.as_deref() == Some("localhost") && !tls.insecure);
    let text = run(&["load", &url, "--insecure", "--clients", "1", "-n", "5", "--full"]).exits(&[0, 4]).stdout;
    assert!(text.contains("\nHandshake rate ") && text.contains("each a full one\n"), "{text}");
    assert!(text.contains("\nTLS              TLS 1.3, TLS_AES_256_GCM_SHA384, X25519, http/1.1\n"), "{text}");
}

#[test]
fn untrusted_certificates_are_errors_before_the_run() {
    let certificates = Certificates::new();
    let ca = path(&certificates.authority());
    let refused = |names: &str, flaw, code, parts: &[&str]| {
        let behaviour = TlsBehaviour::with_response(with_length(b"hello"));
        let server = RawServer::start_tls(&certificates.issue(names, flaw), behaviour);
        let url = format!("https://{}/", server.addr());
        for part in parts {
            run(&["load", &url, "--ca", &ca, "-n", "1", "--clients", "1"]).fails(code, part);
        }
        run(&["load", &url, "--insecure", "-n", "1", "--clients", "1"]).exits(&[0, 4]);
    };
    refused("IP:127.0.0.1", CertificateFlaw::Expired, 3, &["has expired: renew it"]);
    refused(
        "IP:127.0.0.1",
        CertificateFlaw::NotYetValid,
        3,
        &["is not valid yet (it will be in", "check this host's clock (`date -u`)"],
    );
    refused(
        "DNS:a.example,DNS:b.example",
        CertificateFlaw::None,
        3,
        &["(it is for a.example, b.example): use a name of the certificate", "--sni"],
    );
    refused(
        "IP:127.0.0.1",
        CertificateFlaw::SelfSigned,
        3,
        &["(it is self-signed): name the issuer's certificate", "--ca FILE"],
    );
    refused("IP:127.0.0.1", CertificateFlaw::MissingIntermediate, 3, &["or the chain is incomplete)"]);
    let closes = RawServer::closes_on_accept();
    let url = format!("https://{}/", closes.addr());
    run(&["load", &url, "--insecure", "-n", "1"]).fails(3, "closed the connection during the TLS handshake");
    let speaks_plainly = RawServer::start(|connection, _| {
        use std::io::{Read, Write};
        let _ = (&connection).read(&mut [0; 64]);
        let _ = (&connection).write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = std::io::copy(&mut &connection, &mut std::io::sink());
    });
    let url = format!("https://{}/", speaks_plainly.addr());
    run(&["load", &url, "--insecure", "-n", "1"]).fails(2, "is not TLS: if it speaks plain HTTP, write http://");
}

/// If the port of an http:// URL speaks TLS, the report advises to write https://. nginx responds 400 to such requests;
/// other servers reset the connection, or send a TLS alert, which is not HTTP.
#[test]
fn an_http_url_of_a_tls_server_is_reported() {
    let certificates = Certificates::new();
    let identity = certificates.issue("DNS:localhost,IP:127.0.0.1", CertificateFlaw::None);
    let (nginx, raw) =
        (nginx(&identity), RawServer::start_tls(&identity, TlsBehaviour::with_response(with_length(b"x"))));
    let hint = "The server speaks TLS on this port: write https:// in place of http://.";
    for (url, all_4xx) in [(nginx.url(), true), (raw.url(), false)] {
        // A response with any status completes its call. If there is no response, the call has failed.
        let codes = if all_4xx { [0, 4] } else { [1, 4] };
        for how in [&[][..], &["--http", "2"]] {
            let load = ["load", &url, "--clients", "1", "-n", "3"];
            let done = run(&[&load[..], how].concat());
            // nginx responds with HTTP/1, which is not a response to an HTTP/2 request.
            let done = done.exits(if how.is_empty() { &codes } else { &[1, 4] });
            assert!(words(&done.stdout).contains(hint), "{url} {how:?}: {}", done.stdout);
        }
        let record = run(&["load", &url, "--clients", "1", "-n", "3", "--json"]).exits(&codes);
        let record = documents::record(&record.stdout);
        let counts = record.counts;
        assert_eq!((counts.status.s4xx, record.wants_tls), (if all_4xx { 3 } else { 0 }, true), "{counts:?}");
        assert_eq!(counts.malformed + counts.reset, if all_4xx { 0 } else { 3 }, "{counts:?}");
    }
    run(&["survey", &nginx.url()]).fails(2, "the server speaks TLS on this port: write https://");
    let plain = Nginx::start(NginxOptions::default());
    let nowhere = format!("{}nowhere", plain.url());
    let record = run(&["load", &nowhere, "--clients", "1", "-n", "3", "--json"]).exits(&[0, 4]);
    let record = documents::record(&record.stdout);
    assert_eq!((record.counts.status.s4xx, record.wants_tls), (3, false));
}

#[test]
fn flags_of_tls_that_do_not_fit_are_refused() {
    let server = RawServer::with_handler(|_| with_length(b"hello"));
    let (plain, secure) = (server.url(), format!("https://{}/", server.addr()));
    run(&["load", &plain, "--insecure", "-n", "1"]).fails(2, "--insecure needs an https:// URL");
    run(&["load", &plain, "--tls-min", "1.3", "-n", "1"]).fails(2, "--tls-min needs an https:// URL");
    run(&["load", &secure, "--insecure", "--ca", "x", "-n", "1"]).fails(2, "cannot be used with");
    run(&["load", &secure, "--cert", "x", "-n", "1"]).fails(2, "--key");
    run(&["load", &secure, "--ca", "/nowhere.pem", "-n", "1"]).fails(2, "/nowhere.pem holds no usable certificate");
    run(&["load", &secure, "--ca", "/dev/null", "-n", "1"]).fails(2, "it has none; it must be PEM");
    run(&["load", &secure, "--insecure", "--sni", "a b", "-n", "1"]).fails(2, "`a b` is not a name");
    run(&["load", &secure, "--insecure", "--tls-min", "1.1", "-n", "1"]).fails(2, "1.1");
}

#[test]
fn failures_during_a_run_are_counted_and_named_once() {
    // The first connection is for the handshake before the run. From the second connection on, the server sends another
    // certificate.
    let certificates = Certificates::new();
    let (good, bad) = (
        certificates.issue("IP:127.0.0.1", CertificateFlaw::None),
        certificates.issue("IP:127.0.0.1", CertificateFlaw::SelfSigned),
    );
    let [good, bad] =
        [good, bad].map(|identity| RawServer::start_tls(&identity, TlsBehaviour::with_response(with_length(b"x"))));
    let (first, then) = (good.addr(), bad.addr());
    let between = RawServer::start(move |connection, index| {
        let other = std::net::TcpStream::connect(if index < 2 { first } else { then }).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = std::io::copy(&mut &connection, &mut &other);
                let _ = other.shutdown(std::net::Shutdown::Write);
            });
            let _ = std::io::copy(&mut &other, &mut &connection);
            let _ = connection.shutdown(std::net::Shutdown::Both);
        });
    });
    let (url, ca) = (format!("https://{}/", between.addr()), path(&certificates.authority()));
    let done = run(&["load", &url, "--ca", &ca, "--clients", "1", "-n", "5", "--json"]).exits(&[1, 4]);
    let record = documents::record(&done.stdout);
    assert_eq!((record.counts.tls_failed, record.counts.tls_failed_before_sending), (5, 5));
    assert_eq!(record.counts.imbalance(), (0, 0));
    let [failure] = &record.tls_failures[..] else { panic!("{:?}", record.tls_failures) };
    assert_eq!((failure.reason, failure.calls), (TlsFault::CertificateIssuer, 5));
    assert!(failure.message.contains("--ca FILE"), "{}", failure.message);
}
