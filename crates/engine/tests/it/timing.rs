//! Tests that due times, response times and lateness are correct even if the server or the load generator stalls.

use crate::call_recorder::{CallRecorder, ObservedCall, completed, count, count_connects, median};
use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan, max_generator_delay};
use brimful_core::Nanos;
use brimful_engine::Close;
use brimful_testkit::start_serial_server;
use std::time::Duration;

on_each_engine!(
    a_stall_of_the_server_shows_in_every_delayed_call,
    a_stall_of_the_generator_is_lateness_and_never_service_time,
    an_open_workload_never_waits_for_a_free_connection,
    calls_wait_for_a_connection_at_the_limit,
    connections_are_kept_or_renewed_as_configured,
    the_first_calls_use_warm_connections,
    events_of_a_call_come_in_order,
    several_shards_make_the_same_calls_as_one,
    ticks_delay_calls_but_lose_none,
);

/// The most important test of the engine: 100 calls are due 10 ms apart. The server needs 1 ms for each call, and
/// stalls once for 100 ms. Expects that the call in service during the stall takes 101 ms, and that the calls due
/// during the stall take 92, 83, 74 … ms. A generator that waits for a response before it sends the next request would
/// report only one slow call (coordinated omission).
fn a_stall_of_the_server_shows_in_every_delayed_call(case: Case) {
    let server = start_serial_server(Duration::from_millis(1), Some((30, Duration::from_millis(100))));
    let run = Plan::new(case, server.addr()).calls(100).run_open_load(100.0, &Control::default());
    let calls = &run.observer.calls;
    assert_eq!(count(calls, completed), 100);
    for (i, call) in calls.iter().enumerate() {
        assert_eq!(call.due, Nanos::from_millis(10 * i as u64), "due times come from the schedule");
    }
    for k in 0..=10 {
        let (took, at_least) = (calls[30 + k].response_time(), Nanos::from_millis(101 + k as u64 - 10 * k as u64));
        assert!(took >= at_least, "call {} took {took}, the stall alone {at_least}", 30 + k);
    }
    // The stall does not affect the calls before it. Compares their median, because single calls may be slow on a busy
    // host.
    let (response, met_the_stall) =
        (median(calls[..30].iter().map(ObservedCall::response_time)), calls[30].response_time());
    assert!(response >= Nanos::from_millis(1) && response < met_the_stall, "median response {response}");
    let (late, delay) = (calls.iter().map(ObservedCall::lateness).max().unwrap(), max_generator_delay(&run));
    assert!(late <= delay, "{late} late; the longest gap was {}", run.longest_gap);
}

/// Stalls the load generator instead of the server. Expects that the calls keep their due times: their response time
/// and lateness include the stall, but their service time does not.
fn a_stall_of_the_generator_is_lateness_and_never_service_time(case: Case) {
    let server = start_serial_server(Duration::from_millis(1), None);
    let new_observer = || CallRecorder { stall: Some((30, Duration::from_millis(100))), ..CallRecorder::default() };
    let run = Plan::new(case, server.addr()).calls(100).run_open_with_observer(100.0, new_observer);
    assert!(run.longest_gap >= Nanos::from_millis(100), "the generator knows of its stall: {}", run.longest_gap);
    let calls = run.observer.calls;
    assert_eq!(count(&calls, completed), 100);
    for (i, call) in calls.iter().enumerate() {
        assert_eq!(call.due, Nanos::from_millis(10 * i as u64), "due times come from the schedule");
        assert!(call.response_time() >= call.lateness() + call.service_time(), "{call:?}");
    }
    let stall_ended = calls[30].outcome().at + Nanos::from_millis(100);
    let held: Vec<&ObservedCall> =
        calls.iter().filter(|c| c.due > calls[30].outcome().at && c.due < stall_ended).collect();
    assert!(held.len() >= 9, "{} calls came due during the stall", held.len());
    for call in held {
        assert!(call.sent.unwrap() >= stall_ended, "service began after the stall: {call:?}");
        let (late, at_least) = (call.lateness(), stall_ended - call.due);
        assert!(
            late >= at_least,
            "the call due at {} was {late} late, the stall alone delayed it by {at_least}",
            call.due
        );
    }
    let lateness = median(calls[50..].iter().map(ObservedCall::lateness));
    assert!(lateness < Nanos::from_millis(100), "median lateness {lateness} once the stall was over");
}

fn an_open_workload_never_waits_for_a_free_connection(case: Case) {
    let server = start_serial_server(Duration::from_millis(20), None);
    // The rate (500/s) is ten times the server's capacity.
    let run = Plan::new(case, server.addr()).calls(50).run_open_load(500.0, &Control::default());
    let calls = &run.observer.calls;
    assert_eq!(count(calls, completed), 50);
    let (late, delay) = (calls.iter().map(ObservedCall::lateness).max().unwrap(), max_generator_delay(&run));
    assert!(late <= delay, "{late} late; the longest gap was {}", run.longest_gap);
    let connections = count_connects(calls);
    assert!(connections > 25, "{connections} connections: calls in flight together need one each");
    let slowest = calls.iter().map(ObservedCall::response_time).max().unwrap();
    assert!(slowest >= Nanos::from_millis(50 * 20 - 98), "the last call waits for all others: {slowest}");
}

fn calls_wait_for_a_connection_at_the_limit(case: Case) {
    let server = start_serial_server(Duration::from_millis(20), None);
    // The rate is ten times the server's capacity.
    for calls_per_connection in [None, Some(3)] {
        let plan = Plan::with_method(case, server.addr(), "GET", Close::Fin).calls(50).configure(|config| {
            config.connections.max_per_shard = Some(4);
            config.connections.calls_per_connection = calls_per_connection;
        });
        let run = plan.run_open_load(500.0, &Control::default());
        let calls = &run.observer.calls;
        let others: Vec<_> = calls.iter().filter(|call| !completed(call.end())).collect();
        assert!(others.is_empty() && calls.len() == 50, "{calls_per_connection:?}: {others:?}");
        assert_eq!(run.max_open_connections, 4);
        // The wait for a connection is part of the response time, but does not count as lateness.
        let slowest = calls.iter().map(ObservedCall::response_time).max().unwrap();
        assert!(slowest >= Nanos::from_millis(50 * 20 - 98), "the last call waits for all others: {slowest}");
        let (late, delay) = (calls.iter().map(ObservedCall::lateness).max().unwrap(), max_generator_delay(&run));
        assert!(late <= delay, "{late} late; the longest gap was {}", run.longest_gap);
        for (i, call) in calls.iter().enumerate() {
            assert_eq!(call.due, Nanos::from_millis(2 * i as u64), "due times come from the schedule");
        }
    }
}

fn connections_are_kept_or_renewed_as_configured(case: Case) {
    let server = start_serial_server(Duration::from_micros(100), None);
    let connections = |limit, close| {
        let plan = Plan::with_method(case, server.addr(), "GET", close)
            .calls(60)
            .configure(|c| c.connections.calls_per_connection = limit);
        let calls = plan.run_closed(1);
        assert_eq!(count(&calls, completed), 60);
        count_connects(&calls)
    };
    assert_eq!(connections(None, Close::Server), 1);
    for close in [Close::Server, Close::Fin, Close::Rst] {
        assert_eq!(connections(Some(1), close), 60, "{close:?}");
        assert_eq!(connections(Some(7), close), 9, "{close:?}");
    }
}

fn the_first_calls_use_warm_connections(case: Case) {
    let server = start_serial_server(Duration::from_micros(100), None);
    let connections = |warm, shards| {
        let mut plan = Plan::new(case, server.addr()).calls(60).configure(|c| c.connections.warm_connections = warm);
        plan.shards = shards;
        let calls = plan.run_closed(6);
        assert_eq!(count(&calls, completed), 60);
        count_connects(&calls)
    };
    assert_eq!((connections(0, 1), connections(4, 1), connections(6, 1)), (6, 2, 0));
    assert_eq!(connections(6, 3), 0, "each shard gets its share of the warm connections");
}

fn events_of_a_call_come_in_order(case: Case) {
    let server = start_serial_server(Duration::from_micros(100), None);
    let calls = Plan::new(case, server.addr())
        .calls(40)
        .configure(|c| c.connections.calls_per_connection = Some(1))
        .run_open(1000.0);
    for call in &calls {
        let at = [Some(call.due), call.begun, call.connect_started, call.established, call.sent, call.first_byte];
        let at: Vec<Nanos> = at.into_iter().map(|at| at.expect("every event")).collect();
        assert!(at.is_sorted(), "{at:?}");
        assert!(call.outcome.unwrap().at >= at[5]);
    }
}

fn several_shards_make_the_same_calls_as_one(case: Case) {
    let server = start_serial_server(Duration::ZERO, None);
    let due = |shards| {
        let mut plan = Plan::new(case, server.addr()).calls(200);
        plan.shards = shards;
        let mut due: Vec<Nanos> = plan.run_open(2000.0).iter().map(|call| call.due).collect();
        due.sort_unstable();
        due
    };
    assert_eq!(due(1), due(3));
}

/// Expects that every call is made, and that calls are half an interval late on average: they come due throughout an
/// interval between two ticks, and begin at its end.
fn ticks_delay_calls_but_lose_none(case: Case) {
    let server = brimful_testkit::RawServer::content_length("x");
    let plan = Plan::new(case, server.addr()).calls(400).configure(|c| c.tick = Some(Nanos::from_millis(10)));
    let calls = plan.run_open(2_000.0);
    assert_eq!(count(&calls, completed), 400);
    for (i, call) in calls.iter().enumerate() {
        assert_eq!(call.due, Nanos::from_micros(500 * i as u64), "due times come from the schedule");
    }
    let late: u64 = calls.iter().map(|call| call.lateness().0).sum();
    assert!(late / 400 >= 4_000_000, "{} ns late on average", late / 400);
}
