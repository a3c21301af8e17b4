//! Tests `brimful target`, which runs the reference server in the foreground.

use crate::documents;
use crate::program::{Running, brimful, lock_machine_shared, start_target};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Starts the reference server. Returns the program and its address.
pub fn start(args: &[&str]) -> (Running, String) {
    let (target, url) = start_target(args);
    (target, url.trim_start_matches("http://").to_owned())
}

/// Sends one request. Returns the status and the body of the response.
fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn it_serves_its_classes_and_reports_their_demands() {
    let (target, address) = start(&["--service", "light=50us,heavy=1ms/16KiB"]);
    assert_eq!(get(&address, "/light").1.len(), 1024);
    assert_eq!(get(&address, "/heavy").1.len(), 16 * 1024);
    assert_eq!(get(&address, "/").0, 200);
    let (status, body) = get(&address, "/medium");
    assert!(status == 404 && body.contains("/light, /heavy"), "{status} {body}");
    let (status, truth) = get(&address, "/__truth");
    let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
    assert_eq!((status, &truth["classes"]["light"]["requests"]), (200, &2.into()), "{truth:#}");
    assert_eq!(truth["classes"]["heavy"]["nominal_s"], 0.001);
    assert!(truth["classes"]["heavy"]["mean_cpu_s"].as_f64().unwrap() >= 0.001, "{truth:#}");

    target.signal(Signal::INT);
    let done = target.finish().exits(&[0]);
    let rows: Vec<Vec<&str>> = done.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.iter().any(|row| row.starts_with(&["light", "2"]) && row.ends_with(&["50.0", "µs"])), "{rows:?}");
    assert!(rows.iter().any(|row| row.starts_with(&["heavy", "1"])), "{rows:?}");
    assert_eq!(done.stderr, "");
}

#[test]
fn work_defines_classes_and_a_pool_is_reported() {
    let (target, address) = start(&["--service", "a=10us+sleep:1ms", "--work", "b=170us+cpu:30us", "--pool", "1"]);
    let (_, truth) = get(&address, "/__truth");
    let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
    assert_eq!(truth["classes"]["a"]["nominal_s"], 0.000_01, "{truth:#}");
    assert_eq!(truth["classes"]["b"]["nominal_s"], 0.0002, "{truth:#}");
    assert_eq!(truth["pool"]["places"], 1, "{truth:#}");
    assert_eq!([get(&address, "/b").0, get(&address, "/light").0], [200, 404]);
    target.signal(Signal::INT);
    let done = target.finish().exits(&[0]);
    let line = "pool: at most 1 of 1 places in use at once, 0 requests waited\n";
    assert!(done.stdout.ends_with(line), "{}", done.stdout);
}

#[test]
fn it_serves_load_until_it_is_stopped() {
    let _machine = lock_machine_shared();
    let (target, address) = start(&["--service", "a=20us", "--distribution", "exponential", "--workers", "2"]);
    let load = Running::start(brimful(&["load", &address, "--json", "--clients", "4", "--requests", "400"]));
    assert_eq!(documents::record(&load.finish().exits(&[0, 4]).stdout).counts.status.s2xx, 400);
    target.signal(Signal::TERM);
    let done = target.finish().exits(&[0]);
    assert!(done.stdout.lines().any(|line| line.starts_with("a ") && line.contains(" 400 ")), "{}", done.stdout);
}
