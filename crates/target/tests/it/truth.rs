//! Tests that the server reports the same CPU times as the kernel.

use crate::client::{Client, request};
use crate::{config, start, truth_of};
use brimful_target::{Distribution, ReferenceCpuTimes, Target};

/// CPU seconds of the server's threads, as counted by the kernel.
fn cpu_of(target: &Target) -> f64 {
    let prefix = format!("target-{}-", target.addr().port());
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of_task = |path: std::path::PathBuf| {
        let comm = std::fs::read_to_string(path.join("comm")).ok()?;
        let on_cpu = std::fs::read_to_string(path.join("schedstat")).ok()?;
        comm.starts_with(&prefix).then_some(on_cpu.split(' ').next()?.parse::<f64>().ok()? / 1e9)
    };
    tasks.filter_map(|task| of_task(task.unwrap().path())).sum()
}

fn sum(truth: &ReferenceCpuTimes) -> f64 {
    truth.classes.values().map(|c| c.cpu_s).sum::<f64>() + truth.other_cpu_s
}

#[test]
fn each_class_takes_its_demand_and_little_more() {
    let target = start("none=0,light=100us,heavy=2ms", 1);
    let mut client = Client::new(target.addr());
    for _ in 0..100 {
        for path in ["/light", "/heavy", "/light", "/none"] {
            assert_eq!(client.get(path).status, 200);
        }
    }
    let truth = truth_of(&target, 400);
    for (name, requests, nominal_s) in [("none", 100, 0.0), ("light", 200, 100e-6), ("heavy", 100, 2e-3)] {
        let class = truth.classes[name];
        assert_eq!((class.requests, class.nominal_s), (requests, nominal_s));
        let mean = class.mean_cpu_s;
        assert!(mean >= nominal_s * 0.98, "{name}: {mean} s is less than its demand");
        // Processing a request takes 10–30 µs in addition to its demand, and longer on a busy host. CPU time that a
        // hypervisor steals during a busy loop counts as part of the loop. So the tolerance is large.
        assert!(mean <= 2.0 * nominal_s + 1e-3, "{name}: {mean} s is far more than its demand");
    }
}

#[test]
fn exponential_demands_average_to_the_mean() {
    const N: usize = 1000;
    let mut config = config("a=300us", 2);
    config.distribution = Distribution::Exponential;
    let target = Target::start(config).unwrap();
    let mut client = Client::new(target.addr());
    (0..N).for_each(|_| assert_eq!(client.get("/a").status, 200));
    let mean = truth_of(&target, N as u64).classes["a"].mean_cpu_s;
    // The tolerance is five standard errors of the mean, plus the time for processing the requests.
    let error = 5.0 / (N as f64).sqrt();
    assert!(mean > 300e-6 * (1.0 - error) && mean < 2.0 * 300e-6 * (1.0 + error) + 1e-3, "{mean}");
}

#[test]
fn every_nanosecond_is_booked_once() {
    let target = start("a=200us,b=1ms/200KiB", 2);
    let start = (target.cpu_times().total_cpu_s, cpu_of(&target));
    let mut keeping: Vec<Client> = (0..4).map(|_| Client::new(target.addr())).collect();
    for _ in 0..20 {
        keeping.iter().for_each(|c| c.send(request("/b")));
        keeping.iter_mut().for_each(|c| assert_eq!(c.reply().status, 200));
        // Some clients send a request in two pieces; others connect but send no request.
        let mut once = Client::new(target.addr());
        once.send("GET /a HTTP/1.1\r\nHo");
        once.send("st: here\r\nConnection: close\r\n\r\n");
        assert_eq!(once.reply().status, 200);
        assert!(once.has_ended());
        drop(Client::new(target.addr()));
        assert_eq!(keeping[0].get("/__truth").status, 200);
    }
    let truth = truth_of(&target, 100);
    // The server's CPU time and the kernel's are read one after another. They differ only by CPU time that the workers
    // have not added to an account yet.
    let end = (target.cpu_times().total_cpu_s, cpu_of(&target));
    let (booked, used) = (end.0 - start.0, end.1 - start.1);
    assert!((booked - used).abs() < 0.002, "booked {booked} s, used {used} s");
    assert!((sum(&truth) - truth.total_cpu_s).abs() < 1e-6);
    assert_eq!((truth.classes["a"].requests, truth.classes["b"].requests), (20, 80));
}

#[test]
fn the_truth_is_told_over_http() {
    let target = start("light=100us,heavy=1ms", 1);
    let mut client = Client::new(target.addr());
    for path in ["/light", "/light", "/heavy"] {
        client.get(path);
    }
    let response = client.get("/__truth");
    assert_eq!((response.status, response.field("content-type")), (200, Some("application/json")));
    let truth: ReferenceCpuTimes = serde_json::from_slice(&response.body).unwrap();
    assert_eq!((truth.workers, truth.distribution), (1, Distribution::Deterministic));
    assert_eq!((truth.classes["light"].requests, truth.classes["heavy"].requests), (2, 1));
    assert!((sum(&truth) - truth.total_cpu_s).abs() < 1e-6);
    assert!(truth.classes["heavy"].cpu_s >= 0.98e-3);
    // The CPU time of a request for `/__truth` is added to "other".
    let again: ReferenceCpuTimes = serde_json::from_slice(&client.get("/__truth").body).unwrap();
    assert!(again.other_cpu_s > truth.other_cpu_s);
    assert_eq!(again.classes["heavy"], truth.classes["heavy"]);
    let json: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(json["distribution"], "deterministic");
    assert!(json["classes"]["light"]["nominal_s"].is_f64());
}
