//! Tests `load --calibrate`: the maximum load of this client, and loads that exceed it. The maximum depends on how busy
//! the machine is, so its value is not asserted.

use crate::documents;
use crate::program::{Running, brimful, lock_machine_shared, start_target};
use brimful_core::record::{ReasonCode, Record};
use brimful_testkit::{CertificateFlaw, Certificates, Nginx, NginxOptions, full_backlog_listener};

/// Returns the maximum rate of a calibration. Asserts that the loads of the curve increase, and that the client was not
/// the limit at the maximum.
fn maximum(record: &Record) -> f64 {
    let calibration = record.calibration.as_ref().expect("the Record has a calibration");
    let max = calibration.max_rate.expect("the calibration has a maximum");
    assert_eq!(record.generator.max_rate, Some(max));
    assert!(max >= 1.0, "{max}");
    let curve = &calibration.curve;
    assert!(curve.is_sorted_by(|a, b| a.load <= b.load), "{curve:#?}");
    let at_maximum = curve.iter().rfind(|level| level.load == max).expect("the maximum is on the curve");
    assert_eq!(at_maximum.limited, None);
    assert!(
        at_maximum.pairs >= 3 && at_maximum.one_generator > 0.0 && at_maximum.two_generators > 0.0,
        "{at_maximum:#?}"
    );
    max
}

#[test]
fn a_load_beyond_the_clients_maximum_is_invalid() {
    let _machine = lock_machine_shared();
    let (_target, url) = start_target(&["--service", "a=0us/2KiB"]);
    let beyond = ["load", &url, "--calibrate", "-R", "500k", "-d", "100ms", "--timeout", "500ms", "--json"];
    let done = Running::start(brimful(&beyond)).finish().exits(&[4]);
    assert!(done.stderr.contains("one generator"), "each load is reported: {}", done.stderr);
    let record = documents::record(&done.stdout);
    let max = maximum(&record);
    assert!(record.rates.offered > max, "{} of {max}", record.rates.offered);
    assert!(record.verdict.reasons.iter().any(|reason| reason.code == ReasonCode::BeyondClientMax), "{max}");
    assert_eq!(record.target, url);
}

#[test]
fn the_load_of_a_workload_follows_the_calibration() {
    let _machine = lock_machine_shared();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("workload.toml");
    std::fs::write(&file, "[[class]]\nname = \"a\"\npath = \"/a\"\n[load]\narrivals = \"constant\"\nrate = 50.0\n")
        .unwrap();
    let (_target, url) = start_target(&["--service", "a=0us"]);
    let asks = ["load", &url, "--calibrate", "--workload", file.to_str().unwrap(), "-d", "200ms", "--json", "--quiet"];
    // Before the load, some calls measure the size of a response. They have no schedule, so `--tick` must not make them
    // fail.
    let asks = [&asks[..], &["--tick", "1ms"]].concat();
    let record = documents::record(&Running::start(brimful(&asks)).finish().exits(&[0, 4]).stdout);
    assert_eq!((record.counts.scheduled, record.target.starts_with(&url)), (10, true), "{}", record.target);
    assert!(record.calibration.is_some());
}

#[test]
fn without_a_load_only_the_curve_is_shown() {
    let _machine = lock_machine_shared();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("record.json");
    // S-Clients do not need a response, so a listener with a full accept queue suffices for them. Other loads need a
    // server that responds.
    let full = full_backlog_listener();
    let s_clients =
        ["load", &full.url(), "--calibrate", "--s-clients", "2", "--connect-timeout", "20ms", "-d", "100ms"];
    // The load of S-Clients that follows the calibration gets no response either, so the exit code is not 0.
    let done = Running::start(brimful(&[&s_clients[..], &["--quiet"]].concat())).finish().exits(&[3, 4]);
    assert!(done.stdout.contains("\nClient      can offer ") && done.stderr.is_empty(), "{done:#?}");

    let (_target, url) = start_target(&["--service", "a=0us"]);
    let alone = ["load", &url, "--calibrate", "--new-connection", "--out", out.to_str().unwrap()];
    let done = Running::start(brimful(&alone)).finish().exits(&[0]);
    let record = documents::record(&std::fs::read_to_string(&out).unwrap());
    let max = maximum(&record);
    assert!(done.stdout.starts_with("Client maximum   "), "{}", done.stdout);
    assert!(done.stdout.contains(&format!("\n{} ", brimful_core::quantity::rate(max))), "{}", done.stdout);
    assert_ne!(record.target, url, "the calibration loads the built-in server, not the target");
    assert!(record.counts.completed > 0 && record.counts.connect_attempts >= record.counts.completed);
}

/// In a calibration, the load of the built-in server has the same protocol as the load of the server under test.
#[test]
fn the_calibration_uses_the_protocol_of_the_load() {
    let _machine = lock_machine_shared();
    let certificates = Certificates::new();
    let identity = certificates.issue("IP:127.0.0.1", CertificateFlaw::None);
    let extra = identity.for_nginx();
    let nginx = Nginx::start(NginxOptions { listen: "ssl http2".to_owned(), extra, ..NginxOptions::default() });
    let secure = nginx.url().replace("http://", "https://");
    let authority = certificates.authority().display().to_string();
    let in_the_clear = Nginx::start(NginxOptions { listen: "http2".to_owned(), ..NginxOptions::default() });
    let plain = in_the_clear.url();
    let strangers = untrusted_nginx();
    let stranger = strangers.url().replace("http://", "https://");
    for (how, http, tls) in [
        (["load", &secure, "--ca", &authority].as_slice(), "1.1", true),
        (&["load", &secure, "--ca", &authority, "--http", "2", "--streams", "4"], "2", true),
        (&["load", &secure, "--ca", &authority, "--new-connection", "--tls-resume"], "1.1", true),
        (&["load", &stranger, "--insecure"], "1.1", true),
        (&["load", &plain, "--http", "2"], "2", false),
    ] {
        let done = Running::start(brimful(&[how, &["--calibrate", "--json"]].concat())).finish().exits(&[0]);
        let record = documents::record(&done.stdout);
        assert!(maximum(&record) > 0.0 && record.counts.completed > 0, "{how:?}: {:?}", record.counts);
        assert_eq!((record.http.as_deref(), record.tls.is_some()), (Some(http), tls), "{how:?}");
        assert!(record.target.starts_with(if tls { "https://127." } else { "http://127." }), "{}", record.target);
        // With keep-alive, calls share connections, so there are at most half as many handshakes as calls. With
        // `--new-connection`, every call needs a connection of its own.
        let mostly_new = 2 * record.counts.handshakes > record.counts.completed;
        let (handshakes, established) = (record.counts.handshakes, record.counts.established);
        assert!(handshakes <= established && (tls || handshakes == 0), "{how:?}: {:?}", record.counts);
        assert_eq!(mostly_new, how.contains(&"--new-connection"), "{how:?}: {:?}", record.counts);
    }
}

/// An nginx with a certificate that the client does not trust.
fn untrusted_nginx() -> Nginx {
    let certificates = Certificates::new();
    let extra = certificates.issue("DNS:elsewhere.example", CertificateFlaw::SelfSigned).for_nginx();
    Nginx::start(NginxOptions { listen: "ssl".to_owned(), extra, ..NginxOptions::default() })
}

#[test]
fn the_calibration_needs_a_response_of_the_server() {
    let full = full_backlog_listener();
    let args = ["load", &full.url(), "--calibrate", "--connect-timeout", "100ms", "--timeout", "100ms", "--quiet"];
    let _machine = lock_machine_shared();
    Running::start(brimful(&args)).finish().fails(3, "completed no call");
}
