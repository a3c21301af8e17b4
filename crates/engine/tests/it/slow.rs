//! Tests servers whose responses never end. The call must end at its timeout, and the received bytes must be counted.
//! The load generator must need little CPU time and memory.

use crate::call_recorder::count;
use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan, max_generator_delay};
use brimful_core::{End, Nanos};
use brimful_testkit::{RawServer, Request};
use std::io::{BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

on_each_engine!(
    a_server_that_never_answers_times_out,
    waiting_for_an_endless_response_uses_no_cpu_time,
    an_endless_body_uses_no_memory,
);

fn a_server_that_never_answers_times_out(case: Case) {
    let server = RawServer::never_answers();
    let timeout = Nanos::from_millis(80);
    let plan = Plan::new(case, server.addr()).calls(5).configure(|c| c.connections.response_timeout = timeout);
    let run = plan.run_open_load(1000.0, &Control::default());
    let calls = &run.observer.calls;
    assert_eq!(count(calls, |end| end == End::TimedOut), 5);
    for call in calls {
        let took = call.service_time();
        assert!(
            took >= timeout && took <= timeout + max_generator_delay(&run),
            "timed out after {took}; the generator itself was delayed by up to {}",
            run.longest_gap
        );
    }
}

fn waiting_for_an_endless_response_uses_no_cpu_time(case: Case) {
    let server = RawServer::one_byte_at_a_time(Duration::from_millis(100));
    let plan = Plan::new(case, server.addr())
        .calls(10)
        .configure(|c| c.connections.response_timeout = Nanos::from_millis(950));
    let run = plan.run_open_load(1000.0, &Control::default());
    for call in &run.observer.calls {
        assert_eq!(call.end(), End::TimedOut);
        let most = 1 + call.service_time().0 / Nanos::from_millis(100).0;
        assert!((1..=most).contains(&call.outcome().bytes_received), "{call:?}");
    }
    // Up to 100 bytes arrived one by one. A generator that sleeps until the next byte needs little CPU time, and one
    // that polls would use a whole CPU.
    let cpu = run.cpu.total;
    assert!(cpu.0 < run.duration.0 / 8, "{cpu} of {}", run.duration);
}

/// Expects that memory does not grow while two endless responses are received. Runs in its own process, because other
/// tests would increase the peak memory.
fn an_endless_body_uses_no_memory(case: Case) {
    let Some(_) = case.in_own_process("true", "") else { return };
    const ENOUGH: u64 = 192 << 20;
    let sent = Arc::new(AtomicU64::new(0));
    let of_server = Arc::clone(&sent);
    let server = RawServer::start(move |conn, _| {
        let piece = [b'x'; 64 * 1024];
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n";
        let mut written = Request::read(&mut BufReader::new(&conn)).map(|_| (&conn).write_all(head));
        while let Some(Ok(())) = written {
            of_server.fetch_add(piece.len() as u64, Ordering::Relaxed);
            written = Some((&conn).write_all(&piece));
        }
    });
    let plan =
        Plan::new(case, server.addr()).calls(2).configure(|c| c.connections.response_timeout = Nanos::from_secs(60));
    let before = high_water_mark();
    let calls = plan.run_open_until(1000.0, |_| sent.load(Ordering::Relaxed) >= ENOUGH).observer.calls;
    let grown = high_water_mark() - before;
    assert_eq!(count(&calls, |end| end == End::Unfinished { sent: true }), 2);
    let received: u64 = calls.iter().map(|call| call.outcome().bytes_received).sum();
    // Bytes that were sent but not received are in the socket buffers, which are much smaller than `ENOUGH`.
    assert!(received > ENOUGH / 3, "{received} bytes of {ENOUGH}");
    assert!(grown < 8 << 20, "{grown} bytes of memory for {received} received");
}

/// Peak memory of this process so far, in bytes.
fn high_water_mark() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}
