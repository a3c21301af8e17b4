//! A Record for tests, with the values of the run in Figure 1 of the httperf paper (Mosberger & Jin 1998).

use brimful_core::counts::{Counts, StatusCounts, WireBytes};
use brimful_core::record::{
    ClassRecord, Generator, HostContention, Rates, Record, ReplyRate, SCHEMA, Summary, Verdict,
};
use brimful_core::server::HostProbe;
use std::collections::BTreeMap;

/// A summary of times with this mean, in microseconds; the other statistics are multiples of it.
pub fn summary(mean: f64) -> Option<Summary> {
    Some(Summary {
        count: 26_701,
        mean,
        min: mean / 10.0,
        p50: mean * 0.9,
        p90: mean * 2.0,
        p95: mean * 3.0,
        p99: mean * 5.0,
        p999: mean * 8.0,
        max: mean * 10.0,
        stddev: mean / 2.0,
    })
}

/// The Record (result document) of the run in Figure 1 of the httperf paper.
pub fn record() -> Record {
    let counts = Counts {
        scheduled: 27_000,
        sent: 27_000,
        connect_attempts: 27_000,
        established: 27_000,
        completed: 26_701,
        timed_out: 299,
        status: StatusCounts { s2xx: 26_701, ..StatusCounts::default() },
        ..Counts::default()
    };
    Record {
        schema: SCHEMA.to_owned(),
        started_at: "1998-06-23T12:00:00Z".to_owned(),
        started_monotonic_ns: 0,
        duration_s: 184.996,
        window_s: 180.0,
        workload: None,
        brimful_version: None,
        command: vec!["brimful".to_owned()],
        labels: BTreeMap::new(),
        machine: None,
        server_software: None,
        target: "http://127.0.0.1:8080/".to_owned(),
        seed: 1,
        interrupted: false,
        stopped_by: None,
        warm_up_s: None,
        verdict: Verdict::from_reasons(vec![]),
        rates: Rates {
            offered: 150.0,
            sent: 150.0,
            connect_attempts: 150.0,
            established: 150.0,
            completed: 148.3,
            ..Rates::default()
        },
        counts,
        status_codes: BTreeMap::new(),
        status_classes: BTreeMap::new(),
        response_time_us: summary(5_000.0),
        response_mean_ci95_us: Some(40.0),
        service_time_us: summary(4_650.0),
        connect_time_us: summary(300.0),
        connection_lifetime_us: summary(5_000.0),
        responses_per_connection: Some(1.0),
        handshake_time_us: None,
        first_byte_us: summary(4_600.0),
        lateness_us: summary(8.0),
        http: None,
        tls: None,
        tls_failures: vec![],
        http2_errors: vec![],
        wants_tls: false,
        bytes: WireBytes { received: 33_269_446, sent: 1_944_000 },
        reply_rate: ReplyRate {
            samples: 36,
            min: Some(139.8),
            mean: Some(148.3),
            max: Some(150.3),
            stddev: Some(2.7),
            ci95_half_width: Some(0.91),
        },
        classes: BTreeMap::from([("all".to_owned(), ClassRecord::default())]),
        sessions: None,
        addresses: Vec::new(),
        redirects: None,
        intervals: vec![],
        hdr: BTreeMap::new(),
        hdr_value_unit: "ns".to_owned(),
        generator: Generator {
            cpu_s: Some(17.972),
            cpu_user_s: Some(5.531),
            cpu_system_s: Some(12.441),
            busy: 0.123,
            longest_gap_s: Some(0.001),
            threads: 1,
            max_open_connections: 47,
            engine: "epoll".to_owned(),
            tick_s: None,
            max_rate: None,
            host: HostContention::default(),
            host_probe: Some(HostProbe { arithmetic_mops: 2_310.0, memory_mreads: 25.3 }),
            panics: Vec::new(),
            body_error: None,
        },
        server: None,
        objectives: vec![],
        calibration: None,
        shards: vec![],
        account: None,
    }
}
