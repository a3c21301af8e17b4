//! Tests the reference server over real sockets: HTTP, the queue, and the CPU times that the server reports.

// Clippy permits `unwrap` in test functions, but not in the functions that they call.
#![allow(clippy::unwrap_used)]

mod client;
mod http;
mod protocols;
mod queue;
mod robust;
mod steps;
mod truth;

use brimful_target::{Distribution, ReferenceCpuTimes, ServiceClass, Target, TargetConfig};
use std::time::{Duration, Instant};

fn config(service: &str, workers: usize) -> TargetConfig {
    TargetConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        classes: ServiceClass::parse_list(service).unwrap(),
        distribution: Distribution::Deterministic,
        workers,
        backlog: 128,
        pool: None,
        rate_limit: None,
        cpus: Vec::new(),
        read_dir: std::env::temp_dir(),
        tls: false,
        seed: 1,
    }
}

fn start(service: &str, workers: usize) -> Target {
    Target::start(config(service, workers)).unwrap()
}

/// Waits until the CPU time of this number of requests is accounted, and returns the server's CPU times. A client may
/// receive a response before the worker has accounted its CPU time.
fn truth_of(target: &Target, requests: u64) -> ReferenceCpuTimes {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let truth = target.cpu_times();
        let booked: u64 = truth.classes.values().map(|c| c.requests).sum();
        if booked >= requests || Instant::now() > patience {
            assert_eq!(booked, requests);
            return truth;
        }
        std::thread::yield_now();
    }
}
