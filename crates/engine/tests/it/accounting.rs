//! Tests that every call is counted, however it ends, and checks the numbers of calls per outcome. (Every test of the
//! engine also checks with `ObservedCall::check` that a call's events are consistent.)

use crate::call_recorder::{ObservedCall, completed, count, count_connects, refused, reset};
use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan, wait_until};
use brimful_core::workload::{RequestClass, Workload as WorkloadDoc};
use brimful_core::{End, Nanos};
use brimful_engine::{Clock, Close, Engine};
use brimful_os::clock;
use brimful_stats::{Account, Collector, LiveProgress};
use brimful_testkit::{RawServer, RefusingPort, Request, Step, script, with_length};
use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;

on_each_engine!(
    a_port_where_nothing_listens_refuses,
    a_stop_ends_every_call_in_flight,
    a_stop_ends_the_wait_for_an_agreed_start,
    a_server_that_dies_is_reset_then_refused,
    a_listener_that_comes_back_is_used_again,
    shards_account_for_the_same_calls,
    live_figures_are_published_during_the_run_and_at_its_end,
);

fn a_port_where_nothing_listens_refuses(case: Case) {
    let port = RefusingPort::reserve();
    let calls = Plan::new(case, port.addr()).calls(20).run_open(1000.0);
    assert_eq!((count(&calls, refused), count_connects(&calls)), (20, 20));
}

fn a_stop_ends_every_call_in_flight(case: Case) {
    let server = RawServer::never_answers();
    let control = Control::default();
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until(|| server.connections() >= 3);
            control.stop.store(true, Ordering::Relaxed);
        });
        Plan::new(case, server.addr()).run_open_load(100.0, &control)
    });
    assert!(run.interrupted);
    let calls = run.observer.calls;
    assert!(calls.len() >= 3);
    assert!(calls.iter().all(|call| matches!(call.end(), End::Unfinished { .. })), "{calls:?}");
}

/// Stops a run before the start time that the processes of a distributed run have agreed on. Expects that the run ends
/// at once. The shards used to wait for the start even after the stop.
fn a_stop_ends_the_wait_for_an_agreed_start(case: Case) {
    const FAR_AHEAD: Nanos = Nanos::from_secs(600);
    let server = RawServer::never_answers();
    let control = Control::default();
    control.stop.store(true, Ordering::Relaxed);
    let mut plan = Plan::new(case, server.addr());
    plan.config.start = clock::now() + FAR_AHEAD;
    let run = plan.run_open_load(100.0, &control);
    assert!(run.interrupted && clock::now() < plan.config.start);
    assert!(run.observer.calls.is_empty(), "{:?}", run.observer.calls);
}

fn a_server_that_dies_is_reset_then_refused(case: Case) {
    let server = RawServer::dies_after(10);
    let calls = Plan::new(case, server.addr()).calls(40).run_open(400.0);
    assert_eq!((calls.len(), count(&calls, completed)), (40, 10));
    assert_eq!(count(&calls, |end| refused(end) || reset(end)), 30);
}

/// Stops the server's listener for a while, and then starts another one. Expects that all calls before and after it
/// complete, and that the calls in between are refused, or reset if they reuse a closed connection.
fn a_listener_that_comes_back_is_used_again(case: Case) {
    let answering = || script([Step::Request, Step::Send(with_length(b"hello"))]);
    let server = RawServer::start(answering());
    let addr = server.addr();
    let control = Control::default();
    let ended = || control.ended.load(Ordering::Relaxed);
    let now = || Clock::starting_in(Nanos::ZERO).epoch_ns();
    let (run, times) = std::thread::scope(|scope| {
        let away = scope.spawn(|| {
            wait_until(|| ended() >= 20);
            let leaving = now();
            drop(server);
            let away = [leaving, now()];
            let before = ended();
            wait_until(|| ended() >= before + 100);
            let returning = now();
            let server = RawServer::start_on(TcpListener::bind(addr).unwrap(), answering());
            let back = now();
            wait_until(|| ended() == 400);
            drop(server);
            (away, [returning, back])
        });
        let run = Plan::new(case, addr).calls(400).run_open_load(400.0, &control);
        (run, away.join().unwrap())
    });
    let since_start = |times: [u64; 2]| times.map(|at| Nanos(at - run.started_monotonic_ns));
    let ([leaving, gone], [returning, back]) = (since_start(times.0), since_start(times.1));
    let calls = &run.observer.calls;
    let (answered, refused, reset) = (count(calls, completed), count(calls, refused), count(calls, reset));
    assert_eq!((calls.len(), answered + refused + reset), (400, 400));
    assert!(refused >= 50, "{refused} refused");
    for call in calls {
        let (begun, at) = (call.begun.unwrap(), call.outcome().at);
        let (there, absent) = (at < leaving || begun > back, begun > gone && at < returning);
        assert!(!there || completed(call.end()), "the server was listening: {call:?}");
        assert!(!absent || !completed(call.end()), "the server was not listening: {call:?}");
    }
}

fn live_figures_are_published_during_the_run_and_at_its_end(case: Case) {
    let server = RawServer::start(script([Step::Request, Step::Send(with_length(b"hello"))]));
    let mut plan = Plan::new(case, server.addr()).calls(u64::MAX);
    plan.shards = 2;
    let (live, control) = (LiveProgress::default(), Control::default());
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until(|| live.summary().counts().completed >= 20);
            control.stop.store(true, Ordering::Relaxed);
        });
        let collector = || Collector::with_live(Account::new(&["all".to_owned()], plan.config.window), &live);
        plan.drive(|shard| plan.constant(400.0, shard), collector, &control)
    });
    assert!(run.interrupted, "the run was stopped before its end");
    assert_eq!(live.summary().counts(), run.observer.into_account().counts());
}

fn shards_account_for_the_same_calls(case: Case) {
    let server = mixed_server();
    let mut plan = mixed_plan(case.engine, server.addr()).calls(300);
    plan.shards = 3;
    assert_eq!(plan.run_closed(9).len(), 300);
}

/// Expects that epoll and io_uring count the same calls and bytes with the same seed. The server's responses depend
/// only on the request.
#[test]
fn both_engines_count_the_same() {
    let path = concat!(module_path!(), "::both_engines_count_the_same");
    let Some(_) = Case::new(Engine::Uring, path) else { return };
    let server = mixed_server();
    let figures = |engine| {
        let calls = mixed_plan(engine, server.addr()).calls(3000).run_closed(10);
        let mut figures: BTreeMap<_, (u64, u64, u64)> = BTreeMap::new();
        for outcome in calls.iter().map(ObservedCall::outcome) {
            let figure = figures.entry((outcome.call.class, format!("{:?}", outcome.end))).or_default();
            figure.0 += 1;
            figure.1 += outcome.bytes_sent;
            figure.2 += outcome.bytes_received;
        }
        figures
    };
    let epoll = figures(Engine::Epoll);
    assert_eq!(epoll.len(), 5, "each class has one way to end: {epoll:?}");
    assert_eq!(epoll, figures(Engine::Uring));
}

fn mixed_plan(engine: Engine, addr: SocketAddr) -> Plan {
    let class = |name: &str| RequestClass {
        name: name.to_owned(),
        method: if name == "post" { "POST" } else { "GET" }.to_owned(),
        path: format!("/{name}"),
        body: if name == "post" { "x".repeat(10_000) } else { String::new() },
        ..WorkloadDoc::single_class("GET", "/").classes.remove(0)
    };
    Plan::with_classes(engine, addr, &["good", "post", "absent", "cut", "garbage"].map(class), Close::Fin)
}

fn mixed_server() -> RawServer {
    RawServer::start(|conn, _| {
        let mut reader = BufReader::new(&conn);
        while let Some(request) = Request::read(&mut reader) {
            let (answer, goes_on) = match request.target.as_str() {
                "/good" => (with_length(&[b'x'; 3000]), true),
                "/post" => (with_length(request.body.len().to_string().as_bytes()), true),
                "/absent" => {
                    (b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n?\r\n0\r\n\r\n".to_vec(), true)
                }
                "/cut" => (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut".to_vec(), false),
                _ => (b"nonsense\r\n\r\n".to_vec(), false),
            };
            if (&conn).write_all(&answer).is_err() || !goes_on {
                return;
            }
        }
    })
}
