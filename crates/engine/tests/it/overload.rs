//! Tests that the rate of connection attempts does not fall if the server is overloaded (Banga & Druschel 1997, §4.2).

use crate::call_recorder::{CallRecorder, ObservedCall, completed, count, count_connects};
use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan, max_generator_delay};
use brimful_core::{End, Nanos};
use brimful_engine::Run;
use brimful_testkit::{FullBacklog, full_backlog_listener};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

on_each_engine!(
    an_attempt_is_abandoned_after_t,
    an_abandoned_attempt_costs_one_syn_and_frees_its_port,
    s_clients_keep_their_rate_whatever_the_server_does,
    s_clients_make_the_attempts_of_an_arrival_process,
);

/// Runs S-Clients (the paper's clients that abandon an attempt after a timeout). Keeps this number of attempts (D in
/// the paper) under way during the window. `timeout` is T in the paper.
fn s_clients(case: Case, server: SocketAddr, attempts: u64, timeout: Nanos, window: Nanos) -> Run<CallRecorder> {
    let plan = Plan::new(case, server).calls(u64::MAX).configure(|c| {
        (c.connections.connect_timeout, c.window, c.connections.calls_per_connection) =
            (Some(timeout), window, Some(1));
    });
    plan.run_s_clients(attempts)
}

fn an_attempt_is_abandoned_after_t(case: Case) {
    let server = full_backlog_listener();
    let timeout = Nanos::from_millis(40);
    let plan = Plan::new(case, server.addr()).calls(50).configure(|c| c.connections.connect_timeout = Some(timeout));
    let run = plan.run_open_load(1000.0, &Control::default());
    assert_eq!(count(&run.observer.calls, |end| end == End::Abandoned), 50);
    abandoned_on_time(&run, timeout);
}

/// Checks that attempts were abandoned at their timeout, plus at most the generator's own delay.
fn abandoned_on_time(run: &Run<CallRecorder>, timeout: Nanos) {
    let delay = max_generator_delay(run);
    for call in run.observer.calls.iter().filter(|call| call.end() == End::Abandoned) {
        let took = call.time_to_connect();
        assert!(took >= timeout && took <= timeout + delay, "abandoned after {took}; delay up to {delay}: {call:?}");
    }
}

/// Keeps 48 attempts under way with 64 free ports. Expects that each attempt costs one SYN, and that none lacks a port.
fn an_abandoned_attempt_costs_one_syn_and_frees_its_port(case: Case) {
    let Some(_) = case.in_own_network("echo '40000 40063' > /proc/sys/net/ipv4/ip_local_port_range") else { return };
    let server = full_backlog_listener();
    let before = syns_dropped();
    let timeout = Nanos::from_millis(20);
    let run = s_clients(case, server.addr(), 48, timeout, Nanos::from_millis(600));
    let calls = &run.observer.calls;
    assert_eq!(count(calls, |end| end == End::Abandoned), calls.len(), "every attempt is abandoned");
    assert_eq!(syns_dropped() - before, calls.len() as u64, "the kernel has seen one SYN per attempt");
    abandoned_on_time(&run, timeout);
    assert!(calls.len() > 48, "each abandoned attempt is followed by another");
}

/// The kernel's counter `ListenDrops` of this network namespace: the number of SYNs dropped because an accept queue was
/// full.
fn syns_dropped() -> u64 {
    let netstat = std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
    let mut lines = netstat.lines().filter(|line| line.starts_with("TcpExt:")).map(str::split_ascii_whitespace);
    let (names, figures) = (lines.next().unwrap(), lines.next().unwrap());
    names.zip(figures).find(|(name, _)| *name == "ListenDrops").unwrap().1.parse().unwrap()
}

fn s_clients_keep_their_rate_whatever_the_server_does(case: Case) {
    const D: usize = 400;
    let (timeout, window) = (Nanos::from_millis(250), Nanos::from_millis(1500));
    let run = |server: &FullBacklog| s_clients(case, server.addr(), D as u64, timeout, window);

    let dead = full_backlog_listener();
    let at_dead = run(&dead);
    let slow = full_backlog_listener();
    let (at_slow, answered) = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve_130_a_second(&slow));
        (run(&slow), server.join().unwrap())
    });

    let calls = &at_dead.observer.calls;
    assert_eq!(count(calls, |end| end == End::Abandoned), calls.len());
    for (i, call) in calls[..D].iter().enumerate() {
        assert_eq!(call.due, Nanos(timeout.0 * i as u64 / D as u64), "the first attempts are spaced over T");
    }
    let served = count(&at_slow.observer.calls, completed);
    assert!(served > 0 && served == answered, "{served} calls completed, the server sent {answered} responses");
    for run in [&at_dead, &at_slow] {
        let calls = &run.observer.calls;
        let (attempts, established) =
            (count_connects(calls), calls.iter().filter(|call| call.established.is_some()).count());
        // An attempt that succeeds ends before its timeout, and its client makes another one. So each established
        // connection adds at most one attempt.
        assert!((2 * D..=D * 6 + established).contains(&attempts), "{attempts} attempts, {established} established");
        abandoned_on_time(run, timeout);
        // Each of the D clients has an attempt under way or due at every time until the last due time.
        let last = calls.iter().map(|call| call.due).max().unwrap();
        for at in (4..24).map(|quarter| Nanos(timeout.0 * quarter / 4)).filter(|at| *at < last) {
            let wanted = calls.iter().filter(|call| call.due <= at && at < call.attempt_ended()).count();
            assert_eq!(wanted, D, "at {at}");
        }
    }
}

/// Runs S-Clients that follow a schedule, with a server that accepts no connection. An attempt lasts ten times as long
/// as the gap between two attempts. Expects that all attempts are due as scheduled, and that at most D are pending.
fn s_clients_make_the_attempts_of_an_arrival_process(case: Case) {
    const D: usize = 12;
    let (timeout, window) = (Nanos::from_millis(100), Nanos::from_secs(1));
    let server = full_backlog_listener();
    let plan = Plan::new(case, server.addr()).calls(u64::MAX).configure(|c| {
        (c.connections.connect_timeout, c.window, c.connections.calls_per_connection) =
            (Some(timeout), window, Some(1));
    });
    let run = plan.run_scheduled_s_clients(D as u64, 100.0);
    let calls = &run.observer.calls;
    let mut due: Vec<Nanos> = calls.iter().map(|call| call.due).collect();
    due.sort_unstable();
    // On a slow host, attempts may be abandoned late. Later attempts then wait for a free client, so some may be
    // missing at the end.
    let expected: Vec<Nanos> = (0..100).map(|nth| Nanos::from_millis(10 * nth)).collect();
    assert_eq!(due, expected[..due.len()]);
    assert!(due.len() > D, "each client makes further attempts");
    for at in calls.iter().filter_map(|call| call.connect_started) {
        let pending = |call: &&ObservedCall| {
            call.connect_started.is_some_and(|started| started <= at) && at < call.attempt_ended()
        };
        let pending = calls.iter().filter(pending).count();
        assert!(pending <= D, "{pending} attempts pending at {at}");
    }
}

/// Accepts connections and responds at 130 per second, the capacity of the server in the paper, until the load has
/// ended. Returns the number of responses.
fn serve_130_a_second(server: &FullBacklog) -> usize {
    let mut answered = 0;
    server.listener().set_nonblocking(true).unwrap();
    for _ in 0..130 * 7 / 4 {
        std::thread::sleep(Duration::from_micros(7700));
        let Ok((mut conn, _)) = server.listener().accept() else { continue };
        conn.set_nonblocking(false).unwrap();
        conn.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        // Ignores connections that send nothing: they were opened only to fill the accept queue.
        if matches!(conn.read(&mut [0; 4096]), Ok(1..)) {
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            answered += usize::from(conn.write_all(answer).is_ok());
        }
    }
    answered
}
