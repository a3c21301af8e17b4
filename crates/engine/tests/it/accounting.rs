//! Every call is accounted for, whatever happens to it, and what this host lacks is not the server's failure.

use crate::support::{Plan, completed, count};
use brimful_core::{End, Nanos};
use brimful_testkit::{RawServer, free_port, full_backlog_listener};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn an_attempt_that_is_not_answered_is_abandoned_after_t() {
    let server = full_backlog_listener();
    let plan = Plan::new(server.addr()).calls(50).configure(|c| c.connect_timeout = Nanos::from_millis(40));
    let calls = plan.open(1000.0);
    assert_eq!(count(&calls, |end| end == End::Abandoned), 50);
    for call in &calls {
        let took = call.outcome.unwrap().at - call.connect_started.unwrap();
        assert!(took >= Nanos::from_millis(40) && took < Nanos::from_millis(100), "{took}");
        assert!(call.established.is_none() && call.sent.is_none());
    }
}

#[test]
fn a_port_where_nothing_listens_refuses() {
    let calls = Plan::new(SocketAddr::from(([127, 0, 0, 1], free_port()))).calls(20).open(1000.0);
    assert_eq!(count(&calls, |end| end == End::Refused), 20);
    assert!(calls.iter().all(|call| call.connect_started.is_some() && call.sent.is_none()));
}

#[test]
fn a_stop_ends_every_call_in_flight() {
    let server = RawServer::never_answers();
    let stop = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.connections() < 3 {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        Plan::new(server.addr()).open_until(100.0, &stop)
    });
    assert!(run.interrupted);
    let calls = run.observer.calls;
    assert!(calls.len() >= 3);
    assert!(calls.iter().all(|call| matches!(call.end(), End::Unfinished { .. })), "{calls:?}");
}

#[test]
fn a_server_that_dies_is_reset_then_refused() {
    let server = RawServer::dies_after(10);
    let calls = Plan::new(server.addr()).calls(40).open(400.0);
    assert_eq!(calls.len(), 40);
    assert_eq!(count(&calls, completed), 10);
    assert_eq!(count(&calls, |end| matches!(end, End::Refused | End::Reset { .. })), 30);
}
