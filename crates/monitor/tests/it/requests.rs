//! Tests the group `requests` (requests measured at sockets) with the whole monitor. These tests need root.

use crate::wait_for;
use brimful_core::Nanos;
use brimful_core::server::SocketRequests;
use brimful_monitor::{DutyCycle, GroupName, Intervals, MonitorConfig, ProcessSelector, Rates, Sample, Sampler};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A server with one connection. It answers each request of 4 bytes with 4 bytes.
struct Echo {
    port: u16,
    client: TcpStream,
}

impl Echo {
    fn start() -> Echo {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut server = listener.accept().unwrap().0;
            let mut bytes = [0; 4];
            while server.read_exact(&mut bytes).is_ok() {
                // This pause is far longer than the tracing of one call takes.
                std::thread::sleep(Duration::from_millis(1));
                server.write_all(&bytes).unwrap();
            }
        });
        Echo { port, client: TcpStream::connect(("127.0.0.1", port)).unwrap() }
    }

    fn ask(&mut self) {
        self.client.write_all(b"ping").unwrap();
        self.client.read_exact(&mut [0; 4]).unwrap();
    }
}

fn sampler(ports: Vec<u16>, requests_duty: DutyCycle, ebpf: bool) -> Sampler {
    let mut intervals = Intervals::uniform(Nanos::from_secs(1));
    intervals.set(GroupName::Requests, Some(Nanos::from_secs(1)));
    Sampler::open(&MonitorConfig { ports, intervals, requests_duty, ebpf, ..MonitorConfig::default() }).unwrap()
}

fn figures(first: &Sample, last: &Sample) -> SocketRequests {
    Rates::between(first, last).requests.expect("both samples have the group").metrics
}

#[test]
fn attached_all_the_time_every_request_is_counted() {
    const REQUESTS: u64 = 40;
    let mut echo = Echo::start();
    let mut sampler = sampler(vec![echo.port], DutyCycle::ALWAYS, true);
    assert!(sampler.sources()["requests"].ends_with("attached all the time"), "{:?}", sampler.sources());
    let first = sampler.sample();
    (0..REQUESTS).for_each(|_| echo.ask());
    let found = wait_for("the last response to be counted", || {
        let found = figures(&first, &sampler.sample());
        (found.classes.first()?.requests == REQUESTS).then_some(found)
    });
    assert_eq!((found.slice_s, found.ports.len()), (None, 1));
    let port = &found.ports[0];
    assert_eq!((port.port, port.requests, port.unanswered_share), (echo.port, REQUESTS, Some(0.0)));
    let service = port.service_us.unwrap();
    assert!(service.count == REQUESTS && service.mean >= 1_000.0 && service.p50 >= 800.0, "{service:?}");
    assert!(found.duty > 0.0, "{found:?}");
}

#[test]
fn slices_show_a_part_of_the_time_and_say_which() {
    let mut echo = Echo::start();
    let mut sampler = sampler(vec![echo.port], DutyCycle::from_share(0.5).unwrap(), true);
    let source = &sampler.sources()["requests"];
    assert!(source.ends_with("attached for 200ms at a random instant of every 400ms"), "{source}");
    let first = sampler.sample();
    let found = wait_for("a slice", || {
        echo.ask();
        let found = figures(&first, &sampler.sample());
        (found.slices >= 2).then_some(found)
    });
    let port = &found.ports[0];
    assert!(found.duty > 0.0 && found.duty <= 1.0 && port.requests > 0, "{found:?}");
    assert!(port.requests_per_s.unwrap() < 2_000.0, "each request takes a millisecond: {found:?}");
    assert!(port.under_way.unwrap() > 0.0, "{found:?}");
}

#[test]
fn the_ports_are_those_that_the_programs_listen_on_if_none_is_named() {
    let echo = Echo::start();
    let mut intervals = Intervals::uniform(Nanos::from_secs(1));
    intervals.set(GroupName::Requests, Some(Nanos::from_secs(1)));
    let processes = vec![ProcessSelector::Pid(std::process::id())];
    let sampler = Sampler::open(&MonitorConfig { processes, intervals, ..MonitorConfig::default() }).unwrap();
    let source = &sampler.sources()["requests"];
    // Other tests of this process listen too. There may be more ports than can be traced.
    assert!(source.contains(&echo.port.to_string()) || source.contains("at most 16 ports"), "{source}");
}

#[test]
fn without_a_port_or_ebpf_or_being_asked_there_is_a_reason() {
    let why = |sampler: Sampler| sampler.sources()["requests"].clone();
    assert!(why(sampler(vec![], DutyCycle::default(), true)).starts_with("none: no port was named: name those"));
    assert!(why(sampler(vec![80], DutyCycle::default(), false)).starts_with("none: they take eBPF"));
    let off = why(Sampler::open(&MonitorConfig::default()).unwrap());
    assert!(off.starts_with("none: they cost the server") && off.ends_with("--requests"), "{off}");
}
