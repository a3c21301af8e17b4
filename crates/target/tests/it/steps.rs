//! Tests the pool, and steps other than CPU time. Times are only compared with lower bounds, because a busy machine
//! makes everything slower.

use crate::client::{Client, request};
use crate::{config, start, truth_of};
use brimful_target::{PoolUsage, Target, TargetConfig, TargetError};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Sends this number of requests at the same time. Returns the time until the last response.
fn together(target: &Target, requests: usize) -> Duration {
    let mut clients: Vec<Client> = (0..requests).map(|_| Client::new(target.addr())).collect();
    let began = Instant::now();
    clients.iter().for_each(|client| client.send(request("/a")));
    clients.iter_mut().for_each(|client| assert_eq!(client.reply().status, 200));
    began.elapsed()
}

/// Reads a counter of the I/O of one worker (proc_pid_io(5)).
fn io_of_worker(target: &Target, counter: &str) -> u64 {
    let prefix = format!("target-{}-", target.addr().port());
    let mut tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let worker = tasks.find(|t| std::fs::read_to_string(t.join("comm")).is_ok_and(|c| c.starts_with(&prefix))).unwrap();
    let io = std::fs::read_to_string(worker.join("io")).unwrap();
    io.lines().find_map(|line| line.strip_prefix(counter)?.strip_prefix(": ")).unwrap().parse().unwrap()
}

#[test]
fn a_sleep_takes_time_and_no_cpu() {
    let target = start("a=sleep:150ms", 1);
    assert!(together(&target, 2) >= Duration::from_millis(300));
    let class = truth_of(&target, 2).classes["a"];
    // Two requests slept for 150 ms each. Their mean CPU time must be far below that, because sleeping uses no CPU
    // time.
    assert!(class.nominal_s == 0.0 && class.mean_cpu_s < 0.05, "{class:?}");
}

#[test]
fn a_sleeping_worker_delays_no_other() {
    // The sleep of the first request is longer than the test can take, so its response cannot come before that of the
    // second request.
    let target = start("a=sleep:1h,b=sleep:1ms", 2);
    let [mut first, mut second] = [Client::new(target.addr()), Client::new(target.addr())];
    first.send(request("/a"));
    second.send(request("/b"));
    assert_eq!(second.reply().status, 200);
    assert_eq!(first.unread_bytes(), 0);
    // Stopping the server must not wait for the end of the sleep, only for the grace period of one second.
    target.stop();
    assert!(first.has_ended(), "the request that was not served got a response");
}

#[test]
fn requests_above_the_rate_limit_get_a_response_at_once() {
    let target = Target::start(TargetConfig { rate_limit: Some(1), ..config("a=0", 1) }).unwrap();
    let mut client = Client::new(target.addr());
    let mut status = || {
        client.send(request("/a"));
        client.reply().status
    };
    // Only one request per second is admitted, so fewer than 1,000 requests are served, even on a slow host.
    assert_eq!(status(), 200);
    assert!((0..1000).any(|_| status() == 429));
    let error = Target::start(TargetConfig { rate_limit: Some(0), ..config("a=0", 1) }).unwrap_err();
    assert!(error.to_string().contains("at least one"), "{error}");
}

#[test]
fn a_pool_limits_the_requests_served_at_once() {
    let target = Target::start(TargetConfig { pool: Some(1), ..config("a=sleep:20ms", 4) }).unwrap();
    assert!(together(&target, 8) >= Duration::from_millis(8 * 20));
    let truth = truth_of(&target, 8);
    assert_eq!(truth.pool.map(|pool| (pool.places, pool.most_served_at_once)), Some((1, 1)));

    let target = Target::start(TargetConfig { pool: Some(2), ..config("a=sleep:1h,b=0", 4) }).unwrap();
    let mut clients: Vec<Client> = (0..4).map(|_| Client::new(target.addr())).collect();
    clients[..2].iter().for_each(|client| client.send(request("/a")));
    let pool = |expected: fn(&PoolUsage) -> bool| {
        while !expected(&target.cpu_times().pool.unwrap()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    pool(|pool| pool.most_served_at_once == 2);
    clients[2].send(request("/b"));
    pool(|pool| pool.waited == 1);
    // Both slots of the pool are occupied for an hour. So the third request must wait in spite of a free worker. The
    // fourth request, for `/__truth`, has no class and needs no slot.
    let truth = clients[3].get("/__truth");
    assert!(truth.text().contains("\"most_served_at_once\":2"), "{}", truth.text());
    assert_eq!(clients[2].unread_bytes(), 0);
    assert!(start("a=0", 1).cpu_times().pool.is_none());
}

#[test]
fn requests_wait_for_the_lock() {
    let target = start("a=lock:20ms,b=sleep:1ms", 4);
    // CPU time may be slightly less than the demand, so the bound is 19 ms instead of 20 ms for each request.
    assert!(together(&target, 8) >= Duration::from_millis(8 * 19));
    let class = truth_of(&target, 8).classes["a"];
    assert!(class.nominal_s == 0.02 && class.mean_cpu_s >= 0.019, "{class:?}");
}

#[test]
fn work_uses_cpu_time_that_the_truth_counts() {
    let target = start("none=0,a=work:4ms,b=work:16ms+1ms", 1);
    let mut client = Client::new(target.addr());
    for path in ["/a", "/b", "/none"].repeat(30) {
        assert_eq!(client.get(path).status, 200);
    }
    let truth = truth_of(&target, 90);
    let [none, a, b] = ["none", "a", "b"].map(|name| truth.classes[name]);
    assert_eq!((a.requests, a.nominal_s, b.nominal_s), (30, 0.004, 0.017));
    // Other programs that use the caches change the CPU time, but by less than a factor of ten.
    for class in [a, b] {
        assert!((0.1..10.0).contains(&(class.mean_cpu_s / class.nominal_s)), "{class:?}");
    }
    // The requests of `a` and `b` alternate, so they run under the same conditions. `b` does four times the work of
    // `a`, so it must use more than twice the CPU time.
    assert!(b.cpu_s > 2.0 * a.cpu_s && a.cpu_s > 2.0 * none.cpu_s, "{truth:?}");
}

#[test]
fn a_read_reads() {
    const REQUESTS: u64 = 20;
    let target = start("none=0,a=read:256KiB", 1);
    let mut client = Client::new(target.addr());
    assert_eq!(client.get("/none").status, 200);
    let before = io_of_worker(&target, "rchar");
    (0..REQUESTS).for_each(|_| assert_eq!(client.get("/a").status, 200));
    let read = io_of_worker(&target, "rchar") - before;
    // The kernel also counts the bytes of requests that the worker received, about 40 bytes each.
    assert!((REQUESTS * (256 << 10)..REQUESTS * (257 << 10)).contains(&read), "{read}");
    assert_eq!(truth_of(&target, REQUESTS + 1).classes["a"].nominal_s, 0.0);
}

#[test]
fn what_steps_need_and_cannot_have_is_said_at_the_start() {
    let refused = Target::start(TargetConfig { pool: Some(0), ..config("a=0", 1) }).unwrap_err();
    assert!(matches!(refused, TargetError::EmptyPool) && refused.to_string().contains("at least one"));
    // Nobody can create a file in /proc, not even root.
    let nowhere = TargetConfig { read_dir: PathBuf::from("/proc"), ..config("a=read:4KiB", 1) };
    let message = Target::start(nowhere).unwrap_err().to_string();
    assert!(message.contains("in /proc (") && message.contains("--read-dir"), "{message}");
    let unused = TargetConfig { read_dir: PathBuf::from("/proc"), ..config("a=0", 1) };
    assert!(Target::start(unused).is_ok());
}
