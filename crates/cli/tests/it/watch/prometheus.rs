//! Tests `watch --prometheus`: the metrics are fetched and parsed as Prometheus does it.

use super::{OFTEN, nginx};
use crate::program::{Running, brimful, lock_machine_shared};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Sends a request. Returns the status and the body of the response.
fn fetch(address: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// All time series of the page with their values, parsed by the grammar of Prometheus's text format 0.0.4.
fn series(page: &str) -> BTreeMap<String, f64> {
    let is_name =
        |name: &str| name.starts_with("brimful_") && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let mut series = BTreeMap::new();
    let mut metric = "";
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            metric = name;
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let suffix = name.split('{').next().unwrap().strip_prefix(metric);
            assert!(matches!(suffix, Some("" | "_bucket" | "_sum" | "_count")) && is_name(metric), "{line}");
            assert!(series.insert(name.to_owned(), value.parse().unwrap()).is_none(), "a series occurs twice: {line}");
        }
    }
    assert!(page.ends_with('\n') && !series.is_empty());
    series
}

#[test]
fn counters_are_served_during_the_watch() {
    let (nginx, port) = nginx();
    let _machine = lock_machine_shared();
    let args = [&["watch", "--port", &port, "--prometheus", "127.0.0.1:0"], &OFTEN[..]].concat();
    let mut watch = Running::start(brimful(&args));
    let said = watch.stderr_line("metrics are at http://");
    let address = said.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    let get = || fetch(&address, &format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    for _ in 0..3 {
        watch.stdout_line();
    }
    let (status, page) = get();
    assert_eq!(status, 200);
    let before = series(&page);
    for _ in 0..100 {
        drop(TcpStream::connect(nginx.addr()).unwrap());
    }
    for _ in 0..3 {
        watch.stdout_line();
    }
    let after = series(&get().1);
    for (name, value) in before.iter().filter(|(name, _)| name.contains("_total")) {
        assert!(after[name] >= *value, "{name} went from {value} to {}", after[name]);
    }
    let grew = |name: &str| after[name] - before[name];
    assert!(grew("brimful_tcp_passive_opens_total") >= 100.0);
    assert!(grew("brimful_cpu_seconds_total{cpu=\"0\",mode=\"user\"}") >= 0.0);
    assert_eq!(after[&format!("brimful_listener_backlog{{port=\"{port}\"}}")], 511.0);
    assert_eq!(after["brimful_process_processes{program=\"nginx\"}"], 2.0);
    assert_eq!(fetch(&address, "GET / HTTP/1.1\r\n\r\n").0, 404);
    let (status, why) = fetch(&address, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(status == 421 && why.contains("--prometheus-host NAME") && !why.contains("brimful_"), "{why}");
    assert_eq!(fetch(&address, "nonsense\r\n\r\n").0, 400);
    // The server must respond to a client while other clients have sent only a part of their requests.
    let half = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
        stream
    };
    let _half: Vec<TcpStream> = (0..133).map(|_| half()).collect();
    assert_eq!(get().0, 200);
    watch.ctrl_c();
    watch.finish().exits(&[0]);
}
