//! Tests that requests are served in the order of their arrival, and that no worker is idle while a request waits.

use crate::client::{Client, request};
use crate::{config, start, truth_of};
use brimful_target::{Target, TargetConfig};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Returns a client whose connection the server has already accepted.
fn known(target: &Target) -> Client {
    let mut client = Client::new(target.addr());
    assert_eq!(client.get("/none").status, 200);
    client
}

/// The CPU time used so far by the server's only worker.
fn worker_cpu(target: &Target) -> Duration {
    let prefix = format!("target-{}-", target.addr().port());
    let mut tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let worker = tasks.find(|t| std::fs::read_to_string(t.join("comm")).is_ok_and(|c| c.starts_with(&prefix))).unwrap();
    let schedstat = std::fs::read_to_string(worker.join("schedstat")).unwrap();
    Duration::from_nanos(schedstat.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn one_worker_serves_in_the_order_of_arrival() {
    let target = start("none=0,heavy=30ms", 1);
    let [mut first, mut second] = [known(&target), known(&target)];
    for _ in 0..5 {
        first.send(request("/heavy"));
        second.send(request("/none"));
        second.reply();
        assert!(first.unread_bytes() > 0, "the second request was served before the first");
        first.reply();
    }
}

#[test]
fn two_workers_serve_two_at_a_time() {
    let target = start("none=0,heavy=400ms", 2);
    let [mut first, mut second] = [known(&target), known(&target)];
    first.send(request("/heavy"));
    second.send(request("/none"));
    second.reply();
    assert_eq!(first.unread_bytes(), 0, "the second request waited for the first");
    first.reply();
}

#[test]
fn idle_workers_serve_waiting_requests() {
    let target = start("a=5ms", 3);
    let mut clients: Vec<Client> = (0..12).map(|_| Client::new(target.addr())).collect();
    for _ in 0..3 {
        clients.iter().for_each(|c| c.send(request("/a")));
        clients.iter_mut().for_each(|c| assert_eq!(c.reply().status, 200));
    }
    assert_eq!(truth_of(&target, 36).workers, 3);
}

#[test]
fn pipelining_does_not_starve_others() {
    const DEPTH: usize = 100;
    let target = start("none=0,a=1ms", 1);
    let [mut greedy, mut modest] = [known(&target), known(&target)];
    greedy.send(request("/a").repeat(DEPTH));
    modest.send(request("/a"));
    modest.reply();
    let one = greedy.reply();
    let length = one.head.len() + one.body.len();
    assert!(greedy.unread_bytes() < DEPTH / 2 * length, "the client with one request waited for the client with many");
    (1..DEPTH).for_each(|_| assert_eq!(greedy.reply().status, 200));
}

#[test]
fn the_backlog_has_the_requested_length() {
    // On a slow host, the long request may end before all clients have connected. Then the test is repeated with a
    // request that is twice as long.
    assert!((0..5).any(|power| backlog_was_full(1 << power)), "every request ended too soon on this host");
}

/// Fills the listen queue while the only worker is busy for this number of seconds. Returns false if the worker was
/// idle again before the queue was full.
fn backlog_was_full(seconds: u32) -> bool {
    const BACKLOG: u32 = 3;
    let mut config = config(&format!("none=0,heavy={seconds}s"), 1);
    config.backlog = BACKLOG;
    let target = Target::start(config).unwrap();
    let mut busy = known(&target);
    let before = worker_cpu(&target);
    busy.send(request("/heavy"));
    // Wait until the worker serves the request. Until then, it would still accept connections.
    while worker_cpu(&target) < before + Duration::from_millis(20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let connect = || TcpStream::connect_timeout(&target.addr(), Duration::from_millis(300));
    // Now no connection is accepted. On Linux, the queue contains at most one connection more than the backlog.
    let waiting: Vec<_> = (0..=BACKLOG).map(|_| connect()).collect();
    let too_many = connect();
    let was_full = busy.unread_bytes() == 0;
    if was_full {
        assert!(waiting.iter().all(Result::is_ok), "the listen queue is shorter than {BACKLOG}");
        assert!(too_many.is_err(), "the listen queue is longer than {BACKLOG}");
    }
    drop((waiting, too_many));
    busy.reply();
    known(&target);
    was_full
}

#[test]
fn invalid_configurations_are_rejected_at_the_start() {
    let message = |change: &dyn Fn(&mut TargetConfig)| {
        let mut config = config("a=0", 1);
        change(&mut config);
        Target::start(config).unwrap_err().to_string()
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(message(&|c| c.listen = taken.local_addr().unwrap()).contains("is in use"));
    assert!(message(&|c| c.workers = 0).contains("at least one"));
    assert!(message(&|c| c.backlog = u32::MAX).contains("net.core.somaxconn"));
    assert!(message(&|c| c.cpus = vec![1023]).contains("cannot pin a worker to CPU 1023"));
    assert!(message(&|c| c.cpus = vec![1 << 20]).contains("cannot pin a worker to CPU 1048576"));
    assert!(message(&|c| c.classes.clear()).contains("no service class"));
    assert!(message(&|c| c.classes.push(c.classes[0].clone())).contains("two service classes are named `a`"));
}

#[test]
fn workers_run_where_they_are_pinned() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..1024).find(|&cpu| allowed.is_set(cpu)).unwrap();
    let mut config = config("a=0", 2);
    config.cpus = vec![cpu];
    let target = Target::start(config).unwrap();
    let prefix = format!("target-{}-", target.addr().port());
    let mut found = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
        if status.starts_with(&format!("Name:\t{prefix}")) {
            found += 1;
            assert!(status.contains(&format!("Cpus_allowed_list:\t{cpu}\n")), "{status}");
        }
    }
    assert_eq!(found, 2);
}

#[test]
fn a_stopping_server_responds_to_requests_that_have_arrived() {
    for workers in [1, 4] {
        let target = start("none=0,heavy=5ms", workers);
        let addr = target.addr();
        let mut clients: Vec<Client> = (0..4).map(|_| known(&target)).collect();
        clients.iter().for_each(|c| c.send(request("/heavy")));
        target.stop();
        for client in &mut clients {
            let reply = client.reply();
            assert_eq!((reply.status, reply.field("connection")), (200, Some("close")), "{workers} workers");
            assert!(client.has_ended());
        }
        assert!(TcpStream::connect(addr).is_err(), "{workers} workers");
    }
}

#[test]
fn stopping_does_not_wait_for_a_long_queue() {
    let target = start("none=0,heavy=300ms", 1);
    let clients: Vec<Client> = (0..40).map(|_| known(&target)).collect();
    clients.iter().for_each(|c| c.send(request("/heavy")));
    target.stop();
    // All forty requests would need 12 s of CPU time. So some get no response within the grace period of 1 s, and their
    // connections are reset.
    let answered = clients.iter().filter(|client| client.stream().peek(&mut [0]).is_ok_and(|n| n > 0)).count();
    assert!(answered < clients.len(), "all {answered} requests got a response");
}
