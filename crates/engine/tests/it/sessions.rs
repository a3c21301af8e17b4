//! Tests sessions on real sockets. Each session has its own connections, from one source address, and not more than
//! allowed.

use crate::call_recorder::{CallRecorder, ObservedCall, completed, count};
use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan, wait_until};
use brimful_core::workload::{BetweenBursts, SessionArrivals, Sessions as Load, Spread};
use brimful_core::{Nanos, Rate};
use brimful_engine::Run;
use brimful_testkit::{RawServer, Request as Received, with_length};
use brimful_workload::{Mix, Sessions, WorkloadLimits};
use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

on_each_engine!(
    a_session_opens_no_more_connections_than_allowed,
    connections_are_closed_between_bursts_if_configured,
    calls_of_a_burst_are_pipelined_if_configured,
    without_keep_alive_each_call_of_a_burst_has_a_connection,
    a_session_comes_from_one_address,
    a_call_that_waits_for_a_connection_is_not_late,
    a_failed_call_ends_its_session,
    sessions_are_in_progress_if_the_run_ends_before_them,
);

/// A load of this number of sessions, which arrive within 50 ms. Each session sends five calls at a time (a burst),
/// twice.
fn sessions(sessions: f64) -> Load {
    let session_arrivals = SessionArrivals::Open { rate: Rate(sessions / 5.0), arrivals: "onoff:100,1%,5s".to_owned() };
    Load {
        bursts: Spread::Constant(2.0),
        calls_per_burst: Spread::Constant(5.0),
        think_s: Spread::Constant(0.02),
        connections: 2,
        ..Load::with_arrivals(session_arrivals)
    }
}

fn run(plan: &Plan, load: &Load) -> Run<CallRecorder> {
    // The sessions arrive in an on-off process with a period of 5 s, of which 50 ms are on. The run ends before the
    // second period.
    let extent = WorkloadLimits { window: plan.config.window.min(Nanos::from_millis(4_900)), calls: u64::MAX };
    let sessions = |shard| Sessions::new(load, Mix::new(&[1.0], 1).unwrap(), extent, 1, shard).unwrap();
    let run = plan.drive(sessions, CallRecorder::default, &Control::default());
    run.observer.calls.iter().for_each(ObservedCall::check);
    run
}

/// For each client address, the number of requests on each of its closed connections.
type Accepted = Arc<Mutex<BTreeMap<IpAddr, Vec<usize>>>>;

/// Starts a server that counts the requests on each connection.
fn counting() -> (RawServer, Accepted) {
    let accepted = Accepted::default();
    let counted = Arc::clone(&accepted);
    let server = RawServer::start(move |conn, _| {
        let address = conn.peer_addr().unwrap().ip();
        let mut reader = BufReader::new(&conn);
        let mut requests = 0;
        while Received::read(&mut reader).is_some() && (&conn).write_all(&with_length(b"x")).is_ok() {
            requests += 1;
        }
        counted.lock().unwrap().entry(address).or_default().push(requests);
    });
    (server, accepted)
}

/// Waits until the server has noticed the end of this number of connections. Returns the counts of requests, and resets
/// them.
fn ended(accepted: &Accepted, connections: u32) -> BTreeMap<IpAddr, Vec<usize>> {
    wait_until(|| accepted.lock().unwrap().values().map(Vec::len).sum::<usize>() == connections as usize);
    std::mem::take(&mut *accepted.lock().unwrap())
}

/// Runs a load of six sessions, once on one shard and once on two. Checks the numbers of calls, sessions and requests.
/// Returns the number of connections of each session.
fn six(case: Case, load: &Load) -> Vec<u32> {
    let (server, accepted) = counting();
    let mut connections = Vec::new();
    for shards in [1, 2] {
        let mut plan = Plan::new(case, server.addr());
        plan.shards = shards;
        let seen = run(&plan, load).observer;
        assert_eq!((count(&seen.calls, completed), seen.sessions.len(), seen.in_progress), (60, 6, 0));
        for session in &seen.sessions {
            let outcome = session.outcome;
            assert_eq!((outcome.calls, outcome.bursts, outcome.failed), (10, 2, false));
            assert!(outcome.ended >= outcome.began + Nanos::from_millis(20), "longer than its think time: {outcome:?}");
        }
        let opened: u32 = seen.sessions.iter().map(|session| session.connections).sum();
        let requests = ended(&accepted, opened);
        assert_eq!(requests.values().flatten().sum::<usize>(), 60);
        connections.extend(seen.sessions.iter().map(|session| session.connections));
    }
    connections
}

fn a_session_opens_no_more_connections_than_allowed(case: Case) {
    let connections = six(case, &sessions(6.0));
    assert!(connections.iter().all(|n| (1..=2).contains(n)), "{connections:?}");
    let one = six(case, &Load { connections: 1, ..sessions(6.0) });
    assert_eq!(one, [1; 12]);
}

fn connections_are_closed_between_bursts_if_configured(case: Case) {
    let load = Load { between_bursts: BetweenBursts::Close, connections: 1, ..sessions(6.0) };
    assert_eq!(six(case, &load), [2; 12]);
}

/// The server responds to the first call of a burst at once, and to the other four only after it has received all of
/// them. Expects that each session needs only one connection.
fn calls_of_a_burst_are_pipelined_if_configured(case: Case) {
    let server = RawServer::start(|conn, _| {
        let mut reader = BufReader::new(&conn);
        let mut answer = |requests: usize| {
            (0..requests).all(|_| Received::read(&mut reader).is_some())
                && (&conn).write_all(&with_length(b"x").repeat(requests)).is_ok()
        };
        while answer(1) && answer(4) {}
    });
    assert_eq!(pipelined(case, &server), [1; 12]);
}

fn without_keep_alive_each_call_of_a_burst_has_a_connection(case: Case) {
    let server = RawServer::start(|conn, _| {
        if Received::read(&mut BufReader::new(&conn)).is_some() {
            let _ = (&conn).write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx");
        }
    });
    assert_eq!(pipelined(case, &server), [10; 12]);
}

/// Runs six sessions that pipeline the calls of a burst, once on one shard and once on two. Returns the number of
/// connections of each session.
fn pipelined(case: Case, server: &RawServer) -> Vec<u32> {
    let load = Load { pipelined: true, connections: 1, ..sessions(6.0) };
    let of_shards = |shards| {
        let mut plan = Plan::new(case, server.addr()).configure(|c| c.connections.pipeline = 5);
        plan.shards = shards;
        let seen = run(&plan, &load).observer;
        assert_eq!((count(&seen.calls, completed), seen.sessions.len(), seen.in_progress), (60, 6, 0));
        seen.sessions.iter().map(|session| session.connections).collect::<Vec<_>>()
    };
    [1, 2].into_iter().flat_map(of_shards).collect()
}

fn a_session_comes_from_one_address(case: Case) {
    let (server, accepted) = counting();
    let mut plan = Plan::new(case, server.addr());
    plan.config.connections.source = Some("127.0.0.0/29".parse().unwrap());
    for shards in [1, 2] {
        plan.shards = shards;
        // There are twelve sessions and six source addresses, so two sessions share each address.
        let seen = run(&plan, &sessions(12.0)).observer;
        let opened: u32 = seen.sessions.iter().map(|session| session.connections).sum();
        let requests = ended(&accepted, opened);
        let of_address: Vec<usize> = requests.values().map(|requests| requests.iter().sum()).collect();
        assert_eq!(of_address, [20; 6], "{requests:?}");
        let of_sessions = |place: u32| {
            let here = seen.sessions.iter().filter(|session| session.session.0 % 6 == place);
            here.map(|session| session.connections as usize).sum::<usize>()
        };
        let opened: Vec<usize> = requests.values().map(Vec::len).collect();
        assert_eq!(opened, (0..6).map(of_sessions).collect::<Vec<_>>());
    }
}

fn a_call_that_waits_for_a_connection_is_not_late(case: Case) {
    let (server, _) = counting();
    let load = Load { connections: 1, ..sessions(3.0) };
    let calls = run(&Plan::new(case, server.addr()), &load).observer.calls;
    // In each burst, the first call is sent alone. The second call is sent directly after the first response, and the
    // other three calls wait.
    let waited: Vec<&ObservedCall> = calls.iter().filter(|call| call.ready.is_some()).collect();
    assert_eq!((calls.len(), waited.len()), (30, 18));
    for call in waited {
        let ready = call.ready.unwrap();
        let session = call.outcome().call.session;
        let is_before = |other: &ObservedCall| other.outcome().call.session == session && other.outcome().at == ready;
        assert!(ready > call.due && calls.iter().any(is_before), "{call:?}");
    }
}

fn a_failed_call_ends_its_session(case: Case) {
    let server = RawServer::never_answers();
    let plan = Plan::new(case, server.addr()).configure(|c| c.connections.response_timeout = Nanos::from_millis(20));
    let seen = run(&plan, &sessions(3.0)).observer;
    assert_eq!((seen.calls.len(), seen.sessions.len(), seen.in_progress), (3, 3, 0));
    for session in &seen.sessions {
        let outcome = session.outcome;
        assert_eq!((outcome.failed, outcome.calls, outcome.bursts, session.connections), (true, 1, 1, 1));
    }
}

fn sessions_are_in_progress_if_the_run_ends_before_them(case: Case) {
    let (server, _) = counting();
    let session_arrivals = SessionArrivals::Open { rate: Rate(100.0), arrivals: "constant".to_owned() };
    let load = Load { session_arrivals, think_s: Spread::Constant(100.0), ..sessions(0.0) };
    for shards in [1, 2] {
        let mut plan = Plan::new(case, server.addr()).configure(|c| c.window = Nanos::from_millis(200));
        plan.shards = shards;
        let seen = run(&plan, &load).observer;
        assert_eq!((seen.sessions.len(), seen.in_progress), (0, 20));
    }
}
