//! Tests that every call is counted exactly once with every misbehaving server of the test kit. The tests use epoll and
//! io_uring, an open load (a fixed schedule) and a closed load (a number of clients), and kept, pipelined and new
//! connections.
//!
//! The outcome of a call may depend on timing. But every call must be counted once, and malformed bytes must never be
//! accepted as a response.

use crate::call_recorder::{CallRecorder, ObservedCall};
use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan};
use brimful_core::Nanos;
use brimful_core::counts::Counts;
use brimful_stats::{Account, Collector};
use brimful_testkit::{HostileBehaviour, hostile_behaviours};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

on_each_engine!(
    every_call_is_counted_once_on_kept_connections,
    every_call_is_counted_once_on_pipelined_connections,
    every_call_is_counted_once_on_new_connections,
);

/// The response timeout. It is short, because most calls to these servers end only by this timeout.
const TIMEOUT: Nanos = Nanos::from_millis(40);
const CALLS: u64 = 6;
/// Number of servers that are tested at the same time, because each test mostly waits for timeouts.
const AT_ONCE: usize = 6;

fn every_call_is_counted_once_on_kept_connections(case: Case) {
    every_behaviour(|addr| plan(case, addr));
}

fn every_call_is_counted_once_on_pipelined_connections(case: Case) {
    every_behaviour(|addr| plan(case, addr).configure(|c| c.connections.pipeline = 4));
}

fn every_call_is_counted_once_on_new_connections(case: Case) {
    every_behaviour(|addr| plan(case, addr).configure(|c| c.connections.calls_per_connection = Some(1)));
}

fn plan(case: Case, addr: SocketAddr) -> Plan {
    Plan::new(case, addr).calls(CALLS).configure(|c| {
        (c.connections.connect_timeout, c.connections.response_timeout) = (Some(TIMEOUT), TIMEOUT);
        // The schedule may last much longer than the run, which ends with its last call. On a slow host, a call that
        // receives endless bytes may end late.
        c.window = Nanos::from_secs(600);
    })
}

/// Tests every misbehaving server, and then reports those with which an invariant was violated.
fn every_behaviour(plan: impl Fn(SocketAddr) -> Plan + Sync) {
    let (queue, broken) = (Mutex::new(hostile_behaviours()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(hostile) = next(&queue) {
                    let server = hostile.start();
                    let plan = plan(server.addr());
                    for (load, open) in [("open", true), ("closed", false)] {
                        let tried = catch_unwind(AssertUnwindSafe(|| law(&hostile, &plan, open)));
                        let complaint = tried.unwrap_or_else(|panic| Err(message(&*panic)));
                        let name = &hostile.name;
                        broken.lock().unwrap().extend(complaint.err().map(|why| format!("{name}, {load}: {why}")));
                    }
                }
            });
        }
    });
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "{} cases:\n{}", broken.len(), broken.join("\n"));
}

fn next(queue: &Mutex<Vec<HostileBehaviour>>) -> Option<HostileBehaviour> {
    queue.lock().unwrap().pop()
}

fn law(hostile: &HostileBehaviour, plan: &Plan, open: bool) -> Result<(), String> {
    let account = || Account::new(&["all".to_owned()], plan.config.window);
    let observer = || (CallRecorder::default(), Collector::new(account()));
    let control = Control::default();
    let run = if open {
        plan.drive(|shard| plan.constant(1000.0, shard), observer, &control)
    } else {
        plan.drive(|shard| plan.clients(4, shard), observer, &control)
    };
    let (new_observer, collector) = run.observer;
    new_observer.calls.iter().for_each(ObservedCall::check);
    let counts = collector.into_account().counts();
    let Counts { scheduled, completed, .. } = counts;
    if counts.imbalance() != (0, 0) || scheduled != CALLS {
        return Err(format!("{:?} of {CALLS} left over: {counts:?}", counts.imbalance()));
    }
    let (connections, responses) = new_observer
        .connections
        .iter()
        .fold((0, 0), |(n, sum), connection| (n + 1, sum + u64::from(connection.responses)));
    if connections != counts.established || responses < completed {
        return Err(format!("{connections} connections ended, with {responses} responses: {counts:?}"));
    }
    if completed > 0 && !hostile.call_may_complete {
        return Err(format!("{completed} calls completed without a whole response: {counts:?}"));
    }
    Ok(())
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}
