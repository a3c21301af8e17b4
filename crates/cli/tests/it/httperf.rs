//! Compares `brimful httperf` with the original httperf. With the same command line and the same nginx, both must print
//! the same report, line by line.
//!
//! Counts must be equal. Rates must agree with the schedule, within a tolerance for busy hosts. Times are not compared.

use crate::program::{Done, Running, brimful, lock_machine_exclusively, run};
use brimful_testkit::{CertificateFlaw, Certificates, Nginx, NginxOptions, RawServer, RefusingPort, with_length};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const REAL: &str = "/usr/bin/httperf";

/// The lines of a report. Each has a text, in which `#` replaces the numbers, and the numbers.
type Report = Vec<(String, Vec<f64>)>;

/// Parses the report in httperf's output.
fn report(output: &str) -> Report {
    let from = output.find("\nTotal: ").unwrap_or_else(|| panic!("there is no report in {output}"));
    output[from..].lines().filter(|line| !line.is_empty()).map(keys_and_numbers).collect()
}

fn keys_and_numbers(line: &str) -> (String, Vec<f64>) {
    let (mut keys, mut number, mut numbers) = (String::new(), String::new(), Vec::new());
    for c in line.chars().chain(['\n']) {
        let in_number = c.is_ascii_digit() || (c == '.' && !number.is_empty());
        // The 2 in `2xx` and powers of ten are part of the text of a line, not numbers.
        let of_key = keys.ends_with(|last: char| last.is_alphanumeric() || last == '^' || last == '*');
        if in_number && !of_key {
            number.push(c);
            continue;
        }
        if !number.is_empty() {
            if c == 'x' {
                keys += &number;
            } else {
                numbers.push(number.parse().unwrap_or(f64::NAN));
                keys.push('#');
            }
            number.clear();
        }
        keys.push(c);
    }
    let keys = keys.trim_end();
    // This histogram has a number for each session length up to the longest, so the number of numbers varies.
    let keys = if keys.starts_with("Session length histogram:") { "Session length histogram:" } else { keys };
    (keys.to_owned(), numbers)
}

/// The values that the program autobench extracts from a report: the numbers after certain words.
fn autobench_figures(output: &str) -> [f64; 9] {
    let number_after = |line: &str, word: &str| {
        let line = output.lines().find(|found| found.starts_with(line)).unwrap_or_else(|| panic!("no {line}"));
        let rest = &line[line.find(word).unwrap_or_else(|| panic!("no {word} in {line}")) + word.len()..];
        let number = rest.split_whitespace().next().unwrap_or_default();
        number.parse::<f64>().unwrap_or_else(|_| panic!("{number} behind {word} in {line}"))
    };
    [
        number_after("Total: ", "replies "),
        number_after("Connection rate: ", "rate: "),
        number_after("Request rate: ", "rate: "),
        number_after("Reply rate ", "min "),
        number_after("Reply rate ", "avg "),
        number_after("Reply rate ", "max "),
        number_after("Reply rate ", "stddev "),
        number_after("Reply time ", "response "),
        number_after("Net I/O: ", "I/O: "),
    ]
}

/// The origin of a test's pace: the rate on the command line, or the server. In each case, other values must be equal.
#[derive(Clone, Copy, PartialEq)]
enum Paced {
    /// The rate determines the pace, so rates must be equal.
    ByRate,
    /// The server determines the pace, so only counts must be equal.
    ByServer,
}

/// Lines whose numbers are counts or sizes, which must be equal.
const EXACT: [&str; 7] = [
    "Connection length [replies/conn]:",
    "Request size [B]:",
    "Reply size [B]:",
    "Reply status:",
    "Errors:",
    "Session: avg",
    "Session length histogram:",
];

/// Asserts that the report of brimful agrees with that of httperf.
fn compare(line: &str, paced: Paced, real: &str, ours: &str) {
    let context = format!("{line}\n\nreal:\n{real}\nours:\n{ours}");
    let (theirs, mine) = (report(real), report(ours));
    let keys = |report: &Report| report.iter().map(|(keys, _)| keys.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&theirs), keys(&mine), "the same keys in the same order: {context}");
    for ((keys, real), (_, ours)) in theirs.iter().zip(&mine) {
        let close = |places: &[usize], factor: f64| {
            for place in places {
                let (real, ours) = (real[*place], ours[*place]);
                assert!(real <= ours * factor + 0.11 && ours <= real * factor + 0.11, "{keys}: {context}");
            }
        };
        if keys.starts_with("Total:") {
            assert_eq!(real[..3], ours[..3], "{keys}: {context}");
            if paced == Paced::ByRate {
                close(&[3], 1.5);
            }
        } else if keys.starts_with("Session rate") {
            assert_eq!(real[4..], ours[4..], "{keys}: {context}");
        } else if EXACT.iter().any(|exact| keys.starts_with(exact)) {
            assert_eq!(real, ours, "{keys}: {context}");
        } else if paced == Paced::ByRate && (keys.starts_with("Connection rate") || keys.starts_with("Request rate")) {
            close(&[0, 1], 1.5);
        }
    }
    let (theirs, mine) = (autobench_figures(real), autobench_figures(ours));
    assert_eq!(theirs[0], mine[0], "{context}");
}

fn real(args: &[String]) -> Done {
    assert!(Path::new(REAL).exists(), "the real httperf is missing: `apt-get install httperf`");
    let mut command = Command::new(REAL);
    command.args(args);
    Running::start(command).finish()
}

/// An nginx with two kinds of files, a path at which it closes the connection, and a path with an error.
fn nginx(dir: &Path) -> Nginx {
    let mut files = vec![("index.html".to_owned(), b"hello\n".to_vec()), ("large".to_owned(), vec![b'x'; 50_000])];
    files.extend((0..10).map(|n| (format!("set/{n}.html"), vec![b's'; 100])));
    let extra = "location /close { keepalive_timeout 0; alias /dev/null; return 200 'closed\\n'; }\n\
                 location /fails { return 503; }\n\
                 location /post { return 200 'posted\\n'; }\n\
                 location /cookie { add_header Set-Cookie 'id=1'; return 200 'cookie\\n'; }"
        .to_owned();
    let log = b"/index.html\0/large\0/absent\0";
    fs::write(dir.join("wlog"), log).unwrap();
    fs::write(
        dir.join("wsesslog"),
        "/index.html think=0.02\n\t/large\n\t/set/1.html\n/post method=POST contents='ab'\n\n/index.html\n",
    )
    .unwrap();
    Nginx::start(NginxOptions { files, extra, ..NginxOptions::default() })
}

#[test]
fn keys_and_numbers_are_separated() {
    for (line, keys, numbers) in [
        ("Net I/O: 129.6 KB/s (1.1*10^6 bps)", "Net I/O: # KB/s (#*10^6 bps)", &[129.6, 1.1][..]),
        ("Reply status: 1xx=0 2xx=29997", "Reply status: 1xx=# 2xx=#", &[0.0, 29997.0]),
        ("Session rate [sess/s]: min 0.00 (240/450)", "Session rate [sess/s]: min # (#/#)", &[0.0, 240.0, 450.0]),
        ("Session length histogram: 4 7 240", "Session length histogram:", &[4.0, 7.0, 240.0]),
    ] {
        assert_eq!(keys_and_numbers(line), (keys.to_owned(), numbers.to_vec()));
    }
}

#[test]
fn the_report_is_that_of_the_real_httperf() {
    use Paced::{ByRate, ByServer};
    let dir = tempfile::tempdir().unwrap();
    let nginx = nginx(dir.path());
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (wlog, wlog_once) =
        (format!("--wlog=y,{} --num-conns 9", at("wlog")), format!("--wlog=n,{} --num-conns 3", at("wlog")));
    let wsesslog = format!("--wsesslog=6,0.01,{} --rate 50", at("wsesslog"));
    let _machine = lock_machine_exclusively();
    for (line, paced) in [
        ("--num-conns 1", ByServer),
        ("--num-conns 20", ByServer),
        ("--num-conns 40 --rate 80", ByRate),
        ("--num-conns 20 --num-calls 5 --rate 40", ByRate),
        ("--num-conns 10 --num-calls 6 --burst-length 3", ByServer),
        ("--num-conns 20 --http-version 1.0", ByServer),
        ("--num-conns 20 --uri /large --rate 40 --timeout 5", ByRate),
        ("--num-conns 20 --uri /absent", ByServer),
        ("--num-conns 20 --uri /fails --hog", ByServer),
        ("--num-conns 20 --method HEAD --uri /large", ByServer),
        ("--num-conns 30 --period e0.01", ByServer),
        ("--num-conns 20 --period u0.01,0.03", ByServer),
        ("--num-conns 20 --close-with-reset --rate 50 --num-calls 2", ByRate),
        (r"--num-conns 10 --add-header X-One:1\nX-Two:2\n --no-host-hdr --http-version 1.0", ByServer),
        ("--num-conns 10 --server-name www.example.org", ByServer),
        (&wlog, ByServer),
        (&wlog_once, ByServer),
        ("--num-conns 20 --wset 10,0.5 --uri /set", ByServer),
        ("--wsess 10,6,0.02 --burst-length 2 --rate 50", ByServer),
        ("--wsess 10,3,0.02 --session-cookie --uri /cookie --rate 50", ByServer),
        (&wsesslog, ByServer),
        ("--wsess 8,4,0.01 --burst-length 4 --timeout 5 -v", ByServer),
        ("--num-conns 5 --method POST --uri /post", ByServer),
        ("--uri /fails --wsess 3,3,0.01 --failure-status 503 --rate 50", ByServer),
        ("--num-conns 300 --rate 50 -v", ByRate),
    ] {
        let mut args = vec!["--server=127.0.0.1".to_owned(), format!("--port={}", nginx.addr().port())];
        args.extend(line.split(' ').map(str::to_owned));
        let theirs = real(&args).exits(&[0]);
        let mine = Running::start(brimful(&[&["httperf".to_owned()], &args[..]].concat())).finish().exits(&[0]);
        compare(line, paced, &theirs.stdout, &mine.stdout);
        let echo = |output: &str| output.lines().next().unwrap_or_default().to_owned();
        assert_eq!(echo(&theirs.stdout), echo(&mine.stdout));
    }
}

/// Both programs must request the same paths in the same order.
#[test]
fn files_are_requested_in_the_order_of_the_real_httperf() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let server = RawServer::with_handler({
        let asked = Arc::clone(&asked);
        move |request| {
            asked.lock().unwrap().push(request.target.clone());
            with_length(b"x")
        }
    });
    let taken = || std::mem::take(&mut *asked.lock().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    fs::write(&log, b"/one\0/two?x=y\0/three\0").unwrap();
    let [again, once] = ["y", "n"].map(|again| format!("--num-conns 4 --num-calls 2 --wlog {again},{}", log.display()));
    let _machine = lock_machine_exclusively();
    for line in [
        "--num-conns 12 --wset 4,1 --uri /a",
        "--num-conns 25 --wset 10,1 --uri /a/b",
        "--num-conns 25 --wset 11,1 --uri /a",
        "--num-conns 30 --wset 25,1 --uri /a",
        "--num-conns 120 --wset 101,1 --uri /a",
        "--num-conns 30 --num-calls 4 --wset 1000,1 --uri /a",
        "--wsess 10,3,0 --wset 10,1 --uri /a",
        "--num-conns 40 --wset 10,0.25 --uri /a",
        "--num-conns 9 --num-calls 5 --wset 7,0.3 --uri /a",
        "--num-conns 60 --wset 10,0.9 --uri /a",
        "--num-conns 40 --wset 12,0.1 --uri /a",
        "--num-conns 5 --wset 12,0 --uri /a",
        "--num-conns 5 --wset 1,1 --uri /a",
        "--num-conns 30 --wset 10,0.5 --client 1/3 --uri /a",
        "--num-conns 30 --wset 10,1 --client 2/4 --uri /a",
        &again,
        &once,
    ] {
        let mut args = vec!["--server=127.0.0.1".to_owned(), format!("--port={}", server.addr().port())];
        args.extend(line.split(' ').map(str::to_owned));
        real(&args).exits(&[0]);
        let theirs = taken();
        Running::start(brimful(&[&["httperf".to_owned()], &args[..]].concat())).finish().exits(&[0]);
        assert_eq!(taken(), theirs, "{line}");
    }
}

#[test]
fn failed_calls_are_retried_with_retry_on_failure() {
    let number = AtomicUsize::new(0);
    let server = RawServer::with_handler(move |_| match number.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec(),
        _ => with_length(b"x"),
    });
    let port = server.addr().port().to_string();
    let args = ["httperf", "--server", "127.0.0.1", "--port", &port, "--wsess", "3,2,0", "--failure-status", "503"];
    let _machine = lock_machine_exclusively();
    let again = Running::start(brimful(&[&args[..], &["--retry-on-failure"]].concat())).finish().exits(&[0]);
    assert!(again.stdout.contains("Reply status: 1xx=0 2xx=6 3xx=0 4xx=0 5xx=6\n"), "{}", again.stdout);
    assert!(again.stdout.contains("(3/3)"), "{}", again.stdout);
    assert!(!again.stderr.contains("retry"), "{}", again.stderr);
    let once = Running::start(brimful(&args)).finish().exits(&[0]);
    assert!(once.stdout.contains("(0/3)") || once.stdout.contains("(1/3)"), "{}", once.stdout);
}

#[test]
fn refused_connections_are_counted_as_errors() {
    let silent = RefusingPort::reserve();
    let args =
        ["--server=127.0.0.1", &format!("--port={}", silent.port()), "--num-conns=5", "--rate=100"].map(str::to_owned);
    let _machine = lock_machine_exclusively();
    let (theirs, mine) =
        (real(&args), Running::start(brimful(&[&["httperf".to_owned()], &args[..]].concat())).finish());
    compare("refused", Paced::ByServer, &theirs.stdout, &mine.stdout);
    assert_eq!(theirs.code, mine.code);
    assert!(mine.stdout.contains("connrefused 5"), "{}", mine.stdout);
}

#[test]
fn the_program_name_selects_httperf_and_messages_can_be_printed() {
    let dir = tempfile::tempdir().unwrap();
    let nginx = nginx(dir.path());
    let port = nginx.addr().port().to_string();
    let args = ["--server", "127.0.0.1", "--port", &port, "--print-reply=header", "--print-request", "--num-c=2"];
    let _machine = lock_machine_exclusively();
    let refused = Running::start(brimful(&[&["httperf"], &args[..]].concat())).finish();
    assert!(refused.stderr.contains("--num-c may mean --num-calls or --num-conns"), "{refused:?}");
    let mut named = Command::new(env!("CARGO_BIN_EXE_brimful"));
    named.arg0("httperf").args(&args[..6]);
    let done = Running::start(named).finish().exits(&[0]);
    for line in
        ["SH0:GET / HTTP/1.1\n", "SH0:User-Agent: httperf/0.9.0\n", "RH0:HTTP/1.1 200 OK\n", "Total: connections 1 "]
    {
        assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
    }
    assert!(!done.stdout.contains("RB0:"), "{}", done.stdout);
}

#[test]
fn tls_works() {
    let certificates = Certificates::new();
    // The certificate is for another host name, but httperf does not verify certificates.
    let identity = certificates.issue("DNS:www.example.org", CertificateFlaw::None);
    let (listen, extra) = ("ssl".to_owned(), identity.for_nginx());
    let nginx = Nginx::start(NginxOptions { listen, extra, ..NginxOptions::default() });
    let port = nginx.addr().port();
    let _machine = lock_machine_exclusively();
    for line in ["--num-conns 5", "--num-conns 3 --num-calls 4 --ssl-no-reuse", "--wsess 4,3,0.01 --rate 50"] {
        let mut args = vec!["--ssl".to_owned(), "--server=127.0.0.1".to_owned(), format!("--port={port}")];
        args.extend(line.split(' ').map(str::to_owned));
        let theirs = real(&args).exits(&[0]);
        let mine = Running::start(brimful(&[&["httperf".to_owned()], &args[..]].concat())).finish().exits(&[0]);
        compare(line, Paced::ByServer, &theirs.stdout, &mine.stdout);
    }
}

#[test]
fn options_without_effect_are_reported() {
    run(&["httperf", "--rate", "fast"]).fails(1, "write a number per second");
    run(&["httperf", "--wlog", "y,/nowhere"]).fails(1, "/nowhere");
    run(&["httperf", "--server", "host.invalid"]).fails(1, "host.invalid");
    let help = run(&["httperf", "--help"]).exits(&[0]).stdout;
    assert!(help.contains("--retry-on-failure") && help.contains("-v, --verbose"), "{help}");
    assert!(run(&["httperf", "--version"]).exits(&[0]).stdout.contains("httperf 0.9"));
}
