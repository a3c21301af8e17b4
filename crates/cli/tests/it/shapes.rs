//! Tests loads other than a constant rate or a fixed number of clients: S-Clients, stages, bursts, traces and
//! pipelining. Also tests the choice of the I/O engine.

use crate::documents;
use crate::program::run;
use brimful_core::counts::Counts;
use brimful_core::record::Record;
use brimful_testkit::{Nginx, NginxOptions, full_backlog_listener};
use std::fs;
use std::time::{Duration, Instant};

fn load(args: &[&str]) -> Record {
    let args = [&["load", "--json"], args].concat();
    documents::record(&run(&args).exits(&[0, 4]).stdout)
}

/// Number of calls that were due in each second, up to the last second with such calls. Later seconds contain only late
/// responses.
fn offered(record: &Record) -> Vec<u64> {
    assert!(record.intervals.iter().all(|interval| interval.length_s <= 1.0), "{:#?}", record.intervals);
    let mut offered: Vec<u64> = record.intervals.iter().map(|interval| interval.offered).collect();
    while offered.last() == Some(&0) {
        offered.pop();
    }
    offered
}

#[test]
fn s_clients_overload_a_server_that_accepts_nothing() {
    let server = full_backlog_listener();
    let args = ["load", &server.url(), "--json", "--s-clients", "50", "--connect-timeout", "100ms", "--duration", "2s"];
    let attempts = || {
        let done = run(&args).exits(&[3, 4]);
        let record = documents::record(&done.stdout);
        assert_eq!(record.verdict.valid, done.code == 3, "a run that exits with 3 is valid: {:#?}", record.verdict);
        let Counts { connect_attempts, abandoned, .. } = record.counts;
        assert_eq!(abandoned, connect_attempts);
        assert!(record.generator.max_open_connections <= 50);
        // Each of the D S-Clients makes one attempt at a time, which lasts until the connect timeout T. So there are at
        // most D/T = 50/0.1 s = 500 attempts per second.
        assert!(connect_attempts <= 1000, "{:#?}", record.counts);
        connect_attempts
    };
    // A busy host may reduce the number of attempts in one run, but not in every run.
    let most = (0..10).map(|_| attempts()).find(|attempts| *attempts >= 900);
    assert!(most.is_some(), "none of ten runs made 90 % of the attempts");
}

#[test]
fn s_clients_make_one_call_per_connection() {
    let nginx = Nginx::start(NginxOptions::default());
    // The connect timeout is longer than an attempt takes on any host.
    let record = load(&[&nginx.url(), "--s-clients", "2", "--connect-timeout", "2s", "--requests", "50"]);
    let counts = record.counts;
    assert_eq!((counts.scheduled, counts.established, counts.status.s2xx), (50, 50, 50), "{counts:#?}");
}

#[test]
fn stages_ramp_to_their_rates() {
    let nginx = Nginx::start(NginxOptions::default());
    let record =
        load(&[&nginx.url(), "--stage", "1s:400", "--stage", "1s:400", "--stage", "0s:0", "--stage", "500ms:0"]);
    assert_eq!(record.window_s, 2.5);
    // In the first second, the rate rises from 0 to 400/s, which is a mean of 200/s. After that, it is constant.
    assert_eq!(offered(&record), [200, 400]);
}

#[test]
fn bursts_keep_the_mean() {
    let nginx = Nginx::start(NginxOptions::default());
    let record = load(&[&nginx.url(), "--rate", "200", "--arrivals", "onoff:1.5,50%,2s", "--duration", "4s"]);
    assert_eq!(offered(&record), [300, 100, 300, 100]);
}

#[test]
fn speed_compresses_a_trace_and_keeps_its_bursts() {
    let nginx = Nginx::start(NginxOptions::default());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.txt");
    fs::write(&path, "# seconds\n100.0\n100.0\n100.0\n108.0\n").unwrap();
    let trace = format!("trace:{}", path.display());
    let record = load(&[&nginx.url(), "--arrivals", &trace, "--speed", "4x"]);
    let counts = record.counts;
    assert_eq!((counts.scheduled, counts.completed), (4, 4), "{counts:#?}");
    assert_eq!(offered(&record), [3, 0, 1]);
    fs::write(&path, "1.0\nsoon\n").unwrap();
    run(&["load", &nginx.url(), "--arrivals", &trace]).fails(2, "line 2");
}

#[test]
fn pipelined_calls_share_connections() {
    let nginx = Nginx::start(NginxOptions::default());
    for engine in ["auto", "epoll"] {
        let record =
            load(&[&nginx.url(), "--clients", "40", "--pipeline", "8", "--requests", "2000", "--engine", engine]);
        let counts = record.counts;
        assert_eq!((counts.status.s2xx, counts.errors()), (2000, 0), "{counts:#?}");
        // nginx closes a connection after 1,000 requests, so a few connections are replaced.
        assert!(record.generator.max_open_connections <= 6, "{:?}", record.generator);
    }
}

/// A connection that is closed by RST has no TIME_WAIT state, so its port can be reused at once (Mosberger & Jin 1998,
/// §4.3).
#[test]
fn connections_closed_by_rst_leave_no_time_wait() {
    const LOCAL: &str = "127.0.0.77";
    const TIME_WAIT: &str = "06";
    let nginx = Nginx::start(NginxOptions::default());
    let local = "4D00007F"; // 127.0.0.77 in /proc/net/tcp
    let server = format!(":{:04X}", nginx.addr().port());
    let waiting = || {
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let is_waiting = |line: &&str| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            fields[1].starts_with(local) && fields[2].ends_with(&server) && fields[3] == TIME_WAIT
        };
        sockets.lines().skip(1).filter(is_waiting).count()
    };
    for (close, expected) in [("rst", 0), ("fin", 40)] {
        let shape = ["--rate", "400", "--requests", "40", "--new-connection", "--source-ip", LOCAL, "--close", close];
        let record = load(&[&[&*nginx.url()], &shape[..]].concat());
        assert_eq!((record.counts.established, record.counts.status.s2xx), (40, 40), "{:#?}", record.counts);
        // The server may close the last connection after the load has ended. Only then is it in TIME_WAIT.
        let begun = Instant::now();
        while waiting() < expected && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(waiting(), expected, "--close {close}");
    }
}

#[test]
fn the_record_names_the_engine_and_sockets_have_the_given_buffers() {
    let nginx = Nginx::start(NginxOptions::default());
    for (engine, names) in [("epoll", &["epoll"][..]), ("auto", &["uring", "epoll"])] {
        let tuned =
            ["--source-ip", "127.0.0.0/29", "--send-buffer", "4KiB", "--receive-buffer", "16KiB", "--close", "rst"];
        let args =
            [&[&*nginx.url(), "--rate", "500", "--requests", "50", "--new-connection", "--engine", engine], &tuned[..]];
        let record = load(&args.concat());
        assert!(names.contains(&record.generator.engine.as_str()), "{}", record.generator.engine);
        assert_eq!((record.counts.established, record.counts.status.s2xx), (50, 50), "{:#?}", record.counts);
    }
}

/// WebMonitor reports the means of 15 experiments (Almeida, Almeida & Yates 1997, §5).
#[test]
fn a_repeated_load_has_a_record_of_each_run_and_means_of_all() {
    let nginx = Nginx::start(NginxOptions::default());
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("run.json");
    let args = ["--rate", "100", "--requests", "20", "--seed", "5", "--repeat", "3", "--out", out.to_str().unwrap()];
    let done = run(&[&["load", &*nginx.url()], &args[..]].concat()).exits(&[0, 4]);
    assert!(done.stdout.contains("mean") && done.stdout.contains("± 95 %"), "{}", done.stdout);
    assert!(done.stdout.contains("3 runs of the same load, each with its own seed"), "{}", done.stdout);
    for number in 1..=3 {
        let text = std::fs::read_to_string(directory.path().join(format!("run-{number}.json"))).unwrap();
        let record = crate::documents::record(&text);
        assert_eq!((record.counts.status.s2xx, record.seed), (20, 4 + number));
    }
}
