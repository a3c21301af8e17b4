//! Tests `brimful load` against real servers.

use crate::documents;
use crate::plan::Files;
use crate::program::{Done, run, words};
use brimful_core::counts::Counts;
use brimful_core::record::Record;
use brimful_core::workload::{AttemptPace, Load, Trace};
use brimful_core::{Nanos, Rate};
use brimful_testkit::{Apache, ApacheOptions, Mpm, Nginx, NginxOptions};
use std::fs;

/// Runs `load`. Exit code 4 is also accepted: on a busy machine, the load generator may be late.
fn load(args: &[&str]) -> (Record, Done) {
    let args = [&["load", "--json"], args].concat();
    let done = run(&args).exits(&[0, 4]);
    let record = documents::record(&done.stdout);
    assert_eq!(record.verdict.valid, done.code == 0, "{:#?}", record.verdict);
    assert_eq!(record.command[1..], args[..]);
    (record, done)
}

const CALLS: u64 = 40;

/// Runs a load of every kind, both with connections that stay open and with a new connection for each call. Asserts
/// that all calls succeed.
fn run_all_loads(url: &str) {
    let calls = CALLS.to_string();
    for pace in [&["--rate", "400"][..], &["--rate", "400", "--arrivals", "poisson"], &["--clients", "3"]] {
        for connections in [&[][..], &["--new-connection"]] {
            let args = [&[url, "--requests", &calls], pace, connections].concat();
            let (record, _) = load(&args);
            let counts = record.counts;
            assert_eq!((counts.scheduled, counts.status.s2xx, counts.errors()), (CALLS, CALLS, 0), "{counts:#?}");
            assert_eq!(counts.connect_attempts, counts.established);
            if !connections.is_empty() {
                assert_eq!(counts.established, CALLS);
            } else if pace[0] == "--rate" {
                // On a busy host, the first response may arrive after the last call is due. Then no connection is
                // reused; this does not happen in every run.
                let reused = |counts: &Counts| counts.established < CALLS;
                let in_another_run = || (0..10).any(|_| reused(&load(&args).0.counts));
                assert!(reused(&counts) || in_another_run(), "no connection was used twice: {pace:?}, {counts:#?}");
            } else {
                assert!(record.generator.max_open_connections <= 3, "{:?}", record.generator);
            }
            if pace[0] == "--clients" {
                assert_eq!(record.window_s, record.duration_s, "clients offer load until the last response");
            } else if pace.len() == 2 {
                assert_eq!(record.window_s, 0.1, "40 calls at 400/s take 0.1 s, even if responses are late");
            }
            assert!(record.bytes.received > CALLS * "HTTP/1.1 200 OK\r\n\r\nhello\n".len() as u64);
        }
    }
}

#[test]
fn all_loads_on_nginx() {
    run_all_loads(&Nginx::start(NginxOptions::default()).url());
}

#[test]
fn all_loads_on_apache_event() {
    // If few workers are free, Apache closes connections that should stay open, and calls on them fail. So it has one
    // worker more than there are calls.
    let max_workers = CALLS as usize + 1;
    run_all_loads(&Apache::start(ApacheOptions { max_workers, ..Default::default() }).url());
}

#[test]
fn all_loads_on_apache_prefork() {
    // An open load may open a connection for every call, and Apache needs a process for each. A connection without a
    // process would wait for 75 s.
    let options = ApacheOptions { mpm: Mpm::Prefork, max_workers: CALLS as usize, ..ApacheOptions::default() };
    run_all_loads(&Apache::start(options).url());
}

#[test]
fn the_number_of_calls_is_rate_times_duration() {
    let nginx = Nginx::start(NginxOptions::default());
    let (record, _) = load(&[&nginx.url(), "--rate", "500", "--duration", "1200ms", "--seed", "11"]);
    assert_eq!((record.counts.scheduled, record.seed, record.interrupted), (600, 11, false));
    assert_eq!(record.window_s, 1.2);
    let offered: Vec<u64> = record.intervals.iter().map(|interval| interval.offered).collect();
    // No calls are due in later intervals. These exist only if responses are late.
    assert!(offered.starts_with(&[500, 100]) && offered[2..].iter().all(|calls| *calls == 0), "{offered:?}");
    let accounts = std::path::Path::new("/proc/self/schedstat").exists();
    assert_eq!(record.generator.host.cpu_wait_s.is_some(), accounts, "{:?}", record.generator);
    let probe = record.generator.host_probe.expect("the host was probed before the load");
    assert!(probe.arithmetic_mops > 0.0 && probe.memory_mreads > 0.0, "{probe:?}");
    assert!((record.rates.offered - 500.0).abs() < 1e-6, "{:?}", record.rates);
    assert_eq!(record.target, nginx.url());
    assert!(record.server.is_none());
}

#[test]
fn a_named_process_is_watched() {
    let nginx = Nginx::start(NginxOptions::default());
    let (pid, worker) = (nginx.pid(), nginx.workers()[0]);
    let (record, _) = load(&[&nginx.url(), "--clients", "2", "--duration", "1s", "--process", &pid.to_string()]);
    let server = record.server.expect("a server was watched");
    let [process] = &server.process[..] else { panic!("one program was named: {:#?}", server.process) };
    assert!(process.name.contains("nginx") && process.cpu_s > 0.0, "{process:#?}");
    assert!(process.pids.contains(&pid) && process.pids.contains(&worker), "{process:#?}");
    assert!(
        server.connections.listener.is_some_and(|listener| listener.backlog > 0),
        "{:?}",
        server.connections.listener
    );
}

#[test]
fn a_workload_mixes_its_classes() {
    let nginx =
        Nginx::start(NginxOptions { extra: "location = /old { return 301 /; }".to_owned(), ..Default::default() });
    let dir = tempfile::tempdir().unwrap();
    let workload = dir.path().join("workload.toml");
    let classes =
        "[[class]]\nname = \"page\"\npath = \"/index.html\"\n\n[[class]]\nname = \"moved\"\npath = \"/old\"\n";
    fs::write(&workload, classes).unwrap();
    let with = ["--workload", workload.to_str().unwrap(), "--clients", "8", "--requests", "2k", "--seed", "3"];
    for (mix, share) in [(&[][..], 0.5), (&["--mix", "page=0.8,moved=0.2"], 0.8)] {
        let (record, _) = load(&[&[nginx.url().as_str()], &with[..], mix].concat());
        let (page, moved) = (&record.classes["page"].counts, &record.classes["moved"].counts);
        assert_eq!((page.status.s2xx, moved.status.s3xx), (page.scheduled, moved.scheduled));
        assert_eq!(page.scheduled + moved.scheduled, 2000);
        // The tolerance is five standard deviations of a binomially distributed share of 2,000 calls.
        let seen = page.scheduled as f64 / 2000.0;
        assert!((seen - share).abs() < 0.056, "{seen} of the calls instead of {share}");
    }
    // A class that the mix does not contain receives no calls.
    let (record, _) = load(&[&[nginx.url().as_str()], &with[..], &["--mix", "moved=1"]].concat());
    assert_eq!(record.counts.status.s3xx, 2000);
}

/// The Record contains the kind of load, so that readers need not derive it from the command line.
#[test]
fn a_record_has_the_load_that_was_made() {
    let nginx = Nginx::start(NginxOptions::default());
    let files = Files::new();
    let classes = "[[class]]\nname = \"a\"\npath = \"/index.html\"\nheaders = { Cookie = \"hunter2\", X-B = \"b\" }\n";
    let workload = files.write("workload.toml", format!("{classes}[load]\nrate = 250.0\narrivals = \"poisson\"\n"));
    let instants = files.write("trace.txt", "0\n0.01\n0.02\n");
    let trace = format!("trace:{instants}");
    let url = nginx.url();
    let made = |args: &[&str]| load(&[&[url.as_str(), "-n", "3"], args].concat()).0.workload.unwrap();
    let closed = Load::Closed { clients: 2, think: Nanos::from_millis(5) };
    let s_clients = |pace| Load::SClients { attempts: 2, pace };
    let scheduled = |load| s_clients(AttemptPace::Schedule(Box::new(load)));
    for (flags, expected) in [
        (&["--rate", "100"][..], Load::Open { rate: Rate(100.0), arrivals: "constant".to_owned() }),
        (&["--clients", "2", "--think", "5ms"], closed.clone()),
        (&["--s-clients", "2"], Load::s_clients(2)),
        (&["--s-clients", "2", "--think", "5ms"], s_clients(AttemptPace::Think(Nanos::from_millis(5)))),
        (&["--s-clients", "2", "--rate", "250", "--arrivals", "poisson"], scheduled(Load::poisson(Rate(250.0)))),
        (
            &["--s-clients", "2", "--arrivals", &trace],
            scheduled(Load::Trace(Trace { file: instants.clone(), speed: 1.0 })),
        ),
        (&["--arrivals", &trace, "--speed", "2x"], Load::Trace(Trace { file: instants.clone(), speed: 2.0 })),
        (&["--workload", &workload], Load::poisson(Rate(250.0))),
        (&["--workload", &workload, "--clients", "2", "--think", "5ms"], closed),
    ] {
        assert_eq!(made(flags).load, Some(expected), "{flags:?}");
    }
    let class = &made(&["--workload", &workload]).classes[0];
    assert_eq!((class.headers["Cookie"].as_str(), class.headers["X-B"].as_str()), ("•••", "b"));
    let paced = format!("{classes}[load]\ns_clients = 2\nrate = 250.0\narrivals = \"poisson\"\n");
    let paced = files.write("paced.toml", paced);
    assert_eq!(made(&["--workload", &paced]).load, Some(scheduled(Load::poisson(Rate(250.0)))));
    let nothing = files.write("nothing.toml", classes);
    assert_eq!(made(&["--workload", &nothing]).load, Some(Load::Closed { clients: 10, think: Nanos::ZERO }));
    let both = files.write("both.toml", format!("{classes}[load]\nrate = 2.0\nclients = 3\n"));
    run(&["load", &url, "--workload", &both]).fails(2, "not several");
    run(&["load", &url, "--s-clients", "2", "--arrivals", "poisson"]).fails(2, "needs a mean rate: add --rate");
    run(&["load", &url, "--s-clients", "2", "--arrivals", &trace, "--think", "1s"]).fails(2, "leave out --think");
}

#[test]
fn the_seed_decides_the_schedule() {
    let nginx = Nginx::start(NginxOptions::default());
    let schedule = |seed: &str, threads: &str| {
        let url = nginx.url();
        let pace = ["--rate", "300", "--arrivals", "poisson", "--duration", "1100ms"];
        let (record, _) = load(&[&[url.as_str(), "--seed", seed, "--threads", threads], &pace[..]].concat());
        assert_eq!(record.generator.threads.to_string(), threads);
        let offered: Vec<u64> = record.intervals.iter().map(|interval| interval.offered).filter(|n| *n > 0).collect();
        (record.counts.scheduled, offered)
    };
    let first = schedule("42", "1");
    assert_eq!(first, schedule("42", "1"));
    assert_eq!(first, schedule("42", "2"), "a schedule split over threads is the same schedule");
    assert_ne!(first, schedule("43", "1"));
}

#[test]
fn headers_method_and_body_are_sent() {
    let nginx = Nginx::start(NginxOptions {
        extra: "location /p { if ($http_x_test != sesame) { return 403; } if ($request_method != PUT) { return 405; } \
                if ($content_length != 3) { return 400; } return 204; }"
            .to_owned(),
        ..Default::default()
    });
    let url = format!("{}p", nginx.url());
    let full = [url.as_str(), "--clients", "1", "-n", "5", "-H", "X-Test: sesame", "-m", "PUT", "--data", "abc"];
    assert_eq!(load(&full).0.counts.status.s2xx, 5);
    assert_eq!(load(&full[..9]).0.counts.status.s4xx, 5);
}

#[test]
fn secrets_are_sent_and_not_recorded() {
    let sesame = |name: &str| format!("if ($http_{name} != hunter2) {{ return 403; }}");
    let location = format!("location /p {{ {} {} return 204; }}", sesame("authorization"), sesame("x_internal"));
    let nginx = Nginx::start(NginxOptions { extra: location, ..Default::default() });
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("record.json");
    let url = format!("{}p", nginx.url());
    let pace = ["--clients", "1", "-n", "5", "--out", out.to_str().unwrap()];
    let secrets = ["-HAuthorization: hunter2", "--header=X-Internal:hunter2", "--secret-header", "x-internal"];
    let done = run(&[&["load", "--json", &url], &pace[..], &secrets].concat()).exits(&[0, 4]);
    let record = documents::record(&done.stdout);
    assert_eq!(record.counts.status.s2xx, 5);
    let recorded = ["-HAuthorization: •••", "--header=X-Internal: •••", "--secret-header", "x-internal"];
    assert!(record.command.ends_with(&recorded.map(str::to_owned)), "{:?}", record.command);
    let file = fs::read_to_string(&out).unwrap();
    assert!(!done.stdout.contains("hunter2") && !done.stderr.contains("hunter2") && !file.contains("hunter2"));
    let password = "http://me:hunter2@127.0.0.1/";
    let done = run(&["load", password, "--rate", "1"]).exits(&[2]);
    assert!(done.stderr.contains("http://•••@127.0.0.1/") && !done.stderr.contains("hunter2"), "{}", done.stderr);
}

#[test]
fn the_text_has_its_groups_and_the_file_has_the_document() {
    let nginx = Nginx::start(NginxOptions::default());
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("record.json");
    let to_file = ["--clients", "2", "--requests", "30", "--out", out.to_str().unwrap()];
    let full = ["Total", "Connection rate", "Request rate", "Reply rate", "CPU time", "Times"];
    for detail in [&[][..], &["--full"]] {
        let done = run(&[&["load", nginx.url().as_str()], &to_file[..], detail].concat()).exits(&[0, 4]);
        let labels = |labels: &[&str]| {
            labels.iter().filter(|label| done.stdout.lines().any(|line| line.starts_with(*label))).count()
        };
        assert_eq!(labels(&["Rate ", "Errors ", "Response ", "Service ", "Verdict ", "Next "]), 6, "{}", done.stdout);
        assert_eq!(labels(&full), if detail.is_empty() { 0 } else { full.len() }, "{}", done.stdout);
        assert!(words(&done.stdout).contains("completed: 30 calls in "), "{}", done.stdout);
        let few = done.stdout.contains("p50 ") && done.stdout.contains("p95 takes 200 calls");
        assert!(few, "30 calls are too few for a 99th percentile: {}", done.stdout);
    }
    assert_eq!(documents::record(&fs::read_to_string(&out).unwrap()).counts.completed, 30);
    let done = run(&[&["load", "--json", nginx.url().as_str()], &to_file[..]].concat()).exits(&[0, 4]);
    assert_eq!(done.stdout, fs::read_to_string(&out).unwrap(), "the file and stdout have the same document");
    assert_eq!(done.stderr, "");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no other file is left in the directory");
}
